"""The exceptions of the package: PEP 249's classes, and below them one for each SQLSTATE that programs act on.

Every exception of a statement has `sqlstate`, and as far as they are known `hint`, `detail`, `position` (where in the statement's
text, in bytes from 0), `table`, `column` and `constraint`.

>>> import lstore
>>> try:
...     lstore.connect().execute("SELECT nmae FROM people")
... except lstore.UndefinedTable as error:
...     print(error.sqlstate, error)
42P01 relation "people" does not exist
"""

from __future__ import annotations

from typing import Optional


class Warning(Exception):
    """A warning. Statements give notices (`Connection.notices`) instead of raising it."""


class Error(Exception):
    """The base of all errors."""

    sqlstate: Optional[str] = None
    hint: Optional[str] = None
    detail: Optional[str] = None
    position: Optional[int] = None
    table: Optional[str] = None
    column: Optional[str] = None
    constraint: Optional[str] = None


class InterfaceError(Error):
    """The package was used in a way that it does not allow: something is closed, shared or forked."""


class DatabaseError(Error):
    """The database refused a statement or failed at it."""


class DataError(DatabaseError):
    """A value is none of its type, or out of range (class 22)."""


class OperationalError(DatabaseError):
    """What is not in the hands of a program: conflicts, memory, disks, cancelled statements."""


class IntegrityError(DatabaseError):
    """A constraint is violated (class 23)."""


class InternalError(DatabaseError):
    """The database is wrong, or a transaction is not in the state that a statement needs."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, its names, its types (class 42)."""


class NotSupportedError(DatabaseError):
    """The database does not have what a statement asks for (class 0A)."""


class SerializationFailure(OperationalError):
    """40001: another transaction was first. Run the transaction again, as `Connection.run` does."""


class DeadlockDetected(OperationalError):
    """40P01: transactions waited for each other. Run the transaction again."""


class QueryCanceled(OperationalError):
    """57014: cancelled by `Connection.cancel`, by Ctrl-C or by a limit of time."""


class LockNotAvailable(OperationalError):
    """55P03: a lock could not be had in time."""


class UniqueViolation(IntegrityError):
    """23505"""


class NotNullViolation(IntegrityError):
    """23502"""


class ForeignKeyViolation(IntegrityError):
    """23503"""


class CheckViolation(IntegrityError):
    """23514"""


class UndefinedTable(ProgrammingError):
    """42P01"""


class UndefinedColumn(ProgrammingError):
    """42703"""


class SqlSyntaxError(ProgrammingError):
    """42601"""


class InFailedSqlTransaction(InternalError):
    """25P02: a statement of the transaction failed; roll it back."""


class DivisionByZero(DataError):
    """22012"""


class FunctionFailed(OperationalError):
    """38000: a function of Python's that SQL called has raised an exception, which is the `__cause__` of this one."""


_BY_SQLSTATE: dict[str, type[Error]] = {
    "40001": SerializationFailure,
    "40P01": DeadlockDetected,
    "57014": QueryCanceled,
    "55P03": LockNotAvailable,
    "23505": UniqueViolation,
    "23502": NotNullViolation,
    "23503": ForeignKeyViolation,
    "23514": CheckViolation,
    "42P01": UndefinedTable,
    "42703": UndefinedColumn,
    "42601": SqlSyntaxError,
    "25P02": InFailedSqlTransaction,
    "22012": DivisionByZero,
    "38000": FunctionFailed,
}

_BY_CLASS: dict[str, type[Error]] = {
    "0A": NotSupportedError,
    "07": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "24": InternalError,
    "25": InternalError,
    "26": ProgrammingError,
    "2B": InternalError,
    "2D": InternalError,
    "34": OperationalError,
    "38": OperationalError,
    "39": ProgrammingError,
    "3B": InternalError,
    "3D": ProgrammingError,
    "3F": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
    "44": ProgrammingError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "72": DatabaseError,
    "XX": InternalError,
}


def class_of(sqlstate: str) -> type[Error]:
    """The class of the exceptions with a SQLSTATE.

    >>> class_of("23505").__name__, class_of("22P02").__name__
    ('UniqueViolation', 'DataError')
    """
    return _BY_SQLSTATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], DatabaseError)


def of_sqlstate(
    sqlstate: str,
    message: str,
    *,
    position: Optional[int] = None,
    hint: Optional[str] = None,
    detail: Optional[str] = None,
    table: Optional[str] = None,
    column: Optional[str] = None,
    constraint: Optional[str] = None,
) -> Error:
    """The exception for an error of the database; what helps is part of its text."""
    more = [f"{word}: {text}" for word, text in (("DETAIL", detail), ("HINT", hint)) if text]
    error = class_of(sqlstate)("\n".join([message, *more]))
    error.sqlstate = sqlstate
    error.position, error.hint, error.detail = position, hint, detail
    error.table, error.column, error.constraint = table, column, constraint
    return error
