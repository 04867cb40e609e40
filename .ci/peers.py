# SPDX-License-Identifier: MIT
"""Tests beside other libraries: `python3 test_tensorfmt.py` runs them, too.

What is not installed is skipped by name (with TENSORFMT_PEERS in the environment its absence is a
failure).

    [1] peers              other libraries, random data
    [2] workers, remote    joblib, Dask; fsspec and a web server
    [3] at home            torch, jax and others that its users have
    [4] generations        real libraries of each generation write and read random models
"""
import io
import os
import struct
import sys

import tensorfmt
import test_tensorfmt as tests
from tensorfmt import FormatError, dumps, load, tensor
from test_tensorfmt import (
    CBOR, Changed, check_workers, content, converted, count_of, DTYPES, error_of,
    folder_for, FolderCase, FORMATS, HARD, HERE, keep_in_worker, make_bytes,
    make_entry, many_tensors, MSGPACK, random_keys, read_file, row_of, STORED,
    TestCase, tohex, unhex, write_file, ZSTD, zstd_missing)

# -- [1] peers ----------------------------------------------------------------------------------


class PeerCase(TestCase):
    def peer(self, name):
        """Return another library; without it skip, or fail where peers are promised."""
        from importlib import import_module
        try:
            return import_module(name)
        except ImportError:
            if os.environ.get("TENSORFMT_PEERS"):
                raise
        return self.skipTest("no " + name)


