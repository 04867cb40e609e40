# SPDX-License-Identifier: MIT
"""Does what a file asks for grow with the file only? Something long beside something numerous.

    python3 .ci/growth.py [SECONDS] [SEED]

documents() has a small file of each format as a tree that shows all rows of its Schemas. In a pair,
half of the bytes of a file are one text, key or list of the tree, half are copies of an item of one
of its maps or lists, perhaps DEPTH maps deeper. Such files, good and refused ones, go through each
of OPERATIONS. 4 times as many bytes print at most 8 times as much. What takes QUICK seconds, and
more than 4 times those of a quarter, is tried with 8 times as many bytes: they take at most 16
times as much CPU time, or 32 if they alone are refused: read again for the place. Memory: as
.docs/limits.md says, but for what small files may take.

SECONDS: pairs are drawn, by the seed, until they are over; else all are looked at. The formats take
turns. Each pair is named before; memory and time are limited; an exception ends it. Exit code 1:
findings. test_tensorfmt.py has a quick form of it.
"""
import json
import os
import pickle
import random
import struct
import sys
import tempfile
import time
from functools import lru_cache, partial
from itertools import product
from operator import itemgetter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import fuzz
import tensorfmt
import test_tensorfmt as tests
from tensorfmt import cbor_dumps, dumps, load, msgpack_dumps

SIZES = [1 << n for n in (12, 13, 15, 18)]  # bytes of the files of a pair
QUICK = 0.005  # seconds
DEPTH = 25


def mag(tree):
    """Return a .mag file; of metadata the keys count, of shapes the first dimensions."""
    return dumps({name: tensorfmt.tensor([0], "int32", [1] * len(shape[:6]))
                  for name, shape in tree["tensors"].items()},
                 format="mag", metadata=dict.fromkeys(tree["metadata"], 1))


def primitiv(tree):
    """Return a model of {parameter: [parts of its key, dims, statistics by name]}."""
    def entry(key, dims):
        return msgpack_dumps(key) + msgpack_dumps(dims) + b"\1\xc4\4\0\0\x80?"
    data = tests.primitiv_file(0x300, "") + msgpack_dumps(len(tree), typed=True)
    for name, (parts, dims, stats) in tree.items():
        data += entry(parts + [name], dims) + msgpack_dumps(len(stats))
        data += b"".join([entry(*pair) for pair in stats.items()])
    return data


def optimizer(tree):
    facts = dict(dict.fromkeys(tree["uint"], 1), **dict.fromkeys(tree["float"], 1.5))
    return dumps({}, format="primitiv", kind="optimizer", metadata=facts)


def tensorbuffers(tree):
    """Return a file whose equal texts and vectors are one."""
    flat, kind = tensorfmt.FlatBuilder(), tensorfmt.TensorBuffers
    text = lru_cache(None)(flat.string)
    vector = lru_cache(None)(flat.numbers)
    tensors, steps = [], []
    for i, row in enumerate(tree["tensors"]):
        name = row["name"]
        if row["more"]:
            name += "%x" % i
        shape = vector("I", tuple(row["shape"]))
        tensors.append(flat.table(kind.TENSOR, id=i, name=text(name), shape=shape, data_type=7,
                                  data_offset=4, data_size=1))
    for i, row in enumerate(tree["operations"]):
        inputs = vector("Q", tuple(row["input_operations"]))
        steps.append(flat.table(kind.OPERATION, id=i, operation=1, input_operations=inputs))
    root = flat.table(kind.ROOT, version=text(tree["version"]), model=text(tree["model"]),
                      tensors=flat.offsets(tensors), operations=flat.offsets(steps))
    data = flat.finish(root)
    return b"TBS1" + bytes(4) + data + struct.pack("<I", len(data)) + b"TBS1"


def mag300(top):
    text = json.dumps(top).encode()
    base = tensorfmt.round_up(44 + len(text), 4096)
    head = struct.pack("<4sIIQQQQ", b"MAG!", 300, 0, 44, len(text), base, 4)
    return (head + text).ljust(base, b"\0") + bytes(4)


