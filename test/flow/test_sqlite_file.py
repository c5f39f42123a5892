# SPDX-License-Identifier: Apache-2.0
"""A server, a proxy or a relay whose SQLite file is taken away, or whose disk is full."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import resource
import shutil
import subprocess
import threading
import time
import unittest

from proxy_bed import Proxied
from serve_bed import BIN, LIMIT_S, Server, Sqlite

HELLO = {"topic": "greetings", "text": "hello"}


class Told:
    """How a server whose file is gone ends."""

    def assert_ended(self, server, name):
        self.assertEqual(server.process.wait(LIMIT_S), 1, server.log())
        lines = server.log().splitlines()
        told = [json.loads(line) for line in lines if "store.file_gone" in line]
        self.assertEqual(len(told), 1, server.log())
        self.assertIn(name + " was ", told[0]["reason"])
        self.assertTrue(any(line.startswith("ibid: " + name + " was ") for line in lines), server.log())


class Gone(Told, Sqlite, unittest.TestCase):
    def answer(self, server, key):
        """The status, 0: it does not answer any more."""
        try:
            return server.send(key, HELLO).status
        except (OSError, http.client.HTTPException):
            return 0

    def take_away(self, how):
        """Clients write all the while: none that asks after it is told that its command was executed."""
        server = Server(self, "http.threads=4")
        stop, after, bad, early = threading.Event(), threading.Event(), [], []

        def client(number):
            for n in range(1000000):
                late = after.is_set()
                status = self.answer(server, "k-%d-%d" % (number, n))
                if status in (0, 503) and late or stop.is_set():
                    return
                if late:
                    bad.append(status)
                elif status == 201:
                    early.append(status)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + LIMIT_S
        while len(early) < 20:
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.001)
        how()
        after.set()
        for thread in threads:
            thread.join(LIMIT_S)
        stop.set()
        self.assertEqual(bad, [])
        self.assert_ended(server, self.path)

    def test_nothing_is_executed_in_a_file_that_was_deleted(self):
        self.take_away(lambda: os.unlink(self.path))

    def test_nothing_is_executed_in_a_file_that_was_replaced(self):
        copy = self.path + ".copy"
        shutil.copy(self.path, copy)
        self.take_away(lambda: os.rename(copy, self.path))

    def test_nothing_is_executed_in_a_file_that_was_renamed(self):
        self.take_away(lambda: os.rename(self.path, self.path + ".old"))

    def test_an_idle_server_finds_out_and_says_so(self):
        for name in ("", "-wal"):
            server = Server(self)
            self.assertEqual(server.send("k" + name, HELLO).status, 201)
            self.assertEqual(server.get("/readyz").status, 200)
            os.unlink(self.path + name)
            if not name:
                self.assertIn(self.answer(server, "k-late"), (0, 503))
            self.assert_ended(server, self.path + name)
            for rest in ("", "-wal", "-shm"):
                if os.path.exists(self.path + rest):
                    os.unlink(self.path + rest)
            made = subprocess.run([BIN, "init", "--store", self.url, "--contracts", self.contracts], timeout=LIMIT_S,
                                  capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_the_refusal_says_that_the_same_key_may_be_sent_again(self):
        server = Server(self)
        os.unlink(self.path)
        try:
            answer = server.send("k", HELLO)
        except (OSError, http.client.HTTPException):
            return  # it has ended already
        self.assertEqual((answer.status, answer.json["type"]), (503, "/problems/unavailable"), answer)
        self.assertTrue(int(answer.headers["Retry-After"]) >= 1)
        with contextlib.suppress(OSError, http.client.HTTPException):  # nobody waits for the next look at the store
            self.assertEqual(server.get("/readyz").status, 503)
        server.await_logged("store.file_gone")

    def test_a_relay_ends(self):
        log = os.path.join(self.dir, "relay.log")

        def logged():
            with open(log, encoding="utf-8") as handle:
                return handle.read()

        with open(log, "wb") as handle:
            relay = subprocess.Popen([BIN, "relay", "--store", self.url, "--contracts", self.contracts,
                                      "relay.destinations.out.file.path=" + os.path.join(self.dir, "out.ndjson")],
                                     stdout=subprocess.DEVNULL, stderr=handle)
        try:
            end = time.monotonic() + LIMIT_S
            while "relay.leased" not in logged():
                self.assertLess(time.monotonic(), end, logged())
                time.sleep(0.01)
            os.unlink(self.path)
            self.assertEqual(relay.wait(LIMIT_S), 1)
            self.assertEqual(logged().count("store.file_gone"), 1)
        finally:
            if relay.poll() is None:
                relay.kill()
                relay.wait(LIMIT_S)


class GoneUnderAProxy(Told, Proxied, Sqlite, unittest.TestCase):
    def test_a_call_that_was_made_is_not_said_to_be_undone(self):  # I4
        server = self.proxy()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.order, server, "k", {"mode": "slow"})
            end = time.monotonic() + LIMIT_S
            while not self.service.sent("k"):
                self.assertLess(time.monotonic(), end, server.log())
                time.sleep(0.01)
            os.unlink(self.path)
            self.service.free.set()
            answer = waiting.result(LIMIT_S)
        self.assertIn(answer.status, (202, 502, 504), answer)  # and not 503: "nothing was done"
        self.assertTrue(answer.headers["Location"].startswith("/v1/operations/"), answer)
        self.assert_ended(server, self.path)


class Full:
    def await_ready(self, server, status):
        end = time.monotonic() + LIMIT_S
        while True:
            answer = server.get("/readyz")
            if answer.status == status:
                return answer
            self.assertLess(time.monotonic(), end, answer)
            time.sleep(0.01)

    def test_a_full_disk_is_503_until_there_is_room(self):
        server = Server(self)
        self.assertEqual(server.send("k-1", HELLO).status, 201)
        self.assertEqual(server.get("/readyz").status, 200)
        self.fill(server)
        refused = server.send("k-2", HELLO)
        self.assertEqual((refused.status, refused.json["type"]), (503, "/problems/unavailable"), refused)
        self.assertTrue(int(refused.headers["Retry-After"]) >= 1)
        self.assertIsNone(refused.headers["Location"])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # together they share commits
            together = list(pool.map(lambda n: server.send("k-%d" % n, HELLO).status, range(3, 35)))
        self.assertEqual(set(together), {503})
        self.assertIn("no space", self.await_ready(server, 503).json["detail"])
        self.assertEqual(server.get("/v1/commands/note/k-1").status, 200)  # looking needs no room
        self.assertEqual(server.get("/v1/commands/note/k-2").status, 404)  # nothing was done
        self.assertEqual(server.send("k-1", HELLO).headers["Idempotent-Replayed"], "true")
        self.free(server)
        self.await_ready(server, 200)  # nobody has written meanwhile
        done = server.send("k-2", HELLO)
        self.assertEqual((done.status, done.headers["Idempotent-Replayed"]), (201, None), done)
        self.assertEqual(self.counts(), (2, 2, 2))
        self.assertEqual(server.stop(), 0)


class FullByALimit(Full, Sqlite, unittest.TestCase):
    """The signal of a limit on the size of files would end a process that does not ignore it."""

    def fill(self, server):
        self.limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100, self.limits[1]))

    def free(self, server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, self.limits)


class FullDisk(Full, Sqlite, unittest.TestCase):
    """A file system of its own, where this may be mounted."""

    def open_store(self):
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("this user may not mount a file system")
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        self.path = os.path.join(disk, "store.db")
        self.url = "sqlite:" + self.path

    def fill(self, server):
        with open(self.path + ".filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while filler.write(bytes(size)) == size:
                        pass

    def free(self, server):
        os.unlink(self.path + ".filler")


if __name__ == "__main__":
    unittest.main()
