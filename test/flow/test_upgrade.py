# SPDX-License-Identifier: Apache-2.0
"""A deployment replaces one process after the other (K09): the binary of the previous schema and this one
work on one store at once, and a request that one accepted is a replay for the other. The previous one, the
baseline, is built from the history, once per build directory."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import unittest
import uuid

SOURCE = os.environ["IBID_SOURCE_DIR"]
BUILD = os.environ["IBID_BUILD_DIR"]
NEW = os.path.join(BUILD, "ibid")
PG = os.environ.get("IBID_TEST_PG")
REQUIRE_PG = os.environ.get("IBID_TEST_REQUIRE_PG") == "1"
# The last commit that wrote schema 1 (migrations/001_baseline.sql). Nothing has been released: this commit stands
# for the previous release. Its stores are what the migrations start from, and its binary must go on working on the
# migrated store until it is replaced. With a release, the baseline becomes the commit of that release.
BASELINE = "c11e7fa54c52ec65bb411563e9c738ace70b9847"
LIMIT_S = 60
KEYS = 10
EXECUTED, IN_PROGRESS, AGAIN = 0, 5, 7


def run(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, timeout=300, **options)


def build_baseline():
    """The directory of the baseline's source, with its build in `build`."""
    place = os.path.join(BUILD, "baseline", BASELINE)
    if os.path.exists(place):
        return place
    known = subprocess.run(["git", "-C", SOURCE, "cat-file", "-e", BASELINE + "^{commit}"], capture_output=True)
    if known.returncode:
        raise AssertionError("the baseline, commit %s, is not in this repository's history: a shallow "
                             "clone? `git fetch --unshallow` gets it (git says: %s)"
                             % (BASELINE, known.stderr.decode().strip()))
    os.makedirs(os.path.dirname(place), exist_ok=True)
    made = tempfile.mkdtemp(dir=os.path.dirname(place))
    run("tar", "x", "-C", made, input=run("git", "-C", SOURCE, "archive", BASELINE).stdout)
    build = os.path.join(made, "build")
    run("meson", "setup", build, made, "-Dtests=false", "-Dbuildtype=plain", "-Dwarning_level=0")
    run("ninja", "-C", build, "ibid", "libibid.so.0.1.0")
    os.rename(made, place)
    return place


def environment(**more):
    return dict({name: value for name, value in os.environ.items() if not name.startswith("IBID_")}, **more)


