#!/usr/bin/env python3
"""Compare the module of the second edition with the module of the repository's root.

    python3 .next/check.py [--mutants N] [--seed S] [--show K] [--only WORD]

For every file of the folders of test files beside the repository, if they are there, of a format that
the new module has, for the files that both modules write, and for N mutants of each small one:

    decision  does load() give a File, or which class of error?
    file      names, dtypes, shapes, offsets, bytes, metadata, attributes
    values    tolist(), parts, casts, dequantized values of some tensors
    save      the bytes that save() writes, or that it refuses
    tiles     explain() names every byte once; verify() agrees with load() on what is broken
    where     offset and field of the error; counted, and shown, but no failure

What goes by design is counted as "gone". Exit code 1 if anything else differs.
"""
import argparse
import collections
import importlib.util
import json
import os
import random
import sys

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
FOLDERS = ("fixtures", "generations", "bridge", "hostile", "hostile2")


def load_module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


OLD = load_module(os.path.join(ROOT, "tensorfmt.py"), "tensorfmt_old")
NEW = load_module(os.path.join(HERE, "tensorfmt.py"), "tensorfmt_new")
PORTED = {fmt.NAME for fmt in NEW.FORMATS + NEW.GENERATIONS}


def attempt(call):
    """Return ("value", result) or ("error", class name)."""
    try:
        return "value", call()
    except (ValueError, OSError, TypeError, AttributeError, LookupError, BufferError,
            OverflowError) as error:
        return "error", type(error).__name__


KNOWN = (  # cases that are decided otherwise by design
    "valid-unknown-layout-structural",  # components of unknown layouts are not opened
    "spmany",  # its dense bytes count as work: it is not saved again
    "m012_truncated_after_meta")  # of two faults the one that comes first is told


def is_gone(data, old, old_file):
    """Return whether this is of a generation, or of a rule, that the second edition lets go."""
    if data[:8] == b"ZTEN1000" or data[:4] == b"MAG!" and data[4:8] in (b"d\0\0\0", b"\xc8\0\0\0"):
        return True
    if old_file is None:
        return "ambiguous" in old or data[:4] == b"NRUB" and "cut short" in old
    version = str(old_file.attrs.get("version"))
    return (old_file.format == "mag" and version in ("100", "200")
            or old_file.format == "ztensor" and version[:2] == "1."
            or old_file.format == "burnrecord" and version[:4] in ("0.10", "0.11", "0.12", "0.13")
            or old_file.attrs.get("layout") == "packed")


def describe(file, with_bytes):
    """Return what a File is, for comparison."""
    rows = []
    for name, item in file.items():
        extra = dict(item.attrs, **dict(getattr(item, "custom", None) or {}))
        extra.update(extra.pop("attributes", None) or {})  # of zTensor 2, custom ones now
        extra = sorted(extra.items())
        data = attempt(item.tobytes) if with_bytes and item.nbytes <= 1 << 20 else None
        rows.append((name, item.dtype, tuple(item.shape), item.offset, item.nbytes,
                     bytes(item.raw), data, repr(extra), tuple(item.strides)))
    attrs = {key: value for key, value in file.attrs.items() if key != "missing"}
    return file.format, repr(dict(file.metadata)), repr(attrs), rows


def as_plain(value):
    """Return a result of a method of a tensor, for comparison."""
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return getattr(value, "dtype", None), value.shape, repr(attempt(value.tolist))
    return repr(value)


QUESTIONS = (
    lambda t: t.tolist(), lambda t: t[...], lambda t: t[0], lambda t: t[-1:, ..., ::-1],
    lambda t: t[::2].tobytes(), lambda t: t[..., 0], lambda t: list(t.data),
    lambda t: t[::-2].data.tolist(), lambda t: t.astype("float32"), lambda t: t.astype("int64"),
    lambda t: t.astype("bfloat16"), lambda t: len(t), lambda t: t.item(), lambda t: bool(t),
    lambda t: (t.zero_copy, t.itemsize, t.ndim, t.size), lambda t: [as_plain(x) for x in t],
    lambda t: {key: str(value) for key, value in t[::2].__array_interface__.items()
               if key != "data"},
    lambda t: t.values, lambda t: t.scales, lambda t: t.dequantize(), lambda t: t.scheme,
    lambda t: t.todense(), lambda t: {k: as_plain(v) for k, v in (t.components or {}).items()})


def compare_values(old, new):
    """Return the number of the question about a tensor that is answered otherwise, or None."""
    for i, ask in enumerate(QUESTIONS):
        if as_plain(attempt(lambda: ask(old))) != as_plain(attempt(lambda: ask(new))):
            both = [attempt(lambda: as_plain(ask(item))) for item in (old, new)]
            if both[0] != both[1]:
                return i, both
    return None


def tiles(data, broken):
    """Return what is wrong with the fields of explain(), or None."""
    at, fields = 0, []
    if NEW.detect(data) is None:
        return None
    try:
        for field in NEW.explain(data):
            fields.append(field)
    except NEW.FormatError:
        if not broken:
            return "explain() raises, load() does not"
    for field in fields:
        if field.kind != "data" and field.offset < at and field.nbytes:
            return f"{field} begins before {at}"
        if field.offset > at:
            return f"nothing names the bytes from {at} to {field.offset}"
        at = max(at, field.offset + field.nbytes)
    return None if at == len(data) else f"the fields end at {at} of {len(data)}"


