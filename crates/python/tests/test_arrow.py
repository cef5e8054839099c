"""Results as Arrow, pandas, Polars and NumPy, and rows that come from there."""

import datetime
import decimal
import uuid

import hypothesis.strategies as st
import lstore
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

QUERY = """
SELECT a, a::smallint AS small, a::int AS middle, a / 2.0::double precision AS double, a::real AS real,
       (a * 1.25)::numeric(10, 2) AS exact, 'text ' || a AS text, a % 2 = 0 AS flag, DATE '2026-01-01' + a::int AS day,
       timestamp '2026-01-01 00:00:00.000001' AS moment, timestamptz '2026-01-01 00:00:00+00' AS instant,
       '\\x00ff'::bytea AS bytes, CASE WHEN a % 3 = 0 THEN NULL ELSE a END AS gap
FROM generate_series(1, 5000) AS t(a) ORDER BY a
"""


def test_a_table_of_pyarrow_has_the_rows(con):
    rows = con.execute(QUERY).fetchall()
    table = con.execute(QUERY).to_arrow_table()
    table.validate(full=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert table.schema.field("exact").type == pa.decimal128(10, 2)
    assert table.schema.field("instant").type == pa.timestamp("us", "UTC")
    assert con.execute(QUERY).arrow() == table


def test_a_reader_gives_batches_as_they_are_asked_for(con):
    reader = con.execute("SELECT a FROM generate_series(1, 100000000) AS t(a)").fetch_record_batch()
    assert reader.schema.names == ["a"]
    batch = reader.read_next_batch()
    assert 0 < batch.num_rows < 10_000_000
    reader.close()


def test_rows_that_were_fetched_do_not_come_again(con):
    cursor = con.execute("SELECT a FROM generate_series(1, 10) AS t(a)")
    assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
    assert cursor.arrow().column("a").to_pylist() == [4, 5, 6, 7, 8, 9, 10]
    assert cursor.fetchall() == []


def test_rows_that_are_left_keep_their_nulls(con):
    query = """SELECT CASE WHEN a % 3 = 0 THEN NULL ELSE a END AS n, CASE WHEN a % 5 > 1 THEN 'text ' || a END AS t,
                      CASE WHEN a % 2 = 0 THEN a % 4 = 0 END AS b FROM generate_series(1, 99) AS t(a) ORDER BY a"""
    rows = con.execute(query).fetchall()
    for fetched in (1, 5, 8, 67):
        cursor = con.execute(query)
        assert cursor.fetchmany(fetched) == rows[:fetched]
        table = cursor.arrow()
        table.validate(full=True)
        assert [tuple(row.values()) for row in table.to_pylist()] == rows[fetched:]


def test_frames_of_pandas_and_polars_have_the_rows(con):
    frame = con.execute(QUERY).df()
    assert list(frame["middle"]) == list(range(1, 5001)) and frame["text"][9] == "text 10"
    assert frame["gap"].isna().sum() == 1666
    polars = con.execute(QUERY).pl()
    assert polars["gap"].null_count() == 1666 and polars["exact"][3] == decimal.Decimal("5.00")
    assert polars["instant"].dtype == pl.Datetime("us", "UTC")


def test_numpy_has_an_array_for_each_column(con):
    arrays = con.execute(QUERY).fetchnumpy()
    assert arrays["a"].dtype == np.int32 and arrays["double"].dtype == np.float64 and arrays["a"].sum() == 12502500
    assert arrays["gap"].mask.sum() == 1666 and arrays["gap"].sum() == sum(a for a in range(1, 5001) if a % 3)
    assert arrays["text"][0] == "text 1"


def test_any_reader_of_the_capsule_interface_takes_a_result(con):
    assert pl.DataFrame(con.execute("SELECT 1 AS a")).rows() == [(1,)]
    assert pa.table(con.sql("SELECT 1 AS a, 'x' AS b")).to_pylist() == [{"a": 1, "b": "x"}]
    rows = con.execute("SELECT 1 AS a")._rows()
    assert pa.schema(rows).names == ["a"]


def test_a_capsule_may_go_unread_and_a_result_may_go_first(con):
    cursor = con.execute("SELECT a, 'text' FROM generate_series(1, 100000) AS t(a)")
    capsule = cursor.__arrow_c_stream__()
    del cursor
    del capsule
    table = con.execute("SELECT 'a longer text than a view holds' AS a FROM generate_series(1, 10)").arrow()
    con.close()
    assert table.column("a")[9].as_py() == "a longer text than a view holds"


def test_an_error_while_reading_arrow_is_an_error_of_the_reader(con):
    reader = con.execute("SELECT 1 / (a - 50000) AS a FROM generate_series(1, 100000) AS t(a)").to_arrow_reader()
    with pytest.raises(Exception, match="division by zero"):
        reader.read_all()
    con.rollback()
    for way in ("arrow", "df", "pl"):
        with pytest.raises(lstore.DivisionByZero):
            getattr(con.execute("SELECT 1 / (a - 50000) AS a FROM generate_series(1, 100000) AS t(a)"), way)()
        con.rollback()


def frames():
    days = [datetime.date(2026, 1, 1), None, datetime.date(1969, 12, 31)]
    columns = {"id": [1, 2, 3], "name": ["a", None, "a text that is longer than twelve bytes"], "day": days}
    table = pa.table({**columns, "x": [0.5, float("nan"), None]})
    return [
        table,
        table.to_batches()[0],
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        pl.DataFrame(table),
        pd.DataFrame({**columns, "x": [0.5, float("nan"), None]}).astype({"id": "int32"}),
    ]


@pytest.mark.parametrize("which", range(5))
def test_append_takes_any_frame(con, which):
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, day date, x double precision, d int DEFAULT 7)")
    assert con.append("t", frames()[which]) == 3
    rows = con.execute("SELECT id, name, day, d FROM t ORDER BY id").fetchall()
    assert rows == [
        (1, "a", datetime.date(2026, 1, 1), 7),
        (2, None, None, 7),
        (3, "a text that is longer than twelve bytes", datetime.date(1969, 12, 31), 7),
    ]
    con.rollback()


