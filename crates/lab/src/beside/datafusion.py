"""Runs what the benchmark asks of DataFusion: requests and answers as in duckdb.py, but for {"execute": ...}.

Tables are batches in memory, dealt to as many partitions as there are threads.
"""
import json
import sys
import time

import datafusion

tables = {}
context = None


def table(name, partition_count):
    batches = tables[name]
    partitions = [batches[at::partition_count] for at in range(partition_count)]
    context.register_record_batches(name, [partition for partition in partitions if partition] or [batches])


def threads(request):
    global context
    count = int(request["threads"])
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(count))
    for name in tables:
        table(name, count)
    return {}


def load(request):
    tables[request["load"]] = datafusion.SessionContext().read_parquet(request["path"]).collect()
    table(request["load"], 1)
    return {}


def run(request):
    start, cpu_start = time.perf_counter(), time.process_time()
    context.sql(request["run"]).collect()
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}


def rows(request):
    found = [row for batch in context.sql(request["rows"]).collect() for row in zip(*(column.to_pylist() for column in batch.columns))]
    return {"rows": [[None if value is None else str(value) for value in row] for row in found]}


ANSWERS = {"load": load, "threads": threads, "run": run, "rows": rows}

threads({"threads": 1})
print(json.dumps({"version": datafusion.__version__}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = next(ANSWERS[kind] for kind in ANSWERS if kind in request)(request)
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