class Upgrade:
    """On each store; `Sqlite` and `Postgres` below say how one is made and looked at."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.baseline = build_baseline()
        cls.old = os.path.join(cls.baseline, "build", "ibid")
        cls.contracts = os.path.join(cls.baseline, "examples", "payments")

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-upgrade-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.make_store()
        self.ibid(self.old, "init", "--contracts", self.contracts)

    def ibid(self, binary, *words, stdin="", code=0, store=True):
        place = ["--store", self.store] if store else []
        done = subprocess.run([binary, *words, *place], input=stdin, capture_output=True, text=True,
                              env=environment(), timeout=LIMIT_S)
        if code is not None:
            self.assertEqual(code, done.returncode, "%s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    @staticmethod
    def payment(key):
        return '{"from":"A","to":"B","amount":%d.50,"currency":"EUR"}' % (1 + sum(map(ord, key)))

    def submit(self, binary, key, payload=None, code=0):
        return self.ibid(binary, "submit", "--contracts", self.contracts, "--tenant", "acme", "--actor", "ann",
                         "--operation", "create-payment", "--key", key, "--json",
                         stdin=payload or self.payment(key), code=code)

    def answer(self, binary, key):
        """As a client does: the same key until there is an answer. (command id, was it a replay)"""
        for _ in range(200):
            done = self.submit(binary, key, code=None)
            if done.returncode not in (IN_PROGRESS, AGAIN):
                break
        self.assertEqual(EXECUTED, done.returncode, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        command = found.get("commandId", found.get("command_id"))  # as the baseline calls it
        self.assertEqual(command, found["body"]["id"])
        return command, found["replayed"]

    def assert_effects(self, count):
        for table, each in (("payment", 1), ("ledger_entry", 2), ("ibid.command", 1), ("ibid.event", 1),
                            ("ibid.audit", 1)):
            self.assertEqual(count * each, self.count(table), table)

    def test_old_and_new_binaries_work_on_one_store_while_it_is_migrated(self):  # K09
        keys = ["k-%d" % i for i in range(KEYS)]
        answers, errors = {key: [] for key in keys}, []
        began, migrated, finished = threading.Event(), threading.Event(), threading.Event()

        def work(binary, order, until):
            try:
                while True:
                    for key in order:
                        answers[key].append((binary, *self.answer(binary, key)))
                        began.set()
                    if until.is_set():
                        return
            except BaseException as error:  # pylint: disable=broad-except
                errors.append(error)
                began.set()

        # The old ones go on until the new ones have been through all keys.
        old = [threading.Thread(target=work, args=(self.old, order, finished)) for order in (keys[:6], keys[5::-1])]
        for thread in old:
            thread.start()
        began.wait(LIMIT_S)
        self.ibid(NEW, "migrate")
        migrated.set()
        new = [threading.Thread(target=work, args=(NEW, order, migrated)) for order in (keys[3:], keys[:2:-1])]
        for thread in new:
            thread.start()
        for thread in new:
            thread.join()
        finished.set()
        for thread in old:
            thread.join()
        self.assertEqual([], errors)
        for key, found in answers.items():
            self.assertEqual(1, len({command for _, command, _ in found}), (key, found))
            self.assertEqual(1, sum(not replayed for _, _, replayed in found), (key, found))
        for key in keys[3:6]:
            self.assertEqual({self.old, NEW}, {binary for binary, _, _ in answers[key]})
        self.assert_effects(KEYS)

    def test_a_request_accepted_by_one_is_a_replay_for_the_other(self):  # K09
        before = self.answer(self.old, "before")
        self.assertFalse(before[1])
        self.ibid(NEW, "migrate")
        after = self.answer(NEW, "after")
        self.assertFalse(after[1])
        self.assertEqual((before[0], True), self.answer(NEW, "before"))
        self.assertEqual((after[0], True), self.answer(self.old, "after"))
        for binary, key in ((self.old, "after"), (NEW, "before")):
            self.submit(binary, key, payload=self.payment("another"), code=4)
        self.assert_effects(2)

    def test_the_old_binary_reads_and_writes_on_the_new_schema(self):  # K09
        self.ibid(NEW, "migrate")
        self.ibid(NEW, "init", "--contracts", self.contracts)
        command, _ = self.answer(NEW, "k")
        words = ("command", "show", command, "--tenant", "acme", "--json")
        shown = [json.loads(self.ibid(binary, *words).stdout) for binary in (self.old, NEW)]
        for name in ("id", "state", "key", "status"):
            self.assertEqual(shown[0].get(name), shown[1].get(name))
        self.assertEqual("COMPLETED", shown[0]["state"])
        self.assertFalse(self.answer(self.old, "l")[1])
        self.submit(self.old, "m", payload='{"from":"A","to":"A","amount":1,"currency":"EUR"}', code=3)
        self.submit(NEW, "m", payload='{"from":"A","to":"A","amount":1,"currency":"EUR"}', code=3)
        listed = [self.ibid(binary, "command", "list", "--tenant", "acme", "--json").stdout.count('"key"')
                  for binary in (self.old, NEW)]
        self.assertEqual([3, 3], listed)
        for words in (["doctor"], ["migrate"], ["init", "--contracts", self.contracts]):
            self.ibid(self.old, *words)

    def test_a_migrated_store_has_the_schema_of_a_new_one(self):
        self.ibid(NEW, "migrate")
        migrated = self.schema()
        self.make_store()
        self.ibid(NEW, "init", "--contracts", self.contracts)
        self.assertEqual(self.schema(), migrated)

    def test_the_new_binary_asks_for_the_migration_and_loses_nothing(self):  # K09
        self.answer(self.old, "k")
        refused = self.submit(NEW, "l", code=1)
        self.assertRegex(refused.stderr, "schema 1.*ibid (init|migrate)")
        self.assertTrue(self.answer(self.old, "k")[1])
        self.assert_effects(1)
        self.ibid(NEW, "migrate")
        self.assertTrue(self.answer(NEW, "k")[1])

    def test_fingerprints_agree(self):  # K09 B03
        for payload in (self.payment("k"), '{"to":"B","from":"A","currency":"EUR","amount":1.500,"requestedAt":1}',
                        '{"amount":12345678901234567.89,"note":"\\u00e9\\ud83d\\ude00","x":[1e2,-0.0,null,{}]}'):
            prints = [self.ibid(binary, "fingerprint", "--contracts", self.contracts, "--tenant", "acme", "--actor",
                                "ann", "--operation", "create-payment", stdin=payload, store=False).stdout
                      for binary in (self.old, NEW)]
            self.assertRegex(prints[0], "[0-9a-f]{64}")
            self.assertEqual(prints[0], prints[1])


class Sqlite(Upgrade, unittest.TestCase):
    def make_store(self):
        self.store = "sqlite:" + os.path.join(tempfile.mkdtemp(dir=self.dir), "pay.db")

    def schema(self):
        with contextlib.closing(sqlite3.connect(self.store.partition(":")[2])) as db:
            rows = db.execute("select type, name, sql from sqlite_schema where name like 'ibid%' order by type, name")
            # The states are the same, written in another way: SQLite can't change the CHECK of a table that is there.
            check = re.compile(r"(?:  -- Not [^\n]*\n)?  state text not null\s+check \(state .*?\),\n(?=  scheme)", re.S)
            return [(kind, name, check.sub("", sql) if name == "ibid_command" else sql) for kind, name, sql in rows]

    def count(self, table):
        with contextlib.closing(sqlite3.connect(self.store.partition(":")[2])) as db:
            return db.execute("select count(*) from " + table.replace(".", "_")).fetchone()[0]


class Postgres(Upgrade, unittest.TestCase):
    def setUp(self):
        if not PG and REQUIRE_PG:
            self.fail("IBID_TEST_PG is not set, and IBID_TEST_REQUIRE_PG=1 forbids to go on without it")
        if not PG:
            self.skipTest("IBID_TEST_PG is not set")
        super().setUp()

    def psql(self, url, sql):
        return run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql, text=True).stdout.strip()

    def make_store(self):
        name = "ibid_upgrade_" + uuid.uuid4().hex[:12]
        self.store = re.sub(r"/[^/]*$", "/" + name, PG)
        self.psql(PG, 'create database "%s"' % name)
        self.addCleanup(self.psql, PG, 'drop database if exists "%s" with (force)' % name)

    def schema(self):
        dump = run("pg_dump", "--schema-only", "-n", "ibid", "-n", "ibid_internal", "-d", self.store, text=True).stdout
        return [line for line in dump.splitlines() if not re.match(r"\\(un)?restrict ", line)]

    def count(self, table):
        return int(self.psql(self.store, "select count(*) from " + table))

    def test_the_role_of_the_old_binary_goes_on_and_later_callers_get_no_more(self):  # K09 K05
        # On a server of its own: roles belong to all of its databases.
        script = r"""
            set -eu
            store() { echo "${IBID_TEST_PG%%/postgres}/$1" | sed "s|postgres@|$2@|"; }
            sql() { psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }
            submit() { echo '%(payment)s' | "$1" submit --store "$2" --contracts "%(contracts)s" --tenant acme \
                --actor ann --operation create-payment --key "$3" --json >/dev/null; }
            for name in one two; do
                sql "$IBID_TEST_PG" "create database $name"
                "%(old)s" init --store "$(store $name postgres)" --contracts "%(contracts)s" >/dev/null
                sql "$(store $name postgres)" "grant all on all tables in schema public to public"
            done
            sql "$IBID_TEST_PG" "create role pay login in role ibid_app"
            submit "%(old)s" "$(store one pay)" before
            "%(new)s" migrate --store "$(store one postgres)" >/dev/null
            sql "$IBID_TEST_PG" "create role caller login in role ibid_app"
            "%(new)s" migrate --store "$(store two postgres)" >/dev/null
            for binary in "%(old)s" "%(new)s"; do
                for name in one two; do submit "$binary" "$(store $name pay)" "after-$binary"; done
            done
            sql "$(store one pay)" "select count(*) from ibid.command"
            sql "$(store two caller)" "select count(*) from ibid.command"
            ! submit "%(new)s" "$(store two caller)" refused 2>&1
        """ % dict(old=self.old, new=NEW, contracts=self.contracts, payment=self.payment("k"))
        done = subprocess.run([os.path.join(SOURCE, "tools", "with-postgres"), "sh", "-c", script],
                              capture_output=True, text=True, env=environment(), timeout=300)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "^3\n0\n.*permission denied", done.stderr)


class Abi(unittest.TestCase):
    def test_a_program_built_with_the_previous_header_runs_on_this_library(self):  # K09
        baseline = build_baseline()
        with tempfile.TemporaryDirectory(prefix="ibid-abi-") as folder:
            program = os.path.join(folder, "transfer")
            library = os.path.join(baseline, "build", "libibid.so.0.1.0")
            run("cc", "-std=c11", "-I" + os.path.join(baseline, "include"), "-o", program,
                os.path.join(baseline, "examples", "c", "transfer.c"), library, "-lsqlite3", "-pthread")
            used = run("ldd", program, text=True, env=environment(LD_LIBRARY_PATH=BUILD)).stdout
            self.assertRegex(used, r"libibid\.so\.0 => %s/libibid" % re.escape(BUILD))
            words = [program, "sqlite:" + os.path.join(folder, "transfer.db"),
                     os.path.join(baseline, "examples", "c", "contracts")]
            outputs = [run(*words, text=True, env=environment(LD_LIBRARY_PATH=BUILD)).stdout for _ in range(2)]
            done = 'executed 201 {"done":true}\n'
            self.assertEqual([done + "replayed " + done, "replayed " + done + "replayed " + done], outputs)


if __name__ == "__main__":
    unittest.main()
