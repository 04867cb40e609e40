# SPDX-License-Identifier: MIT
"""Print timings of tensorfmt: `python3 .ci/bench.py`; of cbor2 and msgpack too, where installed."""
import gc
import os
import platform
import struct
import sys
from random import Random
from subprocess import run
from tempfile import TemporaryDirectory

PARENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PARENT)
import tensorfmt
from tensorfmt import dumps, load, tensor

FORMATS = [kind.NAME for kind in tensorfmt.FORMATS]


def make_bytes(nbytes):
    return Random(1).getrandbits(8 * nbytes).to_bytes(nbytes, "little")


def seconds(call, times=5):
    """Return the median CPU time of a call in this process, garbage collection as it is."""
    from time import process_time
    taken = []
    for _ in range(times):
        start = process_time()
        call()
        taken.append(process_time() - start)
    return sorted(taken)[times // 2]


def row(what, value, unit, note=""):
    print("%-44s %10.2f %-6s %s" % (what, value, unit, note))


def main():
    """Print timings of this machine: CPU time of this process, but for saving (wall clock)."""
    print("tensorfmt %s, %s %s, %s, medians of 5, gc %s" % (
        tensorfmt.__version__, platform.python_implementation(), platform.python_version(),
        platform.machine(), "on" if gc.isenabled() else "off"))
    bench_import()
    bench_open()
    bench_bulk()
    with TemporaryDirectory() as folder:
        bench_save(folder)


def bench_import():
    from time import perf_counter
    taken = {}
    code = "import sys; sys.path.insert(0, %r); %%s" % PARENT
    for what in ("pass", "import tensorfmt"):
        runs = []
        for _ in range(10):
            start = perf_counter()
            run([sys.executable, "-I", "-S", "-c", code % what], check=True)
            runs.append(perf_counter() - start)
        taken[what] = sorted(runs)[4]
    row("import, more than bare Python (wall)",
        1000 * (taken["import tensorfmt"] - taken["pass"]), "ms")


def bench_open():
    made = dict([("model.layers.%d.weight" % i, tensor(make_bytes(64), "float32", (4, 4)))
                 for i in range(10000)])
    for kind in FORMATS:
        data = dumps(made, format=kind)
        row("open 10,000 tensors: " + kind, 1000 * seconds(lambda data=data: load(data)), "ms")
        row("write 10,000 tensors: " + kind,
            1000 * seconds(lambda kind=kind: dumps(made, format=kind), 3), "ms")
        if kind in ("burnpack", "ztensor"):
            cbor = data[10:10 + struct.unpack_from("<I", data, 6)[0]] if kind == "burnpack" else \
                data[-8 - struct.unpack_from("<Q", data, len(data) - 8)[0]:-8]
            bench_peer("cbor2", "loads", cbor)
        elif kind == "primitiv":
            bench_peer("msgpack", "Unpacker", data)


def bench_peer(name, call, data):
    from importlib import import_module
    try:
        module = import_module(name)
    except ImportError:
        return
    if call == "Unpacker":
        def run():
            unpacker = module.Unpacker(max_buffer_size=len(data), strict_map_key=False)
            unpacker.feed(data)
            return list(unpacker)
    else:
        def run():
            return module.loads(data)
    row("    %s decodes the same bytes" % name, 1000 * seconds(run), "ms")


def bench_bulk():
    size = 64 << 20
    block = bytes(size)
    row("CRC-32C", size / seconds(lambda: tensorfmt.crc32c(block), 3) / 1e6, "MB/s")
    from zlib import crc32
    row("    zlib.crc32, for scale", size / seconds(lambda: crc32(block)) / 1e6, "MB/s")
    for name, dtype, item in (
            ("byte swap", None, load(dumps({"w": tensor(block, "float32")}, format="ztensor",
                                     data_endianness="big"))["w"]),
            ("column-major to row-major, 4096 x 4096", None,
             load(dumps({"w": tensor(block, "float32", (4096, 4096))}, format="primitiv"))["w"]),
            ("bfloat16 to float32", "float32", tensor(block, "bfloat16")),
            ("float32 to bfloat16", "bfloat16", tensor(block, "float32")),
            ("float32 to float64", "float64", tensor(block, "float32"))):
        call = item.tobytes if dtype is None else \
            (lambda item=item, dtype=dtype: item.astype(dtype))
        row(name, size / seconds(call, 3) / 1e6, "MB/s")


def bench_save(folder):
    from time import perf_counter
    size, path = 512 << 20, os.path.join(folder, "x")
    block = bytes(size)

    def raw():
        with open(path, "wb") as stream:
            stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
    item = tensor(block, "float32", (1 << 13, 1 << 14))
    calls = [("512 MB by one write and fsync", raw)]
    calls += [("save of 512 MB: " + kind, lambda kind=kind: tensorfmt.save(
        path, {"w": item}, format=kind)) for kind in FORMATS]
    for name, call in calls:
        taken = []
        for _ in range(3):
            start = perf_counter()
            call()
            taken.append(perf_counter() - start)
        row(name, sorted(taken)[1], "s", "(wall, median of 3)")


main()
