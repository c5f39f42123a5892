# SPDX-License-Identifier: Apache-2.0
"""Which SQLite and librdkafka run: pinned ones in `ibid`, the system's in libibid and in an `ibid` that is built for
them. What is told of them, what the binary lets others see, and both versions of SQLite on one file."""
import concurrent.futures
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["IBID_SOURCE_DIR"]
BINARY = os.environ["IBID_BIN"]
LIBRARY = os.environ["IBID_LIBRARY"]
SYSTEM_BINARY = os.environ.get("IBID_SYSTEM_BIN", BINARY)  # without it the build took the system's libraries
PINNED = SYSTEM_BINARY != BINARY
CONTRACTS = os.path.join(SOURCE, "examples", "payments")
LIMIT_S = 60
SQLITE_SAFE, KAFKA_SAFE = (3, 51, 3), (2, 3)
EACH, AT_ONCE = 60, 6


def run(binary, *words, **options):
    return subprocess.run([binary, *words], capture_output=True, text=True, timeout=LIMIT_S, **options)


def numbers(version):
    return tuple(map(int, version.split(".")))


def libraries(binary):
    listed = json.loads(run(binary, "version", "--json", check=True).stdout)["libraries"]
    return {one["name"]: (one["version"], one["pinned"]) for one in listed}


class Libraries(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-libraries-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.path = os.path.join(self.dir, "pay.db")
        self.store = "sqlite:" + self.path

    def init(self):
        run(BINARY, "init", "--store", self.store, "--contracts", CONTRACTS, check=True)

    def warnings(self, binary):
        done = run(binary, "doctor", "--store", self.store, "--json", check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        told = {one["what"]: one for one in found if " library " in one["what"]}
        self.assertEqual(2, len(told), done.stdout)
        return {what.partition(" ")[0]: one["advice"] for what, one in told.items() if one["level"] == "warn"}

    def test_the_pinned_versions_have_no_known_fault(self):
        if not PINNED:
            return
        found = libraries(BINARY)
        self.assertEqual({"SQLite", "librdkafka"}, set(found))
        self.assertGreaterEqual(numbers(found["SQLite"][0]), (3, 53))
        self.assertGreaterEqual(numbers(found["librdkafka"][0]), (2, 12))
        self.assertTrue(all(pinned for _, pinned in found.values()))
        self.init()
        self.assertEqual({}, self.warnings(BINARY))

    def test_the_systems_versions_are_told_with_what_they_cost(self):
        found = libraries(SYSTEM_BINARY)
        self.assertEqual((sqlite3.sqlite_version, False), found["SQLite"])
        self.assertFalse(found["librdkafka"][1])
        self.init()
        warnings = self.warnings(SYSTEM_BINARY)
        self.assertEqual(numbers(sqlite3.sqlite_version) < SQLITE_SAFE, "SQLite" in warnings)
        self.assertEqual(numbers(found["librdkafka"][0]) < KAFKA_SAFE, "Kafka" in warnings)
        self.assertRegex(warnings.get("SQLite", "lose a commit"), "lose a commit")
        self.assertRegex(warnings.get("Kafka", "idempotent producer"), "idempotent producer")

    def test_version_prints_a_line_for_each(self):
        for binary, origin in ((BINARY, "pinned" if PINNED else "the system's"), (SYSTEM_BINARY, "the system's")):
            found = libraries(binary)
            lines = run(binary, "version", check=True).stdout.splitlines()
            self.assertEqual(["%s %s, %s" % (name, found[name][0], origin) for name in ("SQLite", "librdkafka")], lines[1:])

    def test_nothing_finds_the_pinned_symbols_and_the_library_has_the_callers(self):
        needed = {file: re.findall(r"NEEDED +(\S+)", run("objdump", "-p", file, check=True).stdout) for file in (BINARY, LIBRARY)}
        self.assertIn("libsqlite3.so.0", needed[LIBRARY])
        self.assertNotIn("sqlite3_open", run("nm", "-D", "--defined-only", LIBRARY, check=True).stdout)
        if PINNED:
            self.assertNotRegex(" ".join(needed[BINARY]), "sqlite|rdkafka")
            self.assertNotIn("sqlite3_", run("nm", "-D", BINARY, check=True).stdout)

    def submit(self, number):
        body = os.path.join(self.dir, "%d.json" % number)
        with open(body, "w", encoding="ascii") as file:
            file.write('{"from":"A","to":"B","amount":1,"currency":"EUR"}')
        binary = (BINARY, SYSTEM_BINARY)[number % 2]
        done = run(binary, "submit", "--store", self.store, "--contracts", CONTRACTS, "--tenant", "t", "--operation",
                   "create-payment", "--key", "k-%d" % number, body)
        return number, done.returncode, done.stderr

    def test_processes_with_either_sqlite_share_a_file_and_lose_nothing(self):
        """Each opens the file, commits, moves the WAL if it is the last, and ends."""
        self.init()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            ends = list(pool.map(self.submit, range(EACH)))
        acknowledged = {"k-%d" % number for number, code, _ in ends if code == 0}
        self.assertEqual({"k-%d" % number for number in range(EACH)}, acknowledged, [end for end in ends if end[1]])
        with sqlite3.connect(self.path) as db:
            self.assertEqual(acknowledged, {key for key, in db.execute("select key from ibid_command")})
            self.assertEqual([("ok",)], db.execute("pragma integrity_check").fetchall())

    def test_an_archive_that_is_not_the_known_one_is_refused(self):
        fake = os.path.join(self.dir, "npm")
        with open(fake, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nwhile [ \"$1\" != --pack-destination ]; do shift; done\necho x >\"$2/x.tgz\"\n")
        os.chmod(fake, 0o755)
        done = run(sys.executable, os.path.join(SOURCE, "tools", "pinned-libs"),
                   env=dict(os.environ, XDG_CACHE_HOME=self.dir, PATH=self.dir + ":" + os.environ["PATH"]))
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, "SHA-256")
        self.assertEqual("", done.stdout)
        left = os.listdir(os.path.join(self.dir, "ibid"))
        self.assertEqual([], [name for name in left if not name.endswith((".lock", ".new"))])


if __name__ == "__main__":
    unittest.main()
