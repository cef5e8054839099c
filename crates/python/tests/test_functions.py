"""Functions of Python in SQL: by row and by Arrow, their types, NULLs, errors, and what they may not do."""

import datetime
import decimal
import os
import signal
import threading
import time
import uuid
from typing import Optional

import lstore
import pyarrow as pa
import pyarrow.compute as pc
import pytest


@pytest.fixture
def con():
    with lstore.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three')")
        yield connection


def shout(text: str, times: int) -> str:
    return text.upper() + "!" * times


def test_a_function_is_called_for_each_row_with_the_types_of_its_annotations(con):
    con.create_function("shout", shout)
    assert con.execute("SELECT shout(b, a) FROM t ORDER BY a").fetchall() == [("ONE!",), (None,), ("THREE!!!",)]
    assert con.execute("SELECT a FROM t WHERE shout(b, 0) = 'ONE'").fetchall() == [(1,)]
    assert con.execute("SELECT SHOUT(?, ?)", ("x", 2)).fetchone() == ("X!!",)
    con.execute("UPDATE t SET b = shout(b, 1) WHERE a = 3")
    assert con.table("t").get(3)["b"] == "THREE!"
    assert con.remove_function("shout") and not con.remove_function("shout")
    with pytest.raises(lstore.ProgrammingError, match="does not exist"):
        con.execute("SELECT shout('x', 1)")


def test_a_function_of_arrow_is_called_for_many_rows_at_once(con):
    calls = []

    def joined(texts, numbers):
        calls.append(len(texts))
        return pc.binary_join_element_wise(texts, pc.cast(numbers, pa.string()), "-")

    con.create_function("joined", joined, ["text", int], str, type="arrow")
    assert con.execute("SELECT joined(b, a) FROM t ORDER BY a").fetchall() == [("one-1",), (None,), ("three-3",)]
    total = con.execute("SELECT count(joined('x', a)) FROM generate_series(1, 50000) AS g(a)").fetchone()
    assert total == (50000,) and sum(calls) >= 50000 and len(calls) < 100
    con.create_function("seven", lambda numbers: pa.scalar(7), [int], int, type="arrow")
    assert con.execute("SELECT seven(a) FROM t").fetchall() == [(7,)] * 3
    con.create_function("few", lambda numbers: [1], [int], int, type="arrow")
    with pytest.raises(lstore.ProgrammingError, match="1 values.* for 3 rows"):
        con.execute("SELECT few(a) FROM t").fetchall()
    with pytest.raises(lstore.ProgrammingError, match="at least one parameter"):
        con.create_function("none", lambda: [1], [], int, type="arrow")


VALUES = [
    ("boolean", True),
    ("smallint", -3),
    ("int", 2**31 - 1),
    ("bigint", 2**62),
    ("real", 0.5),
    ("double precision", 2.25),
    ("numeric(10,2)", decimal.Decimal("1.25")),
    ("text", "ä"),
    ("varchar(5)", "abc"),
    ("bytea", b"\0a"),
    ("date", datetime.date(2026, 1, 2)),
    ("time", datetime.time(1, 2, 3)),
    ("timestamp", datetime.datetime(2026, 1, 2, 3, 4)),
    ("timestamptz", datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)),
    ("interval", datetime.timedelta(days=1, seconds=3)),
    ("uuid", uuid.UUID(int=7)),
    ("jsonb", {"a": [1, None]}),
    ("json", {"a": [1, None]}),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_of_each_type_go_through_functions_of_both_types(con, kind, value):
    seen = []

    def same(found):
        seen.append(found)
        return found

    con.create_function("same", same, [kind], kind)
    con.create_function("same_array", lambda array: array, [kind], kind, type="arrow")
    con.execute(f"CREATE TABLE v (a {kind})")
    given = '{"a": [1, null]}' if kind.startswith("json") else value
    con.execute("INSERT INTO v VALUES (?), (NULL)", (given,))
    assert con.execute("SELECT same(a), same_array(a) FROM v").fetchall() == [(value, value), (None, None)]
    assert seen == [value] and type(seen[0]) is type(value)


def test_nulls_are_seen_by_functions_that_ask_for_them(con):
    def or_nothing(text: Optional[str]) -> str:
        return "nothing" if text is None else text

    con.create_function("or_nothing", or_nothing, null_handling="special")
    assert con.execute("SELECT or_nothing(b) FROM t ORDER BY a").fetchall() == [("one",), ("nothing",), ("three",)]
    con.create_function("no", lambda number: None, [int], int)
    assert con.execute("SELECT no(1)").fetchone() == (None,)


