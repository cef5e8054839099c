"""Functions of Python that SQL calls: `Connection.create_function`."""

from __future__ import annotations

import datetime
import decimal
import inspect
import typing
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

from .errors import ProgrammingError
from .results import needed

#: The types of SQL that annotations stand for.
_TYPES: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    str: "text",
    bytes: "bytea",
    datetime.date: "date",
    datetime.datetime: "timestamp",
    datetime.time: "time",
    datetime.timedelta: "interval",
    decimal.Decimal: "numeric",
    uuid.UUID: "uuid",
    dict: "jsonb",
    list: "jsonb",
}

#: A type by its name in SQL, or a class of Python that stands for one.
Type = Union[str, type]


def type_name(kind: Any, what: str) -> str:
    """The name of a type in SQL.

    >>> type_name("numeric(10,2)", "the result"), type_name(int, "the result"), type_name(Optional[str], "the result")
    ('numeric(10,2)', 'bigint', 'text')
    """
    if isinstance(kind, str):
        return kind
    kinds = [part for part in typing.get_args(kind) if part is not type(None)]
    if typing.get_origin(kind) not in (dict, list) and len(kinds) == 1:
        kind = kinds[0]
    name = _TYPES.get(typing.get_origin(kind) or kind)
    if name is None:
        raise ProgrammingError(f"{what} has no type in SQL: give it by name, such as 'bigint', or annotate the function")
    return name


def signature(
    function: Callable[..., Any], parameters: Optional[Sequence[Type]], return_type: Optional[Type]
) -> tuple[list[str], str]:
    """The types that a function takes and gives, where they are not given those of its annotations.

    >>> def half(a: int) -> float: ...
    >>> signature(half, None, None)
    (['bigint'], 'double precision')
    """
    hints: dict[str, Any] = {}
    if parameters is None or return_type is None:
        try:
            hints = typing.get_type_hints(function)
        except Exception:  # what has no annotations, or some that can't be looked up
            hints = {}
    if parameters is None:
        names = inspect.signature(function).parameters
        taken = [type_name(hints.get(name), f"parameter {name}") for name in names]
    else:
        taken = [type_name(kind, f"parameter {at}") for at, kind in enumerate(parameters, 1)]
    return taken, type_name(hints.get("return") if return_type is None else return_type, "the result")


def by_column(function: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    """A function of arrays of PyArrow as one of batches."""
    pyarrow = needed("pyarrow", 'a function of type "arrow"')

    def call(batch: Any) -> Any:
        table = pyarrow.RecordBatchReader.from_stream(batch).read_all()
        result = function(*(_plain(pyarrow, column) for column in table.columns))
        if isinstance(result, pyarrow.ChunkedArray):
            result = result.combine_chunks()
        if isinstance(result, pyarrow.Scalar):
            result = pyarrow.array([result.as_py()] * table.num_rows, result.type)
        if not isinstance(result, pyarrow.Array):
            result = pyarrow.array(result)
        return pyarrow.RecordBatch.from_arrays([result], [name])

    return call


def _plain(pyarrow: Any, column: Any) -> Any:
    """A column as one array, of a type that the library computes with."""
    types = pyarrow.types
    if types.is_string_view(column.type):
        column = column.cast(pyarrow.string())
    elif types.is_binary_view(column.type):
        column = column.cast(pyarrow.binary())
    return pyarrow.concat_arrays(column.chunks)
