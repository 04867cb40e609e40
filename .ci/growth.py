# SPDX-License-Identifier: MIT
"""Does what a file asks for grow with the file only? Something long beside something numerous.

    python3 .ci/growth.py [SECONDS] [SEED] [--only TEXT]

documents() has a small file of each format as a tree that shows all rows of its Schemas. In a pair,
half of the bytes of a file are one text, key or list of the tree, half are copies of an item of one
of its maps or lists, perhaps DEPTH maps deeper. Such files, good and refused ones, go through each
of OPERATIONS: 4 times as many bytes take at most 8 times as much CPU time and output. The smaller
size grows, to a quarter of the largest, until it takes SHORT seconds; a doubtful time is taken
again. Memory: as README, "Security" says, without what small files may take besides.

SECONDS: pairs are drawn, by the seed, until they are over; else all are looked at. Each pair is
named before; memory and time are limited, and an exception ends it. Exit code 1: there are
findings. test_tensorfmt.py has a quick form.
"""
import argparse
import importlib
import io
import json
import os
import pickle
import random
import struct
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

HERE = os.path.dirname(os.path.abspath(__file__))
SHORT, SIZES = 0.05, [1 << n for n in (14, 16, 18)]  # seconds; bytes of files
OTHER = SIZES[0] // 4  # bytes of the file that others are compared with
MEMORY, SECONDS = 3 << 30, 120  # bytes, and of CPU time for a pair: then the process is ended
T = None  # the module
JUNK = {"a": 0}  # an item that nothing knows
DEPTH = 25


# -- files -----------------------------------------------------------------------------------------


def mag(tree):
    """Return a .mag file; of metadata the keys count, of shapes the first dimensions."""
    return T.dumps(dict([(name, T.tensor([0], "int32", [1] * len(shape[:6])))
                         for name, shape in tree["tensors"].items()]),
                   format="mag", metadata=dict.fromkeys(tree["metadata"], 1))


def primitiv(tree):
    """Return a model of {parameter: [parts of its key, dims, statistics by name]}."""
    pack = T.msgpack_dumps

    def tensor(dims):
        return pack(dims) + b"\1\xc4\4\0\0\x80?"
    return b"".join([pack(value, typed=True) for value in (0, 1, 0x300, len(tree))] + [
        pack(parts + [name]) + tensor(dims) + pack(len(stats)) + b"".join([
            pack(key) + tensor(dims) for key, dims in stats.items()])
        for name, (parts, dims, stats) in tree.items()])


def tensorbuffers(tree):
    """Return a file whose equal texts and vectors are one."""
    flat, kind, known = T.FlatBuilder(), T.TensorBuffers, {}

    def once(code, value):
        key = code, tuple(value)
        if key not in known:
            known[key] = flat.numbers(code, value) if code else flat.string(value)
        return known[key]
    tensors = [flat.table(
        kind.TENSOR, id=i, name=once("", row["name"] + "%x" % i * bool(row["more"])),
        shape=once("I", row["shape"]), data_type=7, data_offset=4, data_size=1)
        for i, row in enumerate(tree["tensors"])]
    steps = [flat.table(kind.OPERATION, id=i, operation=1,
                        input_operations=once("Q", row["input_operations"]))
             for i, row in enumerate(tree["operations"])]
    data = flat.finish(flat.table(
        kind.ROOT, version=once("", tree["version"]), model=once("", tree["model"]),
        tensors=flat.offsets(tensors), operations=flat.offsets(steps)))
    return b"TBS1" + bytes(4) + data + struct.pack("<I", len(data)) + b"TBS1"


def ztensor(index, data=bytes(64)):
    text = T.cbor_dumps(index)
    return b"ZTEN0001".ljust(64, b"\0") + data + text + struct.pack("<Q", len(text))


def ztensor2(top, data=bytes(4096)):
    text, magic = T.cbor_dumps(top, sort="bytes"), b"\x89ZT2\r\n\x1a\n"
    data = magic.ljust(4096, b"\0") + data
    return data + text + struct.pack(
        "<QQQII8s", len(data), len(text), T.xxh3_64([text]), 2, 0, magic)


