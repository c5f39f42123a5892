# SPDX-License-Identifier: Apache-2.0
"""The `ibid` binary as people and scripts use it: what it prints, how it ends, what it leaves behind.

Every case that touches a store runs on SQLite, and on PostgreSQL when IBID_TEST_PG holds the URL of
a superuser (with IBID_TEST_REQUIRE_PG=1 a missing one is a failure). Every test has its own
directory and its own database."""
import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import termios
import time
import unicodedata
import unittest
import uuid

ROOT = os.environ.get("IBID_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("IBID_BIN") or os.path.join(ROOT, "build", "ibid"))
PG = os.environ.get("IBID_TEST_PG")
REQUIRE_PG = os.environ.get("IBID_TEST_REQUIRE_PG") == "1"
EXAMPLE = os.path.join(ROOT, "examples", "payments")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PAYMENT = '{"from":"A","to":"B","amount":12.50,"currency":"EUR"}'
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
AGE = r"(?:0\.)?\d+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?"  # "0.4 s", "3 s", "1 min 30 s"
LIMIT_S = 60  # nothing here takes seconds; a hang is a failure

# Operations beside the example's: business uniqueness (B09), a broken handler (B07), a derived key
# (A04), a handler in C.
VARIANTS = {  # name: (pattern, what takes its place) in the example's contract
    "link-payment": (r"handler:.*", "unique:\n  payment_note: { on_duplicate: link, find: link-find.sql }\n"
                                    "handler: { sql: create-payment.sql, rows: [1, 2] }"),
    "break-payment": (r"handler:.*", "handler: { sql: break.sql }"),
    "derive-payment": (r"from: header.*", "from: [/from, /to]"),
    "callback-payment": (r"handler:.*", "handler: callback"),
    "stage-payment": (r"handler:.*", "handler: callback\nstaged: { lease: 30s, recover: human }"),
    "soft-payment": (r"validation: final", "validation: retry"),
    "look-payment": (r"handler:.*", "handler: callback\nstaged: { lease: 30s, recover: { sql: look.sql } }"),
}
FILES = {
    "link-find.sql": "select 200 as status, null as body, 'payment' as resource_type, id as resource_id\n"
                     "  from payment where tenant = :tenant and note = :note;\n",
    "look.sql": "select 201 as status, null as body, 'payment' as resource_type, id as resource_id\n"
                "  from payment where tenant = :tenant and id = :command_id;\n",
    "break.sql": "insert into payment (tenant) values (null);\nselect 201 as status;\n",
}


def by_program(contract):
    """The example's contract for a handler that answers and tells by itself."""
    for pattern, new in ((r"answer: .*\n(?:  .*\n)+", "answer: { store: full }\n"), (r"reject:\n(?:  .*\n)+", ""),
                         (r"emits:\n(?:  .*\n)+", "emits: [PaymentCreated]\n")):
        contract, count = re.subn(pattern, new, contract)
        assert count == 1, pattern
    return contract


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("IBID_") and name not in ("NO_COLOR", "PGOPTIONS")}
    return dict(kept, **more)


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def unread(command, **options):
    """Run it with a standard output that its reader has closed already."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=LIMIT_S, **options)
    finally:
        os.close(writer)


def columns(text):
    """What a terminal needs for it."""
    return sum(0 if unicodedata.combining(point) else 2 if unicodedata.east_asian_width(point) in "WF" else 1
               for point in text)


class Answer:
    """How one run ended."""

    def __init__(self, code, out, err):
        self.code, self.raw = code, out
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return "exit %s\nout: %s\nerr: %s" % (self.code, self.out, self.err)


class Case(unittest.TestCase):
    """Runs the binary in a directory of its own."""
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-cli-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def file(self, name, text):
        write(self.path(name), text)
        return self.path(name)

    def ibid(self, *args, stdin="", code=0, env=None, wrap=(), **options):
        if isinstance(stdin, str):
            stdin = stdin.encode()
        done = subprocess.run([*wrap, BIN, *args], input=stdin, timeout=LIMIT_S, cwd=self.dir,
                              env=clean_environment(**(env or {})), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **options)
        answer = Answer(done.returncode, done.stdout, done.stderr)
        self.assertEqual(code, answer.code, "%s\n%r" % (" ".join(map(repr, args)), answer))
        return answer

    def refused(self, *args, code=1, says="ibid:", **options):
        """One clear message on stderr, nothing on stdout."""
        answer = self.ibid(*args, code=code, **options)
        self.assertEqual("", answer.out)
        self.assertRegex(answer.err, r"\Aibid: \S", answer)
        self.assertEqual(1, len(re.findall(r"^ibid: ", answer.err, re.M)), answer)
        self.assertLess(len(answer.err), 1200, answer)
        self.assertRegex(answer.err, says)
        for line in answer.err.splitlines():
            self.assertTrue(line.isprintable(), repr(line))
        return answer


# ---- Without a store --------------------------------------------------------------------------------


class Sources(unittest.TestCase):
    """What no single run shows."""

    def test_every_member_of_every_log_line_is_camel_case(self):
        lines, names = 0, set()
        for folder, _, files in os.walk(os.path.join(ROOT, "src")):
            for file in files:
                if not file.endswith(".c") or file == "log.c":
                    continue
                text = read(os.path.join(folder, file))
                self.assertNotIn("log_fields(", text, file)  # all lines are written by LOG
                for line in re.findall(r"\bLOG\((.*?)\);", text, re.S):
                    lines += 1
                    names.update(re.findall(r'\{\s*"([^"]*)"\s*,', line))
        self.assertGreater(lines, 20)
        self.assertIn("keyHash", names)
        self.assertEqual([], sorted(name for name in names if not re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name)))


class Front(Case):
    """Commands, options, help."""

    def test_help_lists_every_command_and_each_explains_itself_with_examples(self):
        overview = self.ibid("help").out
        self.assertEqual(overview, self.ibid("--help").out)
        names = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", overview, re.M)
        for expected in ("init", "migrate", "contract check", "contract matrix", "contract review", "contract apply",
                         "canon", "fingerprint", "submit", "command show", "command list",
                         "exception show", "exception list", "exception assign", "exception resolve",
                         "exception approve", "exception decline", "outbox list", "outbox show", "doctor", "version", "help"):
            self.assertIn(expected, names)
        for name in names:
            text = self.ibid(*name.split(), "--help").out
            self.assertEqual(text, self.ibid(*name.split(), "-h").out)
            self.assertEqual(text, self.ibid("help", *name.split()).out)
            self.assertTrue(text.startswith("usage: ibid %s" % name), text)
            self.assertIn("\nexamples\n  $ ", text)
        for number in range(9):
            self.assertRegex(overview, r"(?m)^  %d  " % number)

    def test_help_of_a_group_lists_its_commands(self):
        for args in (["help", "contract"], ["contract", "--help"]):
            text = self.ibid(*args).out
            self.assertIn("contract check", text)
            self.assertNotIn("command list", text)

    def test_version_is_the_same_in_all_forms(self):
        plain = self.ibid("version").out
        self.assertRegex(plain, r"\Aibid \d+\.\d+\.\d+\nSQLite 3\.[\d.]+, .+\nlibrdkafka \d[\d.]+, .+\n\Z")
        self.assertEqual(plain, self.ibid("--version").out)
        self.assertEqual(plain.split()[1], self.ibid("version", "--json").json["version"])

    def test_a_wrong_command_line_is_exit_2_and_names_the_way_out(self):
        store = ["--store", "sqlite:x.db"]
        for args, says in (
                ([], "no command"),
                (["sbmit"], "did you mean `ibid submit`"),
                (["contract", "chek"], "did you mean `ibid contract check`"),
                (["contract"], "ibid help contract"),
                (["help", "nothing"], "unknown command"),
                (["help", "contract", "chek"], "did you mean"),
                (["--jsn"], "the command comes first"),
                (["\x1b[31m"], r"unknown command \"\\u001b"),
                (["submit", "--tenat", "acme"], "did you mean --tenant"),
                (["submit", "--zzzzzzzzzz"], "unknown option --zzzzzzzzzz"),
                (["submit", "-k", "1"], "unknown option -k"),
                (["submit", "--key"], "--key needs a value"),
                (["submit", "--key", "--json"], "--key=--json"),
                (["submit", "--json=yes"], "--json takes no value"),
                (["submit", "--key", "a", "--key=b"], "--key was given twice"),
                (["submit", "a", "b"], 'unexpected argument "b"'),
                (["version", "x"], "unexpected argument"),
                (["command", "list", *store, "--limit", "0"], "1 to 1000"),
                (["command", "list", *store, "--limit", "1001"], "1 to 1000"),
                (["command", "list", *store, "--limit", "-1"], "1 to 1000"),
                (["command", "list", *store, "--limit", "99999999999999999999"], "1 to 1000"),
                (["command", "list", *store, "--limit", ""], "1 to 1000"),
                (["command", "list", *store, "--state", "done"], "completed, rejected"),
                (["command", "list", *store, "--after", "k-1"], "id of a command"),
                (["command", "show", *store, "--tenant", "t"], "or by --operation and --key"),
                (["command", "show", *store, "--tenant", "t", "--key", "k"], "by --operation and --key"),
                (["command", "show", *store, "--tenant", "t", "x"], "not the id of a command"),
                (["exception"], "ibid help exception"),
                (["exception", "list", *store, "--queue", "technical"], "dead-letter, business"),
                (["exception", "list", *store, "--queue", ""], "dead-letter, business"),
                (["exception", "list", *store, "--state", "done"], r"open, resolved or all"),
                (["exception", "list", *store, "--state", ""], r"open, resolved or all"),
                (["exception", "list", *store, "--limit", "0"], "1 to 1000"),
                (["exception", "list", *store, "--after", "k-1"], "id of an exception"),
                (["exception", "list", *store, "x"], "unexpected argument"),
                (["exception", "show", *store, "--tenant", "t"], "ID is missing"),
                (["exception", "show", *store, "--tenant", "t", "x"], "not the id of an exception"),
                (["exception", "show", *store, "0197"], "--tenant is missing"),
                (["contract", "matrix", EXAMPLE, "--format", "pdf"], "text, markdown and json"),
                (["contract", "matrix", EXAMPLE, "--format", "text", "--json"], "--json is"),
                (["contract", "check"], "IBID_CONTRACTS")):
            with self.subTest(args=args):
                self.refused(*args, code=2, says=says)

    def test_a_missing_store_or_directory_names_both_ways_to_give_it(self):
        for args in (["init", "--contracts", EXAMPLE], ["migrate"], ["doctor"], ["command", "list"],
                     ["exception", "list"],
                     ["contract", "apply", EXAMPLE]):
            for more, env in (([], {}), ([], {"IBID_STORE": ""}),
                              (["--store", ""], {"IBID_STORE": "sqlite:x.db"})):
                answer = self.refused(*args, *more, code=2, env=env)
                self.assertIn("--store", answer.err)
                self.assertIn("--config", answer.err)
                self.assertIn("IBID_STORE", answer.err)
        answer = self.refused("init", "--store", "sqlite:x.db", code=2)
        self.assertIn("--contracts", answer.err)
        self.assertIn("IBID_CONTRACTS", answer.err)
        self.assertEqual([], os.listdir(self.dir))

    def test_the_environment_stands_in_and_an_option_wins_over_it(self):
        env = {"IBID_STORE": "sqlite:env.db", "IBID_CONTRACTS": EXAMPLE}
        self.ibid("init", env=env)
        self.ibid("init", "--store=sqlite:option.db", env=env)
        self.assertTrue(os.path.exists(self.path("env.db")))
        self.assertTrue(os.path.exists(self.path("option.db")))
        self.assertIn(" 0 problems", self.ibid("contract", "check", env=env).out)

    def test_every_command_with_a_store_takes_a_settings_file(self):
        commands = re.findall(r"(?m)^  (\S+(?: \S+)?)  +\S", self.ibid("help").out.split("exit codes")[0])
        self.assertGreater(len(commands), 35)
        for command in commands:
            text = self.ibid("help", *command.split()).out
            self.assertEqual("--store URL" in text or "--contracts DIR" in text, "--config FILE" in text, text)
        config = self.file("ibid.yaml", "store: sqlite:file.db\ncontracts: %s\nhttp: { listen: 127.0.0.1:0 }\n" % EXAMPLE)
        self.ibid("init", "--config", config)
        self.assertEqual("executed", self.ibid("submit", "--config", config, "--tenant", "acme", "--operation",
                                               "create-payment", "--key", "k-1", "--json", stdin=PAYMENT).json["decision"])
        self.assertEqual(1, len(self.ibid("command", "list", "--json", env={"IBID_CONFIG": config}).lines))
        self.assertIn(" 0 problems", self.ibid("contract", "check", "--config", config).out)
        # What is given nearer wins.
        self.ibid("migrate", "--config", config, "--store", "sqlite:option.db")
        self.ibid("migrate", "--config", config, env={"IBID_STORE": "sqlite:env.db"})
        for store in ("option", "env"):
            self.assertEqual([], self.ibid("command", "list", "--json", "--store", "sqlite:%s.db" % store).lines)

    def test_a_settings_file_that_is_wrong_is_told_with_its_line(self):
        wrong = self.file("wrong.yaml", "store: sqlite:file.db\nstroe: x\n")
        self.refused("command", "list", "--config", self.path("none.yaml"), says="none.yaml: No such file")
        self.refused("command", "list", "--config", wrong, says="wrong.yaml:2: there is no setting stroe")
        self.refused("migrate", "--config", self.file("http.yaml", "http: { threads: 2 }"), code=2, says="--store URL")
        self.refused("migrate", "--config", self.file("empty.yaml", ""), says="empty.yaml: it is empty")
        self.refused("serve", "--config", self.file("half.yaml", "store: sqlite:file.db\n"), says="no contracts: give --contracts")
        self.assertFalse(os.path.exists(self.path("file.db")))

    def test_after_two_dashes_everything_is_an_operand(self):
        self.file("--json", "[1]")
        self.assertEqual("[1]", self.ibid("canon", "--", "--json").out)

    def test_output_that_nobody_can_read_is_an_error(self):
        text = self.file("x.json", "[1]")
        for args in (["canon", text], ["help"], ["version"], ["contract", "matrix", EXAMPLE]):
            with self.subTest(args=args), open("/dev/full", "wb") as full:
                done = subprocess.run([BIN, *args], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT_S)
                self.assertEqual((1, b"ibid: the output could not be written: No space left on device\n"),
                                 (done.returncode, done.stderr))
            with self.subTest(args=args, closed=True):
                done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', BIN, *args],
                                      stderr=subprocess.PIPE, timeout=LIMIT_S)
                self.assertEqual(1, done.returncode)
                self.assertIn(b"ibid: the output could not be written", done.stderr)

    def test_a_reader_that_ended_early_is_no_error(self):
        text, wrong = self.file("x.json", "[1]"), self.path("wrong")
        os.mkdir(wrong)
        write(os.path.join(wrong, "a.yaml"), "operation: a\n")
        for code, args in ((0, ["canon", text]), (0, ["help"]), (0, ["help", "settings"]), (0, ["version", "--json"]),
                           (0, ["contract", "matrix", EXAMPLE]), (8, ["contract", "check", wrong])):
            with self.subTest(args=args):
                done = unread([BIN, *args])
                self.assertEqual(code, done.returncode)  # what the command has to say by its code, it says
                self.assertNotIn(b"written", done.stderr)

    def test_a_broken_locale_changes_nothing(self):
        plain = self.ibid("contract", "matrix", EXAMPLE).raw
        for env in ({"LC_ALL": "xx_YY.UTF-8"}, {"LANG": "tr_TR"}, {"LC_ALL": "C"}):
            self.assertEqual(plain, self.ibid("contract", "matrix", EXAMPLE, env=env).raw)

    def test_colours_only_on_a_terminal_and_without_no_color(self):
        self.assertNotIn(b"\x1b", self.ibid("help").raw)
        self.assertIn(b"\x1b[", self.on_terminal("help"))
        self.assertNotIn(b"\x1b", self.on_terminal("help", env={"NO_COLOR": "1"}))
        self.assertNotIn(b"\x1b", self.on_terminal("help", env={"TERM": "dumb"}))

    def on_terminal(self, *args, env=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        environment = clean_environment(**dict({"TERM": "xterm"}, **(env or {})))
        process = subprocess.Popen([BIN, *args], stdout=slave, stdin=slave, stderr=slave, env=environment)
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(master, 65536):
                shown += chunk
        os.close(master)
        self.assertEqual(0, process.wait(LIMIT_S))
        return shown


class Meaning(Case):
    """canon and fingerprint (A03)."""

    def test_canon_writes_the_canonical_bytes_and_nothing_else(self):
        for given, expected in ((' {"b": 1.10, "a" : [ ] }\n', b'{"a":[],"b":1.1}'),
                                ("[-0, 11e-1, 1E3]", b"[0,1.1,1000]"),
                                ("9007199254740993", b"9007199254740993"),
                                ('"\\u20ac\\u0000"', b'"\xe2\x82\xac\\u0000"'),
                                ("{}", b"{}"), ("null", b"null"), ('""', b'""')):
            self.assertEqual(expected, self.ibid("canon", stdin=given).raw)
            self.assertEqual(expected, self.ibid("canon", "-", stdin=given).raw)
            self.assertEqual(expected, self.ibid("canon", self.file("x.json", given)).raw)

    def test_bad_json_is_exit_1_with_file_line_and_column(self):
        for given in (b"", b" ", b"{", b'{"a":1,}', b'{"a":1 "b":2}', b'{"a":1,"a":2}', b"[1,]", b"01", b"+1",
                      b"1.", b".5", b"NaN", b"tru", b"'a'", b'"\x01"', b'"\\ud800"', b'"\xff"', b"\xef\xbb\xbf{}",
                      b"{} {}", b"// c\n1", b'"abc', b"\x00", b"1\x00", b"[" * 1000, b"1e9999999999", b"9" * 5000):
            with self.subTest(given=given[:20]):
                self.refused("canon", stdin=given, says=r"\Aibid: -: .* at line \d+, column \d+\n\Z")
        name = self.path("bad.json")
        write(name, '{\n  "a": tru\n}')
        self.refused("canon", name, says=r"\Aibid: %s: .* at line 2, column 8\n" % re.escape(name))

    def test_input_that_can_not_be_read_is_exit_1(self):
        self.refused("canon", self.dir, says="it is a directory: give a file")
        self.refused("canon", self.path("missing.json"), says="missing.json: .*No such file")
        self.refused("canon", "", says="No such file")
        secret = self.file("secret.json", "[1]")
        os.chmod(secret, 0o600)
        if os.getuid() == 0:
            self.refused("canon", secret, wrap=NOBODY, says="Permission denied")
        done = subprocess.run(["sh", "-c", 'exec "$0" canon <&-', BIN], capture_output=True, timeout=LIMIT_S)
        self.assertEqual((1, b""), (done.returncode, done.stdout))
        self.assertIn(b"standard input is closed", done.stderr)

    def test_input_without_end_stops_at_the_cap(self):
        self.refused("canon", "/dev/zero", says="larger than 16777216 bytes")

    def fingerprint(self, payload, *more, **options):
        return self.ibid("fingerprint", "--contracts", EXAMPLE, "--tenant", "acme", "--operation",
                         "create-payment", *more, stdin=payload, **options)

    def test_payloads_of_one_meaning_have_one_fingerprint(self):  # A03
        first = self.fingerprint(PAYMENT).out
        self.assertRegex(first, r"\A[0-9a-f]{64}\n\Z")
        other_text = '{"requestedAt":"now", "currency":"EUR","amount":1250e-2,"to":"B","from":"A"}'
        self.assertEqual(first, self.fingerprint(other_text).out)
        self.assertNotEqual(first, self.fingerprint(PAYMENT.replace("12.50", "12.51")).out)
        self.assertNotEqual(first, self.fingerprint(PAYMENT, "--actor", "somebody").out)
        self.assertEqual(first, self.fingerprint(PAYMENT, "--client", "other").out)

    def test_explain_prints_exactly_what_is_hashed(self):  # A03
        plain = self.fingerprint(PAYMENT, "--actor", "u7").out.strip()
        hashed = self.fingerprint(PAYMENT, "--actor", "u7", "--explain").raw
        self.assertEqual(plain, hashlib.sha256(hashed).hexdigest())
        self.assertEqual({"context": {"actor": "u7"}, "operation": "create-payment", "scheme": 1, "version": 1,
                          "tenant": "acme", "payload": json.loads(PAYMENT)}, json.loads(hashed))
        self.assertEqual({"fingerprint": plain, "scheme": 1, "version": 1, "operation": "create-payment"},
                         self.fingerprint(PAYMENT, "--actor", "u7", "--json").json)

    def test_a_fingerprint_needs_a_known_operation_and_a_tenant(self):
        base = ["fingerprint", "--contracts", EXAMPLE]
        self.refused(*base, "--tenant", "t", "--operation", "nothing", stdin=PAYMENT, says="nothing")
        self.refused(*base, "--tenant", "", "--operation", "create-payment", stdin=PAYMENT, says="tenant")
        self.refused(*base, "--operation", "create-payment", stdin=PAYMENT, code=2, says="--tenant")
        self.refused(*base, "--tenant", "t", "--operation", "create-payment", stdin="[", says="-: .*line 1")


class Contracts(Case):
    """contract check and matrix (A01, A05)."""

    def setUp(self):
        super().setUp()
        self.contracts = self.path("contracts")
        shutil.copytree(EXAMPLE, self.contracts)
        self.yaml = os.path.join(self.contracts, "create-payment.yaml")

    def split_script(self):
        """Each store has its own."""
        script = self.path("contracts", "create-payment.sql")
        for kind in ("sqlite", "postgres"):
            shutil.copy(script, self.path("contracts", "create-payment.%s.sql" % kind))
        os.remove(script)
        write(self.yaml, read(self.yaml).replace("create-payment.sql", "create-payment.$store.sql"))

    def test_right_contracts_are_counted(self):
        self.assertEqual("2 contracts, 0 problems\n", self.ibid("contract", "check", self.contracts).out)
        self.assertEqual("", self.ibid("contract", "check", self.contracts, "--json").out)

    def test_an_open_question_is_asked_with_file_and_line(self):  # A01
        write(self.yaml, re.sub(r"\n  retain: 400d.*", "", read(self.yaml), count=1))
        answer = self.ibid("contract", "check", self.contracts, code=8)
        self.assertRegex(answer.out, r"(?m)^%s:\d+: key\.retain is missing\n  \S.*\?" % re.escape(self.yaml))
        problem = self.ibid("contract", "check", self.contracts, "--json", code=8).lines[0]
        self.assertEqual((self.yaml, "key.retain is missing"), (problem["file"], problem["text"]))
        self.assertIn("?", problem["question"])
        self.assertGreater(problem["line"], 0)

    def test_problems_are_counted_by_one_spelling(self):
        self.assertEqual("2 contracts, 0 problems\n", self.ibid("contract", "check", self.contracts).out)
        good = read(self.yaml)
        for pattern, count in ((r"\nowner:.*", "1 problem"), (r"\n(?:owner|fact):.*", "2 problems")):
            write(self.yaml, re.sub(pattern, "", good))
            self.assertEqual("ibid: %s in %s\n" % (count, self.contracts),
                             self.ibid("contract", "check", self.contracts, code=8).err)
        write(self.yaml, good)
        self.file("contracts/create-payment.sql", "select :nothing;\n")
        self.assertEqual("ibid: 1 problem in %s\n" % self.contracts,
                         self.ibid("contract", "check", self.contracts, code=8).err)

    def test_scripts_are_checked_for_both_stores(self):
        self.split_script()
        for store, line, says in (("sqlite", "commit;", "commit"), ("postgres", "select :nobody;", ":nobody")):
            script = os.path.join(self.contracts, "create-payment.%s.sql" % store)
            good = read(script)
            write(script, good + line + "\n")
            answer = self.ibid("contract", "check", self.contracts, code=8)
            self.assertRegex(answer.out, r"\A%s:\d+: .*%s" % (re.escape(script), says))
            write(script, good)

    def test_every_problem_of_every_file_is_shown_at_once(self):  # A01
        good = read(self.yaml)
        write(self.yaml, good.replace("owner: payments", "ownr: payments"))
        self.file("contracts/second.yaml", "command: [\n")
        self.file("contracts/third.yaml", good.replace("create-payment\n", "third\n", 1).replace(
            "route: POST /payments", "route: ''").replace("create-payment.sql", "nothing.sql"))
        lines = self.ibid("contract", "check", self.contracts, "--json", code=8).lines
        self.assertEqual({"create-payment.yaml", "second.yaml", "third.yaml"},
                         {os.path.basename(line["file"]) for line in lines})

    def test_malformed_contracts_are_refused_everywhere(self):  # A01
        good = read(self.yaml)
        for bad in ("", "- a\n", "\x00", "command: create-payment\n", good + "\n\tx: 1\n", good + "surprise: 1\n",
                    good.replace("version: 1", "version: one"), good.replace("strategy: key", "strategy: hope"),
                    good.replace("type: decimal", "type: float"), good + "command: create-payment\n",
                    good.replace("/amount:", "amount:"), "a: &a [*a]\n", "\xff" * 10, "!!python/object:x {}\n"):
            with self.subTest(bad=bad[-40:]):
                with open(self.yaml, "wb") as handle:
                    handle.write(bad.encode("latin-1"))
                answer = self.ibid("contract", "check", self.contracts, code=8)
                self.assertIn("create-payment.yaml", answer.out)
                self.refused("init", "--store", "sqlite:pay.db", "--contracts", self.contracts,
                             says="create-payment.yaml")
                self.refused("fingerprint", "--contracts", self.contracts, "--tenant", "t", "--operation",
                             "create-payment", stdin=PAYMENT, says="create-payment.yaml")
                self.assertFalse(os.path.exists(self.path("pay.db")))

    def test_a_directory_that_is_none_is_exit_1(self):
        os.mkdir(self.path("empty"))
        for where, says in (("missing", "does not exist"), ("contracts/create-payment.yaml", "is a file"),
                            ("empty", "no contract")):
            self.refused("contract", "check", self.path(where), says=says)
            self.refused("contract", "matrix", self.path(where), says=says)
            self.refused("init", "--store", "sqlite:pay.db", "--contracts", self.path(where), says=says)
        self.refused("contract", "check", "", code=2, says="IBID_CONTRACTS")

    def test_the_matrix_has_three_forms(self):  # A05
        text = self.ibid("contract", "matrix", self.contracts).out
        markdown = self.ibid("contract", "matrix", self.contracts, "--format", "markdown").out
        self.assertIn("create-payment", text)
        self.assertRegex(markdown, r"(?m)^\|.*create-payment.*\|$")
        self.assertIn("```mermaid", markdown)
        tables = self.ibid("contract", "matrix", self.contracts, "--format=json")
        self.assertIsInstance(tables.json, dict)
        self.assertEqual(tables.out, self.ibid("contract", "matrix", self.contracts, "--json").out)
        self.assertTrue(text.endswith("\n") and markdown.endswith("\n") and tables.out.endswith("\n"))

    def test_the_review_without_a_store_leaves_to_a_person_what_it_can_not_see(self):  # A08
        report = self.ibid("contract", "review", self.contracts, "--json").json
        self.assertEqual((34, 15, 18, 31), tuple(len(report[name]) for name in ("erp", "oms", "api", "db")))
        self.assertEqual(0, report["fail"])
        self.assertIn("ask", {row["answer"] for row in report["db"]})
        markdown = self.ibid("contract", "review", self.contracts, "--format", "markdown").out
        self.assertRegex(markdown, r"(?m)^\| create-payment \| ERP-1 \| pass \|")
        self.refused("contract", "review", self.contracts, "--format", "yaml", code=2, says="--format")
        self.refused("contract", "review", self.path("none"), says="does not exist")

    def test_an_open_question_fails_the_review_with_the_question(self):  # A08
        for pattern, question, why in (
                (r"\nowner:.*", "Which team is the source of truth", "owner is missing"),
                (r"after_expiry: refuse", "free of contradictions", "no `unique` protects the fact"),
                (r"audit: .*", "free of contradictions", "evidence must outlive the key")):
            good = read(self.yaml)
            new = {"after": "after_expiry: run-again", "audit": "audit: { retain: 1d }"}.get(pattern[:5], "")
            write(self.yaml, re.sub(pattern, new, good))
            answer = self.ibid("contract", "review", self.contracts, "--json", code=8).json
            row = answer["ibid"][0]
            self.assertEqual(("create-payment.yaml", "fail"), (row["operation"], row["answer"]))
            self.assertIn(question, row["question"])
            self.assertIn(why, row["why"])
            write(self.yaml, good)

    def test_a_retention_shorter_than_the_replay_window_fails_the_review(self):  # A08
        write(self.yaml, read(self.yaml).replace("retain: 400d ", "retain: 400d\n  replay_window: 401d "))
        report = self.ibid("contract", "review", self.contracts, "--json", code=8).json
        failed = {row["id"] for name in ("erp", "oms", "api", "db", "ibid") for row in report[name]
                  if row["answer"] == "fail"}
        self.assertEqual({"API-11", "DB-20"}, failed)


# ---- With a store ------------------------------------------------------------------------------------


class StoreCases:
    """Everything below runs on each store; `Sqlite` and `Postgres` say how one is made and looked at."""

    def setUp(self):
        super().setUp()
        self.contracts = self.path("contracts")
        shutil.copytree(EXAMPLE, self.contracts)
        good = read(os.path.join(EXAMPLE, "create-payment.yaml"))
        for name, (pattern, new) in VARIANTS.items():
            text = good.replace("command: create-payment", "command: " + name)
            text = re.sub(r"\nroute:.*", "", text)
            if "callback" in new or "break" in new:
                text = by_program(text)
            self.assertRegex(text, pattern)
            text = re.sub(pattern, lambda _, new=new: new, text)
            self.file("contracts/%s.yaml" % name, text)
        for name, text in FILES.items():
            self.file("contracts/" + name, text)
        for kind in ("sqlite", "postgres"):
            with open(self.path("contracts", "schema.%s.sql" % kind), "a", encoding="utf-8") as handle:
                handle.write("create unique index payment_note on payment (tenant, note);\n")
        self.make_store()

    def init(self, **options):
        return self.ibid("init", "--store", self.store, "--contracts", self.contracts, **options)

    def command(self, operation="create-payment", key="k-1", tenant="acme", store=None):
        keys = [] if key is None else ["--key=" + key]
        return ["submit", "--store", store or self.store, "--contracts", self.contracts, "--tenant", tenant,
                "--operation", operation, *keys]

    def submit(self, payload=PAYMENT, *more, operation="create-payment", key="k-1", tenant="acme", **options):
        return self.ibid(*self.command(operation, key, tenant), *more, stdin=payload, **options)

    def show(self, *more, **options):
        return self.ibid("command", "show", "--store", self.store, "--tenant", "acme", *more, **options)

    def list(self, *more, **options):
        return self.ibid("command", "list", "--store", self.store, *more, **options)

    def count(self, table):
        return int(self.query("select count(*) from %s" % table)[0][0])

    def assert_one_payment(self):
        for table, rows in (("payment", 1), ("ledger_entry", 2), ("ibid.command", 1), ("ibid.event", 1),
                            ("ibid.audit", 1)):
            self.assertEqual(rows, self.count(table), table)

    # ---- init, migrate, apply

    def test_init_says_what_it_did_and_may_be_run_again(self):
        first = self.init()
        self.assertRegex(first.out, r"(?m)^store +\S+: created, schema \d+$")
        self.assertRegex(first.out, r"(?m)^tables +schema\.%s\.sql applied$" % self.kind)
        self.assertRegex(first.out, r"(?m)^contracts +%d kept$" % (2 + len(VARIANTS)))
        self.submit()
        again = self.init()
        self.assertRegex(again.out, r"(?m)^store .*nothing to migrate$")
        self.assertRegex(again.out, r"(?m)^tables .*already applied$")
        self.assertEqual("", first.err + again.err)
        self.assert_one_payment()
        report = self.ibid("init", "--store", self.store, "--contracts", self.contracts, "--json").json
        self.assertEqual(report["schemaFrom"], report["schemaTo"])
        self.assertEqual(("already applied", 2 + len(VARIANTS)), (report["schemaFile"], report["contracts"]))

    def test_init_warns_when_the_schema_file_changed_and_leaves_the_tables_alone(self):
        self.init()
        self.submit()
        with open(self.path("contracts", "schema.%s.sql" % self.kind), "a", encoding="utf-8") as handle:
            handle.write("create table later (id text);\n")
        answer = self.init()
        self.assertRegex(answer.out, r"(?m)^tables .*CHANGED")
        self.assertRegex(answer.err, r"\Aibid: warning: .*yours to migrate")
        self.assert_one_payment()
        self.assertFalse(self.table_exists("later"))

    def test_init_without_a_schema_file_needs_tables_that_came_another_way(self):
        path = self.path("contracts", "schema.%s.sql" % self.kind)
        schema = read(path)
        os.remove(path)
        self.refused("init", "--store", self.store, "--contracts", self.contracts, says=r"\.sql:\d+: .*payment")
        write(path, schema)
        self.init()
        os.remove(path)
        self.assertRegex(self.init().out, r"(?m)^tables +no schema")

    def test_a_schema_file_that_fails_leaves_nothing_behind(self):
        with open(self.path("contracts", "schema.%s.sql" % self.kind), "a", encoding="utf-8") as handle:
            handle.write("create table later (id text);\ncreate tabel x;\n")
        self.refused("init", "--store", self.store, "--contracts", self.contracts,
                     says=r"schema\.%s\.sql" % self.kind)
        self.assertFalse(self.table_exists("later"))
        self.assertFalse(self.table_exists("payment"))

    def test_init_refuses_a_column_that_would_round_money(self):
        path = self.path("contracts", "schema.%s.sql" % self.kind)
        inexact = "real" if self.kind == "sqlite" else "double precision"
        write(path, re.sub(r"amount( +)(text|numeric)", r"amount\1" + inexact, read(path), count=1))
        self.refused("init", "--store", self.store, "--contracts", self.contracts, says="amount")

    def test_migrate_needs_no_contracts_and_may_be_run_again(self):
        first = self.ibid("migrate", "--store", self.store)
        self.assertRegex(first.out, r"\Astore +\S+: created, schema \d+\n\Z")
        self.assertRegex(self.ibid("migrate", "--store", self.store).out, "nothing to migrate")
        report = self.ibid("migrate", "--store", self.store, "--json").json
        self.assertEqual(report["schemaFrom"], report["schemaTo"])

    def test_processes_that_migrate_at_once_all_succeed(self):
        processes = [subprocess.Popen([BIN, "migrate", "--store", self.store], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=clean_environment()) for _ in range(4)]
        ends = [(*process.communicate(timeout=LIMIT_S), process.returncode) for process in processes]
        self.assertEqual([0] * 4, [end[2] for end in ends], ends)
        self.assertEqual(1, sum(b"created" in end[0] for end in ends), ends)
        self.init()
        self.submit()
        self.assert_one_payment()

    def test_processes_that_init_at_once_apply_the_tables_once(self):
        line = [BIN, "init", "--store", self.store, "--contracts", self.contracts]
        processes = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=clean_environment()) for _ in range(4)]
        ends = [(*process.communicate(timeout=LIMIT_S), process.returncode) for process in processes]
        self.assertEqual([0] * 4, [end[2] for end in ends], ends)
        self.assertEqual(1, sum(b"sql applied" in end[0] for end in ends), ends)

    def test_a_changed_contract_needs_a_new_version(self):
        self.init()
        self.submit()
        path = self.path("contracts", "create-payment.yaml")
        write(path, read(path).replace("retain: 400d", "retain: 500d"))
        for args in (["init", "--store", self.store, "--contracts", self.contracts],
                     ["contract", "apply", self.contracts, "--store", self.store]):
            self.refused(*args, says="set `version: 2`")
        self.refused(*self.command(), stdin=PAYMENT, says="version: 2")
        doctor = self.ibid("doctor", "--store", self.store, "--contracts", self.contracts, code=8).out
        self.assertIn("create-payment version 1 was changed", doctor)
        write(path, read(path).replace("version: 1", "version: 2"))
        kept = self.ibid("contract", "apply", self.contracts, "--store", self.store).out
        self.assertIn("create-payment version 2 kept\n", kept)
        self.assertTrue(self.submit().out.startswith("replayed   201"))
        lines = self.ibid("contract", "apply", self.contracts, "--store", self.store, "--json").lines
        self.assertIn({"command": "create-payment", "version": 2}, lines)

    # ---- review

    def review(self, code=0):
        """The answers of the review, by operation and question."""
        found = self.ibid("contract", "review", self.contracts, "--store", self.store, "--json", code=code).json
        rows = [row for value in found.values() if isinstance(value, list) for row in value]
        return {(row["operation"], row["id"]): (row["answer"], row["question"], row["why"]) for row in rows}

    def test_the_review_looks_for_declared_indexes_in_the_live_schema(self):  # A08
        self.init()
        business = [("link-payment", name) for name in ("ERP-7", "OMS-8", "API-8", "DB-14")]
        for name in business:
            answer, _, why = self.review()[name]
            self.assertEqual(("pass", "payment_note: unique on payment (tenant, note)"), (answer, why))
        self.change("drop index payment_note")
        for name in business:
            answer, question, why = self.review(code=8)[name]
            self.assertEqual("fail", answer)
            self.assertRegex(question, r"(?i)(unique|constraint).*\?$")
            self.assertIn("has no index or constraint of that name: create it", why)
        self.change("create index payment_note on payment (tenant, note)")
        for name in business:
            self.assertIn("is not unique", self.review(code=8)[name][2])
        text = self.ibid("contract", "review", self.contracts, "--store", self.store, code=8).out
        self.assertTrue(text.startswith("Fails the review\n"), text[:200])
        self.assertEqual(text, self.ibid("contract", "review", self.contracts, env={"IBID_STORE": self.store},
                                         code=8).out)

    def test_the_review_compares_the_directory_with_what_the_store_keeps(self):  # A08
        self.init()
        self.assertEqual("pass", self.review()["create-payment", "IBID-2"][0])
        path = self.path("contracts", "create-payment.yaml")
        good = read(path)
        write(path, good.replace("retain: 400d", "retain: 500d"))
        self.assertEqual("fail", self.review(code=8)["create-payment", "IBID-2"][0])
        write(path, good.replace("version: 1", "version: 2"))
        self.assertEqual("ask", self.review()["create-payment", "IBID-2"][0])

    def test_the_review_misses_a_script_for_its_store_only(self):  # A08
        script, own = self.path("contracts", "create-payment.sql"), self.path("contracts", "create-payment.%s.sql" % self.kind)
        other = self.path("contracts", "create-payment.%s.sql" % ("postgres" if self.kind == "sqlite" else "sqlite"))
        yaml = self.path("contracts", "create-payment.yaml")
        write(yaml, read(yaml).replace("create-payment.sql", "create-payment.$store.sql"))
        shutil.copy(script, own)
        self.init()
        self.assertEqual("pass", self.review()["create-payment", "IBID-3"][0])
        os.rename(own, other)
        answer, _, why = self.review(code=8)["create-payment", "IBID-3"]
        self.assertEqual(("fail", True), (answer, "create-payment.%s.sql is missing" % self.kind in why))

    # ---- submit

    def test_a_payment_is_paid_once_replayed_after_and_in_conflict_with_another(self):  # L04 B02 B03 B04 J04
        self.init()
        first = self.submit()
        paid = re.fullmatch(r'executed   201  (\{"id":"(%s)"\})\n' % UUID.pattern, first.out)
        self.assertTrue(paid, first)
        again = self.submit()
        self.assertRegex(again.out, r"\Areplayed   201  %s {12}first executed %s ago\n\Z"
                         % (re.escape(paid.group(1)), AGE))
        conflict = self.submit(PAYMENT.replace("12.50", "12.51"), code=4)
        self.assertRegex(conflict.out, r"\Aconflict   409  key k-1 was used for another payload; first seen "
                         r"%s ago, command %s\n\Z" % (AGE, paid.group(2)))
        self.assert_one_payment()
        self.assertEqual([("acme", paid.group(2), "A", "B", "EUR")],
                         self.query("select tenant, id, payer, payee, currency from payment"))
        self.assertEqual([("CREDIT", "B"), ("DEBIT", "A")],
                         self.query("select direction, account from ledger_entry order by direction"))
        self.assertEqual(1, len(set(self.query("select amount from ledger_entry union all select amount "
                                               "from payment"))))
        self.assertEqual([("payment", paid.group(2), "PaymentCreated", "1")],
                         self.query("select aggregatetype, aggregateid, type, version from ibid.event"))
        self.assertEqual("12.5", self.query("select amount from payment")[0][0].rstrip("0"))
        payload = json.loads(self.query("select payload from ibid.event")[0][0])
        self.assertEqual({"from": "A", "to": "B", "amount": 12.5, "currency": "EUR"}, payload)
        self.assertEqual([("executed",)], self.query("select outcome from ibid.audit"))

    def test_a_replay_counts_from_the_execution_and_a_conflict_from_the_first_request(self):  # B03 B04
        self.init()
        self.submit()
        for name, hours in (("created", 30), ("finished", 3)):
            self.change("update ibid.command set %s = %s" % (
                self.time_column(name), self.time_value(time.time() - hours * 3600 - 60)))
        self.assertRegex(self.submit().out, r"first executed 3 h \d+ min ago\n\Z")
        self.assertEqual(3, self.submit(PAYMENT, "--json").json["ageMs"] // 3600000)
        self.assertIn("first seen 1 d 6 h ago", self.submit(PAYMENT.replace("EUR", "USD"), code=4).out)

    def test_json_gives_one_object(self):  # B03 B04
        self.init()
        first = self.submit(PAYMENT, "--json").json
        self.assertEqual({"decision", "status", "replayed", "body", "commandId", "resourceType",
                          "resourceId"}, set(first))
        self.assertEqual(("executed", 201, False), (first["decision"], first["status"], first["replayed"]))
        self.assertEqual({"id": first["commandId"]}, first["body"])
        again = self.submit(PAYMENT, "--json").json
        self.assertGreaterEqual(again.pop("ageMs"), 0)
        self.assertEqual(dict(first, replayed=True), again)
        conflict = self.submit(PAYMENT.replace("EUR", "USD"), "--json", code=4).json
        self.assertEqual(("conflict", 409, False, first["commandId"], "KEY_REUSED"),
                         tuple(conflict[name] for name in
                               ("decision", "status", "replayed", "commandId", "reason")))

    def test_rejections_are_stable_and_replayed_byte_for_byte(self):  # L04 B03
        self.init()
        for key, payload, reason in (
                ("same", PAYMENT.replace('"B"', '"A"'), "SAME_ACCOUNT: from and to must differ"),
                ("zero", PAYMENT.replace("12.50", "0"), "INVALID_PAYLOAD: /amount"),
                ("minus", PAYMENT.replace("12.50", "-1"), "INVALID_PAYLOAD: /amount"),
                ("digits", PAYMENT.replace("12.50", "1.234"), "INVALID_PAYLOAD: /amount"),
                ("text", PAYMENT.replace("12.50", '"abc"'), "INVALID_PAYLOAD: /amount"),
                ("unknown", PAYMENT.replace("EUR", "XXX"), "INVALID_PAYLOAD: /currency"),
                ("missing", '{"from":"A"}', "INVALID_PAYLOAD: /"),
                ("list", "[]", "INVALID_PAYLOAD: ")):
            with self.subTest(key=key):
                first = self.submit(payload, key=key, code=3)
                self.assertTrue(first.out.startswith("rejected   422  " + reason), first)
                again = self.submit(payload, key=key, code=3)
                self.assertRegex(again.out, r"\A%s {12}first rejected %s ago\n\Z" %
                                 (re.escape(first.out.rstrip("\n")), AGE))
                objects = [self.submit(payload, "--json", key=key, code=3) for _ in range(2)]
                bodies = [re.search(r'"body":(.*),"commandId"', answer.out).group(1) for answer in objects]
                self.assertEqual(bodies[0], bodies[1])
                self.assertEqual(("rejected", True), (objects[0].json["decision"], objects[0].json["replayed"]))
        self.submit(PAYMENT, key="same", code=4)
        for table in ("payment", "ledger_entry", "ibid.event", "ibid.audit"):
            self.assertEqual(0, self.count(table), table)

    def test_a_correctable_payload_is_exit_3_and_says_that_the_key_is_free(self):  # B03 B04
        self.init()
        invalid = PAYMENT.replace("12.50", "0")
        for _ in range(2):  # looked at again, not replayed
            refused = self.submit(invalid, operation="soft-payment", code=3)
            self.assertEqual("rejected   422  INVALID_PAYLOAD: /amount must be above 0; correct it and send it with the "
                             "same key\n", refused.out)
        told = self.submit(invalid, "--json", operation="soft-payment", code=3).json
        self.assertEqual(("rejected", 422, True, False), tuple(told[name] for name in ("decision", "status", "correctable", "replayed")))
        self.assertNotIn("retryAfterMs", told)
        self.assertEqual("/problems/invalid-payload", told["body"]["type"])
        waiting = self.show("--operation", "soft-payment", "--key", "k-1")
        self.assertRegex(waiting.out, r"(?m)^awaits +the corrected payload: the key is bound to none yet$")
        self.assertRegex(waiting.out, r"(?m)^reason +INVALID_PAYLOAD: /amount must be above 0$")
        executed = self.submit(PAYMENT, "--json", operation="soft-payment").json
        self.assertEqual(("executed", told["commandId"]), (executed["decision"], executed["commandId"]))
        self.assertNotIn("correctable", executed)
        self.submit(invalid, operation="soft-payment", code=4)
        shown = self.show("--operation", "soft-payment", "--key", "k-1", "--json").json
        self.assertEqual(("COMPLETED", 1, 2), (shown["state"], len(shown["conflicts"]), shown["conflicts"][0]["count"]))
        self.assertNotIn("awaits", shown)
        self.submit(invalid, "--json", key="k-2", code=3)
        self.submit(PAYMENT, key="k-2", code=4)  # where the contract says final, the key is bound
        self.assert_effects(1)

    def assert_effects(self, count):
        self.assertEqual([count] * 3, [self.count(table) for table in ("payment", "ibid.event", "ibid.audit")])

    def test_amounts_stay_exact(self):  # A03
        self.init()
        amount = "12345678901234567.89"
        self.submit(PAYMENT.replace("12.50", amount))
        self.assertEqual([(amount,)], self.query("select amount from payment"))
        self.submit(PAYMENT.replace("12.50", "12345678901234567.88"), code=4)
        self.assertIn('"amount":' + amount, self.show("--operation", "create-payment", "--key", "k-1",
                                                      "--json").out.replace(" ", ""))

    def test_the_same_business_fact_under_a_new_key_is_linked(self):  # B09
        self.init()
        payload = PAYMENT.replace("}", ',"note":"R-1"}')
        first = self.submit(payload, "--json", operation="link-payment").json
        second = self.submit(payload, operation="link-payment", key="k-2")
        self.assertRegex(second.out, r"\Alinked     200  ")
        third = self.submit(payload, "--json", operation="link-payment", key="k-2").json
        self.assertEqual(("linked", True, first["resourceId"]),
                         (third["decision"], third["replayed"], third["resourceId"]))
        self.assertRegex(self.submit(payload, operation="link-payment", key="k-2").out,
                         r"\Alinked     200  .* first linked %s ago\n" % AGE)
        self.assertEqual(1, self.count("payment"))

    def test_a_failed_handler_is_exit_7_and_may_be_sent_again_with_the_same_key(self):  # B07
        self.init()
        first = self.submit(operation="break-payment", code=7)
        self.assertRegex(first.out, r"\Afailed     500  HANDLER_FAILED: \S")
        again = self.submit(PAYMENT, "--json", operation="break-payment", code=7).json
        self.assertEqual(("failed", False), (again["decision"], again["replayed"]))
        self.assertGreater(again["retryAfterMs"], 0)
        self.assertEqual([("FAILED", "2")], self.query("select state, attempts from ibid.command"))
        write(self.path("contracts", "break.sql"), "select 201 as status;\n")
        self.assertRegex(self.submit(operation="break-payment").out, r"\Aexecuted   201  \n")

    def test_one_in_progress_is_exit_5_and_an_unknown_one_exit_6(self):  # B01
        self.init()
        self.submit()
        for state, code in (("IN_PROGRESS", 5), ("UNKNOWN", 6)):
            self.change("update ibid.command set state = '%s', audit_id = null" % state)
            answer = self.submit(code=code)
            self.assertRegex(answer.out, r"\A%s +\d{3}  \S" % state.lower())
            self.assertEqual(state.lower(), self.submit(PAYMENT, "--json", code=code).json["decision"])
        self.assertEqual(1, self.count("payment"))

    def stage(self, operation, key, until="past"):
        """A command whose worker went silent after it had paid: as ibid_stage leaves it."""
        identity = self.submit(PAYMENT, "--json", key=key).json["commandId"]
        said = self.ibid("fingerprint", "--contracts", self.contracts, "--tenant", "acme", "--operation", operation,
                         stdin=PAYMENT).out
        mark = re.search(r"[0-9a-f]{64}", said).group()
        mark, column, ends = (
            ("x'%s'" % mark, "lease_until_us", {"past": "1", "future": "4102444800000000", None: "null"})
            if self.store.startswith("sqlite:") else
            ("'\\x%s'" % mark, "lease_until", {"past": "'epoch'", "future": "'2100-01-01Z'", None: "null"}))
        self.change("update ibid.command set operation = '%s', state = 'IN_PROGRESS', audit_id = null, "
                    "fingerprint = %s, lease_token = 4294967296, %s = %s where key = '%s'" %
                    (operation, mark, column, ends[until], key))
        return identity

    def recover(self, *more, **options):
        return self.ibid("command", "recover", "--store", self.store, "--contracts", self.contracts, *more,
                         **options)

    def test_recover_tells_what_is_stale_and_a_person_decides(self):  # B06 B11
        self.init()
        self.assertIn("nothing to recover", self.recover().err)
        stale = self.stage("stage-payment", "k-1")
        self.stage("stage-payment", "k-2", until="future")
        self.stage("stage-payment", "k-3", until=None)
        dry = self.recover("--dry-run", "--json").lines
        self.assertEqual([(stale, "acme", "stage-payment", "stale")],
                         [tuple(line[name] for name in ("commandId", "tenant", "operation", "decision"))
                          for line in dry])
        self.assertIn("recovery", self.show(stale, "--json").json["awaits"])
        for key, awaits in (("k-2", "its worker, until 2100"), ("k-3", "no end")):
            record = self.show("--operation", "stage-payment", "--key", key, "--json").json
            self.assertEqual("IN_PROGRESS", record["state"])
            self.assertIn(awaits, record["awaits"])
            self.assertEqual(4294967296, record["leaseToken"])
        self.assertEqual([], self.recover("--tenant", "other", "--json").lines)
        self.assertEqual([], self.recover("--operation", "look-payment", "--json").lines)
        self.assertRegex(self.recover(code=6).out, r"\Aunknown    %s  acme stage-payment  \S" % stale)
        self.assertIn("nothing to recover", self.recover().err)
        self.assertIn("a person", self.show(stale).out)
        again = self.submit(PAYMENT, "--json", operation="stage-payment", code=6).json
        self.assertEqual(("unknown", stale), (again["decision"], again["commandId"]))
        again = self.submit(PAYMENT, "--json", operation="stage-payment", key="k-2", code=5).json
        self.assertEqual("in_progress", again["decision"])
        self.refused(*self.command("stage-payment", "k-9"), stdin=PAYMENT, says="ibid_stage")
        self.refused("command", "recover", "--store", self.store, "--contracts", self.contracts, "--limit", "0",
                     code=2, says="--limit")

    def test_recover_completes_what_the_script_finds(self):  # B06
        self.init()
        # Not create-payment's own: its audit entry exists already, which a second one may not replace.
        identity = self.stage("look-payment", "k-1")
        fresh = identity[:-4] + "ffff"
        self.change("update ibid.command set id = '%s'" % fresh)
        self.change("delete from ledger_entry")
        self.change("update payment set id = '%s'" % fresh)
        self.assertEqual([(fresh, "executed", 201)],
                         [(line["commandId"], line["decision"], line["status"])
                          for line in self.recover("--json").lines])
        record = self.show(fresh, "--json").json
        self.assertEqual(("COMPLETED", fresh, "executed", None),
                         (record["state"], record["resourceId"], record["audit"]["outcome"], record.get("awaits")))
        self.assertEqual("executed", self.submit(PAYMENT, "--json", operation="look-payment").json["decision"])

    def test_recover_looks_again_at_what_is_unknown(self):  # B06 E04
        self.init()
        identity = self.stage("look-payment", "k-1")
        fresh = identity[:-4] + "ffff"
        self.change("update ibid.command set id = '%s'" % fresh)
        self.change("delete from ledger_entry")
        self.assertEqual("unknown", self.recover("--json", code=6).lines[0]["decision"])
        human = self.stage("stage-payment", "k-2")
        self.recover(code=6)
        self.assertIn("nothing to recover", self.recover().err)
        left = self.recover("--unknown", "--json", code=6).lines
        self.assertEqual([(fresh, "left")], [(line["commandId"], line["decision"]) for line in left])
        self.assertIn("still unknown", left[0]["text"])
        self.assertRegex(self.recover("--unknown", "--dry-run").out, r"\Aunknown    %s  acme look-payment  \S" % fresh)
        self.change("update payment set id = '%s' where id = '%s'" % (fresh, identity))
        self.assertEqual([], self.recover("--unknown", "--operation", "stage-payment", "--json").lines)
        self.assertRegex(self.recover("--unknown").out, r"\Aexecuted   %s  acme look-payment" % fresh)
        self.assertIn("nothing to recover", self.recover("--unknown").err)
        self.assertEqual("COMPLETED", self.show(fresh, "--json").json["state"])
        self.assertEqual("UNKNOWN", self.show(human, "--json").json["state"])
        items = {item["subjectId"]: item for item in self.ibid(
            "exception", "list", "--store", self.store, "--state", "all", "--json").lines}
        self.assertEqual(("RESOLVED", "confirmed-executed", "recovery"),
                         tuple(items[fresh][name] for name in ("state", "resolution", "resolvedBy")))
        self.assertEqual("OPEN", items[human]["state"])

    def test_a_derived_key_needs_no_key_and_refuses_another_one(self):  # A04
        self.init()
        payload = PAYMENT
        self.assertRegex(self.submit(payload, operation="derive-payment", key=None).out, "executed")
        self.assertRegex(self.submit(payload, operation="derive-payment", key=None).out, "replayed")
        other = self.submit(payload.replace("12.50", "1"), operation="derive-payment", key=None, code=4)
        self.assertRegex(other.out, r"\Aconflict   409  the key was used for another payload")
        self.refused(*self.command("derive-payment", "other"), stdin=payload, says="key")
        self.assertEqual(1, self.count("payment"))

    def test_a_command_of_a_callback_that_is_done_is_replayed(self):  # B03
        self.init()
        first = self.submit(PAYMENT, "--json").json
        path = self.path("contracts", "create-payment.yaml")
        write(path, re.sub("handler:.*", "handler: callback", by_program(read(path)).replace("version: 1", "version: 2")))
        self.assertRegex(self.submit().out, r"\Areplayed   201  .*first executed \S+ \S+ ago\n\Z")
        again = self.submit(PAYMENT, "--json").json
        self.assertEqual((True, "executed", first["body"], first["commandId"]),
                         tuple(again[name] for name in ("replayed", "decision", "body", "commandId")))
        self.submit(PAYMENT.replace("12.50", "1"), code=4)
        refused = self.refused(*self.command(key="k-2"), stdin=PAYMENT, says="callback")
        self.assertIn("a command that is done is replayed, and this one is not done", refused.err)
        self.assert_one_payment()

    def test_bad_keys_names_and_payloads_are_told_and_lose_nothing(self):  # A04
        self.init()
        self.refused(*self.command(key=None), stdin=PAYMENT, code=2, says="--key is missing")
        for key in ("", " ", " k", "k ", "a\nb", "a\x07b", "\x7f", "k" * 256, "ä" * 128, b"\xff\xfe"):
            with self.subTest(key=key):
                key = os.fsdecode(key)
                self.refused(*self.command(key=key), stdin=PAYMENT, says="key")
        for option in ("tenant", "client", "actor"):
            for bad in ("x" * 129, " x", "a\x1bb"):
                line = [part for part in self.command() if option != "tenant" or part not in ("--tenant", "acme")]
                self.refused(*line, "--%s=%s" % (option, bad), stdin=PAYMENT, says=option)
        self.refused(*self.command(), "--correlation-id", "a\x01", stdin=PAYMENT, says="correlation")
        for bad in ("x", TRACE.upper(), TRACE[:-1], TRACE + "0", TRACE.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32)):
            self.refused(*self.command(), "--traceparent", bad, stdin=PAYMENT, says="traceparent is not one of W3C")
        self.refused(*self.command(), "--tracestate", "a=1", stdin=PAYMENT, says="tracestate without a traceparent")
        for bad in ("x" * 513, "a=\n", "ä=1"):
            self.refused(*self.command(), "--traceparent", TRACE, "--tracestate", bad, stdin=PAYMENT, says="tracestate is longer")
        self.refused(*self.command("nothing"), stdin=PAYMENT, says='no contract for operation "nothing"')
        self.refused(*self.command("callback-payment"), stdin=PAYMENT, says="callback")
        for payload in ("", "{", '{"a":1,"a":2}', b"\xff", b'{"from":"\x00"}', "[" * 70 + "]" * 70):
            with self.subTest(payload=payload[:20]):
                self.refused(*self.command(), stdin=payload, says=r"payload: .*at line \d+, column \d+")
        self.refused(*self.command(), stdin='"' + "x" * (5 << 20) + '"', says="payload")
        self.refused(*self.command(), self.dir, says="is a directory")
        self.refused(*self.command(), "missing.json", says="missing.json")
        self.assertEqual(0, self.count("ibid.command"))
        self.submit(key="k" * 255)
        self.submit(key="ä€😀")
        self.assertEqual(2, self.count("payment"))

    def test_the_sender_is_the_cli_and_the_operating_system_user(self):  # A02
        self.init()
        self.submit(PAYMENT, "--correlation-id", "c-1", "--causation-id", "c-2")
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertEqual([("cli", user, "c-1", "c-2")],
                         self.query("select client, actor, correlation_id, causation_id from ibid.audit"))
        self.submit(PAYMENT, "--client", "traced", "--traceparent", TRACE, "--tracestate", "a=1")
        self.assertEqual([(TRACE, "a=1")], self.query("select traceparent, tracestate from ibid.audit where client = 'traced'"))
        text = self.show(*self.query("select cast(command_id as text) from ibid.audit where client = 'traced'")[0]).out
        self.assertEqual(3, text.count(TRACE))  # the command's, its event's, its audit entry's
        self.submit(PAYMENT, "--client", "web", "--actor", user)
        self.assertEqual(3, self.count("payment"))  # the contract's scope is the client

    def test_an_answer_that_nobody_could_read_is_read_by_sending_it_again(self):  # I10
        self.init()
        for number, redirect in enumerate((">/dev/full", ">&-")):
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" ' + redirect, BIN,
                                   *self.command(key="k-%d" % number)], input=PAYMENT.encode(),
                                  stderr=subprocess.PIPE, timeout=LIMIT_S, env=clean_environment())
            self.assertEqual(1, done.returncode, done)
            self.assertIn(b"same key", done.stderr)
            self.assertTrue(self.submit(key="k-%d" % number).out.startswith("replayed   201"))
        self.assertEqual(2, self.count("payment"))
        self.check_store()

    def test_a_reader_that_ended_early_hides_no_outcome(self):  # I10
        self.init()
        self.submit()
        command = self.show("--key", "k-1", "--operation", "create-payment", "--json").json["id"]
        store = ["--store", self.store]
        for code, args in (
                (0, ["init", *store, "--contracts", self.contracts]), (0, ["migrate", *store]), (0, ["status", *store]),
                (0, ["status", *store, "--json"]), (0, ["doctor", *store]), (0, ["command", "list", *store]),
                (0, ["command", "list", *store, "--json"]), (0, ["command", "show", *store, "--tenant", "acme", command]),
                (0, ["exception", "list", *store]), (0, ["outbox", "list", *store]), (0, ["pause", "list", *store]),
                (0, ["token", "list", *store]), (0, ["retain", *store, "--contracts", self.contracts]),
                (0, self.command()), (0, self.command(key="k-2")), (4, self.command(key="k-3"))):
            payload = PAYMENT if code == 0 else PAYMENT.replace("12.50", "99.00")
            if code == 4:
                self.submit(key="k-3")
            with self.subTest(args=args):
                done = unread([BIN, *args], input=payload.encode(), env=clean_environment())
                self.assertEqual(code, done.returncode, done.stderr)
                for word in (b"written", b"Broken pipe", b"same key"):
                    self.assertNotIn(word, done.stderr)
        self.assertEqual(3, self.count("payment"))  # what it was to do, it did
        # A token that nobody has seen is of no use: this one has to be told.
        done = unread([BIN, "token", "create", *store, "--tenant", "acme", "--client", "c", "--roles", "client"],
                      env=clean_environment())
        self.assertEqual(1, done.returncode)
        self.assertIn(b"the token could not be shown", done.stderr)
        self.check_store()

    def test_a_list_that_is_cut_off_by_its_reader_is_quiet(self):
        self.init()
        self.submit()
        for more in ("", " --json"):
            done = subprocess.run(["bash", "-o", "pipefail", "-c", '"$0" "$@"%s | head -n 1' % more, BIN, "command", "list",
                                   "--store", self.store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                                  env=clean_environment())
            self.assertEqual((0, b""), (done.returncode, done.stderr))
            self.assertEqual(1, done.stdout.count(b"\n"))

    def test_closed_descriptors_never_become_the_database(self):
        self.init()
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', BIN, *self.command(), self.file(
            "p.json", PAYMENT)], timeout=LIMIT_S, env=clean_environment())
        self.assertEqual(1, done.returncode)
        self.assertTrue(self.submit().out.startswith("replayed   201"))
        self.check_store()

    def race(self, payloads, key):
        """Submit at once from as many processes: each waits for its payload, then all get it."""
        line = [BIN, *self.command(key=key), "--json"]
        racers = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment()) for _ in payloads]
        for racer, payload in zip(racers, payloads):
            racer.stdin.write(payload.encode())
            racer.stdin.flush()
        for racer in racers:
            racer.stdin.close()
            racer.stdin = None
        ends = [Answer(0, *racer.communicate(timeout=LIMIT_S)) for racer in racers]
        for end, racer in zip(ends, racers):
            end.code = racer.returncode
        return ends

    def test_processes_with_one_key_at_once_have_one_effect(self):  # B12
        self.init()
        for turn in range(5):
            ends = self.race([PAYMENT] * 4, "race-%d" % turn)
            self.assertTrue(all(end.code in (0, 5) for end in ends), ends)
            told = [(end.json["decision"], end.json["replayed"]) for end in ends]
            self.assertEqual(1, told.count(("executed", False)), told)
            self.assertLessEqual(set(told), {("executed", False), ("executed", True), ("in_progress", False)})
        for table, rows in (("payment", 5), ("ledger_entry", 10), ("ibid.command", 5), ("ibid.event", 5),
                            ("ibid.audit", 5)):
            self.assertEqual(rows, self.count(table), table)

    def test_processes_with_one_key_and_different_payloads_have_one_effect(self):  # B04 B12
        self.init()
        ends = self.race([PAYMENT.replace("12.50", str(amount)) for amount in (1, 2, 3, 4)], "race")
        decisions = sorted(end.json["decision"] for end in ends)
        self.assertEqual(1, decisions.count("executed"), decisions)
        self.assertLessEqual(set(decisions), {"executed", "conflict", "in_progress"})
        self.assert_one_payment()

    def submit_in_time(self, key):
        """The server goes on for a moment with what one that was killed had sent: until then the key is in use."""
        end = time.monotonic() + LIMIT_S
        while True:
            done = subprocess.run([BIN, *self.command(key=key)], input=PAYMENT.encode(), capture_output=True,
                                  timeout=LIMIT_S, env=clean_environment(), check=False)
            if done.returncode != 5 or time.monotonic() > end:
                self.assertEqual(done.returncode, 0, done)
                return

    def test_a_killed_process_leaves_all_or_nothing(self):  # B02
        self.init()
        for turn in range(10):
            racer = subprocess.Popen([BIN, *self.command(key="kill-%d" % turn)], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
            racer.stdin.write(PAYMENT.encode())
            racer.stdin.close()
            time.sleep(0.006 * turn)
            racer.send_signal(signal.SIGKILL)
            racer.wait(LIMIT_S)
            self.submit_in_time(key="kill-%d" % turn)
        for table, rows in (("payment", 10), ("ledger_entry", 20), ("ibid.event", 10), ("ibid.audit", 10)):
            self.assertEqual(rows, self.count(table), table)

    # ---- command show, list

    def expire(self, days):
        """As if everything had been submitted so many days earlier."""
        for column in ("created", "finished", "expires"):
            self.change("update ibid.command set %s" % (
                "%s_us = %s_us - %d * 86400000000" % (column, column, days) if self.store.startswith("sqlite")
                else "%s_at = %s_at - %d * interval '1 day'" % (column, column, days)))
        early = "%012x" % (int(time.time() * 1000) - (days + 1) * 86400000)
        early = "%s-%s-7000-8000-000000000001" % (early[:8], early[8:])
        for table in ("answer", "evidence", "duplicate"):
            self.change("update ibid.%s set command_id = '%s'" % (table, early))
        self.change("update ibid.command set id = '%s'" % early)

    def retain(self, *more, **options):
        return self.ibid("retain", "--store", self.store, "--contracts", self.contracts, *more, **options)

    def test_an_expired_key_is_exit_3_and_retain_removes_in_two_steps(self):  # B10
        self.init()
        self.submit()
        self.submit(PAYMENT.replace("12.50", "12.51"), code=4)
        self.assertEqual(0, self.retain("--json").json["tombstones"])
        self.expire(401)
        answer = self.submit(PAYMENT, "--json", code=3).json
        self.assertEqual(("expired", 410), (answer["decision"], answer["status"]))
        self.assertIn("expired", self.submit(code=3).out)
        dry = self.retain("--dry-run", "--json").json
        self.assertEqual((True, 1, 1, 0), tuple(dry[name] for name in ("dryRun", "tombstones", "answers", "commands")))
        self.assertEqual(1, self.count("ibid.answer"))
        done = self.retain("--json", "--max-seconds", "60", "--batch=1").json
        self.assertEqual(dict(dry, dryRun=False), done)
        self.assertEqual((0, 1), (self.count("ibid.answer"), self.count("ibid.command")))
        self.submit(code=3)
        self.expire(3300)
        self.assertRegex(self.retain().out, r"removed\n(.*\n)* +1  commands forgotten")
        for table in ("command", "evidence", "duplicate"):
            self.assertEqual(0, self.count("ibid." + table), table)
        self.assertEqual(1, self.count("ibid.event"))

    def test_retain_refuses_what_it_does_not_understand(self):  # B10
        self.init()
        for option, says in (("--batch=0", "--batch"), ("--batch=x", "--batch"), ("--batch=99999999999999999999", "--batch"),
                             ("--max-seconds=0", "--max-seconds"), ("--events-older-than=soon", "duration"),
                             ("--events-older-than=-1d", "duration"), ("--events-older-than=1d", "--no-archive"), ("--archive=x", "--events-older-than")):
            self.refused("retain", "--store", self.store, "--contracts", self.contracts, option, code=2, says=says)
        empty = self.path("empty")
        os.mkdir(empty)
        self.refused("retain", "--store", self.store, "--contracts", empty)

    def test_show_tells_who_came_again(self):  # B18
        self.file("contracts/each-payment.yaml",
                  re.sub(r"\nroute:.*", "", read(os.path.join(EXAMPLE, "create-payment.yaml")))
                  .replace("command: create-payment", "command: each-payment")
                  .replace("evidence: count", "evidence: each"))
        self.init()
        for _ in range(3):
            self.submit(operation="each-payment")
        name = ("--operation", "each-payment", "--key", "k-1")
        record = self.show(*name, "--json", "--duplicates").json
        self.assertEqual((2, 0), (record["duplicates"]["count"], record["duplicates"]["notListed"]))
        self.assertEqual([("executed", "cli")] * 2,
                         [(one["decision"], one["client"]) for one in record["duplicates"]["listed"]])
        self.assertEqual([], self.show(*name, "--json").json["duplicates"]["listed"])
        text = self.show(*name, "--duplicates").out
        self.assertIn("duplicates (2)", text)
        self.assertEqual(2, text.count("client cli, actor "))

    def test_show_tells_the_record_its_events_its_audit_entry_and_its_conflicts(self):  # B04 J04
        self.init()
        made = self.submit(PAYMENT, "--json", "--correlation-id", "c-1").json
        self.submit(PAYMENT.replace("12.50", "1"), code=4)
        self.submit(PAYMENT.replace("12.50", "1"), code=4)
        record = self.show(made["commandId"], "--json").json
        by_key = ["--operation", "create-payment", "--key", "k-1"]
        self.assertEqual(record, self.show(*by_key, "--json").json)
        self.assertEqual(record, self.show(*by_key, "--scope", record["scope"], "--json").json)
        self.assertEqual(
            (made["commandId"], "acme", "create-payment", '{"client":"cli"}', "k-1", "COMPLETED", 201, 1,
             {"id": made["commandId"]}, "payment", made["commandId"], 1, 1, False),
            tuple(record[name] for name in
                  ("id", "tenant", "operation", "scope", "key", "state", "status", "attempts", "result",
                   "resourceType", "resourceId", "contractVersion", "scheme", "linked")))
        for name in ("createdAt", "finishedAt", "expiresAt"):
            self.assertRegex(record[name], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")
        event, = record["events"]
        self.assertEqual(("PaymentCreated", "payment", made["commandId"], 1, 1, "c-1"),
                         tuple(event[name] for name in ("type", "aggregateType", "aggregateId", "version",
                                                        "ordinal", "correlationId")))
        self.assertEqual(12.5, event["payload"]["amount"])
        self.assertEqual((record["auditId"], "executed", "c-1", record["fingerprint"]),
                         tuple(record["audit"][name] for name in
                               ("id", "outcome", "correlationId", "fingerprint")))
        conflict, = record["conflicts"]
        self.assertEqual(2, conflict["count"])
        self.assertNotEqual(record["fingerprint"], conflict["fingerprint"])
        text = self.show(*by_key).out
        for part in (made["commandId"], "COMPLETED", "PaymentCreated", "a payment order is accepted",
                     record["fingerprint"], conflict["fingerprint"], "events (1)", "audit trail (1)",
                     record["createdAt"]):
            self.assertIn(part, text)

    def test_the_stored_fingerprint_is_the_one_that_is_printed(self):  # A03
        self.init()
        made = self.submit(PAYMENT, "--json").json
        printed = self.ibid("fingerprint", "--contracts", self.contracts, "--tenant", "acme", "--operation",
                            "create-payment", stdin=PAYMENT).out.strip()
        self.assertEqual(printed, self.show(made["commandId"], "--json").json["fingerprint"])

    def test_show_refuses_what_is_not_there_and_asks_which_of_two(self):
        self.init()
        made = self.submit(PAYMENT, "--json").json
        show = ["command", "show", "--store", self.store, "--tenant"]
        self.refused(*show, "other", made["commandId"], says="no such command")
        self.refused(*show, "acme", str(uuid.uuid4()), says="no such command")
        self.refused(*show, "acme", "--operation", "create-payment", "--key", "k-2", says="k-2")
        self.submit(PAYMENT, "--client", "web")
        answer = self.refused(*show, "acme", "--operation", "create-payment", "--key", "k-1", says="--scope")
        for scope in ("client=cli", "client=web"):
            self.assertIn("'%s'" % scope, answer.err)
            shown = self.show("--operation", "create-payment", "--key", "k-1", "--scope", scope).out
            self.assertRegex(shown, r"(?m)^scope +%s$" % scope)

    def test_a_scope_is_said_by_the_names_of_its_parts(self):
        path = self.path("contracts", "create-payment.yaml")
        write(path, re.sub(r"scope: \[.*?\]", "scope: [client, actor]", read(path)))
        self.init()
        made = {}
        for client in ("cli", "web,shop"):
            for actor in ("ann", "bob"):
                made[client, actor] = self.submit(PAYMENT, "--client", client, "--actor", actor, "--json").json["commandId"]
        by_key = ["--operation", "create-payment", "--key", "k-1", "--scope"]
        for scope, which in (("client=cli,actor=ann", ("cli", "ann")), ("actor=bob,client=cli", ("cli", "bob")),
                             ('{"actor":"bob","client":"web,shop"}', ("web,shop", "bob"))):
            self.assertEqual(made[which], self.show(*by_key, scope, "--json").json["id"])
        show = ["command", "show", "--store", self.store, "--tenant", "acme", *by_key]
        for scope, says in (("client=cli", "several senders used key k-1: give the ID, or --scope 'actor="),
                            ("branch=B1", 'the scope of create-payment has no part "branch"; it has actor, client'),
                            ("client=cli,branch=B1", 'no part "branch"'), ("client=nobody", "has that scope; one has --scope"),
                            ("web", "such as client=web,actor=u7, and not \"web\""), ("client=", "and not \"client=\""),
                            (",", "and not \",\""), ('{"client":"cli"}', "no such command")):
            with self.subTest(scope=scope):
                self.refused(*show, scope, says=says)
        erase = ["erase", "--store", self.store, "--tenant", "acme", "--reason", "r", *by_key]
        self.refused(*erase, "branch=B1", says="it has actor, client")
        self.assertEqual(1, self.ibid(*erase, "client=cli,actor=ann", "--dry-run", "--json").json["commands"])

    def test_a_missing_tenant_is_asked_for_in_the_same_words(self):
        self.init()
        some = str(uuid.UUID(int=1))
        for command in (["command", "show", some], ["exception", "show", some], ["outbox", "show", some],
                        ["reference", "show"], ["erase", "--id", some, "--reason", "r"], ["token", "create", "--client", "web"],
                        ["submit", "--contracts", self.contracts, "--operation", "create-payment"]):
            self.refused(*command, "--store", self.store, code=2, says="--tenant is missing: give --tenant TENANT .the tenant whose it is")
        for command in ("command list", "exception list", "outbox list", "token list", "pause list", "command recover"):
            self.assertRegex(self.ibid(*command.split(), "--help").out, r"--tenant TENANT +only what is this tenant's \(of all tenants\)")

    def test_a_rejection_with_words_of_its_own_is_shown_and_replayed_with_them(self):  # B03
        self.init()
        self.submit(PAYMENT.replace("12.50", "0"), code=3)
        identity = self.submit(PAYMENT.replace("12.50", "0"), "--json", code=3).json["commandId"]
        body = '{"why" : "closed",\n\r\n  "since":1.50 }'
        lite = self.store.startswith("sqlite:")
        self.change("insert into ibid.answer (tenant, command_id, %sbody) values ('acme', '%s', %s'%s')" %
                    ("" if lite else "attempts, ", identity, "" if lite else "1, ", body))
        self.assertIn('\nbody            {"why" : "closed",     "since":1.50 }\n', self.show(identity).out)
        shown = self.show(identity, "--json")
        self.assertEqual(({"why": "closed", "since": 1.5}, "REJECTED"), (shown.json["result"], shown.json["state"]))
        self.assertEqual(1, shown.out.count("\n"))
        again = self.submit(PAYMENT.replace("12.50", "0"), "--json", code=3)
        self.assertEqual(("rejected", True, 422, {"why": "closed", "since": 1.5}),
                         tuple(again.json[name] for name in ("decision", "replayed", "status", "body")))
        self.assertEqual(1, again.out.count("\n"))

    def test_a_rejection_shows_its_reason_and_no_audit_entry(self):
        self.init()
        self.submit(PAYMENT.replace('"B"', '"A"'), code=3)
        record = self.show("--operation", "create-payment", "--key", "k-1", "--json").json
        self.assertEqual(("REJECTED", "SAME_ACCOUNT", None, None, [], []),
                         tuple(record.get(name) for name in
                               ("state", "code", "audit", "auditId", "events", "conflicts")))
        self.assertIn("SAME_ACCOUNT: from and to must differ",
                      self.show("--operation", "create-payment", "--key", "k-1").out)

    def test_list_pages_from_the_newest_and_says_how_to_go_on(self):
        self.init()
        self.assertEqual("", self.list().out)
        for number in range(5):
            self.submit(key="k-%d" % number)
        self.assertEqual(["k-4", "k-3", "k-2", "k-1", "k-0"], [row["key"] for row in self.list("--json").lines])
        seen, more = [], []
        for _ in range(3):
            page = self.list("--limit", "2", "--json", *more)
            seen += [row["key"] for row in page.lines]
            match = re.search(r"--after (%s)" % UUID.pattern, page.err)
            more = ["--after", match.group(1)] if match else []
        self.assertEqual(["k-4", "k-3", "k-2", "k-1", "k-0"], seen)
        self.assertEqual([], more)

    def test_list_filters_and_aligns(self):
        self.init()
        self.submit()
        self.submit(PAYMENT.replace('"B"', '"A"'), key="ä€-long-key", code=3)
        self.submit(tenant="other")
        self.submit(operation="break-payment", code=7)
        for args, keys in ((["--tenant", "acme", "--operation", "create-payment"], ["ä€-long-key", "k-1"]),
                           (["--state", "rejected"], ["ä€-long-key"]), (["--state", "FAILED"], ["k-1"]),
                           (["--state", "in-progress"], []), (["--key", "k-1"], ["k-1"] * 3),
                           (["--tenant", "other"], ["k-1"]), (["--tenant", "nobody"], []),
                           (["--tenant", "acme", "--state", "completed", "--key", "k-1"], ["k-1"])):
            with self.subTest(args=args):
                self.assertEqual(keys, [row["key"] for row in self.list("--json", *args).lines])
        lines = self.list().out.splitlines()
        self.assertEqual(5, len(lines))
        column = lines[0].index("STATE")
        self.assertEqual({"COMPLETED", "REJECTED", "FAILED"}, {line[column:].split()[0] for line in lines[1:]})
        self.assertTrue(all(line[column - 2:column] == "  " for line in lines))
        self.assertEqual(lines, [line.rstrip() for line in lines])

    def test_tables_align_whatever_the_width_of_their_characters(self):
        self.init()
        for key in ("plain", "\u652f\u6255\u3044", "\uff21\uff22", "e\u0301" * 5, "\U0001f600", "\u00e4\u20ac"):
            self.submit(key=key)
        lines = [[columns(part) for part in re.split(r"(?=STATE|COMPLETED)", line, maxsplit=1)][0]
                 for line in self.list().out.splitlines()]
        self.assertEqual((7, 1), (len(lines), len(set(lines))), lines)

    def test_all_values_of_a_record_begin_in_one_column(self):
        self.init()
        made = self.submit(PAYMENT, "--correlation-id", "corr-1", "--traceparent", TRACE, "--json").json["commandId"]
        self.submit(PAYMENT.replace("EUR", "USD"), code=4)
        shown = self.show(made)
        event = self.show(made, "--json").json["events"][0]["eventId"]
        stood = self.ibid("outbox", "show", "--store", self.store, "--tenant", "acme", event)
        for text, names in ((shown.out, ("trace", "  partition key", "  correlation")),
                            (stood.out, ("partition key", "correlation"))):
            fields = [line for line in text.splitlines() if line and not re.search(r"\(\d+\)\Z", line)]
            self.assertGreater(len(fields), 10)
            for line in fields:
                self.assertRegex(line, r"\A(?=.{15} \S) {0,2}[a-z]+( [a-z]+)* +\S")
            for name in names:
                self.assertTrue(any(line.startswith(name + " ") for line in fields), (name, text))

    def test_messages_name_what_to_type_or_what_was_given(self):
        """Each says the file, the command or the option that helps."""
        yaml = self.path("contracts", "derive-payment.yaml")
        write(yaml, re.sub(r"scope: \[.*?\]", "scope: [client, resource]", read(yaml)))
        self.init()
        made = self.submit(PAYMENT, "--json").json["commandId"]
        self.submit(PAYMENT, "--client", "web")
        item, some, at = self.open_exception(1), str(uuid.UUID(int=7)), ["--store", self.store]
        token = self.ibid("token", "create", *at, "--tenant", "acme", "--client", "ops", "--roles", "operator", "--json").json["token"]
        client = self.ibid("token", "create", *at, "--tenant", "acme", "--client", "web", "--json").json["token"]
        resolve = ["exception", "resolve", *at, "--reason", "r", "--action"]
        assign = ["exception", "assign", *at, "--reason", "r", "--to", "bea"]
        act = {"IBID_TOKEN": token}
        derive = self.command("derive-payment", None)
        for args, env, code, says in (
                (["command", "show", *at, "--tenant", "acme", some], {}, 1, "`ibid command list --tenant acme` shows"),
                (["command", "show", *at, "--tenant", "acme", "x"], {}, 2, "`ibid command list` shows ids"),
                (["command", "show", *at, "--tenant", "acme"], {}, 2, "ID, which `ibid command list` shows, or by --operation"),
                (["exception", "show", *at, "--tenant", "acme", some], {}, 1, "`ibid exception list --tenant acme --state all` shows"),
                (["exception", "show", *at, "--tenant", "acme"], {}, 2, "ID is missing: `ibid exception list` shows"),
                (["outbox", "show", *at, "--tenant", "acme", some], {}, 1, "`ibid outbox list --tenant acme` shows"),
                (["outbox", "show", *at, "--tenant", "acme"], {}, 2, "EVENT_ID is missing: `ibid outbox list` shows"),
                (["outbox", "skip", *at, "--destination", "d", "--reason", "r", some], act, 1, "`ibid outbox list --tenant acme`"),
                (["token", "revoke", *at, "0" * 16], {}, 1, "there is no token 0000000000000000: `ibid token list` shows"),
                (["token", "revoke", *at], {}, 2, "ID is missing: `ibid token list` shows"),
                (["archive", "list"], {}, 2, "name a directory, or a store by --store"),
                (["reference", "show", *at, "--tenant", "acme"], {}, 2, "from outside by --source and --external"),
                (["command", "list", "--store", "pay.db"], {}, 1, "the store .--store, IBID_STORE or the setting store. is not a URL"),
                ([*self.command("nothing")], {}, 1, 'operation "nothing" in .*`ibid contract matrix` shows'),
                ([*derive, "--client", "web"], {}, 1, "must name its resource: `ibid submit --resource`"),
                ([*derive, "--resource", "r", "--key", "other"], {}, 1, "leave the key out"),
                ([*assign, item], {"IBID_TOKEN": "secret"}, 1, "IBID_TOKEN: .*a token is ibid_, 16 hex digits"),
                ([*assign, item], {"IBID_TOKEN": client}, 3, "`ibid token create --roles` makes one"),
                ([*assign, some], act, 1, "`ibid exception list --tenant acme --state all` shows"),
                ([*resolve, "confirm-executed", item], act, 1, "--contracts DIR or IBID_CONTRACTS"),
                (["erase", *at, "--tenant", "acme", "--reason", "r", "--operation", "create-payment", "--key", "k-1"], {}, 1,
                 "say whose command is meant by the scope .--scope, such as client=web")):
            with self.subTest(args=args):
                self.refused(*args, code=code, env=env, stdin=PAYMENT, says=says)
        self.change("update ibid.command set lease_token = 7571104063")
        self.assertRegex(self.show(made).out, r"(?m)^lease token +7571104063$")
        for script, says in (("select 404 as status;\n", "the handler answered with status 404, and a success has 200 to 399; "
                              "to refuse a command, a script calls ibid_reject"),
                             ("select 201 as status where 1 = 0;\n", "select 201 as status")):
            write(self.path("contracts", "break.sql"), script)
            answer = self.submit(operation="break-payment", key="s-%d" % len(script), code=7)
            self.assertIn(says, answer.out)

    # ---- exception

    def open_exception(self, number, tenant="acme", queue="business", severity="high", owner="payments",
                       reason="HANDLER_ENDED_TRANSACTION", opened_s=-60, due_s=3600):
        """One as the ledger opens it, from `opened_s` to `due_s` after now; returns its id."""
        id = str(uuid.UUID(int=(0x0197 << 112) + (7 << 76) + (8 << 60) + number))
        now = time.time()
        self.change(
            "insert into ibid.exception (tenant, id, queue, state, severity, subject_type, subject_id, business_key, "
            "source, payload_ref, reason, detail, suggestion, owner, retryable, actions, correlation_id, %s, %s) "
            "values ('%s', '%s', '%s', 'OPEN', '%s', 'command', 'c-%d', 'k-1', 'web', 'fingerprint:00', '%s', "
            "'a \x1b[31msentence', 'look', '%s', %s, 'confirm-executed,confirm-not-executed', 'corr-1', %s, %s)" %
            (self.time_column("opened"), self.time_column("due"), tenant, id, queue, severity, number, reason,
             owner, "false", self.time_value(now + opened_s), self.time_value(now + due_s)))
        return id

    def exceptions(self, *more, **options):
        return self.ibid("exception", "list", "--store", self.store, *more, **options)

    def test_a_store_where_all_is_well_has_no_exceptions(self):  # J01
        self.init()
        self.submit()
        self.submit(PAYMENT.replace('"B"', '"A"'), key="k-2", code=3)
        answer = self.exceptions()
        self.assertEqual(("", "ibid: no exceptions\n"), (answer.out, answer.err))
        self.assertEqual("", self.exceptions("--json", "--state", "all").out)

    def test_exceptions_are_listed_with_owner_reason_and_what_is_overdue(self):  # J01
        self.init()
        late = self.open_exception(1, opened_s=-3 * 3600, due_s=-2 * 3600 - 60)
        soon = self.open_exception(2, tenant="other", queue="data-quality", severity="low", owner="ä€ team",
                                   reason="NO_SUCH_VENDOR", due_s=4 * 3600 + 60)
        lines = self.exceptions().out.splitlines()
        self.assertEqual(3, len(lines), lines)
        self.assertEqual(lines, [line.rstrip() for line in lines])
        self.assertEqual("EXCEPTION AGE SEVERITY DUE TENANT QUEUE OWNER ASSIGNEE REASON SUBJECT".split(), lines[0].split())
        self.assertRegex(lines[1], r"\A%s  1 min(?: \d+ s)? +low +in 4 h(?: \d min)? +other +data-quality  ä€ team +- +"
                                   r"NO_SUCH_VENDOR +command c-2\Z" % soon)
        self.assertRegex(lines[2], r"\A%s  3 h(?: \d+ min)? +high +overdue 2 h \d+ min +acme +business +payments +- +"
                                   r"HANDLER_ENDED_TRANSACTION  command c-1\Z" % late)
        for head in ("SEVERITY", "DUE", "QUEUE", "REASON"):
            column = lines[0].index(head)
            self.assertTrue(all(line[column - 2:column] == "  " and line[column] != " " for line in lines), lines)
        self.assertEqual([(soon, False), (late, True)],
                         [(row["id"], row["overdue"]) for row in self.exceptions("--json").lines])

    def test_exceptions_are_filtered_and_paged(self):  # J01
        self.init()
        first = self.open_exception(1)
        second = self.open_exception(2, queue="security", owner="guards")
        third = self.open_exception(3, tenant="other")
        self.change("update ibid.exception set state = 'RESOLVED', resolution = 'confirm-executed', resolved_by = "
                    "'ann', note = 'seen', %s = %s where id = '%s'" %
                    (self.time_column("resolved"), self.time_value(time.time()), first))
        for args, ids in (([], [third, second]), (["--state", "OPEN"], [third, second]),
                          (["--state", "resolved"], [first]), (["--state", "all"], [third, second, first]),
                          (["--tenant", "acme"], [second]), (["--tenant", "acme", "--state", "all"], [second, first]),
                          (["--queue", "security"], [second]), (["--queue", "dead-letter"], []),
                          (["--owner", "guards"], [second]), (["--owner", "nobody"], []),
                          (["--state", "all", "--after", second], [first]),
                          (["--after", third.upper()], [second])):
            with self.subTest(args=args):
                self.assertEqual(ids, [row["id"] for row in self.exceptions("--json", *args).lines])
        page = self.exceptions("--state", "all", "--limit", "2", "--json")
        self.assertEqual([third, second], [row["id"] for row in page.lines])
        self.assertIn("--after %s" % second, page.err)
        self.assertRegex(self.exceptions("--state", "resolved").out, r"  resolved  acme ")

    def test_an_exception_shows_everything_and_what_may_be_done(self):  # J01 I8
        self.init()
        late = self.open_exception(1, due_s=-7200 - 60)
        args = ["exception", "show", "--store", self.store, "--tenant", "acme"]
        record = self.ibid(*args, late, "--json").json
        for name, value in (("id", late), ("tenant", "acme"), ("queue", "business"), ("state", "OPEN"),
                            ("severity", "high"), ("owner", "payments"), ("reason", "HANDLER_ENDED_TRANSACTION"),
                            ("detail", "a \x1b[31msentence"), ("suggestion", "look"), ("retryable", False),
                            ("actions", ["confirm-executed", "confirm-not-executed"]), ("subjectType", "command"),
                            ("subjectId", "c-1"), ("key", "k-1"), ("source", "web"),
                            ("payloadRef", "fingerprint:00"), ("correlationId", "corr-1"), ("overdue", True),
                            ("documentId", None), ("resolvedAt", None)):
            self.assertEqual(value, record.get(name), name)
        text = self.ibid(*args, late).out
        fields = [("exception", late), ("owner", "payments"), ("reason", "HANDLER_ENDED_TRANSACTION"),
                  ("detail", "a \\u001b[31msentence"), ("suggestion", "look"), ("retry", "not safe"),
                  ("subject", "command c-1"), ("key", "k-1")]
        for line in ["%-15s %s" % field for field in fields] + ["what may be done (2)", "  confirm-executed",
                                                                "  confirm-not-executed"]:
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"(?m)^state           OPEN, overdue 2 h \d+ min$")
        soon = self.open_exception(2, due_s=7200 + 60)
        self.assertRegex(self.ibid(*args, soon).out, r"(?m)^state           OPEN, due in 2 h(?: \d+ min)?$")
        for tenant, id in (("other", late), ("acme", str(uuid.UUID(int=1)))):
            self.refused(*args[:-1], tenant, id, says="tenant %s has no such exception" % tenant)

    # ---- references

    def test_a_reference_is_shown_from_either_side(self):  # B17
        for kind, name in (("sqlite", "ibid_link_reference"), ("postgres", "ibid.link_reference")):
            link = "select %s('bank', :from || '-17', 'account', :from);\n" % name
            self.file("contracts/create-payment.%s.sql" % kind, read(self.path("contracts", "create-payment.sql")) + "\n" + link)
        yaml = self.path("contracts", "create-payment.yaml")
        write(yaml, read(yaml).replace("create-payment.sql, rows: [1, 2]", "create-payment.$store.sql, rows: [1, 2, any]"))
        self.init()
        made = self.submit(PAYMENT, "--json").json
        self.submit(PAYMENT, key="k-2")
        show = ["reference", "show", "--store", self.store, "--tenant", "acme"]
        for side in (["--source", "bank", "--external", "A-17"], ["--type", "account", "--id", "A"]):
            row = self.ibid(*show, *side, "--json").json
            self.assertEqual(("acme", "bank", "A-17", "account", "A", made["commandId"]),
                             tuple(row[name] for name in ("tenant", "sourceSystem", "externalId", "resourceType",
                                                          "resourceId", "commandId")))
            table = self.ibid(*show, *side).out.splitlines()
            self.assertEqual(2, len(table))
            self.assertRegex(table[1], r"^acme +bank +A-17 +account +A +%s " % made["commandId"])
        self.refused(*show, "--source", "bank", "--external", "A-18", says="A-18 of bank")
        self.refused(*show, "--type", "account", "--id", "B", says="account B")
        for side in ([], ["--source", "bank"], ["--type", "account"], ["--source", "bank", "--id", "A"],
                     ["--source", "bank", "--external", "A-17", "--id", "A"]):
            self.refused(*show, *side, code=2, says="--source and --external")

    # ---- doctor

    def test_doctor_is_content_with_a_good_store(self):
        self.init()
        answer = self.ibid("doctor", "--store", self.store, "--contracts", self.contracts)
        self.assertRegex(answer.out, r"(?m)^ok      contract create-payment version 1$")
        self.assertNotRegex(answer.out, "(?m)^refuse")
        warnings = len(re.findall("(?m)^warn", answer.out))
        self.assertTrue(answer.out.endswith("\n0 problems, %d warning%s\n" % (warnings, "" if warnings == 1 else "s")), answer)
        for finding in self.ibid("doctor", "--store", self.store, "--json").lines:
            self.assertEqual({"level", "what", "advice"}, set(finding))
            self.assertIn(finding["level"], ("ok", "warn"))

    def test_doctor_finds_wrong_contracts_and_a_missing_schema(self):
        self.ibid("migrate", "--store", self.store)
        answer = self.ibid("doctor", "--store", self.store, "--contracts", self.contracts, code=8)
        self.assertRegex(answer.out, "(?m)^warn +contract create-payment version 1 is not kept")
        self.assertRegex(answer.out, r"(?m)^refuse  \S+break\.sql:1: .*payment")  # nor are the tables there
        path = self.path("contracts", "create-payment.yaml")
        good = read(path)
        write(path, re.sub(r"\nowner:.*", "", good))
        answer = self.ibid("doctor", "--store", self.store, "--contracts", self.contracts, code=8)
        self.assertRegex(answer.out, r"(?m)^refuse  \S+create-payment\.yaml:\d+: owner is missing\n +Which team")
        self.assertRegex(answer.out, r"\n1 problem, \d+ warnings?\n\Z")
        write(path, good)
        self.file("contracts/bad.yaml", "command: bad\n")
        answer = self.ibid("doctor", "--store", self.store, "--contracts", self.contracts, code=8)
        self.assertRegex(answer.out, r"(?m)^refuse  \S+bad\.yaml")

    # ---- stores that are none

    def every_use(self, store=None):
        store = store or self.store
        return (["submit", *self.command(store=store)[1:]], ["command", "list", "--store", store],
                ["command", "show", "--store", store, "--tenant", "acme", "--operation", "o", "--key", "k"],
                ["exception", "list", "--store", store],
                ["exception", "show", "--store", store, "--tenant", "acme", str(uuid.UUID(int=1))],
                ["contract", "apply", self.contracts, "--store", store])

    def test_a_store_without_schema_is_exit_1_and_names_the_fix(self):
        self.make_empty_store()
        for args in self.every_use():
            self.refused(*args, stdin=PAYMENT, says="ibid (init|migrate)")

    def test_a_newer_schema_is_refused_and_left_alone(self):
        self.init()
        self.submit()
        self.make_schema_newer()
        for args in (*self.every_use(), ["migrate", "--store", self.store],
                     ["init", "--store", self.store, "--contracts", self.contracts]):
            with self.subTest(args=args):
                self.refused(*args, stdin=PAYMENT, says="(?i)newer|schema")
        doctor = self.ibid("doctor", "--store", self.store, code=8)
        self.assertRegex(doctor.out, "(?m)^refuse ")
        self.assert_one_payment()

    def test_urls_that_are_none_are_exit_1(self):
        for store in ("pay.db", "mysql://x/y", "sqlite", "sqlite:", "sqlite:/", "postgres", "postgres:",
                      "postgres://[::1", "postgres://h:notaport/x", "postgres://h/d?nosuchoption=1", "\x1b[2J",
                      "sqlite:" + "x" * 5000, "x" * 5000):
            for args in (["init", "--contracts", self.contracts], ["migrate"], ["command", "list"], ["doctor"],
                         self.command()[3:]):
                args = (["submit"] if args[0].startswith("--") else []) + args
                with self.subTest(store=store[:40], args=args[0]):
                    self.refused(*args, "--store=" + store, stdin=PAYMENT)
        self.assertEqual(["contracts"], [name for name in os.listdir(self.dir) if not name.startswith("pay")])


class Sqlite(StoreCases, Case):
    kind = "sqlite"

    def make_store(self):
        self.db = self.path("pay.db")
        self.store = "sqlite:" + self.db

    def make_empty_store(self):
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            db.execute("create table mine (id text)")

    def make_schema_newer(self):
        self.change("insert into ibid_schema (version, name, at_us) values (99, 'later', 0)")

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            rows = db.execute(sql.replace("ibid.", "ibid_")).fetchall()
        return [tuple(str(value) for value in row) for row in rows]

    def change(self, sql):
        with contextlib.closing(sqlite3.connect(self.db)) as db, db:
            db.execute(sql.replace("ibid.", "ibid_"))

    def time_column(self, name):
        return name + "_us"

    def time_value(self, seconds):
        return str(int(seconds * 1e6))

    def table_exists(self, name):
        return bool(self.query("select 1 from sqlite_master where name = '%s'" % name))

    def check_store(self):
        self.assertEqual([("ok",)], self.query("pragma integrity_check"))

    def test_a_missing_file_is_exit_1_and_is_not_created(self):
        for args in (*self.every_use(), ["doctor", "--store", self.store]):
            self.refused(*args, stdin=PAYMENT, says=r"pay\.db: no such file.*ibid init")
            self.assertFalse(os.path.exists(self.db))
        for args in (["migrate"], ["init", "--contracts", self.contracts]):
            self.refused(*args, "--store", "sqlite:" + self.path("no", "pay.db"), says="does not exist")

    def test_a_directory_or_a_file_that_is_no_database_is_exit_1_and_untouched(self):
        self.file("pay.txt", "this is not a database, and it must stay as it is\n" * 100)
        before = read(self.path("pay.txt"))
        os.mkfifo(self.path("pay.fifo"))
        for name, says in (("contracts", "is a directory"), ("pay.txt", "not an SQLite database"),
                           ("pay.fifo", "regular file")):
            store = "sqlite:" + self.path(name)
            for args in (*self.every_use(store), ["doctor", "--store", store], ["migrate", "--store", store],
                         ["init", "--store", store, "--contracts", self.contracts]):
                with self.subTest(args=args):
                    self.refused(*args, stdin=PAYMENT, says=says)
        self.assertEqual(before, read(self.path("pay.txt")))

    def test_a_damaged_database_is_told_and_never_crashes(self):
        self.init()
        self.submit()
        with open(self.db, "rb") as handle:
            whole = handle.read()
        for cut in (b"", whole[:50], whole[:4096], whole[:16] + b"\xff" * 84 + whole[100:],
                    whole[:200] + b"\xa5" * (len(whole) - 200)):
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.db + ending)
            with open(self.db, "wb") as handle:
                handle.write(cut)
            for args in (["submit", *self.command(key="k-9")[1:]], ["command", "list", "--store", self.store]):
                answer = self.ibid_any(*args, stdin=PAYMENT)
                self.assertIn(answer.code, (1, 7), answer)
                self.assertRegex(answer.err, r"\Aibid: \S")

    def ibid_any(self, *args, stdin=""):
        done = subprocess.run([BIN, *args], input=stdin.encode(), capture_output=True, timeout=LIMIT_S,
                              env=clean_environment())
        return Answer(done.returncode, done.stdout, done.stderr)

    @unittest.skipUnless(os.getuid() == 0, "needs root, to become somebody else")
    def test_without_permission_it_is_exit_1_and_nothing_is_lost(self):
        self.init()
        self.submit()
        for file_mode, dir_mode in ((0o600, 0o777), (0o644, 0o777), (0o666, 0o755)):
            os.chmod(self.db, file_mode)
            os.chmod(self.dir, dir_mode)
            with self.subTest(file_mode=oct(file_mode), dir_mode=oct(dir_mode)):
                for args in self.every_use():
                    self.refused(*args, stdin=PAYMENT, wrap=NOBODY, says="permission")
                self.refused("migrate", "--store", "sqlite:/root/pay.db", wrap=NOBODY, says="(?i)permission")
        os.chmod(self.dir, 0o755)
        self.assertTrue(self.submit().out.startswith("replayed"))
        self.assert_one_payment()

    @unittest.skipUnless(os.getuid() == 0, "needs root, to mount a small file system")
    def test_a_full_disk_is_exit_7_and_the_same_key_runs_once_when_there_is_space(self):
        small = self.path("small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], capture_output=True)
        if mounted.returncode:
            self.skipTest("a file system can't be mounted here: %s" % mounted.stderr.decode())
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=True)
        self.db = os.path.join(small, "pay.db")
        self.store = "sqlite:" + self.db
        self.init()
        self.submit()
        filler = os.path.join(small, "filler")
        with open(filler, "wb", buffering=0) as handle, contextlib.suppress(OSError):
            while True:
                handle.write(b"x" * 4096)
        full = 0
        for number in range(200):
            answer = self.ibid_any(*self.command(key="full-%d" % number), stdin=PAYMENT)
            self.assertIn(answer.code, (0, 7), answer)
            if answer.code == 7:
                full += 1
                self.assertRegex(answer.err, r"\Aibid: (?s:.*)(full|no space)(?s:.*)same key")
                self.assertEqual("", answer.out)
                if full == 3:
                    break
        self.assertEqual(3, full)
        os.remove(filler)
        for again in range(number + 1):
            self.assertRegex(self.submit(key="full-%d" % again).out, r"\A(executed|replayed)   201")
        self.assertTrue(self.submit(key="full-%d" % number).out.startswith("replayed"))
        rows = number + 2
        for table, each in (("payment", 1), ("ledger_entry", 2), ("ibid.event", 1), ("ibid.audit", 1)):
            self.assertEqual(rows * each, self.count(table), table)
        self.check_store()

    def test_a_database_locked_for_too_long_is_exit_7(self):
        self.init()
        with contextlib.closing(sqlite3.connect(self.db, isolation_level=None)) as db:
            db.execute("begin immediate")
            self.refused(*self.command(), stdin=PAYMENT, code=7, says="same key")
            db.execute("rollback")
        self.submit()
        self.assert_one_payment()


class Postgres(StoreCases, Case):
    kind = "postgres"

    def setUp(self):
        if not PG and REQUIRE_PG:
            self.fail("IBID_TEST_PG is not set, and IBID_TEST_REQUIRE_PG=1 forbids to go on without it")
        if not PG:
            self.skipTest("IBID_TEST_PG is not set")
        super().setUp()

    def psql(self, url, sql):
        done = subprocess.run(["psql", "-XAtq", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql],
                              capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(0, done.returncode, done.stderr)
        return [tuple(line.split("\x1f")) for line in done.stdout.splitlines()]

    def make_store(self):
        self.database = "ibid_cli_%s" % uuid.uuid4().hex[:12]
        self.store = re.sub(r"/[^/]*$", "/" + self.database, PG)
        self.psql(PG, 'create database "%s"' % self.database)
        self.addCleanup(self.psql, PG, 'drop database if exists "%s" with (force)' % self.database)

    def make_empty_store(self):
        pass

    def make_schema_newer(self):
        self.change("insert into ibid.schema_version (version, name) values (99, 'later')")

    def query(self, sql):
        return self.psql(self.store, sql)

    def change(self, sql):
        self.psql(self.store, sql)

    def time_column(self, name):
        return name + "_at"

    def time_value(self, seconds):
        return "to_timestamp(%f)" % seconds

    def table_exists(self, name):
        return bool(self.query("select 1 from pg_tables where tablename = '%s'" % name))

    def check_store(self):
        self.assertEqual([("1",)], self.query("select 1"))

    def test_a_server_that_can_not_be_reached_is_exit_7_for_submit_and_1_else(self):
        store = "postgres://u:hush@127.0.0.1:1/x"
        self.refused(*self.command(store=store), stdin=PAYMENT, code=7, says="same key")
        for args in (["command", "list"], ["migrate"], ["doctor"], ["init", "--contracts", self.contracts]):
            answer = self.refused(*args, "--store", store)
            self.assertNotIn("hush", answer.err)

    def test_an_unknown_database_or_role_is_an_error_that_hides_the_password(self):
        for store in (re.sub(r"/[^/]*$", "/no_such_database", PG), re.sub(r"//[^@]*@", "//nobody_here:hush@", PG)):
            for args in (*self.every_use(store), ["migrate", "--store", store], ["doctor", "--store", store]):
                with self.subTest(args=args):
                    answer = self.refused(*args, stdin=PAYMENT)
                    self.assertNotIn("hush", answer.err)

    def test_a_role_without_rights_is_exit_1_and_nothing_is_lost(self):
        self.init()
        self.submit()
        role = "cli_%s" % uuid.uuid4().hex[:12]
        self.change('create role "%s" login' % role)
        self.addCleanup(self.psql, PG, 'drop role "%s"' % role)
        poor = re.sub(r"//[^@]*@", "//%s@" % role, self.store)
        for args in (*self.every_use(poor), ["migrate", "--store", poor]):
            with self.subTest(args=args):
                self.refused(*args, stdin=PAYMENT, says="(?i)permission")
        self.assert_one_payment()


if __name__ == "__main__":
    unittest.main()
