"""One column of a result, for libraries of arrays.

>>> import lstore
>>> import numpy
>>> column = lstore.connect().execute("SELECT a, a * a AS b FROM generate_series(1, 4) AS t(a)").column("b")
>>> numpy.asarray(column).tolist(), numpy.from_dlpack(column).max().item(), len(column)
([1, 4, 9, 16], 16, 4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .results import needed

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray


class Column:
    """The values of a column. Libraries read them by `__array__`, DLPack (`__dlpack__`) and the Arrow PyCapsule interface; without a
    copy where the values are numbers without NULL.
    """

    def __init__(self, name: str, array: "pyarrow.Array[Any]") -> None:
        self.name = name
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"<lstore.Column {self.name} of {len(self)} {self._array.type}>"

    def to_arrow(self) -> "pyarrow.Array[Any]":
        """The values as an array of PyArrow."""
        return self._array

    def to_pylist(self) -> list[Any]:
        """The values as objects of Python."""
        values: list[Any] = self._array.to_pylist()
        return values

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "NDArray[Any]":
        """The values for NumPy. NULL among integers makes them floats, as in pandas; with `copy=False` it is an error."""
        numpy = needed("numpy", "__array__")
        try:
            values = self._array.to_numpy(zero_copy_only=copy is False)
        except ValueError as error:
            raise ValueError(f'column "{self.name}" can\'t be read without a copy: {error}') from error
        if copy:
            values = values.copy()
        array: "NDArray[Any]" = values if dtype is None else numpy.asarray(values, dtype=dtype)
        return array

    def __dlpack__(self, **wanted: Any) -> object:
        """The values by DLPack, never by a copy: numbers without NULL."""
        if self._array.null_count:
            raise BufferError(f'column "{self.name}" has NULLs, which DLPack can\'t pass on: use numpy.asarray()')
        if not self._is_number():
            raise BufferError(f'column "{self.name}" is {self._array.type}: DLPack passes on numbers alone')
        # Only the versioned form of a capsule can say that the values are not to be written to.
        is_versioned = wanted.get("max_version") is not None
        capsule: object = (
            self.__array__(copy=False).__dlpack__(**wanted)
            if is_versioned
            else self._array.__dlpack__(stream=wanted.get("stream"))
        )
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the processor."""
        return (1, 0)

    def _is_number(self) -> bool:
        types = needed("pyarrow", "__dlpack__").types
        return bool(types.is_integer(self._array.type) or types.is_floating(self._array.type))

    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> Any:
        """The values by the Arrow PyCapsule interface."""
        return self._array.__arrow_c_array__(requested_schema)
