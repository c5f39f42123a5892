# SPDX-License-Identifier: Apache-2.0
"""One look at /metrics, and promtool."""
import os
import re
import shutil
import subprocess
import time

from serve_bed import LIMIT_S

SOURCE = os.environ["IBID_SOURCE_DIR"]
RULES = os.path.join(SOURCE, "deploy", "prometheus")
PROMTOOL = shutil.which("promtool")
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
DECISIONS = ("executed", "rejected", "linked", "conflict", "in_progress", "failed", "unknown", "expired", "undecided")


def promtool(*args, text=None):
    return subprocess.run([PROMTOOL, *args], input=text, cwd=RULES, capture_output=True, text=True, timeout=LIMIT_S)


class Page:
    """One look at /metrics."""

    def __init__(self, server):
        answer = server.get("/metrics")
        assert answer.status == 200, answer
        self.headers, self.text = answer.headers, answer.body.decode()
        self.samples = {}
        for line in self.text.splitlines():
            if not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                key = (name, frozenset(LABEL.findall(labels or "")))
                assert key not in self.samples, line
                self.samples[key] = float(value)

    def get(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())))

    def commands(self, operation):
        """{"executed": 2, "executed again": 1}: those that are not 0."""
        counted = {}
        for decision in DECISIONS:
            for replayed in ("false", "true"):
                count = self.get("ibid_commands_total", operation=operation, decision=decision, replayed=replayed)
                if count:
                    counted[decision + (" again" if replayed == "true" else "")] = count
        return counted

    def requests(self, route, method, code):
        return self.get("ibid_http_requests_total", route=route, method=method, code=code)


class Pages:
    def await_page(self, server, good):
        """Numbers that another thread writes, a moment later. They change while a page is written: the one after the
        good one has all that came before what was awaited, wherever it stands on the page."""
        end = time.monotonic() + LIMIT_S
        while not good(page := Page(server)):
            self.assertLess(time.monotonic(), end, page.text)
            time.sleep(0.02)
        return Page(server)
