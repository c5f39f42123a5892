# SPDX-License-Identifier: Apache-2.0
"""What the service behind `ibid proxy` sees on the wire: one request for each that the proxy took, framed by the proxy, and
never a part of one that a client made look like another (K05, E04).

IBID_WIRE_CASES=N and IBID_WIRE_SEED=N: how many requests are made up, and which."""
import concurrent.futures
import contextlib
import os
import random
import re
import socket
import threading
import unittest

from proxy_bed import Proxied
from serve_bed import LIMIT_S, Postgres, Sqlite

CASES = int(os.environ.get("IBID_WIRE_CASES", "400"))
SEED = int(os.environ.get("IBID_WIRE_SEED") or os.environ.get("IBID_TEST_SEED") or "1")
TCHAR = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The proxy never passes TRACE on: where the service sees it, it came as a part of another request.
HIDDEN = b"TRACE /hidden HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"


class WireService:
    """Keeps connections, and reads requests byte by byte as RFC 9112 says; what does not follow it is a fault."""

    def __init__(self, bed):
        self.closes = False  # instead of answering
        self.requests, self.faults = [], []  # (request line, headers, body); what was wrong
        self.lock = threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.host = "127.0.0.1:%d" % self.server.getsockname()[1]
        self.url = "http://" + self.host
        threading.Thread(target=self.accept, daemon=True).start()
        bed.addCleanup(self.server.close)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client, client.makefile("rb") as wire:
            while True:
                first = wire.readline()
                if not first:
                    return
                headers = []
                while (line := wire.readline()) not in (b"\r\n", b""):
                    headers.append(line)
                body = self.read(wire, first, headers)
                if body is None:
                    return  # broken off
                with self.lock:
                    self.requests.append((first, headers, body))
                if self.closes:
                    return
                client.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n" + (b"" if first.startswith(b"HEAD") else b"ok"))

    def fault(self, *what):
        with self.lock:
            self.faults.append(what)

    def values(self, headers, name):
        return [line.split(b":", 1)[1].strip() for line in headers if line.split(b":")[0].lower() == name]

    def read(self, wire, first, headers):
        if b"/hidden" in first or not re.fullmatch(rb"[A-Z-]+ /[\x21-\x7e]* HTTP/1\.1\r\n", first):
            self.fault("request line", first)
        for line in headers:
            if not re.fullmatch(rb"[%s]+: ?[^\r\n\x00]*\r\n" % re.escape(TCHAR), line):
                self.fault("header", line)
        lengths, codings = self.values(headers, b"content-length"), self.values(headers, b"transfer-encoding")
        if len(lengths) + len(codings) > 1 or codings not in ([], [b"chunked"]) or any(not length.isdigit() for length in lengths):
            self.fault("framing", first, headers)
        if self.values(headers, b"host") != [self.host.encode()]:
            self.fault("host", first, headers)
        if lengths:
            body = wire.read(int(lengths[0]))
            return body if len(body) == int(lengths[0]) else None
        body = b""
        while codings:
            line = wire.readline()
            if not line:
                return None
            size = int(line, 16)
            body += wire.read(size)
            if wire.readline() != b"\r\n":
                return None
            if not size:
                break
        return body


