# SPDX-License-Identifier: MIT
"""Tests of what people see: `python3 test_tensorfmt.py` runs them, too.

    [1] commands           in this process, and through a real one; all that they print
    [2] terminals          their width, letters and colours
    [3] pages              of explain --html
"""
import io
import os
import re
import shlex
import struct
import sys
import unittest

import tensorfmt
from test_tensorfmt import (
    accepts, bad_files, Changed, check_page, documented, dumps, environment, error_of, F32, FILES,
    folder_for, FolderCase, FORMATS, full, go_to, golden, HERE, INF, little, load, MANY, Map, NAN,
    NET, one_burnpack, parsers_kept, part2, PYTHON3, read_file, run, safetensors, scheme, script,
    tensor, TestCase, text_of, tohex, write_file, zstd_missing, zt2_objects, ztensor)

# -- [1] commands -------------------------------------------------------------------------------

EACH = """if 1:
    import sys, tensorfmt
    for words in eval(sys.argv[1]):
        tensorfmt.main(words)
        for stream in sys.stdout, sys.stderr:
            stream.write(chr(0))
            stream.flush()
"""


def program(lines):
    """Return the arguments of a process that runs our command, or some, each with \\0 behind it."""
    if len(lines) == 1:
        return PYTHON3 + ["-m", "tensorfmt"] + list(lines[0])
    return PYTHON3 + ["-c", EACH, ascii([list(words) for words in lines])]


