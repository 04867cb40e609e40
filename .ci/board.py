# SPDX-License-Identifier: MIT
"""Run the portable tests on MicroPython: board.py [COPY ...]

Runs beside tensorfmt and test_tensorfmt.py. Each COPY is a module made by `vendor`: then only the
checks of copies run, on each. Firmware has no unittest: what the tests need of it stands here.
"""
import sys


class SmallTestCase:
    """What the portable tests use of unittest.TestCase."""

    maxDiff = None

    def subTest(self, *about, **facts):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def fail(self, note):
        raise AssertionError(note)

    def assertTrue(self, value, note=None):
        if not value:
            self.fail(note or "%r is not true" % (value,))

    def assertFalse(self, value, note=None):
        self.assertTrue(not value, note)

    def assertEqual(self, a, b, note=None):
        self.assertTrue(a == b, note or "%r != %r" % (a, b))

    def assertIs(self, a, b, note=None):
        self.assertTrue(a is b, note)

    def assertIsNone(self, value, note=None):
        self.assertTrue(value is None, note)

    def assertIn(self, part, whole, note=None):
        self.assertTrue(part in whole, note or "%r is not in %r" % (part, whole))


def skip_unless(condition, reason):
    """As unittest.skipUnless: a class or function that is skipped becomes None."""
    return lambda thing: thing if condition else None


class SmallUnittest:
    TestCase, skipUnless = SmallTestCase, staticmethod(skip_unless)


sys.modules["unittest"] = SmallUnittest

import test_tensorfmt  # noqa: E402


def portable_tests():
    """Yield (name, function) of each test that runs here."""
    for name in sorted(dir(test_tensorfmt)):
        kind = getattr(test_tensorfmt, name)
        if not (isinstance(kind, type) and name.endswith("Test")):
            continue
        for test in sorted(dir(kind)):
            if test.startswith("test_") and getattr(kind, test) is not None:
                yield "%s.%s" % (name, test), one_test(kind(), test)


def one_test(case, name):
    """Return a function that runs a test between its setUp and its tearDown."""
    def run():
        if hasattr(case, "setUp"):
            case.setUp()
        getattr(case, name)()
        if hasattr(case, "tearDown"):
            case.tearDown()
    return run


def copy_tests(names):
    """Yield (name, function) of the check of each copy."""
    for name in names:
        def check(name=name):
            test_tensorfmt.check_copy(test_tensorfmt.TestCase(), __import__(name))
        yield name, check


def main(names):
    passed = failed = 0
    for name, test in copy_tests(names) if names else portable_tests():
        try:
            test()
            passed += 1
        except Exception as error:
            failed += 1
            print("FAIL " + name)
            sys.print_exception(error)
    print("@ %s %d.%d.%d" % ((sys.implementation.name,) + tuple(sys.implementation.version)[:3]))
    print("@ %d passed, %d failed" % (passed, failed))
    if failed or not passed:
        raise SystemExit(1)


main(sys.argv[1:])
