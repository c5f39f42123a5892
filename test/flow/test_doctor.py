# SPDX-License-Identifier: Apache-2.0
"""`ibid doctor` on a server whose settings lose commits. They belong to the whole server, so this one has
a server of its own."""
import json
import os
import subprocess
import sys
import time
import unittest

SOURCE = os.environ["IBID_SOURCE_DIR"]
BINARY = os.environ["IBID_BIN"]
OWN = "IBID_TEST_OWN_PG"  # set: IBID_TEST_PG is ours to change
LIMIT_S = 60


class Doctor(unittest.TestCase):
    def setUp(self):
        self.store = os.environ["IBID_TEST_PG"]
        subprocess.run([BINARY, "migrate", "--store", self.store], check=True, capture_output=True)

    def sql(self, text):
        done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.store, "-c", text],
                              check=True, capture_output=True, text=True, timeout=LIMIT_S)
        return done.stdout.strip()

    def set(self, name, value):
        """A reload reaches new connections a moment after it was asked for."""
        self.sql("alter system set %s = %s" % (name, value))
        self.sql("select pg_reload_conf()")
        end = time.monotonic() + LIMIT_S
        while self.sql("show " + name) != value:
            self.assertLess(time.monotonic(), end, name)

    def doctor(self, code):
        done = subprocess.run([BINARY, "doctor", "--store", self.store, "--json"], capture_output=True,
                              text=True, timeout=LIMIT_S)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        return {(one["level"], one["what"]): one["advice"] for one in findings
                if one["level"] != "ok" and " library " not in one["what"]}  # those: test_libraries.py

    def test_a_server_that_can_lose_commits_is_refused_with_advice(self):
        self.assertEqual({}, self.doctor(0))
        for name, level, code in (("fsync", "refuse", 8), ("synchronous_commit", "refuse", 8),
                                  ("full_page_writes", "warn", 0)):
            with self.subTest(name=name):
                self.set(name, "off")
                found = self.doctor(code)
                self.assertEqual([(level, name + "=off")], list(found))
                self.assertRegex(found[level, name + "=off"], r"\bon\b")
                self.set(name, "on")
        self.assertEqual({}, self.doctor(0))


if __name__ == "__main__":
    if OWN not in os.environ:
        sys.exit(subprocess.run([os.path.join(SOURCE, "tools", "with-postgres"), sys.executable, __file__],
                                env=dict(os.environ, **{OWN: "1"})).returncode)
    unittest.main()
