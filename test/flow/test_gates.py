# SPDX-License-Identifier: Apache-2.0
"""Gates: what is broken is refused before anybody is served, by whatever looks first; and clients never see what broke."""
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

GATES = {
    "check": (["contract", "check"], 8),
    "doctor": (["doctor"], 8),
    "review": (["contract", "review", "--format", "json"], 8),
    "apply": (["contract", "apply"], 8),
    "init": (["init"], 1),
    "serve": (["serve", "http.listen=127.0.0.1:0", "http.open.tenant=t"], 1),
    "proxy": (["proxy", "--upstream", "http://127.0.0.1:9", "http.listen=127.0.0.1:0", "http.open.tenant=t"], 1),
}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
ANSWER = "select 201 as status, 'note' as resource_type, :command_id as resource_id;\n"
EVENT = """\
event: Noted
version: 1
owner: tests
topic: tests.notes.v1
aggregate: note
partition_key: aggregate_id
required: [/topic]
max_bytes: 65536
order: aggregate-version
deliver_to: %s
on_parked: { owner: notes, severity: critical, sla: 2h, skip_needs_approval: no }
"""


class Gates:
    def ibid(self, *words):
        """What a command says; a server that begins to serve is stopped."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as err:
            with subprocess.Popen([BIN, *words, "--store", self.url, "--contracts", self.contracts], text=True, env=CLEAN,
                                  stdout=subprocess.PIPE, stderr=err) as process:
                out = process.stdout.readline()
                if out.startswith("ibid serves at"):
                    process.terminate()
                out += process.stdout.read()
            err.seek(0)
            return subprocess.CompletedProcess(words, process.returncode, out, err.read())

    def script(self, text, name="note"):
        self.file("%s.%s.sql" % (name, self.store), text)

    def refused(self, line, words, name="note"):
        """By every gate, with the script's file, the line in it and the database's words."""
        place = "%s/%s.%s.sql:%d: " % (self.contracts, name, self.store, line)
        for gate, (command, code) in GATES.items():
            with self.subTest(gate=gate):
                done = self.ibid(*command)
                told = (done.stdout + done.stderr).replace('\\"', '"')  # the review's are in JSON
                self.assertEqual(done.returncode, code, told)
                self.assertIn(place, told)
                self.assertRegex(told, re.escape(place) + ".*" + words)
                self.assertNotIn("ibid serves at", told)

    def let_through(self):
        for gate, (command, _) in GATES.items():
            if gate in ("serve", "proxy"):
                continue
            with self.subTest(gate=gate):
                done = self.ibid(*command)
                self.assertEqual(done.returncode, 0, done)
        server = Server(self)
        self.assertEqual(server.stop(), 0)
        return server

    def test_a_script_that_is_no_sql_is_refused_by_every_gate(self):
        self.script("-- the first line\nselect 1 as status;\n\n  selec 2;\n" + ANSWER)
        self.refused(4, "syntax error")

    def test_a_table_that_is_not_there_is_refused_by_every_gate(self):
        self.script("select 1;\ninsert\n  into missing_table (id)\n  values (:command_id);\n" + ANSWER)
        self.refused(3, "missing_table")

    def test_a_column_that_is_not_there_is_refused_by_every_gate(self):
        self.script("update hot\n  set count = 1\n  where missing_column = :topic;\n" + ANSWER)
        self.refused(3, "missing_column")

    def test_a_column_that_an_insert_names_and_the_table_lacks_is_refused_by_every_gate(self):
        self.script("insert into note (id,\n  missing_column)\n  values (:command_id, :text);\n" + ANSWER)
        self.refused(2, "missing_column")

    def test_an_answer_with_a_column_of_another_name_is_refused_by_every_gate(self):
        self.script("select 1;\nselect 201 as status, 'x' as extra;\n")
        self.refused(2, "the answer has a column extra")

    def test_an_answer_without_a_status_is_refused_by_every_gate(self):
        self.script("select 'note' as resource_type;\n")
        self.refused(1, "the answer has no column status")

    def test_a_script_that_ends_without_an_answer_is_refused_by_every_gate(self):
        self.script("select 1;\ninsert into note (id, topic) values (:command_id, :topic);\n")
        self.refused(2, "the script's last statement must be its answer")

    def test_a_find_script_is_looked_at_too(self):
        self.script("select 200 as status\nfrom note where missing_column = :text;\n", name="find-note")
        self.refused(2, "missing_column", name="find-note")

    def test_a_script_that_only_rejects_is_let_through(self):
        reject = "ibid_reject" if self.store == "sqlite" else "ibid.reject"
        self.script("select %s('CLOSED', 403, 'no notes are taken any more');\n" % reject)
        self.let_through()

    def test_what_an_earlier_statement_makes_is_told_and_nothing_of_it_is_done(self):
        self.script("create table if not exists scratch (id text);\ninsert into scratch values ('x');\n" + ANSWER)
        server = self.let_through()
        told = server.logged("script.not_checked")
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0]["reason"], r"note\.%s\.sql:2: can't be checked, because the statement at line 1 makes" % self.store)
        with self.assertRaisesRegex(Exception, "scratch"):
            self.number("select count(*) from scratch")

    def test_check_tells_each_problem_once_with_its_line_as_json_does(self):
        self.script("selec 1;\nupdate missing_table set x = 1;\n" + ANSWER)
        done = self.ibid("contract", "check", "--json")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(os.path.basename(item["file"]), item["line"]) for item in found],
                         [("note.%s.sql" % self.store, 1), ("note.%s.sql" % self.store, 2)])
        self.assertEqual(done.returncode, 8)

    def test_a_broken_script_leaves_the_served_contracts_in_force(self):
        server = Server(self)
        self.script("selec 1;\n" + ANSWER)
        server.process.send_signal(1)
        server.await_logged("serve.reload_refused")
        self.assertEqual(server.send("k", {"topic": "a"}).status, 201)

    def test_init_keeps_no_contract_whose_script_would_not_run(self):
        self.note("note", "", version=2)
        self.script("selec 1;\n" + ANSWER)
        self.assertEqual(self.ibid("init").returncode, 1)
        self.note("note", "unknown_fields: refuse", version=2)
        self.script(ANSWER)
        self.assertEqual(self.ibid("init").returncode, 0)  # version 2 was not taken yet


class GatesSqlite(Gates, Sqlite, unittest.TestCase):
    pass


class GatesPostgres(Gates, Postgres, unittest.TestCase):
    def test_a_parameter_of_another_type_is_refused_by_every_gate(self):
        self.script("insert into hot (topic, count)\n  values (:topic,\n  :text);\n" + ANSWER)
        self.refused(3, 'column "count" is of type bigint but expression is of type text')

    def test_a_decimal_that_a_column_would_round_is_refused_by_every_gate(self):
        self.change("create table total (id uuid, sum double precision, price money)")
        for statement, kind in (("insert into total (id, sum) select\n :command_id, :amount", "double precision"),
                                ("update total set id = :command_id,\n price = :amount", "money"),
                                ("delete from total where sum < :amount", "double precision")):
            with self.subTest(statement=statement):
                self.script(statement + ";\n" + ANSWER)
                self.refused(1, "the decimal :amount would be rounded: the database takes it for " + kind)

    def test_a_decimal_beside_exact_columns_is_let_through(self):
        self.change("create table total (id uuid, sum numeric, cents bigint)")
        self.script("insert into total (id, sum) values (:command_id, :amount);\n"
                    "update total set sum = sum + :amount where cents < :amount;\n" + ANSWER)
        self.let_through()

    def test_names_are_looked_for_where_the_script_says(self):
        self.change("create schema other")
        self.change("create table other.only_there (id uuid)")
        self.script("set local search_path to other;\ninsert into only_there (id) values (:command_id);\n" + ANSWER)
        self.let_through()


def token(bed, *words):
    done = subprocess.run([BIN, "token", *words, "--store", bed.url, "--by", "tests", "--json"], capture_output=True, text=True,
                          env=CLEAN, timeout=LIMIT_S)
    bed.assertEqual(done.returncode, 0, done)
    return json.loads(done.stdout)


class Failures:
    """Clients never see file names, SQL or index names; the log has the words under the incident's id."""

    def hidden(self, answer, *more):
        text = answer.body.decode() + str(answer.headers.items())
        for word in ("sql", "constraint", "index", "relation", "broken", "note_text", "ibid_", "ibid.", self.dir, *more):
            self.assertNotIn(word, text.lower(), answer)

    def told(self, server, event, answer, *words):
        """The line of the log that has the words."""
        end = time.monotonic() + LIMIT_S
        while not (lines := [line for line in server.logged(event) if line.get("incidentId") == answer.json["incidentId"]]):
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.01)
        for word in words:
            self.assertIn(word, lines[0]["text"])

    def test_a_script_that_fails_while_it_runs_is_an_incident_to_its_client(self):
        server = Server(self)
        broken = {"topic": "broken"}
        first, second, routed = server.send("k", broken), server.send("k", broken), server.send("k", {}, path="/topics/broken/notes")
        for answer, attempt in ((first, 1), (second, 2), (routed, 3)):  # each is an attempt of its own
            self.assertEqual((answer.status, answer.json["type"], answer.json["code"]), (500, "/problems/failed", "HANDLER_FAILED"))
            self.assertEqual(answer.json["incidentId"], "%s.%d" % (first.json["commandId"], attempt))
            self.hidden(answer)
            self.told(server, "command.failed", answer, "note.%s.sql:2: " % self.store)

    def test_a_client_that_looks_at_its_failed_command_sees_the_incident_and_an_operator_the_words(self):
        made = {}
        for role in ("client", "operator"):
            done = token(self, "create", "--tenant", "t", "--client", "app", "--roles", role)
            made[role] = {"Authorization": "Bearer " + done["token"]}
        server = Server(self)
        failed = server.send("k", {"topic": "broken"}, **made["client"])
        path = "/v1/operations/" + failed.json["commandId"]
        seen, worked = (server.ask("GET", path, headers=made[role]) for role in ("client", "operator"))
        self.assertEqual((seen.json["incidentId"], worked.json["incidentId"]), (failed.json["incidentId"],) * 2)
        self.hidden(seen)
        self.assertIn("note.%s.sql:2: " % self.store, worked.json["detail"])

    def test_the_replay_of_a_failure_that_is_final_has_the_incident_of_the_first(self):
        self.note("note-final", "failures: { validation: final, business: final, server: final }")
        server = Server(self)
        first = server.send("k", {"topic": "broken"}, "note-final")
        self.assertEqual((first.status, first.json["type"]), (500, "/problems/rejected"))
        self.hidden(first)
        self.told(server, "command.failed", first, "note.%s.sql:2: " % self.store)
        again = server.send("k", {"topic": "broken"}, "note-final")
        self.assertEqual((again.body, again.headers["Idempotent-Replayed"]), (first.body, "true"))

    def test_an_index_that_no_contract_names_is_not_told(self):
        server = Server(self)
        self.assertEqual(server.send("k-1", {"topic": "a", "text": "once"}).status, 201)
        answer = server.send("k-2", {"topic": "a", "text": "once"})
        self.assertEqual(answer.status, 500)
        self.hidden(answer)
        self.told(server, "command.failed", answer, "unique index note_text was violated")

    def test_a_duplicate_that_is_rejected_is_told_without_its_index(self):
        self.note("note-only", "unique:\n  note_text: { on_duplicate: reject, find: find-note.$store.sql }")
        server = Server(self)
        self.assertEqual(server.send("k-1", {"topic": "a", "text": "once"}, "note-only").status, 201)
        answer = server.send("k-2", {"topic": "a", "text": "once"}, "note-only")
        self.assertEqual((answer.status, answer.json["code"]), (409, "DUPLICATE"))
        self.hidden(answer)
        # As earlier versions have kept it.
        self.change("update %s set text = 'the same business fact exists already (note_text)' where reason = 'DUPLICATE'"
                    % self.ledger("command"))
        again = server.send("k-2", {"topic": "a", "text": "once"}, "note-only")
        self.assertEqual((again.status, again.body), (409, answer.body))

    def test_a_store_that_is_not_what_it_was_is_an_incident(self):
        server = Server(self)
        old, away = self.ledger("command"), "elsewhere" if self.store == "postgres" else "ibid_elsewhere"
        self.change("alter table %s rename to %s" % (old, away))
        answer = server.send("k", {"topic": "a"})
        self.assertEqual((answer.status, answer.json["type"]), (500, "/problems/internal"), answer)
        self.hidden(answer, "schema", "table")
        self.told(server, "http.failure", answer, "ibid")

    def test_a_store_that_is_locked_is_told_without_its_name(self):
        server = Server(self)
        with self.hot_row_locked():
            answer = server.send("k", {"topic": "hot"})
            self.assertEqual((answer.status, answer.json["type"], answer.headers["Retry-After"]), (503, "/problems/unavailable", "1"))
            self.hidden(answer, "store.db", "lock")
            self.told(server, "http.failure", answer)


