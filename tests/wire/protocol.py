"""The protocol message by message: pipelines with errors, portals read bit by bit, what Describe, Flush and Sync do, COPY, and clients that
stall, vanish or ask for too much. The same tests pass against PostgreSQL where its limits are the same."""
import os
import socket
import struct
import threading
import time
import unittest

import psycopg


def connect(**options):
    return psycopg.connect(autocommit=True, **options)


class Wire:
    """A connection that says what it is told and gives back what it hears."""

    def __init__(self, **settings):
        address = (os.environ["PGHOST"], int(os.environ["PGPORT"]))
        self.socket = socket.create_connection(address, timeout=20)
        self.heard = b""
        parameters = {"user": os.environ.get("PGUSER", "tester"), "database": "lstore", **settings}
        body = b"".join(name.encode() + b"\0" + value.encode() + b"\0" for name, value in parameters.items()) + b"\0"
        self.socket.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
        self.greeting = self.until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))

    def message(self):
        """The type and body of the next message."""
        while len(self.heard) < 5 or len(self.heard) < 1 + struct.unpack("!I", self.heard[1:5])[0]:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("closed")
            self.heard += more
        end = 1 + struct.unpack("!I", self.heard[1:5])[0]
        message, self.heard = (self.heard[:1].decode(), self.heard[5:end]), self.heard[end:]
        return message

    def until_ready(self):
        messages = []
        while not messages or messages[-1][0] != "Z":
            messages.append(self.message())
        return messages

    def kinds(self, count=None):
        """The types of what is heard, up to ReadyForQuery or so many; notices and settings left out."""
        if count is None:
            messages = self.until_ready()
        else:
            messages = [self.message() for _ in range(count)]
        return "".join(kind for kind, _ in messages if kind not in "NS")


