"""How soon large statements end when they are cancelled, or when their time is over, and what they leave behind.

Each statement (`statements.py`) is sent to a server of its own making, cancelled after each of several delays, and measured:

    answer    from the request, or the last of them, to the error, which is to be 57014
    work      the processor time that the server takes after that, until it takes none
    memory    what is resident then beyond what was before the statement

A statement that is done before is no failure; neither is one that is refused. The program ends with 1 if an answer took longer
than `--most`.
"""
import argparse
import itertools
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from psycopg import pq

import statements

ROWS = 200_000
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """`lstore serve` over a folder of its own."""

    def __init__(self, program):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lstore-cancel-"))
        self.log = open(self.folder / "log", "w+")
        command = [program, "serve", str(self.folder / "data"), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        while not (found := re.search(r" on 127\.0\.0\.1:(\d+),", (self.folder / "log").read_text())):
            if self.process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.05)
        self.conninfo = f"host=127.0.0.1 port={found[1]} user=tester dbname=lstore".encode()

    def seconds(self):
        """The processor time that it has taken."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def settle(self, longest=20.0):
        """Waits until it works no more; the processor time until then."""
        began = last = self.seconds()
        quiet, end = 0, time.monotonic() + longest
        while quiet < 6 and time.monotonic() < end:
            time.sleep(0.05)
            now = self.seconds()
            quiet, last = (quiet + 1 if now - last < 0.015 else 0), now
        return last - began

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder)


class Client:
    """A connection that sends, and is able to wait with a limit."""

    def __init__(self, server):
        self.pg = pq.PGconn.connect(server.conninfo)
        if self.pg.status != pq.ConnStatus.OK:
            raise SystemExit(self.pg.error_message.decode())
        self.pg.nonblocking = 1

    def run(self, text):
        self.send(text, None)
        state, message = self.wait(600)
        if state:
            raise SystemExit(f"{text[:80]}: {message}")

    def send(self, text, parameters):
        if parameters is None:
            self.pg.send_query(text.encode())
        else:
            numbers = itertools.count(1)
            text = re.sub("%s", lambda _: f"${next(numbers)}", text)
            self.pg.send_query_params(text.encode(), [str(value).encode() for value in parameters])

    def wait(self, seconds):
        """The state and message of the answer; `None` if there is none yet."""
        end, state = time.monotonic() + seconds, ("", "")
        while True:
            unsent = self.pg.flush()
            left = end - time.monotonic()
            if left <= 0:
                return None
            writes = [self.pg.socket] if unsent else []
            readable, _, _ = select.select([self.pg.socket], writes, [], left)
            if readable:
                self.pg.consume_input()
            while not self.pg.is_busy():
                result = self.pg.get_result()
                if result is None:
                    return state
                if result.status == pq.ExecStatus.COPY_OUT:
                    while self.pg.get_copy_data(1)[0] > 0:
                        if time.monotonic() > end:
                            return None
                    if self.pg.get_copy_data(1)[0] == 0:
                        break
                elif result.status == pq.ExecStatus.FATAL_ERROR:
                    code = result.error_field(pq.DiagnosticField.SQLSTATE) or b"gone"
                    state = (code.decode(), result.error_message.decode().strip())


def fill(client):
    # What fills memory ends by that, and leaves the machine to others.
    client.run("ALTER DATABASE lstore SET memory_limit = '2GB'")
    client.run("CREATE TABLE big (id int PRIMARY KEY, a int, s text)")
    client.run(f"INSERT INTO big SELECT n, n * 7 % 1000, 'text ' || n FROM generate_series(1, {ROWS}) g(n)")
    client.run("CREATE TABLE target (id int PRIMARY KEY, s text, n numeric(12, 2))")


def measure(server, client, text, parameters, delay, by_limit):
    """One line of the report, and the seconds until the answer; the client, or a new one if it has to be given up."""
    server.settle(5.0)
    memory = server.resident_mb()
    if by_limit:
        client.run(f"SET statement_timeout = {int(delay * 1000)}")
    client.run("BEGIN")
    began = time.monotonic()
    client.send(text, parameters)
    answer = client.wait(delay)
    asked = time.monotonic()
    # A request that comes before the whole statement is for nothing, as in PostgreSQL.
    for _ in range(60):
        if answer is not None:
            break
        asked = time.monotonic() if not by_limit else asked
        if not by_limit:
            client.pg.get_cancel().cancel()
        answer = client.wait(1)
    took = time.monotonic() - asked
    if answer is None:
        client.pg.finish()
        line, client = "no answer in 60 s", Client(server)
        return line, 60.0, client
    state, message = answer
    if state == "57014":
        work = server.settle()
        grown = server.resident_mb() - memory
        line = f"answer {took * 1000:6.0f} ms   work {work * 1000:6.0f} ms   memory {grown:+6.0f} MB"
    else:
        took = 0.0
        line = f"{'done' if not state else state + ' ' + message.splitlines()[0][:60]} in {time.monotonic() - began:.2f} s"
    client.run("ROLLBACK")
    if by_limit:
        client.run("SET statement_timeout = 0")
    return line, took, client


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--delays", default="0.03,0.1,0.3,1.0", help="seconds after which it is cancelled")
    parser.add_argument("--limit", action="store_true", help="by statement_timeout, not by a request")
    parser.add_argument("--most", type=float, default=0.1, help="seconds that an answer may take")
    parser.add_argument("--of", default="", help="only statements whose names hold this")
    options = parser.parse_args()
    server = Server(options.program)
    late = 0
    try:
        client = Client(server)
        fill(client)
        groups = (statements.read_and_planned, statements.computed, statements.written, statements.waiting)
        for name, text, *parameters in itertools.chain.from_iterable(group() for group in groups):
            if options.of not in name:
                continue
            parameters = parameters[0] if parameters else None
            for delay in map(float, options.delays.split(",")):
                line, took, client = measure(server, client, text, parameters, delay, options.limit)
                is_late = took > options.most
                late += is_late
                print(f"{'LATE' if is_late else '    '} {name:42} after {delay:4.2f} s: {line}", flush=True)
                if line.startswith(("done", "4", "5", "2", "0")):
                    break
    finally:
        server.stop()
    print(f"{late} answers took longer than {options.most * 1000:.0f} ms")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