class PeerTest(PeerCase):
    def test_cbor2_and_msgpack(self):
        cbor2, msgpack = self.peer("cbor2"), self.peer("msgpack")
        for text, value in CBOR:
            if "simple(" not in repr(value):  # it has a class of its own for them
                made = cbor2.dumps(value, canonical=isinstance(value, float))
                self.assertEqual(tohex(made), text)
        for text, value in MSGPACK:
            self.assertEqual(tohex(msgpack.packb(value)), text)

    def test_flatbuffers(self):
        self.peer("flatbuffers")
        from flatbuffers.builder import Builder
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
        data = bytes(builder.Output())
        self.assertEqual(tensorfmt.flat_loads(data, (
            ("a", "string", None, ""), ("b", ["Q"], [], ""), ("c", "I", 7, ""),
            ("d", "d", 0.0, ""))), {"a": "h\u00e9llo", "b": [1, 2, 3], "c": 7, "d": 2.5})

    def test_zstandard(self):
        zstandard = self.peer("zstandard")
        values, sized = bytes(range(64)) * 50, zstandard.ZstdCompressor()
        data, stream = sized.compress(values), sized.compressobj()
        packed = load(dumps({"w": tensor(values)}, format="ztensor", encoding="zstd"))["w"].raw
        self.assertEqual(zstandard.get_frame_parameters(bytes(packed)).content_size, len(values))
        skippable = unhex("502a4d1803000000616263")
        checked = zstandard.ZstdCompressor(write_checksum=True).compress(values)
        for name, blob, fine in (("sized", data, True), ("skippable last", data + skippable, True),
                ("unsized", stream.compress(values) + stream.flush(), True),
                ("two frames", sized.compress(values[:9]) + sized.compress(values[9:]), True),
                ("skippable first", skippable + data, True), ("checked", checked, True),
                ("cut", data[:-3], False), ("rubbish", b"rubbish", False),
                ("rubbish behind", data + b"rubbish", False), ("longer", data + data, False),
                ("shorter", sized.compress(values[:-4]), False),
                ("bomb", sized.compress(bytes(1 << 24)), False),
                ("changed", checked[:-9] + b"\0" + checked[-8:], False)):
            file = make_entry(blob, dtype="uint8", shape=[len(values)], encoding="zstd",
                              layout="dense")
            with self.subTest(blob=name):
                self.assertEqual(bool(tensorfmt.verify(file)), fine)
                item = load(file)["s"]
                if fine:
                    self.assertEqual((item.tobytes(), item[5:7].tolist()), (values, [5, 6]))
                else:
                    self.assertEqual(error_of(FormatError, item.tobytes).tensor, "s")

    def test_zstd_modules_of_another_kind(self):
        from types import ModuleType
        zstd, made = self.peer("zstandard"), ModuleType("made")
        made.compress, made.ZstdCompressor = zstd.compress, lambda level: object()
        made.ZstdFile = lambda stream: zstd.ZstdDecompressor().stream_reader(stream)
        sys.modules["made"] = made
        with Changed(tensorfmt, "ZSTD_MODULES", ("made",)), Changed(tensorfmt, "BLOCK", 16):
            data = dumps({"w": tensor(make_bytes(100))}, format="ztensor", encoding="zstd")
            self.assertEqual(load(data)["w"].tobytes(), make_bytes(100))
        del sys.modules["made"]

    def test_numpy_sees_every_tensor(self):
        numpy = self.peer("numpy")
        for kind, options in STORED:
            row = row_of(kind)
            for dtype in row.dtypes:
                for shape in [shape for shape in ((), (3,), (2, 3), (4, 1, 2), (0, 3))
                              if row.holds(dtype, shape)]:
                    data = make_bytes(tensorfmt.ITEMSIZE[dtype] * count_of(shape))
                    item = load(dumps({"w": tensor(data, dtype, shape)}, format=kind,
                                      **options))["w"]
                    with self.subTest(format=kind, dtype=dtype, shape=shape, **options):
                        self.check_array(numpy, numpy.asarray(item), item, data)
        data = dumps({"w": tensor([[1, 2, 3], [4, 5, 6]], "bfloat16")}, format="ztensor",
                     data_endianness="big")  # swapped halves: seen backwards
        for item in (load(data)["w"], load(data)["w"][::-1], load(data)["w"][:, ::-2]):
            bits = numpy.asarray(item).view("u2")
            self.assertEqual([x << 16 for x in bits.ravel().tolist()], [
                struct.unpack("<I", struct.pack("<f", x))[0] for x in item.flat])

    def check_array(self, numpy, array, item, data):
        coded, nbytes = item.dtype not in tensorfmt.STRUCT_CODE, item.itemsize  # bfloat16, float8
        self.assertEqual((array.shape, array.flags.writeable), (item.shape, False))
        self.assertIn(array.dtype.newbyteorder("=").name,  # ml_dtypes' if that is loaded
                      [item.dtype] + ["void%d" % (8 * nbytes)] * coded)
        if not coded and item.encoding == "raw":
            self.assertEqual(item.__array_interface__["version"], 3)
        bits = array.view(array.dtype.byteorder.replace("|", "=") + "u%d" % nbytes)
        self.assertEqual(bits.astype("<u%d" % nbytes).tobytes(), data)
        if item.encoding == "raw" and item.size and not coded:
            self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))

    def test_numpy_indexing(self):
        from random import Random
        numpy, draw = self.peer("numpy"), Random(6)
        for _ in range(40):
            shape = tuple([draw.choice([1, 2, 3, 5, 7]) for _ in range(draw.randrange(1, 5))])
            array = numpy.arange(count_of(shape), dtype="f4").reshape(shape)
            data = array.astype("<f4").tobytes()
            for item in tests.TensorTest.kinds_of_storage(self, data, shape) * 5:
                key, _ = random_keys(draw, shape)
                part = item[key]
                seen = numpy.asarray(part)
                with self.subTest(shape=shape, key=str(key), of=item.format):
                    self.assertEqual(seen.tolist(), array[key].tolist())
                    if isinstance(part, tensorfmt.Tensor):
                        self.assertEqual(seen.shape, array[key].shape)
                        if item.source.mapping and item.encoding == "raw" and part.size:
                            self.assertTrue(numpy.shares_memory(
                                seen, numpy.frombuffer(item.raw, "u1")))

    def test_numpy_arrays_become_tensors(self):
        numpy = self.peer("numpy")
        for code in [order + code for code in "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 ?".split()
                     for order in "<>"]:
            base = numpy.arange(24).reshape(2, 3, 4).astype(code)
            for array in (base, base.T, base[:, ::-1, ::2], base[0, 0, 0:1], base[1, 2, 3],
                          numpy.asfortranarray(base), base[:0], numpy.array(base[1, 1, 1])):
                item = tensor(array)
                with self.subTest(code=code, shape=array.shape):
                    self.assertEqual((item.dtype, item.shape), (array.dtype.name, array.shape))
                    self.assertEqual(item.tobytes(), array.astype("<" + code[1:]).tobytes())
                    self.assertEqual(item.tolist(), array.tolist())
        wrapped = type("Wrapped", (), {"__array__": lambda self: numpy.eye(2, dtype="f2")})()
        self.assertEqual(tensor(wrapped, shape=numpy.int64(4)).tolist(), [1.0, 0.0, 0.0, 1.0])
        for value in (numpy.datetime64("2020-01-01"), numpy.ones(2, "m8[s]"), numpy.void(b"abc"),
                      numpy.zeros(2, "i4,f4"), numpy.array(["a"]), numpy.longdouble(1),
                      numpy.array([1j])):
            self.assertIn("cannot make a tensor of ", str(error_of(TypeError, tensor, value)))
        file = load(dumps({"w": numpy.eye(2, dtype="f2"), "s": numpy.float32(0.5)}, format="mag"))
        self.assertEqual((file["w"].tolist(), file["s"].shape), ([[1.0, 0.0], [0.0, 1.0]], ()))
        self.assertEqual(tensor([numpy.float32(0.5), numpy.int64(2)]).tolist(), [0.5, 2.0])

    def test_no_copy_where_none_is_allowed(self):
        numpy = self.peer("numpy")
        if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
            self.skipTest("numpy 1 has no copy=False")
        parts = {"values": [1.0, 2.0], "indptr": [0, 1, 2], "indices": [0, 1]}
        file = load(dumps({"f": tensor([1.5, 2.0], "float32"), "b": tensor([1.5], "bfloat16"),
                           "s": tensor(shape=(2, 2), components=parts)}, format="ztensor"))
        swapped = file["f"].copy(byteorder=">")
        for item, dtype in ((file["f"], None), (file["f"], "float32"), (file["b"], None),
                            (file["f"][::-1], None), (swapped, None)):
            array = numpy.asarray(item, dtype, copy=False)
            self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))
        made = [(file["b"], "float32"), (file["f"], "float64"), (file["s"], None),
                (swapped.copy(dtype="bfloat16", shape=(4,)), None)]
        if ZSTD:
            coded = load(dumps({name: tensor([1.5] * 99, dtype) for name, dtype in (
                ("f", "float32"), ("b", "bfloat16"))}, format="ztensor", encoding="zstd"))
            made += [(coded["f"], None), (coded["f"], "float32"), (coded["b"], None)]
        for item, dtype in made:
            with self.assertRaises(ValueError):
                numpy.asarray(item, dtype, copy=False)
            if dtype is None and item.dtype in tensorfmt.STRUCT_CODE:
                error_of(BufferError, item.__dlpack__, copy=False, max_version=(1, 0))
            self.assertEqual(numpy.asarray(item, dtype).shape, item.shape)
            self.assertEqual(numpy.array(item, dtype).shape, item.shape)

    def test_bits_that_numpy_shows_are_taken_back(self):
        numpy = self.peer("numpy")
        with Changed(sys, "modules", {name: module for name, module in sys.modules.items()
                                      if name != "ml_dtypes"}):
            for dtype in "bfloat16", "float8_e5m2", "float8_e4m3fn":
                item = tensor([[1.0, 2.0], [3.0, 4.0]], dtype)
                array = numpy.asarray(item)
                self.assertEqual(array.dtype.kind, "V")
                for bits in array, array.T, array[::-1]:
                    back = tensor(bits, dtype)
                    self.assertEqual((back.dtype, back.shape), (dtype, bits.shape))
                    self.assertEqual(back.tobytes(), numpy.ascontiguousarray(bits).tobytes())
                    if dtype == "bfloat16":  # nothing else has two bytes
                        self.assertEqual(tensor(bits).dtype, dtype)
                        self.assertEqual(tensor(bits, "float32").tolist(), back.tolist())
                    else:
                        error = error_of(TypeError, dumps, {"w": bits}, format="burnpack")
                        self.assertIn(dtype, str(error))
                        self.assertIn("tensor(x, DTYPE) says which", str(error))

    def test_numpy_rounds_the_same(self):
        numpy = self.peer("numpy")
        doubles = numpy.frombuffer(make_bytes(8 * 4000, 9), "<f8")
        doubles = doubles[numpy.isfinite(doubles)]
        whole = numpy.frombuffer(make_bytes(8 * 4000, 10), "<i8")
        with numpy.errstate(all="ignore"):
            for values, old, codes in (
                    (doubles, "float64", ("<f4", "<f2")), (whole, "int64", ("<f8", "<f4")),
                    (numpy.array([float(x) for x in HARD], "<f8"), "float64", ("<f4", "<f2")),
                    (doubles * 0 + 1.5, "float64", ("<f4", "<f2"))):
                for code in codes:
                    got = tensor(values.tobytes(), old).astype("float%d" % (8 * int(code[2])))
                    self.assertEqual(got.tobytes(), values.astype(code).tobytes())

    def test_scipy_agrees_on_sparse_tensors(self):
        numpy, sparse = self.peer("numpy"), self.peer("scipy.sparse")
        random = numpy.random.RandomState(5)
        for _ in range(20):
            shape = tuple([int(n) for n in random.randint(1, 30, 2)])
            matrix = sparse.random(shape[0], shape[1], 0.2, "csr", "float32", random)
            pairs = matrix.tocoo()
            csr = tensor(shape=shape, components={
                "values": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices})
            coo = tensor(shape=shape, components={
                "values": pairs.data, "coords": numpy.stack([pairs.row, pairs.col])})
            item = load(dumps({"m": csr}, format="ztensor"))["m"]
            self.assertEqual([item.tobytes(), coo.tobytes()], [matrix.toarray().tobytes()] * 2)
            parts = [numpy.asarray(item.components[key]) for key in ("values", "indices", "indptr")]
            again = sparse.csr_matrix((parts[0], parts[1].astype("int64"),
                                       parts[2].astype("int64")), shape=item.shape)
            self.assertEqual((again != matrix).nnz, 0)

    def test_ml_dtypes(self):
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        for kind, dtype, count in (("E4M3", "float8_e4m3fn", 256), ("E5M2", "float8_e5m2", 256),
                                   ("E8M0", "float8_e8m0fnu", 256), ("E2M1", "float4_e2m1fn", 16)):
            bits = numpy.arange(count, dtype="u1").view(getattr(ml_dtypes, dtype))
            wanted = [float(x) for x in bits.astype("f8")]
            self.assertSame([tensorfmt.minifloat(kind, i) for i in range(count)], wanted, kind)
        bits = numpy.arange(1 << 16, dtype="<u2")
        known = bits.view(ml_dtypes.bfloat16)
        item, wide = tensor(bits.tobytes(), "bfloat16"), known.astype("<f4")
        self.assertEqual(item.astype("float32").tobytes(), (bits.astype("<u4") << 16).tobytes())
        with numpy.errstate(all="ignore"):
            floats = numpy.concatenate([wide[~numpy.isnan(wide)],
                                        numpy.array(HARD, "f8").astype("<f4")])
            floats = numpy.concatenate([floats, (floats.view("<u4") + 0x8000).view("<f4")])
            floats = floats[~numpy.isnan(floats)]
            self.assertEqual(tensor(floats.tobytes(), "float32").astype("bfloat16").tobytes(),
                             floats.astype(ml_dtypes.bfloat16).tobytes())
        made = tensor(known.reshape(256, 256)[:, ::2])
        self.assertEqual((made.dtype, made.shape), ("bfloat16", (256, 128)))
        self.assertEqual(made.tobytes(), bits.reshape(256, 256)[:, ::2].tobytes())
        back = numpy.asarray(load(dumps({"w": known}, format="burnpack"))["w"])
        self.assertTrue((back.view(ml_dtypes.bfloat16).view("<u2") == bits).all())

    def test_8_bit_floats(self):
        """Casts are those of ml_dtypes, of each code and of numbers around each tie."""
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        bits, random = numpy.arange(1 << 16, dtype="<u4") << 16, numpy.random.RandomState(8)
        floats = numpy.concatenate([bits | low for low in (0, 1, 0x8000, 0xFFFF)]).view("<f4")
        with numpy.errstate(all="ignore"):
            few = floats[::5]  # 5 and 1 << 16 have no factor in common
            sources = [floats, few.astype("<f8") * (1 + 2.0 ** -40), few.astype("<f2"),
                       random.standard_normal(20000) * 2.0 ** random.randint(-30, 30, 20000),
                       random.bytes(80000), few.astype(ml_dtypes.bfloat16)]
        sources[4] = numpy.frombuffer(sources[4], "<f8")
        sources.append(random.randint(-1 << 62, 1 << 62, 5000) >> random.randint(0, 62, 5000))
        for name in tensorfmt.FLOAT8:
            dtype = numpy.dtype(getattr(ml_dtypes, name))
            codes = numpy.arange(256, dtype="u1").view(dtype)
            with numpy.errstate(all="ignore"):
                for given in sources:
                    self.assertEqual(tensor(given).astype(name).tobytes(),
                                     given.astype(dtype).tobytes(), name)
                for new in ["float16", "float32", "float64", "bfloat16"] + list(tensorfmt.FLOAT8):
                    wanted = codes.astype("<f4").astype(getattr(ml_dtypes, new, new)).tobytes()
                    if new != name:
                        self.assertEqual(tensor(codes).astype(new).tobytes(), wanted, (name, new))
            item = tensor(codes)
            self.assertEqual((item.dtype, item.tobytes()), (name, codes.tobytes()))
            part = codes.reshape(16, 16)[:, ::2]
            array = numpy.asarray(load(dumps({"w": part}, format="safetensors"))["w"])
            self.assertEqual((array.dtype, array.tobytes()), (dtype, part.tobytes()))
        for wrong in (ml_dtypes.float8_e4m3, ml_dtypes.float8_e3m4, ml_dtypes.float4_e2m1fn):
            error_of(TypeError, tensor, numpy.ones(4, wrong))

    def test_safetensors(self):
        """Both ways byte-identical; layouts and bfloat16 arrive as what they are."""
        from random import Random
        numpy, library = self.peer("numpy"), self.peer("safetensors.numpy")
        draw, dtypes = Random(5), [dtype for dtype in DTYPES if dtype in tensorfmt.STRUCT_CODE]
        for i in range(60):
            model, meta = {}, [None, {}, {"\u20ac\n\"": "\\\0\x7f\u2028"}][i % 3]
            for n in range(draw.randrange(1, 9)):
                name = [draw.choice("ab./\"\\\n\1\x7f\u00e9\u2028\U0001f642") for _ in range(n)]
                item = tensor(make_bytes(48, i + n), draw.choice(dtypes))
                shapes = (item.size,), (2, item.size // 2), (1, item.size, 1)
                model["".join(name)] = numpy.asarray(tensor(item, shape=draw.choice(shapes)))
            data = library.save(model, metadata=meta)
            with self.subTest(names=list(model), metadata=meta):
                self.assertEqual(dumps(load(data), format="safetensors"), data)
                self.assertEqual(dumps(model, format="safetensors", metadata=meta or {},
                                       empty_metadata=meta == {}), data)
                self.assertIn(("ok", "canonical"), [x[:2] for x in tensorfmt.verify(data).rows])
                self.assertEqual(dict([(k, v.tobytes()) for k, v in library.load(data).items()]),
                                 dict([(k, v.tobytes()) for k, v in model.items()]))
        square = numpy.arange(6, dtype="<f4").reshape(2, 3)
        turned = converted(dumps({"w": square}, format="primitiv"), "safetensors")[0]
        big = load(dumps({"w": square}, format="ztensor", data_endianness="big"))
        for one in (turned, big, {"w": square.T.copy().T}, {"w": numpy.asarray(turned["w"])}):
            again = library.load(dumps(one, format="safetensors"))["w"]
            self.assertEqual(again.tolist(), square.tolist())
        ml_dtypes, path = self.peer("ml_dtypes"), folder_for(self) + "/b.safetensors"
        tensorfmt.save(path, {"w": square.astype(ml_dtypes.bfloat16)})
        with self.peer("safetensors").safe_open(path, "numpy") as file:
            self.assertEqual(file.get_tensor("w").astype("f4").tolist(), square.tolist())
        with load(path) as file:  # the recipe of README
            arrays = io.BytesIO()
            numpy.savez(arrays, **{n: numpy.asarray(t) for n, t in turned.items()})
        self.assertEqual(numpy.load(io.BytesIO(arrays.getvalue()))["w"].tolist(), square.tolist())

    def test_diff_is_that_of_isclose(self):
        numpy = self.peer("numpy")
        random = numpy.random.default_rng(5)
        odd = numpy.array([0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1, 1e300, 5e-324])
        pairs = [numpy.repeat(odd, 8), numpy.tile(odd, 8)]
        pairs = [numpy.concatenate([one, random.standard_normal(200).round(1)]) for one in pairs]
        x, y = [dumps({"w": one}, format="ztensor") for one in pairs]
        for rtol, atol in (0, 0), (1e-5, 1e-8), (0.5, 0), (0, 0.25), (2.0, 1e299):
            rows = tensorfmt.diff(x, y, rtol=rtol, atol=atol).differences
            with numpy.errstate(all="ignore"):
                far = ~numpy.isclose(*pairs, rtol=rtol, atol=atol, equal_nan=True)
                gaps = abs(pairs[0] - pairs[1])[far]
                ratios = (gaps / abs(pairs[1][far]))
            found = [(row["count"], row["max_abs"], row["max_rel"]) for row in rows]
            odd = ~numpy.isfinite(gaps)  # NaN, or infinity minus infinity: infinite, too
            gaps[odd] = ratios[odd] = numpy.inf
            self.assertEqual(found, [(far.sum(), numpy.max(gaps), numpy.max(ratios))])

    def test_random_tensors_by_hypothesis(self):
        hypothesis, some = self.peer("hypothesis"), self.peer("hypothesis.strategies")

        @hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=75)
        @hypothesis.given(some.data())
        def check(draw):
            kind, options = draw.draw(some.sampled_from(STORED))
            letters = some.characters(exclude_categories=["Cs"], exclude_characters="\0.:\\")
            names = some.text(letters, min_size=1, max_size=20)
            wanted = {}
            row = row_of(kind)
            names = names.filter(row.holds_name)
            for name in draw.draw(some.lists(names, unique=True, max_size=5)):
                dtype = draw.draw(some.sampled_from(row.dtypes))
                shape = tuple(draw.draw(some.lists(
                    some.integers(0 if row.empty else 1, 4), max_size=min(5, row.rank))))
                nbytes = tensorfmt.ITEMSIZE[dtype] * count_of(shape)
                wanted[name] = tensor(draw.draw(some.binary(min_size=nbytes, max_size=nbytes)),
                                      dtype, shape)
            data = dumps(wanted, format=kind, **options)
            file = load(io.BytesIO(data), verify=True)
            self.assertEqual(content(file), content(wanted))
            self.assertTiles(tensorfmt.explain(data), len(data), True)
        check()

    def test_random_values_by_hypothesis(self):
        hypothesis, some = self.peer("hypothesis"), self.peer("hypothesis.strategies")
        cbor2, msgpack = self.peer("cbor2"), self.peer("msgpack")
        leaves = (some.none() | some.booleans() | some.floats() | some.binary() | some.text()
                  | some.integers(-(1 << 63), (1 << 64) - 1))
        values = some.recursive(leaves, lambda inner: some.lists(inner) | some.dictionaries(
            some.text(), inner))

        @hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=200)
        @hypothesis.given(values)
        def check(value):
            cbor = tensorfmt.cbor_dumps(value)
            self.assertSame(tensorfmt.cbor_loads(cbor), value)
            self.assertSame(cbor2.loads(cbor), value)
            self.assertSame(tensorfmt.cbor_loads(cbor2.dumps(value)), value)
            packed = tensorfmt.msgpack_dumps(value)
            self.assertSame(tensorfmt.msgpack_loads(packed), value)
            self.assertSame(msgpack.unpackb(packed), value)
            self.assertEqual(packed, msgpack.packb(value))
        check()


