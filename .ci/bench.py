# SPDX-License-Identifier: MIT
"""Measure tensorfmt beside the libraries that are installed, and tell which goals it meets.

    python3 .ci/bench.py [NAME ...] [--quick] [--old FILE]

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
import os
import platform
import shutil
import subprocess
import sys
from array import array
from contextlib import redirect_stdout
from functools import lru_cache, partial
from importlib import util
from math import prod
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from textwrap import fill
from time import perf_counter, process_time, strftime
from timeit import timeit

MIB, GIB = 1 << 20, 1 << 30
PEERS = {"numpy": "numpy", "safetensors": "safetensors", "ml-dtypes": "ml_dtypes",
         "zstandard": "zstandard", "xxhash": "xxhash"}  # packages and their modules
FIXED = ("floor", "tensorfmt", "old")  # columns; the others are peers

# A row has a group, a name, a unit, a must and the column that it is against. The must is the most
# that tensorfmt's number may be (of a rate, in .../s, the least): divided by that of the column;
# less the floor for "+"; as it is for "".
MODELS = (  # kind; format, options of save (None: made here); musts: open 290 and 10,001, write
    ("mag", "mag", {}, 1.5, 1.2, 1.3, 1.6),
    ("mag 300", "mag", {"version": 300}, 2.4, 2.1, 2.0, 3.7),
    ("ztensor", "ztensor", {}, 1.8, 1.8, 1.9, 2.2),
    ("ztensor 2", "ztensor", {"version": 2}, 6.0, 6.0, 9.0, 9.0),  # without the module xxhash
    ("ztensor 2+xxhash", "ztensor", {"version": 2}, None, None, 3.5, 3.5),
    ("primitiv", "primitiv", {}, 2.3, 2.3, 2.6, 3.8),
    ("burnpack", "burnpack", {}, 2.0, 2.0, 1.7, 2.5),
    ("mpk", None, {}, None, None),
    ("tensorbuffers", "tensorbuffers", {}, 1.9, 1.7, 2.8, 3.9),
    ("safetensors", "safetensors", {}, 2.1, 2.0, 1.8, 2.8))
KINDS = {kind: row for kind, *row in MODELS}
WRITTEN = [kind for kind in KINDS if KINDS[kind][0]]
ROWS = tuple([(group, kind + end, "ms", KINDS[kind][i], "safetensors")
              for group, end, i in (("open", ", 290", 2), ("open", "", 3), ("write", ", 290", 4),
                                    ("write", "", 5)) for kind in KINDS if KINDS[kind][i:]]
             + [(group, kind + end, "ms", None, "safetensors") for group, end, kinds in (
                 ("open", ", mixed", [kind for kind in WRITTEN if kind != "primitiv"]),
                 ("open", ", odd", ["ztensor", "ztensor 2", "burnpack"]),
                 ("first", "", KINDS), ("disk", "", WRITTEN)) for kind in kinds]) + (
    ("index", "w[1, 0]", "us", 2.5, ""),
    ("index", "w[1]", "us", 4.0, ""),
    ("index", "w.data", "us", 0.8, ""),
    ("index", "numpy.asarray(w)", "us", 2.5, ""),
    ("import", "with .pyc", "ms", 3.0, "+"),
    ("import", "without .pyc", "ms", None, "+"),
    ("import", "ls, without .pyc", "ms", None, "+"),
    ("import", "ls, not the first", "ms", None, "+"),
    ("cold", "mag", "ms", 5.0, "+"),
    ("cold", "ztensor", "ms", 5.0, "+"),
    ("cast", "float32 to bfloat16", "M/s", 90, ""),
    ("cast", "float16 to float32", "M/s", 90, ""),
    ("cast", "bfloat16 to float32", "M/s", 400, ""),
    ("layout", "to row-major", "MB/s", 0.25, "numpy"),
    ("layout", "to column-major", "MB/s", 0.25, "numpy"),
    ("swap", "256 KB", "GB/s", 0.6, "floor"),
    ("swap", "16 MB", "GB/s", 0.6, "floor"),
    ("swap", "256 MB", "GB/s", 0.6, "floor"),
    ("swap", "256 MB, .data", "GB/s", 0.6, "floor"),
    ("save", "mag", "s", 1.1, "floor"),
    ("save", "tensorbuffers", "s", 1.1, "floor"),
    ("save", "burnpack", "s", 1.1, "floor"),
    ("save", "primitiv", "s", 2.0, "floor"),
    ("save", "ztensor", "s", 1.1, "floor"),
    ("many", "mag", "us", 1.25, "floor"),
    ("many", "mag, memory", "B", 1.25, "floor"),
    ("many", "ztensor", "us", 1.25, "floor"),
    ("many", "ztensor, memory", "B", 1.25, "floor"),
    ("convert", "burnpack", "s", 5.0, ""),
    ("convert", "ztensor", "s", 5.0, ""),
    ("diff", "equal files", "s", 4.0, ""),
    ("diff", "float16, float32", "s", 16, ""),
    ("diff", "get --stats", "s", 32, ""),
    ("verify", "crc32c", "s", 1.1, "floor"),
    ("verify", "sha256", "s", 1.1, "floor"),
    ("verify", "crc32c()", "MB/s", 700, ""),
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


LAYER = ("input_layernorm 8", "post_attention_layernorm 9", "self_attn.q_proj 8 8",
         "self_attn.k_proj 2 8", "self_attn.v_proj 3 8", "self_attn.o_proj 8 9",
         "mlp.gate_proj 16 8", "mlp.up_proj 15 8", "mlp.down_proj 8 16")


def llama(count):
    """Return a model of small arrays with the names of a large one: 2 and 9 in each layer."""
    rows = ["embed_tokens 32 8", "norm 8"] + ["layers.%d.%s" % (i, row) for i in range(count // 9)
                                              for row in LAYER]
    arrays = {}
    for i, (name, *shape) in enumerate([row.split(" ") for row in rows]):
        shape, start = tuple(map(int, shape)), i * 404 % (3 * MIB)
        data = gaussians()[start:start + 4 * prod(shape)]
        arrays["model.%s.weight" % name] = matrix(data, shape)
    return arrays


def names(count):
    return ["model.layers.%d.w%d" % divmod(i, 10) for i in range(count)]


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


def sparse_file(run, arrays):
    """Return a file of zTensor 2 with every tenth tensor sparse, which is not written by us."""
    blobs, objects = [b"\x89ZT2\r\n\x1a\n"], {}

    def entry(shape, layout, **parts):
        found = {}
        for role, (dtype, data) in parts.items():
            found[role] = {"dtype": dtype, "blob": [4096 * len(blobs), len(data)],
                           "digest": "xxh3:%016x" % run.new.xxh3_64([data])}
            blobs.append(data)
        return {"shape": shape, "layout": layout, "parts": found}
    sparse = entry([8], "zt.sparse_coo/1", coords=("u64", bytes(8)), values=("f32", bytes(4)))
    for i, (name, item) in enumerate(arrays.items()):
        objects[name] = sparse if i % 10 == 9 else entry(
            list(item.shape), "dense", data=("f32", item.tobytes()))
    data = b"".join([blob.ljust(4096, b"\0") for blob in blobs])
    text = run.new.cbor_dumps({"objects": objects}, sort="bytes")
    numbers = len(data), len(text), run.new.xxh3_64([text]), 2
    return data + text + b"".join([n.to_bytes(8, "little") for n in numbers]) + blobs[0]


def record_file(run, arrays):
    """Return a file of Burn 0.21 (.mpk), which is not written by us."""
    module = {}
    for i, (name, item) in enumerate(arrays.items()):
        node, keys = module, name.split(".")
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = {"id": "%013x" % i, "param": {
            "bytes": item.tobytes(), "shape": list(item.shape), "dtype": "F32"}}
    facts = dict.fromkeys(("float", "int", "format", "version", "settings"), "text")
    return run.new.msgpack_dumps({"metadata": facts, "item": module, "_b": []})


def changed(run, arrays, kind, model):
    """Return the tensors of a model: of three dtypes, or with every tenth odd, or as they are."""
    tensor, tensors = run.new.tensor, dict(arrays)
    dtypes = ["float32", "int32"] + ["float16"] * (kind != "tensorbuffers")
    for i, (name, item) in enumerate(arrays.items()):
        if model == "mixed":
            tensors[name] = tensor(item.tobytes(), dtypes[i % len(dtypes)])
        elif model == "odd" and i % 10 == 9:
            tensors[name] = tensor(item, param_id=i) if kind == "burnpack" else (
                tensor(dtype="float32", shape=(8,), components={
                    "values": tensor([1.0], "float32"), "coords": tensor([[0]], "uint64")}),
                tensor(item, encoding="zstd" if peer("zstandard") else "raw"),
                tensor(item, note="odd"))[i // 10 % 3]
    return tensors


def model_file(run, arrays, kind, model):
    """Return the path of a file of a kind."""
    path, (format, options) = run.path(kind), KINDS[kind][:2]
    if kind == "mpk" or (kind, model) == ("ztensor 2", "odd"):
        with open(path, "wb") as stream:
            stream.write((record_file if kind == "mpk" else sparse_file)(run, arrays))
    else:
        run.new.save(path, changed(run, arrays, kind, model), format=format, **options)
    return path


# == Groups: each yields what measure() returns; the first line of its docstring is printed ========


def repeated(module, slow, number, call, *args):
    """Call several times; `slow`: as if the module xxhash was not there."""
    fast = getattr(module, "fast_xxh3", None)
    if slow:
        module.fast_xxh3 = lambda: None
    try:
        for _ in range(number):
            kept = call(*args)
    finally:
        module.fast_xxh3 = fast
    return kept


def measure_models(run, group, theirs, ours, model="", files=True, clock=process_time):
    """Measure theirs(what), ours(module, kind, what), repeated if short; `what`: path or arrays."""
    few, end = group in ("first", "disk") or model == "290", model and ", " + model
    count, number = 290 if few else 10001, 10 if few and group != "disk" else 1
    arrays, calls = llama(min(count, 2000) if run.quick else count), {}
    if peer("safetensors.numpy"):
        peer("safetensors.numpy").save_file(arrays, run.path("safe"))
        calls["", "safetensors"] = partial(
            repeated, run, False, number, theirs, run.path("safe") if files else arrays)
    for kind in KINDS:
        if (group, kind + end) in [row[:2] for row in ROWS] and (
                "xxhash" not in kind or peer("xxhash")):
            what = model_file(run, arrays, kind, model) if files else arrays
            for column, module in run.modules.items():
                calls[kind + end, column] = partial(
                    repeated, module, kind == "ztensor 2", number, ours, module, kind, what)
    return measure(run, group, calls, 21, clock=clock, amount=count / len(arrays) / number)


def bench_open(run):
    """load(), names, shapes, dtypes; 10,001 tensors

    Or 290, as people have. Another model: mixed dtypes, 1-D, or 10 % odd ones (sparse, zstd, with
    attributes), beside safetensors of the first.
    """
    def theirs(path):
        file = peer("safetensors").safe_open(path, "numpy")
        return file, [(key, file.get_slice(key).get_shape()) for key in list(file.keys())]

    def ours(module, kind, path):
        file = module.load(path)
        return file, [(name, item.shape, item.dtype) for name, item in file.items()]
    for model in ("290", "", "mixed", "odd"):
        yield measure_models(run, "open", theirs, ours, model)


def bench_write(run):
    """dumps() of a dict of 10,001 arrays, or 290"""
    def ours(module, kind, arrays):
        format, options = KINDS[kind][:2]
        if "ztensor 2" in kind:  # as bytes it is mostly zeros: 64 KiB for each tensor
            with open(os.devnull, "wb") as stream:
                return module.save(stream, arrays, format=format, **options)
        return module.dumps(arrays, format=format, **options)
    for model in ("290", ""):
        yield measure_models(run, "write", lambda arrays: peer("safetensors.numpy").save(arrays),
                             ours, model, files=False)


def bench_first(run):
    """load() and one value; 290 tensors"""
    key = "model.layers.17.self_attn.q_proj.weight"
    yield measure_models(
        run, "first",
        lambda path: peer("safetensors").safe_open(path, "numpy").get_tensor(key)[0, 0],
        lambda module, kind, path: module.load(path)[key][0, 0])


def fsync_file(path):
    with open(path, "r+b") as stream:
        os.fsync(stream.fileno())


def bench_disk(run):
    """save() of a dict of 290 arrays, with fsync (wall)"""
    def theirs(arrays):
        peer("safetensors.numpy").save_file(arrays, run.path("theirs"))
        fsync_file(run.path("theirs"))

    def ours(module, kind, arrays):
        module.save(run.path("ours"), arrays, format=KINDS[kind][0], **KINDS[kind][1])
    yield measure_models(run, "disk", theirs, ours, "", False, perf_counter)


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


def bench_import(run):
    """a new process, `tensorfmt.py ls`; the floor: `import os`"""
    calls, path = {("", "floor"): python(run, "", "-c", "import os")}, run.path("few.zt")
    run.new.save(path, llama(9))
    for column in run.modules:
        call = calls["with .pyc", column] = python(run, column, "-c", "import tensorfmt")
        call()
        calls["without .pyc", column] = python(run, column, "-c", "import tensorfmt", cached=False)
        for row, folder in (("ls, without .pyc", "bare"), ("ls, not the first", "cached")):
            script = run.path(column, folder, "tensorfmt.py")
            calls[row, column] = python(run, column, script, "ls", path, cached=folder == "cached")
    for name in ("numpy", "safetensors.numpy"):
        if peer(name):
            calls["with .pyc", name.split(".")[0]] = python(run, "", "-c", "import " + name)
    yield measure(run, "import", calls, 11, clock=children_time)


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
        fsync_file(path)
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


def bench_diff(run):
    """diff, --stats; the floor: read 1 GiB twice, compare

    Rows 2 and 3 are of 1 GiB of float16, 2 GiB of float32; a sixteenth is measured.
    """
    def floor():
        with open(path, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
            while a.tell() < os.path.getsize(path):
                assert a.read(MIB) == b.read(MIB)

    def command(module, *args):
        with redirect_stdout(io.StringIO()) as out:
            assert module.main(list(args)) == (args[1] == half), out.getvalue()
    nbytes = 64 * MIB if run.quick else GIB
    path, half, full = big_file(run, "ztensor", nbytes), run.path("half.zt"), run.path("full.zt")
    other = shutil.copyfile(path, run.path("copy.zt"))
    calls = versions(run, "equal files", command, "diff", path, other)
    calls["equal files", "floor"] = floor
    yield measure(run, "diff", calls, 5, amount=GIB / nbytes)
    w = run.new.tensor(gaussians() * (nbytes // (32 * MIB)), "float32").astype("float16")
    run.new.save(half, {"w": w})
    run.new.save(full, {"w": w.astype("float32")})
    calls = versions(run, "float16, float32", command, "diff", half, full)
    calls.update(versions(run, "get --stats", command, "get", "--stats", full, "w"))
    yield measure(run, "diff", calls, 5, amount=GIB / w.nbytes)


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
    for kind in ("crc32c", "sha256"):
        path = big_file(run, "ztensor", nbytes, kind, checksum=kind)
        step, value = (run.new.crc32c, 0) if kind == "crc32c" else (sha256, hashlib.sha256())
        calls = {(kind, "floor"): partial(digest, step, value)}
        calls.update(versions(run, kind, check))
        yield measure(run, "verify", calls, 5, amount=GIB / nbytes)
        os.remove(path)
    calls = versions(run, "crc32c()", lambda module: module.crc32c(data))
    yield measure(run, "verify", calls, amount=len(data))


GROUPS = {group: globals()["bench_" + group] for group, *_ in ROWS}


# == The table ====================================================================================


def judge(row, columns):
    """Return what the goal is for, and whether it is met; None where that is not known."""
    _, _, unit, must, against = row
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
    print(title.ljust(74 if run.old else 66) + "".join([
        " %*s" % (columns[column], column) for column in columns]))
    for row in [row for row in ROWS if row[0] == group and row[1] in found]:
        _, name, unit, must, against = row
        number, met = judge(row, found[name])
        form = "+%s" if against == "+" else "%sx" if against else "%.0s"
        texts = [short(found[name].get(column)) for column in FIXED]
        line = " %-24s%-5s%7s%10s" % (name, unit, *texts[:2])
        line += "%8s" % texts[2] if run.old else ""
        line += "%8s" % (form % short(number) if number is not None else "")
        goal = "" if must is None else (">=" if "/" in unit else "<=") + (
            ("+%g" if against == "+" else "%gx" if against else "%g") % must)
        line += "%8s%3s" % (goal, {None: "", True: "ok", False: "no"}[met])
        print(line + "".join([" %*s" % (columns[column], short(found[name].get(column)))
                              for column in columns]))
    sys.stdout.flush()


def load():
    """Return how busy the machine was in the last minutes."""
    return "%.1f %.1f %.1f" % os.getloadavg() if hasattr(os, "getloadavg") else "unknown"


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
        "load": load(),
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
    run, met, absent = parse(), [], []
    run.modules = {}
    with TemporaryDirectory() as run.folder:
        run.path = partial(os.path.join, run.folder)
        here = os.path.dirname(os.path.abspath(__file__))
        copy_version(run, "tensorfmt", os.path.join(here, "..", "tensorfmt.py"))
        if run.old:
            copy_version(run, "old", run.old)
        run.new, facts = run.modules["tensorfmt"], describe(run)
        for key in [key for key in (*FIXED, "python", "machine", "load", "date") if key in facts]:
            print("%-10s %s" % (key, facts[key]))
        print("ratio      to safetensors (models), numpy (layout), or floor")
        print("\n%30s%7s%10s%s%8s%8s    peers" % (
            "", *FIXED[:2], "     old" if run.old else "", "ratio", "must"))
        for group in [group for group in GROUPS if group in (run.names or GROUPS)]:
            found = run_group(run, group)
            show_group(run, group, found)
            rows = [row for row in ROWS if row[0] == group]
            met += [judge(row, found[row[1]])[1] for row in rows if row[1] in found]
            absent += [" ".join(row[:2]) for row in rows if row[1] not in found]
    met = [is_met for is_met in met if is_met is not None]
    print("\n%d of %d musts are met; load %s" % (sum(met), len(met), load()))
    for what, names in (
            ("not measured", absent), ("not installed", facts["not installed"]),
            ("peers", ["%s %s" % pair for pair in facts["peers"].items()])):
        print(fill("%s: %s" % (what, ", ".join(names) or "none"), 100, subsequent_indent="  "))


if __name__ == "__main__":
    main()
