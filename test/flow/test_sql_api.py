# SPDX-License-Identifier: Apache-2.0
"""The SQL API as services in other languages use it: inside a transaction of their own, with their
ordinary drivers, and beside `ibid submit` on the same keys. Needs IBID_TEST_PG, a superuser's URL."""
import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
import uuid

import psycopg2
import psycopg2.errors
import psycopg2.extensions

import serve_bed

ROOT = os.environ.get("IBID_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("IBID_BIN") or os.path.join(ROOT, "build", "ibid"))
PG = os.environ.get("IBID_TEST_PG")
EXAMPLE = os.path.join(ROOT, "examples", "payments")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PAYMENT = '{"from":"A","to":"B","amount":12.50,"currency":"EUR"}'
OTHER = '{"from":"A","to":"B","amount":12.51,"currency":"EUR"}'
WRITE = "insert into payment values ('acme', gen_random_uuid(), 'A', 'B', 1, 'EUR', null, now())"
NODE_PG = "pg@8.13.1"
LIMIT_S = 60

# Policies beside the example's: name -> [(pattern, what takes its place)] in its contract.
VARIANTS = {
    "again": [(r"rejected: replay", "rejected: evaluate-again"),
              (r"rejected_other_payload: conflict", "rejected_other_payload: evaluate")],
    "soft": [(r"business: final", "business: retry")],
    "brief": [(r"store: full", "store: reference")],
    "strict": [(r"unknown_fields: keep", "unknown_fields: refuse")],
    "short": [(r"retain: 400d", "retain: 1h")],
    "fixable": [(r"validation: final", "validation: retry")],
}

# What holds a handler to its strategy, where the engine runs it.
LOOK = "look.sql"
STRATEGIES = {
    "natural": "strategy: natural\nalready: " + LOOK,
    "set-once": "strategy: set-once\nalready: %s\nstate: %s" % (LOOK, LOOK),
    "version": "strategy: version\nalready: %s\nstate: %s\nguard: { version: /version, apply: next, stale: link }"
               % (LOOK, LOOK),
    "commutative": "strategy: commutative\nstate: " + LOOK,
}
for _name, _lines in STRATEGIES.items():
    VARIANTS[_name] = [(r"strategy: key", _lines),
                       (r"fields:.*", "fields:\n  /version: { type: integer, required: true }"),
                       (r"emits:\n(?:  .*\n)+", "emits: []\n")]

# Work outside any transaction: name -> who runs it.
OUTSIDE = {"staged": "a program that calls ibid_stage", "upstream": "`ibid proxy`"}
BY_PROGRAM = [(r"answer: .*\n(?:  .*\n)+", "answer: { store: full }\n"), (r"reject:\n(?:  .*\n)+", "")]
VARIANTS["staged"] = BY_PROGRAM + [(r"emits:\n(?:  .*\n)+", "emits: [PaymentCreated]\n"), (r"handler:.*", "staged: { lease: 30s, recover: human }\nhandler: callback")]
VARIANTS["upstream"] = BY_PROGRAM + [
    (r"serialize_by: .*\n", ""), (r"emits:\n(?:  .*\n)+", "emits: []\n"),
    (r"handler:.*", "route: POST /upstream\nstaged: { lease: 30s, recover: human }\nhandler: upstream\n"
                    "upstream: { deadline: 5s, without_key: refuse, conflict: keep, error: unknown }")]


def run_ibid(*arguments, stdin=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
    return subprocess.run([BIN, *arguments], input=stdin, capture_output=True, text=True, env=environment,
                          timeout=LIMIT_S, check=False)


def node_script(name, text):
    """The path of a script beside the module that it imports, which is installed once per build directory."""
    modules = os.path.join(os.environ.get("IBID_BUILD_DIR") or os.path.join(ROOT, "build"), "node")
    if not os.path.exists(os.path.join(modules, "node_modules", "pg")):
        subprocess.run(["npm", "install", "--prefix", modules, "--no-audit", "--no-fund", "--loglevel=error",
                        NODE_PG], check=True, timeout=300)
    script = os.path.join(modules, name)
    with open(script, "w", encoding="utf-8") as handle:
        handle.write(text)
    return script


def samples():
    """The programs of the SQL API's page, by their language; `sql` is the one it begins with."""
    with open(os.path.join(ROOT, "docs", "sql-api.md"), encoding="utf-8") as page:
        return dict(re.findall(r"^```(\w+)\n(.*?)^```$", page.read(), re.M | re.S))


def write_contracts(directory):
    for name in os.listdir(EXAMPLE):
        if name == "payment-created.yaml":
            continue  # what is emitted here is of no form: test_events.py holds events to their contract
        with open(os.path.join(EXAMPLE, name), encoding="utf-8") as handle:
            text = handle.read()  # the event's contract would say of what it is
        text = text.replace("- PaymentCreated:\n", "- PaymentCreated:\n      aggregate_type: payment\n")
        with open(os.path.join(directory, name), "w", encoding="utf-8") as handle:
            handle.write(text)
        if name != "create-payment.yaml":
            continue
        with open(os.path.join(directory, LOOK), "w", encoding="utf-8") as handle:
            handle.write("select 201 as status where :from = :to;\n")
        for variant, changes in VARIANTS.items():
            changed = text.replace("command: create-payment", "command: %s-payment" % variant)
            changed = re.sub(r"^route:.*\n", "", changed, flags=re.M)
            for pattern, new in changes:
                changed, count = re.subn(pattern, new, changed, count=1)
                assert count == 1, pattern
            with open(os.path.join(directory, "%s.yaml" % variant), "w", encoding="utf-8") as handle:
                handle.write(changed)


class SqlApi(unittest.TestCase):
    """One database per test, with two tenants and an application role for each."""

    def setUp(self):
        self.assertTrue(PG, "IBID_TEST_PG is not set: run through tools/with-postgres")
        unique = uuid.uuid4().hex[:12]
        self.database = "ibid_sql_" + unique
        self.roles = ["app_acme_" + unique, "app_globex_" + unique]
        self.admin("create database " + self.database)
        self.directory = tempfile.TemporaryDirectory()
        write_contracts(self.directory.name)
        self.url = PG.rsplit("/", 1)[0] + "/" + self.database
        made = run_ibid("init", "--store", self.url, "--contracts", self.directory.name)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.connections = []
        self.root = self.connect(self.url)
        self.root.autocommit = True
        for role, tenant in zip(self.roles, ("acme", "globex")):
            self.ask(self.root, "create role %s login in role ibid_app" % role)
            self.ask(self.root, "select ibid.grant_tenant(%s, %s)", role, tenant)
        self.app = self.connect(self.url_of(0))

    def tearDown(self):
        for connection in self.connections:
            connection.close()
        self.admin("drop database %s with (force)" % self.database)
        for role in self.roles:
            self.admin("drop role " + role)
        self.directory.cleanup()

    def admin(self, sql):
        connection = psycopg2.connect(PG)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql)
        connection.close()

    def url_of(self, role):
        return re.sub(r"//[^@]*@", "//%s@" % self.roles[role], self.url)

    def connect(self, url, isolation=None):
        connection = psycopg2.connect(url, options="-c statement_timeout=%ds" % LIMIT_S)
        if isolation:
            connection.set_session(isolation_level=isolation)
        self.connections.append(connection)
        return connection

    def ask(self, connection, sql, *values):
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else None

    def one(self, connection, sql, *values):
        return self.ask(connection, sql, *values)[0][0]

    def begin(self, connection, key, payload=PAYMENT, operation="create-payment", tenant="acme", **more):
        names = dict(tenant=tenant, operation=operation, key=key, payload=payload, client="web", actor="u7")
        names.update(more)
        sql = "select decision, command_id, status, body, outcome, reason, message, resource_id, correctable from " \
              "ibid.command_begin(%s)" % ", ".join("%s => %%s" % name for name in names)
        row = self.ask(connection, sql, *names.values())[0]
        return dict(zip(("decision", "id", "status", "body", "outcome", "reason", "message", "resource_id", "correctable"), row))

    def pay(self, connection, key, payload=PAYMENT, operation="create-payment", tenant="acme"):
        begun = self.begin(connection, key, payload, operation, tenant)
        if begun["decision"] == "execute":
            amount = json.loads(payload)["amount"]
            self.ask(connection, "insert into payment values (%s, %s, 'A', 'B', %s, 'EUR', null, now())",
                     tenant, begun["id"], amount)
            self.ask(connection, "select ibid.emit('payment', %s, 'PaymentCreated', '{\"amount\":1}')",
                     begun["id"])
            self.ask(connection, "select ibid.command_complete(%s, 201, %s, 'payment', %s)", begun["id"],
                     '{"id": "%s"}' % begun["id"], begun["id"])
        return begun

    def submit(self, key, payload=PAYMENT, operation="create-payment"):
        done = run_ibid("submit", "--store", self.url, "--contracts", self.directory.name, "--tenant", "acme",
                        "--client", "web", "--actor", "u7", "--operation", operation, "--key", key, "--json",
                        stdin=payload)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def counts(self):
        return tuple(self.one(self.root, "select count(*) from " + table)
                     for table in ("payment", "ibid.command", "ibid.event", "ibid.audit"))

    def fails(self, state, connection, sql, *values):
        with self.assertRaises(psycopg2.Error) as caught:
            self.ask(connection, sql, *values)
        self.assertEqual(caught.exception.pgcode, state, caught.exception)
        connection.rollback()
        return str(caught.exception)

    # ---- One command ------------------------------------------------------------------------------

    def test_a_command_and_the_callers_changes_commit_together_and_a_retry_is_a_replay(self):  # B02, B03
        first = self.pay(self.app, "k-1")
        self.assertEqual(first["decision"], "execute")
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        self.app.commit()
        self.assertEqual(self.counts(), (1, 1, 1, 1))
        again = self.pay(self.app, "k-1", '{"currency":"EUR","amount":1.25e1,"to":"B","from":"A"}')
        self.app.commit()
        self.assertEqual((again["decision"], again["status"], again["outcome"], again["id"], again["body"]),
                         ("replay", 201, "executed", first["id"], '{"id": "%s"}' % first["id"]))
        self.assertEqual(self.counts(), (1, 1, 1, 1))
        replayed = self.submit("k-1")
        self.assertEqual((replayed["decision"], replayed["replayed"], replayed["body"]),
                         ("executed", True, {"id": first["id"]}))

    def test_what_ibid_submit_executed_is_replayed_in_sql(self):  # B03
        first = self.submit("k-1")
        self.assertEqual(first["decision"], "executed")
        again = self.pay(self.app, "k-1")
        self.assertEqual((again["decision"], again["id"], json.loads(again["body"])),
                         ("replay", first["commandId"], first["body"]))

    def test_the_same_key_with_another_payload_is_a_conflict_and_leaves_evidence(self):  # B04
        self.pay(self.app, "k-1")
        self.app.commit()
        other = self.pay(self.app, "k-1", OTHER)
        self.assertEqual((other["decision"], other["status"]), ("conflict", 409))
        self.pay(self.app, "k-1", OTHER)
        self.app.commit()
        self.assertEqual(self.counts(), (1, 1, 1, 1))
        self.assertEqual(self.ask(self.root, "select client, actor, count from ibid.evidence"), [("web", "u7", 2)])
        self.assertEqual(self.submit("k-1", OTHER)["decision"], "conflict")
        self.assertEqual(self.one(self.root, "select count from ibid.evidence"), 3)

    def test_rolled_back_is_as_if_never_begun(self):  # B02
        self.pay(self.app, "k-1")
        self.app.rollback()
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        self.assertEqual(self.pay(self.app, "k-1")["decision"], "execute")
        self.app.commit()
        self.assertEqual(self.counts(), (1, 1, 1, 1))

    def test_a_commit_with_an_unfinished_command_is_refused(self):  # B02
        begun = self.begin(self.app, "k-1")
        self.ask(self.app, "insert into payment values ('acme', %s, 'A', 'B', 1, 'EUR', null, now())", begun["id"])
        with self.assertRaises(psycopg2.Error) as caught:
            self.app.commit()
        self.assertEqual(caught.exception.pgcode, "IB011")
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        self.begin(self.app, "k-1")
        self.fails("IB011", self.app, "set constraints all immediate")
        self.begin(self.app, "k-1")
        self.fails("IB011", self.app, "prepare transaction 'x'")
        # What a savepoint takes back is not open.
        self.ask(self.app, "savepoint s")
        self.begin(self.app, "k-2")
        self.ask(self.app, "rollback to s")
        self.app.commit()
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_only_what_this_transaction_began_can_be_finished_and_once(self):
        other = self.connect(self.url_of(0))
        theirs = self.begin(other, "k-1")
        for finish in ("complete(%s)", "reject(%s, 'NO')", "fail(%s, 'x')"):
            message = self.fails("IB011", self.app, "select ibid.command_" + finish, theirs["id"])
            self.assertIn("not open in this transaction", message)
        self.fails("IB003", self.app, "select ibid.emit('a', 'b', 'PaymentCreated', '{}', command_id => %s)",
                   theirs["id"])
        self.fails("IB003", self.app, "select ibid.emit('a', 'b', 'PaymentCreated', '{}')")
        mine = self.begin(self.app, "k-2")
        self.ask(self.app, "select ibid.command_complete(%s)", mine["id"])
        self.fails("IB011", self.app, "select ibid.command_complete(%s)", mine["id"])
        done = self.pay(self.app, "k-3")
        self.app.commit()
        self.fails("IB011", self.app, "select ibid.command_complete(%s)", done["id"])

    def test_a_rejection_is_stable_and_the_same_in_c(self):  # B01, B07
        begun = self.begin(self.app, "k-1")
        self.ask(self.app, "select ibid.command_reject(%s, 'NO_FUNDS', 409, 'no funds')", begun["id"])
        self.app.commit()
        again = self.begin(self.app, "k-1")
        self.assertEqual((again["decision"], again["outcome"], again["status"], again["reason"], again["message"]),
                         ("replay", "rejected", 409, "NO_FUNDS", "no funds"))
        self.assertEqual(self.begin(self.app, "k-1", OTHER)["decision"], "conflict")
        told = self.submit("k-1")  # who only looks, in a transaction still open, keeps nobody waiting
        self.assertEqual((told["decision"], told["replayed"], told["status"]), ("rejected", True, 409))
        self.assertEqual(self.counts(), (0, 1, 0, 0))

    def test_what_is_refused_may_not_have_emitted(self):
        begun = self.begin(self.app, "k-1")
        self.ask(self.app, "savepoint work")
        self.ask(self.app, "select ibid.emit('payment', 'p', 'PaymentCreated', '{}')")
        self.ask(self.app, "savepoint emitted")
        with self.assertRaises(psycopg2.Error) as caught:
            self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
        self.assertEqual(caught.exception.pgcode, "IB011")
        self.ask(self.app, "rollback to work")
        self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
        self.app.commit()
        self.assertEqual(self.counts(), (0, 1, 0, 0))

    def test_what_is_refused_may_not_have_written(self):
        self.ask(self.root, "create sequence numbers; grant all on payment, ledger_entry, numbers to %s" % self.roles[0])
        self.pay(self.app, "before")  # the server still counts its rows for this session: they are not of what follows
        self.app.commit()
        stands = ("do $$ begin {0}; end $$", "savepoint s; {0}; release s", "update payment set amount = 2 where false",
                  "savepoint s; {0}; rollback to s; delete from payment where amount = 1", "truncate payment, ledger_entry")
        changes_nothing = ("savepoint s; {0}; rollback to s", "savepoint s; {0}; rollback to s; release s",
                           "do $$ begin {0}; raise 'no'; exception when others then null; end $$",
                           "select from payment for update", "select nextval('numbers')",
                           "create temp table mine as select 1 as a; update mine set a = 2; drop table mine")
        for number, finish in enumerate(("reject(%s, 'NO')", "fail(%s, 'x')")):
            refuse, key = "select ibid.command_" + finish, "k-%d" % number
            for work in stands:
                begun = self.begin(self.app, key)
                self.ask(self.app, work.format(WRITE))
                message = self.fails("IB011", self.app, refuse, begun["id"])
                self.assertRegex(message, "has written to .*public.payment: roll back to the savepoint")
            begun = self.begin(self.app, key)
            for work in changes_nothing:
                self.ask(self.app, work.format(WRITE))
            self.ask(self.app, refuse, begun["id"])
            self.ask(self.app, WRITE)  # a note of the caller's, which is not the command's
            self.app.commit()
        self.assertEqual(self.counts(), (3, 3, 1, 1))

    def test_what_is_refused_may_not_have_written_in_a_transaction_that_had_written(self):
        self.ask(self.root, "create table plain (a int); grant all on plain to %s" % self.roles[0])
        for written in (lambda: self.pay(self.app, "first"), lambda: self.ask(self.app, WRITE)):
            written()
            begun = self.begin(self.app, "k-1")
            self.ask(self.app, "savepoint work; insert into plain values (1)")
            self.assertEqual(self.one(self.app, "select count(*) from plain"), 1)
            with self.assertRaisesRegex(psycopg2.Error, "has written to public.plain:") as caught:
                self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
            self.assertEqual(caught.exception.pgcode, "IB011")
            self.ask(self.app, "rollback to work")
            self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
            self.app.rollback()

    def test_the_work_of_another_open_command_stops_no_rejection(self):
        first, second, third = (self.begin(self.app, "k-%d" % number) for number in range(3))
        self.ask(self.app, WRITE)  # whose work it is nobody can tell
        self.ask(self.app, "select ibid.command_complete(%s)", second["id"])
        for begun in (third, first):
            self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
        self.app.commit()
        self.assertEqual(self.counts(), (1, 3, 0, 1))

    def test_policies_decide_as_in_c(self):  # B01, B07, B08
        for operation, rejected, other in (("create-payment", "replay", "conflict"),
                                           ("again-payment", "execute", "execute"),
                                           ("soft-payment", "execute", "conflict")):
            begun = self.begin(self.app, operation, operation=operation)
            self.ask(self.app, "select ibid.command_reject(%s, 'NO')", begun["id"])
            self.app.commit()
            for payload, expected in ((PAYMENT, rejected), (OTHER, other)):
                self.assertEqual(self.begin(self.app, operation, payload, operation)["decision"], expected,
                                 (operation, payload))
                self.app.rollback()
        failed = self.begin(self.app, "failed")
        self.ask(self.app, "select ibid.command_fail(%s, 'out of paper')", failed["id"])
        self.app.commit()
        self.assertEqual(self.begin(self.app, "failed", OTHER)["decision"], "conflict")
        again = self.pay(self.app, "failed")
        self.assertEqual((again["decision"], again["id"]), ("execute", failed["id"]))
        self.app.commit()
        self.assertEqual(self.one(self.root, "select attempts from ibid.command where key = 'failed'"), 2)
        self.ask(self.root, "update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'failed'")
        for payload in (PAYMENT, OTHER):
            self.assertEqual(self.begin(self.app, "failed", payload)["decision"], "unknown")
        self.pay(self.app, "brief", operation="brief-payment")
        self.app.commit()
        brief = self.begin(self.app, "brief", operation="brief-payment")
        self.assertEqual((brief["body"], brief["status"], brief["resource_id"]), (None, 201, brief["id"]))
        self.pay(self.app, "short", operation="short-payment")
        self.app.commit()
        self.ask(self.root, "update ibid.command set expires_at = expires_at - interval '1 hour' where key = 'short'")
        self.assertEqual(self.begin(self.app, "short", operation="short-payment")["decision"], "expired")

    def test_an_invalid_payload_is_a_stable_rejection_in_sql_and_c_alike(self):  # B01, A03
        bad = [
            '{"from":"A","to":"B","amount":0,"currency":"EUR"}',
            '{"from":"A","to":"B","amount":1.234,"currency":"EUR"}',
            '{"from":"A","to":"B","amount":"1","currency":"EUR"}',
            '{"from":"A","to":"B","amount":1e40,"currency":"EUR"}',
            '{"from":"A","to":"B","amount":1e-400,"currency":"EUR"}',
            '{"from":"A","to":"B","amount":1e999999,"currency":"EUR"}',
            '{"from":"A","to":"B","amount":1,"currency":"XXX"}',
            '{"from":"A","to":null,"amount":1,"currency":"EUR"}',
            '{"from":"%s","to":"B","amount":1,"currency":"EUR"}' % ("A" * 35),
            '{"from":"A\\u0000","to":"B","amount":1,"currency":"EUR"}',
            '{"from":7,"to":"B","currency":"EUR"}',
            '[]',
        ]
        good = [
            '{"from":"%s","to":"B","amount":1.20,"currency":"EUR"}' % ("Ä" * 34),
            '{"from":"A","to":"B","amount":0.1e1,"currency":"EUR","more":{"a":"\\u0000"}}',
            '{"from":"\\\\u0000","to":"B","amount":12345678901234567890123456789012345.67,"currency":"EUR"}',
        ]
        for number, payload in enumerate(bad + good):
            key = "k-%d" % number
            begun = self.begin(self.app, key, payload)
            if payload in good:
                self.assertEqual(begun["decision"], "execute", payload)
                self.app.rollback()
                self.assertEqual(self.submit(key, payload)["decision"], "executed", payload)
                continue
            self.assertEqual((begun["decision"], begun["status"], begun["reason"]),
                             ("rejected", 422, "INVALID_PAYLOAD"), payload)
            self.app.commit()
            told = self.submit(key, payload)
            self.assertEqual((told["decision"], told["replayed"]), ("rejected", True), payload)
            fresh = self.submit("c-" + key, payload)
            self.assertEqual(sorted(fresh["body"]["detail"].split("; ")), sorted(begun["message"].split("; ")))
        strict = self.begin(self.app, "s", PAYMENT[:-1] + ',"a/b":1,"note":{}}', "strict-payment")
        self.assertIn("/a~1b is not a declared field", strict["message"])
        self.assertEqual(self.counts()[3], len(good))

    def test_an_invalid_payload_leaves_its_key_free_for_the_corrected_one(self):  # B03 B04
        """In SQL and in C alike, whichever of them refused it."""
        invalid, negative = (PAYMENT.replace("12.50", amount) for amount in ("0", "-1"))
        name = "fixable-payment"
        evidence = "select coalesce(sum(e.count), 0) from ibid.evidence e join ibid.command c on c.id = e.command_id where c.key = %s"

        def refused(key, payload):
            begun = self.begin(self.app, key, payload, name)
            self.assertEqual((begun["decision"], begun["status"], begun["reason"], begun["correctable"]),
                             ("rejected", 422, "INVALID_PAYLOAD", True), begun)

        refused("k-1", invalid)
        self.app.commit()
        begun = self.pay(self.app, "k-1", operation=name)
        self.assertEqual((begun["decision"], begun["correctable"]), ("execute", False))
        self.app.rollback()  # then it is as it was
        refused("k-1", negative)
        self.app.commit()
        self.assertEqual(self.one(self.root, evidence, "k-1"), 1)
        self.assertEqual(self.pay(self.app, "k-1", operation=name)["decision"], "execute")
        self.app.commit()
        self.assertEqual(self.one(self.root, evidence, "k-1"), 2)
        late = self.begin(self.app, "k-1", invalid, name)
        self.app.commit()
        self.assertEqual((late["decision"], late["status"], late["correctable"]), ("conflict", 409, False))
        self.assertEqual(self.one(self.root, evidence, "k-1"), 3)
        self.assertEqual(self.submit("k-1", operation=name)["replayed"], True)

        refused("k-2", invalid)  # and corrected in the same transaction
        self.assertEqual(self.pay(self.app, "k-2", operation=name)["decision"], "execute")
        self.app.commit()
        self.assertEqual(self.submit("k-2", invalid, name)["decision"], "conflict")

        refused("k-3", invalid)
        self.app.commit()
        self.assertEqual(self.submit("k-3", invalid, name)["correctable"], True)
        self.assertEqual(self.submit("k-3", operation=name)["decision"], "executed")
        self.assertEqual(self.begin(self.app, "k-3", invalid, name)["decision"], "conflict")
        self.app.commit()

        self.assertEqual(self.submit("k-4", invalid, name)["correctable"], True)
        self.assertEqual(self.pay(self.app, "k-4", operation=name)["decision"], "execute")
        self.app.commit()
        self.assertEqual(self.submit("k-4", invalid, name)["decision"], "conflict")
        self.assertEqual(self.counts(), (4, 4, 4, 4))

    def test_what_was_accepted_binds_the_key_though_it_fails(self):  # B04
        invalid, name = PAYMENT.replace("12.50", "0"), "fixable-payment"
        for key, end in (("failed", "select ibid.command_fail(%s, 'no luck')"), ("rejected", "select ibid.command_reject(%s, 'NO')")):
            self.begin(self.app, key, invalid, name)
            self.ask(self.app, end, self.begin(self.app, key, PAYMENT, name)["id"])
            self.app.commit()
            for payload in (invalid, OTHER):
                begun = self.begin(self.app, key, payload, name)
                self.app.commit()
                self.assertEqual((begun["decision"], begun["correctable"]), ("conflict", False), key)
                self.assertEqual(self.submit(key, payload, name)["decision"], "conflict", key)
        final = self.begin(self.app, "final", invalid)
        self.assertEqual((final["decision"], final["correctable"]), ("rejected", False))
        self.app.commit()
        self.assertEqual(self.begin(self.app, "final")["decision"], "conflict")
        self.app.commit()
        self.assertEqual(self.counts(), (0, 3, 0, 0))

    def test_of_corrections_in_sql_and_c_that_race_one_wins(self):  # B12
        name = "fixable-payment"
        payloads = [PAYMENT.replace("12.50", str(amount)) for amount in range(4)]  # the first is the original

        def by_sql(key, payload):
            connection = self.connect(self.url_of(0))
            while True:
                begun = self.pay(connection, key, payload, name)
                connection.commit()
                if begun["decision"] != "in_progress":
                    return begun["decision"]

        def by_submit(key, payload):
            while True:
                told = self.submit(key, payload, name)
                if told["decision"] != "in_progress":
                    return told["decision"]

        for n in range(3):
            key = "k-%d" % n
            self.begin(self.app, key, payloads[0], name)
            self.app.commit()
            said = [None] * (2 * len(payloads))
            calls = [threading.Thread(target=lambda i=i: said.__setitem__(i, (by_sql if i % 2 else by_submit)(key, payloads[i // 2])))
                     for i in range(len(said))]
            for call in calls:
                call.start()
            for call in calls:
                call.join()
            self.assertEqual(sum(word in ("execute", "executed", "replay") for word in said), 2, said)  # of one payload, once replayed
            self.assertLessEqual({word for word in said[:2]}, {"rejected", "conflict"}, said)
            self.assertEqual(self.counts(), (n + 1,) * 4)

    def test_a_trace_is_kept_with_its_own_command(self):  # K02
        """Several commands are open at once in one transaction; each has a trace of its own, or none."""
        others = ("00" + TRACE[2:-2] + "00", "a=\"1\",b=2"), (None, None), ("", None), (TRACE, None)
        begun = [self.begin(self.app, "k-%d" % n, traceparent=parent, tracestate=state, correlation_id="c-%d" % n)
                 for n, (parent, state) in enumerate(others)]
        for one in begun + begun[::-1]:
            self.ask(self.app, "select ibid.emit('payment', %s, 'PaymentCreated', '{}'::text, command_id => %s)", one["id"], one["id"])
        for one in begun:
            self.ask(self.app, "select ibid.command_complete(%s, 201)", one["id"])
        self.app.commit()
        for one, (parent, state) in zip(begun, others):
            for table in ("audit", "event"):
                self.assertEqual(set(self.ask(self.root, "select traceparent, tracestate from ibid.%s where command_id = %%s" % table,
                                              one["id"])), {(parent or None, state)})
        future = self.begin(self.app, "k-future", traceparent="cc" + TRACE[2:-2] + "03-more", tracestate="a=1", correlation_id="c")
        self.ask(self.app, "select ibid.command_reject(%s, 'NO')", future["id"])
        self.app.commit()
        kept = "select correlation_id, traceparent, tracestate from ibid.command where key = 'k-future'"
        self.assertEqual(self.ask(self.root, kept), [("c", TRACE, "a=1")])
        self.ask(self.root, "update ibid.command set state = 'FAILED' where key = 'k-future'")
        again = self.begin(self.app, "k-future")
        self.assertEqual((again["decision"], again["id"]), ("execute", future["id"]))
        self.ask(self.app, "select ibid.command_complete(%s, 201)", again["id"])
        self.app.commit()
        self.assertEqual(self.ask(self.root, kept), [(None, None, None)])
        retried = self.begin(self.app, "k-0", traceparent=TRACE)
        self.assertEqual(retried["decision"], "replay")
        self.app.commit()
        self.assertEqual(self.ask(self.root, "select traceparent from ibid.audit where command_id = %s", begun[0]["id"]),
                         [(others[0][0],)])

    def test_both_readers_of_a_trace_agree(self):  # K02
        """What SQL refuses the library refuses, and both keep the same text."""
        for n, parent in enumerate((TRACE, TRACE[:-2] + "ff", "cc" + TRACE[2:-2] + "ff", "cc" + TRACE[2:] + "-", "0" + TRACE, "cc" + TRACE[2:] + "0",
                                    "ff" + TRACE[2:], TRACE + "-", TRACE.replace("-", "_"), TRACE[:53] + "0g", "é" + TRACE[1:])):
            done = run_ibid("submit", "--store", self.url, "--contracts", self.directory.name, "--tenant", "acme", "--operation",
                            "create-payment", "--key", "k-%d" % n, "--client", "web", "--actor", "u7", "--traceparent", parent, stdin=PAYMENT)
            kept = self.ask(self.root, "select a.traceparent from ibid.audit a join ibid.command c on c.id = a.id where c.key = %s", "k-%d" % n)
            try:
                seen = self.one(self.root, "select ibid_internal.check_trace(%s, null)", parent)
            except psycopg2.Error as error:
                self.assertEqual((error.pgcode, kept), ("IB010", []), parent)
                self.assertIn("traceparent", done.stderr)
                self.root.rollback()
            else:
                self.assertEqual(kept, [(seen,)], done.stderr)

    def test_bad_input_is_a_clear_error_and_leaves_nothing(self):
        for arguments, text in (
                (dict(key=""), "key"), (dict(key="a\nb"), "key"), (dict(key=None), "key"),
                (dict(key="x" * 256), "key"), (dict(payload="{"), ""), (dict(payload='{"a":1,"a":2}'), "a"),
                (dict(payload=None), ""), (dict(operation="nothing"), "no contract"),
                (dict(correlation_id="x" * 129), "correlation id"), (dict(causation_id="a\nb"), "causation id"),
                *((dict(traceparent=bad), "traceparent") for bad in (
                    "x", TRACE.upper(), TRACE[:-1], TRACE + "0", TRACE + "-00", "ff" + TRACE[2:], TRACE[:3] + "0" * 32 + TRACE[35:],
                    TRACE[:36] + "0" * 16 + TRACE[52:], "cc" + TRACE[2:] + ".x", TRACE + "\n")),
                (dict(tracestate="a=1"), "tracestate"), (dict(traceparent="", tracestate="a=1"), "tracestate"),
                (dict(traceparent=TRACE, tracestate="x" * 513), "tracestate"),
                (dict(traceparent=TRACE, tracestate="a=\n"), "tracestate"), (dict(traceparent=TRACE, tracestate="ä=1"), "tracestate"),
                (dict(resource="x" * 129), "resource"), (dict(payload='"%s"' % ("x" * (4 << 20))), "payload"),
                (dict(operation=None), "no contract"), (dict(client=None), "client"), (dict(actor=None), "actor")):
            names = dict(key="k", payload=PAYMENT)
            names.update(arguments)
            with self.assertRaises(psycopg2.Error, msg=arguments) as caught:
                self.begin(self.app, **names)
            self.assertEqual(caught.exception.pgcode, "IB010", (arguments, caught.exception))
            self.assertIn(text, str(caught.exception))
            self.app.rollback()
        begun = self.begin(self.app, "k")
        self.ask(self.app, "savepoint s")
        for call, state in (("complete(%s, 500)", "IB010"), ("complete(%s, null)", "IB010"),
                            ("complete(%s, 200, 'no json')", "IB010"), ("complete(null)", "IB011"),
                            ("reject(%s, 'lower')", "IB010"), ("reject(%s, null)", "IB010"),
                            ("reject(%s, 'NO', 500)", "IB010"), ("reject(%s, repeat('N', 65))", "IB010"),
                            ("reject(%s, 'NO', 422, repeat('n', 2001))", "IB010"),
                            ("fail(%s, repeat('n', 2001))", "IB010"),
                            ("complete(%s, 200, null, repeat('t', 129), 'i')", "IB010"),
                            ("complete(%s, 200, null, 't', repeat('i', 256))", "IB010"),
                            ("complete(%s, 200, '\"' || repeat('b', 4 << 20) || '\"')", "IB010")):
            with self.assertRaises(psycopg2.Error, msg=call) as caught:
                self.ask(self.app, "select ibid.command_" + call, *([begun["id"]] if "%s" in call else []))
            self.assertEqual(caught.exception.pgcode, state, (call, caught.exception))
            self.ask(self.app, "rollback to s")
        self.ask(self.app, "select ibid.command_complete(%s)", begun["id"])
        self.app.commit()
        for tenant in ("", "a\nb", " a", "x" * 129):  # of a role that has them all
            with self.assertRaises(psycopg2.Error, msg=tenant) as caught:
                self.begin(self.root, "k", tenant=tenant)
            self.assertEqual((caught.exception.pgcode, "tenant" in str(caught.exception)), ("IB010", True))
        self.assertEqual(self.counts(), (0, 1, 0, 1))

    def test_a_strategy_that_looks_is_left_to_the_engine(self):  # A07
        for strategy in STRATEGIES:
            with self.assertRaises(psycopg2.Error, msg=strategy) as caught:
                self.begin(self.app, operation=strategy + "-payment", key="k", payload=PAYMENT)
            self.assertEqual(caught.exception.pgcode, "IB010", caught.exception)
            self.assertIn("has the strategy %s: it is enforced around its handler" % strategy, str(caught.exception))
            self.app.rollback()
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_work_outside_a_transaction_is_left_to_whoever_does_it(self):
        for name, runner in OUTSIDE.items():
            with self.assertRaises(psycopg2.Error, msg=name) as caught:
                self.begin(self.app, operation=name + "-payment", key="k", payload=PAYMENT)
            self.assertEqual(caught.exception.pgcode, "IB010", caught.exception)
            self.assertIn("operation %s-payment is staged: it is run by %s" % (name, runner), str(caught.exception))
            self.app.rollback()
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_with_several_open_commands_emit_is_told_which(self):
        first, second = self.begin(self.app, "k-1"), self.begin(self.app, "k-2")
        self.ask(self.app, "savepoint s")
        with self.assertRaises(psycopg2.Error) as caught:
            self.ask(self.app, "select ibid.emit('payment', 'p', 'PaymentCreated', '{}')")
        self.assertEqual(caught.exception.pgcode, "IB003")
        self.ask(self.app, "rollback to s")
        for begun in (first, second, first):
            self.ask(self.app, "select ibid.emit('payment', 'p', 'PaymentCreated', '{}'::jsonb, command_id => %s)",
                     begun["id"])
        self.ask(self.app, "select ibid.command_complete(%s)", first["id"])
        self.ask(self.app, "select ibid.command_complete(%s)", second["id"])
        self.app.commit()
        self.assertEqual(self.ask(self.root, "select command_id::text, ordinal, version from ibid.event order by version"),
                         [(first["id"], 1, 1), (second["id"], 1, 2), (first["id"], 2, 3)])

    # ---- At once ----------------------------------------------------------------------------------

    def test_a_twin_in_flight_is_answered_at_once_in_sql_and_c(self):  # B05
        self.pay(self.app, "k-1")
        other = self.connect(self.url_of(0))
        self.assertEqual(self.begin(other, "k-1")["decision"], "in_progress")
        other.rollback()
        self.assertEqual(self.submit("k-1")["decision"], "in_progress")
        self.app.commit()
        self.assertEqual(self.begin(other, "k-1")["decision"], "replay")

    def test_under_stricter_isolation_a_lost_race_asks_for_a_retry(self):
        for number, level in enumerate((psycopg2.extensions.ISOLATION_LEVEL_REPEATABLE_READ,
                                        psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE)):
            key = "k-%d" % number
            strict = self.connect(self.url_of(0), level)
            self.ask(strict, "select 1")  # its snapshot
            self.pay(self.app, key)
            self.app.commit()
            with self.assertRaises(psycopg2.Error) as caught:
                self.begin(strict, key)
            self.assertEqual(caught.exception.pgcode, "40001")
            strict.rollback()
            self.assertEqual(self.begin(strict, key)["decision"], "replay")
            strict.rollback()
            self.pay(strict, key + "-own")
            strict.commit()
            self.assertEqual(self.submit(key + "-own")["replayed"], True)

    def test_ten_thousand_commands_in_one_transaction(self):
        done = self.one(self.app, """
            with begun as materialized (
                select b.* from generate_series(1, 10000) as n, ibid.command_begin('acme', 'create-payment',
                    'k-' || n, '{"from":"A","to":"B","amount":' || n || ',"currency":"EUR"}', 'web', 'u7') as b)
            select count(ibid.command_complete(command_id, 201)) from begun where decision = 'execute'""")
        self.assertEqual(done, 10000)
        # They must not fill the server's table of locks.
        self.assertLessEqual(self.one(self.app, "select count(*) from pg_locks where locktype = 'advisory' "
                                                "and pid = pg_backend_pid()"), 1000)
        self.app.commit()
        self.assertEqual(self.counts(), (0, 10000, 0, 10000))
        self.assertEqual(self.begin(self.app, "k-9999", '{"from":"A","to":"B","amount":9999,"currency":"EUR"}')
                         ["decision"], "replay")

    def test_sql_from_python_and_node_and_c_race_on_the_same_keys(self):  # B12
        keys = ["k-%d" % n for n in range(12)]
        with open(os.path.join(ROOT, "test", "flow", "sql_api.mjs"), encoding="utf-8") as source:
            script = node_script("sql_api.mjs", source.read())
        answers, lock = [], threading.Lock()

        def note(decisions):
            with lock:
                answers.extend(decisions)

        def in_python():
            connection = psycopg2.connect(self.url_of(0))
            mine = []
            for key in keys:
                try:
                    mine.append(self.pay(connection, key)["decision"])
                    connection.commit()
                except psycopg2.Error as error:
                    mine.append(error.pgcode)
                    connection.rollback()
            connection.close()
            note(mine)

        def in_node():
            done = subprocess.run(["node", script, self.url_of(0), *keys], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            note(line.split()[1] for line in done.stdout.splitlines())

        def in_c():
            told = [self.submit(key) for key in keys]
            note("replay" if answer.get("replayed") else answer["decision"] for answer in told)

        workers = [threading.Thread(target=work) for work in (in_python, in_python, in_node, in_node, in_c)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len(answers), 5 * len(keys))
        self.assertEqual(sum(answer in ("execute", "executed") for answer in answers), len(keys), answers)
        self.assertLessEqual(set(answers), {"execute", "executed", "replay", "in_progress"})
        self.assertEqual(self.counts(), (len(keys),) * 4)

    # ---- The page -----------------------------------------------------------------------------------

    def test_every_sample_sets_a_savepoint_and_rolls_back_to_it_before_it_rejects(self):
        shown = samples()
        self.assertEqual(set(shown), {"sql", "python", "js", "java", "go"})
        for language, text in shown.items():
            order = r"(?is)command_begin.*savepoint\W.*insert into payment.*(rollback to work|rollback\(work\)).*command_reject"
            self.assertRegex(text, order, language)

    def run_sample(self, language, key, amount):
        given = {"tenant": "acme", "key": key, "amount": amount, "payer": "A", "event": "{}",
                 "body": '{"from":"A","to":"B","amount":%d,"currency":"EUR"}' % amount}
        text = samples()[language]
        if language == "python":
            exec(text, dict(given, connect=psycopg2.connect, URL=self.url_of(0), client="web", actor="u7", json=json))
            return
        names = dict(given, web="web", user="u7", answer='{"done":true}')
        script = node_script("sample.mjs", "import pg from 'pg';\nconst client = new pg.Client(process.argv[2]);\n"
                             "await client.connect();\nconst { %s } = JSON.parse(process.argv[3]);\n%s\nawait client.end();\n"
                             % (", ".join(names), text))
        done = subprocess.run(["node", script, self.url_of(0), json.dumps(names)], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_samples_keep_nothing_of_what_they_reject(self):
        for language in ("python", "js"):
            self.ask(self.root, """drop schema if exists shop cascade; create schema shop;
                create table shop.account (id text, balance numeric); insert into shop.account values ('A', 100);
                create table shop.payment (tenant text, id uuid, amount numeric);
                grant usage on schema shop to {0}; grant all on all tables in schema shop to {0};
                alter role {0} set search_path = shop""".format(self.roles[0]))
            for key, amount, left, paid in (("k", 60, 40, 1), ("k", 60, 40, 1), ("short", 60, 40, 1), ("rest", 40, 0, 2)):
                self.run_sample(language, language + key, amount)
                self.assertEqual(self.ask(self.root, "select (select balance from shop.account), (select count(*) from shop.payment)"),
                                 [(left, paid)], (language, key))
            self.assertEqual(self.begin(self.app, language + "short", '{"from":"A","to":"B","amount":60,"currency":"EUR"}')["reason"],
                             "NO_FUNDS")
            self.app.rollback()

    # ---- Tenants ----------------------------------------------------------------------------------

    def test_a_role_sees_and_uses_its_own_tenants_only_whatever_it_sets(self):  # K05
        globex = self.connect(self.url_of(1))
        theirs = self.pay(globex, "secret", tenant="globex")
        globex.commit()
        self.pay(globex, "secret", OTHER, tenant="globex")  # evidence
        globex.commit()
        self.pay(self.app, "k-1")
        self.app.commit()
        for tenant, id in (("globex", theirs["id"]), ("acme", str(uuid.uuid4()))):
            self.ask(self.root, "insert into ibid.payload values (%s, %s, %s)", tenant, id, '{"secret":"%s"}' % tenant)
            self.ask(self.root, "insert into ibid.erasure values (%s, %s, 'dora', 'asked', '{}', now(), now(), 1, 1, 1, 0, 0, 0, 0)",
                     tenant, id)
        self.assertEqual(self.ask(self.app, "select payload from ibid.payload"), [('{"secret":"acme"}',)])
        tables = dict(self.ask(self.root, """
            select c.relname, c.relkind::text from pg_class c where relnamespace = 'ibid'::regnamespace and relkind in ('r', 'p', 'v')"""))
        functions = self.ask(self.root, """
            select p.oid::regprocedure::text, p.oid from pg_proc p where pronamespace in ('ibid'::regnamespace, 'ibid_internal'::regnamespace)
            and has_function_privilege(%s, p.oid, 'execute')""", self.roles[0])
        settings = [("ibid.tenant", "globex"), ("ibid.command_id", theirs["id"]), ("ibid.begun", theirs["id"]),
                    ("ibid.open", "1"), ("ibid.ordinal", "0"), ("ibid.emits", "PaymentCreated"),
                    ("ibid.now", "2026-01-01"), ("ibid.correlation_id", ""), ("ibid.causation_id", ""), ("ibid.trace", TRACE),
                    ("ibid.locks", "5000"), ("row_security", "off"), ("search_path", "public, ibid"),
                    ("role", "ibid_app")]
        for setting in [None] + settings + [settings]:
            for name, value in (settings if setting is settings else [setting] if setting else []):
                self.ask(self.app, "select set_config(%s, %s, false)", name, value)
            self.app.commit()
            for table in tables:
                try:
                    rows = self.ask(self.app, "select t::text from ibid.%s as t" % table)
                except psycopg2.errors.InsufficientPrivilege:
                    self.app.rollback()
                    continue
                for row in rows:
                    self.assertNotIn("globex", row[0], (table, setting))
                    self.assertNotIn(theirs["id"], row[0], (table, setting))
                for change in ("update ibid.%s set %s = %s", "delete from ibid.%s"):
                    column = self.one(self.root, """select attname from pg_attribute where attrelid = %s::regclass
                        and attnum > 0 order by attnum limit 1""", "ibid." + table)
                    sql = change % ((table, column, column) if change.count("%s") == 3 else (table,))
                    self.fails("55000" if tables[table] == "v" else "42501", self.app, sql)  # no view can be written
            for key in ("secret", "new"):
                with self.assertRaises(psycopg2.Error) as caught:
                    self.begin(self.app, key, tenant="globex")
                self.assertEqual(caught.exception.pgcode, "42501")
                self.app.rollback()
            for call in ("complete(%s)", "reject(%s, 'NO')", "fail(%s, 'x')"):
                self.fails("IB011", self.app, "select ibid.command_" + call, theirs["id"])
            with self.assertRaises(psycopg2.Error) as caught:
                self.ask(self.app, "select ibid.emit('payment', 'p', 'PaymentCreated', '{}')")
            self.assertIn(caught.exception.pgcode, ("IB003", "42501"))
            self.app.rollback()
            self.ask(self.app, "reset all")
            self.ask(self.app, "reset role")
            self.app.commit()
        # Every function that the role may call, with the other tenant and its command for arguments.
        for signature, oid in functions:
            types = self.one(self.root, "select array(select t::regtype::text from unnest(proargtypes) t) "
                                        "from pg_proc where oid = %s", oid)
            given = {"text": "'globex'", "uuid": "'%s'" % theirs["id"], "integer": "1", "bigint": "1",
                     "json": "'{}'", "jsonb": "'{}'", "boolean": "true"}
            call = "select f::text from %s(%s) as f" % (
                signature.split("(")[0], ", ".join("%s::%s" % (given[kind], kind) for kind in types))
            try:
                for row in self.ask(self.app, call):
                    self.assertNotIn(theirs["id"], row[0] or "", signature)
            except psycopg2.Error as error:
                self.assertNotIn("secret", str(error))
            self.app.rollback()
        self.assertGreater(len(functions), 5)
        self.assertEqual(self.counts(), (2, 2, 2, 2))
        self.fails("42501", self.app, "select ibid.grant_tenant(%s, 'globex')", self.roles[0])
        self.fails("42501", self.app, "insert into ibid.tenant_role values (%s, 'globex')", self.roles[0])
        self.ask(self.root, "select ibid.revoke_tenant(%s, 'acme')", self.roles[0])
        self.assertEqual(self.ask(self.app, "select * from ibid.command"), [])
        with self.assertRaises(psycopg2.Error) as caught:
            self.begin(self.app, "k-1")
        self.assertEqual(caught.exception.pgcode, "42501")

    def test_another_store_on_the_same_server_gives_nobody_more(self):  # K05
        other = self.database + "_other"
        self.admin("create database " + other)
        try:
            made = run_ibid("init", "--store", PG.rsplit("/", 1)[0] + "/" + other, "--contracts", self.directory.name)
            self.assertEqual(made.returncode, 0, made.stderr)
        finally:
            self.admin("drop database %s with (force)" % other)
        with self.assertRaises(psycopg2.Error) as caught:
            self.begin(self.app, "k", tenant="globex")
        self.assertEqual(caught.exception.pgcode, "42501")
        self.app.rollback()
        for role in ("ibid_service", "ibid_operator", "ibid_eraser", "ibid_migrator"):
            self.assertFalse(self.one(self.root, "select pg_has_role(%s, %s, 'member')", self.roles[0], role), role)

    def test_a_caller_may_see_what_is_compared(self):  # A03
        self.assertEqual(self.one(self.app, "select ibid.canonical(%s)", '{"b": 1.50, "a": "\\u0000"}'),
                         '{"a":"\\u0000","b":1.5}')
        self.pay(self.app, "k-1")
        seen = self.one(self.app, "select ibid.fingerprint(ibid.contract_of('create-payment', null), 'acme', 'web', "
                                  "'u7', null, %s)", PAYMENT)
        self.assertEqual(bytes(seen), bytes(self.one(self.app, "select fingerprint from ibid.command")))

    def test_what_is_right_for_certain_is_right(self):  # A03
        rules = {"/t": {"type": "text", "max": "3"}, "/one": {"type": "text", "one_of": ["EUR", "a\\nb", 'q"']},
                 "/d": {"type": "decimal", "above": "0", "scale": "2"}, "/day": {"type": "date"},
                 "/n": {"type": "integer", "at_least": "-5", "below": "1000"}, "/b": {"type": "boolean"},
                 "/j": {"type": "json"}, "/in/side": {"type": "text", "required": "true"}, "/x~1y": {"type": "integer"}}
        values = ["null", "true", "0", "-0", "0.00", "0.001", "12.50", "12.500", "1e2", "999", "1000", "-5", "-6",
                  "9223372036854775808", "1e99999", "123456789012345678", '""', '"abc"', '"abcd"', '"\\u0061bc"',
                  '"EUR"', '"USD"', '"a\\nb"', '"a\\\\nb"', '"q\\""', '"\\u0000"', '"2024-02-29"', '"2023-02-29"', "[]", "{}",
                  '{"side":"x"}', '{"side":1}', '{"side":"x","other":1}']
        documents = ['{"in":{"side":"x"},"%s":%s}' % (name, value) for value in values
                     for name in ("t", "one", "d", "day", "n", "b", "j", "x/y", "x~1y", "other")]
        documents += ['{"in":%s}' % value for value in values] + ["[]", "1", "{}"]
        held, refused = 0, 0
        for unknown in ("keep", "refuse"):
            contract = json.dumps({"command": "c", "version": "1", "fields": rules, "unknown_fields": unknown})
            for document, certain, wrong in self.ask(self.root, """
                    select d, ibid_internal.fields_hold(t.fields, t.unknown_fields, d), ibid_internal.wrong_fields(%s::json, d)
                    from unnest(%s) as d, ibid_internal.terms_in(%s::json) as t""", contract, documents, contract):
                self.assertFalse(certain and wrong, (document, unknown, wrong))
                held += certain
                refused += wrong is not None
        self.assertGreater(held, 100)
        self.assertGreater(refused, 100)

    def test_a_contract_that_cannot_be_read_hurts_its_own_operation_only(self):
        for name, text, state in (("cut", '{"command"', "22P02"), ("nul", '{"fact":"\\u0000"}', "22P05")):
            self.ask(self.root, "insert into ibid.contract (kind, name, version, digest, text, at) "
                                "values ('command', %s, 1, '', %s, now())", name, text)
            with self.assertRaises(psycopg2.Error) as caught:
                self.begin(self.app, "k-1", operation=name)
            self.assertEqual(caught.exception.pgcode, state)
            self.app.rollback()
        self.assertEqual(self.pay(self.app, "k-1")["decision"], "execute")
        self.app.commit()

    def test_a_role_that_is_a_member_has_the_tenants_of_its_group(self):  # K05
        self.ask(self.root, "select ibid.revoke_tenant(%s, 'acme')", self.roles[0])
        with self.assertRaises(psycopg2.Error) as caught:
            self.pay(self.app, "k-1")
        self.assertEqual(caught.exception.pgcode, "42501")
        self.app.rollback()
        self.ask(self.root, "grant %s to %s" % (self.roles[1], self.roles[0]))
        self.ask(self.root, "select ibid.grant_tenant(%s, 'acme')", self.roles[1])
        self.assertEqual(self.pay(self.app, "k-1")["decision"], "execute")
        self.app.commit()

    def test_the_schema_that_people_look_at_holds_what_they_may_call(self):
        """`\\df ibid.*` is a page, not a book: the rest is in ibid_internal, but for what binaries of schema 1 call."""
        held = {name for name, in self.ask(self.root, "select proname from pg_proc where pronamespace = 'ibid'::regnamespace")}
        self.assertEqual(held, {
            "command_begin", "command_complete", "command_reject", "command_fail", "emit", "reject",
            "canonical", "fingerprint", "fingerprint_text", "key_of", "scope_of", "contract_of", "move", "define_machine", "post",
            "link_reference", "find_reference", "find_external", "grant_tenant", "revoke_tenant", "tenants", "outbox_states"} | {
            "append_event", "demand", "emit_json", "kept_body", "lock_key", "refuse_edit"})

    def test_every_function_and_table_says_what_it_is_for(self):
        silent = self.ask(self.root, """
            select p.oid::regprocedure::text from pg_proc p where pronamespace in ('ibid'::regnamespace, 'ibid_internal'::regnamespace)
              and obj_description(p.oid, 'pg_proc') is null
            union all
            select c.oid::regclass::text from pg_class c where relnamespace = 'ibid'::regnamespace
              and relkind in ('r', 'p', 'v') and not relispartition and obj_description(c.oid, 'pg_class') is null""")
        self.assertEqual(silent, [])


class SqlAndHttp(serve_bed.Postgres, unittest.TestCase):
    """One store, behind `ibid serve` and for callers of the SQL API."""
    # Blanks, the order of names, a number's and a letter's spelling: of each there are several in JSON.
    BODY = '{ "b" : 1.50,\n  "a": [1e2, "\\u00e9 é \\/"], "id":"n-1" }'

    def begin(self, cursor, key):
        cursor.execute("select decision, command_id, status, body from ibid.command_begin('t', 'note', %s, '{\"topic\":\"x\"}',"
                       " client => (select min(client) from ibid.command))", (key,))
        return cursor.fetchone()

    def test_a_replay_has_the_bytes_of_the_first_answer_whoever_gave_it(self):  # B03
        server = serve_bed.Server(self)
        send = lambda key: server.send(key, {"topic": "x"})
        first = send("http")
        self.assertEqual(first.status, 201)
        with contextlib.closing(psycopg2.connect(self.url)) as connection, connection.cursor() as cursor:
            for _ in range(2):
                decision, _, status, body = self.begin(cursor, "http")
                self.assertEqual((decision, status, body.encode()), ("replay", 201, first.body))
                connection.commit()
            begun = self.begin(cursor, "sql")
            self.assertEqual(begun[0], "execute")
            cursor.execute("select ibid.command_complete(%s, 201, %s)", (begun[1], self.BODY))
            connection.commit()
            self.assertEqual(self.begin(cursor, "sql"), ("replay", begun[1], 201, self.BODY))
        for key, body in (("http", first.body), ("sql", self.BODY.encode())):
            again = send(key)
            self.assertEqual((again.status, again.headers["Idempotent-Replayed"], again.body), (201, "true", body))


if __name__ == "__main__":
    unittest.main(verbosity=2)
