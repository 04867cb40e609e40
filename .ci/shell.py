# SPDX-License-Identifier: MIT
"""Tests of what people see: `python3 test_tensorfmt.py` runs them, too.

    [1] commands           in this process, and through a real one
    [2] terminals          colours, progress
    [3] pages              of explain --html
"""
import io
import json
import os
import re
import sys
import unittest
from contextlib import redirect_stderr
from shlex import split as split_words
from unittest import mock

import tensorfmt
from test_tensorfmt import (
    burnpack_of_spans, Changed, check_page, documented, dumps, environment, error_of, F32,
    FILES, folder_for, go_to, HERE, INF, little, load, many_tensors, module_of, NAN, NET,
    parsers_kept, PYTHON3, read_file, run, script, tensor, TestCase, text_of, write_file)

# -- [1] commands -------------------------------------------------------------------------------

class Terminal(io.StringIO):
    def isatty(self):
        return True


class Commands(TestCase):
    """Has a folder of files, and is in it."""

    def setUp(self):
        go_to(self, folder_for(self))

    def prints(self, *args):
        """Return the stdout of our command, that ends with 0 and no message."""
        code, out, err = run(*args)
        self.assertEqual((code, err), (0, ""), args)
        return out

    def expect(self, line, code, text):
        """Run a command; assert its exit code, and that a text stands in what it prints."""
        found, out, err = run(*line.split())
        self.assertEqual((found, text in out + err), (code, True), out + err)


