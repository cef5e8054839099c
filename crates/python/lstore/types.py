"""PEP 249's constructors and type objects.

>>> import lstore
>>> cursor = lstore.connect().execute("SELECT 1 AS n, 'a' AS t, DATE '2026-01-02' AS d")
>>> [column.name for column in cursor.description]
['n', 't', 'd']
>>> [column.type_code == lstore.NUMBER for column in cursor.description]
[True, False, False]
>>> cursor.description[2].type_code == lstore.DATETIME
True
"""

from __future__ import annotations

import datetime
import time as _time
from typing import NamedTuple, Optional

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a number of seconds since 1970."""
    return Date(*_time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a number of seconds since 1970."""
    return Time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a number of seconds since 1970."""
    return Timestamp(*_time.localtime(ticks)[:6])


class TypeObject:
    """A family of SQL types, which is equal to the name of each of them."""

    def __init__(self, name: str, types: frozenset[str]) -> None:
        self.name = name
        self.types = types

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        return isinstance(other, str) and other in self.types

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"lstore.{self.name}"


STRING = TypeObject("STRING", frozenset({"text", "character varying", "character", "name", "uuid", "unknown"}))
BINARY = TypeObject("BINARY", frozenset({"bytea"}))
NUMBER = TypeObject(
    "NUMBER", frozenset({"smallint", "integer", "bigint", "real", "double precision", "numeric", "boolean", "oid"})
)
DATETIME = TypeObject(
    "DATETIME",
    frozenset(
        {"date", "time without time zone", "timestamp without time zone", "timestamp with time zone", "interval"}
    ),
)
ROWID = TypeObject("ROWID", frozenset())


class ColumnDescription(NamedTuple):
    """A column of a result, in PEP 249's order; `type_code` is SQL's name of the type."""

    name: str
    type_code: str
    display_size: Optional[int]
    internal_size: Optional[int]
    precision: Optional[int]
    scale: Optional[int]
    null_ok: Optional[bool]
