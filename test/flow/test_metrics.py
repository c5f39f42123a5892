# SPDX-License-Identifier: Apache-2.0
"""What `ibid serve` counts, what it logs, what `ibid status` tells, and the alerts on it, on both stores (K01, K02)."""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import psycopg2

from metrics_bed import PROMTOOL, RULES, SOURCE, Page, Pages, promtool
from proxy_bed import INQUIRY, Proxied
from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

sys.path.insert(0, os.path.join(SOURCE, "tools"))
import statements  # noqa: E402

HELLO = {"topic": "greetings", "text": "hello"}


class Metrics(Pages):
    def ibid(self, *args):
        return subprocess.run([BIN, *args, "--store", self.url], capture_output=True, text=True, timeout=LIMIT_S)

    # ---- Counters -------------------------------------------------------------------------------

    def test_each_decision_is_counted_once_and_nothing_else_moves(self):
        self.note("note-brief", "answer: { store: reference }")  # so its duplicates are told from memory
        server = Server(self)
        once = {"topic": "a", "text": "once upon a time"}
        steps = [
            ("note", "k-1", HELLO, "executed"),
            ("note", "k-1", HELLO, "executed again"),
            ("note", "k-1", HELLO, "executed again"),
            ("note", "k-1", dict(HELLO, text="bye"), "conflict"),
            ("note", "k-2", {"topic": "forbidden"}, "rejected"),
            ("note", "k-2", {"topic": "forbidden"}, "rejected again"),
            ("note", "k-3", {"topic": "broken"}, "failed"),
            ("note", "k-4", {"topic": "x", "amount": -1}, "rejected"),
            ("note-once", "k-1", once, "executed"),
            ("note-once", "k-2", once, "linked"),
            ("note-once", "k-2", once, "linked again"),
            ("note-brief", "k-1", HELLO, "executed"),
            *3 * [("note-brief", "k-1", HELLO, "executed again")],
            ("note-brief", "k-1", dict(HELLO, text="bye"), "conflict"),
        ]
        expected = {"note": {}, "note-once": {}, "note-brief": {}, "note-cold": {}}
        for operation, key, document, counted in steps:
            server.send(key, document, operation)
            expected[operation][counted] = expected[operation].get(counted, 0) + 1
            page = Page(server)
            for name, counts in expected.items():
                self.assertEqual(page.commands(name), counts, (operation, key, counted))
        self.assertEqual(page.get("ibid_command_seconds_count", operation="note"), 8)
        self.assertGreater(page.get("ibid_command_seconds_sum", operation="note"), 0)
        self.assertEqual(page.get("ibid_command_seconds_bucket", operation="note", le="+Inf"), 8)
        self.assertEqual(page.get("ibid_commands_total", operation="note", decision="unknown", replayed="false"), 0)

    def test_what_is_refused_before_it_is_a_command_counts_as_a_request_only(self):
        server = Server(self)
        server.send(None, HELLO)
        server.send("k-1", HELLO, "nothing")
        server.get("/nowhere/" + "secret-path")
        page = self.await_page(server, lambda page: page.requests("none", "any", "4xx") == 1)
        self.assertEqual(page.commands("note"), {})
        self.assertEqual(page.requests("/v1/commands/{operation}", "POST", "4xx"), 2)
        self.assertEqual(page.requests("/v1/commands/{operation}", "POST", "2xx"), 0)
        self.assertNotIn("secret-path", page.text)
        self.assertEqual(page.get("ibid_http_request_seconds_count", route="/v1/commands/{operation}", method="POST"), 2)
        server.send("k-1", {"text": "hello"}, path="/topics/greetings/notes")
        page = self.await_page(server, lambda page: page.requests("/topics/{topic}/notes", "POST", "2xx") == 1)
        self.assertEqual(page.commands("note"), {"executed": 1})
        self.await_page(server, lambda page: page.get("ibid_http_connections") == 1)  # this one's own

    def test_a_key_that_outlived_its_retention_is_counted_as_expired(self):
        server = Server(self)
        server.send("k-1", HELLO)
        if self.store == "sqlite":
            self.change("update ibid_command set expires_us = 1")
        else:
            self.change("update ibid.command set expires_at = '2001-01-01'")
        self.assertEqual(server.send("k-1", HELLO).status, 410)
        self.assertEqual(Page(server).commands("note"), {"executed": 1, "expired": 1})

    def test_an_outcome_that_nobody_knows_is_counted(self):
        server = Server(self)
        server.send("k-1", {"topic": "broken"})
        self.change("update %s set state = 'UNKNOWN'" % self.ledger("command"))
        self.assertEqual(server.send("k-1", {"topic": "broken"}).status, 202)
        self.assertEqual(Page(server).commands("note"), {"failed": 1, "unknown": 1})

    def test_one_in_flight_and_the_queue_are_seen_while_they_last(self):
        server = Server(self)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.hot_row_locked():
                first = pool.submit(server.send, "k-1", {"topic": "hot"}, "note-cold")
                self.await_page(server, lambda page: page.get("ibid_queue_tasks") == 1)
                if self.store == "postgres":  # on SQLite a twin waits in the queue for its turn
                    self.await_blocked(1)
                    self.assertEqual(server.send("k-1", {"topic": "hot"}, "note-cold").status, 409)
                    self.assertEqual(Page(server).commands("note-cold"), {"in_progress": 1})
            self.assertEqual(first.result(LIMIT_S).status, 201)
        page = self.await_page(server, lambda page: page.get("ibid_queue_tasks") == 0)
        self.assertEqual(page.commands("note-cold").get("executed"), 1)
        self.assertEqual(page.get("ibid_queue_limit"), 4096)

    def test_what_finds_no_place_in_the_queue_is_undecided(self):
        server = Server(self, "http.limits.queue=2")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.hot_row_locked():
                first = pool.submit(server.send, "k-1", {"topic": "hot"}, "note-cold")
                self.await_page(server, lambda page: page.get("ibid_queue_tasks") == 1)
                self.assertEqual(server.send("k-2", HELLO, "note-cold").status, 503)
                self.assertEqual(Page(server).commands("note-cold"), {"undecided": 1})
            self.assertEqual(first.result(LIMIT_S).status, 201)

    def test_a_reload_resets_nothing_and_its_failures_are_counted(self):
        server = Server(self)
        server.send("k-1", HELLO)
        self.file("note-new.yaml", "command: [")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reload_refused")
        page = Page(server)
        self.assertEqual(page.get("ibid_contracts_reload_failures_total"), 1)
        self.assertEqual(page.get("ibid_contracts"), 5)
        self.note("note-new", "")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reloaded")
        self.assertEqual(server.send("k-1", HELLO).headers["Idempotent-Replayed"], "true")
        server.send("k-1", HELLO, "note-new")
        page = Page(server)
        self.assertEqual(page.commands("note"), {"executed": 1, "executed again": 1})
        self.assertEqual(page.commands("note-new"), {"executed": 1})
        self.assertEqual([page.get("ibid_contracts_reload_failures_total"), page.get("ibid_contracts_reloads_total"),
                          page.get("ibid_contracts")], [1, 1, 6])

    def test_many_at_once_are_all_counted(self):
        server = Server(self)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda i: server.send("k-%d" % (i % 40), HELLO, "note-wait"), range(200)))
        counted = Page(server).commands("note-wait")
        self.assertEqual(counted.pop("executed"), 40)
        self.assertEqual(sum(counted.values()), 160)

    # ---- What the store says --------------------------------------------------------------------

    def trouble(self):
        """Two in progress, one of them stale; one unknown; two exceptions, one of them late."""
        server = Server(self)
        for number in range(4):
            server.send("k-%d" % number, {"topic": "broken"})
        self.assertEqual(server.stop(), 0)
        command, exception = self.ledger("command"), self.ledger("exception")
        past, soon = ("1", "4102444800000000") if self.store == "sqlite" else ("'2001-01-01'", "'2100-01-01'")
        until, opened, due = (("lease_until_us", "opened_us", "due_us") if self.store == "sqlite"
                              else ("lease_until", "opened_at", "due_at"))
        self.change("update %s set state = 'IN_PROGRESS', lease_token = 1, %s = %s where key = 'k-0'" % (command, until, past))
        self.change("update %s set state = 'IN_PROGRESS', lease_token = 1, %s = %s where key = 'k-1'" % (command, until, soon))
        self.change("update %s set state = 'UNKNOWN' where key = 'k-2'" % command)
        for number, late in enumerate((past, soon)):
            self.change("insert into %s (tenant, id, queue, state, severity, subject_type, subject_id, reason, owner, retryable, "
                        "actions, %s, %s) values ('t', '%s', 'business', 'OPEN', 'high', 'command', 's-%d', 'R', 'tests', %s, "
                        "'', %s, %s)" % (exception, opened, due, uuid.uuid4(), number,
                                         "0" if self.store == "sqlite" else "false", past, late))

    def test_the_ledgers_state_is_measured_when_the_server_starts(self):
        self.trouble()
        server = Server(self)
        page = self.await_page(server, lambda page: page.get("ibid_ledger_measured_timestamp_seconds"))
        self.assertEqual([page.get(name) for name in (
            "ibid_in_progress_commands", "ibid_stale_commands", "ibid_unknown_commands", "ibid_open_exceptions",
            "ibid_overdue_exceptions", "ibid_ledger_commands")], [2, 1, 1, 2, 1, 4])
        self.assertEqual(page.get("ibid_store_up"), 1)
        self.assertGreaterEqual(page.get("ibid_store_seconds_count"), 1)
        self.assertLess(abs(page.get("process_start_time_seconds") - time.time()), LIMIT_S)
        self.assertGreater(page.get("process_resident_memory_bytes"), 1 << 20)

    def sql(self, name):
        """A statement as its engine gets it."""
        store = os.path.join(SOURCE, "src", "store")
        path = os.path.join(store, self.store, "sql", name + ".sql")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as handle:
                return handle.read()
        common = statements.ordinary(os.path.join(store, "sql"), statements.columns_of(store))
        return next(getattr(each, self.store) for each in common if each.name == name)

    def measuring_sql(self):
        return self.sql("ledger_measure")

    def test_a_large_ledger_is_measured_without_reading_it(self):
        self.fill(150000)
        for scan in self.scans() + self.listing_scans():
            self.assertIn("lease", scan)
        estimated = json.loads(self.ibid("status", "--json").stdout)["commands"]
        self.assertTrue(100000 <= estimated <= 300000, estimated)

    def test_status_tells_how_the_ledger_stands(self):
        clean = self.ibid("status", "--contracts", self.contracts)
        self.assertEqual((clean.returncode, clean.stdout), (0, (
            "store      %-39scommands 0   in progress 0   unknown 0\n"
            "exceptions 0 open, 0 overdue\n"
            "contracts  5\n") % (self.store + ", schema 2, healthy")), clean.stderr)
        self.trouble()
        self.note("note-new", "")
        told = self.ibid("status", "--contracts", self.contracts)
        self.assertEqual((told.returncode, told.stdout), (0, (
            "store      %-39scommands 4   in progress 2, 1 stale   unknown 1  ← needs a person\n"
            "exceptions 2 open, 1 overdue                      tests 2  ← needs a person\n"
            "contracts  6                                      1 not kept in the store  ← ibid contract apply\n")
            % (self.store + ", schema 2, healthy")), told.stderr)
        told = self.ibid("status", "--json", "--contracts", self.contracts)
        self.assertEqual(json.loads(told.stdout), {
            "store": self.store, "schema": 2, "healthy": True, "commands": 4, "inProgress": 2, "stale": 1, "unknown": 1,
            "outbox": [], "paused": [], "exceptions": {"open": 2, "overdue": 1, "owners": [{"owner": "tests", "open": 2, "overdue": 1}]},
            "contracts": {"count": 6, "notKept": 1, "changed": 0}})
        self.note("note", "retention: x", version=1)
        self.assertEqual(self.ibid("status", "--contracts", self.contracts).returncode, 1)

    # ---- The page and the log -------------------------------------------------------------------

    @unittest.skipUnless(PROMTOOL, "needs promtool")
    def test_promtool_finds_nothing_to_complain_about(self):
        server = Server(self)
        server.send("k-1", HELLO)
        page = self.await_page(server, lambda page: page.get("ibid_ledger_measured_timestamp_seconds"))
        self.assertEqual(page.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        checked = promtool("check", "metrics", text=page.text)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_neither_keys_nor_tenants_are_told(self):
        server = Server(self, "http.open.tenant=tenant-of-mine", "http.open.client=client-of-mine")
        server.send("key-of-mine", HELLO, Correlation_Id="corr-1", Causation_Id="cause-1")
        server.send('"key-of-mine"', HELLO)
        server.send("key-of-mine", dict(HELLO, text="payload-of-mine"))
        server.get("/v1/commands/note/key-of-mine")
        server.await_logged("http.request", 4)
        page = Page(server)
        for secret in ("key-of-mine", "tenant-of-mine", "client-of-mine", "payload-of-mine", "corr-1"):
            self.assertNotIn(secret, page.text)
        self.assertNotIn("key-of-mine", server.log())
        self.assertNotIn("payload-of-mine", server.log())
        digest = hashlib.sha256(b"key-of-mine").hexdigest()
        lines = server.logged("http.request")[:4]
        self.assertEqual([line["keyHash"] for line in lines], [digest] * 4)
        self.assertEqual([line["decision"] for line in lines], ["executed", "executed", "conflict", None])
        self.assertEqual([line["replayed"] for line in lines], ["no", "yes", "no", None])
        self.assertEqual({line["operation"] for line in lines}, {"note"})
        first = lines[0]
        self.assertEqual((first["correlationId"], first["causationId"], first["resourceType"], first["tenant"]),
                         ("corr-1", "cause-1", "note", "tenant-of-mine"))
        self.assertEqual(first["resourceId"], first["commandId"])
        self.assertIsNone(lines[1]["correlationId"])


class Upstream(Pages, Proxied):
    """What is counted of the calls to the service behind the server."""

    def numbers(self, page, name, label, operation="place-order"):
        """{"answered": 1}: those that are not 0."""
        found = {}
        for (called, labels), value in page.samples.items():
            if called == name and ("operation", operation) in labels and value:
                found[dict(labels)[label]] = value
        return found

    def calls(self, page, **more):
        return self.numbers(page, "ibid_upstream_calls_total", "end", **more)

    def inquiries(self, page, **more):
        return self.numbers(page, "ibid_upstream_inquiries_total", "outcome", **more)

    def test_each_call_is_counted_once_by_its_end(self):
        server = self.proxy()
        self.service.inquiry_answers = False
        steps = [
            ("k-1", {"item": "tea"}, 201, "answered"),
            ("k-1", {"item": "tea"}, 201, None),  # replayed: nobody is called
            ("k-1", {"item": "milk"}, 409, None),
            ("k-2", {"item": 7}, 422, None),
            ("k-3", {"mode": "invalid"}, 422, "answered"),
            ("k-4", {"mode": "busy"}, 503, "answered"),
            ("k-4", {"mode": "busy"}, 503, "answered"),
            ("k-5", {"mode": "drop"}, 502, "silent"),
            ("k-5", {"mode": "drop"}, 502, None),
            ("k-6", {"mode": "half"}, 502, "silent"),
        ]
        counted = {}
        for key, document, status, end in steps:
            ask = self.order if status == 409 else self.retry  # an inquiry may be looking at what is unknown
            answer = ask(server, key, document)
            self.assertEqual(answer.status, status, answer)
            if end:
                counted[end] = counted.get(end, 0) + 1
            self.assertEqual(self.calls(Page(server)), counted, (key, document))
        self.service.end()
        self.assertEqual(self.order(server, "k-7", {"item": "tea"}).status, 502)
        page = Page(server)
        self.assertEqual(self.calls(page), dict(counted, not_sent=1))
        self.assertEqual(page.get("ibid_upstream_seconds_count", operation="place-order"), sum(counted.values()) + 1)
        self.assertIsNone(page.get("ibid_upstream_calls_total", operation="note", end="answered"))

    def test_a_call_lasts_until_its_end(self):
        self.contract("hasty", "POST /hasty", deadline="2s")
        self.service.inquiry_answers = False
        server = self.proxy()
        self.assertEqual(self.order(server, "k-1", {"mode": "hang"}, "/hasty").status, 504)
        page = Page(server)
        self.assertEqual(self.calls(page, operation="hasty"), {"silent": 1})
        self.assertGreaterEqual(page.get("ibid_upstream_seconds_sum", operation="hasty"), 1.99)
        self.assertEqual(page.get("ibid_upstream_seconds_bucket", operation="hasty", le="1"), 0)
        self.assertEqual(page.get("ibid_upstream_seconds_bucket", operation="hasty", le="+Inf"), 1)

    def test_inquiries_are_counted_by_what_they_told(self):
        self.contract("patient", "POST /patient", inquiry=INQUIRY % "30m")
        server = self.proxy()
        self.service.inquiry_answers = False
        self.assertEqual(self.order(server, "k-1", {"mode": "drop"}).status, 502)
        self.await_page(server, lambda page: self.inquiries(page).get("unclear"))
        self.service.inquiry_answers = True
        self.await_page(server, lambda page: self.inquiries(page).get("executed") == 1)
        self.assertEqual(self.order(server, "k-2", {"mode": "refuse-silently"}).status, 502)
        page = self.await_page(server, lambda page: self.inquiries(page).get("not_executed") == 1)
        self.assertEqual(set(self.inquiries(page)), {"unclear", "executed", "not_executed"})
        # Too early to be believed: it proves nothing.
        self.assertEqual(self.order(server, "k-3", {"mode": "refuse-silently"}, "/patient").status, 502)
        page = self.await_page(server, lambda page: self.inquiries(page, operation="patient"))
        self.assertEqual(set(self.inquiries(page, operation="patient")), {"unclear"})
        self.service.end()
        self.await_page(server, lambda page: self.inquiries(page, operation="patient").get("unanswered"))
        self.assertEqual(self.calls(Page(server)), {"silent": 2})  # inquiries are none

    def test_places_are_told_with_their_limit_and_who_finds_none_is_undecided(self):
        self.contract("slowly", "POST /slowly", deadline="50s", lease="60s")
        server = self.proxy("upstream.calls=2")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(self.order, server, "k-%d" % i, {"mode": "slow"}, "/slowly") for i in range(2)]
            page = self.await_page(server, lambda page: page.get("ibid_upstream_places") == 2)
            self.assertEqual(page.get("ibid_upstream_limit"), 2)
            self.assertEqual(self.order(server, "k-3", {"mode": "slow"}, "/slowly").status, 503)
            self.assertEqual(Page(server).commands("slowly"), {"undecided": 1})
            self.service.free.set()
            self.assertEqual([one.result(LIMIT_S).status for one in waiting], [201, 201])
        page = self.await_page(server, lambda page: page.get("ibid_upstream_places") == 0)
        self.assertEqual(page.commands("slowly"), {"executed": 2, "undecided": 1})

    def test_what_passes_without_protection_is_a_route_of_its_own(self):
        server = self.proxy()
        self.assertEqual(server.get("/pages/secret-path").status, 200)
        self.assertEqual(server.ask("POST", "/pages").status, 404)
        self.assertEqual(self.order(server, "k-1", {"mode": "moved"}).status, 303)
        page = self.await_page(server, lambda page: page.requests("/orders", "POST", "3xx") == 1)
        self.assertEqual((page.requests("*", "any", "2xx"), page.requests("*", "any", "4xx")), (1, 0))
        self.assertEqual((page.requests("none", "any", "2xx"), page.requests("none", "any", "4xx")), (0, 1))
        self.assertEqual(page.get("ibid_http_request_seconds_count", route="*", method="any"), 1)
        self.assertNotIn("secret-path", page.text)

    def test_a_reload_resets_nothing(self):
        server = self.proxy()
        self.order(server, "k-1", {"item": "tea"})
        server.get("/pages")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reloaded")
        self.order(server, "k-2", {"item": "tea"})
        server.get("/pages")
        page = self.await_page(server, lambda page: page.requests("*", "any", "2xx") == 2)
        self.assertEqual(self.calls(page), {"answered": 2})

    def test_a_server_without_a_service_tells_nothing_of_it(self):
        os.remove(os.path.join(self.contracts, "place-order.yaml"))
        text = Page(Server(self)).text
        self.assertNotIn("ibid_upstream", text)
        self.assertNotIn('route="*"', text)

    @unittest.skipUnless(PROMTOOL, "needs promtool")
    def test_promtool_finds_nothing_to_complain_about(self):
        server = self.proxy()
        self.order(server, "k-1", {"item": "tea"})
        for page in (Page(server), Page(self.bare())):
            checked = promtool("check", "metrics", text=page.text)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def bare(self):
        """In front of a service that no contract names."""
        os.remove(os.path.join(self.contracts, "place-order.yaml"))
        return self.proxy()