def message(kind, *parts):
    body = b"".join(part.encode() + b"\0" if isinstance(part, str) else part for part in parts)
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def parse(text, name="", types=()):
    return message("P", name, text, struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(values=(), portal="", statement="", formats=(), results=()):
    cells = b"".join(struct.pack("!i", -1) if v is None else struct.pack("!I", len(v)) + v for v in values)
    formats = struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    results = struct.pack(f"!H{len(results)}H", len(results), *results)
    return message("B", portal, statement, formats, struct.pack("!H", len(values)), cells, results)


def execute(portal="", rows=0):
    return message("E", portal, struct.pack("!i", rows))


def describe(kind, name=""):
    return message("D", kind.encode(), name)


def close(kind, name):
    return message("C", kind.encode(), name)


def query(text):
    return message("Q", text)


SYNC, FLUSH = message("S"), message("H")


def error_of(messages):
    for kind, body in messages:
        if kind == "E":
            fields = {field[:1].decode(): field[1:].decode() for field in body.split(b"\0") if field}
            return fields["C"]
    return None


def state_of(messages):
    return messages[-1][1].decode()


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS numbers")
            connection.execute("CREATE TABLE numbers (n int PRIMARY KEY, t text)")
            with connection.cursor().copy("COPY numbers (n) FROM STDIN") as copy:
                for n in range(1_000):
                    copy.write_row((n,))

    def test_a_portal_is_read_bit_by_bit(self):
        with Wire() as wire:
            wire.send(parse("SELECT n FROM numbers WHERE n < $1 ORDER BY n"), bind([b"10"], "p"))
            wire.send(execute("p", 4), execute("p", 4), execute("p", 4), execute("p", 4), SYNC)
            self.assertEqual(wire.kinds(), "12" + "DDDDs" * 2 + "DDC" + "C" + "Z")
            # The end of its transaction was the end of the portal.
            wire.send(execute("p", 4), SYNC)
            self.assertEqual(error_of(wire.until_ready()), "34000")
            # In a block it lives on over a Sync, and beside others.
            wire.send(query("BEGIN"), parse("SELECT n FROM numbers ORDER BY n", "s"), bind((), "p", "s"), bind((), "q", "s"))
            wire.send(execute("p", 2), SYNC)
            self.assertEqual(wire.kinds(), "CZ")
            self.assertEqual(wire.kinds(), "122DDsZ")
            wire.send(execute("q", 3), execute("p", 1), close("P", "p"), execute("p", 1), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "DDDsDs3EZ")
            self.assertEqual((error_of(messages), state_of(messages)), ("34000", "E"))
            wire.send(query("ROLLBACK"))
            self.assertEqual(wire.kinds(), "CZ")

    def test_describe_tells_of_statements_and_portals(self):
        with Wire() as wire:
            wire.send(parse("SELECT n, t FROM numbers WHERE n = $1 AND t = $2", "s"), describe("S", "s"), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "1tTZ")
            self.assertEqual(struct.unpack("!HII", messages[1][1]), (2, 23, 25))
            wire.send(parse("INSERT INTO numbers VALUES ($1, $2)", "i", [20]), describe("S", "i"), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "1tnZ")
            self.assertEqual(struct.unpack("!HII", messages[1][1]), (2, 20, 25))
            wire.send(bind([b"1", None], "p", "s", results=[1, 0]), describe("P", "p"), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "2TZ")
            self.assertTrue(messages[1][1].endswith(b"\xff\xff\xff\xff\0\0"), "the second column is text")
            for what in (describe("S", "none"), describe("P", "none"), bind((), "", "none")):
                wire.send(what, SYNC)
                self.assertIn(error_of(wire.until_ready()), ("26000", "34000"))
            for text, answer in (("", "1tnZ"), ("BEGIN", "1tnZ"), ("SHOW timezone", "1tTZ"), ("SET application_name = 'x'", "1tnZ")):
                wire.send(parse(text), describe("S"), SYNC)
                self.assertEqual(wire.kinds(), answer, text)

    def test_a_prepared_query_whose_columns_have_changed_is_refused(self):
        with connect() as connection, Wire() as wire:
            connection.execute("DROP TABLE IF EXISTS changing")
            connection.execute("CREATE TABLE changing (a int PRIMARY KEY, b int)")
            connection.execute("INSERT INTO changing VALUES (1, 2)")
            for text in ("SELECT * FROM changing", "SELECT * FROM changing WHERE a = 1", "SELECT max(b) FROM changing"):
                wire.send(parse(text, "s"), describe("S", "s"), SYNC, bind((), "", "s", results=[1]), execute(), SYNC)
                self.assertEqual((wire.kinds(), wire.kinds()), ("1tTZ", "2DCZ"))
                connection.execute("ALTER TABLE changing ALTER b TYPE text")
                wire.send(bind((), "", "s", results=[1]), execute(), SYNC)
                messages = wire.until_ready()
                self.assertEqual(error_of(messages), "0A000", text)
                # By this routine drivers know that they are to prepare it once more.
                self.assertIn(b"RRevalidateCachedQuery\0", dict(messages)["E"])
                wire.send(close("S", "s"), SYNC, query("SELECT 1"))
                self.assertEqual((wire.kinds(), wire.kinds()), ("3Z", "TDCZ"))
                connection.execute("ALTER TABLE changing ALTER b TYPE int USING b::int")
            wire.send(parse("SELECT * FROM changing", "s"), describe("S", "s"), SYNC)
            wire.until_ready()
            connection.execute("ALTER TABLE changing ADD c int")
            wire.send(bind((), "", "s"), execute(), SYNC)
            self.assertEqual(error_of(wire.until_ready()), "0A000")
            connection.execute("DROP TABLE changing")

    def test_returning_gives_rows_and_the_tag_of_the_change(self):
        def tags(messages):
            return [body[:-1].decode() for kind, body in messages if kind == "C"]

        with Wire() as wire:
            wire.send(query("DROP TABLE IF EXISTS given"), query("CREATE TABLE given (id serial PRIMARY KEY, n int DEFAULT 5)"))
            wire.kinds(), wire.kinds()
            insert = "INSERT INTO given (n) VALUES ($1), (DEFAULT) RETURNING id, n + $2 AS more"
            wire.send(parse(insert, "i"), describe("S", "i"), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "1tTZ")
            self.assertEqual(struct.unpack("!HII", messages[1][1]), (2, 23, 23))
            # What is described is not done.
            wire.send(query("BEGIN"), bind([b"1", b"1"], "p", "i"), describe("P", "p"), SYNC, query("SELECT n FROM given"), query("ROLLBACK"))
            self.assertEqual([wire.kinds() for _ in range(4)], ["CZ", "2TZ", "TCZ", "CZ"])
            wire.send(bind([b"1", b"1"], "", "i"), describe("P"), execute(), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "2TDDCZ")
            self.assertEqual(tags(messages), ["INSERT 0 2"])
            # All of it is done before the first row is read; the tag counts the rows that were read last.
            wire.send(bind([b"2", b"2"], "p", "i"), execute("p", 1), parse("SELECT 1 FROM given"), bind(), execute())
            wire.send(execute("p"), execute("p"), SYNC)
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "2Ds12DDDDCDCCZ")
            self.assertEqual(tags(messages), ["SELECT 4", "INSERT 0 1", "INSERT 0 0"])
            for text, tag in (
                ("UPDATE given SET n = 7 WHERE n = 5 RETURNING id", "UPDATE 2"),
                ("DELETE FROM given WHERE n = 5 RETURNING *", "DELETE 0"),
                ("DELETE FROM given RETURNING *", "DELETE 4"),
            ):
                wire.send(query(text))
                messages = wire.until_ready()
                rows = int(tag.split()[1])
                self.assertEqual("".join(kind for kind, _ in messages), "T" + "D" * rows + "CZ")
                self.assertEqual(tags(messages), [tag])
            wire.send(query("INSERT INTO given DEFAULT VALUES RETURNING nothing"))
            self.assertEqual(error_of(wire.until_ready()), "42703")

    def test_an_empty_query_is_answered_as_such(self):
        with Wire() as wire:
            for text in ("", ";", " ; -- nothing\n", "/* nothing */"):
                wire.send(query(text))
                self.assertEqual(wire.kinds(), "IZ", text)
            wire.send(parse(""), bind(), execute(), SYNC)
            self.assertEqual(wire.kinds(), "12IZ")

    def test_an_error_within_a_pipeline_skips_to_the_next_sync(self):
        with Wire() as wire:
            good = [parse("UPDATE numbers SET t = 'x' WHERE n = 1"), bind(), execute()]
            wire.send(*good, parse("SELECT 1 / n FROM numbers WHERE n = 0"), bind(), execute(), *good, FLUSH, SYNC, *good, SYNC)
            messages = wire.until_ready()
            self.assertEqual(("".join(kind for kind, _ in messages), error_of(messages)), ("12C12EZ", "22012"))
            self.assertEqual(wire.kinds(), "12CZ")
            wire.send(parse("UPDATE numbers SET t = 'y' WHERE n = 2"), bind(), execute())
            wire.send(parse("SELEC"), SYNC)
            self.assertEqual(wire.kinds(), "12CEZ")
            wire.send(query("SELECT count(*) FROM numbers WHERE t = 'y'"))
            self.assertIn(("D", b"\0\x01\0\0\0\x010"), wire.until_ready())
            wire.send(query("UPDATE numbers SET t = NULL WHERE n < 3"))
            wire.until_ready()

    def test_an_error_is_told_before_a_sync_comes(self):
        with Wire() as wire:
            wire.send(parse("SELECT nothing"), describe("S"), FLUSH)
            # A statement may be taken first, and be found to be wrong when it is described.
            kinds = wire.kinds(1)
            self.assertEqual(kinds if kinds == "E" else wire.kinds(1), "E")
            wire.send(SYNC)
            self.assertEqual(wire.kinds(), "Z")

    def test_flush_sends_what_there_is(self):
        with Wire() as wire:
            wire.send(parse("SELECT 7"), bind(), FLUSH)
            self.assertEqual(wire.kinds(2), "12")
            wire.send(execute(), FLUSH)
            self.assertEqual(wire.kinds(2), "DC")
            wire.send(SYNC)
            self.assertEqual(wire.kinds(), "Z")

    def test_statements_of_one_message_stop_at_the_first_error(self):
        with Wire() as wire:
            wire.send(query("SELECT 1; UPDATE numbers SET t = 'z' WHERE n = 5; SELECT nothing; SELECT 2"))
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "TDCCEZ")
            self.assertEqual((error_of(messages), state_of(messages)), ("42703", "I"))
            wire.send(query("BEGIN; UPDATE numbers SET t = 'z' WHERE n = 5; SELECT nothing"))
            self.assertEqual(state_of(wire.until_ready()), "E")
            wire.send(query("ROLLBACK; SELECT t FROM numbers WHERE n = 5"))
            messages = wire.until_ready()
            self.assertIn(("D", b"\0\x01\xff\xff\xff\xff"), messages)
            wire.send(query("BEGIN; SELECT 1; COMMIT; SELECT 2"))
            messages = wire.until_ready()
            self.assertEqual(("".join(kind for kind, _ in messages), state_of(messages)), ("CTDCCTDCZ", "I"))
            # A syntax error in the last one keeps the first from running.
            wire.send(query("SELECT 1; SELEC 2"))
            self.assertEqual(error_of(wire.until_ready()), "42601")

    def test_values_of_the_wrong_number_or_form_are_refused(self):
        with Wire() as wire:
            for values, formats, code in (
                ([], (), "08P01"),
                ([b"1", b"2"], (), "08P01"),
                ([b"\0\0\0\0\0"], (1,), "22P03"),
                ([b"x"], (), "22P02"),
                ([b"1"], (1, 1), "08P01"),
                ([b"\xff"], (), "22021"),
            ):
                wire.send(parse("SELECT $1::int"), bind(values, formats=formats), execute(), SYNC)
                messages = wire.until_ready()
                self.assertEqual((error_of(messages), state_of(messages)), (code, "I"), values)
            wire.send(parse("SELECT $1::int, $3::int"), describe("S"), SYNC)
            self.assertEqual(wire.kinds()[-1], "Z")

    def test_pairs_whose_type_no_client_has_said_are_taken_as_told(self):
        with connect() as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS hstore")
        with Wire() as wire:
            pairs = struct.pack("!II1sI2s", 1, 1, b"a", 2, b"xy")
            wire.send(parse("SELECT $1::hstore -> 'a'"), bind([pairs], formats=[1]), execute(), SYNC)
            self.assertIn(("D", b"\0\x01\0\0\0\x02xy"), wire.until_ready())

    def test_names_are_taken_once(self):
        with Wire() as wire:
            wire.send(parse("SELECT 1", "s"), parse("SELECT 2", "s"), SYNC)
            self.assertEqual(error_of(wire.until_ready()), "42P05")
            wire.send(query("BEGIN"), bind((), "p", "s"), bind((), "p", "s"), SYNC)
            wire.until_ready()
            self.assertEqual(error_of(wire.until_ready()), "42P03")
            wire.send(query("ROLLBACK"), close("S", "s"), close("S", "never"), SYNC)
            wire.until_ready()
            self.assertEqual(wire.kinds(), "33Z")
            wire.send(parse("SELECT 1", "s"), query("DEALLOCATE s"), bind((), "", "s"), SYNC)
            self.assertEqual(wire.kinds(), "1CZ")
            self.assertEqual(error_of(wire.until_ready()), "26000")
            wire.send(query("PREPARE q AS SELECT 3"), bind((), "", "q"), execute(), SYNC)
            wire.until_ready()
            self.assertEqual(wire.kinds(), "2DCZ")