# -- [2] workers, remote ------------------------------------------------------------------------


class WorkersTest(FolderCase, PeerCase):
    """2,000 tensors, sent to workers one by one without their data."""

    def setUp(self):
        import pickle
        super().setUp()
        tensorfmt.save(self.path, [("t%d" % i, tensor(struct.pack("<f", i) * 1024, "float32"))
                                   for i in range(2000)])
        file = load(self.path)
        self.addCleanup(file.close)
        self.items = list(file.values())
        self.assertTrue(max([len(pickle.dumps(item)) for item in self.items]) < 1000)

    def test_multiprocessing(self):
        from multiprocessing import get_context
        with get_context("spawn").Pool(2) as pool:
            check_workers(self, 2000, pool.map(keep_in_worker, self.items, 1))

    def test_joblib(self):
        joblib = self.peer("joblib")
        task = joblib.delayed(keep_in_worker)
        found = joblib.Parallel(2, batch_size=1)([task(item) for item in self.items])
        check_workers(self, 2000, found)

    def test_dask(self):
        distributed = self.peer("distributed")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                                      local_directory=self.folder) as cluster, \
                distributed.Client(cluster) as client:
            tasks = client.map(keep_in_worker, self.items, pure=False)
            check_workers(self, 2000, client.gather(tasks))


