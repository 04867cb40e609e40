# SPDX-License-Identifier: MIT
"""Files that are not usual, good or bad: what must hold for every file must hold for them.

Most are a good file with one change; the builders are those of test_tensorfmt.py, [10]. The file
errors.txt of .ci/accepted has a line for each.
"""
import struct

import tensorfmt
from test_tensorfmt import (
    burnpack_file, burnpack_of_spans, burnpack_with, CSR, dense2, dumps, F32, mag300_replaced,
    make_burnpack, odd_record, of_chosen, part2, parts2, primitiv_file, QUANTIZED, record_file,
    safetensors_file, tensor, tensorbuffers_with, uint16s, ztensor2_of_all_kinds,
    ztensor2_of_objects, ztensor2_replaced, ztensor_file)


def object_files():
    """Return rows (name, bytes) of files of zTensor 2 that are not usual, good or bad."""
    (blobs, _, sparse, coo), files = parts2(), [("fine", ztensor2_of_all_kinds())]

    def two(name, data=blobs, **objects):
        files.append((name, ztensor2_of_objects(objects, data)))

    def one(name, *args, **more):
        two(name, w=dense2(*args, **more))
    two("faults", f4=dense2("u8", 4, 4096, 8191, type="f4_e2m1"), xxh3=dense2(
        "f32", 1, 8, 2, digest="xxh3:0"), hash=dense2("f32", 1, 8, 2, digest="xxh3:" + "0" * 16),
        bool=dense2("u8", 2, 5, 5, type="bool"), sha=dense2(
        "f32", 1, 8, 2, digest="sha256:" + "0" * 64), half=dense2(
        "u8", 1, 8, 8, digest="sha256:00"), i=dense2("f32", 1, 8, 3), shard=dense2(
        "f32", 1, 8, 2, shard="y"), type=dense2("u8", 1, 8, 1, type="complex64"), length=dense2(
        "u8", 1, 8, 8, decoded_length=8), coded=dense2("u8", 1, 8, 8, encoding="x"))
    for start, size in ((0, 8), (1, 4096), (8, 8), (9, 8), (1.5, 8), (1, 12289)):
        one("place", "u8", start, size, size)
    for rows in (((1, 8192), (2, 8)), ((3, 8), (3, 8)), ((3, 8), (3, 9))):
        two("overlap", **dict([("t%d" % i, dense2("u8", at, size, size))
                               for i, (at, size) in enumerate(rows)]))
    data = ztensor2_of_objects({"w": dense2("u8", 1, 8192, 8192)}, blobs[:1])
    files.append(("overlap", data[:-40] + bytes(8152) + data[-40:]))  # with the manifest
    for size, name in ((4143, "x-1"), (4144, "x-1"), (4144, "y"), (4144, "x" * 65), (4144, ".x")):
        files.append(("shard", ztensor2_of_objects(
            {"w": dense2("u8", 1, 8, 8, shard=name), "v": dense2("f64", 1, 8)}, blobs,
            shards={name.replace("y", "z"): {"size": size, "digest": "a:0"}})))
    for code, nbytes, shape, kind in (
            ("u8", 1, [3], "f4_e2m1"), ("u8", 8, [9], "f8_e5m2"), ("f64", 8, [], "complex128"),
            ("f32", 16, [], "complex128"), ("u8", 8, [8], "bool"), ("i8", 8, [8], "bool"),
            ("u8", 8, [8], "f8_e8m0"), ("u8", 3, [8], "ex.type")):
        one("type", code, 1, nbytes, *shape, type=kind)
    for layout, shape, parts in layouts(sparse, coo):
        two("layout", w={"shape": shape, "layout": layout, "parts": parts})
    one("coded", "f32", 1, 8, 2, encoding="raw", decoded_length=8)
    one("coded", "f32", 1, 8, 2, encoding="ex/1", decoded_length=7)
    for most in (32768, 32769):
        one("coded zstd", "u8", 1, 1, most, encoding="zt.zstd-seekable/1", decoded_length=most)
    two("no objects", ())
    return files + [("a data shard", ztensor2_replaced(nbytes=0, start=0, hash=0))]


