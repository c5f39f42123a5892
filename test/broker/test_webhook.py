# SPDX-License-Identifier: Apache-2.0
"""The webhook destination against receivers of every kind; signatures are checked by an implementation of its own."""
import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import unittest
import urllib.parse

from broker_bed import ACKED, LIMIT_S, NOT_TRIED, Bed, Publisher, record

OLD, NEW = (b"o" * 24, b"n" * 32)


def whsec(key):
    return "whsec_" + base64.b64encode(key).decode()


class Seen:
    """One request, as the receiver saw it."""

    def __init__(self, handler, body):
        self.headers, self.body, self.path = handler.headers, body, handler.path
        self.id = handler.headers["webhook-id"]
        self.connection = handler.client_address

    def signed_by(self, key):
        content = b"%s.%s." % (self.id.encode(), self.headers["webhook-timestamp"].encode()) + self.body
        wanted = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
        return wanted.decode() in self.headers["webhook-signature"].split(" ")


class Receiver:
    """Answers as `answers` says by event id: (status, headers, body), or a function of the handler."""

    def __init__(self, bed, certificate=None):
        self.seen, self.answers, self.lock = [], {}, threading.Lock()
        self.under_way = self.most_under_way = 0
        self.aggregates, self.crossed = {}, []
        self.free = threading.Event()  # lets go of who hangs
        self.pause_s = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                receiver.post(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 100

            def handle_error(self, request, client_address):
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = "http%s://127.0.0.1:%d/hook" % ("s" if certificate else "", self.port)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        bed.addCleanup(self.end)

    def end(self):
        self.free.set()
        self.server.shutdown()
        self.server.server_close()

    def post(self, handler, body):
        seen = Seen(handler, body)
        subject = handler.headers.get("ce-subject", "")
        with self.lock:
            self.seen.append(seen)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            self.aggregates[subject] = self.aggregates.get(subject, 0) + 1
            if self.aggregates[subject] > 1:
                self.crossed.append(subject)
            answer = self.answers.get(seen.id, (204, {}, b""))
        try:
            if self.pause_s:
                time.sleep(self.pause_s)
            if callable(answer):
                answer(handler)
                return
            status, headers, said = answer
        finally:
            with self.lock:
                self.under_way -= 1
                self.aggregates[subject] -= 1
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if status != 204:
            handler.send_header("Content-Length", str(len(said)))
        handler.end_headers()
        handler.wfile.write(said)

    def ids(self):
        with self.lock:
            return [seen.id for seen in self.seen]

    def hang(self, handler):
        self.free.wait(LIMIT_S)
        handler.close_connection = True


class HookBed(Bed):
    def setUp(self):
        super().setUp()
        self.receiver = Receiver(self)

    def hook(self, *settings, url=None, **more):
        names = {one.split("=")[0] for one in settings}
        said = [] if names & {"secret", "secret_file"} else ["secret=" + whsec(OLD)]
        said += [] if "allow_private" in names else ["allow_private=yes"]
        return Publisher(self, "webhook", "url=" + (url or self.receiver.url), *said, *settings, **more)

    def answer(self, number, status, body=b"", **headers):
        self.receiver.answers["event-%s" % number] = (
            status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


class Requests(HookBed):
    def test_an_event_is_a_post_with_cloudevents_headers(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        ends = self.hook(url=self.receiver.url + "?token=t").publish(
            record(7, headers={"version": "3", "traceparent": trace, "tenant": 'K\u00f6ln "100%"'}, payload='{"n":  1}'))
        self.assert_ends(ends, ACKED)
        seen = self.receiver.seen[0]
        self.assertEqual(seen.body, b'{"n":  1}')
        self.assertEqual(seen.path, "/hook?token=t")
        for name, value in (("ce-specversion", "1.0"), ("ce-id", "event-7"), ("ce-source", "/ibid/shop"),
                            ("ce-type", "OrderPlaced"), ("ce-subject", "order/7"), ("ce-version", "3"),
                            ("ce-time", "2026-11-15T10:00:00.000001Z"), ("ce-traceparent", trace),
                            ("traceparent", trace), ("Content-Type", "application/json"), ("webhook-id", "event-7"),
                            ("ce-tenant", "K%C3%B6ln%20%22100%25%22")):
            self.assertEqual(seen.headers.get_all(name), [value])
        self.assertEqual(urllib.parse.unquote(seen.headers["ce-tenant"]), 'K\u00f6ln "100%"')
        self.assertIsNone(seen.headers["Expect"])
        self.assertLess(abs(int(seen.headers["webhook-timestamp"]) - time.time()), 60)

    def test_evidence_names_the_receiver_without_what_is_secret(self):
        url = self.receiver.url.replace("//", "//user:pass@") + "?token=t"
        end = self.hook(url=url).publish(record(1))[0]
        self.assertEqual((end["place"], end["partition"], end["offset"]), (self.receiver.url, -1, -1))
        self.assertLess(abs(end["acked_us"] / 1e6 - time.time()), 60)
        self.assertEqual(self.receiver.seen[0].headers["Authorization"],
                         "Basic " + base64.b64encode(b"user:pass").decode())

    def test_signatures_hold_for_each_secret(self):
        file = self.path("secrets")
        with open(file, "w", encoding="utf-8") as secrets:
            secrets.write(whsec(NEW) + "\n" + whsec(OLD) + "\n")
        os.chmod(file, 0o600)
        self.hook("secret_file=" + file).publish(record(1, payload='{"a":"\u00e4"}'))
        seen = self.receiver.seen[0]
        self.assertTrue(seen.signed_by(OLD) and seen.signed_by(NEW))
        self.assertFalse(seen.signed_by(b"x" * 24))
        self.assertEqual(len(seen.headers["webhook-signature"].split(" ")), 2)

    def test_a_secret_may_be_written_without_padding(self):
        self.hook("secret=" + whsec(b"k" * 25).rstrip("=")).publish(record(1))
        self.assertTrue(self.receiver.seen[0].signed_by(b"k" * 25))

    def test_the_id_is_the_same_at_every_attempt(self):
        self.answer(1, 500)
        publisher = self.hook()
        for _ in range(3):
            publisher.publish(record(1))
        self.assertEqual(self.receiver.ids(), ["event-1"] * 3)
        self.assertTrue(all(seen.signed_by(OLD) for seen in self.receiver.seen))

    def test_headers_are_added_to_each(self):
        self.hook("headers.Authorization=Bearer abc", "headers.X-Shop=7").publish(record(1))
        headers = self.receiver.seen[0].headers
        self.assertEqual((headers["Authorization"], headers["X-Shop"]), ("Bearer abc", "7"))

    def test_a_connection_is_used_again(self):
        self.hook("in_flight=1").publish(*[record(n) for n in range(10)])
        self.assertEqual(len({seen.connection for seen in self.receiver.seen}), 1)

    def test_a_connection_that_was_closed_meanwhile_is_made_anew(self):
        publisher = self.hook()

        def hang_up(handler):
            handler.send_response(204)
            handler.end_headers()
            handler.close_connection = True  # without saying so
        for number in range(5):
            self.receiver.answers["event-%d" % number] = hang_up
            self.assert_ends(publisher.publish(record(number)), ACKED)

    def test_proxies_of_the_environment_are_not_used(self):
        proxy = Receiver(self)
        address = "http://127.0.0.1:%d" % proxy.port
        names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        environment = {**os.environ, **dict.fromkeys(names, address)}
        environment.pop("no_proxy", None)
        environment.pop("NO_PROXY", None)
        self.assert_ends(self.hook(env=environment).publish(record(1)), ACKED)
        self.assertEqual((self.receiver.ids(), proxy.seen), (["event-1"], []))

    def test_what_can_not_be_sent_is_poison_and_stops_its_aggregate_alone(self):
        ends = self.hook().publish(
            record(1, 1, id="with blank"), record(2, 2, headers={"X-Bad": "1"}), record(3, 1), record(4, 4),
            record(5, 5, headers={"tenant": "x\r\nwebhook-id: forged"}))
        poison = ("failed", "poison", "RECORD_MALFORMED")
        self.assert_ends(ends, poison, poison, NOT_TRIED, ACKED, ACKED)
        self.assertEqual(sorted(self.receiver.ids()), ["event-4", "event-5"])


class Answers(HookBed):
    def test_each_answer_has_its_class(self):
        publisher = self.hook("in_flight=1")
        for status, expected, goes_on in (
                (200, ACKED, True), (202, ACKED, True), (204, ACKED, True),
                (301, ("failed", "permanent", "WEBHOOK_REDIRECT"), False),
                (302, ("failed", "permanent", "WEBHOOK_REDIRECT"), False),
                (307, ("failed", "permanent", "WEBHOOK_REDIRECT"), False),
                (400, ("failed", "permanent", "WEBHOOK_REFUSED"), True),
                (401, ("failed", "security", "WEBHOOK_UNAUTHORIZED"), False),
                (403, ("failed", "security", "WEBHOOK_UNAUTHORIZED"), False),
                (404, ("failed", "permanent", "WEBHOOK_REFUSED"), True),
                (407, ("failed", "security", "WEBHOOK_UNAUTHORIZED"), False),
                (408, ("failed", "transient", "WEBHOOK_ERROR"), False),
                (409, ("failed", "permanent", "WEBHOOK_REFUSED"), True),
                (410, ("failed", "permanent", "WEBHOOK_GONE"), False),
                (413, ("failed", "poison", "RECORD_TOO_LARGE"), True),
                (422, ("failed", "permanent", "WEBHOOK_REFUSED"), True),
                (425, ("failed", "transient", "WEBHOOK_ERROR"), False),
                (429, ("failed", "capacity", "WEBHOOK_BUSY"), False),
                (500, ("failed", "transient", "WEBHOOK_ERROR"), True),
                (502, ("failed", "transient", "WEBHOOK_ERROR"), False),
                (503, ("failed", "transient", "WEBHOOK_ERROR"), False),
                (504, ("failed", "transient", "WEBHOOK_ERROR"), False),
                (599, ("failed", "transient", "WEBHOOK_ERROR"), True),
                (799, ("failed", "unknown", "WEBHOOK_NO_ANSWER"), False)):
            with self.subTest(status=status):
                self.answer("x", status, Location=self.receiver.url + "/elsewhere")
                later = NOT_TRIED if status >= 300 else ACKED
                other = ACKED if goes_on else NOT_TRIED
                self.assert_ends(publisher.publish(record("x", 1), record("y", 1), record("z", 2)), expected, later, other)
        self.assertEqual({seen.path for seen in self.receiver.seen}, {"/hook"})

    def test_a_pause_that_is_asked_for_is_told(self):
        publisher = self.hook("in_flight=1")
        day_us = 86400 * 10**6
        in_an_hour = time.time() + 3600
        for status, value, least, most in (
                (429, "7", 7000000, 7000000), (503, "120", 120000000, 120000000), (500, "3", 3000000, 3000000),
                (429, "0", 0, 0), (429, "-5", 0, 0), *[(429, "9" * digits, day_us, day_us) for digits in range(6, 40)],
                (429, "soon", 0, 0), (429, "7 apples", 0, 0), (429, "", 0, 0),
                (429, email.utils.formatdate(in_an_hour, usegmt=True), 3500 * 10**6, 3601 * 10**6),
                (429, time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(in_an_hour)), 3500 * 10**6, 3601 * 10**6),
                (429, time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(in_an_hour)), 3500 * 10**6, 3601 * 10**6),
                (429, "Sun, 06 Nov 1994 08:49:37 GMT", 0, 0),
                (429, "Fri, 01 Jan 2100 00:00:00 GMT", day_us, day_us)):
            with self.subTest(value=value):
                self.answer("x", status, Retry_After=value)
                end = publisher.publish(record("x"))[0]
                self.assertTrue(least <= end["retry_after_us"] <= most, end)
                self.assertEqual(end["class"], "transient" if status == 500 else "capacity")

    def test_a_busy_receiver_gets_nothing_more_of_the_batch(self):
        self.answer(3, 429, Retry_After="5")
        ends = self.hook("in_flight=1").publish(*[record(n) for n in range(10)])
        self.assertEqual(self.receiver.ids(), ["event-0", "event-1", "event-2", "event-3"])
        self.assert_ends(ends, ACKED, ACKED, ACKED, ("failed", "capacity", "WEBHOOK_BUSY"), *[NOT_TRIED] * 6)

    def test_what_the_receiver_says_is_a_clause_without_what_is_ours(self):
        publisher = self.hook("headers.Authorization=Bearer abc", url=self.receiver.url + "?token=geheim")
        for body, said in (
                (b"no such\r\n\x1b[31mcustomer\x00", ""), (b"no such\r\n\x1b[31mcustomer", ": no such   [31mcustomer"),
                (b"<html>oh</html>", ""), (b"\xff\xfe", ""), (b"x" * 5000, ": " + "x" * 120),
                (b"you sent Bearer abc", ""), (b"your secret is " + whsec(OLD).encode(), ""),
                (b"not /hook?token=geheim", ""), (b'got {"number": "x"}', ""),
                ("\u00e4".encode() * 100, ": " + "\u00e4" * 60), ("a".encode() + "\u00e4".encode() * 100, ": a" + "\u00e4" * 59)):
            with self.subTest(body=body[:30]):
                self.answer("x", 400, body)
                self.assertEqual(publisher.publish(record("x"))[0]["why"], "the receiver answered 400" + said)

    def test_a_long_answer_is_cut_off_and_counts(self):
        def endless(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(1 << 40))
            handler.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b"z" * 65536)
        self.receiver.answers["event-1"] = endless
        self.assert_ends(self.hook("deadline=5m").publish(record(1)), ACKED)

    def test_a_head_without_its_body_is_an_answer(self):
        def half(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly a part")
            handler.close_connection = True
        self.receiver.answers["event-1"] = half
        self.assert_ends(self.hook().publish(record(1)), ACKED)


class Silence(HookBed):
    def test_what_was_sent_and_not_answered_is_unknown(self):
        def drop(handler):
            handler.close_connection = True
        self.receiver.answers["event-1"] = drop
        self.receiver.answers["event-2"] = lambda handler: (handler.wfile.write(b"HTTP/1.1 20"), drop(handler))
        self.receiver.answers["event-3"] = self.receiver.hang
        publisher = self.hook("deadline=1s")
        for number in (1, 2, 3):
            ends = publisher.publish(record(number, 1), record(9, 1))
            self.assert_ends(ends, ("failed", "unknown", "WEBHOOK_NO_ANSWER"), NOT_TRIED)
        self.assertEqual(set(self.receiver.ids()), {"event-1", "event-2", "event-3"})

    def test_who_can_not_be_reached_got_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        publisher = self.hook("in_flight=2", url="http://127.0.0.1:%d/" % port)
        ends = publisher.publish(*[record(n) for n in range(5)])
        self.assertEqual([one["end"] for one in ends[2:]], ["not-tried"] * 3)
        self.assert_ends(ends[:1], ("failed", "transient", "WEBHOOK_UNREACHABLE"))

    def test_a_name_that_does_not_exist_is_transient(self):
        ends = self.hook(url="http://no-such-host.invalid/").publish(record(1))
        self.assert_ends(ends, ("failed", "transient", "WEBHOOK_UNREACHABLE"))

    def test_a_stop_ends_the_wait(self):
        self.receiver.answers["event-1"] = self.receiver.hang
        publisher = self.hook("deadline=5m", "in_flight=2")
        self.receiver.answers["event-5"] = self.receiver.hang  # two are in flight: the answer before it was read
        publisher.send([record(1, 1), record(2, 2), record(3, 1), record(4, 4), record(5, 5)])
        self.await_true(lambda: {"event-1", "event-5"} <= set(self.receiver.ids()))
        began = time.monotonic()
        publisher.stop()
        ends = publisher.batch()
        self.assertLess(time.monotonic() - began, 5)
        unknown = ("failed", "unknown", "WEBHOOK_NO_ANSWER")
        self.assert_ends(ends, unknown, ACKED, NOT_TRIED, ACKED, unknown)

    def test_an_answer_on_its_way_at_the_stop_is_waited_for_a_moment(self):
        gates = [threading.Event(), threading.Event()]

        def answer_after(gate):
            def answer(handler):
                gate.wait(LIMIT_S)
                handler.send_response(204)
                handler.end_headers()
            return answer
        publisher = self.hook(channels=3)
        for number, gate in enumerate(gates, 1):
            self.receiver.answers["event-%d" % number] = answer_after(gate)
            publisher.send([record(number)])
        self.await_true(lambda: len(self.receiver.ids()) == 2)
        publisher.stop()
        # What comes now is not tried once the stop is known. Each answer wakes all who wait for one, to see the stop.
        self.await_true(lambda: publisher.publish(record(3))[0]["end"] == "not-tried")
        for gate in gates:
            gate.set()
            self.assert_ends(publisher.batch(), ACKED)


class Order(HookBed):
    def test_an_aggregate_is_sent_one_after_the_other_and_others_meanwhile(self):
        self.receiver.pause_s = 0.01
        records = [record("%d-%d" % (aggregate, version), aggregate, subject="order/%d" % aggregate)
                   for version in range(8) for aggregate in range(6)]
        ends = self.hook("in_flight=4").publish(*records)
        self.assert_ends(ends, *[ACKED] * 48)
        self.assertEqual(self.receiver.crossed, [])
        ids = self.receiver.ids()
        for aggregate in range(6):
            mine = [one for one in ids if one.startswith("event-%d-" % aggregate)]
            self.assertEqual(mine, ["event-%d-%d" % (aggregate, version) for version in range(8)])
        self.assertEqual(self.receiver.most_under_way, 4)

    def test_a_failure_stops_the_later_ones_of_its_aggregate_alone(self):
        self.answer("2-3", 422)
        records = [record("%d-%d" % (aggregate, version), aggregate) for version in range(6) for aggregate in range(4)]
        ends = {end["id"]: end["end"] for end in self.hook("in_flight=3").publish(*records)}
        self.assertEqual([ends["event-2-%d" % version] for version in range(6)],
                         ["acked"] * 3 + ["failed"] + ["not-tried"] * 2)
        self.assertEqual(sum(1 for end in ends.values() if end == "acked"), 21)
        self.assertNotIn("event-2-4", self.receiver.ids())

    def test_channels_share_what_may_be_under_way(self):
        self.receiver.pause_s = 0.01
        publisher = self.hook("in_flight=3", channels=4)
        ends = publisher.publish_all([[record("%d-%d" % (n, k)) for k in range(10)] for n in range(12)])
        self.assertEqual({end["end"] for batch in ends for end in batch}, {"acked"})
        self.assertEqual(self.receiver.most_under_way, 3)
        self.assertEqual(len(self.receiver.seen), 120)


class Addresses(HookBed):
    def test_addresses_that_are_not_public_are_refused(self):
        port = self.receiver.port
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0x7f.1",
                     "2130706433", "169.254.169.254", "10.0.0.1", "[fe80::1]", "224.0.0.1"):
            with self.subTest(host=host):
                publisher = Publisher(self, "webhook", "url=http://%s:%d/" % (host, port), "secret=" + whsec(OLD))
                ends = publisher.publish(record(1))
                self.assert_ends(ends, ("failed", "security", "WEBHOOK_ADDRESS"))
        self.assertEqual(self.receiver.seen, [])


