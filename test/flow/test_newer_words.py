# SPDX-License-Identifier: Apache-2.0
"""While a newer version of ibid works on the same store, rows may hold words that this one does not know. It shows them as
they are, and refuses to decide on such a row, on both stores. Needs IBID_TEST_PG."""
import contextlib
import json
import os
import sqlite3
import unittest

import psycopg2

import serve_bed
from relay_bed import wait_until
from serve_bed import LIMIT_S, Server
from test_outbox_act import Decisions

JSON = {"Content-Type": "application/json"}
# What checks the words of a table gives way, as when a newer schema knows more of them.
UNCHECKED = """do $$
declare name text;
begin
	for name in select conname from pg_constraint where contype = 'c' and conrelid = '%s'::regclass loop
		execute format('alter table %s drop constraint %%I', name);
	end loop;
end $$"""


class Newer(Decisions):
    approval = True

    def write_newer(self, table, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
                db.execute("pragma ignore_check_constraints = on")
                db.execute(sql)
        else:
            with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
                cursor.execute(UNCHECKED % (self.ledger(table), self.ledger(table)))
                cursor.execute(sql)

    def whole(self, table):
        rows = self.rows("select * from %s" % self.ledger(table))
        return sorted(repr([bytes(cell) if isinstance(cell, memoryview) else cell for cell in row]) for row in rows)

    @contextlib.contextmanager
    def word(self, table, column, word, where="1 = 1"):
        """The column holds this word meanwhile; nothing else of its row changes."""
        table_name = self.ledger(table)
        (before,), *others = self.rows("select %s from %s where %s" % (column, table_name, where))
        self.assertFalse(others)
        whole = self.whole(table)
        self.write_newer(table, "update %s set %s = '%s' where %s" % (table_name, column, word, where))
        yield
        self.write_newer(table, "update %s set %s = '%s' where %s = '%s'" % (table_name, column, before, column, word))
        self.assertEqual(self.whole(table), whole)

    def lines_of(self, *command):
        return [json.loads(line) for line in self.run_ibid(*command, "--json").stdout.splitlines()]

    def says_upgrade(self, said):
        self.assertIn("this version of ibid does not know", said)
        self.assertIn("upgrade ibid, then decide", said)

    def resolve(self, item, action, code=0):
        return self.act("olga", "resolve", item, "--action", action, "--contracts", self.contracts, code=code)

    # ---- Exceptions and what waits for a second person ------------------------------------------

    def test_an_exception_is_shown_and_not_acted_upon(self):
        _, _, item, event = self.stuck()
        server = Server(self)
        bearer = {"Authorization": "Bearer " + self.tokens["olga"], **JSON}
        for column, word in (("state", "DEFERRED"), ("queue", "compliance"), ("severity", "fatal")):
            with self.subTest(column=column), self.word("exception", column, word):
                (listed,) = self.lines_of("exception", "list", "--tenant", "t", "--state", "all")
                self.assertEqual((listed[column], self.shown(item)[column]), (word, word))
                self.assertIn(word, self.run_ibid("exception", "show", "--tenant", "t", item).stdout)
                (listed,) = server.get("/v1/exceptions?state=all").json["items"]
                self.assertEqual(listed[column], word)
                self.says_upgrade(self.resolve(item, "release", code=1))
                self.says_upgrade(self.act("olga", "assign", item, "--to", "bea", code=1))
                self.says_upgrade(self.act("anna", "approve", item, code=1))
                self.says_upgrade(self.act("anna", "decline", item, code=1))
                self.says_upgrade(self.decide("olga", "release", event, code=1))
                answer = server.ask("POST", "/v1/exceptions/%s/resolve" % item, '{"action":"release","reason":"r"}', bearer)
                self.assertEqual((answer.status, answer.json["type"]), (500, "/problems/internal"), answer)
                server.await_logged("http.failure")
                self.says_upgrade(server.logged("http.failure")[-1]["text"])
                self.assertEqual((self.held(event), self.actions()), ("PARKED", []))
        self.assertIn("resolved   " + item, self.resolve(item, "release"))

    def test_a_decision_on_a_proposal_is_shown_and_neither_repeated_nor_replaced(self):
        _, _, item, event = self.stuck()
        self.resolve(item, "skip")
        self.write_newer("approval", "update %s set decision = 'ESCALATED', decided_by = 'eva', %s" % (
            self.ledger("approval"), "decided_us = 1" if self.store == "sqlite" else "decided_at = now()"))
        self.assertEqual([one["decision"] for one in self.shown(item)["approvals"]], ["ESCALATED"])
        self.says_upgrade(self.act("anna", "approve", item, code=1))
        self.says_upgrade(self.act("anna", "decline", item, code=1))
        self.says_upgrade(self.resolve(item, "skip", code=1))
        self.assertEqual((self.held(event), self.actions()), ("PARKED", [("olga", "propose")]))

    # ---- Commands -------------------------------------------------------------------------------

    def test_a_command_is_shown_and_neither_run_nor_answered(self):
        sent = ("k-1", {"topic": "t1", "text": "x"})
        self.assertEqual(Server(self).send(*sent).status, 201)
        with self.word("command", "state", "PARTIAL"):
            (row,) = self.lines_of("command", "list", "--tenant", "t")
            self.assertEqual(row["state"], "PARTIAL")
            self.assertIn("PARTIAL", self.run_ibid("command", "show", "--tenant", "t", row["id"]).stdout)
            server = Server(self)
            self.assertEqual(server.get("/v1/operations/" + row["id"]).json["state"], "PARTIAL")
            for _ in range(3):
                answer = server.send(*sent)
                self.assertEqual((answer.status, answer.json["type"]), (500, "/problems/internal"), answer)
            server.await_logged("http.failure")
            self.says_upgrade(server.logged("http.failure")[0]["text"])
            payload = os.path.join(self.dir, "sent.json")
            with open(payload, "w", encoding="utf-8") as handle:
                json.dump(sent[1], handle)
            self.says_upgrade(self.run_ibid("submit", payload, "--operation", "note", "--tenant", "t", "--client", row["client"],
                                            "--key", "k-1", "--contracts", self.contracts, code=1).stderr)
            self.assertEqual(server.send("k-2", sent[1]).status, 201)
            self.write_newer("command", "delete from %s where key = 'k-2'" % self.ledger("command"))
        again = server.send(*sent)
        self.assertEqual((again.status, again.headers["Idempotent-Replayed"]), (201, "true"))

    def test_a_person_can_not_confirm_such_a_command(self):
        _, _, item, _ = self.stuck()
        (command,) = (row for row in self.lines_of("command", "list", "--tenant", "t") if row["key"].endswith("-0"))
        self.write_newer("exception", "update %s set subject_type = 'command', subject_id = '%s', "
                         "actions = 'confirm-executed,confirm-not-executed'" % (self.ledger("exception"), command["id"]))
        with self.word("command", "state", "PARTIAL", "id = '%s'" % command["id"]):
            for action in ("confirm-executed", "confirm-not-executed"):
                self.says_upgrade(self.resolve(item, action, code=1))
        self.assertEqual((self.shown(item)["state"], self.actions()), ("OPEN", []))

    # ---- The outbox -----------------------------------------------------------------------------

    def test_a_held_event_is_shown_and_its_lane_stops_until_it_is_known_again(self):
        hook, relay, item, event = self.stuck()

        def log():
            relay.log.seek(0)
            return relay.log.read()
        with self.word("delivery_hold", "state", "QUARANTINED", "event_id = '%s'" % event):
            listed = self.lines_of("outbox", "list", "--tenant", "t", "--limit", "1000")
            self.assertEqual([row["state"] for row in listed if event in row.values()], ["QUARANTINED"])
            self.assertIn("QUARANTINED", self.run_ibid("outbox", "show", "--tenant", "t", event).stdout)
            for action in ("release", "skip", "cancel"):
                self.says_upgrade(self.decide("olga", action, event, code=1))
            self.says_upgrade(self.resolve(item, "release", code=1))
            wait_until(lambda: "relay.store" in log(), log)
            self.says_upgrade(log())
            self.assertIsNone(relay.poll())
            self.assertEqual((hook.versions("t1"), self.actions()), ([], []))
        hook.refuse.clear()
        self.decide("olga", "release", event)
        wait_until(lambda: len(hook.versions("t1")) == 5, log)
        self.assertEqual(hook.versions("t1"), [1, 2, 3, 4, 5])

    def test_an_unknown_kind_of_pause_stops_the_relay(self):
        server = Server(self)
        relay = self.relay(*self.to_file())
        self.write(server, 5)
        self.await_evidence(5)
        paused = ("ada", "--reason", "r")
        self.run_ibid("pause", "destination", "out", "--reason", "r", token=self.tokens["ada"])
        with self.word("pause", "source", "schedule"):
            self.assertEqual([row["source"] for row in self.lines_of("pause", "list")], ["schedule"])
            self.says_upgrade(self.run_ibid("resume", "destination", "out", "--reason", "r", token=self.tokens["ada"],
                                            code=1).stderr)
        with self.word("pause", "kind", "topic"):
            wait_until(lambda: relay.log.seek(0) or '"kind":"topic"' in relay.log.read(), "no pause is logged")
            self.write(server, 5)
            self.assertEqual([row["kind"] for row in self.lines_of("pause", "list")], ["topic"])
            self.assertEqual([row["kind"] for row in server.get("/v1/pauses").json["items"]], ["topic"])
            listed = self.run_ibid("outbox", "list", "--tenant", "t").stdout.splitlines()
            self.assertEqual([line.split()[-1] for line in listed[1:] if "PUBLISHED" not in line], ["topic"] * 5, listed)
            self.run_ibid("outbox", "list", "--tenant", "t", "--json")
            self.assertIsNone(relay.poll())
            self.assertEqual(len(self.lines()), 5)
        self.run_ibid("resume", "destination", "out", "--reason", "r", token=self.tokens["ada"])
        self.assert_whole(10)

    # ---- Tokens ---------------------------------------------------------------------------------

    def test_a_token_with_an_unknown_role_is_listed_and_admits_nobody(self):
        _, _, item, _ = self.stuck()
        server = Server(self)
        with self.word("token", "roles", "operator,auditor", "client = 'olga'"):
            roles = [row["roles"] for row in self.lines_of("token", "list") if row["client"] == "olga"]
            self.assertEqual(roles, [["operator", "auditor"]])
            self.says_upgrade(self.resolve(item, "release", code=1))
            answer = server.ask("GET", "/v1/exceptions", headers={"Authorization": "Bearer " + self.tokens["olga"]})
            self.assertEqual((answer.status, answer.json["type"]), (500, "/problems/internal"), answer)
            server.await_logged("http.failure")
            self.says_upgrade(server.logged("http.failure")[0]["text"])
        self.assertIn("resolved   " + item, self.resolve(item, "release"))


class NewerOnSqlite(Newer, serve_bed.Sqlite, unittest.TestCase):
    pass


class NewerOnPostgres(Newer, serve_bed.Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=1)
