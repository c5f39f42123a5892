# SPDX-License-Identifier: Apache-2.0
"""W3C trace context and the identifiers of a request over HTTP, on both stores (K02)."""
import concurrent.futures
import contextlib
import json
import re
import sqlite3
import subprocess
import time
import unittest

import psycopg2

from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

# What only those see of a completed command who may open the store.
INSIDE = ("tenant", "scope", "scheme", "contractVersion", "fingerprint", "linked", "auditId", "stale", "serviceAnswers",
          "events", "audit", "conflicts", "duplicates")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OTHER = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00-%s-%s-01" % (TRACE, SPAN)
HELLO = {"topic": "greetings", "text": "hello"}


class Trace:
    def stored(self, key):
        """Traceparent and tracestate of the command's audit entry and of its event."""
        rows = self.rows("select a.traceparent, a.tracestate, e.traceparent, e.tracestate from %s c join %s a on a.tenant = "
                         "c.tenant and a.id = c.id join %s e on e.tenant = c.tenant and e.command_id = c.id "
                         "where c.key = '%s'" % (self.ledger("command"), self.ledger("audit"), self.ledger("event"), key))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0][:2], rows[0][2:])
        return rows[0][:2]

    def line(self, server, count):
        """The count-th request, as it was logged."""
        server.await_logged("http.request", count)
        return server.logged("http.request")[count - 1]

    def await_queued(self, server, count):
        end = time.monotonic() + LIMIT_S
        while int(re.search(rb"^ibid_queue_tasks (\d+)", server.get("/metrics").body, re.M).group(1)) < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def raw_send(self, server, key, *lines):
        body = json.dumps(HELLO).encode()
        head = [b"POST /v1/commands/note HTTP/1.1", b"Host: x", b"Content-Type: application/json",
                b"Content-Length: %d" % len(body), b"Idempotency-Key: " + key.encode(), *lines]
        return server.raw(b"\r\n".join(head) + b"\r\n\r\n" + body)

    def show(self, id):
        done = subprocess.run([BIN, "command", "show", id, "--store", self.url, "--tenant", "t", "--json"], timeout=LIMIT_S,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    # ---- There and back -------------------------------------------------------------------------

    def test_a_request_is_a_span_of_its_trace_and_what_it_causes_is_its_child(self):
        server = Server(self)
        answer = server.send("k-1", HELLO, traceparent=PARENT, tracestate="congo=t61,rojo=00f", Correlation_Id="corr",
                             Causation_Id="cause")
        self.assertEqual(answer.status, 201)
        told = re.fullmatch("00-%s-([0-9a-f]{16})-01" % TRACE, answer.headers["traceresponse"])
        self.assertTrue(told, answer)
        self.assertNotEqual(told.group(1), SPAN)
        self.assertEqual((answer.headers["Correlation-Id"], answer.headers["Causation-Id"]), ("corr", "cause"))
        self.assertEqual(self.stored("k-1"), (answer.headers["traceresponse"], "congo=t61,rojo=00f"))
        line = self.line(server, 1)
        self.assertEqual((line["traceId"], line["spanId"], line["correlationId"], line["causationId"], line["attempt"]),
                         (TRACE, told.group(1), "corr", "cause", 1))
        for path in ("/v1/operations/" + answer.json["id"], "/v1/commands/note/k-1"):
            shown = server.get(path).json
            self.assertEqual([shown.get(name) for name in ("correlationId", "causationId", "traceparent", "tracestate")],
                             ["corr", "cause", answer.headers["traceresponse"], "congo=t61,rojo=00f"])
        record = self.show(answer.json["id"])
        self.assertEqual(shown, {name: value for name, value in record.items() if name not in INSIDE})
        for part in (record, record["audit"], record["events"][0]):
            self.assertEqual([part[name] for name in ("correlationId", "causationId", "traceparent", "tracestate")],
                             ["corr", "cause", answer.headers["traceresponse"], "congo=t61,rojo=00f"])

    def test_without_a_trace_nothing_is_made_up(self):
        server = Server(self)
        answer = server.send("k-1", HELLO)
        self.assertEqual({"traceresponse", "Correlation-Id", "Causation-Id"} & set(answer.headers), set())
        self.assertEqual(self.stored("k-1"), (None, None))
        line = self.line(server, 1)
        self.assertEqual([line[name] for name in ("traceId", "spanId", "correlationId", "causationId")], [None] * 4)
        shown = server.get("/v1/operations/" + answer.json["id"]).json
        self.assertEqual({"correlationId", "causationId", "traceparent", "tracestate"} & set(shown), set())

    def test_a_retry_has_its_own_span_and_what_is_stored_stays(self):
        server = Server(self)
        first = server.send("k-1", HELLO, traceparent=PARENT, Correlation_Id="first")
        again = server.send("k-1", HELLO, traceparent="00-%s-%s-00" % (OTHER, SPAN), tracestate="a=1", Correlation_Id="second")
        bare = server.send("k-1", HELLO)
        self.assertEqual([one.headers["Idempotent-Replayed"] for one in (first, again, bare)], [None, "true", "true"])
        self.assertRegex(again.headers["traceresponse"], "^00-%s-[0-9a-f]{16}-00$" % OTHER)
        self.assertEqual(again.headers["Correlation-Id"], "second")
        self.assertIsNone(bare.headers["traceresponse"])
        self.assertEqual(self.stored("k-1"), (first.headers["traceresponse"], None))
        shown = server.get("/v1/operations/" + first.json["id"]).json
        self.assertEqual((shown["correlationId"], shown["traceparent"]), ("first", first.headers["traceresponse"]))
        line = self.line(server, 2)
        self.assertEqual((line["traceId"], line["replayed"], line["attempt"]), (OTHER, "yes", 1))
        self.assertEqual(len({first.headers["traceresponse"][36:52], again.headers["traceresponse"][36:52], SPAN}), 3)

    def test_what_is_refused_or_fails_keeps_where_it_came_from(self):
        server = Server(self)
        for topic, status in (("forbidden", 409), ("broken", 500)):
            answer = server.send("k-" + topic, {"topic": topic}, traceparent=PARENT, tracestate="a=1", Correlation_Id="corr",
                                 Causation_Id="cause")
            self.assertEqual(answer.status, status)
            self.assertEqual((answer.headers["traceresponse"][:36], answer.headers["Causation-Id"]), (PARENT[:36], "cause"))
            shown = server.get("/v1/operations/" + answer.headers["Ibid-Command-Id"]).json
            self.assertEqual([shown.get(name) for name in ("correlationId", "causationId", "traceparent", "tracestate")],
                             ["corr", "cause", answer.headers["traceresponse"], "a=1"])
            record = self.show(answer.headers["Ibid-Command-Id"])
            self.assertEqual((record["traceparent"], record["correlationId"]), (answer.headers["traceresponse"], "corr"))
        again = server.send("k-broken", {"topic": "broken"})  # another run: it is told where that came from
        self.assertEqual(again.status, 500)
        self.assertNotIn("traceparent", server.get("/v1/operations/" + again.headers["Ibid-Command-Id"]).json)
        self.assertEqual(self.line(server, 5)["attempt"], 2)

    def test_every_answer_tells_its_trace(self):
        server = Server(self)
        closed = Server(self, "http.open.tenant=")
        for where, method, path, status in ((server, "GET", "/healthz", 200), (server, "GET", "/nowhere", 404),
                                            (server, "PUT", "/healthz", 405), (server, "POST", "/v1/commands/note", 400),
                                            (server, "GET", "/v1/operations/x", 404), (closed, "GET", "/v1/commands", 401)):
            answer = where.ask(method, path, headers={"traceparent": PARENT, "Causation-Id": "c"})
            self.assertEqual((answer.status, answer.headers["Causation-Id"]), (status, "c"))
            self.assertRegex(answer.headers["traceresponse"], "^00-%s-[0-9a-f]{16}-01$" % TRACE)

    # ---- What is malformed ----------------------------------------------------------------------

    def test_a_malformed_trace_is_none_and_never_an_error(self):
        server = Server(self)
        bad = ("", "x", PARENT.upper(), PARENT[:-1], PARENT + "0", PARENT + "-00", PARENT.replace(TRACE, "0" * 32),
               PARENT.replace(SPAN, "0" * 16), "ff" + PARENT[2:], PARENT.replace("-", "_"), PARENT + ", " + PARENT,
               "cc" + PARENT[2:] + ".x", "00-" + TRACE, "x" * 4000, '"%s"' % PARENT, PARENT.replace("a", "ä"))
        for n, traceparent in enumerate(bad):
            raw = self.raw_send(server, "k-%d" % n, b"traceparent: " + traceparent.encode(), b"tracestate: a=1")
            self.assertTrue(raw.startswith(b"HTTP/1.1 201"), (traceparent, raw))
            self.assertNotIn(b"traceresponse", raw.lower(), traceparent)
            self.assertEqual(self.stored("k-%d" % n), (None, None))
        raw = self.raw_send(server, "k-two", b"traceparent: " + PARENT.encode(), b"Traceparent: " + PARENT.encode())
        self.assertTrue(raw.startswith(b"HTTP/1.1 201"))
        self.assertNotIn(b"traceresponse", raw.lower())
        self.assertEqual(self.stored("k-two"), (None, None))
        server.await_logged("http.request", len(bad) + 1)
        self.assertEqual({line["traceId"] for line in server.logged("http.request")}, {None})

    def test_versions_to_come_are_read_as_far_as_they_are_known(self):
        server = Server(self)
        for n, (traceparent, flags) in enumerate((("cc" + PARENT[2:], "01"), ("cc" + PARENT[2:] + "-more", "01"),
                                                  ("01" + PARENT[2:-2] + "fe", "00"), (PARENT[:-2] + "ff", "03"))):
            answer = server.send("k-%d" % n, HELLO, traceparent=traceparent)
            self.assertRegex(answer.headers["traceresponse"], "^00-%s-[0-9a-f]{16}-%s$" % (TRACE, flags))
            self.assertEqual(self.stored("k-%d" % n), (answer.headers["traceresponse"], None))

    def test_tracestate_is_joined_or_dropped(self):
        server = Server(self)
        good = "a=" + "x" * 510
        for n, (lines, kept) in enumerate((
                (["a=1"], "a=1"), (["a=1", "b=2, c=3", "d=4"], "a=1,b=2, c=3,d=4"), (["a=1", "", "b=2"], "a=1,b=2"), ([""], None),
                ([good], good), ([good + "x"], None), ([good, "b=1"], None), (["a=1", "b=ä"], None),
                (["a=1\t,\tb=2"], "a=1 , b=2"), (["it's=\"quoted\\\""], "it's=\"quoted\\\""), (["x" * 8000], None))):
            raw = self.raw_send(server, "k-%d" % n, b"traceparent: " + PARENT.encode(),
                                *(b"tracestate: " + line.encode() for line in lines))
            self.assertTrue(raw.startswith(b"HTTP/1.1 201"), raw)
            told = re.search(rb"traceresponse: (\S+)", raw, re.I).group(1).decode()
            self.assertEqual(self.stored("k-%d" % n), (told, kept), lines)
        # No header may hold that.
        self.assertTrue(self.raw_send(server, "k-del", b"traceparent: " + PARENT.encode(), b"tracestate: a=\x7f")
                        .startswith(b"HTTP/1.1 400"))
        server.send("k-alone", HELLO, tracestate="a=1")
        self.assertEqual(self.stored("k-alone"), (None, None))

    # ---- Many -----------------------------------------------------------------------------------

    def test_neighbours_do_not_share_a_trace(self):
        """While a row is locked, commands on it queue up and then share transactions."""
        server = Server(self, "http.threads=2")
        count = 40

        def send(n):
            more = {} if n % 3 == 0 else {"traceparent": "00-%032x-%s-01" % (n, SPAN), "tracestate": "n=%d" % n if n % 3 == 1 else ""}
            return server.send("k-%d" % n, {"topic": "hot"}, **more)

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            with self.hot_row_locked():
                sent = [pool.submit(send, n) for n in range(count)]
                self.await_queued(server, count)
            answers = [one.result(LIMIT_S) for one in sent]
        for n, answer in enumerate(answers):
            self.assertEqual(answer.status, 201)
            told = answer.headers["traceresponse"]
            self.assertEqual(told and told[3:35], "%032x" % n if n % 3 else None)
            self.assertEqual(self.stored("k-%d" % n), (told, "n=%d" % n if n % 3 == 1 else None))
        spans = [answer.headers["traceresponse"][36:52] for answer in answers if answer.headers["traceresponse"]]
        self.assertEqual(len(spans), len(set(spans)))

    def test_what_is_linked_has_the_trace_of_its_own_request(self):
        server = Server(self)
        server.send("k-1", dict(HELLO, text="once"), "note-once", traceparent=PARENT)
        linked = server.send("k-2", dict(HELLO, text="once"), "note-once", traceparent="00-%s-%s-01" % (OTHER, SPAN))
        self.assertEqual(linked.status, 200)
        rows = self.rows("select a.traceparent from %s a join %s c on c.tenant = a.tenant and c.id = a.id where c.key = 'k-2' "
                         "and a.outcome = 'linked'" % (self.ledger("audit"), self.ledger("command")))
        self.assertEqual(rows, [(linked.headers["traceresponse"],)])

    # ---- Evidence -------------------------------------------------------------------------------

    def test_an_erasure_keeps_the_trace_and_nobody_edits_it(self):
        server = Server(self)
        answer = server.send("k-1", HELLO, traceparent=PARENT, tracestate="a=1")
        done = subprocess.run([BIN, "erase", "--id", answer.json["id"], "--store", self.url, "--tenant", "t", "--reason", "asked"],
                              timeout=LIMIT_S, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows("select payload from " + self.ledger("event")), [('{"erased":true}',)])
        self.assertEqual(self.stored("k-1"), (answer.headers["traceresponse"], "a=1"))
        for table in ("audit", "event"):
            for column in ("traceparent", "tracestate"):
                with self.assertRaises((sqlite3.Error, psycopg2.Error), msg=(table, column)):
                    self.rows("update %s set %s = null" % (self.ledger(table), column))
        self.assertEqual(self.stored("k-1"), (answer.headers["traceresponse"], "a=1"))
        done = subprocess.run([BIN, "doctor", "--store", self.url], timeout=LIMIT_S, capture_output=True, text=True)
        self.assertNotIn("trace", done.stdout + done.stderr)


class TraceOnSqlite(Trace, Sqlite, unittest.TestCase):
    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
            return db.execute(sql).fetchall()

    def test_not_even_an_erasure_changes_a_trace(self):
        answer = Server(self).send("k-1", HELLO, traceparent=PARENT)
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            db.execute("insert into ibid_erasing values (?)", (answer.json["id"],))
            for change in ("ibid_event set payload = '{\"erased\":true}'", "ibid_audit set client = 'erased', actor = 'erased'"):
                self.assertEqual(db.execute("update " + change).rowcount, 1)
                for column in ("traceparent", "tracestate"):
                    with self.assertRaisesRegex(sqlite3.IntegrityError, "never edited"):
                        db.execute("update %s, %s = 'x'" % (change, column))

    def test_the_doctor_misses_the_guards_of_the_trace(self):
        for table in ("event", "audit"):
            self.rows("drop trigger ibid_%s_trace_is_never_edited" % table)
            done = subprocess.run([BIN, "doctor", "--store", self.url], timeout=LIMIT_S, capture_output=True, text=True)
            self.assertIn("ibid_%s_trace_is_never_edited" % table, done.stdout + done.stderr)


class TraceOnPostgres(Trace, Postgres, unittest.TestCase):
    def rows(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None


if __name__ == "__main__":
    unittest.main()
