"""Runs the scripts of this folder that promise to pass on PostgreSQL, too, on a private server of the installed one."""
import os
import pathlib
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))
import servers  # noqa: E402
from psycopg import pq  # noqa: E402

SCRIPTS = ["values.py", "protocol.py"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    if why := servers.missing():
        print(f"wire on PostgreSQL: {why}; skipped")
        return 0
    port = free_port()
    server = servers.Postgres(port)
    try:
        connection = pq.PGconn.connect(server.conninfo.encode())
        for text in ("CREATE ROLE tester SUPERUSER LOGIN", "CREATE DATABASE lstore OWNER tester"):
            result = connection.exec_(text.encode())
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise SystemExit(f"wire on PostgreSQL: {result.error_message.decode()}")
        connection.finish()
        address = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "tester", "PGDATABASE": "lstore"}
        environment = {**os.environ, **address, "PGCONNECT_TIMEOUT": "10"}
        for script in SCRIPTS:
            print(f"{script} on PostgreSQL")
            done = subprocess.run([sys.executable, "-B", str(HERE / script)], env=environment)
            if done.returncode:
                return done.returncode
    finally:
        server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
