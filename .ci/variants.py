# SPDX-License-Identifier: MIT
"""Files that are not usual, good or bad: what must hold for every file must hold for them.

Most are a good file with one change; the builders are those of test_tensorfmt.py, [10]. The file
errors.txt of .ci/accepted has a line for each.

    [1] generations        later generations and records, usual and odd, good and bad
    [2] odd files          that can be read, with much that is not usual
"""
import struct

import tensorfmt
from test_tensorfmt import (
    burnpack, COO, CSR, dumps, F32, flat_file, INF, mag300, make_burnpack, Map, NAN,
    odd_record, of_chosen, one2, one_burnpack, part2, primitiv, QUANTIZED, record,
    safetensors, scheme, spans, spec_mag, tensor, tohex, unhex,
    zt2, zt2_objects, zt2_of_all_kinds, zt2_parts, ztensor, ztensor_raw)

# -- [1] generations ----------------------------------------------------------------------------


def object_files():
    """Return rows (name, bytes) of files of zTensor 2 that are not usual, good or bad."""
    (blobs, _, sparse, coo), csr = zt2_parts(), "zt.sparse_csr/1"
    files = [("fine", zt2_of_all_kinds())]

    def two(name, data=blobs, **objects):
        files.append((name, zt2_objects(objects, data)))

    def one(name, *args, **more):
        two(name, w=one2(*args, **more))
    two("faults", f4=one2("u8", 4, 4096, 8191, type="f4_e2m1"), xxh3=one2(
        "f32", 1, 8, 2, digest="xxh3:0"), hash=one2("f32", 1, 8, 2, digest="xxh3:" + "0" * 16),
        bool=one2("u8", 2, 5, 5, type="bool"), sha=one2(
        "f32", 1, 8, 2, digest="sha256:" + "0" * 64),
        f32=one2("f32", 1, 8, 3), half=one2("u8", 1, 8, 8, digest="sha256:00"), i=one2(
        "f32", 1, 8, 3), shard=one2("f32", 1, 8, 2, shard="y"), type=one2("u8", 1, 8, 1,
        type="complex64"), length=one2("u8", 1, 8, 8, decoded_length=8), coded=one2(
        "u8", 1, 8, 8, encoding="x"))
    for kind in ("xxh3", "xx.h-3_", "Xxh3", ""):
        for digits in ("0f", "0F", "", "g"):
            one("digest", "f32", 1, 8, 2, digest=kind + ":" + digits)
    for start, size in ((0, 8), (1, 4096), (2, 8), (8, 8), (9, 8), (10, 8), (1, 12289)):
        one("place", "u8", start, size, size)
    one("unaligned", "u8", 1.5, 8, 8)
    for rows in (((1, 8192), (2, 8)), ((1, 8192), (2, 4096)), ((1, 4096), (2, 8)), ((3, 8), (3, 8)),
                 ((3, 8), (3, 9)), ((1, 12288), (2, 8), (3, 8))):
        two("overlap", **dict([("t%d" % i, one2("u8", at, size, size))
                               for i, (at, size) in enumerate(rows)]))
    data = zt2_objects({"w": one2("u8", 1, 8192, 8192)}, blobs[:1])
    files += [("overlap", data), ("overlap", data[:-40] + bytes(8152) + data[-40:])]
    for size, at, nbytes in ((48, 1, 8), (47, 1, 8), (4135, 1, 0), (4136, 1, 0), (4143, 1, 8),
                             (4144, 1, 8), (1 << 40, 1 << 20, 8)):
        for name in ("x-1", "y"):
            files.append(("shard", zt2_objects({
                "w": one2("u8", at, nbytes, nbytes, shard=name), "v": one2("f64", 1, 8)}, blobs,
                shards={"x-1": {"size": size, "digest": "a:0"}})))
    for name in ("x" * 64, "x" * 65, ".x", "x.", "", "x/y", "\u00e9"):
        files.append(("a shard", zt2_objects({}, shards={name: {"size": 48, "digest": ""}})))
    for key, value in (("size", None), ("digest", 5), ("size", -1)):
        shard = dict({"size": 48, "digest": ""}, **{key: value})
        files.append(("a shard", zt2_objects({}, shards={"x": shard})))
    for code, nbytes, shape, kind in (
            ("u8", 1, [2], "f4_e2m1"), ("u8", 2, [3], "f4_e2m1"), ("u8", 1, [3], "f4_e2m1"),
            ("u8", 8, [9], "f8_e5m2"), ("f32", 8, [2], "complex64"), ("f64", 8, [], "complex128"),
            ("f64", 16, [1], "complex128"), ("f32", 16, [], "complex128"), ("u8", 8, [8], "bool"),
            ("i8", 8, [8], "bool"), ("u8", 3, [8], "ex.type"), ("u8", 8, [8], "f8_e8m0"),
            ("u8", 8, [8], "f8_e4m3fnuz"), ("bf16", 8, [4], None), ("f16", 8, [5], None)):
        one("type", code, 1, nbytes, *shape, **({"type": kind} if kind else {}))
    for shape in ([1] * 64, [1] * 65, [1 << 32, 1 << 32], [1 << 32, 1 << 32, 0], [(1 << 64) - 1]):
        two("shape", w=dict(one2("u8", 1, 1, *shape), layout="ex"))
    for layout, shape, changes in (
            (csr, [2, 9], {}), (csr, [2], {}), (csr, [2, 9, 1], {}), (csr, [3, 9], {}),
            (csr, [2, 9], {"indptr": part2("u32", 5, 12)}), (csr, [2, 9], {"indices": None}),
            (csr, [2, 9], {"indices": part2("u64", 7, 24)}), (csr, [2, 9], {"x": coo["coords"]}),
            (csr, [2, 9], {"indptr": part2("u64", 5, 24, type="u")}),
            (csr, [2, 9], {"indices": part2("i64", 7, 16), "indptr": part2("i64", 5, 24)}),
            ("coo", [4, 3], coo), ("coo", [4], coo), ("coo", [], coo), ("coo", [4, 3, 2], coo),
            ("coo", [4, 3], dict(coo, values=part2("f32", 1, 4))),
            ("coo", [4, 3], dict(coo, coords=part2("u64", 6, 16))),
            ("coo", [4, 3], dict(coo, coords=part2("u32", 6, 15))),
            ("coo", [4, 3], {"values": part2("f32", 1, 8)}), ("dense", [2], coo), ("ex", [2], {}),
            ("dense", [2], {}), ("ex", [2], {"a": part2("u8", 1, 8, encoding="y",
                                                         decoded_length=5)})):
        parts = dict(sparse, **changes) if layout is csr else changes
        two("sparse", w={"shape": shape, "layout": "zt.sparse_coo/1" if layout == "coo" else layout,
                         "parts": dict([row for row in parts.items() if row[1] is not None])})
    one("coded", "f32", 1, 8, 2, encoding="raw", decoded_length=8)
    one("coded", "f32", 1, 8, 2, encoding="ex/1", decoded_length=7)
    for most in (32768, 32769):
        one("coded zstd", "u8", 1, 1, most, encoding="zt.zstd-seekable/1", decoded_length=most)
    files += [("manifest", zt2(**{key: value})) for key, value in (
        ("start", 4096), ("start", 12288), ("nbytes", (256 << 20) + 1), ("nbytes", 114))]
    files += [("a data shard", zt2(nbytes=0, start=start, hash=digest))
              for start, digest in ((0, 0), (0, 1), (4096, 0))]
    return files


