# SPDX-License-Identifier: MIT
"""Tests of tensorfmt.py: `python3 test_tensorfmt.py`; nothing needs to be installed.

Vectors are rows, run in both directions; files of the formats' real writers stand below as base64;
bad files are rows that name the error, the field and the offset. Libraries that read or write the
same bytes are compared with where they are installed (with TENSORFMT_PEERS in the environment
their absence is a failure). `python3 test_tensorfmt.py bench` prints timings instead.

    [1] platform           what this Python has; helpers
    [2] goldens            small files of the real writers, and what they hold
    [3] codecs             CBOR, MessagePack, FlatBuffers, CRC-32C, the hash of names
    [4] reading            goldens from every source; explain, verify, pickling
    [5] round trips        every format x dtype x shape x byte order, bit by bit
    [6] Tensor             indexing, casts, views, other libraries' protocols
    [7] save               atomic, refusals, metadata, attrs, options
    [8] convert            goldens into every format and back; nothing silent
    [9] bad files          rows of error, field and offset; every truncation, changed bytes
    [10] the file itself   contents, imports, rooms that can be cut out, docstrings
    [11] command line      through a real process
    [12] README            every example is run
    [13] sparse and quantized   components, schemes, what they mean
    [14] reports           explain, verify and diff, as a person uses them
    [15] peers             other libraries, random data
    [16] easily wrong      rules that are easy to break, each by one short example
    [17] benchmark         timings; not a test

Classes without @full also run on MicroPython: they keep to what its unittest has.
"""
# -- [1] platform --------------------------------------------------------------------------------

import binascii
import io
import struct
import sys
import unittest

CPYTHON = sys.implementation.name != "micropython"  # any Python with the whole standard library
if CPYTHON:
    import os
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, HERE)  # it is not there under -I
    PYPY = sys.implementation.name == "pypy"

import tensorfmt
from tensorfmt import FormatError, Map, Unsupported, dumps, load, tensor

WHOLE = hasattr(tensorfmt, "main")  # not a copy for boards, which ends at the cut line
full = unittest.skipUnless(CPYTHON and WHOLE, "needs CPython and the whole module")
whole = unittest.skipUnless(WHOLE, "needs what is below the cut line")
FORMATS = ("mag", "ztensor", "primitiv", "burnpack", "tensorbuffers")
INF = float("inf")
NAN = float("nan")
DTYPES = tuple(sorted(tensorfmt.ITEMSIZE))


def unhex(text):
    """Return the bytes of hex digits; blanks and line ends between them do not count."""
    return binascii.unhexlify("".join(text.split()).encode())


def tohex(data):
    return binascii.hexlify(bytes(data)).decode()


