# SPDX-License-Identifier: Apache-2.0
"""How events stand toward their destinations, as the SQL view, the command line and the server say it: each state is
really reached, and all three tell the same, on both stores (C02). Needs IBID_TEST_PG."""
import contextlib
import datetime
import http.server
import json
import os
import signal
import sqlite3
import threading
import unittest
import uuid

import psycopg2
import psycopg2.extras

import serve_bed
from relay_bed import Relays, wait_until
from serve_bed import LIMIT_S, Server

COLUMNS = ("event_id", "event_key", "type", "aggregate_type", "aggregate_id", "version", "topic", "destination", "state",
           "attempts", "failure", "reason", "why", "waits_for", "next_at", "since", "relay", "place", "partition", "offset",
           "published_at", "created_at")
TIMES = ("next_at", "since", "published_at", "created_at")
CLOSED = "http.open.tenant="


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers as `decide` says, which may take its time."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.decide(body["text"])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            if status == 503:
                self.send_header("Retry-After", "3600")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass


def microseconds(text):
    if text is None:
        return None
    since = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return since // datetime.timedelta(microseconds=1)


def camel(name):
    words = name.split("_")
    return words[0] + "".join(word.capitalize() for word in words[1:])


class Outbox(Relays):
    # ---- Helpers --------------------------------------------------------------------------------

    def receiver(self, decide):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        server.decide = decide
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.place = "http://127.0.0.1:%d/events" % server.server_port
        prefix = "relay.destinations.out.webhook."
        return [prefix + "url=" + self.place, prefix + "allow_private=yes",
                prefix + "secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]

    def take(self, server, topic, text):
        answer = server.send("k-" + uuid.uuid4().hex, {"topic": topic, "text": text})
        self.assertEqual(answer.status, 201, answer)

    def by_view(self, where="true", url=None):
        """What SQL sees, the newest first, with times in microseconds and `offset` as the others call it."""
        at = (lambda name: name.replace("_at", "") + "_us") if self.store == "sqlite" else (
            lambda name: "(extract(epoch from %s) * 1000000)::bigint" % name)
        listed = ", ".join("%s as %s" % (at(name), name) if name in TIMES else
                           "position as \"offset\"" if name == "offset" else name for name in COLUMNS)
        sql = "select %s from %s where %s order by event_id desc, destination" % (listed, self.ledger("outbox_status"), where)
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
                db.row_factory = sqlite3.Row
                return [dict(row) for row in db.execute(sql)]
        with contextlib.closing(psycopg2.connect(url or self.url)) as db, \
                db.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute(sql)
            return [dict(row) for row in cursor.fetchall()]

    def outbox(self, *arguments, code=0):
        done = self.ibid("outbox", *arguments, "--store", self.url)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    @staticmethod
    def columns(rows):
        """Rows of the command line or the server, called as the view's columns."""
        def of(row, name):
            return row.get("key" if name == "event_key" else camel(name))
        return [{name: microseconds(of(row, name)) if name in TIMES else of(row, name) for name in COLUMNS} for row in rows]

    def by_cli(self, *arguments):
        rows = [json.loads(line) for line in self.outbox("list", "--tenant", "t", "--json", *arguments).stdout.splitlines()]
        return self.columns(rows)

    def by_http(self, server, query="", headers=None):
        answer = server.ask("GET", "/v1/outbox" + query, headers=headers)
        self.assertEqual(answer.status, 200, answer)
        return self.columns(answer.json["items"])

    def states(self, where="true"):
        return {(row["aggregate_id"], row["version"]): row["state"] for row in self.by_view(where)}

    def await_states(self, **expected):
        """By aggregate: how its versions stand, in their order."""
        wanted = {(aggregate, number + 1): state for aggregate, states in expected.items() for number, state in enumerate(states.split())}
        wait_until(lambda: self.states() == wanted, lambda: str(self.states()))

    def told(self, server):
        """What all three say, which is the same: by aggregate and version."""
        seen = self.by_view()
        self.assertEqual(self.by_cli(), seen)
        self.assertEqual(self.by_http(server), seen)
        for state in {row["state"] for row in seen}:
            of_state = [row for row in seen if row["state"] == state]
            self.assertEqual(self.by_view("state = '%s'" % state), of_state)
            self.assertEqual(self.by_cli("--state", state.lower()), of_state)
            self.assertEqual(self.by_http(server, "?state=" + state), of_state)
        return {(row["aggregate_id"], row["version"]): row for row in seen}

    def shown(self, server, event_id):
        """The whole of one event: by command line and server, whose `destinations` and `deliveries` say the same."""
        one = json.loads(self.outbox("show", event_id, "--tenant", "t", "--json").stdout)
        other = server.get("/v1/outbox/" + event_id)
        self.assertEqual(other.status, 200, other)
        shared = {name: value for name, value in one.items() if name not in ("tenant", "ordinal", "payload", "headers")}
        shared["destinations"] = [{name: value for name, value in row.items() if name != "tenant"} for row in one["destinations"]]
        self.assertEqual(shared, other.json)
        self.assertNotIn("payload", other.json)
        return one

    # ---- States ---------------------------------------------------------------------------------

    def test_what_no_relay_takes_is_pending_and_what_arrived_is_published_with_its_place(self):
        server = Server(self)
        self.take(server, "a", "one")
        self.take(server, "a", "two")
        self.await_states(a="PENDING PENDING")
        row = self.told(server)["a", 1]
        self.assertEqual({name: row[name] for name in ("type", "aggregate_type", "topic", "destination", "attempts", "reason", "relay",
                                                       "place", "offset", "published_at", "since", "waits_for")},
                         {"type": "Noted", "aggregate_type": "note", "topic": "tests.notes.v1", "destination": "out", "attempts": 0,
                          "reason": None, "relay": None, "place": None, "offset": None, "published_at": None, "since": None,
                          "waits_for": None})
        relay = self.relay(*self.to_file())
        self.await_states(a="PUBLISHED PUBLISHED")
        told = self.told(server)
        with open(self.out, encoding="utf-8") as handle:
            first = len(handle.readline())
        self.assertEqual([(told["a", n]["place"], told["a", n]["offset"], told["a", n]["partition"]) for n in (1, 2)],
                         [(self.out, 0, None), (self.out, first, None)])
        self.assertGreaterEqual(told["a", 1]["published_at"], told["a", 1]["created_at"])
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(LIMIT_S), 0)
        self.take(server, "a", "three")
        self.await_states(a="PUBLISHED PUBLISHED PENDING")  # nobody holds its lane
        self.told(server)
        shown = self.shown(server, told["a", 1]["event_id"])
        self.assertEqual(shown["payload"], {"text": "one"})
        self.assertEqual([(delivery["destination"], delivery["place"], delivery["offset"]) for delivery in shown["deliveries"]],
                         [("out", self.out, 0)])
        self.assertEqual([one["state"] for one in shown["destinations"]], ["PUBLISHED"])

    def test_what_is_refused_is_parked_and_what_comes_behind_it_waits(self):  # C04
        server = Server(self)
        settings = self.receiver(lambda text: 422 if text == "bad" else 200)
        for topic, text in (("a", "fine"), ("b", "fine"), ("b", "bad"), ("b", "later"), ("b", "last"), ("c", "fine")):
            self.take(server, topic, text)
        self.relay(*settings)
        self.await_states(a="PUBLISHED", b="PUBLISHED PARKED PENDING PENDING", c="PUBLISHED")
        told = self.told(server)
        self.assertEqual(told["a", 1]["place"], self.place)
        parked = told["b", 2]
        self.assertEqual((parked["attempts"], parked["reason"], parked["next_at"], parked["relay"], parked["waits_for"]),
                         (1, "WEBHOOK_REFUSED", None, None, None))
        self.assertIn("422", parked["why"])
        self.assertTrue(parked["failure"])
        for version in (3, 4):
            row = told["b", version]
            self.assertEqual((row["reason"], row["why"], row["waits_for"], row["failure"], row["relay"]),
                             ("PREDECESSOR_HELD", "it waits for version 2 of its aggregate, which is PARKED", 2, None, None))
        items = [json.loads(line) for line in self.ibid("exception", "list", "--store", self.url, "--json").stdout.splitlines()]
        shown = self.shown(server, parked["event_id"])
        self.assertEqual([one["exceptionId"] for one in shown["destinations"]], [item["id"] for item in items])
        self.assertEqual(shown["deliveries"], [])
        text = self.outbox("show", parked["event_id"], "--tenant", "t").stdout
        for line in ("aggregate       note b, version 2", "  to            out", "  state         PARKED", "  reason        WEBHOOK_REFUSED",
                     "  exception     " + items[0]["id"], "deliveries (0)"):
            self.assertIn(line, text)
        waits = self.shown(server, told["b", 3]["event_id"])
        self.assertEqual((waits["destinations"][0]["waitsFor"], waits["destinations"][0].get("exceptionId")), (2, None))

    def test_what_is_to_be_tried_again_is_failed_until_then(self):
        server = Server(self)
        self.take(server, "a", "busy")
        self.relay(*self.receiver(lambda text: 503))
        self.await_states(a="FAILED")
        row = self.told(server)["a", 1]
        self.assertEqual((row["attempts"], row["relay"], row["waits_for"]), (1, None, None))
        self.assertIn("503", row["why"])
        self.assertGreater(row["next_at"], row["since"])
        self.assertNotIn("exceptionId", self.shown(server, row["event_id"])["destinations"][0])

    def test_what_a_relay_has_in_its_hands_is_claimed_by_it(self):
        server, there, go = Server(self), threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def slowly(text):
            there.set()
            go.wait(LIMIT_S)
            return 200
        self.take(server, "a", "one")
        # However slow the machine is: it is held while it is looked at.
        self.relay(*self.receiver(slowly), "relay.destinations.out.webhook.deadline=60s", "relay.lease=60s")
        self.assertTrue(there.wait(LIMIT_S))
        self.await_states(a="CLAIMED")
        row = self.told(server)["a", 1]
        holder = self.number("select relay from %s where relay is not null and destination = 'out'" % self.ledger("relay_lane"))
        self.assertEqual((row["relay"], row["attempts"], row["place"]), (holder, 0, None))
        go.set()
        self.await_states(a="PUBLISHED")
        self.assertEqual(self.told(server)["a", 1]["relay"], None)

    # ---- Lists ----------------------------------------------------------------------------------

    def test_lists_are_filtered_and_come_in_pages(self):
        server = Server(self)
        for n in range(6):
            self.take(server, "ab"[n % 2], "x%d" % n)
        rows = self.by_view()
        self.assertEqual([row["event_id"] for row in rows], sorted((row["event_id"] for row in rows), reverse=True))
        of_a = [row for row in rows if row["aggregate_id"] == "a"]
        self.assertEqual(len(of_a), 3)
        self.assertEqual(self.by_cli("--aggregate", "note/a"), of_a)
        self.assertEqual(self.by_http(server, "?aggregateType=note&aggregateId=a"), of_a)
        for options, query, expected in ((("--destination", "out", "--type", "Noted"), "?destination=out&type=Noted", rows),
                                         (("--destination", "other"), "?destination=other", []),
                                         (("--type", "Other"), "?type=Other", []), (("--state", "Parked"), "?state=parked", [])):
            self.assertEqual(self.by_cli(*options), expected)
            self.assertEqual(self.by_http(server, query), expected)
        came, after = [], ()
        while True:
            done = self.outbox("list", "--json", "--limit", "4", *after)
            came += [json.loads(line)["eventId"] for line in done.stdout.splitlines()]
            if "there are more" not in done.stderr:
                break
            after = ("--after", done.stderr.split()[-1])
        self.assertEqual(came, [row["event_id"] for row in rows])
        came, query = [], "?limit=2"
        while query:
            page = server.get("/v1/outbox" + query).json
            came += [row["eventId"] for row in page["items"]]
            query = "?limit=2&after=" + page["next"] if "next" in page else None
        self.assertEqual(came, [row["event_id"] for row in rows])
        table = self.outbox("list", "--limit", "1").stdout.splitlines()
        self.assertEqual(table[0].split(), ["EVENT", "AGE", "STATE", "DESTINATION", "TENANT", "TYPE", "AGGREGATE", "VERSION", "ATTEMPTS",
                                            "REASON"])
        self.assertIn("PENDING", table[1])
        self.assertIn("no events", self.outbox("list", "--state", "failed").stderr)

    def test_what_is_wrong_with_a_question_is_said(self):
        server = Server(self)
        nobody = str(uuid.uuid4())
        for arguments, said in ((("--state", "lost"), "pending, claimed, published, failed, parked"), (("--aggregate", "note"), "TYPE/ID"),
                                (("--after", "x"), "EVENT_ID/DESTINATION"), (("--limit", "0"), "1 to 1000")):
            self.assertIn(said, self.outbox("list", *arguments, code=2).stderr)
        for arguments, code, said in (((), 2, "EVENT_ID"), (("x",), 2, "is not the id of an event"), ((nobody,), 1, "has no such event")):
            self.assertIn(said, self.outbox("show", *arguments, "--tenant", "t", code=code).stderr)
        for query, said in (("state=lost", "PENDING, CLAIMED, PUBLISHED, FAILED, PARKED"), ("after=x", "after must be"),
                            ("limit=1001", "limit must be"), ("type=%f", "decoded"), ("destination=%ff", "decoded")):
            answer = server.get("/v1/outbox?" + query)
            self.assertEqual(answer.status, 400, answer)
            self.assertIn(said, answer.json["detail"])
        for path in ("x", nobody):
            self.assertEqual(server.get("/v1/outbox/" + path).status, 404)

    # ---- Who may look ---------------------------------------------------------------------------

    def test_a_tenant_sees_its_own_events_and_only_those_who_work_on_them(self):  # I9
        server = Server(self, CLOSED)

        def token(tenant, roles):
            made = self.ibid("token", "create", "--store", self.url, "--tenant", tenant, "--client", roles, "--roles", roles, "--json")
            return {"Authorization": "Bearer " + json.loads(made.stdout)["token"]}
        for tenant in ("t", "other"):
            answer = server.send("k", {"topic": "a", "text": tenant}, **token(tenant, "client"))
            self.assertEqual(answer.status, 201, answer)
        mine, theirs = (self.by_view("tenant = '%s'" % tenant) for tenant in ("t", "other"))
        self.assertEqual((len(mine), len(theirs)), (1, 1))
        for role in ("operator", "approver", "admin"):
            bearer = token("t", role)
            self.assertEqual(self.by_http(server, "", bearer), mine)
            self.assertEqual(server.ask("GET", "/v1/outbox/" + mine[0]["event_id"], headers=bearer).status, 200)
            absent = server.ask("GET", "/v1/outbox/" + theirs[0]["event_id"], headers=bearer)
            nothing = server.ask("GET", "/v1/outbox/" + str(uuid.uuid4()), headers=bearer)
            self.assertEqual((absent.status, absent.json), (404, nothing.json))
        for path in ("/v1/outbox", "/v1/outbox/" + mine[0]["event_id"]):
            self.assertEqual(server.ask("GET", path, headers=token("t", "client")).status, 403)
            self.assertEqual(server.get(path).status, 401)
        self.assertEqual(self.by_cli(), mine)
        self.assertEqual({json.loads(line)["tenant"] for line in self.outbox("list", "--json").stdout.splitlines()}, {"t", "other"})
        self.assertIn("has no such event", self.outbox("show", theirs[0]["event_id"], "--tenant", "t", code=1).stderr)