class RemoteTest(FolderCase, PeerCase):
    """Files behind a web server, through fsspec."""

    def setUp(self):
        from http.server import BaseHTTPRequestHandler, HTTPServer
        from threading import Thread
        super().setUp()
        self.fsspec = self.peer("fsspec")
        self.peer("aiohttp")  # its HTTP
        self.seen, test = [], self

        class Handler(BaseHTTPRequestHandler):
            """Gives ranges of files, but under /whole/, and notes (method, status, bytes)."""

            def do_GET(self):
                whole, _, name = self.path[1:].rpartition("/")
                data = read_file(os.path.join(test.folder, name))
                first, last, status = 0, len(data) - 1, 200
                if "Range" in self.headers and not whole:
                    words = self.headers["Range"].split("=")[1].split("-")
                    first, last, status = int(words[0]), min(last, int(words[1] or last)), 206
                body = data[first:last + 1]
                test.seen.append((self.command, status, len(body)))
                self.send_response(status)
                self.send_header("Content-Length", len(body))
                if status == 206:
                    self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)
            do_HEAD = do_GET

            def log_message(self, *args):
                pass
        server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % server.server_port
        Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)  # first
        write_file(os.path.join(self.folder, "page"), b"<html>no tensors")
        for kind in FORMATS:
            tensorfmt.save(os.path.join(self.folder, kind), many_tensors(500), format=kind)

    def asked(self):
        """Return (status, bytes) of what was asked for since the last call."""
        rows = [row[1:] for row in self.seen if row[0] == "GET"]
        del self.seen[:]
        return rows

    def open(self, name):
        return self.fsspec.open(self.url + name, block_size=1 << 16, cache_type="readahead")

    def test_requests(self):
        for kind in FORMATS:
            self.asked()
            with self.subTest(format=kind), self.open(kind) as stream:
                file = load(stream)
                asked = self.asked()
                self.assertEqual(set([row[0] for row in asked]), {206})
                self.assertTrue(len(asked) <= 8, asked)
                self.assertTrue(sum([row[1] for row in asked]) < 800000, asked)
                self.assertEqual((len(file), file.path), (500, self.url + kind))
                self.assertEqual(file["model.layers.7.2"].tolist(), [[0.0] * 4] * 4)
                self.assertTrue(len(self.asked()) <= 1)
                self.assertTrue(tensorfmt.verify(stream))

    def test_errors(self):
        with self.fsspec.open(self.url + "whole/burnpack", block_size=1 << 16,
                              cache_type="none") as stream:  # it says: the server has no ranges
            self.assertIn("range", str(error_of(ValueError, load, stream)))
        with self.fsspec.open(self.url + "burnpack", block_size=0) as stream:
            self.assertIn("seek", str(error_of(ValueError, load, stream)))
        from urllib.request import urlopen
        with urlopen(self.url + "burnpack") as answer:
            self.assertRaises(ValueError, load, answer)  # of Python: it does not seek
            self.assertEqual(len(load(answer.read())), 500)
        with self.open("page") as stream:
            self.assertEqual(str(error_of(FormatError, load, stream))[:len(self.url)], self.url)

    def test_readme(self):
        """The recipe of README, with the address of our server."""
        import re
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as stream:
            text, = re.findall("```py\n(.*?)```", stream.read(), re.S)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        tensorfmt.save("model.bpk", {"layer.weight": tensor([[1.0, 2.0]], "float32")})
        names = {"load": load}
        exec(text.replace("https://example.org/", self.url), names)
        self.assertEqual(names["values"], [[1.0, 2.0]])


