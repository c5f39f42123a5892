# SPDX-License-Identifier: Apache-2.0
"""The case management example (L03), as its clients see it: ten operations on both stores, sent again,
under other keys, with another meaning, and by many processes at once. Each has one effect."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import psycopg2

BIN = os.environ["IBID_BIN"]
CASES = os.path.join(os.environ["IBID_SOURCE_DIR"], "examples", "cases")
PG = os.environ.get("IBID_TEST_PG")
LIMIT_S = 60
RACERS = 6
EXECUTED, REJECTED, CONFLICT, IN_PROGRESS, AGAIN = 0, 3, 4, 5, 7
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

# Every action: what it asks for, where its effect is, and the event that tells of it. `before` are the
# steps that make it possible.
ASSIGN = ("assign-case", {"officerId": "USR-7"})
CLOSE = ("close-case", {"reasonCode": "RESOLVED", "comment": "settled"})
ACTIONS = {
    "assign-case": dict(asks=ASSIGN[1], effect="case_assignment where case_id = ?", event="CaseAssigned"),
    "escalate-case": dict(asks={"reasonCode": "REPEAT_VIOLATION", "comment": "again"},
                          effect="case_escalation where case_id = ?", event="CaseEscalated"),
    "submit-evidence": dict(asks={"sha256": DIGEST, "fileName": "a.pdf", "kind": "DOCUMENT"},
                            effect="case_evidence where case_id = ?", event="EvidenceSubmitted"),
    "approve-action": dict(asks={"actionId": "ACT-1", "actionType": "FINE"}, before=[ASSIGN],
                           effect="case_approval where case_id = ?", event="ActionApproved"),
    "start-sla-timer": dict(asks={"slaType": "DECISION", "days": 30},
                            effect="case_sla_timer where case_id = ? and sla_type = 'DECISION'", event="SlaTimerStarted"),
    "send-notice": dict(asks={"caseVersion": 1, "noticeType": "HEARING", "recipient": "ACME Ltd"},
                        effect="case_notice where case_id = ?", event="NoticeIssued"),
    "generate-report": dict(asks={"reportType": "REGULATOR", "period": "2026-Q4"},
                            effect="case_report where case_id = ?", event="ReportGenerated"),
    "close-case": dict(asks=CLOSE[1], effect="ibid.machine_history where subject_id = ? and to_state = 'CLOSED'",
                       event="CaseClosed"),
    "reopen-case": dict(asks={"reasonCode": "APPEAL"}, before=[CLOSE], event="CaseReopened",
                        effect="ibid.machine_history where subject_id = ? and to_state = 'REOPENED'"),
}


class Cases:
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-cases-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.open_store()
        self.ibid("init", "--contracts", CASES)
        self.keys = 0

    # ---- How a client talks ---------------------------------------------------------------------

    def command(self, *args):
        return [BIN, *args, "--store", self.url]

    def environment(self):
        return {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}

    def ibid(self, *args, code=0, stdin=""):
        done = subprocess.run(self.command(*args), input=stdin, timeout=LIMIT_S, cwd=self.dir, env=self.environment(),
                              capture_output=True, text=True)
        if code is not None:
            self.assertEqual(code, done.returncode, "%s\n%s%s" % (args, done.stdout, done.stderr))
        return done

    def submission(self, operation, key, tenant="t", actor="ann"):
        return ["submit", "--contracts", CASES, "--tenant", tenant, "--operation", operation, "--key", key,
                "--client", "portal", "--actor", actor, "--json"]

    def submit(self, operation, key, payload, code=EXECUTED, **who):
        told = json.loads(self.ibid(*self.submission(operation, key, **who), code=code, stdin=json.dumps(payload)).stdout)
        told.pop("ageMs", None)
        return told

    def fresh(self, operation, payload, code=EXECUTED):
        """A new intent: a key that was never used."""
        self.keys += 1
        return self.submit(operation, "fresh-%d" % self.keys, payload, code)

    def rejected(self, reason, status, operation, payload):
        told = self.fresh(operation, payload, REJECTED)
        self.assertEqual((told["reason"], told["status"]), (reason, status), told)
        return told

    def race(self, sent):
        """All of [(operation, key, payload)] at once, each by a process of its own that waits for its payload
        until all have started; whoever is told to come again does. The answers, in the order given."""
        running = [subprocess.Popen(self.command(*self.submission(operation, key)), stdin=subprocess.PIPE, cwd=self.dir,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), text=True)
                   for operation, key, _ in sent]
        for process, (_, _, payload) in zip(running, sent):
            process.stdin.write(json.dumps(payload))
            process.stdin.close()
            process.stdin = None
        answers = []
        for process, (operation, key, payload) in zip(running, sent):
            out, err = process.communicate(timeout=LIMIT_S)
            code = process.returncode
            for _ in range(200):
                if code not in (IN_PROGRESS, AGAIN):
                    break
                done = self.ibid(*self.submission(operation, key), code=None, stdin=json.dumps(payload))
                code, out, err = done.returncode, done.stdout, done.stderr
            self.assertIn(code, (EXECUTED, REJECTED, CONFLICT), out + err)
            answers.append(json.loads(out))
        return answers

    # ---- What is there --------------------------------------------------------------------------

    def count(self, table, *values):
        return self.sql("select count(*) from " + table, *values)[0][0]

    def events(self, kind):
        return self.count("ibid.event where type = ?", kind)

    def case(self, case_id):
        return self.sql("select status, version from enforcement_case where tenant = 't' and id = ?", case_id)[0]

    def complaint(self, number):
        return {"sourceSystem": "portal", "externalComplaintId": number, "subject": "Noise", "supervisorId": "USR-1901"}

    def open_case(self, number="EXT-991"):
        return self.fresh("create-case", self.complaint(number))["resourceId"]

    def ready(self, operation):
        """A case in which the action is possible, and what the action asks for."""
        action = ACTIONS[operation]
        case_id = self.open_case("EXT-" + operation)
        for before, asks in action.get("before", []):
            self.fresh(before, dict(asks, caseId=case_id))
        return case_id, dict(action["asks"], caseId=case_id)

    def assert_one_effect(self, operation, case_id):
        action = ACTIONS[operation]
        self.assertEqual(self.count(action["effect"], case_id), 1, operation)
        self.assertEqual(self.count("ibid.event where aggregateid = ? and type = ?", case_id, action["event"]), 1, operation)

    def assert_sound(self):
        """What holds whatever happened: the columns say what the machine says, and nothing is there twice."""
        self.assertEqual(self.sql("select c.id from enforcement_case as c join ibid.machine_state as m on m.tenant = c.tenant "
                                  "and m.machine = 'case' and m.subject_id = c.id where m.state <> c.status or m.version <> c.version"), [])
        self.assertEqual(self.count("enforcement_case"), self.count("ibid.machine_state where machine = 'case'"))
        for table, key in (("case_escalation", "source_case_version"), ("review_task", "source_case_version"),
                           ("case_notice", "source_case_version, notice_type, recipient"),
                           ("case_sla_timer where status = 'ACTIVE'", "sla_type"), ("case_assignment", "case_version")):
            self.assertEqual(self.sql("select count(*) from %s group by tenant, case_id, %s having count(*) > 1" % (table, key)), [])

    # ---- The worked example ---------------------------------------------------------------------

    def test_an_escalation_is_done_once_and_a_retry_gets_the_same_id(self):
        case_id = self.open_case()
        asked = {"caseId": case_id, "reasonCode": "REPEAT_VIOLATION", "comment": "Repeated breach within review window"}
        first = self.submit("escalate-case", "k", asked)
        self.assertEqual((first["decision"], first["status"], first["replayed"]), ("executed", 202, False))
        self.assertEqual(first["body"], {"escalationId": first["resourceId"], "caseId": case_id, "caseVersion": 1})
        for _ in range(3):
            again = self.submit("escalate-case", "k", asked)
            self.assertEqual(again, dict(first, replayed=True))
        self.assertEqual(self.case(case_id), ("ESCALATED", 2))
        self.assertEqual(self.sql("select id, source_case_version, reason_code, escalated_by from case_escalation"),
                         [(first["resourceId"], 1, "REPEAT_VIOLATION", "ann")])
        self.assertEqual(self.sql("select case_id, source_case_version, task_type, assignee_id, status from review_task"),
                         [(case_id, 1, "SUPERVISOR_REVIEW", "USR-1901", "OPEN")])
        self.assertEqual(self.sql("select case_id, source_case_version, notice_type, recipient from case_notice"),
                         [(case_id, 1, "ESCALATION", "USR-1901")])
        self.assertEqual(self.count("ibid.audit where operation = 'escalate-case'"), 1)
        self.assertEqual(self.events("CaseEscalated"), 1)

    def test_another_reason_under_the_same_key_is_a_conflict(self):
        case_id = self.open_case()
        asked = {"caseId": case_id, "reasonCode": "REPEAT_VIOLATION"}
        self.submit("escalate-case", "k", asked)
        told = self.submit("escalate-case", "k", dict(asked, reasonCode="PUBLIC_SAFETY"), CONFLICT)
        self.assertEqual((told["decision"], told["status"]), ("conflict", 409))
        self.submit("escalate-case", "k", asked, CONFLICT, actor="bob")
        self.assertEqual(self.sql("select reason_code from case_escalation"), [("REPEAT_VIOLATION",)])
        self.assert_one_effect("escalate-case", case_id)

    def test_a_closed_case_is_not_escalated_and_the_answer_stays(self):
        case_id = self.open_case()
        self.fresh("close-case", dict(CLOSE[1], caseId=case_id))
        asked = {"caseId": case_id, "reasonCode": "REPEAT_VIOLATION"}
        first = self.submit("escalate-case", "k", asked, REJECTED)
        self.assertEqual((first["reason"], first["status"], first["replayed"]), ("CASE_CLOSED", 409, False))
        self.fresh("reopen-case", {"caseId": case_id, "reasonCode": "APPEAL"})
        self.assertEqual(self.submit("escalate-case", "k", asked, REJECTED), dict(first, replayed=True))
        for table in ("case_escalation", "review_task", "case_notice"):
            self.assertEqual(self.count(table), 0, table)
        self.assertEqual(self.events("CaseEscalated"), 0)
        self.assertEqual(self.fresh("escalate-case", asked)["body"]["caseVersion"], 3)

    def test_a_second_escalation_of_a_version_is_led_to_the_first(self):
        case_id = self.open_case()
        asked = {"caseId": case_id, "reasonCode": "REPEAT_VIOLATION"}
        first = self.fresh("escalate-case", asked)
        for more in ({}, {"comment": "another"}, {"caseVersion": 1}):
            told = self.fresh("escalate-case", dict(asked, **more))
            self.assertEqual((told["decision"], told["status"], told["body"]), ("linked", 200, first["body"]))
            self.assertEqual(told["resourceId"], first["resourceId"])
        for more in ({}, {"caseVersion": 1}):
            told = self.rejected("ESCALATED_OTHERWISE", 409, "escalate-case", dict(asked, reasonCode="PUBLIC_SAFETY", **more))
            self.assertIn(first["resourceId"], told["text"])
        self.assert_one_effect("escalate-case", case_id)
        self.assertEqual((self.count("review_task"), self.count("case_notice")), (1, 1))

    def test_the_next_version_may_be_escalated_again(self):
        case_id = self.open_case()
        asked = {"caseId": case_id, "reasonCode": "REPEAT_VIOLATION"}
        first = self.fresh("escalate-case", asked)
        self.fresh("assign-case", {"caseId": case_id, "officerId": "USR-7"})
        late = self.fresh("escalate-case", dict(asked, caseVersion=1))
        self.assertEqual((late["decision"], late["resourceId"]), ("linked", first["resourceId"]))
        self.assertRegex(self.rejected("CASE_CHANGED", 409, "escalate-case", dict(asked, caseVersion=2))["text"], "version 3")
        self.rejected("CASE_CHANGED", 409, "escalate-case", dict(asked, caseVersion=4))
        second = self.fresh("escalate-case", dict(asked, reasonCode="PUBLIC_SAFETY"))
        self.assertEqual((second["decision"], second["body"]["caseVersion"]), ("executed", 3))
        self.assertEqual((self.count("case_escalation"), self.count("review_task"), self.count("case_notice")), (2, 2, 2))
        self.assert_sound()

    # ---- Complaint and case ---------------------------------------------------------------------

    def test_a_complaint_has_one_case_whatever_the_key(self):
        first = self.submit("create-case", "a", self.complaint("EXT-991"))
        self.assertEqual((first["decision"], first["status"]), ("executed", 201))
        self.assertEqual(first["body"], {"caseId": first["resourceId"], "status": "OPEN", "version": 1})
        self.assertEqual(self.submit("create-case", "a", self.complaint("EXT-991")), dict(first, replayed=True))
        second = self.submit("create-case", "b", dict(self.complaint("EXT-991"), subject="Told again"))
        self.assertEqual((second["decision"], second["status"], second["body"]), ("linked", 200, first["body"]))
        self.submit("create-case", "a", self.complaint("EXT-992"), CONFLICT)
        self.assertEqual(self.count("enforcement_case"), 1)
        self.assertEqual(self.events("CaseCreated"), 1)
        self.assertEqual(self.sql("select sla_type, status from case_sla_timer"), [("FIRST_RESPONSE", "ACTIVE")])
        self.assertEqual(self.sql("select outcome from ibid.audit order by outcome"), [("executed",), ("linked",)])

    def test_other_sources_and_tenants_have_cases_of_their_own(self):
        ids = {self.open_case(), self.fresh("create-case", dict(self.complaint("EXT-991"), sourceSystem="mail"))["resourceId"],
               self.submit("create-case", "k", self.complaint("EXT-991"), tenant="u")["resourceId"]}
        self.assertEqual(len(ids), 3)
        self.assertEqual(self.events("CaseCreated"), 3)

    def test_many_at_once_open_one_case(self):
        for name, keys in (("same", ["k"] * RACERS), ("other", ["k%d" % n for n in range(RACERS)])):
            told = self.race([("create-case", name + key, self.complaint(name)) for key in keys])
            self.assertEqual(len({answer["resourceId"] for answer in told}), 1, told)
            self.assertEqual(len([answer for answer in told if answer["decision"] == "executed" and not answer["replayed"]]), 1, told)
        self.assertEqual(self.count("enforcement_case"), 2)
        self.assertEqual(self.count("case_sla_timer where status = 'ACTIVE'"), 2)
        self.assertEqual(self.events("CaseCreated"), 2)
        self.assert_sound()

    # ---- One timer ------------------------------------------------------------------------------

    def test_one_timer_of_a_type_runs_however_many_start_it(self):
        case_id = self.open_case()
        asks = {"caseId": case_id, "slaType": "INVESTIGATION", "days": 30}
        told = self.race([("start-sla-timer", "k%d" % n, dict(asks, days=30 + n)) for n in range(RACERS)])
        self.assertEqual(sorted(answer["decision"] for answer in told), ["executed"] + ["linked"] * (RACERS - 1))
        self.assertEqual(len({json.dumps(answer["body"], sort_keys=True) for answer in told}), 1)
        self.assertEqual(self.count("case_sla_timer where sla_type = 'INVESTIGATION'"), 1)
        first = self.fresh("start-sla-timer", dict(asks, slaType="FIRST_RESPONSE"))
        self.assertEqual((first["decision"], first["resourceId"]), ("linked", case_id))  # create-case has started it

    def test_closing_stops_the_timers_and_reopening_starts_one(self):
        case_id = self.open_case()
        self.fresh("start-sla-timer", {"caseId": case_id, "slaType": "DECISION", "days": 366})
        self.fresh("close-case", dict(CLOSE[1], caseId=case_id))
        self.assertEqual(self.count("case_sla_timer where status = 'STOPPED' and stopped_at is not null"), 2)
        self.rejected("CASE_CLOSED", 409, "start-sla-timer", {"caseId": case_id, "slaType": "DECISION", "days": 1})
        self.fresh("reopen-case", {"caseId": case_id, "reasonCode": "APPEAL"})
        told = self.fresh("start-sla-timer", {"caseId": case_id, "slaType": "DECISION", "days": 1})
        self.assertEqual(told["decision"], "executed")
        self.assertEqual(self.sql("select sla_type, status from case_sla_timer order by sla_type, status"),
                         [("DECISION", "ACTIVE"), ("DECISION", "STOPPED"), ("FIRST_RESPONSE", "ACTIVE"), ("FIRST_RESPONSE", "STOPPED")])

    def test_a_due_day_follows_from_the_time_of_the_command(self):
        case_id = self.open_case()
        self.fresh("start-sla-timer", {"caseId": case_id, "slaType": "DECISION", "days": 30})
        self.assertEqual(self.sql("select distinct %s from case_sla_timer order by 1" % self.days), [(10,), (30,)])

    # ---- States ---------------------------------------------------------------------------------

    def test_closing_and_reopening_are_each_done_once(self):
        case_id = self.open_case()
        shut, again = dict(CLOSE[1], caseId=case_id), {"caseId": case_id, "reasonCode": "NEW_EVIDENCE"}
        closed = self.fresh("close-case", shut)
        self.assertEqual(closed["body"], {"caseId": case_id, "status": "CLOSED", "version": 2})
        self.assertEqual(self.fresh("close-case", dict(shut, comment="as said"))["decision"], "linked")
        self.rejected("ALREADY_SET", 409, "close-case", dict(shut, reasonCode="UNFOUNDED"))
        self.assertEqual(self.fresh("reopen-case", again)["body"], {"caseId": case_id, "status": "REOPENED", "version": 3})
        self.assertEqual(self.fresh("reopen-case", again)["decision"], "linked")
        self.rejected("ALREADY_SET", 409, "reopen-case", dict(again, reasonCode="APPEAL"))
        self.assertEqual(self.fresh("close-case", dict(shut, reasonCode="UNFOUNDED"))["body"]["version"], 4)
        self.assertEqual((self.events("CaseClosed"), self.events("CaseReopened")), (2, 1))
        self.assertEqual(self.sql("select to_state from ibid.machine_history order by version"),
                         [("OPEN",), ("CLOSED",), ("REOPENED",), ("CLOSED",)])
        self.assert_sound()

    def test_moves_that_are_not_allowed_are_refused_and_change_nothing(self):
        case_id = self.open_case()
        self.rejected("NOT_ALLOWED", 409, "reopen-case", {"caseId": case_id, "reasonCode": "APPEAL"})
        self.rejected("NOT_ALLOWED", 409, "approve-action", {"caseId": case_id, "actionId": "ACT-1", "actionType": "FINE"})
        self.assertEqual((self.case(case_id), self.count("case_approval")), (("OPEN", 1), 0))
        self.fresh("escalate-case", {"caseId": case_id, "reasonCode": "PUBLIC_SAFETY"})
        self.rejected("NOT_ALLOWED", 409, "close-case", dict(CLOSE[1], caseId=case_id))
        self.assertEqual(self.count("case_sla_timer where status = 'ACTIVE'"), 1)
        self.assertEqual(self.case(case_id), ("ESCALATED", 2))
        self.fresh("assign-case", {"caseId": case_id, "officerId": "USR-7"})
        self.fresh("close-case", dict(CLOSE[1], caseId=case_id))
        for operation in ("assign-case", "escalate-case", "submit-evidence", "approve-action", "start-sla-timer"):
            self.rejected("CASE_CLOSED", 409, operation, dict(ACTIONS[operation]["asks"], caseId=case_id))
        self.assertEqual(self.case(case_id), ("CLOSED", 4))
        for table in ("case_evidence", "case_approval"):
            self.assertEqual(self.count(table), 0)
        self.assertEqual(self.count("case_assignment"), 1)
        self.fresh("send-notice", {"caseId": case_id, "caseVersion": 4, "noticeType": "CLOSURE", "recipient": "ACME Ltd"})
        self.fresh("generate-report", {"caseId": case_id, "reportType": "SUMMARY", "period": "2026"})
        self.assert_sound()

    def test_the_last_officer_counts(self):
        case_id = self.open_case()
        told = [self.fresh("assign-case", {"caseId": case_id, "officerId": officer}) for officer in ("a", "a", "b", "a")]
        self.assertEqual([answer["decision"] for answer in told], ["executed", "linked", "executed", "executed"])
        self.assertEqual(told[1]["body"], told[0]["body"])
        self.assertEqual(self.sql("select officer_id, version from enforcement_case"), [("a", 4)])
        self.assertEqual(self.events("CaseAssigned"), 3)

    # ---- What is the same, and what is not ------------------------------------------------------

    def test_an_unknown_case_is_a_stable_rejection(self):
        case_id = self.open_case()
        for operation, action in ACTIONS.items():
            asked = dict(action["asks"], caseId="CASE-2026-000481")
            first = self.submit(operation, "k", asked, REJECTED)
            self.assertEqual((first["reason"], first["status"]), ("CASE_NOT_FOUND", 404), operation)
            self.assertEqual(self.submit(operation, "k", asked, REJECTED), dict(first, replayed=True))
            told = self.submit(operation, "k", dict(action["asks"], caseId=case_id), REJECTED, tenant="u")
            self.assertEqual(told["reason"], "CASE_NOT_FOUND", operation)
        self.assertEqual(self.case(case_id), ("OPEN", 1))
        self.assertEqual(self.count("ibid.event"), 1)

    def test_a_wrong_payload_is_refused(self):
        case_id = self.open_case()
        for operation, more in (("escalate-case", {"reasonCode": "BORED"}), ("escalate-case", {"caseVersion": 0}),
                                ("escalate-case", {"caseId": None}), ("submit-evidence", {"kind": "RUMOUR"}),
                                ("start-sla-timer", {"days": 0}), ("send-notice", {"noticeType": "ESCALATION"}),
                                ("assign-case", {"surprise": 1}), ("generate-report", {"period": None})):
            asked = dict(ACTIONS[operation]["asks"], caseId=case_id)
            asked.update(more)
            self.rejected("INVALID_PAYLOAD", 422, operation, {name: value for name, value in asked.items() if value is not None})
        self.rejected("NO_SUCH_VERSION", 422, "send-notice", dict(ACTIONS["send-notice"]["asks"], caseId=case_id, caseVersion=2))
        self.assertEqual(self.count("ibid.event"), 1)

    def test_what_is_on_file_is_found_even_when_the_case_is_closed(self):
        for operation in ("submit-evidence", "approve-action"):
            case_id, asked = self.ready(operation)
            first = self.fresh(operation, asked)
            self.fresh("close-case", dict(CLOSE[1], caseId=case_id))
            told = self.fresh(operation, asked)
            self.assertEqual((told["decision"], told["resourceId"]), ("linked", first["resourceId"]))
        self.rejected("APPROVED_OTHERWISE", 409, "approve-action", dict(asked, actionType="WARNING"))

    def test_a_report_says_what_was_known(self):
        case_id = self.open_case()
        self.fresh("submit-evidence", dict(ACTIONS["submit-evidence"]["asks"], caseId=case_id))
        asked = {"caseId": case_id, "reportType": "REGULATOR", "period": "2026-Q4"}
        first = self.fresh("generate-report", asked)
        self.assertEqual(first["body"]["content"], {"status": "OPEN", "version": 1, "evidence": 1, "escalations": 0, "approvals": 0})
        self.fresh("escalate-case", {"caseId": case_id, "reasonCode": "PUBLIC_SAFETY"})
        self.assertEqual(self.fresh("generate-report", asked)["body"], first["body"])
        later = self.fresh("generate-report", dict(asked, period="2027-Q1"))
        self.assertEqual((later["body"]["content"]["escalations"], later["body"]["content"]["status"]), (1, "ESCALATED"))

    def copy(self, table, **changed):
        """A row as a program would write it that knows nothing of ibid."""
        columns = self.columns(table)
        taken = ", ".join("'%s'" % changed[name] if name in changed else name for name in columns)
        self.sql("insert into %s (%s) select %s from %s" % (table, ", ".join(columns), taken, table))

    def test_the_indexes_keep_out_whoever_writes_without_the_ledger(self):
        case_id = self.open_case()
        for operation in ("escalate-case", "assign-case", "submit-evidence", "approve-action", "generate-report"):
            self.fresh(operation, dict(ACTIONS[operation]["asks"], caseId=case_id))
        for table in ("enforcement_case", "case_sla_timer", "case_assignment", "case_escalation", "review_task", "case_notice",
                      "case_evidence", "case_approval", "case_report"):
            with self.subTest(table=table):
                with self.assertRaises((sqlite3.IntegrityError, psycopg2.errors.UniqueViolation)):
                    self.copy(table, id="another")
                self.assertEqual(self.count(table), 1)

    def test_a_task_and_a_notice_that_are_there_are_not_made_again(self):
        first, second = self.open_case("EXT-1"), self.open_case("EXT-2")
        self.fresh("escalate-case", {"caseId": first, "reasonCode": "PUBLIC_SAFETY"})
        self.copy("review_task", id="by-hand", case_id=second)
        self.copy("case_notice", id="by-hand", case_id=second)
        told = self.fresh("escalate-case", {"caseId": second, "reasonCode": "PUBLIC_SAFETY"})
        self.assertEqual((told["decision"], told["status"]), ("executed", 202))
        for table in ("review_task", "case_notice"):
            self.assertEqual(self.sql("select id from %s where case_id = ?" % table, second), [("by-hand",)])

    # ---- Every action, again and at once --------------------------------------------------------

    def test_every_action_sent_again_has_one_effect_and_the_first_answer(self):
        for operation in ACTIONS:
            with self.subTest(operation=operation):
                case_id, asked = self.ready(operation)
                audit = self.count("ibid.audit")
                first = self.submit(operation, "again", asked)
                self.assertFalse(first["replayed"])
                for _ in range(2):
                    self.assertEqual(self.submit(operation, "again", asked), dict(first, replayed=True))
                self.assertEqual(self.count("ibid.audit"), audit + 1)
                self.assert_one_effect(operation, case_id)
        self.assert_sound()

    def race_every_action(self, key, others):
        for operation in ACTIONS:
            with self.subTest(operation=operation):
                case_id, asked = self.ready(operation)
                told = self.race([(operation, key(n), asked) for n in range(RACERS)])
                first = [answer for answer in told if answer["decision"] == "executed" and not answer["replayed"]]
                self.assertEqual(len(first), 1, told)
                self.assertEqual({answer["decision"] for answer in told}, {"executed", others}, told)
                self.assertEqual(len({answer["resourceId"] for answer in told}), 1, told)
                self.assert_one_effect(operation, case_id)
        self.assert_sound()

    def test_every_action_by_many_with_one_key_is_done_once(self):
        self.race_every_action(lambda n: "one", "executed")

    def test_every_action_by_many_with_keys_of_their_own_is_done_once(self):
        self.race_every_action("own-{}".format, "linked")

    def test_one_key_with_many_meanings_at_once_is_one_escalation_and_conflicts(self):
        case_id = self.open_case()
        reasons = ["REPEAT_VIOLATION", "PUBLIC_SAFETY", "DEADLINE_AT_RISK", "CONFLICT_OF_INTEREST"]
        told = self.race([("escalate-case", "k", {"caseId": case_id, "reasonCode": reason}) for reason in reasons])
        self.assertEqual(sorted(answer["decision"] for answer in told), ["conflict"] * 3 + ["executed"])
        self.assert_one_effect("escalate-case", case_id)

    def test_many_reasons_under_keys_of_their_own_at_once_are_one_decision_and_refusals(self):
        case_id = self.open_case()
        for operation, refused, reasons in (
                ("escalate-case", "ESCALATED_OTHERWISE", ["REPEAT_VIOLATION", "PUBLIC_SAFETY", "DEADLINE_AT_RISK"]),
                ("close-case", "ALREADY_SET", ["RESOLVED", "UNFOUNDED", "WITHDRAWN"]),
                ("reopen-case", "ALREADY_SET", ["APPEAL", "NEW_EVIDENCE", "CLOSED_IN_ERROR"])):
            told = self.race([(operation, "k-" + reason, {"caseId": case_id, "reasonCode": reason}) for reason in reasons])
            self.assertEqual(sorted(answer.get("reason") or answer["decision"] for answer in told), [refused] * 2 + ["executed"])
            self.assert_one_effect(operation, case_id)
            if operation == "escalate-case":
                self.fresh("assign-case", dict(ASSIGN[1], caseId=case_id))

    def test_different_actions_at_once_leave_a_sound_case(self):
        for number in range(3):
            case_id = self.open_case("EXT-%d" % number)
            sent = [("escalate-case", {"reasonCode": "PUBLIC_SAFETY"}), ("assign-case", {"officerId": "a"}), CLOSE,
                    ("assign-case", {"officerId": "b"}), ("escalate-case", {"reasonCode": "REPEAT_VIOLATION"}),
                    ("reopen-case", {"reasonCode": "APPEAL"}), ("start-sla-timer", {"slaType": "FIRST_RESPONSE", "days": 5}),
                    ("approve-action", {"actionId": "ACT-1", "actionType": "FINE"})]
            told = self.race([(operation, "%d-%d" % (number, at), dict(asks, caseId=case_id))
                              for at, (operation, asks) in enumerate(sent)])
            moves = [answer for (operation, _), answer in zip(sent, told)
                     if answer["decision"] == "executed" and operation != "start-sla-timer"]
            self.assertEqual(self.case(case_id)[1], 1 + len(moves), told)
            reasons = {answer.get("reason") for answer in told} - {None}
            self.assertLessEqual(reasons, {"NOT_ALLOWED", "CASE_CLOSED", "ESCALATED_OTHERWISE"})
            self.assert_sound()

    def test_the_review_finds_nothing_to_fail(self):
        self.assertEqual(self.ibid_of("check").stdout, "20 contracts, 0 problems\n")
        self.assertRegex(self.ibid("contract", "review", CASES).stdout, r"\d+ pass, 0 fail, ")
        self.ibid("doctor", "--contracts", CASES)

    def ibid_of(self, verb):
        return subprocess.run([BIN, "contract", verb, CASES], env=self.environment(), capture_output=True, text=True)


class OnSqlite:
    days = "cast(julianday(due_on) - julianday(date(started_at)) as integer)"

    def open_store(self):
        self.path = os.path.join(self.dir, "store.db")
        self.url = "sqlite:" + self.path

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as db, db:
            return db.execute(text.replace("ibid.", "ibid_"), values).fetchall()

    def columns(self, table):
        return [name for (name,) in self.sql("select name from pragma_table_info(?)", table)]


class OnPostgres:
    days = "due_on - (started_at at time zone 'UTC')::date"

    def open_store(self):
        self.assertTrue(PG, "IBID_TEST_PG is not set")
        self.name = "cases_%d_%s" % (os.getpid(), re.sub(r"\W", "", self.dir[-8:]).lower())
        self.owner = self.url = PG.rsplit("/", 1)[0] + "/" + self.name
        self.psql("create database " + self.name)
        self.addCleanup(self.psql, "drop database %s with (force)" % self.name)

    def psql(self, text):
        subprocess.run(["psql", "-qAt", "-v", "ON_ERROR_STOP=1", PG, "-c", text], check=True, capture_output=True)

    def sql(self, text, *values):
        with contextlib.closing(psycopg2.connect(self.owner)) as db, db, db.cursor() as cursor:
            cursor.execute(text.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def columns(self, table):
        return [name for (name,) in self.sql("select column_name from information_schema.columns where table_name = ?", table)]

    def test_a_service_role_may_do_all_of_it(self):
        role = "service_" + self.name
        self.psql("create role %s login in role ibid_service" % role)
        self.addCleanup(self.psql, "drop role " + role)
        self.url = self.url.replace("postgres@", role + "@")
        for operation in ACTIONS:
            case_id, asked = self.ready(operation)
            self.assertEqual(self.fresh(operation, asked)["decision"], "executed")
            self.assert_one_effect(operation, case_id)
        self.assertIn("linked", self.fresh("create-case", self.complaint("EXT-close-case"))["decision"])


class CasesOnSqlite(Cases, OnSqlite, unittest.TestCase):
    pass


class CasesOnPostgres(Cases, OnPostgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