def blocks(text):
    """Return a zstd frame of 16 bytes behind empty blocks, about as long as a text."""
    return b"\x28\xb5\x2f\xfd\0\x58" + bytes(len(text) // 3 * 3) + b"\x81\0\0" + bytes(16)


def coded(tree):
    """Return a zTensor whose entries have one blob of a codec; of sparse ones it is the indptr."""
    blob, empty = blocks(tree["blob"]), b"\x28\xb5\x2f\xfd\0\x58\1\0\0"
    place, rows = {"offset": 64, "size": len(blob), "encoding": "zstd"}, []
    blob += bytes(-len(blob) % 64)
    sparse = {"offset": 64 + len(blob), "size": len(empty), "indptr": place}
    for i, row in enumerate(tree["index"]):
        rows.append(dict(row, **place))
        rows[-1].update({} if row["layout"] == "dense" else sparse, name=row["name"] + "%x" % i)
    return ztensor(rows, blob + empty)


def coded2(tree):
    """Return a file of zTensor 2: as many names and digests of one blob of a codec."""
    blob = blocks(tree["blob"])
    blob += struct.pack("<IIIIIB4s", 0x184D2A5E, 17, len(blob), 16, 1, 0, b"\xb1\xea\x92\x8f")
    return ztensor2({"objects": dict([(name, {"shape": [16], "layout": "dense", "parts": {"data": {
        "dtype": "u8", "blob": [4096, len(blob)], "encoding": "zt.zstd-seekable/1",
        "decoded_length": 16, "digest": "sha256:%064x" % i}}})
        for i, name in enumerate(tree["names"])])}, blob + bytes(-len(blob) % 4096))


def burnpack(top):
    text = T.cbor_dumps(top)
    head = struct.pack("<4sHI", b"NRUB", 1, len(text)) + text
    return head + bytes(-len(head) % 256) + bytes(64)


def safetensors(top):
    text = json.dumps(top).encode()
    return struct.pack("<Q", len(text)) + text + bytes(4)


def mag300(top):
    text = json.dumps(top).encode()
    base = -(-(44 + len(text)) // 4096) * 4096
    return (struct.pack("<4sIIQQQQ", b"MAG!", 300, 0, 44, len(text), base, 4)
            + text).ljust(base, b"\0") + bytes(4)


def documents():
    """Return rows (name, encoder, tree), which show each row of the Schemas of a format."""
    csr = {"offset": 64, "size": 16, "dtype": "uint64", "encoding": "raw", "checksum": "crc32c:0x0",
           "data_endianness": "little"}
    entry = {"offset": 64, "size": 4, "dtype": "uint8", "layout": "dense", "shape": [4],
             "encoding": "raw", "data_endianness": "little", "checksum": "none",
             "custom": {"a": [1, {"b": "text"}]}, "name": "w"}
    sparse = dict(entry, layout="sparse", sparse_format="csr", shape=[1, 4], nnz=2, size=2,
                  indptr=csr, indices=[0, 1], name="s")
    coo = dict(entry, layout="sparse", sparse_format="coo", shape=[4, 4], nnz=1, size=1,
               coords=[1, 1], name="c")
    user = {"text": "a text", "map": {"a": [1, 2]}}
    part2 = {"dtype": "u8", "blob": [4096, 4], "digest": "xxh3:0123456789abcdef"}
    odd2 = dict(part2, encoding="e", decoded_length=4, type="new", shard="s")
    top2 = {"attributes": user, "shards": {"s": {"size": 9999, "digest": "a:0"}}, "objects": {
        "odd": {"shape": [2], "layout": "new", "parts": {"a": part2, "z": odd2}},
        "w": {"shape": [4], "layout": "dense", "attributes": user, "parts": {"data": part2}}}}
    scheme = {"value": "Q8S", "param": "F32", "store": {"PackedU32": 0}, "mode": "Symmetric",
              "level": {"Block": {"len": 1, "storage": [4, 1, 1, 1, 1]}}}
    bpk = {"scalars": {"s": {"Int": 1}}, "metadata": {"key": "text"}, "tensors": {
        "q": {"dtype": {"QFloat": scheme}, "shape": [4], "data_offsets": [0, 8]},
        "b": {"dtype": {"Bool": "Native"}, "shape": [4], "data_offsets": [0, 4]},
        "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "param_id": 7}}}
    st = {"__metadata__": {"key": "text"},
          "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
          "w": {"dtype": "F8_E4M3", "shape": [0], "data_offsets": [4, 4]}}
    empty = {"dtype": "float32", "dtype_id": 0, "offset": 4, "nbytes": 0, "shape": [0]}
    mag3 = {"manifest_ver": 1, "timestamp": "t", "magnetron_ver": "0.2.2", "snapshot_ver": "0.3.0",
            "usr_metadata": user, "tensor_map": {
                "a": dict(empty, offset=0, nbytes=4, shape=[1]), "w": empty}}
    facts = {"float": "f32", "int": "i32", "format": "NamedMpkFileRecorder", "version": "0.21.0",
             "settings": "FullPrecisionSettings"}
    one = {"bytes": bytes(4), "shape": [1], "dtype": "F32"}
    item = {"numbers": [1, 2, 3], "text": "a text", "old": {"id": "x", "param": {
        "value": [1, 2], "shape": [2]}}, "list": [None, 1.5], "w": {"id": "abc", "param": one}}
    row = {"dtype": "uint8", "layout": "dense", "shape": [16], "encoding": "zstd", "name": "w"}
    rows = dict(row, layout="sparse", sparse_format="csr", shape=[1, 8], indices=[], name="s")
    return [
        ("coded", coded, {"blob": "b", "index": [row]}),
        ("coded-csr", coded, {"blob": "b", "index": [rows]}),
        ("coded2", coded2, {"blob": "b", "names": {"a": "." * 130}}),
        ("ztensor", ztensor, [sparse, coo, entry]),
        ("ztensor2", ztensor2, top2), ("burnpack", burnpack, bpk),
        ("safetensors", safetensors, st), ("mag300", mag300, mag3),
        ("burnrecord", T.msgpack_dumps, {"metadata": facts, "item": item}),
        ("mag", mag, {"metadata": {"a": 1, "k": 1}, "tensors": {"a": [1], "w": [1]}}),
        ("primitiv", primitiv, {"a": [["b"], [1], {}], "w": [["enc"], [1], {"m": [1]}]}),
        ("optimizer", lambda tree: T.dumps({}, format="primitiv", kind="optimizer", metadata=dict(
            dict.fromkeys(tree["uint"], 1), **dict.fromkeys(tree["float"], 1.5))),
         {"uint": {"a": 1}, "float": {"b": 1.5}}),
        ("tensorbuffers", tensorbuffers, {"version": "1", "model": "m", "tensors": [
            {"name": "w", "more": "x", "shape": [1]}], "operations": [{"input_operations": [1]}]}),
        ("shards", lambda tree: json.dumps(tree).encode(), {
            "metadata": {"total_size": 4}, "weight_map": {"a": "1.st", "w": "2.st"}})]


# -- pairs -----------------------------------------------------------------------------------------


def boxes(tree, path=()):
    """Yield (path, value) of each map, list and text of a tree."""
    if isinstance(tree, (dict, list, str)):
        yield path, tree
    for key, item in tree.items() if isinstance(tree, dict) else (
            enumerate(tree) if isinstance(tree, list) else ()):
        yield from boxes(item, path + (key,))


def pairs(tree):
    """Return all (path of what is long, path of what is numerous, "" or "junk" or "deep")."""
    longs = [path for path, value in boxes(tree)]
    manys = [(path, items) for path, value in boxes(tree) if value and not isinstance(value, str)
             for items in ("", "junk", "deep")]
    return [(path,) + many for path in longs for many in manys]


def drawn(seed, only=""):
    """Return (name, pair, what it is) of all pairs whose text holds `only`, shuffled."""
    rows = [(name, pair, "%s: long %s, many %s%s" % (
        name, list(pair[0]), list(pair[1]), " of " + pair[2] if pair[2] else ""))
        for name, _, tree in documents() for pair in pairs(tree)]
    rows = [row for row in rows if only in row[2]]
    random.Random(seed).shuffle(rows)
    return rows


def rebuilt(tree, path, change):
    """Return a tree with the value at the path changed."""
    if not path:
        return change(tree)
    made = type(tree)(tree)
    made[path[0]] = rebuilt(tree[path[0]], path[1:], change)
    return made


def lengthen(value, nbytes, letter, draw):
    """Return a text or a list of so many bytes; of a map, a key is long."""
    if isinstance(value, str):
        return letter * nbytes
    if isinstance(value, list):
        last = value[-1] if value and not isinstance(value[-1], (dict, list)) else 1
        return value + [last] * nbytes
    chosen = draw.choice(list(value)[-3:])
    return dict([(key + letter * nbytes if key == chosen else key, item)
                 for key, item in value.items()])


def multiply(value, nbytes, junk, draw):
    """Return a map or a list with copies of one of its items, or junk, before what it had."""
    keys = list(value if isinstance(value, dict) else range(len(value)))
    item = JUNK if junk else value[draw.choice(keys)]
    count = nbytes // (8 + len(json.dumps(item, default=str)))
    if isinstance(value, list):
        return value + [item] * count
    made = dict([("%x" % i, item) for i in range(count)])
    made.update(value)
    return made


def nested(value):
    for _ in range(DEPTH):
        value = {"k": value}
    return value


def make(name, pair, nbytes, seed):
    """Return a file of about so many bytes, or None where there is no such file."""
    encode, tree = {row[0]: row[1:] for row in documents()}[name]
    (long, many, items), draw = pair, random.Random(seed)
    letter = draw.choice(["n", "Z_", "a.", "\xe9", "\u8a9e"])
    half = nbytes // 2
    try:
        tree = rebuilt(tree, many, lambda value: multiply(value, half, items == "junk", draw))
        tree = rebuilt(tree, long, lambda value: lengthen(
            value, half // len(letter.encode()), letter, draw))
        return encode(rebuilt(tree, many, nested) if items == "deep" else tree)
    except (LookupError, TypeError, AttributeError, ValueError, struct.error):
        return None


# -- what is done with them ------------------------------------------------------------------------


class Text(io.StringIO):
    encoding = "utf-8"


class Nothing(io.RawIOBase):
    def write(self, data):
        return len(data)


def command(words, path):
    """Return what a command prints, and the page that it writes."""
    with redirect_stdout(Text()) as out, redirect_stderr(out):
        T.main([{"PATH": path, "OTHER": "file%d" % OTHER}.get(word, word) for word in words])
    if "page.html" in words:
        with open("page.html") as stream:
            out.write(stream.read())
    return out.getvalue()


def use(what):
    """Return an operation that does something with a File, and returns a text or None."""
    def operation(path):
        with T.load(path) as file:
            return what(file)
    return operation


def show(file):
    texts = [repr(file), file._repr_html_()] + [repr(item) for item in file.values()]
    try:
        file["another"]
    except KeyError as error:
        texts.append(str(error))
    return "".join(texts)


def get(path):
    with T.load(path) as file:
        names = sorted(file, key=len)[-2:]
    return "".join([command(["get", path, name], path) for name in names])


def convert(file):
    texts = []
    for kind in T.FORMATS:
        for options in [{}] + [{"version": version} for version in ("300", "2")
                               if version in kind.OPTIONS.get("version", "")]:
            try:
                texts.append(str(T.convert(file, Nothing(), format=kind.NAME, cast="float32",
                                           dense=True, drop=True, metadata="text", **options)))
            except (ValueError, TypeError) as error:
                texts.append(str(error))
    return "".join(texts)


def pickled(file):
    data = pickle.dumps([file] + list(file.values()))
    pickle.loads(data)
    return data


def values(file):
    for item in file.values():
        attempt(lambda item: item.tolist() and None, item)


OPERATIONS = {"load": lambda path: T.load(path).close(), "fields": lambda path: len(
    list(T.explain(path)))}
OPERATIONS.update([(line, partial(command, line.split())) for line in (
    "verify PATH", "verify --json PATH", "explain PATH", "explain --json PATH",
    "explain --html page.html PATH")])
OF_EACH = {"show": use(show), "pickle": use(pickled), "values": use(values)}
OPERATIONS.update(OF_EACH, get=get, convert=use(convert))  # OF_EACH: they may decode each tensor
OF_REFUSED = list(OPERATIONS)
OPERATIONS.update([(line, partial(command, line.split())) for line in (
    "ls PATH", "ls --json PATH", "ls --tree PATH", "ls --tree --json PATH", "get PATH --stats",
    "diff PATH PATH", "diff --json PATH OTHER", "diff --json OTHER PATH")])


def attempt(operation, argument):
    """Return what an operation gives; what it may raise is its text."""
    try:
        return operation(argument)
    except (ValueError, OSError, TypeError) as error:
        return str(error)


def cpu(operation, path):
    """Return (seconds, bytes of what it gives)."""
    start = time.process_time()
    text = attempt(operation, path)
    return time.process_time() - start, len(text) if isinstance(text, (str, bytes)) else 0


def look(name, pair, seed):
    """Yield what is wrong of one pair."""
    paths = {}
    for nbytes in SIZES + [OTHER]:
        data, paths[nbytes] = make(name, pair, nbytes, seed), "file%d" % nbytes
        if data is None:
            return
        with open(paths[nbytes], "wb") as stream:
            stream.write(data)
    good = attempt(OPERATIONS["load"], paths[SIZES[0]]) is None
    for key, operation in OPERATIONS.items():
        if (good or key in OF_REFUSED) and not (key in OF_EACH and name.startswith("coded")):
            attempt(operation, paths[SIZES[0]])  # imports
            for text in compare(operation, paths):
                yield key + ": " + text
    yield from look_at_memory(paths[SIZES[-1]])


def compare(operation, paths):
    """Yield where 4 times as many bytes take more than 8 times the time or the output."""
    last = cpu(operation, paths[SIZES[0]])
    for nbytes in SIZES[1:]:
        more = cpu(operation, paths[nbytes])
        if more[0] > max(SHORT, 8 * last[0]):  # is it so again?
            last = max(last, cpu(operation, paths[nbytes // 4]))
            more = min(more, cpu(operation, paths[nbytes]))
        if last[0] > SHORT / 5 and more[0] > max(SHORT, 8 * last[0]):
            yield "%d bytes take %.2f s, a quarter %.2f s" % (nbytes, more[0], last[0])
        if more[1] > 8 * last[1] + 100000:
            yield "%d bytes print %d, a quarter %d" % (nbytes, more[1], last[1])
        if last[0] > SHORT:
            return
        last = more


def look_at_memory(path):
    """Yield where memory is over the promise, without what small files may take besides."""
    import tracemalloc  # not of PyPy
    size, usual = os.path.getsize(path), T.MAX_NAMES
    for key, most in ("load", 100), ("verify PATH", 200), ("fields", 200):
        T.MAX_NAMES = 0
        tracemalloc.start()
        attempt(OPERATIONS[key], path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        T.MAX_NAMES = usual
        if peak > most * size + (1 << 18):
            yield "%s: %d bytes take %.1f times as much memory" % (key, size, peak / size)


# -- running ---------------------------------------------------------------------------------------


def find_module(path):
    global T
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    T = importlib.import_module(os.path.basename(path)[:-3])


def main():
    import resource  # of POSIX
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=1e9)
    parser.add_argument("seed", nargs="?", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="pairs whose line holds this text")
    args = parser.parse_args()
    find_module(os.path.join(HERE, "..", "tensorfmt.py"))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rows, end, count, findings = drawn(args.seed, args.only), time.time() + args.seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, pair, title in rows:
            if time.time() > end:
                break
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + SECONDS, -1))
            print(title, flush=True)  # the last one, if it ends us
            found = list(look(name, pair, args.seed))
            count, findings = count + 1, findings + bool(found)
            print("".join(["  %s\n" % text for text in found]), end="")
        os.chdir(HERE)
    print("%d pairs of %d, seed %d, %d findings" % (count, len(rows), args.seed, findings))
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main())