# -- [3] at home --------------------------------------------------------------------------------
#
# Beside the libraries of its users; `.ci/run home` installs what can be had of them.


class AtHomeTest(FolderCase, PeerCase):
    def dirty_bytes(self, path):
        """Return how much of the mapping differs from the file."""
        os.sync()  # what is not yet on the disk counts, too
        with open("/proc/self/smaps") as stream:
            text = stream.read().split(path + "\n")[1]
        return 1024 * int(text.split("Private_Dirty:")[1].split()[0])

    def test_torch_writes_into_memory_only(self):
        import warnings
        torch, numpy = self.peer("torch"), self.peer("numpy")
        names = {"weight": tensor([[1.0] * 1024] * 1024, "float32"),
                 "bias": tensor([0.0] * 1024, "bfloat16")}
        tensorfmt.save(self.path, names)
        data = read_file(self.path)
        model = torch.nn.Linear(1024, 1024)
        with load(self.path) as file:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "not writable, and PyTorch does not support"
                arrays = [torch.from_numpy(numpy.asarray(file["weight"]))]
            arrays += [torch.from_dlpack(file["weight"]), torch.as_tensor(file["bias"])]
            self.assertEqual([float(array.sum()) for array in arrays], [1 << 20, 1 << 20, 0.0])
            self.assertEqual(self.dirty_bytes(self.path), 0)
            arrays[0][0].add_(1)
            self.assertTrue(0 < self.dirty_bytes(self.path) <= 1 << 14)
            arrays[2].add_(2)
            self.assertEqual((file["weight"][0, 5], float(arrays[1][0, 5])), (2.0, 2.0))
            state = {name: torch.from_dlpack(item).float() if name == "bias"
                     else torch.from_dlpack(item) for name, item in file.items()}
            model.load_state_dict(state, assign=True)
            self.assertEqual(model.weight.data_ptr(), arrays[0].data_ptr())
            model(torch.ones(1024)).sum().backward()
            torch.optim.SGD(model.parameters(), 0.5).step()
            self.assertEqual((file["weight"][1, 1], read_file(self.path)), (0.5, data))
        model.load_state_dict({name: torch.from_dlpack(item)
                               for name, item in load(self.path).items()})
        self.assertEqual((model.weight[1, 1].item(), model.bias[0].item()), (1.0, 0.0))

    def test_arrays_out(self):
        import warnings
        numpy, torch, jax = self.peer("numpy"), self.peer("torch"), self.peer("jax")
        jax.config.update("jax_enable_x64", True)
        calls = [torch.from_dlpack, torch.as_tensor, torch.asarray, torch.tensor,
                 jax.numpy.asarray, jax.numpy.array, jax.numpy.from_dlpack, numpy.from_dlpack]
        for kind, options in STORED:
            made = {}
            for dtype in row_of(kind).dtypes:
                made[dtype] = tensor([[0, 1, 2], [3, 4, 5]], dtype)
                made[dtype + "0"] = tensor(1, dtype)
            for name, whole in load(dumps(made, format=kind, **options)).items():
                if zstd_missing(whole):
                    continue
                parts = [whole[::-1, ::2], whole[1:], whole[:0]] if whole.ndim else []
                coded = whole.dtype not in tensorfmt.STRUCT_CODE
                for item, call in [(item, call) for item in [whole] + parts for call in calls]:
                    if coded and (call == numpy.from_dlpack or call == jax.numpy.from_dlpack
                                  and item.dtype != "bfloat16"):
                        continue  # they know none
                    with self.subTest(format=kind, name=name, call=str(call), **options):
                        with warnings.catch_warnings():
                            warnings.simplefilter("error")
                            got = call(item)
                        self.assertEqual((str(got.dtype).split(".")[-1], tuple(got.shape)),
                                         (item.dtype, item.shape))
                        self.assertSame(got.tolist(), item.tolist())
                bits = whole.copy(dtype="int%d" % (8 * whole.itemsize)) if coded else whole
                if whole.zero_copy:
                    for call in calls[:3]:
                        self.assertEqual(call(whole).data_ptr(), numpy.asarray(bits).ctypes.data)

    def test_what_numpy_lacks_in_numpy(self):
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        for known, dtype in [(known, dtype) for known in (None, ml_dtypes) for dtype in (
                "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz")]:
            item = tensor([[1.0, -2.5]], dtype)
            with Changed(sys, "modules", dict(sys.modules, ml_dtypes=known)):
                array = numpy.asarray(item)
                self.assertEqual(array.dtype, getattr(known, dtype) if known else
                                 numpy.dtype("V%d" % item.itemsize))
                self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))
                for dtype in ("float32", numpy.float64, "float16"):
                    for array in (numpy.asarray(item, dtype), numpy.array(item, dtype=dtype)):
                        self.assertEqual((array.dtype, array.tolist()), (dtype, [[1.0, -2.5]]))
                self.assertTrue(numpy.array(item, copy=True).flags.writeable)

    def test_torch_tensors_come_in(self):
        torch = self.peer("torch")
        for dtype in DTYPES:
            base = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, dtype))
            for given in (base, base.transpose(0, 2), base[:, 1:, ::2], base[1, 2, 3], base[:0]):
                item = tensor(given)
                self.assertEqual((item.dtype, item.shape), (dtype, tuple(given.shape)))
                self.assertEqual(item.tolist(), given.tolist())
                self.assertEqual(torch.from_dlpack(item).tolist(), given.tolist())
                self.assertEqual(tensor([1], base.dtype).dtype, dtype)
        weight = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.bfloat16))
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model[1].weight = model[0].weight  # tied
        for given in ({"w": weight, "v": (weight * 2)[:, 0]}, model.state_dict(),
                      dict(model.named_parameters())):
            file = load(dumps(given, format="bpk"))
            for name, value in given.items():
                self.assertEqual(file[name].tolist(), value.tolist())
        tensorfmt.save(self.path, model.state_dict())
        again = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        with load(self.path) as file:
            again.load_state_dict({name: torch.from_dlpack(item) for name, item in file.items()})
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, again.state_dict()[name]))
        conjugated = torch.ones(2, dtype=torch.complex64).conj()
        self.assertEqual(tensor(conjugated.imag).tolist(), [0.0, 0.0])
        for value, words in (
                (conjugated, "complex64; take numbers .*.real and .imag"),
                (torch.ones(2).to(torch.float8_e4m3fn), "float8_e4m3fn .zTensor 0.1 holds"),
                (torch.ones(2, device="meta"), "meta"), (torch.ones(2, 2).to_sparse(), "parse")):
            with self.assertRaisesRegex((TypeError, ValueError), "tensor 'w': .*" + words):
                dumps({"w": value}, format="zt")
        for value in (model, model[0], torch.ones(2)):
            self.assertIn("names", str(error_of(TypeError, tensorfmt.save, self.path, value)))

    def test_8_bit_floats_of_torch(self):
        """All codes both ways, bit by bit; torch's own bytes of safetensors."""
        torch, theirs = self.peer("torch"), self.peer("safetensors.torch")
        for name in tensorfmt.FLOAT8:
            dtype = getattr(torch, name)
            given = torch.arange(256, dtype=torch.uint8).view(dtype).reshape(16, 16)
            for part in (given, given.T, given[:, ::2], given[3, 5], given[:0]):
                item, raw = tensor(part), part.contiguous().view(torch.uint8)
                self.assertEqual((item.dtype, item.shape), (name, tuple(part.shape)))
                self.assertEqual(item.tobytes(), raw.numpy().tobytes())
                self.assertSame(item.tolist(), part.float().tolist())
                for call in (torch.from_dlpack, torch.as_tensor):
                    back = call(item)
                    self.assertEqual((back.dtype, back.shape), (dtype, part.shape))
                    self.assertTrue(torch.equal(back.view(torch.uint8), raw))
            data = theirs.save({"w": given, "a": given[1].clone()})
            self.assertEqual(dumps({"w": given, "a": given[1]}, format="safetensors"), data)
            self.assertEqual(dumps(load(data), format="safetensors"), data)
        item = tensor([1.0], "float8_e5m2")
        with Changed(sys, "modules", {key: value for key, value in sys.modules.items()
                                      if key != "torch"}):
            self.assertIn("float8_e5m2 needs torch", str(error_of(BufferError, item.__dlpack__)))

    def test_jax_and_numpy_arrays_come_in(self):
        numpy, jax, ml_dtypes = self.peer("numpy"), self.peer("jax"), self.peer("ml_dtypes")
        jax.config.update("jax_enable_x64", True)
        for dtype in DTYPES:
            for given in (jax.numpy.arange(6).reshape(2, 3).astype(dtype),
                          numpy.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))):
                for part in (given, given.T, given[1, ::2]):
                    item = tensor(part)
                    self.assertSame((item.dtype, item.tolist()), (dtype, part.tolist()))
                self.assertEqual(tensor([1], given.dtype).dtype, dtype)
                self.assertEqual(tensor([1], given.dtype.type).dtype, dtype)
            self.assertEqual(tensor([1], getattr(jax.numpy, dtype)).dtype, dtype)
        masked = numpy.ma.masked_array([1.0, 2.0], [0, 1])
        for value, words in ((masked, "masked"), (numpy.ones(2, "c16"), ".real and .imag"),
                             (jax.numpy.ones(2, "complex128"), ".real and .imag"),
                             (numpy.array(["a"]), "of <U1"), (numpy.array([None]), "of object")):
            error = error_of(TypeError, dumps, {"w": value}, format="zt")
            self.assertTrue(str(error).startswith("tensor 'w': ") and words in str(error), error)
        self.refuses(["bits", "values"], tensor, numpy.ones(2, "u2"), "bfloat16")
        bits = numpy.asarray([0x3F80], "u2")
        self.assertEqual(tensor(bits).copy(dtype="bfloat16").tolist(), [1.0])
        for value in (numpy.ones((2, 2)), [numpy.ones(2), numpy.ones(2)], jax.numpy.ones(2)):
            self.assertIn("names", str(error_of(TypeError, tensorfmt.save, self.path, value)))


