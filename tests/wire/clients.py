"""psycopg 3 against a server whose address is in the environment of libpq: types, transactions, cancelling, many clients."""
import asyncio
import datetime as dt
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import uuid
from decimal import Decimal
from unittest import mock

import psycopg
from psycopg import pq, sql

VALUES = {
    "boolean": [True, False],
    "smallint": [-32768, 0, 32767],
    "int": [-(2**31), 7, 2**31 - 1],
    "bigint": [-(2**63), 8, 2**63 - 1],
    "real": [0.5, -1.25],
    "double precision": [0.1, -1e300, float("inf")],
    "numeric(20,4)": [Decimal("0.0000"), Decimal("-12345.6789"), Decimal("1234567890123456.7890")],
    "text": ["", "äöü ' \\ \t \n", "x" * 10_000],
    "varchar(5)": ["abc"],
    "bytea": [b"", b"\x00\xff\\'"],
    "date": [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(1999, 12, 31, 23, 59, 59, 999999), dt.datetime(2000, 1, 1)],
    "timestamptz": [dt.datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=dt.timezone.utc)],
    "uuid": [uuid.UUID("550e8400-e29b-41d4-a716-446655440000")],
}


def connect(**options):
    return psycopg.connect(autocommit=True, **options)


class Types(unittest.TestCase):
    def test_every_type_goes_both_ways_in_both_formats(self):
        with connect() as connection:
            for binary in (False, True):
                for name, values in VALUES.items():
                    mark = sql.SQL("%b" if binary else "%t")
                    with connection.cursor(binary=binary) as cursor:
                        cursor.execute("DROP TABLE IF EXISTS round_trip")
                        cursor.execute(f"CREATE TABLE round_trip (id int PRIMARY KEY, v {name})")
                        insert = sql.SQL("INSERT INTO round_trip VALUES ({}, {})").format(mark, mark)
                        for at, value in enumerate(values):
                            cursor.execute(insert, (at, value))
                        cursor.execute(sql.SQL("INSERT INTO round_trip VALUES ({}, NULL)").format(mark), (-1,))
                        cursor.execute("SELECT v FROM round_trip ORDER BY id")
                        self.assertEqual([row[0] for row in cursor], [None, *values], (name, binary))
                        for at, value in enumerate(values):
                            where = sql.SQL("SELECT id FROM round_trip WHERE v = {} AND id = {}").format(mark, mark)
                            self.assertEqual(cursor.execute(where, (value, at)).fetchall(), [(at,)], (name, value))

    def test_a_client_has_the_time_zone_that_it_asks_for_and_is_told_of_another(self):
        with mock.patch.dict(os.environ, {"PGTZ": "Europe/Berlin"}), connect() as connection:
            self.assertEqual(connection.info.parameter_status("TimeZone"), "Europe/Berlin")
            there = dt.datetime(2026, 11, 22, 12, 0, tzinfo=dt.timezone(dt.timedelta(hours=1)))
            came = connection.execute("SELECT %s::timestamptz, %t::timestamptz::text", (there, there)).fetchone()
            self.assertEqual(came, (there, "2026-11-22 12:00:00+01"))
            self.assertEqual(str(came[0].tzinfo), "Europe/Berlin")
            # A text without an offset is of the zone, as a parameter, too.
            came = connection.execute("SELECT %t::timestamptz", ("2026-07-22 12:00",)).fetchone()
            self.assertEqual(came[0].astimezone(dt.timezone.utc).hour, 10)
            connection.execute("SET TIME ZONE 'Asia/Tokyo'")
            self.assertEqual(connection.info.parameter_status("TimeZone"), "Asia/Tokyo")
            connection.execute("RESET timezone")
            self.assertEqual(connection.info.parameter_status("TimeZone"), "Europe/Berlin")
        with mock.patch.dict(os.environ, {"PGTZ": "Nowhere/City"}), self.assertRaises(psycopg.OperationalError):
            connect().close()

    def test_columns_of_tables_tell_their_tables(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS told")
            connection.execute("CREATE TABLE told (id int PRIMARY KEY, v varchar(20) NOT NULL, n numeric(10,2))")
            result = connection.execute("SELECT x.n AS m, v, id + 1 FROM (SELECT * FROM told) x").pgresult
            oid = connection.execute("SELECT 'told'::regclass::oid::int").fetchone()[0]
            came = [(result.ftable(at), result.ftablecol(at), result.fmod(at)) for at in range(3)]
            self.assertEqual(came, [(oid, 3, (10 << 16 | 2) + 4), (oid, 2, 24), (0, 0, -1)])
            # What drivers then ask about them.
            asked = "SELECT attname, attnotnull FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum = %s"
            self.assertEqual(connection.execute(asked, (oid, 2)).fetchone(), ("v", True))

    def test_parameters_find_their_types(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS guess")
            connection.execute("CREATE TABLE guess (id int PRIMARY KEY, at timestamp, n numeric(8,2), t text)")
            connection.execute("INSERT INTO guess VALUES (%s, %s, %s, %s)", ("1", "2020-01-02", "1.5", "a"))
            query = "SELECT t FROM guess WHERE id = %s AND at < %s AND n BETWEEN %s AND %s AND t IN (%s, %s) LIMIT %s"
            row = connection.execute(query, ("1", "2021-01-01", "1", "2", "a", "b", 5)).fetchone()
            self.assertEqual(row, ("a",))
            self.assertEqual(connection.execute("SELECT %s::int + 1", ("41",)).fetchone(), (42,))
            self.assertEqual(connection.execute("UPDATE guess SET n = n + %s WHERE id = %s", (1, 1)).rowcount, 1)
            self.assertEqual(connection.execute("SELECT n FROM guess").fetchone(), (Decimal("2.50"),))
            query = "SELECT id FROM guess WHERE coalesce(at, %s) = CASE WHEN id > 0 THEN at ELSE %s END"
            self.assertEqual(connection.execute(query, ("2021-01-01", "2021-01-01")).fetchone(), (1,))

    def test_statements_are_prepared_after_some_runs_and_can_be_forgotten(self):
        with connect() as connection:
            for n in range(20):
                self.assertEqual(connection.execute("SELECT %s + 1", (n,)).fetchone(), (n + 1,))
            connection.execute("DISCARD ALL")
            connection.execute("DEALLOCATE ALL")

    def test_copy_gives_rows(self):
        with connect() as connection:
            cursor = connection.cursor()
            cursor.execute("CREATE TEMP TABLE given (n int, t text)")
            rows = [(1, "a\tb\\"), (2, None), (3, ""), (4, "ü\n")]
            cursor.executemany("INSERT INTO given VALUES (%s, %s)", rows)
            with cursor.copy("COPY given TO STDOUT") as copy:
                self.assertEqual([(int(n), t) for n, t in copy.rows()], rows)
            with cursor.copy("COPY (SELECT n, t FROM given WHERE n < 3 ORDER BY n) TO STDOUT (FORMAT csv, HEADER)") as copy:
                self.assertEqual(b"".join(copy), b"n,t\n1,a\tb\\\n2,\n")
            with self.assertRaises(psycopg.errors.DivisionByZero):
                with cursor.copy("COPY (SELECT 1 / (n - 3) FROM given) TO STDOUT") as copy:
                    list(copy)
            self.assertEqual(cursor.execute("SELECT count(*) FROM given").fetchone(), (4,))

    def test_temporary_tables_and_schemas_are_of_one_session(self):
        with connect() as one, connect() as other:
            one.execute("CREATE SCHEMA app")
            one.execute("SET search_path TO app, public")
            one.execute("CREATE TABLE job (id serial PRIMARY KEY, state text DEFAULT 'new')")
            one.execute("INSERT INTO job DEFAULT VALUES")
            other.execute("CREATE TEMP TABLE job AS SELECT 'temporary' AS state")
            for _ in range(7):  # often enough to be prepared
                self.assertEqual(one.execute("SELECT state FROM job WHERE id = %s", (1,)).fetchone(), ("new",))
                self.assertEqual(other.execute("SELECT state FROM job").fetchone(), ("temporary",))
            other.execute("DROP TABLE job")
            with self.assertRaises(psycopg.errors.UndefinedTable):
                other.execute("SELECT state FROM job")
            one.execute("DROP SCHEMA app CASCADE")

    def test_copy_takes_rows(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS copied")
            connection.execute("CREATE TABLE copied (id int PRIMARY KEY, t text)")
            with connection.cursor() as cursor:
                with cursor.copy("COPY copied FROM STDIN") as copy:
                    for n in range(5_000):
                        copy.write_row((n, None if n % 7 == 0 else f"a\t{n}\\"))
            self.assertEqual(connection.execute("SELECT count(*), count(t) FROM copied").fetchone(), (5000, 4285))
            self.assertEqual(connection.execute("SELECT t FROM copied WHERE id = 8").fetchone(), ("a\t8\\",))
            with self.assertRaises(psycopg.errors.UniqueViolation):
                with connection.cursor().copy("COPY copied FROM STDIN") as copy:
                    copy.write_row((1, "twice"))
            with self.assertRaises(ZeroDivisionError):
                with connection.cursor().copy("COPY copied FROM STDIN") as copy:
                    copy.write_row((9_999, "given up"))
                    raise ZeroDivisionError
            self.assertEqual(connection.execute("SELECT count(*) FROM copied").fetchone(), (5000,))


class Transactions(unittest.TestCase):
    def setUp(self):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS accounts")
            connection.execute("CREATE TABLE accounts (id int PRIMARY KEY, n int)")
            connection.execute("INSERT INTO accounts VALUES (1, 0), (2, 0)")

    def test_blocks_commit_and_roll_back_with_savepoints(self):
        with connect() as connection:
            with connection.transaction():
                connection.execute("UPDATE accounts SET n = 1 WHERE id = 1")
                with self.assertRaises(psycopg.errors.DivisionByZero):
                    with connection.transaction():
                        connection.execute("UPDATE accounts SET n = 2 WHERE id = 1")
                        connection.execute("SELECT 1/0")
            self.assertEqual(connection.execute("SELECT n FROM accounts WHERE id = 1").fetchone(), (1,))
            self.assertEqual(connection.info.transaction_status, pq.TransactionStatus.IDLE)

    def test_errors_have_their_classes_and_places(self):
        with connect() as connection:
            cases = {
                "INSERT INTO accounts VALUES (1, 1)": psycopg.errors.UniqueViolation,
                "SELECT * FROM nowhere": psycopg.errors.UndefinedTable,
                "SELECT wrong FROM accounts": psycopg.errors.UndefinedColumn,
                "SELEC 1": psycopg.errors.SyntaxError,
                "SELECT 2147483647::int * 2::int": psycopg.errors.NumericValueOutOfRange,
                "INSERT INTO accounts VALUES ('x', 1)": psycopg.errors.InvalidTextRepresentation,
            }
            for statement, error in cases.items():
                with self.assertRaises(error, msg=statement):
                    connection.execute(statement)
            with self.assertRaises(psycopg.errors.UndefinedColumn) as caught:
                connection.execute("SELECT 'ä', wrong FROM accounts")
            self.assertEqual(caught.exception.diag.statement_position, "13")

    def test_the_levels_are_what_they_say(self):
        with connect() as one, connect() as other:
            for level, fails in (("READ COMMITTED", False), ("REPEATABLE READ", True), ("SERIALIZABLE", True)):
                one.execute(f"BEGIN ISOLATION LEVEL {level}")
                self.assertEqual(one.execute("SHOW transaction_isolation").fetchone(), (level.lower(),))
                one.execute("SELECT n FROM accounts WHERE id = 2")
                other.execute("UPDATE accounts SET n = n + 1 WHERE id = 2")
                if fails:
                    with self.assertRaises(psycopg.errors.SerializationFailure):
                        one.execute("UPDATE accounts SET n = n + 1 WHERE id = 2")
                    self.assertEqual(one.info.transaction_status, pq.TransactionStatus.INERROR)
                else:
                    one.execute("UPDATE accounts SET n = n + 1 WHERE id = 2")
                one.execute("ROLLBACK")

    def test_a_deadlock_has_one_victim(self):
        errors = []
        barrier = threading.Barrier(2)

        def run(first, second):
            with connect() as connection:
                try:
                    with connection.transaction():
                        connection.execute("UPDATE accounts SET n = n + 1 WHERE id = %s", (first,))
                        barrier.wait()
                        connection.execute("UPDATE accounts SET n = n + 1 WHERE id = %s", (second,))
                except psycopg.errors.DeadlockDetected as error:
                    errors.append(error)

        threads = [threading.Thread(target=run, args=pair) for pair in ((1, 2), (2, 1))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(len(errors), 1)

    def test_a_pipeline_is_one_transaction(self):
        with connect() as connection:
            with connection.pipeline():
                results = [connection.execute("SELECT %s::int", (n,)) for n in range(50)]
                self.assertEqual([result.fetchone() for result in results], [(n,) for n in range(50)])
            with self.assertRaises(psycopg.errors.DivisionByZero):
                with connection.pipeline():
                    connection.execute("UPDATE accounts SET n = 99 WHERE id = 1")
                    connection.execute("SELECT 1/0")
            self.assertEqual(connection.execute("SELECT n FROM accounts WHERE id = 1").fetchone(), (0,))

    def test_statements_in_one_message_are_one_transaction(self):
        with connect() as connection:
            with self.assertRaises(psycopg.errors.DivisionByZero):
                connection.execute("UPDATE accounts SET n = 5 WHERE id = 1; SELECT 1/0")
            self.assertEqual(connection.execute("SELECT n FROM accounts WHERE id = 1").fetchone(), (0,))
            connection.execute("UPDATE accounts SET n = 6 WHERE id = 1; SELECT 1")
            self.assertEqual(connection.execute("SELECT n FROM accounts WHERE id = 1").fetchone(), (6,))


HEAVY = "SELECT count(*) FROM generate_numbers a, generate_numbers b, generate_numbers c WHERE a.n + b.n + c.n = -1"


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS generate_numbers")
            connection.execute("CREATE TABLE generate_numbers (n int)")
            with connection.cursor().copy("COPY generate_numbers FROM STDIN") as copy:
                for n in range(20_000):
                    copy.write_row((n,))

    def test_a_cancel_request_stops_a_query_and_the_connection_goes_on(self):
        with connect() as connection:
            started = []

            def cancel():
                time.sleep(0.3)
                started.append(time.monotonic())
                connection.cancel()

            threading.Thread(target=cancel).start()
            with self.assertRaises(psycopg.errors.QueryCanceled):
                connection.execute(HEAVY)
            self.assertLess(time.monotonic() - started[0], 5)
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))

    def test_a_statement_timeout_stops_a_query(self):
        with connect() as connection:
            connection.execute("SET statement_timeout = 200")
            with self.assertRaises(psycopg.errors.QueryCanceled):
                connection.execute(HEAVY)

    def test_a_server_side_cursor_reads_bit_by_bit(self):
        with connect() as connection:
            portal = connection.pgconn
            portal.send_query_params(b"SELECT n FROM generate_numbers WHERE n < $1 ORDER BY n", [b"1000"])
            portal.set_single_row_mode()
            rows = 0
            while result := portal.get_result():
                rows += result.ntuples
            self.assertEqual(rows, 1000)

    def test_two_hundred_clients_are_served_and_killed_ones_leave_no_locks(self):
        script = (
            "import psycopg, time\n"
            "c = psycopg.connect()\n"
            "c.execute('UPDATE killed SET n = n + 1 WHERE id = 1')\n"
            "print('ready', flush=True)\n"
            "time.sleep(60)\n"
        )
        with connect() as connection:
            connection.execute("DROP TABLE IF EXISTS killed")
            connection.execute("CREATE TABLE killed (id int PRIMARY KEY, n int)")
            connection.execute("INSERT INTO killed VALUES (1, 0)")
            for _ in range(3):
                client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
                self.assertEqual(client.stdout.readline(), b"ready\n")
                client.send_signal(signal.SIGKILL)
                client.wait()
                client.stdout.close()
                connection.execute("SET lock_timeout = '10s'")
                connection.execute("UPDATE killed SET n = n + 1 WHERE id = 1")
            self.assertEqual(connection.execute("SELECT n FROM killed").fetchone(), (3,))

        async def clients():
            connections = await asyncio.gather(
                *(psycopg.AsyncConnection.connect(autocommit=True) for _ in range(200))
            )
            cursors = await asyncio.gather(*(c.execute("SELECT n FROM killed WHERE id = %s", (1,)) for c in connections))
            rows = await asyncio.gather(*(cursor.fetchone() for cursor in cursors))
            await asyncio.gather(*(connection.close() for connection in connections))
            return rows

        self.assertEqual(asyncio.run(clients()), [(3,)] * 200)

    def test_malformed_messages_by_the_thousand_harm_nobody(self):
        def resident():
            with open(f"/proc/{os.environ['WIRE_SERVER_PID']}/status") as status:
                return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

        address = (os.environ["PGHOST"], int(os.environ["PGPORT"]))
        startup = b"user\0fuzz\0database\0lstore\0\0"
        startup = struct.pack("!II", len(startup) + 8, 196608) + startup
        state = 12345
        before = None
        for round_number in range(1_000):
            body = bytearray()
            for _ in range(60):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                body.append(state >> 56)
            kind = b"QPBDECHSXdcfFpz"[round_number % 15]
            length = [4 + len(body), 0, 3, 5, 2**31 - 1, 2**32 - 1, 70_000_000][round_number % 7]
            message = bytes([kind]) + struct.pack("!I", length) + bytes(body)
            with socket.create_connection(address, timeout=10) as client:
                client.sendall(startup + message if round_number % 5 else message)
                if round_number % 3 == 0:
                    try:
                        client.shutdown(socket.SHUT_WR)
                        while client.recv(4096):
                            pass
                    except ConnectionError:
                        pass  # it has closed with bytes of ours unread
            if round_number == 200:
                before = resident()
        time.sleep(0.5)
        with connect() as connection:
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))
        self.assertLess(resident() - before, 100_000, "kilobytes more than after the first 200")


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_asynchronous_connections_run_side_by_side(self):
        async def work(n):
            async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
                cursor = await connection.execute("SELECT %s::int * 2", (n,))
                return (await cursor.fetchone())[0]

        self.assertEqual(await asyncio.gather(*(work(n) for n in range(20))), [2 * n for n in range(20)])


if __name__ == "__main__":
    unittest.main()
