# SPDX-License-Identifier: Apache-2.0
"""Canonical forms, fingerprints (A03), scopes and keys (A04) in SQL are those of the library, byte for byte.

Documents and contracts are made with a seed; build/test/flow/flow-fingerprints says what the library
makes of them, the functions of schema ibid what the server does. Both must accept the same documents and
give the same bytes. IBID_TEST_SEED and IBID_TEST_DOCUMENTS make another or a longer run.

Needs the URL of a superuser in IBID_TEST_PG (with IBID_TEST_REQUIRE_PG=1 a missing one is a failure)."""
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import unicodedata
import unittest
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
BIN = os.environ.get("IBID_BIN") or os.path.join(BUILD, "ibid")
FINGERPRINTS = os.environ.get("IBID_FINGERPRINTS") or os.path.join(BUILD, "test", "flow", "flow-fingerprints")
PG = os.environ.get("IBID_TEST_PG")
REQUIRE_PG = os.environ.get("IBID_TEST_REQUIRE_PG") == "1"
SEED = int(os.environ.get("IBID_TEST_SEED", "20261116"))
WHOLE = os.environ.get("IBID_TEST_WHOLE") == "1"  # as `make soak` has it: not a sample that the seed chooses
DOCUMENTS = int(os.environ.get("IBID_TEST_DOCUMENTS", "20000" if WHOLE else "4000"))
SHARE = 1 if WHOLE else 5  # of characters: one of so many
LIMIT_S = 3600 if WHOLE or "IBID_TEST_DOCUMENTS" in os.environ else 240
BATCH = 5000
FUNCTIONS = ("canonical", "fingerprint_text", "fingerprint", "scope_of", "key_of")

ONLY = "[/a, /l/*/a, /b/c, /1, /é, /*/é]"
IGNORE = "[/at, /l/*/id, /*/z, /0, /a~1b, /m~0n, /, '/q\"', '/\\', /l/1, /l/*/*/t]"
DEFAULTS = r"""{ /b: '{"c": 1.0, "l":[3,1]}', /b/c: '"e\u0301"', /l/*/a: '[2,1.50]', /*/d: 'null', /a/d: '7', "/q\"": '"\u0000"',
                 /t: '"2026-01-01T01:00:00.50+01:00"', /x~1y: 'true', /é: '{"é": 1}', /l/1/*: '1', /0/0: '5', /*/l/0/t: '1e2' }"""
INSTANTS = "[/t, /l/*/t, /*, /*/*/t, /a/0]"
UNORDERED = "[/l, /l/*/l, /*/*, /u, /b/l, /*]"
KEYED = """
fields:
  /a: { type: text, required: true }
  /b/c: { type: text, required: true }
  /t: { type: instant, required: true }"""
CONTRACTS = {  # name: (same_payload, key, more)
    "as-sent": ("context: []", "", ""),
    "with-context": ("context: [resource, client, actor]", "scope: [actor, resource, client]", ""),
    "only-some": ("context: []\n  only: " + ONLY, "scope: []", ""),
    "ignore-some": ("context: [actor]\n  ignore: " + IGNORE, "", ""),
    "ignore-members": ("context: []\n  ignore: [/at, /id, '/a i', /é, /]", "", ""),
    "ignore-members-nfc": ("context: []\n  ignore: [/at, /id, /é]\n  nfc: yes", "", ""),
    "with-defaults": ("context: []\n  defaults: " + DEFAULTS, "", ""),
    "with-instants": ("context: []\n  instants: " + INSTANTS, "", ""),
    "unordered-lists": ("context: []\n  unordered: " + UNORDERED, "", ""),
    "one-nfc": ("context: []\n  nfc: yes", "", ""),
    "only-and-ignore": ("context: []\n  only: %s\n  ignore: %s" % (ONLY, IGNORE), "", ""),
    "ignore-and-defaults": ("context: []\n  ignore: %s\n  defaults: %s" % (IGNORE, DEFAULTS), "", ""),
    "only-and-defaults": ("context: []\n  only: %s\n  defaults: %s\n  unordered: %s" % (ONLY, DEFAULTS, UNORDERED), "", ""),
    "everything": ("context: [client]\n  only: %s\n  ignore: %s\n  defaults: %s\n  instants: %s\n  unordered: %s\n  nfc: true"
                   % (ONLY, IGNORE, DEFAULTS, INSTANTS, UNORDERED), "", ""),
    "nfc-and-more": ("context: []\n  ignore: %s\n  defaults: %s\n  unordered: %s\n  nfc: true"
                     % (IGNORE, DEFAULTS, UNORDERED), "", ""),
    "key-of-fields": ("context: []\n  instants: [/a]", "from: [/a, /b/c]\n  generated_by: client\n  scope: []", KEYED),
    "uuid-of-fields": ("context: []\n  nfc: yes", "from: [/t, /a]\n  form: uuid\n  scope: [client]", KEYED),
}

