"""Blocks of transactions, isolation, and running again after a conflict."""

import threading

import lstore
import pytest


@pytest.fixture
def place(tmp_path):
    with lstore.connect(tmp_path / "db") as con:
        con.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint)")
        con.execute("INSERT INTO accounts VALUES (1, 100), (2, 100)")
    return tmp_path / "db"


def test_a_block_commits_and_a_block_that_raises_rolls_back(con):
    with con.transaction():
        con.execute("CREATE TABLE t (a int)")
    assert not con.in_transaction
    with pytest.raises(KeyError), con.transaction():
        con.execute("INSERT INTO t VALUES (1)")
        raise KeyError
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_block_within_a_block_is_a_savepoint(con):
    con.execute("CREATE TABLE t (a int)")
    con.commit()
    with con.transaction():
        con.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(lstore.DivisionByZero), con.transaction():
            con.execute("INSERT INTO t VALUES (2)")
            con.execute("SELECT 1 / 0").fetchall()
        with con.transaction():
            con.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(lstore.ProgrammingError, match="leave the block"):
            con.commit()
    assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("read committed", "read committed"), ("snapshot", "repeatable read"), ("serializable", "serializable")],
)
def test_a_block_has_the_isolation_that_was_asked_for(con, asked, shown):
    with con.transaction(isolation=asked, read_only=True):
        assert con.execute("SHOW transaction_isolation").fetchone() == (shown,)
        with pytest.raises(lstore.Error) as raised, con.transaction():
            con.execute("CREATE TABLE t (a int)")
        assert raised.value.sqlstate == "25006"


@pytest.mark.parametrize(("asked", "shown"), [("sync", "on"), ("async", "off"), ("partition", "partition")])
def test_a_block_commits_in_the_way_that_was_asked_for(con, asked, shown):
    with con.transaction(commit=asked):
        assert con.execute("SHOW synchronous_commit").fetchone() == (shown,)
    assert con.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_words_that_are_none_are_refused(con):
    with pytest.raises(lstore.ProgrammingError, match="read committed, repeatable read"), con.transaction(isolation="x"):
        pass
    with pytest.raises(lstore.ProgrammingError, match="sync, async, partition"), con.transaction(commit="x"):
        pass
    assert not con.in_transaction


def test_work_runs_again_after_a_conflict(place):
    """Threads that move money and meet at the same rows lose none of it."""
    conflicts = []

    def move(con):
        before = con.execute("SELECT balance FROM accounts WHERE id = 1").fetchone()[0]
        try:
            con.execute("UPDATE accounts SET balance = ? WHERE id = 1", (before - 1,))
        except lstore.SerializationFailure:
            conflicts.append(1)
            raise
        con.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 2")

    def mover():
        with lstore.connect(place) as con:
            for _ in range(10):
                con.run(move, isolation="snapshot", commit="async", attempts=1000)

    threads = [threading.Thread(target=mover) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with lstore.connect(place) as con:
        assert con.execute("SELECT balance FROM accounts ORDER BY id").fetchall() == [(60,), (140,)]


def test_work_that_fails_for_another_reason_runs_once(con):
    calls = []

    def work(con):
        calls.append(1)
        con.execute("SELECT 1 / 0").fetchall()

    with pytest.raises(lstore.DivisionByZero):
        con.run(work)
    assert len(calls) == 1 and not con.in_transaction


def test_a_conflict_that_stays_is_raised_in_the_end(place):
    with lstore.connect(place) as first, lstore.connect(place) as second:
        first.execute("UPDATE accounts SET balance = 0 WHERE id = 1")
        with pytest.raises(lstore.SerializationFailure):
            second.run(
                lambda con: con.execute("UPDATE accounts SET balance = 1 WHERE id = 1"), isolation="snapshot", attempts=3
            )
        first.rollback()


def test_settings_of_a_connection_hold_and_survive_a_rollback():
    with lstore.connect(statement_timeout="1min", default_transaction_isolation="serializable") as con:
        assert con.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
        con.rollback()
        assert con.execute("SHOW statement_timeout").fetchone() == ("1min",)
    with pytest.raises(lstore.Error):
        lstore.connect(no_such_setting="1")
