# SPDX-License-Identifier: Apache-2.0
"""Events that have had their time are archived, then removed, and can be brought back: whoever is killed on the way,
whatever is damaged, and with a relay running. Needs IBID_TEST_PG."""
import contextlib
import fcntl
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest
import uuid

import psycopg2

import serve_bed
from relay_bed import LANES, Relays, wait_until
from serve_bed import BIN, LIMIT_S, Server

DAYS = 120  # that old events are old: their month is over


class Archives(Relays):
    def setUp(self):
        super().setUp()
        self.archive = os.path.join(self.dir, "archive")

    # ---- Old events

    def bulk(self, count, deliver_to="out", arrived=("out",), held=(), text="x" * 40):
        """Old events, written past the ledger; their ids."""
        now = int(time.time() * 1000) - DAYS * 86400000
        ids = ["%s-%s-7%03x-8%03x-%012x" % ("%08x" % (now >> 16), "%04x" % (now & 0xffff), 0, n >> 24 & 0xfff,
                                           (n & 0xffffff) << 16 | 1) for n in range(self.made, self.made + count)]
        self.made += count
        events = [(id_, "note", "b%d" % (n % 7), "Noted", json.dumps({"text": text or os.urandom(300).hex(), "n": n}), "t", n // 7 + 1, id_ + ":1",
                   id_, 1, "tests.notes.v1" if deliver_to else None, "b", json.dumps(
                       dict({"event_version": "1"}, **({"deliver_to": deliver_to} if deliver_to else {})),
                       separators=(",", ":")), (now + n) * 1000, n % 4) for n, id_ in enumerate(ids)]
        deliveries = [("t", id_, to, 1, (now + 5) * 1000, "file", 7) for id_ in ids for to in arrived]
        holds = [("t", id_, to, n % 4, "note", "b%d" % (n % 7), n // 7 + 1, state, 1, (now + 5) * 1000)
                 for n, id_ in enumerate(ids) for to, state in held]
        self.put(events, deliveries, holds)
        return ids

    made = 0

    def old_events(self, count):
        """Written and delivered as ever, and old; and one that is not. The relay goes on."""
        server = Server(self)
        self.write(server, count)
        relay = self.relay(*self.to_file())
        self.assert_whole(count)
        self.age()
        self.write(server, 1)
        self.await_events(count + 1)
        wait_until(lambda: self.number("select count(*) from " + self.ledger("delivery")) == count + 1, "no evidence")
        return server, relay

    def await_evidence(self, count):
        """Of what is young."""
        wait_until(lambda: self.number("select count(*) from %s as d join %s as e on e.id = d.event_id where %s" % (
            self.ledger("delivery"), self.ledger("event"), self.young)) == count, "evidence is missing")

    # ---- What is done with them

    def retain(self, *more, archive=True, **options):
        to = ["--archive", self.archive] if archive else []
        return self.ibid("retain", "--store", self.url, "--contracts", self.contracts, "--events-older-than", "1ms", *to,
                         *more, **options)

    def retained(self, *more, **options):
        got = self.retain("--json", *more, **options)
        self.assertEqual(got.returncode, 0, got.stderr)
        return json.loads(got.stdout)

    def files(self, what="*.ndjson.zst"):
        return sorted(glob.glob(os.path.join(self.archive, what)))

    def archived(self):
        """What whole archives hold, line by line."""
        lines = []
        for manifest in self.files("*.manifest.json"):
            got = subprocess.run(["zstd", "-dc", manifest.replace(".manifest.json", ".ndjson.zst")], capture_output=True,
                                 check=True, timeout=LIMIT_S)
            lines += [json.loads(line) for line in got.stdout.splitlines()]
        return lines

    def restore(self, *files, code=0, store=None):
        got = self.ibid("archive", "restore", "--store", store or self.url, "--json", *(files or self.files()))
        self.assertEqual(got.returncode, code, got.stdout + got.stderr)
        return [json.loads(line) for line in got.stdout.splitlines()] if not code else got.stderr

    def all_rows(self):
        return {table: self.rows("select * from " + self.ledger(table)) for table in
                ("event", "delivery", "delivery_hold", "aggregate")}

    def events(self):
        return self.number("select count(*) from " + self.ledger("event"))

    # ---- Retention

    def test_only_what_is_done_everywhere_goes(self):  # C12
        done = self.bulk(2, "out,other", ("out", "other"))
        nowhere = self.bulk(1, None, ())
        skipped = self.bulk(1, "out,other", ("out",), [("other", "SKIPPED")])
        unpublished = self.bulk(1, "out,other", ())
        partly = self.bulk(2, "out,other", ("out",))
        parked = self.bulk(1, "out,other", ("out",), [("other", "PARKED")])
        waits = self.bulk(1, "out", (), [("out", "WAITS")])
        self.bulk(1, None, ())  # the newest always stays where rows are counted
        stays = unpublished + partly + parked + waits
        dry = self.retained("--dry-run", archive=False)
        self.assertFalse(os.path.exists(self.archive))
        said = self.retained()
        self.assertEqual(dry["events"], said["events"])
        held = {(row["destination"], row["state"]): row["events"] for row in said["heldBack"]}
        self.assertEqual(held, {("out", "UNPUBLISHED"): 1, ("other", "UNPUBLISHED"): 3, ("other", "PARKED"): 1,
                                ("out", "WAITS"): 1})
        self.assertEqual({row["since"][:4] for row in said["heldBack"]}, {time.strftime(
            "%Y", time.gmtime(time.time() - DAYS * 86400))})
        left = {str(row[0]) for row in self.rows("select id from " + self.ledger("event"))}
        if self.store == "sqlite":
            self.assertEqual(said["events"], 4)
            self.assertLessEqual(set(stays), left)
            self.assertFalse(left & set(done + nowhere + skipped), left)
            self.assertEqual({row["id"] for row in self.archived()}, set(done + nowhere + skipped))
        else:  # a month stays as a whole, and it is said why
            self.assertEqual((said["events"], said["archives"]), (0, []))
            self.assertLessEqual(set(stays + done + nowhere + skipped), left)
            self.assertRegex(said["heldBack"][0]["month"], r"^\d{8}-\d{8}$")
        self.assertRegex(self.retain().stdout, r"(?m)^held back .*1 event PARKED at other, since 20")
        for id_ in stays:  # once they are through, they go
            for to in ("out", "other"):
                self.put([], [("t", id_, to, 2, 5000000, "file", 8)], [])
        self.write_sql("delete from %s where state <> 'SKIPPED'" % self.ledger("delivery_hold"))
        said = self.retained()
        self.assertEqual(said["heldBack"], [])
        self.assertLessEqual(self.events(), 1)
        self.assertEqual(self.number("select count(*) from " + self.ledger("delivery_hold")), 0)
        self.assertLessEqual(set(stays + done + nowhere + skipped), {row["id"] for row in self.archived()})

    def test_evidence_is_not_thrown_away_by_leaving_something_out(self):  # C12
        self.bulk(3)
        for more, says in (((), "--archive DIR, or --no-archive"), (("--no-archive", "--archive", "x"), "contradict"),
                           (("--archive", ""), "--archive is empty: name the directory")):
            got = self.retain(*more, archive=False)
            self.assertEqual(got.returncode, 2, got.stderr)
            self.assertIn(says, got.stderr)
        self.assertEqual(self.events(), 3)
        self.assertEqual(self.retained("--no-archive", archive=False)["archives"], [])
        self.assertLessEqual(self.events(), 1)
        self.assertEqual(self.number("select count(*) from " + self.ledger("archive")), 0)

    # ---- There and back

    def test_what_was_archived_comes_back_as_it_was_and_nothing_is_sent_again(self):  # C12
        server, relay = self.old_events(40)
        before, sent = self.all_rows(), len(self.lines())
        said = self.retained()
        self.assertEqual(said["events"], 40)
        self.assertEqual((self.events(), self.number("select count(*) from " + self.ledger("delivery"))), (1, 1))
        [kept] = said["archives"]
        self.assertEqual((kept["events"], kept["deliveries"]), (40, 40))
        self.assertEqual([os.path.basename(file) for file in self.files()], [kept["file"]])
        self.assertEqual(os.stat(self.archive).st_mode & 0o777, 0o700)
        self.assertEqual({os.stat(file).st_mode & 0o777 for file in self.files("*")}, {0o600})
        self.assertEqual(sorted(os.listdir(self.archive)), [name.rsplit("/", 1)[1] for name in self.files("*")])
        lines = {line["id"]: line for line in self.archived()}
        self.assertEqual(len(lines), 40)
        one = next(line for line in lines.values() if line["aggregateid"] == "t3" and line["version"] == 1)
        self.assertEqual(json.loads(one["payload"]), {"text": "x3"})
        self.assertEqual((one["topic"], json.loads(one["headers"])["deliver_to"], one["deliveries"][0]["place"]),
                         ("tests.notes.v1", "out", self.out))
        [row] = self.rows("select file, sha256, events from " + self.ledger("archive"))
        self.assertEqual(row, (kept["file"], kept["sha256"], 40))
        listed = self.ibid("archive", "list", self.archive, "--json")
        self.assertEqual(json.loads(listed.stdout)["sha256"], kept["sha256"])
        listed = self.ibid("archive", "list", "--store", self.url, "--json")
        self.assertEqual(json.loads(listed.stdout)["sha256"], kept["sha256"])
        self.assertEqual(self.ibid("archive", "verify", self.archive).returncode, 0)

        self.assertEqual(self.restore()[0]["restored"], 40)
        self.assertEqual(self.all_rows(), before)
        again = self.restore()[0]
        self.assertEqual((again["restored"], again["present"]), (0, 40))
        self.assertEqual(self.all_rows(), before)
        shown = self.ibid("command", "show", "--store", self.url, "--tenant", "t", "--json", one["command_id"])
        if self.store == "sqlite":  # where age is only said: the command is there
            self.assertIn(one["id"], shown.stdout)
        self.write(server, 5)
        self.await_evidence(6)  # what has none when its relay is killed comes twice
        relay.kill()
        relay.wait(LIMIT_S)
        self.relay(*self.to_file())  # leases anew, and looks at all there is
        self.write(server, 24, topics=24)  # in all lanes, behind what was restored
        self.await_events(sent + 29)
        self.assertEqual(len(self.lines()), sent + 29)
        self.assertGreaterEqual(self.retained()["events"], 40)  # they are as old as they were, and go again

    def test_an_archive_of_another_store_is_restored_and_nothing_is_sent(self):  # C12
        self.bulk(20)
        self.bulk(2, held=[("out", "SKIPPED")], arrived=())
        self.bulk(1, None, ())
        self.retained()
        self.foreign()
        relay = self.relay(*self.to_file(), "relay.lease=10s")  # however slow the machine is: it is there
        wait_until(lambda: self.number("select count(*) from %s where relay is not null" % self.ledger("relay_lane")) == LANES,
                   "nobody leases")
        if self.store == "sqlite":
            self.assertIn("stop the relays", self.restore(code=1))
            self.assertEqual(self.events(), 0)
            relay.send_signal(signal.SIGTERM)
            self.assertEqual(relay.wait(LIMIT_S), 0)
        self.restore()
        self.assertGreaterEqual(self.events(), 22)
        relay.kill()
        relay.wait(LIMIT_S)
        self.relay(*self.to_file())
        self.write(Server(self), 24, topics=24)  # in all lanes, behind what was restored
        self.await_events(24)
        self.assertEqual(len(self.lines()), 24, self.lines())

    def test_what_is_in_the_way_of_a_restore_is_said_and_nothing_changes(self):  # C12
        ids = self.bulk(30)
        self.bulk(1, None, ())
        self.retained()
        self.restore()
        self.change(ids[17], '{"other":1}')
        self.remove(ids[:10])
        before = self.all_rows()
        self.assertIn("event %s of tenant t is in the store already, and not as it was archived" % ids[17],
                      self.restore(code=1))
        self.assertEqual(self.all_rows(), before)

    # ---- Damage

    def test_a_damaged_archive_is_refused(self):  # C12
        self.bulk(500)
        self.bulk(1, None, ())
        self.retained()
        rows = self.all_rows()
        [file], [manifest] = self.files(), self.files("*.manifest.json")
        good = {}
        for path in (file, manifest):
            with open(path, "rb") as handle:
                good[path] = handle.read()
        text = json.loads(good[manifest])

        def flipped(data, at):
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]

        def said(**changed):
            return json.dumps(dict(text, **changed)).encode()
        size = len(good[file])
        cases = [(file, flipped(good[file], at), "") for at in (0, 5, size // 2, size - 1)]
        cases += [(file, good[file][:size // 2], "ends too early"), (file, b"", "ends too early"),
                  (file, good[file] + b"x", ""), (file, good[file] + good[file], ""), (manifest, None, "manifest"),
                  (file, None, "No such file"), (manifest, good[manifest][:40], "damaged"), (manifest, b"{}", "manifest"),
                  (manifest, said(events=text["events"] - 1), "its manifest tells of"),
                  (manifest, said(deliveries=7), "its manifest tells of"),
                  (manifest, said(first_id=str(uuid.uuid4())), "first or last"),
                  (manifest, said(content=dict(text["content"], sha256="0" * 64)), "content"),
                  (manifest, said(format_version=9), "format 9"), (manifest, said(file="../x.ndjson.zst"), "manifest")]
        for number, (path, data, says) in enumerate(cases):
            with self.subTest(number, says=says):
                if data is None:
                    os.remove(path)
                else:
                    with open(path, "wb") as handle:
                        handle.write(data)
                verified = self.ibid("archive", "verify", self.archive)
                self.assertEqual(verified.returncode, 8, verified.stdout + verified.stderr)
                self.assertRegex(verified.stdout, "(?m)^damaged .*%s" % re.escape(says))
                self.assertIn(says, self.restore(file, code=1))
                self.assertEqual(self.all_rows(), rows)
                for path_, data_ in good.items():
                    with open(path_, "wb") as handle:
                        handle.write(data_)
        self.assertEqual(self.ibid("archive", "verify", file, manifest).returncode, 0)

    def test_a_directory_that_takes_nothing_loses_nothing(self):  # C12
        self.bulk(2000, text=None)
        count = self.events()
        os.mkdir(self.archive)
        here = self.archive
        with open(os.path.join(here, "file"), "w", encoding="ascii"):
            pass
        for path in (os.path.join(here, "file"), os.path.join(here, "no", "such")):
            self.archive = path
            got = self.retain()
            self.assertEqual(got.returncode, 1)
            self.assertIn(path, got.stderr)
        self.archive = here
        got = self.retain(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, self.small))
        self.assertEqual(got.returncode, 1, got.stdout)
        self.assertIn("File too large", got.stderr)
        self.assertEqual(os.listdir(here), ["file"])
        self.assertEqual(self.events(), count)
        held = os.open(here, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.assertIn("another run is writing", self.retain().stderr)
        os.close(held)
        self.assertEqual(self.events(), count)
        self.assertGreaterEqual(self.retained()["events"], 1999)

    small = (1 << 18, 1 << 18)

    # ---- Kills

    def union(self):
        """Each event with its evidence, wherever it is; what is in both places must be the same."""
        found = {line["id"]: line for line in self.archived()}
        for line in map(json.loads, self.store_lines()):
            self.assertEqual(found.setdefault(line["id"], line), line)
        return found

    def test_who_is_killed_at_any_moment_loses_nothing(self):  # C12
        self.bulk(12000, text="k" * 30)
        self.bulk(1, None, ())
        wanted = {line["id"]: line for line in map(json.loads, self.store_lines())}
        started = time.monotonic()
        whole = subprocess.Popen([BIN, "retain", "--store", self.url, "--contracts", self.contracts,
                                  "--events-older-than", "1ms", "--dry-run"], stdout=subprocess.DEVNULL)
        whole.wait(LIMIT_S)
        generator, span = random.Random(7), 8 * (time.monotonic() - started)
        for kill in range(14):
            run = subprocess.Popen([BIN, "retain", "--store", self.url, "--contracts", self.contracts,
                                    "--events-older-than", "1ms", "--archive", self.archive],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(generator.uniform(0, span))
            run.kill()
            run.wait(LIMIT_S)
            if kill % 3 == 0:
                self.assertEqual(self.union(), wanted)
        if self.store == "postgres":  # what a killed one had sent is carried out all the same
            wait_until(lambda: self.number("select count(*) from pg_stat_activity where datname = current_database() "
                                           "and pid <> pg_backend_pid() and backend_type = 'client backend'") == 0,
                       "somebody is still there")
        self.retained()
        self.assertEqual(self.union(), wanted)
        self.assertLessEqual(self.events(), 1)
        self.assertEqual(self.ibid("archive", "verify", self.archive).returncode, 0)
        ids = [line["id"] for line in self.archived()]
        self.assertEqual(len(ids), len(set(ids)))  # what was whole was used again, and not written twice

    def test_of_several_runs_at_once_one_archives_an_event(self):  # C12
        self.bulk(12000)
        self.bulk(1, None, ())
        all_ = self.events()
        runs = [subprocess.Popen([BIN, "retain", "--store", self.url, "--contracts", self.contracts, "--events-older-than",
                                  "1ms", "--archive", os.path.join(self.dir, "archive-%d" % n)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for n in range(4)]
        for run in runs:
            said = run.communicate(timeout=LIMIT_S)[1]
            if run.returncode:
                self.assertIn("another run has dropped it: run it again", said)
        self.archive = os.path.join(self.dir, "archive-*")
        ids = [line["id"] for line in self.archived()]
        self.assertEqual((len(ids), len(set(ids))), (all_ - self.events(),) * 2)
        self.assertGreaterEqual(len(ids), 12000)
        self.assertEqual(self.number("select min(events) from " + self.ledger("archive")) > 0, True)  # none of nothing
        self.assertEqual(self.number("select count(*) from " + self.ledger("archive")), len(self.files("*.manifest.json")))

    def test_a_whole_archive_whose_events_were_not_dropped_is_used_again(self):  # C12
        self.bulk(50)
        self.bulk(1, None, ())
        self.retained()
        [file] = self.files()
        made = os.stat(file).st_mtime_ns
        self.restore()
        self.assertEqual(self.retained()["archives"][0]["file"], os.path.basename(file))
        self.assertEqual((self.files(), os.stat(file).st_mtime_ns), ([file], made))
        self.restore()
        os.remove(file.replace(".ndjson.zst", ".manifest.json"))  # then it is half of one, and counts for nothing
        self.retained()
        self.assertEqual(self.files(), [file])
        self.assertEqual(self.ibid("archive", "verify", file).returncode, 0)


class OnSqlite(Archives, serve_bed.Sqlite, unittest.TestCase):
    young = "seq > 40"

    @contextlib.contextmanager
    def db(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=LIMIT_S)) as db:
            yield db
            db.commit()

    def rows(self, sql):
        with self.db() as db:
            return sorted(db.execute(sql).fetchall(), key=repr)

    def write_sql(self, sql):
        with self.db() as db:
            db.execute(sql)

    def put(self, events, deliveries, holds):
        with self.db() as db:
            db.executemany("insert into ibid_event (id, aggregatetype, aggregateid, type, payload, tenant, version, key, "
                           "command_id, ordinal, topic, partition_key, headers, created_us, lane) "
                           "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", events)
            db.executemany("insert into ibid_delivery (tenant, event_id, destination, token, at_us, place, position) "
                           "values (?, ?, ?, ?, ?, ?, ?)", deliveries)
            db.executemany("insert into ibid_delivery_hold (tenant, event_id, destination, lane, aggregatetype, "
                           "aggregateid, version, state, attempts, since_us) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", holds)

    def age(self):
        pass  # a millisecond is old enough

    def foreign(self):
        self.open_store()
        os.rename(self.path, self.path + ".first")
        for name in glob.glob(self.path + "-*"):
            os.remove(name)
        made = self.ibid("init", "--store", self.url, "--contracts", self.contracts)
        self.assertEqual(made.returncode, 0, made.stderr)

    def unguarded(self, sql, *values):
        with self.db() as db:
            guards = db.execute("select name, sql from sqlite_master where type = 'trigger' and tbl_name = 'ibid_event'")
            guards = guards.fetchall()
            for name, _ in guards:
                db.execute("drop trigger " + name)
            db.execute(sql, values)
            for _, text in guards:
                db.execute(text)

    def change(self, id_, payload):
        self.unguarded("update ibid_event set payload = ? where id = ?", payload, id_)

    def remove(self, ids):
        self.unguarded("delete from ibid_event where id in (%s)" % ",".join("?" * len(ids)), *ids)

    def store_lines(self):
        with open(os.path.join(os.environ["IBID_SOURCE_DIR"], "src/store/sqlite/sql/archive_read.sql"),
                  encoding="ascii") as handle:
            sql = handle.read()
        with self.db() as db:
            return [row[3] for row in db.execute(sql, (0, 1 << 60))]


class OnPostgres(Archives, serve_bed.Postgres, unittest.TestCase):
    young = "created_at > now() - interval '1 day'"

    @contextlib.contextmanager
    def db(self):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db.cursor() as cursor:
            yield cursor
            db.commit()

    def rows(self, sql):
        with self.db() as cursor:
            cursor.execute(sql)
            return sorted(cursor.fetchall(), key=repr)

    def write_sql(self, sql):
        with self.db() as cursor:
            cursor.execute("set session_replication_role = replica")
            cursor.execute(sql)

    def put(self, events, deliveries, holds):
        from psycopg2.extras import execute_values
        at = "timestamptz 'epoch' + %s * interval '1 microsecond'"
        with self.db() as cursor:
            if events:
                cursor.execute("select ibid_internal.make_event_months(%s, %s)", (events[0][0], events[-1][0]))
            execute_values(cursor, "insert into ibid.event (id, aggregatetype, aggregateid, type, payload, tenant, version, "
                           "key, command_id, ordinal, topic, partition_key, headers, created_at, lane) values %s", events,
                           "(%s::uuid, %s, %s, %s, %s, %s, %s, %s, %s::uuid, %s, %s, %s, %s, " + at + ", %s)",
                           page_size=1000)
            execute_values(cursor, "insert into ibid.delivery (tenant, event_id, destination, token, at, place, position) "
                           "values %s", deliveries, "(%s, %s::uuid, %s, %s, " + at + ", %s, %s)", page_size=1000)
            execute_values(cursor, "insert into ibid.delivery_hold (tenant, event_id, destination, lane, aggregatetype, "
                           "aggregateid, version, state, attempts, since) values %s", holds,
                           "(%s, %s::uuid, %s, %s, %s, %s, %s, %s, %s, " + at + ")")

    def age(self):
        def older(column):
            return ("(lpad(to_hex(('x' || left(replace(%s::text, '-', ''), 12))::bit(48)::bigint - %d), 12, '0')"
                    " || substr(replace(%s::text, '-', ''), 13))::uuid" % (column, DAYS * 86400000, column))
        with self.db() as cursor:
            cursor.execute("set session_replication_role = replica")
            cursor.execute("select ibid_internal.make_event_months(%s, %s) from (select min(id::text)::uuid as low, "
                           "max(id::text)::uuid as high from ibid.event) as all_" % (older("low"), older("high")))
            cursor.execute("update ibid.event set id = %s, command_id = %s, created_at = created_at - interval '%d days'"
                           % (older("id"), older("command_id"), DAYS))
            cursor.execute("update ibid.delivery set event_id = " + older("event_id"))

    def foreign(self):
        [path] = self.files("*.manifest.json")
        with open(path, encoding="ascii") as handle:
            text = json.load(handle)
        with open(path, "w", encoding="ascii") as handle:
            json.dump(dict(text, system="1"), handle)

    def change(self, id_, payload):
        self.write_sql("update ibid.event set payload = '%s' where id = '%s'" % (payload, id_))

    def remove(self, ids):
        self.write_sql("delete from ibid.event where id::text = any ('{%s}')" % ",".join(ids))
        self.write_sql("delete from ibid.delivery where event_id::text = any ('{%s}')" % ",".join(ids))

    def store_lines(self):
        with self.db() as cursor:
            cursor.execute("select ibid_internal.archive_line(tenant, id) from ibid.event")
            return [row[0] for row in cursor.fetchall()]


if __name__ == "__main__":
    unittest.main(verbosity=2)
