# SPDX-License-Identifier: MIT
"""What people read, as texts that somebody has looked at: `test_tensorfmt.py --accept` writes them.

They stand in .ci/accepted, whole, for people to read and for `git diff`:

    errors.txt      of each file that the tests break: its name, error, field and offset
    messages.txt    each message once: numbers are #, quoted texts are '..'
    explains.txt    the whole of `explain`, for a small file of each generation
    commands.txt    commands, and all that they print
    help.txt        what -h prints, and what is said of misuse

A command is added as a line of one of the last three, with `$ ` before it, behind an empty line;
` < FILE` at its end is its standard input; `python3 -m tensorfmt` before it: in a process.

What must hold for every file is check_mutant() of fuzz.py.
"""
import io
import json
import os
import re
import shlex
import sys
import unittest
from difflib import unified_diff

import tensorfmt
import test_tensorfmt
from test_tensorfmt import (
    broken_files, burnpack_with, Changed, documented, dumps, error_of, F32, FILES, folder_for,
    FORMATS, go_to, HERE, INF, load, many_tensors, NAN, NET, PYTHON, read_file, REFUSED, run,
    safetensors_file, scheme, tensor, TestCase, USUAL, write_file, ztensor_file)

ACCEPTED = os.path.join(HERE, ".ci", "accepted")
usual_words = unittest.skipUnless(
    USUAL and PYTHON >= (3, 10), "argparse and json of others have other words")
GONE = [  # what arrives instead of a model
    b"Invalid username or password.", "\u0434\u043e\u0441\u0442\u0443\u043f\n".encode(),
    b'{"error": "Repository not found"}\n', bytes(5), bytes(4096), b"\xfd7zXZ\0\0\4",
    b"BZh91AY&SY\0\0", b"\x1f\x8b\x08" + bytes(9), b"\x28\xb5\x2f\xfd\4\0",
    b"model.zt".ljust(257, b"\0") + b"ustar\x0000", b"PK\3\4" + bytes(26) + b"w.npy",
    b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\n",
    b"version https://git-lfs.github.com/spec/v1\n", b"\n<html><body>",
    b"<?xml version='1.0'?><Error>", b"\x08\x07\x12\x07pytorch", b"\1\2\3",
    b"\x1c\0\0\0TFL3\x14\0", b"\x81\xa6params\x81\xa7Dense_0\x81\xa6kernel\xc7",
    b"\x08\x01\x12\xff\x10", '{"\xe9": 1}'.encode("utf-16-le")]
DIFFERENT = [  # name, what one.safetensors and two.safetensors have
    ("f", tensor([1.0, 100.0, NAN, 5.0, 0.0], "float32"),
     tensor([1.5, 100.5, NAN, 5.0, -0.0], "float32")), ("z", [0.0], [-0.0]),
    ("i", tensor([5, 1 << 60]), tensor([5, 2**60 + 1])), ("j", [(1 << 53) + 1], [2.0**53]),
    ("e", tensor([1.0], "float8_e5m2"), tensor([0.0], "float8_e5m2")),
    ("g", tensor([1.0, 2.0], "float32"), [1.5, 2.0])] + [
    ("w%d" % i, [one, 4.0], [two, 4.0]) for i, (one, two) in enumerate((
        (INF, -INF), (1.0, INF), (NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, INF), (1.0, 2.0)))]
