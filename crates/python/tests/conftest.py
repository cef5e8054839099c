"""What the tests share."""

from collections.abc import Iterator

import lstore
import pytest


@pytest.fixture
def con() -> Iterator[lstore.Connection]:
    """A connection to a new database in memory."""
    connection = lstore.connect()
    yield connection
    connection.close()
