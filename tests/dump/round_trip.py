"""Dumps of lstore loaded by PostgreSQL, and pg_dump's by lstore.

    application.sql -> lstore -> lstore dump -> PostgreSQL -> pg_dump -> lstore -> lstore dump
                                     |                                                |
                                     +------------- the same rows and names ----------+

    application.sql -> lstore -> pg_dump -> PostgreSQL -> pg_dump -> lstore -> pg_dump
                                  |   |                    |                    |
                                  |   +--- rows and names -+----- to a byte ----+
                                  +-------> lstore ------------> pg_dump: to a byte

Texts of queries are each server's own, so that of what lstore and PostgreSQL tell rows are compared, the numbers of sequences, columns
with their types, and what constraints, indexes, views and comments there are.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))
import servers  # noqa: E402

PROGRAM = None
NAMED = re.compile(r"^(?:CREATE (?:SCHEMA|TYPE|DOMAIN|SEQUENCE|TABLE|VIEW|FUNCTION|MATERIALIZED VIEW|(?:UNIQUE )?INDEX) \S+|"
                   r"    ADD CONSTRAINT (?:\"[^\"]*\"|\S+) (?:PRIMARY KEY|UNIQUE|FOREIGN KEY) \([^)]*\)|"
                   r"COMMENT ON .*|  WITH (?:LOCAL|CASCADED) CHECK OPTION|REFRESH .*|SELECT pg_catalog.setval.*|ALTER SEQUENCE .* OWNED BY .*)")
COLUMN = re.compile(r"^    ((?:\"[^\"]*\"|\w+) .*?)(?: DEFAULT .*| GENERATED .*|)(?: NOT NULL.*)?,?$")


def lstore(*arguments):
    """What the program prints."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"lstore {arguments}: {done.stderr}")
    return done.stdout


# What PostgreSQL has not: other methods of indexes, and unique keys by `hash`.
OWN_INDEXES = ["users_uid", "shop.booking_place"]


def lines(dump, owner):
    """A dump without what each has of its own: comments, empty lines, the key of `\\restrict`, the owner."""
    kept = [line.strip() for line in dump.split("\n") if line.strip() and not line.startswith(("--", "\\restrict", "\\unrestrict"))]
    return [line.replace(f"OWNER TO {owner};", "OWNER TO x;") for line in kept]


def parts(dump):
    """The rows of each table, and what else a dump names, without the order of tables."""
    rows, names, table, is_table = {}, [], None, False
    for line in dump.split("\n"):
        if table is not None:
            if line == "\\.":
                table = None
            else:
                rows[table].append(line)
        elif line.startswith("COPY "):
            table = line
            rows[table] = []
        elif NAMED.match(line):
            is_table = line.startswith("CREATE TABLE ")
            names.append(NAMED.match(line)[0])
        elif line.startswith(")"):
            is_table = False
        elif is_table and COLUMN.match(line) and not line.startswith("    CONSTRAINT"):
            names.append(COLUMN.match(line)[1])
    return {name: sorted(lines) for name, lines in rows.items()}, sorted(names)


class RoundTrip(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.first = self.folder / "first"
        lstore(self.first, "-f", HERE / "application.sql")

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_dump_loads_into_postgresql_and_what_pg_dump_makes_of_it_comes_back(self):
        missing = servers.missing()
        if missing:
            self.skipTest(missing)
        postgres = servers.Postgres()
        self.addCleanup(postgres.end)
        dumped = lstore("dump", self.first)
        client = [f"{postgres.bin}/psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", postgres.conninfo]
        loaded = subprocess.run([*client, "-f", self.file("dump.sql", dumped)], capture_output=True, text=True)
        self.assertEqual((loaded.returncode, loaded.stderr), (0, ""))
        theirs = subprocess.run([f"{postgres.bin}/pg_dump", postgres.conninfo], capture_output=True, text=True, check=True)
        second = self.folder / "second"
        lstore(second, "-f", self.file("pg_dump.sql", theirs.stdout))
        before, after = parts(dumped), parts(lstore("dump", second))
        self.assertEqual(before[0], after[0])
        self.assertEqual(before[1], after[1])
        self.assertGreater(len(before[1]), 50)

    def pg_dump(self, postgres, directory, *options):
        """What the real `pg_dump` makes of a directory."""
        served = servers.Lstore(PROGRAM, directory)
        try:
            done = subprocess.run([f"{postgres.bin}/pg_dump", served.conninfo, *options], capture_output=True, text=True)
        finally:
            served.end()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def loaded(self, name, dump):
        """A new database of what `pg_dump` wrote."""
        lstore(self.folder / name, "-f", self.file(f"{name}.sql", dump))
        return self.folder / name

    def test_what_pg_dump_makes_of_lstore_loads_into_postgresql_and_into_a_new_database(self):
        missing = servers.missing()
        if missing:
            self.skipTest(missing)
        postgres = servers.Postgres()
        self.addCleanup(postgres.end)
        whole = self.pg_dump(postgres, self.first)
        again = self.pg_dump(postgres, self.loaded("again", whole))
        self.assertEqual(lines(whole, "lstore"), lines(again, "lstore"))
        schema = lines(self.pg_dump(postgres, self.first, "--schema-only"), "lstore")
        self.assertEqual([line for line in schema if line not in lines(whole, "lstore")], [])

        lstore(self.first, "-f", self.file("own.sql", "".join(f"DROP INDEX {name};" for name in OWN_INDEXES)))
        ours = self.pg_dump(postgres, self.first)
        client = [f"{postgres.bin}/psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", postgres.conninfo]
        given = self.file("ours.sql", ours.replace("OWNER TO lstore;", "OWNER TO CURRENT_USER;"))
        loaded = subprocess.run([*client, "-f", given], capture_output=True, text=True)
        self.assertEqual((loaded.returncode, loaded.stderr), (0, ""))
        theirs = subprocess.run([f"{postgres.bin}/pg_dump", postgres.conninfo], capture_output=True, text=True, check=True)
        self.assertEqual(parts(ours), parts(theirs.stdout))
        owner = re.search(r"OWNER TO (\S+);", theirs.stdout)[1]
        back = self.pg_dump(postgres, self.loaded("back", theirs.stdout))
        self.assertEqual(lines(theirs.stdout, owner), lines(back, "lstore"))

    def test_a_dump_loads_into_a_new_database(self):
        dumped = lstore("dump", self.first)
        second = self.folder / "second"
        lstore(second, "-f", self.file("dump.sql", dumped))
        self.assertEqual(parts(dumped), parts(lstore("dump", second)))

    def test_a_dump_may_be_of_some_tables_of_the_schema_or_of_the_rows_alone(self):
        schema, data = lstore("dump", self.first, "--schema-only"), lstore("dump", self.first, "--data-only")
        self.assertTrue("COPY" not in schema and "setval" not in schema and "CREATE TABLE" in schema)
        self.assertTrue("COPY" in data and "setval" in data and "CREATE" not in data and "ADD CONSTRAINT" not in data)
        one = lstore("dump", self.first, "-t", "shop.orders")
        self.assertEqual(re.findall(r"^(?:CREATE TABLE|COPY|CREATE SEQUENCE|CREATE VIEW) \S+", one, re.M),
                         ["CREATE TABLE shop.orders", "COPY shop.orders"])
        missing = subprocess.run([PROGRAM, "dump", self.first, "-t", "nothing"], capture_output=True, text=True)
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertIn('there is no table "nothing"', missing.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lstore", help="the program")
    given, rest = parser.parse_known_args()
    PROGRAM = given.lstore
    unittest.main(argv=[sys.argv[0], *rest])
