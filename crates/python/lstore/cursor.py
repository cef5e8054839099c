"""Cursors (PEP 249)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from html import escape
from typing import TYPE_CHECKING, Any, ContextManager, Optional, Union

from ._lstore import NativeRows, NativeSession, numbered
from .errors import InterfaceError, ProgrammingError, of_sqlstate
from .results import ArrowResults, html
from .types import ColumnDescription

if TYPE_CHECKING:
    from .connection import Connection

Parameters = Union[Sequence[Any], Mapping[str, Any], None]

#: Rows that a notebook shows.
_SHOWN_MAX = 20

_SHARED = "another thread is using this cursor: give each thread a cursor of its own"


def prepared_text(statement: str, parameters: Parameters) -> tuple[str, Optional[Sequence[Any]]]:
    """The statement with `$1`, `$2`, ..., and the values in that order.

    >>> prepared_text("SELECT ?, ?", [1, 2])
    ('SELECT $1, $2', [1, 2])
    >>> prepared_text("SELECT :a + :b + :a", {"a": 1, "b": 2})
    ('SELECT $1 + $2 + $1', [1, 2])
    """
    if parameters is None:
        return statement, None
    if isinstance(parameters, Mapping):
        text, _, names = numbered(statement, True)
        missing = [name for name in names if name not in parameters]
        if missing:
            raise ProgrammingError(f"the statement has the parameter :{missing[0]}, and there is no value for it")
        return text, [parameters[name] for name in names]
    if isinstance(parameters, (str, bytes)):
        raise ProgrammingError("parameters are a list, a tuple or a dictionary, not one text: write (value,)")
    if "?" not in statement:
        return statement, parameters
    text, marks, _ = numbered(statement, False)
    if marks and marks != len(parameters):
        raise of_sqlstate("07001", f"the statement has {marks} parameters, and {len(parameters)} values were given")
    return (text if marks else statement), parameters


def rows_of_tag(tag: Optional[str]) -> int:
    """The number of rows that a command's tag names; -1 if it names none.

    >>> rows_of_tag("INSERT 0 3"), rows_of_tag("CREATE TABLE")
    (3, -1)
    """
    last = (tag or "").rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else -1


class Cursor(ArrowResults):
    """Runs statements and gives their rows.

    >>> import lstore
    >>> cursor = lstore.connect().cursor()
    >>> cursor.execute("SELECT a, a * a AS b FROM generate_series(1, 3) AS t(a)").fetchall()
    [(1, 1), (2, 4), (3, 9)]
    >>> cursor.execute("SELECT upper(:name)", {"name": "ada"}).fetchone()
    ('ADA',)
    """

    # What a new cursor has: one that runs a short statement costs little more than the statement.
    _result: Optional[NativeRows] = None
    _description: Optional[list[ColumnDescription]] = None
    _label: str = ""
    rowcount: int = -1
    lastrowid: Optional[int] = None
    statusmessage: Optional[str] = None
    arraysize: int = 1

    def __init__(self, connection: "Connection") -> None:
        self._connection: Optional["Connection"] = connection
        self._using = threading.Lock()

    @property
    def connection(self) -> "Connection":
        """The connection that the cursor belongs to."""
        if self._connection is None:
            raise InterfaceError("the cursor is closed")
        return self._connection

    @property
    def description(self) -> Optional[list[ColumnDescription]]:
        """The columns of the result; `None` if the last statement had none."""
        if self._description is None and self._result is not None:
            self._description = [
                ColumnDescription(name, kind, None, None, precision, scale, None)
                for name, kind, precision, scale in self._result.columns()
            ]
        return self._description

    def execute(self, statement: str, parameters: Parameters = None) -> "Cursor":
        """Runs a statement; without parameters also several, divided by `;`, of which the last gives the result."""
        connection = self.connection
        self._take()
        try:
            answer = connection._at_once(statement, parameters)
            if answer is not None:
                self._reset()
                return self._answered(answer)
            text, values = prepared_text(statement, parameters)
            self._reset()
            if values is None and ";" in text:
                *first, text = NativeSession.split(text) or [text]
                for piece in first:
                    connection._run(piece, None)
            self._label = statement
            self._answer(connection._run(text, values))
        finally:
            self._using.release()
        return self

    def executemany(self, statement: str, parameters: Iterable[Parameters]) -> "Cursor":
        """Runs a statement once for each set of parameters: all of them take effect, or none.

        >>> import lstore
        >>> con = lstore.connect()
        >>> _ = con.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
        >>> con.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "y")]).rowcount
        2
        """
        connection = self.connection
        rows = iter(parameters)
        first = next(rows, None)
        self._take()
        try:
            self._reset()
            self.rowcount = 0
            if first is None:
                return self
            text, values = prepared_text(statement, first)
            if isinstance(first, Mapping):
                names = numbered(statement, True)[2]
                rest: Iterator[Any] = ([row[name] for name in names] for row in rows)  # type: ignore[index,call-overload]
            else:
                rest = iter(rows)
            if isinstance(parameters, (list, tuple)) and not isinstance(first, Mapping):
                self.rowcount = connection._run_many(text, parameters, len(parameters))
            else:
                self.rowcount = connection._run_many(text, _chained(values, rest), None)
        finally:
            self._using.release()
        return self

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        """The next row; `None` if there is none."""
        rows = self._result
        if rows is not None and self._connection is not None and self._connection._progress is None:
            return rows.fetch_one()
        found = self._fetch(1)
        return found[0] if found else None

    def fetchmany(self, size: Optional[int] = None) -> list[tuple[Any, ...]]:
        """The next rows: `size` of them, or `arraysize`, or as many as are left."""
        return self._fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._fetch(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._fetch(1000):
            yield from rows

    def close(self) -> None:
        """Gives up the rows; the cursor is of no use any more."""
        if self._result is not None:
            self._result.close()
        self._result, self._connection = None, None

    def _repr_html_(self) -> str:
        """The next rows, which are still to be fetched, as notebooks show them."""
        if self._result is None:
            return f"<code>{escape(self.statusmessage or repr(self))}</code>"
        rows = self._result.peek(_SHOWN_MAX + 1)
        names = [column.name for column in self.description or []]
        return html(names, rows[:_SHOWN_MAX], len(rows) > _SHOWN_MAX)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: PEP 249 asks for it."""

    def setoutputsize(self, size: int, column: Optional[int] = None) -> None:
        """Does nothing: PEP 249 asks for it."""

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _watched(self, label: str) -> ContextManager[object]:
        connection = self._connection
        if connection is None or connection._progress is None:
            return nullcontext()
        return connection._progress.at(self._label or label)

    def _take(self) -> None:
        if not self._using.acquire(blocking=False):
            raise InterfaceError(_SHARED)

    def _reset(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result, self._description = None, None
        self.rowcount, self.statusmessage = -1, None

    def _answered(self, answer: Union[NativeRows, tuple[int, str]]) -> "Cursor":
        """Takes what a short statement has answered, which needs nothing of the session any more."""
        if isinstance(answer, tuple):
            self.rowcount, self.statusmessage = answer
        else:
            self._result = answer
        return self

    def _answer(self, answer: Union[NativeRows, tuple[str, list[tuple[str, str, str]]]]) -> None:
        if isinstance(answer, NativeRows):
            self._result = answer
            self.statusmessage = answer.tag()
            self.connection._gives(answer)
        else:
            self.statusmessage = answer[0]
        self.rowcount = rows_of_tag(self.statusmessage)

    def _rows(self) -> NativeRows:
        if self._connection is None:
            raise InterfaceError("the cursor is closed")
        if self._result is None:
            raise ProgrammingError("there are no rows: the cursor has run no statement that gives any")
        return self._result

    def _fetch(self, count: Optional[int]) -> list[tuple[Any, ...]]:
        rows = self._rows()
        self._take()
        try:
            if self._connection is None or self._connection._progress is None:
                return rows.fetch(count)
            with self._watched("fetch"):
                return rows.fetch(count)
        finally:
            self._using.release()


async def aexecute(connection: "Connection", statement: str, parameters: Parameters) -> Cursor:
    """Runs a statement on a thread, which also reads its rows; cancelling the task cancels the statement."""
    cursor = connection.cursor()

    def run() -> Cursor:
        cursor.execute(statement, parameters)
        if cursor._result is not None:
            cursor._result.read_all()
        return cursor

    running = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            connection.cancel()
            await asyncio.wait([running], timeout=0.01)
        running.exception()
        raise


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