def later_files():
    """Return rows (name, bytes) of the formats that came later, good or bad."""
    files = object_files()
    w, n = b'"shape":[2,3],"dtype":"float32","dtype_id":0,"offset":0,"nbytes":24', b'"offset":8192,'
    for aux in (0, 1):
        for number in range(14):
            size = 6 * (4, 2, 2, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1)[number]
            files.append(("number", mag300((w, w.replace(b":0,", b":%d," % number, 1).replace(
                b":24", b":%d" % size)), aux=aux)))
    files += [("place", mag300(change)) for change in (
        (b'"w":{' + w + b"},", b""), (b'"offset":8200', b'"offset":8199'), (n, b'"offset":8191,'),
        (b'"offset":8200', b'"offset":4102'), (b'"offset":8200', b'"offset":4096'),
        (n, b'"offset":0,'), (b'"offset":8200', b'"offset":0'), (n, b'"offset":16384,'),
        (b'"nbytes":0', b'"nbytes":4'))]
    files += [("header", mag300(**{key: value})) for key, value in (
        ("meta_span", 0), ("meta_span", 1), ("meta_span", 12296), ("blob_span", 8199),
        ("blob_offset", 8192), ("blob_offset", 12288), ("blob_offset", 16384), ("blob_span", 0),
        ("meta_offset", 45), ("meta_offset", 12296), ("meta_offset", 12297))]
    moved = mag300()
    files += [("header", moved[:12] + struct.pack("<Q", 44 + i) + moved[20:44] + b" " * i + moved[
        44:4096 - i] + moved[4096:]) for i in (1, 9)]
    files += [("JSON", mag300(change)) for change in (
        (b"null", b'"\\u20ac\\ud83d\\ude42"'), (b"null", b"NaN"), (b"null", b'"\\ud800"'),
        (b"null", b"9" * 4300), (b"null", b"9" * 4301), (b"0.1", b"1e400"), (b"true", b"tru"),
        (b"null", b"[" * 124 + b"]" * 124), (b"null", b"[" * 125 + b"]" * 125),
        (b"true", b'{"a":1,"a":2}'), (b"true", b'{"a":{"b":[{},[],-0,1.5e3]}}'), (b"{", b"  {"),
        (b"0.3.0", b"\x7f"), (b"0.3.0", b"\x1f"), (b"0.3.0", b"\\/\\b\\f"), (b"bfloat16", b""),
        (b'"dtype":"bfloat16"', b'"dtype":"bf16","x":1'), (b"}}}", b"}}} \n"),
        (b'"dtype":"bfloat16"', b'"dtype":5'), (b'"b":', b'"\\u0062":'), (b'"b":', b'"w":'))]
    head = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]%s}%s}'
    text = '"v":{"dtype":"%s","shape":%s,"data_offsets":[8,%d]}'
    for row in tensorfmt.ST_TYPES + [("Q8", "8")]:
        for count in (8, 9):
            size = 8 + count * int(row[1]) // 8
            files.append(("types", safetensors(head % ("", "," + text % (row[0], [count], size)),
                                               bytes(size))))
    empty = "," + text % ("U8", "[0]", 8)
    files += [("entries", safetensors(head % pair, bytes(8))) for pair in (
        (',"x":1', ""), ("", ',"__metadata__":null'), ("", ',"__metadata__":{"a":5}'),
        ("", ',"__metadata__":5'), ("", ',"v":null'), ("", ',"w":1'), ("", "   "), ("", "x"),
        ("", empty[1:]), ("", ",x" + empty[1:]), ("", ", " + empty[1:]), ("", ","),
        ("", empty.replace("[8,", "[9,")))]
    files += [("entries", safetensors(head % ("", "," + text % row), bytes(8))) for row in (
        ("U8", "[0,0,3]", 8), ("U8", "[1]", 9), ("I64", "[]", 16), ("U8", [1] * 40, 8),
        ("U8", "[4294967296,4294967296,0]", 8), ("I8", "[18446744073709551615,0]", 8),
        ("U8", "[1152921504606846976,2,2,2]", 9), ("U8", "[-1]", 9))]
    files += [("limits", struct.pack("<Q", n) + b"{}" + bytes(6)) for n in (
        0, 1, 2, 3, 8, 9, 100000000, 100000001, 1 << 63)]
    return files + record_files()


