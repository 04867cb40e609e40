# SPDX-License-Identifier: MIT
"""Measure tensorfmt beside the libraries that are installed, and tell which goals it meets.

    python3 .ci/bench.py [NAME ...] [--quick] [--json] [--old FILE]

NAME is a group of ROWS (open, write ...); all of them unless given. --old measures another version
of tensorfmt.py in the same rounds. --quick: few rounds and small sizes, with times scaled up.
Each round runs the floor, tensorfmt and every peer, in any order; a number is the median of rounds.
Times are CPU times, by process_time(), or by getrusage() of child processes (wall time on Windows).
Only where a row waits for the disk or for a new process (save, cold) it is wall time.
"""
import argparse
import gc
import hashlib
import importlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
from array import array
from contextlib import redirect_stdout
from functools import lru_cache, partial
from importlib import util
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from textwrap import fill
from time import perf_counter, process_time, strftime
from timeit import timeit

MIB, GIB = 1 << 20, 1 << 30
PEERS = {"numpy": "numpy", "safetensors": "safetensors", "ztensor": "ztensor", "torch": "torch",
         "ml-dtypes": "ml_dtypes", "google-crc32c": "google_crc32c", "crc32c": "crc32c",
         "zstandard": "zstandard"}  # packages and their modules
FIXED = ("floor", "tensorfmt", "old")  # columns; the others are peers

# The must and the aim are the most that tensorfmt's number may be (of a rate, in .../s, the least):
# divided by that of the column named last; less the floor for "+"; as it is for "".
COLUMNS = ("group", "row", "unit", "must", "aim", "against")
ROWS = (
    ("open", "mag", "ms", 1.1, 0.75, "safetensors"),
    ("open", "tensorbuffers", "ms", 1.2, 0.9, "safetensors"),
    ("open", "burnpack", "ms", 1.9, 1.4, "safetensors"),
    ("open", "primitiv", "ms", 2.2, 1.7, "safetensors"),
    ("open", "ztensor", "ms", 2.0, 1.5, "safetensors"),
    ("open", "safetensors", "ms", 1.5, 1.2, "safetensors"),
    ("write", "mag", "ms", 0.8, 0.4, "safetensors"),
    ("write", "tensorbuffers", "ms", 1.5, 0.75, "safetensors"),
    ("write", "burnpack", "ms", 1.2, 0.6, "safetensors"),
    ("write", "primitiv", "ms", 2.0, 1.0, "safetensors"),
    ("write", "ztensor", "ms", 1.5, 0.75, "safetensors"),
    ("index", "w[1, 0]", "us", 2.5, 1.5, ""),
    ("index", "w[1]", "us", 4.0, 2.5, ""),
    ("index", "w.data", "us", 0.8, None, ""),
    ("index", "numpy.asarray(w)", "us", 2.5, None, ""),
    ("zstd", "w[i]", "ms", 0.1, None, ""),
    ("import", "with .pyc", "ms", 3.0, 2.0, "+"),
    ("import", "without .pyc", "ms", None, None, "+"),
    ("script", "ls, without .pyc", "ms", 0.6, None, "old"),
    ("script", "ls, not the first", "ms", None, None, "old"),
    ("cold", "mag", "ms", 5.0, 3.0, "+"),
    ("cold", "ztensor", "ms", 5.0, 3.0, "+"),
    ("cast", "float32 to bfloat16", "M/s", 90, 116, ""),
    ("cast", "float16 to float32", "M/s", 90, 112, ""),
    ("cast", "bfloat16 to float32", "M/s", 400, 668, ""),
    ("layout", "to row-major", "MB/s", 0.25, 0.5, "numpy"),
    ("layout", "to column-major", "MB/s", 0.25, 0.5, "numpy"),
    ("swap", "256 KB", "GB/s", 0.6, 0.9, "floor"),
    ("swap", "16 MB", "GB/s", 0.6, 0.9, "floor"),
    ("swap", "256 MB", "GB/s", 0.6, 0.9, "floor"),
    ("swap", "256 MB, .data", "GB/s", 0.6, 0.9, "floor"),
    ("save", "mag", "s", 1.1, 1.03, "floor"),
    ("save", "tensorbuffers", "s", 1.1, 1.03, "floor"),
    ("save", "burnpack", "s", 1.1, 1.03, "floor"),
    ("save", "primitiv", "s", 2.0, None, "floor"),
    ("save", "ztensor", "s", 1.1, 1.03, "floor"),
    ("many", "mag", "us", 1.25, None, "floor"),
    ("many", "mag, memory", "B", 1.25, None, "floor"),
    ("many", "ztensor", "us", 1.25, None, "floor"),
    ("many", "ztensor, memory", "B", 1.25, None, "floor"),
    ("convert", "burnpack", "s", 5.0, 3.0, ""),
    ("convert", "ztensor", "s", 5.0, 3.0, ""),
    ("stats", "get --stats", "s", 4.0, 2.0, ""),
    ("diff", "equal files", "s", 4.0, 2.0, ""),
    ("verify", "crc32c", "s", 1.1, 1.0, "floor"),
    ("verify", "sha256", "s", 1.1, 1.0, "floor"),
    ("verify", "crc32c()", "MB/s", 700, None, ""),
)


