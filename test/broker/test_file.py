# SPDX-License-Identifier: Apache-2.0
"""The file destination: every line is whole and every acknowledged event is there, whatever happened in between."""
import contextlib
import fcntl
import json
import os
import random
import resource
import select
import subprocess
import threading
import time
import unittest

from broker_bed import ACKED, NOT_TRIED, Bed, Publisher, record

TORN = '{"specversion":"1.0","id":"event-x","sou'


class FileBed(Bed):
    def setUp(self):
        super().setUp()
        self.file = self.path("events.ndjson")

    def publisher(self, *settings, **more):
        return Publisher(self, "file", "path=" + self.file, *settings, **more)

    def lines(self, path=None):
        """Of a file: each a whole event."""
        with open(path or self.file, "rb") as file:
            whole = file.read()
        self.assertTrue(not whole or whole.endswith(b"\n"), whole[-200:])
        return [json.loads(line) for line in whole.splitlines()]

    def ids(self, path=None):
        return [line["id"] for line in self.lines(path)]

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self):
        with open(self.file, encoding="utf-8") as file:
            return file.read()


class Lines(FileBed):
    def test_an_event_is_one_line_of_cloudevents_json(self):
        ends = self.publisher().publish(record(7, headers={"version": "3", "tenant": 'a "b"', "empty": ""}))
        self.assert_ends(ends, ACKED)
        self.assertEqual(self.lines(), [{
            "specversion": "1.0", "id": "event-7", "source": "/ibid/shop", "type": "OrderPlaced", "subject": "order/7",
            "time": "2026-11-15T10:00:00.000001Z", "version": "3", "tenant": 'a "b"',
            "datacontenttype": "application/json", "data": {"number": 7}}])

    def test_evidence_says_where_the_line_begins(self):
        publisher = self.publisher()
        ends = publisher.publish(record(1), record(2)) + publisher.publish(record(3))
        with open(self.file, "rb") as file:
            for end in ends:
                file.seek(end["offset"])
                self.assertEqual(json.loads(file.readline())["id"], end["id"])
                self.assertEqual((end["place"], end["partition"]), (self.file[:127], -1))
                self.assertLess(abs(end["acked_us"] / 1e6 - time.time()), 60)

    def test_a_payload_on_several_lines_becomes_one(self):
        self.publisher().publish(record(1, payload='{\r\n  "a": "x\\ny",\n  "b": [1,\n2]\n}\n'))
        self.assertEqual(self.lines()[0]["data"], {"a": "x\ny", "b": [1, 2]})

    def test_numbers_stay_as_they_are(self):
        self.publisher().publish(record(1, payload='{"amount":10.50,"big":123456789012345678901234567890.10}'))
        self.assertIn('"data":{"amount":10.50,"big":123456789012345678901234567890.10}', self.read())

    def test_what_can_not_be_written_stops_its_aggregate_alone(self):
        ends = self.publisher().publish(
            record(1, 1), record(2, 2, payload='{"cut'), record(3, 3, headers={"Not-A-Name": "x"}), record(4, 2),
            record(5, 3), record(6, 1), record(7, 4, id="with blank"), record(8, 5, headers={"id": "other"}),
            record(9, 6, source=""), record(10, 7))
        poison = ("failed", "poison", "RECORD_MALFORMED")
        self.assert_ends(ends, ACKED, poison, poison, NOT_TRIED, NOT_TRIED, ACKED, poison, poison, poison, ACKED)
        self.assertEqual(self.ids(), ["event-1", "event-6", "event-10"])

    def test_an_event_that_is_too_large_is_poison(self):
        ends = self.publisher().publish(record(1, payload='"%s"' % ("x" * (17 << 20))), record(2))
        self.assert_ends(ends, ("failed", "poison", "RECORD_TOO_LARGE"), ACKED)

    def test_a_batch_is_bounded_and_the_rest_is_left_for_the_next(self):
        ends = self.publisher().publish(*[record(n, payload='"%s"' % ("x" * (15 << 20))) for n in range(6)])
        self.assert_ends(ends, ACKED, ACKED, ACKED, ACKED, NOT_TRIED, NOT_TRIED)
        self.assertEqual(len(self.lines()), 4)


