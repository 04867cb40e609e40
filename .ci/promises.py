# SPDX-License-Identifier: MIT
"""Promises that hold for every file: no list says what must come out, files are made at random.

    python3 .ci/promises.py [COUNT] [SEED]

    changes      a golden with one byte changed, or cut short, is a result or a FormatError
    digests      a changed byte that a stored digest covers: verify is false, load(verify=True)
                 raises, save and convert refuse
    counts       what verify does not look at is counted in its last line
    differences  diff tells whatever differs in values, custom attributes and metadata, and nothing
                 else; == agrees with it
    readers      mapped or not, by streams, threads and forked processes: the same bytes

`changes` takes each byte of all goldens of the tests; the others COUNT changed files of the fuzzer
that load takes. The SEED is printed: the same numbers make the same files again (0, or none: a new
one each time). A finding shows its file in hex. Exit code 1: there are some.
"""
import io
import os
import struct
import sys
import tempfile
import traceback
from hashlib import sha256
from itertools import chain, count
from random import Random, SystemRandom
from time import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import fuzz
import tensorfmt
import test_tensorfmt as tests
from tensorfmt import cbor_loads, dumps, FormatError, load

TEST = tests.TestCase()
SMALL = 1 << 16  # bytes of a tensor whose values are compared
MOST = 5  # findings that are printed
FINDINGS = []


class Case:
    """A changed file that load takes: `data`, made of the good file `base`; `last`: that before.

    `files`: it, and its tensors as zTensor with a digest of each, if there are some.
    """

    def __init__(self, title, base, data, last, folder):
        self.title, self.base, self.data, self.last = title, base, data, last
        self.folder = folder
        self.files = [data] + with_digests(load(data), Random(title))


def values_of(item):
    """Return the row-major bytes of a tensor, those stored if it has none, or what is wrong."""
    if item.unreadable:
        return stored_bytes(item)
    if item.nbytes > SMALL:
        return item.nbytes
    try:
        return item.tobytes()
    except FormatError as error:
        return error.what


def bytes_of(file):
    """Return the stored bytes and the values of all tensors of a File."""
    return [(name, stored_bytes(item), values_of(item)) for name, item in file.items()]


def stored_bytes(item):
    return [(role, bytes(part.raw)) for role, part in item.stored_parts().items()]


def with_bit(data, at, draw):
    """Return bytes of which one is another."""
    return data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1:]


# -- changes ---------------------------------------------------------------------------------------


def changed_files(data, draw):
    """Yield a file with each of its bytes changed in three ways, and cut short at each place."""
    for at, byte in enumerate(data):
        for step in 1, 255, draw.randrange(2, 255):
            yield data[:at] + bytes([byte + step & 255]) + data[at + 1:]
    for end in range(len(data)):
        yield data[:end]


def check_changes(draw, part=1):
    """Check all goldens; `part`: one of so many changes. Return how many there were."""
    tried = 0
    for _, title, data, _ in tests.FILES:
        for number, changed in enumerate(changed_files(data, draw)):
            if part == 1 or draw.randrange(part) == 0:
                look(check_change, title, changed, (number + tried) % 3 == 0)
                tried += 1
    return tried


def check_change(data, is_thorough):
    """Read a file, or use it in every way: it gives a result or raises a FormatError."""
    if is_thorough:
        fuzz.check_mutant(data, ())
        return
    try:
        bytes_of(load(data))
    except FormatError as error:
        TEST.assertTrue(0 <= error.offset <= len(data), error)


# -- digests, counts -------------------------------------------------------------------------------


def digests_of(data):
    """Return (text, offset, nbytes) of the digests in a file's index, read from that alone."""
    kind = load(data).fmt.NAME
    if kind == "ztensor":
        size, = struct.unpack("<Q", data[-8:])
        end = len(data) - 8 - size
        return [row for entry in cbor_loads(data[end:-8]) for row in digests_of_entry(entry, end)]
    if kind == "ztensor2":
        start, size = struct.unpack("<QQ", data[-40:-24])
        manifest = cbor_loads(data[start:start + size]) if size else {"objects": {}}
        rows = [(shard["digest"], 0, 0) for shard in manifest.get("shards", {}).values()]
        for entry in manifest["objects"].values():
            for part in entry["parts"].values():
                place = (0, 0) if "shard" in part else part["blob"]  # of another file
                rows += [(part["digest"], *place)] if "digest" in part else []
        return rows
    if kind == "mag":  # the header has one, of the index behind it
        fields = [field for field in tensorfmt.explain(data) if field.kind == "structure"]
        return [("crc32", 12, fields[-1].offset + fields[-1].nbytes - 12)]
    return []


