# SPDX-License-Identifier: Apache-2.0
"""Contracts whose events go to the destination `out`, relays as processes of their own, and what arrived."""
import collections
import contextlib
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
import uuid

import psycopg2

from serve_bed import BIN, LIMIT_S

LANES = 2  # of each destination
LEASE, SHORT_LEASE = "relay.lease=5s", "relay.lease=1s"  # on a busy machine a short one may be lost
EVENT = """\
event: Noted
version: 1
owner: tests
topic: tests.notes.v1
aggregate: note
partition_key: aggregate_id
required: [/text]
max_bytes: 65536
order: aggregate-version
deliver_to: [%s]
on_parked: { owner: notes, severity: critical, sla: 2h, skip_needs_approval: true }
"""
# The aggregate is the topic, so that it has many versions.
SCRIPTS = {
    "sqlite": """\
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid_emit('note', :topic, 'Noted', json_object('text', :text));
select 201 as status, 'note' as resource_type, :command_id as resource_id;
""",
    "postgres": """\
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid.emit('note', :topic, 'Noted', jsonb_build_object('text', :text));
select 201 as status, 'note' as resource_type, :command_id as resource_id;
"""}

# Of transactions by SQL: what is written is one round trip.
NOTE_SOME = """
create function note_some(aggregates text[], words text) returns void language plpgsql as $$
declare
	aggregate text;
	begun uuid;
begin
	foreach aggregate in array aggregates loop
		select b.command_id into begun from ibid.command_begin(tenant => 't', client => 'w', actor => 'w',
			operation => 'note-cold', key => gen_random_uuid()::text,
			payload => json_build_object('topic', aggregate, 'text', words)::text) as b;
		perform ibid.emit('note', aggregate, 'Noted', jsonb_build_object('text', words), command_id => begun);
		perform ibid.command_complete(begun, status => 201);
	end loop;
end $$"""


def wait_until(done, what, limit=LIMIT_S, every=0.02):
    end = time.monotonic() + limit
    while True:
        said = done()
        if said:
            return said
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(every)


def freeze(process):
    """Stop it. Where others are busy it goes on for a while after the signal, so this waits until it stands still."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status


def first_order_fault(versions):
    """What is wrong with the versions of one aggregate, in the order in which they came: *first* occurrences are in order,
    where a destination does not fence."""
    first = list(dict.fromkeys(versions))
    return None if first == list(range(1, len(first) + 1)) else "first occurrences: %s" % first


class Relays:
    """Contracts whose events go to `out`, and relays as processes of their own."""
    deliver_to = "out"

    def setUp(self):
        super().setUp()
        for store, script in SCRIPTS.items():
            self.file("note.%s.sql" % store, script)
        self.file("noted.yaml", EVENT % self.deliver_to)
        applied = self.ibid("contract", "apply", self.contracts, "--store", self.url)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.out = os.path.join(self.dir, "out.ndjson")

    def ibid(self, *arguments, **more):
        return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)

    def to_file(self):
        return ["relay.destinations.out.file.path=" + self.out]

    def relay(self, *settings):
        log = open(os.path.join(self.dir, "relay-%s" % uuid.uuid4().hex[:8]), "a+", encoding="utf-8")
        self.addCleanup(log.close)
        process = subprocess.Popen([BIN, "relay", "--store", self.url, "--contracts", self.contracts, LEASE,
                                    *settings], stdout=subprocess.DEVNULL, stderr=log)
        process.log = log

        def end():
            if process.poll() is None:
                process.kill()
                process.wait(LIMIT_S)
        self.addCleanup(end)
        return process

    def freeze_between(self, relay):
        """Between two transactions. False: it can't be stopped right now. Who is stopped inside a transaction of SQLite's keeps all others out."""
        freeze(relay)
        if self.store == "postgres":
            return True
        with contextlib.closing(sqlite3.connect(self.path, timeout=1, isolation_level=None)) as db:
            try:
                db.execute("begin immediate")
                db.execute("rollback")
                return True
            except sqlite3.OperationalError:
                relay.send_signal(signal.SIGCONT)
                return False

    def write(self, server, count, topics=5):
        for n in range(count):
            answer = server.send("k-%s-%d" % (uuid.uuid4().hex[:8], n), {"topic": "t%d" % (n % topics), "text": "x%d" % n})
            self.assertEqual(answer.status, 201, answer)

    def rows(self, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
                return db.execute(sql).fetchall()
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def await_evidence(self, count, limit=120):
        def there():
            return self.number("select count(distinct event_id) from " + self.ledger("delivery"))
        wait_until(lambda: there() >= count, lambda: "%d of %d" % (there(), count), limit, every=max(0.02, count / 100000))

    def lines(self):
        if not os.path.exists(self.out):
            return []
        with open(self.out, encoding="utf-8") as handle:
            return [json.loads(line) for line in handle if line.endswith("\n")]

    def first_occurrences(self):
        """By aggregate: the versions in the order in which they came first."""
        seen, order = set(), collections.defaultdict(list)
        for event in self.lines():
            if event["id"] not in seen:
                seen.add(event["id"])
                order[event["subject"]].append(int(event["aggregateversion"]))
        return order

    def await_events(self, count):
        wait_until(lambda: len({event["id"] for event in self.lines()}) >= count,
                   lambda: "%d of %d arrived" % (len({event["id"] for event in self.lines()}), count))

    def assert_whole(self, count):
        self.await_events(count)
        order = self.first_occurrences()
        self.assertEqual(sum(map(len, order.values())), count)
        for aggregate, versions in order.items():
            self.assertEqual(versions, list(range(1, len(versions) + 1)), aggregate)
        wait_until(lambda: self.number("select count(distinct event_id) from " + self.ledger("delivery")) == count,
                   "evidence is missing")


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            status = self.server.decide(self.headers, json.loads(body))
            if status < 300:
                self.server.got.append((self.headers["ce-subject"], int(self.headers["ce-aggregateversion"]),
                                        self.headers["ce-id"]))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Listener(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # with five, a caller among several at once is let in a second later


class Receivers:
    """Who receives webhooks, and decides with which status each is answered."""

    def receiver(self, decide):
        server = Listener(("127.0.0.1", 0), Receiver)
        server.lock, server.got, server.decide = threading.Lock(), [], decide
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        prefix = "relay.destinations.out."
        return server, [prefix + "webhook.url=http://127.0.0.1:%d/events" % server.server_port,
                        prefix + "webhook.allow_private=yes", prefix + "backoff=10ms..50ms",
                        prefix + "webhook.secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