def layouts(sparse, coo):
    """Return rows (layout, shape, parts) of zTensor 2, of which few agree."""
    csr, pairs = "zt.sparse_csr/1", "zt.sparse_coo/1"
    return [(csr, shape, dict(sparse, **changes)) for shape, changes in (
        ([2, 9], {}), ([2], {}), ([3, 9], {}), ([2, 9], {"indptr": part2("u32", 5, 12)}),
        ([2, 9], {"x": coo["coords"]}), ([2, 9], {"indices": part2("u64", 7, 24)}),
        ([2, 9], {"indptr": part2("u64", 5, 24, type="u")}),
        ([2, 9], {"indices": part2("i64", 7, 16), "indptr": part2("i64", 5, 24)}))] + [
        (pairs, shape, dict(coo, **changes)) for shape, changes in (
        ([4], {}), ([], {}), ([4, 3], {"values": part2("f32", 1, 4)}),
        ([4, 3], {"coords": part2("u64", 6, 16)}), ([4, 3], {"coords": part2("u32", 6, 15)}))] + [
        (pairs, [4, 3], {"values": part2("f32", 1, 8)}), ("dense", [2], coo), ("dense", [2], {}),
        ("ex", [2], {}), ("ex", [2], {
            "a": part2("u8", 1, 8, encoding="y", decoded_length=5)})] + [
        ("ex", shape, {"data": part2("u8", 1, 1)}) for shape in (
            [1] * 64, [1] * 65, [(1 << 64) - 1], [1 << 32, 1 << 32, 0])]


