"""Runs what the benchmark asks of DuckDB: a JSON object a line from standard input, one a line to standard output.

    {"load": TABLE, "path": FILE}    makes a table of a Parquet file     {}
    {"execute": STATEMENTS}          runs what has no rows               {}
    {"threads": N}                   runs queries on so many threads     {}
    {"run": QUERY}                   measures a query                    {"seconds": S, "cpu_seconds": S}
    {"rows": QUERY}                  gives its rows, values as texts     {"rows": [[TEXT or null, ...], ...]}

What fails is answered by {"error": MESSAGE}. The first line of the output has the version.
"""
import json
import sys
import time

import duckdb

connection = duckdb.connect()
# What takes long would otherwise write its progress among the answers.
connection.execute("SET enable_progress_bar = false")


def load(request):
    path = request["path"].replace("'", "''")
    connection.execute(f"CREATE TABLE {request['load']} AS SELECT * FROM read_parquet('{path}')")
    return {}


def execute(request):
    connection.execute(request["execute"])
    return {}


def threads(request):
    connection.execute(f"SET threads = {int(request['threads'])}")
    return {}


def run(request):
    start, cpu_start = time.perf_counter(), time.process_time()
    # Every query sorts or adds up at its end, so that all is done by the first row. Rows as objects of Python are no part of it.
    connection.execute(request["run"]).fetchone()
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}


def rows(request):
    found = connection.execute(request["rows"]).fetchall()
    return {"rows": [[None if value is None else str(value) for value in row] for row in found]}


ANSWERS = {"load": load, "execute": execute, "threads": threads, "run": run, "rows": rows}

print(json.dumps({"version": duckdb.__version__}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = next(ANSWERS[kind] for kind in ANSWERS if kind in request)(request)
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
