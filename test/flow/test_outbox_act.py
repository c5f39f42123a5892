# SPDX-License-Identifier: Apache-2.0
"""What people decide about events that a destination did not take: release, skip and cancel, on the command line and over
HTTP, on both stores (C04, C06, J01, J02). Needs IBID_TEST_PG."""
import collections
import concurrent.futures
import contextlib
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import threading
import unittest
import uuid

import psycopg2

import serve_bed
from relay_bed import Listener, Relays, wait_until
from serve_bed import BIN, LIMIT_S, Server

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.asked[body["text"]] += 1
            status = self.server.refuse.get(body["text"], 200)
            if status < 300:
                self.server.got.append((self.headers["ce-subject"], int(self.headers["ce-aggregateversion"])))
        self.send_response(status)
        if self.server.retry_after and status >= 300:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Hook(Listener):
    """A destination that refuses the events whose texts it is told, with a status; they are not tried again by themselves
        before `retry_after` seconds."""

    def __init__(self, bed, name, refuse, retry_after=None):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.retry_after = retry_after
        self.lock, self.got, self.refuse, self.asked = threading.Lock(), [], dict(refuse), collections.Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        bed.addCleanup(self.server_close)
        bed.addCleanup(self.shutdown)
        prefix = "relay.destinations.%s." % name
        self.settings = [prefix + "webhook.url=http://127.0.0.1:%d/events" % self.server_port,
                         prefix + "webhook.allow_private=yes", prefix + "webhook.secret=" + SECRET]

    def versions(self, subject):
        with self.lock:
            return [version for got, version in self.got if got == subject]