# == How it is measured ===========================================================================


def measure(run, group, calls, rounds=9, clock=process_time, amount=1, limit=20.0):
    """Return {row: {column: number}} of calls {(row, column): call}, in the units of ROWS.

    A call of the row "" counts for all. `clock` None: a call returns its seconds itself. `amount`
    is what a rate counts; times are multiplied by it. No round begins that would end after `limit`
    seconds, but for the first. The order changes: what ran before leaves its mark on memory.
    """
    if run.quick:
        rounds, limit = min(rounds, 3), limit / 10
    taken, order, rng = {key: [] for key in calls}, list(calls.items()), Random(len(calls))
    begin, longest, done = perf_counter(), 0.0, 0
    while not done or (done < rounds and perf_counter() - begin + longest < limit):
        before, done = perf_counter(), done + 1
        rng.shuffle(order)
        for key, call in order:
            gc.collect()
            start = clock() if clock else 0.0
            kept = call()
            taken[key].append(clock() - start if clock else kept)
            kept = None  # freed when the clock has stopped
        longest = max(longest, perf_counter() - before)
    found = {}
    for _, name, unit, *_ in [row for row in ROWS if row[0] == group]:
        if [row for row, _ in taken if row == name]:
            run.rounds[group, name] = done
            found[name] = {column: in_unit(median(times), unit, amount)
                           for (row, column), times in taken.items() if row in ("", name)}
    return found


def in_unit(seconds, unit, amount):
    scale = {"s": 1, "ms": 1e3, "us": 1e6, "M": 1e6, "MB": 1e6, "GB": 1e9}[unit.split("/")[0]]
    return amount / seconds / scale if "/" in unit else seconds * amount * scale


def versions(run, row, call, *args):
    """Return {(row, column): call} with `call(module, *args)` for each version of tensorfmt."""
    return {(row, column): partial(call, module, *args) for column, module in run.modules.items()}


def timed(statement, number, **scope):
    """Return a call that runs a statement `number` times and returns the seconds of one."""
    return lambda: timeit(statement, timer=process_time, number=number, globals=scope) / number


def children_time():
    try:
        from resource import RUSAGE_CHILDREN, getrusage
    except ImportError:  # Windows
        return perf_counter()
    return sum(getrusage(RUSAGE_CHILDREN)[:2])


def python(run, column, *args, cached=True):
    """Return a call that runs a new Python, where `import tensorfmt` finds this version.

    Without the module site, which may import anything by .pth files: all begin with `import os`.
    """
    paths = [run.path(column, "cached" if cached else "bare")]
    paths += [path for path in sys.path if path.endswith("-packages")]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths),
               PYTHONDONTWRITEBYTECODE="" if cached else "1")  # as if it could not be written
    env.pop("PYTHONPYCACHEPREFIX", None)
    return partial(subprocess.check_output, [sys.executable, "-S", *args], env=env, cwd=run.folder)