class CommandTest(Commands):
    def setUp(self):
        super().setUp()
        for _, title, data, _ in FILES:
            write_file(title, data)

    def test_what_helps_names_odd_tensors_alone(self):
        odd = ["-x", "w[0]*", "w[0]\x1b", "*", "q[0]", "a\nb", "a b*"]
        plain = ["-x\\", "a b", "a.b", "q0", "w0*", "w0b", "w[0]", "w[0]b", "x"]
        tensors = dict.fromkeys(odd, tensor([], "float32"))
        tensors.update(dict.fromkeys(plain, F32))
        write_file("odd.st", dumps(tensors, format="safetensors"))
        _, _, errors = run("convert", "odd.st", "odd.primitiv")
        words = split_words(errors.splitlines()[-1])
        self.prints(*words[words.index("convert"):])
        with load("odd.primitiv") as file:
            self.assertEqual(sorted(file), sorted(plain[1:] + ["_x_"]))

    def test_a_script_and_an_archive(self):
        """With `-m` it is run by lines of commands.txt."""
        from zipfile import ZipFile
        source = os.path.join(HERE, "tensorfmt.py")
        with ZipFile("tool.pyz", "w") as archive:
            archive.write(source, "__main__.py")
        for path in source, "tool.pyz":
            self.assertEqual(run("python3", path, "--version"),
                             (0, "tensorfmt %s\n" % tensorfmt.__version__, ""))
        code, out, err = run("python3", "-I", "-S", source, "demo")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("\nall others written, read back, explained", out)

    def test_names_are_escaped(self):
        tensorfmt.save("odd.zt", {"a\x1b[31m\n\u00e9": F32, " x ": F32, "": F32})
        odd = "odd" if os.name == "nt" else "o\x1b[31m\n\u202e\udcff"
        tensorfmt.save(odd + ".bpk", load("odd.zt", mmap=False), metadata={odd[:6]: odd[:6]})
        write_file(odd + ".mag", b"MAG!")
        calls = ["demo ODD", "demo ODD.bpk", "ODD", "ODD FILE", "ls FILE", "ls FILE --tree",
                 "ls FILE --ODD", "get FILE ODD", "get FILE *", "get FILE --stats", "verify FILE",
                 "verify FILE --quiet", "explain FILE", "diff FILE FILE"]
        calls += ["explain FILE --html " + out for out in ("FILE", "ODD.html", "ODD")]
        calls += ["convert FILE " + out for out in ("ODD.zt", "ODD", "x.mag", "ODD/x.zt")]
        calls += ["convert FILE x.zt --%s ODD" % option for option in (
            "set", "cast", "only", "rename", "meta", "format")]
        check_text = script(self, "fuzz.py")["check_text"]
        for name in ("odd.zt", odd + ".bpk", odd + ".mag", odd + ".absent", odd):
            for line in calls:
                _, out, err = run(*[word.replace("ODD", odd).replace("FILE", name)
                                    for word in line.split()])
                check_text(out + err)
                self.assertEqual((out + err).count("\n\u202e"), 0, line)
        self.assertIn("'a\\x1b[31m\\n\xe9'", self.prints("ls", "odd.zt"))

    @little
    @unittest.skipUnless(hasattr(io.TextIOWrapper, "reconfigure"), "of Python 3.7")
    def test_letters_that_the_output_does_not_have(self):
        path = "\u65e5\u672c.bpk"
        names = ["\u65e5\u672c.\u91cd\u307f", "gr\xf6\xdfe", "a\u202eb", " \xe9 ", "\u2028\xe9"]
        tensorfmt.save(path, [(name, [1.0]) for name in names], metadata={"\u984c": "\xe9"})
        for words, wanted in ((("ls", path), path + ": "),
                              (("get", path, "\xe9"), path + ": no tensor '\xe9'"),
                              (("convert", path, "\xe9.bpk"), "wrote \xe9.bpk")):
            shown = "".join(run(*words)[1:])  # in UTF-8
            self.assertIn(wanted, shown)
            for encoding in ("latin-1", "ascii"):
                out, err = [io.TextIOWrapper(io.BytesIO(), encoding, newline="\n") for _ in "oe"]
                with Changed(sys, "stdout", out), Changed(sys, "stderr", err):
                    tensorfmt.main(words)
                for stream in out, err:
                    stream.flush()
                text = (out.buffer.getvalue() + err.buffer.getvalue()).decode(encoding)
                self.assertEqual(text, shown.encode(encoding, "backslashreplace").decode(encoding))

    def test_statistics_of_parts_and_of_the_same_bytes(self):
        tensorfmt.save("m.zt", {"w": tensor([1.5, -2.0, NAN, 7.0, INF, 0.5], "float32")})
        whole = self.prints("get", "m.zt", "--stats")
        with Changed(tensorfmt, "PART", 8):
            self.assertEqual(self.prints("get", "m.zt", "--stats"), whole)
        write_file("again.bpk", burnpack_of_spans([(0, 16)] * 300, bytes(16)))
        with Changed(tensorfmt, "MAX_COPIES", 0):
            self.expect("get again.bpk --stats", 1, "over MAX_COPIES = 0 times that")

    def test_keys_of_json_are_told(self):
        text = text_of(os.path.join(HERE, ".docs", "json.md"))
        for line, inner in (("ls m012_mixed.mag", "tensors"), ("verify seed_basic.mag", "rows"),
                            ("explain seed_basic.mag", ""), ("formats", ""),
                            ("convert m012_mixed.mag new.zt --drop", ""),
                            ("diff seed_basic.mag m012_dtypes.mag", "differences")):
            found = json.loads(run(*line.split(), "--json")[1])
            found = found if type(found) is dict else found[0]
            keys = list(found) + (list(found[inner][0]) if inner else [])
            row, = [row for row in text.split("\n") if row.startswith("| `" + line.split()[0])]
            words = "".join(row.split(" | ")[-1].split("`")[1::2])
            self.assertEqual(words.replace(" ", ""), "".join(keys))
        self.assertEqual(found, tensorfmt.json_ready(tensorfmt.diff(*line.split()[1:]).facts()))

    def test_an_old_python(self):
        with Changed(sys, "version_info", (3, 7)):
            self.expect("vendor x.py --with load", 1, "takes Python 3.8")

    def test_large_numbers(self):
        self.assertEqual([tensorfmt.rounded(n) for n in (999999, 514800000, 10**9)],
                         ["", " (514.8 MB)", " (1.0 GB)"])
        most = (1 << 128) - 1
        self.assertEqual(tensorfmt.to_json([most, most + 1, b"a", (1, {1.5})]),
                         '[%d, "%s", "61", [1, "{1.5}"]]' % (most, tensorfmt.short_repr(most + 1)))

    def test_standard_output(self):
        """Standard input is that of lines with `<` in commands.txt."""
        wanted = self.prints("convert", "seed_basic.mag", "new.bpk", "--drop")
        for target in ("-", "/dev/stdout")[:1 + os.path.exists("/dev/stdout")]:
            code, out, err = run("python3 -m tensorfmt convert - %s --format burnpack --drop "
                                 "< seed_basic.mag > out.bpk" % target)
            self.assertEqual((code, out), (0, ""))
            if target == "-":
                self.assertEqual(err, wanted.replace("new.bpk", "-"))
            self.assertEqual(read_file("out.bpk"), read_file("new.bpk"))
        code, out, err = run("explain", "seed_basic.mag", "--html", "-")
        self.assertEqual((code, out[:15], err[:8]), (0, "<!DOCTYPE html>", "wrote -,"))

    def test_each_command_works_without_each_module(self):
        """Optional ones, as README says; none of them is needed for a plain file."""
        tensorfmt.save("p.zt", {"a.w": F32})
        tensorfmt.save("q.bpk", {"a.w": F32})
        lines = (
            "ls p.zt", "ls p.zt --tree", "get p.zt a.w", "get p.zt --stats", "explain p.zt",
            "explain p.zt --html page.html", "verify p.zt", "verify q.bpk", "diff p.zt q.bpk",
            "convert p.zt o.bpk --cast float16", "formats", "formats mag", "demo made", "--version")
        for names in ("hashlib _hashlib", "mmap", "numpy", "zlib", "zstandard", "compression.zstd",
                      "xxhash", "ml_dtypes", "difflib", "crc32c"):
            with mock.patch.dict(sys.modules, dict.fromkeys(names.split())):
                for line in lines:
                    with self.subTest(modules=names, command=line):
                        self.prints(*line.split())

    def test_a_copy_that_is_made_without_hashlib(self):
        """It has no checksum, so nobody can tell that it was not edited."""
        with mock.patch.dict(sys.modules, hashlib=None):
            self.expect("vendor copy.py", 0, "wrote copy.py")
            self.expect("vendor copy.py", 1, "not a copy as vendor wrote it (edited since?)")
            self.expect("vendor copy.py --check", 1, "to check a copy takes the module hashlib")
        self.expect("vendor copy.py", 1, "not a copy as vendor wrote it (edited since?)")
        self.assertEqual(read_file("copy.py").count(b"# unknown: this Python has no hashlib\n"), 2)
        self.assertEqual(module_of(read_file("copy.py").decode()).crc32c(b""), 0)

    def test_files_that_are_read_and_not_mapped(self):
        """--no-mmap is mmap=False of Python, in each command that reads files."""
        tensorfmt.save("p.zt", {"w": F32})

        def ways_of(call, *args, **options):
            with Changed(tensorfmt, "open_path", wraps=tensorfmt.open_path) as opened:
                return call(*args, **options), {row[0][1] for row in opened.call_args_list}
        for line in ("ls p.zt", "get p.zt w", "get p.zt --stats", "explain p.zt", "verify p.zt",
                     "convert p.zt q.bpk", "diff p.zt p.zt"):
            text, ways = ways_of(self.prints, *line.split())
            self.assertEqual(ways, {True}, line)
            self.assertEqual(ways_of(self.prints, *line.split(), "--no-mmap"), (text, {False}))
        self.assertEqual(ways_of(tensorfmt.detect, "p.zt")[1], {False})
        for call in (tensorfmt.verify, lambda path, **mmap: list(tensorfmt.explain(path, **mmap)),
                     lambda path, **mmap: tensorfmt.diff(path, path, **mmap)):
            self.assertEqual(ways_of(call, "p.zt", mmap=False)[1], {False})