def digests_of_entry(entry, end):
    """Yield those of zTensor 0.1: of the blob, and of blobs of indices that lie before `end`."""
    maps = [entry]
    if entry.get("layout") == "sparse":
        maps += [entry.get(key) for key in ("indptr", "indices", "coords")]
    for fact in maps:
        if not isinstance(fact, dict) or not isinstance(fact.get("checksum"), str):
            continue
        start, size = fact.get("offset"), fact.get("size")
        is_placed = isinstance(start, int) and isinstance(size, int)
        if is_placed and start % 64 == 0 and 64 <= start < start + size <= end:
            yield fact["checksum"], start, size


def with_digests(file, draw):
    """Return tensors of a File as zTensor that has a digest of each, in a list; or none."""
    ways = [{"version": "2"}, {"checksum": "sha256", "data_endianness": "big"},
            {"checksum": "crc32c", "encoding": "zstd" if tests.ZSTD else "raw"}]
    names = [name for name, item in file.items()
             if item.dtype and not item.unreadable and 0 < item.nbytes <= SMALL]
    options = dict({"version": "0.1"}, **draw.choice(ways))
    stream = io.BytesIO()
    try:
        tensorfmt.convert(file, stream, format="ztensor", only=names, dense=draw.random() < 0.5,
                          drop=True, **options)
    except ValueError:  # there are none, or a name that it cannot hold
        return []
    return [stream.getvalue()]


def check_digests(case, draw):
    """Change bytes that digests cover; return whether there are some."""
    tried = [change_digests(data, draw) for data in case.files]
    return check_blob(case, draw) or any(tried)


def change_digests(data, draw):
    """Change bytes that digests in the index cover: whoever reads or copies them must say so."""
    known = ["crc32"] + list(getattr(load(data).fmt, "DIGESTS", ()))
    places = [row for row in digests_of(data) if row[2] and row[0].partition(":")[0] in known]
    if not places or not tensorfmt.verify(data):
        return False
    for _, start, nbytes in draw.choices(places, k=3):
        bad = with_bit(data, start + draw.randrange(nbytes), draw)
        report = tensorfmt.verify(bad)
        if report:  # a bit of a frame of zstd that says nothing
            values = [[values_of(item) for item in load(one).values()] for one in (data, bad)]
            TEST.assertEqual(*values)
            continue
        with TEST.assertRaises(FormatError) as caught:
            load(bad, verify=True)
        TEST.assertIn(caught.exception.what, [error.what for error in report.errors])
        for kind in tests.WRITABLE:
            TEST.assertRaises(ValueError, tensorfmt.convert, bad, io.BytesIO(), format=kind,
                              cast="float32", dense=True, drop=True)
        with TEST.assertRaises(ValueError):
            file = load(bad)
            dumps(file, format=file.format)
        less = limited(bad, draw)
        TEST.assertTrue(not less or " not checked" in less.last_line(), less)
    return True


def check_blob(case, draw):
    """Change a byte of a file that is called as its SHA-256, in a folder `blobs`."""
    if not tensorfmt.verify(case.data):
        return False
    folder = os.path.join(case.folder, "blobs")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, sha256(case.data).hexdigest())
    tests.write_file(path, case.data)
    TEST.assertTrue(tensorfmt.verify(path))
    tests.write_file(path, with_bit(case.data, draw.randrange(len(case.data)), draw))
    TEST.assertFalse(tensorfmt.verify(path))
    TEST.assertRaises(FormatError, load, path, verify=True)
    os.remove(path)
    return True


def limited(data, draw):
    """Return what verify says where less work is allowed, and there is no quick XXH3."""
    limits = {"MAX_COPIES": draw.choice((0, 0, 0.0001, 1)),  # times the file and 1 MiB
              "MAX_SLOW_HASH": draw.choice((0, 8, 100, 1000)),  # bytes
              "fast_xxh3": tests.mock.Mock(return_value=None)}
    with tests.mock.patch.multiple(tensorfmt, **limits):
        return tensorfmt.verify(data)


