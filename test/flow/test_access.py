# SPDX-License-Identifier: Apache-2.0
"""Who may use the server: tokens, their tenants, clients, roles and rates, on both stores (K05, K10)."""
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import subprocess
import time
import unittest
import uuid

import psycopg2

from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

HELLO = {"topic": "greetings", "text": "hello"}
NOT_OPEN = "http.open.tenant="
KEPT_S = 5  # how long a server may go on with a token that was revoked


def bearer(token):
    return {"Authorization": "Bearer " + token}


def same(answer):
    """What the client of an answer can tell, but for the time of day."""
    return answer.status, answer.body, sorted((name, value) for name, value in answer.headers.items() if name != "Date")


class Access:
    # ---- Helpers --------------------------------------------------------------------------------

    def ibid(self, *arguments, code=0):
        """Standard output and standard error."""
        done = subprocess.run([BIN, *arguments, "--store", self.url], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def create(self, client="web", roles="client", tenant="t", *more):
        out, _ = self.ibid("token", "create", "--tenant", tenant, "--client", client, "--roles", roles, "--json", *more)
        return json.loads(out)

    def token(self, *arguments):
        return self.create(*arguments)["token"]

    def listed(self, *arguments):
        return [json.loads(line) for line in self.ibid("token", "list", "--json", *arguments)[0].splitlines()]

    def look(self, server, token, path):
        return server.ask("GET", path, headers=bearer(token))

    def send(self, server, token, key, document=None, **more):
        return server.send(key, document or HELLO, **bearer(token), **more)

    def keys(self, server, token, query=""):
        answer = self.look(server, token, "/v1/commands" + query)
        self.assertEqual(answer.status, 200, answer)
        return sorted(item["key"] for item in answer.json["items"])

    # ---- The command line -----------------------------------------------------------------------

    def test_a_token_is_shown_when_it_is_made_and_never_again(self):
        out, said = self.ibid("token", "create", "--tenant", "t", "--client", "web", "--by", "ann", "--expires", "90d")
        fields = dict(line.split(None, 1) for line in out.splitlines())
        text = fields["token"]
        self.assertRegex(text, r"^ibid_[0-9a-f]{16}_[0-9a-f]{64}$")
        self.assertIn("not shown again", said)
        self.assertNotIn(text, said)
        made = self.create("ops", "operator,approver")
        self.assertEqual(made["roles"], ["operator", "approver"])
        self.assertNotEqual(made["token"], text)
        newest, first = self.listed()
        self.assertEqual((newest["id"], newest["client"], newest.get("expiresAt")), (made["id"], "ops", None))
        self.assertEqual({name: first[name] for name in ("id", "tenant", "client", "roles", "createdBy", "state")},
                         {"id": fields["id"], "tenant": "t", "client": "web", "roles": ["client"], "createdBy": "ann",
                          "state": "valid"})
        revoked, _ = self.ibid("token", "revoke", fields["id"], "--by", "ben")
        self.assertIn("by ben", revoked)
        self.ibid("token", "revoke", fields["id"], "--by", "eve")  # once and for good
        self.assertEqual([row.get("revokedBy") for row in self.listed()], [None, "ben"])
        self.create("web", "client", "other")
        self.assertEqual(len(self.listed()), 3)
        self.assertEqual([row["tenant"] for row in self.listed("--tenant", "other")], ["other"])
        page = self.listed("--limit", "1", "--after", made["id"])
        self.assertEqual([row["id"] for row in page], [fields["id"]])
        shown = "".join(self.ibid("token", "list")) + json.dumps(self.listed()) + revoked
        for secret in (text, made["token"]):
            self.assertNotIn(secret[22:], shown)
        for row in self.digests():
            self.assertNotIn(row.hex(), shown)

    def test_a_command_line_that_is_wrong_makes_nothing(self):
        base = ("token", "create", "--tenant", "t", "--client", "web")
        for arguments, said in ((("token", "create", "--tenant", "t"), "--client is missing"),
                                (("token", "create", "--client", "web"), "--tenant is missing"),
                                (base + ("--roles", "boss"), "client, operator, approver, admin"),
                                (base + ("--roles", ""), "client, operator, approver, admin"),
                                (base + ("--roles", "client,"), "client, operator, approver, admin"),
                                (base + ("--expires", "soon"), "a duration"),
                                (base + ("--expires", "0s"), "a duration"),
                                (base + ("--expires", "101y"), "100y at most"),
                                (("token", "create", "--tenant", "t", "--client", "x" * 129), "client"),
                                (("token", "create", "--tenant", "a\tb", "--client", "x"), "tenant"),
                                (("token", "revoke"), "`ibid token list`"),
                                (("token", "list", "--after", "x"), "16 hex digits")):
            self.assertIn(said, self.ibid(*arguments, code=2)[1])
        self.assertIn("no token 0123456789abcdef", self.ibid("token", "revoke", "0123456789abcdef", code=1)[1])
        self.assertEqual(self.listed(), [])
        made = self.create()
        _, said = self.ibid("token", "revoke", made["token"], code=2)
        self.assertNotIn(made["token"][22:], said)
        self.assertEqual(self.listed()[0]["state"], "valid")
        with open("/dev/full", "w", encoding="ascii") as full:  # made, but nobody saw it
            lost = subprocess.run([BIN, "token", "create", "--tenant", "t", "--client", "lost", "--store", self.url],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertIn("revoke " + self.listed()[0]["id"], lost.stderr)

    # ---- Who it is ------------------------------------------------------------------------------

    def test_the_principal_is_the_tokens_whatever_the_request_says(self):
        server = Server(self, "http.open.tenant=elsewhere", "http.open.client=nobody")
        token = self.token("web", "client,operator")
        for n, scheme in enumerate(("Bearer", "bearer", "BEARER", "Bearer ")):
            answer = server.send("k-%d" % n, HELLO, Authorization=scheme + " " + token, Ibid_Actor="ann", Ibid_Tenant="evil",
                                 Ibid_Client="evil", Tenant="evil", Client="evil")
            self.assertEqual(answer.status, 201, answer)
            row = self.look(server, token, "/v1/operations/" + answer.headers["Ibid-Command-Id"]).json
            self.assertEqual((row["client"], row["actor"]), ("web", "ann"))
        table = self.ledger("command")
        self.assertEqual(self.number("select count(*) from %s where tenant = 't' and client = 'web'" % table), 4)
        self.assertEqual(self.send(server, token, "k-x").status, 201)
        self.assertEqual(self.number("select count(*) from %s where actor = 'web'" % table), 1)
        opened = server.send("k-0", HELLO)  # on loopback, without a token, as the settings say
        self.assertEqual((opened.status, opened.headers["Idempotent-Replayed"]), (201, None))
        self.assertEqual(self.number("select count(*) from %s where tenant = 'elsewhere' and client = 'nobody'" % table), 1)

    def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(self):
        for setting in ("http.open.tenant=t", NOT_OPEN):  # whoever shows a token is never let in without it
            server = Server(self, setting)
            good, revoked = self.create(), self.create()
            self.ibid("token", "revoke", revoked["id"])
            other = self.token("app")
            text = good["token"]
            wrong = {
                "unknown id": "Bearer ibid_%s_%s" % ("0" * 16, text[22:]),
                "wrong secret": "Bearer " + text[:-1] + ("0" if text[-1] != "0" else "1"),
                "another's secret": "Bearer " + text[:22] + other[22:],
                "revoked": "Bearer " + revoked["token"],
                "no token": "Bearer",
                "only a blank": "Bearer  x",
                "no scheme": text,
                "another scheme": "Basic " + text,
                "a scheme's beginning": "Bear " + text,
                "no blank": "Bearer" + text,
                "upper case": "Bearer " + text.upper(),
                "upper case digits": "Bearer ibid_" + text[5:].upper(),
                "too short": "Bearer " + text[:-1],
                "too long": "Bearer " + text + "0",
                "much too long": "Bearer " + text + "0" * 20000,
                "two of them": "Bearer %s %s" % (text, text),
                "a list": "Bearer %s, Bearer %s" % (text, text),
                "quoted": 'Bearer "%s"' % text,
                "a digest": "Bearer ibid_%s_%s" % (good["id"], self.digests()[0].hex()),
                "SQL": "Bearer ibid_' or 1=1 --_" + text[22:],
                "signs": "Bearer %s%n%x\u00e9",
                "empty": "",
            }
            for known in (False, True):  # with and without the good one in the server's memory
                answers = {name: server.send("k", HELLO, Authorization=given) for name, given in wrong.items()}
                for name, answer in answers.items():
                    self.assertEqual(same(answer), same(answers["unknown id"]), name)
                self.assertEqual((answer.status, answer.json["type"], answer.headers["WWW-Authenticate"]),
                                 (401, "/problems/unauthorized", "Bearer"))
                if not known:
                    self.assertEqual(self.send(server, text, "k-" + setting).status, 201)
            if setting == NOT_OPEN:
                self.assertEqual(same(server.send("k", HELLO)), same(answer))
                for path in ("/v1/commands", "/v1/commands/note/k", "/v1/operations/x"):
                    self.assertEqual(same(server.get(path)), same(answer))
                self.assertEqual(same(server.send("k", HELLO, path="/topics/a/notes")), same(answer))
        self.assertEqual(self.counts(), (2, 2, 2))

    def test_a_head_that_is_hostile_is_refused(self):
        server = Server(self)
        token = self.token().encode()
        head = b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n"
        tail = b"Content-Length: 13\r\n\r\n{\"topic\":\"a\"}"
        good = b"Authorization: Bearer " + token
        for lines, statuses in (
                (good + b"\0x\r\n", (400,)), (good + b"\0\r\n", (400,)), (b"Authorization: Bearer \0" + token + b"\r\n", (400, 401)),
                (good + b"\r\n" + good + b"\r\n", (400, 401)),
                (b"Authorization: Bearer x\r\n" + good + b"\r\n", (400, 401)),
                (good + b"\r\nauthorization:\r\n", (400, 401)),
                (good + b"\r\nContent-Length;:\r\n", (400,)), (good + b"\r\nX-\x80: a\r\n", (400,)),
                (good + b"\r\nX A: a\r\n", (400,)), (good + b"\r\n: a\r\n", (400,)),
                (b"Authorization: Bearer\r\n " + token + b"\r\n", (400, 401)),
                (b"Authorization: Bearer\t" + token + b"\r\n", (400, 401)),
                (b"Authorization : Bearer " + token + b"\r\n", (400, 401)),
                (b"Authorization: Bearer " + b"\xff" * 86 + b"\r\n", (400, 401)),
                (b"Authorization: Bearer " + token * 1000 + b"\r\n", (400, 413, 431))):
            got = server.raw(head + lines + tail)
            status = int(got.split(b" ")[1]) if got.startswith(b"HTTP/") else None
            self.assertIn(status, statuses, (lines[:60], got[:200]))
        self.assertEqual(self.counts(), (0, 0, 0))
        self.assertEqual(int(server.raw(head + good + b"\r\n" + tail).split(b" ")[1]), 201)  # the same, unharmed

    # ---- How long -------------------------------------------------------------------------------

    def until_refused(self, ask, ends):
        """Ask until it is 401. Whatever was asked after the clock said `ends` must be."""
        while True:
            began = time.time()
            answer = ask()
            if answer.status == 401:
                return answer
            self.assertLess(began, ends, answer)
            time.sleep(0.02)

    def test_a_revoked_token_gets_no_stored_answer_and_its_client_goes_on_with_another(self):
        server = Server(self, NOT_OPEN)
        old, new = self.create(), self.create()
        first = self.send(server, old["token"], "k-1")
        self.assertEqual(first.status, 201, first)
        again = self.send(server, new["token"], "k-1")  # the scope is the client, not the token
        self.assertEqual((again.status, again.body, again.headers["Idempotent-Replayed"]), (201, first.body, "true"))
        self.assertEqual(self.send(server, new["token"], "k-1", dict(HELLO, text="bye")).status, 409)
        self.ibid("token", "revoke", old["id"])
        refused = self.until_refused(lambda: self.send(server, old["token"], "k-1"), time.time() + KEPT_S)
        self.assertNotIn(first.json["id"].encode(), refused.body)
        self.assertIsNone(refused.headers["Idempotent-Replayed"])
        self.assertIsNone(refused.headers["Ibid-Command-Id"])
        self.assertEqual(self.send(server, old["token"], "k-1").status, 401)
        self.assertEqual(self.look(server, old["token"], "/v1/operations/" + first.json["id"]).status, 401)
        self.assertEqual(self.send(server, new["token"], "k-1").body, first.body)
        self.assertEqual(self.counts(), (1, 1, 1))

    def test_an_expired_token_is_refused_also_when_it_was_seen_a_moment_ago(self):
        server = Server(self, NOT_OPEN)
        made = self.create("web", "client", "t", "--expires", "3s")
        ends = time.time() + 3  # it was made before
        answer = self.send(server, made["token"], "k-1")
        self.until_refused(lambda: self.send(server, made["token"], "k-1"), ends)
        self.assertIn(answer.status, (201, 401))  # a machine that stood still for three seconds
        self.assertEqual(self.listed()[0]["state"], "expired")
        self.assertEqual(self.send(server, self.token(), "k-2").status, 201)

    # ---- What it may ----------------------------------------------------------------------------

    def test_roles_allow_what_they_say_and_no_more(self):
        server = Server(self, NOT_OPEN)
        web, app, ops = self.token("web"), self.token("app"), self.token("ops", "operator")
        both = self.token("web", "client,operator")
        ids = {}
        for token, key in ((web, "k-web"), (app, "k-app"), (both, "k-both")):
            answer = self.send(server, token, key)
            self.assertEqual(answer.status, 201, answer)
            ids[key] = answer.json["id"]
        refused = [self.send(server, ops, "k-ops"), self.send(server, ops, "k-ops", path="/topics/a/notes"),
                   self.send(server, ops, "k-web")]
        for token in (self.token("web", "approver"), self.token("web", "admin"), self.token("web", "approver,admin")):
            refused += [self.send(server, token, "k-none"), self.look(server, token, "/v1/commands"),
                        self.look(server, token, "/v1/operations/" + ids["k-web"]),
                        self.look(server, token, "/v1/commands/note/k-web")]
        for answer in refused:
            self.assertEqual((answer.status, answer.json["type"]), (403, "/problems/forbidden"), answer)
        self.assertEqual(self.counts(), (3, 3, 3))
        self.assertEqual(self.keys(server, web), ["k-both", "k-web"])
        self.assertEqual(self.keys(server, app), ["k-app"])
        self.assertEqual(self.keys(server, app, "?client=web"), ["k-app"])
        self.assertEqual(self.keys(server, app, "?key=k-web"), [])
        for token in (ops, both):
            self.assertEqual(self.keys(server, token), ["k-app", "k-both", "k-web"])
            self.assertEqual(self.keys(server, token, "?client=app"), ["k-app"])
            self.assertEqual(self.look(server, token, "/v1/operations/" + ids["k-app"]).status, 200)
            self.assertEqual(self.look(server, token, "/v1/commands/note/k-app?client=app").json["id"], ids["k-app"])
        self.assertEqual(self.look(server, web, "/v1/operations/" + ids["k-web"]).status, 200)
        self.assertEqual(self.look(server, web, "/v1/commands/note/k-both").json["id"], ids["k-both"])
        absent = same(self.look(server, app, "/v1/operations/" + str(uuid.uuid4())))
        self.assertEqual(absent[0], 404)
        for path in ("/v1/operations/" + ids["k-web"], "/v1/commands/note/k-web", "/v1/commands/note/k-web?client=web",
                     "/v1/commands/note/none"):
            self.assertEqual(same(self.look(server, app, path)), absent, path)

    def test_another_tenants_commands_are_as_if_they_were_not_there(self):
        server = Server(self, NOT_OPEN)
        mine, theirs = self.token("web", "client,operator"), self.token("web", "client,operator", "other")
        secret = self.send(server, theirs, "k-1")
        self.assertEqual(secret.status, 201)
        for shown, absent in (("/v1/commands/note/k-1", "/v1/commands/note/none"),
                              ("/v1/commands/note/k-1?client=web", "/v1/commands/note/none?client=web"),
                              ("/v1/operations/" + secret.json["id"], "/v1/operations/" + str(uuid.uuid4())),
                              ("/v1/commands?key=k-1", "/v1/commands?key=none"), ("/v1/commands", "/v1/commands?key=none")):
            self.assertEqual(same(self.look(server, mine, shown)), same(self.look(server, mine, absent)), shown)
            self.assertEqual(self.look(server, theirs, shown).status, 200)
        own = self.send(server, mine, "k-1", {"topic": "another"})  # no conflict, no replay
        self.assertEqual((own.status, own.headers["Idempotent-Replayed"]), (201, None))
        self.assertEqual(self.keys(server, mine), ["k-1"])
        self.assertEqual(self.look(server, mine, "/v1/commands/note/k-1").json["id"], own.json["id"])

    # ---- How many -------------------------------------------------------------------------------

    def test_a_token_that_sends_too_much_is_told_when_and_nothing_is_done(self):
        server = Server(self, NOT_OPEN, "http.limits.rate=2")
        token, other = self.token(), self.token()
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(lambda n: self.send(server, token, "k-%d" % n), range(40)))
        lasted = time.monotonic() - began
        taken = [answer for answer in answers if answer.status == 201]
        refused = [answer for answer in answers if answer.status == 429]
        self.assertEqual(len(taken) + len(refused), 40, answers)
        self.assertGreaterEqual(len(taken), 2)
        self.assertLessEqual(len(taken), 2 + 2 * lasted)
        self.assertTrue(refused or lasted > 19)
        self.assertEqual(self.counts()[0], len(taken))
        for answer in refused:
            self.assertEqual(answer.json["type"], "/problems/rate-limited")
            self.assertEqual(answer.headers["Retry-After"], "1")
            self.assertEqual(answer.headers["RateLimit"], '"token";r=0;t=1')
            self.assertEqual(answer.headers["RateLimit-Policy"], '"token";q=2;w=1')
        self.assertEqual(self.send(server, other, "k-other").status, 201)  # it has a rate of its own
        end = time.monotonic() + LIMIT_S
        while self.look(server, token, "/v1/commands").status != 200:  # and the time comes
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(server.get("/healthz").status, 200)

    def test_every_answer_to_a_token_says_what_is_left_of_its_rate(self):
        server = Server(self, "http.limits.rate=1000")
        token, ops = self.token(), self.token("ops", "operator")
        first = self.send(server, token, "k-1")
        self.assertEqual((first.status, first.headers["RateLimit"]), (201, '"token";r=999;t=1'), first)
        self.assertEqual(self.send(server, ops, "k-1").headers["RateLimit"], '"token";r=999;t=1')  # it has its own
        for status, answer in ((201, self.send(server, token, "k-1")), (409, self.send(server, token, "k-1", {"topic": "b"})),
                               (403, self.send(server, ops, "k-1")), (400, self.send(server, token, None)),
                               (200, self.look(server, token, "/v1/commands")),
                               (404, self.look(server, token, "/v1/operations/none"))):
            self.assertEqual((answer.status, answer.headers["RateLimit-Policy"]), (status, '"token";q=1000;w=1'), answer)
            self.assertEqual(len(answer.headers.get_all("RateLimit")), 1)
            left = int(re.fullmatch(r'"token";r=(\d+);t=1', answer.headers["RateLimit"]).group(1))
            self.assertLessEqual(left, 999)
        for answer in (server.send("k-2", HELLO), server.get("/healthz"), self.send(server, "none", "k-1"),
                       self.look(server, token, "/nowhere")):
            self.assertIsNone(answer.headers["RateLimit"], answer)
        plain = Server(self)
        self.assertIsNone(self.send(plain, token, "k-1").headers["RateLimit"])
        for one, described in ((server, True), (plain, False)):
            told = one.get("/openapi.json").json["paths"]["/v1/commands/note"]["post"]["responses"]
            self.assertEqual({name in told["2XX"]["headers"] for name in ("RateLimit", "RateLimit-Policy")}, {described})

    # ---- Before the body ------------------------------------------------------------------------

    def head(self, token, *more):
        """Of a request whose body is not sent."""
        lines = ["POST /v1/commands/note HTTP/1.1", "Host: x", "Idempotency-Key: k-head", "Content-Type: application/json",
                 "Content-Length: 100000", *more] + (["Authorization: Bearer " + token] if token else [])
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def all_said(self, server, data, timeout=LIMIT_S):
        """All that comes back until the server ends the connection."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=timeout) as wire:
            wire.sendall(data)
            return b"".join(iter(lambda: wire.recv(65536), b""))

    def test_who_may_not_send_hears_it_before_the_body(self):
        server = Server(self, NOT_OPEN)
        revoked, other = self.create(), self.token()
        self.ibid("token", "revoke", revoked["id"])
        guessed = other[:22] + uuid.uuid4().hex + uuid.uuid4().hex
        for expects in ((), ("Expect: 100-continue",)):
            for token, status in ((None, 401), ("nonsense", 401), (guessed, 401), (revoked["token"], 401),
                                  (self.token("ops", "operator"), 403)):
                got = self.all_said(server, self.head(token, *expects))
                self.assertTrue(got.startswith(b"HTTP/1.1 %d " % status), (token, got[:200]))
                self.assertEqual(got.count(b"HTTP/1.1 "), 1, got)
        self.assertEqual(self.counts(), (0, 0, 0))

    def test_who_is_refused_hears_it_however_much_they_send(self):
        server = Server(self, NOT_OPEN, "http.limits.body=64KiB")
        valid, large = self.token(), json.dumps({"topic": "a", "text": "x" * 50000})
        guessed = valid[:22] + uuid.uuid4().hex + uuid.uuid4().hex
        for _ in range(20):  # a client that writes all before it reads
            self.assertEqual(self.send(server, guessed, "k", large).status, 401)
            self.assertEqual(self.send(server, guessed, "k", large * 20).status, 401)
            self.assertEqual(self.send(server, valid, "k", large * 20).status, 413)
        self.assertEqual(self.send(server, valid, "k").status, 201)
        self.assertEqual(server.stop(), 0)

    def test_who_sends_too_much_hears_it_before_the_body(self):
        server = Server(self, NOT_OPEN, "http.limits.rate=1")
        token, end, got = self.token(), time.monotonic() + LIMIT_S, b""
        look = b"GET /v1/commands HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % token.encode()
        while b"HTTP/1.1 429 " not in got:  # a second between the two: then the body is awaited
            self.assertLess(time.monotonic(), end)
            with contextlib.suppress(TimeoutError):
                got = self.all_said(server, look + self.head(token, "Expect: 100-continue"), timeout=5)
        self.assertNotIn(b"HTTP/1.1 100 ", got)
        self.assertEqual(self.counts(), (0, 0, 0))

    def test_who_may_send_is_asked_for_the_body_and_heard(self):
        server = Server(self, NOT_OPEN)
        body = json.dumps(HELLO).encode()
        for key, expects in (("k-1", b"Expect: 100-continue\r\n"), ("k-2", b"")):
            token = self.token()  # one that the server has not seen
            with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT_S) as wire:
                wire.sendall(b"POST /v1/commands/note HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\n%sAuthorization: Bearer %s\r\n"
                             b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                             % (key.encode(), expects, token.encode(), len(body)))
                if expects:
                    self.assertTrue(wire.recv(65536).startswith(b"HTTP/1.1 100 "))
                for at in range(len(body)):  # however it comes
                    wire.sendall(body[at:at + 1])
                self.assertTrue(wire.recv(65536).startswith(b"HTTP/1.1 201 "))
        self.assertEqual(self.counts(), (2, 2, 2))

    # ---- Where ----------------------------------------------------------------------------------

    def test_without_a_token_only_who_calls_the_server_by_a_name_of_this_machine_is_answered(self):
        """A page of a name that stands for 127.0.0.1 since a moment ago: its browser would send here what it asks for."""
        server = Server(self)
        send = "GET /v1/commands HTTP/1.%d\r\n%sConnection: close\r\n\r\n"
        for host in ("127.0.0.1", "127.0.0.1:%d" % server.port, "localhost:80", "LocalHost", "ibid", "shop.localhost", "[::1]:80"):
            self.assertRegex(server.raw((send % (1, "Host: %s\r\n" % host)).encode()), b"^HTTP/1.1 200 ", host)
        self.assertRegex(server.raw((send % (0, "")).encode()), b"^HTTP/1.[01] 200 ")
        for host in ("evil.example", "evil.example:%d" % server.port, "localhost.evil.example", "127.0.0.1.evil.example",
                     "evillocalhost.x", ".localhost.", "1.2.3", "a." * 300 + "x"):
            got = server.raw((send % (1, "Host: %s\r\n" % host)).encode())
            self.assertRegex(got, b"^HTTP/1.1 401 ", host)
            self.assertIn(b"Host is another name", got)
            self.assertRegex(server.raw(("GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % host).encode()), b"^HTTP/1.1 200 ", host)
        # Who has a token may call it as they like.
        token = self.token()
        got = server.raw((send % (1, "Host: evil.example\r\nAuthorization: Bearer %s\r\n" % token)).encode())
        self.assertRegex(got, b"^HTTP/1.1 200 ")

    def test_on_every_address_only_health_is_answered_without_a_token(self):
        with self.assertRaises(AssertionError) as caught:
            Server(self, "http.listen=0.0.0.0:0")
        self.assertIn("http.open.tenant", str(caught.exception))
        server = Server(self, "http.listen=0.0.0.0:0", NOT_OPEN)
        for path in ("/healthz", "/readyz", "/problems/unauthorized"):
            self.assertEqual(server.get(path).status, 200)
        for path in ("/v1/commands", "/v1/commands/note/k", "/v1/operations/x"):
            self.assertEqual(server.get(path).status, 401)
        self.assertEqual(server.send("k", HELLO).status, 401)
        self.assertEqual(self.counts(), (0, 0, 0))
        self.assertEqual(self.send(server, self.token(), "k").status, 201)

    def test_the_secret_is_in_no_log_and_not_in_the_database(self):
        server = Server(self)
        made = self.create()
        self.send(server, made["token"], "k-1")
        self.send(server, made["token"] + "0", "k-1")
        server.send("k-1", HELLO, Authorization="Basic " + made["token"])
        self.ibid("token", "revoke", made["id"])
        self.assertEqual(server.stop(), 0)
        secret = made["token"][22:]
        entry = server.logged("http.request")[0]
        self.assertEqual((entry["token"], entry["client"]), (made["id"], "web"))
        self.assertNotIn(secret, server.log())
        kept = self.bytes_of_the_store()
        self.assertIn(made["id"].encode(), kept)
        for form in (secret.encode(), bytes.fromhex(secret)):
            self.assertNotIn(form, kept)


class AccessSqlite(Access, Sqlite, unittest.TestCase):
    def digests(self):
        import sqlite3
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            return [row[0] for row in db.execute("select digest from ibid_token order by created_us")]

    def bytes_of_the_store(self):
        kept = b""
        for name in os.listdir(self.dir):
            if name.startswith("store.db"):
                with open(os.path.join(self.dir, name), "rb") as handle:
                    kept += handle.read()
        return kept


class AccessPostgres(Access, Postgres, unittest.TestCase):
    def ask(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def digests(self):
        return [bytes(row[0]) for row in self.ask("select digest from ibid.token order by created_at")]

    def bytes_of_the_store(self):
        tables = self.ask("select c.oid::regclass::text from pg_class as c where c.relkind in ('r', 'p') "
                          "and c.relnamespace = 'ibid'::regnamespace")
        return "".join(row[0] for table in tables for row in self.ask("select t::text from %s as t" % table[0])).encode()

    def test_tokens_are_read_and_written_by_the_service_only(self):
        self.token()
        for role, sees in (("ibid_service", True), ("ibid_migrator", True), ("ibid_app", False), ("ibid_operator", False),
                           ("ibid_eraser", False)):
            for change in ("select digest from ibid.token", "update ibid.token set revoked_by = 'x' where false",
                           "insert into ibid.token select * from ibid.token where false", "delete from ibid.token",
                           "update ibid.token set digest = digest", "update ibid.token set roles = 'admin'"):
                allowed = sees and not change.startswith(("delete", "update ibid.token set digest", "update ibid.token set roles"))
                with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
                    cursor.execute("set role " + role)
                    if allowed:
                        cursor.execute(change)
                        if change.startswith("select"):
                            self.assertEqual(cursor.rowcount, 1, role)
                    else:
                        with self.assertRaises(psycopg2.errors.InsufficientPrivilege, msg=(role, change)):
                            cursor.execute(change)

    def test_the_server_goes_on_while_it_waits_for_a_token(self):
        server = Server(self, NOT_OPEN)
        known, asked = self.token(), self.token()
        self.assertEqual(self.send(server, known, "k-1").status, 201)
        with contextlib.closing(psycopg2.connect(self.url)) as db, concurrent.futures.ThreadPoolExecutor(1) as pool:
            db.cursor().execute("lock table ibid.token in access exclusive mode")
            waiting = pool.submit(self.send, server, asked, "k-2")
            self.await_blocked(1)
            for _ in range(20):
                self.assertEqual(server.get("/healthz").status, 200)
            self.assertFalse(waiting.done())
            db.rollback()
            self.assertEqual(waiting.result(LIMIT_S).status, 201)
        self.assertEqual(self.counts(), (2, 2, 2))

    def test_the_time_that_a_token_takes_is_not_the_clients(self):
        server = Server(self, NOT_OPEN, "http.limits.request=3s")
        token, body = self.token(), json.dumps(HELLO).encode()
        request = self.head(token).replace(b"100000", b"%d" % len(body)) + body
        with contextlib.closing(psycopg2.connect(self.url)) as db, concurrent.futures.ThreadPoolExecutor(1) as pool:
            db.cursor().execute("lock table ibid.token in access exclusive mode")
            waiting = pool.submit(server.raw, request)
            self.await_blocked(1)
            until = time.monotonic() + 3.5
            while time.monotonic() < until:
                self.assertEqual(server.get("/healthz").status, 200)
            db.rollback()
            self.assertTrue(waiting.result(LIMIT_S).startswith(b"HTTP/1.1 201 "))

    def test_requests_that_wait_for_one_token_share_its_rate(self):
        server = Server(self, NOT_OPEN, "http.limits.rate=1", "http.threads=4")
        token = self.token()
        with contextlib.closing(psycopg2.connect(self.url)) as db, concurrent.futures.ThreadPoolExecutor(12) as pool:
            db.cursor().execute("lock table ibid.token in access exclusive mode")
            waiting = [pool.submit(self.send, server, token, "k-%d" % n) for n in range(12)]
            self.await_blocked(4)
            began = time.monotonic()
            db.rollback()
            statuses = [answer.result(LIMIT_S).status for answer in waiting]
            lasted = time.monotonic() - began
        self.assertLessEqual(set(statuses), {201, 429})
        self.assertGreaterEqual(statuses.count(201), 1)
        self.assertLessEqual(statuses.count(201), 1 + lasted)
        self.assertEqual(self.counts()[0], statuses.count(201))


if __name__ == "__main__":
    unittest.main()