def record_files():
    """Return rows (name, bytes) of records of Burn that are not usual, good or bad."""
    dumps, files, f32 = tensorfmt.msgpack_dumps, [], struct.pack("<2f", 1, 2)

    def of(**entry):
        return Map([(key, entry[key]) for key in ("bytes", "value", "shape", "dtype", "x")
                    if key in entry])
    data = dict(bytes=f32, shape=[2], dtype="F32")
    for name, entry in [("param", dict(data, **row)) for row in (
            {}, {"x": 1}, {"bytes": "a"}, {"bytes": []}, {"shape": {}}, {"shape": [2.0]},
            {"shape": [-1]}, {"shape": [True]}, {"shape": None}, {"dtype": "Bool", "shape": [8]},
            {"dtype": "F16"}, {"dtype": "bf16"}, {"dtype": {"QFloat": {}}}, {"dtype": None},
            {"shape": [3]}, {"bytes": b"", "shape": [0]}, {"shape": [1 << 32, 1 << 33]},
            {"dtype": "Flex32"})] + [("value", {"value": [1, 2], "shape": [2]}),
                                     ("value", {"value": {}, "shape": [1]})]:
        files.append((name, record(of(**entry))))
    f, two = of(**data), {"id": "d5m78v4vc0ahe", "param": of(**data)}
    for item in (two, {"id": 5, "param": f}, {"id": "a", "param": 5}, {"id": None, "param": f},
                 [f, [f, None]], {"a": [two, {"b": two}]}, 5, [b"ab", 1.5, [1, 2]],
                 {"a": {"value": [1]}}, {"a.b": 1, "a": {"b": 2}}, {"": {"": f}},
                 {"a": f, "b": of(value=[1, 2], shape=[2])}, {"bytes": b"a", "shape": [1]},
                 [[[[[1], 2], 3], 4], 5], {"a": "b" * 24, "c": "b" * 24, "d": "b" * 23}):
        files += [("items", record(tohex(dumps(item)), end=end)) for end in ("a25f6290", "")]
    for version in ("0.13.2", "0.14.0", "0.9", "1.2.0", "0.x", "0", "", "0.21.0"):
        files.append(("version", record(None).replace(b"\xa60.21.0", dumps(version))))
    whole = record(f)
    files += [("cut", whole[:n]) for n in range(170, len(whole), 3)] + [("cut", whole + b"x")]
    return files


