# SPDX-License-Identifier: Apache-2.0
"""What `make run` and `make demo` start: the payments example, as somebody meets it who has just unpacked ibid."""
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["IBID_BIN"]
SOURCE = os.environ["IBID_SOURCE_DIR"]
LIMIT_S = 60
SERVE = [os.path.join(SOURCE, "tools", "serve")]
MAKE = ["make", "--no-print-directory", "-o", "build", "BUILD=" + os.path.dirname(BIN)]  # what is built is not built again

sys.path.append(os.path.join(SOURCE, "tools"))
from ports import free_ports  # noqa: E402


def is_free(port):
    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def heed_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Run(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ibid-run-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.end_all)

    def processes(self):
        """Those that work on this test's directory, whoever started them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/cmdline" % pid, "rb") as handle:
                if self.dir.encode() in handle.read():
                    found.append(int(pid))
        return found

    def end_all(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start(self, command, stdout=subprocess.PIPE, **more):
        """In a group of its own and with signals in force, as a terminal would: whoever runs the tests may ignore some (nohup),
        and what a shell was started with it can't change."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("IBID_", "MAKE", "PORT"))}
        environment.update(IBID_BIN=BIN, TMPDIR=self.dir, **more)
        process = subprocess.Popen(command, cwd=SOURCE, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, preexec_fn=heed_signals)
        self.addCleanup(process.stderr.close)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT_S)
        if process.stdout:
            process.stdout.close()

    def shown(self, process):
        """What it prints until it is ready."""
        text = ""
        for line in process.stdout:
            text += line
            if "Ctrl-C ends it." in line:
                return text
        raise AssertionError(text + process.stderr.read())

    def port_of(self, text):
        return int(re.search(r"^ibid serves examples/payments at http://127\.0\.0\.1:(\d+)$", text, re.M).group(1))

    def press_ctrl_c(self, process):
        os.killpg(process.pid, signal.SIGINT)
        return self.end_of(process)

    def end_of(self, process):
        """Its exit code; if it does not end, what everybody is doing instead."""
        try:
            return process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            paths = [path for pid in [process.pid, *self.processes()] for name in ("cmdline", "task/*/stat", "task/*/wchan")
                     for path in glob.glob("/proc/%d/%s" % (pid, name))] + glob.glob(self.dir + "/*/log")
            said = []
            for path in paths:
                with contextlib.suppress(OSError), open(path, errors="replace", encoding="utf-8") as handle:
                    said.append("%s: %s" % (path, handle.read().replace("\0", " ")))
            raise AssertionError("it did not end\n" + "\n".join(said)) from None

    def assert_gone(self, port):
        self.assertEqual(self.processes(), [])
        self.assertTrue(is_free(port))
        self.assertEqual(os.listdir(self.dir), [])

    def type_in(self, line):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, (line, done.stderr))
        return done.stdout

    def pay_as_shown(self, text):
        lines = re.findall(r"^curl (?:\\\n|.)*", text, re.M)
        self.assertEqual(len(lines), 4, text)
        first, again, other, listed = map(self.type_in, lines)
        self.assertRegex(first, r"\AHTTP/1\.1 201 ")
        self.assertNotIn("Idempotent-Replayed", first)
        self.assertRegex(again, r"\AHTTP/1\.1 201 ")
        self.assertIn("Idempotent-Replayed: true", again)
        self.assertEqual(again.splitlines()[-1], first.splitlines()[-1])
        self.assertRegex(other, r"\AHTTP/1\.1 409 ")
        self.assertIn("/problems/key-reused", other)
        self.assertEqual(listed.count('"operation":"create-payment"'), 1)

    def test_the_lines_it_prints_work_and_ctrl_c_ends_it(self):
        process = self.start(SERVE)
        text = self.shown(process)
        self.pay_as_shown(text)
        self.assertEqual(self.press_ctrl_c(process), 0)
        self.assertEqual(process.stderr.read(), "")
        self.assert_gone(self.port_of(text))

    def test_make_run_is_that_and_says_nothing_more_when_it_ends(self):
        port, = free_ports(1)
        process = self.start(MAKE + ["run", "PORT=%d" % port])
        text = self.shown(process)
        self.assertEqual(self.port_of(text), port)
        self.pay_as_shown(text)
        self.assertEqual(self.press_ctrl_c(process), -signal.SIGINT)  # make ends by the signal, whatever it runs does
        self.assertEqual(process.stdout.read() + process.stderr.read(), "")
        self.assert_gone(port)

    def test_what_has_begun_is_finished_and_other_signals_end_it_too(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            process = self.start(SERVE)
            port = self.port_of(self.shown(process))
            with contextlib.closing(socket.create_connection(("127.0.0.1", port), LIMIT_S)):  # one that is kept open
                process.send_signal(number)
                self.assertEqual(self.end_of(process), 0)
            self.assert_gone(port)

    def test_a_port_that_is_taken_or_none_is_refused(self):
        with contextlib.closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            for command in (SERVE, MAKE + ["run"]):
                process = self.start(command, PORT=str(port))
                out, said = process.communicate(timeout=LIMIT_S)
                self.assertNotEqual(process.returncode, 0)
                self.assertIn("can't listen on 127.0.0.1:%d: Address already in use" % port, said)
                self.assertNotIn("curl", out)
                self.assertEqual((self.processes(), os.listdir(self.dir)), ([], []))
        for wrong in ("x", "80 80", "-1", "123456", "70000"):
            process = self.start(SERVE, PORT=wrong)
            _, said = process.communicate(timeout=LIMIT_S)
            self.assertNotEqual(process.returncode, 0, wrong)
            self.assertIn("PORT is '%s'" % wrong, said)

    def test_it_serves_also_when_nobody_reads_what_it_prints(self):
        for closing in ("exec tools/serve >&-", "tools/serve | true", "tools/serve >/dev/full"):
            port, = free_ports(1)
            process = self.start(["bash", "-c", closing], PORT=str(port))
            self.await_health(port, closing, process)
            self.press_ctrl_c(process)
            self.await_gone(port)

    def await_health(self, port, what, process):
        end = time.monotonic() + LIMIT_S
        while True:
            done = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "http://127.0.0.1:%d/healthz" % port],
                                  capture_output=True, text=True)
            if done.stdout == "200":
                return
            self.assertIsNone(process.poll(), what)
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def await_gone(self, port):
        end = time.monotonic() + LIMIT_S
        while self.processes() or os.listdir(self.dir):  # a pipeline's shell may end before what it started
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assert_gone(port)

    def test_the_demo_shows_the_same_on_the_command_line(self):
        process = self.start(MAKE + ["demo"])
        out, said = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, said), (0, ""))
        for decision in ("executed   201", "replayed   201", "conflict   409"):
            self.assertEqual(len(re.findall("^" + decision, out, re.M)), 1, out)


if __name__ == "__main__":
    unittest.main()
