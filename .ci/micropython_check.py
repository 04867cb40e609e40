# SPDX-License-Identifier: MIT
"""Read the golden files of test_tensorfmt.py on MicroPython, three ways each, and compare.

Runs beside tensorfmt.py and test_tensorfmt.py, on CPython too; exit code 1 after any mismatch,
and when one of the five formats had no file that could be read.
"""
import binascii
import io
import os
import sys

import tensorfmt
from test_tensorfmt import FORMATS, GOLDENS, numbers, same


def flat(nested, depth):
    """Return the numbers of nested lists, outermost first."""
    level = [nested]
    for _ in range(depth):
        level = [item for part in level for item in part]
    return level


def faults(source, kind, wanted):
    """Yield (what, found, wanted) for each thing about one file that is not as it should be."""
    with tensorfmt.load(source) as file:
        if file.format != kind:
            yield "format", file.format, kind
        if sorted(file) != sorted(wanted):
            yield "names", sorted(file), sorted(wanted)
            return
        for name in wanted:
            dtype, shape, text = wanted[name]
            tensor = file[name]
            if tensor.dtype != dtype:
                yield name + ": dtype", tensor.dtype, dtype
            if tuple(tensor.shape) != tuple(shape):
                yield name + ": shape", tensor.shape, shape
            if text is None:  # nothing to compare: the row says only what kind of tensor it is
                continue
            data = binascii.unhexlify(text)
            if bytes(tensor.tobytes()) != data:
                yield name + ": bytes", bytes(tensor.tobytes()), data
                continue
            elements = numbers(dtype, data)
            if elements is not None:
                found = flat(tensor.tolist(), len(shape))
                if not same(found, elements):
                    yield name + ": values", found, elements


def check(kind, data, wanted):
    """Return how many things were wrong with one file; raise Unsupported for what needs zstd."""
    with open("golden.bin", "wb") as stream:
        stream.write(data)
    wrong = 0
    for way, source in (("bytes", data), ("path", "golden.bin"), ("stream", io.BytesIO(data))):
        for what, found, expected in faults(source, kind, wanted):
            wrong += 1
            print("FAIL from %s, %s: %r, wanted %r" % (way, what, found, expected))
    return wrong


def main():
    read = {kind: 0 for kind in FORMATS}
    skipped = tensors = wrong = 0
    for kind, title, writer, text, wanted in GOLDENS:
        try:
            mistakes = check(kind, binascii.a2b_base64(text), wanted)
        except tensorfmt.Unsupported as error:
            if "zstd" not in str(error):
                raise
            skipped += 1
            continue
        except Exception as error:
            print("FAIL %s: %r" % (title, error))
            if hasattr(sys, "print_exception"):
                sys.print_exception(error)
            mistakes = 1
        if mistakes:
            print("FAIL %s, written by %s: see above" % (title, writer))
            wrong += mistakes
        else:
            read[kind] += 1
            tensors += len(wanted)
    os.remove("golden.bin")
    print("@ %s %d.%d.%d" % ((sys.implementation.name,) + tuple(sys.implementation.version)[:3]))
    counts = (sum(read.values()), tensors, skipped)
    print("@ %d golden files with %d tensors read, %d need zstd" % counts)
    print(", ".join(["%s %d" % (kind, read[kind]) for kind in FORMATS]))
    for kind in FORMATS:
        if not read[kind]:
            wrong += 1
            print("FAIL no golden file of %s was read" % kind)
    if wrong:
        raise SystemExit(1)


main()
