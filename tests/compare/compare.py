"""Sends random statements to lstore and to PostgreSQL and tells where their answers differ."""
import argparse
import collections
import json
import random
import re
import sys
import time

import judge
import known
import servers
import tree
from statements import FAMILIES, Statements
from tables import Table

CASES_A_ROUND = 120
# Differences that are told apart by their messages, and those that are clear without a smaller statement.
MESSAGES = {"internal", "unsupported", "refused", "code", "accepted", "limit"}
CHEAP = {"types", "names"}


class Pair:
    """A connection to each of the two servers."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = servers.Connection("lstore", ours), servers.Connection("PostgreSQL", theirs)
        for connection in (self.ours, self.theirs):
            connection.run(["SET statement_timeout = '10s'", "SET extra_float_digits = 1"])

    def run(self, statements):
        ours, theirs = [], []
        for start in range(0, len(statements), servers.BATCH):
            batch = statements[start : start + servers.BATCH]
            self.ours.send(batch)
            self.theirs.send(batch)
            theirs.extend(self.theirs.receive() for _ in batch)
            ours.extend(self.ours.receive() for _ in batch)
        return list(zip(ours, theirs))


def first_difference(case, answers):
    """The first statement of a case of which the answers differ, with the kind of the difference."""
    for statement, (ours, theirs) in zip(case.statements, answers):
        found = judge.difference(ours, theirs, case.ordered)
        if found is None and statement is case.root and theirs.failed:
            return None
        if found is not None:
            return found[0], found[1], ours, theirs
    return None


def signature(kind, what, text):
    """What differences of one cause have in common, as far as can be told."""
    if kind in MESSAGES:
        what = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "?", what)
        return f"{kind} {what[:70]}"
    if kind in ("types", "names"):
        return f"{kind} {what}"
    text = re.sub(r"'(?:[^']|'')*'", "'?'", text)
    text = re.sub(r"\b[a-z]+\d*\.(\w+)", r"\1", text)
    return f"{kind} " + re.sub(r"\b(\d+|t\d+|[a-z]|ts|id|[a-z]\d+)\b", "?", text)


class Run:
    """Counts and prints what is found."""

    def __init__(self, options, pair):
        self.options, self.pair = options, pair
        self.found = collections.Counter()
        self.minimised = collections.Counter()
        self.known = collections.Counter()
        self.statements = 0
        self.failed_on_both = 0
        self.started = time.monotonic()
        self.shown_at = 0

    def round(self, seed, only=None):
        rng = random.Random(f"tables {seed}")
        tables = [Table(f"t{i}", rng, self.options.without) for i in range(1, 4)]
        self.pair.run([s for table in tables for s in table.statements])
        indexes = range(CASES_A_ROUND) if only is None else [only]
        cases = []
        for index in indexes:
            cases.append(Statements(random.Random(f"{seed}/{index}"), tables, self.options.only, self.options.without).case())
        for start in range(0, len(cases), 24):
            self.batch(seed, indexes[start : start + 24], cases[start : start + 24])
            if self.over():
                return

    def over(self):
        o = self.options
        return (o.statements and self.statements >= o.statements) or (
            o.minutes and time.monotonic() - self.started > o.minutes * 60)

    def batch(self, seed, indexes, cases):
        statements = [str(s) for case in cases for s in case.statements]
        try:
            answers = self.pair.run(statements)
        except servers.Gone as gone:
            self.report(seed, indexes[0], "gone", f"{gone} ended the connection", " ; ".join(statements), None, None, "gone")
            raise
        self.statements += len(statements)
        at = 0
        for index, case in zip(indexes, cases):
            mine = answers[at : at + len(case.statements)]
            at += len(case.statements)
            self.failed_on_both += mine[-1][1].failed
            found = first_difference(case, mine)
            if found is not None:
                self.differs(seed, index, case, found)
        self.progress()

    def differs(self, seed, index, case, found):
        kind, what, ours, theirs = found
        if self.options.kinds and kind not in self.options.kinds:
            self.known["of a kind that was not asked for"] += 1
            return
        if self.leaves_out(known.reason(kind, what, str(case.root))):
            return
        if self.is_to_minimise(kind, what):
            kind, what, ours, theirs = self.minimised_difference(case, found)
            why = known.reason(kind, what, str(case.root)) or known.left_open(kind, what, str(case.root))
            if self.leaves_out(why):
                return
        text = "; ".join(map(str, case.statements))
        self.report(seed, index, kind, what, text, ours, theirs, signature(kind, what, str(case.root)), case.family)

    def leaves_out(self, why):
        """Counts a difference that is known, if there is a reason and the options do not ask for it."""
        if why and self.options.leave_out:
            self.known[why] += 1
            return True
        return False

    def is_to_minimise(self, kind, what):
        if kind in CHEAP or not self.options.minimise:
            return False
        if kind not in MESSAGES or known.may_be_left_open(kind, what):
            return True
        early = signature(kind, what, "")
        self.minimised[early] += 1
        return self.minimised[early] <= 2

    def minimised_difference(self, case, found):
        """Cuts the case down as long as there is an error of the same kind and code (its text may change), or rows that differ."""
        kind, codes = found[0], [answer.code for answer in found[2:]]

        def asked():
            return first_difference(case, self.pair.run([str(s) for s in case.statements]))

        def still():
            again = asked()
            return again is not None and again[0] == kind and [answer.code for answer in again[2:]] == codes

        tree.minimise(case.root, still)
        return asked() or found

    def report(self, seed, index, kind, what, text, ours, theirs, sign, family=""):
        self.found[sign] += 1
        if self.found[sign] > self.options.each:
            return
        rows = [list(map(list, a.rows[:6])) if a is not None and not a.failed else None for a in (ours, theirs)]
        if self.options.json:
            print(json.dumps({"seed": f"{seed}/{index}", "family": family, "kind": kind, "what": what[:300], "statement": text,
                              "lstore": rows[0], "postgresql": rows[1]}), flush=True)
            return
        self.clear()
        print(f"-- {kind} ({family}, --seed {seed}/{index}): {what[:300]}\n{text};")
        if rows[0] is not None or rows[1] is not None:
            print(f"--   lstore     {rows[0]}\n--   PostgreSQL {rows[1]}")
        sys.stdout.flush()

    def clear(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")

    def progress(self):
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.shown_at > 0.5:
            self.shown_at = now
            rate = self.statements / max(now - self.started, 0.1) * 60
            sys.stderr.write(f"\r\x1b[K{self.statements} statements, {rate:.0f} a minute, {sum(self.found.values())} differences")
            sys.stderr.flush()


def parse():
    parser = argparse.ArgumentParser(prog="tests/compare/run", description=__doc__)
    parser.add_argument("lstore", help="the program, which is started on a temporary folder")
    parser.add_argument("--postgres", metavar="CONNINFO", help="a running PostgreSQL (tables t1, t2, t3 of its database are "
                        "replaced); without it a private one is started")
    parser.add_argument("--seed", default="1", help="the first round, or one statement (ROUND/STATEMENT) to replay")
    parser.add_argument("--statements", type=int, default=0, help="end after so many")
    parser.add_argument("--minutes", type=float, default=0, help="end after so many; without either limit after one minute")
    parser.add_argument("--only", type=lambda s: s.split(","), help=f"families of statements, of {', '.join(sorted(set(FAMILIES)))}")
    parser.add_argument("--without", type=lambda s: s.split(","), default=[], help="types or constructs to leave out: char, varchar(n), ...")
    parser.add_argument("--kinds", type=lambda s: s.split(","), help="look for these kinds of difference only: rows, types, names, "
                        "tag, columns, code, accepted, refused, unsupported, internal, limit, gone")
    parser.add_argument("--all", dest="leave_out", action="store_false", help="show known differences, too")
    parser.add_argument("--no-minimise", dest="minimise", action="store_false", help="show statements as they were generated")
    parser.add_argument("--each", type=int, default=1, help="examples of each kind of difference that are shown")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    if not options.statements and not options.minutes:
        options.minutes = 1
    return options


def main():
    options = parse()
    if not options.postgres and servers.missing():
        print(f"tests/compare: skipped, {servers.missing()}")
        return 0
    started = [servers.Lstore(options.lstore)]
    try:
        if not options.postgres:
            started.append(servers.Postgres())
        theirs = options.postgres or started[1].conninfo
        run = Run(options, Pair(started[0].conninfo, theirs))
        seed, _, only = options.seed.partition("/")
        seed = int(seed)
        if only:
            options.each = 10
            run.round(seed, int(only))
        while not only and not run.over():
            try:
                run.round(seed)
            except servers.Gone:
                if not started[0].alive():
                    started[0].start()
                run.pair = Pair(started[0].conninfo, theirs)
            seed += 1
    finally:
        for server in started:
            server.end()
    return summary(run, options, seed)


def summary(run, options, seed):
    run.clear()
    elapsed = time.monotonic() - run.started
    differences = sum(run.found.values())
    if options.json:
        print(json.dumps({"statements": run.statements, "seconds": round(elapsed, 1), "failed_on_both": run.failed_on_both,
                          "differences": differences, "known": dict(run.known), "next_seed": seed}))
    else:
        for sign, count in run.found.most_common():
            if count > 1:
                print(f"-- {count} times: {sign}")
        for reason, count in run.known.most_common():
            print(f"-- {count} known: {reason}")
        print(f"tests/compare: {run.statements} statements in {elapsed:.0f} s, {run.failed_on_both} of them failed on PostgreSQL, "
              f"{differences} differences, {sum(run.known.values())} known; the next seed is {seed}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
