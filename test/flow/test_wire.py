# SPDX-License-Identifier: Apache-2.0
"""What the server's clients see on the wire: one answer for each request, framed as RFC 9112 says, and for what is no request a
4xx with a problem that says why (K05, K10)."""
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import unittest

from serve_bed import LIMIT_S, Postgres, Server, Sqlite, over_tls

POST = b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\nContent-Type: application/json\r\n"
NOTE = b'{"topic":"a"}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def answers(wire, count=None, heads=()):
    """The answers that come, until the server closes or there are so many; `heads`: the numbers of those without a body."""
    got, rest = [], b""
    while count is None or len(got) < count:
        head, end, body = rest.partition(b"\r\n\r\n")
        length = re.search(rb"(?mi)^content-length: (\d+)\r?$", head)
        size = 0 if len(got) in heads else int(length.group(1)) if length else 0
        if end and len(body) >= size:
            got.append((int(head.split(b" ")[1]), head, body[:size]))
            rest = body[size:]
            continue
        piece = wire.recv(65536)
        if not piece:
            return got, rest
        rest += piece
    return got, rest


class Wire:
    def connect(self, server):
        wire = socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S)
        self.addCleanup(wire.close)
        return wire

    def all_of(self, server, data):
        """Everything that comes back for these bytes, until the server closes."""
        wire = self.connect(server)
        try:
            wire.sendall(data)
            return answers(wire)
        except (BrokenPipeError, ConnectionResetError):
            return [], b""

    def test_what_is_no_request_is_refused_once_with_the_reason(self):
        server = Server(self)
        get, post = b"GET /healthz HTTP/1.1\r\n", POST % b"k"
        ending = b"0\r\n\r\n"
        cases = (
            (b"nonsense\r\n\r\n", "method, a path"), (b"nonsense\r\n", "method, a path"), (b"GET /healthz\r\n", "method, a path"),
            (b"GET /healthz x HTTP/1.1\r\nHost: x\r\n\r\n", "method, a path"), (b" " + get + b"Host: x\r\n\r\n", "method, a path"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "method, a path"), (5 * b"\r\n", "method, a path"),
            (b"GET /healthz HTTP/9.1\r\nHost: x\r\n\r\n", "version"), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"),
            (b"G{T /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "method"), (get + b"\r\n", "Host is missing"),
            (get + b"Host: x\r\nHost: y\r\n\r\n", "Host must be given once"), (get + b"Host: x\r\nX\r\n\r\n", "header 2 has no colon"),
            (get + b"Host: x\r\n: y\r\n\r\n", "name of header 2"), (get + b"Host: x\r\nA: b\r\n c\r\n\r\n", "folded"),
            (get + b"Host: x\r\nA: b\nC: d\r\n\r\n", "line feed alone"), (get + b"Host: x\n\n", "line feed alone"),
            (post + b"Content-Length: abc\r\n\r\n" + NOTE, "Content-Length must be"), (post + b"Content-Length: -1\r\n\r\n", "Content-Length must be"),
            (post + b"Content-Length: 1, 1\r\n\r\n", "Content-Length must be"),
            (post + CHUNKED + b"Content-Length: 5\r\n\r\n" + ending, "given once"),
            (post + b"Transfer-Encoding: gzip\r\n\r\n", "given once"),
            ((post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\r\n" + ending).replace(b"HTTP/1.1", b"HTTP/1.0"), "given once"),
            (post + CHUNKED + b"\r\nd;" + 100000 * b"x" + b"\r\n" + NOTE + b"\r\n" + ending, "too long together"),
            (post + CHUNKED + b"\r\n" + 20000 * b"1;\r\nx\r\n" + ending, "too long together"),
            (post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\r\n0\r\nX: " + 100000 * b"y" + b"\r\n\r\n", "too long together"),
            (post + CHUNKED + b"\r\nd\n" + NOTE + b"\r\n" + ending, "carriage return"),
            (post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\n" + ending, "longer than the size"),
            (post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\r\n0\n\r\n", "carriage return"),
            (post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\r\n0\r\n\n", "carriage return"),
            (post + CHUNKED + b"\r\nd;a\nb\r\n" + NOTE + b"\r\n" + ending, "carriage return"),
            (post + CHUNKED + b"\r\nc\r\n" + NOTE + b"\r\n" + ending, "longer than the size"),
            (post + CHUNKED + b"\r\nZZ\r\n" + NOTE, "hexadecimal"), (post + CHUNKED + b"\r\n0xd\r\n" + NOTE, "hexadecimal"),
            (post + CHUNKED + b"\r\nffffffffffffffffff\r\n" + NOTE, "too large"),
            (post + CHUNKED + b"\r\nd\r\n" + NOTE + b"\r\n0\r\nX;: y\r\n\r\n", "trailer's name"),
            (post + b"Expect: everything\r\nContent-Length: 13\r\n\r\n" + NOTE, "Expect"),
            (get + b"Host: x\r\nA: " + 40000 * b"b" + b"\r\n\r\n", "more than 32768 bytes"),
            (b"GET /" + 400000 * b"a" + b" HTTP/1.1\r\nHost: x\r\n\r\n", "more than 32768 bytes"),
            (get + b"Host: x\r\n" + 200 * b"A: b\r\n" + b"\r\n", "more than 128 headers"),
        )
        for data, why in cases:
            got, rest = self.all_of(server, data)
            self.assertEqual((len(got), rest), (1, b""), (data[:200], got, rest))
            status, head, body = got[0]
            problem = json.loads(body)
            self.assertEqual((status, problem["status"], problem["type"]), (400, 400, "/problems/bad-request"), data[:200])
            self.assertIn(b"\r\nContent-Type: application/problem+json", head)
            self.assertIn(b"\r\nConnection: close", head)
            self.assertIn(why, problem["detail"], data[:200])
        self.assertEqual(self.counts(), (0, 0, 0))
        self.assertEqual(server.send("k", {"topic": "a"}).status, 201)  # the key is free
        server.await_logged("http.request", len(cases), status=400)
        self.assertEqual(len(server.logged("http.request", status=400)), len(cases))

    def test_what_follows_a_request_that_is_refused_is_never_read_as_one(self):
        server = Server(self)
        hidden = POST % b"hidden" + b"Content-Length: 13\r\n\r\n" + NOTE
        for head in (b"Content-Length: 13;\r\n\r\n", CHUNKED + b"\r\nd\n", b"Content-Length: 99999999\r\n\r\n",
                     CHUNKED + b"Content-Length: 0\r\n\r\n"):
            got, rest = self.all_of(server, POST % b"k" + head + hidden)
            self.assertEqual((len(got), rest), (1, b""), got)
            self.assertIn(got[0][0], (400, 413))
        got, _ = self.all_of(server, b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n" + hidden)
        self.assertEqual([status for status, _, _ in got], [404])
        self.assertEqual(self.counts(), (0, 0, 0))

    def test_requests_in_a_row_are_answered_in_their_order(self):
        server = Server(self)
        data, wanted = b"", []
        for number in range(60):
            key = b"k-%d" % (number % 20)
            data += (b"\r\n" if number % 7 == 0 else b"") + POST % key
            data += (b"Content-Length: 13\r\n\r\n" + NOTE if number % 2 else
                     CHUNKED + b"\r\n4;a=b\r\n" + NOTE[:4] + b"\r\n9\r\n" + NOTE[4:] + b"\r\n0\r\nX-Sum: 1\r\n\r\n")
            data += b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nHEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
            wanted += [201, 200, 200]
        heads = range(2, 180, 3)
        for piece in (len(data), 1009, 5):
            wire = self.connect(server)
            sender = concurrent.futures.ThreadPoolExecutor(1)
            sent = sender.submit(lambda: [wire.sendall(data[at:at + piece]) for at in range(0, len(data), piece)])
            got, rest = answers(wire, 180, heads)
            sent.result(LIMIT_S)
            self.assertEqual(([status for status, _, _ in got], rest), (wanted, b""))
            self.assertEqual({body for _, _, body in got[0::3][:20]}, {body for _, _, body in got[0::3][20:40]})
            self.assertNotIn(b"\r\nConnection", b"".join(head for _, head, _ in got))
        self.assertEqual(self.counts(), (20, 20, 20))

    def test_a_connection_lasts_as_its_client_says(self):
        server = Server(self)
        for line, says, again in ((b"HTTP/1.1\r\nHost: x\r\n", None, True), (b"HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n", b"close", False),
                                  (b"HTTP/1.0\r\n", b"close", False), (b"HTTP/1.0\r\nConnection: keep-alive\r\n", b"keep-alive", True)):
            wire = self.connect(server)
            for _ in range(3 if again else 1):
                wire.sendall(b"GET /healthz " + line + b"\r\n")
                (status, head, _), = answers(wire, 1)[0]
                said = re.search(rb"(?m)^Connection: (\S+)\r?$", head)
                self.assertEqual((status, said and said.group(1)), (200, says), line)
            if not again:
                self.assertEqual(wire.recv(1), b"", line)

    def test_who_waits_for_100_before_its_body_gets_it(self):
        server = Server(self)
        wire = self.connect(server)
        wire.sendall(POST % b"k" + b"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n")
        self.assertEqual(wire.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.sendall(NOTE)
        self.assertEqual([status for status, _, _ in answers(wire, 1)[0]], [201])
        # One that would not be read is refused before it is sent, and one that is there already is not asked for.
        wire.sendall(POST % b"k" + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
        self.assertEqual([status for status, _, _ in answers(wire)[0]], [413])
        wire = self.connect(server)
        wire.sendall(POST % b"k" + b"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n" + NOTE)
        self.assertEqual([status for status, _, _ in answers(wire, 1)[0]], [201])

    def test_a_client_that_reads_nothing_fills_no_buffers_of_the_kernel(self):  # K10
        server = Server(self)
        wire = socket.socket()
        self.addCleanup(wire.close)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.settimeout(LIMIT_S)
        wire.connect(("127.0.0.1", server.port))
        wire.sendall(400 * b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(100):  # its answers are 20 MB in all
            with open("/proc/net/tcp", encoding="ascii") as table:
                waiting = [int(line.split()[4].partition(":")[0], 16) for line in table
                           if line.split()[1].endswith(":%04X" % server.port) and line.split()[3] == "01"]
            self.assertLess(max(waiting), 512 << 10)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_beyond_the_most_connections_clients_wait_for_their_turn(self):  # K10
        server = Server(self, "http.limits.connections=4")
        first = [self.connect(server) for _ in range(4)]
        for wire in first:
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual([status for status, _, _ in answers(wire, 1)[0]], [200])
        late = self.connect(server)
        late.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        late.settimeout(0.5)
        self.assertRaises(TimeoutError, late.recv, 1)
        first[2].close()
        late.settimeout(LIMIT_S)
        self.assertEqual([status for status, _, _ in answers(late, 1)[0]], [200])

    # ---- TLS ------------------------------------------------------------------------------------

    def trusting(self, server, pem):
        wire = ssl.create_default_context(cafile=pem + ".crt").wrap_socket(self.connect(server), server_hostname="127.0.0.1")
        self.addCleanup(wire.close)
        return wire

    def test_over_tls_it_is_the_same(self):
        pem, server = over_tls(self, "http.limits.body=1MiB", "http.limits.request=20s")
        self.assertTrue(server.address.startswith("https://127.0.0.1:"), server.address)
        silent = self.connect(server)  # one that never shakes hands keeps nobody waiting
        wire = self.trusting(server, pem)
        self.assertIn(wire.version(), ("TLSv1.2", "TLSv1.3"))
        for turn, more in enumerate((b"", b"", b"Connection: close\r\n")):
            wire.sendall(POST % b"k" + more + b"Content-Length: 13\r\n\r\n" + NOTE)
            (status, head, _), = answers(wire, 1)[0]
            self.assertEqual((status, b"Idempotent-Replayed: true" in head), (201, turn > 0))
        self.assertEqual(wire.recv(1), b"")
        # Larger than what TLS and the kernel take at once, in both directions, and refused with a body on its way.
        text = b"x" * 900000
        large = b'{"topic":"a","text":"%s"}' % text
        wire = self.trusting(server, pem)
        wire.sendall(POST % b"large" + b"Content-Length: %d\r\n\r\n" % len(large) + large)
        self.assertEqual([status for status, _, _ in answers(wire, 1)[0]], [422])
        wire.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 30)
        self.assertEqual([status for status, _, _ in answers(wire, 30)[0]], 30 * [200])
        wire.sendall(POST % b"larger" + b"Content-Length: 3000000\r\n\r\n" + text)
        self.assertEqual([status for status, _, _ in answers(wire)[0]], [413])
        got, _ = self.all_of(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # without TLS
        self.assertEqual(got, [])
        self.assertEqual(self.counts(), (1, 1, 1))
        silent.close()
        self.assertEqual(server.stop(), 0)

    def test_many_at_once_over_tls(self):
        pem, server = over_tls(self)

        def pay(number):
            wire = self.trusting(server, pem)
            for turn in range(5):
                wire.sendall(POST % (b"k-%d" % ((number + turn) % 10)) + b"Content-Length: 13\r\n\r\n" + NOTE)
                status = answers(wire, 1)[0][0][0]
                while status == 409:
                    wire.sendall(POST % (b"k-%d" % ((number + turn) % 10)) + b"Content-Length: 13\r\n\r\n" + NOTE)
                    status = answers(wire, 1)[0][0][0]
                self.assertEqual(status, 201)

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(pay, range(40)))
        self.assertEqual(self.counts(), (10, 10, 10))

    def test_a_certificate_that_is_none_is_refused_at_the_start(self):
        pem, server = over_tls(self)
        other = os.path.join(self.dir, "other.pem")
        subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True, timeout=LIMIT_S)
        torn = os.path.join(self.dir, "torn.pem")
        shutil.copy(pem + ".crt", torn)
        with open(torn, "r+b") as handle:
            handle.truncate(200)
        locked = os.path.join(self.dir, "locked.pem")
        subprocess.run(["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", pem, "-out", locked], check=True,
                       capture_output=True, timeout=LIMIT_S)
        for certificate, key, why in ((pem + ".crt", other, "not the certificate's"), (torn, pem, "certificate can't be read"),
                                      (pem + ".crt", torn, "key can't be read"), (pem + ".crt", locked, "needs a password")):
            with self.assertRaisesRegex(AssertionError, "http.tls.certificate %s, http.tls.key %s: .*%s" % (certificate, key, why)):
                Server(self, "http.tls.certificate=" + certificate, "http.tls.key=" + key)
        self.assertEqual(server.stop(), 0)


class WireSqlite(Wire, Sqlite, unittest.TestCase):
    pass


class WirePostgres(Wire, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
