"""Connections (PEP 249, and what psycopg's users know)."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import random
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, Callable, ContextManager, Iterable, Optional, Sequence, TypeVar, Union

from . import errors
from ._lstore import NativeDatabase, NativeRows, NativeSession
from .cursor import Cursor, Parameters, aexecute, rows_of_tag
from .functions import Type, by_column, signature
from .progress import Watched, is_wanted
from .relation import Relation, names_in, with_paths
from .results import ArrowResults, needed
from .table import Table, changes, newest_commit, subscribe

T = TypeVar("T")

_log = logging.getLogger("lstore")

_ISOLATION = {
    "read committed": "READ COMMITTED",
    "repeatable read": "REPEATABLE READ",
    "snapshot": "REPEATABLE READ",
    "serializable": "SERIALIZABLE",
}

_COMMIT = {"sync": "on", "async": "off", "partition": "partition"}


def quoted(name: str) -> str:
    """A name as SQL writes it.

    >>> quoted('my "table"')
    '"my ""table\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A text as SQL writes it.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + str(value).replace("'", "''") + "'"


def _chosen(known: dict[str, str], word: str, what: str) -> str:
    found = known.get(word.lower().replace("_", " "))
    if found is None:
        raise errors.ProgrammingError(f"there is no {what} {word!r}: it is one of {', '.join(known)}")
    return found


