# SPDX-License-Identifier: Apache-2.0
"""What is told of the outbox: at /metrics of `ibid serve` and of `ibid relay`, and by `ibid status`, on both stores (K01)."""
import collections
import contextlib
import http.client
import json
import random
import re
import signal
import threading
import time
import unittest
import uuid

import serve_bed
from metrics_bed import PROMTOOL, Page, Pages, promtool
from relay_bed import LANES, Relays, wait_until
from serve_bed import LIMIT_S, Answer, Server
from test_relay import Webhooks as Receivers

# Many events of one command, and a command that fails when they are written.
MANY = {
    "sqlite": """\
with recursive n (i) as (select 1 union all select i + 1 from n where i < 150)
select ibid_emit('note', :topic, 'Noted', json_object('text', :text || '-' || i)) from n;
insert into broken (id) select null where :text = 'broken';
select 201 as status, 'note' as resource_type, :command_id as resource_id;
""",
    "postgres": """\
select ibid.emit('note', :topic, 'Noted', jsonb_build_object('text', :text || '-' || i)) from generate_series(1, 150) as i;
insert into broken (id) select null where :text = 'broken';
select 201 as status, 'note' as resource_type, :command_id as resource_id;
"""}


class RelayPage:
    """/metrics of `ibid relay`, asked like a server."""

    def __init__(self, process):
        def address():
            process.log.seek(0)
            return re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", process.log.read())
        self.port = int(wait_until(address, "it does not say where").group(1))

    def ask(self, method, path):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)) as link:
            link.request(method, path)
            answer = link.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def get(self, path):
        return self.ask("GET", path)


class Told(Pages, Relays):
    def status(self, *more):
        said = self.ibid("status", "--store", self.url, *more)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def outbox(self):
        return {row["destination"]: row for row in json.loads(self.status("--json"))["outbox"]}

    def numbers(self, page, *names, destination="out"):
        return [page.get("ibid_outbox_" + name, destination=destination) for name in names]

    def plain(self, destination):
        """What waits, counted one by one."""
        event, delivery, hold = map(self.ledger, ("event", "delivery", "delivery_hold"))
        return self.number(
            "select count(*) from %s as e where e.topic is not null and e.headers like '%%\"deliver_to\":\"%%%s%%' and not exists "
            "(select 1 from %s as d where d.tenant = e.tenant and d.event_id = e.id and d.destination = '%s') and not exists "
            "(select 1 from %s as h where h.tenant = e.tenant and h.event_id = e.id and h.destination = '%s' "
            "and h.state = 'SKIPPED')" % (event, destination, delivery, destination, hold, destination))


