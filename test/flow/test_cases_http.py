# SPDX-License-Identifier: Apache-2.0
"""The case management example (L03) over HTTP: what test_cases.py does on the command line, through `ibid serve` and the
routes that the contracts declare, and what only a client of the API sees. On both stores."""
import concurrent.futures
import glob
import json
import os
import re
import time
import unittest

from serve_bed import Server
from test_cases import ACTIONS, CASES, CLOSE, CONFLICT, EXECUTED, LIMIT_S, REJECTED, Cases, OnPostgres, OnSqlite

COPIES = 20
ESCALATION = {"reasonCode": "REPEAT_VIOLATION", "comment": "Repeated breach within review window"}


def routes():
    """The path of each operation, as its contract says."""
    found = {}
    for path in glob.glob(os.path.join(CASES, "*.yaml")):
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        route = re.search(r"^route: POST (\S+)", text, re.M)
        if route:
            found[re.search(r"^command: (\S+)", text, re.M).group(1)] = route.group(1)
    return found


class OverHttp(Cases):
    """A client of the API, in the place of the one that starts processes."""
    contracts = CASES
    routes = routes()
    decisions = {EXECUTED: {"executed", "linked"}, REJECTED: {"rejected"}, CONFLICT: {"conflict"}}

    def setUp(self):
        super().setUp()
        self.servers, self.tokens = {}, {}
        for tenant in ("t", "u"):  # made before anybody asks: several ask at once
            made = self.ibid("token", "create", "--tenant", tenant, "--client", "portal", "--json").stdout
            self.tokens[tenant] = json.loads(made)["token"]

    @property
    def server(self):
        """The one of the store as it is named now."""
        if self.url not in self.servers:
            self.servers[self.url] = Server(self, "http.open.tenant=")
        return self.servers[self.url]

    def who(self, tenant="t", actor="ann"):
        return {"Authorization": "Bearer " + self.tokens[tenant], "Ibid-Actor": actor}

    def post(self, operation, key, payload, server=None, **who):
        """One request, one answer."""
        path, body = self.routes[operation], dict(payload)
        if "{caseId}" in path and "caseId" not in body:
            path = "/v1/commands/" + operation  # the route can't leave it out
        elif "{caseId}" in path:
            path = path.replace("{caseId}", body.pop("caseId"))
        return (server or self.server).send('"%s"' % key, body, path=path, **self.who(**who))

    def final(self, operation, key, payload, server=None, **who):
        """Who is told to come again comes again."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = self.post(operation, key, payload, server, **who)
            if not answer.headers["Retry-After"]:
                return answer
            self.assertIn(answer.status, (409, 503), answer)
            self.assertLess(time.monotonic(), end, answer)

    def told(self, answer, **who):
        """An answer in the words of the command line; what it does not say is looked up where it points."""
        told = {"status": answer.status, "replayed": answer.headers["Idempotent-Replayed"] == "true"}
        if answer.headers["Content-Type"] == "application/problem+json":
            kind = answer.json["type"]
            self.assertEqual(answer.json["status"], answer.status)
            told.update(reason=answer.json.get("code"), text=answer.json["detail"],
                        decision={"/problems/key-reused": "conflict", "/problems/rejected": "rejected"}[kind])
            return told
        command = self.server.ask("GET", "/v1/operations/" + answer.headers["Ibid-Command-Id"], headers=self.who(**who)).json
        self.assertEqual(command["result"], answer.json)
        told.update(body=answer.json, resourceId=command["resourceId"], location=answer.headers["Location"],
                    decision=self.outcome(command["id"]))
        return told

    def outcome(self, command_id):
        """Whether it was done, or found: a client sees no difference but in the status, the audit does."""
        ((outcome,),) = self.sql("select outcome from ibid.audit where command_id = ?", command_id)
        return outcome

    # ---- In the place of the command line -------------------------------------------------------

    def submit(self, operation, key, payload, code=EXECUTED, **who):
        told = self.told(self.final(operation, key, payload, **who), **who)
        self.assertIn(told["decision"], self.decisions[code], told)
        return told

    def race(self, sent):
        server = self.server
        with concurrent.futures.ThreadPoolExecutor(len(sent)) as pool:
            return [self.told(answer) for answer in pool.map(lambda one: self.final(*one, server), sent)]

    # ---- What only a client of the API sees -----------------------------------------------------

    def test_the_worked_example_header_by_header(self):
        case_id = self.open_case()
        first = self.post("escalate-case", "2a8634e9", dict(ESCALATION, caseId=case_id))
        place = "/cases/%s/escalations/%s" % (case_id, first.json["escalationId"])
        self.assertEqual((first.status, first.headers["Location"], first.headers["Idempotent-Replayed"]), (202, place, None))
        again = self.post("escalate-case", "2a8634e9", dict(ESCALATION, caseId=case_id))
        self.assertEqual((again.status, again.body, again.headers["Location"]), (202, first.body, place))
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        other = self.post("escalate-case", "2a8634e9", dict(ESCALATION, caseId=case_id, reasonCode="PUBLIC_SAFETY"))
        self.assertEqual((other.status, other.json["type"], other.headers["Content-Type"]),
                         (409, "/problems/key-reused", "application/problem+json"))
        self.assertIsNone(other.headers["Retry-After"])
        self.assertEqual(other.json["commandId"], first.headers["Ibid-Command-Id"])
        elsewhere = self.post("escalate-case", "2a8634e9", dict(ESCALATION, caseId=self.open_case("EXT-2")))
        self.assertEqual((elsewhere.status, elsewhere.json["type"]), (409, "/problems/key-reused"))  # the path counts
        self.assert_one_effect("escalate-case", case_id)
        self.assertEqual((self.count("review_task"), self.count("case_notice")), (1, 1))

    def test_a_closed_case_is_a_business_conflict_that_stays(self):
        case_id = self.open_case()
        self.fresh("close-case", dict(CLOSE[1], caseId=case_id))
        first = self.post("escalate-case", "k", dict(ESCALATION, caseId=case_id))
        self.assertEqual((first.status, first.json["type"], first.json["code"]), (409, "/problems/rejected", "CASE_CLOSED"))
        self.assertIsNone(first.headers["Retry-After"])
        self.fresh("reopen-case", {"caseId": case_id, "reasonCode": "APPEAL"})
        again = self.post("escalate-case", "k", dict(ESCALATION, caseId=case_id))
        self.assertEqual((again.status, again.body, again.headers["Idempotent-Replayed"]), (409, first.body, "true"))
        self.assertEqual(self.count("case_escalation"), 0)

    def test_every_action_has_a_route_and_a_wrong_request_changes_nothing(self):
        self.assertEqual(set(self.routes), set(ACTIONS) | {"create-case"})
        case_id = self.open_case()
        before = self.count("ibid.event"), self.count("ibid.command")
        for operation, action in ACTIONS.items():
            path = self.routes[operation].replace("{caseId}", case_id)
            without = self.server.send(None, action["asks"], path=path, **self.who())
            self.assertEqual((without.status, without.json["type"]), (400, "/problems/key-missing"), operation)
            twice = self.server.send("k", dict(action["asks"], caseId=case_id), path=path, **self.who())
            self.assertEqual((twice.status, twice.json["type"]), (400, "/problems/bad-request"), operation)
            stranger = self.server.send("k", action["asks"], path=path)
            self.assertEqual(stranger.status, 401, operation)
            looked = self.server.ask("GET", path, headers=self.who())
            self.assertEqual((looked.status, looked.headers["Allow"]), (405, "POST"), operation)
        self.assertEqual((self.count("ibid.event"), self.count("ibid.command")), before)
        self.assertEqual(self.case(case_id), ("OPEN", 1))

    def test_twenty_at_once_are_one_escalation_and_the_others_hear_of_it(self):  # B12, DB 28.2
        case_id = self.open_case()
        servers = [self.server, Server(self, "http.open.tenant=")]
        audit = self.count("ibid.audit")
        with concurrent.futures.ThreadPoolExecutor(COPIES) as pool:
            answers = list(pool.map(lambda n: self.post("escalate-case", "k", dict(ESCALATION, caseId=case_id), servers[n % 2]),
                                    range(COPIES)))
        first = [answer for answer in answers if answer.status == 202 and not answer.headers["Idempotent-Replayed"]]
        replays = [answer for answer in answers if answer.headers["Idempotent-Replayed"] == "true"]
        waiting = [answer for answer in answers if answer.status == 409 and answer.json["type"] == "/problems/in-progress"]
        self.assertEqual((len(first), len(replays) + len(waiting)), (1, COPIES - 1), answers)
        self.assertEqual({answer.body for answer in replays} | {first[0].body}, {first[0].body})
        for answer in waiting:
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        last = self.final("escalate-case", "k", dict(ESCALATION, caseId=case_id), servers[1])
        self.assertEqual((last.status, last.body), (202, first[0].body))
        self.assert_one_effect("escalate-case", case_id)
        self.assertEqual((self.count("review_task"), self.count("case_notice"), self.count("ibid.audit")), (1, 1, audit + 1))
        self.assert_sound()

    def test_a_server_killed_after_an_escalation_leaves_its_answer_to_the_next(self):  # DB 28.4
        case_id = self.open_case()
        first = self.post("escalate-case", "k", dict(ESCALATION, caseId=case_id))
        self.server.kill()
        again = self.post("escalate-case", "k", dict(ESCALATION, caseId=case_id), Server(self, "http.open.tenant="))
        self.assertEqual((again.status, again.body, again.headers["Location"]), (202, first.body, first.headers["Location"]))
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        self.assert_one_effect("escalate-case", case_id)


class CasesOverHttpOnSqlite(OverHttp, OnSqlite, unittest.TestCase):
    pass


class CasesOverHttpOnPostgres(OverHttp, OnPostgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