class UpstreamOnSqlite(Upstream, Sqlite, unittest.TestCase):
    pass


class UpstreamOnPostgres(Upstream, Postgres, unittest.TestCase):
    pass


class MetricsOnSqlite(Metrics, Sqlite, unittest.TestCase):
    def change(self, sql):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
            db.execute(sql)

    def fill(self, count):
        self.change("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d) "
                    "insert into ibid_command (tenant, operation, scope, key, id, state, scheme, contract_version, fingerprint, linked, "
                    "status, attempts, created_us, finished_us, expires_us) select 't', 'note', '', 'k-' || i, "
                    "printf('00000000-0000-7000-8000-%%012x', i), 'REJECTED', 1, 1, zeroblob(32), 0, 409, 1, 1, 1, 0 from n" % count)

    def scans(self):
        """How each count of what has no outcome is made."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            plan = [row[3] for row in db.execute("explain query plan " + self.measuring_sql(), (1, 100))]
        found = [step for step in plan if re.match("(SCAN|SEARCH) ibid_command", step)]
        self.assertEqual(len(found), 4, plan)
        bounded, *others = sorted(found, key=lambda step: "lease" in step)
        self.assertIn("ibid_command_id", bounded)  # the one with a limit
        return others

    def listing_scans(self):
        """How what is unknown is listed."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            plan = [row[3] for row in db.execute("explain query plan " + self.sql("command_list_unknown"),
                                                 ("t", "note", None, 9, 0))]  # the last one is the time
        return [step for step in plan if re.match("(SCAN|SEARCH) ", step)]


