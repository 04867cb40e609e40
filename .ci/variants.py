# SPDX-License-Identifier: MIT
"""Files that are not usual, good or bad: what must hold for every file must hold for them.

Most are a good file with one change; the builders are those of test_tensorfmt.py, [10]. The file
errors.txt of .ci/accepted has a line for each.
"""
import struct

import tensorfmt
from test_tensorfmt import (
    burnpack_file, burnpack_of_spans, burnpack_with, CSR, dense2, dumps, F32, mag300_replaced,
    make_burnpack, object_of, odd_record, of_chosen, part2, parts2, primitiv_file, QUANTIZED,
    read_table, record_file, safetensors_file, tensor, tensorbuffers_with, uint16s,
    ztensor2_of_all_kinds, ztensor2_of_objects, ztensor2_replaced, ztensor_file)

# zTensor 2

FAULTY_OBJECTS = read_table("""
    name    dtype  at  nbytes  shape   more
    f4      u8     4   4096    [8191]  {'type': 'f4_e2m1'}
    xxh3    f32    1   8       [2]     {'digest': 'xxh3:0'}
    hash    f32    1   8       [2]     {'digest': 'xxh3:0000000000000000'}
    bool    u8     2   5       [5]     {'type': 'bool'}
    half    u8     1   8       [8]     {'digest': 'sha256:00'}
    i       f32    1   8       [3]     {}
    shard   f32    1   8       [2]     {'shard': 'y'}
    type    u8     1   8       [1]     {'type': 'complex64'}
    length  u8     1   8       [8]     {'decoded_length': 8}
    coded   u8     1   8       [8]     {'encoding': 'x'}
""")
ONE_OBJECT = read_table("""
    name   dtype  at   nbytes  shape    more
    place  u8     0    8       [8]      {}
    place  u8     1    4096    [4096]   {}
    place  u8     8    8       [8]      {}
    place  u8     9    8       [8]      {}
    place  u8     1.5  8       [8]      {}
    place  u8     1    12289   [12289]  {}
    type   u8     1    1       [3]      {'type': 'f4_e2m1'}
    type   u8     1    8       [9]      {'type': 'f8_e5m2'}
    type   f64    1    8       []       {'type': 'complex128'}
    type   f32    1    16      []       {'type': 'complex128'}
    type   u8     1    8       [8]      {'type': 'bool'}
    type   i8     1    8       [8]      {'type': 'bool'}
    type   u8     1    8       [8]      {'type': 'f8_e8m0'}
    type   u8     1    3       [8]      {'type': 'ex.type'}
    coded  f32    1    8       [2]      {'encoding': 'raw', 'decoded_length': 8}
    coded  f32    1    8       [2]      {'encoding': 'ex/1', 'decoded_length': 7}
""")
SHARD_SIZES = (4143, "x-1"), (4144, "x-1"), (4144, "y"), (4144, "x" * 65), (4144, ".x")
LAYOUTS = read_table("""
    layout  shape   role     dtype  at  nbytes
    csr     [2, 9]  None     u64    0   0
    csr     [2]     None     u64    0   0
    csr     [3, 9]  None     u64    0   0
    csr     [2, 9]  indptr   u32    5   12
    csr     [2, 9]  x        u32    6   16
    csr     [2, 9]  indices  u64    7   24
    coo     [4]     None     u32    0   0
    coo     []      None     u32    0   0
    coo     [4, 3]  values   f32    1   4
    coo     [4, 3]  coords   u64    6   16
    coo     [4, 3]  coords   u32    6   15
""")


def object_files():
    """Return rows (name, bytes) of files of zTensor 2 that are not usual, good or bad."""
    blobs = parts2()[0]
    faulty = {row.name: object_of(row) for row in FAULTY_OBJECTS}
    faulty["sha"] = dense2("f32", 1, 8, 2, digest="sha256:" + "0" * 64)
    files = [("fine", ztensor2_of_all_kinds()), ("faults", ztensor2_of_objects(faulty, blobs))]
    for row in ONE_OBJECT:
        files.append((row.name, ztensor2_of_objects({"w": object_of(row)}, blobs)))
    for nbytes in 32768, 32769:
        coded = dense2("u8", 1, 1, nbytes, encoding=tensorfmt.SEEKABLE, decoded_length=nbytes)
        files.append(("coded zstd", ztensor2_of_objects({"w": coded}, blobs)))
    for places in [(1, 8192), (2, 8)], [(3, 8), (3, 8)], [(3, 8), (3, 9)]:
        objects = {"t%d" % i: dense2("u8", at, size, size) for i, (at, size) in enumerate(places)}
        files.append(("overlap", ztensor2_of_objects(objects, blobs)))
    data = ztensor2_of_objects({"w": dense2("u8", 1, 8192, 8192)}, blobs[:1])
    files.append(("overlap", data[:-40] + bytes(8152) + data[-40:]))  # with the manifest
    for size, name in SHARD_SIZES:
        objects = {"w": dense2("u8", 1, 8, 8, shard=name), "v": dense2("f64", 1, 8)}
        shards = {name.replace("y", "z"): {"size": size, "digest": "a:0"}}
        files.append(("shard", ztensor2_of_objects(objects, blobs, shards=shards)))
    for layout, shape, parts in layouts():
        made = {"shape": shape, "layout": layout, "parts": parts}
        files.append(("layout", ztensor2_of_objects({"w": made}, blobs)))
    files.append(("no objects", ztensor2_of_objects({})))
    return files + [("a data shard", ztensor2_replaced(nbytes=0, start=0, hash=0))]