@full
class CommandTest(TestCase):
    def setUp(self):
        go_to(self, folder_for(self))
        for _, title, data, _ in FILES:
            write_file(title, data)
        write_file("broken.zt", ztensor(shape=[5]))

    def prints(self, *args):
        """Return the stdout of our command, that ends with 0 and no message."""
        code, out, err = run(*args)
        self.assertEqual((code, err), (0, ""), args)
        return out

    def test_in_a_process_of_its_own(self):
        script = os.path.join(HERE, "tensorfmt.py")  # a script is compiled at each start
        for words in (), ("help",), ("frobnicate",):
            code, out, err = run("python3", *(("-m", "tensorfmt") if words else (script,)) + words)
            self.assertEqual((code, out.replace("-m tensorfmt", "tensorfmt.py"), err.replace(
                "-m tensorfmt", "tensorfmt.py")), run(*words or ("help",)))
        code, out, err = run("python3", "-m", "tensorfmt", "ls", "seed_basic.mag", "absent.zt")
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertIn("seed_basic.mag: mag, 384 bytes, 2 tensors", out)
        self.assertTrue(err.startswith("error: absent.zt: "))
        self.assertIn(", sha256 ", self.prints("--version"))
        code, out, err = run("python3", "-I", "-S", script, "demo")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("all %d formats written, listed, verified, explained and read back" % len(
            FORMATS), out)

    @little
    def test_a_reader_that_goes_away_and_streams_that_are_closed(self):
        from subprocess import PIPE, Popen
        script = "python3 -m tensorfmt "
        for line, wanted in (("convert sorted_one.tbs w.zt 2>&-", 0), ("ls --x 2>/dev/full", 2),
                             ("convert sorted_one.tbs w.mag <&- >&- 2>&-", 0),
                             ("formats >/dev/full", 1)) if os.path.exists("/dev/full") else ():
            self.assertEqual(run(script + line)[0], wanted, line)
            self.assertTrue(wanted or os.path.exists(line.split()[2]))
        rows = dict([("tensor number %d" % i, F32) for i in range(3000)])
        tensorfmt.save("many.bpk", rows)
        process = Popen(PYTHON3 + ["-m", "tensorfmt", "ls", "many.bpk"], stdout=PIPE, stderr=PIPE,
                        env=environment())
        with process:
            self.assertIn(b"many.bpk: Burnpack", process.stdout.readline())
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_names_are_escaped(self):
        tensorfmt.save("odd.zt", {"a\x1b[31m\n\u00e9": F32, " x ": F32, "": F32})
        odd = "odd" if os.name == "nt" else "o\x1b[31m\n\u202e\udcff"
        tensorfmt.save(odd + ".bpk", load("odd.zt", mmap=False), metadata={odd[:6]: odd[:6]})
        write_file(odd + ".mag", b"MAG!")
        calls = [("demo", odd), ("demo", odd + ".bpk"), (odd,)]
        for name in ("odd.zt", odd + ".bpk", odd + ".mag", odd + ".absent", odd):
            calls += [(key, name) for key in ("ls", "explain", "verify", "ls --" + odd)]
            calls += [("get", name, "\x1b"), ("get", name, "", "--rows", "1"), ("diff", name, name),
                      ("verify", "--quiet", name), ("diff", name, "odd.zt", odd)]
            calls += [("explain", name, "--html", out) for out in (name, odd + ".html", odd)]
            calls += [("convert", name, out) for out in (odd + ".zt", odd, "x.mag", odd + "/x.zt")]
            calls += [("convert", name, "x.zt", key, odd) for key in ("--set", "--cast", "--only")]
        for args in calls:
            _, out, err = run(*args)
            odd = [c for c in out + err if not (c.isprintable() or c == "\n")]
            self.assertEqual(odd, [], args)
            self.assertEqual((out + err).count("\n\u202e"), 0)
        self.assertIn("'a\\x1b[31m\\n\xe9'", self.prints("ls", "odd.zt"))
        stream = io.StringIO()
        tensorfmt.put(stream, "a\x1b[31m\n\u202e\r")
        self.assertEqual(stream.getvalue(), "a\\x1b[31m\n\\u202e\\r")

    @little
    def test_letters_are_shown_where_the_output_has_them(self):
        from html import unescape
        from subprocess import PIPE, Popen
        names = ["\u65e5\u672c.\u91cd\u307f", "gr\xf6\xdfe", "\u0441\u043b\u043e\u0439 1",
                 "a\u202eb", " \xe9 ", "\u2028\xe9"]
        shown = names[:3] + ["'a\\u202eb'", "' \xe9 '", "'\\u2028\xe9'"]
        path = "\u65e5\u672c.bpk"
        tensorfmt.save(path, [(name, [1.0]) for name in names],
                       metadata={"\u984c": "\u65e5\u672c\x9b"})
        tensorfmt.save("other.bpk", {}, metadata={"\u984c": "\xe9"})
        tensorfmt.save("bad.zt", {names[0]: F32}, checksum="crc32c")
        data = read_file("bad.zt")
        write_file("bad.zt", data[:64] + b"\xff" + data[65:])
        write_file("cut.bpk", read_file(path)[:-1])
        rows = (
                (("ls", path), shown + [path + ": ", "metadata \u984c = '\u65e5\u672c\\x9b'"]),
                (("explain", path), shown[:3] + ["'\u65e5\u672c\\x9b'", "data " + shown[1]]),
                (("diff", path, "other.bpk"), ["- " + name for name in shown] + [
                    "~ metadata \u984c: '\u65e5\u672c\\x9b' -> '\xe9'"]),
                (("verify", "bad.zt"), ["tensor '%s': " % shown[0]]),
                (("verify", "--quiet", "bad.zt"), ["bad.zt: tensor '%s': " % shown[0]]),
                (("get", path, "\xe9"), [path + ": no tensor '\xe9'"]),
                (("ls", "--partial", "cut.bpk"), ["not whole: " + shown[5]]),
                (("convert", path, "\xe9.bpk", "--only", names[0]), [path, "wrote \xe9.bpk"]),
                (("convert", "cut.bpk", "c.bpk", "--partial"), ["missing: " + shown[5]]),
                (("convert", path, "\xe9.primitiv"), ["\u984c", "error: "]),
                (("ls", "\xe9.zt"), ["\xe9.zt: "]))
        for encoding in ("utf-8", "latin-1", "ascii"):
            some = [row for row in rows if encoding == "utf-8" or row[0][0] in ("ls", "get")]
            texts = []
            for lines in [row[0] for row in some[:1]], [row[0] for row in some[1:]]:
                process = Popen(program(lines), stdout=PIPE, stderr=PIPE, env=environment(
                    PYTHONIOENCODING=encoding, COLUMNS="200"))
                out, err = [part.decode(encoding).split("\0") for part in process.communicate()]
                texts += [text + more for text, more in zip(out, err)][:len(lines)]
            self.assertEqual(len(texts), len(some))
            for (_, wanted), text in zip(some, texts):
                for part in wanted:
                    self.assertIn(part.encode(encoding, "backslashreplace").decode(encoding), text)
                self.assertNotIn("codec", text)
        error = error_of(tensorfmt.FormatError, load, "bad.zt", verify=True)
        self.assertIn("'\\u65e5\\u672c.\\u91cd\\u307f'", str(error))  # for any log
        self.assertIn(shown[0], tensorfmt.describe(error))
        run("explain", "--html", "page.html", path)
        for page in read_file("page.html").decode("ascii"), load(path)._repr_html_():
            page = unescape(page.replace(tensorfmt.WRAPS, "."))
            for name in shown:
                self.assertIn(">%s<" % name, page)

    def test_files_that_were_cut_short(self):
        from html import unescape
        import json
        import re
        tensorfmt.save("w.bpk", {"a": F32, "b\u202e": F32, "c": F32, "\u0441.w": F32})
        data = read_file("w.bpk")
        starts = sorted([item.start for item in load("w.bpk").values()])
        (first, second), size = starts[:2], F32.nbytes
        for end, place, name in (
                (len(data) - 1, max(starts), "data \u0441.w"), (second, second, "the end"),
                (second + 1, second, "'data b\\u202e'"),
                (first + size + 1, first + size, "the end"),
                (first + size, first + size, "the end"), (first + 1, first, "data a")):
            write_file("cut.bpk", data[:end])
            missing = load("cut.bpk", partial=True).attrs["missing"]
            self.assertEqual(len(missing), len([start for start in starts if start + size > end]))
            shown = list(map(tensorfmt.plain, missing))
            lines = self.prints("ls", "--partial", "cut.bpk").rstrip().split("\n")
            self.assertEqual(lines[-len(missing):], ["not whole: " + name for name in shown])
            row, = json.loads(self.prints("ls", "--partial", "--json", "cut.bpk"))
            self.assertEqual(row["attrs"]["missing"], missing)
            self.assertEqual(len(row["tensors"]), len(starts) - len(missing))
            code, out, err = run("explain", "--html", "page.html", "cut.bpk")
            self.assertEqual((code, err[:26]), (1, "error: cut.bpk: cut short:"))
            page = unescape(read_file("page.html").decode())
            self.assertIn(f'"#0x{place:x}">0x{place:x}, {name}</a>', page)
            self.assertIn(f"Not whole: {', '.join(shown)}.</section>", page)
            self.assertEqual(re.findall('<tr class="fault" data-b="([0-9]+)" data-e="([0-9]+)"',
                                        page.replace(f' id="0x{place:x}"', "")),
                             [(str(place), str(end))])
        self.assertEqual(self.prints("ls", "--partial", "w.bpk"), self.prints("ls", "w.bpk"))

    def test_get(self):
        stats = {"n": ([3, -2, 7, 2], "int8", "min -2, max 7, mean 2.5, 0 NaN, 0 infinite"),
                 "b": ([True, False], "bool", "min False, max True, mean 0.5, 0 NaN, 0 infinite"),
                 "o": ([1e308, 1e308], None, "min 1e+308, max 1e+308, mean inf, 0 NaN, 0 infinite"),
                 "e": ([], None, "min None, max None, mean None, 0 NaN, 0 infinite"),
                 "f": ([NAN, 1.0, INF, -INF, 3.0, INF, NAN, 0.5, -0.5], None,
                       "min -0.5, max 3.0, mean 1.0, 2 NaN, 3 infinite")}
        tensorfmt.save("s.zt", {key: tensor(row[0], row[1]) for key, row in stats.items()})
        for part in (8, tensorfmt.PART):
            for key, (_, _, text) in stats.items():
                with Changed(tensorfmt, "PART", part):
                    self.assertIn("\n" + text + "\n", self.prints("get", "s.zt", key, "--stats"))
        rows = [((title, name), "%s" % (item.tolist(),)) for _, title, data, _ in FILES
                for name, item in load(data).items()
                if not zstd_missing(item) and item.dtype != "qfloat" and item.size < 100]
        for args, wanted in rows:
            self.assertEqual(self.prints("get", *args), wanted + "\n", args)
        tensorfmt.save("r.zt", {"empty": tensor([], "int8"), "one": tensor(1)})
        for key, words in ("empty", "has 0 rows"), ("one", "is a scalar"), ("one", "--rows is out"):
            self.assertIn(words, run("get", "r.zt", key, "--rows", "1:2")[2])
        raw = self.prints("get", "param_3x2x2_stat.primitiv", "value", "--raw")
        wanted, = [row[3] for row in FILES if row[1] == "param_3x2x2_stat.primitiv"]
        self.assertEqual(tohex(raw.encode("utf-8", "surrogateescape")), wanted["value"][2])

    def test_parts_of_a_tensor(self):
        from json import loads
        item = tensor([float(i) for i in range(60)], "float32", (3, 4, 5))
        files = {"a[0].w": item, "a": item, "s": tensor(7), "\u0441": item}
        for kind in "ztensor", "burnpack", "safetensors":
            tensorfmt.save("p.any", files, format=kind)
            for keys in "0", "-1, 2, 3", "0:2, ::3", "..., -1", " 1 , ... , 4:0:-2 ", "9:, 0", ":":
                wanted = eval("item[%s]" % keys)
                if hasattr(wanted, "tolist"):
                    wanted = wanted.tolist()
                for name in ("a[0].w", "a", "\u0441") if keys == "0" else ["a"]:
                    words = "get", "p.any", "%s[%s]" % (name, keys)
                    self.assertEqual(self.prints(*words), "%s\n" % (wanted,))
                    self.assertEqual(loads(self.prints(*words + ("--json",)))["values"], wanted)
            self.assertEqual(self.prints("get", "p.any", "a[0].w"), "%s\n" % item.tolist())
            self.assertEqual(self.prints("get", "p.any", "a[1:]", "--rows", "0:1"),
                             "%s\n" % item[1:2].tolist())
            self.assertEqual(self.prints("get", "p.any", "s[...]"), "7\n")
        for name, words in (("a[3]", "index 3 is out of range for dimension 0"), ("a[x]", "'x'"),
                            ("a[]", "as in Python: [0, 2:8:2, ..., -1]"), ("a[::0]", "zero"),
                            ("a[0,0,0,0]", "3 dimensions"), ("b[0]", "no tensor 'b'"),
                            ("a[0", "no tensor 'a[0'"), ("s[0]", "0 dimensions"),
                            ("a[...,...]", "2 times"), ("a[0][1]", "no tensor 'a[0]'")):
            code, out, err = run("get", "p.any", name)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(words, err)
            self.assertTrue(err.startswith("error: p.any: "), err)
        code, out, err = run("get", "absent")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("needs the NAME of a tensor", err)

    def test_sums_of_all_tensors(self):
        from json import loads
        model = Map([("w", tensor([1.5, -2.0, NAN, INF], "float32")), ("i", tensor([3, 1 << 62])),
                     ("e", tensor([], "int8")), ("n", tensor([NAN, NAN], "float16"))])
        tensorfmt.save("m.zt", model)
        wanted = [[-2.0, 1.5, -0.25, 1, 1], [3, 1 << 62, (3 + 2.0**62) / 2, 0, 0],
                  [None, None, None, 0, 0], [None, None, None, 2, 0]]
        keys = "min", "max", "mean", "nan", "infinite"
        rows = loads(self.prints("get", "m.zt", "--stats", "--json"))
        self.assertEqual([row["name"] for row in rows], list(model))
        for row, values in zip(rows, wanted):
            self.assertEqual([row[key] for key in keys], values)
            one = loads(self.prints("get", "m.zt", row["name"], "--stats", "--json"))
            self.assertEqual(one, row)
            self.assertEqual((one["dtype"], one["shape"]), (model[one["name"]].dtype, list(
                model[one["name"]].shape)))
        lines = self.prints("get", "m.zt", "--stats").split("\n")
        self.assertEqual([line.split() for line in lines[1:3]],
                         ["-2 1.5 -0.25 1 1 w".split(), "3 4.61169e+18 2.30584e+18 0 0 i".split()])
        self.assertEqual(lines[-3:-1], ["2 of 4 tensors with NaN: w, n",
                                        "1 of 4 tensors with infinities: w"])
        write_file("q.bpk", one_burnpack(dtype=scheme("Q8S"), shape=[4]))
        text = self.prints("get", "q.bpk", "--stats")
        self.assertIn("-  a (qfloat cannot be read ", text)
        error = loads(self.prints("get", "q.bpk", "--stats", "--json"))[0]["error"]
        self.assertIn("cannot be read element by element", error)
        code, out, err = run("get", "q.bpk", "a", "--json")
        self.assertEqual((code, out), (1, ""))
        tensorfmt.save("bad.zt", {"w": F32, "x": F32})

        def damaged(item, old=tensorfmt.stats_of):
            if item.name == "w":
                raise tensorfmt.FormatError("rotten", 64)
            return old(item)
        with Changed(tensorfmt, "stats_of", damaged):
            code, out, err = run("get", "bad.zt", "--stats")
            self.assertEqual((code, err), (1, "error: rotten (at 0x40)\n"))
            self.assertIn("  w (rotten)\n", out)
            self.assertIn("  x\n0 of 2 tensors with NaN\n", out)
            found = loads(run("get", "bad.zt", "--stats", "--json")[1])
            self.assertEqual([row.get("error") for row in found], ["rotten", None])
        self.assertEqual(run("get", "m.zt", "--stats", "--npy")[0], 2)
        row = dict([("offset", 64), ("size", 16), ("dtype", "float32"), ("shape", [4]),
                    ("encoding", "raw")])
        write_file("again.zt", ztensor(*[dict(row, name=str(i)) for i in range(300)]))
        with Changed(tensorfmt, "MAX_COPIES", 0):
            code, out, err = run("get", "again.zt", "--stats")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("again and again", err)
        tensorfmt.save("s.safetensors.index.json", {"a": F32, "b": [2.0]}, shard=8)
        os.remove("s-00002-of-00002.safetensors")
        _, out, err = run("get", "s.safetensors.index.json", "--stats")
        self.assertIn("  b (the shard is missing)\n", out)
        self.assertIn("error: s-00002-of-00002.safetensors: tensor 'b': the shard is missing", err)

    def test_an_error_comes_before_the_first_letter_of_json(self):
        write_file("e.safetensors", safetensors(
            '{"w":{"dtype":"F32","shape":[200000,0],"data_offsets":[0,0]}}', b""))
        self.assertEqual(run("get", "e.safetensors", "w", "--json")[:2], (1, ""))

    def test_a_tree_loses_no_tensor_and_has_a_limit(self):
        tensorfmt.save("t.zt", {"a": [1.0], "a.b": [2.0, 3.0], "": [1.0], ".": [2.0], "c.d": [1.0]})
        rows = [line.split() for line in self.prints("ls", "--tree", "t.zt").split("\n")[3:-1]]
        self.assertEqual([row[2:] for row in rows[:-1]], [
            ["2", "float64", "a"], ["1", "float64", "b"], ["2", "float64", "''"],
            ["1", "float64", "''"], ["1", "float64", "c.d"]])
        tensorfmt.save("m.zt", [("k%x" % i + ".a" * 32, []) for i in range(200)])
        with Changed(tensorfmt, "MAX_BOXES", 0):
            code, _, err = run("ls", "--tree", "m.zt")
            self.assertEqual(code, 1)
            self.assertIn("--tree DEPTH takes fewer", err)
            self.assertIn("float64  a\n", self.prints("ls", "--tree", "1", "t.zt"))

    def test_a_tree_of_names(self):
        from json import loads
        model = [("model.layers.%d.%s" % (i, part), tensor([0.0] * size, dtype)) for i in range(12)
                 for part, size, dtype in (("mlp.up", 6, "float32"), ("mlp.down", 4, "float16"),
                                           ("norm", 2, "float32"))]
        tensorfmt.save("m.safetensors", model + [("model.embed", tensor([1], "uint8"))])
        lines = [line.split() for line in self.prints("ls", "--tree", "m.safetensors").split("\n")]
        self.assertEqual(lines[3:-1], [row.split() for row in (
            "481 145 37 float32 24, float16 12, uint8 1 model",
            "480 144 36 float32 24, float16 12 layers.#",
            "384 120 24 float32 12, float16 12 mlp", "288 72 12 float32 up",
            "96 48 12 float16 down", "96 24 12 float32 norm", "1 1 1 uint8 embed",
            "481 145 37 total")])
        text = self.prints("ls", "--tree", "2", "m.safetensors")
        self.assertEqual(self.prints("ls", "m.safetensors", "--tree=2"), text)
        rows = text.split("\n")[2:]
        at = rows[0].index("name")  # each part stands two to the right of what it is a part of
        self.assertEqual([row[at:] for row in rows[2:4]], ["  layers", "  embed"])
        self.assertNotIn("#", text)
        self.assertTrue(self.prints("ls", "m.safetensors", "--tree", "--limit", "2").endswith(
            "\n5 more rows\n"))
        found, = loads(self.prints("ls", "m.safetensors", "--tree", "--json"))
        tree = found["tree"]
        self.assertEqual((tree["tensors"], tree["elements"], tree["bytes"]), (37, 145, 481))
        self.assertEqual(tree["parts"]["model"]["parts"]["layers"]["parts"]["#"]["parts"]["mlp"], {
            "tensors": 24, "elements": 120, "bytes": 384,
            "dtypes": {"float16": 12, "float32": 12}, "parts": {
                key: {"tensors": 12, "elements": 12 * size, "bytes": 12 * size * nbytes,
                      "dtypes": {dtype: 12}, "parts": {}}
                for key, size, nbytes, dtype in (("down", 4, 2, "float16"),
                                                 ("up", 6, 4, "float32"))}})
        tensorfmt.save("deep.zt", {".".join("ab" * 40): tensor(1), "x..y": tensor(2)})
        self.assertIn("a.b.a.b", self.prints("ls", "--tree", "deep.zt"))
        self.assertEqual(self.prints("ls", "deep.zt", "--only", "x*", "--tree").split()[-9:],
                         "8 1 1 int64 x..y 8 1 1 total".split())

    def test_formats_and_options_in_words(self):
        for kind in tensorfmt.FORMATS:
            out = self.prints("formats", kind.NAME)
            for name in kind.SUFFIXES:
                self.assertEqual(self.prints("formats", name), out)
            kinds = [kind] + [one for one in tensorfmt.LATER if one.FAMILY == kind.NAME]
            limits = [line.split()[1][:4] for line in out.split("\n") if line[:8] == "  limit "]
            self.assertEqual(set(limits) - {"MAX_"}, set())
            for one in kinds:
                for key in dir(one):
                    if key[:4] == "MAX_" and getattr(one, key) < 1 << 31:
                        self.assertIn("%s = %d" % (key, getattr(one, key)), out)
                for name in list(one.DTYPES) + list(one.OPTIONS):
                    self.assertIn(name, out)
                for line in (type(one).__doc__ or "").split("\n"):
                    self.assertIn(line[4:] if line[:4] == "    " else line, out)
            for key, text in kind.OPTIONS.items() if sys.flags.optimize < 2 else ():
                self.assertIn("    %s: %s: %s" % (kind.NAME, key, text), tensorfmt.save.__doc__)
        code, out, err = run("python3", "-OO", "-c", "import sys; sys.path.insert(0, %r)\nimport "
                             "tensorfmt\nprint(tensorfmt.save.__doc__)\nsys.exit(tensorfmt.main("
                             "['formats', 'mag']))" % HERE)
        self.assertEqual((code, err, out[:5]), (0, "", "None\n"))
        self.assertIn(tensorfmt.NO_DOCSTRING, out)
        self.assertIn("no format 'bpx'", run("formats", "bpx")[2])
        self.assertIn(", ".join(tensorfmt.WINGS), tensorfmt.ARGUMENTS["--with"][1])

    def test_json_is_one_document(self):
        from json import loads
        titles = [row[1] for row in FILES] + ["broken.zt", "absent.zt"]
        for command in ("ls", "verify"):
            found = loads(run(command, "--json", *titles)[1])
            self.assertEqual([one["file"] for one in found], titles)
            self.assertEqual(set(found[-1]), {"file", "error"})
            self.assertEqual([one["format"] for one in found[:-2]], [row[0] for row in FILES])
            self.assertEqual(type(loads(run(command, "--json", titles[0])[1])), list)
        fields = loads(self.prints("explain", "--json", "seed_basic.mag"))
        self.assertEqual([row["name"] for row in fields],
                         [field.name for field in tensorfmt.explain("seed_basic.mag")])
        self.assertEqual([row["format"] for row in loads(self.prints("formats", "--json"))],
                         [kind.NAME for kind in tensorfmt.FORMATS])
        self.assertEqual(loads(self.prints("explain", "--json", "--from", "9999",
                                           "seed_basic.mag")), [])

    def test_keys_of_json_are_in_readme(self):
        from json import loads
        text = text_of("README.md").split("keys of the objects of `--json` |")[1].split("\n\n")[0]
        for command, inner in (("ls m012_mixed.mag", "tensors"), ("verify seed_basic.mag", "rows"),
                               ("explain seed_basic.mag", ""), ("formats", ""),
                               ("diff seed_basic.mag seed_dtypes.mag", "differences")):
            found = loads(run(*command.split(), "--json")[1])
            found = found if type(found) is dict else found[0]
            keys = list(found) + (list(found[inner][0]) if inner else [])
            row, = [row for row in text.split("\n") if row.startswith("| `" + command.split()[0])]
            words = "".join(row.split(" | ")[-1].split("`")[1::2])
            self.assertEqual(words.replace(" ", ""), "".join(keys))

    def test_diff_as_numpy_compares(self):
        from json import loads
        one = {"w": tensor([1.0, 100.0, NAN, INF, 0.0], "float32"), "i": tensor([5, 1 << 60])}
        two = {"w": tensor([1.5, 100.5, NAN, 1.0, -0.0], "float32"), "i": tensor([5, 2**60 + 1])}
        tensorfmt.save("one.zt", one)
        tensorfmt.save("two.zt", two)
        for args, counts in ((["--atol", "0.4"], [3, 1]), ([], [3, 1]), (["--rtol", "0.01"], [2]),
                             (["--atol", "0.5"], [1, 1]), (["--rtol", "0.4"], [1])):
            code, out, _ = run("diff", "one.zt", "two.zt", "--json", *args)
            found = loads(out)
            rows = found["differences"]
            self.assertEqual((code, [row["count"] for row in rows]), (1, counts), args)
            self.assertEqual((float(rows[0]["max_abs"]), float(rows[0]["max_rel"])), (INF, INF))
            keys = [float(text) for text in args[1:]]
            self.assertSame(tensorfmt.json_ready(tensorfmt.diff("one.zt", "two.zt", **dict(
                zip([args[0][2:]] if args else [], keys)))), found)
        self.assertEqual(tensorfmt.diff("one.zt", "two.zt")["differences"][1]["max_abs"], 1.0)
        tensorfmt.save("one.zt", {"w": tensor([1.0, 2.0, 0.0])})
        tensorfmt.save("two.zt", {"w": tensor([1.5, 2.0, -0.0])})
        row, = tensorfmt.diff("one.zt", load("two.zt"))["differences"]
        self.assertEqual((row["count"], row["max_abs"], row["max_rel"]), (1, 0.5, 0.5 / 1.5))
        self.assertEqual(self.prints("diff", "one.zt", "two.zt", "--atol", "0.5"),
                         "the same 1 tensor, no metadata\n")
        tensorfmt.save("two.zt", {"w": tensor([1.5, 2.0, 0.0], "float16")})
        self.assertIn("~ w          dtype float64 -> float16, close values",
                      run("diff", "one.zt", "two.zt", "--atol", "0.5")[1])
        write_file("bad.zt", read_file("one.zt")[:-1])
        for files in ("no.zt", "one.zt"), ("one.zt", "no.zt"), ("one.zt", "bad.zt"):
            code, out, err = run("diff", *files)
            self.assertEqual((code, out, err.startswith("error: " + (set(files) - {
                "one.zt"}).pop())), (2, "", True), err)
        data = dumps({"v": F32, "w": F32}, format="burnpack")
        write_file("cut.bpk", data[:-5])
        self.assertEqual(run("diff", "cut.bpk", "cut.bpk")[0], 2)
        self.assertEqual(run("diff", "cut.bpk", "cut.bpk", "--partial")[:2], (
            0, "the same 1 tensor, no metadata\nnot whole in both, not compared: w\n"))
        tensorfmt.save("v.bpk", {"v": F32})
        for files, word in (("cut.bpk", "v.bpk"), "first"), (("v.bpk", "cut.bpk"), "second"):
            self.assertEqual(run("diff", "--partial", *files)[:2], (
                1, "~ w          not whole in the %s\n1 difference, 1 tensor\n" % word))
        tensorfmt.save("more.bpk", {"w": F32}, metadata={"k": "v"})
        for files in ("one.zt", "more.bpk"), ("more.bpk", "one.zt"):
            self.assertEqual(tensorfmt.diff(*files)["metadata"], 1)

    def test_diff_of_shards_that_disagree(self):
        for folder, texts in ("a", "12"), ("b", "34"), ("c", "12"):
            os.mkdir(folder)
            for text in texts:
                tensorfmt.save("%s/%d.safetensors" % (folder, int(text) % 2), {
                    "t%d" % (int(text) % 2): F32}, metadata={"k": text})
            write_file(folder + "/model.safetensors.index.json", (
                '{"weight_map":{"t0":"0.safetensors","t1":"1.safetensors"}}').encode())
        self.assertEqual(run("diff", "a", "b")[:2], (
            1, "~ metadata k: {1: '2', 2: '1'} -> {1: '4', 2: '3'}\n1 difference, 2 tensors\n"))
        self.assertEqual(run("diff", "a", "c")[0], 0)

    def test_diff_of_large_integers(self):
        tensorfmt.save("a.zt", {"w": tensor([(1 << 53) + 1])})
        tensorfmt.save("b.zt", {"w": tensor([2.0**53])})
        self.assertIn("1 value changed, by 1.0 at most", run("diff", "a.zt", "b.zt")[1])

    def test_diff_knows_no_zero_of_exponents(self):
        small = tensor([2.0**-127] * 4, "float8_e8m0fnu")
        tensorfmt.save("a.safetensors", {"w": small})
        tensorfmt.save("b.safetensors", {"w": tensor([0.0] * 4)})
        self.assertIn("4 values changed", run("diff", "a.safetensors", "b.safetensors")[1])

    def test_diff_finds_other_names(self):
        from json import loads
        zeros, ones = tensor([0.0] * 9), tensor([1.0] * 9)
        tensorfmt.save("a.zt", {"m.0.w": ones, "m.0.b": zeros, "m.1.b": zeros, "kept": ones,
                                "gone": tensor([2.0]), "turned": tensor([2.0, 1.0])})
        tensorfmt.save("b.bpk", {"0.w": ones, "0.b": zeros, "1.b": zeros, "kept": zeros,
                                 "as": tensor([2.0], "float32"), "flat": tensor([[2.0, 1.0]])})
        code, out, _ = run("diff", "a.zt", "b.bpk", "--json")
        rows = {row["name"]: row for row in loads(out)["differences"]}
        self.assertEqual({name: (row["sign"], row.get("to")) for name, row in rows.items()}, {
            "m.0.w": (">", "0.w"), "m.0.b": (">", "0.b"), "m.1.b": (">", "1.b"),
            "kept": ("~", None), "gone": ("-", None), "turned": ("-", None), "as": ("+", None),
            "flat": ("+", None)})
        self.assertEqual(code, 1)
        self.assertIn("> m.0.w      the same bytes under another name: '0.w'\n",
                      run("diff", "a.zt", "b.bpk")[1])
        item = load(one_burnpack(dtype=scheme("Q8S"), shape=[4]))["a"]
        data = [dumps({name: item}, format="burnpack") for name in "ab"]
        self.assertEqual([row["sign"] for row in tensorfmt.diff(*data)["differences"]], ["-", "+"])

    def test_convert_on_the_command_line(self):
        from json import loads
        tensorfmt.save("m.bpk", {name: F32 for name in ("model.a", "model.b", "b.bias")},
                       metadata={"x": "1", "y": "2"})
        out = self.prints("convert", "m.bpk", "n.bpk", "--rename", "model.*=*", "--rename",
                          "model.b=c=d", "--exclude", "*.bias", "--meta", "x=", "--meta", "z=a=b",
                          "--json")
        found = loads(out)
        self.assertEqual((sorted(found["renamed"]), found["copied"]), (
            [["model.a", "a"], ["model.b", "c=d"]], ["model.a", "model.b"]))
        self.assertEqual((sorted(load("n.bpk")), load("n.bpk").metadata), (
            ["a", "c=d"], {"y": "2", "z": "a=b"}))
        keys = text_of("README.md").split("`convert FROM")[1].split("\n")[0].split(" | ")[-1]
        self.assertEqual(keys.split("`")[1].split(), list(found))
        for args, code, word in ((["--rename", "a"], 2, "--rename: invalid"),
                                 (["--rename", "model.a="], 1, "a name is a str"),
                                 (["--rename", "*=x"], 1, "would both be 'x'\nnothing written"),
                                 (["--meta", "q="], 1, "there is no metadata 'q'"),
                                 (["--shard", "5GB"], 2, "TO ends in .safetensors.index.json")):
            found = run("convert", "m.bpk", "o.bpk", *args)
            self.assertEqual((found[0], word in found[2], os.path.exists("o.bpk")),
                             (code, True, False), found)
        for nbytes, files in (("400", 2), ("8", 3)):
            self.assertIn(" bytes in %d files\n" % files, self.prints(
                "convert", "m.bpk", "s.safetensors.index.json", "--shard", nbytes))
        self.prints("convert", "m.bpk", "s.safetensors.index.json", "--shard", "4")
        self.assertIn(".index.json: safetensors, 12 bytes, 3 tensors, 3 shards, all raw",
                      self.prints("ls", "s.safetensors.index.json"))
        self.assertIn("shape             shard                         name\n",
                      self.prints("ls", "--shards", "s.safetensors.index.json"))
        self.assertIn("  s-00003-of-00003.safetensors  b.bias\n",
                      self.prints("ls", "--shards", "s.safetensors.index.json"))
        row, = loads(self.prints("ls", "--shards", "--json", "s.safetensors.index.json"))
        self.assertEqual([item["shard"] for item in row["tensors"]],
                         [f"s-{i:05}-of-00003.safetensors" for i in (1, 2, 3)])
        self.assertIn("cast: 3 tensors float32 -> bfloat16 (exact)", self.prints(
            "convert", "m.bpk", "o.bpk", "--cast", "float32=bfloat16"))
        self.assertIn("cast: 'b.bias' float32 -> bfloat16 (exact)", self.prints(
            "convert", "m.bpk", "o.bpk", "--cast", "float32=bfloat16", "--verbose"))

    def test_numbers_are_rounded(self):
        for number, wanted in ((999999, ""), (1000000, "1.00 M"), (514811904, "514.8 M"),
                               (9990000, "9.99 M"), (10000000, "10.0 M"), (10500000, "10.5 M"),
                               (1030792151, "1.03 G"), (10**14, "100.0 T"), (10**15, "")):
            self.assertEqual(tensorfmt.rounded(number, ""), wanted)

    def test_misuse(self):
        for line in ("ls", "ls --sort colour x", "get", "ls x --limit -1", "get x x --rows ::0",
                     "get x x --rows 1:2:3:4", "get x x --rows a", "convert x"):
            code, out, err = run(*line.split())
            self.assertEqual((code, out, "usage" in err), (2, "", True), line)
        for line in ("ls .", "verify absent.zt", "explain absent.zt", "convert absent.zt x.mag"):
            code, _, err = run(*line.split())
            self.assertEqual((code, err[:7]), (1, "error: "), line)
            self.assertTrue(err.count("\n") == 1 or "nothing written" in err)
        for error, text in ((OSError(28, "No space"), "x.zt: No space"), (ValueError("v"), "v"),
                            (OSError(2, "No such file", "y.zt"), "y.zt: No such file")):
            self.assertEqual(tensorfmt.describe(error, "x.zt"), text)
        with Changed(tensorfmt, "run", lambda argv: (_ for _ in ()).throw(KeyboardInterrupt())):
            self.assertEqual(run("ls"), (130, "", ""))  # Ctrl-C

    def test_files_that_look_like_options(self):
        for name in ("-h", "--json", "--html=seed_basic.mag"):
            write_file(name, golden("seed_basic.mag"))
            for command in ("verify", "ls", "explain"):
                code, out, err = run(command, name)
                self.assertEqual((code, out), (2, ""))
                self.assertIn("%r is a file here: `--` before names, or ./ be" % name, err)
                for words in ("--", name), ("./" + name,):
                    self.assertEqual(run(command, *words)[::2], (0, ""))
        self.assertEqual(read_file("seed_basic.mag"), golden("seed_basic.mag"))
        write_file("--", golden("seed_basic.mag"))  # `verify *` would leave it out
        for words in ("--", "./-h"), ("--", "--"):
            self.assertEqual(run("verify", *words)[:2], (2, ""))
        self.assertEqual(run("verify", "./--", "./-h")[::2], (0, ""))
        self.assertEqual(run("ls", "--lim", "1", "m012_mixed.mag")[0], 2)
        self.assertIn("`./-x` or `-- -x` a file", self.prints("help"))

    def test_a_refusal_names_the_cast_that_works(self):
        write_file("f8", dumps({"w": tensor([1.5], "float8_e5m2")}, format="safetensors"))
        write_file("c64", safetensors({"w": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}},
                                      bytes(8)))
        code, _, err = run("convert", "f8", "f8.bpk")
        self.assertEqual(code, 1)
        self.assertIn("\n  --cast bfloat16 converts values, --exclude NAME leaves tensors out\n",
                      err)
        self.assertEqual(run("convert", "f8", "f8.bpk", "--cast", "bfloat16")[0], 0)
        self.assertEqual(load("f8.bpk")["w"].tolist(), [1.5])
        code, _, err = run("convert", "c64", "c64.bpk")
        self.assertEqual(code, 1)
        self.assertNotIn("--cast", err)
        self.assertIn("\n  --exclude NAME leaves tensors out\n", err)

    def test_diff_of_what_has_no_values_here(self):
        def differ(a, b):
            write_file("one", a)
            write_file("two", b)
            self.assertEqual(run("diff", "one", "one")[:2], (0, "the same 1 tensor, no metadata\n"))
            code, out, _ = run("diff", "one", "two")
            self.assertEqual(code, 1)
            return out.split("\n")[0]
        types = [safetensors({"w": {"dtype": name, "shape": [8], "data_offsets": [0, 6]}}, bytes(6))
                 for name in ("F6_E2M3", "F6_E3M2")]
        self.assertEqual(differ(*types), "~ w          dtype F6_E2M3 -> F6_E3M2")
        schemes = [one_burnpack(dtype=scheme(name), shape=[4]) for name in ("Q8S", "E4M3")]
        self.assertEqual(differ(*schemes), "~ a          stored in another way")
        parts = [zt2_objects({"w": {"layout": "tiled", "shape": [2], "parts": {
            "a": part2("u8", 1, 8), "b": part2("u8", 2, 1)}}}, (bytes(8), bytes([i])))
            for i in range(2)]
        self.assertEqual(differ(*parts), "~ w          stored bytes differ")
        words = [zt2_objects({"w": {"layout": layout, "shape": [2], "parts": {
            "a": part2("u8", 1, 1, type=dtype)}}}, (bytes(65),))
                 for layout, dtype in (("tiled", "q6"), ("woven", "q6"), ("tiled", "q7"))]
        for other in words[1:]:
            self.assertEqual(differ(words[0], other), "~ w          stored in another way")
        scalars = [dumps({"w": F32}, format="burnpack", scalars={"s": {"Int": i}})
                   for i in range(2)]
        self.assertEqual(differ(*scalars), "~ scalar s: {'Int': 0} -> {'Int': 1}")
        self.assertEqual(differ(scalars[0], dumps({"w": F32}, format="ztensor")),
                         "- scalar s: {'Int': 0}")

    def test_get_and_json_of_odd_files(self):
        from json import loads
        write_file("deep", safetensors({"w": {"dtype": "U8", "shape": [9] + [1] * 64,
                                              "data_offsets": [0, 9]}}, bytes(9)))
        for more in ((), ("--all",)):
            self.assertEqual(run("get", "deep", "w", *more), (
                1, "", "error: 65 dimensions are too many to be shown; --raw writes the bytes\n"))
        self.assertEqual(self.prints("get", "deep", "w", "--raw"), "\0" * 9)
        write_file("less", safetensors({"w": {"dtype": "U8", "shape": [1] * 64,
                                              "data_offsets": [0, 1]}}, bytes(1)))
        self.assertIn("1, " * 60, self.prints("get", "less", "w", "--npy"))
        for given, wanted in (({1: 2, "1": 3}, {"1 (key 0)": 2, "1": 3}),
                              ({"1": 3, 1: 2, "1 (key 1)": 4},
                               {"1": 3, "1 (key 1) (key 1)": 2, "1 (key 1)": 4}),
                              ({b"a" * 20: 1, b"b" * 20: 2},
                               {"20 bytes": 1, "20 bytes (key 1)": 2})):
            self.assertEqual(loads(tensorfmt.to_json(given)), wanted)

    def test_quiet_says_all_that_is_bad(self):
        data = bytearray(dumps({"a": F32, "b": F32}, format="ztensor", checksum="crc32c"))
        data[64] ^= 1
        data[128] ^= 1
        write_file("bad.zt", bytes(data))
        code, out, err = run("verify", "--quiet", "seed_basic.mag", "bad.zt")
        self.assertEqual((code, err, out.count("\n")), (1, "", 2))
        for name, line in zip("ab", out.split("\n")):
            self.assertTrue(line.startswith("bad.zt: tensor '%s': " % name), line)

    def test_rows_that_are_asked_for_and_the_fault(self):
        """It is always among them."""
        for args in ((), ("--tensor", "b"), ("--from", "0x80"), ("--limit", "1")):
            code, out, err = run("explain", "broken.zt", *args)
            self.assertEqual((code, out.count("<- here: "), err[:16]), (1, 1, "error: broken.zt"))

    def test_standard_input_and_home(self):
        from shutil import copy
        source = io.TextIOWrapper(io.BytesIO(golden("seed_basic.mag")))
        usual = self.prints("ls", "seed_basic.mag"), self.prints("verify", "seed_basic.mag")
        for line in ("ls -", "verify -", "get - x", "explain -", "diff - seed_basic.mag",
                     "diff seed_basic.mag -", "convert - new.zt --drop"):
            wanted = self.prints(*line.replace("-", "seed_basic.mag", 1).replace(
                "seed_basic.mag-", "--").split())
            with Changed(sys, "stdin", source):
                source.seek(0)
                self.assertEqual(self.prints(*line.split()),
                                 wanted.replace("seed_basic.mag", "standard input", 1), line)
        size = len(golden("seed_basic.mag"))
        for most, words in (100, "over MAX_STDIN = 100"), (size - 1, "over MAX"), (size, ""):
            with Changed(sys, "stdin", source), Changed(tensorfmt, "MAX_STDIN", most):
                source.seek(0)
                self.assertIn(words, run("ls", "-")[2] or "" if words else self.prints("ls", "-"))
                self.assertEqual(source.buffer.tell(), min(most + 1, size))
        with Changed(sys, "stdin", None):
            self.assertEqual(run("ls", "-")[::2],
                             (1, "error: standard input: the file is empty (at 0x0, magic)\n"))
        line = 'python3 -c "import sys; sys.stdout.buffer.write(open(%r, %r).read())" ' % (
            "seed_basic.mag", "rb") + "| python3 -m tensorfmt verify - absent.zt"
        code, out, err = run(line)
        self.assertEqual((code, out), (1, usual[1].replace("seed_basic.mag", "standard input")))
        self.assertEqual(err[:17], "error: absent.zt:")
        home = folder_for(self)
        copy("seed_basic.mag", home)
        self.addCleanup(os.environ.update, os.environ.copy())
        os.environ["HOME"] = os.environ["USERPROFILE"] = home
        self.prints("convert", "~/seed_basic.mag", "~/new.zt", "--drop")
        self.prints("explain", "~/new.zt", "--html", "~/page.html")
        self.assertEqual(self.prints("diff", "~/new.zt", "~/new.zt", "--quiet"), "")
        self.assertEqual(sorted(os.listdir(home)), ["new.zt", "page.html", "seed_basic.mag"])
        tensorfmt.save("home.zt", {"~": [1.0]})
        self.assertEqual(self.prints("get", "home.zt", "~"), "[1.0]\n")
        for command in ("ls", "verify", "explain"):
            self.assertIn("is a URL", run(command, "https://example.org/m.zt")[2])

    def test_what_newcomers_run_into(self):
        tensorfmt.save("1.safetensors", {"a": F32}, metadata={"format": "pt"})
        tensorfmt.save("2.safetensors", {"b": tensor([1, NAN], "float32")})
        before = read_file("2.safetensors")
        code, _, err = run("convert", "1.safetensors", "2.safetensors", "1.safetensors")
        self.assertEqual((code, "several files become a new one" in err), (1, True), err)
        self.assertEqual(run("convert", "1.safetensors", "2.safetensors", "both.zt")[0], 0)
        self.assertEqual(read_file("2.safetensors"), before)
        run("convert", "1.safetensors", "one.zt")
        self.assertEqual(run("diff", "1.safetensors", "one.zt")[0], 0)  # "pt" is not content
        out = self.prints("convert", "1.safetensors", "one.bpk", "--format", "zt")
        self.assertIn("version 0.1; --set version: 0.1, or 2 for ztensor 2\n", out)
        self.assertEqual(tensorfmt.detect("one.bpk"), "ztensor")
        code, _, err = run("convert", "1.safetensors", "one.bpk", "--format", "bqk")
        self.assertEqual((code, "no format 'bqk'; there are mag, " in err), (2, True))
        tensorfmt.save("2.safetensors", {"b": F32}, metadata={"format": "pt", "step": "2"})
        tensorfmt.save("1.safetensors", {"a": F32}, metadata={"format": "pt", "step": "1"})
        write_file("m.safetensors.index.json",
                   b'{"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}')
        self.assertIn("\nthe files do not agree on metadata 'step'\n",
                      self.prints("ls", "m.safetensors.index.json"))
        self.assertIn('"differ": ["metadata \'step\'"]',
                      self.prints("ls", "m.safetensors.index.json", "--json"))
        self.assertIn("bytes of structure, 2 tensors,",
                      self.prints("verify", "m.safetensors.index.json"))
        code, out, err = run("explain", "one.zt", "--html", "-")
        self.assertEqual((code, out[:15], "one.zt" in out), (0, "<!DOCTYPE html>", True))
        self.assertTrue(err.startswith("wrote standard output, "))
        write_file("role.zt", zt2_objects({"a": {"layout": "tiled", "shape": [2], "parts": {
            "fi\x1bdptr": part2("u8", 1, 1)}}}, (bytes(1),)))
        text = self.prints("explain", "role.zt")
        self.assertEqual(("i\\x1bdptr" in text, "\x1b" in text), (True, False))
        kept = read_file("one.zt")
        for args in ("explain", "1.safetensors", "--html", "one.zt"), ("vendor", "one.zt"):
            if args[0] != "vendor" or sys.version_info >= (3, 8):
                self.assertIn("one.zt: it is a tensor file", run(*args)[2])
        self.assertEqual(read_file("one.zt"), kept)
        self.assertIn("safetensors, 8 bytes, 2 tensors, 2 shards", self.prints("ls", "."))
        os.unlink("m.safetensors.index.json")
        self.assertIn("is a directory; it has 1.safetensors, 2.safetensors, both.zt",
                      run("ls", os.path.abspath("."))[2])
        os.mkdir("empty")
        self.assertIn("empty: is a directory; it has no tensor files", run("ls", "empty")[2])
        self.assertIn("empty is a directory; TO is a file", run("convert", "one.zt", "empty")[2])
        self.assertIn("zTensor 0.1 holds all of them; --cast OLD=NEW",
                      self.prints("convert", "one.zt", "out.zt", "--cast", "float16"))
        tensorfmt.save("n.mag", {"w": F32}, metadata={"n": NAN, "i": -INF})
        import json
        row, = json.loads(run("ls", "--json", "n.mag")[1], parse_constant=self.fail)
        self.assertEqual(row["metadata"], {"n": "nan", "i": "-inf"})
        write_file("cut.bpk", dumps({"a": F32, "b": F32}, format="burnpack")[:-4])
        for args in ("ls", "cut.bpk"), ("convert", "cut.bpk", "x.zt"):
            self.assertIn("1 of 2 tensors are whole; load(partial=True) and --partial take",
                          run(*args)[2])
        self.assertEqual(run("convert", "cut.bpk", "x.zt", "--partial", "--only", "a")[0], 0)

    def test_standard_output(self):
        script = "python3 -m tensorfmt "
        wanted = self.prints("convert", "seed_basic.mag", "new.bpk", "--drop")
        for target in ("-", "/dev/stdout")[:1 + os.path.exists("/dev/stdout")]:
            line = "convert - %s --format burnpack --drop < seed_basic.mag > out.bpk" % target
            code, out, err = run(script + line)
            self.assertEqual((code, out), (0, ""))
            self.assertEqual(err.replace("standard output", "new.bpk"),
                             wanted.replace("seed_basic.mag", "standard input"))
            self.assertEqual(read_file("out.bpk"), read_file("new.bpk"))
        self.assertEqual(run("convert", "seed_basic.mag", "-")[0], 2)  # of which format?
        code, out, err = run(script + "convert seed_basic.mag - --format burnpack | " + script +
                             "ls -")
        self.assertIn("metadata 'n'", err)
        self.assertEqual(out, "")

    def test_progress(self):
        import time

        class Terminal(io.StringIO):
            def isatty(self):
                return True
        tensorfmt.save("p.zt", {"w": F32}, checksum="crc32c")
        for line in ("verify p.zt", "get p.zt w --stats", "get p.zt w --raw", "diff p.zt p.zt",
                     "convert p.zt q.zt"):
            for kind in (Terminal, io.StringIO):
                out, err, clock = io.TextIOWrapper(io.BytesIO()), kind(), iter(range(0, 200, 2))
                with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err), Changed(
                        sys, "stdout", out):
                    self.assertEqual(tensorfmt.main(line.split()), 0)
                first, last = err.getvalue()[:23], err.getvalue()[-len(tensorfmt.WIPE):]
                self.assertEqual((first, last), ("", "") if kind is io.StringIO else (
                    "\r0 of 0 MB, 100%, 0 s left"[:23], tensorfmt.WIPE), line)
        with Changed(sys, "stdout", Terminal()), Changed(sys, "stderr", io.StringIO()):
            self.assertEqual(tensorfmt.main(["get", "p.zt", "w", "--raw"]), 2)
        err, clock = Terminal(), iter(range(0, 200, 2))
        with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err):
            list(tensorfmt.progress([b"a"], 1))
        self.assertEqual(err.getvalue(), "\r" + "0 of 0 MB, 100%, 0 s left".ljust(40)
                         + tensorfmt.WIPE)
        tensorfmt.save("a.zt", {"w": F32, "a": [1.0] * 9})
        tensorfmt.save("b.bpk", {"w": F32, "b": [1.0] * 7})
        made = []

        def noted(parts, nbytes, size=len):
            for part in parts:
                yield part
                made.append((size(part), nbytes))

        with Changed(tensorfmt, "progress", noted):
            run("diff", "a.zt", "b.bpk")  # of what is compared
        self.assertEqual(sorted(made), [(0, F32.nbytes), (0, F32.nbytes), (F32.nbytes,) * 2])
        for command in "verify p.zt", "convert p.zt q.zt", "get p.zt w --raw", "get p.zt w --stats":
            del made[:]
            with Changed(tensorfmt, "progress", noted), Changed(
                    sys, "stdout", io.TextIOWrapper(io.BytesIO())):
                self.assertEqual(tensorfmt.main(command.split()), 0)
            self.assertGreaterEqual(sum([row[0] for row in made]), F32.nbytes)
        err, clock = Terminal(), iter((0, 2, 9))
        with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err):
            list(tensorfmt.progress([b"a", b"more"], 2))  # more than was said
        self.assertEqual(err.getvalue().split("\r")[1:3], [text.ljust(40) for text in (
            "0 of 0 MB, 67%, 1 s left", "0 of 0 MB, 100%, 0 s left")])
        err, clock = Terminal(), iter((0, 1, 2.5, 3.5, 9.75))
        with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err):
            parts = tensorfmt.progress((16 << 20, 16 << 20, 1 << 20, 1), 160 << 20, int)
            self.assertEqual(len(list(parts)), 4)
        texts = ["\r" + text.ljust(40) for text in (
            "32 of 160 MB, 20%, 10 s left", "33 of 160 MB, 21%, 38 s left")]
        self.assertEqual(err.getvalue(), texts[0] + texts[1] + tensorfmt.WIPE)
        sizes, large = [], load(dumps({"w": tensor(bytes(33 << 20), "uint8")}, format="ztensor"))
        tensorfmt.convert(large, io.BytesIO(), format="burnpack", watch=lambda parts, nbytes: (
            sizes.append(len(part)) or part for part in parts))
        self.assertEqual(sizes[-3:], [16 << 20, 16 << 20, 1 << 20])
        err = Terminal()

        def interrupt(source, partial):
            raise KeyboardInterrupt
        with Changed(tensorfmt, "load", interrupt), Changed(sys, "stderr", err):
            self.assertEqual(tensorfmt.main(["ls", "p.zt"]), 130)
        self.assertEqual(err.getvalue(), tensorfmt.WIPE)

    def test_every_help_has_examples_that_are_right(self):
        for command in tensorfmt.COMMANDS:
            lines = run(command, "-h")[1]
            self.assertEqual(run("help", command)[1], lines)
            lines = lines.partition("examples:")[2].split("\n  ")[1:]
            self.assertTrue(lines, command)
            for line in lines:
                words = shlex.split(line.replace(" < ", " > ").split(" > ")[0])
                self.assertEqual(words[:2], ["python3", "tensorfmt.py"])
                with Changed(sys, "argv", ["tensorfmt.py"]):
                    tensorfmt.make_parser(words[2]).parse_args(words[3:])

    @accepts
    def test_words_of_every_help_and_numbers_in_json(self):
        texts = []
        for command in tensorfmt.COMMANDS:
            with Changed(sys, "argv", ["tensorfmt.py"]):
                parser = tensorfmt.make_parser(command)
            texts.append((parser.prog, "\n".join([parser.description, parser.epilog] + [repr((
                one.option_strings, one.dest, one.nargs, one.default, one.choices, one.help,
                one.metavar)) for one in parser._actions if one.dest != "help"])))
        self.assertAccepted(texts, "helps")
        most = (1 << 128) - 1
        self.assertEqual(tensorfmt.to_json({5: [most, -most, most + 1, -most - 1, b"a"], "b": (1, {
            1.5})}), '{"5": [%d, %d, "%s", "%s", {"bytes_hex": "61"}], "b": [1, "{1.5}"]}' % (
                most, -most, tensorfmt.show(most + 1), tensorfmt.show(-most - 1)))

    @little
    def test_version_in_a_zip_and_frozen(self):
        from shutil import copy
        from zipfile import ZipFile
        wanted = self.prints("--version")
        copy(os.path.join(HERE, "tensorfmt.py"), "__main__.py")
        with ZipFile("tool.pyz", "w") as archive:
            archive.write("__main__.py")
        self.assertEqual(run("python3", "tool.pyz", "--version"), (0, wanted, ""))
        self.assertIn("usage: python3 tool.pyz COMMAND", run("python3", "tool.pyz")[1])
        write_file("tensorfmt.pyc", b"code")
        for path in "gone/tensorfmt.pyc", "tensorfmt.pyc":
            with Changed(tensorfmt, "__file__", path):
                self.assertTrue(self.prints("--version").endswith(", frozen\n"))
                self.assertTrue(run("vendor", "x.py")[0])

    @documented
    @accepts
    def test_all_outputs_have_been_looked_at(self):
        variants = script(self, "variants.py")
        variants["write_files"]()
        groups, absent = [], []
        for _, title, _, _ in FILES:
            if [item for item in load(title).values() if zstd_missing(item)]:
                absent.append(title)
            else:
                groups.append((title, [line + title for line in (
                    "ls ", "ls --json --sort offset ", "explain ",
                    "explain --html page.html ", "verify ")]))
        for name, data in [row[:2] for row in bad_files()] + variants["odd_files"]():
            if "zstd" not in name:
                write_file(name, data)
                groups.append((name, [line + name for line in (
                    "ls|", "ls|--json|", "explain|", "verify|",
                    "explain|--html|page.html|")]))
        groups += [(line, [line]) for line in variants["COMMANDS"]]
        texts, kept = [], parsers_kept()
        for title, lines in groups:
            text = ""
            for line in lines:
                if os.path.exists("page.html"):
                    os.remove("page.html")  # that of another file
                with kept:
                    code, out, err = run(*line.split("|" if "|" in line else " "))
                page = text_of(os.path.abspath("page.html")) if os.path.exists("page.html") else ""
                if page:
                    check_page(self, page)
                page = page[page.find("<h1>"):page.find("<script>")]
                text += "$ %s\n%s%s%sexit code %s\n" % (line, out, err, page, code)
            texts.append((title, text))
        self.assertAccepted(texts, "outputs", absent)