class Check:
    def __init__(self, show):
        self.count, self.show = collections.Counter(), show

    def note(self, kind, name, *facts):
        self.count[kind] += 1
        if self.count[kind] <= self.show:
            print("  ", kind, name, *[str(fact)[:300] for fact in facts])

    def compare(self, name, data, deep):
        """Compare what both modules make of a file."""
        try:
            old_file, old = OLD.load(data), "value"
        except (OLD.FormatError,) as error:
            old_file, old = None, str(error)
            old_error = error
        if any(word in name for word in KNOWN):
            self.count["known"] += 1
            return
        if old_file is None and is_gone(data, old, None) or (
                old_file is not None and is_gone(data, old, old_file)):
            self.count["gone"] += 1
            attempt(lambda: NEW.load(data))
            return
        try:
            new_file = NEW.load(data)
        except NEW.FormatError as error:
            if old_file is not None:
                self.note("DECISION", name, "old loads", error)
            elif isinstance(error, NEW.Unsupported) and not isinstance(old_error, OLD.Unsupported):
                self.note("unsupported first", name, old_error, "|", error)
            elif "limit" in str(old_error) and "FlatBuffers" in str(error):
                self.count["index read whole first"] += 1
            elif type(error).__name__ != type(old_error).__name__:
                self.note("CLASS", name, old_error, "|", error)
            elif (old_error.offset, old_error.field) != (error.offset, error.field):
                self.note("where", name, old_error, "|", error)
            else:
                self.count["error"] += 1
            self.check_tiles(name, data, True)
            return
        if old_file is None:
            self.note("DECISION", name, old_error, "| new loads")
            return
        with_bytes = not name.startswith("hostile")  # those take memory and time by design
        a, b = describe(old_file, with_bytes), describe(new_file, with_bytes)
        if a != b:
            rows = [(x, y) for x, y in zip(a[3], b[3]) if x != y]
            facts = [(x, y) for x, y in zip(rows[0][0], rows[0][1]) if x != y] if rows else ()
            self.note("FILE", name, facts or [(x, y) for x, y in zip(a[:3], b[:3]) if x != y])
            return
        self.count["good"] += 1
        self.check_tiles(name, data, False)
        saved = [attempt(lambda: m.dumps(f, format=f.format))
                 for m, f in ((OLD, old_file), (NEW, new_file))]
        if saved[0] != saved[1]:
            self.note("SAVE", name, *saved)
        for key, item in list(old_file.items())[:6] if deep and with_bytes else ():
            if item.nbytes <= 1 << 14 and max(item.shape, default=0) <= 1 << 14:
                found = compare_values(item, new_file[key])
                self.count["tensors asked"] += 1
                if found:
                    self.note("VALUES", name, key, *found)

    def check_tiles(self, name, data, broken):
        wrong = tiles(data, broken)
        if wrong:
            self.note("TILES", name, wrong)
        report = NEW.verify(data)
        if broken and report:
            self.note("TILES", name, "verify() finds nothing, load() does")


def mutants(data, count, draw):
    """Yield copies of a file with some bytes changed, some of them cut."""
    for _ in range(count if data else 0):
        copy = bytearray(data)
        reach = len(copy) if draw.random() < 0.5 else min(400, len(copy))
        for _ in range(draw.choice((1, 1, 2))):
            copy[draw.randrange(reach)] = draw.choice(
                (0, 1, 4, 0x7F, 0x80, 0xA1, 0xFF, 0x9F, 0xBF, draw.randrange(256)))
        if draw.random() < 0.15:
            del copy[draw.randrange(len(copy)):]
        yield bytes(copy)


def own_files():
    """Yield (name, bytes) of a small file of each format, written by the root's module."""
    values = {"w": OLD.tensor([[1, 2, 3], [4, 5, 6]], "float32"), "n": OLD.tensor(7, "int32"),
              "e": OLD.tensor([], "float32", (0, 2)), "b.c": OLD.tensor([1.5, -2], "float16")}
    for fmt in OLD.FORMATS:
        kind, data = attempt(lambda: OLD.dumps(values, format=fmt.NAME))
        if kind == "value":
            yield "own " + fmt.NAME, data


def is_ported(data):
    """Return whether the new module has the format that these bytes are."""
    for fmt in OLD.LATER if hasattr(OLD, "LATER") else ():
        if fmt.detect(data[:64]) and fmt.NAME not in PORTED and fmt.VERSION:
            return False
    return OLD.detect(data) in PORTED


def find_files(only):
    yield from own_files()
    for folder in FOLDERS:
        for place, _, names in sorted(os.walk(os.path.join(SHARED, folder))):
            for name in sorted(names):
                path = os.path.join(place, name)
                if only not in path or os.path.getsize(path) >= 1 << 20:
                    continue
                with open(path, "rb") as stream:
                    data = stream.read()
                yield os.path.relpath(path, SHARED), data
                for case in json.loads(data.decode()) if name == "cases.json" else ():
                    if isinstance(case, dict) and isinstance(case.get("hex"), str):
                        yield f"{place[-20:]} case {case.get('id')}", bytes.fromhex(case["hex"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    draw, check = random.Random(args.seed), Check(args.show)
    files = [row for row in find_files(args.only) if is_ported(row[1])]
    for name, data in files:
        check.compare(name, data, True)
    print(len(files), "files:", dict(check.count), flush=True)
    for name, data in files:
        for i, copy in enumerate(mutants(data, args.mutants if len(data) < 20000 else 0, draw)):
            check.compare(f"{name} mutant {i}", copy, False)
    print("with mutants:", dict(check.count))
    wrong = [kind for kind in check.count if kind.isupper()]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
