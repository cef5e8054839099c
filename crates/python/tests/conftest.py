"""What the tests share."""

import signal
from collections.abc import Iterator

import lstore
import pytest

# A shell starts what it leaves in the background with signals ignored; the tests interrupt themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def con() -> Iterator[lstore.Connection]:
    """A connection to a new database in memory."""
    connection = lstore.connect()
    yield connection
    connection.close()
