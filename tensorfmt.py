# SPDX-License-Identifier: MIT
#
# MIT License
#
# Copyright (c) 2026 the tensorfmt developers
#
# Permission is hereby granted, free of charge, to any person obtaining a copy of this software
# and associated documentation files (the "Software"), to deal in the Software without
# restriction, including without limitation the rights to use, copy, modify, merge, publish,
# distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
# Software is furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in all copies or
# substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
# BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
# NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
# DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""Read, write and explain five tensor file formats: one file, standard library only.

.mag (magnetron), zTensor 0.1, primitiv 0.1, Burnpack and TensorBuffers, zero-copy, byte-exact.

    from tensorfmt import load, save, tensor
    save("model.bpk", {"w": [[1.0, 2.0], [3.0, 4.0]], "steps": tensor(7, "int64")})
    with load("model.bpk") as file:         # O(index): no tensor byte is touched
        w = file["w"]                       # .name .dtype .shape .strides .raw .data .tolist()
        print(w.dtype, w.shape, w[0, 1])    # float64 (2, 2) 2.0
        array = numpy.asarray(w)            # zero-copy; numpy is not needed for anything else

Contents (each line is the banner of a room below; search for its number)

    [1] platform           what this Python offers; the limits
    [2] errors             FormatError, Unsupported
    [3] dtypes             element types, values <-> bytes, byte order, casts
    [4] sources, cursor    where bytes come from; reading with named fields; the trace
    [5a] checksums         CRC-32, CRC-32C, SHA-256
    [5b] CBOR              RFC 8949: cbor_read, cbor_pack
    [5c] MessagePack       msgpack_read, msgpack_pack
    [5d] FlatBuffers       FlatTable, FlatBuilder
    [6] Tensor, File       strided views, values, the mapping of names to tensors
    [7] formats            what every format answers
    [7a] mag               two layouts, header + records + data
    [7b] ztensor           data + CBOR index + its size
    [7c] primitiv          a run of MessagePack values, column-major
    [7d] burnpack          header + CBOR + data
    [7e] tensorbuffers     data + one FlatBuffer + its size
    [8] load and save      FORMATS, load, save, dumps, detect
                           -- the cut line: what follows is not for boards --
    [9a] zstd              through whichever module is there
    [9b] sparse            stored elements and where they are
    [9c] quantized         Burn's schemes: few bits, times a scale
    [10a] explain          the parser again, with a trace of every field
    [10b] verify           checksums, padding, canonical form
    [10c] convert          between formats; nothing silent
    [11] command line      ls, get, explain, verify, convert, diff, formats, demo

Units and conventions. `nbytes` counts bytes, `size` and `count` count elements, `offset` is in
bytes from the start of the file. Shapes are tuples, outermost dimension first, `()` is a scalar.
Row-major means that the last index runs fastest. Data are little-endian unless said otherwise.
To learn a format, read its room: a docstring that draws the layout, tables of the fields, one
`read` (which is also the disassembler behind `explain`) and one `write`. Each room can be cut
out together with its line in FORMATS; all above the cut line works without what is below it.

Sources: the specification texts of the five formats and files of their real writers (magnetron
0.1.2, ztensor 0.1.0-0.1.4, primitiv 0.3.1/0.4.0, burn-store 0.19-0.21, tensorbuffers 7190fc4 and
2422de1), RFC 8949 (CBOR), the MessagePack and FlatBuffers specifications, RFC 3720 (CRC-32C).
"""
__version__ = "0.1.0"
__all__ = [
    "load", "save", "dumps", "tensor", "detect",
    "File", "Tensor", "FormatError", "Unsupported", "FORMATS",
    "cbor_loads", "cbor_dumps", "msgpack_loads", "msgpack_dumps", "FlatTable", "FlatBuilder",
    "crc32c",
]

# -- [1] platform --------------------------------------------------------------------------------

import struct
import sys

try:
    import os
except ImportError:  # a board without files: buffers and streams still work
    os = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Type

unpack_from = struct.unpack_from
pack = struct.pack


def const(board: int) -> bool:
    """Return True. MicroPython's compiler knows the name: to it, const(0) is the constant 0."""
    return True


FULL_PYTHON = const(0)  # `if FULL_PYTHON`: what boards could not use, they do not even compile
if not FULL_PYTHON:
    # MicroPython numbers names in the order in which it meets them in a module, and a number under
    # 128 takes one byte of its code, others two: with the most frequent first, it has 2 % less.
    _FREQUENT = [
        "self", "len", "append", "shown", "data", "error", "isinstance", "shape", "get", "end",
        "dtype", "pos", "ValueError", "nbytes", "list", "int", "str", "name", "trace", "items",
        "offset", "bytes", "format", "path", "join", "type", "kind", "tuple",
        "attrs", "range", "__init__", "hasattr", "bool", "read", "cursor", "float", "Map", "key",
        "raw", "metadata", "memoryview", "source", "magic", "rows", "_source", "options",
        "cbor_pack", "scalars", "base", "_NOTHING", "size", "_error", "tensors", "NAME", "checksum",
        "field", "ITEMSIZE", "itemsize", "TypeError", "add", "min", "MAGIC", "quoted", "BLOCK",
        "value", "depth", "close", "encoding", "version", "layout"]

NATIVE = "<" if sys.byteorder == "little" else ">"
try:
    quoted = ascii  # names are data: escaped wherever a person reads them
except NameError:
    quoted = repr

if sys.implementation.name == "micropython":  # its dict has no order
    from collections import OrderedDict as Map
else:
    Map = dict  # type: ignore[assignment,misc]

# Limits. Each is named in the error that it causes; set them before load() to change them.
MAX_INDEX_BYTES = 256 << 20  # zTensor: bytes of the CBOR index
MAX_METADATA_BYTES = 104857600  # Burnpack: bytes of the CBOR metadata (the real reader's own limit)
MAX_TENSORS = 100000  # Burnpack: tensors (the real reader's own limit)
MAX_DEPTH = 128  # CBOR: arrays, maps and tags around an item
MAX_MSGPACK_DEPTH = 64  # MessagePack: arrays and maps around an item
MAX_PRIMITIV_DIMS = 32  # primitiv: dimensions read (8 are written)
MAX_FLAT_DIMS = 64  # TensorBuffers: dimensions
MAX_EXPANSION = 32768  # zstd: decoded bytes per stored byte (128 KiB from a block of 4 bytes)
MAX_DENSE = 1 << 30  # sparse: bytes of the dense form
MAX_COPIES = 64  # bytes hashed or converted, in file sizes, when ranges are named many times
BLOCK = 1 << 20 if FULL_PYTHON else 1 << 10  # bytes decoded, swapped, transposed or cast at a time
WINDOW = 1 << 12 if FULL_PYTHON else 1 << 9  # bytes of index read first; doubled when read on


# -- [2] errors ----------------------------------------------------------------------------------


class FormatError(ValueError):
    """The bytes break a rule of the format.

    Attributes: `what` (the sentence), `offset` (bytes from the start of the file, or None),
    `field` (as explain() names it), `tensor` (name), `path` (of the file), `check` (the row of
    verify() that it belongs to).
    """

    def __init__(self, what: str, offset: "Optional[int]" = None, field: "Optional[str]" = None,
                 tensor: "Optional[str]" = None, path: "Optional[str]" = None,
                 check: str = "index") -> None:
        super().__init__(what, offset, field, tensor, path, check)
        self.what = what
        self.offset = offset
        self.field = field
        self.tensor = tensor
        self.path = path
        self.check = check

    def __str__(self) -> str:
        text = self.what
        if self.tensor is not None:
            text = "tensor %s: %s" % (quoted(self.tensor), text)
        if self.path is not None:
            text = "%s: %s" % (self.path, text)
        place = [] if self.offset is None else ["at 0x%x" % self.offset]
        if self.field is not None:
            place.append(self.field)
        return "%s (%s)" % (text, ", ".join(place)) if place else text


class Unsupported(FormatError):
    """The bytes may be right, but tensorfmt does not read them: the message names what they are."""


def beyond(name: str, default: "Any" = None) -> "Any":
    """Return what has this name below the cut line; in a copy that ends there, the default."""
    found = globals().get(name, default)
    if found is None:
        raise Unsupported("this copy of tensorfmt.py was cut: it has no %s" % name)
    return found


def counted(count: int, noun: str) -> str:
    """Return "1 tensor" or "3 tensors"."""
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def shown(value: "Any", limit: int = 60, depth: int = 0) -> str:
    """Return a value for a message: short, escaped, and no digits of a huge integer."""
    if isinstance(value, int) and not -(1 << 128) < value < 1 << 128:
        return "an integer of more than 128 bits"  # str() of a huge one is slow, or an error
    if isinstance(value, (bytes, bytearray, memoryview)):
        return quoted(bytes(value)) if len(value) <= 16 else "%d bytes" % len(value)
    nested = isinstance(value, (list, tuple, dict))
    if nested and depth > 3:
        return "..."
    if isinstance(value, dict):
        pairs = ["%s: %s" % (shown(key, limit, depth + 1), shown(item, limit, depth + 1))
                 for key, item in list(value.items())[:8]]
        text = "{%s%s}" % (", ".join(pairs), ", ..." if len(value) > 8 else "")
    elif nested and len(value) > 20:
        text = "%s, ... %d items]" % (shown(list(value[:8]), limit, depth)[:-1], len(value))
    elif nested:
        text = "[%s]" % ", ".join([shown(item, limit, depth + 1) for item in value])
    else:
        text = quoted(value[:limit]) if isinstance(value, str) else quoted(value)
    return text if len(text) <= limit or depth or isinstance(value, (list, tuple)) else (
        text[:limit - 3] + "...")


# -- [3] dtypes ----------------------------------------------------------------------------------

ITEMSIZE: "Dict[str, int]" = Map([  # bytes per element
    ("float64", 8), ("float32", 4), ("float16", 2), ("bfloat16", 2), ("int64", 8), ("int32", 4),
    ("int16", 2), ("int8", 1), ("uint64", 8), ("uint32", 4), ("uint16", 2), ("uint8", 1),
    ("bool", 1)])
STRUCT_CODE = {  # of struct, array and memoryview; bfloat16 (the upper half of a float32) has none
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h",
    "int8": "b", "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B", "bool": "?"}
BITS_CODE = {1: "B", 2: "H", 4: "I", 8: "Q"}  # elements moved as bits: NaN payloads survive
INT_RANGE = {
    "int64": (-(1 << 63), (1 << 63) - 1), "int32": (-(1 << 31), (1 << 31) - 1),
    "int16": (-32768, 32767), "int8": (-128, 127), "uint64": (0, (1 << 64) - 1),
    "uint32": (0, (1 << 32) - 1), "uint16": (0, 65535), "uint8": (0, 255)}
FLOATS = ("float64", "float32", "float16", "bfloat16")


def count_elements(shape: "Iterable[int]") -> int:
    """Return the product of the dimensions, exact up to 2**64; some larger number beyond that."""
    count = 1
    for n in shape:
        if n == 0:
            return 0
        if count <= 1 << 64:  # thousands of 2**64-1: the whole product would take minutes
            count *= n
    return count


def row_major(shape: "Tuple[int, ...]", itemsize: int) -> "Tuple[int, ...]":
    """Return the strides in bytes of a gap-free array whose last index runs fastest."""
    return tuple(reversed(column_major(tuple(reversed(shape)), itemsize)))


def column_major(shape: "Tuple[int, ...]", itemsize: int) -> "Tuple[int, ...]":
    """Return the strides in bytes of a gap-free array whose first index runs fastest."""
    strides = []
    for n in shape:
        strides.append(itemsize)
        if itemsize < 1 << 64:  # beyond, some other dimension is 0: no stride is ever used
            itemsize *= n or 1
    return tuple(strides)


def swap(data: "Any", itemsize: int) -> "Any":
    """Return a copy of the bytes with the byte order of each element reversed."""
    if FULL_PYTHON:
        try:
            from array import array  # 10 GB/s; imported here because it drags in nine modules
        except ImportError:
            pass
        else:
            items = array(BITS_CODE[itemsize])
            items.frombytes(data)
            items.byteswap()
            return memoryview(items).cast("B")
    out = bytearray(len(data))
    for i in range(len(data)):
        out[i] = data[i - i % itemsize + itemsize - 1 - i % itemsize]
    return out


def typed(data: "Any", code: str) -> "Any":
    """Return bytes in native order as a flat typed sequence, zero-copy where memoryview can."""
    if FULL_PYTHON:
        return memoryview(data).cast(code)  # type: ignore[call-overload]
    from array import array
    return array("B" if code == "?" else code, bytes(data))  # never array(code, memoryview)


def unpack_values(dtype: str, data: "Any", order: str = "<") -> "Any":
    """Return the elements in `data` as Python numbers; `order` is their byte order."""
    count = len(data) // ITEMSIZE[dtype]
    if dtype == "bool":
        return [byte != 0 for byte in data]
    if dtype == "bfloat16":
        return unpack_values("float32", widen_bfloat16(data, order), order)
    return unpack_from("%s%d%s" % (order, count, STRUCT_CODE[dtype]), data, 0)


def widen_bfloat16(data: "Any", order: str) -> bytearray:
    """Return the float32 bytes of bfloat16 bytes: each gets two zero bytes at its low end."""
    out = bytearray(2 * len(data))
    low = 2 if order == "<" else 0  # where the two stored bytes go
    if FULL_PYTHON:
        data = bytes(data)
        out[low::4] = data[0::2]
        out[low + 1::4] = data[1::2]
        return out
    for i in range(0, len(data), 2):
        out[2 * i + low] = data[i]
        out[2 * i + low + 1] = data[i + 1]
    return out


def pack_values(dtype: str, values: "Any") -> "Any":
    """Return the little-endian bytes of a sequence of numbers.

    Floats are rounded to nearest even and overflow to infinity. An integer dtype takes whole
    numbers in its range: anything else is a ValueError. bool takes every number; 0 is false.
    """
    if dtype == "bool":
        return bytes([1 if value else 0 for value in values])
    if dtype in INT_RANGE:
        whole = []
        low, high = INT_RANGE[dtype]
        for value in values:
            number = int(value) if value == value and abs(value) != INFINITY else None
            if number is None or number != value or not low <= number <= high:
                raise ValueError("%s does not fit %s" % (shown(value), dtype))
            whole.append(number)
        return pack("<%d%s" % (len(whole), STRUCT_CODE[dtype]), *whole)
    if dtype == "bfloat16":
        return narrow_bfloat16(values)
    code = STRUCT_CODE[dtype]
    if dtype != "float64":
        values = [to_float(value) if type(value) is int else value for value in values]
    try:
        return pack("<%d%s" % (len(values), code), *values)
    except OverflowError:
        limit = {"e": 65520.0, "f": FLOAT32_LIMIT, "d": INFINITY}[code]
        return b"".join([pack("<" + code, to_inf(value, limit)) for value in values])


INFINITY = float("inf")
FLOAT32_LIMIT = 2.0 ** 128 - 2.0 ** 103  # from here on float32 rounds to infinity


def to_inf(value: "Any", limit: float) -> float:
    """Return the number as a float, or an infinity where it rounds past the largest finite one."""
    if value != value or -limit < value < limit:
        try:
            return float(value)
        except OverflowError:  # an integer past float64
            pass
    return INFINITY if value > 0 else -INFINITY


def to_float(value: int) -> float:
    """Return an integer as float64, rounded to odd so that rounding once more stays right."""
    try:
        number = float(value)
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY
    if int(number) == value:
        return number
    bits, = unpack_from("<q", pack("<d", number))
    if abs(int(number)) > abs(value):  # float() rounded away from zero: back to the truncated one
        bits -= 1
    return float(unpack_from("<d", pack("<q", bits | 1))[0])


def narrow_bfloat16(values: "Any") -> bytearray:
    """Return the little-endian bfloat16 bytes of numbers, rounded once, to nearest even."""
    out = bytearray(2 * len(values))
    for i, value in enumerate(values):
        number = to_float(value) if type(value) is int else float(value)
        if number != number or abs(number) == INFINITY or abs(number) >= FLOAT32_LIMIT:
            bits = 0x7F80 if number == number else 0x7FC0
            bits |= 0x8000 if pack("<d", number)[7] >= 128 else 0
        else:
            bits, = unpack_from("<I", pack("<f", number))
            rounded, = unpack_from("<f", pack("<I", bits))
            if rounded != number:  # float32 is a step on the way: round it to odd
                bits = (bits - 1 if abs(rounded) > abs(number) else bits) | 1
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        out[2 * i] = bits & 255
        out[2 * i + 1] = bits >> 8
    return out


if FULL_PYTHON:
    def narrow_float32(data: "Any") -> bytes:
        """Return bfloat16 bytes of little-endian float32 bytes: 32-bit lanes of one big integer."""
        data = bytes(data)
        if b"\x7f" in data[3::4] or b"\xff" in data[3::4]:  # inf, NaN, near them: lanes carry
            return bytes(narrow_bfloat16(unpack_values("float32", data)))
        count = len(data) // 4
        ones = int.from_bytes(b"\x01\x00\x00\x00" * count, "little")
        lanes = int.from_bytes(data, "little")
        lanes += (lanes >> 16 & ones) + ones * 0x7FFF  # half to even
        rounded = lanes.to_bytes(4 * count, "little")
        out = bytearray(2 * count)
        out[0::2] = rounded[2::4]
        out[1::2] = rounded[3::4]
        return bytes(out)


def cast_block(data: "Any", old: str, new: str) -> "Any":
    """Return little-endian bytes of dtype `old` as little-endian bytes of dtype `new`."""
    if old == new:
        return data
    if old == "bfloat16" and new == "float32":
        return widen_bfloat16(data, "<")
    if FULL_PYTHON and old == "float32" and new == "bfloat16":
        return narrow_float32(data)
    return pack_values(new, unpack_values(old, data))


# -- [4] sources, cursor -------------------------------------------------------------------------
#
# A source has .nbytes and .path, and answers read(offset, nbytes) with bytes (for the index: never
# through the mapping, which would read megabytes around it) and view(offset, nbytes) with a
# memoryview (for tensors: no copy where .zero_copy is true).


MEMORY_CODES = tuple("bBhHiIlLqQnNfd?c")  # of what memoryview.cast() takes on every Python


class Memory:
    """Any bytes-like object as a source."""

    path: "Optional[str]" = None
    zero_copy = True

    def __init__(self, buffer: "Any") -> None:
        view = memoryview(buffer)
        if FULL_PYTHON:
            if not view.c_contiguous or view.format not in MEMORY_CODES:
                view = memoryview(view.tobytes())
            view = view.cast("B") if view.nbytes else memoryview(b"")
            view = view.toreadonly() if hasattr(view, "toreadonly") else view
        self._view: "Any" = view
        self.nbytes = len(view)

    def read(self, offset: int, nbytes: int) -> bytes:
        return bytes(self.view(offset, nbytes))

    def view(self, offset: int, nbytes: int) -> "Any":
        if self._view is None:
            raise ValueError("the File is closed")
        return self._view[offset:offset + nbytes]

    def close(self) -> None:
        self._view = None  # never release(): views that somebody holds stay valid


class Stream:
    """A seekable binary file object as a source; its position is put back after each read."""

    path: "Optional[str]" = None
    zero_copy = False

    def __init__(self, stream: "Any") -> None:
        self._stream = stream
        here = stream.tell()
        stream.seek(0, 2)
        self.nbytes: int = stream.tell()
        stream.seek(here)

    def read(self, offset: int, nbytes: int) -> bytes:
        if self._stream is None:
            raise ValueError("the File is closed")
        here = self._stream.tell()
        try:
            self._stream.seek(offset)
            return read_exactly(self._stream, nbytes)
        finally:
            self._stream.seek(here)

    def view(self, offset: int, nbytes: int) -> "Any":
        return memoryview(self.read(offset, nbytes))

    def close(self) -> None:
        self._stream = None  # not ours to close


def read_exactly(stream: "Any", nbytes: int) -> bytes:
    """Return nbytes bytes of a stream whose read() may give fewer than asked."""
    parts = []
    while nbytes:
        part = stream.read(nbytes)
        if not part:
            raise FormatError("the stream ended %d bytes early: it has shrunk" % nbytes)
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise TypeError("the stream gives %s; open it in binary mode" % type(part).__name__)
        parts.append(bytes(part))
        nbytes -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Path:
    """A file as a source: the index by pread, tensors through a mapping made at the first one."""

    def __init__(self, path: str, mapped: bool = True, expected: "Any" = None) -> None:
        self.path = path
        self.where = os.path.abspath(path) if hasattr(os, "path") else path  # chdir() may come
        self.wanted = self.mapped = mapped and FULL_PYTHON
        self.nbytes = -1
        self.mtime: "Any" = None
        self._file: "Any" = None
        self._map: "Any" = None
        self._closed = False
        self._expected = expected  # (nbytes, mtime): opened at the first use, after unpickling
        if expected is None:
            self._open()

    @property
    def zero_copy(self) -> bool:
        return self.mapped

    def _open(self) -> None:
        if self._closed:
            raise ValueError("%s: the File is closed" % self.path)
        try:
            self._file = open(self.where, "rb")
        except OSError as error:
            if hasattr(error, "filename"):
                error.filename = self.path
            raise
        self.nbytes = self._file.seek(0, 2)
        if FULL_PYTHON:
            if hasattr(os, "fstat"):
                self.mtime = os.fstat(self._file.fileno()).st_mtime
            if self._expected not in (None, (self.nbytes, self.mtime)):
                self.close()
                raise ValueError("%s has changed since the tensor was pickled" % self.path)

    if FULL_PYTHON:
        def __reduce__(self) -> "Any":
            return Path, (self.where, self.wanted, self._expected or (self.nbytes, self.mtime))

    def read(self, offset: int, nbytes: int) -> bytes:
        if self._map is not None:
            return bytes(self._map[offset:offset + nbytes])
        if self._file is None:
            self._open()
        if FULL_PYTHON and hasattr(os, "pread"):
            data = os.pread(self._file.fileno(), nbytes, offset)
            if len(data) == nbytes:
                return data
        self._file.seek(offset)
        try:
            return read_exactly(self._file, nbytes)
        except FormatError as error:
            error.path, error.offset = self.path, offset
            raise

    def view(self, offset: int, nbytes: int) -> "Any":
        if self._map is None:
            if self._file is None:
                self._open()
            if FULL_PYTHON and self.mapped:
                self._make_map()
        if self._map is None:
            return memoryview(self.read(offset, nbytes))
        return self._map[offset:offset + nbytes]

    if FULL_PYTHON:
        def _make_map(self) -> None:
            """Map the file; where that is not possible (no mmap module, ENODEV), stay with reads.

            The file stays open: another thread may be reading from it.
            """
            if not self.nbytes:
                self.mapped = False
                return
            try:
                from mmap import ACCESS_READ, mmap
                self._map = memoryview(mmap(self._file.fileno(), self.nbytes, access=ACCESS_READ))
            except (ImportError, OSError):
                self.mapped = False
            except ValueError:  # "mmap length is greater than file size"
                raise FormatError("the file has shrunk since it was opened", path=self.path)

    def close(self) -> None:
        """Let go of file and mapping. Never mmap.close(): PyPy would let live views go dead."""
        self._closed = True
        self._expected = None
        self._map = None
        if self._file is not None:
            self._file.close()
            self._file = None

    if FULL_PYTHON:
        def __del__(self) -> None:
            if getattr(self, "_file", None) is not None:
                self._file.close()


def path_of(target: "Any") -> str:
    """Return a str or os.PathLike as a str."""
    if hasattr(target, "__fspath__"):
        target = os.fsdecode(target)
    if not isinstance(target, str):
        raise TypeError("a path is a str or os.PathLike, not %s" % type(target).__name__)
    return target


def open_source(source: "Any", mapped: bool) -> "Any":
    """Return a source for a path, a bytes-like object or a seekable binary file object."""
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return Path(path_of(source), mapped)
    try:
        return Memory(source)
    except TypeError:
        pass
    if hasattr(source, "read") and hasattr(source, "seek"):
        return Stream(source)
    raise TypeError("a source is a path, a bytes-like object or a seekable binary file object, "
                    "not %s" % type(source).__name__)


def child(path: str, key: "Any") -> str:
    """Return the path of an item in a map or list: `a.key`, `a[3]` or `a['any text']`."""
    if isinstance(key, int):
        return "%s[%s]" % (path, shown(key))
    if isinstance(key, str) and key.replace("_", "").isalpha() and quoted(key) == repr(key):
        return "%s.%s" % (path, key) if path else key
    return "%s[%s]" % (path, quoted(key) if isinstance(key, str) else shown(key))


class Record:
    """Fixed little-endian fields: the rows (name, struct code, doc) read, write and explain them.

    A code with a count ("6q") is that many values, one with "s" is bytes.
    """

    def __init__(self, *rows: "Tuple[str, str, str]") -> None:
        self.rows = rows
        self.format = "<" + "".join([row[1] for row in rows])
        self.nbytes = struct.calcsize(self.format)

    def pack(self, *values: "Any") -> bytes:
        return pack(self.format, *values)


class Trace:
    """Collects the fields of one parse, or (with `wanted`) only the offset of the one so named."""

    def __init__(self, wanted: "Optional[str]" = None, wire: bool = False) -> None:
        self.fields: "List[Any]" = []
        self.offsets: "Dict[str, int]" = {}
        self.wanted = wanted
        self.wire = wire

    def cbor(self, base: int, name: str) -> "Any":
        """Return what cbor_read tells its tokens to: `base` is the offset of its first byte."""
        return (beyond("CborTokens") if self.wire else CborFields)(self, base, name)

    def add(self, offset: int, nbytes: int, name: str, value: "Any", doc: str, depth: int = 0,
            kind: str = "structure", lead: int = 0) -> None:
        if self.wanted is None:
            self.fields.append(beyond("Field")(offset, nbytes, name, value, doc, kind, depth, None,
                                               lead))
        if self.wanted in (None, name):
            self.offsets[name] = offset

    def claim(self, tensor: str, starts: "List[str]") -> None:
        """Name the owner of the last fields, as far back as their names begin so."""
        for field in reversed(self.fields):
            if field.tensor is not None or not [s for s in starts if field.name.startswith(s)]:
                break
            field.tensor = tensor

    def record(self, record: Record, offset: int, values: "Tuple[Any, ...]", prefix: str,
               depth: int) -> None:
        """Add one field per row of a record."""
        at = 0
        for name, code, doc in record.rows:
            count = 1 if code[-1] == "s" or len(code) == 1 else int(code[:-1])
            value = values[at] if count == 1 else list(values[at:at + count])
            nbytes = struct.calcsize("<" + code)
            self.add(offset, nbytes, prefix + name, value, doc, depth)
            offset += nbytes
            at += count


class Cursor:
    """Reads a source front to back by named fields, through a window of its bytes.

    With a trace every field is told to it. Where a check fails, fault() raises; with a list in
    `faults` (verify) it notes the error there, and the format goes on as well as it can.
    """

    __slots__ = ("source", "pos", "end", "data", "base", "step", "trace", "faults")

    def __init__(self, source: "Any", trace: "Optional[Trace]" = None,
                 faults: "Optional[List[FormatError]]" = None) -> None:
        self.source = source
        self.end: int = source.nbytes
        self.trace = trace
        self.faults = faults
        self.seek(0)

    def seek(self, pos: int) -> None:
        """Go to an offset; reading starts with a small window there."""
        self.pos = self.base = pos
        self.data = b""
        self.step = WINDOW

    def peek(self, nbytes: int) -> int:
        """Return where .pos is in .data, which then holds nbytes bytes from there, or all left."""
        at = self.pos - self.base
        if at + nbytes > len(self.data):
            if at > len(self.data):
                self.step = WINDOW  # tensor bytes were skipped: do not read on through the next
            size = min(max(nbytes, self.step), self.end - self.pos)
            self.data = self.source.read(self.pos, size)
            self.base = self.pos
            self.step = min(2 * self.step, WINDOW << 6)
            return 0
        return at

    def need(self, nbytes: int, field: str, tensor: "Optional[str]" = None) -> int:
        """As peek(), but nbytes bytes must be there. The caller moves .pos."""
        if self.pos + nbytes > self.end:
            raise self.error("%s needs %d bytes, %d left" % (
                field.split(".")[-1], nbytes, self.end - self.pos), field, self.pos, tensor)
        return self.peek(nbytes)

    def record(self, record: Record, prefix: str = "", index: "Optional[int]" = None,
               depth: int = 0) -> "Tuple[Any, ...]":
        """Return the values of a fixed record and move behind it.

        Its fields are called prefix + name; a %d in the prefix is the index.
        """
        if self.pos + record.nbytes > self.end:
            self._name_cut(record, prefix if index is None else prefix % index, depth)
        at = self.peek(record.nbytes)
        values = unpack_from(record.format, self.data, at)
        if self.trace is not None:
            self.trace.record(record, self.pos, values,
                              prefix if index is None else prefix % index, depth)
        self.pos += record.nbytes
        return values

    def _name_cut(self, record: Record, prefix: str, depth: int) -> None:
        """Raise for the first field of the record that the end of the file cuts."""
        for row in record.rows:
            part = Record(row)
            if self.pos + part.nbytes > self.end:
                self.need(part.nbytes, prefix + row[0])
            self.record(part, prefix, None, depth)

    def take(self, nbytes: int, field: str, index: "Optional[int]" = None,
             doc: str = "", depth: int = 0) -> bytes:
        """Return nbytes bytes as they are and move behind them."""
        if self.pos + nbytes > self.end:
            self.need(nbytes, field if index is None else field % index)
        at = self.peek(nbytes)
        data = self.data[at:at + nbytes]
        if self.trace is not None:
            text = decode_strict(data)
            self.trace.add(self.pos, nbytes, field if index is None else field % index,
                           data if text is None else text, doc, depth)
        self.pos += nbytes
        return data

    if FULL_PYTHON:
        def keyed(self, record: Record) -> "Any":
            """Return (key, values) of a u32 length, a key of so many bytes and a fixed record.

            In one go where nobody listens and all of it is in the window, else None.
            """
            at, data = self.pos - self.base, self.data
            if self.trace is None and at + 4 <= len(data):
                nbytes, = unpack_from("<I", data, at)
                stop = at + 4 + nbytes
                if stop + record.nbytes <= len(data):
                    self.pos += 4 + nbytes + record.nbytes
                    return data[at + 4:stop], unpack_from(record.format, data, stop)
            return None

    def fetch(self, offset: int, nbytes: int) -> bytes:
        """Return a whole region, to be parsed in memory."""
        data: bytes = self.source.read(offset, nbytes)
        return data

    def error(self, what: str, field: "Optional[str]" = None, offset: "Optional[int]" = None,
              tensor: "Optional[str]" = None, check: str = "index",
              kind: "Type[FormatError]" = FormatError) -> FormatError:
        """Return an error; with a trace it has the offset of the field."""
        if offset is None and self.trace is not None and field is not None:
            offset = self.trace.offsets.get(field)
        return kind(what, offset, field, tensor, self.source.path, check)

    def fault(self, what: str, field: "Optional[str]" = None, tensor: "Optional[str]" = None,
              check: str = "index", offset: "Optional[int]" = None,
              kind: "Type[FormatError]" = FormatError) -> None:
        """Raise, or note for verify, that one field or tensor breaks a rule."""
        error = self.error(what, field, offset, tensor, check, kind)
        if self.faults is None:
            raise error
        self.faults.append(error)


# -- [5a] checksums ------------------------------------------------------------------------------


def crc32(data: "Any", crc: int = 0) -> int:
    """Return the CRC-32 of zip and zlib (polynomial 0x04C11DB7) of bytes, going on from `crc`."""
    try:
        from zlib import crc32 as function
    except ImportError:
        from binascii import crc32 as function
    return function(data, crc) & 0xFFFFFFFF


def _crc32c_table() -> "Tuple[int, ...]":
    """Return the register after each byte: that of a sum (xor) is the sum of the registers."""
    rows = [0] * 256
    crc, i = 1, 128
    while i:
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        for j in range(0, 256, 2 * i):
            rows[i + j] = crc ^ rows[j]
        i >>= 1
    return tuple(rows)


_CRC32C = _crc32c_table()


def crc32c(data: "Any", crc: int = 0) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 B.4) of bytes, going on from `crc`.

    About 500 MB/s where integers are fast: a block is one integer whose low bits are the high
    powers of x; they are folded onto lower powers by shifts, and the table takes the last bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc ^= 0xFFFFFFFF
    view = memoryview(data)
    step = 256
    if FULL_PYTHON:
        step = _CRC32C_BLOCK
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B") if view.nbytes else memoryview(b"")
    for start in range(0, len(view), step):
        block: "Any" = bytes(view[start:start + step])
        if FULL_PYTHON and len(block) > 80:
            block, crc = _fold(block, crc), 0
        for byte in block:
            crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


