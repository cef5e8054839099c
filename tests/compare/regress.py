"""PostgreSQL's own regression scripts, sent statement by statement to `lstore serve` and to PostgreSQL.

The scripts are those of `src/test/regress/sql` in PostgreSQL's sources (`point`, `box`, `geometry`, `rangetypes`, `gist`, ...);
they are not part of this tree, so a folder of them is named. Both servers get each script in a database of its own, each statement
by itself and in order. Of an error the SQLSTATE is compared, of rows their texts: in any order where the statement has no ORDER BY.
Numbers with a point are equal where they differ by less than a millionth of a millionth of themselves, as psql's scripts are
compared with `extra_float_digits` of 0. What psql itself reads (`\\d`, `\\pset`), copies from standard input and plans are left out.

Told are statements that lstore refuses as not supported (0A000), statements that fail because an earlier one did (a missing table,
function or type: 42P01, 42883, 42704; an ended transaction: 25P02), and all other differences, which are printed.
"""
import argparse
import pathlib
import re
import sys

from psycopg import pq

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import servers  # noqa: E402

# Copies that need a client, plans, and settings that choose among PostgreSQL's plans or shorten its numbers.
LEFT_OUT = re.compile(r"copy\b.*\b(stdin|stdout)|vacuum|analyze|explain|(re)?set\s+(enable_|extra_float_digits|work_mem)", re.I | re.S)
NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")


def statements(text):
    """(line, statement) of a script: split at semicolons outside of quotes, comments and bodies."""
    pattern = re.compile(
        r"(?P<skip>--[^\n]*|/\*.*?\*/)|(?P<quoted>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
        r"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)|(?P<meta>^\\[^\n]*)|(?P<end>;)|(?P<atomic>\bbegin\s+atomic\b.*?\bend\b)",
        re.S | re.M | re.I,
    )
    at, start = 0, 0
    pieces = []
    for found in pattern.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        if found["quoted"] or found["atomic"]:
            pieces.append(found[0])
        elif found["meta"]:
            pieces = []
            start = at
        elif found["end"]:
            statement = "".join(pieces).strip()
            if statement:
                yield text.count("\n", 0, start) + 1, statement
            pieces, start = [], at


def near(ours, theirs):
    """Whether two texts are equal but for the last digits of their numbers."""
    if ours == theirs:
        return True
    if ours is None or theirs is None or NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs))
    return all(abs(float(a) - float(b)) <= 1e-12 * max(abs(float(a)), abs(float(b)), 1e-300) for a, b in pairs)


def is_ordered(statement):
    """Whether the rows of a statement have an order, which one of a query within it gives them not."""
    outside = re.sub(r"'(?:[^']|'')*'", "''", statement)
    while (less := re.sub(r"\([^()]*\)", "", outside)) != outside:
        outside = less
    return re.search(r"\border\s+by\b", outside, re.I) is not None


def difference(statement, ours, theirs):
    """What lstore says otherwise, or None."""
    if ours.failed or theirs.failed:
        if ours.code == theirs.code:
            return None
        said = [f"{a.code} {a.message}" if a.failed else f"{a.tag} {list(a.rows[:5])}" for a in (ours, theirs)]
        return f"{said[0]}\n      PostgreSQL: {said[1]}"
    mine, other = list(ours.rows), list(theirs.rows)
    if not is_ordered(statement):
        def place(row):
            """Rows by their texts without numbers first, whose last digits may differ."""
            return [NUMBER.sub("#", value or "") for value in row], str(row)

        mine, other = sorted(mine, key=place), sorted(other, key=place)
    same = len(mine) == len(other) and all(
        len(a) == len(b) and all(near(x, y) for x, y in zip(a, b)) for a, b in zip(mine, other)
    )
    if same:
        return None
    apart = [(a, b) for a, b in zip(mine, other) if a != b][:3]
    return f"{len(mine)} rows, PostgreSQL {len(other)}; first apart: {apart}"


def connect(conninfo):
    session = pq.PGconn.connect(conninfo.encode())
    if session.status != pq.ConnStatus.OK:
        raise SystemExit(f"regress: {session.error_message.decode()}")
    session.exec_(b"SET statement_timeout = '30s'")
    session.exec_(b"SET client_min_messages = error")
    return session


def ask(session, statement):
    result = session.exec_(statement.encode())
    if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT):
        raise SystemExit(f"regress: COPY cannot be compared: {statement}")
    return servers.read(result, result.status)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="the program lstore")
    parser.add_argument("folder", type=pathlib.Path, help="a folder with PostgreSQL's scripts (NAME.sql)")
    parser.add_argument("names", nargs="*", help="names of scripts; without any, all of the folder")
    parser.add_argument("--before", type=pathlib.Path, metavar="FILE", help="a script that both run first, such as tables of test_setup")
    parser.add_argument("--quiet", action="store_true", help="print sums alone")
    args = parser.parse_args()
    if why := servers.missing():
        print(f"regress: {why}")
        return 0
    names = args.names or sorted(path.stem for path in args.folder.glob("*.sql"))
    postgres = servers.Postgres()
    try:
        failed = [name for name in names if compare(args, name, postgres)]
    finally:
        postgres.end()
    return 1 if failed else 0


def compare(args, name, postgres):
    """One script on both; whether any statement differs."""
    main_session = connect(postgres.conninfo)
    main_session.exec_(f"CREATE DATABASE regress_{name}".encode())
    main_session.finish()
    lstore = servers.Lstore(args.program)
    try:
        ours, theirs = connect(lstore.conninfo), connect(f"{postgres.conninfo} dbname=regress_{name}")
        for _, statement in statements(args.before.read_text()) if args.before else ():
            ask(ours, statement), ask(theirs, statement)
        counts = dict.fromkeys(["equal", "refused", "follow", "differ"], 0)
        for line, statement in statements((args.folder / f"{name}.sql").read_text()):
            if LEFT_OUT.match(statement):
                continue
            answers = ask(ours, statement), ask(theirs, statement)
            what = difference(statement, *answers)
            kind = "equal" if not what else {"0A000": "refused", "42P01": "follow", "42883": "follow", "42704": "follow", "25P02": "follow"}.get(
                answers[0].code, "differ")
            counts[kind] += 1
            if what and not args.quiet:
                print(f"{name}.sql:{line}: [{kind}] {' '.join(statement.split())[:300]}\n   => {what}")
            if not lstore.alive():
                print(f"{name}.sql:{line}: lstore ended")
                return True
        ours.finish(), theirs.finish()
    finally:
        lstore.end()
    print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
