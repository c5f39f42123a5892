# SPDX-License-Identifier: Apache-2.0
"""What of a payload is kept, and where it is not: every class of payload and field on both stores (K05,
B08). A secret that goes through every outcome is looked for in the bytes of the database."""
import contextlib
import json
import os
import re
import unittest

import psycopg2

from privacy_bed import CARD, FIELDS, KEYS, LOOSE, NOTE, PG, PIN, SEEN, Postgres, Sqlite, contract, document


class Classes:
    # ---- What is kept ---------------------------------------------------------------------------

    def test_each_class_keeps_what_it_says_of_every_outcome(self):
        sealed = re.compile(r"ibid:v1:k2:[A-Za-z0-9_-]{38,}")
        shape = {"a": "[redacted text]", "b": ["[redacted boolean]", "[redacted number]"]}
        card = {"number": CARD, "to": [1, None, True]}
        for mode, code in (("ok", 0), ("reject", 3), ("fail", 7)):
            for operation in FIELDS:
                self.submit(operation, mode, document(mode), code=code)
            full = document(mode)
            self.assertEqual(self.payload("plain", mode), full)
            self.assertEqual(self.payload("brief", mode), full)
            kept = self.payload("stored", mode)
            self.assertRegex(kept.pop("card"), sealed)
            self.assertEqual(kept, {"mode": mode, "note": "[redacted text]", "seen": SEEN, "loose": full["loose"]})
            self.assertEqual(self.payload("stored", mode, self.keys)["card"], card)
            kept = self.payload("redacted", mode)
            self.assertRegex(kept.pop("card"), sealed)
            self.assertEqual(kept, {"mode": "[redacted text]", "note": "[redacted text]", "seen": SEEN, "loose": shape})
            self.assertRegex(self.payload("encrypted", mode), sealed)
            opened = self.payload("encrypted", mode, self.keys)
            self.assertEqual(opened, dict({k: v for k, v in full.items() if k != "pin"}, note="[redacted text]"))
            self.assertIsNone(self.payload("unkept", mode))
            self.assertNotIn("payload", self.show("plain", mode))
        text = self.ibid("command", "show", "--tenant", "t", "--operation", "plain", "--key", "ok", "--payload").stdout
        self.assertRegex(text, r"(?m)^payload +\{.*%s" % NOTE)
        text = self.ibid("command", "show", "--tenant", "t", "--operation", "unkept", "--key", "ok", "--payload").stdout
        self.assertRegex(text, r"(?m)^payload +\(none is kept\)$")

    def test_an_invalid_payload_is_kept_by_its_classes_too(self):
        for operation in ("stored", "redacted"):
            told = self.submit(operation, "bad", document("ok", pin="not " + LOOSE), code=3)
            self.assertEqual(told["reason"], "INVALID_PAYLOAD")
            self.assertNotIn(LOOSE, json.dumps(told))
            self.assertNotIn("pin", self.payload(operation, "bad"))
            self.assertEqual(self.payload(operation, "bad")["seen"], SEEN)

    def test_a_second_run_is_told_by_the_payload_it_ran_with(self):
        self.file("contracts/plain.yaml", (contract("plain") + "same_payload: { ignore: [/seen, /mode], context: [] }\n")
                  .replace("version: 1", "version: 2"))
        self.submit("plain", "k", document("fail", seen="first"), code=7)
        self.assertEqual(self.payload("plain", "k")["seen"], "first")
        self.submit("plain", "k", document("ok", seen="second"))
        self.assertEqual(self.payload("plain", "k")["seen"], "second")

    def test_a_version_that_keeps_nothing_leaves_nothing_of_the_one_before(self):
        self.submit("plain", "k", document("fail"), code=7)
        self.assertEqual(self.payload("plain", "k")["seen"], SEEN)
        self.file("contracts/plain.yaml", contract("plain").replace("payload: store\n", "").replace("version: 1", "version: 2"))
        self.submit("plain", "k", document("fail"), code=7)
        self.assertIsNone(self.payload("plain", "k"))

    # ---- Where it is not ------------------------------------------------------------------------

    def test_a_secret_is_nowhere_but_where_its_class_allows(self):
        for mode, code in (("ok", 0), ("reject", 3), ("fail", 7), ("fail", 7)):
            for operation in ("stored", "unkept", "encrypted"):
                self.submit(operation, mode, document(mode), code=code)
        for operation in ("stored", "unkept", "encrypted"):
            self.submit(operation, "ok", document("ok"))
            self.submit(operation, "ok", document("reject"), code=4)
            self.submit(operation, "bad", document("ok", note=[NOTE]), code=3)
            self.submit(operation, "long", json.dumps(document("ok"))[:-1], code=1)
        listed = self.ibid("command", "list", "--tenant", "t", "--json").stdout
        self.assertIn("QUOTED", listed)
        self.assertIn("[redacted]", listed)
        raw = self.raw()
        for secret in (NOTE, CARD, str(PIN)):
            self.assertNotIn(secret.encode(), raw, secret)
            self.assertNotIn(secret, self.said, secret)
        self.assertIn(SEEN.encode(), raw)  # stored, and in the answer: the search finds what is there
        self.assertIn(LOOSE.encode(), raw)

    def test_under_encrypt_not_even_undeclared_members_are_readable(self):
        for mode, code in (("ok", 0), ("reject", 3), ("fail", 7)):
            self.submit("encrypted", mode, document(mode, seen=None), code=code)
        raw = self.raw()
        for secret in (NOTE, CARD, str(PIN), LOOSE):
            self.assertNotIn(secret.encode(), raw, secret)

    # ---- Keys -----------------------------------------------------------------------------------

    def test_a_moved_or_changed_ciphertext_and_a_wrong_key_fail_loudly(self):
        self.submit("stored", "a", document("ok"))
        self.submit("stored", "b", document("ok"))
        wrong = self.file("wrong", "k2 %s\n" % ("ee" * 32), 0o600)
        other = self.file("other", "k9 %s\n" % ("ee" * 32), 0o600)
        self.assertRegex(self.show("stored", "a", "--payload", keys=wrong, code=1), "ciphertext of /card does not open")
        self.assertRegex(self.show("stored", "a", "--payload", keys=other, code=1), "key k2, which /card needs")
        first, second = (self.show("stored", key)["id"] for key in "ab")
        self.sql("update ibid.payload set payload = (select payload from ibid.payload where command_id = '%s') "
                 "where command_id = '%s'" % (first, second))
        self.assertRegex(self.show("stored", "b", "--payload", keys=self.keys, code=1), "belongs to another command")
        self.assertEqual(self.payload("stored", "a", self.keys)["card"]["number"], CARD)
        self.sql("update ibid.payload set payload = replace(payload, 'ibid:v1:k2:', 'ibid:v1:k2:AAAA') where command_id = '%s'"
                 % first)
        self.assertRegex(self.show("stored", "a", "--payload", keys=self.keys, code=1), "does not open")

    def test_the_first_key_writes_and_all_read(self):
        old = self.file("old", "# before\n\nk1 %s\r\n" % ("CD" * 32), 0o600)
        self.submit("stored", "old", document("ok"), keys=old)
        self.submit("stored", "new", document("ok"))
        self.assertTrue(self.payload("stored", "old")["card"].startswith("ibid:v1:k1:"))
        self.assertTrue(self.payload("stored", "new")["card"].startswith("ibid:v1:k2:"))
        for key in ("old", "new"):
            self.assertEqual(self.payload("stored", key, self.keys)["card"]["number"], CARD)
        ran = self.ibid("command", "show", "--tenant", "t", "--operation", "stored", "--key", "new", "--payload", "--json",
                        env={"IBID_KEY_FILE": self.keys})
        self.assertEqual(json.loads(ran.stdout)["payload"]["card"]["number"], CARD)

    def test_without_a_usable_key_file_nothing_is_begun(self):
        def refused(keys, says):
            self.assertRegex(self.submit("plain", "k", document("ok"), code=1, keys=keys), says)
        refused(None, r"contracts/encrypted.yaml: payloads of encrypted are kept encrypted, and no key file was given")
        refused(os.path.join(self.dir, "none"), "there is no key file")
        refused(self.file("loose", KEYS, 0o640), "open to others than its owner: chmod 600")
        refused(self.file("line", "k1 %s\n# good\nk2 1234\n" % ("ab" * 32), 0o600), r"line:3: a key is 64 hex digits")
        refused(self.file("twice", "k1 %s\nk1 %s\n" % ("ab" * 32, "cd" * 32), 0o600), r"twice:2: this key id was given before")
        refused(self.file("id", "k:1 %s\n" % ("ab" * 32), 0o600), r"id:1: a key id has")
        refused(self.file("empty", "# nothing\n\n", 0o600), "holds no key")
        refused(self.dir, "is not a file")
        for part in ("ab" * 32, "cd" * 32):
            self.assertNotIn(part, self.said)
        self.assertEqual("", self.ibid("command", "list", "--json").stdout)

    # ---- Retention ------------------------------------------------------------------------------

    def test_the_payload_goes_with_the_operational_period(self):
        self.submit("plain", "k", document("ok"))
        self.submit("plain", "bad", document("reject"), code=3)
        for operation in FIELDS:
            self.file("contracts/%s.yaml" % operation, contract(operation).replace("version: 1", "version: 2"))
        self.expire()
        ran = ["retain", "--contracts", self.contracts, "--json"]
        self.assertEqual(json.loads(self.ibid(*ran, "--dry-run").stdout)["payloads"], 2)
        self.assertEqual(self.payload("plain", "k")["seen"], SEEN)
        counted = json.loads(self.ibid(*ran).stdout)
        self.assertEqual((counted["payloads"], counted["tombstones"]), (2, 2))
        self.assertIsNone(self.payload("plain", "k"))
        self.assertEqual(json.loads(self.ibid(*ran).stdout)["payloads"], 0)