class Connection:
    """A connection to a database in this process.

    Threads may share it: their statements run one after the other. Each thread takes a cursor of its own.

    >>> import lstore
    >>> with lstore.connect() as con:
    ...     _ = con.execute("CREATE TABLE t (a int PRIMARY KEY)")
    ...     _ = con.execute("INSERT INTO t VALUES (1), (2)")
    ...     con.execute("SELECT sum(a) FROM t").fetchone()
    (3,)
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self, database: NativeDatabase, *, autocommit: bool, settings: dict[str, object], progress: Optional[bool] = None
    ) -> None:
        self._database = database
        self._session: NativeSession = database.session()
        self._progress: Optional[Watched] = None
        self.progress = is_wanted() if progress is None else progress
        self._settings = dict(settings)
        self._autocommit = True
        self._open_rows: "weakref.WeakSet[NativeRows]" = weakref.WeakSet()
        self._blocks = 0
        self._register_count = 0
        self._lock = threading.RLock()
        self.closed = False
        self.notices: list[str] = []
        for name, value in settings.items():
            text = ("on" if value else "off") if isinstance(value, bool) else str(value)
            self._session.execute("SELECT set_config($1, $2, false)", (name.replace("__", "."), text), False)
        self._session.settings_are_defaults()
        self._autocommit = autocommit
        self._session.set_commits_alone(autocommit)

    @property
    def progress(self) -> bool:
        """Whether work that takes longer than a second shows how far it has come; by itself in notebooks and terminals."""
        return self._progress is not None

    @progress.setter
    def progress(self, value: bool) -> None:
        self._progress = Watched(self._session) if value else None

    def _watched(self, label: str) -> ContextManager[object]:
        return contextlib.nullcontext() if self._progress is None else self._progress.at(label)

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._check()
        return Cursor(self)

    def execute(self, statement: str, parameters: Parameters = None) -> Cursor:
        """Runs a statement with a new cursor, and gives that."""
        answer = self._at_once(statement, parameters)
        if answer is not None:
            return Cursor(self)._answered(answer)
        return self.cursor().execute(statement, parameters)

    def _at_once(self, statement: str, parameters: Parameters) -> Union[NativeRows, tuple[int, str], None]:
        """What a short statement answers that was run before, outside of a transaction; `None` where it has to be run."""
        if self._progress is None and (parameters is None or type(parameters) is tuple or type(parameters) is list):
            return self._session.answer_at_once(statement, parameters)
        return None

    def executemany(self, statement: str, parameters: Iterable[Parameters]) -> Cursor:
        """Runs a statement for many sets of parameters with a new cursor, and gives that."""
        return self.cursor().executemany(statement, parameters)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own. Otherwise a transaction begins with the first statement, and ends by
        `commit` or `rollback`.
        """
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self.status != "idle":
            raise errors.ProgrammingError("autocommit can't be changed within a transaction: commit or roll back first")
        self._autocommit = bool(value)
        self._session.set_commits_alone(self._autocommit)

    @property
    def status(self) -> str:
        """`idle`, `active` in a transaction, `failed` in one that takes nothing but its end."""
        self._check()
        return self._session.status()

    @property
    def in_transaction(self) -> bool:
        """Whether there is a transaction."""
        return self.status != "idle"

    def begin(self) -> None:
        """Begins a transaction, which otherwise the first statement does, or with `autocommit` none."""
        self.execute("BEGIN")

    def commit(self) -> None:
        """Commits the transaction, if there is one."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        self._end("ROLLBACK")

    def _end(self, word: str) -> None:
        with self._lock:
            if self._blocks:
                raise errors.ProgrammingError(f"{word} is not for a block of transaction(): leave the block instead")
            if self.status != "idle":
                self._finish(word)

    def cancel(self) -> bool:
        """Stops the statement that another thread runs on this connection; whether there was one."""
        return self._session.cancel()

    def close(self) -> None:
        """Closes the connection; a transaction is rolled back."""
        self.closed = True
        for rows in list(self._open_rows):
            with contextlib.suppress(errors.Error):
                rows.close()
        # The database goes with its last session, while other threads run.
        self.__dict__.pop("_database", None)
        self._session.close()

    def __enter__(self) -> "Connection":
        self._check()
        return self

    def __exit__(self, kind: Optional[type], exception: Optional[BaseException], trace: object) -> None:
        try:
            if not self.closed and kind is None:
                self.commit()
        finally:
            self.close()

    @contextlib.contextmanager
    def transaction(
        self, *, isolation: Optional[str] = None, commit: Optional[str] = None, read_only: bool = False
    ) -> Iterator["Connection"]:
        """A transaction for a block: committed where the block ends, rolled back where it raises. Within a transaction it is a
        savepoint.

        `isolation` is `read committed`, `repeatable read` (also `snapshot`) or `serializable`. `commit` is `sync` (the commit waits
        for the disk), `async` (it does not) or `partition` (it waits for its own part of the log).

        >>> import lstore
        >>> con = lstore.connect()
        >>> with con.transaction(isolation="serializable", commit="async"):
        ...     _ = con.execute("CREATE TABLE t (a int)")
        >>> con.in_transaction
        False
        """
        with self._lock:
            name = f"lstore_{self._blocks}"
            is_outer = self.status == "idle"
            if is_outer:
                words = ["BEGIN"]
                if isolation is not None:
                    words.append("ISOLATION LEVEL " + _chosen(_ISOLATION, isolation, "isolation level"))
                words += ["READ ONLY"] if read_only else []
                setting = None if commit is None else _chosen(_COMMIT, commit, "way to commit")
                self._session.execute(" ".join(words), None, False)
                if setting is not None:
                    self._session.execute(f"SET LOCAL synchronous_commit = {setting}", None, False)
            elif isolation is not None or commit is not None or read_only:
                raise errors.ProgrammingError("a transaction runs already, and its settings can't be changed")
            else:
                self._session.execute(f"SAVEPOINT {name}", None, False)
            self._blocks += 1
        try:
            yield self
        except BaseException:
            self._blocks -= 1
            if is_outer:
                self._finish("ROLLBACK")
            else:
                self._session.execute(f"ROLLBACK TO {name}", None, False)
                self._session.execute(f"RELEASE {name}", None, False)
            raise
        self._blocks -= 1
        self._finish("COMMIT" if is_outer else f"RELEASE {name}")

    def run(
        self,
        work: Callable[["Connection"], T],
        *,
        isolation: Optional[str] = None,
        commit: Optional[str] = None,
        attempts: int = 10,
    ) -> T:
        """Runs `work` in a transaction, and again if other transactions got in its way (40001, 40P01), up to `attempts` times.

        >>> import lstore
        >>> con = lstore.connect()
        >>> con.run(lambda con: con.execute("SELECT 1").fetchone(), isolation="serializable")
        (1,)
        """
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction(isolation=isolation, commit=commit):
                    return work(self)
            except (errors.SerializationFailure, errors.DeadlockDetected):
                if attempt == attempts or self.in_transaction:
                    raise
                time.sleep(random.uniform(0, 0.001 * 2 ** min(attempt, 7)))
        raise errors.ProgrammingError("attempts is at least 1")

    def append(self, table: str, data: object) -> int:
        """Appends rows to a table, by the names of their columns; columns that the data lacks get their defaults. `data` is a table
        or frame of PyArrow, Polars or pandas, a result, or any object with `__arrow_c_stream__`. Gives the number of rows.

        An error names the row (from 0), the column and both types, and nothing of the data stays.
        """
        self._check()
        with self._watched("append"):
            return self._session.append(table, _arrow(data), not self._autocommit)

    def copy_from(self, table: str, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None) -> int:
        """Loads a CSV or Parquet file into a table; the ending of its name says which it is. Gives the number of rows."""
        cursor = self.execute(f"COPY {quoted(table)} FROM {literal(os.fspath(path))} {_copy_format(path, format)}")
        return cursor.rowcount

    def copy_to(self, source: str, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None) -> int:
        """Writes a table, or a query in SQL, to a CSV or Parquet file. Gives the number of rows."""
        what = f"({source})" if " " in source.strip() else quoted(source)
        return self.execute(f"COPY {what} TO {literal(os.fspath(path))} {_copy_format(path, format)}").rowcount

    def register(self, name: str, data: object) -> None:
        """Lets queries of this connection read a table or frame of PyArrow, Polars or pandas under a name. Its buffers are shared;
        a table of the database with that name hides it.

        >>> import lstore
        >>> import pyarrow
        >>> con = lstore.connect()
        >>> con.register("numbers", pyarrow.table({"a": [1, 2, 3]}))
        >>> con.execute("SELECT max(a) FROM numbers").fetchone()
        (3,)
        """
        self._check()
        self._session.register(name, _arrow(data))

    def unregister(self, name: str) -> bool:
        """Takes back what `register` gave; whether there was something of this name."""
        self._check()
        return self._session.unregister(name)

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Optional[Sequence[Type]] = None,
        return_type: Optional[Type] = None,
        *,
        type: str = "native",
        null_handling: str = "default",
        side_effects: bool = False,
    ) -> None:
        """Lets statements of this connection call a function of Python's, as DuckDB's package does.

        `parameters` and `return_type` are types by their names in SQL, or classes of Python; where they are left out those of the
        function's annotations. A function of type `native` is called for each row, and not for rows with a NULL among its
        arguments, unless `null_handling` is `special`. One of type `arrow` is called with arrays of PyArrow, for many rows at once,
        and gives an array. Equal arguments are taken to have equal results, unless the function has `side_effects`.

        A function can't use lstore. Its exception ends the statement, and is the `__cause__` of what that raises.

        >>> import lstore
        >>> import pyarrow.compute
        >>> con = lstore.connect()
        >>> def plural(word: str, count: int) -> str:
        ...     return word if count == 1 else word + "s"
        >>> con.create_function("plural", plural)
        >>> con.execute("SELECT plural('row', n) FROM (VALUES (1), (2)) AS t(n)").fetchall()
        [('row',), ('rows',)]
        >>> con.create_function("root", pyarrow.compute.sqrt, [float], float, type="arrow")
        >>> con.execute("SELECT sum(root(a * a)) FROM generate_series(1, 4) AS t(a)").fetchone()
        (10.0,)
        """
        self._check()
        _chosen({"native": "", "arrow": ""}, type, "type of functions")
        _chosen({"default": "", "special": ""}, null_handling, "handling of NULLs")
        types = signature(function, parameters, return_type)
        is_by_column = type == "arrow"
        if is_by_column and not types[0]:
            raise errors.ProgrammingError('a function of type "arrow" has at least one parameter, which tells it how many rows there are')
        called = by_column(function, name) if is_by_column else function
        manner = (is_by_column, null_handling == "special", not side_effects)
        self._session.register_function(name.lower(), called, types, manner)

    def remove_function(self, name: str) -> bool:
        """Takes back what `create_function` gave; whether there was a function of this name."""
        self._check()
        return self._session.unregister_function(name.lower())

    @contextlib.contextmanager
    def _registered(self, data: object) -> Iterator[str]:
        self._register_count += 1
        name = f"lstore_data_{self._register_count}"
        self.register(name, data)
        try:
            yield name
        finally:
            self.unregister(name)

    def sql(self, query: str, parameters: Parameters = None) -> Relation:
        """A query that runs when its rows are asked for. A name in FROM that is no table may be a variable of the caller with a
        frame of pandas or Polars or a table of PyArrow; a text in FROM is the path of a Parquet or CSV file.

        >>> import lstore
        >>> lstore.connect().sql("SELECT 1 AS one").fetchall()
        [(1,)]
        """
        self._check()
        query, paths = with_paths(query.strip().rstrip(";"))
        for name, path in paths.items():
            self.register(name, _file(path))
        self._register_variables(query, sys._getframe(1))
        return Relation(self, query, parameters)

    #: DuckDB's other name of `sql`.
    query = sql

    def from_arrow(self, data: object) -> Relation:
        """A table or frame of PyArrow, Polars or pandas as a relation. Its buffers are shared, until the connection is closed.

        >>> import lstore
        >>> import pyarrow
        >>> lstore.connect().from_arrow(pyarrow.table({"a": [1, 2, 3]})).filter("a > 1").fetchall()
        [(2,), (3,)]
        """
        self._register_count += 1
        name = f"lstore_data_{self._register_count}"
        self.register(name, data)
        return Relation(self, f"SELECT * FROM {name}")

    from_df = from_arrow

    def _register_variables(self, query: str, frame: Optional[FrameType]) -> None:
        wanted = {name for name in names_in(query) if not name.startswith("lstore_")}
        while wanted and frame is not None:
            for name in sorted(wanted):
                found = frame.f_locals.get(name, frame.f_globals.get(name))
                if found is not None and (hasattr(found, "__arrow_c_stream__") or hasattr(found, "__arrow_c_array__")):
                    self.register(name.lower(), found)
                    wanted.discard(name)
            frame = frame.f_back

    def table(self, name: str) -> Table:
        """A table, for reading and writing rows by their keys."""
        self._check()
        return Table(self, name)

    def at(self, moment: Union[int, str, datetime.datetime]) -> "Connection":
        """A connection that reads the database as it was: after a commit, by its number, or at a time.

        >>> import lstore
        >>> con = lstore.connect(autocommit=True)
        >>> _ = con.execute("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
        >>> before = con.newest_commit()
        >>> _ = con.execute("DELETE FROM t")
        >>> con.at(before).execute("SELECT a FROM t").fetchall()
        [(1,)]
        """
        self._check()
        shown = moment.isoformat(" ") if isinstance(moment, datetime.datetime) else str(moment)
        return self._again({"lstore__as_of": shown})

    def _again(self, settings: dict[str, object]) -> "Connection":
        """Another connection to the same database."""
        kept = {**self._settings, **settings}
        return Connection(self._database, autocommit=True, settings=kept, progress=self.progress)

    def newest_commit(self) -> int:
        """The number of the newest commit."""
        self._check()
        return newest_commit(self)

    def changes(self, table: str, since: int, until: Optional[int] = None) -> ArrowResults:
        """What the commits after `since`, up to `until` or the newest, did to a table, in order: as `lstore_changes` gives it."""
        return changes(self, table, since, until)

    def subscribe(self, table: str, since: Optional[int] = None, poll_s: float = 0.05) -> Iterator[ArrowResults]:
        """The changes of a table batch by batch, from those after the commit `since` on; waits for more, without end."""
        self._check()
        return subscribe(self, table, since, poll_s)

    async def aexecute(self, statement: str, parameters: Parameters = None) -> Cursor:
        """As `execute`, for programs with `asyncio`: the statement runs on a thread, which reads its rows into memory, and is
        cancelled with its task.
        """
        return await aexecute(self, statement, parameters)

    def explain(self, query: str, parameters: Parameters = None, analyze: bool = False) -> str:
        """The plan of a query as text."""
        return Relation(self, query.strip().rstrip(";"), parameters).explain(analyze)

    def _changed(self, statement: str, values: Any) -> int:
        """Runs a statement that changes rows, and gives their number."""
        at_once = self._at_once(statement, values)
        if isinstance(at_once, tuple):
            return at_once[0]
        answer = self._run(statement, values)
        return rows_of_tag(answer.tag() if isinstance(answer, NativeRows) else answer[0])

    def _check(self) -> None:
        if self.closed:
            raise errors.InterfaceError("the connection is closed")

    def _run(
        self, text: str, values: Optional[Any]
    ) -> Union[NativeRows, tuple[str, list[tuple[str, str, str]]]]:
        self._check()
        if self._progress is None:
            answer = self._session.execute(text, values, not self._autocommit)
        else:
            with self._progress.at(text):
                answer = self._session.execute(text, values, not self._autocommit)
        if not isinstance(answer, NativeRows):
            for severity, _, message in answer[1]:
                self.notices.append(f"{severity}: {message}")
                _log.info("%s: %s", severity, message)
            del self.notices[:-50]
        return answer

    def _run_many(self, text: str, rows: Iterable[Any], total: Optional[int]) -> int:
        self._check()
        with self._watched(text):
            if self._autocommit and self._session.status() == "idle":
                with self.transaction():
                    return self._session.execute_many(text, rows, total, False)
            return self._session.execute_many(text, rows, total, not self._autocommit)

    def _gives(self, rows: NativeRows) -> None:
        self._open_rows.add(rows)

    def _finish(self, statement: str) -> None:
        """Ends a transaction or a part of it; rows that are still to be read are read before."""
        for rows in list(self._open_rows):
            with contextlib.suppress(errors.Error):
                rows.read_all()
        self._open_rows = weakref.WeakSet()
        self._session.execute(statement, None, False)


def _arrow(data: Any) -> object:
    """An object with Arrow data in place of one that has none by itself."""
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    if isinstance(data, dict):
        return needed("pyarrow", "append() of a dictionary").table(data)
    return data


def _file(path: str) -> object:
    """The rows of a file."""
    if path.lower().endswith(".csv"):
        return needed("pyarrow.csv", "a CSV file in FROM").read_csv(path)
    return needed("pyarrow.parquet", "a Parquet file in FROM").read_table(path)


def _copy_format(path: Union[str, "os.PathLike[str]"], format: Optional[str]) -> str:
    chosen = format or ("parquet" if os.fspath(path).endswith(".parquet") else "csv")
    if chosen.lower() not in ("csv", "parquet"):
        raise errors.ProgrammingError(f"there is no format {chosen!r}: it is csv or parquet")
    return "(FORMAT parquet)" if chosen.lower() == "parquet" else "(FORMAT csv, HEADER true)"