# What one format or another cannot hold.
RICH = {
    "double": tensor([1.5, 2.5]), "few": tensor([1, -2]), "many": tensor([1 << 40, -5]),
    "large": tensor([1 << 63], "uint64"), "half": tensor([1.0], "bfloat16"),
    "bool": tensor([True]), "byte": tensor([1.0], "float8_e4m3fn"), "": F32, "a=b": F32,
    "none": tensor([], "float32", (0, 2)), "deep": tensor([1.0], "float32", (1,) * 8),
    "x*y": tensor([1.0]), "new\nline": tensor([1.0]), "nul\0": F32, "it's": tensor([1], "int8"),
    "sparse": tensor(shape=(3, 5), components={"values": [1.0], "coords": [[0, 1]]}),
    "custom": tensor([1.0], "float32", custom={"note": "x"}), "__metadata__": F32,
    "double.part": F32}  # in primitiv it cannot be beside "double"
TEXTS = {"format": "pt", "author": "me", "n": 3, "deep": {"a": [1]}, "none": None, "k\0": "v"}


def rich_files():
    """Return (title, file) of each generation that is written, with all that it can hold."""
    files = []
    for fmt in tensorfmt.FORMATS + tensorfmt.GENERATIONS:
        if fmt.READ_ONLY:
            continue
        items = [pair for pair in RICH.items() if not fmt.problems([pair], {})]
        pairs = TEXTS.items()
        metadata = {key: value for key, value in pairs if not fmt.metadata_problem(key, value)}
        options = {"version": fmt.VERSION} if fmt.VERSION else {}
        if fmt.no_metadata({}):
            metadata = {}
        files.append((fmt.NAME, dumps(items, format=fmt.FAMILY, metadata=metadata, **options)))
    return files


class RemedyTest(Commands):
    """An error of convert ends with a command that writes the file."""

    TARGETS = ("t.mag", "t.mag --set version=300", "t.zt", "t.zt --set version=2", "t.primitiv",
               "t.bpk", "t.tbs", "t.safetensors")

    # Of these nothing is left that .mag 300 could hold: the error ends with that.
    EMPTY = "shape_batch5.primitiv", "head_quant.bpk"
    NOTHING = ("with all of that: mag 300 cannot hold 0 bytes of data; "
               "version=1 (--set version=1) can\nnothing")

    def test_the_command_works_as_it_stands(self):
        seen, empty = set(), set()
        files = rich_files() + [row[1:3] for row in FILES]
        with parsers_kept():
            for title, data in files:
                write_file(title, data)
                for target in self.TARGETS:
                    code, _, err = run("convert", title, *target.split())
                    if self.NOTHING in err:
                        empty.add(title)
                    elif code and "cannot hold\n" in err:
                        with self.subTest(source=title, target=target):
                            seen.update(self.run_last_line(err))
        self.assertEqual(empty, set(self.EMPTY))
        self.assertEqual(seen, set(
            "--set --cast --dense --drop --metadata --exclude --rename".split()))

    def run_last_line(self, err):
        """Run the command that an error ends with; return the options that it has."""
        words = split_words(err.splitlines()[-1])
        self.assertEqual(words[:3], ["python3", "tensorfmt.py", "convert"], err)
        code, _, again = run(*words[2:])
        if "zstd data need" not in again:
            self.assertEqual(code, 0, again)
        return [word for word in words if word.startswith("--")]

    def test_names_that_cannot_be_typed_are_renamed(self):
        """By a pattern; only where others have it, too, a tensor is left out."""
        names = ["a=b", "c\nd", "x" * 450]
        both = names + [name + ".u" for name in names]
        for more, options in ([], ["--rename"] * 3), (["a-b.u"], ["--exclude"] + ["--rename"] * 2):
            tensorfmt.save("m.zt", dict.fromkeys(both + more, F32))
            _, _, err = run("convert", "m.zt", "t.primitiv")
            self.assertEqual(sorted(self.run_last_line(err)), options)
            with load("t.primitiv") as file:
                self.assertEqual(len(file), 6)