class OnSqlite(Outbox, serve_bed.Sqlite, unittest.TestCase):
    pass


class OnPostgres(Outbox, serve_bed.Postgres, unittest.TestCase):
    def test_a_role_sees_the_rows_of_its_tenants_through_the_view(self):  # I9
        server = Server(self)
        self.take(server, "a", "mine")
        given = os.path.join(self.dir, "payload.json")
        with open(given, "w", encoding="utf-8") as handle:
            handle.write('{"topic":"a","text":"theirs"}')
        done = self.ibid("submit", "--store", self.url, "--contracts", self.contracts, "--tenant", "other", "--operation", "note",
                         "--key", "k", given)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.relay(*self.receiver(lambda text: 422 if text == "theirs" else 200))
        wait_until(lambda: {row["state"] for row in self.by_view()} == {"PUBLISHED", "PARKED"}, lambda: str(self.by_view()))
        mine, theirs = (self.by_view("tenant = '%s'" % tenant) for tenant in ("t", "other"))
        for group, tenants, expected in (("ibid_app", ["t"], mine), ("ibid_app", ["other"], theirs), ("ibid_app", [], []),
                                         ("ibid_operator", [], None), ("ibid_eraser", [], None), ("ibid_service", [], None)):
            with self.subTest(group=group, tenants=tenants):
                role = "look_" + uuid.uuid4().hex[:12]
                self.execute("create role %s login in role %s" % (role, group))
                self.addCleanup(self.admin, "drop role " + role)
                for tenant in tenants:
                    self.execute("select ibid.grant_tenant('%s', '%s')" % (role, tenant))
                seen = self.by_view(url=self.url.replace("://postgres@", "://%s@" % role))
                self.assertEqual(seen, self.by_view() if expected is None else expected)
                self.execute("drop owned by " + role)

    def execute(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(sql)


if __name__ == "__main__":
    unittest.main(verbosity=2)
