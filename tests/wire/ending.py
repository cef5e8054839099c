"""pg_terminate_backend by psycopg 3 against a server whose address is in the environment of libpq."""
import threading
import time
import unittest

import psycopg


def connect():
    return psycopg.connect(autocommit=True)


class Ending(unittest.TestCase):
    def setUp(self):
        self.ended, self.other = connect(), connect()
        self.addCleanup(self.ended.close)
        self.addCleanup(self.other.close)

    def end(self):
        pid = self.ended.info.backend_pid
        return self.other.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone()[0]

    def assert_gone(self):
        pid = self.ended.info.backend_pid
        for _ in range(500):
            if not self.other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall():
                return
            time.sleep(0.02)
        self.fail(f"session {pid} is still there")

    def test_an_idle_connection_is_told_and_ends(self):
        self.assertTrue(self.end())
        self.assert_gone()
        with self.assertRaisesRegex(psycopg.OperationalError, "terminating connection due to administrator command"):
            self.ended.execute("SELECT 1")
        self.assertFalse(self.end())

    def test_a_statement_that_runs_ends_with_its_connection(self):
        soon = threading.Timer(0.3, self.end)
        soon.start()
        with self.assertRaises(psycopg.errors.AdminShutdown):
            self.ended.execute("SELECT pg_sleep(60)")
        soon.join()
        self.assertTrue(self.ended.closed)
        self.assert_gone()

    def test_a_transaction_is_rolled_back_and_its_locks_are_free(self):
        self.other.execute("CREATE TABLE held (id int PRIMARY KEY, n int)")
        self.addCleanup(self.other.execute, "DROP TABLE held")
        self.other.execute("INSERT INTO held VALUES (1, 0)")
        self.ended.execute("BEGIN")
        self.ended.execute("UPDATE held SET n = 1")
        self.assertTrue(self.end())
        self.other.execute("SET lock_timeout = '30s'")
        self.other.execute("UPDATE held SET n = n + 10")
        self.assertEqual(self.other.execute("SELECT n FROM held").fetchone(), (10,))

    def test_a_session_may_end_itself(self):
        with self.assertRaises(psycopg.errors.AdminShutdown):
            self.ended.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        self.assert_gone()


if __name__ == "__main__":
    unittest.main()
