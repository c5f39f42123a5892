# SPDX-License-Identifier: Apache-2.0
"""From PostgreSQL and from SQLite to a real Kafka. Needs IBID_TEST_PG and tools/with-kafka; what becomes of it when
somebody is killed is in test_relay_kill.py."""
import contextlib
import time
import unittest

import psycopg2

import serve_bed
from kafka_bed import Kafka
from relay_bed import NOTE_SOME, wait_until
from serve_bed import Server


class Arrive(Kafka):
    def test_events_arrive_with_their_place_in_the_log(self):  # C05, C09
        server = Server(self, *self.to_kafka())
        self.write(server, 40)
        self.await_evidence(40)
        self.assertEqual(len(self.assert_log()), 40)


class OnSqlite(Arrive, serve_bed.Sqlite, unittest.TestCase):
    pass


class OnPostgres(Arrive, serve_bed.Postgres, unittest.TestCase):
    def note_some(self, db, names):
        db.cursor().execute("select note_some(%s, 'x')", (names,))

    def latency_s(self, db, count=25):
        """From the commit of one event to its acknowledgement, in seconds: the quickest of some. A busy machine delays some,
        an outbox that is read again and again all of them."""
        took = []
        for _ in range(count):
            self.note_some(db, ["fresh"])
            db.commit()
            committed = time.time()
            cursor = db.cursor()
            self.fresh += 1
            wait_until(lambda: self.came(cursor, self.fresh), "it does not come")
            took.append(self.came(cursor, self.fresh) - committed)
        return min(took)

    def came(self, cursor, version):
        cursor.execute("select extract(epoch from d.at)::float from ibid.event as e join ibid.delivery as d "
                       "on d.tenant = e.tenant and d.event_id = e.id "
                       "where e.aggregateid = 'fresh' and e.version = %s", (version,))
        row = cursor.fetchone()
        cursor.connection.rollback()
        return row and row[0]

    def read_by_looks(self, cursor, looks=200):
        """Index entries that one look of an idle relay at its lane reads, on the average of some."""
        def count():
            cursor.execute("select sum(idx_scan)::bigint, sum(idx_tup_read)::bigint from pg_stat_user_indexes "
                           "where schemaname = 'ibid' and indexrelname like 'event%%lane%%'")
            found = cursor.fetchone()
            cursor.connection.rollback()
            return found
        # What was done before is reported later, by a connection that rests up to ten seconds later.
        for _ in range(3):
            before = count()
            wait_until(lambda: count()[0] >= before[0] + looks, "nobody looks")
        after = count()
        return (after[1] - before[1]) / (after[0] - before[0])

    def test_open_transactions_neither_lose_nor_stall_nor_slow_anything(self):  # C03
        self.fresh = 0
        with contextlib.closing(psycopg2.connect(self.url)) as db, contextlib.closing(psycopg2.connect(self.url)) as own, \
                contextlib.closing(psycopg2.connect(serve_bed.PG)) as foreign:
            db.cursor().execute(NOTE_SOME)
            db.commit()
            foreign.cursor().execute("select pg_current_xact_id()")
            self.note_some(own, ["a%d" % number for number in range(50)] + ["late"])
            self.relay(*self.to_kafka())
            self.latency_s(db, 3)  # it has begun
            few, before = self.latency_s(db), self.read_by_looks(db.cursor())
            for _ in range(60):
                self.note_some(db, ["b%d" % number for number in range(100)])
                db.commit()
            self.await_evidence(6000 + self.fresh)
            many, after = self.latency_s(db), self.read_by_looks(db.cursor())
            # Bounds with room: a busy machine is no failure, an outbox that is read again and again is.
            self.assertLess(few, 0.5)
            self.assertLess(many, 3 * few + 0.25)
            self.assertLess(before, 5)
            self.assertLess(after, 5)
            own.commit()
            self.await_evidence(6000 + self.fresh + 51)
            self.assertEqual(len(self.assert_log()), 6000 + self.fresh + 51)


if __name__ == "__main__":
    unittest.main(verbosity=2)