# -- [4] generations ----------------------------------------------------------------------------
#
# `.ci/run generations` makes one virtual environment for each wheel, in the folder of the variable
# TENSORFMT_GENERATIONS: they exclude each other. Their Pythons run these texts: "write" PATH takes
# a model as JSON, [metadata, {name: [dtype, shape, values]}]; "read" PATH prints one.

MAGNETRON1 = '''if 1:
    import json, sys
    import magnetron as m
    from magnetron.io import StorageArchive
    how, path = sys.argv[1:]
    with StorageArchive(path, how[0]) as file:
        if how == "read":  # it reads no tensors of a file
            print(json.dumps([file.metadata(), {}]))
        else:
            metadata, tensors = json.load(sys.stdin)
            for key, value in metadata.items():
                file[key] = value
            for name, (dtype, shape, values) in tensors.items():
                dtype = getattr(m, dtype.replace("bool", "boolean"))
                file[name] = m.Tensor.of(values, dtype=dtype)'''
MAGNETRON2 = '''if 1:
    import json, sys
    import magnetron as m
    from magnetron.snapshot import SnapshotWriter, deserialize
    how, path = sys.argv[1:]
    if how == "read":
        tensors, metadata = deserialize(path)
        print(json.dumps([metadata, dict((name, (
            item.dtype.name.replace("boolean", "bool"), item.shape, item.tolist()))
            for name, item in tensors.items())]))
    else:
        metadata, tensors = json.load(sys.stdin)
        for name, (dtype, shape, values) in tensors.items():
            dtype = getattr(m.dtype, dtype.replace("bool", "boolean"))
            tensors[name] = m.Tensor(values, dtype=dtype)
        with SnapshotWriter(path, metadata) as file:
            for name, item in tensors.items():
                file.declare(name, item.shape, item.dtype)
            for name, item in tensors.items():
                file.write(name, item)'''