class AloneTest(Commands):
    """What says so without the hidden folders; that the tests pass there, a leg of .ci/run sees."""

    def test_tools_say_what_they_lack(self):
        from shutil import copy
        for name in "tensorfmt.py", "test_tensorfmt.py":
            copy(os.path.join(HERE, name), name)
        for line, lacks in (("bench", "bench"), ("bench --quick", "bench"), ("fuzz", "fuzz"),
                            ("fuzz 1 2", "fuzz"), ("corpus made", "corpus"), ("corpus", "corpus"),
                            ("--accept", "texts"), ("--accept TextsTest", "texts")):
            code, out, err = run("python3", "test_tensorfmt.py", *line.split())
            with self.subTest(command=line):
                self.assertEqual((code, out), (1, ""))
                needs = "error: %s needs .ci/%s.py, which" % (line.split()[0], lacks)
                self.assertEqual(err, needs + " is not beside this file: the repository has it, in "
                                 "a hidden folder\n")
        os.mkdir(".ci")
        write_file(os.path.join(".ci", "bench.py"), b"import absent.part")
        self.assertEqual(run("python3", "test_tensorfmt.py", "bench"), (
            1, "", "error: bench needs the module absent: pip install absent\n"))


# Every command, and what argparse prints: 0 if all is well, 1 if a file is bad, files differ or a
# name is unknown, 2 if the arguments are wrong or diff cannot read a file.
EXIT_CODES = (
    (0, "ls m.zt; get m.zt w; get m.zt --stats; explain m.zt; explain m.zt --html o.html"),
    (0, "verify m.zt; verify --quiet m.zt; convert m.zt o.bpk; diff m.zt m.zt; vendor o.py"),
    (0, "formats; formats mag; demo; demo made; ; -h; ls -h; --version"),
    (1, "ls absent.zt; ls bad.zt; get m.zt x; explain bad.zt; diff m.zt n.zt; formats gguf"),
    (1, "verify m.zt bad.zt; verify bad.zt --json; convert bad.zt o.bpk"),
    (1, "convert m.zt o.mag --only x"),
    (2, "get m.zt; ls; ls m.zt --colour; convert m.zt; list"),
    (2, "diff m.zt absent.zt; diff bad.zt m.zt"))


class StreamsTest(Commands):
    """Standard streams that are closed, full, or nobody reads any more."""

    BYTES = ("get m.zt w --raw", "explain m.zt --html -", "convert m.zt - --format mag")

    def setUp(self):
        """Write a file, one with other values and one that is cut short."""
        super().setUp()
        tensorfmt.save("m.zt", {"w": F32})
        tensorfmt.save("n.zt", {"w": tensor([2.5], "float32")})
        write_file("bad.zt", read_file("m.zt")[:-1])

    def code_of(self, line, out, err):
        """Return the exit code of a command in this process, with these streams."""
        with Changed(sys, "stdout", out), Changed(sys, "stderr", err):
            try:
                return tensorfmt.main(line.split())
            except SystemExit as stop:  # help, the version
                return stop.code
            finally:
                self.assertEqual((sys.stdout, sys.stderr), (out, err))

    def test_exit_codes(self):
        """Without streams, None as in pythonw or closed, they tell of the work as with them."""
        closed = io.StringIO()
        closed.close()
        for code, text in EXIT_CODES + ((1, "; ".join(self.BYTES)),):
            for line in text.split("; "):
                self.check_code(code, line, io.StringIO(), io.StringIO())
                self.check_code(code, line, io.StringIO(), None)
                self.check_code(code, line, None, io.StringIO())
                self.check_code(code, line, None, None)
                self.check_code(code, line, closed, closed)
        for stdin in None, closed:
            with Changed(sys, "stdin", stdin):
                self.expect("ls -", 1, "standard input is closed")
                self.expect("diff m.zt -", 2, "standard input is closed")

    def check_code(self, code, line, out, err):
        with self.subTest(command=line, out=out, err=err):
            self.assertEqual(self.code_of(line, out, err), code)
            if out and not out.closed:
                self.assertNotIn("error: ", out.getvalue())
            if err and not err.closed and code == 2:
                self.assertIn("error: ", err.getvalue())
            if err and not err.closed and line in self.BYTES:
                self.assertIn("standard output is closed", err.getvalue())

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs Linux")
    def test_streams_of_processes(self):
        """Rows: exit code, what is printed to one that is open, the line of a shell."""
        full = "standard output: No space left on device"
        rows = (
            (0, "", "ls m.zt >&-"), (0, "", "ls m.zt >&- 2>&-"), (1, "", "verify bad.zt >&-"),
            (1, "", "ls absent.zt 2>&-"), (0, "", "convert m.zt o.bpk >&- 2>&- <&-"),
            (1, "standard output is closed", "convert m.zt - --format mag >&-"),
            (1, "standard input is closed", "ls - <&-"), (1, "", "ls - <&- 2>&-"),
            (1, full, "ls m.zt > /dev/full"), (1, full, "get m.zt w --raw > /dev/full"),
            (1, full, "verify m.zt bad.zt > /dev/full"), (1, full, "-h > /dev/full"),
            (1, full, "--version > /dev/full"), (1, full, "demo > /dev/full"),
            (1, full + "; a part may be written to -", "convert m.zt - --format mag > /dev/full"),
            (1, full + ", but p.bpk is written", "convert m.zt p.bpk > /dev/full"),
            (1, "/dev/full: No space left", "convert m.zt /dev/full --format mag"),
            (1, "", "ls absent.zt 2> /dev/full"), (2, "", "list 2> /dev/full"),
            (0, "wrote q.bpk", "convert m.zt q.bpk 2> /dev/full"),
            (1, "", "ls absent.zt > /dev/full 2>&1"))
        for code, text, line in rows:
            with self.subTest(command=line):
                found, out, err = run("python3 -m tensorfmt " + line)
                self.assertEqual(found, code, out + err)
                self.assertIn(text, out + err)
                self.assertEqual(bool(text), bool(out + err), out + err)
                for word in ("Traceback", "Exception ignored"):
                    self.assertNotIn(word, err)
        self.assertEqual(list(load("o.bpk")), ["w"])
        write_file("many.bpk", dumps(many_tensors(3000), format="burnpack"))
        self.assertEqual(run("python3 -m tensorfmt ls many.bpk | head -n 1")[::2], (0, ""))
        run("python3 -m tensorfmt convert m.zt /dev/stdout --no-mmap --format mag >&-")
        self.assertEqual(tensorfmt.detect("m.zt"), "ztensor")  # whose descriptor could be 1

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes")
    def test_who_reads_goes_away(self):
        """Of printed text that is no error; of a file that it should have got it is."""
        lost = "error: standard output: Broken pipe; a part may be written to -"
        for code, line, text in ((0, "ls m.zt", ""), (0, "get m.zt w --raw", ""),
                                 (1, "convert m.zt - --format mag", lost),
                                 (0, "convert m.zt o.mag", "")):
            ends = os.pipe()
            os.close(ends[0])
            with open(ends[1], "w") as out, redirect_stderr(io.StringIO()) as err:
                self.assertEqual((self.code_of(line, out, err), line), (code, line))
            self.assertEqual(err.getvalue().rstrip("\n"), text)


