"""Runs the scripts of this folder on PostgreSQL and tells where it answers otherwise.

A script's expectations are what lstore answers; this shows which of them PostgreSQL shares. Each script gets a database of
its own. Of an error the SQLSTATE is compared, of rows their text.

Not sent are scripts about what PostgreSQL has not (OURS_ALONE), statements that only lstore understands (OURS), and those that
lstore refuses as not supported (0A000). A clause of ours is taken out of a statement that is fine without it (CLAUSES). A record
that differs on purpose is named in `differences.txt` beside this file, as SCRIPT:SHA of its statement, with the reason; one that
does not differ any more must leave that list.
"""
import argparse
import hashlib
import pathlib
import re
import sys

from psycopg import pq

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))
import servers  # noqa: E402

# Scripts about what PostgreSQL has not: the past, files of the session, settings of the database; or has since version 16 alone.
OURS_ALONE = {
    "past", "history", "copy", "sandbox", "database_settings", "table_options", "array_tables", "json_predicates"
}
OURS = re.compile(r"lstore|FOR SYSTEM_TIME|__DIR__|retention|memory_limit|^(EXPLAIN|SHOW TABLES|WAIT FOR|CHECKPOINT)", re.I)
CLAUSES = [
    (re.compile(r"\s+WITH \((layout|retention) = [^)]*\)", re.I), ""),
    (re.compile(r"\bUSING (kiss|hash)\b", re.I), "USING btree"),
    (re.compile(r"\s+PURGE\b", re.I), ""),
]


class Record:
    """One record of a script: what is sent, on which connection, and what is expected."""

    def __init__(self, line, kind, words):
        self.line, self.kind, self.words = line, kind, words
        self.connection, self.skipped = "default", False
        self.statement, self.expected = "", []

    @property
    def text(self):
        """What PostgreSQL is sent, or None."""
        if self.skipped or self.words[:2] == ["error", "0A000:"] or self.words[:2] == ["error", "0A000"]:
            return None
        text = self.statement
        for clause, instead in CLAUSES:
            text = clause.sub(instead, text)
        return None if OURS.search(text) else text

    def sort(self):
        return next((word for word in self.words[1:] if word in ("rowsort", "valuesort")), "nosort")

    def name(self, script):
        return f"{script}:{hashlib.sha256(self.statement.encode()).hexdigest()[:8]}"


def records(text):
    """The records of a script, in its order."""
    lines, at = text.split("\n"), 0
    connection, skipped = "default", False
    while at < len(lines):
        line = lines[at]
        words = line.split()
        at += 1
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "connection":
            connection = words[1]
        elif words[0] == "skipif":
            skipped = words[1] == "postgresql"
        elif words[0] == "onlyif":
            skipped = words[1] != "postgresql"
        elif words[0] in ("statement", "query"):
            record = Record(at, words[0], words[1:])
            record.connection, record.skipped = connection, skipped
            connection, skipped = "default", False
            body, expected, into = [], [], None
            into = body
            while at < len(lines) and lines[at].strip():
                if lines[at] == "----":
                    into = expected
                else:
                    into.append(lines[at])
                at += 1
            record.statement, record.expected = "\n".join(body), expected
            yield record


def rows_of(answer):
    """Rows as the runner of the scripts prints them."""
    def cell(value):
        return "NULL" if value is None else "(empty)" if value == "" else value.replace("\n", "\\n")
    return [" ".join(cell(value) for value in row) for row in answer.rows]


def plain(lines):
    return [" ".join(line.split()) for line in lines]


def difference(record, answer):
    """What PostgreSQL says otherwise, or None."""
    if record.words and record.words[0] == "error":
        code = re.match(r"[0-9A-Z]{5}\b", " ".join(record.words[1:]))
        if not answer.failed:
            return f"accepted, expected an error {code[0] if code else ''}"
        if code and code[0] != answer.code:
            return f"{answer.code} {answer.message}, expected {code[0]}"
        return None
    if answer.failed:
        return f"{answer.code} {answer.message}"
    if record.kind == "statement":
        if record.words[0] == "count" and not re.search(rf"\b{record.words[1]}$", answer.tag):
            return f"tag {answer.tag}, expected {record.words[1]} rows"
        return None
    if not answer.names:
        # A command: its tag, and behind it the notices, whose words are ours.
        got, expected = [answer.tag], record.expected[:1]
        return None if got == expected else f"tag {answer.tag}, expected {expected}"
    got, expected = plain(rows_of(answer)), plain(record.expected)
    if record.sort() == "rowsort":
        got, expected = sorted(got), sorted(expected)
    return None if got == expected else f"rows\n      {got}\n   here {expected}"


def run(script, postgres, number):
    """The differences of one script, as (record, what PostgreSQL says)."""
    main = pq.PGconn.connect(postgres.encode())
    database = f"slt_{number}"
    for text in (f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}"):
        result = main.exec_(text.encode())
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise SystemExit(f"postgres: {text}: {result.error_message.decode()}")
    sessions, found = {}, []
    for record in records(script.read_text()):
        text = record.text
        if text is None:
            continue
        session = sessions.get(record.connection)
        if session is None:
            session = pq.PGconn.connect(f"{postgres} dbname={database}".encode())
            session.exec_(b"SET statement_timeout = '5s'; SET client_min_messages = error")
            if not sessions and "USING gist" in script.read_text():
                # What PostgreSQL has as an extension: numbers and texts beside ranges and shapes.
                session.exec_(b"CREATE EXTENSION IF NOT EXISTS btree_gist")
            sessions[record.connection] = session
        result = session.exec_(text.encode())
        what = difference(record, servers.read(result, result.status))
        if what:
            found.append((record, what))
    for session in sessions.values():
        session.finish()
    main.exec_(f"DROP DATABASE {database} WITH (FORCE)".encode())
    main.finish()
    return found


def known():
    lines = (HERE / "differences.txt").read_text().split("\n")
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of scripts' names; without any, all scripts")
    parser.add_argument("--postgres", metavar="CONNINFO", help="a running PostgreSQL; without it a private one is started")
    parser.add_argument("--all", action="store_true", help="show known differences, too")
    args = parser.parse_args()
    if not args.postgres and (why := servers.missing()):
        print(f"postgres: {why}; the scripts are not compared")
        return 0
    server = None if args.postgres else servers.Postgres()
    accepted, seen, new, ran = known(), set(), 0, 0
    try:
        for number, script in enumerate(sorted(HERE.glob("*.slt"))):
            name = script.stem
            if name in OURS_ALONE or name.startswith("tpch_") or (args.names and not any(n in name for n in args.names)):
                continue
            ran += 1
            for record, what in run(script, args.postgres or server.conninfo, number):
                seen.add(record.name(name))
                if record.name(name) in accepted and not args.all:
                    continue
                new += 1
                print(f"{script.name}:{record.line}: {record.name(name)}\n   {record.statement}\n   => {what}")
    finally:
        if server:
            server.end()
    gone = [] if args.names else sorted(accepted - seen)
    for name in gone:
        print(f"differences.txt: {name} does not differ (any more)")
    print(f"postgres: {ran} scripts, {len(seen)} known or new differences, {new} new")
    return 1 if (new and not args.all) or gone else 0


if __name__ == "__main__":
    sys.exit(main())
