#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""statements.py SRC/STORE OUT_IDS OUT_SQLITE OUT_POSTGRES -- make C of the store's .sql files.

SRC/STORE/sql holds the ordinary statements: NAME.sql for both engines, or NAME.sqlite.sql and
NAME.postgres.sql where they differ. Their parameters are named (`:tenant`). They are written as
PostgreSQL reads them; for SQLite `ibid.x` becomes `ibid_x`, columns that hold an instant (`at`,
`since`, `..._at`) are called `..._us`, and casts (`::text`) and collations go. A line that ends in
`-- sqlite: TEXT` is TEXT there. `clock_timestamp()` is the store's clock: SQLite is given the time of
the process. `{name}` stands for the columns in columns/name.sql; in a list of columns,
`instant(c.opened_at)` is microseconds since 1970 and `digest(c.hash)` 32 bytes.
A line `-- demands one row: TEXT` refuses a statement that changes no row: its transaction can't
commit then, and TEXT says why. A line `-- same as NAME` stands for NAME's text.

SRC/STORE/sqlite/sql and SRC/STORE/postgres/sql hold each engine's own statements, whose parameters
have numbers; what stands for columns may be used there, too.
SRC/STORE/.../migrations hold its schema: NNN_concept.sql. The files of one number are one version; they run in the
order of their names, but `schema` first and `privileges` last.

Files whose content stays the same are not written, so that nothing is compiled anew."""
import glob
import os
import re
import sys

from embed import constant, read

DEMAND = re.compile(r"^-- demands one row: (.+)$", re.M)
SAME = re.compile(r"^-- same as (\w+)$", re.M)
# Comments, quoted texts and casts are skipped; what remains of interest is a parameter or a name.
COLUMNS = re.compile(r"^\{(\w+)\}", re.M)
SQLITE_LINE = re.compile(r"^.*-- sqlite:(.*)$", re.M)
CLOCK = "clock_timestamp()"
COLUMN = re.compile(r"\b(instant|digest)\(((?:\w+\.)?(\w+))\)")
TOKEN = re.compile(r"""--[^\n]*|'(?:[^']|'')*'|(?P<pg>::\w+|[ ]collate[ ]"\w+")|:(?P<param>[a-z_]+)"""
                   r"""|(?P<name>\bibid\.|(?<![\w.$])\w+\b|(?<=\.)\w+\b)""", re.S)


def named(path):
    return os.path.basename(path)[:-len(".sql")]


def sql_files(*place):
    return sorted(glob.glob(os.path.join(*place, "*.sql")))


def sqlite_word(word):
    if word == "ibid.":
        return "ibid_"
    if word[0] in ": ":  # a cast, a collation
        return ""
    if word in ("at", "since", "lease_until"):
        return word + "_us"
    return word[:-3] + "_us" if word.endswith("_at") else word


def postgres_column(match):
    kind, column, name = match.groups()
    if kind == "instant":
        return "(extract(epoch from %s) * 1000000)::bigint as %s" % (column, name)
    return "encode(%s, 'hex') as %s" % (column, name)


def sqlite_token(match):
    word = match.group("name") or match.group("pg")
    return sqlite_word(word) if word else match.group()


class Ordinary:
    """One ordinary statement: its text for each engine, and the names of its parameters."""

    def __init__(self, name, versions):
        self.name = name
        texts = {engine: versions.get(engine) or versions.get("", "") for engine in ("sqlite", "postgres")}
        demands = {engine: DEMAND.findall(text) for engine, text in texts.items()}
        if demands["sqlite"] != demands["postgres"]:
            sys.exit("statements.py: %s demands one row of one engine only" % name)
        self.demand = demands["sqlite"][0] if demands["sqlite"] else None
        self.params = []
        sqlite = COLUMN.sub(r"\2", SQLITE_LINE.sub(r"\1", texts["sqlite"]))
        self.sqlite = self.translate(sqlite, "?%d", sqlite_word)
        postgres = COLUMN.sub(postgres_column, texts["postgres"])
        self.postgres = self.translate(postgres, "$%d", lambda word: word)
        self.clock = CLOCK in self.sqlite
        self.sqlite = self.sqlite.replace(CLOCK, "?%d" % (len(self.params) + 1))
        if self.demand:
            self.postgres = ("with changed as (\n%s\nreturning 1)\nselect ibid.demand(exists (select from changed), "
                             "'IB006', '%s')" % (self.postgres.rstrip("\n"), self.demand.replace("'", "''")))

    def translate(self, text, place, word_of):
        def replace(match):
            if match.group("param"):
                if match.group("param") not in self.params:
                    self.params.append(match.group("param"))
                return place % (self.params.index(match.group("param")) + 1)
            word = match.group("name") or match.group("pg")
            return word_of(word) if word else match.group()
        return TOKEN.sub(replace, text)


