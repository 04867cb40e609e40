# SPDX-License-Identifier: MIT
"""Fuzz tensorfmt.py guided by coverage: atheris_fuzz.py SECONDS [OPTION OF LIBFUZZER ...]

Needs the package atheris (CPython 3.11 to 3.13 on Linux). What must hold for each input is
check_mutant() of fuzz.py. It starts from the good and the bad files of the tests; half of
the changes are those of fuzz.py. A finding ends it: it is in a file crash-..., which
`python3 test_tensorfmt.py fuzz FILE` checks again.
"""
import os
import sys
import tempfile
from random import Random

import atheris

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

with atheris.instrument_imports(include=["tensorfmt"]):
    import tensorfmt  # noqa: F401  (before the others, which import it, too)
import fuzz
import test_tensorfmt


def check(data):
    try:
        fuzz.check_mutant(test_tensorfmt, data)
    except MemoryError as error:  # libFuzzer would take it for its own limit
        raise AssertionError("out of memory") from error


def change(data, most, seed):
    """Return a changed input: as fuzz.py does it if it is a good file, else as libFuzzer does."""
    draw = Random(seed)
    try:
        if draw.random() < 0.5:
            one = fuzz.Mutants(test_tensorfmt, data)
            return one.make(draw, [one])[:most]
    except (ValueError, IndexError):  # it is not a good file, or without fields
        pass
    return atheris.Mutate(data, most)


def main():
    seconds = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        files = test_tensorfmt.fuzz_files() + [row[1] for row in test_tensorfmt.bad_files()]
        for i, data in enumerate(files):
            test_tensorfmt.write_file(os.path.join(folder, str(i)), data)
        atheris.Setup([sys.argv[0], "-max_total_time=" + seconds, "-max_len=20000", "-timeout=10",
                       "-rss_limit_mb=1024", "-print_final_stats=1"] + sys.argv[2:] + [folder],
                      check, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