class Decisions(Relays):
    """One destination, `out`; what one person decides is done."""
    approval = False

    def setUp(self):
        super().setUp()
        self.tokens = {name: self.token(name, roles) for name, roles in (
            ("olga", "operator"), ("oleg", "operator"), ("anna", "approver"), ("ada", "admin"), ("web", "client"))}

    def file(self, name, text):
        if name == "noted.yaml" and not self.approval:
            text = text.replace("skip_needs_approval: true", "skip_needs_approval: false")
        return super().file(name, text)

    # ---- Helpers --------------------------------------------------------------------------------

    def run_ibid(self, *arguments, code=0, token=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
        if token:
            clean["IBID_TOKEN"] = token
        done = subprocess.run([BIN, *arguments, "--store", self.url], capture_output=True, text=True, timeout=LIMIT_S,
                              env=clean)
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), (arguments, done.stdout, done.stderr))
        return done

    def token(self, client, roles, tenant="t"):
        made = self.run_ibid("token", "create", "--tenant", tenant, "--client", client, "--roles", roles, "--json")
        return json.loads(made.stdout)["token"]

    def decide(self, who, action, event, *more, code=0, destination="out", reason="so it is"):
        """One decision on the command line; its standard output, or error where it is refused."""
        done = self.run_ibid("outbox", action, event, "--destination", destination, "--reason", reason, *more, code=code,
                             token=self.tokens.get(who, who))
        return done.stderr if code else done.stdout + done.stderr

    def act(self, who, verb, item, *more, code=0):
        done = self.run_ibid("exception", verb, item, "--reason", "so it is", *more, code=code,
                             token=self.tokens.get(who, who))
        return done.stderr if code else done.stdout + done.stderr

    def rows(self, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
                return [tuple(row) for row in db.execute(sql)]
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def items(self, state="open"):
        return [json.loads(line) for line in self.run_ibid(
            "exception", "list", "--tenant", "t", "--state", state, "--json").stdout.splitlines()]

    def shown(self, item):
        return json.loads(self.run_ibid("exception", "show", "--tenant", "t", item, "--json").stdout)

    def parked(self, destination="out", but=()):
        """The item of an event that is parked there, and the event."""
        def find():
            return [item for item in self.items() if item["source"] == destination and item["id"] not in but]
        (item,) = wait_until(find, "nothing is parked")
        return item["id"], item["subjectId"].split("/")[1]

    def event(self, topic, version):
        return str(self.number("select id from %s where aggregateid = '%s' and version = %d" % (
            self.ledger("event"), topic, version)))

    def held(self, event, destination="out"):
        found = self.rows("select state from %s where event_id = '%s' and destination = '%s'" % (
            self.ledger("delivery_hold"), event, destination))
        return found[0][0] if found else None

    def arrived(self, destination):
        """How many have evidence."""
        return self.number("select count(*) from %s where destination = '%s'" % (self.ledger("delivery"), destination))

    def actions(self):
        return self.rows("select actor, action from %s" % self.ledger("action"))

    def stuck(self, status=422, text="x1", count=15, *settings):
        """Three aggregates; the first event of t1 is refused. The hook, its relay, the item and the event."""
        hook = Hook(self, "out", {text: status})
        self.write(Server(self), count, topics=3)
        relay = self.relay(*hook.settings, *settings)
        item, event = self.parked()
        self.await_evidence(count - count // 3)
        return hook, relay, item, event


class One(Decisions):
    # ---- What it does ---------------------------------------------------------------------------

    def test_what_is_released_goes_first_and_then_what_waits_behind_it(self):
        hook, _, item, event = self.stuck()
        self.assertIn("released   " + event, self.decide("olga", "release", event))
        again, same = self.parked(but=(item,))  # it is refused still: another item
        self.assertEqual((same, self.held(event)), (event, "PARKED"))
        shown = self.shown(item)
        self.assertEqual((shown["state"], shown["resolution"], shown["resolvedBy"], shown["note"]),
                         ("RESOLVED", "release", "olga", "so it is"))
        self.assertEqual([(one["actor"], one["role"], one["action"]) for one in shown["history"]],
                         [("olga", "operator", "release")])
        self.assertEqual(hook.versions("t1"), [])
        hook.refuse.clear()
        told = json.loads(self.decide("ada", "release", event, "--json"))
        self.assertEqual([told[name] for name in ("eventId", "destination", "done", "by", "exceptionId")],
                         [event, "out", "released", "ada", again])
        wait_until(lambda: len(hook.versions("t1")) == 5, lambda: str(hook.got))
        self.assertEqual(hook.versions("t1"), [1, 2, 3, 4, 5])
        wait_until(lambda: not self.rows("select 1 from " + self.ledger("delivery_hold")), "something is held")
        self.assertEqual(sorted(self.actions()), [("ada", "release"), ("olga", "release")])
        self.assertEqual(self.items(), [])

    def test_what_is_skipped_never_goes_and_what_waits_behind_it_does(self):
        hook, relay, item, event = self.stuck()
        hook.refuse.clear()
        self.assertIn("skipped    " + event, self.decide("olga", "skip", event))
        wait_until(lambda: len(hook.versions("t1")) == 4, lambda: str(hook.got))
        self.assertEqual(hook.versions("t1"), [2, 3, 4, 5])
        self.assertEqual(self.shown(item)["resolution"], "skip")
        self.await_evidence(14)  # what has none when its relay is killed comes twice
        relay.kill()
        relay.wait(LIMIT_S)
        self.write(Server(self), 3, topics=3)
        self.relay(*hook.settings)  # who takes over leaves it out, too
        wait_until(lambda: len(hook.versions("t1")) == 5, lambda: str(hook.got))
        self.assertEqual((hook.versions("t1"), hook.asked["x1"]), ([2, 3, 4, 5, 6], 2))  # the second is of those after it
        self.assertEqual(self.held(event), "SKIPPED")
        for action in ("skip", "release", "cancel"):
            self.assertIn("it is SKIPPED there already: skip by olga", self.decide("oleg", action, event, code=3))
        self.assertEqual(self.actions(), [("olga", "skip")])

    def test_it_is_the_same_as_an_action_of_its_exception(self):
        hook, _, item, event = self.stuck()
        self.assertIn("is not allowed", self.act("olga", "resolve", item, "--action", "close", code=3))
        self.assertIn("takes an answer", self.act("olga", "resolve", item, "--action", "skip", "--status", "200", code=3))
        self.assertIn("resolved   " + item, self.act("olga", "resolve", item, "--action", "release"))
        item, _ = self.parked(but=(item,))
        self.act("oleg", "resolve", item, "--action", "skip")
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))
        self.assertEqual(self.held(event), "SKIPPED")
        self.assertIn("it is resolved already by oleg: skip", self.act("ada", "resolve", item, "--action", "skip", code=3))
        self.assertEqual(sorted(self.actions()), [("oleg", "skip"), ("olga", "release")])

    def test_what_failed_and_waits_for_its_next_attempt_goes_now(self):
        hook = Hook(self, "out", {"x1": 503}, "3600")
        self.write(Server(self), 9, topics=3)
        self.relay(*hook.settings, "relay.destinations.out.attempts=9")
        event = self.event("t1", 1)
        wait_until(lambda: self.held(event) == "FAILED", lambda: str(self.held(event)))
        for action in ("skip", "cancel"):
            self.assertIn("it is not parked: it is tried again by itself", self.decide("olga", action, event, code=3))
        self.assertIn("operator or admin", self.decide("anna", "release", event, code=3))
        self.assertEqual((self.actions(), self.held(event)), ([], "FAILED"))
        hook.refuse.clear()
        self.assertIn("released   " + event, self.decide("olga", "release", event))
        wait_until(lambda: hook.versions("t1") == [1, 2, 3], lambda: str(hook.got))
        self.assertEqual(self.actions(), [("olga", "release")])

    def test_one_that_fails_before_all_others_keeps_no_other_aggregate_waiting(self):
        hook = Hook(self, "out", {"x0": 503}, "3600")
        self.write(Server(self), 12, topics=6)
        self.relay(*hook.settings, "relay.destinations.out.webhook.in_flight=1", "relay.destinations.out.attempts=9")
        wait_until(lambda: all(hook.versions("t%d" % n) == [1, 2] for n in range(1, 6)), lambda: str(hook.got))
        event = self.event("t0", 1)
        wait_until(lambda: self.held(event) == "FAILED", lambda: str(self.held(event)))
        self.assertEqual(hook.versions("t0"), [])
        hook.refuse.clear()
        self.decide("olga", "release", event)
        wait_until(lambda: hook.versions("t0") == [1, 2], lambda: str(hook.got))

    def test_what_is_released_has_all_its_attempts_again(self):
        hook, _, item, event = self.stuck(503, "x1", 15, "relay.destinations.out.attempts=3",
                                          "relay.destinations.out.backoff=1ms..2ms", "relay.destinations.out.breaker.open_after=none")
        self.assertEqual(hook.asked["x1"], 3)
        self.decide("olga", "release", event)
        self.parked(but=(item,))
        self.assertEqual(hook.asked["x1"], 6)

    # ---- What is refused ------------------------------------------------------------------------

    def test_who_may_not_or_asks_for_what_can_not_be_changes_nothing(self):
        _, _, item, event = self.stuck()
        absent, arrived, waits = str(uuid.UUID(int=1)), self.event("t0", 1), self.event("t1", 2)
        eve = self.token("eve", "operator,approver,admin", tenant="other")
        for action in ("release", "skip", "cancel"):
            with self.subTest(action):
                for token, says in ((None, "set IBID_TOKEN"), ("olga", "not valid")):
                    done = self.run_ibid("outbox", action, event, "--destination", "out", "--reason", "r", code=1, token=token)
                    self.assertIn(says, done.stderr)
                for who in ("web", "anna"):
                    self.assertIn("operator or admin", self.decide(who, action, event, code=3))
                    self.assertIn("operator or admin", self.decide(who, action, arrived, code=3))
                for reason, says in (("", "reason is required"), (" ", "reason is required"), ("x" * 3000, "at most 2000")):
                    self.assertIn(says, self.decide("olga", action, event, code=3, reason=reason))
                self.assertIn("tenant t has no such event", self.decide("olga", action, absent, code=1))
                self.assertEqual(self.decide(eve, action, event, code=1), self.decide(eve, action, absent, code=1))  # I9
                self.assertIn("does not go to nowhere, but to out",
                              self.decide("olga", action, event, code=3, destination="nowhere"))
                self.assertIn("it arrived at out", self.decide("olga", action, arrived, code=3))
                self.assertIn("decide about that one", self.decide("olga", action, waits, code=3))
                self.assertIn("is not the id", self.decide("olga", action, "x1", code=2))
                self.assertIn("--destination is missing", self.run_ibid(
                    "outbox", action, event, "--reason", "r", code=2, token=self.tokens["olga"]).stderr)
                self.assertIn("--reason is missing", self.run_ibid(
                    "outbox", action, event, "--destination", "out", code=2, token=self.tokens["olga"]).stderr)
        self.assertEqual((self.held(event), self.held(waits), self.actions()), ("PARKED", "WAITS", []))
        self.assertEqual([one["id"] for one in self.items()], [item])

    # ---- At once --------------------------------------------------------------------------------

    def race(self, *calls):
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: self.run_ibid(
                "outbox", call[1], call[2], "--destination", "out", "--reason", "r", code=(0, 3),
                token=self.tokens[call[0]]), calls))

    def test_of_eight_who_decide_at_once_one_does(self):
        hook, relay, item, event = self.stuck()
        relay.send_signal(signal.SIGTERM)
        relay.wait(LIMIT_S)
        done = self.race(*(("olga", "release", event), ("oleg", "skip", event), ("ada", "cancel", event)) * 2,
                         ("olga", "skip", event), ("oleg", "release", event))
        self.assertEqual(sorted(one.returncode for one in done), [0] + [3] * 7, done)
        for one in done:
            if one.returncode:
                self.assertIn("already", one.stderr)
        shown = self.shown(item)
        self.assertEqual(len(shown["history"]), 1)
        self.assertEqual(self.actions(), [(shown["resolvedBy"], shown["resolution"])])
        self.assertEqual(self.held(event), {"release": "RELEASED", "skip": "SKIPPED", "cancel": "CANCELLED"}[shown["resolution"]])

    def test_of_several_who_release_at_once_what_failed_one_does(self):
        hook = Hook(self, "out", {"x1": 503})
        self.write(Server(self), 3, topics=3)
        relay = self.relay(*hook.settings, "relay.destinations.out.backoff=1h..1h", "relay.destinations.out.attempts=9")
        event = self.event("t1", 1)
        wait_until(lambda: self.held(event) == "FAILED", lambda: str(self.held(event)))
        relay.send_signal(signal.SIGTERM)
        relay.wait(LIMIT_S)
        done = self.race(*((who, "release", event) for who in ("olga", "oleg", "ada") * 2))
        self.assertEqual(sorted(one.returncode for one in done), [0] + [3] * 5, done)
        self.assertEqual((len(self.actions()), self.held(event)), (1, "RELEASED"))

    def test_a_relay_that_fails_again_and_again_undoes_nothing(self):
        hook, _, item, event = self.stuck()
        releases = 0
        seen = [item]
        for _ in range(12):
            self.decide("olga", "release", event)
            releases += 1
            item, _ = self.parked(but=seen)
            seen.append(item)
            self.assertEqual(hook.asked["x1"], releases + 1)
        self.decide("oleg", "skip", event)
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))
        self.assertEqual((self.held(event), self.items()), ("SKIPPED", []))
        self.assertEqual(collections.Counter(action for _, action in self.actions()), {"release": releases, "skip": 1})
        self.assertEqual(len(self.items("resolved")), releases + 1)

    # ---- Over HTTP ------------------------------------------------------------------------------

    def test_over_http_it_is_the_same(self):
        hook, relay, item, event = self.stuck()
        server = Server(self)

        def post(who, action, of, **body):
            headers = {"Content-Type": "application/json"}
            if who:
                headers["Authorization"] = "Bearer " + self.tokens.get(who, who)
            return server.ask("POST", "/v1/outbox/%s/%s" % (of, action),
                              json.dumps({"destination": "out", "reason": "r", **body}), headers)
        eve = self.token("eve", "operator,admin", tenant="other")
        self.assertEqual(post(None, "skip", event).status, 401)
        for who in ("web", "anna"):
            self.assertEqual(post(who, "skip", event).json["type"], "/problems/forbidden")
        for of in ("none", str(uuid.UUID(int=1))):
            self.assertEqual(post("olga", "skip", of).status, 404)
        self.assertEqual(post(eve, "skip", event).body, post(eve, "skip", str(uuid.UUID(int=1))).body)
        for body in ({"reason": ""}, {"destination": ""}, {"destination": "nowhere"}, {"destination": 1}, {"more": 1}):
            self.assertEqual(post("olga", "skip", event, **body).status, 400, body)
        refused = post("olga", "skip", self.event("t0", 1))
        self.assertEqual((refused.status, refused.json["type"]), (409, "/problems/not-held"))
        self.assertEqual((self.actions(), self.held(event)), ([], "PARKED"))
        relay.send_signal(signal.SIGTERM)
        relay.wait(LIMIT_S)
        done = post("olga", "release", event)
        self.assertEqual((done.status, done.json), (200, {
            "eventId": event, "destination": "out", "action": "release", "by": "olga", "proposed": False,
            "state": "RELEASED", "exceptionId": item, "arrivedAt": [], "paused": []}))
        again = post("oleg", "release", event)
        self.assertEqual((again.status, again.json["type"]), (409, "/problems/exception-resolved"))
        self.assertIn("release by olga", again.json["detail"])
        self.relay(*hook.settings)
        self.parked(but=(item,))
        self.assertEqual(post("olga", "skip", event).json["state"], "SKIPPED")
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))
        self.assertEqual(sorted(self.actions()), [("olga", "release"), ("olga", "skip")])