class ProxyWire(Proxied):
    def setUp(self):
        super().setUp()
        self.service = WireService(self)
        self.checked, self.marks = 0, set()
        self.contract("lenient", "POST /lenient", without_key="pass", strategy="key", recover="human", inquiry="")

    def post(self, lines, body, path=b"/orders", key=b"k-1"):
        return (b"POST %s HTTP/1.1\r\nHost: x\r\nX-Mark: %s\r\nContent-Type: application/json\r\n" % (path, path)
                + (b"Idempotency-Key: %s\r\n" % key if key else b"") + lines + b"\r\n" + body)

    def check(self, sent=None):
        """What the service has seen since the last time has the marks of our requests, each once, and nothing that was hidden."""
        with self.service.lock:
            self.assertEqual(self.service.faults, [], sent)
            new = self.service.requests[self.checked:]
            self.checked += len(new)
        for first, headers, _ in new:
            marks = [line for line in headers if line.startswith(b"X-Mark:")]
            self.assertEqual((len(marks), b"/hidden" in first, self.marks.intersection(marks)), (1, False, set()), (first, sent))
            self.marks.update(marks)

    def test_a_header_that_is_written_in_libcurls_notation_is_refused(self):
        server = self.proxy("upstream.other=all")
        for path, key in ((b"/orders", b"k-1"), (b"/lenient", None), (b"/pages", None)):
            for line in (b"Content-Length;:", b"content-length;: ", b"Transfer-Encoding;:", b"Transfer-Encoding;: chunked",
                         b"Host;evil.example:", b"Host;:evil.example", b"Expect;:", b"X-A;:", b"Content-Length;x: 3", b"@file:", b"\x80:"):
                got = server.raw(self.post(line + b"\r\nContent-Length: %d\r\n" % len(HIDDEN), HIDDEN, path, key))
                self.assertRegex(got, b"^HTTP/1.1 400 ", (path, line))
                self.assertIn(b"the name of header ", got, (path, line))
        self.assertEqual(self.service.requests, [])

    def test_only_tokens_are_names(self):  # RFC 9110, 5.1
        server = self.proxy()
        for byte in set(range(1, 256)) - set(TCHAR) - set(b"\r\n:"):
            for name in (b"X-A%c" % byte, b"%cX-A" % byte, b"X%cA" % byte):
                got = server.raw(self.post(name + b": 1\r\nContent-Length: 2\r\n", b"{}"))
                self.assertRegex(got, b"^HTTP/1.1 400 ", name)
        self.assertEqual(self.service.requests, [])
        allowed = b"".join(b"X%c: v%d\r\n" % (byte, byte) for byte in TCHAR if byte != ord("_"))
        self.assertRegex(server.raw(self.post(allowed + b"Content-Length: 2\r\n", b"{}")), b"^HTTP/1.1 201 ")
        (_, headers, _), = self.service.requests
        for line in allowed.splitlines():
            self.assertIn(line + b"\r\n", headers)
        self.check()

    def test_empty_values_trailers_and_long_lines_arrive_as_what_they_are(self):
        server = self.proxy("upstream.other=all", "http.limits.headers=100KiB")
        long = b"x" * 60000
        lines = b"X-Empty:\r\nUser-Agent:\r\nCookie:\r\nX-Long: %s\r\nTransfer-Encoding: chunked\r\n" % long
        for path, key in ((b"/orders", b"k-1"), (b"/pages", None)):
            got = server.raw(self.post(lines, b"2\r\n{}\r\n0\r\nContent-Length: 7\r\nX-Trailer;: 1\r\nHost: evil\r\n\r\n", path, key))
            self.assertRegex(got, b"^HTTP/1.1 (201|400) ", path)
        self.check()
        for first, headers, body in self.service.requests:
            self.assertEqual(body, b"{}", first)
            for line in (b"X-Empty:\r\n", b"User-Agent:\r\n", b"Cookie:\r\n", b"X-Long: %s\r\n" % long):
                self.assertIn(line, headers)
            self.assertEqual([line for line in headers if b"Trailer" in line], [])

    def test_a_path_and_a_query_are_visible_ascii(self):  # RFC 9112, 3.2
        server = self.proxy("upstream.other=all")
        for byte in (b"\t", b"\x01", b"\x7f", b"\x80", b"\xa0", b"\xff"):
            for target in (b"/pages%sx" % byte, b"/orders?a=%s" % byte):
                got = server.raw(b"POST %s HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k-1\r\nContent-Length: 0\r\n\r\n" % target)
                self.assertRegex(got, b"^HTTP/1.1 400 ", target)
        self.assertEqual(self.service.requests, [])

    def test_what_is_not_safe_to_repeat_is_sent_once(self):  # I4
        """On connections that are kept libcurl sends a request again when the service closes one instead of answering."""
        server = self.proxy("upstream.other=all")
        for method in ("PURGE", "MOVE", "LOCK", "COPY", "MKCOL", "DELETE", "PATCH", "POST", "PUT"):
            self.service.closes = False
            with concurrent.futures.ThreadPoolExecutor(6) as pool:  # connections that could be used again
                list(pool.map(lambda number: server.get("/pages"), range(12)))
            self.service.requests.clear()
            self.service.closes = True
            self.assertEqual(server.ask(method, "/pages").status, 502)
            self.assertEqual([first.split()[0].decode() for first, _, _ in self.service.requests], [method])

    def make_up(self, chance, number):
        """A request, or something like one. What it hides is in its body, or where a body might begin."""
        names = [b"Content-Length", b"Transfer-Encoding", b"Host", b"Expect", b"Connection", b"X-A", b"Trailer", b"Upgrade", b"TE",
                 b"Content-Type", b"Range", b"X-Forwarded-For", b"Cookie", b"Idempotency-Key", b"Content-Range"]
        odd = [b"", b";", b":", b" ", b"\t", b"\r", b"\n", b"\x00", b"\x0b", b"\x7f", b"\xa0", b"\xff", b",", b"=", b"@", b"_", b"chunked",
               b"100-continue", b"0", b"5", b"-1", b"+3", b"0x10", b"3, 3", b"evil.example", b"\r\n ", b"\r\nHost: evil.example", b";:"]
        path = chance.choice([b"/orders", b"/lenient", b"/pages", b"/pages?q=%s" % chance.choice(odd).replace(b" ", b"+")])
        method = chance.choice([b"POST", b"POST", b"POST", b"PUT", b"GET", b"DELETE", b"HEAD", b"PATCH"])
        body = chance.choice([b"{}", HIDDEN, b"{}" + HIDDEN, b"", b"0\r\n\r\n" + HIDDEN])
        lines = [b"Host: x", b"Content-Type: application/json"]
        if chance.random() < 0.7:
            lines.append(b"Idempotency-Key: k-%d" % chance.randrange(1000000))
        if chance.random() < 0.3:
            extension = chance.choice([b"", b"", b";a=b", b";" + chance.choice(odd)])
            trailer = chance.choice([b"", b"", b"Content-Length: 9\r\n", chance.choice(names) + chance.choice(odd) + b": 1\r\n"])
            lines.append(b"Transfer-Encoding: chunked")
            body = b"%x%s\r\n%s\r\n0\r\n%s\r\n" % (len(body), extension, body, trailer) if body else b"0\r\n%s\r\n" % trailer
        else:
            lines.append(b"Content-Length: %d" % len(body))
        for _ in range(chance.randrange(4)):
            name, how = chance.choice(names), chance.randrange(4)
            name = {0: name, 1: name + chance.choice(odd), 2: chance.choice(odd) + name, 3: name.lower() + b";"}[how]
            lines.insert(chance.randrange(len(lines) + 1), name + b":" + chance.choice([b"", b" "]) + chance.choice(odd))
        if chance.random() < 0.1:
            lines.pop(chance.randrange(len(lines)))
        lines.insert(0, b"X-Mark: %d" % number)  # what follows may end the head
        return method + b" " + path + b" HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body

    def test_whatever_a_client_sends_the_service_sees_one_request_framed_by_the_proxy(self):
        server = self.proxy("upstream.other=all")
        chance, answers = random.Random(SEED), {}
        for number in range(CASES):
            request = self.make_up(chance, number)
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire, contextlib.suppress(ConnectionError):
                wire.sendall(request)
                wire.shutdown(socket.SHUT_WR)
                got = b""
                while piece := wire.recv(65536):
                    got += piece
                answers[got[9:12]] = answers.get(got[9:12], 0) + 1
            self.check(request)
        self.assertGreater(answers.get(b"201", 0), CASES // 10, answers)
        self.assertGreater(answers.get(b"400", 0), CASES // 10, answers)
        self.assertEqual(server.ask("GET", "/pages", headers={"X-Mark": "last"}).status, 201)
        self.check()


class ProxyWireOnSqlite(ProxyWire, Sqlite, unittest.TestCase):
    pass


class ProxyWireOnPostgres(ProxyWire, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
