# SPDX-License-Identifier: Apache-2.0
"""What a relay says in its log, once for each change, and what the command line says about events that do not leave: parked
events, breakers, paused destinations; that after resuming they leave at once (C06, F02, K07). Both stores. Needs IBID_TEST_PG."""
import json
import unittest

import serve_bed
from relay_bed import Receivers, wait_until
from serve_bed import Server
from test_pause import People

BREAKER = "relay.destinations.out.breaker."


class Notices(Receivers, People):
    def said(self, relay, event):
        with open(relay.log.name, encoding="utf-8") as log:  # with a place of its own to read at
            lines = [json.loads(line) for line in log if line.startswith("{") and line.endswith("\n")]
        return [line for line in lines if line["event"] == event]

    def await_said(self, relay, event, count=1):
        wait_until(lambda: len(self.said(relay, event)) >= count, lambda: "%s: %s" % (event, self.said(relay, event)))
        return self.said(relay, event)

    def event_ids(self):
        return [row[0] for row in self.rows("select cast(id as text) from " + self.ledger("event"))]

    def test_each_parked_event_is_a_line_with_its_id_and_what_to_do(self):
        receiver, settings = self.receiver(lambda headers, body: 422 if body["text"] in ("x1", "x6", "x3") else 200)
        server = Server(self)
        self.write(server, 10)  # x1 and x3 are the first of t1 and t3; x6 waits behind x1
        relay = self.relay(*settings)
        said = self.await_said(relay, "relay.parked", 2)
        self.assertEqual({(line["destination"], line["tenant"], line["type"], line["aggregateType"], line["aggregateId"],
                           line["version"], line["attempts"], line["reason"], line["level"]) for line in said},
                         {("out", "t", "Noted", "note", topic, 1, 1, "WEBHOOK_REFUSED", "warn") for topic in ("t1", "t3")})
        items = {item["subject_id"]: item["id"] for item in self.items()}
        for line in said:
            self.assertIn(line["eventId"], self.event_ids())
            self.assertEqual(items["out/" + line["eventId"]], line["exceptionId"])
            self.assertIn("422", line["why"])
            self.assertIn("ibid outbox release %s --destination out --reason R" % line["eventId"], line["do"])
        self.renewals(3)
        self.assertEqual(len(self.said(relay, "relay.parked")), 2)  # once
        # What it says to do is done as it stands there.
        words = said[0]["do"].split("decide: ibid ")[1].split(", or")[0].split()[:-2]
        self.act("olga", *words)
        third = self.await_said(relay, "relay.parked", 3)[2]
        self.assertEqual(third["eventId"], said[0]["eventId"])  # refused once more: another change

    def test_a_breaker_that_opens_tries_and_closes_says_so_once_each(self):
        receiver, settings = self.receiver(lambda headers, body: receiver.status)
        receiver.status = 503
        server = Server(self)
        self.write(server, 30, topics=30)
        relay = self.relay(*settings, BREAKER + "open_after=2", BREAKER + "probe_every=1s")
        opened = self.await_said(relay, "relay.breaker")[0]
        self.assertEqual((opened["state"], opened["destination"], opened["level"], opened["tenant"]),
                         ("open", "out", "warn", "t"))
        self.assertIn(opened["eventId"], self.event_ids())
        self.assertRegex(opened["reason"], r"\AWEBHOOK_\w+: .*503")
        self.assertLess(opened["time"], opened["nextAt"])
        self.await_said(relay, "relay.breaker", 3)
        receiver.status = 200
        wait_until(lambda: self.evidence("out") == 30, lambda: str(self.evidence("out")))
        states = [line["state"] for line in wait_until(
            lambda: self.said(relay, "relay.breaker")[-1]["state"] == "closed" and self.said(relay, "relay.breaker"), "it is not closed")]
        self.assertEqual(states[:2], ["open", "half-open"])
        for before, after in zip(states, states[1:]):  # each change once
            self.assertIn(after, {"closed": ("open",), "open": ("half-open",), "half-open": ("open", "closed")}[before])
        for line in self.said(relay, "relay.breaker"):
            self.assertEqual(line["nextAt"] is None, line["state"] == "closed")
            self.assertIn("503", line["reason"])

    def test_a_pause_and_its_end_are_a_line_each(self):
        server = Server(self)
        relay = self.relay(*self.to_file())
        self.write(server, 5)
        self.await_events(5)
        self.assertEqual(self.said(relay, "relay.paused"), [])
        self.act("ada", "pause", "destination", "out", reason="its disk is full")
        paused, = self.await_said(relay, "relay.paused")
        self.assertEqual([paused[name] for name in ("destination", "kind", "name", "by", "reason", "level", "do")],
                         ["out", "destination", "out", "ada", "its disk is full", "warn",
                          "ibid resume destination out --reason R"])
        self.assertEqual(paused["since"], self.paused()[0]["since"])
        self.act("olga", "pause", "event", "Marked")
        both = self.await_said(relay, "relay.paused", 2)
        self.assertEqual([both[1][name] for name in ("kind", "name", "tenant")], ["event", "Marked", "t"])
        self.renewals(3)
        self.assertEqual(len(self.said(relay, "relay.paused")), 2)
        another = self.relay(*self.to_file())  # what it finds is said, too
        self.assertEqual({line["kind"] for line in self.await_said(another, "relay.paused", 2)}, {"destination", "event"})
        self.act("ada", "resume", "destination", "out")
        resumed, = self.await_said(relay, "relay.resumed")
        self.assertEqual((resumed["kind"], resumed["name"], resumed["since"]), ("destination", "out", paused["since"]))

    def test_a_destination_that_is_disabled_is_said_with_the_event_that_it_refused(self):
        receiver, settings = self.receiver(lambda headers, body: 410)
        self.write(Server(self), 5)
        relay = self.relay(*settings)
        disabled, = self.await_said(relay, "relay.disabled")
        self.assertIn(disabled["eventId"], self.event_ids())
        self.assertEqual([disabled[name] for name in ("destination", "tenant", "type", "reason", "level")],
                         ["out", "t", "Noted", "WEBHOOK_GONE", "error"])
        self.assertIn("ibid resume destination out", disabled["do"])
        paused, = self.await_said(relay, "relay.paused")
        self.assertEqual((paused["by"], "WEBHOOK_GONE" in paused["reason"]), ("relay", True))


class OnSqlite(Notices, serve_bed.Sqlite, unittest.TestCase):
    pass


class OnPostgres(Notices, serve_bed.Postgres, unittest.TestCase):
    pass


del Notices, People


if __name__ == "__main__":
    unittest.main(verbosity=2)
