# SPDX-License-Identifier: MIT
"""Measure tensorfmt beside safetensors' Rust library, in one run and one table.

    python3 test_tensorfmt.py bench [NAME ...] [--quick]

NAME is a group of rows (open, save, many, disk, cold, hash); all of them unless given. --quick: few
rounds and small sizes. Each round runs theirs and ours in any order; a number is the median of all
rounds. It is CPU time, but wall time where a row waits for the disk or for a new process. A `must`
is the most that the ratio may be, or the number where there is none; of a rate the least.
"""
import argparse
import gc
import os
import platform
import subprocess
import sys
from array import array
from functools import partial
from importlib import metadata, util
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, HERE)
import tensorfmt  # noqa: E402

MIB = 1 << 20
KINDS = {  # name, options of save; musts: open 290 and 10,001 tensors, save either
    "mag": ("mag", {}, 6, 3.5, 3.5),
    "mag 300": ("mag", {"version": 300}, 6, 6, 4),
    "ztensor": ("ztensor", {}, 6, 11, 4),
    "ztensor 2": ("ztensor", {"version": 2}, 9, 14, 9),  # without the module xxhash
    "ztensor 2, xxhash": ("ztensor", {"version": 2}, 9, 14, 5),
    "primitiv": ("primitiv", {}, 6, 5, 4),
    "burnpack": ("burnpack", {}, 6, 7.5, 3.5),
    "tensorbuffers": ("tensorbuffers", {}, 6, 6, 4),
    "safetensors": ("safetensors", {}, 6, 5, 3.5)}
LAYER = ("input_layernorm 8", "post_attention_layernorm 9", "self_attn.q_proj 8 8",
         "self_attn.k_proj 2 8", "self_attn.v_proj 3 8", "self_attn.o_proj 8 9",
         "mlp.gate_proj 16 8", "mlp.up_proj 15 8", "mlp.down_proj 8 16")


# == How it is measured ===========================================================================


def measure(calls, rounds=7, clock=process_time):
    """Return {name: median of its seconds}, or of what it returns if there is no clock.

    The order changes: what ran before leaves its mark on memory.
    """
    taken, order, rng = {name: [] for name in calls}, list(calls), Random(len(calls))
    for _ in range(rounds):
        rng.shuffle(order)
        for name in order:
            gc.collect()
            start = clock() if clock else 0.0
            kept = calls[name]()
            taken[name].append(clock() - start if clock else kept)
            kept = None  # freed when the clock has stopped
    return {name: median(numbers) for name, numbers in taken.items()}


def repeat(number, call, *args):
    """Call several times."""
    for _ in range(number):
        kept = call(*args)
    return kept


def without_xxhash(call, *args):
    """Call as if the module xxhash was not there."""
    usual, tensorfmt.fast_xxh3 = tensorfmt.fast_xxh3, lambda: None
    try:
        return call(*args)
    finally:
        tensorfmt.fast_xxh3 = usual


def new_process(run, code, *args):
    """Run a new Python that finds this tensorfmt, compiled once; return what it prints.

    Without the module site, which may import anything.
    """
    paths = [HERE] + [path for path in sys.path if path.endswith("-packages")]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="",
               PYTHONPYCACHEPREFIX=run.path("compiled"))
    return subprocess.check_output([sys.executable, "-S", "-c", code, *args], env=env)


class Table:
    """Prints the rows as they come, and counts the musts."""

    def __init__(self):
        self.met = []
        print("\n%-36s%12s%12s%8s%9s" % ("", "theirs", "tensorfmt", "ratio", "must"))

    def add(self, name, unit, theirs, ours, must):
        """Add a row: must is for the ratio, or for ours where theirs is None."""
        number = ours if theirs is None else ours / theirs
        is_met = number >= must if "/s" in unit else number <= must
        self.met.append(is_met)
        print("%-36s%12s%12.4g%8s%9s  %s" % (
            "%s, %s" % (name, unit), "" if theirs is None else "%.4g" % theirs, ours,
            "" if theirs is None else "%.2f" % number,
            "%s%.3g" % (">=" if "/s" in unit else "<=", must), "ok" if is_met else "no"))
        sys.stdout.flush()

    def add_times(self, name, times, number, musts):
        """Add a row for each kind, of seconds for so many calls."""
        for kind, must in musts.items():
            theirs, ours = [times[key] * 1e3 / number for key in ("theirs", kind)]
            self.add("%s, %s" % (name, kind), "ms", theirs, ours, must)


