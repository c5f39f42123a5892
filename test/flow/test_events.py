# SPDX-License-Identifier: Apache-2.0
"""Events and their contracts as operators and services in other languages meet them: the command line on
both stores, and the SQL API in a transaction of the caller's. Needs IBID_TEST_PG, a superuser's URL."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import uuid

import psycopg2

ROOT = os.environ.get("IBID_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("IBID_BIN") or os.path.join(ROOT, "build", "ibid"))
PG = os.environ.get("IBID_TEST_PG")
FIXTURE = os.path.join(ROOT, "test", "flow", "events")
TOPIC = "tests.ledger.events.v1"
GOOD = {"amount": 1, "line": {"no": 2}, "account": "A-1"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LIMIT_S = 60


def but(**changes):
    """The good payload with members changed; None leaves one out."""
    payload = {**GOOD, **changes}
    return json.dumps({name: value for name, value in payload.items() if value is not None})


KEY = "its partition key /account "
# (aggregate, payload, what is said)
VIOLATIONS = [
    ("payment", but(), "its aggregate is payment, and its contract says ledger"),
    ("ledger", but(amount=None), "/amount is missing, which its contract requires"),
    ("ledger", '{"amount":null,"line":{"no":2},"account":"A"}', "/amount is missing, which its contract requires"),
    ("ledger", but(line=[2]), "/line/no is missing, which its contract requires"),
    ("ledger", but(note="n" * 100), "and its contract allows 120"),
    ("ledger", but(account=None), KEY + "is missing"),
    ("ledger", '{"amount":1,"line":{"no":2},"account":null}', KEY + "is missing"),
    ("ledger", but(account=""), KEY + "is an empty text"),
    ("ledger", but(account=True), KEY + "is neither a text nor an integer"),
    ("ledger", but(account={"id": 1}), KEY + "is neither a text nor an integer"),
    ("ledger", but(account=1.5), KEY + "is no integer of at most 18 digits"),
    ("ledger", but(account=10 ** 18), KEY + "is no integer of at most 18 digits"),
]


def run_ibid(*arguments, stdin=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
    return subprocess.run([BIN, *arguments], input=stdin, capture_output=True, text=True, env=environment,
                          timeout=LIMIT_S, check=False)


class Bed(unittest.TestCase):
    """A directory of contracts; a store of each kind is made by whoever wants one."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.contracts = os.path.join(self.directory, "contracts")
        shutil.copytree(FIXTURE, self.contracts)

    def sqlite(self):
        return "sqlite:" + os.path.join(self.directory, "test.db")

    def postgres(self):
        self.assertTrue(PG, "IBID_TEST_PG is not set: run through tools/with-postgres")
        name = "ibid_events_" + uuid.uuid4().hex[:12]
        self.admin("create database " + name)
        self.addCleanup(self.admin, "drop database %s with (force)" % name)
        return PG.rsplit("/", 1)[0] + "/" + name

    def admin(self, sql):
        connection = psycopg2.connect(PG)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql)
        connection.close()

    def init(self, store):
        made = run_ibid("init", "--store", store, "--contracts", self.contracts)
        self.assertEqual(made.returncode, 0, made.stderr)

    def write(self, name, text):
        with open(os.path.join(self.contracts, name), "w", encoding="utf-8") as handle:
            handle.write(text)

    def replace(self, name, old, new):
        with open(os.path.join(self.contracts, name), encoding="utf-8") as handle:
            text = handle.read()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new, 1))


