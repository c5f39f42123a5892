# SPDX-License-Identifier: Apache-2.0
"""Gates: what is broken is refused before anybody is served, by whatever looks first."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

GATES = {
    "check": (["contract", "check"], 8),
    "doctor": (["doctor"], 8),
    "review": (["contract", "review", "--format", "json"], 8),
    "init": (["init"], 1),
    "serve": (["serve", "http.listen=127.0.0.1:0", "http.open.tenant=t"], 1),
    "proxy": (["proxy", "--upstream", "http://127.0.0.1:9", "http.listen=127.0.0.1:0", "http.open.tenant=t"], 1),
}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
ANSWER = "select 201 as status, 'note' as resource_type, :command_id as resource_id;\n"


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


if __name__ == "__main__":
    unittest.main()