class Restarts(FileBed):
    def test_a_torn_line_is_cut_off_before_anything_is_appended(self):
        self.publisher().publish(record(1))
        whole = self.read()
        for torn in (TORN, "{", TORN[:12], "{\"spec\0\0\0\0", "\0" * 5000, TORN + "x" * 9000):
            self.write(whole + torn)
            ends = self.publisher().publish(record(2))
            self.assert_ends(ends, ACKED)
            self.assertEqual(ends[0]["offset"], len(whole))
            self.assertEqual(self.ids(), ["event-1", "event-2"])

    def test_a_file_that_is_only_a_torn_line_becomes_a_whole_one(self):
        self.write(TORN)
        self.publisher().publish(record(2))
        self.assertEqual(self.ids(), ["event-2"])

    def test_somebody_elses_file_is_left_alone(self):
        for text in ("dear diary", "one\ntwo", '{"specversion":"1.0","id":"x"}\n{"other":1}'):
            self.write(text)
            code, error = self.channel_refused("file", "path=" + self.file)
            self.assertEqual(code, "invalid")
            self.assertIn("somebody else's file", error)
            self.assertEqual(self.read(), text)

    def test_a_torn_line_that_appears_between_batches_is_cut_off_too(self):
        publisher = self.publisher()
        publisher.publish(record(1))
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(TORN)
        publisher.publish(record(2))
        self.assertEqual(self.ids(), ["event-1", "event-2"])

    def kill_in_the_middle(self, rounds, publishers, channels):
        """Kill writers at any moment, over and over. The ids that were acknowledged."""
        chance, acked, number = random.Random(7), set(), 0
        for _ in range(rounds):
            living = [self.publisher(channels=channels) for _ in range(publishers)]
            heard = []
            for publisher in living:
                batches = []
                for _ in range(300):
                    size = chance.choice((1, 3, 40))
                    batches.append([record(number + k, payload='"%s"' % ("x" * chance.choice((1, 200, 9000))))
                                    for k in range(size)])
                    number += size
                heard.append(threading.Thread(target=self.hear, args=(publisher, batches, acked)))
                heard[-1].start()
            time.sleep(chance.uniform(0.005, 0.12))
            for publisher in living:
                publisher.process.kill()
            for thread in heard:
                thread.join()
            for publisher in living:
                publisher.end()
        return acked

    @staticmethod
    def hear(publisher, batches, acked):
        def feed():
            with contextlib.suppress(OSError, ValueError):
                for batch in batches:
                    publisher.send(batch)
        feeder = threading.Thread(target=feed)
        feeder.start()
        with contextlib.suppress(ValueError):
            while (said := publisher.said()) is not None:
                if said.get("end") == "acked":
                    acked.add(said["id"])
        feeder.join()

    def check_lines(self, acked):
        self.assert_ends(self.publisher().publish(record("last")), ACKED)
        ids = self.ids()
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual(acked | {"event-last"}, set(ids))

    def check_after_kills(self, acked):
        self.check_lines(acked)
        self.assertGreater(len(acked), 100)

    def test_killed_at_any_moment_every_line_is_whole_and_what_was_acknowledged_is_there(self):
        self.check_after_kills(self.kill_in_the_middle(40, 1, 1))

    def test_killed_in_the_middle_of_a_write_likewise(self):
        torn, size = 0, lambda: os.stat(self.file).st_size
        for n in range(8):
            publisher = self.publisher()
            self.assert_ends(publisher.publish(record(n)), ACKED)
            before = size()
            publisher.send([record("large-%d-%d" % (n, k), payload='"%s"' % ("x" * (4 << 20))) for k in range(8)])
            while size() == before:  # it writes at this moment
                pass
            publisher.process.kill()
            publisher.end()
            with open(self.file, "rb") as file:
                file.seek(-1, os.SEEK_END)
                torn += file.read(1) != b"\n"
        self.assertGreater(torn, 0)
        self.check_lines({"event-%d" % n for n in range(8)})

    def test_killed_together_with_others_likewise(self):
        self.check_after_kills(self.kill_in_the_middle(15, 2, 3))


