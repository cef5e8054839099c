"""lstore: a database for short transactions and analytical queries on the same rows, at the same moment.

>>> import lstore
>>> con = lstore.connect()                  # in memory; lstore.connect("mydata") for the directory mydata
>>> con.execute("SELECT 6 * 7 AS answer").fetchall()
[(42,)]

The package is a driver by PEP 249. Parameters are written `?`, `:name` or `$1`; a transaction begins with the first statement
and ends by `commit()` or `rollback()`, unless the connection has `autocommit=True`.
"""

from __future__ import annotations

import os
from typing import Optional, Union

from . import _lstore
from ._lstore import ArraySnapshot, NativeDatabase, SnapshotArray, __version__
from .column import Column
from .connection import Connection
from .cursor import Cursor
from .errors import (
    CheckViolation,
    DatabaseError,
    DataError,
    DeadlockDetected,
    DivisionByZero,
    Error,
    ForeignKeyViolation,
    FunctionFailed,
    InFailedSqlTransaction,
    IntegrityError,
    InterfaceError,
    InternalError,
    LockNotAvailable,
    NotNullViolation,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    QueryCanceled,
    SerializationFailure,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedTable,
    UniqueViolation,
    Warning,
)
from .types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    ColumnDescription,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
#: Threads may share the module and connections; each takes a cursor of its own.
threadsafety = 2
#: `:name` and `$1` are understood as well.
paramstyle = "qmark"

os.register_at_fork(after_in_child=_lstore.forked)


def connect(
    path: Union[str, "os.PathLike[str]"] = ":memory:",
    *,
    autocommit: bool = False,
    read_only: bool = False,
    memory_limit: Optional[str] = None,
    progress: Optional[bool] = None,
    **settings: object,
) -> Connection:
    """Opens the database in a directory, which is made if it is missing, or a new one in memory.

    `progress` says whether work that takes long shows a bar; by itself it does in notebooks and terminals.
    `memory_limit` is a text such as `"4GB"`. `settings` are the session's, as `SET` has them: `statement_timeout="10s"`,
    `default_transaction_isolation="serializable"`. Connections of a process to one directory share the database; another process
    is refused, unless all of them have `read_only=True`.

    >>> connect(statement_timeout="1min").execute("SHOW statement_timeout").fetchone()
    ('1min',)
    """
    if read_only:
        settings = {"default_transaction_read_only": True, **settings}
    database = NativeDatabase(os.fspath(path), read_only, memory_limit)
    return Connection(database, autocommit=autocommit, settings=settings, progress=progress)


__all__ = [
    "__version__",
    "apilevel",
    "ArraySnapshot",
    "BINARY",
    "Binary",
    "CheckViolation",
    "Column",
    "ColumnDescription",
    "connect",
    "Connection",
    "Cursor",
    "DatabaseError",
    "DataError",
    "Date",
    "DateFromTicks",
    "DATETIME",
    "DeadlockDetected",
    "DivisionByZero",
    "Error",
    "ForeignKeyViolation",
    "FunctionFailed",
    "InFailedSqlTransaction",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LockNotAvailable",
    "NotNullViolation",
    "NotSupportedError",
    "NUMBER",
    "OperationalError",
    "paramstyle",
    "ProgrammingError",
    "QueryCanceled",
    "ROWID",
    "SerializationFailure",
    "SnapshotArray",
    "SqlSyntaxError",
    "STRING",
    "threadsafety",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "UndefinedColumn",
    "UndefinedTable",
    "UniqueViolation",
    "Warning",
]
