#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT PREFIX FILE... -- write SQL files as C string constants.

command_get.sql becomes `static const char sql_PREFIX_command_get[]`."""
import os
import sys


def c_string(text):
    lines = text.splitlines() or [""]
    quoted = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return "\n".join('\t"%s\\n"' % line for line in quoted)


def constant(symbol, text):
    return "__attribute__((unused)) static const char %s[] =\n%s;" % (symbol, c_string(text))


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def main(out, prefix, files):
    parts = ["/* made by tools/embed.py from the .sql files */"]
    for path in files:
        parts.append(constant("sql_%s_%s" % (prefix, os.path.basename(path)[:-len(".sql")]), read(path)))
    with open(out, "w", encoding="utf-8") as handle:
        handle.write("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