def ordinary(folder, columns):
    by_name = {}
    for path in sql_files(folder):
        name, _, engine = named(path).partition(".")
        by_name.setdefault(name, {})[engine] = path
    texts = {name: {engine: COLUMNS.sub(lambda found: columns[found.group(1)], read(path))
                    for engine, path in paths.items()} for name, paths in by_name.items()}
    for name, versions in texts.items():
        for engine, text in versions.items():
            same = SAME.search(text)
            if same:
                other = texts[same.group(1)]
                versions[engine] = "-- %s\n" % name + (other.get(engine) or other[""]).split("\n", 1)[1]
    return [Ordinary(name, versions) for name, versions in sorted(texts.items())]


def own_text(path, columns, engine):
    """A statement of one engine."""
    def expand(match):
        text = columns[match.group(1)]
        return TOKEN.sub(sqlite_token, SQLITE_LINE.sub(r"\1", text)) if engine == "sqlite" else text
    return COLUMN.sub(r"\2" if engine == "sqlite" else postgres_column, COLUMNS.sub(expand, read(path)))


def parameters(text):
    bare = re.sub(r"--[^\n]*", "", text)
    return max([int(number) for number in re.findall(r"\$(\d+)", bare)] or [0])


def x_list(symbol, rows):
    return "#define %s(X)%s\n" % (symbol, "".join(" \\\n\tX(%s)" % row for row in rows))


def ids(common, sqlite, postgres):
    quoted = lambda text: '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')
    names = "".join('static const char *const sql_params_%s[] = {%s};\n' % (
        statement.name, ", ".join(map(quoted, statement.params)) or "0") for statement in common)
    return "\n".join([
        "/* made by tools/statements.py from the .sql files */",
        "/* X(name, number of parameters, whether SQLite gets the time as one more, what a changed row is demanded for or NULL) */",
        x_list("SQL_STATEMENTS", ["%s, %d, %d, %s" % (statement.name, len(statement.params), statement.clock,
                                                      quoted(statement.demand) if statement.demand else "0")
                                  for statement in common]),
        "/* X(name) */", x_list("LITE_STATEMENTS", [named(path) for path in sqlite]),
        "/* X(NAME, name, number of parameters) */",
        x_list("PG_STATEMENTS", ["%s, %s, %d" % (named(path).upper(), named(path), parameters(read(path)))
                                 for path in postgres]),
        "#ifdef SQL_PARAMS\n%s#endif\n" % names])


def migrations(prefix, paths):
    place = {"schema": 0, "privileges": 2}
    rows = sorted(((int(named(path)[:3]), named(path)) for path in paths),
                  key=lambda row: (row[0], place.get(row[1][4:], 1), row[1]))
    numbers = sorted({number for number, _ in rows})
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit("statements.py: migrations must be numbered 001, 002, ... without gaps")
    texts = [constant("sql_%s_m%s" % (prefix, named(path)), read(path)) for path in paths]
    table = "static const struct migration %s_migrations[] = {\n%s};" % (
        prefix, "".join('\t{%d, "%s", sql_%s_m%s},\n' % (number, name, prefix, name) for number, name in rows))
    return texts + [table]


def engine(prefix, texts, paths, steps, columns):
    parts = ["/* made by tools/statements.py from the .sql files */"]
    parts += [constant("sql_%s_%s" % (prefix, name), text) for name, text in texts]
    parts += [constant("sql_%s_%s" % (prefix, named(path)), own_text(path, columns, prefix)) for path in paths]
    return "\n\n".join(parts + migrations(prefix, steps)) + "\n"


def write(path, text):
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)


def columns_of(store):
    return {named(path): read(path).rstrip("\n") for path in sql_files(store, "sql", "columns")}


def main(store, out_ids, out_sqlite, out_postgres):
    columns = columns_of(store)
    common = ordinary(os.path.join(store, "sql"), columns)
    own = {name: sql_files(store, name, "sql") for name in ("sqlite", "postgres")}
    steps = {name: sql_files(store, name, "migrations") for name in own}
    for name, paths in own.items():
        twice = {named(path) for path in paths} & {statement.name for statement in common}
        if twice:
            sys.exit("statements.py: %s has ordinary statements of its own: %s" % (name, ", ".join(sorted(twice))))
    write(out_ids, ids(common, own["sqlite"], own["postgres"]))
    write(out_sqlite, engine("sqlite", [(each.name, each.sqlite) for each in common], own["sqlite"], steps["sqlite"], columns))
    write(out_postgres, engine("pg", [(each.name, each.postgres) for each in common], own["postgres"], steps["postgres"], columns))


if __name__ == "__main__":
    main(*sys.argv[1:])
