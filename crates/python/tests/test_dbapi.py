"""PEP 249, point by point."""

import datetime
import decimal
import uuid

import lstore
import pytest


def test_the_module_says_what_it_is():
    assert (lstore.apilevel, lstore.threadsafety, lstore.paramstyle) == ("2.0", 2, "qmark")


def test_exceptions_have_the_classes_of_the_standard():
    assert issubclass(lstore.InterfaceError, lstore.Error) and issubclass(lstore.DatabaseError, lstore.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        kind = getattr(lstore, f"{name}Error")
        assert issubclass(kind, lstore.DatabaseError)
        assert getattr(lstore.Connection, f"{name}Error") is kind


@pytest.mark.parametrize(
    ("statement", "kind", "sqlstate"),
    [
        ("SELECT 1 / 0", lstore.DivisionByZero, "22012"),
        ("SELECT 'x'::int", lstore.DataError, "22P02"),
        ("SELEC 1", lstore.SqlSyntaxError, "42601"),
        ("SELECT * FROM nothing", lstore.UndefinedTable, "42P01"),
        ("SELECT nothing FROM t", lstore.UndefinedColumn, "42703"),
        ("INSERT INTO t VALUES (1, 'again')", lstore.UniqueViolation, "23505"),
        ("INSERT INTO t VALUES (NULL, 'x')", lstore.NotNullViolation, "23502"),
        ("INSERT INTO t VALUES (3, 'no')", lstore.CheckViolation, "23514"),
        ("SELECT set_config('statement_timeout', '1ms', false), pg_sleep(1)", lstore.Error, None),
    ],
)
def test_errors_have_the_class_of_their_sqlstate(con, statement, kind, sqlstate):
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text CHECK (b <> 'no'))")
    con.execute("INSERT INTO t VALUES (1, 'one')")
    con.commit()
    if sqlstate is None:
        con.rollback()
        con.execute("SET statement_timeout = '20ms'")
        statement, kind, sqlstate = "SELECT pg_sleep(5)", lstore.QueryCanceled, "57014"
    with pytest.raises(kind) as raised:
        con.execute(statement).fetchall()
    assert raised.value.sqlstate == sqlstate
    assert type(raised.value) is kind


def test_an_error_tells_constraint_place_and_hint(con):
    con.execute("CREATE TABLE people (id int PRIMARY KEY, name text)")
    con.execute("INSERT INTO people VALUES (1, 'Ada')")
    con.commit()
    with pytest.raises(lstore.UniqueViolation) as raised:
        con.execute("INSERT INTO people VALUES (1, 'Eve')")
    assert (raised.value.table, raised.value.constraint) == ("people", "people_pkey")
    assert "Key (id)=(1) already exists." in str(raised.value)
    con.rollback()
    with pytest.raises(lstore.UndefinedColumn) as raised:
        con.execute("SELECT nmae FROM people")
    assert raised.value.position == 7 and "name" in raised.value.hint


def test_a_transaction_begins_by_itself_and_ends_by_commit_or_rollback(con):
    con.execute("CREATE TABLE t (a int)")
    assert con.in_transaction
    con.commit()
    con.execute("INSERT INTO t VALUES (1)")
    con.rollback()
    assert not con.in_transaction
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_failed_transaction_takes_nothing_but_its_end(con):
    with pytest.raises(lstore.Error):
        con.execute("SELECT 1 / 0").fetchall()
    with pytest.raises(lstore.InFailedSqlTransaction):
        con.execute("SELECT 1")
    con.rollback()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_with_autocommit_each_statement_stands_for_itself():
    con = lstore.connect(autocommit=True)
    con.begin()
    assert con.in_transaction
    con.rollback()
    con.execute("CREATE TABLE t (a int)")
    assert not con.in_transaction
    con.rollback()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    con.execute("BEGIN")
    assert con.in_transaction
    with pytest.raises(lstore.ProgrammingError):
        con.autocommit = False
    con.commit()
    con.autocommit = False
    con.execute("SELECT 1")
    assert con.in_transaction


