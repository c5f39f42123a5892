# SPDX-License-Identifier: Apache-2.0
"""Pausing the relay, a destination or an event type: nothing of it is sent until it is resumed, whoever restarts, and
then all arrives, once and in order (K07). What refuses everything is paused by the relay itself. Needs IBID_TEST_PG.

What goes on beside a pause is the clock of these tests: another destination, another aggregate, or the lanes' leases."""
import collections
import concurrent.futures
import contextlib
import json
import os
import signal
import sqlite3
import time
import unittest
import uuid

import psycopg2

import serve_bed
from relay_bed import EVENT, LANES, LEASE, Relays, first_order_fault, wait_until
from serve_bed import LIMIT_S, Server
from test_relay import Webhooks

MIXED = """\
command: mixed
version: 1
fact: a note of some type is taken
emits: [Noted, Marked]
fields:
  /topic: { type: text, required: true, max: 60 }
  /text: { type: text, max: 200 }
  /type: { type: text, required: true, one_of: [Noted, Marked] }
handler: { sql: mixed.$store.sql }
"""
SCRIPT = """\
insert into note (id, topic, text) values (:command_id, :topic, :text);
select %s('note', :topic, :type, %s('text', :text));
select 201 as status, 'note' as resource_type, :command_id as resource_id;
"""


def bearer(token):
    return {"Authorization": "Bearer " + token}


class People(Relays):
    """Those who pause and resume, and what they left."""

    def setUp(self):
        super().setUp()
        self.file("mixed.yaml", MIXED)
        self.file("marked.yaml", (EVENT % self.deliver_to).replace("event: Noted", "event: Marked"))
        self.file("mixed.sqlite.sql", SCRIPT % ("ibid_emit", "json_object"))
        self.file("mixed.postgres.sql", SCRIPT % ("ibid.emit", "jsonb_build_object"))
        applied = self.ibid("contract", "apply", self.contracts, "--store", self.url)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.tokens = {name: self.token(name, roles) for name, roles in (
            ("ada", "admin"), ("olga", "operator"), ("anna", "approver"), ("web", "client"))}

    def token(self, client, roles, tenant="t"):
        made = self.ibid("token", "create", "--store", self.url, "--tenant", tenant, "--client", client, "--roles", roles,
                         "--json")
        self.assertEqual(made.returncode, 0, made.stderr)
        return json.loads(made.stdout)["token"]

    def act(self, who, *words, code=0, reason="so it is", more=()):
        env = dict(os.environ, IBID_TOKEN=self.tokens.get(who, who))
        done = self.ibid(*words, "--store", self.url, *(["--reason", reason] if reason is not None else []), *more, env=env)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done.stderr if code else done.stdout

    def paused(self):
        listed = self.ibid("pause", "list", "--store", self.url, "--json")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def actions(self):
        """Who did what to what, as the database has it."""
        return self.rows("select actor, role, action, subject_type, subject_id, reason from %s order by id"
                         % self.ledger("action"))

    def rows(self, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
                return db.execute(sql).fetchall()
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def mixed(self, server, topic, *types, token=None):
        for n, type_ in enumerate(types):
            answer = server.send("m-%s" % uuid.uuid4().hex[:12], {"topic": topic, "text": "x%d" % n, "type": type_},
                                 operation="mixed", **(bearer(token) if token else {}))
            self.assertEqual(answer.status, 201, answer)

    def held(self, reason=None):
        where = " where reason = '%s'" % reason if reason else ""
        return self.number("select count(*) from %s%s" % (self.ledger("delivery_hold"), where))

    def renewals(self, count):
        """Until each lane's lease was renewed so often: time passes, and relays are there."""
        until = "lease_until_us" if self.store == "sqlite" else "lease_until"
        sql = "select lane, %s from %s" % (until, self.ledger("relay_lane"))
        seen = collections.defaultdict(set)

        def renewed():
            for lane, lease_until in self.rows(sql):
                seen[lane].add(lease_until)
            return all(len(times) > count for times in seen.values())
        wait_until(renewed, "leases are not renewed")

    def evidence(self, destination):
        return self.number("select count(*) from %s where destination = '%s'" % (self.ledger("delivery"), destination))

    def stop(self, relay):
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(LIMIT_S), 0)

    def items(self):
        listed = self.ibid("exception", "list", "--store", self.url, "--state", "all", "--json")
        return [json.loads(line) for line in listed.stdout.splitlines()]


