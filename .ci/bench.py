# SPDX-License-Identifier: MIT
"""Measure tensorfmt beside safetensors' Rust library, in one run and one table.

    python3 test_tensorfmt.py bench [--quick]

It needs the packages safetensors and numpy. --quick: few rounds and small sizes. Each round runs
theirs and ours in any order; a number is the median of all rounds. It is CPU time, but wall time
where a row waits for the disk or for a new process. A `must` is the most that the ratio may be, or
the number where there is none.
"""
import gc
import os
import platform
import sys
import tracemalloc
from functools import partial
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy
import safetensors
import tensorfmt
from safetensors.numpy import save, save_file
from test_tensorfmt import Changed, run as run_python

FAST = tensorfmt.fast_xxh3() is not None  # the module xxhash is there
MIB = 1 << 20
KINDS = {  # options of save; musts: open 290 and 10,001 tensors, save either, save 512 MB
    "mag": ({"format": "mag"}, 6.5, 3.5, 3.5, 1.1),
    "mag 300": ({"format": "mag", "version": 300}, 6.5, 6, 4, None),
    "ztensor": ({"format": "ztensor"}, 9, 11, 4, 1.1),
    "ztensor 2": ({"format": "ztensor", "version": 2}, 12.5, 14, 5 if FAST else 9, None),
    "primitiv": ({"format": "primitiv"}, 6.5, 5, 4, 3),  # column-major: arrays are transposed
    "burnpack": ({"format": "burnpack"}, 6.5, 7.5, 3.5, 1.1),
    "tensorbuffers": ({"format": "tensorbuffers"}, 6.5, 6, 4, 1.1),
    "safetensors": ({"format": "safetensors"}, 6.5, 5, 3.5, 1.1)}
LAYER = ("input_layernorm 8", "post_attention_layernorm 9", "self_attn.q_proj 8 8",
         "self_attn.k_proj 2 8", "self_attn.v_proj 3 8", "self_attn.o_proj 8 9",
         "mlp.gate_proj 16 8", "mlp.up_proj 15 8", "mlp.down_proj 8 16")
COLD = "import sys, tensorfmt; print(tensorfmt.load(sys.argv[1])['w150'][0, 0])"
COLD_THEIRS = ("import sys, safetensors; file = safetensors.safe_open(sys.argv[1], 'numpy'); "
               "print(float(file.get_slice('w150')[:1][0, 0]))")


class Run:
    """Measures, and prints the rows as they come."""

    def __init__(self, folder, quick):
        self.quick, self.met, self.path = quick, [], partial(os.path.join, folder)
        print("\n%-36s%12s%12s%8s%9s" % ("", "theirs", "tensorfmt", "ratio", "must"))

    def row(self, name, theirs, ours, must):
        """Print a row: must is for the ratio, or for ours where theirs is None."""
        number = ours if theirs is None else ours / theirs
        self.met.append(number <= must)
        print("%-36s%12s%12.4g%8s%9s  %s" % (
            name, "" if theirs is None else "%.4g" % theirs, ours,
            "" if theirs is None else "%.2f" % number, "<=%.3g" % must,
            "ok" if number <= must else "no"), flush=True)

    def measure(self, name, calls, musts, number=1, clock=process_time):
        """Print a row for each must, of milliseconds; calls are made so many times.

        The order changes: what ran before leaves its mark on memory.
        """
        taken, order, rng = {kind: [] for kind in calls}, list(calls), Random(len(calls))
        for _ in range(3 if self.quick else 7):
            rng.shuffle(order)
            for kind in order:
                gc.collect()
                start = clock()
                for _ in range(number):
                    kept = calls[kind]()
                taken[kind].append((clock() - start) * 1e3 / number)
                del kept  # freed when the clock has stopped
        for kind, must in musts.items():
            theirs, ours = [median(taken[key]) for key in ("theirs", kind)]
            self.row("%s, %s, ms" % (name, kind), theirs, ours, must)


def gaussians(nbytes):
    """Return float32, sigma 0.05; they repeat after 4 MB."""
    numbers = numpy.random.default_rng(10).standard_normal(min(nbytes >> 2, MIB)) * 0.05
    return numpy.resize(numbers.astype("f4"), nbytes >> 2)


