"""LISTEN and NOTIFY by psycopg 3 against a server whose address is in the environment of libpq."""
import threading
import time
import unittest

import psycopg


def connect():
    return psycopg.connect(autocommit=True)


def heard(listener, timeout=0.3, count=None):
    """What comes within that time, as channels and payloads."""
    return [(word.channel, word.payload) for word in listener.notifies(timeout=timeout, stop_after=count)]


class Undone(Exception):
    """Has a transaction rolled back."""


class Words(unittest.TestCase):
    def setUp(self):
        self.listener, self.speaker = connect(), connect()
        self.addCleanup(self.listener.close)
        self.addCleanup(self.speaker.close)
        self.listener.execute("LISTEN news")

    def test_an_idle_client_is_told_at_once_and_by_whom(self):
        soon = threading.Timer(0.2, lambda: self.speaker.execute("NOTIFY news, 'hello'"))
        soon.start()
        started = time.monotonic()
        [word] = self.listener.notifies(timeout=30, stop_after=1)
        soon.join()
        self.assertLess(time.monotonic() - started, 20)
        self.assertEqual((word.payload, word.pid), ("hello", self.speaker.info.backend_pid))

    def test_words_go_with_the_commit_once_and_in_their_order(self):
        with self.speaker.transaction():
            for payload in ("one", "two", "one"):
                self.speaker.execute("SELECT pg_notify('news', %s)", (payload,))
            with self.assertRaises(Undone), self.speaker.transaction():
                self.speaker.execute("NOTIFY news, 'taken back'")
                raise Undone
            self.assertEqual(heard(self.listener), [])
        self.assertEqual(heard(self.listener, 30, 2), [("news", "one"), ("news", "two")])
        with self.assertRaises(Undone), self.speaker.transaction():
            self.speaker.execute("NOTIFY news, 'rolled back'")
            raise Undone
        with self.assertRaises(psycopg.errors.DivisionByZero):
            self.speaker.execute("SELECT pg_notify('news', 'failed'), 1 / 0")
        self.assertEqual(heard(self.listener), [])

    def test_a_client_within_a_transaction_is_told_behind_it(self):
        self.listener.execute("BEGIN")
        self.speaker.execute("NOTIFY news, 'meanwhile'")
        self.assertEqual(heard(self.listener), [])
        self.listener.execute("COMMIT")
        self.assertEqual(heard(self.listener, 30, 1), [("news", "meanwhile")])

    def test_channels_are_named_as_tables_are(self):
        self.listener.execute('LISTEN "Two Words"')
        names = self.listener.execute("SELECT * FROM pg_listening_channels() AS name ORDER BY name").fetchall()
        self.assertEqual(names, [("Two Words",), ("news",)])
        self.speaker.execute("NOTIFY NEWS")
        self.speaker.execute("SELECT pg_notify('Two Words', 'x')")
        self.assertEqual(heard(self.listener, 30, 2), [("news", ""), ("Two Words", "x")])
        self.listener.execute("UNLISTEN news")
        self.listener.execute("DISCARD ALL")
        self.speaker.execute("NOTIFY news")
        self.assertEqual(heard(self.listener), [])

    def test_a_client_that_does_not_read_has_nobody_wait(self):
        # More than sockets hold.
        for number in range(600):
            self.speaker.execute("SELECT pg_notify('news', repeat('y', 7990) || %s::text)", (number,))
        # What the sockets did not take comes before the answer.
        self.assertEqual(self.listener.execute("SELECT 1").fetchone(), (1,))
        numbers = [int(payload.lstrip("y")) for _, payload in heard(self.listener, 60, 600)]
        self.assertEqual(numbers, list(range(600)))

    def test_nothing_is_lost_between_work_and_idleness(self):
        speakers, each = 3, 200

        def speak(name):
            with connect() as speaker:
                for number in range(each):
                    speaker.execute("SELECT pg_notify('news', %s)", (f"{name} {number}",))

        threads = [threading.Thread(target=speak, args=(name,)) for name in range(speakers)]
        for thread in threads:
            thread.start()
        got, busy = [], True
        while len(got) < speakers * each:
            if busy:
                self.listener.execute("SELECT 1")
            new = heard(self.listener, 0.001 if busy else 30, None if busy else 1)
            got.extend(payload for _, payload in new)
            busy = any(thread.is_alive() for thread in threads)
            self.assertTrue(new or busy, f"{len(got)} of {speakers * each} came")
        for thread in threads:
            thread.join()
        for name in range(speakers):
            numbers = [int(word.split()[1]) for word in got if word.startswith(f"{name} ")]
            self.assertEqual(numbers, list(range(each)))


if __name__ == "__main__":
    unittest.main()
