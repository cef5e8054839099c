"""Queries that are put together step by step, and run when their rows are asked for.

>>> import lstore
>>> con = lstore.connect()
>>> numbers = con.sql("SELECT a, a % 3 AS rest FROM generate_series(1, 9) AS t(a)")
>>> numbers.filter("a > 3").aggregate("rest, sum(a) AS total").order("rest").fetchall()
[(0, 15), (1, 11), (2, 13)]
>>> numbers.order("a DESC").limit(2).project("a").show()
a
-
9
8
(2 rows)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ContextManager, Optional, Union

from ._lstore import NativeRows
from .cursor import Cursor, Parameters
from .errors import ProgrammingError
from .results import ArrowResults, html, shown

if TYPE_CHECKING:
    from .connection import Connection

#: Rows that a relation shows.
_SHOWN_MAX = 20

_AGGREGATE = re.compile(r"\b[A-Za-z_]\w*\s*\(")


def _items(text: str) -> list[str]:
    """The items of a list, divided by the commas outside of brackets and quotes.

    >>> _items("a, sum(b, c), 'x,y'")
    ['a', 'sum(b, c)', "'x,y'"]
    """
    items, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            items.append(text[start:at].strip())
            start = at + 1
    return [*items, text[start:].strip()]


class Relation(ArrowResults):
    """A query that has not run. Each call gives a new relation; the rows are asked for by `fetchall`, `df`, `pl`, `arrow` and
    their like, each of which runs it.
    """

    def __init__(self, connection: "Connection", query: str, parameters: Parameters = None) -> None:
        self._connection = connection
        self._query = query
        self._parameters = parameters
        self._alias = "relation"

    @property
    def query(self) -> str:
        """The query in SQL."""
        return self._query

    def _over(self, query: str) -> "Relation":
        return Relation(self._connection, query, self._parameters)

    def _source(self) -> str:
        return f"({self._query}) AS {self._alias}"

    def alias(self, name: str) -> "Relation":
        """The relation under a name, which conditions of joins use."""
        named = self._over(self._query)
        named._alias = '"' + name.replace('"', '""') + '"'
        return named

    def filter(self, condition: str) -> "Relation":
        """The rows that meet a condition."""
        return self._over(f"SELECT * FROM {self._source()} WHERE {condition}")

    def project(self, columns: str) -> "Relation":
        """These columns or expressions."""
        return self._over(f"SELECT {columns} FROM {self._source()}")

    select = project

    def aggregate(self, columns: str, group_by: Optional[str] = None) -> "Relation":
        """Aggregates of groups: those that `group_by` names, or else the items without a call of a function."""
        if group_by is None:
            plain = [re.split(r"\s+AS\s+", item, flags=re.IGNORECASE)[0] for item in _items(columns)]
            group_by = ", ".join(item for item in plain if not _AGGREGATE.search(item))
        tail = f" GROUP BY {group_by}" if group_by else ""
        return self._over(f"SELECT {columns} FROM {self._source()}{tail}")

    def join(self, other: "Relation", on: str, how: str = "inner") -> "Relation":
        """Joined with another relation: `on` is the name of columns that both have (`id`, or `id, day`), or a condition over their
        aliases. `how` is `inner`, `left`, `right`, `full` or `cross`.
        """
        if how not in ("inner", "left", "right", "full", "cross"):
            raise ProgrammingError(f"there is no join {how!r}: it is inner, left, right, full or cross")
        if self._alias == other._alias:
            other = other.alias("other")
        is_names = all(re.fullmatch(r"\w+", item) for item in _items(on))
        condition = "" if how == "cross" else f" USING ({on})" if is_names else f" ON {on}"
        parameters = _together(self._parameters, other._parameters)
        query = f"SELECT * FROM {self._source()} {how.upper()} JOIN {other._source()}{condition}"
        return Relation(self._connection, query, parameters)

    def order(self, by: str) -> "Relation":
        """The rows in an order, such as `a DESC, b`."""
        return self._over(f"SELECT * FROM {self._source()} ORDER BY {by}")

    sort = order

    def limit(self, count: int, offset: int = 0) -> "Relation":
        """So many rows, after leaving out some."""
        tail = f" OFFSET {int(offset)}" if offset else ""
        return self._over(f"SELECT * FROM {self._source()} LIMIT {int(count)}{tail}")

    def distinct(self) -> "Relation":
        """Each row once."""
        return self._over(f"SELECT DISTINCT * FROM {self._source()}")

    def union(self, other: "Relation") -> "Relation":
        """The rows of both."""
        parameters = _together(self._parameters, other._parameters)
        return Relation(self._connection, f"({self._query}) UNION ALL ({other._query})", parameters)

    def execute(self) -> Cursor:
        """Runs the query."""
        return self._connection.execute(self._query, self._parameters)

    def _rows(self) -> NativeRows:
        return self.execute()._rows()

    def _watched(self, label: str) -> ContextManager[object]:
        progress = self._connection._progress
        return nullcontext() if progress is None else progress.at(self._query)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return self.execute().fetchall()

    def fetchone(self) -> Optional[tuple[Any, ...]]:
        """The first row."""
        return self.execute().fetchone()

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The first rows."""
        return self.execute().fetchmany(size)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.limit(0).execute().description or []]

    def create(self, table: str) -> None:
        """Makes a table of the rows."""
        name = table.replace('"', '""')
        self._connection.execute(f'CREATE TABLE "{name}" AS {self._query}', self._parameters)

    def explain(self, analyze: bool = False) -> str:
        """The plan as text."""
        word = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
        return "\n".join(str(row[0]) for row in self._connection.execute(f"{word} {self._query}", self._parameters))

    def _shown(self, count: int) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        cursor = self.execute()
        names = [column.name for column in cursor.description or []]
        rows = cursor.fetchmany(count + 1)
        cursor.close()
        return names, rows[:count], len(rows) > count

    def show(self, count: int = _SHOWN_MAX) -> None:
        """Prints the first rows."""
        print(shown(*self._shown(count)))

    def __repr__(self) -> str:
        return shown(*self._shown(_SHOWN_MAX))

    def _repr_html_(self) -> str:
        return html(*self._shown(_SHOWN_MAX))


def _together(first: Parameters, second: Parameters) -> Parameters:
    if not first or not second:
        return first or second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {**first, **second}
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        return [*first, *second]
    raise ProgrammingError("relations with parameters by name and by place can't be put together")


_NAMES = re.compile(r"\b(?:FROM|JOIN)\s+([A-Za-z_]\w*)(?!\s*[\w.(])|\b(?:FROM|JOIN)\s+([A-Za-z_]\w*)", re.IGNORECASE)
_PATHS = re.compile(r"\b(FROM|JOIN)\s+'([^']+\.(?:parquet|csv))'", re.IGNORECASE)


def names_in(query: str) -> list[str]:
    """The names behind FROM and JOIN.

    >>> names_in("SELECT * FROM frame f JOIN other USING (a)")
    ['frame', 'other']
    """
    return [first or second for first, second in _NAMES.findall(query)]


def with_paths(query: str) -> tuple[str, dict[str, str]]:
    """The query with names in place of the paths of files, and the paths by these names.

    >>> with_paths("SELECT * FROM 'a.csv'")
    ('SELECT * FROM "lstore_file_1"', {'lstore_file_1': 'a.csv'})
    """
    paths: dict[str, str] = {}

    def named(match: "re.Match[str]") -> str:
        name = f"lstore_file_{len(paths) + 1}"
        paths[name] = match[2]
        return f'{match[1]} "{name}"'

    return _PATHS.sub(named, query), paths


Source = Union[str, object]
