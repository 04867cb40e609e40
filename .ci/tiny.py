# SPDX-License-Identifier: MIT
"""Read tensor files in one page: load(bytes) -> {name: (dtype, shape, strides, bytes)}

Right files are read rightly, without one check, and with nothing of tensorfmt.py: a second opinion
for its tests, and the shortest text that says where the bytes are. It reads .mag (version 1 as its
specification has it, 300), zTensor 0.1, 1.1 to 2 (raw, dense), primitiv, Burnpack (from 0.20 on),
TensorBuffers, safetensors and .mpk (from Burn 0.14 on). Bytes are little-endian and row-major, or
as the strides (in bytes) say. `.docs/read-it-yourself.md` shows the codecs and six of the readers,
which name a dtype as the file does; ">" before it: big-endian.
"""
import json
from struct import calcsize, unpack_from

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4,
         "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1}
SHORT = {"bf16": "bfloat16", "bool": "bool", "boolean": "bool", "flex32": "float32"}  # f32 ...
SHORT.update([(name[0] + str(8 * size), name) for name, size in SIZES.items()
              if name not in ("bfloat16", "bool")])
SHORT.update(zip(SIZES, SIZES))
SHORT.update([("f8_" + name, "float8_" + name) for name in ("e5m2", "e4m3fnuz", "e5m2fnuz")])
SHORT.update(f8_e4m3="float8_e4m3fn", f8_e8m0="float8_e8m0fnu")


# -- codecs: (value, position after it) ---------------------------------------------------------


def cbor(d, i=0):
    head, i = d[i], i + 1
    major, n, endless = head >> 5, head & 31, head & 31 == 31
    if major == 7 and n in (25, 26, 27):
        code = ">" + "efd"[n - 25]
        return unpack_from(code, d, i)[0], i + calcsize(code)
    if 24 <= n < 28:
        n, i = int.from_bytes(d[i:i + (1 << n - 24)], "big"), i + (1 << n - 24)
    if major < 2:
        return (n if major == 0 else -1 - n), i
    if major == 7:
        return {20: False, 21: True}.get(n), i
    if major == 6:  # a tag
        return cbor(d, i)
    if major < 4 and not endless:
        text = bytes(d[i:i + n])
        return (text if major == 2 else text.decode()), i + n
    items = []
    while d[i] != 0xFF if endless else len(items) < n << (major == 5):
        item, i = cbor(d, i)
        items.append(item)
    i += endless
    if major < 4:
        return (b"" if major == 2 else "").join(items), i
    return (items if major == 4 else dict(zip(items[::2], items[1::2]))), i


WIDTHS = "BHIBHIfdBHIQbhiq     BHIHIHI"  # of the numbers after 0xC4, 0xC5 ...


def msgpack(d, i=0):
    head, i = d[i], i + 1
    if head < 0x80 or head >= 0xE0:
        return (head if head < 0x80 else head - 256), i
    if 0xC0 <= head <= 0xC3:
        return (None, None, False, True)[head - 0xC0], i
    if head < 0xC0:  # a short map, array or text
        n, head = head & (31 if head >= 0xA0 else 15), (0xDE, 0xDC, 0xD9)[min(2, head - 0x80 >> 4)]
    else:
        code = ">" + WIDTHS[head - 0xC4]
        n, i = unpack_from(code, d, i)[0], i + calcsize(code)
        if 0xCA <= head <= 0xD3:
            return n, i
    if head < 0xDC:  # bytes or text
        return (bytes(d[i:i + n]) if head < 0xD9 else bytes(d[i:i + n]).decode()), i + n
    items = []
    for _ in range(n << (head >= 0xDE)):
        item, i = msgpack(d, i)
        items.append(item)
    return (items if head < 0xDE else dict(zip(items[::2], items[1::2]))), i


