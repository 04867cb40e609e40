# SPDX-License-Identifier: MIT
"""Write the good and the bad files of the tests, for other readers of these formats.

    python3 test_tensorfmt.py corpus FOLDER

FOLDER/manifest.json is a list of {file, format, verdict, rule, offset, message}. The verdict is
"good", "bad" (it breaks the rule) or "unsupported" (it may be right; tensorfmt does not read what
the message names). The rule is the check, as `verify` names it, and the field, as `explain` does;
the offset is where that field lies.
"""
import json
import os
import re
import sys


def list_files(tests):
    """Return (name, bytes, wanted error or None) of every file."""
    made, wrong = tests.fuzz_files()[len(tests.FILES):], tests.wrong_files()
    return ([(row[1], row[2], None) for row in tests.FILES]
            + [("made %02d" % i, data, None) for i, data in enumerate(made)]
            + [row[:3] for row in tests.bad_files()]
            + [("wrong %02d" % i, row[0], row[1]) for i, row in enumerate(wrong)])


def write_corpus(tests, folder):
    """Write all files and the manifest; return its rows."""
    rows = []
    verdicts = {None: "good", tests.FormatError: "bad", tests.Unsupported: "unsupported"}
    os.makedirs(folder, exist_ok=True)
    for name, data, kind in list_files(tests):
        format = tests.tensorfmt.detect(data)
        if " " in name or "." not in name:
            end = tests.tensorfmt.find_format(format).SUFFIXES[0] if format else ".bin"
            name = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_") + end
        error = kind and tests.error_of(kind, tests.load, data)
        rows.append({"file": name, "format": format, "verdict": verdicts[kind],
                     "rule": error and "%s: %s" % (error.check, error.field),
                     "offset": error and error.offset, "message": error and error.what})
        tests.write_file(os.path.join(folder, name), data)
    text = json.dumps(rows, indent=1) + "\n"
    tests.write_file(os.path.join(folder, "manifest.json"), text.encode())
    return rows


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 test_tensorfmt.py corpus FOLDER")
    import test_tensorfmt
    print("%d files and manifest.json" % len(write_corpus(test_tensorfmt, sys.argv[1])))
