# SPDX-License-Identifier: MIT
"""Change good files at random, use each in every way, and tell what breaks a promise.

    python3 test_tensorfmt.py fuzz [SECONDS] [SEED] [--out FOLDER]
    python3 test_tensorfmt.py fuzz FILE ...         check such files again

What must hold for each is check_mutant(). A seed makes 20,000 mutants, always the same ones for the
same files and the same zstd module. Memory and time of a mutant are limited where the system can do
it; one that ends the process stays in the folder as seedN.bin. Findings are written to this new
folder once of each kind (exception and lines). Exit code 1: there are some.
"""
import argparse
import io
import itertools
import json
import os
import re
import struct
import sys
import tempfile
import traceback
from contextlib import suppress
from random import Random
from time import process_time, time

try:
    import resource
except ImportError:  # it is of POSIX
    resource = None
import tensorfmt
import test_tensorfmt as tests
from tensorfmt import cbor_dumps, FormatError, json_dumps, load, msgpack_dumps
from test_tensorfmt import dumps, error_of

TEST = tests.TestCase()
SIZE = 20000  # mutants of a seed
MIB = 1 << 20
MEMORY = 1024 * MIB  # address space
GROWTH = 96 * MIB  # that one mutant may add to the most that the process ever used
SLOW = 2  # seconds of CPU time for one mutant: a finding
HANG = 20  # and here the process is ended


# -- what must hold --------------------------------------------------------------------------------

TAGS = set("table tr td th b /table /tr /td /th /b".split())
COMPUTED = ("layout", "encoding", "data_endianness", "checksum", "sparse_format", "nnz", "indptr",
            "indices", "coords", "aux", "id", "version", "dtype", "digest")  # of a copy: others
COMMANDS = [text.split() for text in (
    "ls -- FILE", "ls --json -- FILE", "verify -- FILE", "verify --json -- FILE",
    "explain -- FILE", "explain --json -- FILE", "explain --html - -- FILE",
    "get --stats -- FILE NAME", "diff -- FILE FILE",
    "convert --cast float32 --dense --drop --format safetensors -- FILE -")]


def held(file):
    """Return what every copy of a file holds: of each tensor dtype, shape, parts, attrs."""
    rows, most = [], 1 << 14
    for name in sorted(file):
        item = file[name]
        parts = {"": item}
        if isinstance(item, tensorfmt.Sparse):
            parts = item.components
        values = []
        for key, part in parts.items():
            data = part.unreadable or part.nbytes > most or part.tobytes()
            values.append((key, part.dtype, part.shape, data))
        facts = dict(list(item.attrs.items()) + list(item.custom.items()))
        kept = {key: facts[key] for key in facts if key not in COMPUTED}
        rows.append([name, item.dtype, item.shape, values, kept])
    return rows


