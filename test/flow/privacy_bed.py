# SPDX-License-Identifier: Apache-2.0
"""A store with contracts of every payload class, for the tests of what is kept and what is erased."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

import psycopg2

BIN = os.environ["IBID_BIN"]
PG = os.environ.get("IBID_TEST_PG")
PG_BIN = os.environ.get("IBID_TEST_PG_BIN", "")
LIMIT_S = 60

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
  evidence: each
failures: { validation: final, business: final, server: retry }
answer: { store: full }
audit: { retain: 10y }
emits: [Noted]
covers: [nothing]
reconciled_by: none
corrected_by: none
"""
FIELDS = {  # of each operation: the contract's class and those of its fields
    "stored": ("store", {"/note": "redact", "/card": "encrypt", "/pin": "omit", "/seen": "store"}),
    "plain": ("store", {}),
    "brief": ("store", {}),  # and no body: what would go the short way
    "redacted": ("redact", {"/seen": "store", "/card": "encrypt", "/pin": "omit"}),
    "shaped": ("redact", {"/seen": "store", "/pin": "omit"}),
    "mixed": ("store", {"/note": "redact", "/pin": "omit"}),
    "encrypted": ("encrypt", {"/pin": "omit", "/note": "redact"}),
    "unkept": (None, {"/note": "redact", "/card": "encrypt", "/pin": "omit", "/seen": "store"}),
}
TYPES = {"/mode": "text", "/note": "text", "/card": "json", "/pin": "integer", "/seen": "text"}
SCRIPTS = {
    "sqlite": """\
select ibid_reject('QUOTED', 422, 'note ' || :note || ', card ' || (:card ->> 'number') || ', pin ' || :pin)
  where :mode = 'reject';
insert into broken (id) select null where :mode = 'fail';
select ibid_emit('note', :command_id, 'Noted', '{}');
select 201 as status, json_object('seen', :seen) as body, 'note' as resource_type, :command_id as resource_id;
""",
    "postgres": """\
select ibid.reject('QUOTED', 422, 'note ' || :note || ', card ' || (:card ->> 'number') || ', pin ' || :pin)
  where :mode = 'reject';
select fail_with(:note) where :mode = 'fail';
select ibid.emit('note', :command_id::text, 'Noted', '{}'::text);
select 201 as status, jsonb_build_object('seen', :seen) as body, 'note' as resource_type, :command_id as resource_id;
"""}
NOTE, CARD, PIN, SEEN, LOOSE = "note-9f3ac1", "4929777088", 83527164, "seen-77ab01", "loose-c0ffee"
KEYS = "k2 %s\nk1 %s\n" % ("ab" * 32, "cd" * 32)


def contract(name):
    payload, classes = FIELDS[name]
    lines = ["command: " + name, "version: 1", "fact: a note is taken"]
    lines += ["payload: " + payload] if payload else []
    lines += ["fields:"]
    for pointer, kind in TYPES.items():
        lines.append("  %s: { type: %s%s }" % (pointer, kind, ", class: " + classes[pointer] if pointer in classes else ""))
    lines += ["answer: { store: reference }"] if name == "brief" else []
    return "\n".join(lines + ["handler: { sql: note.$store.sql }", ""])


def document(mode, **more):
    return dict({"mode": mode, "note": NOTE, "card": {"number": CARD, "to": [1, None, True]}, "pin": PIN, "seen": SEEN,
                 "loose": {"a": LOOSE, "b": [False, 1.50]}}, **more)