@unittest.skipUnless(hasattr(os, "kill") and os.name != "nt", "no signals")
class SignalTest(Commands):
    """What timeout, docker stop, systemd, a closed terminal and Ctrl-C do to a command."""

    # A process that says "ready" where `place` is done, then waits.
    PROCESS = """if 1:
        import os, signal, sys, time
        import tensorfmt
        owner, name, ignored = sys.argv[1:4]
        owner = sys.modules[owner]
        usual = getattr(owner, name)
        # nohup, for one, has started the tests with signals ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for word in ignored.split():
            signal.signal(getattr(signal, word), signal.SIG_IGN)

        def wait(*args, **options):
            result = usual(*args, **options)
            os.write(2, b"ready\\n")
            time.sleep(60)
            return result
        setattr(owner, name, wait)
        sys.argv[:4] = ["tensorfmt"]
        sys.exit(tensorfmt.main())
    """

    def stop(self, line, place, *signals, ignored=""):
        """Send signals to a command when it is at a place; return (exit code, what it said)."""
        from subprocess import PIPE, Popen
        code = PYTHON3 + ["-c", self.PROCESS] + place.split(".") + [ignored] + line.split()
        with Popen(code, stdout=PIPE, stderr=PIPE, env=environment()) as process:
            self.assertEqual(process.stderr.readline(), b"ready\n")
            for number in signals:
                process.send_signal(number)
            _, err = process.communicate()
        return process.returncode, err.decode()

    def setUp(self):
        super().setUp()
        tensorfmt.save("m.zt", {"w": F32})

    def test_signals_end_a_command_and_leave_nothing(self):
        from signal import SIGHUP, SIGINT, SIGTERM
        write_file("old.bpk", b"old")
        os.mkfifo("pipe.bpk")
        reader = os.open("pipe.bpk", os.O_RDWR)
        self.addCleanup(os.close, reader)
        for line, place, number, text in (
                ("convert m.zt new.bpk", "write_all", SIGTERM, ", nothing written"),
                ("convert m.zt new.bpk", "write_all", SIGHUP, ", nothing written"),
                ("convert m.zt new.bpk", "write_all", SIGINT, ", nothing written"),
                ("convert m.zt old.bpk", "write_all", SIGTERM, ", nothing written"),
                ("vendor new.py", "write_all", SIGTERM, ", nothing written"),
                ("explain m.zt --html new.html", "write_all", SIGHUP, ", nothing written"),
                ("convert m.zt - --format mag", "write_all", SIGTERM,
                 "; a part may be written to -"),
                ("convert m.zt pipe.bpk", "write_all", SIGTERM,
                 "; a part may be written to pipe.bpk"),
                ("ls m.zt", "load", SIGTERM, ""),
                ("verify m.zt", "verify", SIGHUP, "")):
            with self.subTest(command=line, signal=number):
                found = self.stop(line, "tensorfmt." + place, number)
                self.assertEqual(found, (128 + number, "interrupted%s\n" % text))
                self.assertEqual(sorted(os.listdir(".")), ["m.zt", "old.bpk", "pipe.bpk"])
                self.assertEqual(read_file("old.bpk"), b"old")
        code, text = self.stop("convert m.zt done.bpk", "os.replace", SIGTERM)
        self.assertEqual((code, text), (143, "interrupted, but done.bpk is written\n"))
        self.assertEqual(list(load("done.bpk")), ["w"])

    def test_two_signals_and_one_that_is_ignored(self):
        from signal import SIGHUP, SIGTERM
        for signals, ignored, codes in (((SIGTERM, SIGHUP), "", (143, 129)),
                                        ((SIGHUP, SIGTERM), "SIGHUP", (143,)),
                                        ((SIGTERM, SIGHUP), "SIGTERM", (129,))):
            code, text = self.stop("convert m.zt o.bpk", "tensorfmt.write_all", *signals,
                                   ignored=ignored)
            if code < 0:  # the second one came when all was done; a shell says it so
                code = 128 - code
            self.assertIn(code, codes)
            self.assertEqual(text, "interrupted, nothing written\n")
            self.assertEqual(os.listdir("."), ["m.zt"])

    def test_handlers_are_those_of_the_program_again(self):
        """In a program that has arguments of its own they never change."""
        import signal
        names = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
        before = [signal.getsignal(name) for name in names]
        seen = []

        def look():
            seen.append([signal.getsignal(name) for name in names])
            raise KeyboardInterrupt
        with Changed(tensorfmt, "make_parser", look), redirect_stderr(io.StringIO()):
            for argv in ["ls"], None:
                self.assertEqual(tensorfmt.main(argv), 130)
                self.assertEqual([signal.getsignal(name) for name in names], before)
        self.assertEqual(seen[0], before)
        for handler, usual in zip(seen[1], before):
            known = usual in (signal.SIG_DFL, signal.default_int_handler)
            self.assertEqual(handler == usual, not known)