# -- [2] terminals ------------------------------------------------------------------------------


def in_terminal(columns, *args, **env):
    """Return what our command writes to a terminal of so many columns."""
    return in_terminals(columns, [args], **env)[0]


def in_terminals(columns, lines, **env):
    """Return what each of some commands, run by one process, writes to such a terminal."""
    import fcntl
    import pty
    import termios
    from subprocess import Popen
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    usual = dict([(key, text) for key, text in environment().items()
                  if key not in ("COLUMNS", "NO_COLOR")], **env)
    process = Popen(program(lines), stdin=slave, stdout=slave, stderr=slave, env=usual)
    os.close(slave)
    parts = []
    try:
        while not parts or parts[-1]:
            parts.append(os.read(master, 65536))
    except OSError:  # Linux: nobody has the other end
        pass
    os.close(master)
    process.wait()
    text = b"".join(parts).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    texts = text.split("\0\0")[:len(lines)]  # of stdout and stderr
    if len(texts) < len(lines):
        raise AssertionError("only %d of %d commands: %s" % (len(texts) - 1, len(lines), text))
    return texts


@full
@little
class TerminalTest(FolderCase):
    def setUp(self):
        super().setUp()
        go_to(self, self.folder)
        self.net = Map([(name, tensor(rows, "float32")) for name, rows in NET.items()])
        for kind in MANY:
            tensorfmt.save("net." + kind, self.net, format=kind)

    def columns_of(self, text):
        """Assert that a table keeps its columns; return what stands in that of the names."""
        lines = text.split("\n")
        starts = [lines[0].index(word) for word in ("field", "value", "meaning")]
        for line in lines[:lines.index("")]:
            for start in starts[:2]:
                self.assertEqual(line[start - 2:start].strip(), "", line)
        return "".join([line[starts[0]:starts[1]].strip() for line in lines[:lines.index("")]])

    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_rows_fit_the_terminal(self):
        for width in (80, 200):
            outs = in_terminals(width, [("explain", "net." + kind) for kind in MANY], TERM="dumb")
            for kind, out in zip(MANY, outs):
                with self.subTest(format=kind, width=width):
                    self.assertTrue(max([len(line) for line in out.split("\n")]) <= width)
                    names = self.columns_of(out)
                    self.assertNotIn("...", names)
                    for name in NET:
                        self.assertIn("data" + name, names.replace(" ", ""))
                    self.assertIn("0.0 1.0 2.0 ..." if width == 200 else "0.0 1.0", out)

    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_names_in_their_own_letters(self):
        names = ["gr\u00f6\u00dfe", "\u5c42.weight", "\u202eevil", "\x1b[31mred", "e\xa0", "a b"]
        tensorfmt.save("names.zt", [(name, [1.0]) for name in names])
        tensorfmt.save("more.zt", [(name, [2.0]) for name in names])
        lines = ("ls", "names.zt"), ("diff", "names.zt", "more.zt"), ("explain", "names.zt")
        for out in in_terminals(80, lines, PYTHONIOENCODING="utf-8", TERM="dumb"):
            for name in names[:2] + ["'\\u202eevil'", "'\\x1b[31mred'", "'e\\xa0'", "a b"]:
                self.assertIn(name, out)
        for encoding, seen in (("latin-1", "gr\udcf6\udcdfe"), ("ascii", "gr\\xf6\\xdfe")):
            for out in in_terminals(200, lines, PYTHONIOENCODING=encoding, TERM="dumb"):
                self.assertIn(seen, out)
                self.assertIn("\\u5c42.weight", out)
        self.assertIn("gr\xf6\xdfe", self.command("ls", "names.zt"))

    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_demo_fits_two_screens(self):
        for width in (80, 200):
            lines = in_terminal(width, "demo").split("\n")
            self.assertLessEqual(len(lines), 6 + 8 * len(FORMATS))
            self.assertLessEqual(max([len(line) for line in lines]), width)

    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_no_bytes_for_a_terminal(self):
        tensorfmt.save("net.zt", {"a": [1.0]})
        tensorfmt.save("net.mag", {"a": F32})
        for out in in_terminals(80, [("get", "net.zt", "a", "--raw"), (
                "convert", "net.mag", "-", "--format", "ztensor")]):
            self.assertIn("error: bytes are not for a terminal", out)

    @documented
    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_colours_only_where_they_are_wanted(self):
        plain = self.command("explain", "net.burnpack")
        for env, rows in (({"TERM": "xterm"}, (((), True), (("--color", "never"), False))),
                          ({"TERM": "dumb"}, (((), False), (("--color", "always"), True))),
                          ({"TERM": "xterm", "NO_COLOR": "1"}, (((), False),))):
            lines = [((command, "net.burnpack") + more, wanted) for more, wanted in rows
                     for command in ("ls", "explain")]
            outs = in_terminals(100, [line for line, _ in lines], **env)
            for (line, wanted), text in zip(lines, outs):
                self.assertEqual("\033[32m" in text, wanted, (line, env))
            if env == {"TERM": "xterm"}:
                out = outs[1]
        self.assertEqual(re.sub("\033\\[[0-9;]*m", "", out), plain)
        for kind in ("structure", "padding"):
            self.assertIn("\033[%sm" % tensorfmt.FIELD_KINDS[kind][1], out)
        self.assertNotIn("\033", plain)
        self.assertIn("\033[1;31m", self.command("explain", "--color", "always", "cut", code=1))

    def command(self, *args, **env):
        """Return the output of our command, piped, without COLUMNS."""
        wanted = env.pop("code", 0)
        write_file("cut", read_file("net.burnpack")[:-1])
        with Changed(os, "environ", dict(os.environ, **env)):
            if not env:
                os.environ.pop("COLUMNS", None)
            code, out, _ = run(*args)
        self.assertEqual(code, wanted)
        return out

    def test_width_of_a_pipe_and_as_asked_for(self):
        for kind in MANY:
            for args, env, width in (((), {}, 100), ((), {"COLUMNS": "80"}, 80),
                                     (("--width", "64"), {"COLUMNS": "80"}, 64),
                                     (("--width", "300"), {}, 300)):
                out = self.command("explain", "net." + kind, *args, **env)
                rows = out[:out.index("\n\n")].split("\n")
                self.assertTrue(max([len(row) for row in rows]) <= width, (kind, width))
                self.columns_of(out)
        self.assertEqual(tensorfmt.wrap("  a.bcd_e/fghijk", 6, "._/"),
                         ["  a.", "  bcd_", "  e/", "  fghi", "  jk"])
        self.assertEqual(tensorfmt.wrap("one two three", 8, " "), ["one two ", "three"])

    @unittest.skipUnless(sys.platform == "linux", "a terminal of a given width")
    def test_long_tables_end_with_the_way_to_the_rest(self):
        tensorfmt.save("many.mag", [("t%d" % i, F32) for i in range(300)])
        count = len(list(tensorfmt.explain("many.mag")))
        self.assertGreater(count, tensorfmt.MAX_ROWS)
        out = in_terminal(150, "explain", "many.mag", TERM="dumb")
        rest = "... %d more rows: --all, --tensor NAME, a pipe, or --from 0x" % (
            count - tensorfmt.MAX_ROWS)
        line, = [line for line in out.split("\n") if line.startswith("... ")]
        self.assertEqual(line[:len(rest)], rest)
        self.assertIn(" explained: ", out)
        more = run("explain", "many.mag", "--from", line[len(rest) - 2:])[1]
        self.assertEqual(more.count("\n0x"), count - tensorfmt.MAX_ROWS)
        for text in in_terminals(150, [("explain", "many.mag") + words for words in (
                ("--all",), ("--limit", "99999"))]):
            self.assertIn(" explained: ", text)
            self.assertNotIn("more rows", text)
        self.assertNotIn("more rows", self.command("explain", "many.mag"))



