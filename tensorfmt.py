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
# mypy: disable-error-code="var-annotated,no-any-return"
# pyright: reportPossiblyUnboundVariable=false
"""Read, write and explain five tensor file formats, and safetensors: one file, nothing to install.

.mag (magnetron), zTensor 0.1, primitiv 0.1, Burnpack and TensorBuffers, zero-copy, byte-exact.

    from tensorfmt import load, save, tensor
    save("model.bpk", {"w": [[1.0, 2.0], [3.0, 4.0]], "steps": tensor(7, "int64")})
    with load("model.bpk") as file:         # O(index): no tensor byte is touched
        w = file["w"]                       # .name .dtype .shape .strides .raw .data .tolist()
        print(w.dtype, w.shape, w[0, 1])    # float64 (2, 2) 2.0
        array = numpy.asarray(w)            # zero-copy; numpy is not needed for anything else

Contents (the banners of the rooms below; search for a number)

    [1] platform           what this Python offers; limits that belong to no format
    [2] errors, text       FormatError, Unsupported; what messages are made of
    [3] dtypes             element types, values <-> bytes, byte order, casts
    [4a] sources           where bytes come from: a path, a buffer, a stream
    [4b] readers           named fields, the trace of a parse, where an error lies
    [5a] checksums         CRC-32, CRC-32C, SHA-256, XXH3-64
    [5b] CBOR              RFC 8949
    [5c] MessagePack       what primitiv and burnrecord are made of
    [5d] FlatBuffers       tables, vectors and texts; a builder
    [5e] zstd              through whichever module is there
    [5f] JSON              RFC 8259, with the offset of every token
    [6a] Tensor, File      strided views, values, the mapping of names to tensors
    [6b] sparse            stored elements and where they are
    [6c] quantized         few bits for each value, times a scale
    [7] formats            what every format answers; the inventory of a file
    [7a] mag               two layouts, header + records + data
    [7a2] mag100           snapshots 100 and 200, read only
    [7a3] mag300           snapshot 300: header + JSON + data
    [7b] ztensor           data + CBOR index + its size
    [7b2] ztensor1         data + CBOR map of objects + its size
    [7b3] ztensor2         the same, deterministic, with digests
    [7c] primitiv          a run of MessagePack values, column-major
    [7d] burnpack          header + CBOR + data
    [7e] tensorbuffers     data + one FlatBuffer + its size
    [7f] safetensors       the bridge: JSON header + data
    [7f2] shards           model.safetensors.index.json
    [7g] burnrecord        one MessagePack map, read only
    [8] load and save      the formats in their order; what opens and writes files
    [9a] explain           the parser again, with a trace of every field
    [9b] verify            checksums, padding, canonical form
    [9c] convert           between formats; nothing silent
    [10a] command line     ls, get, explain, verify, convert, diff, formats, demo, vendor
    [10b] page             what `explain --html` writes
    [11] vendor            copies of this file with only what is asked for

`nbytes` counts bytes, `size` and `count` elements, `offset` bytes from the start of the file.
Shapes are tuples, outermost dimension first; `()` is a scalar. Row-major: the last index runs
fastest. Data are little-endian unless said otherwise.

The room of a format has its drawn layout, tables of the fields, one `read` (also behind `explain`)
and one `write`, and uses the rooms above. What a copy may lack registers itself (FEATURES,
ENCODINGS) or stands between marks like `# <save>` and `# </save>`, which [11] explains.

Sources: the specifications of the five formats, MessagePack and FlatBuffers; RFC 8949 (CBOR), RFC
3720 (CRC-32C); files of the real writers (magnetron 0.1.2-0.2.2, ztensor 0.1.0-0.1.4, primitiv
0.3.1 and 0.4.0, burn-store 0.19-0.21, tensorbuffers 7190fc4 and 2422de1).
"""
__version__ = "0.2.0"
__all__ = [
    "load", "save", "dumps", "tensor", "detect", "convert", "verify", "explain",
    "File", "Tensor", "FormatError", "Unsupported", "FORMATS",
    "cbor_loads", "cbor_dumps", "msgpack_loads", "msgpack_dumps", "flat_loads", "FlatBuilder",
    "crc32c",
]


# <tools>
def __dir__() -> "List[str]":  # what completion offers
    return __all__ + ["__version__"]
# </tools>


# -- [1] platform --------------------------------------------------------------------------------

import struct
import sys
from struct import pack, unpack_from

try:
    import os
except ImportError:  # a board without files
    globals()["os"] = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (Any, Dict, ItemsView, Iterable, Iterator, KeysView, List, Mapping, NoReturn,
                        Optional, Sequence, Tuple, Type, Union, ValuesView)

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

BOARD = sys.implementation.name == "micropython"  # True in copies of `vendor --board`
FAST = not BOARD  # with shortcuts for usual files and many values; False in small copies
REMOTE = not BOARD  # few requests to streams, words for URLs and pipes; False in small copies
ARRAYS = not BOARD  # torch, jax, dtypes as typed, tensors of other copies; False in small copies
NATIVE = "<" if sys.byteorder == "little" else ">"
escape = repr if BOARD else ascii  # names are data: escaped for people

if BOARD:  # its dict has no order
    import collections
    Map: "Type[Dict[Any, Any]]" = collections.OrderedDict

    class RLock:  # nor are there threads
        def __enter__(self, *error: Any) -> None:
            pass
        __exit__ = __enter__
else:
    from _thread import RLock  # type: ignore[assignment]
    from io import BytesIO
    from _operator import attrgetter
    Map = dict

FEATURES: Facts = {}  # what a copy may lack, by name: verify, sparse, quantized
LAYOUTS: Facts = {}  # classes of tensors of several parts, by the layout of their Entry
ENCODINGS: Facts = {}  # codecs of stored bytes, by name: zstd
LATER: "List[Format]" = []  # later generations of formats, each in a room of its own
LEFT_OUT: Any = ()  # formats left out: name, magics
MISSING: Any = object()  # a key that is absent

# Limits of no one format. An error names its limit; set it before load() to change it.
MAX_COPIES = 64  # bytes hashed or converted, in file sizes, when ranges are named many times
MAX_KEPT = 0 if BOARD else 1 << 26  # bytes that t[...] of a compressed tensor decodes only once
BLOCK = 1 << 10 if BOARD else 1 << 20  # bytes decoded or swapped at a time
PART = 1 << 10 if BOARD else 1 << 15  # bytes cast at a time, not to be changed: see LANES
WINDOW = 1 << 9 if BOARD else 1 << 12  # bytes of index read first; doubled when read on
NEAR = 1 << 16  # bytes of a stream that one request reads where another could skip them
MAX_PATH = 400  # characters of the path of a field
MAX_TEXT = 300  # characters of one text of a file in a message or a table
MAX_LINE = 2000  # characters of a line of a message, and of a repr
MAX_MESSAGE = 32000  # characters of a message, which has at most 100 lines of one kind
MAX_SLOW_HASH = 1 << 26  # bytes of XXH3 that verify computes without xxhash or deep=True
MAX_FAULTS = 1000  # that verify notes before it stops
MAX_SHOWN = 1000  # values that repr() of a tensor and `get` show whole
MAX_FIELDS = 1 << 16  # that explain shows one by one, and one more for every 16 bytes of the file


# -- [2] errors, text ----------------------------------------------------------------------------


class FormatError(ValueError):
    """The bytes break a rule of the format.

    `offset` is from the start of the file, `field` as in explain(), `check` as in verify().

    >>> print(verify(b"MAG!").errors[0])
    version needs 4 bytes, 0 left (cut short?) (at 0x4, version)
    """

    around: Any = ()  # names of the fields around `field`, the outermost first, then its own

    def __init__(self, what: str, offset: "Optional[int]" = None, field: "Optional[str]" = None,
                 tensor: "Optional[str]" = None, path: "Optional[str]" = None,
                 check: str = "index") -> None:
        super().__init__(what, offset, field, tensor, path, check)
        self.what, self.offset, self.field = what, offset, field
        self.tensor, self.path, self.check = tensor, path, check

    def __str__(self) -> str:
        path = "" if self.path is None else plain(self.path) + ": "
        name = "" if self.tensor is None else f"tensor {quote(self.tensor)}: "
        place = [] if self.offset is None else [f"at 0x{self.offset:x}"]
        place += [] if self.field is None else [self.field]
        end = f" ({', '.join(place)})" if place else ""
        return path + name + clip(self.what, 800) + end


class Unsupported(FormatError):
    """The bytes may be right; tensorfmt does not read what the message names.

    >>> issubclass(Unsupported, FormatError)
    True
    """


def feature(name: str) -> Any:
    """Return what is registered under this name; Unsupported in a copy without it."""
    if name not in FEATURES:
        what = f"this copy was made without {name}"
        if not BOARD and name != "verify":
            what += f"; `vendor --with {name}` makes one that has it"
        raise Unsupported(what)
    return FEATURES[name]


def count_of(number: int, noun: str) -> str:
    """Return "1 tensor" or "3 tensors"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clip(text: str, limit: int) -> str:
    """Return a text; of one that is longer than the limit, its beginning and its end."""
    if BOARD or len(text) <= limit:
        return text[:limit]
    return text[:limit - limit // 4 - 3] + "..." + text[len(text) - limit // 4:]


def quote(value: Any) -> str:
    """Return a text for people, quoted, escaped and cut; texts leave by it, plain() and show()."""
    text = clip(value, MAX_TEXT) if isinstance(value, str) else value
    return clip(escape(text), MAX_TEXT)


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text for a listing: unquoted if printable ASCII without blanks at its ends."""
    text = clip(text, limit)
    fine = text and text == text.strip() and not [c for c in text if not " " <= c <= "~"]
    return text if fine else quote(text)


def to_html(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a value as text for a page: printable ASCII and \xb7, without marks of HTML."""
    from html import escape as escape_html
    text = clip(str(value), limit)
    fine = not [c for c in text if not (" " <= c <= "~" or c == "\xb7")]
    return escape_html(text if fine else quote(text))


def join_lines(lines: "List[str]") -> str:
    """Return lines as one message: each cut to MAX_LINE, all of them to MAX_MESSAGE."""
    shown = [clip(line, MAX_LINE - 100) for line in lines[:101]]  # the first may be their number
    while sum([len(line) + 3 for line in shown]) > MAX_MESSAGE:
        shown.pop()
    if len(shown) < len(lines):
        shown.append(f"{len(lines) - len(shown)} more")
    return "\n  ".join(shown)


def show(value: Any, limit: int = 60, depth: int = 0) -> str:
    """Return a value for a message: escaped; lists cut short, four levels deep."""
    if isinstance(value, int):
        short = -(1 << 128) < value < 1 << 128  # str() of a huge one is slow, or an error
        return escape(value) if short else "an integer of more than 128 bits"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return quote(bytes(value)) if len(value) <= 16 else f"{len(value)} bytes"
    if isinstance(value, (list, tuple, dict)) and depth > 3:
        return "..."
    if isinstance(value, (list, tuple)):
        items = [show(item, limit, depth + 1) for item in value[:8 if len(value) > 20 else 20]]
        more = [f"... {len(value)} items"] if len(value) > 20 else []
        return f"[{', '.join(items + more)}]"
    if isinstance(value, dict):
        items = [f"{show(key, limit, depth + 1)}: {show(item, limit, depth + 1)}"
                 for _, (key, item) in zip(range(8), value.items())]
        more = ["..."] if len(value) > 8 else []
        text = "{%s}" % ", ".join(items + more)
    else:
        text = quote(value[:limit] if isinstance(value, str) else value)
    return text if len(text) <= limit or depth else text[:limit - 3] + "..."


def encode_text(text: str, errors: str = "strict") -> bytes:
    """Return text as UTF-8; plain ValueError for a lone surrogate."""
    try:
        if not BOARD or not [c for c in text if "\ud800" <= c <= "\udfff"]:
            return text.encode("utf-8", errors)  # MicroPython encodes surrogates, too
    except UnicodeError:
        pass
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


def join_path(path: str, key: Any) -> str:
    """Return the path of an item: `a.key`, `a[3]` or `a['any text']`."""
    if isinstance(key, str) and key.replace("_", "").isalpha() and escape(key) == repr(key):
        return clip_path(f"{path}.{key}" if path else key)
    return clip_path(f"{path}[{escape(key) if isinstance(key, str) else show(key)}]")


def join_index(field: str, *index: int) -> str:
    """Return `field`, or `field[3]` with an index."""
    return f"{field}[{index[0]}]" if index else field


def clip_path(path: str) -> str:
    """Return a path, a long one cut short: a name of 60 KB would be in that of every item."""
    if BOARD or len(path) <= MAX_PATH:
        return path
    import binascii  # the CRC keeps them apart
    return f"{path[:80]}...{binascii.crc32(path.encode()):08x}...{path[-20:]}"


# -- [3] dtypes ----------------------------------------------------------------------------------

_DTYPES = [row.split(":") for row in (  # name:bytes:struct code; bfloat16 has none
    "float64:8:d float32:4:f float16:2:e bfloat16:2: int64:8:q int32:4:i int16:2:h int8:1:b "
    "uint64:8:Q uint32:4:I uint16:2:H uint8:1:B bool:1:?").split()]
ITEMSIZE: "Dict[Any, int]" = Map([(dtype, int(nbytes)) for dtype, nbytes, _ in _DTYPES])
STRUCT_CODE: Facts = dict([(dtype, code) for dtype, _, code in _DTYPES if code])
WIDTH = dict([("", 0)] + [(code, ITEMSIZE[dtype]) for dtype, code in STRUCT_CODE.items()])
BITS_CODE = {1: "B", 2: "H", 4: "I", 8: "Q"}  # elements moved as bits: NaN payloads survive
INT_RANGE = dict([("int%d" % n, (-(1 << n - 1), (1 << n - 1) - 1)) for n in (64, 32, 16, 8)]
                 + [("uint%d" % n, (0, (1 << n) - 1)) for n in (64, 32, 16, 8)])
FLOAT_DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # significant bits
TORCH_TYPES = dict([(code, row.split()[0]) for row in (  # types whose bytes alone are read here
    "float8_e4m3fn F8_E4M3 f8_e4m3fn", "float8_e5m2 F8_E5M2 f8_e5m2", "complex64 C64",
    "float8_e4m3fnuz F8_E4M3FNUZ f8_e4m3fnuz", "float8_e5m2fnuz F8_E5M2FNUZ f8_e5m2fnuz",
    "float8_e8m0fnu F8_E8M0 f8_e8m0", "float4_e2m1fn_x2 F4 f4_e2m1", "complex128 complex128")
    for code in row.split()])
INFINITY = float("inf")
FLOAT32_LIMIT = 2.0 ** 128 - 2.0 ** 103  # from here on float32 rounds to infinity
FLOAT64_LIMIT = (1 << 1024) - (1 << 970)  # and float64
LANES = int.from_bytes(b"\x01\x00\x00\x00" * (PART // 4), "little")  # 1 in each 32 bits
HALF_SHIFT = bytes(range(0, 256, 32)) * 32  # of a byte of a float16: its low 3 bits on top
HALF_UPPER = bytes([byte >> 3 for byte in range(256)])  # the other 5 below
HALF_SMALL = (b"\xff" * 4 + bytes(124)) * 2  # of an upper byte: whether the exponent is 0
HALF_TOP = b"".join([bytes([sign | exponent >> 1]) * 4 for sign in (0, 128)  # that of a float32
                     for exponent in [0] + list(range(113, 143)) + [255]])


def count_elements(shape: "Iterable[int]") -> int:
    """Return the product of the dimensions; beyond 2**64 it is only some larger number."""
    size = 1
    for n in shape:
        if size <= 1 << 64 or n == 0:  # thousands of 2**64-1: the product would take minutes
            size *= n
    return size


def until_0(shape: Any) -> "List[int]":
    """Return the dimensions before the first 0: some readers refuse their product if too large."""
    return list(shape)[:(list(shape) + [0]).index(0)]


def row_major(shape: Shape, itemsize: int) -> Shape:
    """Return strides in bytes, without gaps; the last index runs fastest."""
    return tuple(reversed(column_major(tuple(reversed(shape)), itemsize)))


def column_major(shape: Shape, itemsize: int) -> Shape:
    """Return strides in bytes, without gaps; the first index runs fastest."""
    strides = []
    for n in shape:
        strides.append(itemsize)
        if itemsize < 1 << 64:  # beyond, some dimension is 0: no stride is used
            itemsize *= n or 1
    return tuple(strides)


def all_u64(numbers: Any) -> bool:
    """Return whether all values are integers from 0 to 2**64-1."""
    for n in numbers:  # noqa: SIM110  (a loop is twice as fast as all() of a generator)
        if type(n) is not int or not 0 <= n < 1 << 64:
            return False
    return True


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


def view_as(data: Any, code: str) -> Any:
    """Return native-order bytes as a flat typed sequence, zero-copy except on boards."""
    if not BOARD:
        return memoryview(data).cast(code)  # type: ignore[call-overload]
    from array import array
    return array("B" if code == "?" else code, bytes(data))  # never array(code, memoryview)


def unpack_values(dtype: str, data: Any, order: str = "<") -> Any:
    """Return the elements in `data`, of this byte order, as Python numbers."""
    if dtype == "bool":
        return [byte != 0 for byte in data]
    if dtype == "bfloat16":
        return unpack_values("float32", widen_bfloat16(data, order), order)
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
    if dtype == "bfloat16":
        return narrow_bfloat16(values)
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


def cast_block(data: Any, old: str, new: str) -> Any:
    """Return little-endian bytes of dtype `old` as those of dtype `new`."""
    if old == new:
        return data
    if (old, new) == ("bfloat16", "float32"):
        return widen_bfloat16(data, "<")
    if (old, new) == ("float16", "float32") and FAST:
        return widen_float16(data)
    if (old, new) == ("float32", "bfloat16") and FAST:
        return narrow_float32(data)
    return pack_values(new, unpack_values(old, data))


def cast_is_exact(old: str, new: str) -> bool:
    """Return whether every value of one dtype is a value of the other."""
    if "bool" in (old, new):
        return old == "bool"
    digits = FLOAT_DIGITS.get(new, 0)
    if old in FLOAT_DIGITS:
        return FLOAT_DIGITS[old] <= digits and (old, new) != ("bfloat16", "float16")
    least, most = INT_RANGE.get(new) or (-INFINITY, 2 ** digits)
    return least <= INT_RANGE[old][0] and INT_RANGE[old][1] <= most


def as_dtype(dtype: Any) -> str:
    """Return our name of a dtype, also of numpy.float32, torch.float32, "bf16" or "F32"."""
    if dtype is float or dtype is int:
        dtype = dtype.__name__ + "64"
    name: Any = dtype
    if ARRAYS and (not isinstance(dtype, str) or dtype not in ITEMSIZE):
        name = str(getattr(dtype, "__name__", getattr(dtype, "name", dtype))).split(".")[-1]
        name = name.lower().rstrip("_")
        word = name.rstrip("0123456789")
        if name != word + "8":  # "i8" has 64 bits in numpy, 8 in Rust
            full = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}
            name = full.get(word, word) + name[len(word):]
    if name not in ITEMSIZE:
        raise ValueError("no dtype %s; there are %s" % (show(dtype), ", ".join(ITEMSIZE)))
    return str(name)


def name_remedy(dtype: Any, dtypes: Any) -> str:
    """Return the end of a message that a format lacks a dtype: which of its own would do."""
    # <full>
    # <quantized>
    if dtype == "qfloat":
        return DEQUANTIZE
    # </quantized>
    exact = [new for new in ITEMSIZE if dtype in ITEMSIZE and cast_is_exact(dtype, new)]
    rounding = ["int32", "float32"] if dtype in FLOAT_DIGITS else ["float32", "int32"]
    for new in reversed(rounding + exact if exact else []):
        if new in dtypes:
            sure = "" if dtype in FLOAT_DIGITS or new in exact else " if the values fit"
            return (f'; tensor(x, "{new}"), .astype("{new}") or convert(cast="{new}"){sure}; '
                    "or another format")
    # </full>
    return ""


# -- [4a] sources --------------------------------------------------------------------------------
#
# A source has .nbytes, .path, read(offset, nbytes) for the index (bytes) and view(offset, nbytes)
# for tensors (a memoryview, no copy where .zero_copy). `of_file`: offsets are those of a file.


class Memory:
    """Any bytes-like object."""

    path: Any = None
    zero_copy = True

    def __init__(self, buffer: Any, of_file: bool = False) -> None:
        view = memoryview(buffer)
        if not BOARD:
            try:
                view = view.cast("B")
            except (TypeError, ValueError):  # it has gaps, no elements or a format like ">H"
                view = memoryview(view.tobytes())
            view = view.toreadonly() if hasattr(view, "toreadonly") else view
        self._view: Any = view
        self.nbytes, self.of_file = len(view), of_file

    def read(self, offset: int, nbytes: int) -> bytes:
        return bytes(self.view(offset, nbytes))

    def view(self, offset: int, nbytes: int) -> Any:
        view = self._view  # once: another thread may close() now
        if view is None:
            raise ValueError("the File is closed")
        return view[offset:offset + nbytes]

    def close(self) -> None:
        self._view = None  # never release(): views stay valid

    # <full>
    def __reduce__(self) -> Any:
        return Memory, (bytes(self._view), self.of_file)
    # </full>


class Stream:
    """A seekable binary file object; each read puts its position back, one thread at a time."""

    path: Any = None
    of_file = True
    zero_copy = False
    _file: Any = None  # None: not opened yet; False: closed

    def __init__(self, stream: Any) -> None:
        self._file, self._lock = stream, RLock()
        here = stream.tell()
        stream.seek(0, 2)
        self.nbytes: int = stream.tell()
        stream.seek(here)

    def read(self, offset: int, nbytes: int) -> bytes:
        with self._lock:
            file, parts = self._file, []
            if file is False:
                raise ValueError("the File is closed")
            here = file.tell()
            try:
                file.seek(offset)
                while nbytes:  # read() may give fewer than asked
                    part = file.read(nbytes)
                    if not part:
                        raise FormatError(f"the stream ended {nbytes} bytes early: it has shrunk",
                                          offset, path=self.path)
                    if not isinstance(part, (bytes, bytearray, memoryview)):
                        raise TypeError("the stream does not give bytes; open it in binary mode")
                    parts.append(bytes(part))
                    nbytes -= len(parts[-1])  # of a memoryview, len() may count elements
                    if nbytes < 0:
                        raise OSError("the stream gives more than asked for")
            finally:
                file.seek(here)
        return b"".join(parts)

    def view(self, offset: int, nbytes: int) -> Any:
        return memoryview(Stream.read(self, offset, nbytes))

    def close(self) -> None:
        self._file = False  # not ours to close


class Remote(Stream):
    """A stream where each read may be a request: of the index, few and large ones."""

    _kept: "Tuple[int, bytes]" = (0, b"")  # (offset, bytes there) of the index

    def __init__(self, stream: Any) -> None:
        name = getattr(stream, "name", getattr(stream, "path", None))  # path: of fsspec's
        self.path = name if isinstance(name, str) else None
        try:
            super().__init__(stream)
        except (OSError, ValueError) as error:
            raise ValueError(f"{plain(self.path or 'stream')}: no seeking ({error}); of a pipe: "
                             "load(stream.read()), ls -, verify -")

    def read(self, offset: int, nbytes: int) -> bytes:
        (first, data), end = self._kept, offset + nbytes
        stop = first + len(data)
        if offset < first or end > stop:
            size = NEAR if data and first <= offset <= stop + NEAR else WINDOW + 64
            if not first <= offset <= stop or len(data) > 16 * NEAR:  # until then: mag goes back
                first, data = max(0, min(offset, self.nbytes - size)), b""
            start = first + len(data)
            data += super().read(start, max(end - start, min(size, self.nbytes - start)))
            if len(data) <= 32 * NEAR:
                self._kept = first, data
        return data[offset - first:end - first]


class Path(Stream):
    """A file: the index by pread (a mapping would read megabytes), tensors mapped."""

    shared: Any = None  # of shared_path()
    _map: Any = None  # None: not made yet; False: it cannot be
    _finish: Any = int  # what __del__ calls

    def __init__(self, path: str, mapped: bool = True, stamp: Any = None) -> None:
        self.path, self._lock = path, RLock()
        self.shards: Any = []  # closed with it
        self.where = os.path.abspath(path) if hasattr(os, "path") else path  # chdir() may come
        self.wanted = mapped
        self._stamp: Any = stamp  # (nbytes, mtime) of a pickle: opened when used
        if stamp is None:
            self.open()

    def open(self) -> Any:
        """Return the file, opened now, or by the absolute path of a pickle."""
        with self._lock:
            if self._file is False:
                raise ValueError(f"{plain(self.path)}: the File is closed")
            if self._file is None:
                file = open(self.path, "rb")
                if REMOTE and not file.seekable():
                    with file:
                        Remote(file)  # says what to do
                self.nbytes = file.seek(0, 2)
                mtime = os.fstat(file.fileno()).st_mtime if hasattr(os, "fstat") else None
                if self._stamp not in (None, (self.nbytes, mtime)):
                    file.close()
                    raise ValueError(f"{plain(self.path)} has changed since it was pickled")
                self._stamp, self._finish = (self.nbytes, mtime), file.close
                self._file = file  # last: threads may use it now
            return self._file

    def read(self, offset: int, nbytes: int) -> bytes:
        mapping, file = self._map, self._file or self.open()
        if mapping:
            return bytes(mapping[offset:offset + nbytes])
        try:  # without the lock: threads may wait for a disk together
            data = os.pread(file.fileno(), nbytes, offset)
            if len(data) == nbytes and self._file is file:  # else they may be of another file
                return data
        except (AttributeError, OSError, ValueError):  # no pread, closed, or again below
            pass
        return super().read(offset, nbytes)

    def view(self, offset: int, nbytes: int) -> Any:
        mapping = self.mapping()
        return mapping[offset:offset + nbytes] if mapping else memoryview(self.read(offset, nbytes))

    @property
    def zero_copy(self) -> bool:  # type: ignore[override]
        return bool(self.mapping())

    def mapping(self) -> Any:
        """Return a view of the mapped file, or a false value."""
        if not BOARD and self._map is None and self.wanted:
            with self._lock:
                number = self.open().fileno()
                if self._map is None:
                    self._map = map_privately(number, self.nbytes, self.path)
        return self._map

    def close(self) -> None:
        """Close the file, drop the mapping. Never mmap.close(): PyPy's live views would die."""
        with self._lock:
            file, self._file, self._map = self._file, False, None
            if file:
                file.close()
        if not BOARD:
            for shard in self.shards:
                shard.close()

    # <full>
    def __reduce__(self) -> Any:
        return shared_path, (self.where, self.wanted, self._stamp)

    if not BOARD:  # no function of ours: Ctrl-C in it would be printed, or lost
        __del__: Any = property(attrgetter("_finish"))
    # </full>


class Shard(Path):
    """A file in the folder of another one, opened when its bytes are asked for."""

    def __init__(self, first: Any, name: str, nbytes: Any = None, magic: bytes = b"") -> None:
        path = os.path.join(os.path.dirname(first.path), name)
        super().__init__(path, first.wanted, (nbytes, magic))
        self.nbytes = nbytes
        first.shards.append(self)

    def open(self) -> Any:
        """Return the file; when it is opened, check the size and the magic that are declared."""
        if self._file is None:
            nbytes, magic = self._stamp
            if not os.path.isfile(self.path):
                raise Unsupported("the shard is missing", path=self.path)
            with open(self.path, "rb") as file:
                begins, found = file.read(len(magic)), file.seek(0, 2)
            if begins != magic or nbytes not in (None, found):
                raise FormatError(f"the shard has {found} bytes and begins with {quote(begins)}, "
                                  f"the index says {nbytes}", path=self.path)
            self._stamp = None
        return super().open()

    def __reduce__(self) -> Any:
        self.open()
        return super().__reduce__()


def map_privately(number: int, nbytes: int, path: Any) -> Any:
    """Return a view of a mapped file, or False: copy on write, since torch writes into any array.

    The system may not promise so much memory (ENOMEM): then without a promise, or read only.
    """
    private = 0x4002 if sys.platform == "linux" else 2  # MAP_PRIVATE, there | MAP_NORESERVE
    for way in ({"access": 3, "trackfd": False},  # ACCESS_COPY; no descriptor is kept (3.13)
                {"access": 3}, {"flags": private}, {"access": 1}):  # and ACCESS_READ
        try:
            from mmap import mmap
            return Memory(mmap(number, nbytes, **way))._view
        except ValueError:  # "mmap length is greater than file size"
            raise FormatError("the file has shrunk since it was opened", path=path)
        except (ImportError, OSError, TypeError):  # or it cannot map (ENODEV), or by flags
            pass
    return False


def shared_path(*args: Any) -> Any:
    """Return the source of a pickled tensor: one for all of a file, while one of them lives."""
    from weakref import WeakValueDictionary
    Path.shared = Path.shared or WeakValueDictionary()
    return Path.shared.get(args) or Path.shared.setdefault(args, Path(*args))


def path_of(target: Any) -> str:
    if hasattr(target, "__fspath__"):
        target = os.fsdecode(target)
    if not isinstance(target, str):
        raise TypeError(f"a path is a str or os.PathLike, not {type(target).__name__}")
    if REMOTE and "://" in target[2:] and target.split("://")[0].replace(":", "").isalnum():
        raise ValueError('%s is a URL; fsspec opens it: with fsspec.open(URL, block_size=1 << 16, '
                         'cache_type="none") as stream: load(stream)' % plain(target))
    return target


def open_source(source: Any, mapped: bool) -> Any:
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return Path(path_of(source), mapped)
    if REMOTE and hasattr(source, "encoding"):
        raise TypeError('a stream of text, not of bytes: load(path), or load(open(path, "rb"))')
    try:
        return Memory(source, True)
    except TypeError:
        if hasattr(source, "read") and hasattr(source, "seek") and hasattr(source, "tell"):
            if REMOTE:
                return Remote(source)
            return Stream(source)
    raise TypeError(f"a source is a path, bytes or a seekable stream, not {type(source).__name__}")


# -- [4b] readers --------------------------------------------------------------------------------
#
# A parser reads named fields and adds them to its trace: that is `explain`. load() has none; when
# a check fails, it parses again with a Trace that finds the offset of the field.


class Budget:
    """The bytes of memory or work that a file may still ask for; `limit` names the constant."""

    def __init__(self, limit: str, nbytes: int) -> None:
        self.limit, self.left = limit, nbytes

    def covers(self, nbytes: int) -> bool:
        """Return whether so many are left, and take them."""
        enough = nbytes <= self.left
        self.left -= nbytes if enough else 0
        return enough

    def spend(self, nbytes: int, what: str, reader: Any = None, *path: Any,
              offset: Any = None) -> None:
        """Take so many for `what`, or raise the error, or Unsupported of a reader's field."""
        if self.covers(nbytes):
            return
        text = f"{what}: {nbytes} bytes more, {self.left} are left; {self.limit}"
        if self.limit in globals():
            text += f" = {globals()[self.limit]}"
        if reader is not None:
            raise reader.error(text, *path, offset=offset, error=Unsupported)
        raise ValueError(text) if offset is None else Unsupported(text, offset)


class Record:
    """Fixed little-endian fields: rows (name, struct code, doc); "6q": six values, "8s": bytes."""

    def __init__(self, *rows: Any) -> None:
        self.rows = rows
        self.format = "<" + "".join([row[1] for row in rows])
        self.nbytes = struct.calcsize(self.format)

    def pack(self, *values: Any) -> bytes:
        return pack(self.format, *values)


class Trace:
    """Follows one parse to find where the innermost field of some names begins."""

    def __init__(self, names: Any = ()) -> None:
        self.names = names  # the outermost first
        self.offsets = dict.fromkeys(names)  # of the last field of each
        self.owners: Any = None  # of explain: prefix of a tensor's fields -> its name
        self.odd: Facts = Map()  # what remark() was given -> offset

    def add(self, offset: int, nbytes: int, name: str, value: Any, doc: str, depth: int = 0,
            kind: str = "structure", lead: int = 0, owner: Any = None, target: Any = None) -> None:
        if name in self.offsets:
            self.offsets[name] = offset

    def find(self, names: Any) -> "Optional[int]":
        """Return the offset of the last of these names that was traced."""
        found = [self.offsets[name] for name in names if self.offsets.get(name) is not None]
        return found[-1] if found and names == self.names else None

    def follow_tree(self, base: int, name: str, root: str, schema: Any, level: Any,
                    data: Any = None) -> Any:
        """Return a consumer of the tokens of a tree that begins at `base`; `data` only of CBOR."""
        return TokenPaths(self, base, name, root)


class Reader:
    """What all readers share: where they are, the trace, how to raise or note an error.

    A path is keys and indices: ("tensors", 3, "shape") is the field tensors[3].shape.
    """

    path: Any = None  # of the file
    trace: Any = None
    faults: Any = None  # of verify: fault() notes errors there
    missing: Any = None  # of load(partial=True): names of tensors that are not whole
    run = False  # tensors one behind the other, without an index
    deferred: Any = None  # the first error that counts only if there is no other
    where: Any = ()  # path of the record that is read now
    outermost = ""  # field that all others lie in, where the index is one tree
    tensor: Any = None  # name, for errors
    usual: Any = None  # a Usual of the index
    runs = 0  # Runs in the index
    _named: Any = ((), "")  # where, and that as text

    @property
    def prefix(self) -> str:
        """What the names of the record's fields begin with; for traces."""
        if self._named[0] != self.where:
            name = self.names(self.where)[-1]
            self._named = self.where, name + "." if self.where else ""
        return str(self._named[1])

    def names(self, path: Any) -> "List[str]":
        """Return the names of the fields along a path, the outermost first."""
        found = [""]
        for key in path:
            found.append(join_path(found[-1], key))
        return [self.outermost] + found[1:]

    def add(self, offset: int, nbytes: int, field: str, value: Any, doc: str) -> None:
        """Trace a field of the record."""
        if self.trace is not None:
            prefix, depth = self.prefix, len(self.where) // 2
            owner = prefix if self.where or self.tensor is not None else None
            self.trace.add(offset, nbytes, prefix + field, value, doc, depth, owner=owner)

    def remark(self, what: str, offset: "Optional[int]") -> None:
        """Note for verify what a real library makes of these bytes, other than we do."""
        if self.trace is not None:
            self.trace.odd.setdefault(what, offset)

    def error(self, what: str, *path: Any, offset: Any = None, tensor: Any = None,
              check: str = "index", error: "Type[FormatError]" = FormatError) -> FormatError:
        """Return an error of the field at this path of the record, or the innermost around it."""
        names = self.names(self.where + path)
        if offset is None and self.trace is not None:
            offset = self.trace.find(names)
        tensor = self.tensor if tensor is None else tensor
        made = error(what, offset, names[-1] or None, tensor, self.path, check)
        made.around = names
        return made

    def fault(self, what: str, *path: Any, **more: Any) -> None:
        """Raise an error, or note it for verify, which goes on behind it."""
        self.add_fault(self.error(what, *path, **more))

    def defer(self, what: str, *path: Any, **more: Any) -> None:
        """As fault(), where any other error comes first: the file may be right, but beyond us."""
        error = self.error(what, *path, **more)
        if self.faults is not None:
            self.add_fault(error)
        self.deferred = self.deferred or error

    def add_fault(self, error: FormatError) -> None:
        """Raise the error, or note it for verify."""
        if self.faults is None or len(self.faults) >= MAX_FAULTS:
            raise error
        self.faults.append(error)


class Cursor(Reader):
    """Reads a source front to back by named fields, through a window."""

    def __init__(self, source: Any, trace: Any = None, faults: Any = None) -> None:
        self.source, self.trace, self.faults = source, trace, faults
        self.path, self.end = source.path, source.nbytes
        self.seek(0)

    def seek(self, pos: int) -> None:
        self.pos = self.base = pos
        self.data, self.step = b"", WINDOW

    def peek(self, nbytes: int) -> int:
        """Return where .pos is in .data, which then has nbytes bytes from there, or all left."""
        at = self.pos - self.base
        if at + nbytes <= len(self.data) or len(self.data) == self.end - self.base:
            return at
        if at > len(self.data):
            self.step = WINDOW  # tensor bytes were skipped
        size = min(max(nbytes, self.step), self.end - self.pos)
        self.base, self.data = self.pos, self.source.read(self.pos, size)
        self.step = min(2 * self.step, WINDOW << 6)
        return 0

    def head(self, nbytes: int) -> bytes:
        """Return the next bytes, or all left, without a move."""
        at = self.peek(nbytes)
        return self.data[at:at + nbytes]

    def record(self, record: Record) -> Any:
        """Return the values of a fixed record and move behind it."""
        if self.trace is None and self.pos + record.nbytes <= self.end:
            return unpack_from(record.format, self.next_bytes(record.nbytes, ""))
        values: Any = ()
        for name, code, doc in record.rows:  # traced one by one; the error names one that is cut
            start, code = self.pos, "<" + code
            found = unpack_from(code, self.next_bytes(struct.calcsize(code), name))
            self.add(start, self.pos - start, name, list(found) if found[1:] else found[0], doc)
            values += found
        return values

    def next_bytes(self, nbytes: int, field: str, *index: int) -> bytes:
        """Return nbytes bytes, if the file has them, and move behind them."""
        if self.pos + nbytes > self.end:
            what = f"{join_index(field, *index)} needs {nbytes} bytes, {self.end - self.pos} left"
            what += " (cut short?)" if self.end == self.source.nbytes else ""
            raise self.error(what, field, *index, offset=self.pos)
        at = self.peek(nbytes)
        self.pos += nbytes
        return self.data[at:at + nbytes]

    def take(self, nbytes: int, field: str, doc: str, *index: int) -> bytes:
        data = self.next_bytes(nbytes, field, *index)
        if self.trace is not None:
            text, name = decode_text(data), join_index(field, *index)
            self.add(self.pos - nbytes, nbytes, name, data if text is None else text, doc)
        return data

    def limit(self, field: str, value: int, low: int, high: int, why: str,
              error: "Type[FormatError]" = FormatError) -> None:
        """Raise unless a field has a value from low to high."""
        if not low <= value <= high:
            what = f"{field} is {value}, expected {low} to {high}: {why}"
            raise self.error(what, field, error=error)

    def check_schema(self, schema: Any, found: Any, *path: Any) -> None:
        """Raise for the first thing that is wrong in a map."""
        for place, why in schema.wrongs(found, *path):
            raise self.error(why, *place)

    def open_entries(self, found: Any, schema: Any, open_entry: Any, *where: Any) -> Chunks:
        """Yield the Tensors of the entries of an index for admit(); note the faults of the others.

        open_entry(name, entry) returns the Tensor of an entry that agrees with the schema, or None.
        """
        for name, entry in found.items() if hasattr(found, "items") else enumerate(found):
            self.where = where + (name,)
            if FAST and type(entry) is Run:
                self.runs -= 1
                yield entry
                continue
            self.tensor = entry.get("name") if type(name) is int and type(entry) is Map else name
            if type(self.tensor) is not str:
                self.tensor = None
            try:
                self.check_schema(schema, entry)
                yield open_entry(name, entry)
            except FormatError as error:
                self.add_fault(error)
        if FAST and self.runs:
            raise self.error("entries in another place")

    def read_tree(self, read: Any, data: bytes, offset: int, name: str, root: str,
                  *about: Any) -> Any:
        """Return (value, offset behind it) of a tree; its fields lie in `name` or `root`.

        read(data, runs=, token=) returns (value, position behind it).
        """
        token, found, self.outermost = None, None, name or root
        if self.trace is not None:
            token = self.trace.follow_tree(offset, name, root, *about)
        elif FAST and self.usual is not None:
            found = self.usual.read(data, read)
        value, end, self.runs = found or read(data, token=token) + (0,)
        return value, offset + end

    def cbor(self, data: bytes, offset: int, name: str, schema: Any, deep: int,
             root: str = "item", **rules: Any) -> Any:
        """As cbor_read by its `rules`, for data at `offset` in the file, and trace the fields.

        `schema` explains them; fields of tensors are so `deep` or deeper. `name` begins their
        paths, `root` is the field of the whole if that is "".
        """
        return self.read_tree(lambda text, **way: cbor_read(text, offset, **dict(rules, **way)),
                              data, offset, name, root, schema, deep, data)

    def read_json(self, data: bytes, offset: int, root: str, schema: Any, deep: int,
                  **rules: Any) -> Any:
        """As cbor(), for JSON; its whole is the field `root`."""
        value, _ = self.read_tree(lambda text, **way: (
            json_read(text, offset, root, **dict(rules, **way)), len(text)),
            data, offset, "", root, schema, deep)
        return value, offset + len(data.rstrip(b" \t\r\n"))


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
# Multiples of the polynomial 0x11EDC6F41 with few terms: x**a = x**b + ... + 1 (a test proves
# them). Squaring doubles every exponent, so each holds at the scales 1, 2, 4, ... too.
_CRC32C_FOLDS = tuple(
    [tuple([power << k for power in (6777, 484, 100, 0)]) for k in range(6, -1, -1)]
    + [tuple([power << k for power in (437, 177, 176, 171, 58, 0)]) for k in range(3, -1, -1)])
_CRC32C_BLOCK = 256 if BOARD else (2 * 6777 - 484) * 8  # bytes: the first fold halves it


def crc32c(data: Any, crc: int = 0) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 B.4) of bytes, going on from `crc`.

    About 700 MB/s: a block is one integer, its low bits the high powers of x; shifts fold them
    onto lower powers, and the table takes the last bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc ^= 0xFFFFFFFF
    source = Memory(data)
    masks: "Dict[int, int]" = {}  # (1 << d) - 1 of each d, the same in every block
    for start in range(0, source.nbytes, _CRC32C_BLOCK):
        block = source.read(start, _CRC32C_BLOCK)
        if not BOARD:
            block, crc = _fold_crc32c(block, crc, masks)
        for byte in block:
            crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _fold_crc32c(block: bytes, crc: int, masks: "Dict[int, int]") -> "Tuple[bytes, int]":
    """Return a short block and the register from which its CRC is that of this one from `crc`."""
    bits = 8 * len(block)
    for powers in _CRC32C_FOLDS:
        a, b = powers[:2]
        while bits > a + b:
            d = min(bits - a, a - b) & ~7
            if d not in masks:
                masks[d] = (1 << d) - 1
            if block:  # the first time: the bytes are not one integer yet
                low = int.from_bytes(block[:d // 8], "little") ^ crc
                x, block = int.from_bytes(block[d // 8:], "little"), b""
            else:
                low, x = x & masks[d], x >> d
            bits -= d
            for power in powers[1:]:
                x ^= low << a - d - power
    return (block, crc) if block else (x.to_bytes(bits // 8, "little"), 0)


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

    @staticmethod
    def is_text(algorithm: str, text: str) -> bool:
        """Return whether such a digest is written as zTensor writes it."""
        size = {"crc32c": 17, "sha256": 71, "xxh3": 21}.get(algorithm)
        start = len(algorithm) + 1
        digits = "0x" + text[9:].upper() if algorithm == "crc32c" else text[start:].lower()
        return len(text) == size and text == f"{algorithm}:{digits}"


XXH3_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff"
    "7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46"
    "a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581"
    "a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428"
    "afd7fbcabb4b407e")
XXH3_START = (0xC2B2AE3D, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
              0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, 0x9E3779B1)
XXH3_KEYS = b"".join([XXH3_SECRET[8 * i:8 * i + 64] for i in range(16)])  # of 16 stripes
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


def xxh3_64(blocks: Any) -> int:
    """Return the XXH3-64 (seed 0, Cyan4973/xxHash) of bytes that come in blocks.

    40 MB/s, or 300 where numpy was imported; with the module xxhash as fast as memory.
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
            if whole:
                last = data[:whole]
                _xxh3_add(acc, last, True)
            rest = data[whole:]
    if n <= 240:
        return _xxh3_short(rest)
    _xxh3_add(acc, rest[:(len(rest) - 1) & -64], False)
    _xxh3_add(acc, (last + rest)[-64:], False, XXH3_SECRET[121:])  # the last stripe
    acc = [lane ^ key for lane, key in zip(acc, unpack_from("<8Q", XXH3_SECRET, 11))]
    return _xxh3_mix(n * XXH3_START[1] + sum([_fold128(acc[i], acc[i + 1]) for i in (0, 2, 4, 6)]))


def _xxh3_add(acc: Any, data: bytes, scramble: bool, keys: bytes = XXH3_KEYS) -> None:
    """Add stripes of 64 bytes to the eight lanes, which are scrambled after every 16 of them."""
    numpy = sys.modules.get("numpy")
    fast = scramble and hasattr(numpy, "frombuffer")
    sums = _xxh3_sums_numpy(numpy, data) if fast else _xxh3_sums(data, keys)
    for j, end in enumerate(unpack_from("<8Q", XXH3_SECRET, 128)):
        lane = acc[j]
        for number in sums[j]:
            lane = lane + number & MASK64
            if scramble:
                lane = (lane ^ lane >> 47 ^ end) * 0x9E3779B1 & MASK64
        acc[j] = lane


def _xxh3_sums(data: bytes, keys: bytes) -> Any:
    """Return for each lane the number that every 16 stripes add to it."""
    nbytes = len(data)
    keys = (keys * -(-nbytes >> 10))[:nbytes]
    mixed = int.from_bytes(data, "little") ^ int.from_bytes(keys, "little")
    halves = unpack_from(f"<{nbytes // 4}I", mixed.to_bytes(nbytes, "little"))
    words = unpack_from(f"<{nbytes // 8}Q", data)
    sums = []
    for j in range(8):
        lows, highs = every(halves, 2 * j, 16), every(halves, 2 * j + 1, 16)
        added = [a * b + c for a, b, c in zip(lows, highs, every(words, j ^ 1, 8))]
        sums.append([sum(added[i:i + 16]) for i in range(0, len(added), 16)])
    return sums


def _xxh3_sums_numpy(numpy: Any, data: bytes) -> Any:
    """As _xxh3_sums, 8 times as fast, for whole blocks of 1024 bytes."""
    words = numpy.frombuffer(data, "<u8").reshape(-1, 16, 8)
    mixed = words ^ numpy.frombuffer(XXH3_KEYS, "<u8").reshape(16, 8)
    sums = ((mixed & 0xFFFFFFFF) * (mixed >> 32)).sum(1)
    return (sums + words.sum(1)[:, [1, 0, 3, 2, 5, 4, 7, 6]]).T.tolist()


def every(items: Any, start: int, step: int) -> Any:
    """Return items[start::step]; boards have no slices with steps."""
    return [items[i] for i in range(start, len(items), step)] if BOARD else items[start::step]


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


class Simple:
    """A CBOR simple value without a meaning here: simple(99)."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simple) and other.number == self.number

    def __hash__(self) -> int:
        return hash(("simple", self.number))

    def __repr__(self) -> str:
        return f"simple({self.number})"


SIMPLES = [Simple(number) for number in range(0 if BOARD else 256)]  # many share one
CBOR_MAJORS = ("unsigned", "negative", "bytes", "text", "array", "map", "tag", "simple", "break")
CBOR_SIMPLE: Any = {20: False, 21: True, 22: None, 23: None}  # 23 is "undefined"
CBOR_NEGATIVE = tuple(range(-1, -25, -1))  # those in the head
FLOAT_BITS = {"e": (">H", 15, 10), "f": (">I", 31, 23)}  # code as bits, place of the sign, digits
LIST_ITEMS = 4096  # of a plain list in one field of explain
MAX_DEPTH = 128  # arrays, maps and tags around an item
MAX_HARD_KEYS = 1 << 13  # numbers as map keys in large maps: chosen ones make a dict slow
MAX_BOXES = 8 << 20  # bytes of memory for arrays and maps, besides 10 for each of the data


def cbor_read(data: bytes, base: int = 0, plain: bool = False, strict: int = 0,
              token: Any = None, level: int = 0, runs: Any = None) -> Any:
    """Return (value, position behind it) of the CBOR item that the data begin with (RFC 8949).

    Tags are dropped; 2 and 3 make an int of bytes, unless `plain`, where a Simple is an error.
    `strict`: only deterministic CBOR, so many containers deep. `level`: arrays, maps and tags
    around it. token(start, stop, depth, kind, value, key in its container) is called for each head
    or leaf. `runs`: texts that stand for Runs, see Usual in [7].
    """
    items, end = CborItems(data, plain, strict, token, runs or {}), len(data)
    box: Any = []
    left: Any = 1  # items to come in box, below 0: until a break
    stack, token, keyed, key = [], items.token, False, MISSING  # keyed: is box a map?
    start = stop = tags = tag = 0  # those of the next item; `level`: what is around those of box
    try:
        while True:
            while left == 0:  # close what is complete
                if not stack:
                    return box[0], stop
                box, left, keyed, level = stack.pop()
            start, naming = stop, keyed and key is MISSING  # naming: a map key comes
            head, made = data[start] if start < end else 255, None
            if 0x60 <= head < 0x78 and start + head - 0x60 < end:  # a short text, as most are
                major, stop = 3, start + head - 0x5F
                text = data[start + 1:stop]
                value = items.texts.get(text) or items.text(text, start)
            elif head < 24:
                major, value, stop = 0, head, start + 1
            else:
                major, value, stop = items.read(start, tag)
                if 3 < major < 7:
                    made = items.open(major, value, start, stop, naming, level + tags)
                elif major == 8 and (left > -1 or tags or key is not MISSING):
                    raise FormatError("a break outside an indefinite-length item", start)
            if token is not None:
                kind = "key" if naming and major not in (6, 8) else CBOR_MAJORS[major]
                token(start, stop, len(stack), kind, value, key if keyed else len(box))
            if major == 6:
                tags, tag = tags + 1, value
            elif major == 8:
                left = 0
            elif naming:
                if left < 0 or type(value) is not str or value in box:
                    items.check_key(box, value, left, start)
                key, tags, tag = value, 0, 0
            else:
                if FAST and runs is not None and type(value) is Run:
                    left = items.skip(value, left, start)
                if keyed:
                    box[key] = value if made is None else made
                else:
                    box.append(value if made is None else made)
                left, key = left - 1, MISSING
                if made is not None:
                    stack.append((box, left, keyed, level))
                    box, left, keyed, level = made, value, major == 5, level + tags + 1
                tags = tag = 0
    except FormatError as error:  # not kept: its traceback has all that was read
        wrong = type(error)(error.what, error.offset)
    path = token and token.path(len(stack), key if keyed else len(box))
    raise type(wrong)("CBOR: " + wrong.what, base + (wrong.offset or 0), path)


class CborItems:
    """Reads heads and leaves of CBOR one by one; counts the memory that all together take."""

    hard_keys = 0  # see check_key()

    def __init__(self, data: bytes, plain: bool, strict: int, token: Any, runs: Facts) -> None:
        self.data, self.end, self.plain = data, len(data), plain
        self.token: Any = token
        # <later>
        if strict:
            self.token = StrictCbor(data, strict, token)
        # </later>
        self.texts: Any = {}  # short texts repeat: field names, dtypes
        if FAST:
            self.runs = runs
            self.hidden = sum([len(run.tensors) - 1 for run in runs.values()])  # items of Runs
        self.budget = Budget("MAX_BOXES", MAX_BOXES + 10 * len(data))

    def read(self, start: int, tag: Any) -> Any:
        """Return (major type, or 8 for a break; value or argument; position behind it)."""
        if start >= self.end:
            raise FormatError("the data end inside an item", start)
        head = self.data[start]
        if head == 0xFF:
            return 8, None, start + 1
        major, size, pos = head >> 5, head & 31, start + 1
        if size > 23:
            size, pos = cbor_argument(self.data, pos, self.end, head)
        if major in (0, 4, 5, 6):
            return major, size, pos
        value, pos = self.leaf(start, pos, size)
        if tag in (2, 3) and major == 2 and not self.plain:
            value = int.from_bytes(value, "big")
            value = -1 - value if tag == 3 else value
        return major, value, pos

    def leaf(self, start: int, pos: int, size: int) -> Any:
        """Return (value, position behind it) of a leaf: head data[start:pos], argument `size`."""
        data, end = self.data, self.end
        major, code = data[start] >> 5, data[start] & 31
        if major == 1:
            return CBOR_NEGATIVE[size] if size < 24 else -1 - size, pos
        if major == 7:
            if code > 24:  # half, single or double precision
                return unpack_float("efd"[code - 25], data, start + 1), pos
            if code == 24 and size < 32:
                raise FormatError(f"simple value {size} in two bytes", start)
            if size in CBOR_SIMPLE:
                return CBOR_SIMPLE[size], pos
            # <burnpack later tools>
            if not self.plain:
                return Simple(size) if BOARD else SIMPLES[size], pos
            # </burnpack later tools>
            raise FormatError(f"simple value {size}", start)
        if size < 0:
            return self.chunks(major, pos)
        if pos + size > end:
            raise FormatError(f"a string of {size} bytes, {end - pos} left", start)
        value = data[pos:pos + size] if major == 2 else decode_text(data[pos:pos + size])
        if value is None:
            raise FormatError("text is not UTF-8", start)
        return value, pos + size

    def chunks(self, major: int, pos: int) -> Any:
        """Return (value, position behind it) of a string in chunks, until a break."""
        data, end, whole = self.data, self.end, bytearray()
        while pos < end:
            start, head = pos, data[pos]
            if head == 0xFF:
                return bytes(whole) if major == 2 else whole.decode(), pos + 1
            if head >> 5 != major or head & 31 > 27:
                raise FormatError("a chunk of another type in a chunked string", start)
            size, pos = cbor_argument(data, pos + 1, end, head)
            part, pos = self.leaf(start, pos, size)
            whole += data[pos - size:pos]
            if self.token is not None:
                self.token(start, pos, None, "chunk", part, None)
        raise FormatError("the data end inside a chunked string", pos)

    def text(self, data: bytes, start: int) -> Any:
        """Return a short text, or the Run that it stands for."""
        try:
            text = data.decode()
        except UnicodeError:
            raise FormatError("text is not UTF-8", start)
        if FAST and text in self.runs:
            return self.runs.pop(text)
        if len(self.texts) < 1 << 12:
            self.texts[data] = text
        elif not BOARD and len(data) > 1:
            self.budget.spend(80, "memory for texts", offset=start)
        return text

    def open(self, major: int, size: int, start: int, stop: int, naming: bool, level: int) -> Any:
        """Return a new array or map of `size` items, or None for a tag; count what it takes."""
        if naming and major < 6:
            wrong = Unsupported if self.plain else FormatError
            raise wrong("a map key is an array or a map", start)
        if level >= MAX_DEPTH:
            raise FormatError(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}", start)
        if major == 6:
            return None
        count, room = size - (self.hidden if FAST else 0), self.end - stop
        if count > room >> major - 4:
            raise FormatError(f"{CBOR_MAJORS[major]} of {size} items, {room} bytes left", start)
        if not BOARD:
            cost = 72 if not size else 104 if major == 4 else max(240, 64 * count - 80)
            self.budget.spend(cost, "memory for arrays and maps", offset=start)
        return [] if major == 4 else Map()

    def check_key(self, box: Any, key: Any, left: int, start: int) -> None:
        """As the function check_key(); count what the key takes in a map of unknown length."""
        if not BOARD and left < 0 and len(box) > 4:  # its map has no count
            self.budget.spend(64, "memory for arrays and maps", offset=start)
        check_key(self, box, key, start)

    @staticmethod
    def skip(run: Any, left: int, start: int) -> int:
        """Return `left` without the items of a Run, but for one."""
        rest: int = left - len(run.tensors) + 1
        if rest < 1 <= left:
            raise FormatError("more items than the head says", start)
        return rest


def check_key(reader: Any, box: Any, key: Any, start: "Optional[int]" = None) -> None:
    """Raise for a key that is in the map already, or is one of too many `reader.hard_keys`.

    Numbers can be chosen so that all meet in one chain of places of a dict: a walk for each.
    Those that count up have places of their own; those over 64 bits can have one hash.
    """
    if not BOARD and type(key) is not str and len(box) > 64:
        if type(key) is not int or not 0 <= key <= len(box) + 1:
            short = type(key) is not int or -(1 << 64) <= key < 1 << 64
            reader.hard_keys += 1 if short else 256
        if reader.hard_keys > MAX_HARD_KEYS:
            what = f"more numbers as keys of large maps than MAX_HARD_KEYS = {MAX_HARD_KEYS}"
            raise Unsupported(what, start)
    if key in box or (key != key and [k for k in box if k != k]):
        raise FormatError(f"key {show(key)} twice", start)


def unpack_float(code: str, data: Any, pos: int) -> float:
    """Return a big-endian float; NaN keeps sign and payload, which struct may change or drop."""
    value: float = unpack_from(">" + code, data, pos)[0]
    if not BOARD and value != value and code != "d":
        bits_code, sign, digits = FLOAT_BITS[code]
        bits, = unpack_from(bits_code, data, pos)
        bits = bits >> sign << 63 | 0x7FF << 52 | bits << 52 - digits  # exponent: all ones
        value, = unpack_from(">d", pack(">Q", bits))
    return value


def cbor_argument(data: bytes, pos: int, end: int, head: int) -> "Tuple[int, int]":
    """Return (argument, position behind it) of a head; -1: indefinite length."""
    code = head & 31
    if code < 24 or (code == 31 and head >> 5 not in (0, 1, 6)):
        return (code if code < 24 else -1), pos
    if code > 27:
        raise FormatError(f"head {head:02x}: this type has no indefinite length" if code == 31
                          else f"reserved head {head:02x}", pos - 1)
    stop = pos + (1 << code - 24)
    if stop > end:
        raise FormatError("the data end inside a head", pos - 1)
    return int.from_bytes(data[pos:stop], "big"), stop


def watch_cbor(data: bytes, see: Any, reader: Any, **rules: Any) -> Any:
    """Return (text, position) of the first item or map key of CBOR of which see() returns a text.

    see(kind, value, path of keys, first byte, tags in front, containers and tags around).
    """
    found, path, levels, tags = Map(), [], [0], 0
    if reader.faults is None:  # load or explain: nobody asks
        return []

    def token(start: int, stop: int, depth: int, kind: str, value: Any, key: Any) -> None:
        nonlocal tags
        if kind != "chunk":
            path[depth:], levels[depth + 1:] = [key], [levels[depth] + tags + 1]
            found.setdefault(see(kind, value, path, data[start], tags, levels[depth] + tags), start)
            tags = tags + 1 if kind == "tag" else 0
    cbor_read(data, token=token, **rules)
    return [pair for pair in found.items() if pair[0]]


class StrictCbor:
    """Passes tokens of deterministic CBOR (RFC 8949 4.2.1) without tags, `most` levels deep."""

    def __init__(self, data: bytes, most: int, token: Any) -> None:
        self.data, self.most, self.token = data, most, token
        self.keys: "Dict[int, bytes]" = {0: b""}  # by depth: the last key of each open map

    def path(self, depth: int, key: Any) -> Any:
        return self.token and self.token.path(depth, key)

    def __call__(self, start: int, stop: int, depth: int, kind: str, value: Any, key: Any) -> None:
        data, head = self.data[start:stop], self.data[start]
        best, code = data, head & 31
        if head > 0xF8:
            best = cbor_float(value) if value == value else b"\xf9\x7e\x00"
        elif code > 23:
            size = 1 << (code & 3)
            number = int.from_bytes(self.data[start + 1:start + 1 + size], "big")
            best = data if number >> 4 * size and number > 23 and code < 28 else b""
        if (best != data or kind in ("chunk", "tag") or depth > self.most or head == 0xF7
                or isinstance(value, Simple) or (kind == "key" and data <= self.keys[depth])):
            what = f"not deterministic (no tags; {self.most} levels; shortest heads; sorted keys)"
            raise FormatError(what, start - (kind == "chunk"))
        if kind == "key":
            self.keys[depth] = data
        elif kind == "map":
            self.keys[depth + 1] = b""
        if self.token is not None:
            self.token(start, stop, depth, kind, value, key)


class TokenPaths:
    """Adds the items that tokens of cbor_read make to a Trace: a key and its value are one."""

    def __init__(self, trace: Trace, base: int, name: str, root: str) -> None:
        self.trace, self.base, self.root = trace, base, root
        self.paths = [name]  # of what is open
        self.starts: Any = []  # of the keys, tags and chunks in front of the next value

    def join(self, depth: int, key: Any) -> str:
        path = self.paths[depth]
        return path if depth == 0 or key is MISSING else join_path(path, key)

    def path(self, depth: int, key: Any) -> str:
        """Return the path of a wrong item."""
        return self.join(depth, key) or self.root

    def __call__(self, start: int, stop: int, depth: int, kind: str, value: Any, key: Any) -> None:
        self.starts.append(start)
        if kind not in ("key", "tag", "chunk"):
            begin, self.starts = min(self.starts), []
            self.item(begin, start, stop, depth, kind, value, key)

    def item(self, begin: int, start: int, stop: int, depth: int, kind: str, value: Any,
             key: Any) -> None:
        opens = kind in ("array", "map")
        if kind != "break" and (opens or (self.paths[depth] or self.root) in self.trace.offsets):
            path = self.join(depth, key)  # that of any other item is not looked for
            self.trace.add(self.base + begin, stop - begin, path or self.root, value, "")
        if opens:
            self.paths[depth + 1:] = [path]


class CborFields(TokenPaths):
    """Makes fields of the tokens of cbor_read: a key and its value are one, as is a plain list."""

    def __init__(self, trace: Trace, base: int, name: str, root: str, schema: Any,
                 level: Any) -> None:
        TokenPaths.__init__(self, trace, base, name, root)
        self.level, self.boxes = level, [(schema.doc, schema)]  # of what is open; no Schema: None
        self.rows: Any = []  # an open plain list: itself, its items from the .first on
        self.first = 0  # (plain: no item is a container or has a meaning of its own)

    def path(self, depth: int, key: Any) -> str:
        """Return the path of a wrong item, after the fields before it."""
        self.flush(self.rows[-1][1] if self.rows[1:] else 0)
        return self.join(depth, key) or self.root

    def item(self, begin: int, start: int, stop: int, depth: int, kind: str, value: Any,
             key: Any) -> None:
        path, (doc, schema) = self.paths[depth], self.boxes[depth]
        opens = kind in ("array", "map")
        if self.rows and not opens:  # the path of an item is made if it is shown
            if kind != "break":
                self.rows.append((begin, stop, depth, None, value, doc, start - begin))
            if kind == "break" or self.first + len(self.rows) - 1 == self.rows[0][4]:
                self.flush(stop)
            elif len(self.rows) > LIST_ITEMS:
                head = self.rows[0]
                self.flush(stop)
                self.rows, self.first = [(stop, stop) + head[2:6] + (0,)], self.first + LIST_ITEMS
            return
        self.flush()
        if kind == "break":
            self.rows = [(start, stop, depth - 1, path, None, "break: the end of it", 0)]
            self.flush()
            return
        path = self.join(depth, key)
        if depth and schema is not None:  # else an item has the meaning of its container
            doc, schema = schema.about(key)
        if opens:
            self.paths[depth + 1:], self.boxes[depth + 1:] = [path], [(doc, schema)]
            value = {-1: None, 0: [] if kind == "array" else {}}.get(value, value)
        self.rows, self.first = [(begin, stop, depth, path, value, doc, start - begin)], 0
        if kind != "array" or value == [] or schema is not None:
            self.flush()

    def flush(self, stop: int = 0) -> None:
        """Add the open list as one field that ends at `stop`, or its head and its items."""
        rows, self.rows = self.rows, []
        if stop:
            begin, _, depth, path, _, doc, lead = rows[0]
            path = join_path(path, self.first) if self.first else path
            rows = [(begin, stop, depth, path, [row[4] for row in rows[1:]], doc, lead)]
        for i, (begin, end, depth, path, value, doc, lead) in enumerate(rows, self.first - 1):
            path = join_path(rows[0][3], i) if path is None else path
            if begin < end:  # else the head was shown
                self.trace.add(self.base + begin, end - begin, path or self.root, value, doc, depth,
                               "structure", lead, self.owner(depth, path))

    def owner(self, depth: int, path: str) -> "Optional[str]":
        """Return the prefix of the tensor's entry around a field at this depth."""
        if self.level is None:  # tensors are at any depth
            return f"{self.paths[depth]}."
        if depth > self.level:
            path = self.paths[self.level + 1]
        return path + "." if depth >= self.level else None


def cbor_loads(data: Any) -> Any:
    """Return the value of one CBOR item; bytes behind it are a FormatError.

    Tags are dropped (2 and 3 make big integers); undefined is None. A map key twice is an error.
    NaN keeps its sign and payload where a float of this Python can hold them (CPython, PyPy).

    >>> cbor_loads(bytes.fromhex("a26161016162820203"))
    {'a': 1, 'b': [2, 3]}
    """
    data = bytes(memoryview(data))
    value, end = cbor_read(data)
    if end != len(data):
        raise FormatError(f"CBOR: {len(data) - end} bytes behind the item", end)
    return value


def cbor_head(major: int, count: int) -> bytes:
    """Return the shortest head: 17 -> 17, 18 18, 19 0100 ..."""
    if count < 24:
        return pack(">B", major << 5 | count)
    if count < 1 << 8:
        return pack(">BB", major << 5 | 24, count)
    if count < 1 << 16:
        return pack(">BH", major << 5 | 25, count)
    if count < 1 << 32:
        return pack(">BI", major << 5 | 26, count)
    if count < 1 << 64:
        return pack(">BQ", major << 5 | 27, count)
    raise ValueError(f"{show(count)} does not fit 64 bits")


def pack_float(code: str, value: float) -> bytes:
    """Return a number as a big-endian float; NaN keeps its bits as far as there is room."""
    if BOARD or value == value:
        return pack(">" + code, to_inf(value, 65520.0 if code == "e" else FLOAT32_LIMIT))
    bits_code, sign, digits = FLOAT_BITS[code]
    bits, = unpack_from(">Q", pack(">d", value))
    bits = bits >> 63 << sign | bits >> 52 - digits & (1 << sign) - 1
    quiet = 0 if bits & (1 << digits) - 1 else 1 << digits - 1  # without a payload: infinity
    return pack(bits_code, bits | quiet)


def cbor_float(value: float) -> bytes:
    """Return a float in the shortest of the three precisions that holds its bits."""
    exact: bytes = pack(">d", value)
    for head, code in ((b"\xf9", "e"), (b"\xfa", "f")):
        data = pack_float(code, value)
        if pack(">d", unpack_float(code, data, 0)) == exact:
            return head + data
    return b"\xfb" + exact


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
        data: bytes = value.to_bytes((len("%x" % value) + 1) // 2, "big")  # a bignum: tag 2 or 3
        return cbor_head(6, 2 + major) + cbor_head(2, len(data)) + data
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        data = encode_text(value) if isinstance(value, str) else bytes(value)
        return cbor_head(3 if isinstance(value, str) else 2, len(data)) + data
    if isinstance(value, float):
        return cbor_float(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}")
    # <burnpack later tools>
    if isinstance(value, Simple):
        return cbor_head(7, value.number)
    # </burnpack later tools>

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
    if [key for key in value if isinstance(key, (list, tuple, dict))]:
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
MARKS = "\ud800\ud801\ud802"  # in no text: they stand for escaped letters
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
    if not BOARD and value != value:
        value = unpack_float(code[1], data, pos + 1)
    return kind, value, pos + 1 + width


def msgpack_text(data: bytes) -> str:
    """Return str bytes as text; other bytes than UTF-8 survive as surrogates."""
    try:
        return data.decode("utf-8", TEXT_ERRORS)
    except UnicodeError:  # on a board
        raise Unsupported("a name that is not UTF-8 needs the surrogateescape handler")


class MsgpackReader(Cursor):
    """Reads MessagePack values of known kinds from a source, each as a named field."""

    run = True
    last = 0  # number of the last parameter
    memory: Any = None  # a Budget
    beyond: Any = None  # path of the value that raised an error, if the file ends in it

    def next_head(self) -> Any:
        """Return (kind, value or length) of the next head, and move behind it."""
        at = self.pos - self.base
        if at + 9 > len(self.data):
            at = self.peek(9)
        kind, value, stop = msgpack_head(self.data, at, len(self.data))
        self.pos += stop - at
        return kind, value

    def check_room(self, kind: str, count: int) -> None:
        """Raise FormatError if the file has too few bytes for what such a head begins."""
        rest = self.end - self.pos
        if (2 * count if kind == "map" else count + (kind == "ext")) > rest:
            raise FormatError(f"{kind} of {count}, {count_of(rest, 'byte')} left", check="bounds")

    def value(self, kind: str, field: str, doc: str, *index: int) -> Any:
        """Return a value of this kind: a number, the bytes of a str, or else the length."""
        start, name = self.pos, join_index(field, *index)
        try:
            found, value = self.next_head()
            if found != kind and (kind, found) != ("float", "int"):
                raise FormatError(f"it has the type {found}, not {kind}")
            if kind != "str":  # that is added with its bytes
                self.add(start, self.pos - start, name, value, doc)
            if kind in ("str", "array", "map"):
                self.check_room(kind, value)
        except FormatError as error:
            self.beyond = self.where + (field,) if error.check == "bounds" else None
            raise self.error(f"{name}: {error.what}", field, *index, offset=start)
        wanted = {"int": 0xCE, "float": 0xCA}.get(kind)
        if self.trace is not None and wanted and self.source.read(start, 1)[0] != wanted:
            self.remark("the real library refuses it: a number that is not stored as ce + uint32, "
                        "ca + float32", start)
        if kind == "str":
            value = self.next_bytes(value, "")
            if self.trace is not None:
                self.add(start, self.pos - start, name, msgpack_text(value), doc)
        return value

    def number(self, field: str, doc: str, *index: int) -> int:
        """Return a uint32, in any stored form."""
        start = self.pos
        value: int = self.value("int", field, doc, *index)
        if value < 0 or value >> 32:
            what = f"{join_index(field, *index)} is {value}, expected 0 to {(1 << 32) - 1}"
            raise self.error(what, field, *index, offset=start)
        return value


class MsgpackTree(MsgpackReader):
    """Reads a MessagePack value of any kind; msgpack_loads() says what the kinds become."""

    TEXT_KEYS = False
    token: Any = None  # as in cbor_read
    hard_keys = 0  # see check_key()

    def tree(self, limit: str, most: int) -> Any:
        """Return the next value, of at most `most` containers in each other."""
        box: Any = []
        root, stack = box, []  # stack: the containers around; boards cannot recurse so deep
        left, keyed, key = 1, False, MISSING
        try:
            while left or stack:
                if left == 0:
                    box, left, keyed = stack.pop()
                    continue
                start, naming = self.pos, keyed and key is MISSING
                kind, count = self.next_head()
                head, value, opens = self.pos, count, False
                if kind in ("str", "bin", "ext", "array", "map"):
                    if 2 * count >= self.end - head:
                        self.check_room(kind, count)
                    value = self.body(kind, count, key)
                    opens = type(value) is list or type(value) is Map
                if opens and len(stack) >= most:
                    raise FormatError(f"nested deeper than {limit} = {most}")
                if self.token is not None:  # a tuple: bytes or numbers that are left in the file
                    far = type(value) is tuple
                    self.token(start, head if far else self.pos, len(stack),
                               "key" if naming else "data" if far else kind,
                               count if opens or far else value, key if keyed else len(box))
                if naming:
                    key = self.new_key(box, kind, value)
                    continue
                if keyed:
                    box[key] = value
                else:
                    box.append(value)
                left, key = left - 1, MISSING
                if opens:
                    stack.append((box, left, keyed))
                    box, left, keyed = value, count, kind == "map"
        except FormatError as error:
            path = self.token and self.token.path(len(stack), key if keyed else len(box))
            what = error.what + (" (cut short?)" if error.check == "bounds" else "")
            raise type(error)("MessagePack: " + what, start, path, None, self.path)
        return root[0]

    def new_key(self, box: Any, kind: str, key: Any) -> Any:
        """Return the key, which must not be in the map yet."""
        if kind != "str" and self.TEXT_KEYS:
            raise FormatError(f"a key of the type {kind}")
        if kind in ("array", "map"):
            raise Unsupported("a map key is an array or a map")
        key = bytes(key) if type(key) is memoryview else key
        check_key(self, box, key)
        return key

    def body(self, kind: str, nbytes: int, key: Any) -> Any:
        """Return the value of a str, bin or ext, or an empty container, whose head was read."""
        if kind == "str":
            return msgpack_text(self.next_bytes(nbytes, ""))
        if kind == "array" or kind == "map":
            return [] if kind == "array" else Map()
        body = self.source.view(self.pos, nbytes + (kind == "ext"))
        self.pos += len(body)
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
            raise FormatError(f"timestamp with {nanoseconds} nanoseconds")
        return seconds, nanoseconds


def msgpack_loads(data: Any) -> Any:
    """Return one MessagePack value; bytes behind it are a FormatError.

    str is text, bin a view of the bytes, ext (type, bytes), a timestamp (seconds, nanoseconds);
    an array or map as a map key is Unsupported, a key twice a FormatError.

    >>> msgpack_loads(b"\\x92\\x01\\xa1a")
    [1, 'a']
    """
    data = bytes(memoryview(data))
    reader = MsgpackTree(Memory(data))
    reader.data = data  # all at once is faster
    value = reader.tree("MAX_MSGPACK_DEPTH", MAX_MSGPACK_DEPTH)
    if reader.pos != reader.end:
        what = f"MessagePack: {reader.end - reader.pos} bytes behind the value"
        raise FormatError(what, reader.pos)
    return value


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
        return b"\xca" + pack_float("f", value)
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

MAX_TABLES = 16 if BOARD else 64  # tables within tables


def is_inline(type: Any) -> bool:
    """Return whether a value lies in its table or vector: a number, a struct; not an offset."""
    return isinstance(type, (int, str)) and type not in ("string", "table", "place")


def flat_size(type: Any) -> int:
    """Return how many bytes a value of this type, or its offset, takes in a table or vector."""
    nbytes = 4 if not is_inline(type) else type if isinstance(type, int) else WIDTH.get(type, 0)
    if nbytes < 1:
        raise ValueError(f"no value has the type, or the size in bytes, {show(type)}")
    return int(nbytes)


class FlatReader(Reader):
    """Reads one FlatBuffer by the rows of its tables.

    Types are those of flat_loads(), and "place": where an offset leads, to read it later.
    """

    def __init__(self, data: Any, base: int = 0, around: Any = None) -> None:
        if around is not None:  # the reader of the file
            self.path, self.trace, self.faults = around.path, around.trace, around.faults
        self.strict = around is None  # all fields lie in the bytes that the vtable states
        self.data, self.base = data, base  # bytes, offset of the first one in the file
        self.end = self.left = len(data)  # left: bytes of vtables to come
        nbytes = 24 * self.end + (MAX_BOXES if self.strict else 0)
        self.memory = Budget("MAX_BOXES and 24 times the data", nbytes)
        self.vtables: Any = {}  # by position: bytes of the table, count of slots
        self.inlines: Any = {}  # by position and type: a vector may be shared

    def wrong(self, what: str, pos: int, field: str, error: Any = FormatError) -> FormatError:
        """Return an error of a field of the table, or with the field "" of the table itself."""
        path = (field,) if field else ()
        return self.error("FlatBuffers: " + what, *path, offset=self.base + pos, error=error)

    def note(self, pos: int, nbytes: int, field: str, value: Any, doc: str, align: int = 2,
             target: "Optional[int]" = None, depth: int = 1) -> None:
        """Trace a field `depth` below its table; the field "" is an element of a vector."""
        if self.trace is not None:
            depth += len([name for name in self.where if isinstance(name, str)])  # of tables
            target = None if target is None else self.base + target
            self.trace.add(self.base + pos, nbytes, (self.prefix + field).rstrip("."), value, doc,
                           depth, "structure" if nbytes else "absent", owner=self.prefix or None,
                           target=target)
            self.check_aligned(pos, align)

    def check_aligned(self, pos: int, align: int) -> None:
        """Note for verify what the Rust reader would not read."""
        if pos % align:
            self.remark("the Rust reader refuses it: a field or a vector that is not aligned",
                        self.base + pos)

    def spend(self, nbytes: int, pos: int, field: str) -> None:
        """Count the memory for what is read: objects may be shared, and be many times the data."""
        self.memory.spend(nbytes, "FlatBuffers: objects overlap; memory for them", self,
                          *(field,) if field else (), offset=self.base + pos)

    def follow(self, pos: int, field: str) -> int:
        """Return where the offset stored at `pos` leads."""
        if pos + 4 > self.end:
            raise self.wrong("the data end inside an offset", pos, field)
        step: int = unpack_from("<I", self.data, pos)[0]
        if step == 0 or pos + step + 4 > self.end:
            what = f"offset {step} leads out of the data" if step else "offset is zero"
            raise self.wrong(what, pos, field)
        return pos + step

    def slots(self, table: int, count: int) -> Any:
        """Return (bytes of the table, distances to its first `count` fields; 0: absent)."""
        pos = table - unpack_from("<i", self.data, table)[0]
        if pos not in self.vtables:
            if pos < 0 or pos + 4 > self.end:
                raise self.wrong("vtable out of bounds", table, "vtable")
            nbytes, size = unpack_from("<HH", self.data, pos)
            if nbytes < 4 or nbytes & 1 or pos + nbytes > self.end:
                raise self.wrong(f"vtable of {nbytes} bytes", pos, "vtable")
            self.left -= nbytes
            if self.left < 0:
                raise self.wrong("vtables are longer in sum than the data: they overlap", pos,
                                 "vtable", Unsupported)
            self.vtables[pos] = size, nbytes // 2 - 2
            if self.trace is not None:
                slots = list(unpack_from(f"<{nbytes // 2 - 2}H", self.data, pos + 4))
                self.note(pos, nbytes, "vtable", slots, f"{nbytes} bytes, table {size}", depth=0)
        size, most = self.vtables[pos]
        if self.strict and size > self.end - table:
            raise self.wrong(f"table of {size} bytes, {self.end - table} left", table, "table")
        if self.trace is not None:
            self.note(table, 4, "table", table - pos, "vtable", 4, pos, 0)
        return size, unpack_from(f"<{min(most, count)}H", self.data, pos + 4)

    def root(self, rows: Any) -> Any:
        """Return the root table."""
        pos = self.follow(0, "root")
        self.note(0, 4, "root", pos, "root table", target=pos, depth=0)
        return self.table(rows, pos)

    def table(self, rows: Any, table: int) -> Any:
        """Return the fields of a table by name; absent ones have their defaults."""
        if len(self.where) > MAX_TABLES:
            raise self.wrong(f"more than {MAX_TABLES} tables within tables", table, "", Unsupported)
        # <tools>
        if rows == "table":
            return self.unknown(table)
        # </tools>
        size, slots = self.slots(table, len(rows))
        found: Any = Map()
        offsets = []
        self.spend(100 + 50 * len(rows), table, "table")
        for slot, (name, type, default, doc) in enumerate(rows):
            step = slots[slot] if slot < len(slots) and type is not None else 0
            if step:
                end = step + flat_size(type)
                if table + end > self.end or (self.strict and end > size):
                    raise self.wrong("field out of bounds", table, name)
                found[name] = self.inline(type, table + step, name, doc)
                offsets += [] if is_inline(type) else [rows[slot]]
            else:
                found[name] = list(default) if isinstance(default, list) else default
                self.note(table, 0, name, None, doc)  # an error in it is one of the table
        missing = [name for name, value in found.items() if value is MISSING]
        if missing:
            raise self.wrong(f"the required field {missing[0]} is missing", table, "table")
        for name, type, _, doc in offsets:
            type = type(found) if callable(type) else type
            found[name] = self.target(type, found[name], name, doc)
        return found

    def unknown(self, table: int) -> Any:
        """Return by slot the bytes up to the next field, of a table without rows."""
        size, slots = self.slots(table, 1 << 15)
        found, steps = Map(), sorted(set(slots + (size,)))
        behind = dict(zip(steps, steps[1:]))
        for slot, step in enumerate(slots):
            if step >= size:
                raise self.wrong("field out of bounds", table, f"slot {slot}")
            if step:
                self.spend(100 + behind[step] - step, table, "table")
                found[slot] = bytes(self.data[table + step:table + behind[step]])
        return found

    def inline(self, type: Any, pos: int, field: str, doc: str) -> Any:
        """Return the number or struct at a position, or where the offset there leads."""
        nbytes = flat_size(type)
        if not is_inline(type):
            at = self.follow(pos, field)
            self.note(pos, 4, field, at - pos, doc, 4, at)
            return at
        if isinstance(type, int):
            self.spend(40 + nbytes, pos, field)
        value, = unpack_from(f"<{type}s" if isinstance(type, int) else "<" + type, self.data, pos)
        self.note(pos, nbytes, field, value, doc, 2 if isinstance(type, int) else nbytes)
        return value

    def target(self, type: Any, at: int, field: str, doc: str) -> Any:
        """Return what an offset leads to."""
        if type in (None, "place"):
            return at if type else None
        if type == "string":
            return self.string(at, field, doc)
        if isinstance(type, list):
            return self.vector(type, at, field, doc)
        outer = self.where
        if field:
            self.where += field,
        found = self.table(type, at)
        self.where = outer
        return found

    def string(self, pos: int, field: str, doc: str) -> str:
        """Return the text of the string at a position: u32 length, UTF-8, NUL."""
        nbytes, = unpack_from("<I", self.data, pos)
        stop = pos + 4 + nbytes
        if stop >= self.end:
            raise self.wrong(f"string of {nbytes} bytes, {self.end - pos - 4} left", pos, field)
        if self.data[stop]:
            raise self.wrong("no NUL behind the string", pos, field)
        self.spend(64 + 4 * nbytes, pos, field)
        text = decode_text(self.data[pos + 4:stop])
        if text is None:
            raise self.wrong("text is not UTF-8", pos, field)
        self.note(pos, nbytes + 5, field, text, doc, 4)
        return text

    def vector(self, types: Any, pos: int, field: str, doc: str) -> Any:
        """Return the elements of the vector at a position; beyond `types`, the last is theirs."""
        type = types[0]
        size: int = unpack_from("<I", self.data, pos)[0]
        nbytes, left = flat_size(type), self.end - pos - 4
        if size > left // nbytes:
            raise self.wrong(f"vector of {size} elements, {left} bytes left", pos, field)
        self.check_aligned(pos + 4, 4 if isinstance(type, int) else max(4, nbytes))
        self.spend(56 + 8 * size, pos, field)
        if is_inline(type):
            if (pos, type) not in self.inlines:
                self.spend((40 + type if isinstance(type, int) else 32) * size, pos, field)
                code = f"{type}s" * size if isinstance(type, int) else f"{size}{type}"
                keep(self.inlines, (pos, type), unpack_from("<" + code, self.data, pos + 4))
            found = list(self.inlines[pos, type])
            self.note(pos, 4 + size * nbytes, field, found, doc)
            return found
        self.note(pos, 4, field, size, "number of elements")
        if type == "place" and self.trace is None and size:
            steps = unpack_from(f"<{size}I", self.data, pos + 4)
            places = [pos + 4 + 4 * i + step for i, step in enumerate(steps)]
            if min(steps) and max(places) <= self.end - 4:
                return places
        found, outer = [], self.where
        for i in range(size):
            self.where = outer + (field, i)
            type = types[min(i, len(types) - 1)]
            place = self.inline(type, pos + 4 + 4 * i, "", "element")
            found.append(self.target(type, place, "", doc))
        self.where = outer
        return found

    def usual_layout(self, table: int, rows: Any) -> Any:
        """Return (unpack(data, position), distances) of the fields in all tables of this vtable.

        It unpacks none unless all are there in the order of builders: short ones first, by slot.
        """
        slots, text, end = self.slots(table, len(rows))[1], "<i", 4
        for nbytes, slot in sorted([(flat_size(row[1]), i) for i, row in enumerate(rows)]):
            type, step = rows[slot][1], slots[slot] if slot < len(slots) else 0
            if step < end:
                return struct.Struct("").unpack_from, slots
            code = type if is_inline(type) else "I"
            text, end = f"{text}{step - end}x{code}", step + nbytes
        return struct.Struct(text).unpack_from, slots


def flat_loads(data: Any, rows: Any = "table") -> Any:
    """Return the root table of any FlatBuffer as a dict, by rows (name, type, default, doc).

    There is a row for each slot. Types: a struct code ("I", "d", "?"); "string"; a number of bytes
    (a struct); a tuple of rows (a table); [type] (a vector); None: not read. "table" is a table
    without rows, {slot: bytes up to the next field}: a look at what is stored. A function is given
    the fields before and returns the type: of a union, of a table within itself; of a vector of
    unions it returns a list of all their types.

    >>> data = bytes.fromhex("0c00000006000800040000000800000002000000")
    >>> flat_loads(data), flat_loads(data, (("x", "h", 0, "a number"), ("y", "string", None, "")))
    ({0: b'\\x02\\x00\\x00\\x00'}, {'x': 2, 'y': None})
    """
    return FlatReader(bytes(data)).root(rows)


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
            if isinstance(type, int):
                raise ValueError(f"slot {slot}: a struct cannot be written")
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


# -- [5e] zstd -----------------------------------------------------------------------------------

ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")


def zstd_module() -> Any:
    """Return the first zstd module that is there."""
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


class Zstd:
    """What ENCODINGS holds of an encoding."""

    most = 32768  # decoded bytes per stored byte (128 KiB from a block of 4 bytes)
    require = staticmethod(zstd_module)  # raises where it is missing

    def decode(self, source: Any, offset: int, nbytes: int, need: int) -> Chunks:
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

    # <save>
    def encode(self, blocks: Any, nbytes: int, level: int) -> Chunks:
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
    # </save>


ENCODINGS["zstd"] = Zstd()


# -- [5f] JSON -----------------------------------------------------------------------------------

MAX_DIGITS = 4300  # of an integer: Python 3.11 and later convert no more
JSON_ESCAPE = rb"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})"  # a wrong one
JSON_KINDS = {"[": "array", "{": "map", '"': "text", "0": "number"}
JSON_COSTS = {"array": 120, "map": 280}  # bytes that CPython takes
JSON_VALUE = '[{"0'  # how a value begins; 0: a number or a word


def json_read(data: bytes, base: int = 0, name: str = "item", depth: int = MAX_DEPTH,
              python: bool = False, token: Any = None, runs: Any = None) -> Any:
    """Return the value of JSON in UTF-8 (RFC 8259); only blanks may follow.

    The module json reads it. At most `depth` arrays and objects are open at once; a key twice is
    an error. Numbers are as in serde_json: -0 and integers of over 20 digits are floats, what
    float64 cannot hold is an error, as is a lone surrogate; or with `python` as in its json.
    `name` is the field of errors. `token` and `runs` are as in cbor_read; a token ends where the
    next begins.
    """
    if BOARD:
        raise Unsupported("JSON is not read on boards", base, name)
    decoder = json_decoder(python, runs)
    try:
        text = data.decode()
        large = 280 * data.count(b"{") + 120 * data.count(b"[") > MAX_BOXES + 10 * len(data)
        if token is None and not large and b"\\u" not in data:  # of PyPy, of surrogates
            try:
                return json_value(text, depth, decoder)
            except (ValueError, RuntimeError):  # RuntimeError: too deep for Python
                pass
        json_trace(data, depth, python, token)  # raises what is wrong, and where
        return json_value(text, depth, decoder)
    except UnicodeDecodeError as error:
        wrong = FormatError("text is not UTF-8", error.start)
    except FormatError as error:
        wrong = error
    except (ValueError, RuntimeError) as error:  # limits of this Python, lower than ours
        wrong = Unsupported(str(error))
    raise type(wrong)("JSON: " + wrong.what, base + (wrong.offset or 0), name)


def json_decoder(python: bool, runs: Any = None) -> Any:
    """Return the decoder of the module json that keeps the rules of json_read()."""
    from json import JSONDecoder

    def make_map(pairs: Any) -> Facts:
        made = Map(pairs)
        if len(made) < len(pairs):
            raise FormatError("a key twice")
        if FAST and runs:
            found = [key for key, value in pairs if type(value) is str and value in runs]
            made.update([(key, runs.pop(made[key])) for key in found])
        return made

    def make_float(text: str) -> float:
        value = float(text.encode("ascii"))  # json of PyPy takes the digits of all alphabets
        if not python and not -INFINITY < value < INFINITY:
            raise FormatError("NaN, or a number beyond float64")
        return value

    def make_int(text: str) -> Any:
        if not python and (len(text) > 20 or text == "-0"):
            return make_float(text)
        if len(text) > MAX_DIGITS:
            raise FormatError(f"{len(text)} digits; MAX_DIGITS = {MAX_DIGITS}")
        return int(text.encode("ascii"))
    return JSONDecoder(object_pairs_hook=make_map, parse_int=make_int, parse_float=make_float,
                       parse_constant=make_float)


def json_value(text: str, depth: int, decoder: Any) -> Any:
    """Return the value, unless more than `depth` arrays and objects are open at once."""
    value = decoder.decode(text)
    if len([boxes for boxes in json_levels(value) if boxes]) > depth:
        raise FormatError("nested too deep")
    return value


def json_levels(value: Any) -> Chunks:
    """Yield the dicts and lists of each level of a value, the outermost first, then none."""
    boxes: Any = [[value]]
    while boxes:
        boxes = [item for box in boxes for item in (box.values() if isinstance(box, dict) else box)
                 if isinstance(item, (dict, list, tuple))]
        yield boxes


def json_trace(data: bytes, depth: int, python: bool, token: Any) -> None:
    """Pass the tokens of JSON to `token`; raise FormatError at a wrong one.

    A token ends where the next one begins that is not a bracket.
    """
    memory = Budget("MAX_BOXES", MAX_BOXES + 10 * len(data))
    late: Any = []  # tokens without their ends

    def send(stop: int) -> None:
        for start, *rest in late:
            if token is not None:
                token(stop if rest[1] == "break" else start, stop, *rest)
        late.clear()
    try:
        for one in json_tokens(data, python):
            start, level, kind = one[:3]
            if kind in JSON_COSTS:
                memory.spend(JSON_COSTS[kind], "memory for arrays and maps", offset=start)
                if level >= depth:
                    raise FormatError(f"nested deeper than {depth}", start)
            if kind != "break":
                send(start)
            late.append(one)
        send(len(data.rstrip(b" \t\r\n")))
    except FormatError as error:
        send(error.offset or 0)
        if token is not None:
            token.path(0, MISSING)
        raise


def json_tokens(data: bytes, python: bool) -> Chunks:
    """Yield (position, containers around, kind, value, key) of each token, as in cbor_read."""
    text = data.decode("latin-1")  # one character for each byte
    boxes: Any = [["", None, 0]]  # open ones: what follows an item, keys of an object, key or index
    decoder, allowed, end = json_decoder(python), JSON_VALUE, 0
    while True:
        start, mark = json_mark(text, end)
        if not mark or mark not in allowed:
            break
        box, level, end = boxes[-1], len(boxes) - 1, start + 1
        if mark in ",:":
            allowed = JSON_VALUE if mark == ":" or box[1] is None else '"'
            continue
        if mark in "]}":
            yield start, level, "break", None, None
            boxes.pop()
            allowed = boxes[-1][0]
            continue
        value: Any = 0 if mark + json_mark(text, end)[1] in ("[]", "{}") else -1  # so many items
        if mark in '"0':
            value, end = json_leaf(data, text, start, decoder, python)
        if allowed[0] == '"':
            yield start, level, "key", value, None
            if value in box[1]:
                raise FormatError(f"key {show(value)} twice", start)
            box[1].add(value)
            box[2], allowed = value, ":"
            continue
        yield start, level, JSON_KINDS[mark], value, box[2]
        box[2] = box[2] + 1 if box[1] is None else None
        allowed = box[0]
        if mark in "[{":
            keys: Any = None if mark == "[" else set()
            boxes.append([",]", keys, 0] if mark == "[" else [",}", keys, None])
            allowed = JSON_VALUE + "]" if mark == "[" else '"}'
    if mark or allowed:
        here = show(data[start:start + 9]) if mark else "the end"
        wanted = "a value" if JSON_VALUE in allowed else " or ".join(allowed) or "nothing"
        raise FormatError(f"{here}, expected {wanted}", start)


def json_mark(text: str, at: int) -> "Tuple[int, str]":
    """Return where the next token begins, and its first character; 0: of a number or a word."""
    mark = text[at:at + 1]
    while mark and mark in " \t\r\n":
        at += 1
        mark = text[at:at + 1]
    return at, mark if mark in '[]{}:,"' else "0"


def json_leaf(data: bytes, text: str, start: int, decoder: Any, python: bool) -> Any:
    """Return (value, position behind it) of a text, a number or a word."""
    import re
    try:
        end = decoder.raw_decode(text, start)[1]
        token = data[start:end]
        value = decoder.decode(token.decode())
        if b"\\u" in token and re.search(JSON_ESCAPE, token):  # PyPy takes \u0_41
            raise ValueError
        if python or not isinstance(value, str) or is_text(value):
            return value, end
        what = f"{show(value)} is not Unicode text (a lone surrogate)"
    except FormatError as error:
        what = error.what
    except ValueError:
        what = f"{show(data[start:start + 9])}, expected a value"
    raise FormatError(what, start)


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


# -- [6a] Tensor, File ---------------------------------------------------------------------------


def pieces(view: Any, nbytes: int) -> Chunks:
    for start in range(0, len(view), nbytes):
        yield view[start:start + nbytes]


def join_blocks(blocks: Any) -> bytes:
    if BOARD:
        return b"".join([bytes(block) for block in blocks])
    out = BytesIO()  # unlike join() it copies each block while that is in the cache
    out.writelines(blocks)
    return out.getvalue()


def gather(view: Any, first: int, shape: Any, strides: Any, itemsize: int) -> Chunks:
    """Yield the row-major bytes, about BLOCK each, of an array that begins at `first`."""
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
    if steps[0] == itemsize and n > 4 * rows and not BOARD:  # so many lie together: longer runs
        rows = max(rows, min(4 * rows, 512 // itemsize))
    for start in range(0, n, rows):
        args = view, first + start * steps[0], [min(rows, n - start)] + dims[1:], steps, itemsize
        yield from gather(*args) if nbytes > n * BLOCK else [_gather_block(*args)]


def _turn_block(view: Any, first: int, dims: Any, steps: Any, itemsize: int) -> bytes:
    """As _gather_block, 1.6 times as fast: the first dimension lies in runs, which are joined."""
    from array import array
    n, starts = dims[0], [first]
    for count, step in zip(dims[1:], steps[1:]):
        starts = [at + i * step for at in starts for i in range(count)]
    data = b"".join([view[at:at + n * itemsize] for at in starts])
    items: Any = data if itemsize == 1 else array(BITS_CODE[itemsize], data)
    return b"".join([items[i::n] for i in range(n)])


def _gather_block(view: Any, first: int, dims: Any, steps: Any, itemsize: int) -> Any:
    """Return one block of gather(): loops outside, the longest dimension as one slice."""
    if FAST and steps[0] == itemsize and 256 // itemsize <= dims[0] <= 2 * sum(dims[1:]):
        return _turn_block(view, first, dims, steps, itemsize)
    out, places = bytearray(itemsize * count_elements(dims)), row_major(tuple(dims), itemsize)
    longest = dims.index(max(dims))
    n, step, place = dims[longest], steps[longest], places[longest]
    starts = [(0, first)]  # (place in out, place in view) of each run
    for axis, count in enumerate(dims):
        if axis != longest:
            starts = [(to + i * places[axis], at + i * steps[axis])
                      for to, at in starts for i in range(count)]
    if BOARD:  # it lacks typed views, which have slices with steps
        for i in range(n):
            for to, at in starts:
                at += i * step
                out[to + i * place:to + i * place + itemsize] = view[at:at + itemsize]
        return out
    target, source = [view_as(data, BITS_CODE[itemsize]) for data in (out, view)]
    place, step = place // itemsize, step // itemsize
    tile = n if -128 < step < 128 else 512  # far steps: few, so that pages stay cached
    for i in range(0, n, tile):
        count = min(tile, n - i)
        for to, at in starts:
            to, at = to // itemsize + i * place, at // itemsize + i * step
            stop = at + count * step
            target[to:to + count * place:place] = source[at:None if stop < 0 else stop:step]
    return out


class Storage:
    """How bytes lie in a source. It never changes; tensors of one dtype and shape share it."""

    __slots__ = ("source", "nbytes", "strides", "order", "encoding", "why", "entry")

    def __init__(self, source: Any, nbytes: int, strides: Any = None, order: str = "<",
                 encoding: str = "raw", why: "Optional[str]" = None, entry: Any = None) -> None:
        self.source = source
        self.nbytes = nbytes  # as stored; of the whole base in a strided sub-tensor
        self.strides = strides  # bytes; None: row-major without gaps
        self.order = order  # byte order of the stored elements
        self.encoding = encoding  # "raw", a name in ENCODINGS, or of a class: "sparse", "cast"
        self.why = why  # why the values cannot be read, or None
        self.entry = entry  # of a tensor of several parts in a file: where they lie


class Tensor:
    """A named, typed, strided array over bytes that lie in a file, a buffer or memory.

    `.dtype` is None if unknown here, `.attrs` are facts of its `.format`. Bytes are read when asked
    for: Unsupported (dtype, encoding), FormatError (damage) or ValueError (closed File).

    >>> tensor([[1, 2], [3, 4]], "int8")[1].tolist()
    [3, 4]
    """

    __slots__ = ("name", "dtype", "shape", "stored", "start", "format", "_attrs", "_kept")
    components: Any = None  # of a tensor of several parts, see [6b]
    layout_keys: Any = ()  # of a sparse tensor: attrs that say how it is stored
    scheme: Any = None  # of a quantized tensor, see [6c]

    def __init__(self, name: str, dtype: "Optional[str]", shape: Shape, stored: Any,
                 start: int = 0, attrs: Any = (), format: "Optional[str]" = None) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.stored: Storage = stored
        self.start = start  # of its first element in the source (if coded: of the bytes)
        self.format = format
        self._attrs: Facts = attrs  # or (key, value, ...): a map when asked for

    @property
    def attrs(self) -> Facts:
        """Facts of the format that it came from (or will be saved to)."""
        flat: Any = self._attrs
        if isinstance(flat, tuple):
            self._attrs = Map([(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)])
        return self._attrs

    def attrs_without(self, keys: Any) -> Facts:
        return Map([(key, value) for key, value in self.attrs.items() if key not in keys])

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
        stored, itemsize = self.stored, ITEMSIZE.get(self.dtype)
        if itemsize is None or (stored.encoding == "raw" and stored.strides is None):
            return stored.nbytes
        return self.size * itemsize

    @property
    def strides(self) -> Shape:
        """Bytes from one element to the next in the decoded data, per dimension."""
        return self.stored.strides or row_major(self.shape, self.itemsize or 1)

    @property
    def offset(self) -> "Optional[int]":
        """Offset in the file of the first element (if compressed: of the bytes), or None."""
        return self.start if self.stored.source.of_file else None

    def ranges(self) -> Any:
        """Return (offset, nbytes, role) of its bytes in the file; "" is the role of its values."""
        entry = self.stored.entry
        return entry.ranges() if entry else [(self.start, self.stored.nbytes, "")]

    def todense(self) -> "Tensor":
        """Return a sparse tensor with its zeros, in memory; another as it is."""
        return self

    def __repr__(self) -> str:
        text = f"<Tensor {quote(self.name)} {plain(str(self.dtype))} {show(self.shape)}"
        text += "" if self.format is None else " of " + self.format
        # <tools>
        if not BOARD and (self.stored.encoding == "raw" or self.size <= MAX_SHOWN):
            try:
                for edge in (MAX_SHOWN, 3, 1, 0):
                    whole = f"{text}:\n{self.preview(edge)}>"
                    if len(whole) <= MAX_LINE:
                        return whole
            except (ValueError, OSError):  # damaged, closed, no values
                pass
        # </tools>
        return text + ">"

    def preview(self, edge: int = MAX_SHOWN) -> str:
        """Return the values for a person as numpy does: of over MAX_SHOWN those at the edges."""
        if self.ndim > 64:
            raise ValueError(f"{self.ndim} dimensions are too many to be shown; see .flat")
        if not 0 < self.size <= MAX_SHOWN:
            edge = min(edge, 3 if self.ndim < 5 else 1 if self.ndim < 10 else 0)
        width = 0

        def text_of(item: Any, depth: int) -> str:
            nonlocal width
            if not depth:
                text = repr(float("%.8g" % item) if isinstance(item, float) else item)
                width = max(width, len(text))
                return text.rjust(width)
            n = item.shape[0]
            rows = list(range(n)) if n <= 2 * edge else (
                list(range(edge)) + [-n] + list(range(n - edge, n)))
            texts = ["..." if i < 0 else text_of(item[i], depth - 1) for i in rows]
            if depth == 1:  # in lines of 78 columns
                count = max(1, (80 - 2 * self.ndim) // (width + 2))
                texts = [", ".join(texts[i:i + count]) for i in range(0, len(texts), count)]
            return "[" + (",\n" + " " * (self.ndim - depth + 1)).join(texts) + "]"
        base = self.decoded() if self.shape else self.item()
        text_of(base, self.ndim)  # how wide they are
        return text_of(base, self.ndim)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        if not BOARD:
            self.check_dims(self.shape[:1])
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"{self.size} elements are not true or false; use .size or `is None`")
        return bool(self.item())

    def error(self, what: str, error: "Type[FormatError]" = FormatError,
              field: str = "data") -> FormatError:
        return error(what, self.offset, field, self.name, self.stored.source.path, "sizes")

    def check_readable(self) -> int:
        """Return the itemsize; raise Unsupported where the elements cannot be read."""
        itemsize = ITEMSIZE.get(self.dtype)
        if self.stored.why is not None or itemsize is None:
            why = self.stored.why or f"{self.dtype} cannot be read element by element"
            # <tools>
            why += self.say_bytes()
            # </tools>
            raise self.error(why, Unsupported)
        return itemsize

    def say_bytes(self) -> str:
        """Return the end of a message: the call that makes torch's tensor of the stored bytes."""
        stored = self.stored
        alone = (self.dtype, stored.encoding, stored.order) == (None, "raw", "<")
        for code in self.attrs.values() if alone and stored.entry is None else ():
            if isinstance(code, str) and code in TORCH_TYPES:
                shape = list(self.shape)
                if TORCH_TYPES[code].endswith("_x2"):  # two in a byte
                    shape[-1:] = [n + 1 >> 1 for n in shape[-1:]]
                return ("; .raw has the bytes: torch.frombuffer(bytearray(t.raw), "
                        f"dtype=torch.{TORCH_TYPES[code]}).reshape({show(shape)})")
        return ""

    def _span(self) -> "Tuple[int, int]":
        """Return (start, nbytes) of its bytes, relative to element (0, ..., 0)."""
        stored = self.stored
        if stored.strides is None or 0 in self.shape:
            return 0, stored.nbytes
        ends = [(n - 1) * stride for n, stride in zip(self.shape, stored.strides)]
        return sum([min(end, 0) for end in ends]), sum(map(abs, ends)) + (self.itemsize or 1)

    @property
    def raw(self) -> memoryview:
        """The stored bytes, read-only; of a sub-tensor from its first to its last."""
        start, nbytes = self._span()
        return self.stored.source.view(self.start + start, nbytes)

    def _is_whole(self) -> bool:
        """Return whether its bytes lie decoded and without gaps."""
        stored = self.stored
        return bool(stored.encoding == "raw" and (
            stored.strides is None or self._span()[1] == self.nbytes))

    @property
    def zero_copy(self) -> bool:
        """Whether `.data` shows the stored bytes themselves."""
        stored, native = self.stored, self.itemsize == 1 or self.stored.order == NATIVE
        return (stored.why is None and self.itemsize is not None and native
                and self._is_whole() and bool(stored.source.zero_copy))

    @property
    def data(self) -> memoryview:
        """The elements as a flat typed memoryview in storage order and native byte order.

        A copy at each call unless `.zero_copy`; float16 and bfloat16 as bits ('H'). A whole
        primitiv tensor is column-major, a copy of a part with gaps is row-major.
        """
        itemsize = self.check_readable()
        base = self if self._is_whole() else self.contiguous()
        native = itemsize == 1 or base.stored.order == NATIVE
        code = STRUCT_CODE.get(str(self.dtype), "e").replace("e", "H")
        return view_as(base.raw if native else swap(base.raw, itemsize), code)

    def is_plain(self) -> bool:
        """Return whether one view shows its row-major little-endian bytes."""
        stored = self.stored
        return bool(stored.encoding == "raw" and stored.strides is stored.why is None
                    and stored.order == "<" and stored.source.zero_copy)

    def blocks(self) -> Chunks:
        """Yield row-major little-endian bytes: in one view, or about BLOCK each."""
        stored = self.stored
        if self.is_plain():
            return iter((stored.source.view(self.start, stored.nbytes),))
        itemsize = self.check_readable()
        # <zstd burnrecord>
        if stored.encoding != "raw":
            return self._decode()
        # </zstd burnrecord>
        blocks = self.stored_blocks() if stored.strides is None else gather(
            self.raw, -self._span()[0], self.shape, stored.strides, itemsize)
        if stored.order == "<" or itemsize == 1:
            return blocks
        return (swap(piece, itemsize) for block in blocks for piece in pieces(block, BLOCK))

    def parts(self) -> Chunks:
        """Iterate over what blocks() yields, at most PART bytes at a time."""
        return (part for block in self.blocks() for part in pieces(block, PART))

    def stored_blocks(self) -> Chunks:
        """Yield the stored bytes: in one view if there is one, or in BLOCKs."""
        source, offset, nbytes = self.stored.source, self.start, self.stored.nbytes
        size = nbytes if source.zero_copy else BLOCK
        for start in range(0, nbytes, size) if nbytes else [nbytes]:  # a closed File raises
            yield source.view(offset + start, min(size, nbytes - start))

    def _decode(self) -> Chunks:
        stored = self.stored
        try:
            yield from ENCODINGS[stored.encoding].decode(stored.source, self.start,
                                                         stored.nbytes, self.nbytes)
        except FormatError as error:
            raise self.error(error.what, type(error))

    def _decoded_once(self) -> "Tensor":
        """Return it decoded; up to MAX_KEPT bytes are kept while it lives."""
        kept: "Optional[Tensor]" = getattr(self, "_kept", None)
        if kept is None:
            kept = self.decoded()
            if kept.nbytes <= MAX_KEPT:
                self._kept = kept
        self.stored.source.view(self.start, 0)  # raises if the File is closed
        return kept

    def copy(self, **changes: Any) -> "Tensor":
        """Return it with some of the constructor's arguments changed."""
        args: Facts = dict([(key, getattr(self, key)) for key in (
            "name", "dtype", "shape", "stored", "start", "format")], attrs=Map(self.attrs.items()))
        args.update(changes)
        dense = "stored" in changes and args["dtype"] in ITEMSIZE
        return (Tensor if dense else type(self))(**args)

    def in_memory(self, data: Any) -> "Tensor":
        """Return it over row-major little-endian bytes in memory."""
        return self.copy(stored=Storage(Memory(data), len(data), why=self.stored.why), start=0)

    def decoded(self) -> "Tensor":
        """Return it with raw bytes: of a large coded one in a spool file."""
        if self.stored.encoding == "raw":
            return self
        if BOARD or self.nbytes <= 32 * BLOCK:
            return self.contiguous()
        from tempfile import TemporaryFile
        with TemporaryFile() as spool:
            spool.writelines(self.blocks())
            spool.flush()
            view = map_privately(spool.fileno(), self.nbytes, None)
        return self.contiguous() if view is False else self.in_memory(view)

    def column_blocks(self) -> Chunks:
        """Yield column-major little-endian bytes."""
        stored, shape = self.stored, self.shape
        if FAST and len(shape) == 2 and stored.nbytes <= 1 << 12 and self.is_plain():  # few steps
            view = view_as(stored.source.view(self.start, stored.nbytes),
                           BITS_CODE[self.check_readable()])
            return iter([b"".join([view[i::shape[1]].tobytes() for i in range(shape[1])])])
        return self.transpose().blocks()

    def transpose(self) -> "Tensor":
        """Return the transpose (a view): its row-major bytes are column-major ones here."""
        if self.ndim < 2:
            return self
        base = self.decoded()
        old, strides = base.stored, tuple(reversed(base.strides))
        stored = Storage(old.source, old.nbytes, strides, old.order)
        return base.copy(shape=tuple(reversed(base.shape)), stored=stored)

    def tobytes(self) -> bytes:
        """Return the elements as row-major little-endian bytes; without itemsize, as stored."""
        return join_blocks(self.blocks())

    @property
    def flat(self) -> Chunks:
        """Iterate over the elements, row-major, as Python numbers, in constant memory."""
        self.check_readable()
        return (value for part in self.parts() for value in unpack_values(str(self.dtype), part))

    def tolist(self) -> "List[Any]":
        """Return the elements as nested lists; of a scalar, the number."""
        values, shape = list(self.flat), self.shape
        if not shape:
            return values[0]
        lists = [count_elements(shape[:i]) for i in range(1, min(len(shape), 513))]
        if len(shape) > 512 or sum(lists) > max(len(values) * len(shape), 1 << 20):
            raise ValueError(f"tolist() of {show(shape)} makes too many lists")
        for n, count in zip(reversed(shape), reversed(lists)):
            values = [values[i * n:(i + 1) * n] for i in range(count)]
        return values

    def item(self) -> Any:
        """Return the only element as a Python number; ValueError if there are others."""
        if self.size != 1:
            raise ValueError(f"a tensor of one element is a number, this one has {self.size}")
        return next(self.flat)

    def astype(self, dtype: Any) -> "Tensor":
        """Return a copy in memory with another dtype, without attrs of the old one.

        Floats round to even and overflow to infinity; integers raise ValueError for a fraction,
        a NaN or a number out of range.
        """
        return self.cast(dtype).contiguous()

    def cast(self, dtype: Any) -> "Tensor":
        """Return what astype() does, cast when its bytes are asked for."""
        dtype = as_dtype(dtype)
        self.check_readable()
        return Cast(self, dtype)

    def cast_blocks(self, dtype: str) -> Chunks:
        return (cast_block(part, str(self.dtype), dtype) for part in self.parts())

    def contiguous(self) -> "Tensor":
        """Return a row-major little-endian copy in memory."""
        return self.in_memory(self.tobytes())

    def __getitem__(self, key: Any) -> Any:
        """Return a number or a zero-copy part; of a compressed one, see MAX_KEPT."""
        self.check_readable()
        old = self.stored
        # <zstd burnrecord sparse quantized tools>
        if old.encoding != "raw":
            return self._decoded_once()[key]
        # </zstd burnrecord sparse quantized tools>
        keys, shape = key if isinstance(key, tuple) else (key,), self.shape
        if FAST and old.strides is None and len(keys) <= len(shape):
            offset, nbytes = self.start, old.nbytes
            for k, n in zip(keys, shape):
                if type(k) is not int or not -n <= k < n:
                    break
                nbytes //= n
                offset += k % n * nbytes
            else:  # integers of row-major elements: the usual case
                return self._part(offset, nbytes, shape[len(keys):] or None, None)
        return self._part(*self._locate(list(keys)))

    def _part(self, offset: int, nbytes: int, shape: Any, strides: Any) -> Any:
        """Return a Tensor of a part; without a shape, its number."""
        old = self.stored
        if shape is None:
            return unpack_values(str(self.dtype), old.source.view(offset, nbytes), old.order)[0]
        stored = Storage(old.source, nbytes, strides, old.order)
        return Tensor(self.name, self.dtype, shape, stored, offset, (), self.format)

    def _locate(self, keys: "List[Any]") -> Any:
        """Return the arguments of _part()."""
        dots = [i for i, k in enumerate(keys) if k is Ellipsis]
        given, at = len(keys) - len(dots), dots[0] if dots else len(keys)
        if len(dots) > 1 or given > self.ndim:
            raise IndexError(f"{given} indices, {len(dots)} times '...': {self.ndim} dimensions")
        keys[at:at + 1] = [Ellipsis] * (self.ndim - given)
        offset, sizes, steps = self.start, [], []
        for axis, (k, n, stride) in enumerate(zip(keys, self.shape, self.strides)):
            if k is Ellipsis or isinstance(k, slice):  # boards cannot make a slice
                places = range(n) if k is Ellipsis else range(n)[k]
                size = max(0, -((places.start - places.stop) // places.step))
                offset += places.start * stride if size else 0
                sizes.append(size)
                steps.append(places.step * stride)
                continue
            index = as_index(k)
            if not -n <= index < n:
                raise IndexError("index %s is out of range for dimension %d of shape %s" % (
                    show(index), axis, show(self.shape)))
            offset += index % n * stride
        shape, strides, nbytes = tuple(sizes), tuple(steps), self.stored.nbytes
        itemsize = ITEMSIZE[self.dtype]
        if 0 in shape or strides == row_major(shape, itemsize):
            strides, nbytes = (), count_elements(shape) * itemsize
        return offset, nbytes, shape if shape or dots else None, strides or None

    def __iter__(self) -> Chunks:
        return (self[i] for i in range(len(self)))

    # <full>
    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def check_dims(self, shape: Shape) -> None:
        for n in shape:
            if n > sys.maxsize:  # no sequence can be so long
                what = f"a dimension of {show(self.shape)} is over sys.maxsize; use .shape"
                raise ValueError(what)

    @property
    def __array_interface__(self) -> Facts:
        """What numpy.asarray asks for first: zero-copy, read-only; none of bfloat16."""
        if self.dtype == "bfloat16":
            raise AttributeError("numpy knows bfloat16 by __array__ only")
        itemsize = self.check_readable()
        self.check_dims(self.shape)
        base = self if self.stored.encoding == "raw" else self.contiguous()
        order = "|" if itemsize == 1 else base.stored.order
        code = f"{order}{str(self.dtype)[0]}{itemsize}"
        return {"version": 3, "shape": self.shape, "typestr": code, "data": base.raw,
                "strides": base.stored.strides, "offset": -base._span()[0]}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return a numpy array; bfloat16 as ml_dtypes has it where that is loaded, or as "V2"."""
        if not ARRAYS:
            return feature("arrays")  # which this copy lacks
        import numpy
        array: Any = self
        if self.dtype == "bfloat16":
            known = sys.modules.get("ml_dtypes")
            bits = numpy.asarray(self.copy(dtype="uint16"), "u2")  # native
            bits.flags.writeable = False
            array = (bits.view(getattr(known, "bfloat16", "V2")) if known or dtype is None else
                     self.astype("float32"))
        return numpy.array(array) if copy else numpy.asarray(array)  # numpy casts if need be

    def __dlpack__(self, **options: Any) -> Any:
        """Give what torch.from_dlpack and others ask for, zero-copy, through numpy or torch."""
        if not ARRAYS:
            return feature("arrays")
        if self.dtype == "bfloat16":
            torch: Any = sys.modules.get("torch")
            if torch is None:
                raise BufferError("bfloat16 needs torch (import it before), or jax.numpy.asarray")
            bits = torch.from_dlpack(self.copy(dtype="int16"))
            return bits.view(torch.bfloat16).__dlpack__(**options)
        import numpy
        array = numpy.asarray(self, self.dtype)  # native
        if array.strides != tuple(map(abs, array.strides)) or not options.get("max_version"):
            array = array.copy()  # torch takes no negative strides, old libraries nothing read-only
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> "Tuple[int, int]":
        return 1, 0  # memory of the CPU

    # <arrays>
    def __jax_array__(self) -> Any:
        array = self.__array__()
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        return sys.modules["jax"].numpy.asarray(native)

    def __buffer__(self, flags: int) -> Any:
        """Give an exact C-order native view (CPython 3.12+), or BufferError."""
        code, stored = STRUCT_CODE.get(str(self.dtype)), self.stored
        native = stored.order == NATIVE or self.itemsize == 1
        if not code or stored.why or stored.strides or not native or 0 in self.shape or (
                self.ndim > 64):
            raise BufferError("not a plain native array with elements: take .contiguous().data")
        return self.data.cast("B").cast(code, self.shape)
    # </arrays>

    __bytes__ = tobytes  # without it, up to Python 3.11 bytes() takes numbers from __iter__

    def __reduce__(self) -> Any:
        """Pickle by reference (path, size, mtime) if it comes from a path, else by value."""
        stored, start = self.stored, self.start
        if not isinstance(stored.source, Path):
            base = self if stored.strides is None else self.contiguous()
            old, start, memory = base.stored, 0, Memory(bytes(base.raw))
            stored = Storage(memory, memory.nbytes, None, old.order, old.encoding, old.why)
        args = self.name, self.dtype, self.shape, stored, start, self.attrs, self.format
        return type(self), args
    # </full>


def as_index(key: Any) -> int:
    """Return an index, an int or what has __index__ (numpy integers), as an int."""
    if isinstance(key, bool) or not (isinstance(key, int) or hasattr(key, "__index__")):
        raise TypeError(f"an index is an int, a slice or Ellipsis, not {type(key).__name__}")
    return int(key)


class File(TensorMap):
    """A mapping from names to Tensors in the order of the index; also a context manager.

    `.path` (or None), `.metadata` (the user's), `.attrs` (facts of the format), `.nbytes`.
    Any number of threads may read it and its Tensors.

    >>> load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    <File ztensor: 1 tensor 'w'>
    """

    def __init__(self, kind: "Format", source: Any, attrs: Facts, metadata: Facts,
                 tensors: "Dict[str, Tensor]", options: Any = None) -> None:
        self.kind, self.format = kind, kind.FAMILY
        self.path: "Optional[str]" = source.path
        self.nbytes: int = source.nbytes
        self.attrs, self.metadata = attrs, metadata
        self._source, self._tensors = source, tensors
        self._options = options or {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise KeyError(self.say_missing(name))
        return self._tensors[name]

    def say_missing(self, name: str) -> str:
        text = "no tensor %s (%s)" % (show(name), count_of(len(self), "tensor"))
        # <tools>
        if name in self.attrs.get("missing", ()):
            return f"{quote(name)} does not lie whole in the file, which is cut short"
        if not BOARD and isinstance(name, str) and len(self) <= 20000:
            text += nearest(name, self)
        # </tools>
        return text

    def __iter__(self) -> "Iterator[str]":
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def keys(self) -> "KeysView[str]":
        return self._tensors.keys()

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

    # <tools>
    def merged(self) -> "Tuple[Facts, List[str]]":
        """Return the metadata; and what several files do not agree on, which is left out."""
        return self.metadata, []
    # </tools>

    def close(self) -> None:
        """Close the file. Views stay valid; a Tensor asked later raises."""
        self._source.close()

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    # <full>
    _ipython_key_completions_ = keys

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a table of the first MAX_SHOWN tensors, and their sum."""
        rows = [(item.dtype, show(item.shape), item.nbytes, name)
                for name, item in list(self.items())[:MAX_SHOWN]]
        total = sum([item.nbytes for item in self.values()])
        text = "<tr><th>dtype<th>shape<th>bytes<th>name"
        for row in rows + [("total", "", total, count_of(len(self), "tensor"))]:
            text += "<tr>" + "".join([f"<td style=text-align:{side}>{to_html(fact)}" for side, fact
                                      in zip(("left", "left", "right", "left"), row)])
        return f"{to_html(repr(self), MAX_LINE)}<table>{text}</table>"

    def __reduce__(self) -> Any:
        if not isinstance(self._source, Path):
            raise TypeError("a File pickles by path; this one comes from a buffer or a stream")
        return load_again, (self.format, self._source.__reduce__()[1], self._options)
    # </full>


def nearest(name: str, names: Any) -> str:
    """Return the end of a message: which name is most like a wrong one, if one is like it."""
    def likeness(other: str) -> float:
        """Return how much is a beginning and an end of both, from 0 to 1."""
        ends = [len(os.path.commonprefix([name[::step], other[::step]])) for step in (1, -1)]
        return min(sum(ends), len(name), len(other)) / max(len(name), len(other), 1)
    near = max(names, key=likeness, default="")
    return f"; did you mean {quote(near)}?" if likeness(near) >= 0.5 else ""


if not BOARD and "_collections_abc" in sys.modules:  # of collections.abc; loaded at any start
    sys.modules["_collections_abc"].Mapping.register(File)


def new_tensor(dtype: Any, shape: Shape, raw: Any, order: str = "<",
               name: str = "", format: Any = None) -> Tensor:
    source = Memory(raw)
    return Tensor(name, dtype, shape, Storage(source, source.nbytes, None, order), 0, (), format)


def is_sparse(item: Tensor) -> bool:
    return isinstance(item, FEATURES.get("sparse", ()))


class Cast(Tensor):
    """A tensor with another dtype, cast block by block when asked for."""

    __slots__ = ("_base",)

    def __init__(self, base: Tensor, dtype: str) -> None:
        gone = [key for kind in FORMATS for key in kind.DTYPE_ATTRS] + list(base.layout_keys)
        stored = Storage(Memory(b""), 0, None, "<", "cast")
        super().__init__(base.name, dtype, base.shape, stored, 0, base.attrs_without(gone),
                         base.format)
        self._base = base

    def blocks(self) -> Chunks:
        return self._base.cast_blocks(str(self.dtype))


# <save>
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
    if components is not None:
        return feature("sparse").make(dtype, shape, components, attrs)
    if dtype == "qfloat":
        return feature("quantized").make(data, shape, attrs)
    made = _from_value(data, None if dtype is None else as_dtype(dtype), attrs)
    if shape is not None:
        shape = as_shape(shape)
        if count_elements(shape) != made.size or [n for n in shape if n < 0]:
            raise ValueError(f"{made.size} elements do not have the shape {show(shape)}")
        made = made.contiguous().copy(shape=shape)
    if attrs:
        made.attrs.update(attrs)
    return made


def _from_value(data: Any, dtype: "Optional[str]", attrs: Facts) -> Tensor:
    if ARRAYS:
        data = adopt(data)
    if isinstance(data, Tensor):
        made = data.copy()
        known = None if made.format is None else find_format(made.format).TENSOR_ATTRS
        if known is not None and [key for key in attrs if key not in known]:
            made = made.copy(attrs=Map(), format=None)  # the user's
    elif isinstance(data, (list, tuple, bool, int, float)):
        made = _from_lists(data, dtype)
    else:
        made = _from_buffer(data, dtype)
    return made if dtype in (None, made.dtype) else made.astype(str(dtype))


def adopt(item: Any) -> Any:
    """Return a Tensor or a File of another copy of this module as one of this copy."""
    if isinstance(item, (Tensor, File)):
        return item
    if hasattr(item, "say_missing"):
        tensors = {name: adopt(value) for name, value in item.items()}
        kind = find_format(getattr(getattr(item, "kind", item), "NAME", item.format))
        return File(kind, item._source, item.attrs, item.metadata, tensors, item._options)
    if not hasattr(item, "attrs_without"):
        return item
    format = item.format if item.format in NAMES else None
    attrs, old = Map(item.attrs.items() if item.format == format else ()), item.stored
    make: Any = FEATURES.get(type(item).__name__.lower(), Tensor)
    if "sparse" in FEATURES and make is FEATURES["sparse"]:
        parts = Map([(key, adopt(part)) for key, part in item.components.items()])
        return make.join(parts, item.shape, item.name, attrs, format)
    stored = Storage(old.source, old.nbytes, old.strides, old.order, old.encoding, old.why)
    return make(item.name, item.dtype, item.shape, stored, item.start, attrs, format)


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as one dimension or several, as a tuple."""
    one = hasattr(shape, "__index__") and not hasattr(shape, "__len__")
    return tuple([as_index(n) for n in ([shape] if one or isinstance(shape, int) else shape)])


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
        # <full>
        if [item for item in level if getattr(item, "shape", ())]:
            raise ValueError("arrays in a list; one array is a tensor: numpy.stack(...) makes it")
        # </full>
        values = [item.item() if hasattr(item, "item") else item for item in level]
        types = set(map(type, values))
    for one in types - {int, float, bool}:
        remedy = ""
        if not BOARD and one is str:
            remedy = REMEDIES["U"]
        raise ValueError(f"{one.__name__} among the numbers{remedy}")
    if dtype is None:
        dtype = "bool" if types == {bool} else "float64"
        if int in types and float not in types:
            dtype = "uint64" if max(values) > INT_RANGE["int64"][1] else "int64"
    return new_tensor(dtype, tuple(shape), bytes(pack_values(dtype, values)))


def _from_bytes(data: Any, dtype: str) -> Tensor:
    if len(data) % ITEMSIZE[dtype]:
        raise ValueError(f"{len(data)} bytes are not a whole number of {dtype}")
    return new_tensor(dtype, (len(data) // ITEMSIZE[dtype],), data)


REMEDIES = dict([(kind, text) for kinds, text in (  # by the kind of a dtype of numpy
    ("UST", "; text goes to metadata=, or as bytes: tensor(text.encode())"),
    ("O", '; .astype("float64") if these are numbers'),
    ("mM", '; .astype("int64") counts their units')) for kind in kinds])
BUFFER_KINDS = {"float": "fde", "int": "bhilqn", "uint": "BHILQN", "bool": "?", "bfloat": ""}
BUFFER_DTYPES = dict([((code, nbytes), dtype) for dtype, nbytes in ITEMSIZE.items()
                      for code in BUFFER_KINDS[dtype.rstrip("0123456789")]])


def _from_buffer(data: Any, dtype: Any) -> Tensor:
    """Return a Tensor of a buffer or an array; zero-copy where it is contiguous."""
    if BOARD:  # a memoryview has no format there: other buffers as numbers
        memoryview(data)  # a TypeError for what is not a buffer
        if isinstance(data, (bytes, bytearray)):
            return _from_bytes(bytes(data), dtype or "uint8")
        return _from_lists(list(data), dtype)
    if hasattr(data, "mask") and hasattr(data, "filled"):
        raise TypeError("a masked array: .filled(value) says what stands where nothing is")
    view, given = view_of(data)
    if ARRAYS and given not in ITEMSIZE:
        return _from_opaque(view, given)
    if given == "uint8" and dtype is not None and view.ndim == 1 and not (
            hasattr(data, "dtype") or hasattr(data, "typecode")):
        return _from_bytes(view, dtype)
    if given == "uint16" and dtype in ("float16", "bfloat16"):
        raise ValueError(f'uint16 to {dtype}: tensor(x).copy(dtype="{dtype}") if these are the '
                         f'bits, tensor(x).astype("{dtype}") if they are the values')
    order = view.format[0] if view.format[0] in "<>" else NATIVE
    return new_tensor(given, view.shape or (), view, order)


def view_of(data: Any) -> Any:
    """Return a buffer or an array as a memoryview, and the dtype; TypeError for what is unfit."""
    view, given = _typed_view(data)
    dtype = getattr(data, "dtype", None)
    # What has no code may offer its bytes (numpy.datetime64): its dtype is looked at.
    if given is not None and (dtype is None or given != "uint8" or
                              getattr(dtype, "char", "") == "B"):
        return view, given
    name = str(dtype).split(".")[-1]  # takes longer than all of the above
    if ARRAYS:
        view, given = _typed_view(as_buffer(data, name))
        if name == "bfloat16" or (name in TORCH_TYPES and "opaque" in FEATURES):
            given = name
    if view is None or given is None:
        what = type(data).__name__ + ("" if dtype is None else f" of {name}")
        remedy = REMEDIES.get("U" if isinstance(data, str) else getattr(dtype, "kind", ""), "")
        if hasattr(data, "items"):
            names = [f'"NAME.{plain(str(key))}": ...' for key in list(data)[:2]]
            remedy = f"; flatten it: {{{', '.join(names)}}}"
        raise TypeError(f"cannot make a tensor of {what}{remedy}")
    return view, given


def _typed_view(data: Any) -> "Tuple[Any, Optional[str]]":
    """Return what a buffer shows and its dtype, None for what there is not."""
    try:
        view = memoryview(data)
        return view, BUFFER_DTYPES.get((view.format.lstrip("<>=@"), view.itemsize))
    except (TypeError, ValueError, BufferError):
        return None, None


def as_buffer(data: Any, given: str) -> Any:
    """Return an array of any library, of this dtype, as a buffer; of bfloat16 its bits."""
    if given == "complex128":
        raise TypeError(f"{given} is not a dtype here; take .real and .imag")
    if hasattr(data, "detach"):  # torch: from any device; conjugated or negative bits as they are
        data = data.detach().cpu().resolve_neg().resolve_conj()
    bits = "int16" if given == "bfloat16" else "uint8" if given[:6] in ("float8", "float4") else ""
    if bits and hasattr(data, "view"):  # ml_dtypes, jax, torch: not a buffer
        data = data.view(getattr(sys.modules["torch"], bits) if hasattr(data, "detach") else bits)
    return data.__array__() if hasattr(data, "__array__") else data


def _from_opaque(view: Any, given: str) -> Tensor:
    """Return an array of a type without values here, for the format that holds its bytes."""
    code = [code for code, name in TORCH_TYPES.items() if name == given != code][0]
    shape, raw = view.shape, view.tobytes()
    if NATIVE == ">" and given == "complex64":
        raw = swap(raw, 4)
    if given.endswith("_x2"):
        shape = shape[:-1] + (2 * shape[-1],)
    format, key = FEATURES["opaque"]
    why = f"{given} has no values here, only bytes, which {format} can hold"
    stored = Storage(Memory(raw), len(raw), why=why)
    return Tensor("", None, shape, stored, 0, (key, code), format)
# </save>


# -- [6b] sparse ---------------------------------------------------------------------------------

MAX_DENSE = 1 << 30  # bytes of the dense form


class Sparse(Tensor):
    """A tensor of which some elements are stored (csr or coo); it is read as its dense form."""

    __slots__ = ("_parts",)  # Tensors, when they have been opened

    @property
    def components(self) -> "Dict[str, Tensor]":
        """The parts: values, and indptr and indices (csr) or coords (coo)."""
        if not hasattr(self, "_parts"):
            parts = open_sparse(self, self.stored.entry)
            why = find_bad_index(self.shape, parts, find_format(str(self.format)).RISING)
            if why:
                raise self.error(why)
            self._parts = parts
        return Map(self._parts.items())

    def todense(self) -> Tensor:
        return self.contiguous()

    @property
    def layout_keys(self) -> Any:
        return () if self.format is None else find_format(self.format).LAYOUT_KEYS

    def cost(self, most: int) -> int:
        """Return how many bytes its parts are when decoded; over `most`, perhaps some only."""
        parts, entry, first = getattr(self, "_parts", None), self.stored.entry, 0
        if parts is None:  # their sizes lie in one of them
            blob, indptr = entry.parts.get("data"), entry.parts.get("indptr")
            if blob is not None:
                first = 8 * (blob.nbytes if blob.encoding == "raw" else self.nbytes)
            elif indptr is not None:
                first = min(8 * sum(self.shape[:1]) + 8, indptr.nbytes << 15)
            if first > most:
                return first
            parts = open_sparse(self, entry)
        return sum([part.nbytes for part in parts.values()])

    def blocks(self) -> Chunks:
        """Yield the dense form: zeros, and the values in their places."""
        parts, size = self.components, self.check_readable()
        if self.nbytes > MAX_DENSE:
            raise self.error(f"{self.nbytes} bytes if dense, MAX_DENSE = {MAX_DENSE}", Unsupported)
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
        if "stored" in changes:  # its dense form: what described the parts is gone
            changes.setdefault("attrs", self.attrs_without(self.layout_keys))
        new = super().copy(**changes)
        if isinstance(new, Sparse) and hasattr(self, "_parts"):
            new._parts = self._parts
        return new

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
            parts[key] = part.in_memory(b"".join([element for _, element in elements]))
        return parts

    @staticmethod
    def make(dtype: Any, shape: Any, components: Any, attrs: Facts) -> Tensor:
        """Return a sparse Tensor of its parts, each as tensor() takes it."""
        shape = None if shape is None else as_shape(shape)
        layout = {("coords", "values"): "coo", ("indices", "indptr", "values"): "csr"}.get(
            tuple(sorted(components)))
        if shape is None or layout is None or (layout == "csr" and len(shape) != 2):
            raise ValueError("a sparse tensor needs shape= and components {values, coords}, or a "
                             "shape of rank 2 and {values, indptr, indices}")
        parts: "Dict[str, Tensor]" = Map()
        for key in sorted(components, reverse=True):  # values first
            part = tensor(components[key], dtype if key == "values" else None)
            if key != "values" and part.dtype not in INDEX_TYPES:
                part = part.astype("uint64")
            nnz = parts.get("values", part).size
            dims = part_shapes(layout, shape, nnz)[key]
            if part.size != count_elements(dims):
                raise ValueError(f"{key} has {part.size} elements, {nnz} values of shape "
                                 f"{show(shape)} need {count_elements(dims)}")
            parts[key] = part.contiguous().copy(shape=dims, name=key)
        why = find_bad_index(shape, parts)
        if why is not None:
            raise ValueError(why)
        return Sparse.join(parts, shape, "", Map(attrs.items()), None)


FEATURES["sparse"] = Sparse
INDEX_TYPES = ("uint64", "uint32")
BLOBS = ("sparsecsr", "sparsecoo")  # layouts of one blob
LAYOUTS.update([(layout, Sparse) for layout in ("csr", "coo", "sparse") + BLOBS])


def open_sparse(item: Tensor, entry: Any) -> "Dict[str, Tensor]":
    """Return the parts of a sparse tensor of a file; raise where they cannot be its parts."""
    if entry.fault is not None:
        raise item.error(*entry.fault)
    nnz, shape = entry.nnz, entry.shape
    if entry.layout in ("csr", BLOBS[0]) and len(shape) != 2:
        raise item.error(f"{entry.layout} needs rank 2, this is rank {len(shape)}")
    if entry.layout in BLOBS:
        return split_blob(item, entry)
    for role, count in ("values", 1), ("coords", len(shape)):  # a size tells it, too
        part = entry.parts.get(role)
        if nnz is None and count and part is not None and part.decoded_nbytes is not None:
            nnz = part.decoded_nbytes // ITEMSIZE.get(part.dtype, 8) // count
    if nnz is None and entry.layout == "csr":
        nnz = open_part(item, entry, "indptr", (shape[0] + 1,))[shape[0]]
    if nnz is None:
        raise item.error("the number of elements is missing, and the values are compressed")
    return Map([(role, open_part(item, entry, role, dims))
                for role, dims in part_shapes(entry.layout, shape, nnz).items()])


def open_part(item: Tensor, entry: Any, role: str, shape: Shape) -> Tensor:
    """Return a part of a sparse tensor; raise where its bytes are not those of the shape."""
    part = entry.parts.get(role)
    if part is None or (role != "values" and part.dtype not in INDEX_TYPES):
        raise item.error(f"no {role} of uint64 or uint32", Unsupported)
    if part.why is not None:
        raise item.error(part.why, Unsupported)
    name = entry.name if role == "values" else role
    made: Tensor = part.open(item.stored.source, name, shape, (), item.format)
    wrong = part.misfit(shape, made.size * made.check_readable())
    if wrong is not None:
        raise item.error(wrong[1], field=role if part.source else "data")
    return made


def split_blob(item: Tensor, entry: Any) -> "Dict[str, Tensor]":
    """Return the parts of one blob: of its decoded bytes, swapped where it is big-endian.

    sparsecsr: indptr uint64 [rows + 1] | indices uint64 [nnz] | values [nnz]
    sparsecoo: of each element the coordinates uint64 [rank] | value
    """
    blob, dtype, shape = entry.parts["data"], str(entry.dtype), entry.shape
    size, rank, nbytes = ITEMSIZE[dtype], len(shape), blob.nbytes
    if blob.encoding != "raw":
        nbytes = count_elements(shape) * size
    base = blob.open(item.stored.source, item.name, (nbytes // size,), (), item.format)
    layout, step, head = "coo", 8 * rank + size, 0  # bytes of an element, and in front of them
    if entry.layout == BLOBS[0]:
        layout, step, head = "csr", 8 + size, 8 * shape[0] + 8
    nnz, rest = divmod(nbytes - head, step)
    if nnz < 0 or rest:
        raise item.error(f"{nbytes} bytes, expected {head} and {step} for each element")
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
    return f"element {ordered[twice[0]]} occurs twice" if twice else None


def find_places(shape: Shape, parts: "Dict[str, Tensor]") -> "List[int]":
    """Return the row-major number of each stored element."""
    if "coords" in parts:
        nnz = parts["values"].size
        places = [0] * nnz
        for numbers, n in zip(pieces(parts["coords"].data, nnz or 1), shape):
            places = [place * n + i for place, i in zip(places, numbers)]
        return places
    indptr, indices = parts["indptr"].data, parts["indices"].data
    return [i * shape[1] + column for i in range(shape[0])
            for column in indices[indptr[i]:indptr[i + 1]]]


# -- [6c] quantized ------------------------------------------------------------------------------


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


DEQUANTIZE = '; .dequantize() or convert(cast="float32"), --cast float32'


class Quantized(Tensor):
    """A tensor of dtype "qfloat": numbers of few bits, to be multiplied by scales."""

    __slots__ = ()
    SCHEMES: Any  # of the one format that has such tensors

    def check_readable(self) -> int:
        raise self.error(f"qfloat cannot be read element by element{DEQUANTIZE}", Unsupported)

    blocks = Tensor.stored_blocks

    @property
    def scheme(self) -> Facts:
        """How it is stored, in the words of its format."""
        if self.SCHEMES.KEY not in self.attrs:
            raise self.error("no quantization scheme is known for it", Unsupported)
        return self.SCHEMES.scheme_of(self.attrs[self.SCHEMES.KEY])

    def plan(self) -> Plan:
        plan: Plan = self.SCHEMES.plan(self, self.scheme)
        if plan.nbytes != self.stored.nbytes:
            raise self.error(f"{self.stored.nbytes} bytes stored, the scheme needs {plan.nbytes}",
                             Unsupported)
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
        """Return some of the scales."""
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
        return new_tensor(dtype, self.shape, join_blocks(blocks), "<", self.name, self.format)

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
            raise self.error(what + "; use blocks that divide the last dimension", Unsupported)
        return Cast(self, "float32")

    def cast_blocks(self, dtype: str) -> Chunks:
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
        known = Quantized.SCHEMES
        if shape is None or not isinstance(known.scheme_of(attrs.get(known.KEY)), dict):
            raise ValueError("qfloat needs bytes, shape= and " + known.NEEDS)
        raw = bytes(memoryview(data))
        stored = Storage(Memory(raw), len(raw))
        return Quantized("", "qfloat", as_shape(shape), stored, 0, Map(attrs.items()))


def minifloat(kind: str, code: int) -> float:
    """Return the value of an 8- or 4-bit float: E4M3, E5M2, E2M1 or (no sign) E8M0."""
    if kind == "E8M0":
        return float("nan") if code == 255 else 2.0 ** (code - 127)
    if kind == "E4M3" and code & 127 == 127:
        return float("nan")
    # Shifted to the bits of a float16, the others differ from it by a power of two.
    low, shift, factor = {"E5M2": (7, 8, 1), "E4M3": (7, 7, 1 << 8), "E2M1": (3, 9, 1 << 14)}[kind]
    bits = code >> low << 15 | (code & (1 << low) - 1) << shift
    return float(unpack_from("<e", pack("<H", bits), 0)[0] * factor)


# -- [7] formats ---------------------------------------------------------------------------------
# <tools>
#
# To add a format: 1. a room with one class below Format, its line in the contents, an object of it
# in FORMATS. Its docstring draws the layout; its attributes say what the generic rooms ask (dtypes,
# suffixes, IN_FRONT ...). 2. Fixed fields are rows of a Record, maps of the index rows of a Schema:
# they check what is read and what will be written, and explain both. 3. read(cursor) reads the
# header with cursor.record() and returns (attrs, metadata, tensors). The index: cursor.cbor() or
# read_json(), then cursor.open_entries() makes a Tensor of each entry; or by records, each behind
# cursor.where = "tensors", i, which also stands before each Tensor. admit() checks what is the same
# in all formats. raise cursor.error(what, *path), or cursor.fault() for one tensor: the path leads
# to the field, its offset comes from a second parse. Storage(why=...) and an attr of DTYPE_ATTRS
# keep bytes of unknown types. 4. write() calls check_items() and refuse(), then returns lay_out()
# of the head and the tensors. 5. Load, save, explain, verify, convert, vendor and the command line
# need nothing more. An index with thousands of entries is opened faster with Usual or UsualJson.
# Tests: a Row, goldens, bad files, a reader in .ci/tiny.py, `--accept`; it is also in README.
# </tools>

U64 = "0 to 2**64-1"
KINDS: Facts = {  # of the values in a map of an index: type, what it must be besides, in words
    "text": (str, None, "text"), "map": (Map, None, "a map"),
    "unsigned": (int, lambda n: 0 <= n < 1 << 64, "an integer " + U64),
    # <later>
    "range": (list, lambda x: len(x) == 2 and all_u64(x), "an array of two integers " + U64),
    # </later>
    # <burnpack safetensors>
    "span": (list, lambda x: len(x) == 2 and all_u64(x) and x[0] <= x[1],
             "[start, end), integers " + U64),
    # </burnpack safetensors>
    "numbers": (list, all_u64, "an array of integers " + U64)}


class Schema:
    """What a map of an index holds: rows (key, kind, needed, doc[, inside]).

    The rows check what is read and what will be written, and explain each field. A kind is "any",
    one of KINDS, a tuple of texts, a function that returns what a wrong value should be, or the
    Schema of a map. `needed`: True, False, or None where null does for absent. `inside`: a Schema
    that explains what lies in a value of another kind. `other`: (kind, doc[, inside]) of all other
    keys. `keys`: (function, words) for keys that must be so. `of`: list for an array, where the
    keys are indices.
    """

    TEXT = (lambda key: type(key) is str), "text"  # for `keys`

    def __init__(self, *rows: Any, other: Any = ("any", "unknown here"), keys: Any = None,
                 of: Any = Map, doc: str = "") -> None:
        self.rows: Facts = Map([(row[0], (row[1],) + row[3:]) for row in rows])  # as `other`
        self.other, self.keys, self.of, self.doc = other, keys, of, doc
        self.needed = [row[0] for row in rows if row[2]]
        self.nullable = [row[0] for row in rows if row[2] is None]

    def about(self, key: Any) -> Any:
        """Return (what the value of a key means, the Schema of what lies in it or None)."""
        kind, doc, *inside = self.rows.get(key, self.other)
        return doc, kind if isinstance(kind, Schema) else inside[0] if inside else None

    def wrongs(self, found: Any, *path: Any) -> Chunks:
        """Yield (path, why) of all that is wrong in a map, and in the maps inside of it."""
        if type(found) is not self.of:
            yield path, f"it is {show(found)}, expected {'a map' if self.of is Map else 'an array'}"
            return
        pairs: Any = found.items() if self.of is Map else enumerate(found)
        for key, value in pairs:
            kind = self.rows.get(key, self.other)[0]
            if self.keys is not None and not self.keys[0](key):
                yield path + (key,), f"the key {show(key)} is not {self.keys[1]}"
            elif kind == "any" or (value is None and key in self.nullable):
                continue
            elif isinstance(kind, Schema):
                yield from kind.wrongs(value, *path + (key,))
            else:
                words = self.misfit(kind, value)
                if words:
                    name = plain(key) if isinstance(key, str) else show(key)
                    yield path + (key,), f"{name} is {show(value)}, expected {words}"
        for key in self.needed:
            if key not in found:
                yield path, f"the entry lacks {key!r}"

    @staticmethod
    def misfit(kind: Any, value: Any) -> Any:
        """Return what a value should be, or "" where it is of its kind."""
        if callable(kind):
            return kind(value)
        python, fits, words = KINDS.get(kind) or (str, kind.count, " or ".join(kind))
        return "" if type(value) is python and (fits is None or fits(value)) else words


class Format:
    """What every format answers. FORMATS has one object of each.

    >>> [kind.NAME for kind in FORMATS if "bfloat16" not in kind.DTYPES]
    ['mag', 'primitiv', 'tensorbuffers']
    """

    NAME = FAMILY = ""  # FAMILY: NAME of the first generation, File.format of all of them
    VERSION = ""  # the option version= of save that asks for this generation; "": not written
    TITLE = ""  # as a person calls it
    HOLDS = ""  # what besides tensors
    SUFFIXES: "Tuple[str, ...]" = ()
    MAGICS: "Tuple[bytes, ...]" = ()  # how its files begin, refused generations too
    MARKED = True  # every file begins with one of the MAGICS
    BOARDS = True  # in copies for boards that name no formats
    OTHERS: "Tuple[Tuple[bytes, str], ...]" = ()  # (how it begins, what it is): not read
    DTYPES: Any = ()
    OPTIONS: "Dict[str, str]" = {}  # of save: name -> doc
    READ_OPTIONS: "Dict[str, str]" = {}  # of load
    FILE_ATTRS: "Tuple[str, ...]" = ()  # File.attrs that save knows
    TENSOR_ATTRS: "Optional[Tuple[str, ...]]" = ()  # None: any (custom fields)
    DTYPE_ATTRS: "Tuple[str, ...]" = ()  # TENSOR_ATTRS that describe the dtype
    LAYOUT_KEYS: "Tuple[str, ...]" = ()  # TENSOR_ATTRS that say how a sparse tensor is stored
    RISING = False  # columns of csr must rise in each row
    CONTENT: "Tuple[str, ...]" = ()  # attrs that a conversion must not drop
    CARRIES: "Tuple[str, ...]" = ()  # formats of which it can store such attrs of tensors
    TEXTS = False  # its metadata are any text to text
    IDLE_KEYS: "Tuple[str, ...]" = ()  # keys of metadata that a conversion may drop
    USES: "Tuple[str, ...]" = ()  # optional rooms that its files can need
    MAX_RANK = 1 << 31  # of a tensor that is written
    DIM_BITS = 64  # that a dimension may have
    DATA_ORDER = False  # a File is saved in the order of its data, not of its index
    READER: Any = Cursor  # what read() takes
    ALIGN = 1  # in bytes: tensors begin at multiples of it, padding between
    PAD_INSIDE = 0  # fewer zeros between two fields of the index are padding
    PAD_END = ""  # "data" or "structure": padding also where the file ends behind it
    CHECKS: "Tuple[str, ...]" = ("magic", "index", "sizes", "bounds")  # of verify(), as they come
    MARKS: "Dict[str, str]" = {}  # label in its layout -> names or kinds of the fields there
    CODED = "zstd blob"  # what verify() decodes
    WRITES = True  # save() writes it
    IN_FRONT = False  # what says where a tensor is lies in front of it: load(partial=True)
    NEEDS: "Tuple[str, ...]" = ()  # formats that a copy with this one has, too

    def __repr__(self) -> str:
        return f"<format {self.NAME}>"

    def detect(self, head: bytes) -> bool:
        """Return whether a file that begins so is of this format, of any generation."""
        return bool([magic for magic in self.MAGICS if head[:len(magic)] == magic])

    def check_magic(self, cursor: Any, magic: bytes) -> None:
        """Raise unless the file begins with its magic; refuse other generations by name."""
        head = cursor.head(len(magic))
        if head and head == magic[:len(head)]:
            return
        what, error = f"not a {self.NAME} file: it begins with {quote(head)}", FormatError
        digits = bytes([48 if 48 <= byte < 58 else byte for byte in head])
        for start, name in self.OTHERS:  # 0000 stands for any digits
            if start in (head[:len(start)], digits[:len(start)]):
                what, error = f"{name}; only {self.TITLE} is read", Unsupported
        raise cursor.error(what, "magic", offset=0, check="magic", error=error)

    read: Any = None  # (cursor) -> (attrs, metadata, tensors); no byte of a tensor is read

    def make_file(self, source: Any, parsed: Any, options: Any) -> File:
        """Return what load() returns, of what parse() returns."""
        return File(self, source, parsed[0], parsed[1], parsed[2], options)

    check_range: Any = None  # (source, offset, nbytes, digest) -> (status, why): row of checksums()

    def checksums(self, tensor: Tensor) -> Chunks:
        """Yield (label, offset, nbytes, digest) of each checksum of a tensor."""
        return iter(())

    def hash_cost(self, nbytes: int, digest: Any) -> "Tuple[int, int]":
        """Return (bytes hashed, bytes hashed slowly) by check_range() for a row of checksums()."""
        return nbytes, 0

    def no_end(self, cursor: Reader, field: str, check: str = "index") -> FormatError:
        """Return the error of a file whose end is not that of its format."""
        what = f"the end is missing: it does not end as a {self.TITLE} file does"
        return cursor.error(what, field, check=check)

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

    def why_slow(self) -> str:
        """Return why saving is slow here, for the line of Progress."""
        return ""

    def odd_bytes(self, tensor: Tensor, done: Any) -> "Optional[Tuple[int, str]]":
        """Return (position, what is wrong) of a byte that no value has; `done`: ranges seen."""
        return None

    verify_shards: Any = None  # (source, attrs, deep, verify): rows (status, text, tensor)

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        """Yield what real libraries make of a file, other than we do; `odd`: the reader's own."""
        return iter(())

    def is_content(self, key: str) -> bool:
        return key in self.CONTENT

    def loaded_name(self, name: str, options: Facts) -> str:
        """Return the name that a tensor saved with this one has when loaded."""
        return name

    def check_options(self, options: Any) -> None:
        check_options(options, self.OPTIONS, f"saving {self.NAME}")

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        """Check everything, then return an iterator over the bytes of the file."""
        raise NotImplementedError

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
        problems, fine = [], {}  # fine: classes, dtypes, shapes
        for name, item in items:
            key = type(item), item.dtype, item.shape
            if key not in fine or item.stored.why:
                wrong = [(name, why) for why in self.misfits(item)]
                problems += wrong
                if not wrong and item.dtype in self.DTYPES:
                    keep(fine, key, True)
            if item._attrs and item.format is None and self.TENSOR_ATTRS is not None:
                problems += [(name, f"attribute {show(key)} is not known here")
                             for key in item.attrs if key not in self.TENSOR_ATTRS]
        texts = [f"{show(key)} = {show(metadata[key])} ({why})"
                 for key, why in self.misfit_metadata(metadata, options)]
        if texts:
            raise ValueError("metadata that %s cannot hold: %s; metadata={} leaves it out"
                             % (self.TITLE, ", ".join(texts)))
        names = [name for name, _ in items]
        text = "".join(names)
        if is_text(text) and "\0" not in text and "" not in names and (
                max(map(len, names), default=0) < 256):  # characters of up to 4 bytes
            return problems  # names that no format refuses
        return problems + [(name, why) for name in names for why in self.check_name(name)]

    def misfits(self, item: Tensor) -> Chunks:
        """Yield why a tensor cannot be written, but for its name and attrs."""
        why = item.stored.why
        if is_sparse(item) and "sparse" not in self.USES:
            yield "sparse; .todense() or convert(dense=True)"
        if (why or item.dtype not in self.DTYPES) and not self.passes(item):
            yield why or "%s (it holds %s)%s" % (item.dtype, ", ".join(self.DTYPES),
                                                 name_remedy(item.dtype, self.DTYPES))
        if item.ndim > self.MAX_RANK:
            yield f"{item.ndim} dimensions, {self.MAX_RANK} is the limit"
        if [n for n in item.shape if n >> self.DIM_BITS]:
            yield f"a dimension over 2**{self.DIM_BITS}-1"

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


class Part:
    """Bytes of a tensor that lie together: all of a dense one, the values of a sparse one ..."""

    def __init__(self, role: str, dtype: "Optional[str]", offset: int, nbytes: int,
                 decoded_nbytes: "Optional[int]" = None, encoding: str = "raw", order: str = "<",
                 why: "Optional[str]" = None, digest: "Optional[str]" = None,
                 source: Any = None) -> None:
        self.role, self.dtype, self.offset = role, dtype, offset
        self.nbytes = nbytes  # as stored
        self.decoded_nbytes = nbytes if encoding == "raw" else decoded_nbytes  # None: not known
        self.encoding, self.order = encoding, order
        self.why = why  # why its values cannot be read, or None
        self.digest, self.source = digest, source  # of the file; what has its bytes, if not it

    def misfit(self, shape: Any, need: int) -> "Optional[Tuple[str, str]]":
        """Return (attribute, why) of what cannot be if it holds `need` bytes, or None."""
        given = self.decoded_nbytes
        wrong = "nbytes" if given is None or self.encoding == "raw" else "decoded_nbytes"
        if self.encoding in ENCODINGS and (
                not self.nbytes or need > ENCODINGS[self.encoding].most * self.nbytes):
            return wrong, f"{self.nbytes} stored bytes cannot decompress to {show(need)}"
        if given in (None, need):
            return None
        return wrong, say_need(f"{given} bytes", self.dtype, shape, need)

    def open(self, source: Any, name: str, shape: Shape, attrs: Any, format: Any) -> Tensor:
        stored = Storage(self.source or source, self.nbytes, None, self.order, self.encoding,
                         self.why)
        return Tensor(name, self.dtype, shape, stored, self.offset, attrs, format)


def part_shapes(layout: str, shape: Any, nnz: Any) -> "Dict[str, Shape]":
    """Return the shapes of the parts by role; `nnz`: elements stored of a sparse tensor."""
    if layout == "csr":
        return Map([("values", (nnz,)), ("indptr", (shape[0] + 1,)), ("indices", (nnz,))])
    if layout == "coo":
        return Map([("values", (nnz,)), ("coords", (len(shape), nnz))])
    return {"data": shape} if layout == "dense" else {}


class Entry:
    """A tensor of several parts as an index describes it.

    Layouts: csr (values, indptr, indices), coo (values, coords), sparse (values, and what a wrong
    entry has of the others), sparsecsr and sparsecoo (data: one blob of all, see [6b]), "" (any:
    the layout is not known, the parts are listed).
    """

    def __init__(self, name: str, dtype: "Optional[str]", shape: Shape, layout: str, attrs: Any,
                 parts: "Dict[str, Part]", why: "Optional[str]" = None) -> None:
        self.name, self.dtype, self.shape, self.layout = name, dtype, shape, layout
        self.attrs, self.parts = attrs, parts
        self.why = why  # why its values cannot be read, or None
        self.nnz: Any = None  # elements stored, where a field of a sparse tensor says it
        self.fault: Any = None  # arguments of Tensor.error(), raised for its values

    def main(self) -> Part:
        """Return the part whose bytes are the tensor's `.raw`."""
        for role in ["data", "values"] + list(self.parts):
            if role in self.parts:
                return self.parts[role]
        return Part("", None, 64, 0)

    def open(self, source: Any, format: str) -> Tensor:
        """Return the tensor; no byte of it is read."""
        main, encoding, why = self.main(), "sparse", None
        if not self.layout:
            encoding, why = main.encoding, main.why or self.why
        stored = Storage(source, main.nbytes, None, "<", encoding, why, self)
        return LAYOUTS[self.layout](self.name, self.dtype, self.shape, stored, main.offset,
                                    self.attrs, format)

    def ranges(self) -> Any:
        """Return (offset, nbytes, role) of its parts; "" is the role of its values."""
        main = self.main()
        return [(part.offset, part.nbytes, "" if self.layout and part is main else part.role)
                for part in self.parts.values() if part.source is None] or [(main.offset, 0, "")]


# <later>
class Compound(Tensor):
    """A tensor of a layout that is not known here: its parts can be read one by one."""

    __slots__ = ()

    @property
    def components(self) -> "Dict[str, Tensor]":
        """The parts as flat tensors, by role."""
        found = Map()
        for role, part in self.stored.entry.parts.items():
            nbytes = part.nbytes if part.decoded_nbytes is None else part.decoded_nbytes
            count = nbytes // ITEMSIZE.get(part.dtype, 1)
            found[role] = part.open(self.stored.source, role, (count,), (), self.format)
        return found

    def __reduce__(self) -> Any:
        """Pickle as a Tensor does; by value: with a copy of the bytes of all parts."""
        old, parts, data = self.stored.entry, Map(), b""
        if isinstance(self.stored.source, Path):
            return super().__reduce__()
        for role, part in old.parts.items():
            parts[role] = Part(role, part.dtype, len(data), part.nbytes, part.decoded_nbytes,
                               part.encoding, part.order, part.why, part.digest)
            data += bytes(self.stored.source.view(part.offset, part.nbytes))
        entry = Entry(self.name, self.dtype, self.shape, "", self.attrs, parts, old.why)
        return entry.open, (Memory(data), str(self.format))


LAYOUTS[""] = Compound
# </later>


def admit(reader: Reader, items: Any, low: float = -INFINITY, high: float = INFINITY,
          fields: Any = ("", "", "")) -> Facts:
    """Return the tensors of a file by name; check the rules that all formats share.

    `items`: Tensors in the order of the index, each with reader.where at its record; None: a fault
    was noted. Names are unique, raw bytes are what dtype and shape need, all lie from `low` to
    `high`. `fields` of the record have name, size and place, for errors; "": the record itself.
    """
    tensors: "Dict[str, Tensor]" = Map()
    cut: Any = None  # path of the first one that is not whole
    fitting = set()  # Storages of the right size
    for item in items:
        if item is None:
            continue
        if FAST and type(item) is Run:  # Usual has checked all but names that are elsewhere, too
            count = len(tensors) + len(item.tensors)
            if tensors:
                tensors.update(item.tensors)
            else:  # the first one, mostly the only one
                tensors = item.tensors
            if len(tensors) < count:
                raise reader.error("two tensors have one name")
            continue
        name, stored = item.name, item.stored
        if FAST and stored in fitting and name not in tensors and (
                low <= item.start <= high - stored.nbytes):
            tensors[name] = item  # as most are
            continue
        path = admit_one(reader, item, tensors, low, high, fields)
        if path is not None:
            cut = cut or path
            if reader.run:
                break
        elif FAST and reader.trace is None:
            fitting.add(item.stored)
    reader.where, reader.tensor = (), None
    if cut is not None:
        keep_whole(reader, tensors, *cut)
    return tensors


def admit_one(reader: Reader, item: Tensor, tensors: Facts, low: float, high: float,
              fields: Any) -> Any:
    """Add a tensor, or note a fault; return the path of its place if it is not whole, or None."""
    # <tools>
    if reader.trace is not None and reader.trace.owners is not None:
        reader.trace.owners[reader.prefix] = item.name
    # </tools>
    stored, start, nbytes = item.stored, item.start, item.stored.nbytes
    number, what, check = 0, "", "index"
    if item.name in tensors:
        what = "two tensors have this name"
    elif nbytes and not low <= start <= high - nbytes:
        number, check = 2, "bounds"
        what = f"data at {start} to {start + nbytes}, but the data area is {low} to {high}"
    elif item.dtype in ITEMSIZE and stored.encoding == "raw" and stored.why is None:
        need = count_elements(item.shape) * ITEMSIZE[item.dtype]
        if need != nbytes:
            number, check = 1, "sizes"
            what = say_need(f"{nbytes} bytes stored", item.dtype, item.shape, need)
    path = (fields[number],) if fields[number] else ()
    if check == "bounds" and start >= low and isinstance(reader, Cursor):
        tensors[item.name] = item
        return reader.where + path
    if what:
        reader.fault(what, *path, tensor=item.name, check=check)
    else:
        tensors[item.name] = item
    return None


def say_need(words: str, dtype: "Optional[str]", shape: Any, need: int) -> str:
    """Return the message for so many bytes, where a dtype and a shape need others."""
    wanted = need if need < 1 << 64 else "more than 2**64"
    return f"{words}, {dtype or 'its type'} {show(shape)} needs {wanted}"


def keep_whole(reader: Any, tensors: Facts, *path: Any) -> None:
    """Keep the tensors that lie whole in the file; the others are a fault, or `missing`."""
    ends = dict([(item.name, item.start + item.stored.nbytes) for item in tensors.values()])
    cut = [name for name, end in ends.items() if end > reader.end]
    for name in cut:
        del tensors[name]
    if cut:
        wants = "the tensors up to here want" if reader.run else "the index wants"
        tell_cut(reader, reader.error(f"{wants} {max(ends.values())}", *path), path, cut,
                 len(tensors), len(ends))


def tell_cut(reader: Any, error: FormatError, path: Any, missing: "List[str]", whole: int,
             count: int) -> None:
    """Note the error of a file that was cut short, or which tensors are missing."""
    error.what = (f"cut short: {count_of(reader.end, 'byte')}, {error.what}; "
                  f"{whole} of {count} tensors are whole")
    error.tensor, error.check = None, "bounds"
    # <tools>
    if reader.run and path[1:] and reader.last > path[1]:  # of a run the names are not known
        more = [f"{path[0]}[{i}]" for i in (path[1] + 1, reader.last)]
        missing = missing + [" to ".join(Map.fromkeys(more))]
        error.what += f"; behind them: {missing[-1]}"
    if reader.missing is not None:
        reader.missing += missing
        return
    if whole:
        error.what += "; load(partial=True), get or convert --partial take the whole ones"
    # </tools>
    reader.add_fault(error)


class Run:
    """Tensors whose entries directly follow each other in the index; Usual makes them."""

    def __init__(self) -> None:
        self.tensors: "Dict[str, Tensor]" = Map()


class Usual:
    """Reads the entries of an index in CBOR that are written as most are, many at once.

    `rows`: (bytes in front, what[, pattern]) of an entry behind its name; what: "start", "size",
    "stop", the key of an attr, or "" for what few kinds of entries differ in, as the shape.
    open_entry(name, entry) is that of the format, for an entry that agrees with `schema`. "start"
    counts from `base`, is a multiple of `step` and `low` at least; data end at `high` at most.
    `lead`: bytes before the name in an array; in a map the name is the key.

    One pattern finds the usual entries. Those that directly follow another one are a Run. It is
    taken out of the index; a HOLE takes its place, a text with digits that are nowhere else. The
    plain reader reads what is left: where it finds the HOLE as an entry, there the Run can stand.
    It also reads one entry of each kind, and must find in it what the rows say. ValueError inside:
    only the plain reader can tell.
    """

    HOLE = "8315206794"  # and a number
    NUMBER = (rb"[\0-\x17]|\x18[\x18-\xff]|\x19[\1-\xff][\0-\xff]|\x1a(?!\0\0)[\0-\xff]{4}|"
              rb"\x1b(?!\0{4})[\0-\xff]{8}")
    DIGEST = rb"\x71[!-~]{17}|\x78\x47[!-~]{71}|"  # or none
    DIM = rb"(?:[\1-\x17]|\x18[\x18-\xff]|\x19[\1-\xff][\0-\xff]|\x1a(?!\0\0)[\0-\xff]{4})"
    SHAPE = rb"\x65shape(?:\x80|\x81D|\x82D{2}|\x83D{3}|\x84D{4}|\x85D{5})".replace(b"D", DIM)

    PIECE = 1 << 15  # bytes of the index that are looked at together
    patterns: Any = {}  # of rows, compiled

    def __init__(self, rows: Any, schema: Schema, open_entry: Any, low: int = 0, step: int = 1,
                 high: int = 1 << 64, base: int = 0, lead: bytes = b"") -> None:
        self.rows, self.schema, self.open_entry = rows, schema, open_entry
        self.low, self.step, self.high, self.base, self.lead = low, step, high, base, lead
        self.likes: Any = {}  # kind but for the shape -> a Tensor, its attrs around its own one

    def read(self, data: bytes, plain_read: Any) -> Any:
        """Return (value, position behind it, number of its Runs), or None: nothing is usual.

        plain_read(text, runs=Runs by their HOLEs) returns the first two.
        """
        if len(data) < 1 << 17 and "re" not in sys.modules:  # its import would take longer
            return None
        self.plain_read = plain_read
        try:
            text, runs = self.take_out(data)
            count = len(runs)
            value, end = plain_read(text, runs=runs)
        except (ValueError, LookupError):
            return None
        return None if runs else (value, end + len(data) - len(text), count)

    def take_out(self, data: bytes) -> "Tuple[bytes, Facts]":
        """Return the index with HOLEs, and the Run of each."""
        known: Any = {}
        runs, texts, tensors, count = Map(), [], None, 0
        low, step, base = self.low, self.step, self.base
        for heads, columns in self.split(data):
            names = self.names(heads, columns[0])
            rows = zip(range(len(names)), names, *self.values(columns))
            for i, name, start, attr, kind in rows:
                if name is None:
                    texts += [heads[i], self.text_of(columns, i)]
                    tensors = None
                    continue
                alike = known.get(kind)
                if alike is None:
                    alike = known[kind] = self.learn(kind, name, start, attr, columns, i)
                dtype, shape, stored, last, flat, more, format = alike
                if start % step or not low <= start <= last:
                    raise ValueError
                if attr is not more:  # they are not both None
                    if attr is None or more is None:
                        raise ValueError
                    flat += (attr,) + more
                if heads[i] or tensors is None:
                    hole = f"{self.HOLE}{len(runs)}"
                    tensors = runs.setdefault(hole, Run()).tensors
                    texts += [heads[i], self.pack_hole(name, hole)]
                tensors[name] = Tensor(name, dtype, shape, stored, base + start, flat, format)
            texts.append(heads[-1])
            count += len(names) - names.count(None)
        text = b"".join(texts)
        found = sum([len(run.tensors) for run in runs.values()])
        if (not runs or found < count  # a name twice
                or text.count(self.HOLE.encode()) > len(runs) or b"\\u003" in text):
            raise ValueError
        return text, runs

    def split(self, data: bytes) -> Any:
        """Yield (what is in front of each entry, and behind all; for each row its texts in all).

        Some hundred entries at a time: what is not kept of them is gone before the next ones.
        """
        if self.rows not in self.patterns:
            import re
            self.patterns[self.rows] = re.compile(b"".join([
                re.escape(front) + b"(%s)" % (given or [self.NUMBER])[0]
                for front, _, *given in self.rows]))
        width, start, size = len(self.rows) + 1, 0, self.PIECE
        fronts = sum([len(row[0]) for row in self.rows])
        while start < len(data):
            found = self.patterns[self.rows].split(data[start:start + size])
            start += size
            if start < len(data):  # the last entry may go on
                if len(found) <= 2 * width:
                    start, size = start - size, 2 * size
                    continue
                start -= fronts + sum(map(len, found[-width - 1:]))
                found[-width - 1:] = [b""]
            columns = [found[i::width] for i in range(1, width)]
            yield found[::width], columns

    def text_of(self, columns: Any, i: int) -> bytes:
        """Return the bytes of an entry behind its name."""
        return b"".join([row[0] + column[i] for row, column in zip(self.rows, columns)])

    def values(self, columns: Any) -> Any:
        """Return starts, attrs and kinds: (size, texts in which few kinds differ) of each."""
        whats = [row[1] for row in self.rows]
        column = dict(zip(whats, columns))
        starts = list(self.numbers(column["start"]))
        sizes: Any = column.get("size")
        if "stop" in column:
            sizes = map(int.__sub__, self.numbers(column["stop"]), starts)
        attrs: Any = [None] * len(columns[0])
        for what in set(whats).difference(("", "name", "start", "size", "stop")):
            attrs = self.attrs(column[what]) if any(column[what]) else attrs
        kinds = zip(sizes, *[texts for what, texts in zip(whats, columns) if not what])
        return starts, attrs, kinds

    def learn(self, kind: Any, name: str, start: int, attr: Any, columns: Any, i: int) -> Any:
        """Return what the entries of a kind share; number i is the first."""
        import re
        nbytes, *rest = kind
        if type(nbytes) is bytes:
            nbytes, = self.numbers([nbytes])
        text = b"|".join(rest)
        found: Any = re.search(self.SHAPE, text)
        first, last = found.span()
        shape = tuple(self.numbers(re.findall(self.NUMBER, text[first + 7:last])))
        alike = text[:first] + text[last:]
        if alike not in self.likes:
            like = self.read_entry(self.alone(name, self.text_of(columns, i)), name)
            if (like.name, like.shape, like.stored.nbytes, like.start) != (
                    name, shape, nbytes, self.base + start):
                raise ValueError
            flat, more = tuple([x for pair in like.attrs.items() for x in pair]), None
            if attr is not None:
                at = flat.index(attr)
                flat, more = flat[:at], flat[at + 1:]
            self.likes[alike] = like, flat, more
        like, flat, more = self.likes[alike]
        if count_elements(shape) * ITEMSIZE[like.dtype] != nbytes:
            raise ValueError
        stored = Storage(like.stored.source, nbytes, None, like.stored.order)
        return like.dtype, shape, stored, self.high - nbytes, flat, more, like.format

    def read_entry(self, text: bytes, name: str) -> Tensor:
        """Return the Tensor that the plain reader makes of an entry, if others can be like it."""
        found, end = self.plain_read(text, runs={})
        entry = found[0] if self.lead else found.popitem()[1]
        if end < len(text) or list(self.schema.wrongs(entry)):
            raise ValueError
        like: Tensor = self.open_entry(name, entry)
        stored = like.stored
        kinds = [type(value) for value in like.attrs.values()]
        if type(like) is not Tensor or list in kinds or Map in kinds or (
                stored.strides, stored.encoding, stored.why) != (None, "raw", None):
            raise ValueError
        return like

    def numbers(self, values: Any) -> Any:
        number = int.from_bytes
        return [number(value[1:] or value, "big") for value in values]

    def attrs(self, values: Any) -> Any:
        """Return numbers and texts, None where there is none."""
        number = int.from_bytes
        return [None if not value else number(value[1:] or value, "big") if value[0] < 0x60 else
                value[1 + (value[0] == 0x78):].decode() for value in values]

    def names(self, heads: Any, column: Any) -> Any:
        """Return the name that is all of each head, and empty that; None where it is not."""
        names, lead, at = [], self.lead, len(self.lead)
        for i, head in enumerate(heads[:-1]):
            name, size = None, len(head) - at - 2
            if size > 23 and head[at + 1] == size and head[at] == 0x78 and head.startswith(lead):
                name, heads[i] = head[at + 2:].decode(), b""
            elif -2 < size < 23 and head[at] == 0x61 + size and head.startswith(lead):
                name, heads[i] = head[at + 1:].decode(), b""
            names.append(name)
        return names

    def alone(self, name: str, entry: bytes) -> bytes:
        """Return a container of one entry."""
        return (b"\x81" + self.lead if self.lead else b"\xa1") + cbor_dumps(name) + entry

    def pack_hole(self, name: str, hole: str) -> bytes:
        """Return what stands for a Run whose first tensor has this name."""
        return (b"" if self.lead else cbor_dumps(name)) + cbor_dumps(hole)


class UsualJson(Usual):
    """The same for an index in JSON; the first row is the name."""

    NAME = rb'(?!__metadata__")[^"\\\x00-\x1f]*'
    NUMBER = rb"0|[1-9]\d{0,18}"
    SHAPE = rb'"shape":\[(?:(?:[1-9]\d{0,8},)*[1-9]\d{0,8})?\]'

    def numbers(self, values: Any) -> Any:
        return map(int, values)

    def names(self, heads: Any, column: Any) -> Any:
        return b'"'.join(column).decode().split('"')

    def alone(self, name: str, entry: bytes) -> bytes:
        return b'{"":0%s}' % entry

    def pack_hole(self, name: str, hole: str) -> bytes:
        return f',"{name}":"{hole}"'.encode()


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
    0, which integers from 0 on are. Snapshots of magnetron 0.1.5 and later: [7a2], [7a3].
    """

    NAME = FAMILY = TITLE = "mag"
    VERSION = "1"
    IN_FRONT = True
    HOLDS = "metadata: numbers; up to 6 dimensions"
    SUFFIXES = (".mag",)
    MAGICS = (b"MAG!", b"MAG&")
    DTYPES = ("float32", "float16", "bool", "int32")  # in the order of their numbers, 0 to 3
    FILE_ATTRS = ("version", "layout")
    TENSOR_ATTRS = ("aux",)
    USES = ("mag100", "mag300")
    MAX_RANK = 6
    DIM_BITS = 63
    MARKS = {"end": "padding data"}
    ALIGN = 64
    PAD_END = "data"
    CHECKS = ("magic", "checksum", "index", "bounds", "sizes")
    HEADER = Record(
        ("magic", "4s", "mag"), ("version", "I", "storage version"),
        ("checksum", "I", "CRC-32 of the index"), ("num_tensors", "I", "tensor records"),
        ("num_meta_kv", "I", "metadata records"), ("aux", "I", "reserved"))
    META = Record(("type", "I", "0 u64, 1 i64, 2 float64"), ("payload", "8s", "the value's bits"),
                  ("key_length", "I", "bytes of the key"))
    KEY_LENGTH = Record(("key_length", "I", "bytes of the key"))
    SPEC = Record(("shape", "6q", "dimensions, then fill"), ("dtype", "B", "0-3: f32 f16 bool i32"),
                  ("data_length", "Q", "bytes"), ("data_offset", "Q", "offset in the file"),
                  ("aux", "I", "reserved"))
    M012 = Record(("aux", "I", "dtype + 256 * rank"), ("numel", "Q", "elements"),
                  ("data_offset", "Q", "offset in the file"))
    FOUR = "<57sQII"  # SPEC to data_length as bytes, the rest, the length of the next key
    LATER_DTYPES: Any = (  # of snapshots, by number; 100 lacks float8
        "float32 float16 bfloat16 float8_e4m3fn bool uint8 int8 uint16 int16 uint32 int32 uint64 "
        "int64").split()
    PAYLOADS = {0: "<Q", 1: "<q", 2: "<d"}
    OTHERS = ((b"MAG&", "MAG& (magnetron before July 2025) is another format"),)
    SNAPSHOTS = {100: "100 (magnetron 0.1.5, 0.1.6)", 200: "200 (magnetron 0.1.7 to 0.1.9)",
                 300: "300 (magnetron 0.2.x)"}

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"MAG!")
        header = cursor.record(self.HEADER)
        if header[1] != 1:
            what = f"version {self.SNAPSHOTS.get(header[1], header[1])} is not read, only version 1"
            raise cursor.error(what, "version", error=Unsupported if header[1] else FormatError)
        spec, walk = self._decide(cursor, header)
        if walk is None or cursor.trace is not None:  # to name the misfit, to add fields
            walk = self._walk(cursor, spec, header)
        end, meta, records = walk
        if header[5]:
            what = f"header aux is {header[5]}, a version-1 file has 0"
            cursor.defer(what, "aux", error=Unsupported)
        metadata = self._metadata(cursor, meta)
        fields = "key", "data_length" if spec else "numel", "data_offset"
        tensors = admit(cursor, self._tensors(cursor, spec, records), end, cursor.end, fields)
        for name in [name for name, item in tensors.items() if item.dtype is None]:
            del tensors[name]
        attrs = Map([("version", 1), ("layout", "spec" if spec else "magnetron-0.1.2")])
        return attrs, metadata, tensors

    def _decide(self, cursor: Cursor, header: Any) -> "Tuple[bool, Any]":
        """Return (is it the specification's layout, walk or None) by the checksum."""
        sums: Any = ()
        for spec in (True, False) if header[3] else (True,):
            try:
                walk = self._walk(Cursor(cursor.source), spec, header)
            except FormatError:
                continue
            tail = cursor.source.read(12, walk[0] - 12)
            whole = crc32(tail, crc32(b"MAG!" + pack("<II", 1, 0)))  # the checksum taken as zero
            if header[2] in (whole, crc32(tail)):
                return spec, walk
            slow = crc32c(tail)
            if header[2] == slow:  # without tensors, the types of metadata tell the library
                others = [row for row in walk[1] if row[1] not in (1, 2)]
                return spec if header[3] else bool(others), walk
            sums = sums or (header[2], whole, slow)
        if not sums:
            return True, None
        raise cursor.error("checksum: %08X stored, CRC-32 of the records gives %08X, CRC-32C %08X"
                           % sums, "checksum", offset=8, check="checksum")

    def _walk(self, cursor: Cursor, spec: bool, header: Any) -> "Tuple[int, Any, Any]":
        """Return (end, metadata, tensor records); only lengths are checked."""
        total, count, left = header[3], header[4], cursor.end - 24
        cursor.limit("num_meta_kv", count, 0, left // 16, "as many as fit (cut short?)")
        most = (left - 16 * count) // (73 if spec else 24)
        cursor.limit("num_tensors", total, 0, most, "as many as fit (cut short?)")
        cursor.seek(24)
        meta, records, kinds, code = [], [], {}, self.FOUR
        for i in range(count):
            cursor.where, at = ("metadata", i), cursor.pos
            kind, payload, nbytes = cursor.record(self.META)
            meta.append((at, kind, payload, cursor.take(nbytes, "key", "name of the number")))
        while len(records) < total:
            data, at = cursor.data, cursor.pos - cursor.base
            if spec and cursor.trace is None and at + 4 <= len(data):
                last = len(data) - 73  # of the records that lie whole in the window: one call each
                stop = at + 4 + unpack_from("<I", data, at)[0]
                while stop <= last and len(records) < total:
                    kind, offset, aux, nbytes = unpack_from(code, data, stop)
                    records.append((data[at + 4:stop], kinds.setdefault(kind, kind), offset, aux))
                    at = stop + 69
                    stop += 73 + nbytes
                cursor.pos = cursor.base + at
            if len(records) < total:  # over the edge of the window, or traced
                cursor.where = "tensors", len(records)
                records.append(self._next_row(cursor, spec))
        cursor.where = ()
        return cursor.pos, meta, records

    def _next_row(self, cursor: Cursor, spec: bool) -> "Tuple[bytes, Any, int, int]":
        """Return (key, dtype, size and shape as stored, data_offset, aux) of the next record."""
        if not spec:
            aux, numel, offset = cursor.record(self.M012)
            shape = self.read_shape(cursor, aux >> 8 & 255)
        nbytes, = cursor.record(self.KEY_LENGTH)
        key = cursor.take(nbytes, "key", "name of the tensor")
        if not spec:
            return key, (aux, numel) + shape, offset, 0
        values = cursor.record(self.SPEC)
        return key, self.SPEC.pack(*values)[:57], values[8], values[9]

    @staticmethod
    def read_shape(cursor: Cursor, rank: int) -> Any:
        return cursor.record(Record(("shape", f"{rank}Q", "dimensions"))) if rank else ()

    def _metadata(self, cursor: Cursor, meta: Any) -> Facts:
        metadata: Facts = Map()
        for i, (at, kind, payload, raw) in enumerate(meta):
            cursor.where = "metadata", i
            key = decode_text(raw)
            if not kind or 0 in raw or not 0 < len(raw) < 1 << 16:
                why = "a key that is empty, too long or has a NUL" if kind else "type 0 (u64)"
                cursor.remark("magnetron 0.1.2 does not open it: metadata with " + why, at)
            if key is None:
                cursor.fault("the key is not UTF-8", "key")
            elif key in metadata:
                cursor.fault(f"metadata key {show(key)} twice", "key")
            elif kind not in self.PAYLOADS:
                what = f"metadata {show(key)} has type {kind}; 0, 1 and 2 are known"
                cursor.defer(what, "type", error=Unsupported)
                metadata[key] = None  # so that a second one is found
            else:
                metadata[key], = unpack_from(self.PAYLOADS[kind], payload, 0)
        cursor.where = ()
        return metadata

    def _tensors(self, cursor: Cursor, spec: bool, records: Any) -> Chunks:
        end = cursor.end
        known: Any = {}  # tensors of one dtype and shape have all but key and place in common
        for i, (raw, fields, offset, aux) in enumerate(records):
            cursor.where = "tensors", i
            name = decode_text(raw)
            if name is None:
                cursor.fault("the key is not UTF-8", "key")
                continue
            if fields not in known:
                keep(known, fields, self._alike(cursor, spec, fields))
            stored, dtype, number, nbytes, shape, wrong = known[fields]
            if not spec and i == 0 and offset == 0 and fields[1] % 64 == 0:
                raise cursor.error("relative offsets (magnetron commit 6bc9747, unreleased) "
                                   "are not read", "data_offset", error=Unsupported)
            if wrong:
                cursor.fault(wrong[1], wrong[0], tensor=name, check="sizes")
                continue
            if dtype is None:
                cursor.defer(f"dtype {number} is not one of version 1 (0 to 3)",
                             "dtype" if spec else "aux", tensor=name, error=Unsupported)
            yield Tensor(name, dtype, shape, stored, offset if nbytes else min(offset, end),
                         ("aux", aux) if aux else (), self.NAME)

    def _alike(self, cursor: Cursor, spec: bool, fields: Any) -> Any:
        """Return (Storage, dtype or None, its number, bytes, shape, (field, what is wrong))."""
        if spec:  # -1 ends the shape, or 0 if there are data
            *places, number, nbytes = unpack_from("<6qBQ", fields, 0)
            rank, wrong = 0, None
            while rank < 6 and places[rank] != -1 and (places[rank] or not nbytes):
                rank += 1
            shape = tuple(places[:rank])
            if len(set(places[rank:])) > 1:
                wrong = "shape", f"dimensions behind the entry that ends the shape: {places}"
            if min(shape + (0,)) < 0:
                wrong = "shape", f"a dimension is below -1: {places}"
        else:
            aux, numel, *dims = fields
            number, shape = aux & 255, tuple(dims)
            nbytes = numel * ITEMSIZE[self.DTYPES[number]] if number < 4 else 0
            wrong = self.wrong_shape(shape, numel)
            if aux >> 16:
                wrong = "aux", "aux is 0x%x; its upper half must be 0" % aux
            elif not 1 <= len(shape) <= 6:
                wrong = "aux", f"rank {len(shape)}; 1 to 6 exist"
        dtype = self.DTYPES[number] if number < 4 else None
        return Storage(cursor.source, nbytes), dtype, number, nbytes, shape, wrong

    @staticmethod
    def wrong_shape(shape: Shape, numel: int) -> Any:
        """Return (field, what is wrong) with a shape and the number of its elements, or None."""
        if [n for n in shape if not 1 <= n < 1 << 63]:
            return "shape", f"a dimension is 0 or over 2**63-1: {show(shape)}"
        size = count_elements(shape)
        return None if numel == size else (
            "numel", f"{numel} elements, the shape {show(shape)} has {size}")

    def padding(self, start: int, stop: int, before: str, after: str, full: Any, attrs: Any) -> Any:
        rows = super().padding(start, stop, before, after, full, attrs)
        if attrs["layout"] != "spec":
            rows = [(nbytes, 255, doc) for nbytes, _, doc in rows]
            start += sum([row[0] for row in rows])
            if after == "end" and full(start, stop, 0):
                rows.append((stop - start, 0, "the writer's estimate of the size, not trimmed"))
        return rows

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        if tensors and not odd:
            yield "magnetron 0.1.2 shows the metadata, but none of the tensors"

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
        known: Any = {}  # the fields up to data_offset, by dtype and shape
        for key, value in metadata.items():
            kind, raw = 2 if isinstance(value, float) else int(value < 0), encode_text(key)
            rows.append(self.META.pack(kind, pack(self.PAYLOADS[kind], value), len(raw)) + raw)
        keys = [encode_text(name) for name, _ in items]
        end = 24 + sum([len(row) for row in rows]) + sum([73 + len(raw) for raw in keys])
        offset = round_up(end, 64) if items else end
        for raw, (_, item) in zip(keys, items):
            key = item.dtype, item.shape
            if key not in known:
                places = item.shape + (0 if item.size else -1,) * (6 - item.ndim)
                number, nbytes = self.DTYPES.index(item.dtype), min(item.nbytes, (1 << 64) - 1)
                fields = self.SPEC.pack(*places + (number, nbytes, 0, 0))[:57]
                keep(known, key, (fields, nbytes))
            fields, nbytes = known[key]  # data_offset and aux = 0 follow
            rows += [pack("<I", len(raw)), raw, fields, offset.to_bytes(12, "little")]
            starts.append(offset)
            offset += nbytes + -nbytes % 64
        if offset >> 64:
            raise ValueError("mag cannot hold 2**64 bytes of data")
        index = b"".join(rows)
        head = [b"MAG!", 1, 0, len(items), len(metadata), 0]
        head[2] = crc32(index, crc32(self.HEADER.pack(*head)))
        return self.lay_out(self.HEADER.pack(*head) + index, items, starts, offset)


# -- [7a2] mag100 --------------------------------------------------------------------------------


class Mag100(Format):
    """.mag, snapshots 100 (magnetron 0.1.5, 0.1.6) and 200 (0.1.7 to 0.1.9); read only.

    0      magic "MAG!" 4 | version u32 | timestamp u64 |
           checksum (CRC-32C over [20, end)), aux, metadata_len, tensor_count: u32 each
    32     "SRP!" | count u32 | offsets u32[count + 1] | the names | "MDT!" | "DSC!" |
           tensor_count x: rank u8, dtype u8, 0, 0 | key_id u32 | numel, offset, shape[rank]: u64
    end    "BUF!" | data; of 200 each at a multiple of 16, zeros between
    """

    NAME, FAMILY, TITLE, IN_FRONT = "mag100", "mag", "mag 100/200", True
    DTYPES = tuple([dtype for dtype in Mag.LATER_DTYPES if dtype in ITEMSIZE])
    PAD_END = "structure"
    MARKS = {"end": "buf"}
    CHECKS = ("magic", "checksum", "index", "sizes", "bounds")
    HEADER = Record(
        ("magic", "4s", "mag"), ("version", "I", "snapshot version"),
        ("timestamp", "Q", "seconds since 1970"), ("checksum", "I", "CRC-32C of the index"),
        ("aux", "I", "reserved"), ("metadata_len", "I", "0"), ("tensor_count", "I", "records"))
    COUNT = Record(("pool_count", "I", "names"))
    RECORD = Record(
        ("rank", "B", "dimensions"), ("dtype", "B", "number of the type"), ("aux", "2s", "0"),
        ("key_id", "I", "which name"), ("numel", "Q", "elements"), ("offset", "Q", "in the data"))

    def detect(self, head: bytes) -> bool:  # 100 without "SRP!" is storage 100, unreleased
        return head[:8] == b"MAG!\xc8\0\0\0" or (
            head[:8] == b"MAG!d\0\0\0" and b"SRP!".startswith(head[32:36]))

    def alignment(self, attrs: Any) -> int:
        return 16 if attrs["version"] == 200 else 1

    def read(self, cursor: Cursor) -> Any:
        _, version, timestamp, checksum, aux, metadata_len, count = cursor.record(self.HEADER)
        attrs = Map([("version", version), ("timestamp", timestamp)])
        names = self._names(cursor)
        self._marks(cursor, "MDT!", "DSC!")
        cursor.limit("tensor_count", count, 0, (cursor.end - cursor.pos) // 24,
                     "as many as fit (cut short?)")
        records = []
        for i in range(count):
            cursor.where = "tensors", i
            fields = cursor.record(self.RECORD)
            cursor.limit("rank", fields[0], 0, 63, "dimensions")
            records.append(fields + (Mag.read_shape(cursor, fields[0]),))
        cursor.where = ()
        found = crc32c(cursor.source.read(20, cursor.pos - 20))
        self._marks(cursor, "BUF!")
        if found != checksum:
            raise cursor.error("checksum: %08X stored, CRC-32C of the index gives %08X" % (
                checksum, found), "checksum", check="checksum")
        cursor.limit("aux", aux, 0, 0, "only 0 is known", Unsupported)
        cursor.limit("metadata_len", metadata_len, 0, 0, "only 0 is known", Unsupported)
        start = round_up(cursor.pos, self.alignment(attrs))
        items = self._tensors(cursor, version, names, records, start)
        tensors = admit(cursor, items, start, cursor.end, ("key_id", "numel", "offset"))
        end = max([start] + [item.start + item.stored.nbytes for item in tensors.values()])
        if end < cursor.end:
            cursor.remark("magnetron refuses a file with bytes behind the data", end)
        releases = "0.1.5 and 0.1.6" if version == 100 else "0.1.7 to 0.1.9"
        cursor.remark(f"of magnetron, only {releases} read this version", 4)
        return attrs, Map(), tensors

    def _marks(self, cursor: Cursor, *texts: str) -> None:
        for text in texts:
            found = cursor.take(4, text[:3].lower(), "mark")
            if found != text.encode():
                raise cursor.error(f"{quote(found)} is not {text}", text[:3].lower())

    def _names(self, cursor: Cursor) -> Facts:
        """Return the names by number."""
        self._marks(cursor, "SRP!")
        count, = cursor.record(self.COUNT)
        at, names = cursor.pos, Map()
        most = (cursor.end - at) // 4 - 1
        cursor.limit("pool_count", count, 0, most, "as many as fit (cut short?)")
        offsets = cursor.record(Record(("pool_offsets", f"{count + 1}I", "where names begin")))
        for i, offset in enumerate(offsets):
            if offset <= offsets[i - 1] if i else offset:
                what = f"{offset}; the first is 0, each other one larger than the last"
                raise cursor.error(what, "pool_offsets", i, offset=at + 4 * i)
        for i in range(count):
            name = decode_text(cursor.take(offsets[i + 1] - offsets[i], "pool", "a name", i))
            if name is None or name in names:
                raise cursor.error("a name twice" if name else "text is not UTF-8", "pool", i)
            names[name] = i
        return Map([(i, name) for name, i in names.items()])

    def _tensors(self, cursor: Cursor, version: int, names: Facts, records: Any,
                 start: int) -> Chunks:
        at, total = start, len(names)
        dtypes: Any = self.DTYPES if version == 100 else Mag.LATER_DTYPES
        for i, (_, number, _, key, numel, offset, shape) in enumerate(records):
            cursor.where = "tensors", i
            at, name = round_up(at, 1 if version == 100 else 16), names.pop(key, None)
            if name is None:
                what = f"name {key} of {total}, each is used once"
                raise cursor.error(what, "key_id", check="sizes")
            cursor.limit("dtype", number, 0, len(dtypes) - 1, "known numbers", Unsupported)
            wrong = Mag.wrong_shape(shape, numel)
            if not wrong and start + offset != at:
                wrong = "offset", f"data at {offset}, {at - start} is next"
            if wrong:
                raise cursor.error(wrong[1], wrong[0], tensor=name, check="sizes")
            dtype, attrs, why = dtypes[number], None, None
            if dtype not in ITEMSIZE:
                dtype, attrs, why = None, ("dtype_id", number), f"{dtype} is not known here"
            stored = Storage(cursor.source, numel * ITEMSIZE.get(dtype, 1), why=why)
            yield Tensor(name, dtype, shape, stored, at, attrs or (), self.NAME)
            at += stored.nbytes


LATER.append(Mag100())


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

    NAME, FAMILY, TITLE, VERSION = "mag300", "mag", "mag 300", "300"
    MAGICS = (b"MAG!\x2c\x01\0\0",)
    NAMES = [dtype.replace("bool", "boolean") for dtype in Mag.LATER_DTYPES]
    DTYPES = tuple([dtype for dtype in Mag.LATER_DTYPES if dtype in ITEMSIZE])
    FACTS = {"timestamp": "1970-01-01T00:00:00+00:00", "magnetron_ver": "0.2.2",
             "snapshot_ver": "0.3.0"}  # written, unless a file of 300 has others
    OPTIONS = {"version": "1, or 300 for magnetron 0.2",
               "timestamp": "text, else that of the file, or of 1970"}
    FILE_ATTRS = ("version", "byte_order") + tuple(FACTS)
    TENSOR_ATTRS = ("dtype", "dtype_id")
    MAX_RANK, ALIGN, PAD_END, IN_FRONT = 16, 4096, "structure", True
    USUAL = ((b',"', "name", UsualJson.NAME),
             (b'":{', "", UsualJson.SHAPE + rb',"dtype":"\w+","dtype_id":\d{1,9}'),
             (b',"offset":', "start"), (b',"nbytes":', "size"), (b"}", "", b""))
    MAX_INDEX_BYTES = 256 << 20
    HEADER = Record(
        ("magic", "4s", "mag"), ("version", "I", "snapshot version"),
        ("aux", "I", "1: the data are big-endian"), ("meta_offset", "Q", "where the JSON begins"),
        ("meta_span", "Q", "its bytes"), ("blob_offset", "Q", "where the data begin"),
        ("blob_span", "Q", "bytes of data"))
    ENTRY = Schema(
        ("shape", "numbers", True, "dimensions"), ("dtype", "text", True, "name of the type"),
        ("dtype_id", "unsigned", True, "its number, which counts"),
        ("offset", "unsigned", True, "from blob_offset"), ("nbytes", "unsigned", True, "bytes"))
    ROOT = Schema(
        ("manifest_ver", "unsigned", True, "1"), ("timestamp", "text", True, "of the writing"),
        ("magnetron_ver", "text", True, "which wrote it"), ("snapshot_ver", "text", True, ""),
        ("usr_metadata", "map", True, "of the user"),
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
        root, tensors = self._read_index(cursor, meta, span, start, ">" if aux else "<")
        if start + size > end:
            keep_whole(cursor, tensors, "blob_offset" if start > end else "blob_span")
            if not (cursor.missing or cursor.faults):
                cursor.limit("blob_offset", start, 0, end, "in the file")
                cursor.limit("blob_span", size, 0, end - start, "the file ends (cut short?)")
        self._check_places(cursor, tensors, start, size)
        attrs = Map([("version", 300)] + [(key, root[key]) for key in self.FACTS])
        if aux:
            attrs["byte_order"] = "big"
        return attrs, root["usr_metadata"], tensors

    def _read_index(self, cursor: Cursor, meta: int, span: int, start: int, order: str) -> Any:
        """Return the map of the JSON, and the tensors."""
        cursor.seek(meta)
        data = cursor.next_bytes(span, "meta")
        cursor.outermost = "meta"
        if 0 in data:
            raise cursor.error("a NUL byte in the JSON", offset=meta + data.find(0))

        def open_entry(name: str, entry: Any) -> Any:
            return self._open(cursor, name, entry, start, order)
        if FAST:
            cursor.usual = UsualJson(self.USUAL, self.ENTRY, open_entry, base=start)
        root, _ = cursor.read_json(data, meta, "meta", self.ROOT, 2, python=True)
        cursor.check_schema(self.ROOT, root)
        cursor.limit("manifest_ver", root["manifest_ver"], 1, 1, "only 1 is known", Unsupported)
        found = cursor.open_entries(root["tensor_map"], self.ENTRY, open_entry, "tensor_map")
        return root, admit(cursor, found)

    def _check_places(self, cursor: Cursor, tensors: Any, start: int, size: int) -> None:
        """Note a fault of each tensor that is not at the next multiple of 4096."""
        at, whole = 0, not (cursor.faults or cursor.missing)  # else there are gaps between them
        for item in sorted(tensors.values(), key=lambda item: item.start):
            offset, nbytes = item.start - start, item.stored.nbytes
            if (not at <= offset <= size - nbytes or whole and offset - at >= 4096
                    or nbytes and offset % 4096):
                what = (f"{nbytes} bytes at {offset}; expected at the next multiple of 4096 from "
                        f"{at}, and up to {size}")
                path = "tensor_map", item.name, "offset"
                cursor.fault(what, *path, tensor=item.name, check="bounds")
                del tensors[item.name]
            at = max(at, offset + nbytes)
        if size - at >= 4096 and not (cursor.faults or cursor.missing):
            raise cursor.error(f"{size} bytes of data, but tensors end at {at}", "blob_span")

    def _open(self, cursor: Cursor, name: str, entry: Any, start: int, order: str) -> Any:
        """Return the Tensor of an entry, or raise what is wrong with it."""
        if not is_text(name):
            raise cursor.error("the name has a lone surrogate", tensor=name)
        shape, text, number, offset, nbytes = [entry[key] for key in self.ENTRY.needed]
        attrs: Any = ()
        why = None
        dtype: Any = Mag.LATER_DTYPES[number] if number < len(Mag.LATER_DTYPES) else None
        itemsize = ITEMSIZE.get(dtype, 1)
        need = count_elements(shape) * itemsize
        if dtype and need != nbytes:
            what = say_need(f"{nbytes} bytes", dtype, shape, need)
            raise cursor.error(what, "nbytes", tensor=name, check="sizes")
        if dtype and itemsize == 1:
            order = "<"
        if dtype not in ITEMSIZE:
            dtype, attrs = None, ("dtype", text, "dtype_id", number)
            why = f"dtype_id {number} ({show(text)}) is not known"
        elif text != self.NAMES[number]:
            attrs = "dtype", text
        stored = Storage(cursor.source, nbytes, None, order, "raw", why)
        return Tensor(name, dtype, tuple(shape), stored, start + offset, attrs, self.NAME)

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        yield "of magnetron, only 0.2.0 to 0.2.2 read this version"
        for what, found in (
                ("refuses big-endian data", "byte_order" in attrs),
                ("refuses over 16 dimensions", [t for t in tensors if t.ndim > 16]),
                ("refuses unknown dtypes", [t for t in tensors if t.attrs.get("dtype_id", 3) != 3]),
                ("writes no file without data", not [t for t in tensors if t.stored.nbytes])):
            if found:
                yield "magnetron 0.2.2 " + what

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
        head = self.HEADER.pack(b"MAG!", 300, 0, 44, len(data), base, end) + data
        starts = [base + entry["offset"] for entry in entries.values()]
        return self.lay_out(head, items, starts, base + end)


if not BOARD:  # the regular expressions there are too small for [5f]
    LATER.append(Mag300())
    Mag.OPTIONS = {"version": Mag300.OPTIONS["version"]}


# -- [7b] ztensor --------------------------------------------------------------------------------


class ZFamily(Format):
    """What all generations of zTensor share: an index of entries, each made of parts.

    read() of a generation finds the index, read_index() parses it, read_entry() of the generation
    makes a Tensor of an item. `where`: the keys in an item that lead to a part.
    """

    FAMILY = "ztensor"
    HOLDS = "custom fields per tensor, checksums, zstd, big-endian data"
    SUFFIXES = (".zt", ".ztensor")
    DTYPES = tuple(ITEMSIZE)
    ALIGN = 64
    CHECKS = ("magic", "index", "bounds", "sizes", "checksums", "contents")
    MAX_INDEX_BYTES = 256 << 20
    CBOR: Facts = {"plain": True}
    ENCODED: "Tuple[str, ...]" = ("raw",) + tuple(ENCODINGS)
    FIELDS: Facts = {}  # attribute of a Part -> field of a file
    DIGEST = "digest"  # key
    DIGESTS: Facts = {"crc32c": 8, "sha256": 64}  # digits
    CODEC = ""  # of parts that are hashed as decoded, not as stored
    TRAILER = Record()
    TREE: Any = ()  # of cursor.cbor(): name, Schema, depth of entries, root
    ENTRY = Schema()
    USUAL: Any = ()  # rows of Usual
    LEAD = b""
    read_entry: Any = None  # (cursor, name, item of the index, limits) -> Tensor, or an error

    def find_index(self, cursor: Cursor, end: int) -> "Tuple[int, bytes]":
        """Return offset and bytes of an index with its size behind it, up to `end`."""
        if cursor.end < 17:
            what = f"{cursor.end} bytes, at least 17 are needed"
            raise cursor.error(what, self.TREE[3], offset=8)
        end -= 8
        cursor.seek(end)
        (nbytes,), field = cursor.record(self.TRAILER), self.TRAILER.rows[0][0]
        if not 1 <= nbytes <= end - 8:
            raise self.no_end(cursor, field)
        cursor.limit(field, nbytes, 1, self.MAX_INDEX_BYTES, "MAX_INDEX_BYTES", Unsupported)
        return end - nbytes, cursor.source.read(end - nbytes, nbytes)

    def read_index(self, cursor: Cursor, start: int, data: bytes, end: int, limits: Any) -> Any:
        """Return the index, one item of CBOR, and the function that opens its entries."""
        def open_entry(name: Any, facts: Any) -> Any:
            return self.read_entry(cursor, name, facts, limits)
        if FAST and b"\x67tensors" not in data:  # in zTensor 1.0 the objects
            cursor.usual = Usual(self.USUAL, self.ENTRY, open_entry, self.ALIGN, self.ALIGN, end,
                                 lead=self.LEAD)
        index, stop = cursor.cbor(data, start, *self.TREE, **self.CBOR)
        if stop < start + len(data):
            raise cursor.error("bytes left over behind the index", offset=stop)
        cursor.check_schema(self.TREE[1], index)
        return index, open_entry

    def check_place(self, cursor: Cursor, offset: int, nbytes: int, end: int, *path: Any) -> None:
        """Raise unless a part begins at a multiple of ALIGN, not at 0, and ends before `end`."""
        align = self.ALIGN
        if not align <= offset <= end - nbytes or offset % align:
            what = f"{nbytes} bytes at {offset}, expected a multiple of {align}, all before {end}"
            raise cursor.error(what, *path, check="bounds")

    def check_size(self, cursor: Cursor, where: Any, part: Part, shape: Any, need: int) -> None:
        """Raise unless a part can hold the `need` bytes that a shape takes."""
        wrong = part.misfit(shape, need)
        if wrong is not None:
            raise cursor.error(wrong[1], *where + (self.FIELDS[wrong[0]],), check="sizes")

    def checksums(self, tensor: Tensor) -> Chunks:
        """Yield (label, offset, nbytes, (digest, bytes decoded or None)) of the parts."""
        stored = tensor.stored
        parts: Any = stored.entry.parts.values() if stored.entry else [Part(
            "data", None, tensor.start, stored.nbytes, tensor.nbytes, stored.encoding, "<",
            stored.why, tensor.attrs.get(self.DIGEST))]
        for part in parts if stored.source.of_file else ():
            coded = self.CODEC and part.encoding != "raw"
            if part.digest is not None and part.source is None and not (coded and part.why):
                label = "" if part.role == "data" else plain(part.role) + ": "
                need = part.decoded_nbytes if coded else None
                yield label, part.offset, part.nbytes, (part.digest, need)

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
        blocks: Any = (source.view(at, min(BLOCK, offset + nbytes - at))
                       for at in range(offset, offset + nbytes, BLOCK))
        try:
            # <later>
            if decoded is not None:
                blocks = ENCODINGS[self.CODEC].decode(source, offset, nbytes, decoded)
            # </later>
            found = self.hash_blocks(algorithm, blocks)
        except FormatError as error:
            return "-" if isinstance(error, Unsupported) else "FAIL", error.what
        if found.lower().endswith(plain):
            return "ok", algorithm + " agrees"
        return "FAIL", f"{algorithm}: the bytes give {found}, the file says {given}"

    def known_digest(self, item: Tensor, algorithm: str) -> str:
        """Return the digest that a file has of stored bytes, if it is written so here, or ""."""
        if item.format != self.NAME or item.offset is None:
            return ""
        text = str(item.attrs.get(self.DIGEST))
        return text if Digest.is_text(algorithm, text) else ""  # check_stored() hashes the bytes

    @staticmethod
    def hash_blocks(algorithm: str, blocks: Any) -> str:
        # <later>
        if algorithm == "xxh3":
            return "xxh3:%016x" % xxh3_64(blocks)
        # </later>
        digest = Digest(algorithm)
        for block in blocks:
            digest.update(block)
        return digest.text()

    # <later>
    def own_attrs(self, tensor: Tensor) -> Facts:
        if tensor.format not in self.CARRIES:
            return super().own_attrs(tensor)
        kind: Any = find_format(tensor.format)
        found: Facts = kind.content_of(tensor)
        return found
    # </later>


class ZObjects(ZFamily):
    """What zTensor 1 and 2 share: a map of objects by name, each a map of parts by role."""

    TENSOR_ATTRS: Any = ("attributes",)
    CONTENT = ("attributes",)
    CARRIES: Any = ("ztensor", "ztensor1", "ztensor2")
    READS: Facts = {}  # layout in a file -> layout of an Entry
    PARTS = LAYOUT = ""  # keys of an object
    KEY: Any = Schema.TEXT  # of objects
    FACTS = ("dtype", "type", "encoding", "digest", "shard")  # kept of a part
    MAP: Any = staticmethod(lambda value: "" if hasattr(value, "items") else "a map")
    SHORT: Facts = dict([("bf16" if dtype[0] == "b" else dtype[0] + str(8 * size), dtype)
                         for dtype, size in ITEMSIZE.items() if dtype != "bool"])  # f32 -> float32
    read_part: Any = None  # (cursor, where, part, its object, limits) -> Part, or an error
    check_parts: Any = None  # (cursor, object, Parts by role), or an error

    def remark_unknown(self, cursor: Cursor, schema: Schema, facts: Any) -> None:
        """Remark on the keys of a map, and of those inside of it, that are not known."""
        for key, value in facts.items() if cursor.trace and hasattr(facts, "items") else ():
            inside = schema.about(key)[1]
            if schema.rows and key not in schema.rows:
                cursor.remark(f"the key {show(key)} is not known, and ignored", 0)
            elif inside is not None:
                self.remark_unknown(cursor, inside, value)

    def read_entry(self, cursor: Cursor, name: str, facts: Any, limits: Any) -> Tensor:
        """Return an object as a Tensor; its attrs are what the file says."""
        if not self.KEY[0](name):
            raise cursor.error(f"{show(name)} is not {self.KEY[1]}")
        shape, layout, found = tuple(facts["shape"]), facts[self.LAYOUT], facts[self.PARTS]
        parts = Map([(role, self.read_part(cursor, (self.PARTS, role), part, facts, limits))
                     for role, part in found.items()])
        self.check_parts(cursor, facts, parts)
        for part in found.values():
            for key in [key for key in part if key not in self.FACTS or part[key] is None]:
                del part[key]  # of many objects, little is kept
        attrs: Any = (self.LAYOUT, layout)
        if facts.get("attributes") is not None:
            attrs += "attributes", facts["attributes"]
        known = self.READS.get(layout, "")
        if known == "dense":
            for key, value in found["data"].items():
                if key != "dtype" and (key, value) != ("type", "bool"):
                    attrs += key, value
            return parts["data"].open(cursor.source, name, shape, attrs, self.NAME)
        attrs += self.PARTS, found
        dtype, why = getattr(parts.get("values"), "dtype", None), None
        if not (known and known in LAYOUTS and dtype) or "data" in parts:
            dtype, known, why = None, "", f"layout {show(layout)} is not known"
        entry = Entry(name, dtype, shape, known, attrs, parts, why)
        return entry.open(cursor.source, self.NAME)

    def content_of(self, tensor: Tensor) -> Facts:
        """Return the attrs that the other generations store, too."""
        return tensor.attrs.get("attributes") or Map()


class ZTensor(ZFamily):
    """zTensor 0.1 (specification 0.1.0; crate and wheels ztensor 0.1.0 to 0.1.4).

    0      magic "ZTEN0001" 8 | zeros up to 64 (if there is a tensor)
    64     blob of tensor 0 | zeros to a multiple of 64 | blob of tensor 1 | ...
    S      CBOR array, one map per tensor (N bytes, right behind the last blob, not aligned)
    end-8  N u64

    Real maps are of indefinite length, real zstd frames without content size. Tensors of another
    layout, dtype or encoding are listed, with their bytes.
    """

    NAME = "ztensor"
    TITLE = "zTensor 0.1"
    MAGICS = (b"ZTEN", b"\x89ZT2\r\n\x1a\n")
    OTHERS = ((MAGICS[1], "zTensor 2.x is another format"),
              (b"ZTEN0000", "another version of zTensor"),
              (b"ZTEN1000", "zTensor 1.x (magic ZTEN1000) is another format"))
    CHOICES = Schema(
        ("encoding", ZFamily.ENCODED, None, "raw or zstd"),
        ("level", (lambda n: "" if type(n) is int and -131073 < n < 23 else "-131072 to 22"), None,
         "of zstd, 3 unless given"), ("data_endianness", ("little", "big"), None, "little or big"),
        ("checksum", ("none", "crc32c", "sha256"), None, "none, crc32c or sha256"))
    OPTIONS = dict([(key, row[1]) for key, row in CHOICES.rows.items()])
    FILE_ATTRS = ("version",)
    TENSOR_ATTRS = None
    USES = ("zstd", "sparse", "ztensor1", "ztensor2")
    CARRIES = ("ztensor1", "ztensor2")
    VERSION = "0.1"
    MARKS = {"S": "index"}
    MAGIC_RECORD = Record(("magic", "8s", "zTensor 0.1"))
    TRAILER = Record(("index_size", "Q", "bytes of CBOR before"))
    COMPONENT = Schema(
        ("offset", "unsigned", True, "first stored byte"),
        ("size", "unsigned", True, "bytes stored"), ("dtype", "any", False, "uint64 or uint32"),
        ("encoding", "any", False, "raw or zstd"),
        ("data_endianness", ("little", "big"), None, "byte order, if raw"),
        ("checksum", "text", None, "of the stored bytes"), other=("any", "custom field"))
    ENTRY = Schema(
        ("name", "text", True, "name of the tensor"),
        ("offset", "unsigned", True, "first stored byte"),
        ("size", "unsigned", True, "bytes stored"), ("dtype", "text", True, "type of the elements"),
        ("layout", "text", False, "dense, sparse ..."), ("shape", "numbers", True, "dimensions"),
        ("encoding", "text", True, "raw or zstd"),
        ("data_endianness", ("little", "big"), None, "byte order, if raw"),
        ("checksum", "text", None, "of the stored bytes"),
        # <sparse tools>
        ("sparse_format", "any", False, "csr or coo"), ("nnz", "any", False, "elements stored"),
        ("indptr", "any", False, "csr: row pointers", COMPONENT),
        ("indices", "any", False, "csr: columns", COMPONENT),
        ("coords", "any", False, "coo: coordinates", COMPONENT),
        # </sparse tools>
        other=("any", "custom field"), keys=Schema.TEXT)
    TREE = ("index", Schema(other=("any", "entry of a tensor", ENTRY), of=list,
                            doc="one map per tensor"), 1, "index")
    LEAD = b"\xbf\x64name"
    USUAL = ((b"\x66offset", "start"), (b"\x64size", "size"),
             (b"\x65dtype", "", rb"[\x64-\x68][a-z\d]+\x66layout\x65dense" + Usual.SHAPE +
              rb"\x68encoding\x63raw(?:\x6fdata_endianness[\x63\x66][a-z]+)?"
              rb"(?:\x68checksum(?=[\x71\x78]))?"),
             (b"", "checksum", Usual.DIGEST), (b"", "", rb"[^\xff]{0,512}\xff"))
    KEYS = ("name", "offset", "size", "dtype", "shape")  # the other keys stay in Tensor.attrs
    MECHANICS = ("layout", "encoding", "data_endianness", "checksum")
    READS: "Tuple[str, ...]" = ("dense",)  # layouts
    # <sparse>
    READS += "sparse", "sparsecsr", "sparsecoo"
    # </sparse>
    LAYOUT_KEYS = ("layout", "sparse_format", "nnz", "indptr", "indices", "coords")
    FIELDS = {"nbytes": "size"}
    DTYPE_ATTRS = ("dtype",)
    DIGEST = "checksum"

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, b"ZTEN0001")
        cursor.record(self.MAGIC_RECORD)
        start, data = self.find_index(cursor, cursor.end)
        index, open_entry = self.read_index(cursor, start, data, start, start)
        # <tools>
        for why, at in watch_cbor(data, self.refused, cursor, **self.CBOR):
            cursor.remark("ztensor 0.1.x refuses the whole file: " + why, start + at)
        # </tools>
        found = cursor.open_entries(index, self.ENTRY, open_entry, "index")
        tensors = admit(cursor, found, fields=("name", "size", "offset"))
        return Map([("version", "0.1.0")]), Map(), tensors

    def read_entry(self, cursor: Cursor, _: Any, facts: Any, end: int) -> Tensor:
        name, offset, nbytes, dtype, dims = map(facts.pop, self.KEYS)
        shape, encoding, layout = tuple(dims), facts["encoding"], facts.get("layout", "dense")
        size, why = ITEMSIZE.get(dtype, 0), None
        for what, value, known in (
                ("layout", layout, layout in self.READS),
                ("encoding", encoding, encoding in self.ENCODED), ("dtype", dtype, size)):
            if not known:
                why = f"{what} {show(value)} is not known"
        if not size:
            facts["dtype"], dtype = dtype, None
        big = encoding == "raw" and size != 1 and facts.get("data_endianness") == "big"
        self.check_place(cursor, offset, nbytes, end, "offset")
        # <zstd sparse>
        part = Part("values" if layout == "sparse" else "data", dtype, offset, nbytes, None,
                    encoding, ">" if big else "<", why, facts.get("checksum"))
        if encoding in self.ENCODED[1:]:
            need = count_elements(shape) * size if layout == "dense" else 0
            self.check_size(cursor, (), part, shape, need)
        # </zstd sparse>
        # <sparse>
        if why is None and layout != "dense":
            entry = Entry(name, dtype, shape, layout, facts, {part.role: part})
            if layout == "sparse":
                self.read_sparse(cursor, facts, entry, end)
            return entry.open(cursor.source, self.NAME)
        # </sparse>
        stored = Storage(cursor.source, nbytes, None, ">" if big else "<", encoding, why)
        return Tensor(name, dtype, shape, stored, offset, facts, self.NAME)

    # <sparse>
    # layout "sparse": sparse_format "csr" (indptr, indices) or "coo" (coords), each an inline array
    # or a map that places a blob; the entry's blob: the values. The real library's: split_blob().
    def read_sparse(self, cursor: Cursor, facts: Any, entry: Entry, end: int) -> None:
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
                    entry.parts[role] = self.read_index_part(cursor, (role,), facts[role], end)
            except FormatError as error:
                entry.fault = entry.fault or (error.what, type(error), role)

    def read_index_part(self, cursor: Cursor, where: Any, facts: Any, end: int) -> Part:
        """Return a part of a sparse tensor: a map that places it, or its numbers."""
        if not (isinstance(facts, list) and all_u64(facts)):
            cursor.check_schema(self.COMPONENT, facts, *where)
        if isinstance(facts, list):
            data = bytes(pack_values("uint64", facts))
            return Part(where[0], "uint64", 0, len(data), source=Memory(data))
        dtype, encoding, why = facts.get("dtype", "uint64"), facts.get("encoding", "raw"), None
        if dtype not in INDEX_TYPES or encoding not in self.ENCODED:
            why = f"dtype {show(dtype)}, encoding {show(encoding)}"
        big = encoding == "raw" and facts.get("data_endianness") == "big"
        part = Part(where[0], dtype, facts["offset"], facts["size"], None, encoding,
                    ">" if big else "<", why, facts.get("checksum"))
        self.check_place(cursor, part.offset, part.nbytes, end, *where + ("offset",))
        return part
    # </sparse>

    @staticmethod
    def refused(kind: str, value: Any, path: Any, head: int, tags: int, level: int) -> str:
        """Return why the real library does not take an item of CBOR, or ""."""
        if kind in ("tag", "array", "map") and level > 126:
            return "over 127 containers and tags inside one another"
        if type(value) is int and value < -(1 << 63):
            return "an integer below -2**63"
        null = value is None and path[2:] in (["checksum"], ["data_endianness"])
        return path[2] + " is undefined, or null with a tag" if null and (
            tags or head == 0xF7) else ""

    def is_content(self, key: str) -> bool:
        return key not in self.MECHANICS + self.FILE_ATTRS + self.DTYPE_ATTRS

    def content_of(self, tensor: Tensor) -> Facts:
        """Return the attrs that the other generations store, too: the custom fields."""
        return Map([(key, value) for key, value in tensor.attrs.items()
                    if self.is_content(key) and key not in tensor.layout_keys])

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        refused = [item.stored.why or "layout " + show(item.attrs.get("layout")) for item in tensors
                   if item.stored.why or item.attrs.get("layout") in (None, "sparse")]
        if refused:
            yield "ztensor 0.1.x refuses the whole file: " + refused[0]
        if [item for item in tensors if "\0" in item.name]:
            yield "ztensor 0.1.4 aborts its process: a name holds NUL"
        if [item for item in tensors if item.stored.order == ">"]:
            yield "ztensor 1.1 and 1.2 ignore data_endianness: big-endian data come out wrong"
        if tensors:
            yield "ztensor 1.0 and 2.x do not open it: they read other formats of this name"

    def passes(self, tensor: Tensor) -> bool:
        dtype = tensor.dtype or tensor.attrs.get("dtype")
        return (tensor.stored.why is not None and tensor.format == self.NAME and is_text(dtype)
                and tensor.attrs.get("layout") != "sparse")  # its other parts would be lost

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
        checksum = str(self.choose("checksum", "none", {}, attrs)).partition(":")[0]
        choices = Map([(key, self.choose(key, default, options, given)) for key, default, given in (
            ("encoding", "raw", attrs), ("data_endianness", "little", attrs),
            ("checksum", checksum, {}), ("level", 3, {}))])
        for path, why in self.CHOICES.wrongs(choices):
            if path[0] == "checksum" or not unknown:
                wrong.append(f"attribute {why}; the option {path[0]}= replaces it")
        for key in ("encoding", "data_endianness") if unknown else ():
            if options.get(key) not in (None, attrs.get(key)):
                wrong.append(f"{item.stored.why}; it can only be copied as it is stored")
        choices["copy"] = unknown or (item.stored.encoding == choices["encoding"] != "raw"
                                      and options.get("encoding") is options.get("level") is None)
        if choices["encoding"] in ENCODINGS and not choices["copy"]:
            ENCODINGS[choices["encoding"]].require()
        Digest(choices["checksum"])  # raises where its module is missing
        choices["layout"] = attrs.get("layout", "dense") if unknown else "dense"
        skip = self.MECHANICS + (self.DTYPE_ATTRS if item.dtype is None else ())
        # <sparse>
        if isinstance(item, Sparse):
            choices["layout"] = "sparse"
            skip += "nnz", "sparse_format"
            try:
                skip += tuple([key for key in item.components if key != "values"])
            except FormatError as error:
                wrong.append(error.what)
        # </sparse>
        choices["custom"] = custom = {key: attrs[key] for key in attrs if key not in skip}
        whys = [(key, self._why_not(key, custom[key])) for key in custom]
        wrong += [f"attribute {show(key)}: {why}" for key, why in whys if why]
        return choices, wrong

    def _why_not(self, key: Any, value: Any) -> str:
        """Return why a custom field cannot be written or read by the real library, or ""."""
        def look(start: int, stop: int, depth: int, kind: str, value: Any, key: Any) -> None:
            if kind == "tag" or (type(value) is int and value < -(1 << 63)):
                raise ValueError("an integer below -2**63 or over 64 bits")
        if not isinstance(key, str) or key in self.KEYS:
            return "a custom field cannot be called so"
        try:  # one level deeper than it is: the real library reads 127
            cbor_read(cbor_dumps({key: value}, depth=2), token=look, **self.CBOR)
        except (ValueError, TypeError) as error:
            return str(error)
        return ""

    def _chunks(self, items: Items, chosen: "List[Facts]") -> Chunks:
        yield b"ZTEN0001"
        at, index, known = 8, [cbor_head(4, len(items))], {}
        for (name, item), choices in zip(items, chosen):
            custom, entry = choices["custom"], {}
            blobs = [(item, entry)]  # what is stored, and the facts of each
            # <sparse>
            if isinstance(item, Sparse):
                parts = item.sort_rows()
                custom["nnz"] = parts["values"].size
                custom["sparse_format"] = "coo" if "coords" in parts else "csr"
                blobs = [(parts.pop("values"), entry)]
                blobs += [(parts[key], custom.setdefault(key, {})) for key in sorted(parts)]
            # </sparse>
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
        yield data + self.TRAILER.pack(len(data))

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
            blocks = ENCODINGS[encoding].encode(part.parts(), part.nbytes, choices["level"])
        elif not copied and order == ">":
            blocks = (swap(piece, part.check_readable()) for piece in part.parts())
        text = self.known_digest(part, algorithm) if copied and algorithm != "none" else ""
        digest = None if algorithm == "none" or text else Digest(algorithm)
        at = start
        for block in blocks:
            at += len(block)
            if digest is not None:
                digest.update(block)
            yield block
        facts["size"] = at - start
        if algorithm != "none":
            facts["checksum"] = text if digest is None else digest.text()


# -- [7b2] ztensor1 ------------------------------------------------------------------------------


class ZTensor1(ZObjects):
    """zTensor 1.0 to 1.2 (crates and wheels ztensor 1.0.0 to 1.2.3), read only.

    0      magic "ZTEN1000" 8 | zeros up to 64 | blob | zeros to a multiple of 64 | blob | ...
    S      CBOR map, N bytes, right behind the last blob, not aligned: "version", "attributes"?,
           "objects": name -> {shape, format, components: role -> {dtype, offset, length, ...}}
    S+N    N u64 | magic again (not in 1.0, where "tensors" with a long dtype are the objects)
    """

    NAME = "ztensor1"
    TITLE = "zTensor 1"
    MARKS = {"S": "manifest", "S+N": "manifest_size"}
    MAGICS: Any = (b"ZTEN1000",)
    FILE_ATTRS: Any = ("version", "generator")
    PARTS, LAYOUT = "components", "format"
    READS = {"dense": "dense", "sparse_csr": "csr", "sparse_coo": "coo"}
    CBOR = dict(ZFamily.CBOR, level=1)  # the real reader: 127 containers
    FIELDS = {"nbytes": "length", "decoded_nbytes": "uncompressed_length"}
    LAYOUT_KEYS = (LAYOUT, PARTS)
    MAGIC_RECORD = Record(("magic", "8s", "zTensor 1.x"))
    TRAILER = Record(("manifest_size", "Q", "bytes of CBOR before"))
    MAGIC_END = Record(("magic_end", "8s", "from 1.1 on"))
    PART = Schema(
        ("dtype", "text", False, "type of the elements"), ("offset", "unsigned", True, "where"),
        ("length", "unsigned", True, "bytes stored"), ("encoding", "text", None, "raw or zstd"),
        ("uncompressed_length", "unsigned", None, "bytes decoded"),
        ("digest", "text", None, "of the stored bytes"), ("type", "text", None, "over the dtype"))
    USER = Schema(other=("any", "of the user"), keys=Schema.TEXT)
    ENTRY = Schema(
        ("shape", "numbers", True, "dimensions"), ("format", "text", True, "dense, sparse_csr ..."),
        ("components", Schema(other=(PART, "a part"), keys=Schema.TEXT), True, "parts by role"),
        ("attributes", USER, None, "of the user"), ("dtype", "any", False, "1.0: of all parts"))
    OBJECTS = Schema(other=("any", "a tensor", ENTRY))
    TREE = ("", Schema(
        ("version", "text", True, "of the writer"), ("attributes", USER, None, "of the user"),
        ("objects", ZObjects.MAP, False, "by name", OBJECTS),
        ("tensors", ZObjects.MAP, False, "1.0: the objects", OBJECTS),
        ("generator", "text", None, "1.0: who wrote it"), doc="the manifest"), 2, "manifest")
    USUAL = ((b"\xa3", "", Usual.SHAPE + rb"\x66format\x65dense\x6acomponents\xa1\x64data"
              rb"[\xa3\xa4]\x65dtype[\x62-\x64][a-z\d]+"),
             (b"\x66offset", "start"), (b"\x66length", "size"),
             (b"", "", rb"(?:\x66digest(?=[\x71\x78]))?"), (b"", "digest", Usual.DIGEST))

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, self.MAGICS[0])
        cursor.record(self.MAGIC_RECORD)
        end = cursor.end
        if end >= 24 and cursor.source.read(end - 8, 8) == self.MAGICS[0]:
            end -= 8
            cursor.seek(end)
            cursor.record(self.MAGIC_END)
        start, data = self.find_index(cursor, end)
        top, open_entry = self.read_index(cursor, start, data, start, start)
        self.remark_unknown(cursor, self.TREE[1], top)
        where = "tensors" if "tensors" in top and "objects" not in top else "objects"
        if where not in top:
            raise cursor.error("the manifest lacks 'objects'")
        tensors = admit(cursor, cursor.open_entries(top[where], self.ENTRY, open_entry, where))
        attrs = Map([(key, top[key]) for key in self.FILE_ATTRS if top.get(key) is not None])
        return attrs, top.get("attributes") or Map(), tensors

    def read_part(self, cursor: Cursor, where: Any, found: Any, entry: Any, end: int) -> Part:
        role, code, encoding, path = where[1], found.get("dtype"), found.get("encoding"), where
        if cursor.where[:1] == ("tensors",):  # 1.0: one dtype for all parts, but for indices
            code = entry.get("dtype") if role in ("data", "values") else "uint64"
            found.pop("dtype", None)
            path = ()
        if type(code) is not str:
            raise cursor.error("the entry lacks 'dtype', a text", *path)
        dtype, why = self.SHORT.get(code) if path and code != "bool" else code, None
        if dtype not in ITEMSIZE:
            why, dtype = f"dtype {show(code)} is not known", None
        if found.get("type") is not None:
            why = f"type {show(found['type'])} is not known"
        if encoding not in (None,) + self.ENCODED:
            why = f"encoding {show(encoding)} is not known"
        part = Part(role, dtype, found["offset"], found["length"], found.get("uncompressed_length"),
                    "raw" if encoding is None else encoding, "<", why, found.get("digest"))
        self.check_place(cursor, part.offset, part.nbytes, end, *where + ("offset",))
        return part

    def check_parts(self, cursor: Cursor, entry: Any, parts: Any) -> None:
        if entry["format"] != "dense":
            return
        if "data" not in parts:
            raise cursor.error("a dense tensor has the part 'data'", "components")
        part = parts["data"]
        if part.why is None:
            need = count_elements(entry["shape"]) * ITEMSIZE[part.dtype]
            self.check_size(cursor, ("components", "data"), part, entry["shape"], need)

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        yield "only ztensor %s open it; 2.x opens no file of 1.x" % (
            "1.0.0 and 1.0.1" if attrs["version"] == "1.0" else "1.1.1 and 1.2.x")
        refused = [item.stored.why for item in tensors if item.stored.why is not None] + [
            "sparse_coo with indices of u32" for item in tensors
            if item.attrs.get("components", {}).get("coords", {}).get("dtype") == "u32"]
        if refused:
            yield "ztensor 1.2.3 does not read it all: " + refused[0]


LATER.append(ZTensor1())


# -- [7b3] ztensor2 ------------------------------------------------------------------------------

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_name(key: Any) -> bool:
    """Return whether a map of zTensor 2 may have this key: text of 1 to 1024 bytes without NUL."""
    return is_text(key) and 0 < len(key.encode()) <= 1024 and "\0" not in key


def is_shard(key: Any) -> bool:
    letters = LETTERS + LETTERS.upper() + "_-."
    return is_name(key) and len(key) <= 64 and not key.strip(letters) and key[0] != "."


def misfit_digest(value: Any) -> str:
    """Return what a digest should be, if the value is not one."""
    name, _, digits = value.partition(":") if type(value) is str else ("", "", "")
    fine = name and digits and not digits.strip("0123456789abcdef") and not name.strip(LETTERS)
    return "" if fine else "ALGORITHM:DIGITS, both lower case"


class ZTensor2(ZObjects):
    """zTensor 2 (specification draft 4; crates and wheels ztensor 2.0.0 to 2.1.2).

    0       magic 89 "ZT2" 0d 0a 1a 0a | zeros
    4096 k  blobs, each at a multiple of 4096 (written: of 65536), zeros between
    4096 m  manifest, one map of deterministic CBOR: "objects": name -> {shape, layout, parts:
            role -> {dtype, blob [offset, length], type?, digest?, encoding?, ...}}, "attributes"?
    end-40  manifest_offset u64 | manifest_length u64 | its XXH3-64 u64 | 2 u32 | 0 u32 | magic

    Without a manifest it is a data shard of another file. Digests are those of decoded bytes.
    The shard NAME of a file model.zt is model-NAME.zt beside it. The canonical form is written: raw
    and dense, equal contents once.
    """

    NAME = "ztensor2"
    TITLE = "zTensor 2"
    VERSION = "2"
    MAGICS: Any = (b"\x89ZT2\r\n\x1a\n",)
    OPTIONS = {"version": "0.1, or 2 for ztensor 2"}
    FILE_ATTRS: Any = ("version", "shards", "data_shard")
    PARTS, LAYOUT = "parts", "layout"
    READS = {"dense": "dense", "zt.sparse_csr/1": "csr", "zt.sparse_coo/1": "coo"}
    CBOR = dict(ZFamily.CBOR, strict=32)
    MARKS = {"4096 k": "data", "4096 m": "manifest"}
    ALIGN, PLACE = 4096, 65536
    MAX_RANK = 64
    TYPES: Facts = dict([(name, (over, bits)) for names, over, bits in (  # bits of an element
        ("bool f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz f8_e8m0", "u8", 8), ("f4_e2m1", "u8", 4),
        ("complex64", "f32", 64), ("complex128", "f64", 128)) for name in names.split()])
    FIELDS = {"nbytes": "blob", "decoded_nbytes": "decoded_length"}
    LAYOUT_KEYS = (LAYOUT, PARTS)
    RISING = True
    DIGESTS = {"xxh3": 16, "sha256": 64}
    CODEC = "zt.zstd-seekable/1"
    MAGIC_RECORD = Record(("magic", "8s", "zTensor 2"))
    FOOTER = Record(("manifest_offset", "Q", "a multiple of 4096"),
                    ("manifest_length", "Q", "bytes of CBOR; 0: a data shard"),
                    ("manifest_hash", "Q", "its XXH3-64"), ("version", "I", "2"),
                    ("reserved", "I", "0, ignored"), ("magic_end", "8s", "the magic again"))
    KEY = is_name, "text of 1 to 1024 bytes without NUL"
    PART = Schema(
        ("dtype", tuple(ZObjects.SHORT), True, "type of the elements"),
        ("blob", "range", True, "offset, bytes"), ("type", "text", False, "over the dtype"),
        ("digest", misfit_digest, False, "of decoded bytes"),
        ("encoding", "text", False, "raw if absent"), ("shard", "text", False, "the file"),
        ("decoded_length", "unsigned", False, "bytes decoded"))
    USER = Schema(other=("any", "of the user"), keys=KEY)
    ENTRY = Schema(
        ("shape", "numbers", True, "dimensions"), ("layout", "text", True, "dense ..."),
        ("attributes", USER, False, "of the user"),
        ("parts", Schema(other=(PART, "a part"), keys=KEY), True, "parts by role"))
    SHARD = Schema(("size", (lambda n: "" if all_u64([n]) and n > 47 else "an integer from 48 on"),
                    True, "bytes of the file"), ("digest", misfit_digest, True, "of the file"))
    TREE = ("", Schema(
        ("attributes", USER, False, "of the user"),
        ("shards", Schema(other=(SHARD, "a file"), keys=(is_shard, "the name of a shard")), False,
         "files by name"),
        ("objects", ZObjects.MAP, True, "by name", Schema(other=("any", "a tensor", ENTRY))),
        doc="the manifest"), 2, "manifest")
    USUAL = ((b"\xa3\x65parts\xa1\x64data", "", rb"[\xa3\xa4]\x64blob\x82"), (b"", "start"),
             (b"", "size"), (b"", "", rb"(?:\x64type\x64bool)?\x65dtype[\x62-\x64][a-z\d]+"),
             (b"\x66digest", "digest", rb"\x75xxh3:[\da-f]{16}|\x78\x47sha256:[\da-f]{64}"),
             (b"", "", Usual.SHAPE + rb"\x66layout\x65dense"))

    def read(self, cursor: Cursor) -> Any:
        self.check_magic(cursor, self.MAGICS[0])
        if cursor.end < 48:
            raise cursor.error(f"{cursor.end} bytes; the shortest file has 48", "magic", offset=0)
        cursor.record(self.MAGIC_RECORD)
        end, attrs = cursor.end - 40, Map([("version", "2")])
        start, data = self.read_footer(cursor, end)
        if not data:
            attrs["data_shard"] = True
            return attrs, Map(), Map()
        far: Any = []  # (shard, start, stop, name, role) of parts in shards
        shards: Any = Map()  # entries that Usual reads are of this file
        top, open_entry = self.read_index(cursor, start, data, end, (end, shards, far))
        self.remark_unknown(cursor, self.TREE[1], top)
        if "shards" in top:
            attrs["shards"] = top["shards"]
            for name, facts in top["shards"].items():
                shards[name] = facts["size"] - 40, self.sibling(cursor.source, name, facts["size"])
        tensors = admit(cursor, cursor.open_entries(top["objects"], self.ENTRY, open_entry,
                                                    "objects"))
        names = [(len(name), name) for name in map(encode_text, tensors)]
        if names != sorted(names) or not all(map(is_name, tensors)):  # hidden in a Run
            raise cursor.error("names that are wrong, or not sorted")
        self.check_overlap(cursor, far + [("", start, start + len(data), "", "")], tensors)
        return attrs, top.get("attributes", Map()), tensors

    def sibling(self, source: Any, name: str, nbytes: int) -> Any:
        """Return a shard as a source; None where the file itself has no path."""
        if not isinstance(source, Path):
            return None
        stem = os.path.basename(source.path)
        stem = stem[:-3] if stem[-3:] == ".zt" else stem
        return Shard(source, f"{stem}-{name}.zt", nbytes, self.MAGICS[0])

    def verify_shards(self, source: Any, attrs: Any, deep: bool, verify: Any) -> Chunks:
        for name, facts in attrs.get("shards", {}).items():
            shard, digest = self.sibling(source, name, facts["size"]), (facts["digest"], None)
            try:
                if shard is None or self.hash_cost(facts["size"], digest)[1] > (
                        INFINITY if deep else MAX_SLOW_HASH):
                    status, why = "-", "not opened" if shard is None else "too large to hash"
                else:
                    shard.open()
                    status, why = self.check_range(shard, 0, facts["size"], digest)
                    shard.close()
            except FormatError as error:
                status, why = "FAIL", error.what
            yield status, f"{name}: {why}", None

    def read_footer(self, cursor: Cursor, end: int) -> "Tuple[int, bytes]":
        """Return offset and bytes of the manifest; none in a data shard."""
        cursor.seek(end)
        start, nbytes, digest, version, _, magic = cursor.record(self.FOOTER)
        if magic != self.MAGICS[0]:
            raise self.no_end(cursor, "magic_end")
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
        return start, data

    def check_overlap(self, cursor: Cursor, ranges: Any, tensors: Any) -> None:
        """Raise for the first part whose bytes overlap others, unless they are the same."""
        ranges += [("", start, start + nbytes, name, role) for name, item in tensors.items()
                   if item.stored.source is cursor.source  # not a shard
                   for start, nbytes, role in item.ranges() if nbytes]
        ranges.sort()
        for last, row in zip(ranges, ranges[1:]):
            if row[1] < last[2] and row[0] == last[0] and row[1:3] != last[1:3]:
                name, role = row[3:] if row[3] else last[3:]  # the manifest has no name
                role = role or ("values" if tensors[name].stored.entry else "data")
                what = f"its bytes {row[1]} to {row[2]} overlap others in part"
                cursor.fault(what, "objects", name, self.PARTS, role, "blob", tensor=name,
                             check="bounds")
                return

    def read_part(self, cursor: Cursor, where: Any, found: Any, entry: Any, limits: Any) -> Part:
        end, shards, far = limits
        (offset, nbytes), code, shard = found["blob"], found.get("type"), found.get("shard")
        encoding, why, source = found.get("encoding"), None, None
        if (encoding is None) != ("decoded_length" not in found):
            field = "decoded_length" if encoding is None else "encoding"
            raise cursor.error("encoding and decoded_length come together", *where + (field,))
        if self.TYPES.get(code, (found["dtype"],))[0] != found["dtype"]:
            raise cursor.error(f"type {show(code)} over dtype {found['dtype']}", *where + ("type",))
        if shard is not None:
            if shard not in shards:
                raise cursor.error(f"shards lacks {show(shard)}", *where + ("shard",))
            end, source = shards[shard]
        if encoding is not None and not (encoding == self.CODEC and encoding in ENCODINGS):
            why, encoding = f"encoding {show(encoding)} is not known", "other"
        part = Part(where[1], self.SHORT[found["dtype"]], offset, nbytes,
                    found.get("decoded_length"), encoding or "raw", "<", why, found.get("digest"),
                    source)
        self.check_place(cursor, offset, nbytes, end, *where + ("blob",))
        if code is not None:
            part.dtype = "bool" if code == "bool" else None
            part.why = why or (None if part.dtype else f"type {show(code)} is not decoded here")
        if shard is not None and nbytes:
            far.append((shard, offset, offset + nbytes, cursor.where[1], where[1]))
        if shard is not None and source is None:
            part.offset, part.nbytes, part.encoding = 0, 0, "shard"
            part.why = (f"it is in the shard {show(shard)} of {end + 40} bytes, a file of its "
                        "own; load this one by its path")
        return part

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
            self.check_size(cursor, ("parts", role), part, shapes.get(role), need)

    def padding(self, start: int, stop: int, before: str, after: str, full: Any, attrs: Any) -> Any:
        step = self.PLACE if full(start, stop, 0) else self.ALIGN
        piece = min(stop - start, -start % step), 0, f"to a multiple of {step}"
        return [] if stop % self.ALIGN else [piece]

    def hash_cost(self, nbytes: int, digest: Any) -> "Tuple[int, int]":
        text, decoded = digest
        need = decoded or nbytes
        slow = text.startswith("xxh3:") and fast_xxh3() is None
        return need, need if slow else 0

    def why_slow(self) -> str:
        return "" if fast_xxh3() else "; XXH3 is slow without the module xxhash"

    def odd_bytes(self, tensor: Tensor, done: Any) -> "Optional[Tuple[int, str]]":
        stored, at = tensor.stored, 0
        if tensor.attrs.get("type") == "f4_e2m1" and stored.encoding == "raw" and tensor.size & 1:
            if stored.nbytes and tensor.raw[-1] >> 4:
                return stored.nbytes - 1, "the unused half of the last byte is not 0"
        key = tensor.dtype, tensor.start, stored.nbytes
        if tensor.dtype == "bool" and stored.why is None and not is_sparse(tensor) and (
                not stored.source.of_file or done.setdefault(key, tensor) is tensor):
            for block in tensor.parts():
                rest = bytes(block).lstrip(b"\0\1")
                if rest:
                    return at + len(block) - len(rest), f"a bool of byte {rest[0]}, not 0 or 1"
                at += len(block)
        return None

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        yield "no release of ztensor but 2.x opens it"
        at, starts, packed, parts = 8, set(), True, []
        for item in sorted(tensors, key=lambda item: item.name):
            parts += (item.attrs.get("parts") or {"": item.attrs}).values()
            for start, nbytes, _ in sorted(item.ranges(), key=lambda row: row[2]):
                if nbytes and start not in starts:
                    starts.add(start)
                    packed, at = packed and start == round_up(at, self.PLACE), start + nbytes
        if not packed:
            yield "not canonical by rules 1 to 3: blobs by name, each at the next multiple of 65536"
        if any(["encoding" in part or part.get("digest", "")[:5] != "xxh3:" for part in parts]):
            yield "not canonical by rule 4: parts are raw and have an XXH3 digest"
        if "shards" in attrs:
            yield "not canonical by rule 6: no shards"

    def attributes_of(self, tensor: Tensor) -> Any:
        found = self.own_attrs(tensor)
        return found.get("attributes") if tensor.format is None else found

    def misfit_metadata(self, metadata: Any, options: Facts, level: int = 2) -> Any:
        misfits = []
        for key, value in metadata.items():
            try:
                if not is_name(key):
                    raise ValueError("the key is not " + self.KEY[1])
                data = b"\x81" * level + cbor_dumps(value, sort="bytes")
                cbor_read(data, strict=32)
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
        wrong = [] if is_name(name) else ["the name is not " + self.KEY[1]]
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
        odd = self.odd_bytes(item, {}) if item.stored.why is None else None
        if odd is not None:
            yield f"{odd[1]} (byte {odd[0]})"

    def _pieces(self, items: Items, metadata: Any) -> Chunks:
        yield self.MAGICS[0]
        at, entries, known, kinds = 8, [], {}, {}
        zeros = memoryview(bytes(self.PLACE))
        names = [encode_text(name) for name, _ in items]
        for name, (_, item) in sorted(zip(names, items), key=lambda row: row[0]):
            text = self.known_digest(item, "xxh3") if item.stored.encoding == "raw" else ""
            text, nbytes = text or self.hash_blocks("xxh3", item.blocks()), item.nbytes
            start = round_up(at, self.PLACE)
            other, place = known.setdefault((nbytes, text), (item, start))
            if place != start and same_bytes(item, other):
                start = place
            elif nbytes:
                yield zeros[:start - at]
                yield from item.blocks()
                at = start + nbytes
            found = item._attrs and self.attributes_of(item)
            key = item.dtype, item.shape, name if found else b""  # they are of one tensor
            if key not in kinds:
                keep(kinds, key, self._entry_around(item, found))
            head, middle, tail = kinds[key]
            entries.append(b"".join([cbor_head(3, len(name)), name, head, cbor_head(0, start),
                                     middle, text.encode(), tail]))
        data = cbor_head(5, 2 if metadata else 1) + b"\x67objects" + cbor_head(5, len(entries))
        data += b"".join(sorted(entries))
        if metadata:
            data += b"\x6aattributes" + cbor_dumps(metadata, sort="bytes")
        start = round_up(at, self.PLACE)
        yield bytes(start - at) + data
        yield self.FOOTER.pack(start, len(data), xxh3_64([data]), 2, 0, self.MAGICS[0])

    def _entry_around(self, item: Tensor, attributes: Any) -> "Tuple[bytes, bytes, bytes]":
        """Return the bytes of an object's map in front of, between and behind start and digest."""
        codes = dict([(dtype, code) for code, dtype in self.SHORT.items()], bool="u8")
        over = b"\x64type\x64bool" if item.dtype == "bool" else b""
        head = cbor_head(5, 4 if attributes else 3) + b"\x65parts\xa1\x64data"
        head += cbor_head(5, 4 if over else 3) + b"\x64blob\x82"
        code = cbor_dumps(codes[str(item.dtype)])
        middle = cbor_head(0, item.nbytes) + over + b"\x65dtype" + code + b"\x66digest\x75"
        tail = b"\x65shape" + cbor_dumps(item.shape) + b"\x66layout\x65dense"
        if attributes:
            tail += b"\x6aattributes" + cbor_dumps(attributes, sort="bytes", depth=3)
        return head, middle, tail


def same_bytes(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors of as many bytes have the same row-major ones."""
    if (a.stored, a.start) == (b.stored, b.start):
        return True
    a, b = [item if item.is_plain() else item.contiguous() for item in (a, b)]
    return all(bytes(x) == bytes(y) for x, y in zip(a.parts(), b.parts()))


class SeekableZstd:
    """zstd frames of one size, but the last, then a skippable frame, as ENCODINGS has it.

    5e 2a 4d 18 | nbytes u32 | stored u32, decoded u32 (, checksum u32) of each frame |
    frames u32 | flags u8, bit 7: with checksums | b1 ea 92 8f
    """

    most = 32768

    @staticmethod
    def decode(source: Any, offset: int, nbytes: int, need: int) -> Chunks:
        """Yield the `need` bytes; FormatError where the table does not agree with them."""
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
            yield from ENCODINGS["zstd"].decode(source, offset, total, need)


LATER.append(ZTensor2())
ZTensor.OPTIONS["version"] = ZTensor2.OPTIONS["version"]
if "zstd" in ENCODINGS:
    ENCODINGS[ZTensor2.CODEC] = SeekableZstd()


# -- [7c] primitiv -------------------------------------------------------------------------------


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
    READER = MsgpackReader
    DTYPES = ("float32",)
    OPTIONS = {"kind": "model, parameter, tensor, shape or optimizer",
               "dims": "of kind shape", "batch": "of kind shape, 1 unless given",
               "flat": "model: each name is one key part, nothing is an escape"}
    FILE_ATTRS = ("version", "kind", "dims", "batch")
    TENSOR_ATTRS = ("batch",)
    CONTENT = ("dims",)
    CHECKS = ("magic", "index", "bounds", "sizes")
    DIM_BITS = 32
    MAX_DIMS = 32
    MAX_NAMES = 4 << 20  # bytes for statistics and shapes, besides 4 for each of the file
    HEADS = bytes(range(160)) + 32 * b"." + bytes(range(192, 256))  # of short strs: a dot
    KINDS = ("shape", "tensor", "parameter", "model", "optimizer")  # data_type: 256 * place
    OWNERS = {"tensor": "tensor", "parameter": "value"}  # name of the tensor of such a kind
    HELD = {"tensor": "one tensor called 'tensor'",
            "parameter": "one tensor called 'value' and statistics 'value:NAME'"}

    def detect(self, head: bytes) -> bool:
        cursor = MsgpackReader(Memory(head))
        try:
            values = [cursor.number("", "") for _ in range(3)]
        except FormatError:
            return super().detect(head)
        usual = cursor.pos == 15 and head[0] == head[5] == head[10] == 0xCE  # of other versions
        return super().detect(head) or (
            (usual or values[:2] == [0, 1]) and values[2] in range(0, 0x500, 0x100))

    def read(self, cursor: MsgpackReader) -> Any:
        major, minor = [cursor.number(key, "of format 0.1") for key in ("ver_major", "ver_minor")]
        if (major, minor) != (0, 1):
            raise cursor.error(f"format version {major}.{minor}; only 0.1 is known",
                               "ver_major" if major else "ver_minor", error=Unsupported)
        number = cursor.number("data_type", "256 tensor, 768 model")
        if number not in range(0, 0x500, 0x100):
            raise cursor.error("data_type 0x%03x is none of 0x000, 0x100, 0x200, 0x300, 0x400"
                               % number, "data_type")
        kind = self.KINDS[number // 256]
        attrs: Facts = Map([("version", "0.1"), ("kind", kind)])
        metadata, tensors = Map(), Map()
        if kind == "shape":
            dims, attrs["batch"] = self._shape(cursor)
            attrs["dims"] = list(dims)
        elif kind == "optimizer":
            self._configs(cursor, metadata)
        else:
            ends: Any = []
            tensors = admit(cursor, self._until_end(cursor, kind, ends), 0, cursor.end,
                            ("key", "data", "data"))
            for error in ends:
                begun = error.tensor not in tensors  # or what may follow it is missing
                missing = [error.tensor if begun and error.tensor is not None else error.field]
                tell_cut(cursor, error, cursor.beyond, missing, len(tensors), len(tensors) + begun)
        return attrs, metadata, tensors

    def _until_end(self, cursor: MsgpackReader, kind: str, ends: "List[FormatError]") -> Chunks:
        """Yield the tensors; add the error of a small field that the file ends in to `ends`."""
        try:
            yield from self._tensors(cursor, kind)
        except FormatError as error:
            if not cursor.beyond:
                raise
            ends.append(error)

    def _tensors(self, cursor: MsgpackReader, kind: str) -> Chunks:
        known: Any = {}  # by the bytes from dims to data: they come again
        cursor.memory = Budget("MAX_NAMES", self.MAX_NAMES + 4 * cursor.end)
        i, count, name = 0, 1, self.OWNERS.get(kind, "")
        if kind == "model":
            count = cursor.number("N", "parameters")
            cursor.last = count - 1
        while i < count:
            cursor.tensor = None
            if kind == "model":
                cursor.where = "params", i
                name = self._key(cursor)
            yield self._tensor(cursor, name, known)
            if FAST and cursor.trace is None:
                for item in self._usual(cursor, i + 1, count, known):
                    i, name = i + 1, item.name
                    yield item
            cursor.where = place = ("params", i) if kind == "model" else ()
            for j in range(0 if kind == "tensor" else cursor.number("N", "statistics")):
                cursor.tensor, cursor.where = None, place + ("stats", j)
                stat = msgpack_text(cursor.value("str", "key", "name of the statistic"))
                stat, cursor.tensor = name + ":" + stat, name
                nbytes = len(stat.encode("utf-8", TEXT_ERRORS))
                nbytes *= 1 if nbytes == len(stat) else 4  # as CPython keeps it
                cursor.memory.spend(50 + nbytes, "memory for statistics", cursor, "key")
                yield self._tensor(cursor, stat, known)
            i += 1

    def _key(self, cursor: MsgpackReader) -> str:
        count = cursor.value("array", "key", "parts of the name")
        if not count:
            raise cursor.error("key has no components", "key")
        return self._join([cursor.value("str", "key", "part of the name", i)
                           for i in range(count)])

    def _usual(self, cursor: MsgpackReader, first: int, count: int, known: Any) -> Chunks:
        """Yield the parameters from number `first` on, each behind one without statistics."""
        start, data = cursor.pos - cursor.base, cursor.data
        try:
            for i in range(first, count):
                if start + WINDOW // 8 > len(data):
                    start, data = cursor.peek(WINDOW // 8), cursor.data
                parts, at = data[start + 5] - 0x90, start + 6
                if data[start:at - 1] != b"\xce\0\0\0\0" or not 0 < parts < 16:
                    break
                for _ in range(parts):
                    if not 0xA0 <= data[at] < 0xC0:  # a long name
                        return
                    at += data[at] - 0x9F
                name = data[start + 7:at].translate(self.HEADS).decode()
                if name.count(".") != parts - 1 or ":" in name or "\\" in name:
                    break
                stop = self._head_end(data, at)
                alike = known.get(data[at:stop])
                if alike is None:
                    cursor.where, cursor.pos = ("params", i), cursor.base + at
                    yield self._tensor(cursor, name, known)
                    start, data = cursor.pos - cursor.base, cursor.data
                    continue
                shape, stored, attrs = alike
                place = cursor.base + stop
                if stored.nbytes > cursor.end - place:
                    break
                cursor.pos = place + stored.nbytes
                start = cursor.pos - cursor.base
                yield Tensor(name, "float32", shape, stored, place, attrs, self.NAME)
        except (LookupError, UnicodeError):
            pass

    @staticmethod
    def _head_end(data: bytes, at: int) -> int:
        """Return where dims, batch and the head of the data end, in the forms that are written."""
        stop: int = at + 6 + 5 * (data[at] & 15)
        return stop + {0xC4: 2, 0xC5: 3}.get(data[stop], 5)

    def _tensor(self, cursor: MsgpackReader, name: str, known: Any) -> Tensor:
        """Return the tensor that begins here, and move behind its data."""
        cursor.tensor, at, begin = name, cursor.peek(WINDOW // 8), cursor.pos
        try:
            stop = at if cursor.trace is not None else self._head_end(cursor.data, at)
            shape, stored, attrs = known[cursor.data[at:stop]]
            cursor.pos += stop - at
        except LookupError:
            key: Any = self._shape(cursor) + (cursor.value("bin", "data", "bytes of the tensor"),)
            shape, batch, nbytes = key
            shape += (batch,) if batch > 1 else ()
            if begin >= cursor.base:
                key = cursor.data[begin - cursor.base:cursor.pos - cursor.base]
            if key not in known:
                cursor.memory.spend(160, "memory for shapes", cursor, "dims")
                strides = column_major(shape, 4) if nbytes and len(shape) > 1 else None
                known[key] = shape, Storage(cursor.source, nbytes, strides), ("batch", batch)
            shape, stored, attrs = known[key]
        start, nbytes = cursor.pos, stored.nbytes
        if cursor.trace is not None:  # here: a file that breaks off later shows them
            cursor.trace.add(start, nbytes, "data " + name, "float32 %s" % show(shape),
                             "column-major", kind="data")
        cursor.pos += nbytes
        return Tensor(name, "float32", shape, stored, start, attrs, self.NAME)

    def _shape(self, cursor: MsgpackReader) -> Any:
        size = cursor.value("array", "dims", "dimensions")
        if size > self.MAX_DIMS:
            raise cursor.error(f"{size} dimensions, MAX_DIMS = {self.MAX_DIMS} is the limit",
                               "dims", error=Unsupported)
        dims = tuple([cursor.number("dims", "dimension", i) for i in range(size)])
        batch = cursor.number("batch", "samples")
        if not batch:
            raise cursor.error("batch is 0", "batch")
        return dims, batch

    def _configs(self, cursor: MsgpackReader, metadata: Facts) -> None:
        for group in ("uint_configs", "float_configs"):
            seen = set(metadata)
            for i in range(cursor.value("map", group, "numbers of the optimizer")):
                cursor.where = group, i
                key = msgpack_text(cursor.value("str", "key", "name of the number"))
                if key in seen:
                    raise cursor.error(f"config {show(key)} is in both maps", "key",
                                       error=Unsupported)
                if key in metadata:
                    raise cursor.error(f"config {show(key)} twice", "key")
                if group == "uint_configs":
                    metadata[key] = cursor.number("value", "an integer")
                else:
                    metadata[key] = float(cursor.value("float", "value", "a float"))
            cursor.where = ()

    def _escape(self, part: str) -> str:
        return part.replace("\\", "\\\\").replace(".", "\\.").replace(":", "\\:")

    def _join(self, key: Any) -> str:
        return ".".join([self._escape(msgpack_text(part)) for part in key])

    @staticmethod
    def split(name: str) -> "Tuple[List[str], Optional[str]]":
        """Return (key parts, statistic or None) of a name; ValueError: a bad escape.

        >>> Primitiv.split("enc.w:Adam.m1")
        (['enc', 'w'], 'Adam.m1')
        """
        if "\\" not in name and ":" not in name:
            return name.split("."), None
        marked = name.replace("\\\\", MARKS[0]).replace("\\.", MARKS[1]).replace("\\:", MARKS[2])
        key, colon, stat = marked.partition(":")
        if "\\" in key:
            raise ValueError("a backslash stands only before '.', ':' or a backslash "
                             "(escape it, or use flat=True)")
        parts = key.split(".")
        for mark, text in zip(MARKS, "\\.:"):
            parts = [part.replace(mark, text) for part in parts]
            stat = stat.replace(mark, "\\" + text)  # nothing is an escape there
        return parts, stat if colon else None

    def loaded_name(self, name: str, options: Facts) -> str:
        return self._escape(name) if options.get("flat") else name

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        for name, why in self._rows([(item.name, item) for item in tensors], attrs["kind"])[1][:1]:
            yield f"primitiv refuses it: {quote(name)}: {why}"

    def misfit_metadata(self, metadata: Any, options: Facts) -> Any:
        if options.get("kind") != "optimizer":
            return [(key, "only kind='optimizer' has a place for metadata") for key in metadata]
        misfits = []
        for key, value in metadata.items():
            try:
                if not isinstance(key, str) or not isinstance(value, (bool, int, float)):
                    raise ValueError("configs are numbers")
                self._check_bytes(key)
                msgpack_dumps(value if isinstance(value, float) else int(value), typed=True)
            except ValueError as error:
                misfits.append((key, str(error)))
        return misfits

    @staticmethod
    def _check_bytes(text: str) -> None:
        """Raise ValueError unless a text has bytes that become it again."""
        raw = encode_text(text, TEXT_ERRORS)
        if len(raw) != len(text) and msgpack_text(raw) != text:  # not ASCII
            raise ValueError(f"its bytes are those of {show(msgpack_text(raw))}")

    def check_name(self, name: str) -> "List[str]":
        return []  # _rows() splits it, and finds what is wrong with it

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        kind: str = self.choose("kind", "model", options, attrs)
        if kind not in self.KINDS:
            raise ValueError(f"kind is one of {', '.join(sorted(self.KINDS))}, not {show(kind)}")
        for key, owner in (("dims", "shape"), ("batch", "shape"), ("flat", "model")):
            if options.get(key) is not None and options[key] is not False and kind != owner:
                raise ValueError(f"the option {key} belongs to kind={owner!r}")
        if kind != "shape" and attrs.get("dims") is not None:
            raise ValueError("dims %s have no place with kind=%r; attrs={} leaves them out" % (
                show(attrs["dims"]), kind))
        problems = self.check_items(items, metadata, {"kind": kind})
        rows, more = self._rows(items, kind, bool(options.get("flat")))
        self.refuse(problems + more)
        if kind in self.OWNERS and not rows:
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

    def _misfits_batch(self, item: Tensor, batch: Any, plain_value: bool) -> Chunks:
        """Yield why a tensor cannot be written as so many samples."""
        if type(batch) is not int or batch < 1 or (batch > 1 and item.shape[-1:] != (batch,)):
            yield f"batch is {show(batch)}, expected 1 or the last dimension of {list(item.shape)}"
            return
        rank = item.ndim - (batch > 1)
        if batch > 1 and plain_value:
            yield (f"batch {batch} in a parameter's value; set attrs['batch'] = 1 to make it an "
                   "ordinary dimension")
        if rank > 8:
            yield f"{rank} dimensions, 8 is the limit"

    def _rows(self, items: Items, kind: str, flat: bool = False) -> Any:
        """Return rows (key, statistic or None, name, Tensor, batch) as written, and problems."""
        rows, problems = [], []
        for name, item in items:
            if kind != "model" and self.OWNERS.get(kind) != (
                    name.split(":")[0] if kind == "parameter" else name):
                problems.append((name, f"kind={kind!r} holds {self.HELD.get(kind, 'no tensors')}"))
                continue
            try:
                self._check_bytes(name)
                parts, text = ([name], None) if flat else self.split(name)
            except ValueError as error:
                problems.append((name, str(error)))
                continue
            stat = None if text is None else text.encode("utf-8", TEXT_ERRORS)
            key = tuple([part.encode("utf-8", TEXT_ERRORS) for part in parts])
            batch = self.choose("batch", 1, self.own_attrs(item), {}) if item._attrs else 1
            if item._attrs or len(item.shape) > 8:
                problems += [(name, why) for why in self._misfits_batch(
                    item, batch, stat is None and kind != "tensor")]
            rows.append((key, stat, name, item, batch))
        rows.sort(key=lambda row: (row[0], row[1] is not None))
        return rows, problems + list(self._clashes(rows))

    def _clashes(self, rows: Any) -> Chunks:
        """Yield (name, why) of keys that cannot be beside the others."""
        outer: Any = (None,)  # the last key that is not inside another
        last: Any = None
        for key, stat, name, _, _ in rows:
            inside = key[:len(outer)] == outer
            if key != last and inside:
                what = f"the key {show(self._join(outer))} is both a parameter and a group of them"
                yield name, what
            if key != last and stat is not None:
                yield name, ("a statistic without its value (the part before ':'); "
                             "escape ':' and '\\' in names, or use flat=True")
            last, outer = key, outer if inside else key

    def _chunks(self, head: bytes, rows: Any, kind: str) -> Chunks:
        yield head
        known: Any = {}  # what comes again, as _pack_head() returns it
        counts: Any = {}  # of the statistics
        for row in rows:
            counts[row[0]] = counts.get(row[0], -1) + 1
        for key, stat, _, item, batch in rows:
            parts = (len(key),) + key if kind == "model" else ()
            parts = (parts if stat is None else (stat,)) + ((item.shape, batch),)
            yield b"".join([known.get(part) or keep(known, part, self._pack_head(part, item))
                            for part in parts])
            yield from item.column_blocks()
            if stat is None and kind != "tensor":
                yield pack(">BI", 0xCE, counts[key])

    @staticmethod
    def _pack_head(part: Any, item: Tensor) -> bytes:
        """Return the length of a key, a part of it, or (shape, batch) and the head of the data."""
        if isinstance(part, tuple):
            dims = part[0][:-1] if part[1] > 1 else part[0]
            return msgpack_dumps(dims, typed=True) + msgpack_dumps(part[1], typed=True) + \
                msgpack_size("bin", item.nbytes)
        if isinstance(part, int):
            return msgpack_size("array", part)
        return msgpack_size("str", len(part)) + bytes(part)


# -- [7d] burnpack -------------------------------------------------------------------------------


class Burnpack(Format):
    """Burnpack (.bpk), the native file of Burn: burn-store 0.19 to 0.21, burn-pack 0.22-pre.

    0      magic "NRUB" 4 | version u16 = 1 | metadata_size u32 = M; all little-endian
    10     CBOR map, M bytes: "tensors": name -> {dtype, shape, data_offsets [start, end),
           param_id?}, "metadata": text -> text?, "scalars" (0.22 pre-releases)?
    DS     = 10 + M rounded up to 256: the data; each tensor at a multiple of 256, zeros between,
           nothing behind the last; data_offsets count from DS

    The index is sorted by name, the data are in the order given. Burn 0.19 wrote the same header
    over a "packed" layout: no padding, data from 10 + M on. It is read (a file too short for the
    padding is packed), never written. Tensors of unknown dtypes are listed.
    """

    NAME = FAMILY = "burnpack"
    TITLE = "Burnpack"
    HOLDS = "metadata: text to text; scalars; param_id; quantized bytes"
    SUFFIXES = (".bpk", ".burnpack")
    MAGICS = (b"NRUB", b"BURN")
    DTYPES = {  # name here -> in the CBOR; others: dtype_of()
        "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
        "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32",
        "uint16": "U16", "uint8": "U8", "bool": {"Bool": "Native"}}
    NAMES = dict([(code, name) for name, code in DTYPES.items() if name != "bool"],
                 Bool="bool", Flex32="float32")  # in the CBOR -> here; Bool: burn 0.19, 0.20
    BOOLS = {"Native": "bool", "U8": "bool", "U32": "uint32"}  # {"Bool": how it is stored}
    OPTIONS = {"scalars": "map of name to {Int|UInt|Float|Bool: value}",
               "tensor_order": "all names, in the order of their data"}
    READ_OPTIONS = {"layout": "aligned or packed, where the file does not tell"}
    FILE_ATTRS = ("version", "layout", "scalars")
    TENSOR_ATTRS = ("param_id", "burn_dtype")
    DTYPE_ATTRS = ("burn_dtype",)
    USES = ("quantized",)
    CONTENT = ("param_id", "scalars")
    TEXTS = True
    DATA_ORDER = IN_FRONT = True
    MARKS = {"DS": "data"}
    ALIGN = 256
    PAD_END = "structure"
    MAX_METADATA_BYTES = 104857600  # the real reader's limits, both
    MAX_TENSORS = 100000

    HEADER = Record(("magic", "4s", "Burnpack, not BURN"), ("version", "H", "1 from burn 0.19 on"),
                    ("metadata_size", "I", "bytes of CBOR"))
    VALUES = {"Q8F": 8, "Q8S": 8, "E4M3": 8, "E5M2": 8, "Q4F": 4, "Q4S": 4, "E2M1": 4,
              "Q2F": 2, "Q2S": 2}  # bits; F and S both are two's complement
    SCALES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "UE8M0": "E8M0",
              "UE4M3": "E4M3"}
    BLOCK = Schema(
        ("len", lambda n: Burnpack.misfit_bytes([n], 1), True, "dimensions of a block"),
        ("storage", lambda sizes: Burnpack.misfit_bytes(sizes, 5), True, "size of a block"))
    SCHEME = Schema(
        ("value", tuple(VALUES), True, "type of the values"),
        ("param", tuple(SCALES), True, "type of the scales"),
        ("store", lambda store: Burnpack.misfit_store(store), True, "how values are packed",
         Schema(other=("any", "packed dimension"))),
        ("level", lambda level: Burnpack.misfit_level(level), True, "what shares a scale",
         Schema(("Block", "any", False, "elements that share one", BLOCK))),
        ("mode", ("Symmetric",), True, "Symmetric: no offset"))
    CODE = Schema(
        # <tools>
        ("Bool", "any", False, "how it is stored"), ("QFloat", "any", False, "quantized", SCHEME)
        # </tools>
    )
    ENTRY = Schema(
        ("dtype", lambda code: Burnpack.misfit_code(code), True, "type of the elements", CODE),
        ("shape", "numbers", True, "dimensions"),
        ("data_offsets", "span", True, "bytes from DS, [start, end)"),
        ("param_id", "unsigned", None, "Burn's own id of it"))
    TOP = Schema(
        ("tensors", Schema(other=("any", "entry of a tensor", ENTRY), keys=Schema.TEXT), True,
         "entries by name"),
        ("metadata", Schema(other=("text", "of the user"), keys=Schema.TEXT), False, "of the user"),
        ("scalars", Schema(other=("any", "type and value", Schema(other=("any", "the value"))),
                           keys=Schema.TEXT), False, "numbers by name"),
        doc="tensors, metadata, scalars")
    USUAL = ((b"", "", rb"[\xa3\xa4]\x65dtype(?:[\x62-\x64][A-Z\d]+|\xa1\x64Bool\x66Native)" +
              Usual.SHAPE),
             (b"\x6cdata_offsets\x82", "start"), (b"", "stop"),
             (b"", "", rb"(?:\x68param_id(?=[\0-\x1b]))?"), (b"", "param_id", Usual.NUMBER + b"|"))

    def read(self, cursor: Cursor, layout: Any = None) -> Any:
        if layout not in (None, "aligned", "packed"):
            raise ValueError(f"layout is aligned or packed, not {layout!r}")
        self.check_magic(cursor, b"NRUB")
        _, version, nbytes = cursor.record(self.HEADER)
        cursor.limit("version", version, 1, 1, "only 1 is known", Unsupported)
        cursor.limit("metadata_size", nbytes, 0, cursor.end - 10, "the file ends (cut short?)")
        cursor.limit("metadata_size", nbytes, 0, self.MAX_METADATA_BYTES, "MAX_METADATA_BYTES",
                     Unsupported)
        data, behind = cursor.source.read(10, nbytes), 10 + nbytes
        def open_entry(name: str, entry: Any) -> Tensor:
            return self._open(cursor.source, name, entry)
        if FAST:
            cursor.usual = Usual(self.USUAL, self.ENTRY, open_entry)
        top, end = cursor.cbor(data, 10, "", self.TOP, 2)
        # <tools>
        for text, at in watch_cbor(data, self.note_of, cursor):
            cursor.remark("burn 0.21 " + text, 10 + at)
        if cursor.trace is not None and end < behind:
            cursor.trace.add(end, behind - end, "rest of the metadata", None,
                             "bytes behind the CBOR item", kind="unused")
        # </tools>
        cursor.check_schema(self.TOP, top)
        metadata, entries = top.get("metadata", Map()), top["tensors"]
        found = cursor.open_entries(entries, self.ENTRY, open_entry, "tensors")
        tensors = admit(cursor, found, fields=("", "data_offsets", "data_offsets"))
        cursor.limit("tensors", len(tensors), 0, self.MAX_TENSORS, "MAX_TENSORS", Unsupported)
        layout, base = self._layout(cursor, behind, tensors, metadata, layout)
        for item in tensors.values():
            item.start += base  # until here it counted from DS
        keep_whole(cursor, tensors, "metadata_size")
        attrs = Map([("version", 1), ("layout", layout)])
        if "scalars" in top:
            attrs["scalars"] = top["scalars"]
        return attrs, metadata, tensors

    def _open(self, source: Any, name: str, entry: Any) -> Tensor:
        """Return the tensor of an entry; its start counts from DS."""
        made: Any = self.make(source, name, entry["dtype"], entry["shape"],
                              entry["data_offsets"], (), self.NAME)
        if entry.get("param_id") is not None:
            made._attrs += ("param_id", entry["param_id"])
        entry.clear()  # of many entries, only the dict is left
        return made

    @classmethod
    def make(cls, source: Any, name: str, code: Any, shape: Any, span: Any, attrs: Any,
             format: str) -> Tensor:
        """Return the tensor of a dtype and a shape in the words of Burn."""
        dtype, more, why = cls.dtype_of(code)
        make = FEATURES.get("quantized", Tensor) if dtype == "qfloat" else Tensor
        stored = Storage(source, span[1] - span[0], why=why)
        made: Tensor = make(name, dtype, tuple(shape), stored, span[0], attrs + more, format)
        return made

    @classmethod
    def dtype_of(cls, code: Any) -> Any:
        """Return (dtype, attrs, why it is not known) of a dtype of the CBOR."""
        if type(code) is str:
            dtype = cls.NAMES.get(code)
        else:
            (kind, value), = code.items()
            dtype = "qfloat" if kind == "QFloat" else None
            if kind == "Bool" and type(value) is str:
                dtype = cls.BOOLS.get(value)
        attrs = () if code == "Bool" or code in cls.DTYPES.values() else ("burn_dtype", code)
        return dtype, attrs, None if dtype else f"dtype {show(code)} is not known"

    @staticmethod
    def misfit_code(code: Any) -> str:
        """Return what a dtype of the CBOR should be, or "" where it may be one."""
        if type(code) is str:
            return ""
        if not isinstance(code, dict) or len(code) != 1 or type(list(code)[0]) is not str:
            return "text or a map of one text key"
        scheme = code.get("QFloat")
        return "" if "QFloat" not in code or isinstance(scheme, dict) else "a map in QFloat"

    @staticmethod
    def misfit_bytes(found: Any, count: int) -> str:
        fits = isinstance(found, list) and len(found) == count and all_u64(found)
        return "" if fits and max(found) < 256 else f"{count_of(count, 'number')} below 256"

    @staticmethod
    def misfit_store(store: Any) -> str:
        packed = isinstance(store, dict) and list(store) in (["PackedNative"], ["PackedU32"])
        fits = store == "Native" or packed and all_u64(store.values())
        return "" if fits else "Native, {PackedNative: n} or {PackedU32: n}"

    @staticmethod
    def misfit_level(level: Any) -> str:
        block = isinstance(level, dict) and list(level) == ["Block"]
        if level == "Tensor" or block and not list(Burnpack.BLOCK.wrongs(level["Block"])):
            return ""
        return "Tensor or {Block: {len, storage: 5 bytes}}"

    def _layout(self, cursor: Cursor, packed: int, tensors: Any, metadata: Any, layout: Any) -> Any:
        """Return (layout, offset of the data), by the length of the file."""
        size, aligned = cursor.end, round_up(packed, 256)
        end = max([item.start + item.stored.nbytes for item in tensors.values()], default=0)
        if layout is not None or size >= aligned + end:
            return layout or "aligned", packed if layout == "packed" else aligned
        ranges = sorted([(t.start, t.start + t.stored.nbytes) for t in tensors.values()])
        follow = [start for start, _ in ranges] == [0] + [stop for _, stop in ranges[:-1]]
        if end and not (follow and packed + end >= size):
            return "aligned", aligned
        doubt = end and not metadata.get("version", "").startswith("0.19.") and all([
            start % 256 == 0 for start, stop in ranges if start < stop])
        if not doubt or any(cursor.source.read(packed, min(aligned, size) - packed)):
            return "packed", packed
        if packed + end == size:
            raise cursor.error("ambiguous: a packed file of burn 0.19, or an aligned one cut by "
                               'its padding; layout="packed" or "aligned" settles it',
                               "metadata_size", check="bounds")
        return "aligned", aligned

    # <tools>
    @staticmethod
    def note_of(kind: str, value: Any, path: Any, head: int, tags: int, level: int) -> str:
        """Return what burn 0.21 makes of an item of CBOR, other than we do, or ""."""
        key = path[3] if path[1:2] == ["tensors"] and path[3:] else len(path)
        long, named = head & 31 == 31, kind == "key" and key in (2, MISSING, "dtype")
        refused = ""
        if isinstance(value, Simple):
            refused = "a simple value without a meaning"
        elif named and type(value) is bytes and not long:
            return "takes a key that is a byte string for text"
        elif named and (long or type(value) is not str):
            refused = "a key in chunks, or not text"
        elif key in ("dtype", "data_offsets") and long and kind in ("key", "text", "array", "map"):
            refused = f"{key} of indefinite length (or it loses what follows)"
        elif key == "param_id" and tags and value is None:
            refused = "a tag in front of null"
        elif key == "dtype" and path[4:] == [] and value == "Bool":
            refused = 'the text dtype "Bool" of 0.20 and older'
        return refused and "refuses the whole file: " + refused

    def alignment(self, attrs: Any) -> int:
        return 1 if attrs.get("layout") == "packed" else self.ALIGN

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        if attrs["layout"] == "packed" and tensors:
            data = [item for item in tensors if item.stored.nbytes]
            what = "misread this layout of 0.19" if data else "read no tensor: the padding is cut"
            yield "burn 0.20 and newer " + what
        unknown: Any = [item.stored.why for item in tensors if item.stored.why is not None]
        # <quantized>
        if not [text for text in odd if "byte string" in text]:
            unknown += [f"the scheme: {why}" for item in tensors if item.scheme is not None
                        for _, why in self.SCHEME.wrongs(item.scheme)]
        # </quantized>
        if unknown:
            yield f"burn 0.21 refuses the whole file: {unknown[0]}"
    # </tools>

    def own_attrs(self, tensor: Tensor) -> Facts:
        if tensor.format == "burnrecord":  # its elder: the same attrs, but for ids that are text
            return tensor.attrs_without(("id",))
        return super().own_attrs(tensor)

    def write(self, items: Items, metadata: Any, attrs: Any, options: Facts) -> Chunks:
        order = options.get("tensor_order")
        if order is not None:
            known = Map(items)
            order = [] if isinstance(order, str) else list(order)
            if [x for x in order if not isinstance(x, str)] or sorted(order) != sorted(known):
                raise ValueError("tensor_order must list every tensor once")
            items = [(name, known[name]) for name in order]
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
        base = round_up(10 + len(data), 256)
        return self.lay_out(self.HEADER.pack(b"NRUB", 1, len(data)) + data, items,
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
        key = (code, item.shape) if type(code) is str else None
        fields = known.get(key) if key else None
        if fields is None:  # a dtype and a shape come again
            fields = cbor_dumps(Map([("dtype", code), ("shape", item.shape)]), depth=2)[1:]
            fields = keep(known, key, fields + b"\x6cdata_offsets\x82")
        parts = [cbor_dumps(name), b"\xa3" if param_id is None else b"\xa4", fields,
                 cbor_head(0, start), cbor_head(0, stop)]
        if param_id is not None:
            parts += [b"\x68param_id", cbor_head(0, param_id)]
        return b"".join(parts)

    def _check_scalars(self, scalars: Any) -> Facts:
        checked: Facts = Map()
        for name, given in scalars.items() if hasattr(scalars, "items") else [(None, scalars)]:
            pair: Any = list(given.items()) if hasattr(given, "items") else []
            kind, value = pair[0] if len(pair) == 1 else (None, MISSING)
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


# <quantized>
class BurnSchemes:
    """Burn's schemes of 0.20 to 0.22-pre.2: values, lowest bits first, then scales ([6c])."""

    KEY, NEEDS = "burn_dtype", 'burn_dtype={"QFloat": {...}}'

    def scheme_of(self, code: Any) -> Any:
        return code.get("QFloat") if isinstance(code, dict) and len(code) == 1 else None

    def plan(self, item: Tensor, scheme: Any) -> Plan:
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
        fits = fits and not list(Burnpack.SCHEME.wrongs(found))
        if not fits:
            raise item.error(f"quantization scheme {show(scheme, 200)} is not known", Unsupported)
        floats = None if found["value"][0] == "Q" else found["value"]
        return Plan(item.shape, floats, Burnpack.VALUES[found["value"]],
                    Burnpack.SCALES[found["param"]], block)


FEATURES["quantized"] = Quantized
Quantized.SCHEMES = BurnSchemes()
# </quantized>


# -- [7e] tensorbuffers --------------------------------------------------------------------------


class TensorBuffers(Format):
    """TensorBuffers "TBS1" (russellwmy/tensorbuffers, both schemas: 7190fc4 and 2422de1).

    0      magic "TBS1" 4
    4      data of all tensors, back to back as written, no padding
    M      metadata: one FlatBuffer of n bytes, positions in it count from M
    end-8  n u32 | magic "TBS1" 4

    The root has version, model, tensors and (newer schema) operations. Data offsets are absolute.
    Tensors are sorted by id, a hash of the name and ff; the real library does not (sort=False).
    """

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
    MARKS = {"M": "root"}
    PAD_INSIDE = 8

    LEAD = Record(("magic", "4s", "TensorBuffers"))
    TRAILER = Record(("metadata_size", "I", "bytes of FlatBuffer"),
                     ("end_magic", "4s", "TensorBuffers"))
    ENTRY = (("id", "Q", 0, "hash of the name"), ("name", "string", MISSING, "name"),
             ("shape", ["I"], None, "dimensions"), ("data_type", "b", 0, "1 float32 ... 10 uint64"),
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
        cursor.seek(cursor.end - 8)
        nbytes, magic = cursor.record(self.TRAILER)
        if magic != b"TBS1":
            raise self.no_end(cursor, "end_magic", "magic")
        cursor.limit("metadata_size", nbytes, 0, cursor.end - 12, "the bytes before it")
        start = cursor.end - 8 - nbytes
        flat = FlatReader(cursor.source.read(start, nbytes), start, cursor)
        root = flat.root(self.ROOT)
        count = len(root["tensors"])
        if count * 16 > nbytes:
            raise flat.error(f"{count} tensors are more than {nbytes} bytes can hold", "tensors")
        flat.spend(350 * count, 0, "tensors")
        tensors = admit(flat, self._tensors(cursor, flat, root["tensors"]), 4, start,
                        ("name", "data_size", "data_offset"))
        attrs: Facts = Map([("version", root["version"])])
        if root["operations"] is not None:
            steps = flat.target([self.OPERATION], root["operations"], "operations", "a graph")
            if steps:
                attrs["operations"] = steps
        metadata = Map([("model", root["model"])] if root["model"] is not None else [])
        return attrs, metadata, tensors

    def _tensors(self, cursor: Cursor, flat: FlatReader, places: Any) -> Chunks:
        known: Any = {}  # by type, size and bytes of the shape: what they mean for all tensors
        usual: Any = [None] * len(places)
        if FAST and flat.trace is None:
            usual = self._usual(cursor, flat, places, known)
        left = flat.end
        for i, item in enumerate(usual):
            flat.where = "tensors", i
            if item is None:
                item = self._entry(cursor, flat, places[i], known)
            left -= 0 if item is None else len(item.name) + 2 * len(item.shape)
            if left < 0:
                raise flat.error("names and shapes are longer in sum than the metadata: they "
                                 "overlap", "name", tensor=item and item.name, error=Unsupported)
            yield item

    def _entry(self, cursor: Cursor, flat: FlatReader, place: int, known: Any) -> Any:
        """Return the tensor of a table, by the rows; None if it has no type."""
        left = flat.memory.left
        entry = flat.table(self.ENTRY, place)
        flat.memory.left = left  # the dict does not stay
        number, name, shape, code, start, nbytes = [entry[row[0]] for row in self.ENTRY]
        if shape is None:
            flat.remark("the real library refuses it: a tensor without a shape", flat.base + place)
            shape = ()
        if len(shape) > self.MAX_RANK:
            raise flat.error(f"{len(shape)} dimensions, {self.MAX_RANK} is the limit", "shape",
                             error=Unsupported)
        if code == 0:
            flat.fault("data_type 0 (None) is not a type", "data_type", tensor=name)
            return None
        raw = pack(f"<{len(shape) + 1}I", len(shape), *shape)
        dtype, shape, stored = self._alike(cursor, known, code, nbytes, raw)
        start = start if nbytes else min(start, flat.base)
        return Tensor(name, dtype, shape, stored, start, ("id", number), self.NAME)

    def _alike(self, cursor: Cursor, known: Any, code: int, nbytes: int, raw: bytes) -> Any:
        """Return what all tensors of this type, size and shape share; `raw`: the shape's vector."""
        if (code, nbytes, raw) not in known:
            count, *shape = unpack_from(f"<{len(raw) // 4}I", raw, 0)
            if not code or not count == len(shape) <= self.MAX_RANK:
                raise ValueError
            dtype = self.DTYPES[code - 1] if 1 <= code <= 10 else None
            why = None if dtype else f"data_type {code} is not known"
            known[code, nbytes, raw] = dtype, tuple(shape), Storage(cursor.source, nbytes, why=why)
        return known[code, nbytes, raw]

    def _usual(self, cursor: Cursor, flat: FlatReader, places: Any, known: Any) -> Chunks:
        """Yield the tensor of each table, in few calls; None if a field is absent or wrong."""
        data = flat.data
        layouts: Any = {}  # by vtable
        for place in places:
            item = None
            try:
                vtable = place - unpack_from("<i", data, place)[0]
                if vtable not in layouts:
                    layouts[vtable] = flat.usual_layout(place, self.ENTRY)
                unpack, steps = layouts[vtable]
                _, code, name_at, shape_at, start, nbytes, number = unpack(data, place)
                if name_at and shape_at and nbytes:
                    name_at += place + steps[1]
                    shape_at += place + steps[2]
                    stop = name_at + 4 + unpack_from("<I", data, name_at)[0]
                    name = data[name_at + 4:stop].decode()
                    raw = data[shape_at:shape_at + 4 + 4 * data[shape_at]]
                    if data[stop] == 0:
                        alike = known.get((code, nbytes, raw))
                        dtype, shape, stored = alike or self._alike(
                            cursor, known, code, nbytes, raw)
                        item = Tensor(name, dtype, shape, stored, start, ("id", number), self.NAME)
            except (struct.error, LookupError, ValueError):
                pass  # _entry() says what is wrong
            yield item

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        if [a for a, b in zip(tensors, tensors[1:]) if a.attrs["id"] > b.attrs["id"]]:
            yield "the index is not sorted by id: the real library's own look-up misses tensors"

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
        steps = [self._pack_operation(flat, operation) for operation in given]
        version = flat.string("1.0.0")
        tensors = flat.offsets([place for _, place in (sorted(places) if sort else places)])
        listed = None if operations is False else flat.offsets(steps)
        model = flat.string(metadata["model"]) if "model" in metadata else None
        data = flat.finish(flat.table(self.ROOT, (version, model, tensors, listed)))
        return self.lay_out(b"TBS1", items, starts, at,
                            data + self.TRAILER.pack(len(data), b"TBS1"))

    def _pack_operation(self, flat: FlatBuilder, operation: Any) -> int:
        fields = [row[0] for row in self.OPERATION]
        inputs = None
        if isinstance(operation, dict) and set(operation).issubset(fields):
            number, code, output, inputs = [operation.get(row[0], row[2]) for row in self.OPERATION]
        if (not isinstance(inputs, (list, tuple)) or not all_u64([number, output] + list(inputs))
                or type(code) is not int or not -128 <= code < 128):
            raise ValueError("an operation is a dict with a list of input_operations, integers id,"
                             f" operation and output; not {show(operation)}")
        return flat.table(self.OPERATION, (number, code, output, flat.scalars("Q", inputs)))


# -- [7f] safetensors ----------------------------------------------------------------------------

ST_TYPES = [row.split(":") for row in (  # code:bits:name here, as the official writer sorts them
    "U64:64:uint64 I64:64:int64 F64:64:float64 C64:64: F32:32:float32 U32:32:uint32 I32:32:int32 "
    "BF16:16:bfloat16 F16:16:float16 U16:16:uint16 I16:16:int16 F8_E5M2FNUZ:8: F8_E4M3FNUZ:8: "
    "F8_E8M0:8: F8_E4M3:8: F8_E5M2:8: I8:8:int8 U8:8:uint8 F6_E3M2:6: F6_E2M3:6: F4:4: "
    "BOOL:8:bool").split()]


class Safetensors(Format):
    """safetensors (.safetensors) of Hugging Face, 0.2.8 to 0.8.0: the bridge to other programs.

    0      header_size u64 = n, little-endian; there is no magic
    8      JSON object, n bytes: "__metadata__": text -> text?; name -> {dtype, shape,
           data_offsets [start, end)}; behind it spaces, to a multiple of 8
    8 + n  the data, without gap or overlap, nothing behind them; data_offsets count from here

    Written as by 0.3.1 and later: sorted by type, then name. Holes, overlaps and trailing bytes are
    errors here, as in every official reader. Tensors of a type without a name here are listed.
    """

    NAME = FAMILY = TITLE = "safetensors"
    HOLDS = "metadata: text to text"
    SUFFIXES = (".safetensors",)
    MARKED = BOARDS = False
    IN_FRONT = True
    DTYPES = dict([(name, code) for code, _, name in ST_TYPES if name])
    TYPES = dict([(row[0], (i, int(row[1]), row[2])) for i, row in enumerate(ST_TYPES)])
    OPTIONS = {"sort": "True: by type, then name; False: as given",
               "empty_metadata": "True: an empty __metadata__ is written, too"}
    FILE_ATTRS = ("empty_metadata",)
    TENSOR_ATTRS = DTYPE_ATTRS = ("st_dtype",)
    TEXTS = True
    IDLE_KEYS = ("format",)  # "pt": a library that wrote it
    MARKS = {"8 + n": "data"}
    CHECKS = ("index", "sizes", "bounds")
    MAX_HEADER_BYTES = 100000000  # the real reader's limits, both
    MAX_OPEN = 127  # arrays and objects
    HEADER = Record(("header_size", "Q", "bytes of JSON"))
    ENTRY = Schema(
        ("dtype", "text", True, "type of the elements"), ("shape", "numbers", True, "dimensions"),
        ("data_offsets", "span", True, "bytes behind the header, [start, end)"))
    TOP = Schema(("__metadata__", Schema(other=("text", "of the user")), None, "of the user"),
                 other=("any", "entry of a tensor", ENTRY), doc="metadata, tensors by name")
    USUAL = ((b',"', "name", UsualJson.NAME),
             (b'":{"dtype":', "", rb'"\w+",' + UsualJson.SHAPE),
             (b',"data_offsets":[', "start"), (b",", "stop"), (b"]}", "", b""))

    def detect(self, head: bytes) -> bool:
        return head[8:9] == b"{" and unpack_from("<Q", head, 0)[0] <= self.MAX_HEADER_BYTES

    def read(self, cursor: Cursor) -> Any:
        nbytes, = cursor.record(self.HEADER)
        base = 8 + nbytes
        cursor.limit("header_size", nbytes, 0, cursor.end - 8, "the file ends (cut short?)")
        cursor.limit("header_size", nbytes, 0, self.MAX_HEADER_BYTES, "MAX_HEADER_BYTES",
                     Unsupported)
        data = cursor.source.read(8, nbytes)
        cursor.outermost = "header"
        if data[:1] != b"{":
            raise cursor.error(f"the header begins with {data[:1]!r}, not b'{{'", offset=8)

        def open_entry(name: str, entry: Any) -> Any:
            return self._open(cursor, name, entry, base)
        if FAST:
            cursor.usual = UsualJson(self.USUAL, self.ENTRY, open_entry, base=base)
        top, end = cursor.read_json(data, 8, "header", self.TOP, 1, depth=self.MAX_OPEN)
        if cursor.trace is not None and end < base:
            odd = "not all 20" if data[end - 8:].strip(b" ") else None
            cursor.trace.add(end, base - end, "padding", odd, "spaces", kind="padding")
        cursor.check_schema(self.TOP, top)
        metadata, attrs = top.pop("__metadata__", MISSING), Map()
        if metadata is None:
            cursor.remark("__metadata__ is null, read as absent", 8)
        if metadata == {}:
            attrs["empty_metadata"] = True
        tensors = admit(cursor, cursor.open_entries(top, self.ENTRY, open_entry),
                        fields=("", "data_offsets", "data_offsets"))
        if not cursor.faults:  # else those that are left have holes between them
            self._check_places(cursor, base, tensors)
        return attrs, metadata if type(metadata) is Map else Map(), tensors

    def _open(self, cursor: Cursor, name: str, entry: Any, base: int) -> Tensor:
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
        for key in entry if cursor.trace is not None else ():
            if key not in self.ENTRY.rows:
                cursor.remark(f"every reader ignores the key {show(key)} of an entry",
                              cursor.error("", key).offset)
        entry.clear()  # of many entries, only the dict is left
        why = None if dtype else (
            f"dtype {show(code)} has no values here, only bytes, which {self.NAME} can hold")
        stored = Storage(cursor.source, end - start, why=why)
        return Tensor(name, dtype or None, tuple(shape), stored, base + start,
                      () if dtype else ("st_dtype", code), self.NAME)

    def _check_places(self, cursor: Cursor, base: int, tensors: Any) -> None:
        """Raise unless the data lie one behind the other, up to the end of the file."""
        at, items = base, list(tensors.values())
        for start, stop, i in sorted([(item.start, item.start + item.stored.nbytes, i)
                                      for i, item in enumerate(items)]):
            name = items[i].name
            if start != at:
                what = f"its data begin at {start}, those before end at {at}"
                raise cursor.error(what, name, "data_offsets", tensor=name, check="bounds")
            if stop > cursor.end and name in tensors:
                keep_whole(cursor, tensors, name, "data_offsets")
            at = stop
        if at < cursor.end:
            what = f"{count_of(cursor.end - at, 'byte')} after the end of the data"
            raise cursor.error(what, "trailing", offset=at, check="bounds")

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        unknown = [item.attrs["st_dtype"] for item in tensors if item.dtype is None]
        unknown = [code for code in unknown if code not in self.TYPES]
        if unknown:
            yield f"safetensors 0.8.0 refuses the whole file: dtype {show(unknown[0])}"
        odd = [item.name for item in tensors if item.size and item.start % (item.itemsize or 1)]
        if odd:
            yield f"data not aligned to their elements, so readers copy them: {show(odd)}"

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
        return self.lay_out(self.HEADER.pack(len(data)) + data, [row[1::2] for row in rows],
                            [base + start for start in starts], base + at)


FEATURES["opaque"] = Safetensors.NAME, "st_dtype"


# -- [7f2] shards --------------------------------------------------------------------------------


def misfit_shard(name: Any) -> str:
    """Return what the name of a shard should be, or ""."""
    fine = is_text(name) and name.strip(".") and not [c for c in "/\\:\0" if c in name]
    return "" if fine else "a plain file name"


class Shards(Format):
    """The index of a model in several safetensors files (model.safetensors.index.json).

    JSON object: "weight_map": name of a tensor -> name of the file that has it, beside the index;
    "metadata": {"total_size" ...}?

    Shards are plain names of files in its folder; nothing else is opened.
    """

    NAME, FAMILY, TITLE = "shards", "safetensors", "safetensors index"
    CHECKS = ("index", "shards")
    MARKED = False
    IN_FRONT = True
    TOP = Schema(
        ("metadata", "map", None, "of the writer"),
        ("weight_map", Schema(other=(misfit_shard, "the file of it")), True,
         "files by name of the tensor"), doc="an index")

    def detect(self, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and (b'"total_' in head or b'"weight_map"' in head)

    def read(self, cursor: Cursor) -> Any:
        data = cursor.source.read(0, cursor.end)
        top, end = cursor.read_json(data, 0, "index", self.TOP, 1)
        if cursor.trace is not None and end < cursor.end:
            cursor.trace.add(end, cursor.end - end, "padding", None, "blanks", kind="padding")
        cursor.check_schema(self.TOP, top)
        attrs = Map([("shards", sorted(set(top["weight_map"].values()))),
                     ("index", top.get("metadata") or Map()), ("weight_map", top["weight_map"])])
        return attrs, Map(), Map()

    def make_file(self, source: Any, parsed: Any, options: Any) -> File:
        attrs = Map(parsed[0].items())
        places = attrs.pop("weight_map", Map())
        file = Joined(find_format(self.FAMILY), source, attrs, places, options)
        if options.get("partial"):
            file.keep_whole()
        return file

    def verify_shards(self, source: Any, attrs: Any, deep: bool, verify: Any) -> Chunks:
        if not isinstance(source, Path):
            yield "-", "not looked for: they lie beside the index, which has no path", None
            return
        file: Any = self.make_file(source, (attrs,), {})
        for shard in attrs["shards"]:
            found: Any = ()
            try:
                with file.part(shard) as found:
                    errors = verify(found).errors
            except FormatError as error:
                errors = [error]
            for wrong in errors:
                yield "FAIL", f"{quote(shard)}: {wrong.what}", wrong.tensor
            more = [name for name in found if name not in file]
            if more:
                yield "note", f"{quote(shard)}: the index has no place for {show(more)}", None
            if not errors:
                yield "ok", f"{quote(shard)}: {count_of(len(found), 'tensor')}", None


if not BOARD:
    LATER.append(Shards())


# -- [7g] burnrecord -----------------------------------------------------------------------------


class Numbers:
    """The codec of a MessagePack array of numbers of one kind; floats may be stored as bits."""

    most = 0  # bytes from a stored one: no other format can use it

    def __init__(self, dtype: str) -> None:
        self.code = STRUCT_CODE.get(dtype, "e").replace("?", "B").replace("e", "H")

    def decode(self, source: Any, offset: int, nbytes: int, size: int) -> Chunks:
        step = {0xCA: 5, 0xCB: 9}.get(source.read(offset, 1)[0])
        if step:  # big-endian floats, a head of one byte before each
            for block in gather(source.view(offset, nbytes), 1, [nbytes // step], [step], step - 1):
                yield swap(block, step - 1)
            return
        values = []
        for row in each_head(source, offset, offset + nbytes):
            values.append(row[2])
            if len(values) == PART or row[3] == offset + nbytes:
                yield pack(f"<{len(values)}{self.code}", *values)
                values = []


ENCODINGS.update([(f"[{dtype}]", Numbers(dtype)) for dtype in (
    "bool", "float16", "bfloat16", "float32", "float64", "int64", "int32", "int16")])


def each_head(source: Any, start: int, stop: int) -> Chunks:
    """Yield (offset, kind, value, end) of MessagePack heads, one behind the other."""
    cursor = MsgpackReader(source)
    cursor.seek(start)
    while start < stop:
        kind, value = cursor.next_head()
        if kind == "float":
            kind = "float32" if cursor.pos - start == 5 else "float64"
        yield start, kind, value, cursor.pos
        start = cursor.pos


class RecordReader(MsgpackTree):
    """Reads a record as maps, lists and values, then its tensors.

    What is large is left in the file: of a bin or ext ("bin", start, stop), of numbers of one kind
    under `value` (kind, start, stop, count, least, most).
    """

    MAX_TREE = 4 << 20  # bytes of memory for all that, besides 8 for each of the file
    COSTS = {"map": 200, "array": 100, "bin": 120, "ext": 120, "str": 60}
    ITEM = Schema(("id", "any", False, "Burn's own id of it"),
                  ("bytes", "any", False, "the elements"), ("shape", "any", False, "dimensions"),
                  ("dtype", "any", False, "type of the elements"), doc="one map")
    for key, doc in ("param", "the tensor"), ("value", "the elements"):  # maps of any depth
        ITEM.rows[key] = "any", doc, ITEM
    ITEM.other = "any", "of the record", ITEM
    TEXT_KEYS = True
    METADATA = Schema(*[(key, "text", True, "of the record") for key in (
        "float", "int", "format", "version", "settings")], other=("text", "of the record"))
    metadata: Facts

    def read_all(self) -> Any:
        """Return the map that the file is."""
        if self.trace is not None:
            self.token = self.trace.follow_tree(0, "", "magic", self.ITEM, None)
        self.outermost = "magic"
        self.memory = Budget("MAX_TREE", self.MAX_TREE + 8 * self.end)
        self.texts: "Dict[bytes, str]" = {}  # short texts repeat
        self.odd: Any = {}  # by id of a list: its first item that is not a number as the others
        self.scalars: Facts = Map()
        return self.tree("MAX_DEPTH", MAX_DEPTH)

    def spend(self, nbytes: int) -> None:
        if not self.memory.covers(nbytes):
            self.memory.spend(nbytes, "memory for the index", offset=self.pos)

    def body(self, kind: str, nbytes: int, key: Any) -> Any:
        data = self.next_bytes(nbytes, "") if kind == "str" else None
        if data in self.texts:
            return self.texts[data]
        self.spend(self.COSTS[kind])
        if data is not None:
            text = decode_text(data)
            if text is None:
                raise FormatError("text is not UTF-8")
            if nbytes < 24 and len(self.texts) < 1 << 12:
                self.texts[data] = text
            return text
        start = self.pos
        if kind in ("bin", "ext"):
            self.pos += nbytes + (kind == "ext")
            return kind, start, self.pos
        value: Any = Map() if kind == "map" else []
        if kind == "array" and key == "value":
            found = self.scan(nbytes)
            if type(found) is tuple:
                return found
            self.odd[id(value)] = found
        if kind == "array" and key != "shape":
            self.spend(160 * nbytes)  # its items will get names
        return value

    def scan(self, count: int) -> Any:
        """Return what stands for a list of numbers, and move behind it.

        If they are not of one kind: the index of the first other item.
        """
        start, head = self.pos, self.head(1)
        n = low = high = 0
        kind, step = {b"\xca": ("float32", 5), b"\xcb": ("float64", 9)}.get(head, ("", 0))
        if FAST and step and step * count <= self.end - start:  # floats: all at once
            if bytes(self.source.view(start, step * count)[::step]).count(head) == count:
                n = count
        stop = start + n * step
        try:
            heads = each_head(self.source, stop, self.end)
            for _, (_, one, value, end) in zip(range(count - n), heads):
                kind = kind or one
                if one != kind or one not in ("int", "bool", "float32", "float64"):
                    break
                if one == "int":
                    low, high = min(low, value), max(high, value)
                n, stop = n + 1, end
        except FormatError:  # cut off, or what is behind the list is wrong
            pass
        self.pos = stop if n == count else start
        return (kind, start, stop, count, low, high) if n == count else n

    def tensors(self, item: Any) -> Chunks:
        """Yield the tensors, each with .where at its record; numbers go into .scalars."""
        stack: Any = [iter([("", ("item",), item), ("", (), None)])]  # of rows as of inside()
        while stack:
            name, path, value = next(stack[-1])
            entry, place, attrs = value, path, ()
            if type(value) is Map and len(value) == 2 and type(value.get("id")) is str:
                entry, place = value.get("param"), path + ("param",)
                attrs = BurnRecord.id_attrs(value["id"])
            if not path:
                stack.pop()
            elif self.is_tensor(entry):
                yield self.open(name or "item", place, entry, attrs)
            elif type(value) is tuple and len(value) == 3:
                self.remark("bytes that are not a tensor's are ignored", value[1])
            elif type(value) in (Map, list, tuple):
                stack.append(self.inside(name, path, value))
            elif value is not None:
                self.spend(160)
                name, self.where, self.tensor = name or "item", path, None
                if name in self.scalars:
                    self.fault("two numbers or texts have this name: " + show(name))
                self.scalars[name] = value

    def inside(self, name: str, path: Any, value: Any) -> Chunks:
        """Yield (name, path, item) of a map or list, perhaps left in the file; then no path."""
        if type(value) is tuple:
            self.where = path[:-1]
            self.add(value[1], value[2] - value[1], str(path[-1]), None, "numbers")
            value = [row[2] for row in each_head(self.source, value[1], value[2])]
        front = name + "." if path[1:] else ""
        for key, item in value.items() if type(value) is Map else enumerate(value):
            if item is not None:
                found = front + str(key)
                self.spend(2 * len(found.encode()))
                yield found, path + (key,), item
        yield "", (), None

    @staticmethod
    def is_tensor(entry: Any) -> bool:
        if type(entry) is not Map or "shape" not in entry:
            return False
        if len(entry) > 2:
            raw = entry.get("bytes")
            return "dtype" in entry and "bytes" in entry and (
                len(entry) == 3 or (type(raw) is tuple and raw[0] == "bin"))
        found = entry.get("value")
        return type(entry["shape"]) is list and (
            type(found) is list or (type(found) is tuple and len(found) == 6))

    def open(self, name: str, path: Any, entry: Any, attrs: Any) -> Any:
        """Return a Tensor; None if verify notes a fault."""
        self.spend(160)
        self.tensor, self.where = name, path
        try:
            if type(entry["shape"]) is not list or not all_u64(entry["shape"]):
                raise self.error("shape is not an array of integers " + U64, "shape")
            made = (self.listed if len(entry) == 2 else self.stored)(name, entry, attrs)
        except FormatError as error:
            self.add_fault(error)
            return None
        entry.clear()  # of many entries, only the dict is left
        return made

    def stored(self, name: str, entry: Any, attrs: Any) -> Tensor:
        """Return the tensor of bytes and their dtype."""
        raw, code = entry["bytes"], entry["dtype"]
        if type(raw) is not tuple or raw[0] != "bin":
            raise self.error("bytes is not a bin", "bytes")
        words = Burnpack.misfit_code(code)
        if words:
            raise self.error(f"dtype is {show(code)}, expected {words}", "dtype")
        if code == "Bool":
            self.remark('Burn 0.21 refuses it: the text dtype "Bool"', raw[1])
        return Burnpack.make(self.source, name, code, entry["shape"], raw[1:], attrs, "burnrecord")

    def listed(self, name: str, entry: Any, attrs: Any) -> Tensor:
        """Return the tensor of an array of numbers."""
        found, shape = entry["value"], entry["shape"]
        if type(found) is list:
            raise self.error("not as those before it", "value", self.odd[id(found)])
        dtype, start, stop, count, low, high = found
        if not dtype or dtype == "int":
            dtype = self.declared(dtype, low, high)
        if count != count_elements(shape):
            raise self.error(f"{count} numbers do not have the shape {show(shape)}", "value")
        least, most = INT_RANGE.get(dtype, (low, high))
        if low < least or most < high:
            for i, (at, _, value, end) in enumerate(each_head(self.source, start, stop)):
                if not least <= value <= most:
                    self.add(at, end - at, f"value[{i}]", value, "does not fit")
                    raise self.error(f"{show(value)} does not fit {plain(dtype)}", "value", i)
        encoding, why = f"[{dtype}]" if count else "raw", None
        if f"[{dtype}]" not in ENCODINGS:
            dtype, encoding, why = None, "raw", f"{plain(self.metadata['int'])} is not known"
        stored = Storage(self.source, stop - start, encoding=encoding, why=why)
        return Tensor(name, dtype, tuple(shape), stored, start, attrs, "burnrecord")

    def declared(self, kind: str, low: int, high: int) -> str:
        """Return the dtype of integers ("int", from `low` to `high`), or of no numbers at all."""
        told = self.metadata["float"]
        half = "float16" if told.endswith("::f16") else "bfloat16" if told.endswith("bf16") else ""
        if kind and not (half and low >= 0 and high < 1 << 16):
            return str(self.metadata["int"]).replace("i", "int")
        return half or {"f64": "float64"}.get(told, "float32")


class BurnRecord(Format):
    """The named MessagePack record of Burn (.mpk), its default file from 0.12 to 0.21.

    one map   = "metadata": {"float", "int", "format", "version", "settings": all text},
                "item": the module: maps and arrays around parameters,
                "_b": [] (from Burn 0.12 on)
    parameter = {"id": text, "param": TENSOR}
    TENSOR    = {"bytes": bin, "shape": [unsigned ...], "dtype": "F32"}, little-endian, row-major;
                before Burn 0.14 {"value": [number ...], "shape": [unsigned ...]}

    Names are keys and indices, joined by "."; the item itself is called "item". dtypes and schemes
    are those of Burnpack. Never written: Burn 0.22 has no reader for it. Not read: the same with
    "item" first or without names, Burn's recorders for .bin and .json.
    """

    NAME = FAMILY = "burnrecord"
    TITLE = "Burn's record"
    HOLDS = "read only: convert it to .bpk; numbers and texts (scalars), param_id, quantized bytes"
    SUFFIXES = (".mpk",)
    MAGICS = (b"\x82\xa8metadata", b"\x83\xa8metadata")  # from 82 to 8f: detect()
    WRITES = BOARDS = False
    NEEDS = ("burnpack",)
    READER = RecordReader
    DTYPES = Burnpack.DTYPES
    FILE_ATTRS = ("float", "int", "format", "version", "settings", "scalars")
    TENSOR_ATTRS = ("param_id", "id", "burn_dtype")
    DTYPE_ATTRS = ("burn_dtype",)
    CONTENT = ("param_id", "scalars")
    USES = ("quantized",)
    CODED = "list"
    BASE32 = "0123456789abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUV"

    def detect(self, head: bytes) -> bool:
        return head[1:10] == b"\xa8metadata" and 0x82 <= head[0] < 0x90

    def read(self, cursor: RecordReader) -> Any:
        if not self.detect(cursor.head(10)):
            self.check_magic(cursor, self.MAGICS[1])
        top = cursor.read_all()
        metadata = cursor.metadata = top["metadata"]
        cursor.check_schema(cursor.METADATA, metadata, "metadata")
        if "item" not in top:
            raise cursor.error("the map has no item", "item", offset=0)
        if "_b" not in top:
            cursor.remark("Burn 0.12 and later refuse it: it has no _b", 0)
        tensors = admit(cursor, cursor.tensors(top["item"]), 0, cursor.end, ("", "bytes", "bytes"))
        if cursor.scalars:
            metadata["scalars"] = cursor.scalars
        return metadata, Map(), tensors

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

    def remarks(self, odd: Any, attrs: Any, tensors: "List[Tensor]") -> Chunks:
        yield "Burn 0.22 and later read no .mpk; convert to .bpk"
        numbers = attrs["version"].split(".")
        if numbers[:2] in [["0", str(minor)] for minor in range(14)]:
            yield ("Burn 0.14 to 0.16 read it with the feature record-backward-compat only, later "
                   "ones not")
        for item in tensors:
            if item.dtype in ("float16", "bfloat16") and item.stored.encoding != "raw":
                yield f"{quote(item.name)} may be integers: nothing tells them from {item.dtype}"

    def check_options(self, options: Any) -> None:
        raise ValueError("burnrecord (.mpk) is not written, no living Burn reads it; save as .bpk")


# -- [8] load and save ---------------------------------------------------------------------------

FORMATS: "Tuple[Format, ...]" = (
    Mag(),
    ZTensor(),
    Primitiv(),
    Burnpack(),
    TensorBuffers(),
    Safetensors(),
    BurnRecord(),
)
NAMES = [kind.NAME for kind in FORMATS]
BY_NAME: "Dict[Any, Format]" = dict(
    [(kind.NAME, kind) for kind in LATER] + [
        (name, kind) for kind in FORMATS for end in kind.SUFFIXES
        for name in (kind.NAME, end, end[1:])])
NOT_OURS = (  # how a file begins, a word near its start, what it is and what to do
    (b"PK\3\4", b".npy", "an .npz archive: save() takes dict(numpy.load(path))"),
    (b"PK\3\4", b"/data.pkl", "a PyTorch file: save() takes torch.load(path, map_location='cpu')"),
    (b"PK\3\4", b"", "a zip archive (an .npz? numpy.load; of PyTorch? torch.load)"),
    (b"\x93NUMPY", b"", "an .npy array: save() takes {name: numpy.load(path)}"),
    (b"\x80", b"", "a pickle: if it is of PyTorch, save() takes torch.load(path)"),
    (b"GGUF", b"", "GGUF of llama.cpp: the package gguf reads it"),
    (b"\x89HDF", b"", "HDF5: h5py reads it, save() takes the arrays"),
    (b"\x08", b"\x12", "ONNX: the package onnx reads it"),
    (b"\x1f\x8b", b"", "a gzip file: load(gzip.open(path))"),
    (b"<", b"html", "an HTML page, perhaps of an error: download the file itself"),
    (b"version ", b"git-lfs", "a Git LFS pointer: `git lfs pull` fetches the file itself"))
OTHER_WAYS = (  # suffix, how such a file is written
    (".npz", "numpy.savez(path, **{n: numpy.asarray(t) for n, t in load(file).items()})"),
    (".pt", "torch.save({n: torch.from_dlpack(t) for n, t in load(file).items()}, path)"),
    (".gguf", "the package gguf writes it, of numpy.asarray(t)"))


def find_format(name: str) -> "Format":
    """Return the format with this name, or this suffix."""
    if name not in BY_NAME:
        raise ValueError(f"no format {show(name)}; there are {', '.join(NAMES)}")
    return BY_NAME[name]


def written_kind(kind: "Format", origins: Any, options: Facts) -> "Format":
    """Return the generation to write: version=, else that of the source, or the newest."""
    kinds = [kind] + [later for later in LATER if later.FAMILY == kind.NAME]
    written = Map([(one.VERSION, one) for one in kinds if one.VERSION])
    given = options.get("version")
    if written and given is not None:
        if str(given) not in written:
            texts = ", ".join(written)
            raise ValueError(f"{kind.TITLE}: version {show(given)} is not written; only {texts}")
        return written[str(given)]
    for origin in origins if written else ():
        if origin in kinds:
            return origin if origin.VERSION else list(written.values())[-1]
    return kind


def origins_of(tensors: Any, values: Any, attrs: Any) -> Any:
    """Yield the formats that a File, tensors of any mapping, or file attributes came from."""
    yield from [tensors.kind] if isinstance(tensors, File) else (
        find_format(item.format) for item in values if item.format is not None)
    yield from [kind for kind in LATER if attrs and kind.VERSION == attrs.get("version")]


def kind_of(source: Any, name: Any) -> "Format":
    """Return the format by name, else by the leading bytes, never by the suffix."""
    head = source.read(0, min(64, source.nbytes))
    kinds = LATER + list(reversed(FORMATS))  # 00 01 00 of a header's size is a version elsewhere
    wanted = None if name is None else find_format(name)
    if wanted is not None:
        kinds = [kind for kind in kinds if wanted.NAME in (kind.NAME, kind.FAMILY)]
    for marked in (True, False):  # those whose files need not begin with a mark come last
        for kind in kinds:
            if kind.MARKED == marked and kind.detect(head):
                return kind
    if wanted is not None:
        return wanted
    first = " ".join(["%02x" % byte for byte in head[:8]])
    what = f"not a tensor file known here (it begins with {first})" if head else "the file is empty"
    left_out = [name for name, magics in LEFT_OUT for magic in magics if head.startswith(magic)]
    if left_out:
        what = left_out[0] + " is a format that this copy was made without"
    # <tools>
    found = [text for start, word, text in NOT_OURS
             if head[:len(start)] == start and word in head.lower()]
    what += "; it looks like " + found[0] if found else ""
    left_out += [text for text in found if "gzip" in text]  # the bytes may be right
    # </tools>
    raise (Unsupported if left_out else FormatError)(what, 0, "magic", None, source.path, "magic")


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


def check_options(options: Any, known: "Dict[str, str]", what: str) -> None:
    """Raise TypeError for an option that is not known."""
    for key in [key for key in options if key not in known]:
        texts = ", ".join(["%s (%s)" % pair for pair in known.items()]) or "none"
        raise TypeError(f"{what} has no option {show(key)}; there are {texts}")


# <fast>
def without_gc(function: Any) -> Any:
    """Return a function that makes no cycles: to look for them would take a third of its time."""
    def quick(*args: Any) -> Any:
        import gc
        if not gc.isenabled():
            return function(*args)
        try:
            try:
                gc.disable()
                return function(*args)
            finally:
                gc.enable()
        finally:
            gc.enable()  # again: Ctrl-C may have come before the other
    return quick if FAST else function


@without_gc
# </fast>
def read_file(kind: "Format", source: Any, options: Facts) -> File:
    """Parse an index. Where that fails, parse it again with a Trace: for the place of the error."""
    error: Any = None
    trace: Any = None
    for _ in range(3):  # a second time with the trace; again if that found another error
        try:
            parsed = parse(kind, kind.READER(source, trace), options)
            return kind.make_file(source, parsed, options)
        except FormatError as caught:
            error = caught
            if trace is not None and trace.names == error.around:
                break
            if not BOARD:
                error.__traceback__ = None  # it keeps all that was parsed
            trace = Trace(error.around)
        except OverflowError:  # a device whose files end at 2 GiB
            error = Unsupported("an offset in the file is too large for this device")
            break
    error.path = source.path
    raise error


def parse(kind: "Format", reader: Any, options: Facts) -> Any:
    """Return (attrs, metadata, tensors), or raise an error that was deferred."""
    options = dict(options)
    # <tools>
    if options.pop("partial", False):
        if not kind.IN_FRONT:
            what = f"{kind.TITLE} has no index in front of its data: cut short, it is lost"
            raise reader.error("partial=True: " + what, error=Unsupported)
        reader.missing = []
    # </tools>
    check_options(options, kind.READ_OPTIONS, f"loading {kind.NAME}")
    parsed = kind.read(reader, **options)
    if reader.missing:
        parsed[0]["missing"] = reader.missing
    if reader.deferred is not None and reader.faults is None:
        raise reader.deferred
    return parsed


def load(source: Source, *, format: "Optional[str]" = None, mmap: bool = True,
         verify: bool = False, partial: bool = False, **options: Any) -> File:
    """Open a tensor file of any format. O(index): no tensor byte is touched.

    `source`: a path, bytes, or a seekable binary stream (read from its start; not closed).
    `format` skips detection. mmap=False reads a tensor's bytes when they are asked for: the way
    for files that may be truncated meanwhile (mapped, the system kills the reader: SIGBUS).
    verify=True also checks what verify() checks. partial=True opens a file that was cut short, if
    its index is in front: tensors that are not whole are left out, and named in attrs["missing"]
    (of primitiv, which has no index, the next one, or the field that the file ends in).
    Options: READ_OPTIONS of FORMATS. Raises FormatError (or its subclass Unsupported) for the
    bytes, OSError for the file.

    >>> f = load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    >>> f.format, list(f), f["w"].dtype, f["w"].tolist()
    ('ztensor', ['w'], 'float64', [1.0, 2.0])
    """
    opened = open_source(source, mmap)
    if partial:
        options["partial"] = True
    try:
        kind = kind_of(opened, format)
        file = read_file(kind, opened, options)
        if verify:
            for error in feature("verify")(opened, kind, options).errors:
                raise error
        return file
    except:
        opened.close()
        raise


class Joined(File):
    """One File over several; a shard is opened when one of its tensors is asked for."""

    def __init__(self, kind: "Format", source: Any, attrs: Facts, places: Any, options: Any,
                 files: Any = ()) -> None:
        super().__init__(kind, source, attrs, {}, places, options)
        self.parts: "Dict[str, File]" = Map(files)  # that are open
        self.differ: "List[str]" = []  # attributes that the files do not agree on
        self._named: Any = None  # shard -> names that the index places there

    def part(self, path: str) -> File:
        """Return a shard as a File; FormatError where it is missing or is not that of the index."""
        if path in self.parts:
            return self.parts[path]
        if not isinstance(self._source, Path):
            raise Unsupported("shards lie beside their index: load it by its path")
        source = Shard(self._source, path)
        source.open()
        kind = kind_of(source, None)
        if kind is not self.kind:
            what = f"shards are {self.kind.TITLE} files, this is {kind.TITLE}"
            raise FormatError(what, path=source.path)
        file = read_file(kind, source, self._options)
        if source.mapping():  # before another thread has it: a model may have many files
            source.open().close()
        if self._named is None:
            named: Any = {}
            for name, place in self._tensors.items():
                named.setdefault(place, []).append(name)
            self._named = named  # when it is whole: Ctrl-C may come before
        names = Map.fromkeys(list(file) + file.attrs.get("missing", []))
        wrong = [(name, "lacks") for name in self._named.get(path, ())
                 if name not in names]
        wrong += [(name, "has") for name in names if self._tensors.get(name, path) != path]
        for name, has in wrong:
            what = f"its place is {quote(self._tensors[name])}, but {quote(path)} {has} it"
            raise FormatError(what, None, "weight_map", name, self.path)
        return self.parts.setdefault(path, file)

    def keep_whole(self) -> None:
        """Open all shards; leave out the tensors of those that are missing, damaged or cut."""
        whole: Any = set()
        for path in self.attrs["shards"]:
            try:
                whole.update(self.part(path))
            except FormatError:
                if not isinstance(self._source, Path):  # where none can be looked for
                    raise
        self.attrs["missing"] = [name for name in self._tensors if name not in whole]
        for name in self.attrs["missing"]:
            del self._tensors[name]

    def __getitem__(self, name: str) -> Tensor:
        path = str(super().__getitem__(name))
        try:
            return self.part(path)[name]
        except FormatError as error:
            error.tensor = error.tensor or name
            raise

    def items(self) -> Any:
        return Map([(name, self[name]) for name in self]).items()

    def values(self) -> Any:
        return [self[name] for name in self]

    def close(self) -> None:
        super().close()
        for file in self.parts.values():
            file.close()

    @property
    def metadata(self) -> Facts:
        """That of all files, which it opens; ValueError where they do not agree."""
        found, differ = self.merged()
        if differ:
            raise ValueError(f"the files do not agree on {', '.join(differ[:9])}; "
                             "convert(drop=True) leaves it out")
        return found

    @metadata.setter
    def metadata(self, value: Any) -> None:
        pass

    def merged(self) -> "Tuple[Facts, List[str]]":
        found, differ = Map(), Map()
        for path in sorted(set(map(str, self._tensors.values())).union(self.parts)):
            for key, value in self.part(path).metadata.items():
                if found.setdefault(key, value) != value:
                    differ[key] = f"metadata {show(key)}"
        return (Map([(key, value) for key, value in found.items() if key not in differ]),
                self.differ + list(differ.values()))


def load_again(format: str, facts: Any, options: Facts) -> File:
    """Return the File of a pickle, unless the file has changed."""
    source = Path(*facts)
    source.open()
    return read_file(kind_of(source, format), source, options)


def in_order(tensors: Any) -> Items:
    """Return the items of a mapping; of a File by offset where its format sorts the index."""
    items = list(tensors.items())
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


def in_pairs(tensors: Any) -> "Iterator[Tuple[str, Any]]":
    """Iterate over (name, value) pairs; TypeError for values without names."""
    bare = hasattr(tensors, "shape") or hasattr(tensors, "state_dict")
    bare = bare or not hasattr(tensors, "__iter__")
    for pair in [tensors] if bare else tensors:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("tensors are a mapping of names to values (of a torch module, its "
                            "state_dict()) or pairs of both, not " + type(pair).__name__)
        yield pair[0], pair[1]


def named_again(tensors: "List[Tensor]") -> Any:
    """Return the numbers of the tensors that name bytes of another, or no bytes at all."""
    again, reach = set(), 0
    for start, stop, i in sorted([(start, start + nbytes, i) for i, item in enumerate(tensors)
                                  for start, nbytes, _ in item.ranges()]):
        if start < reach or start == stop:
            again.add(i)
        reach = max(reach, stop)
    return again


def work_of(item: Any, sparse: bool, cast: bool, most: int) -> int:
    """Return the bytes that one tensor is when it is read, decoded and written."""
    nbytes: int = max(item.nbytes, sum([row[1] for row in item.ranges()]))
    # <sparse>
    if is_sparse(item):
        try:
            nbytes = item.cost(most)
        except FormatError:  # damaged: its values raise again where they are asked for
            pass
        return nbytes if sparse else nbytes + item.nbytes
    # </sparse>
    if item.dtype == "qfloat":
        return nbytes + 4 * item.size if cast else nbytes
    if item.stored.encoding != "raw" and item.stored.why is None:
        nbytes += 8 * item.stored.nbytes  # a byte can be a block of a codec
    return nbytes


def check_work(kind: "Format", items: Items, cast: bool = False) -> None:
    """Raise ValueError where a file makes us write far more than it is: bytes named many times."""
    sources: Any = {}  # tensors of each file; parts of one tensor, which share its name, count once
    for _, item in items:
        item = getattr(item, "_base", item)  # of a Cast
        source = item.stored.source
        if source.of_file:
            sources.setdefault(id(source), (source.nbytes, {}))[1][item.name] = item
    for nbytes, named in sources.values():
        tensors, most = list(named.values()), MAX_COPIES * nbytes
        costs = [work_of(tensors[i], "sparse" in kind.USES, cast, most)
                 for i in named_again(tensors)]
        more = sum(costs) - max(costs, default=0)  # what one alone needs is never too much
        what = f"the tensors name the same bytes of {nbytes} again and again"
        Budget("MAX_COPIES", most).spend(more, what)


def check_stored(items: Items) -> None:
    """Raise FormatError where stored bytes do not agree with their checksum."""
    budgets: Any = {}  # of each file
    seen = set()  # ranges, and what was hashed of them
    for name, item in [pair for pair in items if pair[1].format is not None]:
        kind, source = BY_NAME[item.format], item.stored.source
        for label, offset, nbytes, text in kind.checksums(item):
            part = id(source), offset, nbytes
            if part + (text,) in seen:
                continue
            if not BOARD and part in seen:  # another spelling; once is what the tensor says
                cost, slow = kind.hash_cost(nbytes, text)
                fresh = Budget("MAX_COPIES", MAX_COPIES * source.nbytes)
                budgets.setdefault(id(source), fresh).spend(cost + 4 * slow,
                                                            "many checksums of the same bytes")
            seen.update([part, part + (text,)])
            status, why = kind.check_range(source, offset, nbytes, text)
            if status == "FAIL":
                raise FormatError(label + why, offset, "data", name, source.path, "checksums")


def by_name(pairs: Any) -> "Dict[str, Tensor]":
    """Return the values as Tensors, by their names."""
    found: "Dict[str, Tensor]" = Map()
    for name, value in pairs:
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
    if ARRAYS:
        tensors = adopt(tensors)
        tensors = tensors if hasattr(tensors, "items") else in_pairs(tensors)
    pairs, collect = tensors, by_name
    if hasattr(tensors, "items"):
        pairs = in_order(tensors)
        # <fast>
        collect = without_gc(by_name)  # not of given pairs: to make them may take long
        # </fast>
    found = collect(pairs)
    # <later>
    kind = written_kind(kind, origins_of(tensors, found.values(), attrs), options)
    # </later>
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
    if not BOARD:
        check_work(kind, items)
    chunks = kind.write(items, metadata, attrs, options)
    # <ztensor tools>
    check_stored(items)
    # </ztensor tools>
    return chunks


def target_format(format: Any, target: Any, tensors: Any) -> "Format":
    """Return the format by the argument, else by the suffix, else that of a File."""
    if format is not None:
        return find_format(format)
    path = "" if hasattr(target, "write") else path_of(target)
    for kind in FORMATS:
        if [suffix for suffix in kind.SUFFIXES if path.lower().endswith(suffix)]:
            return kind
    if path and hasattr(tensors, "say_missing"):  # a File, also of another copy
        return find_format(tensors.format)
    # <tools>
    for suffix, way in OTHER_WAYS:
        if path.lower().endswith(suffix):
            raise ValueError(f"{suffix} is not written here; {way}")
    # </tools>
    names = ", ".join([f"{kind.NAME} {kind.SUFFIXES[0]}" for kind in FORMATS if kind.WRITES])
    raise ValueError("which format? give format= (--format) or a suffix: " + names)


def save(target: Target, tensors: Any, *, format: "Optional[str]" = None,
         metadata: Any = None, attrs: Any = None, **options: Any) -> None:
    """Write tensors to a path or a writable binary stream.

    `tensors`: a File, a mapping of names to values, or (name, value) pairs; values as tensor()
    takes them. The format: `format`, else the suffix, else that of the File. `metadata` and
    `attrs` (facts of the format) are those of the File unless given. `tensorfmt formats` lists
    the options. What the format cannot hold is a ValueError before the first byte; damaged bytes
    of a source are a FormatError. A file is written as `.NAME.N.tmp` beside the target, then
    renamed: a failure or Ctrl-C leaves the old file as it was. Only a killed process leaves the
    `.tmp` behind: delete it. The mode and symbolic links are kept; devices are written in place.

    >>> stream = BytesIO()
    >>> save(stream, {"w": [1.0]}, format="ztensor")
    >>> load(stream)["w"].tolist()
    [1.0]
    """
    kind = target_format(format, target, tensors)
    write_out(target, encode_file(kind, tensors, metadata, attrs, options))


def dumps(tensors: Any, *given: "NoReturn", format: str = "", metadata: Any = None,
          attrs: Any = None, **options: Any) -> bytes:
    """Return what save() would write; load() takes it back.

    >>> len(dumps({}, format="mag")), dumps({}, format="ztensor").hex()
    (24, '5a54454e30303031800100000000000000')
    """
    if given or not format:
        raise TypeError('the format is a keyword: dumps(tensors, format="NAME")')
    return join_file(find_format(format), tensors, metadata, attrs, options)


# <fast>
@without_gc
# </fast>
def join_file(kind: "Format", tensors: Any, metadata: Any, attrs: Any, options: Facts) -> bytes:
    chunks = encode_file(kind, tensors, metadata, attrs, options)
    return b"".join([bytes(chunk) for chunk in chunks] if BOARD else chunks)


def write_out(target: Any, chunks: Chunks) -> int:
    """Write a file to a path or a stream; return its bytes."""
    if hasattr(target, "write"):
        return write_all(target, chunks)
    path = path_of(target)
    if not BOARD and hasattr(os, "replace"):
        real = os.path.realpath(path)
        if not os.path.exists(path) or os.path.isfile(real) and os.path.samefile(path, real):
            return _write_beside(real, chunks, path)
        with open(path, "wb") as stream:  # a device, a pipe, /dev/fd/N of a deleted file
            return write_all(stream, chunks)
    temporary = path + ".tmp"
    with open(temporary, "wb") as stream:
        total = write_all(stream, chunks)
    try:
        os.rename(temporary, path)
    except OSError:  # FAT does not rename over a file
        os.remove(path)
        os.rename(temporary, path)
    return total


def write_all(stream: Any, chunks: Chunks) -> int:
    """Write every chunk whole, also where write() takes a part; return the bytes."""
    total = 0
    for chunk in chunks:
        left = len(chunk)
        total += left
        while left > 0:
            count = stream.write(chunk)
            if count is None and not hasattr(stream, "readall"):  # not a raw one: it took all
                break
            if count is None or count < 1:
                raise OSError("the target is full")
            left -= count
            if left > 0:
                chunk = chunk[count:] if BOARD else memoryview(chunk)[count:]
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
        total = write_all(stream, chunks)
        stream.flush()
        if hasattr(os, "fsync"):
            os.fsync(stream.fileno())
        stream.close()
        os.replace(temporary, path)
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


# -- [9a] explain --------------------------------------------------------------------------------

FIELD_KINDS = Map([  # (what it is, its colour in a terminal)
    ("structure", ("says what is where", "94")), ("data", ("the numbers", "32")),
    ("padding", ("keeps what follows aligned", "90")), ("unused", ("no field names it", "33")),
    ("fault", ("what is wrong", "1;31")), ("unreached", ("was not read", "33"))])
NO_DOCSTRING = "Its layout is drawn in its docstring; python -OO leaves that out."


class Field:
    """One named piece of a file: unpacks as (offset, nbytes, name, value, doc).

    Also `.kind` (one of FIELD_KINDS), `.depth` of nesting, `.tensor` (a name or None), `.lead`
    (bytes before its value: the map key and tags) and `.target` (where an offset leads, or None).
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


class FieldTrace(Trace):
    """Collects the fields of one parse; `wire`: CBOR token by token."""

    def __init__(self, wire: bool = False, nbytes: int = 0) -> None:
        super().__init__()
        self.wire, self.owners = wire, {}
        self.fields, self._most = [], MAX_FIELDS + nbytes // 16
        self._offsets: "Dict[str, int]" = {}  # of the last field of each name, up to the ._known-th
        self._known, self.rest = 0, range(0)

    def add(self, offset: int, nbytes: int, name: str, value: Any, doc: str, depth: int = 0,
            kind: str = "structure", lead: int = 0, owner: Any = None, target: Any = None) -> None:
        if kind == "absent":  # no field, but an error can be one of it
            if len(self.fields) <= self._most:
                self._offsets[name] = offset
            return
        if len(self.fields) > self._most:
            last = self.fields[-1]
            if kind == "data":
                return
            if last.kind == kind and last.offset + last.nbytes <= offset:
                last.nbytes, last.value = offset + nbytes - last.offset, None
                last.doc = f"and what is behind it: MAX_FIELDS = {MAX_FIELDS}"
                self.rest = range(last.offset, offset + nbytes)  # tensors too
                return
        self.fields.append(Field(offset, nbytes, name, value, doc, kind, depth, owner, lead,
                                 target))

    def find(self, names: Any) -> "Optional[int]":
        for field in self.fields[self._known:]:
            if field.doc[:6] != "break:":
                self._offsets[field.name] = field.offset
        self._known = len(self.fields)
        found = [self._offsets[name] for name in names if name in self._offsets]
        return found[-1] if found else None

    def follow_tree(self, base: int, name: str, root: str, schema: Any, level: Any,
                    data: Any = None) -> Any:
        if self.wire and data is not None:
            return CborTokens(self, data, base, name)
        return CborFields(self, base, name, root, schema, level)


class CborTokens:
    """Makes a field of each token of cbor_read: what `explain --wire` shows."""

    def __init__(self, trace: FieldTrace, data: bytes, base: int, name: str) -> None:
        self.trace, self.data, self.base, self.name = trace, data, base, name
        self.chunks: "List[Tuple[int, int, Any]]" = []

    def path(self, depth: int, key: Any) -> str:
        return self.name

    def __call__(self, start: int, stop: int, depth: int, kind: str, value: Any, key: Any) -> None:
        if kind == "chunk":
            self.chunks.append((start, stop, value))
            return
        head, chunks, self.chunks = self.data[start], self.chunks, []
        size, behind = cbor_argument(self.data, start + 1, len(self.data), head)
        major, nbytes = head >> 5, behind - start - 1
        doc = f"major {major}, argument {head & 31 if size < 0 else size}"
        doc += f" in {count_of(nbytes, 'byte')}" if nbytes else ""
        doc += "" if size >= 0 else ": the break" if head == 0xFF else ": until the break ff"
        if head != 0xFF:
            kind = CBOR_MAJORS[major]
            kind += f"({size if size >= 0 else '*'})" if 1 < major < 6 else ""
        value = None if chunks or 3 < major < 6 else value
        self.trace.add(self.base + start, 1 if chunks else stop - start, kind, value, doc, depth)
        for first, last, part in chunks:
            self(first, last, depth + 1, kind, part, None)
        if chunks:
            self(stop - 1, stop, depth + 1, "break", None, None)


class Fields:
    """What explain() returns: an iterator of Fields; a notebook shows the page of them."""

    def __init__(self, fields: "List[Field]", error: Any, source: Any, *asked: Any) -> None:
        self._fields, self._error = iter(fields), error
        self._source, self._asked = source, asked

    def __iter__(self) -> "Iterator[Field]":
        return self

    def __next__(self) -> Field:
        for field in self._fields:
            return field
        raise self._error or StopIteration

    def _repr_html_(self) -> str:
        """Return the page in a frame, apart from what is around it."""
        from html import escape
        source = open_source(self._source, True)
        try:
            page, _ = make_page(Explained(source, *self._asked),
                                os.path.basename(source.path or "the data"))
        finally:
            source.close()
        return (f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" '
                'style="width:100%;height:48em;border:0"></iframe>')


def explain(source: Source, *, format: "Optional[str]" = None, wire: bool = False,
            **options: Any) -> Fields:
    """Yield a Field (offset, nbytes, name, value, doc) for every byte of a file, by offset.

    Only shared tensor data overlap. Of a broken file come the fields that were read, the offending
    one (its kind is "fault") and what was not reached, then the FormatError. `wire`: CBOR token by
    token. A notebook shows what is returned as the page of `explain --html`.

    >>> [f.name for f in explain(dumps({}, format="ztensor"))]
    ['magic', 'index', 'index_size']
    """
    opened = open_source(source, True)
    try:
        fields, _, error, _ = dissect(kind_of(opened, format), opened, options, None, wire)
    finally:
        opened.close()
    aim_offsets(fields)
    return Fields(fields, error, source, format, options, wire)


def dissect(kind: "Format", source: Any, options: Facts, faults: Any,
            wire: bool = False) -> "Tuple[List[Field], Any, Any, FieldTrace]":
    """Parse with a trace; return (fields, parsed or None, error or None, the trace)."""
    trace = FieldTrace(wire, source.nbytes)
    error: Any = None
    try:
        parsed = parse(kind, kind.READER(source, trace, faults), options)
    except FormatError as caught:
        error = caught
        error.path = source.path
    if faults is None and error is not None and error.check == "bounds" and not error.tensor:
        fields, parsed, other, again = dissect(kind, source, options, [], wire)
        if other is None:
            fields = [field for field in fields if field.kind != "unused"]
            return _fields_to(error, fields, source.nbytes), parsed, error, again
    for field in trace.fields:
        if field.kind != "data":
            field.tensor = trace.owners.get(field.tensor)  # its name, for the prefix
    if error is not None:
        return _fields_to(error, trace.fields, source.nbytes), None, error, trace
    fields = _without_overlap([field for field in trace.fields if field.kind != "data"])
    for item in [item for item in parsed[2].values() if item.stored.source is source]:
        name = "data " + clip_path(item.name)
        fields += [Field(start, nbytes, f"{name}.{role}" if role else name,
                         *_data_text(item, role), "data", 0, item.name)
                   for start, nbytes, role in item.ranges() if start not in trace.rest]
    return _with_gaps(kind, source, parsed[0], sort_fields(fields)), parsed, None, trace


def sort_fields(fields: "List[Field]") -> "List[Field]":
    """Return fields by offset; of the same offset, empty ones first, then as parsed."""
    return sorted(fields, key=lambda field: 2 * field.offset + (field.nbytes > 0))


def _data_text(item: Tensor, role: str) -> "Tuple[str, str]":
    """Return value and meaning of a tensor's bytes, or of a part of a sparse one."""
    text, stored = f"{plain(str(item.dtype))} {show(item.shape)}", item.stored
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


def _fields_to(error: FormatError, fields: Any, nbytes: int) -> "List[Field]":
    """Return the fields that were read, the offending one, and what was not reached."""
    offset = nbytes if error.offset is None else error.offset
    fields = _without_overlap(fields)
    for field in fields:  # data that the file does not have
        field.nbytes = min(field.nbytes, nbytes - field.offset)
    found = [f for f in fields if f.offset == offset and f.name == error.field][-1:]
    if not found:
        stop = min([f.offset for f in fields if f.offset > offset] + [offset + 16, nbytes])
        found = [Field(offset, max(stop - offset, 0), error.field or "?", None, error.what)]
        fields = [f for f in fields if f.offset > offset or f.offset + f.nbytes <= offset]
        fields = sort_fields(fields + found)
    found[0].kind = "fault"
    ends = [0] + [field.offset + field.nbytes for field in fields]
    starts = [field.offset for field in fields] + [nbytes]
    lost = [Field(at, stop - at, "not reached", None, "was not read", "unreached")
            for at, stop in zip(ends, starts) if at < stop]
    return sort_fields(fields + lost)


def aim_offsets(fields: "List[Field]") -> None:
    """Let the offsets of an index lead to the data of their tensors, or to a part of the file."""
    starts, firsts = set(), {}
    for field in fields:
        if field.kind == "data":
            starts.add((field.tensor, field.offset))
            firsts.setdefault(field.tensor, field.offset)
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


def doc_of(kind: "Format") -> str:
    """Return the docstring of a format, which draws its layout, without indentation."""
    from textwrap import dedent
    return dedent("    " + (kind.__doc__ or NO_DOCSTRING)).strip()


def layout_of(kind: "Format") -> "Tuple[List[str], List[Tuple[str, str]]]":
    """Return the paragraphs of a format's docstring; rows (label, items between bars) it draws."""
    import re
    row = r"(?m)^(\S.{0,11}?)(?:  +| +(?==))(.*)"
    texts, rows = [], []
    for part in doc_of(kind).split("\n\n"):
        if re.match(row, part):  # lines that begin with blanks go on
            part = re.sub(r"(?<=[,|:;])\n +", " ", part)
            rows += re.findall(row, re.sub(r"\n +", " | ", part))
        else:
            texts.append(" ".join(part.split()))
    return texts, rows


def layout_places(kind: "Format", rows: Any, fields: Any, nbytes: int) -> "Dict[str, int]":
    """Return where the labels of a layout are in this file: label -> offset."""
    places = {}
    for label, _ in rows:
        marks = str(kind.MARKS.get(label, label)).split(" ")
        found = [field for field in fields if field.name in marks or field.kind in marks][:1]
        at: Any = None
        if label.isdigit():
            at = int(label)
        elif label[:4] == "end-":
            at = nbytes - int(label[4:])
        elif found:
            at = found[0].offset if label in kind.MARKS else found[0].value
        if isinstance(at, int) and 0 <= at < nbytes:
            places[label] = at
    return places


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
            doc = count_of(field.offset - at, "byte") + " that no field names"
            out.append(Field(at, field.offset - at, "unused", None, doc, "unused"))
        out.append(field)
        if field.offset + field.nbytes >= at:
            at, before = field.offset + field.nbytes, after
    return [field for field in out if field.nbytes]


# -- [9b] verify ---------------------------------------------------------------------------------


class Report:
    """What verify() found: true when nothing failed, str() of it is for a person.

    `.rows`: (status, check, tensor, text, offset), status "ok", "FAIL", "note" (legal but odd)
    or "-" (not possible). `.errors`: the FormatErrors behind the FAILs. `.format`, `.version`,
    `.path`.
    """

    def __init__(self, path: "Optional[str]", kind: "Optional[Format]") -> None:
        self.path, self.format = path, kind.FAMILY if kind else None
        self.title, self.version = kind.TITLE if kind else "", None
        self.rows, self.errors = [], []

    def __bool__(self) -> bool:
        return not self.errors

    def add(self, status: str, check: str, text: str, tensor: Any = None,
            offset: Any = None) -> None:
        self.rows.append((status, check, tensor, text, offset))

    def fail(self, error: FormatError) -> None:
        error.__traceback__ = error.__context__ = None  # its frames would keep decoded blocks
        self.errors.append(error)
        self.add("FAIL", error.check, error.what, error.tensor, error.offset)

    def first(self) -> FormatError:
        """Return the error with the lowest offset."""
        places = [(error.offset is None, error.offset or 0, i)
                  for i, error in enumerate(self.errors)]
        return self.errors[min(places)[2]]

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
        last = f"valid {self.title}"
        if self.errors:
            title = " " + self.title if self.title else ""
            last = f"INVALID{title}: {count_of(len(self.errors), 'problem')}"
            first = self.first().offset
            if first is not None:
                last += f", the first at 0x{first:x}"
        return "\n".join(lines + [f"{plain(self.path or 'the data')}: {last}"])


def verify(source: Source, *, format: "Optional[str]" = None, deep: bool = False, watch: Any = None,
           **options: Any) -> Report:
    """Check structure, bounds, sizes, padding and every stored checksum; return a Report.

    It comes for broken files too, and is true when nothing failed; OSError passes. `deep`: XXH3
    (zTensor 2) of more than MAX_SLOW_HASH bytes also without the module xxhash. `watch`: as [10a]
    Progress.

    >>> bool(verify(dumps({"w": [1.0]}, format="ztensor")))
    True
    """
    opened = open_source(source, True)
    try:
        return verify_source(opened, kind_of(opened, format), options, deep, watch)
    except FormatError as error:
        report = Report(opened.path, None)
        report.fail(error)
        return report
    finally:
        opened.close()


def verify_source(source: Any, kind: "Format", options: Facts, deep: bool = True,
                  watch: Any = None) -> Report:
    report, faults = Report(source.path, kind), []
    fields, parsed, error, trace = dissect(kind, source, options, faults)
    faults += [] if error is None else [error]
    attrs, _, items = parsed = parsed or (Map(), Map(), Map())
    tensors = [item for item in items.values() if item.stored.source is source]
    report.version, count = attrs.get("version"), count_of(len(tensors), "tensor")
    named = count_of(len(kind.make_file(source, parsed, {})), "tensor")
    structure = sum([field.nbytes for field in fields if field.kind == "structure"])
    structure -= sum([nbytes for item in tensors for start, nbytes, _ in item.ranges()
                      if start in trace.rest])
    texts = {
        "magic": kind.TITLE, "checksum": "the header's checksum agrees",
        "index": f"{structure} bytes of structure, {named}, names unique, required fields present",
        "bounds": f"{count} inside the file", "sizes": "stored bytes = dtype x shape"}
    _verify_structure(report, kind, faults, error, texts)
    if error is not None:
        for text, offset in trace.odd.items():
            report.add("note", "upstream", text, None, offset)
        return report
    _verify_shards(report, kind, source, attrs, deep, watch)
    if watch is not None:  # what is hashed, decoded, and compared when it is saved again
        source = watch(sum([row[2] for item in tensors for row in kind.checksums(item)]) + sum([
            item.nbytes + item.stored.nbytes for item in tensors if not item.is_plain()]), source)
    _verify_padding(report, kind, source, fields)
    del fields, trace.fields  # they can be large
    _verify_layout(report, kind, attrs, tensors)
    few = len(tensors) << 4 <= source.nbytes  # what comes now takes memory for each
    complete = DataCheck(report, kind, source, deep).look_at(tensors) and few
    for text in list(trace.odd) + list(kind.remarks(trace.odd, attrs, tensors) if few else ()):
        report.add("note", "upstream", text, None, trace.odd.get(text))
    if not few:
        report.add("-", "upstream", f"not looked at: {count} in {source.nbytes} bytes")
    if not faults and "checksums" not in [error.check for error in report.errors]:
        report.add(*_save_again(kind, source, File(kind, source, *parsed))
                   if complete else ("-", "canonical", "not saved again"))
    if watch is not None:
        source.end()
    return report


def _verify_structure(report: Report, kind: "Format", faults: Any, error: Any, texts: Any) -> None:
    """Add the faults of each check, or what its text says; what is behind an error: not reached."""
    reached = True
    for check in kind.CHECKS:
        found = [fault for fault in faults if fault.check == check]
        for fault in found:
            report.fail(fault)
        if not found and check in texts:
            report.add("ok" if reached else "-", check, texts[check] if reached else "not reached")
        reached = reached and error not in found


def _verify_shards(report: Report, kind: "Format", source: Any, attrs: Any, deep: bool,
                   watch: Any) -> None:
    """Add what is found of other files that this one names."""
    def verify_shard(shard: File) -> Report:
        return verify_source(shard._source, shard.kind, {}, deep, watch)
    rows = kind.verify_shards and kind.verify_shards(source, attrs, deep, verify_shard)
    for status, text, name in rows or ():
        if status == "FAIL":
            report.fail(FormatError(text, None, "shards", name, source.path, "shards"))
            if len(report.errors) >= MAX_FAULTS:
                break
        else:
            report.add(status, "shards", text, name)


def _save_again(kind: "Format", source: Any, file: File) -> Any:
    """Save the file in the order of its data; return the row: whether it has the same bytes."""
    at, items = 0, in_order(file)
    places = [(item.start, item.nbytes) for _, item in items if item.is_plain()]
    places = [(source.nbytes + 1, 0)] + places[::-1]  # last: the next bytes to copy as they are
    try:
        for chunk in kind.write(items, file.metadata, file.attrs, {}):
            while places[-1][0] < at:
                places.pop()
            if isinstance(chunk, memoryview) and places[-1] == (at, len(chunk)):
                at += len(chunk)
                continue
            for piece in pieces(memoryview(chunk), BLOCK):
                stored = source.read(at, max(0, min(len(piece), source.nbytes - at)))
                if stored != bytes(piece):
                    at += ([x == y for x, y in zip(stored, piece)] + [False]).index(False)
                    return "note", "canonical", "saved again, it differs from here on", None, at
                at += len(piece)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: recursion
        text = str(error).split("\n")[0] or "its version is only read"
        return "-", "canonical", "it cannot be saved again: " + text
    if at < source.nbytes:
        return "note", "canonical", "saved again, it ends here", None, at
    return "ok", "canonical", "saved again, it has the same bytes"


def _verify_padding(report: Report, kind: "Format", source: Any, fields: Any) -> None:
    odd = [field for field in fields if field.kind == "padding" and field.value is not None]
    if odd and not report.errors:
        text = f"{count_of(len(odd), 'range')} of padding {odd[0].value}"
        report.add("note", "padding", text, None, odd[0].offset)
    # A tensor that was left out for an error leaves its bytes without a name.
    unused = [field for field in fields if field.kind == "unused" and not report.errors]
    if unused and not kind.MARKED and unused[-1].offset + unused[-1].nbytes == source.nbytes:
        last = unused.pop()
        text = f"{last.nbytes} bytes after the end of the data"
        report.fail(FormatError(text, last.offset, "unused", path=source.path))
    if unused:
        nbytes = count_of(sum([field.nbytes for field in unused]), "byte")
        text = f"{nbytes} in {count_of(len(unused), 'range')} that no field names"
        report.add("note", "padding", text, None, unused[0].offset)


def _verify_layout(report: Report, kind: "Format", attrs: Any, tensors: "List[Tensor]") -> None:
    """Note unaligned data, and ranges that overlap in part: the same twice is tied weights."""
    align = kind.alignment(attrs)
    ranges = [(item.start, item.start + item.stored.nbytes, i)
              for i, item in enumerate(tensors) if item.stored.nbytes]
    odd = [(tensors[i], tensors[i]) for start, _, i in ranges if start % align]
    report.add_notes("alignment", f"its data are not at a multiple of {align}", odd)
    if align > 1 and not odd and tensors:
        report.add("ok", "alignment", f"all data at multiples of {align}")
    shared: Any = []
    owner: Any = min(ranges) if ranges else ()
    for start, end, i in sorted(ranges):
        if start < owner[1] and (start, end) != owner[:2]:
            shared.append((tensors[i], tensors[owner[2]]))
        if end > owner[1]:
            owner = start, end, i
    report.add_notes("bounds", "its bytes overlap those of %s in part", shared)


class DataCheck:
    """Checks stored checksums, decodes what is coded: each range once.

    What is hashed, decoded and looked at of bytes that come again, and the elements of sparse
    tensors are MAX_COPIES files at most; one sparse tensor must fit memory.
    """

    def __init__(self, report: Report, kind: "Format", source: Any, deep: bool) -> None:
        self.report, self.kind, self.source = report, kind, source
        self.budget = Budget("MAX_COPIES", MAX_COPIES * source.nbytes)
        self.slow = INFINITY if deep else MAX_SLOW_HASH  # bytes that may be hashed slowly
        self.done = {}  # of each range: what was found
        self.statuses, self.decoded, self.complete = [], 0, True
        self.left = Map()  # (check, why not) -> the first tensor, how many

    def skip(self, check: str, why: str, item: Tensor) -> None:
        first, count = self.left.get((check, why), (item, 0))
        self.left[check, why] = first, count + 1

    def spend(self, cost: Any, most: Any = INFINITY) -> None:
        if cost > most or not self.budget.covers(cost):
            self.complete = False
            raise Unsupported(f"more work than MAX_COPIES = {MAX_COPIES} file sizes")

    def look_at(self, tensors: "List[Tensor]") -> bool:
        """Check all tensors; return whether the work was not too much."""
        again = named_again(tensors)
        for i, item in enumerate(tensors):
            self.check_sums(item, i in again)
            self.check_values(item, i in again)
        for (check, why), (item, count) in self.left.items():
            more = f", as {count_of(count - 1, 'other tensor')}" if count > 1 else ""
            self.report.add("-", check, f"not checked{more}: {why}", item.name, item.offset)
        agreed, stored = self.statuses.count("ok"), len(self.statuses)
        text = f"{agreed} of {stored} agree" if stored else "none stored"
        self.report.add("ok" if agreed else "-", "checksums", text)
        if self.decoded:
            text = f"{count_of(self.decoded, self.kind.CODED)} decoded in full"
            self.report.add("ok", "contents", text)
        return self.complete

    def check_sums(self, item: Tensor, again: bool) -> None:
        for label, offset, nbytes, text in self.kind.checksums(item):
            status, text = self.check_range(offset, nbytes, text, again)
            self.statuses.append(status)
            if status == "FAIL":
                self.report.fail(FormatError(label + text, offset, "data", item.name,
                                             self.source.path, "checksums"))
            elif status == "-":
                self.skip("checksums", label + text, item)

    def check_values(self, item: Tensor, again: bool) -> None:
        try:
            if item.stored.why is not None:
                self.skip("contents", item.stored.why, item)
            self.decode(item, again)
            odd = self.kind.odd_bytes(item, self.done)
            if odd is not None:
                raise FormatError(odd[1], item.start + odd[0], "data", path=self.source.path)
        except Unsupported as error:
            self.skip("contents", error.what, item)
        except FormatError as error:
            error.check, error.tensor = "contents", item.name
            self.report.fail(error)

    def check_range(self, offset: int, nbytes: int, text: str, again: bool) -> "Tuple[str, str]":
        key = offset, nbytes, text
        if key in self.done:
            return self.done[key]
        cost, slow = self.kind.hash_cost(nbytes, text)
        if slow > self.slow:
            found = "-", (f"over MAX_SLOW_HASH = {MAX_SLOW_HASH} bytes; "
                          "deep=True (--deep) computes all")
        elif again and not self.budget.covers(cost):
            found = "-", f"over MAX_COPIES = {MAX_COPIES} file sizes to hash"
        else:
            self.slow -= slow
            found = self.kind.check_range(self.source, offset, nbytes, text)
        self.done[key] = found
        return found

    def decode(self, item: Any, again: bool) -> None:
        """Decode a tensor, or the parts of a sparse one; Unsupported where that is too much."""
        parts, cost = [item], item.nbytes + 8 * item.stored.nbytes if again else 0
        if is_sparse(item):
            most = min(self.budget.left, (4 << 20) + 4 * self.source.nbytes)
            self.spend(item.cost(most), most)
            parts, cost = list(item.components.values()), 0
        keys = [(part.start, part.stored.nbytes, part.nbytes) for part in parts]
        fresh = [(key, part) for key, part in zip(keys, parts) if key not in self.done
                 and part.stored.why is None and part.stored.encoding != "raw"]
        if fresh:
            self.spend(cost)
        for key, part in fresh:
            self.done[key] = True
            for block in part.blocks():
                if hasattr(self.source, "tick"):
                    self.source.tick(len(block))
        self.decoded += len(fresh)
        bools = "bools", item.start, item.stored.nbytes  # odd_bytes() looks at each
        if again and item.dtype == "bool" and bools not in self.done:
            self.spend(item.size)
            self.done[bools] = True


FEATURES["verify"] = verify_source


# -- [9c] convert --------------------------------------------------------------------------------


class Summary:
    """What convert() did; str() of it is for a person."""

    def __init__(self) -> None:
        self.copied: "List[str]" = []
        self.cast: "List[Tuple[str, str, str, bool]]" = []  # (name, old dtype, new dtype, exact)
        self.missing: "List[str]" = []  # only with partial=True: names, not whole in the source
        self.left_behind: "List[str]" = []  # facts of the old format that mean nothing in the new
        self.dropped: "List[str]" = []  # content, only with drop=True
        self.as_text: "List[str]" = []  # keys of metadata: numbers, only with metadata="text"
        self.renamed: Any = []  # (old, new)
        self.nbytes = 0  # of the target

    def __repr__(self) -> str:
        lines = [f"{count_of(len(self.copied), 'tensor')} copied, {len(self.cast)} cast"]
        lines += [f"cast: {quote(name)} {old} -> {new} ({'exact' if exact else 'rounded'})"
                  for name, old, new, exact in self.cast]
        lines += [f"renamed: {quote(old)} -> {quote(new)}" for old, new in self.renamed]
        for title, names in ("missing", self.missing), ("not needed there", self.left_behind):
            text = clip(", ".join(map(plain, names[:100])), MAX_LINE // 2)
            lines += [f"{title}: {text}"] if names else []
        lines += [f"metadata as text: {show(key)}" for key in self.as_text]
        lines += [f"dropped: {text}" for text in self.dropped]
        return "\n".join(lines + [f"wrote {self.nbytes} bytes"])


def load_several(sources: Any, **options: Any) -> File:
    """Open a source, or several of one format as one File; ValueError where they do not agree."""
    if not isinstance(sources, (list, tuple)):
        return load(sources, **options)
    if not sources:
        raise ValueError("convert needs a source")
    files = [load(source, **options) for source in sources]
    paths = [plain(file.path or f"source {i}") for i, file in enumerate(files, 1)]
    first, places, differ = files[0], Map(), Map()
    for i, file in enumerate(files):
        if file.kind is not first.kind:
            raise ValueError(f"{paths[i]} is {file.kind.TITLE}, the first file "
                             f"{first.kind.TITLE}: convert it to that first")
        for key in sorted(set(first.attrs).union(file.attrs)):
            if first.kind.is_content(key) and first.attrs.get(key) != file.attrs.get(key):
                differ[key] = f"file attribute {show(key)}"
        for name in file:
            if name in places:
                other = paths[int(places[name])]
                raise ValueError(f"tensor {quote(name)} is in {other} and in {paths[i]}")
            places[name] = f"{i:09}"
    attrs = Map([pair for pair in first.attrs.items() if pair[0] not in differ])
    attrs["missing"] = [name for file in files for name in file.attrs.get("missing", ())]
    parts = [(f"{i:09}", file) for i, file in enumerate(files)]
    joined = Joined(first.kind, first._source, attrs, places, {}, parts)
    joined.differ = list(differ.values())
    return joined


def convert(source: "Union[Source, File, Sequence[Source]]", target: Target, *,
            format: "Optional[str]" = None, cast: Any = None, only: Any = None, dense: bool = False,
            drop: bool = False, metadata: Any = None, partial: bool = False, watch: Any = None,
            **options: Any) -> Summary:
    """Write the tensors of a source (a File, a list of files) in a format; return what was done.

    Nothing changes silently: what the target cannot hold is a ValueError that names it. `cast`:
    {"float16": "float32"}, or "float32" for whatever the target cannot hold (it dequantizes too).
    `dense`: sparse tensors as dense ones where the target has none. `only`: names or shell
    patterns. `drop`: leave out content that has no place (custom fields, scalars, metadata).
    metadata="text": numbers in metadata as text where the target holds text only. `partial`: as in
    load(). `options` and memory: as in save(). `watch`: as in verify().

    >>> convert(dumps({"w": [1.0]}, format="ztensor"), BytesIO(), format="burnpack")
    1 tensor copied, 0 cast
    not needed there: data_endianness, encoding, layout, version
    wrote 264 bytes
    """
    if not isinstance(source, File):
        with load_several(source, partial=partial) as file:
            return convert(file, target, format=format, cast=cast, only=only, dense=dense,
                           drop=drop, metadata=metadata, watch=watch, **options)
    kind = written_kind(target_format(format, target, None), [source.kind], options)
    kind.check_options(options)
    if metadata not in (None, "text"):
        raise ValueError(f"metadata is None or 'text', not {show(metadata)}")
    if hasattr(cast, "items"):
        cast = {old if old == "qfloat" else as_dtype(old): as_dtype(new)
                for old, new in cast.items()}
    elif cast is not None:
        cast = as_dtype(cast)
    summary, chosen = Summary(), _select(in_order(source), only)
    if source.attrs.get("missing") and not chosen:
        raise ValueError("none of the tensors is whole: nothing to convert")
    check_work(kind, chosen, bool(cast))
    items = [(name, _fit(kind, name, item, dense, cast, summary)) for name, item in chosen]
    attrs = file_attrs(source, kind)
    facts = Map(list(attrs.items()) + list(options.items()))
    fitting = _fit_metadata(kind, source, facts, metadata, summary)
    _leave_out(kind, source, attrs, items, drop, summary)
    names = [(name, kind.loaded_name(name, options)) for name, _ in items]
    summary.renamed = [pair for pair in names if pair[0] != pair[1]]
    chunks = kind.write(items, fitting, attrs, options)
    check_stored(chosen)
    if watch is not None:
        chunks = watch(sum([item.nbytes for _, item in items])).watch(chunks)
    summary.nbytes = write_out(target, chunks)
    return summary


def _fit_metadata(kind: "Format", file: File, facts: Facts, numbers: Any, summary: Summary) -> Any:
    """Return the metadata that the target holds; note what is left out, or written as text."""
    found, differ = file.merged()
    metadata = Map(found.items())
    summary.dropped += [f"{text} (the files do not agree on it)" for text in differ]
    for key, why in kind.misfit_metadata(metadata, facts):
        value = metadata[key]
        text = repr(value) if isinstance(value, (int, float)) else None
        fits = text is not None and not kind.misfit_metadata({key: text}, facts)
        if fits and numbers:
            metadata[key] = text
            summary.as_text.append(key)
            continue
        del metadata[key]
        if key in file.kind.IDLE_KEYS:
            summary.left_behind.append(f"metadata {key}")
        else:
            why += "; metadata='text' (--metadata text) writes it as text" if fits else ""
            summary.dropped.append(f"metadata {show(key)} ({why})")
    return metadata


def _leave_out(kind: "Format", file: File, attrs: Facts, items: Items, drop: bool,
               summary: Summary) -> None:
    """Note the attributes that the target does not store; ValueError for content without `drop`."""
    origin = file.kind
    found = [("file attribute ", key, value not in (None, {}) and origin.is_content(key))
             for key, value in file.attrs.items() if key not in attrs and key != "missing"]
    for name, item in items if kind is not origin else ():
        own = kind.own_attrs(item)
        for key in [key for key in item.attrs if key not in own]:
            content = origin.is_content(key)
            if not content or origin.NAME not in kind.CARRIES:
                found.append((f"tensor {show(name, 200)}: attribute ", key, content))
    summary.missing = file.attrs.get("missing", [])
    summary.dropped += [where + show(key) for where, key, content in found if content]
    behind = [key for _, key, content in found if not content]
    summary.left_behind = sorted(set(summary.left_behind + behind))
    if summary.dropped and not drop:
        lines = join_lines(summary.dropped)
        raise ValueError(f"{kind.TITLE} has no place for\n  {lines}\n"
                         "  drop=True (--drop) leaves it out")


def _select(items: Items, only: Any) -> Items:
    """Return the items that `only` names: an exact name wins, else it is a shell pattern."""
    if only is None:
        return items
    from fnmatch import fnmatchcase
    names, chosen = set([name for name, _ in items]), set()
    for pattern in [only] if isinstance(only, str) else only:
        found = [pattern] if pattern in names else [
            name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(f"only: no tensor is called {show(pattern)}")
        chosen.update(found)
    return [(name, item) for name, item in items if name in chosen]


def _fit(kind: "Format", name: str, item: Any, dense: bool, cast: Any, summary: Summary) -> Any:
    """Return the tensor dense where the target needs it, with the dtype of `cast`; note both."""
    old, made_dense = item.dtype or "", is_sparse(item) and "sparse" not in kind.USES
    if made_dense:
        if not dense:
            raise ValueError(f"{kind.TITLE} has no sparse tensors: {quote(name)}; "
                             "dense=True (--dense) writes the zeros")
        summary.cast.append((name, "sparse", "dense", True))
        item = Cast(item, old)  # made dense when it is written, one at a time
    new = cast.get(old) if isinstance(cast, dict) else cast
    if isinstance(cast, str):
        stays = kind.passes(item) if old == "qfloat" else old not in ITEMSIZE
        new = None if stays or old in kind.DTYPES else cast
    if new is None or new == old:
        summary.copied += [] if made_dense else [name]
        return item
    if old == "qfloat":
        summary.cast.append((name, old, new, False))
        return item.floats().cast(new)
    try:
        made = item.with_values(new) if is_sparse(item) else item.cast(new)
        values = item.components["values"] if is_sparse(item) else item
        exact = cast_is_exact(old, new) or _round_trips(values, old, new)
    except FormatError:
        raise
    except ValueError as error:
        raise ValueError(f"tensor {quote(name)}: cast to {new}: {error}")
    summary.cast.append((name, old, new, exact))
    return made


def _round_trips(item: Tensor, old: str, new: str) -> bool:
    """Return whether casting there and back gives the same; to integers all are: so all fit."""
    same = True
    for part in item.parts():
        data = bytes(part)
        if (old, new) == ("float32", "bfloat16"):  # 6 times as fast: no low bits, no NaN
            tops, zeros = data[3::4], bytes(len(data) // 4)
            if data[0::4] == data[1::4] == zeros and 127 not in tops and 255 not in tops:
                continue
        there = cast_block(data, old, new)
        try:
            same = same and bytes(cast_block(there, new, old)) == data
        except ValueError:
            same = False
        if not same and new not in INT_RANGE:
            return False
    return same


# -- [10a] command line --------------------------------------------------------------------------

MAX_STDIN = 1 << 30  # bytes of standard input, the FILE `-`, that are kept in memory
WIPE = "\r" + " " * 79 + "\r"  # what removes a line of Progress


def called_as() -> str:
    """Return what was typed to call this program."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module is not None and module.name != "__main__":
        return f"python3 -m {module.name}"
    name = os.path.basename(sys.argv[0] or "tensorfmt")
    return plain(("python3 " if name.endswith((".py", ".pyz")) else "") + name)


def describe(error: BaseException, path: str = "") -> str:
    """Return the message of an error, which names the file."""
    if not isinstance(error, OSError):
        return str(error)
    path = str(error.filename or path)
    if isinstance(error, IsADirectoryError) and os.access(path, os.R_OK):
        names = sorted(os.listdir(path))
        ends = [".index.json"] + [end for kind in FORMATS for end in kind.SUFFIXES]
        inside = [plain(name) for end in ends for name in names if name.endswith(end)]
        return f"{plain(path)} is a directory; it has {(inside + ['no tensor files'])[0]}"
    return (plain(path) + ": " if path else "") + (error.strerror or str(error))


def open_input(path: str) -> Any:
    """Return the path; instead of "-" a stream of what standard input gives."""
    from io import BytesIO
    if path != "-":
        return path
    data = sys.stdin.buffer.read(MAX_STDIN + 1) if sys.stdin else b""
    if len(data) > MAX_STDIN:
        raise ValueError(f"standard input: over MAX_STDIN = {MAX_STDIN} bytes; put it into a file")
    stream = BytesIO(data)
    stream.name = "standard input"
    return stream


def open_output(path: str) -> "Tuple[Any, str, Any]":
    """Return what to write to, its name, and where to report: never among the bytes."""
    if path not in ("-", "/dev/stdout"):
        return path, plain(path), sys.stdout
    if sys.stdout.isatty():
        raise TypeError("bytes are not for a terminal: `| xxd` or `> FILE`")
    sys.stdout.flush()
    return sys.stdout.buffer, "standard output", sys.stderr


def write_text(path: str, text: str, summary: str) -> None:
    """Write a page or a copy, but not over a tensor file; "-" is standard output."""
    if os.path.isfile(path) and detect(path):
        raise ValueError(f"{plain(path)}: it is a tensor file, which this would replace")
    target, name, report = open_output(path)
    nbytes = write_out(target, iter([text.encode()]))
    print(f"wrote {name}, {count_of(nbytes, 'byte')}, {summary}", file=report)


def rounded(number: int, unit: str) -> str:
    """Return a large number as people say it: 514.8 M, 1.03 GB; "" of others."""
    for prefix, size in ("M", 10**6), ("G", 10**9), ("T", 10**12):
        if size <= number < 1000 * size:
            digits = 2 if number < 10 * size else 1
            return f"{number / size:.{digits}f} {prefix}{unit}"
    return ""


def in_letters(text: str) -> str:
    """Return a name in its own letters if standard output is a terminal that has them."""
    short, code = clip(text, MAX_TEXT), "ascii"
    if sys.stdout and sys.stdout.isatty():
        code = sys.stdout.encoding or code
    fine = short.isprintable() and short.encode(code, "replace").decode(code) == short
    return short if fine and short and short == short.strip() else plain(text)


def json_ready(value: Any) -> Any:
    """Return a value as JSON has it, what JSON lacks as text."""
    if isinstance(value, dict):
        ready: Facts = {}
        for i, (key, item) in enumerate(value.items()):
            text = key if isinstance(key, str) else show(key)
            while not isinstance(key, str) and (text in ready or text in value):
                text += f" (key {i})"
            ready[text] = json_ready(item)
        return ready
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes_hex": bytes(value).hex()}
    if isinstance(value, int) and abs(value) >> 128:
        return show(value)
    if isinstance(value, float) and not abs(value) < INFINITY:
        return repr(value)
    return value if value is None or isinstance(value, (str, int, float)) else repr(value)


def to_json(value: Any) -> str:
    from json import dumps
    return dumps(json_ready(value))


def write_list(objects: Any, between: str = "\n ") -> None:
    """Write a JSON list as its objects come."""
    sign = "["
    for value in objects:
        sys.stdout.write(sign + between + to_json(value))
        sign = ","
    sys.stdout.write("]" if sign == "," else "[]")


class Progress:
    """Tells a terminal, once a second, how much of `total` bytes is done; also as a source."""

    def __init__(self, total: int, source: Any = None) -> None:
        from time import time
        self.time, self.total, self.done, self.source = time, total, 0, source
        self.start = self.last = time()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def read(self, offset: int, nbytes: int) -> Any:
        self.tick(nbytes)
        return self.source.view(offset, nbytes)
    view = read

    def tick(self, nbytes: int) -> None:
        self.done += nbytes
        now = self.time()
        if now - self.last > 1 and sys.stderr.isatty():
            self.last, part = now, min(1.0, (self.done + 1) / (self.total + 1))
            left = (now - self.start) * (1 / part - 1)
            text = f"{self.done >> 20} of {self.total >> 20} MB, {part:.0%}, {left:.0f} s left"
            sys.stderr.write(f"\r{text:40}")
            sys.stderr.flush()

    def watch(self, chunks: Chunks) -> Chunks:
        """Yield chunks in pieces, and tick."""
        for chunk in chunks:
            for piece in pieces(memoryview(chunk), 16 << 20):
                yield piece
                self.tick(len(piece))
        self.end()

    def end(self) -> None:
        if self.last > self.start:
            sys.stderr.write(WIPE)


def each_file(args: Any) -> int:
    """Call for each file, also after a bad one; return the exit code. JSON is one list."""
    code, args.gap, sign = 0, "", "["
    for path in args.files:
        args.file = path
        sys.stdout.write(sign if args.json else "")
        sign = ",\n"
        try:
            code |= int(args.call(args) or 0)
            args.gap = "\n"
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            code, message = 1, describe(error, path)
            if args.json:
                sys.stdout.write(to_json({"file": path, "error": message}))
            sys.stdout.flush()
            put(sys.stderr, f"error: {message}\n")
    sys.stdout.write("]\n" if args.json else "")
    return code


def show_ls(args: Any) -> None:
    with load(open_input(args.file), **args.options) as file:
        items = _select(list(file.items()), args.only)
        if args.sort:
            keys: Any = {"bytes": lambda pair: -pair[1].stored.nbytes, "name": lambda pair: pair[0],
                         "offset": lambda pair: pair[1].start}
            items.sort(key=keys[args.sort])
        metadata, differ = file.merged()
        if args.json:
            attrs = dict(file.attrs, differ=differ) if differ else file.attrs
            head = to_json({
                "file": args.file, "format": file.format, "version": file.attrs.get("version"),
                "bytes": file.nbytes, "attrs": attrs, "metadata": metadata})
            sys.stdout.write(head[:-1] + ', "tensors": ')
            write_list({"name": name, "dtype": item.dtype, "shape": item.shape,
                        "offset": item.offset, "bytes": item.stored.nbytes, "attrs": item.attrs}
                       for name, item in items)
            sys.stdout.write("}")
            return
        paint = painter(args)
        print(args.gap + facts_of(file, file.path or args.file))
        for title, pairs in ("metadata", metadata), ("scalar", file.attrs.get("scalars") or {}):
            for key, value in list(pairs.items())[:20]:
                print(f"{title} {paint(in_letters(key), 'structure')} = {show(value)}")
            if len(pairs) > 20:
                print(f"{len(pairs) - 20} more {title} entries")
        if differ:
            print("the files do not agree on " + ", ".join(differ[:20]))
        if file.attrs.get("operations"):
            print(count_of(len(file.attrs["operations"]), "operation"))
        if items:
            print_listing(items, args.limit, paint)


def facts_of(file: File, path: str) -> str:
    """Return what a file is, in one line."""
    size = rounded(file.nbytes, "B")
    facts = [f"{in_letters(path)}: {file.kind.TITLE}",
             count_of(file.nbytes, "byte") + (f" ({size})" if size else ""),
             count_of(len(file), "tensor")]
    for key, value in file.attrs.items():
        if key not in ("version", "scalars", "operations"):
            short = isinstance(value, str) and plain(value.split("<")[0].split("::")[-1])  # of Rust
            facts.append(f"{plain(key)} {short or show(value)}")
    codings = set([item.stored.encoding for item in file.values()])
    facts += ["all " + plain(coding) for coding in codings if len(codings) == 1]
    return clip(", ".join(facts), MAX_LINE)


def print_listing(items: Items, limit: "Optional[int]", paint: Any) -> None:
    codings = set([plain(item.stored.encoding) for _, item in items])
    dtypes = set([dtype_of(item) for _, item in items])
    wide, wide_coding = [min(20, max(8, max(map(len, texts)))) for texts in (dtypes, codings)]

    def row(nbytes: Any, offset: Any, dtype: str, coding: str, shape: str, name: str = "") -> None:
        coding = f"  {coding:{wide_coding}}" if len(codings) > 1 else ""
        print(f"{nbytes:>10}  {offset:>10}  {dtype:{wide}}{coding}  {shape:16}  {name}".rstrip())
    print()
    row("bytes", "offset", "dtype", "encoding", "shape", "name")
    for name, item in items[:limit]:
        row(item.stored.nbytes, item.offset, dtype_of(item), plain(item.stored.encoding),
            show(item.shape), paint(in_letters(name), "data"))
        if item.scheme is not None:
            row("", "", "", "", "  " + show(item.scheme, 200))
    if limit is not None and len(items) > limit:
        row("", "", "", "", f"{len(items) - limit} more")
    nbytes = sum([item.stored.nbytes for _, item in items])
    size = sum([item.size for _, item in items])
    elements = ", ".join([count_of(size, "element"), rounded(size, "")]).rstrip(", ")
    row(nbytes, rounded(nbytes, "B"), count_of(len(items), "tensor"), "", elements)


def dtype_of(item: Tensor) -> str:
    """Return the dtype for a person, perhaps one that is not known here."""
    if item.dtype is not None:  # and .attrs, which takes memory, is not asked for
        return plain(item.dtype)
    coded = [item.attrs[key] for key in ("type", "dtype", "st_dtype") if key in item.attrs]
    return plain(str((coded + ["?"])[0]))


def show_get(args: Any) -> None:
    with load(open_input(args.file), partial=args.partial, **args.options) as file:
        if args.name not in file:
            raise ValueError(f"{plain(args.file)}: {file.say_missing(args.name)}")
        item = file[args.name]
        if args.rows is not None:
            count = item.shape[0] if item.ndim else -1
            for at in args.rows.start, args.rows.stop:
                if not -count <= (at or 0) <= count:
                    rows = "is a scalar" if count < 0 else "has " + count_of(count, "row")
                    raise ValueError(f"{plain(args.file)}: tensor {quote(args.name)} {rows}: "
                                     "--rows is out of range")
            item = item[args.rows]
        if args.raw:
            blocks = item.blocks() if item.stored.why is None else item.stored_blocks()
            write_all(open_output("-")[0], Progress(item.nbytes).watch(blocks))
        elif args.stats:
            print_stats(item)
        elif args.all or item.size <= MAX_SHOWN:
            print_values(item)
        else:
            print(item.preview())
            print(f"{count_of(item.size, 'element')}: --all prints every one, --stats sums them up")


def print_stats(item: Tensor) -> None:
    count, total, nans = 0, 0.0, 0  # total: the sums of parts, in their order
    low, high = INFINITY, -INFINITY
    item.check_readable()
    for part in Progress(item.nbytes).watch(item.parts()):
        values = unpack_values(str(item.dtype), part)
        if not -INFINITY < sum(values) < INFINITY:  # NaN or infinity in it, or an overflow
            nans += len([value for value in values if value != value])
            values = [value for value in values if -INFINITY < value < INFINITY]
        low, high = min([low] + list(values)), max([high] + list(values))
        count, total = count + len(values), total + sum(values)
    ends = (low, high, total / count) if count else (None, None, None)
    print(f"dtype {item.dtype}, shape {list(item.shape)}, {count_of(item.size, 'element')}")
    print("min %s, max %s, mean %s, " % ends + f"{nans} NaN, {item.size - count - nans} infinite")


def print_values(item: Tensor) -> None:
    """Print nested lists of any size in constant memory."""
    if item.ndim > 64:
        raise ValueError(f"{item.ndim} dimensions are too many to be shown; --raw writes the bytes")
    values = item.flat

    def texts(shape: Any, sign: str) -> Chunks:
        if not shape:
            yield sign + repr(next(values))
            return
        for i in range(shape[0]):
            yield from texts(shape[1:], ", " if i else sign + "[")
        yield "]"
    sys.stdout.writelines(texts(item.shape, "") if item.size else [str(item.tolist())])
    print()


def show_explain(args: Any) -> None:
    source = open_source(open_input(args.file), True)
    try:
        found = Explained(source, None, args.options, args.wire, args.tensor,
                          getattr(args, "from") or 0)
        if found.error is None and args.tensor is not None and not found.rows:
            hint = nearest(args.tensor, found.tensors)
            raise ValueError(f"{plain(args.file)}: no tensor {quote(args.tensor)}{hint}")
        if args.html:
            title = "standard input" if args.file == "-" else os.path.basename(args.file)
            write_text(args.html, *make_page(found, title))
        elif args.json:
            write_list(({key: getattr(field, key) for key in Field.__slots__}
                        for field, *_ in found.rows), between="")
            print()
        else:
            print_rows(args, found)
    finally:
        source.close()
    if found.error is not None:
        raise found.error


class Explained:
    """What `explain` shows of a file: the rows that are asked for, the sums of all kinds."""

    def __init__(self, source: Any, format: Any, options: Facts, wire: bool, tensor: Any = None,
                 start: int = 0) -> None:
        self.source, self.kind = source, kind_of(source, format)
        fields, parsed, self.error, _ = dissect(self.kind, source, options, None, wire)
        aim_offsets(fields)
        self.attrs, _, self.tensors = parsed or ({}, {}, {})
        self.texts, self.layout = layout_of(self.kind)
        self.places = layout_places(self.kind, self.layout, fields, source.nbytes)
        self.sums: Any = Map([(kind, 0) for kind in FIELD_KINDS])
        reach = 0
        for field in fields:
            end = field.offset + field.nbytes
            self.sums[field.kind] += max(0, end - max(field.offset, reach))  # shared: once
            reach = max(reach, end)
        self.rows = list(rows_of([field for field in fields if tensor in (None, field.tensor)
                                  and field.offset + field.nbytes > start], self.places))


def rows_of(fields: "List[Field]", places: "Dict[str, int]") -> Chunks:
    """Yield (field, name, value, meaning, whether deeper ones follow), as texts for a person.

    The name is without that of the field around; the meaning has the places of labels.
    """
    import re
    around: Any = {}  # names by depth
    for field, behind in zip(fields, fields[1:] + [Field(0, 0, "", None, "")]):
        around[field.depth] = re.sub(r"\.table$", "", field.name)  # of FlatBuffers
        before, name = around.get(field.depth - 1, ""), field.name
        if before and name.startswith(before) and name != before:
            name = name[len(before):]
        elif field.depth:  # tensors[0].x -> [0].x
            name = name[max(0, name.find("[")):]
        name = in_letters(clip_path(name))
        if field.depth:  # .key, ['key']: what is around it is above
            name = re.sub(r"^\.|^\['([^']*)'\]$", r"\1", name)
        value = "" if field.value is None else show(field.value, 40)
        if field.kind in ("padding", "unused", "unreached"):
            value = count_of(field.nbytes, "byte")
        elif field.kind == "data":
            value = in_letters(clip_path(str(field.value)))  # a role of a file is any text
        meaning = re.sub(r"\b[A-Z]{1,2}\b", lambda match: match.group() + (
            f" = 0x{places[match.group()]:x}" if match.group() in places else ""), field.doc)
        opens = behind.depth > field.depth and field.value != 0 and field.kind == "structure"
        if opens and field.tensor is not None and field.tensor not in field.name:
            meaning += ", of " + in_letters(clip_path(field.tensor))
        if field.target is not None:  # where it leads
            meaning += f" -> 0x{field.target:x}"
        yield field, name, value, meaning, opens


def print_rows(args: Any, found: Explained) -> None:
    """Print a table that fits the terminal; --limit never leaves the offending row out."""
    width, shown = terminal_width(args.width), found.rows[:args.limit]
    shown += [row for row in found.rows[len(shown):] if row[0].kind == "fault"]
    count = 8 if width >= 100 else 5  # bytes
    rows: Any = [("offset", "bytes", "token" if args.wire else "field", "value", "meaning")]
    for field, name, value, meaning, _ in shown:
        left = max(0, field.nbytes - field.lead)
        data = bytes(found.source.read(field.offset + field.lead, min(left, count)))
        digits = ".. " * (field.lead > 0) + hex_of(data)
        if left > count or len(digits) >= 3 * count:
            digits = digits[:3 * count - 4] + " .."
        meaning = ("<- here: " if field.kind == "fault" else "") + meaning
        rows.append((f"0x{field.offset:x}", digits, "  " * field.depth + name, value, meaning))
    kinds = [""] + [field.kind for field, *_ in shown]
    for line in table(rows, kinds, column_widths(rows, width, 3 * count - 1), painter(args)):
        print(line)
    if len(shown) < len(found.rows):
        print(f"... {len(found.rows) - len(shown)} more rows")
    if found.error is None:
        total = count_of(found.source.nbytes, "byte")
        texts = [f"{nbytes} {kind}" for kind, nbytes in found.sums.items()
                 if nbytes or kind in ("data", "padding", "structure")]
        print(f"\n{sum(found.sums.values())} of {total} explained: {', '.join(texts)}")
    if [cells for cells in rows if ".." in cells[1]]:
        print(".. before bytes: the key of the value, which is the field; behind: more bytes")


def hex_of(data: bytes) -> str:
    """Return bytes as digits with blanks between: 00 1f ff."""
    return " ".join(["%02x" % byte for byte in data])


def terminal_width(asked: "Optional[int]") -> int:
    from shutil import get_terminal_size
    known = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return max(asked or (get_terminal_size().columns if known else 100), 60)


def painter(args: Any) -> Any:
    """Return a function (text, kind of a field) that colours text, if --color says so."""
    env, wanted = os.environ, args.color == "always"
    if args.color != "never" and sys.stdout.isatty() and not env.get("NO_COLOR"):
        wanted = wanted or env.get("TERM", "dumb") != "dumb"
    return lambda text, kind: (
        f"\033[{FIELD_KINDS[kind][1]}m{text}\033[0m" if wanted and kind and text else text)


def column_widths(rows: Any, width: int, digits: int) -> "List[int]":
    """Return the widths of the columns; one text of twenty may be too long where room is short."""
    lengths = [sorted(map(len, column)) for column in zip(*rows)]
    place, _, names, values, meanings = [column[-1] for column in lengths]
    width -= place + digits + 8
    if names + values + meanings > width:
        usual = [max(6, column[-1 - len(column) // 20]) for column in lengths]
        names, values = min(usual[2], width * 9 // 20), min(usual[3], width * 3 // 10)
    return [place, digits, names, values, width - names - values]


def table(rows: Any, kinds: Any, widths: "List[int]", paint: Any) -> Chunks:
    """Yield the lines of rows: where a column is too narrow, its text is wrapped."""
    from itertools import zip_longest
    first, second, third, *rest = widths
    for (place, digits, name, value, meaning), kind in zip(rows, kinds):
        wide = max(rest[0], min(len(value), sum(rest) - len(meaning)))  # it is short: leaves room
        columns = ([place], [digits], wrap(name, third, "._/"), wrap(value, wide, " "),
                   wrap(meaning, sum(rest) - wide, " "))
        for place, digits, name, value, meaning in zip_longest(*columns, fillvalue=""):
            text = f"{digits:{second}}  {name}".rstrip()
            blanks = " " * (second + 2 + third - len(text))
            line = f"{place:{first}}  {paint(text, kind)}{blanks}  {value:{wide}}  {meaning}"
            yield line.rstrip()


def wrap(text: str, width: int, marks: str) -> "List[str]":
    """Return the lines of a text, all as deep, broken behind one of the marks, a name's, or any."""
    import re
    if len(text) <= width:
        return [text]
    indent = text[:min(len(text) - len(text.lstrip()), width // 2)]
    width -= len(indent)
    pattern = r".{1,%d}$|.{1,%d}[%s]|.{%d,%d}[._/:]|.{1,%d}" % (
        width, width - 1, marks, width // 2, width - 1, width)
    return [indent + line for line in re.findall(pattern, text.lstrip())]


def show_diff(args: Any) -> bool:
    with load(open_input(args.a)) as a, load(open_input(args.b)) as b:
        found = list(differences(a, b))
        count = len(set(a).union(b))
        metadata = a.merged()[0] or b.merged()[0]
    if args.json:
        rows = [dict(zip(("sign", "kind", "name", "changes"), row)) for row in found]
        print(to_json({"a": args.a, "b": args.b, "tensors": count, "differences": rows}))
        return bool(found)
    for sign, noun, name, changes in found:
        print(f"{sign} {in_letters(name):10} {', '.join(changes)}" if noun == "tensor" else
              f"{sign} {noun} {plain(name)}: {' -> '.join(map(show, changes))}")
    if found:
        print(f"{count_of(len(found), 'difference')}, {count_of(count, 'tensor')}")
    elif not args.quiet:
        print(f"the same {count_of(count, 'tensor')}, {'same' if metadata else 'no'} metadata")
    return bool(found)


def differences(a: File, b: File) -> Chunks:
    """Yield (sign, "tensor", "metadata" or "scalar", name, what differs)."""
    for file in (a, b):
        check_work(Format(), list(file.items()))
    progress = Progress(sum([item.nbytes for name, item in a.items() if name in b]))
    facts, others = a.merged()[0], b.merged()[0]
    idle = a.kind.IDLE_KEYS + b.kind.IDLE_KEYS if a.kind is not b.kind else ()
    scalars = [file.attrs.get("scalars") or {} for file in (a, b)]
    for noun, x, y in ("tensor", a, b), ("metadata", facts, others), ("scalar", *scalars):
        for name in Map.fromkeys(list(x) + list(y)):
            both: Any = [data[name] for data in (x, y) if name in data]
            if noun == "tensor":
                changes = diff_tensor(both, progress)
            else:  # convert leaves idle ones behind
                same = name in idle if len(both) == 1 else repr(both[0]) == repr(both[1])
                changes = [] if same else both
            if changes:
                yield "~" if both[1:] else "-" if name in x else "+", noun, name, changes
    progress.end()


def diff_tensor(both: "List[Tensor]", progress: Any) -> "List[str]":
    """Return what differs between two tensors; of a single one, what it is."""
    if len(both) == 1:
        return [f"{dtype_of(both[0])} {show(both[0].shape)}"]
    a, b = both
    old, new = dtype_of(a), dtype_of(b)
    changes = [] if old == new else [f"dtype {old} -> {new}"]
    if a.shape == b.shape:
        return changes + diff_values(a, b, progress)
    return [f"shape {show(a.shape)} -> {show(b.shape)}"] + changes


def diff_values(a: Tensor, b: Tensor, progress: Any) -> "List[str]":
    """Compare in constant memory: bytes first, numbers where they differ."""
    alike = same = a.dtype == b.dtype
    count, largest, note = 0, 0.0, ""
    old, new = str(a.dtype), str(b.dtype)
    wide = "float64" if "float64" in (old, new) else "float32"
    floats = not alike and {old, new}.issubset(FLOAT_DIGITS)
    try:
        for part, other in zip(groups_of(a), groups_of(b)):
            progress.tick(len(part))
            if (alike and part == other) or not (part + other).strip(b"\0"):
                continue
            same = False
            if floats and cast_block(part, old, wide) == cast_block(other, new, wide):
                continue  # 4 times as fast as numbers, which decide on NaN and -0.0
            for x, y in zip(unpack_values(old, part), unpack_values(new, other)):
                if x != y and not (x != x and y != y):
                    count += 1
                    gap = abs(float(x) - float(y))
                    largest = max(largest, gap)
                    note = note if gap == gap else " (and NaN)"
    except Unsupported:
        return diff_stored(a, b)
    if count:
        return [f"{count_of(count, 'value')} changed, by {largest!r} at most{note}"]
    return [] if same else ["same values" + (", other bits (-0.0 or NaN)" if alike else "")]


def diff_stored(a: Tensor, b: Tensor) -> "List[str]":
    """Compare values that are not known here: the words for what they are, the bytes of all parts.

    They are the same only if both are: other words may mean other values.
    """
    found = []
    for item in a, b:
        words = [item.attrs.get(key) for key in find_format(str(item.format)).DTYPE_ATTRS]
        parts = not is_sparse(item) and item.components or {"": item}
        data = [(role, part.dtype, place, part.stored.source.view(start, nbytes))
                for role, part in parts.items() for start, nbytes, place in part.ranges()]
        found.append((words + [item.dtype, item.stored.why], data))
    (old, data), (new, other) = found
    changes = [] if old == new or dtype_of(a) != dtype_of(b) else ["stored in another way"]
    return changes + (["stored bytes differ"] if data != other else [])


def groups_of(item: Tensor) -> Chunks:
    """Yield the row-major bytes of PART elements, then of those that are left."""
    nbytes, rest = PART * item.check_readable(), b""
    for part in item.parts():
        rest += part
        if len(rest) >= nbytes:
            yield rest[:nbytes]
            rest = rest[nbytes:]
    yield rest


def show_verify(args: Any) -> bool:
    report = verify(open_input(args.file), deep=args.deep, watch=Progress, **args.options)
    if args.json:
        keys = "status", "check", "tensor", "text", "offset"
        sys.stdout.write(to_json({
            "file": args.file, "format": report.format, "version": report.version,
            "valid": bool(report), "rows": [dict(zip(keys, row)) for row in report.rows]}))
    elif not args.quiet:
        print(report)
    elif report.errors:
        print("\n".join(map(str, report.errors)))
    return not report


def show_convert(args: Any) -> None:
    cast: Any = args.cast or None
    if cast and "=" in cast:
        cast = dict([text.partition("=")[::2] for text in cast.split(",")])
    options = dict(map(parse_setting, args.set or ()))
    target, name, report = open_output(args.target)
    sources: Any = [open_input(path) for path in args.sources]
    if os.path.isdir(args.target):
        raise ValueError(f"{name} is a directory; TO is a file")
    if len(sources) > 1 and target is args.target and os.path.isfile(target):
        raise ValueError(f"{name} exists: several files become a new one (is TO missing?)")
    with load_several(sources if len(sources) > 1 else sources[0], partial=args.partial,
                      **args.options) as file:
        try:
            kind = written_kind(target_format(args.format, target, None), [file.kind], options)
        except ValueError as error:
            raise TypeError(str(error))
        kind.check_options(options)
        names = ["standard input" if path == "-" else plain(path) for path in args.sources]
        report.write(f"{', '.join(names)} ({file.kind.TITLE}) -> {name} ({kind.TITLE})\n")
        try:
            summary = convert(file, target, format=args.format, cast=cast, only=args.only,
                              dense=args.dense, drop=args.drop, metadata=args.metadata,
                              watch=Progress, **options)
        except (ValueError, TypeError) as error:
            helps = " cannot hold " in str(error) and not (cast or isinstance(error, FormatError))
            hint = "\n  --cast DTYPE converts values, --only NAME leaves tensors out"
            raise ValueError(f"{error}{hint if helps else ''}\nnothing written")
    lines = str(summary).split("\n")[:-1]
    if isinstance(cast, str) and not summary.cast:
        lines.append(f"{kind.TITLE} holds all of them; --cast OLD=NEW is for those of a dtype")
    if kind.VERSION and kind is not file.kind and "version" not in options:
        lines.append(f"version {kind.VERSION}; --set version: {kind.OPTIONS['version']}")
    report.writelines([f"  {line}\n" for line in lines])
    report.write(f"wrote {name}, {count_of(summary.nbytes, 'byte')}\n")


def parse_setting(text: str) -> "Tuple[str, Any]":
    """Return (key, value) of KEY=VALUE: a Python literal, else text."""
    from ast import literal_eval
    key, equals, value = text.partition("=")
    if not equals:
        raise TypeError("--set takes KEY=VALUE, not " + quote(text))
    try:
        return key, literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return key, value


def show_formats(args: Any) -> None:
    kinds: Any = FORMATS if args.format is None else [find_format(args.format)]
    if args.json:
        write_list({"format": kind.NAME, "title": kind.TITLE, "suffixes": kind.SUFFIXES,
                    "dtypes": list(kind.DTYPES), "holds": kind.HOLDS, "save": kind.OPTIONS,
                    "load": kind.READ_OPTIONS} for kind in kinds)
        print()
        return
    if args.format is None:
        for kind in kinds:
            print(f"{kind.NAME:14} {kind.TITLE} ({' '.join(kind.SUFFIXES)})\n  {kind.HOLDS}")
        print(f"\n`formats {NAMES[0]}` shows its layout, dtypes, options and limits")
        return
    for kind in kinds + [later for later in LATER if later.FAMILY == kinds[0].NAME]:
        print(doc_of(kind) + "\n")
        rows = [("dtypes" * (i == 0), " ".join(list(kind.DTYPES)[i:i + 9]))
                for i in range(0, len(kind.DTYPES), 9)]
        rows += [("suffixes", " ".join(kind.SUFFIXES)), ("besides", kind.HOLDS)]
        rows += [("limit", f"{key} = {getattr(kind, key)}") for key in dir(kind)
                 if key[:4] == "MAX_" and getattr(kind, key) != Format.MAX_RANK]
        rows += [("save option", "%s: %s" % pair) for pair in kind.OPTIONS.items()]
        rows += [("load option", "%s: %s" % pair) for pair in kind.READ_OPTIONS.items()]
        print("\n".join(["  %-12s %s" % row for row in rows if row[1]] + [""]))


def show_demo(args: Any) -> None:
    from tempfile import TemporaryDirectory
    kinds = [kind for kind in FORMATS if kind.WRITES]
    with TemporaryDirectory() as temporary:
        os.makedirs(args.folder or temporary, exist_ok=True)
        for kind in sorted(kinds, key=lambda kind: kind.TITLE):
            demo_one(kind, args.folder or temporary)
    print(f"all {len(kinds)} formats written, listed, verified, explained and read back")
    print(f"files are in {plain(args.folder)}" if args.folder else
          "the files were temporary; `demo FOLDER` keeps them")


def demo_one(kind: "Format", folder: str) -> None:
    """Write a file, show the gist of what the commands say of it, read it back."""
    from contextlib import redirect_stdout
    from io import StringIO
    name = "demo" + kind.SUFFIXES[0]
    path = os.path.join(folder, name)
    wanted = {"layer.weight": tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"),
              "layer.bias": tensor([0.5, -0.5], "float32")}
    if "int32" in kind.DTYPES:
        wanted["steps"] = tensor(7, "int32")
    save(path, wanted, format=kind.NAME)
    print(f"== {kind.TITLE}: save({quote(name)}, {{...}})")
    for command, gist in (("ls", slice(1)), ("verify", slice(-1, None)),
                          (f"explain --width {terminal_width(None)}", slice(4))):
        with redirect_stdout(StringIO()) as out:
            run(command.split() + [path])
        lines = out.getvalue().rstrip().replace(path, name).split("\n")
        print("\n".join(lines[gist]))
    print()
    with load(path, verify=True) as file:
        if [name for name in wanted if diff_tensor([wanted[name], file[name]], Progress(0))]:
            raise FormatError(f"{name} does not come back as it was saved")


def natural(text: str) -> int:
    if int(text, 0) < 0:
        raise ValueError(text)
    return int(text, 0)


def row_range(text: str) -> slice:
    """Return the slice of START:STOP, START:STOP:STEP or one number."""
    if ":" not in text:
        return slice(int(text), int(text) + 1 or None)
    rows = slice(*[int(part) if part else None for part in text.split(":")])
    rows.indices(0)  # ValueError for a step of 0
    return rows


TYPES: Any = dict.fromkeys("FILE FROM TO A B FOLDER OUT OUT.py".split(), os.path.expanduser)
TYPES.update({"N": natural, "OFFSET": natural, "START:STOP": row_range})  # others are texts
ARGUMENTS: Any = {  # what each takes ("": nothing, a flag; of A|B one), what it is for
    "file": ("FILE", "`-` is standard input"),
    "files": ("FILE ...", "`-` is standard input"),
    "name": ("NAME", "of a tensor"),
    "--all": ("", f"every value, also of more than {MAX_SHOWN}"),
    "--rows": ("START:STOP", "of the first dimension"),
    "--raw": ("", "row-major little-endian bytes to stdout"),
    "--stats": ("", "min, max, mean, NaN and infinities"),
    "--json": ("", "for programs"),
    "--limit": ("N", "print that many rows at most"),
    "--color": ("auto|always|never", "kinds of bytes in colours"),
    "--sort": ("bytes|name|offset", "order of the rows"),
    "--only": ("NAME ...", "name or shell pattern, again for others"),
    "--width": ("N", "columns of the terminal"),
    "--tensor": ("NAME", "only the rows of this tensor"),
    "--from": ("OFFSET", "only the rows from this byte on (0x1f40, 8000)"),
    "--wire": ("", "CBOR token by token"),
    "--html": ("OUT", "write a page to look at instead"),
    "--quiet": ("", "only what is bad or differs"),
    "--deep": ("", "XXH3 of large files, too (slow)"),
    "a": ("A", ""),
    "b": ("B", "`-` is standard input"),
    "sources": ("FROM ...", "`-` is standard input; several become one"),
    "target": ("TO", "`-` is standard output"),
    "--format": ("NAME", ", ".join([kind.NAME for kind in FORMATS if kind.WRITES])
                 + " or a suffix, else that of TO"),
    "--cast": ("DTYPE or OLD=NEW,...", "for what the target cannot hold, or of each dtype"),
    "--partial": ("", "the tensors that are whole in a file that was cut short"),
    "--dense": ("", "write sparse tensors with their zeros"),
    "--drop": ("", "leave out what has no place"),
    "--metadata": ("text|", "numbers in metadata as text where only that fits"),
    "--set": ("KEY=VALUE ...", "option of the format"),
    "format": ("[NAME]", "of one format, with its layout"),
    "folder": ("[FOLDER]", "keeps the files"),
    "out": ("OUT.py", ""),
    "--formats": ("NAME,...", "only these"),
    "--load-only": ("", "nothing that writes, no tools"),
    "--no-tools": ("", "no explain, verify, convert, no command line"),
    "--with": ("NAME,...", "zstd, sparse, quantized, fast, remote, arrays: also these"),
    "--board": ("", "for MicroPython: the least that works")}
READING = "ls get explain verify convert".split()  # take the options of load
COMMANDS: Any = {  # what each does, its ARGUMENTS, examples, what runs it
    "ls": ("list the tensors of each file", "files --only --sort --limit --json --color",
           "model.bpk; --sort bytes --limit 5 model.bpk; --json a.zt b.bpk", show_ls),
    "get": ("print one tensor's values; --raw writes its bytes to stdout",
            "file name --all --rows --raw --stats --partial",
            "model.bpk w; model.bpk w --rows 0:2; model.bpk w --raw > w.bin", show_get),
    "explain": ("name every byte of the file, in order (--html OUT for a page to look at)",
                "file --tensor --from --limit --width --color --wire --json --html",
                "model.zt; model.zt --tensor w; model.zt --html model.html", show_explain),
    "verify": ("check structure, bounds, sizes and checksums", "files --quiet --deep --json",
               "model.zt; --quiet ./*.zt", show_verify),
    "convert": ("write FROM's tensors in the format named by TO's suffix",
                "sources target --format --cast --only --dense --drop --metadata --partial --set",
                "model.bpk model.zt --set version=2; model.zt model.tbs --cast float32 --drop; "
                "model.zt part.zt --only 'encoder.*' --set checksum=crc32c; "
                f"- - --format {NAMES[0]} < model.zt > out", show_convert),
    "diff": ("compare two files tensor by tensor, whatever their formats", "a b --quiet --json",
             "old.zt new.bpk", show_diff),
    "formats": ("list the formats and what each can hold; of one, its layout", "format --json",
                f"; {NAMES[0]}; --json", show_formats),
    "demo": ("write, list, verify and explain one small file of each format", "folder",
             "; files", show_demo),
    "vendor": ("write a copy of this file with only what is asked for",
               "out --formats --load-only --no-tools --with --board",
               f"small.py --formats {NAMES[0]} --load-only", lambda args: show_vendor(args))}


def make_parser(name: str) -> Any:
    """Return the parser of one command: those of all would take 2 ms more."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    class Parser(ArgumentParser):
        def error(self, message: str) -> Any:
            raise TypeError(plain(message) + "\n" + self.format_usage().rstrip())
    if name not in COMMANDS:
        raise TypeError(f"no command {quote(name)} (`{called_as()} help` lists them)"
                        + nearest(name, COMMANDS))
    does, arguments, examples, call = COMMANDS[name]
    parser = Parser(f"{called_as()} {name}", description=does, allow_abbrev=False,
                    formatter_class=RawDescriptionHelpFormatter)
    lines = ["examples:"] + [f"{parser.prog} {text}" for text in examples.split("; ")]
    parser.epilog = "\n  ".join(lines)
    parser.set_defaults(call=call)
    for key in arguments.split():
        takes, text = ARGUMENTS[key]
        word = takes.replace(" ...", "").strip("[]")
        settings: Facts = {"metavar": word, "type": TYPES.get(word, str)}
        if not takes:
            settings = {"action": "store_true"}
        elif "|" in takes:
            settings = {"choices": takes.strip("|").split("|")}
        elif takes[0] == "[":
            settings["nargs"] = "?"
        elif takes != word:
            settings.update({"action": "append"} if key[0] == "-" else {"nargs": "+"})
        parser.add_argument(key, help=text, **settings)
    for one in FORMATS if name in READING else ():
        for key, text in one.READ_OPTIONS.items():
            parser.add_argument("--" + key, help=f"of {one.NAME}: {text}")
    return parser


def main(argv: "Optional[List[str]]" = None) -> int:
    """Run the command line; return the exit code: 0 good, 1 bad or different, 2 misuse."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: `>&-`, `2>&-`
            setattr(sys, name, open(os.devnull, "w"))
    message = ""
    try:
        code = run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head`
        code = 0
    except KeyboardInterrupt:
        code = 130
    except (OSError, ValueError, TypeError) as error:  # TypeError: arguments no file makes right
        code, message = 1 + isinstance(error, TypeError), f"error: {describe(error)}\n"
    put(sys.stdout, "")
    if sys.stderr.isatty():  # a line of Progress may stand there
        sys.stderr.write(WIPE)
    put(sys.stderr, message)
    return code


def put(stream: Any, text: str) -> None:
    """Write text, without what a terminal would obey, if the stream still takes it."""
    try:
        stream.write("".join([c if c == "\n" or c.isprintable() else quote(c)[1:-1] for c in text]))
        stream.flush()
    except (OSError, ValueError):  # the reader is gone, the disk is full, the stream closed
        try:  # the flush at exit must not fail, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            pass


def own_source() -> "Tuple[bytes, str]":
    """Return the text of this file, in a zip too, and its SHA-256; OSError if it is not there."""
    from hashlib import sha256
    if "__file__" not in globals() or __file__.endswith(".pyc"):
        raise OSError("a frozen program has no tensorfmt.py to copy")
    source: bytes = globals()["__loader__"].get_data(__file__)
    return source, sha256(source).hexdigest()


def run(argv: "List[str]") -> int:
    name, rest = argv[0] if argv else "help", argv[1:]
    for word in rest[:(rest + ["--"]).index("--")]:  # of a pattern such as `*`, perhaps
        if word[:1] == "-" and word != "-" and os.path.lexists(word):
            raise TypeError(f"{quote(word)} is a file here: `--` before names, or ./ before it")
    if name == "help" and rest:
        name, rest = rest[0], ["-h"]
    if name in ("-h", "--help", "help"):
        print(f"tensorfmt {__version__}: read, write and explain tensor files (one file, standard "
              f"library only)\n\nusage: {called_as()} COMMAND ...\n")
        for name, (does, arguments, _, _) in COMMANDS.items():
            takes = [ARGUMENTS[key][0] for key in arguments.split() if key[0] != "-"]
            print(f"  {' '.join([name] + takes):22} {does}")
        print(f"\nformats: {' '.join(NAMES)}\n"
              "COMMAND -h lists its options; FILE `-` is standard input, `./-x` or `-- -x` a file")
        return 0
    if name in ("-V", "--version"):
        try:
            print(f"tensorfmt {__version__}, sha256 {own_source()[1]}")
        except OSError:
            print(f"tensorfmt {__version__}, frozen")
        return 0
    args = make_parser(name).parse_args(rest)
    args.options = {key: getattr(args, key) for kind in FORMATS for key in kind.READ_OPTIONS
                    if getattr(args, key, None) is not None}
    return each_file(args) if hasattr(args, "files") else int(args.call(args) or 0)


for call, title in (load, "READ_OPTIONS"), (save, "OPTIONS"):  # of each format, into docstrings
    if getattr(call, "__doc__", None):  # not with -OO
        rows = [f"    {kind.NAME}: {key}: {text}" for kind in FORMATS
                for key, text in getattr(kind, title).items()]
        call.__doc__ = "\n".join([str(call.__doc__).rstrip() + "\n\n    Options:"] + rows)


# -- [10b] page ----------------------------------------------------------------------------------
# A strip of the file, how its format is built, its tensors; then a row per field, whose bytes stand
# in the columns of their offsets. What the file says is monospace, what we say is not.

PAGE_ROWS = 1000  # fields shown from the start, and as many from the end; tensors
PAGE_PARTS = 400  # of the strip, about
PAGE_VALUES = 1024  # of a tensor in its histogram
WRAPS = ".<i></i>"  # names wrap behind their dots
PAGE_BYTES = {"data": 32, "padding": 16}  # of one field, up to a multiple of 16; others: 64
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{title}}</title><style>
:root{color-scheme:light dark;--paper:light-dark(#fdfcfa,#15181b);--dim:light-dark(#5b6268,#a3aab1);
--mono:ui-monospace,"SF Mono",Menlo,Consolas,monospace}.structure{--t:light-dark(#dbe5fa,#233557);
--c:light-dark(#2a57a5,#8fb5fb)}.data{--t:light-dark(#cdebdd,#17443a);--c:light-dark(#0f6a54,
#66d1ae)}.padding{--t:light-dark(#ece9e2,#26292d);--c:light-dark(#67696c,#979ea5)}.unused,
.unreached{--t:light-dark(#fbe3b4,#4a3911);--c:light-dark(#7d5100,#efc063)}.unreached{
--t:repeating-linear-gradient(135deg,light-dark(#f5e8cd,#3b3320) 0 4px,#0000 0 8px)}.fault{
--t:light-dark(#fbd5d0,#64211d);--c:light-dark(#a81d16,#ff9d92)}*{box-sizing:border-box}html{
scroll-padding:12rem 0 25vh}body{margin:auto;max-width:1480px;padding:0 1.5rem 4rem;
background:var(--paper);color:light-dark(#1d2226,#e9e6e0);font:15px/1.5 system-ui,sans-serif}h1{
margin:1.3rem 0 .2rem;overflow-wrap:anywhere}p{margin:.3rem 0;max-width:60rem}a{color:inherit}td{
font:13px/1.5 var(--mono)}.say{font:13px/1.5 system-ui,sans-serif;color:var(--dim)}.key{
max-width:none}.key span{display:inline-block;margin-right:1.6em}.key i{display:inline-block;
width:.9em;height:.9em;background:var(--t);border-bottom:3px solid var(--c);margin-right:.45em}
.banner{border-left:6px solid var(--c);background:var(--t);padding:.6rem 1rem;margin:1rem 0;
overflow-wrap:anywhere}#top{position:sticky;top:0;z-index:2;background:var(--paper);
padding:.7rem 0 .5rem;border-bottom:1px solid #8884}.strip{display:flex;gap:min(1px,25%/var(--n));
height:40px}.strip a{flex:var(--w) 0 0;min-width:min(10px,40%/var(--n));overflow:hidden;
background:var(--t);border-bottom:4px solid var(--c);font:11px/1.3 var(--mono);padding-top:.3em;
white-space:pre;text-decoration:none}.strip+.strip{height:5px;margin-top:3px;gap:0}.strip+.strip a{
flex-grow:var(--s);min-width:0;border:0;background:var(--c);font-size:0}.strip a.on{
background:var(--c);color:var(--paper)}#bar{display:flex;gap:1rem;align-items:baseline;
margin-top:.4rem}#bar p{flex:1;height:1.5em;overflow:hidden;white-space:nowrap;
text-overflow:ellipsis;max-width:none;margin:0}output:empty{display:none}input{font:inherit;
width:17rem;padding:.2em .6em;border:1px solid var(--dim);border-radius:4px;background:none;
color:inherit}::placeholder{color:var(--dim)}#about{display:grid;gap:0 2.5rem;padding:.8rem 0;
grid-template-columns:minmax(0,28rem) minmax(0,1fr)}#about>:only-child{grid-column:1/-1}table{
border-collapse:collapse;width:100%}th{text-align:left;font:600 12px/2 system-ui,sans-serif;
color:var(--dim);background:var(--paper);position:sticky;top:0}td,th{padding:.1rem .9rem .1rem 0;
vertical-align:top;overflow-wrap:anywhere}#list td+td,.say a,.draw td:nth-child(-n+2){
white-space:nowrap}.n{text-align:right}.box{display:inline-block;background:var(--t);
border-left:3px solid var(--c);padding:0 .5em;margin:0 3px 4px 0}.box b{background:var(--c);
color:var(--paper);border-radius:3px;padding:0 .4em}.scroll{overflow:auto;max-height:27rem}.bars{
display:block;width:96px;height:20px;background:var(--c)}#fields{table-layout:fixed}#fields th{
top:var(--top,7rem);z-index:1}th.at{width:80px}th.hex{width:396px;font:13px/2 var(--mono)}th.txt{
width:152px}th.value{width:15%}tr{border-left:3px solid transparent}tr.on{
background:light-dark(#fff2ad,#3b3516)}tr:focus{outline:0;border-color:var(--c)}.via td,.at,.txt,
.hex i{color:var(--dim)}.at,.hex,.txt{white-space:pre}.at a{text-decoration:none}.hex span i{
font-style:normal}.hex span{background:var(--t);padding:.13em 0}.padding .hex span{color:var(--c)}
.name{padding-left:calc(1.2em + var(--d,0)*1.2em)}.name i::after,#list a i::after{content:"\\200b"}
.fault .name{color:var(--c);font-weight:700}.name b{display:inline-block;width:1.2em;
margin-left:-1.2em;cursor:pointer;color:var(--dim)}tr[aria-expanded] b::before{content:"\\25be"}
tr[aria-expanded=false] b::before{content:"\\25b8"}
@media(max-width:1250px){.txt{display:none}#about{display:block}}
@media(max-width:1000px){#fields,#fields tbody{display:block}#fields tr:not([hidden]){display:grid;
grid-template:auto 1fr/4rem 25rem 3fr 2fr}#fields tr:not([data-b]){display:none}.at,.hex{
grid-row:span 2}#fields .name~.say{grid-column:3/5;padding-left:calc(1.2em + var(--d)*1.2em)}}
@media(max-width:640px){body{padding:0 .8rem 3rem}.strip{height:2rem}.strip a{font-size:0}#bar{
flex-wrap:wrap}#bar p{flex:0 0 100%}#bar input{flex:1}td{font-size:12px}.bars{transform:scaleX(.67);
transform-origin:0;margin-right:-32px}#list :is(td,th):is(:nth-child(4),:nth-child(5),
:nth-child(7)),.draw td:nth-child(2){display:none}#fields tr:not([hidden]){
grid-template:auto/4rem 1fr 1fr;padding:.3rem 0}.at{overflow:hidden;height:1.6em}.at,.hex{
grid-row:auto}.hex{grid-column:1/-1;order:2;font-size:min(12px,3.2vw)}#fields .name~.say{
grid-column:2/-1;order:1}}
@media print{:root{color-scheme:light}html{font-size:12px}body{font-size:11px;padding:0}td,.say{
font-size:10px}#top,th{position:static!important}#bar,.name b{display:none}.scroll{max-height:none}
tr{break-inside:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
</style></head><body><h1>{{title}}</h1><p>{{facts}}</p><p class="key say">{{key}}</p>
<section id="top" role="group">
<section aria-hidden="true" style="--n:{{parts}}"><section class="strip">
{{strip}}</section><section class="strip">{{strip}}</section></section><section id="bar">
<p class="say" id="say">The parts of the file; the line below is to scale. A click goes there.</p>
<input type="search" aria-label="search" placeholder="search names, values, bytes">
<output class="say"></output></section></section><section id="about">{{layout}}{{tensors}}</section>
<table id="fields" role="treegrid" aria-label="fields"><tr><th class="at">offset</th>
<th class="hex"> 0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f</th><th class="txt">text</th>
<th class="name">field</th><th class="value">value</th><th>meaning</th></tr>{{rows}}</table><script>
let all = query => [...document.querySelectorAll(query)], rows = all("tr[data-b]"), fixed = null;
let [bar, say, search, output] = all("#top, #say, input, output"), hint = say.textContent;
let parts = all(".strip a"), open = [];  // the rows around the next one, the outermost first
let holds = (e, at) => +e.dataset.b <= at && at < +e.dataset.e;
for (let r of rows) {
  open = open.filter(one => +one.ariaLevel < +r.ariaLevel);
  Object.assign(r, {over: open, tabIndex: -(r !== rows[0])});
  if (r.ariaExpanded) open = [...open, r];
}
function mark(e) {
  all(".on").forEach(one => one.classList.remove("on"));
  if (!e) return say.textContent = hint;
  let at = +e.dataset.b, count = e.dataset.e - at, cell = (r, i) => r.cells[i].textContent.trim();
  let value = e.dataset.s || [...e.over, e].map(r => cell(r, 3)).join(" \\u203a ") +
    (cell(e, 4) && " = " + cell(e, 4)) + ", " + cell(e, 5);
  say.textContent = `${count} byte${count > 1 ? "s" : ""} at 0x${at.toString(16)}: ${value}`;
  [e, ...parts.filter(p => holds(p, at))].forEach(one => one.classList.add("on"));
}
function show() {  // with a text: a hit, what is around it, what is in it
  let text = search.value.trim().toLowerCase();
  let has = e => e.textContent.toLowerCase().includes(text), hits = new Set(rows.filter(has));
  let keep = new Set([...hits].flatMap(r => [r, ...r.over]));
  for (let r of rows) {
    let inside = r.over.some(one => text ? hits.has(one) : one.ariaExpanded === "false");
    r.hidden = text ? !keep.has(r) && !inside : inside;
    r.classList.toggle("via", !hits.has(r));
  }
  all("#list tr+tr").forEach(r => r.hidden = !has(r));
  output.textContent = text && hits.size + " of " + rows.length;
}
function fold(row, state) { if (row && row.ariaExpanded) row.ariaExpanded = state, show(); }
function choose(row, block = "nearest") {
  if (!row) return;
  if (row.hidden) { search.value = ""; row.over.forEach(r => r.ariaExpanded = "true"); show(); }
  [(fixed || rows[0]).tabIndex, row.tabIndex, fixed] = [-1, 0, row];
  row.focus({preventScroll: true});
  row.scrollIntoView({block});
  mark(row);
}
document.onmousemove = e => (e.movementX || e.movementY) &&  // not when rows scroll under it
  mark(e.target.closest("[data-b]") || fixed);
document.onclick = e => {
  let row = e.target.closest("tr[data-b]"), link = e.target.closest("a");
  if (e.target.role === "button") fold(row, String(row.ariaExpanded === "false"));
  if (link) { e.preventDefault(); location.hash = link.hash; }  // also in a frame of a notebook
  else if (!String(getSelection())) choose(row);
};
document.onkeydown = e => {
  let step = {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9}[e.key];
  let typing = e.target === search, left = rows.filter(r => !r.hidden), at = left.indexOf(fixed);
  if (e.key === "/" && !typing) { e.preventDefault(); search.focus(); }
  if (/ArrowLeft|ArrowRight/.test(e.key) && !typing) fold(fixed, String(e.key === "ArrowRight"));
  if (!step || !left.length || (typing && Math.abs(step) > 20)) return;
  e.preventDefault();
  choose(left[Math.min(left.length - 1, Math.max(0, at + step))]);
};
search.oninput = show;
(onresize = () => document.body.style.setProperty("--top", bar.offsetHeight + "px"))();
let outer = new Set(rows.map(r => r.ariaExpanded && r.over.at(-1)));  // folds with folds inside
if (rows.length > 300) rows.forEach(r => outer.has(r) || (r.ariaExpanded &&= "false")), show();
(onhashchange = () => choose(location.hash &&
  rows.find(r => holds(r, +location.hash.slice(1))), "center"))();
</script></body></html>
"""


def make_page(found: Explained, title: str) -> "Tuple[str, str]":
    """Return the page of a file, and how many fields it shows."""
    import re
    rows, version = found.rows, found.attrs.get("version")
    facts = found.kind.TITLE + ("" if version is None else f", version {version}")
    facts += f", {found.source.nbytes:,} bytes"
    picked = rows[:PAGE_ROWS] + rows[PAGE_ROWS:][-PAGE_ROWS:]
    summary, left_out = count_of(len(picked), "field"), len(rows) - len(picked)
    if left_out:
        summary += f", {left_out} left out"
        facts += (f"; {left_out} fields in the middle are left out: for a page of them, "
                  f"--from 0x{rows[PAGE_ROWS][0].offset:x} or --tensor NAME")
    strip = page_strip([row[0] for row in rows])
    parts = {"title": to_html(plain(title)), "facts": to_html(facts, MAX_LINE),
             "key": page_key(found), "parts": strip.count("<a "), "strip": strip,
             "layout": page_layout(found), "tensors": page_tensors(found),
             "rows": page_rows(found.source, picked)}
    page = re.sub(r"{{(\w+)}}", lambda match: str(parts[match.group(1)]), PAGE)
    return page.encode("ascii", "xmlcharrefreplace").decode(), summary


def page_key(found: Explained) -> str:
    """Return the kinds of bytes with their shares; the banner of a broken file."""
    error, sums, total = found.error, found.sums, found.source.nbytes
    text = "".join([f'<span class="{kind}"><i class="kind"></i><b>{kind}</b>, '
                    f"{FIELD_KINDS[kind][0]}: {count:,} bytes ({100 * count / total:.1f} %)</span>"
                    for kind, count in sums.items() if count])
    if error is None:
        return text
    at, lost = total if error.offset is None else error.offset, sums["unreached"]
    return text + (
        '</p><section class="banner fault" role="alert"><b>This file is broken: '
        f'{to_html(error.what, MAX_LINE)}.</b> The fault is at <a href="#0x{at:x}">0x{at:x}, '
        f'{to_html(error.field or "")}</a>: {total - sums["fault"] - lost:,} bytes were read, '
        f"{lost:,} were not.</section><p>")


def page_layout(found: Explained) -> str:
    """Return the text and the layout of the format, with places and values of this file."""
    import re
    fields = [row[0] for row in reversed(found.rows)]  # the first of a name, of an offset stays
    values = dict([(field.name, field.value) for field in fields])
    kinds: Any = dict([(field.offset, field.kind) for field in fields])
    table = ""
    for label, items in found.layout:
        at, boxes = found.places.get(label), ""
        for item in re.split(r" \|(?: |$)", items):
            kind, value = kinds.pop(at, "structure"), values.get(item.split(" ")[0])
            for pattern, other in (r"(\S+ )?(blobs?|data)\b", "data"), ("zeros|spaces", "padding"):
                kind = other if re.match(pattern, item) else kind
            live = isinstance(value, int) and str(value) not in item
            text = f" <b>{show(value)}</b>" if live else ""
            boxes += f'<span class="box {kind}">{to_html(item)}{text}</span>'
        place = "" if at is None else f'<a href="#0x{at:x}">0x{at:x}</a>'
        table += f"<tr><td>{place}</td><td>{to_html(label)}</td><td>{boxes}</td></tr>"
    first, *rest = [f"<p>{to_html(text, MAX_LINE)}</p>" for text in found.texts]
    return (f"<section><b>How {to_html(found.kind.TITLE)} is built</b>{first}"
            f'<table class="draw">{table}</table>{"".join(rest)}</section>')


def page_tensors(found: Explained) -> str:
    """Return a table of the tensors, with histogram and range of their first values."""
    items, left = found.tensors, 4 * found.source.nbytes  # bytes to decode: one may stand in many
    rows = f"""<section><b>{count_of(len(items), "tensor")}</b>; values: the first {PAGE_VALUES}
<section class="scroll"><table id="list"><tr><th>name</th><th>dtype</th><th>shape</th>
<th class="n">bytes</th><th class="n">at</th><th>values</th><th>from, to</th></tr>"""
    for name, item in list(items.items())[:PAGE_ROWS]:
        bars = ends = ""
        left -= 0 if item.is_plain() else item.stored.nbytes
        if left >= 0 and not is_sparse(item):
            try:
                bars, ends = histogram(item)
            except ValueError:  # damaged, empty, of an unknown type
                pass
        rows += (f'<tr class="data"><td><a href="#0x{item.start:x}">'
                 f"{to_html(plain(clip_path(name))).replace('.', WRAPS)}</a></td>"
                 f"<td>{to_html(item.dtype)}</td>"
                 f'<td>{to_html(show(item.shape))}</td><td class="n">{item.stored.nbytes:,}</td>'
                 f'<td class="n at">0x{item.start:x}</td><td>{bars}</td><td>{ends}</td></tr>\n')
    return rows + "</table></section></section>" if items else ""


def histogram(item: Tensor) -> "Tuple[str, str]":
    """Return bars, 96 wide and 20 high, and the range, of the first values."""
    part = next(item.parts(), b"")[:PAGE_VALUES * item.check_readable()]
    values = [x for x in unpack_values(str(item.dtype), part) if abs(x) < INFINITY]
    low, high, bins = min(values), max(values), [0] * min(24, len(values) // 2)
    ends = f"{low:.3g}" if low == high else f"{low:.3g}, {high:.3g}"
    if low == high or len(values) < 8:
        return "", ends
    for value in values:
        bins[int((value - low) / (high - low) * (len(bins) - .001))] += 1
    bars = "".join([f"V{20 - 20 * n / max(bins):.3g}h{96 / len(bins):.4g}" for n in bins])
    return f'<i class="bars" style="clip-path:path(&#39;M0 20{bars}V20z&#39;)"></i>', ends


def page_strip(fields: "List[Field]") -> str:
    """Return the parts of the file: a tensor each, or neighbours of one kind, or about as large."""
    from itertools import groupby
    parts = [list(group) for _, group in groupby(fields, lambda one: (  # alignment: of an index
        "structure" if one.doc == "alignment" else one if one.kind == "data" else one.kind))]
    if len(parts) > PAGE_PARTS:
        least = 1 + fields[-1].offset // PAGE_PARTS
        near = groupby(parts, lambda part: part[0].offset // least)
        parts = [[field for part in group for field in part] for _, group in near]
    sizes = [part[-1].offset + part[-1].nbytes - part[0].offset for part in parts]
    total, strip = sum([size ** .33 for size in sizes]), ""
    for part, size in zip(parts, sizes):
        largest, start = max(part, key=lambda field: field.nbytes), part[0].offset
        kind, wide, label = largest.kind, size ** .33, ""
        name = kind if kind == "structure" else to_html(plain(clip_path(largest.name)))
        about = f"{name}, {kind}, {count_of(len(part), 'field')}"
        if wide > total / 20 and kind != "padding":
            label = f" {name[5 * (kind == 'data'):]}\n 0x{start:x}"
        strip += (f'<a class="{kind}" href="#0x{start:x}" tabindex="-1" data-b="{start}" '
                  f'data-e="{start + size}" data-s="{about}" style="--w:{wide:.4g};--s:{size}">'
                  f"{label}</a>\n")
    return strip


def page_rows(source: Any, picked: Any) -> str:
    """Return a row per field, its bytes in the columns of their offsets."""
    import re
    from html import escape
    backs = dict([(row[0].target, row[0].offset) for row in reversed(picked)])  # the first stays
    out, before = [], -1
    for field, name, value, meaning, opens in picked:
        at, depth, lead = field.offset, field.depth, 3 * field.lead
        blanks, most = at % 16, PAGE_BYTES.get(field.kind, 64)
        data = bytes(source.read(at, min(field.nbytes, most - blanks)))
        ends = range(at - blanks, at + len(data), 16)
        places = "\n".join([f"0x{max(at, line):x}" for line in ends])
        digits = re.sub("(.{47}) ", r"\1\n", "   " * blanks + hex_of(data))[3 * blanks:]
        text = re.sub("[^ -~]", "\xb7", " " * blanks + data.decode("latin-1"))
        text = escape(re.sub("(.{16})(?=.)", r"\1\n", text))
        left, more = field.nbytes - len(data), ' aria-expanded="true"' if opens else ""
        tail = f'\n<i class="say">\u2026 {left:,} more bytes</i>' if left else ""
        doc = to_html(meaning, MAX_LINE).replace("-&gt; 0x", "&rarr;&nbsp;0x")
        if at > before:  # the first of this offset
            more += f' id="0x{at:x}"'
            doc += f" &larr;&nbsp;0x{backs[at]:x}" if at in backs else ""
        doc = re.sub(r"\b0x[0-9a-f]+\b", r'<a href="#\g<0>">\g<0></a>', doc)
        out.append(f"""<tr class="{field.kind}"{more} data-b="{at}" data-e="{at + field.nbytes}"
style="--d:{depth}" aria-level="{depth + 1}"><td class="at"><a href="#0x{at:x}" tabindex="-1">{
places}</a></td><td class="hex">{"   " * blanks}<span><i>{digits[:lead]}</i>{digits[lead:]}</span>{
tail}
</td><td class="txt">{text}</td><td class="name"><b role="button" aria-label="fold"></b>{
to_html(name).replace(".", WRAPS)}</td><td>{to_html(value)}</td><td class="say">{doc}</td></tr>""")
        before = at
    return "".join(out)


# -- [11] vendor ---------------------------------------------------------------------------------
#
# A copy is this file's text without some rooms and marked sections, `# <NAME>` to `# </NAME>`:
# save (what writes), tools (what explain, verify, convert and the command line need), zstd, sparse,
# quantized, arrays, later (generations), full (not for boards), and formats by name. What has
# several names, `# <zstd burnrecord>`, goes with the last of them. `if BOARD`, `if FAST`, `if
# REMOTE` and `if ARRAYS` are decided. Then everything goes that no line that stays names: only
# what would be named anyhow needs marks.

TOOL_ROOMS = ["explain", "verify", "convert", "command line", "page", "vendor"]
SWITCHES = {  # of `vendor`: the sections that each leaves out
    "load-only": ["save", "tools"], "no-tools": ["tools"],
    "board": ["full", "fast", "remote", "arrays"]}
CONSTANTS = ["fast", "remote", "arrays"]  # of [1]: `if FAST`
DOCS = {"Record": 2, "Schema": 3, "other": 1, "ENTRY": 3, "OPERATION": 3, "ROOT": 3}  # in each row
OPTIONAL = ["zstd", "sparse", "quantized"] + CONSTANTS  # with a switch only if asked for
API = {  # what a program may use of a copy, by the section that it goes with
    "": "load detect File Tensor FormatError Unsupported FORMATS __version__ __all__ __dir__ "
        "name dtype shape strides ndim size itemsize nbytes offset attrs raw data zero_copy "
        "tobytes tolist item flat contiguous astype components todense keys values items get "
        "format path metadata close what field tensor check",
    "quantized": "scheme scales dequantize", "save": "save dumps tensor",
    "tools": "convert verify explain main cbor_loads cbor_dumps msgpack_loads msgpack_dumps "
             "flat_loads FlatBuilder string scalars offsets table finish crc32c"}
BLOCKS = ["body", "orelse", "handlers", "finalbody"]  # what a statement has of others
ALONE = """

if __name__ == "__main__":
    sys.stderr.write("error: a copy of tensorfmt without its commands: a program imports it\\n")
    sys.exit(2)
"""


def show_vendor(args: Any) -> None:
    if sys.version_info < (3, 8):
        raise TypeError("vendor needs Python 3.8 or newer; the copies that it makes do not")
    for own in (globals().get("__file__", ""), getattr(globals().get("__loader__"), "archive", "")):
        if os.path.exists(own) and os.path.exists(args.out) and os.path.samefile(own, args.out):
            raise ValueError(f"{plain(args.out)}: the copy would replace its own source")
    names, wanted = [[name for name in (text or "").split(",") if name]
                     for text in (args.formats, getattr(args, "with"))]
    flags = [word for word in SWITCHES if getattr(args, word.replace("-", "_"))]
    without, drop = choose_parts(names, wanted, flags)
    asked = [f"--{key} {','.join(value)}" for key, value in (("formats", names), ("with", wanted))
             if value] + ["--" + word for word in flags]
    label = ".".join(names + ["with"] * bool(wanted) + wanted + flags)
    source, digest = own_source()
    text = make_copy(source.decode(), without, drop, label)
    made = f"\n# A copy of tensorfmt {__version__}, of the file with this sha256:\n# {digest}\n"
    text = text.replace("\n", made + f"# made by: vendor {' '.join(asked)}\n", 1)
    write_text(args.out, text, count_of(text.count("\n"), "line"))


def choose_parts(names: "List[str]", wanted: "List[str]",
                 flags: "List[str]") -> "Tuple[List[Format], List[str]]":
    """Return the formats and the sections that a copy lacks."""
    needed = names + [name for kind in FORMATS if kind.NAME in names for name in kind.NEEDS]
    kept = [kind for kind in FORMATS if (kind.NAME in needed if names else
                                         kind.BOARDS or "board" not in flags)]
    later = [kind.NAME for kind in LATER if find_format(kind.FAMILY) in kept]
    for key, given, known in ("formats", names, NAMES), ("with", wanted, OPTIONAL + later):
        if set(given).difference(known):
            raise TypeError(f"--{key} takes some of {','.join(known)}")
    drop = [part for word in flags for part in SWITCHES[word]]
    used = list(wanted) or [part for kind in kept for part in kind.USES if not flags]
    used += CONSTANTS if not flags else []
    if "tools" not in drop or set(used).intersection(later):
        used.append("later")
    gone = OPTIONAL + [kind.NAME for kind in LATER] + ["later"]
    return ([kind for kind in FORMATS if kind not in kept],
            drop + [part for part in gone if part not in used])


def make_copy(text: str, without: "List[Format]", drop: "List[str]", label: str) -> str:
    """Return the text of a copy without some formats and sections."""
    import re
    gone = [kind.NAME for kind in without] + drop + (TOOL_ROOMS if "tools" in drop else [])
    text = drop_rooms(text, "|".join(gone))
    for kind in without:
        text = text.replace("    %s(),\n" % type(kind).__name__, "", 1)
    rows = "".join(["\n    %r," % ((kind.NAME, kind.MAGICS),) for kind in without if kind.MAGICS])
    text = re.sub(r"(?m)^(LEFT_OUT: .*) = \(\)", lambda m: f"{m.group(1)} = ({rows})", text)
    version = __version__ + (".+"["+" not in __version__] + label if label else "")
    text = re.sub(r"(?m)^__version__ = .*", f'__version__ = "{version}"', text)
    for names in set(re.findall(r"(?m)^ *# <([\w ]+)>$", text)):
        if set(names.split()).issubset(gone):
            text = re.sub(r"(?ms)^ *# <%s>\n.*?^ *# </%s>\n" % (names, names), "", text)
    if "tools" in drop:  # a copy that cannot vendor has no marks, nor examples of verify()
        text = re.sub(r"(?m)^ *# </?[\w ]+>\n", "", text)
        text = re.sub(r'(?ms)\n\n +>>> .*?(?=\n +"""$)', "", text)
        text = re.sub(r'(?m)^( +""".{1,90}[^"\n])\n +"""$', r'\1"""', text)  # one line is left
    known = {"BOARD": True, "TYPE_CHECKING": False} if "full" in drop else {}
    known.update([(name.upper(), False) for name in CONSTANTS if name in drop])
    roots = {word for part in API if part not in drop for word in API[part].split()}
    text = re.sub("\n{4,}", "\n\n\n", cut_code(text, known, roots, drop))
    text = re.sub("\n{3,}(?= )", "\n\n", text)  # inside of classes
    empty = r"(?m)^# -- \[\w+\] ([\w ]+) -.*\n(?:(?:#(?! --).*)?\n)*(?=# -- )"
    text = drop_rooms(text, "|".join(re.findall(empty, text)))
    text = describe_copy(text, [kind for kind in FORMATS if kind not in without])
    return text if "tools" not in drop or "full" in drop else text.rstrip("\n") + ALONE


def drop_rooms(text: str, names: str) -> str:
    """Return the text without rooms, and without their lines of the contents."""
    import re
    if not names:
        return text
    rooms = [room for room in re.split(r"(?m)^(?=# -- \[)", text)
             if not re.match(r"# -- \[\w+\] (%s) -" % names, room)]
    return re.sub(r"(?m)^    \[\w+\] (%s)  .*\n" % names, "", "".join(rooms))


def describe_copy(text: str, kinds: "List[Format]") -> str:
    """Return the text of a copy, its docstring and __all__ with what it has."""
    import re
    kept = [name for name in __all__ if re.search(r"(?m)^(def |class )?%s\b" % name, text)]
    lines = [str(kept[i:i + 6])[1:-1] + "," for i in range(0, len(kept), 6)]
    public = "__all__ = [\n    %s\n]" % "\n    ".join(lines)
    text = re.sub(r"(?ms)^__all__ = \[.*?^\]", public, text)
    start = text.find('"""')
    head, contents, rest = text[start:].partition("\nContents")
    if not contents:
        return text
    if "explain" not in kept:  # nor the sources of all
        rest = re.sub(r'(?s)\n\nThe room of a format .*?(?=\n""")', "", rest)
    titles, suffix = ", ".join([kind.TITLE for kind in kinds]), kinds[0].SUFFIXES[0]
    head = (f'"""A copy of tensorfmt, for tensor files.\n\n{titles}.\n\n'
            f'    from tensorfmt import load\n    with load("model{suffix}") as file:\n'
            "        print(list(file.values()))\n")
    return text[:start] + head + contents + rest


def cut_code(text: str, known: "Dict[str, bool]", roots: Any, drop: "List[str]") -> str:
    """Return the text without the code and the docs that a copy lacks; parse it once."""
    import ast
    import re
    for name, value in known.items():
        text = re.sub(rf"(?m)^{name} = .*", f"{name} = {value}", text)
    tree, lines = ast.parse(text), dict(enumerate(text.split("\n"), 1))  # cuts keep the numbers
    if "full" in drop:
        drop_docs(tree, lines)
    tree.body = decide(tree.body, lines, known)
    if "tools" in drop:
        kept = {type(kind).__name__ for kind in BY_NAME.values()}  # their docs are the layouts
        drop_docstrings(tree.body, lines, roots | kept)
    drop_unnamed(tree.body, lines, roots)
    return "\n".join(lines.values())


def decide(body: "List[Any]", lines: "Dict[int, str]", known: "Dict[str, bool]") -> "List[Any]":
    """Return what statements come to where constants decide an `if`; cut the other lines."""
    import ast
    kept = []
    for one in body:
        answer = truth_of(one.test, known) if isinstance(one, ast.If) else None
        if answer is None:
            for name in BLOCKS:
                if hasattr(one, name):
                    setattr(one, name, decide(getattr(one, name), lines, known))
            kept.append(one)
            continue
        chosen: Any = one.body if answer else one.orelse
        ends = chosen and isinstance(chosen[-1], (ast.Return, ast.Raise))
        last = body[-1] if ends else one  # what is behind it is never reached
        unwrap(one, chosen, last.end_lineno or 0, lines)
        kept += decide(chosen, lines, known)
        if ends:
            break
    return kept


def unwrap(one: Any, chosen: Any, stop: int, lines: "Dict[int, str]") -> None:
    """Cut the lines from an `if` to `stop`, but those of its chosen branch."""
    inside, deeper = range(0), 0
    if chosen:
        if lines[one.lineno].lstrip().startswith("elif"):
            raise ValueError(f"line {one.lineno}: `elif` and a constant")
        inside = range(chosen[0].lineno, chosen[-1].end_lineno + 1)
        deeper = chosen[0].col_offset - one.col_offset
        if lines[inside[0]].lstrip().startswith("elif"):
            lines[inside[0]] = lines[inside[0]].replace("elif", "if", 1)
    for number in range(one.lineno, stop + 1):
        if number not in inside:
            lines.pop(number, None)
        elif number in lines:
            lines[number] = lines[number][deeper:]


def truth_of(test: Any, known: "Dict[str, bool]") -> "Optional[bool]":
    """Return what constants make of a condition, None if it needs more."""
    import ast
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return {True: False, False: True, None: None}[truth_of(test.operand, known)]
    if isinstance(test, ast.BoolOp):
        any_of = isinstance(test.op, ast.Or)
        return any_of if any_of in [truth_of(value, known) for value in test.values] else None
    return known.get(test.id) if isinstance(test, ast.Name) else None


def drop_docs(tree: Any, lines: "Dict[int, str]") -> None:
    """Empty what says in rows of tables what each field and option means."""
    import ast
    docs = []
    for one in ast.walk(tree):
        rows: Any = []
        if isinstance(one, ast.Call):
            rows = [(getattr(one.func, "id", ""), row) for row in one.args]
            rows += [(word.arg, word.value) for word in one.keywords]
        elif isinstance(one, ast.Assign):
            name = getattr(one.targets[0], "id", "")
            rows = [(name, row) for row in getattr(one.value, "elts", ())]
            docs += getattr(one.value, "values", []) if name in ("OPTIONS", "READ_OPTIONS") else []
        docs += [row.elts[DOCS[name]] for name, row in rows
                 if name in DOCS and isinstance(row, ast.Tuple)]
    docs = [doc for doc in docs if isinstance(doc, ast.Constant) and doc.lineno == doc.end_lineno]
    for doc in sorted(docs, key=lambda doc: -int(doc.col_offset)):
        line = lines[doc.lineno]
        lines[doc.lineno] = line[:doc.col_offset] + '""' + line[doc.end_col_offset:]


def drop_docstrings(body: "List[Any]", lines: "Dict[int, str]", public: Any) -> None:
    """Cut the docstrings of functions and classes that are not public."""
    import ast
    for one in body:
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name not in public:
            if ast.get_docstring(one) and len(one.body) > 1:
                behind = cut(lines, one.body[0])
                if lines.get(behind) == "":  # in a class
                    del lines[behind]
        for name in BLOCKS:
            drop_docstrings(getattr(one, name, []), lines, public)


def cut(lines: "Dict[int, str]", node: Any, start: int = 0) -> int:
    """Cut the lines of a statement, from `start` on; return the number of the next one."""
    for number in range(start or node.lineno, node.end_lineno + 1):
        lines.pop(number, None)
    return int(node.end_lineno) + 1


def defined(node: Any) -> "List[str]":
    """Return the names that a mere definition defines."""
    import ast
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def drop_unnamed(body: "List[Any]", lines: "Dict[int, str]", needed: Any) -> None:
    """Cut the definitions that nothing names."""
    import ast
    reached = set(needed)  # what attributes name: methods, constants of classes
    found: Any = [(node, needed) for node in body if not defined(node)]
    waiting: Any = [(node, needed) for node in body if defined(node)]  # and the names around it
    while found:
        for node, around in found:
            if isinstance(node, ast.ClassDef):  # what it defines inside waits
                around = set()  # only its own body names its constants without a dot
                inner = [one for one in node.body if defined(one) and defined(one)[0][:2] != "__"]
                waiting += [(one, reached if isinstance(one, ast.FunctionDef) else around)
                            for one in inner]
                node.body = [one for one in node.body if one not in inner]
            for one in ast.walk(node):
                if isinstance(one, ast.Attribute):
                    reached.add(one.attr)
                elif isinstance(one, (ast.Name, ast.alias)):
                    name = one.id if isinstance(one, ast.Name) else one.name
                    needed.add(name)
                    if around is not reached:
                        around.add(name)
        found = [pair for pair in waiting if not pair[1].isdisjoint(defined(pair[0])) or (
            pair[1] is not needed and not reached.isdisjoint(defined(pair[0])))]
        waiting = [pair for pair in waiting if pair not in found]
    for node in sorted([pair[0] for pair in waiting], key=lambda node: int(node.lineno)):
        start = min([node.lineno] + [one.lineno for one in getattr(node, "decorator_list", ())])
        while lines.get(start - 1, "").lstrip()[:1] == "#" and lines[start - 1][:4] != "# --":
            start -= 1
        before, behind = start - 1, cut(lines, node, start)
        while before not in lines:
            before -= 1
        while lines[before] == lines.get(behind) == "":
            del lines[behind]
            behind += 1


if __name__ == "__main__":
    sys.exit(main())
