"""Rows by their keys, and the past."""

import asyncio
import datetime
import itertools
import threading
import time

import lstore
import pyarrow as pa
import pytest


@pytest.fixture
def orders(con):
    con.autocommit = True
    con.execute("CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'new', total numeric(8,2))")
    return con.table("orders")


def test_rows_are_read_and_written_by_their_keys(con, orders):
    assert (orders.columns, orders.key) == (["id", "state", "total"], ["id"])
    orders.insert(id=1, total=5)
    orders.insert({"id": 2, "state": "paid"})
    assert orders.get(1, ["state", "id"]) == {"state": "new", "id": 1}
    assert orders.get(3) is None
    assert orders.update(1, {"state": "paid", "total": 6}) and not orders.update(3, {"state": "x"})
    assert orders.update(1, {}) and not orders.update(3, {})
    orders.upsert(id=2, state="sent")
    orders.upsert(id=3, state="new")
    assert con.execute("SELECT id, state FROM orders ORDER BY id").fetchall() == [(1, "paid"), (2, "sent"), (3, "new")]
    assert orders.delete(3) and not orders.delete(3)
    with pytest.raises(lstore.UniqueViolation):
        orders.insert(id=1)


def test_calls_by_key_belong_to_the_transaction(con, orders):
    orders.insert(id=1)
    with pytest.raises(KeyError), con.transaction():
        orders.update(1, {"state": "paid"})
        assert orders.get(1)["state"] == "paid"
        raise KeyError
    assert orders.get(1)["state"] == "new"
    con.autocommit = False
    orders.delete(1)
    con.rollback()
    assert orders.get(1) is not None


def test_keys_of_several_columns_are_tuples(con):
    con.execute('CREATE TABLE "Lines" ("Order" int, line int, what text, PRIMARY KEY (line, "Order"))')
    lines = con.table("Lines")
    assert lines.key == ["line", "Order"]
    lines.insert({"Order": 1, "line": 2, "what": "x"})
    assert lines.get((2, 1)) == {"Order": 1, "line": 2, "what": "x"} and lines.get((1, 2)) is None
    with pytest.raises(lstore.ProgrammingError, match="line, Order"):
        lines.get(1)


def test_tables_that_are_not_there_or_have_no_key_say_so(con):
    with pytest.raises(lstore.UndefinedTable, match="nothing"):
        con.table("nothing")
    con.execute("CREATE TABLE t (a int)")
    t = con.table("t")
    t.insert(a=1)
    with pytest.raises(lstore.ProgrammingError, match="no primary key"):
        t.get(1)


def test_many_rows_are_read_and_changed_at_once(con, orders):
    con.append("orders", pa.table({"id": range(1000), "total": [1] * 1000}))
    found = orders.get_many([7, 5, 5000, 6], ["id", "state"])
    assert found.to_pylist() == [{"id": number, "state": "new"} for number in (7, 5, 6)]
    assert orders.update_many(pa.table({"id": [1, 2, 5000], "state": ["x", "y", "z"]})) == 2
    assert con.execute("SELECT id, state FROM orders WHERE state <> 'new' ORDER BY id").fetchall() == [(1, "x"), (2, "y")]
    with pytest.raises(lstore.ProgrammingError, match="id"):
        orders.update_many(pa.table({"state": ["x"]}))


def test_the_past_is_read_by_commits_and_times(con, orders):
    orders.insert(id=1)
    first = con.newest_commit()
    while con.execute("SELECT valid_from_time FROM lstore_history('orders', 1)").fetchone() == (None,):
        time.sleep(0.005)
    between = datetime.datetime.now(datetime.timezone.utc)
    orders.update(1, {"state": "paid"})
    for moment in (first, between):
        with con.at(moment) as past:
            assert past.execute("SELECT state FROM orders").fetchall() == [("new",)]
            assert past.table("orders").get(1)["state"] == "new"
            with pytest.raises(lstore.Error):
                past.execute("INSERT INTO orders (id) VALUES (9)")
    assert orders.get(1)["state"] == "paid"
    assert orders.history(1).arrow().column("state").to_pylist() == ["new", "paid"]


def test_changes_tell_what_commits_did(con, orders):
    since = con.newest_commit()
    orders.insert(id=1)
    orders.update(1, {"state": "paid"})
    orders.delete(1)
    changes = con.changes("orders", since).arrow()
    assert changes.num_rows == 3
    assert changes.column("kind").to_pylist() == ["insert", "update", "delete"]
    assert changes.column("new_state").to_pylist() == ["new", "paid", None]


def test_subscribers_get_every_change_once(con, orders):
    feed = con.subscribe("orders", since=con.newest_commit(), poll_s=0.001)
    orders.insert(id=1)
    orders.insert(id=2)
    seen = list(itertools.chain.from_iterable(batch.fetchall() for batch in itertools.islice(feed, 1)))
    orders.delete(1)
    seen += next(feed).fetchall()
    assert len(seen) == 3
    feed.close()


