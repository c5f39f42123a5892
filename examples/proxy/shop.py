#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A shop that knows nothing of retries: every POST /orders is another order.

    shop.py [PORT]

GET /orders lists them, GET /orders?key=K finds the one that came with that Idempotency-Key. An order for `a vase` is
taken and then the connection breaks, as when a server dies behind its commit.
"""
import http.server
import json
import sys
import urllib.parse

ORDERS = []


class Shop(http.server.BaseHTTPRequestHandler):
    def answer(self, status, document, **headers):
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not order.get("item"):
            self.answer(422, {"error": "what do you want?"})
            return
        ORDERS.append({"order": len(ORDERS) + 1, "item": order["item"], "key": self.headers["Idempotency-Key"]})
        if order["item"] == "a vase":
            self.close_connection = True  # it breaks, and nobody hears of the order
        else:
            self.answer(201, ORDERS[-1], Location="/orders/%d" % len(ORDERS))

    def do_GET(self):
        key = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("key")
        if not key:
            self.answer(200, ORDERS)
            return
        found = [order for order in ORDERS if order["key"] == key[0]]
        self.answer(200 if found else 404, found[0] if found else {"error": "no such order"})

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 3000), Shop)
    print("the shop is open at http://127.0.0.1:%d" % server.server_address[1], flush=True)
    server.serve_forever()
