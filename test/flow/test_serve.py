# SPDX-License-Identifier: Apache-2.0
"""The ledger over HTTP, as a client sees it, on both stores (B03-B05, B12, B16, K10)."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import select
import signal
import socket
import sqlite3
import threading
import time
import unittest
import uuid

import psycopg2

from serve_bed import KEY_VALUES, LIMIT_S, MEASURED, NOTE, Postgres, Server, Sqlite

HELLO = {"topic": "greetings", "text": "hello"}


def at_once(count, call):
    """Call it for 0 to count - 1 at the same time."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


class Serve:
    # ---- Decisions ------------------------------------------------------------------------------

    def test_a_retry_gets_the_first_answer_byte_for_byte(self):  # B03
        server = Server(self)
        first = server.send('"k-1"', HELLO)
        self.assertEqual(first.status, 201, first)
        self.assertEqual(first.headers["Content-Type"], "application/json")
        self.assertIsNone(first.headers["Idempotent-Replayed"])
        self.assertEqual(first.json["id"], first.headers["Ibid-Command-Id"])
        self.assertEqual(server.stop(), 0)
        server = Server(self)  # the answer outlives the process
        again = server.send("k-1", '{ "text":"hello",\n"topic":"greetings" }')
        self.assertEqual((again.status, again.body), (201, first.body))
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        self.assertEqual(again.headers["Ibid-Command-Id"], first.headers["Ibid-Command-Id"])
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_another_payload_under_the_same_key_is_a_conflict(self):  # B04
        server = Server(self)
        first = server.send("k-1", HELLO)
        other = server.send("k-1", dict(HELLO, text="bye"))
        self.assertEqual(other.status, 409, other)
        self.assertEqual(other.headers["Content-Type"], "application/problem+json")
        self.assertEqual(other.json["type"], "/problems/key-reused")
        self.assertEqual(other.json["commandId"], first.json["id"])
        self.assertIsNone(other.headers["Retry-After"])
        self.assertEqual(self.counts(), (1, 1, 1))
        self.assertEqual(self.number("select count(*) from " + self.ledger("evidence")), 1)

    def test_a_rejection_is_replayed_and_a_failure_is_not(self):  # B03
        server = Server(self)
        for _ in range(2):
            rejected = server.send("k-r", {"topic": "forbidden"})
            self.assertEqual((rejected.status, rejected.json["code"]), (409, "FORBIDDEN_TOPIC"), rejected)
            self.assertEqual(rejected.json["type"], "/problems/rejected")
            self.assertIsNone(rejected.headers["Retry-After"])
        self.assertEqual(rejected.headers["Idempotent-Replayed"], "true")
        for _ in range(2):
            failed = server.send("k-f", {"topic": "broken"})
            self.assertEqual((failed.status, failed.json["type"]), (500, "/problems/failed"), failed)
            self.assertTrue(int(failed.headers["Retry-After"]) >= 1)
            self.assertIsNone(failed.headers["Idempotent-Replayed"])
        invalid = server.send("k-i", {"topic": "x", "amount": -1})
        self.assertEqual((invalid.status, invalid.json["code"]), (422, "INVALID_PAYLOAD"))
        self.assertIn("/amount", invalid.json["detail"])
        self.assertEqual(self.counts(), (0, 0, 0))

    def test_a_corrected_payload_takes_the_key_of_the_invalid_one(self):  # B03 B04
        self.note("note-soft", "serialize_by: [/topic]\nfailures: { validation: retry }")
        server = Server(self)
        for _ in range(2):
            refused = server.send("k-1", dict(HELLO, amount=-1), "note-soft")
            self.assertEqual((refused.status, refused.json["type"], refused.json["code"]),
                             (422, "/problems/invalid-payload", "INVALID_PAYLOAD"), refused)
            self.assertEqual(refused.headers["Content-Type"], "application/problem+json")
            self.assertEqual(refused.json["errors"][0]["pointer"], "/amount")
            self.assertIsNone(refused.headers["Retry-After"])  # waiting does not help
            self.assertIsNone(refused.headers["Idempotent-Replayed"])
        place = "/v1/operations/" + refused.json["commandId"]
        self.assertEqual(server.ask("GET", place).json["awaits"], "the corrected payload: the key is bound to none yet")
        self.assertEqual(server.ask("GET", refused.json["type"]).status, 200)
        first = server.send("k-1", dict(HELLO, amount=1), "note-soft")
        self.assertEqual((first.status, first.headers["Ibid-Command-Id"]), (201, refused.json["commandId"]), first)
        late = server.send("k-1", dict(HELLO, amount=-1), "note-soft")
        self.assertEqual((late.status, late.json["type"]), (409, "/problems/key-reused"), late)
        again = server.send("k-1", dict(HELLO, amount=1), "note-soft")
        self.assertEqual((again.status, again.body, again.headers["Idempotent-Replayed"]), (201, first.body, "true"))
        self.assertNotIn("awaits", server.ask("GET", place).json)
        self.assertEqual(self.number("select sum(count) from " + self.ledger("evidence")), 2)
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_of_corrections_at_once_one_wins(self):  # B12
        self.note("note-soft", "serialize_by: [/topic]\nfailures: { validation: retry }")
        server = Server(self)
        for n in range(5):
            key = "k-%d" % n
            self.assertEqual(server.send(key, dict(HELLO, amount=-1), "note-soft").status, 422)

            def correct(amount):
                while True:  # as a client does while it is told to wait
                    answer = server.send(key, dict(HELLO, amount=amount + 1), "note-soft")
                    if answer.headers["Retry-After"] is None:
                        return answer

            statuses = sorted(answer.status for answer in at_once(8, correct))
            self.assertEqual(statuses.count(201), 1, statuses)
            self.assertEqual(statuses.count(409), 7, statuses)
            self.assertEqual(self.counts(), (n + 1, n + 1, n + 1))

    def test_a_rejection_in_words_of_its_own_is_replayed_in_its_bytes(self):  # B03
        server = Server(self)
        identity = server.send("k-r", {"topic": "forbidden"}).headers["Ibid-Command-Id"]
        body = '{ "why":\n "closed", "amount": 1.50 }'
        self.keep_body(identity, body)
        again = server.send("k-r", {"topic": "forbidden"})
        self.assertEqual((again.status, again.body), (409, body.encode()), again)
        self.assertEqual(again.headers["Content-Type"], "application/json")
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")

    def test_what_is_there_is_linked_and_what_contradicts_it_is_rejected(self):  # B09
        server = Server(self)
        once = {"topic": "a", "text": "once upon a time"}
        first = server.send("k-1", once, "note-once")
        self.assertEqual(first.status, 201, first)
        linked = server.send("k-2", once, "note-once")
        self.assertEqual((linked.status, linked.json["resourceId"]), (200, first.json["id"]), linked)
        self.assertEqual(server.send("k-2", once, "note-once").body, linked.body)
        for _ in range(2):
            other = server.send("k-3", dict(once, topic="b"), "note-once")
            self.assertEqual((other.status, other.json["code"]), (409, "OTHER_TOPIC"), other)
        self.assertEqual(self.counts(), (1, 2, 1))

    def test_a_contracts_route_puts_its_parameters_into_the_payload(self):  # B16
        server = Server(self)
        first = server.send("k-1", {"text": "hello"}, path="/topics/greetings/notes")
        self.assertEqual((first.status, first.json["topic"]), (201, "greetings"), first)
        again = server.send("k-1", HELLO)  # the generic form of the same request
        self.assertEqual((again.status, again.body), (201, first.body))
        other = server.send("k-1", {"text": "hello"}, path="/topics/farewells/notes")
        self.assertEqual((other.status, other.json["type"]), (409, "/problems/key-reused"))
        coded = server.send("k-2", "", path="/topics/a%2Fb%20%c3%a4/notes")
        self.assertEqual((coded.status, coded.json["topic"]), (201, "a/b \u00e4"), coded)
        twice = server.send("k-3", HELLO, path="/topics/greetings/notes")
        self.assertEqual((twice.status, twice.json["detail"]), (400, "/topic is given by the path, and not in the body"))
        listed = server.send("k-3", "[]", path="/topics/greetings/notes")
        self.assertEqual((listed.status, listed.json["detail"]), (400, "the body must be a JSON object"))
        self.assertEqual(self.counts(), (2, 2, 2))

    def test_by_its_route_or_by_its_name_it_is_one_command_about_one_resource(self):  # B16 B02
        """Scope, fingerprint and what the handler gets are the same, so the same key is the same command, whichever way
        it comes first, and another resource's key is another command."""
        scoped = "key: { from: header, generated_by: client, scope: [client, resource], retain: 30d, after_expiry: refuse }\n"
        text = NOTE % {"name": "note-in", "version": 1, "more": "route: PUT /rooms/{topic}/notes/{text}\n" + scoped +
                       "same_payload: { context: [resource] }"}
        self.file("note-in.yaml", text.replace("/text: { type: text", "/text: { type: text, required: true"))
        self.note("note-on", scoped)
        server = Server(self)
        kind = {"Content-Type": "application/json", "Idempotency-Key": "k-1"}

        def routed(topic, text, body=""):
            return server.ask("PUT", "/rooms/%s/notes/%s" % (topic, text), body, kind)

        def named(document, query="", operation="note-in"):
            return server.ask("POST", "/v1/commands/" + operation + query, json.dumps(document), kind)

        first = routed("a%2Fb", "c")
        again = named({"text": "c", "topic": "a/b"})
        self.assertEqual((first.status, again.status, again.body), (201, 201, first.body), again)
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        self.assertEqual(named({"text": "c", "topic": "a/b"}, "?resource=a%2Fb%2Fc").body, first.body)
        other = named({"topic": "d", "text": "e"})
        self.assertEqual((other.status, other.headers["Idempotent-Replayed"]), (201, None), other)
        back = routed("d", "e", "{}")
        self.assertEqual((back.body, back.headers["Idempotent-Replayed"]), (other.body, "true"), back)
        conflict = named({"topic": "d", "text": "e", "amount": 1})
        self.assertEqual((conflict.status, conflict.json["type"]), (409, "/problems/key-reused"), conflict)
        self.assertEqual(self.counts(), (2, 2, 2))
        shown = server.get("/v1/commands/note-in/k-1?resource=a%2Fb%2Fc")
        self.assertEqual(shown.json["id"], first.headers["Ibid-Command-Id"])
        # Where no path says it, the query does.
        on = named({"topic": "t"}, "?resource=r-1", "note-on")
        self.assertEqual((on.status, named({"topic": "t"}, "?resource=r-1", "note-on").body), (201, on.body), on)
        off = named({"topic": "t"}, "?resource=r-2", "note-on")
        self.assertEqual((off.status, off.headers["Idempotent-Replayed"]), (201, None), off)
        wrong = (
            ({"text": "c"}, "", "note-in", "/topic is missing"), ({"topic": 7, "text": "c"}, "", "note-in", "/topic is missing"),
            ({"topic": "", "text": "c"}, "", "note-in", "/topic is missing"), ([1], "", "note-in", "/topic is missing"),
            ({"topic": "a\0b", "text": "c"}, "", "note-in", "/topic is missing"),
            ({"topic": "a", "text": "c"}, "?resource=a", "note-in", "the resource in the query is a"),
            ({"topic": "a", "text": "c"}, "?room=a", "note-in", "the query has `room=a`"),
            ({"topic": "a"}, "?resource=a&resource=b", "note-on", "the query has `resource=b`"),
            ({"topic": "a"}, "?resource=%ff", "note-on", "can't be decoded"), ({"topic": "a"}, "?resource=", "note-on", "is empty"),
            ({"topic": "a"}, "", "note-on", "note-on declares resource in key.scope, so the command must name its resource"),
            ({"topic": "a"}, "?" + "x" * 3000, "note-on", "it may only have resource"))
        before = self.counts()
        for document, query, operation, says in wrong:
            refused = named(document, query, operation)
            self.assertEqual((refused.status, refused.json["type"]), (400, "/problems/bad-request"), refused)
            self.assertIn(says, refused.json["detail"])
        self.assertEqual(self.counts(), before)

    def test_one_in_flight_is_answered_at_once_and_retry_after_says_when(self):  # B05
        if self.store == "sqlite":
            return  # one writer: a twin waits in the queue for its turn
        server = Server(self, "http.in_progress=425")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            with self.hot_row_locked():
                firsts = [pool.submit(server.send, "k-1", {"topic": "hot"}, operation)
                          for operation in ("note-cold", "note-later")]
                self.await_blocked(2)
                twin = server.send("k-1", {"topic": "hot"}, "note-cold")
                self.assertEqual((twin.status, twin.json["type"]), (425, "/problems/in-progress"), twin)
                self.assertTrue(int(twin.headers["Retry-After"]) >= 1)
                later = server.send("k-1", {"topic": "hot"}, "note-later")
                self.assertEqual(later.status, 202, later)
                self.assertTrue(int(later.headers["Retry-After"]) >= 1)
            self.assertEqual([first.result(LIMIT_S).status for first in firsts], [201, 201])

    def test_who_waits_for_a_twin_holds_no_thread(self):  # B05
        if self.store == "sqlite":
            return
        server = Server(self, "http.threads=2")
        with concurrent.futures.ThreadPoolExecutor(31) as pool:
            with self.hot_row_locked():
                first = pool.submit(server.send, "k-1", {"topic": "hot"}, "note-wait")
                self.await_blocked(1)
                twins = [pool.submit(server.send, "k-1", {"topic": "hot"}, "note-wait") for _ in range(30)]
                for n in range(5):
                    self.assertEqual(server.send("k-%d" % n, HELLO).status, 201)
                self.assertFalse(any(twin.done() for twin in twins))
            answers = [twin.result(LIMIT_S) for twin in twins]
            self.assertEqual({(twin.status, twin.body) for twin in answers}, {(201, first.result(LIMIT_S).body)})
            self.assertEqual({twin.headers["Idempotent-Replayed"] for twin in answers}, {"true"})

    # ---- Keys -----------------------------------------------------------------------------------

    def test_keys_of_every_form(self):
        server = Server(self)
        for key, kept in (("plain", "plain"), ('"quoted"', "quoted"), ('"with \\"quotes\\" and \\\\"', 'with "quotes" and \\'),
                          ("a b", "a b"), ("x" * 255, "x" * 255)):
            self.assertEqual(server.send(key, HELLO).status, 201, key)
            self.assertEqual(self.number("select count(*) from %s where key = '%s'" % (self.ledger("command"),
                                                                                        kept)), 1, key)
        before = self.counts()
        for key, kind in ((None, "key-missing"), ("", "key-invalid"), ('""', "key-invalid"), ('"open', "key-invalid"),
                          ('"a"b"', "key-invalid"), ("x" * 256, "key-invalid"), ("tab\there", "key-invalid"),
                          ('"bad\\escape"', "key-invalid")):
            answer = server.send(key, HELLO)
            self.assertEqual((answer.status, answer.json["type"]), (400, "/problems/" + kind), (key, answer))
        twice = server.raw(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n"
                           b"Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"topic\":\"a\"}")
        self.assertIn(b"key-invalid", twice)
        self.assertEqual(self.counts(), before)

    def test_a_key_is_bare_or_a_string_of_rfc_8941(self):
        server, body = Server(self), json.dumps(HELLO).encode()
        for value, wanted in KEY_VALUES:
            before = self.counts()
            got = server.raw(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\nContent-Type: application/json\r\n"
                             b"Content-Length: %d\r\n\r\n%s" % (value, len(body), body))
            document = json.loads(got.partition(b"\r\n\r\n")[2])
            if got.startswith(b"HTTP/1.1 201 "):
                found = server.get("/v1/operations/" + document["id"]).json
                self.assertEqual(found["key"], wanted, value)
            else:
                self.assertEqual((document["status"], self.counts()), (400, before), (value, got))
                if wanted:
                    self.assertEqual(document["type"], "/problems/key-invalid", value)
                    self.assertIn(wanted, document["detail"], value)

    # ---- Looking --------------------------------------------------------------------------------

    def test_commands_are_found_by_id_by_key_and_page_by_page(self):
        server = Server(self)
        ids = [server.send("k-%d" % i, dict(HELLO, text=str(i))).json["id"] for i in range(5)]
        one = server.get("/v1/operations/" + ids[0])
        self.assertEqual((one.status, one.json["state"], one.json["result"]["id"]), (200, "COMPLETED", ids[0]))
        self.assertEqual(server.get("/v1/commands/note/k-0").json, one.json)
        seen, after = [], ""
        while True:
            page = server.get("/v1/commands?limit=2" + after).json
            seen += [item["id"] for item in page["items"]]
            if "next" not in page:
                break
            after = "&after=" + page["next"]
        self.assertEqual(seen, ids[::-1])
        self.assertEqual(len(server.get("/v1/commands?state=completed&key=k-3").json["items"]), 1)
        self.assertEqual(server.get("/v1/commands?operation=note-wait").json["items"], [])
        for path in ("/v1/operations/" + str(uuid.uuid4()), "/v1/operations/nonsense", "/v1/commands/note/none",
                     "/v1/commands/none/k-0", "/none", "/problems/none"):
            self.assertEqual(server.get(path).status, 404, path)
        for query in ("limit=0", "limit=x", "limit=1001", "after=x", "state=x", "key=%zz"):
            self.assertEqual(server.get("/v1/commands?" + query).status, 400, query)
        wrong = server.ask("PUT", "/v1/commands")
        self.assertEqual((wrong.status, wrong.headers["Allow"]), (405, "GET"))

    def test_every_type_of_problem_is_documented_where_it_points(self):
        server = Server(self)
        for answer in (server.send("k", "nonsense"), server.send(None, HELLO), server.get("/none"),
                       server.send("k", {"topic": "forbidden"}), server.ask("DELETE", "/healthz")):
            kind = server.get(answer.json["type"])
            self.assertEqual(kind.status, 200, answer)
            self.assertEqual((kind.json["type"], kind.json["title"]), (answer.json["type"], answer.json["title"]))

    # ---- Many at once ---------------------------------------------------------------------------

    def test_twenty_at_once_are_one(self):  # B12
        server = Server(self)
        answers = at_once(20, lambda _: self.final(server, "k-1", HELLO))
        self.assertEqual({(answer.status, answer.body) for answer in answers}, {(201, answers[0].body)})
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_intents_end_once_though_a_server_is_killed_on_the_way(self):  # B12, I10
        intents, copies, clients = 60, 8, 40
        servers = [Server(self), Server(self) if self.store == "postgres" else None]
        servers[1] = servers[1] or servers[0]
        work = [n for n in range(intents) for _ in range(copies)]
        random.Random(7).shuffle(work)
        answers, lock, position = [[] for _ in range(intents)], threading.Lock(), iter(range(len(work)))

        def client(_):
            while True:
                with lock:
                    at = next(position, None)
                if at is None:
                    return
                if at == len(work) // 3:
                    servers[0].kill()
                    fresh = Server(self)
                    servers[1] = fresh if servers[1] is servers[0] else servers[1]
                    servers[0] = fresh
                n = work[at]
                answer = self.final(servers, "k-%d" % n, {"topic": "t-%d" % (n % 7), "text": str(n)})
                with lock:
                    answers[n].append((answer.status, answer.body))

        at_once(clients, client)
        for n, got in enumerate(answers):
            self.assertEqual((len(got), len(set(got)), got[0][0]), (copies, 1, 201), (n, got))
        self.assertEqual(self.counts(), (intents, intents, intents))

    def final(self, servers, key, document):
        """The answer that stands: what is in flight or lost is asked for again, as clients do."""
        end = time.monotonic() + LIMIT_S
        while True:
            server = random.choice(servers) if isinstance(servers, list) else servers
            try:
                answer = server.send(key, document)
            except (OSError, http.client.HTTPException):
                answer = None
            if answer and answer.status not in (409, 503):
                return answer
            self.assertLess(time.monotonic(), end, (key, answer))

    def test_health_answers_while_five_hundred_wait_for_a_row(self):  # B05
        server = Server(self, "http.threads=4", "http.limits.connections=600", env=MEASURED)
        waiting = 500
        before = server.memory_kib()
        with self.hot_row_locked():
            wires = [self.begin(server, "k-%d" % n, {"topic": "hot", "text": str(n)}) for n in range(waiting)]
            server_took = []
            for _ in range(20):
                began = time.monotonic()
                self.assertEqual(server.get("/healthz").status, 200)
                server_took.append(time.monotonic() - began)
            grown = server.memory_kib() - before
        self.assertLess(sorted(server_took)[len(server_took) // 2], 0.1, server_took)
        self.assertLess(grown, 64 << 10)
        statuses = [self.finish(wire) for wire in wires]
        self.assertEqual({status for status in statuses if status not in (b"201", b"503")}, set())
        self.assertEqual(self.counts()[0], statuses.count(b"201"))
        self.assertGreater(statuses.count(b"201"), 0)

    def begin(self, server, key, document):
        body = json.dumps(document).encode()
        wire = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S)
        wire.sendall(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\nConnection: close\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (key.encode(), len(body), body))
        return wire

    def finish(self, wire):
        with wire:
            got = b""
            while True:
                piece = wire.recv(65536)
                if not piece:
                    return got.split(b" ")[1] if got else b""
                got += piece

    def test_who_hangs_up_changes_nothing(self):
        server = Server(self)
        with self.hot_row_locked():
            self.begin(server, "k-1", {"topic": "hot"}).close()
            server.send("k-2", "x")  # the one before it was read by now
        answer = self.final(server, "k-1", {"topic": "hot"})
        self.assertEqual(answer.status, 201)
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_a_full_queue_says_try_later_and_does_nothing(self):  # K10
        server = Server(self, "http.limits.queue=8", "http.threads=1")
        with self.hot_row_locked():
            wires = [self.begin(server, "k-%d" % n, {"topic": "hot", "text": str(n)}) for n in range(12)]
            refused = server.send("k-x", HELLO)
            self.assertEqual((refused.status, refused.json["type"]), (503, "/problems/unavailable"), refused)
            self.assertTrue(int(refused.headers["Retry-After"]) >= 1)
            end = time.monotonic() + LIMIT_S
            while len(select.select(wires, [], [], 0.01)[0]) < 8:  # all were looked at
                self.assertLess(time.monotonic(), end)
        statuses = [self.finish(wire) for wire in wires]
        self.assertEqual(statuses.count(b"201"), 4, statuses)
        self.assertEqual(statuses.count(b"503"), 8, statuses)
        self.assertEqual(self.counts()[0], 4)

    def test_a_duplicate_that_came_is_remembered_for_as_long_as_it_is_told(self):  # B03, K10
        self.note("note-brief", "answer: { store: reference }")
        remembers, asks = Server(self, "http.replay_memory=60s"), Server(self, "http.replay_memory=0s")
        first = remembers.send("k-1", HELLO, "note-brief")
        again = remembers.send("k-1", HELLO, "note-brief")
        self.assertEqual((first.status, again.status, again.headers["Idempotent-Replayed"]), (201, 201, "true"))
        # What only the store could know; nobody else may change it.
        self.change("update %s set status = 202" % self.ledger("command"))
        for _ in range(3):
            answer = remembers.send("k-1", HELLO, "note-brief")
            self.assertEqual((answer.status, answer.body, answer.headers["Idempotent-Replayed"], answer.headers["Ibid-Command-Id"]),
                             (201, again.body, "true", first.headers["Ibid-Command-Id"]))
            self.assertEqual(asks.send("k-1", HELLO, "note-brief").status, 202)
        self.assertEqual(remembers.send("k-1", {"topic": "other"}, "note-brief").status, 409)
        self.assertEqual(self.counts(), (1, 1, 1))

    # ---- Life -----------------------------------------------------------------------------------

    def test_sigterm_finishes_what_has_begun(self):
        server = Server(self)
        with self.hot_row_locked():
            wire = self.begin(server, "k-1", {"topic": "hot"})
            server.get("/healthz")
            server.process.send_signal(signal.SIGTERM)
            server.await_logged("serve.stopping")
            self.assertRaises(OSError, server.get, "/healthz")
        self.assertEqual(self.finish(wire), b"201")
        self.assertEqual(server.process.wait(LIMIT_S), 0)

    def test_sigterm_waits_for_nobody_who_has_not_asked(self):
        server = Server(self, "http.drain=60s")
        head = (b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"
                b"Content-Length: 13\r\n\r\n")
        with contextlib.ExitStack() as wires:
            for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", head, head + b"{\"topic\":"):
                wire = wires.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S))
                wire.sendall(begun)
            server.get("/healthz")  # those before it were heard
            began = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(server.logged("serve.drain_incomplete"), [])
        self.assertEqual(self.counts(), (0, 0, 0))

    def test_who_is_not_done_in_time_ends_with_the_process(self):
        server, _ = self.stalled("http.drain=1s")
        self.ask_often(server, 2000)  # nobody hears what it says of its end
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            idle.recv(1000)
            with self.hot_row_locked():
                wire = self.begin(server, "k-1", {"topic": "hot"})
                server.get("/healthz")
                self.assertEqual(server.stop(), 1)  # and not by a signal
                wire.close()
        again = Server(self)
        self.assertEqual(self.final([again], "k-1", {"topic": "hot"}).status, 201)
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_who_is_gone_takes_no_place(self):  # K10
        server = Server(self, "http.limits.connections=20", "http.limits.request=60s", "http.limits.idle=60s")
        whole = (b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 13\r\n\r\n{\"topic\":\"a\"}")
        for number in range(60):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire:
                wire.sendall(whole[:1 + number * 3])
        end, answer = time.monotonic() + 30, None
        while not answer:  # while there is no place, some are turned away
            self.assertLess(time.monotonic(), end)
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = server.ask("GET", "/healthz", timeout=5)
        self.assertEqual(answer.status, 200)

    def test_who_closes_only_its_own_side_hears_the_answer(self):
        server = Server(self)
        with self.hot_row_locked():  # it is looked at meanwhile
            wire = self.begin(server, "k-hot", {"topic": "hot"})
            wire.shutdown(socket.SHUT_WR)
            self.assertEqual(select.select([wire], [], [], 2.5)[0], [])
        self.assertEqual(self.finish(wire), b"201")

    def test_sighup_reads_contracts_again_and_a_bad_one_changes_nothing(self):
        server = Server(self)
        self.assertEqual(server.send("k-1", HELLO, "late").status, 404)
        self.note("late", "")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reloaded")
        self.assertEqual(server.send("k-1", HELLO, "late").status, 201)
        self.file("bad.yaml", "command: bad\nversion: nonsense\n")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reload_refused")
        self.assertIn("bad.yaml", server.logged("serve.reload_refused")[0]["reason"])
        self.assertEqual(server.send("k-2", HELLO, "late").status, 201)
        self.assertEqual(server.stop(), 0)

    # ---- Logs -----------------------------------------------------------------------------------

    def stalled(self, *settings):
        """A server whose log nobody reads; the end where it could be read."""
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        server = Server(self, *settings, stderr=theirs)
        os.close(theirs)
        return server, ours

    def ask_often(self, server, count):
        """Over one connection, many at a time."""
        one = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Correlation-Id: %s\r\n\r\n" % (120 * b"c")
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire, wire.makefile("rb") as answers:
            for _ in range(count // 50):
                wire.sendall(50 * one)
                for _ in range(50):
                    size = None
                    self.assertTrue(answers.readline().startswith(b"HTTP/1.1 200"))
                    while (line := answers.readline()) != b"\r\n":
                        size = int(line.split()[1]) if line.lower().startswith(b"content-length") else size
                    answers.read(size)

    def test_a_log_that_nobody_reads_stops_nobody(self):  # K10
        server, _ = self.stalled()
        self.ask_often(server, 2000)  # a pipe takes a hundred lines
        self.assertEqual(server.send("k-1", HELLO).status, 201)
        self.assertEqual(server.stop(), 0)

    def test_a_server_whose_readers_have_ended_goes_on(self):  # K10
        ours, theirs = os.pipe()
        server = Server(self, stderr=theirs)
        os.close(theirs)
        os.close(ours)
        server.process.stdout.close()
        self.ask_often(server, 500)
        self.assertEqual(server.send("k-1", HELLO).status, 201)
        self.assertEqual(server.stop(), 0)

    def test_what_a_log_had_no_room_for_is_counted_there(self):
        server, pipe = self.stalled()
        asked = 0
        while asked < 40000 and asked * 420 < 6 << 20:
            self.ask_often(server, 1000)
            asked += 1000
        lines, rest = [], b""
        while not any(line["event"] == "log.dropped" for line in lines):
            self.assertTrue(select.select([pipe], [], [], LIMIT_S)[0], "no line tells of what was dropped")
            *whole, rest = (rest + os.read(pipe, 1 << 16)).split(b"\n")
            lines += map(json.loads, whole)
        dropped = sum(line["lines"] for line in lines if line["event"] == "log.dropped")
        told = sum(line["event"] == "http.request" for line in lines)
        self.assertEqual(dropped + told, asked)
        self.ask_often(server, 50)
        self.assertEqual(server.process.poll(), None)

    # ---- Hostile input --------------------------------------------------------------------------

    def test_hostile_input_gets_a_clear_answer_and_does_nothing(self):
        server, hasty = Server(self, "http.limits.body=64KiB"), Server(self, "http.limits.request=1s")
        head = b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"
        plain = b"{\"topic\":\"a\"}"
        cases = {
            "both lengths": (head + b"Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400,)),
            "two lengths": (head + b"Content-Length: 13\r\nContent-Length: 14\r\n\r\n" + plain, (400,)),
            "odd encoding": (head + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", (400, 501)),
            "bad chunk": (head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + plain, (400,)),
            "absurd length": (head + b"Content-Length: 99999999999999999999\r\n\r\n", (400, 413)),
            "large body": (head + b"Content-Length: 70000\r\n\r\n", (413,)),
            "large chunks": (head + b"Transfer-Encoding: chunked\r\n\r\n" + 20 * (b"1000\r\n" + 4096 * b"x" + b"\r\n") +
                             b"0\r\n\r\n", (413,)),
            "many headers": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(20000)) +
                             b"\r\n", (400, 413, 431)),
            "bad UTF-8": (head + b"Content-Length: 13\r\n\r\n{\"topic\":\"\xff\"}", (400,)),
            "deep nesting": (head + b"Content-Length: 2000\r\n\r\n" + 1000 * b"[" + 1000 * b"]", (400, 413)),
            "huge number": (head + b"Content-Length: 6020\r\n\r\n" + b"{\"topic\":\"a\",\"amount\":%s}" % (5997 * b"9"),
                            (400, 413, 422)),
            "NUL in key": (head.replace(b"k\r\n", b"k\0k\r\n", 1) + b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            # Blanks that are missing elsewhere do not make room for it.
            "NUL behind plain lines": (head.replace(b"k\r\n", b"k\0k\r\n", 1) + b"".join(b"X-%d:y\r\n" % n for n in range(30)) +
                                       b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            # Nor do lines that end with less.
            "NUL behind bare line feeds": (head.replace(b"k\r\n", b"k\0k\r\n", 1).replace(b"Host: x\r\n", b"Host: x\nA: 1\nB: 1\n") +
                                           b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            "bare line feed": (head.replace(b"Host: x\r\n", b"Host: x\n") + b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            "bare line feed at the end": (head + b"Content-Length: 13\r\n\n" + plain, (400,)),
            "bare line feed at the beginning": (head.replace(b"1.1\r\n", b"1.1\n") + b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            "two hosts": (head + b"Host: y\r\nContent-Length: 13\r\n\r\n" + plain, (400,)),
            "two actors": (head + b"Ibid-Actor: a\r\nIbid-Actor: b\r\nContent-Length: 13\r\n\r\n" + plain, (400,)),
            "control in a query": (head.replace(b"/note ", b"/note?a=\x01 ") + b"Content-Length: 13\r\n\r\n" + plain, (400,)),
            "carriage return": (head + b"X-A: a\rX-B: b\r\nContent-Length: 13\r\n\r\n" + plain, (400,)),
            "no type": (b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 13\r\n\r\n" +
                        plain, (415,)),
            "empty body": (head + b"Content-Length: 0\r\n\r\n", (400,)),
            "path tricks": (b"GET /v1/../healthz HTTP/1.1\r\nHost: x\r\n\r\n", (404,)),
            "encoded NUL": (b"GET /v1/operations/%00 HTTP/1.1\r\nHost: x\r\n\r\n", (400,)),
            "bad escape": (b"GET /v1/operations/%4 HTTP/1.1\r\nHost: x\r\n\r\n", (400,)),
            "no HTTP": (b"nonsense\r\n\r\n", (400, None)),
            "slow head": (b"GET /healthz HTTP/1.1\r\nHost:", (None, 408)),
            "slow body": (head + b"Content-Length: 13\r\n\r\n{", (None, 408)),
        }
        for name, (data, wanted) in cases.items():
            got = (hasty if name.startswith("slow") else server).raw(data)
            status = int(got.split(b" ")[1]) if got.startswith(b"HTTP/") else None
            self.assertIn(status, wanted, (name, got[:300]))
        self.assertEqual(server.send("k", HELLO).status, 201)  # still there, and nothing was done under the key
        self.assertEqual(self.counts(), (1, 1, 1))
        self.assertIsNone(server.process.poll())

    def test_who_reads_its_answers_slowly_is_cut_off(self):
        """Each answer would fit into what the kernel keeps, all of them do not: the server waits for the client."""
        hasty, patient = Server(self, "http.limits.request=1s"), Server(self, "http.limits.request=60s")
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        asks, answers = 200, {}
        for server in (hasty, patient):
            pieces, more = [], True
            with socket.socket() as wire, contextlib.suppress(ConnectionResetError):
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                wire.settimeout(LIMIT_S)
                wire.connect(("127.0.0.1", server.port))
                wire.sendall((asks - 1) * ask + ask.replace(b"Host", b"Connection: close\r\nHost"))
                end = time.monotonic() + 4
                while more:
                    slowly = time.monotonic() < end  # and steadily, so that it is never idle
                    more = wire.recv(64 if slowly else 1 << 20)
                    pieces.append(more)
                    time.sleep(0.05 if slowly else 0)
            answers[server] = b"".join(pieces).count(b"HTTP/1.1 200")
            self.assertEqual(server.get("/healthz").status, 200)
        self.assertEqual(answers[patient], asks)
        self.assertLess(answers[hasty], asks)

    def test_a_head_may_come_in_pieces(self):
        server = Server(self)
        data = (b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nIbid-Actor:\r\n" +
                b"".join(b"X-%d:%s\r\n" % (n, n * b"y") for n in range(100)) +
                b"Connection: close\r\nContent-Length: 13\r\n\r\n{\"topic\":\"a\"}")
        with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire:
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(data), 7):
                wire.sendall(data[at:at + 7])
            self.assertEqual(self.finish(wire), b"201")
        self.assertEqual(self.number("select actor from " + self.ledger("command")), "local")

    def test_what_a_client_writes_is_never_told_as_broken_json(self):
        server = Server(self)
        head = b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\nContent-Type: "
        for data, status in ((b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400), (b"GET /problems/%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                             (b"GET /v1/commands/note/%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                             (b"GET /v1/commands?key=%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                             (b"POST /v1/commands/%ff HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 400),
                             (head + b"\xff\r\n\r\n{}", 415)):
            got = server.raw(data)
            self.assertEqual(int(got.split(b" ")[1]), status, got)
            self.assertEqual(json.loads(got.partition(b"\r\n\r\n")[2].decode())["status"], status)

    def test_braces_in_a_path_are_no_parameters(self):
        server = Server(self)
        for path in ("/{x}", "/{x", "/topics/{topic}/{notes}", "/{topics}/a/notes", "/v1/{commands}/note", "/v1/commands/{x}"):
            self.assertEqual(server.send("k", HELLO, path=path).status, 404, path)
        for path in ("/{x}", "/{", "/{healthz}", "/v1/{x}"):
            self.assertEqual(server.get(path).status, 404, path)
        self.assertEqual(self.counts(), (0, 0, 0))
        self.assertEqual(server.send("k", {}, path="/topics/{a}/notes").status, 201)  # there it is a value
        self.assertEqual(self.number("select count(*) from note where topic = '{a}'"), 1)

    def test_whoever_runs_a_command_can_be_answered(self):
        """However much of a connection's memory the request takes."""
        ran = 0
        for limit in (4096, 32768):
            server = Server(self, "http.limits.headers=%d" % limit)
            for extra in [b"X-P: %s\r\n" % (n * b"p") for n in range(limit - 500, limit + 100, 12)] + [
                    n * b"a:b\r\n" for n in (100, 120, 122, 123, 124, 125, 200, 300)]:
                got = server.raw(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k-%d-%s\r\nContent-Type: "
                                 b"application/json\r\nConnection: close\r\n%sContent-Length: 13\r\n\r\n{\"topic\":\"a\"}" %
                                 (limit, uuid.uuid4().hex.encode(), extra))
                status = int(got.split(b" ")[1]) if got else None
                self.assertIn(status, (201, 400), (limit, extra[:9], len(extra), got[:300]))
                ran += status == 201
        self.assertEqual(self.counts(), (ran, ran, ran))
        self.assertGreater(ran, 20)

    def test_settings_that_can_not_be_are_refused(self):
        for setting, said in (("http.threads=0", "http.threads is `0`"), ("http.listn=x", "there is no setting http.listn"),
                              ("http.listen=8080", "it must be an address and a port"), ("nonsense", "write NAME=VALUE"),
                              ("http.listen=0.0.0.0:0", "on loopback only"), ("http.limits.body=1GB", "a number of bytes"),
                              ("http.limits.memory=1MiB", "from 4194304"), ("http.limits.memory=lots", "a number of bytes"),
                              ("http.listen=127.0.0.1:99999", "65535 at most"), ("http.listen=127.0.0.1:8080x", "65535 at most"),
                              ("http.open.tenant=" + 129 * "t", "128 bytes at most"),
                              ("http.tls.key=/nonexistent", "http.tls.certificate is missing")):
            with self.assertRaises(AssertionError) as caught:
                Server(self, setting)
            self.assertIn(said, str(caught.exception))
        for variable in ("IBID_HTTP_NOPE", "IBID_UPSTREAM_LIMITS", "IBID_RELAY_DESTINATIONS_X"):
            with self.assertRaises(AssertionError) as caught:
                Server(self, env={variable: "1"})
            self.assertIn("there is no setting for " + variable, str(caught.exception))
        Server(self, env={"IBID_HTTP_DRAIN": "2s", "IBID_HTTPS": "1", "IBID_ELSE": "1"}).get("/healthz")


class ServeSqlite(Serve, Sqlite, unittest.TestCase):
    def keep_body(self, identity, body):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
            db.execute("insert into ibid_answer (tenant, command_id, body) select tenant, id, ? from ibid_command "
                       "where id = ?", (body, identity))


class ServePostgres(Serve, Postgres, unittest.TestCase):
    def keep_body(self, identity, body):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute("insert into ibid.answer (tenant, command_id, attempts, body) select tenant, id, attempts, %s "
                           "from ibid.command where id = %s", (body, identity))


if __name__ == "__main__":
    unittest.main()