def test_append_takes_slices_dictionaries_and_results(con):
    con.execute("CREATE TABLE t (id int PRIMARY KEY, name text, flag boolean)")
    names = pa.array(["x", "y", None, "x"]).dictionary_encode()
    table = pa.table({"id": pa.array([1, 2, 3, 4], pa.uint8()), "name": names, "flag": [True, False, None, True]})
    assert con.append("t", table.slice(1, 3)) == 3
    assert con.append("t", con.sql("SELECT id + 10 AS id, name, flag FROM t")) == 3
    assert con.append("t", {"id": [99], "name": ["z"], "flag": [True]}) == 1
    assert con.execute("SELECT * FROM t ORDER BY id").fetchall() == [
        (2, "y", False),
        (3, None, None),
        (4, "x", True),
        (12, "y", False),
        (13, None, None),
        (14, "x", True),
        (99, "z", True),
    ]


def test_an_error_of_append_names_row_column_and_both_types(con):
    con.execute("CREATE TABLE t (id int PRIMARY KEY, small smallint, note text)")
    con.commit()
    with pytest.raises(lstore.DataError, match="smallint") as raised:
        con.append("t", pa.table({"id": [1, 2, 3], "small": [1, None, 70000]}))
    assert "Row 2" in raised.value.detail and '"small"' in raised.value.detail and "70000" in raised.value.detail
    con.rollback()
    with pytest.raises(lstore.ProgrammingError) as raised:
        con.append("t", pa.table({"id": ["x"], "small": [1]}))
    assert 'column "id" is text in the data and integer in the table' in str(raised.value)
    con.rollback()
    with pytest.raises(lstore.UndefinedColumn, match="smal"):
        con.append("t", pa.table({"id": [1], "smal": [1]}))
    con.rollback()
    with pytest.raises(lstore.UniqueViolation):
        con.append("t", pa.table({"id": [1, 1]}))
    con.rollback()
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        con.append("t", 7)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_appended_rows_belong_to_the_transaction(con):
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    con.commit()
    con.append("t", pa.table({"id": range(100_000)}))
    assert con.execute("SELECT count(*), sum(id) FROM t").fetchone() == (100_000, 4_999_950_000)
    con.rollback()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_registered_frames_are_read_by_queries(con):
    con.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
    con.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    con.register("frame", pd.DataFrame({"id": [1, 2, 2], "amount": [0.5, 1.5, 2.0]}))
    assert con.execute("SELECT name, sum(amount) FROM frame JOIN t USING (id) GROUP BY name ORDER BY name").fetchall() == [
        ("one", 0.5),
        ("two", 3.5),
    ]
    con.register("frame", pl.DataFrame({"text": ["x", None], "small": pl.Series([1, 2], dtype=pl.Int8)}))
    assert con.execute("SELECT upper(text), small + 1 FROM frame").fetchall() == [("X", 2), (None, 3)]
    con.execute("INSERT INTO t SELECT small + 10, text FROM frame")
    assert con.unregister("frame") and not con.unregister("frame")
    with pytest.raises(lstore.UndefinedTable):
        con.execute("SELECT * FROM frame")


