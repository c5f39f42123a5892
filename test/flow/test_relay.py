# SPDX-License-Identifier: Apache-2.0
"""The relay as its users meet it: events that were committed arrive, in the order of their aggregates, with evidence,
whoever is killed on the way; what can't go stops its own aggregate and waits for a person. Needs IBID_TEST_PG."""
import collections
import json
import signal
import threading
import time
import unittest

import serve_bed
from relay_bed import SHORT_LEASE, Receivers, Relays, wait_until
from serve_bed import LIMIT_S, Server

# What a request brings of where it comes from, and what an event tells of it.
ORIGIN = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "congo=t61",
          "Correlation_Id": "corr", "Causation_Id": "cause"}


class Files(Relays):
    """What arrives, at a file."""

    def test_what_is_committed_arrives_in_order_with_evidence(self):
        server = Server(self)
        self.write(server, 30)
        relay = self.relay(*self.to_file())
        self.write(server, 30)
        self.assert_whole(60)
        self.assertEqual(len(self.lines()), 60)  # nobody was killed: nothing twice
        event = next(event for event in self.lines() if event["subject"] == "t0")
        self.assertEqual((event["type"], event["specversion"], event["tenant"], event["eventversion"]),
                         ("Noted", "1.0", "t", "1"))
        self.assertEqual(event["data"], {"text": "x0"})
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(LIMIT_S), 0)
        self.write(server, 5)
        self.relay(*self.to_file())  # goes on where the other ended
        self.assert_whole(65)
        self.assertEqual(len(self.lines()), 65)

    def test_an_event_tells_the_receiver_which_request_it_comes_from(self):  # C01 K02
        server = Server(self, *self.to_file())
        sent = server.send("k-1", {"topic": "t0", "text": "x"}, **ORIGIN)
        self.assertEqual(sent.status, 201, sent)
        self.assertIn("0af7651916cd43dd8448eb211c80319c", sent.headers["traceresponse"])
        self.assertEqual(server.send("k-2", {"topic": "t0", "text": "x"}).status, 201)
        self.await_events(2)
        names = ("traceparent", "tracestate", "correlationid", "causationid")
        self.assertEqual([[event.get(name) for name in names] for event in self.lines()],
                         [[sent.headers["traceresponse"], "congo=t61", "corr", "cause"], [None] * 4])

    def test_who_follows_one_that_ended_has_its_lanes_at_once(self):
        server = Server(self)
        for count in (20, 40):
            relay = self.relay(*self.to_file(), "relay.lease=5m")  # which nobody has to wait for
            self.write(server, 20, topics=20)
            self.assert_whole(count)
            relay.send_signal(signal.SIGTERM)
            self.assertEqual(relay.wait(LIMIT_S), 0)

    def test_a_server_relays_by_itself(self):
        server = Server(self, *self.to_file())
        self.write(server, 20)
        self.assert_whole(20)
        self.assertEqual(server.stop(), 0)

    def test_relays_that_are_killed_lose_nothing_and_reorder_nothing(self):
        server = Server(self)
        writer = threading.Thread(target=self.write, args=(server, 300, 7))
        relays = [self.relay(SHORT_LEASE, *self.to_file()) for _ in range(2)]
        writer.start()
        for round_ in range(4):
            wait_until(lambda goal=(round_ + 1) * 40: len(self.lines()) >= goal or not writer.is_alive(), "nothing arrives")
            relays[round_ % 2].kill()
            relays[round_ % 2].wait(LIMIT_S)
            relays[round_ % 2] = self.relay(SHORT_LEASE, *self.to_file())
        writer.join(LIMIT_S)
        self.assert_whole(300)

    def test_what_is_wrong_with_the_settings_is_said(self):
        for settings, said in (([], "there is no destination"),
                               (["relay.destinations.out.ftp.url=x"], "there is no setting"),
                               (["relay.destinations.other.file.path=" + self.out],
                                "event Noted is delivered to out, and the settings have no relay.destinations.out"),
                               (["relay.destinations.out.attempts=3"], "of which kind is it"),
                               (["relay.destinations.out.kafka.brokers=x:1", "relay.destinations.out.kafka.acks=1"],
                                "ibid: destination out: kafka.acks is always all, not `1`"),
                               (["relay.destinations.out.webhook.url=x"], "ibid: destination out: `url` must be"),
                               (["relay.destinations.out.file.fsync=yes"], "ibid: destination out: either `path`"),
                               (["relay.destinations.Out.file.path=x"], "a name is of a-z")):
            with self.subTest(said):
                got = self.ibid("relay", "--store", self.url, "--contracts", self.contracts, *settings)
                self.assertEqual(got.returncode, 1, got.stderr)
                self.assertIn(said, got.stderr)