def llama(count):
    """Return a model of small arrays with the names of a large one: 2, and 9 in each layer."""
    rows = ["embed_tokens 32 8", "norm 8"] + [
        "layers.%d.%s" % (i, row) for i in range(count // 9) for row in LAYER]
    data, arrays = gaussians(4 * MIB), {}
    for i, (name, *shape) in enumerate([row.split(" ") for row in rows]):
        shape, start = [int(n) for n in shape], i * 101 % (3 << 18)
        arrays["model.%s.weight" % name] = data[start:start + numpy.prod(shape)].reshape(shape)
    return arrays


def bench_models(run):
    """load() with names, shapes, dtypes of all tensors; dumps() of numpy arrays"""
    def theirs(path):
        file = safetensors.safe_open(path, "numpy")
        return file, [(key, file.get_slice(key).get_shape()) for key in list(file.keys())]

    def ours(path):
        file = tensorfmt.load(path)
        return file, [(name, item.shape, item.dtype) for name, item in file.items()]

    def saved(arrays, kind):
        if kind != "ztensor 2":
            return tensorfmt.dumps(arrays, **KINDS[kind][0])
        with open(os.devnull, "wb") as stream:  # it is mostly zeros
            return tensorfmt.save(stream, arrays, **KINDS[kind][0])
    for count, number, column in ((290, 10, 1), (2000 if run.quick else 10001, 1, 2)):
        arrays = llama(count)
        save_file(arrays, run.path("safe"))
        opened = {"theirs": partial(theirs, run.path("safe"))}
        made = {"theirs": partial(save, arrays)}
        for kind, row in KINDS.items():
            tensorfmt.save(run.path(kind), arrays, **row[0])
            opened[kind], made[kind] = partial(ours, run.path(kind)), partial(saved, arrays, kind)
        for verb, calls, at in ("open", opened, column), ("save", made, 3):
            run.measure("%s %d" % (verb, len(arrays)), calls,
                        {kind: row[at] for kind, row in KINDS.items()}, number)


def bench_many(run):
    """load() of 1,000,000 tensors: what a File keeps"""
    count, item = 100000 if run.quick else 1000000, tensorfmt.tensor([1.0], "float32")
    for kind in ("mag", "ztensor"):  # Burnpack and safetensors hold fewer
        path = run.path("many." + kind)
        tensorfmt.save(path, (("model.layers.%d.w%d" % divmod(i, 10), item)
                              for i in range(count)), format=kind)
        tracemalloc.start()
        with tensorfmt.load(path):
            nbytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        run.row("open %d, %s, bytes each" % (count, kind), None, nbytes / count, 500)
        os.remove(path)


def bench_large(run):
    """save() of 512 MB beside a raw write with fsync; a new process to a value of it (wall)"""
    def raw():
        with open(run.path("raw"), "wb", buffering=0) as stream:
            for one in arrays.values():
                assert stream.write(one) == one.nbytes
            os.fsync(stream.fileno())
    numbers = gaussians((64 if run.quick else 512) * MIB // 1228800 * 1228800)
    arrays = {"w%d" % i: one for i, one in enumerate(numbers.reshape(300, 1024, -1))}
    calls = {"theirs": raw}
    musts = {kind: row[4] for kind, row in KINDS.items() if row[4]}
    for kind in musts:
        calls[kind] = partial(tensorfmt.save, run.path("saved"), arrays, format=kind)
    run.measure("save 512 MB", calls, musts, clock=perf_counter)
    save_file(arrays, run.path("safe"))
    new_process = partial(run_python, "python3", "-c")
    calls = {"theirs": partial(new_process, COLD_THEIRS, run.path("safe"))}
    for kind in ("mag", "ztensor"):
        tensorfmt.save(run.path(kind), arrays, format=kind)
        calls[kind] = partial(new_process, COLD, run.path(kind))
    answers = {call() for call in calls.values()}
    assert [code for code, _, _ in answers] == [0], answers  # all print the same value
    run.measure("new process", calls, {"mag": 1 / 3, "ztensor": 1 / 3}, clock=perf_counter)


def bench_hash(run):
    """XXH3 of zTensor 2 where neither xxhash nor numpy is: 30 MB/s"""
    data = bytes((1 if run.quick else 16) * MIB)
    with Changed(tensorfmt, "fast_xxh3", lambda: None), Changed(
            sys, "modules", dict(sys.modules, numpy=None)):
        start = process_time()
        tensorfmt.xxh3_64([data])
        taken = 1e3 * (process_time() - start)
    run.row("XXH3 of %d MB, ms" % (len(data) // MIB), None, taken, len(data) / 30e3)


def main():
    if sys.argv[1:] not in ([], ["--quick"]):
        sys.exit("usage: python3 test_tensorfmt.py bench [--quick]")
    print("tensorfmt %s, safetensors %s, numpy %s, %s xxhash, Python %s, %s, load %s" % (
        tensorfmt.__version__, safetensors.__version__, numpy.__version__,
        "with" if FAST else "without", platform.python_version(), platform.platform(),
        "%.1f %.1f %.1f" % os.getloadavg() if hasattr(os, "getloadavg") else "unknown"))
    os.environ["PYTHONPATH"] = os.pathsep.join([  # for processes without the module site
        path for path in sys.path if path.endswith("-packages")])
    with TemporaryDirectory() as folder:
        run = Run(folder, sys.argv[1:] == ["--quick"])
        for group in bench_models, bench_many, bench_large, bench_hash:
            group(run)
    print("\n%d of %d musts are met" % (sum(run.met), len(run.met)))


if __name__ == "__main__":
    main()
