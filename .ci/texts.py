# SPDX-License-Identifier: MIT
"""What people read, as texts that somebody has looked at: `test_tensorfmt.py --accept` writes them.

They stand in .ci/accepted, whole, for people to read and for `git diff`:

    errors.txt      of each file that the tests break: its name, error, field and offset
    messages.txt    each message once: numbers are #, quoted texts are '..'
    explains.txt    the whole of `explain`, for a small file of each generation
    commands.txt    commands of COMMANDS, and all that they print
    help.txt        what -h prints

What must hold for every file is check_mutant() of fuzz.py.
"""
import io
import json
import os
import re
import shlex
import unittest
from difflib import unified_diff

import tensorfmt
import test_tensorfmt
from test_tensorfmt import (
    broken_files, documented, dumps, F32, FILES, folder_for, FORMATS, full, go_to, HERE, INF, load,
    many_tensors, NAN, NET, PYPY, PYTHON, read_file, REFUSED, run, safetensors, tensor, TestCase,
    write_file, ztensor)

usual_json = unittest.skipUnless(
    PYTHON < (3, 13) and not PYPY, "json of other Pythons has other words, and places")
usual_argparse = unittest.skipUnless(
    (3, 10) <= PYTHON < (3, 13) and not PYPY, "argparse of other Pythons has other words")
COMMANDS = """--help; frobnicate; lss; formats; formats --json; formats mag; demo made
    ls seed_basic.mag; ls --json seed_basic.mag; ls --sort bytes --limit 2 net.zt
    ls net.zt --tree; ls --tree net.zt
    ls --only '*.1.*' --only head net.zt; ls --only z net.zt; ls absent.zt broken.zt sorted_one.tbs
    ls names.zt sparse.zt head_quant.bpk; ls cut.bpk; ls --partial cut.bpk; ls --limit x net.zt
    get seed_basic.mag y; get wide.zt w; get wide.zt 'w[0:2, ::999]'; get wide.zt 'w[2]'
    get net.zt '*.bias'
    get wide.zt; get --stats wide.zt; get --json seed_basic.mag x; get seed_basic.mag xx
    get types.safetensors F4; get head_quant.bpk q; get odd.zt w; get sparse.zt s
    explain seed_basic.mag --tensor y; explain seed_basic.mag --from 0x100; explain broken.zt
    explain --json sorted_one.tbs; explain cut.bpk; explain --html page.html net.zt
    verify names.zt; verify --quiet seed_basic.mag broken.zt; verify --json sorted_one.tbs cut.bpk
    verify absent.zt; diff a.zt a.zt; diff a.zt b.zt; diff --json a.zt b.zt; diff a.zt c.mag
    diff --rtol 0.5 a.zt b.zt; diff a.zt broken.zt
    convert a.zt out.mag; convert a.zt out.mag --cast float32; ls out.mag; convert a.zt out.xyz
    convert a.zt out.bpk --rename 'v=a.*' --meta by=me --json; ls out.bpk
    convert v021_basic.bpk out.tbs --drop --cast float32 --only 'decoder.*'; ls out.tbs
    convert v021_basic.bpk out.mag; convert head_quant.bpk out.zt; convert head_scalars.bpk out.zt
    convert sparse.zt out.safetensors; convert sparse.zt out.safetensors --dense --drop
    convert cut.bpk out.zt; convert cut.bpk out.zt --partial; convert net.zt out.zt --exclude none
    convert optim_sgd_set.primitiv out.zt; convert a.zt out.zt --set version=2; verify out.zt
    convert a.zt out.zt --set colour=3; vendor out.py --formats nope
    ls m.safetensors.index.json; verify m.safetensors.index.json; ls lost.json
    verify lost.json; convert lost.json out.zt; convert lost.json out.zt --partial"""
EXPLAINED = """seed_basic.mag m012_mixed.mag v300.mag sparse.zt v2.zt param_3x2x2_stat.primitiv
    v021_tiny.bpk head_quant.bpk v021_one_tensor.mpk up_head_ops.tbs v080_basic.safetensors"""


