# SPDX-License-Identifier: Apache-2.0
"""A server with a store of its own for each test, and a client that speaks plain HTTP to it."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
import uuid

import psycopg2

BIN = os.environ["IBID_BIN"]
SOURCE = os.environ["IBID_SOURCE_DIR"]
PG = os.environ.get("IBID_TEST_PG")
MOVED = os.environ.get("IBID_MOVED_BIN")  # the same program with a clock that tests move
LIMIT_S = 60
with open(BIN, "rb") as binary:
    SANITIZED = re.search(rb"__[at]san_init", binary.read()) is not None  # it has memory of its own beside the program's
# AddressSanitizer keeps what was freed for a while: not where memory is measured.
MEASURED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}

DEFAULTS = """\
owner: tests
strategy: key
key: { from: header, generated_by: client, scope: [client], retain: 30d, after_expiry: refuse }
unknown_fields: keep
same_payload: { context: [] }
duplicates:
  completed: replay
  rejected: replay
  rejected_other_payload: conflict
  in_progress: answer
  other_payload: conflict
  by_source: { client: replay, service: replay, broker: skip, replay: skip, human: show }
  evidence: count
failures: { validation: final, business: final, server: retry }
answer: { store: full }
audit: { retain: 10y }
emits: [Noted]
covers: [note row]
reconciled_by: none
corrected_by: none
"""
NOTE = """\
command: %(name)s
version: %(version)d
fact: a note is taken
%(more)s
fields:
  /topic: { type: text, required: true, max: 60 }
  /text: { type: text, max: 200 }
  /amount: { type: decimal, above: 0, scale: 2 }
handler: { sql: note.$store.sql }
"""
SCRIPTS = {
    "sqlite": """\
select ibid_reject('FORBIDDEN_TOPIC', 409, 'nobody speaks of it') where :topic = 'forbidden';
insert into broken (id) select null where :topic = 'broken';
update hot set count = count + 1 where topic = :topic;
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid_emit('note', :command_id, 'Noted', json_object('topic', :topic));
select 201 as status, json_object('id', :command_id, 'topic', :topic) as body, 'note' as resource_type,
  :command_id as resource_id;
""",
    "postgres": """\
select ibid.reject('FORBIDDEN_TOPIC', 409, 'nobody speaks of it') where :topic = 'forbidden';
insert into broken (id) select null where :topic = 'broken';
update hot set count = count + 1 where topic = :topic;
insert into note (id, topic, text) values (:command_id, :topic, :text);
select ibid.emit('note', :command_id::text, 'Noted', jsonb_build_object('topic', :topic));
select 201 as status, jsonb_build_object('id', :command_id, 'topic', :topic) as body, 'note' as resource_type,
  :command_id as resource_id;
