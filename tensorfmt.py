# SPDX-License-Identifier: MIT
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
# mypy: disable-error-code="var-annotated,no-any-return"
# pyright: reportPossiblyUnboundVariable=false, reportIncompatibleMethodOverride=false
"""Read, write and explain five tensor file formats, and safetensors: one file, nothing to install.

.mag (magnetron), zTensor 0.1, primitiv 0.1, Burnpack and TensorBuffers, zero-copy, byte-exact.

    from tensorfmt import load, save, tensor
    save("model.bpk", {"w": [[1.0, 2.0], [3.0, 4.0]], "steps": tensor(7, "int64")})
    with load("model.bpk") as file:         # O(index): no tensor byte is touched
        w = file["w"]                       # .name .dtype .shape .strides .raw .data .tolist()
        print(w.dtype, w.shape, w[0, 1])    # float64 (2, 2) 2.0
        array = numpy.asarray(w)            # zero-copy; numpy is not needed for anything else

Contents (the banners of the sections below; search for a number)

    [1] platform           what this Python offers; registries; limits of no one format
    [2] errors, text       FormatError, Unsupported; what messages are made of
    [2b] left out          what stands in a copy for the parts that it lacks
    [3] dtypes             element types, values <-> bytes, byte order
    [4] sources            where bytes come from: a buffer, a mapped file, a stream
    [5a] checksums         CRC-32, CRC-32C, SHA-256, XXH3-64
    [5b] CBOR              RFC 8949
    [5c] MessagePack       what primitiv and burnrecord are made of
    [5d] FlatBuffers       tables, vectors and texts; a builder
    [5e] JSON              RFC 8259, by the standard library
    [5f] strided blocks    elements with gaps between them
    [6a] Tensor, File      strided views, values, the mapping of names to tensors
    [6b] readers           Cursor reads named fields, Schema says what a map holds
    [6c] derived           tensors whose elements are made when they are asked for
    [6d] casts             other dtypes
    [6d2] float8           8-bit floats
    [6e] zstd              through whichever module is there
    [6f] parts             tensors of several parts
    [6g] sparse            stored elements and where they are
    [6h] quantized         few bits for each value, times a scale
    [6i] values            tensor(): lists, numbers, buffers
    [7] formats            what every format answers
    [7a] mag               two layouts, header + records + data
    [7a3] mag300           snapshot 300: header + JSON + data
    [7b] ztensor           data + CBOR index + its size
    [7b3] ztensor2         the same, deterministic, with digests
    [7c] primitiv          a run of MessagePack values, column-major
    [7d] burnpack          header + CBOR + data
    [7e] tensorbuffers     data + one FlatBuffer + its size
    [7f] safetensors       the bridge: JSON header + data
    [7g] burnrecord        one MessagePack map, read only
    [8] other files        what files of no format here look like
    [8a] load              the formats in their order; what opens files
    [8b] save              what writes files
    [8b2] work             how much a file may make save() write
    [8c] shards            model.safetensors.index.json, read only
    [8d] pickles           by reference where there is a path
    [8e] arrays            what numpy, torch and jax ask for
    [8f] shown             repr() with values; ==
    [8g] cut files         what is whole of a file that was cut short
    [9a] traces            cursors that note every field, walks of trees; exact places of errors
    [9b] explain           every byte of a file, named
    [9c] verify            checksums, padding, canonical form
    [9d] convert           between formats; nothing silent
    [9e] diff              two files, tensor by tensor
    [10a] page             what `explain` shows; what `explain --html` writes
    [10b] vendor           copies of this file with only what is asked for
    [11] command line      ls, get, explain, verify, convert, diff, formats, demo, vendor

`nbytes` counts bytes, `size` and `count` elements, `offset` bytes from the start of the file. A
shape is a tuple, outermost first, of a scalar `()`. Row-major, little-endian unless said otherwise.

What loads knows nothing of what saves, and both nothing of the tools, [9] to [11]; but [9a] finds
the exact place of a FormatError. The section of a format has its drawn layout, tables of its
fields, one `read`, also behind explain and verify, and one `write`.

Sources: the specifications of the five formats, MessagePack and FlatBuffers; RFC 8949 (CBOR), RFC
3720 (CRC-32C); files of the real writers (magnetron 0.1.2-0.2.2, ztensor 0.1.0-0.1.4, primitiv
0.3.1 and 0.4.0, burn-store 0.19-0.21, tensorbuffers 7190fc4 and 2422de1).
"""
__version__ = "0.4.0.dev0"
__all__ = [
    "load", "save", "dumps", "tensor", "detect", "convert", "verify", "explain", "diff",
    "File", "Tensor", "FormatError", "Unsupported", "FORMATS",
    "cbor_loads", "cbor_dumps", "msgpack_loads", "msgpack_dumps", "flat_loads", "FlatBuilder",
    "crc32c",
]


# -- [1] platform --------------------------------------------------------------------------------

import struct
import sys
from struct import calcsize, pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import (Any, Dict, ItemsView, Iterable, Iterator, KeysView, List, Mapping,
                        Optional, Tuple, Type, Union, ValuesView)

    from _typeshed import ReadableBuffer, SupportsRead, SupportsWrite
    Source = Union[str, os.PathLike[str], ReadableBuffer, SupportsRead[Any]]
    Target = Union[str, os.PathLike[str], SupportsWrite[Any]]
    Shape = Tuple[int, ...]  # dimensions, or strides in bytes
    Facts = Dict[str, Any]
    Items = List[Tuple[str, "Tensor"]]  # names and tensors, in the order of the file
    Chunks = Iterator[Any]  # bytes-like blocks in order
    TensorMap = Mapping[str, "Tensor"]
else:  # annotations name them
    Any = Shape = Facts = Items = Chunks = TensorMap = Source = Target = object
BOARD = sys.implementation.name == "micropython"
if BOARD:  # its dict has no order
    import collections
    Map: "Type[Dict[Any, Any]]" = collections.OrderedDict
    try:
        import os
    except ImportError:  # a board without files
        globals()["os"] = None

    class RLock:  # nor are there threads
        def __enter__(self, *error: Any) -> None:
            pass
        __exit__ = __enter__
else:
    import os
    from _thread import RLock  # type: ignore[assignment]
    from _operator import attrgetter
    Map = dict
NATIVE = "<" if sys.byteorder == "little" else ">"

LEFT_OUT: Any = {}  # formats that this copy was made without, by how they begin
WITHOUT: Any = []  # and the optional parts: zstd, sparse, quantized
MISSING: Any = object()  # a key that is absent

# Limits of no one format. An error names its limit; set it before load() to change it.
BLOCK = 1 << 10 if BOARD else 1 << 20  # bytes decoded or swapped at a time
PART = 1 << 10 if BOARD else 1 << 15  # bytes cast at a time; not to be changed
MAX_DEPTH = 128  # arrays, maps and tags around an item of CBOR or JSON
MAX_ITEMS = 1 << 23  # arrays and maps of an index
MAX_NAMES = 1 << 20  # bytes of names that are made of parts, besides 8 for each of the file
MAX_PATH = 400  # characters of the path of a field
MAX_TEXT = 300  # characters of one text of a file in a message or a table
MAX_SHOWN = 200  # values that repr() of a tensor and `get` show whole
MAX_LINE = 2000  # characters of a line of a message, and of a repr


def without_gc(function: Any) -> Any:
    """Return a function that makes no cycles: to look for them would take a third of its time."""
    def quick(*args: Any, **options: Any) -> Any:
        import gc
        if not gc.isenabled():
            return function(*args, **options)
        try:
            try:
                gc.disable()
                return function(*args, **options)
            finally:
                gc.enable()
        finally:
            gc.enable()  # again: Ctrl-C may have come before the other
    return function if BOARD else quick


# -- [2] errors, text ----------------------------------------------------------------------------


class FormatError(ValueError):
    """The bytes break a rule of the format: at `offset` of the file, in `field`, a path.

    >>> print(verify(b"MAG!").errors[0])
    version needs 4 bytes, 0 left (cut short?) (at 0x4, version)
    """

    steps: Any = ()  # path of the field: names and indices, the outermost first
    cut = False  # does the file end in this field?

    def __init__(self, what: str, offset: "Optional[int]" = None, field: Any = None,
                 tensor: Any = None, path: Any = None, check: str = "index") -> None:
        super().__init__(what, offset, field, tensor, path, check)
        self.what, self.offset, self.field = what, offset, field
        self.tensor, self.path, self.check = tensor, path, check

    def __str__(self, code: str = "ascii") -> str:  # which any log takes
        path = "" if self.path is None else plain(self.path) + ": "
        name = "" if self.tensor is None else f"tensor {quote(self.tensor)}: "
        place = [] if self.offset is None else [f"at 0x{self.offset:x}"]
        place += [] if self.field is None else [self.field]
        text = path + name + clip(self.what, 800) + (f" ({', '.join(place)})" if place else "")
        return clip(text if BOARD else text.encode(code, "backslashreplace").decode(code), MAX_LINE)


class Unsupported(FormatError):
    """The bytes may be right; tensorfmt does not read what the message names.

    >>> issubclass(Unsupported, FormatError)
    True
    """


def count_of(number: int, noun: str) -> str:
    """Return "1 tensor" or "3 tensors"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clip(text: str, limit: int) -> str:
    """Return a text; of one that is longer than the limit, its beginning and its end."""
    if BOARD or len(text) <= limit:
        return text[:limit]
    return text[:limit - limit // 4 - 3] + "..." + text[len(text) - limit // 4:]


def quote(value: Any) -> str:
    """Return a text for people, quoted, cut; in its letters: only what is not printable is escaped.

    All texts of a file leave by it, plain(), show() and to_html().
    """
    text = clip(value, MAX_TEXT) if isinstance(value, str) else value
    return clip(repr(text), MAX_TEXT)


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text for a listing: unquoted if printable, without blanks at its ends."""
    text = clip(text, limit)
    fine = text and text == text.strip() and set(text).issubset(repr(text))
    return text if fine else quote(text)


def to_html(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a value as text for a page: printable, without marks of HTML."""
    from html import escape
    text = clip(str(value), limit)
    return escape(text if set(text).issubset(repr(text)) else quote(text))


MAX_MESSAGE = 32000  # characters of a message, which has at most 100 lines of one kind


def join_lines(lines: "List[str]") -> str:
    """Return lines as one message: each cut to MAX_LINE, all of them to MAX_MESSAGE."""
    shown = [clip(line, MAX_LINE - 100) for line in lines[:101]]  # the first may be their number
    while sum([len(line) + 3 for line in shown]) > MAX_MESSAGE:
        shown.pop()
    if len(shown) < len(lines):
        shown.append(f"{len(lines) - len(shown)} more")
    return "\n  ".join(shown)


def nearest(name: Any, names: Any) -> str:
    """Return the end of a message: which name is most like a wrong one, if one is like it."""
    try:
        from difflib import get_close_matches
    except ImportError:  # on boards
        return ""
    near = get_close_matches(str(name)[:200], [one[:200] for one in names][:5000], 1)
    return f"; did you mean {quote(near[0])}?" if near else ""


def list_names(names: Any, most: int = 100) -> str:
    """Return names in one line, and how many others there are."""
    text = clip(", ".join(map(plain, names[:most])), MAX_LINE // 2)
    return text + (f", {len(names) - most} more" if len(names) > most else "")


def show(value: Any, limit: int = 60, depth: int = 0) -> str:
    """Return a value for a message: escaped; lists cut short, four levels deep."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return quote(bytes(value)) if len(value) <= 16 else f"{len(value)} bytes"
    if depth > 3 and type(value) in (list, tuple, dict, Map):
        return "..."
    if type(value) in (list, tuple):  # Simple has words of its own
        most = 8 if len(value) > 20 else 20
        items = [show(item, limit, depth + 1) for item in value[:most]]
        items += [f"... {len(value)} items"] if most < len(value) else []
        return f"[{', '.join(items)}]"
    if type(value) is int and not -(1 << 128) < value < 1 << 128:  # str() is slow, or an error
        return "an integer of more than 128 bits"
    if isinstance(value, dict):
        items = [f"{show(key, limit, depth + 1)}: {show(item, limit, depth + 1)}"
                 for _, (key, item) in zip(range(8), value.items())]
        text = "{%s}" % ", ".join(items + ["..."] * (len(items) < len(value)))
    else:
        text = quote(value[:limit] if isinstance(value, str) else value)
    return text if len(text) <= limit or depth else text[:limit - 3] + "..."


def encode_text(text: str, errors: str = "strict") -> bytes:
    """Return text as UTF-8; plain ValueError for a lone surrogate."""
    try:
        return text.encode("utf-8", errors)
    except UnicodeError:
        raise ValueError(f"{show(text)} is not Unicode text (a lone surrogate)")


def is_text(text: Any) -> bool:
    try:
        return isinstance(text, str) and encode_text(text) is not None
    except ValueError:
        return False


def decode_text(data: bytes) -> "Optional[str]":
    try:
        return data.decode()
    except UnicodeError:
        return None


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def keep(known: Any, key: Any, value: Any) -> Any:
    """Return a value, kept for its key; shapes can be chosen to have one hash: only some."""
    if len(known) > 256:
        known.clear()
    known[key] = value
    return value


def path_of_keys(keys: Any, path: str = "") -> str:
    """Return a field's path, behind `path`: `a.key`, `a[3]`, `a['any text']`; if long, its ends."""
    for key in keys:
        word = isinstance(key, str) and key.replace("_", "").isalpha()
        text = (f".{key}" if path else key) if word else f"[{show(key, MAX_PATH)}]"
        path = clip(path + text, MAX_PATH)
    return path


# -- [2b] left out -------------------------------------------------------------------------------


def left_out(part: str) -> Any:
    """Return what stands in a copy for a name that it was made without: a call of it raises.

    It is a class: isinstance() may ask for it.
    """
    class LeftOut:
        def __init__(self, *args: Any, **options: Any) -> None:
            raise Unsupported(f"this copy was made without {part}")
    return LeftOut


# -- [3] dtypes ----------------------------------------------------------------------------------

NUMBERS = [row.split(":") for row in (  # name:bytes:struct code; bfloat16 has none
    "float64:8:d float32:4:f float16:2:e bfloat16:2: int64:8:q int32:4:i int16:2:h int8:1:b "
    "uint64:8:Q uint32:4:I uint16:2:H uint8:1:B bool:1:?").split()]
ITEMSIZE: "Dict[Any, int]" = Map([(dtype, int(nbytes)) for dtype, nbytes, _ in NUMBERS])
STRUCT_CODE: Facts = dict([(dtype, code) for dtype, _, code in NUMBERS if code])
WIDTH = dict([("", 0)] + [(code, ITEMSIZE[dtype]) for dtype, code in STRUCT_CODE.items()])
UNPACK: Facts = {  # values of bytes in an order, where struct cannot make them
    "bool": lambda data, order: [byte != 0 for byte in data],
    "bfloat16": lambda data, order: unpack_values("float32", widen_bfloat16(data, order), order)}
BITS_CODE = {1: "B", 2: "H", 4: "I", 8: "Q"}  # elements moved as bits: NaN payloads survive
INT_RANGE = dict([("int%d" % n, (-(1 << n - 1), (1 << n - 1) - 1)) for n in (64, 32, 16, 8)]
                 + [("uint%d" % n, (0, (1 << n) - 1)) for n in (64, 32, 16, 8)])
FLOAT_DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # significant bits
INEXACT = {("bfloat16", "float16")}  # casts that round, whatever the digits
INFINITY = float("inf")
FLOAT32_LIMIT = 2.0 ** 128 - 2.0 ** 103  # from here on float32 rounds to infinity
FLOAT64_LIMIT = (1 << 1024) - (1 << 970)  # and float64
CASTS: Any = {}  # quicker ways, by both dtypes


def count_elements(shape: "Iterable[int]") -> int:
    """Return the product of the dimensions; beyond 2**64 it is only some larger number."""
    size = 1
    for n in shape:
        if size <= 1 << 64 or n == 0:  # thousands of 2**64-1: the product would take minutes
            size *= n
    return size


def row_major(shape: Shape, itemsize: int) -> Shape:
    """Return strides in bytes, without gaps; the last index runs fastest."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        if itemsize < 1 << 64:  # beyond, some dimension is 0: no stride is used
            itemsize *= n or 1
    return tuple(reversed(strides))


def swap(data: Any, itemsize: int) -> Any:
    """Return a copy of the bytes with the byte order of each element reversed."""
    try:
        from array import array  # 10 GB/s, but it drags in nine modules
        items = array(BITS_CODE[itemsize])
        items.frombytes(data)
        items.byteswap()
        return memoryview(items).cast("B")
    except (ImportError, AttributeError):  # that of MicroPython cannot swap
        return bytearray(data[i ^ itemsize - 1] for i in range(len(data)))


def unpack_values(dtype: str, data: Any, order: str = "<") -> Any:
    """Return the elements in `data`, of this byte order, as Python numbers."""
    if dtype in UNPACK:
        return UNPACK[dtype](data, order)
    order = "@" if order == NATIVE and not BOARD else order  # 1.6 times as fast
    return unpack_from(f"{order}{len(data) // ITEMSIZE[dtype]}{STRUCT_CODE[dtype]}", data, 0)


def widen_bfloat16(data: Any, order: str) -> bytearray:
    """Return bfloat16 bytes as float32 bytes: two zero bytes at each low end."""
    data, out = bytes(data), bytearray(2 * len(data))
    low = 2 if order == "<" else 0  # where the two stored bytes go
    if not BOARD:
        out[low::4], out[low + 1::4] = data[0::2], data[1::2]
        return out
    for i in range(0, len(data), 2):  # no slices with steps there
        out[2 * i + low:2 * i + low + 2] = data[i:i + 2]
    return out


def pack_values(dtype: str, values: Any) -> Any:
    """Return numbers as little-endian bytes; floats are rounded to nearest even, or to infinity."""
    if dtype == "bool":
        return bytes([1 if value else 0 for value in values])
    if dtype in INT_RANGE:
        values = [whole_number(value, dtype) for value in values]
    elif dtype != "float64":
        values = [value if type(value) is not int else to_odd(value) if abs(value) >> 53 else
                  float(value) for value in values]
    if dtype in PACK:
        return PACK[dtype](values)
    code = STRUCT_CODE[dtype]
    try:
        return pack(f"<{len(values)}{code}", *values)
    except OverflowError:
        limit = {"e": 65520.0, "f": FLOAT32_LIMIT, "d": FLOAT64_LIMIT}[code]
        return b"".join([pack("<" + code, to_inf(value, limit)) for value in values])


def whole_number(value: Any, dtype: str) -> int:
    """Return a number as an int; ValueError if the dtype cannot hold it."""
    low, high = INT_RANGE[dtype]
    number: Any = int(value) if abs(value) < INFINITY else None
    if number == value and low <= number <= high:
        return number
    raise ValueError(f"{show(value)} does not fit {dtype}")


def to_inf(value: Any, limit: float) -> float:
    """Return the number as a float, or an infinity from the limit on."""
    if value != value or -limit < value < limit:
        return float(value)
    return INFINITY if value >= limit else -INFINITY


def to_odd(value: int) -> float:
    """Return an integer as float64, rounded to odd: one more rounding stays right."""
    shift = 0
    while abs(value) >> shift + 53:
        shift += 8
    rest = value & (1 << shift) - 1
    return to_inf(value - rest | (1 << shift if rest else 0), FLOAT64_LIMIT)


def narrow_bfloat16(values: Any) -> bytes:
    """Return numbers as little-endian bfloat16 bytes, rounded once, to nearest even."""
    words = []
    for value in values:
        number = to_inf(value, FLOAT32_LIMIT)
        bits, = unpack_from("<I", pack("<f", number))
        rounded, = unpack_from("<f", pack("<I", bits))
        if number != number:
            bits = bits & 1 << 31 | 0x7FC << 20  # one NaN of each sign
        elif rounded != number:  # float32 is a step on the way: round it to odd
            bits = (bits - 1 if abs(rounded) > abs(number) else bits) | 1
        words.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return pack("<%dH" % len(words), *words)


PACK: Facts = {"bfloat16": narrow_bfloat16}  # as UNPACK: bytes of values
MINIFLOATS: Any = {  # bits of exponent and mantissa, bias, code of infinity (0: none), of NaN
    "E4M3": (4, 3, 7, 0, (0x7F, 0xFF)), "E4M3FNUZ": (4, 3, 8, 0, (0x80,)),
    "E5M2": (5, 2, 15, 0x7C, (0x7E, 0x7D, 0x7F, 0xFE, 0xFD, 0xFF)),
    "E5M2FNUZ": (5, 2, 16, 0, (0x80,)), "E8M0": (8, 0, 127, 0, (0xFF,)), "E2M1": (2, 1, 1, 0, ())}


def minifloat(kind: str, code: int) -> float:
    """Return the value of a float of 8 or 4 bits: sign (E8M0 has none), exponent, mantissa."""
    width, digits, bias, infinity, nans = MINIFLOATS[kind]
    low = code & (1 << width + digits) - 1
    exponent, rest = low >> digits, low & (1 << digits) - 1
    if exponent or not digits:
        rest += 1 << digits
    value = rest * 2.0 ** (max(exponent, digits and 1) - bias - digits)
    if code in nans:
        value = float("nan")
    elif infinity and low == infinity:
        value = INFINITY
    return value if low == code else -value


def cast_block(data: Any, old: str, new: str) -> Any:
    """Return little-endian bytes of dtype `old` as those of dtype `new`."""
    if old == new:
        return data
    if (old, new) in CASTS:
        return CASTS[old, new](data)
    return pack_values(new, unpack_values(old, data))


def cast_is_exact(old: str, new: str) -> bool:
    """Return whether every value of one dtype is a value of the other."""
    if (old, new) in INEXACT or "bool" in (old, new):
        return old == "bool" and (old, new) not in INEXACT
    digits = FLOAT_DIGITS.get(new, 0)
    if old in FLOAT_DIGITS:
        return FLOAT_DIGITS[old] <= digits
    least, most = INT_RANGE.get(new) or (-INFINITY, 2 ** digits)
    return least <= INT_RANGE[old][0] and INT_RANGE[old][1] <= most


def as_dtype(dtype: Any) -> str:
    """Return our name of a dtype, also of numpy.float32, torch.float32, "bf16" or "F32"."""
    if dtype is float or dtype is int:
        dtype = dtype.__name__ + "64"
    name: Any = dtype
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        name = str(getattr(dtype, "__name__", getattr(dtype, "name", dtype))).split(".")[-1]
        name = name.lower().rstrip("_")
        word = name.rstrip("0123456789")
        if name != word + "8":  # "i8" has 64 bits in numpy, 8 in Rust
            full = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}
            name = full.get(word, word) + name[len(word):]
        name = {"f8_e4m3": "f8_e4m3fn", "f8_e8m0": "f8_e8m0fnu"}.get(name, name)  # safetensors'
        name = "float" + name[1:] if name[:3] == "f8_" else name
    if name not in ITEMSIZE:
        raise ValueError("no dtype %s; there are %s" % (show(dtype), ", ".join(ITEMSIZE)))
    return str(name)


# -- [4] sources ---------------------------------------------------------------------------------
#
# A source has .nbytes, .path, view(offset, nbytes) for tensors (no copy where .zero_copy), read()
# for the index (bytes). `of_file`: offsets are those of a file; `stamp`: which one, and its time.


def pieces(view: Any, nbytes: int) -> Chunks:
    for start in range(0, len(view), nbytes):
        yield view[start:start + nbytes]


class ByteSource:
    """What all sources have in common."""

    of_file = True
    view: Any

    def read(self, offset: int, nbytes: int) -> bytes:
        return bytes(self.view(offset, nbytes))

    def __reduce__(self) -> Any:
        return reduce_source(self)


class Memory(ByteSource):
    """Any bytes-like object, or a mapped file."""

    zero_copy = True
    path: Any = None
    stamp: Any = None

    def __init__(self, buffer: Any, of_file: bool = False) -> None:
        view: Any = memoryview(buffer)
        if not BOARD:
            try:
                view = view.cast("B")
            except (TypeError, ValueError):  # it has gaps, no elements or a format like ">H"
                view = memoryview(view.tobytes())
        self._view = view.toreadonly() if hasattr(view, "toreadonly") else view  # from 3.8 on
        self.nbytes, self.of_file = len(view), of_file

    def view(self, offset: int, nbytes: int) -> Any:
        view = self._view  # once: another thread may close() now
        if view is None:
            raise ValueError("the File is closed")
        return view[offset:offset + nbytes]

    def close(self) -> None:
        self._view = None  # never release() nor mmap.close(): views stay valid, on PyPy too


class Stream(ByteSource):
    """A seekable binary file object; each read puts its position back, one thread at a time.

    Of a file to be mapped the index comes by small reads, too: a mapping would read megabytes.
    """

    _file: Any = None  # nor is there one behind close()
    locks = [RLock() for _ in range(64)]  # Files over one stream share one: it has one position

    def __init__(self, stream: Any, path: Any = None, stamp: Any = None) -> None:
        self._finish = stream.close if stamp else int  # what __del__ calls: was it opened here?
        self._map: Any = None if stamp and stamp[1] else False  # None: not mapped yet
        self._file, self.path, self.stamp = stream, path, stamp
        self._lock: Any = RLock() if stamp else self.locks[(id(stream) >> 4) % 64]
        here, self.nbytes = stream.tell(), stream.seek(0, 2) or stream.tell()
        stream.seek(here)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return bytes of the stream, whose position stays."""
        if BOARD and offset > sys.maxsize:
            raise Unsupported("an offset in the file is too large for this device")
        parts, left = [], nbytes
        with self._lock:
            if self._file is None:
                raise ValueError("the File is closed")
            here = self._file.tell()
            try:
                self._file.seek(offset)
                while left > 0:  # read() may give fewer than asked
                    part = self._file.read(left) or b""
                    if not isinstance(part, (bytes, bytearray, memoryview)):
                        raise TypeError("the stream does not give bytes; open it in binary mode")
                    parts.append(bytes(part))
                    left -= len(parts[-1])
                    if not parts[-1]:
                        raise FormatError(f"the stream ended {left} bytes early: it has shrunk",
                                          offset + nbytes - left, path=self.path)
            finally:
                self._file.seek(here)
        if left < 0:
            raise OSError("the stream gives more than asked for")
        return b"".join(parts)

    @property
    def zero_copy(self) -> Any:
        """The mapped file, or False: copy on write, since torch writes into any array.

        By ACCESS_COPY, which from 3.13 on needs no descriptor. The system may not promise so much
        memory (ENOMEM): then without a promise, or by ACCESS_READ.
        """
        private = 0x4002 if sys.platform == "linux" else 2  # MAP_PRIVATE, there | MAP_NORESERVE
        ways = {"access": 3, "trackfd": False}, {"access": 3}, {"flags": private}, {"access": 1}
        with self._lock:
            for way in ways if self._map is None else ():
                try:
                    from mmap import mmap
                    self._map = Memory(mmap(self._file.fileno(), self.nbytes, **way), True)
                    break
                except (ImportError, OSError, TypeError, ValueError):  # it cannot (ENODEV), not by
                    self._map = False  # flags; it has shrunk, or has no bytes
            return self._map

    def view(self, offset: int, nbytes: int) -> Any:
        mapped = self._map or self.zero_copy
        return mapped.view(offset, nbytes) if mapped else memoryview(self.read(offset, nbytes))

    def close(self) -> None:
        with self._lock:
            self._file, self._map = None, False
        self._finish()

    if not BOARD:  # no function of ours: Ctrl-C in it would be printed, or lost
        __del__: Any = property(attrgetter("_finish"))


def dangling_link(path: str) -> str:
    """Return what a symbolic link is whose target is gone; "" of other paths."""
    if not os.path.islink(path) or os.path.exists(path):
        return ""
    return f"a symbolic link to {plain(os.readlink(path))}, which is not there"


def open_path(path: str, mapped: bool) -> Any:
    try:
        about = os.stat(path)
    except OSError as error:
        link = "" if BOARD else dangling_link(path)
        raise OSError(error.errno, link, path) if link else error
    if about[0] >> 12 == 1:  # to open one may wait for ever
        raise ValueError(f"{plain(path)} is a pipe: load(stream.read())")
    where = path if BOARD else os.path.abspath(path)  # chdir() may come
    stamp = where, mapped and not BOARD, getattr(about, "st_mtime", 0)
    return Stream(open(path, "rb"), path, stamp)


class Lazy(ByteSource):
    """A file that is opened when its bytes are asked for, by any thread, if it has not changed."""

    shared: Any = None  # by path and stamp: one for all of a file, while one of them lives

    def __init__(self, path: str, mapped: bool, mtime: Any, nbytes: int) -> None:
        self.path, self.nbytes, self.stamp = path, nbytes, (path, mapped, mtime)
        self._lock = RLock()
        self._source: Any = None  # None: not opened yet; False: closed

    def open(self) -> Any:
        with self._lock:
            if self._source is False:
                raise ValueError(f"{plain(self.path)}: the File is closed")
            if self._source is None:
                source = open_path(self.path, self.stamp[1])
                if (source.nbytes, source.stamp) != (self.nbytes, self.stamp):
                    source.close()
                    raise ValueError(f"{plain(self.path)} has changed since it was pickled")
                self._source = source
            return self._source

    @property
    def zero_copy(self) -> bool:
        return bool(self.open().zero_copy)

    def view(self, offset: int, nbytes: int) -> Any:
        return (self._source or self.open()).view(offset, nbytes)

    def close(self) -> None:
        with self._lock:
            source, self._source = self._source, False
        if source:
            source.close()


def open_source(source: Any, mapped: bool) -> Any:
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        path = os.fsdecode(source) if hasattr(os, "fsdecode") else source
        return (open_folder if not BOARD and os.path.isdir(path) else open_path)(path, mapped)
    try:
        return Memory(source, True)
    except TypeError:
        missing = [word for word in ("read", "seek", "tell") if not hasattr(source, word)]
        if not missing and not hasattr(source, "encoding"):
            name = getattr(source, "name", getattr(source, "path", None))  # path: of fsspec's
            return Stream(source, name if isinstance(name, str) else None)
        if hasattr(source, "open") and "read" in missing and not hasattr(source, "__enter__"):
            with source.open("rb") as stream:  # zipfile.Path, importlib.resources
                memory = Memory(stream.read(), True)  # to seek in a deflated member takes long
            memory.path = getattr(source, "name", None)
            return memory
    raise TypeError('a source is a path, bytes or a seekable stream of bytes (open(path, "rb")), '
                    f"not {type(source).__name__}")


# -- [5a] checksums ------------------------------------------------------------------------------


def crc32(data: Any, crc: int = 0) -> int:
    """Return the CRC-32 of zip and zlib, going on from `crc`."""
    from binascii import crc32 as function
    return function(data, crc)


def _crc32c_table() -> "List[int]":
    """Return the register after each byte; that of a xor b is the xor of theirs."""
    rows, crc = [0] * 256, 1
    for i in (128, 64, 32, 16, 8, 4, 2, 1):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        for j in range(0, 256, 2 * i):
            rows[i + j] = crc ^ rows[j]
    return rows


_CRC32C = _crc32c_table()
_CRC32C_BLOCK = 256 if BOARD else (2 * 6777 - 484) * 8  # bytes: the first fold halves it

# Multiples of the polynomial 0x11EDC6F41 with few terms: x**a = x**b + ... + 1 (a test proves
# them). Squaring doubles every exponent, so each holds at the scales 1, 2, 4, ... too.
_CRC32C_FOLDS = tuple(
    [tuple([power << k for power in (6777, 484, 100, 0)]) for k in range(6, -1, -1)]
    + [tuple([power << k for power in (437, 177, 176, 171, 58, 0)]) for k in range(3, -1, -1)])


def _fold_crc32c(block: bytes, crc: int) -> bytes:
    """Return a short block whose CRC from 0 is that of this one from `crc`."""
    bits = 8 * len(block)
    x = int.from_bytes(block, "little") ^ crc
    for powers in _CRC32C_FOLDS:
        a, b = powers[:2]
        while bits > a + b:
            d = min(bits - a, a - b) & ~7
            low, x = x & (1 << d) - 1, x >> d
            bits -= d
            for power in powers[1:]:
                x ^= low << a - d - power
    return x.to_bytes(bits // 8, "little")


def crc32c(data: Any, crc: int = 0) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 B.4) of bytes, going on from `crc`.

    About 700 MB/s: a block is one integer, its low bits the high powers of x; shifts fold them
    onto lower powers, and the table takes the last bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc ^= 0xFFFFFFFF
    source = Memory(data)
    for start in range(0, source.nbytes, _CRC32C_BLOCK):
        block = source.read(start, _CRC32C_BLOCK)
        if len(block) > 64 and not BOARD:
            block, crc = _fold_crc32c(block, crc), 0
        for byte in block:
            crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


class Digest:
    """A running checksum, "crc32c" or "sha256"."""

    _sha: Any = None

    def __init__(self, algorithm: str) -> None:
        self._crc = 0
        if algorithm == "sha256":
            try:
                self._sha = __import__("hashlib").sha256()
            except (ImportError, AttributeError):
                raise Unsupported("sha256 needs the module hashlib, which is missing here")

    def update(self, data: Any) -> None:
        if self._sha:
            self._sha.update(data)
        else:
            self._crc = crc32c(data, self._crc)

    def text(self) -> str:
        """Return it as zTensor writes it: crc32c:0x1234ABCD or sha256:<64 hex digits>."""
        return "sha256:" + self._sha.digest().hex() if self._sha else f"crc32c:0x{self._crc:08X}"


XXH3_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff"
    "7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46"
    "a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581"
    "a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428"
    "afd7fbcabb4b407e")
XXH3_START = (0xC2B2AE3D, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
              0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, 0x9E3779B1)
MASK64 = (1 << 64) - 1
_FAST_XXH3: Facts = {}  # filled by the first call: an import that fails is slow


def fast_xxh3() -> Any:
    """Return the class xxh3_64 of the module xxhash, or None where that is missing."""
    if not _FAST_XXH3:
        try:
            _FAST_XXH3["class"] = __import__("xxhash").xxh3_64
        except (ImportError, AttributeError):  # the latter before xxhash 2.0
            _FAST_XXH3["class"] = None
    return _FAST_XXH3["class"]


MAX_SLOW_HASH = 1 << 26  # bytes of XXH3 computed without xxhash or deep=True


def xxh3_64(blocks: Any) -> int:
    """Return the XXH3-64 (seed 0, Cyan4973/xxHash) of bytes that come in blocks.

    30 MB/s, or 300 where numpy was imported; with the module xxhash as fast as memory.
    """
    make = fast_xxh3()
    if make is not None:
        state = make()
        for block in blocks:
            state.update(block)
        return int(state.intdigest())
    acc: Any = list(XXH3_START)
    n, rest, last = 0, b"", b""
    for block in blocks:
        for piece in pieces(memoryview(block), PART):
            n, data = n + len(piece), rest + bytes(piece)
            whole = (len(data) - 1) & -1024  # the end is hashed in another way
            acc, last = _xxh3_blocks(acc, data[:whole]), data[:whole] or last
            rest = data[whole:]
    if n <= 240:
        return _xxh3_short(rest)
    _xxh3_add(acc, rest[:(len(rest) - 1) & -64])
    _xxh3_add(acc, (last + rest)[-64:], 121)  # the last stripe
    acc = [lane & MASK64 ^ key for lane, key in zip(acc, unpack_from("<8Q", XXH3_SECRET, 11))]
    return _xxh3_mix(n * XXH3_START[1] + sum([_fold128(acc[i], acc[i + 1]) for i in (0, 2, 4, 6)]))


def _xxh3_blocks(acc: Any, data: bytes) -> Any:
    """Return the eight lanes after blocks of 16 stripes; each block ends with a scramble."""
    numpy = sys.modules.get("numpy")
    sums = _xxh3_sums(numpy, data) if hasattr(numpy, "frombuffer") else []
    ends = unpack_from("<8Q", XXH3_SECRET, 128)
    for i in range(len(data) >> 10):
        if sums:
            acc = [lane + number for lane, number in zip(acc, sums[i])]
        else:
            _xxh3_add(acc, data[i << 10:i + 1 << 10])
        acc = [(lane & MASK64 ^ (lane & MASK64) >> 47 ^ end) * 0x9E3779B1
               for lane, end in zip(acc, ends)]
    return acc


def _xxh3_add(acc: Any, data: bytes, secret: int = 0) -> None:
    """Add stripes of 64 bytes to the eight lanes; each goes 8 bytes on in the secret."""
    for at in range(0, len(data), 64):
        keys = unpack_from("<8Q", XXH3_SECRET, secret + at // 8)
        for j, word in enumerate(unpack_from("<8Q", data, at)):
            mixed = word ^ keys[j]
            acc[j ^ 1] += word
            acc[j] += (mixed & 0xFFFFFFFF) * (mixed >> 32)


def _xxh3_sums(numpy: Any, data: bytes) -> Any:
    """Return of each block what its stripes add to the lanes, 8 times as fast."""
    words = numpy.frombuffer(data, "<u8").reshape(-1, 16, 8)
    mixed = words ^ numpy.array([unpack_from("<8Q", XXH3_SECRET, 8 * i) for i in range(16)], "<u8")
    sums = ((mixed & 0xFFFFFFFF) * (mixed >> 32)).sum(1)
    return (sums + words.sum(1)[:, [1, 0, 3, 2, 5, 4, 7, 6]]).tolist()


def _fold128(a: int, b: int) -> int:
    return a * b & MASK64 ^ a * b >> 64


def _xxh3_mix(h: int, shift: int = 37, factor: int = 0x165667919E3779F9, last: int = 32) -> int:
    h = (h & MASK64 ^ (h & MASK64) >> shift) * factor & MASK64
    return h ^ h >> last


def _xxh3_short(data: bytes) -> int:
    """Return the XXH3-64 of at most 240 bytes."""
    n = len(data)

    def word(i: int, size: int = 8, of: bytes = data) -> int:
        return int.from_bytes(of[i:i + size], "little")

    def key(i: int, size: int = 8) -> int:
        return word(i, size, XXH3_SECRET)

    def pair(i: int, at: int) -> int:
        return _fold128(word(i) ^ key(at), word(i + 8) ^ key(at + 8))
    if n < 4:
        h = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8 if n else 0
        h ^= key(0, 4) ^ key(4, 4) if n else key(56) ^ key(64)
        h = _xxh3_mix(h, 33, XXH3_START[2], 29) * XXH3_START[3] & MASK64
        return h ^ h >> 32
    if n < 9:
        h = (word(n - 4) + (word(0, 4) << 32)) ^ key(8) ^ key(16)
        h ^= (h << 49 | h >> 15) & MASK64 ^ (h << 24 | h >> 40) & MASK64
        h = h * 0x9FB21C651E98DF25 & MASK64
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & MASK64
        return h ^ h >> 28
    if n < 17:
        low, high = word(0) ^ key(24) ^ key(32), word(n - 8) ^ key(40) ^ key(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _xxh3_mix(n + swapped + high + _fold128(low, high))
    h = n * XXH3_START[1]
    if n < 129:
        return _xxh3_mix(h + sum([pair(16 * i, 32 * i) + pair(n - 16 * i - 16, 32 * i + 16)
                                  for i in range((n + 31) // 32)]))
    h = _xxh3_mix(h + sum([pair(i, i) for i in range(0, 128, 16)]))
    h += sum([pair(i, i - 125) for i in range(128, n - 15, 16)])
    return _xxh3_mix(h + pair(n - 16, 119))


# -- [5b] CBOR -----------------------------------------------------------------------------------
#
# Head byte = major type (3 bits) and argument (5 bits): below 24 itself; 24 to 27: it follows in
# 1, 2, 4 or 8 bytes; 31: indefinite length, closed by ff. All is big-endian.


class Simple(tuple):  # type: ignore[type-arg]
    """A CBOR simple value without a meaning here: simple(99)."""

    def __repr__(self) -> str:
        return f"simple({self[0]})"


CBOR_SIMPLE: Any = {20: False, 21: True, 22: None, 23: None}  # 23 is "undefined"
MAX_HARD_KEYS = 1000  # map keys that are not text: chosen numbers make a dict slow


class Cbor:
    """Reads an item of CBOR (RFC 8949): Cbor(data, base).read() -> (value, where it ends).

    Tags are dropped; 2 and 3 make an int of bytes. Errors count from `base`.
    """

    WRONG_KEY: "Type[FormatError]" = FormatError  # of a map with an array or a map as a key
    BIGNUMS: Any = (2, 3)  # tags of bytes that are integers from 0 on, or below

    def __init__(self, data: bytes, base: int = 0) -> None:
        self.data, self.base = data, base
        self.texts: Any = {}  # they repeat: field names, dtypes
        self.items, self.hard_keys, self.known = 0, 0, dict(CBOR_SIMPLE)  # items: arrays, maps

    def read(self) -> Any:
        deep = FormatError("CBOR: nested deeper than this Python can read", self.base)
        try:
            return self.item(0, 0)
        except RuntimeError:  # RecursionError
            raise deep

    def error(self, what: str, at: int, error: Any = FormatError) -> Any:
        return error("CBOR: " + what, self.base + at)

    def head(self, at: int) -> "Tuple[int, int, int]":
        """Return (major type, argument or -1 for an indefinite length, where that ends)."""
        if at >= len(self.data):
            raise self.error("the data end inside an item", at)
        head, end = self.data[at], at + 1
        major, code = head >> 5, head & 31
        if code < 24:
            return major, code, end
        if code == 31 and major not in (0, 1, 6):
            return major, -1, end
        if code > 27:
            raise self.error(f"head {head:02x}: this type has no indefinite length" if code == 31
                             else f"reserved head {head:02x}", at)
        end += 1 << code - 24
        if end > len(self.data):
            raise self.error("the data end inside a head", at)
        return major, int.from_bytes(self.data[at + 1:end], "big"), end

    def item(self, at: int, depth: int, is_key: bool = False) -> "Tuple[Any, int]":
        """Return the value of an item, with `depth` arrays, maps and tags around it; its end."""
        start = at
        major, size, at = self.head(at)
        if major < 2:
            return -1 - size if major else size, at
        if major < 4:
            data, at = self.chunks(start, at) if size < 0 else self.string(start, at, size)
            return data if major == 2 else self.texts.get(data) or self.text(data, start), at
        if major == 7:
            return self.simple(start, size, at)
        if is_key and major != 6:
            raise self.error("a map key is an array or a map", start, self.WRONG_KEY)
        if depth >= MAX_DEPTH:
            raise self.error(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}", start)
        if major == 6:
            value, end = self.item(at, depth + 1, is_key)
            if size in self.BIGNUMS and type(value) is bytes and self.data[at] >> 5 == 2:
                value = int.from_bytes(value, "big")
                value = value if size == 2 else -1 - value
            return value, end
        if size > (len(self.data) - at) >> (major - 4):  # a pair of a map has 2 bytes at least
            what = f"{'map' if major == 5 else 'array'} of {size} items"
            raise self.error(f"{what}, {len(self.data) - at} bytes left", start)
        self.items += 1
        if self.items > MAX_ITEMS:
            raise self.error(f"more than MAX_ITEMS = {MAX_ITEMS} arrays and maps", start,
                             Unsupported)
        return (self.array if major == 4 else self.map)(size, at, depth + 1)

    def ends(self, size: int, count: int, at: int) -> bool:
        """Return whether an array or a map of so many items is complete."""
        return count == size or size < 0 and self.data[at:at + 1] == b"\xff"

    def array(self, size: int, at: int, depth: int) -> Any:
        out: Any = []
        while not self.ends(size, len(out), at):
            value, at = self.item(at, depth)
            out.append(value)
        return out, at + (size < 0)  # and the break

    def map(self, size: int, at: int, depth: int) -> Any:
        out: Facts = Map()
        while not self.ends(size, len(out), at):
            at = self.pair(out, at, depth)
        return out, at + (size < 0)

    def pair(self, out: Any, at: int, depth: int) -> int:
        """Add the next key and its value to a map; return where they end."""
        start = at
        key, at = self.key(at, depth)
        if type(key) is not str or key in out:
            check_key(self, out, key, start)
        out[key], at = self.item(at, depth)
        return at

    def key(self, at: int, depth: int) -> Any:
        return self.item(at, depth, True)

    def string(self, start: int, at: int, size: int) -> "Tuple[bytes, int]":
        left = len(self.data) - at
        if size > left:
            raise self.error(f"a string of {size} bytes, {left} left", start)
        return self.data[at:at + size], at + size

    def text(self, data: bytes, start: int) -> str:
        try:
            text = data.decode()
        except UnicodeError:
            raise self.error("text is not UTF-8", start)
        if len(data) < 64 and len(self.texts) < 1 << 12:
            self.texts[data] = text
        return text

    def chunks(self, whole: int, at: int) -> "Tuple[bytes, int]":
        """Return the bytes of a string of indefinite length, which begins at `whole`."""
        out, kind = [], self.data[whole] >> 5
        while self.data[at:at + 1] != b"\xff":
            if at >= len(self.data):
                raise self.error("the data end inside a chunked string", at)
            start, head = at, self.head(at) if self.data[at] >> 5 == kind else (kind, -1, at)
            if head[1] < 0:
                raise self.error("a chunk of another type in a chunked string", start)
            data, at = self.string(start, head[2], head[1])
            if kind == 3:
                self.text(data, start)  # each is UTF-8 by itself
            out.append(data)
        return b"".join(out), at + 1

    def simple(self, start: int, size: int, at: int) -> Any:
        code = self.data[start] & 31
        if code == 31:
            raise self.error("a break outside an indefinite-length item", start)
        if code > 24:  # half, single or double precision
            return unpack_from(">" + "efd"[code - 25], self.data, start + 1)[0], at
        if code == 24 and size < 32:
            raise self.error(f"simple value {size} in two bytes", start)
        return self.known.setdefault(size, Simple((size,))), at  # many share one


class PlainCbor(Cbor):
    """CBOR as zTensor has it: no big integers, no simple values without a meaning."""

    WRONG_KEY, BIGNUMS = Unsupported, ()

    def simple(self, start: int, size: int, at: int) -> Any:
        value, at = super().simple(start, size, at)
        if isinstance(value, Simple):
            raise self.error(f"simple value {size}", start)
        return value, at


def check_key(reader: Any, box: Any, key: Any, start: "Optional[int]" = None) -> None:
    """Raise for a key that is in the map already, or is one of too many `reader.hard_keys`.

    Numbers can be chosen so that all meet in one chain of places of a dict: a walk for each.
    """
    if type(key) is not str:
        reader.hard_keys += 1
        if reader.hard_keys > MAX_HARD_KEYS:
            what = f"more than MAX_HARD_KEYS = {MAX_HARD_KEYS} map keys that are not text"
            raise reader.error(what, start, error=Unsupported)
    if key in box or (key != key and [k for k in box if k != k]):
        raise reader.error(f"key {show(key)} twice", start)


def cbor_loads(data: Any) -> Any:
    """Return the value of one CBOR item; bytes behind it are a FormatError.

    Tags are dropped (2 and 3 make big integers); undefined is None. A map key twice is an error.

    >>> cbor_loads(bytes.fromhex("a26161016162820203"))
    {'a': 1, 'b': [2, 3]}
    """
    data = bytes(memoryview(data))
    value, end = Cbor(data).read()
    if end != len(data):
        raise FormatError(f"CBOR: {len(data) - end} bytes behind the item", end)
    return value


def cbor_head(major: int, count: int) -> bytes:
    """Return the shortest head: 17 -> 17, 18 18, 19 0100 ..."""
    if count < 24:
        return pack(">B", major << 5 | count)
    for i, code in enumerate((">BB", ">BH", ">BI", ">BQ")):
        if not count >> (8 << i):
            return pack(code, major << 5 | 24 + i, count)
    raise ValueError(f"{show(count)} does not fit 64 bits")


def cbor_float(value: float) -> bytes:
    """Return a float in the shortest of the three precisions that holds it."""
    if value != value:
        return b"\xf9\x7e\x00"
    for head, code in ((b"\xf9", "e"), (b"\xfa", "f")):
        try:
            data: bytes = pack(">" + code, value)
        except OverflowError:
            continue
        if unpack_from(">" + code, data)[0] == value:
            return head + data
    return b"\xfb" + pack(">d", value)


def cbor_dumps(value: Any, *, indefinite: bool = False, sort: Any = False,
               depth: int = 0) -> bytes:
    """Return a value as one CBOR item: shortest heads and floats, definite strings and arrays.

    Maps keep the dict's order, or with `sort` go by encoded length, then bytes, of the keys (as in
    serde_cbor), with sort="bytes" by bytes (RFC 8949, 4.2.1); `indefinite` maps are bf ... ff;
    `depth` containers are around it already.
    Integers over 64 bits are bignums. ValueError or TypeError for what CBOR cannot hold.

    >>> cbor_dumps({"shape": [2, 300], "x": 1.5}).hex()
    'a2657368617065820219012c6178f93e00'
    """
    if value is None or value is True or value is False:
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value]
    if isinstance(value, int):
        major, value = (0, value) if value >= 0 else (1, -1 - value)
        if not value >> 64:
            return cbor_head(major, value)
        data = value.to_bytes((len("%x" % value) + 1) // 2, "big")
        return cbor_head(6, 2 + major) + cbor_dumps(data)  # a bignum: tag 2 or 3
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        data = encode_text(value) if isinstance(value, str) else bytes(value)
        return cbor_head(3 if isinstance(value, str) else 2, len(data)) + data
    if isinstance(value, float):
        return cbor_float(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}")
    if isinstance(value, Simple):
        return cbor_head(7, value[0])

    def pack_item(item: Any) -> bytes:
        return cbor_dumps(item, indefinite=indefinite, sort=sort, depth=depth + 1)
    if isinstance(value, (list, tuple)):
        items = bytearray(cbor_head(4, len(value)))
        for item in value:
            items += pack_item(item)
        return bytes(items)
    return cbor_map(value, pack_item, indefinite, sort)


def cbor_map(value: Any, pack_item: Any, indefinite: bool, sort: Any) -> bytes:
    """Return a map as CBOR; pack_item() packs its keys and values."""
    if not hasattr(value, "items"):
        raise TypeError(f"CBOR cannot hold {type(value).__name__}")
    if [key for key in value if isinstance(key, (list, tuple, dict)) and type(key) is not Simple]:
        raise TypeError("a CBOR map key cannot be an array or a map")
    pairs = [(pack_item(key), pack_item(item)) for key, item in value.items()]
    if sort:
        pairs.sort(key=lambda pair: (sort != "bytes" and len(pair[0]), pair[0]))
    data = b"".join([key + item for key, item in pairs])
    return b"\xbf" + data + b"\xff" if indefinite else cbor_head(5, len(pairs)) + data


# -- [5c] MessagePack ----------------------------------------------------------------------------
#
# The first byte: 00-7f int, 80-8f map, 90-9f array, a0-bf str, e0-ff int -32..-1, with the value
# or length in it; c0-df by this table. Numbers are big-endian.

_MSGPACK = tuple([(row.split(":")[0], ">" + row.split(":")[1], WIDTH[row.split(":")[1]])
                  for row in (  # kind:struct code of value or length
    "nil: c1: bool: bool: bin:B bin:H bin:I ext:B ext:H ext:I float:f float:d "
    "int:B int:H int:I int:Q int:b int:h int:i int:q ext: ext: ext: ext: ext: "
    "str:B str:H str:I array:H array:I map:H map:I").split()])  # c7-c9, d4-d8: ext
_MSGPACK_FIXED = {0xC2: False, 0xC3: True, 0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
TEXT_ERRORS = "strict" if BOARD else "surrogateescape"  # of str that is not UTF-8 (PEP 383)
MAX_MSGPACK_DEPTH = 64  # arrays and maps around an item


def msgpack_head(data: Any, pos: int, end: int) -> "Tuple[str, Any, int]":
    """Return (kind, value or length, position behind the head) of what begins at data[pos]."""
    if pos >= end:
        raise FormatError("the data end where a value should begin", pos, check="bounds")
    first = data[pos]
    if first < 0x80 or first >= 0xE0:
        return "int", first if first < 0x80 else first - 256, pos + 1
    if first < 0xC0:
        if first >= 0xA0:
            return "str", first & 31, pos + 1
        return "array" if first >= 0x90 else "map", first & 15, pos + 1
    kind, code, width = _MSGPACK[first - 0xC0]
    if kind == "c1":
        raise FormatError("byte c1 is never used in MessagePack", pos)
    if not width:
        return kind, _MSGPACK_FIXED.get(first), pos + 1
    if pos + width >= end:
        raise FormatError(f"{kind} needs {width} bytes, {end - pos - 1} left", pos, check="bounds")
    value, = unpack_from(code, data, pos + 1)
    return kind, value, pos + 1 + width


def msgpack_text(data: bytes) -> str:
    """Return str bytes as text; other bytes than UTF-8 survive as surrogates."""
    try:
        return data.decode("utf-8", TEXT_ERRORS)
    except UnicodeError:  # on a board
        raise Unsupported("a name that is not UTF-8 needs the surrogateescape handler")


class Msgpack:
    """Reads a value of any kind at a Cursor; msgpack_loads() says what the kinds become."""

    limit = "MAX_MSGPACK_DEPTH"
    WRONG_KEY: "Type[FormatError]" = Unsupported  # of an array or a map as a key
    items = hard_keys = 0  # arrays and maps; see check_key()

    def __init__(self, cursor: Any) -> None:
        self.cursor, self.deepest = cursor, globals()[self.limit]
        self.start: int = cursor.pos  # of the value that is read

    def read(self) -> Any:
        deep = FormatError("MessagePack: nested deeper than this Python can read", self.start)
        try:
            return self.item(0, None)
        except RuntimeError:  # RecursionError
            raise deep

    def error(self, what: str, start: "Optional[int]" = None,
              error: Any = FormatError, check: str = "index") -> FormatError:
        what += " (cut short?)" if check == "bounds" else ""
        return error("MessagePack: " + what, self.start if start is None else start, None, None,
                     self.cursor.source.path)

    def head(self) -> Any:
        """Return (kind, value or length) of the next head, and move behind it."""
        self.start = self.cursor.pos
        try:
            kind, value = self.cursor.next_head()
            self.cursor.check_room(kind, value)
        except FormatError as error:
            raise self.error(error.what, check=error.check)
        return kind, value

    def item(self, depth: int, key: Any) -> Any:
        """Return the next value, in so many containers; `key`: its key in the innermost one."""
        kind, value = self.head()
        return self.value(kind, value, depth, key)

    def value(self, kind: str, value: Any, depth: int, key: Any) -> Any:
        """Return the value whose head was read."""
        if kind in ("str", "bin", "ext"):
            return self.body(kind, value)
        if kind not in ("array", "map"):
            return value
        if depth >= self.deepest:
            raise self.error(f"nested deeper than {self.limit} = {self.deepest}")
        return self.container(kind, value, depth + 1, key)

    def container(self, kind: str, count: int, depth: int, key: Any) -> Any:
        """Return the items of an array or a map."""
        self.items += 1
        if self.items > MAX_ITEMS:
            raise self.error(f"more than MAX_ITEMS = {MAX_ITEMS} arrays and maps",
                             error=Unsupported)
        items: "List[Any]" = []
        if kind == "array":
            for i in range(count):
                items.append(self.item(depth, i))
            return items
        found: Facts = Map()
        for _ in range(count):
            key = self.key(found, depth)
            found[key] = self.item(depth, key)
        return found

    def key(self, out: Any, depth: int) -> Any:
        """Return the next key of a map, which must not be in it yet."""
        start = self.cursor.pos
        kind, key = self.head()
        if kind in ("array", "map"):
            raise self.error("a map key is an array or a map", start, self.WRONG_KEY)
        key = self.value(kind, key, depth, None)
        key = bytes(key) if type(key) is memoryview else key
        check_key(self, out, key, start)
        return key

    def body(self, kind: str, nbytes: int) -> Any:
        """Return the value of a str, bin or ext whose head was read."""
        cursor = self.cursor
        if kind == "str":
            return msgpack_text(cursor.next_bytes(nbytes, ""))
        body = cursor.source.view(cursor.pos, nbytes + (kind == "ext"))
        cursor.pos += len(body)
        if kind == "bin":
            return body
        body = bytes(body)
        code, = unpack_from(">b", body, 0)
        if code != -1 or nbytes not in (4, 8, 12):
            return code, body[1:]
        if nbytes == 12:
            nanoseconds, seconds = unpack_from(">Iq", body, 1)
        else:
            both = int.from_bytes(body[1:], "big")
            nanoseconds, seconds = both >> 34, both & (1 << 34) - 1
        if nanoseconds > 999999999:
            raise self.error(f"timestamp with {nanoseconds} nanoseconds")
        return seconds, nanoseconds


def msgpack_size(kind: str, count: int) -> bytes:
    """Return the shortest head of that count, or an int."""
    first, fits = {"map": (0x80, 16), "array": (0x90, 16), "str": (0xA0, 32),
                   "int": (0, 128)}.get(kind, (0, 0))
    if 0 <= count < fits:
        return pack(">B", first | count)
    if -32 <= count < 0:
        return pack(">b", count)
    for i, (name, code, width) in enumerate(_MSGPACK):
        signed = code.islower()
        bits = 8 * width - signed
        if name == kind and (-(1 << bits) if signed else 0) <= count < 1 << bits:
            return pack(">B" + code[1:], 0xC0 + i, count)
    raise ValueError("%s does not fit %d bits" % (show(count), 64 if kind == "int" else 32))


def msgpack_dumps(value: Any, *, typed: bool = False, depth: int = 0) -> bytes:
    """Return a value as MessagePack in the shortest forms; `typed`: int is uint32, float float32.

    `depth` containers are around it already; ValueError for what does not fit.

    >>> msgpack_dumps([1, "a"]).hex(), msgpack_dumps(1, typed=True).hex()
    ('9201a161', 'ce00000001')
    """
    if value is None or value is True or value is False:
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if not typed:
            return msgpack_size("int", value)
        if not 0 <= value < 1 << 32:
            raise ValueError(f"{show(value)} does not fit uint32")
        return pack(">BI", 0xCE, value)
    if isinstance(value, float):
        if not typed:
            return pack(">Bd", 0xCB, value)
        if to_inf(value, FLOAT32_LIMIT) != value and value == value:
            raise ValueError(f"{value!r} does not fit float32")
        return b"\xca" + pack(">f", value)
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        data = encode_text(value, TEXT_ERRORS) if isinstance(value, str) else bytes(value)
        return msgpack_size("str" if isinstance(value, str) else "bin", len(data)) + data
    if depth >= MAX_MSGPACK_DEPTH:
        raise ValueError(f"nested deeper than MAX_MSGPACK_DEPTH = {MAX_MSGPACK_DEPTH}")
    kind = "array" if isinstance(value, (list, tuple)) else "map"
    if kind == "map" and not hasattr(value, "items"):
        raise ValueError(f"MessagePack cannot hold {type(value).__name__}")
    items = value if kind == "array" else [
        item for pair in value.items() for item in pair]  # pyright: ignore
    return msgpack_size(kind, len(value)) + b"".join(
        [msgpack_dumps(item, typed=typed, depth=depth + 1) for item in items])


# -- [5d] FlatBuffers ----------------------------------------------------------------------------
#
# Positions count from the first byte. A table begins with an i32 s; at table - s lies its vtable:
# u16 lengths of the vtable and of the table, then for each slot a u16, where it is in the table
# (0: absent). Strings, vectors and tables are u32 offsets, forward from their own position.
# Rows (name, type, default, doc), one per slot, say what a table holds: see flat_loads().


class Flat:
    """Reads the tables of a FlatBuffer: Flat(data, base).table(rows, place) -> a dict.

    Types are a struct code, "string", rows (a table), [type] (a vector), "place" (where an offset
    leads), or a function of the fields before, which returns one of these. Errors count from
    `base`.
    """

    where: Any = ()  # path of the table that is read

    def __init__(self, data: bytes, base: int = 0) -> None:
        self.data, self.base, self.end = data, base, len(data)
        self.vtables: Any = {}  # by position: how many slots
        self.left = 500 + 2 * self.end  # bytes to be read: objects may be shared

    def error(self, what: str, at: int, *path: Any, error: Any = FormatError) -> FormatError:
        """Return an error of a field of the table, or of the table itself."""
        keys = self.where + path
        name = path_of_keys(keys) or None
        made: FormatError = error("FlatBuffers: " + what, self.base + at, name)
        made.steps = keys
        return made

    def spend(self, nbytes: int, at: int, name: Any) -> None:
        """Count the bytes that are read: objects may be shared, and be many times the data."""
        self.left -= nbytes
        if self.left < 0:
            what = f"objects overlap: more than twice the {self.end} bytes are read"
            raise self.error(what, at, name, error=Unsupported)

    def note(self, at: int, nbytes: int, name: Any, value: Any, doc: str, depth: int = 1,
             kind: str = "structure", target: Any = None) -> None:
        """Note a field of the table, `depth` below it: TracedFlat does."""

    def follow(self, row: Any, at: int) -> int:
        """Return where the offset leads that is stored at a position."""
        if at + 4 > self.end:
            raise self.error("the data end inside an offset", at, row[0])
        step: int = unpack_from("<I", self.data, at)[0]
        if step == 0 or at + step + 4 > self.end:
            raise self.error(f"offset {step} leads out of the data", at, row[0])
        self.note(at, 4, row[0], step, row[3], int(at > 0), target=at + step)
        return at + step

    def slots(self, table: int, count: int) -> Any:
        """Return the distances from a table to its first `count` fields; 0: absent."""
        at = table - unpack_from("<i", self.data, table)[0]
        if at not in self.vtables:
            if at < 0 or at + 4 > self.end:
                raise self.error("vtable out of bounds", table, "vtable")
            self.vtables[at] = self.vtable(at)
        self.note(table, 4, "table", table - at, "vtable", 0, target=at)
        size = min(self.vtables[at], count)
        return unpack_from(f"<{size}H", self.data, at + 4) + (0,) * (count - size)

    def vtable(self, at: int) -> int:
        """Return how many slots a vtable has."""
        nbytes: int = unpack_from("<H", self.data, at)[0]
        if nbytes < 4 or nbytes & 1 or at + nbytes > self.end:
            raise self.error(f"vtable of {nbytes} bytes", at, "vtable")
        self.spend(nbytes, at, "vtable")
        size, *slots = unpack_from(f"<{nbytes // 2 - 1}H", self.data, at + 2)
        self.note(at, nbytes, "vtable", slots, f"{nbytes} bytes, table {size}", 0)
        return len(slots)

    def table(self, rows: Any, table: int) -> Any:
        """Return the fields of a table by name; absent ones have their defaults."""
        if len(self.where) > MAX_TABLES:
            raise self.error(f"more than MAX_TABLES = {MAX_TABLES} tables within tables", table,
                             error=Unsupported)
        slots = self.slots(table, len(rows))
        self.spend(4 + 4 * len(rows), table, "table")
        found, offsets = Map(), []
        for row, step in zip(rows, slots):
            name, kind, default, doc = row
            if not step or kind is None:
                found[name] = list(default) if isinstance(default, list) else default
                self.note(table, 0, name, None, doc, kind="absent")
            elif table + step + flat_size(kind) > self.end:
                raise self.error("field out of bounds", table, name)
            elif is_inline(kind):
                found[name], = unpack_from("<" + kind, self.data, table + step)
                self.note(table + step, flat_size(kind), name, found[name], doc)
            else:
                found[name] = self.follow(row, table + step)  # where; what is there may depend
                offsets.append(row)  # on a field of a later row
        missing = [name for name, value in found.items() if value is MISSING]
        if missing:
            raise self.error(f"the required field {missing[0]} is missing", table, "table")
        for name, kind, default, doc in offsets:
            kind = kind(found) if callable(kind) else kind
            found[name] = self.target((name, kind, default, doc), found[name])
        return found

    def target(self, row: Any, at: int) -> Any:
        """Return what an offset leads to."""
        kind = row[1]
        if kind in (None, "place"):
            return at if kind else None
        if kind == "string":
            return self.string(row, at)
        if isinstance(kind, list):
            return self.vector(row, at)
        outer = self.where
        self.where += row[0],
        found = self.table(kind, at)
        self.where = outer
        return found

    def string(self, row: Any, at: int) -> str:
        """Return the text of the string at a position: u32 length, UTF-8, NUL."""
        nbytes, = unpack_from("<I", self.data, at)
        stop = at + 4 + nbytes
        if stop >= self.end:
            what = f"string of {nbytes} bytes, {self.end - at - 4} left"
            raise self.error(what, at, row[0])
        if self.data[stop]:
            raise self.error("no NUL behind the string", at, row[0])
        self.spend(5 + nbytes, at, row[0])
        text = decode_text(self.data[at + 4:stop])
        if text is None:
            raise self.error("text is not UTF-8", at, row[0])
        self.note(at, nbytes + 5, row[0], text, row[3])
        return text

    def vector(self, row: Any, at: int) -> "List[Any]":
        """Return the elements of the vector at a position: u32 count, numbers or offsets."""
        kinds = row[1] or [None]
        size: int = unpack_from("<I", self.data, at)[0]
        left = self.end - at - 4
        if size > left // flat_size(kinds[0]):
            raise self.error(f"vector of {size} elements, {left} bytes left", at, row[0])
        nbytes = 4 + size * flat_size(kinds[0])
        self.spend(nbytes, at, row[0])
        if is_inline(kinds[0]):
            numbers = list(unpack_from(f"<{size}{kinds[0]}", self.data, at + 4))
            self.note(at, nbytes, row[0], numbers, row[3])
            return numbers
        self.note(at, 4, row[0], size, "number of elements")
        return self.elements(row, kinds, at + 4, size)

    def elements(self, row: Any, kinds: Any, at: int, size: int) -> "List[Any]":
        """Return what offsets lead to; beyond `kinds`, the last type is theirs."""
        out, outer = [], self.where
        self.where += row[0],
        for i in range(size):
            kind = kinds[min(i, len(kinds) - 1)]
            place = self.follow((i, kind, None, "element"), at + 4 * i)
            out.append(self.target((i, kind, None, row[3]), place))
        self.where = outer
        return out


MAX_TABLES = 16 if BOARD else 64  # tables within tables


def is_inline(type: Any) -> bool:
    """Return whether a value lies in its table or vector: a number, not what an offset leads to."""
    return isinstance(type, str) and type not in ("string", "place")


def flat_size(type: Any) -> int:
    """Return how many bytes a value of this type, or its offset, takes in a table or vector."""
    nbytes = WIDTH.get(type, 0) if is_inline(type) else 4
    if not nbytes:
        raise ValueError(f"no value has the type {show(type)}")
    return nbytes


def flat_loads(data: Any, rows: Any) -> Any:
    """Return the root table of a FlatBuffer as a dict, by rows (name, type, default, doc).

    There is a row for each slot. Types: a struct code ("I", "d", "?"); "string"; a tuple of rows (a
    table); [type] (a vector); None: not read. A function is given the fields before and returns the
    type: of a union, of a table within itself; of a vector of unions it returns a list of all their
    types.

    >>> data = bytes.fromhex("0c00000006000800040000000800000002000000")
    >>> flat_loads(data, (("x", "h", 0, "a number"), ("y", "string", None, "")))
    {'x': 2, 'y': None}
    """
    flat = Flat(bytes(data))
    return flat.table(rows, flat.follow(("root", rows, None, "root table"), 0))


class FlatBuilder:
    """Builds a FlatBuffer from its end to its front, byte for byte as the Rust builder.

    string(), scalars(), offsets() and table() return a place, the distance from the buffer's end
    to the object. Children come before the tables that point to them. Equal vtables are one.

    >>> rows = ("name", "string", None, "a text"), ("n", "h", 0, "a number")
    >>> builder = FlatBuilder()
    >>> name = builder.string("w")
    >>> flat_loads(builder.finish(builder.table(rows, (name, 7))), rows)
    {'name': 'w', 'n': 7}
    """

    def __init__(self) -> None:
        self._parts: "List[bytes]" = []  # last part first
        self._used, self._align_max = 0, 4
        self._vtables, self._layouts, self._vectors = {}, {}, {}

    def _put(self, data: bytes, size: int = 1) -> int:
        """Add data, zeros behind them so that `size` divides the place 4 bytes into them."""
        zeros = -(self._used + len(data) - 4) % size
        self._parts.append(data + bytes(zeros) if zeros else data)
        self._used += len(data) + zeros
        return self._used

    def string(self, text: Any) -> int:
        """Add a text, or its UTF-8 bytes."""
        data = text if isinstance(text, bytes) else encode_text(text)
        return self._put(b"".join((pack("<I", len(data)), data, b"\0")), 4)

    def scalars(self, code: str, values: Any) -> int:
        """Add a vector of numbers, aligned to the element size even if empty."""
        key = values if type(values) is tuple and code == "I" else None
        if key not in self._vectors or key is None:  # shapes come again
            size = max(4, struct.calcsize("<" + code))
            self._align_max = max(size, self._align_max)
            keep(self._vectors, key, (pack(f"<I{len(values)}{code}", len(values), *values), size))
        return self._put(*self._vectors[key])

    def offsets(self, places: "List[int]") -> int:
        """Add a vector of strings or tables by their places."""
        top = round_up(self._used, 4) + 4 * len(places)
        return self.scalars("I", [top - 4 * i - place for i, place in enumerate(places)])

    def table(self, rows: Any, values: Any) -> int:
        """Add a table by its rows and values, or places of what offsets lead to.

        None or a default is not stored. Generated code stores long fields first, later slots first.
        """
        stored = tuple([value is not None and value != row[2]
                        for row, value in zip(rows, values)])
        key = id(rows), self._used & 7, stored
        if key not in self._layouts:
            self._layouts[key] = self._lay_out(rows, self._used & 7, stored)
        text, nbytes, slots, offsets, vtable, _ = self._layouts[key]
        place: int = self._used + nbytes
        found = [values[slot] for slot in slots]
        for i, distance in offsets:
            if not 0 < found[i] <= self._used:
                raise ValueError(f"slot {slots[i]}: there is no place {show(found[i])} yet")
            found[i] = place - distance - found[i]
        self._put(pack(text, self._vtables.get(vtable, place + len(vtable)) - place, *found))
        if vtable not in self._vtables:
            self._vtables[vtable] = self._put(vtable)
        return place

    def _lay_out(self, rows: Any, at: int, stored: Any) -> Any:
        """Return (struct format, bytes, slots, (index, distance) of offsets, vtable, rows)."""
        slots = sorted([slot for slot, given in enumerate(stored) if given],
                       key=lambda slot: (flat_size(rows[slot][1]), slot))
        start, text = at, ""  # `at`: bytes behind it, modulo 8
        places: "Dict[int, int]" = {}  # of the slots
        for slot in reversed(slots):
            type, nbytes = rows[slot][1], flat_size(rows[slot][1])
            code = type if is_inline(type) else "I"
            places[slot] = round_up(at + nbytes, nbytes)
            text = f"{code}{places[slot] - nbytes - at}x{text}"  # and zeros behind the field
            at, self._align_max = places[slot], max(nbytes, self._align_max)
        text, at = f"<i{-at % 4}x{text}", round_up(at + 4, 4)
        offsets = [(i, at - places[slot]) for i, slot in enumerate(slots)
                   if not is_inline(rows[slot][1])]
        vtable = [at - start] + [at - places.get(i, at) for i in range(max(places, default=-1) + 1)]
        count = len(vtable) + 1
        return text, at - start, slots, offsets, pack(f"<{count}H", 2 * count, *vtable), rows

    def finish(self, root: int) -> bytes:
        """Return the buffer whose root table is at this place."""
        zeros = -(self._used + 4) % self._align_max
        self._put(pack("<I", self._used + zeros + 4 - root) + bytes(zeros))
        return b"".join(reversed(self._parts))


# -- [5e] JSON -----------------------------------------------------------------------------------

MAX_DIGITS = 4300  # of an integer: Python 3.11 and later convert no more
JSON_ESCAPE = rb"\\u(?![0-9a-fA-F]{4})"  # a wrong one


class Json:
    """Reads JSON in UTF-8 (RFC 8259): Json(data, base, name).read(); only blanks may follow.

    The module json parses it. At most `depth`, or MAX_DEPTH, arrays and objects are open at once;
    a key twice is an error. Numbers are as in serde_json: -0 and integers of over 20 digits are
    floats, what float64 cannot hold is an error, as is a lone surrogate; or with `python` as in
    its json. Errors count from `base`, their field is `name`.
    """

    def __init__(self, data: bytes, base: int = 0, name: str = "item", depth: int = 0,
                 python: bool = False) -> None:
        self.data, self.base, self.name = data, base, name
        self.depth, self.python = depth or MAX_DEPTH, python

    def error(self, what: str, at: int = 0, error: Any = FormatError) -> FormatError:
        return error("JSON: " + what, self.base + at, self.name)

    def read(self) -> Any:
        try:
            text = self.data.decode()
            if text.count("[") + text.count("{") > MAX_ITEMS:
                raise self.error(f"more than MAX_ITEMS = {MAX_ITEMS} arrays and objects", 0,
                                 Unsupported)
            value = self.decoder().decode(text)
            self.check(value)
            return value
        except FormatError as error:
            wrong = error
        except UnicodeDecodeError as error:
            wrong = self.error("text is not UTF-8", error.start)
        except ValueError as error:  # JSONDecodeError; of PyPy, a digit that is not ASCII
            what, at = getattr(error, "msg", "not a number"), getattr(error, "pos", 0)
            if what[:7] == "Invalid":  # an escape, say: Pythons differ in its place in the text
                at = max(0, text.rfind('"', 0, at))
            wrong = self.error(what, len(text[:at].encode()))
        except RuntimeError:  # RecursionError
            wrong = self.error("nested deeper than this Python can read")
        raise wrong

    def decoder(self) -> Any:
        from json import JSONDecoder
        return JSONDecoder(object_pairs_hook=self.make_map, parse_int=self.make_int,
                           parse_float=self.make_float, parse_constant=self.make_float)

    def make_map(self, pairs: Any) -> Any:
        found: Facts = Map()
        for key, value in pairs:
            if key in found:
                raise self.error(f"key {show(key)} twice")
            found[key] = value
        return found

    def make_float(self, text: str) -> float:
        value = float(text.encode("ascii"))  # json of PyPy takes the digits of all alphabets
        if not self.python and not -INFINITY < value < INFINITY:
            raise self.error("NaN, or a number beyond float64")
        return value

    def make_int(self, text: str) -> Any:
        if not self.python and (len(text) > 20 or text == "-0"):
            return self.make_float(text)
        if len(text) > MAX_DIGITS:
            raise self.error(f"{len(text)} digits; MAX_DIGITS = {MAX_DIGITS}")
        return int(text.encode("ascii"))

    def check(self, value: Any) -> None:
        r"""Raise for what the module json lets pass, as \u_041 that of PyPy."""
        if len([boxes for boxes in json_levels(value) if boxes]) > self.depth:
            raise self.error(f"nested deeper than {self.depth}")
        if b"\\u" in self.data:
            import re
            if re.search(JSON_ESCAPE, self.data.replace(b"\\\\", b" ")):
                raise self.error("an escape without four digits")
            if not self.python and not is_text(json_text(value)):
                raise self.error("a lone surrogate is not Unicode text")


def json_levels(value: Any) -> Chunks:
    """Yield the dicts and lists of each level of a value, the outermost first, then none."""
    boxes: Any = [[value]]
    while boxes:
        boxes = [item for box in boxes for item in (box.values() if isinstance(box, dict) else box)
                 if isinstance(item, (dict, list, tuple))]
        yield boxes


def json_read(data: bytes, base: int = 0, name: str = "item", depth: int = 0,
              python: bool = False) -> Any:
    """Return the value of JSON, by the rules of Json."""
    return Json(data, base, name, depth, python).read()


def json_text(value: Any) -> str:
    """Return a value as JSON without blanks, in the order of its dicts."""
    from json import dumps
    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_misfit(value: Any, depth: int) -> str:
    """Return why a value cannot be JSON that json_read reads, or ""."""
    try:
        json_read(encode_text(json_text(value)), depth=depth, python=True)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: too deep for Python
        return str(error)
    maps = [box for boxes in json_levels(value) for box in boxes if isinstance(box, dict)]
    wrong = [key for box in maps for key in box if type(key) is not str]
    return "a key is not text" if wrong else ""


# -- [5f] strided blocks ------------------------------------------------------------------------
#
# Elements with gaps between them, or in another order than row-major, as blocks of bytes.


def gather(view: Any, first: int, shape: Any, strides: Any, itemsize: int) -> Chunks:
    """Return the row-major bytes, about BLOCK each, of an array that begins at `first`."""
    if "fast" in WITHOUT:
        return gather_rows(view, first, shape, strides, itemsize)
    return gather_quickly(view, first, shape, strides, itemsize)


def gather_rows(view: Any, first: int, shape: Any, strides: Any, itemsize: int) -> Chunks:
    """Yield the bytes of gather() one row along the last dimension after the other."""
    n, step = shape[-1], strides[-1]
    for row in range(count_elements(shape[:-1]) if n else 0):
        at = first
        for count, stride in zip(reversed(shape[:-1]), reversed(strides[:-1])):
            row, index = divmod(row, count)
            at += index * stride
        yield b"".join([bytes(view[i:i + itemsize])
                        for i in range(at, at + n * step, step)])


def gather_quickly(view: Any, first: int, shape: Any, strides: Any, itemsize: int) -> Chunks:
    """Yield what gather() does, by slices with steps, which boards do not have."""
    dims, steps = [], []
    for n, stride in zip(shape, strides):
        if dims and steps[-1] == n * stride:  # no gap: the two are one
            dims[-1] *= n
            steps[-1] = stride
        elif n != 1:
            dims.append(n)
            steps.append(stride)
    if [step for step in steps if step % itemsize]:  # elements at odd places: as rows of bytes
        dims, steps, itemsize = dims + [itemsize], steps + [1], 1
    nbytes = itemsize * count_elements(dims)
    if not nbytes or steps in ([], [itemsize]):  # nothing, or all in one run
        yield from pieces(view[first:first + nbytes], BLOCK)
        return
    n = dims[0]
    rows = max(1, BLOCK * n // nbytes)
    if steps[0] == itemsize and n > 4 * rows:  # so many lie together: longer runs
        rows = max(rows, min(4 * rows, 512 // itemsize))
    for start in range(0, n, rows):
        args = view, first + start * steps[0], [min(rows, n - start)] + dims[1:], steps, itemsize
        yield from gather_quickly(*args) if nbytes > n * BLOCK else [gather_block(*args)]


def gather_block(view: Any, first: int, dims: Any, steps: Any, itemsize: int) -> Any:
    """Return one block of gather(): loops outside, the longest dimension as one slice."""
    out, places = bytearray(itemsize * count_elements(dims)), row_major(tuple(dims), itemsize)
    longest = dims.index(max(dims))
    n, step, place = dims[longest], steps[longest], places[longest]
    starts = [(0, first)]  # (place in out, place in view) of each run
    for axis, count in enumerate(dims):
        if axis != longest:
            starts = [(to + i * places[axis], at + i * steps[axis])
                      for to, at in starts for i in range(count)]
    code: Any = BITS_CODE[itemsize]
    target, source = [memoryview(data).cast(code) for data in (out, view)]
    place, step = place // itemsize, step // itemsize
    tile = n if -128 < step < 128 else 512  # far steps: few, so that pages stay cached
    for i in range(0, n, tile):
        count = min(tile, n - i)
        for to, at in starts:
            to, at = to // itemsize + i * place, at // itemsize + i * step
            stop = at + count * step
            target[to:to + count * place:place] = source[at:None if stop < 0 else stop:step]
    return out


# -- [6a] Tensor, File ---------------------------------------------------------------------------


class Storage:
    """How bytes lie in a source. It never changes; tensors of one dtype and shape share it.

    `.nbytes` stored (of the whole base of a part), `.strides` in bytes (None: row-major, no gaps),
    `.why` the values cannot be read, `.entry` of a tensor of several parts: where they lie.
    """

    __slots__ = ("source", "nbytes", "strides", "order", "encoding", "why", "entry")

    def __init__(self, source: Any, nbytes: int, strides: Any = None, order: str = "<",
                 encoding: str = "raw", why: Any = None, entry: Any = None) -> None:
        self.source, self.nbytes, self.strides = source, nbytes, strides
        self.order, self.encoding, self.why, self.entry = order, encoding, why, entry


class Tensor:
    """A named, typed, strided array over bytes that lie in a file, a buffer or memory.

    `.dtype` is None if unknown here, `.attrs` are facts of its `.format`. Bytes are read when asked
    for: Unsupported (dtype, encoding), FormatError (damage) or ValueError (closed File).

    >>> tensor([[1, 2], [3, 4]], "int8")[1].tolist()
    [3, 4]
    """

    __slots__ = ("name", "dtype", "shape", "stored", "start", "format", "_attrs")
    components: Any = None  # of a tensor of several parts
    scheme: Any = None  # of a quantized tensor
    layout_keys: Any = ()  # attrs that say how its parts are stored

    def __init__(self, name: str, dtype: "Optional[str]", shape: Shape, stored: Storage,
                 start: int = 0, attrs: Any = (), format: "Optional[str]" = None) -> None:
        self.name, self.dtype, self.shape, self.format = name, dtype, shape, format
        self.stored, self.start = stored, start  # in the source: of element 0, or of coded bytes
        self._attrs: Facts = attrs  # or (key, value, ...): a map when asked for

    @property
    def attrs(self) -> Facts:
        flat: Any = self._attrs
        if isinstance(flat, tuple):
            self._attrs = Map([(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)])
        return self._attrs

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return count_elements(self.shape)

    @property
    def itemsize(self) -> "Optional[int]":
        """Bytes per element; None where the dtype has no fixed one."""
        return ITEMSIZE.get(self.dtype)

    @property
    def nbytes(self) -> int:
        """size x itemsize, or what is stored where the dtype has no itemsize."""
        stored = self.stored
        if stored.strides is None and stored.encoding == "raw" or self.dtype not in ITEMSIZE:
            return stored.nbytes
        return self.size * ITEMSIZE[self.dtype]

    @property
    def strides(self) -> Shape:
        return self.stored.strides or row_major(self.shape, self.itemsize or 1)

    @property
    def offset(self) -> "Optional[int]":
        """Offset in the file of the first element (if compressed: of the bytes), or None."""
        return self.start if self.stored.source.of_file else None

    def ranges(self) -> Any:
        """Return (offset, nbytes, role) of its bytes in the file; "" is the role of its values."""
        entry = self.stored.entry
        return entry.ranges() if entry else [(self.start, self.stored.nbytes, "")]

    def __repr__(self) -> str:
        text = f"<Tensor {quote(self.name)} {plain(dtype_of(self))} {show(self.shape)}"
        text += "" if self.format is None else " of " + self.format
        if self.stored.encoding == "raw" or self.size <= MAX_SHOWN:
            try:
                text = clip(f"{text}:\n{preview(self)}", MAX_LINE - 1)
            except (ValueError, OSError):  # damaged, closed, no values; a copy without preview()
                pass
        return text + ">"

    def __eq__(self, other: Any) -> bool:
        """Return whether dtype, shape and bytes are the same."""
        if not isinstance(other, Tensor):
            return NotImplemented
        if [item for item in (self, other) if item.stored.why or item.itemsize is None]:
            return same_stored(self, other)
        return (self.dtype, self.shape) == (other.dtype, other.shape) and same_bytes(self, other)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def check_readable(self) -> int:
        """Return the itemsize; raise Unsupported where the elements cannot be read."""
        itemsize, why = self.itemsize, self.stored.why
        if why is not None or itemsize is None:
            raise Unsupported(why or f"{self.dtype} cannot be read element by element", self.offset,
                              "data", self.name, self.stored.source.path, "sizes")
        return itemsize

    def span(self) -> "Tuple[int, int]":
        """Return (start, nbytes) of its bytes, relative to element (0, ..., 0)."""
        stored = self.stored
        if stored.strides is None or 0 in self.shape:
            return 0, stored.nbytes
        ends = [(n - 1) * stride for n, stride in zip(self.shape, stored.strides)]
        return sum([min(end, 0) for end in ends]), sum(map(abs, ends)) + (self.itemsize or 1)

    @property
    def raw(self) -> memoryview:
        """The stored bytes, read-only; of a sub-tensor from its first to its last."""
        start, nbytes = self.span()
        return self.stored.source.view(self.start + start, nbytes)

    def lies(self, order: str) -> bool:
        """Return whether its elements lie without gaps or backward steps, in this byte order."""
        stored = self.stored
        return (stored.why is None and self.itemsize is not None and self.span() == (0, self.nbytes)
                and (stored.order == order or self.itemsize == 1))

    @property
    def zero_copy(self) -> bool:
        """Whether `.data` shows the stored bytes themselves."""
        return bool(self.lies(NATIVE) and self.stored.source.zero_copy)

    @property
    def data(self) -> memoryview:
        """The elements as a flat typed memoryview; a copy at each call unless `.zero_copy`.

        In storage order (of a part with gaps row-major), native byte order, 16-bit floats as 'H'.
        """
        itemsize, order = self.check_readable(), self.stored.order
        raw: Any = self.raw
        if self.stored.strides is not None and not self.lies(order):
            raw, order = self.tobytes(), "<"
        raw = raw if itemsize == 1 or order == NATIVE else swap(raw, itemsize)
        code: Any = STRUCT_CODE.get(str(self.dtype), "e").replace("e", BITS_CODE[itemsize])
        if not BOARD:
            return memoryview(raw).cast(code)
        from array import array
        flat: Any = array("B" if code == "?" else code, bytes(raw))  # not of a memoryview
        return flat

    def blocks(self) -> Chunks:
        """Yield row-major little-endian bytes: in one view, or about BLOCK each."""
        stored, itemsize = self.stored, ITEMSIZE.get(self.dtype, 1)
        if stored.why and self.dtype in ITEMSIZE:
            self.check_readable()
        blocks = self.stored_blocks() if stored.strides is None else gather(
            self.raw, -self.span()[0], self.shape, self.strides, self.check_readable())
        if stored.order == "<" or itemsize == 1:
            return blocks
        return (swap(piece, itemsize) for block in blocks for piece in pieces(block, BLOCK))

    def stored_blocks(self) -> Chunks:
        """Yield the stored bytes: in one view if there is one, or in BLOCKs."""
        source, offset, nbytes = self.stored.source, self.start, self.stored.nbytes
        size = nbytes if source.zero_copy else BLOCK
        for start in range(0, nbytes, size) if nbytes else [nbytes]:  # a closed File raises
            yield source.view(offset + start, min(size, nbytes - start))

    def parts(self) -> Chunks:
        """Iterate over what blocks() yields, at most PART bytes at a time."""
        return (part for block in self.blocks() for part in pieces(block, PART))

    def tobytes(self) -> bytes:
        """Return the elements as row-major little-endian bytes; without itemsize, as stored."""
        from io import BytesIO
        out = BytesIO()  # unlike join() it copies each block while that is in the cache
        for block in self.blocks():
            out.write(block)
        return out.getvalue()

    __bytes__ = tobytes  # without it, up to Python 3.11 bytes() takes numbers from __iter__

    @property
    def flat(self) -> Chunks:
        """Iterate over the elements, row-major, as Python numbers, in constant memory."""
        self.check_readable()
        return (value for part in self.parts() for value in unpack_values(str(self.dtype), part))

    def tolist(self) -> "List[Any]":
        """Return the elements as nested lists; of a scalar, the number."""
        shape = self.shape
        lists = [count_elements(shape[:i]) for i in range(1, min(len(shape), 65))]
        if len(shape) > 64 or sum(lists) > max(self.size * len(shape), 1 << 17):
            raise ValueError(f"tolist() of {show(shape)} makes too many lists")
        values = list(self.flat)
        for n, count in zip(reversed(shape), reversed(lists)):
            values = [values[i * n:(i + 1) * n] for i in range(count)]
        return values if shape else values[0]

    def item(self) -> Any:
        """Return the only element as a Python number; ValueError if there are others."""
        if self.size != 1:
            raise ValueError(f"a tensor of one element is a number, this one has {self.size}")
        return next(self.flat)

    def copy(self, **changes: Any) -> "Tensor":
        """Return it with some of the constructor's arguments changed."""
        args: Facts = dict([(key, getattr(self, key)) for key in (
            "name", "dtype", "shape", "stored", "start", "format")], attrs=Map(self.attrs.items()))
        args.update(changes)
        dense = "stored" in changes and args["dtype"] in ITEMSIZE
        return (Tensor if dense else type(self))(**args)

    def contiguous(self) -> "Tensor":
        """Return a row-major little-endian copy in memory."""
        data = self.tobytes()
        return self.copy(stored=Storage(Memory(data), len(data), why=self.stored.why), start=0)

    def __getitem__(self, key: Any) -> Any:
        """Return t[i], t[1:, ..., ::2]: a zero-copy part; with an index for each axis, a number."""
        itemsize = self.check_readable()
        keys = list(key) if isinstance(key, tuple) else [key]
        dots = [i for i, k in enumerate(keys) if k is Ellipsis]
        given, at = len(keys) - len(dots), dots[0] if dots else len(keys)
        if len(dots) > 1 or given > self.ndim:
            raise IndexError(f"{given} indices, {len(dots)} times '...': {self.ndim} dimensions")
        keys[at:at + 1] = [Ellipsis] * (self.ndim - given)  # boards cannot make a slice
        offset, shape, steps = self.start, [], []
        for axis, (k, n, stride) in enumerate(zip(keys, self.shape, self.strides)):
            if k is Ellipsis or isinstance(k, slice):
                places = range(n) if k is Ellipsis else range(n)[k]
                shape.append(max(0, -((places.start - places.stop) // places.step)))
                steps.append(stride * (places.step if shape[-1] > 1 else 1))
                offset += places.start * stride if shape[-1] else 0
            elif -n <= as_index(k) < n:
                offset += as_index(k) % n * stride
            else:
                raise IndexError(f"index {show(k)} is out of range for dimension {axis} of shape "
                                 f"{show(self.shape)}")
        old, dims, strides = self.stored, tuple(shape), tuple(steps)
        if not (shape or dots):
            return unpack_values(str(self.dtype), old.source.view(offset, itemsize), old.order)[0]
        stored = Storage(old.source, old.nbytes, strides, old.order)
        if 0 in dims or strides == row_major(dims, itemsize):
            stored = Storage(old.source, count_elements(dims) * itemsize, None, old.order)
        return Tensor(self.name, self.dtype, dims, stored, offset, (), self.format)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Chunks:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    @property
    def __array_interface__(self) -> Facts:
        """What numpy.asarray asks for first: zero-copy, read-only; none of bfloat16."""
        itemsize, stored = self.check_readable(), self.stored
        if self.dtype not in STRUCT_CODE:
            raise AttributeError(f"{self.dtype} has no type of numpy")  # it asks for __array__ then
        code = f"{'|' if itemsize == 1 else stored.order}{str(self.dtype)[0]}{itemsize}"
        return {"version": 3, "shape": self.shape, "typestr": code, "data": self.raw,
                "strides": stored.strides, "offset": -self.span()[0]}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return to_numpy(self, dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        return to_dlpack(self, **options)

    def __dlpack_device__(self) -> "Tuple[int, int]":
        return 1, 0  # memory of the CPU

    def __jax_array__(self) -> Any:
        return to_jax(self)

    def __buffer__(self, flags: int) -> Any:  # from CPython 3.12 on
        return to_buffer(self)

    def __reduce__(self) -> Any:
        return reduce_tensor(self)

    def __deepcopy__(self, memo: Any) -> "Tensor":
        return deepcopy_tensor(self, memo)

    def todense(self) -> "Tensor":
        """Return a sparse tensor with its zeros, in memory; another as it is."""
        return self

    def astype(self, dtype: Any) -> "Tensor":
        """Return a copy in memory with another dtype, without attrs of the old one.

        Floats round to even and overflow to infinity; integers raise ValueError for a fraction, a
        NaN or a number out of range.
        """
        return cast_tensor(self, dtype)


def new_tensor(dtype: Any, shape: Shape, raw: Any, order: str = "<",
               name: str = "", format: Any = None) -> Tensor:
    """Return a Tensor of bytes in memory."""
    source = Memory(raw)
    return Tensor(name, dtype, shape, Storage(source, source.nbytes, None, order), 0, (), format)


def dtype_of(item: Tensor) -> str:
    """Return the dtype for a person; one that is not known here as the file calls it, quoted."""
    if item.dtype is not None:
        return item.dtype
    words = [item.attrs[key] for key in ("type", "dtype", "st_dtype", "burn_dtype")
             if item.attrs.get(key) is not None]
    return show(words[0]) if words else "?"


def as_index(key: Any) -> int:
    """Return an index, an int or what has __index__ (numpy integers), as an int."""
    if isinstance(key, bool) or not (isinstance(key, int) or hasattr(key, "__index__")):
        raise TypeError(f"an index is an int, a slice or Ellipsis, not {type(key).__name__}")
    return int(key)


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as one dimension or several, as a tuple."""
    one = hasattr(shape, "__index__") and not hasattr(shape, "__len__")
    return tuple([as_index(n) for n in ([shape] if one or isinstance(shape, int) else shape)])


class File(TensorMap):
    """A mapping from names to Tensors in the order of the index; also a context manager.

    `.path` (or None), `.metadata` (the user's), `.attrs` (facts of the format), `.nbytes`.
    Any number of threads may read it and its Tensors.

    >>> load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    <File ztensor: 1 tensor 'w'>
    """

    def __init__(self, kind: "Format", source: Any, attrs: Facts, metadata: Facts,
                 tensors: "Dict[str, Tensor]", options: Any = None) -> None:
        self.kind, self.format, self._options = kind, kind.FAMILY, options or {}
        self.path: "Optional[str]" = source.path
        self.nbytes: int = source.nbytes
        self.attrs, self.metadata, self._source, self._tensors = attrs, metadata, source, tensors

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise KeyError(self.say_missing(name))
        return self._tensors[name]

    def say_missing(self, name: Any) -> str:
        shards = self.attrs.get("shards", ())
        if name in self.attrs.get("missing", ()):
            return f"{quote(name)} is whole in none of the shards" if shards else (
                f"{quote(name)} does not lie whole in the file, which is cut short")
        near = isinstance(name, str) and len(self) <= 20000
        text = f"no tensor {show(name)} ({count_of(len(self), 'tensor')})"
        return text + (nearest(name, self) if near else "")

    def __iter__(self) -> "Iterator[str]":
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def keys(self) -> "KeysView[str]":
        return self._tensors.keys()

    _ipython_key_completions_ = keys

    def values(self) -> "ValuesView[Tensor]":
        return self._tensors.values()

    def items(self) -> "ItemsView[str, Tensor]":
        return self._tensors.items()

    if not TYPE_CHECKING:  # that of Mapping has more precise types
        def get(self, name: str, default: Any = None) -> Any:
            return self[name] if name in self else default

    def __repr__(self) -> str:
        path = "" if self.path is None else " " + quote(self.path)
        names = ", ".join([quote(name) for name in list(self)[:4]])
        names = (" " if names else "") + names + (", ..." if len(self) > 4 else "")
        return f"<File {self.format}{path}: {count_of(len(self), 'tensor')}{names}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a table of the first MAX_SHOWN tensors."""
        rows: "List[Any]" = [(dtype_of(item), show(item.shape), item.nbytes, plain(name))
                             for name, item in list(self.items())[:MAX_SHOWN]]
        rows += [("", "", "", f"{len(self) - MAX_SHOWN} more")] * (len(self) > MAX_SHOWN)
        text = "<tr><th>dtype<th>shape<th>bytes<th>name"
        for row in rows:
            text += "<tr>" + "".join([f"<td>{to_html(fact)}" for fact in row])
        return f"{to_html(repr(self), MAX_LINE)}<table>{text}</table>"

    def __reduce__(self) -> Any:
        return reduce_file(self)

    def __copy__(self) -> "File":
        return copy_file(self)

    def __deepcopy__(self, memo: Any) -> "File":
        return deepcopy_file(self, memo)

    def close(self) -> None:
        """Close the file. Views stay valid; a Tensor asked later raises."""
        self._source.close()

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


if "_collections_abc" in sys.modules:  # of collections.abc; loaded at any start
    sys.modules["_collections_abc"].Mapping.register(File)


# -- [6b] readers --------------------------------------------------------------------------------
#
# A format reads a file by named fields, through the methods of a Cursor, and by rows that say what
# is where. Who wants to know more of a file than load() gives its read() another kind of Cursor.


def pack_record(rows: Any, *values: Any) -> bytes:
    return pack("<" + "".join([row[1] for row in rows]), *values)


SIZES = {"str": 1, "bin": 1, "ext": 1, "array": 1, "map": 2}  # bytes of what a head counts


class Cursor:
    """Reads a source by named fields, from .pos on.

    A path is keys and indices: ("tensors", 3, "shape") is the field tensors[3].shape. `.where` is
    the path of the record or entry that is read now, `.tensor` the name of its tensor, `.start`
    where it begins in the file, or the tree that it is in.
    """

    root = ""  # field that all others lie in, where the index is one tree
    where: Any = ()
    tensor: Any = None
    named = 0  # bytes of the names that join_name() has made

    def __init__(self, source: Any) -> None:
        self.source, self.end = source, source.nbytes
        self.pos = self.start = 0  # start: the offset that errors name

    def head(self, nbytes: int) -> bytes:
        """Return the next bytes, or all left, without a move."""
        return self.source.read(self.pos, max(0, min(nbytes, self.end - self.pos)))

    def next_bytes(self, nbytes: int, field: str, *index: int) -> bytes:
        """Return nbytes bytes, if the file has them, and move behind them."""
        data = self.head(nbytes)
        if len(data) < nbytes:
            what = f"{path_of_keys((field,) + index)} needs {nbytes} bytes, {len(data)} left"
            raise self.error(what + " (cut short?)", field, *index, offset=self.pos)
        self.pos += nbytes
        return data

    def record(self, rows: Any) -> Any:
        """Return the values of little-endian fields and move behind them.

        A row is (name, struct code, doc): "6q" are six values, "8s" are bytes.
        """
        self.start, code = self.pos, "<" + "".join([row[1] for row in rows])
        return unpack_from(code, self.next_bytes(calcsize(code), rows[0][0]))

    def take(self, nbytes: int, field: str, doc: str, *index: int) -> bytes:
        """Return the next bytes, as one field, and move behind them."""
        return self.next_bytes(nbytes, field, *index)

    def cbor(self, nbytes: int, schema: Any, root: str, path: Any = (), codec: Any = Cbor,
             rest: str = "") -> Any:
        """Return the value of the next bytes, one item of CBOR, and move behind them.

        `schema` checks it and explains its fields; the whole is the field `root`, others begin with
        `path`. Bytes behind the item are an error unless they are called `rest`.
        """
        self.start, self.root = self.pos, path_of_keys(path) or root
        codec = codec(self.next_bytes(nbytes, root), self.start)
        value, end = self.read_tree(codec, schema, path)
        if end < nbytes and not rest:
            raise self.error("bytes left over behind the index", offset=self.start + end)
        if end < nbytes:
            self.note(self.start + end, nbytes - end, (rest,), rest, None,
                      "bytes behind the CBOR item", kind="unused")
        self.check(schema, value, *path)
        return value

    def read_tree(self, codec: Any, schema: Any, path: Any) -> Any:
        return codec.read()

    def note(self, offset: int, nbytes: int, keys: Any, path: Any, value: Any, doc: str,
             depth: int = 0, kind: str = "structure", lead: int = 0, target: Any = None) -> None:
        """Note a field of the file: Tracing does."""

    def json(self, nbytes: int, schema: Any, root: str, pad: bytes = b" ", **rules: Any) -> Any:
        """As cbor(), of JSON by `rules` of Json; `pad`: byte of a field behind it, or b""."""
        self.start, self.root = self.pos, root
        data = self.next_bytes(nbytes, root)
        value = self.read_tree(Json(data, self.start, root, **rules), schema, ())
        end = len(data.rstrip(b" \t\r\n"))
        if pad and end < nbytes:
            odd = "not all %02x" % pad[0] if data[end:].strip(pad) else None
            self.note(self.start + end, nbytes - end, (MISSING,), "padding", odd,
                      "spaces" if pad == b" " else "blanks", kind="padding")
        self.check(schema, value)
        return value

    def flatbuffer(self, nbytes: int, root: str) -> Any:
        """Return a Flat of the next bytes, whose tables are read when they are asked for."""
        self.start = self.pos
        return self.flat_tree(self.next_bytes(nbytes, root))

    def flat_tree(self, data: bytes) -> Any:
        return Flat(data, self.start)

    def msgpack_map(self, codec: Any, schema: Any, root: str) -> Any:
        """Return one value of MessagePack, by its reader; `schema` explains it."""
        self.root = root
        return self.read_tree(codec(self), schema, ())

    def next_head(self) -> Any:
        """Return (kind, value or length) of the next head, and move behind it."""
        data = self.head(9)
        kind, value, nbytes = msgpack_head(data, 0, len(data))
        self.pos += nbytes
        return kind, value

    def check_room(self, kind: str, count: Any) -> None:
        """Raise FormatError if the file has too few bytes for what such a head begins."""
        if kind in SIZES and SIZES[kind] * count + (kind == "ext") > self.end - self.pos:
            rest = self.end - self.pos
            raise FormatError(f"{kind} of {count}, {count_of(rest, 'byte')} left", check="bounds")

    def msgpack(self, kind: str, field: str, doc: str, *index: int) -> Any:
        """Return a value of this kind: a number, the bytes of a str, or else the length."""
        self.start = self.pos
        try:
            found, value = self.next_head()
            if found != kind and (kind, found) != ("float", "int"):
                raise FormatError(f"it has the type {found}, not {kind}")
            if kind in ("str", "array", "map"):  # of a bin admit() looks
                self.check_room(kind, value)
        except FormatError as error:
            raise self.misread(error, field, *index)  # a name for it here would make a cycle
        return self.next_bytes(value, field, *index) if kind == "str" else value

    def misread(self, error: FormatError, field: str, *index: int) -> FormatError:
        what = f"{path_of_keys((field,) + index)}: {error.what}"
        made = self.error(what, field, *index, offset=self.start)
        made.cut = error.check == "bounds"
        return made

    def uint32(self, field: str, doc: str, *index: int) -> int:
        """Return a uint32 of MessagePack, in any stored form."""
        value: int = self.msgpack("int", field, doc, *index)
        if value < 0 or value >> 32:
            what = f"{path_of_keys((field,) + index)} is {value}, expected 0 to {(1 << 32) - 1}"
            raise self.error(what, field, *index, offset=self.start)
        return value

    def check(self, schema: Any, found: Any, *path: Any) -> None:
        """Raise for the first thing that is wrong in a map; no Schema checks nothing."""
        for place, why in schema.wrongs(found, *path) if schema else ():
            raise self.error(why, *place)

    def limit(self, field: str, value: int, low: int, high: int, why: str,
              error: Any = FormatError) -> None:
        """Raise unless a field has a value from low to high."""
        if not low <= value <= high:
            what = f"{field} is {value}, expected {low} to {high}: {why}"
            raise self.error(what, field, error=error)

    def one(self, read: Any, *args: Any, **rules: Any) -> None:
        """Call read(), which raises for one entry or tensor alone."""
        read(*args, **rules)

    def entries(self, found: Any, schema: Any, open_entry: Any, *where: Any, **rules: Any) -> Facts:
        """Return the Tensors by name that an index has; `rules`: those of read_entry()."""
        tensors: Facts = Map()
        for key, entry in found.items() if hasattr(found, "items") else enumerate(found):
            self.where = where + (key,)
            self.one(self.read_entry, tensors, key, entry, schema, open_entry, **rules)
        self.where, self.tensor = (), None
        return tensors

    def read_entry(self, tensors: Any, key: Any, entry: Any, schema: Any, open_entry: Any,
                   about: Any = (), low: float = 0, high: float = INFINITY,
                   fields: Any = ("", "", "")) -> None:
        """Add the Tensor of an entry that `schema` checks: open_entry(self, key, entry, *about).

        It lies from `low` to `high`. `fields` of an entry have name, size and place, for errors;
        "": the entry itself.
        """
        name = entry.get("name") if type(key) is int and type(entry) is Map else key
        self.tensor = name if type(name) is str else None
        self.check(schema, entry)
        self.admit(tensors, open_entry(self, key, entry, *about), low, high, fields)

    def join_name(self, parts: Any, mark: str = ".", *path: Any) -> str:
        """Return a name made of parts that are in others, too: all of them may be far too long."""
        name: str = mark.join(parts)
        self.named += len(name) + 50
        if self.named > MAX_NAMES + 8 * self.end:
            what = f"names need more than MAX_NAMES = {MAX_NAMES} bytes and 8 times the file"
            raise self.error(what, *path, error=Unsupported)
        return name

    def collect(self, items: Any, high: float, fields: Any) -> Facts:
        """Return the Tensors that come one behind the other, by name; as entries()."""
        tensors: Facts = Map()
        for item in items:
            self.one(self.admit, tensors, item, 0, high, fields)
        self.where, self.tensor = (), None
        return tensors

    def admit(self, tensors: Any, item: "Tensor", low: float, high: float, fields: Any) -> None:
        """Add a tensor if it has a name of its own and the bytes that dtype and shape need."""
        name, size, place = [(field,) if field else () for field in fields]
        start, stored, self.tensor = item.start, item.stored, item.name
        nbytes = need = stored.nbytes
        if item.dtype in ITEMSIZE and stored.encoding == "raw" and stored.why is None:
            need = count_elements(item.shape) * ITEMSIZE[item.dtype]
        if item.name in tensors:
            raise self.error("two tensors have this name", *name)
        if nbytes and not low <= start <= high - nbytes:
            what = f"data at {start} to {start + nbytes}, but the data area is {low} to {high}"
            raise self.error(what, *place, check="bounds")
        if need != nbytes:
            what = say_need(f"{nbytes} bytes stored", item.dtype, item.shape, need)
            raise self.error(what, *size, check="sizes")
        tensors[item.name] = item

    def keep_whole(self, tensors: Any, *path: Any, base: int = 0) -> None:
        """Raise unless all tensors lie in the file; their places have counted from `base`."""
        for item in tensors.values():
            item.start += base
            end = item.start + item.stored.nbytes
            if end > self.end:
                what = f"cut short: {self.end} bytes, the data of {quote(item.name)} end at {end}"
                raise self.error(what, *path, check="bounds")

    def together(self, check: Any, *args: Any) -> None:
        """Call check(), which raises where the tensors do not fit together."""
        check(*args)

    def error(self, what: str, *path: Any, offset: Any = None, tensor: Any = None,
              check: str = "index", error: Any = FormatError) -> FormatError:
        """Return an error of the field at this path of the entry; it lies at or behind .start."""
        made: FormatError = error(
            what, self.start if offset is None else offset,
            path_of_keys(self.where + path) or self.root or None,
            self.tensor if tensor is None else tensor, self.source.path, check)
        made.steps = self.where + path
        return made


def msgpack_loads(data: Any) -> Any:
    """Return one MessagePack value; bytes behind it are a FormatError.

    str is text, bin a view of the bytes, ext (type, bytes), a timestamp (seconds, nanoseconds);
    an array or map as a map key is Unsupported, a key twice a FormatError.

    >>> msgpack_loads(b"\\x92\\x01\\xa1a")
    [1, 'a']
    """
    cursor = Cursor(Memory(data))
    value = Msgpack(cursor).read()
    if cursor.pos != cursor.end:
        what = f"MessagePack: {cursor.end - cursor.pos} bytes behind the value"
        raise FormatError(what, cursor.pos)
    return value


def all_u64(numbers: Any) -> bool:
    """Return whether all values are integers from 0 to 2**64-1."""
    return not [n for n in numbers if type(n) is not int or not 0 <= n < 1 << 64]


def say_need(words: str, dtype: "Optional[str]", shape: Any, need: int) -> str:
    """Return the message for so many bytes, where a dtype and a shape need others."""
    wanted = need if need < 1 << 64 else "more than 2**64"
    return f"{words}, {dtype or 'its type'} {show(shape)} needs {wanted}"


def must_be(python: Any, words: str, fits: Any = None) -> Any:
    """Return a kind of values for Schema: their type, in words, what they must be besides."""
    return lambda value: "" if type(value) is python and (not fits or fits(value)) else words


def one_of(*texts: str) -> Any:
    return must_be(str, " or ".join(texts), texts.count)


NO_END = "the end is missing: it does not end as a %s file does"
TEXT = must_be(str, "text")
MAP = must_be(Map, "a map")
UNSIGNED = must_be(int, "an integer 0 to 2**64-1", lambda n: 0 <= n < 1 << 64)
RANGE = must_be(list, "an array of two integers 0 to 2**64-1",
                lambda x: len(x) == 2 and all_u64(x))
SPAN = must_be(list, "[start, end), integers 0 to 2**64-1",
               lambda x: len(x) == 2 and all_u64(x) and x[0] <= x[1])
INTEGERS = must_be(list, "an array of integers 0 to 2**64-1", all_u64)


class Schema:
    """What a map of an index holds: rows (key, kind, needed, doc[, inside]).

    The rows check what is read and what will be written, and explain each field. A kind is "any", a
    function that returns what a wrong value should be, or the Schema of a map. `needed`: True,
    False, or None where null does for absent. `inside`: a Schema that explains what lies in a value
    of another kind, or a function that returns it. `other`: (kind, doc[, inside]) of all other
    keys. `keys`: the kind of the keys. `of`: list for an array, where the keys are indices.
    """

    def __init__(self, *rows: Any, other: Any = ("any", "unknown here"), keys: Any = None,
                 of: Any = Map, doc: str = "") -> None:
        self.rows: Any = Map([(row[0], (row[1],) + row[3:]) for row in rows])  # as `other`
        self.other, self.keys, self.of, self.doc = other, keys, of, doc
        self.needed = [row[0] for row in rows if row[2]]
        self.nullable = [row[0] for row in rows if row[2] is None]

    def wrongs(self, found: Any, *path: Any) -> Chunks:
        """Yield (path, why) of all that is wrong in a map, and in the maps inside of it."""
        if type(found) is not self.of:
            yield path, f"it is {show(found)}, expected {'a map' if self.of is Map else 'an array'}"
            return
        for key, value in found.items() if self.of is Map else enumerate(found):
            kind = self.rows.get(key, self.other)[0]
            if self.keys and self.keys(key):
                yield path + (key,), f"the key {show(key)} is not {self.keys(key)}"
            elif kind == "any" or value is None and key in self.nullable:
                continue
            elif isinstance(kind, Schema):
                yield from kind.wrongs(value, *path + (key,))
            elif kind(value):
                name = plain(key) if isinstance(key, str) else show(key)
                yield path + (key,), f"{name} is {show(value)}, expected {kind(value)}"
        for key in self.needed:
            if key not in found:
                yield path, f"the entry lacks {key!r}"


# -- [6c] derived --------------------------------------------------------------------------------


def fault_of(item: Tensor, what: str, error: Any = FormatError, field: str = "data") -> Any:
    """Return an error of the values of a tensor."""
    return error(what, item.offset, field, item.name, item.stored.source.path, "sizes")


class Derived(Tensor):
    """A tensor whose elements are made of what is stored, when they are asked for."""

    __slots__ = ("_kept",)

    def lies(self, order: str) -> bool:
        return False

    def decoded(self) -> Tensor:
        """Return it with its elements in memory; up to MAX_KEPT bytes are kept while it lives."""
        kept: "Optional[Tensor]" = getattr(self, "_kept", None)
        if kept is None:
            kept = self.contiguous()
            if kept.nbytes <= MAX_KEPT:
                self._kept = kept
        self.stored.source.view(self.start, 0)  # raises if the File is closed
        return kept

    @property
    def data(self) -> memoryview:
        return self.contiguous().data

    def blocks(self) -> Chunks:
        stored = self.stored
        try:
            yield from decode(stored.encoding, stored.source, self.start, stored.nbytes,
                              self.nbytes)
        except FormatError as error:
            raise fault_of(self, error.what, type(error))

    def __getitem__(self, key: Any) -> Any:
        return self.decoded()[key]

    @property
    def __array_interface__(self) -> Facts:
        raise AttributeError("its elements are made when they are asked for: __array__ gives them")


MAX_KEPT = 0 if BOARD else 1 << 26  # bytes that t[...] of a compressed tensor decodes only once


# -- [6d] casts ----------------------------------------------------------------------------------


class Cast(Derived):
    """A tensor with another dtype, cast block by block when asked for."""

    __slots__ = ("_base",)

    def __init__(self, base: Tensor, dtype: Any) -> None:
        stored = Storage(Memory(b""), 0, encoding="cast")
        super().__init__(base.name, as_dtype(dtype), base.shape, stored, 0, cast_attrs(base),
                         base.format)
        self._base: Any = base

    def blocks(self) -> Chunks:
        base, dtype = self._base, str(self.dtype)
        if base.dtype == "qfloat":
            blocks: Chunks = base.scaled_blocks(dtype)
            return blocks
        return (cast_block(part, str(base.dtype), dtype) for part in base.parts())


def cast_tensor(base: Tensor, dtype: Any) -> Tensor:
    """Return a copy in memory with another dtype, without attrs of the old one."""
    base.check_readable()  # of qfloat a Cast is scaled
    return Cast(base, dtype).contiguous()


def cast_attrs(base: Tensor) -> Facts:
    """Return the attrs of a tensor but for those that describe its dtype and layout."""
    gone = [key for kind in BY_NAME.values() for key in kind.DTYPE_ATTRS]
    return attrs_without(base, gone + list(base.layout_keys))


def attrs_without(item: Tensor, keys: Any) -> Facts:
    """Return the attrs of a tensor but for some."""
    return Map([(key, value) for key, value in item.attrs.items() if key not in keys])


LANES = int.from_bytes(b"\x01\x00\x00\x00" * (PART // 4), "little")  # 1 in each 32 bits
HALF_SHIFT = bytes(range(0, 256, 32)) * 32  # of a byte of a float16: its low 3 bits on top
HALF_UPPER = bytes([byte >> 3 for byte in range(256)])  # the other 5 below
HALF_SMALL = (b"\xff" * 4 + bytes(124)) * 2  # of an upper byte: whether the exponent is 0
HALF_TOP = b"".join([bytes([sign | exponent >> 1]) * 4 for sign in (0, 128)  # that of a float32
                     for exponent in [0] + list(range(113, 143)) + [255]])


def narrow_float32(data: Any) -> bytearray:
    """As narrow_bfloat16, of at most PART bytes of float32, 100 times as fast: one big integer."""
    data, out = bytearray(data), bytearray(len(data) // 2)
    tops, ones = data[3::4], LANES >> 8 * (PART - len(data))
    if 127 in tops or 255 in tops:  # NaN may be there: the lane would overflow
        for i, number in enumerate(unpack_values("float32", data)):
            if number != number:
                data[4 * i:4 * i + 3] = b"\x00\x00\xc0"
    lanes = int.from_bytes(data, "little")
    data = (lanes + (lanes >> 16 & ones) + ones * 0x7FFF).to_bytes(len(data), "little")  # to even
    out[0::2], out[1::2] = data[2::4], data[3::4]
    return out


def widen_float16(data: Any) -> Any:
    """Return float16 bytes as float32 bytes, 6 times as fast as by numbers; NaN keeps its bits."""
    data, out = bytes(data), bytearray(2 * len(data))
    low, high, count = data[0::2], data[1::2], len(data) // 2
    first, second = [int.from_bytes(plane.translate(HALF_SHIFT), "little") for plane in (low, high)]
    second |= int.from_bytes(low.translate(HALF_UPPER), "little")
    out[1::4], out[2::4] = first.to_bytes(count, "little"), second.to_bytes(count, "little")
    out[3::4] = tops = high.translate(HALF_TOP)
    small = int.from_bytes(high.translate(HALF_SMALL), "little") & (first | second)
    if small:  # subnormal numbers: float32 has them with another exponent
        flags = small.to_bytes(count, "little").translate(b"\x00" + b"\x01" * 255)
        if 16 * flags.count(1) > count and 127 not in tops and 255 not in tops:  # many, no NaN
            return pack_values("float32", unpack_values("float16", data))
        i = flags.find(1)
        while i >= 0:
            out[4 * i:4 * i + 4] = pack("<f", *unpack_from("<e", data, 2 * i))
            i = flags.find(1, i + 1)
    return out


CASTS.update([] if BOARD else [
    (("float32", "bfloat16"), narrow_float32), (("float16", "float32"), widen_float16),
    (("bfloat16", "float32"), lambda data: widen_bfloat16(data, "<"))])


# -- [6d2] float8 --------------------------------------------------------------------------------
#
# 8-bit floats as ml_dtypes and torch call and cast them: by way of float32, to nearest even.


class Float8:
    """A dtype of MINIFLOATS: what UNPACK, PACK and CASTS hold of it."""

    def __init__(self, kind: str) -> None:
        self.kind, self.values, self.codes = kind, [], b""

    def unpack(self, data: Any, order: str = "") -> "List[float]":
        self.values = self.values or [minifloat(self.kind, code) for code in range(256)]
        return [self.values[byte] for byte in data]

    def pack(self, values: Any) -> bytes:
        return self.narrow(pack_values("float32", values))

    def narrow(self, data: Any) -> bytes:
        """Return the codes of float32 bytes; of many by their upper 16 bits, rounded to odd."""
        if len(data) > 4096:  # more than a board casts at a time
            self.codes = self.codes or bytes(map(self.code_of, unpack_values(
                "bfloat16", pack("<65536H", *range(65536)))))
            codes = self.codes
            return bytes([codes[bits >> 16 | (bits & 0xFFFF > 0)]
                          for bits in unpack_values("uint32", data)])
        return bytes(map(self.code_of, unpack_values("float32", data)))

    def code_of(self, value: float) -> int:
        """Return the code of a float32; E8M0 has no sign and no zero, the FNUZ have no -0.0."""
        from math import copysign, frexp
        _, digits, bias, infinity, nans = MINIFLOATS[self.kind]
        negative, size = copysign(1.0, value) < 0, abs(value)
        code: int = nans[0]
        if size == INFINITY:
            code = infinity or code
        elif size == size and (digits or value > 0):
            exponent = max(frexp(size or 1e-45)[1], 2 - bias)
            steps = round(size * 2.0 ** (digits + 1 - exponent))
            code = min(steps + (exponent + bias - 2 << digits), infinity or code)
        return code | 128 if negative and (code or 128 not in nans) else code

    def caster(self, new: str) -> Any:
        """Return a function that casts to other floats: a table for each byte of their values."""
        size, tables = ITEMSIZE[new], []

        def cast(data: Any) -> bytearray:
            if not tables:
                packed = pack_values(new, self.unpack(range(256)))
                tables.extend([packed[i::size] for i in range(size)])
            out = bytearray(size * len(data))
            for i, table in enumerate(tables):
                out[i::size] = bytes(data).translate(table)
            return out
        return cast


FLOAT8: "Dict[str, Float8]" = Map([(dtype, Float8(kind)) for dtype, kind in (
    ("float8_e4m3fn", "E4M3"), ("float8_e5m2", "E5M2"), ("float8_e4m3fnuz", "E4M3FNUZ"),
    ("float8_e5m2fnuz", "E5M2FNUZ"), ("float8_e8m0fnu", "E8M0"))])
for _dtype, _form in FLOAT8.items():
    ITEMSIZE[_dtype], FLOAT_DIGITS[_dtype] = 1, MINIFLOATS[_form.kind][1] + 1
    UNPACK[_dtype], PACK[_dtype], CASTS["float32", _dtype] = _form.unpack, _form.pack, _form.narrow
    if hasattr(b"", "translate"):
        CASTS.update([((_dtype, new), _form.caster(new)) for new in FLOAT_DIGITS])
INEXACT.update([("bool", "float8_e8m0fnu"), ("float8_e8m0fnu", "float16")] + [
    (old, new) for old in FLOAT_DIGITS for new in FLOAT8 if old != new])


# -- [6e] zstd -----------------------------------------------------------------------------------

ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")
MAX_ZSTD = 32768  # bytes that a stored one can become (128 KiB of a block of 4 bytes)


def zstd_module() -> Any:
    for name in ZSTD_MODULES:
        try:
            return __import__(name, None, None, ["ZstdCompressor"])
        except ImportError:
            pass
    names = ", ".join(ZSTD_MODULES)
    raise Unsupported(f"zstd data need one of the modules {names}; pip install zstandard")


class _Frames:
    """The stored bytes of a tensor as a binary file."""

    def __init__(self, source: Any, offset: int, nbytes: int) -> None:
        self._source, self._pos, self._end = source, offset, offset + nbytes

    def read(self, nbytes: int) -> bytes:
        nbytes = min(nbytes, self._end - self._pos)
        self._pos += nbytes
        return bytes(self._source.view(self._pos - nbytes, nbytes))


def check_frames(source: Any, at: int, nbytes: int) -> None:
    """Raise FormatError unless these are whole frames (RFC 8878): not every module looks.

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
            raise FormatError(f"zstd: no frame begins at byte {at - end + nbytes} of {nbytes}")
        flags, single = head[4], head[4] >> 5 & 1
        at += 6 - single + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
        last = 0
        while not last and at + 3 <= end:
            block = int.from_bytes(bytes(source.view(at, 3)), "little")
            last = block & 1
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)  # type 1: one byte repeated
        at += 4 if flags & 4 else 0
    if at != end or not last:
        raise FormatError("zstd: the last frame is cut short, or bytes lie behind it")


def zstd_decode(source: Any, offset: int, nbytes: int, need: int) -> Chunks:
    """Yield the `need` bytes that the frames at source[offset:offset + nbytes] must hold."""
    module = zstd_module()
    check_frames(source, offset, nbytes)
    stream: Any = _Frames(source, offset, nbytes)
    if hasattr(module, "ZstdFile"):
        stream = module.ZstdFile(stream)
    else:
        stream = module.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    left, block = need, b"-"
    try:
        while left and block:
            block = stream.read(min(BLOCK, left))
            left -= len(block)
            yield block
        more = stream.read(1)
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"zstd: the data are damaged ({type(error).__name__}: {error})")
    if left or more:
        found = f"more than {need}" if more else need - left
        raise FormatError(f"zstd: {found} bytes decoded, dtype and shape need {need}")


def zstd_encode(blocks: Any, nbytes: int, level: int) -> Chunks:
    """Yield one zstd frame, with its content size, of blocks of nbytes bytes in all."""
    module = zstd_module()
    compressor = module.ZstdCompressor(level)
    pledge = getattr(compressor, "set_pledged_input_size",
                     getattr(compressor, "_set_pledged_input_size", None))
    if hasattr(compressor, "compressobj"):
        compressor = compressor.compressobj(size=nbytes)
    elif pledge:
        pledge(nbytes)
    else:  # only one call with all of it puts the size into the frame
        yield module.compress(b"".join([bytes(block) for block in blocks]), level)
        return
    for block in blocks:
        yield compressor.compress(block)
    yield compressor.flush()


ENCODINGS = "zstd", "zt.zstd-seekable/1"  # encodings whose bytes are read here


def decode(encoding: str, source: Any, offset: int, nbytes: int, need: int) -> Chunks:
    """Return an iterator over the `need` bytes that coded ones stand for."""
    if encoding == ENCODINGS[0]:
        return zstd_decode(source, offset, nbytes, need)
    return seekable_decode(source, offset, nbytes, need)


# -- [6f] parts ----------------------------------------------------------------------------------


class Part(Storage):
    """Bytes of a tensor that lie together: all of a dense one, the values of a sparse one ...

    `.decoded_nbytes` is None if not known, `.digest` of the file; `.source` None: the file.
    """

    def __init__(self, role: str, dtype: "Optional[str]", offset: int, nbytes: int,
                 decoded_nbytes: "Optional[int]" = None, encoding: str = "raw", order: str = "<",
                 why: "Optional[str]" = None, digest: "Optional[str]" = None,
                 source: Any = None) -> None:
        super().__init__(source, nbytes, None, order, encoding, why)
        self.role, self.dtype, self.offset, self.digest = role, dtype, offset, digest
        self.decoded_nbytes = nbytes if encoding == "raw" else decoded_nbytes

    def misfit(self, shape: Any, need: int) -> "Optional[Tuple[str, str]]":
        """Return (attribute, why) of what cannot be if it holds `need` bytes, or None."""
        given = self.decoded_nbytes
        wrong = "nbytes" if given is None or self.encoding == "raw" else "decoded_nbytes"
        if self.encoding in ENCODINGS and (not self.nbytes or need > MAX_ZSTD * self.nbytes):
            return wrong, f"{self.nbytes} stored bytes cannot decompress to {show(need)}"
        if given in (None, need):
            return None
        return wrong, say_need(f"{given} bytes", self.dtype, shape, need)

    def open(self, source: Any, name: str, shape: Shape, attrs: Any, format: Any) -> Tensor:
        stored = Storage(self.source or source, self.nbytes, None, self.order, self.encoding,
                         self.why)
        coded = self.encoding in ENCODINGS and self.why is None and self.dtype in ITEMSIZE
        make = Derived if coded else Tensor
        return make(name, self.dtype, shape, stored, self.offset, attrs, format)


def part_shapes(layout: str, shape: Any, nnz: Any) -> "Dict[str, Shape]":
    """Return the shapes of the parts by role; `nnz`: elements stored of a sparse tensor."""
    if layout == "csr":
        return Map([("values", (nnz,)), ("indptr", (shape[0] + 1,)), ("indices", (nnz,))])
    if layout == "coo":
        return Map([("values", (nnz,)), ("coords", (len(shape), nnz))])
    return {"data": shape} if layout == "dense" else {}


class Entry:
    """The parts of a tensor as an index describes them.

    Layouts: csr (values, indptr, indices), coo (values, coords), sparse (values, and what a wrong
    entry has of the others), sparsecsr and sparsecoo (data: one blob of all, see [6g]), "" (any:
    the layout is not known, the bytes are those of one part).
    """

    def __init__(self, layout: str, parts: "Dict[str, Part]") -> None:
        self.layout, self.parts = layout, parts
        self.nnz: Any = None  # elements stored, where a field of a sparse tensor says it
        self.fault: Any = None  # arguments of fault_of(), raised for its values

    def main(self) -> Part:
        """Return the part whose bytes are the tensor's `.raw`."""
        for role in ["data", "values"] + list(self.parts):
            if role in self.parts:
                return self.parts[role]
        return Part("", None, 64, 0)

    def open(self, source: Any, name: str, dtype: "Optional[str]", shape: Shape, attrs: Any,
             format: Any, why: "Optional[str]" = None) -> Tensor:
        """Return the tensor, of which no byte is read; `why`: why its values cannot be."""
        main, encoding = self.main(), "sparse"
        if not self.layout:
            encoding, why = main.encoding, main.why or why
        stored = Storage(source, main.nbytes, None, "<", encoding, why, self)
        make = Sparse if self.layout else Tensor
        return make(name, dtype, shape, stored, main.offset, attrs, format)

    def ranges(self) -> Any:
        """Return (offset, nbytes, role) of its parts; "" is the role of its values."""
        main = self.main()
        return [(part.offset, part.nbytes, "" if self.layout and part is main else part.role)
                for part in self.parts.values() if part.source is None] or [(main.offset, 0, "")]


# -- [6g] sparse ---------------------------------------------------------------------------------

MAX_DENSE = 1 << 30  # bytes of the dense form


class Sparse(Derived):
    """A tensor of which some elements are stored (csr or coo); it is read as its dense form."""

    __slots__ = ("_parts",)  # Tensors, when they have been opened

    @property
    def components(self) -> "Dict[str, Tensor]":
        """The parts: values, and indptr and indices (csr) or coords (coo)."""
        if not hasattr(self, "_parts"):
            parts = open_sparse(self, self.stored.entry)
            why = find_bad_index(self.shape, parts, BY_NAME[self.format].RISING)
            if why:
                raise fault_of(self, why)
            self._parts = parts
        return Map(self._parts.items())

    def todense(self) -> Tensor:
        """Return it with its zeros, in memory."""
        return self.contiguous()

    @property
    def layout_keys(self) -> Any:
        return () if self.format is None else BY_NAME[self.format].LAYOUT_KEYS

    def blocks(self) -> Chunks:
        """Yield the dense form: zeros, and the values in their places."""
        parts, size = self.components, self.check_readable()
        if self.nbytes > MAX_DENSE:
            what = f"{self.nbytes} bytes if dense, MAX_DENSE = {MAX_DENSE}"
            raise fault_of(self, what, Unsupported)
        if unpack_values(str(self.dtype), bytes(size))[0]:
            raise fault_of(self, f"{self.dtype} has no zero", Unsupported)
        values = parts["values"].tobytes()
        places = sorted(zip(find_places(self.shape, parts), range(0, len(values), size)))
        places.reverse()  # the next one is the last
        step = BLOCK // size
        for start in range(0, self.size, step):
            block = bytearray(min(step, self.size - start) * size)
            while places and places[-1][0] < start + step:
                place, i = places.pop()
                at = (place - start) * size
                block[at:at + size] = values[i:i + size]
            yield block

    def copy(self, **changes: Any) -> Tensor:
        new = super().copy(**changes)
        if isinstance(new, Sparse) and hasattr(self, "_parts"):
            new._parts = self._parts
        return new

    def contiguous(self) -> Tensor:
        """Return its dense form, in memory, without what described the parts."""
        return super().contiguous().copy(attrs=attrs_without(self, self.layout_keys))

    @staticmethod
    def join(parts: Any, shape: Shape, name: str, attrs: Any, format: Any) -> Tensor:
        """Return the sparse tensor that has these parts."""
        old = parts["values"].stored
        stored = Storage(old.source, old.nbytes, None, "<", "sparse")
        made = Sparse(name, parts["values"].dtype, shape, stored, parts["values"].start, attrs,
                      format)
        made._parts = parts
        return made

    def __reduce__(self) -> Any:
        return Sparse.join, (self.components, self.shape, self.name, self.attrs, self.format)

    def with_values(self, dtype: str) -> Tensor:
        parts = self.components
        parts["values"] = parts["values"].astype(dtype)
        return Sparse.join(parts, self.shape, self.name, self.attrs, self.format)

    def sort_rows(self) -> "Dict[str, Tensor]":
        """Return the parts; of csr, with the columns of each row in rising order."""
        parts = self.components
        places = find_places(self.shape, parts) if "indices" in parts else []
        for key in ("values", "indices") if places != sorted(places) else ():
            part = parts[key]
            elements = sorted(zip(places, pieces(part.tobytes(), part.check_readable())))
            parts[key] = new_tensor(
                part.dtype, part.shape, b"".join([element for _, element in elements]))
        return parts

    @staticmethod
    def make(shape: Any, components: Any, attrs: Facts) -> Tensor:
        layout = {("coords", "values"): "coo", ("indices", "indptr", "values"): "csr"}.get(
            tuple(sorted(components)))
        if shape is None or layout is None or (layout == "csr" and len(shape) != 2):
            raise ValueError("a sparse tensor needs shape= and components {values, coords}, or a "
                             "shape of rank 2 and {values, indptr, indices}")
        parts: "Dict[str, Tensor]" = Map()
        for key in sorted(components, reverse=True):  # values first
            part: Any = components[key]
            if key != "values" and part.dtype not in INDEX_TYPES:
                part = part.astype("uint64")
            values: Any = parts.get("values", part)
            nnz = values.size
            dims = part_shapes(layout, shape, nnz)[key]
            if part.size != count_elements(dims):
                raise ValueError(f"{key} has {part.size} elements, {nnz} values of shape "
                                 f"{show(shape)} need {count_elements(dims)}")
            parts[key] = part.contiguous().copy(shape=dims, name=key)
        why = find_bad_index(shape, parts)
        if why is not None:
            raise ValueError(why)
        return Sparse.join(parts, shape, "", Map(attrs.items()), None)


INDEX_TYPES = ("uint64", "uint32")
BLOBS = ("sparsecsr", "sparsecoo")  # layouts of one blob


def open_sparse(item: Tensor, entry: Any) -> "Dict[str, Tensor]":
    """Return the parts of a sparse tensor of a file; raise where they cannot be its parts."""
    if entry.fault is not None:
        raise fault_of(item, *entry.fault)
    nnz, shape = entry.nnz, item.shape
    if entry.layout in ("csr", BLOBS[0]) and len(shape) != 2:
        raise fault_of(item, f"{entry.layout} needs rank 2, this is rank {len(shape)}")
    if entry.layout in BLOBS:
        return split_blob(item, entry)
    for role, count in ("values", 1), ("coords", len(shape)):  # a size tells it, too
        part = entry.parts.get(role)
        if nnz is None and count and part is not None and part.decoded_nbytes is not None:
            nnz = part.decoded_nbytes // ITEMSIZE.get(part.dtype, 8) // count
    if nnz is None and entry.layout == "csr":
        nnz = open_part(item, entry, "indptr", (shape[0] + 1,))[shape[0]]
    if nnz is None:
        raise fault_of(item, "the number of elements is missing, and the values are compressed")
    return Map([(role, open_part(item, entry, role, dims))
                for role, dims in part_shapes(entry.layout, shape, nnz).items()])


def open_part(item: Tensor, entry: Any, role: str, shape: Shape) -> Tensor:
    """Return a part of a sparse tensor; raise where its bytes are not those of the shape."""
    part = entry.parts.get(role)
    if part is None or (role != "values" and part.dtype not in INDEX_TYPES):
        raise fault_of(item, f"no {role} of uint64 or uint32", Unsupported)
    if part.why is not None:
        raise fault_of(item, part.why, Unsupported)
    name = item.name if role == "values" else role
    made: Tensor = part.open(item.stored.source, name, shape, (), item.format)
    wrong = part.misfit(shape, made.size * made.check_readable())
    if wrong is not None:
        raise fault_of(item, wrong[1], field=role if part.source else "data")
    return made


def split_blob(item: Tensor, entry: Any) -> "Dict[str, Tensor]":
    """Return the parts of one blob: of its decoded bytes, swapped where it is big-endian.

    sparsecsr: indptr uint64 [rows + 1] | indices uint64 [nnz] | values [nnz]
    sparsecoo: of each element the coordinates uint64 [rank] | value
    """
    blob, dtype, shape = entry.parts["data"], str(item.dtype), item.shape
    size, rank, nbytes = ITEMSIZE[dtype], len(shape), blob.nbytes
    if blob.encoding != "raw":
        nbytes = count_elements(shape) * size
    base = blob.open(item.stored.source, item.name, (nbytes // size,), (), item.format)
    layout, step, head = "coo", 8 * rank + size, 0  # bytes of an element, and in front of them
    if entry.layout == BLOBS[0]:
        layout, step, head = "csr", 8 + size, 8 * shape[0] + 8
    nnz, rest = divmod(nbytes - head, step)
    if nnz < 0 or rest:
        raise fault_of(item, f"{nbytes} bytes, expected {head} and {step} for each element")
    if blob.encoding != "raw" or blob.order == ">":  # swapped as a whole, by the item size
        base = base.contiguous()
    places: Any = {"indptr": (0, None), "indices": (head, None), "coords": (0, (8, step)),
                   "values": (head + 8 * nnz, None) if head else (8 * rank, (step,))}
    parts = Map()
    for role, dims in part_shapes(layout, shape, nnz).items():
        code, (start, strides) = dtype if role == "values" else "uint64", places[role]
        stored = Storage(base.stored.source, count_elements(dims) * ITEMSIZE[code], strides)
        parts[role] = Tensor(role, code, dims, stored, base.start + start, (), item.format)
    return parts


def find_bad_index(shape: Shape, parts: "Dict[str, Tensor]",
                   rising: bool = False) -> "Optional[str]":
    """Return what is wrong with the indices, or None. O(stored elements)."""
    nnz = parts["values"].size
    if "coords" in parts:
        axes: Any = zip(pieces(parts["coords"].data, nnz or 1), shape)
    else:
        indptr, axes = parts["indptr"].data, [(parts["indices"].data, shape[1])]
        if indptr[0] != 0 or indptr[shape[0]] != nnz:
            return "indptr does not go from 0 to the number of values"
        for i in range(shape[0]):
            if indptr[i] > indptr[i + 1]:
                return f"indptr falls in row {i}"
    for numbers, n in axes if nnz else ():
        if max(numbers) >= n:
            return f"an index is outside the shape: {max(numbers)} of {n}"
    places = find_places(shape, parts)
    ordered = sorted(places)
    if rising and "indptr" in parts and places != ordered:
        return "the columns do not rise in each row"
    twice = [i for i in range(1, nnz) if ordered[i] == ordered[i - 1]]
    return f"element {show(ordered[twice[0]])} occurs twice" if twice else None


def find_places(shape: Shape, parts: "Dict[str, Tensor]") -> "List[Any]":
    """Return the row-major number of each stored element; where it is long, the coordinates."""
    if "coords" in parts:
        coords, nnz = parts["coords"].data, parts["values"].size
        if count_elements(shape) >> 64:  # numbers of rank x 64 bits: time rank x rank
            return [tuple(coords[i::nnz]) for i in range(nnz)]
        places = [0] * nnz
        for numbers, n in zip(pieces(coords, nnz or 1), shape):
            places = [place * n + i for place, i in zip(places, numbers)]
        return places
    indptr, indices = parts["indptr"].data, parts["indices"].data
    return [i * shape[1] + column for i in range(shape[0])
            for column in indices[indptr[i]:indptr[i + 1]]]


# -- [6h] quantized ------------------------------------------------------------------------------


class Plan:
    """How a quantized tensor is laid out: values, zeros to 4 bytes, scales."""

    def __init__(self, shape: Shape, floats: "Optional[str]", bits: int, scale: str,
                 block: Any) -> None:
        self.floats = floats  # of minifloat(), E4M3 or another; None: two's complement
        self.bits = bits  # value i takes bits [i*b, i*b + b) of the little-endian words
        self.scale, self.count = scale, 1  # a dtype or a minifloat, how many
        self.block = block  # shape of what shares a scale; None: all
        self.step: Any = count_elements(shape)  # elements in turn that share it; None: not clear
        self.scales_at = round_up(self.step * bits + 7 >> 3, 4)
        if block:
            sides = [1] * (len(shape) - len(block)) + block
            self.count = count_elements([-(-n // k) for n, k in zip(shape, sides)])
            self.step = None if set(block[:-1]) - {1} or shape[-1] % block[-1] else block[-1]
        self.nbytes = self.scales_at + self.count * ITEMSIZE.get(scale, 1)


DEQUANTIZE = '; .dequantize() or convert(cast="float32")'


class Quantized(Tensor):
    """A tensor of dtype "qfloat": numbers of few bits, to be multiplied by scales."""

    __slots__ = ()

    def check_readable(self) -> int:
        raise fault_of(self, f"qfloat cannot be read element by element{DEQUANTIZE}", Unsupported)

    blocks = Tensor.stored_blocks

    @property
    def scheme(self) -> Facts:
        """How it is stored, in the words of its format."""
        if BurnSchemes.KEY not in self.attrs:
            raise fault_of(self, "no quantization scheme is known for it", Unsupported)
        return BurnSchemes.scheme_of(self.attrs[BurnSchemes.KEY])

    def plan(self) -> Plan:
        plan: Plan = BurnSchemes.plan(self, self.scheme)
        if plan.nbytes != self.stored.nbytes:
            what = f"{self.stored.nbytes} bytes stored, the scheme needs {plan.nbytes}"
            raise fault_of(self, what, Unsupported)
        return plan

    def runs(self, plan: Plan) -> Chunks:
        """Yield (number of the first, numbers) of PART elements at a time, not scaled."""
        bits, half = plan.bits, 1 << plan.bits - 1
        table = [minifloat(plan.floats, code) if plan.floats else (code ^ half) - half
                 for code in range(2 * half)]
        rows = [[table[byte >> low & 2 * half - 1] for low in range(0, 8, bits)]
                for byte in range(256)]  # what each byte holds
        for start in range(0, self.size, PART):
            count = min(PART, self.size - start)
            raw = self.stored.source.view(self.start + (start * bits >> 3), count * bits + 7 >> 3)
            yield start, [number for byte in raw for number in rows[byte]][:count]

    def factors(self, plan: Plan, start: int, stop: int) -> Any:
        width = ITEMSIZE.get(plan.scale, 1)
        first = self.start + plan.scales_at + start * width
        raw = self.stored.source.view(first, (stop - start) * width)
        if plan.scale in ITEMSIZE:
            return unpack_values(plan.scale, raw)
        return [minifloat(plan.scale, code) for code in raw]

    @property
    def values(self) -> Tensor:
        """The stored numbers, not scaled: int8, or float32 where they are floats."""
        plan = self.plan()
        dtype = "float32" if plan.floats else "int8"
        blocks = (pack_values(dtype, numbers) for _, numbers in self.runs(plan))
        return new_tensor(dtype, self.shape, b"".join(blocks), "<", self.name, self.format)

    @property
    def scales(self) -> Tensor:
        """The scales: one, or one per block, in row-major order of the blocks."""
        plan = self.plan()
        data = pack_values("float32", self.factors(plan, 0, plan.count))
        return new_tensor("float32", (plan.count,), data, "<", self.name, self.format)

    def dequantize(self) -> Tensor:
        """Return values x scales as float32, in memory."""
        return self.floats().contiguous()

    def floats(self) -> Tensor:
        """Return what dequantize() does, computed when its bytes are asked for."""
        plan = self.plan()
        if plan.step is None:
            what = f"the block shape {show(plan.block)} has two meanings among the backends"
            raise fault_of(self, what + "; use blocks that divide the last dimension", Unsupported)
        return Cast(self, "float32")

    def scaled_blocks(self, dtype: str) -> Chunks:
        """Yield values x scales as float32."""
        plan = self.plan()
        step = plan.step
        for start, numbers in self.runs(plan):
            last = (start + len(numbers) - 1) // step
            scales = self.factors(plan, start // step, last + 1)
            places = enumerate(numbers, start % step)
            yield pack_values(dtype, [number * scales[i // step] for i, number in places])

    @staticmethod
    def make(data: Any, shape: Any, attrs: Facts) -> "Quantized":
        """Return a Tensor of stored bytes; an attr holds the scheme."""
        if shape is None or not isinstance(BurnSchemes.scheme_of(attrs.get(BurnSchemes.KEY)), dict):
            raise ValueError("qfloat needs bytes, shape= and " + BurnSchemes.NEEDS)
        raw = bytes(memoryview(data))
        stored = Storage(Memory(raw), len(raw))
        return Quantized("", "qfloat", shape, stored, 0, Map(attrs.items()))


# -- [6i] values ---------------------------------------------------------------------------------


def tensor(data: Any = None, dtype: Any = None, shape: Any = None, *,
           components: Any = None, attrs: Any = None, **more: Any) -> Tensor:
    """Return a Tensor in memory of lists, numbers, buffers or arrays.

    Lists and numbers: int64 (uint64 if needed), float64 or bool unless `dtype` is given. bytes and
    1-D byte views: raw little-endian elements of `dtype`. Arrays bring dtype and shape; `dtype`
    converts, `shape` reshapes. Other keywords are attrs for the format to save to; `attrs` is a
    mapping of more of them, for keys such as "data". ValueError for what is unfit.

    >>> t = tensor([[1, 2], [3, 4]], "float32")
    >>> t.shape, t[1, 0], t.tobytes()[:4].hex()
    ((2, 2), 3.0, '0000803f')
    """
    attrs = dict(attrs or {}, **more)
    shape = None if shape is None else as_shape(shape)
    if components is not None:
        parts = dict([(key, tensor(value, dtype if key == "values" else None))
                      for key, value in dict(components).items()])
        made: Tensor = Sparse.make(shape, parts, attrs)
        return made
    if dtype == "qfloat":
        return Quantized.make(data, shape, attrs)
    made = _from_value(data, None if dtype is None else as_dtype(dtype), attrs)
    if shape is not None:
        if count_elements(shape) != made.size or [n for n in shape if n < 0]:
            raise ValueError(f"{made.size} elements do not have the shape {show(shape)}")
        made = made.contiguous().copy(shape=shape)
    if attrs:
        made.attrs.update(attrs)
    return made


def _from_value(data: Any, dtype: "Optional[str]", attrs: Facts) -> Tensor:
    if isinstance(data, Tensor):
        made = data.copy()
        known = None if made.format is None else BY_NAME[made.format].TENSOR_ATTRS
        if known is not None and [key for key in attrs if key not in known]:
            made = made.copy(attrs=Map(), format=None)  # the user's
    elif isinstance(data, (list, tuple, bool, int, float)):
        made = _from_lists(data, dtype)
    else:
        made = _from_buffer(data, dtype)
    return made if dtype in (None, made.dtype) else made.astype(str(dtype))


def _from_lists(data: Any, dtype: Any) -> Tensor:
    shape, level = [], [data]
    while level and isinstance(level[0], (list, tuple)):
        size = len(level[0])
        if [row for row in level if not isinstance(row, (list, tuple)) or len(row) != size]:
            raise ValueError(f"the lists are ragged at depth {len(shape)}")
        shape.append(size)
        level = [item for row in level for item in row]
    values, types = level, set(map(type, level))
    if types - {int, float, bool}:
        if [item for item in level if getattr(item, "shape", ())]:
            raise ValueError("arrays in a list; one array is a tensor: numpy.stack(...) makes it")
        values = [item.item() if hasattr(item, "item") else item for item in level]
        types = set(map(type, values))
    for one in types - {int, float, bool}:
        raise ValueError(f"{one.__name__} among the numbers")
    if dtype is None:
        dtype = "bool" if types == {bool} else "float64"
        if int in types and float not in types:
            dtype = "uint64" if max(values) > INT_RANGE["int64"][1] else "int64"
    return new_tensor(dtype, tuple(shape), bytes(pack_values(dtype, values)))


BUFFER_KINDS = {"float": "fde", "int": "bhilqn", "uint": "BHILQN", "bool": "?"}
BUFFER_DTYPES = dict([((code, ITEMSIZE[dtype]), dtype) for dtype in STRUCT_CODE
                      for code in BUFFER_KINDS[dtype.rstrip("0123456789")]])


def _from_buffer(data: Any, dtype: Any) -> Tensor:
    """Return a Tensor of a buffer or an array; zero-copy where it is contiguous."""
    if hasattr(data, "mask") and hasattr(data, "filled"):
        raise TypeError("a masked array: .filled(value) says what stands where nothing is")
    view, given = view_of(data, dtype)
    if isinstance(view, Tensor):
        return view
    raw = dtype if given == "uint8" and view.ndim == 1 and not (
        hasattr(data, "dtype") or hasattr(data, "typecode")) else None
    if raw is not None:  # little-endian elements
        if len(view) % ITEMSIZE[raw]:
            raise ValueError(f"{len(view)} bytes are not a whole number of {raw}")
        return new_tensor(raw, (len(view) // ITEMSIZE[raw],), view)
    if given == "uint16" and dtype in ("float16", "bfloat16"):
        raise ValueError(f'uint16 to {dtype}: tensor(x).copy(dtype="{dtype}") if these are the '
                         f'bits, tensor(x).astype("{dtype}") if they are the values')
    order = view.format[0] if view.format[0] in "<>" else NATIVE
    return new_tensor(given, view.shape or (), view, order)


def view_of(data: Any, wanted: Any = None) -> Any:
    """Return a memoryview of a buffer or an array, or a Tensor; its dtype. TypeError if unfit."""
    view, given = _typed_view(data)
    dtype = getattr(data, "dtype", None)
    # What has no code may offer its bytes (numpy.datetime64): its dtype is looked at.
    if given is not None and (dtype is None or given != "uint8" or
                              getattr(dtype, "char", "") == "B"):
        return view, given
    name = str(dtype).split(".")[-1]  # takes longer than all of the above
    view, given = as_buffer(data, name, wanted)
    if view is None or given is None:
        what = type(data).__name__ + ("" if dtype is None else f" of {name}")
        remedy = ""
        if hasattr(data, "items"):
            names = [f'"NAME.{plain(str(key))}": ...' for key in list(data)[:2]]
            remedy = f"; flatten it: {{{', '.join(names)}}}"
        raise TypeError(f"cannot make a tensor of {what}{remedy}")
    return view, given


def as_buffer(data: Any, given: str, wanted: Any) -> "Tuple[Any, Any]":
    """Return a memoryview of an array of any library, or a Tensor; and its dtype."""
    if given in ("|V1", "|V2"):  # what numpy.asarray() of a tensor gives without ml_dtypes
        known = [dtype for dtype in PACK if ITEMSIZE[dtype] == int(given[2:])]
        if wanted not in known and len(known) != 1:
            raise TypeError(f"cannot make a tensor of {given}, bits of "
                            f"{' or '.join(known) or 'any type'}: tensor(x, DTYPE) says which")
        given = wanted if wanted in known else known[0]
    if given == "complex128":
        raise TypeError(f"{given} is not a dtype here; take .real and .imag")
    if hasattr(data, "detach"):  # torch: from any device; conjugated or negative bits as they are
        data = data.detach().cpu().resolve_neg().resolve_conj()
    elif given in ITEMSIZE and hasattr(data, "zero_copy") and data.check_readable():
        return new_tensor(given, tuple(data.shape), data.tobytes()), given  # another copy's Tensor
    bits = f"int{8 * ITEMSIZE.get(given, 1)}"
    if (given in PACK or given[-3:] == "_x2") and hasattr(data, "view"):  # not a buffer
        data = data.view(getattr(sys.modules["torch"], bits) if hasattr(data, "detach") else bits)
    view, found = _typed_view(data.__array__() if hasattr(data, "__array__") else data)
    if given in OPAQUE:
        return opaque_tensor(view, given), given
    return view, given if given in PACK else found


def _typed_view(data: Any) -> "Tuple[Any, Optional[str]]":
    """Return what a buffer shows and its dtype, None for what there is not."""
    try:
        view = memoryview(data)
        return view, BUFFER_DTYPES.get((view.format.lstrip("<>=@"), view.itemsize))
    except (TypeError, ValueError, BufferError):
        return None, None


# -- [7] formats ---------------------------------------------------------------------------------


class Format:
    """What every format answers. FORMATS has one object of each.

    >>> [kind.NAME for kind in FORMATS if "bfloat16" not in kind.DTYPES]
    ['mag', 'primitiv', 'tensorbuffers']
    """

    if TYPE_CHECKING:  # what each has
        NAME = FAMILY = ""  # FAMILY: NAME of the first generation, File.format of all of them
        DTYPES: Any = ()
        SUFFIXES: "Tuple[str, ...]" = ()
        MAGICS: "Tuple[bytes, ...]" = ()  # how its files begin, refused generations too
        read: Any = None  # (cursor) -> (attrs, metadata, tensors); no byte of a tensor is read
    VERSION = ""  # the option version= of save that asks for this generation; "": not written
    TITLE = ""  # as a person calls it
    HOLDS = ""  # what besides tensors
    MARKED = True  # every file begins with one of the MAGICS
    OTHERS: "Tuple[Tuple[bytes, str], ...]" = ()  # (how it begins, why it is not read)
    OPTIONS: "Dict[str, str]" = {}  # of save: name -> doc
    FILE_ATTRS: "Tuple[str, ...]" = ()  # File.attrs that save knows
    TENSOR_ATTRS: "Optional[Tuple[str, ...]]" = ()  # None: any (custom fields)
    DTYPE_ATTRS: "Tuple[str, ...]" = ()  # TENSOR_ATTRS that describe the dtype
    LAYOUT_KEYS: "Tuple[str, ...]" = ()  # TENSOR_ATTRS that say how a sparse tensor is stored
    RISING = False  # columns of csr must rise in each row
    CONTENT: "Tuple[str, ...]" = ()  # attrs that a conversion must not drop
    CARRIES: "Tuple[str, ...]" = ()  # formats of which it can store such attrs of tensors
    TEXTS = False  # its metadata are any text to text
    IDLE_KEYS: "Tuple[str, ...]" = ()  # keys of metadata that a conversion may drop
    HELD_AS: "Dict[Any, Any]" = {}  # type of metadata -> function: the number that is stored
    USES: "Tuple[str, ...]" = ()  # optional parts that its files can need
    MAX_RANK = 1 << 31  # of a tensor that is written
    DIM_BITS = 64  # that a dimension may have
    DATA_ORDER = False  # a File is saved in the order of its data, not of its index
    ALIGN = 1  # in bytes: tensors begin at multiples of it, padding between
    PAD_INSIDE = 0  # fewer zeros between two fields of the index are padding
    PAD_END = ""  # "data" or "structure": padding also where the file ends behind it
    CHECKS: "Tuple[str, ...]" = ("magic", "index", "sizes", "bounds")  # of verify(), as they come
    MARKS: "Dict[str, str]" = {}  # label in its layout -> names or kinds of the fields there
    WRITES = True  # save() writes it
    IN_FRONT = False  # what says where a tensor is lies in front of it: load(partial=True)
    NEEDS: "Tuple[str, ...]" = ()  # formats that a copy with this one has, too

    def detect(self, head: bytes) -> bool:
        """Return whether a file that begins so is of this format, of any generation."""
        return bool([magic for magic in self.MAGICS if head[:len(magic)] == magic])

    def check_magic(self, cursor: Cursor, magic: bytes) -> None:
        """Raise unless the file begins with its magic; refuse other generations by name."""
        head = cursor.head(len(magic))
        if head and head == magic[:len(head)]:
            return
        what, error = f"not a {self.NAME} file: it begins with {quote(head)}", FormatError
        digits = bytes([48 if 48 <= byte < 58 else byte for byte in head])
        for start, why in reversed(self.OTHERS):  # 0000 stands for any digits
            if start in (head[:len(start)], digits[:len(start)]):
                what, error = why, Unsupported
        raise cursor.error(what, "magic", offset=0, check="magic", error=error)

    write: Any = None  # (items, metadata, attrs, options) -> blocks; what is unfit is told first

    def make_file(self, source: Any, parsed: Any, options: Any) -> File:
        """Return what load() returns, of what read() returns."""
        return File(self, source, parsed[0], parsed[1], parsed[2], options)

    check_range: Any = None  # (source, offset, nbytes, digest) -> (status, why): row of checksums()

    def checksums(self, tensor: Tensor) -> Chunks:
        """Yield (label, offset, nbytes, digest) of each checksum of a tensor."""
        return iter(())

    def slow_bytes(self, nbytes: int, digest: Any) -> int:
        """Return how many bytes check_range() hashes slowly for a row of checksums()."""
        return 0

    def alignment(self, attrs: Any) -> int:
        return self.ALIGN

    def padding(self, start: int, stop: int, before: str, after: str, full: Any, attrs: Any) -> Any:
        """Return (nbytes, byte, doc) of the pieces of a gap that are padding by the rule.

        `before`, `after`: what the gap lies between, "structure", "data" or "end" (of the file);
        full(start, stop, byte): are all bytes there that byte?
        """
        nbytes, align = stop - start, self.alignment(attrs)
        if before == after == "structure" and nbytes < self.PAD_INSIDE and full(start, stop, 0):
            return [(nbytes, 0, "alignment")]
        if after != "data" and (before, after) != (self.PAD_END, "end"):
            return []
        return [(min(nbytes, -start % align), 0, f"to a multiple of {align}")]

    def invalid_byte(self, tensor: Tensor) -> "Optional[Tuple[int, str]]":
        """Return (position, what is wrong) of a byte that no value has."""
        return None

    def notes(self, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        """Yield which rules of the canonical form a file does not keep."""
        return iter(())

    def is_content(self, key: str, of_file: bool = False) -> bool:
        return key in self.CONTENT

    def check_options(self, options: Any) -> None:
        """Raise TypeError for an option of save that is not known."""
        for key in [key for key in options if key not in self.OPTIONS]:
            texts = ", ".join(["%s (%s)" % pair for pair in self.OPTIONS.items()]) or "none"
            raise TypeError(f"saving {self.NAME} has no option {show(key)}; there are {texts}")

    def choose(self, key: str, default: Any, options: Any, attrs: Any) -> Any:
        """Return an option of save, else the attr of this name, else the default."""
        given = attrs if options.get(key) is None else options
        return default if given.get(key) is None else given[key]

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        """Return (key, why) of metadata that cannot be written."""
        why = f"{self.TITLE} holds text to text" if self.TEXTS else "there is no place for metadata"
        return [(key, why) for key, value in metadata.items()
                if not (self.TEXTS and is_text(key) and is_text(value))]

    def own_attrs(self, tensor: Tensor) -> Facts:
        """Return the attrs that count here: those of this format or made by the user."""
        return tensor.attrs if tensor._attrs and tensor.format in (None, self.NAME) else {}

    def passes(self, tensor: Tensor) -> bool:
        """Return whether a tensor of unknown values can be written as it is stored."""
        own = self.own_attrs(tensor)
        return tensor.dtype in (None, "qfloat") and bool(
            [key for key in self.DTYPE_ATTRS if key in own])

    def check_items(self, items: Items, metadata: Any, options: Facts) -> Any:
        """Return (tensor name, why) of what cannot be written, by the rules for all formats."""
        problems = []
        for name, item in items:
            problems += [(name, why + self.remedy(item)) for why in self.misfits(item)]
            if item._attrs and item.format is None and self.TENSOR_ATTRS is not None:
                problems += [(name, f"attribute {show(key)} is not known here")
                             for key in item.attrs if key not in self.TENSOR_ATTRS]
        texts = [f"{show(key)} = {show(metadata[key])} ({why})"
                 for key, why in self.misfit_metadata(metadata, options)]
        if texts:
            raise ValueError("metadata that %s cannot hold: %s; metadata={} leaves it out"
                             % (self.TITLE, ", ".join(texts)))
        return problems + [(name, why) for name, _ in items for why in self.check_name(name)]

    def misfits(self, item: Tensor) -> Chunks:
        """Yield why a tensor cannot be written, but for its name and attrs."""
        why = item.stored.why
        if is_sparse(item) and "sparse" not in self.USES:
            yield "sparse"
        if (why or item.dtype not in self.DTYPES) and not self.passes(item):
            yield why or f"{item.dtype} ({self.TITLE} holds {', '.join(self.DTYPES)})"
        if item.ndim > self.MAX_RANK:
            yield f"{item.ndim} dimensions, {self.MAX_RANK} is the limit"
        if [n for n in item.shape if n >> self.DIM_BITS]:
            yield f"a dimension over 2**{self.DIM_BITS}-1"

    def remedy(self, item: Tensor) -> str:
        """Return the end of a message that a tensor cannot be saved as it is."""
        if is_sparse(item) and "sparse" not in self.USES:
            return "; .todense() or convert(dense=True)"
        if item.dtype is None or item.dtype in self.DTYPES or item.stored.why:
            return ""
        if item.dtype == "qfloat":
            return DEQUANTIZE
        return "; .astype() or convert(cast=) to one of them"

    def check_name(self, name: str) -> "List[str]":
        return [] if is_text(name) else ["the name is not Unicode text (a lone surrogate)"]

    def refuse(self, problems: Any) -> None:
        """Raise ValueError if there are problems; several: a line for each."""
        lines = [f"{len(problems)} things:"] if len(problems) > 1 else []
        lines += [f"tensor {quote(name)}: {text}" for name, text in problems]
        if lines:
            raise ValueError(f"{self.TITLE} cannot hold {join_lines(lines)}")

    @staticmethod
    def lay_out(head: bytes, items: Items, starts: Any, end: int, tail: bytes = b"") -> Chunks:
        """Yield a file: head, each tensor at its start, zeros between and up to end, tail."""
        yield head
        at = len(head)
        for (_, item), start in zip(items, starts):
            if start > at:
                yield bytes(start - at)
            yield from item.blocks() if item.stored.why is None else item.stored_blocks()
            at = start + item.nbytes
        yield bytes(end - at) + tail


def is_sparse(item: Tensor) -> bool:
    return isinstance(item, Sparse)


def same_bytes(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors of as many bytes have the same row-major ones."""
    if (a.stored, a.start) == (b.stored, b.start):
        return True
    a, b = [item if item.stored.strides is None and item.lies("<") else item.contiguous()
            for item in (a, b)]
    return all(bytes(x) == bytes(y) for x, y in zip(a.parts(), b.parts()))


def until_0(shape: Any) -> "List[int]":
    """Return the dimensions before the first 0: some readers refuse their product if too large."""
    return list(shape)[:(list(shape) + [0]).index(0)]


def choose_generation(kind: "Format", options: Facts, tensors: Any, values: Any = (),
                      attrs: Any = None) -> "Format":
    """Return the generation to write: version=, else that of a File, of tensors or file attrs."""
    kinds = [kind] + [later for later in LATER if later.FAMILY == kind.NAME]
    written = Map([(one.VERSION, one) for one in kinds if one.VERSION])
    given = options.get("version")
    if written and given is not None:
        if str(given) not in written:
            texts = ", ".join(written)
            raise ValueError(f"{kind.TITLE}: version {show(given)} is not written; only {texts}")
        return written[str(given)]
    origins = [tensors.kind] if isinstance(tensors, File) else [
        BY_NAME[item.format] for item in values if item.format is not None]
    origins += [one for one in LATER if attrs and one.VERSION == attrs.get("version")]
    return ([origin for origin in origins if origin in kinds and written] + [kind])[0]


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

    Only the checksum over [0, end) tells the layouts apart. The specification's is written, with
    CRC-32; both are read. magnetron 0.1.2 lists no tensors, and opens no file with metadata of type
    0, which integers from 0 on are. Snapshots of magnetron 0.2: [7a3]; of 0.1.5 to 0.1.9: not read.
    """

    NAME = FAMILY = TITLE = "mag"
    HELD_AS: Any = {bool: int}
    VERSION = "1"
    IN_FRONT = True
    HOLDS = "metadata: numbers; up to 6 dimensions"
    SUFFIXES = (".mag",)
    MAGICS = (b"MAG!", b"MAG&")
    DTYPES = ("float32", "float16", "bool", "int32")  # in the order of their numbers, 0 to 3
    OPTIONS = {"version": "1, or 300 for magnetron 0.2"}
    FILE_ATTRS = ("version", "layout")
    TENSOR_ATTRS = ("aux",)
    USES = ("mag300",)
    MAX_RANK = 6
    DIM_BITS = 63
    ALIGN = 64
    PAD_END = "data"
    CHECKS = ("magic", "checksum", "index", "bounds", "sizes")
    HEADER = (
        ("magic", "4s", "mag"), ("version", "I", "storage version"),
        ("checksum", "I", "CRC-32 of the index"), ("num_tensors", "I", "tensor records"),
        ("num_meta_kv", "I", "metadata records"), ("aux", "I", "reserved"))
    META = (("type", "I", "0 u64, 1 i64, 2 float64"), ("payload", "8s", "the value's bits"),
            ("key_length", "I", "bytes of the key"))
    KEY_LENGTH = (("key_length", "I", "bytes of the key"),)
    SPEC = (("shape", "6q", "dimensions, then fill"), ("dtype", "B", "0-3: f32 f16 bool i32"),
            ("data_length", "Q", "bytes"), ("data_offset", "Q", "offset in the file"),
            ("aux", "I", "reserved"))
    M012 = (("aux", "I", "dtype + 256 * rank"), ("numel", "Q", "elements"),
            ("data_offset", "Q", "offset in the file"))
    LATER_DTYPES: Any = (  # of snapshots, by number
        "float32 float16 bfloat16 float8_e4m3fn bool uint8 int8 uint16 int16 uint32 int32 uint64 "
        "int64").split()
    PAYLOADS = {0: "<Q", 1: "<q", 2: "<d"}
    MARKS = {"end": "padding data"}
    OTHERS = ((b"MAG&", "MAG& is not read; magnetron before July 2025 does"),)
    SNAPSHOTS = {100: "mag snapshot 100 is not read; magnetron 0.1.6 does",
                 200: "mag snapshot 200 is not read; magnetron 0.1.9 does"}

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"MAG!")
        header = cursor.record(self.HEADER)
        if header[1] != 1:
            what = self.SNAPSHOTS.get(
                header[1], f"version {header[1]} is not read, only version 1")
            raise cursor.error(what, "version", error=Unsupported if header[1] else FormatError)
        spec = self.find_layout(cursor, header)
        if header[5]:
            what = f"header aux is {header[5]}, a version-1 file has 0"
            raise cursor.error(what, "aux", error=Unsupported)
        end, meta, rows = self.walk(cursor, spec, header)
        metadata: Facts = Map()
        for i, row in enumerate(meta):
            cursor.where = "metadata", i
            cursor.one(self.add_number, cursor, metadata, *row)
        cursor.where = ()
        if rows and not spec and rows[0][1][2] == rows[0][1][1] % 64 == 0:
            cursor.where = "tensors", 0
            raise cursor.error("relative offsets (magnetron commit 6bc9747, unreleased) are not "
                               "read", "data_offset", error=Unsupported)
        tensors = cursor.entries(
            rows, None, self.open_spec if spec else self.open_012, "tensors", low=end,
            high=cursor.end, fields=("key", "data_length" if spec else "numel", "data_offset"))
        attrs = Map([("version", 1), ("layout", "spec" if spec else "magnetron-0.1.2")])
        return attrs, metadata, tensors

    def find_layout(self, cursor: Cursor, header: Any) -> bool:
        """Return whether the layout is the specification's, by the checksum."""
        sums: Any = None
        for spec in (True, False) if header[3] else (True,):
            apart = Cursor(cursor.source)  # so that only the right layout is read by ours
            apart.pos = cursor.pos
            try:
                end, meta, _ = self.walk(apart, spec, header)
            except FormatError:
                continue
            tail = cursor.source.read(12, end - 12)
            whole = crc32(tail, crc32(b"MAG!" + pack("<II", 1, 0)))  # the checksum taken as zero
            if header[2] in (whole, crc32(tail)):
                return spec
            slow = crc32c(tail)
            if header[2] == slow:  # without tensors, the types of metadata tell the library
                return spec if header[3] else bool([row for row in meta if row[0] not in (1, 2)])
            sums = sums or (header[2], whole, slow)
        if sums is not None:
            raise cursor.error("checksum: %08X stored, CRC-32 of the records gives %08X, CRC-32C "
                               "%08X" % sums, "checksum", offset=8, check="checksum")
        return True  # walk() will say what is wrong

    def walk(self, cursor: Cursor, spec: bool, header: Any) -> Any:
        """Return (end, metadata, tensors); only lengths are checked.

        Of a tensor: (key, fields, shape of 0.1.2).
        """
        total, count, left = header[3], header[4], cursor.end - 24
        cursor.limit("num_meta_kv", count, 0, left // 16, "as many as fit (cut short?)")
        most = (left - 16 * count) // (73 if spec else 24)
        cursor.limit("num_tensors", total, 0, most, "as many as fit (cut short?)")
        meta = []
        for i in range(count):
            cursor.where = "metadata", i
            kind, payload, nbytes = cursor.record(self.META)
            meta.append((kind, payload, cursor.take(nbytes, "key", "name of the number")))
        rows, dims = [], ()
        for i in range(total):
            cursor.where = "tensors", i
            if not spec:
                fields = cursor.record(self.M012)
                rank = fields[0] >> 8 & 255
                dims = cursor.record((("shape", f"{rank}Q", "dimensions"),)) if rank else ()
            nbytes, = cursor.record(self.KEY_LENGTH)
            key = cursor.take(nbytes, "key", "name of the tensor")
            rows.append((key, cursor.record(self.SPEC) if spec else fields, dims))
        cursor.where = ()
        return cursor.pos, meta, rows

    @staticmethod
    def text(cursor: Cursor, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeError:
            raise cursor.error("the key is not UTF-8", "key")

    def add_number(self, cursor: Cursor, metadata: Facts, kind: int, payload: bytes,
                   raw: bytes) -> None:
        key = self.text(cursor, raw)
        if key in metadata:
            raise cursor.error(f"metadata key {show(key)} twice", "key")
        if kind not in self.PAYLOADS:
            what = f"metadata {show(key)} has type {kind}; 0, 1 and 2 are known"
            raise cursor.error(what, "type", error=Unsupported)
        metadata[key], = unpack_from(self.PAYLOADS[kind], payload, 0)

    def open_spec(self, cursor: Cursor, _: int, row: Any) -> Tensor:
        """Return a tensor in the layout of the specification: -1 ends the shape, or 0 with data."""
        raw, fields, _ = row
        *places, number, nbytes, offset, aux = fields
        name, rank = self.text(cursor, raw), 0
        while rank < 6 and places[rank] != -1 and (places[rank] or not nbytes):
            rank += 1
        shape, cursor.tensor = tuple(places[:rank]), name
        if min(shape + (0,)) < 0:
            raise cursor.error(f"a dimension is below -1: {places}", "shape", check="sizes")
        if len(set(places[rank:])) > 1:
            what = f"dimensions behind the entry that ends the shape: {places}"
            raise cursor.error(what, "shape", check="sizes")
        dtype = self.dtype_of(cursor, number, "dtype")
        return Tensor(name, dtype, shape, Storage(cursor.source, nbytes),
                      offset if nbytes else min(offset, cursor.end), ("aux", aux) if aux else (),
                      self.NAME)

    def open_012(self, cursor: Cursor, _: int, row: Any) -> Tensor:
        raw, (aux, numel, offset), shape = row
        cursor.tensor = name = self.text(cursor, raw)
        if not 1 <= len(shape) <= 6:
            raise cursor.error(f"rank {len(shape)}; 1 to 6 exist", "aux", check="sizes")
        if aux >> 16:
            what = "aux is 0x%x; its upper half must be 0" % aux
            raise cursor.error(what, "aux", check="sizes")
        if [n for n in shape if not 1 <= n < 1 << 63]:
            what = f"a dimension is 0 or over 2**63-1: {show(shape)}"
            raise cursor.error(what, "shape", check="sizes")
        if numel != count_elements(shape):
            what = f"{numel} elements, the shape {show(shape)} has {count_elements(shape)}"
            raise cursor.error(what, "numel", check="sizes")
        dtype = self.dtype_of(cursor, aux & 255, "aux")
        stored = Storage(cursor.source, numel * ITEMSIZE[dtype])
        return Tensor(name, dtype, shape, stored, offset if stored.nbytes else min(
            offset, cursor.end), (), self.NAME)

    def dtype_of(self, cursor: Cursor, number: int, field: str) -> str:
        if number > 3:
            what = f"dtype {number} is not one of version 1 (0 to 3)"
            raise cursor.error(what, field, error=Unsupported)
        return self.DTYPES[number]

    def padding(self, start: int, stop: int, before: str, after: str, full: Any, attrs: Any) -> Any:
        rows = super().padding(start, stop, before, after, full, attrs)
        if attrs["layout"] != "spec":
            rows = [(nbytes, 255, doc) for nbytes, _, doc in rows]
            start += sum([row[0] for row in rows])
            if after == "end" and full(start, stop, 0):
                rows.append((stop - start, 0, "the writer's estimate of the size, not trimmed"))
        return rows

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        misfits = []
        for key, value in metadata.items():
            if not is_text(key) or "\0" in key or not 0 < len(encode_text(key)) < 1 << 16:
                misfits.append((key, "keys are text of 1 to 65535 bytes without NUL"))
            elif not isinstance(value, float) and not (
                    isinstance(value, (int, bool)) and -(1 << 63) <= value < 1 << 64):
                misfits.append((key, "mag holds numbers only: u64, i64, float64"))
        return misfits

    def check_name(self, name: str) -> "List[str]":
        rules = ("an empty name", not name), ("a NUL in the name", "\0" in name)
        return super().check_name(name) + [why for why, broken in rules if broken]

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        self.refuse(self.check_items(items, metadata, options))
        rows, starts = [], []
        for key, value in metadata.items():
            kind, raw = 2 if isinstance(value, float) else int(value < 0), encode_text(key)
            payload = pack(self.PAYLOADS[kind], value)
            rows.append(pack_record(self.META, kind, payload, len(raw)) + raw)
        keys = [encode_text(name) for name, _ in items]
        end = 24 + sum([len(row) for row in rows]) + sum([73 + len(raw) for raw in keys])
        offset = round_up(end, 64) if items else end
        for _, item in items:
            starts.append(offset)
            offset = round_up(offset + item.nbytes, 64)
        if offset >> 64:
            raise ValueError("mag cannot hold 2**64 bytes of data")
        for raw, (_, item), start in zip(keys, items, starts):
            fill = (0 if item.size else -1,) * (6 - item.ndim)
            fields = item.shape + fill + (self.DTYPES.index(item.dtype), item.nbytes, start, 0)
            rows += [pack("<I", len(raw)), raw, pack_record(self.SPEC, *fields)]
        index = b"".join(rows)
        head = [b"MAG!", 1, 0, len(items), len(metadata), 0]
        head[2] = crc32(index, crc32(pack_record(self.HEADER, *head)))
        return self.lay_out(pack_record(self.HEADER, *head) + index, items, starts, offset)


# -- [7a3] mag300 --------------------------------------------------------------------------------


class Mag300(Format):
    """.mag, snapshot 300 (magnetron 0.2.0 to 0.2.2), written as by 0.2.2.

    0            magic "MAG!" 4 | version, aux (bit 0: the data are big-endian): u32 each |
                 meta_offset, meta_span, blob_offset, blob_span: u64 each
    meta_offset  JSON: manifest_ver 1, timestamp, magnetron_ver, snapshot_ver, usr_metadata {},
                 tensor_map {name: {shape, dtype, dtype_id, offset, nbytes}}
    blob_offset  data: each tensor at a multiple of 4096, less than 4096 bytes between

    dtype_id counts, not the name. float8_e4m3fn and unknown numbers are listed, and kept.
    """

    NAME, FAMILY, TITLE, SUFFIXES, VERSION = "mag300", "mag", "mag 300", (), "300"
    MAGICS = (b"MAG!\x2c\x01\0\0",)
    NAMES = [dtype.replace("bool", "boolean") for dtype in Mag.LATER_DTYPES]
    DTYPES = tuple([dtype for dtype in Mag.LATER_DTYPES if dtype != "float8_e4m3fn"])
    FACTS = {"timestamp": "1970-01-01T00:00:00+00:00", "magnetron_ver": "0.2.2",
             "snapshot_ver": "0.3.0"}  # written, unless a file of 300 has others
    OPTIONS = {"version": Mag.OPTIONS["version"],
               "timestamp": "text, else that of the file, or of 1970"}
    FILE_ATTRS = ("version", "byte_order") + tuple(FACTS)
    TENSOR_ATTRS = ("dtype", "dtype_id")
    MAX_RANK, ALIGN, PAD_END, IN_FRONT = 16, 4096, "structure", True
    MAX_INDEX_BYTES = 256 << 20
    HEADER = (
        ("magic", "4s", "mag"), ("version", "I", "snapshot version"),
        ("aux", "I", "1: the data are big-endian"), ("meta_offset", "Q", "where the JSON begins"),
        ("meta_span", "Q", "its bytes"), ("blob_offset", "Q", "where the data begin"),
        ("blob_span", "Q", "bytes of data"))
    ENTRY = Schema(
        ("shape", INTEGERS, True, "dimensions"), ("dtype", TEXT, True, "name of the type"),
        ("dtype_id", UNSIGNED, True, "its number, which counts"),
        ("offset", UNSIGNED, True, "from blob_offset"), ("nbytes", UNSIGNED, True, "bytes"))
    ROOT = Schema(
        ("manifest_ver", UNSIGNED, True, "1"), ("timestamp", TEXT, True, "of the writing"),
        ("magnetron_ver", TEXT, True, "which wrote it"), ("snapshot_ver", TEXT, True, ""),
        ("usr_metadata", MAP, True, "of the user"),
        ("tensor_map", Schema(other=("any", "entry of a tensor", ENTRY)), True, "tensors"))

    def read(self, cursor: Cursor) -> Any:
        aux, meta, span, start, size = cursor.record(self.HEADER)[2:]
        end = cursor.end
        cursor.limit("aux", aux, 0, 1, "whether data are big-endian", Unsupported)
        cursor.limit("meta_offset", meta, 44, end, "behind the header, in the file")
        cursor.limit("meta_span", span, 0, end - meta, "the file ends (cut short?)")
        cursor.limit("blob_offset", start, meta + span, max(start, end), "behind the JSON")
        if start % 4096:
            raise cursor.error(f"blob_offset is {start}, not a multiple of 4096", "blob_offset")
        cursor.limit("meta_span", span, 0, self.MAX_INDEX_BYTES, "MAX_INDEX_BYTES", Unsupported)
        root, tensors = self.read_index(cursor, meta, span, start, ">" if aux else "<")
        cursor.together(self.check_places, cursor, tensors, start, size)
        count = len(tensors)
        if start + size > end:
            cursor.keep_whole(tensors, "blob_offset" if start > end else "blob_span")
        if len(tensors) == count:
            cursor.limit("blob_offset", start, 0, end, "in the file")
            cursor.limit("blob_span", size, 0, end - start, "the file ends (cut short?)")
        attrs = Map([("version", 300)] + [(key, root[key]) for key in self.FACTS])
        if aux:
            attrs["byte_order"] = "big"
        return attrs, root["usr_metadata"], tensors

    def read_index(self, cursor: Cursor, meta: int, span: int, start: int, order: str) -> Any:
        """Return the map of the JSON, and the tensors."""
        cursor.pos, cursor.root = meta, "meta"
        root = cursor.json(span, self.ROOT, "meta", b"", python=True)
        cursor.limit("manifest_ver", root["manifest_ver"], 1, 1, "only 1 is known", Unsupported)
        return root, cursor.entries(root["tensor_map"], self.ENTRY, self.open_entry, "tensor_map",
                                    about=(start, order))

    def check_places(self, cursor: Cursor, tensors: Any, start: int, size: int) -> None:
        """Raise unless each tensor is at the next multiple of 4096, and the last ends the data."""
        at = 0
        for item in sorted(tensors.values(), key=lambda item: item.start):
            offset, nbytes = item.start - start, item.stored.nbytes
            if not at <= offset <= min(at + 4095, size - nbytes) or nbytes and offset % 4096:
                what = (f"{nbytes} bytes at {offset}; expected at the next multiple of 4096 from "
                        f"{at}, and up to {size}")
                raise cursor.error(what, "tensor_map", item.name, "offset", tensor=item.name,
                                   check="bounds")
            at = offset + nbytes
        if size - at >= 4096:
            raise cursor.error(f"{size} bytes of data, but tensors end at {at}", "blob_span")

    def open_entry(self, cursor: Cursor, name: str, entry: Any, start: int, order: str) -> Tensor:
        if not is_text(name):
            raise cursor.error("the name has a lone surrogate", tensor=name)
        shape, text, number, offset, nbytes = [entry[key] for key in self.ENTRY.needed]
        attrs: Any = ()
        why = None
        dtype: Any = Mag.LATER_DTYPES[number] if number < len(Mag.LATER_DTYPES) else None
        need = count_elements(shape) * ITEMSIZE.get(dtype, 1)
        if dtype and need != nbytes:
            what = say_need(f"{nbytes} bytes", dtype, shape, need)
            raise cursor.error(what, "nbytes", tensor=name, check="sizes")
        if ITEMSIZE.get(dtype) == 1:
            order = "<"
        if dtype not in self.DTYPES:
            dtype, attrs = None, ("dtype", text, "dtype_id", number)
            why = f"dtype_id {number} ({show(text)}) is not known"
        elif text != self.NAMES[number]:
            attrs = "dtype", text
        stored = Storage(cursor.source, nbytes, None, order, "raw", why)
        return Tensor(name, dtype, tuple(shape), stored, start + offset, attrs, self.NAME)

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        rows = [(key, json_misfit({key: value}, MAX_DEPTH - 1)) for key, value in metadata.items()]
        return [row for row in rows if row[1]]

    def passes(self, tensor: Tensor) -> bool:
        return "dtype_id" in self.own_attrs(tensor) and tensor.stored.order == "<"

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        self.refuse(self.check_items(items, metadata, options))
        entries, end = Map(), 0
        for name, item in items:
            own = self.own_attrs(item)
            number = Mag.LATER_DTYPES.index(item.dtype) if item.dtype else own["dtype_id"]
            text = self.NAMES[number] if item.dtype else own["dtype"]
            start = round_up(end, 4096) if item.nbytes else end
            end = start + item.nbytes
            entries[name] = Map(zip(
                self.ENTRY.needed, (list(item.shape), text, number, start, item.nbytes)))
        if not end:
            raise ValueError(f"{self.TITLE} cannot hold 0 bytes of data; version=1 can")
        facts = [self.choose(key, text, options, attrs) for key, text in self.FACTS.items()]
        root = Map(zip(self.ROOT.needed, [1] + facts + [Map(metadata.items()), entries]))
        for _, why in self.ROOT.wrongs(root):
            raise ValueError(why)
        data = encode_text(json_text(root))
        base = round_up(44 + len(data), 4096)
        head = pack_record(self.HEADER, b"MAG!", 300, 0, 44, len(data), base, end) + data
        starts = [base + entry["offset"] for entry in entries.values()]
        return self.lay_out(head, items, starts, base + end)


# -- [7b] ztensor --------------------------------------------------------------------------------


def say_unknown(what: str, value: Any) -> str:
    """Return why the values of a tensor are not read: this copy may be what lacks a name."""
    gone = [name for name in WITHOUT if show(value)[1:].startswith(name)]
    return f"this copy was made without {gone[0]}" if gone else f"{what} {show(value)} is not known"


class ZFamily(Format):
    """What all generations of zTensor share: data, an index in CBOR behind them, checksums."""

    FAMILY = "ztensor"
    HOLDS = "custom fields per tensor, checksums, zstd, big-endian data"
    SUFFIXES = (".zt", ".ztensor")
    DTYPES: Any = tuple([row[0] for row in NUMBERS])
    ALIGN = 64
    CHECKS = ("magic", "index", "bounds", "sizes", "checksums", "contents")
    MAX_INDEX_BYTES = 256 << 20
    ENCODED = "raw", "zstd"
    DIGEST = "digest"  # key
    DIGESTS: Facts = {"crc32c": 8, "sha256": 64}  # digits
    CODEC = ""  # of parts that are hashed as decoded, not as stored

    def check_place(self, cursor: Cursor, start: int, nbytes: int, end: int, *path: Any) -> None:
        """Raise unless a part begins at a multiple of ALIGN, not at 0, and ends before `end`."""
        align = self.ALIGN
        if not align <= start <= end - nbytes or start % align:
            what = f"{nbytes} bytes at {start}, expected a multiple of {align}, all before {end}"
            raise cursor.error(what, *path, check="bounds")

    def checksums(self, tensor: Tensor) -> Chunks:
        """Yield (label, offset, nbytes, (digest, bytes decoded or None)) of the parts."""
        stored, entry = tensor.stored, tensor.stored.entry
        rows: Any = [("data", tensor.start, tensor.nbytes, tensor.attrs.get(self.DIGEST), stored)]
        if entry:
            rows = [(part.role, part.offset, part.decoded_nbytes, part.digest, part)
                    for part in entry.parts.values() if part.source is None]
        for role, start, decoded, digest, part in rows if stored.source.of_file else ():
            coded = self.CODEC and part.encoding != "raw"
            if digest is not None and not (coded and part.why):
                label = "" if role == "data" else plain(role) + ": "
                yield label, start, part.nbytes, (digest, decoded if coded else None)

    def check_range(self, source: Any, offset: int, nbytes: int, digest: Any) -> "Tuple[str, str]":
        given, decoded = digest
        algorithm, colon, digits = given.partition(":")
        size, digits = self.DIGESTS.get(algorithm), digits.lower()
        if size is None or not colon:
            return "-", f"{self.DIGEST} {show(given)} is of an unknown algorithm"
        plain = digits[2:] if digits[:2] == "0x" else digits
        readable = not plain.strip("0123456789abcdef")
        if readable and plain and size == 8 and plain != digits:  # with any zeros in front
            plain = "%08x" % int(plain, 16)
        if not readable or len(plain) != size:
            return "FAIL", f"the {self.DIGEST} {show(given)} cannot be read"
        blocks = (decode(self.CODEC, source, offset, nbytes, decoded) if decoded is not None else
                  Tensor("", None, (), Storage(source, nbytes), offset).stored_blocks())
        try:
            found = self.hash_blocks(algorithm, blocks)
        except FormatError as error:
            return "-" if isinstance(error, Unsupported) else "FAIL", error.what
        if found.lower().endswith(plain):
            return "ok", algorithm + " agrees"
        return "FAIL", f"{algorithm}: the bytes give {found}, the file says {given}"

    def hash_blocks(self, algorithm: str, blocks: Any) -> str:
        digest = Digest(algorithm)
        for block in blocks:
            digest.update(block)
        return digest.text()

    def own_attrs(self, tensor: Tensor) -> Facts:
        if tensor.format not in self.CARRIES:
            return super().own_attrs(tensor)
        kind: Any = BY_NAME[tensor.format]
        found: Facts = kind.content_of(tensor)
        return found


class CustomCbor(PlainCbor):
    """Reads what the real library reads of a custom field: no integers over 64 bits."""

    def item(self, at: int, depth: int, is_key: bool = False) -> "Tuple[Any, int]":
        value, end = super().item(at, depth, is_key)
        if self.data[at] >> 5 == 6 or (type(value) is int and value < -(1 << 63)):
            raise ValueError("an integer below -2**63 or over 64 bits")
        return value, end


class ZTensor(ZFamily):
    """zTensor 0.1 (specification 0.1.0; crate and wheels ztensor 0.1.0 to 0.1.4).

    0      magic "ZTEN0001" 8 | zeros up to 64 (if there is a tensor)
    64     blob of tensor 0 | zeros to a multiple of 64 | blob of tensor 1 | ...
    S      CBOR array, one map per tensor (N bytes, right behind the last blob, not aligned)
    end-8  N u64

    Real maps are of indefinite length, real zstd frames without content size. Tensors of another
    layout, dtype or encoding are listed, with their bytes. Layout "sparse": sparse_format "csr"
    (indptr, indices) or "coo" (coords), each an inline array or a map that places a blob; the
    entry's blob: the values. "sparsecsr", "sparsecoo" of the real library: see split_blob().
    """

    NAME = "ztensor"
    TITLE = "zTensor 0.1"
    MAGICS = (b"ZTEN", b"\x89ZT2\r\n\x1a\n")
    MARKS = {"S": "index"}
    OTHERS = ((MAGICS[1], "zTensor 2.x is another format"),
              (b"ZTEN1000", "zTensor 1.x is not read; ztensor 1.2.3 does"),
              (b"ZTEN0000", "another version of zTensor; only 0.1 and 2 are read"))
    CHOICES = Schema(
        ("encoding", one_of(*ZFamily.ENCODED), None, "raw or zstd"),
        ("level", (lambda n: "" if type(n) is int and -131073 < n < 23 else "-131072 to 22"), None,
         "of zstd, 3 unless given"),
        ("data_endianness", one_of("little", "big"), None, "little or big"),
        ("checksum", one_of("none", "crc32c", "sha256"), None, "none, crc32c or sha256"))
    OPTIONS = dict([(key, row[1]) for key, row in CHOICES.rows.items()],
                   version="0.1, or 2 for ztensor 2")
    FILE_ATTRS = ("version",)
    TENSOR_ATTRS = None
    USES = ("zstd", "sparse", "ztensor2")
    CARRIES = ("ztensor2",)
    VERSION = "0.1"
    MAGIC_RECORD = (("magic", "8s", "zTensor 0.1"),)
    TRAILER = (("index_size", "Q", "bytes of CBOR before"),)
    COMPONENT = Schema(
        ("offset", UNSIGNED, True, "first stored byte"),
        ("size", UNSIGNED, True, "bytes stored"), ("dtype", "any", False, "uint64 or uint32"),
        ("encoding", "any", False, "raw or zstd"),
        ("data_endianness", one_of("little", "big"), None, "byte order, if raw"),
        ("checksum", TEXT, None, "of the stored bytes"), other=("any", "custom field"))
    ENTRY = Schema(
        ("name", TEXT, True, "name of the tensor"),
        ("offset", UNSIGNED, True, "first stored byte"),
        ("size", UNSIGNED, True, "bytes stored"), ("dtype", TEXT, True, "type of the elements"),
        ("layout", TEXT, False, "dense, sparse ..."), ("shape", INTEGERS, True, "dimensions"),
        ("encoding", TEXT, True, "raw or zstd"),
        ("data_endianness", one_of("little", "big"), None, "byte order, if raw"),
        ("checksum", TEXT, None, "of the stored bytes"),
        ("sparse_format", "any", False, "csr or coo"), ("nnz", "any", False, "elements stored"),
        ("indptr", "any", False, "csr: row pointers", COMPONENT),
        ("indices", "any", False, "csr: columns", COMPONENT),
        ("coords", "any", False, "coo: coordinates", COMPONENT),
        other=("any", "custom field"), keys=TEXT)
    INDEX = Schema(other=("any", "entry of a tensor", ENTRY), of=list, doc="one map per tensor")
    KEYS = ("name", "offset", "size", "dtype", "shape")  # the other keys stay in Tensor.attrs
    MECHANICS = ("layout", "encoding", "data_endianness", "checksum")
    READS = ("dense", "sparse") + BLOBS  # layouts
    LAYOUT_KEYS = ("layout", "sparse_format", "nnz", "indptr", "indices", "coords")
    DTYPE_ATTRS = ("dtype",)
    DIGEST = "checksum"

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"ZTEN0001")
        cursor.record(self.MAGIC_RECORD)
        nbytes = self.find_index(cursor)
        data_end = cursor.pos
        index = cursor.cbor(nbytes, self.INDEX, "index", ("index",), PlainCbor)
        tensors = cursor.entries(index, self.ENTRY, self.open_entry, "index", about=(data_end,),
                                 fields=("name", "size", "offset"))
        return Map([("version", "0.1.0")]), Map(), tensors

    def find_index(self, cursor: Cursor) -> int:
        """Move to the index; return its bytes."""
        if cursor.end < 17:
            what = f"{cursor.end} bytes, at least 17 are needed"
            raise cursor.error(what, "index", offset=8)
        cursor.pos = end = cursor.end - 8
        nbytes, = cursor.record(self.TRAILER)
        if not 1 <= nbytes <= end - 8:
            raise cursor.error(NO_END % self.TITLE, "index_size")
        cursor.limit("index_size", nbytes, 1, self.MAX_INDEX_BYTES, "MAX_INDEX_BYTES", Unsupported)
        cursor.pos = end - nbytes
        return int(nbytes)

    def open_entry(self, cursor: Cursor, _: int, facts: Any, end: int) -> Tensor:
        """Return the tensor of an entry; its data end at `end` at most."""
        name, start, nbytes, dtype, dims = [facts.pop(key) for key in self.KEYS]
        shape, encoding, layout = tuple(dims), facts["encoding"], facts.get("layout", "dense")
        size, why, make = ITEMSIZE[dtype] if dtype in self.DTYPES else 0, None, Tensor
        for what, value, known in (
                ("layout", layout, layout in self.READS),
                ("encoding", encoding, encoding in self.ENCODED), ("dtype", dtype, size)):
            if not known:
                why = say_unknown(what, value)
        if not size:
            facts["dtype"], dtype = dtype, None
        self.check_place(cursor, start, nbytes, end, "offset")
        if encoding == "zstd":
            need = count_elements(shape) * size if layout == "dense" else 0
            if not nbytes or need > MAX_ZSTD * nbytes:
                what = f"{nbytes} stored bytes cannot decompress to {show(need)}"
                raise cursor.error(what, "size", check="sizes")
            make = Tensor if why else Derived
        big = encoding == "raw" and size != 1 and facts.get("data_endianness") == "big"
        stored = Storage(cursor.source, nbytes, None, ">" if big else "<", encoding, why)
        made: Tensor = make(name, dtype, shape, stored, start, facts, self.NAME)
        if layout != "dense" and not why:
            made = self.open_sparse(cursor, made, end)
        return made

    def is_content(self, key: str, of_file: bool = False) -> bool:
        return not of_file and key not in self.MECHANICS + self.DTYPE_ATTRS

    def content_of(self, tensor: Tensor) -> Facts:
        """Return the attrs that the other generations store, too: the custom fields."""
        return Map([(key, value) for key, value in tensor.attrs.items()
                    if self.is_content(key) and key not in tensor.layout_keys])

    def passes(self, tensor: Tensor) -> bool:
        if tensor.stored.why is None or tensor.format != self.NAME:
            return False
        layout, values = tensor.attrs.get("layout", "dense"), tensor.attrs.values()
        places = [value for value in values if isinstance(value, dict) and "offset" in value]
        fits = layout == "dense" or layout != "sparse" and not places  # no other parts, to be lost
        return fits and is_text(tensor.dtype or tensor.attrs.get("dtype"))

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        problems = self.check_items(items, metadata, options)
        for _, why in self.CHOICES.wrongs(Map(options.items())):
            raise ValueError(why)
        chosen, known = [], {}  # known: choices by what decides them
        for name, item in items:
            flat: Any = item._attrs or () if item.format in (None, self.NAME) else None
            usual = type(flat) is tuple
            key = flat, item.format, item.stored.encoding, item.stored.why, type(item)
            choices, wrong = (known.get(key) if usual else None) or self._choose_all(item, options)
            if usual and choices["layout"] == "dense" and not choices["custom"]:
                known[key] = choices, wrong  # custom fields: 1, 1.0 and True would be one
            chosen.append(choices)
            problems += [(name, why) for why in wrong]
        self.refuse(problems)
        return self._chunks(items, chosen)

    def _choose_all(self, item: Tensor, options: Facts) -> "Tuple[Facts, List[str]]":
        """Return how a tensor will be stored, "copy": as it is, and what is wrong with that."""
        attrs, unknown, wrong = self.own_attrs(item), self.passes(item), []
        users = item.format in self.CARRIES  # of another generation: none of them is ours
        own = {} if users else attrs
        checksum = str(self.choose("checksum", "none", {}, own)).partition(":")[0]
        choices = Map([(key, self.choose(key, default, options, given)) for key, default, given in (
            ("encoding", "raw", own), ("data_endianness", "little", own),
            ("checksum", checksum, {}), ("level", 3, {}))])
        for path, why in self.CHOICES.wrongs(choices):
            if path[0] == "checksum" or not unknown:
                wrong.append(f"attribute {why}; the option {path[0]}= replaces it")
        for key in ("encoding", "data_endianness") if unknown else ():
            if options.get(key) not in (None, attrs.get(key)):
                wrong.append(f"{item.stored.why}; it can only be copied as it is stored")
        choices["copy"] = unknown or (item.stored.encoding == choices["encoding"] != "raw"
                                      and options.get("encoding") is options.get("level") is None)
        if choices["encoding"] == "zstd" and not choices["copy"]:
            zstd_module()  # raises where there is none
        Digest(choices["checksum"])  # raises where its module is missing
        choices["layout"] = attrs.get("layout", "dense") if unknown else "dense"
        skip = self.MECHANICS + (self.DTYPE_ATTRS if item.dtype is None else ())
        if is_sparse(item):
            skip += self.choose_sparse(item, choices, wrong)
        choices["custom"] = custom = {key: attrs[key] for key in attrs if users or key not in skip}
        wrong += [f"attribute {show(key)}: {why}" for key in custom
                  for why in self._misfit_custom(key, custom[key], self.KEYS + skip)]
        return choices, wrong

    @staticmethod
    def _misfit_custom(key: Any, value: Any, taken: Any) -> Chunks:
        """Yield why a custom field cannot be written, or read by the real library."""
        try:  # one level deeper than it is: the real library reads 127
            if not isinstance(key, str) or key in taken:
                raise ValueError("a custom field cannot be called so")
            CustomCbor(cbor_dumps({key: value}, depth=2)).read()
        except (ValueError, TypeError) as error:
            yield str(error)

    def _chunks(self, items: Items, chosen: "List[Facts]") -> Chunks:
        yield b"ZTEN0001"
        at, index, known = 8, [cbor_head(4, len(items))], {}
        for (name, item), choices in zip(items, chosen):
            custom, entry = choices["custom"], {}
            blobs = [(item, entry)]  # what is stored, and the facts of each
            if is_sparse(item):
                blobs = self.sparse_blobs(item, entry, custom)
            for part, facts in blobs:
                yield from self._blob(part, choices, at, facts)
                at = facts["offset"] + facts["size"]
            look = (entry["size"], entry["dtype"], item.shape, choices["layout"],
                    choices["encoding"], entry.get("data_endianness"))
            if look not in known:  # what follows the offset comes again
                entry.update(layout=choices["layout"], shape=item.shape)
                keep(known, look, self._pack_fields(entry, list(self.ENTRY.rows)[2:8]))
            raw = encode_text(name)
            index += [b"\xbf\x64name", cbor_head(3, len(raw)), raw, b"\x66offset",
                      cbor_head(0, entry["offset"]), known[look],
                      self._pack_fields(entry, ["checksum"]),
                      self._pack_fields(custom, sorted(custom)), b"\xff"]
        data = b"".join(index)
        yield data + pack_record(self.TRAILER, len(data))

    @staticmethod
    def _pack_fields(entry: Facts, keys: "List[str]") -> bytes:
        return b"".join([cbor_dumps(key) + cbor_dumps(entry[key], sort=True, depth=2)
                         for key in keys if key in entry])

    def _blob(self, part: Tensor, choices: Facts, at: int, facts: Facts) -> Chunks:
        """Yield the stored bytes of a tensor or a part, padding first; note where and what."""
        stored, algorithm, encoding = part.stored, choices["checksum"], choices["encoding"]
        facts["dtype"], facts["encoding"] = part.dtype or part.attrs["dtype"], encoding
        if (part.attrs.get("data_endianness") is not None if stored.why is not None
                else encoding == "raw" and part.itemsize != 1):
            facts["data_endianness"] = choices["data_endianness"]
        order = ">" if facts.get("data_endianness") == "big" else "<"
        facts["offset"] = start = round_up(at, 64)
        yield bytes(start - at)
        copied = choices["copy"] or (stored.encoding == encoding == "raw"
                                     and stored.strides is None and stored.order == order)
        blocks = part.stored_blocks() if copied else part.blocks()
        if not copied and encoding != "raw":
            blocks = zstd_encode(part.parts(), part.nbytes, choices["level"])
        if not copied and order == ">":
            blocks = (swap(piece, part.check_readable()) for piece in part.parts())
        digest = None if algorithm == "none" else Digest(algorithm)
        at = start
        for block in blocks:
            at += len(block)
            if digest is not None:
                digest.update(block)
            yield block
        facts["size"] = at - start
        if digest is not None:
            facts["checksum"] = digest.text()

    def open_sparse(self, cursor: Cursor, item: Tensor, end: int) -> Tensor:
        """Return the sparse tensor that has the entry of this one."""
        facts, stored, layout = item.attrs, item.stored, item.attrs["layout"]
        part = Part("values" if layout == "sparse" else "data", item.dtype, item.start,
                    stored.nbytes, None, stored.encoding, stored.order, None, facts.get("checksum"))
        entry = Entry(layout, {part.role: part})
        if layout == "sparse":
            self.read_parts(cursor, facts, entry, end)
        return entry.open(cursor.source, item.name, item.dtype, item.shape, facts, self.NAME)

    def read_parts(self, cursor: Cursor, facts: Any, entry: Entry, end: int) -> None:
        """Add layout, nnz and parts of a sparse tensor to its Entry, or what is wrong with it."""
        layout, nnz = facts.get("sparse_format"), facts.get("nnz")
        if layout not in ("csr", "coo"):
            error = Unsupported if type(layout) is str else FormatError
            entry.fault = f"sparse_format is {show(layout)}, not csr or coo", error
            return
        entry.layout, entry.nnz = layout, nnz
        if "nnz" in facts:
            if not all_u64([nnz]):
                what = f"nnz is {show(nnz)}, not an unsigned integer"
                entry.fault = what, FormatError, "nnz"
        elif layout == "coo" and entry.parts["values"].decoded_nbytes is None:
            entry.fault = "nnz is missing, and the values are compressed",
        for role in part_shapes(layout, (0, 0), 0):
            try:
                if role in facts:
                    entry.parts[role] = self.read_part(cursor, role, facts[role], end)
            except FormatError as error:
                entry.fault = entry.fault or (error.what, type(error), role)

    def read_part(self, cursor: Cursor, role: str, facts: Any, end: int) -> Part:
        """Return a part of a sparse tensor: a map that places it, or its numbers."""
        numbers: Any = facts
        if type(numbers) is list and all_u64(numbers):
            data = bytearray()
            for some in pieces(numbers, PART):  # in the file each may be one byte
                data += pack_values("uint64", some)
            return Part(role, "uint64", 0, len(data), source=Memory(data))
        cursor.check(self.COMPONENT, facts, role)
        dtype, encoding, why = facts.get("dtype", "uint64"), facts.get("encoding", "raw"), None
        if dtype not in INDEX_TYPES or encoding not in self.ENCODED:
            why = f"dtype {show(dtype)}, encoding {show(encoding)}"
        big = encoding == "raw" and facts.get("data_endianness") == "big"
        part = Part(role, dtype, facts["offset"], facts["size"], None, encoding,
                    ">" if big else "<", why, facts.get("checksum"))
        self.check_place(cursor, part.offset, part.nbytes, end, role, "offset")
        return part

    def choose_sparse(self, item: Any, choices: Facts, wrong: Any) -> Any:
        """Choose how a sparse tensor is stored; return the attrs that its parts replace."""
        choices["layout"] = "sparse"
        try:
            parts = [key for key in item.components if key != "values"]
        except FormatError as error:
            wrong.append(error.what)
            parts = []
        return ("nnz", "sparse_format") + tuple(parts)

    def sparse_blobs(self, item: Any, entry: Facts, custom: Facts) -> Any:
        """Return (part, map of its facts) of what is stored of a sparse tensor."""
        parts = item.sort_rows()
        custom["nnz"] = parts["values"].size
        custom["sparse_format"] = "coo" if "coords" in parts else "csr"
        blobs = [(parts.pop("values"), entry)]
        return blobs + [(parts[key], custom.setdefault(key, {})) for key in sorted(parts)]


# -- [7b3] ztensor2 ------------------------------------------------------------------------------

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
SHARD_LETTERS = LETTERS + LETTERS.upper() + "_-."
A_NAME = "text of 1 to 1024 bytes without NUL"
SHORT_DTYPES: Facts = dict([  # f32 -> float32
    ("bf16" if dtype[0] == "b" else dtype[0] + str(8 * ITEMSIZE[dtype]), dtype)
    for dtype in ZFamily.DTYPES if dtype != "bool"])


def is_name(key: Any) -> bool:
    """Return whether a map of zTensor 2 may have this key: text of 1 to 1024 bytes without NUL."""
    return is_text(key) and 0 < len(key.encode()) <= 1024 and "\0" not in key


def is_shard(key: Any) -> bool:
    return is_name(key) and len(key) <= 64 and not key.strip(SHARD_LETTERS) and key[0] != "."


def misfit_digest(value: Any) -> str:
    """Return what a digest should be, if the value is not one."""
    name, _, digits = value.partition(":") if type(value) is str else ("", "", "")
    fine = name and digits and not digits.strip("0123456789abcdef") and not name.strip(LETTERS)
    return "" if fine else "ALGORITHM:DIGITS, both lower case"


class StrictCbor(PlainCbor):
    """Deterministic CBOR (RFC 8949 4.2.1) without tags, at most 32 containers deep.

    It names its parent, not super(): for a manifest of many shards, a fifth of the time.
    """

    def __init__(self, data: bytes, base: int = 0) -> None:
        super().__init__(data, base)
        self.keys: "Dict[int, bytes]" = {}  # by depth: the last key of the map that is read

    def refuse(self, at: int) -> FormatError:
        return self.error("not deterministic (no tags; 32 levels; shortest heads; sorted keys)", at)

    def head(self, at: int) -> "Tuple[int, int, int]":
        major, size, end = PlainCbor.head(self, at)
        nbytes = end - at - 1
        short = nbytes and size < 24 or nbytes > 1 and not size >> 4 * nbytes
        if major == 6 or major < 6 and (size < 0 or short):
            raise self.refuse(at)
        return major, size, end

    def item(self, at: int, depth: int, is_key: bool = False) -> "Tuple[Any, int]":
        if depth > 32:
            raise self.refuse(at)
        return PlainCbor.item(self, at, depth, is_key)

    def simple(self, start: int, size: int, at: int) -> Any:
        value, at = PlainCbor.simple(self, start, size, at)
        data = self.data[start:at]
        if data == b"\xf7" or type(value) is float and data != cbor_float(value):
            raise self.refuse(start)
        return value, at

    def map(self, size: int, at: int, depth: int) -> Any:
        self.keys[depth] = b""
        return PlainCbor.map(self, size, at, depth)

    def key(self, at: int, depth: int) -> Any:
        if b"\x7f" < self.data[at:at + 1] < b"\xc0" and Cbor.head(self, at):
            raise self.error("a map key is an array or a map", at, self.WRONG_KEY)
        key, end = PlainCbor.key(self, at, depth)
        coded = self.data[at:end]
        if coded <= self.keys[depth]:  # the same, too
            raise self.refuse(at)
        self.keys[depth] = coded
        return key, end


class ZTensor2(ZFamily):
    """zTensor 2 (specification draft 4; crates and wheels ztensor 2.0.0 to 2.1.2).

    0       magic 89 "ZT2" 0d 0a 1a 0a | zeros
    4096 k  blobs, each at a multiple of 4096 (written: of 65536), zeros between
    4096 m  manifest, one map of deterministic CBOR: "objects": name -> {shape, layout, parts:
            role -> {dtype, blob [offset, length], type?, digest?, encoding?, ...}}, "attributes"?
    end-40  manifest_offset u64 | manifest_length u64 | its XXH3-64 u64 | 2 u32 | 0 u32 | magic

    Without a manifest it is a data shard of another file; parts that lie in shards are listed only.
    Digests are those of decoded bytes. The canonical form is written: raw and dense, equal contents
    once.
    """

    MARKS = {"4096 k": "data", "4096 m": "manifest"}
    NAME = "ztensor2"
    TITLE = "zTensor 2"
    VERSION = "2"
    MAGICS: Any = (b"\x89ZT2\r\n\x1a\n",)
    OPTIONS = {"version": ZTensor.OPTIONS["version"]}
    FILE_ATTRS: Any = ("version", "shards", "data_shard")
    TENSOR_ATTRS: Any = ("attributes",)
    CONTENT = ("attributes",)
    CARRIES: Any = ("ztensor", "ztensor2")
    READS = {"dense": "dense", "zt.sparse_csr/1": "csr", "zt.sparse_coo/1": "coo"}
    ALIGN, PLACE = 4096, 65536
    MAX_RANK = 64
    LOGICAL = dict([(dtype.replace("float8", "f8").replace("8m0fnu", "8m0"), dtype)
                    for dtype in ITEMSIZE if dtype not in SHORT_DTYPES.values()])
    TYPES: Facts = dict([(name, (over, bits)) for names, over, bits in (  # bits of an element
        ("bool f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0", "u8", 8), ("f4_e2m1", "u8", 4),
        ("complex64", "f32", 64), ("complex128", "f64", 128)) for name in names.split()])
    DTYPES = tuple(ITEMSIZE)
    CODES: Any = dict([(dtype, {"dtype": code}) for code, dtype in SHORT_DTYPES.items()] + [
        (dtype, {"dtype": "u8", "type": code}) for code, dtype in LOGICAL.items()])  # as written
    FACTS = ("dtype", "type", "encoding", "digest", "shard")  # kept of a part
    LAYOUT_KEYS = ("layout", "parts")
    RISING = True
    DIGESTS = {"xxh3": 16, "sha256": 64}
    CODEC = "zt.zstd-seekable/1"
    MAGIC_RECORD = (("magic", "8s", "zTensor 2"),)
    FOOTER = (("manifest_offset", "Q", "a multiple of 4096"),
              ("manifest_length", "Q", "bytes of CBOR; 0: a data shard"),
              ("manifest_hash", "Q", "its XXH3-64"), ("version", "I", "2"),
              ("reserved", "I", "0, ignored"), ("magic_end", "8s", "the magic again"))
    NAMED = must_be(str, A_NAME, is_name)
    PART = Schema(
        ("dtype", one_of(*SHORT_DTYPES), True, "type of the elements"),
        ("blob", RANGE, True, "offset, bytes"), ("type", TEXT, False, "over the dtype"),
        ("digest", misfit_digest, False, "of decoded bytes"),
        ("encoding", TEXT, False, "raw if absent"), ("shard", TEXT, False, "the file"),
        ("decoded_length", UNSIGNED, False, "bytes decoded"))
    USER = Schema(other=("any", "of the user"), keys=NAMED)
    ENTRY = Schema(
        ("shape", INTEGERS, True, "dimensions"), ("layout", TEXT, True, "dense ..."),
        ("attributes", USER, False, "of the user"),
        ("parts", Schema(other=(PART, "a part"), keys=USER.keys), True, "parts by role"))
    SHARD = Schema(("size", (lambda n: "" if all_u64([n]) and n > 47 else "an integer from 48 on"),
                    True, "bytes of the file"), ("digest", misfit_digest, True, "of the file"))
    TOP = Schema(
        ("attributes", USER, False, "of the user"),
        ("shards", Schema(other=(SHARD, "a file"), keys=must_be(
            str, "the name of a shard", is_shard)), False, "files by name"),
        ("objects", MAP, True, "by name", Schema(other=("any", "a tensor", ENTRY))),
        doc="the manifest")

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, self.MAGICS[0])
        if cursor.end < 48:
            raise cursor.error(f"{cursor.end} bytes; the shortest file has 48", "magic", offset=0)
        cursor.record(self.MAGIC_RECORD)
        end, attrs = cursor.end - 40, Map([("version", "2")])
        nbytes = self.find_manifest(cursor, end)
        if not nbytes:
            attrs["data_shard"] = True
            return attrs, Map(), Map()
        start = cursor.pos
        top = cursor.cbor(nbytes, self.TOP, "manifest", codec=StrictCbor)
        if "shards" in top:
            attrs["shards"] = top["shards"]
        ranges = [("", start, start + nbytes, "", "")]  # shard, start, stop, name, role
        tensors = cursor.entries(top["objects"], self.ENTRY, self.open_entry, "objects",
                                 about=(end, top.get("shards", {}), ranges))
        cursor.one(self.check_overlap, cursor, ranges)
        return attrs, top.get("attributes", Map()), tensors

    def find_manifest(self, cursor: Cursor, end: int) -> int:
        """Move to the manifest; return its bytes, 0 in a data shard."""
        cursor.pos = end
        start, nbytes, digest, version, _, magic = cursor.record(self.FOOTER)
        if magic != self.MAGICS[0]:
            raise cursor.error(NO_END % self.TITLE, "magic_end")
        if version != 2:
            raise cursor.error(f"version is {version}, only 2 is read", "version",
                               error=Unsupported)
        low, high = (4096, end) if nbytes else (0, 0)
        if start % 4096 or not low <= start <= high:
            what = f"manifest_offset is {start}, expected a multiple of 4096 from {low} to {high}"
            raise cursor.error(what, "manifest_offset")
        cursor.limit("manifest_length", nbytes, 0, end - start, "up to the footer")
        cursor.limit("manifest_length", nbytes, 0, self.MAX_INDEX_BYTES, "MAX_INDEX_BYTES",
                     Unsupported)
        data = cursor.source.read(start, nbytes)
        found = xxh3_64([data]) if nbytes else 0
        if found != digest:
            what = f"the manifest gives {found:016x}, the file says {digest:016x}"
            raise cursor.error(what, "manifest_hash")
        cursor.pos = start
        return int(nbytes)

    def check_overlap(self, cursor: Cursor, ranges: Any) -> None:
        """Raise for the first part whose bytes overlap others, unless they are the same."""
        ranges.sort()
        for last, row in zip(ranges, ranges[1:]):
            if row[1] < last[2] and row[0] == last[0] and row[1:3] != last[1:3]:
                name, role = row[3:] if row[3] else last[3:]  # the manifest has no name
                what = f"its bytes {row[1]} to {row[2]} overlap others in part"
                raise cursor.error(what, "objects", name, "parts", role, "blob", tensor=name,
                                   check="bounds")

    def open_entry(self, cursor: Cursor, name: str, facts: Any, *limits: Any) -> Tensor:
        """Return the tensor of an object; its attrs are what the file says."""
        if not is_name(name):
            raise cursor.error(f"{show(name)} is not {A_NAME}")
        shape, layout, found = tuple(facts["shape"]), facts["layout"], facts["parts"]
        parts = Map([(role, self.open_part(cursor, ("parts", role), part, *limits))
                     for role, part in found.items()])
        self.check_parts(cursor, facts, parts)
        for part in found.values():
            for key in [key for key in part if key not in self.FACTS or part[key] is None]:
                del part[key]  # of many objects, little is kept
        attrs: Any = ("layout", layout)
        if facts.get("attributes") is not None:
            attrs += "attributes", facts["attributes"]
        known = self.READS.get(layout, "")
        if known == "dense":
            for key, value in found["data"].items():
                if key != "dtype" and (key != "type" or parts["data"].dtype is None):
                    attrs += key, value
            return parts["data"].open(cursor.source, name, shape, attrs, self.NAME)
        attrs += "parts", found
        dtype, why = getattr(parts.get("values"), "dtype", None), None
        if not (known and dtype) or "data" in parts:
            dtype, known, why = None, "", say_unknown("layout", layout)
        return Entry(known, parts).open(cursor.source, name, dtype, shape, attrs, self.NAME, why)

    def content_of(self, tensor: Tensor) -> Facts:
        return tensor.attrs.get("attributes") or Map()

    def open_part(self, cursor: Cursor, where: Any, found: Any, end: int, shards: Any,
                  ranges: Any) -> Part:
        """Return a part of an object; add its place to the ranges."""
        (offset, nbytes), code, shard = found["blob"], found.get("type"), found.get("shard")
        encoding, why = found.get("encoding"), None
        dtype, decoded = SHORT_DTYPES[found["dtype"]], found.get("decoded_length", nbytes)
        if (encoding is None) != ("decoded_length" not in found):
            field = "decoded_length" if encoding is None else "encoding"
            raise cursor.error("encoding and decoded_length come together", *where + (field,))
        if self.TYPES.get(code, (found["dtype"],))[0] != found["dtype"]:
            raise cursor.error(f"type {show(code)} over dtype {found['dtype']}", *where + ("type",))
        if shard is not None:
            if shard not in shards:
                raise cursor.error(f"shards lacks {show(shard)}", *where + ("shard",))
            end = shards[shard]["size"] - 40
        self.check_place(cursor, offset, nbytes, end, *where + ("blob",))
        if code is not None:
            dtype = self.LOGICAL.get(code)
            why = None if dtype else f"type {show(code)} is not decoded here"
        if encoding not in (None, self.CODEC):
            why, encoding = say_unknown("encoding", encoding), "other"
        if nbytes:
            ranges.append((shard or "", offset, offset + nbytes, cursor.where[1], where[1]))
        if shard is not None:
            offset, nbytes, encoding = 0, 0, "shard"
            why = f"it is in the shard {show(shard)} of {end + 40} bytes, a file of its own"
        return Part(where[1], dtype, offset, nbytes, decoded, encoding or "raw", "<", why,
                    found.get("digest"))

    def check_parts(self, cursor: Cursor, entry: Any, parts: Any) -> None:
        layout, shape, facts = self.READS.get(entry["layout"], ""), entry["shape"], entry["parts"]
        rank, nnz, roles = len(shape), 0, part_shapes(layout, shape or (0,), 0)
        if not parts or (roles and sorted(parts) != sorted(roles)):
            what = f"the parts are {show(list(parts))}, expected {show(list(roles)) or 'one'}"
            raise cursor.error(what, "parts")
        if (rank > 64 or count_elements(shape) >> 64 or (layout == "csr" and rank != 2)
                or (layout == "coo" and not rank)):
            what = f"shape {show(shape)}, expected at most 64 dimensions and 2**64-1 elements"
            raise cursor.error(f"{what}; of csr 2, of coo 1 or more", "shape")
        if layout in ("csr", "coo"):
            index, each = (parts["indices"], 1) if layout == "csr" else (parts["coords"], rank)
            for role in [role for role in sorted(roles) if role != "values"]:
                dtype = parts[role].dtype
                if dtype not in ("uint32", "uint64") or dtype != index.dtype:
                    field = "type" if "type" in facts[role] else "dtype"
                    what = f"{field} is {show(facts[role][field])}, expected u32 or u64, all alike"
                    raise cursor.error(what, "parts", role, field)
            nnz = index.decoded_nbytes // ITEMSIZE[index.dtype] // each
        shapes = part_shapes(layout, shape, nnz)
        for role, part in parts.items():
            _, bits = self.TYPES.get(facts[role].get("type"), ("", 8 * ITEMSIZE.get(part.dtype, 0)))
            need = part.decoded_nbytes or 0
            if bits and role in shapes:
                need = -(-count_elements(shapes[role]) * bits // 8)
            wrong = part.misfit(shapes.get(role), need)
            if wrong is not None:
                field = "blob" if wrong[0] == "nbytes" else "decoded_length"
                raise cursor.error(wrong[1], "parts", role, field, check="sizes")

    def padding(self, start: int, stop: int, before: str, after: str, full: Any, attrs: Any) -> Any:
        step = self.PLACE if full(start, stop, 0) else self.ALIGN
        piece = min(stop - start, -start % step), 0, f"to a multiple of {step}"
        return [] if stop % self.ALIGN else [piece]

    def hash_blocks(self, algorithm: str, blocks: Any) -> str:
        if algorithm == "xxh3":
            return "xxh3:%016x" % xxh3_64(blocks)
        return super().hash_blocks(algorithm, blocks)

    def slow_bytes(self, nbytes: int, digest: Any) -> int:
        text, decoded = digest
        return (decoded or nbytes) if text.startswith("xxh3:") and fast_xxh3() is None else 0

    def invalid_byte(self, tensor: Tensor) -> "Optional[Tuple[int, str]]":
        stored, at = tensor.stored, 0
        if tensor.attrs.get("type") == "f4_e2m1" and stored.encoding == "raw" and tensor.size & 1:
            if bytes(tensor.raw[-1:]) > b"\x0f":
                return stored.nbytes - 1, "the unused half of the last byte is not 0"
        if tensor.dtype == "bool" and stored.why is None and not is_sparse(tensor):
            for block in tensor.parts():
                rest = bytes(block).lstrip(b"\0\1")
                if rest:
                    return at + len(block) - len(rest), f"a bool of byte {rest[0]}, not 0 or 1"
                at += len(block)
        return None

    def attributes_of(self, tensor: Tensor) -> Any:
        found = self.own_attrs(tensor)
        return found.get("attributes") if tensor.format is None else found

    def misfit_metadata(self, metadata: Any, options: Facts, level: int = 2) -> Any:
        misfits = []
        for key, value in metadata.items():
            try:
                if not is_name(key):
                    raise ValueError("the key is not " + A_NAME)
                data = b"\x81" * level + cbor_dumps(value, sort="bytes")
                StrictCbor(data).read()
            except (ValueError, TypeError) as error:
                misfits.append((key, getattr(error, "what", str(error))))
        return misfits

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        problems = self.check_items(items, metadata, options)
        for name, item in items:
            if item._attrs or item.dtype == "bool":
                problems += [(name, why) for why in self._wrong_content(item)]
        self.refuse(problems)
        return self._pieces(items, metadata)

    def check_name(self, name: str) -> "List[str]":
        wrong = [] if is_name(name) else ["the name is not " + A_NAME]
        return super().check_name(name) or wrong

    def misfits(self, item: Tensor) -> Chunks:
        yield from super().misfits(item)
        if count_elements(until_0(item.shape)) >> 64:  # so the real reader multiplies
            yield f"shape {show(item.shape)}: over 2**64-1 elements"

    def _wrong_content(self, item: Tensor) -> Chunks:
        found = self.attributes_of(item) or Map()
        if not hasattr(found, "items"):
            yield "attributes is not a map"
        else:
            for key, why in self.misfit_metadata(found, {}, 4):
                yield f"attribute {show(key)}: {why}"
        odd = self.invalid_byte(item)
        if odd is not None:
            yield f"{odd[1]} (byte {odd[0]})"

    def _pieces(self, items: Items, metadata: Any) -> Chunks:
        yield self.MAGICS[0]
        at, objects, known = 8, {}, {}
        zeros = memoryview(bytes(self.PLACE))
        for name, item in sorted(items, key=lambda pair: encode_text(pair[0])):
            digest, nbytes = self.hash_blocks("xxh3", item.blocks()), item.nbytes
            start = round_up(at, self.PLACE)
            other, place = known.setdefault((nbytes, digest), (item, start))
            if place != start and same_bytes(item, other):
                start = place
            elif nbytes:
                yield zeros[:start - at]
                yield from item.blocks()
                at = start + nbytes
            part = dict(self.CODES[item.dtype], blob=(start, nbytes), digest=digest)
            objects[name] = {"shape": item.shape, "layout": "dense", "parts": {"data": part}}
            attributes = item._attrs and self.attributes_of(item)
            if attributes:
                objects[name]["attributes"] = attributes
        top = {"objects": objects, "attributes": metadata} if metadata else {"objects": objects}
        data, start = cbor_dumps(top, sort="bytes"), round_up(at, self.PLACE)
        yield bytes(start - at) + data
        yield pack_record(self.FOOTER, start, len(data), xxh3_64([data]), 2, 0, self.MAGICS[0])


def seekable_decode(source: Any, offset: int, nbytes: int, need: int) -> Chunks:
    """Yield the `need` bytes; FormatError where the table does not agree with them.

    zstd frames of one size, but the last, then a skippable frame:
    5e 2a 4d 18 | nbytes u32 | stored u32, decoded u32 (, checksum u32) of each frame |
    frames u32 | flags u8, bit 7: with checksums | b1 ea 92 8f
    """
    end = offset + nbytes
    tail = bytes(source.view(end - 9, 9)) if nbytes >= 17 else bytes(9)
    count, flags, magic = unpack_from("<IB4s", tail)
    step = 12 if flags & 128 else 8
    start = end - 17 - count * step
    table = bytes(source.view(start, 8 + count * step)) if start >= offset else b""
    rows = [unpack_from("<II", table, at) for at in range(8, len(table), step)]
    total, sizes = sum([row[0] for row in rows]), [row[1] for row in rows]
    largest = max(sizes + [0])
    if (flags & 127 or magic != b"\xb1\xea\x92\x8f" or total != start - offset
            or table[:8] != pack("<II", 0x184D2A5E, count * step + 9) or sum(sizes) != need
            or sizes[:-1] != [largest] * (count - 1) or largest > 16 << 20):
        raise FormatError(f"zstd: no seek table at the end for {need} bytes")
    if total:
        yield from zstd_decode(source, offset, total, need)


# -- [7c] primitiv -------------------------------------------------------------------------------


class Parameters:
    """Reads tensors at a Cursor, one behind the other, each with .where at it."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.known: Any = {}  # what tensors of one shape have in common

    def model(self) -> Chunks:
        cursor = self.cursor
        for i in range(cursor.uint32("N", "parameters")):
            cursor.where, cursor.tensor = ("params", i), None
            yield from self.parameter(self.key())

    def parameter(self, name: str = "value") -> Chunks:
        yield self.open(name)
        yield from self.statistics(name)

    def statistics(self, name: str) -> Chunks:
        cursor, place = self.cursor, self.cursor.where
        for j in range(cursor.uint32("N", "statistics")):
            cursor.where, cursor.tensor = place + ("stats", j), None
            stat = msgpack_text(cursor.msgpack("str", "key", "name of the statistic"))
            cursor.tensor = name
            yield self.open(cursor.join_name([name, stat], ":", "key"))

    def tensor(self) -> Chunks:
        yield self.open("tensor")

    def key(self) -> str:
        """Return the name of a parameter: its parts, joined as bytes, for there may be many."""
        count, most = self.cursor.msgpack("array", "key", "parts of the name"), Primitiv.MAX_PARTS
        if not count:
            raise self.cursor.error("key has no components", "key")
        self.cursor.limit("key", count, 1, most, "MAX_PARTS of a name", Unsupported)
        name = bytearray()
        for i in range(count):
            part = escape_part(self.cursor.msgpack("str", "key", "part of the name", i))
            name += b"." + part if i else part
        return msgpack_text(bytes(name))

    def shape(self) -> Any:
        """Return (dimensions, batch)."""
        cursor, most = self.cursor, Primitiv.MAX_DIMS
        size = cursor.msgpack("array", "dims", "dimensions")
        cursor.limit("dims", size, 0, most, "MAX_DIMS", Unsupported)
        dims = tuple([cursor.uint32("dims", "dimension", i) for i in range(size)])
        batch = cursor.uint32("batch", "samples")
        if not batch:
            raise cursor.error("batch is 0", "batch")
        return dims, batch

    def open(self, name: str) -> Tensor:
        """Return the tensor that begins here, and move behind its data."""
        cursor = self.cursor
        cursor.tensor = name
        dims, batch = self.shape()
        nbytes = cursor.msgpack("bin", "data", "bytes of the tensor")
        key = dims, batch, nbytes
        if key not in self.known:
            shape = dims + ((batch,) if batch > 1 else ())
            strides = None
            if nbytes and len(shape) > 1:  # column-major
                strides = tuple(reversed(row_major(tuple(reversed(shape)), 4)))
            stored = Storage(cursor.source, nbytes, strides)
            keep(self.known, key, (shape, stored, ("batch", batch)))
        shape, stored, attrs = self.known[key]
        start = cursor.pos
        cursor.pos += nbytes
        return Tensor(name, "float32", shape, stored, start, attrs, Primitiv.NAME)


class Primitiv(Format):
    """primitiv 0.1, one Shape, Tensor, Parameter, Model or Optimizer as MessagePack values.

    file      = ver_major 0 | ver_minor 1 | data_type | body; no outer array, no magic, no end
    Shape     = array(dims) batch                        data_type 0x000
    Tensor    = Shape bin(data)                          0x100
    Parameter = Tensor N, then N x (str, Tensor)         0x200: the value and its statistics
    Model     = N, then N x (array(str ...), Parameter)  0x300
    Optimizer = map(str -> uint32) map(str -> float32)   0x400

    Integers are written as ce + uint32, floats as ca; any form is read. Data: float32,
    little-endian, column-major, the batch last. Names are keys joined by ".", or KEY:STATISTIC; a
    backslash escapes ".", ":" and itself. Up to MAX_DIMS dimensions are read, 8 are written.
    """

    NAME = FAMILY = "primitiv"
    TITLE = "primitiv 0.1"
    HOLDS = "optimizer configs (numbers) with kind=optimizer; no empty tensors"
    SUFFIXES = (".primitiv", ".model", ".optimizer")
    MAGICS = (b"\xce\0\0\0\0\xce\0\0\0\1",)  # other forms are read too
    MARKED = False
    IN_FRONT = True
    DTYPES = ("float32",)
    OPTIONS = {"kind": "model, parameter, tensor, shape or optimizer",
               "dims": "of kind shape", "batch": "of kind shape, 1 unless given"}
    FILE_ATTRS = ("version", "kind", "dims", "batch")
    TENSOR_ATTRS = ("batch",)
    CONTENT = ("dims",)
    HELD_AS = {bool: int, float: lambda number: unpack_from("<f", pack("<f", number))[0]}
    CHECKS = ("magic", "index", "bounds", "sizes")
    DIM_BITS = 32
    MAX_DIMS = 32
    MAX_PARTS = 1 << 16  # of a name
    KINDS = ("shape", "tensor", "parameter", "model", "optimizer")  # data_type: 256 * place
    HELD = {"tensor": ("tensor", "one tensor called 'tensor'"),  # by kind: its name
            "parameter": ("value", "one tensor called 'value' and statistics 'value:NAME'")}

    def detect(self, head: bytes) -> bool:
        cursor = Cursor(Memory(head))
        try:
            values = [cursor.uint32("", "") for _ in range(3)]
        except FormatError:
            return super().detect(head)
        usual = cursor.pos == 15 and head[0] == head[5] == head[10] == 0xCE  # of other versions
        return super().detect(head) or (
            (usual or values[:2] == [0, 1]) and values[2] in range(0, 0x500, 0x100))

    def read(self, cursor: Cursor) -> Any:
        major, minor = [cursor.uint32(key, "of format 0.1") for key in ("ver_major", "ver_minor")]
        if (major, minor) != (0, 1):
            raise cursor.error(f"format version {major}.{minor}; only 0.1 is known",
                               "ver_major" if major else "ver_minor", error=Unsupported)
        number = cursor.uint32("data_type", "256 tensor, 768 model")
        if number not in range(0, 0x500, 0x100):
            raise cursor.error("data_type 0x%03x is none of 0x000, 0x100, 0x200, 0x300, 0x400"
                               % number, "data_type")
        kind = self.KINDS[number // 256]
        attrs: Facts = Map([("version", "0.1"), ("kind", kind)])
        metadata, tensors = Map(), Map()
        body = Parameters(cursor)
        if kind == "shape":
            dims, attrs["batch"] = body.shape()
            attrs["dims"] = list(dims)
        elif kind == "optimizer":
            self.read_configs(cursor, metadata)
        else:
            items = {"tensor": body.tensor, "parameter": body.parameter, "model": body.model}
            tensors = cursor.collect(items[kind](), cursor.end, ("key", "data", "data"))
        return attrs, metadata, tensors

    @staticmethod
    def read_configs(cursor: Cursor, metadata: Facts) -> None:
        for group in ("uint_configs", "float_configs"):
            count = cursor.msgpack("map", group, "numbers of the optimizer")
            for i in range(count):
                cursor.where = group, i
                key = msgpack_text(cursor.msgpack("str", "key", "name of the number"))
                if key in metadata:
                    if group == "float_configs" and type(metadata[key]) is int:
                        raise cursor.error(f"config {show(key)} is in both maps", "key",
                                           error=Unsupported)
                    raise cursor.error(f"config {show(key)} twice", "key")
                if group == "uint_configs":
                    metadata[key] = cursor.uint32("value", "an integer")
                else:
                    metadata[key] = float(cursor.msgpack("float", "value", "a float"))
            cursor.where = ()

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        if options.get("kind") != "optimizer":
            return [(key, "only kind='optimizer' has a place for metadata") for key in metadata]
        misfits = []
        for key, value in metadata.items():
            try:
                if not isinstance(key, str) or not isinstance(value, (bool, int, float)):
                    raise ValueError("configs are numbers")
                name_bytes(key)
                msgpack_dumps(value if isinstance(value, float) else int(value), typed=True)
            except ValueError as error:
                misfits.append((key, str(error)))
        return misfits

    def check_name(self, name: str) -> "List[str]":
        return []  # _make_row() splits it, and finds what is wrong with it

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        kind: str = self.choose("kind", "model", options, attrs)
        if kind not in self.KINDS:
            raise ValueError(f"kind is one of {', '.join(sorted(self.KINDS))}, not {show(kind)}")
        for key in ("dims", "batch"):
            if options.get(key) is not None and kind != "shape":
                raise ValueError(f"the option {key} belongs to kind='shape'")
        if kind != "shape" and attrs.get("dims") is not None:
            raise ValueError("dims %s have no place with kind=%r; attrs={} leaves them out" % (
                show(attrs["dims"]), kind))
        problems, rows = self.check_items(items, metadata, {"kind": kind}), []
        for name, item in items:
            try:
                rows.append(self._make_row(kind, name, item))
            except ValueError as error:
                problems.append((name, str(error)))
        rows.sort(key=lambda row: (row[0], row[1] is not None))
        self.refuse(problems + list(self._clashes(rows)))
        if kind in self.HELD and not rows:
            raise ValueError("kind=%r needs a tensor" % kind)
        values: Any = [256 * self.KINDS.index(kind)]  # in front of the tensors
        if kind == "shape":
            values += self._check_shape(self.choose("dims", None, options, attrs),
                                        self.choose("batch", 1, options, attrs))
        elif kind == "optimizer":
            floats = Map([pair for pair in metadata.items() if isinstance(pair[1], float)])
            values += [Map([(k, int(v)) for k, v in metadata.items() if k not in floats]), floats]
        elif kind == "model":
            values.append(len([row for row in rows if row[1] is None]))
        head = [msgpack_dumps(value, typed=True) for value in values]
        return self._chunks(self.MAGICS[0] + b"".join(head), rows, kind)

    @staticmethod
    def _check_shape(dims: Any, batch: Any) -> Any:
        """Return [dims, batch] of a Shape."""
        try:
            shape = as_shape(dims) + (as_index(batch),)
        except TypeError:
            shape = (0,)
        if len(shape) > 9 or [n for n in shape if not 1 <= n < 1 << 32]:
            raise ValueError(f"dims {show(dims)}, batch {show(batch)}: kind='shape' needs up to 8 "
                             "dims and a batch, each 1 to 2**32-1")
        return [shape[:-1], shape[-1]]

    def misfits(self, item: Tensor) -> Chunks:
        yield from super().misfits(item)
        if 0 in item.shape:
            yield f"no elements (shape {list(item.shape)})"
        if item.nbytes >> 32:
            yield "data over 2**32-1 bytes"

    def _make_row(self, kind: str, name: str, item: Tensor) -> Any:
        """Return (parts of the key, statistic or None, name, Tensor, batch) of what is written."""
        owner = name.split(":")[0] if kind == "parameter" else name
        wanted, words = self.HELD.get(kind, (None, "no tensors"))
        if kind != "model" and owner != wanted:
            raise ValueError(f"kind={kind!r} holds {words}")
        key, stat = split_name(name)
        if len(key) > self.MAX_PARTS:
            raise ValueError(f"{len(key)} parts, MAX_PARTS = {self.MAX_PARTS}")
        batch = self.choose("batch", 1, self.own_attrs(item), {}) if item._attrs else 1
        if type(batch) is not int or batch < 1 or (batch > 1 and item.shape[-1:] != (batch,)):
            raise ValueError(f"batch is {show(batch)}, expected 1 or the last dimension of "
                             f"{list(item.shape)}")
        if batch > 1 and stat is None and kind != "tensor":
            raise ValueError(f"batch {batch} in a parameter's value; set attrs['batch'] = 1 to "
                             "make it an ordinary dimension")
        if item.ndim - (batch > 1) > 8:
            raise ValueError(f"{item.ndim - (batch > 1)} dimensions, 8 is the limit")
        return key, stat, name, item, batch

    @staticmethod
    def _clashes(rows: Any) -> Chunks:
        """Yield (name, why) of keys that cannot be beside the others."""
        outer: Any = (None,)  # the last key that is not inside another
        last: Any = None
        for key, stat, name, _, _ in rows:
            inside = key[:len(outer)] == outer
            if key != last and inside:
                text = show(msgpack_text(b".".join(map(escape_part, outer))))
                yield name, f"the key {text} is both a parameter and a group of them"
            if key != last and stat is not None:
                yield name, ("a statistic without its value (the part before ':'); "
                             "escape ':' and '\\' in names")
            last, outer = key, outer if inside else key

    @staticmethod
    def _chunks(head: bytes, rows: Any, kind: str) -> Chunks:
        yield head
        counts: Any = {}  # of the statistics of a key
        for row in rows:
            counts[row[0]] = counts.get(row[0], -1) + 1
        for key, stat, _, item, batch in rows:
            names: Any = (stat,) if stat is not None else key if kind == "model" else ()
            lead = [msgpack_size("array", len(key))] if names and stat is None else []
            for part in names:
                lead += [msgpack_size("str", len(part)), part]
            dims = item.shape[:-1] if batch > 1 else item.shape
            lead += [msgpack_dumps(value, typed=True) for value in (dims, batch)]
            yield b"".join(lead) + msgpack_size("bin", item.nbytes)
            yield from transpose(item).blocks()
            if stat is None and kind != "tensor":
                yield pack(">BI", 0xCE, counts[key])


def escape_part(part: bytes) -> bytes:
    """Return a part of a key as it stands in a name."""
    for mark in (b"\\", b".", b":"):
        part = part.replace(mark, b"\\" + mark)
    return part


def name_bytes(text: str) -> bytes:
    """Return the bytes of a name; ValueError where they would become another text again."""
    raw = encode_text(text, TEXT_ERRORS)
    if len(raw) != len(text) and msgpack_text(raw) != text:  # not ASCII
        raise ValueError(f"its bytes are those of {show(msgpack_text(raw))}")
    return raw


def split_name(name: str) -> "Tuple[Any, Optional[bytes]]":
    """Return (the parts of its key, its statistic or None) of a name, as bytes."""
    parts, letters = [bytearray()], iter(name_bytes(name))
    for letter in letters:
        if letter in b":":
            return tuple(map(bytes, parts)), bytes(letters)  # what is left
        if letter in b".":
            parts.append(bytearray())
            continue
        if letter in b"\\":
            letter = next(letters, 0)
            if letter not in b"\\.:":
                raise ValueError("a backslash stands only before '.', ':' or a backslash")
        parts[-1].append(letter)
    return tuple(map(bytes, parts)), None


def transpose(item: Tensor) -> Tensor:
    """Return the transpose (a view): its row-major bytes are column-major ones here."""
    if item.ndim < 2:
        return item
    base = item if item.stored.encoding == "raw" else item.contiguous()
    old, strides = base.stored, tuple(reversed(base.strides))
    stored = Storage(old.source, old.nbytes, strides, old.order)
    return base.copy(shape=tuple(reversed(base.shape)), stored=stored)


# -- [7d] burnpack -------------------------------------------------------------------------------


class BurnSchemes:
    """Burn's schemes of 0.20 to 0.22-pre.2: values, lowest bits first, then scales ([6h])."""

    KEY, NEEDS = "burn_dtype", 'burn_dtype={"QFloat": {...}}'
    VALUES = {"Q8F": 8, "Q8S": 8, "E4M3": 8, "E5M2": 8, "Q4F": 4, "Q4S": 4, "E2M1": 4,
              "Q2F": 2, "Q2S": 2}  # bits; F and S both are two's complement
    SCALES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "UE8M0": "E8M0",
              "UE4M3": "E4M3"}
    BLOCK = Schema(("len", "any", True, "dimensions of a block"),
                   ("storage", "any", True, "size of a block"))
    SCHEME = Schema(
        ("value", one_of(*VALUES), True, "type of the values"),
        ("param", one_of(*SCALES), True, "type of the scales"),
        ("store", lambda store: BurnSchemes.misfit_store(store), True, "how values are packed",
         Schema(other=("any", "packed dimension"))),
        ("level", one_of("Tensor"), True, "what shares a scale",  # plan() checks a block
         Schema(("Block", "any", False, "elements that share one", BLOCK))),
        ("mode", one_of("Symmetric"), True, "Symmetric: no offset"))

    @staticmethod
    def misfit_store(store: Any) -> str:
        packed = isinstance(store, dict) and list(store) in (["PackedNative"], ["PackedU32"])
        fits = store == "Native" or packed and all_u64(store.values())
        return "" if fits else "Native, {PackedNative: n} or {PackedU32: n}"

    @staticmethod
    def scheme_of(code: Any) -> Any:
        return code.get("QFloat") if isinstance(code, dict) and len(code) == 1 else None

    @classmethod
    def plan(cls, item: Tensor, scheme: Any) -> Plan:
        found, level, fits = Map(scheme.items()), scheme.get("level"), len(scheme) == 5
        block: Any = None  # one scale for all
        if isinstance(level, dict) and isinstance(level.get("Block"), dict):
            sizes, rank = [level["Block"].get(key) for key in ("storage", "len")]
            fits = (fits and len(level) == 1 and len(level["Block"]) == 2
                    and isinstance(sizes, list) and all_u64(sizes + [rank])
                    and 1 <= rank <= min(len(sizes), item.ndim) and 0 not in sizes[:rank])
            block, found["level"] = sizes[:rank] if fits else None, "Tensor"
        if found.get("store") == "U32":  # of burn 0.19
            found["store"] = "Native"
        fits = fits and not list(cls.SCHEME.wrongs(found))
        if not fits:
            what = f"quantization scheme {show(scheme, 200)} is not known"
            raise fault_of(item, what, Unsupported)
        floats = None if found["value"][0] == "Q" else found["value"]
        return Plan(item.shape, floats, cls.VALUES[found["value"]],
                    cls.SCALES[found["param"]], block)


class Burnpack(Format):
    """Burnpack (.bpk), the native file of Burn: burn-store 0.19 to 0.21, burn-pack 0.22-pre.

    0      magic "NRUB" 4 | version u16 = 1 | metadata_size u32 = M; all little-endian
    10     CBOR map, M bytes: "tensors": name -> {dtype, shape, data_offsets [start, end),
           param_id?}, "metadata": text -> text?, "scalars" (0.22 pre-releases)?
    DS     = 10 + M rounded up to 256: the data; each tensor at a multiple of 256, zeros between,
           nothing behind the last; data_offsets count from DS

    The index is sorted by name, the data are in the order given. Burn 0.19 wrote the same header
    over a "packed" layout: no padding, data from 10 + M on. It is read, never written: where the
    metadata say "version" 0.19.* and the file ends where packed data do. Others are aligned: a file
    that was converted keeps its metadata. Tensors of unknown dtypes are listed.
    """

    MARKS = {"DS": "data"}
    NAME = FAMILY = "burnpack"
    TITLE = "Burnpack"
    HOLDS = "metadata: text to text; scalars; param_id; quantized bytes"
    SUFFIXES = (".bpk", ".burnpack")
    MAGICS = (b"NRUB", b"BURN")
    NAMES = {  # in the CBOR -> here; Bool: of burn 0.19 and 0.20; others: dtype_of()
        "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
        "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32",
        "U16": "uint16", "U8": "uint8", "Bool": "bool", "Flex32": "float32"}
    DTYPES = dict([(name, code) for code, name in NAMES.items() if code != "Flex32"],
                  bool={"Bool": "Native"})  # as they are written
    BOOLS = {"Native": "bool", "U8": "bool", "U32": "uint32"}  # {"Bool": how it is stored}
    OPTIONS = {"scalars": "map of name to {Int|UInt|Float|Bool: value}"}
    FILE_ATTRS = ("version", "layout", "scalars")
    TENSOR_ATTRS = ("param_id", "burn_dtype")
    DTYPE_ATTRS = ("burn_dtype",)
    USES = ("quantized",)
    CONTENT = ("param_id", "scalars")
    TEXTS = True
    DATA_ORDER = IN_FRONT = True
    ALIGN = 256
    PAD_END = "structure"
    MAX_METADATA_BYTES = 104857600  # the real reader's limits, both
    MAX_TENSORS = 100000

    HEADER = (("magic", "4s", "Burnpack, not BURN"), ("version", "H", "1 from burn 0.19 on"),
              ("metadata_size", "I", "bytes of CBOR"))
    CODE = Schema(("Bool", "any", False, "how it is stored"),
                  ("QFloat", "any", False, "quantized", lambda: BurnSchemes.SCHEME))
    ENTRY = Schema(
        ("dtype", lambda code: Burnpack.misfit_code(code), True, "type of the elements", CODE),
        ("shape", INTEGERS, True, "dimensions"),
        ("data_offsets", SPAN, True, "bytes from DS, [start, end)"),
        ("param_id", UNSIGNED, None, "Burn's own id of it"))
    TOP = Schema(
        ("tensors", Schema(other=("any", "entry of a tensor", ENTRY), keys=TEXT), True,
         "entries by name"),
        ("metadata", Schema(other=(TEXT, "of the user"), keys=TEXT), False, "of the user"),
        ("scalars", Schema(other=("any", "type and value", Schema(other=("any", "the value"))),
                           keys=TEXT), False, "numbers by name"),
        doc="tensors, metadata, scalars")

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"NRUB")
        _, version, nbytes = cursor.record(self.HEADER)
        cursor.limit("version", version, 1, 1, "only 1 is known", Unsupported)
        cursor.limit("metadata_size", nbytes, 0, cursor.end - 10, "the file ends (cut short?)")
        cursor.limit("metadata_size", nbytes, 0, self.MAX_METADATA_BYTES, "MAX_METADATA_BYTES",
                     Unsupported)
        top = cursor.cbor(nbytes, self.TOP, "item", rest="rest of the metadata")
        metadata = top.get("metadata", Map())
        tensors = cursor.entries(top["tensors"], self.ENTRY, self.open_entry, "tensors",
                                 fields=("", "data_offsets", "data_offsets"))
        cursor.limit("tensors", len(tensors), 0, self.MAX_TENSORS, "MAX_TENSORS", Unsupported)
        layout, base = self.find_layout(cursor, 10 + nbytes, tensors, metadata)
        cursor.keep_whole(tensors, "metadata_size", base=base)
        attrs = Map([("version", 1), ("layout", layout)])
        if "scalars" in top:
            attrs["scalars"] = top["scalars"]
        return attrs, metadata, tensors

    def open_entry(self, cursor: Cursor, name: str, entry: Any) -> Tensor:
        """Return the tensor of an entry; its start counts from DS."""
        (dtype, attrs, why), (start, stop) = self.dtype_of(entry["dtype"]), entry["data_offsets"]
        if entry.get("param_id") is not None:
            attrs += ("param_id", entry["param_id"])
        make = Quantized if dtype == "qfloat" else Tensor
        stored = Storage(cursor.source, stop - start, why=why)
        made: Tensor = make(name, dtype, tuple(entry["shape"]), stored, start, attrs, self.NAME)
        entry.clear()  # of many entries, only the dict is left
        return made

    @classmethod
    def dtype_of(cls, code: Any) -> Any:
        """Return (dtype, attrs, why it is not known) of a dtype of the CBOR."""
        value, dtype = "Native", cls.NAMES.get(code) if type(code) is str else None
        if isinstance(code, dict):
            (kind, value), = code.items()
            if kind == "Bool" and type(value) is str:
                dtype = cls.BOOLS.get(value)
            dtype = "qfloat" if kind == "QFloat" else dtype
        usual = dtype and code != "Flex32" and value == "Native"
        attrs = () if usual else ("burn_dtype", code)
        return dtype, attrs, None if dtype else f"dtype {show(code)} is not known"

    @staticmethod
    def misfit_code(code: Any) -> str:
        """Return what a dtype of the CBOR should be, or "" where it may be one."""
        if type(code) is str:
            return ""
        if not isinstance(code, dict) or len(code) != 1 or type(list(code)[0]) is not str:
            return "text or a map of one text key"
        return "" if isinstance(code.get("QFloat", {}), dict) else "a map in QFloat"

    def find_layout(self, cursor: Cursor, packed: int, tensors: Any, metadata: Any) -> Any:
        """Return (layout, offset of the data): packed only as burn 0.19 wrote it, and whole."""
        aligned, size = packed + -packed % 256, cursor.end
        end = max([item.start + item.stored.nbytes for item in tensors.values()], default=0)
        of_019 = metadata.get("version", "").startswith("0.19.")
        if of_019 and size == packed + end or not end and size < aligned:  # no data: no padding
            return "packed", packed
        if not of_019:
            return "aligned", aligned
        short: Any = []  # empty where verify() left out a tensor: more may be wanted
        cursor.together(short.append, size < aligned + end)
        if any(short):  # even if partial: which layout it had is lost
            what = (f"cut short: {size} bytes, a packed file of burn 0.19 has "
                    f"{packed + end}, an aligned one {aligned + end}")
            raise cursor.error(what, "metadata_size", check="bounds")
        return "aligned", aligned

    def alignment(self, attrs: Any) -> int:
        return 1 if attrs.get("layout") == "packed" else self.ALIGN

    def own_attrs(self, tensor: Tensor) -> Facts:
        if tensor.format == "burnrecord":  # its elder: the same attrs, but for ids that are text
            return attrs_without(tensor, ("id",))
        return super().own_attrs(tensor)

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        if len(items) > self.MAX_TENSORS:
            raise ValueError(f"Burnpack holds {self.MAX_TENSORS} tensors at most, not {len(items)}")
        scalars = options.get("scalars")
        scalars = attrs.get("scalars") if scalars is None else self._check_scalars(scalars)
        problems = self.check_items(items, metadata, options)
        entries, starts, end, fields = [], [], 0, {}
        for name, item in items:
            starts.append(end + -end % 256)
            entries.append((name, self._pack_entry(name, item, starts[-1], fields, problems)))
            end = starts[-1] + item.nbytes
        self.refuse(problems)
        more = Map([(key, Map(sorted(pairs.items()))) for key, pairs in (
            ("metadata", metadata), ("scalars", scalars)) if pairs])
        data = b"".join([cbor_head(5, 1 + len(more)), b"\x67tensors", cbor_head(5, len(entries))]
                        + [row[1] for row in sorted(entries)]  # code points sort as UTF-8 does
                        + [cbor_dumps(more)[1:]])
        if len(data) > self.MAX_METADATA_BYTES:
            raise ValueError("%d bytes of metadata are over MAX_METADATA_BYTES = %d" % (
                len(data), self.MAX_METADATA_BYTES))
        base = 10 + len(data) + -(10 + len(data)) % 256
        return self.lay_out(pack_record(self.HEADER, b"NRUB", 1, len(data)) + data, items,
                            [base + start for start in starts], base + end)

    def _pack_entry(self, name: str, item: Tensor, start: int, known: Any, problems: Any) -> bytes:
        """Return a name and its entry in CBOR; note problems."""
        own, stop = self.own_attrs(item), start + item.nbytes
        code, param_id = own.get("burn_dtype"), own.get("param_id")
        if code is None:
            code = self.DTYPES.get(str(item.dtype))
        elif self.misfit_code(code) or item.dtype not in (None, self.dtype_of(code)[0]):
            problems.append((name, f"burn_dtype {show(code)} does not go with {item.dtype}"))
        if own:
            entry = Map([("dtype", code), ("shape", list(item.shape)),
                         ("data_offsets", [start, stop]), ("param_id", param_id)])
            problems += [(name, why) for _, why in self.ENTRY.wrongs(entry)]
        if problems:
            return b""
        key = code if type(code) is str else cbor_dumps(code), item.shape  # they come again
        if key not in known:
            known[key] = cbor_dumps(Map([("dtype", code), ("shape", item.shape)]), depth=2)[1:]
        parts = [cbor_dumps(name), b"\xa3" if param_id is None else b"\xa4", known[key],
                 b"\x6cdata_offsets\x82", cbor_head(0, start), cbor_head(0, stop)]
        if param_id is not None:
            parts += [b"\x68param_id", cbor_head(0, param_id)]
        return b"".join(parts)

    def _check_scalars(self, scalars: Any) -> Facts:
        checked: Facts = Map()
        for name, given in scalars.items() if hasattr(scalars, "items") else [(None, scalars)]:
            pair: Any = list(given.items()) if hasattr(given, "items") else []
            kind, value = pair[0] if len(pair) == 1 else (None, pair)
            if kind == "Float" and type(value) is int:
                value = float(value)
            python: Any = {"Int": int, "UInt": int, "Float": float, "Bool": bool}.get(str(kind))
            low, high = INT_RANGE["uint64" if kind == "UInt" else "int64"]
            if not is_text(name) or type(value) is not python or (
                    python is int and not low <= value <= high):
                raise ValueError("scalars are {name: {\"Int\", \"UInt\", \"Float\" or \"Bool\": "
                                 "value}}, not %s: %s" % (show(name), show(given)))
            checked[str(name)] = Map([(kind, value)])
        return checked


# -- [7e] tensorbuffers --------------------------------------------------------------------------


class TensorBuffers(Format):
    """TensorBuffers "TBS1" (russellwmy/tensorbuffers, both schemas: 7190fc4 and 2422de1).

    0      magic "TBS1" 4
    4      data of all tensors, back to back as written, no padding
    M      metadata: one FlatBuffer of n bytes, positions in it count from M
    end-8  n u32 | magic "TBS1" 4

    The root has version, model, tensors and (newer schema) operations. Data offsets are absolute.
    Tensors are sorted by id, a hash of the name and ff; by the real library not (sort=False).
    """

    MARKS = {"M": "root"}
    NAME = FAMILY = "tensorbuffers"
    TITLE = "TensorBuffers TBS1"
    HOLDS = "metadata: model (text); operations; 32-bit offsets and sizes"
    SUFFIXES = (".tbs", ".tensorbuffers")
    MAGICS = (b"TBS1",)
    DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
              "uint32", "uint64")  # numbers 1 to 10; 0 is a placeholder
    OPTIONS = {"sort": "True: the index by id; False: as given, as the real library",
               "operations": "list of dicts; True: the field, empty; False: no field"}
    FILE_ATTRS = ("version", "operations")
    TENSOR_ATTRS = ("id",)
    CONTENT = ("operations",)
    DATA_ORDER = True
    MAX_RANK = 64
    DIM_BITS = 32
    PAD_INSIDE = 8

    LEAD = (("magic", "4s", "TensorBuffers"),)
    TRAILER = (("metadata_size", "I", "bytes of FlatBuffer"),
               ("end_magic", "4s", "TensorBuffers"))
    ENTRY = (("id", "Q", 0, "hash of the name"), ("name", "string", MISSING, "name"),
             ("shape", ["I"], [], "dimensions"), ("data_type", "b", 0, "1 float32 ... 10 uint64"),
             ("data_offset", "I", 0, "offset in the file"), ("data_size", "I", 0, "bytes"))
    OPERATION = (("id", "Q", 0, "number of this one"), ("operation", "b", 0, "what it does"),
                 ("output", "Q", 0, "id of a tensor"),
                 ("input_operations", ["Q"], [], "what goes into it"))
    ROOT = (("version", "string", MISSING, "of the format"),
            ("model", "string", None, "of the user"), ("tensors", ["place"], [], "the index"),
            ("operations", "place", None, "a graph"))

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"TBS1")
        if cursor.end < 12:
            raise cursor.error(f"{cursor.end} bytes, too short for a frame of 12", "magic",
                               offset=0, check="magic")
        cursor.record(self.LEAD)
        cursor.pos = cursor.end - 8
        nbytes, magic = cursor.record(self.TRAILER)
        if magic != b"TBS1":
            raise cursor.error(NO_END % self.TITLE, "end_magic", check="magic")
        cursor.limit("metadata_size", nbytes, 0, cursor.end - 12, "the bytes before it")
        cursor.pos = cursor.end - 8 - nbytes
        flat = cursor.flatbuffer(nbytes, "root")
        root = flat.table(self.ROOT, flat.follow(("root", self.ROOT, None, "root table"), 0))
        tensors = cursor.entries(
            root["tensors"], None, self.open_table, "tensors", about=(flat,), low=4,
            high=flat.base, fields=("name", "data_size", "data_offset"))
        flat.where = ()
        attrs: Facts = Map([("version", root["version"])])
        if root["operations"] is not None:
            row = "operations", [self.OPERATION], None, "a graph"
            steps = flat.target(row, root["operations"])
            if steps:
                attrs["operations"] = steps
        metadata = Map([("model", root["model"])] if root["model"] is not None else [])
        return attrs, metadata, tensors

    def open_table(self, cursor: Cursor, _: int, place: Any, flat: Flat) -> Tensor:
        """Return the tensor of the table that begins at a place."""
        flat.where = cursor.where
        entry = flat.table(self.ENTRY, place)
        number, name, shape, code, start, nbytes = [entry[row[0]] for row in self.ENTRY]
        cursor.tensor = name
        if len(shape) > self.MAX_RANK:
            raise cursor.error(f"{len(shape)} dimensions, {self.MAX_RANK} is the limit", "shape",
                               error=Unsupported)
        if code == 0:
            raise cursor.error("data_type 0 (None) is not a type", "data_type")
        dtype = self.DTYPES[code - 1] if 1 <= code <= 10 else None
        why = None if dtype else f"data_type {code} is not known"
        start = start if nbytes else min(start, flat.base)  # of no bytes, any offset will do
        return Tensor(name, dtype, tuple(shape), Storage(cursor.source, nbytes, why=why),
                      start, ("id", number), self.NAME)

    @staticmethod
    def hash_name(raw: bytes) -> int:
        """Return the FNV-1a hash."""
        number = 0xCBF29CE484222325
        for byte in raw:
            number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return number

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        return [(key, "TensorBuffers holds one text, 'model'") for key, value in metadata.items()
                if key != "model" or not is_text(value)]

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        operations = self.choose("operations", True, options, attrs)
        sort = self.choose("sort", True, options, {})
        if not isinstance(sort, bool) or not isinstance(operations, (bool, list, tuple)):
            raise ValueError("sort is a bool, operations a bool or a list of dicts")
        problems = self.check_items(items, metadata, options)
        flat, at, starts, places, names = FlatBuilder(), 4, [], [], {}
        for name, item in items:
            raw, nbytes = name.encode("utf-8", "replace"), item.nbytes
            number = self.hash_name(raw + b"\xff")
            if at >= 1 << 32 or nbytes >= 1 << 32:
                problems.append((name, "an offset or a size over 2**32-1"))
            if names.setdefault(number, name) != name:
                problems.append((name, f"it has the same id as {show(names[number])}"))
            if not problems:
                code = self.DTYPES.index(item.dtype) + 1
                shape = flat.scalars("I", item.shape)
                places.append((number, flat.table(self.ENTRY, (
                    number, flat.string(raw), shape, code, at, nbytes))))
            starts.append(at)
            at += nbytes
        self.refuse(problems)
        given = () if isinstance(operations, bool) else operations
        known = dict(zip(  # new ids by old ones
            [self.own_attrs(item).get("id") for _, item in items if given], names))
        steps = [self._pack_operation(flat, operation, known) for operation in given]
        version = flat.string("1.0.0")
        tensors = flat.offsets([place for _, place in (sorted(places) if sort else places)])
        listed = None if operations is False else flat.offsets(steps)
        model = flat.string(metadata["model"]) if "model" in metadata else None
        data = flat.finish(flat.table(self.ROOT, (version, model, tensors, listed)))
        return self.lay_out(b"TBS1", items, starts, at,
                            data + pack_record(self.TRAILER, len(data), b"TBS1"))

    def _pack_operation(self, flat: FlatBuilder, operation: Any, known: Any) -> int:
        fields = [row[0] for row in self.OPERATION]
        inputs = None
        if isinstance(operation, dict) and set(operation).issubset(fields):
            number, code, output, inputs = [operation.get(row[0], row[2]) for row in self.OPERATION]
        if (not isinstance(inputs, (list, tuple)) or not all_u64([number, output] + list(inputs))
                or type(code) is not int or not -128 <= code < 128):
            raise ValueError("an operation has integers id, operation, output, a list "
                             f"input_operations; not {show(operation)}")
        return flat.table(self.OPERATION, (
            number, code, known.get(output, output), flat.scalars("Q", inputs)))


# -- [7f] safetensors ----------------------------------------------------------------------------

ST_TYPES = [row.split(":") for row in (  # code:bits:name here, as the official writer sorts them
    "U64:64:uint64 I64:64:int64 F64:64:float64 C64:64: F32:32:float32 U32:32:uint32 I32:32:int32 "
    "BF16:16:bfloat16 F16:16:float16 U16:16:uint16 I16:16:int16 F8_E5M2FNUZ:8:float8_e5m2fnuz "
    "F8_E4M3FNUZ:8:float8_e4m3fnuz F8_E8M0:8:float8_e8m0fnu F8_E4M3:8:float8_e4m3fn "
    "F8_E5M2:8:float8_e5m2 I8:8:int8 U8:8:uint8 F6_E3M2:6: F6_E2M3:6: F4:4: BOOL:8:bool").split()]


def no_values(what: str, code: str) -> str:
    """Return why a type of safetensors cannot be read here, and how its bytes can be."""
    way = {"C64": 'numpy.frombuffer(t.raw, "complex64") reads them',
           "F4": 'numpy.frombuffer(t.raw, "uint8") has two values in each'}.get(code)
    return (f"{what} has no values here, only bytes, which safetensors can hold; "
            + (way or "t.raw are the bytes"))


class Safetensors(Format):
    """safetensors (.safetensors) of Hugging Face, 0.2.8 to 0.8.0: the bridge to other programs.

    0      header_size u64 = n, little-endian; there is no magic
    8      JSON object, n bytes: "__metadata__": text -> text?; name -> {dtype, shape,
           data_offsets [start, end)}; behind it spaces, to a multiple of 8
    8 + n  the data, without gap or overlap, nothing behind them; data_offsets count from here

    Written as by 0.3.1 and later: sorted by type, then name. Holes, overlaps and trailing bytes are
    errors here, as in every official reader. Tensors of a type without a name here are listed.
    """

    MARKS = {"8 + n": "data"}
    NAME = FAMILY = TITLE = "safetensors"
    HOLDS = "metadata: text to text"
    SUFFIXES, MAGICS = (".safetensors",), ()
    MARKED = False
    IN_FRONT = True
    DTYPES = dict([(name, code) for code, _, name in ST_TYPES if name in ITEMSIZE])
    TYPES = dict([(row[0], (i, int(row[1]), row[2])) for i, row in enumerate(ST_TYPES)])
    OPTIONS = {"sort": "True: by type, then name; False: as given",
               "empty_metadata": "True: an empty __metadata__ is written, too"}
    FILE_ATTRS = ("empty_metadata",)
    TENSOR_ATTRS = DTYPE_ATTRS = ("st_dtype",)
    TEXTS = True
    IDLE_KEYS = ("format",)  # "pt": a library that wrote it
    CHECKS = ("index", "sizes", "bounds")
    MAX_HEADER_BYTES = 100000000  # the real reader's limits, both
    MAX_OPEN = 127  # arrays and objects
    HEADER = (("header_size", "Q", "bytes of JSON"),)
    ENTRY = Schema(
        ("dtype", TEXT, True, "type of the elements"), ("shape", INTEGERS, True, "dimensions"),
        ("data_offsets", SPAN, True, "bytes behind the header, [start, end)"))
    TOP = Schema(("__metadata__", Schema(other=(TEXT, "of the user")), None, "of the user"),
                 other=("any", "entry of a tensor", ENTRY), doc="metadata, tensors by name")

    def detect(self, head: bytes) -> bool:  # a larger header is refused by read()
        return head[8:9] == b"{" and unpack_from("<Q", head, 0)[0] < 1 << 40

    def notes(self, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        for item in tensors:
            if item.attrs.get("st_dtype") not in (None, *self.TYPES):
                yield (f"tensor {quote(item.name)}: no dtype of {self.NAME} is called "
                       f"{quote(item.attrs['st_dtype'])}: its readers refuse the file")

    def read(self, cursor: Cursor) -> Any:
        nbytes, = cursor.record(self.HEADER)
        base = 8 + nbytes
        cursor.limit("header_size", nbytes, 0, cursor.end - 8, "the file ends (cut short?)")
        cursor.limit("header_size", nbytes, 0, self.MAX_HEADER_BYTES, "MAX_HEADER_BYTES",
                     Unsupported)
        cursor.root = "header"
        begins = cursor.head(min(nbytes, 1))
        if begins != b"{":
            raise cursor.error(f"the header begins with {begins!r}, not b'{{'", offset=8)
        top = cursor.json(nbytes, self.TOP, "header", depth=self.MAX_OPEN)
        metadata, attrs = top.pop("__metadata__", None), Map()
        if metadata == {}:
            attrs["empty_metadata"] = True
        tensors = cursor.entries(top, self.ENTRY, self.open_entry, about=(base,),
                                 fields=("", "data_offsets", "data_offsets"))
        cursor.together(self.check_places, cursor, base, tensors)
        return attrs, metadata or Map(), tensors

    def open_entry(self, cursor: Cursor, name: str, entry: Any, base: int) -> Tensor:
        """Return the Tensor of an entry."""
        code, shape, (start, end) = [entry[key] for key in self.ENTRY.rows]
        _, bits, dtype = self.TYPES.get(code, (0, 0, ""))
        need = bits * count_elements(shape)
        if max(count_elements(until_0(shape)), need) >> 64:
            raise cursor.error(f"the shape {show(shape)} has 2**64 elements or bits or more",
                               "shape", check="sizes")
        if need % 8:
            raise cursor.error(f"{code} {show(shape)} needs {need} bits, not whole bytes",
                               "shape", check="sizes")
        if bits and need != 8 * (end - start):
            what = f"{end - start} bytes stored, {code} {show(shape)} needs {need} bits"
            raise cursor.error(what, "data_offsets", check="sizes")
        entry.clear()  # of many entries, only the dict is left
        why = None if dtype in ITEMSIZE else no_values(f"dtype {show(code)}", code)
        stored = Storage(cursor.source, end - start, why=why)
        return Tensor(name, None if why else dtype, tuple(shape), stored, base + start,
                      ("st_dtype", code) if why else (), self.NAME)

    def check_places(self, cursor: Cursor, base: int, tensors: Any) -> None:
        """Raise unless the data lie one behind the other, up to the end of the file."""
        at, items = base, list(tensors.values())
        for start, stop, i in sorted([(item.start, item.start + item.stored.nbytes, i)
                                      for i, item in enumerate(items)]):
            name = items[i].name
            if start != at:
                what = f"its data begin at {start}, those before end at {at}"
                raise cursor.error(what, name, "data_offsets", tensor=name, check="bounds")
            if stop > cursor.end and name in tensors:
                cursor.keep_whole(tensors, name, "data_offsets")
            at = stop
        if at < cursor.end:
            what = f"bytes after the end of the data: {cursor.end - at}"
            raise cursor.error(what, "trailing", offset=at, check="bounds")

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        problems = self.check_items(items, metadata, options)
        sort = self.choose("sort", True, options, {})
        empty = self.choose("empty_metadata", False, options, attrs)
        if not isinstance(sort, bool) or not isinstance(empty, bool):
            raise ValueError("sort and empty_metadata are bools")
        rows = []
        for name, item in items:
            code = self.DTYPES.get(str(item.dtype))
            given = self.own_attrs(item).get("st_dtype", code)
            if name == "__metadata__":
                problems.append((name, "the name is that of the metadata"))
            elif code not in (None, given):
                problems.append((name, f"st_dtype {show(given)} does not go with {item.dtype}"))
            elif 0 in item.shape and count_elements(until_0(item.shape)) >> 64:
                problems.append((name, f"shape {show(item.shape)}: over 2**64-1 elements"))
            rows.append((self.TYPES.get(given or "", (99, 0, ""))[0], name, given, item))
        self.refuse(problems)
        if sort:
            rows.sort(key=lambda row: row[:2])  # code points sort as UTF-8 does
        top: Facts = Map([("__metadata__", metadata)] if metadata or empty else [])
        at, starts = 0, []
        for _, name, code, item in rows:
            starts.append(at)
            at += item.nbytes
            top[name] = Map([("dtype", code), ("shape", item.shape),
                             ("data_offsets", (starts[-1], at))])
        data = json_text(top).encode()
        data += b" " * (-len(data) % 8)
        base = 8 + len(data)
        if len(data) > self.MAX_HEADER_BYTES:
            raise ValueError("a header of %d bytes; MAX_HEADER_BYTES = %d" % (
                len(data), self.MAX_HEADER_BYTES))
        return self.lay_out(pack_record(self.HEADER, len(data)) + data, [row[1::2] for row in rows],
                            [base + start for start in starts], base + at)


OPAQUE = {"complex64": "C64", "float4_e2m1fn_x2": "F4"}  # types whose bytes alone are read here


def opaque_tensor(view: Any, given: str) -> Tensor:
    """Return an array of a type without values here, for the format that holds its bytes."""
    shape, raw = view.shape, view.tobytes()
    if NATIVE == ">" and given == "complex64":
        raw = swap(raw, 4)
    if given.endswith("_x2"):
        shape = shape[:-1] + (2 * shape[-1],)
    stored = Storage(Memory(raw), len(raw), why=no_values(given, OPAQUE[given]))
    return Tensor("", None, shape, stored, 0, ("st_dtype", OPAQUE[given]), Safetensors.NAME)


# -- [7g] burnrecord -----------------------------------------------------------------------------


class RecordTree(Msgpack):
    """Reads a record; a bin or ext is left in the file, as (kind, start, stop).

    Of Burn before 0.14, whose tensors are lists of numbers, only the metadata are read.
    """

    limit = "MAX_DEPTH"
    WRONG_KEY = FormatError

    def key(self, out: Any, depth: int) -> Any:
        start = self.cursor.pos
        key = super().key(out, depth)
        if type(key) is not str:
            raise self.error("a key that is not text", start)
        return key

    def container(self, kind: str, count: int, depth: int, key: Any) -> Any:
        found = super().container(kind, count, depth, key)
        at_metadata = kind == "map" and depth == 2 and key == "metadata"
        version = found.get("version") if at_metadata else None
        if type(version) is str and version.startswith(BurnRecord.OLD):
            raise self.cursor.error(BurnRecord.NUMBERS, "metadata", "version",
                                    offset=self.cursor.pos, error=Unsupported)
        return found

    def body(self, kind: str, nbytes: int) -> Any:
        start = self.cursor.pos
        if kind != "str":
            self.cursor.pos += nbytes + (kind == "ext")
            return kind, start, self.cursor.pos
        text = decode_text(self.cursor.next_bytes(nbytes, ""))
        if text is None:
            raise self.error("text is not UTF-8")
        return text


class BurnRecord(Format):
    """The named MessagePack record of Burn (.mpk), its default file up to 0.21, from 0.14 on.

    one map   = "metadata": {"float", "int", "format", "version", "settings": all text},
                "item": the module: maps and arrays around parameters,
                "_b": []
    parameter = {"id": text, "param": TENSOR}
    TENSOR    = {"bytes": bin, "shape": [unsigned ...], "dtype": "F32"}, little-endian, row-major

    Names are keys and indices, joined by "."; the item itself is called "item". dtypes and schemes
    are those of Burnpack. Never written: Burn 0.22 has no reader for it. Not read: tensors as lists
    of numbers, of Burn before 0.14; the same with "item" first or without names; Burn's recorders
    for .bin and .json.
    """

    NAME = FAMILY = "burnrecord"
    TITLE = "Burn's record"
    HOLDS = "read only: convert it to .bpk; numbers and texts (scalars), param_id, quantized bytes"
    SUFFIXES = (".mpk",)
    MAGICS = (b"\x82\xa8metadata", b"\x83\xa8metadata")  # from 82 to 8f: detect()
    WRITES = False
    NEEDS = ("burnpack",)
    DTYPES = Burnpack.DTYPES
    FILE_ATTRS = ("float", "int", "format", "version", "settings", "scalars")
    TENSOR_ATTRS = ("param_id", "id", "burn_dtype")
    DTYPE_ATTRS = ("burn_dtype",)
    CONTENT = ("param_id", "scalars")
    USES = ("quantized",)
    OLD = tuple([f"0.{minor}." for minor in range(14)])
    MAX_NAMES = 4 << 20  # bytes of memory for names, besides 24 for each of the file
    NUMBERS = "a .mpk of numbers, of Burn before 0.14, is not read; Burn 0.13 does"
    BASE32 = "0123456789abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUV"

    def detect(self, head: bytes) -> bool:
        return head[1:10] == b"\xa8metadata" and 0x82 <= head[0] < 0x90

    ITEM = Schema(("id", "any", False, "Burn's own id of it"),
                  ("bytes", "any", False, "the elements"), ("shape", "any", False, "dimensions"),
                  ("dtype", "any", False, "type of the elements"), doc="one map")
    ITEM.rows["param"] = "any", "the tensor", ITEM  # maps of any depth
    ITEM.other = "any", "of the record", ITEM
    METADATA = Schema(*[(key, TEXT, True, "of the record") for key in (
        "float", "int", "format", "version", "settings")], other=(TEXT, "of the record"))

    def read(self, cursor: Cursor) -> Any:
        if not self.detect(cursor.head(10)):
            self.check_magic(cursor, self.MAGICS[1])
        top = cursor.msgpack_map(RecordTree, self.ITEM, "magic")
        metadata, scalars = top["metadata"], Map()
        cursor.check(self.METADATA, metadata, "metadata")
        if "item" not in top:
            raise cursor.error("the map has no item", "item", offset=0)

        def rows() -> Chunks:
            for path, value, attrs in self.each_value(("item",), top["item"]):
                cursor.where, cursor.tensor = path, None
                name = cursor.join_name([str(key) for key in path[1:]]) or "item"
                if attrs is not None:
                    entry = value["param"] if attrs else value
                    yield name, path + ("param",) if attrs else path, entry, attrs
                else:
                    cursor.one(self.add_number, cursor, scalars, name, value)
        tensors = cursor.entries(rows(), None, self.open_tensor, high=cursor.end,
                                 fields=("", "bytes", "bytes"))
        if scalars:
            metadata["scalars"] = scalars
        return metadata, Map(), tensors

    def each_value(self, path: Any, value: Any) -> Chunks:
        """Yield (path, entry, attrs) of each tensor; attrs are None of a number or a text."""
        entry, attrs = value, ()
        if type(value) is Map and len(value) == 2 and type(value.get("id")) is str:
            entry, attrs = value.get("param"), self.id_attrs(value["id"])
        if self.is_tensor(entry):
            yield path, value, attrs
        elif type(value) in (Map, list):
            for key, item in value.items() if type(value) is Map else enumerate(value):
                if item is not None:
                    yield from self.each_value(path + (key,), item)
        elif value is not None and type(value) is not tuple:  # bytes that are not a tensor's
            yield path, value, None

    @staticmethod
    def add_number(cursor: Cursor, scalars: Facts, name: str, value: Any) -> None:
        if name in scalars:
            raise cursor.error("two numbers or texts have this name: " + show(name))
        scalars[name] = value

    @staticmethod
    def is_tensor(entry: Any) -> bool:
        if type(entry) is not Map or "shape" not in entry:
            return False
        if len(entry) > 2:
            raw = entry.get("bytes")
            return "dtype" in entry and "bytes" in entry and (
                len(entry) == 3 or (type(raw) is tuple and raw[0] == "bin"))
        return type(entry["shape"]) is type(entry.get("value")) is list  # of Burn before 0.14

    def open_tensor(self, cursor: Cursor, _: int, row: Any) -> Tensor:
        name, path, entry, attrs = row
        cursor.tensor, cursor.where = name, path
        if "bytes" not in entry:
            raise cursor.error(self.NUMBERS, "value", error=Unsupported)
        raw, shape, code = entry["bytes"], entry["shape"], entry["dtype"]
        if INTEGERS(shape):
            raise cursor.error(f"shape is not {INTEGERS(shape)}", "shape")
        if type(raw) is not tuple or raw[0] != "bin":
            raise cursor.error("bytes is not a bin", "bytes")
        words = Burnpack.misfit_code(code)
        if words:
            raise cursor.error(f"dtype is {show(code)}, expected {words}", "dtype")
        dtype, more, why = Burnpack.dtype_of(code)
        make = Quantized if dtype == "qfloat" else Tensor
        made: Tensor = make(name, dtype, tuple(shape),
                            Storage(cursor.source, raw[2] - raw[1], why=why), raw[1], attrs + more,
                            self.NAME)
        entry.clear()  # of many entries, only the dict is left
        return made

    @staticmethod
    def id_attrs(text: str) -> Any:
        """Return the attr of an id: a number if it is Burn's, base 32 of 8 or 6 bytes."""
        spare, nbytes = 5 * len(text) % 8, 5 * len(text) // 8
        if nbytes not in (6, 8) or [c for c in text if c not in BurnRecord.BASE32]:
            return "id", text
        number = int(text, 32)
        if number & (1 << spare) - 1:
            return "id", text
        return "param_id", int.from_bytes((number >> spare).to_bytes(nbytes, "big"), "little")

    def check_options(self, options: Any) -> None:
        raise ValueError("burnrecord (.mpk) is not written, no living Burn reads it; save as .bpk")


# -- [8] other files -----------------------------------------------------------------------------

NOT_OURS = (  # how a file begins, a word near its start, what it is and what to do
    (b"PK\3\4", b".npy", "an .npz archive: save() takes dict(numpy.load(path))"),
    (b"PK\3\4", b"/data.pkl", "a PyTorch file: save() takes torch.load(path, map_location='cpu')"),
    (b"PK\3\4", b"", "a zip archive (an .npz? numpy.load; of PyTorch? torch.load)"),
    (b"\x93NUMPY", b"", "an .npy array: save() takes {name: numpy.load(path)}"),
    (b"\x80", b"", "a pickle: if it is of PyTorch, save() takes torch.load(path)"),
    (b"GGUF", b"", "GGUF of llama.cpp: the package gguf reads it"),
    (b"\x89HDF", b"", "HDF5: h5py reads it, save() takes the arrays"),
    (b"\x08", b"\x12", "ONNX: the package onnx reads it"),
    (b"\x1f\x8b", b"", "a gzip file: load(gzip.open(path).read())"),
    (b"\xfd7zXZ\0", b"", "an xz file: load(lzma.open(path).read())"),
    (b"BZh", b"1ay&sy", "a bzip2 file: load(bz2.open(path).read())"),
    (b"\x28\xb5\x2f\xfd", b"", "a zstd file: `zstd -dc FILE | tensorfmt ls -`"),
    (b"", b"\0ustar", "a tar archive: take the file out of it first"),
    (b"\xff\xd8\xff", b"", "a JPEG image"),
    (b"\x89PNG", b"", "a PNG image"),
    (b"GIF8", b"", "a GIF image"),
    (b"%PDF", b"", "a PDF document"),
    (b"<", b"html", "an HTML page, perhaps of an error: download the file itself"),
    (b"<?xml", b"", "XML, perhaps of an error: download the file itself"),
    (b"version ", b"git-lfs", "a Git LFS pointer: `git lfs pull` fetches the file itself"))


def looks_like(head: bytes) -> str:
    """Return what a file that begins so seems to be, and what to do; "" if nothing is known."""
    head = head[3:] if head[:3] == b"\xef\xbb\xbf" else head  # the mark of UTF-8
    looks = [text for start, word, text in NOT_OURS
             if head.lstrip().startswith(start) and word in head.lower()]
    if looks:
        return "it looks like " + looks[0]
    if head and not head.strip(b"\0"):
        return "it begins with zeros: a download that stopped?"
    texts = [decode_text(head[:len(head) - cut]) for cut in range(4)]  # a letter may be cut
    text = " ".join(([text for text in texts if text] + [""])[0].split())
    noun = "JSON" if text[:1] in ("{", "[") else "the text"
    return f"it is {noun} {quote(clip(text, 100))}" if text and text.isprintable() else ""


def guess(source: Any, error: FormatError) -> FormatError:
    """Return the error of a source of no known format, with what it looks like."""
    head = source.read(0, min(512, source.nbytes))
    looks = looks_like(head)
    what = f"not a tensor file known here; {looks}" if looks else error.what
    made = Unsupported if ".open(path)" in looks else FormatError  # what is inside may be right
    return made(what if head else "the file is empty", *error.args[1:])


# -- [8a] load -----------------------------------------------------------------------------------

FORMATS: "Tuple[Format, ...]" = (
    Mag(),
    ZTensor(),
    Primitiv(),
    Burnpack(),
    TensorBuffers(),
    Safetensors(),
    BurnRecord(),
)
LATER: "List[Format]" = [  # later generations
    Mag300(),
    ZTensor2(),
]
BY_NAME: "Dict[Any, Format]" = dict([(kind.NAME, kind) for kind in LATER] + [  # and by suffix
    (name, kind) for kind in FORMATS for end in kind.SUFFIXES
    for name in (kind.NAME, end, end[1:])])


def find_format(name: str) -> "Format":
    """Return the format with this name, or this suffix."""
    if name not in BY_NAME:
        names = ", ".join([kind.NAME for kind in FORMATS])
        raise ValueError(f"no format {show(name)}; there are {names}")
    return BY_NAME[name]


def kind_of(source: Any, name: Any) -> "Format":
    """Return the format by name, else by the leading bytes, never by the suffix."""
    head, wanted = source.read(0, min(64, source.nbytes)), name and find_format(name)
    for magic, lacks in LEFT_OUT.items():
        if head.startswith(magic):
            raise Unsupported(f"this copy was made without {lacks}", 0, "magic", None, source.path)
    kinds = LATER + list(reversed(FORMATS))  # 00 01 00 of a header's size is a version elsewhere
    for kind in [one for marked in (True, False) for one in kinds if one.MARKED is marked]:
        if kind.detect(head) and (not wanted or wanted.NAME in (kind.NAME, kind.FAMILY)):
            return kind
    if wanted:
        return wanted
    first = " ".join(["%02x" % byte for byte in head[:8]])
    error = FormatError(f"not a tensor file known here (it begins with {first})", 0, "magic", None,
                        source.path, "magic")
    raise error if "tools" in WITHOUT else guess(source, error)


def detect(source: Source) -> "Optional[str]":
    """Return the name of the format that the leading bytes tell, or None.

    >>> detect(b"ZTEN0001" + b"\\x80" + b"\\x01" + bytes(7))
    'ztensor'
    """
    opened = open_source(source, False)
    try:
        return kind_of(opened, None).FAMILY
    except FormatError:
        return None
    finally:
        opened.close()


def load(source: Source, *, format: "Optional[str]" = None, mmap: bool = True,
         verify: bool = False, partial: bool = False) -> File:
    """Open a tensor file of any format. O(index): no byte nor checksum of a tensor is looked at.

    `source`: a path, bytes, or a seekable binary stream (read from its start; not closed).
    `format`: what to read it as, if its bytes do not tell. mmap=False reads a tensor's bytes when
    asked for: for files that may be truncated meanwhile (mapped, the system kills the reader).
    `verify`: raise the first error that verify() finds. `partial`: of a file that was cut short, if
    its index is in front, the tensors that are whole; the names of others: .attrs["missing"].
    Raises FormatError (or its subclass Unsupported) for the bytes, OSError for the file.

    >>> f = load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    >>> f.format, list(f), f["w"].dtype, f["w"].tolist()
    ('ztensor', ['w'], 'float64', [1.0, 2.0])
    """
    opened = open_source(source, mmap)
    try:
        return open_file(kind_of(opened, format), opened, partial, verify)
    except BaseException as error:
        opened.close()
        if isinstance(error, FormatError):
            error.path = error.path or opened.path
            error.__traceback__ = error.__context__ = None  # they keep what was parsed
        raise error


def open_file(kind: "Format", source: Any, partial: bool = False, verify: bool = False) -> File:
    """Return what load() returns of a source of this format; its errors are exact."""
    options, error = ({"partial": True} if partial else {}), None
    try:
        if partial:
            parsed = Whole(source).read(kind, options)
        else:
            parsed = without_gc(kind.read)(Cursor(source))
        file: File = kind.make_file(source, parsed, options)
    except FormatError as caught:
        error = caught
    if error is not None:
        error.__traceback__ = None  # it keeps all that was parsed
        if "tools" not in WITHOUT:
            error = exact_error(error, kind, source, options)
        error.path = source.path
        raise error
    for error in verify_source(source, kind, options).errors if verify else ():
        raise error
    return file


# -- [8b] save -----------------------------------------------------------------------------------


def path_of(target: Any) -> str:
    if hasattr(target, "__fspath__"):
        target = os.fsdecode(target)
    if not isinstance(target, str):
        raise TypeError(f"a path is a str or os.PathLike, not {type(target).__name__}")
    return target


def in_order(tensors: Any, names: Any = None) -> Items:
    """Return items of a mapping, all or some; of a File by offset where its format sorts them."""
    items = list(tensors.items()) if names is None else [(name, tensors[name]) for name in names]
    if not isinstance(tensors, File) or not tensors.kind.DATA_ORDER:
        return items
    first: Any = {}  # of each source: the number of its first tensor; sources stay in their order
    keys = [(first.setdefault(id(item.stored.source), i), item.start, item.stored.nbytes, i)
            for i, (_, item) in enumerate(items)]
    return [items[key[3]] for key in sorted(keys)]


def file_attrs(file: Any, kind: "Format") -> Facts:
    """Return the attrs of a File of this format that save() knows; others are facts of the file."""
    given = file.attrs if isinstance(file, File) and file.kind is kind else {}
    return Map([(key, value) for key, value in given.items() if key in kind.FILE_ATTRS])


def by_name(pairs: Any) -> "Dict[str, Tensor]":
    """Return the values of (name, value) pairs as Tensors; TypeError for values without names."""
    found: "Dict[str, Tensor]" = Map()
    bare = (not hasattr(pairs, "__iter__") or hasattr(pairs, "shape")
            or hasattr(pairs, "state_dict"))
    for pair in [pairs] if bare else pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("tensors are a mapping of names to values (of a torch module, its "
                            "state_dict()) or pairs of both, not " + type(pair).__name__)
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {show(name)}")
        if name in found:
            raise ValueError(f"two tensors are called {show(name)}")
        try:
            found[name] = value if isinstance(value, Tensor) else _from_value(value, None, {})
        except (ValueError, TypeError, RuntimeError) as error:  # torch raises the last
            wrong = TypeError if isinstance(error, TypeError) else ValueError
            raise wrong(f"tensor {quote(name)}: {error}")
    return found


def encode_file(kind: "Format", tensors: Any, metadata: Any, attrs: Any, options: Facts) -> Chunks:
    """Check everything, then return an iterator over the bytes of the file."""
    if hasattr(tensors, "items"):
        found = without_gc(by_name)(in_order(tensors))
    else:
        found = by_name(tensors)  # to make given pairs may take long
    kind = choose_generation(kind, options, tensors, found.values(), attrs)
    kind.check_options(options)
    if metadata is None:
        metadata = tensors.metadata if isinstance(tensors, File) else {}
    attrs = file_attrs(tensors, kind) if attrs is None else attrs
    for what, given in ("metadata", metadata), ("attrs", attrs):
        if not hasattr(given, "items"):
            raise TypeError(f"{what} is a mapping, not {type(given).__name__}")
    for key in [key for key in attrs if key not in kind.FILE_ATTRS]:
        known = ", ".join(kind.FILE_ATTRS)
        raise ValueError(f"{kind.NAME}: unknown file attribute {show(key)}; there are {known}")
    items = list(found.items())
    check_work(items)
    chunks: Chunks = without_gc(kind.write)(items, metadata, attrs, options)
    check_stored(items)
    return chunks


def check_stored(items: Items) -> None:
    """Raise FormatError where stored bytes do not agree with their checksum."""
    seen = set()  # what was hashed
    for name, item in [pair for pair in items if pair[1].format is not None]:
        kind, source = BY_NAME[str(item.format)], item.stored.source
        for label, offset, nbytes, digest in kind.checksums(item):
            if (id(source), offset, nbytes, digest) not in seen:
                seen.add((id(source), offset, nbytes, digest))
                status, why = kind.check_range(source, offset, nbytes, digest)
                if status == "FAIL":
                    raise FormatError(label + why, offset, "data", name, source.path, "checksums")


def target_format(format: Any, target: Any, tensors: Any) -> "Format":
    """Return the format by the argument, else by the suffix, else that of a File."""
    if format is not None:
        return find_format(format)
    path = "" if hasattr(target, "write") else path_of(target)
    for kind in FORMATS + tuple(LATER):
        if [suffix for suffix in kind.SUFFIXES if path.lower().endswith(suffix)]:
            return kind
    if path and hasattr(tensors, "metadata"):  # a File, also of another copy
        return find_format(tensors.format)
    names = ", ".join([f"{kind.NAME} {kind.SUFFIXES[0]}" for kind in FORMATS if kind.WRITES])
    raise ValueError("which format? give format= or a suffix: " + names)


def save(target: Target, tensors: Any, *, format: "Optional[str]" = None,
         metadata: Any = None, attrs: Any = None, **options: Any) -> None:
    """Write tensors to a path or a writable binary stream.

    `tensors`: a File, a mapping of names to values, or (name, value) pairs; values as tensor()
    takes them. The format: `format`, else the suffix, else that of the File. `metadata` and
    `attrs` (facts of the format) are those of the File unless given. What the format cannot hold
    is a ValueError before the first byte; damaged bytes of a source are a FormatError. A file is
    written as `.NAME.N.tmp` beside the target, then renamed: a failure or Ctrl-C leaves the old
    file as it was. Only a killed process leaves the `.tmp` behind: delete it. The mode and
    symbolic links are kept; devices are written in place.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> save(stream, {"w": [1.0]}, format="ztensor")
    >>> load(stream)["w"].tolist()
    [1.0]
    """
    kind = target_format(format, target, tensors)
    write_out(target, encode_file(kind, tensors, metadata, attrs, options))


def dumps(tensors: Any, *, format: str, metadata: Any = None, attrs: Any = None,
          **options: Any) -> bytes:
    """Return what save() would write; load() takes it back.

    >>> len(dumps({}, format="mag")), dumps({}, format="ztensor").hex()
    (24, '5a54454e30303031800100000000000000')
    """
    return b"".join(encode_file(find_format(format), tensors, metadata, attrs, options))


def write_out(target: Any, chunks: Any) -> int:
    """Write a file to a path or a stream; return its bytes."""
    if hasattr(target, "write"):
        return write_all(target, chunks)
    path = path_of(target)
    real = os.path.realpath(path)
    if os.path.basename(path) in ("", ".", ".."):  # a path that realpath() shortens
        raise ValueError(f"{plain(path)} is the name of a folder, not of a file")
    if os.path.exists(path) and not (os.path.isfile(real) and os.path.samefile(path, real)):
        with open(path, "wb", 0) as stream:  # a device, a pipe, /dev/fd/N of a deleted file
            return write_all(stream, chunks, path)
    return _write_beside(real, chunks, path)


def of_target(error: OSError, target: Any) -> OSError:
    """Return the error that names the target; the system does not where a disk is full."""
    if target is None or error.errno is None:
        return error
    return OSError(error.errno, error.strerror, target)


def write_all(stream: Any, chunks: Chunks, target: Any = None) -> int:
    """Write every chunk whole, also where write() takes a part; return the bytes.

    Errors of write() name the target, if it is a path; those of the chunks come as they are.
    """
    total = 0
    for chunk in chunks:
        left = len(chunk)
        total += left
        while left > 0:
            try:
                count = stream.write(chunk)
            except OSError as error:
                raise of_target(error, target)
            if count is None and not hasattr(stream, "readall"):  # not a raw one: it took all
                break
            if count is None or count < 1:
                raise OSError("the target is full")
            left -= count
            chunk = memoryview(chunk)[count:]
    return total


def _write_beside(path: str, chunks: Chunks, target: str) -> int:
    """Write a file beside the path, then rename it over it; errors speak of the target."""
    from functools import partial
    folder, name = os.path.split(path)
    # Random: whatever bears the name is ours, also if Ctrl-C comes between open() and `stream =`.
    number = int.from_bytes(os.urandom(6), "little")
    temporary = os.path.join(folder, ".%s.%d.tmp" % (name[:40], number))
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else None
    stream: Any = None
    try:  # made with the mode: nobody may read what the target does not let him
        opener = partial(os.open, mode=0o666 if mode is None else mode)
        stream = open(temporary, "xb", opener=opener)
        if mode is not None and hasattr(os, "chmod"):  # also the bits that the umask took
            os.chmod(temporary, mode)
        total = write_all(stream, chunks, target)
        close_synced(stream, target)
        getattr(os, "replace", os.rename)(temporary, path)
    except BaseException as error:
        for undo in (lambda: stream and stream.close(), lambda: os.remove(temporary)):
            try:
                undo()
            except OSError:  # the disk is still full; it was renamed, or never made
                pass
        if isinstance(error, OSError) and error.filename in (temporary, path):
            text = f"{error.strerror}"
            if os.name == "nt" and error.errno == 13:
                text += " (is it mapped? close() the File, drop its views, or load with mmap=False)"
            raise OSError(error.errno, text, target)  # which the user knows
        raise
    sync_folder(folder)
    return total


def close_synced(stream: Any, target: str) -> None:
    """Bring what was written to the disk and close the file."""
    try:
        stream.flush()
        if hasattr(os, "fsync"):
            os.fsync(stream.fileno())
        stream.close()
    except OSError as error:
        raise of_target(error, target)


def sync_folder(folder: str) -> None:
    """Make a rename durable where folders can be synced (not on Windows)."""
    try:
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except (OSError, AttributeError):
        pass


# -- [8b2] work ----------------------------------------------------------------------------------
#
# A small file can name the same bytes for many tensors: what it may make us do has a limit.

MAX_COPIES = 64  # file sizes that tensors may come to that share bytes, but for the largest


def decode_work(item: Any) -> int:
    """Return the bytes to decode of the parts of a tensor, as far as the index tells."""
    entry, nbytes = item.stored.entry, 0
    for part in entry.parts.values() if entry else [item.stored]:
        if part.encoding != "raw" and part.why is None:
            nbytes += 8 * part.nbytes  # a byte can be a whole block of the codec
            if entry:  # the decoded size lies in it
                nbytes += min(part.nbytes << 15, 8 * sum(item.shape) + 8 * item.size)
    return nbytes


def check_work(items: Items, cast: bool = False) -> None:
    """Raise ValueError where a file makes us do far more than it is: bytes named many times."""
    files: Any = {}  # of each file its bytes and tensors; parts of one have its name
    for item in [getattr(item, "_base", item) if item.stored.encoding == "cast" else item
                 for _, item in items]:
        if item.stored.source.of_file:
            source = item.stored.source
            files.setdefault(id(source), (source.nbytes, {}))[1][item.name] = item
    for nbytes, named in files.values():
        tensors, work, reach = list(named.values()), {}, 0
        for start, stop, i in sorted([(start, start + size, i) for i, item in enumerate(tensors)
                                      for start, size, _ in item.ranges()]):
            if (start < reach or start == stop) and i not in work:  # bytes of another, or none
                item = tensors[i]
                stored = sum([row[1] for row in item.ranges()])
                work[i] = max(item.nbytes, stored) + decode_work(item)
                work[i] += 4 * item.size if cast and item.dtype == "qfloat" else 0
            reach = max(reach, stop)
        total = sum(work.values()) - max(work.values(), default=0)
        if total > MAX_COPIES * nbytes:
            raise ValueError(f"the tensors name the same bytes of {nbytes} again and again, for "
                             f"{total}; MAX_COPIES = {MAX_COPIES}")


# -- [8c] shards ---------------------------------------------------------------------------------

ANYWHERE = "partial=True takes each tensor from where it is whole"


MAX_OPEN_SHARDS = 200  # at once; others are opened for each read: descriptors are few


class Reopened(Lazy):
    """The source of a shard that is opened for each read."""

    zero_copy: Any = False

    def __init__(self, source: Any) -> None:
        super().__init__(*source.stamp + (source.nbytes,))
        self.path = source.path

    def view(self, offset: int, nbytes: int) -> Any:
        if self._source is False:
            raise ValueError(f"{plain(self.path)}: the File is closed")
        source = open_path(self.stamp[0], False)
        try:
            if (source.nbytes, source.stamp[2]) != (self.nbytes, self.stamp[2]):
                raise FormatError("the shard has changed since it was opened", path=self.path)
            return source.view(offset, nbytes)
        finally:
            source.close()


class Joined(File):
    """A model in several files; a shard is opened when one of its tensors is asked for.

    A shard must have the tensors that the index places there, no more and no less. With `partial`
    all shards are opened at once, and a tensor is taken from wherever it is whole.
    """

    def __init__(self, kind: "Format", source: Any, attrs: Facts, places: Any,
                 options: Any) -> None:
        self.kind, self.format, self._options, self.path = kind, kind.FAMILY, options, source.path
        self.attrs, self._source = attrs, source
        self._tensors: Any = places  # name of a tensor -> name of its shard
        self.parts: "Dict[str, File]" = Map()  # shards that are open
        self.broken: "Dict[str, FormatError]" = {}  # others: to parse them again would take long
        self.names: "Dict[str, List[str]]" = {}  # shard -> tensors that the index places there
        for name, shard in places.items():
            self.names.setdefault(shard, []).append(name)

    def part(self, shard: str) -> File:
        """Return a shard as a File; FormatError where it is missing or is not that of the index."""
        if shard in self.broken:
            raise same_error(self.broken[shard])
        if shard not in self.parts:
            try:
                file = self.open_part(shard)
                partial = self._options.get("partial")
                for name, what in () if partial else self.misplaced(shard, file):
                    file.close()
                    raise FormatError(f"{what}; {ANYWHERE}", None, "weight_map", name, self.path)
            except FormatError as error:
                self.broken[shard] = same_error(error)
                raise
            self.parts.setdefault(shard, file)  # another thread may have been first
        return self.parts[shard]

    def open_shard(self, shard: str) -> Any:
        """Return the source of a shard: a file beside the index, wherever we are by now."""
        if self._source.stamp is None:
            raise Unsupported("shards lie beside their index: load it by its path")
        self._source.read(0, 1)  # raises where the File is closed
        index, mapped, _ = self._source.stamp
        path, where = [os.path.join(os.path.dirname(str(one)), shard)
                       for one in (self.path, index)]
        if not os.path.isfile(where):
            what = (f"the shard is {dangling_link(where) or 'missing'}: download it again; "
                    f"{ANYWHERE}; each other shard can be loaded by its own path")
            raise Unsupported(what, path=path)
        source = open_path(where, mapped)
        source.path = path
        made: Any = source
        if len(self.parts) >= MAX_OPEN_SHARDS:
            made = Reopened(source)
        elif source.zero_copy:  # a mapping: the file need not stay open
            made = Memory(source.view(0, source.nbytes), True)
            made.path, made.stamp = path, source.stamp
        if made is not source:
            source.close()
        return made

    def open_part(self, shard: str) -> File:
        """Return a shard as a File, whatever tensors it has."""
        source = self.open_shard(shard)
        try:
            kind = kind_of(source, None)
            if kind is not self.kind:
                what = f"shards are {self.kind.TITLE} files, this is {kind.TITLE}"
                raise FormatError(what, path=source.path)
            return open_file(kind, source, **self._options)
        except BaseException:
            source.close()
            raise

    def misplaced(self, shard: str, file: File) -> Chunks:
        """Yield (name, what is wrong) of tensors that a shard lacks or has against the index."""
        for name in self.names.get(shard, ()):
            if name not in file:
                yield name, f"weight_map places it in {quote(shard)}, which lacks it"
        for name in file:
            place = self._tensors.get(name)
            if place is None:
                yield name, f"it is in {quote(shard)}, but weight_map lacks it"
            elif place != shard:
                yield name, f"weight_map places it in {quote(place)}, but {quote(shard)} has it"

    def keep_whole(self) -> None:
        """Take each tensor from where it is whole; those that are nowhere are attrs["missing"]."""
        found, names = Map(), Map.fromkeys(self._tensors)
        for shard in self.attrs["shards"]:
            try:
                file = self.part(shard)
            except FormatError:
                if self._source.stamp is None:  # where none can be looked for
                    raise
                continue
            names.update(Map.fromkeys(list(file) + file.attrs.get("missing", [])))
            for name in file:
                if name not in found or self._tensors.get(name) == shard:
                    found[name] = shard
        self._tensors = Map([(name, found[name]) for name in names if name in found])
        self.attrs["missing"] = [name for name in names if name not in found]

    def __getitem__(self, name: str) -> Tensor:
        return self.part(str(super().__getitem__(name)))[name]

    def items(self) -> Any:
        return Map([(name, self[name]) for name in self]).items()

    def values(self) -> Any:
        return [self[name] for name in self]

    def close(self) -> None:
        super().close()
        for file in list(self.parts.values()):
            file.close()

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """The stored bytes of all tensors, whose shards it opens."""
        return sum([item.stored.nbytes for item in self.values()])

    @property
    def metadata(self) -> Facts:  # type: ignore[override]
        """That of all files, which it opens; ValueError where they do not agree."""
        found, differ = self.merged(self)
        if differ:
            raise ValueError(f"the files do not agree on {', '.join(list(differ.values())[:9])}; "
                             "convert(drop=True) leaves it out")
        return found

    def merged(self, names: Any) -> "Tuple[Facts, Any]":
        """Return the metadata that the files of some tensors agree on; of other keys a text."""
        found, differ = Map(), Map()
        for shard in sorted(set([self._tensors[name] for name in names])):
            for key, value in self.part(shard).metadata.items():
                if found.setdefault(key, value) != value:
                    differ[key] = f"metadata {show(key)}"
        return Map([pair for pair in found.items() if pair[0] not in differ]), differ


def same_error(error: FormatError) -> FormatError:
    """Return an error anew, without the traceback, which keeps what was parsed."""
    return type(error)(error.what, error.offset, error.field, error.tensor, error.path, error.check)


def misfit_shard(name: Any) -> str:
    """Return what the name of a shard should be, or ""."""
    fine = is_text(name) and name.strip(".") and not [c for c in "/\\:\0" if c in name]
    return "" if fine else "a plain file name"


OneFile: Any = type(BY_NAME.get("safetensors", Format()))  # a copy may lack it


class Shards(OneFile):  # type: ignore[misc]
    """The index of a model in several safetensors files (model.safetensors.index.json), read only.

    JSON object: "weight_map": name of a tensor -> name of the file that has it, beside the index;
    "metadata": {"total_size": bytes of tensors ...}?

    Shards are plain names of files in its folder; nothing else is opened. No library reads
    total_size when it loads, and released tools write other numbers there.
    """

    NAME, FAMILY, TITLE = "shards", "safetensors", "safetensors index"
    SUFFIXES = (".safetensors.index.json",)
    CHECKS = ("index", "shards")
    MARKS: "Dict[str, str]" = {}
    TOP = Schema(
        ("metadata", MAP, None, "of the writer"),
        ("weight_map", Schema(other=(misfit_shard, "the file of it")), True,
         "files by name of the tensor"), doc="an index")

    def detect(self, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and (b'"total_' in head or b'"weight_map"' in head)

    def read(self, cursor: Cursor) -> Any:
        top = cursor.json(cursor.end, self.TOP, "index", b" \t\r\n")
        attrs = Map([("shards", sorted(set(top["weight_map"].values()))),
                     ("index", top.get("metadata") or Map()), ("weight_map", top["weight_map"])])
        return attrs, Map(), Map()

    def make_file(self, source: Any, parsed: Any, options: Any) -> File:
        attrs = Map(parsed[0].items())
        places = attrs.pop("weight_map", Map())
        file = Joined(BY_NAME[self.FAMILY], source, attrs, places, options)
        if options.get("partial"):
            file.keep_whole()
        return file

    def check_shards(self, source: Any, attrs: Any, verify: Any) -> Chunks:
        """Yield (status, text, tensor) of each shard; verify(shard) returns its Report."""
        if source.stamp is None:
            yield "-", "not looked for: they lie beside the index, which has no path", None
            return
        file: Any = self.make_file(source, (attrs,), {})
        sizes: "List[int]" = []
        for shard in attrs["shards"]:
            name = quote(shard)
            try:
                with file.open_part(shard) as found:
                    sizes.append(sum([item.stored.nbytes for item in found.values()]))
                    rows = [("FAIL", what, tensor) for tensor, what in file.misplaced(shard, found)]
                    rows += [("FAIL", f"{name}: {error.what}", error.tensor)
                             for error in verify(found).errors]
                    yield from rows or [("ok", f"{name}: {count_of(len(found), 'tensor')}", None)]
            except FormatError as error:
                yield "FAIL", f"{name}: {error.what}", error.tensor
        said, total = attrs["index"].get("total_size"), sum(sizes)
        if said is not None and len(sizes) == len(attrs["shards"]):
            text = f"total_size is {show(said)}, the tensors have {count_of(total, 'byte')}"
            yield "ok" if said == total else "note", text, None

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Any:
        raise ValueError("a model in shards is only read: save one .safetensors file of any size; "
                         "the library huggingface_hub splits models of torch")


def open_folder(path: str, mapped: bool) -> Any:
    """Return the source of a path: of a folder, its one index, else its one tensor file."""
    if not os.path.isdir(path):
        return open_path(path, mapped)
    for ends in Shards.SUFFIXES, tuple([end for kind in FORMATS for end in kind.SUFFIXES]):
        found = [name for name in sorted(os.listdir(path)) if name.lower().endswith(ends)]
        if len(found) == 1:
            count = found[0].rpartition("-of-")[2].partition(".")[0]
            if count.isdigit() and int(count) > 1:
                raise ValueError(f"{plain(path)}: {plain(found[0])} is one of {int(count)} shards, "
                                 "their index is missing; by its own path it is read alone")
            return open_path(os.path.join(path, found[0]), mapped)
        if found:
            break
    inside = ", ".join(map(plain, found[:9])) or "no tensor files"
    raise IsADirectoryError(21, f"is a directory; it has {inside}", path)


if OneFile is not Format:
    LATER.append(Shards())
    BY_NAME[Shards.NAME] = LATER[-1]


# -- [8d] pickles --------------------------------------------------------------------------------


def source_again(*args: Any) -> Any:
    from weakref import WeakValueDictionary
    Lazy.shared = Lazy.shared or WeakValueDictionary()
    return Lazy.shared.get(args) or Lazy.shared.setdefault(args, Lazy(*args))


def reduce_source(source: Any) -> Any:
    """Pickle a source by reference (path, size, mtime) if it comes from a path, else by value."""
    if source.stamp is not None:
        return source_again, source.stamp + (source.nbytes,)
    return Memory, (source.read(0, source.nbytes), source.of_file)


def reduce_tensor(item: Tensor) -> Any:
    """Pickle a tensor with its source; in memory, with a copy of its own bytes only."""
    stored, start = item.stored, item.start
    if stored.source.stamp is None:
        base = item if stored.strides is None else item.contiguous()
        old, start, memory = base.stored, 0, Memory(bytes(base.raw))
        stored = Storage(memory, memory.nbytes, None, old.order, old.encoding, old.why)
    args = item.name, item.dtype, item.shape, stored, start, item.attrs, item.format
    return type(item), args


def deepcopy_tensor(item: Tensor, memo: Any) -> Tensor:
    """Return a tensor over the same open file; in memory, with a copy of its own bytes."""
    from copy import deepcopy
    make, args = item.__reduce__()
    made: Tensor = make(*args)
    made._attrs = deepcopy(item.attrs, memo)
    return made


def reduce_file(file: Any) -> Any:
    """Pickle a File by its path."""
    source = file._source
    if source.stamp is None:
        raise TypeError("a File pickles by path; this one comes from a buffer or a stream")
    return load_again, (file.format, source.stamp + (source.nbytes,), file._options)


def copy_file(file: Any) -> File:
    """Return another File over the same open file, which either of them closes."""
    made: File = object.__new__(type(file))
    made.__dict__.update(file.__dict__)
    return made


def deepcopy_file(file: Any, memo: Any) -> File:
    """Return a copy of a File with metadata, attrs and Tensors of its own."""
    from copy import deepcopy
    made = memo[id(file)] = copy_file(file)
    for key in set(made.__dict__).intersection(("attrs", "metadata", "_tensors", "parts")):
        made.__dict__[key] = deepcopy(made.__dict__[key], memo)
    return made


def load_again(format: str, stamp: Any, options: Facts) -> File:
    """Return the File of a pickle, unless the file has changed."""
    source = Lazy(*stamp).open()
    return open_file(kind_of(source, format), source, **options)


# -- [8e] arrays ---------------------------------------------------------------------------------
#
# What numpy, torch and jax ask a Tensor for.


def to_numpy(item: Any, dtype: Any = None, copy: Any = None) -> Any:
    """Return a numpy array; bfloat16 and float8 as ml_dtypes has them if loaded, or as "V".

    With copy=False it shows the stored bytes, or there is a ValueError.
    """
    import numpy
    known, size = sys.modules.get("ml_dtypes"), item.itemsize
    packed = item.dtype in PACK  # a type that numpy alone lacks
    widened = packed and dtype is not None and not known
    swapped = packed and size > 1 and item.stored.order != NATIVE
    if copy is False and (widened or swapped or isinstance(item, Derived)):
        raise ValueError(f"copy=False: elements as {dtype or item.dtype} have to be made first")
    base = item.contiguous() if isinstance(item, Derived) else item
    if packed and not widened:
        bits = numpy.asarray(base.copy(dtype=f"uint{8 * size}"), f"u{size}")  # native
        bits.flags.writeable = False
        array = bits.view(getattr(known, str(item.dtype), f"V{size}"))
    else:
        array = numpy.asarray(base.astype("float32") if widened else base)
    return numpy.array(array) if copy else array  # numpy casts if need be


def to_dlpack(item: Any, **options: Any) -> Any:
    """Give what torch.from_dlpack and others ask for, zero-copy, through numpy or torch."""
    if item.dtype in PACK:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            raise BufferError(
                f"{item.dtype} needs torch (import it before), or jax.numpy.asarray")
        bits = torch.from_dlpack(item.copy(dtype=f"int{8 * item.itemsize}"))
        return bits.view(getattr(torch, item.dtype)).__dlpack__(**options)
    import numpy
    array = numpy.asarray(item, item.dtype)  # native
    copied = array.strides != tuple(map(abs, array.strides)) or not options.get("max_version")
    if options.get("copy") is False and (copied or isinstance(item, Derived)
                                         or item.stored.order != NATIVE and item.itemsize > 1):
        raise BufferError("copy=False: the elements have to be made first, or be copied")
    if copied:  # torch takes no negative strides, old libraries nothing read-only
        array = array.copy()
    return array.__dlpack__(**options)


def to_jax(item: Any) -> Any:
    """Return an array of jax."""
    array = item.__array__()
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return sys.modules["jax"].numpy.asarray(native)


def to_buffer(item: Any) -> Any:
    """Return an exact C-order native view, or raise BufferError."""
    code = STRUCT_CODE.get(str(item.dtype))
    if not code or not item.lies(NATIVE) or item.stored.strides or 0 in item.shape or (
            item.ndim > 64):
        raise BufferError("not a plain native array with elements: take .contiguous().data")
    return item.data.cast("B").cast(code, item.shape)


# -- [8f] shown ----------------------------------------------------------------------------------


def preview(item: Tensor) -> str:
    """Return the values for a person as numpy does: of over MAX_SHOWN those at the edges."""
    rank, edge = item.ndim, MAX_SHOWN
    if rank > 64:
        raise ValueError(f"{rank} dimensions are too many to be shown; see .flat")
    if not 0 < item.size <= MAX_SHOWN:
        edge = 3 if rank < 4 else 1 if rank < 8 else 0
    whole = item.item() if not rank else item.decoded() if isinstance(item, Derived) else item
    widths = [0]
    text_of(whole, rank, rank, edge, widths)  # finds the widest value
    return text_of(whole, rank, rank, edge, widths)


def text_of(part: Any, depth: int, rank: int, edge: int, widths: Any) -> str:
    """Return a part with `depth` of `rank` dimensions as text; widths[0]: of the widest value."""
    if not depth:
        text = repr(float("%.8g" % part) if isinstance(part, float) else part)
        widths[0] = max(widths[0], len(text))
        return " " * (widths[0] - len(text)) + text
    n = part.shape[0]
    places = list(range(n)) if n <= 2 * edge else (
        list(range(edge)) + [-n] + list(range(n - edge, n)))
    texts = ["..." if i < 0 else text_of(part[i], depth - 1, rank, edge, widths) for i in places]
    if depth == 1:  # in lines of 78 columns
        count = max(1, (80 - 2 * rank) // (widths[0] + 2))
        texts = [", ".join(texts[i:i + count]) for i in range(0, len(texts), count)]
    return "[" + (",\n" + " " * (rank - depth + 1)).join(texts) + "]"


def json_ready(value: Any) -> Any:
    """Return a value as JSON has it; what JSON lacks as text, bytes as hex digits."""
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: json_ready(item) for key, item in value.items()}
        return [[json_ready(key), json_ready(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, int) and abs(value) >> 128:
        return show(value)
    if isinstance(value, float) and not abs(value) < INFINITY:
        return repr(value)
    return value if value is None or isinstance(value, (str, int, float)) else repr(value)


def to_json(value: Any) -> str:
    from json import dumps
    return dumps(json_ready(value))


class Result:
    """What verify(), convert() and diff() return: attributes, a text for people, to_json()."""

    def facts(self) -> Facts:
        """Return what to_json() writes."""
        return vars(self)

    def to_json(self) -> str:
        """Return it as one line of JSON, as `--json` prints it."""
        return to_json(self.facts())


def same_stored(a: Tensor, b: Tensor) -> bool:
    """Return whether what has no values here is the same: the words of the file, all bytes."""
    found = []
    for item in a, b:
        stored, entry = item.stored, item.stored.entry
        parts = [((part.source or stored.source), part.offset, part.nbytes) for part in
                 entry.parts.values()] if entry else [(stored.source, item.start, stored.nbytes)]
        words = dict([pair for pair in item.attrs.items()
                      if pair[0] not in ("checksum", "param_id")])
        found.append((item.format, item.shape, to_json(words), stored.order, stored.encoding,
                      [source.view(start, nbytes) for source, start, nbytes in parts]))
    placed = [value for value in a.attrs.values() if isinstance(value, dict) and "offset" in value]
    return found[0] == found[1] and not placed  # bytes that are not known here


# -- [8g] cut files ------------------------------------------------------------------------------


class Whole(Cursor):
    """Takes the tensors that are whole in a file that was cut short, and notes the others."""

    cut: Any = None  # the error that says how many are whole
    place: Any = None  # path of the place of the first tensor that is not
    piece: Any = None  # that tensor, or one that begins before it
    run = False  # tensors one behind the other, without an index
    last = 0  # number of the last one

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.missing: "List[str]" = []

    def read(self, kind: "Format", options: Any) -> Any:
        """Return what a format reads: (attrs, metadata, tensors)."""
        if options.get("partial") and not kind.IN_FRONT:
            what = f"{kind.TITLE} has no index in front of its data: cut short, it is lost"
            raise self.error("partial=True: " + what, error=Unsupported)
        parsed = kind.read(self)
        if self.missing:
            parsed[0]["missing"] = self.missing
        return parsed

    def uint32(self, field: str, doc: str, *index: int) -> int:
        value = super().uint32(field, doc, *index)
        if field == "N" and not self.where and self.tensor is None:
            self.last = value - 1
        return value

    def admit(self, tensors: Any, item: Tensor, low: float, high: float, fields: Any) -> None:
        """Add also a tensor that ends behind the file: other errors come first."""
        end = item.start + item.stored.nbytes
        if high == self.end < end and item.stored.nbytes:
            high = end
            if self.place is None:
                self.place = self.where + ((fields[2],) if fields[2] else ())
        super().admit(tensors, item, low, high, fields)

    def entries(self, *args: Any, **rules: Any) -> Facts:
        tensors = super().entries(*args, **rules)
        self.keep_whole(tensors, *self.place or ())
        return tensors

    def keep_whole(self, tensors: Any, *path: Any, base: int = 0) -> None:
        for item in tensors.values():
            item.start += base
        ends = dict([(name, item.start + item.stored.nbytes) for name, item in tensors.items()])
        lost = [name for name, end in ends.items() if end > self.end]
        for name in lost if path else ():  # else they count from a base that is not known yet
            item = tensors.pop(name)
            if self.piece is None or item.start < self.piece.start:
                self.piece = item
        if lost and path:
            wants = "the tensors up to here want" if self.run else "the index wants"
            error = self.error(f"{wants} {max(ends.values())}", *path)
            self.leave_out(error, lost, len(tensors), len(ends))

    def collect(self, items: Any, high: float, fields: Any) -> Facts:
        self.run, tensors, broken = True, Map(), None
        try:
            for item in items:
                self.one(self.admit, tensors, item, 0, high, fields)
                if self.place is not None:
                    break
        except FormatError as error:
            broken = error
            if not error.cut:
                raise
        self.where, self.tensor = (), None
        self.keep_whole(tensors, *self.place or ())
        if broken is not None:
            begun = broken.tensor not in tensors  # or what may follow it is missing
            missing = [broken.tensor if begun and broken.tensor is not None else broken.field]
            self.leave_out(broken, missing, len(tensors), len(tensors) + begun)
        return tensors

    def leave_out(self, error: FormatError, missing: Any, whole: int, count: int) -> None:
        """Note names of tensors that are missing, and the error that so many are whole."""
        place = error.steps
        error.what = (f"cut short: {count_of(self.end, 'byte')}, {error.what}; {whole} of {count} "
                      "tensors are whole")
        error.tensor, error.check = None, "bounds"
        if self.run and place[1:] and self.last > place[1]:  # of a run the names are not known
            more = [path_of_keys((place[0], i)) for i in (place[1] + 1, self.last)]
            missing = missing + [" to ".join(Map.fromkeys(more))]
            error.what += f"; behind them: {missing[-1]}"
        error.what += "; load(partial=True) takes the whole ones" if whole else ""
        self.missing += missing
        self.cut = error


# -- [9a] traces ---------------------------------------------------------------------------------
#
# The same read() of a format, with cursors that note every field; trees are walked once more.

MAX_FIELDS = 1 << 16  # that explain shows one by one, and one more for every 16 bytes of the file
FIELD_KINDS = Map([  # (what it is, its colour in a terminal)
    ("structure", ("says what is where", "94")), ("data", ("the numbers", "32")),
    ("padding", ("keeps what follows aligned", "90")), ("unused", ("no field names it", "33")),
    ("fault", ("what is wrong", "1;31")), ("unreached", ("was not read", "33"))])


class Field:
    """One named piece of a file: unpacks as (offset, nbytes, name, value, doc).

    Also `.kind` (one of FIELD_KINDS), `.depth` of nesting, `.tensor` (a name, cut as in a path, or
    None), `.lead` (bytes before its value: the map key and tags) and `.target` (where an offset
    leads, or None).
    """

    __slots__ = ("offset", "nbytes", "name", "value", "doc", "kind", "depth", "tensor", "lead",
                 "target")

    def __init__(self, offset: int, nbytes: int, name: str, value: Any, doc: str,
                 kind: str = "structure", depth: int = 0, tensor: "Optional[str]" = None,
                 lead: int = 0, target: "Optional[int]" = None) -> None:
        self.offset, self.nbytes, self.name, self.value, self.doc = offset, nbytes, name, value, doc
        self.kind, self.depth, self.tensor, self.lead = kind, depth, tensor, lead
        self.target = target

    def __getitem__(self, index: Any) -> Any:
        return (self.offset, self.nbytes, self.name, self.value, self.doc)[index]

    def __iter__(self) -> Chunks:
        return iter(self[:])

    def __len__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return f"Field({self.offset}, {self.nbytes}, {quote(self.name)}, {show(self.value)})"


class CborTree:
    """Moves over CBOR item by item, for a Walker."""

    def __init__(self, codec: Any) -> None:
        self.codec, self.base, self.pos, self.deepest = codec, codec.base, 0, MAX_DEPTH

    def open(self) -> Any:
        """Move behind a head; return "map", "array" or "", items or -1, where it is behind tags."""
        major, size, at = 6, 0, self.pos
        while major == 6:
            at, (major, size, self.pos) = self.pos, self.codec.head(self.pos)
        return {4: "array", 5: "map"}.get(major, ""), size, at

    def item(self, is_key: bool = False) -> Any:
        """Return an item that is no array or map, and move behind it."""
        value, self.pos = self.codec.item(self.pos, 0, is_key)
        return value

    def key(self) -> Any:
        return self.item(True)

    def more(self, size: int, count: int) -> bool:
        """Return whether a container has more items than these; else move behind its end."""
        ends = size < 0 and self.codec.data[self.pos] == 0xFF
        self.pos += ends
        return not ends and count != size

    def field_end(self) -> int:
        return self.pos


class JsonTree:
    """Moves over JSON; a field ends where the next token begins that is no closing bracket."""

    def __init__(self, codec: Any) -> None:
        import re
        self.codec, self.data, self.base, self.deepest = codec, codec.data, codec.base, codec.depth
        self.parser: Any = codec.decoder()
        self.text = self.data.decode("latin-1")  # one character for each byte
        self.blanks: Any = re.compile(rb"[ \t\r\n]*")
        self.behind: Any = re.compile(rb"[ \t\r\n,:\]}]*")
        self.stop = len(self.data.rstrip(b" \t\r\n"))
        self.pos = self.at = 0  # at: of the token that was read last
        self.take(b"")

    def take(self, marks: bytes) -> bool:
        """Move over one of these marks and the blanks behind it, if it is there."""
        found = self.data[self.pos:self.pos + 1] in [marks[i:i + 1] for i in range(len(marks))]
        self.pos = self.blanks.match(self.data, self.pos + found).end()
        return found

    def open(self) -> Any:
        at = self.at = self.pos
        kind = {b"[": "array", b"{": "map"}.get(self.data[at:at + 1], "")
        if kind:
            self.take(b"[{")
        return kind, 0 if self.data[self.pos:self.pos + 1] in (b"]", b"}") else -1, at

    def item(self) -> Any:
        self.at = self.pos
        self.pos = self.parser.raw_decode(self.text, self.at)[1]
        value = self.parser.decode(self.data[self.at:self.pos].decode())
        if type(value) is str and not self.codec.python:
            encode_text(value)
        self.take(b"")
        return value

    def key(self) -> Any:
        key = self.item()
        if type(key) is not str:
            raise ValueError
        self.take(b":")
        return key

    def more(self, size: int, count: int) -> bool:
        if self.take(b"]}"):
            return False
        if count and not self.take(b","):
            raise ValueError
        return True

    def field_end(self) -> int:
        return min(int(self.behind.match(self.data, self.pos).end()), self.stop)


class MsgpackTree:
    """Moves over MessagePack, of which bytes are left in the file: their field is the head."""

    base = end = 0

    def __init__(self, codec: Any) -> None:
        self.codec, self.pos, self.deepest = codec, codec.cursor.pos, codec.deepest

    def open(self) -> Any:
        at = self.codec.cursor.pos = self.pos
        kind, size = self.codec.head()
        self.pos = self.end = self.codec.cursor.pos
        return kind if kind in ("array", "map") else "", size, at

    def item(self) -> Any:
        self.codec.cursor.pos = self.pos
        value = self.codec.item(0, None)
        self.pos = self.codec.cursor.pos
        if type(value) is tuple:
            kind, self.end, stop = value
            return stop - self.end - (kind == "ext")
        self.end = self.pos
        return value

    key = item

    def more(self, size: int, count: int) -> bool:
        return count < size

    def field_end(self) -> int:
        return self.end


class Walker:
    """Notes the items of a tree that a codec has read: a key and its value are one field, as is
    a plain list.

    `wrong`: the error of the codec, which gets the path of the item that it is found in.
    """

    def __init__(self, tracing: Any, tree: Any, wrong: "Optional[FormatError]") -> None:
        self.tracing, self.tree, self.wrong = tracing, tree, wrong
        self.stop = INFINITY if wrong is None else wrong.offset
        if type(tree) is JsonTree and self.stop == tree.base:
            self.stop = INFINITY  # json does not tell where: the walk will find it

    def run(self, schema: Any, keys: Any) -> None:
        """Note all items, or those before the error, and raise it; `keys`: path of the whole."""
        self.above, about = len(keys), (keys, path_of_keys(keys), schema.doc, schema)
        self.here: Any = (about, MISSING)  # the container that is walked, and the key of the item
        try:
            self.walk(self.tree.pos, about)
        except (ValueError, IndexError, RuntimeError):  # broken from here on
            if self.wrong is None:
                raise
        if self.wrong is not None:
            if self.wrong.steps:
                self.wrong.offset = self.tracing.places.get(self.wrong.steps)
            elif type(self.tree) is not JsonTree:
                self.wrong.steps, path = self.inside(*self.here)[:2]
                self.wrong.field = path or self.tracing.root
            elif self.stop == INFINITY:
                self.wrong.offset = self.tree.base + self.tree.at
            raise self.wrong

    @staticmethod
    def inside(about: Any, key: Any) -> Any:
        """Return keys, path, meaning and Schema of an item of a container, or of itself."""
        if key is MISSING:
            return about
        keys, path, doc, schema = about
        inner = None  # without a Schema an item has the meaning of its container
        if schema is not None:
            kind, doc, *more = schema.rows.get(key, schema.other)
            inner = kind if isinstance(kind, Schema) else more[0] if more else None
            inner = inner() if callable(inner) else inner
        return keys + (key,), path_of_keys((key,), path), doc, inner

    def walk(self, begin: int, about: Any) -> None:
        """Note the next item, whose key begins at `begin`."""
        tree, start = self.tree, self.tree.pos
        kind, size, at = tree.open()
        inner, value = tree.pos, MISSING
        self.stop_at_error()
        if kind and len(about[0]) - self.above >= tree.deepest:
            raise ValueError
        if not kind:
            tree.pos = start
            value = tree.item()
        elif kind == "array" and about[3] is None:
            value = self.plain_list(about, size)
        if value is not MISSING:
            self.add(begin, about, value, at - begin)
            return
        tree.pos = inner
        value = {-1: None, 0: {} if kind == "map" else []}.get(size, size)
        self.add(begin, about, value, at - begin)
        self.walk_items(kind, size, about)

    def walk_items(self, kind: str, size: int, about: Any) -> None:
        """Note the items of an array or a map."""
        tree, count, keys = self.tree, 0, set()
        while tree.more(size, count):
            begin, key = tree.pos, count
            if kind == "map":
                key = tree.key()
                self.stop_at_error()
                if key in keys:
                    raise ValueError
                keys.add(key)
            self.here = about, key
            self.walk(begin, self.inside(about, key))
            self.here = about, MISSING
            count += 1
        if size < 0 and type(tree) is CborTree:
            self.add(tree.pos - 1, about[:2] + ("break: the end of it", None), None, 0)

    def plain_list(self, about: Any, size: int) -> Any:
        """Return the values of a list, which is read; MISSING if another container is in it."""
        values: "List[Any]" = []
        while self.tree.more(size, len(values)):
            self.here = about, len(values)
            start = self.tree.pos
            if self.tree.open()[0]:
                return MISSING
            self.tree.pos = start
            values.append(self.tree.item())
        self.here = about, MISSING
        return values

    def stop_at_error(self) -> None:
        """Raise the error if what was read last is wrong."""
        if self.wrong is not None and self.tree.base + self.tree.pos > self.stop:
            raise self.wrong

    def add(self, begin: int, about: Any, value: Any, lead: int) -> None:
        self.stop_at_error()
        base, (keys, path, doc, _) = self.tree.base, about
        self.tracing.note(base + begin, self.tree.field_end() - begin, keys, path, value, doc,
                          len(keys) - self.above, lead=lead)


class TracedFlat(Flat):
    """Notes each vtable, field and vector of a FlatBuffer."""

    tracing: Any = None  # the cursor that they are noted with

    def note(self, at: int, nbytes: int, name: Any, value: Any, doc: str, depth: int = 1,
             kind: str = "structure", target: Any = None) -> None:
        keys = self.where + (name,)
        depth += len([key for key in self.where if isinstance(key, str)])
        target = None if target is None else self.base + target
        self.tracing.note(self.base + at, nbytes, keys, None, value, doc, depth, kind,
                          target=target)


class Tracing(Whole):
    """Notes every field that is read; read(kind, options), of Whole, calls that of the format."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.fields: "List[Field]" = []
        self.places: Any = {}  # offset of the last field of each path
        self.names: Any = {}  # path of a record or an entry -> name of its tensor
        self.most = MAX_FIELDS + source.nbytes // 16  # fields; each fewer for 16 keys around one
        self.rest = range(0)  # of the file, in one field

    def note(self, offset: int, nbytes: int, keys: Any, path: Any, value: Any, doc: str,
             depth: int = 0, kind: str = "structure", lead: int = 0, target: Any = None) -> None:
        """Add a field, and where it is: errors may be of it. `path`: None, or that of the keys."""
        if keys and keys[15:]:
            self.most -= len(keys) // 16
        if len(self.fields) > self.most and self.fields:
            last = self.fields[-1]
            if last.offset + last.nbytes <= offset and kind not in ("data", "absent"):
                last.nbytes, last.value = offset + nbytes - last.offset, None
                last.doc = f"and what is behind it: MAX_FIELDS = {MAX_FIELDS}"
                self.rest = range(last.offset, offset + nbytes)  # tensors too
            return
        if doc[:6] != "break:":
            self.places[keys] = offset
        if kind == "absent":  # no field, but an error can be one of it
            return
        inside = self.root or self.tensor is not None or keys and keys[1:]  # owner() looks at it
        path = path_of_keys(keys) if path is None else path
        if keys not in self.names:
            self.names[keys] = MISSING  # these very keys: equal ones may take long to compare
        self.fields.append(Field(offset, nbytes, path or self.root, value, doc, kind, depth,
                                 keys if inside else None, lead, target))

    def note_here(self, start: int, value: Any, doc: str, *path: Any) -> None:
        """Note what lies from `start` to here as a field of the record."""
        keys = self.where + path
        self.names.setdefault(self.where, None)  # that of its tensor, if it comes to that
        self.note(start, self.pos - start, keys, None, value, doc, len(self.where) // 2)

    def record(self, rows: Any) -> Any:
        """One by one: an error is one of the field that is cut."""
        values: Any = ()
        for row in rows:
            start, found = self.pos, super().record((row,))
            self.note_here(start, list(found) if found[1:] else found[0], row[2], row[0])
            values += found
        return values

    def take(self, nbytes: int, field: str, doc: str, *index: int) -> bytes:
        start, data = self.pos, super().take(nbytes, field, doc, *index)
        text = decode_text(data)
        self.note_here(start, data if text is None else text, doc, field, *index)
        return data

    def msgpack(self, kind: str, field: str, doc: str, *index: int) -> Any:
        value = super().msgpack(kind, field, doc, *index)
        self.note_here(self.start, msgpack_text(value) if kind == "str" else value, doc, field,
                       *index)
        return value

    def read_tree(self, codec: Any, schema: Any, path: Any) -> Any:
        """Return what a codec reads, and note its items, or those before its error."""
        tree: Any = CborTree if isinstance(codec, Cbor) else MsgpackTree
        tree = (JsonTree if isinstance(codec, Json) else tree)(codec)
        value, wrong = None, None
        try:
            value = codec.read()
        except FormatError as error:
            wrong = error
        end = self.pos
        Walker(self, tree, wrong).run(schema, path)
        self.pos = end
        return value

    def flat_tree(self, data: bytes) -> Any:
        flat = TracedFlat(data, self.start)
        flat.tracing = self
        return flat

    def admit(self, tensors: Any, item: Tensor, *rules: Any) -> None:
        self.names[self.where] = clip(item.name, MAX_PATH)  # many fields may have it
        if self.run:  # here: a file that breaks off later shows them
            self.note(item.start, item.stored.nbytes, None, "data " + clip(item.name, MAX_PATH),
                      f"{item.dtype} {show(item.shape)}", "column-major", kind="data")
        super().admit(tensors, item, *rules)

    def error(self, what: str, *path: Any, offset: Any = None, **more: Any) -> FormatError:
        """The offset is that of the field, or of the innermost one around it that was read."""
        made = super().error(what, *path, offset=offset, **more)
        if offset is None:
            keys = made.steps
            while keys and keys not in self.places:
                keys = keys[:-1]
            made.offset = self.places.get(keys)
        return made

    def owner(self, keys: Any) -> "Optional[str]":
        """Return the name of the tensor of whose entry a field is."""
        name: Any = self.names.get(keys, MISSING)
        if name is MISSING and keys:
            name = self.names[keys] = self.owner(keys[:-1])  # once for all that lies there
        return None if name is MISSING else name


class Locating(Tracing):
    """Notes only where one field and those around it begin."""

    keys: Any = ()  # its path

    def note(self, offset: int, nbytes: int, keys: Any, path: Any, value: Any, doc: str,
             *more: Any, **facts: Any) -> None:
        if keys is None or doc[:6] == "break:":
            return
        size = len(keys)  # the last key differs first; some are long
        if keys[-1:] == self.keys[max(size - 1, 0):size] and keys == self.keys[:size]:
            self.places[keys] = offset


def exact_error(error: FormatError, kind: "Format", source: Any, options: Facts) -> FormatError:
    """Return the error with the exact offset and field of what is wrong: of a parse that traces."""
    for _ in range(2):  # again if that found another error
        cursor, keys = Locating(source), error.steps
        cursor.keys = keys
        try:
            cursor.read(kind, options)
            error = error if options.get("partial") or cursor.cut is None else cursor.cut
        except FormatError as found:
            found.__traceback__ = None  # it keeps all that was parsed
            error = found
        if error.steps == keys:
            break
    return error


# -- [9b] explain --------------------------------------------------------------------------------
#
# dissect() parses with a Tracing cursor, whose fields come in the order of reading; then they are
# sorted, tensors and gaps are added. explain() yields them; the command and the page take them from
# Explained, as rows of texts by rows_of().


def explain(source: Source, *, format: "Optional[str]" = None,
            mmap: bool = True) -> "Iterator[Field]":
    """Yield a Field (offset, nbytes, name, value, doc) for every byte of a file, by offset.

    Only shared tensor data overlap. Of a broken file come the fields that were read, the offending
    one (its kind is "fault") and what was not reached, then the FormatError. `mmap`: as in load().

    >>> [f.name for f in explain(dumps({}, format="ztensor"))]
    ['magic', 'index', 'index_size']
    """
    opened = open_source(source, mmap)
    try:
        fields, _, error, _ = dissect(kind_of(opened, format), opened, {}, None)
    finally:
        opened.close()
    aim_offsets(fields)

    def rows() -> "Iterator[Field]":
        yield from fields
        if error is not None:
            raise error
    return rows()


class Verifying(Tracing):
    """Notes what is wrong with one entry or tensor, and goes on behind it."""

    faults: Any = None  # a list of it

    def leave_out(self, *args: Any) -> None:
        super().leave_out(*args)
        self.give_up(self.cut)

    def give_up(self, error: FormatError) -> None:
        """Note an error; raise it where there are too many."""
        if len(self.faults) >= MAX_FAULTS:
            raise error
        self.faults.append(error)

    def one(self, read: Any, *args: Any, **rules: Any) -> None:
        try:
            super().one(read, *args, **rules)
        except FormatError as error:
            self.give_up(error)

    def together(self, check: Any, *args: Any) -> None:
        if not self.faults:  # else those that are left need not fit together
            super().together(check, *args)


MAX_FAULTS = 1000  # that verify notes before it stops


def dissect(kind: "Format", source: Any, options: Facts,
            faults: Any) -> "Tuple[List[Field], Any, Any, Any]":
    """Parse and trace; return (fields, parsed or None, error or None, the cursor).

    Of a file that was cut short there are an error and what is whole, but for `partial`; in verify
    the error is one of `faults`.
    """
    cursor: Any = (Tracing if faults is None else Verifying)(source)
    cursor.faults, parsed = faults, None
    error: Any = None
    try:
        parsed = cursor.read(kind, options)
        error = None if faults is not None or options.get("partial") else cursor.cut
    except FormatError as caught:
        error = caught
    if error is not None:
        error.path = source.path
    for name in parsed[0].get("weight_map", ()) if parsed else ():  # of an index of shards
        cursor.names["weight_map", name] = clip(name, MAX_PATH)
    for field in cursor.fields:
        if field.kind != "data":
            field.tensor = cursor.owner(field.tensor)
    del cursor.places, cursor.names  # they can be large
    if parsed is None:
        return _fields_to(error, cursor.fields, source.nbytes), None, error, cursor
    fields = _without_overlap([field for field in cursor.fields if field.kind != "data"])
    fields = sort_fields(fields + _data_fields(source, parsed[2], cursor))
    fields = _with_gaps(kind, source, parsed[0], fields)
    if error is not None:
        name = str(error.field) if error.cut else "the end"
        fields.append(Field(source.nbytes, 0, name, None, error.what, "fault"))
    return fields, parsed, error, cursor


def _data_fields(source: Any, tensors: Any, cursor: Any) -> "List[Field]":
    """Return the fields of the tensors, and of the piece of one that is not whole."""
    fields = []
    for item in [item for item in tensors.values() if item.stored.source is source]:
        name = clip(item.name, MAX_PATH)
        fields += [Field(start, nbytes, f"data {name}.{role}" if role else "data " + name,
                         *_data_text(item, role), "data", 0, name)
                   for start, nbytes, role in item.ranges() if start not in cursor.rest]
    item = cursor.piece
    if item is not None and item.start <= source.nbytes:
        name, text = clip(item.name, MAX_PATH), f"{dtype_of(item)} {show(item.shape)}"
        fields.append(Field(item.start, source.nbytes - item.start, "data " + name, text,
                            "it is not whole", "data", 0, name))
    return fields


def sort_fields(fields: "List[Field]") -> "List[Field]":
    """Return fields by offset; of the same offset, empty ones first, then as parsed."""
    return sorted(fields, key=lambda field: 2 * field.offset + (field.nbytes > 0))


def _data_text(item: Tensor, role: str) -> "Tuple[str, str]":
    """Return value and meaning of a tensor's bytes, or of a part of a sparse one."""
    text, stored = f"{dtype_of(item)} {show(item.shape)}", item.stored
    itemsize = item.itemsize
    if is_sparse(item):
        return role or "values", "of sparse " + text
    if stored.why is not None:
        return text, stored.why
    if stored.encoding != "raw":
        return text, f"{plain(stored.encoding)}, {item.nbytes} bytes decoded"
    if itemsize is None:
        return text, "stored bytes"
    doc = "column-major: " if stored.strides is not None else ""
    if itemsize > 1 and stored.order == ">":
        doc += "big-endian: "
    head = stored.source.view(item.start, min(stored.nbytes, 3 * itemsize))
    values = unpack_values(str(item.dtype), head, stored.order)
    doc += " ".join([repr(float("%.5g" % value) if isinstance(value, float) else value)
                     for value in values])
    return text, doc + (" ..." if item.size > 3 else "")


def _fields_to(error: Any, fields: Any, nbytes: int) -> "List[Field]":
    """Return the fields that were read, the offending one, and what was not reached."""
    offset = nbytes if error.offset is None else error.offset
    fields = _without_overlap(fields)
    for field in fields:  # it ends where the fault begins, or the file
        field.nbytes = min(field.nbytes, nbytes - field.offset,
                           offset - field.offset if field.offset < offset else nbytes)
    found = [f for f in fields if f.offset == offset and f.name == error.field]
    if not found:
        stop = min([f.offset for f in fields if f.offset > offset] + [offset + 16, nbytes])
        found = [Field(offset, max(stop - offset, 0), error.field or "?", None, "")]
        fields = [f for f in fields if f.offset != offset or not f.nbytes]
        fields = sort_fields(fields + found)
    found[0].kind, found[0].doc = "fault", error.what
    ends = [0] + [field.offset + field.nbytes for field in fields]
    starts = [field.offset for field in fields] + [nbytes]
    lost = [Field(at, stop - at, "not reached", None, "was not read", "unreached")
            for at, stop in zip(ends, starts) if at < stop]
    return sort_fields(fields + lost)


def aim_offsets(fields: "List[Field]") -> None:
    """Let the offsets of an index lead to the data of their tensors, or to a part of the file."""
    data = [(field.tensor, field.offset) for field in fields if field.kind == "data"]
    starts, firsts = set(data), dict(reversed(data))
    for field in fields:
        last, value = field.name[field.name.rfind(".") + 1:], field.value
        if field.target is not None or not ("offset" in last or last == "blob"):
            continue
        if field.depth and isinstance(value, list):  # [start, end) or [offset, length]
            value = value[0] if value else None
        if isinstance(value, int) and (not field.depth or (field.tensor, value) in starts):
            field.target = value
        elif field.kind == "structure":
            field.target = firsts.get(field.tensor)


NO_DOCSTRING = "Its layout is drawn in its docstring; python -OO leaves that out."


def doc_of(kind: "Format") -> str:
    """Return the docstring of a format, which draws its layout, without indentation."""
    from textwrap import dedent
    return dedent("    " + (kind.__doc__ or NO_DOCSTRING)).strip()


def _without_overlap(fields: Any) -> "List[Field]":
    """Return fields by offset, without overlap: what is shared is named once."""
    out, at = [], 0
    for field in sort_fields(fields):
        end = field.offset + field.nbytes
        if end < at or field.nbytes and end == at:
            continue
        if field.offset < at:
            field.offset, field.nbytes = at, end - at
            field.doc += " (its beginning is shared)"
        out.append(field)
        at = max(at, end)
    return out


def _with_gaps(kind: "Format", source: Any, attrs: Any, fields: Any) -> "List[Field]":
    """Return the fields that are not empty, and gaps: padding by the format's rule, or unused."""
    def filled(start: int, stop: int, byte: int) -> bool:
        blocks = (source.read(at, min(BLOCK, stop - at)) for at in range(start, stop, BLOCK))
        return all(block.count(bytes([byte])) == len(block) for block in blocks)
    out, at, before = [], 0, "structure"
    for field in fields + [Field(source.nbytes, 0, "", None, "", "end")]:
        after = "structure" if field.kind == "unused" else field.kind
        if field.offset > at:
            for nbytes, byte, doc in kind.padding(at, field.offset, before, after, filled, attrs):
                value = None if filled(at, at + nbytes, byte) else f"not all {byte:02x}"
                depth = max(out[-1].depth, field.depth) if before == after == "structure" else 0
                out.append(Field(at, nbytes, "padding", value, doc, "padding", depth))
                at += nbytes
        if field.offset > at:
            source.read(field.offset - 1, 1)  # a stream may have lied about its end
            doc = count_of(field.offset - at, "byte") + " that no field names"
            out.append(Field(at, field.offset - at, "unused", None, doc, "unused"))
        out.append(field)
        if field.offset + field.nbytes >= at:
            at, before = field.offset + field.nbytes, after
    return [field for field in out if field.nbytes]


# -- [9c] verify ---------------------------------------------------------------------------------


class Report(Result):
    """What verify() found: true when nothing failed, str() of it is for a person.

    `.rows`: (status, check, tensor, text, offset), status "ok", "FAIL", "note" (legal but odd)
    or "-" (not possible). `.errors`: the FormatErrors behind the FAILs. `.format`, `.version`,
    `.path`.
    """

    def __init__(self, path: "Optional[str]", kind: "Optional[Format]") -> None:
        self.path, self.format = path, kind.FAMILY if kind else None
        self.title, self.version = kind.TITLE if kind else "", None
        self.rows: "List[Tuple[str, str, Optional[str], str, Optional[int]]]" = []
        self.errors: "List[FormatError]" = []

    def __bool__(self) -> bool:
        return not self.errors

    def facts(self) -> Facts:
        keys = "status", "check", "tensor", "text", "offset"
        return {"file": self.path, "format": self.format, "version": self.version,
                "valid": bool(self), "rows": [dict(zip(keys, row)) for row in self.rows]}

    def add(self, status: str, check: str, text: str, tensor: Any = None,
            offset: Any = None) -> None:
        self.rows.append((status, check, tensor, text, offset))

    def fail(self, error: FormatError) -> None:
        error.__traceback__ = error.__context__ = None  # its frames would keep decoded blocks
        self.errors.append(error)
        self.add("FAIL", error.check, error.what, error.tensor, error.offset)

    def first(self) -> FormatError:
        """Return the error with the lowest offset."""
        return min(self.errors, key=lambda error: (error.offset is None, error.offset or 0))

    def add_notes(self, check: str, text: str, notes: "List[Tuple[Tensor, Tensor]]") -> None:
        """Add five notes on (tensor, the one that %s in the text names), the number of others."""
        for item, other in notes[:5]:
            text_of = text.replace("%s", quote(other.name))
            self.add("note", check, text_of, item.name, item.start)
        if len(notes) > 5:
            self.add("note", check, f"{len(notes) - 5} more")

    def __repr__(self) -> str:
        lines = []
        for status, check, name, text, offset in self.rows:
            head = "" if name is None else f"tensor {quote(name)}: "
            place = "" if offset is None or status == "ok" else f" (at 0x{offset:x})"
            lines.append(f"{status:5} {check:12} {head}{clip(text, MAX_LINE // 2)}{place}")
        last = f"{'INVALID' if self.errors else 'valid'} {self.title}".rstrip()
        if self.errors:
            first = self.first().offset
            last += f": {count_of(len(self.errors), 'problem')}"
            last += "" if first is None else f", the first at 0x{first:x}"
        return "\n".join(lines + [f"{plain(self.path or 'the data')}: {last}"])


def verify(source: Source, *, format: "Optional[str]" = None, mmap: bool = True,
           deep: bool = False, watch: Any = None) -> Report:
    """Check structure, bounds, sizes, padding and every stored checksum; return a Report.

    It comes for broken files too, and is true when nothing failed; OSError passes. `mmap`: as in
    load(). `deep`: XXH3 (zTensor 2) of more than MAX_SLOW_HASH bytes also without the module
    xxhash. `watch`(parts, their bytes, size) yields the parts, and may tell how far it is.

    >>> bool(verify(dumps({"w": [1.0]}, format="ztensor")))
    True
    """
    opened = open_source(source, mmap)
    try:
        return verify_source(opened, kind_of(opened, format), {}, deep, watch)
    except FormatError as error:
        report = Report(opened.path, None)
        report.fail(error)
        return report
    finally:
        opened.close()


def verify_source(source: Any, kind: "Format", options: Facts, deep: bool = True,
                  watch: Any = None) -> Report:
    faults: "List[FormatError]" = []
    fields, parsed, error, trace = dissect(kind, source, dict(options, partial=False), faults)
    faults += [] if error is None else [error]
    parsed = parsed or (Map(), Map(), Map())
    checks = Checks(File(kind, source, *parsed), deep, watch)
    structure = sum([field.nbytes for field in fields if field.kind == "structure"])
    structure -= sum([nbytes for item in checks.tensors for start, nbytes, _ in item.ranges()
                      if start in trace.rest])
    named = count_of(len(kind.make_file(source, parsed, {})), "tensor")
    checks.add_structure(faults, error, {
        "magic": kind.TITLE, "checksum": "the header's checksum agrees",
        "index": f"{structure} bytes of structure, {named}, names unique, required fields present",
        "bounds": f"{count_of(len(checks.tensors), 'tensor')} inside the file",
        "sizes": "stored bytes = dtype x shape"})
    if error is None:
        checks.look_at_shards()
        checks.look_at_layout(fields)
        del fields, trace.fields
        checks.look_at_data(not faults)
    return checks.report


class Checks:
    """What verify() checks of a file, with a row of the report for each.

    Where the tensors ask for too much work ([8b2]), the data are not checked.
    """

    def __init__(self, file: File, deep: bool, watch: Any) -> None:
        self.file, self.kind, self.source = file, file.kind, file._source
        self.tensors = [item for item in file.values() if item.stored.source is self.source]
        self.report = Report(file.path, file.kind)
        self.report.version = file.attrs.get("version")
        self.deep, self.watch = deep, watch or (lambda parts, nbytes, size=len: parts)
        self.slow = INFINITY if deep else MAX_SLOW_HASH  # bytes that may be hashed slowly
        self.done: Any = {}  # of each range: what was found
        self.statuses, self.decoded, self.complete = [], 0, True
        self.left = Map()  # (check, why not) -> tensors

    def add_structure(self, faults: Any, error: Any, texts: Any) -> None:
        """Add the faults of each check, or what its text says; behind an error: not reached."""
        reached = True
        for check in self.kind.CHECKS:
            found = [fault for fault in faults if fault.check == check]
            for fault in found:
                self.report.fail(fault)
            if not found and check in texts:
                row = ("ok", check, texts[check]) if reached else ("-", check, "not reached")
                self.report.add(*row)
            reached = reached and error not in found

    def look_at_shards(self) -> None:
        """Add what is found of other files that this one names."""
        def verify_shard(shard: File) -> Report:
            return verify_source(shard._source, shard.kind, {}, self.deep, self.watch)
        kind: Any = self.kind
        rows = kind.check_shards(self.source, self.file.attrs, verify_shard) if isinstance(
            kind, Shards) else ()
        for status, text, name in rows:
            if status != "FAIL":
                self.report.add(status, "shards", text, name)
                continue
            self.report.fail(FormatError(text, None, "shards", name, self.source.path, "shards"))
            if len(self.report.errors) >= MAX_FAULTS:
                break

    def look_at_layout(self, fields: Any) -> None:
        """Note odd padding, bytes without a name, unaligned data, ranges that overlap in part."""
        report, good = self.report, not self.report.errors
        odd = [field for field in fields if field.kind == "padding" and field.value is not None]
        if odd and good:
            text = f"{count_of(len(odd), 'range')} of padding {odd[0].value}"
            report.add("note", "padding", text, None, odd[0].offset)
        # A tensor that was left out for an error leaves its bytes without a name.
        unused = [field for field in fields if field.kind == "unused" and good]
        end = unused[-1].offset + unused[-1].nbytes if unused else 0
        if unused and not self.kind.MARKED and end == self.source.nbytes:
            last = unused.pop()
            text = f"{last.nbytes} bytes after the end of the data"
            report.fail(FormatError(text, last.offset, "unused", path=self.source.path))
        if unused:
            nbytes = count_of(sum([field.nbytes for field in unused]), "byte")
            text = f"{nbytes} in {count_of(len(unused), 'range')} that no field names"
            report.add("note", "padding", text, None, unused[0].offset)
        align = self.kind.alignment(self.file.attrs)
        stored = [item for item in self.tensors if item.stored.nbytes]
        wrong = [(item, item) for item in stored if item.start % align]
        report.add_notes("alignment", f"its data are not at a multiple of {align}", wrong)
        if align > 1 and not wrong and self.tensors:
            report.add("ok", "alignment", f"all data at multiples of {align}")
        shared, owner = [], (0, 0, 0)
        for start, end, i in sorted([(item.start, item.start + item.stored.nbytes, i)
                                     for i, item in enumerate(stored)]):
            if start < owner[1] and (start, end) != owner[:2]:  # the same twice is tied weights
                shared.append((stored[i], stored[owner[2]]))
            if end > owner[1]:
                owner = start, end, i
        report.add_notes("bounds", "its bytes overlap those of %s in part", shared)

    def look_at_data(self, sound: bool) -> None:
        """Check all tensors, and, of a file whose structure is sound, whether it is canonical."""
        report, kind, tensors = self.report, self.kind, self.tensors
        try:
            check_work([(item.name, item) for item in tensors])
        except ValueError as error:
            report.add("-", "contents", "not checked: " + str(error))
            return
        nbytes = sum([item.stored.nbytes for item in tensors])
        for item in self.watch(tensors, nbytes, lambda item: item.stored.nbytes):
            self.check_sums(item)
            if item.stored.why is not None:
                self.left.setdefault(("contents", item.stored.why), []).append(item)
            try:
                self.check_values(item)
            except Unsupported as error:
                self.left.setdefault(("contents", error.what), []).append(item)
            except FormatError as error:
                error.check, error.tensor = "contents", item.name
                report.fail(error)
        for (check, why), items in self.left.items():
            more = f", as {count_of(len(items) - 1, 'other tensor')}" if items[1:] else ""
            report.add("-", check, f"not checked{more}: {why}", items[0].name, items[0].offset)
        agreed, stored = self.statuses.count("ok"), len(self.statuses)
        text = f"{agreed} of {stored} agree" if stored else "none stored"
        report.add("ok" if agreed else "-", "checksums", text)
        if self.decoded:
            text = f"{count_of(self.decoded, 'zstd blob')} decoded in full"
            report.add("ok", "contents", text)
        few = len(tensors) << 4 <= self.source.nbytes  # what comes now takes memory for each
        for text in kind.notes(self.file.attrs, tensors) if few else ():
            report.add("note", "canonical", text)
        if sound and "checksums" not in [error.check for error in report.errors]:
            if not self.complete or not few:
                report.add("-", "canonical", "not saved again")
            elif self.kind.write is not None and not isinstance(self.kind, Shards):
                report.add(*self.save_again())

    def check_sums(self, item: Tensor) -> None:
        for label, offset, nbytes, digest in self.kind.checksums(item):
            key = offset, nbytes, digest
            if key not in self.done:
                self.done[key] = self.check_range(offset, nbytes, digest)
            status, text = self.done[key]
            self.statuses.append(status)
            if status == "FAIL":
                self.report.fail(FormatError(label + text, offset, "data", item.name,
                                             self.source.path, "checksums"))
            elif status == "-":
                self.left.setdefault(("checksums", label + text), []).append(item)

    def check_range(self, offset: int, nbytes: int, digest: Any) -> "Tuple[str, str]":
        slow = self.kind.slow_bytes(nbytes, digest)
        if slow > self.slow:
            return "-", (f"over MAX_SLOW_HASH = {MAX_SLOW_HASH} bytes; "
                         "deep=True computes all")
        self.slow -= slow
        return self.kind.check_range(self.source, offset, nbytes, digest)

    def check_values(self, item: Any) -> None:
        """Decode a tensor, or the parts of a sparse one; Unsupported where those are too large."""
        parts = [item]
        if is_sparse(item):
            if decode_work(item) > (4 << 20) + MAX_COPIES * self.source.nbytes:
                self.complete = False
                raise Unsupported(f"more work than MAX_COPIES = {MAX_COPIES} file sizes")
            parts = list(item.components.values())
        keys = [(part.start, part.stored.nbytes, part.nbytes) for part in parts]
        fresh = [(key, part) for key, part in zip(keys, parts) if key not in self.done
                 and part.stored.why is None and part.stored.encoding != "raw"]
        for key, part in fresh:
            self.done[key] = True
            for _ in part.blocks():
                pass
        self.decoded += len(fresh)
        wrong = self.kind.invalid_byte(item)
        if wrong is not None:
            raise FormatError(wrong[1], item.start + wrong[0], "data", path=self.source.path)

    def save_again(self) -> Any:
        """Save the file in the order of its data; return the row: whether it has the same bytes."""
        at, source, file = 0, self.source, self.file
        try:
            chunks = self.kind.write(in_order(file), file.metadata, file.attrs, {})
            for chunk in self.watch(chunks, source.nbytes):
                for piece in pieces(memoryview(chunk), BLOCK):
                    stored = source.read(at, max(0, min(len(piece), source.nbytes - at)))
                    if stored != bytes(piece):
                        at += ([x == y for x, y in zip(stored, piece)] + [False]).index(False)
                        return "note", "canonical", "saved again, it differs from here on", None, at
                    at += len(piece)
        except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: recursion
            return "-", "canonical", "it cannot be saved again: " + str(error).split("\n")[0]
        if at < source.nbytes:
            return "note", "canonical", "saved again, it ends here", None, at
        return "ok", "canonical", "saved again, it has the same bytes"


# -- [9d] convert --------------------------------------------------------------------------------


class Summary(Result):
    """What convert() did; str() of it is for a person."""

    def __init__(self) -> None:
        self.copied: "List[str]" = []
        self.cast: "List[Tuple[str, str, str, bool]]" = []  # (name, old dtype, new dtype, exact)
        self.lost: "List[Tuple[str, int, int]]" = []  # (name, values now infinite, now NaN)
        self.missing: "List[str]" = []  # only with partial=True: names, not whole in the source
        self.left_behind: "List[str]" = []  # facts of the old format that mean nothing in the new
        self.dropped: "List[str]" = []  # content, only with drop=True
        self.as_text: "List[str]" = []  # keys of metadata: numbers, only with metadata="text"
        self.changed: "List[Tuple[Any, Any, Any]]" = []  # metadata: (key, old, new), None is none
        self.renamed: "List[Tuple[str, str]]" = []  # (old, new), other names are those of before
        self.nbytes = 0  # of the target

    def __repr__(self) -> str:
        lines = [f"{count_of(len(self.copied), 'tensor')} copied, {len(self.cast)} cast"]
        lines += self.casts()
        lines += [f"renamed: {quote(old)} -> {quote(new)}" for old, new in self.renamed[:5]]
        if len(self.renamed) > 5:
            lines.append(f"renamed: {len(self.renamed) - 5} more")
        if self.missing:
            lines.append(f"missing: {list_names(self.missing)}")
        lines += [f"metadata as text: {show(key)}" for key in self.as_text]
        for key, old, new in self.changed:
            change = "removed" if new is None else (
                f"added: {show(new)}" if old is None else f"{show(old)} -> {show(new)}")
            lines.append(f"metadata {show(key)}: {change}")
        lines += [f"dropped: {text}" for text in self.dropped]
        return "\n".join(lines + [f"wrote {count_of(self.nbytes, 'byte')}"])

    def casts(self) -> "List[str]":
        """Return a line for the casts of each kind: how many, and what they lost."""
        alike, lost = Map(), dict([row[:1] + (row[1:],) for row in self.lost])
        for name, old, new, exact in self.cast:
            alike.setdefault((old, new, exact), []).append(name)
        lines = []
        for (old, new, exact), names in alike.items():
            infinite, nan = [sum(counts) for counts in zip(*[lost.get(name, (0, 0))
                                                             for name in names])]
            how = "exact" if exact else "rounded"
            if infinite:
                how += f"; {count_of(infinite, 'value')} became infinite"
            if nan:
                how += f", {nan} NaN" if infinite else f"; {count_of(nan, 'value')} became NaN"
            who = quote(names[0]) if len(names) == 1 else count_of(len(names), "tensor")
            lines.append(f"cast: {who} {old} -> {new} ({how})")
        return lines


class Reasons:
    """Collects why a conversion is refused; equal reasons become one."""

    def __init__(self, title: str) -> None:
        self.title, self.rows = title, Map()  # (noun, why, option, its value) -> names

    def add(self, noun: str, name: Any, why: str, option: str = "", value: Any = True) -> None:
        self.rows.setdefault((noun, why, option, value), []).append(name)

    def error(self) -> ValueError:
        """Return what was collected, as an error that has it as `.reasons`."""
        made: Any = ValueError(self.text(lambda option, value: f"{option}={value!r}"))
        made.reasons = self
        return made

    def text(self, remedy: Any) -> str:
        """Return a line for each reason; of an option and its value `remedy` makes a text."""
        lines = []
        for (noun, why, option, value), names in self.rows.items():
            who = f"{noun} " + ", ".join([show(name, 200) for name in names[:10]])
            who += f", {len(names) - 10} more" if len(names) > 10 else ""
            if noun == "tensor" and len(names) > 1:
                who = count_of(len(names), noun)
            way = f": {remedy(option, value)}" if option else ""
            lines.append(f"{clip(who, MAX_LINE // 2)}: {clip(why, MAX_LINE // 4)}{way}")
        return f"{self.title} cannot hold\n  {join_lines(lines)}"


def merged(file: File, names: Any = None) -> "Tuple[Facts, Any]":
    """Return the metadata (of the files of some tensors), and what several do not agree on."""
    if isinstance(file, Joined):
        return file.merged(file if names is None else names)
    return file.metadata, {}


class Conversion:
    """One call of convert(): what becomes of tensors and metadata, and why it is refused."""

    def __init__(self, source: File, kind: "Format", cast: Any, dense: bool, drop: bool) -> None:
        self.source, self.kind, self.dense, self.drop = source, kind, dense, drop
        self.cast: Any = cast
        if hasattr(cast, "items"):
            self.cast = {old if old == "qfloat" else as_dtype(old): as_dtype(new)
                         for old, new in cast.items()}
        elif cast is not None:
            self.cast = as_dtype(cast)
        self.summary, self.reasons = Summary(), Reasons(kind.TITLE)
        self.attrs = file_attrs(source, kind)

    def fit(self, name: str, item: Any) -> Any:
        """Return a tensor as the target can hold it, dense or with another dtype; note both."""
        kind, cast, old = self.kind, self.cast, item.dtype or ""
        sparse = is_sparse(item) and "sparse" not in kind.USES
        if sparse:
            item = Cast(item, old)  # made dense when it is written, one at a time
            if self.dense:
                self.summary.cast.append((name, "sparse", "dense", True))
            else:
                self.reasons.add("tensor", name, "sparse", "dense")
        new = cast.get(old) if isinstance(cast, dict) else cast
        if isinstance(cast, str):
            stays = kind.passes(item) if old == "qfloat" else old not in ITEMSIZE
            new = None if stays or old in kind.DTYPES else cast
        if new is None or new == old:
            self.summary.copied += [] if sparse else [name]
        else:
            try:
                item = self.cast_to(name, item, new)
            except FormatError:
                raise
            except ValueError as error:
                self.reasons.add("tensor", name, f"cast to {new}: {error}")
                return item
        for why in kind.misfits(item):
            self.reasons.add("tensor", name, why, *_way_for(kind, item))
        return item

    def cast_to(self, name: str, item: Any, new: str) -> Any:
        """Return a tensor with another dtype; note whether the cast is exact, and what it loses."""
        if item.dtype == "qfloat":
            values, made, exact = item.floats(), Cast(item.floats(), new), False
        else:
            values = item.components["values"] if is_sparse(item) else item
            values.check_readable()
            made, exact = item.with_values(new) if is_sparse(item) else Cast(item, new), True
        infinite = nan = 0
        if not cast_is_exact(values.dtype, new):
            same, infinite, nan = _losses(values, values.dtype, new)
            exact = exact and same
        self.summary.cast.append((name, item.dtype, new, exact))
        self.summary.lost += [(name, infinite, nan)] * (infinite + nan > 0)
        return made

    def rename(self, items: Items, named: "Dict[str, str]") -> Items:
        """Return the tensors with their new names, which the target has to hold."""
        for name, _ in items:
            for why in self.kind.check_name(named[name]):
                self.reasons.add("tensor", name, why, "rename", "OLD=NEW")
        self.summary.renamed = [(name, named[name]) for name, _ in items if named[name] != name]
        return [(named[name], item) for name, item in items]

    def fit_metadata(self, names: Any, numbers: Any, meta: Facts, options: Facts) -> Any:
        """Return the metadata that the target holds; note what is left out, or written as text."""
        found, differ = merged(self.source, names)
        metadata, facts = Map(found.items()), dict(self.attrs, **options)
        self.change_metadata(metadata, differ, meta)
        lost: Any = [(key, "the files do not agree on it", "drop", True) for key in differ]
        for key, why in self.kind.misfit_metadata(metadata, facts):
            value = metadata[key]
            text = repr(value) if isinstance(value, (int, float)) else None
            fits = text is not None and not self.kind.misfit_metadata({key: text}, facts)
            if fits and numbers:
                metadata[key] = text
                self.summary.as_text.append(key)
                continue
            del metadata[key]
            if key in self.source.kind.IDLE_KEYS:
                self.summary.left_behind.append(f"metadata {key}")
            else:
                lost.append((key, why, "metadata", "text") if fits else (key, why, "drop", True))
        for key, why, option, choice in lost:
            if self.drop:
                self.summary.dropped.append(f"metadata {show(key)} ({why})")
            else:
                self.reasons.add("metadata", key, why, option, choice)
        for key, value in metadata.items():
            if type(value) in self.kind.HELD_AS:
                stored = self.kind.HELD_AS[type(value)](value)
                self.summary.changed += [(key, value, stored)] * (repr(stored) != repr(value))
        return metadata

    def change_metadata(self, metadata: Facts, differ: Any, meta: Facts) -> None:
        """Set metadata, or remove what is to be None."""
        for key, value in meta.items():
            fresh, old = differ.pop(key, None) is None, metadata.get(key)
            if value is None and key not in metadata and fresh:
                raise ValueError(f"meta: there is no metadata {show(key)}")
            if value is None:
                metadata.pop(key, None)
            else:
                metadata[key] = value
            self.summary.changed += [(key, old, value)] * (repr(old) != repr(value))

    def leave_out(self, items: Items) -> None:
        """Note the attributes that the target does not store; content needs `drop`."""
        kind, origin = self.kind, self.source.kind
        found: Any = [
            (None, key, value not in (None, {}) and origin.is_content(key, True))
            for key, value in self.source.attrs.items()
            if key not in self.attrs and key != "missing"]
        for name, item in items if kind is not origin else ():
            own = kind.own_attrs(item)
            for key in [key for key in item.attrs if key not in own]:
                content = origin.is_content(key)
                if not content or origin.NAME not in kind.CARRIES:
                    found.append((name, key, content))
        self.summary.missing = self.source.attrs.get("missing", [])
        behind = [key for _, key, content in found if not content]
        self.summary.left_behind = sorted(set(self.summary.left_behind + behind))
        for owner, key, content in found:
            if content and self.drop:
                where = "" if owner is None else f"tensor {show(owner, 200)}: "
                self.summary.dropped.append(f"{where or 'file '}attribute {show(key)}")
            elif content and owner is None:
                self.reasons.add("file attribute", key, "there is no place for it", "drop")
            elif content:
                why = f"attribute {show(key)} has no place there"
                self.reasons.add("tensor", owner, why, "drop")


def convert(source: "Union[Source, File]", target: Target, *,
            format: "Optional[str]" = None, cast: Any = None, only: Any = None,
            exclude: Any = None, rename: Any = None, dense: bool = False, drop: bool = False,
            metadata: Any = None, meta: Any = None, partial: bool = False, watch: Any = None,
            **options: Any) -> Summary:
    """Write the tensors of a source, or a File, in a format; return what was done.

    Nothing changes silently: what the target cannot hold is a ValueError with all reasons. `cast`:
    {"float16": "float32"}, or "float32" for whatever the target cannot hold (it dequantizes too).
    `dense`: sparse tensors as dense ones where the target has none. `only`, `exclude`: names or
    shell patterns. `rename`: {"model.*": "*"}, names or patterns with one `*`, or a function.
    `drop`: leave out content that has no place (custom fields, scalars, metadata).
    metadata="text": numbers in metadata as text where the target holds text only. `meta`: metadata
    to set, or with the value None to remove. `partial`: as in load(). `options` and memory: as in
    save(). `watch`: as in verify().

    >>> from io import BytesIO
    >>> convert(dumps({"w": [1.0]}, format="ztensor"), BytesIO(), format="burnpack")
    1 tensor copied, 0 cast
    wrote 264 bytes
    """
    if not isinstance(source, File):
        with load(source, partial=partial) as file:
            return convert(file, target, format=format, cast=cast, only=only, exclude=exclude,
                           rename=rename, dense=dense, drop=drop, metadata=metadata, meta=meta,
                           watch=watch, **options)
    kind = choose_generation(target_format(format, target, None), options, source)
    kind.check_options(options)
    if metadata not in (None, "text"):
        raise ValueError(f"metadata is None or 'text', not {show(metadata)}")
    work = Conversion(source, kind, cast, dense, drop)
    chosen = in_order(source, select_names(source, only, exclude))
    named = _rename([name for name, _ in chosen], rename)
    if source.attrs.get("missing") and not chosen:
        raise ValueError("none of the tensors is whole: nothing to convert")
    check_work(chosen, bool(cast))
    items = [(name, work.fit(name, item)) for name, item in chosen]
    fitting = work.fit_metadata(named, metadata, meta or {}, options)
    work.leave_out(items)
    items = work.rename(items, named)
    if work.reasons.rows:
        raise work.reasons.error()
    chunks = kind.write(items, fitting, work.attrs, options)
    check_stored(chosen)
    if watch is not None:
        parts = (part for chunk in chunks for part in pieces(memoryview(chunk), 16 << 20))
        chunks = watch(parts, sum([item.nbytes for _, item in items]))
    work.summary.nbytes = write_out(target, chunks)
    return work.summary


def select_names(file: File, only: Any, exclude: Any = None) -> "List[str]":
    """Return names of a File by two lists: an exact name wins, else each is a shell pattern."""
    if only is None and not exclude:
        return list(file)
    names, chosen = set(file), {}
    for title, patterns in ("only", only), ("exclude", exclude):
        chosen[title] = set(names if patterns is None and title == "only" else ())
        for pattern in [patterns] if isinstance(patterns, str) else patterns or ():
            from fnmatch import fnmatchcase  # boards lack it
            found = [pattern] if pattern in names else [
                name for name in names if fnmatchcase(name, pattern)]
            if not found:
                raise ValueError(f"{title}: no tensor is called {show(pattern)}")
            chosen[title].update(found)
    left = chosen["only"] - chosen["exclude"]
    return [name for name in file if name in left]


def _rename(names: "List[str]", rename: Any) -> "Dict[str, str]":
    """Return the new name of each: by a function, or a mapping of names and patterns with a `*`.

    An exact name wins, then the first pattern. ValueError where two get the same name.
    """
    known = Map.fromkeys(names)
    given = Map([(name, rename(name)) for name in names]) if callable(rename) else rename or {}
    made, owners = Map(), Map()
    for old, new in sorted(given.items(), key=lambda pair: pair[0] not in known):
        if not isinstance(new, str):
            raise TypeError(f"rename: a name is a str, not {show(new)}")
        start, star, end = str(old).partition("*")
        found = [old] if old in known else [
            name for name in names if star and len(name) >= len(start + end)
            and name.startswith(start) and name.endswith(end)]
        if not found or (old not in known and "*" in end + new.replace("*", "", 1)):
            raise ValueError(f"rename: no tensor is called {show(old)} (one `*` is for any text)")
        for name in found:
            text = name[len(start):len(name) - len(end)]
            made.setdefault(name, new if old in known else new.replace("*", text))
    for name in names:
        new = made.setdefault(name, name)
        other = owners.setdefault(new, name)
        if other != name:
            raise ValueError(f"rename: {quote(other)} and {quote(name)} would both be {quote(new)}")
    return made


def _way_for(kind: "Format", item: Tensor) -> "Tuple[str, str]":
    """Return the option that lets a format hold a tensor, and its value."""
    old = item.dtype
    if old == "qfloat" and "float32" in kind.DTYPES:
        return "cast", "float32"
    if item.stored.why is not None or old is None:
        return "exclude", "NAME"
    exact = [new for new in ITEMSIZE if old in ITEMSIZE and cast_is_exact(old, new)]
    rounding = ["int32", "float32"] if old in FLOAT_DIGITS else ["float32", "int32"]
    for new in reversed(rounding + exact) if old not in kind.DTYPES else ():
        if new in kind.DTYPES:
            return "cast", new
    return "", ""


def _losses(item: Tensor, old: str, new: str) -> "Tuple[bool, int, int]":
    """Return whether a cast there and back gives the same; how many become infinite, and NaN."""
    same, infinite, nan = True, 0, 0
    for part in item.parts():
        data = bytes(part)
        if (old, new) == ("float32", "bfloat16"):  # 6 times as fast: no low bits, no NaN
            tops, zeros = data[3::4], bytes(len(data) // 4)
            if data[0::4] == data[1::4] == zeros and 127 not in tops and 255 not in tops:
                continue
        there = cast_block(data, old, new)  # an error of integers that do not fit
        try:
            same = same and bytes(cast_block(there, new, old)) == data
        except ValueError:
            same = False
        values = unpack_values(new, there) if new in FLOAT_DIGITS else ()
        if not -INFINITY < sum(values) < INFINITY:
            for x, y in zip(unpack_values(old, data), values):
                if x == x and y != y:
                    nan += 1
                elif abs(y) == INFINITY and abs(x) != INFINITY:
                    infinite += 1
    return same, infinite, nan


# -- [9e] diff -----------------------------------------------------------------------------------


class Diff(Result):
    """What diff() found: true when something differs, str() of it is for a person.

    `.a`, `.b`: the paths. `.tensors`: how many there are. `.differences`: a map for each, its
    "sign" - (only in a), + (only in b) or ~, "kind" (tensor, metadata or scalar), "name",
    "changes" for a person, and where values changed their "count", "max_abs" and "max_rel", of NaN
    against a number both infinite, and "not_finite", how many NaN and infinities are among them.
    """

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.tensors = a.path, b.path, len(set(a).union(b))
        self.differences: "List[Facts]" = []

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __repr__(self) -> str:
        lines = []
        for row in self.differences:
            tensor = row["kind"] == "tensor"
            changes = [text if tensor else show(text) for text in row["changes"]]
            what = plain(row["name"]) if tensor else f"{row['kind']} {plain(row['name'])}"
            lines.append(f"{row['sign']} {what}: {(', ' if tensor else ' -> ').join(changes)}")
        number = count_of(len(self.differences), "difference")
        return "\n".join(lines + [f"{count_of(self.tensors, 'tensor')}, {number}"])


def diff(a: Any, b: Any, *, rtol: float = 0.0, atol: float = 0.0, mmap: bool = True,
         watch: Any = None) -> Diff:
    """Return what differs between two sources or Files, of any formats: a Diff.

    Values are the same where |x - y| <= atol + rtol * |y|, or both are NaN, or the same infinity.
    `mmap`: as in load(). `watch`: as in verify().

    >>> one, two = [dumps({"w": [x, 2.0]}, format="ztensor") for x in (1.0, 1.5)]
    >>> diff(one, two)
    ~ w: 1 value changed, by 0.5 at most
    1 tensor, 1 difference
    >>> bool(diff(one, two, rtol=0.5))
    False
    """
    if not (0 <= rtol < INFINITY and 0 <= atol < INFINITY):
        raise ValueError(f"rtol and atol are numbers from 0 on, not {rtol} and {atol}")
    from contextlib import ExitStack
    with ExitStack() as stack:
        files = [one if isinstance(one, File) else stack.enter_context(load(one, mmap=mmap))
                 for one in (a, b)]
        return diff_files(files[0], files[1], rtol, atol, watch)


def diff_files(a: File, b: File, rtol: float, atol: float, watch: Any) -> Diff:
    """Compare tensors, then metadata and scalars."""
    for file in (a, b):
        check_work(list(file.items()))
    found = Diff(a, b)
    idle = a.kind.IDLE_KEYS + b.kind.IDLE_KEYS if a.kind is not b.kind else ()
    scalars = [file.attrs.get("scalars") or {} for file in (a, b)]
    metadata = [all_metadata(file) for file in (a, b)]
    for noun, (x, y) in ("tensor", (a, b)), ("metadata", metadata), ("scalar", scalars):
        names: Any = Map.fromkeys(list(x) + list(y))
        if noun == "tensor" and watch is not None:
            names = watch(names, sum([item.nbytes for item in a.values()]),
                          lambda name: a[name].nbytes if name in a else 0)
        for name in names:
            both = [data[name] for data in (x, y) if name in data]
            if noun == "tensor":
                row = diff_tensor(both, rtol, atol)
            else:  # convert leaves idle ones behind
                same = name in idle if len(both) == 1 else to_json(both[0]) == to_json(both[1])
                row = {} if same else {"changes": both}
            if row:
                sign = "~" if len(both) == 2 else "-" if name in x else "+"
                found.differences.append(dict({"sign": sign, "kind": noun, "name": name}, **row))
    return found


def all_metadata(file: File) -> Facts:
    """Return the metadata; of a key that shards do not agree on, the list of what they say."""
    found = dict(merged(file)[0])
    parts = [part.metadata for _, part in sorted(getattr(file, "parts", {}).items())]
    for key in [key for part in parts for key in part]:
        found.setdefault(key, [part.get(key) for part in parts])
    return found


def diff_tensor(both: "List[Tensor]", rtol: float, atol: float) -> Facts:
    """Return what differs between two tensors, {} for nothing; of a single one, what it is."""
    texts = [f"{dtype_of(item)} {show(item.shape)}" for item in both]
    if len(both) == 1 or both[0].shape != both[1].shape:
        return {"changes": [" -> ".join(texts)]}
    row: Facts = {"changes": [] if texts[0] == texts[1] else [" -> ".join(texts)]}
    try:
        diff_values(both[0], both[1], row, rtol, atol)
    except Unsupported as error:
        if not same_stored(*both):
            row["changes"].append(f"not known to be the same: {error.what}")
    return row if row["changes"] else {}


def diff_values(a: Tensor, b: Tensor, row: Facts, rtol: float, atol: float) -> None:
    """Compare in constant memory: bytes first, numbers where they differ; note what is found."""
    old, new = str(a.dtype), str(b.dtype)
    count, odd, most, ratio, same = 0, 0, 0.0, 0.0, True
    for part, other in zip(groups_of(a), groups_of(b)):
        if old == new and part == other:
            continue
        same = False
        for x, y in zip(unpack_values(old, part), unpack_values(new, other)):
            if x == y or (x != x and y != y):
                continue
            gap = float(abs(x - y) or abs(int(x) - int(y)))  # of an integer over 2**53
            if gap <= atol + rtol * abs(y) and gap < INFINITY:
                continue
            count += 1
            if not gap < INFINITY:  # NaN or infinity against another value
                odd, gap = odd + 1, INFINITY
            most = max(most, gap)
            ratio = max(ratio, gap / abs(y) if y and gap < INFINITY else INFINITY)
    near = rtol or atol
    if count:
        by = "" if odd else f", by {most!r} at most"
        by += f", {odd} of them from or to NaN or infinity" if odd else ""
        row["changes"].append(f"{count_of(count, 'value')} changed{by}")
        row.update(count=count, not_finite=odd, max_abs=most, max_rel=ratio)
    elif not same and (old != new or not near):
        bits = ", other bits (-0.0 or NaN)" if old == new else ""
        row["changes"].append("close values" if near else "same values" + bits)


def groups_of(item: Tensor) -> Chunks:
    """Yield the row-major bytes of PART elements, then of those that are left."""
    nbytes, rest = PART * item.check_readable(), b""
    for part in item.parts():
        rest += part
        if len(rest) >= nbytes:
            yield rest[:nbytes]
            rest = rest[nbytes:]
    yield rest


# -- [10a] page ----------------------------------------------------------------------------------
# What `explain` shows, and the page of `explain --html`: a strip of the file, its tensors, then a
# row for each field, whose bytes stand in the columns of their offsets. No script: links lead, the
# browser searches. What the file says is monospace, what we say is not.

PAGE_ROWS = 1000  # fields shown from the start, and as many from the end; tensors
PAGE_PARTS = 400  # of the strip, about
PAGE_BYTES = {"data": 32, "padding": 16}  # of one field, up to a multiple of 16; others: 64
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{title}}</title><style>
:root{color-scheme:light dark;--dim:light-dark(#5b6268,#a3aab1);--paper:light-dark(#fdfcfa,#15181b)}
.structure{--t:light-dark(#dbe5fa,#233557);--c:light-dark(#2a57a5,#8fb5fb)}
.data{--t:light-dark(#cdebdd,#17443a);--c:light-dark(#0f6a54,#66d1ae)}
.padding{--t:light-dark(#ece9e2,#26292d);--c:light-dark(#67696c,#979ea5)}
.unused,.unreached{--t:light-dark(#fbe3b4,#4a3911);--c:light-dark(#7d5100,#efc063)}
.fault{--t:light-dark(#fbd5d0,#64211d);--c:light-dark(#a81d16,#ff9d92)}
*{box-sizing:border-box}
html{scroll-padding:9rem 0 25vh}
body{margin:auto;max-width:1480px;padding:0 1.5rem 4rem;background:var(--paper);
color:light-dark(#1d2226,#e9e6e0);font:15px/1.5 system-ui,sans-serif}
h1{margin:1rem 0 .2rem;overflow-wrap:anywhere}
p{margin:.4rem 0}
a{color:inherit}
.key span{margin-right:1.6em}
.key i,.banner{background:var(--t);border-left:6px solid var(--c)}
.key i{display:inline-block;width:1.2em;height:.9em;margin-right:.4em}
.banner{padding:.6rem 1rem;overflow-wrap:anywhere}
nav{position:sticky;top:0;display:flex;height:44px;padding:3px 0;background:var(--paper)}
nav a{flex:var(--w) 0 0;min-width:min(8px,.2%);overflow:hidden;background:var(--t);
border-bottom:4px solid var(--c);border-right:1px solid var(--paper);
font:11px/1.3 monospace;white-space:pre;text-decoration:none}
pre,td,th.hex{font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}
.scroll{overflow:auto;max-height:24rem;margin:.5rem 0}
table{border-collapse:collapse}
th{text-align:left;color:var(--dim);position:sticky;top:0;background:var(--paper)}
#fields th{top:44px}
td,th{padding:.1rem 1rem .1rem 0;vertical-align:top;overflow-wrap:anywhere}
td:last-child{font:13px/1.5 system-ui,sans-serif;color:var(--dim)}
tr:target{background:light-dark(#fff2ad,#3b3516)}
.n{text-align:right}
.at,.hex,th{white-space:pre}
.hex span{background:var(--t)}
.hex i,.at{color:var(--dim);font-style:normal}
.name{padding-left:calc(var(--d)*1.2em)}
.fault .name{color:var(--c);font-weight:700}
</style></head><body><h1>{{title}}</h1><p>{{facts}}</p><p class="key">{{key}}</p>{{banner}}
<nav>{{strip}}</nav><details><summary>How {{kind}} is built, and where it is here</summary>
<pre>{{layout}}</pre></details>
<details open><summary>{{count}}</summary><section class="scroll"><table><tr><th>name</th>
<th>dtype, shape</th><th>bytes</th><th>at</th><th>first values</th></tr>
{{tensors}}</table></section></details>
<table id="fields"><tr><th>offset</th>
<th class="hex"> 0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f</th><th>field</th><th>value</th>
<th>meaning</th></tr>{{rows}}</table></body></html>
"""


class Explained:
    """What `explain` shows of a file: the rows that are asked for, the sums of all kinds."""

    def __init__(self, source: Any, tensor: Any = None, start: int = 0) -> None:
        self.source, self.kind = source, kind_of(source, None)
        fields, parsed, self.error, _ = dissect(self.kind, source, {}, None)
        aim_offsets(fields)
        self.fields, self.attrs = fields, parsed[0] if parsed else {}
        self.names = Map.fromkeys([field.tensor for field in fields if field.tensor is not None])
        self.sums: Any = Map([(kind, 0) for kind in FIELD_KINDS])
        reach = 0
        for field in fields:
            end = field.offset + field.nbytes
            self.sums[field.kind] += max(0, end - max(field.offset, reach))  # shared: once
            reach = max(reach, end)
        name = tensor and clip(tensor, MAX_PATH)
        self.rows = list(rows_of([field for field in fields if field.kind == "fault" or (
            name in (None, field.tensor) and field.offset + field.nbytes > start)]))


def rows_of(fields: "List[Field]") -> Chunks:
    """Yield (field, name, value, meaning), as texts; the name without that of the field around."""
    around: Any = {}  # names by depth
    for field, behind in zip(fields, fields[1:] + fields[-1:]):
        before, name = around.get(field.depth - 1, ""), field.name
        around[field.depth] = name[:-6] if name.endswith(".table") else name  # of FlatBuffers
        if before and name.startswith(before) and name != before:
            name = name[len(before):].lstrip(".")
        elif field.depth:  # tensors[0].x -> [0].x
            name = name[max(0, name.find("[")):]
        value = "" if field.value is None else show(field.value, 40)
        if field.kind in ("padding", "unused", "unreached"):
            value = count_of(field.nbytes, "byte")
        elif field.kind == "data":
            value = plain(str(field.value))  # a role of a file is any text
        meaning = field.doc
        if behind.depth > field.depth and field.tensor is not None and (
                field.tensor not in field.name and field.value != 0):
            meaning += ", of " + plain(field.tensor)
        meaning += "" if field.target is None else f" -> 0x{field.target:x}"
        yield field, plain(name), value, meaning


def hex_of(data: bytes) -> str:
    """Return bytes as digits with blanks between: 00 1f ff."""
    return " ".join(["%02x" % byte for byte in data])


def make_page(found: Explained) -> "Tuple[str, str]":
    """Return the page of a file, and how many fields it shows."""
    import re
    rows, kind, total = found.rows, found.kind, found.source.nbytes
    picked = rows[:PAGE_ROWS] + rows[PAGE_ROWS:][-PAGE_ROWS:]
    summary, facts = count_of(len(picked), "field"), f"{kind.TITLE}, {total:,} bytes"
    if len(picked) < len(rows):
        summary += f", {len(rows) - len(picked)} left out"
        facts += (f"; {len(rows) - len(picked)} fields in the middle are left out: for a page of "
                  f"them, --from 0x{rows[PAGE_ROWS][0].offset:x} or --tensor NAME")
    title = to_html(plain(os.path.basename(found.source.path or "the data")))
    key = "".join([f'<span class="{name}"><i></i><b>{name}</b>, {FIELD_KINDS[name][0]}: '
                   f"{count:,} bytes ({100 * count / total:.1f} %)</span>"
                   for name, count in found.sums.items() if count])
    data = [row[0] for row in rows if row[0].kind == "data"]
    count = count_of(len(data), "range") + " of tensors" + (
        f", {PAGE_ROWS} shown" if len(data) > PAGE_ROWS else "")
    parts = {"title": title, "facts": to_html(facts, MAX_LINE), "key": key, "kind": kind.TITLE,
             "banner": page_banner(found), "strip": page_strip([row[0] for row in rows]),
             "layout": page_layout(found), "count": count,
             "tensors": page_tensors(data[:PAGE_ROWS]), "rows": page_rows(found.source, picked)}
    page = re.sub(r"{{(\w+)}}", lambda match: str(parts[match.group(1)]), PAGE)
    return page.encode("ascii", "xmlcharrefreplace").decode(), summary


def page_banner(found: Explained) -> str:
    """Return what is wrong with a broken file."""
    if found.error is None:
        return ""
    fault = [row[0] for row in found.rows if row[0].kind == "fault"][0]
    missing = list_names(found.attrs.get("missing", ()), 10)
    missing = "Not whole: " + missing if missing else ""
    return (f'<p class="banner fault"><b>This file is broken: '
            f"{to_html(shell_words(found.error.what), MAX_LINE)}.</b> The fault is at "
            f"{link(fault.offset)}, {to_html(fault.name)}; {found.sums['unreached']:,} bytes were "
            f"not read. {to_html(missing, MAX_LINE)}</p>")


def link(offset: int) -> str:
    return f'<a href="#0x{offset:x}">0x{offset:x}</a>'


def page_layout(found: Explained) -> str:
    """Return the drawn layout; in front of each row where it is in this file, if it is there."""
    import re
    lines = []
    for line in doc_of(found.kind).split("\n"):
        label = re.match(r"(\S.{0,11}?)(?:  +| +(?==))", line)
        at = place_of(label.group(1), found) if label else None
        place = " " * 12 if at is None else link(at) + " " * (12 - len(f"0x{at:x}"))
        lines.append(place + to_html(line, MAX_LINE) if line else "")
    return "\n".join(lines)


def place_of(label: str, found: Explained) -> "Optional[int]":
    """Return where a label of a drawn layout is in a file: a number, or by a field or its value."""
    nbytes, marks = found.source.nbytes, found.kind.MARKS
    names = str(marks.get(label, label)).split(" ")
    at: Any = [field.offset if label in marks else field.value for field in found.fields
               if field.name in names or field.kind in names][:1]
    at = at[0] if at else int(label) if label.isdigit() else None
    if label[:4] == "end-" and label[4:].isdigit():
        at = nbytes - int(label[4:])
    return at if isinstance(at, int) and 0 <= at < nbytes else None


def page_tensors(data: "List[Field]") -> str:
    """Return a table of the data of tensors."""
    return "".join([
        f'<tr class="data"><td>{to_html(plain(field.name[5:]))}</td><td>{to_html(field.value)}'
        f'</td><td class="n">{field.nbytes:,}</td><td class="n">{link(field.offset)}</td>'
        f"<td>{to_html(field.doc)}</td></tr>\n" for field in data])


def page_strip(fields: "List[Field]") -> str:
    """Return the parts of the file: a tensor each, or neighbours of one kind, or about as large."""
    from itertools import groupby
    parts = [list(group) for _, group in groupby(fields, lambda one: (
        "structure" if one.doc == "alignment" else one if one.kind == "data" else one.kind))]
    if len(parts) > PAGE_PARTS:
        least = 1 + fields[-1].offset // PAGE_PARTS
        near = groupby(parts, lambda part: part[0].offset // least)
        parts = [[field for part in group for field in part] for _, group in near]
    strip = ""
    for part in parts:
        largest, start = max(part, key=lambda field: field.nbytes), part[0].offset
        size = part[-1].offset + part[-1].nbytes - start
        name = largest.name[5:] if largest.kind == "data" else largest.kind
        about = f"{to_html(plain(name))}\n0x{start:x}, {count_of(size, 'byte')}"
        label = about if len(parts) < 20 else ""
        strip += (f'<a class="{largest.kind}" href="#0x{start:x}" title="{about}" '
                  f'style="--w:{size ** .33:.4g}">{label}</a>\n')  # cube root: all can be seen
    return strip


def page_rows(source: Any, picked: Any) -> str:
    """Return a row per field, its bytes in the columns of their offsets."""
    import re
    out, before = [], -1
    for field, name, value, meaning in picked:
        at, lead = field.offset, 3 * field.lead
        blanks, most = at % 16, PAGE_BYTES.get(field.kind, 64)
        data = bytes(source.read(at, min(field.nbytes, most - blanks)))
        digits = re.sub("(.{47}) ", r"\1\n", "   " * blanks + hex_of(data))[3 * blanks:]
        left = field.nbytes - len(data)
        tail = f"\n\u2026 {left:,} more bytes" if left else ""
        doc = re.sub(r"-&gt; (0x[0-9a-f]+)$", r'<a href="#\1">&rarr;&nbsp;\1</a>',
                     to_html(meaning, MAX_LINE))
        place = f' id="0x{at:x}"' * (at > before)  # the first of this offset
        out.append(f"""<tr class="{field.kind}"{place}><td class="at">0x{at:x}</td><td class="hex">{
"   " * blanks}<span><i>{digits[:lead]}</i>{digits[lead:]}</span>{tail}</td><td class="name"
style="--d:{field.depth}">{to_html(name)}</td><td>{to_html(value)}</td><td>{doc}</td></tr>""")
        before = at
    return "".join(out)


# -- [10b] vendor --------------------------------------------------------------------------------
#
# A copy is this file's text without the sections of other formats and parts, and without what then
# nobody reaches by name: neither its users nor what is kept. Where kept code names a function or
# class that was left out, one line stands in its place: a call of it raises Unsupported.

COPY_PARTS = {  # what `--with` takes: sections, or names in them, that only copies with it have
    "load": "", "fast": r"\.gather_(quickly|block)",
    "save": r"values|save|work|\.write", "casts": r"casts|\.astype", "float8": "float8",
    "zstd": "zstd", "sparse": r"sparse|\.open_sparse", "quantized": r"quantized|\.BurnSchemes",
    "arrays": r"arrays|\.__(array|dlpack|jax_array|buffer)__",
    "pickles": r"pickles|\.__(reduce|copy|deepcopy)__", "partial": "cut files", "shards": "shards",
    "tools": "other files|shown|traces|explain|verify|convert|diff|page|vendor|command line"}
COPY_PARTS.update([(kind.NAME, kind.NAME) for kind in LATER if kind.NAME not in COPY_PARTS])
CALLS = {  # what users call of a part
    "load": """load detect File Tensor FormatError Unsupported FORMATS left_out keys values items
        get close ndim size itemsize nbytes offset attrs strides raw data zero_copy tobytes tolist
        item flat contiguous astype todense components scheme scales dequantize""",
    "save": "save dumps tensor", "tools": " ".join(__all__) + " main"}


class Piece:
    """A statement of the module or of a class: its lines, the names it defines and those it uses.

    A class uses what its bases do; what stands in it are pieces of their own, its members.
    `title`: that of its section. `lacks`: the part, or format, without which a copy does not have
    it; "" if it may have it.
    """

    lacks = ""

    def __init__(self, node: Any, lines: "List[str]", title: str, inner: bool = False) -> None:
        import ast
        self.title, self.inner, self.defines = title, inner, defined_names(node)
        self.is_code = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        self.is_constant = isinstance(node, (ast.Assign, ast.AnnAssign))
        decorators = getattr(node, "decorator_list", [])
        self.first, self.last = min([one.lineno for one in decorators + [node]]), node.end_lineno
        while lines[self.first - 2].lstrip()[:1] == "#" and lines[self.first - 2][:4] != "# --":
            self.first -= 1  # comments in front of it
        self.members: "List[Piece]" = []
        uses = [node]
        if isinstance(node, ast.ClassDef) and not inner:
            self.members = [Piece(one, lines, title, True) for one in node.body]
            uses = node.bases
        self.names: Any = set().union(*map(used_names, uses))

    def is_reached(self, names: Any) -> bool:
        """Return whether it is kept: also what defines nothing, or what Python calls."""
        return not self.defines or bool([
            name for name in self.defines if name in names or self.inner and "." + name in names
            or name[:2] == name[-2:] == "__" and (self.inner or not self.lacks)])

    def stub(self) -> str:
        """Return the line that stands for a function or class that was left out, else ""."""
        left_out = self.lacks and self.is_code
        return f'{self.defines[0]} = left_out("{self.lacks}")' if left_out else ""


def defined_names(node: Any) -> "List[str]":
    """Return the names that a statement defines, also in its branches."""
    import ast
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [node.asname or node.name.split(".")[0]]
    if isinstance(node, (ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        name = getattr(node, "id", getattr(getattr(node, "value", None), "id", None))
        return [name] if name else []  # of an item that of its table: it goes with that
    if isinstance(node, (ast.Call, ast.ListComp, ast.GeneratorExp)):
        return []
    return [name for child in ast.iter_child_nodes(node) for name in defined_names(child)]


def used_names(node: Any) -> Any:
    """Return the names of the module that a statement uses, and with a dot those of attributes."""
    import ast
    names: Any = set()
    local: Any = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            (names if isinstance(one.ctx, ast.Load) else local).add(one.id)
        elif isinstance(one, (ast.arg, ast.alias)):
            local.add(one.arg if isinstance(one, ast.arg) else one.asname or one.name)
        elif isinstance(one, ast.Attribute):
            names.add("." + one.attr)
        elif isinstance(one, ast.Call) and getattr(one.func, "id", "") in ("getattr", "hasattr"):
            names.add(f".{getattr(one.args[1], 'value', None)}")
    return names - local


def split_source(text: str) -> "List[Piece]":
    """Return the statements of a source text, each with the title of its section."""
    import ast
    lines, titles = text.split("\n"), [""]
    for line in lines:
        banner = line[:6] == "# -- ["
        titles.append(line.strip("# -").partition("] ")[2] if banner else titles[-1])
    return [Piece(node, lines, titles[node.lineno]) for node in ast.parse(text).body]


def mark_left_out(pieces: "List[Piece]", words: "List[str]") -> None:
    """Mark the pieces that a copy without some formats and parts lacks."""
    import re
    for piece in pieces:
        titles = [piece.title] + ["." + name for name in piece.defines]
        piece.lacks = ([word for word in words for title in titles
                        if re.fullmatch(COPY_PARTS.get(word, word), title)] + [""])[0]
        mark_left_out(piece.members, words)


def find_kept(pieces: "List[Piece]", names: Any) -> Any:
    """Return the pieces that are reached from some names; adds the names that these use."""
    gone = {name for piece in pieces if piece.stub() for name in piece.defines}
    kept: Any = set()
    waiting = [one for one in pieces if not one.lacks or one.is_code or one.is_constant]
    found = waiting
    while found:
        found = [piece for piece in waiting if piece.is_reached(names)]
        kept.update(found)
        waiting = [piece for piece in waiting if piece not in found]
        for piece in found:
            if not piece.stub():
                table = piece.defines in (["FORMATS"], ["LATER"])  # of which a copy has some
                names.update(piece.names.difference(gone if table else ()))
                waiting += piece.members
    return kept


def cut_text(text: str, pieces: "List[Piece]", kept: Any) -> str:
    """Return the text of what is kept, with a line for each name that was left out."""
    import re
    lines, stubs = dict(enumerate(text.split("\n"), 1)), ["\n\n"]
    for piece in pieces + [member for one in pieces for member in one.members]:
        stub = piece.stub()
        if piece not in kept or stub:
            for at in range(piece.first, piece.last + 1):
                lines.pop(at, None)
        if piece in kept and stub:
            if piece.inner:
                lines[piece.last] = "    " + stub
            else:
                stubs.append(stub)
    place = [piece.last for piece in pieces if piece.title == "left out"][0]
    lines[place] += "\n".join(stubs)
    text = "\n".join([lines[at] for at in sorted(lines)])
    return re.sub(r"(?m)^# -- \[.*\n(?:(?:#(?! --).*)?\n)*(?=# -- |\Z)", "", text)  # empty sections


def make_copy(text: str, pieces: "List[Piece]", kinds: "List[Format]", parts: "List[str]") -> str:
    """Return a copy of this text, of these statements, with some formats and parts."""
    parts = parts + ["fast"] * ("save" in parts)  # of much data there are sums, too
    lacks = [kind.NAME for kind in FORMATS if kind not in kinds]
    lacks += [kind.NAME for kind in LATER if kind.FAMILY in lacks]
    lacks += [part for part in COPY_PARTS if part not in parts + lacks]
    names = {name for part in parts for name in CALLS.get(part, "").split()}
    mark_left_out(pieces, lacks)
    kept = find_kept(pieces, names)
    text = cut_text(text, pieces, kept)
    known = [name for piece in pieces if piece in kept for name in piece.defines]
    others = [kind for kind in LATER + list(FORMATS) if kind.NAME in lacks]
    for kind in others:
        text = text.replace(f"    {type(kind).__name__}(),\n", "")  # of tables
    for name, value in (
            ("__all__", [name for name in __all__ if name in known]),
            ("LEFT_OUT", {magic: kind.NAME for kind in others for magic in kind.MAGICS}),
            ("WITHOUT", sorted(lacks))):
        text = set_value(text, name, value)
    return describe_copy(text, kinds, parts)


def set_value(text: str, name: str, value: Any) -> str:
    """Return the text with another value of a constant."""
    import re
    from textwrap import fill
    return re.sub(rf"(?m)^({name}(: .*)? = ).*(?:\n[ \])].*)*", lambda found: fill(
        found.group(1) + str(value), 100, subsequent_indent="    "), text)


def describe_copy(text: str, kinds: "List[Format]", parts: "List[str]") -> str:
    """Return the text of a copy with a docstring that speaks of what is there."""
    import re
    titles = ", ".join([kind.TITLE for kind in kinds])
    about = (f'"""A copy of tensorfmt, for tensor files: {titles}.\n\n'
             f'    with load("model{kinds[0].SUFFIXES[0]}") as file:\n'
             '        print(list(file.values()))\n"""')
    text = re.sub(r'(?s)""".*?"""', lambda found: about, text, count=1)
    if "tools" not in parts:  # nobody runs what is for type checkers
        text = re.sub(r"(?m)^if TYPE_CHECKING:\n(?:    .*\n|\n)+else:.*\n((?:    .*\n)+)",
                      lambda found: found.group(1).replace("    ", ""), text)
        text = re.sub(r"(?m)^    if TYPE_CHECKING:.*\n(?:        .*\n|\n)+|^# (mypy|pyright): .*\n",
                      "", text)
    if not {"save", "tools"}.issubset(parts):
        text = re.sub(r'(?m)^( +""".*)\n\n +>>> (?:.*\n)*? +"""', r'\1"""', text)
        text = re.sub(r'(?m)\n\n +>>> (?:.*\n)*?(?= +""")', "\n", text)  # examples ask for both
    text = re.sub(r"( = left_out\(.*\n)\n+(?= +\w+ = left_out)", r"\1", text)
    text = re.sub("\n{3,}(?= )", "\n\n", re.sub("\n{4,}", "\n\n\n", text))
    return text.rstrip("\n") + "\n"


# -- [11] command line ---------------------------------------------------------------------------

MAX_TREE = 30  # lines of `ls --tree`
SHELL_WORDS = (  # words of Python in messages, those of the command line
    ("load(gzip.open(path).read())", "`gzip -dc FILE | tensorfmt ls -`"),
    ("load(lzma.open(path).read())", "`xz -dc FILE | tensorfmt ls -`"),
    ("load(bz2.open(path).read())", "`bzip2 -dc FILE | tensorfmt ls -`"),
    ("load(partial=True) takes", "--partial takes"),
    ("partial=True takes", "--partial takes"),
    ("is a pipe: load(stream.read())", "is a pipe: `-` reads standard input"),
    ("deep=True computes all", "--deep computes all"),
    ("give format= or a suffix", "give --format or a suffix"))


def describe(error: BaseException, path: str = "") -> str:
    """Return the message of an error, which names the file, in words of the command line."""
    if isinstance(error, OSError):
        path = str(error.filename or path)
        hint = "; what downloads it can pipe it into `-`" if "://" in path else ""
        return (plain(path) + ": " if path else "") + (error.strerror or str(error)) + hint
    reasons: "Optional[Reasons]" = getattr(error, "reasons", None)
    if reasons is not None:
        return reasons.text(lambda option, value: f"--{option}" + (
            "" if value is True else f" {value}"))
    return shell_words(error.__str__("utf-8") if isinstance(error, FormatError) else str(error))


def shell_words(text: str) -> str:
    for python, shell in SHELL_WORDS:
        text = text.replace(python, shell)
    return text


def open_input(path: str) -> Any:
    """Return the path; instead of "-" a stream of what standard input gives."""
    from io import BytesIO
    return path if path != "-" else BytesIO(sys.stdin.buffer.read())


def open_output(path: str) -> "Tuple[Any, Any]":
    """Return what to write to, and where to report: never among the bytes."""
    if path != "-":
        return path, sys.stdout
    if sys.stdout.isatty():
        raise TypeError("bytes are not for a terminal: `| xxd` or `> FILE`")
    sys.stdout.flush()
    return sys.stdout.buffer, sys.stderr


def write_text(path: str, text: str, summary: str) -> None:
    """Write a page or a copy, but not over a tensor file; "-" is standard output."""
    if os.path.isfile(path) and detect(path):
        raise ValueError(f"{plain(path)}: it is a tensor file, which this would replace")
    target, report = open_output(path)
    nbytes = write_out(target, iter([text.encode()]))
    print(f"wrote {plain(path)}, {count_of(nbytes, 'byte')}, {summary}", file=report)


def write_json(value: Any) -> None:
    """Write a value as JSON, in one line; an iterator as a list, as its items come."""
    if not hasattr(value, "__next__"):
        print(to_json(value))
        return
    sign = "["
    for item in value:
        sys.stdout.write(sign + to_json(item))
        sign = ", "
    sys.stdout.write("[]\n" if sign == "[" else "]\n")


def table(rows: Any, kinds: Any = (), column: int = 0) -> None:
    """Print a head and rows of texts and numbers; a long text moves what is behind it.

    `kinds`: of the rows, whose colours this column gets.
    """
    texts = [["-" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
              for cell in row] for row in rows]
    widths = [min(24, max(map(len, cells))) for cells in zip(*texts)]
    right = [not isinstance(cell, str) for cell in (rows + rows)[1]]
    for i, row in enumerate(texts):
        cells = [cell.rjust(width) if number else cell.ljust(width)
                 for cell, width, number in zip(row, widths, right)]
        line = "  ".join(cells).rstrip()
        if kinds and kinds[i]:
            head, cell = "  ".join(cells[:column] + [""]), cells[column]
            line = f"{head}\033[{FIELD_KINDS[kinds[i]][1]}m{cell}\033[0m{line[len(head + cell):]}"
        print(line)


def rounded(number: int) -> str:
    """Return a large number of bytes as people say it: 514.8 MB, 1.0 GB."""
    for unit, size in ("TB", 10**12), ("GB", 10**9), ("MB", 10**6):
        if number >= size:
            return f" ({number / size:.1f} {unit})"
    return ""


def progress(parts: Any, nbytes: int, size: Any = len) -> Chunks:
    """Yield parts; tell a terminal, once a second, how much of so many bytes is done."""
    from time import time
    done, last, wipe = 0, time(), ""
    try:
        for part in parts:
            yield part
            done += size(part)
            if time() - last > 1 and sys.stderr.isatty():
                last, wipe = time(), "\r" + " " * 40 + "\r"
                text = f"{done >> 20} of {nbytes >> 20} MB, {done / max(done, nbytes, 1):.0%}"
                sys.stderr.write(wipe + text)
                sys.stderr.flush()
    finally:
        sys.stderr.write(wipe)


def each_file(args: Any) -> int:
    """Run a command for each file, also after a bad one; if wanted, write all results as JSON."""
    code = 0

    def results() -> Chunks:
        nonlocal code
        for path in args.files:
            try:
                facts = args.call(path, args)
                code = code or int(facts.get("valid") is False)
            except BrokenPipeError:
                raise
            except (OSError, ValueError) as error:
                code, facts = 1, {"file": path, "error": describe(error, path)}
                sys.stdout.flush()
                print("error: " + facts["error"], file=sys.stderr)
            yield facts
    if args.json:
        write_json(results())
    else:
        for _ in results():
            pass
    return code


ORDERS: Any = {  # of the rows of ls, by (name, tensor)
    "bytes": lambda pair: -pair[1].stored.nbytes,
    "name": lambda pair: pair[0],
    "offset": lambda pair: (pair[1].offset is None, pair[1].offset)}


def show_ls(path: str, args: Any) -> Facts:
    with load(open_input(path), **args.options) as file:
        items = [(name, file[name]) for name in select_names(file, args.only)]
        if args.sort:
            items.sort(key=ORDERS[args.sort])
        metadata, differ = merged(file, [name for name, _ in items])
        nbytes = file.nbytes if not isinstance(file, Joined) else sum(
            [item.stored.nbytes for _, item in items])  # other shards may be missing
        facts = {"file": path, "format": file.format, "version": file.attrs.get("version"),
                 "bytes": nbytes, "attrs": file.attrs, "metadata": metadata,
                 "differ": list(differ.values())}
        if args.tree is not None:
            facts["tree"] = tree_of(items, args.tree)
        else:
            facts["tensors"] = [
                {"name": name, "dtype": dtype_of(item), "shape": item.shape, "size": item.size,
                 "encoding": item.stored.encoding, "offset": item.offset,
                 "bytes": item.stored.nbytes, "attrs": dict(item.attrs)}
                for name, item in items[:args.limit]]
        if not args.json:
            print(end="\n" if hasattr(args, "printed") else "")  # between files
            args.printed = True
            print_file(facts, file.kind.TITLE)
            print()
            print_tensors(facts, items, args.limit)
        return facts


def tree_of(items: Items, depth: int) -> "List[Facts]":
    """Return sums of tensors whose names begin alike, up to so many dots; numbers are one: #.

    Depth 0 is the deepest that has at most MAX_TREE lines.
    """
    from collections import Counter
    found: Any = None
    for parts in range(depth or 1, (depth or 16) + 1):
        groups: Any = Map()
        for name, item in items:
            steps = ["#" if step.isdigit() else step for step in name.split(".", parts)[:parts]]
            groups.setdefault(".".join(steps), []).append(item)
        if found is not None and len(groups) > MAX_TREE:
            break
        found = groups
    return [{"name": name, "tensors": len(group), "elements": sum([item.size for item in group]),
             "bytes": sum([item.stored.nbytes for item in group]),
             "dtypes": Map(Counter(map(dtype_of, group)))} for name, group in found.items()]


def print_file(facts: Facts, title: str) -> None:
    """Print what is said of a file: its size, attributes and metadata."""
    attrs = facts["attrs"]
    own = [f"{plain(key)} {plain(str(value))}" for key, value in attrs.items()
           if key != "version" and isinstance(value, (str, int))]
    print(clip(", ".join([f"{plain(facts['file'])}: {title}", count_of(facts["bytes"], "byte")
                          + rounded(facts["bytes"])] + own), MAX_LINE))
    for what, pairs in ("metadata", facts["metadata"]), ("scalar", attrs.get("scalars") or {}):
        for key, value in list(pairs.items())[:20]:
            print(f"{what} {plain(key)} = {show(value)}")
        if len(pairs) > 20:
            print(f"{len(pairs) - 20} more, see --json")
    if facts["differ"]:
        print("the files do not agree on " + list_names(facts["differ"], 20))


def print_tensors(facts: Facts, items: Items, limit: "Optional[int]") -> None:
    """Print a row for each tensor, or for each part of names, and their sums."""
    nbytes = sum([item.stored.nbytes for _, item in items])
    size = sum([item.size for _, item in items])
    if "tree" in facts:
        rows = facts["tree"][:MAX_TREE if limit is None else limit]
        more = len(facts["tree"]) - len(rows)
        lines: Any = [["bytes", "elements", "tensors", "dtype", "name"]]
        for row in rows:
            counts = list(row["dtypes"].items())
            kinds = [f"{dtype} {count}" if counts[1:] else dtype for dtype, count in counts]
            lines.append([row["bytes"], row["elements"], row["tensors"], list_names(kinds, 3),
                          plain(row["name"])])
        lines.append([nbytes, size, len(items), "", "total"])
    else:
        rows, more = facts["tensors"], len(items) - len(facts["tensors"])
        lines = [["bytes", "offset", "dtype", "shape", "name"]]
        for row in rows:
            coding = "" if row["encoding"] == "raw" else " " + plain(row["encoding"])
            lines.append([row["bytes"], row["offset"], row["dtype"] + coding, show(row["shape"]),
                          plain(row["name"])])
        lines.append([nbytes, "", count_of(len(items), "tensor"), count_of(size, "element"), ""])
    lines[-1:-1] = [[""] * (len(lines[0]) - 1) + [f"{more} more"]] if more else []
    table(lines)
    for name in facts["attrs"].get("missing", ()):
        print(f"not whole: {plain(name)}")


def show_get(args: Any) -> int:
    with load(open_input(args.file), **args.options) as file:
        items, one = pick(file, args.name, args.file)
        if args.stats:
            return show_stats(items, one, args.json)
        if args.name is None or args.raw and not one:
            raise TypeError("get needs the NAME of a tensor (`ls` lists them)"
                            + ("" if args.raw else ", or --stats"))
        if args.json:
            facts = [{"name": name, "dtype": item.dtype, "shape": item.shape,
                      "values": item.tolist()} for name, item in items]
            write_json(facts[0] if one else iter(facts))
        elif args.raw:
            write_raw(items[0][1])
        else:
            for name, item in items:
                if not one:
                    print(f"{plain(name)}: {dtype_of(item)} {show(item.shape)}")
                print(preview(item))
                if item.size > MAX_SHOWN:
                    print(f"{count_of(item.size, 'element')}: "
                          "--json prints all, 'NAME[:9]' a part")
    return 0


def pick(file: File, name: "Optional[str]", path: str) -> "Tuple[Items, bool]":
    """Return the tensors that NAME means, NAME[0:2] or a pattern; and whether it is one by name."""
    from fnmatch import fnmatchcase
    if name is None or name in file:
        return list(file.items()) if name is None else [(name, file[name])], name is not None
    owner, _, keys = name.rpartition("[")
    if owner in file and keys.endswith("]"):
        try:
            return [(name, file[owner][index(keys[:-1])])], True
        except (ValueError, IndexError) as error:
            raise ValueError(f"{plain(path)}: {error}")
    found = [one for one in file if fnmatchcase(one, name)]
    if not found:
        whole = owner if keys.endswith("]") else name
        raise ValueError(f"{plain(path)}: {file.say_missing(whole)}")
    return [(one, file[one]) for one in found], False  # shards of others are not opened


def index(text: str) -> Any:
    """Return what stands in the brackets of t[0:2, ..., -1]."""
    try:
        keys: Any = [Ellipsis if part.strip() == "..." else int(part) if ":" not in part else slice(
            *[int(end) if end.strip() else None for end in part.split(":")])
            for part in text.split(",")]
    except (ValueError, TypeError):  # TypeError: more than three in a slice
        raise ValueError(f"[{plain(text)}] is not an index, as in Python: [0, 2:8:2, ..., -1]")
    return tuple(keys if Ellipsis in keys else keys + [Ellipsis])


def write_raw(item: Tensor) -> None:
    """Write the row-major little-endian bytes to standard output."""
    blocks = item.blocks() if item.stored.why is None else item.stored_blocks()
    parts = (part for block in blocks for part in pieces(memoryview(block), 16 << 20))
    write_all(open_output("-")[0], progress(parts, item.nbytes))


def show_stats(items: Items, one: bool, json: bool) -> int:
    """Print statistics of tensors, a row each; a damaged one does not stop the others."""
    check_work(items)
    rows: Any = []
    errors: "List[FormatError]" = []
    for name, item in items:
        row = {"name": name, "dtype": dtype_of(item), "shape": item.shape}
        try:
            row.update(stats_of(item))
        except FormatError as error:
            row["error"] = error.what
            errors += [] if isinstance(error, Unsupported) else [error]
        rows.append(row)
    if json:
        write_json(rows[0] if one else rows)
    else:
        keys = "min", "max", "mean", "nan", "infinite"
        table([list(keys) + ["name"]] + [
            [row.get(key) for key in keys] + [plain(row["name"]) + (
                f" ({plain(row['error'], 80)})" if "error" in row else "")] for row in rows])
    if errors:
        raise errors[0]
    return 0


def stats_of(item: Tensor) -> Facts:
    """Return min, max and mean of the finite elements (or None), and how many others there are."""
    count, total, nans, low, high = 0, 0.0, 0, INFINITY, -INFINITY
    for part in progress(item.parts(), item.nbytes * bool(item.check_readable())):
        values = unpack_values(str(item.dtype), part)
        if not -INFINITY < sum(values) < INFINITY:  # NaN or infinity in it, or an overflow
            nans += len([value for value in values if value != value])
            values = [value for value in values if -INFINITY < value < INFINITY]
        low, high = min([low] + list(values)), max([high] + list(values))
        count, total = count + len(values), total + sum(values)
    ends = (low, high, total / count) if count else (None, None, None)
    return dict(zip(("min", "max", "mean"), ends), nan=nans, infinite=item.size - count - nans)


def show_explain(args: Any) -> None:
    source = open_source(open_input(args.file), args.mmap)
    try:
        found = Explained(source, args.tensor, getattr(args, "from"))
        if found.error is None and args.tensor is not None and not found.rows:
            hint = nearest(args.tensor, found.names)
            raise ValueError(f"{plain(args.file)}: no tensor {quote(args.tensor)}{hint}")
        if args.html:
            write_text(args.html, *make_page(found))
        elif args.json:
            write_json({key: getattr(row[0], key) for key in Field.__slots__}
                       for row in found.rows)
        else:
            usual = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            print_fields(found, args.color == "always" or args.color == "auto" and usual)
    finally:
        source.close()
    if found.error is not None:
        raise found.error


def print_fields(found: Explained, coloured: bool) -> None:
    lines = [["offset", "bytes", "field", "value", "meaning"]]
    for field, name, value, meaning in found.rows:
        left = max(0, field.nbytes - field.lead)
        digits = hex_of(bytes(found.source.read(field.offset + field.lead, min(left, 8))))
        if field.lead:  # the key of the value
            digits = ".. " + digits
        if left > 8 or len(digits) > 23:
            digits = digits[:20] + " .."
        meaning = ("<- here: " if field.kind == "fault" else "") + meaning
        lines.append([f"0x{field.offset:x}", digits, "  " * field.depth + name, value, meaning])
    kinds = [""] + [row[0].kind for row in found.rows]
    table(lines, kinds if coloured else (), 2)
    if found.error is None:
        print(f"{count_of(found.source.nbytes, 'byte')}: " + ", ".join(
            [f"{nbytes} {kind}" for kind, nbytes in found.sums.items() if nbytes]))


def show_verify(path: str, args: Any) -> Facts:
    report = verify(open_input(path), deep=args.deep, watch=progress, **args.options)
    if not args.json and not args.quiet:
        print(shell_words(str(report)))
    elif not args.json and report.errors:
        print("\n".join(map(describe, report.errors)))
    return dict(report.facts(), file=path)


def show_convert(args: Any) -> None:
    cast = args.cast or None
    if cast and "=" in cast:
        cast = dict([text.partition("=")[::2] for text in cast.split(",")])
    target, report = open_output(args.target)
    with load(open_input(args.source), **args.options) as file:
        try:
            summary = convert(file, target, format=args.format, cast=cast, only=args.only,
                              exclude=args.exclude, rename=Map(args.rename), dense=args.dense,
                              drop=args.drop, metadata=args.metadata, meta=Map(args.meta),
                              watch=progress, **dict(args.set))
        except ValueError as error:
            raise ValueError(f"{describe(error)}\nnothing written")
    if args.json:
        report.write(summary.to_json() + "\n")
        return
    lines = [f"  {line}\n" for line in str(summary).split("\n")[:-1]]
    report.write("".join(lines) + f"wrote {plain(args.target)}, "
                 f"{count_of(summary.nbytes, 'byte')}\n")


def show_diff(args: Any) -> bool:
    try:
        found = diff(open_input(args.a), open_input(args.b), rtol=args.rtol, atol=args.atol,
                     watch=progress, **args.options)
    except (OSError, ValueError) as error:  # exit code 2: neither the same nor different
        raise TypeError(describe(error))
    print(found.to_json() if args.json else found)
    return bool(found)


def show_formats(args: Any) -> None:
    kinds: Any = FORMATS if args.name is None else [find_format(args.name)]
    if args.json:
        write_json({"format": kind.NAME, "title": kind.TITLE, "suffixes": kind.SUFFIXES,
                    "dtypes": list(kind.DTYPES), "holds": kind.HOLDS, "save": kind.OPTIONS}
                   for kind in kinds)
    elif args.name is None:
        table([["format", "suffix", "holds, besides tensors"]]
              + [[kind.NAME, kind.SUFFIXES[0], kind.HOLDS] for kind in kinds])
        print(f"\n`formats {kinds[0].NAME}` shows its layout, dtypes and options")
    else:
        for kind in kinds + [later for later in LATER if later.FAMILY == kinds[0].NAME]:
            print(f"{doc_of(kind)}\n\n  dtypes: {' '.join(kind.DTYPES)}")
            for pair in kind.OPTIONS.items():
                print("  --set %s: %s" % pair)
            print()


def show_demo(args: Any) -> None:
    """Write a file of each format, show the gist of what is said of it, read it back."""
    from tempfile import TemporaryDirectory
    wanted = {"layer.weight": tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"),
              "layer.bias": tensor([0.5, -0.5], "float32"), "steps": tensor(7, "int32")}
    with TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for kind in [kind for kind in FORMATS if kind.WRITES]:
            path = os.path.join(folder, "demo" + kind.SUFFIXES[0])
            items = [pair for pair in wanted.items() if not list(kind.misfits(pair[1]))]
            save(path, items, format=kind.NAME)
            print(f"== {kind.TITLE}: save({quote('demo' + kind.SUFFIXES[0])}, {{...}})")
            with load(path, verify=True) as file:
                if [name for name, item in file.items() if item != wanted[name]]:
                    raise FormatError(f"{plain(path)} does not come back as it was saved")
                found = Explained(file._source)
                found.rows = found.rows[:3]
                print_fields(found, False)
            print(str(verify(path)).split("\n")[-1].replace(path, os.path.basename(path)) + "\n")
    print("all formats written, read back, explained and verified; "
          + (f"the files are in {plain(folder)}" if args.folder else "`demo FOLDER` keeps them"))


def show_vendor(args: Any) -> None:
    from hashlib import sha256
    with open(__file__, "rb") as stream:
        source = stream.read()
    if os.path.exists(args.out) and os.path.samefile(args.out, __file__):
        raise ValueError(f"{plain(args.out)}: the copy would replace its own source")
    formats, parts = args.formats, args.parts
    for word in parts:
        if word not in COPY_PARTS:
            raise TypeError(f"--with takes some of {', '.join(COPY_PARTS)}, not {show(word)}")
    text, made_by = source.decode(), "tensorfmt vendor OUT.py"
    if formats or parts:
        wanted = [find_format(name) for name in formats] or list(FORMATS)
        wanted += [find_format(name) for kind in wanted for name in kind.NEEDS]
        text = make_copy(text, split_source(text), [kind for kind in FORMATS if kind in wanted],
                         ["load"] + parts if parts else list(COPY_PARTS))
    for option, words in ("--formats", formats), ("--with", parts):
        made_by += f" {option} {','.join(words)}" if words else ""
    made = (f"\n# A copy of tensorfmt {__version__}, of the file with this SHA-256:\n"
            f"# {sha256(source).hexdigest()}\n# made by: {made_by}\n")
    text = text.replace("\n", made, 1)
    write_text(args.out, text, count_of(text.count("\n"), "line"))


def comma_list(text: str) -> "List[str]":
    return [word for word in text.split(",") if word]


def key_value(text: str) -> "Tuple[str, Optional[str]]":
    """Return (A, B) of A=B; B is None where there is none."""
    from argparse import ArgumentTypeError
    key, sign, value = text.partition("=")
    if not sign:
        raise ArgumentTypeError(f"{quote(text)} has no `=`")
    return key, value or None


def setting(text: str) -> "Tuple[str, Any]":
    """Return (key, value) of KEY=VALUE: a Python literal, else text."""
    from ast import literal_eval
    key, value = key_value(text)
    try:
        return key, literal_eval(value or "")
    except (ValueError, SyntaxError):
        return key, value or ""


def natural(text: str) -> int:
    """Return a number from 0 on: 12, 0x1f40."""
    from argparse import ArgumentTypeError
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise ArgumentTypeError(f"{quote(text)} is not a number (a FILE goes in front of options)")
    return number


OPTIONS: Any = {  # what add_argument() takes, for each argument
    "file": {"metavar": "FILE", "help": "`-` is standard input"},
    "files": {"metavar": "FILE", "nargs": "+", "help": "`-` is standard input"},
    "name": {"metavar": "NAME", "nargs": "?"},
    "a": {"metavar": "A"},
    "b": {"metavar": "B", "help": "`-` is standard input"},
    "source": {"metavar": "FROM", "help": "`-` is standard input"},
    "target": {"metavar": "TO", "help": "its suffix is the format; `-` is standard output"},
    "out": {"metavar": "OUT.py"},
    "folder": {"nargs": "?", "help": "keeps the files"},
    "--raw": {"help": "row-major little-endian bytes to stdout"},
    "--json": {"help": "for programs"},
    "--stats": {"help": "min, max and mean, how many NaN and infinities; of all without NAME"},
    "--color": {"choices": ["auto", "always", "never"], "default": "auto"},
    "--only": {"metavar": "NAME", "action": "append", "help": "name or shell pattern"},
    "--exclude": {"metavar": "NAME", "action": "append", "help": "name or shell pattern"},
    "--sort": {"choices": sorted(ORDERS), "help": "order of the rows, the largest first"},
    "--limit": {"metavar": "N", "type": natural, "help": "that many rows at most"},
    "--tree": {"metavar": "DEPTH", "type": natural, "nargs": "?", "const": 0,
               "help": f"sums by parts of names, numbers as #, in {MAX_TREE} lines"},
    "--tensor": {"metavar": "NAME", "help": "only the rows of this tensor"},
    "--from": {"metavar": "OFFSET", "type": natural, "default": 0,
               "help": "only the rows from this byte on (0x1f40, 8000)"},
    "--html": {"metavar": "OUT", "help": "write a page to look at instead"},
    "--quiet": {"help": "only what is bad"},
    "--deep": {"help": "XXH3 of large files, too (slow)"},
    "--partial": {"help": "the tensors that are whole in a file that was cut short"},
    "--no-mmap": {"action": "store_false", "dest": "mmap",
                  "help": "read files, do not map them: of network disks, or that may shrink"},
    "--rtol": {"metavar": "X", "type": float, "default": 0.0,
               "help": "values are the same up to atol + rtol * |b|"},
    "--atol": {"metavar": "X", "type": float, "default": 0.0},
    "--set": {"metavar": "KEY=VALUE", "type": setting, "action": "append", "default": [],
              "help": "option of the format that is written, see `formats NAME`"},
    "--format": {"metavar": "NAME", "help": "format of TO, instead of its suffix"},
    "--cast": {"metavar": "DTYPE or OLD=NEW,...",
               "help": "for what the target cannot hold, or of each dtype"},
    "--rename": {"metavar": "OLD=NEW", "type": key_value, "action": "append", "default": [],
                 "help": "names, or patterns with one `*`: 'model.*=*'"},
    "--meta": {"metavar": "KEY=TEXT", "type": key_value, "action": "append", "default": [],
               "help": "metadata to set; KEY= removes"},
    "--metadata": {"choices": ["text"], "help": "numbers in metadata as text where only that fits"},
    "--dense": {"help": "write sparse tensors with their zeros"},
    "--drop": {"help": "leave out what has no place"},
    "--formats": {"metavar": "NAME,...", "type": comma_list, "default": [], "help": "only these"},
    "--with": {"metavar": "PART,...", "dest": "parts", "type": comma_list, "default": [],
               "help": "only these parts: " + " ".join(COPY_PARTS)}}
COMMANDS = (  # what runs it, what it does, its arguments
    (show_ls, "list the tensors of each file",
     "files --only --sort --limit --tree --partial --no-mmap --json"),
    (show_get, "print a tensor's values: NAME, 'NAME[0:2, ::3]' as in Python, or a pattern",
     "file name --stats --raw --partial --no-mmap --json"),
    (show_explain, "name every byte of a file; in front of bytes `..` is the key, behind: more",
     "file --tensor --from --color --html --no-mmap --json"),
    (show_verify, "check structure, bounds, sizes and checksums",
     "files --quiet --deep --no-mmap --json"),
    (show_convert, "write the tensors in the format named by TO's suffix",
     "source target --format --cast --only --exclude --rename --meta --metadata --dense --drop "
     "--partial --set --no-mmap --json"),
    (show_diff, "compare two files tensor by tensor, whatever their formats",
     "a b --rtol --atol --no-mmap --json"),
    (show_formats, "list the formats and what each can hold; of one, its layout", "name --json"),
    (show_demo, "write, read and explain one small file of each format", "folder"),
    (show_vendor, "write a copy of this file with only what is asked for",
     "out --formats --with"))


def make_parser() -> Any:
    from argparse import ArgumentParser

    class Parser(ArgumentParser):
        def error(self, message: str) -> Any:
            word = message.partition("invalid choice: '")[2].partition("'")[0]
            hint = nearest(word, [call.__name__[5:] for call, _, _ in COMMANDS])
            raise TypeError(f"{plain(message, MAX_LINE // 2)} (`{plain(self.prog)} -h`){hint}")
    parser = Parser(description="Read, write and explain tensor files.", epilog=(
        "exit codes: 0 good, 1 bad or different, 2 misuse. COMMAND -h lists its options."))
    parser.add_argument("--version", action="version", version="tensorfmt " + __version__)
    parser.set_defaults(call=lambda args: parser.print_help())
    commands = parser.add_subparsers(metavar="COMMAND")
    for call, does, arguments in COMMANDS:
        one = commands.add_parser(call.__name__[5:], help=does, description=does,
                                  allow_abbrev=False)
        one.set_defaults(call=call)
        for key in arguments.split():
            settings = dict(OPTIONS[key])
            if set(settings) == {"help"}:
                settings["action"] = "store_true"
            one.add_argument(key, **settings)
    return parser


def escaping(stream: Any) -> Any:
    """Return a stream of text that escapes letters which its encoding lacks."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    elif hasattr(stream, "buffer") and stream.errors != "backslashreplace":  # Python 3.6
        from io import TextIOWrapper

        class Escaping(TextIOWrapper):
            def close(self) -> None:
                self.flush()  # the buffer belongs to the other stream
        return Escaping(stream.buffer, stream.encoding, "backslashreplace", None, stream.isatty())
    return stream


def main(argv: "Optional[List[str]]" = None) -> int:
    """Run the command line; return the exit code: 0 good, 1 bad or different, 2 misuse."""
    sys.stdout, sys.stderr = escaping(sys.stdout), escaping(sys.stderr)
    try:
        args = make_parser().parse_args(argv)
        args.options = {key: getattr(args, key) for key in ("partial", "mmap") if key in args}
        code = each_file(args) if "files" in args else int(args.call(args) or 0)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head`; the flush at exit must not fail, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, TypeError, IndexError, MemoryError) as error:  # TypeError: misuse
        sys.stdout.flush()
        print("error: " + (describe(error) or "not enough memory"), file=sys.stderr)
        return 1 + isinstance(error, TypeError)


if __name__ == "__main__":
    sys.exit(main())
