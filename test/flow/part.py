# SPDX-License-Identifier: Apache-2.0
"""part.py FILE PARTS PART -- run the test cases of one part of a test program that is split, so that its parts run side by side.

PARTS are divided by blanks, and PART is one of them: a regular expression for names of classes, or with `:I/N` behind it every
N-th of their test cases from the I-th on. Each case must belong to exactly one part, so that none is left out."""
import importlib.util
import os
import re
import sys
import unittest


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def belongs(case, number, part):
    """Whether a part has the case that is the number-th of its class."""
    pattern, _, share = part.partition(":")
    if not re.fullmatch(pattern, type(case).__name__):
        return False
    nth, of = map(int, share.split("/")) if share else (1, 1)
    return number % of == nth - 1


def main(path, parts, part):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    chosen, numbers = unittest.TestSuite(), {}
    for case in cases_of(unittest.defaultTestLoader.loadTestsFromModule(load(path))):
        number = numbers[type(case)] = numbers.get(type(case), -1) + 1
        having = [one for one in parts.split() if belongs(case, number, one)]
        if len(having) != 1:
            sys.exit("%s: %s belongs to %s of the parts %s" % (path, case.id(), having or "none", parts))
        if having == [part]:
            chosen.addTest(case)
    if not chosen.countTestCases():
        sys.exit("%s: part %s has no test case" % (path, part))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(chosen).wasSuccessful())


main(*sys.argv[1:])