def same(a, b):
    """Tell whether two values are equal, 1, 1.0 and True different, NaN equal to itself."""
    if isinstance(a, (memoryview, bytearray)):
        a = bytes(a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and not [
            1 for x, y in zip(a, b) if not same(x, y)]
    if hasattr(a, "items"):
        return hasattr(b, "items") and len(a) == len(b) and not [
            1 for key in a if key not in b or not same(a[key], b[key])]
    return type(a) is type(b) and (a == b or (a != a and b != b)) and repr(a) == repr(b)


def error_of(wanted, call, *args, **options):
    """Return the exception of exactly this class that a call raises; fail if there is none."""
    try:
        got = call(*args, **options)
    except Exception as error:
        if type(error) is wanted:
            return error
        raise
    raise AssertionError("no %s, but %r" % (wanted.__name__, got))


def has_zstd():
    try:
        return WHOLE and bool(tensorfmt.zstd_module())
    except Unsupported:
        return False


ZSTD = has_zstd()


def make_bytes(nbytes, seed=1):
    """Return bytes that look random, the same on every Python."""
    out = bytearray(nbytes)
    for i in range(nbytes):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        out[i] = seed >> 16 & 255
    return bytes(out)


KEYS = tensorfmt._Keys()  # KEYS[1:, ...] is the index itself; MicroPython makes slices only there


class Short(io.BytesIO):
    """A stream that reads and writes at most 7 bytes at a time."""

    def read(self, n=-1):
        return super().read(7 if n is None or n < 0 or n > 7 else n)

    def write(self, data):
        return super().write(bytes(data[:7]))


class TestCase(unittest.TestCase):
    def assertSame(self, got, wanted, note=None):
        if not same(got, wanted):
            self.assertEqual(got, wanted, note)
            raise AssertionError("%r is not quite %r (%s)" % (got, wanted, note))

    def refuses(self, parts, call, *args, **options):
        """Assert that a call is refused with a ValueError (no FormatError) that says all parts."""
        text = str(error_of(ValueError, call, *args, **options))
        for part in parts:
            self.assertIn(part, text)
        return text


# -- [2] goldens ---------------------------------------------------------------------------------
#
# (format, file, writer, base64, {tensor: (dtype, shape, row-major little-endian bytes in hex)}).
# None for the bytes: too long to stand here; the test of the file says what they are.

GOLDENS = (
    ("mag", "seed_basic.mag", "hand-made",
     "TUFHIQEAAADgFTFfAgAAAAIAAAAAAAAAAAAAAAUAAAAAAAAAAQAAAG4CAAAAAAAAAAAACkACAAAAcGkBAAAAeA"
     "MAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMAAAAAAAAAAABAAAAAAAA"
     "AAAAAAEAAAB5AgAAAAAAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAxAAAAAAAA"
     "AAQAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "gD8AAABAAABAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAA"
     "AAAgAAAAMAAAD8////AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
     {"x": ("float32", (3,), "0000803f0000004000004040"),
      "y": ("int32", (2, 2), "010000000200000003000000fcffffff")}),
    ("mag", "seed_dtypes.mag", "hand-made",
     "TUFHIQEAAAD65jmeBQAAAAAAAAAAAAAAAwAAAGYzMgQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAMABAAAAAAAAAAAAAAMAAABmMTYCAAAAAAAAAAMAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABDAAAAAAAAAAAAgAAAAAAAAAAAAAEAAAAZmxhZwUAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIFAAAAAAAAAEACAAAAAAAAAAAAAAMAAABp"
     "MzICAAAAAAAAAAEAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADEAAAAAAAAACAAgAAAA"
     "AAAAAAAAAEAAAAbGFzdAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIB"
     "AAAAAAAAAMACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAMC/AACAfwEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAOADA"
     "/3sBAAB8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQABAQ"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD/"
     "////////fwAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
     {"f32": ("float32", (4,), "000000000000c0bf0000807f01000000"),
      "f16": ("float16", (2, 3), "003800c0ff7b0100007c0000"),
      "flag": ("bool", (5,), "0100010100"),
      "i32": ("int32", (2, 1, 2), "00000000ffffffffffffff7f00000080"),
      "last": ("bool", (1,), "01")}),
    ("mag", "seed_empty.mag", "hand-made",
     "TUFHIQEAAABkSUqhBgAAAAEAAAAAAAAAAAAAAAYAAAAAAAAABQAAAGNvdW50AgAAAGUxAAAAAAAAAAD///////"
     "//////////////////////////////////////////////AAAAAAAAAAAAAAIAAAAAAAAAAAAAAgAAAGUyAwAA"
     "AAAAAAAAAAAAAAAAAP//////////////////////////////////////////AwAAAAAAAAAAAAIAAAAAAAAAAA"
     "AABAAAAGZ1bGwCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADCAAAAAAA"
     "AAAAAgAAAAAAAAAAAAACAAAAZTMAAAAAAAAAAAIAAAAAAAAAAgAAAAAAAAD///////////////////////////"
     "////8CAAAAAAAAAABAAgAAAAAAAAAAAAACAAAAZTYBAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAEA"
     "AAAAAAAAAAAAAAAAAAABAAAAAAAAAABAAgAAAAAAAAAAAAADAAAAZTAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AA////////////////////////////////AAAAAAAAAAAAQAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFAAAA"
     "BgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
     {"e1": ("float32", (0,), ""),
      "e2": ("int32", (3, 0), ""),
      "full": ("int32", (2,), "0500000006000000"),
      "e3": ("bool", (0, 2, 2), ""),
      "e6": ("float16", (1, 1, 1, 1, 1, 0), ""),
      "e00": ("float32", (0, 0, 0), "")}),
    ("mag", "seed_order_unaligned.mag", "hand-made",
     "TUFHIQEAAAD+tdIcBAAAAAEAAAAAAAAAAAAAAAEAAAAAAAAAAQAAAG4BAAAAYQIAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAGUBAAAAAAAAAAAAAAEAAABiAwAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgMAAAAAAAAAYgEAAAAAAAAAAAAAAQAAAG"
     "MDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADDAAAAAAAAABWAQAAAAAA"
     "AAAAAAABAAAAZAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAECAAAAAA"
     "AAAFQBAAAAAAAAAAAAAAAAAAA4BwAAAAgAAAAJAAAAAQEAAACAPwAAAEA=",
     {"a": ("float32", (2,), "0000803f00000040"),
      "b": ("bool", (3,), "010100"),
      "c": ("int32", (3,), "070000000800000009000000"),
      "d": ("float16", (), "0038")}),
    ("mag", "m012_mixed.mag", "magnetron 0.1.2 (PyPI wheel)",
     "TUFHIQEAAADW1X92AgAAAAIAAAAAAAAAAgAAAAAAAAAAAApAAgAAAHBpAQAAAAUAAAAAAAAAAQAAAG4AAQAAAw"
     "AAAAAAAADAAAAAAAAAAAMAAAAAAAAAAQAAAHgDAgAABAAAAAAAAAAAAQAAAAAAAAIAAAAAAAAAAgAAAAAAAAAB"
     "AAAAef//////////////////////////////////////////////////////////////////////////////AA"
     "CAPwAAAEAAAEBA/////////////////////////////////////////////////////////////////////wEA"
     "AAACAAAAAwAAAPz///////////////////////////////////////////////////////////////////8=",
     {"x": ("float32", (3,), "0000803f0000004000004040"),
      "y": ("int32", (2, 2), "010000000200000003000000fcffffff")}),
    ("mag", "m012_dtypes.mag", "magnetron 0.1.2 (PyPI wheel)",
     "TUFHIQEAAACzNxIpBAAAAAAAAAAAAAAAAQIAAAYAAAAAAAAAwAAAAAAAAAACAAAAAAAAAAMAAAAAAAAAAwAAAG"
     "YxNgIBAAAFAAAAAAAAAAABAAAAAAAABQAAAAAAAAAEAAAAYm9vbAABAAAEAAAAAAAAAEABAAAAAAAABAAAAAAA"
     "AAADAAAAZjMyAwMAAAQAAAAAAAAAgAEAAAAAAAACAAAAAAAAAAEAAAAAAAAAAgAAAAAAAAADAAAAaTMy////AD"
     "gAwP97AQAAfAAA/////////////////////////////////////////////////////////////////////wEA"
     "AQEA//////////////////////////////////////////////////////////////////////////////8AAA"
     "AAAADAvwAAgH8BAAAA////////////////////////////////////////////////////////////////AAAA"
     "AP////////9/AAAAgP///////////////////////////////////////////////////////////////w"
     + "A" * 170,
     {"f16": ("float16", (2, 3), "003800c0ff7b0100007c0000"),
      "bool": ("bool", (5,), "0100010100"),
      "f32": ("float32", (4,), "000000000000c0bf0000807f01000000"),
      "i32": ("int32", (2, 1, 2), "00000000ffffffffffffff7f00000080")}),
    ("mag", "m012_meta_only.mag", "magnetron 0.1.2 (PyPI wheel)",
     "TUFHIQEAAABPUJ9YAAAAAA4AAAAAAAAAAgAAAAAAAAAAAPB/AwAAAGluZgIAAAD////////vfwQAAABodWdlAg"
     "AAABgtRFT7IQlAAgAAAHBpAQAAAP////////9/BwAAAGk2NF9tYXgCAAAAAQAAAAAAAAAEAAAAdGlueQEAAAAq"
     "AAAAAAAAAAYAAADlkI3liY0CAAAAAAAAAAAA+H8DAAAAbmFuAgAAAAAAAAAAAPD/BwAAAG5lZ19pbmYBAAAAAQ"
     "AAAAAAAAAQAAAAYm9vbF9hc19pbnRfdHJ1ZQEAAAAAAAAAAAAAAAQAAAB6ZXJvAQAAAAAAAAAAAACABwAAAGk2"
     "NF9taW4BAAAAAQAAAAAAAAADAAAAb25lAQAAAP//////////CQAAAG1pbnVzX29uZQIAAAAAAAAAAAAAgAgAAA"
     "BuZWdfemVybwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", {}),
    ("ztensor", "py_0.1.0_scalar.zt", "ztensor 0.1.0 (PyPI wheel)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAwD+Bv2RuYW1lYXNmb2Zmc2V0GEBkc2l6ZQRlZHR5cGVnZmxvYXQzMmZsYXlvdXRlZGVuc2Vlc2hhcGWBAWhl"
     "bmNvZGluZ2NyYXdvZGF0YV9lbmRpYW5uZXNzZmxpdHRsZf9gAAAAAAAAAA==",
     {"s": ("float32", (1,), "0000c03f")}),
    ("ztensor", "custom_fields.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAIA/AAAgwAAAgEsAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AYD/gr9kbmFtZWFhZm9mZnNldBhAZHNpemUQZWR0eXBlZ2Zsb2F0MzJmbGF5b3V0ZWRlbnNlZXNoYXBlgQRoZW"
     "5jb2RpbmdjcmF3b2RhdGFfZW5kaWFubmVzc2ZsaXR0bGVmYXV0aG9yZ0rDvHJnZW5jYmlnG///////////ZGJs"
     "b2JDAP8QZGRpbXODAQIZASxnbm90aGluZ/Zlc2NhbGX5MABpdHJhaW5hYmxl9Wp6ZXJvX3BvaW50Iv+/ZG5hbW"
     "VhYmZvZmZzZXQYgGRzaXplBGVkdHlwZWV1aW50OGZsYXlvdXRlZGVuc2Vlc2hhcGWBBGhlbmNvZGluZ2NyYXf/"
     "/wAAAAAAAAA=",
     {"a": ("float32", (4,), "000000000000803f000020c00000804b"),
      "b": ("uint8", (4,), "000180ff")}),
    ("ztensor", "custom_nested.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAK"
     "pjkfEDOIG/ZG5hbWVhbmZvZmZzZXQYQGRzaXplBmVkdHlwZWVpbnQxNmZsYXlvdXRlZGVuc2Vlc2hhcGWBA2hl"
     "bmNvZGluZ2NyYXdvZGF0YV9lbmRpYW5uZXNzZmxpdHRsZWFa+X4AYWH5/ABiYWH5QwBhYqFhaxv//////////2"
     "J6eqRhYSBiYWIaAAERcGJiYgJjY2NjYXhiw6n7P7mZmZmZmZr/oQAAAAAAAAA=",
     {"n": ("int16", (3,), "aa6391f10338")}),
    ("ztensor", "zero_scalar_raw.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAN"
     "WAuv1w5VCrAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACv"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAhL"
     "9kbmFtZWFzZm9mZnNldBhAZHNpemUIZWR0eXBlZ2Zsb2F0NjRmbGF5b3V0ZWRlbnNlZXNoYXBlgGhlbmNvZGlu"
     "Z2NyYXdvZGF0YV9lbmRpYW5uZXNzZmxpdHRsZf+/ZG5hbWVhemZvZmZzZXQYgGRzaXplAGVkdHlwZWVpbnQxNm"
     "ZsYXlvdXRlZGVuc2Vlc2hhcGWCAAdoZW5jb2RpbmdjcmF3b2RhdGFfZW5kaWFubmVzc2ZsaXR0bGX/v2RuYW1l"
     "YXRmb2Zmc2V0GIBkc2l6ZQFlZHR5cGVldWludDhmbGF5b3V0ZWRlbnNlZXNoYXBlgGhlbmNvZGluZ2NyYXdoY2"
     "hlY2tzdW1xY3JjMzJjOjB4QUUyNURBRDP/v2RuYW1lYXlmb2Zmc2V0GMBkc2l6ZQBlZHR5cGVkYm9vbGZsYXlv"
     "dXRlZGVuc2Vlc2hhcGWCAgBoZW5jb2RpbmdjcmF3aGNoZWNrc3VtcWNyYzMyYzoweDAwMDAwMDAw/34BAAAAAA" "AA",
     {"s": ("float64", (), "d580bafd70e550ab"),
      "z": ("int16", (0, 7), ""),
      "t": ("uint8", (), "af"),
      "y": ("bool", (2, 0), "")}),
    ("ztensor", "mixed.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"
     "mQUOi89ObgzHyLuwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADc"
     "5GVZYKW48T01TscZ041lAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKL"
     "Uv/QBYQQEAGttgn2XxmMneGurinVdzIDICpT5tkUes5j3XKIWYF/LI1QlATTvuOwAAAAAAAAAAAAAAAAAAALMY"
     "C6ydzG5ABw/mTTGFAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAQ"
     "EBAQEBAQCGv2RuYW1lY2JpZ2ZvZmZzZXQYQGRzaXplDGVkdHlwZWdmbG9hdDMyZmxheW91dGVkZW5zZWVzaGFw"
     "ZYEDaGVuY29kaW5nY3Jhd29kYXRhX2VuZGlhbm5lc3NjYmln/79kbmFtZWZsaXR0bGVmb2Zmc2V0GIBkc2l6ZR"
     "BlZHR5cGVnZmxvYXQzMmZsYXlvdXRlZGVuc2Vlc2hhcGWDAgECaGVuY29kaW5nY3Jhd29kYXRhX2VuZGlhbm5l"
     "c3NmbGl0dGxl/79kbmFtZWF6Zm9mZnNldBjAZHNpemUYMWVkdHlwZWVpbnQ2NGZsYXlvdXRlZGVuc2Vlc2hhcG"
     "WBBWhlbmNvZGluZ2R6c3Rk/79kbmFtZWFjZm9mZnNldBkBAGRzaXplDmVkdHlwZWZ1aW50MTZmbGF5b3V0ZWRl"
     "bnNlZXNoYXBlgQdoZW5jb2RpbmdjcmF3b2RhdGFfZW5kaWFubmVzc2ZsaXR0bGVoY2hlY2tzdW1xY3JjMzJjOj"
     "B4RTg4OTA5Mjj/v2RuYW1lYWVmb2Zmc2V0GQFAZHNpemUAZWR0eXBlZ2Zsb2F0NjRmbGF5b3V0ZWRlbnNlZXNo"
     "YXBlgwIAA2hlbmNvZGluZ2NyYXdvZGF0YV9lbmRpYW5uZXNzZmxpdHRsZf+/ZG5hbWVkbGFzdGZvZmZzZXQZAU"
     "Bkc2l6ZQllZHR5cGVkYm9vbGZsYXlvdXRlZGVuc2Vlc2hhcGWBCWhlbmNvZGluZ2NyYXdkbm90ZWF4/zkCAAAA"
     "AAAA",
     {"big": ("float32", (3,), "e8509049e0e6f4bcbb8b7ccc"),
      "little": ("float32", (2, 1, 2), "dce4655960a5b8f13d354ec719d38d65"),
      "z": ("int64", (5,),
        "1adb609f65f198c9de1aeae29d5773203202a53e6d9147ace63dd728859817f2c8d509404d3bee3b"),
      "c": ("uint16", (7,), "b3180bac9dcc6e40070fe64d3185"),
      "e": ("float64", (2, 0, 3), ""),
      "last": ("bool", (9,), "010101010101010100")}),
    ("ztensor", "zstd_64k_zeros.zt", "ztensor 0.1.4 (Rust crate, commit dcc70e3)",
     "WlRFTjAwMDEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAC"
     "i1L/0AWFUAABAAAAEA+38dYAGBv2RuYW1lZXplcm9zZm9mZnNldBhAZHNpemUTZWR0eXBlZ2Zsb2F0MzJmbGF5"
     "b3V0ZWRlbnNlZXNoYXBlgRlAAGhlbmNvZGluZ2R6c3RkaGNoZWNrc3VtcWNyYzMyYzoweEM0MTNDNzc0/2sAAA"
     "AAAAAA",
     {"zeros": ("float32", (16384,), None)}),
    ("primitiv", "shape_batch5.primitiv", "primitiv db14ca4 (its MessagePack writer)",
     "zgAAAADOAAAAAc4AAAAAks4AAAACzgAAAAPOAAAABQ==", {}),
    ("primitiv", "tensor_2x3_batch2.primitiv", "primitiv db14ca4 (its MessagePack writer)",
     "zgAAAADOAAAAAc4AAAEAks4AAAACzgAAAAPOAAAAAsQwAAAwQQAAqEEAAEBBAACwQQAAUEEAALhBAADeQgAA8k"
     "IAAOBCAAD0QgAA4kIAAPZC",
     {"tensor": ("float32", (2, 3, 2),
        "000030410000de42000040410000e042000050410000e2420000a8410000f2420000b0410000f442"
        "0000b8410000f642")}),
    ("primitiv", "tensor_special.primitiv", "primitiv db14ca4 (its MessagePack writer)",
     "zgAAAADOAAAAAc4AAAEAkc4AAAAMzgAAAAHEMAAAAAAAAACAAACAPwAAgL8AAIB/AACA/wAAwH8BAMD///9/fw"
     "AAgAABAAAA//9/gA==",
     {"tensor": ("float32", (12,),
        "00000000000000800000803f000080bf0000807f000080ff0000c07f0100c0ffffff7f7f00008000"
        "01000000ffff7f80")}),
    ("primitiv", "param_3x2x2_stat.primitiv", "primitiv db14ca4",
     "zgAAAADOAAAAAc4AAAIAk84AAAADzgAAAALOAAAAAs4AAAABxDAAAIA/AAAAQAAAQEAAAIBAAACgQAAAwEAAAO"
     "BAAAAAQQAAEEEAACBBAAAwQQAAQEHOAAAAAad2OjEueFx5k84AAAADzgAAAALOAAAAAs4AAAABxDAAAIC/AAAA"
     "wAAAQMAAAIDAAACgwAAAwMAAAODAAAAAwQAAEMEAACDBAAAwwQAAQME=",
     {"value": ("float32", (3, 2, 2),
        "0000803f0000e040000080400000204100000040000000410000a040000030410000404000001041"
        "0000c04000004041"),
      "value:v:1.x\\y": ("float32", (3, 2, 2),
        "000080bf0000e0c0000080c0000020c1000000c0000000c10000a0c0000030c1000040c0000010c1"
        "0000c0c0000040c1")}),
    ("primitiv", "model_nested.primitiv", "primitiv db14ca4",
     "zgAAAADOAAAAAc4AAAMAzgAAAAWSo2RlY6F3ks4AAAABzgAAAALOAAAAAcQIAAAgQQAAMEHOAAAAAJOjZW5jpG"
     "NlbGyhd5LOAAAAAs4AAAACzgAAAAHEEAAAoEAAAMBAAADgQAAAAEHOAAAAAaFzks4AAAACzgAAAALOAAAAAcQQ"
     "AACgwAAAwMAAAODAAAAAwZKjZW5joXeRzgAAAALOAAAAAcQIAABAQAAAgEDOAAAAAJGkZW5jMpDOAAAAAcQEAA"
     "AQQc4AAAAAkaF6kc4AAAACzgAAAAHECAAAgD8AAABAzgAAAAA=",
     {"dec.w": ("float32", (1, 2), "0000204100003041"),
      "enc.cell.w": ("float32", (2, 2), "0000a0400000e0400000c04000000041"),
      "enc.cell.w:s": ("float32", (2, 2), "0000a0c00000e0c00000c0c0000000c1"),
      "enc.w": ("float32", (2,), "0000404000008040"),
      "enc2": ("float32", (), "00001041"),
      "z": ("float32", (2,), "0000803f00000040")}),
    ("primitiv", "model_escapes.primitiv", "primitiv db14ca4",
     "zgAAAADOAAAAAc4AAAMAzgAAAASRo2EuYpHOAAAAAs4AAAABxAgAAIA/AACAv84AAAAAkaNjOmSRzgAAAALOAA"
     "AAAcQIAAAAQAAAAMDOAAAAAJGjZVxmkc4AAAACzgAAAAHECAAAQEAAAEDAzgAAAACSo3gueaN6OneRzgAAAALO"
     "AAAAAcQIAACAQAAAgMDOAAAAAadzOnQudVx2kM4AAAABxAQAAABB",
     {"a\\.b": ("float32", (2,), "0000803f000080bf"),
      "c\\:d": ("float32", (2,), "00000040000000c0"),
      "e\\\\f": ("float32", (2,), "00004040000040c0"),
      "x\\.y.z\\:w": ("float32", (2,), "00008040000080c0"),
      "x\\.y.z\\:w:s:t.u\\v": ("float32", (), "00000041")}),
    ("primitiv", "optim_sgd_set.primitiv", "primitiv db14ca4",
     "zgAAAADOAAAAAc4AAAQAga9PcHRpbWl6ZXIuZXBvY2jOAAAAB4SnU0dELmV0Yco+gAAAuE9wdGltaXplci5jbG"
     "lwX3RocmVzaG9sZMpAoAAAtU9wdGltaXplci5sMl9zdHJlbmd0aMo+AAAAsk9wdGltaXplci5scl9zY2FsZco/"
     "AAAA", {}),
    ("burnpack", "v019_basic.bpk", "burn-store 0.19.1",
     "TlJVQgEAWwEAAKJndGVuc29yc6RzZGVjb2Rlci5oZWFkLndlaWdodKRlZHR5cGVjRjE2ZXNoYXBlggICbGRhdG"
     "Ffb2Zmc2V0c4IYJBgsaHBhcmFtX2lkG4AAAAAAAAAAbWRlY29kZXIuc3RlcHOkZWR0eXBlY0k2NGVzaGFwZYEB"
     "bGRhdGFfb2Zmc2V0c4IYLBg0aHBhcmFtX2lkB3NlbmNvZGVyLmxheWVyMS5iaWFzpGVkdHlwZWNGMzJlc2hhcG"
     "WBA2xkYXRhX29mZnNldHOCGBgYJGhwYXJhbV9pZBgqdWVuY29kZXIubGF5ZXIxLndlaWdodKRlZHR5cGVjRjMy"
     "ZXNoYXBlggIDbGRhdGFfb2Zmc2V0c4IAGBhocGFyYW1faWQbywYLQw2IEv9obWV0YWRhdGGjZmZvcm1hdGhidX"
     "JucGFja2hwcm9kdWNlcmRidXJuZ3ZlcnNpb25mMC4xOS4xAAAAPwAAgL8AABBAAABAQHfMKzIA4H/HzczMPc3M"
     "TD6amZk+ADwAwFU1/3v//////////w==",
     {"decoder.head.weight": ("float16", (2, 2), "003c00c05535ff7b"),
      "decoder.steps": ("int64", (1,), "ffffffffffffffff"),
      "encoder.layer1.bias": ("float32", (3,), "cdcccc3dcdcc4c3e9a99993e"),
      "encoder.layer1.weight": ("float32", (2, 3),
        "0000003f000080bf000010400000404077cc2b3200e07fc7")}),
    ("burnpack", "v020_bool.bpk", "burn-store 0.20.1",
     "TlJVQgEApwAAAKJndGVuc29yc6JkbWFza6RlZHR5cGVkQm9vbGVzaGFwZYEFbGRhdGFfb2Zmc2V0c4IABWhwYX"
     "JhbV9pZANhd6RlZHR5cGVjRjMyZXNoYXBlgQFsZGF0YV9vZmZzZXRzghkBABkBBGhwYXJhbV9pZARobWV0YWRh"
     "dGGjZmZvcm1hdGhidXJucGFja2hwcm9kdWNlcmRidXJuZ3ZlcnNpb25mMC4yMC4xAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEA"
     "AQE" + "A" * 338 + "IA/",
     {"mask": ("bool", (5,), "0100010100"),
      "w": ("float32", (1,), "0000803f")}),
    ("burnpack", "v021_tiny.bpk", "burn-store 0.21.0",
     "TlJVQgEARwAAAKJndGVuc29yc6Fhd6RlZHR5cGVjRjMyZXNoYXBlgQJsZGF0YV9vZmZzZXRzggAIaHBhcmFtX2"
     "lkB2htZXRhZGF0YaFha2F2" + "A" * 236 + "gD8AAABA",
     {"w": ("float32", (2,), "0000803f00000040")}),
    ("burnpack", "v021_basic.bpk", "burn-store 0.21.0",
     "TlJVQgEAYQEAAKJndGVuc29yc6RzZGVjb2Rlci5oZWFkLndlaWdodKRlZHR5cGVjRjE2ZXNoYXBlggICbGRhdG"
     "Ffb2Zmc2V0c4IZAgAZAghocGFyYW1faWQbgAAAAAAAAABtZGVjb2Rlci5zdGVwc6RlZHR5cGVjSTY0ZXNoYXBl"
     "gQFsZGF0YV9vZmZzZXRzghkDABkDCGhwYXJhbV9pZAdzZW5jb2Rlci5sYXllcjEuYmlhc6RlZHR5cGVjRjMyZX"
     "NoYXBlgQNsZGF0YV9vZmZzZXRzghkBABkBDGhwYXJhbV9pZBgqdWVuY29kZXIubGF5ZXIxLndlaWdodKRlZHR5"
     "cGVjRjMyZXNoYXBlggIDbGRhdGFfb2Zmc2V0c4IAGBhocGFyYW1faWQbywYLQw2IEv9obWV0YWRhdGGjZmZvcm"
     "1hdGhidXJucGFja2hwcm9kdWNlcmRidXJuZ3ZlcnNpb25mMC4yMS4w" + "A" * 203
     + "/AACAvwAAEEAAAEBAd8wrMgDgf8c" + "A" * 309 + "zczMPc3MTD6amZk+" + "A" * 327 + "8AMBVNf97"
     + "A" * 330 + "D//////////w==",
     {"decoder.head.weight": ("float16", (2, 2), "003c00c05535ff7b"),
      "decoder.steps": ("int64", (1,), "ffffffffffffffff"),
      "encoder.layer1.bias": ("float32", (3,), "cdcccc3dcdcc4c3e9a99993e"),
      "encoder.layer1.weight": ("float32", (2, 3),
        "0000003f000080bf000010400000404077cc2b3200e07fc7")}),
    ("burnpack", "v021_special_floats.bpk", "burn-store 0.21.0",
     "TlJVQgEA3QAAAKFndGVuc29yc6RkYmYxNqRlZHR5cGVkQkYxNmVzaGFwZYEEbGRhdGFfb2Zmc2V0c4IZAwAZAw"
     "hocGFyYW1faWQEY2YxNqRlZHR5cGVjRjE2ZXNoYXBlgQRsZGF0YV9vZmZzZXRzghkCABkCCGhwYXJhbV9pZANj"
     "ZjMypGVkdHlwZWNGMzJlc2hhcGWBBmxkYXRhX29mZnNldHOCABgYaHBhcmFtX2lkAWNmNjSkZWR0eXBlY0Y2NG"
     "VzaGFwZYEFbGRhdGFfb2Zmc2V0c4IZAQAZAShocGFyYW1faWQCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "wH8AAIB/AACA/wAAAAAAAACAAQCAfw" + "A" * 316
     + "D4fwAAAAAAAPB/AAAAAAAA8P8AAAAAAAAAgAEAAAAAAPD/" + "A" * 289 + "H4AfAD8AI" + "A" * 331
     + "MB/gH+A/wCA",
     {"bf16": ("bfloat16", (4,), "c07f807f80ff0080"),
      "f16": ("float16", (4,), "007e007c00fc0080"),
      "f32": ("float32", (6,), "0000c07f0000807f000080ff00000000000000800100807f"),
      "f64": ("float64", (5,),
        "000000000000f87f000000000000f07f000000000000f0ff0000000000000080010000000000f0ff")}),
    ("burnpack", "head_scalars.bpk", "burn-pack 0.22.0-pre.2 (commit 2c06be35)",
     "TlJVQgEAtgAAAKNndGVuc29yc6Fhd6RlZHR5cGVjRjMyZXNoYXBlgQJsZGF0YV9vZmZzZXRzggAIaHBhcmFtX2"
     "lkBWhtZXRhZGF0YaFha2F2Z3NjYWxhcnOmZWFfaW50oWNJbnQkZmJfdWludKFkVUludBv//////////2NjX2ah"
     "ZUZsb2F0+T4AY2RfZqFlRmxvYXT7P7mZmZmZmZpjZV9moWVGbG9hdPt+N+Q8iAB1nGZmX2Jvb2yhZEJvb2z1AA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "gD8AAABA",
     {"w": ("float32", (2,), "0000803f00000040")}),
    ("burnpack", "head_quant.bpk", "burn-pack 0.22.0-pre.2 (commit 2c06be35)",
     "TlJVQgEAoAAAAKFndGVuc29yc6FhcaRlZHR5cGWhZlFGbG9hdKVldmFsdWVjUThGZXN0b3JloWlQYWNrZWRVMz"
     "IAZG1vZGVpU3ltbWV0cmljZnRlbnNvcmNGMzJlYmxvY2uiZHNpemWiZ3N0b3JhZ2WFEAEBAQFjbGVuAWVkdHlw"
     "ZWVVRTRNM2VzaGFwZYEQbGRhdGFfb2Zmc2V0c4IAFWhwYXJhbV9pZAUAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"
     "AgMEBQYHCAkKCwwNDg84AACAPw==",
     {"q": ("qfloat", (16,), "000102030405060708090a0b0c0d0e0f380000803f")}),
    ("tensorbuffers", "sorted_one.tbs", "flatbuffers 25.2.10 (Rust)",
     "VEJTMQAAgD8AAADAEAAAAAwAEAAEAAAACAAMAAwAAAAYAAAADAAAAAQAAAAAAAAAAQAAACAAAAAFAAAAMS4wLj"
     "AAAAAQACAAGAAIAAwABwAQABQAEAAAAAAAAAEYAAAAHAAAAAQAAAAIAAAAK+tttQfJywgBAAAAdwAAAAEAAAAC"
     "AAAAeAAAAFRCUzE=",
     {"w": ("float32", (2,), "0000803f000000c0")}),
    ("tensorbuffers", "sorted_model.tbs", "flatbuffers 25.2.10 (Rust)",
     "VEJTMQAAgD8AAABAAABAQAAAgED//wIAAAAAAAAA4D8UAAAAAAAAAAwAFAAEAAgADAAQAAwAAAA0AAAADAAAAB"
     "wAAAAUAAAACgAAAHLDqXN1bcOpLTEAAAAAAAADAAAAWAAAABQAAACYAAAABQAAADEuMC4wAAAAiP///wAAAAIY"
     "AAAAIAAAABgAAAAIAAAA6gFgIbh0nV0FAAAAc2NhbGUAAAAAAAAAEAAkABgACAAMAAcAEAAUABAAAAAAAAAEHA"
     "AAACQAAAAUAAAABAAAAKGl9I3DcCsRAAAAAAQAAABiaWFzAAAAAAEAAAACAAAAEAAgABgACAAMAAcAEAAUABAA"
     "AAAAAAABGAAAACAAAAAEAAAAEAAAANITi/Bux0mxBgAAAHdlaWdodAAAAgAAAAIAAAACAAAAGAEAAFRCUzE=",
     {"bias": ("int16", (2,), "ffff0200"),
      "scale": ("float64", (), "000000000000e03f"),
      "weight": ("float32", (2, 2), "0000803f000000400000404000008040")}),
    ("tensorbuffers", "up_head_uint8.tbs", "tensorbuffers 2422de1",
     "VEJTMQABAn+A/wcQAAAADAAQAAQAAAAIAAwADAAAACAAAAAMAAAABAAAAAAAAAADAAAAmAAAAFQAAAAcAAAABQ"
     "AAADEuMC4wAA4AIAAUAAgADAAHABAADgAAAAAAAAcYAAAAHAAAAAsAAAANiji1B8mNCAAAAAABAAAAZQAAAAIA"
     "AAAAAAAABAAAAND///8AAAAHHAAAACAAAAAKAAAAAQAAAIcoerUHydkIAAAAAAEAAABzAAAAAAAAABAAJAAYAA"
     "gADAAHABAAFAAQAAAAAAAABxwAAAAgAAAABAAAAAYAAADFBFG1B8mpCAAAAAABAAAAbQAAAAIAAAACAAAAAwAA"
     "APgAAABUQlMx",
     {"m": ("uint8", (2, 3), "0001027f80ff"),
      "s": ("uint8", (), "07"),
      "e": ("uint8", (0, 4), "")}),
    ("tensorbuffers", "up_head_mixed.tbs", "tensorbuffers 2422de1",
     "VEJTMf8AAAAAAAD4PwAAAAAAAATA//8CAf//////////AACAPoAAAACAAAAAAAAAAID///////8UAAAAAAAAAA"
     "wAEAAEAAAACAAMAAwAAAA8AAAADAAAAAQAAAAAAAAACgAAABwCAADQAQAAlAEAAEgBAAAUAQAA4AAAAKwAAAB4"
     "AAAARAAAABAAAAAFAAAAMS4wLjAAAAAo/v//AAAACRgAAAAcAAAANAAAAAQAAAAq4D885UWypgMAAAB1MzIAAQ"
     "AAAAEAAABY/v//AAAACBgAAAAcAAAAMgAAAAIAAADAVbcx5fOFlAMAAAB1MTYAAQAAAAEAAACI/v//AAAABhgA"
     "AAAcAAAAKgAAAAgAAABbT9FnxECUEAMAAABpNjQAAQAAAAEAAAC4/v//AAAABRgAAAAcAAAAJgAAAAQAAAAOn2"
     "qAxA34OwMAAABpMzIAAQAAAAEAAADo/v//AAAAAxgAAAAcAAAAJQAAAAEAAADRnE8rGXYDKwIAAABpOAAAAQAA"
     "AAEAAACY////AAAAARwAAAAgAAAAIQAAAAQAAADBTKsLetX2nwAAAAADAAAAZjMyAAAAAABI////AAAAChgAAA"
     "AcAAAAGQAAAAgAAAAXaERK5cDbvwMAAAB1NjQAAwAAAAEAAAABAAAAAQAAABAAJAAYAAgADAAHABAAFAAQAAAA"
     "AAAABBwAAAAgAAAAFQAAAAQAAADMuCR2xLsbKgAAAAADAAAAaTE2AAIAAAACAAAAAQAAAMj///8AAAACGAAAAC"
     "QAAAAFAAAAEAAAAN5IR2ZWDeOSCAAAAGY2NF9hdF81AAAAAAEAAAACAAAAEAAgABgACAAMAAcAEAAUABAAAAAA"
     "AAAHGAAAABwAAAAEAAAAAQAAAG+HqOsNoI4DAwAAAHBhZAABAAAAAQAAAHgCAABUQlMx",
     {"pad": ("uint8", (1,), "ff"),
      "f64_at_5": ("float64", (2,), "000000000000f83f00000000000004c0"),
      "i16": ("int16", (2, 1), "ffff0201"),
      "u64": ("uint64", (1, 1, 1), "ffffffffffffffff"),
      "f32": ("float32", (), "0000803e"),
      "i8": ("int8", (1,), "80"),
      "i32": ("int32", (1,), "00000080"),
      "i64": ("int64", (1,), "0000000000000080"),
      "u16": ("uint16", (1,), "ffff"),
      "u32": ("uint32", (1,), "ffffffff")}),
    ("tensorbuffers", "up_head_ops.tbs", "tensorbuffers 2422de1",
     "VEJTMQAAgD8AAABAAABAQBAAAAAMABAABAAAAAgADAAMAAAAIAAAABQAAAAEAAAAAgAAAGQAAAAkAAAAAQAAAI"
     "gAAAAFAAAAMS4wLjAAAAAMACAADAAHABQACAAMAAAAAAAAARgAAAACAAAAAAAAAJ5txLQHyQMIAAAAAAEAAAAB"
     "AAAAAAAAAAAAAAAMABwACAAAABAABAAMAAAAGAAAAAEAAAAAAAAAGbO4tAfJ9wcAAAAAAAAAABAAIAAYAAgADA"
     "AHABAAFAAQAAAAAAAAARgAAAAcAAAABAAAAAwAAAAZs7i0B8n3BwEAAAAxAAAAAQAAAAMAAADoAAAAVEJTMQ==",
     {"1": ("float32", (3,), "0000803f0000004000004040")}),
    ("tensorbuffers", "up_7190fc4_f32.tbs", "tensorbuffers 7190fc4",
     "VEJTMQAAgD8AAABAAABAQAAAgEAAAKBAAADAQBQAAAAAAAAAAAAKAAwABAAAAAgACgAAABQAAAAEAAAAAgAAAF"
     "QAAAAQAAAABQAAADEuMC4wAAAA0P///wAAAAEYAAAAHAAAABAAAAAMAAAAnm3EtAfJAwgBAAAAMgAAAAEAAAAD"
     "AAAAEAAgABgACAAMAAcAEAAUABAAAAAAAAABGAAAABwAAAAEAAAADAAAABmzuLQHyfcHAQAAADEAAAABAAAAAw"
     "AAAKgAAABUQlMx",
     {"1": ("float32", (3,), "0000803f0000004000004040"),
      "2": ("float32", (3,), "000080400000a0400000c040")}),
    ("tensorbuffers", "cpp_future_fields.tbs", "flatbuffers 25.2.10 (C++)",
     "VEJTMQAAgD8AAABAAABAQAAAgEAAAKBAAADAQP//AgAAAAAAAADgPxQAAAAQABgABAAIAAwAAAAQABQAEAAAAD"
     "AAAAAkAAAANAAAABQAAAAEAAAABQAAAGhlbGxvAAAAAwAAAAECAwABAAAAbQAAAAUAAAAxLjEuMAAAAAEAAAAc"
     "AAAAAAAWADgAHAAIAAwABwAQABQAGAAkACwAFgAAAAAAAAFIAAAAOAAAAAQAAAAYAAAAIAAAANITi/Bux0mxiH"
     "dmVUQzIhEAAAAAAADgPwAAAAAEAAAAenN0ZAAAAAACAAAAAgAAAAMAAAAGAAAAd2VpZ2h0AADQAAAAVEJTMQ==",
     {"weight": ("float32", (2, 3), "0000803f0000004000004040000080400000a0400000c040")}),
)


def golden(name):
    """Return the bytes of a golden file."""
    return [binascii.a2b_base64(row[3]) for row in GOLDENS if row[1] == name][0]


# Options with which saving a golden that was loaded gives its bytes again; the others are written
# in another form than they have: 0.1.2 layout, zstd, packed, the old name of bool, foreign builder.
AGAIN = {
    "seed_basic.mag": {}, "seed_dtypes.mag": {}, "seed_empty.mag": {}, "py_0.1.0_scalar.zt": {},
    "custom_fields.zt": {}, "custom_nested.zt": {}, "zero_scalar_raw.zt": {},
    "shape_batch5.primitiv": {}, "tensor_2x3_batch2.primitiv": {}, "tensor_special.primitiv": {},
    "param_3x2x2_stat.primitiv": {}, "model_nested.primitiv": {}, "model_escapes.primitiv": {},
    "optim_sgd_set.primitiv": {}, "v021_tiny.bpk": {}, "v021_basic.bpk": {},
    "v021_special_floats.bpk": {}, "head_scalars.bpk": {}, "head_quant.bpk": {},
    "sorted_one.tbs": {}, "sorted_model.tbs": {}, "up_head_uint8.tbs": {"sort": False},
    "up_head_mixed.tbs": {"sort": False}, "up_head_ops.tbs": {"sort": False},
    "up_7190fc4_f32.tbs": {"sort": False, "operations": False}}
METADATA = {
    "seed_basic.mag": {"n": 5, "pi": 3.25}, "m012_mixed.mag": {"pi": 3.25, "n": 5},
    "optim_sgd_set.primitiv": {
        "Optimizer.epoch": 7, "SGD.eta": 0.25, "Optimizer.clip_threshold": 5.0,
        "Optimizer.lr_scale": 0.5, "Optimizer.l2_strength": 0.125},
    "v021_tiny.bpk": {"k": "v"}, "sorted_model.tbs": {"model": "r\u00e9sum\u00e9-1"}}
ATTRS = {
    "seed_basic.mag": {"version": 1, "layout": "spec"},
    "m012_mixed.mag": {"version": 1, "layout": "magnetron-0.1.2"},
    "py_0.1.0_scalar.zt": {"version": "0.1.0"},
    "shape_batch5.primitiv": {"version": "0.1", "kind": "shape", "dims": [2, 3], "batch": 5},
    "optim_sgd_set.primitiv": {"version": "0.1", "kind": "optimizer"},
    "v019_basic.bpk": {"version": 1, "layout": "packed"},
    "v021_tiny.bpk": {"version": 1, "layout": "aligned"},
    "head_scalars.bpk": {"version": 1, "layout": "aligned", "scalars": {
        "a_int": {"Int": -5}, "b_uint": {"UInt": (1 << 64) - 1}, "c_f": {"Float": 1.5},
        "d_f": {"Float": 0.1}, "e_f": {"Float": 1e300}, "f_bool": {"Bool": True}}},
    "up_head_ops.tbs": {"version": "1.0.0", "operations": [
        {"id": 1, "operation": 0, "output": 574148512446984985, "input_operations": []},
        {"id": 2, "operation": 1, "output": 577526212168281502, "input_operations": [1]}]},
    "cpp_future_fields.tbs": {"version": "1.1.0"}}
TENSOR_ATTRS = {
    ("m012_mixed.mag", "x"): {},
    ("custom_nested.zt", "n"): {
        "layout": "dense", "encoding": "raw", "data_endianness": "little", "Z": NAN, "a": -INF,
        "aa": 3.5, "b": {"k": (1 << 64) - 1},
        "zz": {"a": -1, "ab": 70000, "bb": 2, "ccc": "x"}, "\u00e9": 0.1},
    ("mixed.zt", "big"): {"layout": "dense", "encoding": "raw", "data_endianness": "big"},
    ("mixed.zt", "c"): {"layout": "dense", "encoding": "raw", "data_endianness": "little",
                        "checksum": "crc32c:0xE8890928"},
    ("mixed.zt", "last"): {"layout": "dense", "encoding": "raw", "note": "x"},
    ("tensor_2x3_batch2.primitiv", "tensor"): {"batch": 2},
    ("v021_tiny.bpk", "w"): {"param_id": 7},
    ("sorted_one.tbs", "w"): {"id": 0x08CBC907B56DEB2B}}
ODD = ("seed_order_unaligned.mag", "cpp_future_fields.tbs")  # hold bytes that no field names


# -- [3] codecs ----------------------------------------------------------------------------------

CBOR = (  # RFC 8949, appendix A: what is decoded and encoded
    ("00", 0), ("01", 1), ("0a", 10), ("17", 23), ("1818", 24), ("1819", 25), ("1864", 100),
    ("1903e8", 1000), ("1a000f4240", 1000000), ("1b000000e8d4a51000", 1000000000000),
    ("1bffffffffffffffff", (1 << 64) - 1), ("3bffffffffffffffff", -(1 << 64)), ("20", -1),
    ("29", -10), ("3863", -100), ("3903e7", -1000), ("f90000", 0.0), ("f98000", -0.0),
    ("f93c00", 1.0), ("f93e00", 1.5), ("f97bff", 65504.0), ("f90001", 5.960464477539063e-08),
    ("f90400", 6.103515625e-05), ("f9c400", -4.0), ("fa47c35000", 100000.0),
    ("fa7f7fffff", (2.0 - 2.0 ** -23) * 2.0 ** 127), ("fb3ff199999999999a", 1.1),
    ("fb7e37e43c8800759c", 1e+300), ("fbc010666666666666", -4.1), ("f97c00", INF),
    ("f97e00", NAN), ("f9fc00", -INF), ("f4", False), ("f5", True), ("f6", None), ("40", b""),
    ("4401020304", b"\x01\x02\x03\x04"), ("60", ""), ("6161", "a"), ("6449455446", "IETF"),
    ("62225c", "\"\\"), ("62c3bc", "\u00fc"), ("63e6b0b4", "\u6c34"), ("64f0908591", "\U00010151"),
    ("80", []), ("83010203", [1, 2, 3]), ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("98190102030405060708090a0b0c0d0e0f101112131415161718181819", list(range(1, 26))),
    ("a0", {}), ("a201020304", {1: 2, 3: 4}), ("a26161016162820203", {"a": 1, "b": [2, 3]}),
    ("826161a161626163", ["a", {"b": "c"}]),
    ("a56161614161626142616361436164614461656145",
     {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"}))
CBOR_READ = (  # what is only decoded: longer forms, tags, indefinite lengths
    ("c249010000000000000000", 1 << 64), ("c349010000000000000000", -(1 << 64) - 1),
    ("fa7f800000", INF), ("fa7fc00000", NAN), ("faff800000", -INF),
    ("fb7ff0000000000000", INF), ("fb7ff8000000000000", NAN), ("fbfff0000000000000", -INF),
    ("f7", None), ("f0", tensorfmt.Simple(16)), ("f8ff", tensorfmt.Simple(255)),
    ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
    ("c11a514b67b0", 1363896240), ("c1fb41d452d9ec200000", 1363896240.5),
    ("d74401020304", b"\x01\x02\x03\x04"), ("d818456449455446", b"dIETF"),
    ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", "http://www.example.com"),
    ("5f42010243030405ff", b"\x01\x02\x03\x04\x05"), ("7f657374726561646d696e67ff", "streaming"),
    ("9fff", []), ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
    ("9f01820203820405ff", [1, [2, 3], [4, 5]]), ("83018202039f0405ff", [1, [2, 3], [4, 5]]),
    ("83019f0203ff820405", [1, [2, 3], [4, 5]]),
    ("9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", list(range(1, 26))),
    ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}), ("826161bf61626163ff", ["a", {"b": "c"}]),
    ("bf6346756ef563416d7421ff", {"Fun": True, "Amt": -2}))
CBOR_BAD = """
    18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 fa0000 fb000000
    41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 7b7fffffffffffffff010203 81
    818181818181818181 8200 a1 a20102 a100 a2000000 c0 5f4100 7f6100 9f 9f0102 bf bf01020102 819f
    9f8000 9f9f9f9f9fffffffff 9f819f819f9fffffff 1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd
    be dc dd de fc fd fe 1f 3f df f800 f801 f818 f81f 5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff
    5fe0ff 7f4100ff 5f5f4100ffff 7f7f6100ffff ff 81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff
    9f829f819f9fffffffff bf00ff bf000000ff 0000 62c328 63eda080 62c080 7f61c361a9ff a201020103
    a18001 a1a000 a2f60001f600 5f58 7f7801 5f5803aabb 1c00000000000000000000000000000000
    df00000000000000000000000000000000""".split()

MSGPACK = (  # shortest forms, decoded and encoded
    ("c0", None), ("c2", False), ("c3", True), ("00", 0), ("01", 1), ("7f", 127), ("cc80", 128),
    ("ccff", 255), ("cd0100", 256), ("cdffff", 65535), ("ce00010000", 65536),
    ("ceffffffff", (1 << 32) - 1), ("cf0000000100000000", 1 << 32),
    ("cfffffffffffffffff", (1 << 64) - 1), ("ff", -1), ("e0", -32), ("d0df", -33), ("d080", -128),
    ("d1ff7f", -129), ("d18000", -32768), ("d2ffff7fff", -32769), ("d280000000", -(1 << 31)),
    ("d3ffffffff7fffffff", -(1 << 31) - 1), ("d38000000000000000", -(1 << 63)),
    ("cb0000000000000000", 0.0), ("cb8000000000000000", -0.0), ("cb3ff8000000000000", 1.5),
    ("cb3fb999999999999a", 0.1), ("cb7ff0000000000000", INF), ("cbfff0000000000000", -INF),
    ("a0", ""), ("a161", "a"), ("a3e38182", "\u3042"), ("a4f09f9982", "\U0001f642"),
    ("bf" + "61" * 31, "a" * 31), ("d920" + "61" * 32, "a" * 32), ("d9ff" + "61" * 255, "a" * 255),
    ("da0100" + "61" * 256, "a" * 256), ("db00010000" + "61" * 65536, "a" * 65536),
    ("c400", b""), ("c40100", b"\0"), ("c4ff" + "07" * 255, b"\7" * 255),
    ("c50100" + "07" * 256, b"\7" * 256), ("c600010000" + "07" * 65536, b"\7" * 65536),
    ("90", []), ("9101", [1]), ("9f" + "05" * 15, [5] * 15), ("dc0010" + "05" * 16, [5] * 16),
    ("dd00010000" + "c0" * 65536, [None] * 65536), ("80", {}), ("81a16101", {"a": 1}),
    ("8101c0", {1: None}), ("82a161c2a162c3", {"a": False, "b": True}),
    ("8f" + "".join(["%02x00" % i for i in range(15)]), dict([(i, 0) for i in range(15)])),
    ("9190", [[]]), ("9180", [{}]), ("81a16180", {"a": {}}), ("81a16190", {"a": []}),
    ("9292010293c0a1789100", [[1, 2], [None, "x", [0]]]))
MSGPACK_READ = (  # longer forms, float32, ext and timestamps: decoded only
    ("cc00", 0), ("cc7f", 127), ("cd0000", 0), ("ce00000000", 0), ("cf0000000000000000", 0),
    ("d000", 0), ("d07f", 127), ("d0ff", -1), ("d10000", 0), ("d1ffff", -1), ("d200000000", 0),
    ("d2ffffffff", -1), ("d30000000000000000", 0), ("d3ffffffffffffffff", -1),
    ("cf7fffffffffffffff", (1 << 63) - 1), ("ca00000000", 0.0), ("ca3f000000", 0.5),
    ("ca7f800000", INF), ("ca7fc00000", NAN), ("cabf800000", -1.0), ("cb7ff8000000000000", NAN),
    ("d900", ""), ("da0000", ""), ("db00000000", ""), ("d90161", "a"), ("c50000", b""),
    ("c600000000", b""), ("dc0000", []), ("dd00000000", []), ("dc0001c3", [True]),
    ("dd0000000190", [[]]), ("de0000", {}), ("df00000000", {}), ("de0001a16101", {"a": 1}),
    ("df00000001a161df00000000", {"a": {}}),
    ("de0010" + "".join(["cc%02x90" % i for i in range(16)]), dict([(i, []) for i in range(16)])),
    ("d40110", (1, b"\x10")), ("d4ff00", (-1, b"\0")), ("d5021112", (2, b"\x11\x12")),
    ("d603" + "21" * 4, (3, b"!" * 4)), ("d704" + "21" * 8, (4, b"!" * 8)),
    ("d880" + "21" * 16, (-128, b"!" * 16)), ("c70005", (5, b"")), ("c703062a2a2a", (6, b"***")),
    ("c800002a", (42, b"")), ("c80001072a", (7, b"*")), ("c900000002082a2a", (8, b"**")),
    ("c900000000ff", (-1, b"")), ("d6ff00000000", (0, 0)), ("d6ffffffffff", ((1 << 32) - 1, 0)),
    ("d7ff0000000400000001", (1, 1)), ("d7ffee6b27fc00000000", (0, 999999999)),
    ("c70cff00000001ffffffffffffffff", (-1, 1)),
    ("c70cff3b9ac9ff7fffffffffffffff", ((1 << 63) - 1, 999999999)))
MSGPACK_BAD = (  # hex, error
    ("c1", FormatError), ("91c1", FormatError), ("0000", FormatError),
    ("82a16101a16102", FormatError), ("ddffffffff", FormatError), ("dfffffffff", FormatError),
    ("c6ffffffff00", FormatError), ("dbffffffff00", FormatError), ("c9ffffffff01", FormatError),
    ("d7ffee6b280000000000", FormatError), ("c70cff3b9aca000000000000000000", FormatError),
    ("91" * 65 + "c0", FormatError), ("8190c0", Unsupported), ("8180c0", Unsupported))
UINT32S = (  # the typed form: what primitiv writes
    (0, "ce00000000"), (1, "ce00000001"), (0xFFFFFFFF, "ceffffffff"), (0.5, "ca3f000000"),
    (INF, "ca7f800000"), (0.1, "ca3dcccccd"), ([7], "91ce00000007"), ("a", "a161"))

CRC32C = (  # bytes, CRC-32C
    (b"", 0), (b"a", 0xC1D04330), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C), (bytes(65536), 0x72C0C4A4),
    (b"The quick brown fox jumps over the lazy dog", 0x22620404),
    (bytes([(7 * i + 3) & 255 for i in range(36723)]), 0x6E628146),
    (bytes([(7 * i + 3) & 255 for i in range(36724)]), 0x9FAD1D95))
NAME_IDS = (  # TensorBuffers: FNV-1a over the UTF-8 bytes and ff
    ("", 0xAF64724C8602EB6E), ("a", 0x089BC907B544C769), ("w", 0x08CBC907B56DEB2B),
    ("weight", 0xB149C76EF08B13D2), ("input_1", 0xD006300CB5E9A7C8),
    ("layer.0.weight", 0xB1D6F7BAA45553BF), ("\u00e9", 0x5FEC201C1DFCA99A),
    ("\u65e5\u672c\u8a9e", 0xCCEAB2E36852E8E8), ("\U0001f642", 0x55FEE4EED74D37DC),
    ("a\0b", 0xAB4072820D3FD4D7), ("x" * 300, 0x1E68A55BFF098FDE))


class CodecTest(TestCase):
    def test_cbor_both_ways(self):
        for text, value in CBOR:
            with self.subTest(hex=text):
                self.assertSame(tensorfmt.cbor_loads(unhex(text)), value)
                self.assertEqual(tohex(tensorfmt.cbor_dumps(ordered(value))), text)

    def test_cbor_other_forms_are_read(self):
        self.assertEqual(len(CBOR) + len(CBOR_READ), 81)  # the whole appendix
        for text, value in CBOR_READ:
            with self.subTest(hex=text):
                self.assertSame(tensorfmt.cbor_loads(unhex(text)), value)

    def test_cbor_not_well_formed(self):
        for text in CBOR_BAD:
            if not CPYTHON and text in ("63eda080", "62c080"):  # its UTF-8 decoder is lax
                continue
            with self.subTest(hex=text):
                error = error_of(FormatError, tensorfmt.cbor_loads, unhex(text))
                self.assertTrue(0 <= error.offset <= len(text) // 2)

    def test_cbor_prefixes_are_refused(self):
        for text, _ in CBOR + CBOR_READ:
            for end in range(len(text) // 2):
                error_of(FormatError, tensorfmt.cbor_loads, unhex(text)[:end])

    def test_cbor_nesting_is_bounded(self):
        deep = tensorfmt.MAX_DEPTH
        for head in (b"\x81", b"\xc6", b"\x9f"):
            tail = b"\xff" * deep if head == b"\x9f" else b""
            with self.subTest(head=head):
                tensorfmt.cbor_loads(head * deep + b"\0" + tail)
                for count in (deep + 1, 100000):
                    error = error_of(FormatError, tensorfmt.cbor_loads, head * count + b"\0")
                    self.assertIn("MAX_DEPTH", error.what)

    def test_cbor_encoder_options_and_refusals(self):
        value = ordered([("bb", 1), ("a", {"c": 2})])
        self.assertEqual(tohex(tensorfmt.cbor_dumps(value)), "a262626201" "6161a1616302")
        self.assertEqual(tohex(tensorfmt.cbor_dumps(value, indefinite=True)),
                         "bf62626201" "6161bf616302ff" "ff")
        self.assertEqual(tohex(tensorfmt.cbor_dumps(value, sort=True)), "a26161a1616302" "62626201")
        for wrong in (1 << 64, -(1 << 64) - 1, "\ud800"):
            with self.subTest(value=repr(wrong)):
                error_of(ValueError, tensorfmt.cbor_dumps, [wrong])
        error_of(TypeError, tensorfmt.cbor_dumps, [object()])

    def test_msgpack_both_ways(self):
        for text, value in MSGPACK:
            with self.subTest(hex=text[:40]):
                self.assertSame(tensorfmt.msgpack_loads(unhex(text)), value)
                if not isinstance(value, dict) or len(value) < 2 or CPYTHON:  # order of a dict
                    self.assertEqual(tohex(tensorfmt.msgpack_dumps(value)), text)

    def test_msgpack_other_forms_are_read(self):
        for text, value in MSGPACK_READ:
            with self.subTest(hex=text[:40]):
                self.assertSame(tensorfmt.msgpack_loads(unhex(text)), value)

    def test_msgpack_vectors_cover_every_first_byte(self):
        seen = set([unhex(row[0][:2])[0] for row in MSGPACK + MSGPACK_READ + MSGPACK_BAD])
        ends = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF] + list(range(0xC0, 0xE1)) + [0xFF]
        self.assertEqual([byte for byte in ends if byte not in seen], [])

    def test_msgpack_bad(self):
        for text, kind in MSGPACK_BAD:
            with self.subTest(hex=text[:40]):
                error = error_of(kind, tensorfmt.msgpack_loads, unhex(text))
                self.assertTrue(error.what)

    def test_msgpack_prefixes_are_refused(self):
        for text, _ in MSGPACK + MSGPACK_READ:
            data = unhex(text[:200])
            for end in range(len(data) - (len(text) <= 200)):
                error_of(FormatError, tensorfmt.msgpack_loads, data[:end])

    def test_msgpack_nesting_is_bounded(self):
        value = tensorfmt.msgpack_loads(b"\x91" * tensorfmt.MAX_MSGPACK_DEPTH + b"\xc0")
        for _ in range(tensorfmt.MAX_MSGPACK_DEPTH):
            value, = value
        self.assertIsNone(value)

    def test_msgpack_typed_form(self):
        for value, text in UINT32S:
            with self.subTest(value=value):
                self.assertEqual(tohex(tensorfmt.msgpack_dumps(value, typed=True)), text)
        for wrong in (-1, 1 << 32, 3.5e38):
            with self.subTest(value=wrong):
                error_of(ValueError, tensorfmt.msgpack_dumps, wrong, typed=True)
        for wrong in (1 << 64, -(1 << 63) - 1, object()):
            error_of(ValueError, tensorfmt.msgpack_dumps, wrong)

    def test_crc32c(self):
        for data, crc in CRC32C:
            with self.subTest(nbytes=len(data)):
                self.assertEqual(tensorfmt.crc32c(data), crc)
                half = tensorfmt.crc32c(memoryview(data)[:len(data) // 3])
                self.assertEqual(tensorfmt.crc32c(data[len(data) // 3:], half), crc)

    @full
    def test_crc32c_folds_are_multiples_of_the_polynomial(self):
        for powers in tensorfmt._CRC32C_FOLDS:
            rest = 0
            for power in powers:
                rest ^= power_of_x(power)
            with self.subTest(powers=powers):
                self.assertEqual(rest, 0)

    def test_ids_of_names(self):
        for name, number in NAME_IDS:
            with self.subTest(name=name[:20]):
                hashed = tensorfmt.TensorBuffers.hash_name(tensorfmt.encode_text(name))
                self.assertEqual(hashed, number)
                row = load(dumps({name: tensor([1], "uint8")}, format="tensorbuffers"))[name]
                self.assertEqual(row.attrs["id"], number)

    def test_flatbuffers_worked_example(self):
        flat = tensorfmt.FlatBuilder()
        shape = flat.scalars("I", [2])
        name = flat.string("w")
        places = [shape, name]
        entry = flat.table(((0, "Q", 0x08CBC907B56DEB2B, 0), (5, "I", 8, 0), (4, "I", 4, 0),
                            (2, "offset", shape, None), (1, "offset", name, None), (3, "b", 1, 0)))
        places += [entry, flat.string("1.0.0"), flat.offsets([entry]), flat.offsets([])]
        root = flat.table(((3, "offset", places[5], None), (2, "offset", places[4], None),
                           (0, "offset", places[3], None)))
        self.assertEqual(places + [root], [8, 16, 48, 76, 84, 88, 104])
        self.assertEqual(flat.finish(root), golden("sorted_one.tbs")[12:132])

    def test_flatbuffers_every_kind_of_field(self):
        root = tensorfmt.FlatTable(flat_example())
        self.assertEqual(root.slots, [0, 1, 2, 3, 4, 5, 6, 8])
        self.assertEqual((root.scalar(0, "h"), root.string(1)), (-2, "hi"))
        self.assertEqual(tohex(root.struct(2, 4)), "01000200")
        self.assertEqual(root.strings(3), ["", "z"])
        self.assertEqual(root.structs(4, 2), [b"ab", b"cd", b"ef"])
        self.assertEqual(root.table(5).scalar(0, "d"), 1.5)
        self.assertEqual(root.scalars(6, "H"), [1, 2, 65535])
        self.assertEqual([row.scalar(0, "d", 9.0) for row in root.tables(8)], [1.5, 1.5])
        self.assertEqual((root.scalar(7, "I", 5), root.string(7), root.table(9)), (5, None, None))
        self.assertEqual((root.scalars(7, "I"), root.strings(7), root.tables(99)), ([], [], []))

    def test_flatbuffers_cut_anywhere(self):
        data = flat_example()
        for end in range(len(data)):
            refused = 0
            for read in (lambda root: root.scalar(0, "h"), lambda root: root.string(1),
                         lambda root: root.struct(2, 4), lambda root: root.strings(3),
                         lambda root: root.structs(4, 2), lambda root: root.table(5).slots,
                         lambda root: root.scalars(6, "H"), lambda root: len(root.tables(8))):
                try:
                    read(tensorfmt.FlatTable(data[:end]))
                except FormatError:
                    refused += 1
            with self.subTest(end=end):
                self.assertTrue(refused)


def ordered(value):
    """Return a dict of pairs, or of a dict, that keeps its order also on MicroPython."""
    if isinstance(value, dict) or (isinstance(value, list) and value and not [
            1 for pair in value if not isinstance(pair, tuple)]):
        pairs = sorted(value.items()) if isinstance(value, dict) else value
        return tensorfmt.Map([(key, ordered(item)) for key, item in pairs])
    return [ordered(item) for item in value] if isinstance(value, list) else value


def power_of_x(n):
    """Return x**n modulo the polynomial of CRC-32C, as bits."""
    result, square = 1, 2
    while n:
        if n & 1:
            result = carryless(result, square)
        square = carryless(square, square)
        n >>= 1
    return result


def carryless(a, b):
    """Return a * b without carries, modulo 0x11EDC6F41."""
    product = 0
    for i in range(32):
        if b >> i & 1:
            product ^= a << i
    for i in range(63, 31, -1):
        if product >> i & 1:
            product ^= 0x11EDC6F41 << i - 32
    return product


def flat_example():
    """Return a FlatBuffer put together by hand: position | bytes."""
    rows = """
          0 | 1c000000 1600 2400                            | root table at 28; vtable: 22, 36
          8 | 0400 0800 0c00 1000 1400 1800 1c00 0000 2000  | slots 0 to 8; 7 is absent
         26 | 0000 18000000 feff 0000                       | vtable at 28 - 24; slot 0 = -2
         36 | 1c000000 01000200 1c000000 34000000           | string, struct, strings, structs
         52 | 50000000 58000000 34000000                    | table, numbers, tables
         64 | 02000000 68690000                             | "hi"
         72 | 02000000 08000000 0c000000 00000000 00000000  | ["", ...
         92 | 01000000 7a000000                             |     ... "z"]
        100 | 03000000 616263646566 0000                    | structs ab cd ef
        112 | 02000000 10000000 0c000000                    | the same table twice
        124 | 0600 0c00 0400 0000                           | its vtable
        132 | 08000000 000000000000f83f                     | slot 0 = 1.5
        144 | 03000000 0100 0200 ffff                       | numbers
    """
    return unhex("".join([row.split("|")[1] for row in rows.split("\n") if "|" in row]))


# -- [4] reading ---------------------------------------------------------------------------------


CODES = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h",
         "int8": "b", "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B"}


def numbers(dtype, data):
    """Return the elements in little-endian bytes by struct alone, or None where there are none."""
    if dtype == "bool":
        return [byte != 0 for byte in data]
    if dtype == "bfloat16":
        halves = struct.unpack("<%dH" % (len(data) // 2), data)
        return list(struct.unpack("<%df" % len(halves), b"".join(
            [struct.pack("<I", bits << 16) for bits in halves])))
    if dtype not in CODES:
        return None
    count = len(data) // struct.calcsize("<" + CODES[dtype])
    return list(struct.unpack("<%d%s" % (count, CODES[dtype]), data))


def content(file):
    """Return {name: (dtype, shape, bytes)}, what no conversion may change."""
    return dict([(name, (item.dtype, item.shape, item.tobytes())) for name, item in file.items()])


def zstd_missing(item):
    return item.attrs.get("encoding") == "zstd" and not ZSTD


class GoldenTest(TestCase):
    def check(self, file, wanted):
        names = list(file)
        self.assertEqual(sorted(names), sorted(wanted))
        if CPYTHON:  # elsewhere the dict of GOLDENS has no order
            self.assertEqual(names, list(wanted))
        for name, item in file.items():
            dtype, shape, text = wanted[name]
            self.assertEqual((item.name, item.dtype, item.shape), (name, dtype, shape))
            self.assertEqual(item.ndim, len(shape))
            if zstd_missing(item):
                self.assertIn("zstandard" if WHOLE else "zstd_blocks",
                              error_of(Unsupported, item.tobytes).what)
                continue
            data = item.tobytes()
            self.assertEqual(len(data), item.nbytes)
            if text is None:
                self.assertEqual(data, bytes(65536))  # zstd_64k_zeros.zt
                continue
            self.assertEqual(tohex(data), text)
            if numbers(dtype, data) is not None:
                self.assertSame(list(item.flat), numbers(dtype, data))
                if item.format != "primitiv" or item.ndim < 2:  # there .data is column-major
                    code = {"float16": "uint16", "bfloat16": "uint16"}.get(dtype, dtype)
                    found = [x != 0 for x in item.data] if dtype == "bool" else list(item.data)
                    self.assertSame(found, numbers(code, data))

    def test_from_buffers_and_streams(self):
        for kind, title, _, _, wanted in GOLDENS:
            for source in (golden(title), bytearray(golden(title)), memoryview(golden(title)),
                           io.BytesIO(golden(title)), Short(golden(title))):
                with self.subTest(file=title, source=type(source).__name__):
                    file = load(source)
                    self.assertEqual((file.format, file.path), (kind, None))
                    self.assertEqual(file.nbytes, len(golden(title)))
                    self.check(file, wanted)

    def test_metadata_and_attrs(self):
        for title, wanted in METADATA.items():
            with self.subTest(file=title):
                self.assertSame(load(golden(title)).metadata, wanted)
        for title, wanted in ATTRS.items():
            with self.subTest(file=title):
                self.assertSame(load(golden(title)).attrs, wanted)
        for title, name in TENSOR_ATTRS:
            with self.subTest(file=title, tensor=name):
                self.assertSame(load(golden(title))[name].attrs, TENSOR_ATTRS[title, name])
        odd = load(golden("m012_meta_only.mag")).metadata
        self.assertEqual((odd["i64_min"], odd["huge"]), (-(1 << 63), 1.7976931348623157e308))
        self.assertSame([odd["nan"], odd["neg_inf"], odd["neg_zero"]], [NAN, -INF, -0.0])

    def test_saved_again_gives_the_same_bytes(self):
        for title, options in AGAIN.items():
            data = golden(title)
            for source in (data, Short(data)):
                with self.subTest(file=title, source=type(source).__name__):
                    file = load(source)
                    self.assertEqual(dumps(file, format=file.format, **options), data)

    def test_other_forms_are_saved_in_the_usual_one(self):
        for _, title, _, _, wanted in GOLDENS:
            file = load(golden(title))
            if title in AGAIN or [1 for item in file.values() if zstd_missing(item)]:
                continue
            with self.subTest(file=title):
                data = dumps(file, format=file.format)
                again = load(data)
                self.check(again, dict([(name, wanted[name]) for name in again]))
                self.assertSame(again.metadata, file.metadata)
                self.assertEqual(dumps(again, format=file.format), data)

    def test_windows_of_any_size(self):
        usual = tensorfmt.WINDOW
        try:
            for tensorfmt.WINDOW in (1, 7, 64):
                for _, title, _, _, wanted in GOLDENS:
                    with self.subTest(file=title, window=tensorfmt.WINDOW):
                        self.check(load(golden(title)), wanted)
        finally:
            tensorfmt.WINDOW = usual

    def test_detect(self):
        for kind, title, _, _, _ in GOLDENS:
            with self.subTest(file=title):
                self.assertEqual(tensorfmt.detect(golden(title)), kind)
        for head, kind in ((b"", None), (b"PK\3\4", None), (b"\x93NUMPY", None),
                           (b"MAG&", "mag"), (b"ZTEN1000", "ztensor"), (b"BURN", "burnpack"),
                           (b"\x89ZT2\r\n\x1a\n", "ztensor"), (b"\0\1\xcd\3\0", "primitiv")):
            with self.subTest(head=head):
                self.assertEqual(tensorfmt.detect(head), kind)

    def test_a_stream_stays_where_it_was(self):
        stream = io.BytesIO(golden("v021_tiny.bpk"))
        stream.seek(3)
        with load(stream) as file:
            self.assertEqual(file["w"].tolist(), [1.0, 2.0])
        self.assertEqual(stream.tell(), 3)
        self.assertEqual(stream.read(1), b"B")  # not closed

    def test_file_is_a_mapping(self):
        file = load(golden("seed_basic.mag"))
        self.assertEqual((len(file), "x" in file, "z" in file), (2, True, False))
        self.assertEqual((list(file.keys()), file.get("z", 5)), (["x", "y"], 5))
        self.assertEqual([item.name for item in file.values()], ["x", "y"])
        self.assertIn("'x'", repr(file))
        error = error_of(KeyError, lambda: file["xx"])
        self.assertIn("no tensor 'xx'", str(error))
        if CPYTHON:
            self.assertIn("nearest is 'x'", str(error))

    def test_closed(self):
        for title in ("seed_basic.mag", "v021_tiny.bpk"):
            for source in (golden(title), io.BytesIO(golden(title))):
                file = load(source)
                held = list(file.values())[0]
                view = held.raw
                file.close()
                file.close()
                with self.subTest(file=title, source=type(source).__name__):
                    self.assertIn("closed", str(error_of(ValueError, held.tobytes)))
                    self.assertEqual(len(bytes(view)), held.nbytes)  # what is held stays valid

    def test_wrong_arguments(self):
        data = golden("v021_tiny.bpk")
        self.assertIn("layout", str(error_of(TypeError, load, data, layouts="packed")))
        error_of(TypeError, load, golden("seed_basic.mag"), layout="packed")
        error_of(ValueError, load, data, layout="other")
        error_of(ValueError, load, data, format="onnx")
        error_of(TypeError, load, 5)
        error_of(TypeError, load, io.StringIO("text"))
        self.assertEqual(error_of(FormatError, load, data, format="mag").field, "magic")

    def test_layout_settles_what_the_file_does_not_tell(self):
        data = golden("v021_tiny.bpk")
        packed = data[:81] + bytes(8)  # as burn 0.19 would write zeros, without metadata.version
        for source in (packed, io.BytesIO(packed)):
            self.assertIn("ambiguous", error_of(FormatError, load, source).what)
            file = load(source, layout="packed")
            self.assertEqual((file.attrs["layout"], file["w"].tolist()), ("packed", [0.0, 0.0]))
            error_of(FormatError, load, source, layout="aligned")
            if WHOLE:
                self.assertTrue(tensorfmt.verify(source, layout="packed"))
                self.assertFalse(bool(tensorfmt.verify(source)))


EXPLAINED = {  # offset, bytes and name of every field of small files
    "py_0.1.0_scalar.zt": """
        0 8 magic | 8 56 padding | 64 4 data s | 68 1 index | 69 1 index[0] | 70 7 index[0].name
        77 9 index[0].offset | 86 6 index[0].size | 92 14 index[0].dtype | 106 13 index[0].layout
        119 8 index[0].shape | 127 13 index[0].encoding | 140 23 index[0].data_endianness
        163 1 index[0] | 164 8 index_size""",
    "v021_tiny.bpk": """
        0 4 magic | 4 2 version | 6 4 metadata_size | 10 1 item | 11 9 tensors | 20 3 tensors.w
        23 10 tensors.w.dtype | 33 8 tensors.w.shape | 41 16 tensors.w.data_offsets
        57 10 tensors.w.param_id | 67 10 metadata | 77 4 metadata.k | 81 175 padding
        256 8 data w""",
    "tensor_2x3_batch2.primitiv": """
        0 5 ver_major | 5 5 ver_minor | 10 5 data_type | 15 1 dims | 16 5 dims[0] | 21 5 dims[1]
        26 5 batch | 31 2 data | 33 48 data tensor""",
    "m012_mixed.mag": """
        0 4 magic | 4 4 version | 8 4 checksum | 12 4 num_tensors | 16 4 num_meta_kv | 20 4 aux
        24 4 metadata[0].type | 28 8 metadata[0].payload | 36 4 metadata[0].key_length
        40 2 metadata[0].key | 42 4 metadata[1].type | 46 8 metadata[1].payload
        54 4 metadata[1].key_length | 58 1 metadata[1].key | 59 4 tensors[0].aux
        63 8 tensors[0].numel | 71 8 tensors[0].data_offset | 79 8 tensors[0].shape
        87 4 tensors[0].key_length | 91 1 tensors[0].key | 92 4 tensors[1].aux
        96 8 tensors[1].numel | 104 8 tensors[1].data_offset | 112 16 tensors[1].shape
        128 4 tensors[1].key_length | 132 1 tensors[1].key | 133 59 padding | 192 12 data x
        204 52 padding | 256 16 data y | 272 48 padding"""}


@whole
class ExplainTest(TestCase):
    def test_fields_tile_every_golden(self):
        for _, title, _, _, wanted in GOLDENS:
            data = golden(title)
            with self.subTest(file=title):
                fields = list(tensorfmt.explain(data))
                self.assertEqual(gaps(fields, len(data)), [])
                named = [field.tensor for field in fields if field.kind == "data"]
                self.assertEqual(sorted(named), sorted([
                    name for name in wanted if 0 not in wanted[name][1]]))
                if title not in ODD:
                    self.assertEqual([tuple(f)[:3] for f in fields if f.kind == "unused"], [])

    def test_padding_is_padding(self):
        limits = {"mag": 64, "ztensor": 64, "burnpack": 256, "tensorbuffers": 8, "primitiv": 0}
        for kind, title, _, _, _ in GOLDENS:
            data = golden(title)
            fill = {0, 255} if title.startswith("m012") else {0}
            for field in tensorfmt.explain(data):
                if field.kind != "padding":
                    continue
                with self.subTest(file=title, offset=field.offset):
                    end = field.offset + field.nbytes
                    self.assertEqual(set(data[field.offset:end]) - fill, set())
                    if end < len(data) or kind != "mag":  # 0.1.2 files: any number at the end
                        self.assertTrue(field.nbytes < limits[kind])

    def test_fields_in_full(self):
        for title, text in EXPLAINED.items():
            wanted = [row.strip() for row in text.replace("\n", "|").split("|") if row.strip()]
            with self.subTest(file=title):
                self.assertEqual([("%d %d %s" % tuple(field)[:3]).strip()
                                  for field in tensorfmt.explain(golden(title))], wanted)

    def test_a_field_is_five_items_and_more(self):
        field = list(tensorfmt.explain(golden("sorted_one.tbs")))[1]
        offset, nbytes, name, value, doc = field
        self.assertEqual((offset, nbytes, name, value), (4, 8, "data w", "float32 [2]"))
        self.assertEqual((field[0], len(field), field.kind, field.depth), (4, 5, "data", 0))
        self.assertEqual((field.tensor, field.doc, field.offset), ("w", doc, 4))
        owners = [f.tensor for f in tensorfmt.explain(golden("v021_tiny.bpk"))
                  if f.name == "tensors.w.shape"]
        self.assertEqual(owners, ["w"])

    def test_verify_finds_nothing_in_goldens(self):
        for _, title, _, _, _ in GOLDENS:
            with self.subTest(file=title):
                report = tensorfmt.verify(golden(title))
                self.assertTrue(bool(report), str(report))
                self.assertEqual(report.errors, [])
                words = set([row[0] for row in report.rows])
                self.assertEqual(words - {"ok", "note", "-"}, set())
                self.assertIn("valid", str(report).split("\n")[-1])
                load(golden(title), verify=True)

    def test_verify_tells_what_it_cannot(self):
        report = tensorfmt.verify(golden("custom_fields.zt"))
        self.assertIn(("-", "checksums"), [row[:2] for row in report.rows])
        report = tensorfmt.verify(golden("zero_scalar_raw.zt"))
        self.assertIn(("ok", "checksums", None, "2 of 2 agree", None), report.rows)
        status = "ok" if ZSTD else "-"
        report = tensorfmt.verify(golden("zstd_64k_zeros.zt"))
        self.assertIn((status, "contents"), [row[:2] for row in report.rows])


def gaps(fields, nbytes):
    """Return the offsets where fields leave a gap or overlap; only data may lie on data."""
    found, at = [], 0
    for field in fields:
        if field.offset != at and not (field.offset < at and field.kind == "data"):
            found.append(field.offset)
        at = max(at, field.offset + field.nbytes)
    return found if at == nbytes else found + [at]


@full
class FileTest(TestCase):
    def setUp(self):
        self.folder = folder_for(self)

    def test_goldens_from_paths(self):
        import pathlib
        for kind, title, _, _, wanted in GOLDENS:
            path = os.path.join(self.folder, title)
            write_file(path, golden(title))
            for source in (path, pathlib.Path(path)):
                for mmap in (True, False):
                    with self.subTest(file=title, mmap=mmap), load(source, mmap=mmap) as file:
                        self.assertEqual((file.format, file.path), (kind, path))
                        GoldenTest.check(self, file, wanted)
            os.remove(path)

    def test_pickling(self):
        import pickle
        for _, title, _, _, wanted in GOLDENS:
            path = os.path.join(self.folder, title)
            write_file(path, golden(title))
            with load(path) as file:
                again = pickle.loads(pickle.dumps(file))
                GoldenTest.check(self, again, wanted)
                again.close()
                for item in file.values():
                    if zstd_missing(item):
                        continue
                    for held in (item, item.contiguous() if item.dtype != "qfloat" else item):
                        with self.subTest(file=title, tensor=item.name):
                            text = pickle.dumps(held)
                            got = pickle.loads(text)
                            self.assertEqual((got.name, got.dtype, got.shape),
                                             (held.name, held.dtype, held.shape))
                            self.assertEqual(got.tobytes(), held.tobytes())
                            self.assertSame(got.attrs, held.attrs)
                            if held.offset is not None:
                                self.assertEqual(got.offset, held.offset)

    def test_pickles_are_small_and_tell_of_changed_files(self):
        import pickle
        path = os.path.join(self.folder, "big.zt")
        tensorfmt.save(path, {"w": tensor(bytes(400000), "float32", (100, 1000))})
        with load(path) as file:
            part = pickle.dumps(file["w"][3:5, ::10])
            whole = pickle.dumps(file["w"])
        self.assertTrue(max(len(part), len(whole)) < 1000)
        self.assertEqual(pickle.loads(part).shape, (2, 100))
        self.assertEqual(pickle.loads(part).tobytes(), bytes(800))
        tensorfmt.save(path, {"w": tensor(bytes(4), "float32")})
        self.assertIn("has changed", str(error_of(ValueError, pickle.loads(whole).tobytes)))
        memory = tensor(bytes(400000), "float32", (100, 1000))[5]
        self.assertTrue(3900 < len(pickle.dumps(memory)) < 5000)  # its own elements only
        error_of(TypeError, pickle.dumps, load(golden("seed_basic.mag")))

    def test_errors_pickle_and_are_one_line(self):
        import pickle
        path = os.path.join(self.folder, "cut.bpk")
        write_file(path, golden("v021_tiny.bpk")[:60])
        errors = [error_of(FormatError, load, path),
                  error_of(FormatError, load, b"MAG!" + bytes(20)),
                  error_of(Unsupported, load, b"ZTEN1000" + bytes(20)),
                  Unsupported("what", 5, "field", "a\nb", "path", "sizes")]
        for error in errors:
            again = pickle.loads(pickle.dumps(error))
            with self.subTest(error=str(error)):
                self.assertEqual((type(again), vars(again)), (type(error), vars(error)))
                self.assertEqual(str(again), str(error))
                self.assertEqual(str(error).count("\n"), 0)
                self.assertIn("(at 0x%x, %s)" % (error.offset, error.field), str(error))
        self.assertTrue(str(errors[0]).startswith(path + ": "))
        self.assertIn("tensor 'a\\nb': what", str(errors[3]))

    def test_views_outlive_the_file(self):
        path = os.path.join(self.folder, "w.zt")
        tensorfmt.save(path, {"w": tensor([1.0, 2.0], "float32")})
        file = load(path)
        held, view = file["w"], file["w"].data
        file.close()
        self.assertEqual(list(view), [1.0, 2.0])
        error_of(ValueError, held.tobytes)

    def test_a_missing_file_is_an_oserror(self):
        for call in (load, tensorfmt.verify, tensorfmt.detect,
                     lambda path: list(tensorfmt.explain(path))):
            with self.assertRaises(FileNotFoundError):
                call(os.path.join(self.folder, "absent.zt"))

    def test_a_gzip_stream_is_read_as_what_it_holds(self):
        import gzip
        path = os.path.join(self.folder, "w.mag.gz")
        with gzip.open(path, "wb") as stream:
            stream.write(golden("seed_basic.mag"))
        with gzip.open(path, "rb") as stream:
            GoldenTest.check(self, load(stream), GOLDENS[0][4])


def folder_for(test):
    """Return a temporary folder that goes away with the test."""
    from shutil import rmtree
    from tempfile import mkdtemp
    folder = os.path.realpath(mkdtemp(prefix="tensorfmt-test-"))
    test.addCleanup(rmtree, folder)
    return folder


def write_file(path, data):
    with open(path, "wb") as stream:
        stream.write(data)


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


# -- [5] round trips -----------------------------------------------------------------------------

SHAPES = {  # by rank; what a format cannot hold is left out below
    0: ((),), 1: ((1,), (5,), (0,)), 2: ((2, 3), (3, 1), (1, 4), (0, 3), (2, 0)),
    3: ((2, 3, 4), (3, 1, 2), (2, 0, 2)), 4: ((2, 1, 3, 2),), 5: ((1, 2, 1, 2, 3),),
    6: ((2, 1, 2, 1, 2, 2), (0, 1, 1, 1, 1, 0)), 8: ((2, 1, 2, 1, 2, 1, 2, 2),),
    64: ((2,) + (1,) * 62 + (3,),), 70: ((1,) * 69 + (2,),)}
MAX_RANK = {"mag": 6, "ztensor": 70, "primitiv": 8, "burnpack": 70, "tensorbuffers": 64}
HELD = {  # dtypes, as the format documents list them
    "mag": ("bool", "float16", "float32", "int32"), "ztensor": DTYPES, "primitiv": ("float32",),
    "burnpack": DTYPES,
    "tensorbuffers": ("float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32",
                      "uint64", "uint8")}
STORED = [("mag", {}), ("primitiv", {}), ("burnpack", {}), ("tensorbuffers", {}),
          ("tensorbuffers", {"sort": False, "operations": False}),
          ("ztensor", {}), ("ztensor", {"data_endianness": "big", "checksum": "crc32c"}),
          ("ztensor", {"checksum": "sha256"})]
if ZSTD:
    STORED += [("ztensor", {"encoding": "zstd"}),
               ("ztensor", {"encoding": "zstd", "level": 19, "checksum": "crc32c"})]
SPECIAL = {  # bit patterns that a careless copy through numbers would change
    "float16": "0000 0080 007c 00fc 007e 017c ff7f 0100 ff03 ff7b",
    "bfloat16": "0000 0080 807f 80ff c07f 817f ffff 0100 7f00 7f7f",
    "float32": "00000000 00000080 0000807f 000080ff 0000c07f 0100807f ffffffff 01000000 ffff7f7f",
    "float64": "0000000000000000 0000000000000080 000000000000f07f 000000000000f0ff"
               "010000000000f07f 010000000000f8ff 0100000000000000 ffffffffffffef7f",
    "bool": "00 01 02 7f 80 ff"}


def every_tensor(kind):
    """Return {name: Tensor} over each dtype and shape that a format holds."""
    made = tensorfmt.Map()
    for dtype in HELD[kind]:
        itemsize = tensorfmt.ITEMSIZE[dtype]
        for rank in SHAPES:
            for shape in SHAPES[rank]:
                if rank <= MAX_RANK[kind] and not (kind == "primitiv" and 0 in shape):
                    count = tensorfmt.count_elements(shape)
                    data = make_bytes(count * itemsize, rank * 100 + len(made))
                    made["%s%s" % (dtype, len(made))] = tensor(data, dtype, shape)
        if dtype in SPECIAL:
            made[dtype + " special"] = tensor(unhex(SPECIAL[dtype]), dtype)
    return made


class RoundTripTest(TestCase):
    def test_every_dtype_and_shape(self):
        for kind, options in STORED:
            with self.subTest(format=kind, **options):
                wanted = every_tensor(kind)
                data = dumps(wanted, format=kind, **options)
                file = load(data, verify=WHOLE)
                self.assertEqual(content(file), content(wanted))
                for name, item in file.items():
                    self.assertEqual(item[...].tobytes(), wanted[name].tobytes())
                    self.assertSame(list(item.flat), list(wanted[name].flat))
                if WHOLE:
                    self.assertEqual(gaps(list(tensorfmt.explain(data)), len(data)), [])
                self.assertEqual(dumps(wanted, format=kind, **options), data)
                if kind != "tensorbuffers":  # there, the order of empty tensors may be lost
                    self.assertEqual(dumps(load(io.BytesIO(data)), format=kind), data)

    def test_the_tables_of_dtypes_are_the_documents(self):
        for kind in tensorfmt.FORMATS:
            with self.subTest(format=kind.NAME):
                self.assertEqual(tuple(sorted(kind.DTYPES)), HELD[kind.NAME])

    def test_big_endian_files_hold_swapped_bytes(self):
        item = tensor([1, 2, 0x01020304], "uint32")
        data = dumps({"w": item}, format="ztensor", data_endianness="big")
        back = load(data)["w"]
        self.assertEqual(tohex(back.raw), "000000010000000201020304")
        self.assertEqual((back.tobytes(), back.tolist()), (item.tobytes(), [1, 2, 0x01020304]))
        self.assertEqual(list(back.data), [1, 2, 0x01020304])
        self.assertEqual(back.zero_copy, CPYTHON and sys.byteorder == "big")
        self.assertEqual(back[1:].tolist(), [2, 0x01020304])
        self.assertEqual((back[2], tohex(back[::-2].tobytes())), (0x01020304, "0403020101000000"))

    def test_column_major(self):
        item = tensor([[11, 12, 13], [21, 22, 23]], "float32")
        back = load(dumps({"tensor": item}, format="primitiv", kind="tensor"))["tensor"]
        self.assertEqual(numbers("float32", back.raw), [11.0, 21.0, 12.0, 22.0, 13.0, 23.0])
        self.assertEqual((back.strides, back.tolist()), ((4, 8), item.tolist()))
        self.assertEqual(list(back.data), [11.0, 21.0, 12.0, 22.0, 13.0, 23.0])
        self.assertEqual(list(back[1].data), [21.0, 22.0, 23.0])
        batch = tensor(make_bytes(4 * 2 * 3 * 5), "float32", (2, 3, 5), batch=5)
        back = load(dumps({"tensor": batch}, format="primitiv", kind="tensor"))["tensor"]
        self.assertSame((back.shape, back.attrs), ((2, 3, 5), {"batch": 5}))
        self.assertEqual(back.tobytes(), batch.tobytes())

    def test_wide_heads_of_primitiv(self):
        from hashlib import sha256
        for shape, digest in (
                ((16383,), "7bce25a1c37a25bac3da8275213400531cad1c35570126c79b8126c4ace08107"),
                ((128, 128), "29f202848a7836391bd65ae8076cac65a837802b5a00c4a6c559b990fed43c69")):
            ones = tensor(b"\0\0\x80\x3f" * tensorfmt.count_elements(shape), "float32", shape)
            data = dumps({"tensor": ones}, format="primitiv", kind="tensor")
            with self.subTest(shape=shape):
                self.assertEqual(tohex(sha256(data).digest()), digest)
                self.assertEqual(load(data)["tensor"].tobytes(), ones.tobytes())

    def test_blocks_are_joined_right(self):
        usual = tensorfmt.BLOCK
        data = make_bytes(4 * 6 * 7 * 5)
        try:
            for tensorfmt.BLOCK in (4, 8, 64, 100, 1 << 20):
                with self.subTest(block=tensorfmt.BLOCK):
                    item = tensor(data, "float32", (6, 7, 5))
                    cubed = load(dumps({"w": item}, format="primitiv"))["w"]
                    self.assertEqual(cubed.tobytes(), data)
                    self.assertEqual(cubed[::-1, 2:, ::2].tobytes(), item[::-1, 2:, ::2].tobytes())
                    if tensorfmt.BLOCK % 4 == 0:
                        swapped = dumps({"w": item}, format="ztensor", data_endianness="big",
                                        checksum="crc32c")
                        self.assertEqual(load(swapped, verify=WHOLE)["w"].tobytes(), data)
        finally:
            tensorfmt.BLOCK = usual

    def test_order_of_the_index_and_of_the_data(self):
        names = ["b", "a", "c"]
        made = tensorfmt.Map([(name, tensor([1.0], "float32")) for name in names])
        for kind in FORMATS:
            file = load(dumps(made, format=kind))
            kept = sorted(names) if kind in ("primitiv", "burnpack") else names
            with self.subTest(format=kind):
                if kind != "tensorbuffers":
                    self.assertEqual(list(file), kept)
                self.assertEqual(sorted(names, key=lambda name: file[name].offset),
                                 sorted(names) if kind == "primitiv" else names)
        file = load(dumps(made, format="tensorbuffers"))
        ids = [item.attrs["id"] for item in file.values()]
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(list(load(dumps(made, format="tensorbuffers", sort=False))), names)
        order = load(dumps(made, format="burnpack", tensor_order=["c", "b", "a"]))
        self.assertEqual([order[name].offset // 256 for name in ("c", "b", "a")], [1, 2, 3])

    def test_names_of_all_kinds(self):
        odd = ["a/b", "../up", " blank ", "\u00e9", "\U0001f642", "x" * 300, "new\nline", "'\""]
        for kind in FORMATS:
            names = odd + ([""] if kind != "mag" else []) + (["a\0b"] if kind != "mag" else [])
            for options in ({}, {"flat": True}) if kind == "primitiv" else ({},):
                wanted = [name for name in names
                          if kind != "primitiv" or options or "." not in name]
                made = dict([(name, tensor([1.5], "float32")) for name in wanted])
                with self.subTest(format=kind, **options):
                    back = load(dumps(made, format=kind, **options))
                    if options:
                        self.assertIn("\\.\\./up", back)
                    else:
                        self.assertEqual(sorted(back), sorted(wanted))
                    self.assertEqual(len(back), len(wanted))


# -- [6] Tensor ----------------------------------------------------------------------------------


def pick(nested, shape, keys):
    """Return (nested lists, shape) of an indexed array, by ints and slices: the reference."""
    if not keys:
        return nested, shape
    key, n = keys[0], shape[0]
    if not isinstance(key, slice):
        return pick(nested[key], shape[1:], keys[1:])
    rows = range(n)[key]
    rest = pick(nested[0], shape[1:], keys[1:])[1] if n else pick_shape(shape[1:], keys[1:])
    return [pick(nested[i], shape[1:], keys[1:])[0] for i in rows], (len(rows),) + rest


def pick_shape(shape, keys):
    """Return the shape of an indexed array."""
    out = [len(range(n)[key]) for n, key in zip(shape, keys) if isinstance(key, slice)]
    return tuple(out) + shape[len(keys):]


def random_keys(draw, shape):
    """Return a random index as a user may write it, and the same as one key per dimension."""
    keys = []
    for n in shape:
        if n and draw.random() < 0.3:
            keys.append(draw.randrange(-n, n))
            continue
        ends = [None] + list(range(-n - 2, n + 3))
        keys.append(slice(draw.choice(ends), draw.choice(ends),
                          draw.choice([None, 1, 2, 3, -1, -2, -5, 100])))
    given = list(keys)
    if draw.random() < 0.5:  # what is left out at the end, or behind an Ellipsis, is taken whole
        cut = draw.randrange(len(keys) + 1)
        stop = draw.randrange(cut, len(keys) + 1)
        keys[cut:stop] = [slice(None)] * (stop - cut)
        given = keys[:cut] + [Ellipsis] + keys[stop:]
    return (given[0] if len(given) == 1 else tuple(given)), keys


class TensorTest(TestCase):
    def kinds_of_storage(self, data, shape):
        """Return the same uint32 or float32 bits stored in every way that there is."""
        whole = tensor(data, "float32", shape)
        made = [whole, load(dumps({"t": whole}, format="ztensor", data_endianness="big"))["t"],
                load(io.BytesIO(dumps({"t": whole}, format="burnpack")))["t"]]
        if 0 not in shape:
            made.append(load(dumps({"t": whole}, format="primitiv"))["t"])
        if ZSTD:
            made.append(load(dumps({"t": whole}, format="ztensor", encoding="zstd"))["t"])
        return made

    @full
    def test_indexing_against_nested_lists(self):
        from random import Random
        draw = Random(5)
        for _ in range(60):
            shape = tuple([draw.choice([0, 1, 2, 3, 4, 5]) for _ in range(draw.randrange(1, 5))])
            count = tensorfmt.count_elements(shape)
            data = struct.pack("<%df" % count, *range(count))
            for item in self.kinds_of_storage(data, shape):
                nested = item.tolist()
                for _ in range(4):
                    key, keys = random_keys(draw, shape)
                    wanted, wanted_shape = pick(nested, shape, keys)
                    with self.subTest(shape=shape, key=str(key), of=item.format):
                        self.check_part(item[key], wanted, wanted_shape)

    def check_part(self, part, wanted, shape):
        if not isinstance(part, tensorfmt.Tensor):
            self.assertSame(part, wanted)
            return
        self.assertEqual(part.shape, shape)
        self.assertEqual(part.tolist(), wanted)
        flat = list(part.flat)
        self.assertEqual(part.tobytes(), struct.pack("<%df" % len(flat), *flat))
        self.assertEqual(part.contiguous().tolist(), wanted)
        self.assertEqual(sorted(part.data), sorted(flat))
        if shape:
            self.assertEqual([x if isinstance(x, float) else x.tolist() for x in part], wanted)
            self.assertEqual(part[::-1].tolist(), wanted[::-1])

    def test_indexing_by_hand(self):
        item = tensor([[1, 2, 3], [4, 5, 6]], "int16", note="x")
        for key, wanted in (((1, 2), 6), ((-1, -3), 4), (0, [1, 2, 3]), ((..., 1), [2, 5]),
                            (KEYS[:, 0], [1, 4]), (KEYS[::-1, 1:], [[5, 6], [2, 3]]),
                            ((..., ), [[1, 2, 3], [4, 5, 6]])):
            with self.subTest(key=str(key)):
                got = item[key]
                self.assertEqual(got if isinstance(wanted, int) else got.tolist(), wanted)
        for key in (2, -3, (0, 3), (0, 0, 0), (..., ...), (0, ..., 0, 0)):
            with self.subTest(key=str(key)):
                error_of(IndexError, lambda key=key: item[key])
        for key in ("a", 1.0, None, True, [0]):
            with self.subTest(key=str(key)):
                error_of(TypeError, lambda key=key: item[key])
        part = item[1]
        self.assertSame((part.name, part.attrs, len(item), len(part)), ("", {}, 2, 3))
        error_of(TypeError, lambda: len(tensor(1.0)))
        self.assertEqual((tensor(1.5)[()], tensor(1.5)[...].shape), (1.5, ()))

    def test_strides_offset_raw_and_data(self):
        data = dumps({"w": tensor(list(range(12)), "int16", (3, 4))}, format="ztensor")
        item = load(data)["w"]
        self.assertEqual((item.strides, item.offset, item.size, item.nbytes, item.itemsize),
                         ((8, 2), 64, 12, 24, 2))
        part = item[1:, ::2]
        self.assertEqual((part.strides, part.offset, part.shape), ((8, 4), 72, (2, 2)))
        self.assertEqual(bytes(part.raw), data[72:72 + 8 + 4 + 2])
        self.assertEqual((list(part.data), part.zero_copy), ([4, 6, 8, 10], False))
        column = item[:, 1]
        self.assertEqual((column.strides, column.offset), ((8,), 66))
        back = item[::-1, ::-1]
        self.assertEqual((back.strides, back.offset), ((-8, -2), 86))
        self.assertEqual(back.tolist()[0], [11, 10, 9, 8])
        native = not CPYTHON or sys.byteorder == "little"
        self.assertEqual((item.zero_copy, item[1].zero_copy, list(item[1].data)),
                         (native, native, [4, 5, 6, 7]))
        self.assertEqual((tensor([1]).offset, item.contiguous().offset), (None, None))
        self.assertEqual(load(io.BytesIO(data))["w"].zero_copy, False)

    @full
    def test_raw_is_read_only_and_no_copy(self):
        data = bytearray(dumps({"w": tensor([1, 2], "int32")}, format="ztensor"))
        raw = load(data)["w"].raw
        data[64] = 9
        self.assertEqual(bytes(raw), unhex("0900000002000000"))
        if sys.version_info >= (3, 8):
            self.assertTrue(raw.readonly)
        view = load(bytes(data))["w"].data
        self.assertEqual((view.format, list(view)), ("i", [9, 2]))

    def test_bool_bytes(self):
        item = tensor(b"\0\1\2\xff", "bool")
        for kind in ("mag", "ztensor", "burnpack"):
            back = load(dumps({"m": item}, format=kind))["m"]
            with self.subTest(format=kind):
                self.assertEqual((back.tobytes(), bytes(back.raw)), (b"\0\1\2\xff", b"\0\1\2\xff"))
                self.assertSame(back.tolist(), [False, True, True, True])
                self.assertEqual(back.astype("uint8").tolist(), [0, 1, 1, 1])
        self.assertEqual(tensor([0, 5, 0.5, 0.0], "bool").tobytes(), b"\0\1\1\0")

    def test_from_lists_and_numbers(self):
        for value, dtype, shape in (
                (5, "int64", ()), (5.0, "float64", ()), (True, "bool", ()), ([], "float64", (0,)),
                ([[], []], "float64", (2, 0)), ([1, 2.5], "float64", (2,)),
                ([True, 2], "int64", (2,)), ([True, False], "bool", (2,)),
                ([1 << 63], "uint64", (1,)), ([[1], [2], [3]], "int64", (3, 1)),
                ((1, (2,))[:1], "int64", (1,))):
            with self.subTest(value=value):
                item = tensor(value)
                self.assertEqual((item.dtype, item.shape), (dtype, shape))
        for wrong in ([[1, 2], [3]], [[1], 2], [1, [2]], ["a"], [None], [1 << 64], [-1, 1 << 63],
                      [1j]):
            with self.subTest(value=wrong):
                error_of(ValueError, tensor, wrong)
        for value, dtype in ((300, "uint8"), (-1, "uint8"), (0.5, "int32"), (NAN, "int64"),
                             (INF, "int16"), (1 << 31, "int32")):
            with self.subTest(value=value, dtype=dtype):
                self.refuses([dtype], tensor, [value], dtype)

    def test_from_buffers(self):
        from array import array
        for code, dtype in (("b", "int8"), ("B", "uint8"), ("h", "int16"), ("H", "uint16"),
                            ("i", "int32"), ("I", "uint32"), ("q", "int64"), ("Q", "uint64"),
                            ("f", "float32"), ("d", "float64")):
            values = array(code, [1, 2, 100])
            with self.subTest(code=code):
                item = tensor(values, dtype if not CPYTHON else None)
                self.assertEqual((item.dtype, item.shape), (dtype, (3,)))
                self.assertEqual(item.tolist(), [1, 2, 100])
                wanted = struct.pack("<3" + code, 1, 2, 100)
                back = load(dumps({"t": item}, format="ztensor"))["t"]
                self.assertEqual((item.tobytes(), back.tobytes()), (wanted, wanted))
        self.assertEqual(tensor(b"\1\0\2\0", "int16").tolist(), [1, 2])  # raw little-endian bytes
        self.assertEqual(tensor(b"\1\0\2\0", "int16", (2, 1)).shape, (2, 1))
        self.assertEqual(tensor(b"\1\2").dtype, "uint8")
        for call in ((b"123", "int16"), (b"1234", "int16", (3,)), (b"1234", "int16", (-1, -2)),
                     (b"1234", "complex64")):
            with self.subTest(call=call):
                error_of(ValueError, tensor, *call)
        for wrong in (None, {1}, object()) + (("text",) if CPYTHON else ()):
            with self.subTest(value=str(wrong)):
                error_of(TypeError, tensor, wrong)

    @full
    def test_from_typed_memoryviews(self):
        data = bytearray(struct.pack("6d", *range(6)))
        view = memoryview(data).cast("d", (2, 3))
        item = tensor(view)
        self.assertEqual((item.dtype, item.shape), ("float64", (2, 3)))
        self.assertEqual(item.tolist(), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
        strided = tensor(memoryview(data).cast("d")[::-2])
        self.assertEqual(strided.tolist(), [5.0, 3.0, 1.0])
        self.assertEqual(tensor(memoryview(b"\0\1").cast("?")).dtype, "bool")
        self.assertEqual(tensor(view, "float16").tobytes(), struct.pack("<6e", *range(6)))
        self.assertEqual(tensor(memoryview(b"abcd").cast("c")[:0].cast("B")).shape, (0,))

    def test_attrs_follow_the_rules(self):
        item = load(dumps({"w": tensor([1.0], "float32", burn_dtype="Flex32", param_id=3)},
                          format="burnpack"))["w"]
        self.assertSame(item.attrs, {"burn_dtype": "Flex32", "param_id": 3})
        self.assertSame(item.contiguous().attrs, {"burn_dtype": "Flex32", "param_id": 3})
        self.assertSame(item.astype("float64").attrs, {"param_id": 3})
        self.assertSame(item[:1].attrs, {})

    def test_item_and_tolist(self):
        self.assertSame([tensor(7).item(), tensor([[2.5]]).item(), tensor(True).item()],
                        [7, 2.5, True])
        for wrong in ([], [1, 2]):
            error_of(ValueError, tensor(wrong).item)
        self.assertEqual(tensor([[[]], [[]]]).tolist(), [[[]], [[]]])
        empty = tensor(b"", "uint8", (1 << 40, 1 << 40, 0))
        huge = load(dumps({"e": empty}, format="ztensor"))["e"]
        self.assertEqual((huge.tobytes(), list(huge.flat), huge.size), (b"", [], 0))
        error_of(ValueError, huge.tolist)  # 2**80 empty lists
        if CPYTHON:  # a board's slices end at its machine word
            self.assertEqual(huge[5, 3:7].shape, (4, 0))

    def test_repr_escapes_names(self):
        item = load(dumps({"a\x1b\u00e9": tensor([1.0])}, format="ztensor"))
        text = repr(item) + repr(item["a\x1b\u00e9"])
        self.assertEqual([c for c in text if not " " <= c <= "~"] if CPYTHON else [], [])


FLOATS = {  # dtype: digits of the significand, lowest exponent of a bit, exponent past the largest
    "float64": (53, -1074, 1024), "float32": (24, -149, 128), "float16": (11, -24, 16),
    "bfloat16": (8, -133, 128)}
HARD = (  # rounding that goes wrong in two steps, at ties, at the ends
    0, 1, -1, 2 ** 24 + 1, 2 ** 24 + 3, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 64 - 1, -2 ** 63,
    (1 << 62) + (1 << 38) + 1, (1 << 62) + (1 << 38), (1 << 62) + (1 << 38) - 1,
    (1 << 60) + (1 << 36) + 1, 257 * 2 ** 40 + 1, 257 * 2 ** 40, 259 * 2 ** 40 - 1,
    0.1, 1 / 3, 1.0 + 2.0 ** -8, 1.0 + 2.0 ** -8 + 2.0 ** -40, 1.0 + 3 * 2.0 ** -8 - 2.0 ** -40,
    1.0 + 2.0 ** -11, 1.0 + 2.0 ** -11 + 2.0 ** -30, 1.0 + 3 * 2.0 ** -11, 1.0 + 2.0 ** -24,
    65504.0, 65519.999, 65520.0, 65536, 3.3895313892515355e38, 3.3961775292304e38, 3.4e38,
    3.4028234663852886e38, 3.4028235677973366e38, 3.5e38, 1e300, 2.0 ** -149, 2.0 ** -150,
    2.0 ** -150 * 1.0001, 2.0 ** -133, 2.0 ** -134, 2.0 ** -134 * 1.5, 2.0 ** -25,
    2.0 ** -25 * 1.01, 2.0 ** -24, 5e-324, 2.0 ** -126 - 2.0 ** -150, 1e-40, 3e-39)


def nearest(number, dtype):
    """Return a number rounded to a float dtype, to nearest even, by exact arithmetic."""
    from fractions import Fraction
    digits, lowest, top = FLOATS[dtype]
    exact = Fraction(number)
    if not exact:
        return float(number)
    size = abs(exact)
    scale = size.numerator.bit_length() - size.denominator.bit_length()
    scale -= size < Fraction(2) ** scale
    unit = Fraction(2) ** max(scale - digits + 1, lowest)
    rounded = round(exact / unit) * unit  # half to even
    if abs(rounded) >= Fraction(2) ** top:
        return INF if number > 0 else -INF
    return float(rounded) if rounded else (0.0 if number > 0 else -0.0)


@full
class CastTest(TestCase):
    def test_rounding_is_exact(self):
        from random import Random
        draw = Random(3)
        hard = list(HARD) + [-x for x in HARD if isinstance(x, float)]
        hard += [draw.choice([-1, 1]) * draw.getrandbits(draw.randrange(1, 64)) for _ in range(300)]
        hard += [struct.unpack("<d", make_bytes(8, seed))[0] for seed in range(1, 200)]
        hard += [draw.random() * 2.0 ** draw.randrange(-160, 140) for _ in range(300)]
        for dtype in FLOATS:
            for kind in ("float64", "int64", "uint64"):
                low, high = tensorfmt.INT_RANGE.get(kind, (-INF, INF))
                values = [x for x in hard if x == x and abs(x) != INF and (
                    isinstance(x, float) if kind == "float64" else isinstance(x, int))]
                values = [x for x in values if low <= x <= high]
                got = list(tensor(values, kind).astype(dtype).flat)
                for value, found in zip(values, got):
                    with self.subTest(value=value, old=kind, new=dtype):
                        self.assertSame(found, nearest(value, dtype))
                self.assertSame(list(tensor(values, dtype).flat), got)  # made with that dtype

    def test_bulk_and_single_agree(self):
        data = b"".join([struct.pack("<f", nearest(x, "float32")) for x in HARD])
        one_by_one = [tensor(data[i:i + 4], "float32").astype("bfloat16").tobytes()
                      for i in range(0, len(data), 4)]
        for extra in (b"", struct.pack("<3f", INF, -INF, NAN)):  # with and without the slow way
            whole = tensor(data + extra, "float32").astype("bfloat16").tobytes()
            self.assertEqual(whole[:len(data) // 2], b"".join(one_by_one))

    def test_values_beyond_numbers(self):
        for old in FLOATS:
            item = tensor([INF, -INF, NAN, -0.0], old)
            for new in FLOATS:
                with self.subTest(old=old, new=new):
                    self.assertSame(item.astype(new).tolist(), [INF, -INF, NAN, -0.0])
            for new in tensorfmt.INT_RANGE:
                for part in (0, 1, 2):
                    error_of(ValueError, item[part:part + 1].astype, new)
        self.assertSame(tensor([NAN, 0.0, -0.0, 0.1]).astype("bool").tolist(),
                        [True, False, False, True])

    def test_integers(self):
        for dtype, (low, high) in tensorfmt.INT_RANGE.items():
            with self.subTest(dtype=dtype):
                item = tensor([low, high], dtype)
                self.assertEqual(item.tolist(), [low, high])
                for other, (lowest, highest) in tensorfmt.INT_RANGE.items():
                    for value in (low, high):
                        if lowest <= value <= highest:
                            self.assertEqual(tensor([value], dtype).astype(other).tolist(), [value])
                        else:
                            self.refuses([str(value), other], tensor([value], dtype).astype, other)
                for wrong in (0.5, -1.5, 1e30):
                    self.refuses([dtype], tensor([wrong]).astype, dtype)
        self.assertEqual(tensor([3.0, -4.0]).astype("int8").tolist(), [3, -4])
        self.refuses(["no dtype 'float8'", "float16"], tensor([1]).astype, "float8")

    def test_every_pair_keeps_small_integers(self):
        for old in DTYPES:
            for new in DTYPES:
                with self.subTest(old=old, new=new):
                    made = tensor([[0, 1], [1, 1]], old).astype(new)
                    self.assertEqual((made.dtype, made.shape), (new, (2, 2)))
                    self.assertEqual(made.tolist(), [[0, 1], [1, 1]])
        strided = load(dumps({"t": tensor([[1, 2], [3, 4]], "float32")}, format="primitiv"))["t"]
        self.assertEqual(strided.astype("int8").tolist(), [[1, 2], [3, 4]])
        self.assertEqual(strided[:, 1].astype("uint8").tolist(), [2, 4])

    def test_which_casts_are_always_exact(self):
        exact = tensorfmt.cast_is_exact
        for old, new, wanted in (
                ("int32", "float64", True), ("int64", "float64", False), ("int16", "float32", True),
                ("int32", "float32", False), ("uint8", "float16", True),
                ("int16", "float16", False), ("int8", "bfloat16", True),
                ("bool", "float16", True), ("uint8", "int8", False),
                ("uint8", "int16", True), ("int8", "uint64", False), ("float16", "float32", True),
                ("bfloat16", "float32", True), ("bfloat16", "float16", False),
                ("float16", "bfloat16", False), ("float64", "float32", False),
                ("float32", "int64", False), ("uint8", "bool", False), ("int8", "int8", True)):
            with self.subTest(old=old, new=new):
                self.assertEqual(exact(old, new), wanted)

    def test_buffer_protocol(self):
        for item, code in ((tensor([[1.0, 2.0]]), "d"), (tensor([[1, 2]], "uint8"), "B"),
                           (tensor([1, 2], "int16").contiguous(), "h"), (tensor(5), "q")):
            native = sys.byteorder == "little" or item.itemsize == 1 or item._order == ">"
            if not native:
                error_of(BufferError, item.__buffer__, 0)
                continue
            with self.subTest(code=code):
                view = memoryview(item) if sys.version_info >= (3, 12) and not PYPY \
                    else item.__buffer__(0)
                self.assertEqual((view.format, view.shape), (code, item.shape))
                self.assertEqual(bytes(view), bytes(item.raw))  # PyPy dies of 2-D tolist()
        for item in (tensor([1.0], "bfloat16"), tensor([1, 2, 3, 4])[::2], tensor([])):
            error_of(BufferError, item.__buffer__, 0)


# -- [7] save ------------------------------------------------------------------------------------
#
# What each format refuses: (format, tensors, options of save, words that the message must have).

F32 = tensor([1.5], "float32")


def refused():
    """Return the rows; made here, since a board that reads GOLDENS need not make all this."""
    return (
        ("mag", {"a": tensor([1.0]), "b": F32, "c": tensor([1], "int64")}, {},
         ("mag", "'a'", "float64", '.astype("float32")', 'cast="float32"', "'c'", "int64")),
        ("mag", {"a": tensor([1.0], "bfloat16")}, {}, ("'a'", "bfloat16", "float32")),
        ("mag", {"a": tensor([1], "uint16")}, {}, ("uint16", '"int32"')),
        ("mag", {"r": tensor([1.0], "float32", (1,) * 7)}, {}, ("'r'", "7", "6 is the limit")),
        ("mag", {"": F32}, {}, ("empty name",)),
        ("mag", {"a\0": F32}, {}, ("'a\\x00'", "NUL")),
        ("mag", {"w": F32}, {"metadata": {"a": "text", "b": 1, "c": None}},
         ("'a'", "'c'", "numbers", "metadata={}")),
        ("mag", {"w": F32}, {"metadata": {"big": 1 << 64}}, ("'big'",)),
        ("mag", {"w": F32}, {"metadata": {"": 1, "n\0": 1}}, ("''", "NUL")),
        ("ztensor", {"w": F32}, {"metadata": {"a": 1}}, ("metadata", "'a'")),
        ("ztensor", {"w": tensor([1], size=3)}, {}, ("'w'", "'size'", "custom field")),
        ("ztensor", {"w": tensor([1], big=1 << 65)}, {}, ("'w'", "big", "64 bits")),
        ("ztensor", {"w": tensor([1], odd="\ud800")}, {}, ("'w'", "odd", "surrogate")),
        ("ztensor", {"w": tensor([1], odd=object)}, {}, ("'w'", "odd", "type")),
        ("ztensor", {"w": tensor([1], checksum="md5:0")}, {}, ("'w'", "md5", "checksum=")),
        ("ztensor", {"w": tensor([1], encoding="lz4")}, {}, ("'w'", "lz4", "zstd")),
        ("ztensor", {"w": F32}, {"encoding": "lz4"}, ("encoding", "raw, zstd", "lz4")),
        ("ztensor", {"w": F32}, {"checksum": "md5"}, ("checksum", "crc32c")),
        ("ztensor", {"w": F32}, {"data_endianness": "middle"}, ("data_endianness", "big")),
        ("primitiv", {"a": tensor([1]), "b": tensor([1.0], "float16")}, {},
         ("'a'", "int64", "'b'", "float16", '"float32"')),
        ("primitiv", {"e": tensor([], "float32")}, {}, ("'e'", "no elements")),
        ("primitiv", {"r": tensor([1.0], "float32", (1,) * 9)}, {}, ("'r'", "9", "8 is the limit")),
        ("primitiv", {"a": F32, "a.b": F32}, {}, ("'a.b'", "'a'", "group")),
        ("primitiv", {"a:m": F32}, {}, ("a:m", "without its value", "flat=True")),
        ("primitiv", {"a\\b": F32}, {}, ("backslash", "flat=True")),
        ("primitiv", {"w": tensor([1.0, 2.0], "float32", batch=2)}, {}, ("'w'", "batch 2")),
        ("primitiv", {"w": tensor([1.0, 2.0], "float32", batch=3)}, {}, ("'w'", "batch is 3")),
        ("primitiv", {"w": F32}, {"kind": "tensor"}, ("'w'", "'tensor'")),
        ("primitiv", {"w": F32}, {"kind": "parameter"}, ("'w'", "'value'")),
        ("primitiv", {"w": F32}, {"kind": "shape", "dims": [1]}, ("'w'", "no tensors")),
        ("primitiv", {"w": F32}, {"kind": "optimizer"}, ("'w'", "no tensors")),
        ("primitiv", {"w": F32}, {"kind": "layer"}, ("kind", "'layer'", "model")),
        ("primitiv", {}, {"kind": "tensor"}, ("needs a tensor",)),
        ("primitiv", {}, {"kind": "shape"}, ("dims",)),
        ("primitiv", {"w": F32}, {"metadata": {"a": 1}}, ("'a'", "optimizer")),
        ("primitiv", {}, {"kind": "optimizer", "metadata": {"a": -1, "b": "x", "c": 1e39, "d": 1}},
         ("'a'", "'b'", "'c'", "uint32")),
        ("primitiv", {"w": F32}, {"dims": [1]}, ("dims", "'shape'")),
        ("burnpack", {"w": F32}, {"metadata": {"a": 1, "b": "x"}}, ("'a'", "text")),
        ("burnpack", {"w": tensor([1.0], "float32", param_id=-1)}, {}, ("'w'", "param_id")),
        ("burnpack", {"w": tensor([1.0], "float32", burn_dtype="F64")}, {}, ("'w'", "F64")),
        ("burnpack", {"w": F32}, {"tensor_order": ["w", "v"]}, ("tensor_order",)),
        ("burnpack", {"\ud800": F32}, {}, ("surrogate",)),
        ("tensorbuffers", {"a": tensor([True]), "b": tensor([1.0], "float16"), "c": F32}, {},
         ("'a'", "bool", "'b'", "float16", "astype")),
        ("tensorbuffers", {"r": tensor([1], "uint8", (1,) * 65)}, {}, ("'r'", "65", "64 is the")),
        ("tensorbuffers", {"d": tensor(b"", "uint8", (0, 1 << 32))}, {}, ("'d'", "2**32-1")),
        ("tensorbuffers", {"w": F32}, {"metadata": {"model": 1}}, ("'model'", "text")),
        ("tensorbuffers", {"w": F32}, {"metadata": {"name": "x"}}, ("'name'", "'model'")),
        ("tensorbuffers", {"w": F32}, {"sort": "yes"}, ("sort",)),
        ("tensorbuffers", {"w": F32}, {"operations": [{"id": -1}]}, ("operation",)),
        ("tensorbuffers", {"w": F32}, {"operations": [{"kind": 1}]}, ("'kind'", "output")))


class SaveTest(TestCase):
    def test_refusals(self):
        for kind, tensors, options, words in refused():
            with self.subTest(format=kind, tensors=repr(list(tensors)), **options):
                stream = io.BytesIO()
                if not WHOLE:  # what would do is told by convert's room
                    words = [w for w in words if not [c for c in ('"', "astype") if c in w]]
                text = self.refuses(words, tensorfmt.save, stream, tensors, format=kind, **options)
                self.assertEqual(stream.getvalue(), b"")  # refused before the first byte
                if "c" in tensors:
                    self.assertEqual(text.count("\n"), 2)  # one line for each of two tensors

    def test_duplicates_surrogates_and_unknown_attrs(self):
        for kind in FORMATS:
            with self.subTest(format=kind):
                self.refuses(["'w'"], dumps, [("w", F32), ("w", F32)], format=kind)
                self.refuses(["surrogate"], dumps, {"\ud8ff": F32}, format=kind)
                if kind != "ztensor":  # there it is a custom field
                    self.refuses(["'w'", "'colour'"], dumps,
                                 {"w": tensor([1.0], "float32", colour=3)}, format=kind)
        for wrong in ({5: F32}, [("w", object())], [5]):
            error_of(TypeError, dumps, wrong, format="mag")
        self.refuses(["'w'", "ragged"], dumps, {"w": [[1], [2, 3]]}, format="mag")

    def test_unknown_options_and_formats(self):
        for kind in FORMATS:
            with self.subTest(format=kind):
                text = str(error_of(TypeError, dumps, {}, format=kind, colour=3))
                self.assertIn("'colour'", text)
                for option in tensorfmt.find_format(kind).OPTIONS:
                    self.assertIn(option, text)
                self.refuses(["'flavour'"], dumps, {}, format=kind, attrs={"flavour": 1})
        self.refuses(["mag", "tensorbuffers"], dumps, {}, format="gguf")
        self.refuses(["format=", ".bpk"], tensorfmt.save, io.BytesIO(), {})
        error_of(TypeError, dumps, {})

    def test_metadata(self):
        for kind, metadata, options in (
                ("mag", {"a": 0, "b": (1 << 64) - 1, "c": -(1 << 63), "d": 0.5, "e": NAN}, {}),
                ("burnpack", {"a": "", "\u00e9": "x\0y"}, {}), ("ztensor", {}, {}),
                ("tensorbuffers", {"model": ""}, {}), ("tensorbuffers", {"model": "m"}, {}),
                ("primitiv", {"n": (1 << 32) - 1, "x": 0.25, "y": -INF}, {"kind": "optimizer"})):
            with self.subTest(format=kind, metadata=metadata):
                pairs = tensorfmt.Map(sorted(metadata.items()))
                file = load(dumps({}, format=kind, metadata=pairs, **options))
                self.assertSame(file.metadata, metadata)
                self.assertSame(load(dumps(file, format=kind)).metadata, metadata)  # None: its own
                self.assertSame(load(dumps(file, format=kind, metadata={})).metadata, {})
        self.assertSame(load(dumps({}, format="mag", metadata={"t": True})).metadata, {"t": 1})

    def test_attrs_of_the_same_format_are_kept(self):
        for title, name in TENSOR_ATTRS:
            file = load(golden(title))
            if zstd_missing(file[name]):
                continue
            again = load(dumps({name: file[name]}, format=file.format, **(
                {"kind": "tensor"} if name == "tensor" else {})))[name]
            with self.subTest(file=title, tensor=name):
                self.assertSame(again.attrs, file[name].attrs)

    def test_attrs_of_another_format_are_left_behind(self):
        pack = load(golden("v021_tiny.bpk"))["w"]
        self.assertSame(pack.attrs, {"param_id": 7})
        for kind in FORMATS:
            attrs = load(dumps({"w": pack}, format=kind))["w"].attrs
            with self.subTest(format=kind):
                self.assertEqual("param_id" in attrs, kind == "burnpack")
        custom = load(golden("custom_fields.zt"))["a"]
        self.assertSame(load(dumps({"a": custom}, format="burnpack"))["a"].attrs, {})

    def test_custom_fields_of_the_user(self):
        fields = {"text": "t", "n": -1, "x": 0.5, "none": None, "yes": True, "raw": b"\0",
                  "list": [1, [2]], "map": {"bb": 1, "a": {5: "x"}}}
        item = load(dumps({"w": tensor([1], "int8", **fields)}, format="ztensor"))["w"]
        self.assertSame(dict([(key, item.attrs[key]) for key in fields]), fields)

    def test_options_win_over_attrs(self):
        item = load(dumps({"w": F32}, format="ztensor", data_endianness="big",
                          checksum="crc32c"))["w"]
        self.assertEqual(item.attrs["data_endianness"], "big")
        for options, key, wanted in (
                ({}, "data_endianness", "big"),
                ({"data_endianness": "little"}, "data_endianness", "little"),
                ({"checksum": "none"}, "checksum", None),
                ({"checksum": "sha256"}, "checksum", "sha256:"), ({}, "checksum", "crc32c:0x")):
            got = load(dumps({"w": item}, format="ztensor", **options))["w"].attrs.get(key)
            with self.subTest(options=options, key=key):
                self.assertEqual(got if wanted is None or got == wanted else got[:len(wanted)],
                                 wanted)

    def test_rotten_bytes_are_not_copied(self):
        data = bytearray(dumps({"w": tensor([1.0, 2.0])}, format="ztensor", checksum="crc32c"))
        data[64] ^= 1
        for kind in ("ztensor", "burnpack"):
            stream = io.BytesIO()
            with self.subTest(format=kind):
                error = error_of(FormatError, tensorfmt.save, stream, load(data), format=kind)
                self.assertEqual((error.tensor, error.offset, stream.getvalue()), ("w", 64, b""))
        self.assertEqual(load(data)["w"].size, 2)  # access does not hash

    def test_streams_with_short_writes(self):
        for _, title, _, _, _ in GOLDENS:
            if title in AGAIN:
                stream = Short()
                file = load(golden(title))
                tensorfmt.save(stream, file, format=file.format, **AGAIN[title])
                with self.subTest(file=title):
                    self.assertEqual(stream.getvalue(), golden(title))

    @whole
    def test_without_zstd(self):
        usual, stream = tensorfmt.ZSTD_MODULES, io.BytesIO()
        try:
            tensorfmt.ZSTD_MODULES = ("no_such_zstd", "nor_this")
            made = error_of(Unsupported, tensorfmt.save, stream, {"w": F32}, format="ztensor",
                            encoding="zstd")
            read = error_of(Unsupported, load(golden("mixed.zt"))["z"].tobytes)
            self.assertEqual(load(golden("mixed.zt"))["big"].size, 3)  # the others can be read
            copied = dumps(load(golden("mixed.zt")), format="ztensor")  # frames too, as they are
            self.assertEqual(bytes(load(copied)["z"].raw), bytes(load(golden("mixed.zt"))["z"].raw))
        finally:
            tensorfmt.ZSTD_MODULES = usual
        self.assertEqual(stream.getvalue(), b"")  # refused before the first byte
        for error in (made, read):
            self.assertIn("no_such_zstd, nor_this", error.what)


class Failing(io.BytesIO):
    """A source that breaks when its tensors are read, not while it is opened."""

    broken = False

    def read(self, n=-1):
        if self.broken:
            raise OSError("the cable was pulled")
        return super().read(n)


@full
class SavePathTest(TestCase):
    def setUp(self):
        self.folder = folder_for(self)
        self.path = os.path.join(self.folder, "m.zt")

    def test_a_failure_leaves_the_old_file_and_nothing_else(self):
        for old in (None, b"old"):
            if old is not None:
                write_file(self.path, old)
            before = os.listdir(self.folder)
            rows = {"a": F32, "b": tensor(bytes(5000), "uint8")}
            source = Failing(dumps(rows, format="burnpack"))
            file = load(source)
            source.broken = True
            with self.assertRaises(OSError):
                tensorfmt.save(self.path, file)
            error_of(ValueError, tensorfmt.save, self.path, {"w": F32}, metadata={"a": 1})
            with self.subTest(old=old):
                self.assertEqual(os.listdir(self.folder), before)
                if old is not None:
                    self.assertEqual(read_file(self.path), old)

    def test_saving_over_the_file_that_is_mapped(self):
        tensorfmt.save(self.path, {"a": tensor([1, 2], "int32"), "b": tensor([3], "int32")})
        with load(self.path, mmap=os.name != "nt") as file:
            view = file["a"].data
            wanted = [1, 2]
            tensorfmt.save(self.path, {"b": file["b"], "a": file["a"].astype("int64")})
            if os.name != "nt":
                self.assertEqual((list(view), file["a"].tolist()), (wanted, wanted))
        with load(self.path) as file:
            self.assertEqual([(name, item.dtype, item.tolist()) for name, item in file.items()],
                             [("b", "int32", [3]), ("a", "int64", wanted)])

    def test_where_a_mapped_file_cannot_be_replaced(self):
        def refuse(old, new):
            raise PermissionError(13, "Access is denied", new)
        tensorfmt.save(self.path, {"w": F32})
        old, name, replace = read_file(self.path), os.name, os.replace
        try:
            os.name, os.replace = "nt", refuse  # as Windows does
            error = error_of(PermissionError, tensorfmt.save, self.path, {"w": [1, 2]})
        finally:
            os.name, os.replace = name, replace
        self.assertIn("close() the File", error.strerror)
        self.assertIn("mmap=False", error.strerror)
        self.assertEqual((os.listdir(self.folder), read_file(self.path)), (["m.zt"], old))

    def test_mode_and_links(self):
        if os.name != "nt":
            umask = os.umask(0o027)
            try:
                tensorfmt.save(self.path, {"w": F32})
            finally:
                os.umask(umask)
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)
            os.chmod(self.path, 0o604)
            tensorfmt.save(self.path, {"v": F32})
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o604)
            link = os.path.join(self.folder, "link.zt")
            os.symlink("m.zt", link)
            tensorfmt.save(link, {"u": F32})
            self.assertTrue(os.path.islink(link))
            os.mkdir(os.path.join(self.folder, "d"))
            error_of(IsADirectoryError, tensorfmt.save, os.path.join(self.folder, "d"), {"w": F32},
                     format="mag")
            tensorfmt.save(os.devnull, {"w": F32}, format="mag")  # a device: written in place
            self.assertFalse(os.path.isfile(os.devnull))
            with load(self.path) as file:
                self.assertEqual(list(file), ["u"])
        tensorfmt.save(self.path, {"w": F32})
        with load(self.path) as file:
            self.assertEqual(list(file), ["w"])

    def test_a_temporary_of_a_killed_process_is_no_obstacle(self):
        stale = os.path.join(self.folder, ".m.zt.0.tmp")
        write_file(stale, b"stale")
        for _ in range(2):
            tensorfmt.save(self.path, {"w": F32})
        self.assertEqual(sorted(os.listdir(self.folder)), [".m.zt.0.tmp", "m.zt"])
        self.assertEqual(read_file(stale), b"stale")

    def test_the_format_comes_from_argument_suffix_file(self):
        for suffix, kind in ((".mag", "mag"), (".zt", "ztensor"), (".primitiv", "primitiv"),
                             (".bpk", "burnpack"), (".tbs", "tensorbuffers"), (".BPK", "burnpack")):
            path = os.path.join(self.folder, "x" + suffix)
            tensorfmt.save(path, {"w": F32})
            with self.subTest(suffix=suffix), load(path) as file:
                self.assertEqual(file.format, kind)
                odd = os.path.join(self.folder, "copy.dat")
                tensorfmt.save(odd, file)
                self.assertEqual(tensorfmt.detect(odd), kind)
                error_of(ValueError, tensorfmt.save, odd, {"w": F32})
                tensorfmt.save(odd, file, format="ztensor")
                self.assertEqual(tensorfmt.detect(odd), "ztensor")

    def test_relative_paths(self):
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            tensorfmt.save("r.mag", {"w": F32})
            with load("r.mag") as file:
                self.assertEqual(file["w"].tolist(), [1.5])
        finally:
            os.chdir(here)


# -- [8] convert ---------------------------------------------------------------------------------


def fits(kind, item):
    """Return whether a format can hold a tensor as it is, by the tables above."""
    dtypes = HELD[kind] + (("qfloat",) if kind == item.format == "burnpack" else ())
    return item.dtype in dtypes and item.ndim <= MAX_RANK[kind] and not (
        kind == "primitiv" and 0 in item.shape) and not zstd_missing(item)


def converted(source, kind, **options):
    """Return (File, Summary) of a conversion in memory."""
    stream = io.BytesIO()
    summary = tensorfmt.convert(source, stream, format=kind, **options)
    return load(stream.getvalue(), verify=True), summary


@full
class ConvertTest(TestCase):
    def test_every_golden_to_every_format_and_back(self):
        for old, title, _, _, _ in GOLDENS:
            for new in FORMATS:
                file = load(golden(title))
                names = [name for name, item in file.items() if fits(new, item)]
                flat = {"flat": True} if new == "primitiv" and old != new else {}
                with self.subTest(file=title, to=new):
                    there, summary = converted(file, new, only=names, drop=True, **flat)
                    renamed = dict(summary.renamed)
                    wanted = content(dict([(renamed.get(name, name), file[name])
                                           for name in names]))
                    self.assertEqual(content(there), wanted)
                    self.assertEqual((sorted(summary.copied), summary.cast), (sorted(names), []))
                    self.assertEqual(summary.nbytes, there.nbytes)
                    if old != "primitiv" and new != "primitiv":
                        back, _ = converted(there, old, drop=True)
                        self.assertEqual(content(back), wanted)

    def test_what_does_not_fit_is_refused_and_named(self):
        basic, stream = golden("v021_basic.bpk"), io.BytesIO()
        text = self.refuses(["'decoder.head.weight'", "float16", 'convert(cast="float32")'],
                            tensorfmt.convert, basic, stream, format="tensorbuffers", drop=True)
        self.assertEqual((text.count("decoder.steps"), stream.getvalue()), (0, b""))
        text = self.refuses(["metadata 'format'", "'decoder.steps': attribute 'param_id'", "drop"],
                            tensorfmt.convert, basic, stream, format="mag")
        self.assertEqual(stream.getvalue(), b"")
        for title, words in (
                ("custom_fields.zt", ("'a': attribute 'author'", "'scale'")),
                ("head_scalars.bpk", ("file attribute 'scalars'", "param_id")),
                ("up_head_ops.tbs", ("file attribute 'operations'",)),
                ("sorted_model.tbs", ("metadata 'model'",)),
                ("optim_sgd_set.primitiv", ("metadata 'SGD.eta'",)),
                ("shape_batch5.primitiv", ("file attribute 'dims'",)),
                ("head_quant.bpk", ("'q'", "param_id"))):
            with self.subTest(file=title):
                self.refuses(words + ("drop=True",), tensorfmt.convert, golden(title), stream,
                             format="ztensor" if "zt" not in title else "burnpack")
                self.assertEqual(stream.getvalue(), b"")
        self.refuses(["'q'", "qfloat"], tensorfmt.convert, golden("head_quant.bpk"), stream,
                     format="ztensor", drop=True)
        error_of(TypeError, tensorfmt.convert, basic, stream, format="mag", drop=True, colour=1)

    def test_cast(self):
        basic = golden("v021_basic.bpk")
        file, summary = converted(basic, "tensorbuffers", cast="float32", drop=True)
        self.assertEqual(summary.cast, [("decoder.head.weight", "float16", "float32", True)])
        self.assertEqual(len(summary.copied), 3)
        self.assertEqual(file["decoder.head.weight"].tolist(),
                         load(basic)["decoder.head.weight"].tolist())
        self.assertIn("float16 -> float32 (exact)", str(summary))
        self.assertIn("wrote %d bytes" % file.nbytes, str(summary))
        self.assertIn("tensor 'decoder.steps': attribute 'param_id'", summary.dropped)
        file, summary = converted(basic, "mag", cast={"float32": "float16", "int64": "int32"},
                                  drop=True)
        self.assertEqual([(name, exact) for name, _, _, exact in summary.cast], [
            ("encoder.layer1.weight", False), ("encoder.layer1.bias", False),
            ("decoder.steps", True)])
        self.assertEqual(file["decoder.steps"].tolist(), [-1])
        self.assertIn("(rounded)", str(summary))
        whole = load(basic)["encoder.layer1.weight"].astype("float16").tobytes()
        self.assertEqual(file["encoder.layer1.weight"].tobytes(), whole)
        self.refuses(["'decoder.steps'", "uint8", "-1"], converted, basic, "mag", drop=True,
                     cast={"int64": "uint8"})
        error_of(ValueError, converted, basic, "mag", drop=True, cast="float8")

    def test_only(self):
        nested = golden("model_nested.primitiv")
        for only, names in (("enc.*", ["enc.cell.w", "enc.cell.w:s", "enc.w"]), (["z"], ["z"]),
                            (["z", "enc?"], ["enc2", "z"]), ("z", ["z"])):
            with self.subTest(only=only):
                self.assertEqual(list(converted(nested, "ztensor", only=only)[0]), names)
        self.refuses(["'none*'"], converted, nested, "ztensor", only=["z", "none*"])
        stars = dumps({"a*": F32, "ab": F32}, format="ztensor")
        self.assertEqual(list(converted(stars, "mag", only="a*")[0]), ["a*"])  # exact name wins
        self.assertEqual(list(converted(stars, "mag", only="a?")[0]), ["a*", "ab"])

    def test_renamed_and_left_behind(self):
        odd = dumps({"dense/kernel:0": F32, "a.b": F32, "plain": F32}, format="ztensor")
        file, summary = converted(odd, "primitiv", flat=True)
        self.assertEqual(summary.renamed,
                         [("dense/kernel:0", "dense/kernel\\:0"), ("a.b", "a\\.b")])
        self.assertEqual(sorted(file), ["a\\.b", "dense/kernel\\:0", "plain"])
        self.assertEqual(summary.left_behind,
                         ["data_endianness", "encoding", "layout", "version"])
        self.assertEqual(summary.dropped, [])
        self.refuses(["dense/kernel:0", "flat=True"], converted, odd, "primitiv")

    def test_the_same_format_keeps_everything(self):
        for title, options in AGAIN.items():
            if not options:
                file = load(golden(title))
                stream = io.BytesIO()
                tensorfmt.convert(file, stream, format=file.format)
                with self.subTest(file=title):
                    self.assertEqual(stream.getvalue(), golden(title))

    def test_bytes_named_again_and_again(self):
        data = bytes(4096)
        rows = dict([("t%03d" % i, {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]})
                     for i in range(400)])
        many = burnpack({"tensors": rows}, data)
        self.assertEqual(len(load(many)), 400)
        usual = tensorfmt.MAX_COPIES
        try:
            tensorfmt.MAX_COPIES = 20
            self.refuses(["MAX_COPIES = 20"], converted, many, "mag", cast="int32")
        finally:
            tensorfmt.MAX_COPIES = usual
        self.assertTrue(bool(tensorfmt.verify(many)))

    def test_paths(self):
        folder = folder_for(self)
        old, new = os.path.join(folder, "a.zt"), os.path.join(folder, "b.bpk")
        tensorfmt.save(old, {"w": F32})
        summary = tensorfmt.convert(old, new)
        with load(new) as file:
            self.assertEqual((file.format, file.nbytes), ("burnpack", summary.nbytes))
        error_of(ValueError, tensorfmt.convert, old, os.path.join(folder, "b.dat"))


# -- [9] bad files -------------------------------------------------------------------------------
#
# Builders of damaged files, then rows: name, bytes, error, field, offset.

MISSING = object()


def patched(data, *changes):
    """Return bytes with some replaced: changes are (offset, hex)."""
    out = bytearray(data)
    for offset, text in changes:
        part = unhex(text)
        out[offset:offset + len(part)] = part
    return bytes(out)


def spec_mag(*changes):
    """Return seed_basic.mag with changes and the checksum that then agrees."""
    data = patched(golden("seed_basic.mag"), (8, "00000000"), *changes)
    return patched(data, (8, tohex(struct.pack("<I", tensorfmt.crc32(data[:207])))))


def real_mag(*changes):
    """Return m012_mixed.mag with changes and the checksum that then agrees."""
    data = patched(golden("m012_mixed.mag"), *changes)
    return patched(data, (8, tohex(struct.pack("<I", tensorfmt.crc32c(data[12:133])))))


def ztensor(*entries, **changes):
    """Return a zTensor file of 16 bytes of data; changes are to the one usual entry."""
    usual = [("name", "a"), ("offset", 64), ("size", 16), ("dtype", "float32"), ("shape", [4]),
             ("encoding", "raw")]
    entry = Map([(key, changes.pop(key, value)) for key, value in usual])
    entry.update(changes)
    entry = Map([(key, value) for key, value in entry.items() if value is not MISSING])
    return ztensor_raw(tensorfmt.cbor_dumps(list(entries) or [entry]))


def ztensor_raw(index, nbytes=None, data=b"\0\0\x80\x3f" * 4):
    """Return a zTensor file of CBOR bytes; `nbytes` is what it says of their size."""
    return b"ZTEN0001" + bytes(56) + data + index + struct.pack(
        "<Q", len(index) if nbytes is None else nbytes)


def burnpack(top, data=bytes(4)):
    """Return an aligned Burnpack file of a map, or of CBOR bytes."""
    cbor = top if isinstance(top, bytes) else tensorfmt.cbor_dumps(top)
    head = struct.pack("<4sHI", b"NRUB", 1, len(cbor)) + cbor
    return head + bytes(-len(head) % 256) + data


def one_burnpack(**changes):
    entry = Map([("dtype", "F32"), ("shape", [1]), ("data_offsets", [0, 4])])
    entry.update(changes)
    return burnpack({"tensors": {"a": Map([(key, value) for key, value in entry.items()
                                            if value is not MISSING])}})


def primitiv(number, text):
    return unhex("ce00000000 ce00000001 ce0000%04x" % number + text)


def flat_file(*changes):
    return patched(golden("sorted_one.tbs"), *changes)


def bad_files():
    """Return the rows; they are made here, since only dicts that keep their order will do."""
    mag, tbs, tiny = golden("seed_basic.mag"), golden("sorted_one.tbs"), golden("v021_tiny.bpk")
    wide = dumps([("a", F32), ("d", tensor([1], "uint8", (1,) * 64))], format="tensorbuffers",
                 sort=False)
    shape_at = wide.index(struct.pack("<3I", 64, 1, 1))
    tensor_1 = "91ce00000001 ce00000001 c404 0000803f"
    return (
        ("nothing", b"", FormatError, "magic", 0),
        ("no tensor file", b"PK\3\4 and so on", FormatError, "magic", 0),
        ("mag: header cut", mag[:23], FormatError, "aux", 20),
        ("mag: MAG&", b"MAG&" + mag[4:], Unsupported, "magic", 0),
        ("mag: version 0", spec_mag((4, "00000000")), FormatError, "version", 4),
        ("mag: version 300", spec_mag((4, "2c010000")), Unsupported, "version", 4),
        ("mag: checksum", patched(mag, (8, "00000000")), FormatError, "checksum", 8),
        ("mag: a letter of a key", patched(mag, (63, "7a")), FormatError, "checksum", 8),
        ("mag: 2**32-1 tensors", patched(mag, (12, "ffffffff")), FormatError, "num_tensors", 12),
        ("mag: 2**32-1 metadata", patched(mag, (16, "ffffffff")), FormatError, "num_meta_kv", 16),
        ("mag: header aux", spec_mag((20, "01000000")), Unsupported, "aux", 20),
        ("mag: metadata type", spec_mag((24, "03000000")), Unsupported, "metadata[0].type", 24),
        ("mag: key not UTF-8", spec_mag((63, "ff")), FormatError, "tensors[0].key", 63),
        ("mag: two of a name", spec_mag((137, "78")), FormatError, "tensors[1].key", 137),
        ("mag: dimension -2", spec_mag((64, "feffffffffffffff")), FormatError, "tensors[0].shape",
         64),
        ("mag: behind the end of the shape", spec_mag((80, "05")), FormatError, "tensors[0].shape",
         64),
        ("mag: dtype 4", spec_mag((112, "04")), Unsupported, "tensors[0].dtype", 112),
        ("mag: length", spec_mag((113, "08")), FormatError, "tensors[0].data_length", 113),
        ("mag: data in the index", spec_mag((121, "1800")), FormatError, "tensors[0].data_offset",
         121),
        ("mag: data past the end", spec_mag((195, "7501")), FormatError, "tensors[1].data_offset",
         195),
        ("mag 0.1.2: rank 0", real_mag((12, "0100000000000000"), (
            24, "00000000 0100000000000000 c000000000000000 55000000" + "6b" * 85)), FormatError,
         "tensors[0].aux", 24),
        ("mag 0.1.2: numel", real_mag((63, "04")), FormatError, "tensors[0].numel", 63),
        ("mag 0.1.2: upper half of aux", real_mag((61, "01")), FormatError, "tensors[0].aux", 59),
        ("mag 0.1.2: dtype 9", real_mag((59, "09")), Unsupported, "tensors[0].aux", 59),
        ("mag 0.1.2: dimension 0", real_mag((63, "00"), (79, "00")), FormatError,
         "tensors[0].shape", 79),
        ("zt: 1.x", b"ZTEN1000" + bytes(20), Unsupported, "magic", 0),
        ("zt: index size 0", ztensor_raw(b"", 0), FormatError, "index_size", 80),
        ("zt: index size", ztensor_raw(b"\x80", 90), FormatError, "index_size", 81),
        ("zt: left over", ztensor_raw(b"\x80\x80"), FormatError, "index", 81),
        ("zt: a map as root", ztensor_raw(b"\xa0"), FormatError, "index", 80),
        ("zt: entry no map", ztensor_raw(b"\x81\x05"), FormatError, "index[0]", 81),
        ("zt: ends inside", ztensor_raw(b"\x81\xbf\x64name"), FormatError, "index[0].name", 87),
        ("zt: no name", ztensor(name=MISSING), FormatError, "index[0]", 81),
        ("zt: name a number", ztensor(name=5), FormatError, "index[0].name", 82),
        ("zt: offset 65", ztensor(offset=65), FormatError, "index[0].offset", 89),
        ("zt: offset 128", ztensor(offset=128), FormatError, "index[0].offset", 89),
        ("zt: size 20", ztensor(size=20, shape=[5]), FormatError, "index[0].offset", 89),
        ("zt: size and shape", ztensor(shape=[5]), FormatError, "index[0].size", 98),
        ("zt: shape wraps", ztensor(size=0, shape=[1 << 32, 1 << 32]), FormatError,
         "index[0].size", 98),
        ("zt: dimension -1", ztensor(shape=[-1]), FormatError, "index[0].shape", 118),
        ("zt: layout a number", ztensor(layout=5), FormatError, "index[0].layout", 139),
        ("zt: byte order", ztensor(data_endianness="Big"), FormatError,
         "index[0].data_endianness", 139),
        ("zt: key twice", ztensor_raw(b"\x81\xa2\x61n\0\x61n\0"), FormatError, "index[0]", 85),
        ("zt: zstd too small", ztensor(encoding="zstd", shape=[1 << 30]), FormatError,
         "index[0].size", 98),
        ("primitiv: version 0.2", unhex("00 02 00"), FormatError, "magic", 0),
        ("primitiv: version 0.2, ce", primitiv(0, "90ce00000001")[:9] + b"\2" + primitiv(
            0, "90ce00000001")[10:], Unsupported, "ver_minor", 5),
        ("primitiv: data_type", primitiv(0x500, ""), FormatError, "data_type", 10),
        ("primitiv: cut", primitiv(0x100, ""), FormatError, "dims", 15),
        ("primitiv: dims nil", primitiv(0, "c0"), FormatError, "dims", 15),
        ("primitiv: 33 dims", primitiv(0, "dc0021" + "01" * 34), Unsupported, "dims", 15),
        ("primitiv: dimension", primitiv(0, "91ff01"), FormatError, "dims[0]", 16),
        ("primitiv: batch 0", primitiv(0, "9000"), FormatError, "batch", 16),
        ("primitiv: data a str", primitiv(0x100, "9001a40000803f"), FormatError, "data", 17),
        ("primitiv: data short", primitiv(0x100, "910201c40400000000"), FormatError, "data", 18),
        ("primitiv: dims wrap", primitiv(0x100, "92cefffffffecefffffffd01c418" + "00" * 24),
         FormatError, "data", 27),
        ("primitiv: N", primitiv(0x200, tensor_1 + "ceffffffff"), FormatError, "N", 32),
        ("primitiv: statistic twice", primitiv(0x200, tensor_1 + "02" + ("a16b" + tensor_1) * 2),
         FormatError, "stats[1].key", 52),
        ("primitiv: empty key", primitiv(0x300, "0190" + tensor_1 + "00"), FormatError,
         "params[0].key", 16),
        ("primitiv: parameter twice", primitiv(0x300, "02" + ("91a177" + tensor_1 + "00") * 2),
         FormatError, "params[1].key", 37),
        ("primitiv: config over", primitiv(0x400, "81a161cf0000000100000000 80"), FormatError,
         "uint_configs[0].value", 18),
        ("primitiv: config in both", primitiv(0x400, "81a16101 81a16101"), Unsupported,
         "float_configs[0].key", 20),
        ("bpk: BURN", b"BURN" + tiny[4:], FormatError, "magic", 0),
        ("bpk: header cut", tiny[:9], FormatError, "metadata_size", 6),
        ("bpk: version 2", patched(tiny, (4, "02")), Unsupported, "version", 4),
        ("bpk: metadata_size", patched(tiny, (6, "ffff")), FormatError, "metadata_size", 6),
        ("bpk: the last byte", tiny[:-1], FormatError, "metadata_size", 6),
        ("bpk: no map", burnpack([1]), FormatError, "item", 10),
        ("bpk: no tensors", burnpack({"a": 1}), FormatError, "item", 10),
        ("bpk: tensors a list", burnpack({"tensors": []}), FormatError, "tensors", 11),
        ("bpk: name a number", burnpack({"tensors": {5: {}}}), FormatError, "tensors[5]", 20),
        ("bpk: metadata a number", burnpack(Map([("tensors", {}), ("metadata", {"k": 1})])),
         FormatError, "metadata.k", 30),
        ("bpk: lacks dtype", one_burnpack(dtype=MISSING), FormatError, "tensors.a", 20),
        ("bpk: dtype a number", one_burnpack(dtype=5), FormatError, "tensors.a.dtype", 23),
        ("bpk: shape", one_burnpack(shape=[1.0]), FormatError, "tensors.a.shape", 33),
        ("bpk: offsets", one_burnpack(data_offsets=[0, 4, 8]), FormatError,
         "tensors.a.data_offsets", 41),
        ("bpk: end before start", one_burnpack(data_offsets=[4, 0]), FormatError,
         "tensors.a.data_offsets", 41),
        ("bpk: size and shape", one_burnpack(shape=[2]), FormatError, "tensors.a.data_offsets", 41),
        ("bpk: param_id", one_burnpack(param_id=True), FormatError, "tensors.a.param_id", 57),
        ("bpk: cut CBOR", burnpack(unhex("a1677465")), FormatError, "item", 11),
        ("tbs: short", tbs[:4] + b"TBS1", FormatError, "magic", 0),
        ("tbs: trailing magic", tbs + b"\0", FormatError, "end_magic", 137),
        ("tbs: n", flat_file((132, "ffffff")), FormatError, "metadata_size", 132),
        ("tbs: root", flat_file((12, "ff")), FormatError, "root", 12),
        ("tbs: vtable", flat_file((28, "ff")), FormatError, "vtable", 28),
        ("tbs: vtable length", flat_file((68, "0f")), FormatError, "tensors[0].vtable", 68),
        ("tbs: no version", flat_file((20, "0000")), FormatError, "table", 28),
        ("tbs: no name", flat_file((74, "0000")), FormatError, "tensors[0].table", 84),
        ("tbs: offset 0", flat_file((92, "00")), FormatError, "tensors[0].name", 92),
        ("tbs: no NUL", flat_file((121, "78")), FormatError, "tensors[0].name", 116),
        ("tbs: not UTF-8", flat_file((120, "ff")), FormatError, "tensors[0].name", 116),
        ("tbs: vector", flat_file((124, "ffffff3f")), FormatError, "tensors[0].shape", 124),
        ("tbs: data_type 0", flat_file((91, "00")), FormatError, "tensors[0].data_type", 91),
        ("tbs: data", flat_file((100, "03")), FormatError, "tensors[0].data_offset", 100),
        ("tbs: size", flat_file((104, "04")), FormatError, "tensors[0].data_size", 104),
        ("tbs: 65 dimensions", patched(wide, (shape_at, "41")), Unsupported, "tensors[1].shape",
         shape_at),
        ("tbs: shape wraps", flat_file((128, "02000040")), FormatError, "tensors[0].data_size",
         104))


class BadFileTest(TestCase):
    def test_error_field_and_offset(self):
        for name, data, kind, field, offset in bad_files():
            for source in (data, Short(data)):
                with self.subTest(file=name, source=type(source).__name__):
                    error = error_of(kind, load, source)
                    self.assertEqual((error.field, error.offset), (field, offset), str(error))
                    self.assertTrue(error.what)
                    self.assertEqual(str(error).count("\n"), 0)
                    if not WHOLE:
                        continue
                    report = tensorfmt.verify(source)
                    self.assertFalse(bool(report))
                    self.assertIn("FAIL", [row[0] for row in report.rows])
                    self.assertIn((field, offset), [(e.field, e.offset) for e in report.errors])
                    error_of(kind, load, source, verify=True)

    @full
    def test_explain_ends_with_the_offending_field(self):
        for name, data, kind, _, _ in bad_files():
            if not tensorfmt.detect(data):
                continue
            with self.subTest(file=name):
                self.check_last_field(data, kind)

    def check_last_field(self, data, kind=FormatError):
        """Assert that explain tells all up to the error's field, then raises the error of load."""
        wanted, fields = error_of(kind, load, data), []
        try:
            for field in tensorfmt.explain(data):
                fields.append(field)
        except FormatError as error:
            self.assertEqual((type(error), error.field, error.offset, error.what),
                             (kind, wanted.field, wanted.offset, wanted.what))
            self.assertEqual((fields[-1].name, fields[-1].offset), (error.field, error.offset))
            at = 0
            for field in fields:
                self.assertEqual(field.offset, at)
                at = field.offset + field.nbytes
            return
        raise AssertionError("explain found no fault")

    @full
    def test_every_truncation_of_small_goldens(self):
        for _, title, _, _, _ in GOLDENS:
            data = golden(title)
            if len(data) > 400:
                continue
            for end in range(1, len(data)):
                if tensorfmt.detect(data[:end]) and self.refused(data[:end]):
                    with self.subTest(file=title, end=end):
                        self.check_last_field(data[:end])

    def refused(self, data):
        try:
            load(data)
        except FormatError:
            return True
        return False

    @full
    def test_prefixes_are_refused_where_the_end_is_marked(self):
        for title in ("custom_nested.zt", "up_7190fc4_f32.tbs", "model_nested.primitiv",
                      "optim_sgd_set.primitiv", "param_3x2x2_stat.primitiv"):
            for end in range(len(golden(title))):
                with self.subTest(file=title, end=end):
                    error_of(FormatError, load, golden(title)[:end])

    @full
    def test_changed_bytes_give_a_result_or_a_format_error(self):
        from random import Random
        draw = Random(11)
        read, faults = [], []
        for _, title, _, _, _ in GOLDENS:
            data = golden(title)
            for _ in range(40 if PYPY or sys.byteorder == "big" else 120):
                changed = bytearray(data)
                for _ in range(draw.choice([1, 1, 1, 2, 5])):
                    changed[draw.randrange(len(data))] = draw.choice(
                        [0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
                if draw.random() < 0.2:
                    changed = changed[:draw.randrange(len(data) + 1)]
                try:
                    read.append(self.survives(bytes(changed)))
                except Exception as error:
                    faults.append((title, repr(error), tohex(changed)))
        self.assertEqual((len(faults), faults[:1]), (0, []))
        self.assertTrue(0.1 < sum(read) / len(read) < 0.9)

    def survives(self, data):
        """Use a file in every way; anything but a result or a FormatError fails. Was it read?"""
        self.assertTrue(str(tensorfmt.verify(data)))
        try:
            self.assertTrue(len(list(tensorfmt.explain(data))) > 0)
        except FormatError as error:
            self.assertTrue(error.offset is not None and 0 <= error.offset <= len(data), error)
        try:
            file = load(io.BytesIO(data))
        except FormatError:
            return 0
        for item in file.values():
            if item.nbytes < 1 << 20:
                try:
                    self.assertEqual(len(item.tobytes()), item.nbytes)
                except FormatError:
                    pass
        return 1

    @full
    def test_resaving_a_changed_file_is_stable(self):
        from random import Random
        draw = Random(12)
        for title in ("custom_nested.zt", "v021_tiny.bpk", "sorted_model.tbs",
                      "model_nested.primitiv"):
            data, kept = golden(title), 0
            for _ in range(200):
                changed = bytearray(data)
                changed[draw.randrange(len(data))] = draw.randrange(256)
                try:
                    file = load(bytes(changed))
                    again = dumps(file, format=file.format)
                except ValueError:  # a FormatError, or something that is read but not written
                    continue
                kept += 1
                with self.subTest(file=title, data=tohex(changed)):
                    self.assertEqual(dumps(load(again), format=file.format), again)
            self.assertTrue(kept)

    @full
    def test_access_errors(self):
        for name, data, kind in (
                ("dtype", ztensor(dtype="Float32"), Unsupported),
                ("encoding", ztensor(encoding="RAW"), Unsupported),
                ("layout", ztensor(layout="strided"), Unsupported),
                ("bpk", one_burnpack(dtype="F8"), Unsupported),
                ("tbs", flat_file((91, "0b")), Unsupported)) + (
                    (("zstd", ztensor(encoding="zstd"), FormatError),) if ZSTD else ()):
            with self.subTest(file=name):
                file = load(data)
                item = list(file.values())[0]
                error = error_of(kind, item.tobytes)
                self.assertEqual(error.tensor, item.name)
                for call in (item.tolist, lambda item=item: item[0], lambda item=item: item.data,
                             lambda item=item: list(item.flat), item.contiguous, item.item,
                             lambda item=item: item.astype("float64")):
                    self.assertTrue(isinstance(self.error_or_none(call), FormatError) or
                                    call == item.item)
                self.assertTrue(len(item.raw) in (4, 8, 16))
                self.assertEqual(bool(tensorfmt.verify(data)), kind is Unsupported)

    @full
    def test_offsets_of_empty_tensors_do_not_matter(self):
        data = dumps({"e": tensor([], "uint8")}, format="tensorbuffers")
        moved = patched(data, (88, "f0ffffff"))
        mag = dumps({"e": tensor([], "int32")}, format="mag")
        for name, far in (("tbs", moved), ("mag", patched(mag, (8, "00" * 4), (86, "f0" * 8)))):
            if name == "mag":
                far = patched(far, (8, tohex(struct.pack("<I", tensorfmt.crc32(far[:98])))))
            with self.subTest(file=name):
                item = load(far)["e"]
                self.assertEqual((item.tobytes(), bytes(item.raw)), (b"", b""))
                self.assertTrue(0 <= item.offset <= len(far))
                self.assertTrue(bool(tensorfmt.verify(far)))
                self.assertEqual(gaps(list(tensorfmt.explain(far)), len(far)), [])

    def error_or_none(self, call):
        try:
            call()
        except Exception as error:
            return error
        return None

    @full
    def test_verify_errors(self):
        good = dumps({"a": tensor([1.0, 2.0])}, format="ztensor", checksum="crc32c")
        at = good.index(b"crc32c:0x")
        for name, data, check, offset in (
                ("mismatch", patched(good, (64, "01")), "checksums", 64),
                ("text", patched(good, (at + 9, tohex(b"+"))), "checksums", 64),
                ("behind primitiv", golden("model_nested.primitiv") + b"\0", "index", 230)):
            with self.subTest(file=name):
                report = tensorfmt.verify(data)
                self.assertEqual([(e.check, e.offset) for e in report.errors], [(check, offset)])
                self.assertIn("INVALID", str(report))
                self.assertEqual(len(load(data)), len(load(data).keys()))  # load does not mind
                error_of(FormatError, load, data, verify=True)
        for text, word in (("crc32c:0X%s", "ok"), ("crc32c:%s", "ok"), ("md5:%s", "-"),
                           ("CRC32C:%s", "-")):
            digits = "%08x" % tensorfmt.crc32c(b"\0\0\x80\x3f" * 4)
            report = tensorfmt.verify(ztensor(checksum=text % digits))
            with self.subTest(checksum=text):
                self.assertTrue(bool(report))
                self.assertIn((word, "checksums"), [row[:2] for row in report.rows])

    @full
    def test_verify_goes_on_after_a_fault(self):
        rows = dict([(name, {"dtype": "F32", "shape": [shape], "data_offsets": [0, 4]})
                     for name, shape in (("a", 1), ("b", 2), ("c", 3))])
        report = tensorfmt.verify(burnpack({"tensors": rows}))
        self.assertEqual([error.tensor for error in report.errors], ["b", "c"])
        notes = tensorfmt.verify(burnpack({"tensors": {
            "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
            "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]},
            "c": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}}, bytes(7)))
        self.assertTrue(bool(notes))
        self.assertEqual([row[1] for row in notes.rows if row[0] == "note" and row[2] == "b"][-1],
                         "bounds")
        self.assertIn(("note", "padding"), [row[:2] for row in notes.rows])  # a byte at the end

    @full
    def test_hostile_sizes_are_refused_at_once(self):
        for name, data in (
                ("zt", ztensor_raw(b"\x9b\x7f" + b"\xff" * 7)),
                ("zt dims", ztensor(size=0, shape=[(1 << 64) - 1] * 2000)),
                ("bpk", burnpack(b"\xa1\x67tensors\xbb\x7f" + b"\xff" * 7)),
                ("bpk nesting", burnpack(b"\xa1\x67tensors" + b"\x81" * 100000)),
                ("primitiv", primitiv(0x100, "ddffffffff")),
                ("primitiv key", primitiv(0x300, "01ddffffffff" + "00" * 9)),
                ("primitiv name", primitiv(0x300, "0191dbffffffff" + "00" * 9)),
                ("tbs", flat_file((48, "ffffffff")))):
            with self.subTest(file=name):
                error_of(FormatError, load, data)


# Sparse tensors (zTensor) and quantized ones (Burnpack): their tests go here.


if not WHOLE:
    class CutTest(TestCase):
        """What a copy for boards says of what it lacks."""

        def test_what_is_missing_is_named(self):
            data = dumps({"w": F32}, format="ztensor")
            self.assertEqual([name for name in BELOW if hasattr(tensorfmt, name)], [])
            for missing, call in (
                    ("verify", lambda: load(data, verify=True)),
                    ("zstd", lambda: dumps({"w": F32}, format="ztensor", encoding="zstd")),
                    ("components", lambda: tensor(shape=(2,), components={})),
                    ("quantized", lambda: tensor(b"", "qfloat", (0,))),
                    ("Quantized", load(golden("head_quant.bpk"))["q"].dequantize),
                ("Quantized", lambda: load(golden("head_quant.bpk"))["q"].scheme),
                ("Quantized", lambda: load(golden("head_quant.bpk"))["q"].scales)):
                with self.subTest(missing=missing):
                    what = error_of(Unsupported, call).what
                    self.assertIn("was cut", what)
                    self.assertIn(missing, what)

        def test_sparse_tensors_are_listed(self):
            data = ztensor(layout="sparse", nnz=1, sparse_format="csr")
            item = load(data)["a"]
            self.assertEqual((item.dtype, item.components), ("float32", None))
            self.assertIn("was cut", error_of(Unsupported, item.tobytes).what)
            self.assertEqual(len(item.raw), 16)

        def test_quantized_tensors_keep_their_bytes(self):
            data = golden("head_quant.bpk")
            file = load(data)
            for item in file.values():
                self.assertEqual((item.dtype, bytes(item.raw)), ("qfloat", item.tobytes()))
            self.assertEqual(dumps(file, format="burnpack"), data)


# -- [10] the file itself ------------------------------------------------------------------------

PUBLIC = [
    "load", "save", "dumps", "tensor", "detect",
    "File", "Tensor", "FormatError", "Unsupported", "FORMATS",
    "cbor_loads", "cbor_dumps", "msgpack_loads", "msgpack_dumps", "FlatTable", "FlatBuilder",
    "crc32c"]
BELOW = ["convert", "verify", "explain"]  # the cut line
LAZY = """argparse array base64 binascii bz2 collections copy ctypes dataclasses datetime decimal
    difflib email enum fnmatch fractions functools gzip hashlib heapq inspect itertools json locale
    logging lzma mmap numpy operator pathlib pickle random re shutil socket ssl string subprocess
    tempfile threading time traceback typing unittest urllib warnings weakref zipfile zlib
    compression backports zstandard pyzstd""".split()


def text_of(name):
    with open(os.path.join(HERE, name), encoding="ascii") as stream:  # ASCII, or an error
        return stream.read()


def module_of(text):
    """Return a module made of source text."""
    from types import ModuleType
    module = ModuleType("cut")
    exec(compile(text, "cut.py", "exec"), module.__dict__)
    return module


@full
class ModuleTest(TestCase):
    def test_public_names(self):
        self.assertEqual(tensorfmt.__all__, PUBLIC + BELOW)
        self.assertEqual([name for name in PUBLIC + BELOW if not hasattr(tensorfmt, name)], [])
        self.assertEqual(tuple([kind.NAME for kind in tensorfmt.FORMATS]), FORMATS)

    def test_contents_are_the_banners(self):
        import re
        for name in ("tensorfmt.py", "test_tensorfmt.py"):
            text = text_of(name)
            listed = re.findall(r"^    \[(\w+)\] (\S+(?: \S+)*)", text.split('"""')[1], re.M)
            banners = re.findall(r"^# -- \[(\w+)\] (.+?) -+$", text, re.M)
            with self.subTest(file=name):
                self.assertTrue(len(banners) > 10)
                self.assertEqual(banners, listed)
                self.assertEqual([line for line in text.split("\n") if line.startswith("# --")
                                  and not re.match(r"# -- \[\w+\] .* -+$", line)], [])

    def test_form_of_the_text(self):
        for name in ("tensorfmt.py", "test_tensorfmt.py"):
            for number, line in enumerate(text_of(name).split("\n"), 1):
                if len(line) > 100 or line != line.rstrip() or "\t" in line:
                    self.fail("%s:%d: %r" % (name, number, line))
        self.assertTrue(text_of("tensorfmt.py").startswith("# SPDX-License-Identifier: MIT\n"))

    def test_public_things_have_docstrings(self):
        import ast
        nodes = dict([(node.name, node) for node in ast.parse(text_of("tensorfmt.py")).body
                      if isinstance(node, (ast.FunctionDef, ast.ClassDef))])
        kinds = [type(kind).__name__ for kind in tensorfmt.FORMATS]
        for name in [name for name in PUBLIC + BELOW if name != "FORMATS"] + kinds:
            text = ast.get_docstring(nodes[name])
            with self.subTest(name=name):
                self.assertTrue(text and text.split("\n")[0].endswith((".", ":", ",")))

    def test_doctests(self):
        import doctest
        result = doctest.testmod(tensorfmt)
        self.assertEqual(result.failed, 0)
        self.assertEqual(result.attempted > 15, sys.flags.optimize < 2)

    def test_import_loads_no_optional_module(self):
        code = "import sys; sys.path.insert(0, %r); %%s; print(*sorted(sys.modules))" % HERE
        bare = python("-I", "-S", "-c", code % "pass")[1].split()
        with_us = python("-I", "-S", "-c", code % "import tensorfmt")[1].split()
        self.assertIn("tensorfmt", with_us)
        tops = set([name.split(".")[0] for name in with_us if name not in bare])
        self.assertEqual(tops & set(LAZY), set())
        self.assertTrue(len(tops) < 30, tops)

    def test_any_one_format_can_be_cut_out(self):
        text = text_of("tensorfmt.py")
        for kind in tensorfmt.FORMATS:
            room = text.index("# -- [7%s]" % "abcde"[FORMATS.index(kind.NAME)])
            end = text.index("\n# -- [", room) + 1
            rest = (text[:room] + text[end:]).replace(
                "    %s(),\n" % type(kind).__name__, "", 1)
            with self.subTest(without=kind.NAME):
                self.works_with(module_of(rest), [name for name in FORMATS if name != kind.NAME])

    ABSENT = """
import sys, os
sys.path.insert(0, %r)
import test_tensorfmt as t
for name in %r:
    sys.modules[name] = None
for name in %r:
    if hasattr(os, name):
        delattr(os, name)
folder = sys.argv[1]
for kind, name, writer, text, tensors in t.GOLDENS:
    path = os.path.join(folder, name)
    with open(path, "wb") as stream:
        stream.write(t.binascii.a2b_base64(text))
    with t.load(path) as file:
        for key, (dtype, shape, wanted) in tensors.items():
            try:
                got = t.tohex(file[key].tobytes())
            except t.Unsupported:
                continue
            assert wanted is None or got == wanted, (name, key)
        t.tensorfmt.save(path + ".again", file, format=kind)
        t.tensorfmt.verify(path + ".again")
        t.tensorfmt.save(path, {"w": t.tensor([1.0], "float32")}, format=kind,
                         **({"kind": "model"} if kind == "primitiv" else {}))
    assert t.load(path)["w"].tolist() == [1.0]
big = t.dumps({"w": [[1, 2], [3, -4]]}, format="ztensor", data_endianness="big")
assert t.load(big)["w"].tolist() == [[1, 2], [3, -4]] and list(t.load(big)["w"].data)[3] == -4
assert list(t.load(big)["w"][:, 1].flat) == [2, -4]
print("fine")
"""

    def test_what_a_platform_may_lack(self):
        import shutil
        import tempfile
        cases = [((name,), ()) for name in ("mmap", "array", "zlib", "hashlib", "difflib",
                                         "tempfile")]
        cases += [((), (name,)) for name in ("replace", "fsync", "pread", "fstat", "chmod")]
        cases.append((("mmap", "array", "zlib", "hashlib"), ("replace", "pread")))
        for modules, functions in cases:
            with self.subTest(modules=modules, functions=functions):
                folder = tempfile.mkdtemp()
                try:
                    code, out, err = python("-c", self.ABSENT % (HERE, modules, functions), folder)
                    self.assertEqual((code, out, err), (0, "fine\n", ""))
                finally:
                    shutil.rmtree(folder)

    def test_all_above_the_cut_line_works_alone(self):
        import shutil
        text = text_of("tensorfmt.py")
        above = text[:text.index("\n# == The cut line") + 1]
        self.assertTrue(len(above) > 10000)
        module = module_of(above)
        self.assertEqual(module.__all__, PUBLIC)
        self.assertFalse([name for name in BELOW + ["main"] if hasattr(module, name)])
        folder = folder_for(self)
        with open(os.path.join(folder, "tensorfmt.py"), "w") as stream:
            stream.write(above)
        shutil.copy(os.path.join(HERE, "test_tensorfmt.py"), folder)
        code, out, err = python(os.path.join(folder, "test_tensorfmt.py"))
        self.assertEqual((code, out), (0, ""), err)
        self.assertTrue(err.split("\n")[0].count(".") > 60, err)  # a dot for each test that ran

    def works_with(self, module, formats):
        """Read, explain, write and convert every golden with what is left of a module."""
        for kind, title, _, _, wanted in GOLDENS:
            data = golden(title)
            if kind not in formats:
                error_of(module.FormatError, module.load, data)
                continue
            file = module.load(data)
            self.assertEqual(list(file), list(wanted))
            self.assertTrue(bool(module.verify(data)))
            self.assertTrue(len(list(module.explain(data))) > 0)
            if title in AGAIN:
                self.assertEqual(module.dumps(file, format=kind, **AGAIN[title]), data)
        made = {"w": module.tensor([[1.0, 2.0]], "float32")}
        for kind in formats:
            stream = io.BytesIO()
            module.convert(module.dumps(made, format=kind), stream, format=formats[0])
            self.assertEqual(load(stream.getvalue())["w"].tolist(), [[1.0, 2.0]])
            error_of(ValueError, module.dumps, made, format=kind, metadata={5: 5})


# -- [11] command line ---------------------------------------------------------------------------


def python(*args, **options):
    """Return (exit code, stdout, stderr) of a Python process."""
    from subprocess import PIPE, Popen
    env = dict(os.environ, PYTHONIOENCODING="utf-8", COLUMNS="80", PYTHON_COLORS="0")
    process = Popen([sys.executable] + list(args), stdout=PIPE, stderr=PIPE, env=env, **options)
    out, err = process.communicate()
    return process.returncode, out.decode().replace("\r\n", "\n"), err.decode()


def command(*args):
    """Return (exit code, stdout, stderr) of the command line, called in this process."""
    usual = sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.StringIO()
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", newline="\n")
    sys.stderr = err
    try:
        try:
            code = tensorfmt.main(list(args))
        except SystemExit as stop:
            code = stop.code
        sys.stdout.flush()
        sys.stdout.detach()
    finally:
        sys.stdout, sys.stderr = usual
    return code, out.getvalue().decode("utf-8", "surrogateescape"), err.getvalue()


@full
class CommandTest(TestCase):
    def setUp(self):
        self.folder = folder_for(self)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for _, title, _, _, _ in GOLDENS:
            write_file(title, golden(title))
        write_file("broken.zt", ztensor(shape=[5]))

    def test_in_a_process_of_its_own(self):
        script = os.path.join(HERE, "tensorfmt.py")
        code, out, err = python(script)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("usage: python3 tensorfmt.py COMMAND", out)
        self.assertIn("formats: mag ztensor primitiv burnpack tensorbuffers", out)
        for name in ("ls", "get", "explain", "verify", "convert", "formats", "demo"):
            self.assertIn("\n  %s " % name, out)
        code, out, err = python(script, "ls", "seed_basic.mag", "absent.zt")
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertIn("seed_basic.mag: mag, 384 bytes, 2 tensors", out)
        self.assertTrue(err.startswith("error: absent.zt: "))
        self.assertEqual(python(script, "frobnicate")[0], 2)
        code, out, err = python("-I", "-S", script, "demo")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("all 5 formats written, listed, verified, explained and read back", out)

    def test_a_reader_that_goes_away(self):
        from subprocess import PIPE, Popen
        rows = dict([("tensor number %d" % i, F32) for i in range(3000)])
        tensorfmt.save("many.bpk", rows)
        process = Popen([sys.executable, os.path.join(HERE, "tensorfmt.py"), "ls", "many.bpk"],
                        stdout=PIPE, stderr=PIPE)
        with process:
            self.assertIn(b"many.bpk: Burnpack", process.stdout.readline())
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_ls(self):
        for kind, title, _, _, wanted in GOLDENS:
            code, out, err = command("ls", title)
            with self.subTest(file=title):
                self.assertEqual((code, err), (0, ""))
                self.assertTrue(out.startswith(title + ": " + tensorfmt.find_format(kind).TITLE))
                for name, (dtype, shape, _) in wanted.items():
                    row = [line for line in out.split("\n")
                           if line.endswith((" " + name, " " + repr(name)))]
                    self.assertEqual(len(row), 1)
                    self.assertIn(dtype, row[0])
                    self.assertIn(str(list(shape)), row[0])
        self.assertIn("metadata pi = 3.25", command("ls", "seed_basic.mag")[1])
        self.assertEqual(command("ls", "seed_basic.mag", "sorted_one.tbs")[1].count("\n\n"), 3)
        names = [line.split()[-1] for line in
                 command("ls", "--sort", "bytes", "--limit", "2", "model_nested.primitiv")[1]
                 .split("\n") if "float32" in line]
        self.assertEqual(names, ["enc.cell.w", "enc.cell.w:s"])

    def test_ls_json(self):
        import json
        for _, title, _, _, wanted in GOLDENS:
            with self.subTest(file=title):
                code, out, _ = command("ls", "--json", title)
                parsed = json.loads(out)
                self.assertEqual((code, parsed["file"], parsed["bytes"]),
                                 (0, title, len(golden(title))))
                self.assertEqual([(row["name"], row["dtype"], tuple(row["shape"]))
                                  for row in parsed["tensors"]],
                                 [(name, row[0], row[1]) for name, row in wanted.items()])

    def test_names_are_escaped(self):
        tensorfmt.save("odd.zt", {"a\x1b[31m\n\u00e9": F32, " x ": F32, "": F32})
        for args in (("ls", "odd.zt"), ("explain", "odd.zt"), ("verify", "odd.zt"),
                     ("convert", "odd.zt", "odd.mag"), ("get", "odd.zt", "\x1b")):
            code, out, err = command(*args)
            with self.subTest(args=args):
                self.assertEqual([c for c in out + err if not (" " <= c <= "~" or c == "\n")], [])
        self.assertIn("'a\\x1b[31m\\n\\xe9'", command("ls", "odd.zt")[1])

    def test_get(self):
        for args, wanted in (
                (("seed_basic.mag", "y"), "[[1, 2], [3, -4]]\n"),
                (("seed_basic.mag", "y", "--rows", "1:"), "[[3, -4]]\n"),
                (("seed_basic.mag", "y", "--rows", "-1"), "[[3, -4]]\n"),
                (("seed_basic.mag", "x", "--rows", "0:2"), "[1.0, 2.0]\n"),
                (("seed_empty.mag", "e2"), "[[], [], []]\n"), (("seed_order_unaligned.mag", "d"),
                                                               "0.5\n"),
                (("seed_dtypes.mag", "flag"), "[True, False, True, True, False]\n")):
            with self.subTest(args=args):
                self.assertEqual(command("get", *args), (0, wanted, ""))
        for _, title, _, _, _ in GOLDENS:
            for name, item in load(golden(title)).items():
                if not zstd_missing(item) and item.dtype != "qfloat" and item.size < 100:
                    text = command("get", title, name)[1]
                    with self.subTest(file=title, tensor=name):
                        self.assertEqual(text, "%s\n" % (item.tolist(),))
        raw = command("get", "param_3x2x2_stat.primitiv", "value", "--raw")[1]
        wanted = [row[4] for row in GOLDENS if row[1] == "param_3x2x2_stat.primitiv"][0]
        self.assertEqual(tohex(raw.encode("utf-8", "surrogateescape")), wanted["value"][2])
        code, out, err = command("get", "seed_basic.mag", "xx")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "error: seed_basic.mag: no tensor 'xx'; nearest is 'x' (2 tensors)\n")

    def test_explain(self):
        for _, title, _, _, _ in GOLDENS:
            code, out, err = command("explain", title)
            rows = [row for row in out.split("\n") if row[:8].strip() and row[8:10] == "  "]
            with self.subTest(file=title):
                self.assertEqual((code, err), (0, ""))
                fields = list(tensorfmt.explain(golden(title)))
                offsets = [int(row[:8], 16) for row in rows if not row.startswith("offset")]
                self.assertEqual(offsets, [field.offset for field in fields])
                self.assertIn("%d bytes explained: " % len(golden(title)), out)
        code, out, err = command("explain", "broken.zt")
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertIn("tensor 'a': 16 bytes stored, float32 [5] needs 20 (at 0x62, index[0].size)",
                      err)
        self.assertTrue(out.rstrip("\n").split("\n")[-1].startswith("00000062"))
        limited = command("explain", "--limit", "2", "seed_basic.mag")[1]
        self.assertIn("magic", limited)
        self.assertEqual(limited.count("num_tensors"), 0)
        only = command("explain", "--tensor", "y", "seed_basic.mag")[1]
        self.assertEqual((only.count("data y"), only.count("data x")), (1, 0))

    def test_verify(self):
        code, out, err = command("verify", "seed_basic.mag", "v021_tiny.bpk")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("seed_basic.mag: valid mag", out)
        code, out, err = command("verify", "broken.zt")
        self.assertEqual((code, err), (1, ""))
        self.assertIn("FAIL  sizes", out)
        self.assertIn("broken.zt: INVALID zTensor 0.1: 1 problem, the first at 0x62", out)
        code, out, err = command("verify", "--quiet", "broken.zt", "sorted_one.tbs")
        self.assertEqual((code, err, out.count("\n")), (1, "", 1))
        self.assertIn("broken.zt", out)

    def test_convert(self):
        code, out, err = command("convert", "v021_basic.bpk", "new.tbs", "--drop")
        self.assertEqual((code, os.path.exists("new.tbs")), (1, False))
        self.assertIn("nothing written", err)
        self.assertIn("decoder.head.weight", err)
        self.assertIn("v021_basic.bpk (Burnpack) -> new.tbs (TensorBuffers TBS1)", out)
        cast = ("convert", "v021_basic.bpk", "new.tbs", "--drop", "--cast", "float32")
        code, out, err = command(*cast + ("--only", "decoder.*", "--set", "sort=False"))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("float16 -> float32 (exact)", out)
        with load("new.tbs") as file:
            self.assertEqual(sorted(file), ["decoder.head.weight", "decoder.steps"])
            self.assertIn("wrote new.tbs, %d bytes" % file.nbytes, out)
        for wrong, word in ((cast + ("--set", "colour=3"), "'colour'"),
                            (cast + ("--set", "colour"), "KEY=VALUE"),
                            (("convert", "v021_basic.bpk", "new.xyz"), "suffix"),
                            (("ls", "sorted_one.tbs", "--layout", "packed"), "'layout'")):
            code, _, err = command(*wrong)
            self.assertEqual(code, 2, wrong)
            self.assertIn(word, err)
        code = command("convert", "v021_basic.bpk", "x.mag", "--drop", "--cast",
                       "float32=float16,int64=int32")[0]
        self.assertEqual((code, load("x.mag", mmap=False)["decoder.steps"].dtype), (0, "int32"))

    def test_formats_and_demo(self):
        code, out, err = command("formats")
        self.assertEqual((code, err), (0, ""))
        for kind in tensorfmt.FORMATS:
            for word in (kind.NAME, kind.TITLE) + kind.SUFFIXES + tuple(kind.DTYPES) + tuple(
                    kind.OPTIONS):
                self.assertIn(word, out)
        code, out, err = command("demo", "made")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(os.listdir("made")),
                         sorted(["demo" + kind.SUFFIXES[0] for kind in tensorfmt.FORMATS]))
        for line in out.split("\n"):
            self.assertEqual([c for c in line if not " " <= c <= "~"], [])
            self.assertTrue(len(line) <= 100, line)

    def test_misuse(self):
        for args in (("ls",), ("ls", "--sort", "colour", "x"), ("get", "x"), ("convert", "x")):
            code, out, err = command(*args)
            with self.subTest(args=args):
                self.assertEqual((code, out), (2, ""))
                self.assertIn("usage", err)
        for wanted, args in ((1, ("ls", ".")), (1, ("verify", "absent.zt")),
                             (1, ("explain", "absent.zt")), (1, ("convert", "absent.zt", "x.mag")),
                             (2, ("convert", "sorted_one.tbs", "x.dat"))):
            code, out, err = command(*args)
            with self.subTest(args=args):
                self.assertEqual((code, err[:7]), (wanted, "error: "))
                self.assertTrue(err.count("\n") == 1 or "nothing written" in err)


# -- [12] README ---------------------------------------------------------------------------------


def fenced_blocks(text):
    """Return (language, text) of every fenced block."""
    blocks = []
    for i, part in enumerate(text.split("\n```")):
        if i % 2:
            language, _, body = part.partition("\n")
            blocks.append((language, body + "\n"))
    return blocks


def absent_imports(code):
    """Return the modules that a block imports and that are not here."""
    import re
    from importlib.util import find_spec
    names = re.findall(r"^\s*(?:import|from) (\w+)", code, re.M)
    return [name for name in names if find_spec(name) is None]


@full
class ReadmeTest(TestCase):
    def test_every_example(self):
        from contextlib import redirect_stdout
        from shutil import copy
        path = os.path.join(HERE, "README.md")
        self.assertTrue(os.path.exists(path), "there is no README.md")
        with open(path, encoding="utf-8") as stream:
            blocks = fenced_blocks("\n" + stream.read())
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder_for(self))
        copy(os.path.join(HERE, "tensorfmt.py"), "tensorfmt.py")
        names = {"__name__": "readme"}
        ran = {"python": 0, "console": 0}
        for number, (language, text) in enumerate(blocks):
            with self.subTest(block=number, begins=text[:60]):
                if language == "python" and not absent_imports(text):
                    with redirect_stdout(io.StringIO()):
                        exec(compile(text, "README.md block %d" % number, "exec"), names)
                    ran[language] += 1
                elif language == "console":
                    ran[language] += self.check_console(text)
        self.assertTrue(min(ran.values()) > 0, ran)

    def check_console(self, text):
        """Run the commands `$ python3 tensorfmt.py ...` of a block; return how many there were."""
        from subprocess import PIPE, STDOUT, Popen
        ran = 0
        for part in ("\n" + text).split("\n$ ")[1:]:
            line, _, wanted = part.partition("\n")
            if not line.startswith("python3 tensorfmt.py"):
                continue
            quoted = '"%s"' % sys.executable
            shell = Popen(line.replace("python3", quoted), shell=True, stdout=PIPE, stderr=STDOUT,
                          env=dict(os.environ, COLUMNS="80", PYTHON_COLORS="0"))
            out = shell.communicate()[0].decode().replace("\r\n", "\n")
            self.assertEqual(out.rstrip("\n"), wanted.rstrip("\n"), "$ " + line)
            ran += 1
        return ran


# -- [13] sparse and quantized -------------------------------------------------------------------

# As tensorfmt writes them (zTensor, layout "sparse"), and as ztensor 0.1.4 laid them out.
CSR = {"values": [1.5, -2.0, 3.25, 8.0], "indptr": [0, 1, 1, 4], "indices": [2, 0, 3, 4]}
COO = {"values": [1.5, -2.0, 3.25, 8.0], "coords": [[0, 1, 2, 2], [1, 4, 0, 3]]}
CSR_DENSE = [[0.0, 0.0, 1.5, 0.0, 0.0], [0.0] * 5, [-2.0, 0.0, 0.0, 3.25, 8.0]]
COO_DENSE = [[0.0, 1.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, -2.0], [3.25, 0.0, 0.0, 8.0, 0.0]]

SPARSE_ERRORS = (  # what is wrong, shape, components, words of the message
    ("rank", (3,), CSR, "rank 2"),
    ("rows", (4, 5), CSR, "row pointers"),
    ("first pointer", (3, 5), dict(CSR, indptr=[1, 1, 1, 4]), "from 0"),
    ("last pointer", (3, 5), dict(CSR, indptr=[0, 1, 1, 3]), "from 0"),
    ("falling", (3, 5), dict(CSR, indptr=[0, 2, 1, 4]), "falls"),
    ("column", (3, 4), CSR, "outside"),
    ("column twice", (3, 5), dict(CSR, indices=[2, 0, 0, 4]), "twice"),
    ("columns", (3, 5), dict(CSR, indices=[2, 0, 3]), "columns"),
    ("coordinate", (3, 4), COO, "outside"),
    ("coordinate twice", (3, 5), dict(COO, coords=[[0, 1, 2, 2], [1, 4, 3, 3]]), "twice"),
    ("coordinates", (3, 5), dict(COO, coords=[0, 1, 2]), "coordinates"),
)


def make_entry(data, **fields):
    """Return a zTensor file of one entry whose blob is `data`, at 64."""
    entry = {"name": "s", "offset": 64, "size": len(data), "encoding": "raw"}
    entry.update(fields)
    return ztensor_raw(tensorfmt.cbor_dumps([entry]), None, data)


@whole
class SparseTest(TestCase):
    def make(self, parts, dtype="float32", shape=(3, 5)):
        return tensor(dtype=dtype, shape=shape, components=parts)

    def test_values_are_those_of_the_dense_form(self):
        for parts, dense in ((CSR, CSR_DENSE), (COO, COO_DENSE)):
            for dtype in ("float32", "float64", "float16", "bfloat16", "int8"):
                with self.subTest(parts=sorted(parts), dtype=dtype):
                    if dtype == "int8":
                        parts = dict(parts, values=[1, -2, 3, 8])
                        dense = [[int(x) for x in row] for row in dense]
                    made = self.make(parts, dtype)
                    self.assertEqual(made.tolist(), dense)
                    self.assertEqual(made.todense().tobytes(), tensor(dense, dtype).tobytes())
                    self.assertEqual(made[2].tolist(), dense[2])
                    self.assertFalse(made.zero_copy)
                    self.assertIs(tensor(dense).components, None)

    def test_saved_and_loaded(self):
        for parts, dense in ((CSR, CSR_DENSE), (COO, COO_DENSE)):
            for options in ({}, {"data_endianness": "big"}, {"checksum": "crc32c"},
                            {"checksum": "sha256"}, {"encoding": "zstd"}):
                if "encoding" in options and not ZSTD:
                    continue
                with self.subTest(parts=sorted(parts), options=options):
                    data = dumps({"d": [1.0], "s": self.make(parts), "e": tensor([7], "uint8")},
                                 format="ztensor", **options)
                    file = load(data)
                    item = file["s"]
                    self.assertEqual(item.tolist(), dense)
                    self.assertEqual(item.attrs["sparse_format"],
                                     "coo" if "coords" in parts else "csr")
                    for key, wanted in parts.items():
                        self.assertEqual(item.components[key].tolist(), wanted)
                    self.assertEqual(dumps(file, format="ztensor"), data)
                    self.assertTrue(tensorfmt.verify(data), str(tensorfmt.verify(data)))
                    at = 0
                    for field in tensorfmt.explain(data):
                        self.assertEqual(field.offset, at)
                        at += field.nbytes
                    self.assertEqual(at, len(data))

    def test_rows_are_sorted_when_written(self):
        made = self.make(dict(CSR, indices=[2, 4, 0, 3]))
        again = load(dumps({"s": made}, format="ztensor"))["s"]
        self.assertEqual(again.tolist(), made.tolist())
        self.assertEqual(again.components["indices"].tolist(), [2, 0, 3, 4])
        self.assertEqual(again.components["values"].tolist(), [1.5, 3.25, 8.0, -2.0])

    def test_bad_components(self):
        for name, shape, parts, words in SPARSE_ERRORS:
            with self.subTest(name=name):
                error = error_of(ValueError, tensor, shape=shape, components=parts)
                self.assertIn(words, str(error))

    def test_bad_components_in_a_file(self):
        for name, shape, parts, _ in SPARSE_ERRORS:
            with self.subTest(name=name):
                values = b"".join([struct.pack("<f", x) for x in parts["values"]])
                inline = dict((key, sum(value, []) if isinstance(value[0], list) else value)
                              for key, value in parts.items() if key != "values")
                data = make_entry(values, dtype="float32", layout="sparse", shape=list(shape),
                                  sparse_format="coo" if "coords" in parts else "csr", **inline)
                item = load(data)["s"]
                error_of(FormatError, item.tobytes)
                self.assertFalse(tensorfmt.verify(data))

    def test_a_rotten_component_is_found_and_not_copied(self):
        data = bytearray(dumps({"s": self.make(CSR)}, format="ztensor", checksum="crc32c"))
        data[load(data)["s"].components["indices"].offset] ^= 1
        self.assertFalse(tensorfmt.verify(data))
        error_of(FormatError, dumps, load(data), format="ztensor")

    def test_layouts_of_the_real_library(self):
        values = [struct.pack("<f", x) for x in CSR["values"]]
        blob = struct.pack("<4Q4Q", *(CSR["indptr"] + CSR["indices"])) + b"".join(values)
        swapped = b"".join([blob[i:i + 4][::-1] if CPYTHON else bytes(reversed(blob[i:i + 4]))
                            for i in range(0, len(blob), 4)])
        for data, fields in ((blob, {}), (swapped, {"data_endianness": "big"})):
            item = load(make_entry(data, dtype="float32", layout="sparsecsr", shape=[3, 5],
                                   **fields))["s"]
            self.assertEqual(item.tolist(), CSR_DENSE)
            self.assertEqual(item.components["indptr"].tolist(), CSR["indptr"])
            self.assertEqual(load(dumps({"s": item}, format="ztensor"))["s"].tolist(), CSR_DENSE)
        blob = b"".join([struct.pack("<2Q", row, column) + value for row, column, value in zip(
            COO["coords"][0], COO["coords"][1], values)])
        item = load(make_entry(blob, dtype="float32", layout="sparsecoo", shape=[3, 5]))["s"]
        self.assertEqual(item.tolist(), COO_DENSE)
        self.assertEqual(item.components["coords"].tolist(), COO["coords"])
        short = load(make_entry(blob[:-1], dtype="float32", layout="sparsecoo", shape=[3, 5]))["s"]
        error_of(FormatError, short.tobytes)

    def test_a_huge_dense_form_is_refused(self):
        made = self.make({"values": [1.0], "coords": [[1 << 20], [5]]}, "float64",
                         (1 << 30, 1 << 30))
        error_of(Unsupported, made.tobytes)
        again = load(dumps({"s": made}, format="ztensor"))["s"]
        self.assertEqual(again.components["coords"].tolist(), [[1 << 20], [5]])

    @full
    def test_convert_wants_to_be_asked(self):
        data = dumps({"s": self.make(CSR)}, format="ztensor")
        error = error_of(ValueError, tensorfmt.convert, data, io.BytesIO(), format="mag")
        self.assertIn("dense", str(error))
        out = io.BytesIO()
        summary = tensorfmt.convert(data, out, format="mag", dense=True)
        self.assertEqual(load(out.getvalue())["s"].tolist(), CSR_DENSE)
        self.assertIn("sparse -> dense", str(summary))
        error = error_of(ValueError, dumps, load(data), format="burnpack")
        self.assertIn("todense", str(error))

    @full
    def test_pickling(self):
        import pickle
        for parts, dense in ((CSR, CSR_DENSE), (COO, COO_DENSE)):
            again = pickle.loads(pickle.dumps(load(dumps(
                {"s": self.make(parts)}, format="ztensor"))["s"]))
            self.assertEqual(again.tolist(), dense)
            self.assertEqual(again.components["values"].tolist(), parts["values"])


# From the table of worked examples of burn-store 0.21.0: name, shape, scheme, bytes, values,
# scales, dequantized (None: the block has two meanings).
def scheme(value, param, store, level):
    block = {"Block": {"storage": list(level) + [1] * (5 - len(level)), "len": len(level)}}
    return {"QFloat": {"value": value, "param": param, "store": store,
                       "level": block if level else "Tensor", "mode": "Symmetric"}}


U32 = {"PackedU32": 0}
QUANTIZED = (
    ("q8f_packed_u32", [4], scheme("Q8F", "F32", U32, ()), "8002fd7f 0000003f",
     [-128, 2, -3, 127], [0.5], [-64.0, 1.0, -1.5, 63.5]),
    ("q8s_block4", [2, 4], scheme("Q8S", "F32", "Native", (4,)),
     "01020304fffefdfc 0000803e00000040", [1, 2, 3, 4, -1, -2, -3, -4], [0.25, 2.0],
     [0.25, 0.5, 0.75, 1.0, -2.0, -4.0, -6.0, -8.0]),
    ("q4s_packed_block8", [2, 8], scheme("Q4S", "F32", U32, (8,)),
     "10325476efcdab89 0000803f0000003f",
     [0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4, -5, -6, -7, -8], [1.0, 0.5],
     [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -3.5, -4.0]),
    ("q4f_packed", [8], scheme("Q4F", "F32", U32, ()), "67452301 0000003e",
     [7, 6, 5, 4, 3, 2, 1, 0], [0.125], [0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0]),
    ("q2s_packed", [16], scheme("Q2S", "F32", U32, ()), "01721be4 00004040",
     [1, 0, 0, 0, -2, 0, -1, 1, -1, -2, 1, 0, 0, 1, -2, -1], [3.0],
     [3.0, 0.0, 0.0, 0.0, -6.0, 0.0, -3.0, 3.0, -3.0, -6.0, 3.0, 0.0, 0.0, 3.0, -6.0, -3.0]),
    ("q2f_packed_f16scale", [16], scheme("Q2F", "F16", U32, ()), "1b1b1b1b 003a",
     [-1, -2, 1, 0] * 4, [0.75], [-0.75, -1.5, 0.75, 0.0] * 4),
    ("e4m3_native", [4], scheme("E4M3", "F32", "Native", ()), "38b87e00 0000803f",
     [1.0, -1.0, 448.0, 0.0], [1.0], [1.0, -1.0, 448.0, 0.0]),
    ("e5m2_bf16scale", [4], scheme("E5M2", "BF16", "Native", ()), "3cbc7b00 803f",
     [1.0, -1.0, 57344.0, 0.0], [1.0], [1.0, -1.0, 57344.0, 0.0]),
    ("e2m1_block_ue8m0", [2, 4], scheme("E2M1", "UE8M0", {"PackedNative": 0}, (4,)),
     "21436587 7f80", [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0], [1.0, 2.0],
     [0.5, 1.0, 1.5, 2.0, 6.0, 8.0, 12.0, -0.0]),
    ("q8s_padded", [3], scheme("Q8S", "F32", "Native", ()), "0102ff00 00000040",
     [1, 2, -1], [2.0], [2.0, 4.0, -2.0]),
    ("q8s_block2d", [2, 2], scheme("Q8S", "F32", "Native", (2, 2)), "01020304 0000803f",
     [1, 2, 3, 4], [1.0], None),
)


def make_burnpack(rows):
    """Return a Burnpack file of (name, shape, dtype as in the CBOR, bytes)."""
    entries, data = {}, b""
    for name, shape, code, raw in rows:
        data += bytes(-len(data) % 256)
        entries[name] = {"dtype": code, "shape": shape,
                         "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return burnpack({"tensors": entries}, data)


def dequantize_alone(code, shape, raw):
    """Return the float32 values of a scheme, written anew from its description."""
    facts = code["QFloat"]
    bits = {"8": 8, "4": 4, "2": 2}[facts["value"][1]]
    size = 1
    for n in shape:
        size *= n
    stored = int.from_bytes(bytes(raw), "little")
    numbers = []
    for i in range(size):
        number = stored >> i * bits & (1 << bits) - 1
        numbers.append(number - (1 << bits) if number >> bits - 1 else number)
    words = -(-size * bits // 32) * 4 if facts["store"] == U32 else -(-size * bits // 8)
    words += -words % 4
    run = size if facts["level"] == "Tensor" else facts["level"]["Block"]["storage"][0]
    scales = struct.unpack("<%df" % (size // run), bytes(raw[words:]))
    return [struct.unpack("<f", struct.pack("<f", number * scales[i // run]))[0]
            for i, number in enumerate(numbers)]


@whole
class QuantizedTest(TestCase):
    def test_worked_examples(self):
        data = make_burnpack([(row[0], row[1], row[2], unhex(row[3])) for row in QUANTIZED])
        file = load(data)
        for name, shape, code, raw, values, scales, result in QUANTIZED:
            with self.subTest(name=name):
                item = file[name]
                self.assertEqual((item.dtype, item.shape), ("qfloat", tuple(shape)))
                self.assertEqual(item.tobytes(), unhex(raw))
                self.assertEqual(item.scheme["value"], code["QFloat"]["value"])
                self.assertSame([float(x) for x in item.values.flat], [float(x) for x in values])
                self.assertEqual(list(item.scales.flat), scales)
                self.assertEqual(item.values.shape, item.shape)
                if result is None:
                    self.assertIn("two meanings", str(error_of(Unsupported, item.dequantize)))
                else:
                    self.assertSame(list(item.dequantize().flat), result)
        self.assertEqual(sorted(load(dumps(file, format="burnpack"))), sorted(file))
        self.assertTrue(tensorfmt.verify(data))

    def test_random_schemes_against_another_reader(self):
        seed = 0
        for value in ("Q8S", "Q8F", "Q4S", "Q4F", "Q2S", "Q2F"):
            for shape, level in (([16], ()), ([3, 8], (8,)), ([2, 2, 16], (4,)), ([5], ())):
                seed += 1
                bits = int(value[1])
                size = 1
                for n in shape:
                    size *= n
                nbytes = -(-size * bits // 32) * 4
                run = level[0] if level else size
                raw = make_bytes(nbytes, seed) + b"".join(
                    [struct.pack("<f", 0.3 * (i + seed)) for i in range(size // run)])
                code = scheme(value, "F32", U32, level)
                with self.subTest(code=code, shape=shape):
                    item = load(make_burnpack([("q", shape, code, raw)]))["q"]
                    self.assertEqual(list(item.dequantize().flat),
                                     dequantize_alone(code, shape, raw))

    def test_schemes_unknown_here_stay_as_they_are(self):
        known = scheme("Q8S", "F32", "Native", ())["QFloat"]
        for change in ({"value": "Q3S"}, {"value": ["Q8S"]}, {"level": {"BlockTensor": {}}},
                       {"param": None}, {"mode": "Other"}, {"more": 1}, {"store": {"X": 0}},
                       {"level": {"Block": {"storage": [0], "len": 1}}},
                       {"level": {"Block": {"storage": "4", "len": 1}}}):
            with self.subTest(change=change):
                code = {"QFloat": dict(known, **change)}
                data = make_burnpack([("q", [4], code, unhex("01020304 0000803f"))])
                item = load(data)["q"]
                error_of(Unsupported, item.dequantize)
                self.assertEqual(item.tobytes(), unhex("01020304 0000803f"))
                if CPYTHON:
                    self.assertEqual(dumps(load(data), format="burnpack"), data)

    def test_a_length_that_does_not_fit_stays_opaque(self):
        item = load(make_burnpack([("q", [4], QUANTIZED[0][2], unhex("0102030405"))]))["q"]
        self.assertIn("needs 8", str(error_of(Unsupported, item.dequantize)))

    @full
    def test_convert_wants_to_be_asked(self):
        row = QUANTIZED[0]
        data = make_burnpack([(row[0], row[1], row[2], unhex(row[3]))])
        error_of(ValueError, tensorfmt.convert, data, io.BytesIO(), format="mag")
        out = io.BytesIO()
        summary = tensorfmt.convert(data, out, format="mag", cast="float32")
        self.assertEqual(load(out.getvalue())[row[0]].tolist(), row[6])
        self.assertEqual(summary.cast, [(row[0], "qfloat", "float32", False)])

    @full
    def test_pickling(self):
        import pickle
        row = QUANTIZED[1]
        item = load(make_burnpack([(row[0], row[1], row[2], unhex(row[3]))]))[row[0]]
        again = pickle.loads(pickle.dumps(item))
        self.assertEqual(list(again.dequantize().flat), row[6])

    def test_other_tensors_are_not_quantized(self):
        item = tensor([1.0])
        self.assertIs(item.scheme, None)
        error_of(Unsupported, item.dequantize)


# -- [14] reports ------------------------------------------------------------------------------


@full
class ReportTest(TestCase):
    def rows(self, data, **options):
        return [(row[0], row[1]) for row in tensorfmt.verify(data, **options).rows]

    def test_notes_are_no_failures(self):
        shared = load(dumps({"a": [1.0, 2.0], "b": [3.0, 4.0]}, format="burnpack"))
        cases = (
            ("trailing bytes", dumps(shared, format="burnpack") + b"x", "padding"),
            ("padding", dumps({"a": [1.0]}, format="ztensor").replace(bytes(56), b"x" * 56),
             "padding"),
            ("not shortest", dumps({}, format="ztensor")[:8] + b"\x98\x00"
             + struct.pack("<Q", 2), "canonical"),
            ("upstream", dumps({"a\0": [1.0]}, format="ztensor"), "upstream"),
        )
        for name, data, check in cases:
            with self.subTest(name=name):
                report = tensorfmt.verify(data)
                self.assertTrue(report, str(report))
                self.assertIn(("note", check), self.rows(data))

    def test_overlap_is_noted_once_and_twins_are_not(self):
        def file(*ranges):
            entries = dict(("t%d" % i, {"dtype": "U8", "shape": [end - start],
                                        "data_offsets": [start, end]})
                           for i, (start, end) in enumerate(ranges))
            meta = tensorfmt.cbor_dumps({"tensors": entries})
            head = b"NRUB" + struct.pack("<HI", 1, len(meta)) + meta
            return head + bytes(-len(head) % 256) + bytes(1024)
        self.assertFalse(("note", "bounds") in self.rows(file((0, 8), (0, 8))))
        self.assertEqual(self.rows(file((0, 8), (4, 12))).count(("note", "bounds")), 1)

    def test_what_cannot_be_checked_is_said(self):
        data = dumps({"a": tensor([1.0], "float32")}, format="mag")
        self.assertIn(("-", "checksums"), self.rows(data))
        self.assertIn(("ok", "canonical"), self.rows(data))

    def test_bytes_behind_a_primitiv_file_fail(self):
        data = dumps({"a": tensor([1.0], "float32")}, format="primitiv")
        report = tensorfmt.verify(data + b"\0\0")
        self.assertFalse(report)
        self.assertEqual(report.errors[0].offset, len(data))
        self.assertTrue(load(data + b"\0\0"))
        error_of(FormatError, load, data + b"\0\0", verify=True)

    def test_wire_shows_every_token_of_the_index(self):
        data = dumps({"a": tensor([1.0], "float32")}, format="ztensor")
        tokens = [(field.name, field.value) for field in tensorfmt.explain(data, wire=True)]
        for token in (("array(1)", None), ("map(*)", None), ("text(4)", "name"),
                      ("text(1)", "a"), ("unsigned", 64), ("break", None)):
            self.assertIn(token, tokens)
        chunked = unhex("9f 7f 6161 6162 ff ff")
        index = tensorfmt.Trace(None, True)
        tensorfmt.cbor_read(chunked, token=index.cbor(0, "index"))
        self.assertEqual([(f.offset, f.nbytes, f.name) for f in tensorfmt.sorted_fields(
            index.fields)], [(0, 1, "array(*)"), (1, 1, "text(*)"), (2, 2, "text(1)"),
                             (4, 2, "text(1)"), (6, 1, "break"), (7, 1, "break")])

    def test_fields_know_their_tensor(self):
        for name in FORMATS:
            data = dumps({"a": tensor([1.0], "float32"), "b": tensor([2.0], "float32")},
                         format=name)
            owners = set([field.tensor for field in tensorfmt.explain(data)])
            self.assertEqual(owners, set([None, "a", "b"]), name)


@full
class ToolTest(TestCase):
    def setUp(self):
        import tempfile
        self.folder = tempfile.mkdtemp()
        self.a = os.path.join(self.folder, "a.zt")
        self.b = os.path.join(self.folder, "b.mag")
        both = {"w": tensor([1.0, 2.0], "float32"), "v": tensor([1, 2], "int32")}
        tensorfmt.save(self.a, both)
        tensorfmt.save(self.b, both)

    def tearDown(self):
        import shutil
        shutil.rmtree(self.folder)

    def run_main(self, *args):
        out, keep = io.StringIO(), (sys.stdout, sys.stderr)
        sys.stdout = sys.stderr = out
        try:
            code = tensorfmt.main(list(args))
        finally:
            sys.stdout, sys.stderr = keep
        return code, out.getvalue()

    def test_diff(self):
        self.assertEqual(self.run_main("diff", self.a, self.b)[0], 0)
        changed = {"w": tensor([1.0, 2.5], "float32"), "v": tensor([1, 2], "int64"),
                   "x": tensor(1, "int32")}
        tensorfmt.save(self.a, changed)
        code, text = self.run_main("diff", self.a, self.b)
        self.assertEqual(code, 1)
        for line in ("~ w          1 value changed, by 0.5 at most",
                     "~ v          dtype int64 -> int32, same values",
                     "- x          int32 []"):
            self.assertIn(line, text)
        tensorfmt.save(self.b, {"w": tensor([[1.0, 2.5]], "float32")}, metadata={"n": 1})
        text = self.run_main("diff", self.a, self.b)[1]
        self.assertIn("shape [2] -> [1, 2]", text)
        self.assertIn("+ metadata n: 1", text)

    def test_diff_of_nan_and_zeros(self):
        tensorfmt.save(self.a, {"w": tensor([NAN, 0.0], "float32")})
        tensorfmt.save(self.b, {"w": tensor([NAN, -0.0], "float32")})
        code, text = self.run_main("diff", self.a, self.b)
        self.assertEqual(code, 1)
        self.assertIn("other bits", text)

    def test_get_stats(self):
        tensorfmt.save(self.a, {"w": tensor([1.0, NAN, INF, 4.0], "float32")})
        code, text = self.run_main("get", self.a, "w", "--stats")
        self.assertEqual((code, text), (0, "dtype float32, shape [4], 4 elements\n"
                                           "min 1.0, max 4.0, mean 2.5, 1 NaN, 1 infinite\n"))

    def test_explain_as_json_is_what_the_function_gives(self):
        import json
        code, text = self.run_main("explain", self.a, "--json")
        self.assertEqual(code, 0)
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([row[:3] for row in rows],
                         [list(field)[:3] for field in tensorfmt.explain(self.a)])

    def test_explain_of_one_tensor_and_of_a_broken_file(self):
        text = self.run_main("explain", self.a, "--tensor", "w")[1]
        self.assertIn("data w", text)
        self.assertFalse("data v" in text)
        with open(self.a, "r+b") as stream:
            stream.truncate(os.stat(self.a).st_size - 1)
        code, text = self.run_main("explain", self.a)
        self.assertEqual(code, 1)
        self.assertIn("<- here", text)
        self.assertIn("index_size", text.splitlines()[-1])

    def test_page(self):
        page = os.path.join(self.folder, "page.html")
        name = "<script>alert(1)</script>"
        tensorfmt.save(self.a, [(name, [1.0])] + [("t%d" % i, [float(i)]) for i in range(1000)])
        code, text = self.run_main("explain", self.a, "--html", page)
        self.assertEqual(code, 0, text)
        self.assertIn("left out", text)
        with open(page) as stream:
            html = stream.read()
        self.assertTrue(len(html) < 2000000)
        self.assertFalse(name in html)
        self.assertIn("&lt;script&gt;alert(1)", html)
        self.assertEqual(html.count("<tr data-f="), 2000)
        self.assertIn("fields in the middle are left out", html)

    def test_verify_as_json(self):
        import json
        code, text = self.run_main("verify", self.a, self.b, "--json")
        found = [json.loads(line) for line in text.splitlines()]
        self.assertEqual((code, [row["valid"] for row in found]), (0, [True, True]))


# -- [15] peers ----------------------------------------------------------------------------------


def random_value(draw, depth=0):
    """Return a random value that CBOR and MessagePack both have."""
    kind = draw.randrange(8 if depth < 4 else 6)
    if kind == 0:
        return draw.choice([None, True, False])
    if kind == 1:
        return draw.choice([-1, 1]) * draw.getrandbits(draw.randrange(64)) // 2
    if kind == 2:
        return struct.unpack("<f", struct.pack("<f", draw.uniform(-1e9, 1e9)))[0]
    if kind == 3:
        return draw.choice([draw.random(), 1e300, INF, -0.0, 0.1])
    if kind == 4:
        return "".join([chr(draw.choice([97, 0x20AC, 0x1F642])) for _ in range(draw.randrange(40))])
    if kind == 5:
        return bytes(bytearray([draw.randrange(256) for _ in range(draw.randrange(300))]))
    if kind == 6:
        return [random_value(draw, depth + 1) for _ in range(draw.randrange(20))]
    return dict([("k%d" % i, random_value(draw, depth + 1)) for i in range(draw.randrange(20))])


@full
class PeerTest(TestCase):
    def peer(self, name):
        """Return another library; without it skip, or fail where peers are promised."""
        from importlib import import_module
        try:
            return import_module(name)
        except ImportError:
            if os.environ.get("TENSORFMT_PEERS"):
                raise
        return self.skipTest("no " + name)

    def test_cbor2(self):
        from random import Random
        cbor2, draw = self.peer("cbor2"), Random(1)
        for text, value in CBOR:
            self.assertEqual(tohex(cbor2.dumps(value, canonical=isinstance(value, float))), text)
        for _ in range(200):
            value = random_value(draw)
            self.assertSame(tensorfmt.cbor_loads(cbor2.dumps(value)), value)
            for options in ({}, {"indefinite": True}):
                self.assertSame(cbor2.loads(tensorfmt.cbor_dumps(value, **options)), value)

    def test_msgpack(self):
        from random import Random
        msgpack, draw = self.peer("msgpack"), Random(2)
        for text, value in MSGPACK:
            self.assertEqual(tohex(msgpack.packb(value)), text[:])
        for _ in range(200):
            value = random_value(draw)
            data = msgpack.packb(value)
            self.assertEqual(tensorfmt.msgpack_dumps(value), data)
            self.assertSame(tensorfmt.msgpack_loads(data), value)
            self.assertSame(msgpack.unpackb(tensorfmt.msgpack_dumps(value)), value)

    def test_flatbuffers(self):
        self.peer("flatbuffers")
        from flatbuffers import number_types
        from flatbuffers.builder import Builder
        from flatbuffers.table import Table
        data = golden("sorted_model.tbs")  # what FlatBuilder writes, too: see AGAIN
        start = len(data) - 8 - struct.unpack_from("<I", data, len(data) - 8)[0]
        buf = bytearray(data[start:-8])
        root = Table(buf, struct.unpack_from("<I", buf)[0])
        self.assertEqual(root.String(root.Pos + root.Offset(4)), b"1.0.0")
        self.assertEqual(root.String(root.Pos + root.Offset(6)).decode(), "r\u00e9sum\u00e9-1")
        names = []
        for i in range(root.VectorLen(root.Offset(8))):
            entry = Table(buf, root.Indirect(root.Vector(root.Offset(8)) + 4 * i))
            names.append(entry.String(entry.Pos + entry.Offset(6)).decode())
            number = entry.Get(number_types.Uint64Flags, entry.Pos + entry.Offset(4))
            self.assertEqual(number, load(data)[names[-1]].attrs["id"])
        self.assertEqual(names, list(load(data)))
        builder = Builder(0)
        text = builder.CreateString("h\u00e9llo")
        builder.StartVector(8, 3, 8)
        for value in (3, 2, 1):
            builder.PrependUint64(value)
        vector = builder.EndVector()
        builder.StartObject(4)
        builder.PrependUOffsetTRelativeSlot(0, text, 0)
        builder.PrependUOffsetTRelativeSlot(1, vector, 0)
        builder.PrependFloat64Slot(3, 2.5, 0.0)
        builder.Finish(builder.EndObject())
        table = tensorfmt.FlatTable(builder.Output())
        self.assertEqual((table.string(0), table.scalars(1, "Q")), ("h\u00e9llo", [1, 2, 3]))
        self.assertEqual((table.slots, table.scalar(3, "d")), ([0, 1, 3], 2.5))

    def test_zstandard(self):
        zstandard = self.peer("zstandard")
        values, sized = bytes(range(64)) * 50, zstandard.ZstdCompressor()
        data = sized.compress(values)
        self.assertEqual(zstandard.get_frame_parameters(bytes(load(dumps(
            {"w": tensor(values, "float32")}, format="ztensor", encoding="zstd"))["w"].raw)
        ).content_size, len(values))
        stream = sized.compressobj()
        unsized = stream.compress(values) + stream.flush()
        half = sized.compress(values[:100]) + sized.compress(values[100:])
        skippable = unhex("502a4d1803000000616263")
        checked = zstandard.ZstdCompressor(write_checksum=True).compress(values)
        for name, blob, fine in (
                ("sized", data, True), ("unsized", unsized, True), ("two frames", half, True),
                ("skippable first", skippable + data, True), ("checked", checked, True),
                ("skippable last", data + skippable, True), ("cut", data[:-3], False),
                ("rubbish behind", data + b"rubbish", False), ("longer", data + data, False),
                ("shorter", sized.compress(values[:-4]), False), ("rubbish", b"rubbish", False),
                ("bomb", sized.compress(bytes(1 << 24)), False),
                ("changed", checked[:-9] + b"\0" + checked[-8:], False)):
            head = b"ZTEN0001" + bytes(56) + blob
            index = tensorfmt.cbor_dumps([{
                "name": "w", "offset": 64, "size": len(blob), "dtype": "uint8",
                "shape": [len(values)], "encoding": "zstd"}])
            file = head + index + struct.pack("<Q", len(index))
            with self.subTest(blob=name):
                self.assertEqual(bool(tensorfmt.verify(file)), fine)
                if fine:
                    self.assertEqual(load(file)["w"].tobytes(), values)
                    self.assertEqual(load(file)["w"][5:7].tolist(), [5, 6])
                else:
                    self.assertEqual(error_of(FormatError, load(file)["w"].tobytes).tensor, "w")

    def test_numpy_sees_every_tensor(self):
        numpy = self.peer("numpy")
        for kind, options in STORED:
            for dtype in HELD[kind]:
                for shape in ((), (3,), (2, 3), (4, 1, 2), (0, 3)):
                    if kind == "primitiv" and 0 in shape:
                        continue
                    data = make_bytes(tensorfmt.ITEMSIZE[dtype] * tensorfmt.count_elements(shape))
                    file = load(dumps({"w": tensor(data, dtype, shape)}, format=kind, **options))
                    with self.subTest(format=kind, dtype=dtype, shape=shape, **options):
                        self.check_array(numpy, numpy.asarray(file["w"]), file["w"], data)

    def check_array(self, numpy, array, item, data):
        self.assertEqual((array.shape, array.flags.writeable), (item.shape, False))
        bits = "u%d" % item.itemsize
        if item.dtype == "bfloat16":
            self.assertEqual(array.dtype.str, "|V2")
        else:
            self.assertEqual(array.dtype.newbyteorder("=").name, item.dtype)
        little = array.view(bits if array.dtype.kind == "V" else array.dtype)
        if array.dtype.byteorder == ">" or (sys.byteorder == "big" and little.dtype.itemsize > 1):
            little = little.byteswap() if array.dtype.byteorder != "<" else little
        self.assertEqual(numpy.ascontiguousarray(little).tobytes(), data)
        if item._encoding == "raw" and item.size and item.dtype != "bfloat16":
            self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))

    def test_numpy_indexing(self):
        from random import Random
        numpy, draw = self.peer("numpy"), Random(6)
        for _ in range(40):
            shape = tuple([draw.choice([1, 2, 3, 5, 7]) for _ in range(draw.randrange(1, 5))])
            array = numpy.arange(tensorfmt.count_elements(shape), dtype="f4").reshape(shape)
            for item in TensorTest.kinds_of_storage(self, array.astype("<f4").tobytes(), shape):
                for _ in range(5):
                    key, _ = random_keys(draw, shape)
                    part = item[key]
                    with self.subTest(shape=shape, key=str(key), of=item.format):
                        self.assertEqual(numpy.asarray(part).tolist(), array[key].tolist())
                        if isinstance(part, tensorfmt.Tensor):
                            self.assertEqual(numpy.asarray(part).shape, array[key].shape)
                            if item._source.zero_copy and item._encoding == "raw" and part.size:
                                self.assertTrue(numpy.shares_memory(
                                    numpy.asarray(part), numpy.frombuffer(item.raw, "u1")))

    def test_numpy_arrays_become_tensors(self):
        numpy = self.peer("numpy")
        for code in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"):
            for order in "<>":
                base = numpy.arange(24).reshape(2, 3, 4).astype(code)
                for array in (base, base.T, base[:, ::-1, ::2], base[0, 0, 0:1], base[1, 2, 3],
                              numpy.asfortranarray(base), base[:0], numpy.array(base[1, 1, 1])):
                    given = numpy.asarray(array).astype(numpy.dtype(code).newbyteorder(order))
                    item = tensor(given)
                    with self.subTest(code=order + code, shape=array.shape):
                        self.assertEqual((item.dtype, item.shape), (array.dtype.name, array.shape))
                        self.assertEqual(item.tobytes(), numpy.ascontiguousarray(array).astype(
                            numpy.dtype(code).newbyteorder("<")).tobytes())
                        self.assertEqual(item.tolist(), array.tolist())
        error_of(TypeError, tensor, numpy.array(["text"]))
        error_of(TypeError, tensor, numpy.array([1j]))
        file = load(dumps({"w": numpy.eye(2, dtype="f2"), "s": numpy.float32(0.5)}, format="mag"))
        self.assertEqual((file["w"].tolist(), file["s"].shape), ([[1.0, 0.0], [0.0, 1.0]], ()))
        self.assertEqual(tensor([numpy.float32(0.5), numpy.int64(2)]).tolist(), [0.5, 2.0])

    def test_numpy_rounds_the_same(self):
        numpy = self.peer("numpy")
        doubles = numpy.frombuffer(make_bytes(8 * 4000, 9), "<f8")
        hard = numpy.array([float(x) for x in HARD])
        with numpy.errstate(all="ignore"):
            for values in (doubles[numpy.isfinite(doubles)], hard, doubles * 0 + 1.5):
                values = values[numpy.isfinite(values)]
                for dtype in ("float32", "float16"):
                    got = tensor(values.astype("<f8").tobytes(), "float64").astype(dtype).tobytes()
                    self.assertEqual(got, values.astype(dtype).astype("<f%d" % (
                        len(got) // len(values))).tobytes())
            whole = numpy.frombuffer(make_bytes(8 * 4000, 10), "<i8")
            for dtype, code in (("float64", "<f8"), ("float32", "<f4")):
                self.assertEqual(tensor(whole.tobytes(), "int64").astype(dtype).tobytes(),
                                 whole.astype(code).tobytes())

    def test_scipy_agrees_on_sparse_tensors(self):
        numpy, sparse = self.peer("numpy"), self.peer("scipy.sparse")
        random = numpy.random.RandomState(5)
        for _ in range(20):
            rows, columns = random.randint(1, 30, 2)
            matrix = sparse.random(rows, columns, 0.2, "csr", "float32", random)
            parts = {"values": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices}
            item = load(dumps({"m": tensor(shape=(int(rows), int(columns)), components=parts)},
                              format="ztensor"))["m"]
            self.assertEqual(item.tobytes(), matrix.toarray().tobytes())
            again = sparse.csr_matrix((
                numpy.asarray(item.components["values"]),
                numpy.asarray(item.components["indices"]).astype("int64"),
                numpy.asarray(item.components["indptr"]).astype("int64")), shape=item.shape)
            self.assertEqual((again != matrix).nnz, 0)
            pairs = matrix.tocoo()
            item = tensor(shape=(int(rows), int(columns)), components={
                "values": pairs.data, "coords": numpy.stack([pairs.row, pairs.col])})
            self.assertEqual(item.tobytes(), matrix.toarray().tobytes())

    def test_numpy_sees_swapped_halves_backwards(self):
        numpy = self.peer("numpy")
        data = dumps({"w": tensor([[1, 2, 3], [4, 5, 6]], "bfloat16")}, format="ztensor",
                     data_endianness="big")
        for item in (load(data)["w"], load(data)["w"][::-1], load(data)["w"][:, ::-2]):
            bits = numpy.asarray(item).view("u2")
            self.assertEqual([x << 16 for x in bits.ravel().tolist()], [
                struct.unpack("<I", struct.pack("<f", x))[0] for x in item.flat])

    def test_ml_dtypes_agrees_on_small_floats(self):
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        for kind, dtype, count in (("E4M3", "float8_e4m3fn", 256), ("E5M2", "float8_e5m2", 256),
                                   ("E8M0", "float8_e8m0fnu", 256), ("E2M1", "float4_e2m1fn", 16)):
            bits = numpy.arange(count, dtype="u1").view(getattr(ml_dtypes, dtype))
            wanted = [float(x) for x in bits.astype("f8")]
            self.assertSame([tensorfmt.minifloat(kind, i) for i in range(count)], wanted, kind)

    def test_ml_dtypes(self):
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        bits = numpy.arange(1 << 16, dtype="<u2")
        known = bits.view(ml_dtypes.bfloat16)
        item = tensor(bits.tobytes(), "bfloat16")
        wide = known.astype("<f4")
        numbers_only = ~numpy.isnan(wide)
        self.assertEqual(item.astype("float32").tobytes(), (bits.astype("<u4") << 16).tobytes())
        with numpy.errstate(all="ignore"):
            floats = numpy.concatenate([wide[numbers_only], numpy.array(HARD, "f8").astype("<f4")])
            floats = numpy.concatenate([floats, (floats.view("<u4") + 0x8000).view("<f4")])
            floats = floats[~numpy.isnan(floats)]
            self.assertEqual(tensor(floats.tobytes(), "float32").astype("bfloat16").tobytes(),
                             floats.astype(ml_dtypes.bfloat16).tobytes())
        made = tensor(known.reshape(256, 256)[:, ::2])
        self.assertEqual((made.dtype, made.shape), ("bfloat16", (256, 128)))
        self.assertEqual(made.tobytes(), bits.reshape(256, 256)[:, ::2].tobytes())
        back = numpy.asarray(load(dumps({"w": known}, format="burnpack"))["w"])
        self.assertTrue((back.view(ml_dtypes.bfloat16).view("<u2") == bits).all())

    def test_random_tensors_by_hypothesis(self):
        hypothesis = self.peer("hypothesis")
        some = self.peer("hypothesis.strategies")

        @hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=150)
        @hypothesis.given(some.data())
        def check(draw):
            kind, options = draw.draw(some.sampled_from(STORED))
            letters = some.characters(exclude_categories=["Cs"], exclude_characters="\0.:\\")
            names = some.text(letters, min_size=1, max_size=20)
            wanted = {}
            for name in draw.draw(some.lists(names, unique=True, max_size=5)):
                dtype = draw.draw(some.sampled_from(HELD[kind]))
                least = 1 if kind == "primitiv" else 0
                shape = tuple(draw.draw(some.lists(some.integers(least, 4), max_size=5)))
                nbytes = tensorfmt.ITEMSIZE[dtype] * tensorfmt.count_elements(shape)
                wanted[name] = tensor(draw.draw(some.binary(min_size=nbytes, max_size=nbytes)),
                                      dtype, shape)
            data = dumps(wanted, format=kind, **options)
            file = load(io.BytesIO(data), verify=True)
            self.assertEqual(content(file), content(wanted))
            self.assertEqual(gaps(list(tensorfmt.explain(data)), len(data)), [])
        check()

    def test_random_values_by_hypothesis(self):
        hypothesis = self.peer("hypothesis")
        some = self.peer("hypothesis.strategies")
        cbor2, msgpack = self.peer("cbor2"), self.peer("msgpack")
        leaves = (some.none() | some.booleans() | some.floats() | some.binary() | some.text()
                  | some.integers(-(1 << 63), (1 << 64) - 1))
        values = some.recursive(leaves, lambda inner: some.lists(inner) | some.dictionaries(
            some.text(), inner))

        @hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=200)
        @hypothesis.given(values)
        def check(value):
            cbor, packed = tensorfmt.cbor_dumps(value), tensorfmt.msgpack_dumps(value)
            self.assertSame(tensorfmt.cbor_loads(cbor), value)
            self.assertSame(cbor2.loads(cbor), value)
            self.assertSame(tensorfmt.cbor_loads(cbor2.dumps(value)), value)
            self.assertSame(tensorfmt.msgpack_loads(packed), value)
            self.assertEqual(packed, msgpack.packb(value))
        check()


# -- [16] easily wrong ---------------------------------------------------------------------------

# Bytes that are believed too soon, costs that grow with the square of the file, values that are
# lost, or written so that nobody can read them.
BIG = b"\xc2\x59\x07\x08" + b"\xff" * 1800  # a CBOR integer of 4,335 digits


class EasilyWrongTest(TestCase):
    def test_a_cut_text_is_not_one_seen_before(self):
        for cbor in (b"\xa2\x67tensors\xa0\x68metadata\xa1\x61k\x62k",
                     b"\xa2\x67tensors\xa0\x68metadata\xa1\x60\x65"):
            self.assertIn("left", str(error_of(FormatError, load, burnpack(cbor, b""))))
        error_of(FormatError, tensorfmt.cbor_loads, unhex("8261616261"))

    def test_mag_tells_broken_rules_before_what_is_beyond_it(self):
        def build(*rows):
            body = b"".join([struct.pack("<I", len(key)) + key + struct.pack(
                "<6qBQQI", *shape + (0,) * (6 - len(shape)) + (dtype, nbytes, offset, 0))
                for key, shape, dtype, nbytes, offset in rows])
            head = struct.pack("<4sIIIII", b"MAG!", 1, 0, len(rows), 0, 0)
            crc = struct.pack("<I", tensorfmt.crc32(head + body))
            return head[:8] + crc + head[12:] + body + bytes(256)
        beyond = (b"a", (1,), 9, 4, 256)
        self.assertIn("dtype 9", str(error_of(Unsupported, load, build(beyond))))
        for rows in ((beyond, beyond), (beyond, (b"b", (2,), 0, 4, 256)),
                     ((b"a", (1,), 9, 4, 1 << 40),)):
            error_of(FormatError, load, build(*rows))
            if WHOLE:
                self.assertFalse(tensorfmt.verify(build(*rows)))

    @full
    def test_rot_is_found_behind_casts(self):
        made = tensor(shape=(2, 2), components={"values": [1.0], "coords": [[0], [1]]})
        data = bytearray(dumps({"s": made}, format="ztensor", checksum="crc32c"))
        data[load(data)["s"].components["values"].offset + 7] ^= 64
        for options in ({"format": "ztensor", "cast": {"float64": "float32"}},
                        {"format": "burnpack", "dense": True, "cast": {"float64": "float32"}},
                        {"format": "burnpack", "dense": True}):
            error_of(FormatError, tensorfmt.convert, bytes(data), io.BytesIO(), **options)

    @full
    def test_threads_share_a_file(self):
        import tempfile
        import threading
        handle, path = tempfile.mkstemp(suffix=".zt")
        os.close(handle)
        try:
            tensorfmt.save(path, dict(("t%d" % i, [float(i)] * 50) for i in range(20)))
            wrong = []

            def work(file):
                for i in range(20):
                    try:
                        if file["t%d" % i].tolist() != [float(i)] * 50:
                            wrong.append(i)
                    except Exception as error:
                        wrong.append(error)
            for _ in range(20):
                with load(path) as file:
                    threads = [threading.Thread(target=work, args=(file,)) for _ in range(6)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
            self.assertEqual(wrong, [])
        finally:
            os.remove(path)

    @whole
    def test_structure_knows_its_tensor(self):
        for name in FORMATS:
            data = dumps({"a": tensor([1.0], "float32"), "b": tensor([2.0], "float32")},
                         format=name)
            for owner in ("a", "b"):
                fields = [field for field in tensorfmt.explain(data)
                          if field.tensor == owner and field.kind == "structure"]
                self.assertTrue(len(fields) >= 3, "%s: %r" % (name, fields))
            if name == "primitiv":
                owners = [field.tensor for field in tensorfmt.explain(data)
                          if field.name.startswith("params")]
                self.assertEqual(owners.count(None), 0)

    @whole
    def test_a_custom_field_called_values_is_kept(self):
        made = tensor(shape=(2, 2), components={"values": [1.0], "coords": [[0], [1]]},
                      values="mine")
        again = load(dumps({"s": made}, format="ztensor"))["s"]
        self.assertEqual(again.attrs["values"], "mine")

    def test_a_device_with_small_offsets(self):
        class Board(io.BytesIO):
            def seek(self, pos, how=0):
                if pos > 100:
                    raise OverflowError("overflow converting long int to machine word")
                return super().seek(pos, how)
        data = dumps({"a": tensor([1.0], "float32")}, format="tensorbuffers")
        self.assertIn("too large", str(error_of(Unsupported, load, Board(data))))

    def test_huge_integers_are_not_printed(self):
        start = b"\xa1\x67tensors\xa1\x61a"
        rest = b"\x65shape\x80\x6cdata_offsets\x82\x00\x00"
        item = load(burnpack(start + b"\xa3\x65dtype\xa1\x61X" + BIG + rest, b""))["a"]
        self.assertIs(item.dtype, None)
        self.assertIn("128 bits", str(error_of(Unsupported, item.tobytes)))
        for code in (b"\xa2\x61a" + BIG + b"\x61b\x01", b"\x81\xa1\x61a" + BIG,
                     b"\xa1" + BIG + b"\x01"):
            data = burnpack(start + b"\xa3\x65dtype" + code + rest, b"")
            self.assertIn("dtype", str(error_of(FormatError, load, data)))
            if WHOLE:
                self.assertFalse(tensorfmt.verify(data))

    def test_an_encoding_called_sparse_is_not_known(self):
        data = ztensor(encoding="sparse")
        item = load(data)["a"]
        self.assertIn("encoding 'sparse'", error_of(Unsupported, item.tobytes).what)
        again = load(dumps(load(data), format="ztensor"))["a"]
        self.assertEqual((bytes(again.raw), again.attrs["encoding"]), (bytes(item.raw), "sparse"))
        self.assertFalse("todense" in self.refuses(["'a'"], dumps, load(data), format="mag"))
        if WHOLE:
            self.assertTrue(tensorfmt.verify(data))

    def test_map_keys_that_share_a_hash_are_counted(self):
        keys = b"".join([b"\xc2\x4c" + (k * ((1 << 61) - 1)).to_bytes(12, "big") + b"\x00"
                         for k in range(1 << 24, (1 << 24) + 100)])
        cbor = b"\xa2\x67tensors\xa0\x61x\xb8\x64" + keys
        self.assertIn("over 64 bits", str(error_of(FormatError, load, burnpack(cbor, b""))))

    @whole
    def test_names_that_begin_alike_have_their_own_place(self):
        names = ["model.encoder.layers.10.self_attention.query_projection." + end
                 for end in ("weight_matrix", "zeta")]
        good = dumps(dict((name, tensor([1.0], "float32")) for name in names), format="burnpack")
        owners = set([field.tensor for field in tensorfmt.explain(good)])
        self.assertEqual(owners, set([None] + names))
        bad = bytearray(good)
        at = bad.find(b"\x65shape\x81\x01") + 7
        bad[at] = 2
        error = error_of(FormatError, load, bytes(bad))
        self.assertEqual(error.tensor, names[0])
        self.assertTrue(abs(error.offset - at) < 30, error.offset)

    def test_many_dimensions_and_many_empty_lists(self):
        item = tensor([1.0], "float32", [1] * 3000)
        self.assertEqual(item.nbytes, 4)
        self.assertEqual(len(item.strides), 3000)
        empty = tensor([], "float32", [1 << 40, 0])
        self.assertIn("empty lists", str(error_of(ValueError, empty.tolist)))
        self.assertEqual(tensor([], "float32", [2, 0]).tolist(), [[], []])

    @full
    def test_packers_refuse_what_the_readers_would(self):
        deep = []
        for _ in range(200):
            deep = [deep]
        error_of(ValueError, tensorfmt.cbor_dumps, deep)
        error_of(ValueError, tensorfmt.msgpack_dumps, deep)
        error_of(TypeError, tensorfmt.cbor_dumps, {(1, 2): 3})
        item = tensor([1.0], "float32", k=deep[0][0])
        error_of(ValueError, dumps, {"a": item}, format="ztensor")
        from array import array
        wide = memoryview(array("H", [1, 2]))
        self.assertEqual(tensorfmt.cbor_loads(tensorfmt.cbor_dumps(wide)), bytes(wide))
        self.assertEqual(bytes(tensorfmt.msgpack_loads(tensorfmt.msgpack_dumps(wide))),
                         bytes(wide))
        error_of(TypeError, tensorfmt.cbor_loads, 1)

    def test_primitiv_shapes_and_batches_are_checked(self):
        for dims, batch in (([0], 1), ([1] * 9, 1), ([2.0], 1), ([True], 1), ("23", 1), ([None], 1),
                            ([[2]], 1), ([2], 0), ([2], True), ([2], 2.0), ([1 << 32], 1)):
            with self.subTest(dims=dims, batch=batch):
                error_of(ValueError, dumps, {}, format="primitiv", kind="shape", dims=dims,
                         batch=batch)
        for batch in (True, 1.0, 0, "2"):
            item = tensor([[1.0, 2.0]], "float32", batch=batch)
            error_of(ValueError, dumps, {"a": item}, format="primitiv")
        item = tensor([[1.0, 2.0], [3.0, 4.0]], "float32", batch=2)
        error_of(ValueError, dumps, {"a\\:b": item}, format="primitiv")
        error_of(ValueError, dumps, {"a:b": item}, format="primitiv", flat=True)
        stats = dumps({"a": tensor([1.0], "float32"), "a:b": item}, format="primitiv")
        self.assertEqual(dict(load(stats)["a:b"].attrs.items()), {"batch": 2})

    def test_many_statistics_and_long_keys_are_linear(self):
        stat = b"\x91\x00\x01\xc4\x00"
        head = unhex("ce00000000ce00000001ce00000300")
        model = head + b"\x01\x91\xda\xc3\x50" + b"k" * 50000 + stat + b"\xcd\x17\x70" + b"".join(
            [b"\xa4%04d" % i + stat for i in range(6000)])
        self.assertIn("MAX_COPIES", str(error_of(Unsupported, load, model)))
        many = head + b"\x01\x91\xa1k" + stat + b"\xcd\x17\x70" + b"".join(
            [b"\xa4%04d" % i + stat for i in range(6000)])
        self.assertEqual(len(load(many)), 6001)
        if WHOLE:
            self.assertTrue(tensorfmt.verify(many))

    def test_user_facts_are_not_lost_on_a_tensor_of_a_file(self):
        item = load(dumps({"w": tensor([1.0], "float32")}, format="mag"))["w"]
        again = load(dumps({"w": tensor(item, trainable=True)}, format="ztensor"))["w"]
        self.assertEqual(again.attrs["trainable"], True)
        error_of(ValueError, dumps, {"w": tensor(item, trainable=True)}, format="mag")

    @whole
    def test_a_dense_copy_has_no_component_maps(self):
        made = tensor(shape=(2, 2), components={"values": [1.0], "coords": [[0], [1]]})
        item = load(dumps({"s": made}, format="ztensor"))["s"]
        for dense in (item.todense(), item.contiguous(), item.astype("float32")):
            self.assertFalse([key for key in dense.attrs if key in tensorfmt.SPARSE_ATTRS])
            again = load(dumps({"s": dense}, format="ztensor"))["s"]
            self.assertEqual(again.tolist(), [[0.0, 1.0], [0.0, 0.0]])
        out = io.BytesIO()
        tensorfmt.convert(dumps({"s": made}, format="ztensor"), out, format="ztensor",
                          cast={"float64": "float16"})
        again = load(out.getvalue())["s"]
        self.assertEqual((again.dtype, again.components["values"].dtype), ("float16", "float16"))

    @whole
    def test_checksum_texts(self):
        for text, valid in (("crc32c", True), ("", True), ("sha256", True), ("md5:00", True),
                            ("crc32c:", False), ("sha256:00", False)):
            with self.subTest(text=text):
                data = make_entry(bytes(4), dtype="float32", shape=[1], checksum=text)
                report = tensorfmt.verify(data)
                self.assertEqual(bool(report), valid, str(report))
                self.assertIn("checksums", [row[1] for row in report.rows if row[0] in "-FAIL"])

    @whole
    def test_frames_are_whole(self):
        source = tensorfmt.Memory(unhex("28b52ffd 2001 090000 41"))
        tensorfmt.check_frames(source, 0, source.nbytes)
        for text in ("28", "28b52ffd", "28b52ffd 2001 090000", "28b52ffd 2001 090000 41 28",
                     "28b52ffd 2001 080000 41", "502a4d18 04000000 6162", "00000000"):
            source = tensorfmt.Memory(unhex(text))
            error_of(FormatError, tensorfmt.check_frames, source, 0, source.nbytes)

    @full
    def test_bool_casts_and_options_are_checked(self):
        data = dumps({"w": tensor([1.0], "float32")}, format="mag")
        error_of(ValueError, tensorfmt.convert, data, io.BytesIO(), format="mag",
                 cast={"flaot16": "float32"})
        error_of(ValueError, dumps, {"w": [1.0]}, format="ztensor", encoding="zstd", level=99)
        error_of(ValueError, dumps, {}, format="burnpack", scalars={"a": {"Int": 1.5}})
        error_of(ValueError, dumps, {"a": [1.0]}, format="burnpack", tensor_order="a b")
        self.assertEqual(len(load(dumps({"a": [1.0]}, format="burnpack",
                                        tensor_order=iter(["a"])))), 1)

    @full
    def test_a_qfloat_can_be_made_by_hand(self):
        row = QUANTIZED[0]
        made = tensor(unhex(row[3]), "qfloat", row[1], burn_dtype=row[2])
        self.assertEqual(list(made.dequantize().flat), row[6])
        again = load(dumps({"q": made}, format="burnpack"))["q"]
        self.assertEqual(again.tobytes(), unhex(row[3]))

    @full
    def test_pipes_modes_and_chdir(self):
        import pickle
        import stat
        import tempfile
        folder = tempfile.mkdtemp()
        here = os.getcwd()
        try:
            os.chdir(folder)
            tensorfmt.save("a.mag", {"w": tensor([1.0], "float32")})
            file = load("a.mag", mmap=False)
            os.chdir(here)
            again = pickle.loads(pickle.dumps(file))
            self.assertEqual(again["w"].tolist(), [1.0])
            self.assertFalse(again["w"].zero_copy)
            item = pickle.loads(pickle.dumps(file["w"]))
            self.assertEqual(item.tolist(), [1.0])
            for opened in (file, again):
                opened.close()
            if os.path.isdir("/dev/fd") and hasattr(os, "mkfifo"):
                end, target = os.pipe()
                try:
                    tensorfmt.save("/dev/fd/%d" % target, {"w": [1]}, format="ztensor")
                finally:
                    os.close(target)
                with open(end, "rb") as stream:
                    self.assertEqual(load(stream.read())["w"].tolist(), [1])
                path = os.path.join(folder, "b.mag")
                tensorfmt.save(path, {"w": tensor([1.0], "float32")})
                os.chmod(path, 0o600)
                seen = []

                def chunks():
                    name = [n for n in os.listdir(folder) if n.endswith(".tmp")][0]
                    seen.append(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode))
                    yield b"x"
                tensorfmt._write_out(path, chunks())
                self.assertEqual(seen, [0o600])
        finally:
            os.chdir(here)
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            os.rmdir(folder)


# -- [17] benchmark ------------------------------------------------------------------------------


def seconds(call, times=5):
    """Return the median CPU time of a call in this process, garbage collection as it is."""
    from time import process_time
    taken = []
    for _ in range(times):
        start = process_time()
        call()
        taken.append(process_time() - start)
    return sorted(taken)[times // 2]


def row(what, value, unit, note=""):
    print("%-44s %10.2f %-6s %s" % (what, value, unit, note))


def bench():
    """Print timings of this machine: CPU time of this process, but for saving (wall clock)."""
    import gc
    import platform
    from tempfile import TemporaryDirectory
    print("tensorfmt %s, %s %s, %s, medians of 5, gc %s" % (
        tensorfmt.__version__, platform.python_implementation(), platform.python_version(),
        platform.machine(), "on" if gc.isenabled() else "off"))
    bench_import()
    bench_open()
    bench_bulk()
    with TemporaryDirectory() as folder:
        bench_save(folder)


def bench_import():
    from time import perf_counter
    taken = {}
    code = "import sys; sys.path.insert(0, %r); %%s" % HERE
    for what in ("pass", "import tensorfmt"):
        runs = []
        for _ in range(10):
            start = perf_counter()
            python("-I", "-S", "-c", code % what)
            runs.append(perf_counter() - start)
        taken[what] = sorted(runs)[4]
    row("import, more than bare Python (wall)",
        1000 * (taken["import tensorfmt"] - taken["pass"]), "ms")


def bench_open():
    made = dict([("model.layers.%d.weight" % i, tensor(make_bytes(64), "float32", (4, 4)))
                 for i in range(10000)])
    for kind in FORMATS:
        data = dumps(made, format=kind)
        row("open 10,000 tensors: " + kind, 1000 * seconds(lambda data=data: load(data)), "ms")
        row("write 10,000 tensors: " + kind,
            1000 * seconds(lambda kind=kind: dumps(made, format=kind), 3), "ms")
        if kind in ("burnpack", "ztensor"):
            cbor = data[10:10 + struct.unpack_from("<I", data, 6)[0]] if kind == "burnpack" else \
                data[-8 - struct.unpack_from("<Q", data, len(data) - 8)[0]:-8]
            bench_peer("cbor2", "loads", cbor)
        elif kind == "primitiv":
            bench_peer("msgpack", "Unpacker", data)


def bench_peer(name, call, data):
    from importlib import import_module
    try:
        module = import_module(name)
    except ImportError:
        return
    if call == "Unpacker":
        def run():
            unpacker = module.Unpacker(max_buffer_size=len(data), strict_map_key=False)
            unpacker.feed(data)
            return list(unpacker)
    else:
        def run():
            return module.loads(data)
    row("    %s decodes the same bytes" % name, 1000 * seconds(run), "ms")


def bench_bulk():
    size = 64 << 20
    block = bytes(size)
    row("CRC-32C", size / seconds(lambda: tensorfmt.crc32c(block), 3) / 1e6, "MB/s")
    from zlib import crc32
    row("    zlib.crc32, for scale", size / seconds(lambda: crc32(block)) / 1e6, "MB/s")
    for name, dtype, item in (
            ("byte swap", None, load(dumps({"w": tensor(block, "float32")}, format="ztensor",
                                     data_endianness="big"))["w"]),
            ("column-major to row-major, 4096 x 4096", None,
             load(dumps({"w": tensor(block, "float32", (4096, 4096))}, format="primitiv"))["w"]),
            ("bfloat16 to float32", "float32", tensor(block, "bfloat16")),
            ("float32 to bfloat16", "bfloat16", tensor(block, "float32")),
            ("float32 to float64", "float64", tensor(block, "float32"))):
        call = item.tobytes if dtype is None else \
            (lambda item=item, dtype=dtype: item.astype(dtype))
        row(name, size / seconds(call, 3) / 1e6, "MB/s")


def bench_save(folder):
    from time import perf_counter
    size, path = 512 << 20, os.path.join(folder, "x")
    block = bytes(size)

    def raw():
        with open(path, "wb") as stream:
            stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
    item = tensor(block, "float32", (1 << 13, 1 << 14))
    calls = [("512 MB by one write and fsync", raw)]
    calls += [("save of 512 MB: " + kind, lambda kind=kind: tensorfmt.save(
        path, {"w": item}, format=kind)) for kind in FORMATS]
    for name, call in calls:
        taken = []
        for _ in range(3):
            start = perf_counter()
            call()
            taken.append(perf_counter() - start)
        row(name, sorted(taken)[1], "s", "(wall, median of 3)")


if __name__ == "__main__":
    if sys.argv[1:] == ["bench"]:
        bench()
    else:
        unittest.main()
