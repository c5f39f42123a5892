# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is what happens: every `console` block of the pages below is typed in
and compared. An ellipsis stands for any text, a line with nothing else for any number of lines."""
import os
import re
import shutil
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


def pattern(expected):
    parts = [r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n?" for line in expected]
    return re.compile("".join(parts))


class Documentation(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-docs-")
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(self.dir, "examples"))
        os.symlink(BINARY, os.path.join(self.dir, "ibid"))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def walk(self, page, first):
        """All blocks from `first` on in one shell, so that settings and files carry over."""
        pairs = [step for block in blocks(page)[first:] for step in steps(block)]
        self.assertGreater(len(pairs), 5)
        mark = "=-=-=-=-="
        script = "exec 2>&1\n" + "".join("%s\necho '%s'\n" % (command, mark) for command, _ in pairs)
        environment = {"PATH": self.dir + ":" + os.environ["PATH"], "HOME": self.dir, "NO_COLOR": "1"}
        ran = subprocess.run(["bash"], input=script, cwd=self.dir, env=environment, capture_output=True, text=True)
        outputs = ran.stdout.split(mark + "\n")
        self.assertEqual(len(outputs), len(pairs) + 1, ran.stdout)
        for (command, expected), output in zip(pairs, outputs):
            self.assertRegex(output, re.compile(r"\A" + pattern(expected).pattern + r"\Z"), command)

    def test_the_readme_shows_what_happens(self):
        self.walk("README.md", 1)  # the first block is make

    def test_the_command_line_page_shows_what_happens(self):
        self.walk("docs/cli.md", 0)

    def test_the_case_management_page_shows_what_happens(self):
        self.walk("examples/cases/README.md", 0)


if __name__ == "__main__":
    unittest.main()
