# SPDX-License-Identifier: MIT
"""Run the portable classes of the test file under MicroPython."""
import unittest

import test_tensorfmt  # noqa: F401  (unittest.main finds its classes by name)

unittest.main("test_tensorfmt")