class Destinations(People):
    """Two of them, one of which is paused."""
    deliver_to = "out, other"

    def both(self):
        return self.to_file() + ["relay.destinations.other.file.path=" + os.path.join(self.dir, "other.ndjson")]

    def round(self, server):
        """Events that arrive at the other one; how many have arrived at the first by then."""
        goal = self.evidence("other") + 8
        self.write(server, 8, topics=8)
        wait_until(lambda: self.evidence("other") >= goal, lambda: "%d of %d" % (self.evidence("other"), goal))
        return self.evidence("out"), len(self.lines())

    def test_a_paused_destination_gets_nothing_while_another_goes_on(self):
        server = Server(self)
        relay = self.relay(*self.both())
        self.write(server, 24, topics=8)
        self.await_events(24)
        said = self.act("ada", "pause", "destination", "out", reason="its disk is full")
        self.assertEqual(said, "paused     destination out  by ada\n")
        written, before, same = 24, None, 0
        while same < 2 or before[0] != before[1]:  # until it took effect
            now = self.round(server)
            written += 8
            same = same + 1 if now == before else 0
            before = now
            self.assertLess(written, 800, "it goes on")
        self.assertLess(before[1], written)
        for n in range(6):
            if n == 2:
                self.stop(relay)
                relay = self.relay(*self.both())
            if n == 4:
                relay.kill()
                relay.wait(LIMIT_S)
                relay = self.relay(*self.both())
            self.assertEqual(self.round(server), before)
            written += 8
        self.assertEqual(self.held(), 0)  # nothing is held, nothing was tried
        status = self.ibid("status", "--store", self.url)
        line = next(line for line in status.stdout.splitlines() if line.startswith("paused "))
        self.assertRegex(line, r"^paused     destination out since 20\S+Z, by ada: its disk is full$")
        shown = json.loads(self.ibid("status", "--store", self.url, "--json").stdout)["paused"]
        self.assertEqual([(one["kind"], one["name"], one.get("tenant"), one["source"], one["by"], one["reason"]) for one in shown],
                         [("destination", "out", None, "person", "ada", "its disk is full")])
        self.assertEqual(shown, self.paused())
        self.assertEqual(self.act("ada", "resume", "destination", "out"), "resumed    destination out  by ada\n")
        self.assert_whole(written)
        self.assertEqual(len(self.lines()), written)  # each once
        self.assertEqual(self.paused(), [])
        self.assertEqual(self.actions(), [("ada", "admin", "pause", "destination", "out", "its disk is full"),
                                          ("ada", "admin", "resume", "destination", "out", "so it is")])
        self.assertNotIn("paused", self.ibid("status", "--store", self.url).stdout)