BLOCK = tensor([float(i) for i in range(60)], "float32", (3, 4, 5))
LATER = {"w": F32, "e": tensor([], "int64")}
SAVED = [  # path, tensors, options
    ("a.zt", {"w": tensor([1.0, 2.0], "float32"), "v": tensor([1, 2], "int64")}),
    ("b.zt", {"w": tensor([1.0, 2.5], "float32"), "v": [1, 2], "x": [NAN, INF]}),
    ("c.mag", {"w": tensor([[1.0, 2.5]], "float32")}),
    ("net.zt", dict(many_tensors(12), **{"head": [1.0, 2.0], "model.layers.1.more": [True]})),
    ("wide.zt", {"w": [list(range(3000)), list(range(3000))], "s": 0.5}),
    ("sparse.zt", {"s": tensor(shape=(3, 5), components={
        "values": tensor([1.0, 2.0], "float16"), "indices": [0, 4], "indptr": [0, 1, 1, 2]}),
                   "w": F32}),
    ("names.zt", {"n\n\x1b" + "x" * 90: F32, " ": F32, "": F32, "&<": F32}), ("cut.bpk", NET),
    ("v300.mag", LATER, {"version": 300, "metadata": {"by": "me"}}),
    ("v2.zt", LATER, {"version": 2, "metadata": {"by": "me"}}),
    ("parts.zt", {"a[0].w": BLOCK[0], "a": BLOCK, "s": tensor(7)}),
    ("odds.zt", [("w", tensor([1.5, -2.0, NAN, INF], "float32")), ("b", [True, False]),
                 ("i", tensor([3, 1 << 62])), ("n", tensor([NAN, NAN], "float16")),
                 ("e", tensor([], "int8")), ("o", [1e308, 1e308]), ("t", [0.1])]),
    ("sort.zt", [("b", [1.0]), ("a", [1.0] * 3), ("c", [1.0] * 2)]),
    ("tree.zt", [("model.layers.%d.%s" % (i, part), tensor([0.0] * size, dtype))
                 for i in range(12) for part, size, dtype in (
                     ("mlp.up", 6, "float32"), ("mlp.down", 4, "float16"), ("norm", 2, "float32"))]
     + [("model.embed", tensor([1], "uint8"))]),
    ("wood.zt", [("a.%c.%c" % (97 + i % 6, 97 + i // 6), F32) for i in range(36)]),
    ("dots.zt", {"a": [1.0], "a.b": [2.0, 3.0], "": [1.0], ".": [2.0], "c.d": [1.0]}),
    ("one.safetensors", [row[:2] for row in DIFFERENT]),
    ("two.safetensors", [row[::2] for row in DIFFERENT]),
    ("pt.safetensors", {"w": F32}, {"metadata": {"format": "pt"}}),
    ("old.bpk", {"w": F32}, {"scalars": {"s": {"Int": 0}}}),
    ("new.bpk", {"w": F32}, {"scalars": {"s": {"Int": 1}}}),
    ("many.zt", dict([("t%d" % i, tensor([1.5], "float64", custom={"user": i})) for i in range(7)],
                     half=tensor([1.0], "float16")), {"version": "0.1"}),
    ("float8.zt", {"w": tensor([1.0], "float8_e5m2")}, {"version": 2}),
    ("big.zt", {"w": tensor([0x4241, 0x4443], "uint16")}, {"data_endianness": "big"}),
    ("n.mag", {"w": F32}, {"metadata": {"n": NAN, "i": -INF, "k": 1}}),
    ("rot.zt", {"a": F32, "b": F32, "c": F32}, {"checksum": "crc32c"}),
    ("m.bpk", {"model.a": F32, "model.b": F32, "b.bias": F32}, {"metadata": {"x": "1", "y": "2"}}),
    ("letters.bpk", [(name, F32) for name in (
        "\u65e5\u672c.\u91cd\u307f", "gr\xf6\xdfe", "a\u202eb", " \xe9 ", "\u2028\xe9")],
     {"metadata": {"\u984c": "\u65e5\u672c\x9b"}}),
    ("kinds.bpk", {"double": [1.5, 2.5], "few": [1, -2], "many": [1 << 40, -5],
                   "half": tensor([1.0], "bfloat16")}),
    ("m/0.safetensors", {"a": F32}, {"metadata": {"k": "1"}}),
    ("m/1.safetensors", {"b": F32}, {"metadata": {"k": "2"}})]


def write_files():
    """Write the files that commands name into the folder where we are."""
    os.mkdir("m")
    for path, rows, *options in SAVED:
        tensorfmt.save(path, rows, **(options[0] if options else {}))
    for _, title, data, _ in FILES:
        write_file(title, data)
    for i, data in enumerate(GONE):
        write_file("gone%02d" % i, data)
    for name in ("-h", "--json"):
        write_file(name, read_file("seed_basic.mag"))
    write_file("cut.bpk", read_file("cut.bpk")[:-24])
    data = read_file("rot.zt")
    write_file("rot.zt", data[:64] + b"\xff" + data[65:128] + b"\xff" + data[129:])
    write_file("types.safetensors", safetensors_file({
        "F8_E4M3": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]},
        "F4": {"dtype": "F4", "shape": [4], "data_offsets": [2, 4]},
        "w": {"data_offsets": [4, 12]}}, bytes(range(65, 77))))
    write_file("deep.safetensors", safetensors_file({
        "w": {"dtype": "U8", "shape": [9] + [1] * 64, "data_offsets": [0, 9]}}, b"ABCDEFGHI"))
    write_file("broken.zt", ztensor_file(shape=[5]))
    write_file("odd.zt", ztensor_file(encoding="lz4", name="w"))
    for i, name in enumerate(("Q8S", "E4M3")):
        write_file("q%d.bpk" % i, burnpack_with(dtype=scheme(name), shape=[4]))
    for path, more in ("m/m.safetensors.index.json", {}), ("m/lost.json", {"c": "2.safetensors"}):
        places = dict({"a": "0.safetensors", "b": "1.safetensors"}, **more)
        write_file(path, json.dumps({"metadata": {"total_size": 8}, "weight_map": places}).encode())


def known_files(test):
    """Return rows (unique name, bytes) of the files that the tests break; some can be read.

    The name begins with the format; where some are called alike, they are numbered. Those that
    need a module for zstd are left out: it is not everywhere. So is a trailing comma, which json
    tells at another place since Python 3.13: test_a_trailing_comma_is_where_json_says.
    """
    rows, counts = [], {}
    for name, data in broken_files(test):
        if ": " not in name:
            name = "%s: %s" % (tensorfmt.detect(data) or "no format", name)
        counts[name] = counts.get(name, 0) + 1
        if not name.endswith((" zstd", "trailing comma")):
            rows.append((name + (" #%d" % counts[name] if counts[name] > 1 else ""), data))
    return rows


def what_is_wrong(data):
    """Return (error, field, offset) as a text; of what can be read, the checks with a note."""
    try:
        load(data, verify=True)
    except tensorfmt.FormatError as error:
        return "%s, %s, 0x%x" % (type(error).__name__, error.field, error.offset)
    rows = tensorfmt.verify(data).rows
    return ", ".join(["it can be read"] + sorted(set([
        "%s %s" % row[:2] for row in rows if row[0] == "note" or row[:2] == ("-", "contents")])))


TITLES = "|".join([re.sub(r" \d.*", "", kind.TITLE) for kind in tensorfmt.FORMATS])
PARTS = (  # what is of one file, and what stands for it
    (r"""(?<!\w)b?('(\\.|[^'\\])*'|"(\\.|[^"\\])*")(?!\w)|'\S*\.\.\.""", "'..'"),
    (r"(?<= is )[\[{].*(?=, expected)", "[..]"),
    (r"\b[0-9a-f]{2}( [0-9a-f]{2}){2,}\b", "##"),
    (r"(?<![\w#])[-+]?(0x[0-9a-fA-F]+|\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?)(?!\w)", "#"),
    (r"\b[0-9a-fA-F]{8,}\b", "#"),
    (r"\b(bfloat16|float\d+\w*|u?int\d+|qfloat|bool)\b", "DTYPE"),
    (r"(#|'..'|DTYPE)(,? \1)+", r"\1"),
    (r"argument out of range|('..'|byte) format requires # <= number <= #", "(words of struct)"),
    (r"\b(%s)( #)?(?= cannot hold| has no)" % TITLES, "FORMAT"))


def template(text):
    """Return a message without what is of one file: 'a' is '..', 17 is #, int8 is DTYPE."""
    for part, instead in PARTS:
        text = re.sub(part, instead, text)
    return text


@documented
class TextsTest(TestCase):
    def accepted(self, name, text):
        """Assert that a text is that of .ci/accepted, or write it anew."""
        path = os.path.join(ACCEPTED, name)
        seen = read_file(path).decode()
        if test_tensorfmt.ACCEPT:
            write_file(path, text.encode())
        elif text != seen:
            old, new = [re.sub("(.{160})", r"\1\n", one).split("\n") for one in (seen, text)]
            lines = list(unified_diff(old, new, "accepted", "made", n=1, lineterm=""))
            self.fail("not as in %s (`--accept` if it is right):\n%s" % (
                path, "\n".join(lines[:60])))

    @usual_words
    def test_errors(self):
        self.accepted("errors.txt", "".join([
            "%s: %s\n" % (name, what_is_wrong(data)) for name, data in known_files(self)]))

    @usual_words
    def test_messages(self):
        said = set()
        for data in [row[1] for row in known_files(self)] + [
                row[2] for row in FILES if b"zstd" not in row[2] + row[1].encode()]:
            report = tensorfmt.verify(data)
            said.update([row[3] for row in report.rows])
            said.update([error.what for error in report.errors])
            said.update(self.refusals(load(data)) if report else [])
        for kind, tensors, options in REFUSED:
            text = self.refuses([], dumps, tensors, format=kind, **options)
            said.update(text.split("\n"))
        self.accepted("messages.txt", "".join([
            "%s\n" % text for text in sorted(set([template(text) for text in said]))]))

    def test_a_trailing_comma_is_where_json_says(self):
        text = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},}'
        error = error_of(tensorfmt.FormatError, load, safetensors_file(text))
        at = 8 + error_of(json.JSONDecodeError, json.loads, text).pos
        self.assertEqual((error.field, error.offset), ("header", at))

    def refusals(self, file):
        """Return why a file cannot be converted to some formats."""
        lines = []
        for kind in FORMATS:
            try:
                tensorfmt.convert(file, io.BytesIO(), format=kind)
            except ValueError as error:
                lines += getattr(error, "what", str(error)).split("\n")
        return lines

    def commands(self, name):
        """Run the commands that stand in a text, in its order; return the text, made anew."""
        go_to(self, folder_for(self))
        write_files()
        lines = re.findall(r"(?m)^\$ (.+)", read_file(os.path.join(ACCEPTED, name)).decode())
        self.assertGreater(len(lines), 10)
        self.accepted(name, "\n".join(map(self.printed, lines)))

    def printed(self, line):
        """Return a command and all that it prints; with --json that is JSON without NaN."""
        command, _, path = line.partition(" < ")
        words, given = shlex.split(command), read_file(path) if path else b""
        with Changed(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))):
            code, out, err = run(*words)
        if "--json" in words and out:
            json.loads(out, parse_constant=self.fail)
        return "$ %s\n%s%s%s" % (line, out, err, "(exit code %s)\n" % code if code else "")

    def test_explains(self):
        self.commands("explains.txt")

    def test_commands(self):
        self.commands("commands.txt")

    @usual_words
    def test_help(self):
        self.commands("help.txt")