class MetricsOnPostgres(Metrics, Postgres, unittest.TestCase):
    def change(self, sql):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute(sql)

    def fill(self, count):
        self.change("insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version, fingerprint, linked, "
                    "status, attempts, created_at) select 't', 'note', '', 'k-' || i, "
                    "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'REJECTED', 1, 1, '', false, 409, 1, now() "
                    "from generate_series(1, %d) as i" % count)
        self.change("analyze ibid.command")

    def scans(self):
        """How each count of what has no outcome is made."""
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute("explain (analyze, timing off, summary off, costs off) " + self.measuring_sql())
            plan = [row[0] for row in cursor.fetchall()]
        found = [step for step in plan if re.search("Scan .*on command", step) and "never executed" not in step]
        self.assertEqual(len(found), 3, plan)
        return found

    def listing_scans(self):
        """How what is unknown is listed, planned for these values and for all."""
        found = []
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute("prepare listing (text, text, uuid, bigint) as " + self.sql("command_list_unknown"))
            for mode in ("custom", "generic"):
                cursor.execute("set plan_cache_mode = force_%s_plan" % mode)
                cursor.execute("explain (costs off) execute listing ('t', 'note', null, 9)")
                found += [row[0] for row in cursor.fetchall() if re.search("Index Scan|Seq Scan", row[0])]
        self.assertEqual(len(found), 2, found)
        return found

    def test_a_store_that_goes_away_is_seen(self):
        server = Server(self)
        self.await_page(server, lambda page: page.get("ibid_ledger_measured_timestamp_seconds"))
        name = self.url.rsplit("/", 1)[1]
        self.admin("alter database %s allow_connections false" % name)
        self.admin("select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'" % name)
        page = self.await_page(server, lambda page: page.get("ibid_store_up") == 0)
        self.assertEqual(page.get("ibid_stale_commands"), 0)  # as it was
        self.assertEqual(server.send("k-1", HELLO).status, 503)
        self.assertEqual(Page(server).commands("note"), {"undecided": 1})
        self.admin("alter database %s allow_connections true" % name)
        self.await_page(server, lambda page: page.get("ibid_store_up") == 1)