class ClassesOnSqlite(Classes, Sqlite, unittest.TestCase):
    pass


class ClassesOnPostgres(Classes, Postgres, unittest.TestCase):
    """And what SQL callers keep."""

    def begin(self, operation, key, text, then=None):
        with contextlib.closing(psycopg2.connect(self.url)) as db, db, db.cursor() as cursor:
            cursor.execute("select decision, command_id from ibid.command_begin(tenant => 't', operation => %s, key => %s, "
                           "payload => %s, client => 'sql', actor => 'ann')", (operation, key, text))
            decision, command_id = cursor.fetchone()
            if then and decision == "execute":
                cursor.execute(then, (command_id,))
            return decision, command_id

    def kept(self, operation, key):
        rows = self.sql("select p.payload from ibid.payload as p join ibid.command as c on c.id = p.command_id "
                        "where c.operation = ? and c.key = ?", operation, key)
        return rows[0][0] if rows else None

    def test_sql_and_c_keep_the_same_bytes(self):
        documents = [
            document("ok"), {}, {"mode": "ok", "note": None, "card": None, "pin": None, "seen": None},
            {"mode": "ok", "seen": "a\u0000b\"\\\n\u001f/\u20ac\U0001f600", "n\u0000/~": {"\u00e9": [[], {}, [None, -0.0]]}},
            {"mode": "ok", "note": {"deep": [{"pin": 1, "note": "x"}]}, "seen": [1, "2", {"a": True}]},
            '{"mode":"ok","x":[1e2,1.10,12345678901234567890.123,0.1e-7,-0],"seen":{"z":1,"a":2}, "pin" : 3}',
        ]
        for number, given in enumerate(documents):
            text = given if isinstance(given, str) else json.dumps(given)
            for operation in ("plain", "shaped", "mixed"):
                key = "%s-%d" % (operation, number)
                self.ibid("submit", "--contracts", self.contracts, "--tenant", "t", "--operation", operation, "--key", "c" + key,
                          "--client", "c", "--json", stdin=text, keys=self.keys, code=None)
                self.begin(operation, "s" + key, text, "select ibid.command_complete(%s, 201)")
                self.assertIsNotNone(self.kept(operation, "c" + key), key)
                self.assertEqual(self.kept(operation, "c" + key), self.kept(operation, "s" + key), key)

    def test_sql_keeps_payloads_of_every_outcome(self):
        text = json.dumps(document("ok"))
        for then, state in (("select ibid.command_complete(%s, 201)", "COMPLETED"), ("select ibid.command_reject(%s, 'NO')", "REJECTED"),
                            ("select ibid.command_fail(%s, 'x')", "FAILED")):
            self.begin("shaped", state, text, then)
            self.assertEqual(json.loads(self.kept("shaped", state))["seen"], SEEN)
        self.assertEqual(self.begin("shaped", "bad", json.dumps(document("ok", pin="x")))[0], "rejected")
        self.assertNotIn("pin", json.loads(self.kept("shaped", "bad")))
        self.begin("mixed", "FAILED", text, "select ibid.command_fail(%s, 'x')")
        self.begin("mixed", "FAILED", text.replace(LOOSE, "changed"), "select ibid.command_complete(%s, 201)")
        self.assertIn(LOOSE, self.kept("mixed", "FAILED"))  # a conflict: the first payload stays

    def test_a_service_role_keeps_replaces_and_removes_payloads(self):
        name = "service_" + self.url.rsplit("/", 1)[1]
        self.psql(PG, "create role %s login in role ibid_service" % name)
        self.addCleanup(self.psql, PG, "drop role " + name)
        self.url = self.url.replace("postgres@", name + "@")
        self.submit("plain", "k", document("fail"), code=7)
        self.submit("plain", "k", document("fail"), code=7)
        self.assertEqual(self.payload("plain", "k")["seen"], SEEN)
        self.file("contracts/plain.yaml", contract("plain").replace("payload: store\n", "").replace("version: 1", "version: 2"))
        self.submit("plain", "k", document("fail"), code=7)
        self.assertIsNone(self.payload("plain", "k"))
        self.url = self.url.replace(name + "@", "postgres@")

    def test_what_must_be_encrypted_is_refused_in_sql_before_anything_is_written(self):
        for operation in ("stored", "redacted", "encrypted"):
            with self.assertRaises(psycopg2.Error) as caught:
                self.begin(operation, "k", json.dumps(document("ok")))
            self.assertEqual(caught.exception.pgcode, "IB012")
            self.assertIn("libibid", caught.exception.diag.message_hint)
            self.assertNotIn(NOTE, str(caught.exception))
        self.assertEqual(self.begin("unkept", "k", json.dumps(document("ok")), "select ibid.command_complete(%s, 201)")[0], "execute")
        self.assertEqual(self.sql("select count(*) from ibid.command"), [(1,)])
        self.assertEqual(self.sql("select count(*) from ibid.payload"), [(0,)])

    def test_an_expired_command_takes_its_payload_with_it_in_sql_too(self):
        self.file("contracts/mixed.yaml", contract("mixed").replace("version: 1", "version: 2") + "key: { after_expiry: run-again }\n"
                  "unique:\n  some_index: { on_duplicate: reject, find: note.$store.sql }\n")
        self.ibid("contract", "apply", self.contracts)
        done = "select ibid.command_complete(%s, 201, '{}')"
        _, first = self.begin("mixed", "k", json.dumps(document("ok")), done)
        self.sql("update ibid.command set expires_at = 'epoch'")
        _, second = self.begin("mixed", "k", json.dumps(document("ok")), done)
        self.assertNotEqual(first, second)
        self.assertEqual(self.sql("select command_id::text from ibid.payload"), [(second,)])
        self.assertEqual(self.sql("select command_id::text from ibid.answer"), [(second,)])


if __name__ == "__main__":
    unittest.main()