def check_counts(case, draw):
    """Compare what verify counts with what is in the index."""
    for data in case.files:
        file = load(data)
        digests = digests_of(data)
        if file.fmt.NAME == "mag":  # load looks at it
            digests = []
        unreadable = len([item for item in file.values() if item.unreadable])
        report = tensorfmt.verify(data)
        compare_counts(report, len(digests), unreadable)
        if report:  # else a fault may be in what the limits leave out
            compare_counts(limited(data, draw), len(digests), unreadable)
    return True


def compare_counts(report, digests, unreadable):
    """Compare a report with the number of digests and of tensors without values here."""
    left = report.not_checked
    agreed = 0
    for status, check, _, text, _ in report.rows:
        if check == "checksums" and status == "ok":
            agreed = int(text.split()[0])
    bad = len([error for error in report.errors if error.check == "checksums"])
    looked_at = agreed + bad + left["checksums"]
    broken = len(report.errors) - bad  # a digest is not reached where its bytes are not decoded
    TEST.assertGreaterEqual(looked_at + broken, digests, str(report))
    TEST.assertGreaterEqual(left["contents"] + broken, unreadable)
    line = str(report).split("\n")[-1]
    for number, noun in (left["contents"], "tensor"), (left["checksums"], "checksum"):
        words = ", %s not checked" % tensorfmt.plural(number, noun)
        TEST.assertEqual(words in line, number > 0, line)
    if report.limits:
        TEST.assertIn(" not checked", line)


# -- differences -----------------------------------------------------------------------------------


def exact(value):
    """Return what two facts have in common only if value and type are the same; NaN is one."""
    if isinstance(value, dict):
        pairs = [(exact(key), exact(item)) for key, item in value.items()]
        return "map", sorted(pairs, key=repr)
    if isinstance(value, (list, tuple)):
        return [exact(item) for item in value]
    if isinstance(value, float) and value == value:
        return "float", struct.pack("<d", value)
    return type(value).__name__, repr(value)


def check_pair(a, b):
    """Compare diff and == of two Files with what differs."""
    sizes = [item.nbytes for file in (a, b) for item in file.values()]
    if max(sizes, default=0) > SMALL:
        return
    try:
        found = tensorfmt.diff(a, b)
    except ValueError:  # it is damaged, or too much work
        return
    told = [(row["kind"], row["name"]) for row in found.differences]
    if a.fmt is b.fmt:
        scalars = [file.attrs.get("scalars") or {} for file in (a, b)]
        facts = [("metadata", key) for key in changed_keys(a.metadata, b.metadata)]
        facts += [("scalar", key) for key in changed_keys(*scalars)]
        facts += [("bytes", key) for key in changed_keys(a.others, b.others)]
        TEST.assertEqual(sorted([row for row in told if row[0] != "tensor"]), sorted(facts))
    for name in set(list(a) + list(b)):
        is_told = ("tensor", name) in told
        if name in a and name in b:
            check_tensors(a[name], b[name], is_told)
        else:
            TEST.assertTrue(is_told, name)


def changed_keys(a, b):
    keys = set(list(a) + list(b))
    return [key for key in keys if key not in a or key not in b or exact(a[key]) != exact(b[key])]


def check_tensors(a, b, is_told):
    """Compare two tensors of one name; `is_told`: diff says that they differ."""
    try:
        is_equal = a == b
        TEST.assertEqual(is_equal, b == a)
    except FormatError:  # one is damaged
        return
    mine = [[item.dtype, item.shape, values_of(item), exact(item.custom)] for item in (a, b)]
    whole = [[stored_bytes(item), item.format, item.byteorder, exact(item.attrs)]
             for item in (a, b)]
    if mine[0] != mine[1] or lies_elsewhere(a):
        TEST.assertEqual((is_told, is_equal), (True, False), (a.name, mine))
    elif whole[0] == whole[1] and has_all_bytes(a):
        TEST.assertEqual((is_told, is_equal), (False, True), (a.name, mine))
    TEST.assertNotEqual(is_told, is_equal, (a.name, mine, whole))