if FULL_PYTHON:
    # Multiples of the polynomial 0x11EDC6F41 with few terms: x**a = x**b + ... + 1. Squaring
    # doubles every exponent, so each holds at the scales 1, 2, 4, ... too. A test proves them.
    _CRC32C_FOLDS = tuple(
        [tuple([power << k for power in (6777, 484, 100, 0)]) for k in range(6, -1, -1)]
        + [tuple([power << k for power in (437, 177, 176, 171, 58, 0)]) for k in range(3, -1, -1)])
    _CRC32C_BLOCK = (2 * 6777 - 484) * 8  # bytes: the first fold halves it

    def _fold(block: bytes, crc: int) -> bytes:
        """Return a short block whose CRC from register 0 is that of this one from `crc`."""
        bits = 8 * len(block)
        x = int.from_bytes(block, "little") ^ crc
        for powers in _CRC32C_FOLDS:
            a, b = powers[0], powers[1]
            while bits > a + b:
                d = min(bits - a, a - b) & ~7
                if d <= 0:
                    break
                low = x & (1 << d) - 1
                x >>= d
                bits -= d
                for power in powers[1:]:
                    x ^= low << a - d - power
        return x.to_bytes(bits // 8, "little")


class Digest:
    """A running checksum: kind "crc32c" or "sha256", fed by update(), read by text()."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._crc = 0
        self._sha: "Any" = None
        if kind == "sha256":
            try:
                from hashlib import sha256
            except ImportError:
                raise Unsupported("sha256 needs the module hashlib, which is missing here")
            self._sha = sha256()

    def update(self, data: "Any") -> None:
        if self._sha is not None:
            self._sha.update(data)
        else:
            self._crc = crc32c(data, self._crc)

    def text(self) -> str:
        """Return it as zTensor writes it: crc32c:0x1234ABCD or sha256:<64 hex digits>."""
        if self._sha is not None:
            return "sha256:" + "".join(["%02x" % byte for byte in self._sha.digest()])
        return "crc32c:0x%08X" % self._crc


def check_range(source: "Any", offset: int, nbytes: int, text: str) -> "Tuple[str, str]":
    """Return (status, why) of the checksum, written "kind:digits", of a range of the file."""
    kind, colon, digits = text.partition(":")
    if kind not in ("crc32c", "sha256") or not colon:
        return "-", "checksum %s is of an unknown algorithm" % shown(text)
    wanted = checksum_digits(kind, digits)
    if wanted is None:
        return "FAIL", "the checksum %s cannot be read" % shown(text)
    digest = Digest(kind)
    for start in range(0, nbytes, BLOCK):
        digest.update(source.view(offset + start, min(BLOCK, nbytes - start)))
    found = digest.text()
    if found.partition(":")[2].replace("0x", "").lower() == wanted:
        return "ok", "%s agrees" % kind
    return "FAIL", "%s: the stored bytes give %s, the index says %s" % (kind, found, text)


def checksum_digits(kind: str, digits: str) -> "Optional[str]":
    """Return the hex digits of a checksum's text, lower case, in full; None: unreadable."""
    prefixed = digits[:2] in ("0x", "0X")
    digits = (digits[2:] if prefixed else digits).lower()
    if not digits or [c for c in digits if c not in "0123456789abcdef"]:
        return None
    if kind == "sha256":
        return digits if len(digits) == 64 else None
    if not prefixed and len(digits) != 8:
        return None
    while len(digits) > 8 and digits[0] == "0":
        digits = digits[1:]
    return "0" * (8 - len(digits)) + digits if len(digits) <= 8 else None


# -- [5b] CBOR -----------------------------------------------------------------------------------
#
# Head byte = major type (3 bits) and argument (5 bits): below 24 the argument itself; 24 to 27:
# 1, 2, 4 or 8 bytes with it follow; 31: indefinite length, closed by ff.  Big-endian throughout.


class Simple:
    """A CBOR simple value without a meaning here, e.g. simple(99)."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simple) and other.number == self.number

    def __hash__(self) -> int:
        return hash(("simple", self.number))

    def __repr__(self) -> str:
        return "simple(%d)" % self.number


_NOTHING = object()  # no map key read yet
_CBOR_MAJORS = ("unsigned", "negative", "bytes", "text", "array", "map", "tag", "simple")
_CBOR_SIMPLE = {20: False, 21: True, 22: None, 23: None}  # 23 is "undefined"


def cbor_read(data: bytes, pos: int = 0, end: "Optional[int]" = None, base: int = 0,
              bignum: bool = True, simple: bool = True, keys: "Type[FormatError]" = FormatError,
              token: "Any" = None) -> "Tuple[Any, int]":
    """Return (value, position behind it) of the CBOR item at data[pos:end] (RFC 8949).

    Arrays become lists, maps dicts in their order, tags are dropped; `bignum`: tags 2 and 3 over
    a byte string make an int; `simple`: unassigned simple values make a Simple, else an error;
    `keys`: the error for an array or map as a map key. A key twice is a FormatError. Offsets in
    errors are base + position. `token` is called with (start, stop, depth, what, value, key) for
    every head or leaf; key is None for a map key itself, and for what has none.

    One loop with a stack of the containers around: nothing recurses, whatever the nesting.
    """
    end = len(data) if end is None else end
    texts: "Dict[bytes, str]" = {}  # short texts come again and again: field names, dtypes
    value: "Any" = None
    stack: "List[Any]" = []
    root: "Any" = []
    box: "Any" = root
    left = 1  # items still to come in box; below 0: until a break
    keyed = False  # box is a map
    key: "Any" = _NOTHING
    level = 0  # arrays, maps and tags around the items of box
    tags = 0  # tags in front of the next item; tag is the last of them
    tag = -1
    large = 0  # map keys over 64 bits so far
    error = FormatError
    while True:
        start = pos
        if pos >= end:
            what = "the data end inside an item"
            break
        head = data[pos]
        pos += 1
        major = head >> 5
        count = head & 31
        if count > 23:
            if count < 28:
                width = 1 << count - 24
                if pos + width > end:
                    what = "the data end inside a head"
                    break
                if major < 7:
                    count = data[pos] if width == 1 else int.from_bytes(
                        data[pos:pos + width], "big")
                    pos += width
            elif count < 31:
                what = "reserved head %02x" % head
                break
            else:
                count = -1
                if major in (0, 1, 6):
                    what = "head %02x: this type has no indefinite length" % head
                    break
        if major == 3 and 0 <= count < 24:
            stop = pos + count
            if stop > end:
                what = "a string of %d bytes, %d left" % (count, end - pos)
                break
            chunk = data[pos:stop]
            value = texts.get(chunk)
            if value is None:
                try:
                    value = texts[chunk] = chunk.decode()
                except UnicodeError:
                    what = "text is not UTF-8"
                    break
            pos = stop
        elif major == 0:
            value = count
        elif major == 3 or major == 2:
            if count < 0:
                value, pos, what = _cbor_chunks(data, pos, end, major, len(stack), token)
                if what:
                    start = pos
                    break
            else:
                stop = pos + count
                if stop > end:
                    what = "a string of %d bytes, %d left" % (count, end - pos)
                    break
                value = data[pos:stop]
                pos = stop
                if major == 3:
                    try:
                        value = value.decode()
                    except UnicodeError:
                        what = "text is not UTF-8"
                        break
        elif major == 4 or major == 5:
            if keyed and key is _NOTHING:
                what, error = "a map key is an array or a map", keys
                break
            if level + tags >= MAX_DEPTH:
                what = "nested deeper than MAX_DEPTH = %d" % MAX_DEPTH
                break
            if count > (end - pos) >> major - 4:
                what = "%s of %d items, %d bytes left" % (_CBOR_MAJORS[major], count, end - pos)
                break
            new: "Any" = [] if major == 4 else Map()
            if token is not None:
                token(start, pos, len(stack), _CBOR_MAJORS[major], count,
                      key if keyed else len(box))
            if keyed:
                box[key] = new
            else:
                box.append(new)
            stack.append((box, left - 1, keyed, level))
            box, left, keyed, key = new, count, major == 5, _NOTHING
            level += tags + 1
            tags = 0
            while left == 0:
                if not stack:
                    return root[0], pos
                box, left, keyed, level = stack.pop()
            continue
        elif major == 1:
            value = -1 - count
        elif major == 6:
            if level + tags >= MAX_DEPTH:
                what = "nested deeper than MAX_DEPTH = %d" % MAX_DEPTH
                break
            if token is not None:
                token(start, pos, len(stack), "tag", count, None)
            tags += 1
            tag = count
            continue
        elif count < 0:  # ff, the break
            if left >= 0 or tags or key is not _NOTHING:
                what = "a break outside an indefinite-length item"
                break
            if token is not None:
                token(start, pos, len(stack), "break", None, None)
            left = 0
            while left == 0:
                if not stack:
                    return root[0], pos
                box, left, keyed, level = stack.pop()
            continue
        elif count > 24:  # half, single or double float; width is 2, 4 or 8
            value, = unpack_from(">" + "efd"[count - 25], data, pos)
            pos += width
        else:
            if count == 24:
                count = data[pos]
                pos += 1
                if count < 32:
                    what = "simple value %d in two bytes" % count
                    break
            if count in _CBOR_SIMPLE:
                value = _CBOR_SIMPLE[count]
            elif simple:
                value = Simple(count)
            else:
                what = "simple value %d" % count
                break
        if tags:
            if tag in (2, 3) and bignum and major == 2:
                value = int.from_bytes(value, "big")
                value = -1 - value if tag == 3 else value
            tags = 0
        if token is not None:
            naming = keyed and key is _NOTHING
            token(start, pos, len(stack), "key" if naming else _CBOR_MAJORS[major], value,
                  None if naming else key if keyed else len(box))
        if not keyed:
            box.append(value)
        elif key is _NOTHING:
            if type(value) is int and not -(1 << 64) <= value < 1 << 64:
                large += 1  # all of them can have one hash: many would take hours
                if large > 64:
                    what = "more than 64 map keys are integers over 64 bits"
                    break
            if value in box or (value != value and [k for k in box if k != k]):
                what = "key %s twice" % shown(value)
                break
            key = value
            continue
        else:
            box[key] = value
            key = _NOTHING
        left -= 1
        while left == 0:
            if not stack:
                return root[0], pos
            box, left, keyed, level = stack.pop()
    field = None if token is None else token.path(len(stack), key if keyed else len(box))
    raise error("CBOR: " + what, base + start, field)


def _cbor_chunks(data: bytes, pos: int, end: int, major: int, depth: int,
                 token: "Any") -> "Tuple[Any, int, str]":
    """Return (string, position behind its break, "") of chunks; an error is the third item."""
    parts: "List[Any]" = []
    while True:
        start = pos
        if pos >= end:
            return None, start, "the data end inside a chunked string"
        head = data[pos]
        pos += 1
        if head == 0xFF:
            return ("" if major == 3 else b"").join(parts), pos, ""
        count = head & 31
        if head >> 5 != major or count > 27:
            return None, start, "a chunk of another type in a chunked string"
        if count > 23:
            width = 1 << count - 24
            if pos + width > end:
                return None, start, "the data end inside a head"
            count = int.from_bytes(data[pos:pos + width], "big")
            pos += width
        if pos + count > end:
            return None, start, "a chunk of %d bytes, %d left" % (count, end - pos)
        part: "Any" = data[pos:pos + count]
        pos += count
        if major == 3:
            try:
                part = part.decode()
            except UnicodeError:
                return None, start, "text is not UTF-8"
        if token is not None:
            token(start, pos, depth, "chunk", part, None)
        parts.append(part)


class CborFields:
    """Folds the tokens of cbor_read into fields: a key and its value, or a short list, is one."""

    def __init__(self, trace: Trace, base: int, name: str) -> None:
        self.trace = trace
        self.base = base
        self.paths = [name]  # [depth]: path of the container that is open there
        self.start = -1  # where the key or tag in front of the next value began
        self.rows: "List[Any]" = []  # an open list of plain values: its head, then its items
        self.room = 0  # items still missing in it; below 0: until a break

    def path(self, depth: int, key: "Any") -> str:
        """Return the path of the item with this key in the container at this depth."""
        self.flush()
        if depth == 0 or key is _NOTHING:
            return self.paths[min(depth, len(self.paths) - 1)] or "item"
        return child(self.paths[depth], key)

    def __call__(self, start: int, stop: int, depth: int, what: str, value: "Any",
                 key: "Any") -> None:
        begin = start if self.start < 0 else self.start
        if what in ("key", "tag", "chunk"):
            if what == "tag":
                self.flush()
            self.start = begin
            return
        self.start = -1
        if what == "break":
            self.close(start, stop, depth)
            return
        if self.rows and (depth != self.rows[0][2] + 1 or what in ("array", "map")):
            self.flush()
        path = self.paths[0] if depth == 0 else child(self.paths[depth], key)
        if what not in ("array", "map"):
            self.add(begin, stop, depth, path, value, what, start - begin)
            return
        del self.paths[depth + 1:]
        self.paths.append(path)
        doc = "%s, %s" % (what, "indefinite" if value < 0 else counted(value, "item"))
        if what == "array" and value:
            self.rows = [(begin, stop, depth, path, value, doc, start - begin)]
            self.room = value
        else:
            self.emit(begin, stop, depth, path, {} if what == "map" else [], doc, start - begin)

    def add(self, *row: "Any") -> None:
        """Emit a plain value (start, stop, depth, path, value, what, lead), or keep it in rows."""
        if not self.rows:
            self.emit(*row)
            return
        stop = row[1]
        self.rows.append(row)
        self.room -= 1
        if self.room == 0:
            self.fold(stop)

    def fold(self, stop: int) -> None:
        """Emit the open list of plain values as one field."""
        begin, _, depth, path, _, doc, lead = self.rows[0]
        values = [row[4] for row in self.rows[1:]]
        for row in self.rows[1:]:
            self.trace.offsets[row[3]] = self.base + row[0]
        self.rows = []
        self.emit(begin, stop, depth, path, values, doc, lead)

    def flush(self) -> None:
        """Emit the open list as it is: its head and its items one by one."""
        rows, self.rows = self.rows, []
        for row in rows:
            self.emit(*row)

    def close(self, start: int, stop: int, depth: int) -> None:
        if self.rows and depth == self.rows[0][2] + 1:
            self.fold(stop)
        else:
            self.flush()
            self.emit(start, stop, depth - 1, self.paths[depth], None, "break: the end of it", 0)

    def emit(self, start: int, stop: int, depth: int, path: str, value: "Any", doc: str,
             lead: int) -> None:
        offset = self.trace.offsets.get(path)
        self.trace.add(self.base + start, stop - start, path or "item", value, doc, depth,
                       "structure", lead)
        if offset is not None and doc.startswith("break"):
            self.trace.offsets[path] = offset  # a container is where it begins, not its break


def _cbor_head(major: int, count: int) -> bytes:
    """Return the shortest head: 17 -> 17, 18 18, 19 0100 ..."""
    if count < 24:
        return pack(">B", major << 5 | count)
    for extra, code in ((24, "B"), (25, "H"), (26, "I"), (27, "Q")):
        if count < 1 << (8 << extra - 24):
            return pack(">B" + code, major << 5 | extra, count)
    raise ValueError("%s does not fit 64 bits" % shown(count))


def _cbor_float(value: float) -> bytes:
    """Return the shortest of half, single and double precision that holds the float exactly."""
    if value != value:
        return b"\xf9\x7e\x00"
    for head, code in ((0xF9, "e"), (0xFA, "f")):
        try:
            data = pack(">B" + code, head, value)
        except OverflowError:
            continue
        if unpack_from(">" + code, data, 1)[0] == value:
            return data
    return pack(">Bd", 0xFB, value)


def cbor_pack(value: "Any", indefinite: bool = False, sort: bool = False,
              depth: int = 0) -> bytes:
    """Return a value as CBOR: shortest heads and floats, definite strings and arrays.

    Maps keep the dict's order, or with `sort` go by encoded length, then bytes, of the keys (as
    serde_cbor sorts); `indefinite` maps are bf ... ff. ValueError for integers over 64 bits,
    text that is not Unicode (a lone surrogate) and more than MAX_DEPTH containers around an item
    (`depth` of them are there already), TypeError for other types.
    """
    if value is None or value is True or value is False:
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _cbor_head(0, value) if value >= 0 else _cbor_head(1, -1 - value)
    if isinstance(value, float):
        return _cbor_float(value)
    if isinstance(value, str):
        data = encode_text(value)
        return _cbor_head(3, len(data)) + data
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return _cbor_head(2, len(data)) + data
    if depth >= MAX_DEPTH:
        raise ValueError("nested deeper than MAX_DEPTH = %d" % MAX_DEPTH)
    if isinstance(value, (list, tuple)):
        items = [cbor_pack(item, indefinite, sort, depth + 1) for item in value]
        return _cbor_head(4, len(items)) + b"".join(items)
    if isinstance(value, Simple):
        return _cbor_head(7, value.number)
    if hasattr(value, "items"):
        if [key for key in value if isinstance(key, (list, tuple, dict))]:
            raise TypeError("a CBOR map key is no array or map here")
        pairs = [(cbor_pack(key, indefinite, sort, depth + 1),
                  cbor_pack(item, indefinite, sort, depth + 1)) for key, item in value.items()]
        if sort:
            pairs.sort(key=lambda pair: (len(pair[0]), pair[0]))
        data = b"".join([key + item for key, item in pairs])
        return b"\xbf" + data + b"\xff" if indefinite else _cbor_head(5, len(pairs)) + data
    raise TypeError("CBOR has no %s" % type(value).__name__)


def encode_text(text: str, errors: str = "strict") -> bytes:
    """Return text as UTF-8; ValueError (not its subclass UnicodeError) for a lone surrogate."""
    try:
        data = text.encode("utf-8", errors)
    except UnicodeError:
        data = None
    if data is None or (not FULL_PYTHON and _has_surrogate(data)):
        raise ValueError("%s is not Unicode text (a lone surrogate)" % shown(text))
    return data


def _has_surrogate(data: bytes) -> bool:
    """Return whether UTF-8 bytes hold ed a0..bf: MicroPython encodes surrogates."""
    at = data.find(b"\xed")
    while at >= 0:
        if at + 1 < len(data) and data[at + 1] >= 0xA0:
            return True
        at = data.find(b"\xed", at + 1)
    return False


def cbor_loads(data: "Any") -> "Any":
    """Return the value of one CBOR item; bytes behind it, or a broken item, are a FormatError.

    Tags are dropped (2 and 3 make big integers), undefined is None, other simple values opaque.

    >>> cbor_loads(bytes.fromhex("a26161016162820203"))
    {'a': 1, 'b': [2, 3]}
    """
    data = bytes(memoryview(data))
    value, end = cbor_read(data)
    if end != len(data):
        raise FormatError("CBOR: %d bytes behind the item" % (len(data) - end), end)
    return value


def cbor_dumps(value: "Any", *, indefinite: bool = False, sort: bool = False) -> bytes:
    """Return a value as one CBOR item, in the shortest forms; see cbor_pack for the options.

    >>> cbor_dumps({"shape": [2, 300], "x": 1.5}).hex()
    'a2657368617065820219012c6178f93e00'
    """
    return cbor_pack(value, indefinite, sort)


# -- [5c] MessagePack ----------------------------------------------------------------------------
#
# The first byte says type and, if short, value or length; numbers are big-endian:
# 00-7f int, 80-8f map, 90-9f array, a0-bf str, e0-ff int -32..-1, and c0-df by this table.

_MSGPACK = tuple([tuple(row.split(":")) for row in (  # kind:struct code of value or length
    "nil: c1: bool: bool: bin:B bin:H bin:I ext:B ext:H ext:I float:f float:d "
    "int:B int:H int:I int:Q int:b int:h int:i int:q ext: ext: ext: ext: ext: "
    "str:B str:H str:I array:H array:I map:H map:I").split()])  # c7-c9, d4-d8: ext
_WIDTH = {"": 0, "?": 1, "B": 1, "b": 1, "H": 2, "h": 2, "e": 2, "I": 4, "i": 4, "f": 4, "Q": 8,
          "q": 8, "d": 8}


def _msgpack_row(byte: int) -> "Tuple[str, Any, str, int]":
    """Return (kind, value or length if it is in the byte, code, width) of a first byte."""
    if byte < 0x80 or byte >= 0xE0:
        return "int", byte if byte < 0x80 else byte - 256, "", 0
    if byte < 0xC0:
        return ("str", byte & 31, "", 0) if byte >= 0xA0 else (
            "map" if byte < 0x90 else "array", byte & 15, "", 0)
    kind, code = _MSGPACK[byte - 0xC0]
    fixed = {0xC2: False, 0xC3: True, 0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}.get(byte)
    return kind, fixed, ">" + code if code else "", _WIDTH[code]


if FULL_PYTHON:  # a table is faster; on boards it would take 10 KB
    _MSGPACK_FIRST = tuple([_msgpack_row(byte) for byte in range(256)])


def msgpack_head(data: "Any", pos: int, end: int) -> "Tuple[str, Any, int]":
    """Return (kind, value or length, position behind the head) of what begins at data[pos].

    Kinds: nil bool int float (with their value), str bin ext array map (with their length).
    """
    if pos >= end:
        raise FormatError("the data end where a value should begin", pos)
    if FULL_PYTHON:
        kind, value, code, width = _MSGPACK_FIRST[data[pos]]
    else:
        kind, value, code, width = _msgpack_row(data[pos])
    if width:
        if pos + width >= end:
            raise FormatError("%s needs %d bytes, %d left" % (kind, width, end - pos - 1), pos)
        value, = unpack_from(code, data, pos + 1)
    elif kind == "c1":
        raise FormatError("byte c1 is never used in MessagePack", pos)
    return kind, value, pos + 1 + width


def msgpack_text(data: bytes) -> str:
    """Return str bytes as text; bytes that are not UTF-8 survive as surrogates (PEP 383)."""
    try:
        return data.decode()
    except UnicodeError:
        pass
    if FULL_PYTHON:
        return data.decode("utf-8", "surrogateescape")
    raise Unsupported("a name that is not UTF-8 needs the surrogateescape handler")


def _msgpack_ext(code: int, data: bytes, start: int) -> "Tuple[int, Any]":
    """Return (type, bytes), or (seconds, nanoseconds) of a timestamp."""
    if code != -1 or len(data) not in (4, 8, 12):
        return code, data
    if len(data) == 4:
        return unpack_from(">I", data, 0)[0], 0
    if len(data) == 8:
        both, = unpack_from(">Q", data, 0)
        seconds, nanoseconds = both & (1 << 34) - 1, both >> 34
    else:
        nanoseconds, seconds = unpack_from(">Iq", data, 0)
    if nanoseconds > 999999999:
        raise FormatError("MessagePack: timestamp with %d nanoseconds" % nanoseconds, start)
    return seconds, nanoseconds


def msgpack_read(data: "Any", pos: int = 0, end: "Optional[int]" = None) -> "Tuple[Any, int]":
    """Return (value, position behind it) of the MessagePack value at data[pos:end].

    str is text, bin a view of the bytes, ext a pair (type, bytes), a timestamp a pair (seconds,
    nanoseconds). A map key twice is a FormatError; an array or map as a key is Unsupported.
    """
    end = len(data) if end is None else end
    view = memoryview(data)
    stack: "List[Any]" = []
    box: "Any" = []
    root = box
    left, keyed, key = 1, False, _NOTHING
    while True:
        start = pos
        kind, value, pos = msgpack_head(data, pos, end)
        if kind == "array" or kind == "map":
            if keyed and key is _NOTHING:
                raise Unsupported("MessagePack: a map key is an array or a map", start)
            if len(stack) >= MAX_MSGPACK_DEPTH:
                raise FormatError("MessagePack: nested deeper than MAX_MSGPACK_DEPTH = %d"
                                  % MAX_MSGPACK_DEPTH, start)
            if value * (1 if kind == "array" else 2) > end - pos:
                raise FormatError("MessagePack: %s of %d items, %d bytes left"
                                  % (kind, value, end - pos), start)
            new: "Any" = [] if kind == "array" else Map()
            if keyed:
                box[key] = new
            else:
                box.append(new)
            stack.append((box, left - 1, keyed))
            box, left, keyed, key = new, value, kind == "map", _NOTHING
        else:
            if kind in ("str", "bin", "ext"):
                stop = pos + value + (kind == "ext")
                if stop > end:
                    raise FormatError("MessagePack: %s of %d bytes, %d left"
                                      % (kind, value, end - pos), start)
                if kind == "str":
                    value = msgpack_text(bytes(view[pos:stop]))
                elif kind == "bin":
                    value = view[pos:stop]
                else:
                    code, = unpack_from(">b", data, pos)
                    value = _msgpack_ext(code, bytes(view[pos + 1:stop]), start)
                pos = stop
            if not keyed:
                box.append(value)
                left -= 1
            elif key is _NOTHING:
                key = bytes(value) if kind == "bin" else value
                if key in box or (key != key and [k for k in box if k != k]):
                    raise FormatError("MessagePack: key %s twice" % shown(key), start)
            else:
                box[key] = value
                key = _NOTHING
                left -= 1
        while left == 0:
            if not stack:
                return root[0], pos
            box, left, keyed = stack.pop()
            key = _NOTHING


if FULL_PYTHON:
    def msgpack_uint32s(data: bytes, at: int, count: int) -> "Optional[List[int]]":
        """Return `count` integers at once if all are ce + uint32 and there, else None."""
        if at + 5 * count > len(data):
            return None
        pairs = unpack_from(">" + "BI" * count, data, at)
        for i in range(0, 2 * count, 2):
            if pairs[i] != 0xCE:
                return None
        return [pairs[i] for i in range(1, 2 * count, 2)]

    def msgpack_strs(data: bytes, at: int, count: int) -> "Tuple[Optional[List[Any]], int]":
        """Return (the bytes of `count` strs at once, position behind them), or (None, _).

        None unless all are short (a0 to bf) and lie in the data.
        """
        parts = []
        end = len(data)
        while count and at < end and 0xA0 <= data[at] < 0xC0:
            stop = at + data[at] - 0x9F
            parts.append(data[at + 1:stop])
            at = stop
            count -= 1
        return None if count or at > end else parts, at


def msgpack_size(kind: str, count: int) -> bytes:
    """Return the shortest head of a str, bin, array or map of `count` bytes or items."""
    short = {"map": (0x80, 16), "array": (0x90, 16), "str": (0xA0, 32)}.get(kind)
    if short is not None and count < short[1]:
        return pack(">B", short[0] | count)
    for i, row in enumerate(_MSGPACK):
        if row[0] == kind and row[1] and count < 1 << 8 * _WIDTH[row[1]]:
            return pack(">B" + row[1], 0xC0 + i, count)
    raise ValueError("a %s of %d does not fit 32 bits" % (kind, count))


def _msgpack_int(value: int) -> bytes:
    if -32 <= value < 128:
        return pack(">b", value)
    for i in range(0xCC, 0xD0) if value >= 0 else range(0xD0, 0xD4):
        code = _MSGPACK[i - 0xC0][1]
        bits = 8 * _WIDTH[code] - (value < 0)
        if -(1 << bits) <= value < 1 << bits:
            return pack(">B" + code, i, value)
    raise ValueError("%s does not fit 64 bits" % shown(value))


def msgpack_pack(value: "Any", typed: bool = False, depth: int = 0) -> bytes:
    """Return a value as MessagePack in the shortest forms; `typed`: int is uint32, float float32.

    The typed form is what primitiv writes: ce for every integer, ca for every float. ValueError
    for what does not fit.
    """
    if value is None:
        return b"\xc0"
    if value is True or value is False:
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if not typed:
            return _msgpack_int(value)
        if not 0 <= value < 1 << 32:
            raise ValueError("%s does not fit uint32" % shown(value))
        return pack(">BI", 0xCE, value)
    if isinstance(value, float):
        if not typed:
            return pack(">Bd", 0xCB, value)
        if to_inf(value, FLOAT32_LIMIT) != value and value == value:
            raise ValueError("%r does not fit float32" % value)
        return pack(">Bf", 0xCA, value)
    if isinstance(value, str):
        data = encode_text(value, "surrogateescape" if FULL_PYTHON else "strict")
        return msgpack_size("str", len(data)) + data
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return msgpack_size("bin", len(data)) + data
    if depth >= MAX_MSGPACK_DEPTH:
        raise ValueError("nested deeper than MAX_MSGPACK_DEPTH = %d" % MAX_MSGPACK_DEPTH)
    if isinstance(value, (list, tuple)):
        return msgpack_size("array", len(value)) + b"".join(
            [msgpack_pack(item, typed, depth + 1) for item in value])
    if hasattr(value, "items"):
        return msgpack_size("map", len(value)) + b"".join(
            [msgpack_pack(key, typed, depth + 1) + msgpack_pack(item, typed, depth + 1)
             for key, item in value.items()])
    raise ValueError("MessagePack has no %s" % type(value).__name__)


def msgpack_loads(data: "Any") -> "Any":
    """Return the value of one MessagePack value; bytes behind it are a FormatError.

    >>> msgpack_loads(b"\\x92\\x01\\xa1a")
    [1, 'a']
    """
    data = bytes(memoryview(data))
    value, end = msgpack_read(data)
    if end != len(data):
        raise FormatError("MessagePack: %d bytes behind the value" % (len(data) - end), end)
    return value


def msgpack_dumps(value: "Any", *, typed: bool = False) -> bytes:
    """Return a value as MessagePack; see msgpack_pack.

    >>> msgpack_dumps([1, "a"]).hex(), msgpack_dumps(1, typed=True).hex()
    ('9201a161', 'ce00000001')
    """
    return msgpack_pack(value, typed)


# -- [5d] FlatBuffers ----------------------------------------------------------------------------
#
# Positions count from the buffer's first byte.  A table begins with an i32 s: its vtable is at
# table - s and tells where each slot lies in the table: u16 length of the vtable, u16 length of
# the table, then one u16 per slot (0: absent).  Strings, vectors and tables are stored in the
# table as u32 offsets, forward from the offset's own position.


class FlatReader:
    """One FlatBuffer: every read is checked against its end; a vtable is checked once."""

    def __init__(self, data: "Any", base: int = 0, trace: "Optional[Trace]" = None) -> None:
        self.data = data
        self.end = len(data)
        self.base = base  # offset in the file of the first byte, for errors and the trace
        self.trace = trace
        self.prefix = ""  # path of the table being read, for errors and the trace
        self.depth = 0
        self._slots: "Dict[int, Tuple[int, ...]]" = {}
        self._plans: "Dict[Any, Any]" = {}

    def error(self, what: str, pos: int, field: str) -> FormatError:
        return FormatError("FlatBuffers: " + what, self.base + pos, self.prefix + field)

    def tell(self, pos: int, nbytes: int, field: str, value: "Any", doc: str) -> None:
        if self.trace is not None:
            self.trace.add(self.base + pos, nbytes, self.prefix + field, value, doc, self.depth)

    def target(self, pos: int, field: str) -> int:
        """Return where the offset stored at `pos` leads."""
        if pos + 4 > self.end:
            raise self.error("the data end inside an offset", pos, field)
        step, = unpack_from("<I", self.data, pos)
        if step == 0 or pos + step + 4 > self.end:
            raise self.error("offset %d leads out of the data" % step if step
                             else "offset is zero", pos, field)
        return int(pos + step)

    def slots(self, table: int, field: str = "vtable") -> "Tuple[int, ...]":
        """Return the distances from the table to its fields; 0: absent."""
        if table < 0 or table + 4 > self.end:
            raise self.error("table out of bounds", max(table, 0), field)
        vtable = table - unpack_from("<i", self.data, table)[0]
        known = self._slots.get(vtable)
        if known is not None:
            return known
        if vtable < 0 or vtable + 4 > self.end:
            raise self.error("vtable out of bounds", table, field)
        nbytes, table_bytes = unpack_from("<HH", self.data, vtable)
        if nbytes < 4 or nbytes & 1 or vtable + nbytes > self.end:
            raise self.error("vtable of %d bytes" % nbytes, vtable, field)
        slots = unpack_from("<%dH" % (nbytes // 2 - 2), self.data, vtable + 4)
        self._slots[vtable] = slots
        self.tell(vtable, nbytes, field, list(slots), "%d bytes, table %d" % (
            nbytes, table_bytes))
        return slots

    def fields_one_by_one(self, table: int, rows: "Tuple[Any, ...]") -> "List[Any]":
        """Return the fields of a table by its rows (name, type, default, doc), one per slot.

        Type: a struct code, or "string", "[I]", "[table]", "table": these give the position that
        the offset leads to, None where absent.
        """
        slots = self.slots(table, "vtable")
        distance, = unpack_from("<i", self.data, table)
        self.tell(table, 4, "table", distance, "vtable at %d - %d" % (table, distance))
        out = []
        for slot, (name, code, default, doc) in enumerate(rows):
            value = default
            if slot < len(slots) and slots[slot]:
                pos = table + slots[slot]
                if code in _WIDTH:
                    value = self.scalar(table, pos, code, name)
                    self.tell(pos, _WIDTH[code], name, value, doc)
                else:
                    if pos + 4 > self.end:
                        raise self.error("field out of bounds", table, name)
                    value = self.target(pos, name)
                    self.tell(pos, 4, name, value - pos, "offset: %s at %d" % (code, value))
            elif self.trace is not None:  # an error in what is absent is one of the table
                self.trace.offsets[self.prefix + name] = self.base + table
            out.append(value)
        return out

    if FULL_PYTHON:
        def _plan(self, table: int, rows: "Tuple[Any, ...]") -> "Any":
            """Return how to read these slots of tables with this vtable by one unpack, or None.

            (struct format, bytes, defaults, for each slot its place in the values + the defaults,
            (slot, distance) of the offsets).
            """
            slots = self.slots(table)
            found = sorted([(slots[i], i) for i in range(min(len(rows), len(slots))) if slots[i]])
            text, at, offsets = "<", 4, []
            order = [len(found) + i for i in range(len(rows))]
            for place, (distance, slot) in enumerate(found):
                code = rows[slot][1]
                if distance < at:  # fields that overlap: legal for a reader, but one by one
                    return None
                text += "%dx" % (distance - at) if distance > at else ""
                text += code if code in _WIDTH else "I"
                at = distance + _WIDTH.get(code, 4)
                order[slot] = place
                if code not in _WIDTH:
                    offsets.append((slot, distance))
            return text, at, tuple([row[2] for row in rows]), order, offsets

        def fields(self, table: int, rows: "Tuple[Any, ...]") -> "List[Any]":
            """As fields_one_by_one(), by one unpack where the vtable allows that."""
            data, end = self.data, self.end
            if table + 4 > end:
                raise self.error("table out of bounds", table, "table")
            vtable = table - unpack_from("<i", data, table)[0]
            plan = self._plans.get((vtable, id(rows)), _NOTHING)
            if plan is _NOTHING:
                plan = self._plans[(vtable, id(rows))] = self._plan(table, rows)
            if plan is None or self.trace is not None or table + plan[1] > end:
                return self.fields_one_by_one(table, rows)
            text, _, defaults, order, offsets = plan
            pool = unpack_from(text, data, table + 4) + defaults
            out = [pool[i] for i in order]
            for slot, distance in offsets:
                step = out[slot]
                distance += table
                if step == 0 or distance + step + 4 > end:
                    return self.fields_one_by_one(table, rows)  # it raises for the first slot
                out[slot] = distance + step
            return out
    else:
        fields = fields_one_by_one

    def scalar(self, table: int, pos: int, code: str, field: str) -> "Any":
        """Return the number at a position inside a table."""
        if pos + struct.calcsize("<" + code) > self.end:
            raise self.error("field out of bounds", table, field)
        return unpack_from("<" + code, self.data, pos)[0]

    def string(self, pos: int, field: str) -> str:
        """Return the text of the string at a position: u32 length, UTF-8, NUL."""
        count, = unpack_from("<I", self.data, pos)
        text: "Any" = None
        stop = pos + 4 + count
        if stop >= self.end:
            raise self.error("string of %d bytes, %d left" % (count, self.end - pos - 4),
                             pos, field)
        if self.data[stop]:
            raise self.error("no NUL behind the string", pos, field)
        try:
            text = self.data[pos + 4:stop].decode()
        except UnicodeError:
            pass
        if text is None:
            raise self.error("text is not UTF-8", pos, field)
        if self.trace is not None:
            self.tell(pos, count + 5, field, text, "string(%d) and NUL" % count)
        return str(text)

    def vector(self, pos: int, itemsize: int, field: str) -> int:
        """Return the element count of the vector at a position, checked against the end."""
        count, = unpack_from("<I", self.data, pos)
        if count > (self.end - pos - 4) // itemsize:
            raise self.error("vector of %d elements, %d bytes left" % (count, self.end - pos - 4),
                             pos, field)
        return int(count)

    def scalars(self, pos: int, code: str, field: str, limit: int = 0) -> "Tuple[Any, ...]":
        """Return the numbers of the vector at a position; over `limit` of them: Unsupported."""
        itemsize = _WIDTH[code] if code in _WIDTH else struct.calcsize("<" + code)
        count, = unpack_from("<I", self.data, pos)
        if count > (self.end - pos - 4) // itemsize:
            self.vector(pos, itemsize, field)  # raises
        if limit and count > limit:
            raise Unsupported("FlatBuffers: %d elements, %d is the limit" % (count, limit),
                              self.base + pos, self.prefix + field)
        values = unpack_from("<%d%s" % (count, code), self.data, pos + 4)
        if self.trace is not None:
            self.tell(pos, 4 + count * itemsize, field, list(values),
                      "vector of %s" % counted(count, "number"))
        return values

    def offsets(self, pos: int, field: str) -> "List[int]":
        """Return where the offsets of the vector at a position lead."""
        count = self.vector(pos, 4, field)
        if self.trace is not None:
            self.tell(pos, 4, field, count, "vector of %s" % counted(count, "offset"))
        targets = []
        at, end = pos + 4, self.end - 4
        for i, step in enumerate(unpack_from("<%dI" % count, self.data, at)):
            if step == 0 or at + step > end:
                self.target(at, "%s[%d]" % (field, i))
            if self.trace is not None:
                self.tell(at, 4, "%s[%d]" % (field, i), step, "offset: to %d" % (at + step))
            targets.append(at + step)
            at += 4
        return targets


class FlatTable:
    """A table of any FlatBuffer, read by slot number; every read is checked against the data.

    FlatTable(data) is the root table. `.slots` lists the slots that are stored. A field that is
    absent gives the default, None, or an empty list. FormatError where an offset leads astray.

    >>> table = FlatTable(bytes.fromhex("0c00000006000800040000000800000002000000"))
    >>> table.slots, table.scalar(0, "h")
    ([0], 2)
    """

    def __init__(self, data: "Any", pos: "Optional[int]" = None,
                 reader: "Optional[FlatReader]" = None) -> None:
        self._reader = FlatReader(bytes(data)) if reader is None else reader
        self._pos = self._reader.target(0, "root") if pos is None else pos
        self._slots = self._reader.slots(self._pos)
        self.slots = [i for i, distance in enumerate(self._slots) if distance]

    def _at(self, slot: int, code: str = "I", nbytes: int = 1) -> "Optional[int]":
        if not _WIDTH.get(code) or nbytes < 1:
            raise ValueError("no element has the code %r, or %d bytes" % (code, nbytes))
        if 0 <= slot < len(self._slots) and self._slots[slot]:
            return self._pos + self._slots[slot]
        return None

    def _target(self, slot: int) -> "Optional[int]":
        at = self._at(slot)
        return None if at is None else self._reader.target(at, "slot %d" % slot)

    def scalar(self, slot: int, code: str, default: "Any" = None) -> "Any":
        """Return a number stored in the table; `code` is its struct code ("I", "d", "?")."""
        at = self._at(slot, code)
        return default if at is None else self._reader.scalar(
            self._pos, at, code, "slot %d" % slot)

    def struct(self, slot: int, nbytes: int) -> "Optional[bytes]":
        """Return the bytes of a struct stored in the table."""
        at = self._at(slot, "I", nbytes)
        if at is None:
            return None
        if at + nbytes > self._reader.end:
            raise self._reader.error("field out of bounds", self._pos, "slot %d" % slot)
        return bytes(self._reader.data[at:at + nbytes])

    def string(self, slot: int) -> "Optional[str]":
        at = self._target(slot)
        return None if at is None else self._reader.string(at, "slot %d" % slot)

    def table(self, slot: int) -> "Optional[FlatTable]":
        at = self._target(slot)
        return None if at is None else FlatTable(None, at, self._reader)

    def scalars(self, slot: int, code: str) -> "List[Any]":
        """Return a vector of numbers."""
        self._at(slot, code)
        at = self._target(slot)
        return [] if at is None else list(self._reader.scalars(at, code, "slot %d" % slot))

    def structs(self, slot: int, nbytes: int) -> "List[bytes]":
        """Return a vector of structs of nbytes bytes each."""
        self._at(slot, "I", nbytes)
        at = self._target(slot)
        if at is None:
            return []
        count = self._reader.vector(at, nbytes, "slot %d" % slot)
        data = self._reader.data
        return [bytes(data[i:i + nbytes])
                for i in range(at + 4, at + 4 + count * nbytes, nbytes)]

    def _places(self, slot: int) -> "List[int]":
        at = self._target(slot)
        return [] if at is None else self._reader.offsets(at, "slot %d" % slot)

    def strings(self, slot: int) -> "List[str]":
        """Return a vector of strings."""
        return [self._reader.string(place, "slot %d" % slot) for place in self._places(slot)]

    def tables(self, slot: int) -> "List[FlatTable]":
        """Return a vector of tables."""
        return [FlatTable(None, place, self._reader) for place in self._places(slot)]


class FlatBuilder:
    """Builds a FlatBuffer from its end to its front, with the bytes of the Rust builder.

    string(), scalars(), offsets() and table() return a place: the distance from the buffer's
    end to the object. Children come before the tables that point to them; finish(root) gives
    the bytes. Equal vtables are stored once.

    >>> builder = FlatBuilder()
    >>> name = builder.string("w")
    >>> data = builder.finish(builder.table([(0, "offset", name, None), (1, "h", 7, 0)]))
    >>> FlatTable(data).string(0), FlatTable(data).scalar(1, "h")
    ('w', 7)
    """

    def __init__(self) -> None:
        self._parts: "List[bytes]" = []  # last part first
        self._used = 0
        self._align_max = 1
        self._vtables: "Dict[bytes, int]" = {}

    def _put(self, data: bytes) -> int:
        self._parts.append(data)
        self._used += len(data)
        return self._used

    def _align(self, size: int, nbytes: int) -> None:
        """Pad so that `size` divides the place after `nbytes` more bytes."""
        if size > self._align_max:
            self._align_max = size
        extra = -(self._used + nbytes) % size
        if extra:
            self._put(bytes(extra))

    def string(self, text: str) -> int:
        data = encode_text(text) + b"\0"
        self._align(4, len(data))
        return self._put(pack("<I", len(data) - 1) + data)

    def scalars(self, code: str, values: "Any") -> int:
        """Add a vector of numbers. Aligned to the element size also when it is empty."""
        size = struct.calcsize("<" + code)
        self._align(max(4, size), size * len(values))
        return self._put(pack("<I%d%s" % (len(values), code), len(values), *values))

    def offsets(self, places: "List[int]") -> int:
        """Add a vector of strings or tables by their places."""
        self._align(4, 4 * len(places))
        top = self._used + 4 * len(places)
        steps = [top - 4 * i - place for i, place in enumerate(places)]
        return self._put(pack("<I%dI" % len(steps), len(steps), *steps))

    def table(self, fields: "Iterable[Tuple[int, str, Any, Any]]") -> int:
        """Add a table of (slot, code, value, default), the last in memory first.

        The code is a struct code or "offset"; a value equal to its default is left out, as is
        an offset of None.
        """
        start = self._used
        stored: "List[Tuple[int, int]]" = []
        for slot, code, value, default in fields:
            if (code != "offset" and not _WIDTH.get(code)) or not 0 <= slot < 32765 or slot in [
                    known for known, _ in stored]:
                raise ValueError("slot %s with the code %s" % (shown(slot), shown(code)))
            if value is None or (code != "offset" and value == default):
                continue
            if code == "offset" and not 0 < value <= self._used:
                raise ValueError("slot %d: there is no place %s yet" % (slot, shown(value)))
            if code == "offset":
                self._align(4, 4)
                stored.append((slot, self._put(pack("<I", self._used + 4 - value))))
            else:
                size = _WIDTH[code]
                self._align(size, size)
                stored.append((slot, self._put(pack("<" + code, value))))
        self._align(4, 4)
        place = self._used + 4
        count = max([slot for slot, _ in stored]) + 1 if stored else 0
        distances = [0] * count
        for slot, at in stored:
            distances[slot] = place - at
        vtable = pack("<%dH" % (count + 2), 4 + 2 * count, place - start, *distances)
        known = self._vtables.get(vtable)
        if known is not None:
            return self._put(pack("<i", known - place))
        self._put(pack("<i", len(vtable)))
        self._vtables[vtable] = self._put(vtable)
        return place

    def finish(self, root: int) -> bytes:
        """Return the buffer whose root table is at this place."""
        self._align(self._align_max, 4)
        self._put(pack("<I", self._used + 4 - root))
        return b"".join(reversed(self._parts))


# -- [6] Tensor, File ----------------------------------------------------------------------------


class Held(Memory):
    """Bytes in memory that belong to no file: of tensor(), astype(), contiguous()."""


def pieces(view: "Any", nbytes: int) -> "Iterator[Any]":
    """Yield a view in parts of nbytes bytes (the last one may be shorter)."""
    for start in range(0, len(view), nbytes):
        yield view[start:start + nbytes]


def merge_dims(shape: "Tuple[int, ...]",
               strides: "Tuple[int, ...]") -> "Tuple[List[int], List[int]]":
    """Return shape and strides without dimensions of 1, neighbours merged where they can be."""
    dims: "List[int]" = []
    steps: "List[int]" = []
    for n, stride in zip(shape, strides):
        if n == 1:
            continue
        if dims and steps[-1] == n * stride:
            dims[-1] *= n
            steps[-1] = stride
        else:
            dims.append(n)
            steps.append(stride)
    return dims, steps


def gather(view: "Any", first: int, shape: "Tuple[int, ...]", strides: "Tuple[int, ...]",
           itemsize: int) -> "Iterator[Any]":
    """Yield the elements of a strided array row-major, in blocks of about BLOCK bytes.

    `view` holds its bytes, element (0, ..., 0) at `first`; strides are in bytes, of any sign.
    The cost is one slice assignment per run of the longest dimension, not one step per element.
    """
    if 0 in shape:
        return
    dims, steps = merge_dims(shape, strides)
    if not dims or (len(dims) == 1 and steps[0] == itemsize):
        nbytes = itemsize * count_elements(dims)
        for piece in pieces(view[first:first + nbytes], BLOCK):
            yield piece
        return
    todo = [(first, dims)]
    while todo:
        first, dims = todo.pop()
        nbytes = itemsize * count_elements(dims)
        if nbytes <= BLOCK:
            yield _gather_block(view, first, dims, steps, itemsize, nbytes)
            continue
        axis = 0
        while dims[axis] == 1:
            axis += 1
        n = dims[axis]
        rows = max(1, min(n // 2, BLOCK * n // nbytes))
        parts = []
        for start in range(0, n, rows):
            part = dims[:axis] + [min(rows, n - start)] + dims[axis + 1:]
            parts.append((first + start * steps[axis], part))
        todo.extend(reversed(parts))


def _gather_block(view: "Any", first: int, dims: "List[int]", steps: "List[int]", itemsize: int,
                  nbytes: int) -> bytearray:
    """Return one block of gather(): loops outside, the longest dimension as one slice."""
    out = bytearray(nbytes)
    places = row_major(tuple(dims), itemsize)
    longest = dims.index(max(dims))
    n, step, place = dims[longest], steps[longest], places[longest]
    starts = [(0, first)]  # (place in out, place in view) of each run along the longest dimension
    for axis, count in enumerate(dims):
        if axis != longest:
            starts = [(to + i * places[axis], at + i * steps[axis])
                      for to, at in starts for i in range(count)]
    if FULL_PYTHON:
        code = BITS_CODE[itemsize]
        target = typed(out, code)
        low = first % itemsize
        source = typed(view[low:low + (len(view) - low) // itemsize * itemsize], code)
        place, step = place // itemsize, step // itemsize
        starts = [(to // itemsize, (at - low) // itemsize) for to, at in starts]
        tile = n if -128 < step < 128 else 512  # far steps: so few that their pages stay cached
        for i in range(0, n, tile):
            last = min(tile, n - i) - 1
            for to, at in starts:
                to, at = to + i * place, at + i * step
                stop = at + last * step + (1 if step > 0 else -1)
                target[to:to + last * place + 1:place] = source[
                    at:None if stop < 0 else stop:step]
        return out
    for to, at in starts:
        for i in range(n):
            out[to + i * place:to + i * place + itemsize] = \
                view[at + i * step:at + i * step + itemsize]
    return out


class Tensor:
    """A named, typed, strided array over bytes that lie in a file, a buffer or memory.

    `.name`, `.dtype` ("float32" ...; None if the file has one that is unknown here), `.shape`,
    `.attrs` (facts of the format that it came from, `.format`). Nothing is read before it is
    asked for. Reading raises Unsupported (unknown dtype or encoding), FormatError (damaged data)
    or ValueError (the File was closed). numpy.asarray(t) works, zero-copy where `.zero_copy`.
    """

    __slots__ = ("name", "dtype", "shape", "format", "_attrs", "_source", "_offset", "_stored",
                 "_strides", "_order", "_encoding", "_problem")
    _sparse = False

    def __init__(self, name: str, dtype: "Optional[str]", shape: "Tuple[int, ...]",
                 source: "Any", offset: int, stored: int,
                 attrs: "Any" = (), format: "Optional[str]" = None,
                 strides: "Optional[Tuple[int, ...]]" = None, order: str = "<",
                 encoding: str = "raw", problem: "Optional[str]" = None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self._attrs = attrs  # a dict, or a tuple (key, value, ...) that becomes one when asked for
        self.format = format
        self._source = source
        self._offset = offset  # of the first element in the source (of the stored bytes if coded)
        self._stored = stored  # bytes; of the whole base in a strided sub-tensor
        self._strides = strides  # bytes; None: row-major without gaps
        self._order = order  # byte order of the stored elements
        self._encoding = encoding  # "raw" or "zstd"
        self._problem = problem  # why the values cannot be read; None: they can

    # what it is

    @property
    def attrs(self) -> "Dict[str, Any]":
        """Facts of the format that the tensor came from (or for the one it will be saved to)."""
        if type(self._attrs) is tuple:
            flat, self._attrs = self._attrs, Map()
            for i in range(0, len(flat), 2):
                self._attrs[flat[i]] = flat[i + 1]
        attrs: "Dict[str, Any]" = self._attrs
        return attrs

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return count_elements(self.shape)

    @property
    def itemsize(self) -> "Optional[int]":
        """Bytes per element; None where the dtype has no fixed one."""
        return ITEMSIZE.get(self.dtype or "")

    @property
    def nbytes(self) -> int:
        """size x itemsize in bytes; what is stored where the dtype has no itemsize."""
        return self._stored if self.itemsize is None else self.size * self.itemsize

    @property
    def strides(self) -> "Tuple[int, ...]":
        """Bytes from one element to the next, per dimension, in the decoded data."""
        if self._strides is not None:
            return self._strides
        return row_major(self.shape, self.itemsize or 1)

    @property
    def offset(self) -> "Optional[int]":
        """Offset in the file of the first element (of the stored bytes if compressed), or None."""
        return None if isinstance(self._source, Held) else self._offset

    @property
    def components(self) -> "Optional[Dict[str, Tensor]]":
        """The parts of a sparse tensor: values, and indptr and indices (csr) or coords (coo)."""
        return None

    def todense(self) -> "Tensor":
        """Return a sparse tensor with its zeros, in memory; a dense one as it is."""
        return self

    @property
    def scheme(self) -> "Optional[Dict[str, Any]]":
        """How a quantized tensor is stored; None for others."""
        self._not_quantized()
        return None

    @property
    def values(self) -> "Tensor":
        """The stored numbers of a quantized tensor, before scaling."""
        raise AttributeError(self._not_quantized())

    @property
    def scales(self) -> "Tensor":
        """The scales of a quantized tensor: one, or one per block."""
        raise AttributeError(self._not_quantized())

    def dequantize(self) -> "Tensor":
        """Return values x scales of a quantized tensor as float32, in memory."""
        raise self._error(self._not_quantized(), Unsupported)

    def _not_quantized(self) -> "Any":
        if self.dtype == "qfloat":
            beyond("Quantized")
        return "not a quantized tensor"

    def _dense_attrs(self) -> "Dict[str, Any]":
        """Return the attrs but for those that say how a sparse tensor is stored."""
        return self.attrs

    def _ranges(self) -> "List[Tuple[int, int, str]]":
        """Return (offset, nbytes, label) of what it takes in the file."""
        return [(self._offset, self._stored, self.name)]

    def __repr__(self) -> str:
        return "<Tensor %s %s %s%s>" % (
            quoted(self.name), self.dtype, shown(list(self.shape)),
            "" if self.format is None else " of " + self.format)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth of %d elements is ambiguous; ask for .size or `is None`"
                             % self.size)
        return bool(self.item())

    def _error(self, what: str, kind: "Type[FormatError]" = FormatError,
               field: str = "data") -> FormatError:
        return kind(what, self.offset, field, self.name, self._source.path, "sizes")

    def _check(self) -> int:
        """Return the itemsize; raise Unsupported where the elements cannot be read."""
        itemsize = ITEMSIZE.get(self.dtype or "")
        if self._problem is not None or itemsize is None:
            raise self._error(self._problem or "%s has no plain elements" % self.dtype,
                              Unsupported)
        return itemsize

    # its bytes

    def _span(self) -> "Tuple[int, int]":
        """Return where the first and behind the last byte lie, relative to element (0, ..., 0)."""
        low, high = 0, self.itemsize or 1
        for n, stride in zip(self.shape, self.strides):
            if n == 0:
                return 0, 0
            low += min(0, (n - 1) * stride)
            high += max(0, (n - 1) * stride)
        return low, high

    @property
    def raw(self) -> "Any":
        """The bytes as stored: a read-only memoryview, a copy only without mapping and buffer.

        Of a strided sub-tensor: the span from its first to its last byte.
        """
        if self._strides is None:
            return self._source.view(self._offset, self._stored)
        low, high = self._span()
        return self._source.view(self._offset + low, high - low)

    def _gap_free(self) -> bool:
        if self._strides is None:
            return True
        low, high = self._span()
        return high - low == self.nbytes

    @property
    def zero_copy(self) -> bool:
        """Whether `.data` shows the stored bytes themselves."""
        return (self._problem is None and self._encoding == "raw" and self.itemsize is not None
                and (self._order == NATIVE or self.itemsize == 1)
                and self._gap_free() and bool(self._source.zero_copy))

    @property
    def data(self) -> "Any":
        """The elements as a flat typed memoryview in storage order and native byte order.

        Zero-copy where `.zero_copy`, else decoded anew at each call. float16 and bfloat16 come
        as their bits ('H'). A whole primitiv tensor is column-major; a sub-tensor with gaps comes
        as a row-major copy.
        """
        itemsize = self._check()
        assert self.dtype is not None
        code = BITS_CODE[2] if itemsize == 2 and self.dtype in FLOATS else STRUCT_CODE[self.dtype]
        if self._encoding == "raw" and self._gap_free():
            raw = self.raw
            return typed(raw if self._order == NATIVE or itemsize == 1
                         else swap(raw, itemsize), code)
        data = self.tobytes()
        return typed(data if NATIVE == "<" or itemsize == 1 else swap(data, itemsize), code)

    def _blocks(self) -> "Iterator[Any]":
        """Yield the elements as row-major little-endian bytes, in blocks of bounded size.

        A plain tensor of a mapping or buffer comes as one view, which costs no memory.
        """
        if self.dtype == "qfloat":
            return self._stored_blocks()
        itemsize = self._check()
        if self._encoding == "zstd":
            return self._zstd_blocks()
        if self._strides is not None:
            low, _ = self._span()
            blocks = gather(self.raw, -low, self.shape, self._strides, itemsize)
        elif self._order == "<" or itemsize == 1:
            return self._stored_blocks()
        else:
            blocks = self._stored_blocks(BLOCK)
        if self._order == "<" or itemsize == 1:
            return blocks
        return (swap(block, itemsize) for block in blocks)

    def _stored_blocks(self, limit: int = 0) -> "Iterator[Any]":
        """Yield the stored bytes as they are: in one view, or in parts of BLOCK bytes."""
        if not self._stored:
            yield self._source.view(self._offset, 0)  # a closed File says so
        elif self._source.zero_copy and not limit:
            view = self.raw  # the first one makes the mapping, or finds that there is none
            if self._source.zero_copy:
                yield view
                return
        for start in range(0, self._stored, BLOCK):
            yield self._source.view(self._offset + start, min(BLOCK, self._stored - start))

    def _zstd_blocks(self) -> "Iterator[Any]":
        error: "Optional[FormatError]" = None
        try:
            for block in beyond("zstd_blocks")(self._source, self._offset, self._stored,
                                               self.nbytes):
                yield block
        except FormatError as caught:
            error = caught
        if error is not None:
            raise self._error(error.what, type(error))

    def _copy(self, **changes: "Any") -> "Tensor":
        """Return the same tensor with some of the constructor's arguments changed."""
        args: "Dict[str, Any]" = {
            "name": self.name, "dtype": self.dtype, "shape": self.shape, "source": self._source,
            "offset": self._offset, "stored": self._stored,
            "attrs": self._attrs if type(self._attrs) is tuple else Map(self._attrs.items()),
            "format": self.format, "strides": self._strides, "order": self._order,
            "encoding": self._encoding, "problem": self._problem}
        args.update(changes)
        return Tensor(**args)

    def _held(self, data: "Any", dtype: "Optional[str]" = None) -> "Tensor":
        """Return a tensor of the same shape over row-major little-endian bytes in memory."""
        return self._copy(source=Held(data), offset=0, stored=len(data), strides=None, order="<",
                          encoding="raw", dtype=dtype or self.dtype)

    def _decoded(self) -> "Tensor":
        """Return it with bytes that can be read anywhere: a large zstd one in a spool file."""
        if self._encoding == "raw":
            return self
        if FULL_PYTHON and self.nbytes > 32 * BLOCK:
            try:
                from mmap import mmap
                from tempfile import TemporaryFile
            except ImportError:
                return self.contiguous()
            with TemporaryFile() as spool:
                for block in self._blocks():
                    spool.write(block)
                spool.flush()
                return self._held(mmap(spool.fileno(), self.nbytes))
        return self.contiguous()

    def _transposed(self) -> "Tensor":
        """Return it with the dimensions reversed: its row-major bytes are our column-major ones."""
        if self.ndim < 2:
            return self
        base = self._decoded()
        return base._copy(shape=tuple(reversed(base.shape)),
                          strides=tuple(reversed(base.strides)))

    def tobytes(self) -> bytes:
        """Return the elements as row-major little-endian bytes; of qfloat the stored bytes."""
        return b"".join([bytes(block) for block in self._blocks()])

    # its values

    @property
    def flat(self) -> "Iterator[Any]":
        """Iterate over the elements as Python numbers, row-major, in constant memory."""
        self._check()
        return self._values()

    def _values(self) -> "Iterator[Any]":
        for block in self._blocks():
            for piece in pieces(block, min(BLOCK, 1 << 16)):
                for value in unpack_values(self.dtype or "", piece):
                    yield value

    def tolist(self) -> "Any":
        """Return the elements as nested lists; of a scalar, the number."""
        values = list(self.flat)
        if not self.shape:
            return values[0]
        groups = 1  # lists at each depth
        counts = []
        for n in self.shape[:-1]:
            groups *= n
            counts.append(groups)
            if groups > max(self.size, 1 << 20):
                raise ValueError("tolist() of shape %s makes too many empty lists" % shown(
                    list(self.shape)))
        for n, groups in zip(reversed(self.shape), reversed(counts)):
            values = [values[i * n:(i + 1) * n] for i in range(groups)]
        return values

    def item(self) -> "Any":
        """Return the only element as a Python number; ValueError if there is not just one."""
        if self.size != 1:
            raise ValueError("item() needs a tensor of one element, this one has %d" % self.size)
        return next(self.flat)

    def astype(self, dtype: str) -> "Tensor":
        """Return a copy in memory with another dtype.

        Floats round to nearest even and overflow to infinity; a fraction, a NaN or an integer
        out of range is a ValueError for an integer dtype. `.attrs` stay, but for burn_dtype.
        """
        return self._cast(dtype).contiguous()

    def _cast(self, dtype: str) -> "Tensor":
        if dtype not in ITEMSIZE:
            raise ValueError("no dtype %s; there are %s" % (shown(dtype), ", ".join(ITEMSIZE)))
        self._check()
        return Cast(self, dtype)

    def contiguous(self) -> "Tensor":
        """Return a row-major little-endian copy in memory."""
        return self._held(self.tobytes())

    # its parts

    def __getitem__(self, key: "Any") -> "Any":
        """Return a number (all indices given) or a zero-copy sub-tensor: ints, slices, Ellipsis.

        A compressed tensor is decoded first, each time: take .contiguous() of it once instead.
        """
        itemsize = self._check()
        base = self.contiguous() if self._encoding != "raw" else self
        keys = list(key) if isinstance(key, tuple) else [key]
        dots = [i for i, k in enumerate(keys) if k is Ellipsis]
        if len(dots) > 1:
            raise IndexError("more than one Ellipsis")
        if dots:
            gap = self.ndim - len(keys) + 1
            keys[dots[0]:dots[0] + 1] = [_ALL] * gap
        if len(keys) > self.ndim:
            raise IndexError("%d indices for %d dimensions" % (len(keys), self.ndim))
        keys += [_ALL] * (self.ndim - len(keys))
        offset, shape, strides = base._offset, [], []
        for axis, (k, n, stride) in enumerate(zip(keys, base.shape, base.strides)):
            if isinstance(k, slice):
                start, stop, step = _slice_indices(k, n)
                count = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
                offset += start * stride if count else 0
                shape.append(count)
                strides.append(stride * step)
            else:
                index = _as_index(k)
                if not -n <= index < n:
                    raise IndexError("index %s is out of range for dimension %d of shape %s" % (
                        shown(index), axis, shown(list(self.shape))))
                offset += (index + n if index < 0 else index) * stride
        part = base._copy(offset=offset, shape=tuple(shape), strides=tuple(strides), attrs=())
        if part._strides == row_major(part.shape, itemsize) or 0 in shape:
            part._strides = None
            part._stored = part.size * itemsize
        if not shape and not dots:
            return part.item()
        return part

    def __iter__(self) -> "Iterator[Any]":
        for i in range(len(self)):
            yield self[i]

    # other libraries

    if FULL_PYTHON:
        @property
        def __array_interface__(self) -> "Dict[str, Any]":
            """What numpy.asarray asks for: zero-copy with strides and byte order, read-only."""
            itemsize = self._check()
            base = self
            if self._encoding != "raw" or (self.dtype == "bfloat16" and self._order != NATIVE):
                data = self.tobytes()
                base = self._held(data if NATIVE == "<" or itemsize == 1 else swap(data, itemsize))
                base._order = NATIVE
            low, _ = base._span()
            kind = "V" if self.dtype == "bfloat16" else (self.dtype or "")[0]  # f, i, u or b
            order = "|" if kind == "V" or itemsize == 1 else base._order
            kind = "%s%s%d" % (order, kind, itemsize)
            return {"version": 3, "shape": self.shape, "typestr": kind, "data": base.raw,
                    "strides": base._strides, "offset": -low}

        def __buffer__(self, flags: int) -> memoryview:
            """Give an exact C-order native view (CPython 3.12+), or BufferError."""
            code = STRUCT_CODE.get(self.dtype or "")
            if code is None or self._problem is not None:
                raise BufferError("%s has no buffer code" % self.dtype)
            if self._strides is not None or (self._order != NATIVE and self.itemsize != 1):
                raise BufferError("not a plain native array: take .contiguous().data")
            data = self.raw if self._encoding == "raw" else memoryview(self.tobytes())
            if self._encoding != "raw" and NATIVE == ">":
                data = memoryview(swap(data, self.itemsize or 1))
            if 0 in self.shape or self.ndim > 64:
                raise BufferError("memoryview cannot show the shape %s" % shown(list(self.shape)))
            view: "Any" = memoryview(data)
            return view.cast(code, self.shape)  # type: ignore[no-any-return]

        def __reduce__(self) -> "Any":
            """Pickle by reference (path, size, mtime) if it comes from a path, else by value."""
            this: "Tensor" = self
            if not isinstance(self._source, Path):
                if self._strides is None:
                    this = self._copy(source=None, offset=0)
                    this._source = bytes(self.raw)
                else:
                    this = self.contiguous()
                    this._source = bytes(this.raw)
            return _unpickle, (this.name, this.dtype, this.shape, this._source, this._offset,
                               this._stored, this.attrs, this.format, this._strides, this._order,
                               this._encoding, this._problem)