def test_a_table_hides_what_is_registered(con):
    con.register("t", pa.table({"a": [1]}))
    con.commit()
    con.execute("CREATE TABLE t (a int)")
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_variables_and_files_stand_for_tables_in_sql(con, tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3]})
    assert con.sql("SELECT sum(a) AS s FROM frame").fetchone() == (6,)
    other = pa.table({"a": [2], "b": ["x"]})
    assert con.sql("SELECT b FROM frame JOIN other USING (a)").fetchall() == [("x",)]
    con.sql("SELECT * FROM frame").create("kept")
    assert con.copy_to("kept", tmp_path / "a.parquet") == 3
    assert con.copy_to("SELECT a + 1 AS a FROM kept", tmp_path / "a.csv") == 3
    assert con.sql(f"SELECT sum(a) FROM '{tmp_path}/a.parquet'").fetchone() == (6,)
    assert con.sql(f"SELECT sum(a) FROM '{tmp_path}/a.csv'").fetchone() == (9,)
    assert con.copy_from("kept", tmp_path / "a.csv") == 3
    assert con.execute("SELECT count(*) FROM kept").fetchone() == (6,)
    del frame, other


def test_relations_are_put_together_and_run_when_asked(con):
    numbers = con.sql("SELECT a, a % 3 AS rest FROM generate_series(1, ?) AS t(a)", [9])
    assert numbers.columns == ["a", "rest"]
    assert numbers.filter("a > 6").order("a DESC").limit(2).fetchall() == [(9, 0), (8, 2)]
    assert numbers.aggregate("rest, count(*) AS n").order("rest").fetchall() == [(0, 3), (1, 3), (2, 3)]
    assert numbers.aggregate("sum(a)").fetchall() == [(45,)]
    names = con.sql("SELECT 0 AS rest, 'zero' AS name UNION ALL SELECT 1, 'one'")
    joined = numbers.join(names, "rest", how="left").order("a").project("a, name").limit(3)
    assert joined.fetchall() == [(1, "one"), (2, None), (3, "zero")]
    assert numbers.alias("x").join(names.alias("y"), "x.rest = y.rest").aggregate("count(*)").fetchone() == (6,)
    assert numbers.union(con.sql("SELECT 1, 2")).aggregate("count(*) AS n").fetchone() == (10,)
    assert numbers.project("rest").distinct().aggregate("count(*)").fetchone() == (3,)
    assert "Sort" in numbers.order("a DESC").explain() or "sort" in numbers.order("a DESC").explain()
    with pytest.raises(lstore.ProgrammingError, match="inner, left"):
        numbers.join(names, "rest", how="outside")


