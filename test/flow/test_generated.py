# SPDX-License-Identifier: Apache-2.0
"""Requests that Schemathesis generates from /openapi.json: what the document allows is accepted or refused as it says,
what it forbids is refused, and every answer is one that it describes. `make soak` runs it.

IBID_GENERATED: how many requests for each operation and kind (200). IBID_GENERATED_SEED: which ones."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from serve_bed import BIN, DEFAULTS, LIMIT_S, NOTE, POSTGRES_TYPES, SCHEMA, SQLITE_TYPES, Postgres, Server, Sqlite
from test_openapi import SCRIPTS, TYPED

ROOT = os.environ["IBID_SOURCE_DIR"]
TOOL = "schemathesis==4.32.5"
COUNT = os.environ.get("IBID_GENERATED", "200")
SEED = os.environ.get("IBID_GENERATED_SEED") or str(random.randrange(1 << 32))
CHECKS = ("positive_data_acceptance", "negative_data_rejection", "not_a_server_error", "status_code_conformance",
          "content_type_conformance", "response_headers_conformance", "response_schema_conformance")

# Rules that no schema can tell: of a version that there is not, and of one account on both sides.
RULES = "".join("""\
[[operations]]
include-operation-id = "%s"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429, "5xx"]
""" % name for operation in ("send-notice", "create-payment") for name in (operation, "ibid.submit." + operation))


def tool():
    """Schemathesis, in an environment of its own next to what was built."""
    home = os.path.join(os.environ.get("IBID_BUILD_DIR") or os.path.join(ROOT, "build"), TOOL.replace("==", "-"))
    program = os.path.join(home, "bin", "schemathesis")
    if not os.path.exists(program):
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, timeout=300)
        subprocess.run([os.path.join(home, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", TOOL],
                       check=True, timeout=600)
    return program


class Generated:
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-generated-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def all_is_as_described(self, contracts):
        self.contracts = contracts
        self.open_store()
        subprocess.run([BIN, "init", "--store", self.url, "--contracts", contracts], check=True, capture_output=True,
                       timeout=LIMIT_S)
        token = subprocess.run([BIN, "token", "create", "--store", self.url, "--tenant", "t", "--client", "web", "--roles",
                                "client,operator,approver,admin"], check=True, capture_output=True, text=True, timeout=LIMIT_S)
        secret = next(line.split()[-1] for line in token.stdout.splitlines() if "ibid_" in line)
        server = Server(self)
        with open(os.path.join(self.dir, "schemathesis.toml"), "w", encoding="utf-8") as handle:
            handle.write(RULES)
        done = subprocess.run([tool(), "run", server.address + "/openapi.json", "--seed", SEED, "-n", COUNT, "--checks",
                               ",".join(CHECKS), "--phases", "coverage,fuzzing", "--continue-on-failure",
                               "--suppress-health-check", "filter_too_much,too_slow", "--request-timeout", str(LIMIT_S),
                               "-H", "Authorization: Bearer " + secret], cwd=self.dir, capture_output=True, text=True,
                              timeout=3600)
        print("seed %s: %s" % (SEED, done.stdout.strip().splitlines()[-1].strip(" =")), file=sys.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIsNone(server.process.poll(), server.log())

    def test_cases(self):
        self.all_is_as_described(os.path.join(ROOT, "examples", "cases"))

    def test_payments(self):
        self.all_is_as_described(os.path.join(ROOT, "examples", "payments"))

    def test_every_type_of_field(self):
        contracts = os.path.join(self.dir, "contracts")
        os.mkdir(contracts)
        scoped = "key: { from: header, generated_by: client, scope: [client, resource], retain: 30d, after_expiry: refuse }\n"
        routed = NOTE % {"name": "routed", "version": 1, "more": scoped + "route: POST /topics/{topic}/routed"}
        unrouted = NOTE % {"name": "unrouted", "version": 1, "more": scoped}
        for name, text in (("defaults.yaml", DEFAULTS), ("typed.yaml", TYPED), ("routed.yaml", routed),
                           ("unrouted.yaml", unrouted), ("schema.sqlite.sql", SCHEMA % SQLITE_TYPES),
                           ("schema.postgres.sql", SCHEMA % POSTGRES_TYPES),
                           *(("note.%s.sql" % store, script) for store, script in SCRIPTS.items())):
            with open(os.path.join(contracts, name), "w", encoding="utf-8") as handle:
                handle.write(text)
        self.all_is_as_described(contracts)


class GeneratedSqlite(Generated, Sqlite, unittest.TestCase):
    pass


class GeneratedPostgres(Generated, Postgres, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
