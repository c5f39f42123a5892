# SPDX-License-Identifier: Apache-2.0
"""A destination on its own, driven through its interface: records in, their ends out."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

PUBLISH = os.environ["IBID_PUBLISH"]
LIMIT_S = 60


def record(number, aggregate=None, **more):
    said = {"id": "event-%s" % number, "source": "/ibid/shop", "type": "OrderPlaced", "subject": "order/%s" % number,
            "time": "2026-11-15T10:00:00.000001Z", "payload": json.dumps({"number": number}),
            "aggregate": number if aggregate is None else aggregate, "headers": {"version": "1"}}
    said.update(more)
    return said


class Publisher:
    """One process with `channels` channels of one destination."""

    def __init__(self, bed, kind, *settings, channels=1, stdout=None, **more):
        read, write = os.pipe()
        args = [PUBLISH, kind, str(channels), str(write)] + list(settings)
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=stdout, pass_fds=[write], **more)
        os.close(write)
        self.ends = os.fdopen(read, "r", encoding="utf-8")
        bed.addCleanup(self.end)

    def end(self):
        """Its own end, unless somebody killed it: what a sanitizer has to say comes then."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(LIMIT_S)
            raise
        finally:
            self.ends.close()
        assert self.process.returncode in (0, 1, -signal.SIGKILL), self.process.returncode
        if self.process.stdout:
            self.process.stdout.close()

    def send(self, records):
        self.process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in records) + b"\n")
        self.process.stdin.flush()

    def said(self):
        """The next line; None: there are no more."""
        line = self.ends.readline()
        return json.loads(line) if line.endswith("\n") else None

    def batch(self):
        """The ends of the next batch."""
        ends = []
        while True:
            said = self.said()
            assert said is not None, "it ended"
            if "id" not in said:
                assert said.get("batch") == "ok", said
                return ends
            ends.append(said)

    def publish(self, *records):
        self.send(records)
        return self.batch()

    def publish_all(self, batches):
        """All of them, as fast as the channels take them: the ends in the order they came."""
        feeder = threading.Thread(target=lambda: [self.send(batch) for batch in batches])
        feeder.start()
        ends = [self.batch() for _ in batches]
        feeder.join()
        return ends

    def stop(self):
        self.process.send_signal(signal.SIGTERM)

    def finish(self):
        """No more input: its exit code."""
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)


class Bed(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="ibid-broker-")
        self.addCleanup(shutil.rmtree, self.directory, True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def refused(self, kind, *settings):
        """What is said of settings that are wrong."""
        publisher = Publisher(self, kind, *settings)
        self.assertEqual(publisher.finish(), 1, "it was not refused")
        said = publisher.said()
        return said["open"], said["error"]

    def channel_refused(self, kind, *settings, **more):
        publisher = Publisher(self, kind, *settings, **more)
        publisher.finish()
        said = publisher.said()
        self.assertIsNotNone(said, "it was not refused")
        return said["channel"], said["error"]

    def await_true(self, test):
        end = time.monotonic() + LIMIT_S
        while not test():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def assert_ends(self, ends, *expected):
        """(end, class, reason) of each."""
        self.assertEqual([(one["end"], one.get("class"), one.get("reason")) for one in ends], list(expected), ends)


ACKED = ("acked", None, None)
NOT_TRIED = ("not-tried", None, None)