def test_relations_show_themselves(con, capsys):
    relation = con.sql("SELECT a, NULL AS b, '<x>' AS c FROM generate_series(1, 30) AS t(a) ORDER BY a")
    relation.show(2)
    assert capsys.readouterr().out.splitlines() == [
        "a | b    | c",
        "--+------+----",
        "1 | NULL | <x>",
        "2 | NULL | <x>",
        "(2 or more rows)",
    ]
    assert "(20 or more rows)" in repr(relation)
    assert "<td>&lt;x&gt;</td>" in relation._repr_html_() and "and more rows" in relation._repr_html_()


SCALARS = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double precision": st.floats(allow_nan=False),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=40),
    "bytea": st.binary(max_size=40),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(
        min_value=datetime.datetime(2, 1, 1),
        max_value=datetime.datetime(9998, 1, 1),
        timezones=st.just(datetime.timezone.utc),
    ),
    "uuid": st.uuids(),
    "numeric(30,6)": st.decimals(min_value=-(10**20), max_value=10**20, places=6),
}


@pytest.mark.parametrize("kind", SCALARS)
def test_values_come_back_by_every_way(kind):
    con = lstore.connect(autocommit=True)
    con.execute(f"CREATE TABLE t (a int PRIMARY KEY, b {kind})")

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.none() | SCALARS[kind], min_size=1, max_size=8))
    def check(values):
        con.execute("DELETE FROM t")
        con.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values)))
        assert [row[0] for row in con.execute("SELECT b FROM t ORDER BY a")] == values
        table = con.execute("SELECT a, b FROM t ORDER BY a").arrow()
        through_arrow = [uuid.UUID(value) if kind == "uuid" and value else value for value in table.column("b").to_pylist()]
        assert through_arrow == values
        con.execute("DELETE FROM t")
        con.append("t", table)
        assert [row[0] for row in con.execute("SELECT b FROM t ORDER BY a")] == values
        assert con.table("t").get(0) == {"a": 0, "b": values[0]}

    check()


def test_json_is_an_object_in_rows_and_a_text_in_arrow():
    with lstore.connect() as con:
        con.execute("CREATE TABLE docs (id INT PRIMARY KEY, j JSON, b JSONB)")
        con.execute("INSERT INTO docs VALUES (1, ?, ?)", ['{"a": [1, 2.5, null]}', '{"b": {"c": true}}'])
        con.execute("INSERT INTO docs (id) VALUES (2)")
        assert con.execute("SELECT j, b, b -> 'b' FROM docs ORDER BY id").fetchall() == [
            ({"a": [1, 2.5, None]}, {"b": {"c": True}}, {"c": True}),
            (None, None, None),
        ]
        table = con.execute("SELECT j, b FROM docs ORDER BY id").arrow()
        assert table.to_pydict() == {"j": ['{"a": [1, 2.5, null]}', None], "b": ['{"b": {"c": true}}', None]}


def test_columns_that_are_arrays_are_lists():
    rows = [(1, [1, None, 3], ["a", "b,c"], [uuid.UUID(int=7)]), (2, [], None, [None])]
    with lstore.connect() as con:
        con.execute("CREATE TABLE lists (id INT PRIMARY KEY, n INT[], t TEXT[], u UUID[])")
        for id, numbers, texts, keys in rows:
            con.execute("INSERT INTO lists VALUES (?, ?, ?, ?)", [id, numbers, texts, keys])
        answer = con.execute("SELECT * FROM lists ORDER BY id")
        assert answer.fetchall() == rows
        table = con.execute("SELECT id, n, t FROM lists ORDER BY id").arrow()
        assert table.to_pydict() == {"id": [1, 2], "n": [[1, None, 3], []], "t": [["a", "b,c"], None]}
        con.execute("DELETE FROM lists")
        con.append("lists", table.append_column("u", pa.nulls(2)))
        assert con.execute("SELECT n, t FROM lists ORDER BY id").fetchall() == [row[1:3] for row in rows]