@unittest.skipUnless(PROMTOOL, "needs promtool")
class Alerts(unittest.TestCase):
    def rules(self):
        with open(os.path.join(RULES, "ibid.rules.yml"), encoding="utf-8") as handle:
            return handle.read()

    def test_the_rules_are_right_and_each_alert_fires_and_is_silent(self):
        checked = promtool("check", "rules", "ibid.rules.yml")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        tested = promtool("test", "rules", "ibid.rules.test.yml", "ibid.growth.test.yml", "ibid.outbox.test.yml")
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)
        cases = ""
        for name in ("ibid.rules.test.yml", "ibid.growth.test.yml", "ibid.outbox.test.yml"):
            with open(os.path.join(RULES, name), encoding="utf-8") as handle:
                cases += handle.read()
        for alert in re.findall(r"- alert: (\S+)", self.rules()):
            self.assertIn(alert, cases)

    def test_every_alert_has_a_severity_and_leads_to_a_chapter_that_exists(self):
        alerts = self.rules().split("- alert: ")[1:]
        self.assertGreaterEqual(len(alerts), 7)
        for alert in alerts:
            self.assertRegex(alert, r"severity: (warning|critical)")
            self.assertRegex(alert, r"\n +summary: .*\n +description: ")
            path, _, chapter = re.search(r"runbook_url: (\S+)", alert).group(1).partition("#")
            with open(os.path.join(SOURCE, path), encoding="utf-8") as handle:
                heads = re.findall(r"^#+ (.*)$", handle.read(), re.M)
            if chapter:
                self.assertIn(chapter, [re.sub("[^a-z0-9-]", "", head.lower().replace(" ", "-")) for head in heads])

    def test_the_rules_ask_for_what_the_server_tells(self):
        self.assertEqual(set(re.findall(r"\bibid_[a-z_]+", self.rules())) - self.told(), set())


    def told(self):
        told = set()
        for name in ("metrics.c", "outbox_metrics.c"):
            with open(os.path.join(SOURCE, "src", "http", name), encoding="utf-8") as handle:
                told |= set(re.findall(r'"(ibid_[a-z_]+)', handle.read()))
        return told

    def test_every_question_of_the_dashboard_has_an_answer(self):
        with open(os.path.join(SOURCE, "deploy", "grafana", "ibid.json"), encoding="utf-8") as handle:
            dashboard = json.load(handle)
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        exprs = [target["expr"] for panel in panels for target in panel["targets"]]
        self.assertGreater(len(exprs), 25)
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        rules = {"groups": [{"name": "dashboard", "rules": [
            {"record": "panel:%d" % n, "expr": expr.replace("$__rate_interval", "5m")} for n, expr in enumerate(exprs)]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(rules, file)
            file.flush()
            checked = promtool("check", "rules", file.name)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        asked = {re.sub("_(bucket|sum|count)$", "", name) for expr in exprs for name in re.findall(r"\bibid_[a-z_]+", expr)}
        self.assertEqual(asked - self.told(), set())
        for about in ("commands", "outbox", "relay", "exceptions", "http"):  # nothing that is told is left out as a whole
            self.assertTrue(any(about in name for name in asked), about)


if __name__ == "__main__":
    unittest.main()
