# SPDX-License-Identifier: Apache-2.0
"""Many clients, two servers on one store, one of them killed on the way: every intent ends once (B12, I10).

IBID_TEST_SEED repeats an order of requests; each run prints its own."""
import asyncio
import json
import os
import random
import sys
import time
import unittest

from serve_bed import LIMIT_S, SANITIZED, SOURCE, Postgres, Server, Sqlite

sys.path.append(os.path.join(SOURCE, "tools"))
from ports import free_ports  # noqa: E402

SEED = int(os.environ.get("IBID_TEST_SEED") or random.randrange(1 << 32))
CLIENTS, COPIES, INTENTS = 200, 20, 500
if SANITIZED:
    INTENTS = 100
PATIENCE_S = 5 * LIMIT_S  # of one run: it is there to end a run that hangs
PAUSE_S = 0.02            # before one more attempt


class Lost(Exception):
    """The connection ended before the answer; what became of the request is not known."""


class Wire:
    """A connection that is kept, to the server that stands at a port."""

    def __init__(self, place):
        self.place, self.reader, self.writer = place, None, None

    async def ask(self, head, body):
        """Status, headers, body."""
        try:
            if not self.writer:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.place.port)
            generation = self.place.generation
            self.place.in_flight += 1
            try:
                self.writer.write(head + body)
                answer = await self.read()
            finally:
                self.place.in_flight -= 1
        except (OSError, EOFError, ValueError) as error:
            self.close()
            raise Lost from error
        if answer[1].get("connection") == "close":
            self.close()
        self.place.answered[generation] = self.place.answered.get(generation, 0) + 1
        return answer

    async def read(self):
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        return int(status.split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


class Place:
    """One of the two servers: the process changes, the port stays."""

    def __init__(self, bed, *settings):
        self.bed, self.settings, self.generation, self.in_flight, self.answered = bed, settings, 0, 0, {}
        self.port, = free_ports(1)
        self.restart()

    def kill(self):
        self.server.kill()
        self.generation += 1

    def restart(self):
        self.server = Server(self.bed, *self.settings, "http.listen=127.0.0.1:%d" % self.port)


class Crowd:
    """CLIENTS that send COPIES of each intent, in any order, each until it knows how it ended."""

    def __init__(self, places, operation, intents):
        self.places, self.operation = places, operation
        self.work = [n for n in range(intents) for _ in range(COPIES)]
        self.answers = [[] for _ in range(intents)]
        self.lost = self.in_progress = self.unavailable = self.first_answers = 0
        self.random = random.Random(SEED)
        self.random.shuffle(self.work)
        self.until = time.monotonic() + PATIENCE_S
        self.known = 0                   # intents of which an answer is known
        self.kept = len(self.work) // 4  # for when the servers are whole again, however long that takes
        self.over = asyncio.Event()

    def intent(self, n):
        return {"topic": "topic-%d" % (n % 7), "text": "intent %d" % n}

    def request(self, n, **changed):
        body = json.dumps(dict(self.intent(n), **changed)).encode()
        head = ("POST /v1/commands/%s HTTP/1.1\r\nHost: x\r\nIdempotency-Key: \"intent-%d\"\r\n"
                "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (self.operation, n, len(body)))
        return head.encode(), body

    def is_final(self, answer):
        """Whether it stands. What does not must say when to come again, and promises nothing was begun anew."""
        status, headers, body = answer
        if status == 503:
            self.unavailable += 1
        elif status == 409 and json.loads(body)["type"] == "/problems/in-progress":
            self.in_progress += 1
        else:
            return True
        assert int(headers["retry-after"]) >= 1, answer
        assert "idempotent-replayed" not in headers, answer
        return False

    async def final(self, wires, n):
        head, body = self.request(n)
        while True:
            assert time.monotonic() < self.until, (n, len(self.work), self.answers[n])
            try:
                answer = await self.random.choice(wires).ask(head, body)
            except Lost:
                self.lost += 1
            else:
                if self.is_final(answer):
                    return answer
            await asyncio.sleep(PAUSE_S)

    async def client(self):
        wires = [Wire(place) for place in self.places]
        try:
            while self.work:
                if len(self.work) <= self.kept:
                    await self.over.wait()
                    self.kept = -1
                    continue
                n = self.work.pop()
                status, headers, body = await self.final(wires, n)
                self.known += not self.answers[n]
                self.answers[n].append((status, headers["content-type"], headers["ibid-command-id"], body))
                self.first_answers += "idempotent-replayed" not in headers
        finally:
            for wire in wires:
                wire.close()

    def is_due(self, share, place):
        """In the middle of its work, while there are intents of which nobody knows yet how they end."""
        return self.known >= len(self.answers) * share and place.in_flight and place.answered.get(place.generation)

    async def accidents(self, count):
        """Kill one server after the other, and put another one in its place. How many requests were on their way each
        time; fewer times when a machine is so slow in starting servers that the others have done the work."""
        begun = []
        for number in range(count):
            place = self.places[number % len(self.places)]
            while not self.is_due((number + 1) / (count + 2), place):
                if len(self.work) <= self.kept and not any(other.in_flight for other in self.places):
                    break
                await asyncio.sleep(0)
            else:
                begun.append(place.in_flight)
                place.kill()
                await asyncio.to_thread(place.restart)
        self.over.set()
        return begun

    async def run(self, accidents):
        accident = asyncio.create_task(self.accidents(accidents))
        tasks = [accident] + [asyncio.create_task(self.client()) for _ in range(CLIENTS)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return accident.result()


class Many:
    settings = ("http.limits.connections=600",)

    def run_crowd(self, operation, accidents):
        async def scene():
            crowd = Crowd(places, operation, INTENTS)
            return crowd, await crowd.run(accidents)
        places = [Place(self, *self.settings), Place(self, *self.settings)]
        print("%s %s: seed %d" % (self.store, operation, SEED), flush=True)
        began = time.monotonic()
        crowd, begun = asyncio.run(scene())
        print("%.1f s, killed with %s on the way; %d lost, %d in progress, %d unavailable; %d first answers; answered %s" % (
            time.monotonic() - began, begun, crowd.lost, crowd.in_progress, crowd.unavailable, crowd.first_answers,
            [place.answered for place in places]), flush=True)
        return crowd, places

    def assert_each_once(self, crowd):
        for n, got in enumerate(crowd.answers):
            self.assertEqual((len(got), len(set(got))), (COPIES, 1), (n, set(got)))
            status, kind, command_id, body = got[0]
            self.assertEqual((status, kind), (201, "application/json"), got[0])
            self.assertEqual(json.loads(body), {"id": command_id, "topic": crowd.intent(n)["topic"]})
        self.assertEqual(len({got[0][2] for got in crowd.answers}), INTENTS)
        self.assertEqual(self.counts(), (INTENTS, INTENTS, INTENTS))
        self.assertEqual(self.number("select count(distinct text) from note"), INTENTS)
        self.assertEqual(self.number("select count(*) from %s where state = 'COMPLETED'" % self.ledger("command")), INTENTS)
        self.assertEqual(self.number("select count(*) from " + self.ledger("command")), INTENTS)
        # An answer that was lost with the server is a replay to whoever asks again: never more than one first answer.
        self.assertLessEqual(crowd.first_answers, INTENTS)
        self.assertGreaterEqual(crowd.first_answers, INTENTS - crowd.lost)

    def assert_still_whole(self, crowd, places):
        """The servers answer as on the first day, hold nothing of who has left, and end when they are told to."""
        for n, place in enumerate(places):
            other = place.server.send('"intent-%d"' % n, dict(crowd.intent(n), text="another"), crowd.operation)
            self.assertEqual((other.status, other.json["type"]), (409, "/problems/key-reused"), other)
            self.assertIsNone(other.headers["Retry-After"])
            again = place.server.send('"intent-%d"' % n, crowd.intent(n), crowd.operation)
            self.assertEqual((again.status, again.body), (201, crowd.answers[n][0][3]))
            self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.counts(), (INTENTS, INTENTS, INTENTS))
        for place in places:
            self.await_metric(place.server, "ibid_http_connections", 1)  # the one that asks
        for place in places:
            self.assertEqual(place.server.stop(), 0, place.server.log()[-2000:])
        self.assertEqual(self.number("select count(*) from note"), INTENTS)

    def await_metric(self, server, name, wanted):
        end = time.monotonic() + LIMIT_S
        while True:
            lines = server.get("/metrics").body.decode().splitlines()
            value = next(float(line.split()[-1]) for line in lines if line.startswith(name + " "))
            if value == wanted:
                return
            self.assertLess(time.monotonic(), end, (name, value))
            time.sleep(0.02)

    def many(self, operation, accidents=1):
        crowd, places = self.run_crowd(operation, accidents)
        self.assertGreaterEqual(places[0].generation, 1)
        self.assertGreater(places[0].answered.get(0, 0), 0, "it was killed before it had answered anything")
        self.assertGreater(places[0].answered.get(places[0].generation, 0), 0, "it answers nothing since it is back")
        self.assertGreater(places[1].answered.get(0, 0), 0)
        self.assertGreater(crowd.lost, 0, "nobody noticed that it was killed")
        self.assert_each_once(crowd)
        self.assert_still_whole(crowd, places)

    def test_commands_that_share_a_commit_end_once_each(self):
        self.many("note")

    def test_commands_that_commit_alone_end_once_each(self):
        self.many("note-cold")

    def test_commands_end_once_each_though_one_server_after_the_other_is_killed(self):
        self.many("note", accidents=6)


class ManySqlite(Many, Sqlite, unittest.TestCase):
    pass


class ManyPostgres(Many, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
