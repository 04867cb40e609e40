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
# pyright: reportPossiblyUnboundVariable=false, reportIncompatibleMethodOverride=false
"""Read, write and explain five tensor file formats, and safetensors: one file, nothing to install.

.mag (magnetron), zTensor, primitiv, Burnpack and TensorBuffers, zero-copy, byte-exact.

    from tensorfmt import load, save, tensor
    save("model.bpk", {"w": [[1.0, 2.0], [3.0, 4.0]], "steps": tensor(7, "int64")})
    with load("model.bpk") as file:         # O(index): no tensor byte is touched
        w = file["w"]                       # .name .dtype .shape .strides .raw .data .tolist()
        print(w.dtype, w.shape, w[0, 1])    # float64 (2, 2) 2.0
        array = numpy.asarray(w)            # zero-copy; numpy is not needed for anything else

Contents (the banners of the sections below; search for a number)

    I  the five formats, read and written
    [1] platform               what this Python offers; limits of all formats
    [2] errors, text           FormatError, Unsupported; what messages are made of
    [3] dtypes                 element types, values <-> bytes, byte order
    [4] sources                where bytes come from: a buffer, a mapped file, a stream
    [5a] CBOR                  RFC 8949
    [5b] MessagePack           what primitiv and burnrecord are made of
    [5c] FlatBuffers           tables, vectors and texts; a builder
    [5d] checksums             CRC-32, CRC-32C, SHA-256
    [5e] zstd                  through whichever module is there
    [6a] Tensor, File          strided views, values, the mapping of names to tensors
    [6b] Schema                what a map of an index holds
    [6c] Reading               RecordType, Reading: what a format asks for
    [6d] Format                what every format says
    [6e] sparse                stored elements and where they are
    [7a] mag                   two layouts, header + records + data
    [7b] ztensor               data + CBOR index + its size
    [7c] primitiv              a run of MessagePack values, column-major
    [7d] burnpack              header + CBOR + data
    [7e] tensorbuffers         data + one FlatBuffer + its size
    [8a] load                  load(), detect(): from a path to a File
    [8b] values: tensor()      lists, numbers, buffers
    [8c] save                  what writes files

    II  more formats and numbers
    [9a] float8                8-bit floats and their codes
    [9b] casts                 other dtypes
    [9c] arrays                what numpy, torch and jax ask for
    [9d] shared streams        whose turn it is; processes that forked
    [9e] pickles               a reference to a file, by path, size and time
    [9f] strided blocks        elements with gaps between them, large ones quickly
    [9g] work                  how much a file may make us do
    [9h] composites            tensors of unknown layouts, with all their bytes
    [9i] equality              the same values, of the same types
    [9j] JSON                  RFC 8259, by the standard library
    [9k] XXH3                  XXH3-64, also by numpy
    [9l] digests               whether stored bytes have the digests that a file says
    [9m] safe saving           damaged sources; who may do what with a file that is replaced
    [10a] mag300               snapshot 300: header + JSON + data
    [10b] ztensor2             as ztensor, but deterministic, with digests
    [10c] quantized            values of few bits, and their scales
    [10d] safetensors          JSON header + data
    [10e] burnrecord           one MessagePack map, read only
    [10f] shards               a model in several safetensors files, read only
    [10g] other copies         Tensors and Files of another copy of this module

    III  tools
    [12a] other files          what a file of no known format looks like
    [12b] repr and previews    repr(), the notebook's table, did you mean
    [13a] places               regions of a file; where the fields of errors are
    [13b] explain              every byte of a file, named
    [13c] verify               checksums, padding, canonical form
    [13d] convert              what changes is told; what would be lost is refused
    [13e] diff                 values, custom attributes, metadata
    [14a] page                 what explain shows; the page of `explain --html`
    [14b] vendor               copies of this file with some formats and parts
    [14c] stand-ins            what copies have for functions that they lack
    [15] command line          python3 tensorfmt.py COMMAND ...

`nbytes` counts bytes, `size` and `count` elements, `offset` bytes from the start of the file. A
shape is a tuple, the outermost dimension first; that of a scalar is `()`. Values are row-major and
little-endian unless said otherwise.

How load("model.bpk") runs, from function to function:

    load -> open_source          a Buffer: the bytes of the file, mapped
         -> detect_format        Burnpack's object in FORMATS, by the leading bytes
         -> read_file -> Burnpack.read(reading)      straight code, in numbered steps
              reading.record(0, HEADER)              one unpack: magic, version, size
              reading.cbor(10, size, INDEX)          a dict, checked by the Schema INDEX
              for each entry of the index:
                   Burnpack.open_entry               makes a Tensor: dtype, shape, where it lies
                   reading.add_tensor                checks its name, size and place
         <- File                 a mapping of names to Tensors; no byte of them was read

How save("model.bpk", tensors) runs:

    save -> target_format        Burnpack's object, by the suffix
         -> prepare              what is to be written: generation, items, metadata, attrs
              by_name            a Tensor for each name; tensor_of(value) makes those of others
              choose_generation  which one of a family; refuses options that it does not have
              check_work         refuses what is much larger, decoded, than its file
         -> encode_file          an iterator over blocks of bytes; errors come before the first
              Burnpack.write     raise_problems() tells all that the format cannot hold; then a
                                 place and an entry for each tensor, the index, iter_file()
              check_stored       damaged bytes of a source get no new checksum
         -> write_out -> write_beside                a new file, renamed when it is complete

How the error of a broken file finds its place, which load() looks for only then:

    read_file -> Burnpack.read   raises a FormatError: of a codec, which knows an offset, or of
                                 the format, which knows the trail of a field
         -> read_again           the same once more, by a Recorder, which keeps each Region
              complete           gives the error what it lacks
                   find_trail    of an offset: trail_at() asks the last region for its field
                   find_offsets  of a trail: the field's, else that of the innermost around it
                   Region.spans  all fields of a region: a walk asks the codec for each
         <- the FormatError      with offset, field and path; explain() shows the field

Part I is the text book: whoever wants to know the five formats may stop reading after it. A part
knows a later one by its stand-ins only: what a copy without that has in its place, see [14c].
Inside of a part, sections stand in the order of need.

Sources: the specifications of the five formats, MessagePack and FlatBuffers; RFC 8949 (CBOR), RFC
3720 (CRC-32C); files of the real writers (magnetron 0.1.2-0.2.2, ztensor 0.1.0-0.1.4 and
2.0.0-2.1.2, primitiv 0.3.1 and 0.4.0, burn-store 0.19-0.21, tensorbuffers 7190fc4 and 2422de1).
"""
__version__ = "0.5.0"
__all__ = [
    "load", "save", "dumps", "tensor", "detect", "convert", "verify", "explain", "diff",
    "File", "Tensor", "FormatError", "Unsupported", "FORMATS",
    "cbor_loads", "cbor_dumps", "msgpack_loads", "msgpack_dumps", "flat_loads", "FlatBuilder",
    "crc32c",
]


# == I the five formats, read and written ================================================


# -- [1] platform ------------------------------------------------------------------------

import os
import struct
import sys
from struct import calcsize, pack, unpack_from

const = int  # boards know it: they compile nothing of what follows
TYPE_CHECKING = const(0)
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from ast import AST, stmt
    from typing import (Any, Dict, Iterable, ItemsView, Iterator, KeysView, List, Mapping,
                        Optional, Tuple, Type, Union, ValuesView)
    from typing import Callable, NoReturn, Sequence, Set
    from io import FileIO
    from _typeshed import ReadableBuffer, SupportsRead, SupportsWrite
    Trail = Tuple[Any, ...]  # keys and indices that lead to a field
    Source = Union[str, os.PathLike[str], ReadableBuffer, SupportsRead[Any]]
    Target = Union[str, os.PathLike[str], SupportsWrite[Any]]
    Shape = Tuple[int, ...]  # dimensions, or strides in bytes
    Facts = Dict[str, Any]
    Notes = Iterator[Sequence[Tuple[Optional["Tensor"], str]]]
    Items = List[Tuple[str, "Tensor"]]
    Blocks = Iterator[Any]  # bytes-like objects
    TensorMap = Mapping[str, "Tensor"]
    Spans = Iterator[Tuple[int, int, Trail, Any, int, str]]  # of a region
    Watch = Optional[Callable[[str, int, int], Any]]  # (verb, done, total)
else:  # annotations name them
    Any = Trail = Shape = Facts = Items = Blocks = TensorMap = Source = Target = object
    Spans = Watch = object
BOARD = sys.implementation.name in ("micropython", "circuitpython")
if BOARD:  # without threads, and its dict has no order
    import collections
    Map: "Type[Dict[Any, Any]]" = collections.OrderedDict

    class RLock:
        def __enter__(self, *error: Any) -> None:
            pass
        __exit__ = __enter__
else:
    from _thread import RLock  # type: ignore[assignment]
    Map = dict
StructError: Any = getattr(struct, "error", ValueError)  # boards have no other
NATIVE = "<" if sys.byteorder == "little" else ">"
MISSING: Any = object()  # a key or a field that is absent

# Limits: an error names its own; set it before load() to change it.
BLOCK = 1 << (9 if BOARD else 20)  # bytes decoded or swapped at a time
PART = 1 << (8 if BOARD else 15)  # bytes cast at a time; not to be changed
WINDOW = 1 << (9 if BOARD else 12)  # bytes that small reads take at once
MAX_DEPTH = 128  # arrays, maps and tags around an item of an index
MAX_ITEMS = 1 << 23  # arrays and maps of an index
MAX_OTHER_KEYS = 1000  # map keys that are no text: numbers can make a dict slow
MAX_INDEX = 256 << 20  # bytes of an index that is read whole
MAX_DENSE = 1 << 30  # bytes of the dense form of a sparse tensor
KEPT = 1 << 26  # decoded bytes that are kept, of one tensor of a file
MAX_NAMES = 1 << 20  # characters of names that repeat others, beside 4 a byte of a file
MAX_SLOW_HASH = 1 << 26  # bytes of XXH3 that verify() computes without the module xxhash
MAX_ERRORS = 1000  # of single tensors that verify() notes
TRAIL_WIDTH = 400  # characters of a trail, as text
TEXT_WIDTH = 300  # characters of a text of a file that are shown
MAX_LINE = 2000  # characters of a line of a message, and of a repr
MESSAGE_WIDTH = 32000  # characters of a message, which has at most 100 lines of one kind


def __dir__() -> "List[str]":
    """Return what is public."""
    return __all__ + [name for name in globals() if name[:4] == "MAX_"]


# -- [2] errors, text --------------------------------------------------------------------


class FormatError(ValueError):
    """The bytes break a rule of the format: at `offset` of the file `path`, in `field`.

    >>> print(verify(b"MAG!").errors[0])
    version needs 4 bytes, 0 left (cut short?) (at 0x4, version)
    """

    trail: Any = None  # keys that lead to `field`

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

    def __str__(self, code: str = "ascii") -> str:
        text = truncate(self.what, 800)
        if self.tensor is not None:
            text = f"tensor {safe_repr(self.tensor)}: {text}"
        if self.path is not None:
            text = f"{safe_str(self.path)}: {text}"
        place = []
        if self.offset is not None:
            place.append(f"at 0x{self.offset:x}")
        if self.field is not None:
            place.append(self.field)
        if place:
            text += f" ({', '.join(place)})"
        return truncate(text.encode(code, "backslashreplace").decode(code), MAX_LINE)


class Unsupported(FormatError):
    """The bytes may be right; tensorfmt does not read what the message names.

    >>> issubclass(Unsupported, FormatError)
    True
    """


def plural(number: int, noun: str) -> str:
    """Return "1 tensor" or "3 tensors"."""
    if number != 1:
        noun += "s"
    return f"{number} {noun}"


def truncate(text: str, limit: int) -> str:
    """Return a text, or both ends of one that is longer than the limit."""
    if len(text) <= limit:
        return text
    return text[:limit - limit // 4 - 3] + "..." + text[len(text) - limit // 4:]


def safe_repr(value: Any) -> str:
    """Return a text of a file quoted, cut, with what is not printable escaped."""
    if isinstance(value, str):
        value = truncate(value, TEXT_WIDTH)
    return truncate(repr(value), TEXT_WIDTH)


def safe_str(text: str, limit: int = TEXT_WIDTH) -> str:
    """Return a text, quoted if it is empty, not printable or has blanks at its ends."""
    text = truncate(text, limit)
    if text and text == text.strip() and set(text).issubset(repr(text)):
        return text
    return safe_repr(text)


def short_repr(value: Any, limit: int = 60, depth: int = 0) -> str:
    """Return a value for a message: escaped; lists cut short, four levels deep."""
    if type(value) is int:  # str() of a long one is slow, or an error
        return "an integer of more than 128 bits" if abs(value) >> 128 else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return safe_repr(bytes(value)) if len(value) <= 16 else f"{len(value)} bytes"
    if depth > 3 and type(value) in (list, tuple, dict, Map):
        return "..."
    if type(value) in (list, tuple):  # other classes have words of their own
        most = 8 if len(value) > 20 else 20
        items = [short_repr(item, limit, depth + 1) for item in value[:most]]
        if most < len(value):
            items.append(f"... {len(value)} items")
        return f"[{', '.join(items)}]"
    if isinstance(value, dict):
        text = repr_of_map(value, limit, depth)
    elif isinstance(value, str):
        text = safe_repr(value[:limit])
    else:
        text = safe_repr(value)
    if len(text) <= limit or depth:
        return text
    return text[:limit - 3] + "..."


def repr_of_map(value: "Dict[Any, Any]", limit: int, depth: int) -> str:
    """Return the first keys and values of a map, as short_repr()."""
    items = []
    for key, item in value.items():
        if len(items) == 8:
            items.append("...")
            break
        name = short_repr(key, limit, depth + 1)
        items.append(f"{name}: {short_repr(item, limit, depth + 1)}")
    return "{%s}" % ", ".join(items)


def option(argument: str) -> str:
    """Return an argument, or a limit, and the option of the command line for it."""
    name, _, value = argument.lower().replace("_", "-").partition("=")
    if not value.strip().isdigit():
        value = ""
    return f"{argument} (--{name.strip()}{value})"


def join_lines(lines: "List[str]") -> str:
    """Return lines as one message, cut to MAX_LINE and MESSAGE_WIDTH."""
    shown = [truncate(line, MAX_LINE - 100) for line in lines[:101]]  # with a heading
    while sum([len(line) + 3 for line in shown]) > MESSAGE_WIDTH:
        shown.pop()
    if len(shown) < len(lines):
        shown.append(f"{len(lines) - len(shown)} more")
    return "\n  ".join(shown)


def join_names(names: "List[str]", most: int = 100) -> str:
    """Return names in one line, and how many others there are."""
    text = truncate(", ".join(map(safe_str, names[:most])), MAX_LINE // 2)
    if len(names) > most:
        text += f", {len(names) - most} more"
    return text


def format_trail(trail: Trail) -> str:
    """Return a trail as text: `a.key`, `a[3]`, `a['any text']`; if long, its ends."""
    text = ""
    for key in trail:
        text = extend_trail(text, key)
    return text


def extend_trail(text: str, key: Any) -> str:
    """Return the text of a trail with one more key."""
    is_short = isinstance(key, str) and len(key) <= TRAIL_WIDTH
    if not is_short or not key.replace("_", "").isalpha():
        text += f"[{short_repr(key, TRAIL_WIDTH)}]"
    elif text:
        text += f".{key}"
    else:
        text = key
    return truncate(text, TRAIL_WIDTH)


def encode_text(text: str, errors: str = "strict") -> bytes:
    """Return text as UTF-8; plain ValueError for a lone surrogate."""
    try:
        return text.encode("utf-8", errors)
    except UnicodeError:
        raise ValueError(f"{short_repr(text)} is not Unicode text (a lone surrogate)")


def is_text(text: Any) -> bool:
    """Return whether this is a str that UTF-8 can hold."""
    return isinstance(text, str) and text.encode("utf-8", "replace").decode() == text


def decode_text(data: "Union[bytes, memoryview]") -> "Optional[str]":
    """Return bytes as text, or None where they are not UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeError:
        return None


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def iter_parts(blocks: Any, nbytes: int) -> Blocks:
    """Yield what blocks hold, at most so many bytes at a time."""
    return (block[i:i + nbytes] for block in blocks for i in range(0, len(block), nbytes))


def without_gc(function: Any) -> Any:
    """Decorate a function that makes no cycles: to look for them takes a third more."""
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


def compact(function: Any) -> Any:
    """Decorate a function whose results stay: a board collects often meanwhile.

    They lie side by side then, not all over its memory.
    """
    if not BOARD:
        return function
    gc: Any = __import__("gc")
    if not hasattr(gc, "threshold"):  # CircuitPython lacks it
        return function

    def collecting(*args: Any, **options: Any) -> Any:
        before = gc.threshold()
        gc.threshold(1 << 14)  # bytes
        try:
            return function(*args, **options)
        finally:
            gc.threshold(before)
    return collecting


def left_out(part: str) -> Any:
    """Return a class that stands for a name a copy lacks; a call raises."""
    class LeftOut:
        def __init__(self, *args: Any, **options: Any) -> None:
            raise Unsupported(f"this copy was made without {part}")
    return LeftOut


# -- [3] dtypes --------------------------------------------------------------------------

# name:bytes:code of struct; bfloat16 and 8-bit floats have none.
NUMBERS = [row.split(":") for row in (
    "float64:8:d float32:4:f float16:2:e bfloat16:2: "
    "int64:8:q int32:4:i int16:2:h int8:1:b uint64:8:Q uint32:4:I uint16:2:H uint8:1:B "
    "bool:1:? float8_e4m3fn:1: float8_e5m2:1: float8_e4m3fnuz:1: float8_e5m2fnuz:1: "
    "float8_e8m0fnu:1:").split()]
ITEMSIZE: "Dict[Any, int]" = Map([(dtype, int(nbytes)) for dtype, nbytes, _ in NUMBERS])
STRUCT_CODE: "Dict[Any, str]" = {dtype: code for dtype, _, code in NUMBERS if code}
# Bytes of a code.
WIDTH = {code: int(nbytes) for _, nbytes, code in NUMBERS if code}
# Elements that are moved as bits keep the payload of a NaN.
BITS_CODE = {1: "B", 2: "H", 4: "I", 8: "Q"}
INFINITY = float("inf")
# From here on a number is rounded to infinity.
FLOAT16_LIMIT = 65520.0
FLOAT32_LIMIT = 2.0 ** 128 - 2.0 ** 103
FLOAT64_LIMIT = (1 << 1024) - (1 << 970)


def int_range(dtype: str, bits: int) -> "Tuple[int, int]":
    """Return the least and the largest integer of so many bits."""
    if dtype[0] == "u":
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


INT_RANGE = {dtype: int_range(dtype, 8 * int(nbytes))
             for dtype, nbytes, _ in NUMBERS if "int" in dtype}


def count_elements(shape: "Iterable[int]") -> int:
    """Return the product of the dimensions; beyond 2**64 only some larger number."""
    size = 1
    for n in shape:
        # The product of thousands of 2**64-1 would take minutes.
        if size <= 1 << 64 or n == 0:
            size *= n
    return size


def until_0(shape: "Iterable[int]") -> "List[int]":
    """Return the dimensions before the first 0, whose product some readers limit."""
    dims = []
    for n in shape:
        if n == 0:
            break
        dims.append(n)
    return dims


def as_index(key: Any) -> int:
    """Return an index (numpy integers have __index__) as an int."""
    is_int = isinstance(key, int) or hasattr(key, "__index__")
    if isinstance(key, bool) or not is_int:
        kind = type(key).__name__
        raise TypeError(f"an index is an int, a slice or Ellipsis, not {kind}")
    return int(key)


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as one dimension or several, as a tuple."""
    # A numpy integer has __index__; so has an array, which has a length, too.
    is_number = hasattr(shape, "__index__") and not hasattr(shape, "__len__")
    if is_number or isinstance(shape, int):
        return (as_index(shape),)
    return tuple([as_index(n) for n in shape])


def row_major(shape: Shape, itemsize: int) -> Shape:
    """Return strides in bytes, without gaps; the last index runs fastest."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        # Beyond 64 bits some dimension is 0, and no stride is used.
        if itemsize < 1 << 64:
            itemsize *= n or 1
    return tuple(reversed(strides))


def swap(data: Any, itemsize: int) -> "Union[memoryview, bytearray]":
    """Return a copy of the bytes, those of each element reversed."""
    try:
        # 10 GB/s, but its import drags in nine modules.
        from array import array
        items = array(BITS_CODE[itemsize])
        items.frombytes(data)
        items.byteswap()
        return memoryview(items).cast("B")
    except (ImportError, AttributeError):
        # MicroPython's array cannot swap.
        return bytearray(data[i ^ itemsize - 1] for i in range(len(data)))


def unpack_values(dtype: "Optional[str]", data: Any, byteorder: str = "<") -> Any:
    """Return the elements in `data`, of this byte order, as Python numbers."""
    if dtype == "bool":
        return [byte != 0 for byte in data]
    if dtype == "bfloat16":
        wide = widen_bfloat16(data, byteorder)
        return unpack_values("float32", wide, byteorder)
    if dtype not in STRUCT_CODE:
        return float8_of(dtype).unpack(data)
    if byteorder == NATIVE:
        # 1.6 times as fast as with the order named.
        byteorder = "@"
    count = len(data) // ITEMSIZE[dtype]
    return unpack_from(f"{byteorder}{count}{STRUCT_CODE[dtype]}", data, 0)


def widen_bfloat16(data: Any, byteorder: str) -> bytearray:
    """Return bfloat16 bytes as float32 bytes: two zero bytes at each low end."""
    data = bytes(data)
    out = bytearray(2 * len(data))
    # Where the two stored bytes go.
    low = 2 if byteorder == "<" else 0
    if not BOARD:
        out[low::4] = data[0::2]
        out[low + 1::4] = data[1::2]
        return out
    # MicroPython has no slices with steps.
    for i in range(0, len(data), 2):
        out[2 * i + low:2 * i + low + 2] = data[i:i + 2]
    return out


def pack_values(dtype: str, values: Any) -> bytes:
    """Return numbers as little-endian bytes.

    Floats are rounded to nearest even, or to infinity.
    """
    if dtype == "bool":
        return bytes(map(bool, values))
    if dtype in INT_RANGE:
        values = [whole_number(value, dtype) for value in values]
    elif dtype != "float64" and int in map(type, values):
        if [value for value in values if type(value) is int and abs(value) >> 53]:
            values = [round_to_odd(value) for value in values]
        values = [float(value) for value in values]
    if dtype == "bfloat16":
        return narrow_bfloat16(values)
    if dtype not in STRUCT_CODE:
        return float8_of(dtype).narrow(pack_values("float32", values))
    code = STRUCT_CODE[dtype]
    try:
        return pack(f"<{len(values)}{code}", *values)
    except OverflowError:
        limits = {"e": FLOAT16_LIMIT, "f": FLOAT32_LIMIT, "d": FLOAT64_LIMIT}
        limit = limits[code]
        return b"".join([pack("<" + code, to_inf(value, limit)) for value in values])


def whole_number(value: Any, dtype: str) -> int:
    """Return a number as an int; ValueError if the dtype cannot hold it."""
    low, high = INT_RANGE[dtype]
    # Infinities and NaN are no int.
    if abs(value) < INFINITY:
        number = int(value)
        if number == value and low <= number <= high:
            return number
    raise ValueError(f"{short_repr(value)} does not fit {dtype}")


def to_inf(value: Any, limit: float) -> float:
    """Return the number as a float, or an infinity from the limit on."""
    if value >= limit:
        return INFINITY
    if value <= -limit:
        return -INFINITY
    return float(value)


def round_to_odd(value: Any) -> Any:
    """Return an int of more than 53 bits as float64, rounded to odd.

    So one more rounding gives the nearest number. Other values are left as they are.
    """
    if type(value) is not int or not abs(value) >> 53:
        return value
    shift = value.bit_length() - 53
    rest = value & (1 << shift) - 1
    value -= rest
    if rest:
        value |= 1 << shift
    return to_inf(value, FLOAT64_LIMIT)


def narrow_bfloat16(values: "List[float]") -> bytes:
    """Return numbers as little-endian bfloat16 bytes, rounded once, to nearest even."""
    words = []
    for value in values:
        number = to_inf(value, FLOAT32_LIMIT)
        bits, = unpack_from("<I", pack("<f", number))
        rounded, = unpack_from("<f", pack("<I", bits))
        if number != number:
            # One NaN of each sign.
            bits = bits & 1 << 31 | 0x7FC << 20
        elif rounded != number:
            # float32 is a step on the way: it is rounded to odd.
            if abs(rounded) > abs(number):
                bits -= 1
            bits |= 1
        words.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return pack(f"<{len(words)}H", *words)


# Codes of buffers by the kind of number. How many bytes a code has depends on the system.
BUFFER_KINDS = {"float": "fde", "int": "bhilqn", "uint": "BHILQN", "bool": "?"}
# (code, bytes) -> dtype
BUFFER_DTYPES = {(code, ITEMSIZE[dtype]): dtype for dtype in STRUCT_CODE
                 for code in BUFFER_KINDS[dtype.rstrip("0123456789")]}


def typed_view(data: Any) -> Any:
    """Return (a memoryview of a buffer, its dtype), None for what there is not."""
    try:
        view = memoryview(data)
        code = view.format.lstrip("<>=@")
        return view, BUFFER_DTYPES.get((code, view.itemsize))
    except (TypeError, ValueError, BufferError):
        return None, None


# How safetensors calls two dtypes without their ending.
SHORT_FLOAT8 = {"f8_e4m3": "f8_e4m3fn", "f8_e8m0": "f8_e8m0fnu"}
SHORT_KINDS = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}


def as_dtype(dtype: Any) -> str:
    """Return our name of a dtype, also of numpy.float32, torch.float32, "bf16", "F32"."""
    name = full_dtype(dtype)
    if name not in ITEMSIZE:
        raise ValueError(f"no dtype {short_repr(dtype)}; there are {', '.join(ITEMSIZE)}")
    return name


def full_dtype(dtype: Any) -> str:
    """Return what as_dtype() looks for: a dtype without what others add to its name."""
    if isinstance(dtype, str) and dtype in ITEMSIZE:
        return dtype
    if dtype is float or dtype is int:
        return f"{dtype.__name__}64"
    name = getattr(dtype, "__name__", getattr(dtype, "name", dtype))
    name = str(name).split(".")[-1].lower().rstrip("_")
    kind = name.rstrip("0123456789")
    # "i8" has 64 bits in numpy, 8 in Rust.
    if name != kind + "8":
        name = SHORT_KINDS.get(kind, kind) + name[len(kind):]
    name = SHORT_FLOAT8.get(name, name)
    if name[:3] == "f8_":
        name = "float" + name[1:]
    return name


# -- [4] sources -------------------------------------------------------------------------
#
# view(offset, nbytes) is for tensors, and copies nothing if .mapping; read() is for the
# index. Both give less at the end. .file_id: (absolute path, mapped, state), of which the
# state (time of change, inode) changes with the bytes.

CLOSED = "the File is closed"
CHANGED = "has changed since it was opened"
REGULAR = 8  # a file, in the upper bits of st_mode


class Buffer:
    """Bytes in memory, or a mapped file. Views cost nothing, and outlive close()."""

    mapping = True
    kept: Any = (None, "", None)  # by keep(): (mark of a tensor, what it is, the value)

    def __init__(self, data: Any, has_offsets: bool = False, path: "Optional[str]" = None,
                 file_id: Any = None) -> None:
        view: Any = memoryview(data)
        if hasattr(view, "cast"):  # not on boards
            try:
                view = view.cast("B")
            except (TypeError, ValueError):  # gaps, no elements, or like ">H"
                view = memoryview(view.tobytes())
        if hasattr(view, "toreadonly"):  # Python 3.8
            view = view.toreadonly()
        self._view: Any = view
        self.nbytes = len(view)
        self.has_offsets = has_offsets
        self.path = path
        self.file_id = file_id

    def view(self, offset: int, nbytes: int) -> Any:
        view = self._view  # once: close() may come
        if view is None:
            raise ValueError(CLOSED)
        return view[offset:offset + nbytes]

    def close(self) -> None:
        self._view = None  # no release(), no mmap.close(): views are in use
        self.kept = Buffer.kept

    def read(self, offset: int, nbytes: int) -> bytes:
        return bytes(self.view(offset, nbytes))

    def __reduce__(self) -> Any:
        if self.file_id is not None:
            return open_pickled, self.file_id + (self.nbytes,)
        return Buffer, (self.read(0, self.nbytes), self.has_offsets)

    def __deepcopy__(self, memo: Any) -> "Buffer":
        return self


class Turn:
    """A stream, and whose turn it is to move it. A read puts the position back."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.lock = RLock()

    def wait(self) -> Any:
        """Return the lock of who moves the stream."""
        return self.lock

    def measure(self) -> "Tuple[int, int]":
        """Return the position, and how many bytes there are."""
        here = self.stream.tell()
        nbytes = self.stream.seek(0, 2) or self.stream.tell()
        self.stream.seek(here)
        return here, nbytes

    def read(self, source: "Stream", offset: int, nbytes: int) -> bytes:
        """Return bytes for a source."""
        here = self.stream.tell()
        try:
            self.stream.seek(offset)
            return source.read_whole(self.stream.read, offset, nbytes)
        finally:
            self.stream.seek(here)


class Stream(Buffer):
    """A seekable binary stream, which one thread at a time moves."""

    mapping = False
    has_offsets = True
    _turn: "Optional[Turn]" = None

    def __init__(self, stream: Any, path: "Optional[str]" = None, file_id: Any = None) -> None:
        self.path = path
        self.file_id = file_id  # only of a file that was opened here
        self._window = 0, b""  # where it begins, and its bytes
        turn = turn_of(stream)
        self._turn = turn
        with turn.wait():
            here, self.nbytes = turn.measure()
        if here not in (0, self.nbytes):
            raise ValueError(f"the stream is at byte {here}: seek(0), or load(stream.read())")

    def view(self, offset: int, nbytes: int) -> Any:
        if BOARD and offset > sys.maxsize:
            raise Unsupported("an offset in the file is too large for this device", offset)
        turn = self._turn
        if turn is None:
            raise ValueError(CLOSED)
        with turn.wait():
            if self._turn is None:  # closed while this thread waited
                raise ValueError(CLOSED)
            return turn.read(self, offset, nbytes)

    def read_at(self, file: Any, offset: int, nbytes: int) -> bytes:
        """Return bytes of a file, the position of which is not moved."""
        end = min(offset + nbytes, self.nbytes)

        def read(left: int) -> bytes:
            # macOS refuses 2 GiB at once.
            return os.pread(file.fileno(), min(left, 1 << 30), end - left)
        return self.read_whole(read, offset, nbytes)

    def read_whole(self, read: Any, offset: int, nbytes: int) -> bytes:
        """Return bytes, fewer at the end; read(n) may give fewer than it is asked for."""
        nbytes = left = max(0, min(nbytes, self.nbytes - offset))
        end = offset + nbytes
        parts = []
        while left:
            part = read(left) or b""
            if type(part) is bytes and len(part) == nbytes:
                return part  # as nearly all do: 0.84 of the time that a list takes
            part = bytes(part)
            if not 0 < len(part) <= left:
                what = f"{len(part)} bytes read, {left} asked for (has the stream shrunk?)"
                raise FormatError(what, end - left, path=self.path)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return bytes; for a few, WINDOW of them are read at once."""
        start, window = self._window
        if not start <= offset <= offset + nbytes <= start + len(window):
            if nbytes > WINDOW // 2:
                return bytes(self.view(offset, nbytes))
            start = offset
            window = bytes(self.view(offset, WINDOW))
            self._window = start, window
        at = offset - start
        return window[at:at + nbytes]

    def close(self) -> None:
        turn = self._turn
        if turn is None:
            return
        self._turn = None
        self._window = 0, b""
        self.kept = Buffer.kept
        try:
            with turn.wait():  # no thread moves it after this
                pass
        except ValueError:  # of another process
            pass
        if self.file_id is not None:
            turn.stream.close()

    def __del__(self) -> None:
        if self.file_id is not None:  # nobody else closes it
            self.close()


class OpenedFile(Stream):
    """A file that was opened here. os.pread moves no position, which a fork would share."""

    _file: Any = None

    def __init__(self, file: Any, path: str, file_id: Any) -> None:
        self.path = path
        self.file_id = file_id
        self._window = 0, b""
        self._file = file
        self.nbytes = file.seek(0, 2)

    def view(self, offset: int, nbytes: int) -> Any:
        file = self._file
        data = b""
        try:
            if file is not None:
                data = self.read_at(file, offset, nbytes)
        except (OSError, ValueError):
            if self._file is not None:
                raise
        # Its number may be that of another file now.
        if self._file is None:
            raise ValueError(CLOSED)
        return data

    def close(self) -> None:
        file = self._file
        self._file = None
        self._window = 0, b""
        if file is not None:
            file.close()


def open_source(source: Any, mmap: bool = True) -> Buffer:
    """Return the source for a path, bytes or a stream."""
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        if hasattr(os, "fsdecode"):
            source = os.fsdecode(source)
        return open_path(source, mmap)
    try:
        return Buffer(source, has_offsets=True)
    except TypeError:
        pass
    return open_stream(source)


def no_source(source: Any) -> TypeError:
    """Return the error for what is no source."""
    return TypeError("a source is a path, bytes or a seekable stream of bytes (open(path, "
                     f'"rb")), not {type(source).__name__}')


def stat_source(path: str) -> "os.stat_result":
    """Return what os.stat() says; an error tells of a link that leads nowhere."""
    try:
        return os.stat(path)
    except OSError as error:
        link = dangling_link(path)
        if not link:
            raise
        raise OSError(error.errno, link, path)


def dangling_link(path: str) -> str:
    """Return what is wrong with a symbolic link without target; "" of other paths."""
    if not os.path.islink(path) or os.path.exists(path):
        return ""
    from errno import ELOOP
    target = os.readlink(path)
    what = "which is not there"
    if os.path.islink(os.path.join(os.path.dirname(path), target)):
        what = "a link that leads to no file"
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == ELOOP:
            what = "a loop of links, which leads to no file"
    return f"a symbolic link to {safe_str(target)}, {what}"


def open_path(path: str, mmap: bool) -> Buffer:
    """Return the source for the file of a path: mapped, or a stream."""
    about = stat_source(path)
    file_type = about[0] >> 12
    if file_type == 4:
        return open_path(find_in_folder(path), mmap)
    if file_type == 1:  # to open one may wait for ever
        raise ValueError(f"{safe_str(path)} is a pipe: load(stream.read())")
    where = path if BOARD else os.path.abspath(path)  # chdir() may come
    file = open(path, "rb", 0)
    if hasattr(os, "fstat"):  # another file may have taken the place
        about = os.fstat(file.fileno())
    state = getattr(about, "st_mtime_ns", 0), getattr(about, "st_ino", 0)
    file_id = where, mmap, state
    mapped = map_file(file) if mmap else None
    if mapped is not None:
        file.close()
        return Buffer(mapped, True, path, file_id)
    if hasattr(os, "pread"):
        return OpenedFile(file, path, file_id)
    return Stream(file, path, file_id)


def is_json(file: Any) -> bool:
    """Return whether a file begins as an object of JSON: an index of shards."""
    file.seek(0)  # of a terminal an error: to read one may wait for ever
    head = file.read(64)
    file.seek(0)
    # The size of a header can begin with a brace, but it has zeros, too.
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and 0 not in head


def map_file(file: Any) -> Any:
    """Return the mapped file, or None where it cannot be mapped (it is empty, say).

    An index of shards is not: it is often written again in place. Copy on write, since
    torch writes into any array; where the system does not promise so much memory, without
    its promise or for reading only.
    """
    private = 0x4002 if sys.platform == "linux" else 2  # MAP_PRIVATE (| MAP_NORESERVE)
    ways: Any = [{"access": 3}, {"flags": private}, {"access": 1}]
    if BOARD or is_json(file):
        return None
    if sys.version_info[:2] >= (3, 13):
        ways.insert(0, {"access": 3, "trackfd": False})
    for way in ways:
        try:
            from mmap import mmap
            return mmap(file.fileno(), 0, **way)
        except (ImportError, OSError, TypeError, ValueError):
            pass
    return None


# -- [5a] CBOR ---------------------------------------------------------------------------


class Codec:
    """What the readers of CBOR and MessagePack share.

    Places count from the first byte of the data. It lies at `base` in the file: offsets
    of errors count from there. An item at `depth` lies in so many arrays, maps and tags.
    """

    NAME: str
    WORD: str  # as `formats` takes it
    # (at, depth) -> (value, end) of an item; parse() calls it.
    parse_item: Any
    base = 0
    end = 0
    data = b""
    lazy = False
    strict = False
    read_end: "Optional[int]" = None  # of what a Reading parsed

    def __init__(self, errors: str, key_error: "Type[FormatError]") -> None:
        self.errors = errors
        self.key_error = key_error
        # Short texts are decoded once.
        self.texts: "Dict[bytes, str]" = {}
        self.items_left: float = MAX_ITEMS
        self.other_keys_left: float = MAX_OTHER_KEYS

    def error(self, what: str, at: int, error_class: "Type[FormatError]" = FormatError,
              check: str = "index") -> FormatError:
        if check == "bounds":
            what += " (cut short?)"
        return error_class(f"{self.NAME}: {what}", self.base + at, check=check)

    def not_strict(self, at: int) -> FormatError:
        rules = "no tags; 32 levels; shortest heads; sorted keys"
        return self.error(f"not deterministic ({rules})", at)

    def parse(self, at: int = 0, depth: int = 0) -> "Tuple[Any, int]":
        """Return (value, end) of the item at a place."""
        try:
            return self.parse_item(at, depth)
        except IndexError:
            # read_array() and read_map() look for one more item where the data end.
            raise self.error("the data end inside an item", self.end)
        except RuntimeError:
            # A RecursionError; boards have no other name for it.
            raise self.error("nested deeper than this Python can read", at)

    def enter(self, start: int, depth: int, at: int = 0, nbytes: int = 0) -> None:
        """Raise unless one more array, map or tag may begin.

        Its items begin at `at` and need so many bytes.
        """
        self.items_left -= 1
        if depth >= MAX_DEPTH:
            raise self.error(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}", start)
        # Its items are one level deeper, which is told at the first of them.
        if nbytes and depth >= 32 and self.strict:
            raise self.not_strict(at)
        left = self.end - at
        if nbytes > left:
            raise self.error(f"array or map needs {nbytes} bytes, {left} left", start)
        if self.items_left < 0:
            what = f"arrays and maps exceed MAX_ITEMS = {MAX_ITEMS}"
            raise self.error(what, start, Unsupported)

    def check_key(self, pairs: Any, key: Any, start: int) -> None:
        """Raise for a key that is an array or a map, or is there already.

        Also if too many keys are not text.
        """
        if self.lazy and type(key) is not str:
            raise self.error("a map key is no text", start, self.key_error)
        if type(key) in (list, Map):
            raise self.error("a map key is an array or a map", start, self.key_error)
        is_there = key in pairs
        if key != key:
            # No NaN is equal to another one, but as keys they are the same.
            is_there = bool([old for old in pairs if old != old])
        if is_there:
            raise self.error(f"key {short_repr(key)} twice", start)
        self.other_keys_left -= 1
        if self.other_keys_left < 0:
            what = f"more map keys are no text than MAX_OTHER_KEYS = {MAX_OTHER_KEYS}"
            raise self.error(what, start, Unsupported)

    def text(self, data: bytes, start: int) -> str:
        """Return bytes as text; short ones are kept."""
        try:
            text = data.decode("utf-8", self.errors)
        except UnicodeError:
            raise self.error("text is not UTF-8", start)
        if len(data) < 64 and len(self.texts) < 4096:
            self.texts[data] = text
        return text


class Simple(tuple):  # type: ignore[type-arg]
    """A CBOR simple value without a meaning here: simple(99)."""

    def __repr__(self) -> str:
        return f"simple({self[0]})"


def is_simple(value: Any) -> bool:
    """Return whether this is a Simple, also one of another copy of this module."""
    return type(value).__name__ == "Simple" and isinstance(value, tuple)


# What simple values mean; 23 is "undefined".
CBOR_SIMPLE = {20: False, 21: True, 22: None, 23: None}
# For the lower 5 bits of a head, the least argument that needs such a head.
CBOR_LEAST = {24: 24, 25: 1 << 8, 26: 1 << 16, 27: 1 << 32}


# The upper 3 bits of a head byte are the major type:
#
# 0  the number n    3  n bytes of text    6  tag n of the item that follows
# 1  -1 - n          4  an array of n      7  the simple value n, or
# 2  n bytes         5  a map of n            (25 to 27) a float
#
# The lower 5 bits are n if below 24. 24 to 27: n follows in 1, 2, 4 or 8 bytes,
# big-endian; 31: the length is indefinite, a break (ff) ends it.
class Cbor(Codec):
    """Reads CBOR (RFC 8949): parse() gives the value of an item.

    A head is one byte: 3 bits say what the item is, 5 bits are a number n. If these are 24
    to 27, n follows in 1, 2, 4 or 8 bytes, big-endian.

    00-1b  the number n          80-9b  an array of n items
    20-3b  the number -1 - n     a0-bb  a map of n keys, each before its value
    40-5b  n bytes               c0-db  a tag, before the item that it tells of
    60-7b  n bytes of UTF-8      f4-f6  false, true, null; f9-fb  a float of 2, 4, 8 bytes

    5f, 7f, 9f and bf are 40, 60, 80 and a0 without n: parts follow, then ff.

    Tags are dropped, but with `bignums` 2 and 3 make an int of bytes; without it simple
    values without a meaning are errors (as in serde_cbor). `strict`: deterministic
    (RFC 8949, 4.2.1), no tags, at most 32 levels.
    """

    NAME = "CBOR"
    WORD = "cbor"

    def __init__(self, data: bytes, base: int = 0, bignums: bool = True,
                 strict: bool = False) -> None:
        self.strict = strict
        self.bignums = bignums and not strict
        super().__init__("strict", FormatError if self.bignums else Unsupported)
        self.data = data
        self.base = base
        self.end = len(data)

    def head(self, at: int) -> "Tuple[int, int, int]":
        """Return (major type, n or -1 for an indefinite length, where the head ends)."""
        if at >= self.end:
            raise self.error("the data end inside an item", at)
        major = self.data[at] >> 5
        code = self.data[at] & 31
        stop = at + 1
        if code < 24:
            n = code
        elif code == 31 and major not in (0, 1, 6):
            n = -1
        elif code > 27:
            raise self.error(f"reserved head {self.data[at]:02x}", at)
        else:
            stop += 1 << code - 24
            if stop > self.end:
                raise self.error("the data end inside a head", at)
            n = int.from_bytes(self.data[at + 1:stop], "big")
        if self.strict and major < 7:
            if major == 6 or n < CBOR_LEAST.get(code, 0):
                raise self.not_strict(at)
        return major, n, stop

    def parse_item(self, at: int, depth: int) -> "Tuple[Any, int]":
        major, n, stop = self.head(at)
        if major == 0:
            return n, stop
        if major == 1:
            return -1 - n, stop
        if major == 2:
            return self.string(at, major, n, stop)
        if major == 3:
            data, end = self.string(at, major, n, stop)
            return self.texts.get(data) or self.text(data, at), end
        if major == 4:
            return read_array(self, at, n, stop, depth)
        if major == 5:
            return read_map(self, at, n, stop, depth)
        if major == 6:
            return self.tagged(at, n, stop, depth)
        return self.simple(at, n, stop)

    def tagged(self, start: int, tag: int, at: int, depth: int) -> "Tuple[Any, int]":
        """Return (value, end) of the item after a tag; a bignum is an integer."""
        self.enter(start, depth)
        major, n, stop = self.head(at)
        # The stack of a board holds no call for each of many tags.
        while major == 6:
            depth += 1
            self.enter(at, depth)
            tag = n
            at = stop
            major, n, stop = self.head(at)
        value, end = self.parse_item(at, depth + 1)
        # The tag of a bignum stands right before its bytes.
        if self.bignums and tag in (2, 3) and self.data[at] >> 5 == 2:
            value = int.from_bytes(value, "big")
            if tag == 3:
                value = -1 - value
        return value, end

    def string(self, start: int, major: int, nbytes: int, at: int) -> "Tuple[bytes, int]":
        """Return (bytes, end) of a string of bytes or text."""
        if nbytes < 0:
            return self.chunks(major, at)
        stop = at + nbytes
        if stop > self.end:
            raise self.error(f"a string of {nbytes} bytes, {self.end - at} left", start)
        return self.data[at:stop], stop

    def chunks(self, major: int, at: int) -> "Tuple[bytes, int]":
        """Return (bytes, end) of a string in chunks, which are strings of its type."""
        chunks = []
        while self.data[at:at + 1] != b"\xff":
            start = at
            chunk_major, nbytes, at = self.head(at)
            if chunk_major != major or nbytes < 0:
                raise self.error("a chunk of another type in a chunked string", start)
            data, at = self.string(start, major, nbytes, at)
            if major == 3:
                # Each chunk is UTF-8 by itself.
                self.text(data, start)
            chunks.append(data)
        return b"".join(chunks), at + 1

    def simple(self, start: int, n: int, at: int) -> "Tuple[Any, int]":
        """Return (value, end) of a float or a simple value."""
        code = self.data[start] & 31
        if code == 31:
            raise self.error("a break outside an indefinite-length item", start)
        if code > 24:
            return self.read_float(code, start, at), at
        if code == 24 and n < 32:
            raise self.error(f"simple value {n} in two bytes", start)
        if n not in CBOR_SIMPLE:
            if not self.bignums:
                raise self.error(f"simple value {n}", start)
            return Simple((n,)), at
        if self.strict and n == 23:
            raise self.not_strict(start)
        return CBOR_SIMPLE[n], at

    def read_float(self, code: int, start: int, end: int) -> float:
        """Return a float of half (25), single (26) or double (27) precision."""
        precision = "efd"[code - 25]
        number, = unpack_from(">" + precision, self.data, start + 1)
        if self.strict and self.data[start:end] != cbor_float(number):
            raise self.not_strict(start)
        return number


# read_array() and read_map() read the commonest heads themselves, 1.34 to 1.46 times as
# fast as by parse_item(): 00 to 17 are small numbers, 18 to 1b numbers of 1 to 8 bytes,
# 60 to 77 short texts, 80 to 97 short arrays, a0 to b7 short maps. What begins in the last 24
# bytes may be cut: parse_item() reads it. A count of -1, of an indefinite length, goes
# down until a break comes.
def read_array(codec: Cbor, start: int, count: int, at: int,
               depth: int) -> "Tuple[List[Any], int]":
    """Return (items, end) of an array; most items are small numbers."""
    codec.enter(start, depth, at, count)
    data = codec.data
    strict = codec.strict
    near_end = codec.end - 24
    items = []
    while count:
        start = at
        head = data[at]
        if head < 24:
            value: Any = head
            at += 1
        elif head < 28 and at < near_end:
            at += 1 + (1 << head - 24)
            value = int.from_bytes(data[start + 1:at], "big")
            if strict and value < CBOR_LEAST[head]:
                raise codec.not_strict(start)
        elif head == 0xFF and count < 0:
            return items, at + 1
        else:
            value, at = codec.parse_item(at, depth + 1)
        items.append(value)
        count -= 1
    return items, at


def read_map(codec: Cbor, start: int, count: int, at: int,
             depth: int) -> "Tuple[Facts, int]":
    """Return (pairs, end) of a map; most keys and many values are short texts."""
    codec.enter(start, depth, at, 2 * count)
    data = codec.data
    texts = codec.texts
    strict = codec.strict
    near_end = codec.end - 24
    last_key = b""
    pairs = Map()
    while count:
        # The key: a short text, or any other.
        start = at
        head = data[at]
        if 0x60 < head < 0x78 and at < near_end:
            at += head - 0x5F
            raw = data[start + 1:at]
            key: Any = texts.get(raw) or codec.text(raw, start)
        elif head == 0xFF and count < 0:
            return pairs, at + 1
        else:
            key, at = codec.parse_item(at, depth + 1)
        if type(key) is not str or key in pairs:
            codec.check_key(pairs, key, start)
        if strict:
            raw = data[start:at]
            if raw <= last_key:
                raise codec.not_strict(start)
            last_key = raw
        # The value: a small number, a short text, a short array or map, or any other.
        head = data[at]
        if head < 24:
            pairs[key] = head
            at += 1
        elif 0x60 < head < 0x78 and at < near_end:
            raw = data[at + 1:at + head - 0x5F]
            pairs[key] = texts.get(raw) or codec.text(raw, at)
            at += head - 0x5F
        elif 0x80 <= head < 0x98:
            pairs[key], at = read_array(codec, at, head - 0x80, at + 1, depth + 1)
        elif 0xA0 <= head < 0xB8:
            pairs[key], at = read_map(codec, at, head - 0xA0, at + 1, depth + 1)
        else:
            pairs[key], at = codec.parse_item(at, depth + 1)
        count -= 1
    return pairs, at


def cbor_loads(data: "ReadableBuffer") -> Any:
    """Return the value of one CBOR item; bytes after it are a FormatError.

    Tags are dropped (2 and 3 make big integers); undefined is None. A map key twice is an
    error.

    >>> cbor_loads(bytes.fromhex("a26161016162820203"))
    {'a': 1, 'b': [2, 3]}
    """
    data = bytes(memoryview(data))
    value, end = Cbor(data).parse()
    if end != len(data):
        raise FormatError(f"CBOR: {plural(len(data) - end, 'byte')} after the item", end)
    return value


def cbor_head(major: int, count: int) -> bytes:
    """Return the shortest head: 17 -> 17, 18 18, 19 0100 ..."""
    if count < 24:
        return pack(">B", major << 5 | count)
    for i, code in enumerate((">BB", ">BH", ">BI", ">BQ")):
        if not count >> (8 << i):
            return pack(code, major << 5 | 24 + i, count)
    raise ValueError(f"{short_repr(count)} does not fit 64 bits")


def cbor_float(value: float) -> bytes:
    """Return a float in the shortest of the three precisions that holds it."""
    if value != value:
        return b"\xf9\x7e\x00"
    for head, code in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            data: bytes = pack(code, value)
        except OverflowError:
            continue
        again, = unpack_from(code, data)
        if again == value:
            return head + data
    return b"\xfb" + pack(">d", value)


def cbor_int(value: int) -> bytes:
    """Return an integer as CBOR; beyond 64 bits as a bignum: tag 2 or 3, and bytes."""
    major = 0
    if value < 0:
        major = 1
        value = -1 - value
    if not value >> 64:
        return cbor_head(major, value)
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return cbor_head(6, 2 + major) + cbor_head(2, len(data)) + data


def cbor_scalar(value: Any) -> bytes:
    """Return a scalar as CBOR."""
    if value is None:
        return b"\xf6"
    if value is True:
        return b"\xf5"
    if value is False:
        return b"\xf4"
    if isinstance(value, int):
        return cbor_int(value)
    if isinstance(value, str):
        data = encode_text(value)
        return cbor_head(3, len(data)) + data
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return cbor_head(2, len(data)) + data
    if isinstance(value, float):
        return cbor_float(value)
    if is_simple(value):
        return cbor_head(7, value[0])
    what = f"CBOR cannot hold {type(value).__name__}"
    if isinstance(value, tuple):
        what += " as a map key"
    raise TypeError(what)


def cbor_dumps(value: Any, *, sort: Any = False) -> bytes:
    """Return a value as one CBOR item: shortest heads and floats, definite lengths.

    Maps keep the dict's order, or with `sort` go by encoded length, then bytes, of the
    keys (as in serde_cbor), with sort="bytes" by bytes (RFC 8949, 4.2.1). Integers over
    64 bits are bignums. ValueError or TypeError for what CBOR cannot hold.

    >>> cbor_dumps({"shape": [2, 300], "x": 1.5}).hex()
    'a2657368617065820219012c6178f93e00'
    """
    writer = CborWriter(sort)
    writer.put(value, 0)
    return b"".join(writer.out)


class CborWriter:
    """Collects what cbor_dumps() returns.

    Texts and integers come again: they are encoded once.
    """

    def __init__(self, sort: Any) -> None:
        self.sort = sort
        self.out: "List[bytes]" = []
        self.made: "Dict[Any, bytes]" = {}

    def scalar(self, value: Any) -> bytes:
        if type(value) is not str and type(value) is not int:
            return cbor_scalar(value)
        if value not in self.made:
            self.made[value] = cbor_scalar(value)
        return self.made[value]

    def put(self, value: Any, depth: int) -> None:
        """Add a value that is in so many arrays and maps."""
        if type(value) in (str, int, Simple):
            self.out.append(self.scalar(value))
            return
        is_map = hasattr(value, "items")
        is_array = type(value) in (list, tuple) or (
            isinstance(value, (list, tuple)) and not is_simple(value))
        if not is_map and not is_array:
            self.out.append(cbor_scalar(value))
            return
        if depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}")
        items: Any = value
        if is_map:
            self.put_map(items, depth + 1)
            return
        self.out.append(cbor_head(4, len(items)))
        for item in items:
            self.put(item, depth + 1)

    def put_map(self, value: "Mapping[Any, Any]", depth: int) -> None:
        """Add a map, whose values are in so many arrays and maps."""
        self.out.append(cbor_head(5, len(value)))
        pairs = [(self.scalar(key), item) for key, item in value.items()]
        if self.sort == "bytes":
            pairs.sort(key=first_of)
        elif self.sort:
            pairs.sort(key=length_first)
        for key, item in pairs:
            self.out.append(key)
            self.put(item, depth)


def first_of(pair: "Tuple[bytes, Any]") -> bytes:
    """Return the key that sorts pairs by the bytes of their keys."""
    return pair[0]


def length_first(pair: "Tuple[bytes, Any]") -> "Tuple[int, bytes]":
    """Return the key that sorts pairs by the length, then the bytes of their keys."""
    return len(pair[0]), pair[0]


# -- [5b] MessagePack --------------------------------------------------------------------

# For str that is not UTF-8: PEP 383, which boards lack.
TEXT_ERRORS = "strict" if BOARD else "surrogateescape"


def wide_heads(kind: str, codes: str) -> "List[Any]":
    """Return rows of WIDE_HEADS for a type whose value or length follows as a number."""
    return [(kind, None, ">" + code) for code in codes]


# Rows (type, value or length, code of a number that follows) of the bytes c0 to df, in
# the order of these bytes: see MessagePack.
WIDE_HEADS: "List[Any]" = [
    ("nil", None, None), ("unused", None, None),
    ("bool", False, None), ("bool", True, None)]
WIDE_HEADS += wide_heads("bin", "BHI") + wide_heads("ext", "BHI")  # c4 to c9
WIDE_HEADS += wide_heads("float", "fd") + wide_heads("int", "BHIQbhiq")  # ca to d3
WIDE_HEADS += [("ext", 1 << i, None) for i in range(5)]  # d4 to d8
WIDE_HEADS += wide_heads("str", "BHI")  # d9 to db
WIDE_HEADS += wide_heads("array", "HI") + wide_heads("map", "HI")  # dc to df
# Such rows by the first byte. head_row() adds one when it is met: boards have little
# memory.
HEADS: "List[Any]" = [None] * 256


def head_row(first: int) -> Any:
    """Return (type, value or length, code of a number that follows) for a first byte."""
    if first < 0x80:
        row = "int", first, None
    elif first < 0x90:
        row = "map", first - 0x80, None
    elif first < 0xA0:
        row = "array", first - 0x90, None
    elif first < 0xC0:
        row = "str", first - 0xA0, None
    elif first < 0xE0:
        row = WIDE_HEADS[first - 0xC0]
    else:
        row = "int", first - 256, None
    HEADS[first] = row
    return row


# Of each type with short heads: the head of 0, and the largest value or length.
SHORT_HEADS = {"int": (0, 127), "map": (0x80, 15), "array": (0x90, 15), "str": (0xA0, 31)}
# So many bytes follow for each of the length at least.
LEAST_BYTES = {"str": 1, "array": 1, "map": 2}
# The types of heads that a type of read_rows() takes, if it is not called as they are.
ROW_TYPES = {"uint32": ("int",), "float": ("float", "int"), "[str": ("array",),
             "[uint32": ("array",)}


class MessagePack(Codec):
    """Reads MessagePack of a source, from `at` on; `start` is where the last head begins.

    A head is one byte. It holds a small value or length, or a big-endian number follows:

    00-7f  the numbers 0 to 127       c0, c2, c3    nil, false, true
    80-8f  a map of 0 to 15 pairs     c4 to c6      bytes; their number in 1, 2, 4 bytes
    90-9f  an array of 0 to 15 items  c7-c9, d4-d8  ext: a type of one byte, then bytes
    a0-bf  text of 0 to 31 bytes      ca, cb        float32, float64
    e0-ff  the numbers -32 to -1      cc-cf, d0-d3  uint8 to uint64, int8 to int64
    d9-db  text: as c4                dc, dd, de, df  array, map; 2 or 4 bytes

    parse() gives any value, read_rows() a run of known types. The source is read through
    a window, which passes over the bytes of tensors.

    `lazy`: bytes stay in the file, as their range, but for those that begin at one of the
    `read_starts`; keys are text, and text is UTF-8.
    """

    NAME = "MessagePack"
    WORD = "msgpack"

    def __init__(self, source: "Buffer", lazy: bool = False) -> None:
        if lazy:
            super().__init__(errors="strict", key_error=FormatError)
        else:
            super().__init__(errors=TEXT_ERRORS, key_error=Unsupported)
        self.source = source
        self.end = source.nbytes
        self.lazy = lazy
        self.read_starts: Any = set()
        self.at = 0
        self.start = 0
        # The bytes from `window_at` on. look() doubles the size before it reads.
        self.window = b""
        self.window_at = 0
        self.window_size = WINDOW // 2

    def look(self, nbytes: int) -> int:
        """Return where `at` is in the window.

        It holds so many bytes from there, or all that are left.
        """
        place = self.at - self.window_at
        if 0 <= place <= len(self.window) - nbytes:
            return place
        if place <= len(self.window):
            # Small values in turn: the window grows. Behind data it is small.
            self.window_size = min(2 * self.window_size, 16 * WINDOW)
        else:
            self.window_size = WINDOW
        size = min(max(nbytes, self.window_size), self.end - self.at)
        self.window = self.source.read(self.at, max(0, size))
        self.window_at = self.at
        return 0

    def head(self) -> "Tuple[str, Any]":
        """Return (type, value or length) of the next head, and move after it."""
        # Of a head and its number.
        place = self.look(9)
        self.start = self.at
        if self.at >= self.end:
            raise self.error("the data end before a value", self.start, check="bounds")
        first = self.window[place]
        kind, value, code = HEADS[first] or head_row(first)
        self.at += 1
        if code is not None:
            nbytes = calcsize(code)
            self.check_left(kind, nbytes)
            value, = unpack_from(code, self.window, place + 1)
            self.at += nbytes
        elif kind == "unused":
            raise self.error("byte c1 is never used in MessagePack", self.start)
        if kind in LEAST_BYTES:
            self.check_left(kind, LEAST_BYTES[kind] * value)
        return kind, value

    def check_left(self, kind: str, nbytes: int) -> None:
        """Raise unless so many bytes are left."""
        left = self.end - self.at
        if nbytes > left:
            what = f"{kind} needs {nbytes} bytes, {left} left"
            raise self.error(what, self.start, check="bounds")

    def parse_item(self, at: int, depth: int) -> "Tuple[Any, int]":
        self.at = at
        return self.parse_value(depth), self.at

    def parse_value(self, depth: int) -> Any:
        """Return the next value, which is in so many arrays and maps."""
        kind, value = self.head()
        if kind == "array":
            self.enter(self.start, depth)
            return [self.parse_value(depth + 1) for _ in range(value)]
        if kind == "map":
            self.enter(self.start, depth)
            return self.parse_map(value, depth + 1)
        if kind == "str":
            data = self.read_bytes(value)
            return self.texts.get(data) or self.text(data, self.start)
        if kind == "bin" or kind == "ext":
            return self.binary(kind, value)
        return value

    def parse_map(self, count: int, depth: int) -> Facts:
        """Return a map of so many pairs."""
        pairs = Map()
        for _ in range(count):
            start = self.at
            key = self.parse_value(depth)
            if type(key) is memoryview:
                key = bytes(key)
            if type(key) is not str or key in pairs:
                self.check_key(pairs, key, start)
            pairs[key] = self.parse_value(depth)
        return pairs

    def read_bytes(self, nbytes: int) -> bytes:
        """Return so many bytes, and move after them."""
        place = self.look(nbytes)
        self.at += nbytes
        return self.window[place:place + nbytes]

    def binary(self, kind: str, nbytes: int) -> Any:
        """Return the value of bytes or of an extension, and move after it."""
        if kind == "ext":
            # Its type comes first.
            nbytes += 1
        self.check_left(kind, nbytes)
        start = self.at
        self.at += nbytes
        if kind == "bin" and self.lazy and start not in self.read_starts:
            return range(start, self.at)
        data = self.source.view(start, nbytes)
        if kind == "bin":
            if self.lazy:
                return bytes(data)
            return data
        ext_type, = unpack_from(">b", data)
        if ext_type == -1 and nbytes in (5, 9, 13):
            return self.timestamp(bytes(data[1:]))
        return ext_type, bytes(data[1:])

    def timestamp(self, data: bytes) -> "Tuple[int, int]":
        """Return the (seconds, nanoseconds) since 1970 of an extension of type -1.

        seconds u32, or nanoseconds u30 and seconds u34, or nanoseconds u32, seconds i64.
        """
        if len(data) == 12:
            nanoseconds, seconds = unpack_from(">Iq", data)
        else:
            # Of 4 bytes there are no bits of nanoseconds.
            both = int.from_bytes(data, "big")
            nanoseconds = both >> 34
            seconds = both & (1 << 34) - 1
        if nanoseconds > 999999999:
            raise self.error(f"a timestamp of {nanoseconds} nanoseconds", self.start)
        return seconds, nanoseconds

    def take_row(self, row: Any) -> Any:
        """Return the next value, by a row of read_rows()."""
        kind = row[1]
        if kind[0] != "[":
            return self.take(kind)
        count = self.take(kind)
        _, _, doc, _, most = row
        if count > most:
            raise self.error(f"{count} {doc}, {most} is the limit", self.start, Unsupported)
        return [self.take(kind[1:]) for _ in range(count)]

    def take(self, wanted: str) -> Any:
        """Return the next value, of a row's type; of an array its length."""
        kind, value = self.head()
        kinds = ROW_TYPES.get(wanted) or (wanted,)
        if kind not in kinds:
            raise self.error(f"it has the type {kind}, not {kinds[0]}", self.start)
        if wanted == "uint32" and not 0 <= value < 1 << 32:
            raise self.error(f"it is {value}, expected 0 to {(1 << 32) - 1}", self.start)
        if kind == "str":
            return self.read_bytes(value)
        if kind == "bin":
            # Whether all of them are in the file is for add_tensor() to say.
            start = self.at
            self.at += value
            return range(start, self.at)
        return value


def read_rows(codec: MessagePack, at: int, rows: Any) -> "Tuple[List[Any], int]":
    """Return (values, end) of rows (name, type, doc[, doc of items, most items]).

    Types are uint32, float, str (its bytes), bin (their range), map (its length), and
    "[uint32" and "[str" for arrays. The usual forms of most are read right here: a
    model opens 2.4 times as fast as by take_row(), which reads every form of all.
    """
    codec.at = at
    values = []
    window = codec.window
    base = codec.window_at
    place = at - base
    # A number or a text that begins before it is whole in the window: it has up to 32
    # bytes. What begins later may be cut.
    near_end = len(window) - 40
    # ce: a uint32; c4 to c6: bin whose length has 1, 2 or 4 bytes; 90 to 9f: an array.
    for row in rows:
        kind = row[1]
        # No value begins with c1: it stands for what is outside of the window.
        head = 0xC1
        if 0 <= place < near_end:
            head = window[place]
        value: Any = None
        if head == 0xCE and kind == "uint32":
            value, = unpack_from(">I", window, place + 1)
            place += 5
        elif 0xC4 <= head <= 0xC6 and kind == "bin":
            start = place + 1 + (1 << head - 0xC4)
            nbytes = int.from_bytes(window[place + 1:start], "big")
            place = start + nbytes
            value = range(base + start, base + place)
        elif 0x90 <= head < 0xA0 and kind == "[uint32":
            value, place = short_uint32s(window, place, near_end)
        elif 0x90 <= head < 0xA0 and kind == "[str":
            value, place = short_texts(window, place, near_end)
        if value is None:
            # It has another form, or may be cut; the window may then be another one.
            codec.at = base + place
            value = codec.take_row(row)
            window = codec.window
            base = codec.window_at
            place = codec.at - base
            near_end = len(window) - 40
        values.append(value)
    return values, base + place


def short_uint32s(window: bytes, place: int, near_end: int) -> "Tuple[Any, int]":
    """Return (values, end) of an array of up to 15 numbers, each a head ce and 4 bytes.

    (None, place) if one has another form, or may be cut by the end of the window.
    """
    at = place + 1
    values = []
    for _ in range(window[place] - 0x90):
        if at >= near_end or window[at] != 0xCE:
            return None, place
        value, = unpack_from(">I", window, at + 1)
        values.append(value)
        at += 5
    return values, at


def short_texts(window: bytes, place: int, near_end: int) -> "Tuple[Any, int]":
    """Return the same of an array of up to 15 texts, each of up to 31 bytes."""
    at = place + 1
    values = []
    for _ in range(window[place] - 0x90):
        if at >= near_end or not 0xA0 <= window[at] < 0xC0:
            return None, place
        start = at + 1
        at = start + window[at] - 0xA0
        values.append(window[start:at])
    return values, at


def str_of_bytes(data: bytes) -> str:
    """Return the bytes of a name as text; what is not UTF-8 survives as surrogates."""
    try:
        return str(data, "utf-8", TEXT_ERRORS)
    except UnicodeError:  # on a board
        raise Unsupported("a name that is not UTF-8 needs the surrogateescape handler")


def msgpack_loads(data: "ReadableBuffer") -> Any:
    """Return one MessagePack value; bytes after it are a FormatError.

    str is text, bin a view of the bytes, ext (type, bytes), a timestamp (seconds,
    nanoseconds); an array or map as a map key is Unsupported, a key twice a FormatError.

    >>> msgpack_loads(b"\\x92\\x01\\xa1a")
    [1, 'a']
    """
    source = Buffer(data)
    value, end = MessagePack(source).parse()
    if end != source.nbytes:
        left = plural(source.nbytes - end, "byte")
        raise FormatError(f"MessagePack: {left} after the value", end)
    return value


def msgpack_head(kind: str, count: int) -> bytes:
    """Return the shortest head of a type for a length, or for the value of an int."""
    first, most = SHORT_HEADS.get(kind, (0, -1))
    if 0 <= count <= most:
        return bytes([first + count])
    if kind == "int" and -32 <= count < 0:
        return bytes([count & 255])
    # The rows of a type begin with the shortest; of numbers, those from 0 on come first.
    for head, (name, _, code) in enumerate(WIDE_HEADS, 0xC0):
        if name != kind or code is None:
            continue
        low = 0
        bits = 8 * calcsize(code)
        if code.islower():
            bits -= 1
            low = -(1 << bits)
        if low <= count < 1 << bits:
            return bytes([head]) + pack(code, count)
    bits = 64 if kind == "int" else 32
    raise ValueError(f"{short_repr(count)} does not fit {bits} bits")


def msgpack_int(value: int, typed: bool) -> bytes:
    """Return an integer in the shortest form; `typed`: as uint32."""
    if not typed:
        return msgpack_head("int", value)
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{short_repr(value)} does not fit uint32")
    return pack(">BI", 0xCE, value)


def msgpack_float(value: float, typed: bool) -> bytes:
    """Return a float as float64; `typed`: as float32."""
    if not typed:
        return pack(">Bd", 0xCB, value)
    if value == value and to_inf(value, FLOAT32_LIMIT) != value:
        raise ValueError(f"{value!r} does not fit float32")
    return pack(">Bf", 0xCA, value)


def msgpack_dumps(value: Any, *, typed: bool = False, depth: int = 0) -> bytes:
    """Return a value as MessagePack, in the shortest forms.

    `typed`: int is uint32, float is float32. `depth` containers are around it already.
    ValueError for what does not fit.

    >>> msgpack_dumps([1, "a"]).hex(), msgpack_dumps(1, typed=True).hex()
    ('9201a161', 'ce00000001')
    """
    if value is None:
        return b"\xc0"
    if value is False:
        return b"\xc2"
    if value is True:
        return b"\xc3"
    if isinstance(value, int):
        return msgpack_int(value, typed)
    if isinstance(value, float):
        return msgpack_float(value, typed)
    if isinstance(value, str):
        data = encode_text(value, TEXT_ERRORS)
        return msgpack_head("str", len(data)) + data
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return msgpack_head("bin", len(data)) + data
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than MAX_DEPTH = {MAX_DEPTH}")
    if isinstance(value, (list, tuple)):
        head = msgpack_head("array", len(value))
        items: Any = value
    elif hasattr(value, "items"):
        head = msgpack_head("map", len(value))
        items = [item for pair in value.items() for item in pair]
    else:
        raise ValueError(f"MessagePack cannot hold {type(value).__name__}")
    parts = [msgpack_dumps(item, typed=typed, depth=depth + 1) for item in items]
    return head + b"".join(parts)


# -- [5c] FlatBuffers --------------------------------------------------------------------


def struct_code(kind: Any) -> str:
    """Return the code of a number, or that of an offset to what else there is."""
    if not isinstance(kind, str) or kind == "string":
        return "I"
    if kind not in WIDTH:
        raise ValueError(f"no value has the type {short_repr(kind)}")
    return kind


class TablePlan:
    """Where the fields of rows lie in the tables of one vtable.

    `slots`: for each row the place of its field in the table, 0 if it is absent.
    """

    def __init__(self, rows: Any, slots: "Tuple[int, ...]") -> None:
        self.slots = slots
        # What reading a table counts as: absent fields take time as well.
        self.cost = 4 + 4 * len(rows)
        # From the table's first byte to the end of its last field.
        self.nbytes = 4
        self.defaults: Facts = {}
        self.missing: "List[str]" = []
        # Absent vectors: each table gets a new list.
        self.empty: "List[str]" = []
        # (name, place, type) of fields that lead elsewhere.
        self.offsets: "List[Tuple[str, int, Any]]" = []
        fields = []
        for place, row in zip(slots, rows):
            name, kind, default = row[:3]
            self.defaults[name] = default
            if place and kind is not None:
                fields.append((place, name, kind))
            if not place and default is MISSING:
                self.missing.append(name)
            if not place and default == []:
                self.empty.append(name)
        fields.sort(key=lambda field: field[0])
        runs: "List[Tuple[List[str], List[str]]]" = []
        end = 0
        for place, name, kind in fields:
            if not runs or place < end:
                # The first field; or one that overlaps another.
                runs.append(([], ["<"]))
                end = 0
            names, codes = runs[-1]
            code = struct_code(kind)
            names.append(name)
            codes.append(f"{place - end}x{code}")
            end = place + WIDTH[code]
            self.nbytes = max(end, self.nbytes)
            if code != kind:
                self.offsets.append((name, place, kind))
        # (names, struct code) of fields that are read together.
        self.runs = [(names, "".join(codes)) for names, codes in runs]


class Flat:
    """A FlatBuffer: read() gives the root table as a dict of what its rows name.

    0       u32, where the root table is
    table   i32 s, then fields; its vtable is at table - s
    vtable  u16 its length | u16 length of the table | for slot 0, 1, ... a u16: where the
            field of that number lies in the table, or 0 if it is absent
    string  u32 length | UTF-8 | 0        vector  u32 length | numbers, or offsets

    Numbers are little-endian. A field is a number, or for a string, vector or table a
    u32: the distance from the field itself, forward. Slots that a reader does not know
    are passed over; so schemas can grow. Fields may overlap, and lie behind the bytes
    that their table states, as for the verifier of FlatBuffers in C++.

    Rows (name, type, default, doc), one for each slot, say what a table holds. Types: a
    struct code, "string", rows (a table), or a list of one of these (a vector); None is
    not read. What has the default MISSING must be there.

    What many offsets share is read for each: at most twice the data and a few bytes,
    since real files share their vtables and little besides. Errors count from `base`.
    """

    NAME = "FlatBuffers"
    WORD = "flatbuffers"

    def __init__(self, data: bytes, rows: Any, base: int = 0) -> None:
        self.data = data
        self.rows = rows
        self.base = base
        self.size = len(data)
        # Bytes that may be read.
        self.left = 500 + 2 * self.size
        # Slots by (place of the vtable, id of the rows), plans by (slots, id of the
        # rows).
        self.vtables: "Dict[Tuple[int, int], Tuple[int, ...]]" = {}
        self.plans: "Dict[Any, TablePlan]" = {}

    def error(self, what: str, at: int,
              error_class: "Type[FormatError]" = FormatError) -> FormatError:
        return error_class(f"{self.NAME}: {what}", self.base + at)

    def spend(self, nbytes: int, at: int) -> None:
        """Count bytes that are read; raise if they are too many."""
        self.left -= nbytes
        if self.left < 0:
            what = f"objects overlap (over twice {self.size} bytes)"
            raise self.error(what, at, Unsupported)

    def number(self, code: str, at: int) -> Any:
        """Return the number at a position."""
        return unpack_from(code, self.data, at)[0]

    def read(self) -> Facts:
        """Return the root table."""
        return self.table(self.rows, self.root())

    def root(self) -> int:
        """Return where the root table is."""
        if self.size < 4:
            raise self.error("the data end inside an offset", 0)
        return self.follow(0, self.number("<I", 0))

    def follow(self, at: int, step: int) -> int:
        """Return where the offset `step` that is at `at` leads."""
        if step == 0 or at + step + 4 > self.size:
            raise self.error(f"offset {step} leads out of the data", at)
        return at + step

    def table(self, rows: Any, at: int) -> Facts:
        """Return the fields of a table by name, defaults of absent ones."""
        plan = self.plan_of(rows, at)
        values = plan.defaults.copy()
        for names, code in plan.runs:
            values.update(zip(names, unpack_from(code, self.data, at)))
        for name in plan.empty:
            values[name] = []
        for name, place, kind in plan.offsets:
            target_at = self.follow(at + place, values[name])
            values[name] = self.target(kind, target_at)
        return values

    def target(self, kind: Any, at: int) -> Any:
        """Return the text, table or vector at a position."""
        if kind == "string":
            return self.string(at)
        if not isinstance(kind, list):
            return self.table(kind, at)
        inner = kind[0]
        if struct_code(inner) == inner:
            return self.numbers(inner, at)
        values = []
        place = at
        for step in self.numbers("I", at):
            place += 4
            values.append(self.target(inner, self.follow(place, step)))
        return values

    def plan_of(self, rows: Any, at: int) -> TablePlan:
        """Return the plan of the table at a position."""
        vtable = at - self.number("<i", at)
        slots = self.vtables.get((vtable, id(rows)))
        if slots is None:
            slots = self.read_slots(rows, vtable, at)
            self.vtables[vtable, id(rows)] = slots
        plan = self.plans.get((slots, id(rows)))
        if plan is None:
            if len(self.plans) > 256:
                # No real file has so many.
                self.plans.clear()
            plan = TablePlan(rows, slots)
            self.plans[slots, id(rows)] = plan
        self.spend(plan.cost, at)
        if plan.missing:
            raise self.error(f"the required field {plan.missing[0]} is missing", at)
        if at + plan.nbytes > self.size:
            raise self.error("field out of bounds", at)
        return plan

    def read_slots(self, rows: Any, vtable: int, at: int) -> "Tuple[int, ...]":
        """Return where the fields of the table at `at` are, by its vtable."""
        if vtable < 0 or vtable + 4 > self.size:
            raise self.error("vtable out of bounds", at)
        nbytes = self.number("<H", vtable)
        if nbytes < 4 or nbytes & 1 or vtable + nbytes > self.size:
            raise self.error(f"vtable of {nbytes} bytes", vtable)
        self.spend(nbytes, vtable)
        # A vtable may be older or newer than the rows.
        count = min(nbytes // 2 - 2, len(rows))
        slots = unpack_from(f"<{count}H", self.data, vtable + 4)
        absent = (0,) * (len(rows) - count)
        return tuple(slots) + absent

    def string(self, at: int) -> str:
        """Return the text at a position: u32 length, UTF-8, NUL."""
        nbytes = self.number("<I", at)
        start = at + 4
        stop = start + nbytes
        if stop >= self.size:
            raise self.error(f"string of {nbytes} bytes, {self.size - start} left", at)
        if self.data[stop]:
            raise self.error("no NUL after the string", at)
        self.spend(5 + nbytes, at)
        try:
            return self.data[start:stop].decode()
        except UnicodeError:
            raise self.error("text is not UTF-8", at)

    def numbers(self, code: str, at: int) -> "List[Any]":
        """Return the vector at a position: u32 count, elements."""
        count = self.number("<I", at)
        nbytes = count * WIDTH[code]
        left = self.size - at - 4
        if nbytes > left:
            raise self.error(f"vector of {nbytes} bytes, {left} left", at)
        self.spend(4 + nbytes, at)
        return list(unpack_from(f"<{count}{code}", self.data, at + 4))


def flat_loads(data: "ReadableBuffer", rows: Any) -> Facts:
    """Return the root table of any FlatBuffer, by rows (name, type, default, doc).

    >>> data = bytes.fromhex("0c00000006000800040000000800000002000000")
    >>> flat_loads(data, (("x", "h", 0, "a number"),))
    {'x': 2}
    """
    return Flat(bytes(memoryview(data)), rows).read()


class FlatBuilder:
    """Builds a FlatBuffer from its end to its front, byte for byte as the Rust builder.

    string(), numbers(), offsets() and table() return a place, the distance from the
    buffer's end to the object. Children come before the tables that point to them, so
    what is added first lies last. Equal vtables are one.

    >>> rows = (("x", "h", 0, "a number"),)
    >>> flat = FlatBuilder()
    >>> flat_loads(flat.finish(flat.table(rows, x=2)), rows)
    {'x': 2}
    """

    def __init__(self) -> None:
        # What was built, the last part of the buffer first, and its bytes.
        self.parts: "List[bytes]" = []
        self.used = 0
        # The size of the largest number.
        self.align = 4
        # The places of vtables, by their bytes.
        self.vtables: "Dict[bytes, int]" = {}
        self.plans: Any = {}

    def put(self, data: bytes, size: int = 1) -> int:
        """Add data, then zeros so that `size` divides the place 4 bytes into the data."""
        zeros = -(self.used + len(data) - 4) % size
        self.parts.append(data + bytes(zeros))
        self.used += len(data) + zeros
        return self.used

    def string(self, text: str) -> int:
        """Add a text."""
        data = encode_text(text)
        return self.put(pack("<I", len(data)) + data + b"\0", 4)

    def numbers(self, code: str, values: Any) -> int:
        """Add a vector of numbers; even an empty one is aligned to its elements."""
        size = max(4, WIDTH[code])
        self.align = max(size, self.align)
        count = len(values)
        return self.put(pack(f"<I{count}{code}", count, *values), size)

    def offsets(self, places: "List[int]") -> int:
        """Add a vector of strings or tables by their places."""
        start = round_up(self.used, 4) + 4 * len(places)
        steps = []
        for place in places:
            steps.append(self.step(start, place))
            start -= 4
        return self.numbers("I", steps)

    def step(self, start: int, place: int) -> int:
        """Return the offset from one place to an earlier one."""
        if not 0 < place <= self.used:
            raise ValueError(f"there is no place {short_repr(place)} yet")
        return start - place

    def table(self, rows: Any, **values: Any) -> int:
        """Add a table of numbers and places, which offsets lead to.

        What is None or the default of its row is left out.
        """
        fields = []
        for row in rows:
            name, _, default = row[:3]
            value = values.get(name, default)
            if value == default:
                value = None
            fields.append(value)
        absent = tuple([value is None for value in fields])
        key = id(rows), self.used & 7, absent
        if key not in self.plans:
            self.plans[key] = self.lay_out(rows, self.used & 7, absent)
        code, nbytes, slots, vtable = self.plans[key]
        place = self.used + nbytes
        stored = []
        for slot, distance in slots:
            value = fields[slot]
            if distance:
                value = self.step(place - distance, value)
            stored.append(value)
        vtable_place = self.vtables.get(vtable, place + len(vtable))
        self.put(pack(code, vtable_place - place, *stored))
        if vtable not in self.vtables:
            self.vtables[vtable] = self.put(vtable)
        return place

    def lay_out(self, rows: Any, used: int, absent: "Tuple[bool, ...]") -> Any:
        """Return (struct code, bytes, [(slot, distance)], vtable) of a table.

        `used`: the bytes behind it, modulo 8. The distance is that of an offset from the
        table's first byte, 0 for a number. Fields lie in the order of their sizes, those
        of one size in the order of their slots.
        """
        codes = [struct_code(row[1]) for row in rows]
        present = [slot for slot, is_absent in enumerate(absent) if not is_absent]
        present.sort(key=lambda slot: (WIDTH[codes[slot]], slot))
        # From the last field to the first one, as all that is built.
        text = ""
        top = used
        places = {}
        for slot in reversed(present):
            nbytes = WIDTH[codes[slot]]
            place = round_up(top + nbytes, nbytes)
            # Zeros follow the field, so that its place is a multiple of its size.
            zeros = place - nbytes - top
            text = f"{codes[slot]}{zeros}x{text}"
            places[slot] = place
            top = place
            self.align = max(nbytes, self.align)
        text = f"<i{-top % 4}x{text}"
        top = round_up(top + 4, 4)
        slots = []
        for slot in present:
            distance = 0
            if codes[slot] != rows[slot][1]:
                distance = top - places[slot]
            slots.append((slot, distance))
        vtable = [top - used]
        for slot in range(max(present, default=-1) + 1):
            vtable.append(top - places.get(slot, top))
        count = len(vtable) + 1
        return text, top - used, slots, pack(f"<{count}H", 2 * count, *vtable)

    def finish(self, root: int) -> bytes:
        """Return the buffer whose root table is at this place."""
        zeros = -(self.used + 4) % self.align
        step = self.used + zeros + 4 - root
        self.put(pack("<I", step) + bytes(zeros))
        return b"".join(reversed(self.parts))


# -- [5d] checksums ----------------------------------------------------------------------


def crc32(data: "ReadableBuffer", crc: int = 0) -> int:
    """Return the CRC-32 of zip and zlib, going on from `crc`."""
    import binascii
    return binascii.crc32(data, crc)


# What the register becomes by each byte: see crc32c_table().
CRC32C: "List[int]" = []
CRC32C_BLOCK = (2 * 6777 - 484) * 8  # bytes


def crc32c_table() -> "List[int]":
    """Fill and return CRC32C; the row of a xor b is the xor of their rows."""
    rows = [0] * 256
    crc = 1
    for bit in (128, 64, 32, 16, 8, 4, 2, 1):
        # The row of a byte with only this bit.
        is_odd = crc & 1
        crc >>= 1
        if is_odd:
            crc ^= 0x82F63B78
        for low in range(0, 256, 2 * bit):
            rows[bit + low] = crc ^ rows[low]
    CRC32C[:] = rows
    return CRC32C


def crc32c(data: "ReadableBuffer", crc: int = 0) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720 B.4) of bytes, going on from `crc`.

    About 700 MB/s, 50 times as fast as by the table alone: see fold_crc32c().

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc ^= 0xFFFFFFFF
    source = Buffer(data)
    table = CRC32C or crc32c_table()
    for start in range(0, source.nbytes, CRC32C_BLOCK):
        block = source.read(start, CRC32C_BLOCK)
        block, crc = fold_crc32c(block, crc)
        for byte in block:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def squared_powers(times: int, *exponents: int) -> "List[int]":
    """Return the exponents of a polynomial over two elements, squared so many times."""
    return [exponent << times for exponent in exponents]


# Multiples of the polynomial 0x11EDC6F41 with few terms: x**a = x**b + ... + 1 (a test
# proves them). Squared, they hold for twice the exponents too, for 4 times, ...
CRC32C_FOLDS = [squared_powers(times, 6777, 484, 100, 0) for times in range(6, -1, -1)]
CRC32C_FOLDS += [squared_powers(times, 437, 177, 176, 171, 58, 0)
                 for times in range(3, -1, -1)]


def fold_crc32c(block: bytes, crc: int) -> "Tuple[bytes, int]":
    """Return (short block, register) of the same CRC as this block and `crc`.

    A block is one integer, whose low bits are the high powers of x. By a multiple of the
    polynomial they are added to lower powers, as often as that fits; the first time
    halves a block of CRC32C_BLOCK bytes.
    """
    bits = 8 * len(block)
    number: "Optional[int]" = None
    for exponents in CRC32C_FOLDS:
        a = exponents[0]
        b = exponents[1]
        while bits > a + b:
            count = min(bits - a, a - b) & ~7
            if number is None:
                # From bytes: to split a long integer takes longer.
                low = int.from_bytes(block[:count // 8], "little") ^ crc
                number = int.from_bytes(block[count // 8:], "little")
            else:
                low = number & (1 << count) - 1
                number >>= count
            bits -= count
            for exponent in exponents[1:]:
                number ^= low << a - count - exponent
    if number is None:
        return block, crc
    return number.to_bytes(bits // 8, "little"), 0


class Digest:
    """A running checksum, "crc32c" or "sha256"."""

    def __init__(self, algorithm: str) -> None:
        self._crc = 0
        self._sha: Any = None
        if algorithm == "sha256":
            try:
                from hashlib import sha256
            except ImportError:
                raise Unsupported("sha256 needs the module hashlib")
            self._sha = sha256()

    def update(self, data: Any) -> None:
        if self._sha is None:
            self._crc = crc32c(data, self._crc)
        else:
            self._sha.update(data)

    def text(self) -> str:
        """Return it as in zTensor: crc32c:0x1234ABCD or sha256:<64 hex digits>."""
        if self._sha is None:
            return f"crc32c:0x{self._crc:08X}"
        return "sha256:" + self._sha.digest().hex()


# -- [5e] zstd ---------------------------------------------------------------------------

ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")
ZSTD_FOUND: "List[Tuple[str, Any]]" = []  # name and module, once there was one
# Decoded bytes for each stored byte, at most: 128 KiB of a block of 4 bytes.
ZSTD_RATIO = 32768
# That of parts in zTensor 2, and all encodings that are decoded here.
SEEKABLE = "zt.zstd-seekable/1"
DECODED = ("zstd", SEEKABLE)


def is_installed(package: str) -> bool:
    """Return whether a package is there; a board cannot tell.

    An import has a lock of the module's name. If another thread holds it when a process
    forks, the child waits for it without an end; imports that fail, again and again,
    make that likely.
    """
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        from importlib.util import find_spec
    except ImportError:
        return BOARD
    return find_spec(package) is not None


def zstd_module() -> Any:
    """Return the first of these modules that can be imported."""
    for name, module in ZSTD_FOUND:
        if name in ZSTD_MODULES and sys.modules.get(name) is module:
            return module
    for name in ZSTD_MODULES:
        try:
            if not is_installed(name.partition(".")[0]):
                continue
            module = __import__(name, None, None, ["ZstdCompressor"])
        except ImportError:
            continue
        ZSTD_FOUND[:] = [(name, module)]
        return module
    names = ", ".join(ZSTD_MODULES)
    raise Unsupported(f"zstd data need one of the modules {names}; pip install zstandard")


class ZstdFrames:
    """The stored bytes of a tensor as a binary file."""

    def __init__(self, source: "Buffer", offset: int, nbytes: int) -> None:
        self._source = source
        self._at = offset
        self._end = offset + nbytes

    def read(self, nbytes: int) -> bytes:
        start = self._at
        self._at = min(start + nbytes, self._end)
        return self._source.read(start, self._at - start)


def zstd_check(source: "Buffer", at: int, nbytes: int) -> None:
    """Raise FormatError unless these are whole frames (RFC 8878): some modules do not."""
    start = at
    end = at + nbytes
    while at < end:
        head = source.read(at, min(8, end - at))
        magic = int.from_bytes(head[:4], "little")
        if len(head) == 8 and magic & ~15 == 0x184D2A50:
            # A frame to be skipped: magic, length, anything.
            at += 8 + int.from_bytes(head[4:], "little")
        elif len(head) >= 6 and magic == 0xFD2FB528:
            at = zstd_frame_end(source, at, head[4], end)
        else:
            raise FormatError(f"zstd: no frame begins at byte {at - start} of {nbytes}")
    if at != end:
        raise FormatError("zstd: the last frame is cut short, or bytes lie after it")


def zstd_frame_end(source: "Buffer", at: int, flags: int, end: int) -> int:
    """Return where the frame with these flags ends; after `end` if it is cut short.

    magic 4 | flags 1 | window, dictionary, content size | blocks of 3 + n bytes |
    checksum
    """
    is_single = flags >> 5 & 1
    at += 6 - is_single
    at += (0, 1, 2, 4)[flags & 3]
    at += (is_single, 2, 4, 8)[flags >> 6]
    while at + 3 <= end:
        block = int.from_bytes(source.read(at, 3), "little")
        at += 3
        if block >> 1 & 3 == 1:
            # One byte that is repeated.
            at += 1
        else:
            at += block >> 3
        if block & 1:
            # The last block.
            if flags & 4:
                at += 4
            return at
    return end + 1


def zstd_decode(source: "Buffer", offset: int, nbytes: int, need: "Optional[int]",
                module: Any = None) -> Blocks:
    """Yield the `need` bytes that frames of `nbytes` bytes must hold.

    None: all, up to MAX_DENSE. `module`: what zstd_module() gave, which takes its time.
    """
    module = module or zstd_module()
    zstd_check(source, offset, nbytes)
    stream: Any = ZstdFrames(source, offset, nbytes)
    if hasattr(module, "ZstdFile"):
        stream = module.ZstdFile(stream)
    else:
        decompressor = module.ZstdDecompressor()
        stream = decompressor.stream_reader(stream, read_across_frames=True)
    most = MAX_DENSE if need is None else need
    left = most
    try:
        while left:
            block = stream.read(min(BLOCK, left))
            if not block:
                break
            left -= len(block)
            yield block
        more = stream.read(1)
    except FormatError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(f"zstd: the data are damaged ({reason})")
    if need is None:
        if more:
            raise Unsupported(f"zstd: over {most} bytes decoded, MAX_DENSE = {MAX_DENSE}")
        return
    count = str(need - left)
    if more:
        count = f"more than {need}"
    if left or more:
        raise FormatError(f"zstd: {count} bytes decoded, dtype and shape need {need}")


def zstd_encode(blocks: Blocks, nbytes: int, level: int) -> Blocks:
    """Yield one frame, with its content size, of blocks of nbytes bytes in all."""
    module = zstd_module()
    compressor = module.ZstdCompressor(level)
    # How the size is given: the names differ from module to module.
    pledge = getattr(compressor, "set_pledged_input_size", None)
    if pledge is None:
        pledge = getattr(compressor, "_set_pledged_input_size", None)
    if hasattr(compressor, "compressobj"):
        compressor = compressor.compressobj(size=nbytes)
    elif pledge is not None:
        pledge(nbytes)
    else:
        # Only one call for all of it stores the size.
        yield module.compress(b"".join(blocks), level)
        return
    for block in blocks:
        yield compressor.compress(block)
    yield compressor.flush()


# -- [6a] Tensor, File -------------------------------------------------------------------


class Tensor:
    """A named, typed, strided array over bytes that lie in a file, a buffer or memory.

    `.dtype` is None if unknown here; `.attrs` say how its `.format` stores it,
    `.custom` is what the user put there. Bytes are read when asked for: Unsupported
    (dtype, encoding), FormatError (damage) or ValueError (closed File).

    >>> tensor([[1, 2], [3, 4]], "int8")[1].tolist()
    [3, 4]
    """

    # All but _mark are the arguments of Tensor(), in order.
    __slots__ = {
        "name": "in its file",
        "dtype": "or None",
        "shape": "its dimensions",
        "source": "of its bytes",
        "start": "of element 0 or what is encoded",
        "stored_nbytes": "in the source",
        "_strides": "in bytes; None: row-major",
        "byteorder": "< or >",
        "encoding": "raw, zstd ...",
        "unreadable": "why, or None",
        "_attrs": "a dict, or pairs",
        "_custom": "or None",
        "format": "of its file",
        "_mark": "see keep()"}
    is_sparse = False
    components: Any = None  # Tensors by role, of a sparse one
    scheme: Any = None  # of a quantized one

    def __init__(self, name: str, dtype: "Optional[str]", shape: Shape, source: Buffer,
                 start: int, stored_nbytes: int, strides: "Optional[Shape]" = None,
                 byteorder: str = "<", encoding: str = "raw",
                 unreadable: "Optional[str]" = None, attrs: Any = None,
                 custom: "Optional[Facts]" = None, format: "Optional[str]" = None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.source = source
        self.start = start
        self.stored_nbytes = stored_nbytes
        self._strides = strides
        self.byteorder = byteorder
        self.encoding = encoding
        self.unreadable = unreadable
        self._attrs = attrs
        self._custom = custom
        self.format = format
        self._mark: Any = None

    @property
    def attrs(self) -> Facts:
        """How its format stores it: a dict."""
        if type(self._attrs) is not Map:
            self._attrs = Map(self._attrs or ())
        return self._attrs

    @property
    def custom(self) -> Facts:
        """What the user put there: a dict."""
        if self._custom is None:
            self._custom = Map()
        return self._custom

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return count_elements(self.shape)

    @property
    def itemsize(self) -> "Optional[int]":
        """Bytes of an element; None where the dtype has no fixed size."""
        return ITEMSIZE.get(self.dtype)

    @property
    def nbytes(self) -> int:
        """size x itemsize; what is stored where values have no size or cannot be read."""
        itemsize = self.itemsize
        if itemsize is None or self.unreadable and self.encoding == "raw":
            return self.stored_nbytes
        return self.size * itemsize

    @property
    def strides(self) -> Shape:
        return self._strides or row_major(self.shape, self.itemsize or 1)

    @property
    def offset(self) -> "Optional[int]":
        """Offset in the file of the first element (if encoded: of the bytes), or None."""
        return self.start if self.source.has_offsets else None

    @property
    def path(self) -> "Optional[str]":
        """The path of its file, of a model in shards that of its shard; or None."""
        return self.source.path

    @property
    def origin(self) -> "Tensor":
        """The tensor that was read: this one, or what it is a cast of."""
        return self

    def stored_parts(self) -> TensorMap:
        """Return what lies apart in the file, by role; that of the values is ""."""
        return {"": self}

    def ranges(self) -> "List[Tuple[int, int, str]]":
        """Return (offset, nbytes, role) of its bytes in the file."""
        return [(part.start, part.stored_nbytes, role)
                for role, part in self.stored_parts().items() if part.source is self.source]

    def __repr__(self) -> str:
        return describe_tensor(self)

    def error(self, what: str, error_class: "Type[FormatError]" = FormatError,
              field: str = "data", check: str = "sizes") -> FormatError:
        """Return an error of its data."""
        return error_class(what, self.offset, field, self.name, self.path, check)

    def check_readable(self) -> int:
        """Return the itemsize; raise Unsupported where the elements cannot be read."""
        itemsize = self.itemsize
        if self.unreadable or itemsize is None:
            what = self.unreadable or f"{self.dtype} cannot be read element by element"
            raise self.error(what, Unsupported)
        return itemsize

    def byte_extent(self) -> "Tuple[int, int]":
        """Return (start, nbytes) of the stored bytes; start: from the first element."""
        if self._strides is None or 0 in self.shape:
            return 0, self.stored_nbytes
        ends = [(n - 1) * stride for n, stride in zip(self.shape, self._strides)]
        start = sum([min(end, 0) for end in ends])
        return start, sum(map(abs, ends)) + (self.itemsize or 1)

    @property
    def raw(self) -> memoryview:
        """The stored bytes, read-only; of a part from its first to its last."""
        start, nbytes = self.byte_extent()
        return memoryview(self.source.view(self.start + start, nbytes))

    def is_contiguous(self, byteorder: str) -> bool:
        """Return whether elements of this byte order lie side by side, in any order."""
        itemsize = self.itemsize
        if self.encoding != "raw" or self.unreadable or itemsize is None:
            return False
        if self.byteorder != byteorder and itemsize > 1:
            return False
        return self.byte_extent() == (0, self.nbytes)

    @property
    def zero_copy(self) -> bool:
        """Whether `.data` shows the stored bytes themselves."""
        return self.source.mapping and self.is_contiguous(NATIVE)

    @property
    def data(self) -> memoryview:
        """The elements as a flat typed memoryview; a new copy unless `.zero_copy`.

        In storage order (of a part with gaps row-major), native byte order, 16-bit floats
        as 'H'.
        """
        itemsize = self.check_readable()
        if not self.is_contiguous(self.byteorder):
            return self.contiguous().data
        raw: Any = self.raw
        if self.byteorder != NATIVE and itemsize > 1:
            raw = swap(raw, itemsize)
        code: Any = STRUCT_CODE.get(self.dtype)
        if code is None or code == "e":
            code = BITS_CODE[itemsize]
        if not BOARD:
            return memoryview(raw).cast(code)
        from array import array
        return array("B" if code == "?" else code, bytes(raw))  # type: ignore[return-value]

    def is_decodable(self) -> bool:
        """Return whether its encoding can be undone, also of elements not known here."""
        return self.encoding in DECODED and not (self.unreadable and self.itemsize)

    @property
    def decoded_nbytes(self) -> "Optional[int]":
        """Bytes without encoding; None where neither dtype nor file tells."""
        if self.itemsize is None and self.encoding in DECODED:
            return self.attrs.get("decoded_length")
        return self.nbytes

    def iter_bytes(self) -> Blocks:
        """Return blocks of its row-major little-endian bytes; unknown ones as they are.

        The one way to the elements: it decodes, gathers and swaps.
        """
        if self.unreadable and self.itemsize:
            self.check_readable()
        if self.encoding != "raw" and self.is_decodable():
            blocks = self.iter_decoded()
        elif self._strides is None:
            blocks = self.iter_stored()
        elif self.is_divided():
            middle = self.shape[0] // 2
            halves = self[:middle], self[middle:]
            return (block for half in halves for block in half.iter_bytes())
        else:
            first = -self.byte_extent()[0]
            itemsize = self.check_readable()
            blocks = gather(self.raw, first, self.shape, self._strides, itemsize)
        if self.byteorder == "<" or self.itemsize in (None, 1):
            return blocks
        return (swap(part, self.check_readable()) for part in iter_parts(blocks, BLOCK))

    def is_divided(self) -> bool:
        """Return whether it is read in halves: rows of a stream that lie far apart."""
        if self.source.mapping or self.byte_extent()[1] <= BLOCK or self.shape[0] < 2:
            return False
        return abs(self.strides[0]) == max(map(abs, self.strides))

    def iter_stored(self) -> Blocks:
        """Yield the stored bytes: in blocks, or if mapped in one view."""
        # They lie in another file.
        if not self.stored_nbytes and self.encoding == "shard":
            self.check_readable()
        size = BLOCK
        if self.source.mapping:
            size = self.stored_nbytes
        for at in range(0, self.stored_nbytes, size or 1) or [0]:
            yield self.source.view(self.start + at, min(size, self.stored_nbytes - at))

    def iter_decoded(self) -> Blocks:
        """Yield the decoded bytes."""
        decode = zstd_decode if self.encoding == "zstd" else seekable_decode
        try:
            yield from decode(self.source, self.start, self.stored_nbytes, self.decoded_nbytes)
        except FormatError as error:
            raise self.error(error.what, type(error))

    def tobytes(self) -> bytes:
        """Return the elements as row-major little-endian bytes; unknown ones decoded."""
        if BOARD:  # the heap may have room for them once, as a bytearray
            made: Any = bytearray(self.decoded_nbytes or 0)
            at = 0
            for block in self.iter_bytes():
                made[at:at + len(block)] = block
                at += len(block)
            return made
        from io import BytesIO
        out = BytesIO()  # copies each block while it is in the cache; join() does not
        out.writelines(self.iter_bytes())
        return out.getvalue()

    __bytes__ = tobytes  # else bytes() takes numbers, up to Python 3.11

    @property
    def flat(self) -> Blocks:
        """Iterate over the elements, row-major, as Python numbers, in constant memory.

        Of a column-major tensor of a stream all its bytes are read.
        """
        self.check_readable()
        return (value for part in iter_parts(self.iter_bytes(), PART)
                for value in unpack_values(self.dtype, part))

    def tolist(self) -> Any:
        """Return the elements as nested lists; of a scalar, the number."""
        shape = self.shape
        lists = [count_elements(shape[:i]) for i in range(1, min(len(shape), 65))]
        if len(shape) > 64 or sum(lists) > max(self.size * len(shape), 1 << 17):
            raise ValueError(f"tolist() of {short_repr(shape)} makes too many lists")
        values = list(self.flat)
        for n, count in zip(reversed(shape), reversed(lists)):
            values = [values[i * n:(i + 1) * n] for i in range(count)]
        return values if shape else values[0]

    def item(self) -> Any:
        """Return the only element as a Python number; ValueError if there are others."""
        if self.size != 1:
            what = "only one element is a number, true or false"
            raise ValueError(f"{self.size} elements; {what}")
        return next(self.flat)

    def copy(self, **changes: Any) -> "Tensor":
        """Return it with some arguments of the constructor changed."""
        args: Facts = {}
        for key in ARGUMENTS:
            args[key.lstrip("_")] = getattr(self, key)
        args.update(attrs=Map(self.attrs.items()), custom=Map(self.custom.items()))
        args.update(changes)
        return type(self)(**args)

    def contiguous(self) -> "Tensor":
        """Return a row-major little-endian copy in memory."""
        data = self.tobytes()
        return self.copy(source=Buffer(data), start=0, stored_nbytes=len(data), strides=None,
                         byteorder="<", encoding="raw")

    def decoded(self) -> "Tensor":
        """Return it without encoding; up to KEPT decoded bytes are kept."""
        if self.encoding == "raw":
            return self
        self.source.view(self.start, 0)  # raises if closed
        found: "Optional[Tensor]" = self.find_kept("values")
        if found is None:
            check_work([(self.name, self)])
            self.source.kept = Buffer.kept
            found = self.contiguous()
            self.keep("values", found, found.nbytes)
        return found

    def keep(self, what: str, value: Any, nbytes: int) -> None:
        """Keep what was decoded: its source keeps that of one tensor."""
        if nbytes <= KEPT:
            # Not the Tensor itself: that would be a cycle.
            self._mark = self._mark or object()
            self.source.kept = self._mark, what, value

    def find_kept(self, what: str) -> Any:
        """Return what is kept of this tensor, or None."""
        # A source of an older copy of this module has none.
        mark, kind, value = getattr(self.source, "kept", Buffer.kept)
        if mark is None or mark is not self._mark or kind != what:
            return None
        return value

    def astype(self, dtype: Any) -> "Tensor":
        """Return a copy in memory with another dtype, without attrs.

        Floats round to even and overflow to infinity; integers raise ValueError for a
        fraction, a NaN or a number out of range.
        """
        self.check_readable()
        return Cast(self, dtype).contiguous()

    def todense(self) -> "Tensor":
        """Return a sparse tensor with its zeros, in memory; another as it is."""
        return self

    def __getitem__(self, key: Any) -> Any:
        """Return t[1:, ..., 2], a zero-copy part; for an index for each axis, a number."""
        itemsize = self.check_readable()
        if self.encoding != "raw":
            whole = self.decoded()
            part = whole[key]
            # All need not stay for a part of it.
            if isinstance(part, Tensor) and part.nbytes < whole.nbytes:
                part = part.contiguous()
            return part
        keys = key if isinstance(key, tuple) else (key,)
        start, shape, strides = self.find_part(keys)
        if not shape and Ellipsis not in keys:
            data = self.source.view(start, itemsize)
            return unpack_values(self.dtype, data, self.byteorder)[0]
        gaps: "Optional[Shape]" = None
        nbytes = count_elements(shape) * itemsize
        if nbytes and strides != row_major(shape, itemsize):
            gaps = strides
            nbytes = self.stored_nbytes
        return Tensor(self.name, self.dtype, shape, self.source, start, nbytes, gaps,
                      self.byteorder, format=self.format)

    def find_part(self, keys: "Tuple[Any, ...]") -> "Tuple[int, Shape, Shape]":
        """Return (start, shape, strides) of what keys leave of it."""
        start = self.start
        shape = []
        strides = []
        axes = zip(self.full_key(keys), self.shape, self.strides)
        for axis, (key, n, stride) in enumerate(axes):
            if key is not Ellipsis and not isinstance(key, slice):
                index = as_index(key)
                if not -n <= index < n:
                    what = f"dimension {axis} of shape {short_repr(self.shape)}"
                    raise IndexError(f"index {short_repr(key)} is out of range for {what}")
                start += index % n * stride
                continue
            places = range(n)
            if key is not Ellipsis:
                places = places[key]
            # len() takes no count beyond sys.maxsize.
            count = max(0, -((places.start - places.stop) // places.step))
            if count:
                start += places.start * stride
            if count > 1:
                stride *= places.step
            shape.append(count)
            strides.append(stride)
        return start, tuple(shape), tuple(strides)

    def full_key(self, keys: "Tuple[Any, ...]") -> "Tuple[Any, ...]":
        """Return a key for each axis; `...` is a whole one: boards cannot make slices."""
        dots = [i for i, key in enumerate(keys) if key is Ellipsis]
        count = len(keys) - len(dots)
        if len(dots) > 1 or count > self.ndim:
            given = f"{count} indices, {len(dots)} times '...'"
            raise IndexError(f"{given}: {self.ndim} dimensions")
        at = dots[0] if dots else len(keys)
        return keys[:at] + (Ellipsis,) * (self.ndim - count) + keys[at + 1:]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no length")
        if self.shape[0] > sys.maxsize:
            what = f"dimension 0 of {self.shape[0]} is more than len() can return; see .shape"
            raise self.error(what, Unsupported)
        return self.shape[0]

    def __iter__(self) -> Blocks:
        whole = self
        if self.encoding != "raw" and len(self):
            whole = self.decoded()
        return (whole[i] for i in range(len(whole)))

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __eq__(self, other: Any) -> bool:
        """Return whether dtype, shape, bytes and custom attributes are the same."""
        if self is other:
            return True
        own = own_tensor(other)
        if own is None:
            return NotImplemented
        return is_equal(self, own)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __reduce__(self) -> Any:
        """By reference with its file; in memory, with a copy of its own bytes only."""
        stored = self
        if self.source.file_id is None:
            if self._strides is not None:
                stored = self.contiguous()
            stored = stored.copy(source=Buffer(bytes(stored.raw)), start=0)
        return type(self), tuple([getattr(stored, key) for key in ARGUMENTS])

    @property
    def __array_interface__(self) -> Facts:
        """What numpy.asarray asks for first: zero-copy, read-only; none of bfloat16."""
        itemsize = self.check_readable()
        if self.encoding != "raw" or self.dtype not in STRUCT_CODE:  # __array__ has it
            raise AttributeError(f"numpy cannot take {self.encoding} {self.dtype} as it is")
        order = "|" if itemsize == 1 else self.byteorder
        return {"version": 3, "shape": self.shape, "data": self.raw,
                "typestr": f"{order}{str(self.dtype)[0]}{itemsize}",
                "strides": self._strides, "offset": -self.byte_extent()[0]}

    def __array__(self, dtype: Any = None, copy: "Optional[bool]" = None) -> Any:
        """Return a numpy array; bfloat16 and float8 by ml_dtypes, or as bytes ("V2")."""
        return to_numpy(self, dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Give what torch.from_dlpack and others ask for, zero-copy, by numpy or torch."""
        return to_dlpack(self, options)

    def __dlpack_device__(self) -> "Tuple[int, int]":
        return 1, 0  # memory of the CPU

    def __jax_array__(self) -> Any:
        array = self.__array__()
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        return sys.modules["jax"].numpy.asarray(native)

    def __buffer__(self, flags: int) -> memoryview:
        """Give an exact C-order native view, or BufferError."""
        code: Any = STRUCT_CODE.get(self.dtype)
        is_plain = code and self.is_contiguous(NATIVE) and not self._strides
        if not is_plain or 0 in self.shape or self.ndim > 64:
            raise BufferError("not a plain native array with elements: take "
                              ".contiguous().data")
        return self.data.cast("B").cast(code, self.shape)


ARGUMENTS = [key for key in Tensor.__slots__ if key != "_mark"]


def new_tensor(dtype: "Optional[str]", shape: Shape, data: Any, byteorder: str = "<",
               name: str = "", format: "Optional[str]" = None) -> Tensor:
    """Return a Tensor of bytes in memory."""
    source = Buffer(data)
    return Tensor(name, dtype, shape, source, 0, source.nbytes, None, byteorder,
                  format=format)


class File(TensorMap):
    """A mapping from names to Tensors in the order of the index; also a context manager.

    `.path` (or None), `.metadata` (the user's), `.attrs` (facts of the format),
    `.nbytes`, `.others`: what else it holds, by name (bytes of no tensor, in a record
    of Burn). Any number of threads may read it and its Tensors.

    >>> load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    <File ztensor: 1 tensor 'w'>
    """

    shards: Any = None  # of a model in several files: those that are open, by name
    rest: "Optional[int]" = None  # where bytes behind its end begin

    def __init__(self, fmt: "Format", source: "Buffer", attrs: Facts, metadata: Facts,
                 tensors: "Dict[str, Tensor]") -> None:
        self.fmt = fmt
        self.format = fmt.FAMILY
        self.source = source
        self.path = source.path
        self.nbytes = source.nbytes
        self.attrs = attrs
        self.metadata = metadata
        self.others: Facts = {}
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise KeyError(missing_message(self, name))
        return self._tensors[name]

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
        path = "" if self.path is None else " " + safe_repr(self.path)
        names = [safe_repr(name) for name in list(self)[:4]]
        if len(self) > 4:
            names.append("...")
        text = f"{path}: {plural(len(self), 'tensor')} {', '.join(names)}"
        return f"<File {self.format}{text.rstrip()}>"

    def _ipython_key_completions_(self) -> "List[str]":
        """Return what a notebook offers for file["<TAB>."""
        return list(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a table of the tensors."""
        return html_table(self)

    def __reduce__(self) -> Any:
        if self.source.file_id is None:
            raise TypeError("a File pickles by path; this one comes from a buffer or a stream")
        return load_again, (self.fmt.NAME, self.source.file_id + (self.source.nbytes,),
                            "missing" in self.attrs)

    def __deepcopy__(self, memo: Any = None) -> "File":
        """Return a File over the same open source, with attrs and Tensors of its own."""
        from copy import deepcopy
        made: File = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for key in "attrs", "metadata", "others", "_tensors", "shards":
            if key in made.__dict__:
                made.__dict__[key] = deepcopy(made.__dict__[key], memo)
        return made

    def __copy__(self) -> "File":
        return self.__deepcopy__()

    def close(self) -> None:
        """Close the file. Views stay valid; a Tensor asked later raises."""
        self.source.close()

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


if "_collections_abc" in sys.modules:  # loaded at any start
    sys.modules["_collections_abc"].Mapping.register(File)


# -- [6b] Schema -------------------------------------------------------------------------


class Typed:
    """What a value of an index may be: `words` for it, and fits(value)."""

    def __init__(self, words: str, fits: Any) -> None:
        self.words = words
        self.fits = fits

    def iter_errors(self, value: Any, *trail: Any) -> Any:
        """Yield (trail, what) if a value does not fit."""
        if not self.fits(value):
            key = trail[-1]
            name = safe_str(key) if isinstance(key, str) else short_repr(key)
            yield trail, f"{name} is {short_repr(value)}, expected {self.words}"


def typed(python: type, words: str, accepts: Any = None) -> Typed:
    """Return the kind of values of a Python type for which accepts(value) is true."""
    def has_type(value: Any) -> bool:
        return type(value) is python

    def fits(value: Any) -> bool:
        return type(value) is python and bool(accepts(value))

    if accepts is None:
        return Typed(words, has_type)
    return Typed(words, fits)


def choice(*texts: str) -> Typed:
    """Return the kind of values that are one of some texts."""
    return typed(str, " or ".join(texts), frozenset(texts).__contains__)


def is_uint64(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


def are_uint64(values: Any) -> bool:
    if type(values) is not list:
        return False
    for value in values:
        if type(value) is not int or not 0 <= value < 1 << 64:
            return False
    return True


def is_offset_length(values: Any) -> bool:
    return are_uint64(values) and len(values) == 2


def is_start_end(values: Any) -> bool:
    return is_offset_length(values) and bool(values[0] <= values[1])


ANY = Typed("anything", lambda value: True)
TEXT = typed(str, "text")
MAP = typed(Map, "a map")
UINT64 = Typed("an integer 0 to 2**64-1", is_uint64)
UINT64_LIST = Typed("an array of integers 0 to 2**64-1", are_uint64)
OFFSET_LENGTH = Typed("an array of two integers 0 to 2**64-1", is_offset_length)
START_END = Typed("[start, end), integers 0 to 2**64-1", is_start_end)


def fits_schema(schema: "Schema", value: Any) -> bool:
    """Return whether nothing is wrong in a map."""
    if type(value) is not schema.container:
        return False
    checks = schema.checks
    key_fits = schema.key_type.fits
    other_fits = schema.additional[0].fits
    for key, item in schema.pairs(value):
        if key not in checks:
            if not key_fits(key) or not other_fits(item):
                return False
        elif not checks[key](item):
            if item is not None or key not in schema.nullable:
                return False
    for key in schema.required:
        if key not in value:
            return False
    return True


class Schema:
    """What a map (or with container=list an array) of an index holds.

    Rows (key, kind, required, doc[, items]) check what is read and written, and explain
    it. A kind is Typed or a Schema. `required`: True, False, or None if null stands for
    absent. `items`: a Schema that only explains what lies in a value of a Typed kind.
    `additional`: (kind, doc[, items]) of all other keys, `key_type`: the kind of these
    keys.
    """

    def __init__(self, *rows: Any, additional: Any = (ANY, "unknown here"), key_type: Any = ANY,
                 container: Any = Map, doc: str = "") -> None:
        self.rows = {row[0]: (row[1],) + row[3:] for row in rows}  # as `additional`
        self.required = [row[0] for row in rows if row[2]]
        self.nullable = [row[0] for row in rows if row[2] is None]
        self.checks = {row[0]: row[1].fits for row in rows}
        self.additional = additional
        self.key_type = key_type
        self.container = container
        self.doc = doc

    def pairs(self, value: Any) -> Any:
        """Return the (key, item) of a container; of an array the keys are indices."""
        return value.items() if self.container is Map else enumerate(value)

    fits = fits_schema

    def iter_errors(self, value: Any, *trail: Any) -> Any:
        """Yield (trail, what) of all that is wrong in a map, and in maps inside."""
        if type(value) is not self.container:
            what = f"{short_repr(value)}, expected "
            what += "a map" if self.container is Map else "an array"
            if trail and isinstance(trail[-1], str):
                what = f"{safe_str(trail[-1])} is {what}"
            yield trail, what
            return
        for key, item in self.pairs(value):
            if key not in self.rows and not self.key_type.fits(key):
                yield trail + (key,), f"the key {short_repr(key)} is not {self.key_type.words}"
            elif item is not None or key not in self.nullable:
                kind = self.rows.get(key, self.additional)[0]
                yield from kind.iter_errors(item, *trail + (key,))
        for key in self.required:
            if key not in value:
                yield trail, f"the entry lacks {key!r}"

    def about(self, key: Any) -> Any:
        """Return (Schema or None, doc) of what lies at a key."""
        kind, doc, *items = self.rows.get(key, self.additional)
        if isinstance(kind, Schema):
            return kind, doc
        if items:
            return items[0], doc
        return None, doc


# -- [6c] Reading ------------------------------------------------------------------------
#
# What read() asks for is a region of the file: a record, a run of values, a tree, a
# FlatBuffer. The trail ("tensors", 3, "shape") leads to the field tensors[3].shape.


class RecordType:
    """What a record holds: little-endian fields side by side, as rows (name, code, doc).

    A code is one of struct ("6q": six values; "8s": bytes), "text" (as many bytes as
    the value before says), or a function of the values before, which returns one of
    struct.
    """

    def __init__(self, *rows: Any) -> None:
        self.rows = rows
        # Codes that are read one by one. Those of fixed sizes in turn are joined for one
        # unpack; empty ones are dropped.
        self.parts: Any = ["<"]
        for _, code, _ in rows:
            if code == "text" or callable(code):
                self.parts += [code, "<"]
            else:
                self.parts[-1] += code
        self.parts = [code for code in self.parts if code != "<"]

    def pack(self, *values: Any) -> bytes:
        """Return the bytes of a record whose fields have a fixed size."""
        return pack(self.parts[0], *values)

    @staticmethod
    def iter_values(codes: Any, source: Buffer, at: int) -> Any:
        """Yield (begin, end, values) of each code; values: None where the source ends."""
        values: Any = ()
        for code in codes:
            if code == "text":
                nbytes = values[-1]
            else:
                if not isinstance(code, str):  # a function of the values before
                    code = "<" + code(values)
                nbytes = calcsize(code)
            data = source.read(at, nbytes)
            if len(data) < nbytes:
                yield at, at + nbytes, None
                return
            found: Any = (data,)
            if code != "text":
                found = unpack_from(code, data, 0)
            yield at, at + nbytes, found
            values += found
            at += nbytes


class Reading:
    """One parse of a file: a format's read() gets bytes from it, and gives tensors to it.

    `partial`: tensors that do not lie whole in the file may be left out. Where a trail is
    the last argument, its keys are given one by one.
    """

    regions: "List[Any]" = []  # what was read (Recorder)
    errors: "Optional[List[FormatError]]" = None  # those of single tensors (Recorder)
    at = 0  # where the region that was read last begins
    root = "item"  # the field around all others, for errors without a trail
    reader: "Optional[MessagePack]" = None  # with its window
    repeated = 0  # characters of names that repeat others: spend_name()
    rest: "Optional[int]" = None  # where bytes begin that are of no use: note_rest()

    def __init__(self, source: Buffer, partial: bool = False) -> None:
        self.source = source
        self.end = source.nbytes
        self.partial = partial
        self.tensors: "Dict[str, Tensor]" = Map()
        self.missing: Facts = Map()  # name -> (Tensor not whole in the file, its error)
        self.unnamed: "List[str]" = []  # what else a file lacks that is cut short
        self.others: Facts = Map()  # what File.others will be
        self.sizes: Any = {}  # (dtype, shape) -> (bytes that it needs, the shape)

    def note(self, at: int, kind: Any, *args: Any) -> None:
        """Note that a region is read now: see SPANS, whose functions take args."""
        self.at = at

    def note_names(self, pairs: Any) -> None:
        """Note the trails of fields, and the names of the tensors that they belong to."""

    def note_rest(self, at: int) -> None:
        """Note that the bytes from here on are of no use."""
        if at < self.end:
            self.rest = at

    def check_magic(self, fmt: "Format", magic: bytes) -> None:
        """Raise unless the file begins with the bytes of its format, as far as it goes."""
        head = self.source.read(0, len(magic))
        if head and magic.startswith(head):
            return
        pattern = b""  # the first bytes, with "0" for each digit
        for byte in self.source.read(0, 8):
            if 48 <= byte < 58:
                byte = 48
            pattern += bytes([byte])
        for start, name in fmt.REFUSED.items():
            if start == pattern or start == self.source.read(0, len(start)):
                what = f"{name} is another format; only {fmt.TITLE} is read"
                raise self.error(what, "magic", offset=0, check="magic", error_class=Unsupported)
        what = f"not a {fmt.NAME} file: it begins with {safe_repr(head)}, not {safe_repr(magic)}"
        raise self.error(what, "magic", offset=0, check="magic")

    def record(self, at: int, record_type: RecordType, *trail: Any) -> Any:
        """Return (values, end) of the fields of a RecordType."""
        self.note(at, "record", trail, self.source, record_type)
        values: Any = ()
        end = at
        for _, stop, found in record_type.iter_values(record_type.parts, self.source, at):
            if found is None:
                raise self.cut_record(at, record_type, trail)
            values += found
            end = stop
        return values, end

    def cut_record(self, at: int, record_type: RecordType, trail: Trail) -> FormatError:
        """Return the error of a record that is not whole in the file."""
        return self.error("cut short: the file ends in this record", *trail)

    def cbor(self, at: int, nbytes: int, schema: Schema, *trail: Any, whole: bool = False,
             **rules: Any) -> Any:
        """Return an item of CBOR that fits a Schema; `whole`: no bytes follow it.

        `rules`: those of Cbor.
        """
        codec = Cbor(self.source.read(at, nbytes), at, **rules)
        return self.tree(codec, schema, trail, whole)

    def flatbuffer(self, at: int, nbytes: int, rows: Any) -> Facts:
        """Return the root table of a FlatBuffer as a dict, by nested rows."""
        codec = Flat(self.source.read(at, nbytes), rows, at)
        self.note(at, "flatbuffer", (), codec)
        return codec.read()

    def tree(self, codec: Any, schema: Schema, trail: Trail, whole: bool) -> Any:
        """Return what a codec reads, if it fits a Schema."""
        self.note(codec.base, "tree", trail, codec, schema)
        value, codec.read_end = codec.parse()
        if whole and codec.read_end < len(codec.data):
            at = codec.base + codec.read_end
            raise self.error("trailing bytes after the index", *trail, offset=at)
        self.check_schema(schema, value, trail)
        return value

    def messagepack(self, at: int, rows: Any, *trail: Any) -> Any:
        """Return (values, end) of a run of MessagePack values by rows: see read_rows()."""
        self.note(at, "values", trail, self.source, rows)
        if self.reader is None:
            self.reader = MessagePack(self.source)
        return read_rows(self.reader, at, rows)

    def spend_name(self, name: str, *trail: Any) -> None:
        """Raise if names, which repeat those around them, are much longer than the file."""
        self.repeated += len(name)
        if self.repeated > MAX_NAMES + 4 * self.end:
            what = f"longer names than MAX_NAMES = {MAX_NAMES} in all"
            raise self.error(what, *trail, error_class=Unsupported)

    def check_schema(self, schema: Any, value: Any, trail: Trail, tensor: Any = None) -> None:
        """Raise unless the value at a trail fits a Schema or a kind.

        `tensor`: what the index has for its name, which may be no text.
        """
        if schema.fits(value):
            return
        if not is_text(tensor):
            tensor = None
        where, what = next(schema.iter_errors(value, *trail))
        raise self.error(what, *where, tensor=tensor)

    def check_range(self, value: int, *trail: Any, high: int, low: int = 0, limit: str = "",
                    why: str = "the file ends (cut short?)") -> None:
        """Raise unless the number at a trail is from `low` to `high`.

        `limit` names what allows no more here; else `why` says what the file breaks.
        """
        if low <= value <= high:
            return
        what = f"{format_trail(trail)} is {value}, expected {low} to {high}: "
        if limit:
            raise self.error(what + limit, *trail, error_class=Unsupported)
        raise self.error(what + why, *trail)

    def __enter__(self) -> None:
        """`with reading:` an entry is read; verify() notes its error."""

    def __exit__(self, error_class: Any, error: Any, traceback: Any) -> bool:
        return isinstance(error, FormatError) and self.keep_error(error)

    def keep_error(self, error: FormatError) -> bool:
        """Return whether the error of one tensor is kept, and reading goes on."""
        return False

    def add_tensor(self, tensor: Tensor, trail: Trail, low: int, high: int,
                   field_of: Facts) -> None:
        """Add a tensor with a new name, the size of its shape, from `low` to `high`.

        `field_of`: which field of the entry at a trail gives the "name", the "size" and
        the "place" of its tensor; "": the entry itself. If `high` is the end of the
        file, a tensor that ends after it is noted as missing.
        """
        name = tensor.name
        if name in self.tensors or name in self.missing:
            what = "two tensors have this name"
            raise self.entry_error(what, name, trail, field_of["name"])
        # Equal shapes are shared, their sizes computed once.
        key = tensor.dtype, tensor.shape
        if key not in self.sizes:
            if len(self.sizes) >= 256:  # shapes can be chosen to have one hash
                self.sizes.clear()
            # Values of types that are not known here have any size.
            need = tensor.size * tensor.itemsize if tensor.itemsize else None
            self.sizes[key] = need, tensor.shape
        need, tensor.shape = self.sizes[key]
        if need != tensor.stored_nbytes and need is not None:
            if tensor.encoding == "raw" and not tensor.unreadable:
                what = size_message(tensor, need)
                raise self.entry_error(what, name, trail, field_of["size"], "sizes")
        # No bytes may lie in front of `low`, too.
        end = tensor.start + tensor.stored_nbytes
        if end <= high and (tensor.start >= low or not tensor.stored_nbytes):
            self.tensors[name] = tensor
            return
        what = f"data at {tensor.start} to {end}, but the data area is {low} to {high}"
        error = self.entry_error(what, name, trail, field_of["place"], "bounds")
        if end <= high or high < self.end:
            raise error
        # The file may be cut short: check_whole() says so, or `partial` leaves it out.
        self.missing[name] = tensor, error

    def check_whole(self, *trail: Any) -> None:
        """Raise an error that counts the missing tensors, if some are: see add_tensor().

        It is at `trail`, or where the index places the first of them.
        """
        if not self.missing or self.partial:
            return
        last_end = 0
        for tensor, error in self.missing.values():
            trail = trail or error.trail
            last_end = max(last_end, tensor.start + tensor.stored_nbytes)
        whole = len(self.tensors)
        what = f"cut short: {plural(self.end, 'byte')}, the index wants {last_end}; "
        what += f"{whole} of {whole + len(self.missing)} tensors are whole"
        if whole:
            what += f"; {option('partial=True')} takes the whole ones"
        raise self.error(what, *trail, check="bounds")

    def error(self, what: str, *trail: Any, offset: "Optional[int]" = None, tensor: Any = None,
              check: str = "index", error_class: Any = FormatError) -> FormatError:
        """Return the error of a field; complete() knows where it is."""
        field = format_trail(trail) or self.root
        error = error_class(what, offset, field, tensor, self.source.path, check)
        error.trail = trail
        return error

    def entry_error(self, what: str, tensor: "Optional[str]", trail: Trail, field: str,
                    check: str = "index", error_class: Any = FormatError) -> FormatError:
        """Return the error of a tensor at a field of its entry; "": at the entry."""
        if field:
            trail += (field,)
        return self.error(what, *trail, tensor=tensor, check=check, error_class=error_class)


def size_message(tensor: Tensor, need: int) -> str:
    """Return that a tensor needs more or fewer bytes than are stored."""
    wanted = need if need < 1 << 64 else "more than 2**64"
    text = f"{tensor.dtype} {short_repr(tensor.shape)} needs {wanted}"
    return f"{tensor.stored_nbytes} bytes stored, {text}"


# -- [6d] Format -------------------------------------------------------------------------


# Each format adds itself at the end of its section. Generations are later formats.
FORMATS: "Tuple[Format, ...]" = ()
GENERATIONS: "Tuple[Format, ...]" = ()


class Unfit(ValueError):
    """What a format cannot hold; `problems`: as of Format.problems()."""

    problems: "List[Tuple[Optional[str], str]]" = []


class Format:
    """What every format says; its docstring draws the layout. FORMATS has one of each.

    >>> FORMATS[0], FORMATS[0].SUFFIXES, "bfloat16" in FORMATS[0].DTYPES
    (<Format mag>, ('.mag',), False)
    """

    NAME = FAMILY = ""  # as in load(format=); FAMILY: of all its generations
    TITLE = ""  # as a person calls it
    SUFFIXES: "Tuple[str, ...]" = ()
    MAGICS: "Tuple[bytes, ...]" = ()  # how its files begin
    REFUSED: "Dict[bytes, str]" = {}  # how refused files begin -> name; 0: any digit
    CODEC: Any = None  # the class that reads its index
    DTYPES: Any = ()  # that it can hold
    HOLDS = ""  # what besides tensors
    OPTIONS: "Dict[str, str]" = {}  # of save: name -> doc
    FILE_ATTRS: "Sequence[str]" = ()  # File.attrs that save takes
    TENSOR_ATTRS: "Optional[Sequence[str]]" = ()  # Tensor.attrs that save takes; None: any
    DTYPE_ATTRS: "Tuple[str, ...]" = ()  # that describe a type which is not known here
    CAST_DROPS: "Tuple[str, ...]" = ()  # others that a cast drops
    DIGESTS: "Dict[str, int]" = {}  # algorithms of its checksums -> hexadecimal digits
    HASHES_DECODED = False  # its checksums are of decoded bytes; write() hashes, then yields
    VERSION = ""  # the option version= of save for this generation
    MAX_RANK = MAX_TENSORS = 1 << 31  # dimensions of a tensor; tensors in a file
    DIM_BITS = 64  # of a dimension
    ALIGN = 1  # tensors begin at multiples of it, with padding between
    PAD_END: "Sequence[str]" = ()  # what padding may follow at the end: "structure", "data"
    TEXT_METADATA = False  # its metadata are any text to text
    INDEX_FIRST = False  # places stand in front of tensors: partial=True
    STRICT_END = False  # bytes behind the end are an error of verify()
    SPARSE = False  # it holds sparse tensors
    SORTED = False  # the index is: a File is then saved in the order of its data
    READ_ONLY = ""  # why it is never written

    def __repr__(self) -> str:
        return f"<Format {self.NAME}>"

    def detect(self, head: bytes) -> bool:
        """Return whether a file that begins so is of this format, of any generation."""
        for magic in self.MAGICS + tuple(self.REFUSED):
            if head.startswith(magic):
                return True
        return False

    def read(self, reading: Reading) -> Any:
        """Return (attrs, metadata) of a file, and add its tensors without reading them."""
        raise NotImplementedError

    def make_file(self, reading: Reading, attrs: Facts, metadata: Facts) -> File:
        """Return the File of what was read."""
        file = File(self, reading.source, attrs, metadata, reading.tensors)
        file.others = reading.others
        file.rest = reading.rest
        return file

    def write(self, items: Items, metadata: Facts, attrs: Facts, options: Facts) -> Blocks:
        """Return a file in blocks; ValueError, before, for what it cannot hold."""
        raise NotImplementedError

    def padding(self, start: int, stop: int, before: str, after: str, attrs: Facts) -> Any:
        """Return (nbytes, byte) of the padding that a gap begins with.

        `before`, `after`: what is around it, "structure", "data" or "end" (of the file).
        """
        is_padded_end = after == "end" and before in self.PAD_END
        if after == "data" or is_padded_end:
            return min(stop - start, -start % self.ALIGN), 0
        return 0, 0

    def checksums(self, tensor: Tensor) -> Any:
        """Yield (label, Tensor, digest) of each checksum of a tensor or its components."""
        return iter(())

    def inner_checksums(self, part: Tensor) -> Any:
        """Yield, as checksums(), those among the stored bytes of a tensor or a component."""
        return iter(())

    def hashed_blocks(self, part: Tensor) -> Blocks:
        """Return the bytes of a Tensor of checksums() that its digest is of."""
        return part.iter_stored()

    def has_odd_bytes(self, tensor: Tensor) -> bool:
        """Return whether odd_byte() has to read the tensor."""
        return False

    def odd_byte(self, tensor: Tensor) -> Any:
        """Return (position, why) of a byte that no value has, or None."""
        return None

    def notes(self, file: File) -> "Notes":
        """Yield lists of (tensor or None, what): what a reader may stumble over.

        Each is of one kind, such as what the real library refuses, though it is saved
        here.
        """
        return iter(())

    def other_checksums(self, attrs: Facts) -> Any:
        """Yield of which other files a file has checksums: nobody looks at them."""
        return iter(())

    def native_attrs(self, tensor: Tensor) -> Facts:
        """Return the attrs that count here: those of this format, or what a user gave."""
        if tensor.format == self.NAME and tensor._attrs:
            return tensor.attrs
        if tensor.format is None and tensor._custom:
            return tensor.custom
        return {}

    def type_facts(self, tensor: Tensor) -> Facts:
        """Return what describes the values of a tensor that cannot be read here."""
        return {key: tensor.attrs.get(key) for key in self.DTYPE_ATTRS}

    def can_copy_opaque(self, tensor: Tensor) -> bool:
        """Return whether a tensor of an unknown dtype can be written as it is stored."""
        if tensor.dtype not in (None, "qfloat"):
            return False
        return not set(self.native_attrs(tensor)).isdisjoint(self.DTYPE_ATTRS)

    def option(self, key: str, default: Any, options: Facts, attrs: Facts) -> Any:
        """Return an option of save, else the attr, else the default."""
        for given in options, attrs:
            if given.get(key) is not None:
                return given[key]
        return default

    def metadata_problem(self, key: Any, value: Any) -> "Optional[str]":
        """Return why the metadata cannot hold this, or None."""
        if not self.TEXT_METADATA:
            return "there is no place for metadata"
        if not is_text(key) or not is_text(value):
            return f"{self.TITLE} holds text to text"
        return None

    def no_metadata(self, options: Facts) -> "Optional[str]":
        """Return why a file of these options has no place for metadata, or None."""
        return None

    def stored_number(self, value: Any) -> Any:
        """Return a value of the metadata as it is read again."""
        return value

    def name_problem(self, name: str) -> "Optional[str]":
        """Return why a tensor cannot have this name, or None."""
        return None if is_text(name) else "the name is not Unicode text (a lone surrogate)"

    def custom_problem(self, tensor: Tensor, key: Any) -> "Optional[str]":
        """Return why an attribute that a user gave has no place here, or None."""
        if self.TENSOR_ATTRS is None:
            return None
        if tensor.format is None and key in self.TENSOR_ATTRS:
            return None
        return "there is no place for it"

    def custom_problems(self, tensor: Tensor) -> "Dict[Any, str]":
        """Return what is wrong with the attributes that a user gave, by their keys."""
        problems = {}
        for key in tensor._custom or ():
            why = self.custom_problem(tensor, key)
            if why:
                problems[key] = f"attribute {short_repr(key)}: {why}"
        return problems

    def tensor_problems(self, tensor: Tensor) -> Any:
        """Yield why a tensor cannot be written, but for its name and attrs."""
        if tensor.is_sparse and not self.SPARSE:
            yield "sparse; .todense() or convert(dense=True)"
        is_held = tensor.dtype in self.DTYPES and not tensor.unreadable
        if not is_held and not self.can_copy_opaque(tensor):
            what = f"{tensor.dtype} ({self.TITLE} holds {', '.join(self.DTYPES)})"
            yield tensor.unreadable or what + dtype_remedy(self, str(tensor.dtype))
        if tensor.ndim > self.MAX_RANK:
            yield f"{tensor.ndim} dimensions, {self.MAX_RANK} is the limit"
        if max(tensor.shape, default=0) >> self.DIM_BITS:
            yield f"a dimension over 2**{self.DIM_BITS}-1"

    def problems(self, items: Items, metadata: Facts) -> "List[Tuple[Optional[str], str]]":
        """Return (name, why) of tensors that cannot be written; None: metadata."""
        found: "List[Tuple[Optional[str], str]]" = []
        texts = []
        for key, value in metadata.items():
            why = self.metadata_problem(key, value)
            if why:
                texts.append(f"{short_repr(key)} = {short_repr(value)} ({why})")
        if texts:
            found.append((None, ", ".join(texts) + "; " + metadata_remedy(self, metadata)))
        for name, tensor in items:
            found += [(name, why) for why in self.tensor_problems(tensor)]
            if tensor._custom and (tensor.format is None or self.TENSOR_ATTRS is None):
                found += [(name, why) for why in self.custom_problems(tensor).values()]
            name_why = self.name_problem(name)
            if name_why:
                found.append((name, name_why))
        return found

    def raise_problems(self, problems: "List[Tuple[Optional[str], str]]") -> None:
        """Raise Unfit if there are problems: a line for each."""
        if not problems:
            return
        lines = []
        if len(problems) > 1:
            lines.append(f"{len(problems)} things:")
        for name, text in problems:
            owner = "metadata " if name is None else f"tensor {safe_repr(name)}: "
            lines.append(owner + text)
        error = Unfit(f"{self.TITLE} cannot hold {join_lines(lines)}")
        error.problems = problems
        raise error

    @staticmethod
    def iter_file(head: bytes, items: Items, starts: Any, end: int, tail: bytes = b"") -> Blocks:
        """Yield a file: the head, each tensor at its start, zeros between, the tail."""
        for _, tensor in items:
            if tensor.encoding == "zstd" and not tensor.unreadable:
                zstd_module()  # raises without one, before the first byte
                break
        yield head
        at = len(head)
        for (_, tensor), start in zip(items, starts):
            if start > at:
                yield bytes(start - at)
            if tensor.unreadable:
                yield from tensor.iter_stored()
            else:
                yield from tensor.iter_bytes()
            at = start + tensor.nbytes
        yield bytes(end - at) + tail


# -- [6e] sparse -------------------------------------------------------------------------

INDEX_TYPES = ("uint64", "uint32")


class Sparse(Tensor):
    """A tensor that stores some of its elements, csr or coo; read as its dense form.

    `stored`: the Tensor of these elements, or of a blob that holds all.
    `open_parts(decode)` returns the Tensors by role, or raises what is wrong with them;
    only with `decode` it decodes one of them to learn how long the others are.
    `is_sorted`: the columns of each row of csr rise.
    """

    __slots__ = ("stored", "open_parts", "is_blob", "is_sorted", "_components")
    is_sparse = True

    def __init__(self, stored: Tensor, name: str, shape: Shape, open_parts: Any,
                 is_blob: bool = False, is_sorted: bool = False, attrs: "Optional[Facts]" = None,
                 custom: "Optional[Facts]" = None, format: "Optional[str]" = None) -> None:
        super().__init__(name, stored.dtype, shape, stored.source, stored.start,
                         stored.stored_nbytes, None, "<", "sparse", None, attrs, custom, format)
        self.stored = stored
        self.open_parts = open_parts
        self.is_blob = is_blob
        self.is_sorted = is_sorted
        self._components: "Optional[TensorMap]" = None  # those checked

    @property
    def components(self) -> "Dict[str, Tensor]":
        """The parts: values, and indptr and indices (csr) or coords (coo)."""
        parts = self._components or self.find_kept("parts")
        if parts is None:
            parts = self.check_parts()
            if self.is_blob:  # they were decoded
                self.keep("parts", parts, sum([part.nbytes for part in parts.values()]))
            else:
                self._components = parts
        return Map(parts.items())

    def check_parts(self) -> TensorMap:
        """Return the parts; raise what is wrong with them."""
        try:
            parts: TensorMap = self.open_parts(True)
            for part in parts.values():
                part.check_readable()
            count = parts["values"].size
            if count > self.size:
                raise FormatError(f"{count} values, but {self.size} elements")
            why = find_bad_index(self.shape, parts, self.is_sorted)
        except FormatError as error:
            raise self.error(error.what, type(error), error.field or "data")
        if why:
            raise self.error(why)
        return parts

    def stored_parts(self) -> TensorMap:
        parts = Map()
        if not self.is_blob:
            try:
                parts.update(self._components or self.open_parts(False))
            except FormatError:  # .components raises it again
                pass
        parts[""] = parts.pop("values", self.stored)
        return parts

    def iter_bytes(self) -> Blocks:
        """Yield the dense form: zeros, and the values in their places."""
        parts = self.components
        size = self.check_readable()
        if self.nbytes > MAX_DENSE:
            what = f"{self.nbytes} bytes if dense, MAX_DENSE = {MAX_DENSE}"
            raise self.error(what, Unsupported)
        if unpack_values(self.dtype, bytes(size))[0]:
            raise self.error(f"{self.dtype} has no zero", Unsupported)
        values = parts["values"].tobytes()
        places = find_places(self.shape, parts)
        order: Any = range(len(places))
        if not is_rising(places):
            order = sorted(order, key=places.__getitem__)
        done = 0  # of the order
        step = BLOCK // size
        for start in range(0, self.size, step):
            block = bytearray(min(step, self.size - start) * size)
            while done < len(order) and places[order[done]] < start + step:
                i = order[done]
                at = (places[i] - start) * size
                block[at:at + size] = values[i * size:i * size + size]
                done += 1
            yield block

    def contiguous(self) -> Tensor:
        """Return it dense, in memory."""
        item = new_tensor(self.dtype, self.shape, self.tobytes(), "<", self.name, self.format)
        return item.copy(custom=Map(self.custom.items()))

    todense = contiguous

    def copy(self, **changes: Any) -> "Sparse":
        """Return it with another name, attrs or custom ones."""
        facts = {}
        for key in Sparse.__slots__[:-1] + ("name", "shape", "attrs", "custom", "format"):
            facts[key] = getattr(self, key)
        facts.update(changes)
        made = Sparse(**facts)
        made._components = self._components
        return made

    def astype(self, dtype: Any) -> Tensor:
        """Return it with values of another dtype, in memory."""
        parts = self.components
        parts["values"] = parts["values"].astype(dtype)
        return join_sparse(parts, self.shape, self.name, self.attrs, self.custom, self.format)

    def __reduce__(self) -> Any:
        return join_sparse, (self.components, self.shape, self.name, self.attrs, self.custom,
                             self.format)

    def sort_rows(self) -> "Dict[str, Tensor]":
        """Return the components; of csr, the columns of each row rise."""
        parts = self.components
        if "indices" not in parts:
            return parts
        places = find_places(self.shape, parts)
        if is_rising(places):
            return parts
        for role in ("values", "indices"):
            part = parts[role]
            elements = sorted(zip(places, iter_parts([part.tobytes()], part.check_readable())))
            data = b"".join([element for _, element in elements])
            parts[role] = new_tensor(part.dtype, part.shape, data, "<", role)
        return parts


def component_shapes(sparse_format: str, shape: Shape, nnz: int) -> "Dict[str, Shape]":
    """Return the shapes of the components of `nnz` elements, by role."""
    if sparse_format == "csr":
        return {"values": (nnz,), "indptr": (shape[0] + 1,), "indices": (nnz,)}
    return {"values": (nnz,), "coords": (len(shape), nnz)}


def join_sparse(parts: TensorMap, shape: Shape, name: str = "", attrs: "Optional[Facts]" = None,
                custom: "Optional[Facts]" = None, format: "Optional[str]" = None,
                is_sorted: bool = False) -> Sparse:
    """Return the sparse tensor of these components."""
    def open_parts(decode: bool) -> TensorMap:
        return parts

    return Sparse(parts["values"], name, tuple(shape), open_parts, False, is_sorted, attrs, custom,
                  format)


def make_sparse(shape: "Optional[Shape]", parts: TensorMap, custom: "Optional[Facts]") -> Sparse:
    """Return the sparse tensor of components that a user gives to tensor()."""
    roles = sorted(parts)
    sparse_format = ""
    if shape is not None:
        if roles == ["coords", "values"]:
            sparse_format = "coo"
        elif len(shape) == 2 and roles == ["indices", "indptr", "values"]:
            sparse_format = "csr"
    if shape is None or not sparse_format:
        raise ValueError("a sparse tensor needs shape= and components {values, coords}, or a "
                         "shape of rank 2 and {values, indptr, indices}")
    made = {}
    nnz = parts["values"].size
    for role, dims in component_shapes(sparse_format, shape, nnz).items():
        part = parts[role]
        if role != "values" and part.dtype not in INDEX_TYPES:
            part = part.astype("uint64")
        need = count_elements(dims)
        if part.size != need:
            wanted = f"{nnz} values of shape {short_repr(shape)} need {need}"
            raise ValueError(f"{role} has {part.size} elements, {wanted}")
        made[role] = new_tensor(part.dtype, dims, part.tobytes(), "<", role)
    why = find_bad_index(shape, made)
    if why:
        raise ValueError(why)
    return join_sparse(made, shape, custom=custom)


def split_blob(sparse_format: str, shape: Shape, blob: Tensor) -> TensorMap:
    """Return the little-endian components of a blob of sparsecsr or sparsecoo."""
    size = blob.check_readable()
    if blob.encoding == "raw" and blob.stored_nbytes % size:
        raise FormatError(f"{blob.stored_nbytes} bytes, expected elements of {size}")
    data = b"".join(blob.iter_bytes())
    # Bytes in front of all elements, and of indices of each.
    if sparse_format == "csr":
        head = 8 * shape[0] + 8
        width = 8
    else:
        head = 0
        width = 8 * len(shape)
    step = width + size
    nnz, rest = divmod(len(data) - head, step)
    if nnz < 0 or rest:
        raise FormatError(f"{len(data)} bytes, expected {head} and {step} for each element")
    found = {}
    if sparse_format == "csr":
        values = head + 8 * nnz
        found["indptr"] = data[:head]
        found["indices"] = data[head:values]
        found["values"] = data[values:]
    else:
        rows = [data[i:i + step] for i in range(0, len(data), step)]
        found["values"] = b"".join([row[width:] for row in rows])
        found["coords"] = b"".join([row[i:i + 8] for i in range(0, width, 8) for row in rows])
    components = {}
    for role, dims in component_shapes(sparse_format, shape, nnz).items():
        dtype = blob.dtype if role == "values" else "uint64"
        components[role] = new_tensor(dtype, dims, found[role], "<", role)
    return components


def find_bad_index(shape: Shape, parts: TensorMap, is_sorted: bool = False) -> "Optional[str]":
    """Return what is wrong with the indices, or None. O(stored elements)."""
    nnz = parts["values"].size
    parts = decode_indices(parts)
    if "coords" in parts:
        axes = list(zip(split_axes(parts), shape))
    else:
        indptr = parts["indptr"].data
        axes = [(parts["indices"].data, shape[1])]
        if indptr[0] != 0 or indptr[shape[0]] != nnz:
            return "indptr does not go from 0 to the number of values"
        for i in range(shape[0]):
            if indptr[i] > indptr[i + 1]:
                return f"indptr falls in row {i}"
    if nnz:
        for numbers, n in axes:
            largest = max(numbers)
            if largest >= n:
                return f"an index is outside the shape: {largest} of {n}"
    places = find_places(shape, parts)
    if is_rising(places):
        return None
    if is_sorted and "indptr" in parts:
        return "the columns do not rise in each row"
    places.sort()
    for a, b in zip(places, places[1:]):
        if a == b:
            return f"element {short_repr(a)} occurs twice"
    return None


def decode_indices(parts: TensorMap) -> TensorMap:
    """Return the components; indices that are encoded are decoded once, in memory."""
    found = Map(parts.items())
    for role, part in parts.items():
        if role != "values" and part.encoding != "raw":
            found[role] = part.contiguous()
    return found


def is_rising(places: "Iterable[Any]") -> bool:
    """Return whether each is larger than the one before."""
    last: Any = None
    for place in places:
        if last is not None and place <= last:
            return False
        last = place
    return True


def split_axes(parts: TensorMap) -> "List[Any]":
    """Return the coordinates of coo: of each axis those of all elements."""
    coords = parts["coords"]
    data = coords.data
    rank, nnz = coords.shape
    return [data[i * nnz:(i + 1) * nnz] for i in range(rank)]


def find_places(shape: Shape, parts: TensorMap) -> "List[Any]":
    """Return the row-major number of each stored element; of long ones coordinates."""
    if "coords" in parts:
        axes = split_axes(decode_indices(parts))
        if count_elements(shape) >> 64:  # numbers of rank x 64 bits: time rank x rank
            return list(zip(*axes))
        places = [0] * parts["values"].size
        for numbers, n in zip(axes, shape):
            places = [place * n + i for place, i in zip(places, numbers)]
        return places
    indptr = parts["indptr"].data
    indices = parts["indices"].data
    return [i * shape[1] + column for i in range(shape[0])
            for column in indices[indptr[i]:indptr[i + 1]]]


# -- [7a] mag ----------------------------------------------------------------------------


class Mag(Format):
    """.mag of magnetron, storage version 1 (its specification text; release 0.1.2).

    0      magic "MAG!" 4 | version, checksum, num_tensors, num_meta_kv, aux: u32 each
    24     num_meta_kv x: type u32 (0 u64, 1 i64, 2 float64) | payload 8 |
             key_length u32 | key
           num_tensors x, in the layout of the specification text:
             key_length u32 | key | shape i64[6] | dtype u8 | data_length u64 |
             data_offset u64 | aux u32
           or in that of the real library 0.1.2:
             dtype u8, rank u8, 0, 0 | numel u64 | data_offset u64 | shape u64[rank] |
             key_length u32 | key
    data   of each tensor, at a multiple of 64, with padding before it and behind it

    The checksum is CRC-32 from the magic to the last record, with 0 in its own field; the
    library's is CRC-32C of what follows the field, and CRC-32 of that is taken, too. No
    field tells the layouts apart: it is the one whose records end where a checksum fits.
    The specification's is written, both are read. Padding is 00; that of 0.1.2 is ff, and
    00 behind the last data, where the writer had left room. Unused places of a shape hold
    0, or -1 if there are no elements. magnetron 0.1.2 lists no tensors, and opens no file
    with metadata of type 0, which integers from 0 on are. Snapshots 100 and 200 are not
    read.
    """

    NAME = FAMILY = TITLE = "mag"
    VERSION = "1"
    SUFFIXES = (".mag",)
    HOLDS = "metadata: numbers; up to 6 dimensions"
    MAGICS = (b"MAG!",)
    REFUSED = {b"MAG&": "MAG& (magnetron before July 2025)"}
    # The file has the place of a dtype in this row.
    DTYPES = ("float32", "float16", "bool", "int32")
    OPTIONS = {"version": "1, or 300 for magnetron 0.2"}
    FILE_ATTRS = ("version", "layout")
    TENSOR_ATTRS = ("aux",)
    MAX_RANK = 6
    DIM_BITS = 63
    ALIGN = 64
    PAD_END = ("data",)
    INDEX_FIRST = True
    HEADER = RecordType(
        ("magic", "4s", "mag"),
        ("version", "I", "storage version"),
        ("checksum", "I", "CRC-32 of all up to the last record, this field 0"),
        ("num_tensors", "I", "tensor records"),
        ("num_meta_kv", "I", "metadata records"),
        ("aux", "I", "reserved"))
    META = RecordType(
        ("type", "I", "0 u64, 1 i64, 2 float64"),
        ("payload", "8s", "the value's bits"),
        ("key_length", "I", "bytes of the key"),
        ("key", "text", "name of the number"))
    SPEC = RecordType(
        ("key_length", "I", "bytes of the key"),
        ("key", "text", "name of the tensor"),
        ("shape", "6q", "dimensions, then fill"),
        ("dtype", "B", "0-3: f32 f16 bool i32"),
        ("data_length", "Q", "bytes"),
        ("data_offset", "Q", "offset in the file"),
        ("aux", "I", "reserved"))
    M012 = RecordType(
        ("aux", "I", "dtype + 256 * rank"),
        ("numel", "Q", "elements"),
        ("data_offset", "Q", "offset in the file"),
        ("shape", lambda values: f"{values[0] >> 8 & 255}Q", "dimensions"),
        ("key_length", "I", "bytes of the key"),
        ("key", "text", "name of the tensor"))
    # Struct codes of payloads; the type is the place.
    NUMBERS = "Qqd"
    SPEC_FIELD_OF = dict(name="key", size="data_length", place="data_offset")
    M012_FIELD_OF = dict(name="key", size="numel", place="data_offset")

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the header says how many records there are
        reading.check_magic(self, b"MAG!")
        values, at = reading.record(0, self.HEADER)
        _, version, checksum, num_tensors, num_meta_kv, aux = values
        if version != 1:
            what = f"version {version} is not supported (only 1 and 300)"
            if version in (100, 200) and reading.source.read(32, 4) == b"SRP!":
                # Those of snapshots have it, "storage 100" has not.
                what += "; tensorfmt 0.3.0 reads it"
            # There was never a version 0.
            error_class = Unsupported if version else FormatError
            raise reading.error(what, "version", error_class=error_class)
        # A record of metadata has at least 16 bytes, one of a tensor 24.
        left = reading.end - at
        reading.check_range(num_meta_kv, "num_meta_kv", high=left // 16)
        left -= 16 * num_meta_kv
        reading.check_range(num_tensors, "num_tensors", high=left // 24)
        # 2 records of metadata, then of tensors, which are of one of two types
        numbers, at = self.read_records(reading, at, self.META, "metadata", num_meta_kv)
        record_type, rows, end = self.find_record_type(reading, checksum, num_tensors, at)
        # The checksum agrees: this is what the writer meant, and no damage.
        if aux:
            raise reading.error(f"aux is {aux}, version 1 has 0", "aux",
                                error_class=Unsupported)
        metadata = self.read_numbers(reading, numbers)
        # 3 each record of a tensor is a Tensor
        is_spec = record_type is self.SPEC
        if is_spec:
            open_entry = self.open_spec
            field_of = self.SPEC_FIELD_OF
        else:
            self.check_offsets(reading, rows)
            open_entry = self.open_012
            field_of = self.M012_FIELD_OF
        for i, row in enumerate(rows):
            trail = "tensors", i
            with reading:
                tensor = open_entry(reading, trail, row)
                reading.add_tensor(tensor, trail, end, reading.end, field_of)
        reading.check_whole()
        # 4 without tensors the metadata tell: 0.1.2 writes CRC-32C, and no u64
        if not rows:
            has_u64 = 0 in [row[0] for row in numbers]
            is_spec = has_u64 or checksum != crc32c(reading.source.read(12, end - 12))
        layout = "spec" if is_spec else "magnetron-0.1.2"
        return {"version": 1, "layout": layout}, metadata

    @staticmethod
    def check_offsets(reading: Reading, rows: "List[Any]") -> None:
        """Raise if records of M012 are those of the commit whose offsets begin with 0.

        In the place of numel it has bytes, with their padding.
        """
        if rows and rows[0][2] == 0 and rows[0][1] % 64 == 0:
            what = "relative offsets (magnetron commit 6bc9747, unreleased) are not read"
            raise reading.error(what, "tensors", 0, "data_offset",
                                error_class=Unsupported)

    @staticmethod
    def read_records(reading: Reading, at: int, record_type: RecordType, name: str,
                     count: int) -> "Tuple[List[Any], int]":
        """Return (records, where they end)."""
        rows = []
        for i in range(count):
            row, at = reading.record(at, record_type, name, i)
            rows.append(row)
        return rows, at

    def find_record_type(self, reading: Reading, checksum: int, num_tensors: int,
                         at: int) -> "Tuple[RecordType, List[Any], int]":
        """Return (SPEC or M012, the records of tensors, where they end).

        It is the first whose records are whole and end where the checksum fits.
        """
        before = reading.regions
        faults = []
        for record_type in self.SPEC, self.M012:
            reading.regions = list(before)
            try:
                rows, end = self.read_records(reading, at, record_type, "tensors",
                                              num_tensors)
                self.check_checksum(reading, checksum, end)
            except FormatError as error:
                # It would be in a cycle with this frame.
                error.__traceback__ = None
                faults.append((error, reading.regions))
                continue
            # The length of the first key stands where M012 has its rank, in byte 1.
            if record_type is self.SPEC and rows and 1 <= rows[0][0] >> 8 <= self.MAX_RANK:
                self.check_one_layout(reading, checksum, num_tensors, at)
            return record_type, rows, end
        # The error is that of SPEC, unless only the records of M012 are whole.
        fault, regions = faults[0]
        if fault.check != "checksum" and faults[1][0].check == "checksum":
            fault, regions = faults[1]
        reading.regions = regions
        raise fault

    def check_one_layout(self, reading: Reading, checksum: int, num_tensors: int,
                         at: int) -> None:
        """Raise if records of SPEC, whose first key is long, are those of M012, too."""
        probe = Reading(reading.source)
        try:
            _, end = self.read_records(probe, at, self.M012, "tensors", num_tensors)
            self.check_checksum(probe, checksum, end)
        except FormatError:
            return
        what = ("the records are right in both layouts of version 1: readers of each would "
                "find other tensors")
        raise reading.error(what, "tensors", offset=at, check="magic",
                            error_class=Unsupported)

    @staticmethod
    def check_checksum(reading: Reading, checksum: int, end: int) -> None:
        """Raise unless it is CRC-32 of all, itself as 0, or either CRC of [12, end)."""
        tail = reading.source.read(12, end - 12)
        whole = crc32(tail, crc32(b"MAG!" + pack("<II", 1, 0)))
        if checksum != whole and checksum != crc32(tail) and checksum != crc32c(tail):
            what = f"checksum: {checksum:08X} stored, CRC-32 gives {whole:08X}, "
            what += f"CRC-32C {crc32c(tail):08X}"
            raise reading.error(what, "checksum", check="checksum")

    def read_numbers(self, reading: Reading, rows: "List[Any]") -> Facts:
        """Return the metadata: numbers by their keys."""
        metadata = Map()
        for i, (number_type, payload, _, raw) in enumerate(rows):
            key = self.key_text(reading, raw, ("metadata", i))
            if key in metadata:
                what = f"metadata key {short_repr(key)} twice"
                raise reading.error(what, "metadata", i, "key")
            if number_type > 2:
                what = f"metadata {short_repr(key)} has type {number_type}, not 0, 1 or 2"
                raise reading.error(what, "metadata", i, "type", error_class=Unsupported)
            metadata[key], = unpack_from("<" + self.NUMBERS[number_type], payload, 0)
        return metadata

    @staticmethod
    def key_text(reading: Reading, raw: bytes, trail: Trail) -> str:
        text = decode_text(raw)
        if text is None:
            raise reading.entry_error("the key is not UTF-8", None, trail, "key")
        return text

    def open_spec(self, reading: Reading, trail: Trail, row: "Tuple[Any, ...]") -> Tensor:
        """Return the tensor of a SPEC."""
        name = self.key_text(reading, row[1], trail)
        places = row[2:8]
        number, nbytes, offset, aux = row[8:]
        # Of no bytes, any offset does.
        if not nbytes:
            offset = min(offset, reading.end)
        # The shape ends at the first -1; if there are data, so that no dimension is 0,
        # also at the first 0. All places behind it are alike.
        rank = 0
        while rank < 6 and places[rank] != -1 and (places[rank] or not nbytes):
            rank += 1
        if min(places) < -1 or len(set(places[rank:])) > 1:
            what = f"shape {list(places)} is not dimensions from 0 on, then all -1 or all 0"
            raise reading.entry_error(what, name, trail, "shape", "sizes")
        dtype = self.dtype_of(reading, number, trail, "dtype", name)
        attrs = {"aux": aux} if aux else None
        return Tensor(name, dtype, places[:rank], reading.source, offset, nbytes,
                      attrs=attrs, format=self.NAME)

    def open_012(self, reading: Reading, trail: Trail, row: "Tuple[Any, ...]") -> Tensor:
        """Return the tensor of an M012."""
        aux, numel, offset = row[:3]
        shape = row[3:-2]
        name = self.key_text(reading, row[-1], trail)
        need = count_elements(shape)
        what = ""
        if aux >> 16 or not 1 <= len(shape) <= 6:
            field = "aux"
            what = f"aux is 0x{aux:x}: a rank of 1 to 6 in its second byte, 0 above"
        elif min(shape) < 1 or max(shape) >= 1 << 63:
            field = "shape"
            what = f"a dimension is 0 or over 2**63-1: {short_repr(shape)}"
        elif numel != need:
            field = "numel"
            what = f"{numel} elements, the shape {short_repr(shape)} has {need}"
        if what:
            raise reading.entry_error(what, name, trail, field, "sizes")
        dtype = self.dtype_of(reading, aux & 255, trail, "aux", name)
        nbytes = numel * ITEMSIZE[dtype]
        return Tensor(name, dtype, shape, reading.source, offset, nbytes,
                      format=self.NAME)

    def dtype_of(self, reading: Reading, number: int, trail: Trail, field: str,
                 name: str) -> str:
        if number < 4:
            return self.DTYPES[number]
        what = f"dtype {number} is not 0 to 3"
        raise reading.entry_error(what, name, trail, field, error_class=Unsupported)

    def padding(self, start: int, stop: int, before: str, after: str,
                attrs: Facts) -> "Tuple[int, int]":
        nbytes, zero = super().padding(start, stop, before, after, attrs)
        if attrs["layout"] == "spec":
            return nbytes, zero
        # What the writer had left room for, and did not need.
        if after == "end" and not nbytes:
            return stop - start, 0
        return nbytes, 255

    def notes(self, file: File) -> "Notes":
        reading = Reading(file.source)
        numbers, _ = self.read_records(reading, 24, self.META, "metadata",
                                       len(file.metadata))
        keys = [safe_repr(row[3].decode()) for row in numbers if row[0] == 0]
        if keys:
            what = f"magnetron 0.1.2 opens no file with metadata of type 0: {join_names(keys)}"
            yield [(None, what)]

    def metadata_problem(self, key: Any, value: Any) -> "Optional[str]":
        if not is_text(key) or "\0" in key or not 0 < len(encode_text(key)) < 1 << 16:
            return "keys are text of 1 to 65535 bytes without NUL"
        if isinstance(value, float):
            return None
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
            return None
        return "mag holds numbers only: u64, i64, float64"

    def stored_number(self, value: Any) -> Any:
        return int(value) if type(value) is bool else value

    def name_problem(self, name: str) -> "Optional[str]":
        if not name or "\0" in name:
            return "an empty name, or a NUL in it"
        return super().name_problem(name)

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        self.raise_problems(self.problems(items, metadata))
        # 1 records of the metadata
        records = []
        for key, value in metadata.items():
            number_type = 0  # u64
            if isinstance(value, float):
                number_type = 2
            elif value < 0:
                number_type = 1
            raw = encode_text(key)
            code = f"<I{self.NUMBERS[number_type]}I"
            records.append(pack(code, number_type, value, len(raw)))
            records.append(raw)
        # 2 records of the tensors, each of 73 bytes and a name; the data begin after all
        names = [encode_text(name) for name, _ in items]
        at = 24 + len(b"".join(records + names)) + 73 * len(names)
        if items:
            at = round_up(at, 64)
        starts = []
        for raw, (_, tensor) in zip(names, items):
            nbytes = tensor.nbytes
            if at + nbytes >> 64:
                raise ValueError("mag cannot hold 2**64 bytes of data")
            fill = 0 if nbytes else -1
            places = tensor.shape + (fill,) * (6 - tensor.ndim)
            number = self.DTYPES.index(tensor.dtype)
            records.append(pack("<I", len(raw)))
            records.append(raw)
            records.append(pack("<6qBQQI", *places, number, nbytes, at, 0))
            starts.append(at)
            at = round_up(at + nbytes, 64)
        # 3 the header, with the checksum of all
        index = b"".join(records)
        counts = len(items), len(metadata), 0
        header = self.HEADER.pack(b"MAG!", 1, 0, *counts)
        checksum = crc32(index, crc32(header))
        header = self.HEADER.pack(b"MAG!", 1, checksum, *counts)
        return self.iter_file(header + index, items, starts, at)


FORMATS += (Mag(),)


# -- [7b] ztensor ------------------------------------------------------------------------


def iter_digests(tensor: Tensor, key: str) -> "Iterator[Tuple[str, Tensor, str]]":
    """Yield (label, Tensor, digest) of what a tensor stores, where attrs have one."""
    for role, part in tensor.stored_parts().items():
        digest = part.attrs.get(key)
        if digest is None:
            continue
        label = ""
        if role:
            label = role + ": "
        yield label, part, digest


def iter_maps(value: Any) -> "Iterator[Facts]":
    """Yield the maps in a value, of any depth."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if type(value) is Map:
            yield value
            waiting += reversed(list(value.values()))
        elif type(value) is list:
            waiting += reversed(value)


def has_wide_int(value: Any) -> bool:
    """Return whether the real library cannot read an integer in a value."""
    if isinstance(value, dict):
        value = list(value) + list(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(has_wide_int, value))
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 64


def pack_pairs(found: Facts, keys: "Iterable[Any]", sort: Any = True) -> bytes:
    """Return pairs of a map in CBOR, of those keys that it has."""
    out = []
    for key in keys:
        if key in found:
            out.append(cbor_scalar(key))
            out.append(cbor_dumps(found[key], sort=sort))
    return b"".join(out)


def blob_problem(start: int, nbytes: int, align: int, end: int) -> "Optional[str]":
    """Return what is wrong with the place of a blob that ends before `end`, or None."""
    if align <= start <= end - nbytes and start % align == 0:
        return None
    return f"{nbytes} bytes at {start}, expected a multiple of {align}, all before {end}"


def is_level(value: int) -> bool:
    """Return whether zstd has this level of compression."""
    return -131073 < value < 23


class ZTensor(Format):
    """zTensor 0.1 (specification 0.1.0; crate and wheels ztensor 0.1.0 to 0.1.4).

    0      magic "ZTEN0001" 8 | zeros up to 64 (if there is a tensor)
    64     blob of tensor 0 | zeros to a multiple of 64 | blob of tensor 1 | ...
    index  CBOR array, one map per tensor (N bytes, after the last blob, not aligned)
    end-8  N u64

    Real maps are of indefinite length, real zstd frames without content size. Tensors of
    another layout, dtype or encoding are listed, with their bytes. Layout "sparse":
    sparse_format "csr" (indptr, indices) or "coo" (coords), each an inline array or a map
    that places a blob; the entry's blob: the values. Those of the real library have one blob:

    "sparsecsr"  indptr u64[rows + 1] | indices u64[nnz] | values
    "sparsecoo"  of each element the coordinates u64[rank] | value

    The real library refuses a file with layout "sparse", or with another layout, dtype or
    encoding than it knows, and it dies of a NUL in a name. With zstd, data_endianness has
    no effect.
    """

    NAME = FAMILY = "ztensor"
    TITLE = "zTensor 0.1"
    VERSION = "0.1"
    SUFFIXES = (".zt", ".ztensor")
    HOLDS = "custom fields per tensor, checksums, zstd, big-endian data"
    MAGICS = (b"ZTEN",)
    REFUSED = {
        b"ZTEN1000": "zTensor 1 (the package ztensor 1.2.3 reads it)",
        b"ZTEN0000": "another version of zTensor"}
    CODEC = Cbor
    DTYPES = (
        "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
        "uint64", "uint32", "uint16", "uint8", "bool")
    LAYOUTS = ("dense", "sparse", "sparsecsr", "sparsecoo")
    ENCODINGS = ("raw", "zstd")
    # How many digits each algorithm has.
    DIGESTS = {"crc32c": 8, "sha256": 64}
    ALIGN = 64
    SPARSE = True
    CHOICES = Schema(
        ("encoding", choice(*ENCODINGS), None, "raw or zstd"),
        ("level", typed(int, "-131072 to 22", is_level), None, "of zstd, 3 unless given"),
        ("data_endianness", choice("little", "big"), None, "little or big"),
        ("checksum", choice("none", "crc32c", "sha256"), None, "none, crc32c or sha256"))
    OPTIONS = dict([(key, row[1]) for key, row in CHOICES.rows.items()],
                   version="0.1, or 2 for ztensor 2")
    BIG_ZSTD = ("data_endianness='big' has no effect on encoding='zstd', whose data are "
                "little-endian; encoding='raw' has both")
    # Fields of an entry: attributes of the Tensor, how bytes are stored, and those of
    # layout "sparse". All others are the user's.
    KEYS: "Tuple[str, ...]" = ("name", "offset", "size", "dtype", "shape")
    MECHANICS: "Tuple[str, ...]" = ("layout", "encoding", "data_endianness", "checksum")
    SPARSE_KEYS: "Tuple[str, ...]" = ("sparse_format", "nnz", "indptr", "indices",
                                      "coords")
    REPEATED = ("size", "dtype", "layout", "shape", "encoding", "data_endianness")
    FILE_ATTRS = ("version",)
    TENSOR_ATTRS = None
    DTYPE_ATTRS = ("dtype", "layout") + SPARSE_KEYS
    MAGIC_RECORD = RecordType(("magic", "8s", "zTensor 0.1"))
    TRAILER = RecordType(("index_size", "Q", "bytes of CBOR before"))
    STORED = (
        ("offset", UINT64, True, "first stored byte"),
        ("size", UINT64, True, "bytes stored"),
        ("data_endianness", choice("little", "big"), None, "byte order, if raw"),
        ("checksum", TEXT, None, "of the stored bytes"))
    COMPONENT = Schema(
        *STORED,
        ("dtype", ANY, False, "uint64 or uint32"),
        ("encoding", ANY, False, "raw or zstd"),
        additional=(ANY, "custom field"))
    ENTRY = Schema(
        ("name", TEXT, True, "name of the tensor"),
        *STORED,
        ("dtype", TEXT, True, "type of the elements"),
        ("shape", UINT64_LIST, True, "dimensions"),
        ("layout", TEXT, False, "dense, sparse ..."),
        ("encoding", TEXT, True, "raw or zstd"),
        ("sparse_format", ANY, False, "csr or coo"),
        ("nnz", ANY, False, "elements stored"),
        ("indptr", ANY, False, "csr: row pointers", COMPONENT),
        ("indices", ANY, False, "csr: columns", COMPONENT),
        ("coords", ANY, False, "coo: coordinates", COMPONENT),
        additional=(ANY, "custom field"),
        key_type=TEXT)
    INDEX = Schema(
        additional=(ANY, "entry of a tensor", ENTRY),
        container=list,
        doc="one map per tensor")
    FIELD_OF = dict(name="name", size="size", place="offset")

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the magic
        reading.check_magic(self, b"ZTEN0001")
        reading.record(0, self.MAGIC_RECORD)  # for explain()
        # 2 the size of the index, at the end of the file
        if reading.end < 17:
            raise reading.error(f"{reading.end} bytes, at least 17 are needed", "index",
                                offset=8)
        (nbytes,), _ = reading.record(reading.end - 8, self.TRAILER)
        if not 1 <= nbytes <= reading.end - 16:
            raise reading.error("truncated: no size of an index at the end", "index_size")
        reading.check_range(nbytes, "index_size", low=1, high=MAX_INDEX,
                            limit="MAX_INDEX")
        # 3 the index: one map per tensor
        end = reading.end - 8 - nbytes
        index = reading.cbor(end, nbytes, self.INDEX, "index", whole=True, bignums=False)
        # 4 their tensors
        for i, entry in enumerate(index):
            trail = "index", i
            with reading:
                tensor = self.open_entry(reading, end, trail, entry)
                reading.add_tensor(tensor, trail, self.ALIGN, end, self.FIELD_OF)
        return {"version": "0.1.0"}, Map()

    def open_entry(self, reading: Reading, end: int, trail: Trail,
                   entry: Facts) -> Tensor:
        """Return the tensor of an entry; its data end before `end`."""
        name: Any = entry.get("name") if type(entry) is Map else None
        reading.check_schema(self.ENTRY, entry, trail, name)
        dtype = code = entry["dtype"]
        encoding = entry["encoding"]
        layout = entry.get("layout", "dense")
        attrs, custom = self.split_entry(entry)
        unreadable = None
        if layout not in self.LAYOUTS:
            unreadable = f"layout {short_repr(layout)} is not known"
        if encoding not in self.ENCODINGS:
            unreadable = f"encoding {short_repr(encoding)} is not known"
        if code not in self.DTYPES:
            unreadable = f"dtype {short_repr(code)} is not known"
            attrs["dtype"] = code
            dtype = None
        start = entry["offset"]
        nbytes = entry["size"]
        why = blob_problem(start, nbytes, self.ALIGN, end)
        if why:
            raise reading.entry_error(why, name, trail, "offset", "bounds")
        order = "<"
        if encoding == "raw" and entry.get("data_endianness") == "big":
            if ITEMSIZE.get(dtype) != 1:
                order = ">"
        tensor = Tensor(name, dtype, tuple(entry["shape"]), reading.source, start, nbytes,
                        None, order, encoding, unreadable, attrs, custom, self.NAME)
        if encoding == "zstd":
            need = 0
            if layout == "dense":
                need = tensor.size * ITEMSIZE.get(dtype, 0)
            if not nbytes or need > ZSTD_RATIO * nbytes:
                what = f"{nbytes} stored bytes cannot decompress to {short_repr(need)}"
                raise reading.entry_error(what, name, trail, "size", "sizes")
        if layout == "dense":
            return tensor
        if unreadable:
            return with_parts(self, tensor, end)
        return self.open_sparse(tensor, end)

    def split_entry(self, entry: Facts) -> "Tuple[Facts, Optional[Facts]]":
        """Return the attrs and the fields of the user, None without any, of an entry."""
        keys = self.MECHANICS
        if entry.get("layout") == "sparse":
            keys += self.SPARSE_KEYS
        attrs = {key: entry[key] for key in keys if key in entry}
        # Most have no other fields.
        if len(entry) == len(self.KEYS) + len(attrs):
            return attrs, None
        keys += self.KEYS
        custom = Map()
        for key, value in entry.items():
            if key not in keys:
                custom[key] = value
        return attrs, custom

    def find_parts(self, tensor: Tensor, fields: Facts, end: int) -> "Dict[str, Tensor]":
        """Return what maps in these fields, of any depth, place before `end`, by role."""
        parts = Map()
        for key, value in fields.items():
            for fact in iter_maps(value):
                if not self.COMPONENT.fits(fact):
                    continue
                start = fact["offset"]
                nbytes = fact["size"]
                if blob_problem(start, nbytes, self.ALIGN, end):
                    continue
                role = truncate(str(key), TRAIL_WIDTH)
                while not role or role in parts:  # "" is the tensor itself
                    role += f"[{len(parts)}]"
                parts[role] = Tensor(role, None, (), tensor.source, start, nbytes,
                                     unreadable=tensor.unreadable, attrs=fact,
                                     format=self.NAME)
        return parts

    def open_sparse(self, blob: Tensor, end: int) -> Tensor:
        """Return the sparse tensor of an entry with this blob."""
        def open_parts(decode: bool) -> TensorMap:
            return self.open_components(blob, end, decode)

        is_blob = blob.attrs["layout"] != "sparse"
        return Sparse(blob, blob.name, blob.shape, open_parts, is_blob, False, blob.attrs,
                      blob._custom, self.NAME)

    def open_components(self, blob: Tensor, end: int, decode: bool) -> TensorMap:
        """Return the components of a sparse tensor; `blob`: that of its entry."""
        attrs = blob.attrs
        shape = blob.shape
        sparse_format = attrs["layout"][6:]
        if not sparse_format:
            sparse_format = attrs.get("sparse_format")
        if sparse_format not in ("csr", "coo"):
            what = f"sparse_format is {short_repr(sparse_format)}, not csr or coo"
            if type(sparse_format) is str:
                raise Unsupported(what)
            raise FormatError(what)
        if sparse_format == "csr" and len(shape) != 2:
            raise FormatError(f"csr needs rank 2, this is rank {len(shape)}")
        if attrs["layout"] != "sparse":
            return split_blob(sparse_format, shape, blob)
        # How many elements are stored may be said by the size of the values, or by the
        # last row.
        if "nnz" in attrs:
            nnz = attrs["nnz"]
        elif blob.encoding == "raw":
            nnz = blob.stored_nbytes // blob.check_readable()
        elif sparse_format == "coo":
            raise FormatError("no nnz, which says how long encoded values are",
                              field="nnz")
        else:
            indptr = self.open_component(blob, "indptr", (shape[0] + 1,), end)
            if indptr.encoding != "raw" and not decode:
                indices = self.open_index(blob, "indices", end)
                # There are at most as many as elements.
                if indices.encoding != "raw":
                    indices.shape = (count_elements(shape),)
                return Map(values=blob, indptr=indptr, indices=indices)
            nnz = indptr.data[shape[0]]
        if not UINT64.fits(nnz):
            raise FormatError(f"nnz is {short_repr(nnz)}, not an unsigned integer",
                              field="nnz")
        if nnz > count_elements(shape):
            raise FormatError(f"{nnz} values, but {count_elements(shape)} elements",
                              field="nnz")
        components = Map()
        for role, dims in component_shapes(sparse_format, shape, nnz).items():
            components[role] = self.open_component(blob, role, dims, end)
        return components

    def open_component(self, blob: Tensor, role: str, dims: Shape, end: int) -> Tensor:
        """Return a component of a sparse tensor; raise unless it has its bytes."""
        part = blob
        if role != "values":
            part = self.open_index(blob, role, end)
        need = count_elements(dims) * part.check_readable()
        stored = part.stored_nbytes
        part = part.copy(name=role, shape=dims)
        if part.encoding == "raw":
            is_whole = need == stored
        else:
            is_whole = stored > 0 and need <= ZSTD_RATIO * stored
        if not is_whole:
            raise FormatError(size_message(part, need))
        return part

    def open_index(self, blob: Tensor, role: str, end: int) -> Tensor:
        """Return the indices that a map places, or an array holds."""
        if role not in blob.attrs:
            raise Unsupported(f"no {role} of uint64 or uint32")
        fact = blob.attrs[role]
        if UINT64_LIST.fits(fact):
            data = b"".join([pack_values("uint64", part) for part
                             in iter_parts([fact], PART)])
            return new_tensor("uint64", (len(fact),), data, "<", role)
        wrong = list(self.COMPONENT.iter_errors(fact, role))
        if wrong:
            raise FormatError(wrong[0][1], field=role)
        start = fact["offset"]
        nbytes = fact["size"]
        why = blob_problem(start, nbytes, self.ALIGN, end)
        if why:
            raise FormatError(why, field=role)
        dtype = fact.get("dtype", "uint64")
        encoding = fact.get("encoding", "raw")
        if dtype not in INDEX_TYPES or encoding not in self.ENCODINGS:
            what = f"{role}: dtype {short_repr(dtype)}, encoding {short_repr(encoding)}"
            raise Unsupported(what)
        order = "<"
        if encoding == "raw" and fact.get("data_endianness") == "big":
            order = ">"
        return Tensor(role, dtype, (), blob.source, start, nbytes, None, order, encoding,
                      attrs=fact, format=self.NAME)

    def notes(self, file: File) -> "Notes":
        refused = "ztensor 0.1.4 refuses the whole file"
        sparse = []
        unknown = []
        ended = []
        ordered = []
        for tensor in file.values():
            if tensor.attrs.get("layout") == "sparse":
                sparse.append((tensor, f"layout 'sparse': {refused}"))
            if tensor.unreadable:
                unknown.append((tensor, f"{tensor.unreadable}: {refused}"))
            if "\0" in tensor.name:
                ended.append((tensor, "a NUL in the name: ztensor 0.1.4 dies of it"))
            for part in tensor.stored_parts().values():
                why = self.order_note(part)
                if why:
                    what = f"data_endianness 'big' has no effect: {why}"
                    ordered.append((tensor, what))
        yield from (sparse, unknown, ended, ordered)

    @staticmethod
    def order_note(part: Tensor) -> str:
        """Return why the byte order "big" of a tensor or component does nothing, or ""."""
        if part.attrs.get("data_endianness") == "big":
            if part.encoding == "zstd":
                return "data of zstd are little-endian"
            if part.encoding == "raw" and part.itemsize == 1:
                return f"{part.dtype} has one byte"
        return ""

    def checksums(self, tensor: Tensor) -> "Iterator[Tuple[str, Tensor, str]]":
        # They are of the stored bytes.
        yield from iter_digests(tensor, "checksum")
        if not tensor.is_sparse:
            return
        # Where something is wrong with one component, the others are not known as its
        # parts.
        known = tensor.stored_parts()
        parts = self.find_parts(tensor, tensor.attrs, tensor.source.nbytes)
        for role, part in parts.items():
            if role not in known and "checksum" in part.attrs:
                yield role + ": ", part, part.attrs["checksum"]

    def type_facts(self, tensor: Tensor) -> Facts:
        return dict(super().type_facts(tensor),
                    layout=tensor.attrs.get("layout", "dense"))

    def can_copy_opaque(self, tensor: Tensor) -> bool:
        if tensor.unreadable is None or tensor.format != self.NAME:
            return False
        if tensor.attrs.get("layout") == "sparse" or self.has_more_bytes(tensor):
            return False
        return is_text(tensor.dtype or tensor.attrs.get("dtype"))

    @staticmethod
    def has_more_bytes(tensor: Tensor) -> bool:
        """Return whether a tensor of an unknown layout has bytes that would be lost."""
        return len(tensor.stored_parts()) > 1 or places_other_bytes(tensor)

    def write(self, items: Items, metadata: Facts, attrs: Facts, options: Facts,
              digest_of: Any = None) -> Blocks:
        """As Format.write(); `digest_of`(name, tensor): its checksum, if it is known."""
        wrong = list(self.CHOICES.iter_errors(options))
        if wrong:
            raise ValueError(wrong[0][1])
        encoding = options.get("encoding")
        if encoding == "zstd" and options.get("data_endianness") == "big":
            raise ValueError(self.BIG_ZSTD)
        plans = [self.plan(tensor, options) for _, tensor in items]
        if encoding != "zstd" and options.get("level") is not None:
            packed = [plan for plan in plans if plan["encoding"] == "zstd"
                      and not plan["copy"]]
            if not packed:
                raise ValueError("level is of zstd, which no tensor has; encoding='zstd' gives it")
        if digest_of is not None:
            for (name, tensor), plan in zip(items, plans):
                plan["digest"] = digest_of(name, tensor)
        problems = self.problems(items, metadata)
        for (name, tensor), plan in zip(items, plans):
            for why in self.plan_problems(tensor, plan, options):
                problems.append((name, why))
        self.raise_problems(problems)
        return self.iter_entries(items, plans)

    def plan(self, tensor: Tensor, options: Facts) -> Facts:
        """Return how a tensor will be stored; "copy": its stored bytes are written."""
        native = self.native_attrs(tensor)
        encoding = self.option("encoding", "raw", options, native)
        order = self.option("data_endianness", "little", options, native)
        checksum = str(self.option("checksum", "none", options, native)).partition(":")[0]
        layout = "dense"
        if self.can_copy_opaque(tensor):
            layout = native.get("layout", "dense")
            # What was decoded in memory is encoded again.
            copy = tensor.encoding != "raw" or encoding != "zstd"
        else:
            is_asked = options.get("encoding") or options.get("level")
            copy = tensor.encoding == encoding != "raw" and not is_asked
        if tensor.is_sparse:
            layout = "sparse"
        if encoding == "zstd" and not copy:
            # It raises where there is no module.
            zstd_module()
        if checksum == "sha256":
            # It raises where there is no hashlib.
            Digest("sha256")
        custom = tensor.custom
        if tensor.format is None:
            custom = {key: custom[key] for key in custom if key not in self.MECHANICS}
        return {
            "layout": layout,
            "encoding": encoding,
            "data_endianness": order,
            "checksum": checksum,
            "level": self.option("level", 3, options, {}),
            "copy": copy,
            "custom": custom}

    def plan_problems(self, tensor: Tensor, plan: Facts,
                      options: Facts) -> "Iterator[str]":
        """Yield why a tensor cannot be stored so."""
        opaque = self.can_copy_opaque(tensor)
        if not self.CHOICES.fits(plan):
            for trail, what in self.CHOICES.iter_errors(plan):
                if trail[0] == "checksum" or not opaque:
                    yield f"attribute {what}; the option {trail[0]}= replaces it"
        if opaque and self.is_changed(tensor, options):
            yield f"{tensor.unreadable}; it can only be copied as it is stored"
        elif tensor.unreadable and self.has_more_bytes(tensor):
            yield "its fields place bytes that would be lost"
        elif plan["encoding"] == "zstd" and plan["data_endianness"] == "big":
            # A file may have both.
            if options.get("data_endianness") or tensor.format is None:
                yield self.BIG_ZSTD
        try:
            # Those of a sparse tensor may be wrong.
            _ = tensor.components
        except FormatError as error:
            yield error.what

    @staticmethod
    def is_changed(tensor: Tensor, options: Facts) -> bool:
        """Return whether options ask for other bytes than those that are stored."""
        for key in ("encoding", "data_endianness"):
            if options.get(key) not in (None, tensor.attrs.get(key)):
                return True
        return False

    def custom_problem(self, tensor: Tensor, key: Any) -> "Optional[str]":
        taken = self.KEYS
        if tensor.is_sparse:
            taken += self.SPARSE_KEYS
        # In a tensor of no format they say how to store it.
        if tensor.format is not None:
            taken += self.MECHANICS
        if not isinstance(key, str) or key in taken:
            return "a custom field cannot be called so"
        value = tensor.custom[key]
        # It is tried one level deeper: the real library reads 127.
        try:
            Cbor(cbor_dumps([[{key: value}]]), bignums=False).parse()
        except (ValueError, TypeError) as error:
            return str(error)
        if has_wide_int(value):
            return "an integer below -2**63 or over 64 bits"
        return None

    def iter_entries(self, items: Items, plans: "List[Facts]") -> Blocks:
        """Yield a file: the magic, the blobs, the index and its size."""
        yield b"ZTEN0001"
        at = 8
        index = [cbor_head(4, len(items))]
        # Fields of many entries are encoded once.
        encoded: "Dict[Any, bytes]" = {}
        for (name, tensor), plan in zip(items, plans):
            custom = plan["custom"]
            entry: Facts = {}
            blobs = [(tensor, entry)]
            if isinstance(tensor, Sparse):
                custom = dict(custom)
                blobs = self.split_sparse(tensor, entry, custom)
            for part, facts in blobs:
                yield from self.iter_blob(part, plan, at, facts)
                at = facts["offset"] + facts["size"]
            entry.update(layout=plan["layout"], shape=tensor.shape)
            repeated = tuple([entry.get(key) for key in self.REPEATED])
            if repeated not in encoded:
                encoded[repeated] = pack_pairs(entry, self.REPEATED)
            index += [b"\xbf", cbor_scalar("name"), cbor_scalar(name)]
            index += [cbor_scalar("offset"), cbor_scalar(entry["offset"]),
                      encoded[repeated]]
            index.append(pack_pairs(entry, ("checksum",)))
            index += [pack_pairs(custom, sorted(custom)), b"\xff"]
        data = b"".join(index)
        yield data + self.TRAILER.pack(len(data))

    @staticmethod
    def split_sparse(tensor: "Sparse", entry: Facts,
                     custom: Facts) -> "List[Tuple[Tensor, Facts]]":
        """Return the components of a tensor with the maps that will place them.

        The values are placed by its entry, the others by new fields in `custom`.
        """
        components = tensor.sort_rows()
        values = components.pop("values")
        custom["nnz"] = values.size
        custom["sparse_format"] = "csr"
        if "coords" in components:
            custom["sparse_format"] = "coo"
        blobs = [(values, entry)]
        for role in sorted(components):
            facts: Facts = {}
            custom[role] = facts
            blobs.append((components[role], facts))
        return blobs

    @staticmethod
    def iter_blob(part: Tensor, plan: Facts, at: int, facts: Facts) -> Blocks:
        """Yield padding and stored bytes of a tensor or component; note their place."""
        encoding = plan["encoding"]
        facts["dtype"] = part.dtype or part.attrs["dtype"]
        facts["encoding"] = encoding
        if part.unreadable:
            has_order = part.attrs.get("data_endianness") is not None
        else:
            has_order = encoding == "raw" and part.check_readable() > 1
        if has_order:
            facts["data_endianness"] = plan["data_endianness"]
        start = round_up(at, 64)
        facts["offset"] = start
        yield bytes(start - at)
        if plan["copy"]:
            blocks = part.iter_stored()
        elif encoding == "zstd":
            pieces = iter_parts(part.iter_bytes(), BLOCK)
            blocks = zstd_encode(pieces, part.nbytes, plan["level"])
        elif facts.get("data_endianness") == "big":
            size = part.check_readable()
            pieces = iter_parts(part.iter_bytes(), BLOCK)
            blocks = (swap(piece, size) for piece in pieces)
        else:
            blocks = part.iter_bytes()
        known = plan.get("digest")
        digest = None
        if not known and plan["checksum"] != "none":
            digest = Digest(plan["checksum"])
        nbytes = 0
        for block in blocks:
            nbytes += len(block)
            if digest is not None:
                digest.update(block)
            yield block
        facts["size"] = nbytes
        if digest is not None:
            known = digest.text()
        if known:
            facts["checksum"] = known


FORMATS += (ZTensor(),)


# -- [7c] primitiv -----------------------------------------------------------------------


class Primitiv(Format):
    """primitiv 0.1, one Shape, Tensor, Parameter, Model or Optimizer as MessagePack
    values.

    file      = ver_major 0 | ver_minor 1 | data_type | body; no magic, no end
    Shape     = array(dims) batch                        data_type 0x000
    Tensor    = Shape bin(data)                          0x100
    Parameter = Tensor N, then N x (str, Tensor)         0x200: value and statistics
    Model     = N, then N x (array(str ...), Parameter)  0x300
    Optimizer = map(str -> uint32) map(str -> float32)   0x400

    Integers are written as ce + uint32, floats as ca; any form is read. Data: float32,
    little-endian, column-major, the batch last. Names are keys joined by ".", or
    KEY:STATISTIC; a backslash escapes ".", ":" and itself. Up to 32 dimensions are read,
    8 are written. The real library loads no file of a Shape or a Tensor alone.
    """

    NAME = FAMILY = "primitiv"
    TITLE = "primitiv 0.1"
    SUFFIXES = (".primitiv", ".model", ".optimizer")
    HOLDS = "optimizer configs (numbers) with kind=optimizer; no empty tensors"
    # The version, as it is written.
    MAGICS = (b"\xce\0\0\0\0\xce\0\0\0\1",)
    STRICT_END = True
    # Each tensor is described in front of its data.
    INDEX_FIRST = True
    CODEC = MessagePack
    DTYPES = ("float32",)
    OPTIONS = {
        "kind": "model, parameter, tensor, shape or optimizer",
        "dims": "of kind shape",
        "batch": "of kind shape, 1 unless given"}
    FILE_ATTRS = ("version", "kind", "dims", "batch")
    TENSOR_ATTRS = ("batch",)
    DIM_BITS = 32
    RANK_WRITTEN = 8
    # A name has so many parts at most.
    NAME_PARTS = 1 << 16
    KINDS = ("shape", "tensor", "parameter", "model", "optimizer")
    DATA_TYPES = range(0, 0x500, 0x100)  # of each kind
    HEADER = (
        ("ver_major", "uint32", "of format 0.1"),
        ("ver_minor", "uint32", "of format 0.1"),
        ("data_type", "uint32", "256 tensor, 768 model"))
    PARAMETERS = (("N", "uint32", "parameters"),)
    SHAPE = (
        ("dims", "[uint32", "dimensions", "dimension", 32),
        ("batch", "uint32", "samples"))
    TENSOR = SHAPE + (("data", "bin", "bytes of the tensor"),)
    NAMED = (("key", "[str", "parts of the name", "part of the name", NAME_PARTS),
             ) + TENSOR
    STATISTICS = (("N", "uint32", "statistics"),)
    STATISTIC = (("key", "str", "name of the statistic"),) + TENSOR
    # The maps of an Optimizer, and the type of their values.
    CONFIGS = (("uint_configs", "uint32"), ("float_configs", "float"))
    FIELD_OF = dict(name="key", size="data", place="data")

    def detect(self, head: bytes) -> bool:
        try:
            codec = MessagePack(Buffer(head))
            (major, minor, number), _ = read_rows(codec, 0, self.HEADER)
        except FormatError:
            return False
        # A file of another version is known by integers as the real library writes them.
        is_usual = head[:1] == head[5:6] == head[10:11] == b"\xce"
        return number in self.DATA_TYPES and (is_usual or (major, minor) == (0, 1))

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the header: the version, and what the file holds
        (major, minor, number), at = reading.messagepack(0, self.HEADER)
        if (major, minor) != (0, 1):
            field = "ver_major" if major else "ver_minor"
            what = f"version {major}.{minor} is not supported (only 0.1)"
            raise reading.error(what, field, error_class=Unsupported)
        if number not in self.DATA_TYPES:
            what = f"data_type {number:#05x} is not 0x000, 0x100 ... 0x400"
            raise reading.error(what, "data_type")
        kind = self.KINDS[number // 256]
        attrs: Facts = Map([("version", "0.1"), ("kind", kind)])
        # 2 Shape and Optimizer have no tensors
        if kind == "shape":
            (dims, batch), at = reading.messagepack(at, self.SHAPE)
            if not batch:
                raise reading.error("batch is 0", "batch")
            attrs.update(batch=batch, dims=dims)
            reading.note_rest(at)
            return attrs, Map()
        if kind == "optimizer":
            return attrs, self.read_configs(reading, at)
        # 3 the others are tensors, each where the last one ends
        plans: "Dict[Any, Any]" = {}
        for trail, entry in self.each_tensor(reading, kind, at):
            with reading:
                tensor = self.open_entry(reading, plans, trail, *entry)
                reading.add_tensor(tensor, trail, 0, reading.end, self.FIELD_OF)
        reading.check_whole()
        return attrs, Map()

    def each_tensor(self, reading: Reading, kind: str, at: int) -> "Iterator[Any]":
        """Yield (trail, (name, dims, batch, range of the data)) of each tensor.

        What follows a tensor is read when the caller has added it: errors come in the
        order of the file.
        """
        # What is cut off if the file ends here: it has no names yet.
        rest = f"the rest of the {kind}"
        try:
            if kind == "model":
                (count,), at = reading.messagepack(at, self.PARAMETERS)
                for i in range(count):
                    rest = f"params[{i}:{count}]"
                    trail = "params", i
                    values, at = reading.messagepack(at, self.NAMED, *trail)
                    parts, dims, batch, data = values
                    if not parts:
                        what = "key has no components"
                        raise reading.entry_error(what, None, trail, "key")
                    name = join_key(parts)
                    yield trail, (name, dims, batch, data)
                    (total,), at = reading.messagepack(at, self.STATISTICS, *trail)
                    if total:
                        at = yield from self.each_statistic(reading, trail, name, at, total)
            else:
                at = yield from self.each_of_one(reading, kind, at)
            reading.note_rest(at)
        except FormatError as error:
            is_cut = error.check == "bounds" and (reading.partial or reading.missing)
            if not is_cut:
                raise
            reading.unnamed.append(rest)

    def each_of_one(self, reading: Reading, kind: str, at: int) -> Any:
        """Yield the same of a file of one Tensor or Parameter; return where they end."""
        name = "tensor" if kind == "tensor" else "value"
        (dims, batch, data), at = reading.messagepack(at, self.TENSOR)
        reading.note_names([((row[0],), name) for row in self.TENSOR])
        yield (), (name, dims, batch, data)
        if kind == "parameter":
            (total,), at = reading.messagepack(at, self.STATISTICS)
            at = yield from self.each_statistic(reading, (), name, at, total)
        return at

    def each_statistic(self, reading: Reading, trail: Trail, name: str, at: int,
                       count: int) -> Any:
        """Yield the same of each statistic of a parameter; return where they end."""
        for i in range(count):
            inner = trail + ("stats", i)
            (key, dims, batch, data), at = reading.messagepack(at, self.STATISTIC, *inner)
            key_trail = inner + ("key",)
            reading.spend_name(name, *key_trail)
            yield inner, (name + ":" + str_of_bytes(key), dims, batch, data)
        return at

    def open_entry(self, reading: Reading, plans: "Dict[Any, Any]", trail: Trail,
                   name: str, dims: "List[int]", batch: int, data: range) -> Tensor:
        """Return a tensor, column-major; `plans`: what those of one shape share."""
        if not batch:
            raise reading.entry_error("batch is 0", name, trail, "batch")
        shape = tuple(dims)
        key = shape, batch
        if key not in plans:
            # Shapes can be chosen to have one hash, which makes a large dict slow.
            if len(plans) >= 256:
                plans.clear()
            # The batch is the last dimension.
            if batch > 1:
                shape += (batch,)
            # No more than one dimension, or no data: the order does not matter.
            strides = None
            if len(shape) > 1 and data:
                # Boards slice no tuple backwards.
                strides = row_major(tuple(reversed(shape)), 4)
                strides = tuple(reversed(strides))
            plans[key] = shape, strides, (("batch", batch),)
        shape, strides, attrs = plans[key]
        return Tensor(name, "float32", shape, reading.source, data.start, len(data),
                      strides, attrs=attrs, format=self.NAME)

    def read_configs(self, reading: Reading, at: int) -> Facts:
        """Return the numbers of an Optimizer: a map of integers, then one of floats."""
        metadata: Facts = Map()
        for group, code in self.CONFIGS:
            rows = ("key", "str", "name of the number"), ("value", code, "the number")
            row = group, "map", "numbers of the optimizer"
            (count,), at = reading.messagepack(at, (row,))
            for i in range(count):
                (raw, value), at = reading.messagepack(at, rows, group, i)
                key = str_of_bytes(raw)
                if code == "float":
                    value = float(value)
                if key in metadata:
                    what = f"config {short_repr(key)}"
                    if type(value) is not type(metadata[key]):
                        what = f"{what} is in both maps"
                        raise reading.error(what, group, i, "key",
                                            error_class=Unsupported)
                    raise reading.error(f"{what} twice", group, i, "key")
                metadata[key] = value
        reading.note_rest(at)
        return metadata

    def notes(self, file: File) -> "Notes":
        kind = file.attrs["kind"]
        if kind in ("shape", "tensor"):
            yield [(None, f"primitiv loads no file of kind {kind} by itself")]

    def name_problem(self, name: str) -> "Optional[str]":
        # make_row() looks at it.
        return None

    def no_metadata(self, options: Facts) -> "Optional[str]":
        if options.get("kind") == "optimizer":
            return None
        return "only kind='optimizer' holds metadata"

    def stored_number(self, value: "Union[int, float]") -> "Union[int, float]":
        if type(value) is float:
            return unpack_from("<f", pack("<f", value))[0]
        return int(value)

    def metadata_problem(self, key: Any, value: Any) -> "Optional[str]":
        if type(key) is not str or not isinstance(value, (int, float)):
            return "configs are numbers"
        if type(value) is not float:
            value = int(value)
        try:
            name_to_bytes(key)
            msgpack_dumps(value, typed=True)
        except ValueError as error:
            return str(error)
        return None

    def tensor_problems(self, tensor: Tensor) -> "Iterator[str]":
        yield from super().tensor_problems(tensor)
        if 0 in tensor.shape:
            yield f"no elements (shape {short_repr(tensor.shape)})"
        if tensor.nbytes >> 32:
            yield "data over 2**32-1 bytes"

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        # 1 the kind, and what it cannot hold
        kind = self.option("kind", "model", options, attrs)
        dims = self.option("dims", None, options, attrs)
        self.check_options(kind, dims, metadata, options)
        rows = self.make_rows(kind, items, metadata)
        if kind in ("tensor", "parameter") and not rows:
            raise ValueError(f"kind={kind!r} needs a tensor")
        # 2 data_type, then a shape, maps or the number of parameters
        values: "List[Any]" = [256 * self.KINDS.index(kind)]
        if kind == "shape":
            values += self.make_shape(dims, self.option("batch", 1, options, attrs))
        elif kind == "optimizer":
            integers: Facts = Map()
            floats: Facts = Map()
            for key, value in metadata.items():
                if type(value) is float:
                    floats[key] = value
                else:
                    integers[key] = int(value)
            values += [integers, floats]
        elif kind == "model":
            # A row without a statistic is the value of a parameter.
            values.append(len([row for row in rows if row[1] is None]))
        head = b"".join([msgpack_dumps(value, typed=True) for value in values])
        # 3 each tensor after the other
        return self.iter_rows(self.MAGICS[0] + head, rows, kind)

    def check_options(self, kind: str, dims: Any, metadata: Facts,
                      options: Facts) -> None:
        """Raise ValueError for an unknown kind, and for what a kind has no place for."""
        if kind not in self.KINDS:
            raise ValueError(f"kind is one of {', '.join(self.KINDS)}, not {short_repr(kind)}")
        if metadata and kind != "optimizer":
            raise ValueError(f"{self.no_metadata({})}; metadata={{}} leaves it out")
        is_dimensioned = dims is not None or options.get("batch") is not None
        if is_dimensioned and kind != "shape":
            raise ValueError("only kind='shape' holds dims and batch; attrs={} leaves them out")

    def make_rows(self, kind: str, items: Items, metadata: Facts) -> "List[Any]":
        """Return the rows of make_row(), by key; raise for all that has no place."""
        problems = self.problems(items, metadata)
        rows = []
        for name, tensor in items:
            try:
                rows.append(self.make_row(kind, name, tensor))
            except ValueError as error:
                problems.append((name, str(error)))
        # A value comes before its statistics.
        rows.sort(key=lambda row: (row[0], row[1] is not None))
        problems += self.find_clashes(rows)
        self.raise_problems(problems)
        return rows

    def make_row(self, kind: str, name: str, tensor: Tensor) -> "Tuple[Any, ...]":
        """Return (parts of the key, statistic or None, name, tensor, batch)."""
        key, statistic = split_name(name)
        has_place = kind == "model"
        if kind == "parameter":
            has_place = key == (b"value",)
        elif kind == "tensor":
            has_place = name == "tensor"
        if not has_place:
            raise ValueError(f"kind={kind!r} has no place for it")
        if len(key) > self.NAME_PARTS:
            raise ValueError(f"{len(key)} parts, {self.NAME_PARTS} is the limit")
        batch = self.native_attrs(tensor).get("batch", 1)
        if type(batch) is not int or batch not in (1,) + tensor.shape[-1:]:
            raise ValueError(f"batch {short_repr(batch)} is not 1, nor the last dimension "
                             f"of {short_repr(tensor.shape)}")
        rank = tensor.ndim
        if batch > 1:
            if statistic is None and kind != "tensor":
                raise ValueError(
                    f"batch {batch} of a parameter; attrs['batch'] = 1 makes a dimension")
            rank -= 1
        if rank > self.RANK_WRITTEN:
            raise ValueError(f"{rank} dimensions, {self.RANK_WRITTEN} is the limit")
        return key, statistic, name, tensor, batch

    def find_clashes(self, rows: "List[Any]") -> "Iterator[Tuple[str, str]]":
        """Yield (name, why) of keys that cannot be beside the others; rows are sorted."""
        # The last key that is not inside of another: those inside of it follow at once.
        outer: Any = (None,)
        last = outer
        for key, statistic, name, _, _ in rows:
            is_inside = key[:len(outer)] == outer
            if key != last:
                if is_inside:
                    text = short_repr(join_key(outer))
                    yield name, f"the key {text} is both a parameter and a group of them"
                # The first row of a key is its value, if it has one.
                if statistic is not None:
                    yield name, "a statistic without its value; escape ':' by a backslash"
            last = key
            if not is_inside:
                outer = key

    @staticmethod
    def make_shape(dims: Any, batch: Any) -> "List[Any]":
        """Return [dims, batch] of kind shape."""
        try:
            shape = as_shape(dims) + (as_index(batch),)
        except TypeError:
            # It is refused with the others.
            shape = (0,)
        if len(shape) > 9 or [n for n in shape if not 1 <= n < 1 << 32]:
            raise ValueError("kind='shape' needs up to 8 dims and a batch, each 1 to 2**32-1, "
                             f"not {short_repr(dims)} and {short_repr(batch)}")
        return [shape[:-1], shape[-1]]

    def iter_rows(self, head: bytes, rows: "List[Any]", kind: str) -> Blocks:
        """Yield a file: the head, then name, shape and data of each tensor."""
        yield head
        # Most shapes come again.
        shape_heads: "Dict[Any, bytes]" = {}
        # How many statistics each key has; its first row is the value.
        statistics: "Dict[Any, int]" = {}
        for row in rows:
            statistics[row[0]] = statistics.get(row[0], -1) + 1
        for key, statistic, _, tensor, batch in rows:
            if statistic is not None:
                yield msgpack_head("str", len(statistic)) + statistic
            elif kind == "model":
                head = msgpack_head("array", len(key))
                for part in key:
                    head += msgpack_head("str", len(part)) + part
                yield head
            form = tensor.shape, batch
            if form not in shape_heads:
                dims = tensor.shape[:-1] if batch > 1 else tensor.shape
                head = msgpack_dumps(dims, typed=True) + msgpack_dumps(batch, typed=True)
                head += msgpack_head("bin", tensor.nbytes)
                shape_heads[form] = head
            yield shape_heads[form]
            yield from iter_columns(tensor)
            if statistic is None and kind != "tensor":
                yield pack(">BI", 0xCE, statistics[key])


def iter_columns(tensor: Tensor) -> Blocks:
    """Return the column-major little-endian bytes of a tensor in blocks."""
    is_plain = tensor.encoding == "raw" and tensor.byteorder == "<" and tensor._strides is None
    if is_plain and tensor.ndim == 2 and tensor.stored_nbytes <= 1 << 12:
        # Columns of a small matrix are slices of an array: 2 times as fast as gather().
        from array import array
        values = array(BITS_CODE[4], bytes(tensor.raw))
        width = tensor.shape[1]
        return iter([b"".join([values[i::width] for i in range(width)])])
    return transpose(tensor).iter_bytes()


def transpose(tensor: Tensor) -> Tensor:
    """Return the transpose, a view: its row-major bytes are the column-major ones."""
    if tensor.ndim < 2:
        return tensor
    base = tensor if tensor.encoding == "raw" else tensor.contiguous()
    shape = base.shape[::-1]
    strides: "Optional[Shape]" = base.strides[::-1]
    if strides == row_major(shape, base.itemsize or 1):
        strides = None
    return Tensor(base.name, base.dtype, shape, base.source, base.start,
                  base.stored_nbytes, strides, base.byteorder)


def join_key(parts: "List[bytes]") -> str:
    """Return the name of a parameter: its parts, which may be many, joined as bytes."""
    name = b".".join(parts)
    # As many dots as parts: one of them belongs to a part.
    if b"\\" in name or b":" in name or name.count(b".") >= len(parts):
        name = b".".join([escape_part(part) for part in parts])
    return str_of_bytes(name)


def escape_part(part: bytes) -> bytes:
    """Return a part of a key with a backslash before what has a meaning in names."""
    part = part.replace(b"\\", b"\\\\")
    return part.replace(b".", b"\\.").replace(b":", b"\\:")


def name_to_bytes(text: str) -> bytes:
    """Return the bytes of a name; ValueError if they are read as another one."""
    raw = encode_text(text, TEXT_ERRORS)
    if str_of_bytes(raw) != text:
        raise ValueError(f"its bytes are those of {short_repr(str_of_bytes(raw))}")
    return raw


def split_name(name: str) -> "Tuple[Tuple[bytes, ...], Optional[bytes]]":
    """Return (parts of the key, statistic or None) of a name, as bytes."""
    raw = name_to_bytes(name)
    if b"\\" not in raw:
        whole, colon, statistic = raw.partition(b":")
        key = tuple(whole.split(b"."))
        if not colon:
            return key, None
        return key, statistic
    parts = [bytearray()]
    at = 0
    while at < len(raw) and raw[at:at + 1] != b":":
        byte = raw[at:at + 1]
        if byte == b".":
            parts.append(bytearray())
        elif byte == b"\\":
            at += 1
            parts[-1] += raw[at:at + 1]
        else:
            parts[-1] += byte
        at += 1
    key = tuple([bytes(part) for part in parts])
    # It must be the name by which the key is read again.
    if encode_text(join_key(list(key)), TEXT_ERRORS) != raw[:at]:
        raise ValueError("a backslash escapes only '.', ':' and itself: write another before it")
    if at < len(raw):
        return key, raw[at + 1:]
    return key, None


FORMATS += (Primitiv(),)


# -- [7d] burnpack -----------------------------------------------------------------------

# Bits of a value; F and S both are two's complement.
QUANT_BITS = {"Q8F": 8, "Q8S": 8, "E4M3": 8, "E5M2": 8, "Q4F": 4, "Q4S": 4, "E2M1": 4,
              "Q2F": 2, "Q2S": 2}
QUANT_SCALES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "UE8M0": "E8M0",
                "UE4M3": "E4M3"}  # dtypes, or kinds of minifloat()
DEQUANTIZE = '; .dequantize() or convert(cast="float32")'


def is_store(store: Any) -> bool:
    """Return whether this says how quantized values are packed; "U32" is of burn 0.19."""
    if type(store) is not Map:
        return store in ("Native", "U32")
    if list(store) not in (["PackedNative"], ["PackedU32"]):
        return False
    return UINT64.fits(*store.values())


QUANT_BLOCK = Schema(("len", UINT64, True, "dimensions of a block"),
                     ("storage", UINT64_LIST, True, "size of a block"))
QUANT_STORE = Typed("Native, {PackedNative: n} or {PackedU32: n}", is_store)
QUANT_PACKED = Schema(additional=(ANY, "packed dimension"))
# block_of() looks at blocks.
QUANT_LEVEL = Schema(("Block", ANY, False, "elements that share one", QUANT_BLOCK))
QUANT_SCHEME = Schema(
    ("value", choice(*QUANT_BITS), True, "type of the values"),
    ("param", choice(*QUANT_SCALES), True, "type of the scales"),
    ("store", QUANT_STORE, True, "how values are packed", QUANT_PACKED),
    ("level", choice("Tensor"), True, "what shares a scale", QUANT_LEVEL),
    ("mode", choice("Symmetric"), True, "Symmetric: no offset"))


def is_code(code: Any) -> bool:
    """Return whether this may be a dtype in Burn's words, known or not."""
    if type(code) is str:
        return True
    if type(code) is not Map or len(code) != 1:
        return False
    (key, facts), = code.items()
    if key == "QFloat":
        return type(facts) is Map
    return type(key) is str


def fits_int64(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63


class Burnpack(Format):
    """Burnpack (.bpk), the native file of Burn: burn-store 0.19 to 0.21, burn-pack
    0.22-pre.

    0      magic "NRUB" 4 | version u16 = 1 | metadata_size u32 = M; all little-endian
    10     CBOR map, M bytes: "tensors": name -> {dtype, shape, data_offsets [start, end),
           param_id?}, "metadata": text -> text?, "scalars" (0.22 pre-releases)?
    data   from DS = 10 + M rounded up to 256 on; each tensor at a multiple of 256, zeros
           between, nothing after the last; data_offsets count from DS

    The index is sorted by name, the data are in the order given. Burn 0.19 wrote no
    padding: DS is 10 + M if the metadata say version 0.19 and the file ends with its data
    then, or if no tensor has a byte and the file ends before DS. Such files are only
    read. Unknown dtypes and schemes are listed, and kept; burn 0.21 refuses a file with
    one.
    """

    NAME = FAMILY = "burnpack"
    TITLE = "Burnpack"
    SUFFIXES = (".bpk", ".burnpack")
    HOLDS = "metadata: text to text; scalars; param_id; quantized bytes"
    # BURN stands in an example of Burn: it is found, then refused.
    MAGICS = (b"NRUB", b"BURN")
    HEADER = RecordType(
        ("magic", "4s", "Burnpack"),
        ("version", "H", "1 from burn 0.19 on"),
        ("metadata_size", "I", "bytes of CBOR"))
    CODE = Typed("text or a map of one text key", is_code)
    CODE_MAP = Schema(
        ("Bool", ANY, False, "how it is stored"),
        ("QFloat", ANY, False, "quantized", QUANT_SCHEME))
    ENTRY = Schema(
        ("dtype", CODE, True, "type of the elements", CODE_MAP),
        ("shape", UINT64_LIST, True, "dimensions"),
        ("data_offsets", START_END, True, "bytes from DS, [start, end)"),
        ("param_id", UINT64, None, "Burn's own id of it"))
    METADATA = Schema(additional=(TEXT, "of the user"), key_type=TEXT)
    TENSORS = Schema(  # ENTRY explains entries here; open_entry() checks them
        additional=(ANY, "entry of a tensor", ENTRY), key_type=TEXT)
    SCALAR = Schema(additional=(ANY, "the value"))
    SCALAR_MAP = Schema(additional=(ANY, "type and value", SCALAR), key_type=TEXT)
    INDEX = Schema(
        ("tensors", TENSORS, True, "entries by name"),
        ("metadata", METADATA, False, "of the user"),
        ("scalars", SCALAR_MAP, False, "numbers by name"),
        doc="tensors, metadata, scalars")
    FIELD_OF = dict(name="", size="data_offsets", place="data_offsets")
    NAMES = {  # in the CBOR -> here; Bool: of burn 0.19 and 0.20; others: dtype_of()
        "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
        "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
        "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
        "Bool": "bool", "Flex32": "float32"}
    CODEC = Cbor
    DTYPES: Any = dict([(name, code) for code, name in NAMES.items() if code != "Flex32"],
                       bool={"Bool": "Native"})  # as they are written
    # The dtypes for {"Bool": how it is stored}.
    BOOLS = {"Native": "bool", "U8": "bool", "U32": "uint32"}
    OPTIONS = {"scalars": "map of name to {Int|UInt|Float|Bool: value}"}
    SCALARS = {
        "Int": typed(int, "int64", fits_int64), "UInt": UINT64,
        "Float": typed(float, "float"), "Bool": typed(bool, "bool")}
    FILE_ATTRS = ("version", "layout", "scalars")
    TENSOR_ATTRS = ("param_id", "burn_dtype")
    DTYPE_ATTRS = ("burn_dtype",)
    TEXT_METADATA = True
    SORTED = True
    INDEX_FIRST = True
    ALIGN = 256
    PAD_END = ("structure",)
    # The limits of the real reader.
    MAX_METADATA_BYTES = 104857600
    MAX_TENSORS = 100000

    def read(self, reading: Reading) -> Any:
        # 1 the header says how long the index is
        reading.check_magic(self, b"NRUB")
        (_, version, nbytes), at = reading.record(0, self.HEADER)
        if version != 1:
            what = f"version {version} is not supported (only 1)"
            raise reading.error(what, "version", error_class=Unsupported)
        reading.check_range(nbytes, "metadata_size", high=reading.end - at)
        reading.check_range(nbytes, "metadata_size", high=self.MAX_METADATA_BYTES,
                            limit="MAX_METADATA_BYTES")
        # 2 the index is one CBOR map
        index = reading.cbor(at, nbytes, self.INDEX)
        tensors = index["tensors"]
        metadata = index.get("metadata", Map())
        reading.check_range(len(tensors), "tensors", high=self.MAX_TENSORS,
                            limit="MAX_TENSORS")
        # 3 each entry is a tensor, which lies after DS
        data_start = at + nbytes
        is_packed = self.is_packed(reading, data_start, tensors, metadata)
        if not is_packed:
            data_start = round_up(data_start, 256)
        for name, entry in tensors.items():
            trail = "tensors", name
            with reading:
                tensor = self.open_entry(reading, trail, entry, data_start)
                reading.add_tensor(tensor, trail, data_start, reading.end, self.FIELD_OF)
        reading.check_whole()
        # 4 the rest belongs to the file
        attrs: Facts = {"version": 1, "layout": "aligned"}
        if is_packed:
            attrs["layout"] = "packed"
        if "scalars" in index:
            attrs["scalars"] = index["scalars"]
        return attrs, metadata

    def is_packed(self, reading: Reading, index_end: int, tensors: Facts,
                  metadata: Facts) -> bool:
        """Return whether no padding is before the data, as of burn 0.19.

        A file converted from such a one keeps its metadata, but is aligned.
        """
        aligned = round_up(index_end, 256)
        is_old = metadata.get("version", "").startswith("0.19.")
        if not is_old and reading.end >= aligned:
            return False
        data_end = 0
        for entry in tensors.values():
            if self.ENTRY.fits(entry):
                data_end = max(data_end, entry["data_offsets"][1])
        if data_end == 0:
            return reading.end < aligned
        if not is_old:
            return False
        if reading.partial and reading.end not in (index_end + data_end, aligned
                                                   + data_end):
            what = "cut short: a file of burn 0.19 may be packed or aligned"
            raise reading.error(what, "metadata", "version")
        return reading.end == index_end + data_end

    def open_entry(self, reading: Reading, trail: Trail, entry: Facts,
                   data_start: int) -> Tensor:
        """Return the tensor of an entry."""
        name = trail[-1]
        reading.check_schema(self.ENTRY, entry, trail, name)
        start, end = entry["data_offsets"]
        attrs: Any = None
        if entry.get("param_id") is not None:
            attrs = Map(param_id=entry["param_id"])
        return self.make_tensor(name, entry["dtype"], entry["shape"], reading.source,
                                data_start + start, end - start, self.NAME, attrs)

    def make_tensor(self, name: str, code: Any, shape: Any, source: Buffer, start: int,
                    nbytes: int, format: str, attrs: Any) -> Tensor:
        """Return the tensor of a dtype in Burn's words, also for its records (.mpk)."""
        dtype = self.dtype_of(code)
        # "Bool" is the old word for Native.
        if code != self.DTYPES.get(dtype) and code != "Bool":
            attrs = Map(attrs or (), burn_dtype=code)
        tensor_class = Tensor
        unreadable = None
        if dtype is None:
            unreadable = f"dtype {short_repr(code)} is not known"
        elif dtype == "qfloat":
            tensor_class = Quantized
        return tensor_class(name, dtype, tuple(shape), source, start, nbytes,
                            unreadable=unreadable, attrs=attrs, format=format)

    def dtype_of(self, code: Any) -> "Optional[str]":
        """Return the dtype for one in Burn's words, or None."""
        if type(code) is str:
            return self.NAMES.get(code)
        if "QFloat" in code:
            return "qfloat"
        store = code.get("Bool")
        if type(store) is not str:
            return None
        return self.BOOLS.get(store)

    def native_attrs(self, tensor: Tensor) -> Facts:
        # Its attrs are the same, but for ids that are text.
        if tensor.format == "burnrecord":
            return Map([row for row in tensor.attrs.items() if row[0] != "id"])
        return super().native_attrs(tensor)

    def notes(self, file: File) -> "Notes":
        found = []
        for tensor in file.values():
            why = tensor.unreadable
            if tensor.dtype == "qfloat":
                quantized: Any = tensor
                try:
                    quantized.known_scheme()
                except Unsupported as error:
                    why = error.what
            if why:
                found.append((tensor, f"{why}: burn 0.21 refuses the whole file"))
        yield found

    def check_scalars(self, scalars: Any) -> Facts:
        """Return scalars as they are written; ValueError for what is unfit."""
        checked = Map()
        for name, scalar in scalars.items():
            if not hasattr(scalar, "items") or len(scalar) != 1:
                raise self.scalar_error(name, scalar)
            (kind, value), = scalar.items()
            if kind == "Float" and type(value) is int:
                value = float(value)
            known = self.SCALARS.get(kind)
            if known is None or not known.fits(value):
                raise self.scalar_error(name, scalar)
            checked[str(name)] = Map([(kind, value)])
        return checked

    @staticmethod
    def scalar_error(name: Any, scalar: Any) -> ValueError:
        return ValueError('scalars are {name: {"Int", "UInt", "Float" or "Bool": value}}, '
                          f"not {short_repr(name)}: {short_repr(scalar)}")

    def tensor_problems(self, tensor: Tensor) -> "Iterator[str]":
        yield from super().tensor_problems(tensor)
        if not self.native_attrs(tensor):
            return
        entry = self.make_entry(tensor, 0)
        for _, what in self.ENTRY.iter_errors(entry):
            yield what
        code = entry["dtype"]
        if is_code(code) and tensor.dtype not in (None, self.dtype_of(code)):
            yield f"burn_dtype {short_repr(code)} does not go with {tensor.dtype}"

    def make_entry(self, tensor: Tensor, start: int) -> Facts:
        """Return the entry of the CBOR for a tensor."""
        own = self.native_attrs(tensor)
        # MicroPython keeps the order of keys only where each is set by itself.
        entry = Map()
        entry["dtype"] = own.get("burn_dtype", self.DTYPES.get(tensor.dtype))
        entry["shape"] = list(tensor.shape)
        entry["data_offsets"] = [start, start + tensor.nbytes]
        if own.get("param_id") is not None:
            entry["param_id"] = own["param_id"]
        return entry

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        self.raise_problems(self.problems(items, metadata))
        if len(items) > self.MAX_TENSORS:
            raise ValueError(f"{len(items)} tensors, {self.MAX_TENSORS} is the limit")
        # 1 an entry and a place for each tensor
        entries = {}
        starts = []
        end = 0
        for name, tensor in items:
            start = round_up(end, 256)
            starts.append(start)
            entries[name] = self.make_entry(tensor, start)
            end = start + tensor.nbytes
        # 2 the index, sorted by name: code points sort as UTF-8 does
        scalars = self.option("scalars", {}, options, attrs)
        if not hasattr(scalars, "items") or not all(map(is_text, scalars)):
            raise ValueError(f"scalars are a map by name, not {short_repr(scalars)}")
        if options.get("scalars") is not None:
            scalars = self.check_scalars(scalars)
        index = Map()
        index["tensors"] = Map(sorted(entries.items()))
        if metadata:
            index["metadata"] = Map(sorted(metadata.items()))
        if scalars:
            index["scalars"] = Map(sorted(scalars.items()))
        data = cbor_dumps(index)
        if len(data) > self.MAX_METADATA_BYTES:
            raise ValueError(f"{len(data)} bytes of metadata are over MAX_METADATA_BYTES")
        # 3 header, index, data
        data_start = round_up(10 + len(data), 256)
        head = self.HEADER.pack(b"NRUB", 1, len(data)) + data
        starts = [data_start + start for start in starts]
        return self.iter_file(head, items, starts, data_start + end)


FORMATS += (Burnpack(),)


# -- [7e] tensorbuffers ------------------------------------------------------------------


class TensorBuffers(Format):
    """TensorBuffers "TBS1" (russellwmy/tensorbuffers, both schemas: 7190fc4 and 2422de1).

    0      magic "TBS1" 4
    4      data of all tensors, back to back as written, no padding
    root   metadata: one FlatBuffer of n bytes, up to end - 8; its positions count from it
    end-8  n u32 | magic "TBS1" 4, the last 8 bytes of the file

    The root has version, model, tensors and (newer schema) operations. Data offsets are
    absolute. Tensors are sorted by id, a hash of the name and ff, by which the real
    library looks for them; it does not sort. An id need not be that of the name; save
    writes those that are.
    """

    NAME = FAMILY = "tensorbuffers"
    TITLE = "TensorBuffers TBS1"
    HOLDS = "metadata: model (text); operations; 32-bit offsets and sizes"
    SUFFIXES = (".tbs", ".tensorbuffers")
    MAGICS = (b"TBS1",)
    HEADER = RecordType(("magic", "4s", "TensorBuffers"))
    TRAILER = RecordType(
        ("metadata_size", "I", "bytes of FlatBuffer"),
        ("end_magic", "4s", "TensorBuffers"))
    TENSOR = (
        ("id", "Q", 0, "hash of the name"),
        ("name", "string", MISSING, "name"),
        ("shape", ["I"], [], "dimensions"),
        ("data_type", "b", 0, "1 float32 ... 10 uint64"),
        ("data_offset", "I", 0, "offset in the file"),
        ("data_size", "I", 0, "bytes"))
    OPERATION = (
        ("id", "Q", 0, "number of this one"),
        ("operation", "b", 0, "what it does"),
        ("output", "Q", 0, "id of a tensor"),
        ("input_operations", ["Q"], [], "what goes into it"))
    ROOT = (
        ("version", "string", MISSING, "of the format"),
        ("model", "string", None, "of the user"),
        ("tensors", [TENSOR], [], "the index"),
        ("operations", [OPERATION], None, "a graph"))
    FIELD_OF = dict(name="name", size="data_size", place="data_offset")
    CODEC = Flat
    DTYPES = {
        "float32": 1, "float64": 2, "int8": 3, "int16": 4, "int32": 5, "int64": 6,
        "uint8": 7, "uint16": 8, "uint32": 9, "uint64": 10}
    NAMES = dict([(code, dtype) for dtype, code in DTYPES.items()])
    OPTIONS = {"sort": "True: the index by id; False: as given, as the real library",
               "operations": "list of dicts; True: the field, empty; False: no field"}
    FILE_ATTRS = ("version", "operations")
    TENSOR_ATTRS = ("id",)
    DTYPE_ATTRS = ("data_type",)
    MAX_RANK = 64
    DIM_BITS = 32
    SORTED = True

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the last 8 bytes say where the metadata begin
        reading.check_magic(self, b"TBS1")
        if reading.end < 12:
            what = f"{reading.end} bytes, too short for a frame of 12"
            raise reading.error(what, "magic", offset=0, check="magic")
        reading.record(0, self.HEADER)  # for explain()
        (nbytes, magic), _ = reading.record(reading.end - 8, self.TRAILER)
        if magic != b"TBS1":
            raise reading.error("truncated: no TBS1 trailer", "end_magic", check="magic")
        reading.check_range(nbytes, "metadata_size", high=reading.end - 12,
                            why="bytes before it")
        # The metadata begin where the data end.
        data_end = reading.end - 8 - nbytes
        # 2 the metadata are one FlatBuffer, a dict
        root = reading.flatbuffer(data_end, nbytes, self.ROOT)
        # 3 each table in "tensors" is a tensor, which ends before the metadata
        for i, entry in enumerate(root["tensors"]):
            trail = "tensors", i
            with reading:
                tensor = self.open_entry(reading, trail, entry, data_end)
                reading.add_tensor(tensor, trail, 4, data_end, self.FIELD_OF)
        # 4 the rest belongs to the file
        attrs = Map(version=root["version"])
        if root["operations"]:
            attrs["operations"] = root["operations"]
        metadata = Map()
        if root["model"] is not None:
            metadata["model"] = root["model"]
        return attrs, metadata

    def open_entry(self, reading: Reading, trail: Trail, entry: Facts,
                   data_end: int) -> Tensor:
        """Return the tensor of a table."""
        name = entry["name"]
        code = entry["data_type"]
        shape = tuple(entry["shape"])
        if len(shape) > self.MAX_RANK:
            what = f"{len(shape)} dimensions, {self.MAX_RANK} is the limit"
            raise reading.entry_error(what, name, trail, "shape", error_class=Unsupported)
        if not code:
            raise reading.entry_error("data_type 0 is not a type", name, trail,
                                      "data_type")
        dtype = self.NAMES.get(code)
        unreadable = None
        # Pairs are smaller than a map.
        attrs: Any = (("id", entry["id"]),)
        if dtype is None:
            unreadable = f"data_type {code} is not known"
            attrs += (("data_type", code),)
        start = entry["data_offset"]
        nbytes = entry["data_size"]
        # Of no bytes, any offset does.
        if not nbytes:
            start = min(start, data_end)
        return Tensor(name, dtype, shape, reading.source, start, nbytes,
                      unreadable=unreadable, attrs=attrs, format=self.NAME)

    def can_copy_opaque(self, tensor: Tensor) -> bool:
        return False

    def padding(self, start: int, stop: int, before: str, after: str,
                attrs: Facts) -> "Tuple[int, int]":
        """The FlatBuffer aligns what is in it."""
        if before == after == "structure" and stop - start < 8:
            return stop - start, 0
        return 0, 0

    def notes(self, file: File) -> "Notes":
        names: "Dict[int, List[str]]" = {}  # by id
        for tensor in file.values():
            names.setdefault(tensor.attrs["id"], []).append(tensor.name)
        ids = [tensor.attrs["id"] for tensor in file.values()]
        if ids != sorted(ids):
            yield [(None, "not sorted by id: a binary search misses tensors")]
        wrong = []
        for tensor in file.values():
            found = names.get(self.hash_name(tensor.name), [])
            if found != [tensor.name]:
                words = " or ".join(map(safe_repr, found[:3])) or "no tensor"
                what = f"by its name the real library, which asks ids, finds {words}"
                wrong.append((tensor, what))
        yield wrong

    @staticmethod
    def hash_name(name: str) -> int:
        """Return the id of a tensor: FNV-1a of the name and ff."""
        number = 0xCBF29CE484222325
        for byte in name.encode("utf-8", "replace") + b"\xff":
            number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return number

    def metadata_problem(self, key: Any, value: Any) -> "Optional[str]":
        if key == "model" and is_text(value):
            return None
        return "TensorBuffers holds one text, 'model'"

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        sort = self.option("sort", True, options, {})
        operations = self.option("operations", True, options, attrs)
        if not isinstance(sort, bool) or not isinstance(operations, (bool, list, tuple)):
            raise ValueError("sort is a bool, operations a bool or a list of dicts")
        # 1 an id and a place for each tensor
        problems = self.problems(items, metadata)
        ids = Map()
        starts = []
        end = 4
        for name, tensor in items:
            if end >> 32 or tensor.nbytes >> 32:
                raise ValueError(f"TensorBuffers cannot hold tensor {safe_repr(name)}: "
                                 "an offset or a size over 2**32-1")
            other = ids.setdefault(self.hash_name(name), name)
            if other != name:
                problems.append((name, f"it has the same id as {safe_repr(other)}"))
            starts.append(end)
            end += tensor.nbytes
        self.raise_problems(problems)
        # 2 the metadata, from their end on, in the order of the real library
        flat = FlatBuilder()
        tables = []
        new_ids = {}
        for tensor_id, (name, tensor), start in zip(ids, items, starts):
            shape = flat.numbers("I", tensor.shape)
            text = flat.string(name)
            number = self.DTYPES[tensor.dtype]
            place = flat.table(self.TENSOR, id=tensor_id, name=text, shape=shape,
                               data_type=number, data_offset=start,
                               data_size=tensor.nbytes)
            tables.append((tensor_id, place))
            new_ids[self.native_attrs(tensor).get("id", tensor_id)] = tensor_id
        if sort:
            tables.sort()
        operation_places = self.write_operations(flat, operations, new_ids)
        root: Facts = {"version": flat.string("1.0.0")}
        root["tensors"] = flat.offsets([place for _, place in tables])
        if operations is not False:
            root["operations"] = flat.offsets(operation_places)
        if "model" in metadata:
            root["model"] = flat.string(metadata["model"])
        flatbuffer = flat.finish(flat.table(self.ROOT, **root))
        # 3 magic, data, metadata, trailer
        tail = flatbuffer + self.TRAILER.pack(len(flatbuffer), b"TBS1")
        return self.iter_file(b"TBS1", items, starts, end, tail)

    def write_operations(self, flat: FlatBuilder,
                         operations: "Union[bool, Sequence[Facts]]",
                         new_ids: "Dict[Any, int]") -> "List[int]":
        """Return the places of the operations, with new ids of outputs."""
        names = [row[0] for row in self.OPERATION]
        places: "List[int]" = []
        if isinstance(operations, bool):
            return places
        try:
            for operation in operations:
                for name in operation:
                    if name not in names:
                        raise TypeError(f"no field {short_repr(name)}")
                values = dict(operation)
                output = operation.get("output", 0)
                values["output"] = new_ids.get(output, output)
                inputs = operation.get("input_operations", ())
                values["input_operations"] = flat.numbers("Q", inputs)
                places.append(flat.table(self.OPERATION, **values))
            return places
        except (StructError, TypeError, AttributeError) as error:
            raise ValueError(f"operations: {error}; give a list of dicts as load() does")


FORMATS += (TensorBuffers(),)


# -- [8a] load ---------------------------------------------------------------------------


class Absent(Format):
    """A format that a copy lacks: files with such bytes at a place are refused."""

    INDEX_FIRST = True  # partial=True is not what is wrong

    def __init__(self, name: str, family: str, at: int, magic: bytes) -> None:
        self.NAME = name
        self.FAMILY = family
        self.at = at
        self.magic = magic
        if at == 0:
            self.MAGICS = (magic,)

    def detect(self, head: bytes) -> bool:
        return head[self.at:self.at + len(self.magic)] == self.magic

    def read(self, reading: Reading) -> Any:
        reading.root = "magic"
        what = f"this copy was made without {self.NAME}"
        raise reading.error(what, offset=0, check="magic", error_class=Unsupported)


ABSENT: "List[Tuple[str, str, int, bytes]]" = []


def find_format(name: Any) -> Format:
    """Return the format with this name or suffix."""
    for fmt in FORMATS + GENERATIONS:
        suffixes = [end[1:] for end in fmt.SUFFIXES]
        if name == fmt.NAME or name in fmt.SUFFIXES or name in suffixes:
            return fmt
    names = [fmt.NAME for fmt in FORMATS]
    for lacking, *_ in ABSENT:
        if name == lacking:
            raise Unsupported(f"this copy was made without {name}")
    raise ValueError(f"no format {short_repr(name)}; there are {', '.join(names)}")


def detect_format(source: Buffer, name: Any = None) -> Format:
    """Return the format by name, else by the leading bytes, never by the suffix.

    Later generations come first, those without a magic last: any bytes may be the size
    of a safetensors header, and `00 01 00` in it is a version in other files.
    """
    head = source.read(0, 64)
    known: "List[Format]" = [Absent(*row) for row in ABSENT]
    known += GENERATIONS + tuple(reversed(FORMATS))
    wanted = None
    if name is not None:
        wanted = find_format(name)
        known = [fmt for fmt in known if wanted.NAME in (fmt.NAME, fmt.FAMILY)]
    for fmt in known:
        for magic in fmt.MAGICS:
            if head.startswith(magic):
                return fmt
    for fmt in known:  # those without a magic
        if fmt.detect(head):
            return fmt
    if wanted is not None:
        return wanted
    error = unknown_file(source.read(0, 512))
    error.path = source.path
    raise error


def detect(source: Source) -> "Optional[str]":
    """Return the name of the format that the leading bytes tell, or None.

    >>> detect(b"ZTEN0001" + b"\\x80" + b"\\x01" + bytes(7))
    'ztensor'
    """
    opened = open_source(source, False)
    try:
        return detect_format(opened).FAMILY
    except FormatError:
        return None
    finally:
        opened.close()


def load(source: Source, *, format: "Optional[str]" = None, mmap: bool = True,
         verify: bool = False, partial: bool = False) -> File:
    """Open a tensor file of any format. O(index): no tensor is looked at, nor its checksum.

    `source`: a path, bytes, or a seekable binary stream at its start or end (it is not
    closed). `format`: what to read it as, if its bytes do not tell. mmap=False reads
    bytes when asked for: for files that may be cut meanwhile (mapped, the system kills
    the reader). `verify`: raise the first error that verify() finds. `partial`: take
    what is whole of a file that was cut short; attrs["missing"] names the rest. Raises
    FormatError (or its Unsupported), or OSError.

    >>> f = load(dumps({"w": [1.0, 2.0]}, format="ztensor"))
    >>> f.format, list(f), f["w"].dtype, f["w"].tolist()
    ('ztensor', ['w'], 'float64', [1.0, 2.0])
    """
    opened = open_source(source, mmap)
    try:
        fmt = detect_format(opened, format)
        file: File = read_file(opened, fmt, partial)
        if verify:
            check_file(opened, fmt, deep=True).raise_first()
        return file
    except BaseException as error:
        opened.close()
        if isinstance(error, FormatError):
            error.path = error.path or opened.path
            error.__traceback__ = error.__context__ = None
        raise error


@without_gc
@compact
def read_file(source: Buffer, fmt: Format, partial: bool = False) -> File:
    """Return the File that a format reads, or raise the error with its place."""
    if partial and not fmt.INDEX_FIRST:
        raise Unsupported(f"partial=True: {fmt.TITLE} has no index in front of its data")
    reading: Any = Reading(source, partial)
    fault: Any = None
    try:
        attrs, metadata = fmt.read(reading)
    except FormatError as error:
        fault = error
        if fault.offset is None:  # where what was read last begins
            fault.offset = reading.at
        fault.field = fault.field or reading.root
        fault.__traceback__ = fault.__context__ = None  # they keep it
    if fault is not None:
        reading = None  # free what was parsed
        reading, attrs, metadata = read_again(source, fmt, partial, fault)
    if reading.missing or reading.unnamed:
        attrs["missing"] = list(reading.missing) + reading.unnamed
    return fmt.make_file(reading, attrs, metadata)


# -- [8b] values: tensor() ---------------------------------------------------------------


def tensor(data: Any = None, dtype: Any = None, shape: Any = None, *, components: Any = None,
           custom: "Optional[Mapping[Any, Any]]" = None, **unknown: "NoReturn") -> Tensor:
    """Return a Tensor in memory of lists, ranges, numbers, buffers or arrays.

    Lists and numbers: int64 (uint64 if needed), float64 or bool unless `dtype` is
    given. bytes and 1-D byte views: raw little-endian elements of `dtype`. Arrays bring
    dtype and shape; `dtype` converts, `shape` reshapes. `custom`: a mapping of what
    else it is to keep, in `.custom`: words of the format to save to, or of the user.
    ValueError or TypeError for what is unfit.

    >>> t = tensor([[1, 2], [3, 4]], "float32", custom={"trainable": True})
    >>> t.shape, t[1, 0], t.tobytes()[:4].hex(), t.custom
    ((2, 2), 3.0, '0000803f', {'trainable': True})
    """
    if unknown:
        raise TypeError(unknown_argument(list(unknown)[0]))
    if custom is not None and not hasattr(custom, "items"):
        raise TypeError(f"custom is a mapping, not {type(custom).__name__}")
    custom = dict(custom or {})
    shape = None if shape is None else as_shape(shape)
    if components is not None:
        parts = {key: tensor(value, dtype if key == "values" else None)
                 for key, value in dict(components).items()}
        return make_sparse(shape, parts, custom)
    if dtype == "qfloat":
        return make_quantized(data, shape, custom)
    made = tensor_of(data, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        if count_elements(shape) != made.size or min(shape, default=0) < 0:
            raise ValueError(f"{made.size} elements do not have the shape {short_repr(shape)}")
        made = made.contiguous().copy(shape=shape)
    if custom:  # instead of the attributes of a file
        made = made.copy(attrs=None, format=None)
        made.custom.update(custom)
    return made


def unknown_argument(name: str) -> str:
    """Return that tensor() has no such argument, and where the user's own facts go."""
    near = did_you_mean(name, ("data", "dtype", "shape", "components", "custom"))
    return (f"tensor() has no argument {safe_repr(name)} (what a tensor is to keep goes into "
            f"custom={{...}}){near}")


def tensor_of(data: Any, dtype: Any = None) -> Tensor:
    """Return a value as a Tensor."""
    tensor = own_tensor(data)
    if tensor is not None:
        made = tensor.copy()
    elif isinstance(data, LISTS + (bool, int, float)):
        made = tensor_of_lists(data, dtype)
    else:
        made = tensor_of_buffer(data, dtype)
    return made if dtype in (None, made.dtype) else made.astype(dtype)


LISTS = (list, tuple, range)


def tensor_of_lists(data: Any, dtype: Any) -> Tensor:
    """Return nested lists, or one number, as a Tensor."""
    shape, level = [], [data]
    while level and isinstance(level[0], LISTS):
        size = len(level[0])
        if [row for row in level if not isinstance(row, LISTS) or len(row) != size]:
            raise ValueError(f"the lists are ragged at depth {len(shape)}")
        shape.append(size)
        level = [item for row in level for item in row]
    types = set(map(type, level))
    if types - {int, float, bool}:
        if [item for item in level if getattr(item, "shape", ())]:
            raise ValueError("arrays in a list: numpy.stack(...) makes one array of them")
        level = [item.item() if hasattr(item, "item") else item for item in level]
        types = set(map(type, level))
    for one in types - {int, float, bool}:
        raise ValueError(f"{one.__name__} among the numbers")
    if isinstance(data, range):  # which holds integers, also if it is empty
        types = {int}
    if dtype is None:
        dtype = "bool" if types == {bool} else "float64"
        if int in types and float not in types:
            highest = max(level, default=0)
            dtype = "uint64" if highest > INT_RANGE["int64"][1] else "int64"
    return new_tensor(dtype, tuple(shape), pack_values(dtype, level))


def tensor_of_buffer(data: Any, dtype: Any) -> Tensor:
    """Return a buffer or an array as a Tensor; zero-copy where it is contiguous."""
    if hasattr(data, "mask") and hasattr(data, "filled"):
        raise TypeError("a masked array: .filled(value) makes a plain one")
    if hasattr(data, "zero_copy"):
        raise TypeError("a Tensor of another version of tensorfmt: save it there, or take "
                        "tensor(x.tobytes(), x.dtype, x.shape), its values alone")
    view, found = typed_view(data)
    own = getattr(data, "dtype", None)
    # What has no code may offer its bytes (numpy.datetime64): its dtype is looked at.
    if found is None or found == "uint8" and own is not None and getattr(own, "char", "") != "B":
        view, found = view_of_array(data, str(own).split(".")[-1], dtype)
    if dtype and found == "uint8" and view.ndim == 1 and own is None and not (
            hasattr(data, "typecode")):  # raw
        if len(view) % ITEMSIZE[dtype]:
            raise ValueError(f"{len(view)} bytes are not a whole number of {dtype}")
        return new_tensor(dtype, (len(view) // ITEMSIZE[dtype],), view)
    if found == "uint16" and dtype in ("float16", "bfloat16"):
        raise ValueError(f'uint16 to {dtype}: tensor(x).copy(dtype="{dtype}") takes the bits, '
                         f'tensor(x).astype("{dtype}") the values')
    byteorder = view.format[0] if view.format[0] in "<>" else NATIVE
    return new_tensor(found, tuple(view.shape or ()), view, byteorder)


# -- [8c] save ---------------------------------------------------------------------------



def in_order(items: Any, file: "Optional[File]") -> Any:
    """Return items of a mapping; of a File by place where its format sorts the index."""
    if file is not None and file.fmt.SORTED:
        return sorted(items, key=lambda pair: (pair[1].start, pair[1].stored_nbytes))
    return items


def by_name(pairs: Any) -> TensorMap:
    """Return (name, value) pairs as Tensors by name."""
    tensors: "Dict[str, Tensor]" = {}
    is_bare = not hasattr(pairs, "__iter__")
    if is_bare or hasattr(pairs, "shape") or hasattr(pairs, "state_dict"):
        raise not_pairs(pairs)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise not_pairs(pair)
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a str, not {short_repr(name)}")
        if name in tensors:
            raise ValueError(f"two tensors are called {short_repr(name)}")
        tensor = own_tensor(value)
        try:
            tensors[name] = tensor_of(value) if tensor is None else tensor
        except TypeError as error:
            raise TypeError(f"tensor {safe_repr(name)}: {error}")
        except (ValueError, RuntimeError) as error:  # torch raises the last
            raise ValueError(f"tensor {safe_repr(name)}: {error}")
    return tensors


def not_pairs(value: Any) -> TypeError:
    """Return the error for what is given instead of (name, value) pairs."""
    return TypeError("tensors are a mapping of names to values (of a torch module, its "
                     f"state_dict()) or pairs of both, not {type(value).__name__}")


def choose_generation(fmt: Format, names: Any, attrs: "Optional[Facts]",
                      options: Facts) -> Format:
    """Return the generation to write: version=, else of sources, attrs, or `fmt`."""
    if fmt.READ_ONLY:
        raise ValueError(f"{fmt.TITLE} is only read: {fmt.READ_ONLY}")
    known: "Dict[str, Format]" = {}
    for one in (fmt,) + GENERATIONS:
        if one.FAMILY == fmt.FAMILY and one.VERSION:
            known[one.VERSION] = one
    version = options.get("version")
    if known and version is not None:
        if str(version) not in known:
            raise ValueError(f"{fmt.TITLE}: version {short_repr(version)} is not written; "
                             f"only {', '.join(known)}")
        fmt = known[str(version)]
    else:
        fmt = usual_generation(fmt, known, names, attrs or {})
    for key in options:
        if key not in fmt.OPTIONS:
            texts = ", ".join(["%s (%s)" % pair for pair in fmt.OPTIONS.items()])
            raise TypeError(f"saving {fmt.NAME} has no option {short_repr(key)}; "
                            f"there are {texts or 'none'}")
    return fmt


def usual_generation(fmt: Format, known: "Dict[str, Format]", names: Any,
                     attrs: Facts) -> Format:
    """Return the generation of the first source that is of this family, else of attrs."""
    for name in names:
        for one in known.values():
            if one.NAME == name:
                return one
    return known.get(str(attrs.get("version")), fmt)


def native_file_attrs(file: "Optional[File]", fmt: Format) -> Facts:
    """Return those attrs of a File of this format that save takes."""
    if file is None or file.fmt is not fmt:
        return {}
    return {key: value for key, value in file.attrs.items() if key in fmt.FILE_ATTRS}


def prepare(fmt: Format, tensors: Any, metadata: "Optional[Facts]", attrs: "Optional[Facts]",
            options: Facts, cast: Any = None) -> "Tuple[Format, Items, Facts, Facts]":
    """Return (generation of the format, items, metadata, attrs) of what is to be saved."""
    for what, value in ("metadata", metadata), ("attrs", attrs):
        if value is not None and not hasattr(value, "items"):
            raise TypeError(f"{what} is a mapping, not {type(value).__name__}")
    file = own_file(tensors)
    pairs = tensors
    if file is not None:
        pairs = in_order(file.items(), file)
    elif hasattr(tensors, "items"):
        pairs = tensors.items()
    items = list(by_name(pairs).items())
    names = [tensor.format for _, tensor in items]
    if file is not None:
        names = [file.fmt.NAME]
    fmt = choose_generation(fmt, names, attrs, options)
    if metadata is None:
        metadata = {}
        if file is not None:
            metadata = file.metadata
    if attrs is None:
        attrs = native_file_attrs(file, fmt)
    for key in attrs:
        if key not in fmt.FILE_ATTRS:
            raise ValueError(f"{fmt.NAME}: unknown file attribute {short_repr(key)}; there are "
                             + ", ".join(fmt.FILE_ATTRS))
    check_work(items, dense=not fmt.SPARSE)
    if cast is not None:
        # What is made of a sparse tensor has no checksum any more.
        check_stored([(name, tensor) for name, tensor in items if tensor.is_sparse])
        items = cast_items(fmt, items, cast)
        check_work(items, dense=not fmt.SPARSE)
    return fmt, items, metadata, attrs


def encode_file(fmt: Format, items: Items, metadata: Facts, attrs: Facts,
                options: Facts, watch: Watch = None) -> Blocks:
    """Check all that prepare() returns, then return the file in blocks."""
    meter = Meter(watch, "writing", 0)
    if watch is not None:
        meter.total = sum([tensor.nbytes for _, tensor in items])
    blocks = meter.write(fmt, items, metadata, attrs, options)  # or its ValueError
    check_stored(items, watch)
    return blocks


def path_of(target: Any) -> str:
    """Return the path of a target, of a stream ""."""
    path = target
    if hasattr(target, "write"):
        path = ""
    elif hasattr(target, "__fspath__"):
        path = os.fspath(target)
    if isinstance(path, str):
        return path
    what = f"a target is a path or a stream to write to, not {type(target).__name__}"
    if hasattr(target, "open"):  # a zipfile.Path
        what += '; its open("wb") is a stream'
    elif hasattr(target, "__iter__"):
        what += "; it stands in front of the tensors: save(target, tensors)"
    raise TypeError(what)


def target_format(format: "Optional[str]", target: Any, tensors: Any) -> Format:
    """Return the format by argument, else by suffix, else that of a File."""
    path = path_of(target)
    if format is not None:
        return find_format(format)
    for fmt in FORMATS + GENERATIONS:
        if path.lower().endswith(fmt.SUFFIXES):
            return fmt
    if path and hasattr(tensors, "metadata"):  # a File, also of another copy
        return find_format(tensors.format)
    names = ", ".join([f"{fmt.NAME} {fmt.SUFFIXES[0]}" for fmt in FORMATS if not fmt.READ_ONLY])
    raise ValueError(f"which format? give {option('format=')} or a suffix: {names}")


def refuse_boards() -> None:
    if BOARD:
        raise Unsupported("a board only reads: save files on a computer")


def save(target: Target, tensors: Any, *, format: "Optional[str]" = None,
         metadata: Any = None, attrs: Any = None, cast: Any = None, watch: Watch = None,
         **options: Any) -> None:
    """Write tensors to a path or a writable binary stream.

    `tensors`: a File, a mapping of names to values, or (name, value) pairs; values as
    tensor() takes them. The format: `format`, else the suffix, else that of the File.
    `metadata` and `attrs` (facts of the format) are those of the File unless given.
    What the format cannot hold is a ValueError before the first byte; damaged bytes of
    a source are a FormatError. `cast`: a dtype for what the format cannot hold, or
    {old: new}. `watch`: as in convert(). A file is written as `.NAME.N.tmp` beside the
    target, then renamed: a failure or Ctrl-C keeps the old file, only a killed process
    leaves the `.tmp` (delete it). A file without write permission is refused. Symbolic
    links are kept, and so are owner, group and mode where the system allows it; devices
    are written in place. A stream that tensors are read from is refused.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> save(stream, {"w": [1.0]}, format="ztensor")
    >>> load(stream)["w"].tolist()
    [1.0]
    """
    refuse_boards()
    fmt = target_format(format, target, tensors)
    fmt, items, metadata, attrs = prepare(fmt, tensors, metadata, attrs, options, cast)
    write_out(target, encode_file(fmt, items, metadata, attrs, options, watch), items)


def dumps(tensors: Any, *, format: str, metadata: Any = None, attrs: Any = None,
          cast: Any = None, **options: Any) -> bytes:
    """Return what save() would write; load() takes it back.

    >>> len(dumps({}, format="mag")), dumps({}, format="ztensor").hex()
    (24, '5a54454e30303031800100000000000000')
    """
    refuse_boards()
    fmt = find_format(format)
    fmt, items, metadata, attrs = prepare(fmt, tensors, metadata, attrs, options, cast)
    return b"".join(encode_file(fmt, items, metadata, attrs, options))


def write_out(target: Any, blocks: Blocks, items: "Optional[Items]" = None) -> int:
    """Write to a path or a stream; return the bytes. `items`: what is read meanwhile."""
    items = items or []
    if hasattr(target, "write"):
        check_target(target, None, items)
        return write_all(target, blocks)
    path = path_of(target)
    if os.path.basename(path) in ("", ".", ".."):  # a path that realpath() shortens
        raise ValueError(f"{safe_str(path)} is the name of a folder, not of a file")
    real = os.path.realpath(path)
    old = stat_or_none(path)
    if old is None:
        return write_beside(real, blocks, path, old)
    found = stat_or_none(real)
    if old.st_mode >> 12 == REGULAR and found and os.path.samestat(old, found):
        return write_beside(real, blocks, path, old)
    check_target(None, old, items)
    with open(path, "wb", 0) as stream:  # a device, a pipe, /dev/fd/N of a deleted file
        return write_all(stream, blocks, path)


def stat_or_none(path: str) -> "Optional[os.stat_result]":
    """Return what os.stat() says; None if there is no such file."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def write_all(stream: Any, blocks: Blocks, target: Any = None) -> int:
    """Write all blocks, also where write() takes a part; return their bytes.

    Errors of write() name the target, if it is a path; those of the blocks do not.
    """
    total = 0
    for block in blocks:
        total += len(block)
        while len(block):
            try:
                count = stream.write(block)
            except OSError as error:
                if target and error.errno is not None:  # one of its text alone keeps it
                    error.filename = target
                raise
            if count is None and not hasattr(stream, "readall"):  # not a raw one: it took all
                break
            if not count or count < 0:
                raise OSError("the target is full")
            block = memoryview(block)[count:] if count < len(block) else b""
    return total


# == II more formats and numbers =========================================================


# -- [9a] float8 -------------------------------------------------------------------------
#
# Named and cast as by ml_dtypes and torch: by way of float32, to nearest even.

# Bits of the exponent, of the mantissa, bias, code of infinity (0: none), codes of NaN.
MINIFLOATS: "Dict[str, Tuple[int, int, int, int, Tuple[int, ...]]]" = {
    "E4M3": (4, 3, 7, 0, (0x7F, 0xFF)),
    "E4M3FNUZ": (4, 3, 8, 0, (0x80,)),
    "E5M2": (5, 2, 15, 0x7C, (0x7E, 0x7D, 0x7F, 0xFE, 0xFD, 0xFF)),
    "E5M2FNUZ": (5, 2, 16, 0, (0x80,)),
    "E8M0": (8, 0, 127, 0, (0xFF,)),
    "E2M1": (2, 1, 1, 0, ())}


def minifloat(kind: str, code: int) -> float:
    """Return the value of a float of 8 or 4 bits: sign, exponent, mantissa.

    E8M0 has no sign.
    """
    exponent_bits, digits, bias, infinity, nans = MINIFLOATS[kind]
    size = code & (1 << exponent_bits + digits) - 1
    if code in nans:
        value = float("nan")
    elif infinity and size == infinity:
        value = INFINITY
    else:
        exponent = size >> digits
        mantissa = size & (1 << digits) - 1
        if digits == 0:
            # E8M0 has powers of two alone.
            mantissa = 1
        elif exponent == 0:
            # A subnormal number has no leading 1, and the exponent of the next ones.
            exponent = 1
        else:
            mantissa += 1 << digits
        value = mantissa * 2.0 ** (exponent - bias - digits)
    if size != code:
        value = -value
    return value


class Float8:
    """A dtype of 8-bit floats; tables of its values and codes are made when needed."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.codes = b""
        self.values: "List[float]" = []

    def unpack(self, data: "Iterable[int]") -> "List[float]":
        if not self.values:
            self.values = [minifloat(self.kind, code) for code in range(256)]
        return [self.values[byte] for byte in data]

    def narrow(self, data: "Union[bytes, memoryview]") -> bytes:
        """Return the codes of float32 bytes."""
        # A board casts fewer bytes at a time.
        if len(data) <= 4096:
            return bytes([self.code_of(value) for value
                          in unpack_values("float32", data)])
        # Of many: by a table for the upper 16 bits, which are rounded to odd.
        if not self.codes:
            every = unpack_values("bfloat16", pack("<65536H", *range(65536)))
            self.codes = bytes([self.code_of(value) for value in every])
        codes = self.codes
        words = unpack_values("uint16", data)
        out = bytearray()
        for lower, upper in zip(words[0::2], words[1::2]):
            if lower:
                upper |= 1
            out.append(codes[upper])
        return bytes(out)

    def code_of(self, value: float) -> int:
        """Return the code of a float32; E8M0 has no sign nor zero, FNUZ no -0.0."""
        from math import copysign, frexp
        _, digits, bias, infinity, nans = MINIFLOATS[self.kind]
        size = abs(value)
        code: int = nans[0]
        largest = infinity or code
        if size == INFINITY:
            code = largest
        elif size == size and (digits or value > 0):
            _, exponent = frexp(size or 1e-45)
            # Subnormal numbers have the exponent of the least normal ones.
            exponent = max(exponent, 2 - bias)
            steps = round(size * 2.0 ** (digits + 1 - exponent))
            code = min(steps + (exponent + bias - 2 << digits), largest)
        is_negative = copysign(1.0, value) < 0
        if is_negative and (code or 128 not in nans):
            code |= 128
        return code


FLOAT8 = {"float8_e4m3fn": Float8("E4M3"), "float8_e5m2": Float8("E5M2"),
          "float8_e4m3fnuz": Float8("E4M3FNUZ"), "float8_e5m2fnuz": Float8("E5M2FNUZ"),
          "float8_e8m0fnu": Float8("E8M0")}


def float8_of(dtype: "Optional[str]") -> Float8:
    return FLOAT8[str(dtype)]


# -- [9b] casts --------------------------------------------------------------------------

# Bits of the mantissa of a float, the leading 1 included.
FLOAT_DIGITS = {
    "float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4,
    "float8_e5m2": 3, "float8_e4m3fnuz": 4, "float8_e5m2fnuz": 3, "float8_e8m0fnu": 1}
# An integer with a 1 in each of its lanes of 32 bits.
LANES = int.from_bytes(b"\x01\x00\x00\x00" * (PART // 4), "little")
# Tables for the bytes of a float16: the low 3 bits on top, the other 5 below; for the
# upper byte whether the exponent is 0, and the upper byte of the float32.
HALF_SHIFT = bytes(range(0, 256, 32)) * 32
HALF_UPPER = bytes([byte >> 3 for byte in range(256)])
HALF_SMALL = (b"\xff" * 4 + bytes(124)) * 2
HALF_EXPONENTS = [0] + list(range(113, 143)) + [255]
HALF_TOP = b"".join([bytes([exponent >> 1]) * 4 for exponent in HALF_EXPONENTS])
HALF_TOP += bytes([byte | 128 for byte in HALF_TOP])


def narrow_float32(data: Any) -> bytearray:
    """As narrow_bfloat16 of at most PART bytes, 100 times as fast: by one big integer."""
    data = bytearray(data)
    tops = data[3::4]
    if 127 in tops or 255 in tops:
        # A NaN may be there, whose lane would overflow: one of few bits takes its place.
        for i, number in enumerate(unpack_values("float32", data)):
            if number != number:
                data[4 * i:4 * i + 3] = b"\x00\x00\xc0"
    # To each lane 0x7FFF is added, and 1 more if that makes the upper half even.
    ones = LANES >> 8 * (PART - len(data))
    lanes = int.from_bytes(data, "little")
    lanes += (lanes >> 16 & ones) + ones * 0x7FFF
    data = lanes.to_bytes(len(data), "little")
    out = bytearray(len(data) // 2)
    out[0::2] = data[2::4]
    out[1::2] = data[3::4]
    return out


def widen_float16(data: "Union[bytes, memoryview]") -> "Union[bytes, bytearray]":
    """Return float16 bytes as float32, 6 times as fast as by numbers.

    A NaN keeps its bits.
    """
    data = bytes(data)
    out = bytearray(2 * len(data))
    low = data[0::2]
    high = data[1::2]
    count = len(low)
    # The upper bytes of each float32; its lowest one stays 0.
    first = int.from_bytes(low.translate(HALF_SHIFT), "little")
    second = int.from_bytes(high.translate(HALF_SHIFT), "little")
    second |= int.from_bytes(low.translate(HALF_UPPER), "little")
    tops = high.translate(HALF_TOP)
    out[1::4] = first.to_bytes(count, "little")
    out[2::4] = second.to_bytes(count, "little")
    out[3::4] = tops
    small = int.from_bytes(high.translate(HALF_SMALL), "little") & (first | second)
    if not small:
        return out
    # Subnormal numbers: float32 has them with another exponent.
    flags = small.to_bytes(count, "little").translate(b"\x00" + b"\x01" * 255)
    has_nan = 127 in tops or 255 in tops
    if 16 * flags.count(1) > count and not has_nan:
        return pack_values("float32", unpack_values("float16", data))
    i = flags.find(1)
    while i >= 0:
        number, = unpack_from("<e", data, 2 * i)
        out[4 * i:4 * i + 4] = pack("<f", number)
        i = flags.find(1, i + 1)
    return out


def cast_block(data: "Union[bytes, memoryview]", old: str, new: str) -> Any:
    """Return at most PART little-endian bytes of dtype `old` as those of `new`."""
    if old == new:
        return data
    if old == "bfloat16" and new == "float32":
        return widen_bfloat16(data, "<")
    if old == "float16" and new == "float32":
        return widen_float16(data)
    if old == "float32" and new == "bfloat16":
        return narrow_float32(data)
    if old == "float32" and new in FLOAT8:
        return FLOAT8[new].narrow(data)
    return pack_values(new, unpack_values(old, data))


def cast_is_exact(old: str, new: str) -> bool:
    """Return whether every value of `old` is one of `new`."""
    if old == new:
        return True
    if "bool" in (old, new):
        return old == "bool" and new != "float8_e8m0fnu"
    if old in FLOAT_DIGITS:
        # Some have no room for the exponents.
        if new in FLOAT8:
            return False
        if new == "float16" and old in ("bfloat16", "float8_e8m0fnu"):
            return False
        return FLOAT_DIGITS[old] <= FLOAT_DIGITS.get(new, 0)
    least, most = INT_RANGE[old]
    if new in FLOAT_DIGITS:
        return most <= 2 ** FLOAT_DIGITS[new]
    new_least, new_most = INT_RANGE[new]
    return new_least <= least and most <= new_most


def other_generations(fmt: Format, options: Facts) -> "List[Format]":
    """Return the generations that could be written instead, with the same options."""
    found = []
    for one in FORMATS + GENERATIONS:
        is_other = one.FAMILY == fmt.FAMILY and one is not fmt and not one.READ_ONLY
        if is_other and one.VERSION and not options.get("version"):
            if set(options).issubset(one.OPTIONS):
                found.append(one)
    return found


def metadata_remedy(fmt: Format, metadata: Facts) -> str:
    """Return the end of a message that a format lacks a place for these: what to do."""
    ways = "metadata={} leaves it out"
    for other in other_generations(fmt, {}):
        problems = [other.metadata_problem(*pair) for pair in metadata.items()]
        if not any(problems):
            ways = f"version={other.VERSION!r} holds it, {ways}"
    return ways


def dtype_remedy(fmt: Format, dtype: str) -> str:
    """Return the end of a message that a format lacks a dtype: what to do."""
    if dtype == "qfloat":
        return DEQUANTIZE
    new = dtype_for(fmt, dtype)
    if not new:
        return ""
    ways = f"cast='{new}'"
    if dtype not in FLOAT_DIGITS and not cast_is_exact(dtype, new):
        ways += " if the values fit"
    for other in other_generations(fmt, {}):  # what loses nothing comes first
        if dtype in other.DTYPES:
            ways = f"version={other.VERSION!r}, or {ways}"
    return f"; take {ways}, or another format"


def dtype_for(fmt: Format, dtype: str) -> str:
    """Return the dtype of a format that holds such values best, or ""."""
    if dtype not in ITEMSIZE:
        return ""
    # The best one comes last in ITEMSIZE.
    for new in reversed(list(ITEMSIZE)):
        if new in fmt.DTYPES and cast_is_exact(dtype, new):
            return new
    rounding = ["int32", "float32"]
    if dtype in FLOAT_DIGITS:
        rounding = ["float32", "int32"]
    for new in rounding:
        if new in fmt.DTYPES:
            return new
    return ""


def cast_table(cast: Any) -> "Dict[Optional[str], str]":
    """Return the new dtype by the old one; None: by what the target cannot hold."""
    if cast is None:
        return {}
    if not hasattr(cast, "items"):
        return {None: as_dtype(cast)}
    table: "Dict[Optional[str], str]" = {}
    for old, new in cast.items():
        if old not in (None, "qfloat"):
            old = as_dtype(old)
        table[old] = as_dtype(new)
    return table


def wanted_dtype(fmt: Format, tensor: Tensor,
                 table: "Dict[Optional[str], str]") -> "Optional[str]":
    """Return the dtype that a tensor gets in a format, by a cast_table()."""
    if not tensor.dtype:
        return tensor.dtype
    if tensor.dtype in table:
        return table[tensor.dtype]
    if tensor.dtype in fmt.DTYPES or fmt.can_copy_opaque(tensor):
        return tensor.dtype
    return table.get(None, tensor.dtype)


def cast_tensor(tensor: Tensor, dtype: str) -> Tensor:
    """Return a tensor with another dtype; but for a sparse one it is cast when it is
    read.
    """
    if tensor.is_sparse:
        return tensor.astype(dtype)
    if tensor.dtype == "qfloat":
        # It raises for an unknown scheme.
        Cast(tensor, "float32").iter_bytes()
    else:
        tensor.check_readable()
    return Cast(tensor, dtype)


def cast_items(fmt: Format, items: Items, cast: Any) -> Items:
    """Return tensors as save(cast=) asks for them; ValueError where values do not fit."""
    table = cast_table(cast)
    found: Items = []
    for name, tensor in items:
        new = wanted_dtype(fmt, tensor, table)
        if new is not None and new != tensor.dtype:
            try:
                tensor = cast_tensor(tensor, new)
                # Numbers that do not fit: before the first byte.
                if new not in FLOAT_DIGITS:
                    for _ in tensor.iter_bytes():
                        pass
            except FormatError:
                raise
            except ValueError as error:
                raise ValueError(f"tensor {safe_repr(name)}: cast to {new}: {error}")
        found.append((name, tensor))
    return found


class Cast(Tensor):
    """A tensor as another dtype, without attrs of the old one, cast when it is read."""

    __slots__ = ("_base",)

    def __init__(self, base: Tensor, dtype: Any) -> None:
        attrs = dict(base.attrs)
        for fmt in FORMATS + GENERATIONS:
            for key in fmt.DTYPE_ATTRS + fmt.CAST_DROPS:
                attrs.pop(key, None)
        super().__init__(base.name, as_dtype(dtype), base.shape, base.source, base.start,
                         base.stored_nbytes, encoding="cast", attrs=attrs,
                         custom=base._custom, format=base.format)
        self._base = base

    @property
    def origin(self) -> Tensor:
        return self._base

    def iter_bytes(self) -> Blocks:
        base: Any = self._base
        if base.dtype == "qfloat":
            return base.iter_scaled(str(self.dtype))
        base.check_readable()
        parts = iter_parts(base.iter_bytes(), PART)
        return (cast_block(part, base.dtype, str(self.dtype)) for part in parts)

    def contiguous(self) -> Tensor:
        data = self.tobytes()
        return Tensor(self.name, self.dtype, self.shape, Buffer(data), 0, len(data),
                      attrs=self._attrs, custom=self._custom, format=self.format)


# -- [9c] arrays -------------------------------------------------------------------------


def view_of_array(data: Any, name: str,
                  wanted: "Optional[str]") -> "Tuple[memoryview, str]":
    """Return a memoryview and our dtype of any library's array, which calls it `name`."""
    is_torch = hasattr(data, "detach")
    if is_torch:
        # From any device, and without what is only noted.
        data = data.detach().cpu().resolve_conj().resolve_neg()
    dtype = name
    if name[:2] == "|V":
        dtype = dtype_of_bits(name, wanted)
    has_no_code = dtype in ITEMSIZE and dtype not in STRUCT_CODE
    if has_no_code and hasattr(data, "view"):
        # It is no buffer, but its bits are one.
        bits: Any = f"int{8 * ITEMSIZE[dtype]}"
        if is_torch:
            bits = getattr(sys.modules["torch"], bits)
        data = data.view(bits)
    buffer = data
    if hasattr(data, "__array__"):
        buffer = data.__array__()
    view, found = typed_view(buffer)
    if has_no_code:
        found = dtype
    if view is None or not found:
        raise TypeError(unfit_message(data, name))
    return view, found


def unfit_message(data: Any, name: str) -> str:
    """Return why a value is no tensor, and what to do."""
    what = f"cannot make a tensor of {type(data).__name__}"
    if name != "None":
        what += f" of {name}"
    if hasattr(data, "items"):
        names = [f'"NAME.{safe_str(str(key))}": ...' for key in list(data)[:2]]
        return f"{what}; flatten it: {{{', '.join(names)}}}"
    what += "; take numbers (.astype(DTYPE), .real and .imag); text goes to metadata="
    return what


def dtype_of_bits(code: str, wanted: "Optional[str]") -> str:
    """Return the dtype of bits, which numpy.asarray(tensor) gives without ml_dtypes."""
    known = []
    for dtype, nbytes in ITEMSIZE.items():
        if code == f"|V{nbytes}" and dtype not in STRUCT_CODE:
            known.append(dtype)
    if wanted in known:
        return str(wanted)
    if len(known) == 1:
        return str(known[0])
    names = " or ".join(known) or "any type"
    what = f"cannot make a tensor of {code}, bits of {names}"
    raise TypeError(f"{what}: tensor(x, DTYPE) says which")


def to_numpy(tensor: Tensor, dtype: Any, copy: "Optional[bool]") -> Any:
    """Return a tensor as a numpy array, for __array__()."""
    import numpy
    # numpy alone has no such dtype.
    has_no_code = tensor.itemsize is not None and tensor.dtype not in STRUCT_CODE
    scalar_type: Any = None
    is_other = False
    is_swapped = False
    if has_no_code:
        scalar_type = type_of_ml_dtypes(str(tensor.dtype))
        is_swapped = tensor.itemsize != 1 and tensor.byteorder != NATIVE
        is_same = scalar_type is not None and numpy.dtype(dtype) == scalar_type
        is_other = dtype is not None and not is_same
    if copy is False and (is_other or is_swapped or tensor.encoding != "raw"):
        wanted = dtype or tensor.dtype
        raise ValueError(f"copy=False: elements as {wanted} have to be made first")
    source = tensor
    if tensor.encoding != "raw":
        source = tensor.contiguous()
    array: Any = source
    if is_other and scalar_type is None:
        array = source.astype("float32")
    elif has_no_code:
        array = bits_in_numpy(source, scalar_type)
    if copy:
        return numpy.array(array, dtype)
    return numpy.asarray(array, dtype)


def type_of_ml_dtypes(dtype: str) -> Any:
    """Return the type of elements that numpy lacks, or None where it is not installed."""
    if not is_installed("ml_dtypes"):
        return None
    try:
        module = __import__("ml_dtypes")
    except ImportError:  # it was built for another numpy
        return None
    return getattr(module, dtype, None)


def bits_in_numpy(tensor: Tensor, scalar_type: Any) -> Any:
    """Return a tensor as a numpy array of a type of elements, or without one of bits."""
    import numpy
    nbytes = tensor.itemsize or 1
    bits = numpy.asarray(tensor.copy(dtype=f"uint{8 * nbytes}"), f"u{nbytes}")
    bits.flags.writeable = False
    return bits.view(scalar_type or f"V{nbytes}")


def to_dlpack(tensor: Tensor, options: Facts) -> Any:
    """Return a capsule for __dlpack__()."""
    import numpy
    if tensor.itemsize is not None and tensor.dtype not in STRUCT_CODE:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            what = f"{tensor.dtype} needs torch (import it before) or jax.numpy.asarray"
            raise BufferError(what)
        bits = torch.from_dlpack(tensor.copy(dtype=f"int{8 * tensor.itemsize}"))
        return bits.view(getattr(torch, str(tensor.dtype))).__dlpack__(**options)
    # Its elements are native.
    array: Any = numpy.asarray(tensor, tensor.dtype)
    # torch takes no negative strides, old libraries nothing that is read-only.
    is_backward = min(array.strides, default=0) < 0
    must_copy = is_backward or not options.get("max_version")
    if options.get("copy") is False:
        is_swapped = tensor.byteorder != NATIVE and array.itemsize > 1
        if must_copy or is_swapped or tensor.encoding != "raw":
            raise BufferError("copy=False: the elements have to be made or copied first")
    if must_copy:
        array = array.copy()
    return array.__dlpack__(**options)


# -- [9d] shared streams -----------------------------------------------------------------
#
# Files of several threads may read one stream, and a fork has the streams of its parent.

ELSEWHERE = "another process opened this stream: open and load it again in this one"
FORKS: "List[None]" = []  # that lie between the process which imported this and this one
# From Python 3.7 on; to ask the system takes 40 - 200 ns.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: FORKS.append(None))
    process_number: Any = FORKS.__len__
else:
    process_number = getattr(os, "getpid", int)  # int: there is one process only


def process_lock(locks: "Dict[int, Any]") -> Any:
    """Return the lock that this process has among `locks`.

    One that another thread holds when a process forks is never released in the child.
    """
    return locks.setdefault(process_number(), RLock())


def regular_file(stream: Any) -> "Optional[FileIO]":
    """Return the file that a stream gives the bytes of, or None if it may give others."""
    if not hasattr(os, "pread"):
        return None
    from io import BufferedRandom, BufferedReader, FileIO
    file = stream
    if type(stream) in (BufferedReader, BufferedRandom):
        file = stream.raw
    if type(file) is not FileIO or not file.readable():
        return None
    if os.fstat(file.fileno()).st_mode >> 12 != REGULAR:
        return None
    return file


class SharedTurn(Turn):
    """The Turn of all Files that read one stream, in the process that opened it."""

    known: Any = None  # by id of the stream, while a File reads it

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.process: int = process_number()  # a fork has the same position, but another lock

    def wait(self) -> Any:
        # Its lock may be held by a thread that this process has not.
        if self.process != process_number():
            raise ValueError(ELSEWHERE)
        return self.lock


class FileTurn(SharedTurn):
    """That of a plain file, which is not moved: a fork, say, has its position as well."""

    def __init__(self, stream: Any, file: "FileIO") -> None:
        super().__init__(stream)
        self.file = file

    def measure(self) -> "Tuple[int, int]":
        here = self.stream.tell()
        self.stream.flush()
        return here, os.fstat(self.file.fileno()).st_size

    def read(self, source: Stream, offset: int, nbytes: int) -> bytes:
        self.stream.flush()  # it may have bytes that are yet to be written
        data = source.read_at(self.file, offset, nbytes)
        # Closed meanwhile, its number may be that of another file.
        self.file.fileno()
        return data


def turn_of(stream: Any) -> Turn:
    """Return the Turn of a stream, which need not be hashable."""
    if BOARD:
        return Turn(stream)
    # All copies of this module share them: Files of two copies may read one stream.
    shared: "Dict[str, Any]" = sys.__dict__
    with process_lock(shared.setdefault("_tensorfmt_locks", {})):
        if SharedTurn.known is None:
            from weakref import WeakValueDictionary
            SharedTurn.known = shared.setdefault("_tensorfmt_turns", WeakValueDictionary())
        turn: "Optional[Turn]" = SharedTurn.known.get(id(stream))
        if turn is None:
            turn = SharedTurn(stream)
            file = regular_file(stream)
            if file is not None:
                turn = FileTurn(stream, file)
            SharedTurn.known[id(stream)] = turn
    return turn


def open_stream(source: Any) -> Buffer:
    """Return the source for a stream, or for a zipfile.Path."""
    lacks = [word for word in ("read", "seek", "tell") if not hasattr(source, word)]
    if "read" in lacks and hasattr(source, "open") and not hasattr(source, "__enter__"):
        # It is read at once: to seek in a deflated member takes long.
        with source.open("rb") as stream:
            return Buffer(stream.read(), True, getattr(source, "name", None))
    if lacks or hasattr(source, "encoding"):
        raise no_source(source)
    # A file says its path as .name, which may be a number; a stream of fsspec as .path.
    path = getattr(source, "name", getattr(source, "path", None))
    if not isinstance(path, str):
        path = None
    return Stream(source, path)


# -- [9e] pickles ------------------------------------------------------------------------


def check_state(source: Buffer, state: Any, nbytes: int) -> None:
    """Close a source and raise ValueError if its file is not the one that was opened before."""
    path, _, now = source.file_id
    if now != state or source.nbytes != nbytes:
        source.close()
        raise ValueError(f"{safe_str(path)} {CHANGED}")


class PickledFile(Buffer):
    """The file that a pickle names: opened when first used, unless it has changed."""

    has_offsets = True
    # By file_id: one for all tensors of a file, while one of them lives.
    shared: Any = None

    def __init__(self, path: str, mmap: bool, state: Any, nbytes: int) -> None:
        self.path = path
        self.nbytes = nbytes
        self.file_id = path, mmap, state
        self._locks: "Dict[int, Any]" = {}
        self._source: Any = None  # not opened yet

    def open(self) -> Buffer:
        """Return its source, opened once."""
        with process_lock(self._locks):
            if self._source is None:
                path, mmap, state = self.file_id
                source = open_path(path, mmap)
                check_state(source, state, self.nbytes)
                self._source = source
            return self._source

    @property
    def mapping(self) -> bool:  # type: ignore[override]
        return self.open().mapping

    def view(self, offset: int, nbytes: int) -> Any:
        return self.open().view(offset, nbytes)


def open_pickled(*args: Any) -> PickledFile:
    """Return the source of a pickle, one for all tensors of a file."""
    from weakref import WeakValueDictionary
    if PickledFile.shared is None:
        PickledFile.shared = WeakValueDictionary()
    shared = PickledFile.shared
    return shared.get(args) or shared.setdefault(args, PickledFile(*args))


def load_again(format: str, file_id: Any, partial: bool, states: Any = None) -> Any:
    """Return the File of a pickle, if the file is unchanged; `states`: of its shards."""
    source = PickledFile(*file_id).open()
    try:
        file: Any = read_file(source, detect_format(source, format), partial)
        if states is not None:
            file.expect(states)
        return file
    except BaseException:
        source.close()
        raise


# -- [9f] strided blocks -----------------------------------------------------------------


def gather(view: memoryview, first: int, shape: "Sequence[int]", strides: "Sequence[int]",
           itemsize: int) -> Blocks:
    """Yield the row-major bytes, about BLOCK each, of an array that begins at `first`."""
    dims, steps = merge_axes(shape, strides)
    if [step for step in steps if step % itemsize]:
        # Elements lie at odd places: they are rows of bytes.
        dims.append(itemsize)
        steps.append(1)
        itemsize = 1
    nbytes = itemsize * count_elements(dims)
    if nbytes == 0 or steps in ([], [itemsize]):
        # There is nothing, or all lies in one run.
        yield from iter_parts([view[first:first + nbytes]], BLOCK)
        return
    n = dims[0]
    rows = max(1, BLOCK * n // nbytes)
    if steps[0] == itemsize and n > 4 * rows:
        # So many elements lie side by side: longer runs of them, in larger blocks.
        rows = max(rows, min(4 * rows, 512 // itemsize))
    for start in range(0, n, rows):
        at = first + start * steps[0]
        part = [min(rows, n - start)] + dims[1:]
        if nbytes > n * BLOCK:
            # A row alone is larger than a block.
            yield from gather(view, at, part, steps, itemsize)
        else:
            yield gather_block(view, at, part, steps, itemsize)


def merge_axes(shape: "Sequence[int]",
               strides: "Sequence[int]") -> "Tuple[List[int], List[int]]":
    """Return the dimensions and strides of the same elements by as few axes as can be."""
    dims: "List[int]" = []
    steps: "List[int]" = []
    for n, stride in zip(shape, strides):
        if dims and steps[-1] == n * stride:
            # There is no gap between rows: the two axes are one.
            dims[-1] *= n
            steps[-1] = stride
        elif n != 1:
            dims.append(n)
            steps.append(stride)
    return dims, steps


def run_starts(first: int, dims: "List[int]", steps: "List[int]") -> "List[int]":
    """Return where the elements of an array lie, from the place of the first one on."""
    starts = [first]
    for count, step in zip(dims, steps):
        starts = [at + i * step for at in starts for i in range(count)]
    return starts


def gather_block(view: memoryview, first: int, dims: "List[int]", steps: "List[int]",
                 itemsize: int) -> "Union[bytes, bytearray]":
    """Return a block of gather() by slices along its longest axis."""
    if steps[0] == itemsize and 256 // itemsize <= dims[0] <= 2 * sum(dims[1:]):
        return turn_block(view, first, dims, steps, itemsize)
    out = bytearray(itemsize * count_elements(dims))
    places = list(row_major(tuple(dims), itemsize))
    longest = dims.index(max(dims))
    n = dims[longest]
    place = places.pop(longest) // itemsize
    step = steps[longest] // itemsize
    other_dims = dims[:longest] + dims[longest + 1:]
    other_steps = steps[:longest] + steps[longest + 1:]
    to_starts = run_starts(0, other_dims, places)
    at_starts = run_starts(first, other_dims, other_steps)
    code: Any = BITS_CODE[itemsize]
    target = memoryview(out).cast(code)
    source = memoryview(view).cast(code)
    # Of far steps only a few at a time, so that pages stay in the cache.
    tile = n
    if abs(step) >= 128:
        tile = 512
    for i in range(0, n, tile):
        count = min(tile, n - i)
        for to, at in zip(to_starts, at_starts):
            to = to // itemsize + i * place
            at = at // itemsize + i * step
            stop: Any = at + count * step
            if stop < 0:
                # It would count from the end.
                stop = None
            target[to:to + count * place:place] = source[at:stop:step]
    return out


def turn_block(view: memoryview, first: int, dims: "List[int]", steps: "List[int]",
               itemsize: int) -> bytes:
    """As gather_block, 1.6 times as fast where the first axis lies in runs."""
    from array import array
    n = dims[0]
    starts = run_starts(first, dims[1:], steps[1:])
    data = b"".join([view[at:at + n * itemsize] for at in starts])
    items: Any = data
    if itemsize > 1:
        items = array(BITS_CODE[itemsize], data)
    return b"".join([items[i::n] for i in range(n)])


# -- [9g] work ---------------------------------------------------------------------------

MAX_COPIES = 64  # times a file and 1 MiB: what a call may decode and write, but for one tensor
INDEX_WORK = 8  # times the bytes of indices: the memory of their numbers
CODEC_WORK = 16  # times those encoded: three bytes can be a block of which nothing comes out


def most_work(source: Buffer, free: int) -> int:
    """Return how many bytes may be decoded and written of the tensors of a source."""
    return MAX_COPIES * (source.nbytes + (1 << 20)) + free


def more_copies(source: Buffer, work: int) -> str:
    """Return what allows more work, besides that of the one tensor."""
    count = -(-work // (source.nbytes + (1 << 20)))
    return option(f"MAX_COPIES = {count}")


def work_of_part(part: Tensor, factor: int = 1) -> int:
    """Return how many bytes a part is, read and decoded; `factor`: what each counts."""
    decoded = part.decoded_nbytes
    if not part.is_decodable() or decoded is None:
        return factor * part.stored_nbytes
    return factor * decoded + CODEC_WORK * part.stored_nbytes


def work_of_values(tensor: Tensor, dense: bool = True) -> int:
    """Return how many bytes the values are that are read and written."""
    if tensor.encoding == "raw" and tensor._strides is None and tensor.dtype != "qfloat":
        return tensor.stored_nbytes  # of most tensors
    if tensor.unreadable and not tensor.is_decodable():
        return tensor.stored_nbytes
    if tensor.is_sparse and (not dense or tensor.nbytes > MAX_DENSE):
        return 0  # its parts count; as a dense one it would be refused
    if tensor.dtype == "qfloat":
        return max(tensor.nbytes, 4 * tensor.size)
    return tensor.decoded_nbytes or tensor.stored_nbytes


def work_besides(tensor: Tensor) -> int:
    """Return how many bytes are read and decoded besides the values."""
    if tensor.encoding == "raw" and type(tensor) is Tensor:
        return 0
    factor = 1
    if tensor.is_sparse:
        factor = INDEX_WORK
    work = 0
    for part in tensor.stored_parts().values():
        if part is not tensor:
            work += work_of_part(part, factor)
        elif tensor.is_decodable():
            work += CODEC_WORK * tensor.stored_nbytes
    return work


def check_work(items: Items, dense: bool = True,
               written: "Optional[Callable[[Tensor], int]]" = None) -> None:
    """Raise ValueError where tensors are much more, decoded and written, than their file.

    What is no file's counts for nothing; a tensor that is there more than once counts
    once: that is the wish of who calls. `dense`: sparse ones get their zeros.
    `written`(tensor): how many bytes of text are made of a tensor.
    """
    # Of each source, by its id: itself, and by name all work and that of the values.
    files: "Dict[int, Tuple[Buffer, Dict[str, Tuple[int, int]]]]" = {}
    for _, tensor in items:
        base = tensor.origin
        if not base.source.has_offsets:
            continue
        _, works = files.setdefault(id(base.source), (base.source, {}))
        values = work_of_values(base, dense)
        if tensor is not base and values:
            values = max(values, tensor.nbytes)
        if written is not None:
            values = max(values, written(tensor))
        work = values + work_besides(base), values
        works[base.name] = max(work, works.get(base.name, work))
    for source, works in files.values():
        check_works(source, list(works.values()))


def check_works(source: Buffer, works: "List[Tuple[int, int]]") -> None:
    """Raise ValueError where (all work, that of the values) is too much for a file."""
    total = free = 0
    for work, values in works:
        total += work
        if values <= MAX_DENSE:
            free = max(free, values)
    if total <= most_work(source, free):
        return
    what = f"the tensors are {total} bytes if all are decoded and written, the file has "
    what += f"{source.nbytes}: over MAX_COPIES = {MAX_COPIES} times that and 1 MiB; "
    raise ValueError(what + f"{more_copies(source, total - free)} allows it")


class Meter:
    """Tells watch(verb, done, total) how many bytes of a pass are done."""

    def __init__(self, watch: Watch, verb: str, total: int) -> None:
        self.watch, self.verb, self.total, self.done = watch, verb, total, 0

    def over(self, blocks: Blocks) -> Blocks:
        """Return blocks that are counted when they are read."""
        if self.watch is None:
            return blocks
        return self.count(blocks)

    def count(self, blocks: Blocks) -> Blocks:
        """Yield what blocks hold, and count it."""
        for block in iter_parts(blocks, BLOCK):
            yield block
            self.add(len(block))

    def add(self, nbytes: int) -> None:
        """Count bytes that are done."""
        self.done += nbytes
        if self.watch is not None:
            self.watch(self.verb, min(self.done, self.total), self.total)

    def write(self, fmt: Format, items: Items, *settings: Facts) -> Blocks:
        """Return the blocks of fmt.write(), counted, and also what it hashes before it writes."""
        hashing: Facts = {}

        def digest_of(name: str, tensor: Tensor) -> str:
            return hash_blocks("xxh3", self.over(tensor.iter_bytes()))

        if fmt.HASHES_DECODED and self.watch is not None:
            self.total *= 2
            hashing["digest_of"] = digest_of
        return self.over(without_gc(fmt.write)(items, *settings, **hashing))


# -- [9h] composites ---------------------------------------------------------------------
#
# A tensor of a layout that is not known here, with the bytes that its fields place.


class Composite(Tensor):
    """A tensor of an unknown layout or type: its parts lie in the file, by role."""

    __slots__ = ("parts",)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parts: TensorMap = {}

    def stored_parts(self) -> TensorMap:
        return self.parts or {"": self}

    def copy(self, **changes: Any) -> Tensor:
        made: Any = super().copy(**changes)
        made.parts = self.parts
        return made

    def __reduce__(self) -> Any:
        made: Any = super().__reduce__()
        return made + ((None, {"parts": self.parts}),)


def with_parts(fmt: ZTensor, tensor: Tensor, end: int) -> Tensor:
    """Return a tensor that is not known here with the parts that its fields place."""
    fields = Map(tensor.attrs.items())
    fields.update(tensor.custom)
    places = fmt.find_parts(tensor, fields, end)
    if not places:
        return tensor
    whole = Composite(*[getattr(tensor, key) for key in ARGUMENTS])
    whole.parts = Map([("", tensor)])
    whole.parts.update(places)
    return whole


def places_other_bytes(tensor: Tensor) -> bool:
    """Return whether a tensor of an unknown layout may have bytes that are not known."""
    parts = tensor.stored_parts()
    # In zTensor 2 all bytes are of a part.
    if "parts" in tensor.attrs:
        return len(tensor.attrs["parts"]) > len(parts)
    if tensor.attrs.get("layout", "dense") == "dense":
        return False
    known = set()
    for part in parts.values():
        known.add((part.attrs.get("offset"), part.attrs.get("size")))
    for value in (tensor.custom, tensor.attrs):
        for fact in iter_maps(value):
            if not has_offset(fact):
                continue
            place = fact.get("offset"), fact.get("size")
            if set(map(type, place)) != {int} or place not in known:
                return True
    return False


def has_offset(fact: Facts) -> bool:
    """Return whether a map may say where bytes are: by a key with "offset" in it."""
    for key, value in fact.items():
        if isinstance(key, str) and "offset" in key.lower():
            numbers = value if isinstance(value, list) else [value]
            if int in map(type, numbers):
                return True
    return False


# -- [9i] equality -----------------------------------------------------------------------
#
# Tensors and facts are the same where values and types are: for `==` and for diff().


def token_of(value: Any) -> Any:
    """Return what two facts have in common if they are one value of one type.

    Of an array or a map it is the length: is_same() looks at what is inside.
    """
    if isinstance(value, float):
        if value != value:
            return float, "NaN"
        return float, pack("<d", value)  # -0.0 is another one than 0.0
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes, bytes(value)
    if hasattr(value, "items"):
        return dict, len(value)
    if type(value) in (list, tuple):
        return list, len(value)
    if isinstance(value, tuple):  # Simple, also of another copy of this module
        return type(value).__name__, tuple(value)
    return type(value), value


def token_of_key(key: Any) -> Any:
    """Return what two keys have in common that are the same: of tuples all is inside."""
    if type(key) is tuple:
        return tuple, tuple(map(token_of_key, key))
    return token_of(key)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two facts are one value of one type: 1, 1.0, True differ, NaN does not.

    The order of keys does not count. What a user gave may be nested without end.
    """
    waiting = [(a, b)]
    seen: "Dict[Any, Any]" = {}  # arrays and maps, so that their ids stay theirs
    while waiting:
        a, b = waiting.pop()
        token = token_of(a)
        if token != token_of(b):
            return False
        if token[0] not in (dict, list) or (id(a), id(b)) in seen:
            continue
        seen[id(a), id(b)] = a, b
        if token[0] is list:
            waiting.extend(zip(a, b))
            continue
        others = {token_of_key(key): tensor for key, tensor in b.items()}
        for key, tensor in a.items():
            other = others.get(token_of_key(key), MISSING)
            if other is MISSING:
                return False
            waiting.append((tensor, other))
    return True


def is_equal(a: "Tensor", b: "Tensor") -> bool:
    """Return whether two tensors differ at most in names, and in how they are stored."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if (a._custom or b._custom) and not is_same(a.custom, b.custom):
        return False
    return has_same_values(a, b)


def has_same_values(a: "Tensor", b: "Tensor") -> bool:
    """Return whether two tensors of one dtype and shape have the same bytes, as known."""
    # Plain ones are no more than their files: to count that would take 7.4, not 4.4 us.
    is_plain = type(a) is type(b) is Tensor and a.encoding == b.encoding == "raw"
    if not is_plain:
        check_work([(a.name, a), (b.name, b)])
    if a.unreadable is None and b.unreadable is None and a.itemsize is not None:
        try:
            return has_same_bytes(a, b)
        except Unsupported:  # of an unknown layout, too large if dense, no module for zstd
            pass
    return is_stored_alike(a, b)


def is_stored_alike(a: "Tensor", b: "Tensor") -> bool:
    """Return whether files say the same of two tensors without values, also in bytes."""
    if a.byteorder != b.byteorder or not is_same(type_facts(a), type_facts(b)):
        return False
    in_one_file = are_one_file(a.source, b.source)
    if not in_one_file and (places_other_bytes(a) or places_other_bytes(b)):
        return False
    parts, others = a.stored_parts(), b.stored_parts()
    if set(parts) != set(others):
        return False
    if "shard" in [part.encoding for part in parts.values()]:  # they lie in other files
        return in_one_file and a.name == b.name and is_same(a.attrs, b.attrs)
    for role, part in parts.items():
        if role:
            same = is_equal(part, others[role])
        else:
            same = has_same_stored(part, others[role])
        if not same:
            return False
    return True


def are_one_file(a: "Buffer", b: "Buffer") -> bool:
    """Return whether two sources are one, or were opened from one path, unchanged."""
    if a is b:
        return True
    return a.file_id is not None and b.file_id is not None and a.file_id[::2] == b.file_id[::2]


def type_facts(tensor: "Tensor") -> Facts:
    """Return what its format says of a type that is not known here."""
    for fmt in FORMATS + GENERATIONS:
        if fmt.NAME == tensor.format:
            return fmt.type_facts(tensor)
    return tensor.attrs


def has_same_stored(a: "Tensor", b: "Tensor") -> bool:
    """Return whether the bytes of two tensors without values are the same, or decoded."""
    if a.encoding == b.encoding and a.attrs.get("encoding") == b.attrs.get("encoding"):
        if are_same_blocks(a.iter_stored(), b.iter_stored()):
            return True
    for tensor in (a, b):
        if tensor.itemsize is not None or tensor.encoding != "raw" and not tensor.is_decodable():
            return False
    try:
        return are_same_blocks(a.iter_bytes(), b.iter_bytes())
    except Unsupported:  # over MAX_DENSE, no module for zstd
        return False


def has_same_bytes(a: "Tensor", b: "Tensor") -> bool:
    """Return whether two tensors have the same row-major bytes."""
    if a.source is b.source and a.encoding == b.encoding == "raw" and (
            (a.start, a._strides, a.byteorder) == (b.start, b._strides, b.byteorder)):
        return a.nbytes == b.nbytes
    if a.is_sparse and b.is_sparse and has_same_components(a, b):
        return True
    return are_same_blocks(a.iter_bytes(), b.iter_bytes())


def has_same_components(a: "Tensor", b: "Tensor") -> bool:
    """Return whether two sparse tensors are alike in all that they store."""
    parts, others = a.components, b.components
    if set(parts) != set(others):
        return False
    return all([is_equal(part, others[role]) for role, part in parts.items()])


def are_same_blocks(blocks: Blocks, others: Blocks) -> bool:
    """Return whether blocks hold the same bytes, wherever each of them ends."""
    for part, other in zip(regroup(blocks, PART), regroup(others, PART)):
        if part != other:
            return False
    return True


def regroup(blocks: Blocks, nbytes: int) -> Blocks:
    """Yield what blocks hold, so many bytes at a time; at the end what is left, or b""."""
    rest = bytearray()
    for part in iter_parts(blocks, nbytes):
        if not rest and len(part) == nbytes:
            yield bytes(part)
            continue
        rest += part
        if len(rest) >= nbytes:
            yield bytes(rest[:nbytes])
            rest = rest[nbytes:]
    yield bytes(rest)


# -- [9j] JSON ---------------------------------------------------------------------------


class Json:
    """Reads JSON in UTF-8 (RFC 8259) by the module json: parse() gives its value.

    Only blanks may follow. A key twice is an error; so are NaN and numbers beyond
    float64. Errors count from `base`.
    """

    # Where the value ends that a Reading parsed.
    read_end: "Optional[int]" = None

    def __init__(self, data: bytes, base: int = 0, depth: int = MAX_DEPTH) -> None:
        self.data = data
        self.base = base
        self.depth = depth
        self.end = len(data.rstrip(b" \t\r\n"))

    def error(self, what: str, at: int = 0,
              error_class: "Type[FormatError]" = FormatError) -> FormatError:
        # Where the text is broken there is no field.
        return error_class("JSON: " + what, self.base + at, "")

    def parse(self) -> "Tuple[Any, int]":
        """Return (value, end)."""
        try:
            text = self.data.decode()
        except UnicodeError as error:
            raise self.error("text is not UTF-8", getattr(error, "start", 0))
        if text.count("{") + text.count("[") > MAX_ITEMS:
            what = f"arrays and objects exceed MAX_ITEMS = {MAX_ITEMS}"
            raise self.error(what, 0, Unsupported)
        value = self.value_of(text)
        self.check_depth(value)
        self.check_letters(value, text)
        return value, self.end

    def value_of(self, text: str) -> Any:
        """Return the value of a text by the module json."""
        import json
        parse_int = None
        if has_special_ints(self, text):
            parse_int = self.make_int
        try:
            return json.loads(text, object_pairs_hook=self.make_map, parse_int=parse_int,
                              parse_float=self.make_float, parse_constant=self.make_float)
        except FormatError:
            raise
        except ValueError as error:
            # A JSONDecodeError, or of an integer of thousands of digits.
            what = getattr(error, "msg", "not a number")
            at = getattr(error, "pos", 0)
            if what.startswith("Invalid"):
                # It is inside of a text: the place is that of the whole text.
                at = text.rfind('"', 0, at)
            raise self.error(what, len(text[:at].encode()))
        except RuntimeError:
            # A RecursionError.
            raise self.error("nested deeper than this Python can read")

    def check_depth(self, value: Any) -> None:
        """Raise for arrays and objects nested deeper than `depth`."""
        kinds = list, Map
        level = [value]
        for _ in range(self.depth + 1):
            boxes = [item for item in level if type(item) in kinds]
            if not boxes:
                return
            level = []
            for box in boxes:
                if type(box) is Map:
                    box = box.values()
                level.extend(box)
        raise self.error(f"nested deeper than {self.depth}")

    def check_letters(self, value: Any, text: str) -> None:
        """Raise for an escape that is half a letter, a lone surrogate."""
        if "\\u" in text:
            import json
            if not is_text(json.dumps(value, ensure_ascii=False)):
                raise self.error("a lone surrogate is not Unicode text")

    def make_map(self, pairs: "List[Tuple[str, Any]]") -> Facts:
        """Return the map of pairs, whose keys must differ."""
        values = Map(pairs)
        if len(values) < len(pairs):
            for key, _ in pairs:
                if key not in values:
                    raise self.error(f"key {short_repr(key)} twice")
                del values[key]
        return values

    def make_int(self, text: str) -> "Union[int, float]":
        """Return an integer; as in serde_json, one beyond float64 is an error."""
        # "-0" is a float in serde_json, too.
        if text == "-0":
            return -0.0
        if len(text) > 308:
            self.make_float(text)
        return int(text)

    def make_float(self, text: str) -> float:
        """Return a number with a fraction or an exponent, NaN or Infinity."""
        value = float(text)
        if not -INFINITY < value < INFINITY:
            raise self.error("NaN, or a number beyond float64")
        return value


def has_special_ints(codec: Json, text: str) -> bool:
    """Return whether integers may be among the numbers that make_int() looks for."""
    if "-0" in text:
        return True
    # Where Python does not limit digits, millions of them take minutes.
    limit = getattr(sys, "get_int_max_str_digits", None)
    if limit is None or limit() == 0:
        return True
    if codec.end < 309:
        return False
    # An integer beyond float64 has at least 309 digits.
    zeros = codec.data.translate(bytes.maketrans(b"123456789", b"0" * 9))
    return b"0" * 309 in zeros


def read_json(reading: Reading, at: int, nbytes: int, schema: Schema,
              codec_class: Any = Json, depth: int = MAX_DEPTH) -> Any:
    """Return a value of JSON in a file that fits a Schema."""
    codec = codec_class(reading.source.read(at, nbytes), at, depth)
    return reading.tree(codec, schema, (), False)


def json_dumps(value: Any) -> bytes:
    """Return a value as JSON without blanks, in the order of its dicts."""
    import json
    return encode_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def json_problem(value: Any, depth: int) -> "Optional[str]":
    """Return why JSON cannot hold a value and give it back, or None.

    `depth`: so many arrays and objects may be one in another.
    """
    if depth < 0 and isinstance(value, (dict, list, tuple)):
        return f"nested deeper than MAX_DEPTH = {MAX_DEPTH}"
    if isinstance(value, int) and value.bit_length() > 14000:
        return "an integer of more digits than Python writes"
    if isinstance(value, dict):
        for key in value:
            if not is_text(key):
                return f"the key {short_repr(key)} is not text"
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            problem = json_problem(item, depth - 1)
            if problem:
                return problem
        return None
    if isinstance(value, str) and not is_text(value):
        return "a lone surrogate is not Unicode text"
    if value is None or isinstance(value, (int, float, str)):
        return None
    return f"JSON cannot hold {type(value).__name__}"


# -- [9k] XXH3 ---------------------------------------------------------------------------
#
# XXH3-64 and XXH64 of Cyan4973/xxHash with the seed 0; constants are called as there.
# XXH3: a stripe is 64 bytes, a block 16 stripes; from 241 bytes on they are added to 8
# lanes.

XXH3_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578"
    "825ad07dccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea3"
    "71644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931"
    "c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
XXH_PRIME32_1 = 0x9E3779B1
XXH_PRIME32_2 = 0x85EBCA77
XXH_PRIME32_3 = 0xC2B2AE3D
XXH_PRIME64_1 = 0x9E3779B185EBCA87
XXH_PRIME64_2 = 0xC2B2AE3D27D4EB4F
XXH_PRIME64_3 = 0x165667B19E3779F9
XXH_PRIME64_4 = 0x85EBCA77C2B2AE63
XXH_PRIME64_5 = 0x27D4EB2F165667C5
XXH_PRIME_MX1 = 0x165667919E3779F9
XXH_PRIME_MX2 = 0x9FB21C651E98DF25
XXH3_START = (XXH_PRIME32_3, XXH_PRIME64_1, XXH_PRIME64_2, XXH_PRIME64_3,
              XXH_PRIME64_4, XXH_PRIME32_2, XXH_PRIME64_5, XXH_PRIME32_1)
# Eight keys for each stripe of a block, those that scramble the lanes, those of the end.
XXH3_KEYS = [key for i in range(16) for key in unpack_from("<8Q", XXH3_SECRET, 8 * i)]
XXH3_SCRAMBLE = unpack_from("<8Q", XXH3_SECRET, 128)
XXH3_LAST_STRIPE = unpack_from("<8Q", XXH3_SECRET, 121)
XXH3_MERGE = unpack_from("<8Q", XXH3_SECRET, 11)
MASK64 = (1 << 64) - 1
# The class of the module xxhash, once it was looked for: an import that fails is slow.
FAST_XXH3: "List[Any]" = []


def fast_xxh3() -> Any:
    """Return the class xxh3_64 of the module xxhash, or None without it."""
    if not FAST_XXH3:
        try:
            FAST_XXH3.append(__import__("xxhash").xxh3_64)
        except (ImportError, AttributeError):
            # There is no module, or one before xxhash 2.0.
            FAST_XXH3.append(None)
    return FAST_XXH3[0]


def xxh_digest(algorithm: str, blocks: "Iterable[Any]") -> str:
    """Return the digest "xxh3" of bytes, or "xxh64/32": the lower half of XXH64."""
    if algorithm == "xxh3":
        return "xxh3:%016x" % xxh3_64(blocks)
    return "xxh64/32:%08x" % (xxh64(blocks) & 0xFFFFFFFF)


def xxh3_64(blocks: "Iterable[Any]") -> int:
    """Return the XXH3-64 (seed 0) of bytes in blocks.

    40 MB/s, or 250 if numpy was imported; with xxhash as fast as memory.
    """
    fast = fast_xxh3()
    if fast is not None:
        state = fast()
        for block in blocks:
            state.update(block)
        return int(state.intdigest())
    lanes: "List[int]" = list(XXH3_START)
    nbytes = 0
    # What is not in the lanes yet, behind the last stripe that is.
    data = bytes(64)
    for part in iter_parts(blocks, PART):
        nbytes += len(part)
        data += bytes(part)
        # At least one byte stays for the end.
        whole = (len(data) - 65) & -1024
        if whole > 0:
            add_blocks(lanes, data[64:64 + whole])
            data = data[whole:]
    if nbytes <= 240:
        return xxh3_short(data[64:])
    first = stripe_sums(data[64:(len(data) - 1) & -64])
    second = stripe_sums(data[-64:], XXH3_LAST_STRIPE)
    for i, key in enumerate(XXH3_MERGE):
        lanes[i] = lanes[i] + first[i] + second[i] & MASK64 ^ key
    h = nbytes * XXH_PRIME64_1
    for i in (0, 2, 4, 6):
        h += fold_product(lanes[i], lanes[i + 1])
    return xxh3_avalanche(h)


def add_blocks(lanes: "List[int]", data: bytes) -> None:
    """Add whole blocks to the lanes; each block scrambles them."""
    for sums in block_sums(data):
        for i, key in enumerate(XXH3_SCRAMBLE):
            lane = lanes[i] + sums[i] & MASK64
            lanes[i] = (lane ^ lane >> 47 ^ key) * XXH_PRIME32_1 & MASK64


def block_sums(data: bytes) -> "List[List[int]]":
    """Return stripe_sums() of each block."""
    numpy: Any = sys.modules.get("numpy")
    if not hasattr(numpy, "frombuffer"):
        return [stripe_sums(data[at:at + 1024]) for at in range(0, len(data), 1024)]
    words = numpy.frombuffer(data, "<u8").reshape(-1, 16, 8)
    mixed = words ^ numpy.array(XXH3_KEYS, "u8").reshape(16, 8)
    products = (mixed & 0xFFFFFFFF) * (mixed >> 32)
    swapped = words.sum(1)[:, [1, 0, 3, 2, 5, 4, 7, 6]]
    sums: "List[List[int]]" = (products.sum(1) + swapped).tolist()
    return sums


def stripe_sums(data: bytes, keys: "Sequence[int]" = XXH3_KEYS) -> "List[int]":
    """Return what up to 16 stripes add to the lanes."""
    sums = [0] * 8
    for i, word in enumerate(unpack_from(f"<{len(data) // 8}Q", data, 0)):
        mixed = word ^ keys[i]
        sums[i & 7] += (mixed & 0xFFFFFFFF) * (mixed >> 32)
        # The word itself is added to the lane beside.
        sums[i & 7 ^ 1] += word
    return sums


def fold_product(a: int, b: int) -> int:
    """Return the halves of a product of 128 bits, xored."""
    product = a * b
    return product & MASK64 ^ product >> 64


def xxh3_avalanche(h: int) -> int:
    """Return a hash each of whose bits depends on all of them."""
    h &= MASK64
    h = (h ^ h >> 37) * XXH_PRIME_MX1 & MASK64
    return h ^ h >> 32


def xxh64_avalanche(h: int) -> int:
    """Return the same for XXH64, and for less than 4 bytes."""
    h &= MASK64
    h = (h ^ h >> 33) * XXH_PRIME64_2 & MASK64
    h = (h ^ h >> 29) * XXH_PRIME64_3 & MASK64
    return h ^ h >> 32


def word_at(data: bytes, at: int, nbytes: int = 8) -> int:
    """Return so many bytes of data as a little-endian number."""
    return int.from_bytes(data[at:at + nbytes], "little")


def secret_key(at: int, nbytes: int = 8) -> int:
    """Return two words of the secret that lie side by side, xored."""
    return word_at(XXH3_SECRET, at, nbytes) ^ word_at(XXH3_SECRET, at + nbytes, nbytes)


def mix_16(data: bytes, at: int, secret_at: int) -> int:
    """Return what 16 bytes of data and of the secret add to a hash."""
    a, b = unpack_from("<2Q", data, at)
    c, d = unpack_from("<2Q", XXH3_SECRET, secret_at)
    return fold_product(a ^ c, b ^ d)


def rotate(number: int, bits: int) -> int:
    """Return the 64 bits of a number turned to the left."""
    number &= MASK64
    return (number << bits | number >> 64 - bits) & MASK64


def xxh3_short(data: bytes) -> int:
    """Return the XXH3-64 of at most 240 bytes."""
    n = len(data)
    if n == 0:
        return xxh64_avalanche(secret_key(56))
    if n < 4:
        h = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return xxh64_avalanche(h ^ secret_key(0, 4))
    if n < 9:
        h = word_at(data, 0, 4) << 32 | word_at(data, n - 4, 4)
        h ^= secret_key(8)
        h ^= rotate(h, 49) ^ rotate(h, 24)
        h = h * XXH_PRIME_MX2 & MASK64
        h = (h ^ (h >> 35) + n) * XXH_PRIME_MX2 & MASK64
        return h ^ h >> 28
    if n < 17:
        low = word_at(data, 0) ^ secret_key(24)
        high = word_at(data, n - 8) ^ secret_key(40)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return xxh3_avalanche(n + swapped + high + fold_product(low, high))
    h = n * XXH_PRIME64_1
    if n < 129:
        # From both ends to the middle.
        for i in range((n + 31) // 32):
            h += mix_16(data, 16 * i, 32 * i)
            h += mix_16(data, n - 16 * i - 16, 32 * i + 16)
        return xxh3_avalanche(h)
    for at in range(0, 128, 16):
        h += mix_16(data, at, at)
    h = xxh3_avalanche(h)
    for at in range(128, n - 15, 16):
        h += mix_16(data, at, at - 125)
    return xxh3_avalanche(h + mix_16(data, n - 16, 119))


def xxh64_round(lane: int, word: int) -> int:
    return rotate(lane + word * XXH_PRIME64_2, 31) * XXH_PRIME64_1


def xxh64(blocks: "Iterable[Any]") -> int:
    """Return the XXH64 (seed 0) of bytes in blocks: 18 MB/s, with xxhash as memory."""
    if fast_xxh3() is not None:
        state = __import__("xxhash").xxh64()
        for block in blocks:
            state.update(block)
        return int(state.intdigest())
    # Of each 32 bytes, 8 are added to each of four lanes.
    lanes = [XXH_PRIME64_1 + XXH_PRIME64_2, XXH_PRIME64_2, 0, -XXH_PRIME64_1]
    nbytes = 0
    rest = b""
    for part in iter_parts(blocks, PART):
        nbytes += len(part)
        rest += bytes(part)
        words = unpack_from(f"<{len(rest) // 32 * 4}Q", rest, 0)
        rest = rest[8 * len(words):]
        for i in range(0, len(words), 4):
            pairs = zip(lanes, words[i:i + 4])
            lanes = [xxh64_round(lane, word) for lane, word in pairs]
    h = XXH_PRIME64_5
    if nbytes >= 32:
        h = xxh64_merge(lanes)
    return xxh64_end(h + nbytes, rest)


def xxh64_merge(lanes: "List[int]") -> int:
    """Return the hash of four lanes."""
    h = 0
    for lane, bits in zip(lanes, (1, 7, 12, 18)):
        h += rotate(lane, bits)
    for lane in lanes:
        h = (h ^ xxh64_round(0, lane)) * XXH_PRIME64_1 + XXH_PRIME64_4
    return h


def xxh64_end(h: int, rest: bytes) -> int:
    """Return a hash to which the last bytes, at most 31, were added."""
    while len(rest) >= 8:
        h ^= xxh64_round(0, word_at(rest, 0))
        h = rotate(h, 27) * XXH_PRIME64_1 + XXH_PRIME64_4
        rest = rest[8:]
    if len(rest) >= 4:
        h ^= word_at(rest, 0, 4) * XXH_PRIME64_1
        h = rotate(h, 23) * XXH_PRIME64_2 + XXH_PRIME64_3
        rest = rest[4:]
    for byte in rest:
        h = rotate(h ^ byte * XXH_PRIME64_5, 11) * XXH_PRIME64_1
    return xxh64_avalanche(h)


# -- [9l] digests ------------------------------------------------------------------------


def hash_blocks(algorithm: str, blocks: "Iterable[Any]") -> str:
    """Return the digest of bytes, as zTensor writes it."""
    if algorithm[:3] == "xxh":
        return xxh_digest(algorithm, blocks)
    digest = Digest(algorithm)
    for block in blocks:
        digest.update(block)
    return digest.text()


def compare_digest(blocks: "Iterable[Any]", stored: str,
                   digits: "Dict[str, int]") -> "Tuple[str, str]":
    """Return whether bytes have a digest: ("ok", the digest as it is written), or
    (status, why).

    `digits`: of each algorithm, how many.
    """
    algorithm, colon, text = stored.partition(":")
    if not colon or algorithm not in digits:
        return "-", f"{short_repr(stored)} is of an unknown algorithm"
    size = digits[algorithm]
    plain = text.lower()
    if plain[:2] == "0x":
        plain = plain[2:]
        # A number of 32 bits may have any zeros in front.
        if plain and size == 8:
            plain = plain.lstrip("0").rjust(8, "0")
    if len(plain) != size or plain.strip("0123456789abcdef"):
        return "FAIL", f"{short_repr(stored)} cannot be read"
    try:
        found = hash_blocks(algorithm, blocks)
    except Unsupported as error:
        return "-", error.what
    except FormatError as error:
        return "FAIL", error.what
    if found.lower().endswith(plain):
        return "ok", found
    return "FAIL", f"{algorithm}: the bytes give {found}, the file says {stored}"


def iter_checksums(fmt: Format, tensor: Tensor,
                   seen: "Set[Any]") -> "Iterator[Tuple[str, Tensor, Any]]":
    """Yield (label, Tensor, digest) of the checksums of a tensor; inner ones once.

    `seen`: the places of tensors before.
    """
    yield from fmt.checksums(tensor)
    for part in tensor.stored_parts().values():
        if part.encoding == "raw":
            continue
        place = place_of(part)[:4]
        if place not in seen:
            seen.add(place)
            yield from fmt.inner_checksums(part)


def place_of(part: Tensor) -> "Tuple[Any, ...]":
    """Return what two Tensors have in common that lie at one place, encoded alike."""
    return (id(part.source), part.start, part.stored_nbytes, part.encoding, part.decoded_nbytes,
            part.dtype)


# -- [9m] safe saving --------------------------------------------------------------------
#
# What save() looks at besides the format: that no source is damaged, nor read while it is
# written, and that nobody may do more with the new file than with the one that it replaces.

REFUSALS = ("EPERM", "EACCES", "EROFS", "EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EBUSY",
            "EXDEV", "ETXTBSY", "ENODATA")
PROTECTED = "; what may not be written is not replaced: chmod u+w, or save under another name"
NOT_BESIDE = ("; no file can be made beside it or renamed over it: save in another folder, then "
              "copy that file here")
MAPPED = " (mapped? close() the File, drop its views, or load with mmap=False)"
ACCESS_LIST = "system.posix_acl_access"  # where Linux keeps it


def check_stored(items: Items, watch: Watch = None) -> None:
    """Raise FormatError where stored bytes are damaged: they get no new checksum."""
    formats: "Dict[str, Format]" = {}
    # What is stored once is hashed once.
    checks: "Dict[Any, Tuple[Format, Tensor, str, Tensor, Any]]" = Map()
    seen: "Set[Any]" = set()
    for _, tensor in items:
        tensor = tensor.origin
        if tensor.format is None or not tensor.source.has_offsets:
            continue
        if tensor.format not in formats:
            formats[tensor.format] = find_format(tensor.format)
        fmt = formats[tensor.format]
        if not fmt.DIGESTS:
            continue
        for label, part, digest in iter_checksums(fmt, tensor, seen):
            if part.source.has_offsets:  # no copy in memory
                place = place_of(part) + (digest,)
                checks.setdefault(place, (fmt, tensor, label, part, digest))
    meter = Meter(watch, "checking", sum([part.nbytes for _, _, _, part, _ in checks.values()]))
    for fmt, tensor, label, part, digest in checks.values():
        blocks = meter.over(fmt.hashed_blocks(part))
        status, text = compare_digest(blocks, digest, fmt.DIGESTS)
        if status == "FAIL":
            raise tensor.error(label + text, check="checksums")

def check_target(target: Any, about: "Optional[os.stat_result]", items: Items) -> None:
    """Raise ValueError where a tensor is read from what is written in place.

    That is the stream `target`, or the file of which os.stat() says `about`.
    """
    if target is not None:
        about = stream_about(target)
    sources: "Set[Buffer]" = set()
    for _, tensor in items:
        if type(tensor) is not Tensor:
            tensor = tensor.origin
            sources.update([part.source for part in tensor.stored_parts().values()])
        sources.add(tensor.source)
    for source in sources:
        if source.has_offsets and is_read_from(source, target, about):
            raise ValueError("tensors are read from the stream or file that is written: take "
                             "another one, or write what dumps() returns")


def stream_about(stream: Any) -> "Optional[os.stat_result]":
    """Return what os.fstat() says of the file of a stream, or None."""
    try:
        return os.fstat(stream.fileno())
    except (AttributeError, OSError, TypeError, ValueError):  # it is no file, or closed
        return None


def is_read_from(source: "Buffer", stream: Any, about: "Optional[os.stat_result]") -> bool:
    """Return whether a source reads a stream, or the file of `about`, by os.stat()."""
    own = getattr(getattr(source, "_view", None), "obj", None)  # an mmap has write(), too
    turn = getattr(source, "_turn", None)
    if turn is not None:
        own = turn.stream
    if own is not None and own is stream:
        return True
    if about is None:
        return False
    if source.file_id is None:
        other = stream_about(own)
    else:
        path, _, change = source.file_id  # of 0.4.0 only the time
        other = stat_or_none(path)
        if isinstance(change, tuple):
            # Another may have its place now, or it was renamed.
            is_there = other is None or other.st_dev == about.st_dev
            return is_there and change[1] == about.st_ino
    return other is not None and os.path.samestat(other, about)


def check_writable(path: str, old: "os.stat_result") -> None:
    """Raise PermissionError for a file that may not be written.

    Root may write all of them; but where there is no write bit at all, somebody
    protects it.
    """
    options = {}
    if os.access in getattr(os, "supports_effective_ids", ()):
        options["effective_ids"] = True
    if not old.st_mode & 0o222 or not os.access(path, os.W_OK, **options):
        raise PermissionError(13, os.strerror(13), path)


def narrowed(mode: int) -> int:
    """Return a mode that lets nobody do more than before in another group."""
    both = mode >> 3 & mode & 7
    return mode & 0o700 | both << 3 | both


def is_refused(error: OSError) -> bool:
    """Return whether a file system forbids or lacks a thing: it is not full or broken."""
    from errno import errorcode
    return errorcode.get(error.errno or 0, "") in REFUSALS


def is_done(name: str, *args: Any) -> bool:
    """Call a function of os; return False where it is lacking or refused."""
    call = getattr(os, name, None)
    if call is None:
        return False
    try:
        call(*args)
    except OSError as error:
        if not is_refused(error):
            raise
        return False
    return True


def list_of_access(file: "Union[int, str]") -> "Optional[bytes]":
    """Return the POSIX access control list of a file, or None (not on Linux, say)."""
    try:  # to ask for what is not there takes five times as long as to ask what there is
        if ACCESS_LIST in os.listxattr(file):
            return os.getxattr(file, ACCESS_LIST)
    except AttributeError:
        pass
    except OSError as error:
        if not is_refused(error):
            raise
    return None


def keep_access(file: int, path: str, old: "os.stat_result") -> None:
    """Give a new file the owner, group, mode and access list of the one at a path.

    What the system does not let us keep is narrowed: nobody may do more than before.
    """
    access = list_of_access(path)
    new = os.stat(file)
    keeps_group = new.st_gid == old.st_gid
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        if is_done("fchown", file, old.st_uid, old.st_gid):
            keeps_group = True
        elif not keeps_group:  # a member may give a file of its own to the group
            keeps_group = is_done("fchown", file, -1, old.st_gid)
    mode = old.st_mode & 0o777
    if not keeps_group:
        mode = narrowed(mode)
    if list_of_access(file) != access:  # the new one may have that of its folder
        if access is None:
            is_kept = is_done("removexattr", file, ACCESS_LIST)
        else:
            is_kept = keeps_group and is_done("setxattr", file, ACCESS_LIST, access)
        if not is_kept:
            mode &= 0o700
    if mode != new.st_mode & 0o777:  # it lacks the bits that the umask took, say
        is_done("fchmod", file, mode)


def write_beside(path: str, blocks: Blocks, target: str,
                 old: "Optional[os.stat_result]") -> int:
    """Write a file beside the path, then rename it over it; errors name the target.

    `old`: what os.stat() says of the file that is there.
    """
    folder, name = os.path.split(path)
    # Random: what has the name is ours, also if Ctrl-C comes before `stream =`.
    temporary = os.path.join(folder, f".{name[:40]}.{os.urandom(6).hex()}.tmp")
    mode = 0o666
    stream: Any = None
    advice: "Optional[str]" = ""  # behind a refusal; None: errors are those of the blocks
    try:
        if old is not None:
            advice = PROTECTED
            check_writable(path, old)
            mode = narrowed(old.st_mode)  # nobody may read what the target does not let him
            advice = NOT_BESIDE
        stream = open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode))
        advice = ""
        if old is not None:
            keep_access(stream.fileno(), path, old)
        advice = None
        total = write_all(stream, blocks, target)
        advice = ""
        stream.flush()
        is_done("fsync", stream.fileno())
        stream.close()
        advice = NOT_BESIDE
        if os.name == "nt":
            advice = MAPPED
        getattr(os, "replace", os.rename)(temporary, path)
    except BaseException as error:
        remove_failed(stream, temporary)
        if isinstance(error, OSError) and advice is not None:
            text = error.strerror or str(error)
            if is_refused(error):
                text += advice
            if not os.path.isdir(folder):
                text = f"there is no folder {safe_str(folder)}"
            raise OSError(error.errno, text, target)
        raise
    return total


def remove_failed(stream: Any, temporary: str) -> None:
    """Close and remove a file that could not be written, as far as it is there."""
    try:
        if stream is not None:
            stream.close()
    except OSError:  # the disk is still full
        pass
    finally:  # also where a second interrupt comes
        try:
            os.remove(temporary)
        except OSError:  # it was renamed, or never made
            pass


# -- [10a] mag300 ------------------------------------------------------------------------


class PythonJson(Json):
    """JSON as Python reads it: with NaN, any number and lone surrogates."""

    def check_letters(self, value: Any, text: str) -> None:
        """Take all letters."""

    def make_int(self, text: str) -> int:
        # Where Python has no limit, more digits take minutes.
        if len(text) > 4300:
            raise self.error("NaN, or a number beyond float64")
        return int(text)

    def make_float(self, text: str) -> float:
        return float(text)


class Mag300(Format):
    """.mag, snapshot 300 (magnetron 0.2.0 to 0.2.2), written as by 0.2.2.

    0            magic "MAG!" 4 | version, aux (bit 0: data are big-endian): u32 each |
                 meta_offset, meta_span, blob_offset, blob_span: u64 each
    meta_offset  JSON: manifest_ver 1, timestamp, magnetron_ver, snapshot_ver,
                 usr_metadata {}, tensor_map {name: {shape, dtype, dtype_id, offset,
                 nbytes}}
    blob_offset  data: each tensor at a multiple of 4096, less than 4096 bytes between

    dtype_id counts, not the name. Unknown numbers are listed, and kept; magnetron 0.2.2
    refuses a file with one.
    """

    NAME = "mag300"
    FAMILY = "mag"
    TITLE = "mag 300"
    VERSION = "300"
    MAGICS = (b"MAG!\x2c\x01\0\0",)
    HEADER = RecordType(
        ("magic", "4s", "mag"),
        ("version", "I", "snapshot version"),
        ("aux", "I", "1: the data are big-endian"),
        ("meta_offset", "Q", "where the JSON begins"),
        ("meta_span", "Q", "its bytes"),
        ("blob_offset", "Q", "where the data begin"),
        ("blob_span", "Q", "bytes of data"))
    ENTRY = Schema(
        ("shape", UINT64_LIST, True, "dimensions"),
        ("dtype", TEXT, True, "name of the type"),
        ("dtype_id", UINT64, True, "its number, which counts"),
        ("offset", UINT64, True, "from blob_offset"),
        ("nbytes", UINT64, True, "bytes"))
    # open_entry() checks the entries.
    TENSORS = Schema(additional=(ANY, "entry of a tensor", ENTRY))
    ROOT = Schema(
        ("manifest_ver", UINT64, True, "1"),
        ("timestamp", TEXT, True, "of the writing"),
        ("magnetron_ver", TEXT, True, "which wrote it"),
        ("snapshot_ver", TEXT, True, ""),
        ("usr_metadata", MAP, True, "of the user"),
        ("tensor_map", TENSORS, True, "tensors"))
    FIELD_OF = dict(name="", size="nbytes", place="offset")
    NUMBERS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "bool", "uint8", "int8",
               "uint16", "int16", "uint32", "int32", "uint64", "int64")
    DTYPES: Any = {dtype: dtype.replace("bool", "boolean") for dtype in NUMBERS}
    FACTS = Map([  # written, unless a file of 300 has others
        ("timestamp", "1970-01-01T00:00:00+00:00"),
        ("magnetron_ver", "0.2.2"),
        ("snapshot_ver", "0.3.0")])
    OPTIONS = {
        "version": "1, or 300 for magnetron 0.2",
        "timestamp": "text, else that of the file, or of 1970"}
    FILE_ATTRS = ("version", "byte_order", "timestamp", "magnetron_ver", "snapshot_ver")
    TENSOR_ATTRS = DTYPE_ATTRS = ("dtype", "dtype_id")
    MAX_RANK = 16
    DIM_BITS = 63
    ALIGN = 4096
    INDEX_FIRST = True

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the header says where JSON and data are
        reading.check_magic(self, self.MAGICS[0])
        (_, _, aux, meta, span, start, size), _ = reading.record(0, self.HEADER)
        end = reading.end
        if aux > 1:
            what = f"aux is {aux}, expected 0 or 1"
            raise reading.error(what, "aux", error_class=Unsupported)
        reading.check_range(meta, "meta_offset", low=44, high=end, why="after the header")
        reading.check_range(span, "meta_span", high=end - meta)
        meta_end = meta + span
        if start % 4096 or start < meta_end:
            what = f"blob_offset is {start}, expected a multiple of 4096 from "
            raise reading.error(f"{what}{meta_end} on", "blob_offset")
        reading.check_range(span, "meta_span", high=MAX_INDEX, limit="MAX_INDEX")
        # 2 the index is one JSON object
        reading.root = "meta"
        root = read_json(reading, meta, span, self.ROOT, PythonJson)
        if root["manifest_ver"] != 1:
            what = f"manifest_ver {root['manifest_ver']} is not supported (only 1)"
            raise reading.error(what, "manifest_ver", error_class=Unsupported)
        # 3 each entry of tensor_map is a tensor in the data
        order = ">" if aux else "<"
        data_end = min(start + size, end)
        for name, entry in root["tensor_map"].items():
            trail = "tensor_map", name
            with reading:
                tensor = self.open_entry(reading, trail, entry, start, order)
                reading.add_tensor(tensor, trail, start, data_end, self.FIELD_OF)
        if not reading.errors:
            self.check_places(reading, start, size)
        if start > end:
            reading.check_whole("blob_offset")
        reading.check_whole()
        if not reading.partial:
            reading.check_range(start, "blob_offset", high=end)
            reading.check_range(size, "blob_span", high=end - start)
        # 4 the rest belongs to the file
        attrs = Map(version=300)
        for key in self.FACTS:
            attrs[key] = root[key]
        if aux:
            attrs["byte_order"] = "big"
        return attrs, root["usr_metadata"]

    def open_entry(self, reading: Reading, trail: Trail, entry: Facts, start: int,
                   order: str) -> Tensor:
        """Return the tensor of an entry."""
        name = trail[1]
        if not is_text(name):
            raise reading.error("the name has a lone surrogate", *trail, tensor=name)
        reading.check_schema(self.ENTRY, entry, trail, name)
        code = entry["dtype"]
        number = entry["dtype_id"]
        shape = tuple(entry["shape"])
        start += entry["offset"]
        dtype = attrs = unreadable = None
        if number >= len(self.NUMBERS):
            attrs = Map([("dtype", code), ("dtype_id", number)])
            unreadable = f"dtype_id {number} ({short_repr(code)}) is not known"
        else:
            dtype = self.NUMBERS[number]
            if code != self.DTYPES[dtype]:
                attrs = Map(dtype=code)
        return Tensor(name, dtype, shape, reading.source, start, entry["nbytes"], None,
                      order, "raw", unreadable, attrs, None, self.NAME)

    def check_places(self, reading: Reading, start: int, size: int) -> None:
        """Raise unless each tensor is at the next multiple of 4096."""
        at = 0
        items = list(reading.tensors.values())
        items += [tensor for tensor, _ in reading.missing.values()]
        items.sort(key=lambda tensor: tensor.start)
        for tensor in items:
            offset = tensor.start - start
            is_next = at <= offset < at + 4096
            if tensor.stored_nbytes and offset % 4096:
                is_next = False
            if not is_next:
                place = f"the next multiple of 4096 from {at}"
                what = f"its data begin at {offset}, not at {place}"
                trail = "tensor_map", tensor.name
                raise reading.entry_error(what, tensor.name, trail, "offset", "bounds")
            at = offset + tensor.stored_nbytes
        if size - at >= 4096:
            what = f"{size} bytes of data, but tensors end at {at}"
            raise reading.error(what, "blob_span")

    def notes(self, file: File) -> "Notes":
        found = []
        for tensor in file.values():
            if tensor.unreadable:
                what = f"{tensor.unreadable}: magnetron 0.2.2 refuses the file"
                found.append((tensor, what))
        yield found

    def metadata_problem(self, key: Any, value: Any) -> "Optional[str]":
        return json_problem({key: value}, MAX_DEPTH - 2)  # in a list

    def can_copy_opaque(self, tensor: Tensor) -> bool:
        return "dtype_id" in self.native_attrs(tensor) and tensor.byteorder == "<"

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        self.raise_problems(self.problems(items, metadata))
        # 1 an entry and a place for each tensor
        entries = {}
        starts = []
        end = 0
        for name, tensor in items:
            start = end
            nbytes = tensor.nbytes
            if nbytes:
                start = round_up(end, 4096)
            end = start + nbytes
            if tensor.dtype is None:
                own = self.native_attrs(tensor)
                code = own.get("dtype", "")
                number = own["dtype_id"]
            else:
                code = self.DTYPES[tensor.dtype]
                number = self.NUMBERS.index(tensor.dtype)
            entries[name] = {"shape": tensor.shape, "dtype": code, "dtype_id": number,
                             "offset": start, "nbytes": nbytes}
            starts.append(start)
        if not end:
            raise ValueError(f"{self.TITLE} cannot hold 0 bytes of data; "
                             "version=1 (--set version=1) can")
        # 2 the JSON
        root = Map(manifest_ver=1)
        for key, default in self.FACTS.items():
            root[key] = self.option(key, default, options, attrs)
        root["usr_metadata"] = Map(metadata)
        root["tensor_map"] = Map()
        wrong = list(self.ROOT.iter_errors(root))
        if wrong:
            raise ValueError(wrong[0][1])
        root["tensor_map"] = entries
        data = json_dumps(root)
        # 3 header, JSON, data
        data_start = round_up(44 + len(data), 4096)
        header = self.HEADER.pack(b"MAG!", 300, 0, 44, len(data), data_start, end)
        starts = [data_start + start for start in starts]
        return self.iter_file(header + data, items, starts, data_start + end)


GENERATIONS += (Mag300(),)


# -- [10b] ztensor2 ----------------------------------------------------------------------

CSR = "zt.sparse_csr/1"  # a layout
COO = "zt.sparse_coo/1"
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_digest(text: str) -> bool:
    name, _, digits = text.partition(":")
    if not name or not digits:
        return False
    return not name.strip(LETTERS) and not digits.strip("0123456789abcdef")


def is_named(text: str) -> bool:
    return 0 < len(text.encode("utf-8", "replace")) <= 1024 and "\0" not in text


def is_shard_name(text: str) -> bool:
    if not 0 < len(text) < 65 or text[0] == ".":
        return False
    return not text.strip(LETTERS + LETTERS.upper() + "_-.")


def is_shard_size(value: int) -> bool:
    return 47 < value < 1 << 64


NAMED = typed(str, "text of 1 to 1024 bytes without NUL", is_named)
SHARD_NAME = typed(str, "the name of a shard", is_shard_name)
SHARD_SIZE = typed(int, "an integer from 48 on", is_shard_size)
DIGEST = typed(str, "ALGORITHM:DIGITS, both lower case", is_digest)


def composed(text: str) -> str:
    """Return a text in NFC: its letters are composed in one way.

    Many marks on one letter would be sorted in quadratic time; such a text is kept.
    """
    try:
        from unicodedata import combining, normalize
    except ImportError:
        return text
    if len(text.encode("utf-8", "replace")) == len(text):  # ASCII
        return text
    marks = 0
    for letter in text:
        marks += 1
        if not combining(letter):
            marks = 0
        elif marks > 30:  # of Unicode's Stream-Safe Text
            return text
    return normalize("NFC", text)


class ZTensor2(Format):
    """zTensor 2 (specification draft 4; crates and wheels ztensor 2.0.0 to 2.1.2).

    0         magic 89 "ZT2" 0d 0a 1a 0a | zeros
    data      blobs, each at a multiple of 4096 (written: of 65536), zeros between
    manifest  at a multiple of 4096, one map of deterministic CBOR: "attributes"?,
              "objects": name -> {shape, layout, parts: role -> {dtype,
              blob [offset, length], type?, digest?, encoding?, ...}}
    end-40    manifest_offset u64 | manifest_length u64 | its XXH3-64 u64 | 2 u32 |
              0 u32 | magic

    Without a manifest it is a data shard of another file; parts in shards are listed
    only. Digests are those of decoded bytes. The canonical form is written: raw and
    dense, equal contents once; but for names that are not in NFC, which the real library
    reads, and does not write so.
    """

    NAME = "ztensor2"
    FAMILY = "ztensor"
    TITLE = "zTensor 2"
    VERSION = "2"
    MAGICS = (b"\x89ZT2\r\n\x1a\n",)
    OPTIONS = {"version": ZTensor.OPTIONS["version"]}
    FILE_ATTRS = ("version", "shards", "data_shard")
    ALIGN = 4096
    # Blobs are written at multiples of it.
    PLACE = 65536
    MAX_RANK = 64
    LAYOUTS = {
        "dense": ["data"],
        CSR: ["values", "indptr", "indices"],
        COO: ["values", "coords"]}
    # Digits of each algorithm. The last is of frames in a seek table: half of an XXH64.
    DIGESTS = {"xxh3": 16, "sha256": 64, "xxh64/32": 8}
    HASHES_DECODED = True
    NAMES = {
        "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
        "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
        "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8"}
    TYPES = {  # (over this dtype, bits of an element, dtype here)
        "bool": ("u8", 8, "bool"),
        "f8_e4m3fn": ("u8", 8, "float8_e4m3fn"),
        "f8_e5m2": ("u8", 8, "float8_e5m2"),
        "f8_e4m3fnuz": ("u8", 8, "float8_e4m3fnuz"),
        "f8_e5m2fnuz": ("u8", 8, "float8_e5m2fnuz"),
        "f8_e8m0": ("u8", 8, "float8_e8m0fnu"),
        "f4_e2m1": ("u8", 4, None),
        "complex64": ("f32", 64, None),
        "complex128": ("f64", 128, None)}
    CODEC = Cbor
    DTYPES: Any = dict([(name, {"dtype": code}) for code, name in NAMES.items()])
    DTYPES.update([(row[2], {"dtype": "u8", "type": code}) for code, row
                   in TYPES.items()])
    del DTYPES[None]
    # Fields of a part that are in Tensor.attrs.
    KEPT = ("type", "shard", "digest", "encoding")
    # What a user gives are attributes.
    TENSOR_ATTRS = None
    DTYPE_ATTRS = ("type", "dtype", "layout")
    CAST_DROPS = ("parts",)
    MAGIC_RECORD = RecordType(("magic", "8s", "zTensor 2"))
    FOOTER = RecordType(
        ("manifest_offset", "Q", "a multiple of 4096"),
        ("manifest_length", "Q", "bytes of CBOR; 0: a data shard"),
        ("manifest_hash", "Q", "its XXH3-64"),
        ("version", "I", "2"),
        ("reserved", "I", "0, ignored"),
        ("magic_end", "8s", "the magic again"))
    PART = Schema(
        ("dtype", choice(*NAMES), True, "type of the elements"),
        ("blob", OFFSET_LENGTH, True, "offset, bytes"),
        ("type", TEXT, False, "over the dtype"),
        ("digest", DIGEST, False, "of decoded bytes"),
        ("encoding", TEXT, False, "raw if absent"),
        ("shard", TEXT, False, "the file"),
        ("decoded_length", UINT64, False, "bytes decoded"))
    ROLES = Schema(additional=(PART, "a part"), key_type=NAMED)
    USER = Schema(additional=(ANY, "of the user"), key_type=NAMED)
    ENTRY = Schema(
        ("shape", UINT64_LIST, True, "dimensions"),
        ("layout", TEXT, True, "dense ..."),
        ("attributes", USER, False, "of the user"),
        ("parts", ROLES, True, "parts by role"))
    OBJECTS = Schema(additional=(ANY, "a tensor", ENTRY), key_type=NAMED)
    SHARD = Schema(
        ("size", SHARD_SIZE, True, "bytes of the file"),
        ("digest", DIGEST, True, "of the file"))
    SHARDS = Schema(additional=(SHARD, "a file"), key_type=SHARD_NAME)
    TOP = Schema(
        ("attributes", USER, False, "of the user"),
        ("shards", SHARDS, False, "files by name"),
        ("objects", OBJECTS, True, "by name"),
        doc="the manifest")
    # Sizes and places are those of parts: see open_part().
    FIELD_OF = dict(name="", size="", place="")

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the magic, and the footer at the end: where the manifest is
        reading.check_magic(self, self.MAGICS[0])
        if reading.end < 48:
            raise reading.error(f"{reading.end} bytes; the shortest file has 48", "magic",
                                offset=0)
        reading.record(0, self.MAGIC_RECORD)  # for explain()
        start, nbytes = self.find_manifest(reading)
        if not nbytes:
            return {"version": "2", "data_shard": True}, Map()
        # 2 the manifest
        reading.root = "manifest"
        top = reading.cbor(start, nbytes, self.TOP, whole=True, strict=True)
        # 3 its tensors
        shards = top.get("shards", {})
        for name, entry in top["objects"].items():
            trail = "objects", name
            with reading:
                tensor = self.open_entry(reading, shards, trail, entry)
                reading.add_tensor(tensor, trail, 0, reading.end, self.FIELD_OF)
        self.check_overlap(reading, top["objects"], start, start + nbytes)
        attrs: Facts = {"version": "2"}
        if "shards" in top:
            attrs["shards"] = shards
        return attrs, top.get("attributes", {})

    def find_manifest(self, reading: Reading) -> "Tuple[int, int]":
        """Return offset and length of the manifest; 0, 0 in a data shard."""
        end = reading.end - 40
        (start, nbytes, digest, version, _, magic), _ = reading.record(end, self.FOOTER)
        if magic != self.MAGICS[0]:
            raise reading.error("truncated: no magic at the end", "magic_end")
        if version != 2:
            what = f"version {version} is not supported (only 2)"
            raise reading.error(what, "version", error_class=Unsupported)
        low = high = 0
        if nbytes:
            low = 4096
            high = end
        if start % 4096 or not low <= start <= high:
            wanted = f"a multiple of 4096 from {low} to {high}"
            what = f"manifest_offset is {start}, expected {wanted}"
            raise reading.error(what, "manifest_offset")
        reading.check_range(nbytes, "manifest_length", high=end - start,
                            why="up to the footer")
        reading.check_range(nbytes, "manifest_length", high=MAX_INDEX, limit="MAX_INDEX")
        found = 0
        if nbytes:
            found = xxh3_64([reading.source.view(start, nbytes)])
        if found != digest:
            what = f"the manifest gives {found:016x}, the file says {digest:016x}"
            raise reading.error(what, "manifest_hash")
        return start, nbytes

    def open_entry(self, reading: Reading, shards: Facts, trail: Trail,
                   entry: Facts) -> Tensor:
        """Return the tensor of an object."""
        name = trail[-1]
        reading.check_schema(self.ENTRY, entry, trail, name)
        shape = tuple(entry["shape"])
        layout = entry["layout"]
        facts = entry["parts"]
        parts = {}
        for role, fact in facts.items():
            parts[role] = self.open_part(reading, shards, trail + ("parts", role), fact)
        roles = self.LAYOUTS.get(layout)
        if not parts or roles and set(parts) != set(roles):
            wanted = short_repr(roles) if roles else "one"
            what = f"the parts are {short_repr(list(parts))}, expected {wanted}"
            raise self.fault(reading, what, trail, "parts")
        self.check_shape(reading, trail, shape, layout)
        shapes: "Dict[str, Shape]" = {}
        if roles:
            shapes = self.find_shapes(reading, trail, parts, shape)
        for role, part in parts.items():
            self.check_size(reading, trail + ("parts", role), part, facts[role],
                            shapes.get(role))
        if layout != "dense":
            return self.join_parts(name, entry, parts, list(shapes))
        tensor = parts["data"]
        tensor.name = name
        attrs = Map(layout=layout)
        attrs.update(tensor.attrs)
        tensor._attrs = attrs
        tensor._custom = entry.get("attributes")
        return tensor

    def join_parts(self, name: str, entry: Facts, parts: TensorMap,
                   roles: "List[str]") -> Tensor:
        """Return the tensor of several parts; `roles`: those of sparse ones, in order."""
        shape = tuple(entry["shape"])
        layout = entry["layout"]
        custom = entry.get("attributes")
        kept = self.KEPT + ("dtype",)
        attrs = Map(layout=layout, parts={})
        for role, fact in entry["parts"].items():
            attrs["parts"][role] = {key: fact[key] for key in fact if key in kept}
        first = list(parts.values())[0]
        for role in ("values", "data"):
            first = parts.get(role, first)
        if roles and first.dtype:
            ordered = {role: parts[role] for role in roles}
            return join_sparse(ordered, shape, name, attrs, custom, self.NAME, True)
        why = first.unreadable or f"layout {short_repr(layout)} is not known"
        whole = Composite(name, None, shape, first.source, first.start,
                          first.stored_nbytes, None, "<", first.encoding, why, attrs,
                          custom, self.NAME)
        whole.parts = parts
        return whole

    @staticmethod
    def fault(reading: Reading, what: str, trail: Trail, field: str,
              check: str = "index") -> FormatError:
        """Return the error of a field of an object, or of a part of it."""
        return reading.entry_error(what, trail[1], trail, field, check)

    def find_shapes(self, reading: Reading, trail: Trail, parts: TensorMap,
                    shape: Shape) -> "Dict[str, Shape]":
        """Return the shapes of the parts; raise where indices have other types."""
        if "data" in parts:
            return {"data": shape}
        sparse_format = "csr"
        index = parts.get("indices")
        if index is None:
            sparse_format = "coo"
            index = parts["coords"]
        for role in sorted(parts):
            dtype = parts[role].dtype
            if role != "values" and (dtype not in INDEX_TYPES or dtype != index.dtype):
                what = f"{dtype or 'this type'} of indices, expected uint32 or uint64"
                what += ", all alike"
                raise self.fault(reading, what, trail + ("parts", role), "dtype")
        nnz = index.size
        if sparse_format == "coo":
            nnz //= len(shape)
        return component_shapes(sparse_format, shape, nnz)

    def open_part(self, reading: Reading, shards: Facts, trail: Trail,
                  fact: Facts) -> Tensor:
        """Return a part of an object as a flat Tensor."""
        start, nbytes = fact["blob"]
        decoded = fact.get("decoded_length", nbytes)
        unreadable = None
        # A type over the dtype.
        over = fact["dtype"]
        dtype: "Optional[str]" = self.NAMES[over]
        if "type" in fact:
            code = fact["type"]
            wanted, _, dtype = self.TYPES.get(code, (over, 0, None))
            if wanted != over:
                what = f"type {short_repr(code)} over dtype {over}"
                raise self.fault(reading, what, trail, "type")
            if dtype is None:
                unreadable = f"type {short_repr(code)} is not decoded here"
        # An encoding, and how many bytes are decoded.
        encoding = fact.get("encoding")
        if (encoding is None) != ("decoded_length" not in fact):
            what = "encoding and decoded_length come together"
            raise self.fault(reading, what, trail, "encoding")
        if encoding not in (None, SEEKABLE):
            unreadable = f"encoding {short_repr(encoding)} is not known"
            encoding = "other"
        # A place in this file or in another one.
        end = self.data_end(reading, shards, trail, fact)
        why = blob_problem(start, nbytes, self.ALIGN, end)
        if why:
            raise self.fault(reading, why, trail, "blob", "bounds")
        if "shard" in fact:
            unreadable = f"it is in the shard {short_repr(fact['shard'])}, a file of its own"
            encoding = "shard"
            start = nbytes = 0
        attrs = {key: fact[key] for key in self.KEPT if key in fact}
        if dtype is not None:
            attrs.pop("type", None)
        else:
            attrs["dtype"] = over
            if encoding == SEEKABLE:
                attrs["decoded_length"] = decoded
        shape = (decoded // ITEMSIZE.get(dtype, 1),)
        return Tensor(trail[-1], dtype, shape, reading.source, start, nbytes, None, "<",
                      encoding or "raw", unreadable, attrs, None, self.NAME)

    def data_end(self, reading: Reading, shards: Facts, trail: Trail, fact: Facts) -> int:
        """Return where the data end, of this file or of the shard that has a part."""
        if "shard" not in fact:
            return reading.end - 40
        shard = fact["shard"]
        if shard not in shards:
            raise self.fault(reading, f"shards lacks {short_repr(shard)}", trail, "shard")
        size: int = shards[shard]["size"]
        return size - 40

    def check_shape(self, reading: Reading, trail: Trail, shape: Shape,
                    layout: str) -> None:
        rank = len(shape)
        fits = rank <= self.MAX_RANK and not count_elements(shape) >> 64
        if layout == CSR:
            fits = fits and rank == 2
        elif layout == COO:
            fits = fits and rank > 0
        if not fits:
            what = f"shape {short_repr(list(shape))}, expected at most 64 dimensions and "
            what += "2**64-1 elements; of csr 2, of coo 1 or more"
            raise self.fault(reading, what, trail, "shape")

    def check_size(self, reading: Reading, trail: Trail, part: Tensor, fact: Facts,
                   shape: "Optional[Shape]") -> None:
        """Give a part its shape, if that is known; raise unless it has the bytes."""
        nbytes = fact["blob"][1]
        need = decoded = fact.get("decoded_length", nbytes)
        if shape is not None:
            part.shape = shape
            bits = 8 * ITEMSIZE.get(part.dtype, 0)
            if fact.get("type") in self.TYPES:
                bits = self.TYPES[fact["type"]][1]
            if bits:
                need = -(-count_elements(shape) * bits // 8)
        if part.encoding == SEEKABLE and (not nbytes or need > ZSTD_RATIO * nbytes):
            what = f"{nbytes} stored bytes cannot decompress to {short_repr(need)}"
        elif need != decoded:
            what = f"{decoded} bytes, {part.dtype or 'its type'} {short_repr(shape)} needs "
            what += short_repr(need)
        else:
            return
        field = "decoded_length" if "encoding" in fact else "blob"
        raise self.fault(reading, what, trail, field, "sizes")

    def check_overlap(self, reading: Reading, objects: Facts, start: int,
                      end: int) -> None:
        """Note the first part whose bytes overlap others, unless they are the same.

        `start`, `end`: of the manifest, which has no trail.
        """
        ranges: "List[Tuple[str, int, int, Trail]]" = [("", start, end, ())]
        for name in reading.tensors:
            for role, fact in objects[name]["parts"].items():
                start, nbytes = fact["blob"]
                if nbytes:
                    trail = "objects", name, "parts", role
                    ranges.append((fact.get("shard", ""), start, start + nbytes, trail))
        ranges.sort()
        for last, row in zip(ranges, ranges[1:]):
            if row[1] >= last[2] or row[0] != last[0]:
                continue
            trail = row[3] or last[3]
            what = f"its bytes {row[1]} to {row[2]} overlap others in part"
            if () in (row[3], last[3]):
                what = "its bytes are those of the manifest, or overlap them"
            elif row[1:3] == last[1:3]:
                continue
            with reading:
                raise self.fault(reading, what, trail, "blob", "bounds")
            return

    def checksums(self, tensor: Tensor) -> "Iterator[Tuple[str, Tensor, str]]":
        # They are of decoded bytes.
        return iter_digests(tensor, "digest")

    def inner_checksums(self, part: Tensor) -> "Iterator[Tuple[str, Tensor, str]]":
        """Those of a seek table that no frame has; decoding compares the others."""
        if part.encoding != SEEKABLE:
            return
        try:
            table = SeekTable(part.source, part.start, part.stored_nbytes)
        except FormatError:  # decoding raises it again
            return
        for i, (at, stored, decoded, checksum, own) in enumerate(table.iter_frames()):
            if checksum is None or own is not None:
                continue
            frame = Tensor(part.name, "uint8", (decoded,), part.source, at, stored,
                           encoding="zstd", format=part.format)
            yield f"frame {i}: ", frame, "xxh64/32:%08x" % checksum

    def notes(self, file: File) -> "Notes":
        what = "the name is not in NFC: the canonical writer of ztensor 2.1.2 refuses it"
        yield [(tensor, what) for tensor in file.values()
               if composed(tensor.name) != tensor.name]

    def hashed_blocks(self, part: Tensor) -> Blocks:
        if part.encoding == "raw":
            yield from part.iter_stored()
            return
        if not part.is_decodable():
            # It raises why they cannot be decoded.
            part.check_readable()
        yield from part.iter_decoded()

    def can_copy_opaque(self, tensor: Tensor) -> bool:
        """Return whether it is dense, decodable, and of a type over a known dtype."""
        attrs = tensor.attrs
        if tensor.format != self.NAME or tensor.dtype is not None:
            return False
        if attrs.get("layout") != "dense":
            return False
        code = attrs.get("type")
        over = attrs.get("dtype")
        if not is_text(code) or over not in self.NAMES:
            return False
        if code in self.TYPES and self.TYPES[code][0] != over:
            return False
        if tensor.encoding == "raw":
            return True
        return tensor.is_decodable() and tensor.decoded_nbytes is not None

    def padding(self, start: int, stop: int, before: str, after: str,
                attrs: Facts) -> "Tuple[int, int]":
        if stop % self.ALIGN:
            return 0, 0
        return min(stop - start, -start % self.PLACE), 0

    def has_odd_bytes(self, tensor: Tensor) -> bool:
        if tensor.encoding not in ("raw",) + DECODED:
            return False
        if tensor.dtype == "bool":
            return tensor.unreadable is None
        return tensor.attrs.get("type") == "f4_e2m1" and tensor.size & 1 == 1

    def other_checksums(self, attrs: Facts) -> "Iterator[str]":
        for name in attrs.get("shards", ()):
            yield f"the shard {short_repr(name)}"

    def odd_byte(self, tensor: Tensor) -> "Optional[Tuple[int, str]]":
        if not self.has_odd_bytes(tensor):
            return None
        at = 0
        last = b""
        for block in iter_parts(tensor.iter_bytes(), BLOCK):
            if tensor.dtype == "bool":
                rest = bytes(block).lstrip(b"\0\1")
                if rest:
                    what = f"a bool of byte {rest[0]}, not 0 or 1"
                    return at + len(block) - len(rest), what
            at += len(block)
            last = bytes(block[-1:]) or last
        if tensor.dtype is None and last > b"\x0f":
            return at - 1, "the unused half of the last byte is not 0"
        return None

    def metadata_problem(self, key: Any, value: Any, level: int = 2) -> "Optional[str]":
        """Return why a map of the user, in so many arrays and maps, cannot hold this."""
        if not is_text(key) or not NAMED.fits(key):
            return "the key is not " + NAMED.words
        try:
            data = cbor_dumps(value, sort="bytes")
            Cbor(b"\x81" * level + data, strict=True).parse()
        except FormatError as error:
            return error.what
        except (ValueError, TypeError) as error:
            return str(error)
        return None

    def custom_problem(self, tensor: Tensor, key: Any) -> "Optional[str]":
        return self.metadata_problem(key, tensor.custom[key], 4)

    def name_problem(self, name: str) -> "Optional[str]":
        why = super().name_problem(name)
        if not why and not NAMED.fits(name):
            why = "the name is not " + NAMED.words
        return why

    def tensor_problems(self, tensor: Tensor) -> "Iterator[str]":
        yield from super().tensor_problems(tensor)
        # The real reader multiplies the dimensions before a 0.
        if count_elements(until_0(tensor.shape)) >> 64:
            yield f"shape {short_repr(tensor.shape)}: over 2**64-1 elements"
        odd = self.odd_byte(tensor)
        if odd is not None:
            yield f"{odd[1]} (byte {odd[0]})"

    def write(self, items: Items, metadata: Facts, attrs: Facts, options: Facts,
              digest_of: Any = None) -> Blocks:
        """As Format.write(); `digest_of`(name, tensor): its digest, if it is known."""
        self.raise_problems(self.problems(items, metadata))
        return self.iter_objects(items, metadata, digest_of)

    def iter_objects(self, items: Items, metadata: Facts, digest_of: Any) -> Blocks:
        """Yield a file: the magic, the blobs by name, the manifest and the footer."""
        yield self.MAGICS[0]
        at = 8
        zeros = memoryview(bytes(self.PLACE))
        objects = []
        encoded: "Dict[Any, Tuple[bytes, bytes, bytes]]" = {}
        # (tensor, where it is) by size and digest.
        stored: "Dict[Any, Tuple[Tensor, int]]" = {}
        for name, tensor in sorted(items, key=lambda pair: encode_text(pair[0])):
            nbytes: Any = tensor.decoded_nbytes
            start = round_up(at, self.PLACE)
            if digest_of is None:
                digest = hash_blocks("xxh3", tensor.iter_bytes())
            else:
                digest = digest_of(name, tensor)
            twin, place = stored.setdefault((nbytes, digest), (tensor, start))
            if place != start and has_same_bytes(tensor, twin):
                start = place
            elif nbytes:
                yield zeros[:start - at]
                yield from tensor.iter_bytes()
                at = start + nbytes
            blob = cbor_head(4, 2) + cbor_scalar(start) + cbor_scalar(nbytes)
            objects.append((cbor_scalar(name),
                            self.pack_object(tensor, blob, digest, encoded)))
        more = {}
        if metadata:
            more["attributes"] = metadata
        index = [cbor_head(5, 1 + len(more)), cbor_scalar("objects")]
        index.append(cbor_head(5, len(objects)))
        for pair in sorted(objects):
            index += pair
        index.append(pack_pairs(more, more, "bytes"))
        data = b"".join(index)
        start = round_up(at, self.PLACE)
        yield bytes(start - at) + data
        yield self.FOOTER.pack(start, len(data), xxh3_64([data]), 2, 0, self.MAGICS[0])

    def pack_object(self, tensor: Tensor, blob: bytes, digest: str,
                    encoded: "Dict[Any, Tuple[bytes, bytes, bytes]]") -> bytes:
        """Return an object of the manifest; `encoded`: what comes again in others."""
        code = self.DTYPES.get(tensor.dtype)
        # An unknown type has its words in attrs.
        if code is None:
            code = tensor.attrs
        key = code["dtype"], code.get("type"), tensor.shape
        if key not in encoded:
            # The part has so many fields.
            count = 4 if "type" in code else 3
            front = cbor_scalar("parts") + cbor_head(5, 1) + cbor_scalar("data")
            front += cbor_head(5, count) + cbor_scalar("blob")
            middle = pack_pairs(code, ("type", "dtype")) + cbor_scalar("digest")
            form = {"shape": tensor.shape, "layout": "dense"}
            encoded[key] = front, middle, pack_pairs(form, form)
        front, middle, end = encoded[key]
        count = 3
        if tensor._custom:
            count = 4
            end += pack_pairs({"attributes": tensor._custom}, ("attributes",), "bytes")
        return cbor_head(5, count) + front + blob + middle + cbor_scalar(digest) + end


class SeekTable:
    """The table behind zstd frames: `.rows` of them, (stored, decoded, checksum or None)
    bytes.

    5e 2a 4d 18 | nbytes u32 | stored u32, decoded u32 (, checksum u32) of each frame |
    frames u32 | flags u8, bit 7: with checksums | b1 ea 92 8f

    All frames but the last are of one size. A checksum is the lower half of an XXH64, as
    the one that a frame may end with. FormatError where the table does not fit the stored
    bytes.
    """

    def __init__(self, source: Buffer, offset: int, nbytes: int) -> None:
        self.source = source
        self.offset = offset
        fault = FormatError("zstd: no seek table at the end")
        if nbytes < 17:
            raise fault
        end = offset + nbytes
        count, flags, magic = unpack_from("<IB4s", source.view(end - 9, 9))
        code = "<III" if flags == 128 else "<II"
        step = calcsize(code)
        start = end - 17 - count * step
        if start < offset or magic != b"\xb1\xea\x92\x8f" or flags not in (0, 128):
            raise fault
        table = source.view(start, 8 + count * step)
        if bytes(table[:8]) != pack("<II", 0x184D2A5E, count * step + 9):
            raise fault
        self.rows: "List[Tuple[int, int, Optional[int]]]" = []
        for at in range(8, len(table), step):
            stored, decoded, *checksums = unpack_from(code, table, at)
            checksum = checksums[0] if checksums else None
            self.rows.append((stored, decoded, checksum))
        sizes = [decoded for _, decoded, _ in self.rows]
        # Those of the decoded bytes.
        self.nbytes = sum(sizes)
        largest = max(sizes, default=0)
        are_even = sizes[:-1] == [largest] * (len(sizes) - 1) and largest <= 16 << 20
        if not are_even or sum([row[0] for row in self.rows]) != start - offset:
            raise fault

    def iter_frames(self) -> "Iterator[Tuple[int, int, int, Any, Optional[int]]]":
        """Yield (offset, stored, decoded, checksum or None, the frame's or None)."""
        at = self.offset
        for stored, decoded, checksum in self.rows:
            own = None
            if checksum is not None and stored > 8 and self.source.view(at + 4, 1)[0] & 4:
                own, = unpack_from("<I", self.source.view(at + stored - 4, 4))
            yield at, stored, decoded, checksum, own
            at += stored


def seekable_decode(source: "Buffer", offset: int, nbytes: int,
                    need: "Optional[int]") -> Blocks:
    """Yield the bytes of zstd frames with a SeekTable: as many as it says, and as `need`
    says.

    Each frame must agree with it: who reads some of the frames gets the same bytes.
    """
    table = SeekTable(source, offset, nbytes)
    if need not in (None, table.nbytes):
        raise FormatError(f"zstd: no seek table at the end for {need} bytes")
    module = None
    if table.rows:
        module = zstd_module()
    for i, (at, stored, decoded, checksum, own) in enumerate(table.iter_frames()):
        if own is not None and own != checksum:
            what = f"checksum {checksum:08x}, the frame ends with {own:08x}"
            raise FormatError(f"frame {i} of the seek table: {what}")
        try:
            yield from zstd_decode(source, at, stored, decoded, module)
            flags = source.view(at + 4, 1)[0]
            if zstd_frame_end(source, at, flags, at + stored) != at + stored:
                raise FormatError(f"{stored} stored bytes are more than a frame")
        except FormatError as error:
            raise type(error)(f"frame {i} of the seek table: {error.what}")


GENERATIONS += (ZTensor2(),)


# -- [10c] quantized ---------------------------------------------------------------------


def numbers_of_bytes(bits: int, floats: "Optional[str]") -> "List[List[Any]]":
    """Return what each byte holds: integers in two's complement, or small floats."""
    half = 1 << bits - 1
    mask = 2 * half - 1
    if floats:
        table = [minifloat(floats, code) for code in range(2 * half)]
    else:
        table = [(code ^ half) - half for code in range(2 * half)]
    return [[table[byte >> low & mask] for low in range(0, 8, bits)] for byte
            in range(256)]


class QuantPlan:
    """Where the parts of a quantized tensor are: values, zeros, scales."""

    def __init__(self, shape: Shape, value: str, scale: str,
                 block: "Optional[List[int]]") -> None:
        # A kind of minifloat(), or None.
        self.floats = None if value[0] == "Q" else value
        # Value i has bits [i*b, i*b + b) of little-endian words.
        self.bits = QUANT_BITS[value]
        self.scale = scale
        # The shape of what shares a scale; None: all does.
        self.block = block
        # How many scales there are, and elements in turn that share one; None: unclear.
        size = count_elements(shape)
        self.count = 1
        self.step: "Optional[int]" = size
        if block:
            sides = [1] * (len(shape) - len(block)) + block
            self.count = count_elements([-(-n // side) for n, side in zip(shape, sides)])
            self.step = block[-1]
            if set(block[:-1]) - {1} or shape[-1] % block[-1]:
                self.step = None
        self.scales_at = round_up(size * self.bits + 7 >> 3, 4)
        self.nbytes = self.scales_at
        self.nbytes += self.count * ITEMSIZE.get(scale, 1)


class Quantized(Tensor):
    """A tensor of dtype "qfloat" in a scheme of Burn 0.19 to 0.22-pre.2: `.values` times
    `.scales`.

    Numbers of few bits, lowest bits first | zeros to a multiple of 4 bytes | scales
    """

    __slots__ = ()

    def check_readable(self) -> int:
        raise self.error("qfloat cannot be read element by element" + DEQUANTIZE,
                         Unsupported)

    def iter_bytes(self) -> Blocks:
        return self.iter_stored()

    @property
    def scheme(self) -> Facts:
        """How it is stored, in the words of Burn."""
        code: Any = (self.attrs or self.custom).get("burn_dtype")
        if type(code) is not Map or type(code.get("QFloat")) is not Map:
            raise self.error("no quantization scheme is known for it", Unsupported)
        return code["QFloat"]

    def known_scheme(self) -> "Tuple[Facts, Optional[List[int]]]":
        """Return (scheme, shape of what shares a scale); raise for unknown ones."""
        scheme: Facts = Map(self.scheme.items())
        block = self.block_of(scheme.get("level"))
        # block_of() has looked at it.
        scheme["level"] = "Tensor"
        if len(scheme) != 5 or block == [] or not QUANT_SCHEME.fits(scheme):
            what = f"quantization scheme {short_repr(self.scheme, 200)} is not known"
            raise self.error(what, Unsupported)
        return scheme, block

    def plan(self) -> QuantPlan:
        """Return where its parts are; Unsupported for unknown schemes."""
        scheme, block = self.known_scheme()
        plan = QuantPlan(self.shape, scheme["value"], QUANT_SCALES[scheme["param"]],
                         block)
        if plan.nbytes != self.stored_nbytes:
            what = f"{self.stored_nbytes} bytes stored, the scheme needs {plan.nbytes}"
            raise self.error(what, Unsupported)
        return plan

    def block_of(self, level: Any) -> "Optional[List[int]]":
        """Return the shape of what shares a scale; None: all does; []: not known."""
        if level == "Tensor":
            return None
        if type(level) is not Map or list(level) != ["Block"]:
            return []
        block = level["Block"]
        if not QUANT_BLOCK.fits(block) or len(block) != 2:
            return []
        sizes: "List[int]" = block["storage"]
        rank = block["len"]
        if rank > min(len(sizes), self.ndim) or 0 in sizes[:rank]:
            return []
        return sizes[:rank]

    def iter_numbers(self, plan: QuantPlan) -> "Iterator[Tuple[int, List[Any]]]":
        """Yield (index of the first, numbers) of PART elements at a time, not scaled."""
        bits = plan.bits
        rows = numbers_of_bytes(bits, plan.floats)
        for start in range(0, self.size, PART):
            count = min(PART, self.size - start)
            raw = self.source.view(self.start + (start * bits >> 3), count * bits
                                   + 7 >> 3)
            numbers: "List[Any]" = []
            for byte in raw:
                numbers += rows[byte]
            yield start, numbers[:count]

    def read_scales(self, plan: QuantPlan, first: int, stop: int) -> Any:
        """Return some of the scales as numbers."""
        width = ITEMSIZE.get(plan.scale, 1)
        start = self.start + plan.scales_at + first * width
        raw = self.source.view(start, (stop - first) * width)
        if plan.scale in ITEMSIZE:
            return unpack_values(plan.scale, raw)
        return [minifloat(plan.scale, code) for code in raw]

    @property
    def values(self) -> Tensor:
        """The stored numbers, not scaled: int8, or float32 for floats."""
        plan = self.plan()
        dtype = "float32" if plan.floats else "int8"
        blocks = [pack_values(dtype, numbers) for _, numbers in self.iter_numbers(plan)]
        return new_tensor(dtype, self.shape, b"".join(blocks), "<", self.name,
                          self.format)

    @property
    def scales(self) -> Tensor:
        """The scales: one, or one per block in row-major order."""
        plan = self.plan()
        data = pack_values("float32", self.read_scales(plan, 0, plan.count))
        return new_tensor("float32", (plan.count,), data, "<", self.name, self.format)

    def iter_scaled(self, dtype: str) -> Blocks:
        """Return an iterator over the bytes of values x scales; errors come before."""
        plan = self.plan()
        if plan.step is None:
            what = f"the block shape {short_repr(plan.block)} has two meanings among the "
            what += "backends; use blocks that divide the last dimension"
            raise self.error(what, Unsupported)
        return (pack_values(dtype, self.scale(plan, plan.step, start, numbers))
                for start, numbers in self.iter_numbers(plan))

    def scale(self, plan: QuantPlan, step: int, start: int,
              numbers: "List[Any]") -> "List[float]":
        """Return numbers from index `start` on times their scales; `step` share one."""
        last = start + len(numbers) - 1
        scales = self.read_scales(plan, start // step, last // step + 1)
        return [number * scales[i // step] for i, number
                in enumerate(numbers, start % step)]

    def dequantize(self) -> Tensor:
        """Return values x scales as float32, in memory."""
        data = b"".join(self.iter_scaled("float32"))
        return new_tensor("float32", self.shape, data, "<", self.name, self.format)


def make_quantized(data: Any, shape: "Optional[Shape]", custom: Facts) -> Quantized:
    """Return a quantized tensor of stored bytes; `custom` holds the scheme."""
    code: Any = custom.get("burn_dtype")
    is_quantized = type(code) is Map and is_code(code) and "QFloat" in code
    if shape is None or not is_quantized:
        raise ValueError("qfloat needs bytes, shape= and "
                         'custom={"burn_dtype": {"QFloat": {...}}}')
    raw = bytes(memoryview(data))
    return Quantized("", "qfloat", shape, Buffer(raw), 0, len(raw),
                     custom=Map(custom.items()))


# -- [10d] safetensors -------------------------------------------------------------------

# code:bits:name here, as the official writer sorts them.
ST_TYPES = [row.split(":") for row in (
    "U64:64:uint64 I64:64:int64 F64:64:float64 C64:64: F32:32:float32 U32:32:uint32 I32:32:int32 "
    "BF16:16:bfloat16 F16:16:float16 U16:16:uint16 I16:16:int16 F8_E5M2FNUZ:8:float8_e5m2fnuz "
    "F8_E4M3FNUZ:8:float8_e4m3fnuz F8_E8M0:8:float8_e8m0fnu F8_E4M3:8:float8_e4m3fn "
    "F8_E5M2:8:float8_e5m2 I8:8:int8 U8:8:uint8 F6_E3M2:6: F6_E2M3:6: F4:4: BOOL:8:bool").split()]


def no_values(code: str) -> str:
    """Return why a type cannot be read here, and how its bytes can be."""
    way = "t.raw are the bytes"
    if code == "C64":
        way = 'numpy.frombuffer(t.raw, "complex64") reads them'
    elif code == "F4":
        way = 'numpy.frombuffer(t.raw, "uint8") has two values in each'
    return (f"dtype {short_repr(code)} has no values here, only bytes, which safetensors "
            f"can hold; {way}")


class Safetensors(Format):
    """safetensors (.safetensors) of Hugging Face, 0.2.8 to 0.8.0.

    0      header_size u64 = n, little-endian; there is no magic
    8      JSON object, n bytes: "__metadata__": text -> text?; name -> {dtype, shape,
           data_offsets [start, end)}; after it spaces, to a multiple of 8
    data   from 8 + n on, without gap or overlap, nothing after them; data_offsets count
           from here

    Written as by 0.3.1 and later: sorted by type, then name. Holes, overlaps and trailing
    bytes are errors, as in every official reader. Tensors of types without a name here
    are listed.
    """

    NAME = FAMILY = TITLE = "safetensors"
    HOLDS = "metadata: text to text"
    SUFFIXES = (".safetensors",)
    HEADER = RecordType(("header_size", "Q", "bytes of JSON"))
    ENTRY = Schema(
        ("dtype", TEXT, True, "type of the elements"),
        ("shape", UINT64_LIST, True, "dimensions"),
        ("data_offsets", START_END, True, "bytes after the header, [start, end)"))
    INDEX = Schema(  # open_entry checks the entries of tensors
        ("__metadata__", Schema(additional=(TEXT, "of the user")), None, "of the user"),
        additional=(ANY, "entry of a tensor", ENTRY), doc="metadata, tensors by name")
    FIELD_OF = dict(name="", size="data_offsets", place="data_offsets")
    DTYPES: Any = dict([(name, code) for code, _, name in ST_TYPES if name])
    TYPES = dict([(row[0], (i, int(row[1]), row[2])) for i, row in enumerate(ST_TYPES)])
    OPTIONS = {
        "sort": "True: by type, then name; False: as given",
        "empty_metadata": "True: an empty __metadata__ is written, too"}
    FILE_ATTRS = ("empty_metadata",)
    TENSOR_ATTRS = DTYPE_ATTRS = ("st_dtype",)
    TEXT_METADATA = True
    INDEX_FIRST = True
    # The limits of the real reader.
    MAX_HEADER_BYTES = 100000000
    NESTED = 127  # arrays and objects

    def detect(self, head: bytes) -> bool:
        # read() refuses a larger header.
        return head[8:9] == b"{" and unpack_from("<Q", head, 0)[0] < 1 << 40

    def notes(self, file: File) -> "Notes":
        found = []
        for tensor in file.values():
            code = tensor.attrs.get("st_dtype")
            if code is not None and code not in self.TYPES:
                what = f"no dtype of {self.NAME} is called {safe_repr(code)}: its readers "
                found.append((tensor, what + "refuse the file"))
        yield found

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        # 1 the header says how long the index is
        (nbytes,), at = reading.record(0, self.HEADER)
        reading.check_range(nbytes, "header_size", high=reading.end - at)
        reading.check_range(nbytes, "header_size", high=self.MAX_HEADER_BYTES,
                            limit="MAX_HEADER_BYTES")
        reading.root = "header"
        begin = reading.source.read(at, min(nbytes, 1))
        if begin != b"{":
            raise reading.error(f"the header begins with {begin!r}, not b'{{'", offset=at)
        # 2 the index is one JSON object
        index = read_json(reading, at, nbytes, self.INDEX, depth=self.NESTED)
        metadata = index.pop("__metadata__", None)
        # 3 each other entry is a tensor, which lies after the index
        data_start = at + nbytes
        for name in list(index):
            with reading:
                tensor = self.open_entry(reading, (name,), index.pop(name), data_start)
                reading.add_tensor(tensor, (name,), 0, reading.end, self.FIELD_OF)
        # 4 together they fill the file
        if not reading.errors:
            self.check_places(reading, data_start)
        attrs: Facts = Map()
        if metadata == {}:
            attrs["empty_metadata"] = True
        return attrs, metadata or Map()

    def open_entry(self, reading: Reading, trail: Trail, entry: Facts,
                   data_start: int) -> Tensor:
        """Return the tensor of an entry."""
        name = trail[0]
        reading.check_schema(self.ENTRY, entry, trail, name)
        code = entry["dtype"]
        shape = tuple(entry["shape"])
        start, end = entry["data_offsets"]
        _, bits, dtype = self.TYPES.get(code, (0, 0, ""))
        # Four dimensions below 2**14 are below 2**64 bits: add_tensor() checks the size.
        if not dtype or len(shape) > 4 or max(shape, default=0) >> 14:
            self.check_bits(reading, trail, entry, bits)
        tensor = Tensor(name, dtype, shape, reading.source, data_start + start,
                        end - start, format=self.NAME)
        if not dtype:
            tensor.dtype = None
            tensor.attrs["st_dtype"] = code
            tensor.unreadable = no_values(code)
        return tensor

    @staticmethod
    def check_bits(reading: Reading, trail: Trail, entry: Facts, bits: int) -> None:
        """Raise unless a tensor has the bytes it needs; `bits`: of an element, or 0."""
        code = entry["dtype"]
        shape = entry["shape"]
        start, end = entry["data_offsets"]
        need = bits * count_elements(shape)
        field = "shape"
        if max(need, count_elements(until_0(shape))) >> 64:
            what = f"the shape {short_repr(shape)} has 2**64 elements or bits or more"
        elif need % 8:
            what = f"{code} {short_repr(shape)} needs {need} bits, not whole bytes"
        elif bits and need != 8 * (end - start):
            what = f"{end - start} bytes stored, {code} {short_repr(shape)} needs {need} bits"
            field = "data_offsets"
        else:
            return
        raise reading.entry_error(what, trail[0], trail, field, "sizes")

    @staticmethod
    def check_places(reading: Reading, at: int) -> None:
        """Raise unless the data lie side by side, from `at` to the end of the file."""
        items = list(reading.tensors.values())
        items += [tensor for tensor, _ in reading.missing.values()]
        items.sort(key=lambda tensor: (tensor.start, tensor.stored_nbytes))
        for tensor in items:
            if tensor.start != at:
                what = f"its data begin at {tensor.start}, those before end at {at}"
                raise reading.entry_error(what, tensor.name, (tensor.name,), "data_offsets",
                                          "bounds")
            at += tensor.stored_nbytes
        reading.check_whole()
        if at < reading.end:
            what = f"bytes after the end of the data: {reading.end - at}"
            raise reading.error(what, "trailing", offset=at, check="bounds")

    def name_problem(self, name: str) -> "Optional[str]":
        if name == "__metadata__":
            return "the name is that of the metadata"
        return super().name_problem(name)

    def padding(self, start: int, stop: int, before: str, after: str,
                attrs: Facts) -> "Tuple[int, int]":
        if before == "structure":
            return stop - start, 32
        return 0, 32

    def write(self, items: Items, metadata: Facts, attrs: Facts,
              options: Facts) -> Blocks:
        # 1 the type of each tensor
        sort = self.option("sort", True, options, {})
        empty = self.option("empty_metadata", False, options, attrs)
        if not isinstance(sort, bool) or not isinstance(empty, bool):
            raise ValueError("sort and empty_metadata are bools")
        rows = self.make_rows(items, metadata)
        if sort:
            # Code points sort as UTF-8 does.
            rows.sort(key=lambda row: row[:2])
        # 2 the index, spaces after it
        index: Facts = {}
        if metadata or empty:
            index["__metadata__"] = metadata
        starts = []
        end = 0
        for _, name, code, tensor in rows:
            starts.append(end)
            end += tensor.nbytes
            index[name] = {"dtype": code, "shape": tensor.shape,
                           "data_offsets": (starts[-1], end)}
        data = json_dumps(index)
        data += b" " * (-len(data) % 8)
        if len(data) > self.MAX_HEADER_BYTES:
            raise ValueError(f"{len(data)} bytes of header are over MAX_HEADER_BYTES")
        # 3 its size, the index, the data
        head = self.HEADER.pack(len(data)) + data
        starts = [len(head) + start for start in starts]
        pairs = [(name, tensor) for _, name, _, tensor in rows]
        return self.iter_file(head, pairs, starts, len(head) + end)

    def make_rows(self, items: Items, metadata: Facts) -> "List[Any]":
        """Return rows (place of the type, name, type, tensor); raise for the unfit."""
        problems = self.problems(items, metadata)
        rows = []
        for name, tensor in items:
            known = self.DTYPES.get(tensor.dtype)
            code = self.native_attrs(tensor).get("st_dtype", known)
            if known is not None and known != code:
                what = f"st_dtype {short_repr(code)} does not go with {tensor.dtype}"
                problems.append((name, what))
            elif 0 in tensor.shape and count_elements(until_0(tensor.shape)) >> 64:
                what = f"shape {short_repr(tensor.shape)}: over 2**64-1 elements"
                problems.append((name, what))
            place = self.TYPES.get(code, (99, 0, ""))[0]
            rows.append((place, name, code, tensor))
        self.raise_problems(problems)
        return rows


FORMATS += (Safetensors(),)


# -- [10e] burnrecord --------------------------------------------------------------------


class Module:
    """A map or an array of a record that each_tensor() is in."""

    def __init__(self, trail: Trail, value: Any) -> None:
        self.trail = trail
        pairs = value.items() if type(value) is Map else enumerate(value)
        self.pairs: "Iterator[Tuple[Any, Any]]" = iter(pairs)
        # The names in it begin so, which can be long.
        self.prefix: "Optional[str]" = None

    def name_of(self, key: "Union[str, int]") -> str:
        """Return the name of a member: the keys that lead to it, but for the first."""
        if self.prefix is None:
            self.prefix = "".join([f"{step}." for step in self.trail[1:]])
        return f"{self.prefix}{key}"


class BurnRecord(Format):
    """The named MessagePack record of Burn (.mpk), its default file up to 0.21; from 0.14
    on.

    one map   = "metadata": {"float", "int", "format", "version", "settings": all text},
                "item": the module: maps and arrays around parameters, "_b": []
    parameter = {"id": text, "param": TENSOR}
    TENSOR    = {"bytes": bin, "shape": [unsigned ...], "dtype": "F32"}, little-endian,
                row-major

    Names are keys and indices, joined by "."; the item itself is "item". dtypes and
    schemes are those of Burnpack. What is of no tensor: numbers and texts are scalars in
    File.attrs, bytes are File.others. Never written: Burn 0.22 has no reader for it. Not
    read: tensors as lists of numbers, of Burn before 0.14; "item" first or without names;
    Burn's other recorders.
    """

    NAME = FAMILY = "burnrecord"
    TITLE = "Burn's record"
    SUFFIXES = (".mpk",)
    HOLDS = "read only: convert it to .bpk; numbers, texts, bytes, param_id, quantized bytes"
    MAGICS = tuple([bytes([first]) + b"\xa8metadata" for first in range(0x82, 0x90)])
    READ_ONLY = "Burn 0.22 has no reader for it; .bpk holds the same"
    CODEC = MessagePack
    DTYPES = Burnpack.DTYPES
    # Of the record's metadata.
    SETTINGS = ("float", "int", "format", "version", "settings")
    FILE_ATTRS = SETTINGS + ("scalars",)
    TENSOR_ATTRS = ("param_id", "id", "burn_dtype")
    DTYPE_ATTRS = Burnpack.DTYPE_ATTRS
    FIELD_OF = dict(name="", size="bytes", place="bytes")
    # The releases that wrote lists of numbers.
    OLD = [["0", str(minor)] for minor in range(14)]
    BASE32 = "0123456789abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUV"
    METADATA = Schema(*[(key, TEXT, True, "of the record") for key in SETTINGS],
                      additional=(TEXT, "of the record"))
    TENSOR = Schema(
        ("bytes", typed(range, "bytes"), True, "the elements"),
        ("shape", UINT64_LIST, True, "dimensions"),
        ("dtype", Burnpack.ENTRY.rows["dtype"][0], True, "type of the elements"))
    # of the whole map, for explain(); is_tensor() finds the tensors
    ITEM = Schema(("id", ANY, False, "Burn's own id of it"), doc="one map")
    ITEM.rows.update(TENSOR.rows, param=(ANY, "the tensor", ITEM))
    ITEM.rows["value"] = ANY, "the elements", ITEM
    # Maps lie in maps of any depth.
    ITEM.additional = ANY, "of the record", ITEM

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        reading.root = "magic"
        # 1 the metadata come first: an old release is refused before its numbers
        if reading.source.read(0, 10) not in self.MAGICS:
            reading.check_magic(self, self.MAGICS[0])
        codec = MessagePack(reading.source, lazy=True)
        reading.note(0, "tree", (), codec, self.ITEM)
        metadata, _ = codec.parse(10)
        reading.check_schema(self.METADATA, metadata, ("metadata",))
        if metadata["version"].split(".")[:2] in self.OLD:
            raise self.too_old(reading, metadata, "metadata", "version")
        # 2 the whole map; the bytes of tensors stay in the file
        top, end = codec.parse()
        # It is for convert(); verify() only notes it.
        if end < reading.end:
            reading.rest = end
        if "item" not in top:
            raise reading.error("the map has no item", "item", offset=0)
        # 3 the tensors in it, and what else it holds
        scalars: Facts = Map()
        for trail, entry in self.each_tensor(reading, top["item"], scalars):
            with reading:
                tensor = self.open_entry(reading, metadata, trail, *entry)
                reading.add_tensor(tensor, trail, 0, reading.end, self.FIELD_OF)
        for name, value in reading.others.items():
            if type(value) is range:
                reading.others[name] = reading.source.read(value.start, len(value))
                codec.read_starts.add(value.start)
        if scalars:
            metadata["scalars"] = scalars
        return metadata, Map()

    @staticmethod
    def too_old(reading: Reading, metadata: Facts, *trail: Any) -> FormatError:
        what = (f"Burn {metadata['version']}: tensors that are lists of numbers, as before "
                "0.14, are not read; Burn 0.13 reads them")
        return reading.error(what, *trail, error_class=Unsupported)

    def each_tensor(self, reading: Reading, item: Any, scalars: Facts) -> Any:
        """Yield (trail, (name, attrs, entry)) of each tensor.

        Numbers and texts go to `scalars`, bytes to the reading's `others`.
        """
        around = [Module((), Map(item=item))]
        # A member without a name is called as the item itself is, if nothing else is.
        is_taken = type(item) is Map and "item" in item
        while around:
            module = around[-1]
            inner: "Optional[Module]" = None
            for key, value in module.pairs:
                if value is None or type(value) is range and not value:
                    continue
                here = module.trail + (key,)
                where = here
                attrs: "Optional[Facts]" = None
                entry: Any = value
                if self.is_parameter(entry):
                    attrs = self.id_attrs(entry["id"])
                    entry = entry.get("param")
                    where = here + ("param",)
                if type(value) in (list, Map) and not self.is_tensor(entry):
                    inner = Module(here, value)
                    break
                name = module.name_of(key)
                if not name and not is_taken:
                    name = "item"
                reading.spend_name(name, *here)
                if self.is_tensor(entry):
                    yield where, (name, attrs, entry)
                    continue
                found = scalars
                if type(value) in (range, tuple):
                    found = reading.others
                if name in found:
                    what = f"two values have the name {short_repr(name)}"
                    raise reading.error(what, *here)
                found[name] = value
            if inner is None:
                around.pop()
            else:
                around.append(inner)

    @staticmethod
    def is_parameter(value: Any) -> bool:
        """Return whether this is a map of an id and one thing more, a tensor perhaps."""
        return type(value) is Map and len(value) == 2 and type(value.get("id")) is str

    @staticmethod
    def is_tensor(entry: Any) -> bool:
        if type(entry) is not Map or "shape" not in entry:
            return False
        # An old record has numbers as its value.
        if len(entry) == 2:
            return type(entry["shape"]) is type(entry.get("value")) is list
        if "bytes" not in entry or "dtype" not in entry:
            return False
        return len(entry) == 3 or type(entry["bytes"]) is range

    def open_entry(self, reading: Reading, metadata: Facts, trail: Trail, name: str,
                   attrs: "Optional[Facts]", entry: Any) -> Tensor:
        if len(entry) == 2:
            raise self.too_old(reading, metadata, *trail + ("value",))
        reading.check_schema(self.TENSOR, entry, trail, name)
        data = entry["bytes"]
        code = entry["dtype"]
        if json_problem(code, MAX_DEPTH):
            raise reading.entry_error("dtype holds bytes", name, trail, "dtype")
        return Burnpack().make_tensor(name, code, entry["shape"], reading.source,
                                      data.start, len(data), self.NAME, attrs)

    def notes(self, file: File) -> "Notes":
        if file.others:
            names = join_names([safe_repr(name) for name in file.others])
            yield [(None,
                    f"bytes that are of no tensor, which .bpk does not hold: {names}")]

    def id_attrs(self, text: str) -> Facts:
        """Return the attr of an id: a number if it is Burn's, base 32 of 8 or 6 bytes."""
        if len(text) not in (10, 13) or text.strip(self.BASE32):
            return {"id": text}
        nbytes = 5 * len(text) // 8
        # So many bits at the end are 0.
        spare = 5 * len(text) % 8
        number = int(text, 32)
        if number & (1 << spare) - 1:
            return {"id": text}
        raw = (number >> spare).to_bytes(nbytes, "big")
        return {"param_id": int.from_bytes(raw, "little")}


FORMATS += (BurnRecord(),)


# -- [10f] shards ------------------------------------------------------------------------

# Some editors put it in front of a text.
UTF8_MARK = b"\xef\xbb\xbf"
# Descriptors are few: other shards are opened for each read.
OPEN_SHARDS = 200


def anywhere() -> str:
    """Return what reads shards that do not fit their index."""
    return option("partial=True") + " takes each tensor from where it is whole"


def split_shard_name(name: str) -> "Optional[Tuple[str, int, str]]":
    """Return (stem, number of shards, ending) of a name as m-00001-of-00002.safetensors,
    or None.

    They are those of all shards of a model.
    """
    front, _, rest = name.rpartition("-of-")
    stem, dash, number = front.rpartition("-")
    count, _, ending = rest.partition(".")
    if not dash or not number or not count or (number + count).strip("0123456789"):
        return None
    return stem, int(count), ending


def title_of_shard(name: str) -> str:
    """Return what tells a shard from the others of its model: 1 of 2, or its name."""
    kind = split_shard_name(name)
    if kind is None:
        return name
    stem, count, _ = kind
    number = name[len(stem) + 1:].partition("-")[0]
    return f"{int(number)} of {count}"


def is_plain_name(text: str) -> bool:
    """Return whether this names a file beside the index, on every system."""
    return bool(is_text(text) and text.strip(".")
                and not [c for c in "/\\:\0" if c in text])


class Shards(Format):
    """The index of a model in several safetensors files (model.safetensors.index.json),
    read only.

    JSON object: "weight_map": name of a tensor -> name of the file that has it, beside
    the index; "metadata": {"total_size": bytes of tensors ...}?

    Only files of its folder are opened. No library reads total_size when it loads, and
    released tools write other numbers there.
    """

    NAME = "shards"
    FAMILY = "safetensors"
    TITLE = "safetensors index"
    SUFFIXES = (".safetensors.index.json",)
    INDEX_FIRST = True
    READ_ONLY = "save one .safetensors file of any size; huggingface_hub splits models of torch"
    MARK = RecordType(("mark", "3s", "of UTF-8, by an editor"))
    PLAIN_NAME = typed(str, "a plain file name", is_plain_name)
    WEIGHT_MAP = Schema(additional=(PLAIN_NAME, "the file of it"), key_type=TEXT)
    INDEX = Schema(
        ("metadata", MAP, None, "of the writer"),
        ("weight_map", WEIGHT_MAP, True, "files by name of the tensor"),
        doc="an index")

    def detect(self, head: bytes) -> bool:
        if head.startswith(UTF8_MARK):
            head = head[3:]
        return head.lstrip()[:1] == b"{" and (b'"total_' in head or b'"weight_map"'
                                              in head)

    def read(self, reading: Reading) -> "Tuple[Facts, Facts]":
        reading.root = "index"
        reading.check_range(reading.end, high=MAX_INDEX, limit="MAX_INDEX")
        start = 0
        if reading.source.read(0, 3) == UTF8_MARK:
            _, start = reading.record(0, self.MARK)
        index = read_json(reading, start, reading.end - start, self.INDEX)
        places = index["weight_map"]
        reading.note_names([(("weight_map", name), name) for name in places])
        attrs = Map()
        attrs["shards"] = sorted(set(places.values()))
        attrs["index"] = index.get("metadata") or Map()
        attrs["weight_map"] = places
        return attrs, Map()

    def make_file(self, reading: Reading, attrs: Facts, metadata: Facts) -> File:
        return ShardedFile(reading.source, attrs, reading.partial)


class ReopenedFile(PickledFile):
    """The source of a shard that is opened for each read."""

    mapping: Any = False
    closed = False

    def view(self, offset: int, nbytes: int) -> Any:
        if self.closed:
            raise ValueError(CLOSED)
        with process_lock(self._locks):
            source = self.open()
            self._source = None
        try:
            return source.view(offset, nbytes)
        finally:
            source.close()

    def close(self) -> None:
        self.closed = True


def metadata_values(file: Any, names: Any = None) -> "Dict[Any, List[Any]]":
    """Return the values of each metadata key: several where shards of `names` differ."""
    if file.shards is None:
        return Map([(key, [value]) for key, value in file.metadata.items()])
    if names is None:
        names = file
    shards = set([file._tensors[name] for name in names])
    values: Any = Map()
    for shard in sorted(shards):
        for key, value in file.shard(shard).metadata.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return values


class ShardedFile(File):
    """A model in several files; a shard is opened when one of its tensors is asked for.

    It must have the tensors that the index places there, and no others. `partial` opens
    all at once, and takes each tensor from where it is whole.
    """
    def __init__(self, source: "Buffer", attrs: Facts, partial: bool) -> None:
        self.fmt = find_format("safetensors")
        self.format = self.fmt.FAMILY
        self.source = source
        self.path = source.path
        self.attrs = attrs
        self.partial = partial
        self.others = {}
        # Of each tensor its shard.
        self._tensors: Any = attrs.pop("weight_map")
        # Those that are open, by name.
        self.shards: "Dict[str, File]" = Map()
        # Of those that a pickle names (state, nbytes).
        self.states: Facts = {}
        # Of each shard the tensors that the index places there.
        self.names: "Dict[str, List[str]]" = {}
        for name, shard in self._tensors.items():
            self.names.setdefault(shard, []).append(name)
        if partial:
            self.take_whole()

    def shard(self, shard: str) -> File:
        """Return a shard as a File; raise if it is missing, or not that of the index."""
        if shard not in self.shards:
            source = self.open_source(shard)
            try:
                file = self.read_shard(source)
                if not self.partial:
                    self.check_placed(shard, file)
            except BaseException:
                source.close()
                raise
            # Another thread may have been first.
            self.shards.setdefault(shard, file)
        return self.shards[shard]

    def check_placed(self, shard: str, file: File) -> None:
        """Raise unless a shard has the tensors that the index places there."""
        wrong = list(self.misplaced(shard, file))
        if wrong:
            name, what = wrong[0]
            what = f"{what}; {anywhere()}"
            raise FormatError(what, None, "weight_map", name, self.path)

    def open_source(self, shard: str) -> Buffer:
        """Return the source of a shard; Unsupported where it is missing."""
        if self.source.file_id is None:
            raise Unsupported("shards lie beside their index: load it by its path")
        # It raises where the File is closed.
        self.source.view(0, 0)
        path = os.path.join(os.path.dirname(str(self.path)), shard)
        where = self.place_of(shard)
        if not os.path.isfile(where):
            what = dangling_link(where) or "missing"
            what = f"the shard is {what}: download it again; {anywhere()}"
            what += "; each other shard can be loaded by its own path"
            raise Unsupported(what, path=path)
        source = open_path(where, self.source.file_id[1])
        if shard in self.states:
            check_state(source, *self.states[shard])
        if len(self.shards) >= OPEN_SHARDS:
            source.close()
            source = ReopenedFile(where, False, source.file_id[2], source.nbytes)
        source.path = path
        return source

    def read_shard(self, source: Buffer) -> File:
        """Return a source as a File, if it is a shard."""
        fmt = detect_format(source)
        if fmt is not self.fmt:
            what = f"a shard is {self.fmt.TITLE}, this is {fmt.TITLE}"
            raise FormatError(what, path=source.path)
        return read_file(source, fmt, self.partial)

    def place_of(self, shard: str) -> str:
        """Return the absolute path of a shard: chdir() may come."""
        return os.path.join(os.path.dirname(self.source.file_id[0]), shard)

    def misplaced(self, shard: str, file: File) -> "Iterator[Tuple[str, str]]":
        """Yield (name, why) of tensors that a shard lacks or has against the index."""
        for name in self.names.get(shard, ()):
            if name not in file:
                yield name, f"weight_map places it in {safe_repr(shard)}, which lacks it"
        for name in file:
            place = self._tensors.get(name)
            if place == shard:
                continue
            said = "lacks it"
            if place is not None:
                said = f"places it in {safe_repr(place)}"
            yield name, f"it is in {safe_repr(shard)}, but weight_map {said}"

    def unlisted(self) -> "List[str]":
        """Return the files beside the index that are called as its shards, not in it."""
        if self.source.file_id is None:
            return []
        kinds = set(map(split_shard_name, self.names))
        folder = os.path.dirname(self.source.file_id[0])
        found = []
        for name in sorted(os.listdir(folder)):
            kind = split_shard_name(name)
            if kind is None or kind not in kinds or name in self.names:
                continue
            if os.path.isfile(os.path.join(folder, name)):
                found.append(name)
        return found

    def check_listed(self) -> None:
        """Raise where the index does not name all shards of the model."""
        if self.partial:
            return
        names = self.unlisted()
        if names:
            what = f"{unlisted_message(names[0])}; {anywhere()}"
            raise FormatError(what, None, "weight_map", None, self.path)

    def take_whole(self) -> None:
        """Take each tensor from where it is whole; attrs["missing"] names the others."""
        places = Map()
        names = Map.fromkeys(self._tensors)
        for shard in self.attrs["shards"] + self.unlisted():
            try:
                file = self.shard(shard)
            except FormatError:
                # No other one can be looked for.
                if self.source.file_id is None:
                    raise
                continue
            names.update(Map.fromkeys(list(file) + file.attrs.get("missing", [])))
            for name in file:
                if name not in places or self._tensors.get(name) == shard:
                    places[name] = shard
        self._tensors = Map([(name, places[name]) for name in names if name in places])
        self.attrs["missing"] = [name for name in names if name not in places]

    def __getitem__(self, name: str) -> Tensor:
        return self.shard(str(super().__getitem__(name)))[name]

    def items(self) -> Any:
        return Map(zip(self, self.values())).items()

    def values(self) -> Any:
        self.check_listed()
        return [self[name] for name in self]

    def __reduce__(self) -> Any:
        call, (_, file_id, partial) = super().__reduce__()
        return call, (Shards.NAME, file_id, partial, self.list_states())

    def list_states(self) -> Facts:
        """Return (state, nbytes) of each shard: as it was opened, else as it is now."""
        states = dict(self.states)
        for shard in self.attrs["shards"] + list(self.shards):
            where = self.place_of(shard)
            if shard in self.shards:
                source = self.shards[shard].source
            elif shard in states or self.partial or not os.path.isfile(where):
                continue
            else:
                source = open_path(where, False)
                source.close()
            states[shard] = source.file_id[2], source.nbytes
        return states

    def expect(self, states: Facts) -> None:
        """Raise ValueError, now or on opening, where a shard changed since a pickle."""
        self.states = states
        if not self.partial:
            return
        for shard, state in states.items():
            if shard not in self.shards:
                raise ValueError(f"{safe_str(self.place_of(shard))} {CHANGED}")
            check_state(self.shards[shard].source, *state)

    def close(self) -> None:
        super().close()
        for file in list(self.shards.values()):
            file.close()

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """The stored bytes of all tensors, whose shards it opens."""
        return sum([tensor.stored_nbytes for tensor in self.values()])

    @property
    def metadata(self) -> Facts:  # type: ignore[override]
        """That of all shards, which it opens; ValueError where they do not agree."""
        same = Map()
        for key, values in metadata_values(self).items():
            if len(values) > 1:
                what = f"the files do not agree on metadata {short_repr(key)}"
                raise ValueError(f"{what}; convert(drop=True) leaves it out")
            same[key] = values[0]
        return same


def unlisted_message(shard: str) -> str:
    return f"{safe_repr(shard)} is one of the shards by its name, but weight_map lacks it"


def find_in_folder(folder: str) -> str:
    """Return the path of a folder's one index, else of its one tensor file."""
    # macOS keeps facts of a file X in ._X on disks of others.
    names = [name for name in sorted(os.listdir(folder)) if name[:2] != "._"]
    found: "List[str]" = []
    for ends in Shards.SUFFIXES, tuple([end for fmt in FORMATS for end in fmt.SUFFIXES]):
        found = [name for name in names if name.lower().endswith(ends)
                 and not os.path.isdir(os.path.join(folder, name))]
        if found:
            break
    kinds = set([split_shard_name(name) for name in found])
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is not None and kind[1] > 1:
        stem, count, ending = kind
        index = safe_str(f"{stem}.{ending}.index.json")
        what = (f", of a model in {count} shards whose index {index} is missing: "
                "download it, or load each shard by its own path")
    elif len(found) == 1:
        return os.path.join(folder, found[0])
    elif found:
        what = ": load one of them by its path"
    else:
        found = ["no tensor files"]
        what = ""
    what = f"is a directory; it has {join_names(found)}{what}"
    raise IsADirectoryError(21, what, folder)


GENERATIONS += (Shards(),)


# -- [10g] other copies ------------------------------------------------------------------
#
# Two packages of one process may carry a copy of this module each: classes and formats of
# one are not those of the other. What comes from there is told by its facts, and made one
# of ours.


def own_tensor(value: Any) -> "Optional[Tensor]":
    """Return a Tensor of this copy of the module or another, as of this; else None."""
    if isinstance(value, Tensor):
        return value
    if not hasattr(value, "stored_nbytes"):
        return None
    if hasattr(value, "open_parts"):
        return own_sparse(value)
    if hasattr(value, "_base"):
        base: Any = own_tensor(value._base)
        return Cast(base, value.dtype)
    args = [getattr(value, key) for key in ARGUMENTS]
    if value.dtype == "qfloat":
        return Quantized(*args)
    if hasattr(value, "parts"):
        made = Composite(*args)
        made.parts = own_tensors(value.parts)
        return made
    return Tensor(*args)


def own_tensors(tensors: Any) -> TensorMap:
    """Return a mapping with Tensors of this copy."""
    return Map([(name, own_tensor(tensor)) for name, tensor in tensors.items()])


def own_sparse(value: Any) -> Tensor:
    """Return a sparse tensor of another copy as one of this copy."""
    def open_parts(decode: bool) -> TensorMap:
        try:
            return own_tensors(value.open_parts(decode))
        except ValueError as error:
            raise own_error(error)
    stored: Any = own_tensor(value.stored)
    return Sparse(stored, value.name, value.shape, open_parts, value.is_blob,
                  value.is_sorted, value._attrs, value._custom, value.format)


def own_error(error: Any) -> ValueError:
    """Return a FormatError of another copy as one of this; another error as it is."""
    names = [base.__name__ for base in type(error).__mro__]
    if "FormatError" not in names:
        return error
    error_class = Unsupported if "Unsupported" in names else FormatError
    return error_class(error.what, error.offset, error.field, error.tensor, error.path,
                       error.check)


def own_file(value: Any) -> "Optional[File]":
    """Return a File of this copy of the module or another, as of this; else None."""
    if isinstance(value, File):
        return value
    if not hasattr(value, "fmt") or not hasattr(value, "_tensors"):
        return None
    facts: Facts = dict(vars(value), fmt=find_format(value.fmt.NAME))
    if getattr(value, "shards", None) is None:
        made = File(facts["fmt"], value.source, value.attrs, value.metadata, {})
        facts["_tensors"] = own_tensors(value)
    else:
        made = ShardedFile(value.source, Map(weight_map=Map()), False)
        facts["shards"] = Map([(name, own_file(file)) for name, file
                               in value.shards.items()])
    # Another version may lack some that are ours.
    made.__dict__.update(facts)
    return made


# == III tools ===========================================================================


# -- [12a] other files -------------------------------------------------------------------

NOT_OURS = (  # how a file begins, a word near its start, what it is and what to do
    (b"PK\3\4", b".npy", "an .npz archive: save() takes dict(numpy.load(path))"),
    (b"PK\3\4", b"/data.pkl", "a PyTorch file: save() takes torch.load(path, map_location='cpu')"),
    (b"PK\3\4", b"", "a zip archive (an .npz? numpy.load; of PyTorch? torch.load)"),
    (b"\x93NUMPY", b"", "an .npy array: save() takes {name: numpy.load(path)}"),
    (b"\x80", b"", "a pickle: if it is of PyTorch, save() takes torch.load(path)"),
    (b"GGUF", b"", "GGUF of llama.cpp: the package gguf reads it"),
    (b"\x89HDF", b"", "HDF5: h5py reads it, save() takes the arrays"),
    (b"\x08\x01\x12", b"", "a SavedModel of TensorFlow, which reads its folder"),
    (b"\x08", b"\x12", "ONNX: the package onnx reads it"),
    (b"", b"\0\0tfl3", "TensorFlow Lite: the package ai-edge-litert reads it"),
    (b"\x1f\x8b", b"", "a gzip file: gunzip it, or load(gzip.open(path).read())"),
    (b"\xfd7zXZ\0", b"", "an xz file: unxz it, or load(lzma.open(path).read())"),
    (b"BZh", b"1ay&sy", "a bzip2 file: bunzip2 it, or load(bz2.open(path).read())"),
    (b"\x28\xb5\x2f\xfd", b"", "a zstd file: `zstd -dc FILE | tensorfmt ls -`"),
    (b"", b"\0ustar", "a tar archive: take the file out of it first"),
    (b"<", b"html", "an HTML page, perhaps of an error: download the file itself"),
    (b"<?xml", b"", "XML, perhaps of an error: download the file itself"),
    (b"version ", b"git-lfs", "a Git LFS pointer: `git lfs pull` fetches the file itself"))


def unknown_file(head: bytes) -> FormatError:
    """Return the error of a file that is of no format here."""
    if not head:
        return FormatError("the file is empty", 0, "magic", check="magic")
    looks = looks_like(head)
    error_class = FormatError
    # The file may be right inside.
    if ".open(path)" in looks:
        error_class = Unsupported
    if not looks:
        looks = "it begins with " + " ".join(["%02x" % byte for byte in head[:8]])
    return error_class(f"not a tensor file known here; {looks}", 0, "magic",
                       check="magic")


UTF_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16",
             b"\xfe\xff": "UTF-16"}


def wide_encoding(head: bytes) -> str:
    """Return the encoding of a text whose letters take several bytes, or ""."""
    for mark, encoding in UTF_MARKS.items():
        if head.startswith(mark):
            return encoding
    # Without a mark every other byte of plain text is 0.
    halves = head[:16:2], head[1:16:2]
    for zeros, letters, encoding in (halves[1], halves[0], "UTF-16-LE"), (*halves,
                                                                          "UTF-16-BE"):
        if zeros and not zeros.strip(b"\0") and min(letters) > 0:
            return encoding
    return ""


def looks_like(head: bytes) -> str:
    """Return what a file that begins so seems to be and what to do, or ""."""
    import re
    encoding = wide_encoding(head)
    if encoding:
        head = head.decode(encoding, "replace").encode()
    elif head.startswith(UTF8_MARK):
        head = head[3:]
    for start, word, text in NOT_OURS:
        if head.lstrip().startswith(start) and word in head.lower():
            return "it looks like " + text
    # A map of MessagePack whose first key is a word.
    if re.match(b"(?s)([\x81-\x8f]|\xde..)[\xa1-\xbf][a-z]", head, re.I):
        return ("it looks like MessagePack, of Flax perhaps: "
                "flax.serialization.msgpack_restore reads it, save() takes the arrays")
    if head and not head.strip(b"\0"):
        return "it begins with zeros: a download that stopped?"
    # The last letter may be cut.
    text = " ".join(head.decode("utf-8", "replace").rstrip("\ufffd").split())
    if not text or "\ufffd" in text or not text.isprintable():
        return ""
    noun = "JSON" if text[0] in "{[" else "the text"
    text = f"it is {noun} {safe_repr(truncate(text, 100))}"
    if encoding:
        text += " in " + encoding[:6]
        if noun == "JSON":
            text += ": write it as UTF-8 (PowerShell 5: Out-File -Encoding utf8)"
    return text


# -- [12b] repr and previews -------------------------------------------------------------

SHOWN = 200  # values that repr() and `get` show whole
DTYPE_KEYS = ("type", "dtype", "st_dtype", "burn_dtype")  # attrs that name an unknown dtype


def preview(item: "Tensor", edge: int = SHOWN) -> str:
    """Return the values as numpy shows them; of more than SHOWN those at the edges."""
    item.check_readable()  # before it is decoded
    if item.ndim > 64:
        raise ValueError(f"{item.ndim} dimensions are too many to be shown; see .flat")
    if not 0 < item.size <= SHOWN:
        most = 0
        if item.ndim < 5:
            most = 3
        elif item.ndim < 10:
            most = 1
        edge = min(edge, most)
    if not item.shape:
        values = item.item()
    elif item.encoding == "raw":  # a copy without zstd lacks decoded()
        values = edge_values(item, edge)
    else:
        values = edge_values(item.decoded(), edge)
    widths = [0]
    lay_out(values, item.ndim, item.ndim, widths)
    return lay_out(values, item.ndim, item.ndim, widths)


NOT_SHOWN: Any = object()  # values that a preview does not show


def edge_values(part: "Tensor", edge: int) -> "List[Any]":
    """Return the values of a tensor at the edges as nested lists, NOT_SHOWN for those between."""
    n = part.shape[0]
    if 0 < max(part.shape) <= 2 * edge and part.size:
        whole: "List[Any]" = part.tolist()
        return whole
    rows = [*range(min(n, edge)), *range(max(n - edge, edge), n)]
    if part.ndim > 1:
        values = [edge_values(part[i], edge) for i in rows]
    else:
        values = [part[i] for i in rows]
    if len(rows) < n:
        values.insert(edge, NOT_SHOWN)
    return values


def lay_out(values: Any, ndim: int, rank: int, widths: "List[int]") -> str:
    """Return values of `ndim` of `rank` dimensions as text; widths[0]: of the widest value."""
    if not ndim:
        if isinstance(values, float):
            values = float("%.8g" % values)
        text = repr(values)
        widths[0] = max(widths[0], len(text))
        return " " * (widths[0] - len(text)) + text
    texts = []
    for value in values:
        if value is NOT_SHOWN:
            texts.append("...")
        else:
            texts.append(lay_out(value, ndim - 1, rank, widths))
    if ndim == 1:  # in lines of 78 columns
        count = max(1, (80 - 2 * rank) // (widths[0] + 2))
        texts = [", ".join(texts[i:i + count]) for i in range(0, len(texts), count)]
    between = ",\n" + " " * (rank - ndim + 1)
    return f"[{between.join(texts)}]"


def json_ready(value: Any) -> Any:
    """Return a value that JSON holds: bytes as hex digits, maps of odd keys as pairs."""
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: json_ready(item) for key, item in value.items()}
        return [[json_ready(key), json_ready(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, int) and abs(value) >> 128:
        return short_repr(value)
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float) and abs(value) < INFINITY:
        return value
    return repr(value)


def to_json(value: Any) -> str:
    """Return any value as one line of JSON."""
    from json import dumps
    return dumps(json_ready(value))


class Result:
    """What verify(), convert() and diff() return: attributes, a text for people, to_json()."""

    def facts(self) -> Facts:
        return vars(self)

    def to_json(self) -> str:
        """Return it as one line of JSON, as `--json` prints it."""
        return to_json(self.facts())


def describe_tensor(item: "Tensor") -> str:
    """Return repr() of a tensor: its facts, and values if there is room."""
    text = f"<Tensor {safe_repr(item.name)} {dtype_words(item)} {short_repr(item.shape)}"
    if item.format:
        text += f" of {item.format}"
    if not is_quickly_read(item):
        return text + ">"
    try:
        for edge in (SHOWN, 3, 1, 0):
            whole = f"{text}:\n{preview(item, edge)}>"
            if len(whole) <= MAX_LINE:
                return whole
    except (ValueError, OSError):  # damaged, closed, no values
        pass
    return text + ">"


def is_quickly_read(item: "Tensor") -> bool:
    """Return whether some values of a tensor are read without decoding much."""
    if item.encoding == "raw":
        return True
    if item.size > SHOWN:
        return False
    if item.is_sparse:
        return {part.encoding for part in item.stored_parts().values()} == {"raw"}
    return True


def dtype_words(item: "Tensor") -> str:
    """Return the dtype; an unknown one as the file calls it, quoted."""
    if item.dtype:
        return item.dtype
    for key in DTYPE_KEYS:
        if item.attrs.get(key) is not None:
            return short_repr(item.attrs[key])
    return "?"


def missing_message(file: "File", name: Any) -> str:
    """Return that a File lacks a tensor, and which name is most like its name."""
    if name in file.attrs.get("missing", ()):
        return f"{safe_repr(name)} is missing or cut short"
    text = f"no tensor {short_repr(name)} ({plural(len(file), 'tensor')})"
    if isinstance(name, str) and len(file) <= 20000:
        text += did_you_mean(name, file)
    return text


def did_you_mean(name: str, names: Any) -> str:
    """Return the end of a message: the name that is like a wrong one, if any."""
    letters = composed(name)
    for other in names:
        if composed(other) == letters and other != name:
            codes = [truncate(ascii(text), TEXT_WIDTH) for text in (other, name)]
            return (f"; did you mean {safe_repr(other)}? Its letters are composed "
                    f"otherwise: {codes[0]}, not {codes[1]}")

    def likeness(other: str) -> float:
        """Return which part of both, 0 to 1, is a common beginning and end."""
        beginning = os.path.commonprefix([name, other])
        end = os.path.commonprefix([name[::-1], other[::-1]])
        common = min(len(beginning) + len(end), len(name), len(other))
        return common / max(len(name), len(other), 1)
    near = max(names, key=likeness, default="")
    if near and likeness(near) >= 0.5:
        return f"; did you mean {safe_repr(near)}?"
    return ""


def html_escape(value: Any, limit: int = TEXT_WIDTH) -> str:
    """Return a value as printable text without marks of HTML."""
    from html import escape
    text = truncate(str(value), limit)
    if not text.isprintable():
        text = safe_repr(text)
    return escape(text)


def html_table(file: "File") -> str:
    """Return the first SHOWN tensors of a File, and the sum of all, in HTML."""
    rows = []
    for name, item in list(file.items())[:SHOWN]:
        rows.append((dtype_words(item), short_repr(item.shape), item.nbytes, safe_str(name)))
    total = sum([item.nbytes for item in file.values()])
    count = plural(len(file), "tensor")
    if len(file) > SHOWN:
        count += f", {len(file) - SHOWN:,} more than are shown"
    rows.append(("total", "", total, count))
    text = "<tr><th>dtype<th>shape<th>bytes<th>name"
    for row in rows:
        text += "<tr>" + "".join([f"<td>{html_escape(fact)}" for fact in row])
    return f"{html_escape(repr(file), MAX_LINE)}<table>{text}</table>"


# -- [13a] places ------------------------------------------------------------------------
#
# Regions are kept for explain() and verify(), and when load() reads again after an error.
# spans() of a region yields (begin, end, trail, value, where that begins, doc) of each
# field. A walk finds the fields in what a codec reads: it asks the codec for each head
# and value.

# The docs of the last span of a region that is broken, and of what ends an array or a
# map.
BROKEN = "broken here"
BREAK = "break: the end of it"


class Region:
    """What was read at once from `at` on; `trail`: that leads to it.

    `kind`: a key of SPANS, or a function as there.
    """

    def __init__(self, at: int, kind: Any, trail: Trail, *args: Any) -> None:
        self.at = at
        self.kind = kind
        self.trail = trail
        self.args = args

    def spans(self) -> Spans:
        """Yield its spans; if it is broken, the last has no bytes."""
        try:
            spans = SPANS.get(self.kind, self.kind)
            yield from spans(self.at, self.trail, *self.args)
        except FormatError as error:
            at: Any = error.offset
            trail = self.trail if error.trail is None else error.trail
            yield at, at, trail, None, at, BROKEN


def record_rows(at: int, source: Buffer, record_type: RecordType) -> "Iterator[Any]":
    """Yield (row, (begin, end, values)) of each field of a record, as iter_values()."""
    rows = record_type.rows
    codes = [RecordType(row).parts[0] for row in rows]
    return zip(rows, record_type.iter_values(codes, source, at))


def record_spans(at: int, around: Trail, source: Buffer,
                 record_type: RecordType) -> Spans:
    """Yield the spans of fields by a RecordType."""
    for (name, code, doc), (begin, end, values) in record_rows(at, source, record_type):
        trail = around + (name,)
        if values is None:
            # The file ends in it.
            yield begin, begin, trail, None, begin, doc
            return
        value: Any = list(values)
        if len(values) == 1:
            value = values[0]
        if code == "text":
            text = decode_text(value)
            if text is not None:
                value = text
        yield begin, end, trail, value, begin, doc


class Level:
    """An array or a map that a walk is in. `depth`: that of its items.

    `count`: of its items, or -1 if a break ends them; `found`: of those so far. `keys`:
    those of an object of JSON so far.
    """

    def __init__(self, is_map: bool, count: int, schema: "Optional[Schema]", trail: Trail,
                 doc: str, depth: int) -> None:
        self.is_map = is_map
        self.count = count
        self.schema = schema
        self.trail = trail
        self.doc = doc
        self.depth = depth
        self.found = 0
        self.keys: "Set[str]" = set()

    def enter(self, key: Any) -> "Tuple[Optional[Schema], Trail, str]":
        """Return the Schema, the trail and the doc of the next item."""
        self.found += 1
        if self.schema is None:
            return None, self.trail + (key,), self.doc
        schema, doc = self.schema.about(key)
        return schema, self.trail + (key,), doc


class ItemWalk:
    """A walk through one item of CBOR or MessagePack; `trail`: of the field read now.

    A key and its value are one field, as is a list of scalars. Of other arrays and maps,
    and of bytes that stay in the file, the head is one. It does not call itself: a field
    costs the same at any depth.
    """

    # (at, depth) -> ("array", "map" or "", items or -1, where these begin, their depth)
    open_item: Any

    def __init__(self, codec: Codec, trail: Trail) -> None:
        self.codec = codec
        self.trail = trail
        # parse() has counted arrays, maps and keys, and raises for what is not
        # deterministic.
        codec.items_left = INFINITY
        codec.other_keys_left = INFINITY
        codec.strict = False

    def walk(self, schema: "Optional[Schema]") -> Spans:
        """Yield the fields of the item, which `schema` explains."""
        codec = self.codec
        trail = self.trail
        doc = "" if schema is None else schema.doc
        # The arrays and maps around the item, the innermost last.
        around: "List[Level]" = []
        at = begin = depth = 0
        while True:
            # 1 the item at `at`; its first field begins with its key
            self.trail = trail
            kind, count, inside, inner_depth = self.open_item(at, depth)
            plain = None
            if not kind:
                plain = codec.parse(at, depth)
            elif kind == "array" and schema is None:
                plain = self.plain_list(count, inside, inner_depth)
            if plain is None:
                yield begin, inside, trail, self.shown_count(kind, count), at, doc
                around.append(Level(kind == "map", count, schema, trail, doc,
                                    inner_depth))
                at = inside
            else:
                value, end = plain
                if type(value) is range:
                    yield begin, value.start, trail, len(value), at, doc
                else:
                    yield begin, end, trail, value, at, doc
                at = end
            # 2 the arrays and maps that are over
            while around and self.is_over(around[-1].found, around[-1].count, at):
                level = around.pop()
                if level.count < 0:
                    yield at, at + 1, level.trail, None, at, BREAK
                    at += 1
            if not around:
                return
            # 3 the next item of the innermost
            level = around[-1]
            begin = at
            depth = level.depth
            key: Any = level.found
            if level.is_map:
                self.trail = level.trail
                key, at = codec.parse(at, depth)
                if type(key) is not str:
                    codec.check_key((), key, begin)
            schema, trail, doc = level.enter(key)

    @staticmethod
    def shown_count(kind: str, count: int) -> Any:
        """Return what is shown of an array or a map: its count, or that it is empty."""
        if count < 0:
            return None
        if count:
            return count
        return [] if kind == "array" else Map()

    def is_over(self, found: int, count: int, at: int) -> bool:
        """Return whether so many items are all; -1: a break ends them."""
        if count < 0:
            return self.codec.data[at:at + 1] == b"\xff"
        return found == count

    def plain_list(self, count: int, at: int,
                   depth: int) -> "Optional[Tuple[List[Any], int]]":
        """Return (values, end) of an array, or None: it has arrays, maps or errors."""
        values: "List[Any]" = []
        try:
            while not self.is_over(len(values), count, at):
                if self.open_item(at, depth)[0]:
                    return None
                value, at = self.codec.parse(at, depth)
                values.append(value)
        except FormatError:
            # The walk into it finds its broken item.
            return None
        if count < 0:
            at += 1
        return values, at


class CborWalk(ItemWalk):
    """A walk through an item of CBOR; a tag belongs to the item that it is put before."""

    codec: Cbor

    def open_item(self, at: int, depth: int) -> "Tuple[str, int, int, int]":
        codec = self.codec
        major, count, inside = codec.head(at)
        while major == 6:
            codec.enter(at, depth)
            at = inside
            depth += 1
            major, count, inside = codec.head(at)
        if major == 4:
            codec.enter(at, depth, inside, count)
            return "array", count, inside, depth + 1
        if major == 5:
            codec.enter(at, depth, inside, 2 * count)
            return "map", count, inside, depth + 1
        return "", 0, inside, depth


class MessagePackWalk(ItemWalk):
    """A walk through a value of MessagePack."""

    codec: MessagePack

    def open_item(self, at: int, depth: int) -> "Tuple[str, int, int, int]":
        codec = self.codec
        codec.at = at
        kind, count = codec.head()
        if kind != "array" and kind != "map":
            return "", 0, codec.at, depth
        codec.enter(at, depth)
        return kind, count, codec.at, depth + 1


JSON_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
JSON_TOKEN = rb"[ \t\r\n]*(%s|[][{}:,]|[^][{}:,\" \t\r\n]+)" % JSON_TEXT
# A list without lists and maps in it.
JSON_PLAIN_LIST = rb'\[[^][{}"]*(?:%s[^][{}"]*)*\]' % JSON_TEXT
# What may stand between a value and the next token that opens something.
JSON_AFTER = rb"[ \t\r\n,:\]}]*"


class JsonWalk:
    """A walk through JSON, as ItemWalk.

    A field ends where a token begins that closes nothing.
    """

    def __init__(self, codec: Json, trail: Trail) -> None:
        import re
        self.codec = codec
        self.trail = trail
        self.data = codec.data
        self.match_token = re.compile(JSON_TOKEN).match
        self.match_plain_list = re.compile(JSON_PLAIN_LIST).match
        self.match_after = re.compile(JSON_AFTER).match

    def token(self, at: int) -> "Tuple[int, int]":
        """Return where the next token begins and ends."""
        found = self.match_token(self.data, at)
        if not found:
            raise self.codec.error("broken here", at)
        return found.span(1)

    def parse(self, data: bytes, at: int) -> Any:
        """Return the value of some bytes of the text."""
        value, _ = type(self.codec)(data, self.codec.base + at).parse()
        return value

    def field_end(self, end: int) -> int:
        """Return the end of a field whose value ends here."""
        found: Any = self.match_after(self.data, end)
        return min(found.end(), self.codec.end)

    def walk(self, schema: "Optional[Schema]") -> Spans:
        """Yield the fields of the text, which `schema` explains."""
        trail = self.trail
        doc = "" if schema is None else schema.doc
        # The arrays and objects around the value, the innermost last.
        around: "List[Level]" = []
        begin, end = self.token(0)
        at = begin
        while True:
            # 1 the value whose first token is at `at`; its field begins with its key
            if self.data[at:end] in (b"[", b"{") and len(around) >= self.codec.depth:
                raise self.codec.error(f"nested deeper than {self.codec.depth}", at)
            is_open, value, end = self.read_value(at, end, schema)
            yield begin, self.field_end(end), trail, value, at, doc
            if is_open:
                is_map = self.data[at:at + 1] == b"{"
                around.append(Level(is_map, -1, schema, trail, doc, len(around) + 1))
            # 2 the arrays and objects that are over
            while around and not is_open:
                start, end = self.token(end)
                if self.data[start:end] == b",":
                    break
                around.pop()
            if not around:
                return
            # 3 the next value of the innermost
            level = around[-1]
            begin, end = self.token(end)
            at = begin
            key: Any = level.found
            if level.is_map:
                key = self.parse(self.data[begin:end], begin)
                if type(key) is not str or key in level.keys:
                    raise self.codec.error(f"key {short_repr(key)} twice", begin)
                level.keys.add(key)
                _, end = self.token(end)
                at, end = self.token(end)
            schema, trail, doc = level.enter(key)

    def read_value(self, at: int, end: int,
                   schema: "Optional[Schema]") -> "Tuple[bool, Any, int]":
        """Return (is it open, value, end) of what begins with the token from `at` to
        `end`.

        An array or an object that is not one field is open behind its bracket.
        """
        mark = self.data[at:end]
        if mark not in (b"[", b"{"):
            return False, self.parse(mark, at), end
        if mark == b"[" and schema is None:
            plain = self.plain_list(at)
            if plain is not None:
                return (False,) + plain
        next_at, next_end = self.token(end)
        if self.data[next_at:next_end] not in (b"]", b"}"):
            return True, None, end
        empty: Any = [] if mark == b"[" else Map()
        return False, empty, next_end

    def plain_list(self, at: int) -> "Optional[Tuple[List[Any], int]]":
        """Return (values, end) of an array, or None: it has boxes or errors in it."""
        found = self.match_plain_list(self.data, at)
        if not found:
            return None
        try:
            return self.parse(found.group(), at), found.end()
        except FormatError:
            # The walk into it finds its broken item.
            return None


def tree_spans(at: int, trail: Trail, codec: Codec, schema: Schema) -> Spans:
    """Yield the spans of an item of CBOR, JSON or MessagePack, explained by a Schema."""
    walks: Any = {Cbor: CborWalk, MessagePack: MessagePackWalk, Json: JsonWalk,
                  PythonJson: JsonWalk}
    walk = walks[type(codec)](codec, trail)
    try:
        for begin, end, inner, value, value_at, doc in walk.walk(schema):
            yield at + begin, at + end, inner, value, at + value_at, doc
    except FormatError as error:
        error.trail = walk.trail
        raise
    if codec.read_end is not None and codec.data[codec.read_end:].strip(b" \t\r\n"):
        begin = at + codec.read_end
        end = at + len(codec.data)
        yield begin, end, trail + ("trailing",), None, begin, "bytes after the index"


class TableWalk:
    """A walk through tables of a FlatBuffer. `trail`: of the field that is read now.

    The value of an offset is where it leads. An absent field has no bytes.
    """

    def __init__(self, codec: Flat) -> None:
        self.codec = codec
        self.trail: Trail = ("root",)

    def walk_table(self, rows: Any, at: int, trail: Trail) -> Spans:
        """Yield the fields in and below the table at a place."""
        codec = self.codec
        self.trail = trail + ("table",)
        vtable = at - codec.number("<i", at)
        is_new = (vtable, id(rows)) not in codec.vtables
        slots = codec.plan_of(rows, at).slots
        if is_new:
            nbytes, size = unpack_from("<HH", codec.data, vtable)
            steps = list(unpack_from(f"<{nbytes // 2 - 2}H", codec.data, vtable + 4))
            doc = f"{nbytes} bytes, table {size}"
            yield vtable, vtable + nbytes, trail + ("vtable",), steps, vtable, doc
        yield at, at + 4, trail + ("table",), at - vtable, vtable, "vtable"
        offsets = []
        for (name, kind, _, doc), step in zip(rows, slots):
            inner = trail + (name,)
            if not step or kind is None:
                yield at, at, inner, None, at, doc
                continue
            place = at + step
            code = struct_code(kind)
            value = codec.number("<" + code, place)
            value_at = place
            if code != kind:
                value_at += value
                offsets.append((kind, place, value, inner, doc))
            yield place, place + WIDTH[code], inner, value, value_at, doc
        for kind, place, step, inner, doc in offsets:
            yield from self.walk_target(kind, place, step, inner, doc)

    def walk_target(self, kind: Any, at: int, step: int, trail: Trail, doc: str) -> Spans:
        """Yield the fields of what the offset `step` at a place leads to."""
        codec = self.codec
        self.trail = trail
        at = codec.follow(at, step)
        if kind == "string":
            text = codec.string(at)
            nbytes = 4 + codec.number("<I", at) + 1
            yield at, at + nbytes, trail, text, at, doc
            return
        if not isinstance(kind, list):
            yield from self.walk_table(kind, at, trail)
            return
        inner = kind[0]
        code = struct_code(inner)
        if code == inner:
            values = codec.numbers(code, at)
            nbytes = 4 + len(values) * WIDTH[code]
            yield at, at + nbytes, trail, values, at, doc
            return
        steps = codec.numbers("I", at)
        yield at, at + 4, trail, len(steps), at, "number of elements"
        for i, step in enumerate(steps):
            place = at + 4 + 4 * i
            yield place, place + 4, trail + (i,), step, place + step, "element"
            yield from self.walk_target(inner, place, step, trail + (i,), doc)


def table_spans(at: int, trail: Trail, codec: Flat) -> Spans:
    """Yield the spans of a FlatBuffer."""
    # Its own Flat: what an earlier pass read does not count, and all vtables are new.
    codec = Flat(codec.data, codec.rows, at)
    walk = TableWalk(codec)
    try:
        root = codec.root()
        yield at, at + 4, ("root",), root, at + root, "root table"
        for begin, end, inner, value, value_at, doc in walk.walk_table(codec.rows, root,
                                                                       ()):
            yield at + begin, at + end, inner, value, at + value_at, doc
    except FormatError as error:
        error.trail = walk.trail
        raise


def value_spans(at: int, around: Trail, source: Buffer, rows: Any) -> Spans:
    """Yield the spans of MessagePack values by rows (name, type, doc[, items, most])."""
    reader = MessagePack(source)
    reader.at = at
    trail = around
    try:
        for name, kind, doc, *items in rows:
            trail = around + (name,)
            begin = reader.at
            value = reader.take(kind)
            if kind == "bin":
                # Its head is the field, and says how many bytes follow.
                yield begin, value.start, trail, len(value), begin, doc
                continue
            yield begin, reader.at, trail, shown_value(value), begin, doc
            if not items:
                continue
            item_doc, most = items
            if value > most:
                # read_rows() refuses it.
                return
            for i in range(value):
                trail = around + (name, i)
                begin = reader.at
                item = reader.take(kind[1:])
                yield begin, reader.at, trail, shown_value(item), begin, item_doc
    except FormatError as error:
        error.trail = trail
        raise


def shown_value(value: Any) -> Any:
    """Return a value as it is shown: the bytes of a text as text."""
    if isinstance(value, bytes):
        return str_of_bytes(value)
    return value


SPANS: Facts = {"record": record_spans, "tree": tree_spans, "values": value_spans,
                "flatbuffer": table_spans}


class Recorder(Reading):
    """A Reading that keeps the regions, and says which field is cut short.

    `errors`: a list that takes errors of single tensors, and reading goes on; None: they
    raise.
    """

    def __init__(self, source: Buffer, errors: "Optional[List[FormatError]]" = None,
                 partial: bool = False) -> None:
        super().__init__(source, partial)
        self.errors = errors
        self.regions = []
        # The trail of an entry -> the name of its tensor.
        self.trails: "Dict[Trail, str]" = {}

    def note(self, at: int, kind: Any, *args: Any) -> None:
        super().note(at, kind)
        self.regions.append(Region(at, kind, *args))

    def note_names(self, pairs: "Iterable[Tuple[Trail, str]]") -> None:
        self.trails.update(pairs)

    def note_rest(self, at: int) -> None:
        super().note_rest(at)
        if self.errors is not None and at < self.end:
            what = f"{plural(self.end - at, 'byte')} after the last value"
            self.errors.append(self.error(what, offset=at))

    def keep_error(self, error: FormatError) -> bool:
        if self.errors is None or len(self.errors) >= MAX_ERRORS:
            return False
        self.errors.append(error)
        return True

    def add_tensor(self, tensor: Tensor, trail: Trail, low: int, high: int,
                   field_of: Facts) -> None:
        if trail:
            self.trails[trail] = tensor.name
        super().add_tensor(tensor, trail, low, high, field_of)

    def cut_record(self, at: int, record_type: RecordType, trail: Trail) -> FormatError:
        row, (begin, end, _) = list(record_rows(at, self.source, record_type))[-1]
        name = row[0]
        left = max(0, self.end - begin)
        what = f"{name} needs {end - begin} bytes, {left} left (cut short?)"
        return self.error(what, *trail, name, offset=min(begin, self.end))


def read_again(source: Buffer, fmt: Format, partial: bool,
               fault: FormatError) -> "Tuple[Reading, Facts, Facts]":
    """Read a broken file again, and keep its regions: the error gets its exact place."""
    reading = Recorder(source, partial=partial)
    try:
        attrs, metadata = fmt.read(reading)
    except FormatError as error:
        complete(reading, [error])
        raise
    return reading, attrs, metadata


def complete(reading: Reading, errors: "List[FormatError]") -> None:
    """Give each error what it lacks: an offset to its trail, or a trail to its offset."""
    for error in errors:
        if error.trail is None:
            # It is of a codec, which knows no trails.
            find_trail(reading, error)
    find_offsets(reading, [error for error in errors if error.offset is None])
    for error in errors:
        error.args = (error.what, error.offset, error.field, error.tensor, error.path,
                      error.check)


def find_trail(reading: Reading, error: FormatError) -> None:
    """Set the trail of an error of a codec: it lies in the region that was read last."""
    error.trail = ()
    # One without an offset says what this copy of the module lacks.
    if reading.regions and error.offset is not None:
        region = reading.regions[-1]
        if error.field == "":
            # JSON says so of a text that is broken.
            find_break(region, error, reading.at)
        else:
            error.trail = trail_at(region, error.offset)
    error.field = format_trail(error.trail) or reading.root
    error.path = reading.source.path


def find_break(region: Region, error: FormatError, text_at: int) -> None:
    """Set the place of an error of JSON; one at its begin is where the walk breaks."""
    error.trail = region.trail
    if error.offset == text_at:
        for begin, _, _, _, _, doc in region.spans():
            if doc == BROKEN:
                error.offset = begin


def trail_at(region: Region, offset: int) -> Trail:
    """Return the trail of the field at an offset, else where the walk breaks."""
    found: "Optional[Trail]" = None
    broken: Trail = region.trail
    for begin, end, trail, value, value_at, doc in region.spans():
        is_inside = type(value) is list and value_at < offset < end
        if is_inside or offset in (begin, value_at):
            found = trail
            # A field of a map begins at its key, which belongs to the map around it.
            if offset < value_at < end:
                found = trail[:-1]
        if doc == BROKEN:
            broken = trail
    return broken if found is None else found


def find_offsets(reading: Reading, errors: "List[FormatError]") -> None:
    """Set the offsets of errors: of their fields, else of the innermost around them."""
    if not errors:
        return
    # Those of the trails of errors, and of the trails around them.
    offsets: "Dict[Trail, Optional[int]]" = {}
    for error in errors:
        for n in range(len(error.trail) + 1):
            offsets[error.trail[:n]] = None
    for region in reading.regions:
        for begin, _, trail, _, _, doc in region.spans():
            # The break that ends an array or a map of CBOR has the trail of that.
            if trail in offsets and doc != BREAK:
                offsets[trail] = begin
    for error in errors:
        error.offset = 0
        for n in range(len(error.trail) + 1):
            offset = offsets[error.trail[:n]]
            if offset is not None:
                error.offset = offset


# -- [13b] explain -----------------------------------------------------------------------

FIELD_KINDS = {  # meaning, colour in a terminal
    "structure": ("says what is where", "94"),
    "data": ("the numbers", "32"),
    "padding": ("keeps what follows aligned", "90"),
    "unused": ("no field names it", "33"),
    "fault": ("what is wrong", "1;31"),
    "unreached": ("was not read", "33")}


class Field:
    """A named piece of a file: unpacks as (offset, nbytes, name, value, doc).

    Also `.kind` (of FIELD_KINDS), `.depth` of nesting, `.tensor` (its name, or None),
    `.lead` (bytes before the value: map key, tags), `.target` (where an offset leads, or
    None).
    """

    __slots__ = ("offset", "nbytes", "name", "value", "doc", "kind", "depth", "tensor",
                 "lead", "target")

    def __init__(self, offset: int, nbytes: int, name: str, value: Any, doc: str,
                 kind: str = "structure", depth: int = 0, tensor: "Optional[str]" = None,
                 lead: int = 0, target: "Optional[int]" = None) -> None:
        self.offset = offset
        self.nbytes = nbytes
        self.name = name
        self.value = value
        self.doc = doc
        self.kind = kind
        self.depth = depth
        self.tensor = tensor
        self.lead = lead
        self.target = target

    def __getitem__(self, index: "Union[int, slice]") -> Any:
        return (self.offset, self.nbytes, self.name, self.value, self.doc)[index]

    def __iter__(self) -> Blocks:
        return iter(self[:])

    def __len__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return (f"Field({self.offset}, {self.nbytes}, {safe_repr(self.name)}, "
                f"{short_repr(self.value)})")


def explain(source: Source, *, format: "Optional[str]" = None,
            mmap: bool = True) -> "Iterator[Field]":
    """Yield Fields (offset, nbytes, name, value, doc) for all bytes of a file, by offset.

    Only shared tensor data overlap. Of a broken file come the fields that were read, the
    offending one (of kind "fault") and what was not reached, then the FormatError. The
    file is open from the first field to the last; few are in memory at a time.

    >>> [f.name for f in explain(dumps({}, format="ztensor"))]
    ['magic', 'index', 'index_size']
    """
    opened = open_source(source, mmap)
    try:
        fields, _, error = read_fields(detect_format(opened, format), Recorder(opened))
        yield from fields
    finally:
        opened.close()
    if error is not None:
        raise error


def read_fields(fmt: Format, reading: Recorder) -> Any:
    """Read a file; return (an iterator of fields, File or None, error or None)."""
    from heapq import merge
    source = reading.source
    attrs: Any = None
    file: Any = None
    error: Any = None
    try:
        attrs, metadata = fmt.read(reading)
        file = fmt.make_file(reading, attrs, metadata)
    except FormatError as caught:
        error = caught
        complete(reading, [error])
        error.path = source.path
        error.__traceback__ = error.__context__ = None
    data: "List[Field]" = []
    if error is None or reading.missing:
        data = data_fields(reading)
    fields: "Iterator[Field]" = merge(structure_fields(reading, data), data,
                                      key=field_order)
    if error is not None:
        fields = mark_fault(fields, error, source.nbytes)
    return fill_gaps(fields, fmt, source, attrs), file, error


def field_order(field: Field) -> "Tuple[int, bool]":
    """Return the key that sorts fields: by offset, empty ones first."""
    return field.offset, field.nbytes > 0


def structure_fields(reading: Recorder, data: "List[Field]") -> "Iterator[Field]":
    """Yield the fields of all regions by offset, shared bytes once; `data`: tensors'."""
    at = 0
    names = TrailNames(reading.trails)
    # Of each tensor the offsets of its data, as keys.
    starts: "Dict[Optional[str], Dict[int, None]]" = {}
    for field in data:
        if field.nbytes:
            starts.setdefault(field.tensor, Map())[field.offset] = None
    for region in sorted(reading.regions, key=lambda region: region.at):
        for span in spans_in_order(region):
            begin, end, trail, value, value_at, doc = span
            if end < at or begin < end == at or doc == BROKEN:
                continue
            target = None
            lead = value_at - begin
            # Then it is where an offset leads.
            if not 0 <= lead < max(end - begin, 1):
                target = value_at
                lead = 0
            if begin < at:
                begin = at
                doc += " (its beginning is shared)"
            text, owner = names.find(trail)
            field = Field(begin, end - begin, text or reading.root, value, doc,
                          "structure", depth_of(region, trail), owner, lead, target)
            if target is None:
                field.target = target_of(field, starts.get(owner, {}))
            at = end
            yield field


def spans_in_order(region: Region) -> Spans:
    """Yield the spans of a region by offset, empty ones first."""
    spans = region.spans()
    # Its tables lie anywhere.
    if region.kind == "flatbuffer":
        return iter(sorted(spans, key=lambda span: (span[0], span[1] > span[0])))
    return spans


class TrailNames:
    """The texts of trails, and the tensors they belong to: found once for each field
    around others.

    `trails`: of entries -> names of their tensors.
    """

    def __init__(self, trails: "Dict[Trail, str]") -> None:
        self.trails = trails
        self.deepest = max(map(len, trails), default=0)
        self.trail: Trail = ()  # the last one
        # (text, name) of each beginning of it.
        self.found: "List[Tuple[str, Optional[str]]]" = [("", trails.get(()))]

    def find(self, trail: Trail) -> "Tuple[str, Optional[str]]":
        """Return the text of a trail, and the name of the tensor around, or None."""
        known = max(len(trail) - 1, 0)
        if trail[:known] != self.trail[:known]:
            known = 0
        del self.found[known + 1:]
        for i in range(known, len(trail)):
            text, name = self.found[i]
            if i < self.deepest:
                name = self.trails.get(trail[:i + 1], name)
            self.found.append((extend_trail(text, trail[i]), name))
        self.trail = trail
        return self.found[-1]


def depth_of(region: Region, trail: Trail) -> int:
    """Return how many fields of an index a field lies in."""
    # Trees have any depth, the others are flat.
    if region.kind == "tree":
        return len(trail) - len(region.trail)
    count = len([key for key in trail if isinstance(key, str)])
    if region.kind == "flatbuffer":
        return count + isinstance(trail[-1], int) - (trail[-1]
                                                     in ("root", "vtable", "table"))
    return count - 1


def target_of(field: Field, starts: "Dict[int, None]") -> "Optional[int]":
    """Return where an offset leads: to its tensor's data, or a part of the file."""
    last = field.name[field.name.rfind(".") + 1:]
    if "offset" not in last and last != "blob":
        return None
    value = field.value
    # It is [start, end) or [offset, length].
    if field.depth and isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, int):
        is_direct = not field.depth or value in starts
        if is_direct or starts and last == "blob":
            return value
    return next(iter(starts), None)


def data_fields(reading: Recorder) -> "List[Field]":
    """Return the fields of the bytes of tensors, by offset."""
    fields = []
    for tensor in reading.tensors.values():
        name = truncate(tensor.name, TRAIL_WIDTH)
        for start, nbytes, role in tensor.ranges():
            label = f"data {name}.{role}" if role else f"data {name}"
            value, doc = describe_data(tensor, role)
            fields.append(Field(start, nbytes, label, value, doc, "data", 0, tensor.name))
    for tensor, _ in reading.missing.values():
        if tensor.start <= reading.end:
            label = "data " + truncate(tensor.name, TRAIL_WIDTH)
            fields.append(Field(tensor.start, reading.end - tensor.start, label, None,
                                "it is not whole", "data", 0, tensor.name))
    return sorted(fields, key=field_order)


def describe_data(tensor: Tensor, role: str) -> "Tuple[str, str]":
    """Return value and doc of a tensor's bytes: its type, the first elements."""
    text = f"{dtype_words(tensor)} {short_repr(tensor.shape)}"
    if tensor.is_sparse:
        return role or "values", f"of sparse {text}"
    if role:
        return role, f"of {text}: {tensor.unreadable}"
    if tensor.unreadable:
        return text, tensor.unreadable
    if tensor.encoding != "raw":
        return text, f"{safe_str(tensor.encoding)}, {tensor.nbytes} bytes decoded"
    if tensor.itemsize is None:
        return text, "stored bytes"
    return text, first_elements(tensor, tensor.itemsize)


def first_elements(tensor: Tensor, itemsize: int) -> str:
    """Return how the elements of a tensor are stored, and the first three."""
    words = []
    if tensor._strides is not None:
        words.append("column-major:")
    if itemsize > 1 and tensor.byteorder == ">":
        words.append("big-endian:")
    head = tensor.source.view(tensor.start, min(tensor.stored_nbytes, 3 * itemsize))
    for value in unpack_values(str(tensor.dtype), head, tensor.byteorder):
        if isinstance(value, float):
            value = float("%.5g" % value)
        words.append(repr(value))
    if tensor.size > 3:
        words.append("...")
    return " ".join(words)


def mark_fault(fields: "Iterator[Field]", error: FormatError,
               nbytes: int) -> "Iterator[Field]":
    """Yield the fields of a broken file, the offending one in its place."""
    offset = nbytes if error.offset is None else error.offset
    room = min(16, max(nbytes - offset, 0))
    fault: "Optional[Field]" = Field(offset, room, error.field or "?", None, error.what,
                                     "fault")
    for field in fields:
        # A field ends where the fault begins, or the file.
        stop = offset if field.offset < offset else nbytes
        field.nbytes = min(field.nbytes, stop - field.offset)
        if fault and field.offset > offset:
            fault.nbytes = min(fault.nbytes, field.offset - offset)
            yield fault
            fault = None
        elif fault and field.offset == offset:
            if field.name != fault.name:
                continue
            field.kind = "fault"
            field.doc = error.what
            fault = None
        yield field
    if fault:
        yield fault


def fill_gaps(fields: "Iterator[Field]", fmt: Format, source: "Buffer",
              attrs: "Optional[Facts]") -> "Iterator[Field]":
    """Yield fields that are not empty, and the gaps; `attrs`: None of a broken file."""
    from itertools import chain
    at = 0
    before = Field(0, 0, "", None, "")
    for field in chain(fields, [Field(source.nbytes, 0, "", None, "", "end")]):
        while at < field.offset:
            if attrs is None:
                nbytes = field.offset - at
                gap = Field(at, nbytes, "not reached", None, "was not read", "unreached")
            else:
                gap = name_gap(at, before, field, fmt, source, attrs)
            at += gap.nbytes
            yield gap
        if field.nbytes or field.kind == "fault":
            yield field
        end = field.offset + field.nbytes
        if end >= at:
            at = end
            before = field


def is_odd_padding(source: "Buffer", at: int, nbytes: int, byte: int) -> bool:
    """Return whether some of the bytes from `at` on are not this byte."""
    for block in iter_parts(iter_range(source, at, nbytes), BLOCK):
        if bytes(block).strip(bytes([byte])):
            return True
    return False


def iter_range(source: Buffer, at: int, nbytes: int) -> Blocks:
    """Return blocks of so many bytes of a source, from `at` on."""
    return Tensor("", "uint8", (nbytes,), source, at, nbytes).iter_stored()


def name_gap(at: int, before: Field, after: Field, fmt: Format, source: "Buffer",
             attrs: Facts) -> Field:
    """Return the padding between two fields, from `at` on, or what is unused."""
    nbytes, byte = fmt.padding(at, after.offset, before.kind, after.kind, attrs)
    is_odd = is_odd_padding(source, at, nbytes, byte)
    # It is more than aligns what follows.
    if is_odd and nbytes >= fmt.ALIGN > 1:
        nbytes = -at % fmt.ALIGN
        is_odd = is_odd_padding(source, at, nbytes, byte)
    if not nbytes:
        nbytes = after.offset - at
        # It raises if a stream ends before.
        source.view(after.offset - 1, 1)
        doc = plural(nbytes, "byte") + " that no field names"
        return Field(at, nbytes, "unused", None, doc, "unused")
    value = f"not all {byte:02x}" if is_odd else None
    if before.kind == after.kind == "structure":
        depth = max(before.depth, after.depth)
        return Field(at, nbytes, "padding", value, "alignment", "padding", depth)
    doc = "spaces" if byte == 32 else f"to a multiple of {fmt.ALIGN}"
    return Field(at, nbytes, "padding", value, doc, "padding")


# -- [13c] verify ------------------------------------------------------------------------


class Report(Result):
    """What verify() found: true when nothing failed.

    `.rows`: (status, check, tensor, text, offset), status "ok", "FAIL", "note" (legal but
    odd) or "-" (not possible). `.errors`: the FormatErrors of the FAILs. `.not_checked`:
    how many "checksums" and "contents" are not checked, `.limits`: an Unsupported for
    each limit that left some out. `.format`, `.version`, `.path`. `.ok`: as bool().
    """

    def __init__(self, path: "Optional[str]", fmt: "Optional[Format]") -> None:
        self.path = path
        self.format: "Optional[str]" = None
        self.title = ""
        self.version: Any = None
        if fmt is not None:
            self.format = fmt.FAMILY
            self.title = fmt.TITLE
        self.rows: "List[Tuple[str, str, Optional[str], str, Optional[int]]]" = []
        self.errors: "List[FormatError]" = []
        self.limits: "List[FormatError]" = []
        # What would look at what a limit left out.
        self.remedies: "Dict[str, None]" = Map()
        self.not_checked: "Dict[str, int]" = {"checksums": 0, "contents": 0}

    def __iter__(self) -> "Iterator[Tuple[Any, ...]]":
        return iter(self.rows)

    @property
    def ok(self) -> bool:
        return not self.errors

    def __bool__(self) -> bool:
        return not self.errors

    def facts(self) -> Facts:
        keys = "status", "check", "tensor", "text", "offset"
        rows = [dict(zip(keys, row)) for row in self.rows]
        return dict(file=self.path, format=self.format, version=self.version,
                    valid=bool(self), not_checked=self.not_checked, rows=rows)

    def add(self, status: str, check: str, text: str, tensor: "Optional[str]" = None,
            offset: "Optional[int]" = None) -> None:
        self.rows.append((status, check, tensor, text, offset))

    def fail(self, error: FormatError) -> None:
        # Its frames would keep decoded blocks.
        error.__traceback__ = error.__context__ = None
        self.errors.append(error)
        self.add("FAIL", error.check, error.what, error.tensor, error.offset)

    def leave_out(self, check: str, why: str, items: "List[Tensor]",
                  remedy: str = "") -> None:
        """Add what is not checked of these tensors; `remedy`: what would look at it."""
        text = "not checked"
        if len(items) > 1:
            text += f", as {plural(len(items) - 1, 'other tensor')}"
        text = f"{text}: {why}"
        self.add("-", check, text, items[0].name, items[0].offset)
        self.not_checked[check] += len(items)
        if remedy:
            self.remedies[remedy] = None
            self.limits.append(items[0].error(text, Unsupported, check=check))

    def raise_first(self) -> None:
        """Raise the first error, or that a limit left something out."""
        found = self.errors + self.limits
        if found:
            raise found[0]

    def last_line(self) -> str:
        """Return the verdict: what is wrong, or what is not checked."""
        text = f"valid {self.title}"
        if self.errors:
            text = f"INVALID {self.title}".rstrip()
            text += f": {plural(len(self.errors), 'problem')}"
            offsets = [error.offset for error in self.errors if error.offset is not None]
            if offsets:
                text += f", the first at 0x{min(offsets):x}"
        for noun, check in ("tensor", "contents"), ("checksum", "checksums"):
            count = self.not_checked[check]
            if count:
                text += f", {plural(count, noun)} not checked"
        if self.remedies:
            text += ": take " + " and ".join(self.remedies)
        return text

    def __repr__(self) -> str:
        lines = []
        for status, check, name, text, offset in self.rows:
            line = f"{status:5} {check:12} "
            if name is not None:
                line += f"tensor {safe_repr(name)}: "
            line += truncate(text, MAX_LINE // 2)
            if offset is not None and status != "ok":
                line += f" (at 0x{offset:x})"
            lines.append(line)
        lines.append(f"{safe_str(self.path or 'the data')}: {self.last_line()}")
        return "\n".join(lines)


def verify(source: Source, *, format: "Optional[str]" = None, mmap: bool = True,
           deep: bool = False, watch: Watch = None) -> Report:
    """Check structure, bounds, sizes, padding and every stored checksum; return a Report.

    Broken files have one too; OSError passes. `mmap`: as in load(). `deep`: XXH3 (zTensor
    2) of more than MAX_SLOW_HASH bytes in all also without the module xxhash.
    `watch`(verb, done, total) is called now and then: "checking", bytes done, bytes in
    all.

    >>> bool(verify(dumps({"w": [1.0]}, format="ztensor")))
    True
    """
    opened = open_source(source, mmap)
    try:
        return check_file(opened, detect_format(opened, format), deep, watch)
    except FormatError as error:
        return check_unreadable(opened, error, watch)
    finally:
        opened.close()


def check_unreadable(source: "Buffer", error: FormatError, watch: Watch,
                     fmt: "Optional[Format]" = None) -> Report:
    """Return what verify() finds in a source that cannot be read, besides the error."""
    report = Report(source.path, fmt)
    report.fail(error)
    check_beginning(report, source, watch)
    check_blob_name(report, source, watch)
    return report


def check_file(source: "Buffer", fmt: Format, deep: bool, watch: Watch = None) -> Report:
    """Return what verify() finds in a source."""
    report = Report(source.path, fmt)
    errors: "List[FormatError]" = []
    reading = Recorder(source, errors)
    fields, file, fault = read_fields(fmt, reading)
    complete(reading, errors)
    gaps = list_gaps(fields)
    tensors = reading.tensors if file is None else file
    add_structure(report, errors, fault, tensors)
    check_beginning(report, source, watch)
    check_blob_name(report, source, watch)
    if file is None:
        return report
    report.version = file.attrs.get("version")
    if file.shards is not None:
        check_shards(report, file, deep, watch)
        return report
    # A tensor that was left out leaves its bytes without a name.
    if not report.errors:
        note_gaps(report, gaps)
    note_places(report, file)
    data = DataCheck(report, file, deep, watch)
    data.run()
    for rows in fmt.notes(file):
        add_notes(report, "library", rows)
    add_other_checksums(report, list(fmt.other_checksums(file.attrs)))
    if not report.errors:
        check_canonical(report, file, data.digests, watch)
    return report


def list_gaps(fields: "Iterator[Field]") -> "List[Field]":
    """Return bytes without a name, and odd padding, which alone has a value."""
    gaps = []
    for field in fields:
        is_odd = field.kind == "padding" and field.value is not None
        if is_odd or field.kind == "unused":
            gaps.append(field)
    return gaps


def add_other_checksums(report: Report, others: "List[str]") -> None:
    """Add that the checksums of other files are not looked at."""
    if not others:
        return
    text = f"not looked at: that of {others[0]}, a file of its own"
    if others[1:]:
        text += f", and {plural(len(others) - 1, 'other')}"
    report.add("-", "checksums", text)
    report.not_checked["checksums"] += len(others)


def add_structure(report: Report, errors: "List[FormatError]",
                  fault: "Optional[FormatError]", tensors: Any) -> None:
    """Add the errors of each check, or what is right; what `fault` left: not reached."""
    count = plural(len(tensors), "tensor")
    # What is said of a check that finds nothing; of "checksum", which few have, nothing.
    texts = {
        "magic": report.title,
        "checksum": "",
        "index": f"{count}, names unique, required fields present",
        "sizes": "stored bytes = dtype x shape",
        "bounds": f"{count} inside the file"}
    if getattr(tensors, "shards", None) is not None:
        texts = {"index": texts["index"]}
    if fault is not None:
        errors = errors + [fault]
    reached = True
    for check, text in texts.items():
        found = [error for error in errors if error.check == check]
        for error in found:
            error.path = report.path
            report.fail(error)
        if text and not found:
            if reached:
                report.add("ok", check, text)
            else:
                report.add("-", check, "not reached")
        if fault in found:
            reached = False


# verify() looks at so many places where a file may begin again.
MAX_BEGINNINGS = 64
# It reads so many of them as files.
MAX_TRIES = 8
# So many bytes tell where a file may begin.
MARK = 16


class Rest(Buffer):
    """What a source has from an offset on, as a source of its own."""

    has_offsets = True

    def __init__(self, source: "Buffer", start: int) -> None:
        self.path = source.path
        self.file_id = None
        self.mapping = source.mapping
        self.source = source
        self.start = start
        self.nbytes = source.nbytes - start

    def view(self, offset: int, nbytes: int) -> Any:
        return self.source.view(self.start + offset, nbytes)


def check_beginning(report: Report, source: "Buffer", watch: Watch) -> None:
    """Add an error where beginnings of a file lie before the whole of it.

    A download leaves them that was to go on where it stopped, but began again.
    """
    places = find_beginnings(source, watch)
    tries = 0
    while len(places) > 1 and tries < MAX_TRIES:
        # The last one first: with an index at its end, a file may seem whole from an
        # earlier one on, too.
        at = places.pop()
        if not is_begun_again(source, places, at):
            continue
        tries += 1
        if is_whole(Rest(source, at)):
            what = (f"the beginning of the file stands again at 0x{at:x}, and from there "
                    "on it is whole: did its download begin again? What lies before is "
                    "too much")
            report.fail(FormatError(what, at, None, None, report.path, "beginning"))
            return


def find_beginnings(source: "Buffer", watch: Watch) -> "List[int]":
    """Return 0, and where a source begins again: MAX_BEGINNINGS places at most."""
    head = source.read(0, 3 * MARK)
    # Where the file may begin again among its first bytes: a download that stopped after
    # a few of them leaves less than MARK to look for, so those that follow are, too.
    near = [0]
    for at in range(1, 2 * MARK):
        for start in near:
            nbytes = min(at - start, 4)
            if head[at:at + nbytes] == head[start:start + nbytes]:
                near.append(at)
                break
    near = near[:8]
    places = set(near)
    meter = Meter(watch, "checking", len(near) * source.nbytes)
    for start in near:
        for at in iter_places(source, head[start:start + MARK], start + 1, meter):
            places.add(at)
            if len(places) >= MAX_BEGINNINGS:
                break
    return sorted(places)


def iter_places(source: Buffer, wanted: bytes, at: int, meter: Meter) -> "Iterator[int]":
    """Yield the offsets, from `at` on, where a source has these bytes."""
    for start in range(at, source.nbytes, BLOCK):
        block = bytes(source.view(start, BLOCK + len(wanted) - 1))
        found = block.find(wanted)
        while found >= 0:
            yield start + found
            found = block.find(wanted, found + 1)
        meter.add(min(BLOCK, source.nbytes - start))


def is_begun_again(source: "Buffer", places: "List[int]", at: int) -> bool:
    """Return whether all before `at` are beginnings of what begins there."""
    # The last one may have stopped before the bytes that make it a place.
    short = range(max(1, at - MARK), at)
    # From `at` back to 0: each piece is to be the beginning of what stands at `at`.
    end = at
    for start in sorted(places + list(short), reverse=True):
        nbytes = end - start
        blocks = iter_range(source, start, nbytes)
        if are_same_blocks(blocks, iter_range(source, at, nbytes)):
            end = start
    return end == 0


def is_whole(source: "Buffer") -> bool:
    """Return whether a source is a file without errors, which reaches to its end."""
    errors: "List[FormatError]" = []
    try:
        fields, _, fault = read_fields(detect_format(source), Recorder(source, errors))
        last = None
        for field in fields:
            last = field
    except FormatError:
        return False
    return fault is None and not errors and last is not None and last.kind != "unused"


def blob_names(path: str) -> "Iterator[Tuple[str, str]]":
    """Yield (name, folder) of a file, and of links on the way, whose name is 64 hex
    digits.

    `folder`: the word for which the name is taken for the SHA-256 of the file, or "".
    """
    # Systems follow so many links at most.
    for _ in range(40):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if len(name) == 64 and not name.lower().strip("0123456789abcdef"):
            parts = folder.split(os.sep)
            word = ""
            if parts[-1] == "blobs":
                word = "blobs"
            elif "objects" in parts:
                word = "objects"
            yield name.lower(), word
        if not os.path.islink(path):
            return
        path = os.path.join(folder, os.readlink(path))


def check_blob_name(report: Report, source: Buffer, watch: Watch) -> None:
    """Compare the SHA-256 of a file with its name, if it is called so.

    So does the cache of Hugging Face call the targets of its links, and Git LFS its
    objects.
    """
    # The path of a stream of gzip is not that of its bytes.
    if source.file_id is None:
        return
    # Of one name that is there twice, the folder that has a word counts: "" sorts first.
    names = dict(sorted(blob_names(source.file_id[0])))
    if not names:
        return
    meter = Meter(watch, "checking", source.nbytes)
    blocks = meter.over(iter_range(source, 0, source.nbytes))
    try:
        found = hash_blocks("sha256", blocks).partition(":")[2]
    except Unsupported as error:
        report.add("-", "name", f"not checked: {error.what}")
        report.not_checked["checksums"] += 1
        return
    for name, word in names.items():
        if name == found:
            report.add("ok", "name", "it is the SHA-256 of the file")
        elif word:
            what = "the name is taken for the SHA-256 of the file, for it lies in a "
            what += f"folder {word!r}; the bytes give {found}"
            report.fail(FormatError(what, None, None, None, report.path, "name"))
        else:
            report.add("note", "name",
                       f"64 hex digits, but not its SHA-256, which is {found}")


def note_gaps(report: Report, gaps: "List[Field]") -> None:
    """Note odd padding and bytes without a name."""
    for kind in "padding", "unused":
        found = [field for field in gaps if field.kind == kind]
        if not found:
            continue
        count = plural(len(found), "range")
        text = f"{count} of padding {found[0].value}"
        if kind == "unused":
            nbytes = sum([field.nbytes for field in found])
            text = f"{plural(nbytes, 'byte')} in {count} that no field names"
        report.add("note", "padding", text, None, found[0].offset)


def add_notes(report: Report, check: str,
              rows: "Sequence[Tuple[Optional[Tensor], str]]") -> None:
    """Add notes of one kind, (tensor or None, what): five, and how many more."""
    for tensor, what in rows[:5]:
        if tensor is None:
            report.add("note", check, what)
        else:
            report.add("note", check, what, tensor.name, tensor.offset)
    if rows[5:]:
        report.add("note", check, f"{len(rows) - 5} more")


def note_places(report: Report, file: File) -> None:
    """Note tensors that are not aligned, or whose bytes overlap in part."""
    align = file.fmt.ALIGN
    if file.attrs.get("layout") == "packed":
        align = 1
    stored = [tensor for tensor in file.values() if tensor.stored_nbytes]
    what = f"its data are not at a multiple of {align}"
    unaligned = [(tensor, what) for tensor in stored if tensor.start % align]
    overlaps = []
    # The tensor that reaches furthest, and its end.
    owner: Any = None
    end = 0
    for tensor in sorted(stored, key=lambda tensor: (tensor.start, tensor.stored_nbytes)):
        stop = tensor.start + tensor.stored_nbytes
        # The same bytes are those of tied weights.
        if tensor.start < end and (tensor.start, stop) != (owner.start, end):
            what = f"its bytes overlap those of {safe_repr(owner.name)} in part"
            overlaps.append((tensor, what))
        if stop > end:
            owner = tensor
            end = stop
    add_notes(report, "alignment", unaligned)
    add_notes(report, "bounds", overlaps)
    if align > 1 and len(file) and not unaligned:
        report.add("ok", "alignment", f"all data at multiples of {align}")


def check_shards(report: Report, file: ShardedFile, deep: bool, watch: Watch) -> None:
    """Check each shard of a model, and that the index agrees."""
    if file.source.file_id is None:
        report.add("-", "shards",
                   "not looked for: they lie beside the index, which has no path")
        return
    total = 0
    # What was not looked at -> the shards.
    left: "Dict[Any, List[str]]" = Map()
    for shard in file.attrs["shards"]:
        before = len(report.errors)
        try:
            total += check_shard(report, file, shard, left, deep, watch)
        except FormatError as error:
            fail_shard(report, f"{safe_repr(shard)}: {error.what}", error.tensor)
        if len(report.errors) == before:
            what = f"{safe_repr(shard)}: {plural(len(file.names[shard]), 'tensor')}"
            report.add("ok", "shards", what)
    for (check, text, name), shards in left.items():
        who = safe_repr(shards[0])
        if shards[1:]:
            who += f" and {plural(len(shards) - 1, 'other')}"
        report.add("-", check, f"{who}: {text}", name)
    check_neighbours(report, file)
    # A shard that is not there or broken is missing from the total.
    broken = [error for error in report.errors if error.tensor is None]
    stated = file.attrs["index"].get("total_size")
    if stated is not None and not broken:
        what = f"total_size is {short_repr(stated)}, the tensors have {plural(total, 'byte')}"
        status = "ok" if stated == total else "note"
        report.add(status, "shards", what)


def check_neighbours(report: Report, file: ShardedFile) -> None:
    """Add what lies beside an index without being in it: shards of it, other files."""
    unlisted = file.unlisted()
    for name in unlisted:
        fail_shard(report, unlisted_message(name), None)
    known = list(file.names) + unlisted
    notes = []
    for name in sorted(os.listdir(os.path.dirname(file.source.file_id[0]))):
        if name.endswith(file.fmt.SUFFIXES) and name[0] != "." and name not in known:
            what = f"{safe_repr(name)} lies beside it, but weight_map lacks it"
            notes.append((None, what))
    add_notes(report, "shards", notes)


def check_shard(report: Report, file: ShardedFile, shard: str,
                left: "Dict[Any, List[str]]", deep: bool, watch: Watch) -> int:
    """Check a shard, add what was found, and return the bytes of its tensors.

    `left`: what was not looked at -> the shards.
    """
    total = 0
    source = file.open_source(shard)
    try:
        found = file.read_shard(source)
        for name, what in file.misplaced(shard, found):
            fail_shard(report, what, name)
        total = sum([tensor.stored_nbytes for tensor in found.values()])
        add_shard(report, shard, left, check_file(source, found.fmt, deep, watch))
    except FormatError as error:
        add_shard(report, shard, left, check_unreadable(source, error, watch, file.fmt))
    finally:
        source.close()
    return total


def fail_shard(report: Report, what: str, name: "Optional[str]") -> None:
    """Add an error of a shard, one of MAX_ERRORS at most."""
    if len(report.errors) < MAX_ERRORS:
        report.fail(FormatError(what, None, "shards", name, report.path, "shards"))


def add_shard(report: Report, shard: str, left: "Dict[Any, List[str]]",
              found: Report) -> None:
    """Add what was found in a shard: what is wrong, odd or not looked at."""
    for status, check, name, text, _ in found.rows:
        if status == "-":
            left.setdefault((check, text, name), []).append(shard)
            continue
        text = f"{safe_repr(shard)}: {text}"
        if status == "FAIL":
            fail_shard(report, text, name)
        elif status == "note":
            report.add(status, check, text, name)
    report.limits += found.limits
    report.remedies.update(found.remedies)
    for check, count in found.not_checked.items():
        report.not_checked[check] += count


class Check:
    """A check of a checksum or of values that the tensors `items` have in common.

    `digest` is the checksum, which may be an empty text, or None: the values of `part`
    are checked. `label` says which part of a tensor it is.
    """

    def __init__(self, part: Tensor, work: int, digest: "Optional[str]" = None,
                 label: str = "") -> None:
        self.part = part
        self.digest = digest
        self.label = label
        # So many bytes are read and decoded, and so many are hashed.
        self.work = work
        self.nbytes: int = part.decoded_nbytes or part.stored_nbytes
        self.items: "List[Tensor]" = []
        self.kind = "contents" if digest is None else "checksums"

    def is_slow(self) -> bool:
        """Return whether the checksum takes half a minute for a GB."""
        if self.digest is None or self.digest[:3] != "xxh":
            return False
        return not fast_xxh3()


def list_checks(file: File) -> "List[Check]":
    """Return what is to be checked of the tensors, what they have in common once."""
    # By all that makes two checks the same one.
    checks: "Dict[Any, Check]" = Map()
    # Places in the file: those seen, those whose decoded bytes are hashed.
    seen: "Set[Any]" = set()
    hashed: "Set[Any]" = set()
    for tensor in file.values():
        for label, part, digest in iter_checksums(file.fmt, tensor, seen):
            work = part.stored_nbytes
            # The type does not count; the encoding does if decoded bytes are hashed.
            key = place_of(part)[:3] + (label, digest)
            if file.fmt.HASHES_DECODED:
                work = work_of_part(part)
                key = place_of(part)[:5] + (label, digest)
                if digest.partition(":")[0] in file.fmt.DIGESTS:
                    hashed.add(place_of(part))
            checks.setdefault(key, Check(part, work, digest, label)).items.append(tensor)
        for key, part in encoded_parts(tensor).items():
            if key not in hashed:
                check = Check(part, work_of_part(part))
                checks.setdefault(key, check).items.append(tensor)
        key = place_of(tensor) + (tensor.unreadable, tensor.size)
        work = 0
        if tensor.is_sparse:
            # Its shape says what its indices may be.
            key = (tensor.name,)
            work = work_besides(tensor)
        elif file.fmt.has_odd_bytes(tensor):
            work = work_of_part(tensor)
        elif is_checkable(tensor):
            # Only whether it can be decoded is to be checked; its hash tells that, too.
            if place_of(tensor) in hashed:
                continue
            work = work_of_part(tensor)
        checks.setdefault(key, Check(tensor, work)).items.append(tensor)
    return list(checks.values())


def encoded_parts(tensor: Tensor) -> "Dict[Any, Tensor]":
    """Return what can be decoded of the parts of an unknown layout, by place."""
    found: "Dict[Any, Tensor]" = {}
    if tensor.is_sparse:
        return found
    for part in tensor.stored_parts().values():
        if part is not tensor and is_checkable(part):
            found[place_of(part)] = part
    return found


def is_checkable(tensor: Tensor) -> bool:
    """Return whether it is encoded, and can be decoded to a number of bytes that is known."""
    return tensor.is_decodable() and tensor.decoded_nbytes is not None


# What looks at what the limits leave out.
DEEP = "deep=True (--deep) or the module xxhash"
MORE_COPIES = "a larger MAX_COPIES (--max-copies)"


class DataCheck:
    """The checks of checksums and values of all tensors; what takes too much work is left
    out.

    `digests`: the checksums that agree, by name of the tensor.
    """

    def __init__(self, report: Report, file: File, deep: bool, watch: Watch) -> None:
        self.report = report
        self.fmt = file.fmt
        self.checks = list_checks(file)
        # (kind, why not, remedy) -> the tensors that are left out.
        self.left: "Dict[Any, List[Tensor]]" = Map()
        self.planned = self.choose(deep, file.source)
        sizes = [check.nbytes for check in self.planned if check.kind == "checksums"]
        self.meter = Meter(watch, "checking", sum(sizes))
        self.digests: "Dict[str, str]" = {}
        self.decoded: "Set[Any]" = set()
        self.agreed = 0
        for tensor in file.values():
            if tensor.unreadable:
                self.left.setdefault(("contents", tensor.unreadable, ""), []).append(tensor)

    def choose(self, deep: bool, source: Buffer) -> "List[Check]":
        """Return the checks that the limits allow; leave out the others."""
        # The largest tensor, of up to MAX_DENSE bytes, is free, as in check_work().
        works = [check.work for check in self.checks if check.part.encoding != "sparse"]
        free = max([work for work in works if work <= MAX_DENSE], default=0)
        work_left = most_work(source, free)
        slow_left = MAX_SLOW_HASH
        more = more_copies(source, sum([check.work for check in self.checks]) - free)
        heavy = f"over MAX_COPIES = {MAX_COPIES} times the file and 1 MiB: take {more}"
        slow = f"over MAX_SLOW_HASH = {MAX_SLOW_HASH} bytes in all: take {DEEP}"
        planned = []
        for check in self.checks:
            if check.work > work_left:
                self.leave_out(check, heavy, MORE_COPIES)
            elif check.is_slow() and not deep and check.nbytes > slow_left:
                self.leave_out(check, slow, DEEP)
            else:
                planned.append(check)
                work_left -= check.work
                if check.is_slow():
                    slow_left -= check.nbytes
        return planned

    def leave_out(self, check: Check, why: str, remedy: str = "") -> None:
        self.left.setdefault((check.kind, why, remedy), []).extend(check.items)

    def fail(self, check: Check, what: str, offset: "Optional[int]", kind: str) -> None:
        report = self.report
        for tensor in check.items:
            if len(report.errors) < MAX_ERRORS:
                report.fail(FormatError(what, offset, "data", tensor.name, report.path, kind))

    def run(self) -> None:
        """Do the checks that are planned, and add to the report what they find."""
        for check in self.planned:
            try:
                if check.digest is not None:
                    self.compare(check, check.digest)
                else:
                    self.check_values(check.part)
            except Unsupported as error:
                self.leave_out(check, error.what)
            except FormatError as error:
                self.fail(check, error.what, error.offset, "contents")
        self.add_results()

    def add_results(self) -> None:
        """Add to the report what is left out, and what is right."""
        for (kind, why, remedy), items in self.left.items():
            self.report.leave_out(kind, why, items, remedy)
        count = sum([len(check.items) for check in self.checks
                     if check.kind == "checksums"])
        status = "-"
        text = "no tensor has one"
        if count:
            text = f"{self.agreed} of {count} agree"
            if self.agreed:
                status = "ok"
        self.report.add(status, "checksums", text)
        if self.decoded:
            text = f"{plural(len(self.decoded), 'zstd blob')} decoded in full"
            self.report.add("ok", "contents", text)

    def compare(self, check: Check, digest: str) -> None:
        """Compare a checksum with that of the bytes."""
        part = check.part
        blocks = self.meter.over(self.fmt.hashed_blocks(part))
        status, text = compare_digest(blocks, digest, self.fmt.DIGESTS)
        if status == "-":
            self.leave_out(check, check.label + text)
            return
        if status == "FAIL":
            self.fail(check, check.label + text, part.offset, check.kind)
            return
        # It agrees: `text` is the digest, as save() writes it.
        self.agreed += len(check.items)
        for tensor in check.items:
            if not check.label and tensor.encoding != "sparse":
                self.digests[tensor.name] = text
        if self.fmt.HASHES_DECODED and part.encoding != "raw":
            self.decoded.add(place_of(part))

    def check_values(self, tensor: Tensor) -> None:
        """Raise what is wrong with the values; note what was decoded."""
        parts = [tensor]
        if tensor.is_sparse:
            parts = list(tensor.components.values())
        for part in parts:
            if is_checkable(part) and place_of(part) not in self.decoded:
                # What cannot be decoded raises.
                for _ in self.meter.over(part.iter_decoded()):
                    pass
                self.decoded.add(place_of(part))
        wrong = self.fmt.odd_byte(tensor)
        if wrong:
            at, why = wrong
            error = tensor.error(f"byte {at} of the data: {why}", check="contents")
            # The place of a decoded byte is not one in the file.
            if tensor.encoding == "raw":
                error.offset += at
            raise error


def known_digests(fmt: Format, digests: "Dict[str, str]") -> Facts:
    """Return the options of write() by which it takes digests instead of making them."""
    def digest_of(name: str, tensor: Tensor) -> "Optional[str]":
        text = digests.get(name, "")
        # What has no XXH3 that agrees is not in the canonical form of zTensor 2.
        if fmt.HASHES_DECODED and not text.startswith("xxh3:"):
            return ""
        return text or None

    return {"digest_of": digest_of} if fmt.DIGESTS else {}


def is_made_of_encoded(tensor: Tensor) -> bool:
    """Return whether save() would make its bytes of encoded ones, but for plain zstd."""
    if tensor.encoding in ("raw", "zstd"):
        return False
    if tensor.unreadable and not is_checkable(tensor):
        return False
    for part in tensor.stored_parts().values():
        if part.encoding != "raw":
            return True
    return False


def check_canonical(report: Report, file: File, digests: "Dict[str, str]",
                    watch: Watch) -> None:
    """Add whether save() makes the same bytes of a file, in the order of its data.

    Nothing is hashed nor decoded for it: `digests` are those that verify() has compared.
    """
    if report.limits:
        report.add("-", "canonical", "not looked at, as some of the checks before")
        return
    for tensor in file.values():
        if is_made_of_encoded(tensor):
            what = "not looked at: it would have to be decoded again"
            report.add("-", "canonical", what, tensor.name)
            return
    known = known_digests(file.fmt, digests)
    at = 0
    source = file.source
    meter = Meter(watch, "comparing", source.nbytes)
    try:
        fmt, items, metadata, attrs = prepare(file.fmt, file, None, None, {})
        blocks = without_gc(fmt.write)(items, metadata, attrs, {}, **known)
        for block in meter.over(iter_parts(blocks, BLOCK)):
            stored = source.view(at, len(block))
            if stored != memoryview(block):
                at += len(os.path.commonprefix([bytes(stored), bytes(block)]))
                what = "saved again, it differs from here on"
                report.add("note", "canonical", what, None, at)
                return
            at += len(block)
    except Unsupported as error:
        report.add("-", "canonical", f"it cannot be saved again: {error.what}")
        return
    except FormatError as error:
        report.fail(error)
        return
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: recursion
        what = str(error).split("\n")[0]
        report.add("-", "canonical", f"it cannot be saved again: {what}")
        return
    if at < source.nbytes:
        report.add("note", "canonical", "saved again, it ends here", None, at)
    else:
        report.add("ok", "canonical", "saved again, it has the same bytes")


# -- [13d] convert -----------------------------------------------------------------------


class Summary(Result):
    """What convert() did; it iterates over its lines."""

    def __init__(self) -> None:
        self.copied: "List[str]" = []
        # (name, old dtype, new dtype, whether it is exact)
        self.cast: "List[Tuple[str, str, str, bool]]" = []
        self.lost: "List[Tuple[str, int, int]]" = []  # (name, values now infinite, NaN)
        self.missing: "List[str]" = []  # names, not whole in the source
        self.left_behind: "List[str]" = []  # facts of the old format alone
        self.dropped: "List[str]" = []  # content, with drop=True
        self.as_text: "List[str]" = []  # keys of numbers, with metadata="text"
        # of metadata: (key, old or None, new)
        self.changed: "List[Tuple[Any, Any, Any]]" = []
        self.renamed: "List[Tuple[str, str]]" = []  # (old, new)
        self.notes: "List[str]" = []  # what is another than one may think
        self.nbytes = 0  # of the target

    def __iter__(self) -> "Iterator[str]":
        return iter(repr(self).split("\n"))

    def __repr__(self) -> str:
        lines = [f"{plural(len(self.copied), 'tensor')} copied, {len(self.cast)} cast"]
        lines += self.cast_lines()
        for old, new in self.renamed[:5]:
            lines.append(f"renamed: {safe_repr(old)} -> {safe_repr(new)}")
        if len(self.renamed) > 5:
            lines.append(f"renamed: {len(self.renamed) - 5} more")
        lines += [f"missing: {safe_repr(name)}" for name in self.missing[:100]]
        if len(self.missing) > 100:
            lines.append(f"missing: {len(self.missing) - 100} more")
        lines += [f"metadata as text: {short_repr(key)}" for key in self.as_text]
        for key, before, after in self.changed:
            change = change_words(before, after, None)
            lines.append(f"metadata {short_repr(key)}: {change}")
        lines += [f"dropped: {text}" for text in self.dropped]
        lines += [f"note: {text}" for text in self.notes]
        lines.append(f"wrote {plural(self.nbytes, 'byte')}")
        return "\n".join(lines)

    def cast_lines(self) -> "List[str]":
        """Return a line for each kind of cast: how many, what they lost."""
        kinds: "Dict[Tuple[str, str, bool], List[str]]" = Map()
        for name, old, new, exact in self.cast:
            kinds.setdefault((old, new, exact), []).append(name)
        lost = {name: counts for name, *counts in self.lost}
        lines = []
        for (old, new, exact), names in kinds.items():
            who = plural(len(names), "tensor")
            if len(names) == 1:
                who = safe_repr(names[0])
            how = "exact" if exact else "rounded"
            infinite = sum([lost[name][0] for name in names if name in lost])
            nan = sum([lost[name][1] for name in names if name in lost])
            if infinite:
                how += f"; {plural(infinite, 'value')} became infinite"
            if nan:
                how += f"; {plural(nan, 'value')} became NaN"
            lines.append(f"cast: {who} {old} -> {new} ({how})")
        return lines


def change_words(old: Any, new: Any, absent: Any) -> str:
    """Return "old -> new"; `absent` is the value that says that there is none."""
    words = ["absent" if value is absent else short_repr(value) for value in (old, new)]
    return " -> ".join(words)


def convert(source: "Union[Source, File]", target: Target, *,
            format: "Optional[str]" = None, cast: "Union[None, str, Mapping[Any, str]]" = None,
            only: "Union[None, str, Iterable[str]]" = None,
            exclude: "Union[None, str, Iterable[str]]" = None,
            rename: "Union[None, Mapping[str, str], Callable[[str], str]]" = None,
            dense: bool = False, drop: bool = False, metadata: "Optional[str]" = None,
            meta: "Optional[Mapping[Any, Any]]" = None, partial: bool = False,
            watch: Watch = None,
            **options: Any) -> Summary:
    """Write the tensors of a source, or a File, in a format; return what was done.

    Nothing changes silently: what the target cannot hold is a ValueError with all reasons
    and, as `.needed`, the arguments with which it is written. `cast`: {"float16": "float32"},
    or "float32" for whatever the target cannot hold (it dequantizes too), which is None in a
    mapping: {"int64": "int32", None: "float32"}. `dense`: sparse tensors as dense ones where
    the target has none. `only`, `exclude`: names or shell patterns. `rename`: {"model.*":
    "*"}, names or patterns with one `*`, or a function. `drop`: leave out content that has no
    place (custom attributes, scalars, metadata). metadata="text": numbers as text where the
    target holds only text. `meta`: metadata to set, or to remove (None). `partial`: as in
    load(). `options` and memory: as in save(). `watch`(verb, done, total) is called now and
    then: "casting", "checking" or "writing", bytes done, bytes in all:

        bar = tqdm.tqdm(unit="B", unit_scale=True)

        def watch(verb, done, total):
            bar.set_description(verb)
            bar.total = total
            bar.update(done - bar.n)

    >>> from io import BytesIO
    >>> convert(dumps({"w": [1.0]}, format="ztensor"), BytesIO(), format="burnpack")
    1 tensor copied, 0 cast
    wrote 264 bytes
    """
    own = own_file(source)
    if own is None:
        with load(source, partial=partial) as file:  # type: ignore[arg-type]
            return convert(file, target, format=format, cast=cast, only=only, exclude=exclude,
                           rename=rename, dense=dense, drop=drop, metadata=metadata, meta=meta,
                           watch=watch, **options)
    source = own
    fmt = target_format(format, target, None)
    fmt = choose_generation(fmt, [source.fmt.NAME], None, options)
    if metadata not in (None, "text"):
        raise ValueError(f"metadata is None or 'text', not {short_repr(metadata)}")
    # 1 what is asked for
    task = Conversion(source, fmt, options, {
        "cast": cast, "only": list_of(only), "exclude": list_of(exclude or ()),
        "rename": rename, "dense": dense, "drop": drop, "metadata": metadata,
        "meta": meta or {}})
    if source.attrs.get("missing") and not task.chosen:
        raise ValueError("none of the tensors is whole: nothing to convert")
    planned = [(name, task.planned(item)) for name, item in task.chosen]
    check_work(planned, dense=not fmt.SPARSE)
    # 2 how the target can hold it; all that it cannot hold is one error
    items, fitting = task.fit()
    task.find_all_losses(watch)
    if task.reasons:
        raise task.refusal()
    task.note_format(fitting)
    task.note_shared()
    # 3 the bytes
    try:
        blocks = encode_file(fmt, items, fitting, task.attrs, options, watch)
    except Unfit as error:
        task.refuse_unfit(error, items, task.names)
        raise task.refusal() from None
    task.summary.nbytes = write_out(target, blocks, task.chosen)
    return task.summary


class Refusal(ValueError):
    """Why convert() writes nothing. `needed`: with which arguments it would."""

    needed: Facts = {}

    def __str__(self) -> str:
        words = [f"{key}={value!r}" for key, value in self.needed.items()]
        if not words:
            return str(self.args[0])
        line = truncate(", ".join(words), MAX_LINE - 30)
        return f"{self.args[0]}\nconvert(..., {line}) writes it"


FORMAT_REMEDY = 'meta={"format": "pt"} (--meta format=pt) sets it'


class Conversion:
    """What one convert() makes of tensors and all else; `asked`: its arguments."""

    def __init__(self, file: File, fmt: Format, options: Facts, asked: Facts) -> None:
        self.file, self.fmt, self.options, self.asked = file, fmt, options, asked
        names = select_names(file, asked["only"], asked["exclude"])
        self.chosen = in_order([(name, file[name]) for name in names], file)
        names = [name for name, _ in self.chosen]
        self.names = rename_all(names, asked["rename"])  # old -> new
        # (noun, why, remedy) -> names
        self.reasons: "Dict[Tuple[str, str, str], List[Any]]" = {}
        self.refused: "Set[Tuple[str, Any]]" = set()  # nouns and names of these
        self.needed: Facts = {}  # arguments that help against all of them
        self.hindrance = ""  # why they do not help
        self.taken = set(self.names.values())  # and the names of `needed`
        self.count = 0  # of names that were taken
        # (name, values, old dtype, new dtype)
        self.casts: "List[Tuple[str, Tensor, str, str]]" = []
        self.summary = Summary()
        self.summary.renamed = [pair for pair in self.names.items() if pair[0] != pair[1]]
        self.summary.missing = file.attrs.get("missing", [])
        self.attrs = native_file_attrs(file, fmt)
        self.table = cast_table(asked["cast"])

    def fit(self) -> "Tuple[Items, Facts]":
        """Return tensors and metadata for the target; note what it cannot hold."""
        items = []
        for name, item in self.chosen:
            items.append((self.names[name], self.fit_tensor(name, item)))
        fitting = self.fit_metadata(self.change_metadata())
        self.leave_attrs()
        self.leave_rest()
        return items, fitting

    def refuse(self, noun: str, name: Any, why: str, remedy: str,
               value: Any = True) -> None:
        """Note why the target cannot hold something, and the argument that helps."""
        shown = value
        if remedy == "cast":
            old, shown = value
            known = self.needed.setdefault("cast", {})
            if old not in known or known[old] in INT_RANGE:  # others may not fit
                known[old] = shown
        elif remedy == "exclude":
            shown = "NAME"
            self.needed.setdefault("exclude", []).append(name)
        elif remedy == "rename":
            shown = "OLD=NEW"
            self.needed.setdefault("rename", {})[name] = value
        else:
            self.needed[remedy] = value
        self.reasons.setdefault((noun, why, f"{remedy}={shown!r}"), []).append(name)
        self.refused.add((noun, name))

    def refusal(self) -> Refusal:
        """Return the error with a line for each reason, and with what helps against all."""
        others = []
        for fmt in other_generations(self.fmt, self.options):
            others.append(Conversion(self.file, fmt, self.options, self.asked))
            others[-1].fit()
            others[-1].refuse_misfits()
        needed: Facts = {}
        # First what loses the least; of two that are alike the one that was asked for.
        for task in sorted([self] + others, key=lambda task: len(task.refused)):
            if task.is_helped():
                needed = task.needed
                if task is not self:
                    needed["version"] = task.fmt.VERSION
                break
        # What was found on the way is a reason as well.
        lines = []
        for (noun, why, remedy), names in self.reasons.items():
            who = plural(len(names), noun)
            if noun != "tensor" or len(names) == 1:
                words = [short_repr(name, 200) for name in names]
                who = f"{noun} {join_names(words, 10)}"
            text = f"{who}: {truncate(why, MAX_LINE // 4)}: "
            for other in others:
                if other.refused.isdisjoint([(noun, name) for name in names]):
                    text += f"version={other.fmt.VERSION!r}, or "
            lines.append(text + remedy)
        if self.hindrance and not needed:
            lines.append(f"with all of that: {self.hindrance}")
        error = Refusal(f"{self.fmt.TITLE} cannot hold\n  {join_lines(lines)}")
        error.needed = needed
        return error

    def is_helped(self) -> bool:
        """Return whether it could be written with what is needed, once that is complete.

        What a file of these tensors cannot hold is only known when all else is mended, and
        what is left out or renamed can matter to others.
        """
        if "cast" in self.needed:
            self.needed["cast"] = self.all_casts()
        for _ in range(3):
            self.rename_no_excluded()
            asked = self.asked_and_needed()
            try:
                trial = Conversion(self.file, self.fmt, self.options, asked)
                items, fitting = trial.fit()
                trial.refuse_misfits()
                if trial.reasons:
                    return False
                self.fmt.write(items, fitting, trial.attrs, self.options)
                # What was asked for stays: these arguments take its place.
                self.needed = {key: asked[key] for key in self.needed}
                return True
            except Unfit as error:
                self.refuse_unfit(error, items, trial.names)
            except ValueError as error:
                self.hindrance = str(error)
                return False
        return False

    def rename_no_excluded(self) -> None:
        """Take the names of tensors that are left out from those that are renamed."""
        rename = self.needed.pop("rename", {})
        for name in self.needed.get("exclude", ()):
            rename.pop(name, None)
        if rename:
            self.needed["rename"] = rename

    def asked_and_needed(self) -> Facts:
        """Return the arguments with which it is tried."""
        asked = dict(self.asked, **self.needed)
        excluded = [pattern_of(name) for name in self.needed.get("exclude", [])]
        asked["exclude"] = self.asked["exclude"] + excluded
        rename = self.asked["rename"] or {}
        if callable(rename):
            rename = dict(self.summary.renamed)
        asked["rename"] = dict(rename, **self.needed.get("rename", {}))
        return asked

    def all_casts(self) -> "Union[str, Dict[Optional[str], str]]":
        """Return what `cast` must be: the commonest new dtype for all others."""
        needed = self.needed["cast"]
        table = dict(self.table, **needed)
        if None not in table:
            news = list(needed.values())
            usual = max(news, key=news.count)
            for old, new in needed.items():
                if new == usual and old not in self.table:
                    del table[old]
            table[None] = usual
        if len(table) == 1:
            return str(table[None])
        return table

    def lose(self, noun: str, name: Any, why: str) -> None:
        """Note content that has no place, as dropped if asked for."""
        if self.asked["drop"]:
            self.summary.dropped.append(f"{noun} {short_repr(name, 200)} ({why})")
        else:
            self.refuse(noun, name, why, "drop")

    def fit_tensor(self, name: str, item: Tensor) -> Tensor:
        """Return a tensor as the target can hold it, dense or cast; note both."""
        item = self.fit_custom(name, item)
        new = wanted_dtype(self.fmt, item, self.table)
        is_copied = new == item.dtype
        if item.is_sparse and not self.fmt.SPARSE:
            item = Cast(item, item.dtype)  # made dense when it is written
            is_copied = False
            self.summary.cast.append((name, "sparse", "dense", True))
            if not self.asked["dense"]:
                self.refuse("tensor", name, "sparse", "dense")
        if new is not None and new != item.dtype:
            try:
                item = self.cast_one(name, item, new)
            except FormatError:
                raise
            except ValueError as error:
                self.refuse_dtype(name, f"cast to {new}: {error}")
                return item
        if is_copied:
            self.summary.copied.append(name)
        for why in self.fmt.tensor_problems(item):
            if why == item.unreadable or why.startswith(f"{item.dtype} ("):
                self.refuse_dtype(name, why)
            else:
                self.refuse("tensor", name, why, "exclude")
        return item

    def refuse_dtype(self, name: str, why: str) -> None:
        """Note why the target cannot hold the dtype of a tensor, and in which it can."""
        item = self.file[name]
        new = self.fitting_dtype(item)
        if why != item.unreadable:  # after its `;` it names what helps in save()
            why = why.partition("; ")[0]
        if new:
            self.refuse("tensor", name, why, "cast", (item.dtype, new))
        else:
            self.refuse("tensor", name, why, "exclude")

    def fitting_dtype(self, item: Tensor) -> str:
        """Return the dtype of the target that holds the values best, or ""."""
        if item.dtype == "qfloat" and "float32" in self.fmt.DTYPES:
            try:
                cast_tensor(item, "float32")
            except FormatError:  # its scheme is not known
                return ""
            return "float32"
        if item.unreadable or item.dtype is None:
            return ""
        if item.dtype in self.fmt.DTYPES:
            return item.dtype
        new = dtype_for(self.fmt, item.dtype)
        if new in INT_RANGE and not cast_is_exact(item.dtype, new):
            values = item
            if item.is_sparse:
                values = item.components["values"]
            if why_misfit(values, new):
                return dtype_for(self.fmt, "float64")
        return new

    def refuse_misfits(self) -> None:
        """Note which casts meet integers that do not fit."""
        for name, values, old, new in self.casts:
            if new in INT_RANGE and not cast_is_exact(old, new):
                why = why_misfit(values, new)
                if why:
                    self.refuse_dtype(name, f"cast to {new}: {why}")

    def planned(self, item: Tensor) -> Tensor:
        """Return a tensor with the dtype that it gets."""
        new = wanted_dtype(self.fmt, item, self.table)
        if new == item.dtype:
            return item
        return Cast(item, new)

    def fit_custom(self, name: str, item: Tensor) -> Tensor:
        """Return a tensor with the user's attributes that have a place; note the others."""
        problems = self.fmt.custom_problems(item)
        if not problems:
            return item
        for what in problems.values():
            self.lose("tensor", name, what)
        fitting = [pair for pair in item.custom.items() if pair[0] not in problems]
        return item.copy(custom=Map(fitting))

    def cast_one(self, name: str, item: Tensor, new: str) -> Tensor:
        """Return a tensor with another dtype; what that loses is looked for later."""
        changed = cast_tensor(item, new)
        values = item
        if item.dtype == "qfloat":
            values = Cast(item, "float32")
        elif item.is_sparse:
            check_stored([(name, item)])  # what is made of it has no checksum any more
            values = item.components["values"]
        self.casts.append((name, values, str(item.dtype), new))
        return changed

    def find_all_losses(self, watch: Watch) -> None:
        """Note what the casts lose, or which values the new dtype does not have."""
        rounded = [values for _, values, _, new in self.casts
                   if not cast_is_exact(str(values.dtype), new)]
        meter = Meter(watch, "casting", sum([values.nbytes for values in rounded]))
        for name, values, old, new in self.casts:
            exact = old != "qfloat"
            if not cast_is_exact(str(values.dtype), new):
                try:
                    same, infinite, nan = find_losses(values, str(values.dtype), new, meter)
                except FormatError:
                    raise
                except ValueError as error:  # an integer that does not fit
                    self.refuse_dtype(name, f"cast to {new}: {error}")
                    continue
                exact = exact and same
                if infinite or nan:
                    self.summary.lost.append((name, infinite, nan))
            self.summary.cast.append((name, old, new, exact))

    def fit_metadata(self, found: "Dict[Any, List[Any]]") -> Facts:
        """Return the metadata that the target holds; note what becomes of the others."""
        fmt, summary = self.fmt, self.summary
        fitting = Map()
        no_place = fmt.no_metadata(dict(self.attrs, **self.options))
        for key, (value, *others) in found.items():
            if others:
                self.lose("metadata", key, "the files do not agree on it")
                continue
            why = no_place or fmt.metadata_problem(key, value)
            if why is None:
                fitting[key] = value
                stored = fmt.stored_number(value)
                if not is_same(stored, value):
                    summary.changed.append((key, value, stored))
                continue
            is_number = isinstance(value, (int, float)) and not no_place
            fits_as_text = is_number and fmt.metadata_problem(key, repr(value)) is None
            if fits_as_text and self.asked["metadata"]:
                fitting[key] = repr(value)
                summary.as_text.append(key)
            elif key == "format" and self.file.format == "safetensors":  # "pt"
                summary.left_behind.append(f"metadata {key}")
            elif fits_as_text and not self.asked["drop"]:
                self.refuse("metadata", key, why, "metadata", "text")
            else:
                self.lose("metadata", key, why)
        return fitting

    def change_metadata(self) -> "Dict[Any, List[Any]]":
        """Return the values of each metadata key (of shards several), changed by `meta`."""
        found = metadata_values(self.file, self.names)
        for key, new in self.asked["meta"].items():
            if new is None and key not in found:
                raise ValueError(f"meta: there is no metadata {short_repr(key)}")
            values = found.get(key, [])
            old = None
            if len(values) == 1:
                old = values[0]
            if not is_same(old, new):
                self.summary.changed.append((key, old, new))
            if new is None:
                del found[key]
            else:
                found[key] = [new]
        return found

    def leave_attrs(self) -> None:
        """Note attributes and names that the target does not hold."""
        left = set(self.summary.left_behind)
        for name in self.file.others:
            self.lose("bytes", name, "there is no place for them")
        for key, value in self.file.attrs.items():
            if key in self.attrs or key == "missing":
                continue
            if key in ("scalars", "operations", "dims") and value not in (None, {}):  # content
                self.lose("file attribute", key, "there is no place for it")
            else:
                left.add(key)
        for name, item in self.chosen:
            left.update(set(item.attrs).difference(self.fmt.native_attrs(item)))
            why = self.fmt.name_problem(self.names[name])
            if why is not None:
                self.refuse_name(name, why)
        self.summary.left_behind = sorted(left)

    def refuse_name(self, name: str, why: str) -> None:
        """Note why the target cannot hold a name, and one that it can."""
        new = self.free_name(name)
        old = typed_name(name)
        is_clear = old == name
        if not is_clear and not self.asked["rename"]:
            is_clear = list(rename_pattern(list(self.names), old, new)) == [name]
        if self.fmt.name_problem(new) or not is_clear:
            self.refuse("tensor", name, why, "exclude")
        else:
            self.refuse("tensor", name, why, "rename", new)
            self.taken.add(new)

    def free_name(self, name: str) -> str:
        """Return a plain name that no tensor has, which resembles this one."""
        new = "".join([letter if letter.isalnum() else "_" for letter in name.strip("/")])
        new = new.encode("ascii", "ignore").decode()[:100] or "tensor"
        base = new
        while new in self.taken:
            self.count += 1
            new = f"{base}_{self.count}"
        return new

    def refuse_unfit(self, error: Unfit, items: Items, names: "Dict[str, str]") -> None:
        """Note what the target says of tensors that it would hold one by one.

        `names`: the new ones by those in the file. Another name helps where the tensor
        could be written alone so.
        """
        olds = {new: old for old, new in names.items()}
        tensors = dict(items)
        for new, why in error.problems:
            name = olds[str(new)]
            pair = self.free_name(name), tensors[str(new)]
            try:
                self.fmt.write([pair], {}, self.attrs, self.options)
                self.refuse_name(name, why)
            except ValueError:
                self.refuse("tensor", name, why, "exclude")

    def note_format(self, fitting: Facts) -> None:
        """Note where the metadata `format` is missing that programs ask safetensors for."""
        notes = self.summary.notes
        if self.fmt.NAME == "safetensors" and "format" not in fitting:
            notes.append("metadata 'format' is missing, without which transformers refuses "
                         f"the file: {FORMAT_REMEDY}")
        if "metadata format" in self.summary.left_behind:
            value = short_repr(self.file.metadata.get("format"))
            notes.append(f"metadata 'format' = {value} is left behind: on the way back to "
                         f"safetensors {FORMAT_REMEDY}")

    def note_shared(self) -> None:
        """Note tensors that share bytes, and that the target has one by one."""
        owners: "Dict[Any, str]" = {}
        shared = []
        for name, item in self.chosen:
            owner = owners.setdefault(place_of(item)[:3], name)
            if owner != name and item.stored_nbytes and not self.fmt.HASHES_DECODED:
                shared.append((name, owner, item.nbytes))
        if shared:
            name, owner, _ = shared[0]
            nbytes = sum([row[2] for row in shared])
            who = f"{safe_repr(name)} shares its bytes with {safe_repr(owner)}"
            if shared[1:]:
                who += f", and {plural(len(shared) - 1, 'other')} so"
            text = f"{who}: {plural(nbytes, 'byte')} are written again"
            self.summary.notes.append(text)

    def leave_rest(self) -> None:
        """Note what lies behind the end of the file, if it is another file."""
        at = find_rest(self.file)
        if at is not None:
            count = plural(self.file.nbytes - at, "byte")
            self.lose("the bytes from", at, f"{count} behind the end, perhaps another file")


def why_misfit(values: Tensor, new: str) -> str:
    """Return why values cannot be cast to a type of integers, or ""."""
    try:
        for _ in Cast(values, new).iter_bytes():
            pass
    except FormatError:
        raise
    except ValueError as error:
        return str(error)
    return ""


def find_rest(file: File) -> "Optional[int]":
    """Return where another file begins behind the end of one, or None."""
    at = file.rest
    if file.fmt.STRICT_END or file.shards is not None:
        return at
    if at is None:
        if not file.fmt.INDEX_FIRST:
            return None
        at = max([item.start + item.stored_nbytes for item in file.values()], default=0)
    if not at:
        return None
    behind = file.source.read(at, 1 << 16)
    places = []
    for fmt in FORMATS + GENERATIONS:
        for magic in fmt.MAGICS:
            place = behind.find(magic)
            if place >= 0:
                places.append(at + place)
    return min(places, default=None)


def select_names(names: Any, only: Any, exclude: Any = None) -> "List[str]":
    """Return those names that `only` has, if given, and `exclude` does not have.

    Both have names; what is no tensor's name is a shell pattern. `names`: a mapping, or a File.
    """
    if only is None and getattr(names, "shards", None) is not None:
        names.check_listed()
    chosen = set(names)
    if only is not None:
        chosen = match_names(names, only, "only")
    chosen -= match_names(names, exclude or (), "exclude")
    return [name for name in names if name in chosen]


def list_of(words: "Union[None, str, Iterable[str]]") -> "Any":
    """Return words as a list; None as it is."""
    if words is None:
        return None
    if isinstance(words, str):
        return [words]
    return list(words)


def match_names(names: "Iterable[str]", patterns: "Union[str, Iterable[str]]",
                option: str) -> "Set[str]":
    """Return the set of names that are among these names and shell patterns."""
    matched: "Set[str]" = set()
    for pattern in list_of(patterns):
        found = [pattern]
        if pattern not in names or is_pattern(pattern):
            found = names_like(names, pattern)
        if not found:
            near = did_you_mean(pattern, names)
            raise ValueError(f"{option}: no tensor is called {short_repr(pattern)}{near}")
        matched.update(found)
    return matched


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern also where it is a tensor's name: not layer[0]."""
    return "*" in text or "?" in text


def pattern_of(name: str) -> str:
    """Return a name, or a shell pattern that can be printed and has only this name."""
    pattern = ""
    for letter in name:
        if letter != " " and safe_str(letter) != letter:
            letter = "[! -~]"  # what is not ASCII, or not printed
        elif letter in "*?[":
            letter = f"[{letter}]"
        pattern += letter
    if pattern.replace("[[]", "[") == name:
        return name
    return pattern


def names_like(names: "Iterable[str]", pattern: str) -> "List[str]":
    """Return the names that a shell pattern has, and that which is the same text."""
    from fnmatch import fnmatchcase
    return [name for name in names if name == pattern or fnmatchcase(name, pattern)]


def rename_all(names: "List[str]", rename: Any) -> "Dict[str, str]":
    """Return the new names by old ones; an exact name wins, then the first pattern.

    ValueError where two get the same name. A tensor called "*.bias" hides no pattern.
    """
    rules = rename or {}
    is_exact = callable(rename)
    if is_exact:
        rules = {name: rename(name) for name in names}
    known, renamed = set(names), {}
    for old, new in sorted(rules.items(), key=lambda pair: pair[0] not in known):
        if not isinstance(new, str):
            raise TypeError(f"rename: a name is a str, not {short_repr(new)}")
        is_pair = old in known and old.count("*") == new.count("*") == 1
        if old in known and (is_exact or not is_pair):
            renamed[old] = new
            continue
        found = rename_pattern(names, str(old), new)
        if not found:
            near = " (one `*` is any text)"
            if "*" not in str(old):
                near = did_you_mean(str(old), names) or near
            raise ValueError(f"rename: no tensor is called {short_repr(old)}{near}")
        for name in found:
            renamed.setdefault(name, found[name])
    renamed = {name: renamed.get(name, name) for name in names}
    owners: "Dict[str, str]" = {}
    for name, new in renamed.items():
        other = owners.setdefault(new, name)
        if other != name:
            raise ValueError(f"rename: {safe_repr(other)} and {safe_repr(name)} would both be "
                             f"{safe_repr(new)}")
    return renamed


def typed_name(name: str) -> str:
    """Return a name as --rename takes it: `*` stands for what cannot be typed there."""
    if "=" not in name and (not name or safe_str(name) == name):
        return name
    odd = [i for i, letter in enumerate(name) if letter == "=" or not letter.isprintable()]
    if not odd:
        odd = [len(name) // 2]
    start = name[:odd[0]][:100]
    end = name[odd[-1] + 1:][-100:]
    return f"{start}*{end}"


def rename_pattern(names: "List[str]", old: str, new: str) -> "Dict[str, str]":
    """Return the new names of those that a pattern with one `*` has; none of a bad pattern."""
    if old.count("*") != 1 or new.count("*") > 1:
        return {}
    start, _, end = old.partition("*")
    found = {}
    for name in names:
        if len(name) >= len(start + end) and name.startswith(start) and name.endswith(end):
            found[name] = new.replace("*", name[len(start):len(name) - len(end)])
    return found


def find_losses(item: Tensor, old: str, new: str, meter: Meter) -> "Tuple[bool, int, int]":
    """Return whether a cast there and back is exact; how many become infinite, NaN."""
    same = True
    infinite = nan = 0
    for part in iter_parts(meter.over(item.iter_bytes()), PART):
        data = bytes(part)
        if (old, new) == ("float32", "bfloat16") and has_no_low_bits(data):
            continue
        there = cast_block(data, old, new)  # ValueError for integers that do not fit
        try:
            same = same and bytes(cast_block(there, new, old)) == data
        except ValueError:
            same = False
        if new not in FLOAT_DIGITS:
            continue
        values = unpack_values(new, there)
        if -INFINITY < sum(values) < INFINITY:  # all are finite
            continue
        for x, y in zip(unpack_values(old, data), values):
            if x == x and y != y:
                nan += 1
            elif abs(y) == INFINITY and abs(x) != INFINITY:
                infinite += 1
    return same, infinite, nan


def has_no_low_bits(data: bytes) -> bool:
    """Return whether float32 values lose nothing as bfloat16: 6 times as fast as to try it."""
    tops = data[3::4]
    could_be_nan = 127 in tops or 255 in tops
    zeros = bytes(len(tops))
    return data[0::4] == data[1::4] == zeros and not could_be_nan


# -- [13e] diff --------------------------------------------------------------------------


class Diff(Result):
    """What diff() found: true when something differs.

    `.a`, `.b`: the paths. `.tensors`: how many were compared. `.differences`: a map for
    each: "sign" - (only in a), + (only in b) or ~, "kind" (tensor, metadata or scalar),
    "name", "changes" for a person; where values changed "count", "first" (the indices of
    the first), "values" (that one in both), "max_abs", "max_rel" (of NaN against a number
    both infinite), "not_finite": how many NaN and infinities are among them.
    """

    def __init__(self, a: File, b: File, tensors: int) -> None:
        self.a = a.path
        self.b = b.path
        self.tensors = tensors
        self.differences: "List[Facts]" = []

    def __iter__(self) -> "Iterator[Facts]":
        return iter(self.differences)

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __repr__(self) -> str:
        return self.text(None)

    def text(self, limit: "Optional[int]") -> str:
        """Return a line for each difference, `limit` of them at most, and their number.
        """
        lines = [self.line(row) for row in self.differences[:limit]]
        if len(lines) < len(self.differences):
            lines.append(f"{len(self.differences) - len(lines)} more")
        number = plural(len(self.differences), "difference")
        lines.append(f"{plural(self.tensors, 'tensor')}, {number}")
        return "\n".join(lines)

    @staticmethod
    def line(row: Facts) -> str:
        """Return a difference as text."""
        name = safe_str(row["name"])
        if row["kind"] == "tensor":
            return f"{row['sign']} {name}: {', '.join(row['changes'])}"
        values = " -> ".join(map(short_repr, row["changes"]))
        return f"{row['sign']} {row['kind']} {name}: {values}"

    def add(self, sign: str, kind: str, name: str, row: Facts) -> None:
        """Add what differs of a name."""
        self.differences.append({"sign": sign, "kind": kind, "name": name, **row})


def diff(a: "Union[Source, File]", b: "Union[Source, File]", *, rtol: float = 0.0,
         atol: float = 0.0, only: "Union[None, str, Iterable[str]]" = None,
         exclude: "Union[None, str, Iterable[str]]" = None,
         rename: "Union[None, Mapping[str, str], Callable[[str], str]]" = None,
         any_dtype: bool = False, mmap: bool = True, partial: bool = False,
         watch: Watch = None) -> Diff:
    """Return what differs between two sources or Files, of any formats: a Diff.

    Values are the same where |x - y| <= atol + rtol * |y|, or both are NaN, or the same
    infinity; with rtol and atol 0 other bits (-0.0, NaN) are a difference, too. Custom
    attributes are compared, those of formats are not. `rename`: names of `a`, as in
    convert(); `only`, `exclude`: tensors, by the new names. `any_dtype`: the same values
    of another dtype are no difference. `mmap`, `partial`: as in load(). `watch`(verb,
    done, total) is called now and then: "comparing", bytes done, bytes in all.

    >>> one, two = [dumps({"w": [x, 2.0]}, format="ztensor") for x in (1.0, 1.5)]
    >>> diff(one, two)
    ~ w: 1 value changed, by 0.5 at most, the first at [0]: 1.0 -> 1.5
    1 tensor, 1 difference
    >>> bool(diff(one, two, rtol=0.5))
    False
    """
    if not (0 <= rtol < INFINITY and 0 <= atol < INFINITY):
        raise ValueError(f"rtol and atol are numbers from 0 on, not {rtol} and {atol}")
    opened: "List[File]" = []
    try:
        files: "List[Any]" = []
        for source in (a, b):
            file = own_file(source)
            if file is None:
                file = load(source, mmap=mmap, partial=partial)  # type: ignore[arg-type]
                opened.append(file)
            files.append(file)
        one, two = files
        for file in files:
            if only is None and file.shards is not None:
                file.check_listed()
        lost, others_lost = [file.attrs.get("missing", []) for file in files]
        renamed = rename_all(list(one) + lost, rename)
        old_names = Map([(new, old) for old, new in renamed.items()])
        known = Map.fromkeys(list(old_names) + list(two) + others_lost)
        names = select_names(known, only, exclude)
        found = Diff(one, two, len(names))
        items = Map([(name, one[old_names[name]]) for name in names
                     if old_names.get(name) in one])
        others = Map([(name, two[name]) for name in names if name in two])
        diff_tensors(found, items, others, names, rtol, atol, any_dtype, watch)
        add_facts(found, one, two)
        return found
    finally:
        for file in opened:
            file.close()


def diff_tensors(found: Diff, a: TensorMap, b: TensorMap, names: "List[str]", rtol: float,
                 atol: float, any_dtype: bool, watch: Watch) -> None:
    """Add what differs in tensors of these names."""
    for items in (a, b):
        check_work(list(items.items()))
    total = 0
    for name in names:
        if name in a and name in b:
            total += a[name].nbytes
    meter = Meter(watch, "comparing", total)
    for name in names:
        if name not in a and name not in b:
            changes = ["not known to be the same: whole in neither"]
            found.add("~", "tensor", name, {"changes": changes})
        elif name not in b:
            found.add("-", "tensor", name, {"changes": [type_and_shape(a[name])]})
        elif name not in a:
            found.add("+", "tensor", name, {"changes": [type_and_shape(b[name])]})
        else:
            row = diff_tensor(a[name], b[name], rtol, atol, any_dtype, meter)
            if row["changes"]:
                found.add("~", "tensor", name, row)


def type_and_shape(item: Tensor) -> str:
    return f"{dtype_words(item)} {short_repr(item.shape)}"


def add_facts(found: Diff, a: File, b: File) -> None:
    """Add what differs beside the tensors."""
    # The "pt" of safetensors may be missing in other formats.
    is_bridge = "safetensors" in (a.format, b.format) and a.fmt is not b.fmt
    add_changes(found, "metadata", known_metadata(a), known_metadata(b), is_bridge)
    add_changes(found, "scalar", a.attrs.get("scalars") or {}, b.attrs.get("scalars")
                or {})
    add_changes(found, "bytes", a.others, b.others)


def known_metadata(file: File) -> Facts:
    """Return the metadata; of a key on which shards do not agree, the list of its values.
    """
    known = Map()
    for key, values in metadata_values(file).items():
        known[key] = values if len(values) > 1 else values[0]
    return known


def add_changes(found: Diff, kind: str, a: Facts, b: Facts,
                is_bridge: bool = False) -> None:
    """Add the keys of which two maps have different values, or only one has any."""
    for key, one, two in pair_facts(a, b):
        if one is not MISSING and two is not MISSING:
            if not is_same(one, two):
                found.add("~", kind, key, {"changes": [one, two]})
        elif is_bridge and key == "format":
            continue
        elif two is MISSING:
            found.add("-", kind, key, {"changes": [one]})
        else:
            found.add("+", kind, key, {"changes": [two]})


def pair_facts(a: Facts, b: Facts) -> "Iterable[List[Any]]":
    """Return (key, value in a, value in b) of the keys of two maps; MISSING: it has none.
    """
    pairs: "Dict[Any, List[Any]]" = Map()
    for key, value in a.items():
        pairs[token_of_key(key)] = [key, value, MISSING]
    for key, value in b.items():
        pairs.setdefault(token_of_key(key), [key, MISSING, MISSING])[2] = value
    return pairs.values()


def diff_tensor(a: Tensor, b: Tensor, rtol: float, atol: float, any_dtype: bool,
                meter: Meter) -> Facts:
    """Return what differs between two tensors; "changes" is empty where nothing does."""
    one, two = type_and_shape(a), type_and_shape(b)
    if a.shape != b.shape:
        return {"changes": [f"{one} -> {two}"]}
    changes: "List[str]" = []
    row: Facts = {"changes": changes}
    if one != two and not any_dtype:
        changes.append(f"{one} -> {two}")
    try:
        found = ValueDiff(a, b, rtol, atol, meter)
        words = found.words(any_dtype)
        if words:
            changes.append(words)
        if found.count:
            row.update(count=found.count, first=list(found.indices(found.first)),
                       values=list(found.values), not_finite=found.not_finite,
                       max_abs=found.max_abs, max_rel=found.max_rel)
    except Unsupported as error:
        if not has_same_values(a, b):
            changes.append(f"not known to be the same: {error.what}")
    for key, value, other in pair_facts(a.custom, b.custom):
        if not is_same(value, other):
            change = change_words(value, other, MISSING)
            changes.append(f"attribute {short_repr(key)}: {change}")
    return row


class ValueDiff:
    """What differs between the values of two tensors of one shape, found in constant
    memory.

    `count`: of values that are not close; `first`: the row-major number of the first of
    them; `values`: that one in both; `not_finite`: how many are NaN or an infinity
    against another value. `same_bytes`; `other_bits`: (number, bytes, other bytes) of the
    first equal values of one dtype that are stored otherwise.
    """

    def __init__(self, a: Tensor, b: Tensor, rtol: float, atol: float,
                 meter: Meter) -> None:
        self.shape = a.shape
        self.same_dtype = a.dtype == b.dtype
        self.is_bool = a.dtype == "bool"
        self.rtol = rtol
        self.atol = atol
        self.is_exact = not rtol and not atol
        self.count = self.first = self.not_finite = 0
        self.max_abs = self.max_rel = 0.0
        self.values: "Tuple[Any, ...]" = ()
        self.same_bytes = True
        self.other_bits: "Optional[Tuple[int, bytes, bytes]]" = None
        blocks = meter.over(a.iter_bytes())
        itemsize = a.check_readable()
        parts = regroup(blocks, PART * itemsize)
        others = regroup(b.iter_bytes(), PART * b.check_readable())
        start = 0  # the number of the first value of a part
        for part, other in zip(parts, others):
            if not self.same_dtype or part != other:
                self.same_bytes = False
                values = unpack_values(str(a.dtype), part)
                self.compare(start, values, unpack_values(str(b.dtype), other))
                if self.same_dtype and self.is_exact and not self.other_bits:
                    self.find_other_bits(start, part, other, itemsize)
            start += PART

    def compare(self, start: int, values: "Sequence[Any]",
                others: "Sequence[Any]") -> None:
        """Note which values differ; the first has the number `start`."""
        rtol = self.rtol
        atol = self.atol
        most = self.max_abs
        ratio = self.max_rel
        found = []
        for i, (x, y) in enumerate(zip(values, others)):
            if x == y or (x != x and y != y):
                continue
            # Integers over 2**53 may differ by less than floats tell.
            gap = float(abs(x - y) or abs(int(x) - int(y)))
            if gap <= atol + rtol * abs(y) and gap < INFINITY:
                continue
            found.append(i)
            if not gap < INFINITY:  # NaN or infinity against another value
                self.not_finite += 1
                most = ratio = INFINITY
                continue
            most = max(most, gap)
            if y:
                ratio = max(ratio, gap / abs(y))
            else:
                ratio = INFINITY
        if found and not self.count:
            self.first = start + found[0]
            self.values = values[found[0]], others[found[0]]
        self.count += len(found)
        self.max_abs = most
        self.max_rel = ratio

    def find_other_bits(self, start: int, part: bytes, other: bytes,
                        itemsize: int) -> None:
        """Note the first values that are stored otherwise; number `start` is the first.
        """
        for at in range(0, len(part), itemsize):
            one, two = part[at:at + itemsize], other[at:at + itemsize]
            if one != two:
                self.other_bits = start + at // itemsize, one, two
                return

    def indices(self, number: int) -> Shape:
        """Return the indices of the value with this number."""
        indices = []
        for n in reversed(self.shape):
            indices.append(number % n)
            number //= n
        return tuple(reversed(indices))

    def place(self, number: int) -> str:
        """Return where the value with this number is, as the end of a text."""
        if not self.shape:
            return ""
        return f", the first at {short_repr(self.indices(number))}"

    def words(self, any_dtype: bool) -> str:
        """Return what differs, as text; "" where nothing does."""
        if self.count:
            by = f"by {self.max_abs!r} at most"
            if self.not_finite:
                by = f"{self.not_finite} of them from or to NaN or infinity"
            x, y = self.values
            place = f"{self.place(self.first)}: {x!r} -> {y!r}"
            return f"{plural(self.count, 'value')} changed, {by}{place}"
        if self.same_bytes:
            return ""
        if not self.same_dtype:
            if any_dtype:
                return ""
            return "same values" if self.is_exact else "close values"
        if self.other_bits is None:
            return ""
        number, one, two = self.other_bits
        bits = "other bits (-0.0 or NaN)"
        if self.is_bool:
            bits = f"bools of other bytes ({one[0]} -> {two[0]})"
        return f"same values, {bits}{self.place(number)}"


# -- [14a] page --------------------------------------------------------------------------
# What `explain` shows. The page of `explain --html` has no script.

# So many fields are shown from the start, and as many from the end.
PAGE_ROWS = 1000
PAGE_LINES = 15  # of the list of tensors, about
# The strip has about so many parts.
PAGE_PARTS = 400
# Of one field, up to a multiple of 16; others: 64.
PAGE_BYTES = {"data": 32, "padding": 16}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>$title</title><style>
:root{color-scheme:light dark;--dim:light-dark(#5b6268,#a3aab1);--paper:light-dark(#fdfcfa,#15181b);
--shade:light-dark(#e2dfd6,#33393f)}
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
.key span{display:inline-block;margin-right:1.6em}
.key i,.banner{background:var(--t);border-left:6px solid var(--c)}
.key i{display:inline-block;width:1.2em;height:.9em;margin-right:.4em}
.banner{padding:.6rem 1rem;overflow-wrap:anywhere}
nav{position:sticky;top:0;display:flex;height:44px;padding:3px 0;background:var(--paper)}
nav a{flex:var(--w) 0 0;min-width:min(8px,.2%);overflow:hidden;background:var(--t);
border-bottom:4px solid var(--c);border-right:1px solid var(--paper);
font:11px/1.3 monospace;white-space:pre;text-decoration:none}
pre,td,th.hex{font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}
pre{overflow:auto}
.scroll{overflow:auto;max-height:24.4rem;margin:.5rem 0;border-bottom:1px solid var(--dim);
background:linear-gradient(transparent,var(--paper) 60%) bottom/100% 3rem local no-repeat,
linear-gradient(transparent,var(--shade)) bottom/100% 1.5rem no-repeat}
table{border-collapse:collapse}
th{text-align:left;color:var(--dim);position:sticky;top:0;background:var(--paper)}
#fields th{top:44px}
td,th{padding:.1rem 1rem .1rem 0;vertical-align:top;overflow-wrap:anywhere}
td:last-child{font:13px/1.5 system-ui,sans-serif;color:var(--dim)}
tr:target{background:light-dark(#fff2ad,#3b3516)}
.n{text-align:right;white-space:nowrap}
.at,.hex,th{white-space:pre}
.hex span{background:var(--t)}
.hex i,.at{color:var(--dim);font-style:normal}
td i:empty::after,.banner i:empty::after{content:"\\200b"}
.name{padding-left:calc(var(--d)*1.2em)}
.fault .name{color:var(--c);font-weight:700}
@media(max-width:1000px){body{padding:0 .75rem 4rem}pre,td{font-size:12px}
.hex,th.hex{font-size:11px}td,th{padding-right:.6rem}}
@media(min-width:890px){.scroll td:first-child{min-width:16em}.name~td{min-width:7em}
.name{min-width:calc(var(--f)*1ch + .7rem)}.name+td{min-width:calc(var(--v)*1ch + .7rem)}}
@media(max-width:889px){body{padding:0 .5rem 4rem}th{display:none}nav a{border-right:0}
tr{display:flex;flex-wrap:wrap}td.hex{order:1;flex:100%}.hex:empty{display:none}
.scroll td:first-child{flex:100%}.name{padding-left:calc(var(--d)*.6em)}}
</style></head><body><h1>$title</h1><p>$facts</p><p class="key">$key</p>$banner
<nav>$strip</nav><details><summary>How $format is built, and where it is here</summary>
<pre>$layout</pre></details>
$tensors
<table id="fields" style="--f:$field_width;--v:$value_width"><tr><th>offset</th>
<th class="hex"> 0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f</th><th>field</th><th>value</th>
<th>meaning</th></tr>$rows</table></body></html>
"""


class Explained:
    """What `explain` shows of a file: rows that are asked for, and bytes of each kind."""

    def __init__(self, source: "Buffer", tensor: "Optional[str]" = None,
                 start: int = 0) -> None:
        self.source = source
        self.fmt = detect_format(source)
        found, self.file, self.error = read_fields(self.fmt, Recorder(source))
        self.fields: "List[Field]" = list(found)
        self.sums: "Dict[str, int]" = Map.fromkeys(FIELD_KINDS, 0)
        reach = 0
        shown = []
        for field in self.fields:
            end = field.offset + field.nbytes
            # Shared bytes count once.
            self.sums[field.kind] += max(0, end - max(field.offset, reach))
            reach = max(reach, end)
            is_asked = tensor in (None, field.tensor) and end > start
            if is_asked or field.kind == "fault":
                shown.append(field)
        self.rows = list(rows_of(shown))


def shards_message(found: Explained) -> str:
    """Return where the tensors lie of which a file is the index; "" of other files."""
    if found.file is None or found.file.shards is None:
        return ""
    tensors = plural(len(found.file), "tensor")
    names = found.file.attrs["shards"]
    shards = plural(len(names), "file")
    return f"its {tensors} lie in {shards} beside it: explain {join_names(names)}"


def rows_of(fields: "List[Field]") -> "Iterator[Tuple[Field, str, str, str]]":
    """Yield (field, name inside of the field around, value, meaning)."""
    around: "Dict[int, str]" = {}  # names by depth
    for field, after in zip(fields, fields[1:] + fields[-1:]):
        name = name_within(field, around.get(field.depth - 1, ""))
        around[field.depth] = field.name
        # A table of FlatBuffers is not in the names inside of it.
        if field.name.endswith(".table"):
            around[field.depth] = field.name[:-6]
        meaning = field.doc
        if after.depth > field.depth and field.tensor is not None and field.value != 0:
            owner = truncate(field.tensor, TRAIL_WIDTH)
            if owner not in field.name:
                meaning += ", of " + safe_str(owner)
        if field.target is not None:
            meaning += f" -> 0x{field.target:x}"
        yield field, safe_str(name), value_text(field), meaning


def name_within(field: Field, around: str) -> str:
    """Return the name of a field, without that of the field around it."""
    name = field.name
    if around and name.startswith(around) and name != around:
        return name[len(around):].lstrip(".")
    # Its middle was cut out.
    if len(name) == TRAIL_WIDTH:
        return "..." + name[-40:]
    # tensors[0].x is shown as [0].x.
    if field.depth:
        return name[max(0, name.find("[")):]
    return name


def value_text(field: Field) -> str:
    """Return the value of a field as it is shown."""
    if field.kind in ("padding", "unused", "unreached"):
        return plural(field.nbytes, "byte")
    if field.kind == "data":
        # A role of a file is any text.
        return safe_str(str(field.value))
    if field.value is None:
        return ""
    return short_repr(field.value, 40)


def doc_of(fmt: Any) -> str:
    """Return the docstring of a format or a codec, which draws its layout."""
    from inspect import cleandoc
    return cleandoc(fmt.__doc__
                    or "Its layout is drawn in its docstring, which a copy or -OO drops.")


def hex_of(data: bytes) -> str:
    """Return bytes as digits: 00 1f ff."""
    return " ".join(["%02x" % byte for byte in data])


def make_page(found: Explained) -> "Tuple[str, str]":
    """Return the page of a file, and how many fields it shows."""
    from string import Template
    rows = found.rows
    picked = rows[:PAGE_ROWS] + rows[PAGE_ROWS:][-PAGE_ROWS:]
    left = len(rows) - len(picked)
    summary = plural(len(picked), "field")
    facts = f"{found.fmt.TITLE}, {found.source.nbytes:,} bytes"
    if left:
        summary += f", {left} left out"
        facts += (f"; {left} fields in the middle are left out: for a page of them, "
                  f"--from 0x{rows[PAGE_ROWS][0].offset:x} or --tensor NAME")
    fields = [row[0] for row in rows]
    tensors = ""
    if not shards_message(found):
        tensors = page_tensors([field for field in fields if field.kind == "data"])
    # Fields and values are as wide as their longest words, where there is room.
    field_widths = [widest_word(row[1]) + 2 * row[0].depth for row in picked]
    value_width = max([widest_word(row[2]) for row in picked], default=0)
    field_width = min(max(field_widths, default=0), max(24, 44 - value_width))
    page = Template(PAGE).substitute(
        title=html_escape(safe_str(os.path.basename(found.source.path or "the data"))),
        facts=html_escape(facts, MAX_LINE),
        key=page_key(found),
        format=found.fmt.TITLE,
        banner=page_banner(found),
        strip=page_strip(fields),
        layout=page_layout(found),
        tensors=tensors,
        field_width=field_width,
        value_width=min(44 - field_width, value_width),
        rows=page_rows(found.source, picked))
    return page.encode("ascii", "xmlcharrefreplace").decode(), summary


def page_key(found: Explained) -> str:
    """Return what the colours mean, and how many bytes have each."""
    text = ""
    for kind, count in found.sums.items():
        if count:
            percent = 100 * count / found.source.nbytes
            text += (f'<span class="{kind}"><i></i><b>{kind}</b>, {FIELD_KINDS[kind][0]}: '
                     f"{count:,} bytes ({percent:.1f} %)</span>")
    return text


def with_breaks(text: str) -> str:
    """Return escaped text with the places where a long name may be broken.

    They are behind a dot or `/`, and behind `_` where more than 24 letters are between. A place is
    an empty <i>, which the style fills with a space of no width: who copies a name has no space.
    """
    import re

    def break_long(found: Any) -> str:
        return str(found.group()).replace("_", "_<i></i>")
    text = re.sub(r"([./])(?=[A-Za-z_])", r"\1<i></i>", text)
    return re.sub(r"[^\s<>./]{25,}", break_long, text)


def widest_word(text: str) -> int:
    """Return how many letters are between blanks, or places of with_breaks(), at most."""
    import re
    return 1 + max(map(len, re.split(r"\s|[./](?=[A-Za-z_])", text)))


def link(offset: int) -> str:
    return f'<a href="#0x{offset:x}">0x{offset:x}</a>'


def page_banner(found: Explained) -> str:
    """Return what is wrong with a broken file, and where the tensors of an index are."""
    text = ""
    shards = shards_message(found)
    if shards:
        text = '<p class="banner structure">This is an index; '
        text += html_escape(shards, MAX_LINE) + "</p>"
    for field in found.fields:
        if field.kind == "fault":
            text += (f'<p class="banner fault"><b>This file is broken: '
                     f"{with_breaks(html_escape(field.doc, MAX_LINE))}.</b> The fault is at "
                     f"{link(field.offset)}, {with_breaks(html_escape(field.name))}; "
                     f"{found.sums['unreached']:,} bytes were not read.</p>")
    return text


def page_layout(found: Explained) -> str:
    """Return the drawn layout; in front of each row where it is in this file, if it is
    there.

    A row begins with an offset, `end-N`, or the name or the kind of a field.
    """
    import re
    nbytes = found.source.nbytes
    places: "Dict[str, int]" = {}
    # The first one wins.
    for field in reversed(found.fields):
        at = field.offset
        places[field.kind] = places[str(at)] = places[f"end-{nbytes - at}"] = at
        places[field.name] = at
        # Where the file is cut there is none.
        if "offset" in field.name and isinstance(field.value, int):
            places[field.name] = field.value
    lines = []
    for line in doc_of(found.fmt).split("\n"):
        label = re.match(r"(\S.{0,11}?)(?:  +| +(?==))", line)
        at = places.get(label.group(1), -1) if label else -1
        place = " " * 12
        if 0 <= at < nbytes:
            place = link(at) + " " * (12 - len(f"0x{at:x}"))
        lines.append(place + html_escape(line, MAX_LINE) if line else "")
    return "\n".join(lines)


def page_tensors(data: "List[Field]") -> str:
    """Return the list of tensors: a row for the data of each."""
    count = f"{plural(len(data), 'range')} of tensors"
    if len(data) > PAGE_ROWS:
        count += f", {PAGE_ROWS} shown"
    if len(data) > PAGE_LINES:
        count += "; the list scrolls"
    text = (f'<details open><summary>{count}</summary><section class="scroll" tabindex="0">'
            "<table><tr><th>name</th><th>dtype, shape</th><th>bytes</th><th>at</th>"
            "<th>first values</th></tr>")
    for field in data[:PAGE_ROWS]:
        name = field.name[len("data "):]
        text += (f'<tr class="data"><td>{with_breaks(html_escape(safe_str(name)))}</td>'
                 f'<td>{html_escape(field.value)}</td><td class="n">{field.nbytes:,}</td>'
                 f'<td class="n">{link(field.offset)}</td>'
                 f"<td>{html_escape(field.doc)}</td></tr>\n")
    return text + "</table></section></details>"


def page_strip(fields: "List[Field]") -> str:
    """Return parts of the file: tensors, neighbours of one kind, or else equal spans."""
    from itertools import groupby
    if not fields:
        return ""
    span = 1 + fields[-1].offset // PAGE_PARTS
    parts = [list(group) for _, group in groupby(fields, neighbourhood)]
    if len(parts) > PAGE_PARTS:
        parts = [list(group) for _, group
                 in groupby(fields, lambda field: field.offset // span)]
    strip = ""
    for part in parts:
        largest = max(part, key=lambda field: field.nbytes)
        start = part[0].offset
        size = part[-1].offset + part[-1].nbytes - start
        name = largest.kind
        if name == "data":
            name = largest.name[len("data "):]
        about = f"{html_escape(safe_str(name))}\n0x{start:x}, {plural(size, 'byte')}"
        label = about if len(parts) < 20 else ""
        # It is about the cube root, so that all can be seen.
        width = size ** .33
        strip += (f'<a class="{largest.kind}" href="#0x{start:x}" title="{about}" '
                  f'style="--w:{width:.4g}">{label}</a>\n')
    return strip


def neighbourhood(field: Field) -> Any:
    """Return what neighbours in one part of the strip share; data are parts alone."""
    if field.doc == "alignment":
        return "structure"
    return field if field.kind == "data" else field.kind


def page_rows(source: "Buffer", picked: "List[Tuple[Field, str, str, str]]") -> str:
    """Return a row for each field, its bytes in the columns of their offsets."""
    import re
    text = ""
    before = -1
    for field, name, value, meaning in picked:
        at = field.offset
        most = PAGE_BYTES.get(field.kind, 64) - at % 16
        data = bytes(source.read(at, min(field.nbytes, most)))
        blanks = "   " * (at % 16)
        digits = re.sub("(.{47}) ", r"\1\n", blanks + hex_of(data))[len(blanks):]
        lead = 3 * field.lead
        tail = ""
        if field.nbytes > len(data):
            tail = f"\n\u2026 {field.nbytes - len(data):,} more bytes"
        doc = re.sub(r"-&gt; (0x[0-9a-f]+)$", r'<a href="#\1">&rarr;&nbsp;\1</a>',
                     with_breaks(html_escape(meaning, MAX_LINE)))
        place = ""
        # The first field of an offset has its anchor.
        if at > before:
            place = f' id="0x{at:x}"'
            before = at
        text += f"""<tr class="{field.kind}"{place}><td class="at">0x{at:x}</td><td class="hex">{
blanks}<span><i>{digits[:lead]}</i>{digits[lead:]}</span>{tail}</td><td class="name"
style="--d:{field.depth}">{with_breaks(html_escape(name))}</td><td>{
with_breaks(html_escape(value))}</td><td>{doc}</td>
</tr>"""
    return text


# -- [14b] vendor ------------------------------------------------------------------------
#
# A copy has what its users call (CALLS), what that uses, and so on. What is of a part that
# the copy lacks (PARTS) is left out: in its place stands its stand-in of [14c], else a name
# that raises when it is called. make_copy() does it in steps: the text is split into Pieces,
# those that are reached are found, the lines of all others are cut, and what the text says
# of itself is changed.

WHOLE = "vendor"  # a part that only the whole file has: copies are made of it
# What `--with` takes -> the sections and names that are of it, or of several, alone.
PARTS: "Dict[str, List[str]]" = {
    "load": [],
    "fast": ["gather", "fits_schema", "fold_crc32c", "has_special_ints", "read_array", "read_map",
             "read_rows", "without_gc"],
    "save": ["[10g] other copies", "[8b] values: tensor()", "[9g] work", "[8c] save",
             "[9h] composites", "[9m] safe saving", "cbor_float", "fold_crc32c",
             "ZTensor.COMPONENT"],
    "access": ["keep_access", "list_of_access"],
    "digests": ["[9l] digests", "check_stored"],
    "casts": ["[9a] float8", "[9b] casts", "Tensor.astype"],
    "zstd": ["[5e] zstd", "Tensor.decoded", "Tensor.iter_decoded"],
    "sparse": ["[6e] sparse", "ZTensor.open_sparse", "ZTensor.COMPONENT"],
    "quantized": ["QUANT_SCHEME", "QuantPlan", "Quantized", "make_quantized"],
    "arrays": ["[9c] arrays", "Tensor.__array__", "Tensor.__dlpack__", "Tensor.__dlpack_device__",
               "Tensor.__jax_array__", "Tensor.__buffer__", "is_installed"],
    "pickles": ["Buffer.__reduce__", "Buffer.__deepcopy__", "Tensor.__reduce__",
                "File.__reduce__", "File.__deepcopy__", "File.__copy__",
                "ShardedFile.__reduce__", "Composite.__reduce__", "open_pickled",
                "load_again", "process_lock"],
    "shards": ["[10f] shards", "is_json", "process_lock"],
    "streams": ["[9d] shared streams"],
    "tools": ["[12a] other files", "[12b] repr and previews", "[13a] places", "[10g] other copies",
              "[9g] work", "[9i] equality", "[13b] explain", "[13c] verify", "[13d] convert",
              "[13e] diff", "[14a] page", "main", "composed", "iter_checksums", "option",
              "stat_source", "dangling_link", "place_of", "write_all", "stat_or_none",
              "metadata_values", "cbor_float", "QUANT_SCHEME", "ZTensor.COMPONENT",
              "[9h] composites"],
    "mag300": ["[10a] mag300"],
    "ztensor2": ["[9k] XXH3", "[10b] ztensor2", "[9h] composites", "hash_blocks", "cbor_float"],
    WHOLE: ["[14b] vendor", "[14c] stand-ins"]}
# What needs a part or a format, whatever part its section is of.
NEEDS = {"check_shards": "shards", "check_neighbours": "shards", "check_shard": "shards",
         "ZTensor.split_sparse": "sparse", "own_sparse": "sparse", "Composite": "ztensor",
         "keep_access": "access", "list_of_access": "access", "check_stored": "digests"}
# What users call of a part.
CALLS = {
    "load": """load detect File Tensor FormatError Unsupported FORMATS left_out keys values items
        get close ndim size itemsize nbytes offset attrs custom strides raw data zero_copy tobytes
        tolist item flat contiguous astype todense components scheme scales dequantize""",
    "save": "save dumps tensor", "tools": " ".join(__all__)}
# A part or a format, words that offer it, and what a copy without it says instead. PARTIAL:
# what only formats have whose index is in front of the data.
PARTIAL = "partial"
OFFERS = (
    ("tools", "`verify`: raise the first error that verify() finds.", ""),
    (PARTIAL, '`partial`: take what is whole of a file that was cut short; '
     'attrs["missing"] names the rest.', ""),
    ("tools", "`watch`: as in convert().", "`watch`(verb, done, total) is called."),
    ("tools", ".todense() or convert(dense=True)", ".todense()"),
    ("tools", "; verify() notes its error", ""),
    ("tools", "# for explain()", ""),
    ("burnrecord", ", `.others`: what else it holds, by name (bytes of no tensor, in a record "
     "of Burn)", ""),
    ("save", "Written as by 0.3.1 and later: sorted by type, then name. Holes", "Holes"),
    ("digests", "; damaged bytes of a source are a FormatError", ""),
    ("access", "are kept, and so are owner, group and mode where the system allows it;",
     "are kept, but neither owner nor group;"),
    ("casts", "`cast`: a dtype for what the format cannot hold, or {old: new}.", ""),
    ("casts", "`dtype` converts, `shape` reshapes.", "`shape` reshapes."),
    ("casts", 'tensor(x).astype("{dtype}") the values',
     "casts, which this copy lacks, the values"))
PLAIN = "plain_"  # how the names of stand-ins begin
# Where files of formats without a magic in front have which bytes.
MARKS = {
    "safetensors": (5, b"\0\0\0{"), "burnrecord": (1, b"\xa8metadata")}
# The lines behind the first of a copy: its version and source, the command, a checksum.
ABOUT = "# A copy of tensorfmt {}, of the file with this SHA-256:\n# {}\n"
MADE_BY = "# made by: tensorfmt vendor OUT.py"
SEAL = "# This is the SHA-256 of all other lines, if nobody has edited them:\n# "


class Piece:
    """A statement of the module, or of a class: its lines, what it defines, and what it
    uses.

    `first`, `last`: its lines, with its decorators and the comment in front of it; `doc`:
    those of a function's docstring. `words`: how PARTS may call it. `parts`: it needs one
    of them, if there are some. `names`, `attributes`: what it uses. `members`: the
    statements of a class.
    """

    def __init__(self, node: "stmt", lines: "List[str]", banner: str,
                 owner: str = "") -> None:
        import ast
        self.defines = defined_names(node)
        self.words = [banner] + [owner + name for name in self.defines]
        self.parts = [NEEDS[word] for word in self.words if word in NEEDS]
        if not self.parts:
            self.parts = parts_with(self.words)
        self.find_lines(node, lines)
        # A class uses what its bases use; each member uses more if it is kept.
        used: "Sequence[AST]" = [node]
        self.members: "List[Piece]" = []
        if isinstance(node, ast.ClassDef) and not owner:
            used = node.bases
            self.members = [Piece(one, lines, "", node.name + ".") for one in node.body]
        self.names, self.attributes = find_names(used)
        is_code = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        # In a class: `__bytes__ = tobytes`.
        if owner and not is_code:
            self.attributes |= self.names
        # `FORMATS += (Mag(),)` is asked for as "Mag()".
        if self.defines in (["FORMATS"], ["GENERATIONS"]) and isinstance(node,
                                                                         ast.AugAssign):
            self.defines = [name + "()" for name in self.names]
        # A table costs little and may be of use, but a Schema of other dtypes only
        # explains.
        call = getattr(getattr(node, "value", None), "func", None)
        self.can_go = is_code or getattr(call, "id", "") == "Schema"

    def find_lines(self, node: "stmt", lines: "List[str]") -> None:
        """Find the lines of the statement, and those of its docstring."""
        import ast
        self.first = node.lineno
        self.last = node.end_lineno or 0
        for decorator in getattr(node, "decorator_list", []):
            self.first = min(self.first, decorator.lineno)
        while is_comment(lines[self.first - 2]):
            self.first -= 1
        self.doc = range(0)
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return
        if ast.get_docstring(node) and node.body[1:]:
            doc = node.body[0]
            self.doc = range(doc.lineno, (doc.end_lineno or 0) + 1)

    def is_lacking(self, absent: "List[str]") -> bool:
        """Return whether copies without these parts lack it."""
        return self.can_go and bool(self.parts) and set(self.parts).issubset(absent)

    def is_called(self, names: "Iterable[str]") -> bool:
        """Return whether it defines one of these names, one of Python's own, or none."""
        for name in self.defines:
            if name in names or name[:2] == name[-2:] == "__":
                return True
        return not self.defines


def parts_with(words: "List[str]") -> "List[str]":
    """Return the parts of which PARTS has one of these words."""
    return [part for part, known in PARTS.items() if not set(known).isdisjoint(words)]


def is_comment(line: str) -> bool:
    """Return whether a line is a comment, and no banner."""
    return line.lstrip().startswith("#") and not line.startswith(("# --", "# =="))


def bound_name(node: "AST") -> "Optional[str]":
    """Return the name that a node of a syntax tree gives to something."""
    import ast
    if isinstance(node, ast.alias):
        return node.asname or node.name.split(".")[0]
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return getattr(node, "name", None)


def defined_names(node: "AST") -> "List[str]":
    """Return the names that a statement defines, also in its branches."""
    import ast
    name = bound_name(node)
    # What a table holds goes with the table.
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        name = getattr(node.value, "id", None)
    if name:
        return [name]
    # The names inside of these are theirs.
    if isinstance(node,
                  (ast.Call, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        return []
    names = []
    for child in ast.iter_child_nodes(node):
        names += defined_names(child)
    return names


def find_names(nodes: "Sequence[AST]") -> "Tuple[Set[str], Set[str]]":
    """Return the names of the module that statements use, and the attributes."""
    import ast
    names: "Set[str]" = set()
    own: "Set[Optional[str]]" = set()
    attributes: "Set[str]" = set()
    for node in nodes:
        for one in ast.walk(node):
            own.add(bound_name(one))
            if isinstance(one, ast.Name):
                names.add(one.id)
            elif isinstance(one, ast.Attribute):
                attributes.add(one.attr)
            elif isinstance(one, ast.Call):
                if getattr(one.func, "id", "") in ("getattr", "hasattr"):
                    attributes.add(getattr(one.args[1], "value", ""))
    return names.difference(own), attributes


def split_source(text: str) -> "List[Piece]":
    """Return the statements of a source text, each with the banner of its section."""
    import ast
    lines = text.split("\n")
    pieces: "List[Piece]" = []
    banner = ""
    last = 0
    for node in ast.parse(text).body:
        for line in lines[last:node.lineno]:
            if line.startswith("# -- ["):
                banner = line.strip("# -")
        last = node.lineno
        pieces.append(Piece(node, lines, banner))
    return pieces


def check_parts(pieces: "List[Piece]") -> None:
    """Raise ValueError for a word of PARTS or a stand-in that stands for nothing."""
    words: "Set[str]" = set()
    for piece in pieces:
        for one in [piece] + piece.members:
            words.update(one.words)
    wanted: "Set[str]" = set(NEEDS).union(*PARTS.values())
    for word in words:
        if word.startswith(PLAIN):
            wanted.add(word[len(PLAIN):])
    unknown = sorted(wanted - words)
    if unknown:
        raise ValueError(f"no section or name {', '.join(unknown)}: see PARTS")


def find_kept(pieces: "List[Piece]", wanted: "List[str]",
              absent: "List[str]") -> "Dict[Piece, Union[Piece, str]]":
    """Return {piece: what a copy has for it} of all that is reached from names.

    That is the piece itself, its stand-in, or the name of the part for which it is left
    out.
    """
    stand_ins = {name: piece for piece in pieces for name in piece.defines}
    kept: "Dict[Piece, Union[Piece, str]]" = {}
    names, attributes = set(wanted), set(wanted)
    # A statement of the module is reached by a name, one of a class by an attribute.
    waiting = [(piece, names) for piece in pieces]
    while True:
        found = [piece for piece, known in waiting if piece.is_called(known)]
        if not found:
            return kept
        for piece in found:
            used: "Optional[Piece]" = piece
            if piece.is_lacking(absent):
                used = stand_ins.get(PLAIN + piece.defines[0])
            if used is None:
                kept[piece] = piece.parts[0]
                continue
            kept[piece] = used
            names.update(used.names)
            attributes.update(used.attributes)
            waiting += [(member, attributes) for member in used.members]
        waiting = [pair for pair in waiting if pair[0] not in kept]


def stub_rows(pieces: "List[Piece]", kept: "Dict[Piece, Union[Piece, str]]",
              indent: str = "") -> str:
    """Return lines which say that the names of pieces are of parts that a copy lacks."""
    names_of: "Dict[str, List[str]]" = {}
    for piece in pieces:
        part = kept.get(piece)
        if isinstance(part, str):
            names_of.setdefault(part, []).extend(piece.defines)
    rows = ""
    for part, names in names_of.items():
        for i in range(0, len(names), 4):
            rows += f"{indent}{' = '.join(names[i:i + 4])} = left_out(\"{part}\")\n"
    return rows


def cut_pieces(lines: "Dict[int, str]", pieces: "List[Piece]",
               kept: "Dict[Piece, Union[Piece, str]]", documented: "List[str]") -> None:
    """Remove lines of pieces that are not kept, and docstrings but of `documented`."""
    for piece in pieces:
        is_kept = kept.get(piece) is piece
        if is_kept and piece.is_called(documented):
            continue
        gone = piece.doc if is_kept else range(piece.first, piece.last + 1)
        for at in gone:
            lines.pop(at, None)


def cut_text(text: str, pieces: "List[Piece]", kept: "Dict[Piece, Union[Piece, str]]",
             documented: "List[str]") -> str:
    """Return what is kept of a text, and lines for what it lacks."""
    source = text.split("\n")
    lines = dict(enumerate(source, 1))
    cut_pieces(lines, pieces, kept, documented)
    for piece in pieces:
        cut_pieces(lines, piece.members, kept, documented)
        lacks = [member for member in piece.members if isinstance(kept.get(member), str)]
        if lacks:
            lines[lacks[0].first] = "\n" + stub_rows(lacks, kept, "    ")
        # Behind left_out() stand the names of all that is left out, then the stand-ins.
        if piece.defines == ["left_out"]:
            new = [stub_rows(pieces, kept)] + list_stand_ins(source, kept)
            lines[piece.last + 1] = "\n\n" + "\n\n".join(new)
    return drop_empty_sections("".join([lines[at] + "\n" for at in sorted(lines)]))


def list_stand_ins(source: "List[str]",
                   kept: "Dict[Piece, Union[Piece, str]]") -> "List[str]":
    """Return the texts of the stand-ins that a copy has, in the order of the source."""
    found: "Set[Piece]" = set()
    for piece, used in kept.items():
        if isinstance(used, Piece) and used is not piece:
            found.add(used)
    return [text_of_stand_in(source, one) for one in sorted(found, key=first_line)]


def first_line(piece: Piece) -> int:
    return piece.first


def drop_empty_sections(text: str) -> str:
    """Return a text without the banners of sections of which nothing is left."""
    import re
    rest = ""
    for section in re.split(r"(?m)^(?=# -- \[)", text):
        if section[:4] != "# --" or re.search(r"(?m)^[^#\s]", section):
            rest += section
    return rest


def text_of_stand_in(source: "List[str]", piece: Piece) -> str:
    """Return a stand-in without its docstring, under the name of what it stands for."""
    text = ""
    for at in range(piece.first, piece.last + 1):
        if at not in piece.doc:
            text += source[at - 1] + "\n"
    return text.replace(PLAIN, "", 1)


def make_copy(text: str, pieces: "List[Piece]", formats: "List[Format]",
              parts: "List[str]") -> str:
    """Return the text of a copy with some formats and parts."""
    import re
    from textwrap import fill
    check_parts(pieces)
    # 1 what users call, and the formats; by which bytes it knows the others
    if "tools" in parts:
        parts = parts + ["digests"]  # which verify() compares
    absent = [part for part in PARTS if part not in parts or part == WHOLE]
    wanted = []
    for part in parts:
        wanted += CALLS.get(part, "").split()
    rows = "\n"
    for fmt in GENERATIONS + FORMATS:
        if fmt in formats or fmt.NAME in parts and find_format(fmt.FAMILY) in formats:
            wanted += [type(fmt).__name__, type(fmt).__name__ + "()"]
            continue
        at, magic = MARKS.get(fmt.NAME) or (0, b"".join(fmt.MAGICS[:1]))
        if magic:
            rows += f"    ({fmt.NAME!r}, {fmt.FAMILY!r}, {at}, {magic!r}),\n"
        absent.append(fmt.NAME)
    # 2 all that these use, and nothing else
    kept = find_kept(pieces, wanted, absent)
    text = cut_text(text, pieces, kept, wanted)
    # 3 what it says of itself, and of what it lacks
    if not [fmt for fmt in formats if fmt.INDEX_FIRST]:
        absent = absent + [PARTIAL]
    text = withdraw_offers(text, absent)
    text = re.sub(r"(?m)^(ABSENT: .* = \[)]", lambda found: f"{found.group(1)}{rows}]",
                  text)
    defined: "Set[str]" = set()
    for piece in kept:
        defined.update(piece.defines)
    public = str([name for name in __all__ if name in defined])
    public = fill("__all__ = " + public, 100, subsequent_indent="    ")
    text = re.sub(r"(?m)^__all__ = \[[^]]*\]", public, text)
    return describe_copy(text, formats, parts)


def withdraw_offers(text: str, absent: "List[str]") -> str:
    """Return a text that offers nothing of the parts which a copy lacks."""
    import re
    for part, words, instead in OFFERS:
        if part in absent:
            # Its lines may be broken at any blank.
            pattern = r"\s+".join(map(re.escape, words.split()))
            # A sentence of a docstring begins a line, or what follows does.
            if words[0] == "`":
                pattern = rf"\s*{pattern}\s*"
                instead = "\n    " + (instead + " ").lstrip()
            text = re.sub(pattern, instead, text)
    return re.sub("(?m) +$", "", text)


def describe_copy(text: str, formats: "List[Format]", parts: "List[str]") -> str:
    """Return the text of a copy with its own docstring and the examples that it can run."""
    import re
    titles = ", ".join([fmt.TITLE for fmt in formats])
    about = ("# ruff: noqa\n# flake8: noqa\n"
             f'"""A copy of tensorfmt, for tensor files: {titles}.\n\n'
             f'load("model{formats[0].SUFFIXES[0]}") maps names to Tensors.\n"""')
    text = re.sub(r'(?s)""".*?"""', lambda found: about, text, count=1)
    if not {"save", "tools"}.issubset(parts):  # which examples ask for
        text = re.sub(r'(?m)\n\n +>>> (?:.*\n)*? +"""', '"""', text)
    text = re.sub("\n{3,}(?= )", "\n\n", re.sub("\n{4,}", "\n\n\n", text))
    text = re.sub("\n\n +# .*(?=\n\n\n)", "", text)  # said of what is gone
    text = re.sub(r"(?m)^(class .*:\n)\n", r"\1", text)
    text = re.sub(r"(?m)^# == .*\n+|^(# -- .*?) -+$", r"\1", text)
    # Names for annotations that it does not use; they are made of those before.
    pattern = r"(?m)^    (?:from \w+ import .*|\w+ = [A-Z]\w+\[.*)\n"
    for line in reversed(re.findall(pattern, text)):
        names = line.partition("import ")[2] or line.partition("=")[0]
        rest = text.replace(line, "", 1)
        uses = "|".join(re.findall(r"\w+", names))
        if not re.search(rf"\b({uses})\b(?! =)", rest):
            text = rest
    return text.rstrip("\n") + "\n"


NO_DIGEST = "unknown: this Python has no hashlib"


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, or that Python lacks it."""
    try:
        return hash_blocks("sha256", [data]).partition(":")[2]
    except Unsupported:
        return NO_DIGEST


def sealed_copy(formats: "List[str]", parts: "List[str]") -> str:
    """Return a copy of this file with lines that say what it is, and its checksum."""
    with open(__file__, "rb") as stream:
        source = stream.read()
    text = source.decode()
    if formats or parts:
        text = copy_with(text, formats, parts)
    command = MADE_BY
    if formats:
        command += " --formats " + ",".join(formats)
    if parts:
        command += " --with " + ",".join(parts)
    return seal_copy(text, ABOUT.format(__version__, sha256_of(source)) + command + "\n")


def copy_with(text: str, names: "List[str]", parts: "List[str]") -> str:
    """Return a copy with formats and parts by name; none: all of them."""
    known = [part for part in PARTS if part != WHOLE]
    for word in parts:
        if word not in known:
            raise TypeError(
                f"--with takes some of {', '.join(known)}, not {short_repr(word)}")
    if sys.version_info < (3, 8):
        raise ValueError("to make a copy with less takes Python 3.8")
    formats = list(FORMATS)
    if names:
        wanted = [find_format(name).FAMILY for name in names]
        formats = [fmt for fmt in FORMATS if fmt.NAME in wanted]
    if parts:
        known = ["load"] + parts
    return make_copy(text, split_source(text), formats, known)


def seal_copy(text: str, about: str) -> str:
    """Return a text with lines behind its first: what it is, and its checksum."""
    first, _, rest = text.partition("\n")
    head = f"{first}\n{about}"
    return f"{head}{SEAL}{sha256_of((head + rest).encode())}\n{rest}"


def read_seal(path: str) -> "Tuple[str, bool]":
    """Return what a copy says of itself ("": it is none), and if it is as it was made.

    An empty file is as good as a copy that nobody has edited.
    """
    with open(path, "rb") as stream:
        data = stream.read().replace(b"\r\n", b"\n")  # git may have changed them
    head, seal, rest = data.partition(SEAL.encode())
    if not seal:
        return "", not data
    digest, _, rest = rest.partition(b"\n")
    about = head.partition(b"\n")[2].decode("ascii", "replace")
    is_known = digest != NO_DIGEST.encode()
    return about, is_known and digest == sha256_of(head + rest).encode()


def check_copy(path: str) -> int:
    """Print whether a copy is as it was made, and by what; return the exit code."""
    if sha256_of(b"") == NO_DIGEST:
        raise Unsupported("to check a copy takes the module hashlib")
    about, is_whole = read_seal(path)
    _, found, options = about.partition(MADE_BY)
    if not found:
        raise TypeError(f"{safe_str(path)}: not a copy that vendor made")
    version = about.split()[5].rstrip(",")
    made = f"it was made by tensorfmt {version}: vendor OUT.py{options.rstrip()}"
    with open(__file__, "rb") as stream:
        is_ours = about.startswith(ABOUT.format(__version__, sha256_of(stream.read())))
    if is_whole and is_ours and sys.version_info >= (3, 8):
        # Who edits a copy can write a new checksum, but not change what this file makes.
        args = parse_arguments(["vendor", path] + options.split())
        text = sealed_copy(split_words(args.formats), split_words(getattr(args, "with")))
        with open(path, encoding="ascii") as copy:
            is_whole = copy.read() == text
    if not is_whole:
        print(f"{safe_str(path)}: edited since {made}")
        return 1
    origin = "this file"
    if not is_ours:
        origin = "another file than this"
    print(f"{safe_str(path)}: as {made}, of {origin}")
    return 0


# -- [14c] stand-ins ---------------------------------------------------------------------
#
# In a copy plain_NAME has the place of NAME, if NAME is of a part that was left out.


def plain_turn_of(stream: Any) -> "Turn":
    return Turn(stream)


def plain_open_stream(source: Any) -> "Buffer":
    """Return all bytes of a stream: Files would have to take turns."""
    if not hasattr(source, "seek"):
        raise no_source(source)
    stream = Stream(source)
    if BOARD:
        return stream
    return Buffer(stream.read(0, stream.nbytes), True)


def plain_stat_source(path: str) -> "os.stat_result":
    return os.stat(path)


def plain_dangling_link(path: str) -> str:
    return ""


def plain_is_json(file: "File") -> bool:
    return False


def plain_unknown_file(head: bytes) -> FormatError:
    what = f"not a tensor file known here; it begins with {safe_repr(head[:8])}"
    return FormatError(what, 0, "magic", check="magic")


def plain_describe_tensor(item: "Tensor") -> str:
    return f"<Tensor {safe_repr(item.name)} {item.dtype} {short_repr(item.shape)}>"


def plain_missing_message(file: "File", name: Any) -> Any:
    return name


def plain_option(argument: str) -> str:
    return argument


def plain_did_you_mean(name: str, names: "Iterable[str]") -> str:
    return ""


def plain_own_tensor(value: Any) -> Any:
    """Return a Tensor, also of another copy as it is: `==` asks for facts alone; else None."""
    return value if hasattr(value, "stored_nbytes") else None


def plain_is_equal(a: "Tensor", b: "Tensor") -> bool:
    if a.dtype != b.dtype or a.shape != b.shape or a.custom != b.custom:
        return False
    try:
        return a.tobytes() == b.tobytes()
    except Unsupported:
        return a.source is b.source and a.name == b.name


def plain_read_again(source: Any, fmt: Any, partial: bool, fault: FormatError) -> Any:
    raise fault


def plain_gather(view: memoryview, first: int, shape: Shape, strides: Shape,
                 itemsize: int) -> Blocks:
    """Yield the row-major bytes row by row; boards and what is reversed: by element."""
    n, step = shape[-1], strides[-1]
    if not n:
        return
    for row in range(count_elements(shape[:-1])):
        at = first
        for count, stride in zip(reversed(shape[:-1]), reversed(strides[:-1])):
            row, index = divmod(row, count)
            at += index * stride
        if BOARD or step < itemsize:
            yield b"".join([bytes(view[i:i + itemsize]) for i in range(at, at + n * step, step)])
            continue
        out = bytearray(n * itemsize)
        for i in range(itemsize):
            out[i::itemsize] = view[at + i:at + n * step:step]
        yield out


def plain_without_gc(function: Any) -> Any:
    return function


def plain_fits_schema(schema: "Schema", value: Any) -> bool:
    for _ in schema.iter_errors(value):
        return False
    return True


def plain_has_special_ints(codec: "Json", text: str) -> bool:
    return True


def plain_read_array(codec: "Cbor", start: int, count: int, at: int,
                     depth: int) -> "Tuple[List[Any], int]":
    codec.enter(start, depth, at, count)
    items = []
    while count:
        if count < 0 and codec.data[at] == 0xFF:
            return items, at + 1
        value, at = codec.parse_item(at, depth + 1)
        items.append(value)
        count -= 1
    return items, at


def plain_read_map(codec: "Cbor", start: int, count: int, at: int,
                   depth: int) -> "Tuple[Facts, int]":
    codec.enter(start, depth, at, 2 * count)
    pairs = Map()
    last_key = b""
    while count:
        if count < 0 and codec.data[at] == 0xFF:
            return pairs, at + 1
        start = at
        key, at = codec.parse_item(at, depth + 1)
        if type(key) is not str or key in pairs:
            codec.check_key(pairs, key, start)
        if codec.strict and codec.data[start:at] <= last_key:
            raise codec.not_strict(start)
        last_key = codec.data[start:at]
        pairs[key], at = codec.parse_item(at, depth + 1)
        count -= 1
    return pairs, at


def plain_read_rows(codec: "MessagePack", at: int, rows: Any) -> "Tuple[List[Any], int]":
    codec.at = at
    values = [codec.take_row(row) for row in rows]
    return values, codec.at


def plain_check_stored(items: Items, watch: Any = None) -> None:
    """Look at nothing: copies without `digests` copy what is damaged."""


def plain_keep_access(file: int, path: str, old: "os.stat_result") -> None:
    """Leave the mode as it was made: narrowed(), so that nobody may do more than before."""


def plain_with_parts(fmt: "ZTensor", tensor: "Tensor", end: int) -> "Tensor":
    return tensor


def plain_fold_crc32c(block: bytes, crc: int) -> "Tuple[bytes, int]":
    return block, crc


def plain_dtype_remedy(fmt: "Format", dtype: str) -> str:
    return '; of lists: tensor(x, "float32")'


def plain_metadata_remedy(fmt: "Format", metadata: Facts) -> str:
    return "metadata={} leaves it out"


def plain_check_work(items: Items, dense: bool = True, written: Any = None) -> None:
    """Ask for nothing: what does not write has no limit."""


def plain_view_of_array(data: Any, name: str, wanted: Any) -> Any:
    if name == "None":
        raise TypeError(f"cannot make a tensor of {type(data).__name__}")
    return left_out("arrays")()


def plain_main(argv: "Optional[List[str]]" = None) -> int:
    print("a copy of tensorfmt to import, without a command line", file=sys.stderr)
    return 2


# -- [15] command line -------------------------------------------------------------------


def describe(error: BaseException, path: "Optional[str]" = None) -> str:
    """Return an error in words of the command line; it names the file."""
    import re
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        if error.filename is not None:
            path = str(error.filename)
        if path is None:
            return text
        if "://" in path:
            text += "; what downloads it can pipe it into `-`"
        return f"{safe_str(path)}: {text}"
    text = str(error)
    if isinstance(error, FormatError):
        text = error.__str__("utf-8")
    if text.endswith("load(stream.read())"):
        text += ", or `-`"
    if isinstance(error, Refusal):
        text = error.args[0]
    # What convert() calls dense=True is --dense here.
    text = re.sub(r"(?m): version='([\d.]+)'", r": --set version=\1", text)
    text = re.sub("(?m)(: |, or )([a-z]+)=True$", r"\1--\2", text)
    return re.sub("(?m)(: |, or )([a-z]+)='(.+)'$", r"\1--\2 \3", text)


def open_input(path: str) -> "Source":
    """Return the path; for "-" a stream of the bytes of standard input."""
    from io import BytesIO
    if path != "-":
        return path
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError("standard input is closed")
    return BytesIO(sys.stdin.buffer.read())


def open_output(path: str) -> "Tuple[Target, SupportsWrite[str]]":
    """Return what to write to, and where to report: never among the bytes."""
    if path != "-":
        return path, sys.stdout
    if sys.stdout.isatty():
        raise TypeError("bytes are not for a terminal: `| xxd` or `> FILE`")
    if sys.stdout.buffer is None:
        raise ValueError("standard output is closed, or takes no bytes")
    sys.stdout.flush()
    return sys.stdout.buffer, sys.stderr


def cell_text(cell: Any) -> str:
    """Return a cell of a table as text; None is a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def write_text(path: str, text: str, summary: str) -> None:
    """Write a page or a copy, but not over a tensor file; "-" is standard output."""
    if os.path.isfile(path) and detect(path):
        raise ValueError(f"{safe_str(path)}: it is a tensor file, which this would replace")
    target, report = open_output(path)
    nbytes = write_out(target, iter([text.encode()]))
    sys.stdout.flush()
    print(f"wrote {safe_str(path)}, {plural(nbytes, 'byte')}, {summary}", file=report)


def terminal_width() -> "Optional[int]":
    """Return how many columns the terminal has that is printed to; None: it is none."""
    from shutil import get_terminal_size
    if not sys.stdout.isatty():
        return None
    return get_terminal_size().columns or 80


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese letters two, marks none."""
    if len(text.encode("utf-8", "replace")) == len(text):
        return len(text)
    from unicodedata import category, east_asian_width
    width = 0
    for letter in text:
        if east_asian_width(letter) in "WF":
            width += 2
        elif category(letter) not in ("Mn", "Me"):
            width += 1
    return width


def cut_middle(text: str, width: int) -> str:
    """Return both ends of a text that takes more columns."""
    short = text
    letters = width
    while text_width(short) > width:
        front = (letters - 3) // 2
        short = text[:front] + "..." + text[front + 3 - letters:]
        letters -= 1
    return short


def fit_widths(widths: "List[int]", is_text: "List[bool]", room: int) -> None:
    """Make columns of texts narrower where a terminal has no room for the last one, too.

    The first two, offsets and bytes, stay as they are.
    """
    texts = [column for column in range(2, len(widths) - 1) if is_text[column]]
    while texts and sum(widths[:-1]) + 2 * len(widths) + 24 > room:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= 14:
            return
        widths[widest] -= 1


def pad_cells(cells: "List[str]", widths: "List[int]",
              is_text: "List[bool]") -> "List[str]":
    """Return cells as wide as their columns; behind a wider one the next ones are narrower."""
    padded = []
    excess = 0
    for cell, width, is_left in zip(cells, widths, is_text):
        size = width - excess - text_width(cell)
        blanks = " " * size
        excess = max(0, -size)
        if is_left:
            padded.append(cell + blanks)
        else:
            padded.append(blanks + cell)
    return padded


def fit_line(cells: "List[str]", widths: "List[int]", is_text: "List[bool]",
             room: int) -> None:
    """Cut cells where a terminal has no room for the line, none more than it takes.

    First the last one, down to 16 characters, then from the right those that are wider
    than their columns.
    """
    last = len(widths) - 1
    wide = list(enumerate(widths[:-1]))
    for column, least in [(last, 16)] + wide[::-1] + [(last, 8)]:
        line = "  ".join(pad_cells(cells, widths, is_text))
        excess = text_width(line.rstrip()) - room
        if excess <= 0:
            return
        size = max(least, text_width(cells[column]) - excess)
        cells[column] = cut_middle(cells[column], size)


def print_table(rows: "Iterable[Sequence[Any]]", colours: "Sequence[str]" = (),
                room: "Optional[int]" = None) -> None:
    """Print a head and rows of texts and numbers; `room`: columns of a terminal.

    `colours` are those of the third cells.
    """
    texts: "List[List[str]]" = []
    is_text: "List[bool]" = []
    for row in rows:
        # The first row below the head says which columns are numbers, at the right.
        if len(texts) < 2:
            is_text = [isinstance(cell, str) for cell in row]
        texts.append([cell_text(cell) for cell in row])
    widths = []
    for column in range(len(is_text)):
        widest = max([text_width(cells[column]) for cells in texts])
        widths.append(min(24, widest))
    if room is not None:
        fit_widths(widths, is_text, room)
    for i, cells in enumerate(texts):
        if room is not None:
            fit_line(cells, widths, is_text, room)
        cells = pad_cells(cells, widths, is_text)
        if colours:
            cells[2] = f"\033[{colours[i]}m{cells[2]}\033[0m"
        print("  ".join(cells).rstrip())


def clock_text(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02}"


class Progress:
    """Tells a terminal each second how much is done, how fast, how long the rest takes.

    Where nobody calls it, while an index is read say, a thread tells the time. Its line
    stays the last one: what is printed meanwhile stands above it. It ends with the first
    text for a pipe: a pager may show that on the same terminal.
    """

    def __init__(self, output: "Output") -> None:
        from _thread import allocate_lock
        self.output = output
        self.lock = RLock()
        self.end: Any = allocate_lock()
        self.end.acquire()
        self.is_over = False
        self.began = self.now()
        self.called = self.told = self.pass_began = self.began
        self.verb = self.head = "reading"
        self.done = self.done_before = 0
        self.line = ""  # what is shown
        self.is_line_start = True  # of what is printed besides

    @staticmethod
    def now() -> float:
        from time import time
        return time()

    def start(self) -> None:
        """Begin to tell the time."""
        from _thread import start_new_thread
        try:
            start_new_thread(self.tick, ())
        except RuntimeError:  # WebAssembly has no threads
            pass

    def tick(self) -> None:
        """Tell the time where nothing else is told."""
        while not self.end.acquire(timeout=1):
            now = self.now()
            if now - self.called >= 1:
                self.show(f"{self.head}, {clock_text(now - self.began)}")

    def __call__(self, verb: str, done: int, total: int) -> None:
        now = self.called = self.now()
        if verb != self.verb or done < self.done:
            self.verb = verb
            self.pass_began = now
            self.done_before = done
        self.done = done
        if now - self.told < 1:
            return
        self.told = now
        digits = 0 if total >= 10**7 else 1
        self.head = (f"{verb}: {done / 1e6:.{digits}f} of {total / 1e6:.{digits}f} MB, "
                     f"{done / max(total, 1):.0%}")
        text = self.head
        rate = (done - self.done_before) / max(now - self.pass_began, 1e-3)
        if rate > 0:
            text += f", {rate / 1e6:.1f} MB/s, {clock_text((total - done) / rate)} left"
        self.show(text)

    def show(self, text: str) -> None:
        """Show a text in the place of the one before, as far as it fits into a line."""
        from shutil import get_terminal_size
        try:
            size = os.get_terminal_size(self.output.fileno())
        except (AttributeError, OSError, ValueError):
            size = get_terminal_size()
        text = text[:(size.columns or 80) - 1]
        with self.lock:
            if self.is_line_start and not self.is_over:
                self.output.put("\r" + text.ljust(len(self.line)))
                self.output.flush()
                self.line = text

    def clear(self) -> None:
        """Make room for what is printed."""
        with self.lock:
            if self.line:
                self.output.put("\r" + " " * len(self.line) + "\r")
                self.output.flush()
                self.line = ""
                self.told = 0.0

    def print_above(self, output: "Output", text: str) -> "Optional[int]":
        """Write a text to an output on the same terminal, or to a pipe."""
        with self.lock:
            self.clear()
            self.is_over = self.is_over or not output.isatty()
            self.called = self.now()
            self.is_line_start = text.endswith("\n")
            return output.put(text)

    def stop(self) -> None:
        self.is_over = True
        self.end.release()
        self.clear()


def print_list(texts: "Iterable[str]") -> None:
    """Print a list of JSON, item by item; an error ends it."""
    mark = "["
    try:
        for text in texts:
            print(mark, text, sep="", end="")
            mark = ", "
    finally:
        print("[]" if mark == "[" else "]")


def each_file(args: "Namespace") -> int:
    """Run the command for each file, also after a bad one; print JSON."""
    code = 0
    results: "List[Facts]" = []
    for path in args.files:
        try:
            facts = args.call(args, path)
        except (OSError, ValueError) as error:
            facts = {"file": path, "error": describe(error, path)}
            sys.stdout.flush()
            print("error: " + facts["error"], file=sys.stderr)
        if "error" in facts or facts.get("valid") is False:
            code = 1
        results.append(facts)
    if args.json:
        print(to_json(results))
    elif args.call is show_verify and results[1:] and (code or not args.quiet):
        good = len([facts for facts in results if facts.get("valid")])
        bad = len(results) - good
        print(f"\n{len(results)} files: {good} valid, {bad} INVALID")
    return code


MAX_TREE = 30  # lines of `ls --tree`
# The orders of the rows of ls.
ORDERS: "Dict[str, Callable[[Tuple[str, Tensor]], Any]]" = {
    "bytes": lambda pair: -pair[1].stored_nbytes,
    "name": lambda pair: pair[0],
    "offset": lambda pair: (pair[1].offset is None, pair[1].offset)}


def show_ls(args: "Namespace", path: str) -> Facts:
    with load(open_input(path), **args.options) as file:
        items = [(name, file[name]) for name in select_names(file, args.only)]
        if args.sort:
            items.sort(key=ORDERS[args.sort])
        facts = facts_of_file(path, file, items)
        in_shards = file.shards is not None
        if args.tree is not None:
            facts["tree"] = tree_of(items, args.tree)
        elif args.json:
            facts["tensors"] = [facts_of_tensor(*pair) for pair in items[:args.limit]]
            if in_shards:
                for row, (_, item) in zip(facts["tensors"], items):
                    row["shard"] = shard_of(item)
        if not args.json:
            if path is not args.files[0]:
                print()
            title = file.fmt.TITLE
            if in_shards:
                title += ", " + plural(len(file.attrs["shards"]), "shard")
            print_file(facts, title)
            print_tensors(facts, items, args.limit, in_shards)
        return facts


def shard_of(item: Tensor) -> str:
    """Return the name of the file that a tensor lies in."""
    return os.path.basename(item.path or "")


def facts_of_file(path: str, file: File, items: Items) -> Facts:
    """Return what ls says of a file; "differ": on what its shards do not agree."""
    metadata = Map()
    differ = []
    for key, values in metadata_values(file, [name for name, _ in items]).items():
        if len(values) == 1:
            metadata[key] = values[0]
        else:
            differ.append(f"metadata {short_repr(key)}")
    nbytes = file.nbytes
    if file.shards is not None:  # others may be missing
        nbytes = sum([item.stored_nbytes for _, item in items])
    return {"file": path, "format": file.format, "version": file.attrs.get("version"),
            "bytes": nbytes, "attrs": file.attrs, "others": file.others, "metadata": metadata,
            "differ": differ}


def facts_of_tensor(name: str, item: Tensor) -> Facts:
    """Return what ls says of a tensor."""
    return {"name": name, "dtype": dtype_words(item), "shape": item.shape, "size": item.size,
            "encoding": item.encoding, "offset": item.offset, "bytes": item.stored_nbytes,
            "attrs": {**item.attrs, **item.custom}}


def tree_of(items: Items, depth: int) -> "List[Facts]":
    """Return sums by beginnings of names; depth 0: as deep as MAX_TREE allows."""
    if depth:
        return sums_of(items, depth)
    rows = sums_of(items, 1)
    for parts in range(2, 17):
        more = sums_of(items, parts)
        if len(more) > MAX_TREE:
            break
        rows = more
    return rows


def sums_of(items: Items, parts: int) -> "List[Facts]":
    """Return sums by so many parts of names, in which a number is a #."""
    sums: "Dict[str, Facts]" = Map()
    for path, item in items:
        steps = path.split(".", parts)[:parts]
        name = ".".join(["#" if step.isdigit() else step for step in steps])
        if name not in sums:
            sums[name] = {"name": name, "tensors": 0, "elements": 0, "bytes": 0,
                          "dtypes": Map()}
        row = sums[name]
        row["tensors"] += 1
        row["elements"] += item.size
        row["bytes"] += item.stored_nbytes
        dtype = dtype_words(item)
        row["dtypes"][dtype] = row["dtypes"].get(dtype, 0) + 1
    return list(sums.values())


def rounded(number: int) -> str:
    """Return a large number of bytes for people: (514.8 MB)."""
    for unit, size in ("TB", 10**12), ("GB", 10**9), ("MB", 10**6):
        if number >= size:
            return f" ({number / size:.1f} {unit})"
    return ""


def print_file(facts: Facts, title: str) -> None:
    """Print the size, attributes and metadata of a file."""
    attrs = facts["attrs"]
    nbytes = facts["bytes"]
    words = [f"{safe_str(facts['file'])}: {title}", plural(nbytes, "byte") + rounded(nbytes)]
    for key, value in attrs.items():
        if key != "version" and isinstance(value, (str, int)):
            words.append(f"{safe_str(key)} {safe_str(str(value))}")
    print(truncate(", ".join(words), MAX_LINE))
    print_pairs("metadata", facts["metadata"])
    print_pairs("scalar", attrs.get("scalars") or {})
    print_pairs("bytes", facts["others"])
    if facts["differ"]:
        print("the files do not agree on " + join_names(facts["differ"], 20))
    print()


def print_pairs(what: str, pairs: Facts) -> None:
    """Print the first keys and values of a map."""
    for key, value in list(pairs.items())[:20]:
        print(f"{what} {safe_str(key)} = {short_repr(value)}")
    if len(pairs) > 20:
        print(f"{len(pairs) - 20} more, see --json")


def print_tensors(facts: Facts, items: Items, limit: "Optional[int]",
                  in_shards: bool) -> None:
    """Print a row for each tensor, or for each part of names, and their sums."""
    nbytes = sum([item.stored_nbytes for _, item in items])
    size = sum([item.size for _, item in items])
    if "tree" in facts:
        if limit is None:
            limit = MAX_TREE
        count = len(facts["tree"])
        rows = tree_rows(facts["tree"][:limit])
        total = [nbytes, size, len(items), "", "total"]
    else:
        count = len(items)
        rows = tensor_rows(items[:limit], in_shards)
        total = [nbytes, "", plural(len(items), "tensor"), plural(size, "element"), ""]
        if in_shards:
            total.append("")
    if limit is not None and count > limit:
        rows.append([""] * (len(total) - 1) + [f"{count - limit} more"])
    rows.append(total)
    print_table(rows, room=terminal_width())
    for name in facts["attrs"].get("missing", ()):
        print(f"not whole: {safe_str(name)}")


def tree_rows(tree: "List[Facts]") -> "List[List[Any]]":
    """Return a head and a row for each part of names."""
    rows: "List[List[Any]]" = [["bytes", "elements", "tensors", "dtype", "name"]]
    for row in tree:
        dtypes = join_names(list(row["dtypes"]), 3)
        name = safe_str(row["name"])
        rows.append([row["bytes"], row["elements"], row["tensors"], dtypes, name])
    return rows


def tensor_rows(items: Items, in_shards: bool) -> "List[List[Any]]":
    """Return a head and a row for each tensor."""
    head = ["bytes", "offset", "dtype", "shape"]
    if in_shards:
        head.append("shard")
    rows: "List[List[Any]]" = [head + ["name"]]
    for name, item in items:
        words = dtype_words(item)
        if item.encoding != "raw":
            words += " " + safe_str(item.encoding)
        row = [item.stored_nbytes, item.offset, words, short_repr(item.shape)]
        if in_shards:
            row.append(safe_str(title_of_shard(shard_of(item))))
        rows.append(row + [safe_str(name)])
    return rows


def show_get(args: "Namespace") -> None:
    with load(open_input(args.file), **args.options) as file:
        picked = pick_all(file, args.names, args.file)
        is_one = [title for title, _, _ in picked] == args.names[:1]
        written: "Optional[Callable[[Tensor], int]]" = None
        if not args.stats and not args.raw:
            written = count_json if args.json else count_preview
        check_work([(title, item) for title, item, _ in picked], written=written)
        items: "List[Tuple[str, Tensor]]" = []
        for title, item, key in picked:
            if key is not None:
                item = take_part(item, key, args.file)
            items.append((title, item))
        if args.stats:
            show_stats(items, is_one, args.json, args.watch)
        elif not args.names:
            raise TypeError("get needs the NAME of a tensor (`ls` lists them), or --stats")
        elif args.raw:
            if not is_one:
                raise TypeError("--raw takes one NAME (`ls` lists them), and no pattern")
            write_raw(items[0][1], args.watch)
        elif args.json:
            print_values(items, is_one)
        else:
            print_previews(items, is_one)


def print_previews(items: Items, is_one: bool) -> None:
    """Print the first and last values of tensors."""
    for name, item in items:
        if not is_one:
            print(f"{safe_str(name)}: {type_and_shape(item)}")
        print(preview(item))
        if item.size > SHOWN:
            print(f"{plural(item.size, 'element')}: --json prints all, 'NAME[:9]' a part")


def count_json(item: Tensor) -> int:
    """Return how many characters the values are in JSON, at most; 0 without any."""
    itemsize = item.itemsize
    if itemsize is None or item.unreadable or item.is_sparse and item.nbytes > MAX_DENSE:
        return 0
    number = 3 * itemsize + 4  # int64: -9223372036854775808 and a comma
    if str(item.dtype)[:3] not in ("int", "uin", "boo"):
        number = 26  # -2.2250738585072014e-308
    lists = 0
    count = 1  # of lists beside one another
    for n in item.shape:
        lists += count
        count = count_elements((count, n))
    return number * item.size + 4 * lists


def count_preview(item: Tensor) -> int:
    """Return how many characters preview() makes of the values, at most."""
    return min(count_json(item), 40000)


def print_values(items: Items, is_one: bool) -> None:
    """Print tensors as JSON, one by one; what is damaged ends the list."""
    for _, item in items:
        item.check_readable()
    texts = (to_json({"name": name, "dtype": item.dtype, "shape": item.shape,
                      "values": item.tolist()}) for name, item in items)
    if is_one:
        print(next(texts))
    else:
        print_list(texts)


def write_raw(item: Tensor, watch: Watch) -> None:
    """Write the bytes of values to standard output; of unknown ones those stored."""
    blocks = item.iter_bytes()
    if item.unreadable and not item.is_decodable():
        blocks = item.iter_stored()
    target, _ = open_output("-")
    meter = Meter(watch, "writing", item.decoded_nbytes or item.nbytes)
    write_all(target, meter.over(map(memoryview, blocks)))


def pick_all(file: File, names: "List[str]",
             path: str) -> "List[Tuple[str, Tensor, Any]]":
    """Return (title, tensor, index or None) of each NAME, or of all tensors."""
    if not names:
        return [(name, item, None) for name, item in file.items()]
    picked = []
    for name in names:
        picked += pick(file, name, path)
    return picked


def pick(file: File, name: str, path: str) -> "List[Tuple[str, Tensor, Any]]":
    """Return (title, tensor, index or None) of NAME, NAME[0:2], or a pattern."""
    if name in file and not is_pattern(name):
        return [(name, file[name], None)]
    owner, _, keys = name.rpartition("[")
    if owner in file and keys.endswith("]"):
        try:
            return [(name, file[owner], parse_index(keys[:-1]))]
        except ValueError as error:
            raise ValueError(f"{safe_str(path)}: {error}")
    found = names_like(file, name)
    if not found:
        whole = name
        if keys.endswith("]"):
            whole = owner
        raise ValueError(f"{safe_str(path)}: {missing_message(file, whole)}")
    return [(name, file[name], None) for name in found]


def take_part(item: Tensor, key: "Tuple[Any, ...]", path: str) -> Tensor:
    """Return a part of a tensor."""
    try:
        part: Tensor = item[key]
        return part
    except FormatError:
        raise
    except (ValueError, IndexError) as error:
        raise ValueError(f"{safe_str(path)}: {error}")


def parse_index(text: str) -> "Tuple[Any, ...]":
    """Return what stands in the brackets of t[0:2, ..., -1]."""
    try:
        keys = [parse_key(part) for part in text.split(",")]
    except (ValueError, TypeError):  # TypeError: more than three in a slice
        what = f"[{safe_str(text)}] is not an index, as in Python"
        raise ValueError(f"{what}: [0, 2:8:2, ..., -1]")
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    return tuple(keys)


def parse_key(text: str) -> Any:
    """Return one of the keys of an index: a number, a slice, or `...`."""
    if text.strip() == "...":
        return Ellipsis
    if ":" not in text:
        return int(text)
    ends = []
    for end in text.split(":"):
        ends.append(int(end) if end.strip() else None)
    return slice(*ends)


def show_stats(items: Items, is_one: bool, as_json: bool, watch: Watch) -> None:
    """Print statistics of tensors as they come; raise the first error at the end."""
    damage: "List[FormatError]" = []
    rows = iter_stats(items, damage, watch)
    if not as_json:
        print_stats(rows)
    elif is_one:
        print(to_json(next(rows)))
    else:
        print_list(map(to_json, rows))
    if damage:
        raise damage[0]


def iter_stats(items: Items, damage: "List[FormatError]",
               watch: Watch) -> "Iterator[Facts]":
    """Yield statistics of each tensor; add the errors of bad ones to `damage`."""
    meter = Meter(watch, "reading", sum([item.nbytes for _, item in items]))
    for name, item in items:
        row: Facts = {"name": name, "dtype": dtype_words(item), "shape": item.shape}
        try:
            row.update(stats_of(item, meter))
        except FormatError as error:
            row["error"] = error.what
            if not isinstance(error, Unsupported):
                damage.append(error)
        yield row


def print_stats(rows: "Iterable[Facts]") -> None:
    line = "{:>12}  {:>12}  {:>12}  {:>6}  {:>8}  {}"
    keys = ["min", "max", "mean", "nan", "infinite"]
    head = line.format(*keys, "name") + "\n"
    room = terminal_width()
    for row in rows:
        name = safe_str(row["name"])
        if "error" in row:
            name += f" ({safe_str(row['error'], 80)})"
        if room is not None:
            name = cut_middle(name, max(16, room - 60))
        cells = [cell_text(row.get(key)) for key in keys]
        print(head + line.format(*cells, name), flush=True)
        head = ""
    print(head, end="")


def stats_of(item: Tensor, meter: Meter) -> Facts:
    """Return min, max, mean of finite elements (or None), and counts of others."""
    count = nans = 0
    total = 0.0
    low, high = INFINITY, -INFINITY
    item.check_readable()
    for part in iter_parts(meter.over(item.iter_bytes()), PART):
        values = unpack_values(str(item.dtype), part)
        # Otherwise NaN or infinity are among them, or the sum is over the largest number.
        if not -INFINITY < sum(values) < INFINITY:
            nans += len([value for value in values if value != value])
            values = [value for value in values if -INFINITY < value < INFINITY]
        low = min([low] + list(values))
        high = max([high] + list(values))
        count += len(values)
        total += sum(values)
    facts: Facts = {"min": None, "max": None, "mean": None}
    if count:
        facts = {"min": low, "max": high, "mean": total / count}
    facts["nan"] = nans
    facts["infinite"] = item.size - count - nans
    return facts


def show_explain(args: "Namespace") -> None:
    source = open_source(open_input(args.file), args.mmap)
    try:
        found = Explained(source, args.tensor, getattr(args, "from"))
        if found.error is None and args.tensor is not None and not found.rows:
            near = did_you_mean(args.tensor, {field.tensor or "" for field in found.fields})
            raise ValueError(f"{safe_str(args.file)}: no tensor {safe_repr(args.tensor)}{near}")
        if args.html:
            write_text(args.html, *make_page(found))
        elif args.json:
            print_list(json_rows(found))
        else:
            print_fields(found, is_coloured(args.color))
    finally:
        source.close()
    if found.error is not None:
        raise found.error


def is_coloured(choice: str) -> bool:
    """Return whether --color asks for colours: "auto" for those of a terminal."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def most_text(source: "Buffer") -> int:
    """Return how many characters of fields may be printed, but for the last row."""
    return 64 * source.nbytes + 98000


def json_rows(found: Explained) -> "Iterator[str]":
    """Yield the rows as JSON; where they are too long, how many are left."""
    allowed = most_text(found.source)
    for number, row in enumerate(found.rows):
        field = row[0]
        facts = {key: getattr(field, key) for key in Field.__slots__}
        if field.tensor is not None:
            facts["tensor"] = truncate(field.tensor, TRAIL_WIDTH)
        text = to_json(facts)
        allowed -= len(text) + 2
        if allowed < 0:
            left = dict.fromkeys(facts)
            left.update(kind="left out", offset=field.offset, doc=fields_left(found, number))
            yield to_json(left)
            return
        yield text


def fields_left(found: Explained, number: int) -> str:
    """Return how many rows are left from a number on, and what shows them."""
    left = plural(len(found.rows) - number, "more field")
    return f"{left}: --from 0x{found.rows[number][0].offset:x}"


MAX_INDENT = 32  # levels that are shown by blanks


def print_fields(found: Explained, coloured: bool) -> None:
    allowed = most_text(found.source)
    room = terminal_width()
    nbytes = 8
    if room is not None and room < 100:
        nbytes = 4
    lines = [["offset", "bytes", "field", "value", "meaning"]]
    colours = ["0"]
    for number, (field, name, value, meaning) in enumerate(found.rows):
        if field.kind == "fault":
            meaning = "<- here: " + meaning
        offset = f"0x{field.offset:x}"
        indent = "  " * min(field.depth, MAX_INDENT)
        digits = digits_of(found, field, nbytes)
        line = [offset, digits, indent + name, value, meaning]
        # A cell is at most so wide in the table.
        cells = [max(len(cell), 24) + 2 for cell in line[:-1]]
        allowed -= sum(cells) + len(meaning)
        if allowed < 0:
            lines.append([offset, "", fields_left(found, number), "", ""])
            colours.append("0")
            break
        lines.append(line)
        colours.append(FIELD_KINDS[field.kind][1])
    if not coloured:
        colours = []
    print_table(lines, colours, room)
    if found.error is None:
        sums = [f"{nbytes} {kind}" for kind, nbytes in found.sums.items() if nbytes]
        print(f"{plural(found.source.nbytes, 'byte')}: " + ", ".join(sums))
    if shards_message(found):
        print(shards_message(found))


def digits_of(found: Explained, field: Field, nbytes: int) -> str:
    """Return the first bytes of a field in hex, behind `..` those of the value of a key.

    `nbytes` have room; where there are more, `..` stands for the last one of them.
    """
    left = max(0, field.nbytes - field.lead)
    start = field.offset + field.lead
    digits = hex_of(bytes(found.source.read(start, min(left, nbytes))))
    if field.lead > 0:
        digits = ".. " + digits
    if left > nbytes or len(digits) >= 3 * nbytes:
        digits = digits[:3 * nbytes - 4] + " .."
    return digits


def show_verify(args: "Namespace", path: str) -> Facts:
    report = verify(open_input(path), deep=args.deep, watch=args.watch, **args.options)
    if not args.json and not args.quiet:
        if path != args.files[0]:
            print()
        print(report)
    elif not args.json and report.errors:
        print("\n".join(map(describe, report.errors)))
    return dict(report.facts(), file=path)


def what_helps(args: "Namespace", error: ValueError) -> str:
    """Return the command with which convert writes, as the end of a message, or ""."""
    from shlex import quote
    if not isinstance(error, Refusal) or not error.needed:
        return ""
    name = os.path.basename(sys.argv[0])
    program = [name]
    if name == "__main__.py" or __name__ == "__main__" and __spec__ is not None:
        program = ["python3", "-m", "tensorfmt"]
    elif "." in name:
        program = ["python3", sys.argv[0]]
    words = args.words
    at = len(words)
    if "--" in words:
        at = words.index("--")
    words = program + words[:at] + option_words(error.needed, args) + words[at:]
    line = " ".join([quote(word) for word in words])
    if len(line) > MAX_LINE or line != safe_str(line, MAX_LINE):
        return ""
    return f"; this writes it:\n  {line}"


def option_words(needed: Facts, args: "Namespace") -> "List[str]":
    """Return arguments of convert() as words of the command line, but those that it has."""
    words = []
    for key, value in needed.items():
        if key == "version":
            words += ["--set", f"version={value}"]
        elif key == "cast":
            if isinstance(value, str):
                value = {None: value}
            pairs = [f"{old}={new}" if old else new for old, new in value.items()]
            words += ["--cast", ",".join(pairs)]
        elif key == "rename":
            for old, new in value.items():
                pair = (typed_name(old), new)
                if pair not in args.rename:
                    words += option_pair("--rename", "=".join(pair))
        elif key == "exclude":
            for name in value:
                if name not in (args.exclude or ()):
                    words += option_pair("--exclude", name)
        elif value is True:
            words.append(f"--{key}")
        else:
            words += [f"--{key}", value]
    return words


def option_pair(option: str, value: str) -> "List[str]":
    """Return an option and its value, as one word where the value looks like an option."""
    if value.startswith("-"):
        return [f"{option}={value}"]
    return [option, value]


def split_words(texts: "List[str]") -> "List[str]":
    """Return the words of an option: several with commas, and more than once."""
    words: "List[str]" = []
    for text in texts:
        words += text.split(",")
    return words


def show_convert(args: "Namespace") -> None:
    cast: "Dict[Optional[str], str]" = {}
    for word in split_words(args.cast):
        old, _, new = word.rpartition("=")
        cast[old or None] = new
    target, report = open_output(args.target)
    with load(open_input(args.source), **args.options) as file:
        try:
            summary = convert(
                file, target, format=args.format, cast=cast, only=args.only,
                exclude=args.exclude, rename=Map(args.rename), dense=args.dense, drop=args.drop,
                metadata=args.metadata, meta=Map(args.meta), watch=args.watch, **dict(args.set))
        except ValueError as error:
            advice = what_helps(args, error)
            raise ValueError(f"{describe(error)}\nnothing written{advice}")
    sys.stdout.flush()  # what it still holds is not yet written
    if args.json:
        print(summary.to_json(), file=report)
        return
    for line in str(summary).split("\n")[:-1]:
        print("  " + line, file=report)
    print(f"wrote {safe_str(args.target)}, {plural(summary.nbytes, 'byte')}", file=report)


def show_diff(args: "Namespace") -> bool:
    try:
        found = diff(
            open_input(args.a), open_input(args.b), rtol=args.rtol, atol=args.atol, only=args.only,
            exclude=args.exclude, rename=Map(args.rename), any_dtype=args.any_dtype,
            watch=args.watch, **args.options)
    except (OSError, ValueError) as error:  # exit code 2: neither the same nor different
        raise TypeError(describe(error))
    if args.json:
        print(to_json(dict(vars(found), differences=found.differences[:args.limit])))
    else:
        print(found.text(args.limit))
    return bool(found)


def list_codecs() -> "Dict[str, Any]":
    """Return the codecs of the formats here, by name."""
    codecs = [fmt.CODEC for fmt in FORMATS + GENERATIONS if fmt.CODEC]
    return Map([(codec.WORD, codec) for codec in codecs])


def show_formats(args: "Namespace") -> None:
    from textwrap import wrap
    codecs = list_codecs()
    if args.name in codecs:
        codec = codecs[args.name]
        text = doc_of(codec)
        if args.json:
            text = to_json([{"codec": codec.WORD, "title": codec.NAME, "layout": text}])
        print(text)
        return
    formats = list(FORMATS)
    if args.name is not None:
        try:
            formats = [find_format(args.name)]
        except ValueError as error:
            raise ValueError(f"{error}; codecs: {', '.join(codecs)}")
    if args.json:
        print(to_json([{"format": fmt.NAME, "title": fmt.TITLE, "suffixes": fmt.SUFFIXES,
                        "dtypes": list(fmt.DTYPES), "holds": fmt.HOLDS, "save": fmt.OPTIONS}
                       for fmt in formats]))
    elif args.name is None:
        rows = [["format", "suffix", "holds, besides tensors"]]
        for fmt in formats:
            first, *others = wrap(fmt.HOLDS, 50, break_on_hyphens=False) or [""]
            rows.append([fmt.NAME, fmt.SUFFIXES[0], first])
            rows += [["", "", line] for line in others]
        print_table(rows)
        print(f"\n`formats {formats[0].NAME}` shows its layout, dtypes and options")
    else:
        formats += [later for later in GENERATIONS if later.FAMILY == formats[0].NAME]
        for fmt in formats:
            print(doc_of(fmt) + "\n")
            if fmt.DTYPES:
                text = "  dtypes: " + " ".join(fmt.DTYPES)
                print("\n".join(wrap(text, 78, subsequent_indent="    ")))
            for pair in fmt.OPTIONS.items():
                print("  --set %s: %s" % pair)
            if fmt.CODEC:
                print(f"  its index is {fmt.CODEC.NAME}, see `formats {fmt.CODEC.WORD}`")
            print()


def show_demo(args: "Namespace") -> None:
    """Write a file of each format, read it back, show its first fields."""
    from tempfile import TemporaryDirectory
    with TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for fmt in FORMATS:
            show_small_file(fmt, folder)
    where = "`demo FOLDER` keeps them"
    if args.folder:
        where = f"the files are in {safe_str(args.folder)}"
    print("all others written, read back, explained and verified; " + where)


def show_small_file(fmt: Format, folder: str) -> None:
    """Write a small file of a format, read it back, show its first fields."""
    wanted = {"layer.weight": tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"),
              "layer.bias": tensor([0.5, -0.5], "float32"), "steps": tensor(7, "int32")}
    items = [pair for pair in wanted.items() if not fmt.problems([pair], {})]
    items = items[:fmt.MAX_TENSORS]
    if fmt.READ_ONLY:
        print(f"== {fmt.TITLE} is left out: it is only read\n")
        return
    name = "demo" + fmt.SUFFIXES[0]
    path = os.path.join(folder, name)
    save(path, items, format=fmt.NAME)
    text = f"== {fmt.TITLE}: save({name!r}, {{...}})"
    saved = dict(items)
    left = [word for word in wanted if word not in saved]
    if left:
        text += f", without {', '.join(left)}, which it cannot hold"
    print(text)
    with load(path, verify=True) as file:
        if dict(file) != saved:
            raise FormatError(f"{safe_str(path)} does not come back as it was saved")
        found = Explained(file.source)
        found.rows = found.rows[:3]
        print_fields(found, False)
    last = str(verify(path)).split("\n")[-1]
    print(last.replace(path, name) + "\n")


def show_vendor(args: "Namespace") -> int:
    if args.check:
        if args.formats or getattr(args, "with"):
            raise TypeError("--check takes OUT.py alone: a copy says how it was made")
        return check_copy(args.out)
    if os.path.exists(args.out) and os.path.samefile(args.out, __file__):
        raise ValueError(f"{safe_str(args.out)}: the copy would replace its own source")
    text = sealed_copy(split_words(args.formats), split_words(getattr(args, "with")))
    if os.path.isfile(args.out) and not detect(args.out) and not read_seal(args.out)[1]:
        raise ValueError(f"{safe_str(args.out)}: not a copy as vendor wrote it (edited since?), "
                         "which this would replace: remove or rename it")
    write_text(args.out, text, plural(text.count("\n"), "line"))
    return 0


# A wrong value of an option is a ValueError: Parser.error() says what is wanted.
def parse_pair(text: str) -> "Tuple[str, Optional[str]]":
    """Return (A, B) of A=B; B is None where there is none."""
    key, value = text.split("=", 1)
    return key, value or None


def parse_setting(text: str) -> "Tuple[str, Any]":
    """Return (key, value) of KEY=VALUE: a Python literal, else text."""
    from ast import literal_eval
    key, value = text.split("=", 1)
    try:
        return key, literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def parse_number(text: str) -> int:
    """Return a number from 0 on: 12, 0x1f40."""
    if not text.isdigit() and text[:2] != "0x":
        raise ValueError(text)
    return int(text, 0)


PATTERNS = {"action": "append", "help": "name or shell pattern"}
WORDS = {"action": "append", "default": []}
PAIRS = dict(WORDS, type=parse_pair)
STDIN = "`-` is standard input"
# An argument and what help calls it: its help, or what add_argument() takes.
OPTIONS: "Dict[str, Any]" = {
    "file FILE": STDIN,
    "files FILE": {"nargs": "+", "help": STDIN},
    "name NAME": {"nargs": "?"},
    "names NAME": {"nargs": "*", "default": []},
    "a A": {},
    "b B": STDIN,
    "source FROM": STDIN,
    "target TO": "its suffix is the format; `-` is standard output",
    "out OUT.py": {},
    "folder": {"nargs": "?", "help": "where to keep the files"},
    "--raw": "row-major little-endian bytes to stdout",
    "--json": "for programs",
    "--stats": "min, max, mean, count of NaN and infinities; without NAME of all",
    "--color": {"choices": ["auto", "always", "never"], "default": "auto"},
    "--only NAME": PATTERNS,
    "--exclude NAME": PATTERNS,
    "--sort": {"choices": sorted(ORDERS), "help": "order of rows; by bytes the largest first"},
    "--limit N": {"type": parse_number, "help": "that many rows at most"},
    "--tree DEPTH": {"type": parse_number, "nargs": "?", "const": 0,
                     "help": f"sums by parts of names, numbers as #, in {MAX_TREE} lines"},
    "--tensor NAME": "only the rows of this tensor",
    "--from OFFSET": {"type": parse_number, "default": 0,
                      "help": "only the rows from this byte on (0x1f40, 8000)"},
    "--html OUT": "write an HTML page instead",
    "--quiet": "only what is bad",
    "--deep": "XXH3 of large files, too (slow)",
    "--partial": "the tensors that are whole in a file that was cut short",
    "--max-copies N": {"type": parse_number, "help":
                       f"decode and write at most N times the file and 1 MiB ({MAX_COPIES})"},
    "--no-mmap": {"dest": "mmap", "action": "store_false",
                  "help": "read files, do not map them: of network disks, or that may shrink"},
    "--rtol X": {"type": float, "default": 0.0, "help": "values are equal up to atol + rtol * |b|"},
    "--atol X": {"type": float, "default": 0.0},
    "--any-dtype": "the same values of another dtype are no difference",
    "--set KEY=VALUE": dict(
        PAIRS, type=parse_setting, help="option of TO's format, see `formats NAME`"),
    "--format NAME": "format of TO, instead of its suffix",
    "--cast DTYPE,OLD=NEW,...": dict(
        WORDS, help="DTYPE for what TO cannot hold, NEW for each OLD"),
    "--rename OLD=NEW": dict(PAIRS, help="names, or patterns with one `*`: 'model.*=*'"),
    "--meta KEY=TEXT": dict(PAIRS, help="metadata to set; KEY= removes"),
    "--metadata": {"choices": ["text"], "help": "numbers in metadata as text where only that fits"},
    "--dense": "write sparse tensors with their zeros",
    "--drop": "leave out what has no place",
    "--formats NAME,...": dict(WORDS, help="only these formats"),
    "--with PART,...": dict(WORDS, help="only these parts: " + " ".join(list(PARTS)[:-1])),
    "--check": "write nothing: is OUT.py a copy as it was made, and by which version?"}
# What runs it, what it does, its arguments.
COMMANDS = (
    (show_ls, "list the tensors of each file",
     "files --only --sort --limit --tree --partial --no-mmap --json"),
    (show_get, "print values of tensors: NAME, 'NAME[0:2, ::3]' as in Python, or a pattern",
     "file names --stats --raw --partial --no-mmap --max-copies --json"),
    (show_explain, "name every byte of a file; `..` before bytes is a key, after them more",
     "file --tensor --from --color --html --no-mmap --json"),
    (show_verify, "check structure, bounds, sizes and checksums",
     "files --quiet --deep --no-mmap --max-copies --json"),
    (show_convert, "write the tensors in the format named by TO's suffix",
     "source target --format --cast --only --exclude --rename --meta --metadata --dense --drop "
     "--partial --set --no-mmap --max-copies --json"),
    (show_diff, "compare two files tensor by tensor, whatever their formats",
     "a b --rtol --atol --any-dtype --only --exclude --rename --limit --partial --no-mmap "
     "--max-copies --json"),
    (show_formats, "list the formats and what each can hold; of one, or of cbor, its layout",
     "name --json"),
    (show_demo, "write, read and explain one small file of each format", "folder"),
    (show_vendor, "write a copy of this file with only what is asked for",
     "out --formats --with --check"))


def make_parser() -> "ArgumentParser":
    from argparse import ArgumentParser

    class Parser(ArgumentParser):
        def error(self, message: str) -> "NoReturn":
            text = misuse_message(message)
            text = safe_str(text, MAX_LINE // 2)
            raise TypeError(f"{text} (`{safe_str(self.prog)} -h`)")

        def exit(self, *status: Any) -> "NoReturn":
            sys.stdout.flush()  # of help: an error is told as those of commands
            super().exit(*status)

    def show_help(args: "Namespace") -> None:
        parser.print_help()

    parser = Parser(description="Read, write and explain tensor files.", epilog=(
        "exit codes: 0 good, 1 bad or different, 2 misuse. COMMAND -h lists its options."))
    parser.add_argument("--version", action="version", version="tensorfmt " + __version__)
    parser.set_defaults(call=show_help)
    commands = parser.add_subparsers(metavar="COMMAND")
    titles = {title.split()[0]: title for title in OPTIONS}
    for call, does, arguments in COMMANDS:
        one = commands.add_parser(call.__name__[5:], help=does, description=does,
                                  allow_abbrev=False)
        one.set_defaults(call=call)
        for name in arguments.split():
            add_option(one, titles[name])
    return parser


def misuse_message(message: str) -> str:
    """Return what argparse says of a command line, in words of what is typed."""
    import re
    found = re.match(r"unrecognized arguments: (--\S+)", message)
    if found:
        known = [title.split()[0] for title in OPTIONS]
        if found.group(1) not in known:
            message += did_you_mean(found.group(1), known)
        return message
    message = message.partition(" (choose from ")[0]
    found = re.match(r"argument (\S+): (?:invalid .*?: (.+)|)", message)
    if found is None:
        return message
    name, value = found.groups()
    if name == "COMMAND":
        names = [call.__name__[5:] for call, _, _ in COMMANDS]
        near = did_you_mean(value.strip("'"), names)
        return f"no command {value}; there are {', '.join(names)}{near}"
    if value:
        name += " " + value
    return f"{name}: {value_words()[found.group(1)]} is wanted"


def value_words() -> "Dict[str, str]":
    """Return what each option takes that takes a value, in words."""
    wanted: "Dict[str, str]" = {}
    for title, settings in OPTIONS.items():
        name, _, metavar = title.partition(" ")
        if isinstance(settings, str):
            settings = {}
        if "choices" in settings:
            metavar = "one of " + ", ".join(settings["choices"])
        elif settings.get("type") in (parse_number, float):
            metavar = "a number"
        if metavar and name.startswith("--"):
            wanted[name] = metavar
    return wanted


def options_first(words: "List[str]") -> "List[str]":
    """Return the words of a command with its options in front: they may stand anywhere.

    argparse takes arguments that may be missing, or several, for complete before it.
    """
    valued = value_words()
    options: "List[str]" = []
    others: "List[str]" = []
    option = ""  # the word before, which may take the next one
    for number, word in enumerate(words):
        if word == "--":
            others += words[number + 1:]
            break
        takes_word = option in valued and (option != "--tree" or word.isdigit())
        option = ""
        if word[:1] == "-" and word != "-":
            options.append(word)
            option = word
        elif takes_word:
            options.append(word)
        else:
            others.append(word)
    if others:
        options.append("--")
    return options + others


def add_option(parser: "ArgumentParser", title: str) -> None:
    """Add an argument of OPTIONS to a command; what has no value is a flag."""
    name, _, metavar = title.partition(" ")
    settings: Any = OPTIONS[title]
    if isinstance(settings, str):
        settings = {"help": settings}
        if not metavar:
            settings["action"] = "store_true"
    if metavar:
        settings = dict(settings, metavar=metavar)
    parser.add_argument(name, **settings)


class NoOutput(Exception):
    """Standard output does not take what is printed: args are its OSError."""


class Output:
    """Standard output or error while a command runs.

    Where there is none (`>&-`; pythonw) texts go nowhere and `buffer`, which takes bytes, is None.
    What standard output cannot take is a NoOutput, so that no file is blamed; errors go nowhere.
    """

    def __init__(self, stream: Any, is_needed: bool) -> None:
        self.stream: Any = stream
        self.progress: "Optional[Progress]" = None  # on the same terminal
        self.is_needed = is_needed
        self.buffer: Any = None
        if stream is None or getattr(stream, "closed", False):
            self.stream = None
        elif hasattr(stream, "buffer"):
            self.buffer = Output(stream.buffer, is_needed)
        if hasattr(self.stream, "reconfigure"):  # letters that the encoding lacks are escaped
            self.stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        return self.stream is not None and self.stream.isatty()

    def write(self, data: Any) -> "Optional[int]":
        if self.progress is None:
            return self.put(data)
        return self.progress.print_above(self, data)

    def put(self, data: "Union[str, bytes]") -> "Optional[int]":
        """Write at once, wherever the line of the progress is."""
        return self.call("write", data)

    def flush(self) -> None:
        self.call("flush")

    def call(self, name: str, *args: Any) -> "Optional[int]":
        """Call a method of the stream; None where there is no stream, or none any more."""
        if self.stream is None:
            return None
        try:
            return getattr(self.stream, name)(*args)
        except OSError as error:
            self.drop()
            if self.is_needed:
                raise NoOutput(error)
            return None

    def drop(self) -> None:
        """Let what is left go nowhere: the flush at the exit must not fail, or wait."""
        if self.stream is None:
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
        except OSError:  # it has no descriptor
            pass


def catch_signals(usual: "Dict[int, Any]") -> None:
    """Let signals that end a process end the command as Ctrl-C does: it tidies up.

    `usual` gets the handlers that were there. Signals that are ignored (nohup) stay so.
    """
    import signal
    seen: "Set[int]" = set()

    def stop(number: int, frame: Any) -> None:
        # Of two that come together the second must not disturb what the first one began.
        is_heard = number in seen or not seen
        seen.add(number)
        if is_heard:
            raise KeyboardInterrupt(number)

    for name in "SIGINT", "SIGTERM", "SIGHUP":
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is None:
            continue
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_DFL, signal.default_int_handler):
            continue
        try:
            signal.signal(number, stop)
        except ValueError:  # Python lets only the main thread do so
            return
        usual[number] = handler


def parse_arguments(argv: "Optional[List[str]]") -> "Namespace":
    """Return the arguments: `.call` runs the command, `.writes` is what it writes."""
    words = sys.argv[1:]
    if argv is not None:
        words = list(argv)
    args = make_parser().parse_args(words[:1] + options_first(words[1:]))
    args.words = words
    args.options = {}
    args.writes = None
    for key, value in list(vars(args).items()):
        if key in ("mmap", "partial"):
            args.options[key] = value
        elif key in ("target", "html", "out") and value:
            args.writes = value
    return args


def what_is_left(path: "Optional[str]", old: "Optional[os.stat_result]") -> str:
    """Return what a command that was stopped left at its target, in words.

    `old`: stat_or_none() of it before. A file is there as a whole or not at all; of what a pipe or
    a device got nobody knows.
    """
    if path is None:
        return ""
    if path == "-" or os.path.exists(path) and not os.path.isfile(path):
        return f"; a part may be written to {safe_str(path)}"
    new = stat_or_none(path)
    if new is None or old is not None and os.path.samestat(old, new):
        return ", nothing written"
    return f", but {safe_str(path)} is written"


def fill_descriptors() -> None:
    """Open standard descriptors that are closed, so that no file gets the number of one.

    What is printed by others, or saved in /dev/stdout, would go into that file.
    """
    try:
        number = os.open(os.devnull, os.O_RDWR)
        while number <= 2:
            number = os.open(os.devnull, os.O_RDWR)
        os.close(number)
    except OSError:  # there is no such device
        pass


def complain(text: str) -> None:
    """Print an error, behind what was printed before."""
    try:
        sys.stdout.flush()
    except NoOutput:  # the error is worth more
        pass
    print(text, file=sys.stderr)


def call_command(args: "Namespace") -> int:
    """Run what was asked for; return its exit code."""
    global MAX_COPIES
    usual = MAX_COPIES
    MAX_COPIES = getattr(args, "max_copies", None) or usual
    args.watch = start_progress()
    try:
        if hasattr(args, "files"):
            code = each_file(args)
        else:
            code = int(args.call(args) or 0)
        sys.stdout.flush()
        return code
    finally:
        MAX_COPIES = usual
        if args.watch is not None:
            args.watch.stop()


PIPES = (1, 12)  # pipes and sockets, in the upper bits of st_mode


def start_progress() -> "Optional[Progress]":
    """Return what tells a terminal how far a command is; None where nobody looks."""
    out: Any = sys.stdout
    err: Any = sys.stderr
    if not err.isatty():
        return None
    progress = err.progress = Progress(err)
    about = stream_about(out)
    if out.isatty() or about is not None and about.st_mode >> 12 in PIPES:
        out.progress = progress
    progress.start()
    return progress


def run_command(argv: "Optional[List[str]]") -> int:
    """Run a command, print its errors and return its exit code."""
    target: "Optional[str]" = None
    old: "Optional[os.stat_result]" = None
    try:
        args = parse_arguments(argv)
        target = args.writes
        if target is not None:
            old = stat_or_none(target)
        return call_command(args)
    except KeyboardInterrupt as stop:
        if argv is None:  # who reads our output may never do so again
            out: Any = sys.stdout
            out.drop()
        print("interrupted" + what_is_left(target, old), file=sys.stderr)
        number = 2
        if stop.args:
            number = stop.args[0]
        return 128 + number
    except NoOutput as lost:
        error: OSError = lost.args[0]
        if isinstance(error, BrokenPipeError) and target != "-":  # `| head`
            return 0
        text = describe(error, "standard output") + what_is_left(target, old)
        print("error: " + text, file=sys.stderr)
        return 1
    except TypeError as misuse:
        complain("error: " + describe(misuse))
        return 2
    except (OSError, ValueError, IndexError, MemoryError) as failure:
        complain("error: " + (describe(failure) or "not enough memory"))
        return 1


def main(argv: "Optional[List[str]]" = None) -> int:
    """Run the command line; return the exit code: 0 good, 1 bad or different, 2 misuse.

    `argv`: the arguments, without the name of the program. If they are those of the process, a
    signal that ends it ends the command.
    """
    out: Any = Output(sys.stdout, is_needed=True)
    err: Any = Output(sys.stderr, is_needed=False)
    usual_streams = sys.stdout, sys.stderr
    usual_handlers: "Dict[int, Any]" = {}
    sys.stdout, sys.stderr = out, err
    try:
        if argv is None:
            fill_descriptors()
            catch_signals(usual_handlers)
        return run_command(argv)
    finally:
        sys.stdout, sys.stderr = usual_streams
        for number, handler in usual_handlers.items():
            from signal import signal
            signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