class CommandLine(Bed):
    def submit(self, store, key, telling):
        """The payload itself is told: by a script with it written into it, as repairs change scripts."""
        aggregate, payload = telling
        for engine, emit in (("sqlite", "ibid_emit"), ("postgres", "ibid.emit")):
            self.write("tell.%s.sql" % engine,
                       "insert into told (id) values (:id);\n"
                       "select %s('%s', :id, 'Told', '%s');\n"
                       "select 201 as status, 'told' as resource_type, :id as resource_id;\n"
                       % (emit, aggregate, payload))
        return run_ibid("submit", "--store", store, "--contracts", self.contracts, "--tenant", "t", "--operation",
                        "tell", "--key", key, "--traceparent", TRACE, "--json", stdin=json.dumps({"id": key}))

    def show(self, store, key):
        shown = run_ibid("command", "show", "--store", store, "--tenant", "t", "--operation", "tell", "--key", key,
                         "--scope", '{"client":"cli"}', "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)

    def check_violations(self, store):
        self.init(store)
        for number, (aggregate, payload, said) in enumerate(VIOLATIONS):
            key = "k-%d" % number
            with self.subTest(payload=payload, aggregate=aggregate):
                failed = self.submit(store, key, (aggregate, payload))
                self.assertNotEqual(failed.returncode, 0)
                self.assertIn("event Told version 1: ", failed.stdout + failed.stderr)
                self.assertIn(said, failed.stdout + failed.stderr)
                shown = self.show(store, key)
                self.assertEqual((shown["state"], shown["events"]), ("FAILED", []))
                mended = self.submit(store, key, ("ledger", but()))
                self.assertEqual(mended.returncode, 0, mended.stdout + mended.stderr)
                event = self.show(store, key)["events"][0]
                self.assertEqual(
                    (event["topic"], event["partitionKey"], event["headers"], event["version"],
                     event["traceparent"]), (TOPIC, "A-1", {"event_version": "1", "deliver_to": "kafka-main,audit-file"}, 1, TRACE))

    def test_a_violation_fails_the_command_and_a_repair_lets_it_through_on_sqlite(self):
        self.check_violations(self.sqlite())

    def test_a_violation_fails_the_command_and_a_repair_lets_it_through_on_postgres(self):
        self.check_violations(self.postgres())

    def test_apply_keeps_events_and_doctor_and_status_compare_them(self):
        for store in (self.sqlite(), self.postgres()):
            self.init(store)
            self.replace("told.yaml", "version: 1", "version: 2")
            missing = run_ibid("doctor", "--store", store, "--contracts", self.contracts)
            self.assertIn("contract Told version 2 is not kept in the store yet", missing.stdout)
            applied = run_ibid("contract", "apply", self.contracts, "--store", store, "--json")
            self.assertEqual(applied.returncode, 0, applied.stderr)
            self.assertIn({"event": "Told", "version": 2}, [json.loads(line) for line in applied.stdout.splitlines()])
            told = run_ibid("status", "--store", store, "--contracts", self.contracts, "--json")
            self.assertEqual(json.loads(told.stdout)["contracts"]["count"], 4, told.stdout)
            self.replace("told.yaml", TOPIC, "another.topic")
            refused = run_ibid("contract", "apply", self.contracts, "--store", store)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("told.yaml: version 2 of Told was changed after it was put to use", refused.stderr)
            self.replace("told.yaml", "another.topic", TOPIC)
            self.replace("told.yaml", "version: 2", "version: 1")

    def test_check_tells_what_is_wrong_with_file_and_line(self):
        self.replace("told.yaml", TOPIC, "a/b")
        checked = run_ibid("contract", "check", self.contracts)
        self.assertNotEqual(checked.returncode, 0)
        self.assertIn("told.yaml:3: topic is `a/b`", checked.stdout)
        self.replace("told.yaml", "a/b", TOPIC)
        self.replace("call.yaml", "[Told]", "[Told, Untold]")
        checked = run_ibid("contract", "check", self.contracts)
        self.assertIn("call.yaml:4: emits names Untold, which has no contract", checked.stdout)

    def test_the_matrix_shows_events(self):
        shown = run_ibid("contract", "matrix", self.contracts)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?s)Events\n=+\n.*Told\n.*Topic +" + re.escape(TOPIC))


