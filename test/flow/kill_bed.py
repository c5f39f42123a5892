# SPDX-License-Identifier: Apache-2.0
"""Eight writers, and four relays that are killed, stopped and continued when others have their lanes."""
import collections
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
import uuid

import psycopg2

from relay_bed import NOTE_SOME, SHORT_LEASE, Relays, wait_until
from serve_bed import LIMIT_S, PG, Server

WRITERS, RELAYS = 8, 4


class Size:
    """How much of it; the defaults are what `make test` has time for."""

    def __init__(self, **defaults):
        for name, value in defaults.items():
            setattr(self, name, float(os.environ.get("IBID_KILL_" + name.upper(), value)))


class Hurt(Relays):
    """Says in `acts` what is done, again and again until is_done(); in `settings()` where events go."""
    so_often = {}  # acts that are done as often as a number of the size says; others: as long as it takes

    def setUp(self):
        super().setUp()
        self.size = Size(**self.size)
        self.luck = random.Random(7)
        self.relays, self.logs = [], []
        self.did = collections.Counter()
        self.written, self.enough = 0, threading.Event()
        self.lock = threading.Lock()
        self.until = time.monotonic() + self.size.limit
        self.db = None

    def rows(self, sql):
        """By one connection for all: they are many, and whoever writes needs the machine."""
        if self.store != "postgres":
            return super().rows(sql)
        if not self.db:
            self.db = psycopg2.connect(self.url)
            self.db.autocommit = True
            self.addCleanup(self.db.close)
        with self.db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    # ---- Writers

    def pace(self, begun, some):
        """No faster than the rate, and slowly when there is enough: what follows needs something to be under way. True: go
        on."""
        with self.lock:
            self.written += some
            ahead = self.written / self.size.rate - (time.monotonic() - begun)
            enough = self.written >= self.size.events
        self.enough.wait(0.1 if enough else min(max(0, ahead), 1))
        return not (enough and self.enough.is_set())

    def write_by_sql(self, seed):
        luck, begun = random.Random(seed), time.monotonic()
        db = psycopg2.connect(self.url)
        try:
            going = True
            while going:
                some = luck.sample(range(int(self.size.aggregates)), luck.randint(1, int(self.size.most)))
                names = ["a%d" % number for number in sorted(some)]  # in one order: nobody deadlocks
                undone = luck.random() < 0.1
                with db.cursor() as cursor:
                    cursor.execute("select note_some(%s, %s)", (names, "undone" if undone else "done"))
                if undone:
                    db.rollback()
                    self.did["rolled back"] += len(names)
                else:
                    db.commit()
                going = self.pace(begun, 0 if undone else len(names))
        finally:
            db.close()

    def write_by_http(self, server, seed):
        luck, begun = random.Random(seed), time.monotonic()
        going = True
        while going:
            name = "a%d" % luck.randrange(int(self.size.aggregates))
            answer = server.send(uuid.uuid4().hex, {"topic": name, "text": "done"}, operation="note-cold")
            assert answer.status == 201, answer
            going = self.pace(begun, 1)

    @contextlib.contextmanager
    def open_transactions_all_along(self):
        """A writer that commits in the end, and somebody in another database: neither stalls anybody."""
        if self.store != "postgres":
            yield
            return
        with contextlib.closing(psycopg2.connect(self.url)) as own, contextlib.closing(psycopg2.connect(PG)) as foreign:
            foreign.cursor().execute("select pg_current_xact_id()")
            own.cursor().execute("select note_some(array['long', 'longer'], 'done')")
            yield
            own.commit()
            foreign.rollback()
            self.written += 2

    def start_writers(self):
        if self.store == "postgres":
            each = [(self.write_by_sql, (seed,)) for seed in range(WRITERS)]
        else:
            server = Server(self)
            each = [(self.write_by_http, (server, seed)) for seed in range(WRITERS)]
        writers = [threading.Thread(target=what, args=args, daemon=True) for what, args in each]
        for writer in writers:
            writer.start()
        return writers

    # ---- Relays

    def one_more(self):
        relay = self.relay(SHORT_LEASE, *self.settings())
        self.logs.append(relay.log.name)
        return relay

    def lanes_of(self, relay):
        """Lane and token of each that it holds, as the store has it."""
        return {lane: token for lane, token, name in self.held() if name and "/%d/" % relay.pid in name}

    def held(self):
        return self.rows("select lane, token, relay from " + self.ledger("relay_lane"))

    def tokens(self):
        return {lane: token for lane, token, _ in self.held()}

    def logged(self, event):
        found = []
        for name in self.logs:
            with open(name, encoding="utf-8") as handle:
                found += [json.loads(line) for line in handle if event in line and line.endswith("\n")]
        return [entry for entry in found if entry["event"] == event]

    def fenced(self):
        return collections.Counter(entry["by"] for entry in self.logged("relay.fenced"))

    # ---- What is done to them

    def busy(self):
        """Those that hold lanes, those with most of them first."""
        lanes = {relay: len(self.lanes_of(relay)) for relay in self.relays}
        return sorted((relay for relay in self.relays if lanes[relay]), key=lambda relay: -lanes[relay])

    def sleepers(self):
        """Half of them are stopped wherever they are, until the lease of whatever they hold went to another."""
        held = {}
        for relay in wait_until(self.busy, "nobody holds a lane")[:RELAYS // 2]:
            if self.freeze_between(relay):
                held[relay] = self.lanes_of(relay)
        for relay in held:
            wait_until(lambda mine=held[relay]: all(self.tokens()[lane] != token for lane, token in mine.items()),
                       "nobody takes over")
            relay.send_signal(signal.SIGCONT)
            self.did["sleepers"] += bool(held[relay])

    def kill_one(self):
        at = self.relays.index(self.luck.choice(wait_until(self.busy, "nobody holds a lane")))
        self.relays[at].kill()
        self.relays[at].wait(LIMIT_S)
        self.relays[at] = self.one_more()
        self.did["kills"] += 1

    def is_done(self):
        return self.written >= self.size.events and all(
            self.did[name] >= getattr(self.size, name) for name in ("kills", *self.so_often.values()))

    def is_ahead(self):
        """Is more of what is to be done done than of what is to be written written?"""
        return False

    def hurt(self):
        for act in itertools.cycle(self.acts):
            if self.is_done():
                return
            self.assertLess(time.monotonic(), self.until, self.story())
            # Over all of the run, and not only its beginning.
            while self.is_ahead() and not self.is_done():
                self.assertLess(time.monotonic(), self.until, self.story())
                time.sleep(0.2)
            counted = self.so_often.get(act)
            if not counted or self.did[counted] < getattr(self.size, counted):
                getattr(self, act)()

    def story(self):
        return "%s: %d events written; %s; fenced by %s" % (
            self.store, self.written, ", ".join("%d %s" % (n, what) for what, n in sorted(self.did.items())),
            dict(self.fenced()))

    def write_and_hurt(self):
        """Until it is done and everybody is awake; how long it took, in seconds."""
        begun = time.monotonic()
        if self.store == "postgres":
            with contextlib.closing(psycopg2.connect(self.url)) as db, db:
                db.cursor().execute(NOTE_SOME)
        self.relays = [self.one_more() for _ in range(RELAYS)]
        with self.open_transactions_all_along():
            writers = self.start_writers()
            wait_until(lambda: self.number("select count(*) from " + self.ledger("delivery")), "nothing arrives")
            try:
                self.hurt()
            finally:
                self.enough.set()
                for relay in self.relays:
                    relay.send_signal(signal.SIGCONT)
            for writer in writers:
                writer.join(LIMIT_S)
                self.assertFalse(writer.is_alive())
        self.assertEqual(self.number("select count(*) from " + self.ledger("event")), self.written)
        return time.monotonic() - begun

    def tell(self, came, seconds):
        sys.stderr.write("%s; %d came, %d of them again; %.0f s ... " % (self.story(), came, came - self.written, seconds))