@lru_cache(None)
def peer(module):
    """Return a module, or None where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


# == Data =========================================================================================


@lru_cache(None)
def gaussians():
    """Return 4 MB: float32, sigma 0.05."""
    rng = Random(10)
    return array("f", [rng.gauss(0, 0.05) for _ in range(MIB)]).tobytes()


def matrix(data, shape):
    """Return float32 bytes as a numpy array, or as a memoryview without numpy."""
    if peer("numpy"):
        return peer("numpy").frombuffer(data, "f4").reshape(shape)
    return memoryview(data).cast("f", shape)


def names(count):
    return ["model.layers.%d.w%d" % divmod(i, 10) for i in range(count)]


def small_arrays(count):
    data = gaussians()
    return {name: matrix(data[i % 4096 * 256:][:256], (8, 8))
            for i, name in enumerate(names(count))}


def model(nbytes):
    """Return 300 arrays, about nbytes in all."""
    width = nbytes // (300 * 4096)
    size = 4096 * width
    data = memoryview(gaussians() * (300 * size // (4 * MIB) + 1))
    return {"w%d" % i: matrix(data[i * size:(i + 1) * size], (1024, width)) for i in range(300)}


def big_file(run, kind, nbytes, name="big.", **options):
    """Return the path of a file of tensors of 4 MB; it is made once."""
    path = run.path(name + kind)
    if not os.path.exists(path):
        item = run.new.tensor(matrix(gaussians(), (1024, 1024)))
        items = [(name, item) for name in names(nbytes // (4 * MIB))]
        run.new.save(path, items, format=kind, **options)
    return path


def formats(run, group):
    known = [kind.NAME for kind in run.new.FORMATS]
    return [row[1] for row in ROWS if row[0] == group and row[1] in known]


# == Groups: each yields what measure() returns; the first line of its docstring is printed ========


def bench_open(run):
    """load(), all names, shapes, dtypes; 10,000 tensors [8, 8]

    load_file is that of safetensors.numpy, ztensor the library, each with a file of its own.
    """
    def ours(module, path):
        file = module.load(path)
        return file, [(name, item.shape, item.dtype) for name, item in file.items()]

    def theirs():
        file = peer("safetensors").safe_open(path, "numpy")
        return file, [(key, file.get_slice(key).get_shape()) for key in list(file.keys())]

    def ztensor():
        file = peer("ztensor").open(path + ".zt")
        return file, [(item.name, item.shape, item.dtype) for item in file.values()]
    count, calls, path = 2000 if run.quick else 10000, {}, run.path("safe")
    arrays = small_arrays(count)
    if peer("safetensors.numpy"):
        peer("safetensors.numpy").save_file(arrays, path)
        calls["", "safetensors"] = theirs
        calls["", "load_file"] = partial(peer("safetensors.numpy").load_file, path)
        if peer("ztensor"):
            peer("ztensor").convert(path, path + ".zt")
            calls["", "ztensor"] = ztensor
    for kind in formats(run, "open"):
        run.new.save(run.path(kind), arrays, format=kind)
        calls.update(versions(run, kind, ours, run.path(kind)))
    yield measure(run, "open", calls, 21, amount=10000 / count)


def bench_write(run):
    """dumps() of 10,000 tensors [8, 8]"""
    count, calls = 2000 if run.quick else 10000, {}
    arrays = small_arrays(count)
    if peer("safetensors.numpy"):
        calls["", "safetensors"] = partial(peer("safetensors.numpy").save, arrays)
    if peer("ztensor.numpy"):  # it writes to a path only
        calls["", "ztensor"] = partial(peer("ztensor.numpy").save_file, arrays, run.path("peer"))
    for column, module in run.modules.items():
        tensors = {name: module.tensor(value) for name, value in arrays.items()}
        for kind in formats(run, "write"):
            calls[kind, column] = partial(module.dumps, tensors, format=kind)
    yield measure(run, "write", calls, 9, amount=10000 / count)


def bench_index(run):
    """one call, w float32 [1024, 1024] of a .zt file"""
    path, number, calls = run.path("index.zt"), 2000 if run.quick else 20000, {}
    scope = {"numpy": peer("numpy"), "data": gaussians()}
    run.new.save(path, {"w": run.new.tensor(matrix(gaussians(), (1024, 1024)))})
    statements = {"w[1, 0]": "w[1, 0]", "w[1]": "w[1]", "w.data": "w.data"}
    if peer("numpy"):
        statements["numpy.asarray(w)"] = "numpy.frombuffer(data, 'f4').reshape((1024, 1024))"
    for statement, theirs in statements.items():
        for column, module in run.modules.items():
            calls[statement, column] = timed(statement, number, w=module.load(path)["w"], **scope)
        if peer("numpy"):
            w = matrix(gaussians(), (1024, 1024))
            calls[statement, "numpy"] = timed(theirs, number, w=w, **scope)
    yield measure(run, "index", calls, 15, clock=None)


def bench_zstd(run):
    """w[i] again and again, 16 MB; zstandard: decoding all"""
    nbytes, calls = 4 * MIB if run.quick else 16 * MIB, {}
    item = run.new.tensor(matrix(gaussians() * (nbytes // (4 * MIB)), (nbytes // 4096, 1024)))
    try:
        stored = run.new.dumps({"w": item}, format="ztensor", encoding="zstd")
    except run.new.Unsupported:  # no zstd module
        return
    for column, module in run.modules.items():
        w = module.load(stored)["w"]
        w[0].tobytes()
        calls["w[i]", column] = timed("w[5]", 4, w=w)
    if peer("zstandard"):
        frame = bytes(run.new.load(stored)["w"].raw)
        decompress = peer("zstandard").ZstdDecompressor().decompress
        calls["w[i]", "zstandard"] = timed("call(frame)", 4, call=decompress, frame=frame)
    yield measure(run, "zstd", calls, clock=None, amount=16 * MIB / nbytes)


def bench_import(run):
    """a new process; the floor: `import os`"""
    calls = {("", "floor"): python(run, "", "-c", "import os")}
    for column in run.modules:
        call = calls["with .pyc", column] = python(run, column, "-c", "import tensorfmt")
        call()
        calls["without .pyc", column] = python(run, column, "-c", "import tensorfmt", cached=False)
    for name in ("numpy", "safetensors.numpy", "ztensor"):
        if peer(name):
            calls["with .pyc", name.split(".")[0]] = python(run, "", "-c", "import " + name)
    yield measure(run, "import", calls, 11, clock=children_time)


def bench_script(run):
    """`tensorfmt.py ls` of a small file"""
    calls, path = {("", "floor"): python(run, "", "-c", "import os")}, run.path("few.zt")
    run.new.save(path, small_arrays(10))
    for column in run.modules:
        for row, folder in (("ls, without .pyc", "bare"), ("ls, not the first", "cached")):
            script = run.path(column, folder, "tensorfmt.py")
            calls[row, column] = python(run, column, script, "ls", path, cached=folder == "cached")
        calls["ls, not the first", column]()
    yield measure(run, "script", calls, 11, clock=children_time)


def bench_cold(run):
    """new process to a value of 512 MB of 300 tensors (wall)"""
    arrays, calls, path = model((64 if run.quick else 512) * MIB), {}, run.path("safe")
    for kind in formats(run, "cold"):
        run.new.save(run.path(kind), arrays, format=kind)
        code = "import tensorfmt; print(tensorfmt.load(%r)['w150'][0, 0])" % run.path(kind)
        calls.update({(kind, column): python(run, column, "-c", code) for column in run.modules})
    calls["", "floor"] = python(run, "", "-c", (
        "import os, struct; file = open(%r, 'rb'); file.seek(%d); "
        "print(*struct.unpack('f', file.read(4)))" % (
            run.path(kind), run.new.load(run.path(kind))["w150"].offset)))
    if peer("safetensors.numpy"):
        peer("safetensors.numpy").save_file(arrays, path)
        calls["", "safetensors"] = python(run, "", "-c", (
            "import safetensors; file = safetensors.safe_open(%r, 'numpy'); "
            "print(float(file.get_slice('w150')[:1][0, 0]))" % path))
        if peer("ztensor"):
            peer("ztensor").convert(path, path + ".zt")
            calls["", "ztensor"] = python(run, "", "-c", (
                "import ztensor; w = memoryview(ztensor.open(%r)['w150']); "
                "print(w.cast('B')[:4].cast('f')[0])" % (path + ".zt")))
    assert len({call() for call in calls.values()}) == 1  # all the same value
    yield measure(run, "cold", calls, 11, clock=perf_counter)


def bench_cast(run):
    """astype() of 4 M elements"""
    data = gaussians() * (1 if run.quick else 4)
    for row in [row[1] for row in ROWS if row[0] == "cast"]:
        old, _, new = row.split()
        stored = run.new.tensor(data, "float32").astype(old).tobytes()
        calls = {(row, column): partial(module.tensor(stored, old).astype, new)
                 for column, module in run.modules.items()}
        if peer("ml_dtypes"):
            types = [getattr(peer("ml_dtypes"), dtype, dtype) for dtype in (old, new)]
            calls[row, "ml_dtypes"] = partial(
                peer("numpy").frombuffer(stored, types[0]).astype, types[1])
        if peer("torch"):
            peer("torch").set_num_threads(1)  # the others spin while they wait
            types = [getattr(peer("torch"), dtype) for dtype in (old, new)]
            item = peer("torch").frombuffer(bytearray(stored), dtype=types[0])
            calls[row, "torch"] = partial(item.to, types[1])
        yield measure(run, "cast", calls, amount=len(data) // 4)


def bench_layout(run):
    """primitiv, 4096 x 4096 float32"""
    rows, nbytes, calls = (1024, 4 * MIB, {}) if run.quick else (4096, 64 * MIB, {})
    w = matrix(gaussians() * (nbytes // (4 * MIB)), (rows, rows))
    stored = run.new.dumps({"w": w}, format="primitiv")
    for column, module in run.modules.items():
        calls["to row-major", column] = module.load(stored)["w"].tobytes
        calls["to column-major", column] = partial(
            module.dumps, {"w": module.tensor(w)}, format="primitiv")
    if peer("numpy"):
        calls["to row-major", "numpy"] = partial(peer("numpy").ascontiguousarray, w.T)
        calls["to column-major", "numpy"] = partial(peer("numpy").asfortranarray, w)
    yield measure(run, "layout", calls, amount=nbytes)


def bench_swap(run):
    """.tobytes() of big-endian float32; the floor: a copy

    The results of the calls, 256 MB in all, are kept: the memory of each is new.
    """
    def repeat(call, number):
        return [call() for _ in range(number)]
    total = (64 if run.quick else 256) * MIB
    for row, size in (("256 KB", MIB // 4), ("16 MB", 16 * MIB), ("256 MB", total)):
        number, data = total // size, memoryview(gaussians() * (size // (4 * MIB) + 1))[:size]
        stored = run.new.dumps({"w": run.new.tensor(data, "float32")}, format="ztensor",
                               data_endianness="big")
        calls = {("", "floor"): partial(repeat, partial(bytes, data), number)}
        for column, module in run.modules.items():
            w = module.load(stored)["w"]
            calls[row, column] = partial(repeat, w.tobytes, number)
            calls[row + ", .data", column] = partial(repeat, partial(getattr, w, "data"), number)
        if peer("numpy"):
            w = peer("numpy").frombuffer(data, ">f4")
            calls["", "numpy"] = partial(repeat, w.byteswap, number)
        yield measure(run, "swap", calls, amount=total)


def bench_save(run):
    """512 MB of 300 tensors; the floor: write, fsync (wall)"""
    def raw(path):
        with open(path, "wb", buffering=0) as stream:
            assert stream.write(data) == len(data)
            os.fsync(stream.fileno())

    def safetensors(path):
        peer("safetensors.numpy").save_file(arrays, path)
        with open(path, "r+b") as stream:
            os.fsync(stream.fileno())
    nbytes = (64 if run.quick else 512) * MIB
    arrays = model(nbytes)
    data = memoryview(gaussians() * (nbytes // (4 * MIB)))[:300 * memoryview(arrays["w0"]).nbytes]
    calls = {("", "floor"): partial(raw, run.path("raw"))}
    if peer("safetensors.numpy"):
        calls["", "safetensors"] = partial(safetensors, run.path("safe"))
    for column, module in run.modules.items():
        tensors = {name: module.tensor(value) for name, value in arrays.items()}
        for kind in formats(run, "save"):
            calls[kind, column] = partial(module.save, run.path("saved"), tensors, format=kind)
    yield measure(run, "save", calls, 9, clock=perf_counter, amount=512 * MIB / nbytes, limit=60)


LOAD = """
import sys, time, tensorfmt
def peak():  # the most memory of this process up to now, where Linux tells it
    try:
        return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
    except OSError:
        return 0
