# SPDX-License-Identifier: Apache-2.0
"""Clients that ask and do not read, or send and do not end: what a server holds for all of them is bounded, and others are
served (K10)."""
import contextlib
import json
import select
import socket
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from proxy_bed import Proxied
from serve_bed import LIMIT_S, MEASURED, SANITIZED, Server, Sqlite

CLIENTS = 400
# http.limits.memory is 32 MiB; the rest is the program, its store's caches and 12 KiB for each connection.
BOUND_KIB = 128 << 10


class SlowClients:
    def clients(self, server, stack, *sent):
        """So many that send this and read nothing."""
        wires = []
        for _ in range(CLIENTS):
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.settimeout(LIMIT_S)
            wire.connect(("127.0.0.1", server.port))
            with contextlib.suppress(ConnectionError):  # it may be cut off already
                for piece in sent:
                    wire.sendall(piece)
            wires.append(wire)
        return wires

    def await_idle(self, server):
        """Until it does next to nothing: whoever can be answered is, or waits for its client."""
        before, end = -100, time.monotonic() + 2 * LIMIT_S
        while True:
            with open("/proc/%d/stat" % server.process.pid, encoding="ascii") as handle:
                ticks = sum(map(int, handle.read().rpartition(")")[2].split()[11:13]))
            if ticks - before <= 5:
                return
            self.assertLess(time.monotonic(), end)
            before = ticks
            time.sleep(1)

    def await_status(self, ask, status):
        """As a client does that is told to come again, or is cut off."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = None
            with contextlib.suppress(ConnectionError, OSError):
                answer = ask()
            if answer and answer.status == status:
                return answer
            self.assertIn(answer.status if answer else 503, (502, 503), answer)
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def check(self, server):
        """What the others hold, and that they keep nobody else from being served."""
        self.await_idle(server)
        self.assertEqual(server.get("/healthz").status, 200)
        self.assertIsNone(server.process.poll())
        if not SANITIZED:
            self.assertLess(server.memory_kib("VmHWM"), BOUND_KIB)


class SlowClientsOfServe(SlowClients, Sqlite, unittest.TestCase):
    def fill(self, server, count):
        """So many commands, over one connection."""
        body = json.dumps({"topic": "t" * 60}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire, wire.makefile("rb") as answers:
            for first in range(0, count, 50):
                for number in range(first, first + 50):
                    wire.sendall(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %0250d\r\n"
                                 b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (number, len(body), body))
                for _ in range(50):
                    size = 0
                    self.assertIn(b" 201 ", answers.readline())
                    while (line := answers.readline()) != b"\r\n":
                        size = int(line.split()[1]) if line.startswith(b"Content-Length") else size
                    answers.read(size)

    def test_four_hundred_that_ask_and_never_read_take_a_bounded_amount_of_memory(self):
        server = Server(self, env=MEASURED)
        self.fill(server, 1000)
        with contextlib.ExitStack() as stack:
            self.clients(server, stack, 20 * b"GET /v1/commands?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(server.send("k-1", {"topic": "a"}).status, 201)
            self.check(server)
            page = self.await_status(lambda: server.get("/v1/commands?limit=1000"), 200)
            self.assertEqual(len(page.json["items"]), 1000)
            self.assertGreater(sum(line["connectionsCutOff"] for line in server.logged("http.memory_short")), 0)

    def test_four_hundred_that_never_end_their_bodies_take_a_bounded_amount_of_memory(self):
        server = Server(self, env=MEASURED)
        head = (b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000000\r\n\r\n")
        with contextlib.ExitStack() as stack:
            wires = self.clients(server, stack, head, 900000 * b" ")
            self.assertEqual(server.send("k-1", {"topic": "a"}).status, 201)
            self.check(server)
            answers = []
            for wire in wires[-20:]:
                with contextlib.suppress(ConnectionError):
                    wire.sendall(99987 * b" " + b"{\"topic\":\"a\"}")
                    answers.append(wire.recv(13))
            # Those that were read found room; of the others nothing was done.
            self.assertLessEqual(set(answers), {b"HTTP/1.1 201 ", b"HTTP/1.1 503 ", b""})
            self.assertIn(b"HTTP/1.1 503 ", answers)
            large = json.dumps({"topic": "b"}) + 900000 * " "
            self.await_status(lambda: server.send("k-2", large), 201)


class SlowClientsOfProxy(SlowClients, Proxied, Sqlite, unittest.TestCase):
    def test_four_hundred_that_never_read_replays_take_a_bounded_amount_of_memory(self):
        server = self.proxy(env=MEASURED)
        first = self.order(server, "k-1", {"mode": "controls"})  # 800,000 bytes that no JSON text can be made of
        self.assertEqual((first.status, len(first.body)), (200, 800000))
        body = b'{"mode": "controls"}'
        ask = (b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k-1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
               % (len(body), body))
        with contextlib.ExitStack() as stack:
            self.clients(server, stack, 20 * ask)
            self.await_status(lambda: self.order(server, "k-2", {"item": "tea"}), 201)
            self.check(server)
            again = self.await_status(lambda: self.order(server, "k-1", {"mode": "controls"}), 200)
            self.assertEqual(again.body, first.body)
        self.assertEqual(len(self.service.executed), 2)

    def test_four_hundred_that_never_read_what_is_passed_on_take_a_bounded_amount_of_memory(self):
        self.contract("patient", "POST /patient", deadline="60s", lease="120s")  # the service has 400 others to answer
        server = self.proxy(env=MEASURED)
        with contextlib.ExitStack() as stack:
            self.clients(server, stack, b"GET /large?n=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (64 << 20))
            self.assertEqual(self.order(server, "k-1", {"item": "tea"}, "/patient").status, 201)
            self.check(server)

    def test_large_answers_of_the_service_wait_for_room_and_are_all_kept(self):
        self.contract("patient", "POST /patient", deadline="60s", lease="120s")
        server = self.proxy("http.limits.memory=4MiB", env=MEASURED)
        orders = {"k-%d" % number: {"mode": "controls"} for number in range(60)}

        def order(key):  # one that finds no room on its way to us is asked for again
            return len(self.await_status(lambda: self.order(server, key, orders[key], "/patient"), 200).body)

        with ThreadPoolExecutor(len(orders)) as pool:
            self.assertEqual(set(pool.map(order, orders)), {800000})
        self.check(server)
        self.assertEqual(len(self.service.executed), len(orders))


if __name__ == "__main__":
    unittest.main()
