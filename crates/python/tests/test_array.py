"""Arrays that are updated in place and read as of one instant."""

import multiprocessing

import lstore
import pytest

MECHANISMS = ["physical", "rewire", "fork"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_snapshot_stays_as_the_array_was(mechanism: str) -> None:
    array = lstore.SnapshotArray(10_000, "int64", mechanism)
    array[7] = 40
    before = array.snapshot()
    assert array.add(7, 2) == 40
    array.update([0, -1], [5, 6])
    after = array.snapshot()
    assert (before[7], array[7], after[7]) == (40, 42, 42)
    assert (before.sum(), after.sum(), after.sum(1, 8)) == (40, 53, 42)
    assert (after.min(), after.max(), after.max(0, 7), after.min(3, 3)) == (0, 42, 5, None)
    assert (len(array), len(before), array[-1]) == (10_000, 10_000, 6)


def test_physical_snapshots_stop_updates_by_protection_where_the_system_allows_it() -> None:
    with pytest.raises(ValueError, match="physical and protect"):
        lstore.SnapshotArray(10, "int64", "rewire", protected=True)
    try:
        array = lstore.SnapshotArray(1 << 20, "int64", "physical", huge_pages=True, protected=True)
    except lstore.Error as refused:
        assert "userfaultfd" in str(refused)
        return
    array[7] = 40
    before = array.snapshot()
    array[7] = 41
    assert (before[7], before.sum(), array[7]) == (40, 40, 41)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_numbers_of_each_type_are_given_as_arrow_data(dtype: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    array = lstore.SnapshotArray(3, dtype)
    array.update([0, 1, 2], [1, 2, 3])
    table = pyarrow.table(array.snapshot())
    assert table.column("value").to_pylist() == [1, 2, 3]
    assert str(table.schema.field("value").type) in (dtype, {"float32": "float", "float64": "double"}.get(dtype))


def test_rows_of_a_table_can_come_from_a_snapshot(con: lstore.Connection) -> None:
    array = lstore.SnapshotArray(4)
    array.update([0, 1, 2, 3], [9, 8, 7, 6])
    con.register("numbers", array.snapshot())
    assert con.execute("SELECT sum(value), count(*) FROM numbers").fetchone() == (30, 4)


def test_what_is_wrong_is_named() -> None:
    array = lstore.SnapshotArray(4)
    with pytest.raises(IndexError):
        array[4]
    with pytest.raises(IndexError):
        array[-5] = 1
    with pytest.raises(ValueError, match="2 values for 1 indexes"):
        array.update([0], [1, 2])
    with pytest.raises(ValueError, match="int32, int64, float32 or float64"):
        lstore.SnapshotArray(4, "text")
    with pytest.raises(ValueError, match="physical"):
        lstore.SnapshotArray(4, "int64", "magic")
    with pytest.raises(IndexError):
        array.snapshot().sum(0, 5)


def child(array: lstore.SnapshotArray) -> str:
    try:
        array[0] = 1
    except lstore.InterfaceError as error:
        return str(error)
    return "no error"


def test_a_forked_child_does_not_touch_the_array_of_its_parent() -> None:
    array = lstore.SnapshotArray(4)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    process = context.Process(target=lambda: sender.send(child(array)))
    process.start()
    told = receiver.recv()
    process.join()
    assert "spawn" in told and array[0] == 0