NAMES = [
    "a", "b", "c", "d", "l", "t", "u", "at", "id", "z", "0", "1", "", "a/b", "m~n", "x/y", "é", "e\u0301", "q\"",
    "\\", "\n", "\u0000", "\u001f", "\u007f", "*", "Å", "\u212b", "A\u030a", "\ue000", "\uffff", "\U00010000",
    "\U0010ffff", "\U0010fffd", "\ufb01", "\ud7a3", "a\u0000", "a\u0001", "a\u0002", "aa", "a\ue000", "a\U0001f600",
]
RANGES = [(0x20, 0x7E)] * 4 + [
    (0x01, 0x1F), (0x7F, 0x17F), (0x300, 0x345), (0x391, 0x3C9), (0x5D0, 0x5EA), (0x5B0, 0x5BD), (0x915, 0x93C),
    (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2), (0x1E00, 0x1EFF), (0x1F80, 0x1FAF), (0x2000, 0x2029),
    (0x2126, 0x212B), (0x3041, 0x3096), (0x3099, 0x309A), (0x4E00, 0x4E20), (0xAC00, 0xAC40), (0xE000, 0xE003),
    (0xF900, 0xF920), (0xFB1D, 0xFB36), (0xFE70, 0xFE74), (0xFFFD, 0xFFFF), (0x10000, 0x1000B), (0x11099, 0x110A0),
    (0x110B9, 0x110BA), (0x1D15E, 0x1D164), (0x1F600, 0x1F64F), (0x2F800, 0x2F820), (0x10FFF4, 0x10FFFF),
]
INSTANTS_SENT = [
    "2026-11-15T10:00:00+01:00", "2026-11-15t09:00:00.000z", "2024-02-29T00:30:00.1230-23:59",
    "2023-02-29T00:00:00Z", "0000-01-01T00:00:00+00:01", "0000-01-01T00:00:00Z", "0000-02-29T23:59:60Z",
    "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00+14:00",
    "2026-11-15T24:00:00Z", "2026-13-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-11-15T10:00:00",
    "2026-11-15T10:00:00.Z", "2026-11-15T10:00:00.5+24:00", "2026-11-15T10:00:61Z", "2026-11-15 10:00:00Z",
    "2026-12-31T23:59:60.999990+00:30", "2026-01-01T00:00:00-00:00", "0099-03-01T00:00:00+23:59",
]


class Raw(str):
    """A text that stands in a document as it is."""


