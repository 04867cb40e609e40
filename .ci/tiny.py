# SPDX-License-Identifier: MIT
"""Read tensor files in one page: load(bytes) -> {name: (dtype, shape, strides, bytes)}

Right files are read rightly, without one check, and with nothing of tensorfmt.py: a second opinion
for its tests. The codecs and six of the readers are those that `.docs/read-it-yourself.md` shows;
here are the generations that it leaves out. Together they read .mag (version 1 as its specification
has it, 300), zTensor 0.1, 1.1 to 2 (raw, dense), primitiv, Burnpack (from 0.20 on), TensorBuffers,
safetensors and .mpk (from Burn 0.14 on). Bytes are little-endian and row-major, or as the strides
(in bytes) say. Readers name a dtype as the file does; ">" before it: big-endian.
"""
import json
import re
from os.path import abspath, dirname, join
from struct import calcsize, unpack_from

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4,
         "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1}
SHORT = {"bf16": "bfloat16", "bool": "bool", "boolean": "bool", "flex32": "float32"}  # f32 ...
SHORT.update([(name[0] + str(8 * size), name) for name, size in SIZES.items()
              if name not in ("bfloat16", "bool")])
SHORT.update(zip(SIZES, SIZES))
SHORT.update([("f8_" + name, "float8_" + name) for name in ("e5m2", "e4m3fnuz", "e5m2fnuz")])
SHORT.update(f8_e4m3="float8_e4m3fn", f8_e8m0="float8_e8m0fnu")


def read_page():
    """Return what the readers on the page define."""
    path = join(dirname(dirname(abspath(__file__))), ".docs", "read-it-yourself.md")
    with open(path, encoding="utf-8") as stream:
        blocks = re.findall(r"(?ms)^```python\n(.*?)^```", stream.read())
    names = {"json": json, "calcsize": calcsize, "unpack_from": unpack_from}
    for block in blocks:
        if "def read_" in block:
            exec(block, names)
    return names


PAGE = read_page()


def read_mag300(d):
    at, span, data = unpack_from("<QQQ", d, 12)
    return {name: (e["dtype"], e["shape"], None,
                   d[data + e["offset"]:data + e["offset"] + e["nbytes"]])
            for name, e in json.loads(bytes(d[at:at + span]).decode())["tensor_map"].items()}


def read_ztensor2(d):
    at, = unpack_from("<Q", d, len(d) - 40)
    out = {}
    for name, e in PAGE["cbor"](d, at)[0]["objects"].items():
        part = e["parts"].get("data", {})
        if e.get("layout", "dense") == "dense" and not {"encoding", "shard"} & set(part):
            start, nbytes = part["blob"]
            out[name] = (part.get("type", part["dtype"]), e["shape"], None,
                         d[start:start + nbytes])
    return out


def read_record(d):
    """.mpk: maps and arrays around parameters, whose names are the path to them."""
    out = {}

    def walk(node, path):
        if isinstance(node, dict) and "param" in node and "bytes" in node["param"]:
            e = node["param"]
            out[".".join(path) or "item"] = e["dtype"], e["shape"], None, e["bytes"]
        elif isinstance(node, (dict, list)):
            for key, item in node.items() if isinstance(node, dict) else enumerate(node):
                walk(item, path + [str(key)])
    walk(PAGE["msgpack"](d)[0]["item"], [])
    return out


READERS = dict(PAGE, read_mag300=read_mag300, read_ztensor2=read_ztensor2, read_record=read_record)
FORMATS = ((b"MAG!\1", "mag"), (b"MAG!", "mag300"), (b"ZTEN0001", "ztensor"),
           (b"\x89ZT2", "ztensor2"), (b"NRUB", "burnpack"), (b"TBS1", "tensorbuffers"),
           (b"\xce\0\0\0\0\xce\0\0\0\1", "primitiv"), (b"\x83\xa8metadata", "record"),
           (b"", "safetensors"))


def plain(dtype, shape, strides, data):
    """Return a row with the usual name of its dtype, None if there is none, and little-endian."""
    name = (dtype if isinstance(dtype, str) else list(dtype)[0]).lower()
    if name[0] != ">":
        return SHORT.get(name), shape, strides, data
    size, out = SIZES[name[1:]], bytearray(data)
    for i in range(size):
        out[i::size] = bytes(data)[size - 1 - i::size]
    return name[1:], shape, strides, bytes(out)


def load(source):
    name = [name for magic, name in FORMATS if source[:len(magic)] == magic][0]
    if name == "safetensors" and source[8:9] != b"{":
        raise ValueError("no reader of such a file: add it, and its magic to FORMATS")
    rows = READERS["read_" + name](memoryview(source))
    return {name: plain(*row) for name, row in rows.items()}