def layouts():
    """Return rows (layout, shape, parts) of zTensor 2, of which few agree."""
    _, _, csr, coo = parts2()
    rows = []
    for row in LAYOUTS:
        parts = csr if row.layout == "csr" else coo
        if row.role:
            parts = dict(parts, **{row.role: part2(row.dtype, row.at, row.nbytes)})
        rows.append(("zt.sparse_%s/1" % row.layout, row.shape, parts))
    typed = part2("u64", 5, 24, type="u")
    signed = {"indices": part2("i64", 7, 16), "indptr": part2("i64", 5, 24)}
    coded = part2("u8", 1, 8, encoding="y", decoded_length=5)
    rows += [
        ("zt.sparse_csr/1", [2, 9], dict(csr, indptr=typed)),
        ("zt.sparse_csr/1", [2, 9], dict(csr, **signed)),
        ("zt.sparse_coo/1", [4, 3], {"values": part2("f32", 1, 8)}),
        ("dense", [2], coo), ("dense", [2], {}), ("ex", [2], {}), ("ex", [2], {"a": coded})]
    for shape in [1] * 64, [1] * 65, [(1 << 64) - 1], [1 << 32, 1 << 32, 0]:
        rows.append(("ex", shape, {"data": part2("u8", 1, 1)}))
    return rows


# .mag 300, safetensors

ITEM_SIZES = 4, 2, 2, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1  # of the numbers of dtypes
JSON_CHANGES = (  # what is replaced, and by what
    (b"null", b'"\\u20ac\\ud83d\\ude42"'), (b"null", b"NaN"), (b"null", b'"\\ud800"'),
    (b"0.1", b"1e400"), (b"true", b"tru"), (b"true", b'{"a":{"b":[{},[],-0,1.5e3]}}'),
    (b"{", b"  {"), (b"0.3.0", b"\x1f"), (b"0.3.0", b"\\/\\b\\f"), (b"bfloat16", b""),
    (b"}}}", b"}}} \n"), (b'"b":', b'"w":'),
    (b"null", b"9" * 4300), (b"null", b"9" * 4301),
    (b"null", b"[" * 124 + b"]" * 124), (b"null", b"[" * 125 + b"]" * 125),
)
ENTRY_OF_W = b'"offset":0,"nbytes":24'
SAFETENSORS_ENDS = (  # more in the entry of w; what stands behind it
    (',"x":1', ""), ("", ',"__metadata__":null'), ("", ',"__metadata__":{"a":5}'),
    ("", ',"v":null'), ("", "   "), ("", "x"),
    ("", ', "v":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}'),
    ("", ',"v":{"dtype":"U8","shape":[0],"data_offsets":[9,8]}'),
    ("", ',"v":{"dtype":"U8","shape":[0,0,3],"data_offsets":[8,8]}'),
    ("", ',"v":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[8,8]}'),
)
HEADER_SIZES = 0, 1, 2, 3, 8, 9, 100000000, 100000001, 1 << 63


def header_of(more="", after=""):
    return '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]%s}%s}' % (more, after)


def mag300_files():
    files = []
    for number, size in enumerate(ITEM_SIZES):
        entry = ENTRY_OF_W.replace(b"24", b"%d" % (6 * size))
        for aux in 0, 1:
            data = mag300_replaced((b'_id":0', b'_id":%d' % number), (ENTRY_OF_W, entry), aux=aux)
            files.append(("number", data))
    whole_entry = b'"w":{"shape":[2,3],"dtype":"float32","dtype_id":0,' + ENTRY_OF_W + b"},"
    changes = JSON_CHANGES + ((whole_entry, b""),)
    return files + [("JSON", mag300_replaced(change)) for change in changes]


