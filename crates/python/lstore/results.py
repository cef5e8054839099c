"""Rows in the form that a program wants: tuples, Arrow, pandas, Polars, NumPy."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ContextManager, Optional

from ._lstore import NativeRows
from .errors import InterfaceError

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from .column import Column


def needed(module: str, what: str) -> Any:
    """A library that only some calls need."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InterfaceError(f"{what} needs the package {module}: install it with  pip install {module}") from error


class ArrowResults:
    """The ways in which rows leave as Arrow; they come from `_rows`, which a subclass has.

    Each call gives the rows that are left, and uses them up.
    """

    def _rows(self) -> NativeRows:
        raise NotImplementedError

    def _watched(self, label: str) -> ContextManager[object]:
        """Shows the progress of what takes long, where the connection does."""
        return nullcontext()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows by the Arrow PyCapsule interface: to any library that reads it, without a copy."""
        return self._rows().__arrow_c_stream__(requested_schema)

    def to_arrow_reader(self) -> "pyarrow.RecordBatchReader":
        """The rows as a reader of batches, which are computed as they are asked for."""
        pyarrow = needed("pyarrow", "to_arrow_reader()")
        return pyarrow.RecordBatchReader.from_stream(self._rows())

    def to_arrow_table(self) -> "pyarrow.Table":
        """The rows as a table of PyArrow."""
        pyarrow = needed("pyarrow", "to_arrow_table()")
        rows = self._rows()
        try:
            with self._watched("rows to Arrow"):
                return pyarrow.RecordBatchReader.from_stream(rows).read_all()
        except Exception:
            rows.check()
            raise

    def fetch_record_batch(self, rows_per_batch: int = 0) -> "pyarrow.RecordBatchReader":
        """Another name of `to_arrow_reader`. Batches are as large as they come, whatever `rows_per_batch` says."""
        return self.to_arrow_reader()

    def arrow(self) -> "pyarrow.Table":
        """Another name of `to_arrow_table`."""
        return self.to_arrow_table()

    fetch_arrow_table = arrow

    def df(self) -> "pandas.DataFrame":
        """The rows as a data frame of pandas."""
        needed("pandas", "df()")
        frame: "pandas.DataFrame" = self.to_arrow_table().to_pandas()
        return frame

    fetchdf = df
    to_df = df

    def pl(self) -> "polars.DataFrame":
        """The rows as a data frame of Polars."""
        library = needed("polars", "pl()")
        rows = self._rows()
        try:
            with self._watched("rows to Polars"):
                frame: "polars.DataFrame" = library.DataFrame(rows)
        except BaseException:
            rows.check()
            raise
        return frame

    def column(self, name: Optional[str] = None) -> "Column":
        """One column, by its name or the only one, for libraries of arrays: `numpy.asarray(rows.column("a"))`."""
        from .column import Column

        pyarrow = needed("pyarrow", "column()")
        table = self.to_arrow_table()
        if name is None and table.num_columns != 1:
            raise InterfaceError(f"there are {table.num_columns} columns, so column() needs the name of one")
        if name is not None and name not in table.column_names:
            raise InterfaceError(f'there is no column "{name}": there are {", ".join(table.column_names)}')
        found = table.column(0 if name is None else name)
        return Column(name or table.column_names[0], _one_array(pyarrow, found))

    def fetchnumpy(self) -> dict[str, "numpy.ndarray[Any, Any]"]:
        """A NumPy array for each column; columns with NULL are masked arrays."""
        numpy = needed("numpy", "fetchnumpy()")
        table = self.to_arrow_table()
        arrays: dict[str, Any] = {}
        for name, column in zip(table.column_names, table.columns):
            is_null = column.is_null().to_numpy()
            if is_null.any() and numpy.issubdtype(_numpy_type(numpy, column), numpy.number):
                filled = column.fill_null(0).to_numpy()
                arrays[name] = numpy.ma.MaskedArray(filled, mask=is_null)
            elif is_null.any():
                arrays[name] = numpy.ma.MaskedArray(column.to_numpy(), mask=is_null)
            else:
                arrays[name] = column.to_numpy()
        return arrays


def _one_array(pyarrow: Any, column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else pyarrow.concat_arrays(column.chunks or [pyarrow.array([], column.type)])


def _numpy_type(numpy: Any, column: Any) -> Any:
    try:
        return numpy.dtype(column.type.to_pandas_dtype())
    except NotImplementedError:
        return numpy.dtype(object)


def shown(names: list[str], rows: list[tuple[Any, ...]], more: bool, width_max: int = 40) -> str:
    """Rows as a table of text."""
    cells = [["NULL" if value is None else str(value) for value in row] for row in rows]
    cells = [[cell if len(cell) <= width_max else cell[: width_max - 1] + "…" for cell in row] for row in cells]
    widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(names)]
    lines = [" | ".join(name.ljust(width) for name, width in zip(names, widths)).rstrip()]
    lines.append("-+-".join("-" * width for width in widths))
    lines += [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    count = f"{len(rows)}{' or more' if more else ''} row{'' if len(rows) == 1 else 's'}"
    return "\n".join([*lines, f"({count})"])


def html(names: list[str], rows: list[tuple[Any, ...]], more: bool) -> str:
    """Rows as a table of HTML, for notebooks."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{'NULL' if value is None else escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    note = "<p>and more rows</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"