"""}
FIND = """\
select %sreject('OTHER_TOPIC', 409, 'the text is taken') from note where text = :text and topic <> :topic;
select 200 as status, null as body, 'note' as resource_type, id as resource_id from note where text = :text;
"""
SCHEMA = """\
create table note (id %(id)s primary key, topic text not null, text text)%(strict)s;
create unique index note_text on note (text) where text like 'once%%';
create table broken (id text not null)%(strict)s;
create table hot (topic text primary key, count %(int)s not null)%(strict)s;
insert into hot values ('hot', 0);
"""
SQLITE_TYPES = {"id": "text", "int": "integer", "strict": " strict"}
POSTGRES_TYPES = {"id": "uuid", "int": "bigint", "strict": ""}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return "%d %r %r" % (self.status, dict(self.headers), self.body[:300])

    @property
    def json(self):
        return json.loads(self.body)


class Clock:
    """By how much the clocks of the servers that are given it are ahead."""

    def __init__(self, bed):
        self.path = os.path.join(bed.dir, "clock-" + uuid.uuid4().hex[:8])
        self.steady_us = self.wall_us = 0
        self.advance(0)

    def advance(self, seconds):
        self.steady_us += int(seconds * 1000000)
        self.set_wall(seconds)

    def set_wall(self, seconds):
        """The wall clock alone is set forward, as when it was wrong and is put right."""
        self.wall_us += int(seconds * 1000000)
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as handle:
            handle.write(struct.pack("=qq", self.steady_us, self.wall_us))


class Server:
    """`ibid serve` as a process."""

    def __init__(self, bed, *settings, env=None, stderr=None, clock=None):
        env = dict(env or {}, **({"IBID_TEST_CLOCK": clock.path} if clock else {}))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
        self.log_path = os.path.join(bed.dir, "log-%s" % uuid.uuid4().hex[:8])
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [MOVED if clock else BIN, "serve", "--store", bed.url, "--contracts", bed.contracts, "http.listen=127.0.0.1:0",
                 "http.open.tenant=t", *settings], stdout=subprocess.PIPE, stderr=stderr or log, env=dict(clean, **env))
        line = self.process.stdout.readline().decode()
        if "ibid serves at " not in line:
            self.process.wait(LIMIT_S)
            self.process.stdout.close()
            raise AssertionError("no server: %s%s" % (line, self.log()))
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])
        bed.addCleanup(self.end)

    def log(self):
        with open(self.log_path, encoding="utf-8") as handle:
            return handle.read()

    def logged(self, event, **members):
        whole = (line for line in self.log().splitlines(keepends=True) if line.endswith("\n"))
        return [entry for entry in map(json.loads, filter(str.strip, whole)) if
                entry["event"] == event and members.items() <= entry.items()]

    def await_logged(self, event, count=1, **members):
        end = time.monotonic() + LIMIT_S
        while len(self.logged(event, **members)) < count:
            assert time.monotonic() < end, self.log()
            time.sleep(0.01)

    def kill(self):
        self.process.kill()
        self.process.wait(LIMIT_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)

    def end(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()

    def memory_kib(self, name="VmRSS"):
        """Now; VmHWM: the most that it was."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as handle:
            return int(next(line for line in handle if line.startswith(name)).split()[1])

    def ask(self, method, path, body=None, headers=None, timeout=LIMIT_S):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def send(self, key, document, operation="note", path=None, **headers):
        body = document if isinstance(document, (bytes, str)) else json.dumps(document)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            named["Idempotency-Key"] = key
        return self.ask("POST", path or "/v1/commands/" + operation, body,
                        dict({"Content-Type": "application/json"}, **named))

    def raw(self, data, timeout=LIMIT_S):
        """What comes back for these bytes; until the server closes or an answer is whole."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as wire:
            wire.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while True:
                    piece = wire.recv(65536)
                    got += piece
                    if not piece or (b"\r\n\r\n" in got and complete(got)):
                        return got
            return got


def over_tls(bed, *settings):
    """The file of a key, beside which is its certificate, and a server that has them."""
    pem = os.path.join(bed.dir, "server.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", pem, "-out", pem + ".crt",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, timeout=LIMIT_S)
    return pem, Server(bed, "http.tls.certificate=%s.crt" % pem, "http.tls.key=" + pem, *settings)


def complete(got):
    head, _, body = got.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False


# Values of Idempotency-Key, and the keys that they are (RFC 8941, 3.3.3); or what is said of them.
KEY_VALUES = (
    (b'"ab"', "ab"), (b"ab", "ab"), (b"ab ", "ab"), (b"ab \t ", "ab"), (b"\tab", "ab"), (b"   ab", "ab"), (b'"ab" \t', "ab"), (b'\t"ab"', "ab"),
    (b'"a b"', "a b"), (b"a b", "a b"), (b'"a;x=1"', "a;x=1"), (b"ab;x=1", "ab;x=1"), (b'a"b"', 'a"b"'),
    (b'"a\\"b"', 'a"b'), (b'"a\\\\b"', "a\\b"), (b"a\\b", "a\\b"), (b'"!~"', "!~"), ("käse".encode(), "käse"),
    ('"käse"'.encode(), "byte 2 of the quoted key is not printable ASCII"), (b'"ab\x7f"', None), (b'"ab\tc"', "byte 3 of the quoted key"),
    (b'"ab\xff"', "byte 3 of the quoted key"), (b"ab\xff", "UTF-8"), (b"a\tb", "control character"),
    (b'"ab";x=1', "takes no parameters"), (b'"ab"; x', "takes no parameters"), (b'"ab" x', "takes no parameters"),
    (b'"ab", "cd"', "takes no parameters"), (b'"ab"c"', "takes no parameters"),
    (b'"ab', "the quotation mark at the end"), (b'"', "the quotation mark at the end"), (b'"ab\\"', "the quotation mark at the end"),
    (b'"a\\nb"', "a backslash stands before"), (b'"ab\\', "a backslash stands before"),
    (b'""', "key"), (b"", "key"), (b" ", None), (b'" ab"', "starts with a blank"), (b'"ab "', "ends with a blank"), (b'" "', "with a blank"),
)


class Bed:
    """A store of its own per test; Sqlite and Postgres say which."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-serve-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.contracts = os.path.join(self.dir, "contracts")
        os.mkdir(self.contracts)
        self.file("defaults.yaml", DEFAULTS)
        self.note("note", "route: POST /topics/{topic}/notes\nserialize_by: [/topic]")
        self.note("note-cold", "")
        self.note("note-wait", "duplicates: { in_progress: wait 30s }")
        self.note("note-later", "duplicates: { in_progress: accepted }")
        self.note("note-once", "unique:\n  note_text: { on_duplicate: link, find: find-note.$store.sql }")
        for store, script in SCRIPTS.items():
            self.file("note.%s.sql" % store, script)
            self.file("find-note.%s.sql" % store, FIND % ("ibid_" if store == "sqlite" else "ibid."))
        self.file("schema.sqlite.sql", SCHEMA % SQLITE_TYPES)
        self.file("schema.postgres.sql", SCHEMA % POSTGRES_TYPES)
        self.open_store()
        made = subprocess.run([BIN, "init", "--store", self.url, "--contracts", self.contracts], timeout=LIMIT_S,
                              capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)

    def note(self, name, more, version=1):
        self.file(name + ".yaml", NOTE % {"name": name, "version": version, "more": more})

    def file(self, name, text):
        with open(os.path.join(self.contracts, name), "w", encoding="utf-8") as handle:
            handle.write(text)

    def counts(self):
        """Notes, audit entries, events."""
        return tuple(self.number("select count(*) from " + table) for table in ("note", self.ledger("audit"),
                                                                                  self.ledger("event")))


