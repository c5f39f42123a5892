# SPDX-License-Identifier: Apache-2.0
"""Eight writers and four relays, which are killed, stopped inside a Kafka transaction and continued when another has their
lanes, while the broker is killed, stopped and resumed, and two transactions are open all along: every committed event
arrives, none that was rolled back, each aggregate in the order of its versions, and evidence is where it says (C03, C04, C07,
C08, C09). Needs IBID_TEST_PG and tools/with-kafka, whose broker is this test's own. `make soak` runs it at its full size;
see kill_bed.Size."""
import signal
import time
import unittest

import serve_bed
from kafka_bed import Kafka, control, order_fault
from kill_bed import RELAYS, Hurt
from relay_bed import first_order_fault, wait_until


class Kill(Hurt, Kafka):
    mode, fault = "transactional", staticmethod(order_fault)
    size = {"events": 10000, "aggregates": 500, "most": 5, "rate": 1500, "zombies": 8, "kills": 2, "pauses": 1, "crashes": 1,
            "limit": 150}
    acts = ("zombies", "kill_one", "zombies", "sleepers", "zombies", "pause_broker", "zombies", "zombies", "crash_broker")
    so_often = {"pause_broker": "pauses", "crash_broker": "crashes"}

    def settings(self):
        return self.to_kafka("relay.batch=200", "relay.destinations.out.kafka.mode=" + self.mode)

    def open_transactions(self, names):
        """Of these: those with records in the log that are neither committed nor aborted."""
        known = self.wire.transactions(list(names))
        writing = self.wire.writing(self.topic, self.partitions) if known else set()
        return {name: one for name, one in known.items()
                if one.state == "Ongoing" and (one.producer, one.epoch) in writing}

    def stop_inside(self, relay):
        """Stopped for as long as it holds an open transaction with records in it, one a lane at most; by their names."""
        names = ["ibid-out-lane-%d-%s" % (lane, producer) for lane in self.lanes_of(relay) for producer in "ab"]
        if not self.freeze_between(relay):
            return {}
        self.did["stops"] += 1
        caught = self.open_transactions(names) if names else {}
        if caught and self.open_transactions(caught) == caught:  # nothing of it was still on its way
            return caught
        relay.send_signal(signal.SIGCONT)
        return {}

    def taken_over(self, caught):
        """Has somebody else these lanes, by the coordinator's word?"""
        now = self.wire.transactions(list(caught))
        return all(name in now and now[name][1:] != one[1:] for name, one in caught.items())

    def zombies(self):
        """Those with most lanes are stopped in the middle of a transaction, until others have those."""
        held = {}
        for relay in self.busy()[:RELAYS // 2]:
            for _ in range(10):
                held[relay] = self.stop_inside(relay)
                if held[relay]:
                    break
                time.sleep(self.luck.uniform(0, 0.02))  # it goes on: at another moment
        for relay, caught in held.items():
            if caught:
                wait_until(lambda names=caught: self.taken_over(names), "nobody takes over")
                relay.send_signal(signal.SIGCONT)
                self.did["zombies"] += len(caught)

    def pause_broker(self):
        control("pause")
        time.sleep(self.luck.uniform(0.1, 4))  # is what is tested: shorter and longer than a lease and a delivery's time
        control("resume")
        self.did["pauses"] += 1

    def crash_broker(self):
        control("kill")
        control("start")
        self.did["crashes"] += 1

    def is_done(self):
        return super().is_done() and self.has_zombies()

    def has_zombies(self):
        return min(self.did["zombies"], self.fenced()["broker"]) >= self.size.zombies

    def is_ahead(self):
        return self.written < self.size.events and \
            self.did["zombies"] / self.size.zombies > self.written / self.size.events

    def test_killed_and_stopped_they_lose_nothing_and_reorder_nothing(self):
        seconds = self.write_and_hurt()
        records = self.assert_log(self.fault)
        self.assertEqual(self.number("select count(*) from " + self.ledger("delivery_hold")), 0)
        self.tell(len(records), seconds)
        self.assert_fenced()

    def assert_fenced(self):
        """Who was stopped inside a transaction and lost its lane meanwhile was refused, by the broker."""
        self.assertGreaterEqual(self.fenced()["broker"], self.size.zombies)
        self.assertGreaterEqual(self.did["zombies"], self.size.zombies)


class Cheaper(Kill):
    """Without transactions nobody is fenced by the broker: *first* occurrences are in order, that is all."""
    mode, fault = "idempotent", staticmethod(first_order_fault)
    size = {"events": 5000, "aggregates": 300, "most": 5, "rate": 1500, "zombies": 4, "kills": 2, "pauses": 1, "crashes": 1,
            "limit": 150}
    zombies = Kill.sleepers

    def has_zombies(self):
        return self.did["sleepers"] >= self.size.zombies

    def is_ahead(self):
        return False

    def assert_fenced(self):
        self.assertEqual(self.fenced()["broker"], 0)
        self.assertGreater(self.fenced()["store"], 0)


class OnPostgres(Kill, serve_bed.Postgres, unittest.TestCase):
    pass


class CheaperOnPostgres(Cheaper, serve_bed.Postgres, unittest.TestCase):
    pass


class OnSqlite(Kill, serve_bed.Sqlite, unittest.TestCase):
    size = dict(Kill.size, events=2500, aggregates=200, rate=300, zombies=4, kills=1)


class TheCheck(unittest.TestCase):
    def test_a_repetition_goes_on_to_the_newest(self):
        for versions in ([1, 2, 3], [1, 2, 1, 2, 3], [1, 1, 2, 2, 3], [1, 2, 3, 1, 2, 1, 2, 3, 4]):
            self.assertIsNone(order_fault(versions), versions)
            self.assertIsNone(first_order_fault(versions), versions)

    def test_whoever_comes_late_is_a_fault(self):
        self.assertEqual(order_fault([1, 2, 3, 4, 5, 1, 2, 3]), "3 after 5")
        self.assertEqual(order_fault([1, 2, 3, 4, 5, 1, 2, 3, 6]), "6 after 3")
        self.assertEqual(order_fault([1, 3, 2]), "3 after 1")
        self.assertEqual(order_fault([1, 2, 1]), "1 after 2")
        self.assertIsNone(first_order_fault([1, 2, 3, 4, 5, 1, 2, 3, 6]))
        self.assertIsNotNone(first_order_fault([1, 3, 2]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