if FULL_PYTHON:
    def _unpickle(name: str, dtype: str, shape: "Tuple[int, ...]", source: "Any",
                  *rest: "Any") -> Tensor:
        """Make the Tensor that __reduce__ took apart; a file is opened at its first use."""
        if isinstance(source, bytes):
            source = Held(source)
        return Tensor(name, dtype, shape, source, *rest)


class _Keys:
    """_Keys()[:] is the slice itself; boards make slices nowhere else."""

    def __getitem__(self, key: "Any") -> "Any":
        return key


_ALL = _Keys()[:]


def _as_index(key: "Any") -> int:
    """Return an index as an int: ints and what has __index__ (numpy integers), nothing else."""
    if isinstance(key, bool) or not (isinstance(key, int) or hasattr(key, "__index__")):
        raise TypeError("an index is an int, a slice or Ellipsis, not %s" % type(key).__name__)
    return int(key)


def _slice_indices(key: slice, n: int) -> "Tuple[int, int, int]":
    """Return (start, stop, step) of a slice over n elements; slice.indices() where it is there."""
    if hasattr(key, "indices"):
        return key.indices(n)
    step = 1 if key.step is None else key.step
    low, high = (0, n) if step > 0 else (-1, n - 1)
    ends = []
    for end, default in ((key.start, low if step > 0 else high),
                         (key.stop, high if step > 0 else low)):
        if end is not None:
            default = max(low, min(high, end + n if end < 0 else end))
        ends.append(default)
    return ends[0], ends[1], step


class Cast(Tensor):
    """A tensor with another dtype, cast block by block when its bytes are asked for."""

    __slots__ = ("_base",)

    def __init__(self, base: Tensor, dtype: str) -> None:
        attrs = Map([(k, v) for k, v in base._dense_attrs().items() if k != "burn_dtype"])
        nbytes = base.size * ITEMSIZE[dtype]
        super().__init__(base.name, dtype, base.shape, Held(b""), 0, nbytes, attrs, base.format)
        self._base = base

    def _blocks(self) -> "Iterator[Any]":
        old, new = self._base.dtype or "", self.dtype or ""
        for block in self._base._blocks():
            for piece in pieces(block, BLOCK):
                yield cast_block(piece, old, new)

    def _transposed(self) -> Tensor:
        return Cast(self._base._transposed(), self.dtype or "")


class File:
    """A mapping from names to Tensors, in the order of the file's index; also a context manager.

    `.format`, `.path` (None for buffers and streams), `.metadata` (the user's key/value pairs,
    typed), `.attrs` (facts of the format), `.nbytes` (of the file).
    """

    def __init__(self, format: str, source: "Any", attrs: "Dict[str, Any]",
                 metadata: "Dict[str, Any]", tensors: "List[Tensor]",
                 options: "Optional[Dict[str, Any]]" = None) -> None:
        self.format = format
        self.path: "Optional[str]" = source.path
        self.nbytes: int = source.nbytes
        self.attrs = attrs
        self.metadata = metadata
        self._source = source
        self._options = options or {}
        self._tensors: "Dict[str, Tensor]" = Map()
        for item in tensors:
            self._tensors[item.name] = item

    def __getitem__(self, name: str) -> Tensor:
        found = self._tensors.get(name)
        if found is None:
            raise KeyError(self._missing(name))
        return found

    def _missing(self, name: str) -> str:
        text = "no tensor %s" % shown(name)
        if FULL_PYTHON and isinstance(name, str) and len(self) <= 20000:
            try:
                from difflib import get_close_matches
            except ImportError:
                return text
            near = get_close_matches(name, list(self), 1, 0.5)
            text += "; nearest is %s" % quoted(near[0]) if near else ""
        return "%s (%s)" % (text, counted(len(self), "tensor"))

    def __iter__(self) -> "Iterator[str]":
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def keys(self) -> "Any":
        return self._tensors.keys()

    def values(self) -> "Any":
        return self._tensors.values()

    def items(self) -> "Any":
        return self._tensors.items()

    def get(self, name: str, default: "Any" = None) -> "Any":
        return self._tensors.get(name, default)

    def __repr__(self) -> str:
        names = [quoted(name) for name in list(self)[:4]] + (["..."] if len(self) > 4 else [])
        return "<File %s%s: %s%s>" % (
            self.format, "" if self.path is None else " " + quoted(self.path),
            counted(len(self), "tensor"), " " + ", ".join(names) if names else "")

    def close(self) -> None:
        """Let go of the file. Views that are held stay valid; a Tensor asked later raises."""
        self._source.close()

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: "Any") -> None:
        self.close()

    if FULL_PYTHON:
        def __reduce__(self) -> "Any":
            if self.path is None:
                raise TypeError("a File pickles by path; this one comes from a buffer or a stream")
            return _reload, (self._source.where, self.format, self._source.wanted, self._options)


if FULL_PYTHON:
    def _reload(path: str, format: str, mapped: bool, options: "Dict[str, Any]") -> File:
        return load(path, format=format, mmap=mapped, **options)


# Values that become tensors

def tensor(data: "Any" = None, dtype: "Optional[str]" = None, shape: "Any" = None, *,
           components: "Any" = None, **attrs: "Any") -> Tensor:
    """Return a Tensor in memory of lists, numbers, buffers or arrays, to look at or to save.

    Nested lists and numbers: int64 (uint64 if needed), float64 or bool unless `dtype` says
    otherwise. bytes, bytearray and 1-D byte views are raw little-endian elements of `dtype`;
    arrays (numpy, array.array, typed memoryviews) bring their own dtype and shape, and `dtype`
    converts them. `shape` reshapes. `attrs` are facts for the format it will be saved to.
    ValueError where numbers, shape and dtype do not fit; nothing is cast silently.

    >>> t = tensor([[1, 2], [3, 4]], "float32")
    >>> t.shape, t[1, 0], t.tobytes()[:4].hex()
    ((2, 2), 3.0, '0000803f')
    """
    if components is not None:
        return beyond("from_components")(  # type: ignore[no-any-return]
            dtype, shape, components, attrs)
    if data is None:
        raise TypeError("tensor() needs data")
    if dtype == "qfloat":
        return beyond("make_quantized")(data, shape, attrs)  # type: ignore[no-any-return]
    if dtype is not None and dtype not in ITEMSIZE:
        raise ValueError("no dtype %s; there are %s" % (shown(dtype), ", ".join(ITEMSIZE)))
    if isinstance(data, Tensor):
        made = data._copy(attrs=Map(data.attrs.items()))
        known = () if made.format is None else find_format(made.format).TENSOR_ATTRS
        if made.format is not None and known is not None and [k for k in attrs if k not in known]:
            made = made._copy(attrs=Map(), format=None)  # facts of the user, of no format
    elif isinstance(data, (list, tuple, bool, int, float)):
        made = _from_lists(data, dtype)
    else:
        made = _from_buffer(data, dtype)
    if dtype is not None and made.dtype != dtype:
        made = made.astype(dtype)
    if shape is not None:
        shape = _as_shape(shape)
        if count_elements(shape) != made.size or [n for n in shape if n < 0]:
            raise ValueError("%d elements do not have the shape %s" % (made.size, list(shape)))
        made = made.contiguous()._copy(shape=shape)
    for key, value in attrs.items():
        made.attrs[key] = value
    return made


def _as_shape(shape: "Any") -> "Tuple[int, ...]":
    """Return a shape given as one dimension or several as a tuple of ints."""
    if isinstance(shape, int) or (hasattr(shape, "__index__") and not hasattr(shape, "__len__")):
        shape = (shape,)
    return tuple([_as_index(n) for n in shape])


def _from_lists(data: "Any", dtype: "Optional[str]") -> Tensor:
    """Return a Tensor of nested lists of numbers, or of a number."""
    shape: "List[int]" = []
    level = [data]
    while level and isinstance(level[0], (list, tuple)):
        count = len(level[0])
        for row in level:
            if not isinstance(row, (list, tuple)) or len(row) != count:
                raise ValueError("the lists are ragged at depth %d" % len(shape))
        shape.append(count)
        level = [item for row in level for item in row]
    values = [item.item() if hasattr(item, "item") else item for item in level]
    kinds = set([type(value) for value in values])
    for kind in kinds:
        if kind not in (int, float, bool):
            raise ValueError("%s among the numbers (ragged lists?)" % kind.__name__)
    if dtype is None:
        if float in kinds or not values:
            dtype = "float64"
        elif int not in kinds:
            dtype = "bool"
        else:
            dtype = "uint64" if max(values) > INT_RANGE["int64"][1] else "int64"
    raw = bytes(pack_values(dtype, values))
    return Tensor("", dtype, tuple(shape), Held(raw), 0, len(raw))


