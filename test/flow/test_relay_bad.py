# SPDX-License-Identifier: Apache-2.0
"""One event that is too large, one that is not JSON and one that may not be written, among ten thousand on their way to
Kafka: their aggregates stop, each is an exception, and all others flow (C04, C06, C08). Needs IBID_TEST_PG and
tools/with-kafka --secure."""
import concurrent.futures
import contextlib
import json
import os
import unittest
import uuid

import psycopg2

import serve_bed
from kafka_bed import BROKER, Kafka, by_aggregate, control
from relay_bed import EVENT, NOTE_SOME, wait_until
from serve_bed import Server

SCRIPTS = {
    "sqlite": """\
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid_emit('note', :topic, 'Noted', json_object('text', :text)) where :text not in ('large', 'secret');
select ibid_emit('note', :topic, 'Enlarged', json_object('text', hex(zeroblob(3000)))) where :text = 'large';
select ibid_emit('note', :topic, 'Hidden', json_object('text', :text)) where :text = 'secret';
select 201 as status, 'note' as resource_type, :command_id as resource_id;
""",
    "postgres": """\
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid.emit('note', :topic, 'Noted', jsonb_build_object('text', :text)) where :text not in ('large', 'secret');
select ibid.emit('note', :topic, 'Enlarged', jsonb_build_object('text', repeat('x', 6000))) where :text = 'large';
select ibid.emit('note', :topic, 'Hidden', jsonb_build_object('text', :text)) where :text = 'secret';
select 201 as status, 'note' as resource_type, :command_id as resource_id;
"""}
WRITERS, AGGREGATES = 8, 100