def test_a_connection_as_context_commits_or_rolls_back_and_closes(tmp_path):
    place = tmp_path / "db"
    with lstore.connect(place) as con:
        con.execute("CREATE TABLE t (a int)")
    assert con.closed
    with pytest.raises(ZeroDivisionError), lstore.connect(place) as con:
        con.execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    with lstore.connect(place) as con:
        assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_cursors_describe_their_columns(con):
    cursor = con.execute("SELECT 1 AS a, 'x'::text AS b, 1.50::numeric(10,2) AS c, now() AS d, '\\x00'::bytea AS e")
    assert [column[0] for column in cursor.description] == ["a", "b", "c", "d", "e"]
    kinds = [lstore.NUMBER, lstore.STRING, lstore.NUMBER, lstore.DATETIME, lstore.BINARY]
    assert [column.type_code for column in cursor.description] == kinds
    assert cursor.description[2][4:6] == (10, 2)
    assert all(len(column) == 7 for column in cursor.description)
    assert con.execute("CREATE TABLE t (a int)").description is None


def test_rows_come_one_by_one_in_portions_and_all_at_once(con):
    cursor = con.execute("SELECT a FROM generate_series(1, 10) AS t(a) ORDER BY a")
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(3,), (4,)]
    assert cursor.fetchmany(3) == [(5,), (6,), (7,)]
    assert cursor.fetchall() == [(8,), (9,), (10,)]
    assert cursor.fetchone() is None and cursor.fetchall() == [] and cursor.fetchmany() == []
    assert [row for row in con.execute("SELECT a FROM generate_series(1, 3) AS t(a)")] == [(1,), (2,), (3,)]


def test_rowcount_tells_what_was_changed(con):
    cursor = con.cursor()
    assert cursor.rowcount == -1
    cursor.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    assert cursor.rowcount == -1
    assert cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").rowcount == 3
    assert cursor.execute("UPDATE t SET b = 0 WHERE a > 1").rowcount == 2
    assert cursor.execute("DELETE FROM t WHERE a = 9").rowcount == 0
    assert cursor.execute("INSERT INTO t VALUES (4, 4) RETURNING b").rowcount == 1
    assert cursor.fetchall() == [(4,)]


def test_fetching_without_rows_is_an_error(con):
    cursor = con.cursor()
    with pytest.raises(lstore.Error):
        cursor.fetchone()
    cursor.execute("CREATE TABLE t (a int)")
    with pytest.raises(lstore.Error):
        cursor.fetchall()


def test_parameters_are_question_marks_names_or_numbers(con):
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    con.execute("INSERT INTO t VALUES (?, ?)", (1, "one"))
    con.execute("INSERT INTO t VALUES ($1, $2)", [2, "two"])
    con.execute("INSERT INTO t VALUES (:a, :b)", {"a": 3, "b": "three"})
    assert con.execute("SELECT b FROM t WHERE a = ?", (2,)).fetchone() == ("two",)
    assert con.execute("SELECT :x || '?', ':y', \"b\" FROM t WHERE a = :a", {"x": "?", "a": 1}).fetchone() == (
        "??",
        ":y",
        "one",
    )
    assert con.execute("SELECT '?' || $$?$$ /* ? */ || ? -- ?", ("x",)).fetchone() == ("??x",)
    assert con.execute("SELECT b FROM t WHERE a = ANY(?) ORDER BY a", ([1, 3],)).fetchall() == [("one",), ("three",)]


def test_wrong_parameters_are_named(con):
    with pytest.raises(lstore.ProgrammingError, match="2 parameters, and 1 values"):
        con.execute("SELECT ?, ?", (1,))
    with pytest.raises(lstore.ProgrammingError, match=":b, and there is no value"):
        con.execute("SELECT :a, :b", {"a": 1})
    with pytest.raises(lstore.ProgrammingError, match=r"\(value,\)"):
        con.execute("SELECT ?", "x")
    with pytest.raises(TypeError, match="object"):
        con.execute("SELECT ?", (object(),))


