# SPDX-License-Identifier: MIT
"""Tests of tensorfmt.py: `python3 test_tensorfmt.py`; nothing needs to be installed.

Vectors are rows, run in both directions; files of the formats' real writers stand below as one
compressed text; bad files are rows of a builder and what it damages. More is in the folder .ci and
runs with the rest: shell.py tests commands, terminals, pages; texts.py compares what people read
(errors, explain, commands, help) with the texts in .ci/accepted, which `--accept` writes anew;
peers.py compares with libraries that read or write the same bytes, tiny.py with the readers of a
page; variants.py has more files, good and bad; fuzz.py knows what must hold for every file,
promises.py what must hold for two files, changed bytes, other ways to read. Without .ci these are
skipped by name.

    [1] platform           what this Python has; helpers
    [1b] formats           one row for each: what it holds, options, limits
    [2] goldens            small files of the real writers, and what they hold
    [3] codecs             CBOR, MessagePack, FlatBuffers, JSON, CRC-32C, zstd frames
                           CodecTest, FlatBuffersTest
    [4] reading            goldens from every source; pickling; streams, pipes, workers
                           GoldenTest, TinyTest, StreamTest, PickleTest, FileTest, SourceTest
    [5] round trips        every format x dtype x shape x byte order, bit by bit
                           SingleTest, RoundTripTest
    [6] Tensor             indexing, casts, views, other libraries' protocols
                           IndexTest, MakeTest, ShownTest, TensorTest, CastTest, Float8Test
    [7] sparse and quantized   components, schemes, what they mean
                           SparseTest, QuantizedTest
    [8] save               atomic, refusals, metadata, attrs, options
                           RefusalTest, LimitTest, SaveTest, AtomicTest, AccessTest, TargetTest,
                           OwnSourceTest
    [8b] single formats    what only one format, or later generation, has
                           MagTest, Mag300Test, ZTensor2Test, SeekableTest, ShardTest, RecordTest
    [9] convert            goldens into every format and back; nothing silent
                           ConvertTest, NamesTest, LossTest, UnknownTest
    [10] bad files         rows of error, field and offset; every truncation, changed bytes
                           BadFileTest
    [10b] many tensors     checksums and bytes that are copied; memory
                           ManyTensorsTest
    [10c] hostile bytes    small files that ask for much memory or time
                           HostileTest
    [10d] fuzzing          mutants of good files; the corpus for others
                           FuzzTest, CorpusTest
    [11] explain, verify   fields, their meanings, the checks and what they say
                           ExplainTest, VerifyTest, NoteTest, ChecksumTest, TwoLayoutsTest
    [12] the file itself   contents, imports, sections that can be cut out, docstrings
                           ModuleTest, LayersTest
    [13] copies            what `tensorfmt vendor` writes
                           CopyTest
    [14] README            every example is run, of it and of .docs
                           ReadmeTest
    [15] trust             what a file must not do to who looks at it
                           TrustTest
    [15b] work             what is decoded and written of a file
                           WorkTest
    [15c] get              the same of what `get` prints
                           GetTest
    [16] small work        work and names that grow with the file only
                           SmallWorkTest
    [16b] equality         what `==` and diff() say of values, types, other ways to store them
                           SameTest, DiffTest
    [16c] other copies     two copies of the module in one process
                           OtherCopyTest
    [16d] departures       where files are not as their specifications say
                           DeparturesTest
    [17] the command       which tests run, what is printed of those that fail
                           RunnerTest

`python3 test_tensorfmt.py --format NAME` runs what concerns one format: its files, bad files,
truncations and mutants, codecs, conversions into it and out of it, what is said of it, copies;
not the accepted texts, which name all formats: `python3 test_tensorfmt.py TextsTest`.
`python3 test_tensorfmt.py bench` measures speed beside other libraries, see .ci/bench.py;
`python3 test_tensorfmt.py fuzz [SECONDS] [SEED]` makes mutants of good files, see .ci/fuzz.py;
`python3 test_tensorfmt.py corpus FOLDER` writes the good and the bad files with a manifest.
"""
# -- [1] platform --------------------------------------------------------------------------------

import builtins
import gc
import gzip
import io
import json
import os
import pickle
import re
import runpy
import struct
import sys
import unittest
import warnings
from array import array
from ast import literal_eval
from base64 import b64decode
from collections import namedtuple
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import copy, deepcopy
from errno import EISDIR
from fractions import Fraction
from functools import lru_cache, reduce
from hashlib import sha256
from inspect import cleandoc
from operator import eq, getitem, mul
from pathlib import Path
from random import Random
from shutil import rmtree
from struct import pack, unpack
from tempfile import mkdtemp
from textwrap import dedent
from unittest import mock
from zlib import decompress

PYPY, PYTHON = sys.implementation.name == "pypy", sys.version_info[:2]
USUAL = not PYPY and sys.byteorder == "little" and not [  # else some take long
    1 for flag in ("optimize", "isolated", "dev_mode") if getattr(sys.flags, flag, 0)]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)  # it is not there under -I
PYTHON3 = [sys.executable, "-S"]  # what processes run; what site imports takes the longest

import tensorfmt
from tensorfmt import (
    Cast, cbor_dumps, cbor_loads, convert, crc32, crc32c, detect, diff, dumps, explain, find_format,
    flat_loads, FormatError, load, Map, msgpack_dumps, msgpack_loads, save, Simple, tensor,
    Unsupported, verify)

BESIDE = bool(os.environ.get("TENSORFMT_BESIDE"))  # a leg of .ci/run runs all beside us
little = unittest.skipUnless(sys.byteorder == "little", "no byte order changes it; emulated, it "
                             "takes long")
documented = unittest.skipUnless(getattr(tensorfmt, "__doc__", None), "needs docstrings")
tells_ends = unittest.skipIf(PYTHON < (3, 8), "ast does not tell where statements end")
on_posix = unittest.skipIf(os.name == "nt", "Windows has no modes, links, limits of files")
as_root = unittest.skipUnless(getattr(os, "geteuid", os.getpid)() == 0, "root may do this alone")
INF = float("inf")
NAN = float("nan")
DTYPES = tuple(sorted(tensorfmt.ITEMSIZE))
WIDER = tuple([dtype for dtype in DTYPES if dtype[:6] != "float8"])


def unhex(text):
    """Return the bytes of hex digits; blanks and line ends between them do not count."""
    return bytes.fromhex("".join(text.split()))


def value_of(word):
    """Return what a word is as Python writes it; 1e999 is INF; the word itself, if it is none."""
    try:
        return literal_eval(word)
    except (SyntaxError, ValueError):
        return word


def read_table(text):
    """Return rows of a text: a line of names, then values, two blanks or more between them."""
    head, *lines = text.strip().splitlines()
    row_type = namedtuple("TableRow", head.split())
    rows = []
    for line in lines:
        words = re.split("  +", line.strip())
        rows.append(row_type(*map(value_of, words)))
    return rows


def count_of(shape):
    return reduce(mul, shape, 1)


def tohex(data):
    return bytes(data).hex()


def same(a, b):
    """Tell whether two values are equal, 1, 1.0 and True different, NaN equal to itself."""
    a, b = [bytes(x) if isinstance(x, (memoryview, bytearray)) else x for x in (a, b)]
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and not [
            1 for x, y in zip(a, b) if not same(x, y)]
    if hasattr(a, "items"):
        return hasattr(b, "items") and len(a) == len(b) and (not [
            1 for key in a if key not in b or not same(a[key], b[key])]
            or same(sorted(a.items(), key=repr), sorted(b.items(), key=repr)))  # a key may be NaN
    return type(a) is type(b) and (a == b or (a != a and b != b)) and repr(a) == repr(b)


def error_of(wanted, call, *args, **options):
    """Return the exception of exactly this class that a call raises; fail if there is none."""
    try:
        got = call(*args, **options)
    except Exception as error:
        kind = type(error)
        if kind.__name__ in ("Unfit", "Refusal"):  # ValueErrors that say more, of a copy as well
            kind = ValueError
        if kind is wanted:
            return error.with_traceback(None)  # whose frames would keep what was opened
        raise
    raise AssertionError("no %s, but %.200r" % (wanted.__name__, got))


def saved(value, format="ztensor", **options):
    """Return a file of one tensor, `w`."""
    return dumps({"w": value}, format=format, **options)


def reloaded(value, format="ztensor", **options):
    """Return a tensor as it comes back from a file."""
    return load(saved(value, format, **options))["w"]


try:
    ZSTD = bool(tensorfmt.zstd_module())
except Unsupported:
    ZSTD = False

with_zstd = unittest.skipUnless(ZSTD, "no module for zstd")


def failed(data, **options):
    """Return (check, tensor) of each error that verify finds."""
    return [(error.check, error.tensor) for error in verify(data, **options).errors]


def rotten(data, name, at=0):
    """Return a file in which a bit of a tensor's data is another."""
    bad = bytearray(data)
    bad[load(data)[name].offset + at] ^= 1
    return bytes(bad)


def make_bytes(nbytes, seed=1):
    """Return bytes that look random, the same on every Python."""
    out = bytearray(nbytes)
    for i in range(nbytes):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        out[i] = seed >> 16 & 255
    return bytes(out)


ACCEPT = False  # write the accepted texts of .ci/texts.py anew: `--accept`, see the end


def about(*topics):
    """Mark a test, or a class of tests, with the formats and codecs that it is about.

    With `--format NAME` it runs if one of them is chosen(). What is not marked runs, too: it loops
    over rows, goldens, bad files or mutants, of which only those of the format are left.
    """
    def mark(test):
        test.about = topics
        return test
    return mark


KEYS = type("Keys", (), {"__getitem__": lambda self, key: key})()  # KEYS[1:, ...] is the index


def folder_for(test):
    """Return a temporary folder that goes away with the test; on a board, where we are."""
    folder = os.path.realpath(mkdtemp(prefix="tensorfmt-test-"))
    test.addCleanup(rmtree, folder)
    return folder


def go_to(test, folder):
    """Be in a folder until the end of the test."""
    test.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder)


def write_file(path, data):
    with open(path, "wb") as stream:
        stream.write(data)


def path_of(test, *names):
    """Return the path of what is beside this file; who took only this file may lack it."""
    path = os.path.join(HERE, *names)
    if not os.path.exists(path):
        test.skipTest("no " + "/".join(names))
    return path


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def environment(**more):
    """Return that of a process that finds tensorfmt, compiled once, and what we found there."""
    if PYTHON > (3, 7) and "PYTHONPYCACHEPREFIX" not in os.environ:
        import atexit
        os.environ.update(PYTHONPYCACHEPREFIX=mkdtemp(prefix="tensorfmt-test-"),
                          PYTHONDONTWRITEBYTECODE="")
        atexit.register(rmtree, os.environ["PYTHONPYCACHEPREFIX"], True)
    return dict(os.environ, PYTHONPATH=os.pathsep.join([HERE] + [
        text for text in [os.environ.get("PYTHONPATH")] if text]), **more)


def run(*args):
    """Return (exit code, stdout, stderr) of our command; of a process or shell line: python3 ..."""
    if not args or not args[0].startswith("python3"):
        out, err = io.BytesIO(), io.StringIO()
        stream = io.TextIOWrapper(out, encoding="utf-8", newline="\n")
        with redirect_stdout(stream), redirect_stderr(err), Changed(
                sys, "__stdout__", stream), Changed(sys, "argv", ["tensorfmt.py"]):
            try:  # __stdout__: not a terminal, whatever ours is
                code = tensorfmt.main(list(args))
            except SystemExit as stop:
                code = stop.code
        stream.flush()
        return code, out.getvalue().decode("utf-8", "surrogateescape"), err.getvalue()
    from subprocess import PIPE, Popen
    process = Popen(
        PYTHON3 + list(args[1:]) if len(args) > 1 else
        args[0].replace("python3", " ".join(['"%s"' % word for word in PYTHON3])),
        shell=len(args) == 1, stdout=PIPE, stderr=PIPE, env=environment(
            PYTHONIOENCODING="utf-8", COLUMNS="80", PYTHON_COLORS="0"))
    out, err = process.communicate()
    return process.returncode, out.decode().replace("\r\n", "\n"), err.decode()


Changed = mock.patch.object  # `with Changed(owner, name, value):` for the time of the block


def calls_of(owner, name, call, *args, **options):
    """Return how often a call calls a method or a function."""
    with Changed(owner, name, wraps=getattr(owner, name)) as seen:
        call(*args, **options)
    return seen.call_count


def ratio(a, b):
    """Return an exact quotient that "%d" can show (PyPy wants __int__ for that)."""
    return type("Ratio", (Fraction,), {"__int__": Fraction.__trunc__})(a, b)


def in_threads(call, count=6):
    """Run call(number) in threads that switch often; raise what one of them raises."""
    from concurrent.futures import ThreadPoolExecutor
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(call, range(count)))
    finally:
        sys.setswitchinterval(usual)


def raise_at(number, error, call, hook, events, is_inside):
    """Raise an error at one event inside of some frames; return what came, if it was reached."""
    left, usual = [number], sys.getprofile() if hook is sys.setprofile else sys.gettrace()

    def step(frame, event, arg):
        if not is_inside(frame):
            return None
        if "opcode" in events:
            frame.f_trace_opcodes = True
        left[0] -= event in events
        if event in events and not left[0]:
            raise error
        return step
    hook(step)
    try:
        call()
    except (OSError, KeyboardInterrupt) as caught:
        caught.__context__ = None  # frames, which keep what was opened
        return caught.with_traceback(None), left[0] <= 0
    finally:
        hook(usual)
    return None, left[0] <= 0


def in_fork(call):
    """Return what a call returns or raises in a forked process, as text; "" if it hangs."""
    import signal
    ready, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads
        child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            try:
                text = repr(call())
            except Exception as error:
                text = "%s: %s" % (type(error).__name__, error)
            os.write(tell, text.encode())
        finally:
            os._exit(0)
    os.close(tell)
    with open(ready, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


@contextmanager
def moved_by_fork(stream):
    """A forked process sets the position of a stream to 0 all the time."""
    import signal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads
        child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)
        while True:
            os.lseek(stream.fileno(), 0, os.SEEK_SET)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class Short(io.BytesIO):
    """A stream that reads and writes at most 7 bytes at a time."""

    def read(self, n=-1):
        return super().read(7 if n is None or n < 0 or n > 7 else n)

    def write(self, data):
        return super().write(bytes(data[:7]))


def descriptors_of(path):
    """Return how many descriptors of a file this process has; 0 where nobody can tell."""
    links = []
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        try:
            links.append(os.readlink("/proc/self/fd/" + name))
        except OSError:  # closed by another thread since it was listed
            pass
    return links.count(os.path.realpath(path))


def keep_in_worker(item):
    """Keep a tensor in this process; return (process, value, sources, descriptors of its file)."""
    kept = tensorfmt.__dict__.setdefault("kept_by_tests", {})
    sources = kept.setdefault(item.source.path, [])
    sources.append((item, item[0]))
    return (os.getpid(), sources[-1][1], len(set([id(row[0].source) for row in sources])),
            descriptors_of(item.source.path))


INHERITED = {}  # tensors that forked processes find


def value_inherited(name):
    return INHERITED[name][0]


def check_workers(test, count, found):
    """Assert what keep_in_worker() returned for tensors that begin with 0, 1, 2 and so on."""
    test.assertEqual([row[1] for row in found], list(range(count)))
    test.assertTrue(len(set([row[0] for row in found]) - {os.getpid()}) in (1, 2))
    test.assertEqual(set([row[2] for row in found]), {1})
    test.assertTrue(max([row[3] for row in found]) <= 4)  # two of a fork's parent


class TestCase(unittest.TestCase):
    maxDiff = 4000

    def assertSame(self, got, wanted, note=None):
        if not same(got, wanted):
            self.assertEqual(got, wanted, note)
            raise AssertionError("%r is not quite %r (%s)" % (got, wanted, note))

    def raises(self, error_class, words, call, *args, **options):
        """Assert that a call raises exactly this error, with these words in it; return it."""
        error = error_of(error_class, call, *args, **options)
        self.assertIn(words, str(error))
        return error

    def refuses(self, parts, call, *args, **options):
        """Assert that a call is refused with a ValueError (no FormatError) that says all parts."""
        text = str(error_of(ValueError, call, *args, **options))
        for part in parts:
            self.assertIn(part, text)
        return text

    def assertTiles(self, fields, nbytes, shared=False):
        """Assert that fields leave no gap and do not overlap, but data where they are `shared`."""
        at = 0
        for field in fields:
            is_data = field.kind == "data" or (  # or the one that is cut
                field.kind == "fault" and field.name.startswith("data "))
            if not (shared and is_data and field.offset < at):
                self.assertEqual(field.offset, at, repr(field))
            at = max(at, field.offset + field.nbytes)
        self.assertEqual(at, nbytes)


class FolderCase(TestCase):
    def setUp(self):
        self.folder = folder_for(self)
        self.path = self.at("m.zt")

    def at(self, *names):
        return os.path.join(self.folder, *names)


# -- [1b] formats --------------------------------------------------------------------------------


class Row:
    """What the tests know of a format, beside its goldens [2], refusals [8] and bad files [10].

    To add a format, add a row, goldens, a call of refuse(), a table of BAD_FILES and a reader in
    .docs/read-it-yourself.md (.ci/tiny.py), then `--accept`. Every list and every limit
    comes from here. `--format NAME` tests it alone, but for README, the form of the text and what
    names all formats: run all in the end.

    dtypes        that it holds, as its document lists them; none: it is only read
    more_dtypes   that only files of its family hold
    rank          the largest
    names         the only names of tensors that it holds; None: all that holds_name() takes.
                  A format of one tensor without a name has one here: `names=("array",)`
    empty         it holds dimensions of 0
    index         load reads an index, no tensors
    sorted_index  by name; None: by something else
    sorted_data   by name
    any_attr      attrs of a tensor are custom fields
    options       of save: every dtype and shape is tested with each
    codecs        that it needs, also of a later generation: their tests are its tests
    newest        version= of its later generation
    later         its later generations: (name, how a file begins)
    limits        of one tensor: (dtype and shape that fit, dtype and shape that are too large)
    metadata      what comes back as it was saved
    """

    dtypes = more_dtypes = ()
    rank = 70  # more than any test has
    names = None
    empty = True
    index = True
    sorted_index = sorted_data = False
    any_attr = False
    options = ({},)
    codecs = ()
    newest = None
    later = ()
    limits = ()
    metadata = ()

    def __init__(self, name, **facts):
        self.name = name
        for key, value in facts.items():
            setattr(self, key, value)

    def holds_name(self, name):
        return True

    def holds(self, dtype, shape):
        if dtype not in self.dtypes or len(shape) > self.rank:
            return False
        return self.empty or 0 not in shape


def is_mag_name(name):
    return name != "" and "\0" not in name


def has_no_dot(name):
    return "." not in name


EMPTY_UP_TO_64_BITS = [  # a dimension that fits, and one that is too large
    (("int8", ((1 << 64) - 1, 0)), ("int8", (1 << 64, 0))),
]
MAG_METADATA = {
    "a": 0,
    "b": (1 << 64) - 1,
    "c": -(1 << 63),
    "d": 0.5,
    "e": NAN,
    "f" * 65535: 1,
}
ZTENSOR_OPTIONS = [
    {},
    {"data_endianness": "big", "checksum": "crc32c"},
    {"checksum": "sha256"},
]
if ZSTD:
    ZTENSOR_OPTIONS.append({"encoding": "zstd"})
    ZTENSOR_OPTIONS.append({"encoding": "zstd", "level": 19, "checksum": "crc32c"})

ROWS = [
    Row("mag",
        dtypes=("bool", "float16", "float32", "int32"),
        rank=6,
        holds_name=is_mag_name,
        codecs=("crc32c", "json"),
        newest="300",
        later=[("mag300", b"MAG!\x2c\1\0\0")],
        limits=[(("bool", ((1 << 63) - 1, 0)), ("bool", (1 << 63, 0)))],
        metadata=[MAG_METADATA]),
    Row("ztensor",
        dtypes=WIDER,
        any_attr=True,
        options=ZTENSOR_OPTIONS,
        codecs=("cbor", "crc32c", "zstd"),
        newest="2",
        later=[("ztensor2", b"\x89ZT2\r\n\x1a\n")],
        limits=EMPTY_UP_TO_64_BITS,
        metadata=[{}]),
    Row("primitiv",
        dtypes=("float32",),
        rank=8,
        holds_name=has_no_dot,
        empty=False,
        index=False,
        sorted_index=True,
        sorted_data=True,
        codecs=("msgpack",),
        limits=[(("float32", ((1 << 30) - 1,)), ("float32", (1 << 30,)))],
        metadata=[{}]),
    Row("burnpack",
        dtypes=WIDER,
        more_dtypes=("qfloat",),
        sorted_index=True,
        codecs=("cbor",),
        limits=EMPTY_UP_TO_64_BITS,
        metadata=[{"a": "", "\u00e9": "x\0y"}]),
    Row("tensorbuffers",
        dtypes=("float32", "float64", "int16", "int32", "int64", "int8",
                "uint16", "uint32", "uint64", "uint8"),
        rank=64,
        sorted_index=None,  # by hashes of names
        options=({}, {"sort": False, "operations": False}),
        codecs=("flat",),
        limits=[
            (("int8", ((1 << 32) - 1, 0)), ("int8", (1 << 32, 0))),
            (("int16", ((1 << 31) - 1,)), ("int16", (1 << 31,))),
        ],
        metadata=[{"model": ""}, {"model": "m"}]),
    Row("safetensors",
        dtypes=DTYPES,
        sorted_index=True,
        sorted_data=True,
        codecs=("json",),
        later=[("shards", b'{"weight_map":{')],
        limits=EMPTY_UP_TO_64_BITS,
        metadata=[{"a": "", "\u00e9": "x\0\u2028\"\\\n"}]),
    Row("burnrecord",
        more_dtypes=("qfloat",),
        codecs=("msgpack",)),
]
EVERY = ROWS
ONLY = None  # the one format that is tested, if not all are: `--format NAME`
if __name__ == "__main__" and "--format" in sys.argv[1:-1]:
    ONLY = sys.argv.pop(sys.argv.index("--format") + 1)
    sys.argv.remove("--format")
    ROWS = [row for row in EVERY if row.name == ONLY]
    if not ROWS:
        sys.exit("--format takes one of " + ", ".join([row.name for row in EVERY]))


def names_of(rows):
    return tuple([row.name for row in rows])


def holds_several(row):
    """Tell whether tensors of any number are saved in this format."""
    return bool(row.dtypes) and row.names is None


WRITABLE = names_of(filter(holds_several, EVERY))
# Of the formats that are tested:
READ = names_of(ROWS)
SAVED = [row for row in ROWS if row.dtypes]
WRITES = list(filter(holds_several, ROWS))  # that are written; tests save several tensors
FORMATS = names_of(WRITES)
SINGLE = [row for row in SAVED if row.names]  # what they hold is tested one by one: SingleTest
LATER = sorted(set([name for row in ROWS for name, _ in row.later]))
STORED = [(row.name, options) for row in WRITES for options in row.options]


def row_of(name):
    for row in EVERY:
        if row.name == name:
            return row
    raise KeyError("no Row of %r in ROWS [1b]" % name)


def chosen(*topics):
    """Tell whether one of these formats and codecs is tested."""
    if not ONLY:
        return True
    tested = (ONLY,) + row_of(ONLY).codecs
    return not set(topics).isdisjoint(tested)


def parsers_kept():
    """Let many commands of a `with` block use one parser; it is slow to make."""
    return Changed(tensorfmt, "make_parser", lru_cache()(tensorfmt.make_parser))


def of_chosen(rows, column=1, also=()):
    """Return the rows whose files, in a column, are of a format that is tested, or of `also`."""
    if not ONLY:
        return list(rows)
    return [row for row in rows if detect(row[column]) in (ONLY,) + also]


# -- [2] goldens ---------------------------------------------------------------------------------

Golden = namedtuple("Golden", "format title data tensors")
Value = namedtuple("Value", "dtype shape hex")  # row-major little-endian bytes in hex
ALL_FILES = []  # a Golden each
AGAIN = {}  # by title: the options with which a golden is saved again byte for byte


def read_values(text):
    """Return {name: Value} of a text with a line for each: name, dtype, shape, bytes in hex."""
    values = {}
    for line in text.strip().splitlines():
        name, dtype, shape, *words = line.split()
        shape = tuple(json.loads(shape))
        digits = "".join(words)
        if digits == "zeros":  # too many to stand here
            digits = "00" * tensorfmt.ITEMSIZE[dtype] * count_of(shape)
        values[name] = Value(dtype, shape, digits)
    return values


def add_golden(format, title, writer, packed, tensors="", same=True, **options):
    """Take in a file of another writer: its bytes by zlib and base64, and its read_values().

    With the options it is saved again byte for byte, or not at all the `same`: layout of 0.1.2,
    zstd, packed, the old name of bool, a foreign builder.
    """
    if format not in names_of(EVERY):
        return
    data = decompress(b64decode(packed))
    ALL_FILES.append(Golden(format, title, data, read_values(tensors)))
    if same and row_of(format).dtypes:
        AGAIN[title] = options


add_golden("mag", "seed_basic.mag", "hand-made", """
    eNrzdXRXZGRgYHggahjPBKRBGAZYoTRIPg8hweUAYhdkgoQrmBlIBDwMSKYiMSthFjARaRCzAJThwMhACWiw
    B5kBRA7k6GaEuhgUDn/+//9Pqn4Aqw4K9Q==
""", """
    x  float32  [3]    0000803f 00000040 00004040
    y  int32    [2,2]  01000000 02000000 03000000 fcffffff
""")
add_golden("mag", "m012_mixed.mag", "magnetron 0.1.2 (PyPI wheel)", """
    eNrzdXRXZGRgYLh2tb6MCUiDMAMSzcDA5QBiF2SCVLFCxUDsPBDJDBU4AKWZkRRUMAM1sjAgiWAxHyRc+Z98
    wMDQYA80wgGIHMjRzwh1C8jhf8jQDwBmE6rf
""", """
    x  float32  [3]    0000803f 00000040 00004040
    y  int32    [2,2]  01000000 02000000 03000000 fcffffff
""", same=False)
add_golden("mag", "m012_dtypes.mag", "magnetron 0.1.2 (PyPI wheel)", """
    eNrzdXRXZGRgYNhsLqTJwoAAjEwMDGxQ9gEozQSlmZHoNEMzJqB+Vrg+CAXjg4xMys/PAYnDjHdgRMjBjTE2
    YmZGCDUwotrIiMUFmcZG////Z7BgOPC/Gihfw8DwnwzAyMDISJZGKICG0H6gm+tBriRHP5RZD/I4efYPHAAA
    JbPmjQ==
""", """
    f16   float16  [2,3]    0038 00c0 ff7b 0100 007c 0000
    bool  bool     [5]      0100010100
    f32   float32  [4]      00000000 0000c0bf 0000807f 01000000
    i32   int32    [2,1,2]  00000000 ffffffff ffffff7f 00000080
""", same=False)
add_golden("mag", "m012_meta_only.mag", "magnetron 0.1.2 (PyPI wheel)", """
    eNrzdXRXZGRgYPAPmB8BpBj4GCCAiQEGPtQzA8nMvDSQ0H8weF/PAmRnlKangsQkdF1CfityOoDYBZmMcFX/
    69lBGs1M4nMTK0CSjFATQZpLMvMqQXwtqBgbED+d0Pu0sxdh8w+wzXmJeUiO+Q8yMy81PR7oIEYkMwWAOCk/
    Pyc+sRgoVRJfUlSaysiAACA7q1KL8pHEGuDOy8xDNgpkaX5eKpJH/nMC2UBVpcXxQAkmJCM4oK4BGc1AZwAA
    GKdFcQ==
""", same=False)
add_golden("ztensor", "py_0.1.0_scalar.zt", "ztensor 0.1.0 (PyPI wheel)", """
    eNqdzbENwkAMBVAiMQRjHGQAaGhTUdGAFX8nJx12hB2hpMtkZDNomIC3wLtezk1Kab/523pc3qz0ALmYiCN2
    J/Y8YwuOaUAnxSjqgxSabAww1AHvacBS9dDWOGvXPullTEE3KGdShbuUHFHwuf+mL0h2Kp8=
""", """
    s  float32  [1]  0000c03f
""")
add_golden("ztensor", "custom_fields.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)", """
    eNql0LFKBEEMBuBZuQe4UrERa4tVGzsFsVGwsrI5MpvM7Mhcssxkkbtq1dcSFHwmBatx8dZaxL9J8yd85Pbm
    4rqu60Pzrwynxuy9jvPqz6vVUB5fkGFJAE6cy6TbZ5jDmuaEuurIuyigx0cuwkp6JSTORLmFjh5mLXEjGNg3
    Ce4FQWFBjAGYKWcXg2okB722kvzl23PyY98Gv1umoI1iz02ZI4Zlfqq2dqoDz6LtePKDcgORPmsTNEFgsJHe
    79aUZNFJYN0vk9v+uIdv92zjpn7snPyuLmX6xBcRRnOK
""", """
    a  float32  [4]  00000000 0000803f 000020c0 0000804b
    b  uint8    [4]  000180ff
""")
add_golden("ztensor", "custom_nested.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)", """
    eNqdzr0OAUEUhuFhE71OaFzCakRHIlqVSiPf2TnDxDq7MSPYQuISlHQSDXegUrgipZD4SVyBp3jrt9/rdMMw
    rKk/naLNLWisL1owYYhJjHHsSy3tbMYF1n6ZMlvxtbqJsUxmnjWLY3YjpLwORixRoq0MoynmiYbHgEVbiLBz
    Jrbex4z+faWA+1PRp20F2mNcef1Qlh2AKoHKKldMiSgffWBB1+Ojed5+7V773+4bXO1M7Q==
""", """
    n  int16  [3]  aa63 91f1 0338
""")
add_golden("ztensor", "zero_scalar_raw.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)", """
    eNqLCnH1MzAwMGQgE1xt2PW34GnAanL1r2egDLTsT8lLzE1NLE7LT0srTi2RcEgpzqxK5UhNKaksSE1Py8lP
    LDEzSctJrMwvLUlNSc0rTk0tzkgsSG3ISM1Lzk/JzEtPLkosz09JLEmMT81LyUzMy0stLk7LySwpyUn9DzW9
    CmZ6A9h0BojpqZl5JYZmWMxuYmAnxfQSVNMZoaaXAo23IOjyjOSM1OTs4tLcwuSiZGOjZCuDCkdXI1MXRxdj
    mPmVMPMPILs+JSk/Pweb45kYCFlgAAX/6xghsQAAvI2hbQ==
""", """
    s  float64  []     d580bafd70e550ab
    z  int16    [0,7]
    t  uint8    []     af
    y  bool     [2,0]
""")
add_golden("ztensor", "mixed.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)", """
    eNqLCnH1MzAwMGQgE3hOCHix58uzB2dquneTo//Ok9TIhKU7Ptqa+h2XvNybSqp+ja36fxkiHBkZpG4nzE/9
    OOPkPalXj+aGFysYMS21y53ovuaZ7XWN1hnin05c5XTwtX5njaZ/swT3mrln8hzY+Z/5GraS7n5GKGBo25+S
    l5ibmpyUmZ6Wn5ZWnFoi4ZBSnFmVypOaUlJZkJqelpOfWGJslJaTWJlfWpKakppXnJpanJFYkNrInJGal5yf
    kpmXnlyUWJ6fkliSGJ+al5KZmJeXWlwMMvI/xPS0nMySkpxUmAUNYAsECFrQzMTIhNcKqLlQWxKrYBYcAFsg
    YQixITUzr8TMBJsHWOGmp1QVl6TAzEmGmiPJyAA2iA9iTlop0CBDM2wGsRPjzIzkjNTk7OLS3MLkomRjo2Qr
    gwpXCwtLA0sjC5jNqXCbIZHAgBxGWP3QzMTATEIYpeQkFpegWcIJsSQlKT8/B5vnOFHMT8nLL0lNrPhvyQRJ
    SQCnLhMG
""", """
    big     float32  [3]      e8509049 e0e6f4bc bb8b7ccc
    little  float32  [2,1,2]  dce46559 60a5b8f1 3d354ec7 19d38d65
    z       int64    [5]      1adb609f65f198c9 de1aeae29d577320 3202a53e6d9147ac \
                              e63dd728859817f2 c8d509404d3bee3b
    c       uint16   [7]      b318 0bac 9dcc 6e40 070f e64d 3185
    e       float64  [2,0,3]
    last    bool     [9]      010101010101010100
""", same=False)
add_golden("ztensor", "zstd_64k_zeros.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)", """
    eNqLCnH1MzAwMGQgE2hs1f/LEBHKwCDAwMDI8LteNoGxcX9KXmJuampValF+cVp+WlpxaomEQ0pxZlWqcGpK
    SWVBanpaTn5iibFRWk5iZX5pSWpKal5xampxRmJBaqOkA0NGal5yfkpmXnpKVXFJSkZyRmpydnFpbmFyUbKx
    UbKVQYWziaGxs7m5yf9sqCsALvYwWw==
""", """
    zeros  float32  [16384]  zeros
""", same=False)
add_golden("primitiv", "shape_batch5.primitiv", "primitiv db14ca4 (its MessagePack writer)", """
    eNo7xwAE54CYEUQwTAKRTCCCGUSwAgBgagVy
""")
add_golden("primitiv", "tensor_2x3_batch2.primitiv",
           "primitiv db14ca4 (its MessagePack writer)", """
    eNo7xwAE54CYEUgwMkwCMZlABDOYdcSAgcHAkYFhBRA7APEGIA4A4h1AfM+JgeETED8A4i9A/AiIvzkBAIh9
    EcI=
""", """
    tensor  float32  [2,3,2]  00003041 0000de42 00004041 0000e042 00005041 0000e242 0000a841 \
                              0000f242 0000b041 0000f442 0000b841 0000f642
""")
add_golden("primitiv", "tensor_special.primitiv", "primitiv db14ca4 (its MessagePack writer)", """
    eNo7xwAE54CYEUgwMkwEMXnA/CMGDBDQAET2QLwfiOuB+D8Dw4F6RoYD////rwfxgdoYGIDsBgBuaxQQ
""", """
    tensor  float32  [12]  00000000 00000080 0000803f 000080bf 0000807f 000080ff 0000c07f \
                           0100c0ff ffff7f7f 00008000 01000000 ffff7f80
""")
add_golden("primitiv", "param_3x2x2_stat.primitiv", "primitiv db14ca4", """
    eNp1zLENgCAQheEDF3AEJjDY2gh7OIfRjh1cgM4xhMSaGRjFHws7yX0vrziuCK9AEVqOVrsW+gt1W5Ew0xyD
    gIiECvEiPQwsnH+/nes0Dtuy/9+8aIl9BEQkVEjmJgwsXH4A2nIkFg==
""", """
    value           float32  [3,2,2]  0000803f 0000e040 00008040 00002041 00000040 00000041 \
                                      0000a040 00003041 00004040 00001041 0000c040 00004041
    value:v:1.x\\y  float32  [3,2,2]  000080bf 0000e0c0 000080c0 000020c1 000000c0 000000c1 \
                                      0000a0c0 000030c1 000040c0 000010c1 0000c0c0 000040c1
""")
add_golden("primitiv", "model_nested.primitiv", "primitiv db14ca4", """
    eNo7xwAE54CYEUgwg1mskxanpCYvLJ8EE2ZgArOOcDAwKDgyMBg4grgMkxen5iUvSU7NyYEqZUJSKsDAsMCB
    geEAED8AYgawFsaFxVgVHgAqBOIHQMxwcBLI2IXlE1HtdQAa0uAAtnfiEqACowkQKRYGBgGIcyYurELT02AP
    ZEH0AADkizjj
""", """
    dec.w         float32  [1,2]  00002041 00003041
    enc.cell.w    float32  [2,2]  0000a040 0000e040 0000c040 00000041
    enc.cell.w:s  float32  [2,2]  0000a0c0 0000e0c0 0000c0c0 000000c1
    enc.w         float32  [2]    00004040 00008040
    enc2          float32  []     00001041
    z             float32  [2]    0000803f 00000040
""")
add_golden("primitiv", "model_escapes.primitiv", "primitiv db14ca4", """
    eNo7xwAE54CYEUgwg1ksExcn6iVNBDGZwDJHOBgYGuyBeD+IyzBxcbJVCpo0gwMQH4BKp8akoUk7AKUdINKT
    FlfoVS6usipHtwCopAGshHF5sVWJXmlM2QSIJAuQdAQAPkopZA==
""", """
    a\\.b                 float32  [2]  0000803f 000080bf
    c\\:d                 float32  [2]  00000040 000000c0
    e\\\\f                float32  [2]  00004040 000040c0
    x\\.y.z\\:w           float32  [2]  00008040 000080c0
    x\\.y.z\\:w:s:t.u\\v  float32  []   00000041
""")
add_golden("primitiv", "optim_sgd_set.primitiv", "primitiv db14ca4", """
    eNo7xwAE54CYEUiwMDSu9y8oyczNrEot0kstyE/OAEmxtywPdnfRSy1JPGXXwMCwA6EkOSezIL4koyi1OCM/
    J+WUwwIGhq0I2Ryj+OKSotS89JKMU3ZAczYhSRXFFycn5qSesgeKAwCYOi6g
""")
add_golden("burnpack", "v019_basic.bpk", "burn-store 0.19.1", """
    eNpd0MFKw0AQBuBJBD2IIJ4WvPakJZhaC4LWoFAQxIPQk4eyzU6ywSYbdjeW4qE1J1+hHrXvoTcPpu/gm0RL
    mgj5j8PMB//c3vUvDbg3AN58jZESUi0UQ1cwlBZHyqwxBj7XC2R6EqPbszuoOI0xNc0Ro5oOhOcp1ColDdLk
    MZU0HARsfwZFwtJSGmNVKteddqE8GzWkSdoVsqUwKo5HdILStoYBrYjecWtNbNQIQhoVQQ6SmlGrUyqpWWOA
    kP8235vbVzsvezkPUdPV2rvnCRlSzYeJjGLqPvBYCpa4KNlq4j+iVIGIvCPLPrXsvz9cAMw+AHYdAMcZZ4ct
    +Jl+LbPsfJnddF/n8y6cwWf/JH/K1/kFcCSZ+A==
""", """
    decoder.head.weight    float16  [2,2]  003c 00c0 5535 ff7b
    decoder.steps          int64    [1]    ffffffffffffffff
    encoder.layer1.bias    float32  [3]    cdcccc3d cdcc4c3e 9a99993e
    encoder.layer1.weight  float32  [2,3] \
        0000003f 000080bf 00001040 00004040 77cc2b32 00e07fc7
""", same=False)
add_golden("burnpack", "v020_bool.bpk", "burn-store 0.20.1", """
    eNrly0EKgkAUxvE3pIfwEmJ2gMBFyxZCa3k5bxzR8Q0zY9GuOooFXTMECdq367/8+H378lAIeAHA1AQaPDs/
    SYO+e5IMF0uyYO7Ja7R0i3uJAStWylPwd4i1RYemauUKz4uvd5t84eKbJwISEX0ukTYUcBYPpdgZDPo4usFi
    3WnrWI41OTkvzYmcb3lQWZpn6Rp+mwAh4K+7bt80dkK1
""", """
    mask  bool     [5]  0100010100
    w     float32  [1]  0000803f
""", same=False)
add_golden("burnpack", "v021_tiny.bpk", "burn-store 0.21.0", """
    eNrzCwp1YmRwZ2BgWJRekppXnF9UvDCxfElqSkllQWqym7FRanFGYkFqI1NOSmJJYnx+WlpxaklxEwNHRkFi
    UWJufGYKe0ZuakkiSHZhYnZiGcNQAw32QMIBANpcHsc=
""", """
    w  float32  [2]  0000803f 00000040
""")
add_golden("burnpack", "v021_basic.bpk", "burn-store 0.21.0", """
    eNrlz01Kw0AUwPGXBFRQQVwleAOF0ETtSmtQKAjiQui6TDMvmWDzwczEUlzYZuUV6lJ7D925ML2DN4mUNC3k
    BEL+y8d7P3j3D71rBYgC8O5LjETMxVxQdGOK3GRIqDnCwGdyjlSOE3S7VhsFIwlmqjqkRJJ+7HkCpcgMFQx1
    hyWEk7Af0KMJlIWVJiQmonJu22elM1VqjAaGtmG2BUbl+ZCMkVvmICBrpHtqrxCthihgKHtrRD9Oa0rtqcrJ
    1BoEur756Gdr92b/9bBgIUqyXPvwvJiHRLJByqOEuI8s4TFNXeR0OfGfkIsgjryWaVtmC/5pVwCTT4ADB8Bx
    RvmJDb8v39CQFnl+ucjvOm+zWQea2AV89c6LZ2hoxao/UFiZOA==
""", """
    decoder.head.weight    float16  [2,2]  003c 00c0 5535 ff7b
    decoder.steps          int64    [1]    ffffffffffffffff
    encoder.layer1.bias    float32  [3]    cdcccc3d cdcc4c3e 9a99993e
    encoder.layer1.weight  float32  [2,3] \
        0000003f 000080bf 00001040 00004040 77cc2b32 00e07fc7
""")
add_golden("burnpack", "v021_special_floats.bpk", "burn-store 0.21.0", """
    eNrzCwp1YmS4y8DAsDC9JDWvOL+oeElKUpqh2ZLUlJLKgtQUJzdDs9TijMSC1EaWnJTEksT4/LS04tSS4iZJ
    ZgZJZo6MgsSixNz4zBSWZISuZNyamBgkmRCamJPTjI3gmoyNoJrYUDUxSEjAdTAmp5mZwHWYmUB1sKJZw8gg
    yagB18TEgBscqGdgaADh/1CBBkYwfySBH1D/foDRSGGBwh9+oI6hhuEPQwPDCAUH6hvqgSm/AQAy7mOE
""", """
    bf16  bfloat16  [4]  c07f 807f 80ff 0080
    f16   float16   [4]  007e 007c 00fc 0080
    f32   float32   [6]  0000c07f 0000807f 000080ff 00000000 00000080 0100807f
    f64   float64   [5]  000000000000f87f 000000000000f07f 000000000000f0ff 0000000000000080 \
                         010000000000f0ff
""")
add_golden("burnpack", "head_scalars.bpk", "burn-pack 0.22.0-pre.2 (commit 2c06be35)", """
    eNrzCwp1YmTYxsDAsDi9JDWvOL+oeGFi+ZLUlJLKgtRkN2Oj1OKMxILURqaclMSSxPj8tLTi1JLiJgaOjILE
    osTc+MwU1ozc1JJEkOzCxOzEsvTi5MScxKLiZamJ8Zl5JQuTPfNKVNKS4ktBnJRQIE/6PxQkJ8enLUx1y8lP
    LPlpx5CcAuf9tt85EwRmJacixOrMn9h0MJTOSUuLT8rPz1mY4gQkvzJQDBrsgYQDAO57VIw=
""", """
    w  float32  [2]  0000803f 00000040
""")
add_golden("burnpack", "head_quant.bpk", "burn-pack 0.22.0-pre.2 (commit 2c06be35)", """
    eNq1jU1OhEAUBh+jzPgvGy8CLtiZmMjOiThhTd50fw0dGhrp1oRZqYn3EKL3VDNnsPZVtX4sbgP6JKKp8uic
    HdzET1+QfuwxqTwzlv03Xtg8Q+RpBuftgEk/sGggiyQm2VoJvRnbFn7QQu0rIktibI0VzSyd3mGu/kSu8BEF
    vwiDLthPUNxd3ydwNfd4i4xkz6VVysG7d7qqex64LbUM6X8IFgeH4XJ1dHxyenZ+cZkSvd78APenQNM=
""", """
    q  qfloat  [16]  000102030405060708090a0b0c0d0e0f380000803f
""")
add_golden("tensorbuffers", "sorted_one.tbs", "flatbuffers 25.2.10 (Rust)", """
    eNoLcQo2ZGBosGdgYDggACR4GAQYWIA0B5DFA6QlwGIMYDEQYARiBSBmBWJDPQM9AyAtABSRAOtgB7JFGASg
    SkF6ZaB6OYBY+3XuVvaTpzlAZpRDzWIC4gogDgG6AwCZTwrl
""", """
    w  float32  [2]  0000803f 000000c0
""")
add_golden("tensorbuffers", "sorted_model.tbs", "flatbuffers 25.2.10 (Rust)", """
    eNoLcQo2ZGBosGdgYHAAIiBucPj/n4kBAh7Yi0BZPAwiDCwMHEBaAIgZGEzAYgwMMkAMUsMFxEWHVxaX5h5e
    qWsI0cMMxBFQ+RlAzArEhnoGegZAuuP///9AikkCSCgAMYjmAOJXjAmKO0rmxoLUFicn5qRC7RdgUAGqAdnP
    DmSLADEYsIDsV4HawQLEC5d+6T1coC3IAOUnZSYWg9iMIMvA5ihgM4cR5g4WsBoGhkvC3R/yjntuZAOyy1Mz
    0zNKIPphWAJoYAgw7ACvpyfc
""", """
    bias    int16    [2]    ffff 0200
    scale   float64  []     000000000000e03f
    weight  float32  [2,2]  0000803f 00000040 00004040 00008040
""")
add_golden("tensorbuffers", "up_head_uint8.tbs", "tensorbuffers 2422de1", """
    eNoLcQo2ZGBkqm/4zy7AwMDAwyDAwAKkOYAsHiCtABZjAIuBADMQzwDiECCWAWJWIDbUM9AzYOADqhUB62MH
    msEHUc4uAVXHDcS8XRZb2U/2coAkGIE4FYiZoOaCzL/w//9/kB4ZqL1cUHXtGlVAfTfh+oqhegQYVBgk4DaK
    MAhA7YTpB5nJBsRHWQKB+lfC9edC7WWC+ucHyD/AYAAAMJ8Ykw==
""", """
    m  uint8  [2,3]  0001027f80ff
    s  uint8  []     07
    e  uint8  [0,4]
""", sort=False)
add_golden("tensorbuffers", "up_head_mixed.tbs", "tensorbuffers 2422de1", """
    eNoLcQo2/M8ABj/sITTLgf//mRj/QwEDQ4NdA1C0ASLJ0AARFoFyeRgEGFiANAeQxQOkbcBiDGAxEOACYhkm
    BoYLjAwMU4DYA4hFgPgBUHwNEFcAsQsQCwAxKxAb6hnoGQBpjX8gqxk4JUD6gdgEaqbWA3ubp66bljED2aXG
    RgxAo8A4AqKeA6beCIiB1jIcCN1u+PRz6xSwekMzuPoOiHo2mHotsB8YGKL9L6YfcZgiAFKfaWYCV78Dop4V
    pl4N6h6++VkNR3h/WIPVI7nnBUQ9M0y9KlT84hx/bckyZm2Q2zItGODqZ4CDmoERpFYBiBWh5h/0Wc1ddfXb
    fFBYguxIMzYCh6sHRD0XzHxJqPvFM1y8nh64vR/sX6D7mRkQdjCCw1mFQQIcW+xAtgg43EFWwewVhdp7ZodK
    2ZHd0lowezOBYccEDVOQOScg9jOB7FeBxh3IrHse7mlhvI8ngdySZmYSn1gSb8oA1cMEVqOAzX52mD9YoGrz
    21e85l3QxwyyuyAxBe7+CqAhIcA0CwBrvHBT
""", """
    pad       uint8    [1]      ff
    f64_at_5  float64  [2]      000000000000f83f 00000000000004c0
    i16       int16    [2,1]    ffff 0201
    u64       uint64   [1,1,1]  ffffffffffffffff
    f32       float32  []       0000803e
    i8        int8     [1]      80
    i32       int32    [1]      00000080
    i64       int64    [1]      0000000000000080
    u16       uint16   [1]      ffff
    u32       uint32   [1]      ffffffff
""", sort=False)
add_golden("tensorbuffers", "up_head_ops.tbs", "tensorbuffers 2422de1", """
    eNoLcQo2ZGBosGdgYHAAIgcBIIOHQYCBBUhzAFk8QFoBiEWAGCTGBMQpQKwCxIxA3AHErEBsqGegZwDWqwDE
    7ED1HGC9IGUSUH0gMC/3yBb2k8wcDFD9jAwIwMMgwwCSANkO0iuBJC+5eQdQ33d2mFoBoD0SYDvYgWwRBgEk
    u2SgbuVB0gcyxxBqHjMQvwDiEKDfAeiBFJI=
""", """
    1  float32  [3]  0000803f 00000040 00004040
""", sort=False)
add_golden("tensorbuffers", "up_7190fc4_f32.tbs", "tensorbuffers 7190fc4", """
    eNoLcQo2ZGBosGdgYHAAIiBuAOIFQHzAQYQBBrgYeBhYgDQHkMXAABIH8ZiAOASIBYCYFYgN9Qz0DID0hf//
    /wMpRgkgIQOV5wHieblHtrCfZOZgBLKNQAqAmBksr8AgATSbh4EdyBYBq0fWzwLVL7l5B1D/d3aQPkMk/StA
    7gD6AwCnGBV3
""", """
    1  float32  [3]  0000803f 00000040 00004040
    2  float32  [3]  00008040 0000a040 0000c040
""", sort=False, operations=False)
add_golden("tensorbuffers", "cpp_future_fields.tbs", "flatbuffers 25.2.10 (C++)", """
    eNoLcQo2ZGBosGdgYHAAIiBuAOIFQHzA4f9/JgYIeGAvAiQFGCQYWBg4GHjAbBEgZmAwAGIVIDYBYpAaFiBm
    BeKM1JycfCDNDMSMTMwMjEA6FypnqGeoB9IHEpMBmy/GYAFkgUxmB5ssATRTBygKBoweQMICarYEECsA8SXh
    7g95xz03dpSnhboYKwnC3MkAVVdVXJICYjNBMcgdbEBcnpqZnlHCwHAByA4B+h0A86kdXw==
""", """
    weight  float32  [2,3]  0000803f 00000040 00004040 00008040 0000a040 0000c040
""", same=False)
add_golden("burnrecord", "v021_one_tensor.mpk", "Burn 0.21.0 (the same)", """
    eNptisEOwUAURRsrXyPVEjIRdt0R4QOaV/PKRKdtZp4m3Qmx5xfUYGNpb+En/I0Sdl3dnHPP9iqRgAPBzoRR
    AlSErlOImArhOucwURLoBcFKxf4sUciYwnI5Y6GIShqBRD5Ml15Jk++DqldRayQS8Vwz5q2iaFxqoUUST3+6
    f8lQfcTZbjjNhn399/fK/CQI5eYo+I23ZaebtbKZDQs0KSiQWxPkhPpZt6z1wLIeA6MXkOKhZjjlKRae6xz9
    YP8GME5j8A==
""", """
    item  float32  [2]  0000803f 0000c03f
""")
add_golden("burnrecord", "v021_quant.mpk", "Burn 0.21.0 (the same)", """
    eNptkD1Ow0AQRhGi5AKUXCAKdgGsgILCFUQE00cT7xiW7HrN7tjIFTKRe8QNiLNOKCi5AZfgNLDhp0s1+t68
    kWZmulRIwIGgcanUQG0aBq3IqBVh0KXaKKBPGBcmGyXaIGMGfeWMpUL6NACF/DyfRD5d/nTQHK2xLRKJ7Noy
    FhVSXngsrNBZ/IdPFiWaFej6vWCv11/+++9r9bkgVPXL/eNM8Ld9uuNFeZhwdcsnLgcDaurGFaH92N7YCc/S
    h/qrOd09dvYGcnze3HKcqhzrbhit7m1cCbLAdngQ/w63URg4S379bgAkSnQSS5TdFWZWm7nSHF/jSvm3GZHM
    RuOnb455hgc=
""", """
    w  qfloat  [2,4]  0019334c667f81ff8542213d
""")
add_golden("ztensor", "v212_attributes.zt", "ztensor 2.1.2", """
    eNrt271OwlAYxvEWBhMSE0fQhYELgFISdBBGFxMHJ7f3fLSUlLbhHCIspOLEJeiEwKBxcvQ2vAw3B00IDh5T
    Bkm8AvL8cj5y0uQ/vHunV5fOfuGwYAEAAAAAAADAjktb5mibZXZq9qyNmQAAAAAAAADsjj2MAAAAAAAAAGDn
    zf2YdSXXak5qIRPqa/UgBGlaCBbGbFIqW7YUepRINmh6IvCl0oPhsFM/cXmDc3Ibouq5zVrNk6pDiUy9kEbx
    QEshIyXpevlf88AqFrMo9+rOVlVw4dS465g0HQuHsuokl9/qdknrfsDMU81Z2L9Zty7Y+dvH07eIYi1p+Of7
    M3mrpkX+uvV69+ueojzpT84C/yjdDIH3KFkQzYjZjCjHI4pWY4tH0q+IMFD61iZKTTqSX36PhCyzkTRpraxq
    Fji1s3tdOnt5f6yMc5vwdPN3xQ+vaIj6
""", """
    s  uint8    []     07
    w  float32  [2,3]  00000000 0000803f 00000040 00004040 00008040 0000a040
""", same=False)
add_golden("mag", "m300_mixed.mag", "magnetron 0.2.2", """
    eNrt18FugjAcx3F22o57hK3XVdJWgspl7LTTbrsZY2ookwQKgbrFGBIfZW+4V9gfMBNvO5vfJ0It1G+KN95e
    Xh/5jdfjw+D9nObe/TDcPQzjgRXaZqlp3PrT1CySnLmsoKkuKhYxJVQ4kXKi5LsSkVhESvizYKbk7EnQXDBO
    v/+wxtWlHQJM+MpXdL2xumq2pfu7PPW75bumXhfG6UQ7zaIDs7owdDsxRUl3c1oqfNqEpS2YpFtAq5aSK253
    ec5dvTOrtqVNGtuUVNJVt+arOzVbXVFqqfh0xVni9t2MpXmp3bTbUH9lnVFUcFamaWNc/9Vu9s40LFIBdTfj
    0riz6UMyvAipcygQi/DcCillx6lRKbMuDC4yctSZy4U6d+bUMeOO4MH/H26uxOj5RNu2HgAAAAAAAFyb4zOd
    YvrQcaTjO8Z/AgAAAAAAAHBVb/5xjLd9AAAAAAAAgKt2exp/AWcqnpM=
""", """
    w  float32   [2,3]  00000000 0000803f 00000040 00004040 00008040 0000a040
    b  bfloat16  [3]    803f 0040 4040
    n  int64     []     0700000000000000
    e  float32   [0,4]
""")
add_golden("safetensors", "v028_plain.safetensors", "safetensors 0.2.8 (numpy)", """
    eNrLYoCAaqVEJatqpZSSyoJUJSulUAslHaXijEQQJ9owVkcpJbEkMT4/La04taQYKGSgYxhbq6OUhKzH09AM
    SZMRpiZDHdPY2lp2RgYmBgCfNiFn
""", """
    a  uint8  [1]  07
    b  int16  [2]  0100 0200
""", same=False)
add_golden("safetensors", "v080_meta_empty.safetensors", "safetensors 0.8.0 (numpy)", """
    eNrzYICAaqX4+NzUksSUxJLE+Hglq+paHaVyIKWUUlJZkKpkpeRmbKSko1SckQjiRRvF6iiBleanpRWnlhQD
    hQx0LGJraxkYGuyBxjkAADXtGK0=
""", """
    w  float32  [2]  0000803f 00000040
""")
add_golden("safetensors", "v080_basic.safetensors", "safetensors 0.8.0 (numpy)", """
    eNrTYGQAg2ql+Pjc1JLElMSSxPh4JatqpbT8otzEEiUrpbwCpVodpeKS1IJikHhKSWVBKlDY08xECSickQji
    RRvG6iiB9eanpRWnlgBVRhvoWMQCNabmJeenpBbpJWUmouh3MzZC0m+Mqd9Cx8gA2YDy1Mz0jBLcRhjpYDHE
    yEDHxARkSkZqYgo2IwzNUIwwwjTCxETH1Ci2tlYBBP5DwdkzZ2zPnvGxmzVzph0w+OwZGBr2A2kHIHIoP6Nt
    xPAg4TiDDcOBENP/1QCpHHVR
""", """
    steps           int64    [1]    ffffffffffffffff
    encoder.bias    float32  [3]    cdcccc3d cdcc4c3e 9a99993e
    encoder.weight  float32  [2,3]  0000003f 000080bf 00000040 00004040 77cc2b32 00e060c7
    head.weight     float16  [2,2]  003c 00c0 5435 ff7b
""")
add_golden("safetensors", "v080_ranks.safetensors", "safetensors 0.8.0 (numpy)", """
    eNp10MEKwjAMBuCqLyI5Sg5tWqXs6EHwAQRBRArr8OawvcjYu9uGHTq2Bn5CCx8huW8E1wBeQzNAG3+9hwZu
    JwMI4e3y6yFRPhFaF93r03XBxzB9jgi+ZBdNJauiUEdrxmTzVSW6zhAtlUFFzI51ppCQs+SKkCzvRzNvC65R
    4spkskzHfSohDud83+nM3Lcpu5Q/calnLg==
""", """
    e3  uint64   [0,0]
    e   float32  [0]
    s   float32  []           00002a42
    r1  int32    [2]          00000000 01000000
    r5  int32    [1,2,1,2,1]  00000000 01000000 02000000 03000000
    e2  int8     [3,0,2]
""")

FILES = [row for row in ALL_FILES if row.format in READ]  # of the formats that are tested
WRITTEN = [row for row in FILES if row_of(row.format).dtypes]


def golden_row(title):
    for row in ALL_FILES:
        if row.title == title:
            return row
    raise KeyError("no golden %r in [2]" % title)


def golden(title):
    return golden_row(title).data


# -- [3] codecs ----------------------------------------------------------------------------------

Coded = namedtuple("Coded", "hex value")


def literal_rows(text):
    """Return rows of a text: on each line a word and a value as Python writes it; 1e999 is INF."""
    rows = []
    for line in text.strip().splitlines():
        word, value = line.split(None, 1)
        rows.append(Coded(word, literal_eval(value)))
    return rows


def repeated_rows(text):
    """Return rows of a text: the head, an element, how many there are, and what one makes."""
    rows = []
    for line in text.strip().splitlines():
        head, element, digits, value = line.split(None, 3)
        count = int(digits)
        rows.append(Coded(head + element * count, literal_eval(value) * count))
    return rows


ONE_TO_25 = list(range(1, 26))
NAN_AMONG_KEYS = {0: 0, NAN: 1, 1: 2}

# RFC 8949, appendix A: what is decoded and encoded.
CBOR = literal_rows(r"""
    00                      0
    01                      1
    0a                      10
    17                      23
    1818                    24
    1819                    25
    1864                    100
    1903e8                  1000
    1a000f4240              1000000
    1b000000e8d4a51000      1000000000000
    1bffffffffffffffff      18446744073709551615
    3bffffffffffffffff      -18446744073709551616
    20                      -1
    29                      -10
    3863                    -100
    3903e7                  -1000
    f90000                  0.0
    f98000                  -0.0
    f93c00                  1.0
    f93e00                  1.5
    f97bff                  65504.0
    f90001                  5.960464477539063e-08
    f90400                  6.103515625e-05
    f9c400                  -4.0
    fa47c35000              100000.0
    fa7f7fffff              3.4028234663852886e+38
    fb3ff199999999999a      1.1
    fb7e37e43c8800759c      1e+300
    fbc010666666666666      -4.1
    f97c00                  1e999
    f9fc00                  -1e999
    f4                      False
    f5                      True
    f6                      None
    40                      b""
    4401020304              b"\x01\x02\x03\x04"
    60                      ""
    6161                    "a"
    6449455446              "IETF"
    62225c                  '"\\'
    62c3bc                  "\xfc"
    63e6b0b4                "\u6c34"
    64f0908591              "\U00010151"
    80                      []
    83010203                [1, 2, 3]
    8301820203820405        [1, [2, 3], [4, 5]]
    c249010000000000000000  18446744073709551616
    c349010000000000000000  -18446744073709551617
    a0                      {}
    a201020304              {1: 2, 3: 4}
    a26161016162820203      {"a": 1, "b": [2, 3]}
    826161a161626163        ["a", {"b": "c"}]
    a56161614161626142616361436164614461656145  {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"}
""")
CBOR += [
    Coded("f97e00", NAN),
    Coded("98190102030405060708090a0b0c0d0e0f101112131415161718181819", ONE_TO_25),
    # Of no example there:
    Coded("e0", Simple((0,))),
    Coded("f820", Simple((32,))),
    Coded("a1f26161", {Simple((18,)): "a"}),
    Coded("c249800000000000000000", 1 << 71),
]
# What is only decoded: longer forms, tags, indefinite lengths.
CBOR_READ = literal_rows(r"""
    fa7f800000              1e999
    faff800000              -1e999
    fb7ff0000000000000      1e999
    fbfff0000000000000      -1e999
    f7                      None
    c074323031332d30332d32315432303a30343a30305a  "2013-03-21T20:04:00Z"
    c11a514b67b0            1363896240
    c1fb41d452d9ec200000    1363896240.5
    d74401020304            b"\x01\x02\x03\x04"
    d818456449455446        b"dIETF"
    d82076687474703a2f2f7777772e6578616d706c652e636f6d  "http://www.example.com"
    5f42010243030405ff      b"\x01\x02\x03\x04\x05"
    7f657374726561646d696e67ff  "streaming"
    9fff                    []
    9f018202039f0405ffff    [1, [2, 3], [4, 5]]
    9f01820203820405ff      [1, [2, 3], [4, 5]]
    83018202039f0405ff      [1, [2, 3], [4, 5]]
    83019f0203ff820405      [1, [2, 3], [4, 5]]
    bf61610161629f0203ffff  {"a": 1, "b": [2, 3]}
    826161bf61626163ff      ["a", {"b": "c"}]
    bf6346756ef563416d7421ff  {"Fun": True, "Amt": -2}
    7f606161ff              "a"
""")
CBOR_READ += [
    Coded("fa7fc00000", NAN),
    Coded("fb7ff8000000000000", NAN),
    Coded("f0", Simple((16,))),
    Coded("f8ff", Simple((255,))),
    Coded("9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", ONE_TO_25),
    Coded("a30000f97e00010102", NAN_AMONG_KEYS),
]
CBOR_BAD = """
    18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 fa0000 fb000000
    41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 7b7fffffffffffffff010203 81
    818181818181818181 8200 a1 a20102 a100 a2000000 c0 5f4100 7f6100 9f 9f0102 bf bf01020102 819f
    9f8000 9f9f9f9f9fffffffff 9f819f819f9fffffff 1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd
    be dc dd de fc fd fe 1f 3f df f800 f801 f818 f81f 5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff
    5fe0ff 7f4100ff 5f5f4100ffff 7f7f6100ffff ff 81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff
    9f829f819f9fffffffff bf00ff bf000000ff 0000 62c328 63eda080 62c080 7f61c361a9ff a201020103
    a18001 a1a000 a2f60001f600 5f58 7f7801 5f5803aabb 1c00000000000000000000000000000000
    df00000000000000000000000000000000 df00 5f5c00ff a1f97e0001f97e0002 8261616261""".split()
CBOR_NANS = """
    f9fe00 f97e01 f97c01 fa7fc00001 faffe00001 fa7fa00001 fb7ff8000000000001
    fbfff0000000000001""".split()  # when it is written, CBOR has one NaN

# The shortest forms, decoded and encoded.
MSGPACK = literal_rows(r"""
    c0                    None
    c2                    False
    c3                    True
    00                    0
    01                    1
    7f                    127
    cc80                  128
    ccff                  255
    cd0100                256
    cdffff                65535
    ce00010000            65536
    ceffffffff            4294967295
    cf0000000100000000    4294967296
    cfffffffffffffffff    18446744073709551615
    ff                    -1
    e0                    -32
    d0df                  -33
    d080                  -128
    d1ff7f                -129
    d18000                -32768
    d2ffff7fff            -32769
    d280000000            -2147483648
    d3ffffffff7fffffff    -2147483649
    d38000000000000000    -9223372036854775808
    cb0000000000000000    0.0
    cb8000000000000000    -0.0
    cb3ff8000000000000    1.5
    cb3fb999999999999a    0.1
    cb7ff0000000000000    1e999
    cbfff0000000000000    -1e999
    a0                    ""
    a161                  "a"
    a3e38182              "\u3042"
    a4f09f9982            "\U0001f642"
    c400                  b""
    c40100                b"\x00"
    90                    []
    9101                  [1]
    80                    {}
    81a16101              {"a": 1}
    8101c0                {1: None}
    82a161c2a162c3        {"a": False, "b": True}
    9190                  [[]]
    9180                  [{}]
    81a16180              {"a": {}}
    81a16190              {"a": []}
    9292010293c0a1789100  [[1, 2], [None, "x", [0]]]
""")
MSGPACK += repeated_rows(r"""
    bf          61    31     "a"
    d920        61    32     "a"
    d9ff        61    255    "a"
    da0100      61    256    "a"
    db00010000  61    65536  "a"
    c4ff        07    255    b"\7"
    c50100      07    256    b"\7"
    c600010000  07    65536  b"\7"
    9f          05    15     [5]
    dc0010      05    16     [5]
    dd00010000  c0    65536  [None]
""")
MSGPACK.append(Coded("8f000001000200030004000500060007000800"
                     "09000a000b000c000d000e00",
                     dict.fromkeys(range(15), 0)))
# Longer forms, float32 and ext.
MSGPACK_READ = literal_rows(r"""
    cc01                  1
    cd00ff                255
    ce0000ffff            65535
    cf00000000ffffffff    4294967295
    d001                  1
    d1ff80                -128
    d200007fff            32767
    d3ffffffffffffffff    -1
    d900                  ""
    da000161              "a"
    db0000000161          "a"
    c50000                b""
    c6000000010a          b"\n"
    dc0000                []
    dc000101              [1]
    dd00000001c0          [None]
    de0000                {}
    de0001a16101          {"a": 1}
    df00000001a161c3      {"a": True}
    ca00000000            0.0
    ca3f000000            0.5
    ca7f800000            1e999
    cabf800000            -1.0
    dd00000001dd00000000  [[]]
    df00000001a161df00000000  {"a": {}}
    d40110                (1, b"\x10")
    d4ff00                (-1, b"\x00")
    d5021112              (2, b"\x11\x12")
    d60321212121          (3, b"!!!!")
    d7042121212121212121  (4, b"!!!!!!!!")
    d88021212121212121212121212121212121  (-128, b"!!!!!!!!!!!!!!!!")
    c70005                (5, b"")
    c703062a2a2a          (6, b"***")
    c800002a              (42, b"")
    c80001072a            (7, b"*")
    c900000002082a2a      (8, b"**")
    c900000000ff          (-1, b"")
    c705ff0000000000      (-1, b"\x00\x00\x00\x00\x00")
""")
MSGPACK_READ += [
    Coded("ca7fc00000", NAN),
    Coded("cb7ff8000000000000", NAN),
    Coded("830000cb7ff8000000000000010102", NAN_AMONG_KEYS),
]
# Timestamps: seconds and nanoseconds.
MSGPACK_TIMES = literal_rows(r"""
    d6ff00000000                      (0, 0)
    d6ff00000001                      (1, 0)
    d6ffffffffff                      (4294967295, 0)
    c704ff00000001                    (1, 0)
    d7ff0000000400000001              (1, 1)
    d7ffee6b27fc00000000              (0, 999999999)
    d7ff00000003ffffffff              (17179869183, 0)
    c70cff00000001ffffffffffffffff    (-1, 1)
    c70cff3b9ac9ff8000000000000000    (-9223372036854775808, 999999999)
    c8000cff000000007fffffffffffffff  (9223372036854775807, 0)
    9281d6ff00000001c0d6ff00000002    [{(1, 0): None}, (2, 0)]
""")
MSGPACK_BAD = """
    c1 91c1 0000 82a16101a16102 ddffffffff dfffffffff c6ffffffff00 dbffffffff00
    c9ffffffff01 d7ffee6b280000000000 c70cff3b9aca000000000000000000
    82d6ff00000001c0d7ff0000000000000001c0""".split()
# The typed form: what primitiv writes.
UINT32S = literal_rows(r"""
    ce00000000  0
    ce00000001  1
    ceffffffff  4294967295
    ca3f000000  0.5
    ca7f800000  1e999
    ca3dcccccd  0.1
    91ce00000007  [7]
    a161        "a"
""")

Codec = namedtuple("Codec", "name loads dumps both_ways read_only bad")
CODECS = [
    Codec(
        "cbor",
        cbor_loads,
        cbor_dumps,
        both_ways=CBOR,
        read_only=CBOR_READ,
        bad=CBOR_BAD),
    Codec(
        "msgpack",
        msgpack_loads,
        msgpack_dumps,
        both_ways=MSGPACK,
        read_only=MSGPACK_READ + MSGPACK_TIMES,
        bad=MSGPACK_BAD),
]

NUMBERS = list(range(-30, 30)) + [255, 256, -256, -257, 65535, 65536, -65537]
Refused = namedtuple("Refused", "dumps value error_class words")
REFUSED_VALUES = [
    Refused(cbor_dumps, ["\ud800"], ValueError, "is not Unicode text"),
    Refused(cbor_dumps, ["\udfff"], ValueError, "is not Unicode text"),
    Refused(cbor_dumps, [object()], TypeError, "CBOR cannot hold object"),
    Refused(cbor_dumps, {(1, 2): 3}, TypeError, "CBOR cannot hold tuple as a map key"),
    Refused(msgpack_dumps, 1 << 64, ValueError, "does not fit 64 bits"),
    Refused(msgpack_dumps, -(1 << 63) - 1, ValueError, "does not fit 64 bits"),
    Refused(msgpack_dumps, object(), ValueError, "MessagePack cannot hold object"),
]

# Texts that are no JSON, each after the place of the error.
JSON_BAD = literal_rows(r"""
    0   ""
    1   "["
    4   '{"a"'
    6   '{"a":1'
    3   "[1,]"
    7   '{"a":1,}'
    1   "{1:2}"
    3   "[1 2]"
    2   "[1}"
    0   "]"
    1   "01"
    0   "+1"
    0   "-"
    1   "1."
    0   ".5"
    0   "nul"
    4   "truex"
    0   "'a'"
    1   '["\\x"]'
    1   '["\\u12g4"]'
    1   '["a\n"]'
    12  '{"a":{"b":1,"\\u0062":2}}'
    0   "\ufeff1"
    1   "1\x00"
    3   "[[[[]]]]"
    2   "{}{}"
    2   "1 // 2"
""")
# What read_json() makes of a text, strictly and by PythonJson: its repr, or the place of the error.
JsonRow = namedtuple("JsonRow", "text strict lax")
LONG_NUMBER = "[1, %s]" % ("9" * 309)
LONGEST_NUMBER = "1" + "0" * 308
JSON_ROWS = [JsonRow(text, int(place), int(place)) for place, text in JSON_BAD]
JSON_ROWS += [
    JsonRow("-0", strict="-0.0", lax="0"),
    JsonRow("1e400", strict=0, lax="inf"),
    JsonRow("[NaN,-Infinity]", strict=1, lax="[nan, -inf]"),
    JsonRow("9" * 4301, strict=0, lax=0),
    JsonRow(LONG_NUMBER, strict=4, lax=LONG_NUMBER),
    JsonRow(LONGEST_NUMBER, strict=LONGEST_NUMBER, lax=LONGEST_NUMBER),
    JsonRow("1" + "0" * 20, strict="1" + "0" * 20, lax="1" + "0" * 20),
    JsonRow('["\\udc00"]', strict=1, lax="['\\udc00']"),
    JsonRow('["\\ud800\\\\\\udc00"]', strict=1, lax="['\\ud800\\\\\\udc00']"),
    JsonRow('["\\ud800x\\udc00"]', strict=1, lax="['\\ud800x\\udc00']"),
    JsonRow('"' + "\\n" * 150, strict=0, lax=0),
]
JSON_GOOD = [
    " [1, -2.5e3,\t{\"a\\u0062\": null}]\r\n",
    "[[], {}, true, false, \"\"]",
    "0",
    "[18446744073709551615, 1.7976931348623157e308]",
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u20ac\\ud83d\\ude42 \u20ac\U0001f642\x7f"',
    '["\\\\\\ud83d\\ude00"]',
]
# CRC-32C and the bytes that it is of.
CRC32C = literal_rows(r"""
    00000000  b""
    c1d04330  b"a"
    e3069283  b"123456789"
    22620404  b"The quick brown fox jumps over the lazy dog"
""")
SEVENS = bytes([(7 * i + 3) & 255 for i in range(36724)])
CRC32C += [
    Coded("8a9136aa", bytes(32)),
    Coded("62a8ab43", b"\xff" * 32),
    Coded("46dd794e", bytes(range(32))),
    Coded("113fdb5c", bytes(range(31, -1, -1))),
    Coded("72c0c4a4", bytes(65536)),
    Coded("6e628146", SEVENS[:-1]),
    Coded("9fad1d95", SEVENS),
]
# TensorBuffers: FNV-1a over the UTF-8 bytes of a name and ff.
NAME_IDS = literal_rows(r"""
    af64724c8602eb6e  ""
    089bc907b544c769  "a"
    08cbc907b56deb2b  "w"
    b149c76ef08b13d2  "weight"
    d006300cb5e9a7c8  "input_1"
    b1d6f7baa45553bf  "layer.0.weight"
    5fec201c1dfca99a  "\xe9"
    cceab2e36852e8e8  "\u65e5\u672c\u8a9e"
    55fee4eed74d37dc  "\U0001f642"
    ab4072820d3fd4d7  "a\x00b"
""")
NAME_IDS.append(Coded("1e68a55bff098fde", "x" * 300))


def outcome(call, data, **options):
    """Return what a call makes of bytes, as a text; or why it cannot: a place in them."""
    try:
        value = call(data, **options)
    except FormatError as error:
        assert 0 <= (error.offset or 0) <= len(data), (error, data)
        return str(error)
    if isinstance(value, memoryview):
        value = bytes(value)
    return ascii(value)


def is_refusal(text):
    """Tell whether an outcome() is an error."""
    return "(at 0x" in text


def read_twice(read, data, *args, **rules):
    """Return what a function of a Reading does, called again to say which field is wrong."""
    reading = tensorfmt.Recorder(tensorfmt.Buffer(data))
    try:
        return read(reading, *args, **rules)
    except FormatError as error:
        tensorfmt.complete(reading, [error])
        raise


def damaged(data):
    """Return bytes cut short at each place, and with each byte changed by one."""
    found = [data[:end] for end in range(len(data))]
    for at, byte in enumerate(data):
        for changed in byte + 1, byte - 1:
            found.append(patched(data, (at, "%02x" % (changed & 255))))
    return found


HEADS = {  # items, with %s where each first byte is tried
    "cbor":
        "%s|%s00|%s01 01010101 01010101|81%s61|a2%s00 0102|92%sa101|5f%s4100ff|7f%s6100ff|"
        "%s0c ff00000001 00000000 00000001|81830102%s|a2616183010203%s00|819f01%s0203ff|"
        "a1616283c1%s0506|828180%s",
    "msgpack":
        "%s|%s00|%s01 01010101 01010101|81%s61|a2%s00 0102|92%sa101|930102%s|"
        "82a16193010203%s00|93%s9191010203",
    "json":
        '%s|[%s|{"a"%s1}|{"a":%s}|["a%s"]|["\\%s"]|["\\u0%s41"]|[1%s2]|[-%s]|{"a":[]%s"b":{}}|'
        '[1.5e%s1]| [ 1%s,\n2 ] |{%s"a":{"b":1}}|tru%s',
}


def headed(codec):
    """Return what HEADS says, with each byte."""
    if not chosen(codec):
        return []
    found = []
    for text in HEADS[codec].split("|"):
        for head in range(256):
            if codec == "json":
                found.append(text.encode().replace(b"%s", bytes([head])))
            else:
                found.append(unhex(text % ("%02x" % head)))
    return found


def json_loads(data, codec=tensorfmt.Json, **rules):
    return codec(data, **rules).parse()[0]


def zstd_check(data):
    tensorfmt.zstd_check(tensorfmt.Buffer(data), 0, len(data))


class CodecTest(TestCase):
    def test_both_ways(self):
        for codec in CODECS:
            if not chosen(codec.name):
                continue
            for text, value in codec.both_ways + codec.read_only:
                with self.subTest(codec=codec.name, hex=text[:40]):
                    data = unhex(text)
                    self.assertSame(codec.loads(data), value)
                    for end in range(min(len(data), 100)):
                        error_of(FormatError, codec.loads, data[:end])
            for text, value in codec.both_ways:
                self.assertEqual(tohex(codec.dumps(value)), text, (codec.name, text[:40]))
            for number in NUMBERS:
                for value in [number], {number: number}:
                    self.assertSame(codec.loads(codec.dumps(value)), value)
            for text in codec.bad:
                with self.subTest(codec=codec.name, hex=text):
                    data = unhex(text)
                    error = error_of(FormatError, codec.loads, data)
                    self.assertTrue(0 <= error.offset <= len(data))

    @about("cbor", "msgpack")
    def test_nan_stays_nan(self):
        """Of any payload; in metadata with the payload that was read."""
        for text in CBOR_NANS:
            value = cbor_loads(unhex(text))
            self.assertEqual(cbor_dumps(value), b"\xf9\x7e\0")
        Payload = namedtuple("Payload", "hex typed head")  # whose rest is no infinity
        for row in (Payload("cb7ff0000000000001", typed=False, head=b"\xcb"),
                    Payload("ca7fa00001", typed=True, head=b"\xca"),
                    Payload("cb7ff0000000000001", typed=True, head=b"\xca")):
            value = msgpack_loads(unhex(row.hex))
            again = msgpack_dumps(value, typed=row.typed)
            self.assertEqual(again[:1], row.head)
            self.assertSame(msgpack_loads(again), NAN)
        mag = mag_with(**{"metadata[1].payload": unhex("010000000000f07f")})
        self.assertEqual(dumps(load(mag), format="mag"), mag)
        signaling, quiet = unhex("ca7fa00001"), unhex("ca7fe00001")
        data = golden("optim_sgd_set.primitiv").replace(unhex("ca3e800000"), signaling)
        again = dumps(load(data), format="primitiv")
        self.assertEqual(again.replace(quiet, signaling), data)  # it may become quiet

    def test_every_first_byte(self):
        for codec in CODECS:
            for data in headed(codec.name):
                found = outcome(codec.loads, data)
                with Changed(tensorfmt, "BOARD", True):
                    self.assertEqual(outcome(codec.loads, data), found)
                if not is_refusal(found):
                    value = codec.loads(data)
                    self.assertSame(codec.loads(codec.dumps(value)), value)
        for data in headed("json"):
            for rules in ({}, {"codec": tensorfmt.PythonJson}, {"depth": 1}):
                found = outcome(json_loads, data, **rules)
                takes_more = PYPY and b"_" in data  # PyPy's module json takes \u0_41
                if not is_refusal(found) and not takes_more:
                    self.assertEqual(json_loads(data, **rules), json.loads(data.decode()))

    @about("flat", "zstd")
    def test_every_changed_byte(self):
        for data in damaged(flat_example()):
            outcome(flat_example_loads, data)
        block, skipped = "180000 616263 030000 41 00000000", "502a4d18 02000000 6162"
        for head in ("2400", "640000", "c7" + "00" * 13):
            for data in damaged(unhex("28b52ffd" + head + block + skipped)):
                outcome(zstd_check, data)

    @about("cbor", "msgpack")
    def test_nesting_is_bounded(self):
        deep = tensorfmt.MAX_DEPTH  # boards stop before
        heads = {cbor_loads: "81 c6 9f 9801 b80100 a100", msgpack_loads: "91"}
        for loads, words in heads.items():
            for word in words.split():
                head, tail = unhex(word), b""
                if word == "9f":  # of no length: each has an end
                    tail = b"\xff" * deep
                loads(head * deep + b"\0" + tail)
                for count in (deep + 1, 100000):
                    error = error_of(FormatError, loads, head * count + b"\0")
                    self.assertIn("MAX_DEPTH", error.what)

    @about("cbor", "msgpack")
    def test_options_of_encoders(self):
        Sorted = namedtuple("Sorted", "value sort hex")
        names, numbers = {"bb": 1, "a": {"c": 2}}, {1000: 0, "a": 0}
        for row in (Sorted(names, sort=False, hex="a262626201" "6161a1616302"),
                    Sorted(names, sort=True, hex="a26161a1616302" "62626201"),
                    Sorted(numbers, sort=True, hex="a2616100" "1903e800"),
                    Sorted(numbers, sort="bytes", hex="a21903e800" "616100")):
            self.assertEqual(tohex(cbor_dumps(row.value, sort=row.sort)), row.hex)
        for text, value in UINT32S:
            data = msgpack_dumps(value, typed=True)
            self.assertEqual(tohex(data), text, value)
        for wrong in (-1, 1 << 32, 3.5e38):
            error_of(ValueError, msgpack_dumps, wrong, typed=True)

    @about("cbor", "msgpack")
    def test_refusals(self):
        for row in REFUSED_VALUES:
            error = error_of(row.error_class, row.dumps, row.value)
            self.assertIn(row.words, str(error))
        self.refuses(["4294967296 does not fit 32 bits"], tensorfmt.msgpack_head, "bin", 1 << 32)
        for text in ("8190c0", "8180c0"):  # keys that no dict takes
            error_of(Unsupported, msgpack_loads, unhex(text))
        error_of(TypeError, cbor_loads, 1)
        one = Simple((99,))
        self.assertNotEqual(one, Simple((98,)))
        self.assertNotEqual(one, 99)
        self.assertEqual(len(set([one, 99])), 2)

    @about("json")
    def test_json(self):
        for text in JSON_GOOD:
            value = json.loads(text)
            for data in text.encode(), tensorfmt.json_dumps(value):
                self.assertSame(json_loads(data), value)
                self.assertSame(json_loads(data, tensorfmt.PythonJson), value)
        for row in JSON_ROWS:
            with self.subTest(text=row.text[:30]):
                self.check_json_row(row.text, row.strict)
            with self.subTest(text=row.text[:30], codec="PythonJson"):
                self.check_json_row(row.text, row.lax, tensorfmt.PythonJson)
        self.check_json(b'"\xff"', 1)
        self.check_json(b'["\xc0\xaf"]', 2)
        self.check_json(b'"\xed\xa0\x80"', 1)

    def check_json_row(self, text, wanted, codec=tensorfmt.Json):
        data = text.encode()
        if isinstance(wanted, str):
            self.assertEqual(ascii(json_loads(data, codec)), wanted)
            return
        if text[-2:-1] == "," and PYTHON >= (3, 13):
            wanted -= 1  # json is at the comma there, before behind it
        self.check_json(data, wanted, codec, 3)

    def check_json(self, data, offset, *args):
        before = bytes(7)
        error = error_of(FormatError, read_twice, tensorfmt.read_json, before + data,
                         len(before), len(data), tensorfmt.Schema(), *args)
        self.assertEqual(error.offset, len(before) + offset, error.what)
        self.assertEqual(error.field, "item")

    @about("crc32c")
    def test_crc32c(self):
        for text, data in CRC32C:
            third = len(data) // 3
            begun = crc32c(memoryview(data)[:third])
            self.assertEqual("%08x" % crc32c(data), text, len(data))
            self.assertEqual("%08x" % crc32c(data[third:], begun), text, len(data))

    @about("zstd")
    def test_frames_are_whole(self):
        def check(text):
            zstd_check(unhex(text))

        check("28b52ffd 2001 090000 41")
        for text in ("28", "28b52ffd", "28b52ffd 2001 090000", "28b52ffd 2001 090000 41 28",
                     "28b52ffd 2001 080000 41", "502a4d18 04000000 6162", "00000000"):
            error_of(FormatError, check, text)
        skipped = "502a4d18 02000000 6162"
        for flags in range(256):
            if flags & 0x18:
                continue
            text = self.frame_with(flags)
            check(text + skipped + text)
            error_of(FormatError, check, text + "00")
            error_of(FormatError, check, text[:-2])

    @staticmethod
    def frame_with(flags):
        """Return a frame with this descriptor, in hex: RFC 8878, 3.1.1.1."""
        dictionary = (0, 1, 2, 4)[flags & 3]
        if flags & 0x20:  # a single segment: no window, always a size
            window, size = 0, (1, 2, 4, 8)[flags >> 6]
        else:
            window, size = 1, (0, 2, 4, 8)[flags >> 6]
        head = "28b52ffd %02x" % flags + "00" * (window + dictionary + size)
        text = head + "180000 616263 0300 00 41"
        if flags & 4:
            text += "00000000"  # a checksum
        return text

    @about("tensorbuffers")
    def test_ids_of_names(self):
        made = [(name, [1.0]) for _, name in NAME_IDS]
        file = load(dumps(made, format="tensorbuffers"))
        for text, name in NAME_IDS:
            number = int(text, 16)
            self.assertEqual(tensorfmt.TensorBuffers.hash_name(name), number, name[:20])
            self.assertEqual(file[name].attrs["id"], number, name[:20])


def bytes_of_rows(text):
    """Return the bytes of a text with lines of: position | bytes in hex | what they are."""
    rows = [line.split("|") for line in text.strip().splitlines()]
    return unhex("".join([row[1] for row in rows]))


# Of each slot of flat_example().
FLAT_STRUCT = (("x", "d", 9.0, ""),)
FLAT_ROWS = (
    ("a", "h", 0, ""),
    ("b", "string", None, ""),
    ("c", "I", None, ""),
    ("d", ["string"], [], ""),
    ("e", ["H"], [], ""),
    ("f", FLAT_STRUCT, None, ""),
    ("g", ["H"], [], ""),
    ("h", "I", 7, ""),
    ("i", [FLAT_STRUCT], [], ""),
)


FLAT_VALUES = json.loads("""{
    "a": -2, "b": "hi", "c": 131073, "d": ["", "z"], "e": [25185, 25699, 26213], "f": {"x": 1.5},
    "g": [1, 2, 65535], "h": 7, "i": [{"x": 1.5}, {"x": 1.5}], "j": "none"}""")


def flat_example():
    """Return a FlatBuffer put together by hand: position | bytes."""
    rows = """
          0 | 1c000000 1600 2400                            | root table at 28; vtable: 22, 36
          8 | 0400 0800 0c00 1000 1400 1800 1c00 0000 2000  | slots 0 to 8; 7 is absent
         26 | 0000 18000000 feff 0000                       | vtable at 28 - 24; slot 0 = -2
         36 | 1c000000 01000200 1c000000 34000000           | string, struct, strings, structs
         52 | 50000000 58000000 34000000                    | table, numbers, tables
         64 | 02000000 68690000                             | "hi"
         72 | 02000000 08000000 0c000000 00000000 00000000  | ["", ...
         92 | 01000000 7a000000                             |     ... "z"]
        100 | 03000000 616263646566 0000                    | structs ab cd ef
        112 | 02000000 10000000 0c000000                    | the same table twice
        124 | 0600 0c00 0400 0000                           | its vtable
        132 | 08000000 000000000000f83f                     | slot 0 = 1.5
        144 | 03000000 0100 0200 ffff                       | numbers
    """
    return bytes_of_rows(rows)


def flat_example_loads(data):
    return flat_loads(data, FLAT_ROWS)


# The size of a table as its vtable says, where its fields x and y are, and what they are then.
SLOTS = """
       12      4   8   44332211 6655
       12      4   4   44332211 2211
       12      4   6   44332211 4433
       12      6   4   66554433 2211
       12      0   2   00000000 0000
       12      3   0   33221100 0000
       12      1   1   11000000 0000
        4      4   8   44332211 6655
        0      4   4   44332211 2211
        6      4  10   44332211 8877
    65535      8   8   88776655 6655
       12      9   0   refused
        4      0  11   refused
        4  65535   4   refused
"""


@about("flat")
class FlatBuffersTest(TestCase):
    def test_every_kind_of_field(self):
        data = flat_example()
        found = flat_loads(data, FLAT_ROWS + (("j", "string", "none", ""),))
        self.assertEqual(list(found.items()), list(FLAT_VALUES.items()))
        for end in range(len(data)):
            error_of(FormatError, flat_example_loads, data[:end])
        for kind in ("x", ""):
            unknown = (("a", kind, 0, ""),)
            self.refuses(["no value has the type"], flat_loads, data, unknown)
        skipped = flat_loads(data, (("a", None, 5, ""), ("b", "string", None, "")))
        self.assertEqual(skipped, {"a": 5, "b": "hi"})

    def test_ends_of_tables(self):
        data = unhex("0c000000 0600 0800 0400 0000 08000000 02000000")  # the last field ends it
        narrow, wide = (("x", "I", 0, ""),), (("x", "Q", 0, ""),)
        self.assertEqual(dict(flat_loads(data, narrow)), {"x": 2})
        error_of(FormatError, flat_loads, data[:19], narrow)
        error_of(FormatError, flat_loads, data[:18], narrow)
        error_of(FormatError, flat_loads, data, wide)
        error = error_of(FormatError, load, b"TBS1" + bytes(4) + b"TBS1")
        self.assertEqual((error.offset, error.field), (4, "root"))

    def test_what_is_built(self):
        rows = ("a", "h", 1, ""), ("b", "string", None, ""), ("c", ["string"], [], "")
        flat = tensorfmt.FlatBuilder()
        many = flat.offsets([flat.string("z")] * 50)
        data = flat.finish(flat.table(rows, a=1, c=many))
        self.assertEqual(flat_loads(data, rows), {"a": 1, "b": None, "c": ["z"] * 50})
        self.assertEqual(len(data), 236)

    def test_equal_numbers_of_other_bytes_are_kept_apart(self):
        flat = tensorfmt.FlatBuilder()
        for code, values in ("H", [1, 2]), ("B", [1, 2]), ("d", [0.0]), ("d", [-0.0]):
            row = (("x", [code], None, ""),)
            table = flat.table(row, x=flat.numbers(code, tuple(values)))
            data = flat.finish(table)
            self.assertSame(flat_loads(data, row)["x"], values)

    def test_what_cannot_be_built(self):
        flat = tensorfmt.FlatBuilder()
        rows = ("a", "h", 1, ""), ("b", "string", None, "")
        for place in (0, 5, 5000):
            self.refuses(["there is no place"], flat.table, rows, a=0, b=place)
            self.refuses(["there is no place"], flat.offsets, [place])
        unknown = (("a", "x", 0, ""),)
        self.refuses(["no value has the type"], flat.table, unknown, a=1)

    def test_builders_need_no_order_of_fields(self):
        """The fields of a table in any order, some far away, as other builders may write them."""
        data = bytes_of_rows("""
             0 | 14000000                            | root table at 20
             4 | 0c00 1800 1400 0400 0800 1000       | vtable; where a, b, c, d are
            16 | 00000000 10000000                   | vtable at 20 - 16
            24 | 14000000                            | b: string at 24 + 20
            28 | fbffffffffffffff                    | c = -5
            36 | 07000000 08000000                   | d = 7, a = 8
            44 | 02000000 6f6b00                     | "ok"
        """)
        rows = (("a", "I", 0, ""), ("b", "string", None, ""), ("c", "q", 0, ""), ("d", "i", 0, ""))
        found = flat_loads(data, rows)
        self.assertEqual(list(found.values()), [8, "ok", -5, 7])
        no_room = data[:-1]  # for NUL
        error = error_of(FormatError, read_twice, tensorfmt.Reading.flatbuffer, no_room, 0,
                         len(no_room), rows)
        self.assertEqual((error.what, error.field),
                         ("FlatBuffers: string of 2 bytes, 2 left", "b"))
        far = 4 + (1 << 18)  # what leads to the table is its vtable, too: two times 4
        data = pack("<I", far) + bytes(far - 4) + pack("<i", far)
        self.assertEqual(flat_loads(data, rows[:1])["a"], 0)

    def test_fields_may_overlap_and_lie_behind_their_table(self):
        """As the C++ verifier of FlatBuffers has it: what counts is that they lie in the data."""
        rows = (("x", "I", 0, ""), ("y", "H", 0, ""))
        for line in SLOTS.strip().splitlines():
            facts, wanted = line.split()[:3], line.split()[3:]
            size, x, y = map(int, facts)
            data = pack("<I4HI", 12, 8, size, x, y, 8) + unhex("1122334455667788")
            with self.subTest(size=size, x=x, y=y):
                if wanted == ["refused"]:
                    error_of(FormatError, flat_loads, data, rows)
                    continue
                found = flat_loads(data, rows)
                self.assertEqual(["%08x" % found["x"], "%04x" % found["y"]], wanted)

    def test_tables_of_a_file_may_be_smaller_than_their_fields(self):
        good = dumps({"w": tensor([1, 2], "int16")}, format="tensorbuffers")
        vtable = good.index(pack("<8H", 16, 32, 24, 8, 12, 7, 16, 20))
        table_size, data_type = vtable + 2, vtable + 10
        for place, value in (table_size, 4), (data_type, 16):  # where data_offset is 4
            data = bytearray(good)
            struct.pack_into("<H", data, place, value)
            self.assertTrue(verify(data))
            self.assertEqual(load(data)["w"].tolist(), [1, 2])
            self.assertTrue(list(explain(data)))

    def test_overlapping_vtables_and_strings(self):
        """Each of 1,000 tables has a vtable of its own of 4 KB, that lies in the next one."""
        def tables(count):
            vtables = b"\xfe\x0f" * 4096
            root = 12 + len(vtables)
            data = pack("<I3HH", root, 6, 8, 4, 0) + vtables
            data += pack("<iII", root - 4, 4, count)
            data += pack("<I", 4 * count) * count
            data += pack("<i", len(data) - 12) * count
            return data + bytes(4096)

        def strings(count):  # of 4 KB, each 4 bytes behind the last
            data = pack("<I3HHiII", 12, 6, 8, 4, 0, 8, 4, count)
            data += pack("<I", 4 * count) * count
            return data + b"\3\x10\0\0" * (count + 0x402)

        def read(data, kind):
            rows = (("x", kind, [], ""),)
            return read_twice(tensorfmt.Reading.flatbuffer, data, 0, len(data), rows)["x"]

        TABLE, STRING = [()], ["string"]
        self.assertEqual(len(read(tables(4), TABLE)), 4)
        self.assertEqual(len(read(strings(2), STRING)), 2)
        Overlap = namedtuple("Overlap", "data kind field")
        for row in (Overlap(tables(1000), TABLE, "x[9].table"),
                    Overlap(tables(10), TABLE, "x[6].table"),
                    Overlap(strings(4), STRING, "x[2]")):
            error = error_of(Unsupported, read, row.data, row.kind)
            self.assertIn("overlap", str(error))
            self.assertEqual(error.field, row.field)


# -- [4] reading ---------------------------------------------------------------------------------

CODES = dict(float64="d", float32="f", float16="e", int64="q", int32="i", int16="h", int8="b",
             uint64="Q", uint32="I", uint16="H", uint8="B")


def numbers(dtype, data):
    """Return the elements in little-endian bytes by struct alone, or None where there are none."""
    if dtype == "bool":
        return [byte != 0 for byte in data]
    if dtype == "bfloat16":
        wider = [b"\0\0" + data[at:at + 2] for at in range(0, len(data), 2)]
        return numbers("float32", b"".join(wider))
    if dtype not in CODES:
        return None
    count = len(data) // struct.calcsize("<" + CODES[dtype])
    return list(unpack("<%d%s" % (count, CODES[dtype]), data))


def element_places(shape, strides, first=0):
    """Return where each element of a strided tensor begins, in row-major order."""
    places = [first]
    for count, step in zip(shape, strides):
        places = [at + i * step for at in places for i in range(count)]
    return places


def flat_list(nested, depth):
    level = [nested]
    for _ in range(depth):
        level = [item for part in level for item in part]
    return level


def content(file):
    """Return {name: (dtype, shape, bytes)}, what no conversion may change."""
    found = {}
    for name, item in file.items():
        found[name] = item.dtype, item.shape, item.tobytes()
    return found


def zstd_missing(item):
    return item.attrs.get("encoding") == "zstd" and not ZSTD


def lacks_zstd(file):
    """Tell whether a File has tensors whose values cannot be read here."""
    return bool(list(filter(zstd_missing, file.values())))


class Counting(io.BytesIO):
    """A stream that keeps in `sizes` how many bytes each read asked for."""

    def __init__(self, data):
        super().__init__(data)
        self.sizes = []

    def read(self, size=-1):
        self.sizes.append(size)
        return super().read(size)


HEADS_OF_FILES = [  # and what they are the head of
    (b"", None),
    (b"PK\3\4", None),
    (b"\x93NUMPY", None),
    (b"MAG&", "mag"),
    (b"ZTEN1000", "ztensor"),
    (b"BURN", "burnpack"),
    (b"\x89ZT2\r\n\x1a\n", "ztensor"),
    (b"\0\1\0", "primitiv"),
    # These are no sizes:
    (b"MAG!\1\0\0\0{", "mag"),
    (b"TBS1\0\0\0\0{", "tensorbuffers"),
    (b"\1\0\0\0\0\0\0\0{", "safetensors"),
]


class GoldenTest(FolderCase):
    def check(self, file, wanted):
        self.assertEqual(sorted(file), sorted(wanted))
        self.assertEqual(list(file), list(wanted))
        for name, item in file.items():
            dtype, shape, digits = wanted[name]
            self.assertEqual((item.name, item.dtype, item.shape), (name, dtype, shape))
            self.assertEqual(item.ndim, len(shape))
            if zstd_missing(item):
                error = error_of(Unsupported, item.tobytes)
                self.assertIn("zstandard", error.what)
                continue
            data = item.tobytes()
            self.assertEqual(len(data), item.nbytes)
            self.assertEqual(tohex(data), digits)
            if numbers(dtype, data) is not None:
                GoldenTest.check_numbers(self, item, data)

    def check_numbers(self, item, data):
        wanted = numbers(item.dtype, data)
        self.assertSame(list(item.flat), wanted)
        self.assertSame(flat_list(item.tolist(), item.ndim), wanted)
        if item.strides != tensorfmt.row_major(item.shape, item.itemsize):
            return  # then .data has another order
        found = list(item.data)
        if item.dtype == "bool":
            found = [number != 0 for number in found]
        elif item.dtype in ("float16", "bfloat16"):
            wanted = numbers("uint16", data)
        self.assertSame(found, wanted)

    def test_from_bytes_paths_and_streams(self):
        read = set()
        for kind, title, data, wanted in FILES:
            write_file(self.path, data)
            in_memory = [data, bytearray(data), memoryview(data), io.BytesIO(data), Short(data)]
            sources = [(source, {}, None) for source in in_memory]
            sources.append((self.path, {}, self.path))
            sources.append((self.path, {"mmap": False}, self.path))
            sources.append((Path(self.path), {}, self.path))
            for number, (source, options, path) in enumerate(sources):
                with self.subTest(file=title, source=number), load(source, **options) as file:
                    self.assertEqual((file.format, file.nbytes), (kind, len(data)))
                    self.assertEqual(file.path, path)
                    self.check(file, wanted)
                    if not lacks_zstd(file):
                        read.add(kind)
        for name in READ:
            self.assertIn(name, read, "no golden of this format: add_golden() [2]; "
                          "`python3 test_tensorfmt.py golden FILE` prints the call")
        os.remove(self.path)

    @about()
    def test_the_call_of_a_golden_is_printed(self):
        row = golden_row("seed_basic.mag")
        write_file(self.path, row.data)
        with redirect_stdout(io.StringIO()) as out:
            print_golden(self.path)
        calls = []
        exec(out.getvalue(), {"add_golden": lambda *words: calls.append(words)})
        (kind, _, _, packed, values), = calls
        self.assertEqual((kind, decompress(b64decode(packed))), ("mag", row.data))
        self.assertEqual(read_values(values), row.tensors)

    def test_saved_to_a_path(self):
        for kind, title, data, _ in WRITTEN:
            write_file(self.path, data)
            with self.subTest(file=title), load(self.path) as file:
                wanted = load(data)
                save(self.path, file, format=kind)  # over itself
                with load(self.path, verify=True) as copy:
                    if not lacks_zstd(wanted):
                        self.assertEqual(content(copy), content(wanted))
            os.remove(self.path)

    def test_saved_again_gives_the_same_bytes(self):
        """Of the others, another form becomes the usual one: check_mutant() compares it."""
        for row in WRITTEN:
            if row.title not in AGAIN:
                continue
            options = dict(AGAIN[row.title], format=row.format)
            for source in (row.data, Short(row.data)):
                file, stream = load(source), Short()
                with self.subTest(file=row.title, source=type(source).__name__):
                    self.assertEqual(file.format, row.format)
                    self.assertEqual(dumps(file, **options), row.data)
                    save(stream, file, **options)
                    self.assertEqual(stream.getvalue(), row.data)

    def test_detect(self):
        for row in FILES:
            self.assertEqual(detect(row.data), row.format, row.title)
        for head, kind in HEADS_OF_FILES:
            self.assertEqual(detect(head), kind, head)
        for data_type in (0x100, 0x200, 0x300, 0x400):
            head = pack(">3BH", 0, 1, 0xCD, data_type)
            self.assertEqual(detect(head), "primitiv", head)
        self.assertIsNone(detect(pack(">3BH", 0, 1, 0xCD, 0x500)))

    @about()
    def test_file_is_a_mapping(self):
        from collections.abc import Mapping
        file = load(golden("seed_basic.mag"))
        self.assertIsInstance(file, Mapping)
        self.assertEqual(len(file), 2)
        self.assertIn("x", file)
        self.assertNotIn("z", file)
        self.assertEqual(list(file.keys()), ["x", "y"])
        self.assertEqual(file.get("z", 5), 5)
        self.assertEqual([item.name for item in file.values()], ["x", "y"])
        error = error_of(KeyError, lambda: file["xx"])
        self.assertIn("no tensor 'xx'", str(error))
        self.assertIn("did you mean 'x'?", str(error))
        self.assertEqual(file._ipython_key_completions_(), ["x", "y"])

    @about()
    def test_names_whose_letters_are_composed_otherwise(self):
        one, two = "caf\xe9", "cafe\u0301"
        words = r"Its letters are composed otherwise: 'cafe\u0301', not 'caf\xe9'"
        write_file(self.path, dumps({two: F32, "cafe": F32}, format="ztensor"))
        file = load(self.path)
        error = str(error_of(KeyError, lambda: file[one]))
        self.assertIn(words.replace("\\", "\\\\"), error)  # str() of a KeyError is its repr
        for options in {"only": one}, {"exclude": one}, {"rename": {one: "x"}}:
            self.refuses([words], converted, file, "ztensor", **options)
            self.refuses([words], diff, file, file, **options)
        for line in ("get FILE %s", "explain FILE --tensor %s", "ls FILE --only %s"):
            line = (line % one).replace("FILE", self.path)
            self.assertIn(words, run(*line.split(" "))[2])
        marks = "a" + "\u0301" * 20000 + "\u0316" * 20000  # to sort them takes seconds
        self.assertEqual(tensorfmt.composed(marks), marks)
        self.assertEqual(tensorfmt.composed(two + "\u0316" * 20), one + "\u0316" * 20)

    @about()
    def test_repr_of_a_file(self):
        for names, text in (("", "0 tensors"), ("a", "1 tensor 'a'"),
                            ("abcde", "5 tensors 'a', 'b', 'c', 'd', ...")):
            tensors = dict.fromkeys(names, [1.0])
            made = load(dumps(tensors, format="ztensor"))
            self.assertEqual(repr(made), "<File ztensor: %s>" % text)

    @about()
    def test_closed(self):
        for title in ("seed_basic.mag", "v021_tiny.bpk"):
            write_file(self.path, golden(title))
            for source in (golden(title), io.BytesIO(golden(title)), self.path):
                file = load(source)
                held = list(file.values())[0]
                raw, view = held.raw, held.data
                wanted = list(view)
                file.close()
                file.close()  # what is held stays valid
                self.assertIn("closed", str(error_of(ValueError, held.tobytes)))
                self.assertEqual((len(bytes(raw)), list(view)), (held.nbytes, wanted))
        os.remove(self.path)

    @about()
    def test_wrong_arguments(self):
        data = golden("v021_tiny.bpk")
        error = error_of(TypeError, load, data, layout="packed")
        self.assertIn("layout", str(error))
        error_of(ValueError, load, data, format="onnx")
        texts = io.StringIO("MAG!"), io.TextIOWrapper(io.BytesIO(b"MAG!\xff"))
        for wrong in (5,) + texts:
            error = error_of(TypeError, load, wrong)
            self.assertIn('open(path, "rb")', str(error))
        error = error_of(FormatError, load, data, format="mag")
        self.assertEqual(error.field, "magic")

    @about("burnpack")
    def test_packed_only_by_version_and_length(self):
        packed, aligned = golden("v019_basic.bpk"), golden("v021_tiny.bpk")
        made = dumps(load(packed), format="burnpack")  # it keeps the metadata of burn 0.19
        for data, layout in (packed, "packed"), (made, "aligned"):
            file = load(data)
            self.assertEqual(file.attrs["layout"], layout)
            self.assertTrue(file.metadata["version"].startswith("0.19."))
            self.assertSame(content(file), content(load(packed)))
        for cut, last in ((packed[:-1], "head"), (packed + b"\0", "head"), (made[:-1], "steps")):
            error = error_of(FormatError, load, cut)
            self.assertTrue(error.what.startswith("cut short"))
            self.assertIn(last, error.field)
            error = error_of(FormatError, load, cut, partial=True)
            self.assertEqual(error.field, "metadata.version")
        old = aligned[:81] + bytes(8)  # packed, without the version
        error = error_of(FormatError, load, old)
        self.assertIn("cut short", error.what)
        self.assertEqual(load(old, partial=True).attrs["missing"], ["w"])


class TinyTest(TestCase):
    """A second opinion: .ci/tiny.py, which has nothing of tensorfmt, reads the same values.

    OTHER: older layouts, which it does not read.
    """
    OTHER = {"m012_mixed.mag", "m012_dtypes.mag", "v019_basic.bpk"}

    def test_values(self):
        tiny, read = script(self, "tiny.py"), set()
        files = [row[:3] for row in FILES if row.title not in self.OTHER]
        for name in FORMATS:
            files.append((name, "written", dumps(every_tensor(name), format=name)))
        for kind, title, data in files:
            read.add(kind)
            file, rows = load(data), tiny["load"](data)
            with self.subTest(file=title):
                plain = [name for name, item in file.items()
                         if item.attrs.get("encoding") != "zstd"]
                self.assertEqual(list(rows), plain)
                for name, row in rows.items():
                    self.compare(file[name], *row)
        self.assertEqual(read, set(READ))

    def compare(self, item, dtype, shape, strides, data):
        self.assertEqual(item.shape, tuple(shape))
        if dtype is None:
            self.assertEqual((item.dtype, item.raw), ("qfloat", bytes(data)))
            return
        self.assertEqual(item.dtype, dtype)
        if strides is None:
            self.assertEqual(item.tobytes(), bytes(data))
            return
        places = element_places(shape, strides)
        elements = [data[at:at + item.itemsize] for at in places]
        self.assertEqual(item.tobytes(), b"".join(elements))


@about()
class StreamTest(FolderCase):
    """A stream is as good as a file; what is none is told what to do instead."""

    def test_parts_of_a_stream(self):
        raw = bytes(range(256)) * 16384  # 4 MiB
        keys = [
            KEYS[:, 3],
            KEYS[4::-4, 5],
            KEYS[::4095],
            KEYS[::-1, ::2],
            KEYS[::3, :9],
        ]
        for kind, options in ("ztensor", {"data_endianness": "big"}), ("safetensors", {}):
            made = tensor(raw, "uint16", (4096, 512))
            data = dumps({"w": made}, format=kind, **options)
            stream = Counting(data)
            wanted, item = load(data)["w"], load(stream)["w"]
            for key in keys:
                with self.subTest(format=kind, key=key):
                    del stream.sizes[:]
                    self.assertEqual(item[key].tobytes(), wanted[key].tobytes())
                    self.assertLess(max(stream.sizes), (1 << 20) + 1)

    def test_streams_whose_seek_returns_nothing(self):
        class Silent(io.BytesIO):
            def seek(self, *args):
                super().seek(*args)
        for _, title, data, wanted in FILES:
            with self.subTest(file=title):
                GoldenTest.check(self, load(Silent(data)), wanted)
                self.assertEqual(bool(verify(Silent(data))), bool(verify(data)))

    def test_a_failed_read_leaves_a_stream_where_it_was(self):
        class Failing(io.BytesIO):
            answer = None

            def read(self, size=-1):
                data = super().read(size)
                if isinstance(self.answer, Exception):
                    raise self.answer
                return data if self.answer is None else self.answer
        data = saved(tensor(make_bytes(9000), "uint8"))
        for answer, error_class in (OSError(5, "no disk"), OSError), (b"", FormatError):
            for place in 0, len(data):
                stream = Failing(data)
                stream.seek(place)
                item = load(stream)["w"]
                stream.answer = answer
                error_of(error_class, item.tobytes)
                self.assertEqual(stream.tell(), place)

    def test_what_is_to_be_entered_first_is_no_source(self):
        """As OpenFile of fsspec: what its open() returns is nobody's to close."""
        class Entered:
            def open(self, mode="rb"):
                return io.BytesIO(golden("seed_basic.mag"))

            def __enter__(self):
                return self.open()

            def __exit__(self, *error):
                pass
        for call in load, verify, detect:
            self.assertIn("a source is a path", str(error_of(TypeError, call, Entered())))
        with Entered() as stream:
            self.assertEqual(len(load(stream)), 2)

    def test_an_index_is_longer_than_one_window_of_a_stream(self):
        for _, title, data, wanted in FILES:
            for window in (16, 18, 26, 34, 50, 64, 100, 130, 256):
                with self.subTest(file=title, window=window), Changed(tensorfmt, "WINDOW", window):
                    GoldenTest.check(self, load(io.BytesIO(data)), wanted)
                    GoldenTest.check(self, load(Short(data)), wanted)
        stream = Counting(dumps(many_tensors(300), format="mag"))  # records of some bytes each
        load(stream)
        whole, *others = sorted(stream.sizes, reverse=True)  # of which there is a checksum
        self.assertEqual(others[0], tensorfmt.WINDOW)
        self.assertGreater(whole, 6 * others[0])
        self.assertLess(len(others), 20)

    def test_errors_name_streams(self):
        stream = io.BytesIO(golden("seed_basic.mag")[:60])
        for name, path in (("model.mag", "model.mag"), (7, None), (None, None)):
            stream.name = name
            error = error_of(FormatError, load, stream)
            self.assertEqual(error.path or None, path)
            if path:
                self.assertTrue(str(error).startswith(path + ": "))

    def test_members_of_a_zip_file(self):
        import zipfile
        _, _, data, wanted = golden_row("seed_basic.mag")
        with zipfile.ZipFile(self.path, "w") as made:
            made.writestr("member.mag", data, zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(self.path) as made, made.open("member.mag") as stream:
            if PYTHON > (3, 6):  # there it does not seek
                file = load(stream)
                self.assertEqual(file.path, "member.mag")
                GoldenTest.check(self, file, wanted)
        with zipfile.ZipFile(self.path) as made:
            if PYTHON >= (3, 9):  # before, it opens as "r" or "w"
                GoldenTest.check(self, load(zipfile.Path(made, "member.mag")), wanted)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes that have a path")
    def test_pipes_do_not_seek(self):
        path = self.at("pipe")
        os.mkfifo(path)
        keep = os.open(path, os.O_RDWR)
        self.addCleanup(os.close, keep)
        self.refuses((path, "load(stream.read())"), load, path)
        with open(path, "rb") as pipe:
            self.assertRaises(OSError, load, pipe)

    def test_closed_streams(self):
        stream = io.BytesIO()
        stream.close()
        self.refuses(["closed"], load, stream)

    def test_missing_files_and_gzip_streams(self):
        _, _, data, wanted = golden_row("seed_basic.mag")
        packed = gzip.compress(data)
        stream = gzip.open(io.BytesIO(packed))
        GoldenTest.check(self, load(stream), wanted)
        absent, cut = self.at("absent.zt"), packed[:-20]
        for call in (load, verify, detect):
            error_of(FileNotFoundError, call, absent)
            error_of(EOFError, call, gzip.open(io.BytesIO(cut)))  # the stream's own


@about()
class PickleTest(FolderCase):
    """A pickle leads to the same bytes or says that they have changed; a copy needs no file."""

    @about(ONLY)
    def test_pickling(self):
        for _, title, data, wanted in FILES:
            write_file(self.path, data)
            with self.subTest(file=title), load(self.path) as file:
                with pickle.loads(pickle.dumps(file)) as again:
                    GoldenTest.check(self, again, wanted)
                for item in file.values():
                    if not zstd_missing(item):
                        self.check_pickle(item)

    def check_pickle(self, item):
        again = pickle.loads(pickle.dumps(item))
        for name in ("name", "dtype", "shape", "attrs", "offset"):
            self.assertSame(getattr(again, name), getattr(item, name), name)
        self.assertEqual(again.tobytes(), item.tobytes())

    def test_what_is_in_memory_is_pickled_by_value(self):
        item = tensor([[1, 2, 3], [4, 5, 6]], "int16")
        turned = load(golden("param_3x2x2_stat.primitiv"))["value"]
        cast = tensor([[1, 2]]).astype("float16")
        for held in (item, item[:, ::-1], item[1], item[:, 1:2], turned, cast):
            data = pickle.dumps(held)
            got = pickle.loads(data)
            self.assertEqual(got.tolist(), held.tolist())
            self.assertEqual(got.shape, held.shape)
            self.assertLess(len(data), 600)

    def test_a_pickle_keeps_the_options_of_load(self):
        write_file(self.path, golden("v021_tiny.bpk")[:81] + bytes(8))
        with load(self.path, partial=True) as file, pickle.loads(pickle.dumps(file)) as again:
            self.assertEqual(again.attrs["missing"], ["w"])

    def test_pickles_are_small_and_know_their_file(self):
        zeros = tensor(bytes(400000), "float32", (100, 1000))
        save(self.path, {"w": zeros})
        with load(self.path) as file:
            whole = pickle.dumps(file)
            part = pickle.dumps(file["w"][3:5, ::10])
        self.assertTrue(max(len(part), len(whole)) < 1000)
        first, second = pickle.loads(part), pickle.loads(part)
        self.assertEqual((first.shape, first.tobytes()), ((2, 100), bytes(800)))
        self.assertIs(first.source, second.source)
        with pickle.loads(whole) as file:  # whoever closes it closes no other
            self.assertEqual(file["w"][0, 0], 0.0)
        self.assertEqual(second[1, 0], 0.0)
        save(self.path, {"w": [1.0]})
        del first, second, file
        gc.collect()  # on PyPy they live on
        self.check_changed(part)
        self.check_changed(whole)
        memory = pickle.dumps(zeros[5])
        self.assertTrue(3900 < len(memory) < 5000)  # its own elements only
        error_of(TypeError, pickle.dumps, load(golden("seed_basic.mag")))

    def check_changed(self, data):
        """Assert that what was pickled is not read from a file that has changed."""
        self.refuses([self.path + " has changed since it was opened"],
                     lambda: pickle.loads(data)[:].tolist())

    def test_a_pickle_knows_where_the_file_was(self):
        go_to(self, self.folder)
        save("a.mag", {"w": tensor([1.0], "float32")})
        with load("a.mag", mmap=False) as file:
            os.chdir(HERE)
            with pickle.loads(pickle.dumps(file)) as again:
                self.assertEqual(again["w"].tolist(), [1.0])
                self.assertFalse(again["w"].zero_copy)

    def test_a_pickle_tells_its_file_from_another_of_the_same_size(self):
        for mapped in True, False:
            save(self.path, {"w": tensor([1.0, 2.0], "float32")})
            with load(self.path, mmap=mapped) as file:
                pickles = [pickle.dumps(file["w"]), pickle.dumps(file)]
            before = os.stat(self.path)
            save(self.path, {"w": tensor([3.0, 4.0], "float32")})
            os.utime(self.path, (before.st_atime, before.st_mtime + 2))
            self.assertEqual(os.path.getsize(self.path), before.st_size)
            gc.collect()  # on PyPy what was opened lives on
            for data in pickles:
                self.check_changed(data)

    def test_pickles_know_the_file_by_more_than_its_size_and_time(self):
        def put_another(before):
            other = self.path + "2"
            save(other, {"w": [2.0]}, format="ztensor")
            os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
            os.replace(other, self.path)

        def write_in_place(before):  # a nanosecond later: as a float it is the same time
            write_file(self.path, saved([2.0]))
            os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))

        for change in put_another, write_in_place:
            for mapped in True, False:
                save(self.path, {"w": [1.0]})
                before = os.stat(self.path)
                with load(self.path, mmap=mapped) as file:
                    whole = pickle.dumps(file)
                    parts = [pickle.dumps(file["w"]), pickle.dumps(file["w"][:])]
                self.assertEqual(pickle.loads(whole)["w"].tolist(), [1.0])
                for data in parts:
                    self.assertEqual(pickle.loads(data)[:1].tolist(), [1.0])
                gc.collect()  # on PyPy what was opened lives on
                if os.name == "nt" and mapped:
                    continue
                change(before)
                for data in [whole] + parts:
                    with self.subTest(change=change.__name__, mapped=mapped):
                        self.check_changed(data)

    def test_copies_need_no_path(self):
        tensors = {"w": F32, "v": tensor([[3, 4], [5, 6]], "float32")}
        for mapped in True, False:
            save(self.path, tensors)
            with load(self.path, mmap=mapped) as file:
                if os.name == "posix" or not mapped:  # Windows keeps a mapped file
                    save(self.path, {"w": tensor([9.0] * 9, "float32")})
                item = file["v"]
                for made in (copy(item), deepcopy(item), copy(file)["v"]):
                    self.assertEqual(made.tolist(), [[3, 4], [5, 6]])
                    self.assertEqual(made.attrs, item.attrs)
                again, part = deepcopy([file, item])
                self.assertIs(type(again), type(file))
                self.assertEqual(list(again), list(file))
                self.assertIs(again["v"], part)
                again.metadata["k"] = 1
                again.attrs["k"] = 1
                self.assertNotIn("k", file.metadata)
                self.assertNotIn("k", file.attrs)
            error_of(ValueError, part.tolist)  # closed with it

    def test_a_copy_has_its_own_bytes_and_custom_attributes(self):
        data = bytearray(8)
        numbers = memoryview(data).cast("f")
        item = deepcopy(tensor(numbers, custom={"note": ["x"]}))
        item.custom["note"].append("y")
        data[:] = b"\xff" * 8
        self.assertEqual(item.tolist(), [0.0, 0.0])
        self.assertEqual(item.custom, {"note": ["x", "y"]})


@about()
class FileTest(FolderCase):
    def test_errors_pickle_and_are_one_line(self):
        write_file(self.path, golden("v021_tiny.bpk")[:60])
        found = error_of(FormatError, load, self.path)
        made = Unsupported("what", 5, "field", "a\nb", "path", "sizes")
        for error in found, made:
            again = pickle.loads(pickle.dumps(error))
            text = str(error)
            self.assertIs(type(again), type(error))
            self.assertEqual(vars(again), vars(error))
            self.assertEqual(str(again), text)
            self.assertNotIn("\n", text)
            self.assertTrue(text.startswith(error.path + ": "))
            self.assertIn("(at 0x%x, %s)" % (error.offset, error.field), text)
        self.assertIn("tensor 'a\\nb': what", str(made))

    def test_the_text_of_an_error_is_ascii(self):
        for error_class in FormatError, Unsupported:
            error = error_class("\u03b1", 5, "\u03b2", "\u03b3", "\u03b4\U0001f600")
            text = "\u03b4\U0001f600: tensor '\u03b3': \u03b1 (at 0x5, \u03b2)"
            self.assertEqual(str(error), text.encode("ascii", "backslashreplace").decode())
        bad = safetensors_file('{"\u65e5\u672c":{"dtype":"F32","shape":[9],"data_offsets":[0,8]}}')
        path = self.at("gr\xf6\xdfe.safetensors")
        write_file(path, bad)
        error = error_of(FormatError, load, path)
        self.assertEqual((error.tensor, error.path), ("\u65e5\u672c", path))
        self.assertIn("tensor '\\u65e5\\u672c'", str(error))
        str(error).encode("ascii")

    @unittest.skipUnless(not PYPY, "PyPy has no counts of references")
    def test_what_is_dropped_is_closed_without_the_collector(self):
        """Whatever was done with it, and whether that was an error."""
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        for _, title, data, _ in FILES:
            changed = data[:-1] + bytes([data[-1] ^ 1])
            for written in data, changed:
                write_file(self.path, written)
                with self.subTest(file=title, changed=written is changed), \
                        warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        self.use(self.path)
                    except FormatError:
                        pass
                    self.assertEqual(descriptors_of(self.path), 0)
                    self.assertEqual(list(map(str, caught)), [])

    @staticmethod
    def use(path):
        file, other = load(path), load(path, mmap=False)
        calls = [
            lambda: repr(file),
            file._repr_html_,
            lambda: file["no such name"],
            lambda: load(path, format="mag"),
            lambda: load(path, verify=True),
            lambda: str(verify(path)),
            lambda: str(explain(path)),
        ]
        for opened in file, other:
            calls += [item.tolist for item in opened.values()]
        for call in calls:
            try:
                call()
            except (ValueError, KeyError):
                pass

    def test_threads_share_a_file(self):
        from time import sleep
        save(self.path, dict(("t%d" % i, [float(i)] * 50) for i in range(20)))
        data = read_file(self.path)

        class Slow(Short):
            def seek(self, *args):
                there = super().seek(*args)
                sleep(0)  # another thread may come here
                return there

        def work(number, items, rounds=20):
            for i in range(rounds):
                item = items["t%d" % ((i + number) % 20)]
                self.assertEqual((item.tolist(), item.attrs["encoding"]),
                                 ([float(item.name[1:])] * 50, "raw"))

        def work_until_closed(number, file):
            try:
                work(number, file, 1 << 30 if number else 20)
            except ValueError as error:
                self.assertEqual(str(error).split(": ")[-1], "the File is closed")
            finally:
                file.close()
        for source in (self.path, data, Slow(data)):
            for mapped in (True, False) * 3:
                with self.subTest(source=source, mapped=mapped), load(source, mmap=mapped) as file:
                    items = file
                    if source == self.path:  # one that is opened by its first use
                        items = pickle.loads(pickle.dumps(dict(file)))
                    in_threads(lambda number: work(number, items))  # noqa: B023
                    in_threads(lambda number: work_until_closed(number, file))  # noqa: B023

    def test_files_that_change_underneath(self):
        raw = make_bytes(50000)
        data = saved(tensor(raw, "uint8"))
        for mapped, used in ((True, True), (True, False), (False, True), (False, False)):
            for change in ("grown", "replaced", "truncated"):
                write_file(self.path, data)
                with self.subTest(mapped=mapped, used=used, change=change), load(
                        self.path, mmap=mapped) as file:
                    if used:
                        self.assertEqual(file["w"].raw[0], raw[0])
                    if change == "grown":
                        write_file(self.path, data + bytes(9))
                    elif os.name != "nt" and change == "replaced":
                        save(self.path, {})
                    elif change == "truncated" and not mapped:  # there: SIGBUS
                        write_file(self.path, data[:20000])
                        error = error_of(FormatError, file["w"].tobytes)
                        self.assertIn("shrunk", error.what)
                        continue
                    self.assertEqual(file["w"].tobytes(), raw)

    def test_a_write_into_a_view_stays_in_memory(self):
        import mmap
        usual, refused = mmap.mmap, []

        def stubborn(number, nbytes, **way):  # as where there is not so much memory
            way_alone = dict(way)
            way_alone.pop("trackfd", None)
            if way_alone in refused:
                raise OSError(12, "Cannot allocate memory")
            return usual(number, nbytes, **way)

        for way in {"access": 3}, {"flags": 0x4002}, {"access": 1}:
            path = self.path + str(len(refused))  # of its own: a mapping may outlive its file
            save(path, {"w": tensor(bytes(1 << 22), "uint8")}, format="ztensor")
            data = read_file(path)
            with Changed(mmap, "mmap", stubborn), load(path) as file, self.subTest(**way):
                item = file["w"]
                raw = item.raw
                self.assertTrue(item.zero_copy)
                self.assertTrue(raw.readonly or PYTHON < (3, 8))
                try:
                    memoryview(raw.obj)[100] = 7
                except TypeError:
                    self.assertEqual(way, {"access": 1})
                else:
                    at = 100 - item.offset
                    self.assertEqual((raw[at], item[at]), (7, 7))
                self.assertEqual(read_file(path), data)
            refused.append(way)
        with Changed(mmap, "mmap", stubborn), load(path) as file:  # a device that cannot map
            self.assertEqual((file["w"].zero_copy, file["w"][5]), (False, 0))


class Bare:
    """A stream that has no hash, and to which nothing can refer weakly."""

    __slots__ = ("read", "seek", "tell")
    __hash__ = None

    def __init__(self, stream):
        self.read = stream.read
        self.seek = stream.seek
        self.tell = stream.tell


class Meeting(io.BytesIO):
    """A stream whose first read waits until another thread has moved it, and that one for it.

    `call` is what the other thread does; `result`: what comes of it. Where it has to wait for its
    turn, the first goes on after some milliseconds.
    """

    call = other = result = None

    def read(self, n=-1):
        from threading import Event, Thread, current_thread
        if self.call is not None:
            self.moved = Event()
            self.done = Event()
            self.other = Thread(target=self.run, args=(self.call,))
            self.call = None
            self.other.start()
            self.moved.wait(0.03)
            try:
                return super().read(n)
            finally:
                self.done.set()
        if current_thread() is self.other:
            self.moved.set()
            self.done.wait(0.03)
        return super().read(n)

    def run(self, call):
        try:
            self.result = call()
        except Exception as error:
            self.result = repr(error)


class Held:
    """With it, another thread is inside of a function that it replaces, and stays there."""

    def __init__(self, owner, name, call):
        from threading import Event, Thread
        usual = getattr(owner, name)

        def wait(*args, **options):
            self.inside.set()
            self.go_on.wait(9)
            return usual(*args, **options)

        self.inside = Event()
        self.go_on = Event()
        self.changed = Changed(owner, name, wait)
        self.thread = Thread(target=call)

    def __enter__(self):
        with self.changed:
            self.thread.start()
            self.inside.wait(0.5)  # for ever, where nothing calls it any more
        return self

    def __exit__(self, *error):
        self.go_on.set()
        self.thread.join()


@about("ztensor")
class SourceTest(FolderCase):
    """Whatever threads, forks, streams and closed files do: the right bytes, or a ValueError."""

    TENSORS = {name: tensor([ord(name)] * 9, "int32") for name in "abc"}
    ELSEWHERE = "ValueError: another process opened this stream"

    def setUp(self):
        super().setUp()
        self.data = dumps(self.TENSORS, format="ztensor", checksum="crc32c")
        write_file(self.path, self.data)

    def open_stream(self):
        stream = open(self.path, "rb")
        self.addCleanup(stream.close)
        return stream

    @staticmethod
    def names_of_fields(source):
        return [field.name for field in explain(source)]

    def without_pread(self):
        """Take os.pread away until the end of the test, as on Windows."""
        if hasattr(os, "pread"):
            self.addCleanup(setattr, os, "pread", os.pread)
            del os.pread

    def test_a_stream_is_read_from_its_start(self):
        """It stands there or at its end: who means another place is told how to say it."""
        def converts(source):
            return convert(source, io.BytesIO(), format="safetensors", drop=True,
                           dense=True, cast="float32")

        def differs(source):
            return diff(source, self.data)

        def differs_from_itself(source):
            return diff(source, source)

        calls = (load, verify, detect, self.names_of_fields, differs,
                 differs_from_itself, converts)
        for _, title, data, _ in FILES[::5]:
            if lacks_zstd(load(data)):
                continue
            ends = 0, len(data)
            for at in ends + (1, len(data) - 1, len(data) + 1):
                for call in calls:
                    stream = io.BytesIO(data)
                    stream.seek(at)
                    with self.subTest(file=title, at=at, call=call.__name__):
                        if at in ends:
                            self.assertEqual(repr(call(stream)), repr(call(data)))
                        else:
                            self.refuses(["seek(0), or load(stream.read())", str(at)], call, stream)
                        self.assertEqual((stream.tell(), stream.closed), (at, False))

    def test_the_second_of_two_files(self):
        for row in SAVED:
            newest = {}
            if row.newest:
                newest["version"] = row.newest
            self.check_second_file(row)
            self.check_second_file(row, **newest)

    def check_second_file(self, row, **options):
        name = (row.names or ["w"])[0]
        stream = io.BytesIO()
        with self.subTest(format=row.name, **options):
            for value in 1.0, 2.0:
                start = stream.tell()
                made = {name: tensor([value], "float32")}
                save(stream, made, format=row.name, **options)
            stream.seek(start)
            self.refuses(["load(stream.read())"], load, stream)
            self.assertEqual(load(stream.read())[name].tolist(), [2.0])

    def test_reads_put_the_stream_back(self):
        class Broken(io.BytesIO):
            def read(self, n=-1):
                if self.getvalue()[self.tell():self.tell() + 1] == b"b":
                    raise OSError("the line is cut")
                return super().read(n)
        stream = Broken(self.data)
        with load(stream) as file:
            for at in 0, 5, len(self.data), 5000:
                stream.seek(at)
                self.assertEqual(file["a"].tolist(), [97] * 9)
                self.assertEqual(str(error_of(OSError, file["b"].tolist)), "the line is cut")
                self.assertEqual(stream.tell(), at)
        self.refuses(["the File is closed"], file["a"].tolist)
        self.assertFalse(stream.closed)

    def test_files_on_one_stream_take_turns(self):
        """Right values and no false error, whatever else is done with the stream meanwhile."""
        Other = namedtuple("Other", "call wanted")  # call(second File, stream)
        others = [
            Other(lambda two, one: two["b"].tolist(), [98] * 9),
            Other(lambda two, one: two["b"][3], 98),
            Other(lambda two, one: list(load(one)), ["a", "b", "c"]),
            Other(lambda two, one: load(one)["c"].tolist(), [99] * 9),
            Other(lambda two, one: bool(verify(one)), True),
            Other(lambda two, one: detect(one), "ztensor"),
            Other(lambda two, one: len(self.names_of_fields(one)) > 9, True),
            Other(lambda two, one: dumps(two, format="ztensor", checksum="crc32c"), self.data),
            Other(lambda two, one: two.close(), None),
        ]
        for bare in False, True:
            for number, other in enumerate(others):
                for in_load in False, True:
                    with self.subTest(bare=bare, call=number, in_load=in_load):
                        self.check_turns(other, bare, in_load)

    def check_turns(self, other, bare, in_load):
        given = stream = Meeting(self.data)
        if bare:
            given = Bare(stream)
        first, second = load(given), load(given)
        stream.call = lambda: other.call(second, given)
        if in_load:
            first = load(given)
        self.assertEqual(first["a"].tolist(), [97] * 9)
        stream.other.join()
        self.assertEqual((stream.result, stream.tell()), (other.wanted, 0))

    def test_streams_that_are_gone_leave_nothing(self):
        load(io.BytesIO(self.data))
        gc.collect()
        kept = len(tensorfmt.SharedTurn.known)
        stream = io.BytesIO(self.data)
        files = [load(stream), load(stream)]
        self.assertEqual(len(tensorfmt.SharedTurn.known), kept + 1)
        files[0].close()
        self.assertEqual(files[1]["b"].tolist(), [98] * 9)
        files[1].close()
        gc.collect()
        # PyPy takes several rounds: others may be gone as well.
        self.assertLessEqual(len(tensorfmt.SharedTurn.known), kept)

    def test_a_file_that_others_move(self):
        """As a child of fork() does, which has the same position."""
        class Moved(io.FileIO):
            def read(self, n=-1):
                os.lseek(self.fileno(), 0, os.SEEK_SET)
                return super().read(n)

        wanted = [item.tolist() for item in self.TENSORS.values()]
        with Changed(builtins, "open", lambda path, *args: Moved(path)):
            read = load(self.path, mmap=False)
            pickled = pickle.dumps(load(self.path, mmap=False))
            again = pickle.loads(pickled)
        for file in read, again:
            found = [item.tolist() for item in file.values()]
            self.assertEqual(found, wanted)
            file.close()

    @unittest.skipUnless(hasattr(os, "fork") and hasattr(os, "pread"), "no fork or no pread")
    def test_a_stream_that_a_fork_moves(self):
        """No File of it need be there when it forks."""
        wanted = {tuple(item.tolist()) for item in self.TENSORS.values()}
        for mode, buffering in ("rb", 0), ("rb", -1), ("r+b", 0), ("r+b", -1):
            with self.subTest(mode=mode, buffering=buffering), \
                    open(self.path, mode, buffering) as stream, moved_by_fork(stream):
                found = set()
                for _ in range(300):
                    file = load(stream)
                    found.update([tuple(item.tolist()) for item in file.values()])
                self.assertEqual(found, wanted)
                self.assertTrue(verify(stream))
                stream.close()
                with open(self.path, "rb") as other:  # it may have the same number
                    self.refuses(["closed"], file["a"].tolist)
                    self.assertEqual(load(other)["a"][0], 97)

    def test_a_stream_that_is_yet_to_be_written(self):
        path = self.at("new")
        with open(path, "w+b") as stream:
            stream.write(self.data)
            file = load(stream)
            self.assertEqual(file["b"].tolist(), [98] * 9)
            stream.seek(file["b"].offset)
            stream.write(bytes(4))
            self.assertEqual(file["b"].tolist(), [0] + [98] * 8)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forks_read_files(self):
        mapped, read = load(self.path), load(self.path, mmap=False)
        again = pickle.loads(pickle.dumps(read))
        for file in mapped, read, again:
            self.addCleanup(file.close)

            def use():
                return [file["b"][0], in_fork(file["c"].tolist), file["a"][8]]  # noqa: B023
            self.assertEqual(in_fork(use), repr([98, repr([99] * 9), 97]))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forks_refuse_streams(self):
        opened = load(self.open_stream())
        self.addCleanup(opened.close)
        in_memory, bare = load(io.BytesIO(self.data)), load(Bare(io.BytesIO(self.data)))
        for file in opened, in_memory, bare:
            calls = [
                file["b"].tolist,
                lambda: file["b"][1],  # noqa: B023
                lambda: dumps(file, format="ztensor"),  # noqa: B023
                lambda: diff(file, self.data),  # noqa: B023
            ]
            for call in calls:
                self.assertIn(self.ELSEWHERE, in_fork(call))
                self.assertIn(self.ELSEWHERE, in_fork(lambda: in_fork(call)))  # noqa: B023
            self.assertEqual(file["b"].tolist(), [98] * 9)  # here it is right all the time

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forks_refuse_a_stream_that_was_used(self):
        stream = self.open_stream()
        opened = load(stream)
        self.addCleanup(opened.close)
        for call in load, verify, detect, self.names_of_fields:
            self.assertIn(self.ELSEWHERE, in_fork(lambda: call(stream)))  # noqa: B023
        self.assertIn("open and load it again in this one", in_fork(opened["a"].tolist))
        self.assertEqual(in_fork(lambda: load(self.open_stream())["b"][0]), "98")

        def close_and_use():
            opened.close()
            return opened["a"][0]
        self.assertIn("the File is closed", in_fork(close_and_use))
        self.assertEqual(opened["a"][0], 97)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forks_of_a_thread(self):
        read, opened = load(self.path, mmap=False), load(self.open_stream())
        self.addCleanup(read.close)
        self.addCleanup(opened.close)
        found = []

        def fork(number):
            found.append(in_fork(read["b"].tolist))
            found.append(in_fork(opened["b"].tolist))
        in_threads(fork, 1)
        self.assertEqual(found[0], repr([98] * 9))
        self.assertIn(self.ELSEWHERE, found[1])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forks_without_pread(self):
        self.without_pread()
        with load(self.path, mmap=False) as file:
            self.assertIn(self.ELSEWHERE, in_fork(file["b"].tolist))
            self.assertEqual(file["b"].tolist(), [98] * 9)

    def write_shards(self):
        """Return the path of the index of a model in shards."""
        save(self.at("s.safetensors"), self.TENSORS)
        index = {"weight_map": dict.fromkeys(self.TENSORS, "s.safetensors")}
        path = self.at("m" + INDEX)
        write_file(path, json.dumps(index).encode())
        return path

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_fork_while_another_thread_reads(self):
        """The child does not wait for a thread that it has not."""
        class Slow(io.FileIO):
            read = io.FileIO.read

        with Changed(builtins, "open", lambda path, *args: Slow(path)):
            read = load(self.path, mmap=False)
        self.addCleanup(read.close)
        stream = Short(self.data)
        opened = load(stream)
        pickled = pickle.loads(pickle.dumps(read["b"]))
        with Changed(tensorfmt, "OPEN_SHARDS", 0):
            model = load(self.write_shards())
            shard = model["b"]  # whose file is opened for each read
        self.addCleanup(model.close)
        calls = [read["b"].tolist, pickled.tolist, shard.tolist]
        wanted = [98] * 9
        Inside = namedtuple("Inside", "owner name call")  # what the other thread is inside of
        for row in (Inside(Short, "read", opened["b"].tolist),
                    Inside(Slow, "read", read["b"].tolist),
                    Inside(tensorfmt, "open_path", pickled.tolist),
                    Inside(tensorfmt, "open_path", shard.tolist)):
            with self.subTest(inside=row.name, of=row.owner.__name__), Held(*row):
                for call in calls:
                    self.assertEqual(in_fork(call), repr(wanted))
                self.assertIn(self.ELSEWHERE, in_fork(opened["b"].tolist))
                self.assertIn(self.ELSEWHERE, in_fork(lambda: load(stream)))
                self.assertEqual(in_fork(opened.close), "None")
                self.assertEqual(in_fork(lambda: load(io.BytesIO(self.data))["b"][0]), "98")
        for call in calls:
            self.assertEqual(call(), wanted)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_workers_of_a_fork(self):
        from multiprocessing import get_context
        file, opened = load(self.path, mmap=False), load(self.open_stream())
        INHERITED.update(file, stream=opened["b"])
        self.addCleanup(INHERITED.clear)
        self.addCleanup(file.close)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are threads
            pool = get_context("fork").Pool(2)
        try:
            found = pool.map(value_inherited, "abc" * 20)
            self.assertEqual(found, [97, 98, 99] * 20)
            error = error_of(ValueError, pool.map, value_inherited, ["stream"])
            self.assertIn("another process opened this stream", str(error))
        finally:
            pool.terminate()
            pool.join()

    @unittest.skipUnless(hasattr(os, "pread"), "no pread")
    def test_a_file_that_is_closed_while_it_is_read(self):
        """Its number may be that of another file when the bytes are read."""
        other = self.at("other")
        write_file(other, bytes(len(self.data)))
        usual, numbers = os.pread, []

        def close_first(number, nbytes, offset):
            file.close()
            return usual(number, nbytes, offset)

        def another_file(number, nbytes, offset):
            file.close()
            numbers.extend([os.open(other, os.O_RDONLY), number])
            return usual(number, nbytes, offset)
        for late in close_first, another_file:
            with load(self.path, mmap=False) as file, Changed(os, "pread", late):
                self.refuses(["the File is closed"], file["b"].tolist)
            self.refuses(["the File is closed"], file["b"].tolist)
        self.assertEqual(numbers, numbers[:1] * 2)
        os.close(numbers[0])

    @unittest.skipUnless(hasattr(os, "pread"), "no pread")
    def test_a_file_that_gives_a_part_at_a_time(self):
        usual, asked = os.pread, []

        def short(number, nbytes, offset):
            asked.append((nbytes, offset))
            return usual(number, min(nbytes, 7), offset)

        with load(self.path, mmap=False) as file, Changed(os, "pread", short):
            self.assertEqual(file["c"].tolist(), [99] * 9)
        start = asked[0][1]
        wanted = [(36 - n, start + n) for n in range(0, 36, 7)]
        self.assertEqual(asked, wanted)

    @unittest.skipUnless(hasattr(os, "pread"), "no pread")
    def test_a_file_that_gives_nothing(self):
        def nothing(number, nbytes, offset):
            return b""

        with load(self.path, mmap=False) as file:
            with Changed(os, "pread", nothing):
                error = error_of(FormatError, file["c"].tolist)
                self.assertIn("shrunk", error.what)
            self.assertEqual(file["c"].tolist(), [99] * 9)

    def test_without_pread(self):
        self.without_pread()

        def read_all(number):
            for i in range(60):
                name = "abc"[(i + number) % 3]
                self.assertEqual(items[name].tolist(), [ord(name)] * 9)
        for mapped in True, False:
            with load(self.path, mmap=mapped) as file:
                self.assertEqual([item[0] for item in file.values()], [97, 98, 99])
                items = pickle.loads(pickle.dumps(dict(file)))
                in_threads(read_all)
            self.refuses(["the File is closed"], file["a"].tolist)
        self.assertTrue(verify(self.path, mmap=False))
        if not PYPY:
            del items, file
            self.assertEqual(descriptors_of(self.path), 0)


# -- [5] round trips -----------------------------------------------------------------------------

SHAPES = [tuple(json.loads(word)) for word in """
    []
    [1] [5] [0]
    [2,3] [3,1] [1,4] [0,3] [2,0]
    [2,3,4] [3,1,2] [2,0,2]
    [2,1,3,2]
    [1,2,1,2,3]
    [2,1,2,1,2,2] [0,1,1,1,1,0]
    [2,1,2,1,2,1,2,2]
""".split()]  # what a format cannot hold is left out below
SHAPES.append((2,) + (1,) * 62 + (3,))
SHAPES.append((1,) * 69 + (2,))
SPECIAL = {  # bit patterns that a careless copy through numbers would change
    "float16": "0000 0080 007c 00fc 007e 017c ff7f 0100 ff03 ff7b",
    "bfloat16": "0000 0080 807f 80ff c07f 817f ffff 0100 7f00 7f7f",
    "float32": "00000000 00000080 0000807f 000080ff 0000c07f 0100807f ffffffff 01000000 ffff7f7f",
    "float64": """
        0000000000000000 0000000000000080 000000000000f07f 000000000000f0ff
        010000000000f07f 010000000000f8ff 0100000000000000 ffffffffffffef7f""",
    "bool": "00 01 02 7f 80 ff",
}


def bytes_for(dtype, shape, seed=1):
    """Return make_bytes() for a tensor."""
    return make_bytes(tensorfmt.ITEMSIZE[dtype] * count_of(shape), seed)


def every_tensor(kind):
    """Return {name: Tensor} over each dtype and shape that a format holds."""
    made, row = Map(), row_of(kind)
    for dtype in row.dtypes:
        for shape in SHAPES:
            if row.holds(dtype, shape):
                number = len(made)
                data = bytes_for(dtype, shape, len(shape) * 100 + number)
                made["%s%s" % (dtype, number)] = tensor(data, dtype, shape)
        if dtype in SPECIAL:
            made[dtype + " special"] = tensor(unhex(SPECIAL[dtype]), dtype)
    return made


def dtypes_of(name):
    """Return the dtypes of a format, as the module has them."""
    return tuple(sorted(find_format(name).DTYPES))


class SingleTest(TestCase):
    """Formats of one tensor: what RoundTripTest asks of one file of all tensors, one by one."""

    def test_every_dtype_and_shape(self):
        for row in SINGLE:
            self.assertEqual(dtypes_of(row.name), row.dtypes)
            for item in every_tensor(row.name).values():
                for options in row.options:
                    facts = dict(options, format=row.name, dtype=item.dtype, shape=item.shape)
                    with self.subTest(**facts):
                        self.check(row, {row.names[0]: item}, options)

    def check(self, row, wanted, options):
        data = dumps(wanted, format=row.name, **options)
        file = load(data, verify=True)
        self.assertEqual(content(file), content(wanted))
        fields = explain(data)
        self.assertTiles(fields, len(data), shared=True)
        self.assertEqual(dumps(file, format=row.name), data)

    def test_other_names_and_numbers_of_tensors_are_refused(self):
        for row in SINGLE:
            name, = row.names
            for tensors in ({}, {name: F32, "b": F32}, {name + "2": F32}):
                self.refuses([], dumps, tensors, format=row.name)


class RoundTripTest(TestCase):
    def test_dtypes_are_those_of_the_documents(self):
        for row in WRITES:
            self.assertEqual(dtypes_of(row.name), row.dtypes)

    def test_every_dtype_and_shape(self):
        for kind, options in STORED:
            wanted = every_tensor(kind)
            with self.subTest(format=kind, **options):
                data = dumps(wanted, format=kind, **options)
                file = load(data, verify=True)
                self.assertEqual(content(file), content(wanted))
                for name, item in file.items():
                    self.assertEqual(item[...].tobytes(), wanted[name].tobytes())
                    self.assertSame(list(item.flat), list(wanted[name].flat))
                fields = explain(data)
                self.assertTiles(fields, len(data), shared=True)
                self.assertEqual(dumps(wanted, format=kind, **options), data)
                if row_of(kind).sorted_index is not None:  # else that of empty ones may be lost
                    self.assertEqual(dumps(load(io.BytesIO(data)), format=kind), data)

    @about("ztensor")
    def test_big_endian_files_hold_swapped_bytes(self):
        values = [1, 2, 0x01020304]
        made = {"w": tensor(values, "uint32"), "one": [True], "two": [[1, 2], [3, -4]]}
        file = load(dumps(made, format="ztensor", data_endianness="big"))
        back, two = file["w"], file["two"]
        self.assertEqual(tohex(back.raw), "000000010000000201020304")
        self.assertEqual(tohex(back.tobytes()), "010000000200000004030201")
        self.assertEqual(list(back.data), values)
        self.assertEqual(back[1:].tolist(), values[1:])
        self.assertEqual(back[2], values[2])
        self.assertEqual(back.zero_copy, sys.byteorder == "big")
        self.assertTrue(file["one"].zero_copy)  # a byte has no order
        self.assertEqual(tohex(back[::-2].tobytes()), "0403020101000000")
        self.assertEqual(list(two.data), [1, 2, 3, -4])
        column = two[KEYS[:, 1]]
        self.assertEqual(list(column.flat), [2, -4])

    @about("primitiv")
    def test_column_major(self):
        item = tensor([[11, 12, 13], [21, 22, 23]], "float32", custom={"batch": 3})
        data = dumps({"tensor": item}, format="primitiv", kind="tensor")
        back = load(data)["tensor"]
        columns = [11.0, 21.0, 12.0, 22.0, 13.0, 23.0]
        self.assertEqual(numbers("float32", back.raw), columns)
        self.assertEqual(back.strides, (4, 8))
        self.assertEqual(back.tolist(), item.tolist())
        self.assertSame(back.attrs, {"batch": 3})
        self.assertEqual(list(back.data), columns)
        self.assertEqual(list(back[1].data), [21.0, 22.0, 23.0])

    @about("primitiv")
    def test_shapes_and_names_of_primitiv(self):
        shape = primitiv_file(0, "93 010203 01")
        self.assertSame(load(shape).attrs["dims"], [1, 2, 3])
        no_batch = primitiv_file(0x100, "9100 00 c400")
        self.assertEqual(error_of(FormatError, load, no_batch).what, "batch is 0")
        self.refuses(["its bytes are those of '\u00e9'"], dumps, {"\udcc3\udca9": F32},
                     format="primitiv")

    @about()
    def test_blocks_are_joined_right(self):
        shape = (6, 7, 5)
        data = bytes_for("float32", shape)
        item = tensor(data, "float32", shape)
        stored = [{"data_endianness": "big", "checksum": "crc32c"}]
        if ZSTD:
            stored.append({"encoding": "zstd"})  # decoded into a file where it is large
        for block in (4, 8, 64, 100, 1 << 20):
            with self.subTest(block=block), Changed(tensorfmt, "BLOCK", block):
                turned = reloaded(item, "primitiv")
                self.assertEqual(turned.tobytes(), data)
                self.assertEqual(turned[::-1, 2:, ::2].tobytes(), item[::-1, 2:, ::2].tobytes())
                for options in stored:
                    made = saved(item, **options)
                    again = dumps(load(made, verify=True), format="primitiv")
                    self.assertEqual(load(again)["w"].tobytes(), data)

    @about()
    def test_turned_blocks_are_those_gathered_by_loops(self):
        shapes = [
            ("uint8", (140, 260)),
            ("bfloat16", (70, 130)),
            ("int32", (40, 70)),
            ("float64", (5, 40, 60)),
            ("float32", (66, 310)),
            ("uint8", (513, 128)),
        ]
        for dtype, shape in shapes:
            item = tensor(bytes_for(dtype, shape), dtype, shape)
            for base in (item, item[::-1]):
                turned = tensorfmt.transpose(base)
                wanted = self.column_major_bytes(base)
                for block in (1 << 12, 1 << 20):
                    with Changed(tensorfmt, "BLOCK", block):
                        self.assertTrue(turned.tobytes() == wanted, (dtype, block))

    @staticmethod
    def column_major_bytes(item):
        """Return the elements of a tensor with the first index running fastest."""
        first = -item.byte_extent()[0]
        places = element_places(item.shape[::-1], item.strides[::-1], first)
        return b"".join([item.raw[at:at + item.itemsize] for at in places])

    def test_order_of_the_index_and_of_the_data(self):
        names = ["b", "a", "c"]
        in_order = {False: names, True: sorted(names)}
        made = Map([(name, F32) for name in names])
        for row in WRITES:
            file = load(dumps(made, format=row.name))
            with self.subTest(format=row.name):
                if row.sorted_index is not None:
                    self.assertEqual(list(file), in_order[row.sorted_index])
                by_place = sorted(names, key=lambda name: file[name].offset)  # noqa: B023
                self.assertEqual(by_place, in_order[row.sorted_data])

    @about("tensorbuffers")
    def test_tensorbuffers_are_sorted_by_id(self):
        names = ["b", "a", "c"]
        made = Map([(name, F32) for name in names])
        file = load(dumps(made, format="tensorbuffers"))
        ids = [item.attrs["id"] for item in file.values()]
        self.assertEqual(ids, sorted(ids))
        unsorted = dumps(made, format="tensorbuffers", sort=False)
        self.assertEqual(list(load(unsorted)), names)

    @about("mag", "burnpack")
    def test_data_begin_at_the_next_multiple(self):
        lengths = {  # of the only name, and where its data begin
            "mag": [(30, 128), (31, 128), (32, 192)],  # the index ends at 97 + length
            "burnpack": [(199, 256), (200, 512)],  # at 57 + length
        }
        for kind, rows in lengths.items():
            for length, start in rows:
                name = "x" * length
                with self.subTest(format=kind, length=length):
                    file = load(dumps({name: F32}, format=kind))
                    self.assertEqual(file[name].offset, start)

    def test_names_of_all_kinds(self):
        odd = ["a/b", "../up", " blank ", "\u00e9", "\U0001f642", "x" * 300, "new\nline", "'\"",
               "", "a\0b"]
        for row in WRITES:
            names = list(filter(row.holds_name, odd))
            with self.subTest(format=row.name):
                made = dict.fromkeys(names, F32)
                file = load(dumps(made, format=row.name))
                self.assertEqual(sorted(file), sorted(names))


# -- [6] Tensor ----------------------------------------------------------------------------------


def pick(nested, keys):
    """Return nested lists by one int or slice for each dimension: the reference of indexing."""
    if not keys:
        return nested
    if isinstance(keys[0], slice):
        return [pick(row, keys[1:]) for row in nested[keys[0]]]
    return pick(nested[keys[0]], keys[1:])


def pick_shape(shape, keys):
    out = [len(range(n)[key]) for n, key in zip(shape, keys) if isinstance(key, slice)]
    return tuple(out) + shape[len(keys):]


def random_key(draw, n):
    """Return a random index of a dimension."""
    if n and draw.random() < 0.3:
        return draw.randrange(-n, n)
    ends = [None] + list(range(-n - 2, n + 3))
    steps = [None, 1, 2, 3, -1, -2, -5, 100]
    return slice(draw.choice(ends), draw.choice(ends), draw.choice(steps))


def random_keys(draw, shape):
    """Return a random index as a user may write it, and the same as one key per dimension."""
    keys = [random_key(draw, n) for n in shape]
    given = list(keys)
    if draw.random() < 0.5:  # what is left out at the end, or behind an Ellipsis, is taken whole
        cut = draw.randrange(len(keys) + 1)
        stop = draw.randrange(cut, len(keys) + 1)
        keys[cut:stop] = [slice(None)] * (stop - cut)
        given = keys[:cut] + [Ellipsis] + keys[stop:]
    if len(given) == 1:
        return given[0], keys
    return tuple(given), keys


def stored_otherwise(item):
    """Return a tensor as each kind of storage has it."""
    tensors = {"t": item}
    files = [
        dumps(tensors, format="ztensor", data_endianness="big"),
        io.BytesIO(dumps(tensors, format="burnpack")),
    ]
    if item.size:
        files.append(dumps(tensors, format="primitiv"))
    if ZSTD:
        files.append(dumps(tensors, format="ztensor", encoding="zstd"))
    return [item] + [load(file)["t"] for file in files]


# A tensor of (3, 4) int16, 0 to 11, that begins at 64 of a file: where its parts lie.
PARTS = read_table("""
    key         strides   offset  start  stop  is_whole  elements
    :, :        (8, 2)    64      64     88    True      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    1           (2,)      72      72     80    True      [4, 5, 6, 7]
    1:, ::2     (8, 4)    72      72     86    False     [4, 6, 8, 10]
    :, 1        (8,)      66      66     84    False     [1, 5, 9]
    ::-1, ::-1  (-8, -2)  86      64     88    False     [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
""")
# Of [[1, 2], [3, 4]]; 10**20 is over 64 bits, and numpy takes no more as strides.
WIDE_STEPS = read_table("""
    key                             wanted
    ::100000000000000000000         [[1, 2]]
    ::-100000000000000000000        [[3, 4]]
    0:0:100000000000000000000       []
    :, 1::-100000000000000000000    [[2], [4]]
""")


def key_of(word):
    """Return the index that a word of a table is."""
    return tensorfmt.parse_index(str(word))


@about()
class IndexTest(TestCase):
    """A part of a tensor is that of nested lists, and says where its bytes lie."""

    def test_against_nested_lists(self):
        draw = Random(5)
        for _ in range(60):
            shape = tuple([draw.randrange(6) for _ in range(draw.randrange(1, 5))])
            whole = tensor([float(i) for i in range(count_of(shape))], "float32", shape)
            for item in stored_otherwise(whole) * 4:
                key, keys = random_keys(draw, shape)
                with self.subTest(shape=shape, key=str(key), of=item.format):
                    self.check_part(item[key], pick(item.tolist(), keys), pick_shape(shape, keys))

    def check_part(self, part, wanted, shape):
        if not isinstance(part, tensorfmt.Tensor):
            self.assertSame(part, wanted)
            return
        self.assertEqual(part.shape, shape)
        self.assertEqual(part.tolist(), wanted)
        flat = list(part.flat)
        self.assertEqual(part.tobytes(), pack("<%df" % len(flat), *flat))
        self.assertEqual(part.contiguous().tolist(), wanted)
        self.assertEqual(sorted(part.data), sorted(flat))
        if not shape:
            return
        rows = [row if isinstance(row, float) else row.tolist() for row in part]
        self.assertEqual(rows, wanted)
        backwards = part[::-1]
        self.assertEqual(backwards.tolist(), wanted[::-1])
        if len(shape) == 1 or shape[0] > 1:  # what runs backwards is no storage order
            self.assertEqual(list(backwards.data), list(backwards.flat))

    def test_wrong_indices(self):
        item = tensor([[1, 2, 3], [4, 5, 6]], "int16")
        for key in 2, -3, (0, 3), (0, 0, 0), (..., ...), (0, ..., 0, 0):
            error_of(IndexError, getitem, item, key)
        for key in "a", 1.0, None, True, [0]:
            error_of(TypeError, getitem, item, key)
        error_of(TypeError, len, tensor(1.0))

    def test_a_part_has_a_length_and_no_attributes(self):
        item = tensor([[1, 2, 3], [4, 5, 6]], "int16", custom={"note": "x"})
        part = item[1]
        self.assertSame((len(item), len(part), part.name, part.attrs), (2, 3, "", {}))
        self.assertEqual(len(tensor([], "int16", (0, 1 << 63))), 0)
        scalar = tensor(1.5)
        self.assertEqual((scalar[()], scalar[...].shape), (1.5, ()))

    def test_strides_offset_raw_and_data(self):
        data = bytearray(saved(tensor(list(range(12)), "int16", (3, 4))))
        item = load(data)["w"]
        for row in PARTS:
            part = item[key_of(row.key)]
            with self.subTest(key=row.key):
                self.assertEqual((part.strides, part.offset), (row.strides, row.offset))
                self.assertEqual(bytes(part.raw), data[row.start:row.stop])
                self.assertEqual(list(part.data), row.elements)
                is_native = sys.byteorder == "little"
                self.assertEqual(part.zero_copy, row.is_whole and is_native)
        self.assertEqual((item.size, item.nbytes, item.itemsize), (12, 24, 2))
        self.assertEqual((tensor([1]).offset, item.contiguous().offset), (None, None))
        self.assertFalse(load(io.BytesIO(data))["w"].zero_copy)
        data[64] = 9  # no copy, and nobody writes through it
        self.assertEqual(item[0, 0], 9)
        self.assertEqual(item.raw.readonly, PYTHON >= (3, 8))

    def test_steps_over_a_dimension_are_no_strides(self):
        item = tensor([[1, 2], [3, 4]], "int16")
        for key, wanted in WIDE_STEPS:
            part = item[key_of(key)]
            self.assertEqual((part.strides, part.tolist()), ((4, 2), wanted), key)

    def test_products_of_dimensions_are_cut_short(self):
        """From 64 bits on a count is not run to the end, but for a 0."""
        for shape, wanted in (
                ((1 << 64, 3, 5), 3 << 64),
                ((3 << 63, 2), 3 << 63),
                ((1 << 65, 3, 0), 0)):
            self.assertEqual(tensorfmt.count_elements(shape), wanted)
        steps = tensorfmt.row_major((0, 2, 3, 1 << 63), 1)
        self.assertEqual(steps, (3 << 63, 3 << 63, 1 << 63, 1))


FROM_NUMBERS = read_table("""
    value                    dtype    shape
    5                        int64    ()
    5.0                      float64  ()
    True                     bool     ()
    []                       float64  (0,)
    [[], []]                 float64  (2, 0)
    [1, 2.5]                 float64  (2,)
    [True, 2]                int64    (2,)
    [True, False]            bool     (2,)
    [9223372036854775808]    uint64   (1,)
    [9223372036854775807]    int64    (1,)
    [[1], [2], [3]]          int64    (3, 1)
    (1,)                     int64    (1,)
""")
NO_NUMBERS = read_table("""
    values                        words
    [[1, 2], [3]]                 ragged
    [[1], 2]                      ragged
    [1, [2]]                      list among the numbers
    ["a"]                         str among the numbers
    [1, "a"]                      str among the numbers
    [None]                        NoneType among the numbers
    [1j]                          complex among the numbers
    [18446744073709551616]        18446744073709551616 does not fit uint64
    [-1, 9223372036854775808]     -1 does not fit uint64
""")
DO_NOT_FIT = read_table("""
    value         dtype
    300           uint8
    -1            uint8
    0.5           int32
    1e999         int16
    2147483648    int32
""")
DTYPE_WORDS = read_table("""
    word             dtype
    bf16             bfloat16
    F32              float32
    i64              int64
    U16              uint16
    BOOL             bool
    Float32          float32
    torch.float32    float32
    F8_E4M3          float8_e4m3fn
    f8_e4m3fnuz      float8_e4m3fnuz
    f8_e5m2          float8_e5m2
    F8_E8M0          float8_e8m0fnu
""")


class Named:
    """As numpy's dtypes are."""
    name = "float16"

    def __str__(self):
        return "<f2"


class Printed:
    """As torch's are."""

    def __str__(self):
        return "torch.bfloat16"


class Masked:
    mask = filled = 0


class Complex:
    dtype = "complex128"


class Module:
    state_dict = 0


class Failing:
    def __array__(self):
        raise RuntimeError("cannot")  # as torch does


@about()
class MakeTest(TestCase):
    """tensor() takes numbers, lists and buffers, and says why it takes nothing else."""

    def test_numbers_and_lists(self):
        for row in FROM_NUMBERS:
            item = tensor(row.value)
            self.assertEqual((item.dtype, item.shape), (row.dtype, row.shape), row)
        for row in NO_NUMBERS:
            self.refuses([row.words], tensor, row.values)
        for row in DO_NOT_FIT:
            self.refuses([row.dtype], tensor, [row.value], row.dtype)
        self.refuses(["int64"], tensor, [NAN], "int64")
        self.refuses(["arrays in a list"], tensor, [F32, F32])
        self.assertEqual(tensor([F32[0], tensor(2)]).tolist(), [1.5, 2.0])

    def test_ranges_are_lists_of_integers(self):
        for value, dtype, wanted in (
                (range(5), "int64", [0, 1, 2, 3, 4]), (range(4, 0, -2), "int64", [4, 2]),
                (range(0), "int64", []), ([range(2), [7, 8]], "int64", [[0, 1], [7, 8]]),
                (range((1 << 63) - 1, 1 << 63), "int64", [(1 << 63) - 1]),
                (range(1 << 63, (1 << 63) + 1), "uint64", [1 << 63])):
            item = tensor(value)
            self.assertEqual((item.dtype, item.tolist()), (dtype, wanted))
        self.assertEqual(tensor(range(2), "float32").tolist(), [0.0, 1.0])
        self.refuses(["ragged"], tensor, [range(2), range(3)])

    def test_arrays(self):
        for dtype, code in CODES.items():
            if code == "e":  # array lacks it
                continue
            with self.subTest(code=code):
                item = tensor(array(code, [1, 2, 100]), None)
                self.assertEqual((item.dtype, item.tolist()), (dtype, [1, 2, 100]))
                self.assertEqual(item.tobytes(), pack("<3" + code, 1, 2, 100))

    def test_other_buffers_are_taken_by_their_numbers(self):
        view = memoryview(pack("6d", *range(6)))
        doubles, table = view.cast("d"), view.cast("d", (2, 3))
        letters = memoryview(b"abcd").cast("c")
        for given, wanted in (
                (array("B", [1, 2]), [1.0, 2.0]),
                (memoryview(b"\1\2").cast("B", (1, 2)), [[1.0, 2.0]]),
                (table, [[0, 1, 2], [3, 4, 5]])):
            self.assertEqual(tensor(given, "float16").tolist(), wanted)
        for given, dtype, wanted in (
                (doubles[::-2], "float64", [5.0, 3.0, 1.0]),
                (memoryview(b"\0\1").cast("?"), "bool", [False, True]),
                (letters[:0].cast("B"), "uint8", [])):
            item = tensor(given)
            self.assertEqual((item.dtype, item.tolist()), (dtype, wanted))
            self.assertEqual(bytes(item), item.tobytes())  # on every Python

    def test_bytes_are_raw_and_little_endian(self):
        data = b"\1\0\2\0"
        self.assertEqual(tensor(data).dtype, "uint8")
        self.assertEqual(tensor(data, "int16").tolist(), [1, 2])
        for shape in (2, 1), [2, 1], iter([2, 1]):
            self.assertEqual(tensor(data, "int16", shape).shape, (2, 1))
        error_of(ValueError, tensor, data[:3], "int16")
        error_of(ValueError, tensor, data, "complex64")
        for shape in (3,), (-1, -2):
            error_of(ValueError, tensor, data, "int16", shape)

    def test_bits_of_a_bfloat16_are_no_values(self):
        item = tensor([1.0, -2.5], "bfloat16")
        for dtype in "bfloat16", "float16":
            self.refuses(["bits", "values"], tensor, array("H", [1]), dtype)
        self.assertEqual(tensor(item.data).copy(dtype="bfloat16").tolist(), [1.0, -2.5])

    def test_names_of_dtypes_as_people_type_them(self):
        rows = [tuple(row) for row in DTYPE_WORDS]
        rows += [(bool, "bool"), (float, "float64"), (int, "int64"), (type("int8", (), {}), "int8"),
                 (type("bool_", (), {}), "bool"), (Named(), "float16"), (Printed(), "bfloat16")]
        for given, wanted in rows:
            for got in tensor([1], given), tensor([1]).astype(given):
                self.assertEqual((got.dtype, got.tolist()), (wanted, [1]))
        wrong = "i8 u8 f8 f8_ f8_e f8_e4 f8_e4m3f float float8".split()
        for given in wrong + ["", None, complex, str, ["f32"], object()]:
            self.refuses(["there are float64, float32"], tensor([1]).astype, given)

    def test_names_of_formats(self):
        for name in "zt", ".zt", "ztensor":
            self.assertEqual(load(dumps({}, format=name), format=name).format, "ztensor")

    def test_what_is_no_tensor_says_so(self):
        way = "; take numbers (.astype(DTYPE), .real and .imag); text goes to metadata="
        flatten = 'dict; flatten it: {"NAME.b": ..., "NAME.2": ...}'
        for value, text in (
                (Masked(), "a masked array: .filled(value) makes a plain one"),
                (1j, "cannot make a tensor of complex" + way),
                (Complex(), "cannot make a tensor of Complex of complex128" + way),
                ({"b": 1, 2: 3, "c": 4}, "cannot make a tensor of " + flatten),
                ("text", "cannot make a tensor of str" + way)):
            error = error_of(TypeError, dumps, {"w": value}, format="zt")
            self.assertEqual(str(error), "tensor 'w': " + text)
        for value in None, {1}, object(), "text":
            error_of(TypeError, tensor, value)
        self.refuses(["tensor 'b': cannot"], dumps, {"b": Failing()}, format="zt")

    def test_what_is_no_model_says_so(self):
        one = tensor([[1, 2]])
        for value in memoryview(b"12"), one, [one], "ab", [(1,)], None, 3, Module():
            error = error_of(TypeError, dumps, value, format="zt")
            self.assertIn("a mapping of names to values", str(error))
        for args in ({}, "mag"), ({},):
            self.assertIn("dumps(", str(error_of(TypeError, dumps, *args)))


SHOWN_VALUES = read_table("""
    value                          text
    None                           "None"
    b"0123456789abcdef"            "b'0123456789abcdef'"
    b"0123456789abcdef0"           "17 bytes"
    [[[[[1]]]]]                    "[[[[...]]]]"
    {1: {2: {3: {4: {5: 6}}}}}     "{1: {2: {3: {4: ...}}}}"
    {(((1,),),): (((2,),),)}       "{[[[1]]]: [[[2]]]}"
""")
MOST = (1 << 128) - 1
EIGHT = ", ".join(["%d: 0" % i for i in range(8)])
SHOWN_VALUES += [
    (MOST, str(MOST)),
    (-MOST, str(-MOST)),
    (MOST + 1, "an integer of more than 128 bits"),
    (-MOST - 1, "an integer of more than 128 bits"),
    (Simple((99,)), "simple(99)"),
    ([Simple((99,))], "[simple(99)]"),
    ([1] * 20, "[%s]" % ", ".join("1" * 20)),
    ([1] * 21, "[%s... 21 items]" % ("1, " * 8)),
    (["a" * 99], "['%s']" % ("a" * 60)),
    ("a" * 58, "'%s'" % ("a" * 58)),
    ("a" * 59, "'%s..." % ("a" * 56)),
    (Map([(i, 0) for i in range(8)]), "{%s}" % EIGHT),
    (Map([(i, 0) for i in range(9)]), "{%s, ...}" % EIGHT),
]
TRAILS = read_table(r"""
    trail          text
    ["b"]          b
    [3]            "[3]"
    ["a", "b_c"]   a.b_c
    ["a", "b1"]    a['b1']
    "a\xe9\x9b"    "a.\xe9['\\x9b']"
""")
TRAILS += [
    (["a" * 398, "b"], "a" * 398 + ".b"),
    (["a" * 399, "b"], "a" * 297 + "..." + "a" * 98 + ".b"),
]
# Each item, and how its repr goes on behind the first line.
REPRS = [(tensor(row.value), row.text) for row in read_table("""
    value         text
    7             "7"
    []            "[]"
    [True]        "[True]"
    [0.1]         "[0.1]"
""")]
REPRS += [
    (tensor([[0.1, 2.0], [3.0, -4.5]], "float32"), "[[ 0.1,  2.0],\n [ 3.0, -4.5]]"),
    (tensor([INF, NAN]), "[inf, nan]"),
    (tensor(list(range(2000))), "[   0,    1,    2, ..., 1997, 1998, 1999]"),
    (tensor([0] * 4096, "int8", (2,) * 12), "[...]"),
    (tensor(list(range(36)), "int16", (6, 6))[:2, :2], "[[0, 1],\n [6, 7]]"),
    (tensor([5] * 2401, "int8", (7,) * 4), "[[[[5, ..., 5],\n   ...,\n   [5, "),
    (tensor([5, 6], "int8", (1,) * 39 + (2,)), "[" * 40 + "5,\n" + " " * 40 + "6]"),
    (tensor(7, "int8", (1,) * 64), "[" * 64 + "7" + "]" * 64 + ">"),
    (tensor([5] * 1001, "int8", (1, 1, 1, 1, 1001)), "[[[[[5, ..., 5]]]]]>"),
    (tensor([5] * 900, "int8", (1, 1, 900))[:, :, :30],
     "[[[" + ", ".join("5" * 24) + ",\n   5, 5, 5, 5, 5, 5]]]"),
    (Cast(tensor([5] * 200), "int8"), "[5, 5"),
]


@about()
class ShownTest(TestCase):
    """What people see of values and tensors: in messages, in repr(), in a notebook."""

    def test_values_in_messages(self):
        for value, text in SHOWN_VALUES:
            self.assertEqual(tensorfmt.short_repr(value), text)

    def test_trails_in_messages(self):
        for trail, text in TRAILS:
            self.assertEqual(tensorfmt.format_trail(trail), text)

    def test_repr_shows_values(self):
        for item, text in REPRS:
            self.assertIn(":\n" + text, repr(item) + "\n")
        self.assertNotIn("\n", repr(tensor(7, "int8", (1,) * 65)))

    def test_repr_of_wide_rows(self):
        numbers = [i / 8 for i in range(60)]
        lines = repr(tensor([numbers[:30], numbers[30:]], "float32")).split("\n")
        self.assertEqual(len(lines), 7)
        self.assertEqual(
            lines[2], "   1.25, 1.375,   1.5, 1.625,  1.75, 1.875,   2.0, 2.125,  2.25, 2.375,")
        self.assertEqual(lines[-1][-8:], "7.375]]>")

    def test_repr_of_what_cannot_be_read_or_is_long(self):
        many = tensor([5] * 1001, "int8")
        self.assertEqual(repr(Cast(many, "int16")), "<Tensor '' int16 [1001]>")
        closed = load(saved([1.0]))
        item = closed["w"]
        closed.close()
        self.assertEqual(repr(item), "<Tensor 'w' float64 [1] of ztensor>")

    def test_a_notebook_shows_a_table(self):
        file = load(dumps({"<b>": [1.0], "w": [2]}, format="ztensor"))
        html = file._repr_html_()
        self.assertTrue(html.endswith("<tr><td>int64<td>[1]<td>8<td>w"
                                      "<tr><td>total<td><td>16<td>2 tensors</table>"))
        self.assertNotIn("<b>", html)
        self.assertEqual(html.count("<tr>"), 4)
        most = tensorfmt.SHOWN
        for count, more in (most, []), (most + 3, ["3"]):
            tensors = [("w%d" % i, [1.0]) for i in range(count)]
            html = load(dumps(tensors, format="ztensor"))._repr_html_()
            self.assertEqual(re.findall("([0-9]+) more than are shown<", html), more)


@about()
class TensorTest(TestCase):
    def test_attrs_follow_the_rules(self):
        attrs = {"burn_dtype": "Flex32", "param_id": 3}
        item = load(dumps(one_of([1.0], **attrs), format="burnpack"))["w"]
        self.assertSame([item.attrs, item.contiguous().attrs], [attrs, attrs])
        self.assertSame([item.astype("float64").attrs, item[:1].attrs], [{"param_id": 3}, {}])

    def test_what_the_user_puts_on_a_loaded_tensor_is_not_lost(self):
        item = reloaded(F32, "mag")
        made = {"w": tensor(item, custom={"trainable": True})}
        again = load(dumps(made, format="ztensor"))["w"]
        self.assertEqual(again.custom["trainable"], True)
        error_of(ValueError, dumps, made, format="mag")

    def test_one_element_is_a_number(self):
        for value, wanted in (7, 7), ([[2.5]], 2.5), (True, True):
            self.assertSame(tensor(value).item(), wanted)
        for kind, value, wanted in (float, [7], 7.0), (int, 2.5, 2), (bool, [[0.5]], True):
            self.assertSame(kind(tensor(value)), wanted)
        for wrong in tensor([]), tensor([1, 2]):
            for call in wrong.item, wrong.__bool__:
                self.refuses(["one element", "true or false"], call)

    def test_tensors_of_many_dimensions(self):
        many = tensor([1.0], "float32", [1] * 3000)
        self.assertEqual((many.nbytes, len(many.strides)), (4, 3000))
        lists = tensor([1.0], "float32", (1,) * 64).tolist()
        while isinstance(lists, list):
            lists, = lists
        self.assertEqual(lists, 1.0)
        self.refuses(["too many lists"], tensor([1.0], "int8", (1,) * 65).tolist)

    def test_empty_tensors_of_large_dimensions(self):
        shape = (1 << 40, 1 << 40, 0)
        huge = load(dumps({"e": tensor(b"", "uint8", shape)}, format="ztensor"))["e"]
        self.assertEqual((huge.tobytes(), list(huge.flat), huge.size), (b"", [], 0))
        self.assertEqual(huge[5, 3:7].shape, (4, 0))
        self.assertEqual(tensor([], "float32", [2, 0]).tolist(), [[], []])
        self.assertEqual(len(tensor([], "int8", [1 << 17, 0]).tolist()), 1 << 17)
        for item in huge, tensor([], "int8", ((1 << 17) + 1, 0)):
            self.refuses(["too many lists"], item.tolist)

    def test_buffer_protocol(self):
        most = 5 if PYPY else 64
        for item, code in (
                (tensor([[1.0, 2.0]]), "d"),
                (tensor([[1, 2]], "uint8"), "B"),
                (tensor([1, 2], "int16").contiguous(), "h"),
                (tensor(5), "q"),
                (tensor(1, "int8", (1,) * most), "b")):
            if sys.byteorder == "big" and item.itemsize > 1:
                error_of(BufferError, item.__buffer__, 0)
                continue
            view = item.__buffer__(0)
            if PYTHON >= (3, 12) and not PYPY:
                view = memoryview(item)
            self.assertEqual((view.format, view.shape), (code, item.shape))
            self.assertEqual(bytes(view), bytes(item.raw))  # PyPy dies of 2-D tolist()

    def test_what_has_no_buffer_says_so(self):
        unknown = load(ztensor_file(encoding="RAW"))["a"]
        for item in (tensor([1.0], "bfloat16"), tensor([1, 2, 3, 4])[::2], tensor([]),
                     tensor(1, "int8", (1,) * 65), unknown):
            error_of(BufferError, item.__buffer__, 0)
        self.assertEqual(unknown.__dlpack_device__(), (1, 0))  # CPU
        self.assertEqual(tensor([1]).__array_interface__["version"], 3)


# How many digits the significand has, the lowest exponent of a bit, that past the largest.
FLOATS = read_table("""
    dtype       digits    lowest    past
    float64     53        -1074     1024
    float32     24        -149      128
    float16     11        -24       16
    bfloat16    8         -133      128
""")
FLOATS = {row.dtype: row for row in FLOATS}
# Rounding that goes wrong in two steps, at ties, at the ends.
HARD_INTEGERS = [int(word, 16) for word in """
    0x0 0x1 -0x1 0x1000001 0x1000003 0x20000000000001 0x7fffffffffffffff
    0xffffffffffffffff -0x8000000000000000 0x20000020000001 0x40000040000001
    0x2000002000000080 0x20200000000001 0x4000004000000001 0x4000004000000000
    0x4000003fffffffff 0x40000040000003ff 0x1000001000000001 0x1010000000001
    0x1010000000000 0x102ffffffffff 0x10000
""".split()]
HARD_FLOATS = [float.fromhex(word) for word in """
    0x1.999999999999ap-4 0x1.5555555555555p-2 0x1.01p0 0x1.0100000001p0 0x1.02ffffffffp0
    0x1.010001fcp0 0x1.002p0 0x1.00200004p0 0x1.006p0 0x1.000001p0 0x1.ffcp15
    0x1.ffdfff7ced917p15 0x1.ffep15 0x1.fep127 0x1.fefffffffff61p127
    0x1.ff933c78cdfadp127 0x1.fffffep127 0x1.ffffffp127 0x1.074f8c4d3cd7bp128
    0x1.7e43c8800759cp996 0x1p-149 0x1p-150 0x1.00068db8bac71p-150 0x1p-133 0x1p-134
    0x1.8p-134 0x1p-25 0x1.028f5c28f5c29p-25 0x1p-24 0x0.0000000000001p-1022
    0x1.fffffep-127 0x1.16c262777579cp-133 0x1.05563c4ffe223p-128
""".split()]
HARD = HARD_INTEGERS + HARD_FLOATS


def hard_numbers():
    """Return numbers that are hard to round, and random ones; none is infinite or NaN."""
    draw = Random(3)
    numbers = HARD + [-x for x in HARD_FLOATS]
    for seed in range(1, 300):
        numbers.append(draw.choice([-1, 1]) * draw.getrandbits(draw.randrange(1, 64)))
        numbers.append(draw.random() * 2.0 ** draw.randrange(-160, 140))
        bits = int.from_bytes(make_bytes(8, seed), "little")
        if bits >> 52 & 0x7FF != 0x7FF:
            numbers.append(unpack("<d", pack("<Q", bits))[0])
    return numbers


def holds_number(dtype, number):
    """Tell whether a dtype of 64 bits has a number as it is."""
    if dtype == "float64":
        return isinstance(number, float)
    low, high = tensorfmt.INT_RANGE[dtype]
    return isinstance(number, int) and low <= number <= high


def nearest(number, dtype):
    """Return a number rounded to a float dtype, to nearest even, by exact arithmetic."""
    rules = FLOATS[dtype]
    exact = Fraction(number)
    if not exact:
        return float(number)
    size = abs(exact)
    scale = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** scale:
        scale -= 1
    unit = Fraction(2) ** max(scale - rules.digits + 1, rules.lowest)
    rounded = round(size / unit) * unit  # half to even
    found = INF
    if rounded < Fraction(2) ** rules.past:
        found = float(rounded)
    return found if number > 0 else -found


def widened(half):
    """Return the bits as float32 of those of a float16; of NaN, those of its fraction stay."""
    if half & 0x7FFF > 0x7C00:
        return (half & 0x8000) << 16 | 0x7F800000 | (half & 0x3FF) << 13
    number, = unpack("<e", pack("<H", half))
    return unpack("<I", pack("<f", number))[0]


EXACT_CASTS = """
    int32 float64, int16 float32, uint8 float16, int8 bfloat16, bool float16, uint8 int16,
    float16 float32, bfloat16 float32, int8 int8, float32 float32, uint8 uint16"""
OTHER_CASTS = """
    int64 float64, int32 float32, int16 float16, uint8 int8, int8 uint64, bfloat16 float16,
    float16 bfloat16, float64 float32, float32 int64, uint8 bool, uint16 float16, uint32 float32,
    float16 bool, float8_e8m0fnu float16"""
ADVISED_CASTS = read_table("""
    format           dtype            advice
    mag              int8             cast='int32', or another format
    mag              int64            take version='300', or cast='int32' if the values fit, or
    mag              float64          cast='float32', or another format
    mag              float8_e4m3fn    take version='300', or cast='float16', or another format
    ztensor          float8_e4m3fn    take version='2', or cast='bfloat16', or another format
    burnpack         float8_e5m2      cast='bfloat16', or another format
    tensorbuffers    bool             cast='uint8', or another format
    primitiv         int64            cast='float32' if the values fit, or another format
""")


def pairs_of(text):
    return [pair.split() for pair in text.split(",")]


@about()
class CastTest(TestCase):
    """A cast rounds to nearest even, or says which value does not fit."""

    def test_rounding_is_exact(self):
        hard = hard_numbers()
        for dtype in FLOATS:
            for kind in "float64", "int64", "uint64":
                values = [number for number in hard if holds_number(kind, number)]
                got = list(tensor(values, kind).astype(dtype).flat)
                for value, found in zip(values, got):
                    self.assertSame(found, nearest(value, dtype), (value, kind, dtype))
                self.assertSame(list(tensor(values, dtype).flat), got)  # made with that dtype

    def test_float16_in_bulk_is_that_by_numbers(self):
        bits = [widened(half) for half in range(1 << 16)]
        for halves in range(1 << 16), range(1 << 10), range(0x7000, 0x7D00), [1, 2, 0x7DFF], []:
            item = tensor(pack("<%dH" % len(halves), *halves), "float16")
            got = numbers("uint32", item.astype("float32").tobytes())
            self.assertTrue(got == [bits[half] for half in halves])

    def test_bfloat16_in_bulk_is_that_by_numbers(self):
        widen = tensorfmt.widen_bfloat16
        for order, wanted in ("<", "0000010200000304"), (">", "0102000003040000"):
            self.assertEqual(tohex(widen(b"\1\2\3\4", order)), wanted)
        odd = pack("<6I", 0xFFFFFFFF, 0x7F800001, 0xFF800000, 0x7F7FFFFF, 0x7F800000, 1)
        hard = b"".join([pack("<f", nearest(x, "float32")) for x in HARD])
        ends = pack("<4I", 0, 0x7FFFFFFF, 0, 0xFFFFFFFF)
        for data in (hard + odd) * 150, make_bytes(40004, 5) + odd, b"", ends[:8], ends[8:]:
            got = tensor(data, "float32").astype("bfloat16").tobytes()
            self.assertEqual(got, tensorfmt.narrow_bfloat16(numbers("float32", data)))
            for order in "<>":
                with Changed(tensorfmt, "BOARD", True):
                    wide = widen(got, order)
                self.assertTrue(wide == widen(got, order))

    def test_infinity_and_nan(self):
        odd = [INF, -INF, NAN, -0.0]
        for old in FLOATS:
            item = tensor(odd, old)
            for new in FLOATS:
                self.assertSame(item.astype(new).tolist(), odd, (old, new))
            for new in tensorfmt.INT_RANGE:
                for at in 0, 1, 2:
                    error_of(ValueError, item[at:at + 1].astype, new)

    def test_bools(self):
        self.assertSame(tensor([NAN, 0.0, -0.0, 0.1]).astype("bool").tolist(),
                        [True, False, False, True])
        self.assertEqual(tensor(b"\0\1\2\xff", "bool").astype("uint8").tolist(), [0, 1, 1, 1])
        self.assertEqual(tensor([0, 5, 0.5, 0.0], "bool").tobytes(), b"\0\1\1\0")

    def test_integers_at_the_ends_of_each_range(self):
        for dtype, ends in tensorfmt.INT_RANGE.items():
            for other, (low, high) in tensorfmt.INT_RANGE.items():
                for value in ends:
                    item = tensor([value], dtype)
                    if low <= value <= high:
                        self.assertEqual(item.astype(other).tolist(), [value], (dtype, other))
                    else:
                        self.refuses([str(value), other], item.astype, other)
        for wrong in 0.5, -1.5, 1e30:
            self.refuses(["int8"], tensor([wrong]).astype, "int8")

    def test_every_pair_keeps_small_integers(self):
        for old in DTYPES:
            for new in DTYPES:
                least = 0
                if "float8_e8m0fnu" in (old, new):  # it has no zero
                    least = 1
                wanted = [[least, 1], [1, 1]]
                made = tensor(wanted, old).astype(new)
                self.assertEqual((made.dtype, made.tolist()), (new, wanted), (old, new))

    def test_of_other_strides(self):
        turned = tensorfmt.transpose(tensor([[1, 3], [2, -4]], "float32"))
        self.assertEqual(turned.astype("int8").tolist(), [[1, 2], [3, -4]])
        self.assertEqual(turned[:, 0].astype("uint8").tolist(), [1, 3])

    def test_which_casts_are_always_exact(self):
        for pair in pairs_of(EXACT_CASTS):
            self.assertTrue(tensorfmt.cast_is_exact(*pair), pair)
        for pair in pairs_of(OTHER_CASTS):
            self.assertFalse(tensorfmt.cast_is_exact(*pair), pair)

    def test_an_error_advises_a_cast(self):
        for row in ADVISED_CASTS:
            self.refuses([row.advice], dumps, {"w": tensor([1], row.dtype)},
                         format=row.format)


# CRC-32 of what ml_dtypes 0.6.0 makes of float8_sources(), and of codes in the four dtypes.
FLOAT8_SUMS = {
    "float8_e4m3fn": "66ad94db 7b9ce405 b294acef c2666a8c c2845e0a f41d43c6 4223a7fb",
    "float8_e5m2": "e50a88f4 049cbc8c d52a8210 0788ceec a4c4832f 53396e5d 1423a97b",
    "float8_e4m3fnuz": "6797099c 0440c2c2 25ddedf0 7ca10122 80bdb11b de02f3c7 a49e6233",
    "float8_e5m2fnuz": "8379e580 081355f8 25ddedf0 87b9aaf4 ba202683 ec16d9b6 71243a7a",
    "float8_e8m0fnu": "d3c64392 cb09bda0 9c3fa990 719979ba 5761ae99 bdd7dbe7 cafe39c9",
}


def float8_sources():
    """Return three tensors: all neighbours of all ties, as float32; doubles; integers."""
    floats = b""
    for low in 0, 1, 0x8000, 0xFFFF:
        floats += pack("<65536I", *[high << 16 | low for high in range(1 << 16)])
    ties = tensor(floats[:1 << 18], "float32").astype("float64").tobytes()
    behind = [bits + 1 for bits in unpack("<65536Q", ties)]
    doubles = make_bytes(1 << 16, 8) + pack("<65536Q", *behind)
    integers = make_bytes(1 << 15, 9)
    return tensor(floats, "float32"), tensor(doubles, "float64"), tensor(integers, "int32")


class Float8Test(TestCase):
    def test_every_cast_is_that_of_ml_dtypes(self):
        from zlib import crc32
        sources = float8_sources()
        some = list(tensorfmt.unpack_values("float32", sources[0].tobytes()))[::255]
        for dtype, sums in FLOAT8_SUMS.items():
            codes = tensor(bytes(range(256)), dtype)
            made = [item.astype(dtype) for item in sources]
            made += [codes.astype(new) for new in ("float32", "float64", "float16", "bfloat16")]
            found = ["%08x" % crc32(item.tobytes()) for item in made]
            self.assertEqual(found, sums.split(), dtype)
            one_by_one = [bytes(tensorfmt.pack_values(dtype, [value])) for value in some]
            self.assertEqual(made[0].tobytes()[::255], b"".join(one_by_one))

    def test_what_is_exact_goes_there_and_back(self):
        for dtype in FLOAT8_SUMS:
            codes = tensor(bytes(range(256)), dtype)
            for new in DTYPES:
                if tensorfmt.cast_is_exact(dtype, new):
                    back = codes.astype(new).astype(dtype)
                    self.assertSame(back.tolist(), codes.tolist(), (dtype, new))
                is_bool = new == "bool" and dtype != "float8_e8m0fnu"
                self.assertEqual(tensorfmt.cast_is_exact(new, dtype), new == dtype or is_bool)

    @about("ztensor")
    def test_sparse_tensors_need_a_zero(self):
        parts = {"values": tensor([2.0], "float8_e5m2"), "coords": [[1]]}
        self.assertEqual(tensor(components=parts, shape=(2,)).tolist(), [0.0, 2.0])
        parts["values"] = tensor([2.0], "float8_e8m0fnu")
        item = tensor(components=parts, shape=(2,))
        self.assertEqual(item.components["values"].tolist(), [2.0])
        self.assertIn("no zero", error_of(Unsupported, item.tolist).what)


# -- [7] sparse and quantized --------------------------------------------------------------------

# As tensorfmt writes them (zTensor, layout "sparse"), and as ztensor 0.1.4 laid them out.
CSR = {"values": [1.5, -2.0, 3.25, 8.0], "indptr": [0, 1, 1, 4], "indices": [2, 0, 3, 4]}
CSR_INT = dict(CSR, values=[1, -2, 3, 8])
COO = {"values": [1.5, -2.0, 3.25, 8.0], "coords": [[0, 1, 2, 2], [1, 4, 0, 3]]}
CSR_DENSE = [[0.0, 0.0, 1.5, 0.0, 0.0], [0.0] * 5, [-2.0, 0.0, 0.0, 3.25, 8.0]]
COO_DENSE = [[0.0, 1.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, -2.0], [3.25, 0.0, 0.0, 8.0, 0.0]]

# What is wrong: a shape, and a component instead of that of CSR or COO.
SPARSE_ERRORS = read_table("""
    title               shape     role       part                            words
    rank                (3,)      indptr     [0, 1, 1, 4]                    rank 2
    rows                (4, 5)    indptr     [0, 1, 1, 4]                    shape [4, 5] need 5
    first pointer       (3, 5)    indptr     [1, 1, 1, 4]                    from 0
    last pointer        (3, 5)    indptr     [0, 1, 1, 3]                    from 0
    falling             (3, 5)    indptr     [0, 2, 1, 4]                    falls in row 1
    column              (3, 4)    indices    [2, 0, 3, 4]                    the shape: 4 of 4
    column twice        (3, 5)    indices    [2, 0, 0, 4]                    element 10 occurs twice
    columns             (3, 5)    indices    [2, 0, 3]                       3 elements, 4 values
    coordinate          (3, 4)    coords     [[0, 1, 2, 2], [1, 4, 0, 3]]    the shape: 4 of 4
    too many            (1, 1)    coords     [[0, 1, 2, 2], [1, 4, 0, 3]]    the shape: 2 of 1
    coordinate twice    (3, 5)    coords     [[0, 1, 2, 2], [1, 4, 3, 3]]    twice
    coordinates         (3, 5)    coords     [0, 1, 2]                       3 elements, 4 values
    over 64 bits  (9999999999, 9999999999)  coords  [[0, 1, 2, 2], [1, 4, 3, 3]]  [2, 3] occurs
""")


def make_entry(data, **fields):
    """Return a zTensor file of one entry whose blob is `data`, at 64."""
    entry = {"name": "s", "offset": 64, "size": len(data), "encoding": "raw", "dtype": "float32",
             "layout": "sparse", "shape": [3, 5]}
    return ztensor_of_index(cbor_dumps([dict(entry, **fields)]), None, data)


def flat_in_file(part):
    """Return a component as a file has it: coordinates in one list."""
    if isinstance(part[0], list):
        return sum(part, [])
    return part


def sparse_entry(parts, **fields):
    """Return a zTensor file of a tensor of float32: its indices stand in the index."""
    fields = dict(fields, sparse_format="coo" if "coords" in parts else "csr")
    for role, part in parts.items():
        if role != "values":
            fields[role] = flat_in_file(part)
    return make_entry(pack("<%df" % len(parts["values"]), *parts["values"]), **fields)


def make_sparse(parts, dtype="float32", shape=(3, 5)):
    return tensor(dtype=dtype, shape=shape, components=parts)


def tiny_sparse(**custom):
    return tensor(shape=(2, 2), components={"values": [1.0], "coords": [[0], [1]]}, custom=custom)


@about("ztensor")
class SparseTest(TestCase):
    OPTIONS = [{"data_endianness": "big"}] + [{"encoding": "zstd"}] * ZSTD

    def test_what_a_dense_tensor_lacks(self):
        whole = tensor(CSR_DENSE)
        self.assertEqual((whole.components, whole.scheme, whole.todense()), (None, None, whole))
        for name in "dequantize", "values", "scales":
            error_of(AttributeError, getattr, whole, name)

    def test_values_are_those_of_the_dense_form(self):
        for parts, dense in (CSR, CSR_DENSE), (COO, COO_DENSE):
            for dtype in "float32", "float64", "float16", "bfloat16":
                self.check_dense(make_sparse(parts, dtype), tensor(dense, dtype))
            integers = dict(parts, values=CSR_INT["values"])
            wanted = [[int(x) for x in row] for row in dense]
            self.check_dense(make_sparse(integers, "int8"), tensor(wanted, "int8"))

    def check_dense(self, made, dense):
        self.assertSame(made.tolist(), dense.tolist())
        self.assertSame(made[2].tolist(), dense[2].tolist())
        self.assertFalse(made.zero_copy)
        self.assertEqual(made.todense().tobytes(), dense.tobytes())

    def test_saved_and_loaded(self):
        """What holds for each option is in fuzz_files(), and goes through check_mutant()."""
        for parts, dense in (CSR, CSR_DENSE), (COO, COO_DENSE):
            for options in self.OPTIONS:
                item = reloaded(make_sparse(parts), **options)
                for found in item, pickle.loads(pickle.dumps(item)):
                    self.assertEqual(found.tolist(), dense)
                    for role, wanted in parts.items():
                        self.assertEqual(found.components[role].tolist(), wanted)
            data = saved(item, encoding="raw")
            without = replaced(data, (b"\x63nnz", b"\x63nnx"))
            self.assertEqual(load(without)["w"].tolist(), dense)

    def test_rows_are_sorted_when_written(self):
        made = make_sparse(dict(CSR, indices=[2, 4, 0, 3]))
        again = reloaded(made)
        self.assertEqual(again.tolist(), made.tolist())
        self.assertEqual(again.components["indices"].tolist(), [2, 0, 3, 4])
        self.assertEqual(again.components["values"].tolist(), [1.5, 3.25, 8.0, -2.0])

    def test_components_that_are_missing(self):
        zeros = [0]
        for shape, keys in (None, ("values", "coords")), ((1,), ("values",)), ((1,), "abc"):
            self.refuses(["needs shape= and comp"], tensor, shape=shape,
                         components=dict.fromkeys(keys, zeros))

    def test_every_element_is_stored(self):
        for shape, coords in ((), []), ((1, 2), [[0, 0], [1, 0]]):
            values = [2.5] * count_of(shape)
            made = make_sparse({"values": values, "coords": coords}, shape=shape)
            self.assertEqual(list(made.flat), values)

    def test_bad_components_in_memory_and_in_files(self):
        for row in SPARSE_ERRORS:
            usual = COO if row.role == "coords" else CSR
            parts = dict(usual, **{row.role: row.part})
            with self.subTest(title=row.title):
                self.refuses([row.words], tensor, shape=row.shape, components=parts)
                data = sparse_entry(parts, shape=list(row.shape))
                error_of(FormatError, load(data)["s"].tobytes)
                self.assertFalse(verify(data))

    def test_rot_is_found_and_not_copied(self):
        """Behind casts and dense forms too."""
        indices = bytearray(saved(make_sparse(CSR), checksum="crc32c"))
        indices[load(indices)["w"].components["indices"].offset] ^= 1
        values = bytearray(saved(tiny_sparse(), checksum="crc32c"))
        values[load(values)["w"].components["values"].offset + 7] ^= 64
        cast = {"float64": "float32"}
        for data in indices, values:
            self.assertFalse(verify(data))
            error_of(FormatError, dumps, load(data), format="ztensor")
            error_of(FormatError, dumps, load(data), format="ztensor", cast=cast)
            for kind, options in (
                    ("ztensor", {"cast": cast}),
                    ("burnpack", {"cast": cast, "dense": True}),
                    ("burnpack", {"dense": True})):
                error_of(FormatError, converted, bytes(data), kind, **options)

    def test_layouts_of_the_real_library(self):
        values = [pack("<f", x) for x in CSR["values"]]
        csr = pack("<8Q", *(CSR["indptr"] + CSR["indices"])) + b"".join(values)
        swapped = b"".join([csr[i:i + 4][::-1] for i in range(0, len(csr), 4)])
        coo = b""
        for row, column, value in zip(*COO["coords"], values):
            coo += pack("<2Q", row, column) + value
        for parts, dense, data in (
                (CSR, CSR_DENSE, make_entry(csr, layout="sparsecsr")),
                (CSR, CSR_DENSE, make_entry(swapped, layout="sparsecsr", data_endianness="big")),
                (COO, COO_DENSE, make_entry(coo, layout="sparsecoo")),
                (COO, COO_DENSE, sparse_entry(COO))):  # without nnz
            item = load(data)["s"]
            self.assertEqual(item.tolist(), dense)
            for role, wanted in parts.items():
                self.assertEqual(item.components[role].tolist(), wanted)
            self.assertEqual(reloaded(item).tolist(), dense)
        cut = load(make_entry(coo[:-1], layout="sparsecoo"))["s"]
        error_of(FormatError, cut.tobytes)

    @with_zstd
    def test_decoded_it_has_as_many_bytes_as_a_dense_one(self):
        """So demands the real library."""
        row = tensor(pack("<3Qf", 0, 1, 2, 5.0))
        blob = bytes(reloaded(row, encoding="zstd").raw)
        data = make_entry(blob, encoding="zstd", layout="sparsecsr", shape=[1, 7])
        self.assertEqual(list(load(data)["s"].flat), [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0])

    def test_a_huge_dense_form_is_refused(self):
        parts = {"values": [1.0], "coords": [[1 << 20], [5]]}
        made = make_sparse(parts, "float64", (1 << 30, 1 << 30))
        error_of(Unsupported, made.tobytes)
        self.assertEqual(reloaded(made).components["coords"].tolist(), parts["coords"])
        for shape in (1 << 33, 1 << 33), (1 << 60,), (1 << 62,):  # offsets beyond 2**64
            wide = make_sparse({"values": [1.0], "coords": [[0]] * len(shape)}, shape=shape)
            data = dumps(dict.fromkeys("abcd", wide), format="ztensor")
            self.refuses(["2**64"], converted, data, "mag", dense=True)

    def test_attrs_of_sparse_tensors(self):
        item = reloaded(tiny_sparse(values="mine"))  # a custom field of this name is kept
        self.assertEqual(item.custom, {"values": "mine"})
        self.assertEqual(item.copy(name="x").tolist(), [[0.0, 1.0], [0.0, 0.0]])
        cast = item.astype("float32")
        for other in item.todense(), item.contiguous(), cast:
            self.assertEqual(other.custom, {"values": "mine"})
            self.assertEqual(reloaded(other).tolist(), [[0.0, 1.0], [0.0, 0.0]])
            if other is not cast:
                self.assertEqual((other.components, other.attrs), (None, {}))

    def test_a_cast_of_a_sparse_tensor_is_one_of_its_values(self):
        there, _ = converted(saved(tiny_sparse()), "ztensor", cast={"float64": "float16"})
        self.assertEqual(there["w"].dtype, "float16")
        self.assertEqual(there["w"].components["values"].dtype, "float16")

    def test_a_checksum_goes_with_its_bytes(self):
        for options in self.OPTIONS:
            item = reloaded([1.0, 2.0], checksum="crc32c", **options)
            self.assertEqual(reloaded(item).attrs, item.attrs)
            for copied in item.contiguous(), item.astype("float32"):  # they are other bytes
                self.assertEqual(reloaded(copied).tolist(), [1.0, 2.0])
        turned = tensorfmt.transpose(tensor([[1.0, 2.0], [3.0, 4.0]]))
        self.assertEqual(reloaded(turned, checksum="sha256").tolist(), [[1.0, 3.0], [2.0, 4.0]])


def scheme(value, param="F32", store="PackedU32", level=()):
    """Return the dtype of a quantized tensor, as Burnpack has it."""
    if store != "Native":
        store = {store: 0}
    lengths = list(level)
    level = "Tensor"
    if lengths:
        level = {"Block": {"storage": lengths + [1] * (5 - len(lengths)), "len": len(lengths)}}
    return {"QFloat": {"value": value, "param": param, "store": store, "level": level,
                       "mode": "Symmetric"}}


Quantized = namedtuple("Quantized", "name shape code raw values scales")


def quantized_rows(stored, meant):
    """Return rows of two tables: of what a file has, and of what that means."""
    rows = []
    for row, numbers in zip(stored, meant):
        value, param, store, *level = row.scheme.split()
        code = scheme(value, param, store, [int(word) for word in level])
        rows.append(Quantized(row.name, row.shape, code, row.raw, numbers.values, numbers.scales))
    return rows


# From the table of worked examples of burn-store 0.21.0.
QUANTIZED = quantized_rows(read_table("""
    name                   shape     scheme                    raw
    q8f_packed_u32         [4]       Q8F F32 PackedU32         8002fd7f 0000003f
    q8s_block4             [2, 4]    Q8S F32 Native 4          01020304fffefdfc 0000803e00000040
    q4s_packed_block8      [2, 8]    Q4S F32 PackedU32 8       10325476efcdab89 0000803f0000003f
    q4f_packed             [8]       Q4F F32 PackedU32         67452301 0000003e
    q2s_packed             [16]      Q2S F32 PackedU32         01721be4 00004040
    q2f_packed_f16scale    [16]      Q2F F16 PackedU32         1b1b1b1b 003a
    e4m3_native            [4]       E4M3 F32 Native           38b87e00 0000803f
    e5m2_bf16scale         [4]       E5M2 BF16 Native          3cbc7b00 803f
    e2m1_block_ue8m0       [2, 4]    E2M1 UE8M0 PackedNative 4  21436587 7f80
    q8s_padded             [3]       Q8S F32 Native            0102ff00 00000040
    q8s_block2d            [2, 2]    Q8S F32 Native 2 2        01020304 0000803f
"""), read_table("""
    scales         values
    [0.5]          [-128, 2, -3, 127]
    [0.25, 2.0]    [1, 2, 3, 4, -1, -2, -3, -4]
    [1.0, 0.5]     [0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4, -5, -6, -7, -8]
    [0.125]        [7, 6, 5, 4, 3, 2, 1, 0]
    [3.0]          [1, 0, 0, 0, -2, 0, -1, 1, -1, -2, 1, 0, 0, 1, -2, -1]
    [0.75]         [-1, -2, 1, 0, -1, -2, 1, 0, -1, -2, 1, 0, -1, -2, 1, 0]
    [1.0]          [1.0, -1.0, 448.0, 0.0]
    [1.0]          [1.0, -1.0, 57344.0, 0.0]
    [1.0, 2.0]     [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0]
    [2.0]          [1, 2, -1]
    [1.0]          [1, 2, 3, 4]
"""))
BLOCK4, BLOCK_OF_TWO_MEANINGS = QUANTIZED[1], QUANTIZED[-1]


def dequantized(row):
    """Return each value times the scale of its block, for blocks of one dimension."""
    length = len(row.values) // len(row.scales)
    return [float(value * row.scales[i // length]) for i, value in enumerate(row.values)]


def make_burnpack(*rows):
    """Return a Burnpack file of (name, shape, dtype as in the CBOR, bytes in hex, ...)."""
    entries, data = {}, b""
    for row in rows:
        name, shape, code, text = row[:4]
        data += bytes(-len(data) % 256)
        raw = unhex(text)
        entries[name] = {"dtype": code, "shape": shape,
                         "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return burnpack_file({"tensors": entries}, data)


# Changes to a scheme: whether what it means is known then.
SCHEMES = read_table("""
    known    change
    True     {"level": {"Block": {"storage": [4, 1, 1, 1, 1], "len": 1}}}
    True     {"level": {"Block": {"storage": [4], "len": 1}}}
    True     {"store": {"PackedNative": 0}}
    True     {"store": {"PackedU32": 0}}
    True     {"store": "U32"}
    False    {"level": {"Block": {"storage": [4, 1, 1, 1, 1]}}}
    False    {"level": {"Block": {"storage": [4, 1, 1, 1, 1], "len": 256}}}
    False    {"level": {"Block": {"storage": [4, 1, 1, 1, 1], "len": 1, "more": 1}}}
    False    {"level": {"Block": {"storage": 4, "len": 1}}}
    False    {"level": {"Block": {"storage": [256, 1], "len": 1}}}
    False    {"level": {"Block": {"storage": [0], "len": 1}}}
    False    {"level": {"Block": {}}}
    False    {"level": {"Block": [1]}}
    False    {"level": {"BlockTensor": {}}}
    False    {"level": "Tensor"}
    False    {"store": "PackedU32"}
    False    {"store": {"Native": None}}
    False    {"store": {"PackedU32": -1}}
    False    {"store": {"PackedU32": 1.5}}
    False    {"store": [1]}
    False    {"value": "Q3S"}
    False    {"value": ["Q8S"]}
    False    {"param": None}
    False    {"mode": "Other"}
    False    {"mode": {-1180591620717411303424: 0}}
    False    {"more": 1}
    False    {1180591620717411303424: 1}
""")


@about("burnpack", "burnrecord")
class QuantizedTest(TestCase):
    def test_worked_examples(self):
        file = load(Short(make_burnpack(*QUANTIZED)))
        for row in QUANTIZED:
            with self.subTest(name=row.name):
                self.check_example(row, file[row.name])
                made = tensor(unhex(row.raw), "qfloat", row.shape, custom={"burn_dtype": row.code})
                self.check_example(row, made)
                self.assertEqual(reloaded(made, "burnpack").tobytes(), unhex(row.raw))

    def check_example(self, row, item):
        shape = tuple(row.shape)
        self.assertEqual((item.dtype, item.shape), ("qfloat", shape))
        self.assertEqual(item.strides, tensorfmt.row_major(shape, 1))
        self.assertEqual(item.tobytes(), unhex(row.raw))
        self.assertEqual(item.scheme["value"], row.code["QFloat"]["value"])
        self.assertEqual(item.values.shape, shape)
        self.assertSame([float(x) for x in item.values.flat], [float(x) for x in row.values])
        self.assertEqual(list(item.scales.flat), row.scales)
        if row is BLOCK_OF_TWO_MEANINGS:
            self.assertIn("two meanings", error_of(Unsupported, item.dequantize).what)
        else:
            self.assertSame(list(item.dequantize().flat), dequantized(row))

    def test_more_elements_than_are_read_at_once(self):
        halves = []
        for code in range(248):
            halves += [(code & 15 ^ 8) - 8, (code >> 4 ^ 8) - 8]
        for value, numbers in (
                ("Q8F", list(range(128)) + list(range(-128, -8))),  # of 248 bytes
                ("Q4F", halves)):
            raw = bytes(range(248)) * 160 + pack("<f", 0.5)
            item = tensor(raw, "qfloat", [160 * len(numbers)], custom={"burn_dtype": scheme(value)})
            wanted = [number * 0.5 for number in numbers]
            self.assertEqual(list(item.dequantize().flat), wanted * 160)

    def test_every_small_float(self):
        for kind, dtype in (("E5M2", "float8_e5m2"), ("E4M3", "float8_e4m3fn"),
                            ("E8M0", "float8_e8m0fnu")):
            for code, value in enumerate(tensor(bytes(range(256)), dtype).flat):
                self.assertSame(tensorfmt.minifloat(kind, code), value, (kind, code))
        values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        values += [-value for value in values]
        self.assertSame([tensorfmt.minifloat("E2M1", code) for code in range(16)], values)

    def test_schemes_stay_as_they_are_known_or_not(self):
        for known, change in SCHEMES:
            facts = Map(BLOCK4.code["QFloat"])
            facts.update(change)
            code = {"QFloat": facts}
            data = make_burnpack(BLOCK4._replace(code=code))
            item = load(data)[BLOCK4.name]
            with self.subTest(change=change):
                self.assertSame(item.attrs["burn_dtype"], code)
                self.assertEqual(item.tobytes(), unhex(BLOCK4.raw))
                self.assertTrue(verify(data))
                if known:
                    self.assertEqual(list(item.dequantize().flat), dequantized(BLOCK4))
                else:
                    error_of(Unsupported, item.dequantize)
                self.assertEqual(dumps(load(data), format="burnpack"), data)

    def test_too_few_bytes_stay_as_they_are(self):
        item = load(make_burnpack(("q", [4], scheme("Q8F"), "0102030405")))["q"]
        self.assertIn("needs 8", error_of(Unsupported, item.dequantize).what)

    def test_what_tensor_needs(self):
        for shape, code in (0, "QFloat"), (None, {"QFloat": {}}), (0, {"QFloat": 1}):
            self.refuses(["needs bytes, shape= and"], tensor, b"", "qfloat", shape,
                         custom={"burn_dtype": code})

    def test_what_has_no_values_says_what_to_do(self):
        item = pickle.loads(pickle.dumps(load(make_burnpack(BLOCK4))[BLOCK4.name]))
        self.assertIn('convert(cast="float32")', error_of(Unsupported, item.tolist).what)
        bare = item.copy(attrs={})
        self.assertIn("no quantization scheme", error_of(Unsupported, bare.dequantize).what)

    def test_convert_wants_to_be_asked(self):
        data = make_burnpack(BLOCK4)
        self.refuses(["qfloat", "cast='float32'"], converted, data, "mag")
        file, summary = converted(data, "mag", cast="float32")
        self.assertEqual(list(file[BLOCK4.name].flat), dequantized(BLOCK4))
        self.assertEqual(summary.cast, [(BLOCK4.name, "qfloat", "float32", False)])
        odd, stream = make_burnpack(("q", [4], scheme("Q3S"), "00")), io.BytesIO()
        error_of(Unsupported, convert, odd, stream, format="mag", cast="float32")
        self.assertEqual(stream.getvalue(), b"")  # all is looked at before the first byte


# -- [8] save ------------------------------------------------------------------------------------

F32 = tensor([1.5], "float32")


def nested(levels):
    """Return lists in one another."""
    made = []
    for _ in range(levels):
        made = [made]
    return made


def literals(text):
    """Return the values of a text, one on each line."""
    return [literal_eval(line.strip()) for line in text.strip().splitlines()]


DEEP = nested(126)
ONE_TENSOR = {"w": F32}
ODD = tensor(b"\1\2", "bool")  # in zTensor 2 a bool has bytes of its own
COO_OF_ONE = tensor(shape=(3, 5), components={"values": [1.0], "coords": [[0, 1]]})
CSR_OF_FLOAT32 = tensor(dtype="float32", shape=(3, 5), components=CSR)


def one_of(data, dtype="float32", shape=None, **custom):
    """Return the tensors of a file that has one, `w`."""
    return {"w": tensor(data, dtype, shape, custom=custom)}


Refusal = namedtuple("Refusal", "format tensors options")  # of save; .ci/texts.py has the words
REFUSED = []


def refuse(name, every=(), one="", tensors=(), options=(), alone=()):
    """Add rows to REFUSED: tensors; options, with one tensor; options alone, without tensors.

    `one`: a text of tensors, each the only one of a file: values, dtype, shape, custom attributes.
    """
    every = dict(every)
    for row in read_table("values  dtype  shape  custom\n" + one.strip()):
        item = tensor(row.values, row.dtype, row.shape, custom=row.custom)
        REFUSED.append(Refusal(name, {"w": item}, every))
    for given in tensors:
        REFUSED.append(Refusal(name, given, every))
    for given in options:
        REFUSED.append(Refusal(name, ONE_TENSOR, dict(given, **every)))
    for given in alone:
        REFUSED.append(Refusal(name, {}, dict(given, **every)))


refuse("mag",
       one="""
           [1]      uint16     None                     {}
           [1.0]    float32    (1, 1, 1, 1, 1, 1, 1)    {}
       """,
       tensors=[
           {"a": tensor([1.0]), "b": F32, "c": tensor([1], "int64")},
           {"": F32},
           {"a\0": F32},
       ],
       options=literals(r"""
           {"metadata": {"a": "text", "b": 1, "c": None}}
           {"metadata": {"big": 18446744073709551616}}
           {"metadata": {"low": -9223372036854775809}}
           {"metadata": {"": 1, "n\0": 1}}
           {"version": 200}
       """) + [{"metadata": {"k" * 65536: 1}}])
refuse("mag", {"version": 300},
       one="""
           []       int8       None                                                   {}
           [1.0]    float64    None                                                   {}
           [1]      int8       (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)    {}
       """,
       tensors=[
           {"d": tensor(b"", "int8", (0, 1 << 63)), "w": F32},
       ],
       options=[
           {"timestamp": 5},
           {"metadata": {"a": [{"b": b""}], "e": {1: 2}, "d": "\ud800", "deep": DEEP}},
       ],
       alone=[
           {},
       ])
refuse("ztensor",
       one=r"""
           [1]    int64    None    {"size": 3}
           [1]    int64    None    {"big": 36893488147419103232}
           [1]    int64    None    {"odd": "\ud800"}
           [1]    int64    None    {"checksum": "md5:0"}
           [1]    int64    None    {"encoding": "lz4"}
       """,
       tensors=[
           one_of([1], "int64", deep=DEEP),
           one_of([1], "int64", odd=object),
       ],
       options=literals("""
           {"encoding": "zstd", "level": 23}
           {"metadata": {"a": 1}}
           {"encoding": "lz4"}
           {"checksum": "md5"}
           {"data_endianness": "middle"}
       """),
       alone=[
           {"version": "1.2"},
       ])
refuse("ztensor", {"version": 2},
       one="""
           b""    int8    (9223372036854775808, 4, 0)    {}
       """,
       tensors=[
           {"w": ODD},
           {"a": ODD[:1], "b": ODD[1:]},
           {"": F32},
           {"w": CSR_OF_FLOAT32},
           one_of([1.0], "float64", c=nested(29)),
       ],
       alone=[
           {"metadata": {"": 1, "a\0": 2, "b": 1 << 64, "e": nested(31), "d" * 1025: 1}},
       ])
refuse("primitiv",
       one="""
           []                   float32    None                           {}
           [1.0]                float32    (1, 1, 1, 1, 1, 1, 1, 1, 1)    {}
           [1.0, 2.0]           float32    None                           {"batch": 2}
           [[1.0, 2.0, 3.0]]    float32    None                           {"batch": 2}
           [[1.0, 2.0]]         float32    None                           {"batch": True}
           [[1.0, 2.0]]         float32    None                           {"batch": 1.0}
           [[1.0, 2.0]]         float32    None                           {"batch": "2"}
       """,
       tensors=[
           {"a": tensor([1]), "b": tensor([1.0], "float16")},
           {"a": F32, "a.b": F32},
           {"a:m": F32},
           {"a\\b": F32},
           {"a\\:b": tensor([[1.0, 2.0]], "float32", custom={"batch": 2})},
           {"a:b": tensor([[1.0, 2.0]], "float32", custom={"batch": 2})},
       ],
       options=literals("""
           {"kind": "shape", "dims": [1]}
           {"kind": "tensor"}
           {"kind": "parameter"}
           {"kind": "optimizer"}
           {"kind": "layer"}
           {"batch": 0}
           {"dims": [1]}
           {"metadata": {"a": 1}}
       """),
       alone=literals("""
           {"kind": "tensor"}
           {"kind": "shape"}
           {"kind": "optimizer", "metadata": {"a": -1, "b": "x", "c": 1e39, "d": 1}}
           {"kind": "shape", "dims": [4294967296]}
           {"kind": "shape", "dims": [0], "batch": 1}
           {"kind": "shape", "dims": [1, 1, 1, 1, 1, 1, 1, 1, 1], "batch": 1}
           {"kind": "shape", "dims": [2.0], "batch": 1}
           {"kind": "shape", "dims": [True], "batch": 1}
           {"kind": "shape", "dims": "23", "batch": 1}
           {"kind": "shape", "dims": [None], "batch": 1}
           {"kind": "shape", "dims": [[2]], "batch": 1}
           {"kind": "shape", "dims": [2], "batch": 0}
           {"kind": "shape", "dims": [2], "batch": True}
           {"kind": "shape", "dims": [2], "batch": 2.0}
       """))
refuse("burnpack",
       one="""
           [1.0]    float32    None    {"param_id": -1}
           [1.0]    float32    None    {"burn_dtype": "F64"}
       """,
       options=literals("""
           {"metadata": {"a": 1, "b": "x"}}
           {"scalars": {"a": {"Int": 1.5}}}
           {"scalars": {"a": {"Int": 9223372036854775808}}}
           {"scalars": {"a": {"Int": -9223372036854775809}}}
           {"scalars": {"a": {"UInt": 18446744073709551616}}}
           {"scalars": {"a": {"UInt": -1}}}
           {"scalars": {"a": {"Bool": 1}}}
           {"scalars": {"a": {"Int": 1, "UInt": 1}}}
           {"scalars": {"a": 5}}
           {"scalars": 5}
       """))
refuse("tensorbuffers",
       one="""
           b""    uint8    (0, 4294967296)    {}
       """,
       tensors=[
           {"a": tensor([True]), "b": tensor([1.0], "float16"), "c": F32},
           one_of([1], "uint8", (1,) * 65),
       ],
       options=literals("""
           {"metadata": {"model": 1}}
           {"metadata": {"name": "x"}}
           {"sort": "yes"}
           {"operations": [{"id": -1}]}
           {"operations": [5]}
           {"operations": [{"operation": 128}]}
           {"operations": [{"operation": -129}]}
           {"operations": [{"input_operations": 5}]}
           {"operations": [{"input_operations": [-1]}]}
           {"operations": 5}
           {"operations": [{"output": 18446744073709551616}]}
           {"operations": [{"kind": 1}]}
       """))
refuse("safetensors",
       one="""
           b""      int8       (9223372036854775808, 4, 0)    {}
           [1.0]    float32    None                           {"st_dtype": "F64"}
       """,
       tensors=[
           {"__metadata__": F32},
           {"s": COO_OF_ONE},
       ],
       options=literals("""
           {"metadata": {"a": 1, "b": "x"}}
           {"sort": "yes"}
           {"empty_metadata": 1}
       """))


def huge_tensors(rows):
    """Return (name, Tensor) of each (dtype, shape), without their bytes."""
    made = []
    for i, (dtype, shape) in enumerate(rows):
        nbytes = tensorfmt.ITEMSIZE[dtype] * count_of(shape)
        item = tensorfmt.Tensor("", dtype, shape, tensorfmt.Buffer(b""), 0, nbytes)
        made.append(("t%d" % i, item))
    return made


def same_hash(raw, h=0):
    return 5


class RefusalTest(TestCase):
    """save() says what a format cannot hold, before the first byte."""

    def test_what_a_format_cannot_hold(self):
        tested = names_of(SAVED)
        for name, tensors, options in REFUSED:
            if name in tested:
                with self.subTest(format=name, tensors=repr(list(tensors)), **options):
                    stream = io.BytesIO()
                    text = self.refuses([], save, stream, tensors, format=name, **options)
                    self.assertEqual(stream.getvalue(), b"")
                    if "c" in tensors:  # one of three can be saved
                        self.assertEqual(text.count("\n"), 2, "one line for each of two tensors")

    @about("mag")
    def test_a_refusal_lists_a_hundred_tensors(self):
        for count, words, lines in (1, "t0", 0), (100, "100 things", 100), (101, "1 more", 101):
            tensors = [("t%d" % i, tensor([i])) for i in range(count)]
            text = self.refuses([words], dumps, tensors, format="mag")
            self.assertEqual(text.count("\n"), lines)

    def test_wrong_metadata_do_not_hide_wrong_tensors(self):
        words = ["2 things", "metadata 5 = b'x'", "metadata={}", "tensor '\\ud8ff'", "surrogate"]
        for name in set(FORMATS) - {"primitiv"}:
            self.refuses(words, dumps, {"\ud8ff": F32}, format=name, metadata={5: b"x"})

    def test_names_attrs_and_options_that_are_not_known_are_named(self):
        for row in WRITES:
            with self.subTest(format=row.name):
                self.refuses(["'w'"], dumps, [("w", F32), ("w", F32)], format=row.name)
                self.refuses(["'flavour'"], dumps, {}, format=row.name, attrs={"flavour": 1})
                if not row.any_attr:
                    self.refuses(["'w'", "'colour'"], dumps, one_of([1.0], colour=3),
                                 format=row.name)
                text = str(error_of(TypeError, dumps, {}, format=row.name, colour=3))
                for option in ["'colour'"] + list(find_format(row.name).OPTIONS):
                    self.assertIn(option, text)

    @about("primitiv")
    def test_a_shape_is_not_left_out_of_a_model(self):
        shape = load(dumps({}, format="primitiv", kind="shape", dims=1))
        self.refuses(["leaves them out"], dumps, shape, format="primitiv", kind="model")

    @about("primitiv")
    def test_a_name_of_too_many_parts_is_unsupported(self):
        most = tensorfmt.Primitiv.NAME_PARTS
        data = primitiv_of_values(MODEL, [1, Code(b"\xdd" + pack(">I", most + 1))])
        error = error_of(Unsupported, load, data + b"\xa1a" * (most + 1))
        self.assertIn(str(most), error.what)

    @about("burnpack")
    def test_scalars_have_names(self):
        for scalars in 5, {1: 2}:
            self.refuses(["by name"], dumps, {}, format="burnpack", attrs={"scalars": scalars})

    @about("tensorbuffers")
    def test_two_names_of_one_hash(self):
        with Changed(find_format("tensorbuffers"), "hash_name", same_hash):
            self.refuses(["'b'", "the same id as 'a'"], dumps, [("a", F32), ("b", F32)],
                         format="tensorbuffers")

    @about("tensorbuffers")
    def test_an_offset_has_32_bits(self):
        buffer = tensorfmt.Buffer(b"")
        for side, wrong in (1 << 15, "'c'"), (1 << 16, "'a'"):
            shape = side, side, 2
            large = tensorfmt.Tensor("", "uint8", shape, buffer, 0, 2 * side * side)
            words = ["tensor %s: an offset or a size over" % wrong]
            self.refuses(words, dumps, {"a": large, "b": large, "c": F32}, format="tensorbuffers")

    @about()
    def test_a_format_that_is_not_known_is_named(self):
        self.refuses(["there are mag, ztensor"], dumps, {}, format="pt")
        self.refuses(["format=", ".bpk"], save, io.BytesIO(), {})

    @about()
    def test_arguments_of_a_wrong_type_raise_type_errors(self):
        error = error_of(TypeError, dumps, {5: F32}, format="mag")
        self.assertIn("name is a str", str(error))
        error_of(TypeError, dumps, {}, format="mag", metadata=5)
        error_of(TypeError, dumps, {}, format="mag", attrs=5)
        error_of(TypeError, save, 5, {}, format="mag")

    def test_a_board_only_reads(self):
        path = os.path.join(folder_for(self), "x.mag")
        with Changed(tensorfmt, "BOARD", True):
            for call in dumps, lambda tensors, **to: save(path, tensors, **to):
                error = error_of(tensorfmt.Unsupported, call, {"w": F32}, format="mag")
                self.assertEqual(error.what, "a board only reads: save files on a computer")
        self.assertFalse(os.path.exists(path))

    def test_bytes_of_a_tensor_on_a_board(self):
        file = load(golden("seed_basic.mag"))
        for item in list(file.values()) + [tensor([[1, 2], [3, 4]])[:, ::-1], tensor([])]:
            wanted = item.tobytes()
            with Changed(tensorfmt, "BOARD", True):
                self.assertEqual(item.tobytes(), wanted)

    @about("ztensor")
    def test_sha256_needs_hashlib(self):
        stream = io.BytesIO()
        with mock.patch.dict(sys.modules, hashlib=None):
            error = error_of(Unsupported, save, stream, ONE_TENSOR, format="ztensor",
                             checksum="sha256")
        self.assertIn("hashlib", error.what)
        self.assertEqual(stream.getvalue(), b"", "bytes before the refusal")


def saver_of(name):
    """Return a function that saves tensors in a format."""
    def save_them(tensors):
        return dumps(tensors, format=name)
    return save_them


def load_and_save(data):
    return dumps(load(data), format="burnpack")


def load_safetensors(data):
    return load(data, format="safetensors")


# The least that a limit may be for a call to pass.
Limit = namedtuple("Limit", "name least call value")


def limits_of_codecs():
    deep = {"a": [{"b": 1}]}
    cbor, msgpack = cbor_loads, msgpack_loads
    return [
        Limit("MAX_DEPTH", 3, cbor_dumps, deep),
        Limit("MAX_DEPTH", 3, msgpack_dumps, deep),
        Limit("MAX_DEPTH", 3, msgpack, b"\x81\1\x91\x81\1\1"),
        Limit("MAX_OTHER_KEYS", 2, cbor, b"\xa3\0\0\1\0aa\0"),
        Limit("MAX_OTHER_KEYS", 2, cbor, b"\x82\xa1\0\0\xa1\1\0"),
        Limit("MAX_OTHER_KEYS", 2, msgpack, b"\x82\0\0\1\0"),
        Limit("MAX_ITEMS", 2, cbor, b"\x81\x80"),
        Limit("MAX_ITEMS", 4, msgpack, b"\x93\x90\x80\x90"),
        Limit("MAX_ITEMS", 5, json_loads, b'[[],{"a":[{"b":1},2]}]'),
    ]


def limits_of_formats():
    three = [("t%d" % i, F32) for i in range(3)]
    zt, bpk = dumps(three, format="ztensor"), dumps(three, format="burnpack")
    zt_index, = unpack("<Q", zt[-8:])
    bpk_index, = struct.unpack_from("<I", bpk, 6)
    tied = burnpack_of_spans([(0, 256)] * 4, bytes(256))
    stat = primitiv_of_values(MODEL, [1, ["a"], SCALAR, 1, "\u00e9", SCALAR])
    lists = safetensors_file({"w": {"x": [[1]]}})
    csr = tensor(dtype="int8", shape=(3, 5), components=CSR_INT)
    return [
        Limit("MAX_INDEX", zt_index, load, zt),
        Limit("MAX_INDEX", 495, load, mag300_replaced()),
        Limit("MAX_INDEX", 96, load, ztensor2_with({})),
        # One less than elsewhere, as the real library.
        Limit("MAX_DEPTH", 5, saver_of("ztensor"), {"w": tensor(1, custom={"k": [[1]]})}),
        Limit("MAX_NAMES", 1 - 4 * len(stat), load, stat),
        Limit("MAX_COPIES", 1, load_and_save, tied),
        Limit("MAX_DENSE", 15, tensorfmt.Tensor.tobytes, csr),
        Limit("NAME_PARTS", 17, saver_of("primitiv"), {"a.b" * 16: F32}),
        Limit("MAX_TENSORS", 3, load, bpk),
        Limit("MAX_TENSORS", 3, saver_of("burnpack"), three),
        Limit("MAX_METADATA_BYTES", bpk_index, load, bpk),
        Limit("MAX_METADATA_BYTES", bpk_index, saver_of("burnpack"), three),
        Limit("NESTED", 4, load, lists),
        Limit("MAX_HEADER_BYTES", len(lists) - 16, load_safetensors, lists),
        Limit("MAX_HEADER_BYTES", len(lists) - 16, load, lists),
        Limit("MAX_HEADER_BYTES", 168, saver_of("safetensors"), three),
    ]


def owner_of(limit):
    """Return the module, or the class of the format, that has a limit."""
    classes = [tensorfmt.Burnpack, tensorfmt.Primitiv, tensorfmt.Safetensors]
    owner, = [owner for owner in [tensorfmt] + classes if limit in vars(owner)]
    return owner


class LimitTest(TestCase):
    """What is just allowed passes; what is one too many is refused with the name of the limit."""

    def test_an_error_names_the_limit_that_is_met(self):
        for name, least, call, value in limits_of_codecs() + limits_of_formats():
            with self.subTest(limit=name, least=least):
                owner = owner_of(name)
                with Changed(owner, name, least):
                    call(value)
                words = "%s|%d" % (name, least - 1)
                with Changed(owner, name, least - 1), self.assertRaisesRegex(ValueError, words):
                    call(value)

    def test_the_largest_that_fits_is_written_and_the_next_is_refused(self):
        rows = [(row.name, [fits], [too_large]) for row in WRITES for fits, too_large in row.limits]
        if chosen("tensorbuffers"):  # two tensors: where the second begins
            rows.append(("tensorbuffers",
                         [("int8", ((1 << 32) - 5,)), ("int8", (1,))],
                         [("int8", ((1 << 32) - 4,)), ("int8", (1,))]))
        for name, fits, too_large in rows:
            write = find_format(name).write
            write(huge_tensors(fits), {}, {}, {})
            last = "t%d" % (len(too_large) - 1)
            self.refuses([last], write, huge_tensors(too_large), {}, {}, {})

    @about("tensorbuffers", "burnpack", "primitiv")
    def test_the_smallest_and_the_largest_numbers_come_back(self):
        operations = [{"operation": number, "id": abs(number), "output": abs(number),
                       "input_operations": []} for number in (-128, 0, 1, 127)]
        scalars = {
            "lowest": {"Int": -(1 << 63)},
            "highest": {"Int": (1 << 63) - 1},
            "zero": {"UInt": 0},
            "largest": {"UInt": (1 << 64) - 1},
            "true": {"Bool": True},
            "half": {"Float": 0.5},
        }
        shape = {"kind": "shape", "batch": (1 << 32) - 1}
        for name, key, value, options in (
                ("tensorbuffers", "operations", operations, {}),
                ("burnpack", "scalars", scalars, {}),
                ("primitiv", "dims", [(1 << 32) - 1], shape),
                ("primitiv", "dims", [1] * 8, shape)):
            data = dumps({}, format=name, **dict(options, **{key: value}))
            self.assertSame(load(data).attrs[key], value)
        item = tensor([1.0], "float32", custom={"param_id": (1 << 64) - 1})
        self.assertSame(reloaded(item, "burnpack").attrs, item.custom)


# Each option of save, and the names of what is saved with it.
WRITTEN_WITH = read_table("""
    format           names     options
    mag              a b c     {"version": 1}
    mag              a b c     {"version": 300, "timestamp": "2026-01-01T00:00:00+00:00"}
    ztensor          a b c     {"encoding": "raw", "checksum": "crc32c", "data_endianness": "big"}
    ztensor          a b c     {"encoding": "zstd", "level": 3, "version": 0.1}
    ztensor          a b c     {"version": 2}
    primitiv         a b c     {"kind": "model"}
    primitiv         value     {"kind": "parameter"}
    primitiv         tensor    {"kind": "tensor"}
    primitiv         ""        {"kind": "shape", "dims": [2], "batch": 3}
    primitiv         ""        {"kind": "optimizer"}
    burnpack         a b c     {"scalars": {"n": {"Int": 1}}}
    tensorbuffers    a b c     {"sort": True, "operations": True}
    tensorbuffers    a b c     {"sort": False, "operations": False}
    tensorbuffers    a b c     {"operations": [{"id": 1}]}
    safetensors      a b c     {"sort": True, "empty_metadata": True}
    safetensors      a b c     {"sort": False}
""")
# What tensors, files or attrs say, and the options: which error comes of both, if any.
OPTIONS = read_table("""
    tensors       error    options
    one           order    {"data_endianness": "big", "encoding": "zstd"}
    none          order    {"data_endianness": "big", "encoding": "zstd"}
    coo           order    {"data_endianness": "big", "encoding": "zstd"}
    int8          order    {"data_endianness": "big", "encoding": "zstd"}
    file_big      order    {"data_endianness": "big", "encoding": "zstd"}
    file_zstd     order    {"data_endianness": "big"}
    attrs_zstd    order    {"data_endianness": "big"}
    attrs_big     order    {"encoding": "zstd"}
    attrs_both    order    {}
    one           level    {"level": 3}
    none          level    {"level": 3}
    file_big      level    {"level": 3}
    file_zstd     level    {"level": 3, "encoding": "raw"}
    attrs_both    -        {"encoding": "raw"}
    attrs_both    -        {"data_endianness": "little"}
    file_big      -        {"encoding": "zstd"}
    file_zstd     -        {"data_endianness": "little"}
    file_zstd     -        {"data_endianness": "big", "encoding": "raw"}
    file_zstd     -        {"level": 3}
    attrs_zstd    -        {"level": 3}
    none          -        {"level": 3, "encoding": "zstd"}
""")


class SaveTest(TestCase):
    """Metadata and options: what is written, and what comes back."""

    def test_metadata_come_back(self):
        rows = [(row.name, metadata, {}) for row in WRITES for metadata in row.metadata]
        if chosen("primitiv"):
            numbers = {"n": (1 << 32) - 1, "x": 0.25, "y": -INF}
            rows.append(("primitiv", numbers, {"kind": "optimizer"}))
        for name, metadata, options in rows:
            pairs = Map(sorted(metadata.items()))
            file = load(dumps({}, format=name, metadata=pairs, **options))
            self.assertSame(file.metadata, metadata, name)
            again = load(dumps(file, format=name))
            self.assertSame(again.metadata, metadata, "those of the file, if none are given")
            without = load(dumps(file, format=name, metadata={}))
            self.assertSame(without.metadata, {})

    def test_no_option_leaves_bytes_that_no_field_names(self):
        for row in WRITTEN_WITH:
            is_here = ZSTD or row.options.get("encoding") != "zstd"
            if row.format in FORMATS and is_here:
                tensors = {name: tensor([1.5] * i, "float32")
                           for i, name in enumerate(row.names.split(), 1)}
                with self.subTest(format=row.format, **row.options):
                    data = dumps(tensors, format=row.format, **row.options)
                    self.assertTrue(verify(data))
                    unused = [field for field in explain(data) if field.kind == "unused"]
                    self.assertEqual(unused, [])

    def test_every_option_is_among_them(self):
        for row in WRITES:
            known = set(find_format(row.name).OPTIONS)
            for name, _ in row.later:
                known.update(find_format(name).OPTIONS)
            tried = set()
            for written in WRITTEN_WITH:
                if written.format == row.name:
                    tried.update(written.options)
            self.assertEqual(tried, known)

    @about("mag")
    def test_mag_saves_true_as_1(self):
        self.assertSame(load(dumps({}, format="mag", metadata={"t": True})).metadata, {"t": 1})

    @about("primitiv")
    def test_a_statistic_has_a_batch(self):
        tensors = {"a": F32, "a:b": tensor([1.0, 2.0], "float32", custom={"batch": 2})}
        file = load(dumps(tensors, format="primitiv"))
        self.assertSame(file["a:b"].attrs, {"batch": 2})

    @about("mag", "ztensor")
    def test_which_generation_is_written(self):
        """That of version=, else of what is saved, else of attrs, else the first."""
        for name, first, older, newer in ("mag", 1, 1, 300), ("ztensor", "0.1.0", 0.1, "2"):
            new = load(saved(F32, name, version=newer))
            old = load(saved(F32, name, version=older))
            attrs = {"version": newer}
            for tensors, options, wanted in (
                    (ONE_TENSOR, {}, first),
                    (new, {}, newer),
                    (dict(new), {}, newer),
                    (new, {"version": older}, first),
                    (old, {"version": str(newer)}, newer),
                    (ONE_TENSOR, {"attrs": attrs}, newer),
                    (dict(old), {"attrs": attrs}, first)):
                file = load(dumps(tensors, format=name, **options))
                self.assertEqual((file.format, file.attrs["version"]), (name, wanted))
            self.assertEqual(converted(new, name)[0].attrs["version"], newer)
        error_of(TypeError, saved, F32, version=2, checksum="crc32c")

    @about("ztensor")
    def test_options_win_over_attrs(self):
        item = reloaded(F32, data_endianness="big", checksum="crc32c")
        for options, key, wanted in (
                ({}, "data_endianness", "big"),
                ({}, "checksum", "crc32c:0x"),
                ({"data_endianness": "little"}, "data_endianness", "little"),
                ({"checksum": "none"}, "checksum", "None"),
                ({"checksum": "sha256"}, "checksum", "sha256:")):
            found = str(reloaded(item, **options).attrs.get(key))
            self.assertEqual(found[:len(wanted)], wanted, (options, key))

    @about("ztensor")
    @with_zstd
    def test_no_option_is_ignored(self):
        big, packed = {"data_endianness": "big"}, {"encoding": "zstd"}
        coo = tensor(shape=(3,), components={"values": [1.0], "coords": [[1]]})
        models = {
            "one": ONE_TENSOR,
            "none": {},
            "coo": {"s": coo},
            "int8": one_of([1], "int8"),
            "file_big": {"w": reloaded(F32, **big)},
            "file_zstd": {"w": reloaded(F32, **packed)},
            "attrs_big": one_of([1.0], **big),
            "attrs_zstd": one_of([1.0], **packed),
            "attrs_both": one_of([1.0], encoding="zstd", **big),
        }
        words = {
            "order": "data_endianness='big' has no effect on encoding='zstd'",
            "level": "level is of zstd",
        }
        for row in OPTIONS:
            tensors = models[row.tensors]
            if row.error in words:
                self.refuses([words[row.error]], dumps, tensors, format="ztensor", **row.options)
            else:
                dumps(tensors, format="ztensor", **row.options)

    @about("ztensor")
    @with_zstd
    def test_a_file_may_say_what_no_option_can(self):
        frame = zstd_frame(8)
        data = ztensor_of_index(cbor_dumps([{
            "name": "w", "offset": 64, "size": len(frame), "dtype": "float32", "layout": "dense",
            "shape": [2], "encoding": "zstd", "data_endianness": "big"}]), data=frame)
        again = load(dumps(load(data), format="ztensor"))["w"]
        self.assertSame(again.attrs, {"layout": "dense", "encoding": "zstd"})
        self.assertEqual(again.tobytes(), bytes(range(8)))

    @about("zstd")
    @with_zstd
    def test_zstd_is_written_with_its_level(self):
        item = tensor([(i * 2654435761 >> 7) % (1 + i % 13) for i in range(5000)], "int16")
        usual, three, most = [saved(item, encoding="zstd", **options)
                              for options in ({}, {"level": 3}, {"level": 22})]
        self.assertEqual(usual, three)
        self.assertNotEqual(three, most)
        for level in 19, -131072:
            saved(item, encoding="zstd", level=level)

    @about("zstd")
    @with_zstd
    def test_small_decoded_blocks_are_kept(self):
        for most, is_kept in (100, True), (99, False):
            coded = reloaded(tensor(bytes(100)), encoding="zstd")
            with Changed(tensorfmt, "KEPT", most):
                self.assertEqual(coded[0], 0)
                self.assertEqual(coded[1:3].size, 2)
                self.assertEqual(coded.find_kept("values") is not None, is_kept)

    @about("zstd")
    def test_what_needs_no_zstd_works_without_a_module(self):
        stream, mixed = io.BytesIO(), load(golden("mixed.zt"))
        with Changed(tensorfmt, "ZSTD_MODULES", ("no_such_zstd", "nor_this")):
            saving = error_of(Unsupported, save, stream, ONE_TENSOR, format="ztensor",
                              encoding="zstd")
            reading = error_of(Unsupported, mixed["z"].tobytes)
            self.assertEqual(mixed["big"].size, 3)  # the others can be read
            copied = dumps(mixed, format="ztensor")  # frames too, as they are
        for error in saving, reading:
            self.assertIn("no_such_zstd, nor_this", error.what)
        self.assertEqual(bytes(load(copied)["z"].raw), bytes(mixed["z"].raw))
        self.assertEqual(stream.getvalue(), b"", "bytes before the refusal")


WHILE_SAVING = {"write_beside", "write_all", "check_writable", "keep_access", "list_of_access",
                "is_done"}
REFUSALS = "EPERM EACCES EINVAL ENOSYS ENOTSUP EOPNOTSUPP"


class TargetCase(FolderCase):
    """A save() to a path, `m.zt` in a folder of its own."""

    def write_old(self, mode=0o644):
        write_file(self.path, b"old")
        os.chmod(self.path, mode)

    def mode(self):
        return oct(os.stat(self.path).st_mode & 0o7777)

    def save(self, tensors=None):
        save(self.path, tensors or ONE_TENSOR)

    def fails_with(self, wanted, tensors, number, path):
        """Assert that save() raises an OSError of these facts; nothing is left beside old files."""
        before = os.listdir(self.folder)
        error = error_of(wanted, save, self.path, tensors)
        self.assertEqual((error.errno, error.filename), (number, path))
        self.assertEqual(os.listdir(self.folder), before)
        return error

    def check_not_replaced(self, path):
        """Assert that a file is not replaced, and that the error names it and the way."""
        before = os.listdir(self.folder)
        for error in (
                error_of(PermissionError, save, path, ONE_TENSOR),
                error_of(PermissionError, convert, golden("seed_basic.mag"), path,
                         drop=True)):
            self.assertEqual((error.errno, error.filename), (13, path))
            self.assertIn("chmod u+w, or save under another name", error.strerror)
        self.assertEqual(os.listdir(self.folder), before)


@about()
class AtomicTest(TargetCase):
    """There is the old file or the new one, whatever happens; nothing is left beside it."""

    def test_a_fault_at_every_call(self):
        self.check_each_step(sys.setprofile, ("c_call",), OSError(5, "no disk"))

    def test_ctrl_c_at_every_step(self):
        ctrl_c = KeyboardInterrupt("^C")
        self.check_each_step(sys.setprofile, ("c_call",), ctrl_c)
        steps = ("line",)
        if (3, 11) <= PYTHON < (3, 14):
            steps = ("line", "opcode")
        self.check_each_step(sys.settrace, steps, ctrl_c)

    def check_each_step(self, hook, events, error):
        new = saved(F32)
        n, reached = 0, True
        while reached:  # until the save ends before that
            n += 1
            write_file(self.path, b"old")
            with warnings.catch_warnings(), Changed(os, "fsync", abs):
                warnings.simplefilter("ignore")  # open() is done, the stream has no name yet
                caught, reached = raise_at(
                    n, error, self.save, hook, events,
                    lambda frame: frame.f_code.co_name in WHILE_SAVING)
            with self.subTest(hook=hook, error=error, n=n):
                self.assertEqual(os.listdir(self.folder), ["m.zt"])
                found, came = read_file(self.path), getattr(caught, "errno", caught)
                if found == b"old":  # the error names the target
                    self.assertEqual(came, getattr(error, "errno", error))
                else:  # it was renamed
                    self.assertEqual(found, new)
                    self.assertEqual(came, error if reached else None)
        self.assertTrue(n > 20, n)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_killed_at_any_moment(self):
        """TENSORFMT_ROUNDS in the environment: how often; 20 if not given."""
        import signal
        import time
        rows = [{"w": tensor(bytes([k]) * 150000, "uint8")} for k in range(2)]
        wanted = [dumps(row, format="ztensor") for row in rows]
        for i in range(int(os.environ.get("TENSORFMT_ROUNDS", 20))):
            child, ready = self.fork_writer(rows)
            self.assertEqual(os.read(ready, 1), b"!", "the child did not save")
            time.sleep(Random().random() / 100)
            os.kill(child, signal.SIGKILL if i % 2 else signal.SIGTERM)
            os.waitpid(child, 0)
            os.close(ready)
            self.assertIn(read_file(self.path), wanted)
            found = set(os.listdir(self.folder)) - {"m.zt"}
            self.assertTrue(len(found) <= i + 1, found)  # no obstacle to those that come
            for name in found:
                self.assertTrue(name.startswith(".m.zt."), name)

    def fork_writer(self, rows):
        """Return a process that saves tensors without end, and a pipe that it tells of each."""
        ready, tell = os.pipe()
        child = os.fork()
        try:
            while not child:
                for row in rows:
                    self.save(row)
                    os.write(tell, b"!")
        finally:
            if not child:
                os._exit(1)
        os.close(tell)  # a child that ends by itself ends our read, too
        return child, ready

    def test_three_writers_at_once(self):
        rows = [{"w": tensor(bytes([k]) * 50000, "uint8")} for k in range(3)]

        def save_often(k):
            for _ in range(10):
                self.save(rows[k])
        in_threads(save_often, 3)
        self.assertIn(read_file(self.path), [dumps(row, format="ztensor") for row in rows])

    @on_posix
    def test_a_full_disk(self):
        import resource
        self.write_old()
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, usual[1]))
        try:
            self.fails_with(OSError, {"w": tensor(bytes(50000))}, 27, self.path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        self.assertEqual(read_file(self.path), b"old")

    def test_where_a_file_cannot_be_written_or_replaced(self):
        def refuse(name, *rest, **options):
            if str(name).endswith(".tmp"):
                raise PermissionError(13, "Access is denied", name)
            return io.open(name, *rest, **options)
        self.save()
        with Changed(builtins, "open", refuse):  # as in a folder that is read-only
            error = self.fails_with(PermissionError, {"w": [1, 2]}, 13, self.path)
        self.assertEqual(error.strerror, "Access is denied" + tensorfmt.NOT_BESIDE)
        with Changed(os, "name", "nt"), Changed(os, "replace", refuse):  # as Windows does
            error = self.fails_with(PermissionError, {"w": [1, 2]}, 13, self.path)
        self.assertIn("close() the File", error.strerror)
        self.refuses([], save, self.path, ONE_TENSOR, metadata={"a": 1})
        self.assertEqual((os.listdir(self.folder), list(load(self.path))), (["m.zt"], ["w"]))

    def test_names_of_folders(self):
        absent = self.at("absent/x.zt")
        error = error_of(FileNotFoundError, save, absent, ONE_TENSOR)
        self.assertEqual(error.filename, absent)
        for name in "", "new/", "new/.", ".", "new/..":
            self.refuses(["the name of a folder"], save, self.at(name),
                         ONE_TENSOR, format="ztensor")
        os.mkdir(self.at("d"))
        wanted = PermissionError if os.name == "nt" else IsADirectoryError
        error_of(wanted, save, self.at("d"), ONE_TENSOR, format="mag")

    def test_what_a_file_system_refuses_or_lacks(self):
        """What nothing depends on does not fail a save; that it is full or broken does."""
        new = saved(F32)
        for name in "chmod", "fchmod", "fsync", "fchown", "chown", "listxattr":
            for code in REFUSALS.split():
                with self.subTest(function=name, error=code), self.refusing(name, code):
                    self.save()
                    self.assertEqual(read_file(self.path), new)
        for name, codes, words in (
                ("fsync", "EIO ENOSPC EDQUOT", ""),
                ("fchmod", "EIO", ""),
                ("replace", REFUSALS + " EBUSY EXDEV ETXTBSY EROFS", "save in another folder"),
                ("replace", "EIO ENOSPC", "")):
            for code in codes.split():
                if hasattr(os, name):
                    with self.subTest(error=code), self.refusing(name, code) as wanted:
                        error = self.fails_with(type(wanted), ONE_TENSOR, wanted.errno, self.path)
                        self.assertIn(words, error.strerror)
                        self.assertEqual(read_file(self.path), b"old")

    @contextmanager
    def refusing(self, name, code):
        """A function of os raises an error; there is an old file, of a mode no umask leaves."""
        import errno
        self.write_old(0o606)
        error = OSError(getattr(errno, code), "Refused")
        with Changed(os, name, mock.Mock(side_effect=error), create=True):
            yield error


# The mode of a file, what cannot be kept of it, the mode of the new one: a group that cannot be
# kept gets what others have, and others what it had.
OWNERS = read_table("""
    mode     refused    kept
    0o660    nothing    0o660
    0o660    owner      0o660
    0o660    both       0o600
    0o664    both       0o644
    0o640    both       0o600
    0o666    both       0o666
    0o604    both       0o600
    0o646    both       0o644
    0o777    both       0o777
    0o751    both       0o711
    0o600    both       0o600
    0o644    both       0o644
""")


@about()
class AccessTest(TargetCase):
    """Who may read and write the new file, and which old one may not be replaced."""

    def test_what_may_not_be_written_is_not_replaced(self):
        """Neither by root, whom the system lets do all, nor through links."""
        paths = [self.path]
        if os.name != "nt":
            for name, target in ("link.zt", "m.zt"), ("next.zt", "link.zt"):
                paths.append(self.at(name))
                os.symlink(target, paths[-1])
        for mode in 0o444, 0o400, 0o555, 0o440, 0o000:
            self.write_old(mode)
            before = self.mode()
            for path in paths:
                with self.subTest(mode=oct(mode), path=path):
                    self.check_not_replaced(path)
            self.assertEqual(self.mode(), before)
            os.chmod(self.path, 0o600)
            self.assertEqual(read_file(self.path), b"old")
        save(paths[-1], ONE_TENSOR)
        self.assertEqual(load(self.path)["w"].tolist(), [1.5])

    def test_what_only_others_may_write_is_not_replaced(self):
        def access(path, mode):
            return path != os.path.realpath(self.path)
        self.write_old()
        with Changed(os, "access", access):
            self.check_not_replaced(self.path)
        self.assertEqual(read_file(self.path), b"old")

    @as_root
    @unittest.skipUnless(os.access in getattr(os, "supports_effective_ids", ()), "needs faccessat")
    def test_what_is_of_root_is_not_replaced_by_another(self):
        self.write_old(0o644)
        os.chmod(self.folder, 0o777)
        os.seteuid(65534)
        try:
            if os.access(self.folder, os.W_OK, effective_ids=True):  # not below another's
                self.check_not_replaced(self.path)
        finally:
            os.seteuid(0)
        self.assertEqual(read_file(self.path), b"old")

    @unittest.skipUnless(hasattr(os, "fchown"), "no owners")
    def test_owner_and_group_where_they_cannot_be_kept(self):
        for row in OWNERS:
            self.write_old(row.mode)
            with self.subTest(mode=oct(row.mode), refused=row.refused):
                self.check_owner(row)

    def check_owner(self, row):
        real = os.stat(self.path)
        facts = list(real)
        facts[4:6] = real.st_uid + 1, real.st_gid + 1
        old = os.stat_result(facts)
        calls = []

        def fchown(file, owner, group):
            calls.append((owner, group))
            if row.refused == "both" or row.refused == "owner" and owner != -1:
                raise PermissionError(1, "Operation not permitted")

        def stat_or_none(path):
            return old
        with Changed(os, "fchown", fchown), Changed(tensorfmt, "stat_or_none", stat_or_none):
            self.save()
        self.assertEqual(self.mode(), oct(row.kept))
        wanted = [(old.st_uid, old.st_gid)]
        if row.refused != "nothing":
            wanted.append((-1, old.st_gid))
        self.assertEqual(calls, wanted)

    @as_root
    def test_root_may_give_files_away(self):
        self.write_old(0o640)
        os.chown(self.path, 1234, 5678)
        self.save()
        found = os.stat(self.path)
        self.assertEqual((found.st_uid, found.st_gid, self.mode()), (1234, 5678, "0o640"))

    def test_access_lists(self):
        """Those of Linux: kept, not taken from the folder; where that is refused, for nobody."""
        name = "system.posix_acl_access"
        packed = pack("<I", 2)
        for row in (1, 6, -1), (2, 6, 1234), (4, 0, -1), (16, 6, -1), (32, 0, -1):
            packed += pack("<HHi", *row)
        write_file(self.path, b"old")
        try:
            os.setxattr(self.path, name, packed)
        except (AttributeError, OSError):
            self.skipTest("no access lists here")

        def refuse(*args):
            raise OSError(95, "Operation not supported")

        def save_and_find():
            self.save()
            if name in os.listxattr(self.path):
                return os.getxattr(self.path, name), self.mode()
            return None, self.mode()
        self.assertEqual(save_and_find(), (packed, "0o660"))
        with Changed(os, "setxattr", refuse):
            self.assertEqual(save_and_find(), (None, "0o600"))
        os.setxattr(self.folder, name.replace("access", "default"), packed)
        os.chmod(self.path, 0o660)
        self.assertEqual(save_and_find(), (None, "0o660"))
        with Changed(os, "removexattr", refuse):
            self.assertEqual(save_and_find()[1], "0o600")

    @on_posix
    def test_a_new_file_has_the_mode_of_the_umask(self):
        umask = os.umask(0o026)
        try:
            self.save()
        finally:
            os.umask(umask)
        self.assertEqual(self.mode(), "0o640")

    @on_posix
    def test_links_stay(self):
        self.save({"v": F32})
        os.symlink("m.zt", self.at("link.zt"))
        os.link(self.path, self.at("hard.zt"))
        os.symlink("made.zt", self.at("ahead.zt"))  # what it leads to is not there yet
        save(self.at("link.zt"), {"u": F32})
        convert(self.at("link.zt"), self.at("ahead.zt"))
        for name, target in ("link.zt", "m.zt"), ("ahead.zt", "made.zt"):
            self.assertEqual(os.readlink(self.at(name)), target)
        for name, wanted in ("m.zt", "u"), ("made.zt", "u"), ("hard.zt", "v"):
            with load(self.at(name)) as file:
                self.assertEqual(list(file), [wanted])


@about()
class TargetTest(TargetCase):
    """Streams, devices, pipes, descriptors are written in place; errors keep their text."""

    def test_errors_of_a_full_disk_name_the_target(self):
        def fail(*args):
            raise OSError(28, "No space left on device")

        class Full(io.BytesIO):
            write = fail
        error = error_of(OSError, save, Full(), ONE_TENSOR, format="ztensor")
        self.assertEqual((error.errno, error.filename), (28, None))  # whoever opened it knows
        source = Full(saved(F32))
        with load(source) as file:
            source.read = fail  # an error of what is read is none of the target
            self.fails_with(OSError, file, 28, None)
            write_file(self.path, b"old")
            self.fails_with(OSError, file, 28, None)
        self.assertEqual(read_file(self.path), b"old")

    def test_streams_that_take_a_part_or_say_nothing(self):
        """None means that a raw stream took nothing; others say nothing if they took all."""
        for count, is_raw, takes_all in (
                (None, False, True),
                (1, True, True),
                (None, True, False),
                (0, False, False),
                (-1, True, False)):
            stream = mock.Mock(spec=["write", "readall"] if is_raw else ["write"])
            stream.write.return_value = count
            if takes_all:
                save(stream, ONE_TENSOR, format="mag")
            else:
                error = error_of(OSError, save, stream, ONE_TENSOR, format="mag")
                self.assertEqual(str(error), "the target is full")

    def test_errors_of_a_stream_keep_their_text(self):
        source = saved(F32, "mag")
        for error in (
                OSError("quota of the bucket is used up"),
                OSError(28, "No space left"),
                PermissionError(13, "Not yours", "s3://bucket")):
            text, name = str(error), error.filename
            stream = mock.Mock(spec=["write"], write=mock.Mock(side_effect=error))
            for call, args in (
                    (save, (stream, ONE_TENSOR)),
                    (convert, (source, stream))):
                caught = error_of(type(error), call, *args, format="ztensor")
                self.assertEqual((str(caught), caught.filename), (text, name))

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes")
    def test_devices_and_pipes_are_written_in_place(self):
        save(os.devnull, ONE_TENSOR, format="mag")
        self.assertFalse(os.path.isfile(os.devnull))
        if os.path.exists("/dev/full"):
            error = error_of(OSError, save, "/dev/full", ONE_TENSOR, format="mag")
            self.assertEqual((error.errno, error.filename), (28, "/dev/full"))
            self.assertFalse(os.path.isfile("/dev/full"))
        pipe, got = self.at("pipe.zt"), []
        os.mkfifo(pipe)

        def write_or_read(k):
            if k:
                save(pipe, {"w": [k]})
            else:
                got.append(load(read_file(pipe))["w"].tolist())
        in_threads(write_or_read, 2)
        self.assertEqual((got, os.listdir(self.folder)), ([[1]], ["pipe.zt"]))

    def test_the_name_of_the_temporary(self):
        """It is short, and drawn at random."""
        seen = []

        def parts():
            seen.extend(os.listdir(self.folder))
            yield b""
        with Changed(os, "urandom", lambda n: b"\1" + bytes(n - 1)):
            tensorfmt.write_out(self.at("n" * 99), parts())
        self.assertEqual(seen, [".%s.010000000000.tmp" % ("n" * 40)])

    @unittest.skipUnless(os.path.exists("/proc/self/fd"), "needs /proc")
    def test_a_descriptor_of_a_deleted_file_is_written_to(self):
        """Also where a file is called as /proc calls the one that is gone."""
        wanted = saved(F32, "mag")
        for decoys in [], ["m.zt (deleted)"]:
            with open(self.path, "w+b") as stream:
                os.unlink(self.path)
                target = "/dev/fd/%d" % stream.fileno()
                for name in decoys:
                    self.assertEqual(os.path.realpath(target), self.at(name))
                    write_file(self.at(name), b"of another")
                save(target, ONE_TENSOR, format="mag")
                self.assertEqual(stream.read(), wanted)
            self.assertEqual(os.listdir(self.folder), decoys)
            for name in decoys:
                self.assertEqual(read_file(self.at(name)), b"of another")

    def test_the_format_comes_from_argument_suffix_file(self):
        go_to(self, self.folder)
        for suffix, kind in (("mag", "mag"), ("zt", "ztensor"), ("primitiv", "primitiv"),
                             ("bpk", "burnpack"), ("tbs", "tensorbuffers"), ("BPK", "burnpack")):
            for path in "x." + suffix, self.at("x." + suffix):
                save(path, ONE_TENSOR)
                with load(path) as file:
                    self.assertEqual((file.format, file["w"].tolist()), (kind, [1.5]))
                    save("copy.dat", file)
                    self.assertEqual(detect("copy.dat"), kind)
                    save("copy.dat", file, format="ztensor")
                    self.assertEqual(detect("copy.dat"), "ztensor")
        error_of(ValueError, save, "copy.dat", ONE_TENSOR)


def derived_tensors(file):
    """Yield tensors that are read from a file, whatever stands between."""
    yield file
    yield dict(file)
    yield list(file.items())
    yield {"x": F32, "y": file["b"], "z": [1]}
    yield {"p": file["a"][3:9]}
    yield {"p": file["a"][::-2]}
    yield {"s": file["s"]}
    yield {"s": file["s"].astype("float16")}
    yield {"c": tensor(file["a"])}
    yield {"c": Cast(file["b"], "float64")}


@about()
class OwnSourceTest(FolderCase):
    """The stream or file that tensors are read from is not written."""

    def setUp(self):
        super().setUp()
        sparse = tensor(shape=(2, 2), components={"values": [5.0], "coords": [[0], [1]]})
        made = {"a": tensor(b"1" * 300, "uint8"), "b": tensor([1.0, 2.0], "float32"), "s": sparse}
        self.data = dumps(made, format="ztensor")
        write_file(self.path, self.data)

    def check_refused(self, stream, tensors):
        self.refuses(["read from the stream or file that is written"], save, stream,
                     tensors, format="ztensor")

    def check_stream(self, stream):
        """Assert that nothing that is read from a stream is written to it."""
        for tensors in derived_tensors(load(stream)):
            self.check_refused(stream, tensors)
        for source in load(stream), stream:
            self.refuses(["read from the stream"], convert, source, stream,
                         format="safetensors", dense=True, only=["a", "b"])
        stream.seek(0)
        self.assertEqual(stream.read(), self.data)

    def test_streams(self):
        self.check_stream(io.BytesIO(self.data))
        for buffering in -1, 0:
            with open(self.path, "r+b", buffering) as stream:
                self.check_stream(stream)

    def test_a_map_of_a_file(self):
        from mmap import mmap
        with open(self.path, "r+b") as stream:
            made = mmap(stream.fileno(), 0)
        self.check_stream(made)
        gc.collect()  # else a File still holds it on PyPy
        made.close()

    def test_a_file_with_two_ways_in(self):
        for mmap in True, False:
            with load(self.path, mmap=mmap) as file, open(self.path, "r+b") as stream:
                self.check_refused(stream, file)
                self.check_refused(stream, pickle.loads(pickle.dumps(dict(file))))
        with open(self.path, "r+b") as stream, open(self.path, "r+b") as other:
            self.check_refused(other, load(stream))
        self.assertEqual(read_file(self.path), self.data)

    def test_a_file_of_another_name_since(self):
        other = self.at("other.zt")
        for mmap in True, False:
            for put in [], ONE_TENSOR:  # nothing, or a file, has the old name
                with load(self.path, mmap=mmap) as file:
                    os.rename(self.path, other)
                    if put:
                        save(self.path, put)
                    with open(other, "r+b") as stream:
                        self.check_refused(stream, file)
                self.assertEqual(read_file(other), self.data)
                os.replace(other, self.path)

    @unittest.skipUnless(hasattr(os, "memfd_create"), "no files without a name")
    def test_a_file_without_a_name(self):
        number = os.memfd_create("without a name")
        self.addCleanup(os.close, number)
        os.write(number, self.data)
        path = "/dev/fd/%d" % number
        for mmap in True, False:
            with load(path, mmap=mmap) as file:
                self.refuses(["read from the stream"], save, path, file)
                self.refuses(["read from the stream"], convert, file, path,
                             format="safetensors", dense=True)
            self.assertEqual(os.pread(number, 9999, 0), self.data)

    def test_what_is_no_more_read_from_it_is_written(self):
        stream = io.BytesIO(self.data)
        file = load(stream)
        free = {"a": file["a"].contiguous(), "b": file["b"].astype("float64")}
        save(io.BytesIO(), file, format="ztensor")
        save(stream, free, format="ztensor")
        stream.truncate()
        self.assertEqual(load(stream)["b"].tolist(), [1.0, 2.0])

    def test_another_file_takes_its_place(self):
        other = self.path + "2"
        with load(self.path) as file:
            save(self.path, file)
            with open(other, "wb") as stream:
                save(stream, file, format="ztensor")
        for path in self.path, other:
            self.assertEqual(read_file(path), self.data)


def crc_of_all(data, end):
    """Return CRC-32 of the index, with the checksum as 0."""
    return crc32(data[:8] + bytes(4) + data[12:end])


def crc_of_rest(data, end):
    """Return CRC-32 of what stands behind the checksum."""
    return crc32(data[12:end])


def castagnoli_of_rest(data, end):
    """Return CRC-32C of what stands behind the checksum."""
    return crc32c(data[12:end])


@about("mag")
class MagTest(TestCase):
    CONVENTIONS = crc_of_all, crc_of_rest, castagnoli_of_rest  # the first is written

    def test_three_checksums_are_right_in_both_layouts(self):
        for name, end, own, layout in (  # a golden, where its index ends, its checksum
                ("seed_basic.mag", 0xCF, crc_of_all, "spec"),
                ("m012_mixed.mag", None, castagnoli_of_rest, "magnetron-0.1.2")):
            good = golden(name)
            if end is None:
                end = Original(good).places["padding"][0]
            self.assertEqual(good[8:12], uint32s(own(good, end)))
            for checksum in self.CONVENTIONS:
                data = patched(good, (8, tohex(uint32s(checksum(good, end)))))
                with self.subTest(name=name, checksum=checksum.__name__):
                    self.assertEqual(load(data).attrs["layout"], layout)
                    self.assertSame(content(load(data)), content(load(good)))
                    self.assertSame(load(data).metadata, load(good).metadata)
                    self.assertTrue(verify(data))
                    self.check_cover(data, end)
            for wrong in (crc32(good[8:end]), crc32(good[24:end]),
                          crc32(good[:end]), crc32c(good[:end]),
                          crc32(good[12:]), 0, own(good, end) ^ 1):
                error = error_of(FormatError, load, patched(good, (8, tohex(uint32s(wrong)))))
                self.assertEqual(error.check, "checksum")
        made = dumps({"x": F32}, format="mag", metadata={"n": 5})
        self.assertEqual(made[8:12], uint32s(crc_of_all(made, 24 + 17 + 74)))

    def check_cover(self, data, end):
        """Assert that the checksum covers the index, and neither padding nor data."""
        for at in list(range(12, end, 7)) + [end - 1]:
            changed = bytearray(data)
            changed[at] ^= 0x80
            error_of(FormatError, load, bytes(changed))
        for at in range(end, len(data), 31):
            changed = bytearray(data)
            changed[at] ^= 0x80
            load(bytes(changed))


# -- [8b] single formats -------------------------------------------------------------------------

@about("mag")
class Mag300Test(TestCase):
    DTYPES = (  # in the order of their numbers
        "float32 float16 bfloat16 float8_e4m3fn bool uint8 int8 uint16 int16 uint32 int32 uint64 "
        "int64").split()
    NAMES = read_table("""
        tensor  entry                                                    dtype
        b       {'dtype': 'bf16'}                                        bfloat16
        n       {'dtype': 'fp8', 'dtype_id': 3, 'shape': [8]}            float8_e4m3fn
        n       {'dtype': 'float8_e4m3fn', 'dtype_id': 4, 'shape': [8]}  bool
        n       {'dtype': 'float8_e5m2', 'dtype_id': 3, 'shape': [8]}    float8_e4m3fn
    """)

    @staticmethod
    def dumps(tensors=None, **options):
        return dumps(tensors or {"w": F32}, format="mag", version=300, **options)

    def test_timestamp(self):
        new, made = load(golden("m300_mixed.mag")), self.dumps()
        self.assertEqual(load(made).attrs["timestamp"], "1970-01-01T00:00:00+00:00")
        again = load(dumps(new, format="mag", timestamp="now"))
        self.assertEqual(again.attrs["timestamp"], "now")
        there, summary = converted(new, "mag", version=1, drop=True, only="w")
        self.assertEqual(there.attrs["version"], 1)
        self.assertEqual(there["w"].tolist(), new["w"].tolist())
        self.assertIn("timestamp", summary.left_behind)
        error_of(TypeError, dumps, there, format="mag", timestamp="now")

    def test_its_name_is_that_of_a_format(self):
        made = self.dumps()
        self.assertEqual(list(load(made, format="mag300")), ["w"])
        error = error_of(FormatError, load, b"X" + made[1:], format="mag300")
        self.assertEqual(error.field, "magic")

    def test_metadata_is_any_json(self):
        full = json.loads("[" * 126 + "1" + "]" * 126)
        fine = {"x": [NAN, INF, [1, None]], "": {"y": 1 << 80}, "deep": nested(125), "full": full}
        given = dict(fine, x=[NAN, INF, (1, None)])
        self.assertSame(load(self.dumps(metadata=given)).metadata, fine)
        if hasattr(sys, "get_int_max_str_digits"):
            self.refuses(["'n'"], self.dumps, metadata={"n": 10 ** 4300})

    def test_numbers_of_dtypes(self):
        data = self.dumps({dtype: tensor([1], dtype) for dtype in self.DTYPES})
        text = data[44:data.index(b"}}}") + 3]
        entries = json.loads(text.decode())["tensor_map"]
        for number, dtype in enumerate(self.DTYPES):
            self.assertEqual(entries[dtype]["dtype_id"], number)
        self.assertEqual(entries["float8_e4m3fn"]["dtype"], "float8_e4m3fn")
        self.assertEqual(entries["bool"]["dtype"], "boolean")
        for name, item in load(data).items():
            self.assertEqual((item.dtype, item.attrs, item.tolist()), (name, {}, [1]))
        self.assertEqual(dumps(load(data), format="mag"), data)

    def test_the_number_of_a_dtype_counts(self):
        for name, facts, dtype in self.NAMES:
            item = load(mag300_entry(name, **facts))[name]
            self.assertEqual(item.dtype, dtype)
            self.assertSame(item.attrs, {"dtype": facts["dtype"]})
        unknown = mag300_entry("b", dtype="x", dtype_id=13)
        item = load(unknown)["b"]
        self.assertSame(item.attrs, {"dtype": "x", "dtype_id": 13})
        error_of(Unsupported, item.tolist)
        self.assertEqual(dumps(load(unknown), format="mag"), unknown)

    def test_byte_order(self):
        big = load(mag300_replaced(aux=1))
        first = bytes(big["w"].raw[:4])
        self.assertEqual(big.attrs["byte_order"], "big")
        self.assertEqual(big["w"].tobytes()[:4], first[::-1])

    def test_several_tensors_behind_the_end(self):
        cut = mag300_entry("b", offset=0)[:3000]
        check_refused(cut, error_of(FormatError, load, cut))


V212_CANONICAL = decompress(b64decode(  # ztensor 2.1.2: ztensor.numpy.save_file
    "GNPtzz9uE0EUB+DxmgZLKaAhMgegQ2Zj+Q8NOUSqdLM7YyfIwla8EUkX0uUWROYgnIRjULPEsYQlbuDv07x5es3v6T2cn5"
    "VHvX4vAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAcNA6"
    "z7147t0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADAIe"
    "oEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA2Ln71H6n"
    "7Wvrrq3vpwEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI"
    "CD8jhfVp9z3aw3sdrkVbxq1o8pxSZuUrVYVvf90Anh+Din5naV68vRcJYu53ndXN/cXJx8HNejSTWcDkZ5nON4Msjri7jK"
    "37qzRbxdXjc55S/rnNppvpf9Y5ddhFA8JadquVxsl1TXk70dsZoOYz2IdR6X41G921Hs7Zi3Q756//X/J3T/OWF2Uu7Fpz"
    "qVH+phWdcxTlMZt/H3xf4NIbwIf73rPLXw6uXrX29+vv1dbMfwcH5WHvX6vT/o+3W1"))
BITS_OF_4 = read_table(r"""
    shape   data             fault_at
    (1,)    b'\xec'          0
    (1,)    b'\x0c'          None
    (2,)    b'\xec'          None
    ()      b'\x10'          0
    (3,)    b'\xff\x0f'      None
    (3,)    b'\xff\xf0'      1
    (5, 1)  b'\xff\xff\x80'  2
""")
UNKNOWN_TYPES = read_table(r"""
    type        dtype  shape               data
    complex64   f32    (1,)                b'01234567'
    complex128  f64    (1, 1)              b'0123456789abcdef'
    f4_e2m1     u8     (3, 2)              b'\x21\x43\x65'
    f4_e2m1     u8     (3,)                b'\x21\x03'
    f4_e2m1     u8     ()                  b'\x0f'
    complex64   f32    (0, 5)              b''
    ex.q        u8     (7, 1099511627776)  b'abc'
    ex.q        f64    (2,)                b'ab'
    ''          bf16   ()                  b''
""")
XXH3 = read_table("""
    nbytes  digest
    0       '2d06800538d394c2'
    8       '60539db630471163'
    16      b8c859b0f030b585
    128     '67425a03650261bf'
    240     '64556dc6b462a6cf'
    241     8beadd3a8874fe17
    1024    9b81661c641c72b1
    1025    806c2072ed713576
    65537   f7460af97425b2c4
""")  # of bytes_to_hash(), by the real library
ZSTD_SUMS = {1: 0xDB052768, 3: 0x33BC65DD, 5: 0x6E26030C, 8: 0x14B81B8D}  # of bytes(range(n))
NOT_LOOKED_AT = read_table("""
    facts                                     shards  left
    {}                                        False   valid zTensor 2
    {'digest': 'blake3:00'}                   False   1 checksum not checked
    {'encoding': 'new', 'decoded_length': 2}  False   1 tensor not checked, 1 checksum not checked
    {}                                        True    1 checksum not checked
    {'shard': 'x'}                            True    1 tensor not checked, 2 checksums not checked
""")
FAR_TENSORS = read_table("""
    dtype  count  more
    u8     8      {}
    u8     8      {'type': 'ex.q'}
    f32    1      {'type': 'complex64'}
    u8     16     {'type': 'f4_e2m1'}
    u8     8      {'type': 'bool'}
    u8     8      {'encoding': 'zt.zstd-seekable/1', 'decoded_length': 8}
""")
PACKINGS = (False, True) if ZSTD else (False,)
SHARDS = {"x": {"size": 1 << 20, "digest": "xxh3:" + "5" * 16}}


def bytes_to_hash(nbytes):
    return bytes([(7 * i + 3) % 256 for i in range(nbytes)])


def xxh3_of(data):
    return "xxh3:%016x" % tensorfmt.xxh3_64([data])


def without_xxhash():
    """Have XXH3 computed here, which is slow, for the time of a `with` block."""
    return Changed(tensorfmt, "fast_xxh3", lambda: None)


class Xxhash:
    """What the module xxhash has."""

    def __init__(self):
        self.data = b""

    def update(self, block):
        self.data += bytes(block)

    def intdigest(self):
        with without_xxhash():
            return tensorfmt.xxh3_64([self.data])


def zstd_frame(data, has_sum=False):
    """Return a frame of bytes (of bytes(range(n)) for n), as they are; maybe with its checksum."""
    tail = pack("<I", ZSTD_SUMS[data]) if has_sum else b""
    if isinstance(data, int):
        data = bytes(range(data))
    flags = 0x24 if has_sum else 0x20
    return pack("<IBBHB", 0xFD2FB528, flags, len(data), len(data) << 3 | 1, 0) + data + tail


def seek_table(rows, magic=0x184D2A5E, size=None, count=None, flags=None, end=b"\xb1\xea\x92\x8f"):
    """Return a seek table of rows (stored, decoded[, checksum]); the rest as it should be."""
    table = b"".join([pack("<%dI" % len(row), *row) for row in rows])
    if size is None:
        size = len(table) + 9
    if count is None:
        count = len(rows)
    if flags is None:
        flags = 128 if rows and len(rows[0]) == 3 else 0
    return pack("<II", magic, size) + table + pack("<IB", count, flags) + end


def nonzero(item):
    """Return {indices: value} of a matrix where it is not 0."""
    found = {}
    for i, row in enumerate(item.tolist()):
        for j, value in enumerate(row):
            if value:
                found[i, j] = value
    return found


def unknown_type(code, over, shape, data, digest=None, is_packed=False):
    """Return a file of a tensor of a type without values here, beside one that has some."""
    more = {}
    if digest:
        more["digest"] = digest
    stored = data
    if is_packed:
        stored = zstd_frame(data) + seek_table([(9 + len(data), len(data))])
        more.update(encoding=tensorfmt.SEEKABLE, decoded_length=len(data))
    entry = dense2(over, 1, len(stored), *shape, type=code, **more)
    entry["attributes"] = {"note": [1]}
    return ztensor2_of_objects({"t": entry, "w": dense2("u8", 2, 3, 3)}, (stored or b"0", b"xyz"))


@about("ztensor")
class ZTensor2Test(TestCase):
    @staticmethod
    def dumps(value, **options):
        return dumps({"w": value}, format="ztensor", version="2", **options)

    def with_old_blob(self, **digest):
        """Return a file of a layout that is not known, and a blob of an older manifest."""
        parts = {"data": part2("u8", 3, 3), "more": part2("u8", 1, 2, **digest)}
        entry = {"shape": [9], "layout": "zt.mx/1", "parts": parts}
        return ztensor2_of_objects({"w": entry}, (b"xy", b"old", b"abc"))

    def test_what_no_field_names_is_no_padding(self):
        data = self.with_old_blob()
        fields = list(explain(data))
        found = [field[:3] for field in fields if field.offset and field.kind != "structure"]
        self.assertEqual(found, [
            (8, 4088, "padding"), (4096, 2, "data w.more"), (4098, 4094, "padding"),
            (8192, 4096, "unused"), (12288, 3, "data w.data"), (12291, 4093, "padding")])
        blobs = [field.target for field in fields if field.name.endswith("blob")]
        self.assertEqual(blobs, [12288, 4096])
        self.assertIn("4096 bytes in 1 range that no field names", str(verify(data)))

    def test_parts_of_a_layout_that_is_not_known(self):
        """They are compared, pickled and hashed."""
        data = self.with_old_blob()
        item, same = load(data)["w"], load(data)["w"]
        self.assertTrue(item == same)
        self.assertFalse(item == load(data.replace(b"xy", b"xz"))["w"])
        self.assertEqual(pickle.loads(pickle.dumps(item)).raw, b"abc")
        right = verify(self.with_old_blob(digest=xxh3_of(b"xy")))
        wrong = verify(self.with_old_blob(digest="xxh3:" + "0" * 16))
        self.assertEqual(right.errors, [])
        error, = wrong.errors
        self.assertEqual(error.offset, 4096)
        self.assertTrue(error.what.startswith("more: xxh3: "))
        for report in right, wrong:
            self.assertIn(", 1 tensor not checked", report.last_line())

    def test_unknown_dtypes_of_version_0_1(self):
        data = ztensor_file(dtype="f8", layout="dense", encoding="lz", data_endianness="big",
                            custom=5)
        item = load(data)["a"]
        self.assertEqual((item.dtype, item.itemsize, item.nbytes), (None, None, 16))
        again = load(dumps({"a": item}, format="ztensor"))["a"]
        self.assertSame(again.attrs, item.attrs)
        self.assertSame(again.custom, item.custom)
        self.assertEqual(bytes(again.raw), bytes(item.raw))
        coded = load(ztensor_file(encoding="lz"))
        self.refuses(["copied as it is stored"], dumps, coded, format="ztensor",
                     data_endianness="big")

    def test_attrs_of_version_0_1_that_are_no_ones(self):
        item = load(ztensor_file(dtype="f8", encoding="lz"))["a"]
        self.assertNotIn("dtype", load(ztensor_file())["a"].attrs)
        for wrong in (item.copy(attrs={"encoding": "raw"}), item.copy(attrs={"dtype": 5}),
                      tensor([1], "int8", custom={"dtype": "f8"})):
            error_of(ValueError, dumps, {"x": wrong}, format="ztensor")

    def test_xxh3(self):
        """Alone, with numpy, and as the module xxhash is called."""
        numpy = sys.modules.get("numpy")
        ways = (None, None), (None, numpy), (Xxhash, None)
        rows = [(bytes_to_hash(row.nbytes), row.digest) for row in XXH3]
        for given, digest in rows + [(b"abc", "78af5f94892f3950")]:
            for make, module in ways:
                for step in (7, 1000, len(given) or 1):
                    blocks = [given[i:i + step] for i in range(0, len(given), step)]
                    with Changed(tensorfmt, "fast_xxh3", lambda make=make: make), \
                            mock.patch.dict(sys.modules, numpy=module):
                        self.assertEqual("%016x" % tensorfmt.xxh3_64(blocks), digest)
        digests = [xxh3_of(bytes_to_hash(n))[5:] for n in range(300)]
        self.assertEqual(crc32("".join(digests).encode()), 0xCEB03D81)

    def test_xxh64(self):
        """Alone, and by the module xxhash where it is there."""
        data = bytes_to_hash(99)
        for make in {None, tensorfmt.fast_xxh3()}:
            with Changed(tensorfmt, "fast_xxh3", lambda make=make: make):
                self.assertEqual(tensorfmt.xxh64([b""]), 0xEF46DB3751D8E999)
                self.assertEqual(tensorfmt.xxh64([b"abc"]), 0x44BC2CF5AD770999)
                text = ""
                for nbytes in range(99):
                    blocks = [data[i:min(i + 13, nbytes)] for i in range(0, nbytes, 13)]
                    text += "%016x" % tensorfmt.xxh64(blocks)
                self.assertEqual(crc32(text.encode()), 0x3550C65B)

    def test_canonical_form(self):
        file = load(V212_CANONICAL, verify=True)
        self.assertEqual(dumps(file, format="ztensor"), V212_CANONICAL)
        values = {}
        for name, item in file.items():
            values[name] = tensor(item.tolist(), item.dtype).copy(shape=item.shape)
        self.assertEqual(dumps(values, format="ztensor", version="2"), V212_CANONICAL)
        empty = dumps({}, format="ztensor", version=2)
        self.assertEqual(len(empty), 65586)
        self.assertEqual(dumps({}, format="ztensor", attrs=load(empty).attrs), empty)

    def test_verify_says_whether_a_file_is_canonical(self):
        two = {"b": tensor([2.0]), "a": tensor([1.0])}
        for data, status in (
                (V212_CANONICAL, "ok"),
                (dumps({}, format="ztensor", version=2), "ok"),
                (dumps(two, format="ztensor", version="2"), "ok"),
                (ztensor2_with({}), "note"),
                (ztensor2_replaced((b"xxh3:4", b"xxh4:4")), "note"),
                (ztensor2_with({"shards": {"s": SHARD}}), "note")):
            found = [row[0] for row in verify(data).rows if row[1] == "canonical"]
            self.assertEqual(found, [status])

    def test_attributes_are_any_cbor(self):
        load(self.dumps(tensor([1.0], custom={"c": nested(28)}), metadata={"c": nested(30)}))
        fine = {"x": [1.5, NAN, None, b"b", {"z": 1, "aa": -2, 5: True}], "y": -(1 << 64)}
        file = load(self.dumps(tensor([1.0], custom=fine), metadata=fine))
        for found in file.metadata, file["w"].custom:
            self.assertSame(found, fine)
        self.assertEqual(tensorfmt.json_ready({5: [b"a"]}), [[5, ["61"]]])

    def test_digests(self):
        bad = ztensor2_replaced((b"xxh3:4d", b"xxh3:5d"))
        self.assertEqual(failed(bad), [("checksums", "w")])
        error_of(FormatError, dumps, load(bad), format="mag")
        digest = "sha256:" + sha256(pack("<2f", 1, 2)).hexdigest()
        self.assertTrue(verify(ztensor2_with({"objects.w.parts.data.digest": digest})))
        bools = ztensor2_with({"objects.w.parts.data": dict(PART2, dtype="u8", type="bool"),
                               "objects.w.shape": [8]})
        self.assertEqual(verify(bools).errors[0].offset, 4098)

    def test_a_digest_over_the_limit_of_slow_ones(self):
        bad = ztensor2_replaced((b"xxh3:4d", b"xxh3:5d"))
        for most, is_left in (8, False), (7, True):  # bytes
            with without_xxhash(), Changed(tensorfmt, "MAX_SLOW_HASH", most):
                report = verify(bad)
                self.assertEqual(bool(report), is_left)
                self.assertEqual("over MAX_SLOW_HASH" in str(report), is_left)
                self.assertFalse(verify(bad, deep=True))
                error_of(FormatError, load, bad, verify=True)

    def test_sparse_layouts(self):
        file = load(ztensor2_of_all_kinds())
        self.assertEqual(nonzero(file["csr"]), {(0, 1): 1, (1, 4): 2})
        self.assertEqual(nonzero(file["coo"]), {(0, 2): 1, (1, 1): 2})

    def test_columns_of_csr_rise(self):
        parts = {"indptr": part2("u64", 1, 16), "indices": part2("u64", 2, 16),
                 "values": part2("f32", 3, 8)}
        entry = {"shape": [1, 9], "layout": "zt.sparse_csr/1", "parts": parts}
        blobs = struct.pack("<2Q", 0, 2), struct.pack("<2Q", 4, 1), struct.pack("<2f", 1, 2)
        item = load(ztensor2_of_objects({"w": entry}, blobs))["w"]
        self.raises(FormatError, "columns do not rise", item.tolist)

    def test_equal_contents_are_stored_once(self):
        tensors = {"a": F32, "b": tensor(F32.tobytes(), "uint8"), "c": [1.0], "d": [2.0],
                   "e": tensor([], "int8"), "f": [1.0]}
        file = load(dumps(tensors, format="ztensor", version=2))
        blobs = {name: item.offset >> 16 for name, item in file.items()}
        self.assertEqual(blobs, {"a": 1, "b": 1, "c": 2, "d": 3, "e": 4, "f": 2})

    def test_equal_digests_are_not_believed(self):
        zeros = bytes((1 << 20) + 5)
        for place in 0, 1 << 20, (1 << 20) + 4:
            a = zeros[:place] + b"\1" + zeros[place + 1:]
            with Changed(tensorfmt, "hash_blocks", lambda *args: "xxh3:0"):
                data = dumps({"a": tensor(a), "b": tensor(bytearray(a)), "c": tensor(zeros)},
                             format="ztensor", version=2)
                file = load(data)
                self.assertEqual(file["b"].offset, file["a"].offset)
                self.assertEqual(file["c"].tobytes(), zeros)

    def test_the_manifest_is_no_tensor(self):
        """Not even all of it; two tensors may share their bytes."""
        for nbytes in range(40, 200):  # the length of the manifest is in the manifest
            data = ztensor2_of_objects({"w": dense2("u8", 2, nbytes, nbytes)}, (bytes(4096),))
            if unpack("<Q", data[-32:-24])[0] == nbytes:
                break
        error = self.raises(FormatError, "those of the manifest", load, data)
        self.assertEqual(error.tensor, "w")
        self.assertEqual(failed(data)[0], ("bounds", "w"))

    def test_what_is_not_looked_at_is_counted(self):
        for row in NOT_LOOKED_AT:
            facts, top = dict(row.facts), {}
            facts.setdefault("digest", xxh3_of(b"ab"))
            if row.shards:
                top["shards"] = SHARDS
            data = ztensor2_of_objects({"w": dense2("u8", 1, 2, 2, **facts)}, (b"ab",), **top)
            with self.subTest(row=row):
                title, _, left = verify(data).last_line().partition(", ")
                self.assertEqual(left or title, row.left)

    def test_unknown_types_are_saved_again(self):
        for code, over, shape, data in UNKNOWN_TYPES:
            right = xxh3_of(data)
            forms = set()
            for digest in right, "sha256:" + sha256(data).hexdigest(), "md5:00", None:
                for is_packed in PACKINGS:
                    made = unknown_type(code, over, shape, data, digest, is_packed)
                    self.assertTrue(verify(made))
                    item = load(made)["t"]
                    self.assertEqual((item.dtype, item.shape, item.tobytes()), (None, shape, data))
                    self.assertEqual(item.raw == data, not is_packed)
                    error_of(Unsupported, item.tolist)
                    forms.update(self.forms_of(made))
            canonical, = forms
            back = load(canonical)["t"]
            self.assertSame(back.attrs, {
                "layout": "dense", "type": code, "dtype": over, "digest": right})
            self.assertSame(back.custom, {"note": [1]})
            self.assertEqual((back.shape, bytes(back.raw), back.tobytes()), (shape, data, data))
            self.assertIn("('ok', 'canonical'", str(verify(canonical).rows))
            for options in {"format": "mag"}, {"format": "ztensor", "version": "0.1"}:
                self.refuses(["type %r is not decoded here" % code], dumps, load(made), **options)

    def forms_of(self, data):
        """Yield what is saved of a file and of its tensors, which was handed on in many ways."""
        w, t = load(data)["w"], load(data)["t"]
        for tensors in (
                load(data), converted(data, "ztensor")[0],
                {"t": deepcopy(t), "w": pickle.loads(pickle.dumps(w))},
                {"w": w, "t": tensor(t)}, {"w": w, "t": t.contiguous()}):
            yield dumps(tensors, format="ztensor", version=2)

    def test_unknown_types_are_checked(self):
        for code, over, shape, data in UNKNOWN_TYPES:
            for is_packed in PACKINGS:
                for digest in "xxh3:" + "5" * 16, "sha256:" + "5" * 64:
                    made = unknown_type(code, over, shape, data, digest, is_packed)
                    self.assertEqual(failed(made), [("checksums", "t")])
                    error_of(FormatError, load, made, verify=True)
                    if data:
                        error_of(FormatError, dumps, load(made), format="ztensor")

    def test_bytes_of_another_file_are_not_none(self):
        for row in FAR_TENSORS:
            entry = dense2(row.dtype, 1, 8, row.count, shard="x", **row.more)
            item = load(ztensor2_of_objects({"t": entry}, shards=SHARDS))["t"]
            for call in bytes, tensorfmt.Tensor.contiguous:
                self.raises(Unsupported, "in the shard 'x'", call, item)
        odd = load(ztensor_file(dtype="new", encoding="shard", layout="dense"))
        again = load(dumps(odd, format="ztensor"))
        self.assertEqual(again["a"].tobytes(), odd["a"].tobytes())

    def test_odd_halves_of_4_bits_are_found(self):
        for shape, data, fault in BITS_OF_4:
            for digest in xxh3_of(data), None:
                for is_packed in PACKINGS:
                    made = unknown_type("f4_e2m1", "u8", shape, data, digest, is_packed)
                    report = verify(made)
                    self.assertEqual(bool(report), fault is None)
                    if fault is not None:
                        self.assertIn("byte %d of the data: the unused half" % fault, str(report))
                        self.refuses(["the unused half"], dumps, load(made), format="ztensor")
        both = ztensor2_of_objects({"even": dense2("u8", 1, 1, 2, type="f4_e2m1"),
                                    "odd": dense2("u8", 1, 1, 1, type="f4_e2m1")}, (b"\xec",))
        self.assertEqual(failed(both), [("contents", "odd")])

    @with_zstd
    def test_encoded_bytes_of_unknown_dtypes_of_version_0_1(self):
        data, frame = bytes(range(8)), zstd_frame(8)
        entry = {"name": "a", "offset": 64, "size": len(frame), "dtype": "complex64",
                 "layout": "dense", "shape": [1], "encoding": "zstd"}
        made = ztensor_of_index(cbor_dumps([entry]), data=frame)
        item = load(made)["a"]
        self.assertEqual((item.dtype, item.nbytes), (None, len(frame)))
        self.assertEqual((bytes(item.raw), item.tobytes()), (frame, data))
        for one in item, item.contiguous():
            again = load(dumps({"a": one}, format="ztensor"))["a"]
            self.assertSame([again.attrs, again.encoding], [item.attrs, "zstd"])
            self.assertEqual(again.tobytes(), data)
        with Changed(tensorfmt, "MAX_DENSE", 7):
            self.raises(Unsupported, "MAX_DENSE", item.tobytes)
        torn = load(rotten(made, "a", 4))["a"]
        error_of(FormatError, torn.tobytes)
        self.assertEqual(bytes(torn.raw)[5:], frame[5:])


NO_SEEK_TABLES = read_table(r"""
    title                    frames     nbytes    table
    a short frame inside     [8, 3, 8]  19        {}
    a long frame at the end  [3, 8]     11        {}
    flags                    [8]        8         {'flags': 1}
    flags of no frame        []         0         {'flags': 64}
    a row too many           [8, 8]     16        {'count': 3}
    a row too few            [8, 8]     16        {'count': 1}
    a frame too many         [8, 8]     8         {'count': 1}
    stored size too large    [8]        8         {'rows': [(18, 8)]}
    stored size too small    [8]        8         {'rows': [(16, 8)]}
    size of the table        [8]        8         {'size': 18}
    magic                    [8]        8         {'magic': 0x184D2A5F}
    magic at the end         [8]        8         {'end': b'\xb1\xea\x93\x8f'}
    a frame over 16 MiB      [8]        16777217  {'rows': [(17, 16777217)]}
""")  # a tensor of so many bytes, in frames; what the seek table says instead
FRAMES = read_table("""
    sizes      rows                                   fault
    [8, 3]     [(21, 8), (16, 3)]                     None
    [8, 8]     [(21, 8), (21, 8)]                     None
    [8, 3, 5]  [(21, 8), (34, 8)]                     'frame 1'
    [8, 8]     [(42, 16)]                             'frame 0'
    [8, 8]     [(21, 10), (21, 6)]                    'frame 0'
    [3, 5, 8]  [(34, 7), (21, 7), (0, 2)]             'frame 0'
    [8, 3]     [(20, 8), (17, 3)]                     'frame 0'
    [8, 3]     [(22, 8), (15, 3)]                     'frame 0'
    [8, 3, 5]  [(21, 8), (34, 9)]                     'no seek table'
    [8, 8]     [(42, 8), (0, 8)]                      'frame 0'
    [8, 3]     [(21, 8, 0x14B81B8D), (16, 3, 0x33BC65DD)]  None
    [8, 3]     [(21, 8, 0x14B81B8D), (16, 3, 0)]      'frame 1'
    [8, 3]     [(21, 8, 0), (16, 3, 0x33BC65DD)]      'frame 0'
""")  # sizes of frames, which have checksums, and the rows of the seek table


def frames_with_table(sizes, rows=None, **table):
    """Return frames without checksums and a seek table, which may say something else."""
    if rows is None:
        rows = [(9 + n, n) for n in sizes]
    return b"".join(map(zstd_frame, sizes)) + seek_table(rows, **table)


def in_frames(data, nbytes, **more):
    """Return a file of zTensor 2 of a tensor of frames, which have so many bytes."""
    return ztensor2_of_objects({"w": dense2(
        "u8", 1, len(data), nbytes, encoding=tensorfmt.SEEKABLE, decoded_length=nbytes, **more)},
        (data,))


@about("ztensor")
class SeekableTest(TestCase):
    """Frames of zstd, their seek tables and checksums; modules for zstd."""

    @staticmethod
    def decode(data, nbytes, cut=0):
        source = tensorfmt.Buffer(b"xx" + data + b"y", True)
        return b"".join(tensorfmt.seekable_decode(source, 2, len(data) - cut, nbytes))

    def test_frames_are_read_by_their_table(self):
        for sizes in [8, 8], [8, 3], [5], [], [8, 8, 8, 1]:
            data, nbytes = frames_with_table(sizes), sum(sizes)
            if ZSTD or not sizes:
                wanted = b"".join([bytes(range(n)) for n in sizes])
                self.assertEqual(self.decode(data, nbytes), wanted)
            for asked, cut in (nbytes + 1, 0), (nbytes, 1), (nbytes, len(data) - 16):
                self.raises(FormatError, "no seek table", self.decode, data, asked, cut)

    def test_what_is_no_seek_table(self):
        for title, sizes, nbytes, table in NO_SEEK_TABLES:
            with self.subTest(title):
                data = frames_with_table(sizes, **table)
                self.raises(FormatError, "no seek table", self.decode, data, nbytes)
        self.raises(FormatError, "no seek table", self.decode, b"\xff" * 40, 40)
        most = frames_with_table([8], [(17, 16 << 20)])
        error = error_of(FormatError if ZSTD else Unsupported, self.decode, most, 16 << 20)
        self.assertNotIn("no seek", error.what)

    def test_a_digest_is_of_what_is_decoded(self):
        right = xxh3_of(bytes(range(8)) + bytes(range(3)))
        for digest, status in ("xxh3:4de8d78f7134f4b7", "FAIL"), (right, "ok"):
            data = in_frames(frames_with_table([8, 3]), 11, digest=digest)
            rows = [row[:2] for row in verify(data).rows]
            self.assertIn((status if ZSTD else "-", "checksums"), rows)

    @with_zstd
    def test_seek_tables_agree_with_their_frames(self):
        """Or neither values come, nor does the check of a digest."""
        files = [(zstd_frame(8) + seek_table([(17, 8, ZSTD_SUMS[8])]), [8], None)]
        for sizes, rows, fault in FRAMES:
            frames = [zstd_frame(n, True) for n in sizes]
            files.append((b"".join(frames) + seek_table(rows), sizes, fault))
        for data, sizes, fault in files:
            for more in {}, {"type": "x"}:
                with self.subTest(sizes=sizes, fault=fault, **more):
                    self.check_frames(in_frames(data, sum(sizes), **more), sizes, fault)

    def check_frames(self, data, sizes, fault):
        item, report = load(data)["w"], verify(data)
        if fault:
            self.raises(FormatError, fault, item.tobytes)
            self.assertIn(fault, report.errors[0].what)
            self.assertEqual(report.errors[0].check, "contents")
            return
        self.assertTrue(report)
        self.assertEqual(item.tobytes(), b"".join([bytes(range(n)) for n in sizes]))

    @with_zstd
    def test_parts_of_an_unknown_layout_are_decoded(self):
        """Else what is wrong with a seek table hides the checksums that it has."""
        row = 17, 8, ZSTD_SUMS[8]
        for magic, wrong in (0x184D2A5E, []), (0x184D2A5F, ["contents"]):
            data = zstd_frame(8) + seek_table([row], magic=magic)
            part = part2("u8", 1, len(data), encoding=tensorfmt.SEEKABLE, decoded_length=8)
            entry = {"shape": [9], "layout": "zt.mx/1", "parts": {"a": part, "b": part}}
            report = verify(ztensor2_of_objects({"w": entry}, (data,)))
            self.assertEqual([error.check for error in report.errors], wrong)

    @staticmethod
    def with_sums(wrong=0, count=3):
        """Return a file of frames, whose checksums the table alone has; that of one is wrong."""
        rows = [(17, 8, ZSTD_SUMS[8] ^ (i == wrong)) for i in range(1, count + 1)]
        return in_frames(zstd_frame(8) * count + seek_table(rows), 8 * count)

    @with_zstd
    def test_checksums_that_a_seek_table_alone_has(self):
        """They are checksums as others, also for the budget of slow ones."""
        self.assertIn("3 of 3 agree", str(verify(self.with_sums())))
        load(self.with_sums(), verify=True)
        for wrong in 1, 2, 3:
            bad = self.with_sums(wrong)
            self.assertEqual(failed(bad), [("checksums", "w")])
            self.raises(FormatError, "frame %d: xxh64/3" % (wrong - 1), load, bad, verify=True)
            error_of(FormatError, dumps, load(bad), format="mag", version=300)
        with without_xxhash(), Changed(tensorfmt, "MAX_SLOW_HASH", 20):  # two frames
            self.assertIn("valid zTensor 2, 1 checksum not checked", verify(bad).last_line())
            self.assertFalse(verify(bad, deep=True))
            error_of(FormatError, load, bad, verify=True)

    @staticmethod
    def encode(module):
        with Changed(tensorfmt, "zstd_module", lambda: module):
            return b"".join(tensorfmt.zstd_encode([b"ab", b"c"], 3, 7))

    def test_modules_for_zstd_that_encode(self):
        """They differ: pyzstd before 0.15.4 puts the size into a frame in one call only."""
        from types import SimpleNamespace as Module

        class Pledging:
            def __init__(self, level):
                self.out = [b"%d" % level]

            def _set_pledged_input_size(self, nbytes):
                self.out.append(b" of %d " % nbytes)

            def compress(self, block):
                return b"".join(self.out + [block])

            def flush(self):
                return b"."

        def compress(data, level):
            return data + b" %d" % level
        self.assertEqual(self.encode(Module(ZstdCompressor=Pledging)), b"7 of 3 ab7 of 3 c.")
        plain = Module(ZstdCompressor=lambda level: 0, compress=compress)
        self.assertEqual(self.encode(plain), b"abc 7")

    def test_whatever_a_module_for_zstd_raises_is_a_format_error(self):
        class Broken:
            def __init__(self, stream):
                pass

            def read(self, nbytes):
                raise UnicodeDecodeError("ascii", b"\xff", 0, 1, "as some modules do")

        module = mock.Mock(ZstdFile=Broken)
        frame = b"\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00\xff\xff"
        with Changed(tensorfmt, "zstd_module", lambda: module):
            blocks = tensorfmt.zstd_decode(tensorfmt.Buffer(frame), 0, len(frame), 2)
            self.raises(FormatError, "damaged (UnicodeDecodeError", list, blocks)

    @with_zstd
    def test_the_module_for_zstd_is_sought_once(self):
        """Until it is gone. Another thread's import would be waited for in a forked process."""
        module = tensorfmt.zstd_module()
        (name, _), = tensorfmt.ZSTD_FOUND
        with Changed(builtins, "__import__", side_effect=AssertionError("an import")):
            self.assertIs(tensorfmt.zstd_module(), module)
        with mock.patch.dict(sys.modules, {name: None}):
            try:
                self.assertIsNot(tensorfmt.zstd_module(), module)
            except Unsupported:
                pass  # there is no other
        self.assertIs(tensorfmt.zstd_module(), module)

    def test_modules_for_zstd_that_are_not_there_are_not_imported(self):
        """Each import has a lock, which a forked process may wait for without an end."""
        names = "no_such_zstd", "no_such_package.zstd", "os.zstd"
        with Changed(tensorfmt, "ZSTD_MODULES", names), Changed(
                builtins, "__import__", wraps=__import__) as seen:
            self.raises(Unsupported, "os.zstd; pip install", tensorfmt.zstd_module)
        tried = [call[0][0] for call in seen.call_args_list]
        self.assertEqual([name for name in tried if "zstd" in name], ["os.zstd"])


INDEX = ".safetensors.index.json"
ONE = "m-1-of-2.safetensors"
TWO = "m-2-of-2.safetensors"
PLACES = {"c": TWO, "a": ONE, "b": ONE, "d": TWO}
FILES_OF_MODEL = {"ONE": ONE, "TWO": TWO, "INDEX": "m" + INDEX}


def changed_map(facts, changes):
    """Return a map with changes; None takes a key away."""
    facts = dict(facts, **(changes or {}))
    return dict([(key, value) for key, value in facts.items() if value is not None])


def int16s(names):
    """Return a shard that has for each letter a tensor of its code and 1."""
    tensors = {name: tensor([ord(name), 1], "int16") for name in names}
    return dumps(tensors, format="safetensors", metadata={"format": "pt"})


def damaged_shard(how):
    """Return the first shard of a model with a fault; None: it is gone."""
    good = int16s("ab")
    shape = b'"b":{"dtype":"I16","shape":['
    return {
        "gone": None, "good": good, "cut": good[:-1], "header": good[:9],
        "rubbish": b"rubbish", "lfs": b"version https://git-lfs.github.com/spec/v1\n",
        "shape": good.replace(shape + b"2", shape + b"3"),
    }[how]


WRONG_MODELS = read_table("""
    places          shard    asked  at     tensor  missing  whole  words
    {'a': 'none'}   good     a      none   None    ''       d      the shard is missing
    {}              gone     b      ONE    None    ab       d      the shard is missing
    {'e': 'ONE'}    good     e      INDEX  e       e        ''     {ONE!r}, which lacks it
    {'a': 'TWO'}    good     b      INDEX  a       ''       ''     weight_map places it in {TWO!r}
    {'c': None}     good     d      INDEX  c       ''       b      {TWO!r}, but weight_map lacks it
    {}              rubbish  a      ONE    None    ab       d      not a tensor
    {}              lfs      a      ONE    None    ab       d      git lfs pull
    {}              cut      a      ONE    None    b        d      cut short
    {}              header   a      ONE    None    ab       d      header_size
    {}              shape    a      ONE    b       ab       d      needs 6
    {'a': 'INDEX'}  good     a      INDEX  None    ''       ''     this is safetensors index
""")  # what is asked for, where the error is, what partial=True leaves out, what can be read


SHARD_NAMES = read_table(r"""
    name                           is_other
    m-3-of-2.safetensors           False
    m-0002-of-0002.safetensors     False
    m-2-of-3.safetensors           True
    n-2-of-2.safetensors           True
    m-2-of-2.fp16.safetensors      True
    'm-\u00b2-of-2.safetensors'    True
    m-x-of-2.safetensors           True
    consolidated.safetensors       True
""")  # a file that no entry of the index names, and whether it is no shard of this model
OTHER_ENCODINGS = read_table(r"""
    encoding   mark
    utf-16     b''
    utf-16-le  b''
    utf-16-be  b''
    utf-16-be  b'\xfe\xff'
    utf-32     b''
    utf-32-be  b'\0\0\xfe\xff'
""")  # what Python writes, and the mark that it does not write


@about("safetensors", "ztensor")
class ShardTest(FolderCase):
    """Files that name others beside them: an index of safetensors, zTensor 2."""

    def write_model(self, changes=None, files=None, total=16):
        """Write two shards and their index; return its path.

        `changes` of its weight_map and of the `files`: None takes away what stands there.
        """
        index = {"metadata": {}, "weight_map": changed_map(PLACES, changes)}
        if total:
            index["metadata"]["total_size"] = total
        made = {ONE: int16s("ab"), TWO: int16s("cd")}
        made["m" + INDEX] = json.dumps(index, indent=2).encode()
        for name in os.listdir(self.folder):
            os.unlink(self.at(name))
        for name, data in changed_map(made, files).items():
            write_file(self.at(name), data)
        return self.at("m" + INDEX)

    def ask(self, path, call, **options):
        with load(path, **options) as file:
            return call(file)

    def assertModel(self, file, names="cabd"):
        """Assert that a File has the tensors of a model, in this order."""
        self.assertEqual([(name, item.name) for name, item in file.items()],
                         [(name, name) for name in names])
        for name, item in file.items():
            self.assertEqual(item.tolist(), [ord(name), 1])

    def test_an_index_is_one_file(self):
        path = self.write_model()
        with load(path) as file:
            self.assertEqual(list(file), list("cabd"))
            self.assertEqual((len(file), "a" in file), (4, True))
            self.assertEqual(file.shards, {})  # nothing is opened
            self.assertEqual(file["c"].tolist(), [99, 1])
            self.assertEqual(list(file.shards), [TWO])
            self.assertIsNone(file.get("e"))
            self.assertEqual((file.format, file.metadata), ("safetensors", {"format": "pt"}))
            self.assertEqual(file.nbytes, 16)
            self.assertModel(file)
            item = file["d"]
        error_of(ValueError, item.tolist)  # closed with it
        self.assertEqual(detect(path), "safetensors")
        self.assertTiles(explain(path), os.path.getsize(path), True)
        load(path, verify=True)

    def test_an_index_is_copied_and_pickled(self):
        with load(self.write_model()) as file:
            item = file["d"]
            self.assertEqual(pickle.loads(pickle.dumps(item)).tolist(), [100, 1])
            self.assertModel(pickle.loads(pickle.dumps(file)))
            for made in copy(file), deepcopy(file):
                self.assertModel(made)
                made["d"].attrs["new"] = made["a"].attrs["new"] = 1
            self.assertEqual((item.attrs, file["a"].attrs), ({}, {}))

    def test_an_index_becomes_one_file(self):
        path = self.write_model()
        again = load(dumps(load(path), format="safetensors"))
        for made in converted(path, "safetensors")[0], again:
            self.assertEqual(made.metadata, {"format": "pt"})
            self.assertModel(made, "abcd")
        summary = converted(path, "ztensor")[1]
        self.assertEqual(summary.left_behind, ["index", "metadata format", "shards"])

    def test_shards_are_beside_their_index_whatever_the_folder(self):
        self.write_model()
        go_to(self, self.folder)
        for source in "m" + INDEX, os.path.join(".", "m" + INDEX), ".":
            for options in {}, {"mmap": False}:
                os.chdir(self.folder)
                with self.subTest(source=source), load(source, **options) as file:
                    self.assertEqual(file["a"].tolist(), [97, 1])
                    os.chdir(HERE)
                    self.assertModel(file)
                    with pickle.loads(pickle.dumps(file)) as again:
                        self.assertEqual(again["d"].tolist(), [100, 1])

    def test_what_is_wrong_is_told_by_all(self):
        """What verify refuses, load, diff and convert refuse; partial takes what is whole."""
        for row in WRONG_MODELS:
            with self.subTest(row=row):
                self.check_wrong(row)

    def check_wrong(self, row):
        places = {name: FILES_OF_MODEL.get(at, at) for name, at in row.places.items()}
        error_class = Unsupported if row.words == "the shard is missing" else FormatError
        words = row.words.format(**FILES_OF_MODEL)
        path = self.write_model(places, {ONE: damaged_shard(row.shard)})
        with load(path) as file:
            error = self.raises(error_class, words, lambda: file[row.asked])
            self.assertEqual(os.path.basename(error.path), FILES_OF_MODEL.get(row.at, row.at))
            self.assertEqual(error.tensor, row.tensor)
            if row.tensor and row.at == "INDEX":
                self.assertIn("; partial=True", error.what)
            self.assert_refused("", file, path)
            self.assertRaises(FormatError, getattr, file, "metadata")
            self.assertIn(words, str(verify(path)))
            for name in row.whole:
                self.assertEqual(file[name].tolist(), [ord(name), 1])
        summary = converted(path, "ztensor", partial=True)[1]
        self.assertEqual(summary.missing, list(row.missing))
        self.assertEqual(set(summary.copied + summary.missing), set("abcd").union(places))

    def assert_refused(self, words, file, path):
        """Assert that whoever wants all of a model refuses it."""
        for call, *args in (
                (file.items,), (file.values,), (diff, file, path),
                (converted, file, "safetensors"), (lambda: load(path, verify=True),)):
            with self.assertRaises(FormatError) as caught:
                call(*args)
            self.assertIn(words, str(caught.exception))

    def test_an_index_without_a_folder(self):
        data = read_file(self.write_model())
        file = load(data)
        self.assertEqual(len(file), 4)
        self.raises(Unsupported, "by its path", lambda: file["a"])
        self.assertIn("no path", str(verify(data)))
        error_of(Unsupported, load, data, partial=True)

    def test_an_index_with_the_mark_of_utf_8(self):
        mark = b"\xef\xbb\xbf"
        path = self.write_model()
        data = mark + read_file(path)
        write_file(path, data)
        self.ask(self.folder, self.assertModel)
        self.assertTrue(verify(path))
        fields = list(explain(path))
        self.assertTiles(fields, len(data))
        self.assertEqual(fields[0][:3], (0, 3, "mark"))
        error = error_of(FormatError, load, data.replace(b":", b";", 1))
        self.assertEqual(error.offset, data.index(b":"))
        self.assertIsNone(detect(mark + b"{}"))

    def test_an_index_in_utf_16_or_32_is_called_so(self):
        path = self.write_model()
        text = read_file(path).decode()
        for encoding, mark in OTHER_ENCODINGS:
            write_file(path, mark + text.encode(encoding))
            words = "in %s: write it as UTF-8" % encoding[:6].upper()
            self.raises(FormatError, words, load, self.folder)
            self.assertIn("JSON '{ \"metadata\": ", run("ls", self.folder)[2])
        error = error_of(FormatError, load, "Not found.".encode("utf-16"))
        self.assertTrue(error.what.endswith("it is the text 'Not found.' in UTF-16"))

    def test_a_shard_that_no_entry_names(self):
        """What is one by its name is an error, as a tensor of a shard that no entry names is."""
        path = self.write_model({"c": None, "d": None}, {"._" + TWO: b"", "x.txt": b""}, 8)
        words = "%r is one of the shards by its name, but weight_map lacks it" % TWO
        self.assertEqual([error.what for error in verify(path).errors], [words])
        with load(path) as file:
            self.assertEqual(file["a"].tolist(), [97, 1])
            self.assertEqual(converted(file, "ztensor", only="a")[1].copied, ["a"])
            self.assert_refused(words, file, path)
        self.assertIn(words, run("ls", path)[2])
        summary = converted(path, "ztensor", partial=True)[1]
        self.assertEqual((sorted(summary.copied), summary.missing), (list("abcd"), []))

    def test_what_lies_beside_a_model_is_noted(self):
        for name, is_other in SHARD_NAMES:
            path = self.write_model(files={name: int16s("e")})
            report = verify(path)
            with self.subTest(name=name):
                self.assertEqual(bool(report), is_other)
                text = "%r lies beside it, but weight_map lacks it" % name
                notes = [row for row in report.rows if row[:4] == ("note", "shards", None, text)]
                self.assertEqual(len(notes), is_other)
                if is_other:
                    self.ask(path, self.assertModel)

    def test_rows_of_shards(self):
        """What is not looked at in several shards is one row."""
        entry = '{"%s":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}%s\n'
        files = {ONE: safetensors_file(entry % ("a", ""), b"ab"),
                 TWO: safetensors_file(entry % ("b", " " * 8), b"ab")}
        path = self.write_model({"c": None, "d": None, "b": TWO}, files, 4)
        text = str(verify(path))
        for words in ("note  padding      %r: 1 range" % ONE,
                      "-     contents     tensor 'a': %r: not checked: dtype 'F4'" % ONE,
                      "-     contents     tensor 'b': %r: not checked: dtype 'F4'" % TWO,
                      "-     checksums    %r and 1 other: no tensor has one" % ONE):
            self.assertIn(words, text)
        self.assertTrue(text.endswith("valid safetensors index, 2 tensors not checked"))

    @on_posix
    def test_shards_that_are_damaged_as_files(self):
        """A download of one began again; one is a link to a blob whose name is not its digest."""
        path = self.write_model(files={ONE: int16s("ab")[:50] + int16s("ab")})
        words = "%r: the beginning of the file stands again at 0x32" % ONE
        self.assertIn(words, str(verify(path)))
        path, good = self.write_model(), int16s("cd")
        os.mkdir(self.at("blobs"))
        blob = os.path.join("blobs", sha256(good).hexdigest())
        os.rename(self.at(TWO), self.at(blob))
        os.symlink(blob, self.at(TWO))
        self.assertTrue(verify(path))
        for bad in good[:-1] + b"?", good[:-1]:
            write_file(self.at(blob), bad)
            self.assertIn("%r: the name is taken for the SHA-256" % TWO, str(verify(path)))
        rmtree(self.at("blobs"))

    def test_total_size_is_only_noted(self):
        for total in 16, 15, "16", 16.0:
            report = verify(self.write_model(total=total))
            self.assertTrue(report)
            *others, last = [row[:4] for row in report.rows if row[1] == "shards"]
            text = "total_size is %r, the tensors have 16 bytes" % total
            self.assertEqual(last, ("ok" if total == 16 else "note", "shards", None, text))
            self.assertEqual(len(others), 2)
        for given in {"total": None}, {"files": {ONE: None}}:
            self.assertNotIn("total_size", str(verify(self.write_model(**given))))

    def test_all_that_an_index_places_wrongly(self):
        names = ["e"] + ["n%d" % i for i in range(400)]
        path = self.write_model(dict.fromkeys(names, ONE))
        report = verify(path)
        self.assertEqual([error.tensor for error in report.errors], names)
        self.assertIn("which lacks it", report.errors[0].what)
        with Changed(tensorfmt, "MAX_ERRORS", 10):
            self.assertEqual(len(verify(path).errors), 10)
        self.assertEqual(run("verify", "--quiet", path)[1].count("\n"), len(names))
        self.assertEqual(calls_of(tensorfmt, "open_path", run, "get", path, "--stats"), 3)
        code, out, _ = run("explain", path, "--tensor", "e")
        self.assertEqual(code, 0)
        self.assertIn(ONE, out)

    def test_partial_takes_each_tensor_from_where_the_index_says(self):
        sevens = {name: tensor([7, 7], "int16") for name in "abcd"}
        path = self.write_model({"b": TWO}, {TWO: dumps(sevens, format="safetensors")})
        with load(path, partial=True) as file:
            self.assertEqual([file[name][0] for name in "abcd"], [97, 7, 7, 7])
        for name, out in ("a", "[97,  1]\n"), ("b", "[7, 7]\n"):
            self.assertEqual(run("get", path, name, "--partial"), (0, out, ""))

    def test_partial_leaves_out_what_is_cut(self):
        path = self.write_model({"a": TWO}, {ONE: int16s("ab")[:-1]})
        with load(path, partial=True) as file:
            self.assertEqual(list(file), list("cad"))
            self.assertEqual(file.attrs["missing"], ["b"])
            self.assertEqual(file.nbytes, 12)
            self.raises(KeyError, "'b' is missing or cut short", lambda: file["b"])

    def test_some_tensors_while_a_shard_is_missing(self):
        path = self.write_model(files={ONE: None})
        for options in {"only": ["c", "d"]}, {"only": "[cd]"}, {"exclude": "[ab]"}:
            file, summary = converted(path, "safetensors", **options)
            self.assertEqual(summary.copied, ["c", "d"])
            self.assertEqual(file.metadata, {"format": "pt"})
        error_of(Unsupported, self.ask, path, lambda file: file.nbytes)

    def test_shards_that_do_not_agree_on_their_metadata(self):
        metadata = {"format": "tf", "n": "1"}
        one = dumps({"a": F32, "b": F32}, format="safetensors", metadata=metadata)
        path, other = self.write_model(files={ONE: one}), self.at("other")
        self.refuses(["do not agree on metadata 'format'"], self.ask, path,
                     lambda file: file.metadata)
        file, summary = converted(path, "safetensors", meta={"format": "np"})
        self.assertEqual(file.metadata, {"format": "np", "n": "1"})
        self.assertEqual(summary.changed, [("format", None, "np")])
        with load(path) as file:
            save(other, dict(file), format="safetensors", metadata=metadata)
            self.assertEqual(diff(file, file).differences, [])
            row, = diff(file, other).differences
        self.assertEqual((row["kind"], row["name"]), ("metadata", "format"))
        self.assertEqual(row["changes"], [["tf", "pt"], "tf"])

    @on_posix
    def test_a_link_whose_target_is_gone(self):
        path = self.write_model()
        words = "a symbolic link to ../blobs/gone, which"
        for name in ONE, "m" + INDEX:
            os.unlink(self.at(name))
            os.symlink("../blobs/gone", self.at(name))
            self.assertIn(words, run("ls", path)[2])
        for call in load, verify, detect:
            error = self.raises(FileNotFoundError, words, call, path)
            self.assertEqual(error.filename, path)
        error = error_of(FileNotFoundError, load, self.at("none"))
        self.assertNotIn("link", str(error))

    @on_posix
    def test_links_that_lead_nowhere(self):
        one = self.at("one.zt")
        os.symlink("two.zt", one)
        os.symlink("one.zt", self.at("two.zt"))
        words = "a symbolic link to two.zt, a loop of links, which leads to no file"
        self.assertIn(words, run("ls", one)[2])
        os.unlink(self.at("two.zt"))
        os.symlink("gone", self.at("two.zt"))
        self.assertIn("a symbolic link to two.zt, a link that leads to no file", run("ls", one)[2])
        os.unlink(one)
        os.symlink("gone/o.zt", one)
        error = error_of(FileNotFoundError, save, one, {"w": F32})
        self.assertEqual(error.filename, one)
        self.assertEqual(error.strerror, "there is no folder " + self.at("gone"))

    def test_models_in_shards_are_only_read(self):
        path = self.at("m" + INDEX)
        words = "only read", "one .safetensors file of any size"
        self.refuses(words, save, path, {"w": F32})
        self.refuses(words, dumps, {"w": F32}, format="shards")
        self.refuses(words, convert, golden("custom_fields.zt"), path)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_is_its_index(self):
        self.write_model()
        for source in self.folder, self.folder + os.sep:
            with load(source) as file:
                self.assertEqual(file.path, os.path.join(source, "m" + INDEX))
                self.assertModel(file)
        self.assertTrue(verify(self.folder))
        summary = converted(self.folder, "ztensor")[1]
        self.assertEqual(summary.copied, list("cabd"))

    def test_a_folder_is_its_one_file(self):
        os.unlink(self.write_model())
        words = (", of a model in 2 shards whose index m.safetensors.index.json is missing: "
                 "download it, or load each shard by its own path")
        self.raises(IsADirectoryError, f"it has {ONE}, {TWO}{words}", load, self.folder)
        os.unlink(self.at(ONE))
        self.raises(IsADirectoryError, f"it has {TWO}{words}", load, self.folder)
        os.rename(self.at(TWO), self.at("m-1-of-1.safetensors"))
        self.ask(self.folder, lambda file: self.assertModel(file, "cd"))
        os.unlink(self.at("m-1-of-1.safetensors"))
        error = self.raises(IsADirectoryError, "no tensor files", load, self.folder)
        self.assertEqual(error.errno, EISDIR)

    def test_a_folder_with_files_of_macos(self):
        """Those that begin with ._ are no tensor files, and all others are named."""
        write_file(self.at("._m" + INDEX), b"")
        self.write_model(files={"._" + ONE: b"", "._m" + INDEX: b""})
        self.ask(self.folder, self.assertModel)
        self.assertNotIn("._", str(verify(self.folder)))
        os.unlink(self.at("m" + INDEX))
        for i in range(20):
            write_file(self.at("n%02d.zt" % i), b"")
        error = self.raises(IsADirectoryError, "n19.zt: load one of them", load, self.folder)
        self.assertNotIn("._", str(error))
        self.assertEqual(str(error).count(".zt"), 20)

    def test_which_shard_a_tensor_lies_in(self):
        path = self.write_model()
        with load(path) as file:
            self.assertEqual(file["c"].path, self.at(TWO))
            self.assertEqual(file["a"][0:1].path, self.at(ONE))
        self.assertIsNone(tensor([1]).path)
        code, out, _ = run("ls", path, "--only", "[ac]")
        self.assertIn("safetensors, 2 shards, 8 bytes", out)
        self.assertIn("shape       shard   name\n", out)
        self.assertIn("[2]         2 of 2  c\n", out)
        rows = json.loads(run("ls", path, "--json")[1])[0]["tensors"]
        self.assertEqual([row["shard"] for row in rows], [TWO, ONE, ONE, TWO])

    def test_explain_says_where_the_tensors_are(self):
        path, page = self.write_model(), self.at("page.html")
        words = f"its 4 tensors lie in 2 files beside it: explain {ONE}, {TWO}"
        self.assertTrue(run("explain", path)[1].endswith(words + "\n"))
        self.assertEqual(run("explain", path, "--html", page)[0], 0)
        self.assertIn(f"This is an index; {words}</p>", read_file(page).decode())

    def test_folders_that_are_called_like_files(self):
        os.makedirs(self.at(*[".zt"] * 400))
        os.makedirs(self.at("m" + INDEX))
        for folder in self.folder, self.at(".zt"):
            for call in load, verify, detect:
                self.raises(IsADirectoryError, "no tensor files", call, folder)
        self.assertEqual(run("ls", self.folder)[0], 1)
        for name in "m.zt", "m-00001-of-\u00b2.zt":  # no number
            path = self.at(name)
            write_file(path, dumps({"w": F32}, format="ztensor"))
            self.assertEqual(self.ask(self.folder, list), ["w"])
            os.unlink(path)

    def test_an_index_is_not_mapped(self):
        """It is often written again in place; who reads a mapped one then is killed."""
        import mmap
        is_native = sys.byteorder == "little"
        for name in "m" + INDEX, "index", "m.zt":
            path = self.at(name)
            os.rename(self.write_model(), path)
            with Changed(mmap, "mmap", wraps=mmap.mmap) as mapped, load(path) as file:
                for call in verify, detect:
                    call(path)
                    self.assertFalse(file.source.mapping)
                self.assertGreater(len(list(explain(path))), 3)
                before = mapped.call_count
                self.assertEqual(file["a"].tolist(), [97, 1])
                self.assertEqual(mapped.call_count, before + 1)
                self.assertEqual(file["a"].zero_copy, is_native)
                write_file(path, b"")
                self.assertEqual(file["c"].tolist(), [99, 1])
                write_file(path, b"{" * 10000)
                self.assertModel(file)
        path = self.at("w.safetensors")  # a size can look like text
        for size in 0x7b, 0x227b:  # "{", '{"'
            write_file(path, safetensors_file(SAFETENSORS_TEXT.ljust(size)))
            with load(path) as file:
                self.assertEqual(file["w"].zero_copy, is_native)

    def test_pickles_know_their_shards(self):
        """As they were opened, or as they were when the pickle was made."""
        for asked in "", "a", "abcd":
            for most in 0, 200:
                for options in {}, {"mmap": False}, {"partial": True}:
                    with self.subTest(asked=asked, most=most, **options):
                        data = self.pickled_twice(asked, most, **options)
                        self.check_changed_shard(data, "partial" in options)

    def pickled_twice(self, asked, most, **options):
        """Return a pickle of a File that was made of one; of it these tensors were read before."""
        with Changed(tensorfmt, "OPEN_SHARDS", most), load(self.write_model(), **options) as file:
            for name in asked:
                file[name].tolist()
            with pickle.loads(pickle.dumps(file)) as again:
                return pickle.dumps(again)

    def check_changed_shard(self, data, is_partial):
        path = self.at(ONE)
        other = int16s("ab").replace(b"a\0\1\0", b"A\0\1\0")
        for change in other, other + b"x", None:
            words = "has changed since it was opened"
            if change is not None:
                write_file(path + ".new", change)
                os.replace(path + ".new", path)
            else:
                os.unlink(path)
                if not is_partial:
                    words = "missing"
            with self.assertRaises(ValueError) as caught:
                pickle.loads(data)["a"]
            self.assertIn(ONE, str(caught.exception))
            self.assertNotIn(TWO, str(caught.exception))
            self.assertIn(words, str(caught.exception))
            if not is_partial:
                with pickle.loads(data) as again:
                    self.assertEqual(again["c"].tolist(), [99, 1])

    def test_more_shards_than_may_be_open(self):
        for most in 0, 1, 2:
            with Changed(tensorfmt, "OPEN_SHARDS", most), load(self.write_model()) as file:
                self.assertModel(file)
                kinds = [type(part.source).__name__ for part in file.shards.values()]
                self.assertEqual(kinds.count("ReopenedFile"), 2 - most)
                item = file["b"]
            error_of(ValueError, item.tolist)  # closed with it
        with Changed(tensorfmt, "OPEN_SHARDS", 0), load(self.write_model()) as file:
            item = file["a"]
            write_file(item.source.path, int16s("ab") + b"x")
            self.refuses(["has changed"], item.tolist)

    def test_shards_of_ztensor_2(self):
        far = dense2("f32", 1, 8, 2, shard="s.1")
        shards = {"s.1": {"size": 8232, "digest": "xxh3:" + "0" * 16}}
        data = ztensor2_of_objects({"far": far}, (bytes(8),), shards=shards)
        item, words = load(data)["far"], "in the shard 's.1'"
        self.assertEqual((item.shape, bytes(item.raw)), ((2,), b""))
        self.raises(Unsupported, words, item.tolist)
        self.refuses(["'far'", words], dumps, {"far": item}, format="ztensor")
        self.assertIn(words, str(verify(data)))
        self.assertTrue(load(ztensor2_replaced(start=0, nbytes=0, hash=0)).attrs["data_shard"])


RECORD_IDS = read_table("""
    text              key       value
    d5m78v4vc0ahe     param_id  1663341875487337577
    D5M78V4VC0AHE     param_id  1663341875487337577
    '0000000004'      param_id  1099511627776
    an id             id        an id
    d5m78v4vc0ahf     id        d5m78v4vc0ahf
    '0000000001'      id        '0000000001'
    d5m78v4vc0ah_     id        d5m78v4vc0ah_
    ''                id        ''
    '00000000000'     id        '00000000000'
    '00000000000000'  id        '00000000000000'
""")  # what a record says of a tensor, and the attr that comes of it


MEMBERS = read_table("""
    item                                  names
    {'': 1, 'item': 2}                    ['', 'item']
    {'item': 1, '': 2}                    ['item', '']
    {'': 1, 'item': {'w': 2}}             ['', 'item.w']
    {'': {'': 1}}                         ['.']
    {'': {'': 1, 'a': 2}, 'a': {'': 2}}   ['.', '.a', 'a.']
    {'': [1, 2]}                          ['.0', '.1']
    [{'': 1}, {'': 1}]                    ['0.', '1.']
    {'': 1, 'a': 2}                       ['item', 'a']
    1                                     ['item']
    2                                     ['item']
""")  # 1 is a tensor, 2 is one with an id


OTHER_BYTES = read_table(r"""
    item                                    others                scalars
    {'w': 1, 'table': b'\0\1\2'}            {'table': b'\0\1\2'}  {}
    {'w': {'id': 'x', 'param': b'\3'}}      {'w.param': b'\3'}    {'w.id': 'x'}
    {'w': {'bytes': b'\3', 'dtype': 'U8'}}  {'w.bytes': b'\3'}    {'w.dtype': 'U8'}
    b'\3'                                   {'item': b'\3'}       {}
""")


def with_tensors(item):
    """Return an item of a record with tensors in place of numbers."""
    if isinstance(item, dict):
        return {key: with_tensors(value) for key, value in item.items()}
    if isinstance(item, list):
        return [with_tensors(value) for value in item]
    if item == 1:
        return RECORD_TENSOR
    if item == 2:
        return {"id": "x", "param": RECORD_TENSOR}
    return item


@about("burnrecord")
class RecordTest(TestCase):
    """Burn .mpk: read, never written."""

    def test_ids(self):
        good = golden("v021_one_tensor.mpk")
        old = msgpack_dumps("d5m78v4vc0ahe")
        for text, key, value in RECORD_IDS:
            data = good.replace(old, msgpack_dumps(text))
            self.assertSame(load(data)["item"].attrs, {key: value})

    def test_what_is_not_of_a_tensor(self):
        file = load(odd_record())
        self.assertEqual(list(file), ["j"])
        self.assertSame(file.attrs["scalars"], {
            "a.value.0": 1, "a.value.1": True, "a.value.2": "", "b.value.0": 1, "c.shape.0": 1,
            "c.b": True, "f": 1.5, "h.1.1": False, "h.1.2": "", "k.value.0": 0.0, "k.value.1": 1.0,
            "k.a": 1})
        self.assertSame(file.others, {"d": b"a", "e": (5, b"\1")})
        self.assertSame(load(record_file("07")).attrs["scalars"], {"item": 7})

    def test_bytes_of_no_tensor_are_listed(self):
        long = b"b" * 70000
        rows = [(with_tensors(row.item), row.others, row.scalars) for row in OTHER_BYTES]
        rows.append(({"list": [b"a", {"": long}], "none": b""},
                     {"list.0": b"a", "list.1.": long}, {}))
        for item, others, scalars in rows:
            data = record_file(item)
            with self.subTest(names=list(others)):
                file = load(data)
                self.assertSame(file.others, others)
                self.assertSame(file.attrs.get("scalars", {}), scalars)
                self.assertSame(deepcopy(file).others, others)
                self.check_others(data, others)
                other = b"\4"
                if isinstance(item, dict):
                    other = dict(item, more=b"\5")
                self.assertTrue(diff(data, record_file(other)))

    def check_others(self, data, names):
        """Assert that the bytes of these names are noted, and dropped only if that is wished."""
        report = str(verify(data))
        self.assertNotIn("no field names", report)
        self.assertIn("note  library", report)
        self.assertTiles(list(explain(data)), len(data))
        self.assertFalse(diff(data, data))
        _, summary = converted(data, "burnpack", drop=True)
        for name in names:
            self.refuses([repr(name), "drop=True"], converted, data, "burnpack")
            self.assertIn("bytes %r" % name, str(summary.dropped))

    def test_two_bytes_of_a_name(self):
        twice = record_file({"a.b": b"1", "a": {"b": b"2"}})
        self.raises(FormatError, "two values have the name 'a.b'", load, twice)

    def test_a_member_without_a_name_has_one_of_its_own(self):
        for row in MEMBERS:
            file = load(record_file(with_tensors(row.item)))
            self.assertEqual(list(file), row.names)
            again = load(dumps(file, format="burnpack"))
            self.assertEqual(list(again), sorted(row.names))
        self.assertSame(load(record_file({"": 1, "item": 2})).attrs["scalars"], {"": 1, "item": 2})

    def test_it_becomes_a_burnpack_and_is_never_written(self):
        for title in "v021_quant.mpk", "v021_one_tensor.mpk":
            file = load(golden(title))
            there, summary = converted(file, "burnpack")
            for name, item in file.items():
                self.assertSame(there[name].attrs, changed_map(item.attrs, {"id": None}))
            self.assertNotIn("id", summary.left_behind)
            for call, *args in ((save, "x.mpk", file), (save, "x", file),
                                (convert, there, "x.mpk")):
                self.refuses([".bpk"], call, *args)
        scalars = record_file({"a": 1})
        for options in {}, {"cast": "float64"}:
            self.refuses(["'scalars'", "drop=True"], converted, scalars, "burnpack", **options)

    def test_a_packed_record_is_told_how_to_open(self):
        packed = io.BytesIO(gzip.compress(golden("v021_quant.mpk")))
        self.raises(Unsupported, "gzip.open", load, packed)
        self.assertEqual(list(load(gzip.open(packed))), ["w"])


# -- [9] convert ---------------------------------------------------------------------------------


def fits(kind, item):
    """Return whether a format can hold a tensor as it is, by its row."""
    row = row_of(kind)
    if zstd_missing(item):
        return False
    if row.holds(item.dtype, item.shape):
        return True
    family = [other for other in EVERY if other.name == item.format]
    return item.dtype in row.more_dtypes and item.dtype in family[0].more_dtypes


def converted(source, into, **options):
    """Return (File, Summary) of a conversion in memory."""
    stream = io.BytesIO()
    summary = convert(source, stream, format=into, **options)
    return load(stream.getvalue(), verify=True), summary


# Of a file of float64, int64, a tensor without a name and metadata: what helps to convert it.
REMEDIES = read_table("""
    format      options             needed
    mag         {}                  {"cast": "float32", "version": "300"}
    mag         {"version": "1"}    {"cast": {"int64": "int32", None: "float32"}, "drop": True, \
"rename": {"": "tensor"}}
    ztensor     {}                  {"drop": True}
    ztensor     {"version": "2"}    {"rename": {"": "tensor"}}
    primitiv    {}                  {"cast": "float32", "drop": True}
""")
# Of tensors of so many dimensions (-1: no elements): what helps to convert them together.
TOGETHER = read_table(r"""
    ranks                       format    options             needed
    {"w": 1, "w.a": 1}          primitiv  {}                  {"rename": {"w.a": "w_a"}}
    {"a.b": 1, "a": 1, "a_b.c": 1}  primitiv  {}  {"rename": {"a.b": "a_b", "a_b.c": "a_b_c"}}
    {"w:m": 1, "w_m": 1}        primitiv  {}                  {"rename": {"w:m": "w_m_2"}}
    {"w:m": 1, "w": 10}         primitiv  {}        {"exclude": ["w"], "rename": {"w:m": "w_m"}}
    {"w": 9, "v": -1}           primitiv  {}                  {"exclude": ["v", "w"]}
    {"a\\": 1}                  primitiv  {}                  {"rename": {"a\\": "a_"}}
    {"tensor": 1, "w": 1}       primitiv  {"kind": "tensor"}  {"exclude": ["w"]}
    {"": -1}                    mag       {}                  {"rename": {"": "tensor"}}
    {"": 7}                     mag       {"version": "1"}    {"exclude": [""]}
""")
# Whether the metadata of a safetensors file say `format`, and a note of its conversion.
NOTES = read_table("""
    says     into           options                       note
    True     mag            {}                            'format' = 'pt' is left behind
    True     burnpack       {}                            ""
    False    mag            {}                            ""
    False    safetensors    {}                            (--meta format=pt)
    False    safetensors    {"meta": {"format": "pt"}}    ""
""")


def ones(rank):
    """Return a tensor of so many dimensions of 1; -1: of no elements."""
    if rank < 0:
        return tensor([], "float32")
    return tensor([1.0], "float32", (1,) * rank)


class ConvertTest(TestCase):
    def test_a_refusal_has_the_arguments_that_help(self):
        data = dumps({"w": [0.5], "i": [3], "": F32}, format="burnpack", metadata={"by": "me"})
        for row in REMEDIES:
            error = error_of(ValueError, converted, data, row.format, **row.options)
            self.assertEqual(error.needed, row.needed)
            words = ", ".join(["%s=%r" % pair for pair in row.needed.items()])
            self.assertEqual(str(error).splitlines()[-1], "convert(..., %s) writes it" % words)
            converted(data, row.format, **dict(row.options, **error.needed))

    def test_a_refusal_has_what_tensors_cannot_be_beside_one_another(self):
        for row in TOGETHER:
            tensors = {name: ones(rank) for name, rank in row.ranks.items()}
            data = dumps(tensors, format="burnpack")
            with self.subTest(ranks=row.ranks, options=row.options):
                error = error_of(ValueError, converted, data, row.format, **row.options)
                self.assertEqual(error.needed, row.needed)
                converted(data, row.format, **dict(row.options, **error.needed))

    def test_a_refusal_says_why_nothing_helps(self):
        for tensors, into, options, why in (
                ({"v": F32, "w": F32}, "primitiv", {"kind": "tensor"}, "needs a tensor"),
                ({"w": F32}, "ztensor", {"encoding": "x"}, "encoding is 'x'"),
                ({}, "mag", {"version": "300", "meta": {"x": b"1"}}, "0 bytes of data; version=1")):
            data = dumps(tensors, format="burnpack", metadata={"by": "me"})
            error = error_of(ValueError, converted, data, into, **options)
            self.assertEqual(error.needed, {})
            self.refuses(["\n  with all of that: ", why], converted, data, into, **options)

    def test_what_helps_keeps_what_was_asked_for(self):
        tensors = {"a\\": [0.5], "a": F32, "b": F32, "c": F32}
        data = dumps(tensors, format="safetensors")
        asked = {"exclude": ["b"], "rename": {"c": "a_2"}}
        error = error_of(ValueError, converted, data, "primitiv", **asked)
        file, _ = converted(data, "primitiv", **dict(asked, **error.needed))
        self.assertEqual(sorted(file), ["a", "a_", "a_2"])
        asked["rename"] = lambda name: name.replace("c", "a_")
        error = error_of(ValueError, converted, data, "primitiv", **asked)
        file, _ = converted(data, "primitiv", **dict(asked, **error.needed))
        self.assertEqual(sorted(file), ["a", "a_", "a__2"])

    def test_what_helps_casts_to_no_integers_that_do_not_fit(self):
        data = dumps({"i": tensor([1 << 40], "int64"), "w": [0.5]}, format="safetensors")
        asked = {"cast": {"int64": "int32"}}
        for name in "mag", "ztensor":
            options = dict(asked, metadata="text", meta={"x": [1]})
            if name == "mag":
                options = asked
            error = error_of(ValueError, converted, data, name, **options)
            file, _ = converted(data, name, **dict(options, **error.needed))
            self.assertEqual(file["i"].tolist(), [1 << 40])

    def test_every_golden_to_every_format_and_back(self):
        for row in ALL_FILES:
            for new in WRITABLE:
                if chosen(row.format, new):
                    names = [name for name, item in load(row.data).items() if fits(new, item)]
                    with self.subTest(file=row.title, to=new, only=names):
                        self.check_there_and_back(row.format, row.data, new, names)

    def check_there_and_back(self, old, data, new, names):
        file = load(data)
        there, summary = converted(file, new, only=names, drop=True)
        renamed = dict(summary.renamed)
        wanted = content({renamed.get(name, name): file[name] for name in names})
        self.assertEqual(content(there), wanted)
        self.assertEqual((sorted(summary.copied), summary.cast), (sorted(names), []))
        self.assertEqual(summary.nbytes, there.nbytes)
        if "primitiv" in (old, new) or old not in WRITABLE:
            return
        options = {}
        if file.fmt.NAME != old:
            options["version"] = row_of(old).newest
        back, _ = converted(there, old, drop=True, **options)
        self.assertEqual(content(back), wanted)

    @about("mag")
    def test_a_file_behind_the_first_one_is_not_dropped_in_silence(self):
        """Of primitiv also what is no file: verify() fails there, too; elsewhere that is a note."""
        files = [row.data for row in FILES if load(row.data) and row.title != "v019_basic.bpk"
                 and row.format in ("primitiv", "mag", "burnpack", "burnrecord")]
        files.append(dumps({}, format="primitiv", kind="optimizer", metadata={"a": 1}))
        for data in files:
            self.check_behind(data, data, True)
            self.check_behind(data, golden("v021_tiny.bpk"), True)
            self.check_behind(data, b"x", load(data).format == "primitiv")

    def check_behind(self, data, behind, is_told):
        with self.subTest(file=data[:20], behind=behind[:9]):
            _, summary = converted(data + behind, "burnpack", drop=True)
            words = "the bytes from %d (%s behind the end, perhaps another file)" % (
                len(data), tensorfmt.plural(len(behind), "byte"))
            self.assertEqual(words in summary.dropped, is_told)
            if is_told:
                self.refuses(["behind the end, perhaps another file: drop=True"], converted,
                             data + behind, "burnpack")

    @about()
    def test_metadata_changes_only_if_asked(self):
        """In Python; commands.txt has what a command says of it."""
        metadata = {"a": -1, "b": 0.5, "c": NAN}
        data = dumps({}, format="mag", metadata=metadata)
        file, _ = converted(data, "mag", meta={"a": 5, "b": None})
        self.assertSame(file.metadata, {"a": 5, "c": NAN})
        texts = {"a": "-1", "b": "0.5", "c": "nan"}
        for kind, wanted, as_text in (
                ("safetensors", texts, ["a", "b", "c"]),
                ("burnpack", texts, ["a", "b", "c"]),
                ("mag", metadata, [])):  # they fit as they are
            file, summary = converted(data, kind, metadata="text")
            self.assertSame(file.metadata, wanted)
            self.assertSame((summary.as_text, summary.dropped), (as_text, []))
        self.refuses(["metadata is None or 'text'"], converted, data, "mag", metadata="json")
        error_of(TypeError, converted, data, "mag", colour=1)

    @about("mag", "primitiv", "ztensor")
    def test_metadata_that_become_another_number_are_told(self):
        data = dumps({}, format="ztensor", version=2,
                     metadata={"lr": 0.1, "on": True, "half": 0.5, "n": 3})
        one, lr = ("on", True, 1), ("lr", 0.1, 0.10000000149011612)
        for kind, options, wanted in (
                ("ztensor", {"version": 2}, []),
                ("mag", {}, [one]),
                ("primitiv", {"kind": "optimizer"}, [lr, one])):
            file, summary = converted(data, kind, **options)
            self.assertSame(sorted(summary.changed), wanted)
            for key, _, stored in wanted:
                self.assertSame(file.metadata[key], stored)
        self.assertIn("\nmetadata 'lr': 0.1 -> 0.10000000149011612\n", str(summary))

    @about("ztensor", "burnpack", "safetensors")
    def test_custom_attributes_are_the_users(self):
        data = saved(tensor([1.0], custom={"unit": "m", "step": 2}), checksum="crc32c")
        _, summary = converted(data, "burnpack", drop=True)
        self.assertEqual(summary.left_behind,
                         ["checksum", "data_endianness", "encoding", "layout", "version"])
        for options in {}, {"version": 2}:
            file, summary = converted(data, "ztensor", **options)
            self.assertEqual(dict(file["w"].custom), {"unit": "m", "step": 2})
            self.assertEqual(summary.dropped, [])
            self.assertEqual(diff(data, file).differences, [])
        other = saved(tensor([1.0], custom={"unit": "cm"}))
        row, = diff(data, other).differences
        self.assertEqual(row["name"], "w")
        self.assertEqual(row["changes"], ["attribute 'step': 2 -> absent",
                                          "attribute 'unit': 'm' -> 'cm'"])

    @about("safetensors", "mag", "burnpack")
    def test_notes_tell_what_one_may_not_think_of(self):
        for row in NOTES:
            metadata = {"format": "pt"} if row.says else {}
            data = saved(F32, "safetensors", metadata=metadata)
            _, summary = converted(data, row.into, **row.options)
            self.assertEqual(len(summary.notes), len(row.note[:1]), row)
            self.assertIn(row.note, "".join(summary.notes))
            self.assertEqual(json.loads(summary.to_json())["notes"], summary.notes)
            for note in summary.notes:
                self.assertIn("note: " + note, list(summary))

    @about("ztensor2", "burnpack")
    def test_a_note_tells_of_bytes_that_are_written_again(self):
        tied = dumps({"a": [1.0], "b": [1.0], "c": [2.0], "d": [1.0]}, format="ztensor", version=2)
        _, summary = converted(tied, "burnpack")
        self.assertEqual(summary.notes, ["'b' shares its bytes with 'a', and 1 other so: 16 bytes "
                                         "are written again"])
        self.assertEqual(converted(tied, "ztensor")[1].notes, [])  # of version 2: once again

    @documented
    def test_the_example_of_a_watch(self):
        bar = mock.Mock(n=0)
        text = cleandoc(tensorfmt.convert.__doc__)
        text = dedent(re.search(r"(?s)    bar = .*?(?=\n\n>>>)", text).group())
        names = {"tqdm": mock.Mock(tqdm=mock.Mock(return_value=bar))}
        exec(text, names)
        names["watch"]("writing", 3, 8)
        self.assertEqual((bar.total, bar.update.call_args), (8, mock.call(3)))

    def test_results_can_be_iterated(self):
        data = saved(F32)
        report = verify(data)
        self.assertEqual((list(report), report.ok), (report.rows, True))
        self.assertFalse(verify(data[:-1]).ok)
        found = diff(data, dumps({}, format="ztensor"))
        self.assertEqual(list(found), found.differences)
        _, summary = converted(data, "burnpack")
        self.assertEqual("\n".join(summary), repr(summary))

    @about("safetensors", "ztensor")
    def test_which_library_wrote_it_is_no_content_for_another_format(self):
        torch = saved(F32, "safetensors", metadata={"format": "pt"})
        for file, count in (saved(F32), 0), (saved(F32, "safetensors"), 1):
            self.assertEqual(len(diff(torch, file).differences), count)

    @about("ztensor")
    def test_attributes_called_like_options_are_refused(self):
        """Of another generation they are the user's, and no encoding, checksum or layout."""
        for key in "layout", "encoding", "checksum", "data_endianness":
            data = saved(tensor([1.0], custom={key: "text"}), version=2)
            self.refuses([key, "cannot be called so"], converted, data, "ztensor", version="0.1")
            there, summary = converted(data, "ztensor", version="0.1", drop=True)
            self.assertEqual((there["w"].custom, len(summary.dropped)), ({}, 1))
        data = saved(tensor([1.0], custom={"": 1, "version": 3}))
        self.refuses(["''", "drop=True"], converted, data, "ztensor", version=2)
        there, _ = converted(data, "ztensor", version=2, drop=True)
        self.assertEqual(there["w"].custom, {"version": 3})
        self.refuses(["'version'", "drop=True"], converted, data, "burnpack")

    @about("tensorbuffers")
    def test_operations_name_their_tensors_by_new_ids(self):
        step = {"id": 1, "operation": 2, "output": 7, "input_operations": [9]}
        made = {"w": tensor([1.0], "float32", custom={"id": 7}), "v": F32}
        data = dumps(made, format="tensorbuffers", operations=[step])
        renamed, _ = converted(data, "tensorbuffers", rename={"w": "new"})
        for file, name in (load(data), "w"), (renamed, "new"):
            wanted = dict(step, output=file[name].attrs["id"])
            self.assertEqual(file.attrs["operations"], [wanted])
        file = load(dumps({"v": F32}, format="tensorbuffers", operations=[{"id": 1}]))
        self.assertEqual(file.attrs["operations"][0]["output"], 0)


NAMES = ["model.a", "model.b", "m.x.m", "head"]
RENAMED = read_table("""
    rename                                            wanted
    {"model.*": "*"}                                  a b m.x.m head
    {"*.b": "*.c", "model.*": "*.w"}                  a.w model.c m.x.m head
    {"m*": "n*", "model.a": "*"}                      * nodel.b n.x.m head
    {"m.*.m": "*"}                                    model.a model.b x head
    {"model.a": "model.b", "model.b": "model.a"}      model.b model.a m.x.m head
    {}                                                model.a model.b m.x.m head
""")
CHOSEN = read_table("""
    options                                           wanted
    {"exclude": "model.*"}                            m.x.m head
    {"only": "m*", "exclude": ["m.*", "model.b"]}     model.a
    {"only": []}                                      ""
    {"exclude": []}                                   model.a model.b m.x.m head
""")
# Of names with `*` or `?`, which may be in a file; one with brackets is a name first: there are
# such in models.
ODD_NAMES = ["*.bias", "a.bias", "a?", "ab", "w[0]", "w0", "z"]
ODD_CHOSEN = read_table("""
    pattern    wanted
    *.bias     *.bias a.bias
    a?         a? ab
    w[0]       w[0]
    w[[]0]     w[0]
    [a]*       a.bias a? ab
    *          *.bias a.bias a? ab w[0] w0 z
""")
ODD_RENAMED = read_table("""
    rename                             wanted
    {"*.bias": "*.b"}                  {"*.bias": "*.b", "a.bias": "a.b"}
    {"*.bias": "x"}                    {"*.bias": "x"}
    {"*.bias": "*x*"}                  {"*.bias": "*x*"}
    {"*.bias": "*.b", "a.bias": "q"}   {"*.bias": "*.b", "a.bias": "q"}
    {"w[0]": "v"}                      {"w[0]": "v"}
""")


def lengthened(name):
    return name.replace("*.bias", "*.b")


@about("burnpack", "safetensors")
class NamesTest(TestCase):
    """Which tensors a conversion takes, and how they are called."""

    def setUp(self):
        tensors = {name: tensor([i], "uint8") for i, name in enumerate(NAMES)}
        self.data = dumps(tensors, format="safetensors", sort=False)

    def test_names_change_only_if_asked(self):
        rows = [(row.rename, row.wanted.split()) for row in RENAMED]
        rows.append((str.upper, ["MODEL.A", "MODEL.B", "M.X.M", "HEAD"]))
        for rename, wanted in rows:
            file, summary = converted(self.data, "burnpack", rename=rename)
            self.assertEqual([file[name].tolist() for name in wanted], [[0], [1], [2], [3]])
            self.assertEqual(summary.copied, NAMES)
            changed = [(old, new) for old, new in zip(NAMES, wanted) if old != new]
            self.assertEqual(summary.renamed, changed)

    def test_only_and_exclude(self):
        for row in CHOSEN:
            _, summary = converted(self.data, "burnpack", **row.options)
            self.assertEqual(summary.copied, row.wanted.split())

    def test_what_is_no_name(self):
        for rename, word in ({"m.x*x.m": "y"}, "called 'm.x*x.m'"), ({5: "y"}, "called 5"):
            self.refuses([word], converted, self.data, "burnpack", rename=rename)
        for wrong in {"head": 5}, {"head": None}, len:
            error_of(TypeError, converted, self.data, "burnpack", rename=wrong)

    def test_what_another_format_cannot_call_so(self):
        odd = dumps({"a/b:0": F32, "plain": F32}, format="ztensor")
        self.refuses(["'a/b:0'", "escape ':'"], converted, odd, "primitiv")
        file, _ = converted(odd, "primitiv", rename={"a/b:0": "a/b\\:0"})
        self.assertEqual(sorted(file), ["a/b\\:0", "plain"])
        self.refuses(["rename='OLD=NEW'"], converted, dumps({"": F32}, format="ztensor"), "mag")

    def test_a_name_that_looks_like_a_pattern_does_not_hide_it(self):
        data = dumps(dict.fromkeys(ODD_NAMES, [1.0]), format="burnpack")
        for row in ODD_CHOSEN:
            with self.subTest(pattern=row.pattern):
                wanted = sorted(row.wanted.split())
                there, _ = converted(data, "ztensor", only=row.pattern)
                self.assertEqual(sorted(there), wanted)
                left, _ = converted(data, "ztensor", exclude=row.pattern)
                self.assertEqual(sorted(left), sorted(set(ODD_NAMES).difference(wanted)))
                picked = tensorfmt.pick(load(data), row.pattern, "")
                self.assertEqual(sorted([title for title, _, _ in picked]), wanted)
        self.refuses(["no tensor"], converted, data, "ztensor", only="w[0")
        for rename, wanted in ODD_RENAMED + [(lengthened, {"*.bias": "*.b"})]:
            _, summary = converted(data, "ztensor", rename=rename)
            self.assertEqual(dict(summary.renamed), wanted)


# As many values as are looked at at a time.
EDGE = [-0.0] * tensorfmt.PART
Lossy = namedtuple("Lossy", "values old new exact infinite nan")
LOSSY = [Lossy(*row) for row in read_table("""
    values                       old        new              exact    infinite    nan
    [1000.0, 1e999, 1.0]         float32    float8_e4m3fn    False    0           2
    [3.4e+38, 1.0]               float32    bfloat16         False    1           0
    [1.0000000009313226]         float64    float32          False    0           0
    [9223372036854775807, 0, 1]  int64      float32          False    0           0
    [-1]                         int64      int32            True     0           0
    [1.0]                        float16    float64          True     0           0
""")] + [
    Lossy([1.5, INF, NAN], "float32", "float16", True, 0, 0),
    Lossy([-1e6] * 5000 + [0.1], "float32", "float16", False, 5000, 0),
    Lossy(EDGE, "float32", "bfloat16", True, 0, 0),
    Lossy(EDGE + [0.1], "float32", "bfloat16", False, 0, 0),
]
EXACT_BITS = [0x3F800000, 0x7FC00000, 0xFF800000, 0x7F7F0000]  # as bfloat16
OTHER_BITS = [1, 0x3F800100, 0x7F800001, 0x7F810000, 0xFF810000]  # also of NaN


@about()
class LossTest(TestCase):
    """What a cast loses is told; what does not fit is refused."""

    def test_casts_and_what_they_lose(self):
        for row in LOSSY:
            item = tensor(row.values, row.old)
            with self.subTest(old=row.old, new=row.new, values=row.values[:3]):
                file, summary = converted(saved(item, "safetensors"), "safetensors",
                                          cast={row.old: row.new})
                self.assertEqual(file["w"].tobytes(), item.astype(row.new).tobytes())
                self.assertEqual(summary.cast, [("w", row.old, row.new, row.exact)])
                lost = []
                if row.infinite or row.nan:
                    lost.append(("w", row.infinite, row.nan))
                self.assertEqual(summary.lost, lost)

    def test_bits_that_a_bfloat16_has(self):
        for bits in EXACT_BITS + OTHER_BITS:
            item = tensor(pack("<2I", 0, bits), "float32")
            meter = tensorfmt.Meter(None, "casting", 8)
            is_exact, _, _ = tensorfmt.find_losses(item, "float32", "bfloat16", meter)
            self.assertEqual(is_exact, bits in EXACT_BITS)

    def test_all_is_looked_at_before_the_first_byte(self):
        for values, old, new in (EDGE + [300.0], "float32", "int8"), ([-1], "int64", "uint8"):
            stream = io.BytesIO()
            words = "'w': cast to %s: %s does not fit" % (new, values[-1])
            self.refuses([words], convert, saved(tensor(values, old)), stream,
                         format="ztensor", cast={old: new})
            self.assertEqual(stream.getvalue(), b"")


class UnknownTest(FolderCase):
    """Types and layouts that are not known here are kept, as long as no byte would be lost."""

    @about("safetensors")
    def test_types_without_a_place_here(self):
        data = safetensors_file({"w": {"dtype": "F4", "shape": [16]}, "v": {
            "shape": [1], "dtype": "C64", "data_offsets": [8, 16]}}, bytes(range(16)))
        self.assertEqual(dumps(load(data), format="safetensors", sort=False)[-16:], data[-16:])
        for name, code, shape in ("w", "F4", (16,)), ("v", "C64", (1,)):
            loaded = load(data)[name]
            item = tensor(loaded)
            self.assertEqual((item.shape, item.dtype), (shape, None))
            self.assertEqual((item.attrs, bytes(item.raw)), ({"st_dtype": code}, bytes(loaded.raw)))
            self.assertIn(" '%s' %s of" % (code, list(shape)), repr(item))
            for kind in set(FORMATS) - {"safetensors"}:
                self.refuses(["numpy.frombuffer(t.raw, ", "exclude='NAME'"], converted, data, kind,
                             only=name, cast="float32")
            self.refuses(["bytes, which safetensors can hold"], saved, item, "mag")
        empty = load(dumps({}, format="safetensors", empty_metadata=True))
        self.assertSame(empty.attrs, {"empty_metadata": True})

    @about("safetensors")
    def test_types_that_are_called_as_ours_are(self):
        """What the file calls it stands in quotes, so that nobody takes it for a dtype."""
        path = self.path
        for code in DTYPES + ("qfloat", "F4", "C64"):
            count, advice = 16, "t.raw"
            if code == "C64":
                count, advice = 1, 'numpy.frombuffer(t.raw, "complex64")'
            write_file(path, safetensors_file({"w": {"dtype": code, "shape": [count]}}))
            with load(path, format="safetensors") as file:
                item = file["w"]
                self.assertEqual((item.dtype, item.attrs), (None, {"st_dtype": code}))
                self.assertIn(" %r [%d]" % (code, count), repr(item))
                self.assertIn("dtype %r has no values here, only bytes" % code,
                              error_of(Unsupported, item.tolist).what)
            _, listed, _ = run("ls", path)
            self.assertRegex(listed, "\n +8 +[0-9]+ +%r +\\[%d\\] +w\n" % (code, count))
            number, out, err = run("get", path, "w")
            self.assertEqual((number, out), (1, ""))
            self.assertIn(advice, err)

    @about("ztensor")
    def test_no_offset_is_kept_whose_bytes_are_not(self):
        """An unknown layout may place more blobs, at any depth; in a dense one it is a word."""
        for custom in literals("""
                {"x": {"offset": 72, "size": 8}}
                {"x": {"y": {"offset": 72, "size": 8}}}
                {"x": [{"offset": 72, "size": 8}]}
                {"x": {5: {"offset": 72, "size": 8}}}
                {"x": [[], [0, [{"offset": 72, "size": 8}]]]}
                {"x": {"y": [{"z": {"offset": 72, "size": 8}}]}}
                {"x": {"offsets": [72, 80]}}
                {"x": {"data_offset": 72}}
                {"x": {"Offset": 72}}
                {"x_offset": 72}
                {"x": [{"offset": 0, "size": 8}]}
        """):
            data = tiled(**custom)
            self.refuses(["tensor 'a'", "'tiled'", "bytes that would be lost"], dumps, load(data),
                         format="ztensor")
            self.assertTrue(diff(data, data[:72] + b"\xff" + data[73:]))
        for custom in literals("""
                {"x": {"size": 8}}
                {"x": {"offset": "none"}}
                {"x": [{"offset": None}]}
                {"x": {"offset": 0.5}}
                {"x": {72: 8}}
                {}
        """):
            again = load(dumps(load(tiled(**custom)), format="ztensor"))["a"]
            self.assertSame([again.custom, again.attrs["layout"]], [custom, "tiled"])

    @about("ztensor")
    def test_in_a_dense_tensor_an_offset_is_a_word_of_the_user(self):
        place = {"offset": 72, "size": 8}
        data = ztensor_file(layout="dense", x=place)
        self.assertSame(load(dumps(load(data), format="ztensor"))["a"].custom, {"x": place})
        plain, raw = [ztensor_file(dtype="new", x=place, **more)
                      for more in ({}, {"encoding": "raw"})]
        self.assertFalse(diff(plain, raw))


# -- [10] bad files ------------------------------------------------------------------------------
#
# For each format: what makes a file of it, tables of what is wrong, and a function that returns
# rows (name, bytes, error). BAD_FILES has the functions. Which field and offset each error names
# stands in .ci/accepted/errors.txt.

BIG = b"\xc2\x59\x07\x08" + b"\xff" * 1800  # a CBOR integer of 4,335 digits: never printed


def uint16s(*numbers):
    return pack("<%dH" % len(numbers), *numbers)


def uint32s(*numbers):
    return pack("<%dI" % len(numbers), *numbers)


def int64s(*numbers):
    return pack("<%dq" % len(numbers), *numbers)


def patched(data, *changes):
    """Return bytes with some replaced: changes are (offset, hex)."""
    out = bytearray(data)
    for offset, text in changes:
        part = unhex(text)
        out[offset:offset + len(part)] = part
    return bytes(out)


def replaced(text, *changes):
    """Return bytes in which the first of each old part is a new one: changes are (old, new)."""
    for old, new in changes:
        if old not in text:
            raise ValueError("no %r" % old)
        text = text.replace(old, new, 1)
    return text


def tree_with(tree, changes):
    """Return maps in maps with other values: changes are {keys with dots between them: value}."""
    tree = deepcopy(tree)
    for path, value in changes.items():
        keys = path.split(".")
        inner = tree
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
    return tree


class Original:
    """A good file, of which copies with a fault are made.

    Its fields are called as `explain` calls them. Where a field of a FlatBuffer leads to another
    place, NAME is the field, and "-> NAME" is what stands there.
    """

    def __init__(self, data, seal=None):
        self.data = data
        self.seal = seal  # makes the checksum right again
        self.places = {}
        for field in explain(data):
            name = field.name
            if name in self.places:
                name = "-> " + name
            self.places.setdefault(name, (field.offset, field.nbytes))

    def damaged(self, changes):
        """Return the file with changes to its fields.

        They are {field: a number that fills it, or bytes at its start, or numbers there: 16 bits
        each in a vtable, 32 bits elsewhere}.
        """
        out = bytearray(self.data)
        for name, value in changes.items():
            offset, nbytes = self.places[name]
            if isinstance(value, int):
                value = value.to_bytes(nbytes, "little")
            elif isinstance(value, list):
                value = uint16s(*value) if name.endswith("vtable") else uint32s(*value)
            out[offset:offset + len(value)] = value
        if self.seal:
            self.seal(out, self.places["padding"][0])
        return bytes(out)

    def rows(self, title, error, table):
        """Return rows (name, bytes, error) of a table {name: changes}."""
        return titled(title, files_of(self.damaged, table), error)


def files_of(make, table):
    """Return (name, file) of a table {name: what the function takes}."""
    return [(name, make(value)) for name, value in table.items()]


def files_with(make, table):
    """Return (name, file) of a table {name: {option: value}} of the function's options."""
    return [(name, make(**options)) for name, options in table.items()]


def files_replaced(make, table):
    """Return (name, file) of a table of (name, old bytes, new bytes)."""
    return [(name, make((old, new))) for name, old, new in table]


def titled(title, files, error=FormatError):
    """Return rows (name, bytes, error)."""
    return [(title + name, data, error) for name, data in files]


# Files of no format


def files_of_no_format():
    return [
        ("nothing", b"", FormatError),
        ("no tensor file", b"PK\3\4 and so on", FormatError),
        ("LFS", b"version https://git-lfs.github.com/spec/v1", FormatError),
        ("gzip", b"\x1f\x8b" + bytes(9), Unsupported),
    ]


# .mag, by the specification

MAG_FAULTS = {  # name, fields of seed_basic.mag; the checksum agrees
    "version 0": {"version": 0},
    "key not UTF-8": {"tensors[0].key": b"\xff"},
    "two of a name": {"tensors[1].key": b"x"},
    "dimension -2": {"tensors[0].shape": int64s(-2)},
    "behind the end of the shape": {"tensors[0].shape": int64s(3, 0, 5)},
    "length": {"tensors[0].data_length": 8},
    "data in the index": {"tensors[0].data_offset": 24},
    "data past the end": {"tensors[1].data_offset": 373},
}
MAG_FAULTS_OF_THE_HEADER = dict(read_table("""
    name              fields
    checksum          {'checksum': 0}
    2**32-1 tensors   {'num_tensors': 0xffffffff}
    2**32-1 metadata  {'num_meta_kv': 0xffffffff}
"""))  # the same; the checksum is that of the good file, or 0
MAG_UNSUPPORTED = dict(read_table(r"""
    name           fields
    version 301    {'version': 301}
    version 100    {'version': 100}
    version 200    {'version': 200, 'metadata[0].payload': b'\x05\0\0\0SRP!'}
    header aux     {'aux': 1}
    metadata type  {'metadata[0].type': 3}
    dtype 4        {'tensors[0].dtype': 4}
"""))  # the same; the checksum agrees


def seal_mag(data, end):
    """Make the checksum of the index right, which ends there; it counts as 0 itself."""
    data[8:12] = bytes(4)
    data[8:12] = uint32s(crc32(data[:end]))


def mag_with(**changes):
    """Return seed_basic.mag with other fields; the checksum agrees."""
    return Original(golden("seed_basic.mag"), seal_mag).damaged(changes)


def mag_of_records(*rows):
    """Return a .mag file of rows (key, shape, dtype, length, offset)."""
    records = b""
    for key, shape, dtype, nbytes, offset in rows:
        fill = (0,) * (6 - len(shape))
        records += uint32s(len(key)) + key
        records += pack("<6qBQQI", *(shape + fill), dtype, nbytes, offset, 0)
    data = bytearray(b"MAG!" + uint32s(1, 0, len(rows), 0, 0) + records)
    seal_mag(data, len(data))
    return bytes(data) + bytes(256)


def mag_of_metadata_twice():
    good = dumps({}, format="mag", metadata=Map([("a", 1), ("b", 2)]))
    data = bytearray(Original(good).damaged({"metadata[1].key": b"a"}))
    seal_mag(data, len(data))
    return bytes(data)


def mag_files():
    good = golden("seed_basic.mag")
    rows = [
        ("mag: header cut", good[:23], FormatError),
        ("mag: metadata twice", mag_of_metadata_twice(), FormatError),
        ("mag: MAG&", b"MAG&" + good[4:], Unsupported),
    ]
    rows += Original(good).rows("mag: ", FormatError, MAG_FAULTS_OF_THE_HEADER)
    rows += Original(good, seal_mag).rows("mag: ", FormatError, MAG_FAULTS)
    rows += Original(good, seal_mag).rows("mag: ", Unsupported, MAG_UNSUPPORTED)
    return rows


# .mag of magnetron 0.1.2

MAGNETRON_FAULTS = {  # name, fields of m012_mixed.mag; the checksum agrees; rank 1, float32: 256
    "numel": {"tensors[0].numel": 4},
    "upper half of aux": {"tensors[0].aux": 0x10000 + 256},
    "dimension 2**63": {"tensors[0].numel": 1 << 63, "tensors[0].shape": 1 << 63},
}
MAGNETRON_UNSUPPORTED = dict(read_table("""
    name      fields
    relative  {'tensors[0].numel': 64, 'tensors[0].data_offset': 0, 'tensors[0].shape': 64}
    dtype 9   {'tensors[0].aux': 265}
"""))


def seal_magnetron(data, end):
    data[8:12] = uint32s(crc32c(data[12:end]))


def magnetron_of_rank(rank):
    """Return m012_mixed.mag with one tensor of one element instead of what it has."""
    original = Original(golden("m012_mixed.mag"))
    one_tensor = original.damaged({"num_tensors": 1, "num_meta_kv": 0})
    data = bytearray(one_tensor)
    end = original.places["padding"][0]
    key = b"k" * (85 - 8 * rank)  # up to the same end
    dimensions = (1,) * rank
    data[24:end] = pack("<IQQ%dQI" % rank, rank << 8, 1, 192, *dimensions, len(key)) + key
    seal_magnetron(data, end)
    return bytes(data)


def magnetron_files():
    original = Original(golden("m012_mixed.mag"), seal_magnetron)
    rows = [("mag 0.1.2: rank %d" % rank, magnetron_of_rank(rank), FormatError) for rank in (0, 7)]
    rows += original.rows("mag 0.1.2: ", FormatError, MAGNETRON_FAULTS)
    rows += original.rows("mag 0.1.2: ", Unsupported, MAGNETRON_UNSUPPORTED)
    return rows


# .mag, snapshot 300

MAG300_HEADERS = dict(read_table("""
    name           header
    meta_offset    {'meta_offset': 43}
    meta_span      {'meta_span': 0xffffffffffffffff}
    blob_offset    {'blob_offset': 4095}
    blob_offset 2  {'blob_offset': 0}
    blob_span      {'blob_span': 8201}
"""))
MAG300_VALUES = dict(read_table("""
    name           values
    timestamp      {'timestamp': 5}
    manifest true  {'manifest_ver': True}
    entry          {'tensor_map.w': None}
    shape          {'tensor_map.w.shape': [2, True]}
    dtype_id       {'tensor_map.w.dtype_id': -1}
    nbytes         {'tensor_map.w.nbytes': 25}
    offset         {'tensor_map.b.offset': 4097}
    overlap        {'tensor_map.b.offset': 0}
    a gap          {'tensor_map.b.offset': 8192}
    behind         {'tensor_map.e.offset': 8201}
"""))
MAG300_TEXTS = read_table(r"""
    name         old                new
    text         b'}}}'             b'}}}!'
    not UTF-8    b'demo'            b'dem\xff'
    BOM          b'{'               b'\xef\xbb\xbf{'
    key twice    b'"lr"'            b'"name"'
    lacks        b'"timestamp"'     b'"time"'
    entry lacks  b'"shape":[2,3],'  b''
    a surrogate  b'"w"'             b'"\\ud800"'
""")  # name, a part of the JSON, what stands there instead


def mag300_text():
    """Return the JSON of m300_mixed.mag."""
    text = golden("m300_mixed.mag")[44:]
    return text[:text.index(b"}}}") + 3]


def mag300_file(text, **header):
    """Return m300_mixed.mag with another JSON; `header`: aux, meta_offset, ..."""
    data = golden("m300_mixed.mag")[4096:]
    blob_offset = tensorfmt.round_up(44 + len(text), 4096)
    fields = {"aux": 0, "meta_offset": 44, "meta_span": len(text), "blob_offset": blob_offset,
              "blob_span": len(data)}
    fields.update(header)
    head = pack("<4sIIQQQQ", b"MAG!", 300, *fields.values())
    return head + text + bytes(blob_offset - 44 - len(text)) + data


def mag300_replaced(*changes, **header):
    return mag300_file(replaced(mag300_text(), *changes), **header)


def mag300_with(changes):
    tree = tree_with(json.loads(mag300_text().decode()), changes)
    return mag300_file(tensorfmt.json_dumps(tree))


def mag300_entry(name, **facts):
    """Return a snapshot whose entry of a tensor says something else."""
    return mag300_with({"tensor_map.%s.%s" % (name, key): facts[key] for key in facts})


def mag300_with_slack():
    """Return a snapshot whose last tensor has no bytes; the data go on behind it."""
    tree = json.loads(mag300_text().decode())
    del tree["tensor_map"]["e"]
    tree["tensor_map"]["n"].update(shape=[0], offset=4102, nbytes=0)
    return mag300_file(tensorfmt.json_dumps(tree))


def mag300_files():
    files = [
        ("cut", mag300_replaced()[:30]),
        ("array", mag300_file(b"[" + mag300_text() + b"]")),
        ("slack", mag300_with_slack()),
        ("deep", mag300_replaced((b"[1,2", b"[" * 126 + b"1,2"))),
    ]
    files += files_with(mag300_replaced, MAG300_HEADERS)
    files += files_of(mag300_with, MAG300_VALUES)
    files += files_replaced(mag300_replaced, MAG300_TEXTS)
    rows = titled("mag 300: ", files)
    return rows + [
        ("mag 300: aux", mag300_replaced(aux=2), Unsupported),
        ("mag 300: manifest 2", mag300_with({"manifest_ver": 2}), Unsupported),
    ]


# zTensor 0.1

ZTENSOR_ENTRIES = dict(read_table("""
    name                    entry
    name a number           {'name': 5}
    offset 65               {'offset': 65}
    offset 128              {'offset': 128}
    size 20                 {'size': 20, 'shape': [5]}
    size and shape          {'shape': [5]}
    nothing behind the end  {'offset': 1048576, 'size': 0, 'shape': [0]}
    shape wraps             {'size': 0, 'shape': [0x100000000, 0x100000000]}
    null                    {'layout': None}
    dimension -1            {'shape': [-1]}
    layout a number         {'layout': 5}
    byte order              {'data_endianness': 'Big'}
    zstd too small          {'encoding': 'zstd', 'shape': [131073]}
"""))
ZTENSOR_INDEXES = dict(read_table(r"""
    name             index
    left over        b'\x80\x80'
    a map as root    b'\xa0'
    entry no map     b'\x81\x05'
    ends inside      b'\x81\xbfdname'
    key twice        b'\x81\xa2an\0an\0'
    dimension 2**64  b'\x81\xa1eshape\x81\xc2I\x01\0\0\0\0\0\0\0\0'
"""))


def ztensor_file(*entries, **changes):
    """Return a zTensor file of 16 bytes of data; changes are to the one usual entry."""
    usual = {"name": "a", "offset": 64, "size": 16, "dtype": "float32", "shape": [4],
             "encoding": "raw"}
    if not entries:
        entries = [dict(usual, **changes)]
    return ztensor_of_index(cbor_dumps(list(entries)))


def ztensor_of_index(index, nbytes=None, data=b"\0\0\x80\x3f" * 4):
    """Return a zTensor file of CBOR bytes; `nbytes` is what it says of their size."""
    if nbytes is None:
        nbytes = len(index)
    return b"ZTEN0001" + bytes(56) + data + index + pack("<Q", nbytes)


def ztensor_files():
    files = [
        ("not of digits", b"ZTEN000\xb1" + bytes(20)),
        ("index size", ztensor_of_index(b"\x80", nbytes=90)),
    ]
    files += files_of(ztensor_of_index, ZTENSOR_INDEXES)
    files += files_with(ztensor_file, ZTENSOR_ENTRIES)
    rows = titled("zt: ", files)
    return rows + [
        ("zt: 1.x", b"ZTEN1000" + bytes(20), Unsupported),
        ("zt: another", b"ZTEN0002" + bytes(20), Unsupported),
        ("zt: 9876", b"ZTEN9876" + bytes(20), Unsupported),
    ]


# zTensor 2

PART2 = {"blob": [4096, 8], "dtype": "f32", "digest": "xxh3:4de8d78f7134f4b7"}
OBJECT2 = {"parts": {"data": PART2}, "shape": [2], "layout": "dense"}
MANIFEST = {"objects": {"w": OBJECT2}}
SHARD = {"size": 48, "digest": "a:0"}
ZTENSOR2_FOOTERS = dict(read_table(r"""
    name    footer
    magic   {'magic': b'\0\0\0\0\0\0\0\0'}
    start   {'start': 8193}
    nbytes  {'nbytes': 9999}
    hash    {'hash': 1}
"""))
ZTENSOR2_VALUES = dict(read_table("""
    name     values
    shape    {'objects.w.shape': [2, 0xffffffffffffffff]}
    dtype    {'objects.w.parts.data.dtype': 'bool'}
    size     {'objects.w.parts.data.blob': [4096, 7]}
    place    {'objects.w.parts.data.blob': [4097, 8]}
    overlap  {'objects.w.parts.data.blob': [4096, 8192]}
    digest   {'objects.w.parts.data.digest': 'xxh3:Gde8d78f7134f4b7'}
"""))
ZTENSOR2_NAMES = {  # the same
    "name": {"objects": {"": OBJECT2}},
    "roles": {"objects.w.parts": {"aata": PART2}},
    "a role": {"objects.w.parts": {5: PART2}},
    "shard size": {"shards": {"s": dict(SHARD, size=47)}},
    "shard digest": {"shards": {"s": dict(SHARD, digest="a:G")}},
    "shard name": {"shards": {"/": SHARD}},
}
ZTENSOR2_CODES = read_table(r"""
    name              old            new
    key twice         b'\xa1aw\xa3'  b'\xa2aw\xa0aw\xa3'
    unsorted          b'\xa1g'       b'\xa2h12345678\x05g'
    a tag             b'\x81\x02'    b'\x81\xc1\x02'
    indefinite        b'\x81\x02'    b'\x9f\x02\xff'
    a long head       b'\x82\x19'    b'\x98\x02\x19'
    undefined         b'\x81\x02'    b'\x81\xf7'
    a simple          b'\x81\x02'    b'\x81\xe0'
    a long number     b'\x81\x02'    b'\x81\x18\x02'
    a long float      b'\x81\x02'    b'\x81\xfa?\x80\0\0'
    a NaN of its own  b'\x81\x02'    b'\x81\xf9~\x01'
""")  # name, bytes of the manifest, what stands there instead: 81 02 is the shape [2]


def canonical_cbor(value):
    return cbor_dumps(value, sort="bytes")


def ztensor2_file(text, **footer):
    """Return a file of zTensor 2 of this manifest, with a blob float32 [2] at 4096."""
    magic = b"\x89ZT2\r\n\x1a\n"
    fields = {"start": 8192, "nbytes": len(text), "hash": tensorfmt.xxh3_64([text]),
              "version": 2, "reserved": 0, "magic": magic}
    fields.update(footer)
    blobs = magic + bytes(4088) + pack("<2f", 1, 2) + bytes(4088)
    return blobs + text + pack("<QQQII8s", *fields.values())


def ztensor2_with(changes):
    """Return a file of zTensor 2 with other values in the manifest."""
    return ztensor2_file(canonical_cbor(tree_with(MANIFEST, changes)))


def ztensor2_replaced(*changes, **footer):
    """Return a file of zTensor 2 with (old, new) bytes in its manifest."""
    return ztensor2_file(replaced(canonical_cbor(MANIFEST), *changes), **footer)


def ztensor2_of_objects(objects, data=(), **top):
    """Return a file of zTensor 2; its i-th blob is at 4096 * (i + 1), the manifest behind all."""
    magic = b"\x89ZT2\r\n\x1a\n"
    text = canonical_cbor(dict(top, objects=objects))
    blobs = b""
    for blob in (magic,) + data:
        blobs += blob + bytes(-len(blob) % 4096)
    return blobs + text + pack("<QQQII8s", len(blobs), len(text),
                               tensorfmt.xxh3_64([text]), 2, 0, magic)


def part2(dtype, at, nbytes, **more):
    """Return a part whose bytes are in the blob of that number."""
    return dict(more, dtype=dtype, blob=[4096 * at, nbytes])


def dense2(dtype, at, nbytes, *shape, **more):
    """Return a dense object of one part."""
    parts = {"data": part2(dtype, at, nbytes, **more)}
    return {"shape": list(shape), "layout": "dense", "parts": parts}


def parts2():
    """Return blobs at 4096, 8192 ... and what lies there: a digest, a csr, a coo tensor."""
    small = pack("<2f", 1, 2)
    blobs = (
        small,
        b"\0\1\2\1\0",
        bytes(8191) + b"\x1f",  # it goes on in the place of the next
        pack("<3Q", 0, 1, 2),
        pack("<4I", 0, 1, 2, 1),
        pack("<2Q", 1, 4),
        b"\x21\x03",
    )
    digest = "sha256:" + sha256(small).hexdigest()
    csr = {
        "indptr": part2("u64", 5, 24),
        "indices": part2("u64", 7, 16),
        "values": part2("f32", 1, 8),
    }
    coo = {"coords": part2("u32", 6, 16), "values": part2("f32", 1, 8)}
    return blobs, digest, csr, coo


DENSE_OBJECTS = read_table("""
    name     dtype  at  nbytes  shape    more
    f4       u8     8   2       [3]      {'type': 'f4_e2m1'}
    f4 even  u8     3   8192    [16384]  {'type': 'f4_e2m1'}
    bool     u8     2   2       [2]      {'type': 'bool'}
    e        i16    1   0       [3, 0]   {}
    complex  f32    1   8       []       {'type': 'complex64'}
    c128     f64    7   16      [1]      {'type': 'complex128'}
    f8       u8     1   8       [8]      {'type': 'f8_e4m3fn'}
    odd      u8     1   8       [1]      {'type': 'ex.type'}
    coded    f32    3   8192    [9]      {'encoding': 'ex/1', 'decoded_length': 36}
    far      f32    3   40      [10]     {'shard': 'x-1'}
    md5      f32    1   8       [2]      {'digest': 'md5:0f'}
    more     f32    1   8       [2]      {'u': 1}
""")


def object_of(row):
    """Return a dense object of a row."""
    return dense2(row.dtype, row.at, row.nbytes, *row.shape, **row.more)


def ztensor2_of_all_kinds():
    """Return a file of zTensor 2 with all that it may hold."""
    blobs, digest, csr, coo = parts2()
    xxh3 = part2("u8", 1, 8, digest=PART2["digest"])
    objects = {row.name: object_of(row) for row in DENSE_OBJECTS}
    objects["more"]["t"] = 5
    objects["a"] = dict(dense2("f32", 1, 8, 2, digest=digest), attributes={"k": [1, {"x": None}]})
    for name, shape, layout, parts in (
            ("csr", [2, 9], "zt.sparse_csr/1", csr),
            ("coo", [4, 3], "zt.sparse_coo/1", coo),
            ("lay", [], "ex.y/1", dict(coo, z=xxh3))):
        objects[name] = {"shape": shape, "layout": layout, "parts": parts}
    shards = {"x-1": {"size": 12368, "digest": digest, "k": 1}}
    return ztensor2_of_objects(objects, blobs, shards=shards, attributes={"m": 1}, zz=[])


def ztensor2_files():
    deep = ztensor2_replaced((b"\xa1g", b"\xa2ax" + b"\x81" * 33 + b"g"))
    files = [("cut", ztensor2_with({})[:47]), ("deep", deep)]
    files += files_of(ztensor2_with, ZTENSOR2_NAMES)
    files += files_replaced(ztensor2_replaced, ZTENSOR2_CODES)
    files += files_of(ztensor2_with, ZTENSOR2_VALUES)
    files += files_with(ztensor2_replaced, ZTENSOR2_FOOTERS)
    rows = titled("zt 2: ", files)
    return rows + [("zt 2: version", ztensor2_replaced(version=1), Unsupported)]


# primitiv

SHAPE, TENSOR, PARAMETER, MODEL, OPTIMIZER = range(0, 0x500, 0x100)


class Code(bytes):
    """Bytes of MessagePack that stand in a file as they are."""


SCALAR = Code(unhex("91ce00000001 ce00000001 c404 0000803f"))  # shape [1], batch 1, data
PRIMITIV_CODES = {"SCALAR": SCALAR, "ZERO": Code(unhex("ce00000000")),
                  "STR": Code(b"\xa4\0\0\x80\x3f")}
PRIMITIV_FAULTS = read_table(r"""
    name             kind   values
    data_type        0x500  []
    cut              0x100  []
    dims nil         0      [None]
    dimension        0      [[-1], 1]
    batch 0          0      [[], 0]
    data a str       0x100  [[], 1, 'STR']
    data short       0x100  [[2], 1, b'\0\0\0\0']
    dims wrap        0x100  [[0xfffffffe, 0xfffffffd], 1, b'012345670123456701234567']
    N                0x200  ['SCALAR', 0xffffffff]
    statistic twice  0x200  ['SCALAR', 2, 'k', 'SCALAR', 'k', 'SCALAR']
    empty key        0x300  [1, [], 'SCALAR', 0]
    parameter twice  0x300  [2, ['w'], 'SCALAR', 0, ['w'], 'SCALAR', 0]
    config over      0x400  [{'a': 0x100000000}, {}]
""")
DEEP_MODEL = [2, ["w"], "SCALAR", "ZERO", ""] + ["a"] * 16 + ["SCALAR", "ZERO"]


def primitiv_file(kind, text):
    """Return a primitiv file of hex digits."""
    return unhex("ce00000000 ce00000001 ce0000%04x" % kind + text)


def primitiv_of_values(kind, values):
    data = primitiv_file(kind, "")
    for value in values:
        if isinstance(value, str):
            value = PRIMITIV_CODES.get(value, value)
        if not isinstance(value, Code):
            value = msgpack_dumps(value)
        data += value
    return data


def primitiv_of_statistics(key, count=6000):
    """Return a primitiv model of one parameter that has many statistics."""
    stat = b"\x91\x00\x01\xc4\x00"
    data = primitiv_file(MODEL, "01") + key + stat + b"\xcd" + pack(">H", count)
    return data + b"".join([b"\xa4%04d" % i + stat for i in range(count)])


def primitiv_files():
    shape = primitiv_file(SHAPE, "90ce00000001")
    rows = [
        ("primitiv: version 0.2", b"\0\2\0", FormatError),
        ("primitiv: version 0.2, ce", patched(shape, (9, "02")), Unsupported),
    ]
    for name, kind, values in PRIMITIV_FAULTS + [("key a str", MODEL, DEEP_MODEL)]:
        rows.append(("primitiv: " + name, primitiv_of_values(kind, values), FormatError))
    for name, kind, values in (
            ("33 dims", SHAPE, [[1] * 33, 1]),
            ("33 dims of a tensor", TENSOR, [[1] * 33, 1, bytes(4)]),
            ("config in both", OPTIMIZER, [{"a": 1}, {"a": 1}])):
        rows.append(("primitiv: " + name, primitiv_of_values(kind, values), Unsupported))
    return rows


# Burnpack

BURNPACK_HEADERS = {  # name, fields of v021_tiny.bpk
    "metadata_size": {"metadata_size": 0xffff},
}
BURNPACK_MAPS = dict(read_table(r"""
    name               map
    no map             [1]
    no tensors         {'a': 1}
    tensors a list     {'tensors': []}
    name a number      {'tensors': {5: {}}}
    metadata a number  {'tensors': {}, 'metadata': {'k': 1}}
    lacks dtype        {'tensors': {'a': {'shape': [1], 'data_offsets': [0, 4]}}}
    cut CBOR           b'\xa1gte'
"""))
BURNPACK_ENTRIES = dict(read_table("""
    name              entry
    dtype a number    {'dtype': 5}
    shape             {'shape': [1.0]}
    offsets           {'data_offsets': [0, 4, 8]}
    end before start  {'data_offsets': [4, 0]}
    size and shape    {'shape': [2]}
    param_id          {'param_id': True}
"""))


def burnpack_file(top, data=bytes(4)):
    """Return an aligned Burnpack file of a map, or of CBOR bytes."""
    if not isinstance(top, bytes):
        top = cbor_dumps(top)
    head = pack("<4sHI", b"NRUB", 1, len(top)) + top
    return head + bytes(-len(head) % 256) + data


def burnpack_with(**changes):
    """Return a Burnpack file of one tensor; changes are to its entry."""
    usual = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    return burnpack_file({"tensors": {"a": dict(usual, **changes)}})


def burnpack_of_spans(pairs, data):
    """Return a Burnpack file of uint8 tensors t0, t1, ... that start and end there."""
    entries = {}
    for i, (start, end) in enumerate(pairs):
        entries["t%d" % i] = {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]}
    return burnpack_file({"tensors": entries}, data)


def burnpack_files():
    tiny = golden("v021_tiny.bpk")
    original = Original(tiny)
    files = [
        ("BURN", b"BURN" + tiny[4:]),
        ("header cut", tiny[:9]),
        ("the last byte", tiny[:-1]),
    ]
    files += files_of(burnpack_file, BURNPACK_MAPS)
    files += files_with(burnpack_with, BURNPACK_ENTRIES)
    rows = titled("bpk: ", files)
    rows += original.rows("bpk: ", FormatError, BURNPACK_HEADERS)
    return rows + [("bpk: version 2", original.damaged({"version": 2}), Unsupported)]


# TensorBuffers

TENSORBUFFERS_FAULTS = dict(read_table(r"""
    name                    fields
    n                       {'metadata_size': 0xffffff}
    root                    {'root': 255}
    vtable                  {'table': 255}
    vtable length           {'tensors[0].vtable': [15]}
    no version              {'vtable': [12, 16, 0]}
    tensors before version  {'vtable': [12, 16, 8, 0, 4, 12], 'version': 255, 'tensors': 255}
    no name                 {'tensors[0].vtable': [16, 32, 24, 0]}
    offset 0                {'tensors[0].name': 0}
    string                  {'-> tensors[0].name': [0xffff]}
    no NUL                  {'-> tensors[0].name': b'\1\0\0\0wx'}
    not UTF-8               {'-> tensors[0].name': b'\1\0\0\0\xff'}
    vector                  {'-> tensors[0].shape': [0x3fffffff]}
    shape wraps             {'-> tensors[0].shape': [1, 0x40000002]}
    data_type 0             {'tensors[0].data_type': 0}
    data                    {'tensors[0].data_offset': 3}
    size                    {'tensors[0].data_size': 4}
"""))  # of sorted_one.tbs; before a string and a vector stands its length


def tensorbuffers_with(changes):
    """Return sorted_one.tbs with other fields."""
    return Original(golden("sorted_one.tbs")).damaged(changes)


def tensorbuffers_of_65_dimensions():
    deep = tensor([1], "uint8", (1,) * 64)
    data = dumps([("a", F32), ("d", deep)], format="tensorbuffers", sort=False)
    return Original(data).damaged({"-> tensors[1].shape": uint32s(65)})


def tensorbuffers_files():
    good = golden("sorted_one.tbs")
    rows = [
        ("tbs: short", good[:4] + b"TBS1", FormatError),
        ("tbs: trailing magic", good + b"\0", FormatError),
        ("tbs: 65 dimensions", tensorbuffers_of_65_dimensions(), Unsupported),
    ]
    rows += Original(good).rows("tbs: ", FormatError, TENSORBUFFERS_FAULTS)
    return rows


# safetensors, and models in shards

SAFETENSORS_TEXT = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
SAFETENSORS_HEADERS = dict(read_table(r"""
    name                header
    cut                 {
    a comma             {,}
    behind it           {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}x
    escape              {"\x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}
    surrogate           '{"w\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    a bracket too many  {"w":{"dtype":"F32","shape":[2]],"data_offsets":[0,8]}}
    name twice          '{"w":{},"\\u0077":{}}'
    an array as entry   '{"w":["F32",[2],[0,8]]}'
    no shape            '{"w":{"dtype":"F32","shade":[2],"data_offsets":[0,8]}}'
    '-0'                '{"w":{"dtype":"F32","shape":[-0],"data_offsets":[0,8]}}'
"""))
SAFETENSORS_MORE = {  # name, what the entry says besides
    "1e400": ',"x":-1e400',
    "400 digits": ',"x":[1,' + "9" * 400 + "]",
    "key twice, deep": ',"x":[{"y":1,"y":2}]',
    "128 open": ',"x":' + "[" * 126,
}
SAFETENSORS_ENTRIES = dict(read_table("""
    name              entry
    dtype             {'dtype': 5}
    float             {'shape': [2.0]}
    2**64             {'shape': [0x10000000000000000]}
    2**64 in between  {'shape': [0x8000000000000000, 2, 0]}
    2**64 bits        {'shape': [0x1000000000000000]}
    half a byte       {'dtype': 'F4', 'shape': [3]}
    size              {'shape': [3]}
    size of F4        {'dtype': 'F4'}
    one offset        {'data_offsets': [8]}
    backwards         {'data_offsets': [8, 0]}
    empty, far away   {'shape': [0], 'data_offsets': [9, 9]}
"""))  # name, what the one entry says instead
SHARD_INDEXES = dict(read_table(r"""
    name           weight_map
    twice          b'{"a":"x","a":"y"}}'
    cut            b'{},'
    no map         b'[]}'
    outside        b'{"a":"../m"}}'
    from the root  b'{"a":"/etc/passwd"}}'
    a backslash    b'{"a":"a\\\\b"}}'
    empty          b'{"a":""}}'
    a folder       b'{"a":".."}}'
    a drive        b'{"a":"C:x"}}'
    NUL            b'{"a":"a\\u0000"}}'
    a number       b'{"a":3}}'
"""))


def safetensors_file(top, data=bytes(8)):
    """Return a safetensors file of a header, given as text or as changes to the one usual entry."""
    if not isinstance(top, str):
        usual = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        for name, entry in top.items():
            usual[name] = dict(usual.get(name, usual["w"]), **entry)
        top = tensorfmt.json_dumps(usual).decode()
    return pack("<Q", len(top.encode())) + top.encode() + data


def safetensors_of_two(start, end):
    """Return a safetensors file of 8 bytes, in which `w` has the first 4 and `v` those."""
    return safetensors_file({"w": {"shape": [1], "data_offsets": [0, 4]},
                             "v": {"shape": [1], "data_offsets": [start, end]}})


def safetensors_files():
    good = safetensors_file(SAFETENSORS_TEXT)
    files = [
        ("past the end", good[:-9]),
        ("no object", b"\2" + bytes(7) + b"{]"),
        ("not UTF-8", good.replace(b"w", b"\xff")),
        ("bytes behind", good + b"\0"),
        ("no object of texts", safetensors_file('{"__metadata__":[]}', b"")),
        ("no text", safetensors_file('{"__metadata__":{"a":"b","c":[{}]}}', b"")),
        ("a hole at the start", safetensors_file({"w": {"data_offsets": [4, 12]}}, bytes(12))),
        ("the same twice", safetensors_of_two(0, 4)),
        ("an overlap", safetensors_of_two(2, 6)),
        ("a hole", safetensors_of_two(5, 9) + b"\0"),
        ("data cut", safetensors_of_two(4, 8)[:-1]),
        ("2**66 of 8 bytes", safetensors_file({"w": {"dtype": "U8", "shape": [8] * 22}})),
    ]
    files += files_of(safetensors_file, SAFETENSORS_HEADERS)
    for name, more in SAFETENSORS_MORE.items():
        text = SAFETENSORS_TEXT.replace("}}", more + "}}")
        files.append((name, safetensors_file(text)))
    files += [(name, safetensors_file({"w": entry})) for name, entry in SAFETENSORS_ENTRIES.items()]
    return titled("safetensors: ", files)


def shard_files():
    rows = [("shards: no weight_map", b'{"metadata":{"total_size":1}}', FormatError)]
    for name, text in SHARD_INDEXES.items():
        rows.append(("shards: " + name, b'{"weight_map":' + text, FormatError))
    return rows


# Records of Burn (.mpk)


def record_entry(data=b"", shape=(), dtype="F32"):
    """Return what a record says of a tensor."""
    return {"bytes": data, "shape": list(shape), "dtype": dtype}


EMPTY_ENTRY = record_entry(shape=[0])
RECORD_TENSOR = record_entry(b"\0\0\x80\x3f", [1])
RECORD_ITEMS = {  # name, the item, as hex or as values
    "key twice": "82 a177 90 a177 90",
    "key": {1: 2},
    "map too long": "81 a177 df80000000",
    "UTF-8": "81 a177 a1ff",
    "ext": "83 a56279746573d40501 a573686170659101 a56474797065a25538",
    "two scalars": {"a.b": 1, "a": {"b": 2}},
    "two of a name": {"a.b": EMPTY_ENTRY, "a": {"b": EMPTY_ENTRY}},
    "nesting": "91" * 200 + "90",
}
RECORD_ENTRIES = read_table(r"""
    name               data     shape  dtype
    shape              b''      [-1]   F32
    no bin             ''       []     F32
    dtype holds bytes  b'abcd'  [1]    {'QFloat': {'a': b''}}
    dtype              b''      []     5
    dtype of two       b''      []     {'a': 1, 'b': 1}
    size               b'\0'    [2]    F32
""")


def record_file(item, float="f32", end="a25f6290"):
    """Return a record of Burn; the item (hex or a value) begins at 186."""
    head = golden("v021_one_tensor.mpk")[:186].replace(b"\xa3f32", msgpack_dumps(float))
    data = unhex(item) if isinstance(item, str) else msgpack_dumps(item)
    return (b"\x83" if end else b"\x82") + head[1:] + data + unhex(end)


def odd_record():
    """Return a record of Burn with much that is not of a tensor."""
    return record_file(
        "8a a16181a576616c75659301c3a0 a16282a576616c75659101a161c0"
        "a16382a573686170659101a162c3 a164c40161 a165d40501 a166cb3ff8000000000000"
        "a16781a5706172616dc0 a16892c093c0c2a0"
        "a16a83a56279746573c40101a5736861706591"
        "01a56474797065a24638 a16b82a576616c756592ca00000000ca3f800000a16101",
        "half::binary16::f16", "")


def record_files():
    good = golden("v021_one_tensor.mpk")
    item_at = good.index(b"\xa4item")
    files = [
        ("no item", b"\x82" + good[1:item_at] + b"\xa2_b\x90"),
        ("metadata", b"\x82\xa8metadata\xa0\xa4item\xc0"),
        ("version", good.replace(b"\xa60.21.0", b"\x15")),
    ]
    files += files_of(record_file, RECORD_ITEMS)
    files += [(name, record_file(record_entry(*row))) for name, *row in RECORD_ENTRIES]
    rows = titled("mpk: ", files)
    old = record_file("dd7fffffff").replace(b"\xa60.21.0", b"\xa60.13.2")
    lists = record_file({"value": [1.5, -2.0], "shape": [2]})
    return rows + [
        ("mpk: Burn 0.13", old, Unsupported),
        ("mpk: lists", lists, Unsupported),
    ]


# What the real libraries read or write, and we refuse


def departing_files():
    tensors = b"\xa1\x67tensors"
    entry = {"name": "a", "offset": 64, "size": 0, "dtype": "int8", "shape": [0], "encoding": "raw"}
    twice = SAFETENSORS_TEXT.replace('"dtype"', '"shape":[2],"dtype"')
    bomb = dense2("f32", 1, 8, 1 << 40, encoding="zt.zstd-seekable/1", decoded_length=1 << 42)
    numbers = record_entry([1, 2], [2], "U8")
    files = {
        "zt: bytes as keys": ztensor_of_index(b"\x81\xa1\x44name\x61a"),
        "zt: a character in two chunks": ztensor_of_index(
            b"\x81\xa1\x64name\x7f\x61\xc3\x61\xa9\xff"),
        "zt: no index": ztensor_of_index(b""),
        "zt: two of a name": ztensor_file(entry, entry),
        "zt: zstd of 0 bytes": ztensor_file(encoding="zstd", size=0),
        "zt 2: a bomb": ztensor2_of_objects({"w": bomb}, (bytes(8),)),
        "bpk: no padding": burnpack_with()[:200],
        "bpk: a name twice": burnpack_file(tensors + b"\xa2\x61a\xa0\x61a\xa0"),
        "bpk: a shape of bytes": burnpack_with(shape=b"\1"),
        "bpk: bytes as keys": burnpack_file(tensors + b"\xa1\x61a\xa1\x45dtype\x63F32"),
        "bpk: a chunk in a chunk": burnpack_file(
            b"\xa2\x67tensors\xa0\x61x\x5f\x5f\x41a\xff\xff"),
        "bpk: a map as a key": burnpack_file(b"\xa2\x67tensors\xa0\xa0\1"),
        "bpk: tags": burnpack_file(tensors + b"\xc1" * 300 + b"\xa0"),
        "bpk: scalars": burnpack_file({"tensors": {}, "scalars": 5}),
        "tbs: no magic": golden("sorted_one.tbs")[4:],
        "safetensors: a blank": safetensors_file(" " + SAFETENSORS_TEXT),
        "safetensors: a key twice": safetensors_file(twice),
        "mpk: a list of numbers": record_file(numbers),
    }
    rows = titled("", files.items())
    return rows + [
        ("zt 2: a list as a key", ztensor2_file(b"\xa2gobjects\xa0jattributes\xa1\x80\x01"),
         Unsupported),
        ("bpk: version 0", patched(burnpack_with(), (4, "00")), Unsupported),
        ("mag 300: version 299", patched(golden("m300_mixed.mag"), (4, "2b")), Unsupported),
    ]


BAD_FILES = (  # functions that return rows (name, bytes, error)
    files_of_no_format, mag_files, magnetron_files, mag300_files, ztensor_files, ztensor2_files,
    primitiv_files, burnpack_files, tensorbuffers_files, safetensors_files, shard_files,
    record_files, departing_files)


@lru_cache(maxsize=None)
def all_bad_files():
    rows = []
    for make_files in BAD_FILES:
        rows += make_files()
    return rows


def bad_files(*also):
    """Return rows (name, bytes, error) of the formats that are tested; None: of no format."""
    return of_chosen(all_bad_files(), also=also)


OTHER_HEADS = (  # how a file begins, words of the message: what reads it
    (b"PK\3\4" + bytes(26) + b"w.npy", ".npz archive"),
    (b"GGUF\3", "GGUF of llama.cpp"),
    (b"PK\3\4" + bytes(26) + b"m/data.pkl", "torch.load"),
    (b"PK\3\4", "zip archive"),
    (b"\x93NUMPY\1", "numpy.load"),
    (b"\x80\2}", "a pickle"),
    (b"\x89HDF\r\n", "h5py"),
    (b"\x08\7\x12\7pytorch", "ONNX"),
    (b"<!DOCTYPE HTML>", "an HTML page"),
    (b"version https:", "git lfs pull"),
)
OTHER_SUFFIX = bytes(9) + b"git-lfs"
LONG_KEY = b"\x91\xda\xc3\x50" + b"k" * 50000
HOSTILE_SIZES = (  # refused at once, whatever the words
    ztensor_of_index(b"\x9b\x7f" + b"\xff" * 7),
    ztensor_file(size=0, shape=[(1 << 64) - 1] * 2000),
    burnpack_file(b"\xa1\x67tensors\xbb\x7f" + b"\xff" * 7),
    burnpack_file(b"\xa1\x67tensors" + b"\x81" * 100000),
    primitiv_file(TENSOR, "ddffffffff"),
    primitiv_file(MODEL, "01ddffffffff" + "00" * 9),
    primitiv_file(MODEL, "0191dbffffffff" + "00" * 9),
)


def burnpack_of_dtype(code):
    """Return a Burnpack file of one empty tensor, whose dtype are these bytes of CBOR."""
    start = b"\xa1\x67tensors\xa1\x61a\xa3\x65dtype"
    return burnpack_file(start + code + b"\x65shape\x80\x6cdata_offsets\x82\x00\x00", b"")


def wrong_files():
    """Return more rows: bytes that a reader may believe too soon, error, words of the message."""
    metadata = b"\xa2\x67tensors\xa0\x68metadata\xa1"
    beyond = (b"a", (1,), 9, 4, 256)  # Unsupported, but broken rules come first
    rows = [
        (burnpack_file(metadata + b"\x61k\x62k", b""), FormatError,
         "a string of 2 bytes, 1 left"),
        (burnpack_file(metadata + b"\x60\x65", b""), FormatError,
         "a string of 5 bytes, 0 left"),
        (mag_of_records(beyond), Unsupported, "dtype 9"),
        (primitiv_of_statistics(LONG_KEY), Unsupported, "MAX_NAMES"),
        (burnpack_with(param_id=1 << 64), FormatError, "an integer 0 to 2**64-1"),
        (b"ZTEN00:0" + bytes(20), FormatError, "not a ztensor"),
        (b"\x1f\x8b\x08" + OTHER_SUFFIX, Unsupported, "gzip.open"),
        (burnpack_of_dtype(b"\xa2\x61a" + BIG + b"\x61b\x01"), FormatError, "dtype"),
        (burnpack_of_dtype(b"\x81\xa1\x61a" + BIG), FormatError, "dtype"),
        (burnpack_of_dtype(b"\xa1" + BIG + b"\x01"), FormatError, "dtype"),
        (tensorbuffers_with({"-> tensors": uint32s(0xffffffff)}), FormatError, ""),
    ]
    rows += [(head + OTHER_SUFFIX, FormatError, words) for head, words in OTHER_HEADS]
    rows += [(data, FormatError, "") for data in HOSTILE_SIZES]
    return of_chosen(rows, 0)


def check_refused(data, wanted):
    """Assert that explain marks the error's field, tiles the file and raises the error of load."""
    test, fields = TestCase(), []

    def collect():
        for field in explain(data):
            fields.append(field)
    error = error_of(type(wanted), collect)
    test.assertEqual((error.field, error.offset, error.what),
                     (wanted.field, wanted.offset, wanted.what))
    faults = [(field.name, field.offset, field.doc) for field in fields if field.kind == "fault"]
    marked = []
    if detect(data):
        marked = [(error.field, error.offset, error.what)]
    test.assertEqual(faults, marked)
    has_data = "data" in [field.kind for field in fields]  # of a file that was cut short
    nbytes = len(data) if fields else 0
    test.assertTiles(fields, nbytes, shared=has_data)


ENDS_ARE_MARKED = ("custom_nested.zt", "up_7190fc4_f32.tbs", "model_nested.primitiv",
                   "optim_sgd_set.primitiv", "param_3x2x2_stat.primitiv")


class BadFileTest(TestCase):
    def test_every_bad_file_is_refused_by_load_and_verify(self):
        """FuzzTest asks for more of them."""
        for name, data, error_class in bad_files(None):  # and those of no format
            with self.subTest(file=name):
                error = error_of(error_class, load, Short(data))
                self.assertTrue(error.what, "an error without a text")
                self.assertTrue(error.field, "an error that names no field")
                self.assertNotIn("\n", str(error))
                verified = [(found.field, found.offset) for found in verify(data).errors]
                self.assertIn((error.field, error.offset), verified)

    def test_errors_say_what_is_wrong(self):
        for data, error_class, words in wrong_files():
            with self.subTest(begins=data[:40], words=words):
                self.assertIn(words, str(error_of(error_class, load, data)))
                if words:
                    self.assertFalse(verify(data), "verify calls it valid")

    def test_names_may_be_many_if_they_are_short(self):
        self.assertEqual(len(load(primitiv_of_statistics(b"\x91\xa1k"))), 6001)

    @about("mag", "tensorbuffers")
    def test_of_no_bytes_any_offset_does(self):
        fields = {"-> tensors[0].shape": uint32s(1, 0), "tensors[0].data_size": 0}
        for at in (0, 1, 5, (1 << 31) + 1, (1 << 32) - 1, 1 << 60, (1 << 64) - 1):
            files = []
            if chosen("mag"):
                files.append(mag_of_records((b"w", (0,), 0, 0, at), (b"v", (0, 3), 2, 0, at)))
            if chosen("tensorbuffers") and at < 1 << 32:
                files.append(tensorbuffers_with(dict(fields, **{"tensors[0].data_offset": at})))
            for data in files:
                with self.subTest(format=detect(data), at=at):
                    file = load(data, verify=True)
                    self.assertEqual([item.tobytes() for item in file.values()], [b""] * len(file))
                    self.assertTiles(explain(data), len(data))

    def test_every_truncation_of_small_goldens_is_refused_or_read(self):
        for number, (_, title, data, _) in enumerate(FILES):
            is_small = len(data) <= 270 or title == "m012_mixed.mag"
            if title in ENDS_ARE_MARKED or is_small:
                for end in range(len(data)):
                    with self.subTest(file=title, end=end):
                        explained = is_small and (end + number) % 4 == 0
                        self.check_truncation(data[:end], title, explained)

    def check_truncation(self, data, title, explained):
        try:
            load(data)
        except FormatError as error:
            if explained and detect(data):
                check_refused(data, error)
        else:  # where the end is marked, no prefix will do
            self.assertNotIn(title, ENDS_ARE_MARKED)

    def test_what_is_whole_of_a_file_cut_short_can_be_read(self):
        items = {}
        for i, name in enumerate("cdab"):
            items[name] = tensor([i + 0.5] * (7 * i + 1), "float32")
        kinds = [(name, {}) for name in FORMATS]
        if chosen("mag"):
            kinds.append(("mag", {"version": 300}))
        for name, options in kinds:
            data = dumps(items, format=name, **options)
            whole = load(data)
            step = 1 + len(data) // 40
            if name == "primitiv":
                step = 1
            for end in range(len(data) - 1, 20, -step):
                with self.subTest(format=name, end=end):
                    self.check_cut(data[:end], whole)

    def check_cut(self, cut, whole):
        """Compare what partial=True gives of a file without its end."""
        if not whole.fmt.INDEX_FIRST:
            error = error_of(Unsupported, load, cut, partial=True)
            self.assertIn("no index in front", error.what)
            self.assertIn("truncated: no ", error_of(FormatError, load, cut).what)
            return
        ends = {name: item.offset + item.stored_nbytes for name, item in whole.items()}
        try:
            file = load(cut, partial=True)
        except FormatError:  # what says where tensors are is cut
            error_of(FormatError, load, cut)
            self.assertLess(len(cut), min(ends.values()))
            return
        found = [name for name in whole if ends[name] <= len(cut)]
        self.assertEqual(content(file), content({name: whole[name] for name in found}))
        if whole.format == "primitiv":
            self.check_cut_run(cut, file, found)
        elif len(cut) >= max(ends.values()):  # only padding is cut
            self.assertNotIn("missing", file.attrs)
            self.assertEqual(list(load(cut)), list(whole))
            return
        else:
            missing = [name for name in whole if name not in found]
            self.check_cut_data(cut, file, found, missing, max(ends.values()))
        check_refused(cut, error_of(FormatError, load, cut))
        self.check_cut_converted(cut, file, found)

    def check_cut_run(self, cut, file, found):
        """Compare what is said of tensors whose names are not known before they are read."""
        self.assertTrue(file.attrs["missing"])
        self.assertTrue(set(file.attrs["missing"]).isdisjoint(found))
        self.assertIn("cut short", error_of(FormatError, load, cut).what)

    def check_cut_data(self, cut, file, found, missing, end):
        """Compare what is said of tensors that the index names."""
        self.assertEqual(file.attrs["missing"], missing)
        error = error_of(KeyError, lambda: file[missing[0]])
        self.assertIn("is missing or cut short", str(error))
        text = "cut short: %d bytes, the index wants %d; %d of %d tensors are whole" % (
            len(cut), end, len(found), len(found) + len(missing))
        if found:
            text += "; partial=True (--partial) takes the whole ones"
        self.assertEqual(error_of(FormatError, load, cut).what, text)

    def check_cut_converted(self, cut, file, found):
        if not found:
            self.refuses(["none of the tensors is whole"], converted, cut, "ztensor", partial=True)
            return
        there, summary = converted(cut, "ztensor", partial=True)
        self.assertEqual(sorted(there), sorted(found))
        self.assertEqual(summary.missing, file.attrs["missing"])
        for name in summary.missing:
            self.assertIn("\nmissing: %r\n" % name, str(summary))
        self.assertNotIn("missing", summary.left_behind)

    @about("ztensor", "burnpack", "tensorbuffers")
    def test_values_of_what_is_not_known_raise_unsupported(self):
        number = {"X": 1 << 999}
        for data, words in (
                (ztensor_file(dtype="Float32"), "Float32"),
                (ztensor_file(encoding="RAW"), "RAW"),
                (ztensor_file(layout="strided"), "strided"),
                (tensorbuffers_with({"tensors[0].data_type": 11}), "11"),
                (burnpack_with(dtype=number, shape=[], data_offsets=[0, 0]), "128 bits"),
                (burnpack_with(dtype="F8"), "F8")):
            with self.subTest(words=words):
                self.check_values_raise(Unsupported, data, words)
                self.assertTrue(verify(data), "verify calls it bad")

    @about("ztensor")
    @with_zstd
    def test_values_of_damaged_zstd_raise_format_errors(self):
        data = ztensor_file(encoding="zstd", shape=[131072])
        self.check_values_raise(FormatError, data, "zstd")
        self.assertFalse(verify(data), "verify calls it valid")

    def check_values_raise(self, error_class, data, words):
        item, = load(data).values()
        calls = [
            item.tolist,
            lambda: item[0],
            lambda: item.data,
            lambda: list(item.flat),
            lambda: item.astype("float64"),
        ]
        if item.dtype is None:  # the bytes alone are as stored
            self.assertEqual(item.contiguous().tobytes(), bytes(item.raw))
        else:  # they may be coded
            calls += [item.tobytes, item.contiguous]
        for call in calls:
            error = error_of(error_class, call)
            self.assertEqual(error.tensor, item.name)
            self.assertIn(words, str(error))
        self.assertEqual(len(item.raw), item.stored_nbytes)


# -- [10b] many tensors --------------------------------------------------------------------------


def many_tensors(count):
    """Return the names and tensors of a model of layers; every tenth one is a vector."""
    tensors = {}
    for i in range(count):
        layer, number = divmod(i, 10)
        name, shape = str(number), (4, 4)
        if number == 3:
            name, shape = "bias_of_it_all3", (16,)
        tensors["model.layers.%d.%s" % (layer, name)] = tensor(bytes(64), "float32", shape)
    return tensors


NET = {
    "model.layers.0.self_attention.query_projection.weight": [[1.0, 2.0], [3.0, 4.0]],
    "model.layers.0.self_attention.query_projection.bias": [0.1, 0.25],
    "head": [float(i % 5) for i in range(40)],
}
ALIKE = {repr(x): tensor([1.0], custom={"x": x}) for x in (1, True, 1.0, 0, False, 0.0, -0.0)}


def rich_files(count):
    """Return files of many alike tensors; richer ones behind."""
    items = many_tensors(count)
    params, means = dict(items), dict(items)
    for i, (name, item) in enumerate(items.items()):
        means[name + ":m"] = item
        if i % 3:
            params[name] = tensor(item, custom={"param_id": 1 << i % 64})
    files = [dumps(items, format=name) for name in FORMATS]
    for kind, tensors, options in (
            ("ztensor", items, {"checksum": "sha256", "data_endianness": "big"}),
            ("ztensor", ALIKE, {}),
            ("primitiv", means, {}),
            ("burnpack", params, {"metadata": {"a": "b"}, "scalars": {"n": {"Int": 1}}}),
            ("burnpack", params, {"metadata": {"edtype": "eshape"}})):
        if chosen(kind):
            files.append(dumps(tensors, format=kind, **options))
    return files


class ManyTensorsTest(FolderCase):
    """What is copied as it is; what thousands of tensors take."""

    @unittest.skipUnless(not PYPY, "PyPy has no tracemalloc")
    def test_bytes_in_memory(self):
        many = many_tensors(2000)
        big = tensor(bytes(8 << 20), "float32", (1 << 10, 1 << 11))
        most = 2000 * 1200
        if PYTHON >= (3, 10):  # before, small dicts are larger
            most = 2000 * 900
        target = self.path + "2"
        for name in FORMATS:
            with self.subTest(format=name):
                save(self.path, many, format=name)
                self.assertLess(peak_of(load, self.path), most)
                save(self.path, {"w": big}, format=name)
                peak = peak_of(convert, self.path, target, format="ztensor",
                               cast={"float32": "bfloat16"})
                self.assertLess(peak, 6 << 20)


def peak_of(call, *args, **options):
    """Return how many bytes of memory a call takes at most."""
    from tracemalloc import get_traced_memory, start, stop
    start()
    try:
        call(*args, **options)
        return get_traced_memory()[1]
    finally:
        stop()


def count_calls(call, *args, **options):
    """Return how many functions, of Python and of C, a call calls; C code counts them."""
    from cProfile import Profile
    profile = Profile()
    profile.enable()
    try:
        call(*args, **options)
    finally:
        profile.disable()
    return sum([row.callcount for row in profile.getstats()])


# -- [10c] hostile bytes -------------------------------------------------------------------------


CBOR_BOMBS = read_table("""
    name           key   item                                                times
    empty lists    x     '80'                                                10
    empty maps     x     a0                                                  10
    lists of one   x     '8100'                                              5
    negative       x     '37'                                                10
    maps of one    x     a10000                                              3
    simple         x     e0                                                  10
    long key       long  '80'                                                9
    long key, cut  long  '00'                                                9
    small maps     x     ac000102030405060708090a0b0c0d0e0f1011121314151617  0.4
""")  # a list of items, as hex digits
JSON_BOMBS = read_table(r"""
    name                start                     part         times  end
    lists               '{"w":['                  '[],'        5      '[]]}'
    dimensions          '{"w":{"shape":[{}'       ',{}'        5      '],#}}'
    objects not wanted  '{"w":{@,"x":['           '{"a":1},'   1      '{}]}}'
    texts not wanted    '{"w":{@,"x":["a"'        ',"ab"'      2      ']}}'
    keys not wanted     '{"w":{@'                 ',"%x":[1]'  1      '}}'
    metadata            '{"__metadata__":{"":""'  ',"%x":""'   1      '}}'
    short names         '{"":{@}'                 ',"%x":{@}'  0.2    '}'
    numbers             '{"w":{@,"x":[1e9'        ',-1'        3      ']}}'
    blanks              '{'                       '\x20'       10     ''
    escapes             '{"'                      '\\n'        5      '":0}'
    open string         '{"'                      '\\n'        5      ''
    digits              '{"w":{@,"x":'            '9'          10     '}}'
    open                '{'                       '"a":{'      8      \'\'
""")  # @ is an entry of no bytes, # what it says besides its shape
BARE = "82a576616c756590a573686170659100"  # a tensor without elements
RECORD_BOMBS = read_table("""
    name     start  part    times
    maps     ''     81a0c0  3
    texts    ''     a26162  3
    tensors  ''     BARE    0.5
    bins     ''     c400    5
    names    NAME   c3      9
    dtypes   DTYPE  '80'    9
""")  # hex digits of the items of a list, and before it
HEX_OF = {
    "BARE": BARE,
    "NAME": "81d9ff" + "6b" * 255,
    "DTYPE": "83a56279746573c400a573686170659100a5647479706581a178",  # a tensor up to its map
}


def index_bombs(n):
    """Return rows (name, file) of CBOR and JSON."""
    rows = []
    for row in CBOR_BOMBS:
        count = int(n * row.times)
        key = b"\x61x"
        if row.key == "long":
            key = tensorfmt.cbor_head(3, n) + b"k" * n
        items = tensorfmt.cbor_head(4, count) + unhex(row.item) * count
        cbor = b"\xa2\x67tensors\xa0" + key + items
        if row.name.endswith("cut"):
            cbor = cbor[:-1]
        rows.append((row.name, burnpack_file(cbor, b"")))
    for row in JSON_BOMBS:
        count = int(n * row.times)
        parts = row.part * count
        if "%" in row.part:
            parts = "".join([row.part.replace("%x", "%x" % i) for i in range(count)])
        text = (row.start + parts + row.end).replace("@", '"shape":[0],#')
        text = text.replace("#", '"dtype":"U8","data_offsets":[0,0]')
        rows.append((row.name, safetensors_file(text, b"")))
    return rows


def messagepack_bombs(n):
    """Return rows (name, file) of MessagePack."""
    rows = []
    for row in RECORD_BOMBS:
        count = int(n * row.times)
        part = HEX_OF.get(row.part, row.part)
        text = HEX_OF.get(row.start, row.start) + "dd%08x" % count + part * count
        rows.append(("record of " + row.name, record_file(text)))
    stats = ["a4 %s 91 0001 c400" % tohex(b"%04x" % i) for i in range(n)]
    text = "9001c4040000803f ce%08x" % n + "".join(stats)
    rows.append(("small statistics", primitiv_file(PARAMETER, text)))
    shapes = ["91a4 %s 92 00 cd%04x 01 c400 00" % (tohex(b"%04x" % i), i)
              for i in range(n * 2 // 3)]
    text = "ce%08x" % len(shapes) + "".join(shapes)
    rows.append(("many shapes", primitiv_file(MODEL, text)))
    key = b"\x91\xda" + pack(">H", n + 4) + "\U0001f600".encode() + b"\\" * n
    rows.append(("statistics", primitiv_of_statistics(key, 2 * n)))
    return rows


def bombs(n):
    """Return rows (name, file) that ask for far more memory or time than their 10 n bytes or so."""
    head = tensorfmt.cbor_head
    dimensions = head(4, 9 * n) + b"\x01" * (9 * n)
    empty = b'"%d":{"shape":[0],"dtype":"","dtype_id":0,"offset":8200,"nbytes":0},'
    empties = b"".join([empty % i for i in range(n // 4)])
    rows = index_bombs(n) + messagepack_bombs(n) + [
        ("mag 300: digits", mag300_replaced((b"0.1", b"9" * 10 * n))),
        ("mag 300: lists", mag300_replaced((b"0.1", b"[" + b"[]," * (3 * n) + b"1]"))),
        ("mag 300: tensors", mag300_replaced((b'"e"', empties + b'"e"'))),
        ("chunks", burnpack_file(b"\xa2\x67tensors\xa0\x61x\x5f" + b"\x42ab" * (3 * n) + b"\xff")),
        ("faulty entries", ztensor_of_index(head(4, 5 * n) + b"\xa0" * (5 * n))),
        ("many dimensions", burnpack_file(
            b"\xa1\x67tensors\xa1" + head(3, n) + b"n" * n + b"\xa3\x65dtype\x62U8\x65shape"
            + dimensions + b"\x6cdata_offsets\x82\x00\x01", b"\0")),
    ]
    return of_chosen(rows)


def buried(depth, value, wrap):
    for _ in range(depth):
        value = wrap(value)
    return value


INNERMOST = {  # what lies in many maps or arrays: some hundred fields
    "numbers": {"k%d" % i: i for i in range(300)},
    "maps of one": {"k%d" % i: {"a": 1} for i in range(150)},
    "lists of lists": [[[i], i] for i in range(100)],
}
AROUND = {"maps": lambda value: {"": value}, "lists": lambda value: [value, 0]}


def burnpack_of_scalar(value, **tensors):
    return burnpack_file({"tensors": tensors, "scalars": {"a": value}})


def broken_record(value):
    return record_file({"a": value, "w": record_entry(shape="x")})


HOLDERS = {  # of any value: what makes a file of it, and a broken one
    "burnpack": (burnpack_of_scalar, lambda value: burnpack_of_scalar(value, w={})),
    "ztensor": (lambda value: ztensor_file(note=value),
                lambda value: ztensor_file(note=value, dtype=1)),
    "mag": (lambda value: mag300_with({"usr_metadata": value}),
            lambda value: mag300_with({"usr_metadata": value, "manifest_ver": "x"})),
    "burnrecord": (lambda value: record_file({"a": value}), broken_record),
}
for name in set(HOLDERS).difference(READ):
    del HOLDERS[name]


def attempt(call, data):
    """Do something with bytes, which may be no file."""
    try:
        str(call(data))
    except FormatError:
        pass


def count_fields(data):
    return sum([1 for _ in explain(data)])


class HostileTest(TestCase):
    """Bytes that were made to exhaust memory or time."""

    @unittest.skipUnless(USUAL, "PyPy counts no calls; flags cost nothing")
    def test_a_field_costs_the_same_at_any_depth(self):
        from itertools import cycle, product
        calls = cycle([count_fields, load, verify])
        for kind, inside, around, i in product(HOLDERS, INNERMOST, AROUND, range(2)):
            make, call = HOLDERS[kind][i], next(calls)
            counts = []
            for depth in 1, 90:
                data = make(buried(depth, INNERMOST[inside], AROUND[around]))
                counts.append(count_calls(attempt, call, data))
            with self.subTest(format=kind, inside=inside, around=around, broken=i, call=call):
                self.assertLess(counts[1], 1.25 * counts[0] + 90 * 150)

    @about("burnrecord")
    @unittest.skipUnless(not PYPY, "PyPy has no tracemalloc")
    def test_names_below_a_long_key_are_counted_before_they_are_made(self):
        """Of tensors and of numbers, whichever lie beside each other."""
        for what, value in ("tensors", EMPTY_ENTRY), ("numbers", 1), ("maps", {"a": 1}):
            data = record_file({"x" * 60000: {"%05x" % i: value for i in range(3000)}})
            with self.subTest(of=what), Changed(tensorfmt, "MAX_NAMES", 0):
                peak = peak_of(self.raises, Unsupported, "MAX_NAMES", load, data)
                self.assertLess(peak, 100 * len(data))

    @unittest.skipUnless(USUAL, "PyPy has no tracemalloc; flags and byte orders cost nothing")
    def test_memory_for_each_byte(self):
        """What small files may take besides is left out, and is in .docs/limits.md."""
        wide = 1 if PYTHON >= (3, 10) else 3  # before, small dicts take up to 240 bytes
        with Changed(tensorfmt, "MAX_NAMES", 0), Changed(tensorfmt, "MAX_ERRORS", 9):
            for number, (name, data) in enumerate(bombs(250)):
                for call, nbytes in (load, 100), (count_fields, 200), (verify, 200):
                    if call is count_fields and number % 3:
                        continue  # some: verify traces the same fields
                    peak = peak_of(attempt, call, data)
                    with self.subTest(bomb=name, call=call, peak=peak, nbytes=len(data)):
                        self.assertLess(peak, wide * nbytes * len(data) + (1 << 16))

    @unittest.skipUnless(USUAL, "PyPy counts no calls; flags cost nothing")
    def test_calls_for_each_byte(self):
        for number, (name, data) in enumerate(bombs(100)):
            for call in load, count_fields, verify:
                if call is count_fields and number % 3 != 1:
                    continue
                count = count_calls(attempt, call, data)
                with self.subTest(bomb=name, call=call, count=count, nbytes=len(data)):
                    self.assertLess(count, 90 * len(data) + 2500)


# -- [10d] fuzzing -------------------------------------------------------------------------------
#
# .ci/fuzz.py makes mutants, some in a test, millions for a night; there is what must hold for each.


def packed_burnpack():
    """Return a file of burn 0.19, whose tensors lie side by side."""
    tensors = {}
    for i, name in enumerate("abcdefgh"):
        place = [8 * i, 8 * i + 8]
        tensors[name] = {"dtype": "F32", "shape": [2], "data_offsets": place}
    index = cbor_dumps({"tensors": tensors, "metadata": {"version": "0.19.1"}})
    return pack("<4sHI", b"NRUB", 1, len(index)) + index + bytes(64)


def fuzz_files():
    """Return good files of all kinds, to be changed."""
    mixed = {
        "csr": tensor(shape=(3, 5), components=CSR), "w": [[1.0, 2.0], [3.0, 4.0]],
        "coo": tensor(shape=(3, 5), components=COO, custom={"note": "x"}),
        "x": tensor([7], "uint8")}
    plain = {name: tensor([1, 0, 3], name) for name in ("int64", "uint8", "float16")}
    options = [{}, {"checksum": "sha256", "data_endianness": "big"}]
    if ZSTD:
        options.append({"checksum": "crc32c", "encoding": "zstd"})
    more = [make_burnpack(*QUANTIZED), packed_burnpack()]
    more += [dumps(mixed, format="ztensor", **some) for some in options]
    metadata = {"a": [1, {"b": None}], "c": "d"}
    more += [
        ztensor2_of_all_kinds(),
        dumps(plain, format="mag", version="300", metadata=metadata),
        dumps(plain, format="safetensors", metadata={"format": "pt", "a": "\u20ac"})]
    rows = of_chosen([(data,) for data in more], 0)
    return [row.data for row in FILES] + rich_files(12) + [data for data, in rows]


def script(test, name):
    """Return what a script in .ci defines."""
    return runpy.run_path(path_of(test, ".ci", name))


def broken_files(test):
    """Return rows (name, bytes) of all files that are no usual ones, good or bad."""
    more = script(test, "variants.py")
    rows = [row[:2] for row in bad_files(None)]
    if chosen("mag", "ztensor", "safetensors", "burnrecord"):
        rows += more["later_files"]()
    rows += more["odd_files"]()
    for data, _, words in wrong_files():
        rows.append((words or "of hostile sizes", data))
    return rows


class FuzzTest(TestCase):
    def test_what_must_hold_for_every_file(self):
        fuzz, parsers = script(self, "fuzz.py"), parsers_kept()
        rows = [(row.title, row.data) for row in FILES] + broken_files(self)
        for i, (name, data) in enumerate(rows):
            with self.subTest(file=name, begins=data[:40]), parsers:
                fuzz["check_mutant"](data, fuzz["COMMANDS"][i % 3::3])

    def test_what_must_hold_for_changed_files(self):
        fuzz = script(self, "fuzz.py")
        for data in fuzz_files():
            self.assertTrue(fuzz["check_mutant"](data))
        count = 200 if BESIDE else 400  # and the leg `fuzz` makes thousands
        read = 0
        for data in fuzz["mutants"](7, count):
            with self.subTest(hex=tohex(data)):
                read += fuzz["check_mutant"](data)
        if not ONLY:
            self.assertTrue(0.05 < read / count < 0.9, read)

    def test_promises_that_need_no_list(self):
        """Of some files and changes; the leg `promises` looks at thousands, of another seed."""
        promises = script(self, "promises.py")
        tried = promises["check_files"](8 if BESIDE else 16, 7)
        changed = promises["check_changes"](Random(7), 400 if BESIDE else 200)
        self.assertEqual(promises["FINDINGS"], [])
        if not ONLY:
            self.assertGreater(min(tried.values()), 3)
            self.assertGreater(changed, 100)


@about()
class CorpusTest(FolderCase):
    def test_manifest_is_what_load_says(self):
        script(self, "corpus.py")["write_corpus"](sys.modules[__name__], self.folder)
        rows = json.loads(read_file(self.folder + "/manifest.json").decode())
        names = [row["file"] for row in rows]
        self.assertEqual(sorted(names + ["manifest.json"]), sorted(os.listdir(self.folder)))
        self.assertEqual(len(rows), len(fuzz_files()) + len(bad_files()) + len(wrong_files()))
        for row in rows[::9]:
            report = verify(self.at(row["file"]))
            self.assertEqual(row["verdict"] == "good", bool(report), row)


# -- [11] explain, verify ------------------------------------------------------------------------

class ExplainTest(FolderCase):
    @about()
    def test_field_is_a_tuple_with_names(self):
        field = list(explain(golden("sorted_one.tbs")))[1]
        self.assertEqual(field[:4], (4, 8, "data w", "float32 [2]"))
        self.assertEqual((field.offset, field.nbytes, field.name, field.value), field[:4])
        self.assertEqual((field.doc, len(field)), (field[4], 5))
        self.assertEqual((field.tensor, field.kind, field.depth), ("w", "data", 0))
        self.assertEqual(repr(field), "Field(4, 8, 'data w', 'float32 [2]')")

    def test_long_names_alike_at_both_ends_lead_to_their_own_data(self):
        """Also where they differ only in what is cut out of the middle."""
        names = ["a" * 330 + "%03d" % i + "b" * 200 for i in range(3)]
        for kind in FORMATS:
            data = dumps(dict.fromkeys(names, F32), format=kind)
            fields = list(explain(data))
            owners = {field.offset: field.tensor for field in fields if field.kind == "data"}
            with self.subTest(format=kind), parsers_kept():
                self.assertEqual(sorted(owners.values()), names)
                for field in fields:
                    if field.target in owners and field.tensor:
                        self.assertEqual(owners[field.target], field.tensor)
                write_file(self.path, data)
                for at, name in owners.items():
                    rows = json.loads(run("explain", "--json", "--tensor", name, self.path)[1])
                    found = [row["offset"] for row in rows if row["kind"] == "data"]
                    self.assertEqual(found, [at])

    def test_what_is_printed_is_at_most_64_times_the_file(self):
        """Of more the beginning, and where --from goes on."""
        numbers = {"%x" % i: 0 for i in range(3000)}
        for kind, (make, _) in HOLDERS.items():
            data = make(buried(100, numbers, AROUND["maps"]))
            most = 64 * len(data) + 100300
            write_file(self.path, data)
            with self.subTest(format=kind), parsers_kept():
                shown = []
                for text in self.pages():
                    self.assertLess(len(text), most)
                    shown += [(row["offset"], row["name"]) for row in json.loads(text)
                              if row["kind"] != "left out"]
                self.assertEqual(shown, [(field.offset, field.name) for field in explain(data)])
                self.assertLess(len(run("explain", self.path)[1]), most)

    def pages(self):
        """Yield what is printed as JSON, from the beginning on and from where it says."""
        start = "0"
        while start:
            text = run("explain", "--json", "--from", start, self.path)[1]
            yield text
            last = json.loads(text)[-1]
            start = None
            if last["kind"] == "left out":
                start = last["doc"].split()[-1]
                self.assertEqual(int(start, 16), last["offset"])

    @about("tensorbuffers")
    def test_zeros_that_align_nothing_are_unused(self):
        """A FlatBuffer aligns what is in it: by 7 bytes at most."""
        good = golden("sorted_one.tbs")
        start = Original(good).places["root"][0]
        for count, kind in (4, "padding"), (8, "unused"), (16, "unused"):
            data = bytearray(good)
            data[start] += count  # the root table lies so far
            data[-8:-4] = uint32s(len(good) - 8 - start + count)
            data[start + 4:start + 4] = bytes(count)
            places = {field[:2]: field.kind for field in explain(bytes(data))}
            self.assertEqual(places[start + 4, count], kind)


def appended(data):
    """Return a file of zTensor 2 with a second manifest behind the whole first file."""
    start, nbytes = unpack("<2Q", data[-40:-24])
    text = data[start:start + nbytes]
    data += bytes(-len(data) % 4096)
    return data + text + pack("<QQQII8s", len(data), nbytes, tensorfmt.xxh3_64([text]), 2, 0,
                              data[:8])


def again(data, *stopped):
    """Return what a download leaves that stopped after so many bytes each time, and began again."""
    return b"".join([data[:nbytes] for nbytes in stopped]) + data


NAMES_OF_BLOBS = read_table("""
    folder         name   status  words
    blobs          good   FAIL    in a folder 'blobs'
    blobs          upper  FAIL    in a folder 'blobs'
    objects        good   FAIL    in a folder 'objects'
    objects/ab/cd  good   FAIL    in a folder 'objects'
    blobs/ab       good   note    64 hex digits
    files          good   note    64 hex digits
    blobs          .zt    None    ''
    blobs          short  None    ''
""")  # where a file lies that is called as a digest, and what is said if that is wrong


class VerifyTest(FolderCase):
    """What is wrong with a file as a whole, and what its name says."""

    def test_a_download_that_began_again(self):
        index = json.dumps({"weight_map": {"w": "m-1-of-2.safetensors"}}).encode()
        files = [row[1:3] for row in FILES]
        if chosen("safetensors"):
            files.append(("index", index))
        for name, data in files:
            n = len(data)
            for stopped in (1, 4), (9, 7), (n // 2, n // 3), (n // 3, n // 2, n), (5,), (n - 1,):
                with self.subTest(file=name, stopped=stopped):
                    self.check_again(again(data, *stopped), sum(stopped))
            self.check_again(Short(again(data, n)), n)

    def check_again(self, source, at):
        words = "the beginning of the file stands again at 0x%x," % at
        self.assertIn(words, "\n".join([error.what for error in verify(source).errors]))

    def test_where_a_file_begins_is_found_across_blocks(self):
        data = golden("custom_fields.zt")
        for block in 20, 64, 100:
            with Changed(tensorfmt, "BLOCK", block):
                for stopped in 70, 100, 131:
                    self.check_again(again(data, stopped), stopped)

    def test_what_begins_again_is_a_whole_file(self):
        """Which has no errors, ends where this one does, and begins as this one."""
        data = dumps({"a": F32, "b": F32}, format="burnpack")
        twice = again(data, 300)
        self.check_again(twice, 300)
        for odd in (twice + b"x", twice[:-1], data[:300] + data[:-8], data[:299] + b"x" + data,
                    b"x" + data[1:300] + data):
            self.assertNotIn("stands again", str(verify(odd)))

    def test_a_file_inside_of_a_file(self):
        """Nothing began again in it."""
        kinds = [(row.name, {}) for row in WRITES if "uint8" in row.dtypes]
        kinds += [(row.name, {"version": row.newest}) for row in WRITES if row.newest]
        for kind, options in kinds:
            inner = dumps({"a": tensor([1, 2], "uint8")}, format=kind, **options)
            for count in 1, 2, 9:
                tensors = {"a%d" % i: tensor(inner, "uint8") for i in range(count)}
                inner = dumps(tensors, format=kind, **options)
                with self.subTest(kind=kind, count=count):
                    self.assertTrue(verify(inner))
        if chosen("ztensor"):
            self.assertTrue(verify(appended(appended(V212_CANONICAL))))

    def test_where_a_file_begins_is_sought_a_bounded_number_of_times(self):
        begun = (b"ZTEN0001" + bytes(56)) * 99
        self.assertEqual(calls_of(tensorfmt, "is_whole", verify, begun), tensorfmt.MAX_TRIES)
        with Changed(tensorfmt, "MAX_TRIES", INF):
            count = calls_of(tensorfmt, "is_whole", verify, begun)
            self.assertLessEqual(count, tensorfmt.MAX_BEGINNINGS)

    def rows_of_name(self, path, data):
        """Return what verify says of the name of a file of these bytes: rows (status, text)."""
        write_file(path, data)
        found = []
        for source in path, self.at("link.zt"):
            report = verify(source)
            found.append([(row[0], row[3]) for row in report.rows if row[1] == "name"])
            for error in report.errors:
                if error.check == "name":
                    self.assertEqual(error.path, source)
        self.assertEqual(found[0], found[1])
        return found[0]

    @on_posix
    def test_a_name_that_is_taken_for_a_digest(self):
        """As in the cache of Hugging Face, and of Git LFS; also of what no format begins with."""
        data = dumps({"w": [1.0]}, format="ztensor")
        digest = sha256(data).hexdigest()
        names = {"good": digest, "upper": digest.upper(), ".zt": digest + ".zt",
                 "short": digest[1:]}
        middle = self.at("middle")
        os.symlink("middle", self.at("link.zt"))
        for row in NAMES_OF_BLOBS:
            path = self.at(row.folder, names[row.name])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(path, middle)
            for bad in data[:64] + b"?" + data[65:], data[:-8], bytes(9):
                with self.subTest(row=row, bad=bad):
                    rows = self.rows_of_name(path, bad)
                    if row.status == "FAIL":
                        error_of(FormatError, load, path, verify=True)
                    self.assertEqual([status for status, _ in rows], [row.status] * len(rows))
                    self.assertEqual(len(rows), row.status is not None)
                    self.assertIn(row.words, str(rows))
            statuses = [status for status, _ in self.rows_of_name(path, data)]
            self.assertEqual(statuses, ["ok"] * len(rows))
            load(path, verify=True)
            os.unlink(middle)
            rmtree(self.at(row.folder.split("/")[0]))

    def test_a_name_of_digits_without_hashlib(self):
        path = self.at("0" * 64)
        save(path, {"w": [1.0]}, format="ztensor")
        with mock.patch.dict(sys.modules, hashlib=None):
            text = str(verify(path))
        self.assertIn("-     name         not checked: sha256 needs the module hashlib", text)
        self.assertTrue(text.endswith(", 1 checksum not checked"))

    def test_what_is_noted_or_cannot_be_checked(self):
        two = dumps({"a": [1.0, 2.0], "b": [3.0, 4.0]}, format="burnpack")
        one = dumps({"a": [1.0]}, format="ztensor")
        long_head = dumps({}, format="ztensor")[:8] + b"\x98\x00" + pack("<Q", 2)
        for data, status, check, count in (
                (two + b"x", "note", "padding", 1),
                (burnpack_of_spans([(0, 4), (2, 6), (0, 4)], bytes(7)), "note", "padding", 1),
                (one.replace(bytes(56), b"x" * 56), "note", "padding", 1),
                (long_head, "note", "canonical", 1),
                (burnpack_of_spans([(0, 8), (0, 8)], bytes(1024)), "note", "bounds", 0),
                (burnpack_of_spans([(0, 8), (4, 12)], bytes(1024)), "note", "bounds", 1),
                (golden("zstd_64k_zeros.zt"), "ok" if ZSTD else "-", "contents", 1),
                (safetensors_file("{}\n", b""), "note", "padding", 1)):
            with self.subTest(check=check, begins=data[:30]):
                report = verify(data)
                self.assertTrue(report)
                rows = [row[:2] for row in report.rows]
                self.assertEqual(rows.count((status, check)), count)

    @about("burnpack")
    def test_of_many_notes_of_one_kind_five_are_rows(self):
        for count in 4, 5, 6, 20:
            spans = [(i, i + 8) for i in range(0, 4 * count + 1, 4)]  # each lies in the one before
            report = verify(burnpack_of_spans(spans, bytes(1024)))
            for check in "bounds", "alignment":
                rows = [row for row in report.rows if row[:2] == ("note", check)]
                more = []
                if count > 5:
                    more.append(("note", check, None, "%d more" % (count - 5), None))
                self.assertEqual(len(rows[:5]), min(count, 5))
                self.assertEqual(rows[5:], more)

    def test_rows_are_cut_to_their_length(self):
        report = tensorfmt.Report("p" * 9000, None)
        report.fail(FormatError("w" * 9000, 5, "f" * 9000, "t" * 9000))
        for status in "ok", "note", "-":
            report.add(status, "c", "t" * 9000, "n" * 9000, 5)
        *rows, last = str(report).split("\n")
        self.assertEqual(len(rows), 4)
        for line in rows:
            self.assertIn("tt", line)
        self.assertLessEqual(max(map(len, rows + [last])), tensorfmt.MAX_LINE)

    def test_watch_is_told_of_every_pass(self):
        said = []

        def watch(verb, done, total):
            said.append((verb, done, total))
        data = dumps({"w": [0.1] * 10, "v": [0.2] * 10}, format="ztensor", checksum="crc32c")
        verify(data, watch=watch)
        diff(data, data, watch=watch)
        converted(data, "zt", version=2, cast={"float64": "float32"}, watch=watch)
        verbs = []
        for verb, done, total in said:
            self.assertTrue(0 <= done <= total or verb == "writing")  # and the index
            if verb not in verbs[-1:]:
                verbs.append(verb)
        self.assertEqual(verbs, ["checking", "comparing", "casting", "checking", "writing"])
        casts = [row for row in said if row[0] == "casting"]
        self.assertEqual(casts[-1], ("casting", 160, 160))

    def test_what_is_not_of_a_format(self):
        for kind in list(READ) + LATER:
            for data in b"", b"\4" + bytes(7) + b"abcd", golden("up_head_ops.tbs")[:-1]:
                report = verify(data, format=kind)
                self.assertFalse(report)
                self.assertEqual(str(report).count("FAIL"), 1, kind)

    def test_what_load_alone_does_not_mind(self):
        good = dumps({"a": tensor([1.0, 2.0])}, format="ztensor", checksum="crc32c")
        one = dumps({"a": tensor([1.0], "float32")}, format="primitiv")
        digits = good.index(b"crc32c:0x") + 9
        for data, check, offset in (
                (rotten(good, "a"), "checksums", 64),
                (patched(good, (digits, tohex(b"+"))), "checksums", 64),
                (golden("model_nested.primitiv") + b"\0", "index", 230),  # bytes after the end
                (one + b"\0\0", "index", len(one))):
            load(data)
            report = verify(data)
            error, = report.errors
            self.assertEqual((error.check, error.offset), (check, offset))
            self.assertIn("INVALID", str(report))
            error_of(FormatError, load, data, verify=True)

    def test_verify_goes_on_after_a_fault(self):
        rows = {name: {"dtype": "F32", "shape": [shape], "data_offsets": [0, 4]}
                for shape, name in enumerate("abcde", 1)}
        five = burnpack_file({"tensors": rows})
        later = mag_of_records(*[(name, (1,), 9, 4, 384) for name in (b"b", b"c", b"d")])
        for data, most, names in (five, 9, "bcde"), (five, 2, "bcd"), (later, 2, "bcd"):
            with Changed(tensorfmt, "MAX_ERRORS", most):
                self.assertEqual([name for _, name in failed(data)], list(names))


NOTES_OF_SAVED = {  # tensors that are saved (one whose name begins with s is sparse), what is noted
    "mag": read_table("""
        names  options                                             notes
        ['w']  {'metadata': {'a': -1, 'b': 0.5}}                   []
        ['w']  {'metadata': {'n': 0}}                              [(None, "type 0: 'n'")]
        []     {'metadata': {'a': -1, 'b': 5, 'c': True, 'd': 1}}  [(None, "'b', 'c', 'd'")]
        ['w']  {'metadata': {'n': 0}, 'version': 300}              []
    """),
    "ztensor": read_table(r"""
        names                 options  notes
        ['w', '', 'e\u0301']  {}       []
        ['w', 's']            {}       [('s', "layout 'sparse': ztensor 0.1.4")]
        ['w\0b', '\0']        {}       [('w\0b', 'a NUL in'), ('\0', 'a NUL in')]
        ['s\0b']              {}       [('s\0b', 'refuses the'), ('s\0b', 'dies of')]
    """),
    "primitiv": read_table("""
        names       options                                      notes
        ['w']       {}                                           []
        ['value']   {'kind': 'parameter'}                        []
        []          {'kind': 'optimizer', 'metadata': {'a': 1}}  []
        ['tensor']  {'kind': 'tensor'}                           [(None, 'no file of kind tensor')]
        []          {'kind': 'shape', 'dims': [2]}               [(None, 'no file of kind shape')]
    """),
    "tensorbuffers": read_table("""
        names            options          notes
        ['a', 'b', 'c']  {}               []
        ['a', 'b']       {'sort': False}  []
        ['b', 'a']       {'sort': False}  [(None, 'not sorted by id')]
    """),
}
BYTE_ORDERS = read_table("""
    entry                                                order   notes
    {}                                                   big     ['zstd']
    {}                                                   little  []
    {}                                                   None    []
    {'dtype': 'new'}                                     big     ["'new' is not known", 'zstd']
    {'dtype': 'int8', 'shape': [8]}                      big     ['zstd']
    {'dtype': 'int8', 'encoding': 'raw', 'shape': [17]}  big     ['one byte']
    {'dtype': 'int32', 'encoding': 'raw', 'size': 8}     big     []
    {'coords': 'zstd'}                                   None    ["layout 'sparse'", 'zstd']
    {'coords': 'raw'}                                    big     ["layout 'sparse'"]
""")  # of a float32 [2] in a frame of zstd, or of a sparse tensor
ORDER_NOTES = {
    "zstd": "'big' has no effect: data of zstd",
    "one byte": "'big' has no effect: int8 has one byte",
}


NOTES_OF_ODD = read_table("""
    format       change                                         note
    ztensor      {'dtype': 'f8'}                                dtype 'f8' is not known: ztensor
    ztensor      {'encoding': 'lz4', 'data_endianness': 'big'}  encoding 'lz4'
    ztensor      {'layout': 'tiled'}                            layout 'tiled' is not known
    mag          {'dtype': 'x', 'dtype_id': 13}                 dtype_id 13 ('x') is not known
    burnpack     F7                                             burn 0.21 refuses the whole file
    burnpack     Q9                                             quantization scheme
    burnpack     Q8S                                            None
    safetensors  {'dtype': 'F4', 'shape': [16]}                 None
    safetensors  {'dtype': 'F99', 'shape': [16]}                dtype of safetensors is called 'F99'
""")


def odd_file_of(kind, change):
    """Return (tensor, file) whose entry says something that is not known, perhaps."""
    if kind == "ztensor":
        return "a", ztensor_file(**change)
    if kind == "mag":
        return "b", mag300_entry("b", **change)
    if kind == "safetensors":
        return "w", safetensors_file({"w": change})
    if change in ("Q8S", "Q9"):
        change = scheme(change, store="Native")
    return "a", burnpack_of_dtype(tensorfmt.cbor_dumps(change))


class NoteTest(TestCase):
    """What the real library of a format refuses, or reads as something else, is noted."""

    def assertNotes(self, data, *wanted):
        """Assert that verify notes of the library these (tensor, words), and nothing else."""
        report = verify(data)
        self.assertTrue(report)
        found = [(row[2], row[3]) for row in report.rows if row[:2] == ("note", "library")]
        self.assertEqual([name for name, _ in found], [name for name, _ in wanted], found)
        for (_, text), (_, words) in zip(found, wanted):
            self.assertIn(words, text)

    def test_what_is_saved_though_the_real_library_refuses_it(self):
        coo = {"values": [1.0], "coords": [[1]]}
        sparse = tensor(shape=(3,), components=coo)
        for kind, rows in NOTES_OF_SAVED.items():
            for row in rows if chosen(kind) else ():
                tensors = [(name, sparse if name[:1] == "s" else F32) for name in row.names]
                with self.subTest(kind=kind, row=row):
                    self.assertNotes(dumps(tensors, format=kind, **row.options), *row.notes)

    def test_names_of_ztensor_2_that_are_not_in_nfc(self):
        nfc = ["w", "\u00e9", "\ud55c"]
        nfd = ["e\u0301", "\u212b", "x\u1112\u1161\u11ab"]  # the first: two letters
        data = dumps(dict.fromkeys(nfc + nfd, F32), format="ztensor", version=2)
        self.assertNotes(data, *[(name, "not in NFC") for name in nfd])

    def test_what_is_saved_again_though_the_real_library_refuses_it(self):
        for row in NOTES_OF_ODD:
            if chosen(row.format):
                with self.subTest(row=row):
                    name, data = odd_file_of(row.format, row.change)
                    notes = [(name, row.note)] if row.note else []
                    self.assertNotes(data, *notes)
                    self.assertNotes(dumps(load(data), format=row.format), *notes)

    @about("ztensor")
    @with_zstd
    def test_byte_orders_without_an_effect_are_noted(self):
        frame = zstd_frame(8)
        usual = {"name": "w", "offset": 64, "size": len(frame), "dtype": "float32", "shape": [2],
                 "layout": "dense", "encoding": "zstd"}
        coo = dict(usual, layout="sparse", sparse_format="coo", shape=[1 << 63], nnz=1,
                   dtype="float64", encoding="raw", size=8)
        part = {"dtype": "uint64", "offset": 64}
        coords = {"zstd": dict(part, encoding="zstd", size=len(frame), data_endianness="big"),
                  "raw": dict(part, encoding="raw", size=8)}
        for row in BYTE_ORDERS:
            entry = dict(usual, **row.entry)
            if "coords" in row.entry:
                entry = dict(coo, coords=coords[row.entry["coords"]])
            entry["data_endianness"] = row.order
            with self.subTest(row=row):
                data = ztensor_of_index(cbor_dumps([entry]), data=frame)
                words = [ORDER_NOTES.get(note, note) for note in row.notes]
                self.assertNotes(data, *[("w", text) for text in words])

    @about("tensorbuffers")
    def test_ids_that_are_not_those_of_names(self):
        """The real library looks for the id that is the hash of a name."""
        data = dumps({"a": tensor([1], "int8"), "b": tensor([2], "int8")}, format="tensorbuffers")
        self.assertNotIn("real library", str(verify(data)))
        a, b = [pack("<Q", load(data)[name].attrs["id"]) for name in "ab"]
        other, third = b"12345678", b"12345679"
        for changes, finds in (
                ([(a, other), (b, a), (other, b)], {"a": "'b'", "b": "'a'"}),
                ([(b, a)], {"a": "'a' or 'b'", "b": "no tensor"}),
                ([(a, other), (b, third)], {"a": "no tensor", "b": "no tensor"})):
            changed = replaced(data, *changes)
            report = verify(changed)
            self.assertTrue(report)
            notes = {row[2]: row[3].partition("finds ")[2] for row in report.rows
                     if "by its name the real library" in row[3]}
            self.assertEqual(notes, finds)
            again = dumps(load(changed), format="tensorbuffers")
            self.assertNotIn("real library", str(verify(again)))
        many = dumps({"t%d" % i: tensor([1], "int8") for i in range(9)}, format="tensorbuffers")
        with Changed(tensorfmt.TensorBuffers, "hash_name", lambda self, name: 5):
            self.assertIn("4 more", str(verify(many)))


SPARSE_PARTS = {
    "values": pack("<2f", 1, 2),
    "indices": pack("<2Q", 1, 4),
    "indptr": pack("<3Q", 0, 1, 2),
}


def sparse_file(bad=None, layout="sparse", sparse_format="csr", dtype="float32", index="uint64"):
    """Return a file of a csr tensor whose parts have checksums; that of `bad` is wrong."""
    facts, data = {}, b""
    for role, blob in SPARSE_PARTS.items():
        data += bytes(-len(data) % 64)
        checksum = crc32c(blob) ^ (role == bad)
        facts[role] = {"offset": 64 + len(data), "size": len(blob), "encoding": "raw",
                       "dtype": index, "checksum": "crc32c:0x%08X" % checksum}
        data += blob
    entry = dict(facts.pop("values"), name="w", dtype=dtype, shape=[2, 5], layout=layout, nnz=2,
                 sparse_format=sparse_format)
    if layout == "deep":
        facts = {"parts": [facts, {}]}
    return ztensor_of_index(cbor_dumps([dict(entry, **facts)]), data=data)


def two_hashed(version=2, **options):
    """Return a file of two tensors of 8 bytes, of which each has a digest."""
    tensors = {"a": tensor([1] * 8, "int8"), "b": tensor([2] * 8, "int8")}
    return dumps(tensors, format="ztensor", version=version, **options)


@about("ztensor")
class ChecksumTest(TestCase):
    """Each digest is looked at, once, or counted as not checked."""

    def test_work_that_a_small_file_asks_for(self):
        """What is one in the file is looked at once; what is too much in all is left out."""
        entry = {"offset": 64, "size": 16, "dtype": "float32", "shape": [4], "encoding": "raw"}
        raw = load(ztensor_file(dict(entry, name="a")))["a"].raw
        crc = "%08x" % crc32c(raw)
        sums = {"a": crc, "b": "0x" + crc, "c": "0x0" + crc, "d": crc}
        data = ztensor_file(*[dict(entry, name=name, checksum="crc32c:" + text)
                              for name, text in sums.items()])
        self.assertEqual(calls_of(tensorfmt, "hash_blocks", verify, data), 3)
        for less in 0, 1:  # a is free; so are d to verify() and b and c to nobody
            most = ratio(32 - less, len(data) + (1 << 20))
            with Changed(tensorfmt, "MAX_COPIES", most):
                report = verify(data)
                self.assertTrue(report)
                self.assertEqual(report.not_checked["checksums"], less)
                self.assertEqual(len(report.limits), less)
                self.refuses(["MAX_COPIES"], dumps, dict(load(data)), format="burnpack")
                if not less:
                    load(data, verify=True)
                    continue
                self.assertIn("not looked at", str(report))
                self.assertTrue(report.last_line().endswith(
                    ", 1 checksum not checked: take a larger MAX_COPIES (--max-copies)"))
                self.raises(Unsupported, "take MAX_COPIES = 1 (--max-copies 1)", load, data,
                            verify=True)

    def test_one_rotten_tensor_beside_many_equal_ones(self):
        """Each place is looked at once; what is too much in all leaves out no other."""
        zeros = {"z%d" % i: tensor(bytes(50000), "uint8") for i in range(300)}
        for name in "a", "zz":  # before and behind them
            data = dumps(dict(zeros, **{name: [1.5, 2.5]}), format="ztensor", version=2)
            bad = rotten(data, name)
            with Changed(tensorfmt, "MAX_COPIES", 1):
                self.assertEqual(verify(data).last_line(), "valid zTensor 2")
                for deep in False, True:
                    self.assertEqual(failed(bad, deep=deep), [("checksums", name)])
                self.assertEqual(error_of(FormatError, load, bad, verify=True).tensor, name)

    def test_nothing_is_hashed_twice(self):
        """Not to see if the file is canonical, nor what two tensors have in common."""
        tensors = {"a": F32, "b": F32, "c": tensor([5], "int8")}
        for options, count in ({"version": 2}, 2), ({"checksum": "sha256"}, 3):
            data = dumps(tensors, format="ztensor", **options)
            self.assertEqual(calls_of(tensorfmt, "hash_blocks", verify, data), count)
            self.assertIn("it has the same bytes", str(verify(data)))
            for deep in False, True:
                self.assertEqual(failed(rotten(data, "c"), deep=deep), [("checksums", "c")])

    def test_a_type_does_not_count_for_a_digest(self):
        data = dumps({"a": F32, "b": tensor(F32.tobytes(), "uint8")}, format="ztensor", version=2)
        self.assertEqual(calls_of(tensorfmt, "hash_blocks", verify, data), 1)
        self.assertIn("2 of 2 agree", str(verify(data)))
        self.assertEqual([name for _, name in failed(rotten(data, "a"))], ["a", "b"])

    def test_checksums_of_components(self):
        """All are looked at, also where nobody here can make a tensor of them."""
        for options in ({}, {"layout": "new"}, {"layout": "deep"}, {"sparse_format": "csc"},
                        {"dtype": "f8"}, {"index": "int32"}):
            good = sparse_file(**options)
            self.assertIn("3 of 3 agree", str(verify(good)))
            load(good, verify=True)
            for role in SPARSE_PARTS:
                data = sparse_file(role, **options)
                with self.subTest(role=role, **options):
                    self.assertEqual(failed(data), [("checksums", "w")])
                    error_of(FormatError, load, data, verify=True)

    def test_checksums_of_no_algorithm_are_counted(self):
        """Also that of an empty text, which says nothing."""
        entry = {"offset": 64, "size": 16, "dtype": "float32", "shape": [4], "encoding": "raw"}
        for text in "", ":", "0", "md5:00", "CRC32C:0", "xxh3:" + "0" * 16:
            for also in None, "crc32c:0", "sha256:0":
                report = verify(ztensor_file(dict(entry, name="a", checksum=text),
                                             dict(entry, name="b", checksum=also)))
                self.assertEqual(bool(report), also is None)
                self.assertEqual(report.not_checked["checksums"], 1)
                self.assertIn(", 1 checksum not checked", report.last_line())
                self.assertIn("of an unknown algorithm", str(report))
        none = ztensor_file(dict(entry, name="a", checksum=None))
        self.assertEqual(verify(none).last_line(), "valid zTensor 0.1")

    def test_parts_of_an_unknown_layout(self):
        """They are named and compared; what would lose them is refused."""
        data = sparse_file(layout="deep")
        names = [field.name for field in explain(data) if field.kind == "data"]
        self.assertEqual(names, ["data w", "data w.parts", "data w.parts[1]"])
        self.assertNotIn("no field names", str(verify(data)))
        other = data.replace(SPARSE_PARTS["indptr"], pack("<3Q", 0, 2, 2))
        self.assertTrue(load(data)["w"] == load(data)["w"])
        self.assertFalse(load(data)["w"] == load(other)["w"])
        self.assertTrue(diff(data, other))
        self.refuses(["layout 'deep' is not known"], dumps, load(data), format="ztensor")

    def test_each_part_of_an_unknown_layout_is_compared(self):
        """Whatever the fields are called that place it."""
        place = {"offset": 64, "size": 16}
        wrong = dict(place, checksum="crc32c:0x00000000")
        for more in (
                {"": place, "checksum": wrong["checksum"]},
                {"": wrong},
                {"x[2]": wrong, "x": [place, place]},
                {"x[2]": place, "x": [place, wrong]}):
            report = verify(ztensor_file(layout="tiled", **more))
            self.assertEqual(len(report.errors), 1)

    def test_slow_hashes_have_one_budget(self):
        data = two_hashed()
        for most, left in (16, ""), (15, ", 1 checksum"), (7, ", 2 checksums"):
            with without_xxhash(), Changed(tensorfmt, "MAX_SLOW_HASH", most):
                if left:
                    left += " not checked: take deep=True (--deep) or the module xxhash"
                self.assertEqual(verify(data).last_line(), "valid zTensor 2" + left)
                self.assertEqual(verify(data, deep=True).last_line(), "valid zTensor 2")
                load(data, verify=True)

    def test_a_quick_hash_leaves_nothing_out(self):
        """With xxhash the limit of slow hashes is not asked."""
        data = two_hashed()
        for most in 0, 8, 1 << 20:
            with Changed(tensorfmt, "fast_xxh3", lambda: Xxhash), Changed(
                    tensorfmt, "MAX_SLOW_HASH", most):
                report = verify(data)
                self.assertTrue(report)
                self.assertEqual(report.not_checked["checksums"], 0)
                self.assertIn("2 of 2 agree", str(report))
                self.assertEqual(failed(rotten(data, "b")), [("checksums", "b")])


def index_of_two_layouts():
    """Return the beginning of a .mag file up to its `aux`, and that, with which both readers open.

    It has a record of magnetron 0.1.2, and ours, in whose name the rest of that one is.
    """
    other = pack("<I3QI", 256, 2, 576, 2, 1) + b"x"
    record = other + b"k" * (260 - len(other))
    record += pack("<6qBQQ", 2, 0, 0, 0, 0, 0, 0, 8, 640)
    counts = uint32s(1, 0, 0)
    checksum = crc32(counts + other)

    def crc_of(aux):
        return crc32(counts + record + uint32s(aux))
    # crc_of(a ^ b) is crc_of(a) ^ crc_of(b) ^ crc_of(0): solve it for the checksum.
    rows = [(crc_of(1 << i) ^ crc_of(0), 1 << i) for i in range(32)]
    left, aux = checksum ^ crc_of(0), 0
    for bit in range(32):
        pivot = [row for row in rows if row[0] >> bit & 1][0]
        rows.remove(pivot)
        for i, (a, b) in enumerate(rows):
            if a >> bit & 1:
                rows[i] = a ^ pivot[0], b ^ pivot[1]
        if left >> bit & 1:
            left ^= pivot[0]
            aux ^= pivot[1]
    return b"MAG!" + uint32s(1, checksum) + counts + record, aux


@about("mag")
class TwoLayoutsTest(TestCase):
    def test_a_file_of_two_layouts(self):
        """Both readers of .mag 1 would open it, and find other values."""
        start, aux = index_of_two_layouts()
        both = (start + uint32s(aux)).ljust(704, b"\0")
        self.raises(Unsupported, "right in both layouts", load, both)
        self.assertFalse(verify(both))
        one = (start + uint32s(aux ^ 1)).ljust(704, b"\0")
        self.assertEqual(load(one).attrs["layout"], "magnetron-0.1.2")


# -- [12] the file itself ------------------------------------------------------------------------

PUBLIC = """load save dumps tensor detect convert verify explain diff File Tensor FormatError
    Unsupported FORMATS cbor_loads cbor_dumps msgpack_loads msgpack_dumps flat_loads FlatBuilder
    crc32c
    """.split()
LAZY = """argparse array base64 binascii bz2 collections copy ctypes dataclasses datetime decimal
    difflib email enum fnmatch fractions functools gzip hashlib heapq inspect itertools json locale
    logging lzma mmap numpy operator pathlib pickle random re shutil socket ssl string subprocess
    tempfile threading time traceback typing unittest urllib warnings weakref zipfile zlib
    compression backports zstandard pyzstd""".split()


def module_of(text):
    """Return a module made of source text."""
    from types import ModuleType
    module = ModuleType("made")
    exec(compile(text, "made.py", "exec"), module.__dict__)
    return module


def text_of(name):
    with open(os.path.join(HERE, name), encoding="ascii") as stream:  # ASCII, or an error
        return stream.read()


ABSENT_MODULES = "mmap", "array", "zlib", "hashlib", "difflib", "tempfile"
ABSENT_FUNCTIONS = (
    "replace", "fsync", "pread", "fstat", "chmod",
    "fchmod fchown chown listxattr getxattr setxattr supports_effective_ids",
)
ABSENT = """if 1:
    import ast, os, sys, unittest
    here, folder, cases = sys.argv[1:]
    sys.path.insert(0, here)
    import test_tensorfmt
    test_tensorfmt.folder_for = lambda test: folder
    for rows in (test_tensorfmt.FILES, test_tensorfmt.WRITTEN):
        rows[:] = dict([(row[0], row) for row in rows if row[3]]).values()  # one of each format
    usual, functions = dict(sys.modules), dict(vars(os))
    for absent, lost in ast.literal_eval(cases):
        print(absent, lost, file=sys.stderr)
        sys.modules.clear()
        sys.modules.update(usual, **dict.fromkeys(absent))
        vars(os).update(functions)
        for name in lost:
            vars(os).pop(name, None)
        unittest.main("test_tensorfmt", exit=False, verbosity=2, argv=["",
            "GoldenTest.test_saved_to_a_path", "GoldenTest.test_from_bytes_paths_and_streams",
            "RoundTripTest.test_big_endian_files_hold_swapped_bytes"])
"""


@about()
class ModuleTest(TestCase):
    def test_public_names(self):
        self.assertEqual(tensorfmt.__all__, PUBLIC)
        self.assertEqual([name for name in PUBLIC if not hasattr(tensorfmt, name)], [])
        self.assertEqual(tuple([kind.NAME for kind in tensorfmt.FORMATS]), READ)
        written = [kind.NAME for kind in tensorfmt.FORMATS if not kind.READ_ONLY]
        self.assertEqual(tuple(written), names_of(SAVED))

    @unittest.skipIf(PYTHON < (3, 7), "modules have no __dir__")
    def test_dir_shows_what_is_public(self):
        shown = dir(tensorfmt)
        limits = [name for name in vars(tensorfmt) if name.startswith("MAX_")]
        self.assertEqual(shown, sorted(PUBLIC + limits))
        self.assertLessEqual(len(shown), 45)

    @documented
    def test_what_completion_shows_of_a_tensor_is_documented(self):
        known = tensorfmt.CALLS["load"].split() + ["name", "dtype", "shape", "format"]
        docs = tensorfmt.Tensor.__slots__
        bare = []
        for name in dir(tensorfmt.Tensor):
            doc = docs.get(name) or getattr(tensorfmt.Tensor, name).__doc__
            if name[0] != "_" and name not in known and not doc:
                bare.append(name)
        self.assertEqual(bare, [])

    def test_contents_are_the_banners(self):
        for name in "tensorfmt.py", "test_tensorfmt.py":
            text = text_of(name)
            contents = text.split('"""')[1]
            listed = re.findall(r"(?m)^    \[(\w+)\] (\S+(?: \S+)*)", contents)
            banners = re.findall(r"(?m)^# -- \[(\w+)\] (.+?) -+$", text)
            with self.subTest(file=name):
                self.assertGreater(len(banners), 10)
                self.assertEqual(banners, listed)
                self.assertEqual(len(banners), len(re.findall("(?m)^# --", text)))
                lines = re.findall(r"(?m)^ +(?:\[|\w+Test\b).*", contents)
                classes = re.findall(r"(?m)^class (\w+Test)\b", text)
                self.assertEqual(re.findall(r"\b\w+Test\b", "\n".join(lines)), classes)

    @tells_ends
    def test_how_it_runs_names_functions_that_there_are(self):
        """What the docstring of the module says of load(), save() and errors."""
        doc = text_of("tensorfmt.py").split('"""')[1]
        told = doc[doc.index("How load("):doc.index("Part I is ")]
        self.assertEqual(told.count("\nHow "), 2)
        known = set()
        for piece in tensorfmt.split_source(text_of("tensorfmt.py")):
            known.update(piece.defines)
            for member in piece.members:
                known.update(member.defines)
                known.update(["%s.%s" % (piece.defines[0], name) for name in member.defines])
        names = re.findall(r"\b(?:[A-Z]\w+\.)?[a-z]+_\w+|\b[A-Z]\w+\.[a-z]\w+|\b\w+(?=\()", told)
        names += re.findall(r"-> (\w+)", told) + re.findall(r"(?m)^ {14,20}(\w+) ", told)
        self.assertTrue(len(names) > 30, names)
        self.assertEqual(sorted(set(names) - known), ["for"])

    def test_help_of_the_tests_says_what_else_the_file_does(self):
        code, out, _ = run("python3", os.path.join(HERE, "test_tensorfmt.py"), "-h")
        self.assertEqual(code, 0)
        words = ("--format NAME", "--accept", " fuzz ", " bench ", " corpus ", "unittest")
        for word in words + names_of(EVERY):
            self.assertIn(word, out)

    def test_doctests(self):
        import doctest
        texts = {name: getattr(tensorfmt, name).__doc__ for name in PUBLIC}
        texts["FORMATS"] = tensorfmt.Format.__doc__
        is_documented = sys.flags.optimize < 2
        if is_documented:
            self.assertEqual([name for name in texts if ">>> " not in texts[name]], [])
        result = doctest.testmod(tensorfmt)
        self.assertEqual(result.failed, 0)
        self.assertEqual(result.attempted > 15, is_documented)

    @little
    def test_import_loads_no_optional_module(self):
        code = "import sys; sys.path.insert(0, %r); %%s; print(*sorted(sys.modules))" % HERE
        bare, with_us = [run("python3", "-I", "-S", "-c", code % what)[1].split()
                         for what in ("pass", "import tensorfmt")]
        self.assertIn("tensorfmt", with_us)
        tops = {name.split(".")[0] for name in set(with_us).difference(bare)}
        self.assertEqual(tops.intersection(LAZY), set())
        self.assertLess(len(tops), 30, tops)

    def test_what_a_platform_may_lack(self):
        cases = [((name,), ()) for name in ABSENT_MODULES]
        cases += [((), tuple(names.split())) for names in ABSENT_FUNCTIONS]
        cases.append((("mmap", "array", "zlib", "hashlib"), ("replace", "pread")))
        if sys.byteorder == "big":  # it matters where arrays swap bytes
            cases = cases[1:2] + cases[-1:]
        code, out, err = run("python3", "-c", ABSENT, HERE, folder_for(self), repr(cases))
        self.assertEqual((code, out), (0, ""), err)
        self.assertEqual(err.count("... ok"), 3 * len(cases), err)


@about()
class LayersTest(TestCase):
    # What saves, then the tools; all others load.
    LATER = ("work", "save", "values: tensor()", "safe saving"), (
        "places", "explain", "verify", "convert", "diff", "page", "vendor", "stand-ins",
        "command line")

    def layer_of_lines(self, text):
        """Return the layer of each line."""
        layers = [0]
        for line in text.split("\n"):
            title = re.match(r"# -- \[\w+\] (.+?) -+$", line)
            layer = layers[-1]
            if title:
                layer = 0
                for number, titles in enumerate(self.LATER, 1):
                    if title.group(1) in titles:
                        layer = number
            layers.append(layer)
        return layers

    def uses(self, text):
        """Return "NAME in OWNER" of each name that a statement uses of a later layer."""
        layers = self.layer_of_lines(text)
        pieces = tensorfmt.split_source(text)
        defined = {}
        for piece in pieces:
            for name in piece.defines:
                defined.setdefault(name, layers[piece.last])
        found = set()
        for piece in pieces:
            for user in [piece] + piece.members:
                for name in user.names:
                    if defined.get(name, 0) > layers[piece.last]:
                        found.add("%s in %s" % (name, piece.defines[0]))
        return sorted(found)

    PARTS = ("I", "II", "III")

    def later_names(self, text):
        """Return "NAME in OWNER" of each name of a later part that has no stand-in.

        It has one if it is of an optional part of copies.
        """
        starts = [text[:text.index("# == %s " % part)].count("\n") for part in self.PARTS]
        pieces = tensorfmt.split_source(text)
        part_of = {}
        optional = set()
        for piece in pieces:
            for name in piece.defines:
                part_of.setdefault(name, self.part_at(starts, piece))
                if piece.parts:
                    optional.add(name)
                if name.startswith(tensorfmt.PLAIN):
                    optional.add(name[len(tensorfmt.PLAIN):])
        found = []
        for piece in pieces:
            here = self.part_at(starts, piece)
            for user in [piece] + piece.members:
                for name in user.names - optional:
                    if part_of.get(name, 0) > here:
                        found.append("%s in %s" % (name, piece.defines[0]))
        return sorted(set(found))

    @staticmethod
    def part_at(starts, piece):
        return len([start for start in starts if piece.last > start])

    @documented
    @tells_ends
    def test_a_part_knows_later_ones_by_their_stand_ins_only(self):
        text = text_of("tensorfmt.py")
        self.assertEqual(self.later_names(text), [])
        text += "def new_tool():\n    pass\n"
        for place in "# == II ", "# == III ":
            user = "def early():\n    make_page(0), new_tool()\n"
            changed = text.replace(place, user + place, 1)
            self.assertEqual(self.later_names(changed), ["new_tool in early"])

    @documented
    @tells_ends
    def test_loading_knows_nothing_of_saving_nor_saving_of_tools(self):
        self.assertEqual(self.uses(text_of("tensorfmt.py")), [
            "check_file in load",  # load(verify=True)
            "check_work in Tensor", "check_work in has_same_values",  # what is decoded for it
            "read_again in read_file"])  # errors
        text = "A = 1\ndef f(b):\n    return A, b, c\n# -- [2] save -\nc = 1\ndef g():\n    e()\n"
        self.assertEqual(self.uses(text + "# -- [3] diff -\ndef e():\n    c, f\n"),
                         ["c in f", "e in g"])


# -- [13] copies ---------------------------------------------------------------------------------

REFUSES = "this copy was made without "
COPY_PARTS = [part for part in tensorfmt.PARTS if part != tensorfmt.WHOLE]  # of --with
SOURCE = {}  # the statements of the module, found once; answers of the whole; copies by their text


def text_of_copy(formats, parts):
    """Return the text of a copy with some formats and parts."""
    whole = text_of("tensorfmt.py")
    if not SOURCE:
        SOURCE["pieces"] = tensorfmt.split_source(whole)
    kinds = [kind for kind in tensorfmt.FORMATS if kind.NAME in formats]
    return tensorfmt.make_copy(whole, SOURCE["pieces"], kinds, parts)


def make_copy(formats, parts):
    """Return (text, module) of a copy with some formats and parts."""
    text = text_of_copy(formats, parts)
    if text not in SOURCE:
        SOURCE[text] = module_of(text)
    return text, SOURCE[text]


def answer_of(module, source):
    """Return all that a module, whole or a copy, says of a file, or why it refuses it."""
    try:
        file = module.load(source)
    except module.FormatError as error:
        return type(error).__name__, error.field, error.offset, error.tensor, error.what
    rows = [file.format, list(file.attrs.items()), list(file.metadata.items())]
    for name, item in file.items():
        rows.append([name, item.dtype, item.shape, item.offset, list(item.attrs.items()),
                     tohex(item.raw)])
        try:
            rows[-1] += [item.tobytes(), list(item.flat)]
        except module.Unsupported as error:
            rows[-1].append(error.what)
    return rows


def known_answers():
    """Return rows (title, bytes, format, good, answer of the whole) of goldens and bad files."""
    if "answers" not in SOURCE:
        rows = [row[1:3] + (True,) for row in FILES] + [row[:2] + (False,) for row in bad_files()]
        SOURCE["answers"] = [(title, data, detect(data), good, answer_of(tensorfmt, data))
                             for title, data, good in rows]
    return SOURCE["answers"]


@about()
@tells_ends
class CopyTest(TestCase):
    """Copies with one format and each part are made, load, show, save, refuse."""

    def test_every_copy_loads_shows_saves_and_refuses(self):
        seen = set()  # a part that a format has no use for changes nothing
        names = [kind.NAME for kind in tensorfmt.FORMATS if chosen(kind.NAME)]
        rows = [sorted({"load", part}) for part in COPY_PARTS if part != "tools"]
        for name, parts in [(name, parts) for name in names
                            for parts in rows + [list(COPY_PARTS)]]:
            text, copy = make_copy([name], parts)
            if copy not in seen:
                seen.add(copy)
                with self.subTest(format=name, parts=parts):
                    self.check_text(text, copy, name, parts)
                    self.check_files(copy, name, parts)
                    self.check_other_formats(copy, name)

    def check_text(self, text, copy, name, parts):
        """Assert that all names are defined and used, and that a copy has what was asked for."""
        self.assertEqual([kind.NAME for kind in copy.FORMATS], [name])
        self.assertEqual([name for name in copy.__all__ if not hasattr(copy, name)], [])
        self.assertEqual("save" in copy.__all__, "save" in parts)
        self.assertEqual("explain" in copy.__all__, "tools" in parts)
        if "tools" not in parts:
            self.assertEqual(re.findall(r"def plain_|\(--[a-z]\w+", text), [])
            self.assertEqual(re.findall("(?m)^ +>>> .*|.{101}", text), [])
            self.check_unused(text, copy)
        if "save" in parts:
            self.assertEqual(types_left_out(text), set())
        if parts == ["load"]:  # what runs on boards: they have no such slices
            self.assertNotIn("[::-1]", text)
        for section in re.split("(?m)^# -- .*", text)[1:]:
            self.assertTrue(re.search(r"(?m)^[^#\s]", section), "an empty section")
        if not PYPY and len(parts) < 3:
            self.assertEqual(undefined_names(text), [])

    def check_unused(self, text, copy):
        """Assert that a copy has nothing that it does not use."""
        from collections import Counter
        words = Counter(re.findall(r"\w+", text))
        public = set(vars(copy.File)).union(vars(copy.Tensor))
        defined = re.findall(r"(?m)^(?:def(?! __)|class|    def(?= [a-z])) (\w+)", text)
        unused = [name for name in defined if words[name] < 2 and name not in public]
        self.assertEqual(unused, [])
        self.assertEqual("Multiples of the polynomial" in text, "CRC32C_FOLDS" in text)

    def check_files(self, copy, name, parts):
        """Compare with the whole: all files of a copy that has load alone, of others a few."""
        counts = {True: 0, False: 0}  # of goldens, of bad files
        for title, data, kind, good, wanted in known_answers():
            if kind != name:
                continue
            counts[good] += 1
            is_saved = good and title in AGAIN and "save" in parts
            if parts != ["load"] and counts[good] > 2 and not is_saved:
                continue
            with self.subTest(file=title):
                answer = answer_of(copy, data)
                self.check_answer(answer, wanted, good, parts)
                if isinstance(answer, list):  # it is not refused
                    file = copy.load(data)
                    self.check_shown(file)
                    if is_saved:
                        again = copy.dumps(file, format=name, **AGAIN[title])
                        self.assertEqual(again, data)
        self.assertTrue(counts[True], "no golden of %s: add one to [2]" % name)
        self.assertTrue(counts[False], "no bad file of %s: add a function to BAD_FILES" % name)

    def check_other_formats(self, copy, name):
        """Assert that a copy refuses every other format by its name."""
        others = {row[2]: row[1] for row in known_answers() if row[3] and row[2] != name}
        for other, data in others.items():
            with self.subTest(other=other):
                what = error_of(copy.Unsupported, copy.load, data).what
                self.assertEqual(re.sub("300|2$", "", what), REFUSES + other)
                self.assertEqual(copy.detect(data), other)

    def check_answer(self, answer, wanted, good, parts):
        """Compare what a copy says of a file with what the whole says."""
        if self.refused(answer, parts):
            return
        if good:
            self.check_good(answer, wanted, parts)
        elif isinstance(answer, list):  # what is wrong is in a part that it lacks
            self.assertTrue(self.refused(answer[3], parts))
        else:  # of offset and field, the walk for errors finds more
            self.assertIn(answer[0], ("FormatError", wanted[0]))
            self.assertIsInstance(answer[2], int)
            if answer[3] is not None and wanted[3] is not None:
                self.assertEqual(answer[3], wanted[3])

    def refused(self, answer, parts):
        """Return whether an answer ends with the error for a part that a copy lacks."""
        if not answer or not isinstance(answer[-1], str) or not answer[-1].startswith(REFUSES):
            return False
        lacks = answer[-1][len(REFUSES):]
        self.assertIn(lacks, COPY_PARTS)
        self.assertNotIn(lacks, parts)
        return True

    def check_good(self, answer, wanted, parts):
        """Assert that a copy says of a file what the whole says, but for values that it lacks."""
        self.assertEqual(len(answer), len(wanted))
        for row, known in zip(answer, wanted):
            if self.refused(row, parts):
                row, known = row[:2], known[:2]  # name and dtype
            self.assertSame(row, known)

    def check_shown(self, file):
        self.assertTrue(repr(file).startswith("<File " + file.format))
        for item in file.values():
            self.assertTrue(repr(item).startswith("<Tensor "))

    @about("burnpack")
    def test_what_a_copy_lacks_is_named(self):
        _, made = make_copy(["burnpack"], ["load"])
        data = dumps({"b": tensor([1.5], "bfloat16"), "w": F32}, format="burnpack")
        file = made.load(data)
        item = file["b"]  # torch and numpy would go through its numbers one by one
        for lacks, call, *args in (
                ("casts", item.astype, "int8"), ("pickles", pickle.dumps, item),
                ("pickles", pickle.dumps, file), ("pickles", deepcopy, file),
                ("arrays", item.__array__), ("arrays", item.__dlpack__),
                ("tools", lambda: made.load(data, verify=True)), ("zstd", made.left_out("zstd"), 1),
                ("shards", made.load, folder_for(self)),
                ("mag", made.load, golden("seed_basic.mag")),
                ("mag", lambda: made.load(data, format="mag"))):
            with self.subTest(lacks=lacks):
                self.assertEqual(error_of(made.Unsupported, call, *args).what, REFUSES + lacks)
        self.assertFalse(isinstance(5, made.left_out("zstd")))

    @about("burnpack")
    def test_tensors_of_a_copy_are_compared(self):
        data = dumps({"b": tensor([1.5], "bfloat16"), "w": F32}, format="burnpack")
        made = make_copy(["burnpack"], ["load"])[1]
        file, again = made.load(data), made.load(data)
        item = file["b"]
        self.assertEqual(hash(item), hash(item))
        self.assertTrue(item == item and item == again["b"] and item in [again["b"]])
        self.assertFalse(item == file["w"])
        self.assertEqual(file["w"].__array_interface__["typestr"], "<f4")
        error_of(AttributeError, getattr, item, "__array_interface__")

    @about("burnpack")
    def test_streams_of_a_copy(self):
        """Without the part that lets Files take turns, all bytes of a stream are read at once."""
        data = dumps({"w": F32}, format="burnpack")
        for parts in ["load"], ["load", "streams"]:
            made = make_copy(["burnpack"], parts)[1]
            for at in 0, len(data):
                stream = io.BytesIO(data)
                stream.seek(at)
                file = made.load(stream)
                self.assertEqual((stream.tell(), file["w"].tobytes()), (at, F32.tobytes()))
                stream.close()
                if "streams" in parts:
                    error_of(ValueError, file["w"].tobytes)
                else:
                    self.assertEqual(file["w"].tobytes(), F32.tobytes())
            stream = io.BytesIO(data)
            stream.seek(1)
            self.assertIn("seek(0)", str(error_of(ValueError, made.load, stream)))

    @about("burnpack")
    def test_a_board_is_known_by_its_name(self):
        """Also one whose gc has no threshold(), as CPython's: CircuitPython."""
        from types import SimpleNamespace
        text = make_copy(["burnpack"], ["load"])[0]
        rows = [row for row in known_answers() if row[2] == "burnpack" and row[3]][:3]
        for name, is_board in (("micropython", True), ("circuitpython", True), ("pypy", False)):
            with Changed(sys, "implementation", SimpleNamespace(name=name)):
                copy = module_of(text)
            self.assertEqual(copy.BOARD, is_board)
            for title, data, _, _, wanted in rows:
                with self.subTest(name=name, file=title):
                    self.assertSame(answer_of(copy, io.BytesIO(data)), wanted)

    @about("ztensor")
    def test_unknown_layouts_of_a_copy(self):
        """A tensor of a layout that nobody knows is listed, with its parts if it is saved."""
        blob = dumps({"w": [1.0]}, format="ztensor")[:72]
        entry = dict(name="w", offset=64, size=8, dtype="float64", shape=[1], encoding="raw",
                     layout="ragged", part=dict(offset=64, size=8, encoding="raw"))
        index = cbor_dumps([entry])
        data = blob + index + pack("<Q", len(index))
        for parts, lists in (["load"], False), (["load", "save"], True), (["load", "zstd"], False):
            item = make_copy(["ztensor"], parts)[1].load(data)["w"]
            self.assertEqual((item.nbytes, hasattr(item, "parts")), (8, lists))

    @about("ztensor")
    @documented
    def test_saving_without_digests(self):
        """Damaged bytes are copied without a word; a copy that has the part refuses them."""
        data = bytearray(dumps({"w": [1.0]}, format="ztensor", checksum="crc32c"))
        data[64] ^= 1
        for part, refuses in ("save", False), ("digests", True), ("tools", True):
            with self.subTest(part=part):
                made = make_copy(["ztensor"], ["load", "save", part])[1]
                self.assertEqual("damaged" in made.save.__doc__, refuses)
                file = made.load(data)
                if refuses:
                    error = error_of(made.FormatError, made.dumps, file, format="ztensor")
                    self.assertIn("crc32c", error.what)
                else:
                    again = made.load(made.dumps(file, format="ztensor"))
                    self.assertEqual(again["w"].tobytes(), file["w"].tobytes())

    @unittest.skipUnless(os.name == "posix", "modes of files")
    @documented
    def test_saving_without_access(self):
        """Nobody may do more with the new file than before; a copy with the part keeps all."""
        path = os.path.join(folder_for(self), "m.mag")
        for part, mode in ("save", 0o644), ("access", 0o664):
            with self.subTest(part=part):
                made = make_copy(["mag"], ["load", "save", part])[1]
                self.assertEqual("neither owner" in made.save.__doc__, part == "save")
                write_file(path, b"old")
                os.chmod(path, 0o664)
                made.save(path, {"w": F32}, format="mag")
                self.assertEqual(os.stat(path).st_mode & 0o777, mode)
                self.assertEqual(made.load(path)["w"].tobytes(), F32.tobytes())

    def test_values_with_gaps_of_a_copy(self):
        """They are gathered row by row; on boards, and what is reversed, element by element."""
        data = dumps({"w": tensor(list(range(60)), "int32", (3, 4, 5))}, format="mag")
        made = make_copy(["mag"], ["load"])[1]
        whole, found = [module.load(data)["w"] for module in (tensorfmt, made)]
        rest = slice(None)
        keys = [(rest, 1), (Ellipsis, slice(0, 5, 2)), (2, slice(None, None, -1)),
                (slice(1, 1), 0), (rest, rest, -1)]
        for board in False, True:
            with Changed(made, "BOARD", board):
                for key in keys:
                    with self.subTest(key=key, board=board):
                        blocks = found[key].iter_bytes()
                        self.assertEqual(b"".join(map(bytes, blocks)), whole[key].tobytes())

    def test_command(self):
        path = os.path.join(folder_for(self), "copied.py")
        args = "--formats", "mag", "--with", "save,zstd"
        twice = "--formats", "mag", "--with", "save", "--with", "zstd"  # as one list
        self.assertEqual(run("vendor", path, *twice)[::2], (0, ""))
        digest = sha256(read_file(os.path.join(HERE, "tensorfmt.py"))).hexdigest()
        about = ("# A copy of tensorfmt %s, of the file with this SHA-256:\n# %s\n"
                 "# made by: tensorfmt vendor OUT.py %s\n")
        about %= tensorfmt.__version__, digest, " ".join(args)
        made = make_copy(["mag"], ["load", "save", "zstd"])[0]
        self.assertEqual(read_file(path).decode("ascii"), tensorfmt.seal_copy(made, about))
        self.assertEqual(run("python3", path), (
            2, "", "a copy of tensorfmt to import, without a command line\n"))
        self.assertEqual(run("vendor", path)[::2], (0, ""))  # all of it, which makes copies
        again = path[:-3] + "2.py"
        self.assertEqual(run("python3", path, "vendor", again, "--with", "load")[::2], (0, ""))
        code = "import sys; sys.path.insert(0, %r); import copied2 as c; print(*c.__all__[:7])"
        self.assertEqual(run("python3", "-S", "-I", "-c", code % os.path.dirname(path)), (
            0, "load detect File Tensor FormatError Unsupported FORMATS\n", ""))

    def test_no_copy_replaces_an_edited_one(self):
        path = os.path.join(folder_for(self), "copied.py")
        for edit, fine in ((b"", True), (b"\n", False), (b"x = 1\n", False)):
            with self.subTest(edit=edit):
                if os.path.exists(path):
                    os.remove(path)
                for lines in (b"\n", b"\r\n"):  # git may have changed them
                    self.assertEqual(run("vendor", path, "--with", "load")[0], 0)
                    with open(path, "rb") as stream:
                        data = stream.read().replace(b"\n", lines)
                    with open(path, "wb") as stream:
                        stream.write(data)
                with open(path, "ab") as stream:
                    stream.write(edit)
                code, _, err = run("vendor", path)
                self.assertEqual((code, "edited since?" in err), (0, False) if fine else (1, True))

    def test_check_tells_whether_a_copy_is_as_it_was_made(self):
        path = os.path.join(folder_for(self), "copied.py")
        self.assertEqual(run("vendor", path, "--formats", "mag", "--with", "load")[0], 0)
        good = read_file(path)
        made = "it was made by tensorfmt %s: vendor OUT.py --formats mag --with load"
        version = tensorfmt.__version__.encode()
        source = sha256(read_file(os.path.join(HERE, "tensorfmt.py"))).hexdigest().encode()

        def sealed_again(data):
            text = re.sub("# This is the SHA.*\n.*\n", "", data.decode())
            about = text[text.index("\n") + 1:].partition("#\n")[0]
            return tensorfmt.seal_copy(text.replace(about, "", 1), about).encode()

        old = sealed_again(good.replace(version, b"0.4.9").replace(source, b"0" * 64))
        for title, data, code, out in (
                ("as made", good, 0, ": as %s, of this file\n" % made),
                ("lines of Windows", good.replace(b"\n", b"\r\n"), 0, ", of this file\n"),
                ("code", good.replace(b"== 0", b"!= 0", 1), 1, ": edited since %s\n" % made),
                ("version", good.replace(version, b"9.9", 1), 1, "edited since"),
                ("a new checksum", sealed_again(good + b"x = 1\n"), 1, "edited since"),
                ("older", old, 0, ": as %s, of another file than this\n"
                 % made.replace("%s", "0.4.9")),
                ("older, edited", old + b"x = 1\n", 1, "edited since"),
                ("no copy", b"x = 1\n", 2, ""), ("empty", b"", 2, "")):
            with self.subTest(title):
                write_file(path, data)
                found, text, err = run("vendor", "--check", path)
                self.assertEqual(found, code, (text, err))
                self.assertIn(out.replace("%s", tensorfmt.__version__), text)
                self.assertEqual("not a copy that vendor made" in err, code == 2)
                self.assertEqual(read_file(path), data)
        write_file(path, good)
        with Changed(sys, "version_info", (3, 7)):  # which makes no copy
            self.assertEqual(run("vendor", "--check", path)[0], 0)
        code, _, err = run("vendor", "--check", path, "--with", "load")
        self.assertEqual((code, "takes OUT.py alone" in err), (2, True))

    @documented
    def test_a_copy_offers_only_what_it_has(self):
        text = text_of("tensorfmt.py").partition("# -- [14b]")[0]
        for _, words, _ in tensorfmt.OFFERS:
            self.assertIn(" ".join(words.split()), " ".join(text.split()))
        loads, saves = [make_copy(["mag"], ["load", part])[1] for part in ("load", "save")]
        self.assertNotIn("verif", loads.load.__doc__)
        for name, offers in ("mag", True), ("ztensor", False), ("tensorbuffers", False):
            doc = make_copy([name], ["load"])[1].load.__doc__
            self.assertEqual("`partial`" in doc, offers)
        self.assertIn("finds. `partial`", " ".join(tensorfmt.load.__doc__.split()))
        self.assertIn("verify", make_copy(["mag"], ["load", "tools"])[1].load.__doc__)
        self.assertNotIn("converts", saves.tensor.__doc__)
        self.assertNotIn("`cast`", saves.save.__doc__)
        error = error_of(saves.Unsupported, saves.dumps, {"w": [1.0]}, format="mag", cast="int32")
        self.assertEqual(error.what, REFUSES + "casts")
        error = error_of(ValueError, saves.tensor, array("H", [1]), "float16")
        self.assertNotIn("astype", str(error))

    def test_parts_are_told_once_and_checked(self):
        from inspect import signature
        pieces = tensorfmt.split_source(text_of("tensorfmt.py"))
        tensorfmt.check_parts(pieces)
        optional = [name for piece in pieces if piece.parts for name in piece.defines]
        for piece in pieces:
            for name in piece.defines:
                if name.startswith(tensorfmt.PLAIN):
                    whole = name[len(tensorfmt.PLAIN):]
                    self.assertIn(whole, optional)
                    self.assertEqual(list(signature(getattr(tensorfmt, name)).parameters),
                                     list(signature(getattr(tensorfmt, whole)).parameters))
        text = text_of("tensorfmt.py")
        for old, new, named in (
                ("# -- [12a] other files -", "# -- [12a] others -", "[12a] other files"),
                ("def cbor_float(", "def cbor_floats(", "cbor_float"),
                ("    def decoded(", "    def undone(", "Tensor.decoded"),
                ("def plain_gather(", "def plain_gathered(", "gathered")):
            error = error_of(ValueError, tensorfmt.make_copy, text,
                             tensorfmt.split_source(text.replace(old, new)),
                             list(tensorfmt.FORMATS[:1]), ["load"])
            self.assertEqual(str(error), "no section or name %s: see PARTS" % named)

    @about("burnpack")
    def test_tools_alone(self):
        """What only looks at a file needs no other part."""
        text, made = make_copy(["burnpack"], ["load", "tools"])
        self.assertEqual(types_left_out(text), set())
        bad = "x = Other = left_out('t')\ndef f(a: \"List[Other]\") -> x: ..."
        self.assertEqual(types_left_out(bad), {"x", "Other"})
        good = dumps({"w": tensor([[1.0, 2.0]]), "x": tensor(3)}, format="burnpack")
        canonical = "-     canonical    it cannot be saved again: this copy was made without save"
        for data in good, good[:-3], good[:20], good + good:
            found, whole = [str(module.verify(data)).split("\n") for module in (made, tensorfmt)]
            if canonical in found:
                whole[found.index(canonical)] = canonical
            self.assertEqual(found, whole)
        file = made.load(good)
        for name, item in load(good).items():
            self.assertEqual(repr(file[name]), repr(item))
        self.assertEqual(str(made.diff(good, good)), str(diff(good, good)))
        self.assertTrue(file["w"] == made.load(good)["w"])

    @about("burnpack")
    def test_commands_of_tools_alone(self):
        made = make_copy(["burnpack"], ["load", "tools"])[1]
        path = os.path.join(folder_for(self), "t.bpk")
        tensorfmt.save(path, {"w": tensor([[1.0, 2.0]]), "x": tensor(3)})
        for line in "ls", "get *", "get --stats", "get w --raw", "explain", "diff " + path:
            word, *more = line.split()
            outs = []
            for module in made, tensorfmt:
                out = io.TextIOWrapper(io.BytesIO())
                with Changed(sys, "stdout", out):
                    self.assertEqual(module.main([word, path] + more), 0)
                outs.append(out.buffer.getvalue())
            self.assertEqual(*outs)

    @about("burnpack")
    def test_a_copy_converts(self):
        made = make_copy(["burnpack"], list(COPY_PARTS))[1]
        source, target = [os.path.join(folder_for(self), name) for name in ("s.bpk", "t.bpk")]
        tensorfmt.save(source, {"w": F32})
        with redirect_stdout(io.StringIO()):
            self.assertEqual(made.main(["convert", source, target, "--cast", "float64"]), 0)
        self.assertEqual(load(target)["w"].tolist(), F32.tolist())

    @about("burnpack")
    def test_what_tools_alone_lack_is_named(self):
        made = make_copy(["burnpack"], ["load", "tools"])[1]
        quantized = make_burnpack(*QUANTIZED)
        words = REFUSES + "quantized"
        self.assertEqual(error_of(made.Unsupported, made.load, quantized).what, words)
        self.assertEqual(error_of(made.Unsupported, list, made.explain(quantized)).what, words)
        self.assertIn(words, str(made.verify(quantized)))

    def test_no_copy_replaces_its_source(self):
        source, link = [os.path.join(folder_for(self), name) for name in ("s.py", "l.py")]
        self.assertEqual(run("vendor", source)[0], 0)
        os.symlink(source, link)
        before = read_file(source)
        for target in (source, link):
            code, _, err = run("python3", source, "vendor", target)
            self.assertEqual((code, "would replace its own source" in err), (1, True))
        self.assertEqual(read_file(source), before)


def write_board_files(folder):
    """Write the files that .docs/boards.md reads."""
    values = tensor([[1.5, 2.5, 3.0], [4.0, 5.0, 6.5]], "float32")
    small = values.astype("float8_e4m3fn")
    for name, item, options in (("model.bpk", values, {}), ("model.primitiv", values, {}),
                                ("float8.zt", small, {"version": "2"})):
        save(os.path.join(folder, name), {"w": item}, **options)
    write_file(os.path.join(folder, "q.bpk"), make_burnpack(BLOCK4._replace(name="q")))


def types_left_out(text):
    """Return the names that annotations use as types and a copy has not."""
    import ast
    lacking, types = set(), set()
    for names in re.findall(r"(?m)^(\w+ = .*)left_out\(", text):
        lacking.update(names[:-3].split(" = "))
    for node in ast.walk(ast.parse(text)):
        for field in "annotation", "returns":
            note = getattr(node, field, None)
            if note:
                types.update(re.findall(r"\w+", ast.dump(note)))
    return lacking & types


def undefined_names(text):
    """Return the names that a source text uses but nobody defines."""
    import symtable
    tables, missing = [symtable.symtable(text, "copied.py", "exec")], set()
    known = set(dir(builtins)) | {"__file__", "__name__", "__conditional_annotations__"} | {
        symbol.get_name() for symbol in tables[0].get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        missing |= {symbol.get_name() for symbol in table.get_symbols()
                    if symbol.is_global() and symbol.get_name() not in known}
    return sorted(missing)


# -- [14] README ---------------------------------------------------------------------------------


def about_sizes(out, wanted):
    """Return a text with the sizes of a copy as wanted, where they differ by at most 10 %."""
    pattern = r"(?m)^(wrote \S+), (\d+) bytes, (\d+) lines$"
    found, listed = re.findall(pattern, out), re.findall(pattern, wanted)
    for row, other in zip(found, listed):
        if row[0] == other[0] and not [1 for a, b in zip(row[1:], other[1:])
                                       if abs(int(a) - int(b)) > 0.1 * int(b)]:
            out = out.replace("%s, %s bytes, %s lines" % row, "%s, %s bytes, %s lines" % other)
    return out


def text_changed(text, diff):
    """Return a text with the changes of a diff; a line of three dots is between two places."""
    for place in diff.split("\n...\n"):
        lines = place.split("\n")
        old = "\n".join([line[1:] for line in lines if line[0] != "+"])
        new = "\n".join([line[1:] for line in lines if line[0] != "-"])
        if old not in text:
            raise AssertionError("the page changes what the module has no more:\n" + old)
        text = text.replace(old, new, 1)
    return text


@about()
class ReadmeTest(FolderCase):
    READERS = ".docs/read-it-yourself.md"

    def setUp(self):
        from shutil import copy
        super().setUp()
        path_of(self, "README.md")
        go_to(self, self.folder)
        copy(os.path.join(HERE, "tensorfmt.py"), "tensorfmt.py")
        self.names = {"__name__": "readme"}
        self.addCleanup(self.names.clear)  # functions and their names are a cycle

    def blocks(self, page):
        """Return (language, text) of each block of code of a page."""
        blocks = ("\n" + text_of(path_of(self, *page.split("/")))).split("\n```")
        return [block.partition("\n")[::2] for block in blocks[1::2]]

    def run_page(self, page):
        """Run the examples of a page, in order; return how many of each language."""
        ran, printed = {"python": 0, "console": 0, "text": 0}, ""
        for number, (language, text) in enumerate(self.blocks(page)):
            with self.subTest(page=page, block=number, begins=text[:60]):
                if language == "text" and printed:  # of the block before it
                    self.assertEqual(printed, text)
                    ran[language] += 1
                printed = ""
                if language == "python":
                    printed = self.run_python(text)
                    ran[language] += printed is not None
                if language == "console":
                    ran[language] += self.run_commands(text)
        return ran

    def run_python(self, text):
        """Return what it prints; None if a module is not here."""
        from importlib.util import find_spec
        if None in map(find_spec, re.findall(r"^\s*(?:import|from) (\w+)", text, re.M)):
            return None
        return self.run_code(text)

    def run_code(self, text):
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(text, "an example", "exec"), self.names)
        return out.getvalue().rstrip("\n")

    def run_commands(self, text):
        """Compare what commands print; return how many there are."""
        lines = ("\n" + text).split("\n$ ")[1:]
        for line, _, wanted in [part.partition("\n") for part in lines]:
            if " vendor " not in line or PYTHON >= (3, 8):
                _, out, err = run(line.replace("tensorfmt.py", "-m tensorfmt", 1))
                text = (out + err).rstrip("\n").replace("-m tensorfmt", "tensorfmt.py")
                self.assertEqual(about_sizes(text, wanted), wanted.rstrip("\n"), "$ " + line)
        return len(lines)

    def test_every_example(self):
        ran = self.run_page("README.md")
        self.assertTrue(min(ran.values()) > 0, ran)

    def test_example_of_a_page(self):
        ran = self.run_page(".docs/formats.md")
        self.assertEqual((ran["python"], ran["text"]), (1, 1))

    def test_names_that_pages_tell_of(self):
        """The code defines each `some_name` and `name()` of the pages for contributors."""
        code = text_of("tensorfmt.py") + text_of(os.path.join(HERE, "test_tensorfmt.py"))
        for page in (".docs", "add-a-format.md"), (".docs", "change-it.md"), (
                ".github", "CONTRIBUTING.md"):
            text = text_of(path_of(self, *page))
            for name in re.findall(r"`(?:\w+\.)*(\w+_\w+\b(?!\.py)|\w+(?=\(\)))", text):
                defined = re.search(r"(?m)^ *(?:def |class )?%s\b" % name, code + text)
                self.assertTrue(defined, "%s: no %s" % (page[-1], name))

    @unittest.skipIf(PYTHON < (3, 8), "vendor needs Python 3.8")
    def test_boards(self):
        """What the page says runs here, too; .ci/copies.py runs it on a board."""
        write_board_files(".")
        ran = 0
        for language, text in self.blocks(".docs/boards.md"):
            for line in re.findall(r"(?m)^\$ python3 tensorfmt.py (.*)", text):
                command, _, target = line.partition(" > ")
                code, out, err = run(*command.split())
                self.assertEqual(code, 0, err)
                if target:
                    write_file(target, out.encode())
            if language == "python":
                # gc.threshold() is of boards alone.
                program = "import gc\ngc.threshold = lambda nbytes: None\n" + text
                write_file("program.py", program.encode())
                code, out, err = run("python3", "program.py")
                self.assertEqual((code, err, out == ""), (0, "", False))
                ran += 1
        self.assertGreater(ran, 4)

    def test_no_other_page_has_examples(self):
        """Those that are run stand in the other tests of this class."""
        run = ("add-a-format.md", "boards.md", "change-it.md", "exercises.md", "formats.md",
               "read-it-yourself.md")
        for folder in ".docs", ".github":
            for name in os.listdir(path_of(self, folder)):
                if name.endswith(".md") and name not in run:
                    self.assertEqual(self.blocks(folder + "/" + name), [], name)

    def test_table_of_commands(self):
        text = text_of(os.path.join(HERE, "README.md"))
        table = text[text.index("| command | what"):].split("\n\n")[0]
        for line in table.split("\n")[2:]:
            words = re.findall(r"^\| `(\w+)|(--[a-z-]+)", line)
            command, wanted = words[0][0], set([option for _, option in words[1:]])
            text = run(command, "--help")[1]
            found = set(re.findall(r"(?m)^  (--[a-z-]+)", text))
            with self.subTest(command=command):
                self.assertEqual(found - {"--no-mmap", "--max-copies"}, wanted)

    def test_common_tasks(self):
        """Each row of the table of README does what it says."""
        ones = tensor([[1.0, 2.0]], "float32")
        half = tensor([1.5], "bfloat16")
        for name in "model.zt", "a.zt", "old.zt":
            save(name, {"w": ones})
        save("model.bpk", {"model.w": ones})
        cut = dumps({"w": ones, "v": half}, format="burnpack")
        write_file("cut.bpk", cut[:-1])
        os.mkdir("FOLDER")
        write_file("FOLDER/one", dumps({"w": ones}, format="safetensors"))
        write_file("FOLDER/m.safetensors.index.json", b'{"weight_map":{"w":"one"}}')
        text = text_of(os.path.join(HERE, "README.md"))
        table = text[text.index("## Common tasks"):text.index("## Install")]
        tasks = re.findall(r"(?m)^\| .*? \| `(.*?)`", table)
        self.assertGreater(len(tasks), 9)
        self.names.update(tensorfmt=tensorfmt, t=half)
        for task in tasks:
            with self.subTest(task=task):
                self.check_task(task)

    def check_task(self, task):
        import shlex
        if task.startswith("python3 "):
            if ZSTD or "zstd" not in task:
                code, _, error = run(*shlex.split(task)[2:])
                self.assertEqual(code, 0, error)
            return
        module = re.findall(r"\b(numpy|torch)\.", task)[0]
        self.run_python("import %s\n%s" % (module, task))

    def test_readme_is_short_and_names_each_page(self):
        text = text_of(os.path.join(HERE, "README.md"))
        self.assertLess(len(text.split()), 3001)
        for name in sorted(os.listdir(path_of(self, ".docs"))):
            self.assertIn(name, text)

    def test_limits(self):
        text = text_of(path_of(self, ".docs", "limits.md"))
        limits = re.findall(r"(MAX_\w+)` = ([\d,]+) ?([KMG]?)", text)
        self.assertGreater(len(limits), 3)
        for name, number, unit in limits:
            wanted = int(number.replace(",", "")) << " KMG".index(unit or " ") * 10
            self.assertEqual(getattr(tensorfmt, name), wanted, name)

    def test_table_of_parts(self):
        text = text_of(os.path.join(HERE, "README.md"))
        table = text[text.index("| part | "):].split("\n\n")[0]
        parts = ", ".join(re.findall(r"(?m)^\| (`.*?) \| ", table)).split(", ")
        self.assertEqual(sorted(parts), sorted(["`%s`" % part for part in COPY_PARTS]))

    def test_readers(self):
        """Each reads the file of its format; TinyTest has them read all others."""
        self.run_page(self.READERS)
        for row in WRITES:
            suffix = find_format(row.name).SUFFIXES[0]
            with self.subTest(format=row.name):
                (name, found), = self.names["read_" + row.name](read_file("w" + suffix)).items()
                self.assertEqual((name, list(found[1]), bytes(found[3])),
                                 ("w", [2], pack("<2f", 1, -2)))
        for _, text in self.blocks(self.READERS):
            for part in text.split("\n\ndef "):
                self.assertLess(part.count("\n"), 36)

    def test_changes_that_a_page_makes(self):
        """Each change is made to the module; the example behind it then runs with that."""
        count = 0
        for language, text in self.blocks(".docs/change-it.md"):
            if language == "diff":
                made = module_of(text_changed(text_of("tensorfmt.py"), text))
            elif language == "python":
                with mock.patch.dict(sys.modules, tensorfmt=made):
                    printed = self.run_code(text)
            elif language == "text":
                with self.subTest(begins=text[:60]):
                    self.assertEqual(printed, text)
                    count += 1
        self.assertEqual(count, 5)

    def test_exercises(self):
        """Each file of the table has its answer."""
        script(self, "corpus.py")["write_corpus"](sys.modules[__name__], ".")
        page = ".docs/exercises.md"
        self.run_page(page)
        text = text_of(path_of(self, *page.split("/")))
        answers = re.findall(r"tensorfmt\.py ls (\S+)", text)
        self.assertEqual(re.findall(r"(?m)^\| \d+ `(.*?)` \|", text), answers)
        self.assertEqual(len(answers), 12)

    @tells_ends
    def test_a_format_is_added(self):
        """What stands in `.docs/add-a-format.md`, at two places of the module, is a format."""
        text = text_with_slab(self)
        made = module_of(text)
        good = made.load(SLAB, verify=True)
        self.assertEqual([item.tolist() for item in good.values()], [[[1.0], [2.0]], 7])
        self.assertEqual(made.dumps(good, format="slab"), SLAB)
        self.assertTrue(made.verify(SLAB))
        fields = list(made.explain(SLAB))
        self.assertTiles(fields, len(SLAB))
        self.assertEqual(set([field.kind for field in fields]), {"structure", "padding", "data"})
        for name, data, error_name, field in slab_files():
            with self.subTest(file=name):
                error = error_of(getattr(made, error_name), made.load, data)
                self.assertEqual(error.field, field)
        for tensors in {"a\nb": F32}, {"w": made.tensor([1.0])}:
            error_of(ValueError, made.dumps, tensors, format="slab")
        copied = module_of(made.make_copy(
            text, made.split_source(text), [made.find_format("slab")], ["load"]))
        self.assertEqual(copied.load(SLAB)["w"].tolist(), [[1.0], [2.0]])


SLAB = b"SLAB 1 00000033\nfloat32 2,1 0 8 w\nint32 - 16 4 n\n" + bytes(15) + pack(
    "<2f8xi", 1, 2, 7)  # of the format that .docs/add-a-format.md makes up
SLAB_FAULTS = read_table(r"""
    name              old         new         error        field
    'of digits'       b'0033'     b'003x'     FormatError  header_size
    'the header cut'  b'0033'     b'0990'     FormatError  header_size
    'version'         b'SLAB 1'   b'SLAB 2'   Unsupported  version
    'UTF-8'           b'8 w'      b'8 \xff'   FormatError  tensors
    'words'           b'- 16'     b'-_16'     FormatError  tensors[1]
    'shape'           b' 2,1 '    b' 2,x '    FormatError  tensors[0].shape
    'size'            b' 2,1 '    b' 2,2 '    FormatError  tensors[0].nbytes
    'two of a name'   b'4 n'      b'4 w'      FormatError  tensors[1].name
    'cut'             b'\x07\0\0'  b''         FormatError  tensors[1].offset
""")


def slab_files():
    """Return rows (name, bytes, error, field) of bad files."""
    return [(row.name, replaced(SLAB, (row.old, row.new)), row.error, row.field)
            for row in SLAB_FAULTS]


def text_with_slab(test):
    """Return the text of the module with the format of .docs/add-a-format.md."""
    page = text_of(path_of(test, ".docs", "add-a-format.md"))
    section = page.split("```python\n")[1].split("```\n")[0]
    text = text_of(os.path.join(HERE, "tensorfmt.py"))
    contents = "    [10h] slab                 a header of text + data\n"
    return replaced(text, ("# == III ", section + "\n\n# == III "),
                    ("\n    III  tools", contents + "\n    III  tools"))


# -- [15] trust ----------------------------------------------------------------------------------

EVIL = ("\x1b[31mRED\x07", "a\r\nFORGED row", "\u202eabc\u2028FORGED", "<script>f()</script>",
        "\"><img src=x onerror=f()>", "&lt;b&gt;", "x" * 40000, "</script>{{rows}}%s\"'&")


PAGE_TAGS = ("html head meta title style body h1 p nav details summary pre section b i span a "
             "table tr td th").split()


def check_page(test, text):
    """Nothing from elsewhere, no tag that could do harm, no script in an attribute."""
    from html.parser import HTMLParser
    parser, found, odd = HTMLParser(), set(), []

    def start(tag, attrs):
        found.add(tag)
        odd.extend([key for key, _ in attrs if key.startswith("on")])
    test.assertEqual(re.findall("[^ -~\n]", text), [])
    for word in ('src="', "http", "url(", "@import", "<link", "<script"):
        test.assertNotIn(word, text)
    first = text.index("<h1>")  # what is made of a file: plain tags
    parts = re.split('(</?[a-z]\\w*(?:\\s[a-z-]+(?:="[^"<>]*")?)*>)', text[first:])
    test.assertEqual([part for part in parts[::2] if "<" in part], [])
    parser.handle_starttag = start
    parser.feed(text[:first] + "".join(sorted(set(parts[1::2]))))
    test.assertEqual(found.difference(PAGE_TAGS), set())
    test.assertEqual(odd, [])
    test.assertTrue({"nav", "section", "td"}.issubset(found))
    test.assertEqual(text.count('id="fields"'), 1)


MISSPELT = read_table("""
    word        meant
    dytpe       dtype
    dtpye       dtype
    type        dtype
    Dtype       dtype
    shpae       shape
    shapes      shape
    component   components
    compnoents  components
    cutsom      custom
    customs     custom
    trainable   None
    attrs       None
    ''          None
""")


@about()
class TrustTest(FolderCase):
    """What a file must not do to who looks at it: text, memory, work, interrupts."""

    def evil_files(self, evil):
        for key in "name", "dtype", "encoding", "layout", "checksum", "data_endianness", evil:
            yield ztensor_file(**{key: evil})
        part = part2("f32", 1, 4, type=evil, encoding=evil, decoded_length=4)
        entry = {"layout": evil, "shape": [1], "parts": {evil: part}}
        yield ztensor2_of_objects({evil: entry}, (bytes(4),))
        yield safetensors_file({"w": {"dtype": evil}})
        yield dumps({evil: F32}, format="safetensors", metadata={evil: evil})

    def test_texts_of_a_file_are_escaped_where_they_are_shown(self):
        """In all ways of check_mutant(); none is a line of its own, or a tag."""
        fuzz, parsers = script(self, "fuzz.py"), parsers_kept()
        number = 0
        for evil in EVIL:
            for data in self.evil_files(evil):
                number += 1
                write_file(self.path, data)
                with self.subTest(evil=evil[:40], begins=data[:40]), parsers:
                    fuzz["check_mutant"](data, fuzz["COMMANDS"][number % 3::3])
                    self.check_shown(data)

    def check_shown(self, data):
        for word in "ls", "verify", "explain":
            self.assertNotIn("\nFORGED", "".join(run(word, self.path)[1:]))
        html = run("explain", "--html", "-", self.path)[1]
        try:
            html += load(data)._repr_html_()
        except FormatError:
            pass
        for mark in "<script>f", "<img", "&lt;b&gt;":
            self.assertNotIn(mark, html)

    def test_messages_are_bounded(self):
        check_text = script(self, "fuzz.py")["check_text"]
        many = {"%d" % i + "n" * 3000: [1.0] for i in range(3000)}
        attrs = {"%d" % i + "k" * 300: 1 for i in range(3000)}
        file = load(dumps({"w": tensor([1.0], custom=attrs)}, format="ztensor"))
        for text in (self.refuses(["3000 things", " more"], dumps, many, format="mag"),
                     self.refuses(["drop=True"], converted, file, "burnpack"),
                     str(FormatError("x" * 5000, 0, "f" * 400, "t" * 5000, "p" * 5000))):
            check_text(text, True)

    def test_shapes_that_python_cannot_hold(self):
        fuzz = script(self, "fuzz.py")
        for shape in (1 << 63, 0), (0, 1 << 63), (1 << 63, 0, 5), (1,) * 600, (0,) * 600:
            data = b"" if 0 in shape else b"\7"
            item = tensorfmt.new_tensor("int8", shape, data)
            self.assertTrue(repr(item).startswith("<Tensor '' int8 ["))
            self.assertLess(len(repr(item)), 200)
            fuzz["check_mutant"](dumps({"w": item}, format="ztensor"), fuzz["COMMANDS"])

    def test_a_length_that_python_cannot_count(self):
        for most in sys.maxsize, (1 << 31) - 1:
            with Changed(sys, "maxsize", most):
                self.assertEqual(len(tensor([], "int8", (most, 0))), most)
                for count in most + 1, 2 * most + 2:
                    self.check_length(tensorfmt.new_tensor("int8", (count, 0, 2), b""), count)

    def check_length(self, item, count):
        """Assert that a tensor of more rows than len() can say has all but their number."""
        def star(item):
            return [*item]
        words = "dimension 0 of %d is more than len()" % count
        for call in len, iter, list, reversed, star, zip, sum, sorted:
            self.raises(Unsupported, words, call, item)
        if PYTHON >= (3, 8):  # before, `in` made a TypeError of any error
            error_of(Unsupported, lambda: 1 in item)
        self.assertEqual((item.size, item.nbytes, list(item.flat)), (0, 0, []))
        self.assertEqual(item[2:].shape, (count - 2, 0, 2))
        self.assertEqual(item[::count].shape, (1, 0, 2))
        for i in count - 1, -count:
            self.assertEqual(item[i].shape, (0, 2))
        self.assertEqual(item[...].tobytes() + item[::-3].tobytes(), b"")
        self.assertEqual(len(item[5]), 0)

    def test_streams_that_lie(self):
        class More(io.BytesIO):
            def read(self, nbytes=-1):
                return memoryview(bytes(8 * nbytes)).cast("Q")  # len() is what was asked for

        class NoTell:
            read = seek = None
        self.raises(FormatError, "asked for", load, More(golden("custom_fields.zt")))
        for wrong in NoTell(), object():
            self.raises(TypeError, "a seekable stream of bytes", load, wrong)

    def test_what_a_tensor_is_to_keep_goes_into_custom(self):
        given = {"data": 1, "components": "x", "attrs": [2], "dtype_": None, "custom": {}}
        item = tensor([1.0], custom=given)
        again = load(dumps({"w": item}, format="ztensor"))["w"]
        for made in item, again:
            self.assertSame(dict(made.custom), given)
        odd = tensor(item, custom={5: 6})  # which no format can hold
        self.assertEqual((odd.custom[5], odd.custom["data"]), (6, 1))
        self.assertNotIn(5, item.custom)
        self.refuses(["attribute 5"], dumps, {"w": odd}, format="ztensor")
        for wrong in [1], "text", 5:
            self.raises(TypeError, "custom is a mapping, not", tensor, [1.0], custom=wrong)

    def test_a_misspelt_argument_is_not_kept_in_silence(self):
        coo = {"values": [], "coords": [[]]}
        ways = {"data": [1.0]}, {"shape": (1,), "components": coo}, {"data": b"", "shape": (1,)}
        for row in MISSPELT:
            for given in ways:
                options = dict(given, **{row.word: "qfloat"})
                error = self.raises(TypeError, "no argument %r" % row.word, tensor, **options)
                self.assertIn("goes into custom={...}", str(error))
                if row.meant:
                    self.assertIn("did you mean '%s'?" % row.meant, str(error))
                else:
                    self.assertNotIn("did you mean", str(error))

    def test_one_budget_whatever_the_mapping(self):
        file = load(burnpack_of_spans([(0, 4096)] * 400, bytes(4096)))
        users = {"u%d" % i: file["t0"] for i in range(400)}  # the user's own wish
        self.assertEqual(len(load(dumps(users, format="ztensor"))), 400)
        cast = {name: Cast(item, "int16") for name, item in file.items()}
        with Changed(tensorfmt, "MAX_COPIES", 1):
            for tensors in file, dict(file), file.items(), cast:
                self.refuses(["decoded and written", "MAX_COPIES = 1 "], dumps, tensors,
                             format="ztensor")
            self.refuses(["MAX_COPIES = 1 "], converted, file, "mag", cast="int32")

    def test_the_budget_is_exact(self):
        entry = {"dtype": QUANTIZED[4].code, "shape": [16], "data_offsets": [0, 8]}
        data = burnpack_file({"tensors": {"q%d" % i: entry for i in range(9)}}, bytes(8))
        enough = 8 * 4 * 16  # all but one, as float32
        whole = len(data) + (1 << 20)
        with Changed(tensorfmt, "MAX_COPIES", ratio(enough, whole)):
            converted(data, "mag", cast="float32")
        with Changed(tensorfmt, "MAX_COPIES", ratio(enough - 1, whole)):
            self.refuses(["MAX_COPIES"], converted, data, "mag", cast="float32")

    def test_what_save_wrote_once_is_taken_as_often_as_it_is_named(self):
        zeros = {"m%d" % i: tensor(bytes(100000)) for i in range(200)}
        data = dumps(zeros, format="ztensor", version=2)
        there, _ = converted(data, "mag", cast="int32")
        self.assertEqual(diff(data, there, any_dtype=True).differences, [])

    @unittest.skipUnless(os.name == "posix", "modes are of POSIX")
    def test_files_are_made_with_the_mode_of_the_target(self):
        def mode_of(name):
            return os.stat(self.at(name)).st_mode & 0o7777

        def blocks():  # while the temporary file is written
            seen.extend([mode_of(name) for name in os.listdir(self.folder) if ".tmp" in name])
            yield b"new"
        write_file(self.path, b"old")
        for mode, wanted in (0o600, 0o600), (0o666, 0o666), (0o6755, 0o755), (0o1644, 0o644):
            seen = []
            os.chmod(self.path, mode)
            tensorfmt.write_out(self.path, blocks())
            self.assertEqual(seen, [wanted])
            self.assertEqual(mode_of(self.path), wanted)

    @unittest.skipIf(PYPY or PYTHON < (3, 8) or not os.path.exists("/proc/self/fd"),
                     "needs opcode traces, unraisablehook and /proc")
    def test_interrupts_leave_nothing_behind(self):
        """At opcodes of the module; at lines where opcodes are not traced (Python 3.12.1)."""
        self.addCleanup(warnings.resetwarnings)
        warnings.simplefilter("ignore", ResourceWarning)  # an interrupted close()
        save(self.path, {"w": F32})
        load(self.path).close()
        gc.collect()  # what tests before this one left
        descriptors = len(os.listdir("/proc/self/fd"))

        def both():
            with load(self.path) as file:
                file["w"].tolist()
            load(self.path)  # dropped without close()

        def is_inside(frame):
            return frame.f_globals is tensorfmt.__dict__
        self.addCleanup(gc.enable)
        printed, number, reached = [], 1, True
        events = ("line",) if PYTHON == (3, 12) else ("opcode",)  # both: a SystemError before 3.10
        with Changed(sys, "unraisablehook", lambda args: printed.append(args.exc_type)):
            while reached:
                caught, reached = raise_at(number, KeyboardInterrupt("^C"), both, sys.settrace,
                                           events, is_inside)
                self.assertEqual((caught is not None, gc.isenabled()), (reached, True), number)
                number += 1 if number < 200 else 67
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)
        self.assertGreater(number, 100)
        self.assertEqual(printed, [])


# -- [15b] work ----------------------------------------------------------------------------------


def spread(count, blob, part=None, **fields):
    """Return a file of zTensor 0.1 of tensors that share nothing; each has a blob.

    `part`: the indices that are this blob, of a tensor without values.
    """
    step = tensorfmt.round_up(len(blob), 64)
    entries = []
    for i in range(count):
        place = {"offset": 64 + i * step, "size": len(blob)}
        entry = dict({"name": "w%d" % i, "encoding": "raw"}, **place, **fields)
        if part:
            entry.update({part: dict(place, encoding="zstd"), "size": 0})
        entries.append(entry)
    return ztensor_of_index(cbor_dumps(entries), None, blob.ljust(step, b"\0") * count)


def zeros_by_zstd(nbytes):
    return b"".join(tensorfmt.zstd_encode([bytes(nbytes)], nbytes, 3))


def seekable_zeros(count, nbytes):
    """Return a file of zTensor 2 of tensors in frames, which share nothing."""
    frame = zeros_by_zstd(nbytes)
    blob = frame + seek_table([(len(frame), nbytes)])
    facts = {"encoding": tensorfmt.SEEKABLE, "decoded_length": nbytes}
    objects = {"w%02d" % i: dense2("u8", i + 1, len(blob), nbytes, **facts) for i in range(count)}
    return ztensor2_of_objects(objects, (blob,) * count)


MEGA = 1 << 20
PACKED = {"dtype": "uint8", "encoding": "zstd"}
OF_CSR = {"layout": "sparse", "sparse_format": "csr"}
OF_COO = {"layout": "sparse", "sparse_format": "coo"}
NOT_WHAT_THEY_SAY = "csr without nnz", "one blob"  # of work_files()


@lru_cache(None)
def work_files():
    """Return {kind: file} of 12 tensors, each of a MiB when it is decoded or dense, or more."""
    zeros_of_mega = {"w%d" % i: tensor(bytes(MEGA)) for i in range(12)}
    files = {
        "coo": spread(12, bytes(4), nnz=1, coords=[5], dtype="float32", shape=[MEGA // 4],
                      **OF_COO),
        "shared": burnpack_of_spans([(0, MEGA)] * 12, bytes(MEGA)),
        "equal": dumps(zeros_of_mega, format="ztensor", version="2")}
    if ZSTD:
        zeros = zeros_by_zstd(MEGA)
        indices = {"encoding": "zstd", "offset": 64, "size": len(zeros)}
        files["zstd"] = spread(12, zeros, shape=[MEGA], **PACKED)
        files["seekable"] = seekable_zeros(12, MEGA)
        files["csr of many rows"] = spread(12, zeros, "indptr", shape=[MEGA // 8 - 1, 0], nnz=0,
                                           indices=[], dtype="uint8", **OF_CSR)
        files["csr without nnz"] = spread(12, zeros, shape=[1, MEGA], indptr=[0, MEGA],
                                          indices=indices, **PACKED, **OF_CSR)
        files["one blob"] = spread(12, zeros, shape=[MEGA, 1], layout="sparsecsr", **PACKED)
    return files


@about("ztensor", "burnpack")
class WorkTest(FolderCase):
    """What a call decodes and writes of a file: at most MAX_COPIES times its bytes and 1 MiB."""

    def asks_first(self, call, *args, **options):
        """Assert that a call is refused before anything is decoded; return what allows it."""
        decoders = "zstd_decode", "seekable_decode", "unpack_values", "cast_block"
        with Changed(tensorfmt, "MAX_COPIES", 1):
            for name in decoders:
                with Changed(tensorfmt, name, side_effect=AssertionError(name + " was called")):
                    text = self.refuses(["MAX_COPIES = 1 "], call, *args, **options)
        found = re.search(r"MAX_COPIES = (\d+) \(--max-copies \1\) allows it", text)
        return int(found.group(1))

    @staticmethod
    def convert(data, format, **options):
        convert(data, io.BytesIO(), format=format, dense=True, **options)

    def calls(self, file, data):
        """Return {what it is: call and its arguments} of all that decodes or writes a file."""
        casts = {name: Cast(item, "float64") for name, item in file.items()}
        renamed = [("x" + name, item) for name, item in file.items()]
        return {
            "convert": (self.convert, file),
            "diff": (diff, file, file),
            "sources": (diff, data, data),
            "save": (dumps, file),
            "a dict": (dumps, dict(file)),
            "a list": (dumps, list(file.items())),
            "casts": (dumps, casts),
            "other names": (dumps, renamed),
        }

    def test_it_is_asked_before_anything_is_decoded(self):
        for kind, data in work_files().items():
            file = load(data)
            for what, (call, *args) in self.calls(file, data).items():
                with self.subTest(kind=kind, call=what):
                    options = {} if call is diff else {"format": "burnpack"}
                    self.asks_first(call, *args, **options)
            self.asks_first(self.convert, file, format="mag", cast="int32")

    @with_zstd
    def test_parts_of_an_unknown_layout_count(self):
        """Also where the first of them is not encoded."""
        frame = zeros_by_zstd(MEGA)
        blob = frame + seek_table([(len(frame), MEGA)])
        packed = part2("u8", 2, len(blob), encoding=tensorfmt.SEEKABLE, decoded_length=MEGA)
        parts = {"p%d" % i: packed for i in range(12)}
        parts["data"] = part2("u8", 1, 8)
        entry = {"shape": [9], "layout": "zt.mx/1", "parts": parts}
        data = ztensor2_of_objects({"w": entry}, (bytes(8), blob))
        self.asks_first(diff, data, data)
        self.asks_first(lambda: load(data)["w"] == load(data)["w"])

    @with_zstd
    def test_a_cast_counts_as_what_it_writes(self):
        file = load(spread(12, zeros_by_zstd(MEGA), shape=[MEGA], dtype="uint8", encoding="zstd",
                           layout="dense"))
        with Changed(tensorfmt, "MAX_COPIES", 40):
            for call in dumps, self.convert:
                self.refuses(["MAX_COPIES = 40 "], call, file, format="ztensor",
                             cast={"uint8": "float64"})

    @with_zstd
    def test_row_pointers_say_how_many_elements_a_csr_has(self):
        """Without nnz, if they are not encoded: not as many as a dense one has."""
        frame = zeros_by_zstd(8)
        place = {"encoding": "zstd", "offset": 64, "size": len(frame)}
        data = spread(12, frame, shape=[1, MEGA], indptr=[0, 1], indices=place, dtype="uint64",
                      encoding="zstd", layout="sparse", sparse_format="csr")
        again = load(dumps(load(data), format="ztensor"))
        self.assertEqual(again["w11"].components["indices"].tolist(), [0])

    def test_what_an_error_names_is_enough(self):
        for kind, data in work_files().items():
            if kind in NOT_WHAT_THEY_SAY:
                continue
            file = load(data)
            for call, *args in (self.convert, file), (dumps, file), (diff, file, file):
                options = {} if call is diff else {"format": "burnpack"}
                most = self.asks_first(call, *args, **options)
                with self.subTest(kind=kind, call=call):
                    with Changed(tensorfmt, "MAX_COPIES", most - 1):
                        self.refuses(["MAX_COPIES"], call, *args, **options)
                    with Changed(tensorfmt, "MAX_COPIES", most):
                        try:
                            call(*args, **options)
                        except ValueError as error:  # of another reason
                            self.assertIn("sparse; .todense()", str(error))

    def test_verify_leaves_out_and_says_what_takes_all(self):
        for kind, data in work_files().items():
            if kind in ("coo", "shared", "equal", "csr without nnz"):  # nothing is decoded for it
                continue
            with self.subTest(kind=kind):
                with Changed(tensorfmt, "MAX_COPIES", 1):
                    report = verify(data)
                    self.assertGreater(report.not_checked["contents"], 5)
                    error_of(Unsupported, load, data, verify=True)
                remedy = re.search(r": take MAX_COPIES = (\d+) \(--max-copies \1\)", str(report))
                self.assertTrue(str(report).endswith("take a larger MAX_COPIES (--max-copies)"))
                with Changed(tensorfmt, "MAX_COPIES", int(remedy.group(1))):
                    self.assertEqual(verify(data).not_checked["contents"], 0)

    @with_zstd
    def test_two_tensors_and_parts_of_one(self):
        """`==` and t[0] are asked, too; one of up to MAX_DENSE is free."""
        packed = spread(2, zeros_by_zstd(4 * MEGA), shape=[4 * MEGA], **PACKED)
        for kind, data in ("zstd", packed), ("csr", work_files()["csr of many rows"]):
            a, b = load(data)["w0"], load(data)["w0"]
            with self.subTest(kind=kind):
                if kind == "csr":  # indices are no values
                    self.asks_first(eq, a, b)
                    self.asks_first(getitem, a, slice(1))
                self.assertTrue(a == b)
                self.assertEqual(len(a[0:1]), 1)
                with Changed(tensorfmt, "MAX_DENSE", MEGA):
                    self.asks_first(eq, a, b)
                    self.asks_first(getitem, a.copy(), slice(1))

    @unittest.skipUnless(ZSTD and not PYPY, "no zstd, or no tracemalloc")
    def test_one_tensor_of_a_file_is_kept(self):
        data = spread(20, zeros_by_zstd(MEGA), shape=[16, MEGA // 16], **PACKED)
        items = list(load(data).values())

        def look(which):
            return [(items[i][0][0], items[i][:, 5].size) for i in which]
        self.assertLess(peak_of(look, range(20)), 6 * MEGA)
        self.assertLess(peak_of(lambda: [row[0] for row in items[0]]), 4 * MEGA)
        for which, count in ([1, 2, 1, 2], 4), ([2, 2], 0), ([0, 0, 0], 1), ([3], 1):
            with self.subTest(tensors=which):
                self.assertEqual(calls_of(tensorfmt, "zstd_decode", look, which), count)
                self.assertEqual(look(which), [(0, 16)] * len(which))

    @with_zstd
    def test_what_is_kept_is_of_the_tensor_that_is_asked(self):
        tensors = {"a": tensor([[1, 2], [3, 4]]), "b": tensor([[5, 6], [7, 8]])}
        file = load(dumps(tensors, format="ztensor", encoding="zstd"))
        for _ in range(2):
            for name, i in ("a", 0), ("b", 0), ("a", 1):
                self.assertEqual(file[name][i].tolist(), tensors[name][i].tolist())
        part = file["a"][1]
        file["a"].source.close()
        self.assertEqual(part.tolist(), [3, 4])  # of its own bytes
        self.refuses(["closed"], lambda: file["a"][1])

    @unittest.skipUnless(ZSTD and not PYPY, "no zstd, or no tracemalloc")
    def test_equal_tensors_are_compared_in_constant_memory(self):
        nbytes = 1 << 24
        packed = spread(1, zeros_by_zstd(nbytes), shape=[nbytes], **PACKED)
        coo = spread(1, bytes(1), nnz=1, coords=[9], dtype="uint8", shape=[nbytes], **OF_COO)
        raw = load(dumps({"w0": tensor(bytes(nbytes))}, format="burnpack"))["w0"]
        for kind, data in ("zstd", packed), ("coo", coo):
            a, b = load(data)["w0"], load(data)["w0"]
            for pair in (a, b), (a, raw), (raw, a):
                with self.subTest(kind=kind):
                    self.assertTrue(eq(*pair))
                    self.assertLess(peak_of(eq, *pair), 8 * MEGA)

    @with_zstd
    def test_repr_decodes_nothing_of_a_sparse_tensor(self):
        """Nor of unknown elements."""
        files = [spread(1, zeros_by_zstd(MEGA), dtype="new", shape=[5], encoding="zstd")]
        files += self.bombs()
        for kind, data in work_files().items():
            if kind == "one blob" or kind.startswith("csr"):
                files.append(data)
        for data in files:
            self.assertEqual(calls_of(tensorfmt, "zstd_decode", repr, load(data)["w0"]), 0)

    @staticmethod
    def bombs():
        """Return files of sparse tensors of 100 elements that say they have a MiB of values."""
        blob = zeros_by_zstd(MEGA)
        indices = {"encoding": "zstd", "offset": 64, "size": len(blob)}
        facts = dict(PACKED, shape=[10, 10], nnz=MEGA)
        return [spread(1, blob, coords=indices, **facts, **OF_COO),
                spread(1, blob, indptr=[0] * 10 + [MEGA], indices=indices, **facts, **OF_CSR)]

    @with_zstd
    def test_more_values_than_elements_are_not_decoded(self):
        words = "values, but 100 elements"
        for data in self.bombs():
            item = load(data)["w0"]
            with Changed(tensorfmt, "zstd_decode", side_effect=AssertionError):
                self.raises(FormatError, words, getattr, item, "components")
                self.raises(FormatError, words, getitem, item, 0)
                self.raises(FormatError, words, bytes, item)
                self.refuses([words], dumps, {"w": item}, format="ztensor")
            self.assertFalse(verify(data))

    def test_what_save_wrote_is_taken_with_max_copies(self):
        items = {"m%02d" % i: tensor(bytes(MEGA)) for i in range(20)}
        path = self.path
        write_file(path, dumps(items, format="ztensor", version="2"))
        for words in (("convert", path, path + ".safetensors"), ("diff", path, path),
                      ("get", path, "*"), ("get", path, "--stats")):
            with self.subTest(words=words), parsers_kept(), Changed(tensorfmt, "MAX_COPIES", 8):
                code, _, error = run(*words)
                self.assertNotEqual(code, 0)
                most = re.search(r"\(--max-copies (\d+)\) allows it", error).group(1)
                self.assertEqual(run(*words, "--max-copies", most)[::2], (0, ""))
                self.assertEqual(tensorfmt.MAX_COPIES, 8)
                self.assertEqual(run("verify", path)[0], 0)


# -- [15c] get -----------------------------------------------------------------------------------


@about("ztensor", "burnpack")
class GetTest(FolderCase):
    """What `get` prints is bounded by the file, and asked for before anything is decoded."""

    def shows(self, data, *words, most=64):
        write_file(self.path, data)
        with Changed(tensorfmt, "MAX_COPIES", most), parsers_kept():
            return run("get", self.path, *words)

    def assertAsks(self, data, *words, most=1):
        """Assert that nothing is printed but what allows it."""
        code, out, error = self.shows(data, *words, most=most)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("--max-copies", error)

    @with_zstd
    def test_a_part_is_decoded_after_the_limit_is_asked(self):
        data = spread(1, zeros_by_zstd(8 * MEGA), shape=[8 * MEGA], **PACKED)
        self.assertEqual(self.shows(data, "w0[0:3]")[:2], (0, "[0, 0, 0]\n"))
        unread = Changed(tensorfmt, "zstd_decode", side_effect=AssertionError)
        with Changed(tensorfmt, "MAX_DENSE", MEGA), unread:
            for words in ["w0[0:3]"], ["w0[5]", "--json"], ["w0[1:]", "--raw"], ["w?"]:
                self.assertAsks(data, *words)

    def test_json_is_printed_tensor_by_tensor(self):
        items = {"w%d" % i: tensor([[i, 2], [3, 4]], "int8") for i in range(3)}
        data = dumps(items, format="burnpack")
        for pattern, names in ("w*", list(items)), ("w[12]", ["w1", "w2"]), ("w[0]*", ["w0"]):
            rows = json.loads(self.shows(data, pattern, "--json")[1])
            self.assertEqual([row["name"] for row in rows], names)
            for row in rows:
                self.assertEqual(row["values"], items[row["name"]].tolist())
        row = json.loads(self.shows(data, "w1", "--json")[1])
        self.assertEqual(row["name"], "w1")

    @unittest.skipIf(PYPY, "PyPy has no tracemalloc")
    def test_memory_of_json_is_that_of_one_tensor(self):
        data = dumps({"w%d" % i: tensor(bytes(10000)) for i in range(12)}, format="burnpack")
        write_file(self.path, data)

        class Null(io.StringIO):
            def write(self, text):
                return len(text)
        with Changed(sys, "stdout", Null()):
            one = peak_of(tensorfmt.main, ["get", self.path, "w1", "--json"])
            self.assertLess(peak_of(tensorfmt.main, ["get", self.path, "*", "--json"]), 1.5 * one)

    def test_text_is_work_too(self):
        """Of values that many share, of lists without any, of previews."""
        none = {"dtype": "U8", "shape": [1 << 17, 0], "data_offsets": [0, 0]}
        shared = {"dtype": "U8", "shape": [6, 6, 6, 6], "data_offsets": [0, 1296]}
        for entry, words in (none, ["*", "--json"]), (shared, ["*", "--json"]), (shared, ["*"]):
            tensors = {"t%d" % i: entry for i in range(1000)}
            with self.subTest(shape=entry["shape"], words=words):
                self.assertAsks(burnpack_file({"tensors": tensors}, bytes(1296)), *words, most=3)

    @with_zstd
    def test_what_is_damaged_ends_the_list(self):
        tensors = {"a": tensor([1] * 50), "b": tensor([2] * 50)}
        data = rotten(dumps(tensors, format="ztensor", encoding="zstd"), "b")
        code, out, error = self.shows(data, "?", "--json")
        self.assertEqual([row["name"] for row in json.loads(out)], ["a"])
        self.assertEqual(code, 1, error)


# -- [16] small work -----------------------------------------------------------------------------


class SmallWorkTest(TestCase):
    """Work and names that grow with the file only."""

    def test_good_files_are_parsed_once(self):
        """A second parse, which notes regions, is for a file that is refused."""
        for data in fuzz_files():
            with self.subTest(format=detect(data), crc=crc32(data)):
                self.assertEqual(calls_of(tensorfmt, "complete", load, data), 0)

    @about()
    def test_growth_knows_every_key_of_every_format(self):
        growth = script(self, "growth.py")
        documents = growth["documents"]()
        text = repr(documents)
        for kind in tensorfmt.FORMATS + tensorfmt.GENERATIONS:
            for schema in vars(type(kind)).values():
                if not isinstance(schema, tensorfmt.Schema) or schema is tensorfmt.ZTensor.CHOICES:
                    continue
                for key in schema.rows:
                    self.assertIn(repr(key), text)
        for encode, tree in documents.values():
            self.assertTrue(encode(tree))

    @about()
    def test_long_beside_numerous(self):
        """Calls, as a quick form of .ci/growth.py, which measures time, memory and output."""
        growth = script(self, "growth.py")

        def look(call, data):
            try:
                call(data)
            except FormatError:
                pass
        for row in growth["drawn"](7)[:20]:
            small, large = [growth["make"](*row[:4], nbytes, 7) for nbytes in (4000, 16000)]
            if not small:
                continue
            for call in load, verify:
                few, many = count_calls(look, call, small), count_calls(look, call, large)
                with self.subTest(pair=row[4], few=few, many=many):
                    self.assertTrue(many < 4.5 * few)

    @about("burnpack")
    def test_integers_of_any_size_are_saved_and_compared(self):
        big = {"Int": (1 << 20000) - 1}
        entry = {"dtype": {"New": big}, "shape": [1], "data_offsets": [0, 1]}
        data = burnpack_file({"tensors": {"w": entry}, "scalars": {"x": big}}, b"\7")
        self.assertEqual(diff(data, data).differences, [])
        self.assertEqual(load(data)["w"].attrs["burn_dtype"], {"New": big})

    @about("ztensor")
    @with_zstd
    def test_a_blob_of_blocks_that_many_tensors_name(self):
        """Its bytes can each be a block of a codec, of which nothing comes out."""
        blocks = b"\x28\xb5\x2f\xfd\0\x58" + bytes(3 * 1000) + b"\x81\0\0" + bytes(16)
        part = {"offset": 64, "size": len(blocks), "encoding": "zstd"}
        usual = dict(part, dtype="uint8", layout="sparse", shape=[1, 8], sparse_format="csr",
                     indptr=part, indices=[])
        for more in {"nnz": 0}, {}, {"indices": [1]}:
            index = cbor_dumps([dict(usual, name="s%d" % i, **more) for i in range(300)])
            data = ztensor_of_index(index, None, blocks)
            with Changed(tensorfmt, "MAX_COPIES", 8):
                report = verify(data)
                self.assertIn("MAX_COPIES", str(report))
                self.refuses(["MAX_COPIES"], diff, data, data)
                self.refuses(["MAX_COPIES"], dumps, load(data), format="ztensor")
                self.refuses(["MAX_COPIES"], converted, data, "ztensor", dense=True)
                # Each that is not left out is looked at twice, in two parts.
                most = 4 * (300 - report.not_checked["contents"])
                calls = calls_of(tensorfmt, "zstd_check", verify, data)
                self.assertLessEqual(calls, most)


# -- [16b] equality ------------------------------------------------------------------------------

# Two of another value or another type.
FACT_PAIRS = read_table(r"""
    one                     two
    b"\xab"                 "ab"
    b"ab"                   "ab"
    18446744073709551616    18446744073709551617
    1e999                   "inf"
    9007199254740993        9007199254740992.0
    1                       "1"
    b"1"                    "1"
    True                    "True"
    b""                     ""
    -1e999                  1e999
    1                       True
    0                       False
    1                       1.0
    1.0                     True
    0.0                     -0.0
    None                    "null"
    None                    False
    {1: 2}                  [[1, 2]]
    {1: 2}                  {"1": 2}
    {1: 2}                  {True: 2}
    []                      {}
    [1]                     [1, 1]
    {"a": 1}                {"a": 1, "b": 1}
    {"a": None}             {"b": None}
""")
FACT_PAIRS += [
    (NAN, "nan"),
    (NAN, None),
    (10 ** 50, 10 ** 60),
    (10 ** 50, "an integer of more than 128 bits"),
    ("x" * 400, "x" * 200 + "y" + "x" * 199),  # as messages cut them
]


def with_field(value):
    return ztensor_file(x=value)


def with_attribute(value):
    return ztensor2_of_objects({"a": dict(dense2("u8", 1, 4, 4), attributes={"x": value})},
                               (b"abcd",))


def with_dtype(value):
    return burnpack_with(dtype={"New": value})


def with_metadata2(value):
    return ztensor2_of_objects({}, attributes={"x": value})


def with_metadata300(value):
    return dumps(ONE_TENSOR, format="mag", version=300, metadata={"x": value})


def with_metadata_of_mag(value):
    return dumps({}, format="mag", metadata={"x": value})


def with_setting(value):
    return dumps({}, format="primitiv", kind="optimizer", metadata={"x": value})


def with_scalar(value):
    return burnpack_file({"tensors": {}, "scalars": {"x": {"Any": value}}}, b"")


# What makes a file that holds a value; what diff() says has changed; how many pairs it can hold,
# of those of FACT_PAIRS and the same in lists and maps.
Holder = namedtuple("Holder", "format make kind count")
FACT_HOLDERS = [
    Holder("ztensor", with_field, "tensor", 87),
    Holder("ztensor", with_attribute, "tensor", 78),
    Holder("burnpack", with_dtype, "tensor", 87),
    Holder("ztensor", with_metadata2, "metadata", 78),
    Holder("mag", with_metadata300, "metadata", 66),
    Holder("mag", with_metadata_of_mag, "metadata", 5),
    Holder("primitiv", with_setting, "metadata", 4),
    Holder("burnpack", with_scalar, "scalar", 87),
]
Files = namedtuple("Files", "title one two")


def plain_stored_otherwise():
    """Yield Files of the same values."""
    f32 = tensor([[1.0, -0.0, NAN], [INF, 5.0, 6.0]], "float32")
    plain = saved(f32)
    for kind in FORMATS:
        yield Files(kind, plain, saved(f32, kind))
    stored = [{"data_endianness": "big"}, {"checksum": "sha256"}, {"version": 2}]
    if ZSTD:
        stored.append({"encoding": "zstd"})
    for options in stored:
        yield Files(str(options), plain, saved(f32, **options))
    yield Files("layout is said", ztensor_file(dtype="new"),
                ztensor_file(dtype="new", layout="dense"))


def sparse_stored_otherwise():
    dense = saved([[0.0, 0.0, 1.5], [2.5, 0.0, 0.0]])
    csr = {"values": [1.5, 2.5], "indptr": [0, 1, 2], "indices": [2, 0]}
    coo = {"values": [2.5, 1.5, 0.0], "coords": [[1, 0, 1], [0, 2, 1]]}
    by_rows = saved(tensor(shape=(2, 3), components=csr))
    by_places = saved(tensor(shape=(2, 3), components=coo))
    yield Files("csr", dense, by_rows)
    yield Files("coo", dense, by_places)
    yield Files("csr and coo", by_rows, by_places)
    if ZSTD:
        yield Files("sparse zstd", by_rows, dumps(load(by_places), format="ztensor",
                                                  encoding="zstd"))


def unknown_stored_otherwise():
    """Yield Files of tensors whose types or layouts are not known."""
    if ZSTD:
        coded = []
        for options in {}, {"encoding": "zstd"}, {"encoding": "zstd", "level": 19}:
            data = saved(tensor(bytes(100), "uint8"), **options)
            coded.append(replaced(data, (b"euint8", b"enew_8")))
        yield Files("unknown type, zstd", coded[0], coded[1])
        yield Files("level", coded[1], coded[2])
    blob = pack("<2f", 1, 2)
    for digest in "sha256:" + sha256(blob).hexdigest(), "xxh3:4de8d78f7134f4b7":
        files = []
        for part in part2("f32", 1, 8), part2("f32", 1, 8, digest=digest):
            facts = {"shape": [2], "layout": "ex.new/1", "parts": {"a": part, "b": part}}
            files.append(ztensor2_of_objects({"w": facts}, (blob,)))
        yield Files("digest of a part", *files)


def tiled(data=bytes(16), **more):
    """Return a zTensor file whose layout is not known; the tensor has 8 of 16 bytes."""
    entry = {"name": "a", "offset": 64, "size": 8, "dtype": "float32", "shape": [2],
             "encoding": "raw", "layout": "tiled"}
    return ztensor_of_index(cbor_dumps([dict(entry, **more)]), None, data)


def composite(blob, role="scales", **more):
    """Return a file of zTensor 2 whose one tensor has two parts; the second is a blob."""
    parts = {"data": part2("u8", 1, 4), role: part2("u8", 2, 4, **more)}
    return ztensor2_of_objects({"a": {"shape": [4], "layout": "ex.new/1", "parts": parts}},
                               (b"abcd", blob))


def record_of(code):
    return record_file({"a": record_entry(b"\7", [1], {"New": code})})


def snapshot_of(*changes):
    """Return a snapshot of mag 300 of one tensor with a type that is not known."""
    data = dumps({"a": tensor([5], "int32")}, format="mag", version=300)
    return replaced(data, (b'"dtype_id":10', b'"dtype_id":90'), *changes)


def opaque(code, raw=b"123456"):
    """Return a safetensors file of a type that is not known."""
    entry = {"dtype": code, "shape": [8], "data_offsets": [0, 6]}
    return safetensors_file({"w": entry}, raw)


def typed2(dtype):
    """Return a file of zTensor 2 of a type that is not known, over one that is."""
    return ztensor2_of_objects({"w": dense2(dtype, 1, 4, 4, type="my")}, (b"abcd",))


def encoded_part(encoding, length=4):
    return composite(b"1234", encoding=encoding, decoded_length=length)


def unlike_files():
    """Yield Files of tensors without values here."""
    long_name = "x" * 500  # as messages cut them
    yield Files("number of a type", snapshot_of(), snapshot_of((b":90", b":91")))
    yield Files("name of a type", snapshot_of(), snapshot_of((b'"int32"', b'"newer"')))
    yield Files("bytes", snapshot_of(), snapshot_of()[:-1] + b"\1")
    yield Files("data_type", *[tensorbuffers_with({"tensors[0].data_type": code})
                               for code in (98, 99)])
    yield Files("type in a record", record_of(long_name + "1"), record_of(long_name + "2"))
    yield Files("value in a type", record_of(1), record_of(1.0))
    yield Files("scheme", *[burnpack_with(dtype=scheme(name), shape=[4])
                            for name in ("Q8S", "E4M3")])
    yield Files("bytes of a part", composite(b"1234"), composite(b"1235"))
    yield Files("role of a part", composite(b"1234"), composite(b"1234", "zeros"))
    yield Files("type of a part", *[composite(b"1234", type=word) for word in ("my", "your")])
    yield Files("encoding of a part", encoded_part("ex/1"), encoded_part("ex/2"))
    yield Files("length of a part", encoded_part("ex/1"), encoded_part("ex/1", 5))
    yield Files("known type below", typed2("u8"), typed2("f32"))
    yield Files("st_dtype", opaque("F6_E2M3"), opaque("F6_E3M2"))
    yield Files("bytes of F6", opaque("F6_E2M3"), opaque("F6_E2M3", b"123457"))
    yield Files("long st_dtype", opaque(long_name + "1"), opaque(long_name + "2"))
    for key in "dtype", "layout", "encoding":
        yield Files(key, *[ztensor_file(**{key: long_name + digit}) for digit in "12"])


def unlike_by_bytes_elsewhere():
    """Yield Files whose fields name bytes that are not there, or are others."""
    absent, there = {"offset": 4096, "size": 8}, {"offset": 128, "size": 8}
    for wrap in "%s", "[%s]", '{"x": [1, {"y": %s}]}':
        away, near = [json.loads(wrap % json.dumps(place)) for place in (absent, there)]
        yield Files("bytes elsewhere", tiled(x=away), tiled(b"12345678" * 2, x=away))
        yield Files("bytes of a field", tiled(bytes(72), x=near),
                    tiled(bytes(64) + b"12345678", x=near))


def nested_lists(inner):
    for _ in range(100000):
        inner = [inner]
    return inner


@about()
class SameTest(TestCase):
    """`==` and diff() say the same: they compare values and types, not how these are stored."""

    def check(self, a, b, wanted):
        """Assert what diff() says of two files, and that `==` says the same of their tensors."""
        self.assertEqual(not diff(a, b), wanted)
        one, two = load(a), load(b)
        for name in one:
            if name in two:
                self.check_pair(one[name], two[name])
        if one:
            self.assertEqual([one[name] == two[name] for name in one], [wanted] * len(one))

    def check_pair(self, item, other):
        """Assert that `==`, `!=`, hash() and diff() agree about two tensors."""
        equal = item == other
        meter = tensorfmt.Meter(None, "", 0)
        row = tensorfmt.diff_tensor(item, other, 0.0, 0.0, False, meter)
        self.assertEqual(row["changes"] == [], equal, row)
        self.assertEqual((other == item, item != other), (equal, not equal))
        self.assertTrue(hash(item) == hash(other) or not equal)
        self.assertEqual(item in [other], equal)

    def test_dtype_shape_and_bytes(self):
        one = tensor([[1.0, NAN]])
        turned = tensor([[NAN, 1.0]])[:, ::-1]
        for other in tensor([[1.0, NAN]]), reloaded(one), one[:, :], turned:
            self.assertTrue(one == other)
            self.check_pair(one, other)
            self.assertEqual({one: 5}[other], 5)
        for other in (tensor([1.0, NAN]), tensor([[1.0, NAN]], "float32"), tensor([[1.0, 2.0]]),
                      tensor([[1, 2]])):
            self.assertFalse(one == other)
            self.check_pair(one, other)
        for other in None, "text", 3, load(saved(one)):
            self.assertTrue(one != other and not one == other)
        self.assertFalse(tensor([0.0]) == tensor([-0.0]))  # other bytes
        self.assertEqual(len({tensor([1]), tensor([1]), tensor([1.0]), 1}), 3)

    def test_blocks_that_end_at_other_places(self):
        with Changed(tensorfmt, "BLOCK", 1000):
            part = tensor(list(range(20000)), "int32", (100, 200))[:, ::2]
            self.assertTrue(part == part.contiguous())

    def test_facts(self):
        for one, two in FACT_PAIRS:
            self.assertFalse(tensorfmt.is_same(one, two) or tensorfmt.is_same(two, one))
            for fact in one, two:
                self.assertTrue(tensorfmt.is_same(fact, deepcopy(fact)))
        self.assertTrue(tensorfmt.is_same({"a": 1, "b": (2,)}, {"b": [2], "a": 1}))

    def test_facts_of_every_file(self):
        for row in FACT_HOLDERS:
            if row.format not in READ:
                continue
            pairs = list(self.files_of_facts(row.make))
            self.assertEqual(len(pairs), row.count, row.make)
            for one, two in pairs:
                with self.subTest(make=row.make.__name__, one=load(one), two=load(two)):
                    self.assertEqual(diff(one, one).differences, [])
                    difference, = diff(one, two).differences
                    self.assertEqual(difference["kind"], row.kind)
                    if row.kind == "tensor":
                        self.check(one, one, True)
                        self.check(one, two, False)

    def files_of_facts(self, make):
        """Yield two files for each pair of facts, also in arrays and maps, that they can hold."""
        for a, b in FACT_PAIRS:
            for pair in (a, b), ([a, [a]], [a, [b]]), ({"k": {"l": a}}, {"k": {"l": b}}):
                try:
                    files = [make(value) for value in pair]
                    for data in files:
                        load(data)
                except (ValueError, TypeError):
                    continue
                if files[0] != files[1]:  # else mag, which has no bools
                    yield files

    @about("ztensor", "mag")
    def test_what_is_one_value(self):
        index = cbor_dumps([{"name": "a", "offset": 64, "size": 1, "dtype": "int8",
                             "shape": [1], "encoding": "raw", "x": [NAN]}])
        nans = [ztensor_of_index(replaced(index, (b"\xf9\x7e\0", unhex(text))))
                for text in ["f97e00"] + CBOR_NANS]
        orders = [with_field({"a": 1, "b": {"c": 2, "d": [NAN]}}),
                  with_field({"b": {"d": [NAN], "c": 2}, "a": 1})]
        for files in nans, orders:
            for data in files:
                self.check(files[0], data, True)

    def test_what_is_stored_otherwise_is_the_same(self):
        for rows in plain_stored_otherwise(), sparse_stored_otherwise(), unknown_stored_otherwise():
            for title, one, two in rows:
                with self.subTest(otherwise=title):
                    self.check(one, two, True)

    def test_what_is_not_known_here_is_the_same_only_if_all_is(self):
        for rows in unlike_files(), unlike_by_bytes_elsewhere():
            for title, one, two in rows:
                with self.subTest(differs=title):
                    self.check(one, two, False)
                    if title != "bytes elsewhere":  # which may be others
                        self.check(one, one, True)
                        self.check_copies(load(two))
                    for data in one, two:
                        file = load(data)
                        self.assertEqual(diff(file, file).differences, [])

    def check_copies(self, file):
        for item in file.values():
            for other in copy(item), deepcopy(item), pickle.loads(pickle.dumps(item)):
                self.assertTrue(item == other)

    def test_any_two_tensors(self):
        files = [load(row.data) for row in FILES] + [load(ztensor2_of_all_kinds())]
        by_shape = {}
        for file in files:
            for item in file.values():
                by_shape.setdefault(item.shape, []).append(item)
        for items in by_shape.values():
            for i, item in enumerate(items):
                for other in items[i:]:
                    self.check_pair(item, other)

    @about("ztensor")
    def test_shards_of_ztensor_2(self):
        """Parts in another file are the same only if they are those of one tensor of one path."""
        objects = Map([(name, dense2("f32", at, 8, 2, shard="x-1"))
                       for name, at in (("a", 1), ("b", 1), ("c", 2))])
        for name, of in ("d", "b"), ("e", "c"):
            part = objects[of]["parts"]["data"]
            objects[name] = {"shape": [2], "layout": "ex.new/1", "parts": {"data": part}}
        data = ztensor2_of_objects(objects, shards={
            "x-1": {"size": 12368, "digest": "xxh3:0123456789abcdef"}})
        path = os.path.join(folder_for(self), "m.zt")
        write_file(path, data)
        file = load(path)
        self.addCleanup(file.close)
        for a in file:
            self.assertEqual([file[a] == file[b] for b in file], [a == b for b in file])
            self.assertFalse(file[a] == load(data)[a])
            self.assertTrue(load(path, mmap=False)[a] == file[a] == deepcopy(file)[a])
        for other, count in (file, 0), (path, 0), (data, 5):
            self.assertEqual(len(diff(file, other).differences), count)

    def test_facts_are_nested_without_end(self):
        deep, other, wide, loop = nested_lists([]), nested_lists([0]), [[], []], []
        for _ in range(200):
            wide = [wide, wide]  # 2**200 paths
        loop.append({"x": loop})
        for a, b, wanted in (
                (deep, nested_lists([]), True),
                (deep, other, False),
                (wide, copy(wide), True),
                (wide, [wide, other], False),
                (loop, copy(loop), True),
                (loop, [{"x": 1}], False)):
            self.assertEqual(tensorfmt.is_same(a, b), wanted)
            one, two = [tensor([1.0], custom={"x": x}) for x in (a, b)]
            self.assertEqual(one == two, wanted)
            self.assertEqual(hash(one), hash(two))

    def test_facts_are_compared_in_linear_time(self):
        calls = []
        for count in 100, 200:
            facts = {str(i): [i] for i in range(count)}
            calls.append(calls_of(tensorfmt, "token_of", tensorfmt.is_same, facts, copy(facts)))
        self.assertTrue(calls[1] < 2.1 * calls[0])

    @about("ztensor")
    def test_a_small_stack_is_enough(self):
        from traceback import extract_stack
        one, two = [load(with_field(nested(120)))["a"] for _ in range(2)]
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(len(extract_stack()) + 60)
        try:
            self.assertTrue(one == two)
        finally:
            sys.setrecursionlimit(usual)

    @about("safetensors")
    def test_bools_of_other_bytes(self):
        def of(text):
            entry = {"dtype": "BOOL", "shape": [2, 2], "data_offsets": [0, 4]}
            return safetensors_file({"w": entry}, unhex(text))
        one, two = of("000102ff"), of("00010101")
        self.assertEqual(load(one)["w"].tolist(), load(two)["w"].tolist())
        for a, b, words in (one, two, "2 -> 1"), (two, one, "1 -> 2"):
            row, = diff(a, b).differences
            self.assertEqual(row["changes"], ["same values, bools of other bytes (%s), the first "
                                              "at [1, 0]" % words])
            self.assertFalse(diff(a, b, atol=1e-9))
            self.check(a, b, False)
        row, = diff(one, of("00000101")).differences
        self.assertEqual(row["count"], 1)


def sparse_of_unknown_values(kind, **more):
    return ztensor_file(size=4, shape=[1 << 20, 1 << 20], layout="sparse", sparse_format=kind,
                        nnz=1, **more)


@about("ztensor")
class DiffTest(TestCase):
    """What diff() says of tensors that differ, and where it cannot know."""

    def test_values_that_are_not_known_are_the_same_only_if_all_is(self):
        for a, b in (
                (sparse_of_unknown_values("coo", coords=[1, 1]),
                 sparse_of_unknown_values("coo", coords=[5, 7])),
                (sparse_of_unknown_values("bsr", indices=[1]),
                 sparse_of_unknown_values("bsr", indices=[2])),
                (ztensor_file(layout="tiled", order=1), ztensor_file(layout="tiled", order=2))):
            self.assertEqual(diff(a, a).differences, [])
            self.assertEqual(len(diff(a, b).differences), 1)

    def test_keys_that_are_tuples(self):
        made = [tensor([1], custom={key: 5}) for key in ((1, 2), (1, 2), (1, 3), (1, 2.0))]
        self.assertEqual([made[0] == item for item in made], [True, True, False, False])

    def test_what_may_be_the_same_is_told_as_such(self):
        files = []
        for more in {"layout": "new"}, {"dtype": "new"}:
            files.append([ztensor_file(data_endianness=order, **more)
                          for order in ("little", "big")])
        files.append([ztensor_file(dtype="new", encoding=code) for code in ("lz4", "brotli")])
        for a, b in files:
            self.check_unknown(a, b)
            self.assertFalse(load(a)["a"] == load(b)["a"])
            self.assertTrue(load(a)["a"] == load(a)["a"])

    def test_an_unknown_layout_may_place_other_bytes(self):
        for more in {"layout": "tiled"}, {"layout": "sparse", "sparse_format": "bsr"}:
            data = ztensor_file(size=8, shape=[2], order={"offset": 72, "size": 8}, **more)
            self.check_unknown(data, data)
            self.assertFalse(load(data)["a"] == load(data)["a"])
            self.refuses(["'a'"], dumps, load(data), format="ztensor")  # it would lose them

    def check_unknown(self, a, b):
        row, = diff(a, b).differences
        self.assertIn("not known to be the same: ", row["changes"][0])

    def test_tensors_without_values_differ_by_their_words(self):
        entries = []
        for i, word in enumerate(["bsr", "bsr", "coo", "coo"]):
            entries.append(dict(name="w%d" % i, offset=64, size=4, dtype="float32", shape=[1, 4],
                                encoding="raw", layout="sparse", sparse_format=word, coords=[0, i]))
        data = ztensor_file(*entries)
        a, b = [list(load(data).values()) for _ in range(2)]
        for others in a, b:  # also of one file, where all have the same values
            for i, item in enumerate(a):
                self.assertEqual([item == other for other in others], [i == k for k in range(4)])

    def test_the_same_bits_of_another_dtype_are_other_values(self):
        data = unhex("00000000 0000803f")
        changed = "1 value changed, by 1065353215.0 at most, the first at [1]: "
        for a, b, words in (
                ("int32", "float32", changed),
                ("uint32", "float32", changed),
                ("int32", "uint32", "same values")):
            for one, two in (a, b), (b, a):
                files = [saved(tensor(data, dtype, (2,))) for dtype in (one, two)]
                row, = diff(*files).differences
                types, values = row["changes"]
                self.assertEqual(types, "%s [2] -> %s [2]" % (one, two))
                self.assertTrue(values.startswith(words))
                found = diff(*files, any_dtype=True)
                self.assertEqual(bool(found), words == changed)
                self.assertFalse(load(files[0])["w"] == load(files[1])["w"])

    def test_of_some_tensors_and_places(self):
        a = dumps({"w": [[1.0, 2.0], [3.0, 4.0]], "x": [1.0], "y": tensor([1, 2], "int8")},
                  format="ztensor")
        b = dumps({"w": [[1.0, 2.0], [5.0, 9.0]], "y": tensor([1.0, 2.0], "float32")},
                  format="ztensor")
        for options, names in (
                ({}, "wxy"),
                ({"only": "w"}, "w"),
                ({"exclude": ["w", "x*"]}, "y"),
                ({"any_dtype": True}, "wx")):
            found = diff(a, b, **options)
            self.assertEqual([row["name"] for row in found.differences], list(names))
        self.refuses(["only: no tensor is called 'z*'"], diff, a, b, only="z*")
        text = diff(a, b).text(1)
        words = "the first at [1, 0]: 3.0 -> 5.0\n2 more\n3 tensors, 3 differences"
        self.assertTrue(text.endswith(words))
        for part in 2, tensorfmt.PART:
            with Changed(tensorfmt, "PART", part):
                row, = diff(a, b, only="w").differences
                self.assertEqual((row["first"], row["count"]), ([1, 0], 2))
                self.assertEqual(row["values"], [3.0, 5.0])

    def test_of_tensors_that_are_called_otherwise(self):
        a = dumps({"model.w": [1.0], "model.v": [2.0], "x": [3.0]}, format="ztensor")
        b = dumps({"w": [1.0], "v": [2.5], "x": [3.0]}, format="ztensor")
        rules = {"model.*": "*"}
        for options, lines in (
                ({}, ["- model.v", "- model.w", "+ v", "+ w"]),
                ({"rename": rules}, ["~ v"]),
                ({"rename": lambda name: name.rpartition(".")[2]}, ["~ v"]),
                ({"rename": rules, "only": "w"}, []),
                ({"rename": {"model.w": "w"}, "exclude": "model.*"}, ["+ v"])):
            found = diff(a, b, **options).differences
            found = sorted(["%s %s" % (row["sign"], row["name"]) for row in found])
            self.assertEqual(found, sorted(lines))
        self.refuses(["'model.w' and 'x' would both be 'x'"], diff, a, b,
                     rename={"model.w": "x"})
        self.refuses(["rename: no tensor is called 'z'"], diff, a, b, rename={"z": "x"})


# -- [16c] other copies --------------------------------------------------------------------------


def answer_or_error(module, call, *args, **options):
    """Return what a call returns, or of which class of the module its error is, and the text."""
    try:
        return call(*args, **options)
    except ValueError as error:
        return type(error).__name__, isinstance(error, module.FormatError), str(error)


def answers(module, file, whole):
    """Return all that a module says of a File, perhaps of another copy, beside its own."""
    found = []

    def ask(call, *args, **options):
        found.append(answer_or_error(module, call, *args, **options))

    def diff_of(a, b):
        return module.diff(a, b).to_json()

    def convert_to(**options):
        out = io.BytesIO()
        summary = module.convert(file, out, dense=True, drop=True, **options)
        return out.getvalue(), summary.to_json()
    ask(diff_of, file, whole)
    ask(diff_of, whole, file)
    targets = [{"format": kind} for kind in FORMATS]
    targets += [{"format": row.name, "version": row.newest} for row in WRITES if row.newest]
    for target in targets:
        ask(module.dumps, file, **target)
        ask(module.dumps, dict(file), **target)
        ask(convert_to, **target)
    for name, item in file.items():
        made = module.tensor(item)
        found.append([type(made) is type(whole[name]), made.custom, made.attrs, repr(made)])
        ask(whole[name].__eq__, made)
        ask(whole[name].__eq__, item)
    return found


SMALL_CSR = {"values": [1.0, 2.0], "indptr": [0, 1, 2], "indices": [1, 0]}


def sparse_blob(column):
    """Return a zTensor file of a sparse tensor as ztensor 0.1.4 laid it out."""
    return make_entry(pack("<3Q2Q2f", 0, 1, 2, column, 0, 1, 2), layout="sparsecsr",
                      shape=[2, 2])


def files_between_copies():
    """Yield (title, file) of what two copies could make something else of."""
    custom = {"role": "bias", "x": [b"\1", {"y": NAN}]}
    item = tensor([1.0], custom=custom)
    sparse = tensor(shape=(2, 2), components=SMALL_CSR, custom=custom)
    simple = {"x": {"Any": Simple([99])}}
    yield "metadata", saved(F32, "safetensors", metadata={"license": "MIT"})
    yield "custom", saved(item)
    yield "custom 2", saved(item, version=2)
    yield "sparse", saved(sparse, checksum="crc32c")
    yield "sparse blob", sparse_blob(1)
    yield "bad sparse", sparse_blob(7)
    yield "of each kind", ztensor2_of_all_kinds()
    yield "parts", composite(b"1234", attributes={"k": 1})
    yield "quantized", make_burnpack(*QUANTIZED)
    yield "record", odd_record()
    yield "order of data", dumps([("b", F32), ("a", F32)], format="burnpack")
    yield "a simple value", burnpack_file({"tensors": {}, "scalars": simple}, b"")
    yield "unknown type", record_of([1, NAN])
    yield "rot", rotten(saved(F32, checksum="crc32c"), "w")
    for row in FILES[::3]:
        yield row.title, row.data


class Old:
    """What a Tensor of another version may be: it has not the same facts."""
    dtype, shape, zero_copy, attrs = "float32", (1,), True, {"k": 1}

    def tobytes(self):
        return bytes(4)


@about()
@tells_ends
class OtherCopyTest(FolderCase):
    """What one copy of the module loads, another takes as its own, or refuses."""

    def setUp(self):
        super().setUp()
        self.other = module_of(text_of("tensorfmt.py"))
        self.pairs = (tensorfmt, self.other), (self.other, tensorfmt)
        patch = mock.patch.dict(sys.modules, {"made": self.other})  # so that pickles find it
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_is_taken_as_its_own(self):
        for title, data in files_between_copies():
            for module, foreign in self.pairs:
                whole = module.load(data)
                with self.subTest(file=title, module=module.__name__):
                    self.assertSame(answers(module, foreign.load(data), whole),
                                    answers(module, module.load(data), whole))

    def test_from_paths_streams_and_pickles(self):
        data = saved(tensor([1.0, 2.0], custom={"k": 1}), checksum="crc32c")
        write_file(self.path, data)
        load_other = self.other.load
        with load_other(self.path) as mapped, load_other(self.path, mmap=False) as unmapped:
            item = mapped["w"]
            files = [mapped, unmapped, load_other(io.BytesIO(data)), deepcopy(mapped),
                     pickle.loads(pickle.dumps(mapped)), {"w": item}, {"w": copy(item)},
                     {"w": pickle.loads(pickle.dumps(item))}]
            for file in files:
                self.assertEqual(dumps(file, format="ztensor"), data)
            save(self.at("again"), mapped)  # the format is that of the File
            self.assertEqual(detect(self.at("again")), "ztensor")
            kept = tensor(item)
            self.assertEqual(pickle.loads(pickle.dumps(kept)), kept)
        error_of(ValueError, dumps, mapped, format="ztensor")  # closed
        error_of(ValueError, kept.tolist)

    def test_a_cast_is_made_when_it_is_written(self):
        data = saved(tensor([1.0, 2.0], custom={"k": 1}))
        for module, foreign in self.pairs:
            item = foreign.Cast(foreign.load(data)["w"], "float32")
            made = module.load(module.dumps({"w": item}, format="ztensor"))["w"]
            self.assertEqual((made.dtype, made.tolist()), ("float32", [1.0, 2.0]))
            self.assertEqual(made.custom, {"k": 1})

    def test_files_on_one_stream_take_turns(self):
        data = dumps({"a": tensor([97] * 9, "int8"), "b": tensor([98] * 9, "int8")},
                     format="ztensor")
        for module, foreign in self.pairs:
            stream = Meeting(data)
            one, two = module.load(stream), foreign.load(stream)
            stream.call = two["b"].tolist
            self.assertEqual(one["a"].tolist(), [97] * 9)
            stream.other.join()
            self.assertEqual((stream.result, stream.tell()), ([98] * 9, 0))

    @about("safetensors")
    def test_models_in_shards(self):
        for shard, names in ("1", "ab"), ("2", "cd"):
            tensors = {name: tensor([ord(name)], "int16") for name in names}
            write_file(self.at(shard),
                       dumps(tensors, format="safetensors", metadata={"license": "MIT"}))
        path = self.at("m" + INDEX)
        places = {"a": "1", "b": "1", "c": "2", "d": "2"}
        write_file(path, json.dumps({"weight_map": places}).encode())
        for module, foreign in self.pairs:
            with foreign.load(path) as file, module.load(path) as own:
                self.assertEqual(file["a"].tolist(), [97])  # one shard is open
                self.assertEqual(answers(module, file, own), answers(module, own, own))
                made = module.load(module.dumps(file, format="safetensors"))
                self.assertEqual(made.metadata, {"license": "MIT"})
                self.assertEqual([item.tolist() for item in made.values()],
                                 [[97], [98], [99], [100]])
        os.remove(self.at("2"))
        for module, foreign in self.pairs:
            with foreign.load(path) as file:
                error_of(module.Unsupported, module.dumps, file, format="safetensors")

    @about("ztensor")
    def test_errors_are_those_of_the_copy_that_is_asked(self):
        bad = rotten(saved(F32, checksum="crc32c"), "w")
        for module, foreign in self.pairs:
            for name, data in (
                    ("FormatError", sparse_blob(7)),
                    ("FormatError", make_entry(bytes(10), sparse_format=5)),
                    ("Unsupported", make_entry(bytes(12), sparse_format="new"))):
                item = foreign.load(data)["s"]
                made = module.tensor(item)
                error = error_of(getattr(module, name), made.tobytes)
                self.assertEqual(str(error), str(error_of(getattr(foreign, name), item.tobytes)))
                self.assertEqual(repr(made), repr(item))
            error_of(module.FormatError, module.dumps, foreign.load(bad), format="ztensor")

    @about("burnpack", "ztensor")
    def test_what_copies_that_only_load_give_to_the_whole(self):
        for format, part, data in self.files_of_parts():
            copied = make_copy([format], ["load", part])[1]
            with self.subTest(part=part):
                loaded, whole = copied.load(data), load(data)
                self.assertSame(answers(tensorfmt, loaded, whole),
                                answers(tensorfmt, whole, load(data)))
                for name in whole:
                    self.assertTrue(whole[name] == loaded[name])

    def files_of_parts(self):
        sparse = tensor(shape=(2, 2), components=SMALL_CSR, custom={"role": "bias"})
        return [
            ("ztensor", "sparse", dumps({"s": sparse}, format="ztensor")),
            ("ztensor", "ztensor2", composite(b"1234")),
            ("burnpack", "quantized", make_burnpack(*QUANTIZED)),
        ]

    @about("burnpack", "ztensor")
    def test_a_copy_takes_nothing_of_a_part_that_it_lacks(self):
        small = make_copy(["ztensor"], ["load", "save"])[1]
        for format, part, data in self.files_of_parts():
            file, lacks = load(data), part
            if format == "burnpack":
                lacks = format
            error = error_of(small.Unsupported, small.dumps, file, format="ztensor")
            self.assertEqual(error.what, REFUSES + lacks)
            wanted = ValueError if part == "ztensor2" else small.Unsupported
            error_of(wanted, small.dumps, dict(file), format="ztensor")
        other = make_copy(["mag"], ["load", "save"])[1]
        for data, lacks in (composite(b"1234"), "ztensor"), (sparse_blob(1), "sparse"):
            error = error_of(other.Unsupported, other.dumps, dict(load(data)), format="mag")
            self.assertEqual(error.what, REFUSES + lacks)
        whole = load(saved(tensor([1.0], custom={"k": 1})))
        for file in whole, dict(whole):
            self.assertEqual(small.load(small.dumps(file, format="ztensor"))["w"].custom, {"k": 1})
        one = small.tensor([1.0])
        self.assertTrue(one == tensor([1.0]) and tensor([1.0]) == one)
        self.assertFalse(one == tensor([2.0]))

    def test_of_another_version(self):
        """It is refused: its attributes would be lost."""
        for call, args, options in (
                (tensor, (Old(),), {}),
                (save, (io.BytesIO(), {"w": Old()}), {"format": "ztensor"})):
            error = error_of(TypeError, call, *args, **options)
            self.assertIn("another version of tensorfmt", str(error))
        self.assertFalse(tensor([0.0], "float32") == Old())


# -- [16d] departures ----------------------------------------------------------------------------

# Rows of .docs/departures.md that say "refused" or `Unsupported` in the end; files of [10].
REFUSED_FILES = read_table("""
    heading        matter                                    file
    mag            `aux` of the header                       mag: header aux
    mag 300        version                                   mag 300: version 299
    mag 300        a key or a name twice                     mag 300: key twice
    mag 300        values of another type                    mag 300: timestamp
    mag 300        values of another type                    mag 300: manifest 2
    mag 300        `true` in a shape, surrogates in a name   mag 300: shape
    mag 300        `true` in a shape, surrogates in a name   mag 300: a surrogate
    mag 300        snapshots 100 and 200                     mag: version 100
    mag 300        snapshots 100 and 200                     mag: version 200
    zTensor 0.1    offset                                    zt: offset 65
    zTensor 0.1    offset                                    zt: offset 128
    zTensor 0.1    an index without bytes                    zt: no index
    zTensor 0.1    two tensors of one name                   zt: two of a name
    zTensor 0.1    a key twice; numbers as keys              zt: key twice
    zTensor 0.1    bytes as keys of an entry                 zt: bytes as keys
    zTensor 0.1    a character cut by two chunks of a text   zt: a character in two chunks
    zTensor 0.1    zstd data of 0 bytes                      zt: zstd of 0 bytes
    zTensor 0.1    a shape whose product is over 64 bits     zt: shape wraps
    zTensor 2      zTensor 1.0 to 1.2                        zt: 1.x
    zTensor 2      an array or a map as a key of attributes  zt 2: a list as a key
    zTensor 2      an encoded size that cannot be right      zt 2: a bomb
    primitiv       version                                   primitiv: version 0.2, ce
    primitiv       names twice                               primitiv: parameter twice
    Burnpack       magic                                     bpk: BURN
    Burnpack       a file that lacks bytes before the data   bpk: no padding
    Burnpack       size and shape that do not agree          bpk: size and shape
    Burnpack       a name twice                              bpk: a name twice
    Burnpack       three offsets; a shape as bytes           bpk: offsets
    Burnpack       three offsets; a shape as bytes           bpk: a shape of bytes
    Burnpack       keys as bytes                             bpk: bytes as keys
    Burnpack       chunks inside of a chunk; a map as a key  bpk: a chunk in a chunk
    Burnpack       chunks inside of a chunk; a map as a key  bpk: a map as a key
    Burnpack       300 tags around a value                   bpk: tags
    Burnpack       version 0; `scalars` that is no map       bpk: version 0
    Burnpack       version 0; `scalars` that is no map       bpk: scalars
    TensorBuffers  last magic                                tbs: trailing magic
    TensorBuffers  type 0                                    tbs: data_type 0
    TensorBuffers  names twice; sizes that do not fit        tbs: size
    TensorBuffers  files without magic                       tbs: no magic
    safetensors    a name or a key twice                     safetensors: name twice
    safetensors    a name or a key twice                     safetensors: a key twice
    safetensors    blanks in front of `{`                    safetensors: a blank
    safetensors    an entry as an array                      safetensors: an array as entry
    safetensors    bytes after the data                      safetensors: bytes behind
    safetensors    a shape whose product is over 64 bits     safetensors: 2**66 of 8 bytes
    Burn .mpk      bytes as a list of numbers                mpk: a list of numbers
    Burn .mpk      size and shape that do not agree          mpk: size
    Burn .mpk      lists of numbers (before Burn 0.14)       mpk: lists
    Burn .mpk      a key twice                               mpk: key twice
""")


class DeparturesTest(TestCase):
    """What .docs/departures.md says of files that are not as their specifications say."""

    def setUp(self):
        self.matters = set()

    @contextmanager
    def row(self, matter):
        """Look at a row of the document."""
        self.matters.add(matter)
        with self.subTest(matter=matter):
            yield

    def cannot_save(self, item, format, **options):
        error_of(ValueError, dumps, {"w": item}, format=format, **options)

    def has_no_values(self, data):
        """Assert that a file opens, and that the values of its first tensor are Unsupported."""
        first = list(load(data).values())[0]
        error_of(Unsupported, first.tolist)

    def value_at(self, data, name):
        """Return the value that explain shows of a field."""
        for field in explain(data):
            if field.name == name:
                return field.value
        return None

    @about()
    def test_each_row_of_the_document_is_tested(self):
        checks = {
            "mag": self.check_mag,
            "mag 300": self.check_mag300,
            "zTensor 0.1": self.check_ztensor,
            "zTensor 2": self.check_ztensor2,
            "primitiv": self.check_primitiv,
            "Burnpack": self.check_burnpack,
            "TensorBuffers": self.check_tensorbuffers,
            "safetensors": self.check_safetensors,
            "Burn .mpk": self.check_burnrecord,
        }
        bad = {name: (data, error_class) for name, data, error_class in all_bad_files()}
        sections = text_of(path_of(self, ".docs", "departures.md")).split("\n## ")[1:]
        self.assertEqual([section.split("\n")[0] for section in sections], list(checks))
        for section in sections:
            heading = section.split("\n")[0]
            rows = re.findall(r"(?m)^\| (.*?) \|.*\| (.*?) \|$", section)
            with self.subTest(format=heading):
                self.matters = set()
                checks[heading]()
                self.check_refused(heading, dict(rows), bad)
                self.assertEqual(sorted(self.matters), sorted([row[0] for row in rows[1:]]))

    def check_refused(self, heading, said, bad):
        """Look at the rows of refused files; `said` is the last column."""
        for row in REFUSED_FILES:
            if row.heading != heading:
                continue
            with self.row(row.matter):
                data, error_class = bad[row.file]
                error_of(error_class, load, data)
                word = "refuse"
                if error_class is Unsupported:
                    word = "`Unsupported`"
                self.assertIn(word, said[row.matter])

    def check_mag(self):
        text, real = golden("seed_basic.mag"), golden("m012_mixed.mag")
        with self.row("record of a tensor"):
            layouts = [load(data).attrs["layout"] for data in (text, real)]
            self.assertEqual(layouts, ["spec", "magnetron-0.1.2"])
            again = dumps(load(real), format="mag")
            self.assertEqual(load(again).attrs["layout"], "spec")
        with self.row("length of the data"):
            self.assertEqual(self.value_at(text, "tensors[0].data_length"), 12)
            self.assertEqual(self.value_at(real, "tensors[0].numel"), 3)
        with self.row("checksum"):
            end = 0xCF
            without = text[:8] + bytes(4) + text[12:end]
            self.assertEqual(text[8:12], uint32s(crc32(without)))
            for checksum in crc32, crc32c:
                load(text[:8] + uint32s(checksum(text[12:end])) + text[12:])
        with self.row("`aux` of metadata"):
            metadata = Map([("a", 1), ("b", -1), ("c", 0.5)])
            data = dumps({}, format="mag", metadata=metadata)
            self.assertEqual([self.value_at(data, "metadata[%d].type" % i) for i in range(3)],
                             [0, 1, 2])
        with self.row("unused dimensions, scalars"):
            shapes = ((2, 3), [2, 3, 0, 0, 0, 0]), ((3, 0), [3, 0, -1, -1, -1, -1]), ((), [0] * 6)
            for shape, stored in shapes:
                item = tensor(bytes(4 * count_of(shape)), "float32", shape)
                data = dumps({"w": item}, format="mag")
                self.assertEqual(self.value_at(data, "tensors[0].shape"), stored)
        with self.row("numbers of types and version"):
            data = golden("m012_dtypes.mag")
            stored = [self.value_at(data, "tensors[%d].aux" % i) & 255 for i in range(4)]
            self.assertEqual((self.value_at(data, "version"), stored), (1, [1, 2, 0, 3]))
        with self.row("alignment and padding"):
            self.assertEqual([item.offset for item in load(text).values()], [0x100, 0x140])
            self.assertEqual((set(text[0xCF:0x100]), set(real[0xA4:0xC0])), ({0}, {255}))
        with self.row("dimensions"):
            self.cannot_save(tensor([1.0], "float32", (1,) * 7), "mag")
        with self.row("big-endian machines"):
            self.assertEqual(load(text)["x"].tobytes()[:4], unhex("0000803f"))

    def check_mag300(self):
        with self.row("big-endian data"):
            item = load(mag300_replaced(aux=1))["w"]
            numbers = unpack(">6f", item.raw)
            self.assertEqual(item.tobytes(), pack("<6f", *numbers))
        with self.row("unknown `dtype_id`"):
            self.has_no_values(mag300_with({"tensor_map.w.dtype_id": 99}))

    def check_ztensor(self):
        good = ztensor_file()
        again = dumps(load(good), format="ztensor")
        with self.row("maps of the index"):
            self.assertEqual((good[80:82], again[80:82]), (b"\x81\xa6", b"\x81\xbf"))
        with self.row("`layout` is absent"):
            self.assertEqual(load(good)["a"].tolist(), [1.0] * 4)
            self.assertIn(b"layout", again)
        with self.row("sparse layouts"):
            csr = make_entry(pack("<3Qf", 0, 1, 1, 1), layout="sparsecsr", shape=[1, 2])
            coo = make_entry(pack("<2Qf", 0, 1, 1), layout="sparsecoo", shape=[1, 2])
            saved = dumps(load(csr), format="ztensor")
            for data in csr, coo, saved:
                self.assertEqual(load(data)["s"].tolist(), [[0.0, 1.0]])
            self.assertEqual(self.value_at(saved, "index[0].layout"), "sparse")
        with self.row("unknown type, encoding or layout"):
            for key in "dtype", "encoding", "layout":
                self.has_no_values(ztensor_file(**{key: "new"}))
        with self.row("checksum sha256"):
            self.assertFalse(verify(ztensor_file(checksum="sha256:" + "0" * 64)))
        with self.row("checksum crc32c"):
            wrong = ztensor_file(checksum="crc32c:0x00000000")
            self.assertFalse(verify(wrong))
            self.assertEqual(load(wrong)["a"].tolist(), [1.0] * 4)
        with self.row("byte order of zstd data"):
            data = ztensor_file(encoding="zstd", data_endianness="big")
            self.assertEqual(load(data)["a"].attrs["data_endianness"], "big")
            self.cannot_save(F32, "ztensor", encoding="zstd", data_endianness="big")
        with self.row("padding"):
            padded = load(patched(good, (8, "ff")))
            self.assertEqual(dumps(padded, format="ztensor"), again)
        with self.row("a key twice; numbers as keys"):
            self.assertEqual(load(ztensor_file(x={5: 1}))["a"].custom, {"x": {5: 1}})

    def check_ztensor2(self):
        with self.row("a shape with 0 and a huge product"):
            zero = dense2("f32", 1, 0, 0, 1 << 40, 1 << 40)
            self.assertEqual(len(load(ztensor2_of_objects({"w": zero}, (b"",)))), 1)
        with self.row("bytes of bool over 1"):
            data = ztensor2_with({"objects.w": dense2("u8", 1, 3, 3, type="bool")})
            self.assertEqual(load(data)["w"].tobytes(), b"\0\0\x80")
            self.assertFalse(verify(data))
        with self.row("sparse coordinates"):
            parts = {"coords": part2("u64", 1, 8), "values": part2("u8", 2, 1)}
            outside = {"shape": [2], "layout": "zt.sparse_coo/1", "parts": parts}
            file = load(ztensor2_of_objects({"w": outside}, (b"\7" + bytes(7), b"\1")))
            error_of(FormatError, file["w"].tolist)
        with self.row("tensors in other files"):
            file = load(ztensor2_of_all_kinds())
            error_of(Unsupported, file["far"].tolist)

    def check_primitiv(self):
        short = primitiv_of_values(TENSOR, [[1], 1, pack("<f", 1)])
        with self.row("batch"):
            two = load(primitiv_of_values(TENSOR, [[1], 2, pack("<2f", 1, 2)]))
            self.assertEqual(load(dumps(two, format="primitiv"))["tensor"].shape, (1, 2))
            self.cannot_save(two["tensor"], "primitiv")
        with self.row("integers and floats"):
            again = dumps(load(short), format="primitiv")
            self.assertIn(unhex("91 ce00000001 ce00000001"), again)
        with self.row("ranks"):
            deep = load(primitiv_of_values(TENSOR, [[1] * 32, 1, bytes(4)]))
            self.assertEqual(deep["tensor"].shape, (1,) * 32)
            for shape in (1,) * 9, (0,):
                self.cannot_save(tensor(bytes(4 * count_of(shape)), "float32", shape), "primitiv")
            again = dumps({"w": tensor([[1.0]], "float32")}, format="primitiv")
            self.assertEqual(load(again)["w"].shape, (1, 1))
        with self.row("order"):
            data = dumps({"b": F32, "a": F32}, format="primitiv")
            self.assertEqual(list(load(data)), ["a", "b"])
            other = primitiv_of_values(MODEL, [2, ["b"], SCALAR, 0, ["a"], SCALAR, 0])
            self.assertEqual(list(load(other)), ["b", "a"])
        with self.row("bytes after the end"):
            self.assertEqual(load(short + b"\0")["tensor"].tolist(), [1.0])
            self.assertFalse(verify(short + b"\0"))
        with self.row("byte order of data"):
            self.assertEqual(load(short)["tensor"].tolist(), [1.0])
        with self.row("files of kind `shape` and `tensor`"):
            for title in "shape_batch5.primitiv", "tensor_special.primitiv":
                self.assertEqual(dumps(load(golden(title)), format="primitiv"), golden(title))
        with self.row("bytes of names"):
            odd = load(primitiv_of_values(MODEL, [1, Code(b"\x91\xa1\xff"), SCALAR, 0]))
            self.assertIn(b"\x91\xa1\xff", dumps(odd, format="primitiv"))
        with self.row("names with a dot, colon or backslash"):
            names = list(load(golden("model_escapes.primitiv")))
            self.assertEqual(names[:3], ["a\\.b", "c\\:d", "e\\\\f"])

    def check_burnpack(self):
        packed, aligned = load(golden("v019_basic.bpk")), load(golden("v021_basic.bpk"))
        with self.row("alignment"):
            self.assertEqual((packed.attrs["layout"], aligned.attrs["layout"]),
                             ("packed", "aligned"))
        with self.row("type of bool"):
            self.assertEqual(load(golden("v020_bool.bpk"))["mask"].dtype, "bool")
            self.assertIn(b"\x65dtype\xa1\x64Bool", dumps({"m": [True]}, format="burnpack"))
        with self.row("keys beside the tensors"):
            self.assertEqual(list(aligned.metadata), ["format", "producer", "version"])
            scalars = load(golden("head_scalars.bpk")).attrs["scalars"]
            self.assertEqual(scalars["a_int"], {"Int": -5})
            self.assertNotIn(b"scalars", golden("v021_tiny.bpk"))
        with self.row("`param_id`"):
            self.assertEqual(load(burnpack_with(param_id=None))["a"].attrs, {})
            self.assertNotIn(b"param_id", dumps({"a": F32}, format="burnpack"))
        with self.row("order of tensors"):
            file = load(dumps([("b", F32), ("a", F32)], format="burnpack"))
            self.assertEqual(list(file), ["a", "b"])
            self.assertEqual(list(converted(file, "ztensor")[0]), ["b", "a"])
        with self.row("files of burn 0.19"):
            values = [[item.tobytes() for item in file.values()] for file in (packed, aligned)]
            self.assertEqual(values[0], values[1])
        with self.row("unknown types; bool as text"):
            self.has_no_values(burnpack_with(dtype="F8"))
            self.assertEqual(load(burnpack_with(dtype="Bool", shape=[4]))["a"].dtype, "bool")
        with self.row("numbers as keys, text in chunks"):
            self.assertEqual(len(load(burnpack_file({"tensors": {}, 5: 1}))), 0)
            entry = b"\xa3\x65dtype\x7f\x62F3\x612\xff\x65shape\x81\x01\x6cdata_offsets\x82\0\x04"
            file = load(burnpack_file(b"\xa1\x67tensors\xa1\x61a" + entry))
            self.assertEqual(file["a"].dtype, "float32")

    def check_tensorbuffers(self):
        data, real = golden("sorted_one.tbs"), load(golden("up_head_mixed.tbs"))
        three = {"b": F32, "a": F32, "c": F32}
        with self.row("length in front of the last magic"):
            start = len(data) - 8 - self.value_at(data, "metadata_size")
            root = [field for field in explain(data) if field.name == "root"]
            self.assertEqual(root[0].offset, start)
        with self.row("`operations`"):
            self.assertEqual(len(load(golden("up_7190fc4_f32.tbs"))), 2)
            usual = dumps({}, format="tensorbuffers")
            older = dumps({}, format="tensorbuffers", operations=False)
            self.assertEqual(len(usual) - len(older), 8)
        with self.row("order of tensors"):
            file = load(dumps(three, format="tensorbuffers"))
            ids = [item.attrs["id"] for item in file.values()]
            self.assertEqual(ids, sorted(ids))
            file = load(dumps(three, format="tensorbuffers", sort=False))
            self.assertEqual(list(file), list(three))
        with self.row("`id`"):
            made = load(dumps({"f32": F32}, format="tensorbuffers"))
            self.assertEqual(made["f32"].attrs["id"], real["f32"].attrs["id"])
            other = load(tensorbuffers_with({"tensors[0].id": 5}))
            self.assertEqual(other["w"].attrs["id"], 5)
        with self.row("`model`"):
            for metadata in {"model": "m"}, {}:
                made = load(dumps({}, format="tensorbuffers", metadata=metadata))
                self.assertEqual(made.metadata, metadata)
        with self.row("names twice; sizes that do not fit"):
            twice = [("w", F32), ("w", F32)]
            error_of(ValueError, dumps, twice, format="tensorbuffers")
        with self.row("alignment of data"):
            self.assertEqual(real["f64_at_5"].offset, 5)
        with self.row("alignment inside of the FlatBuffer"):
            self.assertEqual(len(load(data[:4] + b"\0" + data[4:])), 1)

    def check_safetensors(self):
        with self.row("unknown type"):
            data = safetensors_file({"w": {"dtype": "F99"}})
            self.has_no_values(data)
            self.assertIn("note", str(verify(data)))
        with self.row("empty metadata without tensors"):
            data = dumps({}, format="safetensors", empty_metadata=True)
            self.assertEqual(data[8:].rstrip(), b'{"__metadata__":{}}')
        with self.row("arrays that are not row-major"):
            columns = tensor([[1.0, 2.0]], "float32")[:, ::-1]
            self.assertEqual(load(dumps({"w": columns}, format="safetensors"))["w"].tolist(),
                             [[2.0, 1.0]])
        with self.row("bfloat16 with numpy"):
            data = dumps({"w": tensor([1.5], "bfloat16")}, format="safetensors")
            self.assertEqual(load(data)["w"].tolist(), [1.5])

    def check_burnrecord(self):
        with self.row("bool as text; unknown types"):
            file = load(record_file(record_entry(b"\1", [1], "Bool")))
            self.assertEqual(file["item"].dtype, "bool")
            self.has_no_values(record_file(record_entry(b"\1", [1], "F8")))
        with self.row("no key `_b`"):
            self.assertEqual(len(load(record_file(RECORD_TENSOR, end=""))), 1)


# -- [17] the command ----------------------------------------------------------------------------


def add_tests(name):
    """Take in the tests of a file in the folder .ci, as if they stood here."""
    from importlib.util import module_from_spec, spec_from_file_location
    path = os.path.join(HERE, ".ci", name + ".py")
    if os.path.exists(path):
        sys.modules["test_tensorfmt"] = sys.modules["__main__"]
        spec = spec_from_file_location(name, path)
        made = module_from_spec(spec)
        spec.loader.exec_module(made)
        globals().update([(name, kind) for name, kind in vars(made).items()
                          if name.endswith("Test")])
    else:
        print("skipped: its tests, no .ci/%s.py" % name, file=sys.stderr)


def load_tests(loader, tests, pattern):
    """Return the tests of a module; with `--format NAME` those that are about the format."""
    def wanted(test):
        name, kind = test._testMethodName, type(test)
        topics = getattr(getattr(kind, name), "about", getattr(kind, "about", None))
        return (topics is None or chosen(*topics)) and (kind.__module__ == __name__ or (
            name in ("test_numpy_sees_every_tensor", "test_" + ONLY)))  # of those in .ci
    return unittest.TestSuite([test for kind in tests for test in kind if wanted(test)]) if (
        ONLY) else tests


class ShortResult(unittest.TextTestResult):
    """Of the subtests of one test that fail, five are printed; the others are counted."""

    MOST = 5
    first = ()  # (place in the tests, text) of what fails first there: that is the cause most often
    failed = 0  # Python 3.12.1 does not start a test that is skipped

    def startTest(self, test):
        super().startTest(test)
        self.failed = 0
        self.last_list = None  # where the last subtest stands that is printed

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.failed += 1
            self.note_first(subtest, error)
            if self.failed > self.MOST:
                return
            is_failure = issubclass(error[0], test.failureException)
            self.last_list = self.failures if is_failure else self.errors
        super().addSubTest(test, subtest, error)

    def addFailure(self, test, error):
        self.note_first(test, error)
        super().addFailure(test, error)

    def addError(self, test, error):
        self.note_first(test, error)
        super().addError(test, error)

    def stopTest(self, test):
        more = self.failed - self.MOST
        if more > 0:
            subtest, text = self.last_list[-1]
            text += "\nand %d more subtests of this test\n" % more
            self.last_list[-1] = (subtest, text)
        super().stopTest(test)

    def note_first(self, test, error):
        """Keep what stands first in this file, whose later sections stand on earlier ones."""
        kind = type(getattr(test, "test_case", test))
        place = (kind.__module__ != __name__, kind.__name__)
        if kind.__module__ == __name__:
            place = (False, first_line(kind))
        if not self.first or place < self.first[0]:
            said = str(error[1]).split("\n")[0]
            self.first = place, "%s: %s: %s\n    %s" % (
                test.id(), error[0].__name__, said[:300], places_of(error[2]))


def first_line(kind):
    """Return the first line of a class that has tests."""
    lines = [value.__code__.co_firstlineno for name, value in vars(kind).items()
             if name.startswith("test") and hasattr(value, "__code__")]
    return min(lines, default=0)


def places_of(traceback):
    """Return the line of the test, and that of the module where it went wrong, if it did there."""
    from traceback import extract_tb
    in_test, in_module = "", ""
    for path, line, _, _ in extract_tb(traceback):
        name = os.path.relpath(path, HERE)
        if name == "tensorfmt.py":
            in_module = ", raised in %s:%d" % (name, line)
        elif not in_test and not name.startswith(os.pardir):
            in_test = "%s:%d" % (name, line)
    return in_test + in_module


class ShortRunner(unittest.TextTestRunner):
    resultclass = ShortResult

    def run(self, test):
        result = super().run(test)
        if result.first:
            self.stream.writeln("Look first at " + result.first[1])
        return result


@about()
class RunnerTest(TestCase):
    class Failing(unittest.TestCase):
        def test(self):
            for number in range(7):
                with self.subTest(number=number):
                    self.fail("as it should")

    def test_five_subtests_are_printed_and_where_to_look(self):
        stream = io.StringIO()
        ShortRunner(stream=stream).run(self.Failing("test"))
        text = stream.getvalue()
        self.assertEqual(text.count("\nFAIL: "), 5)
        self.assertIn("\nand 2 more subtests of this test\n", text)
        look, place = text.strip().split("\n")[-2:]
        self.assertRegex(look, r"^Look first at .*Failing\.test .*: as it should$")
        self.assertRegex(place, r"^ +test_tensorfmt\.py:[0-9]+$")


HELP = """\
This file runs tests, and more:

  python3 test_tensorfmt.py                        all tests, about a minute
  python3 test_tensorfmt.py SaveTest               one class, or SaveTest.test_metadata_come_back
  python3 test_tensorfmt.py --format NAME          what concerns one format
  python3 test_tensorfmt.py --accept               write the texts in .ci/accepted anew
  python3 test_tensorfmt.py bench                  measure speed (.ci/bench.py)
  python3 test_tensorfmt.py fuzz [SECONDS] [SEED]  change good files at random (.ci/fuzz.py)
  python3 test_tensorfmt.py corpus FOLDER          write the good and the bad files (.ci/corpus.py)
  python3 test_tensorfmt.py golden FILE            print the call of add_golden() for a file

NAME is one of %s.

The rest is help of unittest:
"""


def print_golden(path):
    """Print the call of add_golden() for a file, with the values that we read."""
    import textwrap
    from base64 import b64encode
    from zlib import compress
    data = read_file(path)
    file = load(data)
    lines = []
    for name, item in file.items():
        shape = json.dumps(item.shape, separators=(",", ":"))
        lines.append("    %s  %s  %s  %s" % (name, item.dtype, shape, tohex(item.tobytes())))
    packed = textwrap.fill(b64encode(compress(data, 9)).decode(), 92)
    print('add_golden("%s", "%s", "WRITER AND VERSION", """\n%s\n""", """\n%s\n""")' % (
        file.format, os.path.basename(path), textwrap.indent(packed, "    "), "\n".join(lines)))


def find_tool(name, word):
    """Return the path of a script in .ci; if it is not there, say who needs it and end."""
    path = os.path.join(HERE, ".ci", name)
    if not os.path.exists(path):
        sys.exit("error: %s needs .ci/%s, which is not beside this file: the repository has it, in "
                 "a hidden folder" % (word, name))
    return path


def run_tool(word):
    """Run a script in .ci as a program."""
    path = find_tool(word + ".py", word)
    try:
        runpy.run_path(path, run_name="__main__")
    except ModuleNotFoundError as error:
        sys.exit("error: %s needs the module %s: pip install %s" % (word, error.name, error.name))


if __name__ == "__main__":
    if sys.argv[1:2] in (["bench"], ["corpus"], ["fuzz"]):
        run_tool(sys.argv.pop(1))
    elif sys.argv[1:2] == ["golden"]:
        if len(sys.argv) != 3:
            sys.exit("usage: python3 test_tensorfmt.py golden FILE")
        print_golden(sys.argv[2])
    else:
        if not {"-h", "--help"}.isdisjoint(sys.argv):
            print(HELP % ", ".join(names_of(EVERY)))
        os.fsync = os.fstat  # no test sees a disk; that it may fail or be missing is tested
        ACCEPT = "--accept" in sys.argv
        if ACCEPT:
            find_tool("texts.py", "--accept")
        add_tests("shell")  # commands, terminals, pages
        add_tests("texts")  # what people read, as accepted texts
        add_tests("peers")  # beside other libraries
        sys.argv = ["TextsTest" if word == "--accept" else word for word in sys.argv]
        unittest.main(testRunner=ShortRunner)
