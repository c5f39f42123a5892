# SPDX-License-Identifier: Apache-2.0
"""Forgetting on request (K11): what goes, what stays, and that a duplicate is recognised all the same."""
import json
import sqlite3
import subprocess
import unittest

import psycopg2

from privacy_bed import LOOSE, NOTE, PG, SEEN, Postgres, Sqlite, contract, document

ANN, BOB = "ann-3b91e7", "bob-77c0d2"
WEB = "web-5d10aa"


class Erase:
    def setUp(self):
        super().setUp()
        self.file("contracts/note.sqlite.sql", "select ibid_reject('NO', 422, 'no: ' || :note) where :mode = 'reject';\n"
                  "select ibid_emit('note', :command_id, 'Noted', json_object('note', :note)) where :mode <> 'quiet';\n"
                  "select 201 as status, json_object('note', :note) as body, 'note' as resource_type, :seen as resource_id;\n")
        self.file("contracts/note.postgres.sql", "select ibid.reject('NO', 422, 'no: ' || :note) where :mode = 'reject';\n"
                  "select ibid.emit('note', :command_id::text, 'Noted', jsonb_build_object('note', :note)) where :mode <> 'quiet';\n"
                  "select 201 as status, jsonb_build_object('note', :note) as body, 'note' as resource_type, :seen as resource_id;\n")

    def send(self, key, payload, actor=ANN, client=WEB, code=0):
        ran = self.ibid("submit", "--contracts", self.contracts, "--tenant", "t", "--operation", "plain", "--key", key,
                        "--client", client, "--actor", actor, "--json", code=code, stdin=json.dumps(payload), keys=self.keys)
        return json.loads(ran.stdout)

    def erase(self, *args, code=0):
        ran = self.ibid("erase", "--tenant", "t", "--reason", "request 118", "--by", "dora", "--json", *args, code=code)
        return json.loads(ran.stdout) if ran.stdout else ran.stderr

    def records(self):
        return [json.loads(line) for line in self.ibid("erase", "--list", "--json").stdout.splitlines()]

    def command(self, key):
        return self.show("plain", key, "--payload", "--duplicates")

    # ---- One command ----------------------------------------------------------------------------

    def test_an_erased_command_still_answers_its_duplicates(self):
        first = self.send("k", document("ok"))
        self.assertEqual(first["body"], {"note": NOTE})
        before = self.command("k")
        self.assertEqual(before["events"][0]["payload"], {"note": NOTE})
        counted = self.erase("--id", first["commandId"])
        self.assertEqual({name: counted[name] for name in ("commands", "payloads", "bodies", "texts", "events", "left")},
                         {"commands": 1, "payloads": 1, "bodies": 1, "texts": 0, "events": 1, "left": 0})
        again = self.send("k", document("ok"))
        self.assertEqual((again["decision"], again["replayed"], again["status"], again["body"], again["reason"]),
                         ("executed", True, 201, None, "ERASED"))
        self.assertEqual((again["resourceType"], again["resourceId"], again["commandId"]),
                         ("note", SEEN, first["commandId"]))
        text = self.ibid("submit", "--contracts", self.contracts, "--tenant", "t", "--operation", "plain", "--key", "k",
                         "--client", WEB, "--actor", ANN, stdin=json.dumps(document("ok")), keys=self.keys).stdout
        self.assertRegex(text, r"^replayed +201  \(its answer was erased\)")
        self.assertEqual(self.send("k", document("ok", note="other"), code=4)["decision"], "conflict")
        after = self.command("k")
        self.assertEqual((after["payload"], after.get("result"), after["events"][0]["payload"]), (None, None, {"erased": True}))
        for same in ("fingerprint", "state", "key", "createdAt", "finishedAt", "expiresAt", "actor", "client", "audit"):
            self.assertEqual(before[same], after[same], same)
        self.assertNotIn(NOTE.encode(), self.raw())

    def test_a_rejection_keeps_its_reason_and_loses_its_words(self):
        self.send("no", document("reject"), code=3)
        self.assertEqual(self.erase("--operation", "plain", "--key", "no")["texts"], 1)
        again = self.send("no", document("reject"), code=3)
        self.assertEqual((again["decision"], again["replayed"], again["reason"], again.get("text", "")), ("rejected", True, "NO", ""))
        self.assertNotIn(NOTE.encode(), self.raw())

    def test_again_there_is_nothing_to_do_and_one_record(self):
        self.send("k", document("ok"))
        first = self.erase("--operation", "plain", "--key", "k")
        again = self.erase("--operation", "plain", "--key", "k")
        self.assertIsNone(again["erasure"])
        self.assertEqual([again[name] for name in ("commands", "payloads", "bodies", "events", "names")], [0] * 5)
        record, = self.records()
        self.assertEqual((record["erasure"], record["by"], record["reason"], "finishedAt" in record, record["commands"]),
                         (first["erasure"], "dora", "request 118", True, 1))
        self.assertEqual(record["selection"], {"command": self.command("k")["id"]})
        self.assertRegex(self.ibid("erase", "--list").stdout, r"dora +request 118 +\{")

    def test_a_dry_run_only_counts(self):
        self.send("k", document("ok"))
        counted = self.erase("--operation", "plain", "--key", "k", "--dry-run")
        self.assertEqual((counted["dryRun"], counted["payloads"], counted["bodies"], counted["erasure"]), (True, 1, 1, None))
        self.assertEqual(self.command("k")["payload"], document("ok"))
        self.assertEqual(self.records(), [])

    def test_what_has_no_outcome_is_left_and_told(self):
        self.send("k", document("ok"))
        self.send("open", document("ok"))
        self.sql("update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'open'")
        for selection in (("--operation", "plain", "--key", "open"), ("--actor", ANN)):
            counted = self.erase(*selection, code=7)
            self.assertEqual(counted["left"], 1)
            self.assertEqual(self.command("open")["payload"], document("ok"))
            self.assertEqual(self.command("open")["actor"], ANN)
        self.assertIsNone(self.command("k")["payload"])

    # ---- Resources and actors -------------------------------------------------------------------

    def test_a_resource_takes_all_its_commands_and_no_other(self):
        self.send("a", document("ok"))
        self.send("b", document("quiet", seen=SEEN))
        self.send("c", document("ok", seen="another"))
        counted = self.erase("--resource-type", "note", "--resource-id", SEEN)
        self.assertEqual((counted["commands"], counted["payloads"], counted["events"]), (2, 2, 1))
        self.assertIsNone(self.command("a")["payload"])
        self.assertIsNone(self.command("b").get("result"))
        self.assertEqual(self.command("c")["payload"]["seen"], "another")
        self.assertEqual(self.command("a")["actor"], ANN)

    def test_an_actor_is_forgotten_by_name_and_the_others_are_not(self):
        self.send("mine", document("ok"))
        self.send("mine", document("ok"))
        self.send("mine", document("ok", note="other"), code=4)
        self.send("mine", document("ok", note="other"), actor=BOB, code=4)
        self.send("theirs", document("ok"), actor=BOB)
        self.send("theirs", document("ok"))
        self.send("theirs", document("ok", note="other"), code=4)
        counted = self.erase("--actor", ANN, "--batch", "1")
        self.assertEqual((counted["commands"], counted["payloads"]), (1, 1))
        mine, theirs = self.command("mine"), self.command("theirs")
        self.assertEqual((mine["actor"], mine["client"], mine["audit"]["actor"], mine["payload"]), ("erased", "erased", "erased", None))
        conflict, = mine["conflicts"]  # two senders, one row: nothing tells them apart any more
        self.assertEqual((conflict["actor"], conflict["count"]), ("erased", 2))
        self.assertEqual({seen["actor"] for seen in mine["duplicates"]["listed"]}, {"erased"})
        self.assertEqual((theirs["actor"], theirs["audit"]["actor"], theirs["payload"]), (BOB, BOB, document("ok")))
        self.assertEqual([conflict["actor"] for conflict in theirs["conflicts"]], ["erased"])
        self.assertEqual({seen["actor"] for seen in theirs["duplicates"]["listed"]}, {"erased"})
        self.assertNotIn(ANN.encode(), self.raw())
        self.assertIn(BOB.encode(), self.raw())
        record, = self.records()
        self.assertEqual(list(record["selection"]), ["actorSha256"])
        self.assertIsNone(self.erase("--actor", ANN)["erasure"])
        again = self.send("mine", document("ok"))
        self.assertEqual((again["replayed"], again["reason"]), (True, "ERASED"))

    def test_exceptions_of_a_command_lose_what_they_tell_of_a_person(self):
        sent = self.send("k", document("ok"))
        times = ("opened_us, due_us", "1, 1") if isinstance(self, Sqlite) else ("opened_at", "now()")
        self.sql("insert into ibid.exception (tenant, id, queue, state, severity, subject_type, subject_id, source, reason, detail, "
                 "note, owner, retryable, actions, %s) select tenant, id, 'business', 'OPEN', 'high', 'command', ?, client, 'R', ?, ?, "
                 "'tests', %s, '', %s from ibid.command" % (times[0], "0" if isinstance(self, Sqlite) else "false", times[1]),
                 sent["commandId"], "it was " + LOOSE, "call " + LOOSE)
        look = "select source, detail, note, reason, owner from ibid.exception"
        self.assertEqual(self.erase("--resource-type", "note", "--resource-id", SEEN)["exceptions"], 1)
        self.assertEqual(self.sql(look), [(WEB, None, None, "R", "tests")])
        self.assertEqual(self.erase("--actor", ANN)["exceptions"], 1)
        self.assertEqual(self.sql(look), [("erased", None, None, "R", "tests")])
        self.assertNotIn(WEB.encode(), self.raw().replace(b'{"client":"%s"}' % WEB.encode(), b""))

    def test_many_commands_go_in_small_transactions(self):
        for i in range(7):
            self.send("k-%d" % i, document("ok"))
        self.send("bob", document("ok"), actor=BOB)
        counted = self.erase("--actor", ANN, "--batch", "3")
        self.assertEqual((counted["commands"], counted["payloads"], counted["bodies"], counted["events"]), (7, 7, 7, 7))
        record, = self.records()
        self.assertEqual((record["commands"], record["payloads"], "finishedAt" in record), (7, 7, True))
        self.assertEqual(self.command("bob")["payload"], document("ok"))

    def test_bad_input_is_refused_and_erases_nothing(self):
        first = self.send("k", document("ok"))
        one = ("--id", first["commandId"])
        for args, code, says in (((), 1, "in one way"), ((*one, "--actor", ANN), 1, "in one way"),
                                 (("--key", "k"), 1, "in one way"), (("--resource-id", "x"), 1, "in one way"),
                                 ((*one, "--scope", "x"), 1, "in one way"), (("--id", "nonsense"), 1, "not the id of a command"),
                                 (("--id", "0197" + "0" * 4 + "-0000-7000-8000-000000000000"), 1, "no such command"),
                                 (("--operation", "plain", "--key", "none"), 1, "no command plain with this key"),
                                 ((*one, "--batch", "0"), 2, "--batch")):
            self.assertRegex(self.erase(*args, code=code), says)
        self.assertRegex(self.ibid("erase", "--tenant", "t", *one, code=2).stderr, "--reason is missing")
        self.assertRegex(self.ibid("erase", "--tenant", "t", *one, "--reason", "", code=1).stderr, "needs a reason")
        self.assertRegex(self.ibid("erase", *one, "--reason", "x", code=2).stderr, "--tenant is missing")
        self.ibid("erase", "--tenant", "other", *one, "--reason", "x", code=1)
        self.assertEqual(self.command("k")["payload"], document("ok"))

    def test_nothing_else_may_edit_what_is_never_edited(self):
        self.send("k", document("ok"))
        for change in ("update ibid.event set payload = '{\"erased\":true}'", "update ibid.audit set actor = 'erased'"):
            with self.assertRaisesRegex((psycopg2.Error, sqlite3.Error), "never edited"):
                self.sql(change)