class Bed:
    """A store of its own per test; Sqlite and Postgres say which."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-classes-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.contracts = os.path.join(self.dir, "contracts")
        os.mkdir(self.contracts)
        self.file("contracts/defaults.yaml", DEFAULTS)
        for name in FIELDS:
            self.file("contracts/%s.yaml" % name, contract(name))
        for store, script in SCRIPTS.items():
            self.file("contracts/note.%s.sql" % store, script)
        self.file("contracts/schema.sqlite.sql", "create table broken (id text not null) strict;\n")
        self.file("contracts/schema.postgres.sql", "create function fail_with(why text) returns void language plpgsql "
                  "as $$ begin raise exception 'broken by %', why; end $$;\n")
        self.keys = self.file("keys", KEYS, 0o600)
        self.said = ""
        self.open_store()
        self.ibid("init", "--contracts", self.contracts)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        os.chmod(path, mode)
        return path

    def ibid(self, *args, code=0, stdin="", keys=None, env=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
        more = ["--key-file", keys] if keys else []
        done = subprocess.run([BIN, *args, "--store", self.url, *more], input=stdin, timeout=LIMIT_S, cwd=self.dir,
                              env=dict(clean, **(env or {})), capture_output=True, text=True)
        self.said += done.stdout + done.stderr
        if code is not None:
            self.assertEqual(code, done.returncode, "%s\n%s%s" % (args, done.stdout, done.stderr))
        return done

    def submit(self, operation, key, payload, code=0, keys="", **more):
        text = payload if isinstance(payload, str) else json.dumps(payload)
        ran = self.ibid("submit", "--contracts", self.contracts, "--tenant", "t", "--operation", operation, "--key", key,
                        "--client", "c", "--actor", "ann", "--json", code=code, stdin=text,
                        keys=self.keys if keys == "" else keys, **more)
        return json.loads(ran.stdout) if ran.stdout else ran.stderr

    def show(self, operation, key, *more, keys=None, code=0):
        ran = self.ibid("command", "show", "--tenant", "t", "--operation", operation, "--key", key, "--json", *more,
                        keys=keys, code=code)
        return json.loads(ran.stdout) if code == 0 else ran.stderr

    def payload(self, operation, key, keys=None):
        return self.show(operation, key, "--payload", keys=keys)["payload"]


class Sqlite(Bed):
    def open_store(self):
        self.path = os.path.join(self.dir, "store.db")
        self.url = "sqlite:" + self.path

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as db, db:
            return db.execute(text.replace("ibid.", "ibid_"), values).fetchall()

    def expire(self):
        old = "'00000000-0000-7000-8000-' || substr(id, 25)"
        for table, column in (("ibid_payload", "command_id"), ("ibid_answer", "command_id"), ("ibid_command", "id")):
            self.sql("update %s set %s = %s" % (table, column, old.replace("id,", column + ",")))
        self.sql("update ibid_command set expires_us = 1, audit_id = case when audit_id is null then null else id end")

    def raw(self):
        parts = [self.path + end for end in ("", "-wal") if os.path.exists(self.path + end)]
        found = b""
        for part in parts:
            with open(part, "rb") as handle:
                found += handle.read()
        return found


class Postgres(Bed):
    def open_store(self):
        self.assertTrue(PG, "IBID_TEST_PG is not set")
        name = "classes_%d_%s" % (os.getpid(), re.sub(r"\W", "", self.dir[-8:]).lower())
        self.url = PG.rsplit("/", 1)[0] + "/" + name
        self.psql(PG, "create database " + name)
        self.addCleanup(self.psql, PG, "drop database %s with (force)" % name)

    def psql(self, url, text):
        return subprocess.run(["psql", "-qAt", "-v", "ON_ERROR_STOP=1", url, "-c", text], check=True, capture_output=True,
                              text=True).stdout

    def sql(self, text, *values):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(text.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def expire(self):
        old = "('00000000-0000-7000-8000-' || right(%s::text, 12))::uuid"
        for table, column in (("payload", "command_id"), ("answer", "command_id"), ("command", "id")):
            self.sql("update ibid.%s set %s = %s" % (table, column, old % column))
        self.sql("update ibid.command set expires_at = 'epoch'")

    def raw(self):
        return subprocess.run([os.path.join(PG_BIN, "pg_dump"), "--data-only", self.url], check=True,
                              capture_output=True).stdout