# -- [3] pages ----------------------------------------------------------------------------------


@full
class PageTest(TestCase):
    def setUp(self):
        go_to(self, folder_for(self))

    def page(self, data, *args):
        write_file("file", data)
        self.assertEqual(run("explain", "--html", "page.html", "file", *args)[0], 0)
        text = read_file("page.html").decode("ascii")
        check_page(self, text)
        return text

    def test_many_fields_and_one_tensor(self):
        rows = dict([("t%d" % i, F32) for i in range(1001)])
        for kind in ("burnpack", "primitiv"):
            text = self.page(dumps(rows, format=kind))
            self.assertIn("are left out", text)
            self.assertTrue(10 < text[:text.index('id="about"')].count("data-s=") < 2000)
            text = self.page(dumps(rows, format=kind), "--tensor", "t7")
            self.assertTrue(2 < text.count("data-e=") < 30)
        self.assertEqual(self.page(dumps({}, format="mag")).count('id="list"'), 0)

    def test_histogram(self):
        path, ends = tensorfmt.histogram(tensor([float(i) for i in range(48)], "float32"))
        self.assertEqual((path.count("V"), ends), (25, "0, 47"))
        for values, wanted in (([2.5, 2.5], "2.5"), ([1.0, NAN, INF, 3.0], "1, 3")):
            self.assertEqual(tensorfmt.histogram(tensor(values, "float32")), ("", wanted))
        for values in ([], [NAN]):
            self.assertRaises(ValueError, tensorfmt.histogram, tensor(values, "float32"))

    def test_all_tensors_can_be_found(self):
        with Changed(tensorfmt, "PAGE_ROWS", 2):
            self.assertNotIn("more, which", self.page(dumps({"a": F32, "b": F32}, format="mag")))
        with Changed(tensorfmt, "PAGE_ROWS", 5):
            text = self.page(dumps(dict([("t%02d" % i, F32) for i in range(20)]), format="ztensor"))
        rows = text[text.index('id="list"'):text.index("more, which the search finds")].split("<tr")
        self.assertEqual([row.count("t%02d<" % i) for i, row in enumerate(rows[2:])], [1] * 20)
        self.assertEqual([" hidden" in row[:8] for row in rows[2:]], [False] * 5 + [True] * 15)
        self.assertIn("15 more, which", text)
        data = dumps(dict([("t%d" % i, [i]) for i in range(30)]), format="tensorbuffers")
        pages = [text]
        for most in range(3, 9):  # a tensor may be the first or the last that is not shown
            with Changed(tensorfmt, "PAGE_ROWS", most):
                pages.append(self.page(data))
        for text in pages:
            table = text[text.index('id="list"'):].split("</table>")[0]
            anchors = set(re.findall('href="(#0x[0-9a-f]+)"', table))
            self.assertEqual({one for one in anchors if 'id="%s"' % one[1:] not in text}, set())

    def test_labels_of_the_strip(self):
        text = self.page(dumps({"a\u202eb": F32, "\u5c42": F32}, format="mag"))
        strip = text[text.index('class="strip"'):text.index('id="bar"')]
        for name in "&#x27;a\\u202eb&#x27;", "&#23618;":
            self.assertIn("> %s\n" % name, strip)

    def test_bytes_of_a_field(self):
        """Of data two lines of 16 are shown; what is not shown is counted."""
        for count, more in ((8, 0), (9, 4), (100, 368)):
            page = self.page(dumps({"w": tensor([1.0] * count, "float32")}, format="mag"))
            self.assertEqual(page.count("more bytes"), 3 if more else 2)  # besides of padding
            self.assertEqual("&#8230; %d more bytes" % more in page, more > 0)

    @little
    def test_without_docstrings(self):
        tensorfmt.save("a.zt", {"w": F32})
        self.assertEqual(tensorfmt.layout_of(type("Bare", (), {"__doc__": None})()),
                         ([tensorfmt.NO_DOCSTRING], []))
        script = ("-OO", "-m", "tensorfmt", "explain")
        self.assertEqual(run("python3", *script + ("--html", "b.html", "a.zt"))[0], 0)
        self.assertIn("python -OO leaves", read_file("b.html").decode())
        self.assertEqual(run("python3", *script + ("a.zt",))[1],
                         run("python3", *script[1:] + ("a.zt",))[1])
