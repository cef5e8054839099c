"""Searches in space through SQL, timed in turns on `lstore serve`, PostgreSQL with its GiST, and DuckDB, which scans.

    boxes    how many boxes overlap a window                  gist, gist
    nearest  the ten points nearest to a point                gist, gist
    ranges   how many ranges overlap one                      gist, gist
    window   how many rows have both x and y within limits    bwd, gist of point(x, y), a scan
    join     pairs of a thousand windows and boxes            gist, gist

Boxes are small and crowd along roads. Each search is a prepared statement of its own, but for the join; the answers of all are
compared. DuckDB is asked for windows alone, in this process, if this Python has its package. A figure is the median over the runs of
searches a second (pairs a second, for the join) by the clock of the client, so messages are part of it.
"""
import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import psycopg

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import servers  # noqa: E402

try:
    import duckdb
except ImportError:
    duckdb = None

SIDE = 1_000_000
# How a window of x and y is asked for: PostgreSQL's index is of points.
WINDOW = "SELECT count(*) FROM place WHERE x BETWEEN {0} AND {1} AND y BETWEEN {2} AND {3}"
WINDOW_OF_POINTS = "SELECT count(*) FROM place WHERE point(x, y) <@ box(point({0}, {2}), point({1}, {3}))"
SEARCHES = {
    "boxes": "SELECT count(*) FROM place WHERE area && box(point({0}, {2}), point({1}, {3}))",
    "nearest": "SELECT round((spot <-> point({0}, {2}))::numeric, 3) FROM place ORDER BY spot <-> point({0}, {2}) LIMIT 10",
    "ranges": "SELECT count(*) FROM place WHERE span && int8range({0}, {1})",
    "window": WINDOW,
}
JOIN = "SELECT count(*) FROM asked JOIN place ON place.area && asked.area"


def places(rows, seed):
    """Rows of the table: boxes along a hundred roads."""
    draw = random.Random(seed)
    roads = [[draw.randrange(SIDE) for _ in range(4)] for _ in range(100)]
    for number in range(rows):
        x0, y0, x1, y1 = draw.choice(roads)
        along = draw.random()
        x, y = (int(a + (b - a) * along + draw.gauss(0, 2000)) for a, b in ((x0, x1), (y0, y1)))
        width, height = draw.randrange(1, 200), draw.randrange(1, 200)
        yield number, x, y, f"({x},{y})", f"({x},{y}),({x + width},{y + height})", f"[{x},{x + width})"


def fill(conninfo, rows, windows, window_index):
    connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=0)
    execute = connection.execute
    execute("CREATE TABLE place (id int PRIMARY KEY, x int, y int, spot point, area box, span int8range)")
    execute("CREATE TABLE asked (id int PRIMARY KEY, area box)")
    with connection.cursor().copy("COPY place FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    with connection.cursor().copy("COPY asked FROM STDIN") as copy:
        for number, (x0, x1, y0, y1) in enumerate(windows[:1000]):
            copy.write_row((number, f"({x0},{y0}),({x1},{y1})"))
    for column in ("spot", "area", "span"):
        execute(f"CREATE INDEX ON place USING gist ({column})")
    execute(window_index)
    return connection


def run_windows(ask, text, windows):
    """The answers to all windows, and searches a second."""
    start = time.perf_counter()
    answers = [ask(text, window) for window in windows]
    return answers, len(windows) / (time.perf_counter() - start)


def prepared(connection):
    def ask(text, window):
        x0, x1, y0, y1 = window
        holes = text.format("%(x0)s::int", "%(x1)s::int", "%(y0)s::int", "%(y1)s::int")
        given = {"x0": x0, "x1": x1, "y0": y0, "y1": y1}
        return connection.execute(holes, {name: value for name, value in given.items() if f"({name})" in holes}).fetchall()

    return ask


def scanning(rows):
    """DuckDB with the same rows in memory."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE place (id INT, x INT, y INT)")
    columns = list(zip(*((number, x, y) for number, x, y, *_ in rows)))
    connection.execute("INSERT INTO place SELECT unnest(?), unnest(?), unnest(?)", [list(column) for column in columns])
    return lambda text, window: connection.execute(text.format(*window)).fetchall()


def contestants(args, rows, windows):
    """(name, how it is asked, how its window is written, its connection)."""
    lstore, postgres = servers.Lstore(args.lstore), servers.Postgres()
    ours = fill(lstore.conninfo, rows, windows, "CREATE INDEX ON place USING bwd (x, y)")
    theirs = fill(postgres.conninfo, rows, windows, "CREATE INDEX ON place USING gist (point(x, y))")
    theirs.execute("VACUUM ANALYZE place")
    found = [("lstore", prepared(ours), WINDOW, ours), ("PostgreSQL", prepared(theirs), WINDOW_OF_POINTS, theirs)]
    if duckdb:
        found.append(("DuckDB", scanning(rows), WINDOW, None))
    return (lstore, postgres), found


def measure(args, found, windows):
    """By search and contestant, the figures of all runs."""
    figures = {}
    for search in [*SEARCHES, "join"]:
        for _ in range(args.runs):
            answers = {}
            for name, ask, window, connection in found:
                if search == "join" and connection is not None:
                    start = time.perf_counter()
                    answers[name] = connection.execute(JOIN).fetchall()
                    rate = answers[name][0][0] / (time.perf_counter() - start)
                elif search != "join" and (connection is not None or search == "window"):
                    # A scan of all rows takes long enough for a tenth of the searches.
                    few = windows if connection is not None else windows[: max(len(windows) // 10, 1)]
                    answers[name], rate = run_windows(ask, window if search == "window" else SEARCHES[search], few)
                else:
                    continue
                figures.setdefault((search, name), []).append(rate)
            for name, given in answers.items():
                if given != answers["lstore"][: len(given)]:
                    raise SystemExit(f"{search}: {name} answers otherwise than lstore")
    return figures


def tell(args, figures):
    if args.json:
        for (search, name), rates in figures.items():
            print(json.dumps({"bench": "space", "case": search, "contestant": name, "per_second": statistics.median(rates),
                              "min": min(rates), "max": max(rates), "runs": len(rates)}))
        return
    print(f"{args.rows:,} rows, {args.queries:,} searches a run, medians of {args.runs}; a second, and lstore beside the others")
    for search in [*SEARCHES, "join"]:
        ours = statistics.median(figures[search, "lstore"])
        others = [(name, statistics.median(rates)) for (case, name), rates in figures.items() if case == search and name != "lstore"]
        told = "".join(f"   {name} {rate:>10,.0f} ({ours / rate:.2f})" for name, rate in others)
        print(f"{search:8} lstore {ours:>10,.0f}{told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lstore", help="the program")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1_000, help="searches in a run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object a line")
    args = parser.parse_args()
    if why := servers.missing():
        raise SystemExit(f"space: {why}")
    if duckdb is None:
        print("space: this Python has no package duckdb, which is left out", file=sys.stderr)
    rows = list(places(args.rows, args.seed))
    draw = random.Random(args.seed + 1)
    windows = []
    for _ in range(args.queries):
        _, x, y, *_ = draw.choice(rows)
        width, height = draw.randrange(100, 3000), draw.randrange(100, 3000)
        windows.append((x - width, x + width, y - height, y + height))
    both, found = contestants(args, rows, windows)
    try:
        tell(args, measure(args, found, windows))
    finally:
        for server in both:
            server.end()


if __name__ == "__main__":
    main()