def test_a_function_with_side_effects_is_called_for_each_row(con):
    calls = []
    con.create_function("next", lambda: len(calls) if calls.append(1) is None else 0, [], int, side_effects=True)
    assert sorted(con.execute("SELECT next() FROM t").fetchall()) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("way", ["fetchall", "arrow", "df", "pl"])
def test_an_exception_ends_the_statement_and_is_the_cause_of_its_error(con, way):
    def fails(number: int) -> int:
        raise KeyError(f"no {number}")

    con.create_function("fails", fails)
    with pytest.raises(lstore.FunctionFailed, match="KeyError: 'no 2'") as raised:
        getattr(con.execute("SELECT fails(a) FROM t WHERE a = 2"), way)()
    assert raised.value.sqlstate == "38000" and isinstance(raised.value.__cause__, KeyError)
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_results_of_another_type_are_errors(con):
    con.create_function("wrong", lambda number: "x", [int], int)
    with pytest.raises(lstore.DataError, match='invalid input syntax for type bigint: "x"'):
        con.execute("SELECT wrong(1)").fetchall()
    con.create_function("wrong", lambda number: 1.5, [int], int)
    with pytest.raises(lstore.ProgrammingError, match="gave double precision.* return bigint"):
        con.execute("SELECT wrong(1)").fetchall()
    con.create_function("wrong", lambda number: object(), [int], int)
    with pytest.raises(lstore.FunctionFailed, match="object"):
        con.execute("SELECT wrong(1)").fetchall()


def test_calls_and_definitions_that_do_not_fit_say_so(con):
    con.create_function("shout", shout)
    with pytest.raises(lstore.ProgrammingError, match=r"function shout\(.*\) does not exist"):
        con.execute("SELECT shout(1, 2)")
    with pytest.raises(lstore.ProgrammingError, match="parameter number has no type"):
        con.create_function("f", lambda number: 1, return_type=int)
    with pytest.raises(lstore.ProgrammingError, match="result has no type"):
        con.create_function("f", lambda number: 1, [int])
    with pytest.raises(lstore.Error):
        con.create_function("f", lambda number: 1, ["no_such_type"], int)
    con.create_function("total", lambda numbers: sum(numbers), ["int[]"], int)
    assert con.execute("SELECT total(ARRAY[1, 2, 4])").fetchone() == (7,)
    with pytest.raises(lstore.ProgrammingError, match="native, arrow"):
        con.create_function("f", shout, type="numpy")
    with pytest.raises(lstore.Error) as raised:
        con.create_function("upper", shout)
    assert raised.value.sqlstate == "42723"
    with pytest.raises(lstore.ProgrammingError, match="does not exist"):
        con.execute("CREATE TABLE u (a text DEFAULT shout('x', 1))")


def test_a_function_can_not_use_the_package(con):
    errors = []

    def query(number: int) -> int:
        for use in (lambda: con.execute("SELECT 1"), cursor.fetchall, lstore.connect):
            try:
                use()
            except lstore.InterfaceError as error:
                errors.append(str(error))
        return number

    cursor = con.execute("SELECT 1")
    con.create_function("query", query)
    assert con.execute("SELECT query(7)").fetchone() == (7,)
    assert len(errors) >= 3 and all("can't use lstore" in error for error in errors)


def test_functions_belong_to_their_connection_and_threads_call_them_at_once():
    def doubled(number: int) -> int:
        return number * 2

    results = []

    def work():
        with lstore.connect() as own:
            own.create_function("doubled", doubled)
            results.append(own.execute("SELECT sum(doubled(a)) FROM generate_series(1, 5000) AS t(a)").fetchone()[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [25_005_000] * 4


def test_ctrl_c_ends_a_statement_between_calls_of_its_function(con):
    calls = []

    def slow(number: int) -> int:
        calls.append(number)
        time.sleep(0.001)
        return number

    con.create_function("slow", slow, side_effects=True)
    thread = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        con.execute("SELECT sum(slow(a)) FROM generate_series(1, 1000000) AS t(a)").fetchall()
    thread.join()
    assert 0 < len(calls) < 100_000
    assert con.execute("SELECT 1").fetchone() == (1,)