# -- [2] terminals ------------------------------------------------------------------------------


class TerminalTest(Commands):
    def test_colours_only_where_they_are_wanted(self):
        tensorfmt.save("net.bpk", NET)
        plain = self.prints("explain", "net.bpk")
        for never, args, wanted in (("", (), True), ("", ("--color", "never"), False),
                                    ("1", (), False), ("1", ("--color", "always"), True)):
            shown = self.terminal("explain", "net.bpk", *args, COLUMNS="200", NO_COLOR=never)
            self.assertEqual("\033[32m" in shown, wanted, (never, args))
            self.assertEqual(re.sub("\033\\[[0-9;]*m", "", shown), plain)
        self.assertNotIn("\033", plain)
        write_file("cut", read_file("net.bpk")[:-1])
        self.assertIn("\033[1;31m", run("explain", "--color", "always", "cut")[1])

    def terminal(self, *words, **variables):
        """Return what a command prints on a terminal, with these variables of the environment."""
        out, env = Terminal(), dict(os.environ, **variables)
        with Changed(sys, "stdout", out), Changed(os, "environ", env):
            self.assertEqual(tensorfmt.main(words), 0)
        return out.getvalue()

    def columns(self, line, width):
        """Return the lines that a command prints on a terminal of so many columns."""
        return self.terminal(*line.split(), COLUMNS=str(width), NO_COLOR="1").split("\n")

    def test_a_line_is_as_wide_as_the_terminal(self):
        """Of ls, explain and get --stats; in a pipe nothing is cut."""
        long = "model.decoder.layers.%d.self_attention.query_key_value.dense_with_bias.weight"
        tensorfmt.save("m.zt", dict([(long % i, F32) for i in range(12)]))
        for line, most in ("ls m.zt", 117), ("explain m.zt", 184), ("get m.zt --stats", 137):
            whole = self.prints(*line.split())
            self.assertEqual(max(map(len, whole.split("\n"))), most)
            for width in 80, 110, 140:
                lines = self.columns(line, width)
                self.assertEqual(max(map(len, lines)), min(width, most))
                self.assertEqual(len(lines), whole.count("\n") + 1)
            self.assertEqual("\n".join(self.columns(line, 999)), whole)
        row = self.columns("ls m.zt", 80)[3]
        self.assertEqual(row, "    4      64  float32     [1]          "
                              "model.decoder.laye...se_with_bias.weight")
        rows = self.columns("explain m.zt", 80)
        self.assertIn(
            "0x8     00 00 00 ..  padding         56 bytes         to a multiple of 64", rows)
        self.assertIn("0x40    00 00 c0 3f  data model.decoder....se_with_bias.weight  "
                      "float32 [1]  1.5", rows)

    def test_letters_of_two_columns_and_of_none(self):
        tensorfmt.save("w.bpk", {"\u91cd\u307f": F32, "e\u0301": F32, "\u65e5" * 40: F32})
        text = "\n".join(self.columns("explain w.bpk", 80))
        for name, blanks in ("\u91cd\u307f", 11), ("e\u0301", 14), ("..." + "\u65e5" * 11, 2):
            self.assertIn(name + " " * blanks + "float32", text)

    def test_names_of_fields_are_not_cut_for_their_meaning(self):
        cube = tensor([1.5], "float32", (1, 1, 1))
        tensorfmt.save("two.bpk", {"layer.a": cube, "layer.b": cube})
        self.assertIn("0x5e    .. 82 19 ..        data_offsets  [256, 260]   "
                      "bytes from ...nd) -> 0x200", self.columns("explain two.bpk", 80))
        tensorfmt.save("two.zt", {"w": cube}, version=2)
        row = [line for line in self.columns("explain two.zt", 80) if "digest" in line][0]
        self.assertIn("       digest  'xxh3:", row)

    def test_progress(self):
        import time
        tensorfmt.save("p.zt", {"w": F32}, checksum="crc32c")
        for line in ("verify p.zt", "get p.zt w --stats", "get p.zt w --raw", "diff p.zt p.zt",
                     "convert p.zt q.zt"):
            for kind in (Terminal, io.StringIO):
                out, err, clock = io.TextIOWrapper(io.BytesIO()), kind(), iter(range(0, 200, 2))
                with Changed(time, "time", clock.__next__), Changed(sys, "stderr", err), Changed(
                        sys, "stdout", out):
                    self.assertEqual(tensorfmt.main(line.split()), 0)
                self.assertEqual(" of 0.0 MB, " in err.getvalue(), kind is Terminal, line)
                self.assertEqual(err.getvalue()[-1:], "\r" if kind is Terminal else "", line)
        for line in "get p.zt w --raw", "convert p.zt - --format zt":
            with Changed(sys, "stdout", Terminal()), Changed(sys, "stderr", io.StringIO()):
                self.assertEqual(tensorfmt.main(line.split()), 2)

    def progress(self, *times):
        """Return a Progress for which it is so late each time that it looks, and its terminal."""
        err, clock = Terminal(), mock.Mock(side_effect=times)
        changed = Changed(tensorfmt.Progress, "now", clock)
        changed.start()
        self.addCleanup(changed.stop)
        return tensorfmt.Progress(tensorfmt.Output(err, False)), err

    def test_a_meter_tells_of_each_pass(self):
        progress, err = self.progress(0, 0.5, 2.5, 3.0, 10, 12)
        for done in 16, 32, 33:
            progress("writing", done * 10 ** 6, 160 * 10 ** 6)
        text = "writing: 32 of 160 MB, 20%, 8.0 MB/s, 0:16 left"
        self.assertEqual(err.getvalue(), "\r" + text)
        for done in 1, 2:  # another pass, though its verb is the same
            progress("writing", done * 10 ** 5, 10 ** 6)
        self.assertIn("\rwriting: 0.2 of 1.0 MB, 20%, 0.1 MB/s, 0:16 left", err.getvalue())
        progress.stop()
        self.assertEqual(err.getvalue().split("\r")[-2:], [" " * 48, ""])
        progress.show("too late")
        self.assertEqual(err.getvalue()[-1:], "\r")

    def test_it_tells_the_time_where_nobody_calls(self):
        progress, err = self.progress(0, 0.9, 61, 62, 62.5, 63.5)
        progress.end = mock.Mock(acquire=mock.Mock(side_effect=[False, False, True] * 2))
        progress.tick()
        self.assertEqual(err.getvalue(), "\rreading, 1:01")
        progress("writing", 10 ** 6, 10 ** 6)
        progress.tick()  # that is 0.5 and 1.5 seconds later
        self.assertEqual(err.getvalue().split("\r")[-1], "writing: 1.0 of 1.0 MB, 100%, 1:04")

    def test_a_meter_fits_into_its_line(self):
        progress, err = self.progress(0)
        with Changed(os, "environ", dict(os.environ, COLUMNS="30")):
            progress.show("writing: 32 of 160 MB, 20%, 8.0 MB/s, 0:16 left")
        self.assertEqual(err.getvalue(), "\rwriting: 32 of 160 MB, 20%, 8")

    def test_what_is_printed_stands_above_the_meter(self):
        progress, err = self.progress(*range(9))
        out = tensorfmt.Output(err, True)
        out.progress = progress
        progress("reading", 1, 2)
        print("a row", file=out)
        progress("reading", 2, 2)
        first, blanks, row, second = err.getvalue().split("\r")[1:]
        self.assertEqual((blanks.strip(), len(blanks), row), ("", len(first), "a row\n"))
        self.assertIn("reading: 0.0 of 0.0 MB, 50%", first)
        self.assertIn("reading: 0.0 of 0.0 MB, 100%", second)
        print("half a row", end="", file=out)
        progress.show("not in it")
        self.assertEqual(err.getvalue()[-10:], "half a row")

    def test_a_pager_is_not_disturbed(self):
        progress, err = self.progress(*range(9))
        read, write = os.pipe()
        with open(read), open(write, "w") as pipe, Changed(
                sys, "stdout", tensorfmt.Output(pipe, True)), Changed(
                sys, "stderr", progress.output), Changed(
                tensorfmt, "Progress", return_value=progress):
            self.assertIs(tensorfmt.start_progress(), progress)
            progress("reading", 1, 2)
            print("a row")
            progress("reading", 2, 2)
            progress.stop()
        self.assertIn("50%", err.getvalue())
        self.assertNotIn("100%", err.getvalue())
        self.assertEqual(err.getvalue()[-1:], "\r")

    def test_statistics_come_row_by_row(self):
        write_file("p.zt", dumps({"a": [1.5], "b": [-2.0, 4.0]}, format="ztensor"))
        usual = tensorfmt.stats_of

        def stats_of(item, meter):
            print("before", item.name)
            return usual(item, meter)
        with Changed(tensorfmt, "stats_of", stats_of):
            out = self.prints("get", "p.zt", "--stats")
        self.assertEqual([line.split() for line in out.splitlines()], [
            ["before", "a"], ["min", "max", "mean", "nan", "infinite", "name"],
            ["1.5", "1.5", "1.5", "0", "0", "a"],
            ["before", "b"], ["-2", "4", "1", "0", "0", "b"]])