def safetensors_files():
    files = []
    entry = ',"v":{"dtype":"%s","shape":[%d],"data_offsets":[8,%d]}'
    for code, bits, _ in tensorfmt.ST_TYPES + [("Q8", "8", "")]:
        for count in 8, 9:
            end = 8 + count * int(bits) // 8
            header = header_of(after=entry % (code, count, end))
            files.append(("types", safetensors_file(header, bytes(end))))
    files += [("entries", safetensors_file(header_of(*row))) for row in SAFETENSORS_ENDS]
    files.append(("safetensors: trailing comma", safetensors_file(header_of(after=","))))
    files += [("limits", struct.pack("<Q", n) + b"{}" + bytes(6)) for n in HEADER_SIZES]
    return files


def later_files():
    """Return rows (name, bytes) of the formats that came later, good or bad."""
    return object_files() + mag300_files() + safetensors_files() + record_files()


# Records of Burn

RECORD_CHANGES = (
    {}, {"x": 1}, {"bytes": "a"}, {"bytes": []}, {"shape": {}}, {"shape": [2.0]}, {"shape": [-1]},
    {"shape": [True]}, {"shape": None}, {"dtype": "Bool", "shape": [8]}, {"dtype": "F16"},
    {"dtype": "bf16"}, {"dtype": {"QFloat": {}}}, {"dtype": None}, {"shape": [3]},
    {"bytes": b"", "shape": [0]}, {"shape": [1 << 32, 1 << 33]},
)


def record_files():
    """Return rows (name, bytes) of records of Burn that are not usual, good or bad."""
    usual = {"bytes": struct.pack("<2f", 1, 2), "shape": [2], "dtype": "F32"}
    files = [("item", record_file(dict(usual, **changes))) for changes in RECORD_CHANGES]
    files += [("item", record_file({"value": value, "shape": [2]})) for value in ([1, 2], {})]
    for version in "0.13.2", "0.14.0", "0.9", "1.2.0", "0.x", "":
        text = tensorfmt.msgpack_dumps(version)
        files.append(("version", record_file(None).replace(b"\xa60.21.0", text)))
    whole = record_file(usual)
    files += [("cut", whole[:n]) for n in range(170, len(whole), 5)]
    return files + [("cut", whole + b"x")]


# zTensor 0.1, and files of others

PLACE = {"offset": 64, "size": 16}
SPARSE_ENTRIES = {  # what an entry of this sparse format says instead
    "": (
        {"layout": "sparsecsr", "shape": [2]}, {"layout": "sparsecsr"}, {"layout": "sparsecoo"},
        {"layout": "sparsecsr", "dtype": "float64", "size": 12, "data_endianness": "big"},
        {"layout": "sparsecsr", "shape": [1, 4]}, {"sparse_format": "ellpack"}),
    "coo": (
        {"nnz": "4"}, {"nnz": 9}, {"nnz": 3, "coords": [0] * 6}, {"encoding": "lz4"}, {"nnz": 4},
        {"coords": [0, 0, 1, 1, 0, 1, 2, 3]}),
    "csr": (
        {"nnz": 3}, {"shape": [3, 4]}, {"nnz": 4}, {"nnz": "4"}, {"indices": [0, 0, 1, 4]},
        {"indices": [0, 0, 1, -1]}, {"indices": "x"}, {"indices": [1, 0, 2, 1]},
        {"shape": [2, 4, 1]}, {"sparse_format": "bsr"}),
    "no indices": ({"indptr": [0, 1, 4]}, {"indptr": 5}, {"indptr": {"offset": 64}}),
}
INDEX_BLOBS = {  # what a blob of these indices says instead
    "indices": (
        {}, {"size": 32}, {"size": 31}, {"offset": 66}, {"offset": 1 << 40}, {"dtype": "int8"},
        {"encoding": "lz"}, {"data_endianness": "middle"}),
    "indptr": (
        {"size": 24}, {"offset": 80}, {}, {"dtype": "int8"}, {"encoding": "lz4"}, {"size": 17}),
}
CHECKSUMS = """
    crc32c:0XDIGITS crc32c:DIGITS md5:DIGITS CRC32C:DIGITS crc32c sha256 crc32c: sha256:00
    crc32c:0x1 crc32c:+1""".split()
QUANTIZED_TYPES = {"Bool": "U32"}, "Flex32", "F8", {"Odd": 1}