class Copy(unittest.TestCase):
    def setUp(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS rows_in")
            connection.execute("CREATE TABLE rows_in (id int PRIMARY KEY, t text)")

    def test_an_error_in_the_middle_leaves_nothing_and_the_connection_goes_on(self):
        with Wire() as wire:
            wire.send(query("COPY rows_in FROM STDIN"))
            self.assertEqual(wire.message()[0], "G")
            wire.send(message("d", b"1\ta\n2\tb\nx\tc\n"), *[message("d", b"4\td\n")] * 100, message("c"))
            messages = wire.until_ready()
            self.assertEqual((error_of(messages), state_of(messages)), ("22P02", "I"))
            wire.send(query("SELECT count(*) FROM rows_in"))
            self.assertIn(("D", b"\0\x01\0\0\0\x010"), wire.until_ready())
            wire.send(query("COPY rows_in FROM STDIN"))
            self.assertEqual(wire.message()[0], "G")
            wire.send(message("d", b"1\t"), message("d", b"a\n2\tb"), message("d", b"\n\\.\n"), message("c"))
            self.assertEqual(wire.kinds(), "CZ")
            wire.send(query("BEGIN; COPY rows_in FROM STDIN; SELECT 1"))
            self.assertEqual(wire.kinds(2), "CG")
            wire.send(message("d", b"3\tc\n"), message("f", "given up"))
            messages = wire.until_ready()
            self.assertEqual((error_of(messages), state_of(messages)), ("57014", "E"))

    def test_statements_may_stand_around_it(self):
        with Wire() as wire:
            wire.send(query("SELECT 1; COPY rows_in FROM STDIN; SELECT count(*) FROM rows_in"))
            self.assertEqual(wire.kinds(4), "TDCG")
            wire.send(message("d", b"7\tx\n"), message("c"))
            messages = wire.until_ready()
            self.assertEqual("".join(kind for kind, _ in messages), "CTDCZ")
            self.assertIn(("D", b"\0\x01\0\0\0\x011"), messages)


class Endings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS held")
            connection.execute("CREATE TABLE held (id int PRIMARY KEY, n int)")
            connection.execute("INSERT INTO held VALUES (1, 0)")
            connection.execute("DROP TABLE IF EXISTS wide")
            connection.execute("CREATE TABLE wide (n int, t text)")
            with connection.cursor().copy("COPY wide FROM STDIN") as copy:
                for n in range(20_000):
                    copy.write_row((n, "x" * 500))

    def test_whoever_leaves_a_block_leaves_no_locks(self):
        endings = {
            "terminates": lambda wire: wire.send(message("X")),
            "closes": lambda wire: wire.socket.close(),
            "stops in the middle of a message": lambda wire: (wire.send(b"Q\0\0\1\0SELECT"), wire.socket.close()),
        }
        for name, end in endings.items():
            with self.subTest(name), Wire() as wire, connect() as other:
                wire.send(query("BEGIN; UPDATE held SET n = n + 1 WHERE id = 1"))
                wire.until_ready()
                end(wire)
                other.execute("SET lock_timeout = '5s'")
                other.execute("UPDATE held SET n = n + 10 WHERE id = 1")
        with connect() as connection:
            self.assertEqual(connection.execute("SELECT n % 10 FROM held").fetchone(), (0,))

    def test_a_client_that_stalls_within_a_message_keeps_nobody_waiting(self):
        with Wire() as wire, connect() as other:
            wire.send(b"Q\0\0\1\0SELECT")
            started = time.monotonic()
            self.assertEqual(other.execute("SELECT 1").fetchone(), (1,))
            self.assertLess(time.monotonic() - started, 2)
            wire.send(b" 1" + b" " * 243 + b"\0")
            self.assertEqual(wire.kinds(), "TDCZ")

    def test_rows_for_a_slow_reader_can_be_cancelled(self):
        with Wire() as wire:
            key = next(body for kind, body in wire.greeting if kind == "K")
            wire.send(query("SELECT a.t FROM wide a, wide b"))
            self.assertEqual(wire.message()[0], "T")
            time.sleep(0.3)
            address = (os.environ["PGHOST"], int(os.environ["PGPORT"]))
            with socket.create_connection(address, timeout=10) as canceller:
                canceller.sendall(struct.pack("!II", 16, 80877102) + key)
                self.assertEqual(canceller.recv(1), b"")
            # What was on its way still comes, and then the end.
            self.assertEqual(error_of(wire.until_ready()), "57014")
            wire.send(query("SELECT 1"))
            self.assertEqual(wire.kinds(), "TDCZ")

    def test_a_client_that_does_not_read_is_noticed_when_it_goes(self):
        with Wire() as wire:
            wire.send(query("SELECT a.t FROM wide a, wide b"))
            self.assertEqual(wire.message()[0], "T")
        with connect() as other:
            other.execute("SET lock_timeout = '5s'")
            other.execute("TRUNCATE wide")
            self.assertEqual(other.execute("SELECT count(*) FROM wide").fetchone(), (0,))
        self.setUpClass()

    def test_waits_for_a_lock_are_cancelled_and_limited(self):
        with connect() as holder, connect() as waiter:
            holder.execute("BEGIN")
            holder.execute("UPDATE held SET n = n WHERE id = 1")
            threading.Timer(0.3, waiter.cancel).start()
            with self.assertRaises(psycopg.errors.QueryCanceled):
                waiter.execute("UPDATE held SET n = n WHERE id = 1")
            waiter.execute("SET lock_timeout = 100")
            with self.assertRaises(psycopg.errors.LockNotAvailable):
                waiter.execute("UPDATE held SET n = n WHERE id = 1")
            with self.assertRaises(psycopg.errors.LockNotAvailable):
                waiter.execute("SELECT * FROM held FOR UPDATE NOWAIT")
            self.assertEqual(waiter.execute("SELECT * FROM held FOR UPDATE SKIP LOCKED").fetchall(), [])
            holder.execute("ROLLBACK")
            self.assertEqual(len(waiter.execute("SELECT * FROM held FOR SHARE").fetchall()), 1)


class Settings(unittest.TestCase):
    def show(self, connection, name):
        return connection.execute(f"SHOW {name}").fetchone()[0]

    def test_settings_follow_blocks_and_savepoints(self):
        with connect() as connection:
            connection.execute("SET lock_timeout = '1s'")
            connection.execute("BEGIN")
            connection.execute("SET LOCAL lock_timeout = '2s'")
            self.assertEqual(self.show(connection, "lock_timeout"), "2s")
            connection.execute("SAVEPOINT s")
            connection.execute("SET lock_timeout = '3s'")
            connection.execute("ROLLBACK TO s")
            self.assertEqual(self.show(connection, "lock_timeout"), "2s")
            connection.execute("COMMIT")
            self.assertEqual(self.show(connection, "lock_timeout"), "1s")
            connection.execute("RESET lock_timeout")
            self.assertEqual(self.show(connection, "lock_timeout"), "0")

    def test_modes_of_transactions_are_set_and_shown(self):
        with connect() as connection:
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
            self.assertEqual(self.show(connection, "transaction_isolation"), "serializable")
            with self.assertRaises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute("CREATE TABLE never (n int)")
            connection.execute("ROLLBACK")
            connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.assertEqual(self.show(connection, "default_transaction_isolation"), "repeatable read")
            connection.execute("BEGIN")
            self.assertEqual(self.show(connection, "transaction_isolation"), "repeatable read")
            connection.execute("SELECT 1 FROM pg_class")
            with self.assertRaises(psycopg.errors.ActiveSqlTransaction):
                connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            connection.execute("ROLLBACK")
            for mode in ("on", "off", "local"):
                connection.execute(f"SET synchronous_commit = {mode}")
            self.assertIn(self.show(connection, "synchronous_commit"), ("on", "local"))

    def test_discard_all_is_a_new_beginning(self):
        with connect() as connection:
            connection.execute("SET statement_timeout = '9s'")
            connection.execute("PREPARE mine AS SELECT 1")
            connection.execute("DISCARD ALL")
            self.assertEqual(self.show(connection, "statement_timeout"), "0")
            with self.assertRaises(psycopg.errors.InvalidSqlStatementName):
                connection.execute("EXECUTE mine")
            connection.execute("BEGIN")
            with self.assertRaises(psycopg.errors.ActiveSqlTransaction):
                connection.execute("DISCARD ALL")
            connection.execute("ROLLBACK")
            connection.execute("DEALLOCATE ALL")
            names = [row[0] for row in connection.execute("SHOW ALL")]
            self.assertIn("statement_timeout", names)

    def test_a_client_is_told_of_settings_that_change(self):
        with Wire(application_name="first", options="-c statement_timeout=7s") as wire:
            told = dict(body.split(b"\0")[:2] for kind, body in wire.greeting if kind == "S")
            self.assertEqual((told[b"application_name"], told[b"server_encoding"]), (b"first", b"UTF8"))
            self.assertEqual((told[b"integer_datetimes"], told[b"standard_conforming_strings"]), (b"on", b"on"))
            wire.send(query("SET application_name = 'second'"))
            self.assertIn(("S", b"application_name\0second\0"), wire.until_ready())
            wire.send(query("SHOW statement_timeout"))
            self.assertIn(("D", b"\0\x01\0\0\0\x027s"), wire.until_ready())
            wire.send(query("RESET ALL"))
            self.assertIn(("S", b"application_name\0first\0"), wire.until_ready())
            for text, told in (
                ("SET datestyle = german", b"DateStyle\0German, DMY\0"),
                ("SET intervalstyle = sql_standard", b"IntervalStyle\0sql_standard\0"),
                ("SET client_encoding = 'latin-1'", b"client_encoding\0LATIN1\0"),
            ):
                wire.send(query(text))
                self.assertIn(("S", told), wire.until_ready())


class Encodings(unittest.TestCase):
    """Clients that speak in an encoding of one byte a character."""

    def test_texts_go_both_ways(self):
        with connect(client_encoding="LATIN9") as connection:
            cursor = connection.cursor()
            for binary in (False, True):
                text = 'SELECT %t::text AS "gr\u00fc\u00df", ARRAY[%b::text], \'\u20ac\''
                row = cursor.execute(text, ("\u20ac\u00e4", "\u0160"), binary=binary)
                self.assertEqual((row.description[0].name, row.fetchone()), ("gr\u00fc\u00df", ("\u20ac\u00e4", ["\u0160"], "\u20ac")))
            cursor.execute("CREATE TEMP TABLE words (t text, n numeric)")
            with cursor.copy("COPY words FROM STDIN") as copy:
                copy.write_row(("\u017d\u00e9", 1))
            with cursor.copy("COPY words TO STDOUT") as copy:
                self.assertEqual(b"".join(bytes(part) for part in copy), b"\xb4\xe9\t1\n")
            self.assertEqual(cursor.execute("SELECT length(t), octet_length(t) FROM words").fetchone(), (2, 4))
            with self.assertRaises(psycopg.errors.UndefinedColumn) as caught:
                cursor.execute('SELECT "\u0160"')
            self.assertIn('"\u0160"', str(caught.exception))

    def test_what_an_encoding_has_not_is_an_error(self):
        with Wire(client_encoding="latin1") as wire:
            for text in ("SELECT chr(8364)", "COPY (SELECT chr(8364)) TO STDOUT", "COPY (SELECT chr(8364)) TO STDOUT (FORMAT binary)"):
                wire.send(query(text))
                self.assertEqual(error_of(wire.until_ready()), "22P05", text)
        with connect(client_encoding="LATIN1") as connection:
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))
            self.assertEqual(connection.execute("SHOW client_encoding").fetchone(), ("LATIN1",))
            with self.assertRaises(psycopg.errors.InvalidParameterValue):
                connection.execute("SET client_encoding TO nonsense")
            connection.execute("SET client_encoding TO WIN1252")
            self.assertEqual(connection.execute("SELECT chr(8364), '\u201e'").fetchone(), ("\u20ac", "\u201e"))
            connection.execute("RESET client_encoding")
            self.assertEqual(connection.execute("SHOW client_encoding").fetchone(), ("LATIN1",))


ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n + c.n + d.n = -1"
SLOW_INSERT = (
    "INSERT INTO farewells SELECT 1 FROM (SELECT count(*) AS c FROM numbers a, numbers b WHERE a.n + b.n = -1) counted WHERE c = 0"
)
TERMINATE = message("X")