class Maker:
    """Documents of every kind from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def char(self):
        char = chr(self.random.randint(*self.random.choice(RANGES)))
        return char if unicodedata.category(char) != "Cn" or ord(char) & 0xFFFE == 0xFFFE else "x"

    def string(self):
        if self.one_in(3):
            return self.random.choice(NAMES)
        if self.one_in(4):
            return self.random.choice(INSTANTS_SENT)
        text = "".join(self.char() for _ in range(self.random.randrange(9)))
        if self.one_in(300):
            text += "x" + "\u0301" * self.random.randint(126, 131)
        return text + ("\u0000" if self.one_in(40) else "")

    def digits(self, most):
        return "".join(self.random.choices("0123456789", weights=[
            6, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        ], k=self.random.randint(1, most)))

    def number(self):
        most = self.pick(1, 2, 3, 6, 20, 25, 40) if not self.one_in(400) else self.pick(4078, 4081, 4095, 4100)
        whole = str(int(self.digits(most))) if most < 4000 and not self.one_in(3) else self.pick("0", "1" + self.digits(most))
        text = self.pick("", "", "-") + whole
        if self.one_in(2):
            text += "." + self.pick("", "", "0" * self.random.randrange(9)) + self.digits(most)
        if self.one_in(3):
            size = self.pick("", "0", "000") + str(self.random.choice(
                [0, 1, 5, 6, 7, 20, 21, 22, 308, 324, 400, 99999, 999999998, 999999999, 1000000000, 12345678901]
                if self.one_in(3) else range(30)))
            text += self.pick("e", "E") + self.pick("", "+", "-") + size
        if self.one_in(60):
            text = self.pick("-0", "-0.0e5", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "-", "1.e5", "00", "-01", "1_0", "NaN",
                             "Infinity", "1e0000000000000000005", "9007199254740993", "0.1e1", "1E400", "5e-324")
        return Raw(text)

    def value(self, depth=0):
        kind = self.random.randrange(11 if depth < 5 else 7)
        if kind < 3:
            return self.string()
        if kind < 6:
            return self.number()
        if kind == 6:
            return self.pick(None, True, False)
        if kind == 7:
            return [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        return self.object(depth)

    def object(self, depth=0):
        return [(self.string() if self.one_in(4) else self.random.choice(NAMES[:24] if self.one_in(3) else NAMES[:18]),
                 self.value(depth + 1)) for _ in range(self.random.randrange(7))]

    def document(self):
        """An object such as the contracts speak of, mostly."""
        if self.one_in(12):
            return self.value()
        members = dict(self.object())
        for name in self.random.sample(["a", "b", "l", "t", "at", "u", "é"], 4):
            members[name] = self.value(1)
        if self.one_in(2):
            members["l"] = [self.unique(self.object(2)) for _ in range(self.random.randrange(4))]
        if self.one_in(2):
            members["b"] = self.unique([("c", self.string()), ("l", [self.number(), self.number()])])
            members["a"] = self.pick(self.string(), self.string(), "", self.number())
            members["t"] = self.random.choice(INSTANTS_SENT)
        members = list(members.items())
        self.random.shuffle(members)
        return members

    @staticmethod
    def unique(members):
        return list(dict(members).items())

    # ---- Text ----

    def blank(self):
        return self.pick("", "", "", "", " ", "\n", "\t\r\n ")

    def write_char(self, char):
        short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        point = ord(char)
        must = point < 0x20 or char in '"\\'
        if must and char in short and not self.one_in(4):
            return short[char]
        if char == "/" and self.one_in(2):
            return "\\/"
        if not must and not self.one_in(8):
            return char
        units = [point] if point < 0x10000 else [0xD800 + ((point - 0x10000) >> 10), 0xDC00 + (point & 0x3FF)]
        return "".join(self.pick("\\u%04x", "\\u%04X") % unit for unit in units)

    def write_string(self, text):
        if self.one_in(500):
            text = text[:1] + "\ud800" + text[1:]
        return '"' + "".join(self.write_char(char) for char in text) + '"'

    def write(self, value):
        if isinstance(value, Raw):
            return str(value)
        if isinstance(value, str):
            return self.write_string(value)
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if value and isinstance(value[0], tuple):
            names = set()
            parts = []
            for name, inner in value:
                if name in names and not self.one_in(20):
                    continue
                names.add(name)
                parts.append(self.blank() + self.write_string(name) + self.blank() + ":" + self.blank()
                             + self.write(inner) + self.blank())
            return "{" + ",".join(parts) + "}"
        if not value and self.one_in(2):
            return "{" + self.blank() + "}"
        return "[" + self.blank() + ",".join(self.blank() + self.write(inner) + self.blank() for inner in value) + "]"

    def spoil(self, text):
        at = self.random.randrange(len(text) + 1)
        bad = self.pick("", ",", "]", "}", "{", "[", '"', "\\", "\\u12", "\\ud800", "\\udc00", "\\x", "\u0001", "\n", "\ufeff", "0", "-",
                        "e5", "tru", "nul", ":", "/*x*/", "\u007f", "\u00a0", "'", "1 2", "\u2028", "\\u0000", "\\\\")
        return text[:at] + bad + text[at + self.random.randrange(3):]

    def deep(self):
        depth = self.random.choice([62, 63, 64, 65, 66, 70, 5000])
        return self.pick("[", '{"a":') * depth if self.one_in(4) else self.nested(depth)

    def nested(self, depth):
        opened = [self.random.randrange(2) for _ in range(depth)]
        return "".join('{"a":' if kind else "[" for kind in opened) + self.pick("", "1", '"x"') * (not opened[-1]) \
            + ("0" if opened[-1] else "") + "".join("}" if kind else "]" for kind in reversed(opened))

    def text(self):
        if self.one_in(150):
            return self.deep()
        text = self.blank() + self.write(self.document()) + self.blank()
        return self.spoil(text) if self.one_in(6) else text


FIXED = [
    "", " ", "null", "true", " false ", "tru", "nulll", "0", "-0", '""', '"', "[", "]", "{", "}", "[]", "{}", "[,]",
    "[1,]", "{,}", '{"a"}', '{"a":}', '{"a":1,}', "{1:2}", '{"a":1 "b":2}', "[1 2]", "1 2", "{}{}", "[]]",
    "\ufeff{}", "{}\ufeff", "'a'", "{a:1}", "//", "[1]//", '"\t"', '"\u007f"', '"\u2028\u2029"', '"\\u0000"',
    '{"\\u0000":"\\u0000\\\\u0000"}', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"',
    '"\\ud83d\\ud83d\\ude00"', '"\\\\ud83d"', '"\\\\\\ud83d"', '"\\uD83Dx"', '"\\u00g0"', '"\\u123"', '"\\U0041"',
    '{"a":1,"\\u0061":2}', '{"\\u0000":1,"\\u0000":2}', '{"a":{"b":1,"b":1}}', '[{"a":1},{"a":1}]', "\u00a0[]",
    "\x0b[]", "\x0c1", '{"\U00010000":1,"\uffff":2,"\ud7a3":3,"\ue000":4}',
    '{"\\u0001":1,"\\u0000":2,"":3,"\\u0000\\u0000":4,"\\u0001a":5,"\\u0000b":6}',
    '["\\u0000","' + "".join(map(chr, range(0x10FFF6, 0x10FFFE))) + '"]',
    '["\\u0000","\\udbff\\udffd","\\uDBFF\\uDFFC"]', '["\\u001F","\\u000b","\\b\\f\\n\\r\\t\\/\\"\\\\"]',
    '{"a":"n\\u0303","b":"\\n\\u0303","c":"\\u001f\\u0307","d":"\\\\\\u0327"}',
    '{"A\u030a":1,"B":2,"\u212b\u0301":3,"e\u0301":4,"at":5,"\u00c4":6}', '{"A\u030a":1,"\u212b":2}',
    '{"l":[3,1,2,[2,1],"\\u0000","\\u0001"," "],"u":["b","a"]}', "[" * 64 + "]" * 64, "[" * 65 + "]" * 65,
    '{"a":' * 64 + "1" + "}" * 64, "[" * 100000, "[1e999999999,1e-999999999,10e999999998,0.1e-999999998]",
    "1e1000000000", "10e999999999", "0.1e-999999999", "0e999999999", "0e1000000000", "-0.000",
    "100000000000000000000", "1000000000000000000000", "0.000001", "0.0000001", "123456789012345678901.5",
    "1" + "0" * 4095, "1" + "0" * 4096, "1" * 4080, "1" * 4081, "0." + "0" * 4000 + "1", "0" * 2, "1e" + "0" * 5000,
    "1.5e+0000000000000000000001",
]


def copy_text(value):
    if value is None:
        return "\\N"
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def copy_read(field):
    plain = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
    return re.sub(r"\\(.)", lambda found: plain[found.group(1)], field)


SETUP = """
create table request (n int primary key, contract text, tenant text, client text, actor text, resource text, given text,
	document text);
