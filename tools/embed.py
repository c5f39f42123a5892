#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT PREFIX FILE... -- write SQL files as C string constants.

command_get.sql becomes `static const char sql_PREFIX_command_get[]`; files named NNN_name.sql
(migrations) are listed in order in `PREFIX_migrations[]`; several may share a number."""
import os
import re
import sys


def c_string(text):
    lines = text.splitlines() or [""]
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return "\n".join('\t"%s\\n"' % line for line in quoted)


def main(out, prefix, files):
    parts = ["/* made by tools/embed.py from the .sql files */"]
    migrations = []
    for path in files:
        name = os.path.basename(path)[:-len(".sql")]
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        number = re.match(r"(\d{3})_", name)
        symbol = "sql_%s_%s" % (prefix, ("m" + name) if number else name)
        parts.append("__attribute__((unused)) static const char %s[] =\n%s;" % (symbol, c_string(text)))
        if number:
            migrations.append((int(number.group(1)), name, symbol))
    migrations.sort()
    numbers = sorted({number for number, _, _ in migrations})
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit("embed.py: migrations must be numbered 001, 002, ... without gaps")
    if migrations:
        rows = "".join('\t{%d, "%s", %s},\n' % row for row in migrations)
        parts.append("static const struct migration %s_migrations[] = {\n%s};" % (prefix, rows))
    with open(out, "w", encoding="utf-8") as handle:
        handle.write("\n\n".join(parts) + "\n")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