# == Data =========================================================================================


def gaussians(nbytes):
    """Return float32, sigma 0.05; they repeat after 4 MB."""
    rng = Random(10)
    data = array("f", [rng.gauss(0, 0.05) for _ in range(min(nbytes >> 2, MIB))]).tobytes()
    return memoryview(data * -(-nbytes // len(data)))[:nbytes]


def llama(count):
    """Return a model of small arrays with the names of a large one: 2, and 9 in each layer."""
    import numpy
    rows = ["embed_tokens 32 8", "norm 8"] + [
        "layers.%d.%s" % (i, row) for i in range(count // 9) for row in LAYER]
    data, arrays = numpy.frombuffer(gaussians(4 * MIB), "f4"), {}
    for i, (name, *shape) in enumerate([row.split(" ") for row in rows]):
        size = numpy.prod([int(n) for n in shape])
        start = i * 101 % (3 << 18)
        arrays["model.%s.weight" % name] = data[start:start + size].reshape([int(n) for n in shape])
    return arrays


def large_model(nbytes):
    """Return 300 arrays, about nbytes in all."""
    import numpy
    data = numpy.frombuffer(gaussians(nbytes), "f4")
    arrays = data[:len(data) // 307200 * 307200].reshape(300, 1024, -1)
    return {"w%d" % i: one for i, one in enumerate(arrays)}


# == Groups =======================================================================================


def bench_open(run, table):
    """load(), names, shapes, dtypes of all tensors"""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    def theirs(path):
        file = safe_open(path, "numpy")
        return file, [(key, file.get_slice(key).get_shape()) for key in list(file.keys())]

    def ours(path):
        file = tensorfmt.load(path)
        return file, [(name, item.shape, item.dtype) for name, item in file.items()]
    for count, number, column in ((290, 10, 2), (2000 if run.quick else 10001, 1, 3)):
        arrays, musts = llama(count), {}
        save_file(arrays, run.path("safe"))
        calls = {"theirs": partial(repeat, number, theirs, run.path("safe"))}
        for kind, row in KINDS.items():
            if "xxhash" not in kind:  # no digest is looked at
                tensorfmt.save(run.path(kind), arrays, format=row[0], **row[1])
                calls[kind] = partial(repeat, number, ours, run.path(kind))
                musts[kind] = row[column]
        table.add_times("open %d" % len(arrays), measure(calls, run.rounds), number, musts)


def bench_save(run, table):
    """dumps() of numpy arrays; of zTensor 2, which is mostly zeros, save() to nowhere"""
    from safetensors.numpy import save

    def ours(arrays, name, options):
        if options.get("version") == 2:
            with open(os.devnull, "wb") as stream:
                return tensorfmt.save(stream, arrays, format=name, **options)
        return tensorfmt.dumps(arrays, format=name, **options)
    for count, number in ((290, 10), (2000 if run.quick else 10001, 1)):
        arrays, musts = llama(count), {}
        calls = {"theirs": partial(repeat, number, save, arrays)}
        for kind, (name, options, _, _, must) in KINDS.items():
            call = partial(repeat, number, ours, arrays, name, options)
            if "xxhash" not in kind or util.find_spec("xxhash"):
                calls[kind] = partial(without_xxhash, call) if kind == "ztensor 2" else call
                musts[kind] = must
        table.add_times("save %d" % len(arrays), measure(calls, run.rounds), number, musts)


MANY = """
import sys, tracemalloc, tensorfmt
tensorfmt.load(sys.argv[2])
tracemalloc.start()
file = tensorfmt.load(sys.argv[1])
print(tracemalloc.get_traced_memory()[0] / len(file))
"""


def bench_many(run, table):
    """load() of 1,000,000 tensors: what a File keeps"""
    count, item = 100000 if run.quick else 1000000, tensorfmt.tensor([1.0], "float32")
    for kind in ("mag", "ztensor"):  # Burnpack and safetensors hold fewer
        path, one = run.path("many." + kind), run.path("one." + kind)
        tensorfmt.save(one, {"w": item}, format=kind)
        tensorfmt.save(path, (("model.layers.%d.w%d" % divmod(i, 10), item)
                              for i in range(count)), format=kind)
        kept = float(new_process(run, MANY, path, one))
        table.add("open %d, %s" % (count, kind), "bytes each", None, kept, 500)
        os.remove(path)


def bench_disk(run, table):
    """save() of 512 MB in 300 arrays; theirs: a raw write and fsync (wall)"""
    def raw():
        with open(run.path("raw"), "wb", buffering=0) as stream:
            for array_ in arrays.values():
                assert stream.write(array_) == array_.nbytes
            os.fsync(stream.fileno())
    arrays = large_model((64 if run.quick else 512) * MIB)
    calls = {"theirs": raw}
    musts = {"mag": 1.1, "ztensor": 1.1, "burnpack": 1.1, "tensorbuffers": 1.1, "safetensors": 1.1,
             "primitiv": 2}  # column-major: each array is transposed
    for kind in musts:
        calls[kind] = partial(tensorfmt.save, run.path("saved"), arrays, format=kind)
    table.add_times("save 512 MB", measure(calls, run.rounds, perf_counter), 1, musts)


COLD = "import tensorfmt; print(tensorfmt.load(%r)['w150'][0, 0])"
COLD_THEIRS = ("import safetensors; file = safetensors.safe_open(%r, 'numpy'); "
               "print(float(file.get_slice('w150')[:1][0, 0]))")


def bench_cold(run, table):
    """A new process to a value of 512 MB (wall)"""
    from safetensors.numpy import save_file
    arrays, calls = large_model((64 if run.quick else 512) * MIB), {}
    save_file(arrays, run.path("safe"))
    calls["theirs"] = partial(new_process, run, COLD_THEIRS % run.path("safe"))
    for kind in ("mag", "ztensor"):
        tensorfmt.save(run.path(kind), arrays, format=kind)
        calls[kind] = partial(new_process, run, COLD % run.path(kind))
    assert len({call() for call in calls.values()}) == 1  # all the same value
    musts = {"mag": 1 / 3, "ztensor": 1 / 3}
    table.add_times("new process", measure(calls, run.rounds, perf_counter), 1, musts)


HASH = """
import sys, time, tensorfmt
data = bytes(range(256)) * (int(sys.argv[1]) >> 8)
tensorfmt.fast_xxh3 = lambda: None
start = time.process_time()
tensorfmt.xxh3_64([data])
print(len(data) / (time.process_time() - start) / 1e6)
"""


def bench_hash(run, table):
    """XXH3 of zTensor 2 where neither xxhash nor numpy is"""
    call = partial(new_process, run, HASH, str((1 if run.quick else 16) * MIB))
    times = measure({"ours": lambda: float(call())}, run.rounds, None)
    table.add("XXH3 alone", "MB/s", None, times["ours"], 30)


GROUPS = {"open": bench_open, "save": bench_save, "many": bench_many, "disk": bench_disk,
          "cold": bench_cold, "hash": bench_hash}


# == The run ======================================================================================


def load_average():
    """Return how busy the machine was in the last minutes."""
    return "%.1f %.1f %.1f" % os.getloadavg() if hasattr(os, "getloadavg") else "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="few rounds and small sizes")
    run = parser.parse_args()
    unknown = [name for name in run.names if name not in GROUPS]
    if unknown:
        parser.error("no group %s; there are %s" % (" ".join(unknown), " ".join(GROUPS)))
    if not (util.find_spec("safetensors") and util.find_spec("numpy")):
        sys.exit("bench needs the packages safetensors and numpy: python3 -m pip install both")
    run.rounds = 3 if run.quick else 7
    there = [name for name in ("safetensors", "numpy", "xxhash") if util.find_spec(name)]
    print("tensorfmt %s, %s" % (tensorfmt.__version__, ", ".join([
        "%s %s" % (name, metadata.version(name)) for name in there])))
    print("%s %s, %s %s, %d CPUs, load %s" % (
        platform.python_implementation(), platform.python_version(), platform.system(),
        platform.machine(), os.cpu_count(), load_average()))
    table = Table()
    with TemporaryDirectory() as folder:
        run.path = partial(os.path.join, folder)
        for name in run.names or GROUPS:
            GROUPS[name](run, table)
    print("\n%d of %d musts are met; load %s" % (sum(table.met), len(table.met), load_average()))


if __name__ == "__main__":
    main()
