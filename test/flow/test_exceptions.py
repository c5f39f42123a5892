# SPDX-License-Identifier: Apache-2.0
"""What people do about exceptions: on the command line and over HTTP, on both stores (J01, J02, F03)."""
import concurrent.futures
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import unittest
import uuid

import psycopg2

from proxy_bed import Proxied
from serve_bed import BIN, LIMIT_S, Postgres, Sqlite

CLOSED = "http.open.tenant="
ACTIONS = ["confirm-executed", "confirm-not-executed"]
LOOK = """\
command: %(name)s
version: 1
fact: an order is placed
fields:
  /item: { type: text, max: 60 }
emits: []
handler: callback
staged: { lease: 30s, recover: %(recover)s }
"""


def bearer(token):
    return {"Authorization": "Bearer " + token}


class Exceptions(Proxied):
    def setUp(self):
        super().setUp()
        human = {"recover": "human", "inquiry": "", "strategy": "key"}
        self.contract("charge", "POST /charges", **human)
        self.contract("careful", "POST /careful", **human,
                      fields="on_unknown: { needs_approval: yes, severity: critical, sla: 30m }")
        self.contract("mute", "POST /mute", **human, fields="answer: { store: none }")
        self.file("look.yaml", LOOK % {"name": "look", "recover": "{ sql: look.sql }"})
        self.file("brief.yaml", LOOK % {"name": "brief", "recover": "human"} + "answer: { store: reference }\n")
        self.file("look.sql", "select 201 as status, null as body;\n")
        self.run_ibid("init", "--contracts", self.contracts)
        self.tokens = {name: self.token(name, roles) for name, roles in (
            ("olga", "operator"), ("oleg", "operator"), ("anna", "approver"), ("arno", "operator,approver"),
            ("ada", "admin"), ("web", "client"))}
        self.server = self.proxy(CLOSED)

    # ---- Helpers --------------------------------------------------------------------------------

    def run_ibid(self, *arguments, code=0, token=None, env=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
        if token:
            clean["IBID_TOKEN"] = token
        done = subprocess.run([BIN, *arguments, "--store", self.url], capture_output=True, text=True, timeout=LIMIT_S,
                              env=dict(clean, **(env or {})))
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def token(self, client, roles, *more, tenant="t"):
        made = self.run_ibid("token", "create", "--tenant", tenant, "--client", client, "--roles", roles, "--json", *more)
        return json.loads(made.stdout)["token"]

    def execute(self, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
                db.execute(sql)
        else:
            with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
                cursor.execute(sql)

    def send(self, key, path="/charges", mode="error"):
        return self.server.send(key, {"item": "tea", "mode": mode}, path=path, **bearer(self.tokens["web"]))

    def lost(self, key, path="/charges", mode="error"):
        """A command of which nobody knows whether it was done; the id of its exception."""
        answer = self.send(key, path, mode)
        self.assertEqual((answer.status, answer.json["type"]), (502, "/problems/upstream-unknown"), answer)
        command = answer.headers["Ibid-Command-Id"]
        items = [item for item in self.listed("--state", "open") if item["subjectId"] == command]
        self.assertEqual(len(items), 1)
        return items[0]["id"]

    def listed(self, *more):
        return [json.loads(line) for line in self.run_ibid("exception", "list", "--json", *more).stdout.splitlines()]

    def shown(self, item):
        return json.loads(self.run_ibid("exception", "show", "--tenant", "t", item, "--json").stdout)

    def act(self, who, verb, item, *more, code=0, reason="seen on the statement"):
        """One act on the command line; its standard output, or error where it is refused."""
        token = self.tokens.get(who, who)
        contracts = ["--contracts", self.contracts] if verb in ("resolve", "approve") else []
        reasons = ["--reason", reason] if reason is not None else []
        done = self.run_ibid("exception", verb, item, *reasons, *contracts, *more, code=code, token=token)
        return done.stderr if code else done.stdout

    def post(self, who, verb, item, server=None, **body):
        token = self.tokens.get(who, who)
        body.setdefault("reason", "seen on the statement")
        return (server or self.server).ask("POST", "/v1/exceptions/%s/%s" % (item, verb), json.dumps(body),
                                           {"Content-Type": "application/json", **(bearer(token) if token else {})})

    def look(self, who, path):
        return self.server.ask("GET", path, headers=bearer(self.tokens.get(who, who)))

    def history(self, item):
        return [(one["actor"], one["role"], one["action"]) for one in self.shown(item)["history"]]

    def untouched(self, item):
        shown = self.shown(item)
        self.assertEqual((shown["state"], shown["history"], shown["approvals"], shown.get("assignee")), ("OPEN", [], [], None))

    def state_of(self, key):
        return self.number("select state from %s where key = '%s'" % (self.ledger("command"), key))

    # ---- Who acts -------------------------------------------------------------------------------

    def test_a_token_proves_who_acts_and_nothing_else_does(self):
        item = self.lost("k-1")
        revoked, expired = self.token("gone", "operator"), self.token("late", "operator", "--expires", "1s")
        self.run_ibid("token", "revoke", revoked.split("_")[1], "--by", "ada")
        self.execute("update %s set %s" % (self.ledger("token"), (
            "expires_us = 1 where client = 'late'" if self.store == "sqlite" else
            "expires_at = '2000-01-01' where client = 'late'")))
        for token, says in ((None, "set IBID_TOKEN"), ("", "set IBID_TOKEN"), ("olga", "not valid: a token is ibid_"),
                            (revoked, "it was revoked by ada"), (expired, "it has expired"),
                            (self.tokens["olga"][:-1] + ("0" if self.tokens["olga"][-1] != "0" else "1"), "not valid"),
                            ("ibid_%s_%s" % ("0" * 16, "0" * 64), "not valid")):
            for verb, more in (("assign", ["--to", "bea"]), ("resolve", ["--action", "confirm-executed"]), ("approve", []),
                               ("decline", [])):
                with self.subTest(token=token, verb=verb):
                    contracts = ["--contracts", self.contracts] if verb in ("resolve", "approve") else []
                    done = self.run_ibid("exception", verb, item, "--reason", "r", *more, *contracts, code=1, token=token)
                    self.assertIn(says, done.stderr)
                    self.assertEqual(done.stdout, "")
        for token in (None, revoked, expired, "ibid_%s_%s" % ("0" * 16, "0" * 64)):
            self.assertEqual(self.post(token, "assign", item, assignee="bea").status, 401)
        self.untouched(item)

    def test_where_requests_need_no_token_actions_do(self):
        item = self.lost("k-1")
        open_server = self.proxy()
        self.assertEqual(open_server.get("/v1/exceptions/" + item).status, 200)
        self.assertEqual(self.post(None, "assign", item, server=open_server, assignee="bea").status, 401)
        self.assertEqual(self.post("olga", "assign", item, server=open_server, assignee="bea").status, 200)

    def test_each_act_needs_its_role(self):
        item = self.lost("k-1")
        for verb, more, mays, says in (
                ("assign", ["--to", "bea"], {"olga", "arno", "ada"}, "operator or admin"),
                ("resolve", ["--action", "confirm-nothing"], {"olga", "arno", "ada"}, "operator or admin"),
                ("approve", [], {"anna", "arno", "ada"}, "approver or admin"),
                ("decline", [], {"anna", "arno", "ada"}, "approver or admin")):
            for who in ("olga", "anna", "arno", "ada", "web"):
                may = who in mays
                with self.subTest(verb=verb, who=who):
                    said = self.act(who, verb, item, *more, code=0 if may and verb == "assign" else 3)
                    self.assertEqual(says in said, not may, said)
        for verb in ("assign", "resolve", "approve", "decline"):
            self.assertEqual(self.post("web", verb, item).json["type"], "/problems/forbidden")
        self.assertEqual(self.post("anna", "assign", item, assignee="bea").json["type"], "/problems/forbidden")
        self.assertEqual(self.post("olga", "approve", item).json["type"], "/problems/forbidden")
        self.assertEqual(self.look("web", "/v1/exceptions").status, 403)
        for who in ("olga", "anna", "ada"):
            self.assertEqual(self.look(who, "/v1/exceptions/" + item).status, 200)

    def test_another_tenants_item_is_as_if_it_were_not_there(self):  # I9
        item = self.lost("k-1")
        other = self.token("eve", "operator,approver,admin", tenant="other")
        for verb, more in (("assign", ["--to", "bea"]), ("resolve", ["--action", "confirm-executed"]), ("approve", []),
                           ("decline", [])):
            said = self.act(other, verb, item, *more, code=1)
            self.assertEqual(said, self.act(other, verb, str(uuid.UUID(int=1)), *more, code=1))
            self.assertIn("tenant other has no such exception", said)
            there, absent = (self.post(other, verb, one, **({"assignee": "b"} if verb == "assign" else {}))
                             for one in (item, str(uuid.UUID(int=1))))
            self.assertEqual((there.status, there.body), (404, absent.body))
        self.assertEqual(self.look(other, "/v1/exceptions/" + item).status, 404)
        self.assertEqual(self.look(other, "/v1/exceptions").json["items"], [])
        self.untouched(item)

    def test_tenants_are_listed_with_what_they_have(self):
        self.lost("k-1")
        self.server.send("k-2", {"topic": "x"}, **bearer(self.token("web", "client", tenant="a")))
        self.assertEqual([json.loads(line) for line in self.run_ibid("tenant", "list", "--json").stdout.splitlines()], [
            {"tenant": "a", "commands": 1, "openExceptions": 0}, {"tenant": "t", "commands": 1, "openExceptions": 1}])
        self.assertRegex(self.run_ibid("tenant", "list").stdout, r"^TENANT  COMMANDS  OPEN EXCEPTIONS\na +1 +0\nt +1 +1\n$")

    # ---- Assigning ------------------------------------------------------------------------------

    def test_an_item_is_assigned_to_a_team_and_a_person(self):
        item, other = self.lost("k-1"), self.lost("k-2")
        self.assertRegex(self.act("olga", "assign", item, "--to", "bea", reason="her case"), "assigned .*tests, bea")
        self.assertEqual([one["id"] for one in self.listed("--assignee", "bea")], [item])
        answer = self.post("ada", "assign", item, owner="treasury", reason="a bank matter")
        self.assertEqual((answer.status, answer.json["owner"], answer.json["assignee"]), (200, "treasury", "bea"))
        self.assertEqual([one["id"] for one in self.look("olga", "/v1/exceptions?assignee=bea&owner=treasury").json["items"]],
                         [item])
        shown = self.shown(item)
        self.assertEqual([(one["actor"], one["role"], one["action"], one["reason"], one["parameters"])
                          for one in shown["history"]],
                         [("olga", "operator", "assign", "her case", {"assignee": "bea"}),
                          ("ada", "admin", "assign", "a bank matter", {"owner": "treasury"})])
        self.assertEqual(shown["history"][0]["token"], self.tokens["olga"].split("_")[1])
        text = self.run_ibid("exception", "show", "--tenant", "t", item).stdout
        self.assertIn("assignee        bea\n", text)
        self.assertIn("history (2)\n", text)
        self.assertRegex(text, r"olga \(operator\) assign .*her case")
        self.assertIn("  bea  ", self.run_ibid("exception", "list").stdout)
        self.untouched(other)

    def test_what_can_not_be_is_refused_and_nothing_is_done(self):
        item = self.lost("k-1")
        self.assertIn("--reason is missing", self.act("olga", "assign", item, "--to", "bea", reason=None, code=2))
        for reason, says in (("", "reason is required"), (" \t", "reason is required"), ("x" * 3000, "at most 2000")):
            self.assertIn(says, self.act("olga", "assign", item, "--to", "bea", reason=reason, code=3))
        self.assertIn("--to NAME", self.act("olga", "assign", item, code=2))
        self.assertIn("assignee", self.act("olga", "assign", item, "--to", "a\nb", code=3))
        self.assertIn("is not the id", self.act("olga", "assign", "k-1", "--to", "bea", code=2))
        self.assertIn("--status", self.act("olga", "resolve", item, "--action", "confirm-executed", "--status", "500", code=2))
        for action in ("close", "skip", "", "confirm-executed,confirm-not-executed"):
            self.assertIn("allowed: confirm-executed,confirm-not-executed",
                          self.act("olga", "resolve", item, "--action", action, code=3))
        for body, type in (({"assignee": 1}, "bad-request"), ({"to": "bea"}, "bad-request"), ({}, "bad-request"),
                           ({"assignee": "bea", "reason": ""}, "bad-request"), ({"assignee": "a\0b"}, "bad-request")):
            self.assertEqual(self.post("olga", "assign", item, **body).json["type"], "/problems/" + type, body)
        refused = self.post("olga", "resolve", item, action="close")
        self.assertEqual((refused.status, refused.json["type"]), (422, "/problems/action-not-allowed"))
        self.assertIn("allowed: confirm-executed", refused.json["detail"])
        for body in ({"action": "confirm-executed", "status": 99}, {"action": "confirm-executed", "status": "201"},
                     {"action": "confirm-not-executed", "answer": {}}, {"action": 7}):
            self.assertEqual(self.post("olga", "resolve", item, **body).status, 400, body)
        for path, verb in (("assign", {"Content-Type": "text/plain"}),):
            answer = self.server.ask("POST", "/v1/exceptions/%s/%s" % (item, path), "{}", {**bearer(self.tokens["olga"]), **verb})
            self.assertEqual(answer.status, 415)
        for body in ("", "[]", "{"):
            answer = self.server.ask("POST", "/v1/exceptions/%s/assign" % item, body,
                                     {**bearer(self.tokens["olga"]), "Content-Type": "application/json"})
            self.assertEqual(answer.status, 400, answer)
        for query in ("limit=0", "state=done", "queue=x", "after=1"):
            self.assertEqual(self.look("olga", "/v1/exceptions?" + query).status, 400)
        self.untouched(item)

    # ---- Resolving ------------------------------------------------------------------------------

    def test_what_was_done_answers_its_duplicates_from_then_on(self):  # B06 B08
        for verb, key, send in (
                ("cli", "k-1", lambda item: self.act("olga", "resolve", item, "--action", "confirm-executed", "--status",
                                                     "201", "--answer", '{"order": 7.10}')),
                ("http", "k-2", lambda item: self.post("olga", "resolve", item, action="confirm-executed", status=201,
                                                       answer={"order": 7.1}))):
            with self.subTest(verb=verb):
                item = self.lost(key)
                before = self.service.times(key)
                done = send(item)
                if verb == "http":
                    self.assertEqual((done.status, done.json["state"]), (200, "RESOLVED"), done)
                else:
                    self.assertRegex(done, "^resolved .*confirm-executed by olga")
                again = self.send(key)
                self.assertEqual((again.status, again.json, again.headers["Idempotent-Replayed"]), (201, {"order": 7.1}, "true"))
                self.assertEqual((self.service.times(key), self.state_of(key)), (before, "COMPLETED"))
                shown = self.shown(item)
                self.assertEqual((shown["state"], shown["resolution"], shown["resolvedBy"], shown["note"]),
                                 ("RESOLVED", "confirm-executed", "olga", "seen on the statement"))
                (one,) = shown["history"]
                self.assertEqual((one["actor"], one["action"], one["parameters"]["status"]), ("olga", "confirm-executed", 201))
                self.assertNotIn("7.1", json.dumps(one["parameters"]))  # only its digest: it may tell of persons
                self.assertEqual(self.number("select count(*) from %s where outcome = 'executed' and command_id = '%s'" % (
                    self.ledger("audit"), shown["subjectId"])), 1)

    def test_what_was_not_done_may_be_sent_again_with_the_same_key(self):  # I4
        item = self.lost("k-1")
        self.act("olga", "resolve", item, "--action", "confirm-not-executed", reason="not booked")
        self.assertEqual(self.state_of("k-1"), "FAILED")
        self.assertEqual(self.shown(item)["resolution"], "confirm-not-executed")
        second = self.lost("k-1")  # it is sent on again, and lost again: another item
        self.assertNotEqual(second, item)
        self.assertIn("it is resolved already by olga", self.act("oleg", "resolve", item, "--action", "confirm-executed",
                                                                 "--status", "204", code=3))
        self.assertEqual(self.state_of("k-1"), "UNKNOWN")
        self.assertEqual(self.shown(second)["state"], "OPEN")

    def test_the_answer_is_what_the_contract_keeps(self):  # B08
        full, brief, mute = self.lost("k-1"), self.lost("k-2"), self.lost("k-3", "/mute")
        self.execute("update %s set operation = 'brief' where key = 'k-2'" % self.ledger("command"))
        confirm = ("--action", "confirm-executed")
        self.assertIn("whole answer", self.act("olga", "resolve", full, *confirm, code=3))
        self.assertIn("not JSON", self.act("olga", "resolve", full, *confirm, "--answer", "{", code=3))
        self.assertIn("give its type and its id", self.act("olga", "resolve", brief, *confirm, "--status", "201", code=3))
        self.assertIn("its type and its id", self.act("olga", "resolve", brief, *confirm, "--resource-id", "o-1", code=3))
        self.assertIn("it needs the contracts", self.run_ibid(
            "exception", "resolve", full, *confirm, "--reason", "r", code=1, token=self.tokens["olga"]).stderr)
        for item in (full, brief, mute):
            self.untouched(item)
        self.act("olga", "resolve", full, *confirm, "--status", "204")
        self.act("olga", "resolve", brief, *confirm, "--resource-type", "order", "--resource-id", "o-1")
        self.act("olga", "resolve", mute, *confirm)
        self.assertEqual(self.send("k-1").status, 204)
        shown = json.loads(self.run_ibid("command", "list", "--tenant", "t", "--key", "k-2", "--json").stdout)
        self.assertEqual((shown["state"], shown["resourceType"], shown["resourceId"]), ("COMPLETED", "order", "o-1"))
        self.assertEqual(self.send("k-3", "/mute").status, 204)

    def test_an_answer_that_looks_like_ours_is_the_answer(self):
        item = self.lost("k-1")
        odd = {"headers": {"X-Evil": "1", "n": 2}, "text": 5}
        path = os.path.join(self.dir, "answer.json")
        with open(path, "w", encoding="utf-8") as handle:
            json.dump(odd, handle)
        self.act("olga", "resolve", item, "--action", "confirm-executed", "--answer", "@" + path)
        again = self.send("k-1")
        self.assertEqual((again.status, again.json, again.headers["X-Evil"]), (200, odd, None))

    def test_an_item_that_allows_it_is_closed(self):
        item = self.lost("k-1")
        self.execute("update %s set actions = 'close,skip', subject_type = 'file' where id = '%s'" % (
            self.ledger("exception"), item))
        self.assertIn("only confirm-executed takes an answer",
                      self.act("olga", "resolve", item, "--action", "close", "--status", "200", code=3))
        self.assertIn("not done by resolving", self.act("olga", "resolve", item, "--action", "skip", code=3))
        self.run_ibid("exception", "resolve", item, "--action", "close", "--reason", "nobody needs it", token=self.tokens["olga"])
        self.assertEqual(self.history(item), [("olga", "operator", "close")])
        self.assertEqual(self.shown(item)["state"], "RESOLVED")

    # ---- A second person ------------------------------------------------------------------------

    def test_what_needs_a_second_person_is_done_when_another_one_approves_it(self):
        item = self.lost("k-1", "/careful")
        (listed,) = [one for one in self.listed() if one["id"] == item]
        self.assertEqual((listed["severity"], listed["needsApproval"]), ("critical", ACTIONS))
        proposed = self.run_ibid("exception", "resolve", item, "--action", "confirm-executed", "--answer", '{"order":7}',
                                 "--reason", "on the statement", "--contracts", self.contracts, token=self.tokens["arno"])
        self.assertRegex(proposed.stdout, "^proposed .*confirm-executed by arno")
        self.assertIn("ibid exception approve " + item, proposed.stderr)
        self.assertEqual((self.state_of("k-1"), self.shown(item)["state"]), ("UNKNOWN", "OPEN"))
        self.assertIn("proposed already by arno", self.act("olga", "resolve", item, "--action", "confirm-not-executed", code=3))
        self.assertEqual(self.post("olga", "resolve", item, action="confirm-not-executed").json["type"],
                         "/problems/already-proposed")
        text = self.run_ibid("exception", "show", "--tenant", "t", item).stdout
        self.assertIn("waits for approval (1)\n  confirm-executed  proposed by arno  on the statement\n", text)
        self.assertNotIn('"order"', text)
        self.assertEqual(self.look("anna", "/v1/exceptions/" + item).json["proposal"]["proposedBy"], "arno")
        # Not who proposed it, whichever of their tokens they use, and were they admin.
        for token in (self.tokens["arno"], self.token("arno", "approver,admin")):
            self.assertIn("a second person", self.act(token, "approve", item, code=3))
            self.assertEqual(self.post(token, "approve", item).json["type"], "/problems/second-person")
        self.assertEqual(self.state_of("k-1"), "UNKNOWN")
        self.act("anna", "approve", item, reason="so it is")
        again = self.send("k-1", "/careful")
        self.assertEqual((again.status, again.json), (200, {"order": 7}))
        shown = self.shown(item)
        self.assertEqual((shown["resolution"], shown["resolvedBy"], shown["note"]),
                         ("confirm-executed", "anna", "so it is (proposed by arno: on the statement)"))
        self.assertEqual(self.history(item), [("arno", "operator", "propose"), ("anna", "approver", "approve")])
        (approval,) = shown["approvals"]
        self.assertEqual([approval[name] for name in ("action", "proposedBy", "decision", "decidedBy", "decidedReason")],
                         ["confirm-executed", "arno", "APPROVED", "anna", "so it is"])
        self.assertEqual({one["approvalId"] for one in shown["history"]}, {approval["id"]})
        # The server says the same, but for whose it is and with which tokens it was decided.
        del approval["proposedToken"], approval["decidedToken"]
        self.assertEqual(shown, dict(self.look("anna", "/v1/exceptions/" + item).json, tenant="t"))
        # What the proposal held of the answer is gone with the decision.
        self.assertEqual(self.number("select count(*) from %s where parameters like '%%order%%'" % self.ledger("approval")), 0)

    def test_what_is_declined_stays_open_and_may_be_proposed_again(self):
        item = self.lost("k-1", "/careful")
        self.assertIn("nothing is proposed", self.act("anna", "approve", item, code=3))
        self.assertEqual(self.post("anna", "decline", item).json["type"], "/problems/nothing-proposed")
        self.post("olga", "resolve", item, action="confirm-not-executed")
        declined = self.post("anna", "decline", item, reason="look at the other account")
        self.assertEqual((declined.status, declined.json["state"], declined.json.get("proposal")), (200, "OPEN", None))
        self.assertIn("nothing is proposed", self.act("anna", "approve", item, code=3))
        self.act("olga", "resolve", item, "--action", "confirm-not-executed")
        self.assertIn("approver or admin", self.act("oleg", "decline", item, code=3))
        self.act("olga", "decline", item, reason="I was wrong")  # who proposed it takes it back
        self.act("anna", "resolve", item, "--action", "confirm-not-executed")  # who may approve may propose
        approved = self.post("arno", "approve", item)
        self.assertEqual((approved.status, approved.json["state"], self.state_of("k-1")), (200, "RESOLVED", "FAILED"))
        self.assertEqual([one["decision"] for one in self.shown(item)["approvals"]], ["APPROVED", "DECLINED", "DECLINED"])
        self.assertEqual(self.post("anna", "approve", item).json["type"], "/problems/exception-resolved")
        self.assertEqual(self.post("anna", "decline", item).json["type"], "/problems/exception-resolved")
        self.assertEqual(self.post("olga", "assign", item, assignee="bea").json["type"], "/problems/exception-resolved")

    # ---- At once --------------------------------------------------------------------------------

    def race(self, *calls):
        """Exit codes and talk of processes that begin together."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}

        def run(call):
            who, *arguments = call
            return subprocess.run([BIN, *arguments, "--store", self.url, "--contracts", self.contracts], capture_output=True,
                                  text=True, timeout=LIMIT_S, env=dict(clean, IBID_TOKEN=self.tokens.get(who, "")))
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(run, calls))

    def test_of_several_who_resolve_at_once_one_does(self):
        for round in range(5):
            key = "k-%d" % round
            item = self.lost(key)
            done = self.race(*((who, "exception", "resolve", item, "--reason", "r", "--action", action, *more)
                               for who, action, more in (("olga", ACTIONS[0], ["--status", "204"]), ("oleg", ACTIONS[1], []),
                                                         ("arno", ACTIONS[0], ["--status", "204"]), ("ada", ACTIONS[1], []))))
            self.assertEqual(sorted(one.returncode for one in done), [0, 3, 3, 3], done)
            shown = self.shown(item)
            for one in done:
                if one.returncode:
                    self.assertIn("resolved already by %s: %s" % (shown["resolvedBy"], shown["resolution"]), one.stderr)
            self.assertEqual(len(shown["history"]), 1)
            self.assertEqual(self.state_of(key), {ACTIONS[0]: "COMPLETED", ACTIONS[1]: "FAILED"}[shown["resolution"]])

    def test_of_several_who_decide_at_once_one_does(self):
        for round in range(5):
            key = "k-%d" % round
            item = self.lost(key, "/careful")
            self.act("olga", "resolve", item, "--action", "confirm-not-executed")
            done = self.race(*((who, "exception", verb, item, "--reason", "r")
                               for who, verb in (("anna", "approve"), ("arno", "approve"), ("ada", "approve"))))
            self.assertEqual(sorted(one.returncode for one in done), [0, 3, 3], done)
            self.assertEqual(self.state_of(key), "FAILED")
            self.assertEqual([action for _, _, action in self.history(item)], ["propose", "approve"])

    def test_approving_and_declining_at_once_is_one_of_them(self):
        for round in range(5):
            key = "k-%d" % round
            item = self.lost(key, "/careful")
            self.act("olga", "resolve", item, "--action", "confirm-not-executed")
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda one: self.post(one[0], one[1], item),
                                        (("anna", "approve"), ("arno", "decline"), ("ada", "approve"), ("anna", "decline"))))
            self.assertEqual(sorted(answer.status for answer in answers), [200, 409, 409, 409], answers)
            (approval,) = self.shown(item)["approvals"]
            self.assertEqual(self.state_of(key), {"APPROVED": "FAILED", "DECLINED": "UNKNOWN"}[approval["decision"]])

    def test_of_several_who_propose_at_once_one_does(self):
        item = self.lost("k-1", "/careful")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda who: self.post(who, "resolve", item, action="confirm-not-executed"),
                                    ("olga", "oleg", "arno", "ada")))
        self.assertEqual(sorted(answer.status for answer in answers), [200, 409, 409, 409], answers)
        self.assertEqual(len(self.shown(item)["history"]), 1)

    def test_a_person_and_a_recovery_come_to_one_outcome(self):  # I6 B06
        for round in range(8):
            key = "k-%d" % round
            item = self.lost(key, "/careful" if round % 2 else "/charges")
            self.execute("update %s set operation = 'look' where key = '%s'" % (self.ledger("command"), key))
            person = (("olga", "exception", "resolve", item, "--action", "confirm-not-executed", "--reason", "r"))
            if round % 2:
                self.assertEqual(self.race(person)[0].returncode, 0)  # proposed
                person = (("anna", "exception", "approve", item, "--reason", "r"))
            done, recovery = self.race(person, (None, "command", "recover", "--unknown"))
            self.assertEqual(recovery.returncode, 0, recovery)
            shown = self.shown(item)
            self.assertEqual(shown["state"], "RESOLVED")
            self.assertEqual((self.state_of(key), shown["resolution"], done.returncode), {
                "recovery": ("COMPLETED", "confirmed-executed", 3),
                person[0]: ("FAILED", "confirm-not-executed", 0)}[shown["resolvedBy"]], (done, recovery))
            if done.returncode:
                self.assertIn("resolved already by recovery", done.stderr)
            if round % 2:
                self.assertEqual(shown["approvals"][0]["decision"], "LAPSED" if done.returncode else "APPROVED")

    # ---- Evidence -------------------------------------------------------------------------------

    def test_a_person_sees_the_key_that_the_service_saw(self):  # E04 J01
        """What has to be looked for at the service is named wherever somebody looks: also once it is known, and by no
        more than the row."""
        item = self.lost("k-1")
        given = self.service.seen[0][2]["Idempotency-Key"]
        command = self.shown(item)["subjectId"]

        def looks():
            text = self.run_ibid("exception", "show", "--tenant", "t", item).stdout
            self.assertRegex(text, r"\nexternal key +%s\n" % given)
            self.assertEqual(self.shown(item)["externalKey"], given)
            self.assertEqual(self.look("olga", "/v1/exceptions/" + item).json["externalKey"], given)
            self.assertRegex(self.run_ibid("command", "show", "--tenant", "t", command).stdout, r"\nexternal key +%s\n" % given)
            shown = json.loads(self.run_ibid("command", "show", "--tenant", "t", command, "--json").stdout)
            self.assertEqual(shown["externalKey"], given)
            self.assertEqual(self.look("olga", "/v1/operations/" + command).json["externalKey"], given)
            self.assertEqual(self.look("web", "/v1/commands/charge/k-1").json["externalKey"], given)

        looks()
        self.act("olga", "resolve", item, "--action", "confirm-executed", "--status", "200")
        looks()
        self.file("plain.yaml", LOOK.replace("handler: callback\nstaged: { lease: 30s, recover: %(recover)s }",
                                            "handler: { sql: look.sql }") % {"name": "plain"})
        self.file("empty.json", "{}")
        self.run_ibid("submit", "--contracts", self.contracts, "--tenant", "t", "--operation", "plain", "--key", "k-2",
                      os.path.join(self.contracts, "empty.json"))
        plain = self.run_ibid("command", "show", "--tenant", "t", "--operation", "plain", "--key", "k-2", "--json").stdout
        self.assertNotIn("externalKey", json.loads(plain))  # no partner saw one

    def said(self, key, path, document, server=None, query="", **more):
        """A request whose answer is a 500; what is kept of that, and the exception with it."""
        server = server or self.server
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = {"Idempotency-Key": key, "Content-Type": "application/json", **bearer(self.tokens["web"]), **more}
        for _ in range(2):
            answer = server.ask("POST", path + query, body, headers)
            self.assertEqual((answer.status, answer.json["code"]), (502, "UPSTREAM_ERROR"), answer)
            self.assertNotIn(b"boom", answer.body)
        command = answer.headers["Ibid-Command-Id"]
        for who in ("web", "olga"):  # of a command, nobody is told over HTTP: it is its client's, too
            for place in ("/v1/operations/" + command, "/v1/commands?limit=9"):
                shown = server.ask("GET", place, headers=bearer(self.tokens[who]))
                self.assertEqual(shown.status, 200, shown)
                self.assertNotIn(b"boom", shown.body)
        item, = [item for item in self.listed("--state", "open") if item["subjectId"] == command]
        kept = self.number("select service_answer from %s where subject_id = '%s'" % (self.ledger("exception"), command))
        return item["id"], command, kept

    def test_what_the_service_said_is_kept_for_those_who_find_out(self):  # E04 J01 F03
        """And for nobody else: its own words about its 500, on every way to look at the exception or the command, also
        after a restart and when it is resolved."""
        item, command, kept = self.said("k-1", "/charges", {"mode": "echo-error", "n": 12345})
        said = "boom over\n" + '{"mode": "[redacted]", "n": [redacted]}'  # of the payload nothing is kept
        self.assertEqual(kept, said)

        def looks():
            one_line = r"(?m)^service said +%s$" % re.escape(said.replace("\n", " "))
            self.assertRegex(self.run_ibid("exception", "show", "--tenant", "t", item).stdout, one_line)
            self.assertEqual(self.shown(item)["serviceAnswer"], said)
            self.assertEqual(self.look("olga", "/v1/exceptions/" + item).json["serviceAnswer"], said)
            self.assertRegex(self.run_ibid("command", "show", "--tenant", "t", command).stdout, one_line)
            answer, = json.loads(self.run_ibid("command", "show", "--tenant", "t", command, "--json").stdout)["serviceAnswers"]
            self.assertEqual((answer["exceptionId"], answer["answer"]), (item, said))

        looks()
        self.assertEqual(self.server.stop(), 0)
        self.server = self.proxy(CLOSED)
        looks()
        self.assertEqual(self.look("web", "/v1/exceptions/" + item).status, 403)
        self.act("olga", "resolve", item, "--action", "confirm-not-executed")
        looks()
        item, command, kept = self.said("k-2", "/charges", {"mode": "large-error"})
        self.assertEqual(kept, "\u00e4" * 4096 + " [cut off]")
        self.assertEqual(self.said("k-3", "/charges", {"mode": "bytes-error"})[2], "a?b?")
        self.assertNotIn("serviceAnswer", self.shown(self.lost("k-4", mode="drop")))
        # What is erased of the exception's words is erased of these.
        item, command, kept = self.said("k-5", "/charges", {"mode": "echo-error"})
        self.act("olga", "resolve", item, "--action", "confirm-not-executed")
        self.run_ibid("erase", "--tenant", "t", "--id", command, "--by", "dora", "--reason", "on request")
        self.assertNotIn("serviceAnswer", self.shown(item))

    def test_what_the_service_said_is_kept_as_the_payload_may_be(self):  # B08
        """It may repeat what it was sent: `redact` and `omit` take the values out, `encrypt` seals all of it."""
        human = {"recover": "human", "inquiry": "", "strategy": "key"}
        key_file = os.path.join(self.dir, "keys")
        with open(key_file, "w", encoding="utf-8") as handle:
            handle.write("2026-11 %s\n" % ("ab" * 32))
        os.chmod(key_file, 0o600)
        field = "  /iban: { type: text, class: %s }\npayload: %s"
        for name, fields in (("stored", "payload: store"), ("hidden", field % ("omit", "store")), ("shape", "payload: redact"),
                             ("none", "payload: omit"), ("sealed", field % ("omit", "encrypt"))):
            self.contract(name, "POST /" + name, fields=fields, **human)
        server = self.proxy(CLOSED, "key_file=" + key_file)
        document = {"iban": "DE12500105", "item": "tea for two", "mode": "echo-error"}
        clear = "boom over\n" + json.dumps(document)
        without = clear.replace("DE12500105", "[redacted]")
        nothing = without.replace("tea for two", "[redacted]").replace("echo-error", "[redacted]")
        for name, expected in (("stored", clear), ("hidden", without), ("shape", nothing), ("none", nothing)):
            item, command, kept = self.said("k-1", "/" + name, document, server)
            self.assertEqual((name, kept), (name, expected))
            self.assertEqual(self.shown(item).get("serviceAnswer"), expected)
        item, command, kept = self.said("k-1", "/sealed", document, server)
        self.assertRegex(kept, "^ibid:v1:2026-11:[A-Za-z0-9_-]+$")
        self.assertEqual(self.shown(item)["serviceAnswer"], kept)  # without the key
        show = ["exception", "show", "--tenant", "t", item, "--json", "--key-file", key_file]
        self.assertEqual(json.loads(self.run_ibid(*show).stdout)["serviceAnswer"], without)
        self.assertEqual(server.ask("GET", "/v1/exceptions/" + item, headers=bearer(self.tokens["olga"])).json["serviceAnswer"],
                         without)
        show = ["command", "show", "--tenant", "t", command, "--json", "--key-file", key_file]
        self.assertEqual(json.loads(self.run_ibid(*show).stdout)["serviceAnswers"][0]["answer"], without)
        # Parts of a query can't be found in it, so nothing of it is kept unless all may be.
        for name, expected in (("stored", clear), ("hidden", None), ("shape", None), ("none", None)):
            self.assertEqual(self.said("k-2", "/" + name, document, server, "?iban=DE12500105&a=b")[2], expected)

    def test_what_was_done_is_never_edited(self):  # I3
        item = self.lost("k-1", "/careful")
        self.act("olga", "resolve", item, "--action", "confirm-not-executed")
        errors = (sqlite3.Error, psycopg2.Error)
        for sql in ("update %s set actor = 'eve'", "update %s set reason = 'none'", "delete from %s"):
            with self.assertRaises(errors, msg=sql):
                self.execute(sql % self.ledger("action"))
        for sql in ("update %s set proposed_by = 'eve'", "update %s set action = 'close'", "delete from %s"):
            with self.assertRaises(errors, msg=sql):
                self.execute(sql % self.ledger("approval"))
        self.act("anna", "decline", item)
        with self.assertRaises(errors):
            self.execute("update %s set decision = 'APPROVED'" % self.ledger("approval"))
        self.assertEqual(self.history(item), [("olga", "operator", "propose"), ("anna", "approver", "decline")])
        found = self.run_ibid("doctor").stdout
        self.assertNotRegex(found, "(?m)^refuse")

    def test_lists_come_in_pages_and_show_what_is_overdue(self):
        items = [self.lost("k-%d" % number) for number in range(3)]
        self.execute("update %s set %s where id = '%s'" % (self.ledger("exception"), (
            "due_us = 1" if self.store == "sqlite" else "due_at = '2000-01-01'"), items[0]))
        self.act("olga", "resolve", items[1], "--action", "confirm-not-executed")
        page = self.look("olga", "/v1/exceptions?state=all&limit=2").json
        self.assertEqual(([one["id"] for one in page["items"]], page["next"]), ([items[2], items[1]], items[1]))
        rest = self.look("olga", "/v1/exceptions?state=all&limit=2&after=" + page["next"]).json
        self.assertEqual([(one["id"], one["overdue"]) for one in rest["items"]], [(items[0], True)])
        self.assertEqual([one["id"] for one in self.look("olga", "/v1/exceptions?queue=business").json["items"]],
                         [items[2], items[0]])
        self.assertEqual([one["id"] for one in self.look("olga", "/v1/exceptions?state=resolved").json["items"]], [items[1]])
        self.assertEqual(self.look("olga", "/v1/exceptions/nothing").status, 404)


class ExceptionsSqlite(Exceptions, Sqlite, unittest.TestCase):
    pass


class ExceptionsPostgres(Exceptions, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