ZTENSOR = """if 1:
    import json, sys
    import numpy, ztensor as z
    how, path = sys.argv[1:]
    if how == "write":
        items = [(name, numpy.array(values, dtype).reshape(shape))
                 for name, (dtype, shape, values) in json.load(sys.stdin)[1].items()]
        if hasattr(z, "Reader"):
            with z.Writer(path) as file:
                for name, item in items:
                    file.add_tensor(name, item)
        else:
            import ztensor.numpy
            z.numpy.save_file(dict(items), path)
        sys.exit()
    if hasattr(z, "Reader"):
        with z.Reader(path) as file:
            tensors = dict((name, numpy.array(file.read_tensor(name), copy=True))
                           for name in file.get_tensor_names())
    else:
        import ztensor.numpy
        z.verify(path)
        tensors = z.numpy.load_file(path)
    print(json.dumps([{}, dict((name, (str(item.dtype), item.shape, item.tolist()))
                               for name, item in tensors.items())]))"""
WHEELS = {  # wheel -> its text, suffix, version in its files, option version= of what it reads
    "magnetron 0.1.2": (MAGNETRON1, "mag", 1, 1), "magnetron 0.2.2": (MAGNETRON2, "mag", 300, 300),
    "ztensor 0.1.4": (ZTENSOR, "zt", "0.1.0", "0.1"), "ztensor 2.1.2": (ZTENSOR, "zt", "2", "2")}


