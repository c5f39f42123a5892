# SPDX-License-Identifier: Apache-2.0
"""What a relay says in its log, once for each change, and what the command line says about events that do not leave: parked
events, breakers, paused destinations; that after resuming they leave at once (C06, F02, K07). Both stores. Needs IBID_TEST_PG."""
import datetime
import json
import os
import time
import unittest

import serve_bed
from relay_bed import LANES, Receivers, wait_until
from serve_bed import Server
from test_pause import People, bearer

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
        items = {item["subjectId"]: item["id"] for item in self.items()}
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

    # ---- On the command line --------------------------------------------------------------------

    def ask(self, *words, who="olga"):
        """What it prints, and what it says beside that."""
        done = self.ibid(*words, "--store", self.url, env=dict(os.environ, IBID_TOKEN=self.tokens[who]))
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        return done.stdout, done.stderr

    def ask_json(self, *words, **more):
        return [json.loads(line) for line in self.ask(*words, "--json", **more)[0].splitlines()]

    def refused(self, *topics):
        """Events of these topics that are parked, by topic."""
        receiver, settings = self.receiver(lambda headers, body: receiver.status if headers["ce-subject"] in topics else 200)
        receiver.status = 422
        server = Server(self)
        self.write(server, 5)
        relay = self.relay(*settings)
        wait_until(lambda: self.evidence("out") == 5 - len(topics), lambda: str(self.evidence("out")))
        rows = wait_until(lambda: len(self.ask_json("outbox", "list", "--state", "parked")) == len(topics) and
                          self.ask_json("outbox", "list", "--state", "parked"), "they are not parked")
        return server, relay, receiver, {row["aggregateId"]: row["eventId"] for row in rows}

    def test_what_is_released_while_its_destination_is_paused_is_said_to_wait(self):
        server, relay, receiver, parked = self.refused("t1", "t2", "t3", "t4")
        out = ("--destination", "out", "--reason", "mended")
        receiver.status = 200
        self.act("ada", "pause", "destination", "out", reason="its disk is full")
        self.await_said(relay, "relay.paused")
        since = self.paused()[0]["since"]
        says = "ibid: paused: destination out since %s, by ada: its disk is full; " \
               "to let it go on: ibid resume destination out --reason R\n" % since
        self.assertEqual(self.ask("outbox", "release", parked["t1"], *out),
                         ("released   %s  at out by olga\n" % parked["t1"], says))
        released, = self.ask_json("outbox", "release", parked["t2"], *out)
        self.assertEqual([(one["kind"], one["name"], one["by"], one["reason"], one["since"]) for one in released["paused"]],
                         [("destination", "out", "ada", "its disk is full", since)])
        item = {item["subjectId"]: item["id"] for item in self.items()}["out/" + parked["t3"]]
        said = self.ask("exception", "resolve", item, "--action", "release", "--reason", "mended")
        self.assertEqual(said[1], says)
        answer = server.ask("POST", "/v1/outbox/%s/release" % parked["t4"], json.dumps({"destination": "out", "reason": "mended"}),
                            {"Content-Type": "application/json", **bearer(self.tokens["olga"])})
        self.assertEqual([(one["kind"], one["name"], one["by"], one["since"]) for one in answer.json["paused"]],
                         [("destination", "out", "ada", since)], answer)
        for topic in ("t1", "t2", "t3", "t4"):
            self.assertRegex(self.ask("outbox", "show", parked[topic], "--tenant", "t")[0],
                             r"(?m)^  paused +destination out since %s, by ada: its disk is full$" % since)
        self.assertEqual(self.evidence("out"), 1)
        self.ask("resume", "destination", "out", "--reason", "there is room", who="ada")
        wait_until(lambda: self.evidence("out") == 5, lambda: str(self.evidence("out")))
        self.assertNotIn("paused", self.ask("outbox", "show", parked["t1"], "--tenant", "t")[0])

    def test_a_release_without_a_pause_says_nothing_of_one(self):
        _, _, _, parked = self.refused("t1", "t2")
        self.act("olga", "pause", "event", "Marked")  # these are Noted
        out = ("--destination", "out", "--reason", "mended")
        self.assertEqual(self.ask("outbox", "release", parked["t1"], *out)[1], "")
        self.assertEqual(self.ask_json("outbox", "release", parked["t2"], *out)[0]["paused"], [])

    def test_the_list_and_the_status_name_the_pause_for_what_it_keeps(self):
        server, relay, _, parked = self.refused("t1")
        self.act("ada", "pause", "destination", "out", reason="its disk is full")
        self.act("olga", "pause", "event", "Marked", reason="wrong since noon")
        self.await_said(relay, "relay.paused", 2)
        self.mixed(server, "new", "Noted", "Marked")
        table, notes = self.ask("outbox", "list")
        self.assertRegex(notes, r"\Aibid: paused: destination out since \S+, by ada: its disk is full; .*\n"
                                r"ibid: paused: event Marked of tenant t since \S+, by olga: wrong since noon; .*\n\Z")
        reasons = {line.split()[0]: line.split()[-1] for line in table.splitlines()[1:]}
        rows = self.ask_json("outbox", "list")
        self.assertEqual(len(rows), 7)
        by_http = server.get("/v1/outbox").json["items"]
        self.assertEqual({row["eventId"]: [one["reason"] for one in row["paused"]] for row in by_http},
                         {row["eventId"]: [one["reason"] for one in row["paused"]] for row in rows})
        for row in rows:
            kinds = [one["kind"] for one in row["paused"]]
            shown = self.ask_json("outbox", "show", row["eventId"], "--tenant", "t")[0]["destinations"][0]
            self.assertEqual(shown["paused"], row["paused"])
            if row["state"] == "PUBLISHED":
                self.assertEqual((kinds, reasons[row["eventId"]]), ([], "-"))
            elif row["eventId"] == parked["t1"]:
                self.assertEqual((kinds, reasons[row["eventId"]]), (["destination"], "WEBHOOK_REFUSED"))
            else:
                self.assertEqual((kinds, reasons[row["eventId"]]),
                                 (["destination"] + ["event"] * (row["type"] == "Marked"), "DESTINATION_PAUSED"))
        self.assertRegex(self.ask("status")[0], r"(?m)^outbox     backlog 3, oldest .* +out: paused, 1 parked  ← needs a person$")
        self.assertEqual(self.ask_json("status")[0]["outbox"][0]["state"], "paused")
        self.assertEqual(self.ask("outbox", "list", "--state", "published")[1], "")
        self.act("ada", "resume", "destination", "out")
        wait_until(lambda: self.held("EVENT_TYPE_PAUSED") == 1, "it does not wait")
        self.assertRegex(self.ask("outbox", "list")[1], r"\Aibid: paused: event Marked of tenant t .*\n\Z")
        self.assertRegex(self.ask("status")[0], r"(?m)^outbox     .*out: running")

    def test_the_status_says_how_to_resume_what_the_relay_has_disabled(self):
        _, settings = self.receiver(lambda headers, body: 410)
        self.write(Server(self), 2)
        self.relay(*settings)
        wait_until(self.paused, "it is not paused")
        self.assertRegex(self.ask("status")[0], r"(?m)^paused     destination out since \S+, by relay: "
                                                r"WEBHOOK_GONE: .*  ← ibid resume destination out$")

    # ---- After resuming -------------------------------------------------------------------------

    def test_after_resuming_neither_breaker_nor_backoff_keeps_what_waits(self):
        for kind in ("destination", "relay"):
            with self.subTest(kind):
                receiver, settings = self.receiver(lambda headers, body: receiver.status)
                receiver.status = 503
                before, server = self.evidence("out"), Server(self)
                self.write(server, 30, topics=30)
                settings = [setting for setting in settings if ".backoff=" not in setting]
                relay = self.relay(*settings, "relay.destinations.out.backoff=1h..1h", BREAKER + "open_after=2",
                                   BREAKER + "probe_every=1h")
                self.await_said(relay, "relay.breaker")
                wait_until(lambda: self.held() > 0, "nothing has failed")
                self.act("ada", "pause", *({"destination": ("destination", "out")}.get(kind, ("relay",))))
                self.await_said(relay, "relay.paused")
                receiver.status = 200
                self.act("ada", "resume", *({"destination": ("destination", "out")}.get(kind, ("relay",))))
                wait_until(lambda: self.evidence("out") == before + 30, lambda: str(self.evidence("out") - before))
                self.assertEqual([line["state"] for line in self.said(relay, "relay.breaker")], ["open", "half-open", "closed"])
                self.stop(relay)

    def test_a_relay_that_stands_still_hears_at_once_that_it_is_resumed(self):
        relay = self.relay(*self.to_file())
        wait_until(lambda: self.number("select count(*) from " + self.ledger("relay_lane")) == LANES, "no lanes")
        took = {"paused": 0, "resumed": 0}
        for n in range(5):
            for verb, word in (("pause", "paused"), ("resume", "resumed")):
                begun = time.time()
                self.act("ada", verb, "destination", "out")
                said = self.await_said(relay, "relay." + word, n + 1)[n]["time"]
                took[word] += datetime.datetime.fromisoformat(said.replace("Z", "+00:00")).timestamp() - begun
        self.assertLess(took["resumed"], took["paused"] / 2, took)  # which it looks for once a second


class OnSqlite(Notices, serve_bed.Sqlite, unittest.TestCase):
    pass


class OnPostgres(Notices, serve_bed.Postgres, unittest.TestCase):
    pass


del Notices, People


if __name__ == "__main__":
    unittest.main(verbosity=2)
