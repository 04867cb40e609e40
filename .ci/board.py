# SPDX-License-Identifier: MIT
"""Check copies of tensorfmt on the interpreter that runs this, which is in the folder of this file.

Beside it lie the copies, modules made by `vendor --with load`, and for each a file COPY.json by
copies.py: rows (title, bytes in hex, answer) of the good and bad files of test_tensorfmt.py, with
what the same copy says of them on CPython. Each is read from bytes, a file and a stream; its
tensors are shown and compared.
`board.py circuitpython`: by that name, and without what CircuitPython lacks.
"""
import binascii
import io
import json
import os
import sys

LAX = "not UTF-8"  # in titles of files that MicroPython reads: its decoder is lax


def answer_of(copy, source):
    """Return what a copy says of a file, in lists, or why it refuses it."""
    try:
        file = copy.load(source)
    except copy.FormatError as error:
        return [type(error).__name__, error.offset, error.field, error.tensor]
    rows = [[name, item.dtype, list(item.shape), item.offset, item.nbytes, values_of(copy, item)]
            for name, item in file.items()]
    return [file.format, sorted(map(str, file.metadata)), sorted(map(str, file.attrs)), rows]


def values_of(copy, item):
    """Return the bytes of a tensor and its first values, also of parts, or why it has none."""
    some = [binascii.hexlify(bytes(item.raw)[:1000]).decode(), repr(item)]
    some.append([item == item, item == 5, item in [item], len(set([item]))])
    try:
        some.append(binascii.hexlify(item.tobytes()[:1000]).decode())
        some.append([text_of(value) for _, value in zip(range(100), item.flat)])
        if item.shape and 0 < item.size < 100:
            some.append([text_of(value) for value in item[::-1].flat])
            some.append(text_of(item[(-1,) * item.ndim]))
    except copy.FormatError as error:
        some.append(str(error.what))
    return some


def text_of(value):
    """Return a number as text that is the same where floats are shown with other digits."""
    return "%.5g" % value if isinstance(value, float) else str(value)


def check_copy(name):
    """Return how often a copy says something else than on CPython."""
    copy, failed, path = __import__(name), 0, name + ".bin"
    with open(name + ".json") as stream:
        cases = json.load(stream)
    for title, digits, wanted in cases:
        data = binascii.unhexlify(digits)
        with open(path, "wb") as stream:
            stream.write(data)
        for source in (data, path, io.BytesIO(data)):
            answer = answer_of(copy, source)
            if answer != wanted and not title.endswith(LAX):
                failed += 1
                print("FAIL %s: %s\n  is     %s\n  wanted %s" % (name, title, answer, wanted))
    print("@ %s: %d files, %d failed" % (name, len(cases), failed))
    return failed if cases else 1


class Names:
    """In place of a module: some of its names."""


def be_circuitpython():
    """Take away what CircuitPython lacks of the modules that copies import."""
    lacks = "threshold", "getpid", "exc_info", "fsdecode", "register_at_fork"
    for name in "sys", "gc", "os":
        module, names = __import__(name), Names()
        for key in dir(module):
            if key not in lacks:
                setattr(names, key, getattr(module, key))
        sys.modules[name] = names
    sys.modules["_thread"] = Names()
    named = Names()
    named.name, named.version = "circuitpython", sys.implementation.version
    sys.modules["sys"].implementation = named


def main(name=""):
    if name == "circuitpython":
        be_circuitpython()
    names = [name[:-5] for name in sorted(os.listdir()) if name.endswith(".json")]
    failed = sum([check_copy(name) for name in names])
    print("@ %s %d.%d.%d %s" % ((sys.implementation.name,) + tuple(sys.implementation.version)[:3]
                                + (name,)))
    if failed or not names:
        raise SystemExit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