def peer_of(wheel):
    """Return the Python that has a wheel, or "" where there is none."""
    python = os.path.join(os.environ.get("TENSORFMT_GENERATIONS", ""), wheel.replace(" ", "-"),
                          "bin", "python")
    return python if os.path.isabs(python) and os.path.exists(python) else ""


def ask_peer(wheel, how, path, model=None):
    """Let a real library write a model, or return what it reads."""
    import json
    import subprocess
    out = subprocess.check_output([peer_of(wheel), "-c", WHEELS[wheel][0], how, path],
                                  input=json.dumps(model).encode())
    return json.loads(out.decode() or "null")


def random_model(seed, wheel):
    """Return [metadata, {name: [dtype, shape, values]}] that a library can write."""
    import random
    draw, tensors = random.Random(seed), {}
    dtypes = {"magnetron 0.1.2": ["int32", "float32", "bool"], "magnetron 0.2.2": list(
        tensorfmt.Mag300.DTYPES)}.get(wheel, list(tensorfmt.STRUCT_CODE))
    for i in range(draw.randrange(1, 9)):
        dtype, shape = draw.choice(dtypes), draw.choice([(), (1,), (3,), (2, 3), (5, 1, 2), (700,)])
        if wheel != "magnetron 0.2.2":  # others have no scalars
            shape = shape or (1,)
        low = -100 if dtype[0] in "if" else 0
        flat = [draw.randrange(low, 2 if dtype == "bool" else 100) for _ in range(count_of(shape))]
        made = tensor(flat, "float64").astype(dtype).copy(shape=shape)
        tensors["%s.%d" % (draw.choice(["layer", "b\u00e9", "x y"]), i)] = [
            dtype, list(shape), made.tolist()]
    metadata = {"a": -draw.randrange(1, 9), "b": draw.random()}
    return [metadata if wheel[0] == "m" else {}, tensors]


def model_of(file):
    return [dict(file.metadata), dict([(name, [item.dtype, list(item.shape), item.tolist()])
                                       for name, item in file.items()])]


class GenerationsTest(FolderCase):
    def test_real_libraries_write_and_read(self):
        wheels = [wheel for wheel in WHEELS if peer_of(wheel)]
        if not wheels:
            self.skipTest("no wheels: `.ci/run generations` installs them")
        for wheel, seed in [(wheel, seed) for wheel in wheels for seed in range(6)]:
            _, suffix, version, option = WHEELS[wheel]
            model, path = random_model(seed, wheel), os.path.join(self.folder, "m." + suffix)
            with self.subTest(wheel=wheel, seed=seed):
                ask_peer(wheel, "write", path, model)
                with load(path, verify=True) as file:
                    self.assertEqual((file.attrs["version"], model_of(file)), (version, model))
                    data = dumps(file, format=suffix)
                    self.assertEqual(model_of(load(data)), model)
                    if version != 1 and not [1 for item in file.values() if item.encoding != "raw"]:
                        self.assertEqual(data, read_file(path))
                    for other in wheels:  # the way on for old files, and back
                        first = other == "magnetron 0.1.2"  # it reads no tensors, few dtypes
                        if WHEELS[other][1] == suffix and (not first or wheel == other):
                            tensorfmt.convert(file, path + "." + suffix,
                                              version=WHEELS[other][3])
                            self.assertEqual(ask_peer(other, "read", path + "." + suffix),
                                             [model[0], {}] if first else model)
