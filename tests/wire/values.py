"""Values of every type on their way to a server and back, in text and binary; what errors tell a program. The same tests pass against
PostgreSQL. The server's address is in the environment of libpq."""
import datetime as dt
import math
import struct
import unittest
import uuid
from decimal import Decimal

import psycopg
from psycopg import sql
from psycopg.types import TypeInfo
from psycopg.types.hstore import register_hstore
from psycopg.types.json import Json, Jsonb
from psycopg.types.numeric import Float4, Int2, Int4, Int8
from psycopg.types.range import DateRange, Int4Range, Int8Range, NumericRange, TimestampRange, TimestamptzRange

INFINITY, NAN = float("inf"), float("nan")


def text_of(value):
    """A list as the text of an array."""
    if isinstance(value, list):
        return "{" + ",".join(map(text_of, value)) + "}"
    return "NULL" if value is None else f'"{value}"'


# The ends of each type's range, and what lies between.
EXTREMES = {
    "boolean": [True, False],
    "smallint": [Int2(-32768), Int2(-1), Int2(0), Int2(32767)],
    "int": [Int4(-(2**31)), Int4(-1), Int4(0), Int4(2**31 - 1)],
    "bigint": [Int8(-(2**63)), Int8(-1), Int8(0), Int8(2**63 - 1)],
    "real": [Float4(3.4028234663852886e38), Float4(1.401298464324817e-45), Float4(-INFINITY), Float4(INFINITY), Float4(NAN)],
    "double precision": [1.7976931348623157e308, 5e-324, -0.0, 0.1, -INFINITY, INFINITY, NAN],
    "numeric(38,10)": [
        Decimal("9999999999999999999999999999.9999999999"),
        Decimal("-9999999999999999999999999999.9999999999"),
        Decimal("0.0000000001"),
        Decimal("-0.0000000001"),
        Decimal("0E-10"),
        Decimal("10000.0000000000"),
    ],
    "numeric(38,0)": [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0)],
    "text": ["", " ", "NULL", "\\N", "'\"\\\t\r\n", "\u00e4\u20ac\U0001f600", "x" * 1_000_000],
    "varchar(3)": ["", "abc", "\u00e4\u20ac\U0001f600"],
    "bytea": [b"", b"\x00", bytes(range(256)), bytes(range(256)) * 1_000],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(9999, 12, 31)],
    "timestamp": [
        dt.datetime(1, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2000, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ],
    "timestamptz": [
        dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc),
        dt.datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=dt.timezone(dt.timedelta(hours=-5, minutes=-30))),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone.utc),
    ],
    "time": [dt.time(0), dt.time(4, 5, 6, 7), dt.time(23, 59, 59, 999999)],
    "interval": [
        dt.timedelta(0),
        dt.timedelta(days=-1, microseconds=1),
        dt.timedelta(days=40, hours=5, microseconds=-7),
        dt.timedelta(days=99_999, seconds=86_399, microseconds=999_999),
    ],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("550e8400-e29b-41d4-a716-446655440000")],
}

RANGES = {
    "int4range": [Int4Range(Int4(1), Int4(5)), Int4Range(None, Int4(-7)), Int4Range(Int4(-(2**31)), None), Int4Range(empty=True)],
    "int8range": [Int8Range(Int8(-(2**63)), Int8(2**63 - 1)), Int8Range(None, None, "()"), Int8Range(empty=True)],
    "numrange": [NumericRange(Decimal("-1.5"), Decimal("2.25"), "[]"), NumericRange(None, Decimal(7), "(]")],
    "daterange": [DateRange(dt.date(1969, 12, 31), dt.date(2000, 2, 29)), DateRange(dt.date(1, 1, 1), None)],
    "tsrange": [TimestampRange(dt.datetime(2000, 1, 1), dt.datetime(2026, 11, 22, 1, 2, 3, 4), "(]")],
    "tstzrange": [TimestamptzRange(None, dt.datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=dt.timezone.utc), "()")],
}
# Of each shape its number in the catalog, its text, and the numbers of its binary form.
SHAPES = {
    "point": (600, "(1.5,-2)", [1.5, -2.0]),
    "box": (603, "(3,4),(1,2.25)", [3.0, 4.0, 1.0, 2.25]),
    "circle": (718, "<(1,2),3.5>", [1.0, 2.0, 3.5]),
}


def connect(**options):
    return psycopg.connect(autocommit=True, **options)


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return type(one) is type(other) and one == other