create function attempt(what text, contract json, r request) returns text language plpgsql as $$
begin
	return '+' || case what
		when 'canonical' then ibid.canonical(r.document)
		when 'fingerprint_text' then ibid.fingerprint_text(contract, r.tenant, r.client, r.actor, r.resource, r.document)
		when 'fingerprint' then encode(ibid.fingerprint(contract, r.tenant, r.client, r.actor, r.resource, r.document), 'hex')
		when 'scope_of' then ibid.scope_of(contract, r.client, r.actor, r.resource)
		when 'key_of' then ibid.key_of(contract, r.tenant, r.given, r.document) end;
exception when sqlstate 'IB010' then
	return '-' || sqlerrm;
end $$;
"""
# The hash needs no more than some of the texts that it is made of.
ANSWERS = "copy (select %s from request as r left join ibid.contract as c on c.name = r.contract order by r.n) to stdout" % ", ".join(
    ("case when r.n %% 10 = 0 then attempt('%s', c.text::json, r) else '' end" if what == "fingerprint" else
     "attempt('%s', c.text::json, r)") % what for what in FUNCTIONS)


@unittest.skipUnless(PG or REQUIRE_PG, "IBID_TEST_PG is not set")
class SqlFingerprint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PG:
            raise AssertionError("IBID_TEST_PG is not set, and IBID_TEST_REQUIRE_PG=1 forbids to go on without it")
        cls.dir = tempfile.mkdtemp(prefix="ibid-sql-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.contracts = os.path.join(cls.dir, "contracts")
        os.mkdir(cls.contracts)
        shutil.copy(os.path.join(HERE, "contracts", "defaults.yaml"), cls.contracts)
        for name, (same, key, more) in CONTRACTS.items():
            with open(os.path.join(cls.contracts, name + ".yaml"), "w", encoding="utf-8") as file:
                file.write("command: %s\nversion: %d\nfact: something is true\n" % (name, len(name)))
                file.write("key:\n  %s\n" % key if key else "")
                file.write("same_payload:\n  %s%s\nhandler: callback\n" % (same, more))
        database = "ibid_sql_%s" % uuid.uuid4().hex[:12]
        cls.store = re.sub(r"/[^/]*$", "/" + database, PG)
        cls.psql('create database "%s"' % database, url=PG)
        cls.addClassCleanup(cls.psql, 'drop database if exists "%s" with (force)' % database, url=PG)
        for args in (["migrate"], ["contract", "apply", "--contracts", cls.contracts]):
            done = subprocess.run([BIN, *args, "--store", cls.store], capture_output=True, text=True, timeout=LIMIT_S)
            if done.returncode:
                raise AssertionError(done.stdout + done.stderr)
        cls.psql(SETUP)

    @classmethod
    def psql(cls, sql, stdin="", url=None, settings=""):
        done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url or cls.store, "-c", sql],
                              input=stdin.encode("utf-8"), capture_output=True, timeout=LIMIT_S,
                              env=dict(os.environ, PGCLIENTENCODING="UTF8", PGOPTIONS=settings))
        if done.returncode:
            raise AssertionError(done.stderr.decode("utf-8"))
        return done.stdout.decode("utf-8")

    def of_library(self, requests):
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run([FINGERPRINTS, self.contracts], input=lines.encode(), capture_output=True, timeout=LIMIT_S)
        self.assertEqual(0, done.returncode, done.stderr)
        answers = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n")[:-1]]
        self.assertEqual(len(requests), len(answers))
        return answers

    def of_server(self, requests, settings=""):
        fields = ("contract", "tenant", "client", "actor", "resource", "given", "document")
        rows = "".join("\t".join([str(n)] + [copy_text(request[field]) for field in fields]) + "\n"
                       for n, request in enumerate(requests))
        self.psql("truncate request")
        self.psql("copy request from stdin", rows)
        out = self.psql(ANSWERS, settings=settings)
        answers = [[copy_read(field) for field in line.split("\t")] for line in out.split("\n")[:-1]]
        self.assertEqual(len(requests), len(answers))
        return answers

    @staticmethod
    def request(document, contract="as-sent", given="k-1", sender=("acme", "web", "ann", "CASE-1")):
        tenant, client, actor, resource = sender
        return {"contract": contract, "tenant": tenant, "client": client, "actor": actor, "resource": resource, "given": given,
                "document": document}

    def differences(self, requests, settings=""):
        """(function, request, library's answer, server's answer) where the two are not the same."""
        for request, library, server in zip(requests, self.of_library(requests), self.of_server(requests, settings)):
            for what, theirs, ours in zip(FUNCTIONS, library, server):
                # A document that is not JSON has no scope or key here; the server does not read it for them.
                if what in ("scope_of", "key_of") and library[0].startswith("-"):
                    continue
                if ours and theirs != ours and not (theirs[0] == ours[0] == "-"):
                    yield what, request, theirs, ours

    def assert_same(self, requests, settings=""):
        for at in range(0, len(requests), BATCH):
            for what, request, theirs, ours in self.differences(requests[at:at + BATCH], settings):
                self.fail("%s of %r: the library says\n%r, the server\n%r" % (what, request, theirs[:3000], ours[:3000]))

    def test_every_fixed_document_under_every_contract(self):
        self.assert_same([self.request(document, contract) for contract in CONTRACTS for document in FIXED
                          if not ("\\u0000" in document and "\U0010fff6" in document)])

    def test_many_made_documents_have_the_same_canonical_form_fingerprint_scope_and_key(self):
        maker = Maker(SEED)
        names = sorted(CONTRACTS)
        accepted = made = 0
        kinds = set()
        while made < DOCUMENTS:
            requests = []
            for _ in range(min(BATCH, DOCUMENTS - made)):
                contract = maker.random.choice(names)
                given = None if "fields" in contract else maker.pick("k-1", maker.string().replace("\u0000", ""))
                sender = [maker.pick("acme", "é\"\\", maker.string().replace("\u0000", "")) if maker.one_in(9) else name
                          for name in ("acme", "web", "ann", "CASE-1")]
                document = maker.text().replace("\ud800", "\\ud800")
                requests.append(self.request(document, contract, given, sender))
            made += len(requests)
            self.assert_same(requests)
            answers = self.of_library(requests)
            accepted += sum(answer[0][0] == "+" for answer in answers)
            kinds |= {re.sub(r"[^a-z ]+", "", answer[0][1:40]) for answer in answers if answer[0][0] == "-"}
        self.assertGreater(accepted, DOCUMENTS // 2)
        self.assertGreater(DOCUMENTS - accepted, DOCUMENTS // 20)
        self.assertGreater(len(kinds), 12)

    def test_a_document_cut_at_every_byte(self):
        maker = Maker(SEED + 1)
        texts = ['{"a":[1.50,-0e+5,"\\ud83d\\ude00\\u0000\\n"],"é":{"b":null,"c":true,"d":false}} ']
        texts += [maker.write(maker.document()).replace("\ud800", "") for _ in range(20 // SHARE)]
        self.assert_same([self.request(text[:at]) for text in texts for at in range(len(text) + 1)])

    def test_every_character_that_nfc_knows_and_every_mark_behind_it(self):
        points = [point for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF and not 0xAC40 < point < 0xD780
                  and (unicodedata.decomposition(chr(point)) or unicodedata.combining(chr(point)))]
        points = [point for number, point in enumerate(points) if (number + SEED) % SHARE == 0]
        requests = [self.request(json.dumps(["a" + c, c + "\u0323\u0301", "\u1100" + c, "\n" + c], ensure_ascii=False), "one-nfc")
                    for c in map(chr, points)]
        new = [ours for what, _, _, ours in self.differences(requests) if what == "fingerprint_text"]
        self.assertLess(len(new), 120)
        for answer in new:
            self.assertIn("Unicode 13 does not know", answer)

    def test_a_character_of_a_later_unicode_is_refused_where_nfc_counts(self):
        answer = self.of_server([self.request('"\u0378"', "one-nfc"), self.request('"\u0378"'), self.request('"\u00e9"', "one-nfc")])
        self.assertEqual(["-", "+", "+"], [row[1][0] for row in answer])

    def test_a_refusal_says_what_is_wrong_and_where(self):
        refused = {
            "": "unexpected end of text: a value is missing at line 1, column 1",
            '{"a":1,\n "é":2x}': 'expected "," or "}", found "x" at line 2, column 8',
            "[1,]": 'expected a value, found "]" at line 1, column 4',
            '{"a" 1}': 'expected ":", found "1" at line 1, column 6',
            "{]": 'expected a member name, found "]" at line 1, column 2',
            "1 2": "trailing text after the value at line 1, column 3",
            "\ufeff1": "expected a value, found another character at line 1, column 1",
            '"a': "unexpected end of text: the end of a string is missing at line 1, column 3",
            '"a\\x"': "unknown escape in a string at line 1, column 3",
            '"\t"': "control character in a string must be escaped at line 1, column 2",
            "[" * 65: "more than 64 levels at line 1, column 65",
            "[" + "1," * 3000 + "x": "not a JSON text behind line 1, column 4001",
            '"' + '\\"' * 9000: "not a JSON text behind line 1, column 4000",
            '{"a":1,"b":2,"\\u0061":3}': 'duplicate member "a"',
            '"\\ud800"': "lone surrogate in an escape",
            "1e1000000000": "a number may have exponents up to 999999999",
        }
        answers = self.of_server([self.request(document) for document in refused])
        self.assertEqual(["-" + says for says in refused.values()], [answer[0] for answer in answers])

    def test_u_0000_beside_all_characters_that_could_stand_for_it_is_refused(self):
        document = '["\\u0000","' + "".join(map(chr, range(0x10FFF6, 0x10FFFE))) + '"]'
        self.assertIn("U+0000", self.of_server([self.request(document)])[0][0])

    def test_settings_do_not_matter(self):
        maker = Maker(SEED + 2)
        requests = [self.request(maker.text().replace("\ud800", ""), contract) for contract in sorted(CONTRACTS) for _ in range(40)]
        self.psql('create schema evil; create function evil.replace(text, text, text) returns text language sql as $$ select $1 $$; '
                  'create function evil.left(text, int) returns text language sql as $$ select $1 $$')
        self.assert_same(requests, "-c standard_conforming_strings=off -c escape_string_warning=off -c search_path=evil,public,pg_catalog "
                         "-c extra_float_digits=-15 -c DateStyle=German -c IntervalStyle=sql_standard -c TimeZone=Asia/Kathmandu "
                         "-c bytea_output=escape -c plan_cache_mode=force_custom_plan -c default_transaction_isolation=serializable")

    def test_keys_and_names_that_are_not_acceptable(self):
        words = [
            "", " ", "a ", " a", "\u00a0a", "a\u2003", "\u2028", "\u3000a", "a\u205f", "a\u180e", "a\u200b", "a b",
            "a\nb", "\u007f", "\u0085", "\u009f", "\u00a1", "x" * 128, "x" * 129, "é" * 64, "é" * 65, "x" * 255,
            "x" * 256, "\u0001", '"', "\\", None,
        ]
        requests = [self.request("{}", "with-context", given) for given in words]
        for word in words:
            for place in range(1, 4):
                sender = ["acme", "web", "ann", "CASE-1"]
                sender[place] = word
                requests.append(self.request("{}", "with-context", "k", sender))
        self.assert_same(requests)

    def test_a_key_given_beside_its_fields_must_be_the_same(self):
        document = '{"t":"2026-11-15T10:00:00+01:00","a":"x","b":{"c":1.50}}'
        keys = {name: self.of_library([self.request(document, name, None)])[0][4][1:] for name in ("key-of-fields", "uuid-of-fields")}
        for name, key in keys.items():
            self.assert_same([self.request(document, name, given) for given in (key, key.upper(), key + " ", "", None)])
        long = json.dumps({"a": "x" * 300, "b": {"c": "y"}, "t": "z"})
        self.assert_same([self.request(long, name, None) for name in keys])

    def test_a_document_of_16_mib_is_read_and_one_byte_more_is_not(self):
        size = self.psql("select length(ibid.canonical('\"' || repeat('x', 16777214) || '\"'))")
        self.assertEqual("16777216", size.strip())
        with self.assertRaisesRegex(AssertionError, "longer than 16777216 bytes"):
            self.psql("select ibid.canonical('\"' || repeat('x', 16777215) || '\"')")

    def test_ten_times_the_document_takes_about_ten_times_the_time(self):
        made = {"lists": "[%s]", "objects": '{"a":%d,"b":{}}', "escapes": '"\\u00e9\\n\\\\"', "numbers": "%d.50e3",
                "pairs": '"\\u0000\\ud83d\\ude00"', "strings": '"x"'}
        for name, item in made.items():
            times = []
            for many in (4000, 40000):
                items = [item % n if "%" in item else item for n in range(many)]
                for document in ("[" + ",".join(items) + "]", '{%s}' % ",".join('"m%d\\u0001":%s' % each for each in enumerate(items))):
                    self.psql("truncate request")
                    self.psql("copy request (n, document) from stdin", "0\t" + copy_text(document) + "\n")
                    start = time.monotonic()
                    self.psql("select length(ibid.canonical(document)) from request")
                    times.append(time.monotonic() - start)
            with self.subTest(name=name, times=times):
                self.assertLess(times[2], 30 * times[0] + 1)
                self.assertLess(times[3], 30 * times[1] + 1)


if __name__ == "__main__":
    unittest.main()