# -- [2] odd files ------------------------------------------------------------------------------


def odd_files():
    """Return rows (name, bytes) of files that can be read, with much that is not usual."""
    usual = {"offset": 64, "size": 16, "dtype": "float32", "encoding": "raw", "shape": [2, 4]}
    pointers, place = [0, 1, 4], {"offset": 64, "size": 16}
    wrong = [dict(dict(usual, name="s%d" % i, layout="sparse"), **row) for i, row in enumerate((
        {"sparse_format": "ellpack"}, {"sparse_format": 5}, {"sparse_format": "coo", "nnz": "4"},
        {"sparse_format": "coo", "nnz": 9}, {"sparse_format": "coo", "nnz": 3, "coords": [0] * 6},
        {"sparse_format": "coo", "coords": [0, 0, 1, 1, 0, 1, 2, 3]},
        {"sparse_format": "coo", "encoding": "lz4"}, {"sparse_format": "coo", "nnz": 4},
        {"layout": "sparsecsr", "shape": [2]}, {"layout": "sparsecsr"}, {"layout": "sparsecoo"},
        {"layout": "sparsecsr", "dtype": "float64", "size": 12, "data_endianness": "big"},
        {"layout": "sparsecsr", "shape": [1, 4]}, {"dtype": "float8"}))]
    wrong += [dict(dict(usual, name="c%d" % i, layout="sparse", sparse_format="csr",
                        indices=[0, 0, 1, 2]), indptr=pointers, **row) for i, row in enumerate((
        {"nnz": 3}, {"shape": [2]}, {"shape": [3, 4]}, {"shape": [2, 1]}, {"nnz": 4}, {"nnz": -1},
        {"nnz": "4"}, {"indices": [0, 0, 1, 4]}, {"indices": [0, 0, 1, -1]}, {"indices": "x"},
        {"indices": [0, 0, 1]}, {"indices": [1, 0, 2, 1]}, {}, {"shape": [2, 4, 1]},
        {"sparse_format": "bsr"}))]
    wrong += [dict(dict(usual, name="i%d" % i, layout="sparse", sparse_format="csr",
                        indptr=pointers), indices=dict(place, **row)) for i, row in enumerate((
        {}, {"size": 32}, {"size": 31}, {"offset": 66}, {"offset": 1 << 40}, {"dtype": "int8"},
        {"encoding": "lz"}, {"data_endianness": "middle"}))]
    wrong += [dict(dict(usual, name="p%d" % i, layout="sparse", sparse_format="csr"),
                   indptr=indptr, **row) for i, (indptr, row) in enumerate((
        (pointers, {}), (5, {}), ({"offset": 64}, {}), (dict(place, size=24), {}),
        (dict(place, offset=80), {}), (dict(place, dtype="int8"), {}),
        (dict(place, encoding="lz4"), {}), (place, {}), (place, {"shape": [1, 4]}),
        (dict(place, dtype="uint32"), {"shape": [3, 4]}), (dict(place, size=17), {}),
        (place, {"shape": []})))]
    fine = dict(usual, shape=[4])
    raw = b"\xbf" + b"".join([tensorfmt.cbor_dumps(part) for pair in dict(fine, name="a").items()
                              for part in pair]) + unhex(
        "6174 d82a01 6162 7f6161ff 6163 5f 4101 42ffff ff 6164 a2 f501 c76178 9fff 6165 f7 6166 80"
        "6167 a0 6168 8105 ff")
    bits = [("b%d" % i, [1], code, "01020304") for i, code in enumerate((
        {"Bool": "U32"}, "Flex32", "F8", {"Odd": 1}, QUANTIZED[3][2]))] + [
        ("b", [4], {"Bool": "U8"}, "00010203"), ("c", [1], "Bool", "01")]
    names = [("n\n" + "x" * 90, F32), (" " * 3, F32), ("", F32),
             ("&<", tensor([NAN, -0.0, INF, 1.0]))]
    ranges = [(0, 8)] + [(i, i + 4) for i in (4, 6, 7, 8, 9, 10, 10)]
    digits = "%08x" % tensorfmt.crc32c(b"\0\0\x80\x3f" * 4)
    sums = [dict(fine, name="k%d" % i, checksum=text) for i, text in enumerate((
        "crc32c:0X" + digits, "crc32c:" + digits, "md5:" + digits, "CRC32C:" + digits, "crc32c",
        "", "sha256", "crc32c:", "sha256:00", "crc32c:0x1", "crc32c:+1", "sha256:" + "0" * 64))]
    steps = [{"id": i, "operation": -i, "output": 9, "input_operations": [1] * i} for i in range(3)]
    sparse = [("s", tensor(dtype="float16", shape=(3, 5), components=CSR)), ("w", F32),
              ("c", tensor(dtype="int8", shape=(3, 5), components=dict(COO, values=[1, 2, 3, 4])))]
    return of_chosen([
        ("odd.mpk", odd_record()),
        ("bignum.bpk", burnpack(b"\xa1\x67tensors\xa1\x61a\xa3\x65dtype\xa1\x61X\xc2\x51\1"
                                + bytes(16) + b"\x65shape\x80\x6cdata_offsets\x82\0\0", b"")),
        ("mistakes.zt", ztensor(*wrong)), ("tokens.zt", ztensor_raw(b"\x81" + raw)),
        ("dtypes.bpk", make_burnpack(*bits)), ("names.zt", dumps(names, format="ztensor")),
        ("names.tbs", dumps(names, format="tensorbuffers", operations=steps)),
        ("names.safetensors", dumps(names, format="safetensors", metadata={"\n<": "\u2028&"})),
        ("lenient.safetensors", safetensors(
            '{"__metadata__" :null,\t"\\u00e9\\n":{"data_offsets":[ 0,4 ],"shape":[8 ],"dtype":'
            '"F4","x":[[1,{"y":[]}],[2],true]},"e":{"dtype":"Q","shape":[0,9],"data_offsets":'
            '[4,4]},"b":{"sh\\u0061pe":[],"dtype":"BOOL","data_offsets":[4,5]}}\r\n  ', bytes(5))),
        ("spans.bpk", spans(ranges, bytes(14) + b"x")), ("sums.zt", ztensor(*sums)),
        ("sparse.zt", dumps(sparse, format="ztensor", checksum="crc32c", data_endianness="big")),
        ("packed.bpk", one_burnpack(dtype="U8", shape=[4]).rstrip(b"\0") + b"abcd")] + [
        ("upstream%d" % i, data) for i, data in enumerate(upstream_files())])