class Figures(Told):
    def test_what_waits_is_told_also_where_no_relay_ever_ran(self):
        server = Server(self)
        self.assertEqual(self.outbox(), {})
        self.write(server, 7)
        page = self.await_page(server, lambda page: page.get("ibid_outbox_backlog", destination="out") == 7)
        self.assertEqual(self.numbers(page, "written_total", "published_total", "held", "failed", "parked", "lanes_leased",
                                      "moved_timestamp_seconds"), [7, 0, 0, 0, 0, 0, 0])
        oldest, = self.numbers(page, "oldest_seconds")
        self.assertTrue(0 < oldest < LIMIT_S, oldest)
        self.assertNotIn("ibid_relay_", page.text)
        told = next(line for line in self.status().splitlines() if line.startswith("outbox"))
        self.assertRegex(told, r"^outbox     backlog 7, oldest (0\.)?\d+ s +out: stopped  ← ibid relay$")
        self.assertEqual(told.index("out:"), 50)
        row = self.outbox()["out"]
        self.assertGreater(row.pop("oldestUs"), 0)
        self.assertEqual(row, {"destination": "out", "state": "stopped", "backlog": 7, "held": 0, "failed": 0, "parked": 0,
                               "written": 7, "delivered": 0, "lanes": LANES, "lanesLeased": 0})

    def test_a_server_tells_what_its_relay_did_and_a_reload_resets_nothing(self):
        server = Server(self, *self.to_file())
        self.write(server, 20)
        self.assert_whole(20)
        page = self.await_page(server, lambda page: self.numbers(page, "backlog", "published_total") == [0, 20])
        self.assertEqual(self.numbers(page, "oldest_seconds", "lanes_leased", "written_total"), [0, LANES, 20])
        self.assertLess(abs(page.get("ibid_outbox_moved_timestamp_seconds", destination="out") - time.time()), LIMIT_S)

        def relay(page, name, **labels):
            return page.get("ibid_relay_" + name, destination="out", **labels)
        self.assertEqual(relay(page, "published_total"), 20)
        self.assertEqual(relay(page, "publish_seconds_count"), 20)
        self.assertEqual(relay(page, "publish_seconds_bucket", le="3600"), 20)
        self.assertGreater(relay(page, "publish_seconds_sum"), 0)
        self.assertTrue(1 <= relay(page, "batches_total") <= 20)
        self.assertEqual([relay(page, "breaker", state=state) for state in ("closed", "open", "half-open")], [1, 0, 0])
        self.assertEqual([relay(page, name) for name in ("fenced_total", "parked_total", "recovered_total")], [0, 0, 0])
        self.assertEqual(relay(page, "failures_total", failure="transient"), 0)
        self.assertRegex(self.status(), r"(?m)^outbox     backlog 0 +out: running$")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reloaded")
        self.assertEqual(relay(Page(server), "published_total"), 20)
        self.write(server, 5)
        self.await_page(server, lambda page: relay(page, "published_total") == 25)
        self.assertEqual(server.stop(), 0)
        self.assertRegex(self.status(), r"(?m)^outbox     backlog 0 +out: idle$")

    def test_a_relay_of_its_own_tells_the_same_where_it_is_asked_to(self):
        server = Server(self)
        self.write(server, 6)
        process = self.relay(*self.to_file(), "--metrics-listen", "127.0.0.1:0")
        relay = RelayPage(process)
        page = self.await_page(relay, lambda page: page.get("ibid_relay_published_total", destination="out") == 6)
        self.assertEqual(page.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.await_page(relay, lambda page: self.numbers(page, "backlog", "written_total", "lanes_leased") == [0, 6, LANES])
        self.assertEqual((page.get("ibid_store_up"), page.get("ibid_relay_publish_seconds_count", destination="out")), (1, 6))
        self.assertGreater(page.get("process_resident_memory_bytes"), 1 << 20)
        self.assertEqual((relay.get("/healthz").status, relay.get("/healthz").json), (200, {"status": "alive"}))
        self.assertEqual([relay.get("/").status, relay.get("/v1/commands").status, relay.ask("POST", "/metrics").status,
                          relay.ask("HEAD", "/metrics").status], [404, 404, 405, 200])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT_S), 0)

    def test_where_a_relay_can_not_answer_it_says_so_and_does_not_run(self):
        taken = Server(self)
        for listen, said in (("nowhere", "relay.metrics_listen is `nowhere`: it must be an address and a port"),
                             ("127.0.0.1:%d" % taken.port, "can't listen on 127.0.0.1:%d" % taken.port)):
            got = self.ibid("relay", "--store", self.url, "--contracts", self.contracts, *self.to_file(),
                            "relay.metrics_listen=" + listen)
            self.assertEqual(got.returncode, 1, got.stderr)
            self.assertIn(said, got.stderr)
            self.assertEqual(self.outbox().get("out", {"lanesLeased": 0})["lanesLeased"], 0)

    @unittest.skipUnless(PROMTOOL, "needs promtool")
    def test_promtool_finds_nothing_to_complain_about(self):
        server = Server(self, *self.to_file())
        self.write(server, 3)
        relay = RelayPage(self.relay(*self.to_file(), "--metrics-listen", "127.0.0.1:0"))
        for asked in (server, relay):
            page = self.await_page(asked, lambda page: page.get("ibid_outbox_backlog", destination="out") == 0)
            checked = promtool("check", "metrics", text=page.text)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
            labels = {label for (name, labels) in page.samples if re.match("ibid_(outbox|relay)_", name) for label, _ in labels}
            self.assertEqual(labels, {"destination", "failure", "state", "le"})


class Refused(Told):
    """What a destination does not take."""
    receiver = Receivers.receiver

    def test_what_failed_and_what_is_parked_are_told_apart(self):
        tries = collections.Counter()

        def decide(headers, body):
            tries[body["text"]] += 1
            return 422 if body["text"] == "x6" else 503 if body["text"] == "x3" and tries["x3"] < 3 else 200
        _, settings = self.receiver(decide)
        server = Server(self, *settings)
        self.write(server, 25)  # x6 is version 2 of t1: three wait behind it
        page = self.await_page(server, lambda page: self.numbers(page, "backlog", "held", "parked", "failed", "published_total")
                               == [4, 4, 1, 0, 21])

        def relay(name, **labels):
            return page.get("ibid_relay_" + name, destination="out", **labels)
        self.assertEqual([relay("published_total"), relay("recovered_total"), relay("parked_total")], [21, 1, 1])
        failures = {dict(labels)["failure"]: value for (name, labels), value in page.samples.items()
                    if name == "ibid_relay_failures_total" and value}
        self.assertEqual(sum(failures.values()), 3, failures)
        self.assertGreater(page.get("ibid_outbox_oldest_seconds", destination="out"), 0)
        self.assertRegex(self.status(), r"(?m)^outbox     backlog 4, oldest [\d.]+ (s|min)( \d+ s)? +out: running, 1 parked  ← needs a person$")

    def test_a_destination_that_is_away_is_an_outage_and_opens_its_breaker(self):
        receiver, settings = self.receiver(lambda headers, body: 200)
        receiver.shutdown()
        receiver.server_close()
        server = Server(self, *settings)
        self.write(server, 3, topics=3)

        def away(page):
            troubles = sum(value for (name, labels), value in page.samples.items()
                           if name in ("ibid_relay_outages_total", "ibid_relay_failures_total"))
            return troubles > 0 and page.get("ibid_outbox_backlog", destination="out") == 3
        self.await_page(server, away)
        self.await_page(server, lambda page: page.get("ibid_relay_breaker", destination="out", state="closed") == 0)