def write_files():
    """Write the files that commands name into the folder where we are."""
    csr = {"values": tensor([1.0, 2.0], "float16"), "indices": [0, 4], "indptr": [0, 1, 1, 2]}
    for _, title, data, _ in FILES:
        write_file(title, data)
    entries = dict([(name, {"dtype": name, "shape": [n], "data_offsets": place})
                    for name, n, place in (("F8_E4M3", 2, [0, 2]), ("F4", 4, [2, 4]))])
    entries["w"] = {"data_offsets": [4, 12]}
    write_file("types.safetensors", safetensors(entries, bytes(range(65, 77))))
    write_file("broken.zt", ztensor(shape=[5]))
    write_file("odd.zt", ztensor(encoding="lz4", name="w"))
    for path, rows in (
            ("a.zt", {"w": tensor([1.0, 2.0], "float32"), "v": tensor([1, 2], "int64")}),
            ("b.zt", {"w": tensor([1.0, 2.5], "float32"), "v": [1, 2], "x": [NAN, INF]}),
            ("c.mag", {"w": tensor([[1.0, 2.5]], "float32")}), ("net.zt", dict(
                many_tensors(12), **{"head": [1.0, 2.0], "model.layers.1.more": [True]})),
            ("wide.zt", {"w": [list(range(3000)), list(range(3000))], "s": 0.5}),
            ("sparse.zt", {"s": tensor(shape=(3, 5), components=csr), "w": F32}),
            ("names.zt", {"n\n\x1b" + "x" * 90: F32, " ": F32, "": F32, "&<": F32}),
            ("cut.bpk", NET)):
        tensorfmt.save(path, rows)
    write_file("cut.bpk", read_file("cut.bpk")[:-24])
    shards = dict([(key, "m-%d.safetensors" % i) for i, key in enumerate("ab")])
    for key, name in shards.items():
        tensorfmt.save(name, {key: F32})
    for path, more in ("m.safetensors.index.json", {}), ("lost.json", {"c": "m-2.safetensors"}):
        places = {"metadata": {"total_size": 8}, "weight_map": dict(shards, **more)}
        write_file(path, json.dumps(places).encode())
    for path, version, kind in ("v300.mag", 300, "mag"), ("v2.zt", 2, "ztensor"):
        tensorfmt.save(path, {"w": F32, "e": tensor([], "int64")}, format=kind, version=version,
                       metadata={"by": "me"})


def known_files(test):
    """Return rows (unique name, bytes) of the files that the tests break; some can be read.

    The name begins with the format; where some are called alike, they are numbered. Those that
    need a module for zstd are left out: it is not everywhere.
    """
    rows, counts = [], {}
    for name, data in broken_files(test):
        if ": " not in name:
            name = "%s: %s" % (tensorfmt.detect(data) or "no format", name)
        counts[name] = counts.get(name, 0) + 1
        if not name.endswith(" zstd"):
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
    (r"\b(%s)( #)?(?= cannot hold| has no)" % TITLES, "FORMAT"))


def template(text):
    """Return a message without what is of one file: 'a' is '..', 17 is #, int8 is DTYPE."""
    for part, instead in PARTS:
        text = re.sub(part, instead, text)
    return text


def printed(line):
    """Return a line of our command and all that it prints."""
    code, out, err = run(*shlex.split(line))
    return "$ %s\n%s%s%s" % (line, out, err, "(exit code %s)\n" % code if code else "")


@full
@documented
class TextsTest(TestCase):
    def accepted(self, name, text):
        """Assert that a text is that of .ci/accepted, or write it anew."""
        path = os.path.join(HERE, ".ci", "accepted", name)
        if test_tensorfmt.ACCEPT:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_file(path, text.encode())
        with io.open(path, encoding="utf-8", newline="\n") as stream:
            seen = stream.read()
        if text != seen:
            lines = list(unified_diff(seen.split("\n"), text.split("\n"), "accepted", "made",
                                      n=1, lineterm=""))
            self.fail("not as in %s (`--accept` if it is right):\n%s" % (
                path, "\n".join([line[:200] for line in lines[:60]])))

    @usual_json
    def test_errors(self):
        self.accepted("errors.txt", "".join([
            "%s: %s\n" % (name, what_is_wrong(data)) for name, data in known_files(self)]))

    @usual_json
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

    def refusals(self, file):
        """Return why a file cannot be converted to some formats."""
        lines = []
        for kind in FORMATS:
            try:
                tensorfmt.convert(file, io.BytesIO(), format=kind)
            except ValueError as error:
                lines += getattr(error, "what", str(error)).split("\n")
        return lines

    def test_explains(self):
        go_to(self, folder_for(self))
        write_files()
        self.accepted("explains.txt", "\n".join([
            printed("explain " + name) for name in EXPLAINED.split()]))

    @usual_argparse
    def test_commands(self):
        go_to(self, folder_for(self))
        write_files()
        self.accepted("commands.txt", "\n".join([
            printed(line.strip()) for line in COMMANDS.replace("\n", ";").split(";")]))

    @usual_argparse
    def test_help(self):
        self.accepted("help.txt", "\n".join([
            printed(call.__name__[5:] + " -h") for call, _, _ in tensorfmt.COMMANDS]))
