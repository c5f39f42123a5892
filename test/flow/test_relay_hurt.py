# SPDX-License-Identifier: Apache-2.0
"""Relays that are killed, stopped and continued, at destinations that can't fence: a file and a webhook. Every committed event
arrives and *first* occurrences are in order; that is all they promise (C03, C04, C07, C09). Needs IBID_TEST_PG."""
import collections
import unittest

import serve_bed
from kill_bed import Hurt
from relay_bed import Receivers, first_order_fault


class NotFenced(Hurt):
    size = {"events": 2000, "aggregates": 150, "most": 5, "rate": 500, "sleepers": 4, "kills": 2, "limit": 100}
    acts = ("kill_one", "sleepers")

    def is_done(self):
        return super().is_done() and self.did["sleepers"] >= self.size.sleepers

    def assert_arrived(self, came):
        """`came`: (aggregate, version, id), in the order in which they came."""
        events = {id_ for id_, in self.rows("select cast(id as text) from " + self.ledger("event"))}
        there = {id_ for _, _, id_ in came}
        self.assertEqual((len(events - there), len(there - events)), (0, 0), "lost, and never committed")
        versions = collections.defaultdict(list)
        for aggregate, version, _ in came:
            versions[aggregate].append(version)
        faults = {aggregate: first_order_fault(one) for aggregate, one in versions.items() if first_order_fault(one)}
        self.assertEqual(faults, {})
        self.assertEqual(self.number("select count(*) from " + self.ledger("delivery_hold")), 0)
        self.assertGreater(self.fenced()["store"], 0)  # who came back did not go on


class File(NotFenced):
    def settings(self):
        return [*self.to_file(), "relay.batch=50"]

    def test_killed_and_stopped_at_a_file_first_occurrences_are_in_order(self):
        seconds = self.write_and_hurt()
        self.await_evidence(self.written)
        came = [(event["subject"], int(event["aggregateversion"]), event["id"]) for event in self.lines()]
        self.assert_arrived(came)
        self.tell(len(came), seconds)


class Webhook(Receivers, NotFenced):
    size = dict(NotFenced.size, events=1500, rate=300)

    def settings(self):
        return [*self.to_receiver, "relay.batch=50"]

    def test_killed_and_stopped_at_a_webhook_first_occurrences_are_in_order(self):
        receiver, self.to_receiver = self.receiver(lambda headers, body: 200)
        seconds = self.write_and_hurt()
        self.await_evidence(self.written)
        with receiver.lock:
            came = list(receiver.got)
        self.assert_arrived(came)
        self.tell(len(came), seconds)


class FileOnSqlite(File, serve_bed.Sqlite, unittest.TestCase):
    pass


class WebhookOnSqlite(Webhook, serve_bed.Sqlite, unittest.TestCase):
    pass


class FileOnPostgres(File, serve_bed.Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
