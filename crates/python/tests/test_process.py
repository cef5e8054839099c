"""Threads, signals, forks and second processes: clear errors, and nothing that hangs or ends the process."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import lstore
import pytest

ENDLESS = "SELECT count(*) FROM generate_series(1, 10000000) AS a(x), generate_series(1, 10000000) AS b(y) WHERE x + y < 0"


def interrupt_soon(after_s=0.3):
    def send():
        time.sleep(after_s)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("statement", [ENDLESS, "SELECT pg_sleep(60)"])
def test_ctrl_c_ends_a_statement(con, statement):
    thread = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        con.execute(statement).fetchall()
    thread.join()
    con.rollback()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_ctrl_c_ends_the_wait_for_a_row(tmp_path):
    with lstore.connect(tmp_path / "db") as first, lstore.connect(tmp_path / "db") as second:
        first.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
        first.execute("INSERT INTO t VALUES (1, 1)")
        first.commit()
        first.execute("UPDATE t SET b = 2 WHERE a = 1")
        thread = interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            second.execute("UPDATE t SET b = 3 WHERE a = 1")
        thread.join()
        second.rollback()


def test_ctrl_c_ends_statements_after_other_handlers_came_and_went(con):
    before = signal.signal(signal.SIGINT, lambda *_: None)
    con.execute("SELECT 1")
    signal.signal(signal.SIGINT, before)
    thread = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        con.execute(ENDLESS).fetchall()
    thread.join()


def test_ctrl_c_ends_reading_as_arrow(con):
    pytest.importorskip("pyarrow")
    cursor = con.execute("SELECT x, y FROM generate_series(1, 100000000) AS a(x), generate_series(1, 9) AS b(y) WHERE x % 1000003 = 7")
    thread = interrupt_soon()
    # The interpreter may run the handler in a callback of its own before the error arrives; then only that is left.
    with pytest.raises((KeyboardInterrupt, lstore.QueryCanceled)):
        cursor.to_arrow_table()
    thread.join()


def test_cancel_stops_a_statement_of_another_thread(con):
    errors = []

    def run():
        try:
            con.execute(ENDLESS).fetchall()
        except lstore.Error as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        con.cancel()
        time.sleep(0.01)
    assert [type(error) for error in errors] == [lstore.QueryCanceled]


def test_other_threads_run_while_a_statement_does(con):
    done = threading.Event()
    thread = threading.Thread(target=lambda: (con.execute("SELECT pg_sleep(0.3)").fetchall(), done.set()))
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 20


def test_threads_share_a_connection(con):
    con.execute("CREATE TABLE t (a int PRIMARY KEY)")
    con.commit()
    con.autocommit = True

    def insert(first):
        for number in range(first, first + 50):
            con.cursor().execute("INSERT INTO t VALUES (?)", (number,))

    threads = [threading.Thread(target=insert, args=(first,)) for first in range(0, 400, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (400,)


def test_a_cursor_that_threads_share_says_so(con):
    cursor = con.cursor()
    thread = threading.Thread(target=lambda: cursor.execute("SELECT pg_sleep(0.5)").fetchall())
    thread.start()
    time.sleep(0.1)
    with pytest.raises(lstore.InterfaceError, match="cursor of its own"):
        cursor.execute("SELECT 1")
    thread.join()


def in_a_process(script):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_second_process_is_refused_with_the_reason(tmp_path):
    place = str(tmp_path / "db")
    with lstore.connect(place) as con:
        con.execute("CREATE TABLE t (a int)")
        done = in_a_process(f"import lstore; lstore.connect({place!r})")
        assert "lstore.errors.OperationalError" in done.stderr and "use" in done.stderr, done.stderr


def test_a_fork_is_told_apart(tmp_path):
    done = in_a_process(
        f"""
        import os, lstore
        con = lstore.connect({str(tmp_path / "db")!r})
        con.execute("CREATE TABLE t (a int)")
        cursor = con.execute("SELECT 1")
        con.commit()
        child = os.fork()
        if child == 0:
            for use in (lambda: con.execute("SELECT 1"), cursor.fetchall, lambda: lstore.connect(), con.commit):
                try:
                    use()
                except lstore.InterfaceError as error:
                    assert "spawn" in str(error)
                else:
                    os._exit(1)
            del con, cursor
            import gc
            gc.collect()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        con.execute("INSERT INTO t VALUES (1)")
        con.commit()
        con.close()
        print("fine")
        """
    )
    assert done.stdout == "fine\n", done.stderr


def test_a_fork_before_the_first_connection_may_connect():
    done = in_a_process(
        """
        import os, lstore
        child = os.fork()
        if child == 0:
            assert lstore.connect().execute("SELECT 1").fetchone() == (1,)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_process_may_end_with_everything_open(tmp_path):
    done = in_a_process(
        f"""
        import lstore, threading
        con = lstore.connect({str(tmp_path / "db")!r})
        con.execute("CREATE TABLE t (a int)")
        con.commit()
        cursor = con.execute("SELECT a FROM generate_series(1, 1000000) AS t(a)")
        cursor.fetchone()
        other = lstore.connect()
        print("fine")
        """
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_connections_of_a_process_share_the_database_of_a_directory(tmp_path):
    with lstore.connect(tmp_path / "db") as first, lstore.connect(str(tmp_path) + "/./db") as second:
        first.execute("CREATE TABLE t (a int)")
        first.commit()
        assert second.execute("SELECT count(*) FROM t").fetchone() == (0,)
        with pytest.raises(lstore.OperationalError, match="open in this process"):
            lstore.connect(tmp_path / "db", read_only=True)


def test_what_was_committed_is_there_when_it_is_opened_again(tmp_path):
    for number in range(3):
        with lstore.connect(tmp_path / "db") as con:
            con.execute("CREATE TABLE IF NOT EXISTS t (a int)")
            con.execute("INSERT INTO t VALUES (?)", (number,))
    with lstore.connect(tmp_path / "db", read_only=True) as con:
        assert con.execute("SELECT a FROM t ORDER BY a").fetchall() == [(0,), (1,), (2,)]
        with pytest.raises(lstore.Error) as raised:
            con.execute("INSERT INTO t VALUES (9)")
        assert raised.value.sqlstate == "25006"
        con.rollback()


def test_a_million_values_and_many_statements_leave_memory_as_it_was(con):
    con.autocommit = True
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b bigint)")
    con.execute("INSERT INTO t VALUES (1, 0)")

    def resident_kb():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def work(count):
        for _ in range(count):
            con.execute("SELECT b FROM t WHERE a = ?", (1,)).fetchone()
        con.execute("SELECT a, a::text FROM generate_series(1, 20000) AS t(a)").fetchall()

    work(2000)
    before = resident_kb()
    work(10000)
    assert resident_kb() - before < 30_000


@pytest.mark.parametrize("order", ["import polars, lstore", "import lstore; lstore.connect().execute('SELECT 1'); import polars"])
def test_ctrl_c_ends_statements_beside_libraries_with_handlers_of_their_own(order):
    done = in_a_process(
        f"""
        {order}
        import os, signal, threading, time
        con = lstore.connect()
        polars.DataFrame({{"a": [1]}}).lazy().collect()
        for _ in range(2):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                con.execute("SELECT pg_sleep(50)").fetchall()
            except KeyboardInterrupt:
                print("interrupted")
            con.rollback()
        """
    )
    assert done.stdout == "interrupted\ninterrupted\n", done.stderr
