# SPDX-License-Identifier: MIT
"""Tests of what people see: `python3 test_tensorfmt.py` runs them, too.

    [1] commands           in this process, and through a real one
    [2] terminals          their letters and colours
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
    Changed, check_page, documented, dumps, environment, error_of, F32, FILES, folder_for,
    FolderCase, FORMATS, full, go_to, golden, HERE, INF, little, load, Map, NAN, NET,
    one_burnpack, PYTHON3, read_file, run, safetensors, scheme, tensor, TestCase, text_of, tohex,
    write_file, zstd_missing, ztensor)

# -- [1] commands -------------------------------------------------------------------------------

EACH = """if 1:
    import sys, tensorfmt
    for name in sys.argv[2:]:
        sys.modules[name] = None
    for words in eval(sys.argv[1]):
        try:
            code = tensorfmt.main(words)
        except SystemExit as stop:
            code = stop.code
        print("exit code", code)
        for stream in sys.stdout, sys.stderr:
            stream.write(chr(0))
            stream.flush()
"""


def program(lines, without=()):
    """Return the arguments of a process that runs commands, each with \\0 behind it."""
    return PYTHON3 + ["-c", EACH, ascii([list(words) for words in lines])] + list(without)


class Commands(TestCase):
    """Has a folder of files, and is in it."""

    def setUp(self):
        go_to(self, folder_for(self))

    def prints(self, *args):
        """Return the stdout of our command, that ends with 0 and no message."""
        code, out, err = run(*args)
        self.assertEqual((code, err), (0, ""), args)
        return out

    def json(self, *args, code=0):
        from json import loads
        found, out, _ = run(*args, "--json")
        self.assertEqual(found, code, args)
        return loads(out, parse_constant=self.fail)

    def expect(self, *rows):
        """Run each (command, exit code, words ...); the words stand in what it prints."""
        for line, code, *words in rows:
            found, out, err = run(*shlex.split(line))
            self.assertEqual(found, code, (line, err))
            for word in words:
                self.assertIn(word, out + err, line)

    def says(self, code, words, *args):
        """Assert that our command ends with a code, and that its one error has such words."""
        found, out, err = run(*args)
        self.assertEqual(found, code, (args, err))
        self.assertTrue(err.startswith("error: "), err)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, err)
        return err


@full
class CommandTest(Commands):
    def setUp(self):
        super().setUp()
        for _, title, data, _ in FILES:
            write_file(title, data)
        write_file("broken.zt", ztensor(shape=[5]))

    def test_in_a_process_of_its_own(self):
        script = os.path.join(HERE, "tensorfmt.py")
        code, out, err = run("python3", "-m", "tensorfmt", "ls", "seed_basic.mag", "absent.zt")
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertIn("seed_basic.mag: mag, 384 bytes", out)
        self.assertTrue(err.startswith("error: absent.zt: "))
        self.assertEqual(run("python3", script, "--version"), (
            0, "tensorfmt %s\n" % tensorfmt.__version__, ""))
        code, out, err = run("python3", "-I", "-S", script, "demo")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("all formats written, read back, explained and verified", out)
        for kind in FORMATS:
            self.assertIn("== " + tensorfmt.find_format(kind).TITLE, out)

    @little
    def test_a_reader_that_goes_away(self):
        from subprocess import PIPE, Popen
        tensorfmt.save("many.bpk", dict([("tensor number %d" % i, F32) for i in range(3000)]))
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
            calls += [("get", name, "\x1b"), ("get", name, "*"), ("get", name, "--stats"),
                      ("verify", "--quiet", name), ("diff", name, name), ("ls", name, "--tree")]
            calls += [("explain", name, "--html", out) for out in (name, odd + ".html", odd)]
            calls += [("convert", name, out) for out in (odd + ".zt", odd, "x.mag", odd + "/x.zt")]
            calls += [("convert", name, "x.zt", key, odd) for key in (
                "--set", "--cast", "--only", "--rename", "--meta", "--format")]
        for args in calls:
            _, out, err = run(*args)
            odd = [c for c in out + err if not (c.isprintable() or c == "\n")]
            self.assertEqual(odd, [], args)
            self.assertEqual((out + err).count("\n\u202e"), 0)
        self.assertIn("'a\\x1b[31m\\n\xe9'", self.prints("ls", "odd.zt"))

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
                (("get", path, "\xe9"), [path + ": no tensor '\xe9'"]),
                (("explain", path), shown[:3] + ["'\u65e5\u672c\\x9b'", "data " + shown[1]]),
                (("diff", path, "other.bpk"), ["- " + name for name in shown] + [
                    "~ metadata \u984c: '\u65e5\u672c\\x9b' -> '\xe9'"]),
                (("verify", "bad.zt"), ["tensor '%s': " % shown[0]]),
                (("verify", "--quiet", "bad.zt"), ["bad.zt: tensor '%s': " % shown[0]]),
                (("ls", "--partial", "cut.bpk"), ["not whole: " + shown[5]]),
                (("convert", path, "\xe9.bpk", "--only", names[0]), ["wrote \xe9.bpk"]),
                (("convert", "cut.bpk", "c.bpk", "--partial"), ["missing: " + shown[5]]),
                (("convert", path, "\xe9.primitiv"), ["\u984c", "error: "]),
                (("ls", "\xe9.zt"), ["\xe9.zt: "]))
        others = ("latin-1", "ascii") if hasattr(io.TextIOWrapper, "reconfigure") else ()  # 3.7
        for encoding in ("utf-8",) + others:
            some = rows if encoding == "utf-8" else rows[:2]
            process = Popen(program([row[0] for row in some]), stdout=PIPE, stderr=PIPE,
                            env=environment(PYTHONIOENCODING=encoding))
            out, err = [part.decode(encoding).split("\0") for part in process.communicate()]
            self.assertEqual(len(out), len(some) + 1)
            for (_, wanted), text in zip(some, [text + more for text, more in zip(out, err)]):
                for part in wanted:
                    self.assertIn(part.encode(encoding, "backslashreplace").decode(encoding), text)
                self.assertNotIn("codec", text)
        error = error_of(tensorfmt.FormatError, load, "bad.zt", verify=True)
        self.assertIn("'\\u65e5\\u672c.\\u91cd\\u307f'", str(error))  # for any log
        self.assertIn(shown[0], tensorfmt.describe(error))
        run("explain", "--html", "page.html", path)
        for page in read_file("page.html").decode("ascii"), load(path)._repr_html_():
            for name in shown:
                self.assertIn(">%s<" % name, unescape(page))

    def test_files_that_were_cut_short(self):
        tensorfmt.save("w.bpk", {"a": F32, "b\u202e": F32, "c": F32, "\u0441.w": F32})
        data = read_file("w.bpk")
        starts = sorted([item.start for item in load("w.bpk").values()])
        for end in len(data) - 1, starts[1], starts[1] + 1, starts[0] + 1:
            write_file("cut.bpk", data[:end])
            missing = load("cut.bpk", partial=True).attrs["missing"]
            self.assertEqual(len(missing), len([i for i in starts if i + F32.nbytes > end]))
            lines = self.prints("ls", "--partial", "cut.bpk").rstrip().split("\n")
            self.assertEqual(lines[-len(missing):], [
                "not whole: " + tensorfmt.safe_str(name) for name in missing])
            row, = self.json("ls", "--partial", "cut.bpk")
            self.assertEqual((row["attrs"]["missing"], len(row["tensors"])),
                             (missing, len(starts) - len(missing)))
            self.says(1, "cut.bpk: cut short:", "explain", "--html", "page.html", "cut.bpk")
            page = read_file("page.html").decode()
            error = error_of(tensorfmt.FormatError, load, "cut.bpk")
            for text in ('<a href="#0x%x">0x%x</a>' % (error.offset, error.offset), "Not whole: "):
                self.assertIn(text, page)
        self.assertEqual(self.prints("ls", "--partial", "w.bpk"), self.prints("ls", "w.bpk"))
        write_file("cut.bpk", data[:starts[1]])
        for args in ("ls", "cut.bpk"), ("convert", "cut.bpk", "x.zt"):
            self.says(1, "--partial takes the whole ones", *args)

    def test_get(self):
        for _, title, data, _ in FILES:
            for name, item in load(data).items():
                if not zstd_missing(item) and item.dtype != "qfloat" and item.size < 100:
                    wanted = tensorfmt.preview(item) + "\n"
                    self.assertEqual(self.prints("get", title, name), wanted)
        raw = self.prints("get", "param_3x2x2_stat.primitiv", "value", "--raw")
        wanted, = [row[3] for row in FILES if row[1] == "param_3x2x2_stat.primitiv"]
        self.assertEqual(tohex(raw.encode("utf-8", "surrogateescape")), wanted["value"][2])
        tensorfmt.save("g.zt", {"w": list(range(1000)), "v.a": [1.0], "v.b": [2.0, 3.0]})
        self.assertEqual(self.json("get", "g.zt", "w")["values"], list(range(1000)))
        self.assertEqual([row["name"] for row in self.json("get", "g.zt", "v.*")], ["v.a", "v.b"])
        self.expect(
            ("get g.zt w", 0, "999]\n1000 elements: --json prints all, 'NAME[:9]' a part\n"),
            ("get g.zt v.*", 0, "v.a: float64 [1]\n[1.0]\nv.b: float64 [2]\n[2.0, 3.0]\n"),
            ("get g.zt v.c", 1, "error: g.zt: ", "did you mean 'v."),
            ("get g.zt x*", 1, "error: g.zt: no tensor 'x*'"),
            ("get g.zt", 2, "needs the NAME of a tensor"),
            ("get g.zt v.* --raw", 2, "needs the NAME of a tensor"),
            ("get g.zt --raw", 2, "needs the NAME of a tensor"))

    def test_parts_of_a_tensor(self):
        item = tensor([float(i) for i in range(60)], "float32", (3, 4, 5))
        for kind in "ztensor", "safetensors":
            tensorfmt.save("p.any", {"a[0].w": item, "a": item, "s": tensor(7), "\u0441": item},
                           format=kind)
            for keys in "0", "-1, 2, 3", "0:2, ::3", "..., -1", " 1 , ... , 4:0:-2 ", "9:, 0", ":":
                wanted = eval("item[%s]" % keys)
                wanted = wanted.tolist() if hasattr(wanted, "tolist") else wanted
                for name in ("a[0].w", "a", "\u0441") if keys == "0" else ["a"]:
                    found = self.json("get", "p.any", "%s[%s]" % (name, keys))
                    self.assertEqual(found["values"], wanted)
            self.assertEqual(self.json("get", "p.any", "a[0].w")["values"], item.tolist())
            self.assertEqual(self.prints("get", "p.any", "s[...]"), "7\n")
        for name, words in (("a[3]", "index 3 is out of range for dimension 0"), ("a[x]", "[x]"),
                            ("a[]", "as in Python: [0, 2:8:2, ..., -1]"), ("a[::0]", "zero"),
                            ("a[0,0,0,0]", "3 dimensions"), ("b[0]", "no tensor 'b'"),
                            ("a[0", "no tensor 'a[0'"), ("s[0]", "0 dimensions"),
                            ("a[...,...]", "2 times"), ("a[0][1]", "no tensor 'a[0]'")):
            self.says(1, ["error: p.any: ", words], "get", "p.any", name)

    def test_statistics(self):
        model = Map([("w", tensor([1.5, -2.0, NAN, INF], "float32")), ("i", tensor([3, 1 << 62])),
                     ("e", tensor([], "int8")), ("n", tensor([NAN, NAN], "float16")),
                     ("o", tensor([1e308, 1e308])), ("b", tensor([True, False]))])
        tensorfmt.save("m.zt", model)
        wanted = [[-2.0, 1.5, -0.25, 1, 1], [3, 1 << 62, (3 + 2.0**62) / 2, 0, 0],
                  [None, None, None, 0, 0], [None, None, None, 2, 0],
                  [1e308, 1e308, "inf", 0, 0], [False, True, 0.5, 0, 0]]
        for part in (8, tensorfmt.PART):
            with Changed(tensorfmt, "PART", part):
                rows = self.json("get", "m.zt", "--stats")
            self.assertEqual([row["name"] for row in rows], list(model))
            for row, values in zip(rows, wanted):
                self.assertEqual([row[key] for key in "min max mean nan infinite".split()], values)
                self.assertEqual(self.json("get", "m.zt", row["name"], "--stats"), row)
        self.assertEqual(len(self.json("get", "m.zt", "[win]", "--stats")), 3)
        write_file("q.bpk", one_burnpack(dtype=scheme("Q8S"), shape=[4]))
        self.assertIn("cannot be read", self.json("get", "q.bpk", "--stats")[0]["error"])
        tensorfmt.save("bad.zt", {"w": F32, "x": F32})

        def damaged(item, old=tensorfmt.stats_of):
            if item.name == "w":
                raise tensorfmt.FormatError("rotten", 64)
            return old(item)
        with Changed(tensorfmt, "stats_of", damaged):
            self.expect(("get bad.zt --stats", 1, "  w (rotten)\n", "  x\n",
                         "error: rotten (at 0x40)"))
        row = {"offset": 64, "size": 16, "dtype": "float32", "shape": [4], "encoding": "raw"}
        write_file("again.zt", ztensor(*[dict(row, name=str(i)) for i in range(300)]))
        with Changed(tensorfmt, "MAX_COPIES", 0):
            self.says(1, "again and again", "get", "again.zt", "--stats")

    def test_rows_of_ls(self):
        tensorfmt.save("r.zt", [("b", [1.0]), ("a", [1.0] * 3), ("c", [1.0] * 2)])
        for args, wanted in (("", "bac"), ("--sort bytes", "acb"), ("--sort name", "abc"),
                             ("--sort offset", "bac"), ("--only a --only c", "ac"),
                             ("--sort bytes --limit 1", "a")):
            lines = self.prints("ls", "r.zt", *args.split()).split("\n")[3:3 + len(wanted)]
            self.assertEqual([line.split()[-1] for line in lines], list(wanted), args)
            row, = self.json("ls", "r.zt", *args.split())
            self.assertEqual([item["name"] for item in row["tensors"]], list(wanted))
        self.assertEqual([tensorfmt.rounded(n) for n in (999999, 514800000, 10**9)],
                         ["", " (514.8 MB)", " (1.0 GB)"])
        self.expect(("ls r.zt --limit 1", 0, "  2 more\n", "3 tensors  6 elements\n"),
                    ("ls r.zt --only x", 1, "no tensor is called 'x'"))

    def test_a_tree_of_names(self):
        model = [("model.layers.%d.%s" % (i, part), tensor([0.0] * size, dtype)) for i in range(12)
                 for part, size, dtype in (("mlp.up", 6, "float32"), ("mlp.down", 4, "float16"),
                                           ("norm", 2, "float32"))]
        tensorfmt.save("m.zt", model + [("model.embed", tensor([1], "uint8"))])

        def tree(*args):
            lines = self.prints("ls", "m.zt", *args).split("\n")[3:-2]
            self.assertLessEqual(len(lines), tensorfmt.MAX_TREE)
            return [" ".join(line.split()) for line in lines]
        self.assertEqual(tree("--tree"), [
            "288 72 12 float32 model.layers.#.mlp.up", "96 48 12 float16 model.layers.#.mlp.down",
            "96 24 12 float32 model.layers.#.norm", "1 1 1 uint8 model.embed"])
        self.assertEqual(tree("--tree", "2"), [
            "480 144 36 float32 24, float16 12 model.layers", "1 1 1 uint8 model.embed"])
        self.assertEqual(tree("--tree=1", "--limit", "0"), ["1 more"])
        row, = self.json("ls", "m.zt", "--tree=2")
        self.assertEqual(row["tree"][0], {
            "name": "model.layers", "tensors": 36, "elements": 144, "bytes": 480,
            "dtypes": {"float32": 24, "float16": 12}})
        self.assertNotIn("tensors", row)
        names = ["a.%c.%c" % (97 + i % 6, 97 + i // 6) for i in range(36)]  # 36 would be too many
        tensorfmt.save("m.zt", [(name, tensor([0], "int8")) for name in names])
        self.assertIn("6 6 6 int8 a.a", tree("--tree"))
        tensorfmt.save("t.zt", {"a": [1.0], "a.b": [2.0, 3.0], "": [1.0], ".": [2.0], "c.d": [1.0]})
        row, = self.json("ls", "--tree=9", "t.zt")
        self.assertEqual({part["name"]: part["tensors"] for part in row["tree"]},
                         {"a": 1, "a.b": 1, "": 1, ".": 1, "c.d": 1})
        self.says(2, "a FILE goes in front of options", "ls", "--tree", "t.zt")

    def test_formats_and_options_in_words(self):
        for kind in tensorfmt.FORMATS:
            out = self.prints("formats", kind.NAME)
            for name in kind.SUFFIXES:
                self.assertEqual(self.prints("formats", name), out)
            for one in [kind] + [one for one in tensorfmt.GENERATIONS if one.FAMILY == kind.NAME]:
                for name in list(one.DTYPES) + ["--set " + key for key in one.OPTIONS]:
                    self.assertIn(name, out)
                for line in (type(one).__doc__ or "").split("\n"):
                    self.assertIn(line[4:] if line[:4] == "    " else line, out)
        code, out, err = run("python3", "-OO", os.path.join(HERE, "tensorfmt.py"), "formats", "mag")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(tensorfmt.NO_DOCSTRING, out)
        self.assertIn("no format 'bpx'", run("formats", "bpx")[2])

    def test_json_is_one_document(self):
        titles = [row[1] for row in FILES] + ["broken.zt", "absent.zt"]
        for command in ("ls", "verify"):
            found = self.json(command, *titles, code=1)
            self.assertEqual([one["file"] for one in found], titles)
            self.assertEqual(set(found[-1]), {"file", "error"})
            self.assertEqual([one["format"] for one in found[:-2]], [row[0] for row in FILES])
            self.assertEqual(type(self.json(command, titles[0])), list)
        text = run("explain", "--json", "seed_basic.mag")[1]
        fields = self.json("explain", "seed_basic.mag")
        self.assertEqual([row["name"] for row in fields],
                         [field.name for field in tensorfmt.explain("seed_basic.mag")])
        self.assertEqual((text.count("\n"), fields[0]["value"]), (1, "4d414721"))
        self.assertEqual([row["format"] for row in self.json("formats")],
                         [kind.NAME for kind in tensorfmt.FORMATS])
        self.assertEqual(self.json("explain", "--from", "9999", "seed_basic.mag"), [])
        tensorfmt.save("n.mag", {"w": F32}, metadata={"n": NAN, "i": -INF})
        self.assertEqual(self.json("ls", "n.mag")[0]["metadata"], {"n": "nan", "i": "-inf"})
        most = (1 << 128) - 1
        self.assertEqual(tensorfmt.to_json([most, most + 1, b"a", (1, {1.5})]),
                         '[%d, "%s", "61", [1, "{1.5}"]]' % (most, tensorfmt.short_repr(most + 1)))

    def test_keys_of_json_are_told(self):
        text = text_of(os.path.join(HERE, ".docs", "json.md"))
        for command, inner in (("ls m012_mixed.mag", "tensors"), ("verify seed_basic.mag", "rows"),
                               ("explain seed_basic.mag", ""), ("formats", ""),
                               ("convert m012_mixed.mag new.zt --drop", ""),
                               ("diff seed_basic.mag seed_dtypes.mag", "differences")):
            found = self.json(*command.split(), code=int(command[:4] == "diff"))
            found = found if type(found) is dict else found[0]
            keys = list(found) + (list(found[inner][0]) if inner else [])
            row, = [row for row in text.split("\n") if row.startswith("| `" + command.split()[0])]
            words = "".join(row.split(" | ")[-1].split("`")[1::2])
            self.assertEqual(words.replace(" ", ""), "".join(keys))

    def test_diff_as_numpy_compares(self):
        one = {"w": tensor([1.0, 100.0, NAN, 5.0, 0.0], "float32"), "i": tensor([5, 1 << 60])}
        two = {"w": tensor([1.5, 100.5, NAN, 5.0, -0.0], "float32"), "i": tensor([5, 2**60 + 1])}
        tensorfmt.save("one.zt", one)
        tensorfmt.save("two.zt", two)
        for args, counts in ((["--atol", "0.4"], [2, 1]), ([], [2, 1]), (["--rtol", "0.01"], [1]),
                             (["--atol", "0.5"], [1]), (["--rtol", "0.4"], [])):
            found = self.json("diff", "one.zt", "two.zt", *args, code=int(bool(counts)))
            self.assertEqual([row["count"] for row in found["differences"]], counts, args)
            options = {args[0][2:]: float(args[1])} if args else {}
            again = tensorfmt.diff("one.zt", "two.zt", **options)
            self.assertEqual((tensorfmt.json_ready(again.facts()), bool(again)),
                             (found, bool(counts)))
        write_file("bad.zt", read_file("one.zt")[:-1])
        for files in ("no.zt", "one.zt"), ("one.zt", "no.zt"), ("one.zt", "bad.zt"):
            self.says(2, "error: " + (set(files) - {"one.zt"}).pop(), "diff", *files)
        for word in "-1", "nan", "inf":
            self.says(2, "from 0 on", "diff", "one.zt", "two.zt", "--atol=" + word)

    def test_diff_counts_nan_and_infinity(self):
        for x, y, odd, most in ((INF, -INF, 1, INF), (1.0, INF, 1, INF), (NAN, 1.0, 1, INF),
                                (1.0, NAN, 1, INF), (NAN, NAN, 0, None), (INF, INF, 0, None),
                                (1.0, 2.0, 0, 1.0)):
            for rtol in (0.0, 0.25):
                found = tensorfmt.diff(dumps({"w": [x, 4.0]}, format="ztensor"),
                                       dumps({"w": [y, 4.0]}, format="ztensor"), rtol=rtol)
                rows = [(row["count"], row["not_finite"], row["max_abs"], row["max_rel"])
                        for row in found.differences if "count" in row]
                ratio = INF if odd else 0.5
                self.assertEqual(rows, [(1, odd, most, ratio)] if most else [], (x, y))

    def test_diff_in_words(self):
        """(one file, another, options, the first line)"""
        def of(values, dtype=None, kind="safetensors", **options):
            return dumps({"w": tensor(values, dtype)}, format=kind, **options)
        types = [safetensors({"w": {"dtype": name, "shape": [8], "data_offsets": [0, 6]}}, bytes(6))
                 for name in ("F6_E2M3", "F6_E3M2")]
        schemes = [one_burnpack(dtype=scheme(name), shape=[4]) for name in ("Q8S", "E4M3")]
        scalars = [of([1.5], kind="burnpack", scalars={"s": {"Int": i}}) for i in range(2)]
        for one, two, args, line in (
                (of([INF]), of([1.0]), "", "~ w: 1 value changed, 1 of them from or to NaN"),
                (of([1.0, 2.0], "float32"), of([1.5, 2.0]), "--atol 0.5",
                 "~ w: float32 [2] -> float64 [2], close values"),
                (of([(1 << 53) + 1]), of([2.0**53]), "", "1 value changed, by 1.0 at most"),
                (of([2.0**-127] * 4, "float8_e8m0fnu"), of([0.0] * 4), "", "4 values changed"),
                (types[0], types[1], "", "~ w: 'F6_E2M3' [8] -> 'F6_E3M2' [8], not known to be"),
                (schemes[0], schemes[1], "", "~ a: not known to be the same"),
                (scalars[0], scalars[1], "", "~ scalar s: {'Int': 0} -> {'Int': 1}"),
                (scalars[0], of([1.5]), "", "- scalar s: {'Int': 0}")):
            write_file("one", one)
            write_file("two", two)
            self.assertEqual(run("diff", "one", "one")[0], 0)
            code, out, _ = run("diff", "one", "two", *args.split())
            self.assertEqual(code, 1)
            self.assertIn(line, out.split("\n")[0])

    def test_diff_of_shards_that_disagree(self):
        for folder, texts in ("a", "12"), ("b", "34"), ("c", "12"):
            os.mkdir(folder)
            for text in texts:
                tensorfmt.save("%s/%d.safetensors" % (folder, int(text) % 2), {
                    "t%d" % (int(text) % 2): F32}, metadata={"k": text})
            write_file(folder + "/model.safetensors.index.json", (
                '{"weight_map":{"t0":"0.safetensors","t1":"1.safetensors"}}').encode())
        self.expect(
            ("diff a b", 1, "~ metadata k: ['2', '1'] -> ['4', '3']\n2 tensors, 1 difference\n"),
            ("diff a c", 0))
        self.assertNotIn("canonical", self.prints("verify", "a"))  # nobody asked for that

    def test_convert_on_the_command_line(self):
        tensorfmt.save("m.bpk", {name: F32 for name in ("model.a", "model.b", "b.bias")},
                       metadata={"x": "1", "y": "2"})
        words = ("convert m.bpk n.bpk --rename model.*=* --rename model.b=c=d --exclude *.bias "
                 "--meta x= --meta z=a=b --meta y=3")
        found = self.json(*words.split())
        self.assertEqual((sorted(found["renamed"]), found["copied"], found["changed"]), (
            [["model.a", "a"], ["model.b", "c=d"]], ["model.a", "model.b"],
            [["x", "1", None], ["z", None, "a=b"], ["y", "2", "3"]]))
        self.assertEqual((sorted(load("n.bpk")), load("n.bpk").metadata), (
            ["a", "c=d"], {"y": "3", "z": "a=b"}))
        self.expect(
            (words, 0, "  metadata 'x': removed\n", "  metadata 'z': added: 'a=b'\n",
             "  metadata 'y': '2' -> '3'\n"),
            ("convert m.bpk n.zt --drop", 0, "  3 tensors copied, 0 cast\n"),
            ("convert m.bpk n.bpk --cast float32=bfloat16", 0,
             "cast: 3 tensors float32 -> bfloat16 (exact)"),
            ("convert m.bpk n.bpk --cast float32=bfloat16 --only b.bias", 0,
             "cast: 'b.bias' float32 -> bfloat16 (exact)"),
            ("convert m.bpk o.bpk --rename a", 2, "--rename: invalid pair value: 'a'"),
            ("convert m.bpk o.bpk --rename model.a=", 2, "a name is a str"),
            ("convert m.bpk o.bpk --rename *=x", 1, "would both be 'x'\nnothing written"),
            ("convert m.bpk o.bpk --meta q=", 1, "there is no metadata 'q'"),
            ("convert m.bpk o.bpk --set colour", 2, "--set: invalid setting value"),
            ("convert m.bpk o.bpk --format bqk", 1, "no format 'bqk'; there are mag, "),
            ("convert m.bpk o.bpk --shard 5GB", 2, "unrecognized arguments: --shard"))
        self.assertFalse(os.path.exists("o.bpk"))

    def test_all_reasons_of_a_refusal_come_at_once(self):
        """Equal ones are one line, in words of who asked."""
        import pickle
        rows = dict([("t%d" % i, tensor([1.5], "float64", user=i)) for i in range(96)],
                    half=tensor([1.0], "float16"))
        tensorfmt.save("r.zt", rows, version="0.1")
        err = self.says(1, [
            "primitiv 0.1 cannot hold\n", "\n  96 tensors: float64 (primitiv 0.1 holds float32): "
            "--cast float32\n", "\n  96 tensors: attribute 'user' has no place there: --drop\n",
            "\n  tensor 'half': float16 (primitiv 0.1 holds float32): --cast float32\n",
            "nothing written\n"], "convert", "r.zt", "r.primitiv")
        self.assertEqual(err.count("\n"), 5)
        error = error_of(ValueError, tensorfmt.convert, "r.zt", io.BytesIO(), format="primitiv")
        self.assertEqual([(len(names), key[2:]) for key, names in error.reasons.rows.items()], [
            (96, ("cast", "float32")), (1, ("cast", "float32")), (96, ("drop", True))])
        for words, known in ("cast='float32'", True), ("drop=True", True), ("--", False):
            self.assertEqual(words in str(error), known)
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
        write_file("f8", dumps({"w": tensor([1.5], "float8_e5m2")}, format="safetensors"))
        write_file("c64", safetensors({"w": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}},
                                      bytes(8)))
        tensorfmt.save("n.mag", {"w": F32}, metadata={"n": 1, "i": 2.5})
        self.expect(
            ("convert r.zt r.primitiv --cast float32 --drop", 0),
            ("convert f8 f8.bpk", 1, "): --cast bfloat16\n"),
            ("convert f8 f8.bpk --cast bfloat16", 0), ("get f8.bpk w", 0, "[1.5]"),
            ("convert n.mag n.safetensors", 1,
             "metadata 'n', 'i': safetensors holds text to text: --metadata text\n"),
            ("convert n.mag n.safetensors --metadata text", 0, "metadata as text: 'n'\n"))
        self.assertNotIn("--cast", self.says(1, ": --exclude NAME\n", "convert", "c64", "c64.bpk"))

    def test_losses_of_casts_are_told_apart(self):
        tensorfmt.save("c.zt", {"i": tensor([70000, 1]), "f": tensor([1e300, -1e300, 0.1, NAN])})
        self.expect(("convert c.zt d.zt --cast int64=float16,float64=float16", 0,
                     "cast: 'i' int64 -> float16 (rounded; 1 value became infinite)\n",
                     "cast: 'f' float64 -> float16 (rounded; 2 values became infinite)\n"))
        found = self.json("convert", "c.zt", "d.zt", "--cast", "int64=float16,float64=float32")
        self.assertEqual(found["cast"][0], ["i", "int64", "float16", False])
        self.assertEqual(found["lost"], [["i", 1, 0], ["f", 2, 0]])

    def test_a_foreign_dtype_is_quoted(self):
        for name, size, notes in ("float32", 2, 1), ("C64", 1, 0), ("f32", 2, 1), ("FLOAT", 2, 1):
            entry = {"shape": [size], "data_offsets": [0, 8], "dtype": name}
            write_file("d.safetensors", safetensors({"w": entry}, bytes(8)))
            self.assertIn("  '%s'  " % name, self.prints("ls", "d.safetensors"))
            row, = self.json("ls", "d.safetensors")[0]["tensors"]
            self.assertEqual(row["dtype"], "'%s'" % name)
            found = [row for row in tensorfmt.verify("d.safetensors").rows if row[0] == "note"
                     and "no dtype of safetensors is called %r" % name in row[3]]
            self.assertEqual(len(found), notes, found)

    def test_misuse(self):
        if sys.version_info < (3, 8):
            self.says(1, "takes Python 3.8", "vendor", "x.py", "--with", "load")
        for line in ("ls", "ls --sort colour x", "get", "ls x --limit -1", "frobnicate",
                     "convert x", "ls --lim 1 m012_mixed.mag", "explain --from -1 x"):
            self.says(2, " -h`)", *line.split())
        for line in ("ls .", "verify absent.zt", "explain absent.zt", "convert absent.zt x.mag"):
            self.says(1, "", *line.split())
        for error, text in ((OSError(28, "No space"), "x.zt: No space"), (ValueError("v"), "v"),
                            (OSError(2, "No such file", "y.zt"), "y.zt: No such file")):
            self.assertEqual(tensorfmt.describe(error, "x.zt"), text)

        def interrupt():
            raise KeyboardInterrupt
        with Changed(tensorfmt, "make_parser", interrupt):
            self.assertEqual(run("ls"), (130, "", ""))  # Ctrl-C
        self.assertIn("usage: tensorfmt.py", run("--help")[1])
        for call, _, _ in tensorfmt.COMMANDS:
            self.assertIn("usage: tensorfmt.py " + call.__name__[5:],
                          run(call.__name__[5:], "-h")[1])

    def test_odd_names_and_shapes(self):
        for name in ("-h", "--json"):
            write_file(name, golden("seed_basic.mag"))
            for command in ("verify", "ls", "explain"):
                self.expect((command + " -- " + name, 0), (command + " ./" + name, 0))
        write_file("deep", safetensors({"w": {"dtype": "U8", "shape": [9] + [1] * 64,
                                              "data_offsets": [0, 9]}}, bytes(9)))
        self.expect(("get deep w", 1, "65 dimensions are too many to be shown"),
                    ("get deep w --raw", 0, "\0" * 9))

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
        for args in ((), ("--tensor", "b"), ("--from", "0x80")):
            code, out, err = run("explain", "broken.zt", *args)
            self.assertEqual((code, out.count("<- here: "), err[:16]), (1, 1, "error: broken.zt"))
        self.says(1, "did you mean 'x'", "explain", "seed_basic.mag", "--tensor", "xx")

    def test_standard_input_and_output(self):
        source = io.TextIOWrapper(io.BytesIO(golden("seed_basic.mag")))
        for line in ("ls -", "get - x", "explain -", "diff - seed_basic.mag",
                     "diff seed_basic.mag -", "convert - new.zt --drop"):
            wanted = self.prints(*line.replace(" -", " seed_basic.mag", 1).replace(
                "seed_basic.mag-", "--").split())
            with Changed(sys, "stdin", source):
                source.seek(0)
                self.assertEqual(self.prints(*line.split()),
                                 wanted.replace("seed_basic.mag", "-", 1), line)
        wanted = self.prints("convert", "seed_basic.mag", "new.bpk", "--drop")
        for target in ("-", "/dev/stdout")[:1 + os.path.exists("/dev/stdout")]:
            code, out, err = run("python3 -m tensorfmt convert - %s --format burnpack --drop "
                                 "< seed_basic.mag > out.bpk" % target)
            self.assertEqual((code, out), (0, ""))
            self.assertEqual(err if target == "-" else "", wanted.replace(
                "new.bpk", "-") if target == "-" else "")
            self.assertEqual(read_file("out.bpk"), read_file("new.bpk"))
        code, out, err = run("explain", "seed_basic.mag", "--html", "-")
        self.assertEqual((code, out[:15], err[:8]), (0, "<!DOCTYPE html>", "wrote -,"))
        self.expect(("convert seed_basic.mag -", 1, "give --format or a suffix"),
                    ("ls https://example.org/m.zt", 1, "can pipe it into `-`"))

    def test_what_newcomers_run_into(self):
        for i in "12":
            tensorfmt.save(i + ".safetensors", {i: F32}, metadata={"format": "pt", "step": i})
        write_file("m.safetensors.index.json",
                   b'{"weight_map": {"1": "1.safetensors", "2": "2.safetensors"}}')
        write_file("m.gz", b"\x1f\x8b\x08" + bytes(9))
        self.expect(
            ("convert 1.safetensors one.bpk", 0),
            ("diff 1.safetensors one.bpk", 0),  # "pt" is not content
            ("convert one.bpk two.bpk --format zt --drop", 0), ("ls two.bpk", 0, ": zTensor"),
            ("ls m.safetensors.index.json", 0, "\nthe files do not agree on metadata 'step'\n"),
            ("ls m.gz", 1, "a gzip file", "`gzip -dc FILE | tensorfmt ls -`"))
        self.assertEqual(self.json("ls", "m.safetensors.index.json")[0]["differ"],
                         ["metadata 'step'"])
        kept = read_file("one.bpk")
        for args in ("explain", "1.safetensors", "--html", "one.bpk"), ("vendor", "one.bpk"):
            if args[0] != "vendor" or sys.version_info >= (3, 8):
                self.says(1, "one.bpk: it is a tensor file", *args)
        self.assertEqual(read_file("one.bpk"), kept)
        self.assertIn("load(gzip.open(path).read())", str(error_of(
            tensorfmt.Unsupported, load, "m.gz")))

    @unittest.skipUnless(hasattr(os, "symlink") and os.path.exists("/dev/full"), "needs Linux")
    def test_errors_name_the_file_and_the_cause(self):
        os.symlink("../blobs/gone", "gone.safetensors")
        self.expect(
            ("ls gone.safetensors", 1, "gone.safetensors: a symbolic link to ../blobs/gone, which"),
            ("convert sorted_one.tbs /dev/full --format zt", 1, "/dev/full: No space left"))

        def full_disk(number):
            raise OSError(28, "No space left on device")
        with Changed(os, "fsync", full_disk):
            self.says(1, "new.zt: No space left", "convert", "sorted_one.tbs", "new.zt")
        self.assertFalse(os.path.exists("new.zt"))

    def test_each_command_works_without_each_module(self):
        """Optional ones, as README says; none of them is needed for a plain file."""
        from subprocess import PIPE, Popen
        tensorfmt.save("p.zt", {"a.w": F32})
        tensorfmt.save("q.bpk", {"a.w": F32})
        lines = [line.split() for line in (
            "--version", "ls p.zt", "ls p.zt --tree", "get p.zt a.w", "get p.zt --stats",
            "explain p.zt", "explain p.zt --html page.html", "verify p.zt", "verify q.bpk",
            "convert p.zt o.bpk --cast float16", "diff p.zt q.bpk", "formats", "formats mag")]
        if sys.version_info >= (3, 8):  # tempfile of older ones needs hashlib itself
            lines.append(["demo"])
        modules = ("hashlib", "mmap", "numpy", "zlib", "zstandard", "compression.zstd", "xxhash",
                   "ml_dtypes", "difflib", "crc32c")
        for name in modules:
            hidden = [name, "_hashlib"] if name == "hashlib" else [name]
            process = Popen(program(lines, hidden), stdout=PIPE, stderr=PIPE, env=environment())
            out, err = [part.decode().split("\0")[:-1] for part in process.communicate()]
            self.assertEqual(len(out), len(lines))
            for words, text, error in zip(lines, out, err):
                with self.subTest(module=name, command=words):
                    self.assertEqual((text.split("\n")[-2], error), ("exit code 0", ""))

    def test_files_that_are_read_and_not_mapped(self):
        """--no-mmap is mmap=False of Python, in each command that reads files."""
        tensorfmt.save("p.zt", {"w": F32})
        opened, seen = tensorfmt.open_path, []

        def noted(path, mapped):
            seen.append(mapped)
            return opened(path, mapped)

        def ways_of(call, *args, **options):
            del seen[:]
            with Changed(tensorfmt, "open_path", noted):
                return call(*args, **options), set(seen)
        for line in ("ls p.zt", "get p.zt w", "get p.zt --stats", "explain p.zt", "verify p.zt",
                     "convert p.zt q.bpk", "diff p.zt p.zt"):
            text, ways = ways_of(self.prints, *line.split())
            self.assertEqual(ways, {True}, line)
            self.assertEqual(ways_of(self.prints, *line.split(), "--no-mmap"), (text, {False}))
        self.assertEqual(ways_of(tensorfmt.detect, "p.zt")[1], {False})
        for call in (tensorfmt.verify, lambda path, **mmap: list(tensorfmt.explain(path, **mmap)),
                     lambda path, **mmap: tensorfmt.diff(path, path, **mmap)):
            self.assertEqual(ways_of(call, "p.zt", mmap=False)[1], {False})

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
                self.assertEqual(" of 0 MB, " in err.getvalue(), kind is Terminal, line)
                self.assertEqual(err.getvalue()[-1:], "\r" if kind is Terminal else "", line)
        with Changed(sys, "stdout", Terminal()), Changed(sys, "stderr", io.StringIO()):
            self.assertEqual(tensorfmt.main(["get", "p.zt", "w", "--raw"]), 2)
        err, clock = Terminal(), iter((0, 0.5, 2.5, 3.0, 3.5))
        with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err):
            parts = tensorfmt.progress((16 << 20, 16 << 20, 1 << 20), 160 << 20, int)
            self.assertEqual(len(list(parts)), 3)
        self.assertEqual(err.getvalue(), "32 of 160 MB, 20%".join(["\r" + " " * 40 + "\r"] * 2))

    @little
    def test_in_a_zip(self):
        from shutil import copy
        from zipfile import ZipFile
        copy(os.path.join(HERE, "tensorfmt.py"), "__main__.py")
        with ZipFile("tool.pyz", "w") as archive:
            archive.write("__main__.py")
        self.assertEqual(run("python3", "tool.pyz", "--version"),
                         (0, self.prints("--version"), ""))


# What arrives instead of a model: bytes, words of the error.
ARRIVED = [
    (b"Invalid username or password.", "it is the text 'Invalid username or password.'"),
    ("\u0434\u043e\u0441\u0442\u0443\u043f".encode(), "it is the text '\u0434\u043e"),
    (b'{"error": "Repository not found"}', "it is JSON '{\"error\": \"Repository not found\"}'"),
    (bytes(5), "begins with zeros: a download that stopped?"),
    (bytes(4096), "begins with zeros: a download that stopped?"),
    (b"\xfd7zXZ\0\0\4", "an xz file: `xz -dc FILE | tensorfmt ls -`"),
    (b"BZh91AY&SY\0\0", "a bzip2 file: `bzip2 -dc FILE | tensorfmt ls -`"),
    (b"\x28\xb5\x2f\xfd\4\0", "a zstd file: `zstd -dc FILE | tensorfmt ls -`"),
    (b"model.zt".ljust(257, b"\0") + b"ustar\x0000", "a tar archive"),
    (b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    (b"\n<html><body>", "an HTML page"), (b"<?xml version='1.0'?><Error>", "XML, "),
    (b"\x08\x07\x12\x07pytorch", "ONNX"), (b"PK\3\4" + bytes(26) + b"w.npy", "an .npz archive")]


@full
class ArrivedTest(Commands):
    def test_what_arrives_instead_of_a_model_is_said_in_words(self):
        for data, words in ARRIVED:
            for tail in (b"", b"\n") if data[:1] > b" " else (b"",):
                write_file("model", data + tail)
                err = self.says(1, ["model: not a tensor file known here; ", words], "ls", "model")
                self.assertNotIn("it begins with %02x" % data[0], err)
                self.assertFalse(tensorfmt.verify("model"))
        write_file("model", b"\1\2\3")
        self.says(1, "(it begins with 01 02 03)", "ls", "model")


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
@unittest.skipUnless(sys.platform == "linux", "a terminal")
class TerminalTest(FolderCase):
    def setUp(self):
        super().setUp()
        go_to(self, self.folder)
        self.net = Map([(name, tensor(rows, "float32")) for name, rows in NET.items()])
        for kind in FORMATS:
            tensorfmt.save("net." + kind, self.net, format=kind)

    def test_demo_fits_two_screens(self):
        lines = in_terminal(80, "demo").split("\n")
        self.assertLessEqual(len(lines), 8 + 8 * len(FORMATS))
        self.assertLessEqual(max([len(line) for line in lines]), 100)

    def test_no_bytes_for_a_terminal(self):
        tensorfmt.save("net.zt", {"a": [1.0]})
        tensorfmt.save("net.mag", {"a": F32})
        for out in in_terminals(80, [("get", "net.zt", "a", "--raw"), (
                "convert", "net.mag", "-", "--format", "ztensor")]):
            self.assertIn("error: bytes are not for a terminal", out)

    def test_colours_only_where_they_are_wanted(self):
        plain = run("explain", "net.burnpack")[1]
        for env, rows in (({}, (((), True), (("--color", "never"), False))),
                          ({"NO_COLOR": "1"}, (((), False), (("--color", "always"), True)))):
            lines = [("explain", "net.burnpack") + more for more, _ in rows]
            for (more, wanted), text in zip(rows, in_terminals(100, lines, **env)):
                self.assertEqual("\033[32m" in text, wanted, (more, env))
                if wanted:
                    self.assertIn(re.sub("\033\\[[0-9;]*m", "", text).split("\nexit code")[0],
                                  plain)
        self.assertNotIn("\033", plain)
        write_file("cut", read_file("net.burnpack")[:-1])
        self.assertIn("\033[1;31m", run("explain", "--color", "always", "cut")[1])


# -- [3] pages ----------------------------------------------------------------------------------


@full
class PageTest(Commands):
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
            self.assertIn("fields in the middle are left out", text)
            self.assertEqual(text.count('<td class="at">'), 2 * tensorfmt.PAGE_ROWS)
            self.assertIn("1001 ranges of tensors, 1000 shown", text)
            text = self.page(dumps(rows, format=kind), "--tensor", "t7")
            self.assertTrue(2 < text.count('<td class="at">') < 30)
        self.assertIn("0 ranges of tensors", self.page(dumps({}, format="mag")))

    def test_every_link_leads_somewhere(self):
        for _, title, data, _ in FILES:
            text = self.page(data)
            anchors = set(re.findall('href="#(0x[0-9a-f]+)"', text))
            self.assertEqual(anchors - set(re.findall('id="(0x[0-9a-f]+)"', text)), set(), title)

    @documented
    def test_where_the_drawn_layout_is_in_this_file(self):
        net = {"w": F32, "v": F32}
        for kind, places in (("mag", "0 24 data"), ("ztensor", "0 64 index end-8"),
                             ("burnpack", "0 10 data"), ("tensorbuffers", "0 4 root end-8"),
                             ("safetensors", "0 8 data")):
            drawn = self.page(dumps(net, format=kind)).split("<pre>")[1].split("</pre>")[0]
            found = re.findall('(?m)^<a href="#(0x[0-9a-f]+)">\\1</a> +(.+?)  ', drawn)
            self.assertEqual(" ".join([label for _, label in found]), places)
            for at, label in found:
                self.assertEqual(int(at, 16), int(label) if label.isdigit() else int(at, 16))
        item = load(dumps(net, format="burnpack"))["w"]
        self.assertIn('<a href="#0x%x">0x%x</a>' % (item.offset, item.offset), self.page(
            dumps(net, format="burnpack")).split("<pre>")[1].split("</pre>")[0])

    def test_labels_of_the_strip(self):
        text = self.page(dumps({"a\u202eb": F32, "\u5c42": F32}, format="mag"))
        strip = text.split("<nav>")[1].split("</nav>")[0]
        for name in "&#x27;a\\u202eb&#x27;", "&#23618;":
            self.assertIn(">%s\n" % name, strip)

    def test_bytes_of_a_field(self):
        """Of data two lines of 16 are shown; what is not shown is counted."""
        for count, more in ((8, 0), (9, 4), (100, 368)):
            page = self.page(dumps({"w": tensor([1.0] * count, "float32")}, format="mag"))
            self.assertEqual("&#8230; %d more bytes" % more in page, more > 0)

    @little
    def test_without_docstrings(self):
        tensorfmt.save("a.zt", {"w": F32})
        script = ("-OO", "-m", "tensorfmt", "explain")
        self.assertEqual(run("python3", *script + ("--html", "b.html", "a.zt"))[0], 0)
        self.assertIn("python -OO leaves", read_file("b.html").decode())
        self.assertEqual(run("python3", *script + ("a.zt",))[1],
                         run("python3", *script[1:] + ("a.zt",))[1])
