"""The package as a whole: its examples, its types, calls in any order, its programs."""

import doctest
import gc
import importlib
import json
import pathlib
import subprocess
import sys

import hypothesis.strategies as st
import lstore
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

MODULES = ["", ".column", ".connection", ".cursor", ".errors", ".functions", ".ibis", ".progress", ".relation", ".results", ".sqlalchemy", ".table", ".types"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_documentation_are_true(name):
    if name == ".ibis":
        pytest.importorskip("ibis")
    module = importlib.import_module(f"lstore{name}")
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_types_are_those_that_are_declared():
    pytest.importorskip("mypy")
    root = pathlib.Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml", "-p", "lstore"],
        cwd=root / "crates" / "python",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_types_are_right_for_pyright_as_well():
    pytest.importorskip("pyright")
    root = pathlib.Path(__file__).parents[3]

    def pyright(*arguments):
        return subprocess.run([sys.executable, "-m", "pyright", *arguments], cwd=root, capture_output=True, text=True, check=False)

    if pyright("--version").returncode != 0:
        pytest.skip("pyright needs node, and it can't be fetched here")
    done = pyright("-p", str(root / "pyproject.toml"), "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_shell_runs_statements(tmp_path):
    def shell(*arguments, typed=""):
        return subprocess.run(
            [sys.executable, "-m", "lstore", *arguments], input=typed, capture_output=True, text=True, check=False
        )

    done = shell(str(tmp_path / "db"), "-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (1); SELECT a FROM t")
    assert done.returncode == 0 and "(1 row)" in done.stdout, done.stderr
    done = shell(str(tmp_path / "db"), typed="SELECT a +\n1 AS b FROM t;\nSELECT nothing FROM t;\nSELECT 3 AS c;\n")
    assert done.returncode == 1 and " 2" in "\n" + done.stdout.replace("\n2", " 2") and "nothing" in done.stderr
    script = tmp_path / "script.sql"
    script.write_text("SELECT count(*) AS rows FROM t;")
    assert "rows" in shell(str(tmp_path / "db"), "-f", str(script)).stdout


def test_the_benchmarks_run_and_check_their_answers():
    small = ["--json", "--rows", "2000", "--points", "20", "--runs", "1"]
    done = subprocess.run([sys.executable, "-m", "lstore.bench", *small], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"python points", "python loads", "python results", "python aggregates"} == {line["bench"] for line in figures}
    assert all(line["value"] > 0 and line["ratio"] > 0 for line in figures)


CALLS = {
    "execute": lambda state: state["cursors"].append(state["con"].execute("SELECT a, b FROM t ORDER BY a")),
    "insert": lambda state: state["con"].execute("INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING", (len(state), "x")),
    "append": lambda state: state["con"].append("t", pa.table({"a": [len(state["cursors"]) + 100], "b": ["y"]})),
    "fetchone": lambda state: state["cursors"][-1].fetchone(),
    "fetchall": lambda state: state["cursors"][0].fetchall(),
    "arrow": lambda state: state["kept"].append(state["cursors"][-1].arrow()),
    "reader": lambda state: state["kept"].append(state["cursors"][-1].to_arrow_reader()),
    "read": lambda state: state["kept"][-1].read_next_batch(),
    "capsule": lambda state: state["kept"].append(state["cursors"][0].__arrow_c_stream__()),
    "register": lambda state: state["con"].register("r", state["kept"][-1]),
    "query": lambda state: state["con"].execute("SELECT * FROM r").fetchall(),
    "function": lambda state: state["con"].create_function("twice", lambda number: number * 2, [int], int),
    "arrow function": lambda state: state["con"].create_function("twice", lambda array: array, [int], int, type="arrow"),
    "failing function": lambda state: state["con"].create_function("twice", lambda number: 1 // 0, [int], int),
    "remove function": lambda state: state["con"].remove_function("twice"),
    "call": lambda state: state["cursors"].append(state["con"].execute("SELECT twice(a) AS a FROM t")),
    "column": lambda state: state["kept"].append(state["cursors"][-1].column("a")),
    "array": lambda state: np.from_dlpack(state["kept"][-1]).sum(),
    "html": lambda state: state["cursors"][-1]._repr_html_(),
    "get": lambda state: state["con"].table("t").get(1),
    "update": lambda state: state["con"].table("t").update(1, {"b": "new"}),
    "autocommit": lambda state: setattr(state["con"], "autocommit", True),
    "keep table": lambda state: state["kept"].append(state["con"].table("t")),
    "get again": lambda state: [state["kept"][-1].get(1, ("a",)) for _ in range(3)],
    "update again": lambda state: [state["kept"][-1].update(1, {"c": number}) for number in range(3)],
    "short query": lambda state: [state["cursors"].append(state["con"].execute("SELECT b FROM t WHERE a = ?", (1,))) for _ in range(3)],
    "short sum": lambda state: [state["cursors"].append(state["con"].execute("SELECT sum(a) FROM t")) for _ in range(3)],
    "short change": lambda state: [state["con"].execute("UPDATE t SET c = ? WHERE a = ?", (1, 2)) for _ in range(3)],
    "another table": lambda state: state["con"].execute("DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text, c int)"),
    "commit": lambda state: state["con"].commit(),
    "rollback": lambda state: state["con"].rollback(),
    "fail": lambda state: state["con"].execute("SELECT 1 / 0").fetchall(),
    "cancel": lambda state: state["con"].cancel(),
    "drop cursor": lambda state: state["cursors"].pop(0),
    "close cursor": lambda state: state["cursors"][-1].close(),
    "drop kept": lambda state: state["kept"].pop(0),
    "close": lambda state: state["con"].close(),
    "connect": lambda state: state.update(con=connected()),
    "drop all": lambda state: (state.update(con=None), state["cursors"].clear(), gc.collect(), state.update(con=connected())),
}


def connected():
    con = lstore.connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c int); INSERT INTO t VALUES (1, 'one', 1), (2, NULL, NULL)")
    con.commit()
    return con


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(sorted(CALLS)), max_size=25))
def test_calls_in_any_order_end_in_an_answer_or_an_exception(calls):
    state = {"con": connected(), "cursors": [], "kept": []}
    for call in calls:
        try:
            CALLS[call](state)
        except (lstore.Error, IndexError, AttributeError, TypeError, ValueError, OSError, StopIteration, BufferError):
            pass