one = tensorfmt.tensor([1.0], "float32")
tensorfmt.load(tensorfmt.dumps({"w": one}, format=sys.argv[2]))
before, start = peak(), time.process_time()
file = tensorfmt.load(sys.argv[1])
print((time.process_time() - start) / len(file), (peak() - before) / len(file))
"""


def bench_many(run):
    """load() of 1,000,000, per tensor; the floor: of 100,000

    The memory is what the process had more at its peak, pages of the file's index included.
    """
    def load(child, key):
        seconds, memory[key] = map(float, child().split())
        return seconds
    item = run.new.tensor(matrix(gaussians()[:256], (8, 8)))
    few, memory = 10000 if run.quick else 100000, {}
    for kind in formats(run, "many"):
        for count in (few, 10 * few):
            path = run.path("%s.%d" % (kind, count))
            run.new.save(path, [(name, item) for name in names(count)], format=kind)
        calls = {("", "floor"): ("tensorfmt", few)}
        calls.update({(kind, column): (column, 10 * few) for column in run.modules})
        for key, (column, count) in calls.items():
            child = python(run, column, "-c", LOAD, run.path("%s.%d" % (kind, count)), kind)
            calls[key] = partial(load, child, key)
        yield measure(run, "many", calls, 5, clock=None)
        if all(memory.values()):  # known
            run.rounds["many", kind + ", memory"] = 1
            yield {kind + ", memory": {column: memory[row, column] for row, column in calls}}


def bench_convert(run):
    """1 GiB of float32 to bfloat16"""
    nbytes, target = 64 * MIB if run.quick else GIB, run.path("converted")
    for kind in formats(run, "convert"):
        source = big_file(run, kind, nbytes)
        calls = {(kind, column): partial(module.convert, source, target, format=kind,
                                         cast={"float32": "bfloat16"})
                 for column, module in run.modules.items()}
        yield measure(run, "convert", calls, 5, amount=GIB / nbytes)


def command(module, *args):
    """Run a command of tensorfmt in this process, without what it prints."""
    with redirect_stdout(io.StringIO()) as out:
        assert module.main(list(args)) == 0, out.getvalue()


def bench_stats(run):
    """256 MB of float32"""
    def array():
        w = peer("numpy").memmap(path, "f4", "r", 64, (nbytes // 4,))
        return w.min(), w.max(), w.mean(dtype="f8"), peer("numpy").isfinite(w).all()
    nbytes, path = (16 if run.quick else 256) * MIB, run.path("stats.zt")
    data = gaussians() * (nbytes // (4 * MIB))
    run.new.save(path, {"w": run.new.tensor(data, "float32")})
    calls = versions(run, "get --stats", command, "get", "--stats", path, "w")
    if peer("numpy"):
        calls["", "numpy"] = array
    yield measure(run, "stats", calls, 5, amount=256 * MIB / nbytes)


def bench_diff(run):
    """two files of 1 GiB; the floor: read both, compare"""
    def floor():
        with open(path, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
            while a.tell() < os.path.getsize(path):
                assert a.read(MIB) == b.read(MIB)
    nbytes = 64 * MIB if run.quick else GIB
    path = big_file(run, "ztensor", nbytes)
    other = shutil.copyfile(path, run.path("copy.zt"))
    calls = versions(run, "equal files", command, "diff", path, other)
    calls["", "floor"] = floor
    yield measure(run, "diff", calls, 5, amount=GIB / nbytes)


def bench_verify(run):
    """1 GiB in a .zt file; the floor: the digest of the file"""
    def digest(step, value):
        block, more = bytearray(MIB), MIB
        with open(path, "rb", buffering=0) as stream:
            while more:
                more = stream.readinto(block)
                value = step(memoryview(block)[:more], value)

    def check(module):
        assert module.verify(path)

    def sha256(data, value):
        value.update(data)
        return value
    nbytes, data = 64 * MIB if run.quick else GIB, gaussians() * 16
    steps = {"floor": run.new.crc32c}
    if peer("google_crc32c"):
        steps["google-crc32c"] = lambda data, crc: peer("google_crc32c").extend(crc, bytes(data))
    if peer("crc32c"):
        steps["crc32c"] = peer("crc32c").crc32c
    for kind in ("crc32c", "sha256"):
        path = big_file(run, "ztensor", nbytes, kind, checksum=kind)
        calls = {(kind, column): partial(digest, step, 0) for column, step in steps.items()}
        if kind == "sha256":
            calls = {(kind, "floor"): lambda: digest(sha256, hashlib.sha256())}
        calls.update(versions(run, kind, check))
        yield measure(run, "verify", calls, 5, amount=GIB / nbytes)
        os.remove(path)
    calls = {("crc32c()", column): partial(step, data, 0) for column, step in steps.items()}
    del calls["crc32c()", "floor"]
    calls.update(versions(run, "crc32c()", lambda module: module.crc32c(data)))
    yield measure(run, "verify", calls, amount=len(data))


GROUPS = {group: globals()["bench_" + group] for group, *_ in ROWS}


# == The table ====================================================================================


def judge(row, columns):
    """Return what the goal is for, and whether it is met; None where that is not known."""
    _, _, unit, must, _, against = row
    number, base = columns["tensorfmt"], columns.get("floor" if against == "+" else against)
    if against and base is None:
        return None, None
    number = number - base if against == "+" else number / base if against else number
    if must is None:
        return number, None
    return number, number >= must if "/" in unit else number <= must


def short(value):
    if value is None:
        return ""
    return "%.*f" % (2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0, value)


def show_group(run, group, found):
    """Print a line with the names of the peers, then the rows."""
    columns = [column for row in found.values() for column in row if column not in FIXED]
    columns = {column: max(6, len(column)) for column in columns}  # widths
    title = "%s: %s" % (group, GROUPS[group].__doc__.split("\n")[0])
    print(title.ljust(70 if run.old else 62) + "".join([
        " %*s" % (columns[column], column) for column in columns]))
    for row in [row for row in ROWS if row[0] == group and row[1] in found]:
        _, name, unit, must, _, against = row
        number, met = judge(row, found[name])
        form = "+%s" if against == "+" else "%sx" if against else "%.0s"
        texts = [short(found[name].get(column)) for column in FIXED]
        line = " %-20s%-5s%7s%10s" % (name, unit, *texts[:2])
        line += "%8s" % texts[2] if run.old else ""
        line += "%8s" % (form % short(number) if number is not None else "")
        goal = "" if must is None else (">=" if "/" in unit else "<=") + (
            ("+%g" if against == "+" else "%gx" if against else "%g") % must)
        line += "%8s%3s" % (goal, {None: "", True: "ok", False: "no"}[met])
        print(line + "".join([" %*s" % (columns[column], short(found[name].get(column)))
                              for column in columns]))
    sys.stdout.flush()


def describe(run):
    """Return what the numbers depend on."""
    from importlib.metadata import version
    cpu = platform.processor()
    try:
        with open("/proc/cpuinfo") as stream:
            cpu = stream.read().split("model name")[1].split("\n")[0].strip("\t :")
    except (OSError, IndexError):  # not Linux, or no PC
        pass
    there = [name for name, module in PEERS.items() if util.find_spec(module)]
    facts = {
        "date": strftime("%Y-%m-%d"),
        "python": "%s %s" % (platform.python_implementation(), platform.python_version()),
        "machine": "%s, %s, %s, %d CPUs" % (
            platform.system(), platform.machine(), cpu, os.cpu_count()),
        "peers": {name: version(name) for name in there},
        "not installed": [name for name in PEERS if name not in there]}
    for column, module in run.modules.items():
        with open(module.__file__, "rb") as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
        facts[column] = "%s, sha256 %s" % (module.__version__, digest[:12])
    return facts


def copy_version(run, column, path):
    """Import a copy of a tensorfmt.py, which does not change; another one never has a .pyc."""
    for folder in ("bare", "cached"):
        os.makedirs(run.path(column, folder))
        copy = shutil.copyfile(path, run.path(column, folder, "tensorfmt.py"))
    spec = util.spec_from_file_location("tensorfmt_" + column, copy)
    sys.modules[spec.name] = run.modules[column] = util.module_from_spec(spec)
    spec.loader.exec_module(run.modules[column])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="few rounds and small sizes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--old", metavar="FILE", help="another version of tensorfmt.py")
    run = parser.parse_args()
    unknown = [name for name in run.names if name not in GROUPS]
    if unknown:
        parser.error("no group %s; there are %s" % (" ".join(unknown), " ".join(GROUPS)))
    if run.old and not os.path.isfile(run.old):
        parser.error("--old: there is no file " + run.old)
    return run


def run_group(run, group):
    """Return {row: {column: number}} of a group; remove its files, but for those of big_file()."""
    found = {name: row for part in GROUPS[group](run) for name, row in part.items()}
    for name in os.listdir(run.folder):
        if os.path.isfile(run.path(name)) and not name.startswith("big."):
            os.remove(run.path(name))
    return found


def main():
    run, rows, absent = parse(), [], []
    run.modules, run.rounds = {}, {}
    with TemporaryDirectory() as run.folder:
        run.path = partial(os.path.join, run.folder)
        here = os.path.dirname(os.path.abspath(__file__))
        copy_version(run, "tensorfmt", os.path.join(here, "..", "tensorfmt.py"))
        if run.old:
            copy_version(run, "old", run.old)
        run.new, facts = run.modules["tensorfmt"], describe(run)
        if not run.json:
            for key in [key for key in (*FIXED, "python", "machine", "date") if key in facts]:
                print("%-10s %s" % (key, facts[key]))
            print("ratio      to safetensors (open, write), numpy (layout), old (script), or floor")
            print("\n%26s%7s%10s%s%8s%8s    peers" % (
                "", *FIXED[:2], "     old" if run.old else "", "ratio", "must"))
        for group in [group for group in GROUPS if group in (run.names or GROUPS)]:
            found = run_group(run, group)
            if not run.json:
                show_group(run, group, found)
            for row in [row for row in ROWS if row[0] == group]:
                if row[1] in found:
                    ratio, met = judge(row, found[row[1]])
                    rows.append(dict(zip(COLUMNS, row), ratio=ratio, met=met,
                                     rounds=run.rounds[row[:2]], **found[row[1]]))
                else:
                    absent.append(" ".join(row[:2]))
    if run.json:
        print(json.dumps(dict(facts, quick=run.quick, absent=absent, rows=rows), indent=1))
        return
    met = [row["met"] for row in rows if row["met"] is not None]
    print("\n%d of %d musts are met" % (sum(met), len(met)))
    for what, names in (
            ("not measured", absent), ("not installed", facts["not installed"]),
            ("peers", ["%s %s" % pair for pair in facts["peers"].items()])):
        print(fill("%s: %s" % (what, ", ".join(names) or "none"), 100, subsequent_indent="  "))


if __name__ == "__main__":
    main()
