"""Figures of the package beside sqlite3, DuckDB and Polars, measured in turns in one run: `python -m lstore.bench [--json] [--rows N]`.

With `--tpch DIRECTORY` the 22 queries of TPC-H run on a database that has its tables (`./run` in a checkout makes one), and on a copy of
them in DuckDB; `--queries` is the folder with their texts (`crates/lab/queries` in a checkout).

Each case runs `--runs` times for each system, one after the other, and gives the median. With `--json` each line is an object
`{"bench","case","metric","value","unit","min","max","runs","baseline","ratio"}`; a `ratio` above 1 says that lstore is better. Systems
that are not installed are left out. Answers are checked. All databases are in memory: no commit of any of them waits for a disk, and each
statement is a transaction of its own but for `executemany`.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from . import connect

Case = tuple[str, str, str, dict[str, Callable[[], float]]]


def optional(module: str) -> Optional[Any]:
    """A module, or `None`."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def rate(count: int, work: Callable[[], None]) -> float:
    """How many of `count` things a second are done."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def milliseconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


class Systems:
    """The databases with one table of so many rows each."""

    def __init__(self, rows: int, without: list[str]) -> None:
        pyarrow = optional("pyarrow")
        if pyarrow is None:
            sys.exit("lstore.bench needs the package pyarrow:  pip install pyarrow")
        self.rows = rows
        self.table = pyarrow.table(
            {"id": pyarrow.array(range(rows), pyarrow.int64()), "a": pyarrow.array([7] * rows), "b": pyarrow.array(range(rows))}
        )
        self.create = "CREATE TABLE t (id bigint PRIMARY KEY, a bigint, b bigint)"
        self.lstore = connect(autocommit=True)
        self.lstore.execute(self.create)
        self.lstore.append("t", self.table)
        self.sqlite: Any = None
        if "sqlite3" not in without:
            self.sqlite = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            self.sqlite.execute(self.create)
            columns = (column.to_pylist() for column in self.table.columns)
            self.sqlite.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(*columns))
        duckdb = None if "duckdb" in without else optional("duckdb")
        self.duckdb: Any = None
        if duckdb is not None:
            self.duckdb = duckdb.connect()
            self.duckdb.execute(self.create)
            self.duckdb.register("loaded", self.table)
            self.duckdb.execute("INSERT INTO t SELECT * FROM loaded")
        self.polars = None if "polars" in without else optional("polars")

    def with_duckdb(self, ways: dict[str, Callable[[], float]], way: Callable[[], float]) -> dict[str, Callable[[], float]]:
        """The ways, and DuckDB's if it is installed."""
        return {**ways, "duckdb": way} if self.duckdb is not None else ways

    def with_sqlite(self, ways: dict[str, Callable[[], float]], way: Callable[[], float]) -> dict[str, Callable[[], float]]:
        """The ways, and SQLite's if it is wanted."""
        return {**ways, "sqlite3": way} if self.sqlite is not None else ways


def points(systems: Systems, count: int) -> list[Case]:
    """Reads and updates by key."""
    keys = [random.Random(1).randrange(systems.rows) for _ in range(count)]
    select, update = "SELECT a, b FROM t WHERE id = ?", "UPDATE t SET a = a + 1 WHERE id = ?"

    def reads(con: Any) -> Callable[[], float]:
        def work() -> None:
            for key in keys:
                assert con.execute(select, (key,)).fetchone()[1] == key

        return lambda: rate(count, work)

    def writes(con: Any) -> Callable[[], float]:
        def work() -> None:
            for key in keys:
                con.execute(update, (key,))

        return lambda: rate(count, work)

    def typed_reads() -> float:
        table = systems.lstore.table("t")

        def work() -> None:
            for key in keys:
                row = table.get(key, ("a", "b"))
                assert row is not None and row["b"] == key

        return rate(count, work)

    def typed_writes() -> float:
        table = systems.lstore.table("t")

        def work() -> None:
            for key in keys:
                assert table.update(key, {"a": key})

        return rate(count, work)

    all_of_them = {"lstore": systems.lstore, "sqlite3": systems.sqlite, "duckdb": systems.duckdb}
    both = {name: con for name, con in all_of_them.items() if con is not None}
    return [
        ("points", "get by SQL", "1/s", {name: reads(con) for name, con in both.items()}),
        ("points", "get by table()", "1/s", systems.with_sqlite({"lstore": typed_reads}, reads(systems.sqlite))),
        ("points", "update by SQL", "1/s", {name: writes(con) for name, con in both.items()}),
        ("points", "update by table()", "1/s", systems.with_sqlite({"lstore": typed_writes}, writes(systems.sqlite))),
    ]


