# SPDX-License-Identifier: Apache-2.0
"""examples/proxy, as somebody meets it: the commands of its page are typed in, and do what it says. On both stores."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import psycopg2

BIN = os.environ["IBID_BIN"]
SOURCE = os.environ["IBID_SOURCE_DIR"]
PG = os.environ.get("IBID_TEST_PG")
EXAMPLE = os.path.join(SOURCE, "examples", "proxy")
LIMIT_S = 60

sys.path.append(os.path.join(SOURCE, "tools"))
from ports import free_ports  # noqa: E402


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as handle:
        return handle.read()


def shell_blocks(page):
    return re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)


class Reply:
    """What `curl -i` shows."""

    def __init__(self, shown):
        head, _, self.body = shown.replace("\r\n", "\n").partition("\n\n")
        first, *lines = head.split("\n")
        self.status = int(first.split()[1])
        self.headers = dict(line.lower().split(": ", 1) for line in lines)
        self.json = json.loads(self.body)


class Page:
    """The page, block by block, with ports and a store of this test's own."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-proxy-example-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(self.dir, "examples"))
        os.symlink(BIN, os.path.join(self.dir, "ibid"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
        self.environment["PATH"] = self.dir + ":" + self.environment["PATH"]
        shop, front = free_ports(2)
        page = read("examples", "proxy", "README.md")
        for written, own in ((":3000", ":%d" % shop), ("shop.py 3000", "shop.py %d" % shop), (":8080", ":%d" % front),
                             ("sqlite:keys.db", self.store())):
            self.assertIn(written, page)
            page = page.replace(written, own)
        self.blocks = shell_blocks(page)

    def start(self, block):
        """Typed into a terminal: what follows goes into another one."""
        with open(os.path.join(self.dir, "errors"), "w", encoding="utf-8") as errors:
            terminal = subprocess.Popen(["bash", "-c", block], cwd=self.dir, env=self.environment, stdout=subprocess.PIPE,
                                        stderr=errors, text=True, start_new_session=True)
        self.addCleanup(self.close, terminal)
        shown = ""
        while not ("the shop is open at" in shown and "ibid serves at" in shown):
            line = terminal.stdout.readline()
            self.assertTrue(line, shown + read(self.dir, "errors"))
            shown += line
        return shown

    def close(self, terminal):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(terminal.pid, signal.SIGTERM)
        terminal.communicate(timeout=LIMIT_S)

    def type(self, command):
        ran = subprocess.run(["bash", "-c", command], cwd=self.dir, env=self.environment, capture_output=True, text=True,
                             timeout=LIMIT_S)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return Reply(ran.stdout) if " -i " in command else json.loads(ran.stdout)

    def await_status(self, command, status):
        """Where the page lets people wait, look as often as it takes."""
        end = time.monotonic() + LIMIT_S
        while True:
            reply = self.type(command)
            if reply.status == status:
                return reply
            self.assertLess(time.monotonic(), end, reply.body)
            time.sleep(0.05)

    def test_it_does_what_it_says(self):
        begin, retry, conflict, vase = (block.rstrip("\n") for block in self.blocks)
        self.start(begin)

        first, again, orders = map(self.type, retry.split("\n"))
        self.assertEqual((first.status, first.headers["location"], first.json["item"]), (201, "/orders/1", "tea"))
        self.assertNotIn("idempotent-replayed", first.headers)
        self.assertEqual((again.status, again.body, again.headers["location"]), (201, first.body, "/orders/1"))
        self.assertEqual(again.headers["idempotent-replayed"], "true")
        self.assertEqual([order["item"] for order in orders], ["tea"])

        refused = self.type(conflict)
        self.assertEqual((refused.status, refused.json["type"]), (409, "/problems/key-reused"))

        ask, pause, retry, look = vase.split("\n")
        self.assertRegex(pause, r"^sleep \d+$")
        self.assertEqual(ask, retry)
        unknown = self.type(ask)
        self.assertEqual((unknown.status, unknown.json["type"]), (502, "/problems/upstream-unknown"))
        self.assertRegex(unknown.headers["location"], "^/v1/operations/")
        found = self.await_status(retry, 200)
        self.assertEqual((found.json["item"], found.headers["idempotent-replayed"]), ("a vase", "true"))
        orders = self.type(look)
        self.assertEqual([order["item"] for order in orders], ["tea", "a vase"])
        self.assertEqual(len({order["key"] for order in orders}), 2)


class PageOnSqlite(Page, unittest.TestCase):
    def store(self):
        return "sqlite:keys.db"


@unittest.skipUnless(PG, "needs PostgreSQL (tools/with-postgres)")
class PageOnPostgres(Page, unittest.TestCase):
    def store(self):
        name = "proxy_example_" + uuid.uuid4().hex[:12]
        self.admin("create database " + name)
        self.addCleanup(self.admin, "drop database %s with (force)" % name)
        return PG.rsplit("/", 1)[0] + "/" + name

    def admin(self, sql):
        with contextlib.closing(psycopg2.connect(PG)) as db:
            db.autocommit = True
            db.cursor().execute(sql)


class Documented(unittest.TestCase):
    """The contract that docs/proxy.md shows is one, beside the example's defaults."""

    def check(self, contract):
        with tempfile.TemporaryDirectory(prefix="ibid-proxy-docs-") as home:
            shutil.copy(os.path.join(EXAMPLE, "contracts", "defaults.yaml"), home)
            with open(os.path.join(home, "shown.yaml"), "w", encoding="utf-8") as handle:
                handle.write(contract)
            return subprocess.run([BIN, "contract", "check", "--contracts", home], capture_output=True, text=True,
                                  timeout=LIMIT_S)

    def test_the_contract_of_the_page_is_accepted(self):
        (shown,) = re.findall(r"^```yaml\n(.*?)^```$", read("docs", "proxy.md"), re.M | re.S)
        checked = self.check(shown)
        self.assertEqual((checked.returncode, checked.stdout), (0, "1 contract, 0 problems\n"), checked.stderr)
        self.assertNotEqual(self.check(shown.replace("error: unknown", "")).returncode, 0)

    def test_the_contracts_of_the_example_are_accepted(self):
        checked = subprocess.run([BIN, "contract", "check", "--contracts", os.path.join(EXAMPLE, "contracts")],
                                 capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
