"""All of it."""

from sqlalchemy.testing.suite import *  # noqa: F403