class Bad(Kafka):
    def setUp(self):
        super().setUp()
        self.small, self.closed = self.topic + "-small", self.topic + "-closed"
        control("topic", self.small, "1", "max.message.bytes=2000")
        control("topic", self.closed, "1")
        control("allow", self.closed, "bob")
        for event, topic in (("Enlarged", self.small), ("Hidden", self.closed)):
            self.file(event.lower() + ".yaml", (EVENT % "out").replace("event: Noted", "event: " + event).replace(
                "tests.notes.v1", topic))
        for store, script in SCRIPTS.items():
            self.file("bad.%s.sql" % store, script)
        self.note("note-bad", "emits: [Noted, Enlarged, Hidden]")
        with open(os.path.join(self.contracts, "note-bad.yaml"), encoding="utf-8") as handle:
            contract = handle.read()
        self.file("note-bad.yaml", contract.replace("note.$store.sql", "bad.$store.sql"))
        applied = self.ibid("contract", "apply", self.contracts, "--store", self.url)
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def as_alice(self):
        with open(os.path.join(BROKER, "address-sasl"), encoding="ascii") as handle:
            door = handle.read().strip()
        kafka = "relay.destinations.out.kafka."
        return [*self.to_kafka(), kafka + "brokers=" + door, kafka + "security.protocol=sasl_plaintext",
                kafka + "sasl.mechanisms=PLAIN", kafka + "sasl.username=alice", kafka + "sasl.password=alice-secret"]

    def open_exceptions(self):
        listed = self.ibid("exception", "list", "--store", self.url, "--tenant", "t", "--json")
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def held(self):
        return sorted(self.rows("select aggregateid, version, state from " + self.ledger("delivery_hold")))

    def test_what_can_not_go_stops_its_aggregate_only_and_waits_for_a_person(self):
        server = Server(self)

        def say(aggregate, text):
            answer = server.send(uuid.uuid4().hex, {"topic": aggregate, "text": text}, operation="note-bad")
            self.assertEqual(answer.status, 201, answer)
        bad = {"big": "large", "secret": "secret", "garbled": None}
        for aggregate in bad:
            say(aggregate, "before")
        self.write_others(self.COUNT // 2)
        for aggregate, text in bad.items():
            if text:
                say(aggregate, text)
            else:
                self.garble(aggregate)
        self.relay(*self.as_alice())
        self.write_others(self.COUNT // 2)
        for aggregate in bad:
            say(aggregate, "behind")
        self.await_evidence(self.COUNT + len(bad))
        wait_until(lambda: len(self.held()) == 6, lambda: str(self.held()))
        self.assertEqual(self.held(), [(aggregate, version, state) for aggregate in sorted(bad)
                                       for version, state in ((2, "PARKED"), (3, "WAITS"))])
        items = {item["key"]: item for item in self.open_exceptions()}
        self.assertEqual({key: (item["reason"], item["queue"], item["severity"], item["owner"])
                          for key, item in items.items()},
                         {"note big version 2": ("RECORD_TOO_LARGE", "dead-letter", "critical", "notes"),
                          "note secret version 2": ("TOPIC_AUTHORIZATION", "security", "critical", "notes"),
                          "note garbled version 2": ("RECORD_MALFORMED", "dead-letter", "critical", "notes")})
        records = self.read()
        self.assertEqual(len(records), self.COUNT + len(bad))  # nobody was killed: nothing twice
        came = by_aggregate(records)
        self.assertEqual([came.pop(aggregate) for aggregate in bad], [[1], [1], [1]])
        for aggregate, versions in came.items():
            self.assertEqual(versions, list(range(1, len(versions) + 1)), aggregate)
        self.assertEqual((self.read(self.small), self.read(self.closed)), ([], []))
        self.decide({key.split()[1]: item for key, item in items.items()})

    def token(self, client, roles):
        made = self.ibid("token", "create", "--store", self.url, "--tenant", "t", "--client", client, "--roles", roles, "--json")
        return json.loads(made.stdout)["token"]

    def act(self, token, *words):
        done = self.ibid(*words, "--store", self.url, "--reason", "it was looked at",
                         env=dict(os.environ, IBID_TOKEN=token))
        self.assertEqual(done.returncode, 0, done.stderr)

    def decide(self, items):
        """The cause of one is mended and it is released; two people let the others be skipped. What waited goes, in order."""
        olga, paul = self.token("olga", "operator"), self.token("paul", "approver")
        control("allow", self.closed, "alice")
        event = {aggregate: item["subjectId"].split("/")[1] for aggregate, item in items.items()}
        self.act(olga, "outbox", "release", event["secret"], "--destination", "out")
        for aggregate in ("big", "garbled"):
            self.act(olga, "outbox", "skip", event[aggregate], "--destination", "out")
            self.act(paul, "exception", "approve", items[aggregate]["id"])
        self.await_evidence(self.COUNT + 3 + 4)  # the secret one, and the three that waited
        self.assertEqual(by_aggregate(self.read(self.closed)), {"secret": [2]})
        came = by_aggregate(self.read())
        self.assertEqual([came[aggregate] for aggregate in ("big", "secret", "garbled")], [[1, 3], [1, 3], [1, 3]])
        self.assertEqual(self.open_exceptions(), [])
        self.assertEqual(sorted(self.rows("select action, actor, reason from " + self.ledger("action"))),
                         [(action, who, "it was looked at") for action, who in (
                             ("approve", "paul"), ("approve", "paul"), ("propose", "olga"), ("propose", "olga"),
                             ("release", "olga"))])
        self.assertEqual(self.rows("select action, proposed_by, decided_by from " + self.ledger("approval")),
                         [("skip", "olga", "paul")] * 2)


class OnSqlite(Bad, serve_bed.Sqlite, unittest.TestCase):
    COUNT = 1000

    def write_others(self, count):
        server = Server(self)

        def one(number):
            document = {"topic": "a%d" % (number % AGGREGATES), "text": "x"}
            return server.send(uuid.uuid4().hex, document, operation="note-cold").status
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            self.assertEqual(set(pool.map(one, range(count))), {201})

    def garble(self, aggregate):
        """As nobody can who goes through a contract."""
        with contextlib.closing(serve_bed.sqlite3.connect(self.path, timeout=serve_bed.LIMIT_S)) as db, db:
            columns = [row[1] for row in db.execute("pragma table_info(ibid_event)")]
            row = dict(zip(columns, db.execute("select * from ibid_event where aggregateid = ?", (aggregate,)).fetchone()))
            row.update(id=str(uuid.uuid4()), key=uuid.uuid4().hex, version=2, payload="{not JSON",
                       seq=db.execute("select max(seq) + 1 from ibid_event").fetchone()[0])
            db.execute("insert into ibid_event (%s) values (%s)" % (", ".join(row), ", ".join("?" * len(row))),
                       list(row.values()))
            db.execute("update ibid_aggregate set version = 2 where id = ?", (aggregate,))


class OnPostgres(Bad, serve_bed.Postgres, unittest.TestCase):
    COUNT = 10000

    def setUp(self):
        super().setUp()
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(NOTE_SOME)

    def write_others(self, count):
        names = ["a%d" % number for number in range(AGGREGATES)]
        with contextlib.closing(psycopg2.connect(self.url)) as db:
            for _ in range(count // AGGREGATES):
                with db, db.cursor() as cursor:
                    cursor.execute("select note_some(%s, 'x')", (names,))

    def garble(self, aggregate):
        """As nobody can who goes through a contract."""
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute("""
                select ibid.append_event('t', gen_random_uuid(), 1, 'note', %s, 'Noted', '{not JSON', null, null, null, null,
                    now(), null, null, e.topic, e.partition_key, e.headers)
                from ibid.event as e where e.aggregateid = %s""", (aggregate, aggregate))


if __name__ == "__main__":
    unittest.main(verbosity=2)
