# SPDX-License-Identifier: MIT
"""Change good files at random, use each in every way, and tell what breaks a promise.

    python3 test_tensorfmt.py fuzz [SECONDS] [SEED] [--jobs N] [--module FILE] [--out FOLDER]
    python3 test_tensorfmt.py fuzz FILE ...         check such files again

The mutants and what must hold for each are [10c] of test_tensorfmt.py. A seed makes 20,000 of them,
always the same ones for the same files and the same zstd module; it is one child process, whose
memory and time are limited where the system can do it. A finding is written to the folder once of
each kind (exception and line). --module tests another tensorfmt.py. Exit code 1: one was found.
"""
import argparse
import importlib
import json
import mmap
import os
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


def mutants(tests, seed):
    """Yield the mutants of a seed; small files come more often."""
    draw, (made, kinds) = Random(seed), tests.families()
    weights = [1 / (500 + len(one.data)) for one in made]
    for one in draw.choices(made, weights, k=SIZE):
        yield one.make(draw, kinds[one.kind])


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
              if os.path.basename(frame[0]) in ("tensorfmt.py", "test_tensorfmt.py")]
    places = ["%s:%d" % (os.path.basename(frame[0]), frame[1]) for frame in frames[-2:]]
    return " ".join([type(error).__name__] + places)


def check(tests, data):
    """Return None, or (key, text) of what breaks a promise."""
    start, before = process_time(), peak()
    try:
        tests.check_mutant(data)
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
        if n:
            again = self.command + ["--child", str(seed), "--make", str(n)]
            path = subprocess.run(again, stdout=subprocess.PIPE).stdout.decode().strip()
        key = "child ended with %d: %s" % (made.returncode, text.strip().split("\n")[-1][:80])
        return {"done": n, "found": {key: [1, path, text]}}

    def count(self, result):
        self.done += result["done"]
        for key, (count, path, text) in result["found"].items():
            if key not in self.found:
                self.found[key] = [0, path]
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