class Sqlite(Bed):
    store = "sqlite"

    def open_store(self):
        self.path = os.path.join(self.dir, "store.db")
        self.url = "sqlite:" + self.path

    def ledger(self, table):
        return "ibid_" + table

    def number(self, sql):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            return db.execute(sql).fetchone()[0]

    def change(self, sql):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
            db.execute(sql)

    @contextlib.contextmanager
    def hot_row_locked(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S, isolation_level=None)) as db:
            db.execute("begin immediate")
            yield
            db.execute("rollback")


@unittest.skipUnless(PG, "needs PostgreSQL (tools/with-postgres)")
class Postgres(Bed):
    store = "postgres"

    def open_store(self):
        name = "serve_" + uuid.uuid4().hex[:12]
        self.admin("create database " + name)
        self.addCleanup(self.admin, "drop database %s with (force)" % name)
        self.url = PG.rsplit("/", 1)[0] + "/" + name

    def admin(self, sql):
        with contextlib.closing(psycopg2.connect(PG)) as db:
            db.autocommit = True
            db.cursor().execute(sql)

    def ledger(self, table):
        return "ibid." + table

    def number(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]

    def change(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(sql)

    def await_blocked(self, count):
        """Until so many wait for a lock; other tests use other databases of the same server."""
        end = time.monotonic() + LIMIT_S
        while self.number("select count(*) from pg_locks join pg_stat_activity using (pid) "
                          "where not granted and datname = current_database()") < count:
            assert time.monotonic() < end
            time.sleep(0.01)

    @contextlib.contextmanager
    def hot_row_locked(self):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute("update hot set count = count where topic = 'hot'")
            yield
            db.rollback()