def upstream_files():
    """Return files that real libraries take for something else, or refuse; and some like them."""
    long = struct.pack("<4s6I", b"MAG!", 1, 0, 0, 1, 0, 1) + b"\1" + bytes(7)
    long += struct.pack("<I", 65536) + b"k" * 65536
    long = long[:8] + struct.pack("<I", tensorfmt.crc32(long)) + long[12:]
    entry = (b"\x81\xbf\x64name\x61a\x66offset\x18\x40\x64size\x04\x65dtype\x67float32"
             b"\x65shape\x81\x01\x68encoding\x63raw\x66layout\x65dense")
    tiny = (b"\xa1\x67tensors\xa1\x61a\xa4\x65shape\x81\x01\x65dtype\x63F32"
            b"\x6cdata_offsets\x82\x00\x04\x68param_id\x07")
    fine, one = scheme("Q8S")["QFloat"], "91ce00000001 ce00000001 c404 0000803f ce00000000"
    return [long, spec_mag((24, "01"), (40, "00"))] + [
        burnpack(tiny.replace(*pair)) for pair in (
            (b"\7", b"\xc6\xf6"), (b"\x82\0\4", b"\x9f\0\4\xff"),
            (b"\x63F32", b"\x7f\x63F32\xff"), (b"\x68param_id\7", b"\x61x\xf0"),
            (b"\x65dtype", b"\x45dtype"), (b"\x67tensors", b"\x47tensors"))] + [
        primitiv(0x300, "d200000001 91a161" + one), primitiv(0x400, "80 81a161ca3f800000"),
        primitiv(0x400, "80 81a161ce00000001"), safetensors({"w": {"dtype": "Q8"}}),
        primitiv(0x300, "ce00000002 91a161" + one + "92a161a162" + one),
        flat_file((76, "0000"), (104, "04")), flat_file((72, "1400")),
        safetensors({"w": {"dtype": "F4", "shape": [16]}})
    ] + [ztensor_raw(entry + unhex(text) + b"\xff", data=bytes(4)) for text in (
        "616b 3b7fffffffffffffff", "616b 3b8000000000000000", "616b" + "81" * 125 + "00",
        "616b" + "81" * 60 + "c6" * 66 + "00", "68636865636b73756d f6", "68636865636b73756d f7",
        "68636865636b73756d c0f6")] + [one_burnpack(dtype=code) for code in (
            scheme("Q8S", store="Nativa"), scheme("Q8S", store={"PackedU32": -1}),
            scheme("Q8S", store=[1]), scheme("Q8S", level=(4,)), scheme("Q3S"),
            {"QFloat": dict(fine, level={"Block": {"storage": [1] * 5}})},
            {"QFloat": Map([(key.encode(), fine[key]) for key in fine])},
            {b"Bool": "Native"}, "u32")] + [
        dumps({"e": []}, format="burnpack")[:206], dumps({}, format="burnpack")[:206]]