class Exact(Told):
    """However events are written, rolled back, delivered, refused and skipped, and whoever is killed meanwhile: what waits is
    what a plain count says."""
    deliver_to = "out, spare"
    receiver = Receivers.receiver

    def setUp(self):
        super().setUp()
        for store, script in MANY.items():
            self.file("note.%s.sql" % store, script)

    def settings(self):
        def decide(headers, body):  # two aggregates get stuck, again and again
            return 422 if headers["ce-subject"] in ("t0", "t1") and body["text"].endswith("-7") else 200
        receiver, settings = self.receiver(decide)
        # Batches that end, so that cursors move.
        return receiver, ["relay.batch=50", *settings, *(setting.replace(".out.", ".spare.") for setting in self.to_file())]

    def burst(self, server, seed):
        choose = random.Random(seed)
        for n in range(20):
            text = "broken" if choose.random() < 0.2 else "m%d" % choose.randrange(60)
            answer = server.send("k-%s" % uuid.uuid4().hex, {"topic": "t%d" % choose.randrange(9), "text": text})
            self.assertIn(answer.status, (201, 500), answer)

    def skip_one(self):
        self.change("update %s set state = 'SKIPPED' where state = 'PARKED' and event_id = (select event_id from %s where "
                    "state = 'PARKED' order by event_id limit 1)" % (self.ledger("delivery_hold"), self.ledger("delivery_hold")))

    def arrived_by_lane(self, destination):
        return dict(self.rows("select e.lane, count(*) from %s as d join %s as e on e.tenant = d.tenant and e.id = d.event_id "
                              "where d.destination = '%s' group by e.lane" % (self.ledger("delivery"), self.ledger("event"), destination)))

    def end(self, relays):
        """Asked to end, a relay keeps where it stands."""
        for relay in relays:
            relay.send_signal(signal.SIGTERM)
        for relay in relays:
            self.assertEqual(relay.wait(LIMIT_S), 0)

    def assert_exact(self):
        told = self.outbox()
        self.assertEqual({name: row["backlog"] for name, row in told.items()},
                         {name: self.plain(name) for name in ("out", "spare")})
        written = self.number("select count(*) from " + self.ledger("event"))
        self.assertEqual({name: row["written"] for name, row in told.items()}, {"out": written, "spare": written})

    def test_what_waits_is_what_a_plain_count_says(self):
        server = Server(self)
        receiver, settings = self.settings()
        for seed in range(100, 108):  # so much that it is counted and not looked at
            self.burst(server, seed)
        self.assert_exact()
        for round_ in range(3):
            got = len(receiver.got)
            relays = [self.relay(*settings), self.relay(*settings)]
            writers = [threading.Thread(target=self.burst, args=(server, 10 * round_ + n)) for n in range(2)]
            for writer in writers:
                writer.start()
            wait_until(lambda: len(receiver.got) > got + 50, "nothing arrives")
            relays[0].kill()
            relays[0].wait(LIMIT_S)
            self.skip_one()
            for writer in writers:
                writer.join(LIMIT_S)
                self.assertFalse(writer.is_alive())
            # what the other took over it keeps; what nobody has yet is as the killed one left it
            wait_until(lambda: all(row["lanesLeased"] == LANES for row in self.outbox().values()), "nobody takes over")
            arrived, passed = len(receiver.got), self.arrived_by_lane("spare")
            wait_until(lambda: len(receiver.got) > arrived + 20, "nothing arrives")
            # and each lane is past what the killed one brought there and had not counted yet
            wait_until(lambda: not self.plain("spare") or all(self.arrived_by_lane("spare")[lane] > count for lane, count in passed.items()),
                       "nothing arrives at the other one")
            self.end(relays[1:])
            self.assert_exact()


class FiguresOnSqlite(Figures, serve_bed.Sqlite, unittest.TestCase):
    pass


class FiguresOnPostgres(Figures, serve_bed.Postgres, unittest.TestCase):
    pass


class RefusedOnSqlite(Refused, serve_bed.Sqlite, unittest.TestCase):
    pass


class RefusedOnPostgres(Refused, serve_bed.Postgres, unittest.TestCase):
    pass


class ExactOnSqlite(Exact, serve_bed.Sqlite, unittest.TestCase):
    pass


class ExactOnPostgres(Exact, serve_bed.Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
