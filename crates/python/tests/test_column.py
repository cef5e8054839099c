"""One column of a result: NumPy, DLPack and Arrow, without copies where that can be."""

import lstore
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

QUERY = """SELECT a, a * 0.5::double precision AS half, a % 2 = 0 AS even, 'text ' || a AS text,
                  CASE WHEN a % 3 <> 0 THEN a END AS gap FROM generate_series(1, 9) AS t(a) ORDER BY a"""


@pytest.fixture
def rows(con):
    return con.sql(QUERY)


def test_a_column_is_an_array_of_numpy(rows):
    column = rows.column("a")
    assert len(column) == 9 and np.asarray(column).tolist() == list(range(1, 10))
    assert np.asarray(column, dtype="float64").dtype == np.float64
    assert np.asarray(rows.column("text"))[8] == "text 9" and np.asarray(rows.column("even")).sum() == 4
    gap = np.asarray(rows.column("gap"))
    assert np.isnan(gap).sum() == 3 and np.nansum(gap) == 27
    with pytest.raises(ValueError, match='column "gap" can\'t be read without a copy'):
        np.array(rows.column("gap"), copy=False)


def test_numbers_are_shared_and_not_copied(rows):
    column = rows.column("half")
    address = column.to_arrow().buffers()[1].address
    assert np.array(column, copy=False).ctypes.data == address
    shared = np.from_dlpack(column)
    assert shared.ctypes.data == address and shared[3] == 2.0
    assert np.array(column).ctypes.data != address


def test_dlpack_says_what_it_can_not_pass_on(rows):
    assert rows.column("a").__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match='"gap" has NULLs'):
        np.from_dlpack(rows.column("gap"))
    with pytest.raises(BufferError, match='"text" is'):
        np.from_dlpack(rows.column("text"))


def test_libraries_of_arrow_take_a_column(rows):
    assert pa.array(rows.column("gap")).null_count == 3
    assert pl.Series(rows.column("half")).sum() == 22.5
    assert rows.column("gap").to_pylist()[:3] == [1, 2, None]


def test_the_column_is_named_or_the_only_one(con, rows):
    assert con.execute("SELECT 1 AS one").column().name == "one"
    assert len(con.execute("SELECT 1 AS one WHERE false").column()) == 0
    with pytest.raises(lstore.InterfaceError, match="5 columns"):
        rows.column()
    with pytest.raises(lstore.InterfaceError, match="there are a, half"):
        rows.column("b")


def test_a_column_of_many_batches_is_one_array(con):
    column = con.sql("SELECT a FROM generate_series(1, 200000) AS t(a)").column("a")
    assert np.asarray(column).sum() == 20000100000
