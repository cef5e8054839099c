"""What is shown of work that takes long, and that work which is short shows nothing."""

import time

import lstore
import pyarrow as pa
import pytest
from lstore import progress
from lstore.progress import Terminal, Watched


class Recorder:
    """A display that notes what is drawn."""

    def __init__(self):
        self.drawn = []
        self.cleared = 0

    def draw(self, label, seconds, done, total):
        self.drawn.append((label, done, total))

    def clear(self):
        self.cleared += 1


@pytest.fixture
def watched(con, monkeypatch):
    monkeypatch.setattr(progress, "DELAY_S", 0.05)
    monkeypatch.setattr(progress, "_LOOK_S", 0.01)
    recorder = Recorder()
    con._progress = Watched(con._session, recorder)
    yield con, recorder
    deadline = time.monotonic() + 10
    while con._progress._thread is not None and con._progress._thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not con._progress._thread or not con._progress._thread.is_alive()


def test_a_statement_that_takes_long_is_named(watched):
    con, recorder = watched
    con.execute("SELECT pg_sleep(0.4)").fetchall()
    assert ("SELECT pg_sleep(0.4)", 0, None) in recorder.drawn
    deadline = time.monotonic() + 10
    while not recorder.cleared and time.monotonic() < deadline:
        time.sleep(0.01)
    assert recorder.cleared == 1


def test_rows_that_are_loaded_are_counted(watched):
    con, recorder = watched
    con.execute("CREATE TABLE t (a bigint)")

    def batches():
        for first in range(0, 30, 10):
            time.sleep(0.15)
            yield pa.record_batch({"a": list(range(first, first + 10))})

    schema = pa.schema({"a": pa.int64()})

    class Frame:
        def __len__(self):
            return 30

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()

    assert con.append("t", Frame()) == 30
    assert {label for label, *_ in recorder.drawn} == {"append to t"}
    assert recorder.drawn[-1][2] == 30 and {done for _, done, _ in recorder.drawn} & {10, 20}
    assert con._session.progress() is None


def test_rows_of_parameters_and_files_are_counted(watched, tmp_path):
    con, recorder = watched
    con.execute("CREATE TABLE t (a bigint PRIMARY KEY, b text)")

    class Slow(list):
        def __iter__(self):
            for row in super().__iter__():
                if row[0] % 10_000 == 0:
                    time.sleep(0.15)
                yield row

    con.executemany("INSERT INTO t VALUES (?, ?)", Slow((number, "x" * 20) for number in range(20_000)))
    assert ("executemany", 10_000, 20_000) in recorder.drawn
    recorder.drawn.clear()
    con.copy_to("t", tmp_path / "t.csv")
    con.execute("DELETE FROM t")
    assert con.copy_from("t", tmp_path / "t.csv") == 20_000
    assert con._session.progress() is None


def test_what_is_short_draws_nothing(watched, monkeypatch):
    con, recorder = watched
    monkeypatch.setattr(progress, "DELAY_S", 1000.0)
    for _ in range(20):
        con.execute("SELECT 1").fetchall()
    assert recorder.drawn == []


def test_bars_are_for_those_who_look(con, capsys):
    assert not con.progress
    con.progress = True
    assert con.progress and con.execute("SELECT 1").fetchone() == (1,)
    with lstore.connect(progress=True) as other:
        assert other.progress and other.at(other.newest_commit()).progress
    terminal = Terminal()
    terminal.draw("append", 1.0, 1, 2)
    terminal.clear()
    drawn = capsys.readouterr().err
    assert "50%" in drawn and drawn.endswith("\r\x1b[K")
