"""A small shell: `python -m lstore [DIRECTORY] [-c STATEMENTS] [-f FILE]`. Statements end with `;`. The program `lstore` has the full one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TextIO

from . import connect
from ._lstore import NativeSession
from .connection import Connection
from .errors import Error
from .results import shown

#: Rows that the shell prints of a result.
ROWS_MAX = 1000


def statements(source: TextIO, interactive: bool) -> Iterator[str]:
    """The statements of a text that is read line by line."""
    gathered = ""
    while True:
        if interactive:
            print("lstore> " if not gathered.strip() else "lstore- ", end="", flush=True)
        line = source.readline()
        gathered += line
        if not line or line.rstrip().endswith(";"):
            yield from NativeSession.split(gathered)
            gathered = ""
        if not line:
            return


def run(connection: Connection, statement: str) -> None:
    """Runs a statement and prints what it gives."""
    cursor = connection.execute(statement)
    if cursor.description is None:
        print(cursor.statusmessage)
        return
    rows = cursor.fetchmany(ROWS_MAX + 1)
    print(shown([column.name for column in cursor.description], rows[:ROWS_MAX], len(rows) > ROWS_MAX, width_max=200))


def run_all(connection: Connection, source: Iterator[str], stops: bool) -> int:
    """Runs statements; where `stops` is set the first that fails ends the program with status 1."""
    for statement in source:
        try:
            run(connection, statement)
        except Error as error:
            print(f"ERROR:  {error}", file=sys.stderr)
            if stops:
                return 1
        except KeyboardInterrupt:
            print("cancelled", file=sys.stderr)
    return 0


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m lstore", description="A small shell over a database.")
    parser.add_argument("directory", nargs="?", default=":memory:", help="the database; in memory if there is none")
    parser.add_argument("-c", "--command", help="run these statements and end")
    parser.add_argument("-f", "--file", help="run the statements of a file and end")
    chosen = parser.parse_args()
    with connect(chosen.directory, autocommit=True) as connection:
        if chosen.command is not None:
            return run_all(connection, iter(NativeSession.split(chosen.command)), True)
        if chosen.file is not None:
            with open(chosen.file, encoding="utf-8") as script:
                return run_all(connection, iter(NativeSession.split(script.read())), True)
        is_interactive = sys.stdin.isatty()
        if is_interactive:
            import readline  # noqa: F401  (line editing of input)
        return run_all(connection, statements(sys.stdin, is_interactive), not is_interactive)


if __name__ == "__main__":
    sys.exit(main())