class Tls(HookBed):
    def certificate(self, name, address):
        file = self.path(name + ".pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-keyout", file + ".key", "-out", file + ".crt", "-subj", "/CN=" + name,
                        "-addext", "subjectAltName=" + address], check=True, capture_output=True)
        with open(file, "w", encoding="utf-8") as both:
            for part in (".key", ".crt"):
                with open(file + part, encoding="utf-8") as one:
                    both.write(one.read())
        return file

    def test_a_receiver_that_somebody_vouches_for_is_called(self):
        file = self.certificate("good", "IP:127.0.0.1")
        receiver = Receiver(self, file)
        self.assert_ends(self.hook("authorities=" + file + ".crt", url=receiver.url).publish(record(1)), ACKED)
        self.assertEqual(receiver.ids(), ["event-1"])

    def test_nothing_is_sent_to_one_that_nobody_vouches_for(self):
        receiver = Receiver(self, self.certificate("alone", "IP:127.0.0.1"))
        self.assert_ends(self.hook(url=receiver.url).publish(record(1, 1), record(2, 1)),
                         ("failed", "security", "WEBHOOK_TLS"), NOT_TRIED)
        self.assertEqual(receiver.seen, [])

    def test_nothing_is_sent_to_one_of_another_name(self):
        file = self.certificate("other", "DNS:other.example")
        receiver = Receiver(self, file)
        self.assert_ends(self.hook("authorities=" + file + ".crt", url=receiver.url).publish(record(1)),
                         ("failed", "security", "WEBHOOK_TLS"))
        self.assertEqual(receiver.seen, [])

    def test_one_that_speaks_no_tls_is_a_matter_of_security(self):
        url = self.receiver.url.replace("http:", "https:")
        self.assert_ends(self.hook(url=url).publish(record(1)), ("failed", "security", "WEBHOOK_TLS"))

    def test_a_handshake_that_is_cut_off_is_transient(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def cut(sizes):
            with contextlib.suppress(OSError):
                for size in sizes:
                    client, _ = server.accept()
                    client.recv(size)  # what is not read makes the end a reset
                    client.close()
        threading.Thread(target=cut, args=((5, 65536),), daemon=True).start()
        publisher = self.hook(url="https://127.0.0.1:%d/" % server.getsockname()[1])
        for _ in range(2):
            self.assert_ends(publisher.publish(record(1)), ("failed", "transient", "WEBHOOK_UNREACHABLE"))


class Settings(Bed):
    def test_wrong_settings_are_refused_with_what_would_be_right(self):
        good = {"url": "https://example.com/", "secret": whsec(OLD)}
        wide = self.path("wide")
        with open(wide, "w", encoding="utf-8") as file:
            file.write(whsec(OLD))
        os.chmod(wide, 0o644)
        for change, code, said in (
                ({"url": None}, "invalid", "`url` is missing"),
                ({"url": ""}, "invalid", "`url` must be an address such as https://"),
                ({"url": "example.com"}, "invalid", "`url` must be"),
                ({"url": "ftp://example.com/"}, "invalid", "`url` must be"),
                ({"url": "file:///etc/passwd"}, "invalid", "`url` must be"),
                ({"url": "https://example.com/#part"}, "invalid", "`url` must be"),
                ({"url": "https://example.com/a b"}, "invalid", "`url` must be"),
                ({"secret": None}, "invalid", "either `secret` or `secret_file`"),
                ({"secret_file": "/x"}, "invalid", "either `secret` or `secret_file`"),
                ({"secret": "geheim"}, "invalid", "`whsec_` and the base64 of 24 to 64 bytes"),
                ({"secret": "whsec_geheim"}, "invalid", "`whsec_` and the base64 of 24 to 64 bytes"),
                ({"secret": whsec(b"x" * 23)}, "invalid", "secret 1 must be"),
                ({"secret": whsec(b"x" * 65)}, "invalid", "secret 1 must be"),
                ({"secret": whsec(OLD) + " " + whsec(NEW)[:-3]}, "invalid", "secret 2 must be"),
                ({"secret": " ".join([whsec(OLD)] * 9)}, "invalid", "more than 8 secrets"),
                ({"secret": " "}, "invalid", "there is no secret in it"),
                ({"secret": None, "secret_file": self.path("none")}, "invalid", "there is no file"),
                ({"secret": None, "secret_file": wide}, "denied", "chmod 600"),
                ({"secret": None, "secret_file": self.directory}, "invalid", "is not a file"),
                ({"deadline": "5"}, "invalid", "`deadline` is `5`: it must be a duration such as 15s"),
                ({"deadline": "1ms"}, "invalid", "from 100ms to 5m"),
                ({"in_flight": "0"}, "invalid", "`in_flight` is `0`: it must be a number from 1 to 256"),
                ({"in_flight": "many"}, "invalid", "a number from 1 to 256"),
                ({"allow_private": "perhaps"}, "invalid", "yes or no"),
                ({"authorities": self.path("none")}, "invalid", "a PEM file that can be read"),
                ({"headers.Host": "x"}, "invalid", "`headers.Host`: it is set for every event"),
                ({"headers.Webhook-Id": "x"}, "invalid", "set for every event"),
                ({"headers.ce-id": "x"}, "invalid", "set for every event"),
                ({"headers.A B": "x"}, "invalid", "letters, digits"),
                ({"headers.X": "a\nb"}, "invalid", "printable ASCII"),
                ({"headers.X": ""}, "invalid", "1 to 1024 bytes"),
                ({"headers": "X: y"}, "invalid", "has no setting `headers`; there are url, secret"),
                ({"uri": "x"}, "invalid", "has no setting `uri`; there are url, secret, secret_file, deadline")):
            with self.subTest(change=change):
                settings = ["%s=%s" % (name, value) for name, value in {**good, **change}.items() if value is not None]
                got, error = self.refused("webhook", *settings)
                self.assertEqual(got, code, error)
                self.assertIn(said, error)
                for secret in (change.get("secret"), whsec(OLD)):
                    self.assertTrue(not (secret or "").strip() or secret not in error, error)


if __name__ == "__main__":
    unittest.main()