class Values(unittest.TestCase):
    def check(self, name, given, found):
        if isinstance(given, Float4):
            given, found = (struct.unpack("f", struct.pack("f", value))[0] for value in (given, found))
        elif isinstance(given, int) and not isinstance(given, bool):
            given = int(given)
        with self.subTest(name):
            self.assertTrue(same(found, given), f"{name}: {given!r} came back as {found!r}")

    def test_the_ends_of_each_type_go_both_ways_in_both_formats(self):
        # A plan of the table of another type would be no good.
        with connect(prepare_threshold=None) as connection:
            for name, values in EXTREMES.items():
                connection.execute("DROP TABLE IF EXISTS extremes")
                connection.execute(f"CREATE TABLE extremes (id int PRIMARY KEY, v {name})")
                for binary in (False, True):
                    mark = sql.SQL("%b" if binary else "%t")
                    insert = sql.SQL("INSERT INTO extremes VALUES ({}, {})").format(mark, mark)
                    for at, value in enumerate([*values, None]):
                        connection.execute("DELETE FROM extremes")
                        connection.execute(insert, (Int4(at), value))
                        for binary_result in (False, True):
                            cursor = connection.cursor(binary=binary_result)
                            found = cursor.execute("SELECT v FROM extremes WHERE id = %s", (at,)).fetchone()[0]
                            self.check(name, value, found) if value is not None else self.assertIsNone(found)

    def test_ranges_go_both_ways_in_both_formats(self):
        with connect(prepare_threshold=None) as connection:
            for name, values in RANGES.items():
                connection.execute("DROP TABLE IF EXISTS ranges")
                connection.execute(f"CREATE TABLE ranges (v {name})")
                for value, mark, binary in ((v, m, b) for v in values for m in ("%t", "%b") for b in (False, True)):
                    connection.execute("DELETE FROM ranges")
                    connection.execute(f"INSERT INTO ranges VALUES ({mark})", (value,))
                    cursor = connection.cursor(binary=binary)
                    with self.subTest(name, value=value):
                        self.assertEqual(cursor.execute("SELECT v FROM ranges").fetchone(), (value,))
                        found = cursor.execute(f"SELECT count(*) FROM ranges WHERE v = {mark}", (value,)).fetchone()
                        self.assertEqual(found, (1,))

    def test_blanks_fill_up_characters_in_both_formats(self):
        given = {1: "ab", 2: "", 3: None, 4: "\u00e4\u20ac\U0001f600", 5: "abcde", 6: "ab   "}
        with connect(prepare_threshold=0) as connection:
            connection.execute("DROP TABLE IF EXISTS filled")
            connection.execute("CREATE TABLE filled (id int PRIMARY KEY, c char(5), word varchar(5))")
            connection.cursor().executemany("INSERT INTO filled VALUES (%s, %s, 'v ')", given.items())
            told = {number: text and text.ljust(5) for number, text in given.items()} | {2: "     "}
            for binary in (False, True):
                cursor = connection.cursor(binary=binary)
                every = cursor.execute("SELECT id, c, word FROM filled WHERE id BETWEEN %s AND %s ORDER BY id", (1, 9)).fetchall()
                self.assertEqual(every, [(number, text, "v ") for number, text in told.items()])
                self.assertEqual((cursor.description[1].type_code, cursor.description[1].display_size), (1042, 5))
                once = "SELECT DISTINCT c FROM filled WHERE id BETWEEN %s AND %s ORDER BY c "
                up = [told[2], told[1], told[5], told[4], None]
                for order, rows in (("", up), ("DESC", up[::-1]), ("NULLS FIRST", [None, *up[:-1]])):
                    found = cursor.execute(once + order, (1, 9)).fetchall()
                    self.assertEqual(found, [(text,) for text in rows], order)
                self.assertEqual(cursor.execute("SELECT c FROM filled WHERE id = %s", (4,)).fetchone(), (told[4],))
                computed = cursor.execute("SELECT 'x'::char(3), NULL::char(3), max(c), min(word) FROM filled").fetchone()
                self.assertEqual(computed, ("x  ", None, told[4], "v "))

    def test_texts_without_case_go_both_ways_in_both_formats(self):
        with connect(prepare_threshold=None) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citext")
            connection.execute("DROP TABLE IF EXISTS caseless")
            connection.execute("CREATE TABLE caseless (v citext PRIMARY KEY)")
            for value, binary in ((v, b) for v in ("", "Ann@X.org", "\u00c4\u20ac") for b in (False, True)):
                connection.execute("DELETE FROM caseless")
                connection.execute("INSERT INTO caseless VALUES (%s)", (value,))
                with self.subTest(value, binary=binary):
                    cursor = connection.cursor(binary=binary)
                    # What a driver does not know it gives as it comes.
                    found = cursor.execute("SELECT v FROM caseless WHERE v = %s", (value.swapcase(),)).fetchone()[0]
                    self.assertEqual(found, value.encode() if binary else value)
                    self.assertEqual(cursor.description[0].type_display, str(cursor.description[0].type_code))

    def test_pairs_go_both_ways_in_both_formats(self):
        with connect(prepare_threshold=None) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS hstore")
            connection.execute("DROP TABLE IF EXISTS paired")
            connection.execute("CREATE TABLE paired (v hstore)")
            register_hstore(TypeInfo.fetch(connection, "hstore"), connection)
            for value, binary in ((v, b) for v in ({}, {"a": "1", "b": None}, {"\u00c4 \"x": "\\"}) for b in (False, True)):
                connection.execute("DELETE FROM paired")
                connection.execute("INSERT INTO paired VALUES (%s)", (value,))
                with self.subTest(value, binary=binary):
                    self.assertEqual(connection.cursor(binary=binary).execute("SELECT v FROM paired").fetchone(), (value,))
                    found = connection.execute("SELECT count(*) FROM paired WHERE v = %s", (value,)).fetchone()[0]
                    self.assertEqual(found, 1)

    def test_shapes_go_both_ways_in_both_formats(self):
        with connect(prepare_threshold=None) as connection:
            for name, (number, text, numbers) in SHAPES.items():
                packed = struct.pack(f"!{len(numbers)}d", *numbers)
                connection.execute("DROP TABLE IF EXISTS shapes")
                connection.execute(f"CREATE TABLE shapes (v {name})")
                for given, form in ((text.encode(), 0), (packed, 1)):
                    connection.execute("DELETE FROM shapes")
                    command = b"INSERT INTO shapes VALUES ($1)"
                    done = connection.pgconn.exec_params(command, [given], [number], [form])
                    with self.subTest(name, form=form):
                        self.assertEqual(done.error_message, b"")
                        cursor = connection.execute("SELECT v FROM shapes")
                        self.assertEqual((cursor.description[0].type_code, cursor.fetchone()), (number, (text,)))
                        cursor = connection.cursor(binary=True).execute("SELECT v FROM shapes")
                        self.assertEqual(bytes(cursor.fetchone()[0]), packed)

    def test_parameters_are_values_of_queries_too(self):
        with connect() as connection:
            for name, values in EXTREMES.items():
                # Numbers of a type without digits after the point need more than that type has here.
                if name == "numeric(38,0)":
                    continue
                for mark, value in ((mark, value) for mark in ("%t", "%b") for value in values):
                    cursor = connection.cursor(binary=mark == "%b")
                    cursor.execute(f"SELECT {mark}::{name.split('(')[0]}", (value,))
                    found = cursor.fetchone()[0]
                    if isinstance(value, Decimal):
                        self.assertEqual(found, value, name)
                    else:
                        self.check(name, value, found)

    def test_values_out_of_range_are_told_with_the_right_code(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS narrow")
            connection.execute(
                "CREATE TABLE narrow (s smallint, i int, l bigint, n numeric(5,2), v varchar(3), d date, u uuid, b boolean)"
            )
            cases = [
                ("s", "32768", "22003"),
                ("i", "-2147483649", "22003"),
                ("l", "9223372036854775808", "22003"),
                ("n", "1000", "22003"),
                ("v", "abcd", "22001"),
                ("d", "2021-02-29", "22008"),
                ("d", "soon", "22007"),
                ("u", "550e8400", "22P02"),
                ("b", "perhaps", "22P02"),
                ("i", "1.5", "22P02"),
                ("i", "", "22P02"),
            ]
            for column, value, code in cases:
                with self.assertRaises(psycopg.Error, msg=(column, value)) as caught:
                    connection.execute(f"INSERT INTO narrow ({column}) VALUES (%s)", (value,))
                with self.subTest(column, value=value):
                    self.assertEqual(caught.exception.sqlstate, code, str(caught.exception))
            self.assertEqual(connection.execute("SELECT count(*) FROM narrow").fetchone(), (0,))

    def test_json_goes_both_ways_in_both_formats(self):
        values = [{"b": [1, 2.5, None, True], "a": {"\u00e4\"": "\U0001f600\n"}}, [], {}, "x", 7, None, 1.5e10, [[[]]]]
        with connect(prepare_threshold=None) as connection:
            connection.execute("DROP TABLE IF EXISTS documents")
            connection.execute("CREATE TABLE documents (id int PRIMARY KEY, j json, b jsonb)")
            for mark in ("%t", "%b"):
                for value in values:
                    connection.execute("DELETE FROM documents")
                    connection.execute(f"INSERT INTO documents VALUES (1, {mark}, {mark})", (Json(value), Jsonb(value)))
                    # One is assigned to the other, and a literal to both.
                    connection.execute(f"INSERT INTO documents VALUES (2, {mark}, {mark})", (Jsonb(value), Json(value)))
                    for binary in (False, True):
                        cursor = connection.cursor(binary=binary)
                        for row in cursor.execute("SELECT j, b FROM documents ORDER BY id").fetchall():
                            self.assertEqual(row, (value, value))
                        found = cursor.execute(f"SELECT count(*) FROM documents WHERE b = {mark}", (Jsonb(value),))
                        self.assertEqual(found.fetchone(), (2,))
            connection.execute("UPDATE documents SET b = %s WHERE id = 1", (Jsonb({"k": {"n": [1, "two"]}}),))
            query = "SELECT b -> %s, b #>> %s, b @> %s, b ? %s FROM documents WHERE id = 1"
            found = connection.execute(query, ("k", ["k", "n", "1"], Jsonb({"k": {}}), "k")).fetchone()
            self.assertEqual(found, ({"n": [1, "two"]}, "two", True, True))
            for wrong, code in (("{", "22P02"), ('"\\u0000"', "22P05"), ("[" * 100_000, "54001")):
                with self.assertRaises(psycopg.Error) as caught:
                    connection.execute("INSERT INTO documents VALUES (3, NULL, %s)", (wrong,))
                self.assertEqual(caught.exception.sqlstate, code)
            copied = [(4, Json([1]), Jsonb({"a": 1})), (5, None, None)]
            with connection.cursor().copy("COPY documents FROM STDIN") as copy:
                for row in copied:
                    copy.write_row(row)
            found = connection.execute("SELECT j, b FROM documents WHERE id > 3 ORDER BY id").fetchall()
            self.assertEqual(found, [([1], {"a": 1}), (None, None)])

    def test_rows_are_copied_in_binary_both_ways(self):
        key = uuid.UUID(int=7)
        kinds = {
            "int4": (7, None, -(2**31)),
            "int8": (2**40, None, -1),
            "int2": (-3, None, 3),
            "bool": (True, None, False),
            "float4": (1.5, None, float("inf")),
            "float8": (-0.0, None, 1e300),
            "numeric": (Decimal("12.50"), None, Decimal("-0.0100000000")),
            "text": ("\u00e4\t\\N", None, ""),
            "bytea": (b"\x00\xff", None, b""),
            "date": (dt.date(2020, 1, 2), None, dt.date(1, 1, 1)),
            "time": (dt.time(1, 2, 3, 500000), None, dt.time(0)),
            "timestamp": (dt.datetime(2020, 1, 2, 3, 4, 5, 6), None, dt.datetime(1969, 12, 31)),
            "timestamptz": (dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), None, dt.datetime(1999, 1, 1, tzinfo=dt.timezone.utc)),
            "interval": (dt.timedelta(days=3, seconds=4), None, dt.timedelta(0)),
            "uuid": (key, None, key),
            "jsonb": (Jsonb({"a": [1]}), None, Jsonb(None)),
            "int4[]": ([1, None, 3], None, []),
            "text[]": (["a,b", None, ""], None, ["x"]),
        }
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS kinds")
            columns = ", ".join(f"c{at} {name}" for at, name in enumerate(kinds))
            connection.execute(f"CREATE TABLE kinds (id int PRIMARY KEY, {columns})")
            rows = list(zip((1, 2, 3), *kinds.values()))
            cursor = connection.cursor()
            with cursor.copy("COPY kinds FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["int4", *kinds])
                for row in rows:
                    copy.write_row(row)
            wanted = [tuple(value.obj if isinstance(value, Jsonb) else value for value in row) for row in rows]
            self.assertEqual(cursor.execute("SELECT * FROM kinds ORDER BY id").fetchall(), wanted)
            with cursor.copy("COPY (SELECT * FROM kinds ORDER BY id) TO STDOUT (FORMAT BINARY)") as copy:
                copy.set_types(["int4", *kinds])
                self.assertEqual(list(copy.rows()), wanted)
            with cursor.copy("COPY kinds TO STDOUT WITH BINARY") as copy:
                data = b"".join(copy)
            connection.execute("DELETE FROM kinds")
            with cursor.copy("COPY kinds FROM STDIN WITH BINARY") as copy:
                for at in range(0, len(data), 7):
                    copy.write(data[at : at + 7])
            self.assertEqual(cursor.execute("SELECT * FROM kinds ORDER BY id").fetchall(), wanted)
            connection.execute("DELETE FROM kinds")
            with cursor.copy("COPY kinds TO STDOUT (FORMAT BINARY)") as copy:
                self.assertEqual(b"".join(copy), b"PGCOPY\n\xff\r\n\x00" + b"\x00" * 8 + b"\xff\xff")
            head = data[:19]
            for wrong, code in (
                (b"PGCOPY\n", "22P04"),
                (head[:11] + b"\x00\x01\x00\x00" + head[15:], "22P04"),
                (head + b"\x00\x01", "22P04"),
                (data[:40], "22P04"),
                (data + b"\x00", "22P04"),
            ):
                with self.assertRaises(psycopg.Error) as caught:
                    with cursor.copy("COPY kinds FROM STDIN (FORMAT BINARY)") as copy:
                        copy.write(wrong)
                self.assertEqual(caught.exception.sqlstate, code, wrong)
            connection.execute("DROP TABLE IF EXISTS narrow")
            connection.execute("CREATE TABLE narrow (n int, t varchar(3))")
            for row, code in ((("\x00" * 3, "a"), "08P01"), (("\x00" * 5, "a"), "22P03"), (("\x00" * 4, "abcd"), "22001")):
                with self.assertRaises(psycopg.Error) as caught:
                    with cursor.copy("COPY narrow FROM STDIN (FORMAT BINARY)") as copy:
                        copy.set_types(["text", "text"])
                        copy.write_row(row)
                self.assertEqual(caught.exception.sqlstate, code, row)
            self.assertEqual(cursor.execute("SELECT count(*) FROM narrow").fetchone(), (0,))

    def test_columns_that_are_arrays_go_both_ways_in_both_formats(self):
        key = uuid.UUID(int=7)
        cases = {
            "int[]": [1, None, -3],
            "bigint[]": [2**40],
            "smallint[]": [],
            "text[]": ["a", "b,c", "", None, 'q"\\{}', "NULL", "\u00e4"],
            "varchar(5)[]": ["abc"],
            "boolean[]": [True, False, None],
            "float8[]": [1.5, float("inf")],
            "numeric(8,2)[]": [Decimal("1.50"), Decimal("-20.00")],
            "bytea[]": [b"\x00\xff", b""],
            "date[]": [dt.date(2020, 1, 2)],
            "timestamp[]": [dt.datetime(2020, 1, 2, 3, 4, 5, 600000)],
            "uuid[]": [key, None],
        }
        with connect(prepare_threshold=None) as connection:
            for name, value in cases.items():
                connection.execute("DROP TABLE IF EXISTS lists")
                connection.execute(f"CREATE TABLE lists (id int PRIMARY KEY, a {name})")
                for at, mark in enumerate(("%t", "%b", "%s")):
                    connection.execute(f"INSERT INTO lists VALUES (%s, {mark}::{name})", (at, value))
                with connection.cursor().copy("COPY lists FROM STDIN") as copy:
                    copy.write_row((3, value))
                    copy.write_row((4, None))
                for binary in (False, True):
                    cursor = connection.cursor(binary=binary)
                    found = cursor.execute("SELECT a FROM lists ORDER BY id").fetchall()
                    self.assertEqual(found, [(value,)] * 4 + [(None,)], (name, binary))
            connection.execute("CREATE TABLE IF NOT EXISTS tagged (id int PRIMARY KEY, tags text[], counts int[])")
            connection.execute("DELETE FROM tagged")
            connection.execute("INSERT INTO tagged VALUES (1, %s, %s)", (["a", "b"], [1, 2]))
            connection.execute("UPDATE tagged SET counts[%s] = %s, tags = tags || %s::text WHERE id = 1", (2, 9, "c"))
            self.assertEqual(connection.execute("SELECT tags, counts FROM tagged").fetchone(), (["a", "b", "c"], [1, 9]))
            query = "SELECT id FROM tagged WHERE tags @> %s::text[] AND %s = ANY (counts)"
            self.assertEqual(connection.execute(query, (["c"], 9)).fetchall(), [(1,)])

    def test_arrays_and_documents_are_looked_for_by_parameters(self):
        with connect(prepare_threshold=0) as connection:
            connection.execute("DROP TABLE IF EXISTS found")
            connection.execute("CREATE TABLE found (id int PRIMARY KEY, tags text[], nums int[], body jsonb)")
            rows = [(at, [f"t{at % 5}", "u"], [Int4(at % 7)], Jsonb({"a": at % 3, f"k{at}": None})) for at in range(40)]
            connection.cursor().executemany("INSERT INTO found VALUES (%s, %s, %s, %s)", rows)
            connection.execute("CREATE INDEX ON found USING gin (tags, nums)")
            connection.execute("CREATE INDEX ON found USING gin (body)")
            cases = [
                ("tags @> {}", ["t3", "u"], 8),
                ("tags && {}", ["t1", "t2", "none"], 16),
                ("{} <@ tags", ["t4"], 8),
                ("nums @> {}", [Int4(3)], 6),
                ("{} = ANY (nums)", Int4(3), 6),
                ("body @> {}", Jsonb({"a": 1}), 13),
                ("body ? {}", "k7", 1),
                ("body ?| {}", ["k7", "k8", "none"], 2),
                ("body ?& {}", ["a", "k7"], 1),
            ]
            for condition, value, count in cases:
                for mark in ("%t", "%b") * 2:
                    query = f"SELECT count(*) FROM found WHERE {condition.format(mark)}"
                    self.assertEqual(connection.execute(query, (value,)).fetchone(), (count,), (condition, mark))

    def test_arrays_come_back_and_are_taken_in_any(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS many")
            connection.execute("CREATE TABLE many (id int PRIMARY KEY, t text)")
            connection.execute("INSERT INTO many VALUES (1, 'a'), (2, 'b,\"'), (3, NULL)")
            for binary in (False, True):
                cursor = connection.cursor(binary=binary)
                self.assertEqual(cursor.execute("SELECT ARRAY['a', NULL, 'b,c']").fetchone(), (["a", None, "b,c"],))
                mark = "%b" if binary else "%t"
                ids = [Int4(1), Int4(3), Int4(7)]
                query = f"SELECT id FROM many WHERE id = ANY({mark}) ORDER BY id"
                self.assertEqual(cursor.execute(query, (ids,)).fetchall(), [(1,), (3,)])
                self.assertEqual(cursor.execute(query, ([2**40, 2],)).fetchall(), [(2,)])
                query = f"SELECT id FROM many WHERE t = ANY({mark}) ORDER BY id"
                self.assertEqual(cursor.execute(query, (["b,\"", "z"],)).fetchall(), [(2,)])
                query = f"SELECT id FROM many WHERE id <> ALL({mark}::int[]) ORDER BY id"
                self.assertEqual(cursor.execute(query, (ids,)).fetchall(), [(2,)])
            self.assertEqual(connection.execute("SELECT id FROM many WHERE id = ANY('{2,3}') ORDER BY 1").fetchall(), [(2,), (3,)])


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS strict")
            connection.execute("CREATE TABLE strict (id int PRIMARY KEY, name text NOT NULL, mail text UNIQUE)")
            connection.execute("INSERT INTO strict VALUES (1, 'a', 'm')")

    def diagnosis(self, statement, values=None):
        with connect() as connection, self.assertRaises(psycopg.Error, msg=statement) as caught:
            connection.execute(statement, values)
        return caught.exception.diag

    def test_arrays_of_several_dimensions_come_in_both_formats(self):
        arrays = {"int[]": [[1, 2, 3], [4, None, 6]], "text[]": [[["a b"], [""]]], "float8[]": [[1.5]], "int8[]": [], "date[]": [None]}
        with connect() as connection:
            for binary in (False, True):
                for name, value in arrays.items():
                    row = connection.cursor(binary=binary).execute(f"SELECT %s::{name}", (text_of(value),)).fetchone()
                    self.assertEqual(row, (value,), (name, binary))

    def test_arrays_of_several_dimensions_are_taken_in_both_formats(self):
        with connect() as connection:
            for mark in ("%t", "%b"):
                for value in ([[1, 2, 3], [4, None, 6]], [[[1]], [[2]]], [[Int8(7)]], []):
                    row = connection.execute(f"SELECT {mark}::int8[], array_ndims({mark}::int8[])", (value, value)).fetchone()
                    self.assertEqual(row[0], value, mark)
                row = connection.execute(f"SELECT {mark}::text[]", ([["a", 'b"'], ["{", ""]],)).fetchone()
                self.assertEqual(row[0], [["a", 'b"'], ["{", ""]], mark)
            with self.assertRaises(psycopg.errors.ProgramLimitExceeded):
                connection.cursor(binary=True).execute("SELECT '{{{{{{{1}}}}}}}'::int[]")

    def test_columns_tell_what_their_types_were_made_with(self):
        told = {
            "1::oid": (26, None), "NULL::numeric(10,3)": (1700, (10, 3)), "NULL::varchar(7)": (1043, 7),
            "NULL::char(3)": (1042, 3), "now()::timestamp(0)": (1114, 0), "NULL::time(2)": (1083, 2), "NULL::numeric(6,2)[]": (1231, None),
        }  # fmt: skip
        with connect() as connection:
            for text, (oid, made_with) in told.items():
                column = connection.execute(f"SELECT {text}").description[0]
                self.assertEqual(column.type_code, oid, text)
                if isinstance(made_with, tuple):
                    self.assertEqual((column.precision, column.scale), made_with, text)
                elif oid in (1042, 1043):
                    self.assertEqual(column.display_size, made_with, text)
                elif made_with is not None:
                    self.assertEqual(column.precision, made_with, text)
            cursor = connection.cursor(binary=True)
            self.assertEqual(cursor.execute("SELECT 4294967295::oid, 6::oid").fetchone(), (4294967295, 6))

    def test_functions_that_give_nothing_are_of_void(self):
        calls = ["pg_sleep(0)", "pg_notify('a', 'b')", "pg_advisory_xact_lock(1)", "pg_advisory_unlock_all()", "setseed(0.5)", "nothing()"]
        with connect() as connection:
            connection.execute("CREATE OR REPLACE FUNCTION nothing() RETURNS void LANGUAGE sql AS 'DELETE FROM strict WHERE id < 0'")
            for binary in (False, True):
                for call in calls:
                    cursor = connection.cursor(binary=binary).execute(f"SELECT {call}")
                    self.assertEqual(cursor.description[0].type_code, 2278, call)
                    self.assertIn(cursor.fetchone(), [(None,)] if call == "nothing()" else [("",), (b"",)], call)
            connection.execute("DROP FUNCTION nothing")

    def test_violations_name_their_table_column_and_constraint(self):
        cases = [
            ("INSERT INTO strict VALUES (1, 'b', 'n')", "23505", "strict_pkey", None, "Key (id)=(1) already exists."),
            ("INSERT INTO strict VALUES (2, 'b', 'm')", "23505", "strict_mail_key", None, "Key (mail)=(m) already exists."),
            ("INSERT INTO strict VALUES (2, NULL, 'n')", "23502", None, "name", None),
            ("UPDATE strict SET name = NULL", "23502", None, "name", None),
        ]
        for statement, code, constraint, column, detail in cases:
            found = self.diagnosis(statement)
            self.assertEqual((found.sqlstate, found.schema_name, found.table_name), (code, "public", "strict"), statement)
            self.assertEqual((found.constraint_name, found.column_name), (constraint, column), statement)
            if detail:
                self.assertEqual(found.message_detail, detail)

    def test_violations_tell_the_schema_of_their_table(self):
        with connect() as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS elsewhere")
            connection.execute("DROP TABLE IF EXISTS elsewhere.strict")
            connection.execute("CREATE TABLE elsewhere.strict (id int PRIMARY KEY CHECK (id > 0), name text NOT NULL)")
            connection.execute("CREATE TEMP TABLE passing (id int PRIMARY KEY)")
            for statement in ["VALUES (0, 'a')", "VALUES (1, NULL)", "VALUES (1, 'a'), (1, 'b')"]:
                with self.assertRaises(psycopg.Error, msg=statement) as caught:
                    connection.execute(f"INSERT INTO elsewhere.strict {statement}")
                self.assertEqual(caught.exception.diag.schema_name, "elsewhere", statement)
            with self.assertRaises(psycopg.Error) as caught:
                connection.execute("INSERT INTO passing VALUES (1), (1)")
            self.assertRegex(caught.exception.diag.schema_name, r"^pg_temp_\d+$")
            connection.execute("DROP SCHEMA elsewhere CASCADE")

    def test_errors_have_postgresqls_codes_and_places(self):
        cases = [
            ("SELECT * FROM nowhere", "42P01", 15),
            ("SELECT \u00e4 FROM strict", "42703", 8),
            ("SELECT strict.x FROM strict", "42703", 8),
            ("SELECT x.id FROM strict", "42P01", 8),
            ("SELEC 1", "42601", 1),
            ("SELECT 1 +", "42601", 11),
            ("SELECT nosuch(1)", "42883", 8),
            ("SELECT 1 / 0", "22012", None),
            ("SELECT 'x'::int", "22P02", 8),
            ("SELECT 2147483647::int + 1::int", "22003", None),
            ("SELECT 'a' FROM strict WHERE id = 'x'", "22P02", 35),
            ("INSERT INTO strict (id, nope) VALUES (1, 2)", "42703", 25),
            ("INSERT INTO strict VALUES (1, 2, 3, 4)", "42601", 37),
            ("CREATE TABLE strict (id int)", "42P07", None),
            ("DROP TABLE nowhere", "42P01", None),
            ("SELECT count(*) FROM strict WHERE count(*) > 1", "42803", None),
            ("SELECT name, count(*) FROM strict", "42803", 8),
            ("SELECT id FROM strict a, strict b", "42702", 8),
            ("EXECUTE nothing", "26000", None),
            ("SAVEPOINT s", "25P01", None),
            ("SET nothing.at_all TO", "42601", 22),
            ("SHOW nothing", "42704", None),
        ]
        for statement, code, place in cases:
            with self.subTest(statement):
                found = self.diagnosis(statement)
                self.assertEqual(found.sqlstate, code, found.message_primary)
                if place is not None:
                    self.assertEqual(found.statement_position, str(place), found.message_primary)

    def test_a_failed_block_takes_nothing_but_its_end(self):
        with connect() as connection:
            connection.execute("BEGIN")
            with self.assertRaises(psycopg.errors.DivisionByZero):
                connection.execute("SELECT 1/0")
            for statement, values in (("SELECT 1", None), ("SELECT %s", (1,)), ("SET application_name = 'x'", None)):
                with self.assertRaises(psycopg.errors.InFailedSqlTransaction):
                    connection.execute(statement, values)
            self.assertEqual(connection.execute("COMMIT").statusmessage, "ROLLBACK")
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))