def loads(systems: Systems, count: int) -> list[Case]:
    """Rows that go in: by parameters, as Arrow at once, and in small batches."""
    rows = [(number, 7, number) for number in range(count)]
    insert = "INSERT INTO x VALUES (?, ?, ?)"

    def by_parameters(con: Any) -> Callable[[], float]:
        def run() -> float:
            con.execute("DROP TABLE IF EXISTS x")
            con.execute(systems.create.replace("TABLE t", "TABLE x"))
            return rate(count, lambda: con.executemany(insert, rows))

        return run

    def fresh(con: Any) -> None:
        con.execute("DROP TABLE IF EXISTS x")
        con.execute(systems.create.replace("TABLE t", "TABLE x"))

    def lstore_arrow(batch: int) -> Callable[[], float]:
        def run() -> float:
            fresh(systems.lstore)
            parts = [systems.table.slice(at, batch) for at in range(0, systems.rows, batch)][:200]

            def work() -> None:
                for part in parts:
                    systems.lstore.append("x", part)

            return rate(sum(part.num_rows for part in parts), work)

        return run

    def duckdb_arrow(batch: int) -> Callable[[], float]:
        def run() -> float:
            fresh(systems.duckdb)
            parts = [systems.table.slice(at, batch) for at in range(0, systems.rows, batch)][:200]

            def work() -> None:
                for part in parts:
                    systems.duckdb.register("part", part)
                    systems.duckdb.execute("INSERT INTO x SELECT * FROM part")

            return rate(sum(part.num_rows for part in parts), work)

        return run

    ways = systems.with_sqlite({"lstore": by_parameters(systems.lstore)}, by_parameters(systems.sqlite))
    cases: list[Case] = [("loads", "executemany", "rows/s", ways)]
    for name, batch in (("Arrow at once", systems.rows), ("Arrow, batches of 100", 100)):
        cases.append(("loads", name, "rows/s", systems.with_duckdb({"lstore": lstore_arrow(batch)}, duckdb_arrow(batch))))
    return cases


def results(systems: Systems) -> list[Case]:
    """All rows as Arrow, as a frame of pandas, and as tuples."""
    query = "SELECT id, a, b FROM t"
    cases: list[Case] = []
    for name, way in (("all rows to Arrow", "to_arrow_table"), ("all rows to pandas", "df"), ("all rows to tuples", "fetchall")):
        if way == "df" and optional("pandas") is None:
            continue

        def of(con: Any, way: str = way) -> Callable[[], float]:
            def work() -> None:
                found = getattr(con.sql(query) if hasattr(con, "sql") else con.execute(query), way)()
                assert len(found.read_all() if hasattr(found, "read_all") else found) == systems.rows

            return lambda: milliseconds(work)

        ways = systems.with_duckdb({"lstore": of(systems.lstore)}, of(systems.duckdb))
        if way == "fetchall":
            ways = systems.with_sqlite(ways, of(systems.sqlite))
        cases.append(("results", name, "ms", ways))
    return cases