class SqlApi(Bed):
    """In a caller's own transaction, as a role that may use the API and one tenant, and no table."""

    def setUp(self):
        super().setUp()
        self.store = self.postgres()
        self.init(self.store)
        role = "app_events_" + uuid.uuid4().hex[:12]
        self.root = self.connect(self.store)
        self.root.autocommit = True
        self.ask(self.root, "create role %s login in role ibid_app" % role)
        self.addCleanup(self.admin, "drop role " + role)
        self.ask(self.root, "select ibid.grant_tenant(%s, 't')", role)
        self.app = self.connect(re.sub(r"//[^@]*@", "//%s@" % role, self.store))

    def connect(self, url):
        connection = psycopg2.connect(url, options="-c statement_timeout=%ds" % LIMIT_S)
        self.addCleanup(connection.close)
        return connection

    def ask(self, connection, sql, *values):
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else None

    def begin(self, key):
        row = self.ask(self.app, "select command_id, decision from ibid.command_begin(tenant => 't', operation => "
                       "'call', key => %s, payload => '{}', client => 'c', traceparent => %s)", key, TRACE)[0]
        self.assertEqual(row[1], "execute")
        return row[0]

    def emit(self, aggregate, key, payload, cast=""):
        self.ask(self.app, "select ibid.emit(%s, %s, 'Told', %s" + cast + ")", aggregate, key, payload)

    def finish(self, command):
        self.ask(self.app, "select ibid.command_complete(%s, 201)", command)
        self.app.commit()

    def events(self, key):
        return self.ask(self.root, "select topic, partition_key, headers::json, version, traceparent from ibid.event "
                        "where aggregateid = %s", key)

    def test_a_violation_is_an_error_and_a_savepoint_saves_the_transaction(self):
        for number, (aggregate, payload, said) in enumerate(VIOLATIONS):
            key = "k-%d" % number
            for cast in ("", "::json", "::jsonb"):
                command = self.begin(key)
                self.ask(self.app, "savepoint work")
                with self.subTest(payload=payload, cast=cast):
                    with self.assertRaises(psycopg2.Error) as raised:
                        self.emit(aggregate, key, payload, cast)
                    self.assertEqual(raised.exception.pgcode, "IB013")
                    self.assertIn("event Told version 1: ", str(raised.exception))
                    self.assertIn(said, str(raised.exception))
                self.ask(self.app, "rollback to work")
                self.ask(self.app, "select ibid.command_fail(%s, 'the event was refused')", command)
                self.app.commit()
                self.assertEqual(self.events(key), [])
            command = self.begin(key)
            self.emit("ledger", key, but())
            self.finish(command)
            self.assertEqual(self.events(key), [(TOPIC, "A-1", {"event_version": "1", "deliver_to": "kafka-main,audit-file"}, 1, TRACE)])

    def test_the_newest_contract_that_is_kept_applies(self):
        self.replace("told.yaml", "version: 1", "version: 2")
        self.replace("told.yaml", "events.v1", "events.v2")
        self.replace("told.yaml", "[/amount,", "[/amount, /currency,")
        applied = run_ibid("contract", "apply", self.contracts, "--store", self.store)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.begin("k")
        with self.assertRaisesRegex(psycopg2.Error, "event Told version 2: /currency is missing"):
            self.emit("ledger", "k", but())
        self.app.rollback()
        command = self.begin("k")
        self.emit("ledger", "k", but(currency="EUR"))
        self.finish(command)
        self.assertEqual(self.events("k"), [("tests.ledger.events.v2", "A-1", {"event_version": "2", "deliver_to": "kafka-main,audit-file"}, 1, TRACE)])

    def test_numbers_are_one_key_however_they_are_written(self):
        for written, key in (("7", "7"), ("7.0", "7"), ("1e2", "100"), ("-0", "0"), ('"7.0"', "7.0"),
                             ("999999999999999999", "999999999999999999")):
            name = "n-" + written
            command = self.begin(name)
            self.emit("ledger", name, '{"amount":1,"line":{"no":2},"account":%s}' % written)
            self.finish(command)
            self.assertEqual(self.events(name)[0][1], key)

    def test_a_type_that_only_looks_declared_is_refused(self):
        for name in ("Told:1", "Told,", "", ":1", "Told:1,Told"):
            self.begin("k")
            with self.assertRaisesRegex(psycopg2.Error, "is not declared"):
                self.ask(self.app, "select ibid.emit('ledger', 'k', %s, %s)", name, but())
            self.app.rollback()

    def test_what_a_claim_tells_of_types_is_read_exactly(self):
        for emits, name, version in (
                ("Told:3", "Told", 3), ("A:1,Told:12,B:2", "Told", 12), ("A,Told", "Told", 0), ("Told,A:1", "Told", 0),
                ("XTold:1", "Told", None), ("Told.x:1,Told:2", "Told", 2), ("ToldX", "Told", None), ("", "Told", None),
                ("", "", None), ("Told:1", "Told:1", None), ("A:1,B:2", "A:1,B", None), ("A,B", "A,B", None),
                ("Told:1", "told", None), ("Told:1", None, None)):
            row = self.ask(self.root, "select ibid_internal.declared_version(%s, %s)", emits, name)
            self.assertEqual(row, [(version,)], (emits, name))

    def test_without_a_kept_contract_an_event_goes_nowhere(self):
        other = self.postgres()
        os.remove(os.path.join(self.contracts, "told.yaml"))
        self.init(other)
        root = self.connect(other)
        self.ask(root, "select command_id from ibid.command_begin(tenant => 't', operation => 'call', key => 'k', "
                 "payload => '{}', client => 'c')")
        self.ask(root, "select ibid.emit('thing', '1', 'Told', '[1]')")
        row = self.ask(root, "select topic, partition_key, headers from ibid.event")
        self.assertEqual(row, [(None, "1", "{}")])
        root.rollback()


if __name__ == "__main__":
    unittest.main(verbosity=2)
