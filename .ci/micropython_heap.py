# SPDX-License-Identifier: MIT
"""Print the heap that tensorfmt and its first uses take on MicroPython, garbage included.

The WebAssembly builds have 32-bit words, as most boards, and never free anything while a script
runs: what is printed is all that was ever asked for. A board collects some of it on the way.
"""
import gc


def kilobytes(since):
    return "%.0f KB" % ((gc.mem_alloc() - since) / 1000)


def main():
    since = gc.mem_alloc()
    import tensorfmt
    print("@ heap to import: %s" % kilobytes(since))
    made = {"w%d" % i: tensorfmt.tensor(bytes(4000), "float32") for i in range(10)}
    for kind in tensorfmt.FORMATS:
        path = "heap" + kind.SUFFIXES[0]
        tensorfmt.save(path, made)
        since = gc.mem_alloc()
        with tensorfmt.load(path) as file:
            opened = kilobytes(since)
            since = gc.mem_alloc()
            first = next(iter(file["w3"].flat))
            print("%s: %s to open 10 tensors of 4 KB, %s for the first value of one" % (
                kind.NAME, opened, kilobytes(since)))
        if first != 0.0:
            raise SystemExit("%s gives %r, not 0.0" % (kind.NAME, first))


main()