def extended(text):
    return parse(text) + bind() + describe("P") + execute() + SYNC


class Farewells(unittest.TestCase):
    """Clients that say good-bye, or go, while a statement runs."""

    @classmethod
    def setUpClass(cls):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS numbers")
            connection.execute("CREATE TABLE numbers (n int PRIMARY KEY, t text)")
            with connection.cursor().copy("COPY numbers (n) FROM STDIN") as copy:
                for n in range(1_000):
                    copy.write_row((n,))
            cls.is_lstore = "lstore" in connection.execute("SELECT version()").fetchone()[0]

    def setUp(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS farewells")
            connection.execute("CREATE TABLE farewells (n int)")
            connection.execute("INSERT INTO farewells VALUES (0)")

    def holding(self, *messages):
        """A connection that has a row to itself and has sent these."""
        wire = Wire()
        wire.send(query("BEGIN"), query("UPDATE farewells SET n = 7 WHERE n = 0"))
        self.assertEqual((state_of(wire.until_ready()), state_of(wire.until_ready())), ("T", "T"))
        wire.send(*messages)
        return wire

    def rows(self):
        with connect() as connection:
            connection.execute("SET lock_timeout = '10s'")
            connection.execute("UPDATE farewells SET n = n WHERE n = 0")
            return sorted(n for (n,) in connection.execute("SELECT n FROM farewells"))

    def test_a_statement_ends_when_its_client_has_said_good_bye(self):
        if not self.is_lstore:
            self.skipTest("PostgreSQL looks after its clients only if it is told to")
        for statement in [query(ENDLESS), extended(ENDLESS)]:
            for is_later, closes in [(False, False), (True, False), (False, True), (True, True)]:
                with self.subTest(statement=statement[:1], is_later=is_later, closes=closes):
                    if is_later:
                        wire = self.holding(statement)
                        time.sleep(0.1)
                        wire.send(TERMINATE)
                    else:
                        wire = self.holding(statement + TERMINATE)
                    if closes:
                        wire.socket.close()
                    self.assertEqual(self.rows(), [0])
                    wire.socket.close()

    def test_a_statement_ends_when_its_client_has_gone(self):
        if not self.is_lstore:
            self.skipTest("PostgreSQL looks after its clients only if it is told to")
        for statement in [query(ENDLESS), extended(ENDLESS)]:
            self.holding(statement).socket.close()
            self.assertEqual(self.rows(), [0])

    def test_work_that_was_sent_before_the_good_bye_is_done(self):
        insert = [f"INSERT INTO farewells VALUES ({n})" for n in range(1, 4)]
        for way in [query, extended]:
            for pause in [0, 0.02]:
                with self.subTest(way=way.__name__, pause=pause):
                    self.setUp()
                    wire = Wire()
                    wire.send(way(SLOW_INSERT))
                    time.sleep(pause)
                    wire.send(*map(way, insert), TERMINATE)
                    wire.socket.shutdown(socket.SHUT_WR)
                    while wire.socket.recv(1 << 16):
                        pass
                    wire.socket.close()
                    self.assertEqual(self.rows(), [0, 1, 1, 2, 3])

    def test_a_copy_is_whole_although_its_client_has_gone(self):
        wire = Wire()
        wire.send(query("COPY farewells FROM STDIN"))
        self.assertEqual(wire.message()[0], "G")
        line = message("d", b"5\n" * 1_000)
        wire.send(line * 200, message("c"), TERMINATE)
        wire.socket.shutdown(socket.SHUT_WR)
        while wire.socket.recv(1 << 16):
            pass
        wire.socket.close()
        self.assertEqual(len(self.rows()), 200_001)


class RowLocks(unittest.TestCase):
    """Two sessions and a row: what each does beside the other, as PostgreSQL has it."""

    HOLD = [
        "SELECT 1 FROM locked WHERE id = 1 FOR KEY SHARE",
        "SELECT 1 FROM locked WHERE id = 1 FOR SHARE",
        "SELECT 1 FROM locked WHERE id = 1 FOR NO KEY UPDATE",
        "SELECT 1 FROM locked WHERE id = 1 FOR UPDATE",
        "UPDATE locked SET n = n + 1 WHERE id = 1",
        "UPDATE locked SET id = 9 WHERE id = 1",
        "UPDATE locked SET code = 9 WHERE id = 1",
        "UPDATE locked SET kind = 9 WHERE id = 1",
        "DELETE FROM locked WHERE id = 1",
    ]
    # Which of these wait, row by row, as PostgreSQL 15 says.
    WAITS = ["...U.UU.U", "..NUNUUNU", ".SNUNUUNU", "KSNUNUUNU", ".SNUNUUNU", "KSNUNUUNU", "KSNUNUUNU", ".SNUNUUNU", "KSNUNUUNU"]

    def setUp(self):
        self.first, self.second = psycopg.connect(), psycopg.connect()
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS locked")
            connection.execute("CREATE TABLE locked (id int PRIMARY KEY, code int UNIQUE, kind int, n int)")
            connection.execute("CREATE INDEX ON locked (kind)")
            connection.execute("INSERT INTO locked VALUES (1, 1, 1, 0)")

    def tearDown(self):
        self.first.close()
        self.second.close()

    def does_wait(self, statement):
        self.second.execute("SET LOCAL lock_timeout = '40ms'")
        try:
            self.second.execute(statement)
            return False
        except psycopg.errors.LockNotAvailable:
            return True
        finally:
            self.second.rollback()

    def test_who_waits_for_whom(self):
        for held, waits in zip(self.HOLD, self.WAITS):
            self.first.execute(held)
            found = [self.does_wait(asked) for asked in self.HOLD]
            self.first.rollback()
            self.assertEqual(found, [letter != "." for letter in waits], held)

    def test_an_upgrade_beside_a_waiter_is_no_deadlock(self):
        for share in ["FOR SHARE", "FOR KEY SHARE"]:
            for waiting in ["UPDATE locked SET id = id + 1, n = n + 10", "DELETE FROM locked WHERE n < 0", self.HOLD[3]]:
                if "DELETE" in waiting and share == "FOR KEY SHARE":
                    continue
                with self.subTest(share=share, waiting=waiting):
                    self.first.execute(f"SELECT 1 FROM locked {share}")
                    thread = threading.Thread(target=self.second.execute, args=(waiting,))
                    thread.start()
                    time.sleep(0.1)
                    self.first.execute("UPDATE locked SET n = n + 1")
                    self.first.commit()
                    thread.join()
                    self.second.rollback()

    def test_a_lock_taken_back_lets_go_on(self):
        self.first.execute("UPDATE locked SET n = 1")
        self.first.execute("SAVEPOINT a")
        self.first.execute("DELETE FROM locked")
        self.assertTrue(self.does_wait(self.HOLD[0]))
        self.first.execute("ROLLBACK TO a")
        self.assertFalse(self.does_wait(self.HOLD[0]))
        self.assertTrue(self.does_wait(self.HOLD[1]))
        self.first.rollback()

    def test_who_shares_the_key_sees_the_row_before_an_update(self):
        self.first.execute("UPDATE locked SET n = 5")
        row = self.second.execute("SELECT n FROM locked FOR KEY SHARE").fetchone()
        self.assertEqual(row, (0,))
        self.first.commit()
        self.assertEqual(self.second.execute("SELECT n FROM locked FOR KEY SHARE").fetchone(), (5,))
        self.second.rollback()


if __name__ == "__main__":
    unittest.main()
