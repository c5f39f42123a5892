# SPDX-License-Identifier: Apache-2.0
"""A store that is dumped in the middle of its deliveries and restored on another server: a relay there delivers exactly the
rest, in order (C03, C04). Needs IBID_TEST_PG."""
import collections
import contextlib
import os
import signal
import subprocess
import unittest

import psycopg2

import serve_bed
from relay_bed import NOTE_SOME, Receivers, Relays, wait_until
from serve_bed import LIMIT_S

TOOLS = os.path.join(os.environ["IBID_SOURCE_DIR"], "tools")
PROGRAMS = os.environ.get("IBID_TEST_PG_BIN", "")
AGGREGATES = ["t%d" % n for n in range(12)]


class Restored(Receivers, Relays, serve_bed.Postgres, unittest.TestCase):
    def other_server(self):
        """The URL of its superuser's database; it ends with the test."""
        lives, life = os.pipe()  # it lives until the end of this
        keeper = subprocess.Popen([os.path.join(TOOLS, "with-postgres"), "sh", "-c",
                                   "echo $IBID_TEST_PG; exec cat /dev/fd/%d" % lives], pass_fds=[lives],
                                  stdout=subprocess.PIPE, text=True)
        os.close(lives)

        def end():
            os.close(life)
            keeper.communicate(timeout=LIMIT_S)
        self.addCleanup(end)
        return keeper.stdout.readline().strip()

    def sql(self, text, *arguments, times=1, url=None):
        with contextlib.closing(psycopg2.connect(url or self.url)) as db, db.cursor() as cursor:
            for _ in range(times):
                cursor.execute(text, arguments)
                db.commit()

    def write_all(self, words, rounds):
        for _ in range(rounds):
            self.sql("select note_some(%s, %s)", AGGREGATES, words)

    def move_to(self, server):
        """All of it, by PostgreSQL's own means, the roles included."""
        def run(program, *arguments, **more):
            return subprocess.run([os.path.join(PROGRAMS, program), *arguments], check=True, timeout=LIMIT_S, **more)
        name = self.url.rsplit("/", 1)[1]
        file = os.path.join(self.dir, "dump")
        run("pg_dump", "--format=custom", "--file", file, self.url)
        roles = run("pg_dumpall", "--roles-only", "--dbname", self.url, stdout=subprocess.PIPE).stdout
        run("psql", "--quiet", server, input=roles, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.sql_alone("create database " + name, server)
        self.url = server.rsplit("/", 1)[0] + "/" + name
        run("pg_restore", "--exit-on-error", "--dbname", self.url, file)

    def sql_alone(self, text, url):
        with contextlib.closing(psycopg2.connect(url)) as db:
            db.autocommit = True
            db.cursor().execute(text)

    def as_service(self):
        """Not as a superuser: policies and rights were restored, too."""
        self.sql("create role r login; grant ibid_service to r")
        return self.url.replace("//postgres@", "//r@")

    def states(self):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute("select aggregateid, version, state from ibid.delivery_hold order by version")
            return cursor.fetchall()

    def evidence(self):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            cursor.execute("select event_id::text from ibid.delivery")
            return [id_ for id_, in cursor.fetchall()]

    def await_evidence(self, count):
        wait_until(lambda: len(set(self.evidence())) >= count, lambda: "%d of %d" % (len(set(self.evidence())), count))

    def test_what_is_restored_on_another_server_goes_on_from_its_evidence(self):
        others = len(AGGREGATES) - 1  # all but the one that is stuck
        receiver, settings = self.receiver(lambda headers, body: 422 if (
            headers["ce-subject"], headers["ce-aggregateversion"]) == ("t1", "2") else 200)
        server = self.other_server()
        self.sql(NOTE_SOME)
        self.sql("select pg_current_xact_id()", times=1500)  # more than the other one has given
        relay = self.relay(*settings)
        self.write_all("before", 20)
        self.await_evidence(20 * others + 1)
        relay.kill()  # evidence is there, its cursor behind it
        relay.wait(LIMIT_S)
        self.write_all("undelivered", 10)
        before = self.evidence()
        self.move_to(server)
        self.assertEqual(sorted(self.evidence()), sorted(before))
        self.assertEqual(self.ibid("doctor", "--store", self.url).returncode, 0)
        greatest = self.number("select max(xid)::text::bigint from ibid.event")
        self.assertGreater(greatest, self.number("select pg_current_xact_id()::text::bigint"))
        self.write_all("written there", 10)
        first, receiver.got[:] = list(receiver.got), []
        self.url, own = self.as_service(), self.url
        relays = [self.relay("relay.batch=7", *settings) for _ in range(2)]
        self.url = own
        self.write_all("written meanwhile", 10)
        self.await_evidence(50 * others + 1)
        self.sql_alone("do $$ begin while pg_current_xact_id()::text::bigint <= %d loop commit; end loop; end $$" % greatest,
                       self.url)
        self.write_all("afterwards", 10)  # this server has given their ids by now
        self.await_evidence(60 * others + 1)
        for relay in relays:
            relay.send_signal(signal.SIGTERM)
            self.assertEqual(relay.wait(LIMIT_S), 0)
        self.assertEqual({id_ for _, _, id_ in receiver.got} & set(before), set(), "sent again")
        self.assertEqual(len(receiver.got), len({id_ for _, _, id_ in receiver.got}), "sent twice")
        came = collections.defaultdict(list)
        for subject, version, _ in first + receiver.got:
            came[subject].append(version)
        self.assertEqual(came.pop("t1"), [1])
        self.assertEqual(dict(came), {subject: list(range(1, 61)) for subject in AGGREGATES if subject != "t1"})
        wait_until(lambda: len(self.states()) == 59, lambda: str(self.states()))
        self.assertEqual(self.states(), [("t1", 2, "PARKED")] + [("t1", version, "WAITS") for version in range(3, 61)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