def documents():
    """Return {name: (encoder, tree)}, which show each row of the Schemas of a format."""
    entry = {"offset": 64, "size": 4, "dtype": "uint8", "layout": "dense", "shape": [4],
             "encoding": "raw", "data_endianness": "little", "checksum": "none",
             "custom": {"a": [1, {"b": "text"}]}, "name": "w"}
    csr = {"offset": 64, "size": 16, "dtype": "uint64", "encoding": "raw", "checksum": "crc32c:0x0",
           "data_endianness": "little"}
    sparse = dict(entry, layout="sparse", sparse_format="csr", shape=[1, 4], nnz=2, size=2,
                  indptr=csr, indices=[0, 1], name="s")
    coo = dict(entry, layout="sparse", sparse_format="coo", shape=[4, 4], nnz=1, size=1,
               coords=[1, 1], name="c")
    user = {"text": "a text", "map": {"a": [1, 2]}}
    part2 = tests.part2("u8", 1, 4, digest="xxh3:0123456789abcdef")
    odd2 = dict(part2, encoding="e", decoded_length=4, type="new", shard="s")
    top2 = {"attributes": user, "shards": {"s": {"size": 9999, "digest": "a:0"}}, "objects": {
        "odd": {"shape": [2], "layout": "new", "parts": {"a": part2, "z": odd2}},
        "w": {"shape": [4], "layout": "dense", "attributes": user, "parts": {"data": part2}}}}
    bpk = {"scalars": {"s": {"Int": 1}}, "metadata": {"key": "text"}, "tensors": {
        "q": {"dtype": tests.scheme("Q8S", level=(4,)), "shape": [4], "data_offsets": [0, 8]},
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
    item = {"numbers": [1, 2, 3], "text": "a text", "list": [None, 1.5], "w": {"id": "abc", "param":
            {"bytes": bytes(4), "shape": [1], "dtype": "F32"}}}
    return {
        "ztensor": (lambda tree: tests.ztensor_of_index(cbor_dumps(tree)), [sparse, coo, entry]),
        "ztensor2": (lambda tree: tests.ztensor2_file(cbor_dumps(tree, sort="bytes")), top2),
        "burnpack": (lambda tree: tests.burnpack_file(tree, bytes(64)), bpk),
        "mag300": (mag300, mag3),
        "safetensors": (lambda tree: tests.safetensors_file(json.dumps(tree), bytes(4)), st),
        "burnrecord": (msgpack_dumps, {"metadata": facts, "item": item}),
        "mag": (mag, {"metadata": {"a": 1, "k": 1}, "tensors": {"a": [1], "w": [1]}}),
        "primitiv": (primitiv, {"a": [["b"], [1], {}], "w": [["enc"], [1], {"m": [1]}]}),
        "optimizer": (optimizer, {"uint": {"a": 1}, "float": {"b": 1.5}}),
        "tensorbuffers": (tensorbuffers, {"version": "1", "model": "m", "tensors": [
            {"name": "w", "more": "x", "shape": [1]}], "operations": [{"input_operations": [1]}]}),
        "shards": (lambda tree: json.dumps(tree).encode(), {
            "metadata": {"total_size": 4}, "weight_map": {"a": "1.st", "w": "2.st"}})}


def boxes(tree, path=()):
    """Yield (path, value) of each map, list and text of a tree."""
    if isinstance(tree, (dict, list, str)):
        yield path, tree
    items = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    for key, item in items:
        yield from boxes(item, path + (key,))


def drawn(seed):
    """Return (document, long path, numerous path, of what, its line) of pairs, shuffled."""
    rows, draw = [], random.Random(seed)
    for name, (_, tree) in documents().items():
        places = [path for path, _ in boxes(tree)]
        full = [path for path, value in boxes(tree) if value and not isinstance(value, str)]
        pairs = list(product(places, full, ("", "junk", "deep")))
        draw.shuffle(pairs)
        for turn, (long, many, items) in enumerate(pairs):
            line = "%s: long %s, many %s %s" % (name, list(long), list(many), items)
            rows.append((turn, (name, long, many, items, line)))
    rows.sort(key=itemgetter(0))
    return [row for _, row in rows]


def rebuilt(tree, path, change):
    """Return a tree with the value at the path changed."""
    if not path:
        return change(tree)
    made = type(tree)(tree)
    made[path[0]] = rebuilt(tree[path[0]], path[1:], change)
    return made


def make(name, long, many, items, nbytes, seed):
    """Return a file of about so many bytes, or None where there is no such file."""
    (encode, tree), draw = documents()[name], random.Random(seed)
    letter = draw.choice(["n", "Z_", "a.", "\xe9", "\u8a9e"])
    text = letter * (nbytes // 2 // len(letter.encode()))

    def multiply(value):  # it becomes numerous: copies of an item come before what it had
        keys = list(value if isinstance(value, dict) else range(len(value)))
        item = {"a": 0} if items == "junk" else value[draw.choice(keys)]
        count = nbytes // 2 // (8 + len(json.dumps(item, default=str)))
        if isinstance(value, list):
            return value + [item] * count
        return dict({"%x" % i: item for i in range(count)}, **value)

    def lengthen(value):  # it becomes long: a text, a list, or one key of a map
        if isinstance(value, str):
            return text
        if isinstance(value, list):
            last = value[-1] if value and not isinstance(value[-1], (dict, list)) else 1
            return value + [last] * len(text)
        chosen = draw.choice(list(value)[-3:])
        made = dict(value)
        made[chosen + text] = made.pop(chosen)
        return made

    def nest(value):
        for _ in range(DEPTH):
            value = {"k": value}
        return value
    try:
        tree = rebuilt(rebuilt(tree, many, multiply), long, lengthen)
        if items == "deep":
            tree = rebuilt(tree, many, nest)
        return encode(tree)
    except (LookupError, TypeError, AttributeError, ValueError, struct.error):
        return None


ALWAYS = ("verify FILE", "verify --json FILE", "explain FILE", "explain --json FILE",
          "explain --html - FILE", "load", "fields")  # also if it is refused
COMMANDS = ALWAYS[:5] + ("ls FILE", "ls --json FILE", "ls --tree FILE", "ls --tree --json FILE",
                         "get FILE *", "get FILE --stats", "diff FILE FILE",
                         "diff --json FILE other", "diff --json other FILE")


def command(line, path):
    """Return what our command prints."""
    return "".join(tests.run(*line.replace("FILE", path).split())[1:])


def use(what, path):
    """Do something with a File."""
    with load(path) as file:
        what(file)


def convert(file):
    for i in range(len(tests.WRITABLE)):
        fuzz.check_converted(file, None, i << 4 | 1 << 12)  # to the newest version


def save(file):
    fuzz.check_saved(file, None, 1)


def pickle_all(file):
    pickle.loads(pickle.dumps([file] + list(file.values())))


OPERATIONS = {
    "load": partial(use, len), "fields": tests.count_fields, "convert": partial(use, convert),
    "values": partial(use, fuzz.check_values), "texts": partial(use, fuzz.check_texts),
    "save": partial(use, save), "pickle": partial(use, pickle_all)}
OPERATIONS.update([(line, partial(command, line)) for line in COMMANDS])


def attempt(call, *args, **options):
    """Return what a call gives; what it may raise is its text."""
    try:
        return call(*args, **options)
    except (ValueError, OSError, TypeError) as error:
        return str(error)


def cpu(operation, path):
    """Return (seconds, bytes of what it gives)."""
    start = time.process_time()
    text = attempt(operation, path)
    seconds, printed = time.process_time() - start, 0
    if isinstance(text, (str, bytes)):
        printed = len(text)
    return seconds, printed


def look(*pair):
    """Yield what is wrong of one pair."""
    for path, nbytes in zip(["other", "small", "middle", "large"], SIZES):
        data = make(*pair[:4], nbytes, pair[4])
        if data is None:
            return
        tests.write_file(path, data)
    good, large = [attempt(OPERATIONS["load"], path) is None for path in ("small", "large")]
    most = 16 if good == large else 32  # a refused file is read again
    for key, operation in OPERATIONS.items():
        if good or key in ALWAYS:
            for text in compare(operation, most):
                yield key + ": " + text
    size = os.path.getsize("middle")
    for key, most in ("verify FILE", 200 * size), ("load", 100 * size):
        with tests.Changed(tensorfmt, "MAX_NAMES", 0):
            peak = tests.peak_of(attempt, OPERATIONS[key], "middle")
        if peak > most + (1 << 18):
            yield "%s: %d bytes take %.1f times as much memory" % (key, size, peak / size)


def compare(operation, most):
    """Yield where the time or the output grow faster than the file."""
    seconds, printed = cpu(operation, "middle")
    if seconds < QUICK and printed < 100000:
        return
    less = cpu(operation, "small")
    if printed > 8 * less[1] + 100000:
        yield "%d bytes printed, of a quarter %d" % (printed, less[1])
    if seconds > max(QUICK, 4 * less[0]):
        more = cpu(operation, "large")[0]
        if more > most * seconds:  # is it so again?
            seconds = max(seconds, cpu(operation, "middle")[0])
            more = min(more, cpu(operation, "large")[0])
        if more > most * seconds:
            yield "%.2f s, an eighth %.2f s" % (more, seconds)


def main(seconds="1e9", seed="1"):
    rows, end, count, findings = drawn(seed), time.time() + float(seconds), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for *pair, line in rows:
            if time.time() > end:
                break
            fuzz.limit()
            print(line, flush=True)  # the last one, if it ends us
            found = list(look(*pair, seed))
            count, findings = count + 1, findings + bool(found)
            print("".join(["  %s\n" % text for text in found]), end="")
        os.chdir("/")
    print("%d pairs of %d, seed %s, %d findings" % (count, len(rows), seed, findings))
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