class EraseOnSqlite(Erase, Sqlite, unittest.TestCase):
    pass


class EraseOnPostgres(Erase, Postgres, unittest.TestCase):
    def test_only_an_eraser_erases(self):
        self.send("k", document("ok"))
        for role, member, code in (("forgetter", "ibid_eraser", 0), ("worker", "ibid_service", 1), ("reader", "ibid_operator", 1)):
            name = "%s_%s" % (role, self.url.rsplit("/", 1)[1])
            self.psql(PG, "create role %s login in role %s" % (name, member))
            self.addCleanup(self.psql, PG, "drop role " + name)
            own, self.url = self.url, self.url.replace("postgres@", name + "@")
            try:
                counted = self.erase("--operation", "plain", "--key", "k", "--dry-run", code=code)
                if code == 0:
                    self.assertEqual(counted["payloads"], 1)
                    self.assertEqual(self.erase("--operation", "plain", "--key", "k")["payloads"], 1)
                else:
                    self.assertRegex(counted, "permission denied")
                self.ibid("erase", "--list")
            finally:
                self.url = own

    def test_even_inside_an_erasure_only_marks_are_written(self):
        self.send("k", document("ok"))
        marked = "begin; select set_config('ibid.erasing', pg_current_xact_id()::text, true); "
        for change in ("update ibid.event set payload = '{}'", "update ibid.event set payload = '{\"erased\":true}', type = 'x'",
                       "update ibid.audit set actor = 'somebody'", "update ibid.audit set fact = 'another'", "delete from ibid.audit"):
            with self.assertRaises(subprocess.CalledProcessError, msg=change):
                self.psql(self.url, marked + change + "; commit")


if __name__ == "__main__":
    unittest.main()