def sparse_entries():
    """Return entries of zTensor 0.1 that are wrong in one way each, or nearly so."""
    indptr = {"sparse_format": "csr", "indptr": [0, 1, 4]}
    usual = {"": {}, "coo": {"sparse_format": "coo"}, "no indices": indptr,
             "csr": dict(indptr, indices=[0, 0, 1, 2])}
    rows = []
    for kind, table in SPARSE_ENTRIES.items():
        rows += [dict(usual[kind], **changes) for changes in table]
    for role, table in INDEX_BLOBS.items():
        rows += [dict(indptr, **{role: dict(PLACE, **changes)}) for changes in table]
    rows += [dict(indptr, indptr=PLACE, shape=shape) for shape in ([1, 4], [])]
    facts = dict(PLACE, dtype="float32", encoding="raw", shape=[2, 4], layout="sparse")
    return [dict(dict(facts, name="s%d" % i), **row) for i, row in enumerate(rows)]


def dtypes_of_burnpack():
    """Return a Burnpack file of types that are not usual, and of bools."""
    rows = [("b%d" % i, [1], code, "01020304") for i, code in enumerate(
        QUANTIZED_TYPES + (QUANTIZED[3].code,))]
    return make_burnpack(*rows, ("b", [4], {"Bool": "U8"}, "00010203"), ("c", [1], "Bool", "01"))


def checksums_of_ztensor():
    """Return a file of tensors that say all sorts of checksums."""
    usual = dict(PLACE, dtype="float32", encoding="raw", shape=[4])
    digits = "%08x" % tensorfmt.crc32c(b"\0\0\x80\x3f" * 4)
    texts = [text.replace("DIGITS", digits) for text in CHECKSUMS] + ["", "sha256:" + "0" * 64]
    return ztensor_file(*[dict(usual, name="k%d" % i, checksum=text)
                          for i, text in enumerate(texts)])


LENIENT = (
    '{"__metadata__" :null,\t"\\u00e9\\n":{"data_offsets":[ 0,4 ],"shape":[8 ],"dtype":'
    '"F4","x":[[1,{"y":[]}],[2],true]},"e":{"dtype":"Q","shape":[0,9],"data_offsets":'
    '[4,4]},"b":{"sh\\u0061pe":[],"dtype":"BOOL","data_offsets":[4,5]}}\r\n  ')


def odd_files():
    """Return rows (name, bytes) of files that can be read, with much that is not usual."""
    names = {"n\n" + "x" * 90: F32, " ": F32, "": F32}
    sparse = {"s": tensor(dtype="float16", shape=(3, 5), components=CSR)}
    number = (b"\xa1\x67tensors\xa1\x61a\xa3\x65dtype\xa1\x61X\xc2\x51\1" + bytes(16)
              + b"\x65shape\x80\x6cdata_offsets\x82\0\0")
    spans = [(0, 8)] + [(i, i + 4) for i in (4, 6, 7, 8, 9, 10, 10)]
    files = [
        ("odd.mpk", odd_record()),
        ("sparse_entries.zt", ztensor_file(*sparse_entries())),
        ("sums.zt", checksums_of_ztensor()),
        ("dtypes.bpk", dtypes_of_burnpack()),
        ("names.zt", dumps(names, format="ztensor")),
        ("sparse.zt", dumps(sparse, format="ztensor", checksum="crc32c", data_endianness="big")),
        ("bignum.bpk", burnpack_file(number, b"")),
        ("lenient.safetensors", safetensors_file(LENIENT, bytes(5))),
        ("spans.bpk", burnpack_of_spans(spans, bytes(14) + b"x")),
        ("packed.bpk", burnpack_with(dtype="U8", shape=[4]).rstrip(b"\0") + b"abcd"),
        ("empty.bpk", dumps({"e": []}, format="burnpack")[:206])]
    return of_chosen(files + [("as others read it", data) for data in files_of_others()])


def files_of_others():
    """Return files that real libraries take for something else, or refuse."""
    long = struct.pack("<4s6I", b"MAG!", 1, 0, 0, 1, 0, 1) + b"\1" + bytes(7)
    long += struct.pack("<I", 65536) + b"k" * 65536
    long = long[:8] + struct.pack("<I", tensorfmt.crc32(long)) + long[12:]
    one = "91ce00000001 ce00000001 c404 0000803f ce00000000"
    short = {"tensors[0].vtable": uint16s(16, 32, 24, 8, 0), "tensors[0].data_size": 4}
    return [
        long,
        ztensor_file(k=-1 - (1 << 63)),
        primitiv_file(0x300, "d200000001 91a161" + one),
        primitiv_file(0x300, "ce00000002 91a161" + one + "92a161a162" + one),
        primitiv_file(0x400, "80 81a161ca3f800000"),
        tensorbuffers_with(short),
        tensorbuffers_with({"tensors[0].vtable": uint16s(16, 32, 20)})]
