# SPDX-License-Identifier: Apache-2.0
"""A topic of a real Kafka for each test, what a reader of committed records sees in it, and what the coordinator knows of
the relays' transactions. Needs tools/with-kafka, whose broker is the test's own."""
import collections
import contextlib
import os
import socket
import struct
import subprocess
import uuid

from relay_bed import EVENT, Relays, wait_until
from serve_bed import LIMIT_S

KAFKA = os.environ["IBID_TEST_KAFKA"]
CONTROL, BROKER = os.environ["IBID_TEST_KAFKA_CONTROL"], os.environ["IBID_TEST_KAFKA_DIR"]
PARTITIONS = 4

Record = collections.namedtuple("Record", "aggregate version id partition offset")
Transaction = collections.namedtuple("Transaction", "state producer epoch")


def control(*arguments):
    subprocess.run([CONTROL, arguments[0], BROKER, *arguments[1:]], check=True, timeout=LIMIT_S)


def order_fault(versions):
    """What is wrong with the versions of one aggregate, in the order in which a reader of committed records sees them.

    A batch whose commit nobody answered is sent again, whole: what repeats goes on from there, version by version, to the
    newest and beyond. So each is at most the one after that before it, and the last one is the newest. A relay that was
    let in after its lease was over repeats, and stops: whoever took over goes on where *it* was."""
    last = 0
    for version in versions:
        if version > last + 1:
            return "%d after %d" % (version, last)
        last = version
    return "%d after %d" % (last, max(versions)) if versions and last != max(versions) else None


def by_aggregate(records):
    versions = collections.defaultdict(list)
    for record in records:
        versions[record.aggregate].append(record.version)
    return versions


class Wire:
    """Two requests of Kafka's protocol, for what no client here asks: https://kafka.apache.org/protocol"""
    DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS = 61, 65

    def __init__(self, address):
        host, port = address.split(":")
        self.place, self.socket = (host, int(port)), None

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def ask(self, key, body):
        if self.socket:
            with contextlib.suppress(OSError):  # of a broker that was killed since
                return self.ask_now(key, body)
            self.close()
        self.socket = socket.create_connection(self.place, LIMIT_S)
        return self.ask_now(key, body)

    def ask_now(self, key, body):
        header = struct.pack(">hhi", key, 0, 7) + struct.pack(">h", 4) + b"test" + b"\0"
        self.socket.sendall(struct.pack(">i", len(header + body)) + header + body)
        size, = struct.unpack(">i", self.take(4))
        return Answer(self.take(size)[5:])  # number and tags

    def take(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise ConnectionResetError
            got += more
        return got

    def transactions(self, names):
        """By transactional id: in which state, and whose; those that were never begun are not there."""
        answer = self.ask(self.DESCRIBE_TRANSACTIONS, array([text(name) for name in names]) + b"\0")
        answer.number("i")
        found = {}
        for _ in range(answer.count()):
            error, name, state = answer.number("h"), answer.text(), answer.text()
            answer.number("i"), answer.number("q")
            producer, epoch = answer.number("q"), answer.number("h")
            for _ in range(answer.count()):
                answer.text()
                for _ in range(answer.count()):
                    answer.number("i")
                answer.count()
            answer.skip()
            if not error:
                found[name] = Transaction(state, producer, epoch)
        return found

    def writing(self, topic, partitions):
        """Producers, with their epochs, of whom records are in the log that are neither committed nor aborted."""
        numbers = array([struct.pack(">i", number) for number in range(partitions)])
        answer = self.ask(self.DESCRIBE_PRODUCERS, array([text(topic) + numbers + b"\0"]) + b"\0")
        answer.number("i")
        found = set()
        for _ in range(answer.count()):
            answer.text()
            for _ in range(answer.count()):
                answer.number("i"), answer.number("h"), answer.text()
                for _ in range(answer.count()):
                    producer, epoch = answer.number("q"), answer.number("i")
                    answer.number("i"), answer.number("q"), answer.number("i")
                    if answer.number("q") >= 0:
                        found.add((producer, epoch))
                    answer.skip()
                answer.skip()
            answer.skip()
        return found


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def array(items):
    return varint(len(items) + 1) + b"".join(items)


def text(value):
    return varint(len(value) + 1) + value.encode()


class Answer:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def count(self):
        return max(0, self.varint() - 1)

    def text(self):
        size = self.count()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def skip(self):
        assert self.varint() == 0  # tagged fields: none so far


class Kafka(Relays):
    """Events of `Noted` go to a topic of the test's own."""
    partitions = PARTITIONS

    def setUp(self):
        super().setUp()
        self.topic = "relay-" + uuid.uuid4().hex[:8]
        control("topic", self.topic, str(self.partitions))
        self.file("noted.yaml", (EVENT % "out").replace("version: 1", "version: 2").replace("tests.notes.v1", self.topic))
        applied = self.ibid("contract", "apply", self.contracts, "--store", self.url)
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.wire = Wire(KAFKA)
        self.addCleanup(self.wire.close)

    def to_kafka(self, *more):
        return ["relay.destinations.out.kafka.brokers=" + KAFKA, "relay.destinations.out.kafka.delivery_timeout=3s",
                "relay.destinations.out.backoff=50ms..500ms", "relay.destinations.out.breaker.probe_every=200ms", *more]

    def read(self, topic=None):
        """What a reader of committed records sees, by partition. A commit is acknowledged before all partitions know of it."""
        topic = topic or self.topic
        wait_until(lambda: not self.wire.writing(topic, self.partitions), "a transaction stays open")
        got = subprocess.run(["kcat", "-C", "-b", KAFKA, "-t", topic, "-e", "-q", "-X", "isolation.level=read_committed",
                              "-f", "%p\t%o\t%k\t%h\n"],
                             capture_output=True, text=True, timeout=2 * LIMIT_S, check=True).stdout
        records = []
        for line in got.splitlines():
            partition, offset, key, headers = line.split("\t")
            named = dict(pair.split("=", 1) for pair in headers.split(",") if "=" in pair)
            self.assertEqual(key, named["ce_subject"])
            records.append(Record(named["ce_subject"], int(named["ce_aggregateversion"]), named["ce_id"], int(partition),
                                  int(offset)))
        return records

    def assert_log(self, fault=order_fault, limit=120):
        """Every committed event is there, and nothing else; no aggregate has a fault; and what is kept as evidence is
        where it says. Returns what was read."""
        self.await_evidence(self.number("select count(*) from " + self.ledger("event")), limit)
        events = {id_ for id_, in self.rows("select cast(id as text) from " + self.ledger("event"))}
        records = self.read()
        there = {record.id for record in records}
        self.assertEqual((len(events - there), len(there - events)), (0, 0), "lost, and never committed")
        faults = {aggregate: (wrong, versions[-40:]) for aggregate, versions in by_aggregate(records).items()
                  for wrong in [fault(versions)] if wrong}
        self.assertEqual(len(faults), 0, sorted(faults.items())[:3])
        places = {(record.id, self.topic, record.partition, record.offset) for record in records}
        evidence = self.rows("select cast(event_id as text), place, partition, position from " + self.ledger("delivery"))
        self.assertEqual(set(evidence) - places, set(), "evidence of what is not there")
        self.assertEqual({id_ for id_, _, _, _ in evidence}, events)
        return records
