# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is what happens: every `console` block of the pages below is typed in
and compared. An ellipsis stands for any text, a line with nothing else for any number of lines."""
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

SOURCE = os.environ["IBID_SOURCE_DIR"]
BINARY = os.environ["IBID_BIN"]


def blocks(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as page:
        return re.findall(r"^```console\n(.*?)^```$", page.read(), re.M | re.S)


def steps(block):
    """(command, expected output) pairs; a command goes on while its line ends in | or \\."""
    found, lines = [], block.splitlines()
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            found[-1][1].append(line)
            continue
        command = [line[2:]]
        while command[-1].endswith(("|", "\\")):
            command.append(lines.pop(0))
        found.append(("\n".join(command), []))
    return found


def text_pattern(text):
    """A column is as wide as what stands in it, such as an age."""
    return "  +".join(map(re.escape, re.split("  +", text)))


def pattern(expected):
    parts = [r"(?:.*\n)*?" if line == "…" else ".*".join(map(text_pattern, line.split("…"))) + r"\n?" for line in expected]
    return re.compile("".join(parts))


def pages():
    """Every page, by its path: its text without blocks of code."""
    found = [name for name in os.listdir(SOURCE) if name.endswith(".md")]
    for folder, _, names in os.walk(os.path.join(SOURCE, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), SOURCE) for name in names if name.endswith(".md")]
    texts = {}
    for name in found:
        with open(os.path.join(SOURCE, name), encoding="utf-8") as page:
            texts[name] = re.sub(r"^```.*?^```$", "", page.read(), flags=re.M | re.S)
    return texts


def chapters(text):
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


class Documentation(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-docs-")
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(self.dir, "examples"))
        os.symlink(BINARY, os.path.join(self.dir, "ibid"))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def walk(self, page, first, **more):
        """All blocks from `first` on in one shell, so that settings and files carry over."""
        pairs = [step for block in blocks(page)[first:] for step in steps(block)]
        self.assertGreater(len(pairs), 5)
        mark = "=-=-=-=-="
        script = "exec 2>&1\n" + "".join("%s\necho '%s'\n" % (command, mark) for command, _ in pairs)
        environment = {"PATH": self.dir + ":" + os.environ["PATH"], "HOME": self.dir, "NO_COLOR": "1", **more}
        ran = subprocess.run(["bash"], input=script, cwd=self.dir, env=environment, capture_output=True, text=True)
        outputs = ran.stdout.split(mark + "\n")
        self.assertEqual(len(outputs), len(pairs) + 1, ran.stdout)
        for (command, expected), output in zip(pairs, outputs):
            self.assertRegex(output, re.compile(r"\A" + pattern(expected).pattern + r"\Z"), command)

    def test_every_link_leads_to_a_page_and_a_chapter_that_exist(self):
        texts, lost = pages(), []
        for page, text in texts.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, chapter = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                there = os.path.exists(os.path.join(SOURCE, path))
                if not there or (chapter and chapter not in chapters(texts[path])):
                    lost.append((page, target))
        self.assertEqual(lost, [])

    def test_the_readme_shows_what_happens(self):
        self.walk("README.md", 1)  # the first block is make

    def test_the_command_line_page_shows_what_happens(self):
        self.walk("docs/cli.md", 0)

    def test_the_page_of_verbs_shows_what_is_in_the_files_and_what_happens(self):
        with open(os.path.join(SOURCE, "docs/explain/adding-a-verb.md"), encoding="utf-8") as page:
            shown = re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", page.read(), re.M | re.S)
        self.assertEqual(len(shown), 5)
        for path, code in shown:
            with open(os.path.join(SOURCE, path), encoding="utf-8") as source:
                self.assertIn(code, source.read(), path)
        self.walk("docs/explain/adding-a-verb.md", 0)

    def test_the_case_management_page_shows_what_happens(self):
        self.walk("examples/cases/README.md", 0, PORT="0")

    # ---- Runbooks: on a store where it happened -------------------------------------------------

    def ibid(self, *args, text=None):
        done = subprocess.run([BINARY, *args], cwd=self.dir, input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def add_contract(self, name, work):
        """The payments example's contract, with another handler."""
        with open(os.path.join(SOURCE, "examples/payments/create-payment.yaml"), encoding="utf-8") as example:
            text = example.read().replace("command: create-payment", "command: " + name)
        text = re.sub(r"^(route|serialize_by):.*\n", "", text, flags=re.M)
        with open(os.path.join(self.dir, "contracts", name + ".yaml"), "w", encoding="utf-8") as contract:
            for pattern, new in ((r"answer: .*\n(?:  .*\n)+", "answer: { store: full }\n"), (r"reject:\n(?:  .*\n)+", ""),
                                 (r"emits:\n(?:  .*\n)+", "emits: [PaymentCreated]\n"), (r"handler:.*", work)):
                text = re.sub(pattern, new, text)  # the program answers and tells by itself
            contract.write(text)

    def silence_worker(self, operation, key):
        """A command that was paid, and whose worker went silent before it could say so: as ibid_stage leaves it.
        Made from a rejected one, which has no audit entry either."""
        payment = '{"from":"A","to":"A","amount":12.50,"currency":"EUR"}'
        more = ["--contracts", "contracts", "--tenant", "acme", "--operation"]
        subprocess.run([BINARY, "submit", "--store", "sqlite:pay.db", *more, "create-payment", "--key", key], cwd=self.dir,
                       input=payment, capture_output=True, text=True)
        mark = re.search("[0-9a-f]{64}", self.ibid("fingerprint", *more, operation, text=payment)).group()
        db = sqlite3.connect(os.path.join(self.dir, "pay.db"))
        with db:
            db.execute("update ibid_command set operation = ?, state = 'IN_PROGRESS', fingerprint = ?, status = 0, "
                       "reason = null, text = null, finished_us = 0, lease_token = 4294967296, lease_until_us = 1 "
                       "where key = ? and state = 'REJECTED'", (operation, bytes.fromhex(mark), key))
            db.execute("insert into payment (tenant, id, payer, payee, amount, currency, created_at) "
                       "select tenant, id, 'A', 'B', '12.50', 'EUR', 'today' from ibid_command where key = ?", (key,))
        db.close()

    def make_trouble(self):
        shutil.copytree(os.path.join(SOURCE, "examples/payments"), os.path.join(self.dir, "contracts"))
        with open(os.path.join(self.dir, "contracts", "look.sql"), "w", encoding="utf-8") as script:
            script.write("select 201 as status, null as body, 'payment' as resource_type, id as resource_id\n"
                         "  from payment where tenant = :tenant and id = :command_id;\n")
        self.add_contract("card-payment", "handler: callback\nstaged: { lease: 30s, recover: { sql: look.sql } }")
        self.add_contract("bank-payment", "handler: callback\nstaged: { lease: 30s, recover: human }")
        self.ibid("init", "--store", "sqlite:pay.db", "--contracts", "contracts")
        self.silence_worker("card-payment", "k-1")
        self.silence_worker("bank-payment", "k-2")

    def test_the_runbook_of_stale_commands_shows_what_happens(self):  # K03
        self.make_trouble()
        self.walk("docs/runbooks/stale-in-progress.md", 0, IBID_STORE="sqlite:pay.db", IBID_CONTRACTS="contracts")

    def test_the_page_of_exceptions_shows_what_happens(self):  # J01 J02
        self.make_trouble()
        self.silence_worker("bank-payment", "k-3")
        self.walk("docs/exceptions.md", 0, IBID_STORE="sqlite:pay.db", IBID_CONTRACTS="contracts")

    def test_the_runbook_of_alerts_shows_what_happens(self):  # K03
        self.make_trouble()
        self.walk("docs/runbooks/alerts.md", 0, IBID_STORE="sqlite:pay.db", IBID_CONTRACTS="contracts")


    # ---- The outbox: an event that no relay brings anywhere -------------------------------------

    def strand_event(self):
        shutil.copytree(os.path.join(SOURCE, "examples/payments"), os.path.join(self.dir, "contracts"))
        path = os.path.join(self.dir, "contracts", "payment-created.yaml")
        with open(path, encoding="utf-8") as contract:
            text = contract.read().replace("deliver_to: []", "deliver_to: [kafka-main]")
        with open(path, "w", encoding="utf-8") as contract:
            contract.write(text)
        self.ibid("init", "--store", "sqlite:pay.db", "--contracts", "contracts")
        self.ibid("submit", "--store", "sqlite:pay.db", "--contracts", "contracts", "--tenant", "acme", "--operation",
                  "create-payment", "--key", "k-1", text='{"from":"A","to":"B","amount":12.50,"currency":"EUR"}')

    def test_the_runbook_of_the_outbox_shows_what_happens(self):  # K03
        self.strand_event()
        self.walk("docs/runbooks/outbox-stuck.md", 0, IBID_STORE="sqlite:pay.db", IBID_CONTRACTS="contracts")

    def test_every_command_of_the_outboxs_runbook_may_be_typed_in(self):  # K03
        self.strand_event()
        with open(os.path.join(SOURCE, "docs/runbooks/outbox-stuck.md"), encoding="utf-8") as page:
            text = page.read()
        given = {"EVENT_ID": "0197a1c2-0000-7000-8000-000000000001", "ID": "0197a1c2-0000-7000-8000-000000000002",
                 "TENANT": "acme", "OPERATION": "create-payment", "KEY": "k-1", "NAME": "kafka-main", "R": "why"}
        lines = re.findall(r"^(ibid .*?)(?: {3}.*)?$", text, re.M) + re.findall(r"`(ibid [^`]*)`", text)
        self.assertGreaterEqual(len(lines), 12)
        for line in sorted(set(re.sub(r"\s+", " ", line) for line in lines)):
            with self.subTest(line):
                ran = subprocess.run([BINARY, *(given.get(word, word) for word in line.split()[1:])], cwd=self.dir,
                                     env={"IBID_STORE": "sqlite:pay.db", "IBID_CONTRACTS": "contracts"}, timeout=60,
                                     capture_output=True, text=True)
                self.assertNotEqual(ran.returncode, 2, ran.stderr)  # whatever it finds: the line is right



if __name__ == "__main__":
    unittest.main()
