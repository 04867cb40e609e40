# SPDX-License-Identifier: MIT
"""Change good files at random, use each in every way, and tell what breaks a promise.

    python3 test_tensorfmt.py fuzz [SECONDS] [SEED] [--jobs N] [--module FILE] [--out FOLDER]
    python3 test_tensorfmt.py fuzz FILE ...         check such files again

What must hold for each is check_mutant(). A seed makes 20,000 mutants, always the same
ones for the same files and the same zstd module; it is one child process, whose memory and time are
limited where the system can do it. A finding is written to the folder once of
each kind (exception and line). --module tests another tensorfmt.py. Exit code 1: one was found.
"""
import argparse
import importlib
import io
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from itertools import islice
from random import Random
from threading import Lock
from time import process_time, time

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 20000  # mutants of a seed
MIB = 1 << 20
MEMORY = 1024 * MIB  # address space of a child
GROWTH = 96 * MIB  # that one mutant may add to the most that the child ever used
SLOW = 2  # seconds of CPU time for one mutant: a finding
HANG = 20  # and here the child is ended


def find_tests(module):
    """Return test_tensorfmt, with the tensorfmt.py that is asked for."""
    sys.path.insert(0, os.path.dirname(HERE))
    if module:
        spec = util.spec_from_file_location("tensorfmt", module)
        sys.modules["tensorfmt"] = made = util.module_from_spec(spec)
        spec.loader.exec_module(made)
    return importlib.import_module("test_tensorfmt")


def mutants(tests, seed, count=SIZE):
    """Yield the mutants of a seed: all formats as often, of each its small files more often."""
    draw, kinds = Random(seed), {}
    for data in tests.fuzz_files():
        one = Mutants(tests, data)
        kinds.setdefault(one.kind, []).append(one)
    weights = {kind: [1 / (500 + one.nbytes) for one in kinds[kind]] for kind in kinds}
    for kind in draw.choices(sorted(kinds), k=count):
        yield draw.choices(kinds[kind], weights[kind])[0].make(draw, kinds[kind])


# -- what must hold ----------------------------------------------------------------------------

TAGS = set("table tr td th b /table /tr /td /th /b".split())
COMPUTED = ("layout", "encoding", "data_endianness", "checksum", "sparse_format", "nnz", "indptr",
            "indices", "coords", "aux", "id", "version", "dtype", "digest")  # of a copy: others


def held(tests, file):
    """Return what every copy of a file holds: of each tensor dtype, shape, bytes, attrs."""
    made = []
    for name in sorted(file):
        item, most = file[name], 1 << 14
        parts = item.components if isinstance(item, tests.tensorfmt.Sparse) else {"": item}
        facts = list(item.attrs.items()) + list(item.custom.items())
        made.append([name, item.dtype, item.shape, [
            (key, part.dtype, part.shape, part.unreadable or part.nbytes > most or part.tobytes())
            for key, part in parts.items()], dict([
                pair for pair in facts if pair[0] not in COMPUTED])])
    return made