def check_mutant(data, lines=None):
    """Use bytes in every way, assert what must hold; return whether they are a file.

    `lines` of COMMANDS are given to our command; usually it is one, for every eighth mutant.
    """
    crc, facts, source = tensorfmt.crc32(data), None, data
    if lines is None:
        lines = ()
        if crc // 16 % 8 == 0:
            lines = [COMMANDS[crc // 128 % len(COMMANDS)]]
    if lines:
        check_commands(data, lines)
    if crc % 16 == 0 and len(data) < 1000:
        source = tests.Short(data)
    report = tensorfmt.verify(source)
    TEST.assertIn("valid" if report else "INVALID", str(report))
    try:
        file = load(source)
    except FormatError as error:
        TEST.assertTrue(not report and 0 <= error.offset <= len(data), str(error))
        TEST.assertEqual(error.args[1:3], (error.offset, error.field))
        tests.check_refused(data, error)
        return False
    TEST.assertTiles(tensorfmt.explain(data), len(data), True)
    try:
        facts = held(file)
    except FormatError as error:
        if report:
            TEST.assertIn(("-", "contents"), [row[:2] for row in report.rows], str(error))
    if not report:
        error = error_of(type(report.errors[0]), load, data, verify=True)
        TEST.assertEqual(error.what, report.errors[0].what)
    check_values(file)
    check_texts(file)
    check_saved(file, facts if report else None, crc)
    check_converted(file, facts if report else None, crc)
    return True


def check_commands(data, lines):
    """Give a mutant to commands: what a person reads is printable and bounded, without a trace."""
    name, error = "no.such.name", None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        tests.write_file(path, data)
        try:
            with load(path) as file:
                name = min(file, default=name)
        except FormatError as caught:
            error = caught
            TEST.assertEqual(error.path, path)
        wanted = {"ls": int(bool(error)), "explain": int(bool(error)),
                  "verify": int(not tensorfmt.verify(path))}
        for words in lines:
            code, out, err = tests.run(*[{"FILE": path, "NAME": name}.get(word, word)
                                         for word in words])
            check_text(err, True)
            if words[0] != "convert":
                check_text(out)
            TEST.assertIn(code, (1, 2) if error else (0, 1, 2))
            if words[0] in wanted and "--html" not in words:  # which wants a first value of each
                TEST.assertEqual(code, wanted[words[0]], words)
            if "--json" in words and out:
                json.loads(out)
            elif "--html" in words and (out or not error or tensorfmt.detect(data)):
                tests.check_page(TEST, out)


def check_text(text, bounded=False):
    odd = ["U+%04X" % ord(c) for c in set(text) if not (c == "\n" or c.isprintable())]
    TEST.assertEqual(odd, [])
    if bounded:
        TEST.assertTrue(len(text) <= 32000 and max(map(len, text.split("\n"))) <= 2000, text[:99])


def check_values(file):
    """Assert that a part has the values of its place, of tensors that are not large."""
    for item in [item for item in file.values() if max(item.shape + (item.size,)) <= 1 << 14]:
        with suppress(ValueError):  # a FormatError, or too many empty lists
            nested = item.dequantize().tolist() if item.dtype == "qfloat" else item.tolist()
            if item.ndim and nested and item.dtype != "qfloat":
                last = item[-1]
                TEST.assertSame(last.tolist() if item.ndim > 1 else last, nested[-1])


def check_texts(file):
    """Show a file as Python does: texts are printable and bounded, no tag of the file is there."""
    for text in [repr(file)] + [repr(item) for item in list(file.values())[:9]]:
        check_text(text)
        TEST.assertTrue(len(text) <= 2000, text[:99])
    page = file._repr_html_()
    check_text(page)
    TEST.assertLessEqual(set(re.findall("<([^ >]*)", page)), TAGS)
    check_text(str(error_of(KeyError, file.__getitem__, "no.such.name")), True)


def check_saved(file, facts, crc):
    """Save a file again: what it holds stays the same, or there is a ValueError."""
    try:
        again = dumps(file, format=file.format)
    except ValueError:
        return
    copy = load(again)
    empty = [item.start for item in file.values() if not item.nbytes]
    if len(set(empty)) == len(empty):  # the order of some at one place is that of the index
        TEST.assertEqual(dumps(copy, format=file.format), again)
    if file.format != "primitiv":  # there float64 is written as float32
        TEST.assertSame(copy.metadata, file.metadata)
    if facts is not None:
        TEST.assertSame(held(copy), facts)
        TEST.assertTrue(crc % 4 or tensorfmt.verify(again))


def check_converted(file, facts, crc):
    """Convert a file to one of the formats: values stay the same, or there is a ValueError."""
    row = tests.row_of(tests.WRITABLE[crc // 16 % len(tests.WRITABLE)])
    names = [name for name, item in file.items() if tests.fits(row.name, item) and (
        row.any_attr or not isinstance(item, tensorfmt.Sparse))]
    options = {"version": row.newest} if row.newest and crc & 1 << 12 else {}
    with suppress(ValueError):
        tensorfmt.save(io.BytesIO(), dict(file), format="safetensors")
        tensorfmt.convert(file, io.BytesIO(), format="burnpack", dense=True, drop=True)
    stream = io.BytesIO()
    try:
        summary = tensorfmt.convert(file, stream, format=row.name, only=names, drop=True, **options)
    except ValueError:
        return
    renamed = dict(summary.renamed)
    if facts is not None:
        wanted = [[renamed.get(name, name)] + row[:3] for name, *row in facts if name in names]
        TEST.assertSame([row[:4] for row in held(load(stream.getvalue()))], sorted(wanted))


# -- mutants ---------------------------------------------------------------------------------------

EXTREMES = [0, 1, 2, 3, 23] + [(1 << n) + i for n in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64)
                               for i in (-1, 0, 1)]
CODED = {  # how the values of an index are written; where it begins; the bytes behind it
    "burnpack": (cbor_dumps, 10, 0), "ztensor": (cbor_dumps, 8, 8),
    "ztensor2": (cbor_dumps, 4096, 40), "burnrecord": (msgpack_dumps, 0, 0),
    "primitiv": (lambda value: msgpack_dumps(value, typed=True), 0, 0),
    "safetensors": (json_dumps, 8, 0), "mag300": (json_dumps, 44, 0)}
SIZES = {  # where the bytes of the index are counted, from the end if negative; how wide
    "ztensor": (-8, 8), "ztensor2": (-32, 8), "tensorbuffers": (-8, 4),
    "burnpack": (6, 4), "safetensors": (0, 8), "mag300": (20, 8)}
ODD = (None, True, -1, 1.0, 1e300, "", "F64", "uint8", [], {}, [0], {"a": 0})


def mutants(seed, number=SIZE):
    """Yield the mutants of a seed."""
    return (mutant for _, mutant in pairs(seed, number))


def pairs(seed, number=SIZE):
    """Yield (good file, mutant of it): all formats as often, of each small files more often."""
    draw, kinds = Random(seed), {}
    for data in tests.fuzz_files():
        one = Mutants(data)
        kinds.setdefault(one.kind, []).append(one)
    weights = {kind: [1 / (500 + len(one.data)) for one in kinds[kind]] for kind in kinds}
    for kind in draw.choices(sorted(kinds), k=number):
        one, = draw.choices(kinds[kind], weights[kind])
        yield one.data, one.make(draw, kinds[kind])


class Mutants:
    """Changes of a good file: its `parts` are (begin, end) of all tensors, fields and values."""

    def __init__(self, data):
        file, fields = load(data), list(tensorfmt.explain(data))
        self.data, self.kind = data, file.fmt.NAME
        self.is_spec = file.attrs.get("layout") == "spec"
        self.places = [field.offset for field in fields] + [len(data)]
        self.fields = [field for field in fields if field.kind == "structure"]
        self.end = self.fields[-1].offset + self.fields[-1].nbytes  # of the structure
        groups = [list(group) for _, group in itertools.groupby(
            self.fields, lambda field: field.tensor)]
        tensors = [(group[0].offset, group[-1].offset + group[-1].nbytes)
                   for group in groups if group[0].tensor is not None]
        ends = [field.offset + field.nbytes for field in self.fields]
        whole = [(field.offset, end) for field, end in zip(self.fields, ends)]
        values = [(field.offset + field.lead, end) for field, end in zip(self.fields, ends)]
        self.parts = [tensors or whole, whole, values]

    def make(self, draw, others):
        """Return a mutant; `others` of this kind give it parts."""
        out = bytearray(self.data)
        for _ in range(draw.choice((1, 1, 1, 1, 1, 2, 2, 4))):
            how = draw.choice((self.flip, self.move, self.change, self.change, self.change))
            how(out, draw, draw.choice(others))
        if draw.random() < 0.85:
            self.mend(out, len(out) - len(self.data))
        if draw.random() < 0.05:
            del out[draw.choice(self.places) + draw.choice((-1, 0, 0, 1)):]
        return bytes(out)

    def flip(self, out, draw, other):
        at = draw.choice((draw.choice(self.parts[2])[0], draw.choice(self.places)))
        at += draw.choice((0, 0, 0, 1, 2, 3))
        out[at:at + draw.choice((0, 1, 1, 1, 1, 2, 8))] = draw.choice((
            b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"", bytes([draw.randrange(256)]),
            bytes([byte ^ 1 << draw.randrange(8) for byte in out[at:at + 1]])))

    def change(self, out, draw, other):
        """Put another value where the file has one, in the same encoding or width."""
        field = draw.choice(self.fields)
        at, stop = field.offset + field.lead, field.offset + field.nbytes
        dumps, start, left = CODED.get(self.kind, (None, 0, 0))
        if dumps and start <= at < self.end - left:
            with suppress(TypeError, ValueError):  # the format has no such value
                stop = min(stop, at + len(dumps(field.value)))  # a comma may be behind it
                out[at:stop] = dumps(self.another(draw, field.value, at, other))
        else:
            width = stop - at if stop - at in (1, 2, 4, 8) else 1 << draw.randrange(4)
            at += draw.randrange(max(1, (stop - at) // width)) * width
            old = int.from_bytes(out[at:at + width], "little")
            out[at:at + width] = low_bytes(self.near(draw, old, at), width)

    def another(self, draw, old, at, other):
        """Return a value: of a list one item is another; a number, or what any field may hold."""
        if type(old) is list and old and draw.random() < 0.8:
            i = draw.randrange(len(old))
            return old[:i] + [self.another(draw, old[i], at, other)] + old[i + 1:]
        if type(old) is int and draw.random() < 0.9:
            return abs(self.near(draw, old, at)) % (1 << 64)
        return draw.choice((draw.choice(ODD), draw.choice(other.fields).value))

    def near(self, draw, old, at):
        """Return a number: about the old one; an extreme, a small one, about a place."""
        if draw.random() < 0.4:
            return old + draw.choice((0, 0, 0, 1, -1, 8, 64))
        return draw.choice((draw.choice(EXTREMES), draw.randrange(20), draw.choice(
            self.places) + draw.choice((0, 0, 1, -1, 8, -64, -at, -self.end))))

    def move(self, out, draw, other):
        """Double, delete, swap or replace tensors, fields or values."""
        ours, theirs = draw.choice(list(zip(self.parts, other.parts)))
        (a, b), (c, d) = sorted([draw.choice(ours), draw.choice(ours)])
        e, f = draw.choice(theirs)
        at, stop, part = draw.choice((
            (c, c, out[a:b]), (a, b, b""), (a, max(b, d), out[c:d] + out[b:c] + out[a:b]),
            (a, b, other.data[e:f])))
        out[at:stop] = part

    def mend(self, out, more):
        """Make sizes and the checksum agree with a longer or shorter index."""
        (size, width), stop = SIZES.get(self.kind, (0, 0)), max(0, self.end + more)
        at = size
        if size < 0:
            at += len(out)
        if more and 0 <= at <= len(out) - width:
            old = int.from_bytes(self.data[size:][:width], "little")
            out[at:at + width] = low_bytes((old + more) % (1 << 32), width)
        if self.kind in ("burnpack", "mag", "mag300"):  # data stay where they are
            out[stop:stop + max(0, more)] = bytes(max(0, -more))
        if self.kind == "mag":
            out[8:12] = bytes(4)
            crc = tensorfmt.crc32(out[:stop]) if self.is_spec else tensorfmt.crc32c(out[12:stop])
            out[8:12] = low_bytes(crc, 4)
        if self.kind == "ztensor2" and len(out) > 48:
            start, size = struct.unpack("<QQ", out[-40:-24])
            digest = tensorfmt.xxh3_64([bytes(out[start:start + size])])
            out[-24:-16] = low_bytes(digest, 8)


def low_bytes(value, nbytes):
    return (value & (1 << 8 * nbytes) - 1).to_bytes(nbytes, "little")


# -- running ---------------------------------------------------------------------------------------


def peak():
    """Return the most bytes of memory that this process ever used, or 0."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0
    return used * (1 if sys.platform == "darwin" else 1024)


def limit():
    """Limit memory and time of the next mutants, where the system can do it."""
    for name, most in ("RLIMIT_CPU", int(process_time()) + HANG), ("RLIMIT_AS", MEMORY):
        with suppress(AttributeError, ValueError, OSError):  # there is no such limit here
            kind = getattr(resource, name)
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def check(data):
    """Return None, or (key, text) of what breaks a promise; findings of one key are one kind."""
    start, before = process_time(), peak()
    try:
        check_mutant(data)
    except Exception as error:
        text = traceback.format_exc()
        places = re.findall(r'(?:tensorfmt|fuzz)\.py", line \d+', text)[-2:]
        return "%s %s" % (type(error).__name__, places), text[-5000:]
    seconds, grown = process_time() - start, peak() - before
    if seconds > SLOW:
        return "slow", "%.1f s of CPU time" % seconds
    if grown > GROWTH + 64 * len(data):
        return "memory", "%d MiB more memory" % (grown // MIB)
    return None


def run(seconds, seed, out):
    """Check the mutants of a seed, then others. The one at hand lies in a file: it may end us."""
    os.makedirs(out)  # another folder, if it is there
    end, kinds, path = time() + seconds, set(), os.path.join(out, "seed%d.bin" % seed)
    for n, data in enumerate(itertools.chain.from_iterable(map(mutants, itertools.count(seed)))):
        if n % 64 == 0:
            limit()
        if time() > end:
            break
        tests.write_file(path, data)
        fault = check(data)
        if fault and fault[0] not in kinds:
            kinds.add(fault[0])
            found = path.replace(".bin", "-%d.bin" % n)
            os.replace(path, found)
            print("%s: %s\n%s" % ((found,) + fault), flush=True)
    if os.path.exists(path):
        os.remove(path)
    print("%s mutants from seed %d on, %d kinds of findings" % (format(n, ","), seed, len(kinds)))
    return 1 if kinds or not n else 0


def main():
    parser = argparse.ArgumentParser(prog="test_tensorfmt.py fuzz", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("given", nargs="*", metavar="SECONDS SEED | FILE ...")
    parser.add_argument("--out", default="fuzz-findings", help="folder for what is found")
    args = parser.parse_args()
    numbers = [int(text) for text in args.given if text.isdigit()]
    if len(numbers) == len(args.given):
        seconds, seed = (numbers + [60, 1][len(numbers):])[:2]
        return run(seconds, seed, args.out)
    is_found = False
    for path in args.given:
        fault = check(tests.read_file(path))
        is_found = is_found or bool(fault)
        print("%s: %s" % (path, "\n".join(fault or ["nothing found"])))
    return int(is_found)


if __name__ == "__main__":
    sys.exit(main())