class Relay(People):
    """The relay as a whole, and event types."""

    def test_a_paused_relay_sends_nothing_and_keeps_its_lanes(self):
        for name, run in (("process", lambda: (Server(self), self.relay(*self.to_file()))),
                          ("server", lambda: (Server(self, LEASE, *self.to_file()), None))):
            with self.subTest(name):
                server, relay = run()
                begun = len(self.lines())
                self.write(server, 10)
                self.await_events(begun + 10)
                wait_until(lambda: self.number("select count(*) from %s where relay is not null" % self.ledger("relay_lane"))
                           == LANES, "a lane is left over")
                tokens = self.number("select sum(token) from " + self.ledger("relay_lane"))
                self.act("ada", "pause", "relay", reason="the broker moves")
                self.renewals(3)
                before = len(self.lines())
                self.write(server, 10)
                self.renewals(4)
                self.assertEqual(len(self.lines()), before)
                self.assertEqual([one["kind"] for one in self.paused()], ["relay"])
                self.assertEqual(server.get("/readyz").status, 200)
                self.assertEqual(self.number("select sum(token) from " + self.ledger("relay_lane")), tokens)
                self.act("ada", "resume", "relay")
                self.assert_whole(begun + 20)
                self.assertEqual(len(self.lines()), begun + 20)
                self.assertEqual(server.stop(), 0)
                if relay:
                    self.stop(relay)

    def await_type_paused(self, server):
        """Until an event of that type is held and does not arrive."""
        def marked():
            topic = "probe-" + uuid.uuid4().hex[:8]
            held = self.held()
            self.mixed(server, topic, "Marked")
            wait_until(lambda: self.held() > held or any(line["subject"] == topic for line in self.lines()), "neither")
            return self.held() > held
        wait_until(marked, "it goes on")

    def versions(self):
        """By topic, in the order in which they came."""
        came = collections.defaultdict(list)
        for event in self.lines():
            came[event["subject"]].append(int(event["aggregateversion"]))
        return came

    def test_a_paused_event_type_waits_and_what_follows_it_in_its_aggregate(self):
        server, writer = Server(self), self.token("w", "client", tenant="o")
        relay = self.relay(*self.to_file())
        self.mixed(server, "mix", "Noted", "Marked")
        wait_until(lambda: self.versions()["mix"] == [1, 2], lambda: str(self.versions()))
        self.assertEqual(self.act("olga", "pause", "event", "Marked", more=("--contracts", self.contracts)),
                         "paused     event Marked of tenant t  by olga\n")
        self.await_type_paused(server)
        probes = self.held()
        self.mixed(server, "mix", "Noted", "Marked", "Noted", "Noted")
        self.mixed(server, "plain", "Noted", "Noted", "Noted")
        self.mixed(server, "foreign", "Marked", "Noted", token=writer)  # another tenant's
        wait_until(lambda: self.versions()["plain"] == [1, 2, 3] and self.versions()["foreign"] == [1, 2] and
                   self.versions()["mix"] == [1, 2, 3], lambda: str(self.versions()))
        wait_until(lambda: self.held() == probes + 3, lambda: str(self.held()))
        self.assertEqual(self.held("EVENT_TYPE_PAUSED"), probes + 1)
        held = dict(self.rows("select version, cast(event_id as text) from %s where aggregateid = 'mix'"
                              % self.ledger("delivery_hold")))
        for version, event in held.items():
            says = "events of its type were paused" if version == min(held) else "decide about that one"
            self.assertIn(says, self.act("olga", "outbox", "skip", event, code=3, more=("--destination", "out")))
        self.assertEqual(self.number("select count(*) from %s where state <> 'WAITS' or attempts > 0"
                                     % self.ledger("delivery_hold")), 0)
        self.stop(relay)
        self.relay(*self.to_file())
        self.mixed(server, "mix", "Noted")  # behind them
        self.mixed(server, "plain", "Noted", "Noted")
        wait_until(lambda: self.versions()["plain"] == [1, 2, 3, 4, 5] and self.held() == probes + 4, lambda: str(self.versions()))
        self.renewals(4)  # the hold is looked at again meanwhile
        self.assertEqual(self.versions()["mix"], [1, 2, 3])
        self.act("olga", "resume", "event", "Marked")
        wait_until(lambda: self.held() == 0, "something is held")
        self.assertEqual(self.versions()["mix"], list(range(1, 8)))
        ids = [event["id"] for event in self.lines()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([row[:5] for row in self.actions()], [("olga", "operator", "pause", "event", "Marked"),
                                                               ("olga", "operator", "resume", "event", "Marked")])

    def test_what_a_lane_has_read_before_its_type_is_paused_waits_too(self):
        self.out = os.path.join(self.dir, "later", "out.ndjson")  # there is no such directory: it stays in memory
        server = Server(self)
        self.mixed(server, "mix", "Noted", "Marked", "Noted")
        self.mixed(server, "plain", "Noted", "Noted")
        relay = self.relay(*self.to_file())

        def tried():
            relay.log.seek(0)
            return "relay.channel" in relay.log.read()
        wait_until(tried, "nothing is tried")
        self.act("olga", "pause", "event", "Marked")
        wait_until(lambda: self.held() == 2, lambda: str(self.held()))
        os.mkdir(os.path.dirname(self.out))
        wait_until(lambda: self.versions()["plain"] == [1, 2] and self.versions()["mix"] == [1], lambda: str(self.versions()))
        self.renewals(3)
        self.assertEqual(self.versions()["mix"], [1])
        self.act("olga", "resume", "event", "Marked")
        wait_until(lambda: self.versions()["mix"] == [1, 2, 3], lambda: str(self.versions()))
        self.assertEqual(len(self.lines()), 5)

    # ---- Who may, and what is refused -----------------------------------------------------------

    def test_what_is_refused_is_said_and_changes_nothing(self):
        self.relay(*self.to_file())
        wait_until(lambda: self.number("select count(*) from " + self.ledger("relay_lane")) == LANES, "no lanes")
        contracts = ("--contracts", self.contracts)
        for who, words, more, says in (
                ("olga", ("pause", "relay"), {}, "to pause the relay, which is every tenant's, a token needs the role admin"),
                ("olga", ("pause", "destination", "out"), {}, "a token needs the role admin"),
                ("anna", ("pause", "event", "Noted"), {}, "to pause an event type, a token needs the role operator or admin"),
                ("web", ("resume", "event", "Noted"), {}, "to resume an event type, a token needs the role operator or admin"),
                ("ada", ("pause", "destination", "uot"), {}, "no relay has ever served a destination uot; known: out"),
                ("ada", ("pause", "event", "Nodet"), {"more": contracts},
                 "there is no contract for event Nodet; known: Marked, Noted"),
                ("ada", ("pause", "relay"), {"reason": "  "}, "a reason is required"),
                ("ada", ("pause", "event", "x" * 200), {}, "name"),
                ("ada", ("resume", "relay"), {}, "the relay is not paused"),
                ("ada", ("resume", "destination", "nowhere"), {}, "destination nowhere is not paused"),
                ("olga", ("resume", "event", "Noted"), {}, "event Noted is not paused")):
            with self.subTest(words=words, who=who):
                self.assertIn(says, self.act(who, *words, code=3, **more))
        for words, says in ((("pause", "relay"), "--reason is missing"), (("pause", "destination"), "--reason is missing")):
            self.assertIn(says, self.act("ada", *words, code=2, reason=None))
        self.assertIn("name the destination", self.act("ada", "pause", "destination", code=2))
        self.assertIn("unexpected argument", self.act("ada", "pause", "relay", "out", code=2))
        self.assertIn("not valid", self.act("nobody", "pause", "relay", code=1))
        self.assertEqual((self.paused(), self.actions()), ([], []))
        self.act("ada", "pause", "destination", "out", reason="first")
        self.assertRegex(self.act("ada", "pause", "destination", "out", code=3, reason="second"),
                         "destination out is paused already since 20.*Z, by ada: first")
        self.assertEqual([one["reason"] for one in self.paused()], ["first"])
        self.assertEqual(len(self.actions()), 1)
        done = json.loads(self.act("ada", "resume", "destination", "out", more=("--json",)))
        self.assertEqual((done["done"], done["kind"], done["name"], done["by"]), ("resumed", "destination", "out", "ada"))

    def test_the_same_over_http(self):
        server, other = Server(self, "http.open.tenant=t"), self.token("otto", "operator", tenant="o")
        self.relay(*self.to_file())
        wait_until(lambda: self.number("select count(*) from " + self.ledger("relay_lane")) == LANES, "no lanes")

        def post(who, path, **body):
            headers = {"Content-Type": "application/json", **(bearer(self.tokens.get(who, who)) if who else {})}
            return server.ask("POST", path, json.dumps({"reason": "r", **body}), headers)

        def listed(who):
            return server.ask("GET", "/v1/pauses", headers=bearer(self.tokens.get(who, who))).json["items"]
        for who, body, status, says in (
                (None, {"kind": "relay"}, 401, "token"),  # also where requests without one are let in
                ("web", {"kind": "event", "name": "Noted"}, 403, ""),
                ("anna", {"kind": "event", "name": "Noted"}, 403, "needs the role operator or admin"),
                ("olga", {"kind": "relay"}, 403, "needs the role admin"),
                ("olga", {"kind": "destination", "name": "out"}, 403, "needs the role admin"),
                ("ada", {"kind": "destination", "name": "uot"}, 404, "known: out"),
                ("ada", {"kind": "event", "name": "Nodet"}, 404, "known: Marked, Noted"),
                ("ada", {}, 400, "/kind is missing"), ("ada", {"kind": "house"}, 400, "must be relay, destination or event"),
                ("ada", {"kind": "relay", "name": "r"}, 400, "has no name"), ("ada", {"kind": "event"}, 400, "name"),
                ("ada", {"kind": "relay", "reason": " "}, 400, "a reason is required"),
                ("ada", {"kind": "relay", "more": "x"}, 400, "/more is not a member"),
                ("ada", {"kind": "relay", "reason": 1}, 400, "/reason must be a text")):
            answer = post(who, "/v1/pauses", **body)
            self.assertEqual(answer.status, status, (who, body, answer))
            self.assertIn(says, answer.json.get("detail", ""))
        self.assertEqual((listed("olga"), self.actions()), ([], []))
        self.assertEqual(post("ada", "/v1/pauses/resume", kind="relay").status, 409)
        paused = post("ada", "/v1/pauses", kind="destination", name="out", reason="disk")
        self.assertEqual((paused.status, paused.json["by"], paused.json["name"], paused.json["source"]),
                         (200, "ada", "out", "person"), paused)
        again = post("ada", "/v1/pauses", kind="destination", name="out")
        self.assertEqual((again.status, again.json["type"]), (409, "/problems/no-change"), again)
        self.assertIn("by ada: disk", again.json["detail"])
        self.assertEqual(post("olga", "/v1/pauses", kind="event", name="Marked").status, 200)
        self.assertEqual([one["kind"] for one in listed("anna")], ["destination", "event"])
        self.assertEqual([one["kind"] for one in listed(other)], ["destination"])
        self.assertEqual(post(other, "/v1/pauses/resume", kind="event", name="Marked").status, 409)
        self.assertEqual(post("olga", "/v1/pauses/resume", kind="event", name="Marked").status, 200)
        resumed = post("ada", "/v1/pauses/resume", kind="destination", name="out")
        self.assertEqual((resumed.status, resumed.json["reason"]), (200, "disk"), resumed)
        self.assertEqual([row[:5] for row in self.actions()], [
            ("ada", "admin", "pause", "destination", "out"), ("olga", "operator", "pause", "event", "Marked"),
            ("olga", "operator", "resume", "event", "Marked"), ("ada", "admin", "resume", "destination", "out")])

    def test_an_event_type_is_paused_for_ones_own_tenant(self):
        other = self.token("otto", "operator", tenant="o")
        self.act("olga", "pause", "event", "Marked")
        self.assertIn("event Marked is not paused", self.act(other, "resume", "event", "Marked", code=3))
        self.act(other, "pause", "event", "Marked")
        self.assertEqual([(one["tenant"], one["by"]) for one in self.paused()], [("o", "otto"), ("t", "olga")])
        listed = self.ibid("pause", "list", "--store", self.url, "--tenant", "o")
        self.assertIn("otto", listed.stdout)
        self.assertNotIn("olga", listed.stdout)
        self.act(other, "resume", "event", "Marked")
        self.assertEqual([one["tenant"] for one in self.paused()], ["t"])

    def test_of_two_who_do_it_at_once_one_does(self):
        self.tokens["arno"] = self.token("arno", "admin")

        def one(who, verb):
            env = dict(os.environ, IBID_TOKEN=self.tokens[who])
            done = self.ibid(verb, "relay", "--store", self.url, "--reason", who, env=env)
            return done.returncode, done.stderr
        for _ in range(5):
            for verb, says in (("pause", "the relay is paused already"), ("resume", "the relay is not paused")):
                before = len(self.actions())
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    ends = sorted(pool.map(lambda who: one(who, verb), ("ada", "arno", "ada", "arno")))
                self.assertEqual([code for code, _ in ends], [0, 3, 3, 3], ends)
                for _, said in ends[1:]:
                    self.assertIn(says, said)
                self.assertEqual(len(self.actions()), before + 1)
                self.assertEqual(len(self.paused()), verb == "pause")


class Refused(Webhooks, People):
    """Receivers that want nothing."""

    def disabled(self):
        wait_until(self.paused, "it is not paused")
        self.assertEqual([(one["kind"], one["name"], one["source"], one["by"]) for one in self.paused()],
                         [("destination", "out", "relay", "relay")])
        return self.paused()[0]["reason"]

    def assert_arrives(self, receiver, count, topics):
        self.await_distinct(receiver, count)
        came = collections.defaultdict(list)
        for subject, version, _ in receiver.got:
            came[subject].append(version)
        self.assertEqual(len(came), topics)
        for versions in came.values():
            self.assertIsNone(first_order_fault(versions))

    def await_distinct(self, receiver, count):
        """What was on its way when its lane was interrupted may come again, where an answer took too long."""
        wait_until(lambda: len(set(receiver.got)) >= count, lambda: str(len(set(receiver.got))))
        self.assertEqual(len(set(receiver.got)), count)

    def test_410_pauses_the_destination_and_a_person_resumes_it(self):
        asked = []

        def gone(headers, body):
            asked.append(headers["webhook-id"])
            return receiver.status
        receiver, settings = self.receiver(gone)
        receiver.status = 410
        server = Server(self)
        self.write(server, 40, topics=10)
        relay = self.relay(*settings)
        self.assertIn("WEBHOOK_GONE: the receiver answered 410", self.disabled())
        self.renewals(3)
        before = len(asked)
        self.stop(relay)
        self.relay(*settings)
        self.write(server, 10, topics=10)
        self.renewals(4)
        self.assertEqual(len(asked), before)  # it stays so
        self.assertEqual(self.held(), 0)  # nothing is parked one by one
        items = self.items()
        self.assertEqual([(item["subjectType"], item["subjectId"], item["state"], item["reason"], item["owner"], item["tenant"])
                          for item in items], [("destination", "out", "OPEN", "WEBHOOK_GONE", "notes", "t")])
        self.assertEqual(items[0]["actions"], ["resume", "close"])
        self.assertEqual(self.actions(), [])
        receiver.status = 200
        self.act("ada", "resume", "destination", "out", reason="they are back")
        self.assert_arrives(receiver, 50, 10)
        item, = self.items()
        self.assertEqual((item["state"], item["resolution"], item["resolvedBy"], item["note"]),
                         ("RESOLVED", "resume", "ada", "they are back"))
        self.assertEqual([row[:5] for row in self.actions()], [("ada", "admin", "resume", "destination", "out")])
        self.assertIn("WEBHOOK_GONE", self.number("select parameters from " + self.ledger("action")))

    def test_an_item_that_was_closed_does_not_keep_a_destination_from_being_resumed(self):
        receiver, settings = self.receiver(lambda headers, body: receiver.status)
        receiver.status = 410
        server = Server(self)
        self.write(server, 5)
        self.relay(*settings)
        self.disabled()
        item, = self.items()
        env = dict(os.environ, IBID_TOKEN=self.tokens["olga"])
        closed = self.ibid("exception", "resolve", item["id"], "--store", self.url, "--action", "close", "--reason", "seen", env=env)
        self.assertEqual(closed.returncode, 0, closed.stderr)
        self.assertEqual(len(self.paused()), 1)
        receiver.status = 200
        self.act("ada", "resume", "destination", "out")
        self.assert_arrives(receiver, 5, 5)
        self.assertEqual(self.items()[0]["resolution"], "close")

    def test_its_exception_is_resolved_by_resuming_it_as_an_admin(self):  # I8
        receiver, settings = self.receiver(lambda headers, body: receiver.status)
        receiver.status = 410
        server = Server(self)
        self.write(server, 5)
        self.relay(*settings)
        self.disabled()
        item, = self.items()
        resume = ("exception", "resolve", item["id"], "--action", "resume")
        self.assertIn("to resolve it, a token needs the role admin", self.act("olga", *resume, code=3))
        self.assertIn("takes an answer", self.act("ada", *resume, code=3, more=("--status", "200")))
        self.assertEqual((len(self.paused()), self.actions()), (1, []))
        receiver.status = 200
        self.assertIn("resolved   " + item["id"], self.act("ada", *resume, reason="they are back"))
        self.assert_arrives(receiver, 5, 5)
        ended, = self.items()
        self.assertEqual((ended["state"], ended["resolution"], ended["resolvedBy"], ended["note"]),
                         ("RESOLVED", "resume", "ada", "they are back"))
        self.assertEqual([row[:5] for row in self.actions()], [("ada", "admin", "resume", "exception", item["id"])])
        self.assertIn("WEBHOOK_GONE", self.number("select parameters from " + self.ledger("action")))
        self.assertIn("resolved already by ada: resume", self.act("ada", *resume, code=3))
        self.assertIn("destination out is not paused", self.act("ada", "resume", "destination", "out", code=3))

    def test_who_refuses_one_aggregate_after_the_other_is_paused(self):
        receiver, settings = self.receiver(lambda headers, body: receiver.status)
        receiver.status = 401
        server = Server(self)
        self.write(server, 40, topics=20)
        self.relay(*settings)
        self.assertIn("WEBHOOK_UNAUTHORIZED: the receiver answered 401", self.disabled())
        self.renewals(2)
        parked = self.number("select count(*) from %s where state = 'PARKED'" % self.ledger("delivery_hold"))
        self.assertLessEqual(parked, 2)
        self.assertEqual(len([item for item in self.items() if item["subjectType"] == "destination"]), 1)
        receiver.status = 200
        self.act("ada", "resume", "destination", "out")
        self.await_distinct(receiver, 40 - 2 * parked)

    def test_a_pause_ends_a_batch_that_takes_long(self):
        def slowly(headers, body):
            time.sleep(0.05)  # what is tested is that a batch takes longer than it may go on
            return 200
        receiver, settings = self.receiver(slowly)
        server = Server(self)
        self.write(server, 120, topics=1)
        self.relay(*settings)
        wait_until(lambda: len(receiver.got) >= 5, "nothing arrives")
        self.act("ada", "pause", "destination", "out")
        self.renewals(4)
        before = len(receiver.got)
        self.renewals(3)
        self.assertEqual(len(receiver.got), before)
        self.assertLess(before, 120)
        self.assertEqual(self.held(), 0)  # it used up nobody's attempt
        self.act("ada", "resume", "destination", "out")
        self.assert_arrives(receiver, 120, 1)

    def test_who_refuses_one_aggregate_only_is_not_paused(self):
        receiver, settings = self.receiver(lambda headers, body: 403 if headers["ce-subject"] == "t0" else 200)
        server = Server(self)
        self.relay(*settings)
        for n in range(4):
            self.write(server, 10, topics=5)
            wait_until(lambda goal=8 * (n + 1): len(receiver.got) >= goal, lambda: str(len(receiver.got)))
        self.assertEqual(self.paused(), [])
        self.assertEqual([item["subjectType"] for item in self.items()], ["delivery"])

    def test_an_address_that_may_not_be_called_pauses_the_destination(self):
        receiver, settings = self.receiver(lambda headers, body: 200)
        server = Server(self)
        self.write(server, 20)
        self.relay(*[setting for setting in settings if "allow_private" not in setting])
        self.assertIn("WEBHOOK_ADDRESS", self.disabled())
        self.assertEqual((self.held(), receiver.got), (0, []))

    def test_a_destination_that_denies_its_channels_is_paused(self):
        server = Server(self)
        self.write(server, 8)
        self.relay("relay.destinations.out.file.path=/sys/ibid-out.ndjson")  # nobody may write there, not even root
        self.assertIn("DESTINATION_DENIED", self.disabled())
        self.assertEqual(self.held(), 0)
        self.assertEqual([(item["subjectType"], item["reason"]) for item in self.items()],
                         [("destination", "DESTINATION_DENIED")])

    def test_a_file_that_can_not_be_written_any_more_pauses_the_destination(self):
        server = Server(self)
        self.write(server, 8, topics=4)
        self.relay(*self.to_file())
        wait_until(lambda: len(self.lines()) == 8, "they do not arrive")
        os.rename(self.out, self.out + ".1")
        os.mkdir(self.out)
        self.write(server, 40, topics=20)
        self.assertIn("FILE_UNUSABLE", self.disabled())
        self.assertEqual(self.held(), 0)  # nothing is parked one by one
        self.assertEqual([(item["subjectType"], item["reason"]) for item in self.items()], [("destination", "FILE_UNUSABLE")])
        os.rmdir(self.out)
        self.act("ada", "resume", "destination", "out", reason="it was in the way")
        wait_until(lambda: os.path.isfile(self.out) and len(self.lines()) == 40, "they do not arrive")


def cases():
    """Each of them on both stores; what test_relay tests of webhooks it tests itself."""
    for base in (Destinations, Relay, Refused):
        for bed in (serve_bed.Sqlite, serve_bed.Postgres):
            case = type(base.__name__ + bed.__name__, (base, bed, unittest.TestCase), {})
            for name in [name for name in dir(Webhooks) if name.startswith("test_")]:
                setattr(case, name, None)
            yield case


def load_tests(loader, _tests, _pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases())


if __name__ == "__main__":
    unittest.main(verbosity=2)