def lies_elsewhere(item):
    """Return whether bytes of a tensor are in another file, of which we know nothing."""
    return "shard" in [part.encoding for part in item.stored_parts().values()]


def has_all_bytes(item):
    """Return whether all bytes of a tensor are known to be in its file, where we see them."""
    return not lies_elsewhere(item) and not tensorfmt.places_other_bytes(item)


def check_differences(case, draw):
    """Compare a file with itself, with those before and with changed ones."""
    file = load(case.data)
    for other in case.data, case.base, case.last:
        check_pair(file, load(other))
        check_pair(load(other), file)
    for item in file.values():
        if item.encoding == "raw" and 0 < item.stored_nbytes <= SMALL and draw.random() < 0.3:
            at = item.start + draw.randrange(item.stored_nbytes)
            try:
                other = load(with_bit(case.data, at, draw))
            except FormatError:  # it is one of the index, too
                continue
            check_pair(file, other)
    return True


# -- readers ---------------------------------------------------------------------------------------


def bare(data):
    return tests.Bare(io.BytesIO(data))


def check_readers(case, draw):
    """Compare what is read in each way with what a mapped File gives."""
    path = os.path.join(case.folder, "file")
    tests.write_file(path, case.data)
    with load(path) as mapped:
        wanted = bytes_of(mapped)
        for make in bytes, bytearray, io.BytesIO, tests.Short, bare:
            TEST.assertEqual(bytes_of(load(make(case.data))), wanted, make.__name__)
        with load(path, mmap=False) as file:
            check_at_once([mapped, file], wanted)
        for make in tests.Short, bare:
            stream = make(case.data)  # one, of which two Files read
            check_at_once([load(stream), load(stream)], wanted, True)
    os.remove(path)
    return True


def check_at_once(files, wanted, is_user_stream=False):
    """Read Files in three threads while a process is forked: there a user's stream is refused."""
    def are_right():
        return [bytes_of(file) == wanted for file in files]

    def work(number):
        if number < 3 or not hasattr(os, "fork"):
            TEST.assertEqual(are_right(), [True, True])
            return
        said = tests.in_fork(are_right)
        if not (is_user_stream and said.startswith("ValueError: ")):
            TEST.assertEqual(said, "[True, True]")
    tests.in_threads(work, 4)


# -- running ---------------------------------------------------------------------------------------

CHECKS = {"digests": check_digests, "counts": check_counts, "differences": check_differences,
          "readers": check_readers}


def look(check, title, *args):
    """Check something; note what breaks a promise. Return what the check returns."""
    try:
        return check(*args)
    except Exception:
        FINDINGS.append(check.__name__)
        if len(FINDINGS) <= MOST:
            case = args[0]
            data = getattr(case, "data", case)
            text = traceback.format_exc()[-4000:]
            print("%s of %s:\n%s%s" % (check.__name__, title, text, data.hex()[:50000]), flush=True)


def cases(seed, folder):
    """Yield the Cases of a seed, without an end."""
    last = tests.fuzz_files()[0]
    numbers = count()
    for base, data in chain.from_iterable(map(fuzz.pairs, count(seed))):
        try:
            load(data)
        except FormatError:
            continue
        title = "file %d of seed %d" % (next(numbers), seed)
        yield Case(title, base, data, last, folder)
        last = data


def check_files(number, seed):
    """Check so many files; return how often each promise could be tried."""
    tried = dict.fromkeys(CHECKS, 0)
    with tempfile.TemporaryDirectory() as folder:
        for _, case in zip(range(number), cases(seed, folder)):
            for name, check in CHECKS.items():
                tried[name] += bool(look(check, case.title, case, Random(case.title + name)))
    return tried


def main(number="1100", seed="0"):
    start = time()
    seed = int(seed) or SystemRandom().randrange(1, 10 ** 6)
    print("the same files again: python3 .ci/promises.py %s %d" % (number, seed), flush=True)
    tried = check_files(int(number), seed)
    tried["changes"] = check_changes(Random(seed))
    words = ", ".join(["%s %s" % (name, format(n, ",")) for name, n in tried.items()])
    print("seed %d, files tried: %s; %d findings, %d s" % (
        seed, words, len(FINDINGS), time() - start))
    return int(bool(FINDINGS) or not all(tried.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
