"""The backend of Ibis over a database in the process."""

import datetime

import lstore
import pandas as pd
import pyarrow as pa
import pytest

ibis = pytest.importorskip("ibis")

import lstore.ibis  # noqa: E402

_ = ibis._


@pytest.fixture
def backend():
    backend = lstore.ibis.Backend()
    backend.do_connect()
    yield backend
    backend.disconnect()


@pytest.fixture
def people(backend):
    rows = {"id": [1, 2, 3, 4], "city": ["Rome", "Oslo", "Rome", None], "size": [0.5, 1.5, 2.5, None]}
    days = [datetime.date(2026, month, 1) for month in (1, 2, 3, 4)]
    return backend.create_table("people", pa.table({**rows, "day": days}))


def test_the_backend_is_found_by_its_name(tmp_path):
    con = ibis.lstore.connect(tmp_path / "db")
    con.create_table("t", {"a": [1, 2]})
    con.disconnect()
    again = ibis.lstore.connect(str(tmp_path / "db"))
    assert again.table("t").a.sum().execute() == 3 and again.version == lstore.__version__
    again.disconnect()


def test_expressions_are_run_and_give_pandas_and_arrow(backend, people):
    assert people.schema() == ibis.schema({"id": "int64", "city": "string", "size": "float64", "day": "date"})
    frame = people.group_by("city").agg(n=_.count(), total=_.size.sum()).order_by(_.city.asc(nulls_first=False)).execute()
    assert frame["n"].tolist() == [1, 2, 1] and frame["total"].tolist()[:2] == [1.5, 3.0] and pd.isna(frame["city"][2])
    found = people.mutate(double=_.size * 2, name=_.city.upper(), month=_.day.month()).filter(_.double > 2).order_by("id")
    assert found.select("id", "name", "month").to_pyarrow().to_pylist() == [
        {"id": 2, "name": "OSLO", "month": 2},
        {"id": 3, "name": "ROME", "month": 3},
    ]
    assert people.city.nunique().execute() == 2 and people.size.mean().execute() == 1.5
    ranked = people.mutate(rank=ibis.row_number().over(order_by=_.id.desc())).order_by("id").limit(1)
    assert ranked.to_pyarrow()["rank"].to_pylist() == [3]
    assert [len(batch) for batch in people.to_pyarrow_batches()] == [4]


def test_rows_in_memory_and_queries_are_joined(backend, people):
    weights = ibis.memtable(pd.DataFrame({"city": ["Rome", "Oslo"], "weight": [10, 20]}))
    joined = people.join(weights, "city").select("id", "weight").order_by("id")
    assert joined.to_pyarrow().to_pydict() == {"id": [1, 2, 3], "weight": [10, 20, 10]}
    assert backend.sql("SELECT count(*) AS n FROM people").n.sum().execute() == 4


def test_functions_of_python_are_called(people):
    @ibis.udf.scalar.python
    def plus_one(number: int) -> int:
        return number + 1

    @ibis.udf.scalar.pyarrow
    def twice(number: int) -> int:
        import pyarrow.compute

        return pyarrow.compute.multiply(number, 2)

    found = people.select(one=plus_one(people.id), two=twice(people.id)).order_by("one").to_pyarrow()
    assert found.to_pydict() == {"one": [2, 3, 4, 5], "two": [2, 4, 6, 8]}


def test_tables_views_and_schemas_come_and_go(backend, people, tmp_path):
    backend.insert("people", pa.table({"id": [9], "city": ["Bern"], "size": [1.0], "day": [datetime.date(2026, 5, 1)]}))
    assert people.count().execute() == 5
    view = backend.create_view("few", people.filter(_.id < 3))
    assert view.count().execute() == 2 and sorted(backend.list_tables()) == ["few", "people"]
    backend.drop_view("few")
    backend.create_database("other")
    backend.create_table("t", schema={"a": "int64", "b": "!string"}, database="other")
    assert backend.list_tables(database="other") == ["t"] and "other" in backend.list_databases()
    backend.create_table("people", {"id": [1]}, overwrite=True)
    assert backend.table("people").columns == ("id",)
    backend.drop_table("people")
    backend.drop_table("people", force=True)
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        backend.table("people")
    path = tmp_path / "a.parquet"
    backend.con.copy_to("SELECT 7 AS a", path)
    assert backend.read_parquet(str(path)).a.max().execute() == 7