class Webhooks(Receivers):
    """What a receiver refuses."""

    def test_one_that_is_refused_stops_its_aggregate_only_and_waits_for_a_person(self):
        receiver, settings = self.receiver(lambda headers, body: 422 if body["text"] == "x6" else 200)
        server = Server(self)
        self.write(server, 25)  # x6 is version 2 of t1
        self.relay(*settings)
        wait_until(lambda: len(receiver.got) >= 21, lambda: str(len(receiver.got)))
        open_ = wait_until(lambda: [json.loads(line) for line in self.ibid(
            "exception", "list", "--store", self.url, "--tenant", "t", "--json").stdout.splitlines()], "no exception")
        self.assertEqual(len(open_), 1, open_)
        item = open_[0]
        self.assertEqual((item["subjectType"], item["owner"], item["severity"], item["key"]),
                         ("delivery", "notes", "critical", "note t1 version 2"))
        self.assertIn("release", item["actions"])
        came = collections.defaultdict(list)
        for subject, version, _ in receiver.got:
            came[subject].append(version)
        self.assertEqual(came.pop("t1"), [1])
        for versions in came.values():
            self.assertEqual(versions, [1, 2, 3, 4, 5])
        states = "select count(*) from %s where state = '%%s'" % self.ledger("delivery_hold")
        self.assertEqual([self.number(states % state) for state in ("PARKED", "WAITS")], [1, 3])
        self.write(server, 5)  # one more of t1 waits behind, the others go
        wait_until(lambda: len(receiver.got) >= 25, lambda: str(len(receiver.got)))
        wait_until(lambda: self.number(states % "WAITS") == 4, "it does not wait")

    def test_a_request_tells_where_its_event_comes_from(self):  # C01 C10 K02
        came = []
        _, to_receiver = self.receiver(lambda headers, event: came.append(headers) or 200)
        sent = Server(self, *to_receiver).send("k-1", {"topic": "t0", "text": "x"}, **ORIGIN)
        wait_until(lambda: came, "nothing arrived")
        for name, value in (("traceparent", sent.headers["traceresponse"]), ("tracestate", "congo=t61"),
                            ("ce-traceparent", sent.headers["traceresponse"]), ("ce-correlationid", "corr"),
                            ("ce-causationid", "cause")):
            self.assertEqual(came[0][name], value, name)

    def test_who_waits_long_for_a_destination_keeps_its_lane(self):
        def slowly(headers, body):
            time.sleep(0.5)  # what is tested is that this takes longer than a lease, all in all
            return 200
        receiver, settings = self.receiver(slowly)
        server = Server(self)
        self.write(server, 12, topics=1)
        for _ in range(2):
            self.relay(*settings)
        wait_until(lambda: len(receiver.got) >= 12, lambda: str(len(receiver.got)))
        wait_until(lambda: self.number("select count(*) from " + self.ledger("delivery")) == 12, "evidence is missing")
        self.assertEqual([version for _, version, _ in receiver.got], list(range(1, 13)))

    def test_why_nothing_arrives_is_in_the_log(self):  # K03
        receiver, settings = self.receiver(lambda headers, body: 200)
        receiver.server_close()
        self.write(Server(self), 1)
        relay = self.relay(*settings)

        def said():
            relay.log.seek(0)
            return [line for line in relay.log if '"relay.publish"' in line and "WEBHOOK_UNREACHABLE: " in line]
        wait_until(said, "nobody says why")

    def test_what_fails_for_a_while_comes_again_under_the_same_id_and_in_order(self):
        tries = collections.Counter()

        def sometimes(headers, body):
            tries[headers["webhook-id"]] += 1
            return 503 if tries[headers["webhook-id"]] <= 2 and body["text"].endswith("3") else 200
        receiver, settings = self.receiver(sometimes)
        server = Server(self)
        self.write(server, 40)
        self.relay(*settings)
        wait_until(lambda: len(receiver.got) >= 40, lambda: str(len(receiver.got)))
        came = collections.defaultdict(list)
        for subject, version, _ in receiver.got:
            came[subject].append(version)
        for subject, versions in came.items():
            self.assertEqual(versions, list(range(1, 9)), subject)
        wait_until(lambda: self.number("select count(*) from " + self.ledger("delivery_hold")) == 0, "something is held")


class OnSqlite(Files, Webhooks, serve_bed.Sqlite, unittest.TestCase):
    pass


class OnPostgres(Files, Webhooks, serve_bed.Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
