# SPDX-License-Identifier: Apache-2.0
"""The server's description of itself, held against the server: /openapi.json, `errors` of invalid payloads and
`answer.location`, on both stores."""
import concurrent.futures
import contextlib
import decimal
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import psycopg2

from proxy_bed import Proxied
from serve_bed import BIN, LIMIT_S, Postgres, Server, Sqlite

ROOT = os.environ["IBID_SOURCE_DIR"]
VALIDATOR = "openapi-spec-validator==0.9.0"

# A rule for each status that also stands for something else, and one that does not.
RULES = (400, 401, 404, 409, 410, 413, 415, 418, 422, 425, 429)
SCRIPTS = {store: "".join("select %sreject('RULE', %d, 'so it is') where :topic = 'refuse-%d';\n" % (prefix, status, status)
                          for status in RULES) + """\
insert into broken (id) select null where :topic = 'broken';
update hot set count = count + 1 where topic = :topic;
insert into note (id, topic, text) values (:command_id, :topic, :text);
select %s as event;
select case :topic when 'elsewhere' then 303 when 'later' then 202 else 201 end as status,
  %s('id', :command_id, 'topic', :topic) as body, 'note' as resource_type, %s as resource_id;
""" % (emit, build, resource) for store, prefix, emit, build, resource in (
    ("sqlite", "ibid_", "ibid_emit('note', :command_id, 'Noted', json_object('topic', :topic))", "json_object",
     ":command_id"),
    ("postgres", "ibid.", "ibid.emit('note', :command_id::text, 'Noted', jsonb_build_object('topic', :topic))",
     "jsonb_build_object", ":command_id"))}

TYPED = """\
command: typed
version: 1
fact: everything is said
owner: scribes
route: PUT /topics/{name}/everything
unknown_fields: refuse
fields:
  /name: { type: text, required: true, max: 20, as: topic }
  /text: { type: text, max: 3 }
  /kind: { type: text, one_of: [a, b] }
  /count: { type: integer, at_least: 1, below: 10 }
  /amount: { type: decimal, required: true, above: 0, at_most: 100, scale: 2 }
  /ratio: { type: decimal }
  /flag: { type: boolean }
  /day: { type: date }
  /at: { type: instant }
  /extra: { type: json }
  /from/first name: { type: text, required: true, as: first_name }
  /from/address/zip: { type: text, max: 5 }
  /from/a~1b: { type: integer, as: a_b }
handler: { sql: note.$store.sql }
"""
LOOSE = """\
command: loose
version: 1
fact: something is said
fields:
  /topic: { type: text, required: true }
  /text: { type: text }
  /a/b: { type: text }
  /doc: { type: json }
  /doc/part: { type: text }
  /lines/0/sku: { type: text, as: sku }
handler: { sql: note.$store.sql }
"""
# What is said back with every answer.
ORIGIN = {"Correlation-Id": "c-1", "Causation-Id": "c-0",
          "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1"}
FINE = {"amount": 1, "from": {"first name": "Ada"}}