class Together(FileBed):
    def test_batches_of_channels_and_processes_do_not_mix(self):
        publishers = [self.publisher(channels=3) for _ in range(2)]
        threads = []

        def drive(publisher, name):
            publisher.publish_all([[record("%s-%d-%d" % (name, batch, k), 1) for k in range(20)]
                                   for batch in range(60)])

        for name, publisher in zip("ab", publishers):
            threads.append(threading.Thread(target=drive, args=(publisher, name)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        ids = self.ids()
        self.assertEqual(len(ids), 2 * 60 * 20)
        for at in range(0, len(ids), 20):
            batch = ids[at].rsplit("-", 1)[0]
            self.assertEqual(ids[at:at + 20], ["%s-%d" % (batch, k) for k in range(20)])

    def test_who_holds_the_lock_is_waited_for(self):
        publisher = self.publisher()
        publisher.publish(record(1))
        with open(self.file, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            publisher.send([record(2)])
            self.assertEqual(select.select([publisher.ends], [], [], 0.3)[0], [])
            self.assertEqual(self.ids(), ["event-1"])
        self.assert_ends(publisher.batch(), ACKED)

    def test_a_stop_ends_the_wait_for_the_lock(self):
        publisher = self.publisher()
        publisher.publish(record(1))
        with open(self.file, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            publisher.send([record(2)])
            began = time.monotonic()
            publisher.stop()
            self.assert_ends(publisher.batch(), NOT_TRIED)
            self.assertLess(time.monotonic() - began, 5)

    def test_a_file_that_is_moved_away_is_made_anew(self):
        publisher = self.publisher()
        publisher.publish(record(1))
        os.rename(self.file, self.path("old"))
        ends = publisher.publish(record(2))
        self.assertEqual(ends[0]["offset"], 0)
        self.assertEqual((self.ids(self.path("old")), self.ids()), (["event-1"], ["event-2"]))
        os.remove(self.file)
        publisher.publish(record(3))
        self.assertEqual(self.ids(), ["event-3"])

    def test_files_that_are_moved_away_while_many_write_hold_everything_once(self):
        publishers = [self.publisher(channels=2) for _ in range(2)]
        acked, threads = set(), []
        for name, publisher in zip("ab", publishers):
            batches = [[record("%s-%d-%d" % (name, n, k)) for k in range(5)] for n in range(200)]

            def drive(publisher=publisher, batches=batches):
                for batch in publisher.publish_all(batches):
                    acked.update(end["id"] for end in batch if end["end"] == "acked")
            threads.append(threading.Thread(target=drive))
            threads[-1].start()
        moved = 0
        while any(thread.is_alive() for thread in threads):
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.file, self.path("old-%d" % moved))
                moved += 1
            time.sleep(0.003)
        ids = [one for name in os.listdir(self.directory) for one in self.ids(self.path(name))]
        self.assertGreater(moved, 3)
        self.assertEqual(len(acked), 2000)
        self.assertEqual(sorted(ids), sorted(acked))


class Trouble(FileBed):
    def test_a_size_that_may_not_be_exceeded_leaves_nothing_half_written(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        publisher = self.publisher(preexec_fn=limit)
        self.assert_ends(publisher.publish(record(1)), ACKED)
        before = self.read()
        ends = publisher.publish(*[record(n, payload='"%s"' % ("x" * 500)) for n in range(2, 12)])
        self.assert_ends(ends, ("failed", "capacity", "FILE_FULL"), *[NOT_TRIED] * 9)
        self.assertEqual(self.read(), before)
        self.assert_ends(publisher.publish(record(20)), ACKED)
        self.assertEqual(self.ids(), ["event-1", "event-20"])

    def test_a_full_disk_leaves_nothing_half_written_and_works_again_when_there_is_room(self):
        disk = self.path("disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False,
                          capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.file = os.path.join(disk, "events.ndjson")
        publisher = self.publisher()
        large = [record(n, payload='"%s"' % ("x" * 5000)) for n in range(2, 30)]
        self.assert_ends(publisher.publish(record(1)), ACKED)
        before = self.read()
        self.assert_ends(publisher.publish(*large), ("failed", "capacity", "FILE_FULL"), *[NOT_TRIED] * 27)
        self.assertEqual(self.read(), before)
        with open(os.path.join(disk, "ballast"), "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(b"x" * 1000)
        ends = publisher.publish(*large[:1])
        self.assert_ends(ends, ("failed", "capacity", "FILE_FULL"))
        self.assertIn("No space left", ends[0]["why"])
        self.assertEqual(self.read(), before)
        os.remove(os.path.join(disk, "ballast"))
        self.assert_ends(publisher.publish(*large[:5]), *[ACKED] * 5)
        self.assertEqual(len(self.lines()), 6)

    def test_places_that_can_not_be_written_are_refused_at_once(self):
        self.assertEqual(self.channel_refused("file", "path=" + self.directory)[0], "invalid")
        self.assertEqual(self.channel_refused("file", "path=" + self.path("none/events"))[0], "invalid")
        self.assertEqual(self.channel_refused("file", "path=/dev/null"),
                         ("invalid", "destination tests: /dev/null: it is not a regular file"))
        os.mkfifo(self.path("pipe"))
        self.assertEqual(self.channel_refused("file", "path=" + self.path("pipe"))[0], "invalid")

    def test_places_that_are_forbidden_are_denied(self):
        locked = self.path("locked")
        os.mkdir(locked, 0o500)
        os.chmod(self.directory, 0o755)
        nobody = {}
        if os.getuid() == 0:
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
            if not os.access(os.environ["IBID_PUBLISH"], os.X_OK):
                self.skipTest("the program can't be run by others")
        try:
            code, error = self.channel_refused("file", "path=" + os.path.join(locked, "events"), **nobody)
        except PermissionError:
            self.skipTest("the program can't be run by others")
        self.assertEqual(code, "denied")
        self.assertIn("Permission denied", error)

    def test_a_directory_that_vanishes_is_a_failure_and_no_loss(self):
        inner = self.path("inner")
        os.mkdir(inner)
        self.file = os.path.join(inner, "events")
        publisher = self.publisher()
        publisher.publish(record(1))
        os.rename(inner, self.path("moved"))
        self.assert_ends(publisher.publish(record(2), record(3)), ("failed", "permanent", "FILE_UNUSABLE"), NOT_TRIED)
        os.mkdir(inner)
        self.assert_ends(publisher.publish(record(2)), ACKED)

    def test_wrong_settings_are_refused_with_what_would_be_right(self):
        for settings, said in (
                ([], "either `path` or `stdout: yes` must be set"),
                (["path=/x", "stdout=yes"], "either `path` or `stdout: yes` must be set"),
                (["path=/x", "fsync=no"], "power failure"),
                (["path=/x", "fsync=maybe"], "`fsync` is `maybe`: it must be yes or no"),
                (["path="], "the name of a file"),
                (["file=/x"], "has no setting `file`; there are path, stdout, fsync"),
                (["path=/x", "path=/y"], "`path` stands there twice")):
            code, error = self.refused("file", *settings)
            self.assertEqual(code, "invalid", error)
            self.assertIn(said, error)


class StandardOutput(Bed):
    def publisher(self, **more):
        return Publisher(self, "file", "stdout=yes", "fsync=no", stdout=subprocess.PIPE, **more)

    def test_events_are_lines_on_standard_output(self):
        publisher = self.publisher()
        ends = publisher.publish(record(1), record(2))
        self.assert_ends(ends, ACKED, ACKED)
        self.assertEqual((ends[0]["place"], ends[0]["offset"]), ("stdout", -1))
        self.assertEqual([json.loads(publisher.process.stdout.readline())["id"] for _ in range(2)],
                         ["event-1", "event-2"])

    def test_a_reader_that_went_away_is_a_failure_and_no_death(self):
        publisher = self.publisher()
        publisher.publish(record(1))
        publisher.process.stdout.close()
        ends = publisher.publish(record(2), record(3))
        self.assert_ends(ends, ("failed", "transient", "STDOUT_CLOSED"), NOT_TRIED)
        self.assertIn("Broken pipe", ends[0]["why"])
        self.assertEqual(publisher.finish(), 0)

    def test_a_reader_that_goes_away_in_the_middle_leaves_the_batch_in_doubt(self):
        publisher = self.publisher()
        publisher.send([record(n, payload='"%s"' % ("x" * 1000)) for n in range(200)])
        self.assertTrue(publisher.process.stdout.readline())
        publisher.process.stdout.close()
        ends = publisher.batch()
        self.assertEqual({(one["end"], one["class"], one["reason"]) for one in ends},
                         {("failed", "unknown", "STDOUT_CLOSED")})

    def test_a_stop_ends_the_wait_for_a_slow_reader(self):
        publisher = self.publisher()
        publisher.send([record(n, payload='"%s"' % ("x" * 10000)) for n in range(50)])
        out = publisher.process.stdout
        self.await_true(lambda: select.select([out], [], [], 0)[0])
        began = time.monotonic()
        publisher.stop()
        ends = [one["end"] for one in publisher.batch()]
        self.assertLess(time.monotonic() - began, 5)
        acked = ends.count("acked")
        self.assertEqual(ends, ["acked"] * acked + ["failed"] * ends.count("failed") +
                         ["not-tried"] * ends.count("not-tried"))
        self.assertLessEqual(ends.count("failed"), 1)
        self.assertGreater(ends.count("not-tried"), 10)
        publisher.finish()
        lines = out.read().split(b"\n")
        self.assertEqual([json.loads(line)["id"] for line in lines[:-1]], ["event-%d" % n for n in range(acked)])
        self.assertEqual(bool(lines[-1]), "failed" in ends)

    def test_a_file_as_standard_output_is_refused(self):
        with open(self.path("out"), "w", encoding="utf-8") as out:
            code, error = self.channel_refused("file", "stdout=yes", stdout=out)
        self.assertEqual(code, "invalid")
        self.assertIn("name it in `path`", error)


if __name__ == "__main__":
    unittest.main()