def check_mutant(tests, data, lines=None):
    """Use bytes in every way, assert what must hold; return whether they are a file.

    `lines` of COMMANDS are given to our command; usually it is one, for every eighth mutant.
    """
    test, crc, facts = tests.TestCase(), tests.tensorfmt.crc32(data), None
    if lines is None:
        lines = COMMANDS[crc // 128 % len(COMMANDS):][:1] if crc // 16 % 8 == 0 else ()
    if lines:
        check_commands(tests, test, data, lines)
    source = tests.Short(data) if crc % 16 == 0 and len(data) < 1000 else data
    report = tests.tensorfmt.verify(source)
    test.assertIn("valid" if report else "INVALID", str(report))
    try:
        file = tests.load(source)
    except tests.FormatError as error:
        test.assertTrue(not report and 0 <= error.offset <= len(data), str(error))
        tests.check_refused(data, error)
        return False
    test.assertTiles(tests.tensorfmt.explain(data), len(data), True)
    try:
        facts = held(tests, file)
    except tests.FormatError as error:
        test.assertTrue(not report or [row for row in report.rows if row[:2] == ("-", "contents")],
                        "verify is content, but: %s" % error)
    if not report:
        error = tests.error_of(type(report.errors[0]), tests.load, data, verify=True)
        test.assertEqual(error.what, report.errors[0].what)
    for item in [item for item in file.values() if max(item.shape + (item.size,)) <= 1 << 14]:
        try:
            nested = item.dequantize().tolist() if item.dtype == "qfloat" else item.tolist()
            if item.ndim and nested and item.dtype != "qfloat":
                last = item[-1]
                test.assertSame(last.tolist() if item.ndim > 1 else last, nested[-1])
        except ValueError:  # a FormatError, or too many empty lists
            pass
    check_texts(tests, test, file)
    check_copies(tests, test, file, facts if report else None, crc)
    return True


COMMANDS = [text.split() for text in (
    "ls -- FILE", "ls --json -- FILE", "verify -- FILE", "verify --json -- FILE",
    "explain -- FILE", "explain --json -- FILE", "explain --html - -- FILE",
    "get --stats -- FILE NAME", "diff -- FILE FILE",
    "convert --cast float32 --dense --drop --format safetensors -- FILE -")]


def check_commands(tests, test, data, lines):
    """Give a mutant to commands: what a person reads is printable and bounded, without a trace."""
    name, error = "no.such.name", None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        tests.write_file(path, data)
        try:
            with tests.load(path) as file:
                name = min(file, default=name)
        except tests.FormatError as caught:
            error = caught
            test.assertEqual(error.path, path)
        wanted = {"ls": int(bool(error)), "explain": int(bool(error)),
                  "verify": int(not tests.tensorfmt.verify(path))}
        for words in lines:
            code, out, err = tests.run(*[{"FILE": path, "NAME": name}.get(word, word)
                                         for word in words])
            check_text(test, err, True)
            if words[0] != "convert":
                check_text(test, out)
            check_output(tests, test, words, code, out, error)
            if words[0] in wanted and "--html" not in words:  # which wants a first value of each
                test.assertEqual(code, wanted[words[0]], words)


def check_output(tests, test, words, code, out, error):
    """Assert that what is printed can be read by whom it is for, and that exit codes are right."""
    test.assertIn(code, (1, 2) if error else (0, 1, 2))
    if "--json" in words and out:
        json.loads(out)
    elif "--html" in words:
        if out:
            tests.check_page(test, out)
    elif words[0] == "explain" and not error:  # 260 bytes: 57 structure, 4 data, 199 padding
        total, _, kinds = out.rstrip().split("\n")[-1].partition(" bytes: ")
        found = [int(part.split()[0].replace(",", "")) for part in kinds.split(", ")]
        test.assertEqual(int(total.replace(",", "")), sum(found), out[-200:])


def check_text(test, text, bounded=False):
    odd = ["U+%04X" % ord(c) for c in set(text) if not (c == "\n" or c.isprintable())]
    test.assertEqual(odd, [])
    if bounded:
        test.assertTrue(len(text) <= 32000 and max(map(len, text.split("\n"))) <= 2000, text[:99])


def check_texts(tests, test, file):
    """Show a file as Python does: texts are printable and bounded, no tag of the file is there."""
    for text in [repr(file)] + [repr(item) for item in list(file.values())[:9]]:
        check_text(test, text)
        test.assertTrue(len(text) <= 2000, text[:99])
    page = file._repr_html_()
    check_text(test, page)
    test.assertLessEqual(set(re.findall("<([^ >]*)", page)), TAGS)
    check_text(test, str(tests.error_of(KeyError, file.__getitem__, "no.such.name")), True)
    try:
        tests.tensorfmt.save(io.BytesIO(), dict(file), format="safetensors")
        tests.tensorfmt.convert(file, io.BytesIO(), format="burnpack", dense=True, drop=True)
    except ValueError:
        pass


def check_copies(tests, test, file, facts, crc):
    """Save a file again, convert it: what it holds stays the same, or there is a ValueError."""
    kind, again = tests.WRITABLE[crc // 16 % len(tests.WRITABLE)], None
    try:
        again = tests.dumps(file, format=file.format)
    except ValueError:
        pass
    if again is not None:
        copy = tests.load(again)
        empty = [item.start for item in file.values() if not item.nbytes]
        if len(set(empty)) == len(empty):  # the order of some at one place is that of the index
            test.assertEqual(tests.dumps(copy, format=file.format), again)
        if file.format != "primitiv":  # there float64 is written as float32
            test.assertSame(copy.metadata, file.metadata)
        if facts is not None:
            test.assertSame([row[:5] for row in held(tests, copy)], [row[:5] for row in facts])
            test.assertTrue(crc % 4 or tests.tensorfmt.verify(again))
    row = tests.row_of(kind)
    names = [name for name, item in file.items() if tests.fits(kind, item) and (
        row.any_attr or not isinstance(item, tests.tensorfmt.Sparse))]
    stream, options = io.BytesIO(), {}
    if row.newest and crc & 1 << 12:
        options["version"] = row.newest
    try:
        summary = tests.tensorfmt.convert(file, stream, format=kind, only=names, drop=True,
                                          **options)
    except ValueError:
        return
    there, renamed = tests.load(stream.getvalue()), dict(summary.renamed)
    if facts is not None:
        test.assertSame([row[:4] for row in held(tests, there)], sorted([
            [renamed.get(row[0], row[0])] + row[1:4] for row in facts if row[0] in names]))


# -- mutants -----------------------------------------------------------------------------------

EXTREMES = [0, 1, 2, 3, 23] + [(1 << n) + i for n in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64)
                               for i in (-1, 0, 1)]
HEADS = {  # what a first byte says of the bytes of a number behind it, or of a length
    "primitiv": dict([(code, size) for first, sizes in (
        (0xCA, (4, 8, 1, 2, 4, 8, 1, 2, 4, 8)), (0xC4, (1, 2, 4)), (0xC7, (1, 2, 4)),
        (0xD9, (1, 2, 4, 2, 4, 2, 4))) for code, size in enumerate(sizes, first)])}
HEADS["burnrecord"] = HEADS["primitiv"]
HEADS["ztensor"] = HEADS["ztensor2"] = HEADS["burnpack"] = dict([
    (byte, 1 << byte % 8) for byte in range(256) if 24 <= byte & 31 < 28])
SIZES = {  # where the bytes of the index are counted, from the end if negative; how wide
    "ztensor": (-8, 8), "ztensor2": (-32, 8), "tensorbuffers": (-8, 4),
    "burnpack": (6, 4), "safetensors": (0, 8), "mag300": (20, 8)}
JSON = [text.encode() for text in 'null true -1 1.0 1e2 "" "F64" "uint8" [] {} [0] {"a":0}'.split()]


class Mutants:
    """Changes of a good file, whose fields, tokens and records are known."""

    def __init__(self, tests, data):
        tensorfmt = tests.tensorfmt
        file, fields = tensorfmt.load(data), list(tensorfmt.explain(data))
        self.data, self.kind, self.spec = data, file.fmt.NAME, file.attrs.get("layout") == "spec"
        self.crc32, self.crc32c, self.xxh3 = tensorfmt.crc32, tensorfmt.crc32c, tensorfmt.xxh3_64
        self.places = [field.offset for field in fields] + [len(data)]
        fields = [field for field in fields if field.kind == "structure"]
        self.fields = [(field.offset, field.offset + field.nbytes) for field in fields]
        self.tokens = [(field.offset + field.lead, field.nbytes - field.lead) for field in fields
                       for _ in range(3 if isinstance(field.value, int) else 1)  # rather numbers
                       if field.kind == "structure"]
        self.records, self.count, self.end, owner = [], None, self.fields[-1][1], None
        for field, (start, stop) in zip(fields, self.fields):
            if field.tensor is not None and field.tensor == owner:
                self.records[-1][1] = stop
            elif field.tensor is not None:
                self.records.append([start, stop])
            elif tests.same(field.value, len(file)) and self.count is None and (
                    field.name in ("num_tensors", "index", "tensors", "N")):  # the byte to change
                self.count = stop - 1 if self.kind == "primitiv" else start + field.lead
            owner = field.tensor
        self.nbytes = sum([stop - start for start, stop in self.fields]) + len(data) // 32
        self.coded = {"burnpack": (10, self.end), "ztensor2": (4096, len(data) - 40)}.get(
            self.kind, (8, len(data) - 8) if self.kind[:7] == "ztensor" else (
                0, len(data) if self.kind in HEADS else 0))
        self.text = {"safetensors": 8, "mag300": 44}.get(self.kind, len(data))
        if self.text < len(data):  # JSON: its words, rather its numbers
            words = [(found.start(), found.end() - found.start(), found.group()[:1].isdigit())
                     for found in re.finditer(rb'"[^"]*"|[\w.+-]+', data[:data.rindex(b"}")])
                     if found.start() > self.text]
            self.tokens = [row for row in self.tokens if row[0] < self.text] + [
                row[:2] for row in words for _ in range(5 if row[2] else 1)]
        self.size, self.width = SIZES.get(self.kind, (0, 0))

    def make(self, draw, others):
        """Return a mutant; `others` of this kind give it parts."""
        out = bytearray(self.data)
        for _ in range(draw.choice((1, 1, 1, 1, 1, 2, 2, 4))):
            draw.choice((self.flip, self.number, self.number, self.number, self.move, self.move,
                         self.splice))(out, draw, draw.choice(others))
        if draw.random() < 0.85:
            self.mend(out, len(out) - len(self.data))
        if draw.random() < 0.05:
            del out[draw.choice(self.places) + draw.choice((-1, 0, 0, 1)):]
        return bytes(out)

    def flip(self, out, draw, other):
        at = draw.choice((draw.choice(self.tokens)[0], draw.choice(self.places)))
        at += draw.choice((0, 0, 0, 1, 2, 3))
        out[at:at + draw.choice((0, 1, 1, 1, 1, 2, 8))] = draw.choice((
            b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"", bytes([draw.randrange(256)]),
            bytes([byte ^ 1 << draw.randrange(8) for byte in out[at:at + 1]])))

    def number(self, out, draw, other):
        """Put an extreme, a place or a number nearby where the file has one, in any width."""
        at, nbytes = draw.choice(self.tokens)
        head, first, order, kept = (out[at:at + 1] or b"\xc0")[0], b"", "little", 0.4
        width = nbytes if nbytes in (1, 2, 4, 8) else 1 << draw.randrange(4)
        if self.coded[0] <= at < self.coded[1]:
            sizes, order, kept = HEADS[self.kind], "big", 0.8 if head >> 5 in (2, 3, 5) else 0.4
            stop = at + 1 + sizes.get(head, 0)
            old = int.from_bytes(out[at + 1:stop], order) if head in sizes else head & 31
            alike = [byte for byte in sizes if byte >> 5 == head >> 5]
            new = draw.choice(alike if alike and draw.random() < 0.9 else list(sizes))
            if draw.random() < 0.2:
                new = head if head in sizes else head & 0xE0 | draw.randrange(32)
            first, width = bytes([new]), sizes.get(new, 0)
        elif at >= self.text:
            stop = at + nbytes
            old = int(out[at:stop]) if out[at:stop].isdigit() and nbytes < 20 else None
        else:
            at += draw.randrange(max(1, nbytes // width)) * width
            stop = at + width
            old = int.from_bytes(out[at:stop], order)
        if old is None or at >= self.text and draw.random() < 0.1:
            out[at:stop] = draw.choice(JSON)
            return
        value = old + draw.choice((0, 0, 0, 1, -1, 8, 64))
        if draw.random() > kept:
            value = draw.choice((draw.choice(EXTREMES), draw.randrange(20), draw.choice(
                self.places) + draw.choice((0, 0, 1, -1, 8, -64, -at, -self.end))))
        out[at:stop] = b"%d" % value if at >= self.text else (
            first + (value & (1 << 8 * width) - 1).to_bytes(width, order))

    def move(self, out, draw, other):
        """Double, delete, swap or replace records, fields or tokens."""
        group = draw.choice([self.records or self.fields, self.fields, [
            (at, at + nbytes) for at, nbytes in self.tokens]])
        (a, b), (c, d) = sorted([draw.choice(group), draw.choice(group)])
        part, how, at = out[a:b], draw.randrange(4), self.count
        if how == 2 and b <= c:
            out[a:d] = out[c:d] + out[b:c] + part
        else:
            out[c:(c, d, d, d)[how]] = b"" if how == 1 else part
        if how < 2 and group is self.records and at is not None and draw.random() < 0.7:
            out[at:at + 1] = bytes([(byte + 1 - 2 * how) % 256 for byte in out[at:at + 1]])

    def splice(self, out, draw, other):
        (a, b), (c, d) = draw.choice(self.fields), draw.choice(other.fields)
        whole = draw.random() < 0.4
        out[a:len(out) if whole else b] = other.data[c:len(other.data) if whole else d]

    def mend(self, out, more):
        """Make sizes and the checksum agree with a longer or shorter index."""
        stop, at = max(0, self.end + more), self.size + len(out) * (self.size < 0)
        if more and self.width and 0 <= at <= len(out) - self.width:
            size = int.from_bytes(self.data[self.size:][:self.width], "little") + more
            out[at:at + self.width] = (size % (1 << 32)).to_bytes(self.width, "little")
        if self.kind in ("burnpack", "mag", "mag300"):  # data stay where they are
            out[stop:stop + max(0, more)] = bytes(max(0, -more))
        if self.kind == "mag":
            out[8:12] = bytes(4)
            crc = self.crc32(out[:stop]) if self.spec else self.crc32c(out[12:stop])
            out[8:12] = crc.to_bytes(4, "little")
        if self.kind == "ztensor2" and len(out) > 48:
            start, size = struct.unpack("<QQ", out[-40:-24])
            out[-24:-16] = self.xxh3([bytes(out[start:start + size])]).to_bytes(8, "little")


# -- in a child --------------------------------------------------------------------------------


def peak():
    """Return the most bytes of memory that this process ever used, or 0."""
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used * (1 if sys.platform == "darwin" else 1024)


def limit(kind, most):
    try:
        import resource
        number = getattr(resource, kind)
        resource.setrlimit(number, (most, resource.getrlimit(number)[1]))
    except (ImportError, AttributeError, ValueError, OSError):  # then there is no limit
        pass


def name_fault(error, tests):
    """Return what makes two findings the same: the exception, and the lines where it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.basename(frame[0]) in ("tensorfmt.py", "test_tensorfmt.py", "fuzz.py")]
    places = ["%s:%d" % (os.path.basename(frame[0]), frame[1]) for frame in frames[-2:]]
    return " ".join([type(error).__name__] + places)


def check(tests, data):
    """Return None, or (key, text) of what breaks a promise."""
    start, before = process_time(), peak()
    try:
        check_mutant(tests, data)
    except Exception as error:
        return name_fault(error, tests), "".join(traceback.format_exception(
            type(error), error, error.__traceback__))[-5000:]
    seconds, grown = process_time() - start, peak() - before
    if seconds > SLOW:
        return "slow", "%.1f s of CPU time" % seconds
    if grown > GROWTH + 64 * len(data):
        return "memory", "%d MiB more memory" % (grown // MIB)
    return None


def run_seed(tests, seed, seconds, position, out):
    """Check the mutants of a seed; return how many, and what was found."""
    end, found, done = time() + seconds, {}, 0
    limit("RLIMIT_AS", MEMORY)
    for n, data in enumerate(mutants(tests, seed)):
        if n % 64 == 0:
            limit("RLIMIT_CPU", int(process_time()) + HANG)
            if time() > end:
                break
        struct.pack_into("<Q", position, 0, n + 1)
        fault = check(tests, data)
        if fault:
            key, text = fault
            if key not in found:
                os.makedirs(out, exist_ok=True)
                path = os.path.join(out, "%d-%d.bin" % (seed, n))
                with open(path, "wb") as stream:
                    stream.write(data)
                found[key] = [0, path, text]
            found[key][0] += 1
        done = n + 1
    return {"done": done, "found": found}


def child(args):
    tests = find_tests(args.module)
    if args.make:  # a mutant that ended its process
        data = next(islice(mutants(tests, args.child), args.make - 1, None))
        os.makedirs(args.out, exist_ok=True)
        path = os.path.join(args.out, "%d-%d.bin" % (args.child, args.make - 1))
        with open(path, "wb") as stream:
            stream.write(data)
        print(path)
        return
    with open(args.position, "r+b") as stream, mmap.mmap(stream.fileno(), 8) as position:
        print(json.dumps(run_seed(tests, args.child, args.seconds, position, args.out)))


# -- the driver --------------------------------------------------------------------------------


class Driver:
    """Runs seeds in children, one after another in each job, and counts."""

    def __init__(self, args):
        self.args, self.end, self.next = args, time() + args.seconds, args.seed
        self.done, self.found, self.lock = 0, {}, Lock()
        self.command = [sys.executable, os.path.abspath(__file__), "--out", args.out]
        self.command += ["--module", os.path.abspath(args.module)] if args.module else []

    def work(self, job):
        position = os.path.join(self.args.folder, "position%d" % job)
        while time() < self.end:
            with self.lock:
                seed, self.next = self.next, self.next + 1
            with open(position, "wb") as stream:
                stream.write(bytes(8))
            command = self.command + ["--child", str(seed), "--position", position]
            made = subprocess.run(command + ["--seconds", str(max(1, self.end - time()))],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if made.returncode == 0:
                result = json.loads(made.stdout.decode())
            else:
                result = self.ended(seed, position, made)
            with self.lock:
                self.count(result)

    def ended(self, seed, position, made):
        """Return the result of a child that was ended by a signal or by an error of its own."""
        with open(position, "rb") as stream:
            n, = struct.unpack("<Q", stream.read(8))
        text, path = made.stderr.decode(errors="replace")[-3000:], "none"
        if not n:  # it did not come to the first mutant, nor would the next one
            self.end = 0
        else:
            again = self.command + ["--child", str(seed), "--make", str(n)]
            path = subprocess.run(again, stdout=subprocess.PIPE).stdout.decode().strip()
        key = "child ended with %d: %s" % (made.returncode, text.strip().split("\n")[-1][:80])
        return {"done": n, "found": {key: [1, path, text]}}

    def count(self, result):
        self.done += result["done"]
        for key, (count, path, text) in result["found"].items():
            if key not in self.found:
                self.found[key] = [0, path]
                os.makedirs(self.args.out, exist_ok=True)
                with open(os.path.join(self.args.out, "findings.txt"), "a") as stream:
                    stream.write("%s\n%s\n%s\n" % (path, key, text))
            elif path != "none" and path != self.found[key][1]:
                os.remove(path)
            self.found[key][0] += count
        if sys.stderr.isatty() or result["found"]:
            print(self.line(), file=sys.stderr)

    def line(self):
        return "%s mutants, seeds %d to %d, %d findings" % (
            format(self.done, ","), self.args.seed, self.next - 1,
            sum([count for count, _ in self.found.values()]))

    def run(self):
        with ThreadPoolExecutor(self.args.jobs) as pool:
            for future in [pool.submit(self.work, job) for job in range(self.args.jobs)]:
                future.result()
        for key, (count, path) in self.found.items():
            print("%d times %s, such as %s" % (count, key, path))
        if self.found:
            print("their tracebacks: %s; again: python3 test_tensorfmt.py fuzz %s" % (
                os.path.join(self.args.out, "findings.txt"), list(self.found.values())[0][1]))
        print(self.line())
        return 1 if self.found else 0


def check_files(args, paths):
    tests, faults = find_tests(args.module), 0
    for path in paths:
        with open(path, "rb") as stream:
            fault = check(tests, stream.read())
        print("%s: %s" % (path, "\n".join(fault) if fault else "nothing found"))
        faults += bool(fault)
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(prog="test_tensorfmt.py fuzz", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("given", nargs="*", metavar="SECONDS SEED | FILE ...")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--module", help="another tensorfmt.py")
    parser.add_argument("--out", default="fuzz-findings", help="folder for what is found")
    for name, kind in (("child", int), ("make", int), ("position", str), ("seconds", float)):
        parser.add_argument("--" + name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args)
    if [text for text in args.given if not text.isdigit()]:
        return check_files(args, args.given)
    numbers = [int(text) for text in args.given] + [60, 1][len(args.given):]
    args.seconds, args.seed = numbers[:2]
    with tempfile.TemporaryDirectory() as args.folder:
        return Driver(args).run()


if __name__ == "__main__":
    sys.exit(main())