def later_files():
    """Return rows (name, bytes) of the formats that came later, good or bad."""
    files, w = object_files(), b'"offset":0,"nbytes":24'
    for number, size in enumerate((4, 2, 2, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1)):
        files += [("number", mag300_replaced((b'_id":0', b'_id":%d' % number), (
            w, w.replace(b"24", b"%d" % (6 * size))), aux=aux)) for aux in (0, 1)]
    files += [("JSON", mag300_replaced(change)) for change in (
        (b"null", b'"\\u20ac\\ud83d\\ude42"'), (b"null", b"NaN"), (b"null", b'"\\ud800"'),
        (b"null", b"9" * 4300), (b"null", b"9" * 4301), (b"0.1", b"1e400"), (b"true", b"tru"),
        (b"null", b"[" * 124 + b"]" * 124), (b"null", b"[" * 125 + b"]" * 125),
        (b"true", b'{"a":{"b":[{},[],-0,1.5e3]}}'), (b"{", b"  {"), (b"0.3.0", b"\x1f"),
        (b"0.3.0", b"\\/\\b\\f"), (b"bfloat16", b""), (b"}}}", b"}}} \n"), (b'"b":', b'"w":'),
        (b'"w":{"shape":[2,3],"dtype":"float32","dtype_id":0,' + w + b"},", b""))]
    head = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]%s}%s}'
    text = ',"v":{"dtype":"%s","shape":%s,"data_offsets":[8,%d]}'
    files += [("types", safetensors_file(
        head % ("", text % (code, [count], 8 + count * int(bits) // 8)),
        bytes(8 + count * int(bits) // 8)))
              for code, bits, _ in tensorfmt.ST_TYPES + [("Q8", "8", "")] for count in (8, 9)]
    empty = text % ("U8", "[0]", 8)
    files += [("entries", safetensors_file(head % pair, bytes(8))) for pair in (
        (',"x":1', ""), ("", ',"__metadata__":null'), ("", ',"__metadata__":{"a":5}'),
        ("", ',"v":null'), ("", "   "), ("", "x"), ("", ", " + empty[1:]),
        ("", empty.replace("[8,", "[9,")), ("", text % ("U8", "[0,0,3]", 8)),
        ("", text % ("U8", "[4294967296,4294967296,0]", 8)))]
    files.append(("safetensors: trailing comma", safetensors_file(head % ("", ","), bytes(8))))
    files += [("limits", struct.pack("<Q", n) + b"{}" + bytes(6)) for n in (
        0, 1, 2, 3, 8, 9, 100000000, 100000001, 1 << 63)]
    return files + record_files()


def record_files():
    """Return rows (name, bytes) of records of Burn that are not usual, good or bad."""
    usual = {"bytes": struct.pack("<2f", 1, 2), "shape": [2], "dtype": "F32"}
    items = [dict(usual, **changes) for changes in (
        {}, {"x": 1}, {"bytes": "a"}, {"bytes": []}, {"shape": {}}, {"shape": [2.0]},
        {"shape": [-1]}, {"shape": [True]}, {"shape": None}, {"dtype": "Bool", "shape": [8]},
        {"dtype": "F16"}, {"dtype": "bf16"}, {"dtype": {"QFloat": {}}}, {"dtype": None},
        {"shape": [3]}, {"bytes": b"", "shape": [0]}, {"shape": [1 << 32, 1 << 33]})] + [
        {"value": value, "shape": [2]} for value in ([1, 2], {})]
    files = [("item", record_file(item)) for item in items]
    files += [("version", record_file(None).replace(
        b"\xa60.21.0", tensorfmt.msgpack_dumps(version)))
              for version in ("0.13.2", "0.14.0", "0.9", "1.2.0", "0.x", "")]
    whole = record_file(usual)
    return files + [("cut", whole[:n]) for n in range(170, len(whole), 5)] + [("cut", whole + b"x")]


def sparse_entries():
    """Return entries of zTensor 0.1 that are wrong in one way each, or nearly so."""
    place, csr = {"offset": 64, "size": 16}, {"sparse_format": "csr", "indptr": [0, 1, 4]}
    usual = dict(place, dtype="float32", encoding="raw", shape=[2, 4], layout="sparse")
    rows = [{"layout": "sparsecsr", "shape": [2]}, {"layout": "sparsecsr"}, {"layout": "sparsecoo"},
            {"layout": "sparsecsr", "dtype": "float64", "size": 12, "data_endianness": "big"},
            {"layout": "sparsecsr", "shape": [1, 4]}, {"sparse_format": "ellpack"}]
    rows += [dict(row, sparse_format="coo") for row in (
        {"nnz": "4"}, {"nnz": 9}, {"nnz": 3, "coords": [0] * 6}, {"encoding": "lz4"}, {"nnz": 4},
        {"coords": [0, 0, 1, 1, 0, 1, 2, 3]})]
    rows += [dict(dict(csr, indices=[0, 0, 1, 2]), **row) for row in (
        {"nnz": 3}, {"shape": [3, 4]}, {"nnz": 4}, {"nnz": "4"}, {"indices": [0, 0, 1, 4]},
        {"indices": [0, 0, 1, -1]}, {"indices": "x"}, {"indices": [1, 0, 2, 1]},
        {"shape": [2, 4, 1]}, {"sparse_format": "bsr"})]
    rows += [dict(csr, indices=dict(place, **row)) for row in (
        {}, {"size": 32}, {"size": 31}, {"offset": 66}, {"offset": 1 << 40}, {"dtype": "int8"},
        {"encoding": "lz"}, {"data_endianness": "middle"})]
    rows += [dict(csr, indptr=indptr) for indptr in (
        [0, 1, 4], 5, {"offset": 64}, dict(place, size=24), dict(place, offset=80), place,
        dict(place, dtype="int8"), dict(place, encoding="lz4"), dict(place, size=17))]
    rows += [dict(csr, indptr=place, shape=[1, 4]), dict(csr, indptr=place, shape=[])]
    return [dict(dict(usual, name="s%d" % i), **row) for i, row in enumerate(rows)]


def odd_files():
    """Return rows (name, bytes) of files that can be read, with much that is not usual."""
    fine = {"offset": 64, "size": 16, "dtype": "float32", "encoding": "raw", "shape": [4]}
    bits = [("b%d" % i, [1], code, "01020304") for i, code in enumerate((
        {"Bool": "U32"}, "Flex32", "F8", {"Odd": 1}, QUANTIZED[3].code))] + [
        ("b", [4], {"Bool": "U8"}, "00010203"), ("c", [1], "Bool", "01")]
    digits = "%08x" % tensorfmt.crc32c(b"\0\0\x80\x3f" * 4)
    sums = [dict(fine, name="k%d" % i, checksum=text) for i, text in enumerate((
        "crc32c:0X" + digits, "crc32c:" + digits, "md5:" + digits, "CRC32C:" + digits, "crc32c",
        "", "sha256", "crc32c:", "sha256:00", "crc32c:0x1", "crc32c:+1", "sha256:" + "0" * 64))]
    return of_chosen([
        ("odd.mpk", odd_record()), ("sparse_entries.zt", ztensor_file(*sparse_entries())),
        ("sums.zt", ztensor_file(*sums)), ("dtypes.bpk", make_burnpack(*bits)),
        ("names.zt", dumps({"n\n" + "x" * 90: F32, " ": F32, "": F32}, format="ztensor")),
        ("sparse.zt", dumps({"s": tensor(dtype="float16", shape=(3, 5), components=CSR)},
                            format="ztensor", checksum="crc32c", data_endianness="big")),
        ("bignum.bpk", burnpack_file(b"\xa1\x67tensors\xa1\x61a\xa3\x65dtype\xa1\x61X\xc2\x51\1"
                                + bytes(16) + b"\x65shape\x80\x6cdata_offsets\x82\0\0", b"")),
        ("lenient.safetensors", safetensors_file(
            '{"__metadata__" :null,\t"\\u00e9\\n":{"data_offsets":[ 0,4 ],"shape":[8 ],"dtype":'
            '"F4","x":[[1,{"y":[]}],[2],true]},"e":{"dtype":"Q","shape":[0,9],"data_offsets":'
            '[4,4]},"b":{"sh\\u0061pe":[],"dtype":"BOOL","data_offsets":[4,5]}}\r\n  ', bytes(5))),
        ("spans.bpk", burnpack_of_spans([(0, 8)] + [(i, i + 4) for i in (4, 6, 7, 8, 9, 10, 10)],
                            bytes(14) + b"x")),
        ("packed.bpk", burnpack_with(dtype="U8", shape=[4]).rstrip(b"\0") + b"abcd"),
        ("empty.bpk", dumps({"e": []}, format="burnpack")[:206])] + [
        ("as others read it", data) for data in files_of_others()])


def files_of_others():
    """Return files that real libraries take for something else, or refuse."""
    long = struct.pack("<4s6I", b"MAG!", 1, 0, 0, 1, 0, 1) + b"\1" + bytes(7)
    long += struct.pack("<I", 65536) + b"k" * 65536
    long = long[:8] + struct.pack("<I", tensorfmt.crc32(long)) + long[12:]
    one = "91ce00000001 ce00000001 c404 0000803f ce00000000"
    return [
        long, ztensor_file(k=-1 - (1 << 63)), primitiv_file(0x300, "d200000001 91a161" + one),
        primitiv_file(0x300, "ce00000002 91a161" + one + "92a161a162" + one),
        primitiv_file(0x400, "80 81a161ca3f800000"), tensorbuffers_with(
            {"tensors[0].vtable": uint16s(16, 32, 24, 8, 0), "tensors[0].data_size": 4}),
        tensorbuffers_with({"tensors[0].vtable": uint16s(16, 32, 20)})]