class Two(Decisions):
    """Two destinations, each with relays of its own."""
    deliver_to = "out,other"

    def relay_to(self, destination, *settings):
        """The settings name all destinations; the process serves one."""
        return self.relay("--destination", destination, *settings)

    def nowhere(self, destination):
        return ["relay.destinations.%s.file.path=%s" % (destination, os.path.join(self.dir, "unused"))]

    def park_at_out(self):
        hook = Hook(self, "out", {"x1": 422})
        self.write(Server(self), 15, topics=3)
        self.relay_to("out", *hook.settings, *self.nowhere("other"))
        item, event = self.parked()
        return hook, item, event

    def test_what_is_cancelled_is_withdrawn_wherever_it_has_not_been_read(self):
        hook, item, event = self.park_at_out()
        told = self.decide("olga", "cancel", event)
        self.assertIn("cancelled  " + event, told)
        self.assertNotIn("arrived", told)
        self.assertEqual((self.held(event), self.held(event, "other")), ("CANCELLED", "CANCELLED"))
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))
        other = Hook(self, "other", {})
        relay = self.relay_to("other", *other.settings, *self.nowhere("out"))
        wait_until(lambda: len(other.got) == 14, lambda: str(other.got))
        for topic in ("t0", "t2"):
            self.assertEqual(other.versions(topic), [1, 2, 3, 4, 5])
        self.assertEqual((other.versions("t1"), other.asked["x1"]), ([2, 3, 4, 5], 0))
        passed = "select count(*) from %s where %s" % (self.ledger("delivery_hold"),
                                                       "passed" if self.store == "postgres" else "passed = 1")
        wait_until(lambda: self.number(passed) == 2, "it is not passed")  # nobody looks at it again
        wait_until(lambda: self.arrived("other") == 14, "evidence is missing")  # what has none comes twice
        relay.kill()
        relay.wait(LIMIT_S)
        self.write(Server(self), 3, topics=3)
        self.relay_to("other", *other.settings, *self.nowhere("out"))
        wait_until(lambda: other.versions("t1") == [2, 3, 4, 5, 6], lambda: str(other.got))
        self.assertEqual((self.held(event), self.held(event, "other")), ("CANCELLED", "CANCELLED"))
        self.assertIn("it is CANCELLED there already: cancel by olga", self.decide("oleg", "cancel", event, code=3))
        self.assertIn("it is CANCELLED there already", self.decide("oleg", "release", event, code=3, destination="other"))
        self.assertEqual(self.actions(), [("olga", "cancel")])

    def test_where_it_arrived_already_is_said(self):
        hook, item, event = self.park_at_out()
        other = Hook(self, "other", {})
        self.relay_to("other", *other.settings, *self.nowhere("out"))
        wait_until(lambda: self.arrived("other") == 15, "not all arrived")
        self.assertIn("it had arrived already at: other", self.decide("olga", "cancel", event))
        self.assertEqual((self.held(event), self.held(event, "other")), ("CANCELLED", None))

    def test_what_is_parked_at_both_is_cancelled_at_both_and_both_items_end(self):
        hook, item, event = self.park_at_out()
        other = Hook(self, "other", {"x1": 400})
        self.relay_to("other", *other.settings, *self.nowhere("out"))
        there, same = self.parked("other")
        self.assertEqual(same, event)
        told = json.loads(self.decide("olga", "cancel", event, "--json"))
        self.assertEqual((told["done"], told["state"], told["arrivedAt"]), ("cancelled", "CANCELLED", []))
        for one in (item, there):
            shown = self.shown(one)
            self.assertEqual((shown["state"], shown["resolution"], shown["resolvedBy"]), ("RESOLVED", "cancel", "olga"))
        self.assertEqual(self.shown(there)["note"], "cancelled with its delivery to out: so it is")
        for one in (hook, other):
            wait_until(lambda one=one: one.versions("t1") == [2, 3, 4, 5], lambda one=one: str(one.got))
        self.assertEqual((self.held(event), self.held(event, "other")), ("CANCELLED", "CANCELLED"))
        self.assertEqual(self.items(), [])
        self.assertEqual(self.actions(), [("olga", "cancel")])

    def test_what_is_skipped_at_one_goes_to_the_other(self):
        hook, item, event = self.park_at_out()
        self.decide("olga", "skip", event)
        other = Hook(self, "other", {})
        self.relay_to("other", *other.settings, *self.nowhere("out"))
        wait_until(lambda: len(other.got) == 15, lambda: str(other.got))
        self.assertEqual(other.versions("t1"), [1, 2, 3, 4, 5])

    def test_what_is_cancelled_before_a_relay_that_runs_has_read_it_does_not_go(self):
        other = Hook(self, "other", {})
        relay = self.relay_to("other", *other.settings, *self.nowhere("out"))
        server = Server(self)
        self.write(server, 3, topics=3)
        wait_until(lambda: self.arrived("other") == 3, "not all arrived")
        wait_until(lambda: self.freeze_between(relay), "it is always inside a transaction")  # it knows that nothing is held
        hook = Hook(self, "out", {"x4": 422})
        self.write(server, 15, topics=3)
        self.relay_to("out", *hook.settings, *self.nowhere("other"))
        _, event = self.parked()
        self.assertEqual(event, self.event("t1", 3))
        self.decide("olga", "cancel", event)
        relay.send_signal(signal.SIGCONT)
        wait_until(lambda: self.arrived("other") == 17, lambda: str(other.got))
        self.assertEqual((other.versions("t1"), other.asked["x4"]), ([1, 2, 4, 5, 6], 0))

    def test_what_waits_in_memory_for_a_destination_that_is_away_is_withdrawn(self):
        hook, item, event = self.park_at_out()
        later = os.path.join(self.dir, "later")
        relay = self.relay_to("other", "relay.destinations.other.file.path=" + os.path.join(later, "events"),
                              *self.nowhere("out"))
        lane = self.number("select lane from %s where id = '%s'" % (self.ledger("event"), event))

        def tried():
            relay.log.seek(0)
            return any(entry.get("event") == "relay.channel" and entry.get("lane") == lane
                       for entry in map(json.loads, filter(lambda line: line.startswith("{") and line.endswith("\n"),
                                                           relay.log.readlines())))
        wait_until(tried, "it can reach its destination")  # so the lane has read it
        self.decide("olga", "cancel", event)
        passed = "select count(*) from %s where destination = 'other' and %s" % (
            self.ledger("delivery_hold"), "passed" if self.store == "postgres" else "passed = 1")
        wait_until(lambda: self.number(passed) == 1, "the lane has not seen it")
        os.mkdir(later)
        wait_until(lambda: self.arrived("other") == 14, lambda: str(self.arrived("other")))
        with open(os.path.join(later, "events"), encoding="utf-8") as handle:
            came = [json.loads(line) for line in handle]
        self.assertNotIn(event, [one["id"] for one in came])
        self.assertEqual([int(one["aggregateversion"]) for one in came if one["subject"] == "t1"], [2, 3, 4, 5])