if FULL_PYTHON:
    _BUFFER_KINDS = {"f": "float", "d": "float", "e": "float", "?": "bool"}
    for _code in "bhilqn":
        _BUFFER_KINDS[_code] = "int"
        _BUFFER_KINDS[_code.upper()] = "uint"

    def _from_buffer(data: "Any", dtype: "Optional[str]") -> Tensor:
        """Return a Tensor of a bytes-like object or an array; zero-copy where it is contiguous."""
        given = str(getattr(data, "dtype", "")).split(".")[-1]
        if given == "bfloat16" and hasattr(data, "view"):  # ml_dtypes: numpy gives no buffer of it
            try:
                data = data.view("uint16")
            except TypeError:
                given = ""
        elif not _has_buffer(data) and hasattr(data, "__array__"):
            data = data.__array__()
        if not _has_buffer(data):
            raise TypeError("cannot make a tensor of %s" % type(data).__name__)
        view = memoryview(data)
        order, code = NATIVE, view.format
        if len(code) == 2 and code[0] in "<>=@":
            order, code = code[0] if code[0] in "<>" else NATIVE, code[1]
        shape = tuple(view.shape or ())
        plain = code == "B" and view.ndim == 1 and not hasattr(data, "dtype") and not hasattr(
            data, "typecode")
        if plain and dtype is not None:
            if len(view) % ITEMSIZE[dtype]:
                raise ValueError("%d bytes are not a whole number of %s" % (len(view), dtype))
            code, order, shape = dtype, "<", (len(view) // ITEMSIZE[dtype],)
        elif given == "bfloat16":
            code = given
        elif code in _BUFFER_KINDS:
            kind = _BUFFER_KINDS[code]
            code = kind if kind == "bool" else "%s%d" % (kind, 8 * view.itemsize)
        if code not in ITEMSIZE:
            raise TypeError("cannot make a tensor of elements with the code %s"
                            % quoted(view.format))
        if view.nbytes and view.c_contiguous and len(view.format) == 1 and view.format != "e":
            raw = view.cast("B")
        else:
            raw = memoryview(view.tobytes())
        return Tensor("", code, shape, Held(raw), 0, len(raw), order=order)

    def _has_buffer(data: "Any") -> bool:
        try:
            memoryview(data)
        except (TypeError, ValueError, BufferError):
            return False
        return True
else:
    def _from_buffer(data: "Any", dtype: "Optional[str]") -> Tensor:
        """As above, where a memoryview has neither format nor cast: other buffers as numbers."""
        memoryview(data)  # a TypeError for what is no buffer
        if not isinstance(data, (bytes, bytearray)):
            return _from_lists(list(data), dtype)
        dtype = dtype or "uint8"
        raw = bytes(data)
        if len(raw) % ITEMSIZE[dtype]:
            raise ValueError("%d bytes are not a whole number of %s" % (len(raw), dtype))
        return Tensor("", dtype, (len(raw) // ITEMSIZE[dtype],), Held(raw), 0, len(raw))


# -- [7] formats ---------------------------------------------------------------------------------


class Format:
    """What every format answers; the rooms below fill it in.

    FORMATS has one object of each. read(cursor, **options) -> (attrs, metadata, tensors) parses
    the index and touches no tensor byte. write(items, metadata, attrs, options) checks everything,
    then returns an iterator over the bytes of the file. What only explain, verify and the command
    line need of a format stands in tables there, by its NAME.
    """

    NAME = ""
    TITLE = ""  # as a person calls it
    SUFFIXES: "Tuple[str, ...]" = ()
    MAGIC = b""
    DTYPES: "Any" = ()
    OPTIONS: "Dict[str, str]" = {}  # of save: name -> doc
    READ_OPTIONS: "Dict[str, str]" = {}  # of load
    FILE_ATTRS: "Tuple[str, ...]" = ()  # File.attrs that save knows; CONTENT ones are no mechanics
    TENSOR_ATTRS: "Optional[Tuple[str, ...]]" = ()  # None: any (custom fields)
    CONTENT: "Tuple[str, ...]" = ()  # attrs that a conversion must not drop silently
    SPARSE = False  # holds sparse tensors as such
    DATA_ORDER = False  # the index is sorted: a File is saved in the order of its data
    ALIGN = 1  # tensors begin at multiples of it (bytes); what lies between is padding
    PAD_END = False  # the last tensor is padded too
    PLACE = "tensors[%d]"  # path of a tensor's entry in explain; without %d: of the map by name

    def __repr__(self) -> str:
        return "<format %s>" % self.NAME

    def detect(self, head: bytes) -> bool:
        return head[:len(self.MAGIC)] == self.MAGIC

    def read(self, cursor: Cursor) -> "Tuple[Any, Any, List[Tensor]]":
        raise NotImplementedError

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        raise NotImplementedError

    def is_content(self, key: str) -> bool:
        return key in self.CONTENT

    def misfit_metadata(self, metadata: "Any", options: "Dict[str, Any]") -> "List[Any]":
        """Return (key, why) of the entries of the metadata that cannot be written."""
        return [(key, "there is no place for metadata") for key in metadata]

    def loaded_name(self, name: str, options: "Dict[str, Any]") -> str:
        """Return the name under which a tensor that was saved with this name is loaded."""
        return name

    def checksums(self, tensor: Tensor) -> "List[Tuple[str, int, int, str]]":
        """Return (label, offset, nbytes, text) of each checksum stored for a tensor's bytes."""
        return []

    def own_attrs(self, tensor: Tensor) -> "Dict[str, Any]":
        """Return the attrs that count here: those of this format or made by the user."""
        return tensor.attrs if tensor.format in (None, self.NAME) else {}

    def check_common(self, items: "List[Tuple[str, Tensor]]", metadata: "Any",
                     options: "Dict[str, Any]") -> "List[Any]":
        """Return the problems that are the same in every format, as (tensor name, text)."""
        problems: "List[Any]" = []
        for name, item in items:
            attrs = self.own_attrs(item)
            if item._sparse and not self.SPARSE:
                problems.append((name, "sparse; .todense() or convert(dense=True)"))
            if item._problem is not None and item.dtype != "qfloat" and not self.passes(item):
                problems.append((name, item._problem))
            elif item.dtype not in self.DTYPES and not self.passes(item):
                remedy = beyond("remedy", False)
                problems.append((name, "%s (it holds %s)%s" % (
                    item.dtype, ", ".join(self.DTYPES),
                    remedy(item.dtype, self.DTYPES) if remedy else "")))
            if item.format is None and self.TENSOR_ATTRS is not None:
                for key in attrs:
                    if key not in self.TENSOR_ATTRS:
                        problems.append((name, "attribute %s is not known here" % shown(key)))
        misfits = ["%s = %s (%s)" % (shown(key), shown(metadata[key]), why)
                   for key, why in self.misfit_metadata(metadata, options)]
        if misfits:
            raise ValueError("metadata that %s cannot hold: %s; metadata={} leaves it out"
                             % (self.TITLE, ", ".join(misfits)))
        return problems

    def passes(self, tensor: Tensor) -> bool:
        """Return whether a tensor whose values are unknown here can be written as it is stored."""
        return False

    def refuse(self, problems: "List[Any]") -> None:
        """Raise ValueError if there are problems: one line, then one per tensor if several."""
        if not problems:
            return
        lines = ["tensor %s: %s" % (quoted(name), text) for name, text in problems]
        if len(lines) == 1:
            raise ValueError("%s cannot hold %s" % (self.TITLE, lines[0]))
        raise ValueError("%s cannot hold %d things:\n  %s" % (
            self.TITLE, len(lines), "\n  ".join(lines)))


def check_names(problems: "List[Any]", items: "List[Tuple[str, Tensor]]", empty: bool = True,
                nul: bool = True) -> None:
    """Add a problem for each name that is no Unicode text, or empty, or holds NUL, where barred."""
    for name, _ in items:
        try:
            encode_text(name)
        except ValueError:
            problems.append((name, "the name is not Unicode text (a lone surrogate)"))
        if not empty and not name:
            problems.append((name, "an empty name"))
        if not nul and "\0" in name:
            problems.append((name, "a NUL in the name"))


def is_text(text: str) -> bool:
    """Return whether a str can be written as UTF-8."""
    try:
        encode_text(text)
    except ValueError:
        return False
    return True


def all_u64(numbers: "List[Any]") -> bool:
    for n in numbers:  # noqa: SIM110  (a loop is twice as fast as all() of a generator)
        if type(n) is not int or not 0 <= n < 1 << 64:
            return False
    return True


def decode_strict(data: bytes) -> "Optional[str]":
    """Return UTF-8 text, or None if the bytes are not UTF-8."""
    try:
        return data.decode()
    except UnicodeError:
        return None


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


# -- [7a] mag ------------------------------------------------------------------------------------


class Mag(Format):
    """.mag, the file of magnetron, storage version 1 (its specification text; release 0.1.2).

    0      magic "MAG!" 4 | version, checksum, num_tensors, num_meta_kv, aux: u32 each
    24     num_meta_kv x: type u32 (0 u64, 1 i64, 2 float64) | payload 8 | key_length u32 | key
           num_tensors x, in the layout of the specification text:
             key_length u32 | key | shape i64[6] | dtype u8 | data_length u64 | data_offset u64 |
             aux u32
           or in that of the real library 0.1.2:
             dtype u8, rank u8, 0, 0 | numel u64 | data_offset u64 | shape u64[rank] |
             key_length u32 | key
    end    padding to a multiple of 64, then each tensor's data, each padded to 64

    Nothing in the file tells the layouts apart but the checksum over [0, end): tensorfmt writes
    the specification's, with CRC-32, and reads both. Newer files of the same magic (snapshots of
    magnetron 0.1.5 and later) are refused by name.
    """

    NAME = "mag"
    TITLE = "mag"
    SUFFIXES = (".mag",)
    MAGIC = b"MAG!"
    DTYPES = ("float32", "float16", "bool", "int32")  # in the order of their numbers, 0 to 3
    FILE_ATTRS = ("version", "layout")
    TENSOR_ATTRS = ("aux",)
    ALIGN = 64
    PAD_END = True

    HEADER = Record(
        ("magic", "4s", "mag"), ("version", "I", "storage version"),
        ("checksum", "I", "CRC-32 of the index"),
        ("num_tensors", "I", "tensor records"),
        ("num_meta_kv", "I", "metadata records"),
        ("aux", "I", "reserved"))
    META = Record(("type", "I", "0 u64, 1 i64, 2 float64"), ("payload", "8s", "the value's bits"),
                  ("key_length", "I", "bytes of the key"))
    KEY_LENGTH = Record(("key_length", "I", "bytes of the key"))
    SPEC = Record(("shape", "6q", "dimensions, then fill"),
                  ("dtype", "B", "0-3: f32 f16 bool i32"),
                  ("data_length", "Q", "bytes"), ("data_offset", "Q", "offset in the file"),
                  ("aux", "I", "reserved"))
    M012 = Record(("aux", "I", "dtype + 256 * rank"), ("numel", "Q", "elements"),
                  ("data_offset", "Q", "offset in the file"))
    PAYLOADS = {0: "<Q", 1: "<q", 2: "<d"}
    SPEC_LAYOUT, M012_LAYOUT = "spec", "magnetron-0.1.2"

    def detect(self, head: bytes) -> bool:
        return head[:4] in (b"MAG!", b"MAG&")

    def read(self, cursor: Cursor) -> "Tuple[Any, Any, List[Tensor]]":
        header = self._header(cursor)
        plain = cursor if cursor.trace is None else Cursor(cursor.source)
        layout, walk = self._decide(plain, header)
        if walk is None:  # nothing fits: the walk by the specification names the culprit
            self._walk(cursor, layout, header)
            raise cursor.error("the records do not fit the file", "num_tensors")
        if cursor.trace is not None:
            self._walk(cursor, layout, header)
        end, meta, records = walk
        later: "List[FormatError]" = []  # of version 1; a broken rule comes first
        if header[5]:
            later.append(cursor.error("header aux is %d, a version-1 file has 0" % header[5],
                                      "aux", 20, kind=Unsupported))
        metadata = self._metadata(cursor, meta, later)
        tensors = self._tensors(cursor, layout, records, end, later)
        if cursor.faults is not None:
            cursor.faults.extend(later)
        elif later:
            raise later[0]
        return Map([("version", 1), ("layout", layout)]), metadata, tensors

    def _header(self, cursor: Cursor) -> "Tuple[Any, ...]":
        at = cursor.peek(4)
        if cursor.data[at:at + 4] == b"MAG&":
            raise cursor.error("MAG& (magnetron before July 2025) is another format", "magic", 0,
                               check="magic", kind=Unsupported)
        cursor.need(4, "magic")
        if cursor.data[at:at + 4] != self.MAGIC:
            raise cursor.error("not a mag file: magic is %s" % shown(bytes(cursor.data[:4])),
                               "magic", 0, check="magic")
        header = cursor.record(self.HEADER)
        version = header[1]
        if version == 1:
            return header
        if version == 0:
            raise cursor.error("version 0 does not exist", "version", 4)
        name = {100: "magnetron storage 100 (unreleased)",
                200: "magnetron snapshot 200 (magnetron 0.1.7 to 0.1.9)",
                300: "magnetron snapshot 300 (magnetron 0.2.x)"}.get(version)
        at = cursor.peek(12)
        if version == 100 and cursor.data[at + 8:at + 12] == b"SRP!":
            name = "magnetron snapshot 100 (magnetron 0.1.5, 0.1.6)"
        raise cursor.error("%s is not read, only version 1" % (name or "version %d" % version),
                           "version", 4, kind=Unsupported)

    def _decide(self, cursor: Cursor, header: "Tuple[Any, ...]") -> "Tuple[str, Any]":
        """Return (layout, walk) whose checksum agrees; walk is None if no records fit the file."""
        walks: "List[Any]" = []
        sums: "List[int]" = []
        for layout in (self.SPEC_LAYOUT, self.M012_LAYOUT)[:2 if header[3] else 1]:
            try:
                walk = self._walk(cursor, layout, header)
            except FormatError:
                continue
            walks.insert(0, (layout, walk))
            agreed = self._crc32_of(cursor, header, walk[0])
            if header[2] in agreed:
                return layout, walk
            sums.insert(0, agreed[0])
        for layout, walk in walks:  # CRC-32C is slower: last, and the real library's layout first
            layout, walk = [pair for pair in walks if pair[1][0] == walk[0]][-1]  # spec, if both
            crc = 0
            for start in range(12, walk[0], BLOCK):
                crc = crc32c(cursor.source.read(start, min(BLOCK, walk[0] - start)), crc)
            if crc == header[2]:
                if not header[3]:  # no tensors: the layouts are one
                    real = [row for row in walk[1] if row[0] not in (1, 2)] == []
                    layout = self.M012_LAYOUT if real else self.SPEC_LAYOUT
                return layout, walk
            sums.append(crc)
        if not walks:
            return self.SPEC_LAYOUT, None
        raise cursor.error("checksum: %08X stored, CRC-32 of the records gives %08X, CRC-32C %08X"
                           % (header[2], sums[len(walks) - 1], sums[-1]), "checksum", 8,
                           check="checksum")

    def _crc32_of(self, cursor: Cursor, header: "Tuple[Any, ...]", end: int) -> "Tuple[int, int]":
        """Return the CRC-32 of [0, end) with the checksum as zero, and that of [12, end)."""
        head = self.HEADER.pack(header[0], header[1], 0, *header[3:])
        whole, tail = crc32(head), crc32(head[12:])
        for start in range(24, end, BLOCK):
            block = cursor.source.read(start, min(BLOCK, end - start))
            whole, tail = crc32(block, whole), crc32(block, tail)
        return whole, tail

    def _walk(self, cursor: Cursor, layout: str,
              header: "Tuple[Any, ...]") -> "Tuple[int, List[Any], List[Any]]":
        """Return (end, metadata rows, tensor rows): only lengths are believed, and checked."""
        spec = layout == self.SPEC_LAYOUT
        num_tensors, num_meta = header[3], header[4]
        left = cursor.end - 24
        least = 73 if spec else 24  # bytes of the shortest record
        if 16 * num_meta > left:
            raise cursor.error("%d metadata records cannot fit %d bytes" % (num_meta, left),
                               "num_meta_kv", 16)
        if 16 * num_meta + least * num_tensors > left:
            raise cursor.error("%d tensor records cannot fit %d bytes" % (num_tensors, left),
                               "num_tensors", 12)
        cursor.seek(24)
        meta, rows = [], []
        for i in range(num_meta):
            kind, payload, nbytes = cursor.record(self.META, "metadata[%d].", i, 1)
            meta.append((kind, payload, cursor.take(nbytes, "metadata[%d].key", i, "", 1)))
        record, take = cursor.record, cursor.take
        for i in range(num_tensors):
            if spec:
                row: "Any" = None
                if FULL_PYTHON:
                    row = cursor.keyed(self.SPEC)
                if row is None:
                    nbytes, = record(self.KEY_LENGTH, "tensors[%d].", i, 1)
                    key = take(nbytes, "tensors[%d].key", i, "", 1)
                    row = key, record(self.SPEC, "tensors[%d].", i, 1)
                rows.append(row)
            else:
                values = record(self.M012, "tensors[%d].", i, 1)
                rank = values[0] >> 8 & 255
                shape = record(Record(("shape", "%dQ" % rank, "dimensions")), "tensors[%d].", i,
                               1) if rank else ()
                nbytes, = record(self.KEY_LENGTH, "tensors[%d].", i, 1)
                rows.append((take(nbytes, "tensors[%d].key", i, "", 1), values + shape))
        return cursor.pos, meta, rows

    def _metadata(self, cursor: Cursor, meta: "List[Any]",
                  later: "List[FormatError]") -> "Dict[str, Any]":
        metadata: "Dict[str, Any]" = Map()
        for i, (kind, payload, raw) in enumerate(meta):
            key = decode_strict(raw)
            if key is None:
                cursor.fault("the key is not UTF-8", "metadata[%d].key" % i)
            elif key in metadata:
                cursor.fault("metadata key %s twice" % shown(key), "metadata[%d].key" % i)
            elif kind not in self.PAYLOADS:
                later.append(cursor.error("metadata %s has type %d; 0, 1 and 2 are known" % (
                    shown(key), kind), "metadata[%d].type" % i, kind=Unsupported))
                metadata[key] = None  # a second one of this name is found all the same
            else:
                metadata[key], = unpack_from(self.PAYLOADS[kind], payload, 0)
        return metadata

    def _tensors(self, cursor: Cursor, layout: str, rows: "List[Any]", end: int,
                 later: "List[FormatError]") -> "List[Tensor]":
        spec = layout == self.SPEC_LAYOUT
        if not spec and rows and self._is_6bc9747(rows):
            raise cursor.error("magnetron commit 6bc9747 (unreleased; relative offsets) is not "
                               "read", "tensors[0].data_offset", kind=Unsupported)
        tensors: "List[Tensor]" = []
        seen: "Dict[str, int]" = {}
        size, source, total = ITEMSIZE, cursor.source, cursor.end
        for i, (raw, values) in enumerate(rows):
            try:
                name = raw.decode()
            except UnicodeError:
                name = None
            if name is None or name in seen:
                cursor.fault("the key is not UTF-8" if name is None else
                             "two tensors have this name: records %d and %d" % (seen[name], i),
                             "tensors[%d].key" % i, name)
                continue
            seen[name] = i
            if spec:
                number, nbytes, offset, aux = values[6:]
                shape, what = self._shape_of(values[:6], nbytes)
            else:
                aux, numel, offset = values[:3]
                number, shape = aux & 255, values[3:]
                what = self._breach_012(aux, numel, shape)
                aux, nbytes = 0, numel * size.get(self.DTYPES[number] if number < 4 else "", 0)
            if what:
                cursor.fault(what[1], "tensors[%d].%s" % (i, what[0]), name, "sizes")
                continue
            dtype = ""
            if number > 3:
                later.append(cursor.error(
                    "dtype %d is not one of version 1 (0 to 3)" % number,
                    "tensors[%d].%s" % (i, "dtype" if spec else "aux"), None, name,
                    kind=Unsupported))
            else:
                dtype = self.DTYPES[number]
                need = size[dtype]
                for n in shape:
                    need *= n
                if need != nbytes:
                    cursor.fault("%d bytes stored, %s %s needs %d" % (
                        nbytes, dtype, list(shape), need), "tensors[%d].data_length" % i, name,
                        "sizes")
                    continue
            if nbytes and (offset < end or offset + nbytes > total):
                cursor.fault("data at %d to %d, but the data area is %d to %d" % (
                    offset, offset + nbytes, end, total), "tensors[%d].data_offset" % i, name,
                    "bounds")
            elif dtype:
                tensors.append(Tensor(name, dtype, shape, source, offset if nbytes else
                                      min(offset, total), nbytes,
                                      ("aux", aux) if aux else (), "mag"))
        return tensors

    @staticmethod
    def _shape_of(places: "Tuple[int, ...]", nbytes: int) -> "Tuple[Any, Any]":
        """Return (shape, None) or (_, (field, error)): it ends at -1, or at 0 if there are data."""
        if nbytes and min(places) == 0:  # the usual form, in three calls
            rank = places.index(0)
            if places.count(0) == 6 - rank:
                return places[:rank], None
        rank = 0
        while rank < 6 and places[rank] != -1 and (places[rank] or not nbytes):
            rank += 1
        shape = places[:rank]
        if [n for n in shape if n < 0]:
            return shape, ("shape", "a dimension is below -1: %s" % list(places))
        if rank < 6 and [n for n in places[rank:] if n != places[rank]]:
            return shape, ("shape", "dimensions behind the entry that ends the shape: %s"
                           % list(places))
        return shape, None

    @staticmethod
    def _breach_012(aux: int, numel: int, shape: "Tuple[int, ...]") -> "Any":
        if aux >> 16:
            return "aux", "aux is 0x%x; its upper half must be 0" % aux
        if not 1 <= len(shape) <= 6:
            return "aux", "rank %d; 1 to 6 exist" % len(shape)
        if [n for n in shape if not 1 <= n < 1 << 63]:
            return "shape", "a dimension is 0 or over 2**63-1: %s" % list(shape)
        if numel != count_elements(shape):
            return "numel", "%d elements, the shape %s has %d" % (
                numel, list(shape), count_elements(shape))
        return None

    def _is_6bc9747(self, rows: "List[Any]") -> bool:
        """Return whether the records are those of one day's code: offsets relative, from 0 on."""
        at = 0
        for _, values in rows:
            number = values[0] & 255
            if number > 3 or values[0] >> 16 or not 4 <= len(values) <= 9 or 0 in values[3:]:
                return False
            nbytes = round_up(count_elements(values[3:]) * ITEMSIZE[self.DTYPES[number]], 64)
            if values[1] != nbytes or values[2] != at:
                return False
            at += nbytes
        return True

    # writing

    def misfit_metadata(self, metadata: "Any", options: "Dict[str, Any]") -> "List[Any]":
        misfits = []
        for key, value in metadata.items():
            if not isinstance(key, str) or not key or "\0" in key or not is_text(key):
                misfits.append((key, "a key is text, not empty, without NUL"))
            elif not (isinstance(value, (int, float, bool)) and (
                    isinstance(value, float) or -(1 << 63) <= value < 1 << 64)):
                misfits.append((key, "mag holds numbers only: u64, i64, float64"))
        return misfits

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        problems = self.check_common(items, metadata, options)
        check_names(problems, items, empty=False, nul=False)
        for name, item in items:
            if item.ndim > 6:
                problems.append((name, "%d dimensions, 6 is the limit" % item.ndim))
            elif [n for n in item.shape if n >= 1 << 63]:
                problems.append((name, "a dimension over 2**63-1"))
            if len(name) >= 1 << 30 and is_text(name) and len(encode_text(name)) >= 1 << 32:
                problems.append((name[:60], "a key over 2**32-1 bytes; the field is 32 bits"))
        self.refuse(problems)
        index = [self._pack_meta(key, value) for key, value in metadata.items()]
        keys = [encode_text(name) for name, _ in items]
        end = 24 + sum([len(row) for row in index]) + sum([73 + len(key) for key in keys])
        offset = round_up(end, 64)
        for key, (_, item) in zip(keys, items):
            nbytes = item.nbytes
            fill = 0 if nbytes or item.size else -1
            places = item.shape + (fill,) * (6 - item.ndim)
            index.append(self.KEY_LENGTH.pack(len(key)) + key + self.SPEC.pack(
                *places + (self.DTYPES.index(item.dtype), nbytes, offset, 0)))
            offset += round_up(nbytes, 64)
        head = [self.MAGIC, 1, 0, len(items), len(metadata), 0]
        crc = crc32(self.HEADER.pack(*head))
        for row in index:
            crc = crc32(row, crc)
        head[2] = crc
        return self._chunks([self.HEADER.pack(*head)] + index, items, end)

    def _pack_meta(self, key: str, value: "Any") -> bytes:
        kind = 2 if isinstance(value, float) else 1 if value < 0 else 0
        raw = encode_text(key)
        payload = pack(self.PAYLOADS[kind], value if kind == 2 else int(value))
        return self.META.pack(kind, payload, len(raw)) + raw

    def _chunks(self, index: "List[bytes]", items: "List[Tuple[str, Tensor]]",
                end: int) -> "Iterator[Any]":
        yield b"".join(index)
        if items:
            yield bytes(-end % 64)
        for _, item in items:
            for block in item._blocks():
                yield block
            yield bytes(-item.nbytes % 64)


# -- [7b] ztensor --------------------------------------------------------------------------------


class ZTensor(Format):
    """zTensor 0.1 (specification 0.1.0; crate and wheels ztensor 0.1.0 to 0.1.4).

    0      magic "ZTEN0001" 8 | zeros up to 64 (if there is a tensor)
    64     blob of tensor 0 | zeros to a multiple of 64 | blob of tensor 1 | ...
    S      CBOR array, one map per tensor (N bytes, right behind the last blob, not aligned)
    end-8  N u64

    A map has name, offset, size, dtype, layout, shape, encoding ("raw" or "zstd"), data_endianness
    (only for raw), checksum ("crc32c:0x..." or "sha256:...", over the stored bytes) and custom
    fields. Real maps are of indefinite length; real zstd frames do not state their content size.
    Layout "sparse" has more blobs, named by component maps among the custom fields; the real
    library has "sparsecsr" and "sparsecoo", one blob each, read and not written: see room [9b].
    Other layouts, unknown dtypes and encodings stay listed, with their bytes.
    zTensor 1.x and 2.x are other formats, refused by name.
    """

    NAME = "ztensor"
    TITLE = "zTensor 0.1"
    SUFFIXES = (".zt", ".ztensor")
    MAGIC = b"ZTEN0001"
    DTYPES = tuple(ITEMSIZE)  # stored under the same names
    OPTIONS = {"encoding": "raw or zstd", "level": "of zstd, 3 unless given",
               "data_endianness": "little or big", "checksum": "none, crc32c or sha256"}
    FILE_ATTRS = ("version",)
    TENSOR_ATTRS = None
    SPARSE = True
    ALIGN = 64
    PLACE = "index[%d]"

    MAGIC_RECORD = Record(("magic", "8s", "zTensor 0.1"))
    TRAILER = Record(("index_size", "Q", "bytes of CBOR before"))
    KEYS = ("name", "offset", "size", "dtype", "shape")  # the others stay in Tensor.attrs
    REQUIRED: "Tuple[Tuple[str, Any], ...]" = (
        ("name", str), ("offset", int), ("size", int), ("dtype", str), ("shape", list),
        ("encoding", str))
    MECHANICS = ("layout", "encoding", "data_endianness", "checksum")
    ORDER = ("name", "offset", "size", "dtype", "layout", "shape", "encoding", "data_endianness",
             "checksum")  # of the keys as written, before the custom fields
    MAGIC_2 = b"\x89ZT2\r\n\x1a\n"

    def detect(self, head: bytes) -> bool:
        return head[:4] == b"ZTEN" or head[:8] == self.MAGIC_2

    def is_content(self, key: str) -> bool:
        return key not in self.MECHANICS and key not in self.FILE_ATTRS

    def read(self, cursor: Cursor) -> "Tuple[Any, Any, List[Tensor]]":
        self._magic(cursor)
        if cursor.end < 17:
            raise cursor.error("%d bytes; the shortest zTensor file has 17" % cursor.end, "index",
                               8)
        cursor.seek(cursor.end - 8)
        nbytes, = cursor.record(self.TRAILER)
        if not 1 <= nbytes <= cursor.end - 16:
            raise cursor.error("index_size %d, but 1 to %d bytes can be index" % (
                nbytes, cursor.end - 16), "index_size", cursor.end - 8)
        if nbytes > MAX_INDEX_BYTES:
            raise cursor.error("index_size %d is over MAX_INDEX_BYTES = %d" % (
                nbytes, MAX_INDEX_BYTES), "index_size", cursor.end - 8, kind=Unsupported)
        start = cursor.end - 8 - nbytes
        token = None if cursor.trace is None else cursor.trace.cbor(start, "index")
        data = cursor.fetch(start, nbytes)
        index, end = cbor_read(data, 0, nbytes, start, False, False, Unsupported, token)
        if end != nbytes:
            raise cursor.error("%d bytes left over behind the CBOR array" % (nbytes - end),
                               "index", start + end)
        if not isinstance(index, list):
            raise cursor.error("the index is no CBOR array", "index", start)
        tensors: "List[Tensor]" = []
        seen: "Dict[str, int]" = {}
        for i, entry in enumerate(index):
            made = self._entry(cursor, i, entry, start)
            if made is None:
                continue
            if made.name in seen:
                cursor.fault("two tensors have this name: entries %d and %d" % (
                    seen[made.name], i), "index[%d].name" % i, made.name)
                continue
            seen[made.name] = i
            tensors.append(made)
        return Map([("version", "0.1.0")]), Map(), tensors

    def _magic(self, cursor: Cursor) -> None:
        at = cursor.peek(8)
        magic = bytes(cursor.data[at:at + 8])
        version = magic[4:8]
        if magic == self.MAGIC_2:
            raise cursor.error("zTensor 2.x is another format; only 0.1 is read", "magic", 0,
                               check="magic", kind=Unsupported)
        if magic != self.MAGIC and magic[:4] == b"ZTEN" and len(magic) == 8 and version.isdigit():
            raise cursor.error("%s (magic %s) is another format; only 0.1 is read" % (
                "zTensor 1.x" if version == b"1000" else "a zTensor of another version",
                shown(magic.decode())), "magic", 0, check="magic", kind=Unsupported)
        if magic != self.MAGIC:
            raise cursor.error("not a zTensor file: it begins with %s" % quoted(magic), "magic",
                               0, check="magic")
        cursor.record(self.MAGIC_RECORD)

    def _entry(self, cursor: Cursor, i: int, entry: "Any", end: int) -> "Optional[Tensor]":
        """Return the Tensor of one entry of the index; None where a fault was noted."""
        what = self._breach(entry)
        if what is not None:
            name = entry.get("name") if isinstance(entry, dict) else None
            cursor.fault(what[1], child("index[%d]" % i, what[0]) if what[0] else "index[%d]" % i,
                         name if isinstance(name, str) else None)
            return None
        name, offset, nbytes = entry["name"], entry["offset"], entry["size"]
        dtype, shape, encoding = entry["dtype"], tuple(entry["shape"]), entry["encoding"]
        layout, big = entry.get("layout", "dense"), entry.get("data_endianness") == "big"
        itemsize = ITEMSIZE.get(dtype)
        if offset < 64 or offset & 63 or offset + nbytes > end:
            cursor.fault("offset %d is no multiple of 64, at least 64" % offset
                         if offset < 64 or offset & 63 else "data at %d to %d reach past the "
                         "start of the index, %d" % (offset, offset + nbytes, end),
                         "index[%d].offset" % i, name, "bounds")
            return None
        need = None
        if layout == "dense" and itemsize is not None:
            need = count_elements(shape) * itemsize
        what = None
        if encoding == "raw" and need is not None and need != nbytes:
            what = "%d bytes stored, %s %s needs %d" % (nbytes, dtype, shown(list(shape)), need)
        elif encoding == "zstd" and (nbytes < 1 or (need or 0) > MAX_EXPANSION * nbytes):
            what = "zstd cannot expand %d bytes to the %s that dtype and shape need" % (
                nbytes, shown(need))
        if what is not None:
            cursor.fault(what, "index[%d].size" % i, name, "sizes")
            return None
        problem = None
        if itemsize is None:
            problem = "dtype %s is not known" % shown(dtype)
        elif encoding not in ("raw", "zstd"):
            problem = "encoding %s is not known" % shown(encoding)
        elif layout not in ("dense", "sparse", "sparsecsr", "sparsecoo"):
            problem = "layout %s is not known" % shown(layout)
        elif layout != "dense" and not beyond("as_sparse", False):
            problem = "sparse tensors are not read by this copy of tensorfmt.py, which was cut"
        for key in self.KEYS:
            del entry[key]
        order = ">" if big and encoding == "raw" and itemsize != 1 else "<"
        made = Tensor(name, dtype, shape, cursor.source, offset, nbytes, entry, self.NAME, None,
                      order, encoding, problem)
        if layout == "dense" or problem is not None:
            return made
        return beyond("as_sparse")(made, layout, end)  # type: ignore[no-any-return]

    def _breach(self, entry: "Any") -> "Any":
        """Return (key, error) of an entry whose keys are missing or of the wrong type, or None."""
        if not isinstance(entry, dict):
            return None, "an entry of the index is no map"
        for key in entry:
            if type(key) is not str:
                return None, "the key %s is not text" % shown(key)
        for key, kind in self.REQUIRED:
            value = entry.get(key, _NOTHING)
            if value is _NOTHING:
                return None, "the entry lacks %r" % key
            if type(value) is not kind or (kind is int and value < 0):
                return key, "%r is %s, not %s" % (key, shown(value), {
                    str: "text", int: "an unsigned integer", list: "an array"}[kind])
        for n in entry["shape"]:
            if type(n) is not int or n < 0:
                return "shape", "the dimension %s is no unsigned integer" % shown(n)
        for key in ("layout", "data_endianness", "checksum"):
            value = entry.get(key, "")
            if type(value) is not str and (value is not None or key == "layout"):
                return key, "%r is %s, not text" % (key, shown(value))
        if entry.get("data_endianness") not in (None, "little", "big"):
            return "data_endianness", "data_endianness %s is neither little nor big" % shown(
                entry["data_endianness"])
        return None

    # checksums

    def checksums(self, tensor: Tensor) -> "List[Tuple[str, int, int, str]]":
        rows = []
        if tensor.attrs.get("checksum") is not None and not isinstance(tensor._source, Held):
            rows.append(("", tensor._offset, tensor._stored, tensor.attrs["checksum"]))
        placed_parts = beyond("placed_parts", False)
        for key, entry in placed_parts(tensor) if placed_parts else ():
            if type(entry.get("checksum")) is str:
                rows.append((key + ": ", entry["offset"], entry["size"], entry["checksum"]))
        return rows

    # writing

    def passes(self, tensor: Tensor) -> bool:
        return (tensor._problem is not None and tensor.format == self.NAME
                and tensor.attrs.get("layout") != "sparse")

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        problems = self.check_common(items, metadata, options)
        check_names(problems, items)
        for key, choices in (("encoding", ("raw", "zstd")), ("data_endianness", ("little", "big")),
                             ("checksum", ("none", "crc32c", "sha256"))):
            if options.get(key) not in (None,) + choices:
                raise ValueError("%s is one of %s, not %r" % (
                    key, ", ".join(choices), options[key]))
        level = options.get("level")
        if level is not None and (type(level) is not int or not -131072 <= level <= 22):
            raise ValueError("level is -131072 to 22, not %s" % shown(level))
        plans = []
        for name, item in items:
            if [n for n in item.shape if n >= 1 << 64]:
                problems.append((name, "a dimension over 2**64-1"))
            plan = self._plan(item, options)
            problems.extend([(name, text) for text in plan.pop("problems")])
            plans.append(plan)
        self.refuse(problems)
        if [plan for plan in plans if plan["encoding"] == "zstd" and not plan["copy"]]:
            beyond("zstd_module")()
        if [plan for plan in plans if plan["checksum"] == "sha256"]:
            Digest("sha256")
        return self._chunks(items, plans)

    def _plan(self, item: Tensor, options: "Dict[str, Any]") -> "Dict[str, Any]":
        """Return how one tensor is stored; "copy": its stored bytes as they are."""
        attrs = self.own_attrs(item)
        problems: "List[str]" = []
        plan: "Dict[str, Any]" = {"problems": problems, "copy": False}
        unknown = self.passes(item)
        for key, known in (("encoding", ("raw", "zstd")), ("data_endianness", ("little", "big"))):
            value = options.get(key)
            value = attrs.get(key) if value is None else value
            if value is not None and value not in known and not unknown:
                problems.append("attribute %s is %s, not %s" % (
                    key, shown(value), " or ".join(known)))
            plan[key] = value or known[0]
        kind = options.get("checksum")
        if kind is None and attrs.get("checksum") is not None:
            kind = str(attrs["checksum"]).partition(":")[0]
            if kind not in ("crc32c", "sha256"):
                problems.append("checksum %s is of an unknown algorithm; the option checksum= "
                                "replaces it" % shown(attrs["checksum"]))
        plan["checksum"] = kind or "none"
        plan["level"] = 3 if options.get("level") is None else options["level"]
        same = item._encoding == plan["encoding"] and item.format == self.NAME
        if unknown or (same and plan["encoding"] == "zstd" and options.get("encoding") is None
                       and options.get("level") is None):
            plan["copy"] = True
        if unknown and [key for key in ("encoding", "data_endianness")
                        if options.get(key) not in (None, attrs.get(key))]:
            problems.append("%s; it can only be copied as it is stored" % item._problem)
        plan["layout"] = "sparse" if item._sparse else (
            attrs.get("layout", "dense") if unknown else "dense")
        custom: "Dict[bytes, bytes]" = {}
        computed: "List[str]" = []
        if item._sparse:
            try:
                computed = ["nnz", "sparse_format"] + [
                    key for key in item.components or () if key != "values"]
            except FormatError as error:
                problems.append(error.what)
        for key, value in attrs.items():
            if key in self.MECHANICS or key in computed:
                continue
            if not isinstance(key, str):
                problems.append("the custom key %s is not text" % shown(key))
                continue
            if key in self.KEYS:
                problems.append("%r is no custom field" % key)
                continue
            try:
                custom[encode_text(key)] = cbor_pack(value, sort=True, depth=2)
            except (ValueError, TypeError) as error:
                problems.append("attribute %s: %s" % (shown(key), error))
        plan["custom"] = custom
        return plan

    def _chunks(self, items: "List[Tuple[str, Tensor]]",
                plans: "List[Dict[str, Any]]") -> "Iterator[Any]":
        yield self.MAGIC
        at = 8
        index = [_cbor_head(4, len(items))]
        for (name, item), plan in zip(items, plans):
            custom = plan["custom"]
            parts = [("", item)]
            if item._sparse:
                found = item._rising()  # type: ignore[attr-defined]
                parts = [("", found["values"])] + [(key, found[key]) for key in sorted(found)
                                                   if key != "values"]
                custom[b"nnz"] = cbor_pack(found["values"].size)
                custom[b"sparse_format"] = cbor_pack("coo" if "coords" in found else "csr")
            top: "Dict[str, Any]" = {}
            for key, part in parts:
                facts: "Dict[str, Any]" = {"dtype": part.dtype, "encoding": plan["encoding"]}
                for block in self._blob(part, plan, at, facts):
                    at += len(block)
                    yield block
                if key:
                    custom[encode_text(key)] = cbor_pack(facts, sort=True)
                else:
                    top = facts
            top["name"], top["layout"], top["shape"] = name, plan["layout"], item.shape
            if item._problem is not None and item.attrs.get("data_endianness") is not None:
                top["data_endianness"] = item.attrs["data_endianness"]
            index.append(b"\xbf" + b"".join(
                [cbor_pack(key) + cbor_pack(top[key]) for key in self.ORDER if key in top]
                + [cbor_pack(raw.decode()) + custom[raw] for raw in sorted(custom)]) + b"\xff")
        data = b"".join(index)
        yield data
        yield self.TRAILER.pack(len(data))

    def _blob(self, item: Tensor, plan: "Dict[str, Any]", at: int,
              facts: "Dict[str, Any]") -> "Iterator[Any]":
        """Yield padding and the bytes of a tensor as they are stored; note the rest in facts."""
        yield bytes(-at % 64)
        facts["offset"], nbytes = round_up(at, 64), 0
        if plan["encoding"] == "raw" and item._problem is None and item.itemsize != 1:
            facts["data_endianness"] = plan["data_endianness"]
        digest = None if plan["checksum"] == "none" else Digest(plan["checksum"])
        for block in self._coded(item, plan):
            nbytes += len(block)
            if digest is not None:
                for piece in pieces(memoryview(block), BLOCK):
                    digest.update(piece)
            yield block
        facts["size"] = nbytes
        if digest is not None:
            facts["checksum"] = digest.text()

    def _coded(self, item: Tensor, plan: "Dict[str, Any]") -> "Iterator[Any]":
        """Return the blocks of a tensor in the encoding and byte order of the plan."""
        if plan["copy"]:
            return item._stored_blocks()
        blocks = item._blocks()
        if plan["encoding"] == "zstd":
            return beyond("zstd_compress")(  # type: ignore[no-any-return]
                (piece for whole in blocks for piece in pieces(whole, BLOCK)), item.nbytes,
                plan["level"])
        if plan["data_endianness"] == "big" and item.itemsize != 1:
            return (swap(piece, item.itemsize or 1) for whole in blocks
                    for piece in pieces(whole, BLOCK))
        return blocks


# -- [7c] primitiv -------------------------------------------------------------------------------


class Primitiv(Format):
    """primitiv 0.1, one Shape, Tensor, Parameter, Model or Optimizer as MessagePack values.

    file      = ver_major 0 | ver_minor 1 | data_type | body; no outer array, no magic, no end
    Shape     = array(dims) batch                        data_type 0x000
    Tensor    = Shape bin(data)                          0x100
    Parameter = Tensor N, then N x (str, Tensor)         0x200: the value and its statistics
    Model     = N, then N x (array(str ...), Parameter)  0x300
    Optimizer = map(str -> uint32) map(str -> float32)   0x400

    Every integer is written as ce + uint32, every float as ca; any form is read. The data are
    float32, little-endian, column-major, the batch last. A parameter's name is its key's parts
    joined by "."; its statistics are called NAME:STATISTIC; ".", ":" and the backslash in a part
    are escaped by a backslash. Up to 32 dimensions are read, 8 are written.
    """

    NAME = "primitiv"
    TITLE = "primitiv 0.1"
    SUFFIXES = (".primitiv", ".model", ".optimizer")
    DTYPES = ("float32",)
    OPTIONS = {"kind": "model, parameter, tensor, shape or optimizer",
               "dims": "of kind shape", "batch": "of kind shape, 1 unless given",
               "flat": "model: each name is one key part, nothing is an escape"}
    FILE_ATTRS = ("version", "kind", "dims", "batch")
    TENSOR_ATTRS = ("batch",)
    CONTENT = ("dims",)
    PLACE = "?"  # _tensor() names the owner of each field itself
    KINDS = {0x000: "shape", 0x100: "tensor", 0x200: "parameter", 0x300: "model",
             0x400: "optimizer"}
    WORDS = {"nil": "nil", "bool": "a bool", "int": "an integer", "float": "a float",
             "str": "a str", "bin": "a bin", "ext": "an ext", "array": "an array",
             "map": "a map", "c1": "byte c1"}

    def detect(self, head: bytes) -> bool:
        if head[:10] == b"\xce\0\0\0\0\xce\0\0\0\1":
            return True
        pos, values = 0, []
        try:
            for _ in range(3):
                kind, value, pos = msgpack_head(head, pos, len(head))
                values.append(value if kind == "int" else None)
        except FormatError:
            return False
        if values[2] not in self.KINDS:
            return False
        return values[:2] == [0, 1] or (
            None not in values and pos == 15 and head[0] == head[5] == head[10] == 0xCE)

    def read(self, cursor: Cursor) -> "Tuple[Any, Any, List[Tensor]]":
        where = ("",)
        major = self._uint32(cursor, where, "ver_major", "of format 0.1")
        middle = cursor.pos
        minor = self._uint32(cursor, where, "ver_minor")
        if (major, minor) != (0, 1):
            raise cursor.error("format version %d.%d; only 0.1 is known" % (major, minor),
                               "ver_major" if major else "ver_minor", 0 if major else middle,
                               kind=Unsupported)
        start = cursor.pos
        number = self._uint32(cursor, where, "data_type")
        kind = self.KINDS.get(number)
        if cursor.trace is not None and cursor.trace.fields:
            cursor.trace.fields[-1].doc = kind or "unknown"
        attrs: "Dict[str, Any]" = Map([("version", "0.1"), ("kind", kind)])
        metadata: "Dict[str, Any]" = Map()
        tensors: "List[Tensor]" = []
        if kind is None:
            raise cursor.error("data_type 0x%03x is none of 0x000, 0x100, 0x200, 0x300, 0x400" %
                               number, "data_type", start)
        if kind == "shape":
            dims, attrs["batch"] = self._shape(cursor, where)
            attrs["dims"] = list(dims)
        elif kind == "tensor":
            tensors.append(self._tensor(cursor, where, "tensor"))
        elif kind == "parameter":
            self._parameter(cursor, where, "value", tensors)
        elif kind == "model":
            self._model(cursor, tensors)
        else:
            self._configs(cursor, metadata)
        return attrs, metadata, tensors

    # one value: where is (prefix, indices ...), formatted only for a trace or an error

    def _head(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str, want: str,
              doc: str = "") -> "Any":
        """Return the value, or the length, of the next head, which must be of the wanted kind.

        A str is told to the trace with its text, by _str().
        """
        at = cursor.pos - cursor.base
        if at + 9 > len(cursor.data):
            at = cursor.peek(9)
        elif FULL_PYTHON and cursor.trace is None:  # the usual case, in short
            row = _MSGPACK_FIRST[cursor.data[at]]
            if row[0] == want:
                cursor.pos += 1 + row[3]
                return unpack_from(row[2], cursor.data, at + 1)[0] if row[3] else row[1]
        try:
            kind, value, end = msgpack_head(cursor.data, at, len(cursor.data))
        except FormatError as error:
            what = error.what
        else:
            if kind == want or (want == "float" and kind == "int"):
                if cursor.trace is not None and want != "str":
                    text = "" if want in ("int", "float") else "%s of %s " % (want, value)
                    cursor.trace.add(cursor.pos, end - at, self._field(where, name), value,
                                     (text + doc).strip(), len(where) - 1)
                cursor.pos += end - at
                return value
            what = "it is %s, not %s" % (self.WORDS[kind], self.WORDS[want])
        raise self._error(cursor, "%s: %s" % (name, what), where, name)

    @staticmethod
    def _field(where: "Tuple[Any, ...]", name: str) -> str:
        return str(where[0] % where[1:]) + name

    def _error(self, cursor: Cursor, what: str, where: "Tuple[Any, ...]", name: str,
               offset: "Optional[int]" = None, tensor: "Optional[str]" = None,
               kind: "Type[FormatError]" = FormatError) -> FormatError:
        return cursor.error(what, self._field(where, name),
                            cursor.pos if offset is None else offset, tensor, kind=kind)

    def _uint32(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str, doc: str = "") -> int:
        start = cursor.pos
        value = self._head(cursor, where, name, "int", doc)
        if not 0 <= value < 1 << 32:
            raise self._error(cursor, "%s: %d does not fit uint32" % (name, value), where, name,
                              start)
        return int(value)

    def _str(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str) -> str:
        start = cursor.pos
        nbytes = self._head(cursor, where, name, "str")
        if nbytes > cursor.end - cursor.pos:
            raise self._error(cursor, "%s says %d bytes, %d are left" % (
                name, nbytes, cursor.end - cursor.pos), where, name, start)
        at = cursor.peek(nbytes)
        text = msgpack_text(cursor.data[at:at + nbytes])
        cursor.pos += nbytes
        if cursor.trace is not None:
            cursor.trace.add(start, cursor.pos - start, self._field(where, name), text,
                             "str of %d" % nbytes, len(where) - 1)
        return text

    def _count(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str, want: str,
               least: int, doc: str = "") -> int:
        """Return a count of items of at least that many bytes each, which the file must have."""
        start = cursor.pos
        count: int = self._head(cursor, where, name, want, doc)
        if count < 0 or count * least > cursor.end - cursor.pos:
            raise self._error(cursor, "%s is %d, too many for the %d bytes left" % (
                name, count, cursor.end - cursor.pos), where, name, start)
        return count

    def _shape(self, cursor: Cursor, where: "Tuple[Any, ...]") -> "Tuple[Any, int]":
        start = cursor.pos
        count = self._count(cursor, where, "dims", "array", 1)
        if count > MAX_PRIMITIV_DIMS:
            raise self._error(cursor, "%d dimensions, MAX_PRIMITIV_DIMS = %d is the limit" % (
                count, MAX_PRIMITIV_DIMS), where, "dims", start, kind=Unsupported)
        values: "Any" = None
        if FULL_PYTHON and cursor.trace is None:
            at = cursor.peek(5 * count + 5)
            values = msgpack_uint32s(cursor.data, at, count + 1)
        if values is not None:
            cursor.pos += 5 * count + 5
            at_batch = cursor.pos - 5
        else:
            values = [self._uint32(cursor, where, "dims[%d]" % i) for i in range(count)]
            at_batch = cursor.pos
            values.append(self._uint32(cursor, where, "batch", "samples"))
        if not values[count]:
            raise self._error(cursor, "batch is 0", where, "batch", at_batch)
        return tuple(values[:count]), values[count]

    def _tensor(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str) -> Tensor:
        """Return the Tensor that begins here; its data are walked over, not read."""
        try:
            dims, batch = self._shape(cursor, where)
            start = cursor.pos
            nbytes = self._head(cursor, where, "data", "bin")
        except FormatError as error:
            error.tensor = name
            raise
        shape = dims + (batch,) if batch > 1 else dims
        need = 4
        for n in shape:
            need *= n
        if nbytes != need:
            raise self._error(cursor, "data has %d bytes, float32 %s needs %s" % (
                nbytes, list(shape), shown(need)), where, "data", start, name)
        if nbytes > cursor.end - cursor.pos:
            raise self._error(cursor, "data says %d bytes, %d are left" % (
                nbytes, cursor.end - cursor.pos), where, "data", start, name)
        made = Tensor(name, "float32", shape, cursor.source, cursor.pos, nbytes,
                      ("batch", batch), "primitiv",
                      column_major(shape, 4) if len(shape) > 1 and nbytes else None)
        if cursor.trace is not None:
            cursor.trace.claim(name, [self._field(where, part)
                                      for part in ("dims", "batch", "data", "key")])
            # the data too, so that a file that breaks off later shows them
            cursor.trace.add(cursor.pos, nbytes, "data " + name, "float32 %s" % shown(list(shape)),
                             "column-major", kind="data")
        cursor.pos += nbytes
        return made

    def _parameter(self, cursor: Cursor, where: "Tuple[Any, ...]", name: str,
                   tensors: "List[Tensor]") -> None:
        tensors.append(self._tensor(cursor, where, name))
        try:
            count = self._count(cursor, where, "N", "int", 6, "statistics")
        except FormatError as error:
            error.tensor = name
            raise
        if cursor.trace is not None:
            cursor.trace.claim(name, [self._field(where, "N")])
        seen = set()
        room = max(1 << 20, MAX_COPIES * cursor.end)  # each statistic repeats the key in its name
        for i in range(count):
            inner = (where[0] + "stats[%d].",) + where[1:] + (i,)
            start = cursor.pos
            key = self._str(cursor, inner, "key")
            room -= len(name) + len(key)
            if room < 0:
                raise self._error(cursor, "the names of the statistics would take more than "
                                  "MAX_COPIES = %d times the file" % MAX_COPIES, inner, "key",
                                  start, name, Unsupported)
            if key in seen:
                raise self._error(cursor, "statistic %s twice" % shown(key), inner, "key", start,
                                  name)
            seen.add(key)
            tensors.append(self._tensor(cursor, inner, name + ":" + key))

    def _model(self, cursor: Cursor, tensors: "List[Tensor]") -> None:
        count = self._count(cursor, ("",), "N", "int", 8, "parameters")
        seen = set()
        short: "Dict[bytes, str]" = {}  # escaped key parts, which come again and again
        for i in range(count):
            where = ("params[%d].", i)
            start = cursor.pos
            parts = self._count(cursor, where, "key", "array", 1)
            if not parts:
                raise self._error(cursor, "key has no components", where, "key", start)
            raws: "Optional[List[Any]]" = None
            if FULL_PYTHON and cursor.trace is None:
                raws, end = msgpack_strs(cursor.data, cursor.pos - cursor.base, parts)
                if raws is not None:
                    cursor.pos = cursor.base + end
                    for j, raw in enumerate(raws):
                        text = short.get(raw)
                        if text is None:
                            text = short[raw] = self._escape(msgpack_text(raw))
                        raws[j] = text
            if raws is None:
                raws = [self._escape(self._str(cursor, where, "key[%d]" % j))
                        for j in range(parts)]
            name = ".".join(raws)
            if name in seen:
                raise self._error(cursor, "two parameters have this name", where, "key", start,
                                  name)
            seen.add(name)
            self._parameter(cursor, where, name, tensors)

    def _configs(self, cursor: Cursor, metadata: "Dict[str, Any]") -> None:
        for group, want in (("uint_configs", "int"), ("float_configs", "float")):
            seen = set()
            for i in range(self._count(cursor, ("",), group, "map", 2)):
                where = (group + "[%d].", i)
                start = cursor.pos
                key = self._str(cursor, where, "key")
                if key in seen:
                    raise self._error(cursor, "config %s twice" % shown(key), where, "key", start)
                if key in metadata:
                    raise self._error(cursor, "config %s is in both maps" % shown(key), where,
                                      "key", start, kind=Unsupported)
                seen.add(key)
                if want == "int":
                    metadata[key] = self._uint32(cursor, where, "value")
                else:
                    metadata[key] = float(self._head(cursor, where, "value", "float"))

    # names

    @staticmethod
    def _escape(part: str) -> str:
        if "\\" in part or "." in part or ":" in part:
            part = part.replace("\\", "\\\\").replace(".", "\\.").replace(":", "\\:")
        return part

    @staticmethod
    def split(name: str) -> "Tuple[List[str], Optional[str]]":
        """Return (key parts, statistic or None) of a name; ValueError for a bad escape.

        >>> Primitiv.split("enc.w:Adam.m1")
        (['enc', 'w'], 'Adam.m1')
        """
        if "\\" not in name:
            key, colon, stat = name.partition(":")
            return key.split("."), stat if colon else None
        parts, part, at = [], "", 0
        while at < len(name):
            letter = name[at]
            at += 1
            if letter == "\\":
                if at == len(name) or name[at] not in ".:\\":
                    raise ValueError("a backslash stands only before '.', ':' or a backslash "
                                     "(escape it, or use flat=True)")
                part += name[at]
                at += 1
            elif letter == ".":
                parts.append(part)
                part = ""
            elif letter == ":":
                return parts + [part], name[at:]
            else:
                part += letter
        return parts + [part], None

    # writing

    def misfit_metadata(self, metadata: "Any", options: "Dict[str, Any]") -> "List[Any]":
        if options.get("kind") != "optimizer":
            return [(key, "only kind='optimizer' has a place for metadata") for key in metadata]
        misfits, seen = [], set()
        for key, value in metadata.items():
            try:
                if not isinstance(key, str) or not isinstance(value, (bool, int, float)):
                    raise ValueError("configs are numbers")
                raw = msgpack_pack(key)
                if raw in seen:
                    raise ValueError("the same bytes as another key")
                seen.add(raw)
                msgpack_pack(value if isinstance(value, float) else int(value), True)
            except ValueError as error:
                misfits.append((key, str(error)))
        return misfits

    def loaded_name(self, name: str, options: "Dict[str, Any]") -> str:
        return self._escape(name) if options.get("flat") else name

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        def option(key: str, default: "Any") -> "Any":
            value = options.get(key)
            value = attrs.get(key) if value is None else value
            return default if value is None else value
        kind = option("kind", "model")
        if kind not in self.KINDS.values():
            raise ValueError("kind is one of %s, not %s" % (
                ", ".join(sorted(self.KINDS.values())), shown(kind)))
        for key, owner in (("dims", "shape"), ("batch", "shape"), ("flat", "model")):
            if options.get(key) not in (None, False) and kind != owner:
                raise ValueError("the option %s belongs to kind=%r" % (key, owner))
        if kind != "shape" and attrs.get("dims") is not None:
            raise ValueError("dims %s have no place with kind=%r; attrs={} leaves them out" % (
                shown(attrs["dims"]), kind))
        problems = self.check_common(items, metadata, {"kind": kind})
        if items and kind in ("shape", "optimizer"):
            problems += [(name, "kind=%r holds no tensors" % kind) for name, _ in items]
        for name, item in items:
            try:
                value = bool(options.get("flat")) or self.split(name)[1] is None
            except ValueError:  # told by _groups()
                value = False
            problems += [(name, text) for text in self._misfits(item, kind, value)]
        number = [code for code, name in self.KINDS.items() if name == kind][0]
        head = b"".join([msgpack_pack(n, True) for n in (0, 1, number)])
        if kind == "shape":
            self.refuse(problems)
            dims = option("dims", None)
            if dims is None:
                raise ValueError("kind='shape' needs the option dims")
            return iter([head, self._checked_shape(dims, option("batch", 1))])
        if kind == "optimizer":
            self.refuse(problems)
            ints = Map([(k, int(v)) for k, v in metadata.items() if not isinstance(v, float)])
            floats = Map([(k, v) for k, v in metadata.items() if isinstance(v, float)])
            return iter([head, msgpack_pack(ints, True), msgpack_pack(floats, True)])
        groups = self._groups(items, kind, bool(options.get("flat")), problems)
        self.refuse(problems)
        return self._chunks(head, groups, kind)

    def _checked_shape(self, dims: "Any", batch: "Any") -> bytes:
        """Return a Shape of the caller's numbers; ValueError for what primitiv has no place for."""
        try:
            dims, batch = list(_as_shape(dims)), _as_index(batch)
        except TypeError as error:
            what = str(error)
        else:
            if len(dims) <= 8 and not [n for n in dims + [batch] if not 1 <= n < 1 << 32]:
                return self._pack_shape(dims, batch)
            what = "at most 8 dimensions and a batch, each 1 to 2**32-1"
        raise ValueError("dims %s, batch %s: %s" % (shown(dims), shown(batch), what))

    def _misfits(self, item: Tensor, kind: str, value: bool) -> "List[str]":
        """Return why a tensor's shape or batch has no place here; `value`: it is no statistic."""
        dims, batch, what = item.shape, 1, []
        given = self.own_attrs(item).get("batch")
        if given is not None and (type(given) is not int or given < 1):
            return ["batch is %s, no integer from 1 on" % shown(given)]
        if given not in (None, 1):
            batch = item.attrs["batch"]
            if not dims or dims[-1] != batch:
                return ["batch is %s, but the last dimension is not: %s" % (
                    shown(batch), list(dims))]
            dims = dims[:-1]
        if batch != 1 and kind != "tensor" and value:
            what.append("batch %d in a parameter's value; set attrs['batch'] = 1 to make it an "
                        "ordinary dimension" % batch)
        if len(dims) > 8:
            what.append("%d dimensions, 8 is the limit" % len(dims))
        if 0 in item.shape:
            what.append("no elements (shape %s)" % list(item.shape))
        if [n for n in item.shape if n >= 1 << 32] or item.nbytes >= 1 << 32:
            what.append("a dimension or the data over 2**32-1")
        return what

    def _groups(self, items: "List[Tuple[str, Tensor]]", kind: str, flat: bool,
                problems: "List[Any]") -> "List[Any]":
        """Return [key bytes, value, [(statistic, Tensor) ...]] per parameter, in file order."""
        errors = "surrogateescape" if FULL_PYTHON else "strict"
        groups: "Dict[Any, Any]" = Map()
        for name, item in items:
            try:
                parts, stat = ([name], None) if flat else self.split(name)
                key = tuple([encode_text(part, errors) for part in parts])
                raw = None if stat is None else encode_text(stat, errors)
            except ValueError as error:
                problems.append((name, str(error)))
                continue
            only = {"tensor": "tensor", "parameter": "value"}.get(kind)
            if only is not None and (key != (only.encode(),) or (kind == "tensor" and (
                    stat is not None or len(items) > 1))):
                problems.append((name, "kind=%r holds one tensor called %r%s" % (
                    kind, only, "" if kind == "tensor" else " and statistics 'value:NAME'")))
                continue
            group = groups.setdefault(key, [key, None, [], set()])
            if raw is None:
                if group[1] is not None:
                    problems.append((name, "the same key twice"))
                group[1] = item
            elif raw in group[3]:
                problems.append((name, "the same statistic twice"))
            else:
                group[3].add(raw)
                group[2].append((stat, item))
        if kind != "model" and not groups and not problems:
            raise ValueError("kind=%r needs a tensor" % kind)
        ordered = sorted(groups.values(), key=lambda group: list(group[0]))
        around: "List[Any]" = []  # keys that this one may be a part of: they come right before it
        for key, value, stats, _ in ordered:
            while around and key[:len(around[-1])] != around[-1]:
                around.pop()
            if around:
                problems.append((self._joined(key), "the key %s is both a parameter and a group of "
                                 "them" % shown(self._joined(around[-1]))))
            around.append(key)
            if value is None:
                problems.append((self._joined(key) + ":" + stats[0][0], "a statistic without its "
                                 "value (the part before ':'); escape ':' and '\\' in names, or "
                                 "use flat=True"))
        return ordered

    def _joined(self, key: "Tuple[bytes, ...]") -> str:
        return ".".join([self._escape(msgpack_text(part)) for part in key])

    @staticmethod
    def _pack_shape(dims: "Any", batch: int) -> bytes:
        return msgpack_pack(list(dims), True) + msgpack_pack(batch, True)

    def _chunks(self, head: bytes, groups: "List[Any]", kind: str) -> "Iterator[Any]":
        yield head
        if kind == "model":
            yield msgpack_pack(len(groups), True)
        for key, value, stats, _ in groups:
            if kind == "model":
                yield msgpack_size("array", len(key)) + b"".join(
                    [msgpack_size("str", len(part)) + part for part in key])
            for block in self._tensor_chunks(value):
                yield block
            if kind == "tensor":
                continue
            yield msgpack_pack(len(stats), True)
            for stat, item in stats:
                yield msgpack_pack(stat)
                for block in self._tensor_chunks(item):
                    yield block

    def _tensor_chunks(self, item: Tensor) -> "Iterator[Any]":
        dims, batch = item.shape, self.own_attrs(item).get("batch") or 1
        yield self._pack_shape(dims[:-1] if batch > 1 else dims, batch)
        yield msgpack_size("bin", item.nbytes)
        for block in item._transposed()._blocks():
            yield block


# -- [7d] burnpack -------------------------------------------------------------------------------


class Burnpack(Format):
    """Burnpack (.bpk), the native file of Burn: burn-store 0.19 to 0.21, burn-pack 0.22-pre.

    0      magic "NRUB" 4 | version u16 = 1 | metadata_size u32 = M
    10     CBOR map, M bytes: "tensors": name -> {dtype, shape, data_offsets [start, end),
           param_id?}, "metadata": text -> text?, "scalars" (0.22 pre-releases)?
    DS     = 10 + M rounded up to 256: the data; every tensor begins at a multiple of 256, nothing
           behind the last one; data_offsets count from DS

    The index is sorted by name, the data lie in the order they were handed over. Burn 0.19 wrote
    the same header over a "packed" layout: no padding at all, data from 10 + M on. It is read (and
    told apart by the length of the file), never written. Quantized tensors ("qfloat") keep
    their stored bytes, see room [9c]; unknown dtypes stay listed and raise at access.
    """

    NAME = "burnpack"
    TITLE = "Burnpack"
    SUFFIXES = (".bpk", ".burnpack")
    MAGIC = b"NRUB"
    DTYPES = {  # tensorfmt's name -> what the CBOR says; bool and the odd ones in _dtype()
        "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
        "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32",
        "uint16": "U16", "uint8": "U8", "bool": {"Bool": "Native"}}
    NAMES = dict([(code, name) for name, code in DTYPES.items() if isinstance(code, str)])
    BOOLS = {"Native": "bool", "U8": "bool", "U32": "uint32"}  # {"Bool": how it is stored}
    OPTIONS = {"scalars": "map of name to {Int|UInt|Float|Bool: value}",
               "tensor_order": "all names, in the order of their data"}
    READ_OPTIONS = {"layout": "aligned or packed, where the file does not tell"}
    FILE_ATTRS = ("version", "layout", "scalars")
    TENSOR_ATTRS = ("param_id", "burn_dtype")
    CONTENT = ("param_id", "scalars")
    DATA_ORDER = True
    ALIGN = 256
    PLACE = "tensors"

    HEADER = Record(("magic", "4s", "Burnpack, not BURN"),
                    ("version", "H", "1 from burn 0.19 on"),
                    ("metadata_size", "I", "bytes of CBOR"))

    def detect(self, head: bytes) -> bool:
        return head[:4] in (b"NRUB", b"BURN")

    def read(self, cursor: Cursor,
             layout: "Optional[str]" = None) -> "Tuple[Any, Any, List[Tensor]]":
        if layout not in (None, "aligned", "packed"):
            raise ValueError("layout is aligned or packed, not %r" % (layout,))
        magic, version, nbytes = self._header(cursor)
        token = None if cursor.trace is None else cursor.trace.cbor(10, "")
        data = cursor.fetch(10, nbytes)
        top, end = cbor_read(data, 0, nbytes, 10, token=token)
        if cursor.trace is not None and end < nbytes:
            cursor.trace.add(10 + end, nbytes - end, "rest of the metadata", None,
                             "bytes behind the CBOR item", kind="unused")
        if not isinstance(top, dict):
            raise cursor.error("the metadata item is %s, no map" % shown(top), "item", 10)
        entries, metadata, scalars = self._top(cursor, top)
        if len(entries) > MAX_TENSORS:
            raise cursor.error("%d tensors, MAX_TENSORS = %d is the limit" % (
                len(entries), MAX_TENSORS), "tensors", kind=Unsupported)
        rows = []
        for name, entry in entries.items():
            row = self._entry(cursor, name, entry)
            if row is not None:
                rows.append(row)
        layout, base = self._layout(cursor, 10 + nbytes, rows, metadata, layout)
        attrs = Map([("version", version), ("layout", layout)])
        if scalars is not None:
            attrs["scalars"] = scalars
        source = cursor.source
        return attrs, metadata, [
            (beyond("Quantized", Tensor) if dtype == "qfloat" else Tensor)(
                name, dtype, shape, source, base + start, end - start, extra, "burnpack", None,
                "<", "raw", problem)
            for name, dtype, shape, start, end, extra, problem in rows]

    def _header(self, cursor: Cursor) -> "Tuple[Any, ...]":
        at = cursor.peek(10)
        magic = bytes(cursor.data[at:at + 4])
        if magic != self.MAGIC and (cursor.end >= 10 or magic == b"BURN"):
            hint = "; the bytes on disk are NRUB" if magic == b"BURN" else ""
            raise cursor.error("not a Burnpack file: magic is %s%s" % (quoted(magic), hint),
                               "magic", 0, check="magic")
        header = cursor.record(self.HEADER)
        if header[1] != 1:
            raise cursor.error("format version %d; only 1 is known" % header[1], "version", 4,
                               kind=Unsupported)
        if 10 + header[2] > cursor.end:
            raise cursor.error("metadata_size %d runs past the end of the file, %d bytes left" % (
                header[2], cursor.end - 10), "metadata_size", 6)
        if header[2] > MAX_METADATA_BYTES:
            raise cursor.error("metadata_size %d is over MAX_METADATA_BYTES = %d" % (
                header[2], MAX_METADATA_BYTES), "metadata_size", 6, kind=Unsupported)
        return header

    def _top(self, cursor: Cursor, top: "Any") -> "Tuple[Any, Any, Any]":
        """Return (tensors, metadata, scalars or None), each checked to be the right map."""
        entries = top.get("tensors")
        if not isinstance(entries, dict):
            raise cursor.error("\"tensors\" is missing or no map",
                               "tensors" if "tensors" in top else "item",
                               None if "tensors" in top else 10)
        for name in entries:
            if type(name) is not str:
                raise cursor.error("the tensor name %s is not text" % shown(name),
                                   child("tensors", name))
        metadata = top.get("metadata", Map())
        if not isinstance(metadata, dict):
            raise cursor.error("\"metadata\" is no map of text to text", "metadata")
        for key, value in metadata.items():
            if type(key) is not str or type(value) is not str:
                raise cursor.error("metadata %s: %s is not text to text" % (
                    shown(key), shown(value)), child("metadata", key))
        scalars = top.get("scalars", _NOTHING)
        if scalars is _NOTHING:
            return entries, metadata, None
        if not isinstance(scalars, dict) or [key for key in scalars if type(key) is not str]:
            raise cursor.error("\"scalars\" is no map with text keys", "scalars")
        return entries, metadata, scalars

    def _entry(self, cursor: Cursor, name: str, entry: "Any") -> "Any":
        """Return (name, dtype, shape, start, end, attrs, problem) of a descriptor, checked."""
        key: "Optional[str]" = None
        try:
            if not isinstance(entry, dict):
                raise _Breach("the descriptor is %s, no map" % shown(entry))
            for key in ("dtype", "shape", "data_offsets"):
                if key not in entry:
                    missing, key = key, None
                    raise _Breach("the descriptor lacks %r" % missing)
            key = "dtype"
            code = entry[key]
            dtype = self.NAMES.get(code) if type(code) is str else None
            attrs: "Any" = ()
            problem = None
            if dtype is None:
                dtype, attrs, problem = self._dtype(code)
            key = "shape"
            shape = entry[key]
            if type(shape) is not list or not all_u64(shape):
                raise _Breach("shape is %s, no array of integers 0 to 2**64-1" % shown(shape))
            key = "data_offsets"
            offsets = entry[key]
            if type(offsets) is not list or len(offsets) != 2 or not all_u64(offsets):
                raise _Breach("data_offsets is %s, no array of two integers 0 to 2**64-1" %
                              shown(offsets))
            start, end = offsets
            if end < start:
                raise _Breach("data_offsets end before they start: %d to %d" % (start, end))
            key = "param_id"
            param_id = entry.get(key)
            if param_id is not None:
                if not all_u64([param_id]):
                    raise _Breach("param_id is %s, no integer 0 to 2**64-1" % shown(param_id))
                attrs = attrs + ("param_id", param_id)
        except _Breach as breach:
            path = child("tensors", name)
            cursor.fault(breach.args[0], path if key is None else "%s.%s" % (path, key), name)
            return None
        size = ITEMSIZE.get(dtype or "")
        if size is not None:
            need = count_elements(shape) * size
            if need != end - start:
                cursor.fault("%d bytes stored, %s %s needs %s" % (
                    end - start, dtype, shown(shape), shown(need)),
                    "%s.data_offsets" % child("tensors", name), name, "sizes")
                return None
        return name, dtype, tuple(shape), start, end, attrs, problem

    def _dtype(self, code: "Any") -> "Tuple[Any, Any, Any]":
        """Return (dtype, attrs, problem) of a CBOR dtype that is none of the plain texts."""
        if code == "Bool":  # burn 0.19 and 0.20; a new file gets {"Bool": "Native"}
            return "bool", (), None
        attrs = ("burn_dtype", code)
        if code == "Flex32":  # float32 in the file
            return "float32", attrs, None
        if isinstance(code, dict):
            keys = list(code)
            if len(keys) != 1 or type(keys[0]) is not str:
                raise _Breach("dtype is %s, neither text nor a map of one text key" % shown(code))
            value = code[keys[0]]
            if keys[0] == "QFloat":
                if not isinstance(value, dict):
                    raise _Breach("dtype: the scheme of QFloat is no map")
                return "qfloat", attrs, None
            if keys[0] == "Bool" and type(value) is str and value in self.BOOLS:
                return self.BOOLS[value], () if value == "Native" else attrs, None
        elif type(code) is not str:
            raise _Breach("dtype is %s, neither text nor a map of one text key" % shown(code))
        return None, attrs, "dtype %s is not known" % shown(code)

    def _layout(self, cursor: Cursor, me: int, rows: "List[Any]", metadata: "Any",
                layout: "Optional[str]") -> "Tuple[str, int]":
        """Return (layout, offset of the data): the length of the file tells, see 5.2 there."""
        aligned = round_up(me, 256)
        end = max([row[4] for row in rows]) if rows else 0
        if layout is not None:
            base = me if layout == "packed" else aligned
            if cursor.end < base + end:
                raise cursor.error("file too short: the data end at %d, the file at %d" % (
                    base + end, cursor.end), "metadata_size", 6, check="bounds")
            return layout, base
        if cursor.end >= aligned + end:
            return "aligned", aligned
        if end == 0:
            return "packed", me
        ranges = sorted([(row[3], row[4]) for row in rows])
        follow = ranges[0][0] == 0 and not [
            i for i in range(1, len(ranges)) if ranges[i][0] != ranges[i - 1][1]]
        if cursor.end != me + end or not follow:
            raise cursor.error("file too short: the data end at %d, the file at %d" % (
                aligned + end, cursor.end), "metadata_size", 6, check="bounds")
        gap = cursor.fetch(me, min(aligned, cursor.end) - me)
        if (not metadata.get("version", "").startswith("0.19.")
                and not [1 for start, stop in ranges if start % 256 and stop > start]
                and not any(gap)):
            raise cursor.error("ambiguous: a packed file of burn 0.19, or an aligned one cut by "
                               "its padding; layout=\"packed\" or \"aligned\" settles it",
                               "metadata_size", 6, check="bounds")
        return "packed", me

    # writing

    def passes(self, tensor: Tensor) -> bool:
        return (tensor.format in (None, self.NAME) and tensor.dtype in (None, "qfloat")
                and "burn_dtype" in tensor.attrs)

    def misfit_metadata(self, metadata: "Any", options: "Dict[str, Any]") -> "List[Any]":
        return [(key, "Burnpack holds text to text") for key, value in metadata.items()
                if not isinstance(key, str) or not isinstance(value, str)
                or not is_text(key) or not is_text(value)]

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        order = options.get("tensor_order")
        if order is not None:
            known = Map(items)
            order = [] if isinstance(order, str) else list(order)
            if [name for name in order if not isinstance(name, str) or name not in known] or (
                    len(order) != len(known) or len(set(order)) != len(known)):
                raise ValueError("tensor_order must list every tensor once")
            items = [(name, known[name]) for name in order]
        problems = self.check_common(items, metadata, options)
        check_names(problems, items)
        entries, end = [], 0
        for name, item in items:
            own = self.own_attrs(item)
            code = own.get("burn_dtype")
            implied = item.dtype if isinstance(item, Cast) else None
            if code is None or implied is not None:
                code = self.DTYPES.get(item.dtype or "")
            elif item.dtype is not None and not self._consistent(item.dtype, code):
                problems.append((name, "burn_dtype %s does not go with %s" % (
                    shown(code), item.dtype)))
            param_id = own.get("param_id")
            if param_id is not None and not all_u64([param_id]):
                problems.append((name, "param_id %s is no integer 0 to 2**64-1" % shown(param_id)))
            if not all_u64(list(item.shape)):
                problems.append((name, "a dimension over 2**64-1"))
            start = round_up(end, 256)
            end = start + item.nbytes
            entries.append((encode_text(name) if is_text(name) else b"", name, code, item.shape,
                            start, end, param_id))
        if len(items) > MAX_TENSORS:
            raise ValueError("Burnpack holds %d tensors at most, not %d" % (
                MAX_TENSORS, len(items)))
        scalars = options.get("scalars")
        if scalars is None:
            scalars = attrs.get("scalars")
        else:
            scalars = self._check_scalars(scalars)
        self.refuse(problems)
        data = self._pack(entries, metadata, scalars)
        if len(data) > MAX_METADATA_BYTES:
            raise ValueError("%d bytes of metadata are over MAX_METADATA_BYTES = %d" % (
                len(data), MAX_METADATA_BYTES))
        return self._chunks(data, items, [row[4] for row in entries])

    @staticmethod
    def _check_scalars(scalars: "Any") -> "Dict[str, Any]":
        """Return the scalars of the option, each checked to be {Int|UInt|Float|Bool: value}."""
        checked: "Dict[str, Any]" = Map()
        for name, given in scalars.items() if hasattr(scalars, "items") else [(None, scalars)]:
            pairs = list(given.items()) if hasattr(given, "items") else []
            kind, value = pairs[0] if len(pairs) == 1 else (None, None)
            if kind == "Float" and type(value) is int:
                value = float(value)
            low, high = INT_RANGE["uint64" if kind == "UInt" else "int64"]
            fine = (type(value) is int and low <= value <= high if kind in ("Int", "UInt") else
                    type(value) is {"Float": float, "Bool": bool}.get(str(kind)))
            if not isinstance(name, str) or not is_text(name) or not fine:
                raise ValueError("scalars are {name: {\"Int\", \"UInt\", \"Float\" or \"Bool\": "
                                 "value}}, not %s: %s" % (shown(name), shown(given)))
            checked[name] = Map([(kind, value)])
        return checked

    def _consistent(self, dtype: str, code: "Any") -> bool:
        """Return whether reading this CBOR dtype gives that dtype."""
        try:
            found = self.NAMES.get(code) if type(code) is str else None
            return bool((found or self._dtype(code)[0]) == dtype)
        except _Breach:
            return False

    def _pack(self, entries: "List[Any]", metadata: "Any", scalars: "Any") -> bytes:
        """Return the CBOR: definite, shortest, everything sorted by the bytes of the names."""
        parts = [_cbor_head(5, 1 + bool(metadata) + bool(scalars)), cbor_pack("tensors"),
                 _cbor_head(5, len(entries))]
        keys = [cbor_pack(key) for key in ("dtype", "shape", "data_offsets", "param_id")]
        for raw, _, code, shape, start, end, param_id in sorted(
                entries, key=lambda row: row[0]):
            parts.append(b"".join([
                _cbor_head(3, len(raw)), raw, b"\xa3" if param_id is None else b"\xa4",
                keys[0], cbor_pack(code), keys[1], cbor_pack(shape), keys[2],
                cbor_pack((start, end)),
                b"" if param_id is None else keys[3] + cbor_pack(param_id)]))
        for name, pairs in (("metadata", metadata), ("scalars", scalars)):
            if pairs:
                names = sorted([(encode_text(key), key) for key in pairs])
                parts.append(cbor_pack(name) + _cbor_head(5, len(names)))
                parts += [cbor_pack(key) + cbor_pack(pairs[key]) for _, key in names]
        return b"".join(parts)

    def _chunks(self, data: bytes, items: "List[Tuple[str, Tensor]]",
                starts: "List[int]") -> "Iterator[Any]":
        yield self.HEADER.pack(self.MAGIC, 1, len(data)) + data + bytes(-(10 + len(data)) % 256)
        at = 0
        for (_, item), start in zip(items, starts):
            yield bytes(start - at)
            at = start + item.nbytes
            for block in item._blocks() if item.dtype is not None else item._stored_blocks():
                yield block


class _Breach(Exception):
    """One field of a descriptor is wrong; its text says how."""


# -- [7e] tensorbuffers --------------------------------------------------------------------------


class TensorBuffers(Format):
    """TensorBuffers "TBS1" (russellwmy/tensorbuffers, both schemas: 7190fc4 and 2422de1).

    0      magic "TBS1" 4
    4      data of all tensors, back to back as written, no padding
    M      metadata: one FlatBuffer of n bytes, positions in it count from M
    end-8  n u32 | magic "TBS1" 4

    The root has version, model, tensors and (in the newer schema) operations. Offsets of data are
    absolute. tensorfmt sorts the vector of tensors by id, as its schema says; the real library
    does not (sort=False). The id is the FNV-1a hash of the name and one byte ff. Metadata of
    other builders is read as long as every offset stays inside.
    """

    NAME = "tensorbuffers"
    TITLE = "TensorBuffers TBS1"
    SUFFIXES = (".tbs", ".tensorbuffers")
    MAGIC = b"TBS1"
    DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
              "uint32", "uint64")  # numbers 1 to 10; 0 is a placeholder
    OPTIONS = {"sort": "True: the index by id; False: as given, as the real library",
               "operations": "list of dicts; True: the field, empty; False: no field"}
    FILE_ATTRS = ("version", "operations")
    TENSOR_ATTRS = ("id",)
    CONTENT = ("operations",)
    DATA_ORDER = True

    LEAD = Record(("magic", "4s", "TensorBuffers"))
    TRAILER = Record(("metadata_size", "I", "bytes of FlatBuffer"),
                     ("end_magic", "4s", "TensorBuffers"))
    ROOT = (("version", "string", None, "of the format"), ("model", "string", None, ""),
            ("tensors", "[table]", None, ""), ("operations", "[table]", None, ""))
    ENTRY = (("id", "Q", 0, "hash of the name"), ("name", "string", None, ""),
             ("shape", "[I]", None, ""), ("data_type", "b", 0, "1 float32 ... 10 uint64"),
             ("data_offset", "I", 0, "offset in the file"),
             ("data_size", "I", 0, "bytes"))
    OPERATION = (("id", "Q", 0, ""), ("operation", "b", 0, "number of the operation"),
                 ("output", "Q", 0, "id of a tensor"), ("input_operations", "[Q]", None, ""))

    def read(self, cursor: Cursor) -> "Tuple[Any, Any, List[Tensor]]":
        at = cursor.peek(4)
        magic = bytes(cursor.data[at:at + 4])
        if magic != self.MAGIC[:len(magic)]:
            raise cursor.error("not a TensorBuffers file: leading magic is %s" % quoted(magic),
                               "magic", 0, check="magic")
        if cursor.end < 12:
            raise cursor.error("%d bytes, too short for a frame of 12" % cursor.end, "magic", 0,
                               check="magic")
        cursor.record(self.LEAD)
        cursor.seek(cursor.end - 8)
        nbytes, magic = cursor.record(self.TRAILER)
        if magic != self.MAGIC:
            raise cursor.error("trailing magic is %s: truncated, or bytes behind the end" %
                               quoted(magic), "end_magic", cursor.end - 4, check="magic")
        if nbytes > cursor.end - 12:
            raise cursor.error("metadata_size %d, but the file has %d bytes for it" % (
                nbytes, cursor.end - 12), "metadata_size", cursor.end - 8)
        start = cursor.end - 8 - nbytes
        flat = FlatReader(cursor.fetch(start, nbytes), start, cursor.trace)
        root = flat.target(0, "root")
        flat.tell(0, 4, "root", root, "root table at %d" % root)
        version, model, tensors, operations = flat.fields(root, self.ROOT)
        if version is None:
            raise flat.error("the required field version is missing", root, "table")
        attrs: "Dict[str, Any]" = Map([("version", flat.string(version, "version"))])
        metadata: "Dict[str, Any]" = Map()
        if model is not None:
            metadata["model"] = flat.string(model, "model")
        places = [] if tensors is None else flat.offsets(tensors, "tensors")
        if len(places) * 16 > nbytes:
            raise flat.error("%d tensors are more than %d bytes can hold" % (len(places), nbytes),
                             tensors or 0, "tensors")
        budget = [nbytes]
        rows = self._tensors(cursor, flat, places, start, budget)
        flat.prefix, flat.depth = "", 0
        if operations is not None:
            found = self._operations(flat, flat.offsets(operations, "operations"), budget)
            if found:
                attrs["operations"] = found
        return attrs, metadata, rows

    def _tensors(self, cursor: Cursor, flat: FlatReader, places: "List[int]", end: int,
                 budget: "List[int]") -> "List[Tensor]":
        tensors: "List[Tensor]" = []
        seen: "Dict[str, int]" = {}
        source, sizes, left = cursor.source, [ITEMSIZE[name] for name in self.DTYPES], budget[0]
        flat.depth = 1
        for i, place in enumerate(places):
            if flat.trace is not None:
                flat.prefix = "tensors[%d]." % i
            number, name_at, shape_at, code, offset, nbytes = flat.fields(place, self.ENTRY)
            if name_at is None:
                raise flat.error("the required field name is missing", place, "table")
            name = flat.string(name_at, "name")
            shape: "Tuple[Any, ...]" = ()
            if shape_at is not None:
                shape = flat.scalars(shape_at, "I", "shape", MAX_FLAT_DIMS)
            left -= unpack_from("<I", flat.data, name_at)[0] + len(shape)
            if left < 0:
                raise cursor.error("names and shapes are longer in sum than the metadata: they "
                                   "overlap", flat.prefix + "name", end + name_at, name,
                                   kind=Unsupported)
            if name in seen:
                cursor.fault("two tensors have this name: %d and %d" % (seen[name], i),
                             "tensors[%d].name" % i, name)
                continue
            seen[name] = i
            if not code:
                cursor.fault("data_type 0 (None) is no type", "tensors[%d].data_type" % i, name)
                continue
            if nbytes and (offset < 4 or offset + nbytes > end):
                cursor.fault("data at %d to %d, but the data area is 4 to %d" % (
                    offset, offset + nbytes, end), "tensors[%d].data_offset" % i, name, "bounds")
                continue
            dtype, problem = None, None
            if 1 <= code <= 10:
                dtype, need = self.DTYPES[code - 1], sizes[code - 1]
                for n in shape:
                    need *= n
                if need != nbytes:
                    cursor.fault("%d bytes stored, %s %s needs %d" % (
                        nbytes, dtype, list(shape), need), "tensors[%d].data_size" % i, name,
                        "sizes")
                    continue
            else:
                problem = "data_type %d is not known" % code
            tensors.append(Tensor(name, dtype, shape, source, offset if nbytes else
                                  min(offset, end), nbytes, ("id", number), "tensorbuffers",
                                  None, "<", "raw", problem))
        budget[0] = left
        return tensors

    def _operations(self, flat: FlatReader, places: "List[int]",
                    budget: "List[int]") -> "List[Any]":
        if len(places) * 8 > flat.end:  # a table and the offset to it
            raise flat.error("%d operations are more than %d bytes can hold" % (
                len(places), flat.end), 0, "operations")
        found = []
        flat.depth = 1
        for i, place in enumerate(places):
            flat.prefix = "operations[%d]." % i
            number, operation, output, inputs_at = flat.fields(place, self.OPERATION)
            inputs: "Tuple[Any, ...]" = ()
            if inputs_at is not None:
                budget[0] -= flat.vector(inputs_at, 8, "input_operations")
                if budget[0] < 0:
                    error = flat.error("more inputs than the metadata has bytes: they overlap",
                                       inputs_at, "input_operations")
                    raise Unsupported(error.what, error.offset, error.field)
                inputs = flat.scalars(inputs_at, "Q", "input_operations")
            found.append(Map([("id", number), ("operation", operation), ("output", output),
                              ("input_operations", list(inputs))]))
        return found

    # writing

    @staticmethod
    def hash_name(raw: bytes) -> int:
        """Return the id of a name: FNV-1a, 64 bits, over its UTF-8 bytes and one byte ff."""
        h = 0xCBF29CE484222325
        for byte in raw + b"\xff":
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return h

    def misfit_metadata(self, metadata: "Any", options: "Dict[str, Any]") -> "List[Any]":
        return [(key, "TensorBuffers holds one text, 'model'") for key, value in metadata.items()
                if key != "model" or not isinstance(value, str) or not is_text(value)]

    def write(self, items: "List[Tuple[str, Tensor]]", metadata: "Any", attrs: "Any",
              options: "Dict[str, Any]") -> "Iterator[Any]":
        problems = self.check_common(items, metadata, options)
        check_names(problems, items)
        entries, at = [], 4
        ids: "Dict[int, str]" = {}
        for name, item in items:
            if at >= 1 << 32 or item.nbytes >= 1 << 32 or [n for n in item.shape if n >= 1 << 32]:
                problems.append((name, "an offset, a size or a dimension over 2**32-1"))
            if item.ndim > MAX_FLAT_DIMS:
                problems.append((name, "%d dimensions, %d is the limit" % (
                    item.ndim, MAX_FLAT_DIMS)))
            number = self.hash_name(encode_text(name)) if is_text(name) else 0
            if number in ids and ids[number] != name:
                problems.append((name, "it has the same id as %s" % shown(ids[number])))
            ids[number] = name
            entries.append((number, name, item, at))
            at += item.nbytes
        operations = options.get("operations")
        operations = attrs.get("operations", True) if operations is None else operations
        sort = options.get("sort", True)
        if not isinstance(sort, bool) or not isinstance(operations, (bool, list, tuple)):
            raise ValueError("sort is a bool, operations a bool or a list of dicts")
        self.refuse(problems)
        data = self._pack(entries, metadata, operations, sort)
        return self._chunks(items, data)

    def _pack(self, entries: "List[Any]", metadata: "Any", operations: "Any", sort: bool) -> bytes:
        """Return the FlatBuffer; the order of the calls is the order of its bytes, last first."""
        flat = FlatBuilder()
        places = []
        for number, name, item, at in entries:
            shape = flat.scalars("I", item.shape)
            text = flat.string(name)
            places.append((number, flat.table((
                (0, "Q", number, 0), (5, "I", item.nbytes, 0), (4, "I", at, 0),
                (2, "offset", shape, None), (1, "offset", text, None),
                (3, "b", self.DTYPES.index(item.dtype) + 1, 0)))))
        steps = []
        for operation in operations if not isinstance(operations, bool) else ():
            steps.append(self._pack_operation(flat, operation))
        version = flat.string("1.0.0")
        if sort:
            places.sort()
        tensors = flat.offsets([place for _, place in places])
        listed = None if operations is False else flat.offsets(steps)
        model = flat.string(metadata["model"]) if "model" in metadata else None
        return flat.finish(flat.table((
            (3, "offset", listed, None), (2, "offset", tensors, None), (1, "offset", model, None),
            (0, "offset", version, None))))

    def _pack_operation(self, flat: FlatBuilder, operation: "Any") -> int:
        known = [row[0] for row in self.OPERATION]
        inputs = operation.get("input_operations", ()) if isinstance(operation, dict) else None
        if not isinstance(inputs, (list, tuple)):
            raise ValueError("an operation is a dict with a list of input_operations, not %s" %
                             shown(operation))
        wrong: "List[Any]" = [key for key in operation if key not in known]
        values = [operation.get(key, 0) for key in known[:3]]
        inputs = list(inputs)
        for value in [values[0], values[2]] + inputs:
            if not all_u64([value]):
                wrong.append(value)
        if type(values[1]) is not int or not -128 <= values[1] < 128:
            wrong.append(values[1])
        if wrong:
            raise ValueError("an operation has the keys %s (integers); not %s" % (
                ", ".join(known), shown(wrong)))
        place = flat.scalars("Q", inputs)
        return flat.table(((2, "Q", values[2], 0), (0, "Q", values[0], 0),
                           (3, "offset", place, None), (1, "b", values[1], 0)))

    def _chunks(self, items: "List[Tuple[str, Tensor]]", data: bytes) -> "Iterator[Any]":
        yield self.MAGIC
        for _, item in items:
            for block in item._blocks():
                yield block
        yield data
        yield self.TRAILER.pack(len(data), self.MAGIC)


# -- [8] load and save ---------------------------------------------------------------------------

FORMATS: "Tuple[Format, ...]" = (
    Mag(),
    ZTensor(),
    Primitiv(),
    Burnpack(),
    TensorBuffers(),
)


def find_format(name: str) -> "Format":
    """Return the entry of FORMATS with this name; ValueError lists those there are."""
    for kind in FORMATS:
        if kind.NAME == name:
            return kind
    raise ValueError("no format %s; there are %s" % (
        shown(name), ", ".join([kind.NAME for kind in FORMATS])))


def _kind_of(source: "Any", name: "Optional[str]") -> "Format":
    """Return the format by name, else by content: the leading bytes, never the suffix."""
    if name is not None:
        return find_format(name)
    head = source.read(0, min(64, source.nbytes))
    kinds = [kind for kind in FORMATS if kind.MAGIC] + [k for k in FORMATS if not k.MAGIC]
    for kind in kinds:  # the one without a magic comes last
        if kind.detect(head):
            return kind
    if not head:
        raise FormatError("the file is empty", 0, "magic", None, source.path, "magic")
    hint = "; a Git LFS pointer, fetch the file itself" if head[:8] == b"version " else ""
    raise FormatError("not a tensor file known here (it begins with %s)%s" % (
        " ".join(["%02x" % byte for byte in head[:8]]), hint), 0, "magic", None, source.path,
        "magic")


def detect(source: "Any") -> "Optional[str]":
    """Return the name of the format that a source's leading bytes tell, or None.

    >>> detect(b"ZTEN0001" + b"\\x80" + b"\\x01" + bytes(7))
    'ztensor'
    """
    opened = open_source(source, False)
    try:
        return _kind_of(opened, None).NAME
    except FormatError:
        return None
    finally:
        opened.close()


def _check_options(options: "Iterable[str]", known: "Dict[str, str]", what: str) -> None:
    for key in options:
        if key not in known:
            raise TypeError("%s has no option %r; there are %s" % (
                what, key, ", ".join(["%s (%s)" % pair for pair in known.items()]) or "none"))


def _read(kind: "Format", source: "Any", options: "Dict[str, Any]") -> File:
    """Parse an index. Where that fails, parse it again with a trace that finds the offset."""
    _check_options(options, kind.READ_OPTIONS, "loading %s" % kind.NAME)
    try:
        attrs, metadata, tensors = kind.read(Cursor(source), **options)
        return File(kind.NAME, source, attrs, metadata, tensors, options)
    except FormatError as caught:
        error = caught
    except OverflowError:  # a device whose files end at 2 GiB
        error = Unsupported("an offset in the file is too large for this device")
    try:
        kind.read(Cursor(source, Trace(error.field or "")), **options)
    except FormatError as caught:
        if caught.what == error.what:
            error = caught
    except OverflowError:
        pass
    error.path = source.path
    raise error


def load(source: "Any", *, format: "Optional[str]" = None, mmap: bool = True,
         verify: bool = False, **options: "Any") -> File:
    """Open a tensor file of any of the five formats. O(index): no tensor byte is touched.

    `source`: a path, a bytes-like object, or a seekable binary stream (read from its start; not
    closed). `format` skips detection. mmap=False reads a tensor's bytes when they are asked for.
    verify=True also checks everything that verify() checks. Options: layout= for burnpack.

    Raises FormatError (or its subclass Unsupported) for the bytes, OSError for the file,
    TypeError for unknown options.

    >>> f = load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    >>> f.format, list(f), f["w"].dtype, f["w"].tolist()
    ('ztensor', ['w'], 'float64', [1.0, 2.0])
    """
    opened = open_source(source, mmap)
    done = False
    try:
        kind = _kind_of(opened, format)
        file = _read(kind, opened, options)
        if verify:
            report = beyond("verify_source")(opened, kind, options)
            if report.errors:
                raise report.errors[0]
        done = True
        return file
    finally:
        if not done:
            opened.close()


# saving


def _as_items(tensors: "Any") -> "List[Tuple[str, Tensor]]":
    """Return (name, Tensor) pairs of a mapping or an iterable of pairs; duplicates are refused."""
    if isinstance(tensors, File):
        pairs = _in_order(tensors)
    else:
        pairs = list(tensors.items() if hasattr(tensors, "items") else tensors)
    items: "List[Tuple[str, Tensor]]" = []
    seen = set()
    for pair in pairs:
        name, value = pair
        if not isinstance(name, str):
            raise TypeError("a tensor's name is a str, not %s" % shown(name))
        if name in seen:
            raise ValueError("two tensors are called %s" % shown(name))
        seen.add(name)
        if not isinstance(value, Tensor):
            try:
                value = tensor(value)
            except (ValueError, TypeError) as error:
                wrong: "Any" = type(error)("tensor %s: %s" % (quoted(name), error))
            else:
                wrong = None
            if wrong is not None:
                raise wrong
        items.append((name, value))
    return items


def _in_order(file: File) -> "List[Tuple[str, Tensor]]":
    """Return a File's items: in the order of the data where the format sorts its index."""
    items = list(file.items())
    if not find_format(file.format).DATA_ORDER:
        return items
    keys = [(item._offset, item._stored, i) for i, (_, item) in enumerate(items)]
    return [items[key[2]] for key in sorted(keys)]


def check_stored(items: "List[Tuple[str, Tensor]]") -> None:
    """Raise FormatError where stored bytes do not agree with their checksum: never copy rot."""
    seen = set()
    for name, item in items:
        if item.format is None:
            continue
        kind = find_format(item.format)
        for label, offset, nbytes, text in kind.checksums(item):
            key = (id(item._source), offset, nbytes, text)
            if key not in seen:
                seen.add(key)
                status, why = check_range(item._source, offset, nbytes, text)
                if status == "FAIL":
                    raise FormatError(label + why, offset, "data", name, item._source.path,
                                      "checksums")


def _encode(kind: "Format", tensors: "Any", metadata: "Any", attrs: "Any",
            options: "Dict[str, Any]") -> "Iterator[Any]":
    """Check everything, then return an iterator over the bytes of the file."""
    _check_options(options, kind.OPTIONS, "saving %s" % kind.NAME)
    same = isinstance(tensors, File) and tensors.format == kind.NAME
    if metadata is None:
        metadata = tensors.metadata if isinstance(tensors, File) else {}
    if attrs is None:
        attrs = tensors.attrs if same else {}
    for what, given in (("metadata", metadata), ("attrs", attrs)):
        if not hasattr(given, "items"):
            raise TypeError("%s is a mapping, not %s" % (what, type(given).__name__))
    for key in attrs:
        if key not in kind.FILE_ATTRS:
            raise ValueError("%s knows no file attribute %s; there are %s" % (
                kind.NAME, shown(key), ", ".join(kind.FILE_ATTRS)))
    items = _as_items(tensors)
    chunks = kind.write(items, metadata, attrs, options)
    check_stored(items)
    return chunks


def _target_format(format: "Optional[str]", target: "Any", tensors: "Any") -> "Format":
    """Return the format to write: the argument, the suffix, then that of a File."""
    if format is not None:
        return find_format(format)
    path = "" if hasattr(target, "write") else path_of(target)
    for kind in FORMATS:
        for suffix in kind.SUFFIXES:
            if path.lower().endswith(suffix):
                return kind
    if path and isinstance(tensors, File):
        return find_format(tensors.format)
    raise ValueError("which format? give format= or --format (%s), or a path with a suffix (%s)" % (
        ", ".join([kind.NAME for kind in FORMATS]),
        ", ".join([kind.SUFFIXES[0] for kind in FORMATS])))


def save(target: "Any", tensors: "Any", *, format: "Optional[str]" = None,
         metadata: "Any" = None, attrs: "Any" = None, **options: "Any") -> None:
    """Write tensors to a path or a writable binary stream.

    `tensors`: a File, any mapping of names to values, or an iterable of (name, value); values as
    tensor() takes them. The format: `format`, else the suffix, else that of the File. `metadata`
    None means that of the File; `attrs` are facts of the format, from a File of it unless given.
    Options belong to the format (`tensorfmt formats` lists them).

    A path is written beside the target, fsync'ed and renamed over it: a failure leaves the old
    file as it was. What the format cannot hold is a ValueError, before the first byte, that
    names each tensor. Memory is bounded by blocks, not by the model. FormatError if the bytes of
    a source are damaged; OSError from the file system; TypeError for unknown options.
    """
    kind = _target_format(format, target, tensors)
    _write_out(target, _encode(kind, tensors, metadata, attrs, options))


def dumps(tensors: "Any", *, format: str, metadata: "Any" = None, attrs: "Any" = None,
          **options: "Any") -> bytes:
    """Return what save() would write; load() takes it back.

    >>> len(dumps({}, format="mag")), dumps({}, format="ztensor").hex()
    (24, '5a54454e30303031800100000000000000')
    """
    chunks = _encode(find_format(format), tensors, metadata, attrs, options)
    return b"".join([bytes(chunk) for chunk in chunks])


def _write_out(target: "Any", chunks: "Iterator[Any]") -> int:
    """Write a file to a path or a stream; return its bytes."""
    if hasattr(target, "write"):
        return _write_all(target, chunks)
    path = path_of(target)
    if FULL_PYTHON and hasattr(os, "replace"):
        return _write_beside(path, chunks)
    return _write_simply(path, chunks)


def _write_all(stream: "Any", chunks: "Iterator[Any]") -> int:
    """Write every chunk whole, also to a stream whose write() takes less than it is given."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        view = memoryview(chunk) if FULL_PYTHON else chunk
        while len(view):
            count = stream.write(view)
            if count is None and not hasattr(stream, "readall"):  # not a raw one: it took all
                break
            if not count:
                raise OSError("the target takes no more bytes")
            view = view[count:]
    return total


if FULL_PYTHON:
    def _write_beside(path: "Any", chunks: "Iterator[Any]") -> int:
        """Write a file beside the target, then rename it over the target. Return its bytes."""
        from stat import S_IMODE, S_ISREG
        try:
            mode: "Optional[int]" = os.stat(path).st_mode  # follows links, also /dev/stdout
        except FileNotFoundError:
            mode = None
        if mode is not None and not S_ISREG(mode):  # a device, a pipe (or a folder: an OSError)
            with open(path, "wb") as stream:
                return _write_all(stream, chunks)
        path = os.path.realpath(path)
        stream, temporary = _open_beside(path)
        try:
            if mode is not None and hasattr(os, "chmod"):  # before anybody else can read it
                os.chmod(temporary, S_IMODE(mode))
            with stream:
                total = _write_all(stream, chunks)
                stream.flush()
                if hasattr(os, "fsync"):
                    os.fsync(stream.fileno())
            try:
                os.replace(temporary, path)
            except PermissionError as error:
                if os.name != "nt":
                    raise
                error.strerror = ("%s (Windows cannot replace a file that is mapped: close() the "
                                  "File and drop its views, or load with mmap=False)"
                                  % error.strerror)
                raise
            temporary = None
        finally:
            if temporary is not None:
                os.remove(temporary)
        _sync_folder(os.path.dirname(path))
        return total

    def _open_beside(path: str) -> "Tuple[Any, Any]":
        """Return (stream, name) of a new file beside the target: counts until a name is free."""
        folder, name = os.path.split(path)
        number = 0
        while True:
            temporary = os.path.join(folder, ".%s.%d.tmp" % (name[:40], number))
            try:
                return open(temporary, "xb"), temporary
            except FileExistsError:
                number += 1
            except OSError as error:
                error.filename = path  # the one that the user knows
                raise

    def _sync_folder(folder: str) -> None:
        """Make the rename durable where folders can be synced (not on Windows)."""
        try:
            number = os.open(folder or ".", os.O_RDONLY)
        except (OSError, AttributeError):
            return
        try:
            os.fsync(number)
        except (OSError, AttributeError):
            pass
        finally:
            os.close(number)


def _write_simply(path: str, chunks: "Iterator[Any]") -> int:
    """Write beside the target and rename, where there is no os.replace (boards)."""
    temporary = path + ".tmp"
    with open(temporary, "wb") as stream:
        total = _write_all(stream, chunks)
    try:
        os.rename(temporary, path)
    except OSError:  # FAT does not rename over a file
        os.remove(path)
        os.rename(temporary, path)
    return total


# == The cut line: a copy for boards ends here; below is what they lack the memory or a use for ==

__all__ += ["convert", "verify", "explain"]

# -- [9a] zstd -----------------------------------------------------------------------------------

ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")


def zstd_module() -> "Any":
    """Return the first zstd module that is there; Unsupported names those that would do."""
    for name in ZSTD_MODULES:
        try:
            return __import__(name, None, None, ["ZstdCompressor"])
        except ImportError:
            pass
    raise Unsupported("zstd data need one of the modules %s; pip install zstandard"
                      % ", ".join(ZSTD_MODULES))


class _Frames:
    """The stored bytes of a tensor as a binary file: nothing is copied before it is asked for."""

    closed = False

    def __init__(self, source: "Any", offset: int, nbytes: int) -> None:
        self._source = source
        self._pos = offset
        self._end = offset + nbytes

    def read(self, nbytes: int = -1) -> bytes:
        left = self._end - self._pos
        nbytes = left if nbytes < 0 else min(nbytes, left)
        self._pos += nbytes
        return bytes(self._source.view(self._pos - nbytes, nbytes))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def zstd_blocks(source: "Any", offset: int, nbytes: int, count: int) -> "Iterator[Any]":
    """Yield the `count` bytes that the zstd frames at source[offset:offset + nbytes] must hold.

    Any number of frames, skippable ones too; the sizes that they state are not trusted.
    FormatError where they are damaged or give another number of bytes.
    """
    module = zstd_module()
    check_frames(source, offset, nbytes)
    frames = _Frames(source, offset, nbytes)
    if hasattr(module, "ZstdFile"):
        def start() -> "Any":
            return module.ZstdFile(frames)
    else:
        def start() -> "Any":
            return module.ZstdDecompressor().stream_reader(frames, read_across_frames=True)
    stream = _guarded(start)
    left = count
    while left:
        block = bytearray(min(left, BLOCK))
        room = memoryview(block)
        filled = 0
        while filled < len(block):
            got = _guarded(stream.readinto, room[filled:])
            if not got:
                raise FormatError("zstd: %d bytes decoded, dtype and shape need %d"
                                  % (count - left + filled, count))
            filled += got
        left -= filled
        yield block
    if _guarded(stream.read, 1):
        raise FormatError("zstd: more bytes decoded than the %d that dtype and shape need" % count)


def check_frames(source: "Any", at: int, nbytes: int) -> None:
    """Raise FormatError unless the bytes are whole zstd frames: not every module looks (RFC 8878).

    frame = magic 4 | flags 1 | window, dictionary, content size | blocks of 3 + n bytes | checksum
    """
    end, last = at + nbytes, 1
    while at < end and last:
        head = bytes(source.view(at, min(8, end - at)))
        magic = int.from_bytes(head[:4], "little")
        if len(head) == 8 and magic & ~15 == 0x184D2A50:  # skippable: magic, length, anything
            at += 8 + int.from_bytes(head[4:], "little")
            continue
        if len(head) < 6 or magic != 0xFD2FB528:
            raise FormatError("zstd: no frame begins at byte %d of %d" % (
                at - end + nbytes, nbytes))
        flags = head[4]
        single = flags >> 5 & 1
        at += 6 - single + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
        last = 0
        while not last and at + 3 <= end:
            block = int.from_bytes(bytes(source.view(at, 3)), "little")
            last = block & 1
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)  # type 1: one byte repeated
        at += 4 if flags & 4 else 0
    if at != end or not last:
        raise FormatError("zstd: the last frame is cut short, or bytes lie behind it")


def _guarded(call: "Any", *args: "Any") -> "Any":
    """Call into the zstd module: whatever it raises on bad data is a FormatError."""
    try:
        return call(*args)
    except FormatError:
        raise
    except (Exception, MemoryError) as error:
        why = "%s: %s" % (type(error).__name__, error)
    raise FormatError("zstd: the data are damaged (%s)" % why)


def zstd_compress(blocks: "Iterable[Any]", nbytes: int, level: int) -> "Iterator[bytes]":
    """Yield one zstd frame, with its content size, of blocks of nbytes bytes in all."""
    module = zstd_module()
    if hasattr(module, "ZstdFile"):
        compressor = module.ZstdCompressor(level)
        for name in ("set_pledged_input_size", "_set_pledged_input_size"):
            if hasattr(compressor, name):
                getattr(compressor, name)(nbytes)
                break
        else:  # the size goes into the frame only when all of it is there at once
            yield module.compress(b"".join([bytes(block) for block in blocks]), level)
            return
    else:
        compressor = module.ZstdCompressor(level=level).compressobj(size=nbytes)
    for block in blocks:
        yield compressor.compress(block)
    yield compressor.flush()


# -- [9b] sparse ---------------------------------------------------------------------------------


class Sparse(Tensor):
    """A tensor of which some elements are stored, the others are 0: csr (rank 2) or coo.

    Its bytes, values and sub-tensors are those of the dense form, made anew at each call. The
    parts are read, and checked, when they are first asked for.
    """

    __slots__ = ("_parts", "_read_parts", "_end")
    _sparse = True

    def __init__(self, *args: "Any", parts: "Any" = None, read: "Any" = None,
                 end: int = 0) -> None:
        super().__init__(*args)
        self._encoding = "sparse"
        self._parts = parts
        self._read_parts = read
        self._end = end  # of the file's data area, where parts can lie

    @property
    def components(self) -> "Dict[str, Tensor]":
        if self._parts is None:
            parts = self._read_parts()
            breach = sparse_breach(self.shape, parts)
            if breach is not None:
                raise self._error(breach)
            self._parts = parts
        parts = self._parts
        return Map(parts.items())

    def _ranges(self) -> "List[Tuple[int, int, str]]":
        return super()._ranges() + [(entry["offset"], entry["size"], "%s.%s" % (self.name, key))
                                    for key, entry in placed_parts(self)]

    def todense(self) -> Tensor:
        parts = self.components
        if self.nbytes > MAX_DENSE:
            raise self._error("%d bytes in its dense form, MAX_DENSE = %d" % (
                self.nbytes, MAX_DENSE), Unsupported)
        out = bytearray(self.nbytes)
        size = self._check()
        values = parts["values"].tobytes()
        at = 0
        for place in sparse_places(self.shape, parts):
            out[place * size:place * size + size] = values[at:at + size]
            at += size
        return self._held(out)

    def _blocks(self) -> "Iterator[Any]":
        return self.todense()._blocks()

    def _copy(self, **changes: "Any") -> Tensor:
        if "source" in changes:  # the dense form: what described the parts is gone
            changes.setdefault("attrs", self._dense_attrs())
            return super()._copy(**changes)
        args = [changes.get(key, getattr(self, key)) for key in ("name", "dtype", "shape")]
        args += [self._source, self._offset, self._stored,
                 changes.get("attrs", Map(self.attrs.items())),
                 changes.get("format", self.format)]
        return Sparse(*args, parts=self._parts, read=self._read_parts, end=self._end)

    def _dense_attrs(self) -> "Dict[str, Any]":
        return Map([(key, value) for key, value in self.attrs.items()
                    if key not in SPARSE_ATTRS + ("layout",)])

    def _with_values(self, dtype: str) -> "Sparse":
        """Return it with the values cast, still sparse."""
        parts = self.components
        parts["values"] = parts["values"].astype(dtype)
        return sparse_of(self.name, dtype, self.shape, self.attrs, self.format, parts)

    def _rising(self) -> "Dict[str, Tensor]":
        """Return the parts with the columns of each row of a csr tensor in rising order."""
        parts = self.components
        if "coords" in parts:
            return parts
        indices, indptr = parts["indices"].data, parts["indptr"].data
        order: "List[int]" = []
        for i in range(len(indptr) - 1):
            row = range(indptr[i], indptr[i + 1])
            order.extend(sorted(row, key=lambda k: indices[k]))
        if order == list(range(len(order))):
            return parts
        for key in ("values", "indices"):
            part = parts[key]
            size, raw = part.itemsize or 1, part.tobytes()
            parts[key] = part._held(b"".join([raw[k * size:k * size + size] for k in order]))
        return parts

    def __reduce__(self) -> "Any":
        return sparse_of, (self.name, self.dtype, self.shape, self.attrs, self.format,
                           self.components)


SPARSE_ATTRS = ("sparse_format", "nnz", "indptr", "indices", "coords")  # computed when saving


def placed_parts(item: Tensor) -> "List[Tuple[str, Any]]":
    """Return (key, map) of the component maps of a sparse tensor that place bytes in its file."""
    found = []
    for key in SPARSE_ATTRS[2:] if item.attrs.get("layout") == "sparse" else ():
        entry = item.attrs.get(key)
        if isinstance(entry, dict) and not isinstance(item._source, Held):
            offset, nbytes = entry.get("offset"), entry.get("size")
            end = item._end if isinstance(item, Sparse) else item._source.nbytes
            if type(offset) is int and type(nbytes) is int and 64 <= offset <= (
                    offset + nbytes) <= end:
                found.append((key, entry))
    return found


def sparse_of(name: str, dtype: "Optional[str]", shape: "Tuple[int, ...]", attrs: "Any",
              format: "Optional[str]", parts: "Any") -> Sparse:
    """Return the sparse tensor of these components; its own bytes are those of the values."""
    values = parts["values"]
    return Sparse(name, dtype, shape, values._source, values._offset, values._stored, attrs,
                  format, parts=parts)


def from_components(dtype: "Optional[str]", shape: "Any", components: "Any",
                    attrs: "Dict[str, Any]") -> Tensor:
    """Return a sparse Tensor of its parts, each as tensor() takes it."""
    keys = sorted(components)
    if keys not in (["indices", "indptr", "values"], ["coords", "values"]) or shape is None:
        raise ValueError("a sparse tensor needs shape= and components {values, indptr, indices} "
                         "or {values, coords}")
    parts: "Dict[str, Tensor]" = Map()
    for key in ("values", "indptr", "indices", "coords"):
        if key in components:
            part = tensor(components[key], dtype if key == "values" else None)
            if key != "values" and part.dtype not in ("uint32", "uint64"):
                part = tensor([], "uint64") if not part.size else part.astype("uint64")
            parts[key] = part.contiguous()._copy(shape=(part.size,), name=key)
    shape = _as_shape(shape)
    breach = sparse_breach(shape, parts)
    if breach is not None:
        raise ValueError(breach)
    values = parts["values"]
    if "coords" in parts:
        parts["coords"] = parts["coords"]._copy(shape=(len(shape), values.size))
    return sparse_of("", values.dtype, shape, Map(attrs.items()), None, parts)


def sparse_breach(shape: "Tuple[int, ...]", parts: "Dict[str, Tensor]") -> "Optional[str]":
    """Return what is wrong with the indices of a sparse tensor, or None. O(stored elements)."""
    nnz = parts["values"].size
    if nnz > count_elements(shape) and "coords" in parts:
        return "%d values, the shape %s has %d elements: a coordinate occurs twice" % (
            nnz, shown(list(shape)), count_elements(shape))
    if "coords" in parts:
        coords = parts["coords"].data
        if len(coords) != len(shape) * nnz:
            return "%d coordinates for %d values of rank %d" % (len(coords), nnz, len(shape))
        axes = [coords[axis * nnz:axis * nnz + nnz] for axis in range(len(shape))]
        for axis, n in zip(axes, shape):
            if nnz and max(axis) >= n:
                return "a coordinate is outside the shape: %d of %d" % (max(axis), n)
        if shape and len(set(zip(*axes))) != nnz:
            return "a coordinate occurs twice"
        return None
    if len(shape) != 2:
        return "csr needs rank 2, this is rank %d" % len(shape)
    indptr, indices = parts["indptr"].data, parts["indices"].data
    if len(indptr) != shape[0] + 1 or len(indices) != nnz:
        return "%d row pointers and %d columns for %d rows and %d values" % (
            len(indptr), len(indices), shape[0], nnz)
    if indptr[0] != 0 or indptr[len(indptr) - 1] != nnz:
        return "indptr does not go from 0 to the number of values"
    for i in range(len(indptr) - 1):
        if indptr[i] > indptr[i + 1]:
            return "indptr falls in row %d" % i
        row = set(indices[indptr[i]:indptr[i + 1]])
        if len(row) != indptr[i + 1] - indptr[i]:
            return "a column occurs twice in row %d" % i
        if row and max(row) >= shape[1]:
            return "a column index is outside the shape: %d of %d" % (max(row), shape[1])
    return None


def sparse_places(shape: "Tuple[int, ...]", parts: "Dict[str, Tensor]") -> "Iterator[int]":
    """Yield, for each stored value, its place among the elements of the dense form."""
    if "coords" in parts:
        coords, nnz = parts["coords"].data, parts["values"].size
        strides = row_major(shape, 1)
        for k in range(nnz):
            place = 0
            for axis, stride in enumerate(strides):
                place += coords[axis * nnz + k] * stride
            yield place
        return
    indptr, indices = parts["indptr"].data, parts["indices"].data
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            yield i * shape[1] + indices[k]


# What zTensor stores of them. Everything is checked when the parts are first asked for.


def as_sparse(base: Tensor, layout: str, end: int) -> Sparse:
    """Return the sparse tensor of an entry whose stored bytes are `base`; data end at `end`."""
    find = ztensor_parts if layout == "sparse" else legacy_parts
    return Sparse(base.name, base.dtype, base.shape, base._source, base._offset, base._stored,
                  base._attrs, base.format, read=lambda: find(base, layout, end), end=end)


def ztensor_parts(base: Tensor, layout: str, end: int) -> "Dict[str, Tensor]":
    """Return the components that the custom fields of a sparse entry describe."""
    attrs, shape = base.attrs, base.shape
    kind, nnz = attrs.get("sparse_format"), attrs.get("nnz")
    if type(kind) is not str:
        raise base._error("sparse_format is %s, not text" % shown(kind))
    if kind not in ("csr", "coo"):
        raise base._error("sparse_format %s is not known" % shown(kind), Unsupported)
    for key in ("indptr", "indices") if kind == "csr" else ("coords",):
        if key not in attrs:
            raise base._error("sparse tensor without the field %r" % key, Unsupported)
    if "nnz" in attrs and not all_u64([nnz]):
        raise base._error("nnz is %s, not an unsigned integer" % shown(nnz), field="nnz")
    parts: "Dict[str, Tensor]" = Map()
    if kind == "csr":
        if len(shape) != 2:
            raise base._error("csr needs rank 2, this is rank %d" % len(shape))
        indptr = ztensor_part(base, "indptr", (shape[0] + 1,), end)
        last = indptr[shape[0]]
        if last > count_elements(shape):
            raise base._error("the last number of indptr is %d, %s has %d elements" % (
                last, list(shape), count_elements(shape)), field="indptr")
        if nnz not in (None, last):
            raise base._error("the last number of indptr is %d, nnz is %d" % (last, nnz))
        parts["values"] = ztensor_values(base, last)
        parts["indptr"], parts["indices"] = indptr, ztensor_part(base, "indices", (last,), end)
        return parts
    if nnz is None:
        if base._encoding == "zstd":
            raise base._error("nnz is missing and the values are compressed")
        nnz = base._stored // (base.itemsize or 1)
    if nnz > count_elements(shape):
        raise base._error("nnz is %d, the shape %s has %d elements" % (
            nnz, shown(list(shape)), count_elements(shape)), field="nnz")
    parts["values"] = ztensor_values(base, nnz)
    parts["coords"] = ztensor_part(base, "coords", (len(shape), nnz), end)
    return parts


def ztensor_values(base: Tensor, nnz: int) -> Tensor:
    part = base._copy(shape=(nnz,), attrs=())
    check_part(base, part)
    return part


def check_part(base: Tensor, part: Tensor) -> None:
    """Raise where the stored bytes of a component cannot be those of its shape."""
    need = part.nbytes
    if part._encoding == "raw" and part._stored != need:
        raise base._error("%d bytes stored, %s %s needs %d" % (
            part._stored, part.dtype, shown(list(part.shape)), need))
    if part._encoding == "zstd" and (part._stored < 1 or need > MAX_EXPANSION * part._stored):
        raise base._error("zstd cannot expand %d bytes to %d" % (part._stored, need))


def ztensor_part(base: Tensor, key: str, shape: "Tuple[int, ...]", end: int) -> Tensor:
    """Return the component under this key: a map that places a blob, or an inline array."""
    entry = base.attrs[key]
    count = count_elements(shape)
    if isinstance(entry, list):
        if not all_u64(entry):
            raise base._error("%r holds something that is not an unsigned integer" % key,
                              field=key)
        if len(entry) != count:
            raise base._error("%r has %d numbers, not %d" % (key, len(entry), count),
                              field=key)
        raw = bytes(pack_values("uint64", entry))
        return Tensor(key, "uint64", shape, Held(raw), 0, len(raw))
    if not isinstance(entry, dict):
        raise base._error("%r is %s, no map" % (key, shown(entry)), field=key)
    offset: "Any" = entry.get("offset")
    nbytes: "Any" = entry.get("size")
    dtype, encoding = entry.get("dtype", "uint64"), entry.get("encoding", "raw")
    endian = entry.get("data_endianness")
    if not all_u64([offset, nbytes]):
        raise base._error("%r lacks 'offset' or 'size'" % key, field=key)
    if offset < 64 or offset % 64 or offset + nbytes > end:
        raise base._error("%r: data at %d to %d; a multiple of 64, at least 64, and before "
                          "the index at %d" % (key, offset, offset + nbytes, end), field=key)
    if endian not in (None, "little", "big"):
        raise base._error("data_endianness of %r is neither little nor big" % key, field=key)
    if type(entry.get("checksum", "")) not in (str, type(None)):
        raise base._error("the checksum of %r is not text" % key, field=key)
    if dtype not in ("uint64", "uint32") or encoding not in ("raw", "zstd"):
        raise base._error("%r has dtype %s, encoding %s" % (key, shown(dtype), shown(encoding)),
                          Unsupported, key)
    part = Tensor(key, dtype, shape, base._source, offset, nbytes,
                  (), base.format, None,
                  ">" if endian == "big" and encoding == "raw" else "<", encoding)
    check_part(base, part)
    return part


def legacy_parts(base: Tensor, layout: str, end: int) -> "Dict[str, Tensor]":
    """Return the components of the real library's layouts: indices and values in one blob."""
    size, rank, shape = base.itemsize or 1, base.ndim, base.shape
    source, at, data = base._source, base._offset, base
    if base._encoding == "zstd":
        data = base.contiguous()
    elif base._order == ">":  # the whole blob is swapped in groups of the item size
        if base._stored % size:
            raise base._error("%d bytes are no whole groups of %d" % (base._stored, size))
        data = base._held(swap(base.raw, size))
    if data is not base:
        source, at = data._source, 0
    nbytes = data._stored

    def part(key: str, dtype: str, shape: "Tuple[int, ...]", start: int) -> Tensor:
        return Tensor(key, dtype, shape, source, at + start,
                      count_elements(shape) * ITEMSIZE[dtype], (), base.format)
    parts: "Dict[str, Tensor]" = Map()
    if layout == "sparsecsr":
        if rank != 2:
            raise base._error("sparsecsr needs rank 2, this is rank %d" % rank)
        head = 8 * (shape[0] + 1)
        if head > nbytes:
            raise base._error("%d bytes, the row pointers alone need %d" % (nbytes, head))
        indptr = part("indptr", "uint64", (shape[0] + 1,), 0)
        nnz = indptr[shape[0]]
        if nbytes != head + nnz * (8 + size):
            raise base._error("%d bytes, %d stored elements need %d" % (
                nbytes, nnz, head + nnz * (8 + size)))
        parts["values"] = part("values", base.dtype or "", (nnz,), head + 8 * nnz)
        parts["indptr"] = indptr
        parts["indices"] = part("indices", "uint64", (nnz,), head)
        return parts
    step = 8 * rank + size  # per element: its coordinates, then its value
    nnz = nbytes // step
    if nbytes % step:
        raise base._error("%d bytes are no whole elements of %d" % (nbytes, step))
    blob = bytes(source.view(at, nbytes))
    values = b"".join([blob[i:i + size] for i in range(8 * rank, nbytes, step)])
    coords = b"".join([blob[i:i + 8] for axis in range(rank)
                       for i in range(8 * axis, nbytes, step)])
    parts["values"] = Tensor("values", base.dtype, (nnz,), Held(values), 0, len(values))
    parts["coords"] = Tensor("coords", "uint64", (rank, nnz), Held(coords), 0, len(coords))
    return parts


# -- [9c] quantized ------------------------------------------------------------------------------


class Quantized(Tensor):
    """A tensor of Burn in a quantization scheme of 0.20, 0.21 or 0.22-pre.2; others are opaque.

    values | zeros to a multiple of 4 bytes | scales. Value i takes bits [i*b, i*b + b) of the
    little-endian words; one scale per tensor, or per block of k elements of the last dimension.
    """

    __slots__ = ()

    VALUES = {"Q8F": 8, "Q8S": 8, "E4M3": 8, "E5M2": 8, "Q4F": 4, "Q4S": 4, "E2M1": 4,
              "Q2F": 2, "Q2S": 2}  # bits; F and S both are two's complement
    SCALES = {"F32": 4, "F16": 2, "BF16": 2, "UE8M0": 1, "UE4M3": 1}  # bytes

    @property
    def scheme(self) -> "Dict[str, Any]":
        scheme: "Dict[str, Any]" = self.attrs["burn_dtype"]["QFloat"]
        return scheme

    def _plan(self) -> "Tuple[str, int, int, str, int, Any]":
        """Return (value type, bits, bytes of values, scale type, scales, block shape or None)."""
        scheme = self.scheme
        kind: "Any" = scheme.get("value")
        param: "Any" = scheme.get("param")
        store = scheme.get("store")
        known = (sorted(map(str, scheme)) == ["level", "mode", "param", "store", "value"]
                 and type(kind) is type(param) is str and kind in self.VALUES
                 and param in self.SCALES and scheme["mode"] == "Symmetric")
        where: "Any" = store if store in ("Native", "U32") else None  # U32: of burn 0.19
        if isinstance(store, dict) and len(store) == 1 and all_u64(list(store.values())):
            where = list(store)[0]
            where = where if where in ("PackedNative", "PackedU32") else None
        block = self._block(scheme.get("level"))
        if not known or where is None or block is False:
            raise self._error("the quantization scheme %s is not known" % shown(scheme, 200),
                              Unsupported)
        bits = self.VALUES[kind]
        unit = 32 if where in ("PackedU32", "U32") else (
            8 if where == "PackedNative" and kind == "E2M1" else bits)
        per = unit // bits
        nbytes = (-(-self.size // per) * unit + 7) // 8
        count = 1
        for n, k in zip(reversed(self.shape), reversed(block or ())):
            count *= -(-n // k)
        if block:
            count *= count_elements(self.shape[:self.ndim - len(block)])
        if round_up(nbytes, 4) + count * self.SCALES[param] != self._stored:
            raise self._error("%d bytes stored, the scheme needs %d" % (
                self._stored, round_up(nbytes, 4) + count * self.SCALES[param]), Unsupported)
        return kind, bits, nbytes, param, count, block

    def _block(self, level: "Any") -> "Any":
        """Return the block shape, None for one scale in all, False for a level unknown here."""
        if level == "Tensor":
            return None
        block = level.get("Block") if isinstance(level, dict) and len(level) == 1 else None
        if not isinstance(block, dict) or sorted(map(str, block)) != ["len", "storage"]:
            return False
        sizes, count = block["storage"], block["len"]
        if not isinstance(sizes, list) or not all_u64(sizes + [count]) or not (
                1 <= count <= min(len(sizes), self.ndim)) or 0 in sizes[:count]:
            return False
        return sizes[:count]

    def _made(self, dtype: str, shape: "Tuple[int, ...]", numbers: "Any") -> Tensor:
        return self._held(pack_values(dtype, numbers), dtype)._copy(shape=shape, attrs=())

    @property
    def values(self) -> Tensor:
        kind, bits, _, _, _, _ = self._plan()
        raw, mask, numbers = self.raw, (1 << bits) - 1, []
        for i in range(self.size):
            number = raw[i * bits >> 3] >> (i * bits & 7) & mask
            if kind[0] == "Q":
                number -= (mask + 1) if number > mask >> 1 else 0
            else:
                number = minifloat(kind, number)
            numbers.append(number)
        return self._made("int8" if kind[0] == "Q" else "float32", self.shape, numbers)

    @property
    def scales(self) -> Tensor:
        _, _, nbytes, param, count, _ = self._plan()
        raw = bytes(self.raw)[round_up(nbytes, 4):]
        if self.SCALES[param] == 1:
            numbers: "Any" = [minifloat(param[1:], byte) for byte in raw]
        else:
            dtype = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[param]
            numbers = unpack_values(dtype, raw)
        return self._made("float32", (count,), numbers)

    def dequantize(self) -> Tensor:
        block = self._plan()[5]
        step = self.size
        if block is not None:
            step = block[-1]
            if [k for k in block[:-1] if k != 1] or self.shape[-1] % step:
                raise self._error("the block shape %s has two meanings among Burn's backends; "
                                  "only blocks along the last dimension, which they divide, are "
                                  "dequantized" % shown(block), Unsupported)
        scales = list(self.scales.flat)
        made = self._made("float32", self.shape, [
            value * scales[i // step] for i, value in enumerate(self.values.flat)])
        for key, value in self.attrs.items():
            if key != "burn_dtype":
                made.attrs[key] = value
        return made

    def _copy(self, **changes: "Any") -> Tensor:
        made = super()._copy(**changes)
        return as_quantized(made) if made.dtype == "qfloat" else made

    def __reduce__(self) -> "Any":
        call, args = super().__reduce__()
        return _unpickle_quantized, args


def as_quantized(base: Tensor) -> Quantized:
    """Return a tensor of stored bytes in a quantization scheme as what it is."""
    return Quantized(base.name, base.dtype, base.shape, base._source, base._offset, base._stored,
                     base._attrs, base.format)


def _unpickle_quantized(*args: "Any") -> Tensor:
    return as_quantized(_unpickle(*args))


def minifloat(kind: str, code: int) -> float:
    """Return the value of an 8- or 4-bit float: E4M3, E5M2, E2M1 or (no sign) E8M0."""
    if kind == "E8M0":
        return float("nan") if code == 255 else 2.0 ** (code - 127)
    if kind == "E5M2":  # the upper half of a float16
        return float(unpack_from("<e", bytes([0, code]), 0)[0])
    if kind == "E4M3":
        sign, exponent, fraction = code >> 7, code >> 3 & 15, code & 7
        if exponent == 15 and fraction == 7:
            return float("nan")
        value = fraction * 2.0 ** -9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    else:
        sign, value = code >> 3, (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[code & 7]
    return -value if sign else value


def make_quantized(data: "Any", shape: "Any", attrs: "Dict[str, Any]") -> Quantized:
    """Return a Tensor of stored bytes in the scheme that burn_dtype describes."""
    code = attrs.get("burn_dtype")
    scheme = code.get("QFloat") if isinstance(code, dict) and len(code) == 1 else None
    if shape is None or not isinstance(scheme, dict):
        raise ValueError("qfloat needs bytes, shape= and burn_dtype={\"QFloat\": {...}}")
    raw = bytes(memoryview(data))
    return Quantized("", "qfloat", _as_shape(shape), Held(raw), 0, len(raw), Map(attrs.items()))


# -- [10a] explain -------------------------------------------------------------------------------


class Field:
    """One named piece of a file: unpacks as (offset, nbytes, name, value, doc).

    Also `.kind` ("structure", "data", "padding" or "unused"), `.depth` (of nesting, for
    indentation), `.tensor` (the name of the tensor that it belongs to, or None) and `.lead` (bytes
    of it before its value: the map key and tags).
    """

    __slots__ = ("offset", "nbytes", "name", "value", "doc", "kind", "depth", "tensor", "lead")

    def __init__(self, offset: int, nbytes: int, name: str, value: "Any", doc: str,
                 kind: str = "structure", depth: int = 0, tensor: "Optional[str]" = None,
                 lead: int = 0) -> None:
        self.offset = offset
        self.nbytes = nbytes
        self.name = name
        self.value = value
        self.doc = doc
        self.kind = kind
        self.depth = depth
        self.tensor = tensor
        self.lead = lead

    def __iter__(self) -> "Iterator[Any]":
        return iter((self.offset, self.nbytes, self.name, self.value, self.doc))

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: "Any") -> "Any":
        return (self.offset, self.nbytes, self.name, self.value, self.doc)[index]

    def __repr__(self) -> str:
        return "Field(%d, %d, %s, %s)" % (
            self.offset, self.nbytes, quoted(self.name), shown(self.value))


class CborTokens:
    """Tells each token of cbor_read as a field of its own: what `explain --wire` shows."""

    def __init__(self, trace: Trace, base: int, name: str) -> None:
        self.trace = trace
        self.base = base
        self.name = name
        self.chunks: "List[Tuple[int, int, Any]]" = []

    def path(self, depth: int, key: "Any") -> str:
        return self.name

    def __call__(self, start: int, stop: int, depth: int, what: str, value: "Any",
                 key: "Any") -> None:
        if what == "chunk":
            self.chunks.append((start, stop, value))
            return
        if self.chunks:  # the string that they make up: its head, each of them, its break
            chunks, self.chunks = self.chunks, []
            self.trace.add(self.base + start, 1, what + "(*)", None, "until the break ff", depth)
            for first, last, part in chunks:
                self(first, last, depth + 1, what, part, None)
            self(stop - 1, stop, depth + 1, "break", None, None)
            return
        if what == "key":
            what = "text" if isinstance(value, str) else "key"
        nbytes = stop - start
        body = value.encode() if what == "text" and isinstance(value, str) else value
        if what in ("array", "map"):
            what += "(*)" if value < 0 else "(%d)" % value
            doc, value = "until the break ff" if value < 0 else counted(value, "item"), None
        elif isinstance(body, bytes) and nbytes > len(body):
            doc = "head of %s, then %s" % (counted(nbytes - len(body), "byte"),
                                           counted(len(body), "byte"))
            what += "(%d)" % len(body)
        else:
            doc = "in the head" if nbytes == 1 else "head, then %s" % counted(nbytes - 1, "byte")
        self.trace.add(self.base + start, nbytes, what, value, doc, depth)


def explain(source: "Any", *, format: "Optional[str]" = None, wire: bool = False,
            **options: "Any") -> "Iterator[Field]":
    """Yield a Field (offset, nbytes, name, value, doc) for every byte of a file, by offset.

    Fields tile the file; only tensor data may overlap, where the file shares them. Of a broken
    file, all up to the offending field come first, then the FormatError is raised. `wire`: CBOR
    token by token instead of by the format's fields.

    >>> [f.name for f in explain(dumps({}, format="ztensor"))]
    ['magic', 'index', 'index_size']
    """
    opened = open_source(source, True)
    try:
        kind = _kind_of(opened, format)
        fields, _, error = _dissect(kind, opened, options, None, wire)
    finally:
        opened.close()
    return _each(fields, error)


def _each(fields: "List[Field]", error: "Optional[FormatError]") -> "Iterator[Field]":
    for field in fields:
        yield field
    if error is not None:
        raise error


def _dissect(kind: "Format", source: "Any", options: "Dict[str, Any]",
             faults: "Optional[List[FormatError]]",
             wire: bool = False) -> "Tuple[List[Field], Any, Any]":
    """Parse with a trace; return (fields, parsed or None, error or None)."""
    _check_options(options, kind.READ_OPTIONS, "loading %s" % kind.NAME)
    trace = Trace(None, wire)
    try:
        parsed = kind.read(Cursor(source, trace, faults), **options)
    except FormatError as error:
        error.path = source.path
        return _fields_to(error, trace.fields, source.nbytes), None, error
    attrs, _, tensors = parsed
    fields = _without_overlap(sorted_fields([f for f in trace.fields if f.kind != "data"]))
    _name_owners(kind, fields, tensors)
    data = [Field(offset, nbytes, "data " + label, *_data_text(item, label),
                  kind="data", tensor=item.name)
            for item in tensors for offset, nbytes, label in item._ranges()]
    fields = sorted_fields(fields + data)
    return _with_gaps(kind, source, attrs, fields), parsed, None


def sorted_fields(fields: "List[Field]") -> "List[Field]":
    """Return fields by offset; where that is equal, empty ones first, then as they were parsed."""
    keys = [(field.offset, field.nbytes > 0, i) for i, field in enumerate(fields)]
    return [fields[key[2]] for key in sorted(keys)]


def _data_text(item: Tensor, label: str) -> "Tuple[str, str]":
    """Return value and meaning of a tensor's bytes, or of a part of a sparse one."""
    text = "%s %s" % (item.dtype, shown(list(item.shape)))
    if isinstance(item, Sparse):
        part = "values" if label == item.name else label[len(item.name) + 1:]
        return part, "of sparse %s" % text
    return text, _data_doc(item)


def _data_doc(item: Tensor) -> str:
    if item._problem is not None:
        return item._problem
    if item._encoding != "raw":
        return "%s, %d bytes decoded" % (item._encoding, item.nbytes)
    if item.itemsize is None:
        return "stored bytes"
    text = "column-major, " if item._strides is not None else ""
    if item.itemsize > 1:
        text += "LE: " if item._order == "<" else "BE: "
    head = item._source.view(item._offset, min(item._stored, 3 * item.itemsize))
    values = [repr(value) for value in unpack_values(item.dtype or "", head, item._order)]
    return text + " ".join(values) + (" ..." if item.size > 3 else "")


def _fields_to(error: FormatError, fields: "List[Field]", nbytes: int) -> "List[Field]":
    """Return the fields up to the offending one; what was not reached before it is named so."""
    fields = _without_overlap(sorted_fields(fields))
    offset = error.offset if error.offset is not None else nbytes
    kept = [field for field in fields if field.offset <= offset]
    if not [f for f in kept if f.offset == offset and f.name == error.field]:
        kept = [field for field in kept if field.offset + field.nbytes <= offset]
        later = [field.offset for field in fields if field.offset > offset]
        stop = min(later) if later else nbytes
        kept.append(Field(offset, max(stop - offset, 0), error.field or "?", None, error.what))
    out: "List[Field]" = []
    at = 0
    for field in kept:
        if field.offset > at:
            out.append(Field(at, field.offset - at, "not reached", None,
                             "parsing stopped before it", "unused"))
        out.append(field)
        at = max(at, field.offset + field.nbytes)
    return out


def _without_overlap(fields: "List[Field]") -> "List[Field]":
    """Return the structure's fields so that they do not overlap: what is shared is named once."""
    out = []
    at = 0
    for field in fields:
        end = field.offset + field.nbytes
        if end <= at and field.nbytes:
            continue
        if field.offset < at:
            field.offset, field.nbytes = at, end - at
            field.doc += " (its beginning is shared)"
        out.append(field)
        at = max(at, end)
    return out


def _name_owners(kind: "Format", fields: "List[Field]", tensors: "List[Tensor]") -> None:
    """Set .tensor of the fields that make up a tensor's entry in the index."""
    owners = Map()
    for i, item in enumerate(tensors):
        place = kind.PLACE % i if "%" in kind.PLACE else child(kind.PLACE, item.name)
        owners[place] = item.name
    prefix = "?"  # of the entry that the last head belongs to
    for field in fields:
        name = field.name
        if name in owners:
            prefix = name
        elif not prefix or not name.startswith(prefix):
            prefix = name[:name.find("]") + 1]
        if prefix in owners:
            field.tensor = owners[prefix]


def _with_gaps(kind: "Format", source: "Any", attrs: "Any",
               fields: "List[Field]") -> "List[Field]":
    """Return the fields with those that are empty left out and the gaps between them named."""
    out: "List[Field]" = []
    at, before = 0, "structure"
    for field in fields + [Field(source.nbytes, 0, "", None, "", "end")]:
        if field.offset > at:
            after = "data" if field.kind == "data" else (
                "end" if field.kind == "end" else "structure")
            out.extend(_gap(kind, source, attrs, at, field.offset, before, after))
        if field.nbytes:
            out.append(field)
        if field.offset + field.nbytes >= at:
            before = "data" if field.kind == "data" else "structure"
        at = max(at, field.offset + field.nbytes)
    return out


# What lies between the fields. Each function returns (nbytes, byte, doc) of the pieces of a gap
# that are padding by the format's rule. `before` and `after`: "structure", "data" or "end" (of the
# file), what the gap lies between; filled(start, stop, byte): are the bytes there all that byte?


def alignment(kind: "Format", attrs: "Any") -> int:
    """Return the multiple of bytes at which the tensors of a file begin."""
    return 1 if attrs.get("layout") == "packed" else kind.ALIGN


def plain_padding(kind: "Format", start: int, stop: int, before: str, after: str,
                  filled: "Any", attrs: "Any") -> "List[Tuple[int, int, str]]":
    align = alignment(kind, attrs)
    if align > 1 and (after == "data" or (after == "end" and kind.PAD_END)):
        return [(min(stop, round_up(start, align)) - start, 0, "to a multiple of %d" % align)]
    return []


def mag_padding(kind: "Format", start: int, stop: int, before: str, after: str,
                filled: "Any", attrs: "Any") -> "List[Tuple[int, int, str]]":
    empty = before == "structure" and after == "end"  # no tensors: the records end unpadded
    if attrs["layout"] == Mag.SPEC_LAYOUT:
        return [] if empty else plain_padding(kind, start, stop, before, after, filled, attrs)
    aligned = start if empty else min(stop, round_up(start, 64))
    rows = [(aligned - start, 255, "to a multiple of 64")]
    if after == "end" and filled(aligned, stop, 0):
        rows.append((stop - aligned, 0, "the writer's estimate of the size, not trimmed"))
    return rows


def burnpack_padding(kind: "Format", start: int, stop: int, before: str, after: str,
                     filled: "Any", attrs: "Any") -> "List[Tuple[int, int, str]]":
    if before == "structure":
        after = "data"  # DS is aligned also where no data follow
    return plain_padding(kind, start, stop, before, after, filled, attrs)


def tensorbuffers_padding(kind: "Format", start: int, stop: int, before: str, after: str,
                          filled: "Any", attrs: "Any") -> "List[Tuple[int, int, str]]":
    inside = before == after == "structure"  # alignment inside of the FlatBuffer
    if inside and stop - start < 8 and filled(start, stop, 0):
        return [(stop - start, 0, "alignment")]
    return []


PADDING = {"mag": mag_padding, "burnpack": burnpack_padding,
           "tensorbuffers": tensorbuffers_padding}


def _gap(kind: "Format", source: "Any", attrs: "Any", start: int, stop: int, before: str,
         after: str) -> "List[Field]":
    def filled(start: int, stop: int, byte: int) -> bool:
        for at in range(start, stop, BLOCK):
            block = source.read(at, min(BLOCK, stop - at))
            if block.count(bytes([byte])) != len(block):
                return False
        return True
    fields = []
    rule = PADDING.get(kind.NAME, plain_padding)
    for nbytes, byte, doc in rule(kind, start, stop, before, after, filled, attrs):
        if nbytes:
            value = None if filled(start, start + nbytes, byte) else "not all %02x" % byte
            fields.append(Field(start, nbytes, "padding", value, doc, "padding"))
        start += nbytes
    if start < stop:
        fields.append(Field(start, stop - start, "unused", None,
                            "%s that no field names" % counted(stop - start, "byte"), "unused"))
    return fields


# -- [10b] verify --------------------------------------------------------------------------------


class Report:
    """What verify() found: true when nothing failed, str() of it is for a person.

    `.rows`: (status, check, tensor, text, offset), status "ok", "FAIL", "note" (legal but odd)
    or "-" (not possible). `.errors`: the FormatErrors behind the FAILs. `.format`, `.path`.
    """

    def __init__(self, path: "Optional[str]", format: "Optional[str]") -> None:
        self.path = path
        self.format = format
        self.rows: "List[Tuple[str, str, Optional[str], str, Optional[int]]]" = []
        self.errors: "List[FormatError]" = []

    def __bool__(self) -> bool:
        return not self.errors

    def add(self, status: str, check: str, text: str, tensor: "Optional[str]" = None,
            offset: "Optional[int]" = None) -> None:
        self.rows.append((status, check, tensor, text, offset))

    def fail(self, error: FormatError) -> None:
        self.errors.append(error)
        self.add("FAIL", error.check, error.what, error.tensor, error.offset)

    def __str__(self) -> str:
        lines = []
        for status, check, name, text, offset in self.rows:
            text = text if name is None else "tensor %s: %s" % (quoted(name), text)
            lines.append("%-5s %-12s %s%s" % (status, check, text, "" if offset is None or
                                              status == "ok" else " (at 0x%x)" % offset))
        where = self.path or "the data"
        if self.errors:
            first = self.errors[0].offset
            lines.append("%s: INVALID%s: %s%s" % (
                where, " " + self.format if self.format else "",
                counted(len(self.errors), "problem"),
                "" if first is None else ", the first at 0x%x" % first))
        else:
            lines.append("%s: valid %s" % (where, self.format))
        return "\n".join(lines)


CHECKS = {  # rows of a Report, in the order in which parsing comes to them
    "mag": ("magic", "checksum", "index", "bounds", "sizes"),
    "ztensor": ("magic", "index", "bounds", "sizes", "checksums", "contents"),
    "primitiv": ("magic", "index", "bounds", "sizes"),
    "burnpack": ("magic", "index", "sizes", "bounds"),
    "tensorbuffers": ("magic", "index", "sizes", "bounds")}


def verify(source: "Any", *, format: "Optional[str]" = None, **options: "Any") -> Report:
    """Check structure, bounds, sizes, padding and every stored checksum; return a Report.

    The Report is true when nothing failed. It comes for unreadable files too; OSError passes.
    """
    opened = open_source(source, True)
    try:
        try:
            kind = _kind_of(opened, format)
        except FormatError as error:
            report = Report(opened.path, None)
            report.fail(error)
            return report
        return verify_source(opened, kind, options)
    finally:
        opened.close()


def verify_source(source: "Any", kind: "Format", options: "Dict[str, Any]") -> Report:
    report = Report(source.path, kind.TITLE)
    faults: "List[FormatError]" = []
    fields, parsed, error = _dissect(kind, source, options, faults)
    if error is not None:
        faults.append(error)
    tensors = parsed[2] if parsed is not None else []
    count = counted(len(tensors), "tensor")
    structure = sum([field.nbytes for field in fields if field.kind == "structure"])
    texts = {
        "magic": kind.TITLE, "checksum": "the header's checksum agrees",
        "index": "%d bytes of structure, %s, names unique, required fields present" % (
            structure, count),
        "bounds": "%s inside the file" % count, "sizes": "stored bytes = dtype x shape"}
    reached = True
    for check in CHECKS[kind.NAME]:
        found = [fault for fault in faults if fault.check == check]
        for fault in found:
            report.fail(fault)
        if not found and check in texts:
            report.add("ok" if reached else "-", check, texts[check] if reached else "not reached")
        reached = reached and (error is None or error not in found)
    for fault in faults:
        if fault.check not in CHECKS[kind.NAME]:
            report.fail(fault)
    if error is None:
        _verify_padding(report, kind, source, fields, faults)
        _verify_layout(report, kind, parsed[0], tensors)
        _verify_data(report, kind, source, tensors)
        if kind.NAME in REMARKS:
            for text in REMARKS[kind.NAME](fields, parsed[0], tensors):
                report.add("note", "upstream", text)
    if not faults:
        _verify_canonical(report, kind, source, File(kind.NAME, source, *parsed))
    return report


def _verify_canonical(report: Report, kind: "Format", source: "Any", file: File) -> None:
    """Tell whether saving the file again, in the order of its data, gives the same bytes."""
    at = 0
    try:
        for chunk in kind.write(_in_order(file), file.metadata, file.attrs, {}):
            for piece in pieces(memoryview(chunk), BLOCK):
                stored = source.read(at, max(0, min(len(piece), source.nbytes - at)))
                if stored != bytes(piece):
                    i = 0
                    while i < min(len(stored), len(piece)) and stored[i] == piece[i]:
                        i += 1
                    report.add("note", "canonical", "saved again, it differs from here on", None,
                               at + i)
                    return
                at += len(piece)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: recursion
        report.add("-", "canonical", "it cannot be saved again: %s" % str(error).split("\n")[0])
        return
    if at < source.nbytes:
        report.add("note", "canonical", "saved again, it ends here", None, at)
    else:
        report.add("ok", "canonical", "saved again, it has the same bytes")


def _verify_padding(report: Report, kind: "Format", source: "Any", fields: "List[Field]",
                    faults: "List[FormatError]") -> None:
    odd = [field for field in fields if field.kind == "padding" and field.value is not None]
    if odd:
        report.add("note", "padding", "%s of padding %s" % (
            counted(len(odd), "range"), odd[0].value), None, odd[0].offset)
    unused = [field for field in fields if field.kind == "unused"]
    if not unused or faults:  # a tensor that was left out leaves its bytes without a name
        return
    last = unused[-1]
    if last.offset + last.nbytes == source.nbytes and not kind.MAGIC:
        unused.pop()
        report.fail(FormatError("%d bytes after the end of the data" % last.nbytes, last.offset,
                                "unused", None, source.path, "index"))
    if unused:
        report.add("note", "padding", "%s in %s that no field names" % (
            counted(sum([field.nbytes for field in unused]), "byte"),
            counted(len(unused), "range")), None, unused[0].offset)


def _verify_layout(report: Report, kind: "Format", attrs: "Any",
                   tensors: "List[Tensor]") -> None:
    """Note unaligned data, and ranges that overlap; the same twice is tied weights, and common."""
    align = alignment(kind, attrs)
    odd = [item for item in tensors if item._stored and item._offset % align]
    for item in odd[:5]:
        report.add("note", "alignment", "its data are not at a multiple of %d" % align, item.name,
                   item._offset)
    if len(odd) > 5:
        report.add("note", "alignment", "%d more" % (len(odd) - 5))
    elif align > 1 and not odd and tensors:
        report.add("ok", "alignment", "all data at multiples of %d" % align)
    ranges = sorted([(item._offset, item._offset + item._stored, i)
                     for i, item in enumerate(tensors) if item._stored])
    reach, owner, start_of, count = 0, -1, -1, 0
    for start, end, i in ranges:
        if start < reach and (start, end) != (start_of, reach):
            count += 1
            if count <= 5:
                report.add("note", "bounds", "its bytes overlap those of %s in part" % quoted(
                    tensors[owner].name), tensors[i].name, start)
        if end > reach:
            reach, owner, start_of = end, i, start
    if count > 5:
        report.add("note", "bounds", "%d more overlap" % (count - 5))


def _verify_data(report: Report, kind: "Format", source: "Any",
                 tensors: "List[Tensor]") -> None:
    """Check stored checksums and decode what is coded; the same range is read only once."""
    agreed, stored, decoded, total = 0, 0, 0, 0
    most = MAX_COPIES * source.nbytes
    done: "Dict[Any, Any]" = {}
    for item in tensors:
        if item._problem is not None:
            report.add("-", "contents", item._problem, item.name, item.offset)
        for label, offset, nbytes, text in kind.checksums(item):
            key: "Any" = (offset, nbytes, text)
            if key not in done:
                total += nbytes
                done[key] = check_range(source, offset, nbytes, text) if total <= most else (
                    "-", "over MAX_COPIES = %d file sizes to hash" % MAX_COPIES)
            status, why = done[key]
            stored += 1
            agreed += status == "ok"
            if status == "FAIL":
                report.fail(FormatError(label + why, offset, "data", item.name, source.path,
                                        "checksums"))
            elif status == "-":
                report.add("-", "checksums", label + why, item.name, offset)
        for part in _coded_parts(report, item, total <= most):
            total += part._stored
            key = (part._offset, part._stored, part.nbytes)
            if part._encoding == "zstd" and key not in done and total <= most:
                done[key] = _verify_coded(report, part, item.name)
                decoded += done[key]
    if stored:
        report.add("ok" if agreed else "-", "checksums", "%d of %d agree" % (agreed, stored))
    else:
        report.add("-", "checksums", "none stored")
    if decoded:
        report.add("ok", "contents", "%s decoded in full" % counted(decoded, "zstd blob"))
    if total > most:
        report.add("-", "contents", "the same bytes are named again and again: not all were read")


def _coded_parts(report: Report, item: Tensor, read: bool) -> "List[Tensor]":
    """Return the blobs of a tensor to decode: itself, or the checked parts of a sparse one."""
    if not isinstance(item, Sparse):
        return [item] if item._problem is None and item._encoding == "zstd" else []
    try:
        return list(item.components.values()) if read else []
    except Unsupported as error:
        report.add("-", "contents", error.what, item.name, item.offset)
    except FormatError as error:
        error.check = "contents"
        report.fail(error)
    return []


def _verify_coded(report: Report, item: Tensor, name: str) -> int:
    try:
        for _ in item._blocks():
            pass
    except Unsupported as error:
        report.add("-", "contents", error.what, name, item.offset)
        return 0
    except FormatError as error:
        error.check, error.tensor = "contents", name
        report.fail(error)
        return 0
    return 1


# What the real libraries are known to make of such a file, other than we do


def mag_remarks(fields: "List[Field]", attrs: "Any",
                tensors: "List[Tensor]") -> "Iterator[str]":
    if [f for f in fields if f.name.endswith("].type") and f.value == 0]:
        yield "magnetron 0.1.2 refuses it: metadata of type 0 (u64)"
    keys = [f.value for f in fields if f.name.endswith("].key")]
    if [key for key in keys if "\0" in str(key)]:
        yield "magnetron 0.1.2 aborts its process: a key holds NUL"
    if attrs["layout"] == Mag.SPEC_LAYOUT and tensors:
        yield "magnetron 0.1.2 shows the metadata of this layout, but none of its tensors"


def ztensor_remarks(fields: "List[Field]", attrs: "Any",
                    tensors: "List[Tensor]") -> "Iterator[str]":
    why = ""
    for item in reversed(tensors):  # the first one stays
        layout = item.attrs.get("layout")
        if item._problem is not None or layout in (None, "sparse"):
            why = item._problem or "layout %s" % shown(layout)
    if why:
        yield "ztensor 0.1.x refuses the whole file: %s" % why
    if [item for item in tensors if "\0" in item.name]:
        yield "ztensor 0.1.4 aborts its process: a name holds NUL"
    if [item for item in tensors if item._order == ">"]:
        yield "ztensor 1.1 and 1.2 ignore data_endianness: big-endian data come out wrong"
    if tensors:
        yield "ztensor 1.0 and 2.x do not open it: they read other formats of this name"


def primitiv_remarks(fields: "List[Field]", attrs: "Any",
                     tensors: "List[Tensor]") -> "Iterator[str]":
    short = [f for f in fields if isinstance(f.value, (int, float)) and f.nbytes != 5
             and f.name.split(".")[-1].split("[")[0] in (
                 "ver_major", "ver_minor", "data_type", "batch", "N", "value", "dims")
             and not f.doc.startswith("array")]
    if short:
        yield "primitiv refuses it: %s is no ce + uint32, ca + float32" % short[0].name
    for item in tensors:
        batch = item.attrs["batch"]
        rank = item.ndim - (batch > 1)
        value = attrs["kind"] != "tensor" and Primitiv.split(item.name)[1] is None
        if rank > 8 or 0 in item.shape or (batch > 1 and value):
            yield "primitiv refuses it: %s has %s" % (quoted(item.name), (
                "%d dimensions" % rank if rank > 8 else
                "no elements" if 0 in item.shape else "a batch"))
            break


def burnpack_remarks(fields: "List[Field]", attrs: "Any",
                     tensors: "List[Tensor]") -> "Iterator[str]":
    if attrs["layout"] == "packed" and [item for item in tensors if item._stored]:
        yield "burn 0.20 and newer misread this layout of 0.19"
    if [f for f in fields if f.name.endswith(".dtype") and f.value == "Bool"]:
        yield "burn 0.21 refuses it: the text dtype \"Bool\" of 0.20 and older"
    unknown = [item for item in tensors if item._problem is not None]
    if unknown:
        yield "burn refuses the whole file: %s" % unknown[0]._problem


def tensorbuffers_remarks(fields: "List[Field]", attrs: "Any",
                          tensors: "List[Tensor]") -> "Iterator[str]":
    shaped = set([f.tensor for f in fields if f.name.endswith("].shape")])
    if [item for item in tensors if item.name not in shaped]:
        yield "the real library refuses it: a tensor without a shape"
    if [1 for a, b in zip(tensors, tensors[1:]) if a.attrs["id"] > b.attrs["id"]]:
        yield "the index is not sorted by id: the real library's own look-up misses tensors"


REMARKS = {"mag": mag_remarks, "ztensor": ztensor_remarks, "primitiv": primitiv_remarks,
           "burnpack": burnpack_remarks, "tensorbuffers": tensorbuffers_remarks}


# -- [10c] convert -------------------------------------------------------------------------------


class Summary:
    """What convert() did; str() of it is for a person.

    `.copied` (names), `.cast` ((name, old dtype, new dtype, exact) ...), `.left_behind` (facts of
    the old format that mean nothing in the new one), `.dropped` (content, only with drop=True),
    `.renamed` ((old, new) ...), `.nbytes` (of the target).
    """

    def __init__(self) -> None:
        self.copied: "List[str]" = []
        self.cast: "List[Tuple[str, str, str, bool]]" = []
        self.left_behind: "List[str]" = []
        self.dropped: "List[str]" = []
        self.renamed: "List[Tuple[str, str]]" = []
        self.nbytes = 0

    def __str__(self) -> str:
        lines = ["%s copied, %d cast" % (counted(len(self.copied), "tensor"), len(self.cast))]
        lines += ["cast: %s %s -> %s (%s)" % (quoted(name), old, new,
                                              "exact" if exact else "rounded")
                  for name, old, new, exact in self.cast]
        lines += ["renamed: %s -> %s" % (quoted(old), quoted(new)) for old, new in self.renamed]
        if self.left_behind:
            lines.append("left behind: %s" % ", ".join(self.left_behind))
        lines += ["dropped: %s" % text for text in self.dropped]
        return "\n".join(lines + ["wrote %d bytes" % self.nbytes])


def convert(source: "Any", target: "Any", *, format: "Optional[str]" = None, cast: "Any" = None,
            only: "Any" = None, dense: bool = False, drop: bool = False,
            **options: "Any") -> Summary:
    """Write the tensors of a source (or a File) in another format; return what was done.

    Nothing is dropped, renamed, reshaped or cast silently: what the target cannot hold is a
    ValueError that names it. `cast`: {"float16": "float32"}, or "float32" for whatever the target
    cannot hold (it dequantizes too). `dense`: sparse tensors as dense ones where the target has
    none. `only`: names or shell patterns. `drop`: leave out content that has no place
    (custom fields, scalars, metadata). `options` are those of save. Memory as in save().
    """
    file = source if isinstance(source, File) else load(source)
    try:
        return _convert(file, target, _target_format(format, target, None), cast, only, dense,
                        drop, options)
    finally:
        if file is not source:
            file.close()


def _convert(file: File, target: "Any", kind: "Format", cast: "Any", only: "Any",
             dense: bool, drop: bool, options: "Dict[str, Any]",
             watch: "Any" = None) -> Summary:
    for dtype in [cast] if isinstance(cast, str) else [] if cast is None else (
            list(cast) + list(cast.values())):
        if dtype not in ITEMSIZE and dtype != "qfloat":
            raise ValueError("cast: no dtype %s; there are %s" % (
                shown(dtype), ", ".join(ITEMSIZE)))
    _check_options(options, kind.OPTIONS, "saving %s" % kind.NAME)
    summary = Summary()
    origin = find_format(file.format)
    chosen = items = _select(_in_order(file), only)
    raw = sum([item._stored for _, item in items if item._encoding == "raw"])
    if raw > MAX_COPIES * file.nbytes:
        raise ValueError("the tensors name the same bytes again and again: %d bytes of a file of "
                         "%d, MAX_COPIES = %d" % (raw, file.nbytes, MAX_COPIES))
    items = [(name, _dense_for(kind, name, item, dense, summary)) for name, item in items]
    items = [(name, _cast_for(kind, name, item, cast, summary)) for name, item in items]
    metadata = Map(file.metadata.items())
    attrs = file.attrs if kind is origin else Map()
    facts = Map(attrs.items())
    facts.update(options)
    misfits = kind.misfit_metadata(metadata, facts)
    content = ["metadata %s (%s)" % (shown(key), why) for key, why in misfits]
    for key, _ in misfits:
        del metadata[key]
    if kind is not origin:
        content += _leave_behind(origin, file, items, summary)
    if content and not drop:
        raise ValueError("%s has no place for\n  %s\n  drop=True (--drop) leaves it out" % (
            kind.TITLE, "\n  ".join(content)))
    summary.dropped = content
    for name, _ in items:
        loaded = kind.loaded_name(name, options)
        if loaded != name:
            summary.renamed.append((name, loaded))
    chunks = kind.write(items, metadata, attrs, options)
    check_stored(chosen)
    if watch is not None:
        chunks = watch(chunks)
    summary.nbytes = _write_out(target, chunks)
    return summary


def _select(items: "List[Tuple[str, Tensor]]", only: "Any") -> "List[Tuple[str, Tensor]]":
    """Return the items that `only` names: an exact name wins, else it is a shell pattern."""
    if only is None:
        return items
    from fnmatch import fnmatchcase
    names = [name for name, _ in items]
    chosen: "Dict[str, bool]" = {}
    for pattern in [only] if isinstance(only, str) else only:
        found = [pattern] if pattern in names else [
            name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError("only: no tensor is called %s" % shown(pattern))
        chosen.update([(name, True) for name in found])
    return [(name, item) for name, item in items if name in chosen]


def _dense_for(kind: "Format", name: str, item: Tensor, dense: bool,
               summary: Summary) -> Tensor:
    """Return a sparse tensor with its zeros where the target has no sparse ones, if allowed."""
    if not isinstance(item, Sparse) or kind.SPARSE:
        return item
    if not dense:
        raise ValueError("%s has no sparse tensors: %s; dense=True (--dense) writes the zeros" % (
            kind.TITLE, quoted(name)))
    summary.cast.append((name, "sparse", "dense", True))
    return Cast(item, item.dtype or "")  # made dense when it is written, one at a time


def _cast_for(kind: "Format", name: str, item: Tensor, cast: "Any",
              summary: Summary) -> Tensor:
    """Return the tensor with the dtype that `cast` asks for, and note it."""
    old = item.dtype or ""
    if isinstance(cast, str):
        new = None if old in kind.DTYPES or old not in ITEMSIZE else cast
    else:
        new = (cast or {}).get(old)
    if old == "qfloat" and (new is not None or not kind.passes(item)):
        new = cast if isinstance(cast, str) else new
        if new is not None:
            summary.cast.append((name, old, new, False))
            return item.dequantize()._cast(new)
    if new is None or new == old:
        if not isinstance(item, Cast):  # made dense: it is in .cast
            summary.copied.append(name)
        return item
    try:
        if isinstance(item, Sparse):
            made: Tensor = item._with_values(new)
            stored = item.components["values"]
        else:
            made, stored = item._cast(new), item
        exact = cast_is_exact(old, new) or _round_trips(stored, old, new)
    except FormatError:
        raise
    except ValueError as error:
        what = "tensor %s: cast to %s: %s" % (quoted(name), new, error)
    else:
        summary.cast.append((name, old, new, exact))
        return made
    raise ValueError(what)


def cast_is_exact(old: str, new: str) -> bool:
    """Return whether every value of one dtype is a value of the other."""
    if old == "bool" or old == new:
        return True
    if new == "bool":
        return False
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
    if old in INT_RANGE:
        low, high = INT_RANGE[old]
        if new in INT_RANGE:
            return INT_RANGE[new][0] <= low and high <= INT_RANGE[new][1]
        return high < 1 << digits[new]
    return new in digits and digits[old] <= digits[new] and (old, new) != ("bfloat16", "float16")


def remedy(dtype: "Optional[str]", dtypes: "Iterable[str]") -> str:
    """Return what a message says of a dtype that a format lacks: those that would do."""
    if dtype is None or dtype not in ITEMSIZE:
        return ""
    fitting = [new for new in ITEMSIZE if new in dtypes and cast_is_exact(dtype, new)]
    if not fitting:  # a rounding cast: of the same kind, else to float32
        fitting = [new for new in ("float32", "int32") if new in dtypes
                   and (new in FLOATS) == (dtype in FLOATS)] or [
                       new for new in ("float32",) if new in dtypes]
    if not fitting:
        return ""
    new = fitting[-1]
    return '; tensor(x, "%s"), .astype("%s") or convert(cast="%s")%s; or another format' % (
        new, new, new, "" if cast_is_exact(dtype, new) or dtype in FLOATS
        else " if the values fit")


def _round_trips(item: Tensor, old: str, new: str) -> bool:
    """Return whether casting there and back gives the same numbers; all are cast, so all fit."""
    same = True
    for block in item._blocks():
        for piece in pieces(block, BLOCK):
            there = cast_block(piece, old, new)
            if same:
                try:
                    same = bytes(cast_block(there, new, old)) == bytes(piece)
                except ValueError:
                    same = False
    return same


def _leave_behind(origin: "Format", file: File, items: "List[Tuple[str, Tensor]]",
                  summary: Summary) -> "List[str]":
    """List the attrs that another format has no place for; return those that are content."""
    content = []
    mechanics = set()
    for key in file.attrs:
        if origin.is_content(key) and file.attrs[key] not in (None, {}):
            content.append("file attribute %s" % shown(key))
        else:
            mechanics.add(key)
    for name, item in items:
        for key in item.attrs:
            if origin.is_content(key):
                content.append("tensor %s: attribute %s" % (quoted(name), shown(key)))
            else:
                mechanics.add(key)
    summary.left_behind = sorted(mechanics)
    return content


# -- [11] command line ---------------------------------------------------------------------------

USAGE = """tensorfmt %s: read, write and explain tensor files (one file, standard library only)

usage: python3 tensorfmt.py COMMAND ...

  ls FILE ...            list the tensors of each file
  get FILE NAME          print one tensor's values; --raw writes its bytes to stdout
  explain FILE           name every byte of the file, in order (--html OUT for a page to look at)
  verify FILE ...        check structure, bounds, sizes and checksums
  convert FROM TO        write FROM's tensors in the format named by TO's suffix
  diff A B               compare two files tensor by tensor, whatever their formats
  formats                list the formats and what each can hold
  demo [FOLDER]          write, list, verify and explain one small file of each format

formats: %s        COMMAND -h lists its options
"""


def plain(text: str) -> str:
    """Return a name for a listing: as it is if printable ASCII without blanks at its ends."""
    fine = text and text == text.strip() and not [c for c in text if not " " <= c <= "~"]
    return text if fine else quoted(text)


def headline(file: File, path: str) -> str:
    """Return what a file is in one line."""
    kind = find_format(file.format)
    facts = ["%s: %s" % (plain(path), kind.TITLE), counted(file.nbytes, "byte"),
             counted(len(file), "tensor")]
    facts += ["%s %s" % (key, plain(value) if isinstance(value, str) else shown(value))
              for key, value in file.attrs.items()
              if key not in ("version", "scalars", "operations")]
    codings = sorted(set([item._encoding for item in file.values()]))
    if len(codings) == 1 and len(file):
        facts.append("all " + codings[0])
    return ", ".join(facts)


def show_ls(args: "Any") -> int:
    for i, path in enumerate(args.file):
        with load(path, **load_options(args)) as file:
            if args.json:
                print_json(file, path)
            else:
                if i:
                    print()
                print_listing(file, path, args)
    return 0


def sorted_items(file: File, key: "Optional[str]") -> "List[Tuple[str, Tensor]]":
    items = list(file.items())
    if key == "bytes":
        items.sort(key=lambda pair: -pair[1]._stored)
    elif key == "name":
        items.sort(key=lambda pair: pair[0])
    elif key == "offset":
        items.sort(key=lambda pair: pair[1]._offset)
    return items


def print_listing(file: File, path: str, args: "Any") -> None:
    print(headline(file, path))
    for title, pairs in (("metadata", file.metadata), ("scalar", file.attrs.get("scalars") or {})):
        for key, value in list(pairs.items())[:20]:
            print("%s %s = %s" % (title, plain(key), shown(value)))
        if len(pairs) > 20:
            print("%d more %s entries" % (len(pairs) - 20, title))
    if file.attrs.get("operations"):
        print(counted(len(file.attrs["operations"]), "operation"))
    if not len(file):
        return
    coded = len(set([item._encoding for item in file.values()])) > 1
    items = sorted_items(file, args.sort)
    rows = items if args.limit is None else items[:args.limit]
    line = "%10s  %10s  %-8s" + ("  %-8s" if coded else "%s") + "  %-16s  %s"

    def row(*cells: "Any") -> None:
        print((line % cells).rstrip())
    print()
    row("bytes", "offset", "dtype", "encoding" if coded else "", "shape", "name")
    for name, item in rows:
        row(item._stored, item.offset, item.dtype or "?", item._encoding if coded else "",
            shown(list(item.shape)), plain(name))
    if len(rows) < len(items):
        row("", "", "", "", "%d more" % (len(items) - len(rows)), "")
    row(sum([item._stored for _, item in items]), "", counted(len(items), "tensor"), "",
        counted(sum([item.size for _, item in items]), "element"), "")


def print_json(file: File, path: str) -> None:
    import json
    head = {"file": path, "format": file.format, "bytes": file.nbytes, "attrs": file.attrs,
            "metadata": file.metadata}
    rows = [{"name": name, "dtype": item.dtype, "shape": item.shape, "offset": item.offset,
             "bytes": item._stored, "attrs": item.attrs} for name, item in file.items()]
    text = json.dumps(json_ready(head), default=json_value)
    print(text[:-1] + ', "tensors": [' + "".join(
        ["%s\n %s" % ("," if i else "", json.dumps(json_ready(row), default=json_value))
         for i, row in enumerate(rows)]) + "]}")


def json_ready(value: "Any") -> "Any":
    """Return a value whose map keys are text and whose integers have no more than 128 bits."""
    if isinstance(value, dict):
        return dict([(key if isinstance(key, str) else shown(key), json_ready(item))
                     for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    return shown(value) if isinstance(value, int) and abs(value) >> 128 else value


def json_value(value: "Any") -> "Any":
    """Return what JSON lacks as an object or text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes_hex": bytes(value).hex()}
    return repr(value)


def show_get(args: "Any") -> int:
    with load(args.file, **load_options(args)) as file:
        if args.name not in file:
            raise ValueError("%s: %s" % (args.file, file._missing(args.name)))
        item = file[args.name]
        if args.rows is not None:
            if not item.ndim:
                raise ValueError("%s: tensor %s is a scalar, it has no rows" % (
                    args.file, quoted(args.name)))
            item = item[args.rows]
        if args.raw:
            _write_all(sys.stdout.buffer, item._blocks())
        elif args.stats:
            print_stats(item)
        else:
            print_values(item)
    return 0


def row_range(text: str) -> slice:
    """Return the slice of --rows: START:STOP, START:STOP:STEP or one number."""
    parts = [int(part) if part else None for part in text.split(":")]
    if len(parts) == 1 and parts[0] is not None:
        return slice(parts[0], parts[0] + 1 or None)
    if len(parts) not in (2, 3) or parts[2:] == [0]:
        raise ValueError(text)
    return slice(*parts)


def row_count(text: str) -> int:
    if int(text) < 0:
        raise ValueError(text)
    return int(text)


def print_stats(item: Tensor) -> None:
    """Print what the finite values are like, in constant memory."""
    count, total, nans, infs = 0, 0.0, 0, 0
    low = high = None
    for value in item.flat:
        if value != value:
            nans += 1
        elif abs(value) == INFINITY:
            infs += 1
        else:
            count += 1
            total += value
            low = value if low is None or value < low else low
            high = value if high is None or value > high else high
    print("dtype %s, shape %s, %s" % (item.dtype, list(item.shape), counted(item.size, "element")))
    print("min %s, max %s, mean %s, %d NaN, %d infinite" % (
        low, high, total / count if count else None, nans, infs))


def print_values(item: Tensor) -> None:
    """Print nested lists of any size in constant memory."""
    widths = [count_elements(item.shape[axis:]) for axis in range(item.ndim)]
    if not item.size:
        print(item.tolist())
        return
    parts: "List[str]" = []
    for i, value in enumerate(item.flat):
        starts = len([1 for width in widths if i % width == 0])
        if i:
            parts.append("]" * starts + ", ")
        parts.append("[" * starts + repr(value))
        if len(parts) > 5000:
            sys.stdout.write("".join(parts))
            parts = []
    print("".join(parts) + "]" * item.ndim)


def show_explain(args: "Any") -> int:
    if args.html:
        return write_page(args)
    rows = Explained(args.file, args)
    if args.json:
        import json
        for field in rows:
            print(json.dumps(json_ready(list(field)), default=json_value))
        return rows.finish()
    wire = ("token", "value", "meaning") if args.wire else ("field", "value", "meaning")
    print("offset    bytes                    %-22s %-20s %s" % wire)
    shown_rows, path, last = 0, [""], ""

    def make_row() -> str:
        stream.seek(field.offset + field.lead)
        return explain_row(field, stream.read(min(field.nbytes - field.lead, 8)), name)
    with open(args.file, "rb") as stream:
        for field in rows:
            if last:
                print(last)
            shown_rows += 1
            name = short_name(field, path)
            last = make_row() if args.limit is None or shown_rows <= args.limit else ""
        if rows.error is not None and shown_rows:  # the offending row comes in any case
            last = make_row()
    if rows.error is not None and last:
        last = "%-87s      <- here" % (last if len(last) <= 87 else last[:84] + "...")
    if last:
        print(last)
    if args.limit is not None and shown_rows > args.limit:
        print("... %d more rows" % (shown_rows - args.limit))
    if rows.error is None:
        print("\n%s" % rows.totals())
        if args.tensor is not None and not shown_rows:
            raise ValueError("%s: no tensor %s" % (args.file, quoted(args.tensor)))
    return rows.finish()


class Explained:
    """The fields of a file that the options ask for; keeps the sums, and the error at the end."""

    def __init__(self, path: str, args: "Any") -> None:
        self.args = args
        self.sums = {"data": 0, "padding": 0, "structure": 0, "unused": 0}
        self.error: "Optional[FormatError]" = None
        self.nbytes = os.stat(path).st_size
        self._fields = explain(path, wire=args.wire, **load_options(args))
        self._reach = 0

    def __iter__(self) -> "Iterator[Field]":
        try:
            for field in self._fields:
                fresh = field.offset + field.nbytes - max(field.offset, self._reach)
                self._reach = max(self._reach, field.offset + field.nbytes)
                self.sums[field.kind] += max(0, fresh)  # shared tensor bytes count once
                if self.args.tensor is None or field.tensor == self.args.tensor:
                    yield field
        except FormatError as caught:
            self.error = caught

    def totals(self) -> str:
        sums = ["%d %s" % (count, kind) for kind, count in self.sums.items()
                if count or kind != "unused"]
        return "%d of %s explained: %s" % (sum(self.sums.values()), counted(self.nbytes, "byte"),
                                           ", ".join(sums))

    def finish(self) -> int:
        """Raise the error that ended the rows, if any; else return the exit code."""
        if self.error is not None:
            raise self.error
        return 0


def explain_row(field: Field, head: bytes, name: str) -> str:
    """Return one line of a field, its first bytes and its name as it is shown."""
    digits = " ".join(["%02x" % byte for byte in head])
    digits = ".. " + digits if field.lead else digits
    if field.nbytes - field.lead > 8 or len(digits) > 23:
        digits = digits[:20] + " .."
    line = ("%08x  %-23s  %-22s %-20s %s" % (
        field.offset, digits, "  " * field.depth + name, shown_value(field), field.doc)).rstrip()
    return line if len(line) <= 100 else line[:97] + "..."  # --json and the page have all of it


def short_name(field: Field, path: "List[str]") -> str:
    """Return a field's name without that of the field around it, which stands above it.

    `path` holds the names of the fields around the last one, by depth.
    """
    parent = path[field.depth] if len(path) > field.depth else ""
    del path[field.depth + 1:]
    path.extend([""] * (field.depth + 1 - len(path)))
    path.append(field.name)
    name = field.name
    if field.depth and parent and name.startswith(parent) and name != parent:
        return plain(name[len(parent):])
    if field.depth and "[" in name:
        return plain(name[name.index("["):])  # tensors[0].shape -> [0].shape
    return plain(name)


def shown_value(field: Field) -> str:
    if field.kind in ("padding", "unused"):
        return counted(field.nbytes, "byte")
    if field.kind == "data":
        return str(field.value)
    return "" if field.value is None else shown(field.value, 40)


# The page of `explain --html`: hex on one side, the tree of fields on the other, linked by number

PAGE_ROWS = 1000  # fields shown from the start, and as many from the end
PAGE_BYTES = 64  # bytes of one field shown in hex
PAGE_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%s</title><style>
:root{--bg:#fff;--ink:#1a1a1a;--dim:#666;--line:#ddd;--s0:#dbe9ff;--s1:#ffe9cc;--data:#d8f3dc;
--padding:#eee;--unused:#f6d5d5;--on:#ffd43b;--onink:#000}
@media (prefers-color-scheme:dark){:root{--bg:#16181c;--ink:#e6e6e6;--dim:#9aa0a6;--line:#333;
--s0:#1d3557;--s1:#4a3413;--data:#1b4332;--padding:#2a2d33;--unused:#5c2626;--on:#ffd43b}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:14px system-ui,
sans-serif}header{padding:.6em 1em;border-bottom:1px solid var(--line)}h1{font-size:1.1em;margin:0}
p{margin:.3em 0;color:var(--dim)}main{display:grid;grid-template-columns:auto 1fr;
height:calc(100vh - 5.5em)}section{overflow:auto;padding:.5em 1em;font:12.5px/1.5 ui-monospace,
monospace}#hex{border-right:1px solid var(--line);white-space:pre}#hex i{color:var(--dim);
font-style:normal}.structure0{background:var(--s0)}.structure1{background:var(--s1)}
.data0,.data1{background:var(--data)}.padding0,.padding1{background:var(--padding)}
.unused0,.unused1{background:var(--unused)}[data-f]{cursor:pointer}table{border-collapse:collapse}
td,th{padding:.05em .7em .05em 0;text-align:left;white-space:nowrap;vertical-align:top}
td:last-child{color:var(--dim)}tr:focus{outline:2px solid var(--on)}
.on,.on td{background:var(--on)!important;color:var(--onink)!important}.here td{font-weight:bold}
.swatch{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}
@media print{main{display:block;height:auto}section{overflow:visible}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}tr{break-inside:avoid}}
</style></head><body><header><h1>%s</h1><p>%s</p></header><main>
"""
PAGE_SCRIPT = """</main><script>
"use strict";
let rows = document.querySelectorAll("tr[data-f]"), fixed = null;
function mark(id, scrollHex, scrollRow) {
  document.querySelectorAll(".on").forEach(e => e.classList.remove("on"));
  if (id === null) return;
  let all = document.querySelectorAll('[data-f="' + id + '"]');
  all.forEach(e => e.classList.add("on"));
  let hex = document.querySelector('#hex [data-f="' + id + '"]');
  let row = document.querySelector('tr[data-f="' + id + '"]');
  if (scrollHex && hex) hex.scrollIntoView({block: "nearest"});
  if (scrollRow && row) row.scrollIntoView({block: "nearest"});
}
function owner(event) { let e = event.target.closest("[data-f]"); return e && e.dataset.f; }
document.addEventListener("mouseover", e => {
  let id = owner(e);
  if (id !== null) mark(id, false, false); else mark(fixed, false, false);
});
function choose(id, focus) {
  fixed = id;
  mark(id, true, true);
  let row = document.querySelector('tr[data-f="' + id + '"]');
  if (focus && row) row.focus({preventScroll: true});
}
document.addEventListener("click", e => { let id = owner(e); if (id) choose(id, true); });
document.addEventListener("focusin", e => { let id = owner(e); if (id) choose(id, false); });
document.addEventListener("keydown", e => {
  let step = {ArrowDown: 1, ArrowUp: -1}[e.key];
  if (!step || !rows.length) return;
  let at = Array.prototype.findIndex.call(rows, r => r.dataset.f === fixed);
  let next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
  e.preventDefault();
  choose(next.dataset.f, true);
});
</script></body></html>
"""


def escape(text: str) -> str:
    for char, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"),
                       ("'", "&#39;")):
        text = text.replace(char, name)
    return text


def write_page(args: "Any") -> int:
    """Write the page as save() writes a file; a broken file gets one too."""
    if os.path.exists(args.html) and os.path.samefile(args.html, args.file):
        raise ValueError("%s: the page would replace the file itself" % args.html)
    rows = Explained(args.file, args)
    fields = list(rows)
    left_out = max(0, len(fields) - 2 * PAGE_ROWS)
    picked = list(enumerate(fields))
    if left_out:
        picked = picked[:PAGE_ROWS] + picked[-PAGE_ROWS:]
    title = plain(os.path.basename(args.file))
    with open(args.file, "rb") as stream:
        parts = page_parts(title, rows, picked, left_out, stream)
        count = _write_out(args.html, (part.encode("ascii", "xmlcharrefreplace")
                                       for part in parts))
    print("wrote %s, %s, %s%s" % (args.html, counted(count, "byte"), counted(len(picked), "field"),
                                  ", %d left out" % left_out if left_out else ""))
    return rows.finish()


def page_parts(title: str, rows: Explained, picked: "List[Any]", left_out: int,
               stream: "Any") -> "Iterator[str]":
    note = rows.totals() if rows.error is None else "error: %s" % rows.error
    legend = " ".join(['<span class="swatch %s0"></span>%s' % (kind, kind)
                       for kind in ("structure", "data", "padding", "unused")])
    yield PAGE_HEAD % (escape(title), escape(title), "%s<br>%s%s" % (
        escape(note), legend, "<br>%d fields in the middle are left out" % left_out
        if left_out else ""))
    yield '<section id="hex" aria-label="bytes">'
    for number, field in picked:
        for part in hex_lines(number, field, stream):
            yield part
    yield '</section><section id="fields" aria-label="fields"><table><tr><th>offset</th>' \
          '<th>field</th><th>value</th><th>meaning</th></tr>'
    path = [""]
    last = picked[-1][0] if picked else -1
    for number, field in picked:
        here = ' class="here"' if rows.error is not None and number == last else ""
        yield ('<tr data-f="%d" tabindex="0"%s><td>%08x</td><td style="padding-left:%dem">%s</td>'
               "<td>%s</td><td>%s</td></tr>\n" % (
                   number, here, field.offset, field.depth, escape(short_name(field, path)),
                   escape(shown_value(field)), escape(field.doc)))
    yield "</table></section>" + PAGE_SCRIPT


def hex_lines(number: int, field: Field, stream: "Any") -> "Iterator[str]":
    """Yield the bytes of a field, 16 a line, each line with its offset; long ones are folded."""
    stream.seek(field.offset)
    data = stream.read(min(field.nbytes, PAGE_BYTES))
    for start in range(0, len(data), 16):
        line = data[start:start + 16]
        text = "".join([chr(byte) if 32 <= byte < 127 else "." for byte in line])
        yield '<i>%08x</i>  <span data-f="%d" class="%s%d">%-47s</span>  <i>%s</i>\n' % (
            field.offset + start, number, field.kind, number % 2,
            " ".join(["%02x" % byte for byte in line]), escape(text))
    if field.nbytes > len(data):
        yield '<i>          ... %d more bytes</i>\n' % (field.nbytes - len(data))


# diff


def show_diff(args: "Any") -> int:
    """Compare two files tensor by tensor, whatever their formats; 1 if they differ."""
    with load(args.a) as a, load(args.b) as b:
        different = 0
        names = list(a) + [name for name in b if name not in a]
        for name in names:
            line = diff_tensor(name, a.get(name), b.get(name))
            if line:
                different += 1
                print(line)
        keys = list(a.metadata) + [key for key in b.metadata if key not in a.metadata]
        pairs = [(key, a.metadata.get(key, _NOTHING), b.metadata.get(key, _NOTHING))
                 for key in keys]
        for key, one, other in pairs:
            if repr(one) != repr(other):
                different += 1
                print("%s metadata %s: %s" % (
                    "-" if other is _NOTHING else "+" if one is _NOTHING else "~", plain(key),
                    " -> ".join([shown(v) for v in (one, other) if v is not _NOTHING])))
    total = counted(len(names), "tensor")
    if different:
        print("%s, %s" % (counted(different, "difference"), total))
    elif not args.quiet:
        print("the same %s, %s" % (total, "same metadata" if keys else "no metadata"))
    return 1 if different else 0


def diff_tensor(name: str, a: "Optional[Tensor]", b: "Optional[Tensor]") -> str:
    """Return what differs between two tensors of one name, or an empty text."""
    if a is None or b is None:
        only: "Any" = b if a is None else a
        return "%s %-10s %s %s" % ("-" if b is None else "+", plain(name), only.dtype,
                                   shown(list(only.shape)))
    changes = []
    if a.shape != b.shape:
        changes.append("shape %s -> %s" % (shown(list(a.shape)), shown(list(b.shape))))
    if a.dtype != b.dtype:
        changes.append("dtype %s -> %s" % (a.dtype, b.dtype))
    if a.shape == b.shape:
        changes += diff_values(a, b)
    return "~ %-10s %s" % (plain(name), ", ".join(changes)) if changes else ""


def diff_values(a: Tensor, b: Tensor) -> "List[str]":
    """Compare elements in constant memory: bytes first, numbers where the bytes differ."""
    try:
        if a.dtype == b.dtype and same_bytes(a, b):
            return []
        if a.dtype == b.dtype == "qfloat":
            return ["stored bytes differ"]
        count, largest, numbers = 0, 0.0, True
        for x, y in zip(a.flat, b.flat):
            if x != y and not (x != x and y != y):
                count += 1
                gap = abs(float(x) - float(y))
                largest = gap if gap > largest else largest
                numbers = numbers and gap == gap
    except Unsupported:  # unknown to us: only the stored bytes can tell
        return [] if bytes(a.raw) == bytes(b.raw) else ["stored bytes differ"]
    if count:
        return ["%s changed, by %s at most%s" % (counted(count, "value"), repr(largest),
                                                 "" if numbers else " (and NaN)")]
    return ["same values" if a.dtype != b.dtype else "same values, other bits (-0.0 or NaN)"]


def same_bytes(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors have the same row-major bytes, block by block."""
    left, right = _small_blocks(a), _small_blocks(b)
    one = other = b""
    while True:
        one = one or next(left, b"")
        other = other or next(right, b"")
        count = min(len(one), len(other))
        if one[:count] != other[:count] or not count:
            return not one and not other
        one, other = one[count:], other[count:]


def _small_blocks(item: Tensor) -> "Iterator[bytes]":
    for block in item._blocks():
        for piece in pieces(block, BLOCK):
            yield bytes(piece)


def show_verify(args: "Any") -> int:
    bad = 0
    for path in args.file:
        try:
            report = verify(path, **load_options(args))
        except OSError as error:  # and on with the next file
            bad += 1
            sys.stdout.flush()
            sys.stderr.write("error: %s: %s\n" % (plain(path), error.strerror or error))
            continue
        bad += not report
        if args.json:
            import json
            print(json.dumps({"file": path, "format": report.format, "valid": bool(report),
                              "rows": report.rows}))
        elif not args.quiet:
            print(report)
        elif not report:
            print(str(report.errors[0]))
    return 1 if bad else 0


def show_convert(args: "Any") -> int:
    cast: "Any" = None
    if args.cast:
        pairs = [text.partition("=") for text in args.cast.split(",")]
        cast = dict([(old, new) for old, _, new in pairs]) if "=" in args.cast else args.cast
    options = dict([parse_setting(text) for text in args.set or ()])
    with load(args.source, **load_options(args)) as file:
        try:
            kind = _target_format(args.format, args.target, None)
        except ValueError as error:
            raise Misuse(str(error))
        _check_options(options, kind.OPTIONS, "saving %s" % kind.NAME)
        print("%s (%s) -> %s (%s)" % (args.source, find_format(file.format).TITLE, args.target,
                                      kind.TITLE))
        try:
            summary = _convert(file, args.target, kind, cast, args.only, args.dense, args.drop,
                               options, progress if sys.stderr.isatty() else None)
        except (ValueError, TypeError) as error:
            hint = "--cast DTYPE converts values, --only NAME leaves tensors out, --drop content"
            raise ValueError("%s\n  %s\nnothing written" % (error, hint))
    lines = str(summary).split("\n")
    print("\n".join(["  " + line for line in lines[:-1]]))
    print("wrote %s, %s" % (args.target, counted(summary.nbytes, "byte")))
    return 0


class Misuse(ValueError):
    """The command cannot be meant so, whatever the files hold: exit code 2, as for its syntax."""


def parse_setting(text: str) -> "Tuple[str, Any]":
    """Return (key, value) of --set KEY=VALUE: a Python literal, else text."""
    from ast import literal_eval
    key, equals, value = text.partition("=")
    if not equals:
        raise Misuse("--set takes KEY=VALUE, not %s" % quoted(text))
    try:
        return key, literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return key, value


def progress(chunks: "Iterator[Any]") -> "Iterator[Any]":
    """Yield chunks; once a second has gone by, tell on stderr how far it is."""
    from time import time
    last, total, told = time(), 0, False
    for chunk in chunks:
        for start in range(0, len(chunk), 16 << 20):
            piece = memoryview(chunk)[start:start + (16 << 20)]
            total += len(piece)
            if time() - last > 1:
                sys.stderr.write("\r%d MB " % (total >> 20))
                last, told = time(), True
            yield piece
    if told:
        sys.stderr.write("\r            \r")


HOLDS = {  # what besides tensors
    "mag": "metadata: numbers; up to 6 dimensions",
    "ztensor": "custom fields per tensor, checksums, zstd, big-endian data",
    "primitiv": "optimizer configs (numbers) with kind=optimizer; no empty tensors",
    "burnpack": "metadata: text to text; scalars; param_id; quantized bytes",
    "tensorbuffers": "metadata: model (text); operations; 32-bit offsets and sizes"}


def show_formats(args: "Any") -> int:
    for kind in FORMATS:
        print("%-14s %s (%s)" % (kind.NAME, kind.TITLE, " ".join(kind.SUFFIXES)))
        names = list(kind.DTYPES)
        print("  dtypes       %s" % " ".join(names[:9]))
        for start in range(9, len(names), 9):
            print("               %s" % " ".join(names[start:start + 9]))
        print("  besides      %s" % HOLDS[kind.NAME])
        for key, text in kind.OPTIONS.items():
            print("  save option  %s: %s" % (key, text))
        for key, text in kind.READ_OPTIONS.items():
            print("  load option  %s: %s" % (key, text))
    return 0


def show_demo(args: "Any") -> int:
    """Write, list, verify and explain one small file of each format."""
    from shutil import rmtree
    from tempfile import mkdtemp
    folder = args.folder or mkdtemp(prefix="tensorfmt-")
    if not os.path.isdir(folder):
        os.makedirs(folder)
    here = os.getcwd()
    os.chdir(folder)
    try:
        for kind in FORMATS:
            demo_one(kind, "demo" + kind.SUFFIXES[0])
    finally:
        os.chdir(here)
        if not args.folder:
            rmtree(folder)
    print("all %d formats written, listed, verified, explained and read back" % len(FORMATS))
    print("files are in %s" % folder if args.folder else
          "the files were temporary; `demo FOLDER` keeps them")
    return 0


def demo_one(kind: "Format", path: str) -> None:
    weight, bias = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0.5, -0.5]
    dtype = "float32"
    wanted = {"layer.weight": tensor(weight, dtype), "layer.bias": tensor(bias, dtype)}
    if "int32" in kind.DTYPES:
        wanted["steps"] = tensor(7, "int32")
    save(path, wanted, format=kind.NAME)
    print("== %s: save(%s, {...})\n" % (kind.TITLE, quoted(path)))
    for command in (["ls", path], ["verify", path], ["explain", path, "--limit", "16"]):
        if main(command):
            raise FormatError("%s failed" % " ".join(command))
        print()
    with load(path) as file:
        for name, item in wanted.items():
            if file[name].tolist() != item.tolist() or file[name].shape != item.shape:
                raise FormatError("%s does not come back as it was saved" % name)


def load_options(args: "Any") -> "Dict[str, Any]":
    return {} if args.layout is None else {"layout": args.layout}


def make_parser() -> "Any":
    from argparse import ArgumentParser
    parser = ArgumentParser("tensorfmt", add_help=False)
    commands = parser.add_subparsers()

    def command(name: str, call: "Any", *arguments: "Any") -> None:
        sub = commands.add_parser(name)
        sub.set_defaults(call=call)
        for names, settings in arguments:
            sub.add_argument(*names, **settings)
        sub.add_argument("--layout", help="of an ambiguous Burnpack file: aligned or packed")

    def option(*names: str, **settings: "Any") -> "Any":
        return names, settings
    files = option("file", nargs="+")
    limit = option("--limit", type=row_count, help="print that many rows at most")
    command("ls", show_ls, files, limit, option("--json", action="store_true"),
            option("--sort", choices=["bytes", "name", "offset"]))
    command("get", show_get, option("file"), option("name"),
            option("--rows", type=row_range, help="START:STOP of the first dimension"),
            option("--raw", action="store_true", help="row-major little-endian bytes to stdout"),
            option("--stats", action="store_true", help="min, max, mean, NaN and infinities"))
    command("explain", show_explain, option("file"), limit,
            option("--tensor", help="only the rows of this tensor"),
            option("--wire", action="store_true", help="CBOR token by token"),
            option("--json", action="store_true", help="one JSON array a row"),
            option("--html", metavar="OUT", help="write a page to look at instead"))
    command("verify", show_verify, files, option("--json", action="store_true"),
            option("--quiet", action="store_true", help="one line for each bad file, only"))
    command("diff", show_diff, option("a"), option("b"), option("--quiet", action="store_true"))
    command("convert", show_convert, option("source"), option("target"),
            option("--format", choices=[kind.NAME for kind in FORMATS]),
            option("--cast", metavar="DTYPE | OLD=NEW,...",
                   help="dtype for what the target cannot hold, or of each dtype"),
            option("--only", action="append", metavar="NAME", help="name or shell pattern"),
            option("--dense", action="store_true", help="write sparse tensors with their zeros"),
            option("--drop", action="store_true", help="leave out what has no place"),
            option("--set", action="append", metavar="KEY=VALUE", help="option of the format"))
    command("formats", show_formats)
    command("demo", show_demo, option("folder", nargs="?"))
    return parser


def main(argv: "Optional[List[str]]" = None) -> int:
    """Run the command line; return the exit code: 0 good, 1 bad or different, 2 misuse."""
    argv = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # closed: `>&-`
        sys.stdout = open(os.devnull, "w")
    elif hasattr(sys.stdout, "reconfigure"):  # names of files may be anything
        sys.stdout.reconfigure(errors="backslashreplace")
    code = 1
    try:
        done = run(argv)
        sys.stdout.flush()
        return done
    except BrokenPipeError:  # `| head`
        drop_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        message = "%s%s" % ("%s: " % plain(str(error.filename)) if error.filename is not None
                            else "", error.strerror or error)
    except (Misuse, TypeError) as error:  # TypeError: options that the format does not have
        message, code = str(error), 2
    except ValueError as error:
        message = str(error)
    try:
        sys.stdout.flush()
    except OSError:  # the reader is gone, or the disk is full
        drop_output()
    sys.stderr.write("error: %s\n" % message)
    return code


def drop_output() -> None:
    """Lead what is still to be written to nowhere, so that Python's own flush at exit is quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def run(argv: "List[str]") -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(USAGE % (__version__, " ".join([kind.NAME for kind in FORMATS])))
        return 0
    if argv[0] == "--version":
        from hashlib import sha256
        with open(__file__, "rb") as stream:
            print("tensorfmt %s, sha256 %s" % (__version__, sha256(stream.read()).hexdigest()))
        return 0
    args = make_parser().parse_args(argv)
    code: int = args.call(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