def test_statements_run_beside_a_loop(con):
    async def work():
        turns = 0
        running = asyncio.ensure_future(con.aexecute("SELECT pg_sleep(0.2)"))
        while not running.done():
            turns += 1
            await asyncio.sleep(0.001)
        cursor = await con.aexecute("SELECT ?::int + 1", [1])
        return turns, cursor.fetchone()

    turns, row = asyncio.run(work())
    assert turns > 5 and row == (2,)


def test_a_task_that_is_cancelled_cancels_its_statement(con):
    async def work():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(con.aexecute("SELECT pg_sleep(60)"), timeout=0.2)

    asyncio.run(work())
    con.rollback()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_rows_by_key_are_what_sql_says_of_them_at_every_moment(con):
    """The short way of the second call on, in and out of transactions, and after the table is another."""
    con.autocommit = True
    kinds = {
        "b": "true", "c": "-7::smallint", "d": "2.5::real", "e": "0.1::float8", "f": "1.50::numeric(10,2)", "g": "'ä'", "h": "'x'::char(4)",
        "i": "'\\x00ff'::bytea", "j": "DATE '2026-01-02'", "k": "timestamptz '2026-01-02 03:04:05+00'", "l": "gen_random_uuid()",
        "m": "'{\"a\": 1}'::jsonb", "n": "interval '1 day'", "o": "NULL::text",
    }  # fmt: skip
    con.execute(f"CREATE TABLE wide AS SELECT 1::bigint AS id, {', '.join(f'{value} AS {name}' for name, value in kinds.items())}")
    con.execute("ALTER TABLE wide ADD PRIMARY KEY (id)")
    wide = con.table("wide")
    for columns in (None, ["id", "b", "c", "d", "e", "f", "g", "i", "o"], ["h"], ["h", "j"], ["m"]):
        listed = ", ".join(columns or wide.columns)
        row = con.execute(f"SELECT {listed} FROM wide").fetchone()
        for _ in range(3):
            found = wide.get(1, columns)
            assert tuple(found.values()) == row and [type(value) for value in found.values()] == [type(value) for value in row]
            assert wide.get(2, columns) is None
    with con.transaction():
        wide.update(1, {"g": "new"})
        assert wide.get(1, ["g"]) == {"g": "new"}
        with con._again({}) as other:
            assert other.table("wide").get(1, ["g"]) == {"g": "ä"}
    assert wide.get(1, ["g"]) == {"g": "new"}
    con.execute("SET lstore.as_of = '1'")
    with pytest.raises(lstore.Error):
        con.execute("INSERT INTO wide (id) VALUES (3)")
    con.execute("RESET lstore.as_of")
    assert wide.get("1", ["g"]) == {"g": "new"}
    con.execute("ALTER TABLE wide RENAME TO wider; CREATE TABLE wide (id bigint PRIMARY KEY, g text); INSERT INTO wide VALUES (1, 'other')")
    assert wide.get(1, ["g"]) == {"g": "other"}
    con.execute("DROP TABLE wide")
    with pytest.raises(lstore.UndefinedTable):
        wide.get(1, ["g"])
    con.close()
    with pytest.raises(lstore.InterfaceError, match="closed"):
        wide.get(1, ["g"])


def test_rows_at_once_are_what_a_statement_gives(con):
    """The first call runs the statement, and the later ones do not."""
    con.autocommit = True
    con.execute(
        "CREATE TABLE wide (id bigint PRIMARY KEY, a int, b smallint, c float8, d numeric(10, 2), e text, f bytea, g date, h jsonb, i bool)"
    )
    con.execute("INSERT INTO wide VALUES (1, 2, 3, 0.5, 1.25, 'ä', '\\x00', '2026-01-02', '[1]', true)")
    con.execute("INSERT INTO wide (id) VALUES (2)")
    for columns in ("*", "a, id, a AS again", "g", "h, e"):
        for key in (1, 2, 3):
            text = f"SELECT {columns} FROM wide WHERE id = ?"
            ways = {
                "all": lambda cursor: cursor.fetchall(),
                "one": lambda cursor: (cursor.fetchone(), cursor.fetchone()),
                "many": lambda cursor: (cursor.fetchmany(5), cursor.fetchmany(5)),
                "arrow": lambda cursor: cursor.to_arrow_table(),
                "each": lambda cursor: list(cursor),
                "seen": lambda cursor: (cursor._repr_html_(), cursor.fetchall()),
                "told": lambda cursor: (cursor.description, cursor.rowcount, cursor.statusmessage),
            }
            for name, way in ways.items():
                con.execute("SET search_path = public, pg_catalog")
                run = way(con.execute(text, (key,)))
                con.execute("RESET search_path")
                for _ in range(3):
                    assert way(con.execute(text, (key,))) == run, (name, text, key)
                    assert way(con.cursor().execute(text, [key])) == run, (name, text, key)