# -- [3] pages ----------------------------------------------------------------------------------


class PageTest(Commands):
    def page(self, data, *args, code=0):
        write_file("file", data)
        self.assertEqual(run("explain", "--html", "page.html", "file", *args)[0], code)
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

    def test_every_link_leads_to_one_place(self):
        for _, title, data, _ in FILES:
            text = self.page(data)
            places = re.findall('id="(0x[0-9a-f]+)"', text)
            self.assertEqual(len(places), len(set(places)), title)
            self.assertTrue(set(re.findall('href="#(0x[0-9a-f]+)"', text)).issubset(places), title)

    def test_a_file_that_was_cut_short(self):
        data = dumps(NET, format="burnpack")[:-1]
        page, fault = self.page(data, code=1), error_of(tensorfmt.FormatError, load, data)
        for text in ('<p class="banner fault"><b>This file is broken: ', "(--partial) takes",
                     '<a href="#0x%x">0x%x</a>' % (fault.offset, fault.offset), "it is not whole"):
            self.assertIn(text, page)
        write_file("file", dumps(NET, format="burnpack"))  # behind its end are no fields
        self.prints("explain", "--html", "page.html", "file", "--from", "999999999")

    @documented
    def test_where_the_drawn_layout_is_in_this_file(self):
        net = {"w": F32, "v": F32}
        for kind, places in (("mag", "0 24 data"), ("ztensor", "0 64 index end-8"),
                             ("burnpack", "0 10 data"), ("tensorbuffers", "0 4 root end-8"),
                             ("safetensors", "0 8 data")):
            data = dumps(net, format=kind)
            drawn = self.page(data).split("<pre>")[1].split("</pre>")[0]
            found = re.findall('(?m)^<a href="#(0x[0-9a-f]+)">\\1</a> +(.+?)  ', drawn)
            self.assertEqual(" ".join([label for _, label in found]), places)
            first = min([item.offset for item in load(data).values()])
            for at, label in found:
                self.assertEqual(int(at, 16), int(label) if label.isdigit() else
                                 first if label == "data" else int(at, 16), (kind, label))

    def test_labels_of_the_strip(self):
        text = self.page(dumps({"a\u202eb": F32, "\u5c42": F32}, format="mag"))
        strip = text.split("<nav>")[1].split("</nav>")[0]
        for name in "&#x27;a\\u202eb&#x27;", "&#23618;":
            self.assertIn(">%s\n" % name, strip)

    def test_where_long_names_may_be_broken(self):
        """Behind dots and slashes; behind `_` where nothing else is near. No number is broken."""
        for text, wanted in (
                ("model.layers.0.q_proj.weight", "model.|layers.0.|q_proj.|weight"),
                ("num_batches_tracked", "num_batches_tracked"),
                ("query_key_value_projection_of_all", "query_|key_|value_|projection_|of_|all"),
                ("0.125 -1.5e-07 [1, 2]", "0.125 -1.5e-07 [1, 2]"),
                ("&lt;/b_&gt;", "&lt;/|b_&gt;")):
            self.assertEqual(tensorfmt.with_breaks(text), wanted.replace("|", "<i></i>"))
            self.assertEqual(tensorfmt.widest_word("aa.0.bbb cc"), 5)
        page = self.page(dumps({"model.weight": F32}, format="burnpack"))
        self.assertIn("<td>model.<i></i>weight</td>", page)
        deepest = 2 * 3 + len("data_offsets") + 1  # two letters for each level
        self.assertIn(" style=\"--f:%d;" % deepest, page)

    def test_a_list_that_scrolls_says_so(self):
        for count, is_long in (6, False), (16, True):
            rows = dict([("t%d" % i, F32) for i in range(count)])
            text = "%d ranges of tensors%s</summary>" % (count, "; the list scrolls" * is_long)
            self.assertIn(text, self.page(dumps(rows, format="burnpack")))

    def test_bytes_of_a_field(self):
        """Of data two lines of 16 are shown; what is not shown is counted."""
        for count, more in ((8, 0), (9, 4), (100, 368)):
            page = self.page(dumps({"w": tensor([1.0] * count, "float32")}, format="mag"))
            self.assertEqual("&#8230; %d more bytes" % more in page, more > 0)

    @little
    def test_without_docstrings(self):
        tensorfmt.save("a.zt", {"w": F32})
        self.assertEqual(run("python3", "-OO", "-m", "tensorfmt", "explain", "--html", "b.html",
                             "a.zt")[0], 0)
        self.assertIn("a copy or -OO drops", read_file("b.html").decode())
