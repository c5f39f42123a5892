# SPDX-License-Identifier: Apache-2.0
"""`ibid proxy` in front of a service that knows nothing of retries, on both stores (B03, B06, B11)."""
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import unittest

from proxy_bed import INQUIRY, NOT_NOW, Proxied, RawService, Service, Wire
from serve_bed import BIN, KEY_VALUES, Clock, LIMIT_S, MEASURED, Postgres, Server, Sqlite, over_tls


class Proxy(Proxied):
    # ---- A service that works -------------------------------------------------------------------

    def test_a_retry_gets_the_services_answer_and_is_not_sent_on(self):  # B03
        server = self.proxy()
        first = self.order(server, "k-1", {"item": "tea"})
        self.assertEqual((first.status, first.body), (201, b'{"order":   1}'), first)
        self.assertEqual(first.headers["Content-Type"], "application/json; charset=utf-8")
        self.assertEqual((first.headers["Location"], first.headers["ETag"]), ("/orders/1", '"e1"'))
        for name in ("Set-Cookie", "X-Secret", "Idempotent-Replayed"):
            self.assertIsNone(first.headers[name], name)
        self.assertEqual(server.stop(), 0)
        server = self.proxy()
        again = self.order(server, "k-1", ' {"item":"tea"}')
        self.assertEqual((again.status, again.body), (first.status, first.body))
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        for name in ("Content-Type", "Location", "ETag", "Ibid-Command-Id"):
            self.assertEqual(again.headers[name], first.headers[name], name)
        for name in ("Set-Cookie", "X-Secret"):
            self.assertIsNone(again.headers[name], name)
        self.assertEqual(self.service.times("k-1"), 1)
        self.assertEqual(self.number("select count(*) from " + self.ledger("audit")), 1)

    def test_what_was_sent_arrives_as_it_was_sent(self):
        server = self.proxy()
        answer = self.order(server, "k-1", '{ "item" : "tea" }', X_Custom="a b", Accept_Encoding="gzip",
                            Keep_Alive="timeout=5", TE="trailers", X_HTTP_Method_Override="DELETE", X_Empty="",
                            X_Forwarded_For="10.0.0.1", X_Forwarded_Proto="https")
        self.assertEqual(answer.status, 201, answer)
        method, path, headers, body = self.service.seen[0]
        self.assertEqual((method, path, body), ("POST", "/orders", b'{ "item" : "tea" }'))
        self.assertEqual((headers["X-Custom"], headers["X-Empty"], headers["Content-Type"], headers["Ibid-Client-Key"]),
                         ("a b", "", "application/json", "k-1"))
        self.assertEqual(len(headers.get_all("Idempotency-Key")), 1)
        self.assertRegex(headers["Idempotency-Key"], "^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$")
        self.assertEqual(headers["Ibid-Command-Id"], answer.headers["Ibid-Command-Id"])
        self.assertEqual(headers["Host"], "127.0.0.1:%d" % self.service.port)
        self.assertEqual((headers["X-Forwarded-For"], headers["X-Forwarded-Proto"], headers["X-Forwarded-Host"],
                          headers["Via"]), ("10.0.0.1, 127.0.0.1", "http", "127.0.0.1:%d" % server.port, "1.1 ibid"))
        for name in ("Accept-Encoding", "Keep-Alive", "TE", "X-HTTP-Method-Override", "Expect", "Authorization"):
            self.assertIsNone(headers[name], name)

    def test_the_service_is_a_child_of_our_span(self):  # K02
        server = self.proxy("upstream.other=all")
        trace = "0af7651916cd43dd8448eb211c80319c"
        for path in ("/orders", "/pages"):
            answer = self.order(server, "k-1", {}, path, traceparent="00-%s-b7ad6b7169203331-01" % trace, tracestate="a=1")
            self.assertEqual(answer.status, 201, answer)
            headers = self.service.seen[-1][2]
            self.assertRegex(headers["traceparent"], "^00-%s-[0-9a-f]{16}-01$" % trace)
            self.assertNotIn("b7ad6b7169203331", headers["traceparent"])
            self.assertEqual((len(headers.get_all("traceparent")), headers["tracestate"]), (1, "a=1"))
            if path == "/orders":
                self.assertEqual(answer.headers["traceresponse"], headers["traceparent"])

    def test_another_body_path_or_query_under_the_same_key_is_a_conflict(self):  # B04
        self.contract("amend-order", "PUT /orders/{order}", fields="  /order: { type: text, required: true }")
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {"item": "tea"}).status, 201)
        for document, path in (({"item": "milk"}, "/orders"), ({"item": "tea"}, "/orders?express=1")):
            other = self.order(server, "k-1", document, path)
            self.assertEqual((other.status, other.json["type"]), (409, "/problems/key-reused"), other)
        headers = {"Idempotency-Key": "k-2", "Content-Type": "application/json"}
        self.assertEqual(server.ask("PUT", "/orders/7", "{}", headers).status, 201)
        self.assertEqual(server.ask("PUT", "/orders/8", "{}", headers).json["type"], "/problems/key-reused")
        self.assertEqual(server.ask("PUT", "/orders/7", "{}", headers).status, 201)
        self.assertEqual(len(self.service.executed), 2)

    def test_bodies_that_are_no_json_object_are_compared_by_their_bytes(self):
        server = self.proxy()
        for key, body, kind in (("k-xml", b"<a/>", "text/xml"), ("k-bytes", bytes(range(256)), "application/x-any"),
                                ("k-list", b"[1, 2]", "application/json")):
            headers = {"Idempotency-Key": key, "Content-Type": kind}
            first = server.ask("POST", "/orders", body, headers)
            self.assertEqual(first.status, 201, first)
            self.assertEqual(self.service.seen[-1][3], body)
            self.assertEqual(server.ask("POST", "/orders", body, headers).body, first.body)
            self.assertEqual(server.ask("POST", "/orders", body + b" ", headers).status, 409)
            self.assertEqual(server.ask("POST", "/orders", body, dict(headers, **{"Content-Type": "text/x"})).status,
                             409)
            self.assertEqual(self.service.times(key), 1)
        for name in ("@query", "@type", "@body"):  # ours: a body that has them could be taken for another request
            named = self.order(server, "k-named", {name: "x"})
            self.assertEqual(named.status, 400, named)
        broken = server.ask("POST", "/orders", b'{"item":', {"Idempotency-Key": "k-b", "Content-Type": "application/json"})
        self.assertEqual(broken.status, 400, broken)
        named = server.ask("POST", "/orders?a", b'{"@query":"a"}', {"Idempotency-Key": "k-b", "Content-Type": "application/json"})
        self.assertEqual(named.status, 400, named)

    def test_declared_fields_are_checked_before_anything_is_sent(self):
        server = self.proxy()
        for _ in range(2):
            wrong = self.order(server, "k-1", {"item": 7})
            self.assertEqual((wrong.status, wrong.json["code"]), (422, "INVALID_PAYLOAD"), wrong)
        self.assertEqual(self.service.seen, [])

    def test_answers_of_every_kind_are_replayed_byte_for_byte(self):
        server = self.proxy()
        for mode, status, body in (("binary", 200, bytes(range(256))), ("controls", 200, b"\x01" * 800000),
                                   ("packed", 200, b"\x1f\x8b packed"), ("moved", 303, b""), ("empty", 204, b""),
                                   ("invalid", 422, b'{"wrong":  "item"}'), ("conflict", 409, b"it is there")):
            answers = [self.order(server, "k-" + mode, {"mode": mode}) for _ in range(3)]
            self.assertEqual({(answer.status, answer.body) for answer in answers}, {(status, body)}, answers)
            self.assertEqual([answer.headers["Idempotent-Replayed"] for answer in answers], [None, "true", "true"])
            self.assertEqual(len({(answer.headers["Content-Type"], answer.headers["Location"]) for answer in answers}), 1)
            self.assertEqual({answer.headers["Content-Encoding"] for answer in answers}, {"gzip" if mode == "packed" else None})
            self.assertEqual(sum(1 for seen in self.service.seen if seen[2]["Ibid-Client-Key"] == "k-" + mode), 1)
        self.assertEqual((self.state("k-binary"), self.state("k-invalid")), ("COMPLETED", "REJECTED"))

    def test_an_answer_that_is_too_large_is_not_kept_but_known(self):
        server = self.proxy()
        answers = [self.order(server, "k-1", {"mode": "large"}) for _ in range(2)]
        for answer in answers:
            self.assertEqual((answer.status, answer.json["type"]), (502, "/problems/answer-too-large"), answer)
        self.assertEqual(answers[0].body, answers[1].body)
        self.assertEqual((self.state("k-1"), self.service.times("k-1")), ("COMPLETED", 1))

    def test_headers_of_an_answer_are_told_again_or_known_to_be_too_large(self):
        server = self.proxy()
        for size, status in ((15000, 201), (16384, 502), (60000, 502)):
            answers = [self.order(server, "k-%d" % size, {"mode": "head-%d" % size}) for _ in range(2)]
            for answer in answers:
                self.assertEqual(answer.status, status, answer)
                if status == 201:
                    self.assertEqual(answer.headers["ETag"], '"%s"' % (size * "e"))
                else:
                    self.assertEqual(answer.json["type"], "/problems/answer-too-large")
            self.assertEqual(answers[0].body, answers[1].body)
            self.assertEqual((self.state("k-%d" % size), self.service.times("k-%d" % size)), ("COMPLETED", 1))
            passed = server.get("/head=%d" % size)
            self.assertEqual(passed.status, 200 if status == 201 else 502, passed)
            self.assertEqual(passed.body if status == 201 else passed.json["type"],
                             b"page" if status == 201 else "/problems/upstream")

    def test_who_may_not_or_not_now_gets_no_outcome(self):  # B03
        server = self.proxy()
        for mode, status in NOT_NOW.items():
            key = "k-" + mode
            for _ in range(2):  # each is asked of the service again
                answer = self.order(server, key, {"mode": mode, "item": "x"})
                self.assertEqual((answer.status, answer.body), (status, b"not now"), answer)
                self.assertEqual((answer.headers["Retry-After"], answer.headers["WWW-Authenticate"]), ("7", "Basic"))
                self.assertIsNone(answer.headers["Idempotent-Replayed"])
            self.assertEqual(sum(1 for seen in self.service.seen if seen[2]["Ibid-Client-Key"] == key), 2)
            self.assertEqual(self.state(key), "FAILED")

    def test_no_outcome_is_told_as_one_because_it_is_large(self):  # B03
        server = self.proxy()
        for _ in range(2):
            answer = self.order(server, "k-1", {"mode": "busy-large"})
            self.assertEqual((answer.status, answer.json["type"], answer.headers["Idempotent-Replayed"]),
                             (503, "/problems/failed", None), answer)
        self.assertEqual(len(self.service.seen), 2)
        self.assertEqual(self.state("k-1"), "FAILED")

    def test_a_status_that_nobody_knows_is_unknown(self):
        self.contract("final", "POST /final", error="keep", inquiry="", recover="human", strategy="key")
        server = self.proxy()
        for status in (600, 999):
            for _ in range(2):
                answer = self.order(server, "k-%d" % status, {"mode": "say-%d" % status}, "/final")
                self.assertEqual(answer.status, 502, answer)
            self.assertEqual(self.state("k-%d" % status), "UNKNOWN")
        self.assertEqual(len(self.service.seen), 2)

    def test_409_and_5xx_are_what_the_contract_says(self):
        self.contract("again", "POST /again", conflict="retry", error="retry")
        self.contract("final", "POST /final", error="keep")
        self.contract("lenient", "POST /lenient", fields="failures: { validation: final, business: retry, server: retry }")
        server = self.proxy()
        for mode, status in (("conflict", 409), ("error", 500)):
            for _ in range(2):
                answer = self.order(server, "k-" + mode, {"mode": mode}, "/again")
                self.assertEqual((answer.status, answer.headers["Idempotent-Replayed"]), (status, None), answer)
            self.assertEqual(sum(1 for seen in self.service.seen if seen[2]["Ibid-Client-Key"] == "k-" + mode), 2)
        for _ in range(2):
            answer = self.order(server, "k-lenient", {"mode": "invalid"}, "/lenient")
            self.assertEqual((answer.status, answer.headers["Idempotent-Replayed"]), (422, None), answer)
        self.assertEqual(sum(1 for seen in self.service.seen if seen[2]["Ibid-Client-Key"] == "k-lenient"), 2)
        answers = [self.order(server, "k-final", {"mode": "error"}, "/final") for _ in range(2)]
        self.assertEqual([(answer.status, answer.body) for answer in answers], [(500, b"oh")] * 2)
        self.assertEqual(self.service.times("k-final"), 1)

    # ---- Many at once ---------------------------------------------------------------------------

    def test_twenty_copies_at_once_are_sent_on_once(self):  # B12
        server = self.proxy()
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: self.order(server, "k-1", {"item": "tea"}), range(20)))
        self.assertEqual(self.service.times("k-1"), 1)
        done = {(answer.status, answer.body) for answer in answers if answer.status == 201}
        self.assertEqual(done, {(201, b'{"order":   1}')}, answers)
        for answer in answers:
            self.assertIn(answer.status, (201, 409), answer)
            if answer.status == 409:
                self.assertEqual(answer.json["type"], "/problems/in-progress")
                self.assertEqual(answer.headers["Retry-After"], "1")

    def test_hundreds_wait_for_the_service_while_others_are_served(self):  # K10
        self.contract("slowly", "POST /slowly", deadline="50s", lease="60s")
        server = self.proxy("http.threads=2", "upstream.calls=100")
        with concurrent.futures.ThreadPoolExecutor(120) as pool:
            waiting = [pool.submit(self.order, server, "k-%d" % i, {"mode": "slow"}, "/slowly") for i in range(100)]
            end = time.monotonic() + LIMIT_S
            while len(self.service.executed) < 100:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            began = time.monotonic()
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertEqual(server.send("n-1", {"topic": "t"}).status, 201)  # the ledger is not held up
            self.assertLess(time.monotonic() - began, 5)
            full = self.order(server, "k-full", {"mode": "slow"}, "/slowly")
            self.assertEqual((full.status, full.json["type"]), (503, "/problems/unavailable"), full)
            self.service.free.set()
            self.assertEqual({future.result().status for future in waiting}, {201})
        self.assertEqual(self.order(server, "k-full", {"mode": "slow"}, "/slowly").status, 201)
        self.assertEqual(len(self.service.executed), 101)

    # ---- A service that does not answer ---------------------------------------------------------

    def test_what_was_executed_and_not_answered_is_found_out(self):  # (b), (d); E04
        server = self.proxy()
        for mode in ("drop", "error", "half"):
            key = "k-" + mode
            # A connection that could be used again, and would break: nothing is sent again on a new one.
            self.assertEqual(self.order(server, "before-" + mode, {"item": "x"}).status, 201)
            first = self.order(server, key, {"mode": mode})
            self.assertEqual((first.status, first.json["type"]), (502, "/problems/upstream-unknown"), first)
            self.assertEqual((first.json["status"], first.json["commandId"]), (502, first.headers["Ibid-Command-Id"]))
            self.assertIn("answered 500" if mode == "error" else "no whole answer came", first.json["detail"])
            where = first.headers["Location"]
            self.assertIn(server.get(where).json["state"], ("UNKNOWN", "COMPLETED"))
            found = self.await_answer(server, key, {"mode": mode}, 200)
            self.assertEqual(found.body, b'{"order": %d}' % len(self.service.executed))
            self.assertEqual(found.headers["Location"], "/orders/%d" % len(self.service.executed))
            self.assertEqual(found.headers["Idempotent-Replayed"], "true")
            self.assertEqual(self.service.times(key), 1)
            self.assertEqual(server.get(where).json["state"], "COMPLETED")
        self.assertEqual(self.number("select count(*) from %s where state = 'OPEN'" % self.ledger("exception")), 0)
        self.assertEqual(self.number("select count(*) from %s where resolution = 'confirmed-executed'" %
                                     self.ledger("exception")), 3)

    def test_two_clients_with_the_same_key_are_two_commands_to_the_service(self):
        server = self.proxy()
        tokens = [self.token(client) for client in ("alice", "bob")]
        lost = self.order(server, "k-1", {"mode": "refuse-silently"}, Authorization="Bearer " + tokens[0])
        self.assertEqual(lost.status, 502, lost)
        self.assertEqual(self.order(server, "k-1", {"item": "bob's"}, Authorization="Bearer " + tokens[1]).status, 201)
        end = time.monotonic() + LIMIT_S
        while self.number("select count(*) from %s where state = 'UNKNOWN'" % self.ledger("command")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(self.number("select count(*) from %s where state = 'FAILED' and client = 'alice'" %
                                     self.ledger("command")), 1)  # bob's order was not taken for hers
        self.assertEqual(len({seen[2]["Idempotency-Key"] for seen in self.service.seen if seen[0] == "POST"}), 2)

    def test_what_was_not_executed_may_be_sent_again_with_the_same_key(self):
        server = self.proxy()
        first = self.order(server, "k-1", {"mode": "refuse-silently"})
        self.assertEqual(first.status, 502, first)
        end = time.monotonic() + LIMIT_S
        while self.state("k-1") != "FAILED":
            self.assertLess(time.monotonic(), end, self.state("k-1"))
            time.sleep(0.05)
        sent = len([seen for seen in self.service.seen if seen[0] == "POST"])
        self.assertEqual(sent, 1)
        self.assertEqual(self.order(server, "k-1", {"mode": "refuse-silently"}).status, 502)
        self.assertEqual(len([seen for seen in self.service.seen if seen[0] == "POST"]), 2)

    def test_a_service_that_hangs_is_waited_for_once(self):  # (c)
        self.contract("hasty", "POST /hasty", deadline="500ms")
        self.service.inquiry_answers = False
        server = self.proxy()
        for _ in range(3):
            answer = self.retry(server, "k-1", {"mode": "hang"}, "/hasty")
            self.assertEqual((answer.status, answer.json["type"]), (504, "/problems/upstream-unknown"), answer)
            shown = server.get(answer.headers["Location"]).json
            self.assertEqual((shown["state"], shown["awaits"]),
                             ("UNKNOWN", "the service, which is asked whether it was done"))
        self.assertEqual(self.service.times("k-1"), 1)
        self.await_inquiries(3)
        times = self.service.inquiries
        self.assertGreater(min(later - earlier for earlier, later in zip(times, times[1:])), 0.9)  # backoff: 1s at least
        self.service.inquiry_answers = True
        self.assertEqual(self.await_answer(server, "k-1", {"mode": "hang"}, 200, "/hasty").body, b'{"order": 1}')
        self.assertEqual(self.service.times("k-1"), 1)

    def test_what_nobody_knows_is_no_success_to_a_client(self):  # B03 E04
        """An error, a broken and a late answer: 502 or 504 of a type of its own, with the operation and a Retry-After that
        grows up to five minutes; a retry hears the same, also from another process, and reaches the service never."""
        self.contract("hasty", "POST /hasty", deadline="300ms", inquiry=INQUIRY % "0s")
        self.service.inquiry_answers = False
        clock = Clock(self)
        server = self.proxy(clock=clock)
        kinds = {"error": ("/orders", 502, "UPSTREAM_ERROR"), "half": ("/orders", 502, "UPSTREAM_SILENT"),
                 "drop": ("/orders", 502, "UPSTREAM_SILENT"), "hang": ("/hasty", 504, "UPSTREAM_TIMEOUT")}
        first = {}

        def pauses():
            longest = []
            for mode, (path, status, code) in kinds.items():
                answer = self.retry(server, "k-" + mode, {"mode": mode}, path)
                first.setdefault(mode, answer)
                said = answer.json
                self.assertEqual((answer.status, said["type"], said["status"], said["code"], said["commandId"]),
                                 (status, "/problems/upstream-unknown", status, code, answer.headers["Ibid-Command-Id"]))
                self.assertEqual(answer.body, first[mode].body)
                self.assertEqual(answer.headers["Location"], "/v1/operations/" + said["commandId"])
                self.assertEqual(server.get(answer.headers["Location"]).json["state"], "UNKNOWN")
                self.assertIsNone(answer.headers["Idempotent-Replayed"])
                longest.append(int(answer.headers["Retry-After"]))
                self.assertEqual(self.service.sent("k-" + mode), 1)
            return longest

        pauses()
        self.assertEqual({answer.headers["Retry-After"] for answer in first.values()}, {"1"})
        grown = []
        for seconds in (20, 100, 500):
            clock.advance(seconds)
            grown.append(max(pauses()))
        self.assertEqual((grown, grown[-1]), (sorted(grown), 300))
        self.assertGreater(grown[0], 1)
        self.assertEqual(server.stop(), 0)
        server = self.proxy(clock=clock)
        self.assertEqual(max(pauses()), 300)
        self.service.inquiry_answers = True
        for mode, (path, _, _) in kinds.items():
            found = self.await_answer(server, "k-" + mode, {"mode": mode}, 200, path)
            self.assertEqual((found.headers["Idempotent-Replayed"], self.service.times("k-" + mode)), ("true", 1))

    def test_what_nobody_knows_is_accepted_where_the_contract_says_so(self):  # E04
        self.contract("polite", "POST /polite", deadline="300ms", wait="unknown: accepted")
        self.service.inquiry_answers = False
        server = self.proxy()
        for mode in ("error", "drop", "hang"):
            for _ in range(2):
                answer = self.retry(server, "k-" + mode, {"mode": mode}, "/polite")
                self.assertEqual((answer.status, answer.json["type"], answer.json["code"]),
                                 (202, "/problems/outcome-unknown", "OUTCOME_UNKNOWN"), answer)
                self.assertEqual(server.get(answer.headers["Location"]).json["state"], "UNKNOWN")
                self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
            self.assertEqual(self.service.sent("k-" + mode), 1)

    def test_not_executed_is_not_believed_before_it_has_settled(self):
        """The request is still on its way in the service when that is asked: its 404 is true, and proves nothing."""
        self.contract("hasty", "POST /hasty", deadline="300ms", inquiry=INQUIRY % "30m")
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {"mode": "late"}, "/hasty").status, 504)
        self.await_inquiries(2)
        self.assertEqual(self.retry(server, "k-1", {"mode": "late"}, "/hasty").status, 504)
        self.assertEqual((self.service.times("k-1"), self.state("k-1")), (0, "UNKNOWN"))
        self.service.free.set()  # now it is carried out
        self.assertEqual(self.await_answer(server, "k-1", {"mode": "late"}, 200, "/hasty").body, b'{"order": 1}')
        self.assertEqual(self.service.times("k-1"), 1)

    def test_not_executed_is_not_believed_if_the_service_was_asked_too_early(self):  # I4, E04
        """Its answer takes long: when it comes, the attempt has settled, but the service was asked before that."""
        self.contract("slow-inquiry", "POST /slow", deadline="5s", lease="9s", inquiry=INQUIRY % "30m")
        clock = Clock(self)
        server = self.proxy(clock=clock)
        self.assertEqual(self.order(server, "k-1", {"mode": "leave-late"}, "/slow").status, 502)
        server.await_logged("upstream.inquiry", 1)
        self.service.absent_may_go.clear()
        self.await_inquiries(2)
        clock.advance(31 * 60)
        self.service.free.set()
        while not self.service.times("k-1"):
            time.sleep(0.01)
        self.service.absent_may_go.set()
        self.await_state("k-1", "COMPLETED")
        self.assertEqual([entry.get("status") for entry in server.logged("upstream.inquiry")][:2], [404, 404])
        self.assertEqual(self.order(server, "k-1", {"mode": "leave-late"}, "/slow").headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.service.times("k-1"), 1)

    def await_asked_again(self, clock, *servers):
        """Until each has asked about what is unknown twice more: the first answer may be of an inquiry that was on its way."""
        for _ in range(2):
            asked = [len(server.logged("upstream.inquiry")) for server in servers]
            clock.advance(3)  # the longest pause between two inquiries is 2 s
            for server, count in zip(servers, asked):
                server.await_logged("upstream.inquiry", count + 1)

    def test_each_attempt_settles_anew(self):  # I4, E04
        """The first attempt is lost, settles, and has rightly failed. The second is carried out late, but in time: what the
        proxies know of the first says nothing about it."""
        self.contract("hasty", "POST /hasty", deadline="300ms", inquiry=INQUIRY % "30m")
        clock, document = Clock(self), {"mode": "refuse-silently,late,work"}
        servers = [self.proxy(clock=clock) for _ in range(2)]
        self.assertEqual(self.order(servers[0], "k-1", document, "/hasty").status, 502)
        self.await_asked_again(clock, *servers)
        clock.advance(20 * 60)
        self.await_asked_again(clock, *servers)
        self.assertEqual(self.state("k-1"), "UNKNOWN")
        clock.advance(11 * 60)
        self.await_state("k-1", "FAILED")
        self.assertEqual(self.retry(servers[0], "k-1", document, "/hasty").status, 504)
        self.await_asked_again(clock, *servers)
        for server in servers:
            self.assertEqual(self.retry(server, "k-1", document, "/hasty").status, 504)
        self.assertEqual((self.state("k-1"), self.service.sent("k-1"), self.service.times("k-1")), ("UNKNOWN", 2, 0))
        # Who starts anew knows nothing of how long it has been: it waits for all of it.
        clock.advance(20 * 60)
        for server in servers:
            self.assertEqual(server.stop(), 0)
        server = self.proxy(clock=clock)
        self.await_asked_again(clock, server)
        clock.advance(20 * 60)
        self.await_asked_again(clock, server)
        self.assertEqual((self.state("k-1"), self.service.sent("k-1"), self.service.times("k-1")), ("UNKNOWN", 2, 0))
        self.service.free.set()
        self.assertEqual(self.await_answer(server, "k-1", document, 200, "/hasty").body, b'{"order": 1}')
        self.assertEqual((self.service.sent("k-1"), self.service.times("k-1")), (2, 1))

    def test_an_attempt_whose_proxy_died_settles_anew(self):  # I4, B06
        """The other proxy, which has seen the first attempt settle, takes over the lease of the second and asks at once."""
        self.contract("hasty", "POST /hasty", deadline="1s", lease="2s", inquiry=INQUIRY % "30m")
        clock, document = Clock(self), {"mode": "refuse-silently,late,work"}
        dies, lives = (self.proxy(clock=clock) for _ in range(2))
        self.assertEqual(self.order(dies, "k-1", document, "/hasty").status, 502)
        self.await_asked_again(clock, lives)
        clock.advance(31 * 60)
        self.await_state("k-1", "FAILED")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            lost = pool.submit(self.retry, dies, "k-1", document, "/hasty")
            while self.service.sent("k-1") < 2:
                time.sleep(0.01)
            dies.kill()
            with self.assertRaises((ConnectionError, http.client.HTTPException)):
                lost.result(LIMIT_S)
        self.await_state("k-1", "UNKNOWN")
        self.await_asked_again(clock, lives)
        self.assertEqual((self.state("k-1"), self.service.sent("k-1"), self.service.times("k-1")), ("UNKNOWN", 2, 0))
        self.service.free.set()
        self.assertEqual(self.await_answer(lives, "k-1", document, 200, "/hasty").body, b'{"order": 1}')
        self.assertEqual((self.service.sent("k-1"), self.service.times("k-1")), (2, 1))

    def test_a_clock_that_is_set_forward_ends_no_call(self):  # I4
        """To the store the lease has ended, and is taken over while the call goes on. The service, which has not begun, knows
        nothing of it: that is believed only when the call must be over by a clock that nobody sets."""
        self.contract("long", "POST /long", deadline="50s", lease="60s", inquiry=INQUIRY % "1s")
        clock, document = Clock(self), {"mode": "late,work"}
        server = self.proxy(clock=clock)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.order, server, "k-1", document, "/long")
            while not self.service.sent("k-1"):
                time.sleep(0.01)
            self.set_clock_of_store(clock)
            self.await_state("k-1", "UNKNOWN")
            for _ in range(4):
                self.await_asked_again(clock, server)
            self.assertEqual(self.retry(server, "k-1", document, "/long").status, 502)
            self.assertEqual((self.state("k-1"), self.service.sent("k-1")), ("UNKNOWN", 1))
            self.service.free.set()
            self.assertEqual(first.result(LIMIT_S).status, 502)
        self.assertEqual(self.await_answer(server, "k-1", document, 200, "/long").body, b'{"order": 1}')
        self.assertEqual((self.service.sent("k-1"), self.service.times("k-1")), (1, 1))

    def test_a_key_is_bare_or_a_string_of_rfc_8941(self):
        server = self.proxy()
        for value, wanted in KEY_VALUES:
            before = len(self.service.seen)
            got = server.raw(b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\nContent-Type: application/json\r\n"
                             b"Content-Length: 2\r\n\r\n{}" % value)
            if got.startswith(b"HTTP/1.1 201 "):
                command = re.search(rb"Ibid-Command-Id: (\S+)", got).group(1).decode()
                self.assertEqual(server.get("/v1/operations/" + command).json["key"], wanted, value)
            else:
                problem = json.loads(got.partition(b"\r\n\r\n")[2])
                self.assertEqual((problem["status"], len(self.service.seen)), (400, before), (value, got))
                self.assertIn(wanted or "", problem["detail"], value)

    def test_a_key_that_can_not_be_a_header_is_sent_without_it(self):
        self.contract("by-field", "POST /by-field", fields="  /ref: { type: text, required: true }")
        with open(os.path.join(self.contracts, "by-field.yaml"), encoding="utf-8") as handle:
            text = handle.read()
        self.file("by-field.yaml", text + "key: { from: [/ref], generated_by: client }\n")
        server = self.proxy()
        answers = [self.order(server, None, '{"ref":"a\\u007fb"}', "/by-field") for _ in range(2)]
        self.assertEqual([answer.status for answer in answers], [201, 201], answers)
        (_, _, headers, _), = self.service.seen
        self.assertIsNone(headers["Ibid-Client-Key"])
        self.assertEqual(len(headers.get_all("Idempotency-Key")), 1)

    def test_without_an_inquiry_a_person_has_to_look(self):
        self.contract("by-hand", "POST /by-hand", recover="human", inquiry="", strategy="key")
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {"mode": "drop"}, "/by-hand").status, 502)
        self.assertEqual(self.order(server, "k-1", {"mode": "drop"}, "/by-hand").status, 502)
        self.assertEqual((self.service.times("k-1"), self.state("k-1")), (1, "UNKNOWN"))
        self.assertEqual(self.number("select count(*) from %s where state = 'OPEN'" % self.ledger("exception")), 1)
        self.assertIn("a person", server.get(self.order(server, "k-1", {"mode": "drop"}, "/by-hand").headers["Location"])
                      .json["awaits"])

    def test_a_service_that_is_not_there_was_sent_nothing(self):
        server = self.proxy()
        self.service.server.server_close()  # nobody listens any more
        self.service.server.shutdown()
        for _ in range(2):
            answer = self.order(server, "k-1", {"item": "tea"})
            self.assertEqual((answer.status, answer.json["code"]), (502, "UPSTREAM_UNREACHABLE"), answer)
            self.assertEqual(answer.headers["Retry-After"], "1")
        self.assertEqual(self.state("k-1"), "FAILED")

    def test_a_proxy_that_is_killed_on_the_way_finds_out_when_it_is_back(self):  # B06
        self.contract("hang-long", "POST /hang-long", deadline="4s")
        self.contract("refuse-long", "POST /refuse-long", deadline="4s")
        clock = Clock(self)
        server = self.proxy(clock=clock)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            lost = [pool.submit(self.order, server, "k-1", {"mode": "hang"}, "/hang-long"),
                    pool.submit(self.order, server, "k-2", {"mode": "late"}, "/refuse-long")]
            end = time.monotonic() + LIMIT_S
            while len(self.service.seen) < 2:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            server.kill()
            for future in lost:
                self.assertIsInstance(future.exception(), (OSError, http.client.HTTPException))
        server = self.proxy(clock=clock)
        self.assertIn(self.order(server, "k-1", {"mode": "hang"}, "/hang-long").status, (200, 502, 409))
        self.set_clock_of_store(clock)  # their leases have ended
        found = self.await_answer(server, "k-1", {"mode": "hang"}, 200, "/hang-long")
        self.assertEqual((found.body, self.service.times("k-1")), (b'{"order": 1}', 1))
        end = time.monotonic() + LIMIT_S
        while self.state("k-2") != "FAILED":  # the service has not carried it out, and says so
            self.assertLess(time.monotonic(), end, self.state("k-2"))
            clock.advance(1)
            time.sleep(0.05)
        self.assertEqual(self.service.times("k-2"), 0)

    # ---- Long work ------------------------------------------------------------------------------

    def test_long_work_is_accepted_and_shown_where_it_says(self):  # B11
        self.contract("long", "POST /long", deadline="50s", lease="60s", wait="wait: 200ms")
        self.contract("at-once", "POST /at-once", deadline="50s", lease="60s", wait="wait: 0s")
        server = self.proxy()
        for path in ("/long", "/at-once"):
            key = "k-" + path[1:]
            first = self.order(server, key, {"mode": "slow"}, path)
            self.assertEqual((first.status, first.json["type"]), (202, "/problems/in-progress"), first)
            where = first.headers["Location"]
            self.assertRegex(where, "^/v1/operations/[0-9a-f-]{36}$")
            shown = server.get(where).json
            self.assertEqual((shown["state"], shown["operation"]), ("IN_PROGRESS", path[1:]))
            self.assertTrue(shown["awaits"])
            again = self.order(server, key, {"mode": "slow"}, path)
            self.assertEqual((again.status, again.json["commandId"]), (409, first.json["commandId"]), again)
        self.service.free.set()
        for number, path in ((1, "/long"), (2, "/at-once")):
            done = self.await_answer(server, "k-" + path[1:], {"mode": "slow"}, 201, path)
            self.assertEqual(done.headers["Idempotent-Replayed"], "true")
        self.assertEqual(len(self.service.executed), 2)

    def test_work_that_was_accepted_is_finished_before_the_server_ends(self):
        self.contract("long", "POST /long", deadline="50s", lease="60s", wait="wait: 0s")
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {"mode": "slow"}, "/long").status, 202)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        server.await_logged("serve.stopping")
        self.service.free.set()
        stopping.join(LIMIT_S)
        self.assertEqual((server.process.returncode, self.state("k-1")), (0, "COMPLETED"))

    def test_a_client_that_hangs_up_changes_nothing(self):
        server = self.proxy()
        with socket.create_connection(("127.0.0.1", server.port)) as wire:
            wire.sendall(b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k-1\r\n"
                         b"Content-Type: application/json\r\nContent-Length: 15\r\n\r\n"
                         b'{"mode":"slow"}')
            end = time.monotonic() + LIMIT_S
            while not self.service.executed:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
        self.service.free.set()
        self.assertEqual(self.await_answer(server, "k-1", {"mode": "slow"}, 201).headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.service.times("k-1"), 1)

    # ---- Without protection ---------------------------------------------------------------------

    def test_requests_without_a_key_pass_or_not_as_the_route_says(self):
        self.contract("lenient", "POST /lenient", without_key="pass")
        server = self.proxy()
        strict = self.order(server, None, {"item": "tea"})
        self.assertEqual((strict.status, strict.json["type"]), (400, "/problems/key-missing"), strict)
        for number in (1, 2):
            passed = self.order(server, None, {"item": "tea"}, "/lenient")
            self.assertEqual((passed.status, passed.body), (201, b'{"order":   %d}' % number), passed)
            self.assertEqual(passed.headers["X-Secret"], "s")  # nothing is kept, so nothing is held back
        self.assertEqual(self.number("select count(*) from " + self.ledger("command")), 0)
        for _ in range(2):
            self.assertEqual(self.order(server, "k-1", {"item": "tea"}, "/lenient").body, b'{"order":   3}')
        empty = self.order(server, "", {"item": "tea"}, "/lenient")
        self.assertEqual((empty.status, empty.json["type"]), (400, "/problems/key-invalid"), empty)

    def test_what_no_contract_names_is_passed_on_as_the_settings_say(self):
        for other, get, post in (("safe", 200, 404), ("all", 200, 201), ("none", 404, 404)):
            server = self.proxy("upstream.other=" + other)
            self.assertEqual(server.get("/pages/1?a=b%20c").status, get, other)
            posted = self.order(server, None, {}, "/pages")
            self.assertEqual(posted.status, post, other)
            if get == 200:
                self.assertEqual(self.service.seen[0][1], "/pages/1?a=b%20c")
                page = server.get("/pages")
                self.assertEqual((page.body, page.headers["Set-Cookie"], page.headers["Cache-Control"]),
                                 (b"page", "a=1", "max-age=5"))
                head = server.ask("HEAD", "/pages")
                self.assertEqual((head.status, head.body, head.headers["Content-Length"]), (200, b"", "4"))
                self.assertEqual(server.get("/orders").body, b"page")  # another method of a protected path
            self.assertEqual(server.stop(), 0)

    def test_braces_in_a_path_are_no_parameters(self):
        self.contract("note-order", "POST /orders/{id}", without_key="pass", fields="  /id: { type: text, required: true, max: 60 }")
        server = self.proxy("upstream.other=none")
        for path in ("/{x}", "/{orders}/1", "/{x}/{y}"):
            for key in ("k-1", None):
                self.assertEqual(self.order(server, key, {"item": "tea"}, path).status, 404, path)
        self.assertEqual(self.service.seen, [])
        self.assertEqual(self.order(server, "k-1", {"item": "tea"}).status, 201)  # nobody had used the key
        self.assertEqual(self.service.times("k-1"), 1)
        self.assertEqual(self.proxy().get("/{healthz}").body, b"page")  # the service's, not ours
        self.assertEqual(self.service.seen[-1][1], "/{healthz}")

    def test_a_protected_route_can_not_be_written_differently(self):
        server = self.proxy("upstream.other=all")
        for path in ("/orders/", "/Orders", "//orders", "/./orders", "/a/../orders", "/%6frders", "/orders%2f", "/orders/.",
                     "/orders%00", "/orders/..", "/%2e/orders", "/orders\\", "/orders#x", "/pages?a#b", "/orders;a=b", "/orders.json", "/orders.", "/orders%20", "/orders%3b",
                     "/x/..;/orders", "/x/..;a=b/orders", "/.;/orders", "/;/orders", "/;a=b/orders", "/orders/;", "/orders/;x",
                     "/x/..%3b/orders", "/x/..%3B/orders",
                     "/orders%C0%AF"):
            answer = self.order(server, None, {"item": "x"}, path)
            self.assertIn(answer.status, (400, 404), (path, answer))
        self.assertEqual(self.service.seen, [])
        self.assertEqual(server.ask("post", "/orders", "{}").status, 400)
        hidden = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_Method_Override", "X-Original-URL",
                  "X-Rewrite-URL", "Ibid-Command-Id", "Ibid_Command_Id", "Ibid-Client-Key")
        self.assertEqual(server.ask("GET", "/orders", headers=dict.fromkeys(hidden, "POST")).status, 200)
        for name in hidden:
            self.assertIsNone(self.service.seen[0][2][name], name)

    def test_nothing_follows_a_head_that_stands_alone(self):
        """A client that keeps the connection would take it for the next answer."""
        for method, status in ((b"HEAD", b"200 OK"), (b"GET", b"304 Not Modified"), (b"HEAD", b"304 Not Modified"), (b"GET", b"204 No Content")):
            self.service = RawService(self, b"HTTP/1.1 %s\r\nETag: \"x\"\r\n\r\n" % status)
            server = self.proxy()
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire:
                wire.sendall(method + b" /page HTTP/1.1\r\nHost: x\r\n\r\n")
                got = b""
                while b"\r\n\r\n" not in got:
                    got += wire.recv(65536)
                wire.shutdown(socket.SHUT_WR)
                while piece := wire.recv(65536):
                    got += piece
            head, _, rest = got.partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 " + status[:3]), got)
            self.assertIn(b'\r\nETag: "x"', head)
            self.assertEqual(rest, b"", (method, status, got))

    def test_what_the_service_says_is_for_the_connection_stays_there(self):
        self.service = RawService(self, b"HTTP/1.1 201 Created\r\nConnection: close, Location\r\nLocation: /a\r\nETag: \"x\"\r\n"
                                        b"Content-Length: 2\r\n\r\nok")
        server = self.proxy()
        answers = [self.order(server, "k-1", {"item": "tea"}) for _ in range(2)] + [server.get("/pages")]
        for answer in answers:
            self.assertEqual((answer.status, answer.body, answer.headers["ETag"], answer.headers["Location"]),
                             (201, b"ok", '"x"', None), answer)

    def test_large_bodies_are_passed_on_in_pieces(self):
        server = self.proxy("upstream.other=all", env=MEASURED)
        size = 48 << 20
        before = server.memory_kib()
        got = server.ask("GET", "/large?n=%d" % size)
        self.assertEqual((len(got.body), hashlib.sha256(got.body).digest()),
                         (size, hashlib.sha256(b"y" * size).digest()))
        sent = bytes(range(256)) * (size >> 8)
        put = server.ask("PUT", "/upload", sent)
        self.assertEqual(put.status, 201)
        self.assertEqual(hashlib.sha256(self.service.seen[-1][3]).digest(), hashlib.sha256(sent).digest())
        chunked = server.ask("PUT", "/upload", iter([sent[:1000], sent[1000:3000000]]))
        self.assertEqual(chunked.status, 201, chunked)
        self.assertEqual(len(self.service.seen[-1][3]), 3000000)
        self.assertLess(server.memory_kib("VmHWM") - before, 20 << 10)

    def test_bodies_beyond_the_limits_are_refused(self):
        server = self.proxy("upstream.other=all", "http.limits.body=10KiB", "upstream.limits.body=100KiB")
        self.assertEqual(self.order(server, "k-1", {"item": "x" * 20000}).status, 413)
        self.assertEqual(server.ask("PUT", "/upload", b"x" * 200000).status, 413)
        absurd = server.raw(b"PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n")
        self.assertRegex(absurd, b"^HTTP/1.1 (400|413) ")
        self.assertEqual(self.service.seen, [])
        # Its length is not told: it has gone on by the time that it is too long, and is broken off there.
        chunked = server.ask("PUT", "/upload", iter([b"x" * 200000]))
        self.assertEqual(chunked.status, 413, chunked)
        self.assertEqual(self.service.executed, [])

    def test_what_comes_behind_an_answer_is_no_part_of_its_head(self):
        trailers = b"".join(b"X-T%d: %s\r\n" % (number, b"z" * 200) for number in range(40))
        self.service = RawService(self, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
                                        b"a\r\n0123456789\r\n0\r\n" + trailers + b"\r\n")
        server = self.proxy()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: server.get("/t%d" % number), range(200)))
        self.assertEqual({(answer.status, answer.body, answer.headers["X-A"]) for answer in answers},
                         {(200, b"0123456789", "b")})
        self.assertEqual([answer for answer in answers if answer.headers["X-T1"]], [])

    def test_a_service_over_https_must_be_vouched_for(self):
        pem = os.path.join(self.dir, "service.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", pem + ".crt"], check=True,
                       capture_output=True, timeout=LIMIT_S)
        with open(pem, "a", encoding="ascii") as whole, open(pem + ".crt", encoding="ascii") as certificate:
            whole.write(certificate.read())
        self.service = Service(self, pem)
        stranger = self.order(self.proxy(), "k-1", {"item": "tea"})
        self.assertEqual((stranger.status, stranger.json["code"]), (502, "UPSTREAM_UNREACHABLE"), stranger)
        self.assertEqual(self.service.seen, [])
        known = self.order(self.proxy("upstream.authorities=" + pem + ".crt"), "k-1", {"item": "tea"})
        self.assertEqual(known.status, 201, known)

    def test_the_environments_proxy_is_not_for_the_service(self):
        server = Server(self, "upstream.url=" + self.service.url, env={"http_proxy": "http://127.0.0.1:9", "no_proxy": ""})
        self.assertEqual(self.order(server, "k-1", {"item": "tea"}).status, 201)
        self.assertEqual(server.get("/pages").status, 200)

    def test_who_passes_takes_no_place_from_commands_and_leaves_its_own(self):  # K10
        server = self.proxy("upstream.calls=5", "upstream.other=all")
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                wire = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                wire.sendall(b"GET /large?n=104857600 HTTP/1.1\r\nHost: x\r\n\r\n")
                wire.recv(100)
            full = server.get("/pages")
            self.assertEqual((full.status, full.json["type"]), (503, "/problems/unavailable"), full)
            self.assertEqual(self.order(server, "k-1", {"item": "tea"}).status, 201)
        end = time.monotonic() + LIMIT_S
        while server.get("/pages").status != 200:  # those who are gone have left
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_lengths_and_lines_of_an_answer_are_not_taken_on_trust(self):
        self.service = RawService(self, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                                        b"X-A: a\rX-Injected: yes\r\n\r\na\r\n0123456789\r\n0\r\n\r\n")
        passed = self.proxy().get("/pages")
        self.assertEqual((passed.body, passed.headers["X-Injected"]), (b"0123456789", None))
        self.service = RawService(self, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
        server = self.proxy()
        self.assertEqual(server.get("/pages").status, 502)
        self.assertEqual(self.order(server, "k-101", {"item": "tea"}).status, 502)
        self.service = RawService(self, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes of another protocol")
        passed = self.proxy().get("/pages")
        self.assertEqual((passed.status, passed.json["type"]), (502, "/problems/upstream"), passed)

    def test_an_answer_that_can_be_read_in_two_ways_is_none(self):  # I7
        for head in (b"Content-Length: 2\r\nContent-Length: 4\r\n", b"Content-Length: 2, 4\r\n",
                     b"Content-Length: +2\r\n", b"Content-Length:\r\n", b"Content-Length: 99999999999999999999\r\n",
                     b"Content-Length: 9223372036854775808\r\n", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                     b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
                     b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                     b"Content-Length : 2\r\nContent-Length: 4\r\n", b"Content-Length: 2\r\n 5\r\n", b"X-A: b\r\n\tc\r\nContent-Length: 2\r\n",
                     b"X-A: b\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n"):
            with self.subTest(head=head):
                said = b"4\r\nokok\r\n0\r\n\r\n" if b"chunked" in head else b"okok"
                self.service = RawService(self, b"HTTP/1.1 201 Created\r\n" + head + b"\r\n" + said)
                server = self.proxy()
                passed = server.get("/pages")
                self.assertEqual((passed.status, passed.json["type"]), (502, "/problems/upstream"), passed)
                self.assertEqual(self.order(server, "k-" + hashlib.sha256(head).hexdigest()[:8], {"item": "tea"}).status, 502)
        self.service = RawService(self, b"HTTP/1.0 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nokok\r\n0\r\n\r\n")
        self.assertEqual(self.order(self.proxy(), "k-old", {"item": "tea"}).status, 502)
        # The same length twice is one length, and an answer before the answer has a head of its own.
        self.service = RawService(self, b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
                                        b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")
        server = self.proxy()
        for answer in (server.get("/pages"), self.order(server, "k-twice", {"item": "tea"})):
            self.assertEqual((answer.status, answer.body), (201, b"ok"), answer)

    def test_an_answer_that_breaks_off_is_never_taken_for_whole(self):
        """Where only the end of the connection ends it, that end is a reset, and over TLS it has no close_notify."""
        self.service = RawService(self, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        pem, server = over_tls(self, "upstream.url=" + self.service.url)
        plain = self.proxy()
        for ask, ends in ((b"GET /pages HTTP/1.0\r\n\r\n", (ConnectionResetError, ssl.SSLEOFError)),
                          (b"GET /pages HTTP/1.1\r\nHost: x\r\n\r\n", (ConnectionResetError, ssl.SSLEOFError))):
            with socket.create_connection(("127.0.0.1", plain.port), timeout=LIMIT_S) as wire, self.assertRaises(ends):
                wire.sendall(ask)
                while wire.recv(65536):
                    pass
            context = ssl.create_default_context(cafile=pem + ".crt")
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as raw, self.assertRaises(ends), \
                    context.wrap_socket(raw, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as wire:
                wire.sendall(ask)
                while wire.recv(65536):
                    pass

    def test_an_inquiry_that_hangs_does_not_keep_the_server_from_ending(self):
        self.contract("slow-inquiry", "POST /slow-inquiry", deadline="40s", lease="50s",
                      inquiry=(INQUIRY % "0s").replace("/orders/by-key/", "/hang/"))
        server = self.proxy("http.drain=1s")
        for number in range(5):
            self.assertEqual(self.order(server, "k-%d" % number, {"mode": "drop"}, "/slow-inquiry").status, 502)
        end = time.monotonic() + LIMIT_S
        while not any(seen[1].startswith("/hang/") for seen in self.service.seen):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        began = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - began, 20)

    def test_a_client_that_reads_nothing_holds_no_memory(self):
        server = self.proxy(env=MEASURED)
        before = server.memory_kib()
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                wire = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                wire.sendall(b"GET /large?n=104857600 HTTP/1.1\r\nHost: x\r\n\r\n")
                wire.recv(100)
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertLess(server.memory_kib() - before, 40 << 10)
        self.assertEqual(server.get("/pages").body, b"page")

    # ---- Hostile --------------------------------------------------------------------------------

    def test_what_belongs_to_the_connection_can_not_be_smuggled(self):
        server = self.proxy("upstream.other=all")
        head = b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k-1\r\nContent-Type: application/json\r\n"
        for lines in (b"Connection: Idempotency-Key\r\nContent-Length: 2\r\n\r\n{}",
                      b"Connection: close, Content-Length\r\nContent-Length: 2\r\n\r\n{}",
                      b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
                      b"Upgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
                      b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                      b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                      b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                      b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"):
            self.assertRegex(server.raw(head + lines), b"^HTTP/1.1 400 ", lines)
        for value in (b"a\rX-HTTP-Method-Override: DELETE", b"a\x0b", b"a\x7f", b"a\x01"):
            self.assertRegex(server.raw(head + b"X-A: " + value + b"\r\nContent-Length: 2\r\n\r\n{}"), b"^HTTP/1.1 400 ",
                             value)
        for first in (b"CONNECT x:80 HTTP/1.1", b"TRACE / HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET http://other/ HTTP/1.1"):
            self.assertRegex(server.raw(first + b"\r\nHost: x\r\n\r\n"), b"^HTTP/1.1 40[045] ", first)
        self.assertEqual(self.service.seen, [])
        self.assertEqual(self.order(server, "k-1", {"item": "tea"}).status, 201)

    def test_the_services_own_authorization_reaches_it_and_our_token_does_not(self):  # K05
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {}, Authorization="Basic YTpi").status, 201)
        self.assertEqual(self.service.seen[-1][2]["Authorization"], "Basic YTpi")
        self.assertEqual(self.order(server, "k-0", {}, Authorization="Bearer myibid_secret").status, 201)
        self.assertEqual(self.service.seen[-1][2]["Authorization"], "Bearer myibid_secret")
        for header in ("Authorization", "Proxy-Authorization"):
            bad = self.order(server, "k-2", {}, **{header.replace("-", "_"): "Bearer ibid_" + "0" * 22 + "_" + "0" * 64})
            self.assertEqual(bad.status, 401 if header.startswith("Proxy") else bad.status, bad)
        token = self.token("web")
        seen = len(self.service.seen)
        mine = self.order(server, "k-3", {}, Authorization="Bearer " + token)
        self.assertEqual(mine.status, 201, mine)
        self.assertIsNone(self.service.seen[-1][2]["Authorization"])
        both = self.order(server, "k-4", {}, Proxy_Authorization="Bearer " + token, Authorization="Basic YTpi")
        self.assertEqual(both.status, 201, both)
        self.assertEqual(self.service.seen[-1][2]["Authorization"], "Basic YTpi")
        self.assertIsNone(self.service.seen[-1][2]["Proxy-Authorization"])
        self.assertEqual(len(self.service.seen), seen + 2)
        for number, spoiled in enumerate(("Bearer %s " % token, "Bearer\t" + token, "Token " + token, token)):
            self.order(server, "k-5-%d" % number, {}, Authorization=spoiled)
        for _, _, headers, _ in self.service.seen:
            self.assertNotIn(token, str(headers.items()))

    def token(self, client):
        made = subprocess.run([BIN, "token", "create", "--store", self.url, "--tenant", "t", "--client", client, "--json"],
                              timeout=LIMIT_S, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return json.loads(made.stdout)["token"]

    # ---- Running it -----------------------------------------------------------------------------

    def test_own_routes_can_have_a_prefix(self):
        self.contract("long", "POST /long", deadline="50s", lease="60s", wait="wait: 0s")
        server = self.proxy("http.prefix=/ibid")
        self.assertEqual(server.get("/ibid/healthz").json, {"status": "alive"})
        self.assertEqual(server.get("/healthz").body, b"page")  # the service's
        first = self.order(server, "k-1", {"mode": "slow"}, "/long")
        self.assertEqual(server.get(first.headers["Location"]).json["state"], "IN_PROGRESS", first.headers["Location"])
        self.service.free.set()

    def test_a_server_without_a_service_refuses_contracts_that_need_one(self):
        with self.assertRaisesRegex(AssertionError, "place-order.yaml.*ibid proxy --upstream"):
            Server(self)
        for url in ("ftp://x", "127.0.0.1", "http://u:p@x", "http://x?y", "http://"):
            with self.assertRaisesRegex(AssertionError, "upstream.url is"):
                Server(self, "upstream.url=" + url)

    def test_operations_of_the_service_are_not_run_by_name(self):
        server = self.proxy()
        answer = server.send("k-1", {}, "place-order")
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("POST /orders", answer.json["detail"])


class ProxyOnSqlite(Proxy, Sqlite, unittest.TestCase):
    def set_clock_of_store(self, clock):
        clock.set_wall(3600)


class ProxyOnPostgres(Proxy, Postgres, unittest.TestCase):
    def set_clock_of_store(self, clock):
        """As if it had gone on by an hour since the claim."""
        self.change("update ibid.command set lease_until = lease_until - interval '1 hour'")

    def test_what_was_claimed_before_the_wall_clock_was_set_is_not_sent(self):  # I6
        """As on a machine that slept: its steady clock stood still, and others may have taken the lease over."""
        self.contract("hurry", "POST /hurry", lease="60s", deadline="4s")
        user, host, port, name = re.fullmatch(r"postgres://(.*@)([^:]*):(\d+)/(.*)", self.url).groups()
        wire, clock, straight = Wire(self, host, int(port)), Clock(self), self.url
        self.url = "postgres://%s127.0.0.1:%d/%s" % (user, wire.port, name)
        server = self.proxy("http.threads=1", clock=clock)
        self.url = straight
        wire.marked = b"stall-me"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(self.order, server, "stall-me", {"item": "x"}, "/hurry")
            self.assertTrue(wire.held.wait(LIMIT_S))
            clock.set_wall(3600)
            wire.flows.set()
            told = late.result(LIMIT_S)
        self.assertEqual((told.status, told.json["code"]), (502, "UPSTREAM_UNREACHABLE"), told)
        self.assertEqual(self.service.seen, [])
        self.assertEqual(self.order(server, "stall-me", {"item": "x"}, "/hurry").status, 201)
        self.assertEqual(self.service.times("stall-me"), 1)

    def test_who_hears_too_late_of_its_claim_sends_nothing(self):  # I6
        """The store does not answer for longer than the lease; meanwhile another proxy has looked and was free to send."""
        self.contract("hurry", "POST /hurry", lease="6s", deadline="4s")
        user, host, port, name = re.fullmatch(r"postgres://(.*@)([^:]*):(\d+)/(.*)", self.url).groups()
        wire, straight = Wire(self, host, int(port)), self.url
        self.url = "postgres://%s127.0.0.1:%d/%s" % (user, wire.port, name)
        slow = self.proxy("http.threads=1")
        self.url = straight
        fast = self.proxy()
        wire.marked = b"stall-me"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(self.order, slow, "stall-me", {"item": "x"}, "/hurry")
            self.assertTrue(wire.held.wait(LIMIT_S))
            self.await_answer(fast, "stall-me", {"item": "x"}, 201, "/hurry")
            wire.flows.set()
            told = late.result(LIMIT_S)
        self.assertEqual((told.status, told.json["type"]), (502, "/problems/upstream-unknown"), told)
        self.assertEqual(self.order(slow, "stall-me", {"item": "x"}, "/hurry").status, 201)
        self.assertEqual(self.service.times("stall-me"), 1)


if __name__ == "__main__":
    unittest.main()