def flat(d, table, codes):
    """Return the fields of a FlatBuffers table: numbers by code, for "o" where an offset leads."""
    vtable = table - unpack_from("<i", d, table)[0]
    slots = unpack_from("<%dH" % (unpack_from("<H", d, vtable)[0] // 2 - 2), d, vtable + 4)
    out = []
    for code, slot in zip(codes, slots + (0,) * len(codes)):
        value = unpack_from("<" + code.replace("o", "I"), d, table + slot)[0] if slot else None
        out.append(table + slot + value if code == "o" and slot else value)
    return out


# -- formats ------------------------------------------------------------------------------------


def read_mag(d):
    names, at, out = ("float32", "float16", "bool", "int32"), 24, {}
    count, numbers = unpack_from("<II", d, 12)
    for _ in range(numbers):
        at += 16 + unpack_from("<I", d, at + 12)[0]
    for _ in range(count):
        n, = unpack_from("<I", d, at)
        dims = unpack_from("<6q", d, at + 4 + n)
        dtype, nbytes, offset = unpack_from("<BQQ", d, at + 52 + n)
        rank = [i for i, x in enumerate(dims + (-1,)) if x == -1 or (x == 0 and nbytes)][0]
        out[bytes(d[at + 4:at + 4 + n]).decode()] = (
            names[dtype], dims[:rank], None, d[offset:offset + nbytes])
        at += 4 + n + 69
    return out


def read_mag300(d):
    at, span, data = unpack_from("<QQQ", d, 12)
    return {name: (e["dtype"], e["shape"], None,
                   d[data + e["offset"]:data + e["offset"] + e["nbytes"]])
            for name, e in json.loads(bytes(d[at:at + span]).decode())["tensor_map"].items()}


def read_ztensor(d):
    nbytes, = unpack_from("<Q", d, len(d) - 8)
    out = {}
    for e in cbor(d, len(d) - 8 - nbytes)[0]:
        if e.get("layout", "dense") == "dense" and e["encoding"] == "raw":
            order = ">" if e.get("data_endianness") == "big" else ""
            out[e["name"]] = (order + e["dtype"], e["shape"], None,
                              d[e["offset"]:e["offset"] + e["size"]])
    return out


def read_ztensor2(d):
    at, = unpack_from("<Q", d, len(d) - 40)
    out = {}
    for name, e in cbor(d, at)[0]["objects"].items():
        part = e["parts"].get("data", {})
        if e.get("layout", "dense") == "dense" and not {"encoding", "shard"} & set(part):
            start, nbytes = part["blob"]
            out[name] = (part.get("type", part["dtype"]), e["shape"], None,
                         d[start:start + nbytes])
    return out


def read_primitiv(d):
    kind, at, out = d[13], 15, {}  # 1 tensor, 2 parameter, 3 model

    def take():
        nonlocal at
        value, at = msgpack(d, at)
        return value

    def tensor(name):
        dims, batch, data = take(), take(), take()
        dims = dims + [batch] if batch > 1 else dims
        strides = [4]
        for n in dims[:-1]:
            strides.append(strides[-1] * n)
        out[name] = "float32", dims, strides[:len(dims)], data
    for _ in range({1: 1, 2: 1}.get(kind) or (take() if kind == 3 else 0)):
        path = take() if kind == 3 else ["value" if kind == 2 else "tensor"]
        for old in "\\.:":
            path = [part.replace(old, "\\" + old) for part in path]
        tensor(".".join(path))
        for _ in range(take() if kind > 1 else 0):
            tensor(".".join(path) + ":" + take())
    return out


def read_burnpack(d):
    nbytes, = unpack_from("<I", d, 6)
    start, out = -(-(10 + nbytes) // 256) * 256, {}
    for name, e in cbor(d, 10)[0]["tensors"].items():
        first, last = e["data_offsets"]
        out[name] = e["dtype"], e["shape"], None, d[start + first:start + last]
    return out


def read_tensorbuffers(d):
    names = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
    f, out = d[len(d) - 8 - unpack_from("<I", d, len(d) - 8)[0]:len(d) - 8], {}
    tensors = flat(f, unpack_from("<I", f)[0], "ooo")[2]
    for i in range(unpack_from("<I", f, tensors)[0] if tensors else 0):
        at = tensors + 4 + 4 * i
        _, name, shape, dtype, offset, nbytes = flat(f, at + unpack_from("<I", f, at)[0], "QoobII")
        dims = unpack_from("<%dI" % unpack_from("<I", f, shape)[0], f, shape + 4) if shape else ()
        name = bytes(f[name + 4:name + 4 + unpack_from("<I", f, name)[0]]).decode()
        out[name] = names[dtype - 1], dims, None, d[offset or 0:(offset or 0) + (nbytes or 0)]
    return out


def read_safetensors(d):
    start = 8 + unpack_from("<Q", d)[0]
    return {name: (e["dtype"], e["shape"], None,
                   d[start + e["data_offsets"][0]:start + e["data_offsets"][1]])
            for name, e in json.loads(bytes(d[8:start]).decode()).items() if name != "__metadata__"}


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
    walk(msgpack(d)[0]["item"], [])
    return out


FORMATS = ((b"MAG!\1", read_mag), (b"MAG!", read_mag300), (b"ZTEN0001", read_ztensor),
           (b"\x89ZT2", read_ztensor2), (b"NRUB", read_burnpack),
           (b"TBS1", read_tensorbuffers), (b"\xce\0\0\0\0\xce\0\0\0\1", read_primitiv),
           (b"\x83\xa8metadata", read_record), (b"", read_safetensors))


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
    read = [read for magic, read in FORMATS if source[:len(magic)] == magic][0]
    if read is read_safetensors and source[8:9] != b"{":
        raise ValueError("no reader of such a file: add it, and its magic to FORMATS")
    return {name: plain(*row) for name, row in read(memoryview(source)).items()}
