"""Both servers: starting and ending them, and sending statements in batches.

A statement is its own transaction unless it says BEGIN: each is followed by a Sync of the pipeline, so that an error ends
nothing but itself. Batches are small enough that neither side has to stop writing in order to read.
"""
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

from psycopg import pq

BATCH = 24


@dataclasses.dataclass
class Answer:
    """What a server said of one statement: rows as texts, or an error."""

    code: str = ""
    message: str = ""
    tag: str = ""
    names: tuple = ()
    types: tuple = ()
    rows: tuple = ()

    @property
    def failed(self):
        return bool(self.code)


class Gone(Exception):
    """The server has ended the connection."""


class Connection:
    """One connection over libpq, in pipeline mode."""

    def __init__(self, name, conninfo):
        self.name, self.conninfo = name, conninfo
        self.pg = None
        self.open()

    def open(self):
        if self.pg is not None:
            self.pg.finish()
        self.pg = pq.PGconn.connect(self.conninfo.encode())
        if self.pg.status != pq.ConnStatus.OK:
            raise Gone(f"{self.name}: {self.pg.error_message.decode()}")
        self.pg.exec_(b"SET client_min_messages = error")
        self.pg.enter_pipeline_mode()

    def run(self, statements):
        """The answer to each of the statements."""
        answers = []
        for start in range(0, len(statements), BATCH):
            batch = statements[start : start + BATCH]
            self.send(batch)
            answers.extend(self.receive() for _ in batch)
        return answers

    def send(self, batch):
        for statement in batch:
            self.pg.send_query_params(statement.encode(), None)
            self.pg.pipeline_sync()

    def receive(self):
        answer = Answer("08006", "the connection was lost")
        while True:
            result = self.pg.get_result()
            if result is None:
                if self.pg.status != pq.ConnStatus.OK:
                    raise Gone(self.name)
                continue
            status = result.status
            if status == pq.ExecStatus.PIPELINE_SYNC:
                return answer
            if status == pq.ExecStatus.PIPELINE_ABORTED:
                continue
            answer = read(result, status)


def read(result, status):
    if status == pq.ExecStatus.FATAL_ERROR:
        code = result.error_field(pq.DiagnosticField.SQLSTATE) or b"08006"
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        return Answer(code.decode(), message.decode(errors="replace"))
    tag = (result.command_status or b"").decode()
    if status != pq.ExecStatus.TUPLES_OK:
        return Answer(tag=tag)
    columns = range(result.nfields)
    rows = tuple(
        tuple(None if (v := result.get_value(r, c)) is None else v.decode(errors="replace") for c in columns)
        for r in range(result.ntuples)
    )
    names = tuple(result.fname(c).decode() for c in columns)
    return Answer(tag=tag, names=names, types=tuple(result.ftype(c) for c in columns), rows=rows)


class Lstore:
    """`lstore serve` on a directory, or on one in a folder that goes away with it."""

    def __init__(self, program, directory=None):
        self.folder = tempfile.mkdtemp(prefix="lstore-compare-")
        self.directory = directory or f"{self.folder}/data"
        self.program, self.process = program, None
        self.start()

    def start(self):
        log_path = pathlib.Path(self.folder) / "serve.log"
        with open(log_path, "wb") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", str(self.directory), "--listen", "127.0.0.1:0"], stdout=log, stderr=log
            )
        for _ in range(400):
            found = re.search(r" on 127\.0\.0\.1:(\d+),", log_path.read_text())
            if found:
                self.conninfo = f"host=127.0.0.1 port={found[1]} dbname=lstore user=compare connect_timeout=10"
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(f"compare: lstore did not start: {log_path.read_text()}")

    def alive(self):
        return self.process.poll() is None

    def end(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres:
    """A private cluster on a socket of its own, and on a port of 127.0.0.1 if asked for; `missing()` says why there can be none."""

    def __init__(self, port=None):
        self.bin = binaries()
        # A server that is started by root runs as the package's user.
        self.user = "postgres" if os.geteuid() == 0 else None
        self.folder = tempfile.mkdtemp(prefix="postgres-compare-")
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        data = f"{self.folder}/data"
        self.call("initdb", "-D", data, "-U", "compare", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                  "--lc-collate=C", "-N")
        listen = f"-c listen_addresses=127.0.0.1 -p {port}" if port else "-c listen_addresses="
        options = f"{listen} -k {self.folder} -c fsync=off -c timezone=UTC -c jit=off"
        self.call("pg_ctl", "-D", data, "-w", "-l", f"{self.folder}/log", "-o", options, "start")
        self.conninfo = f"host={self.folder} port={port or 5432} dbname=postgres user=compare"

    def call(self, program, *arguments):
        done = subprocess.run([f"{self.bin}/{program}", *arguments], user=self.user, cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise SystemExit(f"compare: {program} failed: {done.stderr.decode()}")

    def end(self):
        self.call("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries():
    """The folder of the server's programs: Debian keeps them apart from the clients."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[4]))
    if found:
        return str(found[-1].parent)
    program = shutil.which("initdb")
    return str(pathlib.Path(program).parent) if program and shutil.which("pg_ctl") else None


def missing():
    if binaries() is None:
        return "PostgreSQL's server is not installed (Debian: postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "there is no user postgres, and root may not run PostgreSQL's server"
    return None