def test_changes_at_once_are_told_as_those_of_a_statement(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY, a int CHECK (a < 100))")
    told = []
    for number in range(3):
        for text, values in (
            ("INSERT INTO t VALUES (?, ?)", (number, number)),
            ("UPDATE t SET a = a + ? WHERE id = ?", (1, number)),
            ("UPDATE t SET a = 1 WHERE id = ?", (77,)),
            ("DELETE FROM t WHERE id = ?", (number,)),
        ):
            cursor = con.execute(text, values)
            told.append((cursor.rowcount, cursor.statusmessage, cursor.description))
    assert told == [(1, "INSERT 0 1", None), (1, "UPDATE 1", None), (0, "UPDATE 0", None), (1, "DELETE 1", None)] * 3
    con.execute("INSERT INTO t VALUES (1, 1)")
    for _ in range(2):
        with pytest.raises(lstore.UniqueViolation):
            con.execute("INSERT INTO t VALUES (?, ?)", (1, 1))
        with pytest.raises(lstore.CheckViolation):
            con.execute("UPDATE t SET a = a + ? WHERE id = ?", (500, 1))
    assert con.execute("SELECT * FROM t").fetchall() == [(1, 1)]


def test_values_that_a_column_does_not_take_are_refused_by_update(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY, s smallint, i int, b bigint, d float8, o boolean NOT NULL, n numeric(4, 2))")
    con.execute("INSERT INTO t VALUES (1, 0, 0, 0, 0, false, 0)")
    t = con.table("t")
    good = {"s": -32768, "i": 2**31 - 1, "b": -(2**63), "d": 2.5, "o": True, "n": 1}
    for column, value in good.items():
        for _ in range(3):
            assert t.update(1, {column: value}) is True and t.update(2, {column: value}) is False
            assert t.get(1, (column,)) == {column: value}
    for _ in range(3):
        assert t.update(1, {"i": 5, "b": None}) and t.update((1,), {"s": 1, "d": 3})
    for column, value in {"s": 32768, "i": 2**31, "b": 2**63, "o": None, "n": 100}.items():
        with pytest.raises(lstore.Error):
            t.update(1, {column: value})
    assert t.get(1) == {"id": 1, "s": 1, "i": 5, "b": None, "d": 3.0, "o": True, "n": 1}


def test_rules_that_come_later_hold_for_changes_at_once(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY, a int); INSERT INTO t VALUES (1, 1)")
    t = con.table("t")
    assert all(t.update(1, {"a": number}) for number in range(3))
    with con._again({}) as other:
        other.execute("ALTER TABLE t ADD CHECK (a < 10)")
    with pytest.raises(lstore.CheckViolation):
        t.update(1, {"a": 11})
    assert t.get(1, ("a",)) == t.get(1, ("a",)) == {"a": 2}
    with con._again({}) as other:
        other.execute("ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN a text")
    assert t.get(1, ("a",)) == {"a": None} and t.update(1, {"a": "x"})
    con.execute("ALTER TABLE t ADD COLUMN b int DEFAULT 1")
    assert all(t.update(1, {"b": number}) and t.get(1, ("b",)) == {"b": number} for number in range(3))
    with con._again({}) as other:
        other.execute("ALTER TABLE t RENAME TO former")
        with pytest.raises(lstore.UndefinedTable):
            t.get(1, ("b",))
        other.execute("CREATE TABLE t (id bigint PRIMARY KEY, a text, b int); INSERT INTO t VALUES (1, 'new', 7)")
    assert t.get(1, ("b",)) == {"b": 7} and t.update(1, {"b": 8}) and t.get(1, ("b",)) == {"b": 8}
    assert con.execute("SELECT b FROM former").fetchall() == [(2,)]
    with con._again({}) as other:
        other.execute("TRUNCATE t")
        assert not t.update(1, {"b": 9}) and t.get(1, ("b",)) is None
        other.execute("DROP TABLE t")
        with pytest.raises(lstore.UndefinedTable):
            t.update(1, {"b": 9})
        other.execute("CREATE TABLE t (id bigint PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)")
    assert t.update(1, {"b": 9}) and t.get(1, ("b",)) == {"b": 9}
    con.execute("SET default_transaction_read_only = on")
    with pytest.raises(lstore.Error, match="read-only"):
        t.update(1, {"a": "y"})


def test_a_change_of_a_row_that_another_thread_holds_waits_without_the_interpreter(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (id bigint PRIMARY KEY, a int); INSERT INTO t VALUES (1, 1)")
    t = con.table("t")
    assert all(t.update(1, {"a": number}) for number in range(3))
    holds, other = threading.Event(), con._again({})

    def hold():
        with other.transaction():
            other.execute("UPDATE t SET a = a + 10 WHERE id = 1")
            holds.set()
            time.sleep(0.2)

    for change in (lambda: t.update(1, {"a": 5}), lambda: con.execute("UPDATE t SET a = a + ? WHERE id = ?", (1, 1))):
        holds.clear()
        thread = threading.Thread(target=hold)
        thread.start()
        holds.wait()
        change()
        thread.join()
    assert t.get(1, ["a"]) == {"a": 16}
    other.close()
