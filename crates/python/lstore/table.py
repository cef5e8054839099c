"""Rows by their keys, and tables of the past.

The calls run as prepared statements that name a row by its key, within the connection's transaction. Outside of one, `get` and `update`
of a row with one whole number as its key run no statement: the native half has its columns as words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from ._lstore import NativeTable
from .errors import ProgrammingError, UndefinedTable
from .results import ArrowResults, needed

if TYPE_CHECKING:
    import pyarrow

    from .connection import Connection

Key = Any


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class Table(NativeTable):
    """A table, by the keys of its rows. A key of several columns is a tuple.

    >>> import lstore
    >>> con = lstore.connect()
    >>> _ = con.execute("CREATE TABLE orders (id bigint PRIMARY KEY, state text, total numeric(8,2))")
    >>> orders = con.table("orders")
    >>> orders.insert(id=1, state="new", total=10)
    >>> orders.update(1, {"state": "paid"})
    True
    >>> orders.get(1)
    {'id': 1, 'state': 'paid', 'total': Decimal('10.00')}
    >>> orders.get(1, ["state"])
    {'state': 'paid'}
    >>> orders.upsert(id=1, state="sent", total=10)
    >>> orders.delete(1), orders.get(1)
    (True, None)
    """

    def __init__(self, connection: "Connection", name: str) -> None:
        self._connection = connection
        self.name = name
        self._quoted = quoted(name)
        rows = connection.execute(
            "SELECT a.attname, a.attnum FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " WHERE c.relname = ? AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            (name,),
        ).fetchall()
        if not rows:
            raise UndefinedTable(f'table "{name}" does not exist')
        keys = connection.execute(
            "SELECT i.indkey FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " WHERE c.relname = ? AND i.indisprimary",
            (name,),
        ).fetchone()
        numbers: list[int] = list(keys[0]) if keys else []
        names = {number: column for column, number in rows}
        self.columns: list[str] = [column for column, _ in rows]
        self._all = tuple(self.columns)
        self.key: list[str] = [names[number] for number in numbers]
        self._where = " AND ".join(f"{quoted(column)} = ${at}" for at, column in enumerate(self.key, 1))
        self._selects: dict[tuple[str, ...], str] = {}
        self._statements: dict[tuple[str, tuple[str, ...]], str] = {}

    def __repr__(self) -> str:
        return f"<lstore.Table {self.name} ({', '.join(self.columns)})>"

    def _of_key(self, key: Key) -> tuple[Any, ...]:
        if not self.key:
            raise ProgrammingError(f'table "{self.name}" has no primary key: use SQL')
        values = key if isinstance(key, tuple) else (key,)
        if len(values) != len(self.key):
            raise ProgrammingError(f'a key of table "{self.name}" is ({", ".join(self.key)}), and {key!r} was given')
        return values

    def _select(self, columns: tuple[str, ...]) -> str:
        statement = self._selects.get(columns)
        if statement is None:
            listed = ", ".join(map(quoted, columns))
            statement = f"SELECT {listed} FROM {self._quoted} WHERE {self._where}"
            self._selects[columns] = statement
        return statement

    def _get(self, key: Key, columns: Optional[Sequence[str]]) -> Optional[dict[str, Any]]:
        """Finds a row by a statement, for `get`."""
        values = key if type(key) is tuple else (key,)
        if len(values) != len(self.key) or not values:
            values = self._of_key(key)
        chosen = self._all if columns is None else tuple(columns)
        statement = self._selects.get(chosen) or self._select(chosen)
        connection = self._connection
        row = connection._session.row(statement, values, not connection._autocommit)
        if row is None:
            return None
        self._note_read(columns, chosen, statement)
        return dict(zip(chosen, row))

    def _write(self, kind: str, columns: tuple[str, ...], values: Sequence[Any]) -> int:
        statement = self._statements.get((kind, columns))
        if statement is None:
            statement = self._statement(kind, columns)
            self._statements[kind, columns] = statement
        return self._connection._changed(statement, values)

    def _statement(self, kind: str, columns: tuple[str, ...]) -> str:
        if kind == "delete":
            return f"DELETE FROM {self._quoted} WHERE {self._where}"
        if kind == "update":
            sets = ", ".join(f"{quoted(column)} = ${len(self.key) + at}" for at, column in enumerate(columns, 1))
            return f"UPDATE {self._quoted} SET {sets} WHERE {self._where}"
        marks = ", ".join(f"${at}" for at in range(1, len(columns) + 1))
        insert = f"INSERT INTO {self._quoted} ({', '.join(map(quoted, columns))}) VALUES ({marks})"
        if kind == "insert":
            return insert
        sets = ", ".join(f"{quoted(column)} = EXCLUDED.{quoted(column)}" for column in columns if column not in self.key)
        action = f"UPDATE SET {sets}" if sets else "NOTHING"
        return f"{insert} ON CONFLICT ({', '.join(map(quoted, self.key))}) DO {action}"

    def insert(self, row: Optional[Mapping[str, Any]] = None, /, **values: Any) -> None:
        """Inserts a row; columns that are left out get their defaults."""
        given = {**(row or {}), **values}
        self._write("insert", tuple(given), list(given.values()))

    def upsert(self, row: Optional[Mapping[str, Any]] = None, /, **values: Any) -> None:
        """Inserts a row, or updates the one that has its key."""
        given = {**(row or {}), **values}
        self._of_key(tuple(given.get(column) for column in self.key))
        self._write("upsert", tuple(given), list(given.values()))

    def _update(self, key: Key, changes: Mapping[str, Any]) -> bool:
        """Changes a row by a statement, for `update`."""
        if not changes:
            return self.get(key, self.key) is not None
        columns = tuple(changes)
        is_changed = self._write("update", columns, [*self._of_key(key), *changes.values()]) > 0
        if is_changed:
            self._note_change(columns, self._statements["update", columns])
        return is_changed

    def delete(self, key: Key) -> bool:
        """Deletes the row with a key; whether there was one."""
        return self._write("delete", (), self._of_key(key)) > 0

    def get_many(self, keys: Sequence[Key], columns: Optional[Sequence[str]] = None) -> "pyarrow.Table":
        """The rows with these keys, as a table of PyArrow, in the order of the keys; keys without a row are left out."""
        pyarrow = needed("pyarrow", "get_many()")
        chosen = list(self.columns if columns is None else columns)
        rows = [self._of_key(key) for key in keys]
        held = {name: [row[at] for row in rows] for at, name in enumerate(self.key)}
        wanted = pyarrow.table({"lstore place": list(range(len(rows))), **held})
        listed = ", ".join(f"t.{quoted(column)}" for column in chosen)
        matched = " AND ".join(f"t.{quoted(column)} = k.{quoted(column)}" for column in self.key)
        with self._connection._registered(wanted) as name:
            return self._connection.execute(
                f'SELECT {listed} FROM {name} AS k JOIN {self._quoted} AS t ON {matched} ORDER BY k."lstore place"'
            ).to_arrow_table()

    def update_many(self, data: Any) -> int:
        """Changes rows by the keys that stand in `data`: a table or frame with the columns of the key and those to set. Gives the
        number of rows that were changed.
        """
        connection = self._connection
        with connection._registered(data) as name:
            found = [column.name for column in connection.execute(f"SELECT * FROM {name} LIMIT 0").description or []]
            missing = [column for column in self.key if column not in found]
            if missing or not self.key:
                raise ProgrammingError(f'update_many() needs the key of table "{self.name}", and {missing} is missing')
            sets = ", ".join(f"{quoted(column)} = d.{quoted(column)}" for column in found if column not in self.key)
            matched = " AND ".join(f"t.{quoted(column)} = d.{quoted(column)}" for column in self.key)
            return connection.execute(f"UPDATE {self._quoted} AS t SET {sets} FROM {name} AS d WHERE {matched}").rowcount

    def history(self, key: Key) -> ArrowResults:
        """The versions of the row with a key, oldest first, as `lstore_history` gives them.

        >>> import lstore
        >>> con = lstore.connect(autocommit=True)
        >>> _ = con.execute("CREATE TABLE t (id int PRIMARY KEY, a text)")
        >>> con.table("t").insert(id=1, a="x")
        >>> con.table("t").update(1, {"a": "y"})
        True
        >>> [row[-1] for row in con.table("t").history(1).fetchall()][-2:]
        ['x', 'y']
        """
        values = self._of_key(key)
        marks = ", ".join(f"${at}" for at in range(2, len(values) + 2))
        return self._connection.execute(f"SELECT * FROM lstore_history($1, {marks})", [self.name, *values])


def newest_commit(connection: "Connection") -> int:
    """The number of the newest commit."""
    return connection._database.newest_commit()


def changes(connection: "Connection", table: str, since: int, until: Optional[int]) -> ArrowResults:
    """What the commits after `since`, up to `until`, did to a table."""
    last = newest_commit(connection) if until is None else until
    return connection.execute(f"SELECT * FROM lstore_changes(?, {int(since)}, {int(last)})", (table,))


def subscribe(connection: "Connection", table: str, since: Optional[int], poll_s: float) -> Iterator[ArrowResults]:
    """Gives the changes of a table batch by batch, and waits for more."""
    other = connection._again({"lstore__as_of": ""} if "lstore__as_of" in connection._settings else {})
    try:
        seen = newest_commit(connection) if since is None else since
        while True:
            newest = newest_commit(connection)
            if newest > seen:
                found = changes(other, table, seen, newest)
                seen = newest
                rows = found._rows()
                batch = rows.next_batch()
                while batch is not None:
                    yield _Batch(batch)
                    batch = rows.next_batch()
            else:
                time.sleep(poll_s)
    finally:
        other.close()


class _Batch(ArrowResults):
    """Some rows."""

    def __init__(self, rows: Any) -> None:
        self._native = rows

    def _rows(self) -> Any:
        return self._native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, *_ in self._native.columns()]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as tuples."""
        rows: list[tuple[Any, ...]] = self._native.fetch(None)
        return rows


Moment = Union[int, str, Any]
