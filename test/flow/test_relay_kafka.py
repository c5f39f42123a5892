# SPDX-License-Identifier: Apache-2.0
"""From PostgreSQL and from SQLite to a real Kafka, while relays are killed and stopped past their leases and the broker
pauses: every committed event is there, none that was rolled back, each aggregate in version order. Needs IBID_TEST_PG and
tools/with-kafka, whose broker is this test's own."""
import collections
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import unittest
import uuid

import psycopg2

import serve_bed
from relay_bed import EVENT, Relays, wait_until
from serve_bed import LIMIT_S, Server

KAFKA = os.environ["IBID_TEST_KAFKA"]
CONTROL, BROKER = os.environ["IBID_TEST_KAFKA_CONTROL"], os.environ["IBID_TEST_KAFKA_DIR"]
PARTITIONS, AGGREGATES, WRITERS = 4, 60, 4


def control(*arguments):
    subprocess.run([CONTROL, arguments[0], BROKER, *arguments[1:]], check=True, timeout=LIMIT_S)


class Kafka(Relays):
    def setUp(self):
        super().setUp()
        self.topic = "relay-" + uuid.uuid4().hex[:8]
        control("topic", self.topic, str(PARTITIONS))
        self.file("noted.yaml", (EVENT % "out").replace("version: 1", "version: 2").replace("tests.notes.v1", self.topic))
        applied = self.ibid("contract", "apply", self.contracts, "--store", self.url)
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def to_kafka(self, *more):
        return ["relay.destinations.out.kafka.brokers=" + KAFKA, "relay.destinations.out.kafka.delivery_timeout=3s",
                "relay.destinations.out.backoff=50ms..500ms", "relay.destinations.out.breaker.probe_every=200ms", *more]

    def read(self):
        """What a reader of committed records sees: (aggregate, version, id, partition, offset), by partition."""
        got = subprocess.run(["kcat", "-C", "-b", KAFKA, "-t", self.topic, "-e", "-q", "-X", "isolation.level=read_committed",
                              "-f", "%p\t%o\t%k\t%h\n"], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
        records = []
        for line in got.splitlines():
            partition, offset, key, headers = line.split("\t")
            named = dict(pair.split("=", 1) for pair in headers.split(",") if "=" in pair)
            self.assertEqual(key, named["ce_subject"])
            records.append((named["ce_subject"], int(named["ce_aggregateversion"]), named["ce_id"], int(partition), int(offset)))
        return records

    def assert_log(self, count):
        """Every event once at least, and nothing skipped: a repetition begins again and goes on from there."""
        wait_until(lambda: self.number("select count(distinct event_id) from " + self.ledger("delivery")) >= count,
                   lambda: "%d of %d" % (self.number("select count(distinct event_id) from " + self.ledger("delivery")), count),
                   limit=120)
        records = self.read()
        self.assertEqual(len({id_ for _, _, id_, _, _ in records}), count)
        last, most = {}, collections.Counter()
        for aggregate, version, _, _, _ in records:
            before = last.get(aggregate, 0)
            self.assertLessEqual(version, before + 1, "%s: %d after %d in %s" % (
                aggregate, version, before, [record[1:] for record in records if record[0] == aggregate][-40:]))
            last[aggregate] = version
            most[aggregate] = max(most[aggregate], version)
        self.assertEqual(sum(most.values()), count)  # and by that none that was rolled back
        there = {(id_, partition, offset) for _, _, id_, partition, offset in records}
        self.assertEqual(set(self.evidence()) - there, set())
        return records

    def test_events_arrive_with_their_place_in_the_log(self):
        server = Server(self, *self.to_kafka())
        self.write(server, 40)
        records = self.assert_log(40)
        self.assertEqual(len(records), 40)


class OnSqlite(Kafka, serve_bed.Sqlite, unittest.TestCase):
    def evidence(self):
        db = sqlite3.connect(self.path, timeout=LIMIT_S)
        self.addCleanup(db.close)
        return db.execute("select event_id, partition, position from ibid_delivery").fetchall()


class OnPostgres(Kafka, serve_bed.Postgres, unittest.TestCase):
    EVENTS = 4000

    def evidence(self):
        db = psycopg2.connect(self.url)
        self.addCleanup(db.close)
        with db.cursor() as cursor:
            cursor.execute("select event_id::text, partition, position from ibid.delivery")
            return cursor.fetchall()

    def write_by_sql(self, count, seed):
        """Transactions of one to five commands, some of them rolled back, by the SQL API."""
        luck = random.Random(seed)
        written = 0
        db = psycopg2.connect(self.url)
        try:
            while written < count:
                with db.cursor() as cursor:
                    some = luck.randint(1, min(5, count - written))
                    for aggregate in sorted(luck.sample(range(AGGREGATES), some)):
                        cursor.execute("select command_id from ibid.command_begin(tenant => 't', client => 'w', actor => 'w', "
                                       "operation => 'note-cold', key => %s, payload => %s)",
                                       (uuid.uuid4().hex, '{"topic":"a%d","text":"x"}' % aggregate))
                        command, = cursor.fetchone()
                        cursor.execute("select ibid.emit('note', %s, 'Noted', %s::jsonb, command_id => %s)",
                                       ("a%d" % aggregate, '{"text":"x"}', command))
                        cursor.execute("select ibid.command_complete(%s, status => 201)", (command,))
                if luck.random() < 0.1:
                    db.rollback()
                else:
                    db.commit()
                    written += some
        finally:
            db.close()

    def test_killed_stopped_and_paused_it_loses_nothing_and_reorders_nothing(self):
        luck = random.Random(7)
        writers = [threading.Thread(target=self.write_by_sql, args=(self.EVENTS // WRITERS, seed)) for seed in range(WRITERS)]
        relays = [self.relay(*self.to_kafka("relay.batch=50")) for _ in range(3)]
        stopped = []
        for writer in writers:
            writer.start()
        for round_ in range(12):
            time.sleep(luck.uniform(0.1, 0.5))  # spreads what follows over the run
            at = luck.randrange(len(relays))
            act = round_ % 4
            if act == 0:
                relays[at].kill()
                relays[at].wait(LIMIT_S)
                relays[at] = self.relay(*self.to_kafka("relay.batch=50"))
            elif act in (1, 2):  # past its lease: others go on, and it wakes up as a zombie
                relays[at].send_signal(signal.SIGSTOP)
                stopped.append((time.monotonic() + 2.5, relays[at]))
                relays[at] = self.relay(*self.to_kafka("relay.batch=50"))
            else:
                control("pause")
                time.sleep(luck.uniform(0.1, 0.5))
                control("resume")
            for until, relay in [entry for entry in stopped if entry[0] < time.monotonic()]:
                relay.send_signal(signal.SIGCONT)
                stopped.remove((until, relay))
        for until, relay in stopped:
            time.sleep(max(0, until - time.monotonic()))
            relay.send_signal(signal.SIGCONT)
        for writer in writers:
            writer.join(LIMIT_S)
        self.assertEqual(self.number("select count(*) from ibid.event"), self.EVENTS)
        self.assert_log(self.EVENTS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
