# SPDX-License-Identifier: Apache-2.0
"""A service that knows nothing of retries, and servers in front of it."""
import contextlib
import http.server
import json
import socket
import ssl
import threading
import time

from serve_bed import LIMIT_S, Server

ORDER = """\
command: %(name)s
version: 1
fact: an order is placed
route: %(route)s
strategy: %(strategy)s
fields:
  /item: { type: text, max: 60 }
%(fields)s
emits: []
covers: [the service's order]
handler: upstream
staged: { lease: %(lease)s, recover: %(recover)s }
upstream:
  deadline: %(deadline)s
  %(wait)s
  without_key: %(without_key)s
  conflict: %(conflict)s
  error: %(error)s
  headers: [Location, ETag]
  %(inquiry)s
"""
INQUIRY = ('inquiry: { url: "/orders/by-key/{external_key}", executed: "status=200", not_executed: "status=404", '
           "settle: %s, backoff: 1s..2s, give_up: 1h }")


# Answers that are no outcomes, whatever the contract says.
NOT_NOW = {"denied": 401, "forbidden": 403, "proxied": 407, "slow-client": 408, "early": 425, "limited": 429, "busy": 503}


class Service:
    """The service behind the proxy: executes what it is sent, every time, and behaves as the request's `mode` says."""

    def __init__(self, bed, certificate=None):
        self.executed = []  # (the client's key, ours)
        self.seen = []  # every request: (method, path, headers, body)
        self.inquiries = []  # when each was made
        self.lock = threading.Lock()
        self.free = threading.Event()  # lets go of who hangs
        self.inquiry_answers = True
        self.absent_may_go = threading.Event()  # lets go of "not executed", which was true when it was found out
        self.absent_may_go.set()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def body(self):
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    whole = b""
                    while True:
                        size = int(self.rfile.readline().strip(), 16)
                        whole += self.rfile.read(size)
                        self.rfile.readline()
                        if not size:
                            return whole
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def say(self, status, body, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_POST(self):
                service.post(self, self.body())

            do_PUT = do_DELETE = do_PATCH = do_POST

            def do_GET(self):
                service.get(self, self.body())

            do_HEAD = do_OPTIONS = do_GET

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 200

            def handle_error(self, request, client_address):
                pass  # the proxy hung up

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = "http%s://127.0.0.1:%d" % ("s" if certificate else "", self.port)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        bed.addCleanup(self.end)

    def end(self):
        self.free.set()
        self.absent_may_go.set()
        self.server.shutdown()
        self.server.server_close()

    def note(self, handler, body):
        with self.lock:
            self.seen.append((handler.command, handler.path, handler.headers, body))

    def execute(self, handler):
        with self.lock:
            self.executed.append((handler.headers.get("Ibid-Client-Key"), handler.headers.get("Idempotency-Key")))
            return len(self.executed)

    def times(self, key):
        with self.lock:
            return sum(1 for executed, _ in self.executed if executed == key)

    def sent(self, key):
        """How often requests under this key of a client have come, carried out or not."""
        with self.lock:
            return sum(1 for seen in self.seen if key and seen[2].get("Ibid-Client-Key") == key)

    def post(self, handler, body):
        self.note(handler, body)
        try:
            modes = json.loads(body).get("mode", "work").split(",")  # one for each time that the key comes
        except (ValueError, AttributeError):
            modes = ["work"]
        mode = modes[min(max(1, self.sent(handler.headers.get("Ibid-Client-Key"))), len(modes)) - 1]
        if mode == "busy-large":
            handler.say(503, b"x" * (3 << 20), Content_Type="text/plain")
        elif mode in NOT_NOW:
            handler.say(NOT_NOW[mode], b"not now",
                        Retry_After="7", WWW_Authenticate="Basic", Content_Type="text/plain")
        elif mode == "invalid":
            handler.say(422, b'{"wrong":  "item"}', Content_Type="application/json", X_Secret="s")
        elif mode.startswith("say-"):  # executes nothing, and says this
            handler.say(int(mode[4:]), b"so be it", Content_Type="text/plain", Location="/orders/0", ETag='"e"',
                        Retry_After="soon", WWW_Authenticate="Basic", Set_Cookie="session=secret")
        elif mode.endswith("-error"):  # it is done, and a 500 says: the request, more than is kept, or bytes that are no text
            self.execute(handler)
            said = {"echo": b"boom over\n%s" % body, "large": b"\xc3\xa4" * (3 << 20), "bytes": b"a\0b\xff"}[mode[:-6]]
            handler.say(500, said, Content_Type="text/plain", X_Secret="in a header")
        elif mode == "conflict":
            handler.say(409, b"it is there", Content_Type="text/plain")
        elif mode == "refuse-silently":
            handler.close_connection = True  # executes nothing, and says nothing
        elif mode == "leave-late":  # as "late", but hangs up at once
            threading.Thread(target=lambda: (self.free.wait(LIMIT_S), self.execute(handler)), daemon=True).start()
            handler.close_connection = True
        elif mode == "late":
            self.free.wait(LIMIT_S)
            self.execute(handler)
            handler.close_connection = True
        else:
            self.work(handler, mode)

    def work(self, handler, mode):
        number = self.execute(handler)
        if mode == "drop":
            handler.close_connection = True
        elif mode == "half":
            handler.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nonly a part")
            handler.close_connection = True
        elif mode == "hang":
            self.free.wait(LIMIT_S)
            handler.close_connection = True
        elif mode == "error":
            handler.say(500, b"oh", Content_Type="text/plain")
        elif mode == "slow":
            self.free.wait(LIMIT_S)
            handler.say(201, b'{"order": %d}' % number, Content_Type="application/json")
        elif mode == "large":
            handler.say(201, b"x" * (3 << 20), Content_Type="text/plain")
        elif mode.startswith("head-"):  # with so many bytes of headers
            handler.say(201, b"made", Content_Type="text/plain", ETag='"%s"' % (int(mode[5:]) * "e"))
        elif mode == "binary":
            handler.say(200, bytes(range(256)), Content_Type="image/png")
        elif mode == "controls":
            handler.say(200, b"\x01" * 800000, Content_Type="text/plain")
        elif mode == "packed":
            handler.say(200, b"\x1f\x8b packed", Content_Type="text/plain", Content_Encoding="gzip")
        elif mode == "moved":
            handler.say(303, b"", Location="/orders/%d" % number)
        elif mode == "empty":
            handler.say(204, b"")
        else:
            handler.say(201, b'{"order":   %d}' % number, Content_Type="application/json; charset=utf-8",
                        Location="/orders/%d" % number, ETag='"e%d"' % number, Set_Cookie="session=secret",
                        X_Secret="s")

    def get(self, handler, body):
        self.note(handler, body)
        prefix = "/orders/by-key/"
        if handler.path.startswith(prefix):
            self.inquiries.append(time.monotonic())
            key = handler.path[len(prefix):]
            found = [number for number, (_, ours) in enumerate(self.executed, 1) if ours == key]
            if not self.inquiry_answers:
                handler.say(500, b"")
            elif found:
                handler.say(200, b'{"order": %d}' % found[0], Content_Type="application/json",
                            Location="/orders/%d" % found[0])
            else:
                self.absent_may_go.wait(LIMIT_S)
                handler.say(404, b"")
        elif handler.path.startswith("/head="):
            handler.say(200, b"page", ETag='"%s"' % (int(handler.path.split("=")[1]) * "e"))
        elif handler.path.startswith("/hang/"):
            self.free.wait(LIMIT_S)
            handler.close_connection = True
        elif handler.path.startswith("/large"):
            size = int(handler.path.split("=")[1])
            handler.send_response(200)
            handler.send_header("Content-Length", str(size))
            handler.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(size >> 16):
                    handler.wfile.write(b"y" * (1 << 16))
        else:
            handler.say(200, b"page", Content_Type="text/html", Set_Cookie="a=1", Cache_Control="max-age=5")


class Wire:
    """A way to the store that can stall: what comes back from there is held, from the answer to a commit on."""

    def __init__(self, bed, host, port):
        self.target, self.marked = (host, port), None
        self.held, self.flows = threading.Event(), threading.Event()
        self.flows.set()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        bed.addCleanup(self.flows.set)
        bed.addCleanup(self.server.close)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                store = socket.create_connection(self.target)
                for source, sink, up in ((client, store, True), (store, client, False)):
                    threading.Thread(target=self.carry, args=(source, sink, up), daemon=True).start()

    def carry(self, source, sink, up):
        """Hold what follows the message after the one that holds the mark: its claim, then its commit."""
        claimed = False
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if up and claimed:
                    claimed = False
                    self.flows.clear()
                    self.held.set()
                elif up and self.marked and self.marked in piece:
                    self.marked, claimed = None, True
                elif not up:
                    self.flows.wait(LIMIT_S)
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class RawService:
    """Gives the same bytes to whoever asks."""

    def __init__(self, bed, said):
        self.said = said
        self.server = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = "http://127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()
        bed.addCleanup(self.server.close)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with contextlib.suppress(OSError), client:
            while b"\r\n\r\n" not in client.recv(65536):
                pass
            client.sendall(self.said)
            client.shutdown(socket.SHUT_WR)
            client.recv(1)


class Proxied:
    """A bed with a service behind its servers."""

    def setUp(self):
        super().setUp()
        self.service = Service(self)
        self.contract("place-order", "POST /orders")

    def contract(self, name, route, **more):
        said = {"name": name, "route": route, "lease": "5s", "recover": "inquiry", "deadline": "2s", "wait": "",
                "without_key": "refuse", "conflict": "keep", "error": "unknown", "fields": "",
                "inquiry": INQUIRY % "0s", "strategy": "external"}
        said.update(more)
        self.file(name + ".yaml", ORDER % said)

    def proxy(self, *settings, env=None, clock=None):
        return Server(self, "upstream.url=" + self.service.url, *settings, env=env, clock=clock)

    def order(self, server, key, document, path="/orders", **headers):
        return server.send(key, document, path=path, **headers)

    def retry(self, server, key, document, path="/orders"):
        """As a client does: one that somebody looks at for a moment is asked for again."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = self.order(server, key, document, path)
            if answer.status != 409:
                return answer
            self.assertLess(time.monotonic(), end, answer)
            time.sleep(0.02)

    def await_inquiries(self, count):
        end = time.monotonic() + LIMIT_S
        while len(self.service.inquiries) < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def await_state(self, key, state):
        end = time.monotonic() + LIMIT_S
        while self.state(key) != state:
            self.assertLess(time.monotonic(), end, self.state(key))
            time.sleep(0.02)

    def state(self, key):
        sql = "select state from %s where key = '%s'" % (self.ledger("command"), key)
        return self.number(sql)

    def await_answer(self, server, key, document, status, path="/orders"):
        """Retry as a client does, until the answer has this status."""
        end = time.monotonic() + LIMIT_S
        while True:
            answer = self.order(server, key, document, path)
            if answer.status == status:
                return answer
            self.assertLess(time.monotonic(), end, answer)
            time.sleep(0.05)