class Cursors(unittest.TestCase):
    """Cursors of SQL as psycopg declares and reads them."""

    def test_server_side_cursors_are_read_bit_by_bit_in_both_formats(self):
        with psycopg.connect() as connection:
            for binary in (False, True):
                with connection.cursor(name="my rows", binary=binary) as cursor:
                    cursor.itersize = 300
                    cursor.execute("SELECT i, 'x' || i AS t FROM generate_series(1, %s) AS i ORDER BY i", (1000,))
                    self.assertEqual([(column.name, column.type_code) for column in cursor.description], [("i", 23), ("t", 25)])
                    self.assertEqual((cursor.fetchone(), cursor.fetchmany(2)), ((1, "x1"), [(2, "x2"), (3, "x3")]))
                    self.assertEqual(sum(row[0] for row in cursor), 500_500 - 6)

    def test_server_side_cursors_scroll_and_outlive_their_transaction(self):
        with psycopg.connect() as connection:
            with connection.cursor(name="scrolled", scrollable=True) as cursor:
                cursor.execute("SELECT * FROM generate_series(1, 100) AS i ORDER BY i")
                cursor.scroll(10)
                self.assertEqual(cursor.fetchone(), (11,))
                cursor.scroll(-5)
                self.assertEqual(cursor.fetchone(), (7,))
                cursor.scroll(98, mode="absolute")
                self.assertEqual(cursor.fetchall(), [(99,), (100,)])
            held = connection.cursor(name="held", withhold=True)
            held.execute("SELECT * FROM generate_series(1, 5) AS i ORDER BY i")
            self.assertEqual(held.fetchmany(2), [(1,), (2,)])
            connection.commit()
            self.assertEqual(held.fetchall(), [(3,), (4,), (5,)])
            held.close()

    def test_a_cursor_stops_when_its_fetch_is_to_stop(self):
        with psycopg.connect() as connection:
            connection.execute("SET statement_timeout = 200")
            connection.execute("DECLARE heavy CURSOR FOR SELECT count(*) FROM generate_series(1, 100000) AS a(i), "
                               "generate_series(1, 100000) AS b(i) WHERE a.i + b.i < 0")
            with self.assertRaises(psycopg.errors.QueryCanceled):
                connection.execute("FETCH heavy")
            connection.rollback()
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))


if __name__ == "__main__":
    unittest.main()