class Careful(Decisions):
    """A second person approves what is skipped or cancelled."""
    approval = True

    def test_what_needs_a_second_person_is_proposed_and_done_when_another_one_approves(self):
        hook, _, item, event = self.stuck()
        self.assertEqual(self.shown(item)["needsApproval"], ["skip", "cancel"])
        told = self.decide("olga", "skip", event)
        self.assertIn("proposed   " + event, told)
        self.assertIn("ibid exception approve " + item, told)
        self.assertEqual(self.held(event), "PARKED")
        self.assertIn("proposed already by olga", self.decide("oleg", "cancel", event, code=3))
        olga = self.token("olga", "approver,admin")
        self.assertIn("a second person", self.act(olga, "approve", item, code=3))
        self.assertIn("approver or admin", self.act("oleg", "approve", item, code=3))
        self.act("anna", "decline", item)  # it stays as it is
        self.assertEqual((self.held(event), self.shown(item)["state"]), ("PARKED", "OPEN"))
        self.assertEqual(hook.versions("t1"), [])
        self.assertIn("proposed", self.decide("oleg", "cancel", event))
        self.assertIn("approved   " + item, self.act("anna", "approve", item))
        self.assertEqual(self.held(event), "CANCELLED")
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))
        shown = self.shown(item)
        self.assertEqual((shown["resolution"], shown["resolvedBy"]), ("cancel", "anna"))
        self.assertEqual([(one["actor"], one["action"]) for one in shown["history"]],
                         [("olga", "propose"), ("anna", "decline"), ("oleg", "propose"), ("anna", "approve")])

    def test_to_release_one_person_is_enough_and_what_was_proposed_lapses(self):
        hook, _, item, event = self.stuck()
        self.decide("anna", "skip", event)  # who may approve may propose
        hook.refuse.clear()
        self.decide("olga", "release", event)
        wait_until(lambda: hook.versions("t1") == [1, 2, 3, 4, 5], lambda: str(hook.got))
        self.assertEqual([one["decision"] for one in self.shown(item)["approvals"]], ["LAPSED"])
        self.assertIn("it is resolved already by olga", self.act("ada", "approve", item, code=3))

    def test_of_several_who_approve_at_once_one_does(self):
        hook, relay, item, event = self.stuck()
        self.decide("olga", "skip", event)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            done = list(pool.map(lambda who: self.run_ibid("exception", "approve", item, "--reason", "r", code=(0, 3),
                                                           token=self.tokens[who]), ("anna", "ada") * 3))
        self.assertEqual(sorted(one.returncode for one in done), [0] + [3] * 5, done)
        self.assertEqual([action for _, action in self.actions()].count("approve"), 1)
        wait_until(lambda: hook.versions("t1") == [2, 3, 4, 5], lambda: str(hook.got))


class OneOnSqlite(One, serve_bed.Sqlite, unittest.TestCase):
    pass


class OneOnPostgres(One, serve_bed.Postgres, unittest.TestCase):
    pass


class TwoOnSqlite(Two, serve_bed.Sqlite, unittest.TestCase):
    pass


class TwoOnPostgres(Two, serve_bed.Postgres, unittest.TestCase):
    pass


class CarefulOnSqlite(Careful, serve_bed.Sqlite, unittest.TestCase):
    pass


class CarefulOnPostgres(Careful, serve_bed.Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
