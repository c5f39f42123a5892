# SPDX-License-Identifier: Apache-2.0
"""The library as its users meet it: installed into a fresh prefix, found by pkg-config, linked by
programs that know nothing but ibid.h."""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest

SOURCE = os.environ["IBID_SOURCE_DIR"]
BUILD = os.environ["IBID_BUILD_DIR"]
POSTGRES = os.environ.get("IBID_TEST_PG")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="ibid-install-")
        staged = os.path.join(cls.dir, "stage")
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", staged],
                       check=True, stdout=subprocess.DEVNULL)
        cls.root = staged
        found = subprocess.run(["find", staged, "-name", "libibid.pc"], check=True, capture_output=True, text=True)
        cls.pc = found.stdout.strip()
        cls.lib = os.path.dirname(os.path.dirname(cls.pc))
        cls.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(cls.pc), PKG_CONFIG_SYSROOT_DIR=staged,
                       LD_LIBRARY_PATH=cls.lib)
        cls.contracts = os.path.join(SOURCE, "examples", "c", "contracts")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def build(self, name, *flags):
        program = os.path.join(self.dir, name)
        libs = subprocess.run(["pkg-config", "--cflags", "--libs", "libibid"], check=True, capture_output=True,
                              text=True, env=self.env).stdout.split()
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-I/usr/include/postgresql",
                        os.path.join(SOURCE, "examples", "c", name + ".c"), *libs, *flags, "-o", program], check=True)
        return program

    def test_nothing_in_it_ends_the_process_and_no_hook_is_exported(self):
        def names(kind):
            library = os.path.join(self.lib, "libibid.so")
            said = subprocess.run(["nm", "-D", kind, library], check=True, capture_output=True, text=True).stdout
            return {line.split()[-1].split("@")[0] for line in said.splitlines()}
        imported, exported = names("--undefined-only"), names("--defined-only")
        self.assertIn("sqlite3_step", imported)
        self.assertEqual(imported & {"kill", "killpg", "raise", "tgkill", "pthread_kill", "sigqueue", "exit", "_exit", "_Exit"}, set())
        self.assertIn("ibid_submit", exported)
        self.assertEqual({name for name in exported if "hook" in name or "fault" in name}, set())

    def test_transfer_moves_money_once(self):
        program = self.build("transfer", "-lsqlite3")
        path = os.path.join(self.dir, "transfer.db")
        for expected in ("executed 201 {\"done\":true}\nreplayed executed 201 {\"done\":true}\n",
                         "replayed executed 201 {\"done\":true}\nreplayed executed 201 {\"done\":true}\n"):
            ran = subprocess.run([program, "sqlite:" + path, self.contracts], env=self.env, capture_output=True, text=True)
            self.assertEqual(ran.stderr, "")
            self.assertEqual(ran.stdout, expected)
        with sqlite3.connect(path) as db:
            self.assertEqual(db.execute("select id, cents from account order by id").fetchall(), [("A", 8750), ("B", 1250)])

    def tally(self, store, query):
        """Kill it on the way, run two at once, and count: every line once."""
        program = self.build("tally", "-lsqlite3", "-lpq")
        words = os.path.join(self.dir, "words-%d" % len(store))
        with open(words, "w", encoding="utf-8") as file:
            file.writelines("w%d\n" % (i % 7) for i in range(400))
        command = [program, store, self.contracts, words]
        for lines in (40, 160):
            running = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL)
            while running.poll() is None and query() < lines:
                pass
            running.send_signal(signal.SIGKILL)
            running.wait()
        pair = [subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        said = [re.fullmatch(r"(\d+) counted, (\d+) counted before, 0 failed\n", process.communicate()[0]) for process in pair]
        self.assertTrue(all(said), said)
        self.assertEqual([process.returncode for process in pair], [0, 0])
        self.assertEqual(query(), 400)

    def test_tally_on_sqlite_counts_every_line_once_through_kills(self):
        path = os.path.join(self.dir, "tally.db")

        def query():
            try:
                with sqlite3.connect(path, timeout=20) as db:
                    return db.execute("select coalesce(sum(count), 0) from tally").fetchone()[0]
            except sqlite3.OperationalError:
                return 0
        self.tally("sqlite:" + path, query)

    def test_tally_on_postgres_counts_every_line_once_through_kills(self):
        self.assertTrue(POSTGRES, "IBID_TEST_PG is not set")
        name = "tally_%d" % os.getpid()
        store = POSTGRES.rsplit("/", 1)[0] + "/" + name
        subprocess.run(["psql", "-q", POSTGRES, "-c", "create database " + name], check=True)

        def query():
            ran = subprocess.run(["psql", "-At", store, "-c", "select coalesce(sum(count), 0) from tally"],
                                 capture_output=True, text=True)
            return int(ran.stdout or 0) if ran.returncode == 0 else 0
        try:
            self.tally(store, query)
        finally:
            subprocess.run(["psql", "-q", POSTGRES, "-c", "drop database %s with (force)" % name], check=True)

    def adopt(self, store, query):
        """Money is moved once, in the program's own transaction, however often it runs."""
        program = self.build("adopt", "-lsqlite3", "-lpq")
        for first in ("executed", "replayed executed"):
            ran = subprocess.run([program, store, self.contracts], env=self.env, capture_output=True, text=True)
            self.assertEqual(ran.stderr, "")
            self.assertEqual(ran.stdout, "%s 201 {\"done\":true}\nreplayed executed 201 {\"done\":true}\n" % first)
        self.assertEqual(query(), "A 8750, B 1250")

    def test_adopt_on_sqlite_moves_money_once_in_the_programs_own_transaction(self):
        path = os.path.join(self.dir, "adopt.db")

        def query():
            with sqlite3.connect(path) as db:
                return ", ".join("%s %d" % row for row in db.execute("select id, cents from account order by id"))
        self.adopt("sqlite:" + path, query)

    def test_adopt_on_postgres_moves_money_once_in_the_programs_own_transaction(self):
        self.assertTrue(POSTGRES, "IBID_TEST_PG is not set")
        name = "adopt_%d" % os.getpid()
        store = POSTGRES.rsplit("/", 1)[0] + "/" + name
        subprocess.run(["psql", "-q", POSTGRES, "-c", "create database " + name], check=True)

        def query():
            sql = "select string_agg(id || ' ' || cents, ', ' order by id) from account"
            return subprocess.run(["psql", "-At", store, "-c", sql], check=True, capture_output=True, text=True).stdout.strip()
        try:
            self.adopt(store, query)
        finally:
            subprocess.run(["psql", "-q", POSTGRES, "-c", "drop database %s with (force)" % name], check=True)

    def test_only_the_public_names_are_exported(self):
        library = os.path.realpath(os.path.join(self.lib, "libibid.so"))
        listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        names = {line.split()[-1].split("@")[0] for line in listed.splitlines() if " A " not in line}
        with open(os.path.join(SOURCE, "include", "ibid.h"), encoding="utf-8") as header:
            declared = set(re.findall(r"^IBID_API [^;(]*?\b(ibid_[a-z0-9_]+)\(", header.read(), re.M))
        self.assertGreater(len(declared), 50)
        self.assertIn("ibid_adopt_sqlite", declared)
        self.assertEqual(names, declared)
        soname = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True).stdout
        self.assertRegex(soname, r"SONAME\s+libibid\.so\.0\n")


if __name__ == "__main__":
    unittest.main()