def validator_modules():
    """The validator in an environment of its own, next to what was built."""
    build = os.environ.get("IBID_BUILD_DIR") or os.path.join(ROOT, "build")
    home = os.path.join(build, "openapi-validator")
    if not glob.glob(os.path.join(home, "lib", "*", "site-packages", "openapi_spec_validator")):
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, timeout=300)
        subprocess.run([os.path.join(home, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", VALIDATOR],
                       check=True, timeout=300)
    sys.path.extend(glob.glob(os.path.join(home, "lib", "*", "site-packages")))


def exactly(text):
    """A number as JSON Schema sees it: 9.0 is an integer, and 19.99 has two digits."""
    number = decimal.Decimal(text)
    return int(number) if number == number.to_integral_value() else number


def resolved(document, value):
    while "$ref" in value:
        at = document
        for part in value["$ref"][2:].split("/"):
            at = at[part]
        value = at
    return value


class Described:
    """A server, held against what it says of itself."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        validator_modules()

    def document(self, server):
        answer = server.get("/openapi.json")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
        return json.loads(answer.body, parse_float=decimal.Decimal)

    def execute(self, sql):
        if self.store == "sqlite":
            with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db, db:
                db.execute(sql)
        else:
            with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
                cursor.execute(sql)

    def holds(self, document, schema, value):
        """Is the value right by the schema?"""
        import jsonschema
        formats = jsonschema.FormatChecker(("date", "date-time"))
        formats.checks("int64")(lambda number: isinstance(number, bool) or not isinstance(number, (int, decimal.Decimal)) or
                                -2 ** 63 <= number < 2 ** 63)
        whole = dict(schema, components=document["components"])
        checker = jsonschema.Draft202012Validator(whole, format_checker=formats)
        return checker.is_valid(json.loads(json.dumps(value, default=float), parse_float=exactly))

    # Header None: the status as a whole.
    RATES = {("429", "Retry-After"): "of a token: test_access; a rule's 429 has none", ("429", "RateLimit"): "likewise",
             ("429", "RateLimit-Policy"): "likewise", ("403", None): "for roles of a token: test_access"}

    def exercise(self, method, path, answers, unreachable, passed=()):
        """Every status and header of the operation is among the answers, and every answer is as it says."""
        document = self.document(self.server)
        operation = document["paths"][path][method]
        seen = {}
        for answer in [*answers, *passed]:
            status = str(answer.status)
            if status not in operation["responses"]:  # ranges are for what a handler or a rule says
                problem = answer.headers["Content-Type"] == "application/problem+json"
                self.assertIn(problem and answer.json["type"], (False, "/problems/rejected"), answer)
                status = status[0] + "XX"
            self.assertIn(status, operation["responses"], answer)
            told = operation["responses"][status]
            kind = answer.headers["Content-Type"]
            if answer.body and kind not in told["content"]:  # the service's
                self.assertEqual(told["content"]["*/*"], {}, answer)
            elif answer.body:
                self.assertTrue(self.holds(document, {"allOf": [told["content"][kind]["schema"]]}, answer.json), answer)
            for name in () if answer in passed else answer.headers:  # what passes has the service's headers, any of them
                if name not in ("Content-Type", "Content-Length", "Cache-Control", "Date", "Connection"):
                    self.assertIn(name, told["headers"], answer)
                    header = resolved(document, told["headers"][name])
                    value = answer.headers[name]
                    value = int(value) if header["schema"].get("type") == "integer" else value
                    self.assertTrue(self.holds(document, header["schema"], value), answer)
            seen.setdefault(status, set()).update(answer.headers)
        declared = {(status, name) for status, told in operation["responses"].items() for name in told["headers"]}
        missing = {(status, name) for status, name in declared if name not in seen.get(status, ())}
        self.assertEqual(missing, {(status, name) for status, name in declared
                                   if (status, name) in unreachable or (status, None) in unreachable}, "see `unreachable`")


class OpenApi(Described):
    def open_store(self):
        """Before the store is made: more contracts than the bed has."""
        self.note("placed", "route: POST /topics/{topic}/placed\n"
                            "answer: { location: \"/topics/{topic}/notes/{resource_id}\" }")
        self.note("twin", "route: PUT /topics/{topic}/notes\nkey: { from: [/topic] }")
        self.file("typed.yaml", TYPED)
        self.file("loose.yaml", LOOSE)
        for store, script in SCRIPTS.items():
            self.file("note.%s.sql" % store, script)
        super().open_store()

    def names(self):
        """Of all operations."""
        return sorted(os.path.basename(name)[:-5] for name in glob.glob(os.path.join(self.contracts, "*.yaml"))
                      if not name.endswith("defaults.yaml"))

    # ---- The document ---------------------------------------------------------------------------

    def test_it_is_an_openapi_document(self):
        from openapi_spec_validator import OpenAPIV31SpecValidator
        server = Server(self, "http.open.tenant=")  # nobody has to say who asks
        body = server.get("/openapi.json").body
        document = json.loads(body)
        self.assertEqual(document["openapi"], "3.1.0")
        errors = [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]
        self.assertEqual(errors, [])
        self.assertEqual(Server(self).get("/openapi.json").body, body)  # no process has another one

    def test_it_has_every_route_and_no_other(self):
        server = Server(self)
        document = self.document(server)
        described = {(method.upper(), re.sub(r"{\w+}", "{}", path))
                     for path, methods in document["paths"].items() for method in methods}
        with open(os.path.join(ROOT, "src", "http", "route.c"), encoding="utf-8") as handle:
            table = handle.read().split("own[] = {", 1)[1].split("\n};", 1)[0]
        routes = set(re.findall(r'{"([A-Z]+)",\s*"(/[^"]*)"', table))
        for name in glob.glob(os.path.join(self.contracts, "*.yaml")):
            with open(name, encoding="utf-8") as handle:
                routes.update(re.findall(r"^route: (\w+) (\S+)", handle.read(), re.M))
        self.assertGreaterEqual(len(routes), 12)
        for method, path in [route for route in routes if "{operation}" in route[1]]:  # once for each
            routes.remove((method, path))
            routes.update((method, path.replace("{operation}", name)) for name in self.names())
        self.assertEqual(described, {(method, re.sub(r"{\w+}", "{}", path)) for method, path in routes})
        for path, methods in document["paths"].items():  # and the server says the same of itself
            allowed = server.ask("TRACE", re.sub(r"{\w+}", "x", path))
            self.assertEqual(allowed.status, 405, path)
            self.assertEqual(set(allowed.headers["Allow"].split(", ")), {method.upper() for method in methods}, path)

    def test_operations_are_the_contracts(self):
        server = Server(self)
        document = self.document(server)
        note = document["paths"]["/topics/{topic}/notes"]["post"]
        self.assertEqual((note["operationId"], note["summary"], note["tags"]), ("note", "a note is taken", ["tests"]))
        asked = {(one["in"], one["name"]): one.get("required", False) for one in note["parameters"]}
        self.assertEqual(asked, {("path", "topic"): True, ("header", "Idempotency-Key"): True,
                                 ("header", "Correlation-Id"): False, ("header", "Causation-Id"): False,
                                 ("header", "traceparent"): False, ("header", "tracestate"): False,
                                 ("header", "Ibid-Actor"): False})
        schema = note["requestBody"]["content"]["application/json"]["schema"]
        self.assertEqual(schema, {"type": "object", "properties": {
            "amount": {"type": ["number", "null"], "exclusiveMinimum": 0, "multipleOf": decimal.Decimal("0.01")},
            "text": {"type": ["string", "null"], "maxLength": 200, "pattern": r"^[^\u0000]*$"}}})
        self.assertFalse(note["requestBody"]["required"])
        twin = document["paths"]["/topics/{topic}/notes"]["put"]  # whose key is not in a header
        self.assertNotIn("Idempotency-Key", [one["name"] for one in twin["parameters"]])
        typed = document["paths"]["/topics/{name}/everything"]["put"]
        self.assertEqual(typed["tags"], ["scribes"])
        ratio = typed["requestBody"]["content"]["application/json"]["schema"]["properties"]["ratio"]
        self.assertEqual(ratio["multipleOf"], decimal.Decimal("1e-18"))  # no scale is declared: all that a decimal can have
        self.assertTrue(typed["requestBody"]["required"])
        self.assertEqual([tag["name"] for tag in document["tags"]], ["ibid", "scribes", "tests"])
        ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual({name for name in document["components"]["schemas"] if name.startswith("payload.")},
                         {"payload." + name for name in self.names()})

    def test_paths_that_differ_in_names_only_are_one_path(self):
        self.note("other", "route: DELETE /topics/{text}/placed", 1)
        with open(os.path.join(self.contracts, "other.yaml"), encoding="utf-8") as handle:
            text = handle.read()
        self.file("other.yaml", text.replace("/text: { type: text, max", "/text: { type: text, required: true, max"))
        document = self.document(Server(self))
        paths = [path for path in document["paths"] if path.endswith("}/placed")]
        self.assertEqual(len(paths), 1)
        name = re.search(r"{(\w+)}", paths[0]).group(1)
        self.assertEqual(set(document["paths"][paths[0]]), {"post", "delete"})
        for method, longest in (("post", 60), ("delete", 200)):
            one = document["paths"][paths[0]][method]["parameters"][0]
            self.assertEqual((one["name"], one["in"], one["schema"]["maxLength"]), (name, "path", longest))

    def test_a_reload_describes_the_new_contracts_and_a_refused_one_the_old(self):
        server = Server(self)
        before = server.get("/openapi.json").body
        self.note("late", "route: POST /late\nowner: latecomers")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reloaded")
        after = server.get("/openapi.json").body
        self.assertNotIn("/late", json.loads(before)["paths"])
        self.assertEqual(json.loads(after)["paths"]["/late"]["post"]["tags"], ["latecomers"])
        self.file("bad.yaml", "command: bad\n")
        server.process.send_signal(signal.SIGHUP)
        server.await_logged("serve.reload_refused")
        self.assertEqual(server.get("/openapi.json").body, after)

    # ---- What is sent ---------------------------------------------------------------------------

    def test_schema_and_server_agree_about_payloads(self):
        server = Server(self)
        document = self.document(server)
        schema = document["paths"]["/topics/{name}/everything"]["put"]["requestBody"]["content"]["application/json"]["schema"]
        good = [{}, {"text": "abc"}, {"text": "\U0001F600" * 3}, {"text": None}, {"text": "\n"}, {"kind": "a"}, {"kind": None}, {"count": 1},
                {"count": 9}, {"count": 9.0}, {"amount": 0.01}, {"amount": 100}, {"amount": 19.99}, {"amount": 0.1},
                {"ratio": 0.123456789}, {"ratio": -5}, {"flag": False}, {"day": "2026-02-28"}, {"day": None},
                {"at": "2026-02-28T10:00:00Z"}, {"at": "2026-02-28T10:00:00.123+01:00"}, {"extra": [1, {"a": None}]},
                {"extra": "x"}, {"extra": None}, {"from": {"first name": "A", "address": None}},
                {"from": {"first name": "A", "address": {"zip": "12345"}}}, {"from": {"first name": "A", "a/b": 7}}]
        bad = [{"amount": None}, {"text": "abcd"}, {"text": 1}, {"text": "a\0b"}, {"kind": "c"}, {"kind": 1}, {"count": 0}, {"count": 10},
               {"count": 1.5}, {"count": "1"}, {"amount": 0}, {"amount": -1}, {"amount": 100.01}, {"amount": 0.001},
               {"amount": "1"}, {"ratio": True}, {"flag": "true"}, {"flag": 0}, {"day": "2026-02-30"}, {"day": 20260228},
               {"at": "yesterday"}, {"at": "2026-02-28T25:00:00Z"}, {"from": {}}, {"from": None}, {"from": "Ada"},
               {"from": {"first name": None}}, {"from": {"first name": "A", "address": {"zip": "123456"}}},
               {"from": {"first name": "A", "address": "x"}}, {"from": {"first name": "A", "a/b": "7"}},
               {"from": {"first name": "A", "other": 1}}, {"other": 1}, {"from": {"first name": "A", "address": {"x": 1}}}]
        for index, change in enumerate(good + bad):
            payload = dict(FINE, **change)
            answer = server.ask("PUT", "/topics/t/everything", json.dumps(payload),
                                {"Content-Type": "application/json", "Idempotency-Key": "k-%d" % index})
            wanted = index < len(good)
            self.assertEqual(answer.status, 201 if wanted else 422, (payload, answer))
            self.assertEqual(self.holds(document, schema, payload), wanted, payload)
        for payload in ({}, {"amount": 1}, []):
            self.assertFalse(self.holds(document, schema, payload), payload)
        whole = document["components"]["schemas"]["payload.typed"]
        self.assertFalse(self.holds(document, whole, FINE))  # where no path gives the name
        self.assertTrue(self.holds(document, whole, dict(FINE, name="t")))

    def test_schema_and_server_agree_about_payloads_whose_other_members_are_kept(self):
        server = Server(self)
        document = self.document(server)
        schema = document["components"]["schemas"]["payload.loose"]
        for index, (change, wanted) in enumerate((
                ({}, True), ({"other": 1}, True), ({"a": {"b": "x", "c": 1}}, True), ({"a": None}, True), ({"a": 5}, True),
                ({"a": {"b": 1}}, False), ({"doc": 5}, True), ({"doc": {"part": "x", "y": 1}}, True),
                ({"doc": {"part": 1}}, False), ({"lines": [{"sku": "x"}]}, True), ({"lines": {"0": {"sku": "x"}}}, True))):
            payload = dict({"topic": "t", "text": "x"}, **change)
            self.assertEqual(server.send("k-%d" % index, payload, "loose").status, 201 if wanted else 422, payload)
            self.assertEqual(self.holds(document, schema, payload), wanted, payload)

    def operator(self):
        """What a token with every role is sent as."""
        made = subprocess.run([BIN, "token", "create", "--store", self.url, "--tenant", "t", "--client", "web", "--roles",
                               "client,operator,approver,admin", "--json"], check=True, capture_output=True, timeout=LIMIT_S)
        return {"Authorization": "Bearer " + json.loads(made.stdout)["token"], "Content-Type": "application/json"}

    def test_schema_and_server_agree_about_questions(self):
        server = Server(self)
        document, headers = self.document(server), self.operator()
        states = document["components"]["schemas"]["Command"]["properties"]["state"]["enum"]
        some = "00000000-0000-0000-0000-000000000000"
        number = {"good": ["1", "1000"], "bad": ["", "0", "1001", "x"]}
        samples = {
            "/v1/commands": {"state": {"good": states, "bad": ["", "DONE"]}, "after": {"good": [some], "bad": ["", "x"]},
                             "operation": {"good": ["", "note", "none"]}, "key": {"good": ["", "\u00e9"]},
                             "client": {"good": ["", "x"]}, "limit": number},
            "/v1/exceptions": {"state": {"good": ["open", "resolved", "all"], "bad": ["", "OPENED"]},
                               "queue": {"good": ["dead-letter", "business", "reconciliation", "security", "data-quality"],
                                         "bad": ["", "x"]},
                               "owner": {"good": ["", "team"]}, "assignee": {"good": ["", "ann"]},
                               "after": {"good": [some], "bad": ["", "x"]}, "limit": number},
            "/v1/outbox": {"state": {"good": ["PENDING", "CLAIMED", "PUBLISHED", "FAILED", "PARKED", "SKIPPED", "CANCELLED"],
                                     "bad": ["", "SENT"]},
                           "after": {"good": [some, some + "/log"], "bad": ["", "x", some + "x", "/log"]},
                           "destination": {"good": ["", "log"]}, "type": {"good": ["", "Noted"]},
                           "aggregateType": {"good": ["", "note"]}, "aggregateId": {"good": ["", "1"]}, "limit": number}}
        for path, asked in samples.items():
            described = {one["name"]: one["schema"] for one in document["paths"][path]["get"]["parameters"]}
            self.assertEqual(set(described), set(asked), path)
            for name, values in asked.items():
                for value in (*values["good"], *values.get("bad", ())):
                    answer = server.ask("GET", path + "?" + urllib.parse.urlencode({name: value}), headers=headers)
                    wanted = value in values["good"]
                    self.assertEqual(answer.status, 200 if wanted else 400, (path, name, value, answer))
                    sent = int(value) if name == "limit" and value.isdigit() else value
                    self.assertEqual(self.holds(document, described[name], sent), wanted, (path, name, value))

    def test_schema_and_server_agree_about_what_people_send(self):
        server = Server(self)
        document, headers = self.document(server), self.operator()
        item, event = "/v1/exceptions/{id}/", "/v1/outbox/{event}/"
        said = {"reason": "so it is"}
        reasons = [({"reason": "x" * 2000}, 404), ({"reason": " x"}, 404), ({"reason": " \t\r\n"}, 400), ({"reason": ""}, 400),
                   ({"reason": "a\0b"}, 400), ({"reason": "x" * 2001}, 400), ({"reason": 1}, 400), ({}, 400),
                   ({**said, "other": 1}, 400)]
        names = [("ann", 404), ("a b", 404), ("x" * 128, 404), ("\u00e9" * 32, 404), ("", 400), (" ann", 400), ("ann ", 400),
                 ("a\u0085b", 400), ("\u2003ann", 400), ("x" * 129, 400), ("a\0b", 400)]
        samples = [(item + "assign", dict(sent, owner="team"), status) for sent, status in reasons]
        samples += [(item + "assign", dict(said, **{who: name}), status) for who in ("owner", "assignee") for name, status in names]
        samples += [(item + "assign", said, 400)]
        samples += [(item + verb, sent, status) for verb in ("approve", "decline") for sent, status in reasons]
        samples += [(item + "resolve", dict(said, action="confirm-executed", **more), status) for more, status in (
            ({}, 404), ({"status": 200}, 404), ({"status": 399}, 404), ({"status": 266.0}, 404), ({"status": 199}, 400),
            ({"status": 400}, 400), ({"status": 200.5}, 400), ({"status": "200"}, 400), ({"status": None}, 400),
            ({"answer": None}, 404), ({"answer": {"a": [1]}}, 404), ({"resourceType": "note", "resourceId": "1"}, 404),
            ({"resourceType": "a\0", "resourceId": "1"}, 400))]
        samples += [(event + "release", dict(sent, destination="log"), status) for sent, status in reasons]
        samples += [("/v1/pauses/resume", dict(said, kind="destination", name=name), 409 if status == 404 else status)
                    for name, status in names]
        samples += [("/v1/pauses/resume", dict(said, kind="destination"), 400), ("/v1/pauses/resume", dict(said, kind="x"), 400),
                    ("/v1/pauses/resume", dict(said, kind="relay"), 409),
                    ("/v1/pauses/resume", dict(said, kind="relay", name="log"), 400)]
        for path, body, status in samples:
            place = re.sub("{.*}", "00000000-0000-0000-0000-000000000000", path)
            answer = server.ask("POST", place, json.dumps(body), headers)
            self.assertEqual(answer.status, status, (path, body, answer))
            schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual(self.holds(document, schema, body), status != 400, (path, body))

    def test_schema_and_server_agree_about_keys(self):
        server = Server(self)
        document = self.document(server)
        schema = next(one["schema"] for one in document["paths"]["/topics/{topic}/notes"]["post"]["parameters"]
                      if one["name"] == "Idempotency-Key")
        for key, wanted in (("k", True), ("a b", True), ("x" * 255, True), ("x" * 256, False), ('"a b"', True),
                            (r'"a\"\\"', True), ('"' + "x" * 255 + '"', True), ('"' + r"\"" * 255 + '"', True),
                            ('"' + "x" * 256 + '"', False), ('""', False), ('"', False), ('"a', False), ('"a"b', False),
                            (r'"a\b"', False), ("", False), ("a\tb", False)):
            answer = server.send(key, {"topic": "keys", "text": "the same"}, "note-cold")
            self.assertEqual(answer.status, 201 if wanted else 400, (key, answer))
            self.assertEqual(self.holds(document, schema, key), wanted, key)

    # ---- What is answered -----------------------------------------------------------------------

    def ask(self, key, body, path, operation="note", server=None, **more):
        headers = {**ORIGIN, "Content-Type": "application/json", **more}
        if key:
            headers["Idempotency-Key"] = key
        return (server or self.server).ask("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body),
                                           headers)

    def provoke(self, send):
        """Answers of every kind; send(key, topic, **more) sends a note."""
        answers = []
        for topic in ["a", "later", "elsewhere", "broken"] + ["refuse-%d" % status for status in RULES]:
            answers += [send("k-" + topic, topic) for _ in range(2)]
        answers += [send("k-invalid", "a", amount=-1) for _ in range(2)]
        answers.append(send("k-a", "a", text="something else"))  # 409
        answers.append(send(None, "a"))  # 400
        answers.append(send("k-type", "a", kind="text/plain"))  # 415
        answers.append(send("k-large", "a", text="x" * 70000))  # 413
        answers.append(send("k-a", "a", server=Server(self, "http.open.tenant=")))  # 401
        table = self.ledger("command")
        send("k-old", "a")
        column = "expires_us = 1" if self.store == "sqlite" else "expires_at = now() - interval '1 day'"
        self.execute("update %s set %s where key = 'k-old'" % (table, column))
        answers.append(send("k-old", "a"))  # 410
        send("k-lost", "broken")
        self.execute("update %s set state = 'UNKNOWN' where key = 'k-lost'" % table)  # nobody knows: a person has to say
        answers.append(send("k-lost", "broken"))  # 202
        tight = Server(self, "http.limits.queue=2", "http.threads=1")
        with concurrent.futures.ThreadPoolExecutor(4) as pool, self.hot_row_locked():
            waiting = [pool.submit(send, "k-hot-%d" % n, "hot", server=tight) for n in range(3)]
            done, _ = concurrent.futures.wait(waiting, LIMIT_S, concurrent.futures.FIRST_COMPLETED)
            answers.append(done.pop().result())  # 503
        return answers

    def provoke_twin(self, send, **more):
        """The answer to a twin of one that runs; none on SQLite, where twins wait for one writer."""
        if self.store == "sqlite":
            return []
        other = Server(self, "http.in_progress=%d" % self.in_progress)
        with concurrent.futures.ThreadPoolExecutor(1) as pool, self.hot_row_locked():
            first = pool.submit(send, "k-twin", "hot", server=other, **more)
            self.await_blocked(1)
            answer = send("k-twin", "hot", **more)
        self.assertEqual(first.result(LIMIT_S).status, 201)
        return [answer]

    def test_every_answer_of_a_contracts_route_is_described_and_every_described_one_comes(self):
        self.in_progress = 425
        self.server = Server(self, "http.limits.body=64KiB", "http.in_progress=425")

        def send(key, topic, kind="application/json", server=None, **body):
            return self.ask(key, body, "/topics/%s/notes" % topic, server=server, **{"Content-Type": kind})

        answers = self.provoke(send) + self.provoke_twin(send)
        unreachable = dict(self.RATES)
        if self.store == "sqlite":
            unreachable[("425", "Retry-After")] = "twins wait for the one writer"
        self.exercise("post", "/topics/{topic}/notes", answers, unreachable)

    def test_every_answer_of_the_generic_route_is_described_and_every_described_one_comes(self):
        self.in_progress = 409
        self.server = Server(self, "http.limits.body=64KiB")

        def send(key, topic, kind="application/json", server=None, operation="note", **body):
            return self.ask(key, dict(body, topic=topic), "/v1/commands/" + operation, server=server,
                            **{"Content-Type": kind})

        answers = self.provoke(send) + self.provoke_twin(send)
        unreachable = dict(self.RATES)
        if self.store == "sqlite":
            unreachable[("409", "Retry-After")] = "twins wait for the one writer"
        self.exercise("post", "/v1/commands/note", answers, unreachable)
        placed = send("k-placed", "a", operation="placed")
        self.assertEqual(placed.headers["Location"], "/topics/a/notes/" + placed.json["id"])
        self.assertIn("Location", self.document(self.server)["paths"]["/v1/commands/placed"]["post"]["responses"]["2XX"]["headers"])
        self.assertEqual(send("k", "a", operation="nothing").status, 404)

    def test_every_document_that_is_shown_is_described(self):
        self.server = Server(self)
        made = self.ask("k-1", {"topic": "a"}, "/v1/commands/note")
        self.ask("k-2", {"topic": "refuse-418"}, "/v1/commands/note")
        self.ask("k-3", {"topic": "broken"}, "/v1/commands/note")
        self.ask("k-4", {"topic": "broken"}, "/v1/commands/note")
        self.execute("update %s set state = 'UNKNOWN' where key = 'k-4'" % self.ledger("command"))
        self.execute("insert into %s (tenant, kind, name, source, paused_by, reason, %s) values ('', 'relay', '', 'person', 'x', 'r', "
                     "%s), ('', 'destination', 'd', 'relay', 'relay', 'r', %s)" % (self.ledger("pause"), *(
                         ("since_us", 1, 1) if self.store == "sqlite" else ("since", "now()", "now()"))))
        closed = Server(self, "http.open.tenant=")
        document = self.document(self.server)
        shown = {
            "/healthz": ["/healthz"], "/readyz": ["/readyz"], "/openapi.json": ["/openapi.json"],
            "/problems/{problem}": ["/problems/" + slug for slug in document["paths"]["/problems/{problem}"]["get"]
                                    ["parameters"][0]["schema"]["enum"]] + ["/problems/none", "/problems/%4"],
            "/v1/commands": ["/v1/commands", "/v1/commands?limit=1", "/v1/commands?limit=0"],
            "/v1/commands/note/{key}": ["/v1/commands/note/k-%d" % n for n in range(5)] + ["/v1/commands/note/%4"],
            "/v1/exceptions": ["/v1/exceptions", "/v1/exceptions?limit=1", "/v1/exceptions?limit=0"],
            "/v1/exceptions/{id}": ["/v1/exceptions/" + self.exception(1), "/v1/exceptions/none", "/v1/exceptions/%4"],
            "/v1/pauses": ["/v1/pauses"],
            "/v1/outbox": ["/v1/outbox", "/v1/outbox?limit=1", "/v1/outbox?limit=0"],
            "/v1/outbox/{id}": ["/v1/outbox/" + self.event(), "/v1/outbox/none", "/v1/outbox/%4"],
            "/v1/operations/{id}": ["/v1/operations/" + made.json["id"], "/v1/operations/none", "/v1/operations/%4"]}
        others = {"/v1/commands/%s/{key}" % name for name in self.names() if name != "note"}
        self.assertEqual(set(shown) | others | {"/metrics"},
                         {path for path, methods in document["paths"].items() if "get" in methods})
        self.assertIn("text/plain", document["paths"]["/metrics"]["get"]["responses"]["200"]["content"])
        self.assertTrue(self.server.get("/metrics").headers["Content-Type"].startswith("text/plain;"))
        for path, asked in shown.items():
            answers = [self.server.ask("GET", one, headers=ORIGIN) for one in asked]
            if not path.count("."):
                answers.append(closed.ask("GET", asked[0], headers=ORIGIN))
            unreachable = {("503", None): "while it stops, or the store is away", ("429", None): "of a token: test_access", ("403", None): "likewise",
                           ("500", None): "a defect", ("200", "Retry-After"): "only where a worker has it: staged"}
            if "{" not in path and path not in ("/v1/commands", "/v1/exceptions", "/v1/outbox"):
                unreachable[("400", None)] = "for a head that can't be read: test_serve"
            self.exercise("get", path, answers, unreachable)

    def event(self):
        """One that arrived at a destination, waits for a person at another, and has yet to go to a third; its id."""
        item = "0197a1c2-0000-7000-8000-0000000000e1"
        now, at = ("1", "us") if self.store == "sqlite" else ("now()", "at")
        self.execute("insert into %s (id, aggregatetype, aggregateid, type, payload, tenant, version, key, command_id, ordinal, "
                     "correlation_id, causation_id, topic, partition_key, headers, created_%s) values ('%s', 'note', 'n', 'Noted', '{}', 't', "
                     "2, 'k', '%s', 1, 'c', 'd', 'notes', 'n', '{\"deliver_to\":\"a,b,c\"}', %s)" % (self.ledger("event"), at, item, item, now))
        self.execute("insert into %s (tenant, event_id, destination, token, %s, place, partition, position) values "
                     "('t', '%s', 'a', 1, %s, 'notes', 2, 3)" % (
                         self.ledger("delivery"), "at_us" if self.store == "sqlite" else "at", item, now))
        self.execute("insert into %s (destination, tenant, event_id, lane, aggregatetype, aggregateid, version, state, attempts, "
                     "failure, reason, why, next_%s, since%s) values ('b', 't', '%s', 0, 'note', 'n', 2, 'PARKED', 1, 'permanent', "
                     "'HTTP_422', 'it was refused', %s, %s)" % (
                         self.ledger("delivery_hold"), at, "_us" if self.store == "sqlite" else "", item, now, now))
        return item

    def exception(self, number, needs_approval=""):
        """One that may be closed; its id."""
        item = "0197a1c2-0000-7000-8000-%012d" % number
        self.execute("insert into %s (tenant, id, queue, state, severity, subject_type, subject_id, business_key, source, "
                     "payload_ref, reason, detail, suggestion, owner, retryable, actions, needs_approval, correlation_id, "
                     "document_type, document_id, trace_id, %s) values ('t', '%s', 'business', 'OPEN', 'low', 'file', 'f-%d', 'k', "
                     "'web', 'sha256:00', 'BROKEN', 'a sentence', 'look', 'tests', %s, 'close', '%s', 'c', 'note', 'n', 't', %s)" % (
                         self.ledger("exception"),
                         *(("opened_us, due_us", item, number, "0", needs_approval, "1, 2") if self.store == "sqlite" else
                           ("opened_at, due_at", item, number, "false", needs_approval, "now(), now()"))))
        return item

    def token(self, client, roles):
        made = subprocess.run([BIN, "token", "create", "--store", self.url, "--tenant", "t", "--client", client, "--roles", roles,
                               "--json"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        return json.loads(made.stdout)["token"]

    def exercise_pauses(self, tokens, unreachable):  # K07
        def act(who, path, media="application/json", body=None, **sent):
            headers = {**ORIGIN, "Content-Type": media, **({"Authorization": "Bearer " + tokens[who]} if who else {})}
            return self.server.ask("POST", path, body or json.dumps({"kind": "relay", "reason": "r", **sent}),
                                   headers)
        for path in ("/v1/pauses", "/v1/pauses/resume"):
            answers = [act(None, path), act("web", path), act("olga", path), act("ada", path, body="[]"),
                       act("ada", path, body="x" * 70000), act("ada", path, media="text/plain"), act("ada", path),
                       act("ada", path)]  # the second time: 409
            if path == "/v1/pauses":
                answers.append(act("olga", path, kind="event", name="Nodet"))  # 404
            self.exercise("post", path, answers, unreachable)
            document = self.document(self.server)
            schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            self.assertTrue(self.holds(document, schema, {"kind": "relay", "reason": "r"}))
            for bad in ({}, {"kind": "relay"}, {"kind": "house", "reason": "r"}, {"kind": "relay", "reason": "r", "more": 1}):
                self.assertFalse(self.holds(document, schema, bad), bad)

    def test_every_answer_to_an_act_is_described_and_every_described_one_comes(self):  # J02
        self.server = Server(self, "http.limits.body=64KiB")
        tokens = {name: self.token(name, roles) for name, roles in (("olga", "operator,approver"), ("anna", "approver"),
                                                                     ("web", "client"), ("ada", "admin"))}
        sent = {"assign": {"reason": "r", "assignee": "bea", "owner": "team"}, "resolve": {"reason": "r", "action": "close"},
                "approve": {"reason": "r"}, "decline": {"reason": "r"}}
        unreachable = {("503", None): "while it stops, or the store is away", ("429", None): "of a token: test_access",
                       ("500", None): "a defect"}
        self.exercise_pauses(tokens, unreachable)
        for number, verb in enumerate(sent, 10):
            def act(who, item, verb=verb, body=None, kind="application/json"):
                headers = {**ORIGIN, "Content-Type": kind, **({"Authorization": "Bearer " + tokens[who]} if who else {})}
                return self.server.ask("POST", "/v1/exceptions/%s/%s" % (item, verb), body or json.dumps(sent[verb]), headers)

            decides = verb in ("approve", "decline")
            item, other = self.exception(number, "close" if decides else ""), self.exception(100 + number, "close")
            answers = []
            if decides:
                answers.append(act("anna", item))  # 409: nothing is proposed
                self.assertEqual(act("olga", item, "resolve").status, 200)
            if verb == "approve":
                answers.append(act("olga", item))  # 403: a second person
            if verb == "resolve":
                answers += [act("olga", other), act("olga", other)]  # proposed, and 409
                answers.append(act("olga", item, body='{"reason":"r","action":"skip"}'))  # 422
            who = "anna" if decides else "olga"
            answers += [act(None, item), act("web", item), act(who, "none"), act(who, item, body="[]"),
                        act(who, item, body="x" * 70000), act(who, item, kind="text/plain"), act(who, item)]
            self.execute("update %s set state = 'RESOLVED', resolution = 'close', resolved_by = 'x', %s where id = '%s' and "
                         "state = 'OPEN'" % (self.ledger("exception"), "resolved_us = 1" if self.store == "sqlite" else
                                             "resolved_at = now()", item))
            answers.append(act(who, item))  # 409
            self.exercise("post", "/v1/exceptions/{id}/" + verb, answers, unreachable)
            document = self.document(self.server)
            operation = document["paths"]["/v1/exceptions/{id}/" + verb]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.assertTrue(self.holds(document, schema, sent[verb]))
            for bad in ({}, dict(sent[verb], more=1), dict(sent[verb], reason=1)):
                self.assertFalse(self.holds(document, schema, bad), bad)
                self.assertEqual(act(who, other, body=json.dumps(bad)).status, 400, bad)

    def parked(self, number, event, needs_approval=""):
        """An event that is parked at the destination `d<number>`; its item's id."""
        item = "0197a1c2-0000-7000-8000-%012d" % number
        times = ("opened_us, due_us", "1, 2", "since_us", "1") if self.store == "sqlite" else (
            "opened_at, due_at", "now(), now()", "since", "now()")
        self.execute("insert into %s (destination, tenant, event_id, lane, aggregatetype, aggregateid, version, state, attempts, "
                     "reason, why, failure, %s) values ('d%d', 't', '%s', 0, 'note', 'n', 1, 'PARKED', 1, 'R', 'w', 'permanent', %s)" % (
                         self.ledger("delivery_hold"), times[2], number, event, times[3]))
        self.execute("insert into %s (tenant, id, queue, state, severity, subject_type, subject_id, reason, owner, retryable, actions, "
                     "needs_approval, %s) values ('t', '%s', 'dead-letter', 'OPEN', 'low', 'delivery', 'd%d/%s', 'R', 'tests', %s, "
                     "'release,skip,cancel', '%s', %s)" % (self.ledger("exception"), times[0], item, number, event,
                                                         "0" if self.store == "sqlite" else "false", needs_approval, times[1]))
        return item

    def test_every_answer_to_a_decision_about_an_event_is_described_and_every_described_one_comes(self):  # C04 J02
        self.server = Server(self, "http.limits.body=64KiB")
        tokens = {name: self.token(name, roles) for name, roles in (("olga", "operator"), ("web", "client"))}
        unreachable = {("503", None): "while it stops, or the store is away", ("429", None): "of a token: test_access",
                       ("500", None): "a defect"}
        self.assertEqual(self.ask("k-1", {"topic": "a"}, "/v1/commands/note").status, 201)
        event = str(self.number("select id from " + self.ledger("event")))
        for number, verb in enumerate(("release", "skip", "cancel"), 10):
            def act(who, destination, verb=verb, of=event, body=None, kind="application/json"):
                headers = {**ORIGIN, "Content-Type": kind, **({"Authorization": "Bearer " + tokens[who]} if who else {})}
                return self.server.ask("POST", "/v1/outbox/%s/%s" % (of, verb),
                                       body or json.dumps({"destination": destination, "reason": "r"}), headers)
            self.parked(number, event)
            self.parked(100 + number, event, "skip,cancel")
            self.execute("update %s set state = 'WAITS' where destination = 'd%d'" % (self.ledger("delivery_hold"), 100 + number))
            here, other = "d%d" % number, "d%d" % (100 + number)
            answers = [act(None, here), act("web", here), act("olga", here, of="none"), act("olga", here, body="[]"),
                       act("olga", here, body="x" * 70000), act("olga", here, kind="text/plain")]
            answers.append(act("olga", here))  # done
            answers.append(act("olga", here))  # 409: exception-resolved
            if verb == "release":
                self.execute("update %s set state = 'RESOLVED', resolution = 'x', resolved_by = 'x', %s where subject_id = '%s/%s'" % (
                    self.ledger("exception"), "resolved_us = 1" if self.store == "sqlite" else "resolved_at = now()", other, event))
                answers.append(act("olga", other))  # 409: not-held
            else:
                answers += [act("olga", other), act("olga", other)]  # proposed, and 409: already-proposed
            self.exercise("post", "/v1/outbox/{event}/" + verb, answers, unreachable)
            document = self.document(self.server)
            operation = document["paths"]["/v1/outbox/{event}/" + verb]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            good = {"destination": here, "reason": "r"}
            self.assertTrue(self.holds(document, schema, good))
            for bad in ({}, dict(good, more=1), dict(good, reason=1), {"reason": "r"}):
                self.assertFalse(self.holds(document, schema, bad), bad)
                self.assertEqual(act("olga", here, body=json.dumps(bad)).status, 400, bad)

    # ---- Errors and places ----------------------------------------------------------------------

    def test_errors_point_into_the_payload_and_are_the_same_everywhere(self):
        server = Server(self)
        payload = json.dumps({"name": "t", "amount": 0, "kind": "c", "from": {"first name": 1, "x y": 1}, "more": 1})
        first = server.send("k-1", payload, "typed")
        self.assertEqual(first.status, 422, first)
        self.assertEqual(first.json["errors"], [
            {"detail": "must be above 0", "pointer": "/amount"},
            {"detail": "must be a text", "pointer": "/from/first name"},
            {"detail": "must be one of a, b", "pointer": "/kind"},
            {"detail": "is not a declared field", "pointer": "/from/x y"},
            {"detail": "is not a declared field", "pointer": "/more"}])
        self.assertEqual(first.body.decode(), json.dumps(first.json, sort_keys=True, separators=(",", ":")))
        again = server.send("k-1", payload, "typed")
        self.assertEqual(server.stop(), 0)
        server = Server(self)
        for answer in (again, server.send("k-1", payload, "typed")):
            self.assertEqual((answer.body, answer.headers["Idempotent-Replayed"]), (first.body, "true"))
        told = subprocess.run([BIN, "submit", "--store", self.url, "--contracts", self.contracts, "--tenant", "t",
                               "--operation", "typed", "--client", "local", "--key", "k-1", "--json", "-"], input=payload,
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(json.loads(told.stdout)["body"], first.json, told)
        self.assertNotIn("errors", server.send("k-2", {"topic": "refuse-422"}).json)  # a rule's own words
        self.assertEqual(server.send("k-3", "[]", "note").json["errors"],
                         [{"detail": "must be a JSON object", "pointer": ""}])

    def test_errors_are_told_where_the_same_key_takes_the_corrected_payload(self):  # B03
        self.note("again", "route: POST /again\nfailures: { validation: retry }")
        server = Server(self)
        told = self.document(server)["paths"]["/again"]["post"]["responses"]["422"]
        self.assertIn("The payload is invalid: send it corrected with the same key", told["description"])
        self.assertIn("Ibid-Command-Id", told["headers"])
        self.assertNotIn("Retry-After", told["headers"])
        for _ in range(2):
            answer = server.send("k-1", {"topic": 1}, path="/again")
            self.assertEqual((answer.status, answer.json["type"]), (422, "/problems/invalid-payload"), answer)
            self.assertEqual(answer.json["errors"], [{"detail": "must be a text", "pointer": "/topic"}])
            self.assertIsNone(answer.headers["Retry-After"])
            self.assertIsNone(answer.headers["Idempotent-Replayed"])

    def test_a_location_is_the_same_on_replay_and_under_a_later_contract(self):
        server = Server(self)
        path = "/topics/%C3%A9t%C3%A9%2F%201/placed"
        first = server.send("k-1", {}, path=path)
        self.assertEqual(first.status, 201, first)
        place = first.headers["Location"]
        self.assertEqual(place, "/topics/%C3%A9t%C3%A9%2F%201/notes/" + first.json["id"])
        self.assertEqual(server.send("k-1", {}, path=path).headers["Location"], place)
        self.assertIsNone(server.send("k-2", {"amount": 0}, path=path).headers["Location"])
        self.assertIsNone(server.send("k-1", {"text": "x"}, path=path).headers["Location"])
        self.assertEqual(server.stop(), 0)
        self.note("placed", "route: POST /topics/{topic}/placed\nanswer: { location: \"/notes/{command_id}\" }", 2)
        server = Server(self)
        again = server.send("k-1", {}, path=path)
        self.assertEqual((again.headers["Idempotent-Replayed"], again.headers["Location"]), ("true", place))
        other = server.send("k-3", {}, path=path)
        self.assertEqual(other.headers["Location"], "/notes/" + other.json["id"])

    def test_what_is_linked_has_the_place_of_what_is_there(self):
        self.note("linked", "answer: { location: \"/notes/{resource_id}\" }\n"
                            "unique:\n  note_text: { on_duplicate: link, find: find-note.$store.sql }")
        server = Server(self)
        once = {"topic": "a", "text": "once upon a time"}
        first = server.send("k-1", once, "linked")
        linked = server.send("k-2", once, "linked")
        self.assertEqual((first.status, linked.status), (201, 200), linked)
        self.assertEqual(linked.headers["Location"], first.headers["Location"])
        self.assertEqual(server.send("k-2", once, "linked").headers["Location"], first.headers["Location"])


class ProxyDocument(Described, Proxied):
    """Routes whose work the service behind the server does."""

    def setUp(self):
        super().setUp()
        self.contract("order-late", "POST /late", deadline="20s", lease="30s", wait="wait: 300ms")
        self.contract("order-kept", "POST /kept", deadline="20s", lease="30s", error="keep")
        self.contract("order-again", "POST /again", deadline="20s", lease="30s", conflict="retry", error="retry")
        self.contract("order-open", "POST /open", deadline="20s", lease="30s", without_key="pass")

    def send(self, path, key, document, server=None, **more):
        body = document if isinstance(document, (bytes, str)) else json.dumps(document)
        headers = {**ORIGIN, "Content-Type": "application/json", **more}
        if key:
            headers["Idempotency-Key"] = key
        return (server or self.server).ask("POST", path, body, headers)

    def provoke(self, path, said):
        """Answers of every kind: the service's with these statuses, and the server's own."""
        answers = []
        for status in said:
            answers += [self.send(path, "k-%d" % status, {"mode": "say-%d" % status}) for _ in range(2)]
        answers += [self.send(path, "k-invalid", {"item": 7}) for _ in range(2)]
        answers += [self.send(path, "k-large", {"mode": "large"}) for _ in range(2)]  # 502
        answers.append(self.send(path, "k-200", {"mode": "another"}))  # 409
        answers.append(self.send(path, "", {}, **{"Idempotency-Key": "\"x"}))  # 400
        answers.append(self.send(path, "k-long", {"item": "x" * 70000}))  # 413
        answers.append(self.send(path, "k-1", {}, server=self.proxy("http.open.tenant=")))  # 401
        answers.append(self.send(path, "k-1", {}, server=Server(self, "upstream.url=http://127.0.0.1:1")))  # 502
        self.service.inquiry_answers = False
        answers += [self.send(path, "k-lost", {"mode": "drop"}) for _ in range(2)]  # 502
        self.execute("update %s set reason = 'UPSTREAM_TIMEOUT' where key = 'k-lost'" % self.ledger("command"))
        end = time.monotonic() + LIMIT_S
        while answers[-1].status != 504:  # it was too late; an inquiry may be looking at it
            self.assertLess(time.monotonic(), end, answers[-1])
            answers.append(self.send(path, "k-lost", {"mode": "drop"}))
        self.send(path, "k-old", {"mode": "say-200"})
        column = "expires_us = 1" if self.store == "sqlite" else "expires_at = now() - interval '1 day'"
        self.execute("update %s set %s where key = 'k-old'" % (self.ledger("command"), column))
        answers.append(self.send(path, "k-old", {"mode": "say-200"}))  # 410
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.send, path, "k-slow", {"mode": "slow"})
            end = time.monotonic() + LIMIT_S
            while not self.service.times("k-slow"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            answers.append(self.send(path, "k-slow", {"mode": "slow"}))  # 409
            self.assertEqual(answers[-1].json["type"], "/problems/in-progress")
            self.service.free.set()
            answers.append(first.result(LIMIT_S))
        return answers

    # Those that forward.c treats differently, one of each class that it does not, and those that the server says itself.
    SAID = (200, 202, 303, 400, 401, 403, 404, 407, 408, 409, 410, 413, 422, 425, 429, 503)
    TOKENS = {("429", "RateLimit"): "of a token: test_access", ("429", "RateLimit-Policy"): "likewise"}
    WAITED = TOKENS | {("202", "Retry-After"): "the service has answered, and the store is away"}

    def test_every_answer_of_a_services_route_is_described_and_every_described_one_comes(self):
        self.server = self.proxy("http.limits.body=64KiB")
        self.exercise("post", "/orders", self.provoke("/orders", self.SAID) + [self.send("/orders", None, {})],
                      self.WAITED | {("500", None): "a defect"})

    def test_long_work_is_described(self):
        self.server = self.proxy("http.limits.body=64KiB")
        accepted = self.send("/late", "k-accepted", {"mode": "slow"})
        self.assertEqual((accepted.status, accepted.json["type"]), (202, "/problems/in-progress"))
        self.exercise("post", "/late", [accepted, *self.provoke("/late", self.SAID), self.send("/late", None, {})],
                      self.TOKENS | {("500", None): "a defect"})

    def test_errors_that_are_kept_are_described(self):
        self.server = self.proxy("http.limits.body=64KiB")
        self.exercise("post", "/kept", self.provoke("/kept", (*self.SAID, 500, 501, 502, 504)) + [self.send("/kept", None, {})],
                      self.WAITED)

    def test_answers_after_which_the_same_key_may_be_sent_again_are_described(self):
        self.server = self.proxy("http.limits.body=64KiB")
        answers = self.provoke("/again", (*self.SAID, 500, 501, 502, 504)) + [self.send("/again", None, {})]
        self.exercise("post", "/again", answers, self.WAITED)

    def test_what_passes_without_a_key_is_described(self):
        self.server = self.proxy("http.limits.body=64KiB")
        said = (*self.SAID, 500, 501, 502, 504)
        passed = [self.send("/open", None, {"mode": "say-%d" % status}) for status in said]
        self.assertEqual([answer.status for answer in passed], list(said))
        away = self.send("/open", None, {}, server=Server(self, "upstream.url=http://127.0.0.1:1"))
        self.assertEqual((away.status, away.json["type"]), (502, "/problems/upstream"))
        self.exercise("post", "/open", [*self.provoke("/open", self.SAID), away],
                      self.TOKENS | {("500", None): "a defect; what passes has none of ours"}, passed)
        described = self.document(self.server)["paths"]["/open"]["post"]
        key = [one for one in described["parameters"] if one["name"] == "Idempotency-Key"]
        self.assertEqual([one.get("required", False) for one in key], [False])
        self.assertNotIn("is missing", described["responses"]["400"]["description"])

    def test_it_is_an_openapi_document_with_the_services_routes_and_the_prefix(self):
        from openapi_spec_validator import OpenAPIV31SpecValidator
        self.contract("odd", "PUT /odd/{item}")
        with open(os.path.join(self.contracts, "odd.yaml"), encoding="utf-8") as handle:
            odd = handle.read()
        self.file("odd.yaml", odd.replace("/item: { type: text,", "/item: { type: text, required: true,")
                  .replace("[Location, ETag]", "[\"x!#$%&'*+^`|~\", Retry-After]"))
        document = self.proxy("http.prefix=/ibid").get("/ibid/openapi.json").json
        self.assertEqual([error.message for error in OpenAPIV31SpecValidator(document).iter_errors()], [])
        of_service = {"place-order", "order-late", "order-kept", "order-again", "order-open", "odd"}
        by_name = {"note", "note-cold", "note-wait", "note-later", "note-once"}
        self.assertEqual(set(document["paths"]), {"/ibid/v1/commands/%s/{key}" % name for name in of_service | by_name} | {
            "/ibid/v1/commands/" + name for name in by_name} | {  # what is a request of its own is not brought by name
            "/ibid/healthz", "/ibid/readyz", "/ibid/openapi.json", "/ibid/metrics", "/problems/{problem}", "/ibid/v1/commands",
            "/ibid/v1/operations/{id}", "/ibid/v1/exceptions", "/ibid/v1/exceptions/{id}", "/ibid/v1/exceptions/{id}/assign",
            "/ibid/v1/exceptions/{id}/resolve", "/ibid/v1/exceptions/{id}/approve", "/ibid/v1/exceptions/{id}/decline",
            "/ibid/v1/pauses", "/ibid/v1/pauses/resume",
            "/ibid/v1/outbox", "/ibid/v1/outbox/{id}", "/ibid/v1/outbox/{event}/release",
            "/ibid/v1/outbox/{event}/skip", "/ibid/v1/outbox/{event}/cancel",
            "/topics/{topic}/notes", "/orders", "/late", "/kept", "/again", "/open", "/odd/{item}"})
        put = document["paths"]["/odd/{item}"]["put"]
        self.assertIn("to the service behind the server", put["description"])
        own = {"$ref": "#/components/headers/of-the-service"}
        told = put["responses"]["2XX"]["headers"]
        self.assertEqual((told["x!#$%&'*+^`|~"], told["Retry-After"]), (own, own))
        self.assertEqual(put["responses"]["502"]["headers"]["Retry-After"], {"$ref": "#/components/headers/Retry-After"})
        self.assertNotIn("payload.place-order", json.dumps(document))

    def test_contracts_of_the_service_alone_are_described(self):
        from openapi_spec_validator import OpenAPIV31SpecValidator
        for name in glob.glob(os.path.join(self.contracts, "note*.yaml")):
            os.remove(name)
        document = self.proxy().get("/openapi.json").json
        self.assertEqual([error.message for error in OpenAPIV31SpecValidator(document).iter_errors()], [])

    def test_schema_and_server_agree_about_bodies(self):
        self.contract("strict", "POST /strict", fields="  /count: { type: integer, required: true }\n"
                                                       "  \"/@query\": { type: text, as: query }\nunknown_fields: refuse")
        self.contract("closed", "POST /closed", fields="unknown_fields: refuse")
        self.contract("bytes", "POST /bytes", fields="  \"/@body\": { type: text, required: true, as: digest }\n"
                                                     "  \"/@type\": { type: text, as: kind }")
        self.contract("loose", "POST /loose", without_key="pass",
                      fields="  /count: { type: integer, required: true }\nunknown_fields: refuse")
        server = self.proxy()
        document = self.document(server)
        loose = document["paths"]["/loose"]["post"]["requestBody"]
        self.assertEqual((loose["required"], "*/*" in loose["content"]), (False, True))
        for body in (b"<a/>", b""):  # without a key nobody looks at it
            self.assertEqual(server.ask("POST", "/loose", body, {"Content-Type": "text/xml"}).status, 201)
        bodies = [{}, {"item": "tea"}, {"item": 7}, {"item": "tea", "count": 1}, {"count": "x"}, {"more": 1}, [], [1, 2], "text", 7,
                  None]
        for path in ("/orders", "/strict", "/closed", "/bytes"):
            asked = document["paths"][path]["post"]["requestBody"]
            for index, body in enumerate(bodies):
                answer = server.send("%s-%d" % (path, index), json.dumps(body), path=path)
                self.assertIn(answer.status, (201, 422), answer)
                self.assertEqual(self.holds(document, asked["content"]["application/json"]["schema"], body),
                                 answer.status == 201, (path, body, answer))
            for kind, body, there in (("text/xml", b"<a/>", "*/*" in asked["content"]), (None, b"", not asked["required"])):
                headers = {"Idempotency-Key": "%s-%s" % (path, kind), **({"Content-Type": kind} if kind else {})}
                answer = server.ask("POST", path, body, headers)
                self.assertEqual(answer.status, 201 if there else 422, (path, kind, answer))
            self.assertNotIn("@", json.dumps(asked, default=str))


class Examples:
    """What is shipped as an example describes itself too."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        validator_modules()

    def serve(self, example):
        self.contracts = os.path.join(ROOT, "examples", example)
        self.open_store()
        subprocess.run([BIN, "init", "--store", self.url, "--contracts", self.contracts], check=True, timeout=LIMIT_S,
                       capture_output=True)
        return Server(self)

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-openapi-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def test_an_escalation_has_a_place_of_its_own(self):
        from openapi_spec_validator import OpenAPIV31SpecValidator
        server = self.serve("cases")
        OpenAPIV31SpecValidator(server.get("/openapi.json").json).validate()
        case = server.send("k-1", {"sourceSystem": "portal", "externalComplaintId": "C-1", "subject": "noise",
                                   "supervisorId": "USR-1"}, path="/cases").json["caseId"]
        path = "/cases/%s/escalations" % case
        first = server.send("k-2", {"reasonCode": "PUBLIC_SAFETY"}, path=path)
        self.assertEqual((first.status, first.headers["Location"]), (202, path + "/" + first.json["escalationId"]))
        for key, status in (("k-2", 202), ("k-3", 200)):  # the same again; and linked
            again = server.send(key, {"reasonCode": "PUBLIC_SAFETY"}, path=path)
            self.assertEqual((again.status, again.headers["Location"]), (status, first.headers["Location"]))

    def test_payments_describe_themselves(self):
        from openapi_spec_validator import OpenAPIV31SpecValidator
        document = self.serve("payments").get("/openapi.json").json
        OpenAPIV31SpecValidator(document).validate()
        self.assertEqual(document["paths"]["/payments"]["post"]["operationId"], "create-payment")


class ExamplesSqlite(Examples, Sqlite, unittest.TestCase):
    pass


class ExamplesPostgres(Examples, Postgres, unittest.TestCase):
    pass


class ProxyDocumentSqlite(ProxyDocument, Sqlite, unittest.TestCase):
    pass


class ProxyDocumentPostgres(ProxyDocument, Postgres, unittest.TestCase):
    pass


class OpenApiSqlite(OpenApi, Sqlite, unittest.TestCase):
    pass


class OpenApiPostgres(OpenApi, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