def aggregates(systems: Systems) -> list[Case]:
    """Sums, idle and while a thread updates rows."""
    query = "SELECT sum(b) FROM t"
    wanted = systems.rows * (systems.rows - 1) // 2

    def idle(con: Any) -> Callable[[], float]:
        def work() -> None:
            assert con.execute(query).fetchone()[0] == wanted

        return lambda: statistics.median(milliseconds(work) for _ in range(5))

    def busy(reader: Any, writer: Any) -> Callable[[], float]:
        def run() -> float:
            over = threading.Event()

            def update() -> None:
                source = random.Random(2)
                while not over.is_set():
                    writer.execute("UPDATE t SET a = a + 1 WHERE id = ?", (source.randrange(systems.rows),))

            thread = threading.Thread(target=update)
            thread.start()
            try:
                return idle(reader)()
            finally:
                over.set()
                thread.join()

        return run

    both = systems.with_sqlite({"lstore": idle(systems.lstore)}, idle(systems.sqlite))
    both = systems.with_duckdb(both, idle(systems.duckdb))
    if systems.polars is not None:
        frame = systems.polars.DataFrame(systems.table)

        def polars_sum() -> None:
            assert frame["b"].sum() == wanted

        both["polars"] = lambda: statistics.median(milliseconds(polars_sum) for _ in range(5))
    other = systems.lstore._again({})
    under = {"lstore": busy(systems.lstore, other)}
    if systems.duckdb is not None:
        under["duckdb"] = busy(systems.duckdb, systems.duckdb.cursor())
    return [("aggregates", "sum, idle", "ms", both), ("aggregates", "sum while a thread updates", "ms", under)]


#: The tables of TPC-H.
_TPCH = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def tpch(systems: Systems, place: str, queries: str) -> list[Case]:
    """The queries of TPC-H, each alone and all of them."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(queries).glob("q*.sql"))}
    own = connect(place, autocommit=True)
    other: Any = None
    if systems.duckdb is not None:
        other = systems.duckdb.cursor()
        for table in _TPCH:
            other.register("loaded", own.execute(f"SELECT * FROM {table}").to_arrow_table())
            other.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM loaded")

    def of(con: Any, wanted: list[str]) -> Callable[[], float]:
        def work() -> None:
            for text in wanted:
                con.execute(text).fetchall()

        return lambda: milliseconds(work)

    for name, text in texts.items():
        if other is not None:
            assert len(own.execute(text).fetchall()) == len(other.execute(text).fetchall()), name
    each = {name: [text] for name, text in texts.items()}
    return [
        ("tpch", name, "ms", systems.with_duckdb({"lstore": of(own, wanted)}, of(other, wanted)))
        for name, wanted in {**each, "all queries": list(texts.values())}.items()
    ]


def show(case: Case, values: dict[str, list[float]], as_json: bool) -> None:
    """Prints the figures of a case: lstore's, beside each other's."""
    bench, name, unit, _ = case
    own = statistics.median(values["lstore"])
    others = {system: statistics.median(found) for system, found in values.items() if system != "lstore"}
    if not as_json:
        beside = ", ".join(f"{system} {value:,.2f}" for system, value in others.items())
        print(f"{bench:<11} {name:<28} {own:>16,.2f} {unit:<7} {beside}")
        return
    for system, value in others.items():
        ratio = value / own if unit == "ms" else own / value
        figures = {"bench": f"python {bench}", "case": name, "metric": "median", "value": own, "unit": unit}
        spread = {"min": min(values["lstore"]), "max": max(values["lstore"]), "runs": len(values["lstore"])}
        print(json.dumps({**figures, **spread, "baseline": system, "ratio": ratio}))


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m lstore.bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print an object a line")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--points", type=int, default=20_000, help="reads and updates by key, rows of executemany")
    parser.add_argument("--runs", type=int, default=3, help="how often each case runs for each system")
    parser.add_argument("--without", action="append", default=[], metavar="SYSTEM", help="leave out sqlite3, duckdb or polars")
    parser.add_argument("--tpch", metavar="DIRECTORY", help="a database with the tables of TPC-H, to run its queries on")
    parser.add_argument("--queries", metavar="DIRECTORY", default="crates/lab/queries", help="the texts of these queries")
    chosen = parser.parse_args()
    systems = Systems(chosen.rows, chosen.without)
    cases = [
        *points(systems, chosen.points),
        *loads(systems, chosen.points),
        *results(systems),
        *aggregates(systems),
    ]
    if chosen.tpch is not None:
        cases = tpch(systems, chosen.tpch, chosen.queries)
    for case in cases:
        values: dict[str, list[float]] = {system: [] for system in case[3]}
        for _ in range(chosen.runs):
            for system, way in case[3].items():
                values[system].append(way())
        show(case, values, chosen.json)


if __name__ == "__main__":
    main()