class FailuresSqlite(Failures, Sqlite, unittest.TestCase):
    pass


class FailuresPostgres(Failures, Postgres, unittest.TestCase):
    def test_a_database_that_is_gone_is_no_command_that_is_not_there(self):
        server = Server(self)
        self.assertEqual(server.send("k", {"topic": "a"}).status, 201)
        name = self.url.rsplit("/", 1)[1]
        self.admin("drop database %s with (force)" % name)
        try:
            answer = server.get("/v1/commands/note/k")
            self.assertEqual((answer.status, answer.json["type"]), (503, "/problems/unavailable"), answer)
            self.hidden(answer, name, "127.0.0.1", "database")
            self.told(server, "http.failure", answer, name)
        finally:
            self.admin("create database " + name)  # which the test's end drops


class Starts:
    """What would be a riddle later is said at the start."""

    def start(self, *settings):
        """A server without http.open.tenant."""
        process = subprocess.Popen([BIN, "serve", "--store", self.url, "--contracts", self.contracts, "http.listen=127.0.0.1:0",
                                    *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN)
        first = process.stdout.readline()
        process.terminate()
        log = process.communicate(timeout=LIMIT_S)[1]
        self.assertIn("ibid serves at", first, log)
        self.assertEqual(process.returncode, 0, log)
        return [json.loads(line) for line in log.splitlines()]

    def said(self, log, event):
        return [line for line in log if line["event"] == event]

    def test_a_server_that_can_only_answer_401_says_so_and_which_command_mends_it(self):
        [line] = self.said(self.start(), "serve.nobody_admitted")
        self.assertEqual(line["level"], "warn")
        self.assertIn("ibid token create --store URL --tenant TENANT --client CLIENT", line["advice"])
        made = token(self, "create", "--tenant", "t", "--client", "app")
        self.assertEqual(self.said(self.start(), "serve.nobody_admitted"), [])
        token(self, "revoke", made["id"])
        self.assertEqual(len(self.said(self.start(), "serve.nobody_admitted")), 1)
        self.assertEqual(self.said(self.start("http.open.tenant=t"), "serve.nobody_admitted"), [])

    def test_an_event_without_a_destination_is_said_where_a_relay_runs(self):
        out = "relay.destinations.out.file.path=" + os.path.join(self.dir, "events")
        self.assertEqual(self.said(self.start("http.open.tenant=t"), "relay.unserved"), [])  # no relay runs
        said = self.said(self.start("http.open.tenant=t", out), "relay.unserved")
        self.assertEqual(sorted((line["eventType"], line["contract"]) for line in said),
                         [("Noted", name) for name in ("note", "note-cold", "note-later", "note-once", "note-wait")])
        self.assertIn("the event has no contract", said[0]["reason"])
        for version, (to, left) in enumerate((("[]", 5), ("[out]", 0)), 1):
            self.file("noted.yaml", EVENT.replace("version: 1", "version: %d" % version) % to)
            said = self.said(self.start("http.open.tenant=t", out), "relay.unserved")
            self.assertEqual(len(said), left)

    def test_a_colon_in_a_route_is_refused_with_the_reason(self):
        self.note("note-colon", "route: POST /topics/:topic/colons")
        done = subprocess.run([BIN, "contract", "check", self.contracts], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 8, done)
        self.assertRegex(done.stdout, r"note-colon\.yaml:4: route is `POST /topics/:topic/colons`: a colon has no meaning in a path")
        self.assertIn("a parameter is written in braces", done.stdout)


class StartsSqlite(Starts, Sqlite, unittest.TestCase):
    pass


class StartsPostgres(Starts, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