def test_executemany_does_all_or_nothing(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
    cursor = con.cursor()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", ((number, str(number)) for number in range(1000)))
    assert cursor.rowcount == 1000
    with pytest.raises(lstore.UniqueViolation):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(2000, "x"), (5, "again")])
    assert con.execute("SELECT count(*), max(a) FROM t").fetchone() == (1000, 999)
    cursor.executemany("UPDATE t SET b = :b WHERE a = :a", [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    assert con.execute("SELECT b FROM t WHERE a IN (1, 2) ORDER BY a").fetchall() == [("x",), (None,)]
    assert cursor.executemany("DELETE FROM t", []).rowcount == 0


def test_several_statements_run_one_after_the_other(con):
    cursor = con.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT ';', count(*) FROM t;")
    assert cursor.fetchall() == [(";", 2)]


def test_rows_can_still_be_read_after_a_commit(con):
    cursor = con.execute("SELECT a FROM generate_series(1, 100000) AS t(a)")
    con.commit()
    assert len(cursor.fetchall()) == 100000
    cursor = con.execute("SELECT a FROM generate_series(1, 100000) AS t(a)")
    con.rollback()
    assert sum(row[0] for row in cursor) == 5000050000


def test_closed_things_say_so(con):
    cursor = con.cursor()
    cursor.close()
    with pytest.raises(lstore.InterfaceError, match="cursor is closed"):
        cursor.execute("SELECT 1")
    cursor = con.execute("SELECT 1")
    con.close()
    con.close()
    for use in (con.cursor, con.commit, con.rollback, lambda: con.execute("SELECT 1"), lambda: con.append("t", {})):
        with pytest.raises(lstore.InterfaceError, match="connection is closed"):
            use()
    with pytest.raises(lstore.InterfaceError, match="connection is closed"):
        cursor.execute("SELECT 1")


VALUES = [
    ("smallint", -32768),
    ("int", 2**31 - 1),
    ("bigint", -(2**63)),
    ("double precision", 1.5e300),
    ("real", 0.5),
    ("numeric(20,4)", decimal.Decimal("1234567890123456.7890")),
    ("text", "ä\n'?:x$1"),
    ("varchar(5)", "abcde"),
    ("bytea", b"\x00\xff'\\"),
    ("boolean", True),
    ("date", datetime.date(1, 1, 1)),
    ("date", datetime.date(9999, 12, 31)),
    ("timestamp", datetime.datetime(2026, 2, 28, 23, 59, 59, 999999)),
    ("timestamptz", datetime.datetime(1969, 7, 20, 20, 17, 40, 1, tzinfo=datetime.timezone.utc)),
    ("uuid", uuid.UUID(int=2**128 - 1)),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_of_each_type_come_back_as_they_went(con, kind, value):
    con.execute(f"CREATE TABLE t (a int PRIMARY KEY, b {kind})")
    con.execute("INSERT INTO t VALUES (1, ?), (2, NULL)", (value,))
    rows = con.execute("SELECT b FROM t ORDER BY a").fetchall()
    assert rows == [(value,), (None,)] and type(rows[0][0]) is type(value)
    assert con.execute("SELECT b FROM t WHERE a = 1").fetchone() == (value,)
    assert con.execute("SELECT a FROM t WHERE b = ?", (value,)).fetchall() == [(1,)]


def test_values_keep_their_own_type_where_the_place_has_none(con):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    values = (7, 2**40, 1.5, decimal.Decimal("1.10"), True, b"x", datetime.date(2026, 1, 2), moment, uuid.UUID(int=5))
    row = con.execute(f"SELECT {', '.join('?' * len(values))}", values).fetchone()
    assert row == values
    assert [type(value) for value in row] == [type(value) for value in values]


def test_time_spans_times_of_day_and_lists(con):
    span = datetime.timedelta(days=-3, seconds=5, microseconds=7)
    assert con.execute("SELECT ?::interval", (span,)).fetchone() == (span,)
    assert con.execute("SELECT timestamp '2026-01-10' + ?::interval", (span,)).fetchone() == (
        datetime.datetime(2026, 1, 10) + span,
    )
    day = datetime.date(2026, 1, 10)
    assert con.execute("SELECT ?, ?, DATE '2026-01-10' - ?", (span, datetime.time(1, 2, 3, 4), span)).fetchone() == (
        span,
        datetime.time(1, 2, 3, 4),
        datetime.datetime(2026, 1, 10) - span,
    )
    assert con.execute("SELECT ? - ?", (day, datetime.date(2026, 1, 1))).fetchone() == (9,)
    assert con.execute("SELECT ARRAY[1, NULL, 3]").fetchone() == ([1, None, 3],)
    assert con.execute("SELECT ?::text[]", (['a"b', "c,d", None],)).fetchone() == (['a"b', "c,d", None],)


def test_a_date_beyond_pythons_calendar_is_an_error_with_a_remedy(con):
    with pytest.raises(lstore.DataError, match="10000-01-01.*read it as text"):
        con.execute("SELECT DATE '9999-12-31' + 1 AS d").fetchall()
    con.rollback()
    assert con.execute("SELECT (DATE '9999-12-31' + 1)::text").fetchone() == ("10000-01-01",)


def test_constructors_of_the_standard():
    assert lstore.Date(2026, 1, 2) == datetime.date(2026, 1, 2)
    assert lstore.Timestamp(2026, 1, 2, 3, 4, 5) == datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert lstore.Binary(b"x") == b"x"
    assert isinstance(lstore.DateFromTicks(0), datetime.date)
