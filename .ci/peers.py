# SPDX-License-Identifier: MIT
"""Tests beside other libraries: `python3 test_tensorfmt.py` runs them, too.

What is not installed is skipped by name, or fails if TENSORFMT_PEERS is in the environment.

    [1] peers              other libraries, random data
    [2] workers, remote    processes, Dask; fsspec and a web server
    [3] at home            torch, jax and others that its users have
    [4] generations        real libraries of each generation write and read models
"""
import builtins
import os
import sys
import warnings
from itertools import product

import tensorfmt
from tensorfmt import FormatError, dumps, load, tensor
from test_tensorfmt import (
    Changed, check_workers, converted, count_of, DTYPES, error_of, every_tensor, FolderCase,
    FORMATS, HERE, keep_in_worker, KEYS, make_bytes, make_entry, many_tensors, read_file, row_of,
    STORED, TestCase, text_of, unhex, ZSTD)

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
    def test_zstandard(self):
        zstandard = self.peer("zstandard")
        values, sized = bytes(range(64)) * 50, zstandard.ZstdCompressor()
        data, stream = sized.compress(values), sized.compressobj()
        packed = load(dumps({"w": tensor(values)}, format="ztensor", encoding="zstd"))["w"].raw
        self.assertEqual(zstandard.get_frame_parameters(bytes(packed)).content_size, len(values))
        skippable = unhex("502a4d1803000000616263")
        checked = zstandard.ZstdCompressor(write_checksum=True).compress(values)
        good = {
            "sized": data, "skippable last": data + skippable, "skippable first": skippable + data,
            "unsized": stream.compress(values) + stream.flush(), "checked": checked,
            "two frames": sized.compress(values[:9]) + sized.compress(values[9:])}
        bad = {
            "cut": data[:-3], "rubbish": b"rubbish", "rubbish behind": data + b"rubbish",
            "longer": data + data, "shorter": sized.compress(values[:-4]),
            "bomb": sized.compress(bytes(1 << 24)), "changed": checked[:-9] + b"\0" + checked[-8:]}
        for name, blob in dict(good, **bad).items():
            file = make_entry(blob, dtype="uint8", shape=[len(values)], encoding="zstd",
                              layout="dense")
            item = load(file)["s"]
            with self.subTest(blob=name):
                self.assertEqual(bool(tensorfmt.verify(file)), name in good)
                if name in bad:
                    self.assertEqual(error_of(FormatError, item.tobytes).tensor, "s")
                    continue
                self.assertEqual(item.tobytes(), values)
                self.assertEqual(item[5:7].tolist(), [5, 6])

    def test_numpy_sees_every_tensor(self):
        numpy = self.peer("numpy")
        for kind, options in STORED:
            made = {name: item for name, item in every_tensor(kind).items() if item.ndim <= 8}
            for name, item in load(dumps(made, format=kind, **options)).items():
                bits = numpy.frombuffer(made[name].raw, "<u%d" % item.itemsize)
                whole = bits.reshape(item.shape)
                with self.subTest(format=kind, name=name, **options):
                    self.check_array(numpy, item, whole)
                    for key in [KEYS[::-1], KEYS[1:, ..., ::-2]][:item.ndim]:
                        self.check_array(numpy, item[key], whole[key])

    def check_array(self, numpy, item, bits):
        """Assert that numpy sees a tensor as these bits; without a copy, if they are stored so."""
        array, coded = numpy.asarray(item), item.dtype not in tensorfmt.STRUCT_CODE
        self.assertEqual((array.shape, array.flags.writeable), (item.shape, False))
        self.assertIn(array.dtype.newbyteorder("=").name,  # ml_dtypes' if that is loaded
                      [item.dtype] + ["void%d" % (8 * item.itemsize)] * coded)
        order = array.dtype.byteorder.replace("|", "<")
        self.assertEqual(array.view(bits.dtype.newbyteorder(order)).tolist(), bits.tolist())
        if item.encoding == "raw" and item.size and not coded:
            self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))

    def test_numpy_arrays_become_tensors(self):
        numpy = self.peer("numpy")
        for code in "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 ?".split():
            for order in "<>":
                base = numpy.arange(24).reshape(2, 3, 4).astype(order + code)
                for array in (base, base.T, base[:, ::-1, ::2], base[0, 0, 0:1], base[1, 2, 3],
                              numpy.asfortranarray(base), base[:0], numpy.array(base[1, 1, 1])):
                    item = tensor(array)
                    with self.subTest(code=order + code, shape=array.shape):
                        self.assertEqual((item.dtype, item.shape), (array.dtype.name, array.shape))
                        self.assertEqual(item.tobytes(), array.astype("<" + code).tobytes())
                        self.assertEqual(item.tolist(), array.tolist())

    def test_numpy_arrays_that_are_no_tensors(self):
        numpy = self.peer("numpy")
        for value in (numpy.datetime64("2020-01-01"), numpy.ones(2, "m8[s]"), numpy.void(b"abc"),
                      numpy.zeros(2, "i4,f4"), numpy.array(["a"]), numpy.longdouble(1),
                      numpy.array([None])):
            self.assertRaisesRegex(TypeError, "^cannot make a tensor of ", tensor, value)
        masked = numpy.ma.masked_array([1.0], [1])
        self.assertRaisesRegex(TypeError, "masked", tensor, masked)
        self.assertRaisesRegex(TypeError, ".real and ", tensor, numpy.array([1j]))

    def test_what_numpy_makes(self):
        """Arrays by a protocol alone, scalars, and numbers of numpy in lists."""
        numpy = self.peer("numpy")
        square = numpy.eye(2, dtype="f2")
        wrapped = type("Wrapped", (), {"__array__": lambda self: square})()
        self.assertEqual(tensor(wrapped, shape=numpy.int64(4)).tolist(), [1.0, 0.0, 0.0, 1.0])
        file = load(dumps({"w": square, "s": numpy.float32(0.5)}, format="mag"))
        self.assertEqual(file["w"].tolist(), [[1.0, 0.0], [0.0, 1.0]])
        self.assertEqual(file["s"].shape, ())
        self.assertEqual(tensor([numpy.float32(0.5), numpy.int64(2)]).tolist(), [0.5, 2.0])

    def test_no_copy_where_none_is_allowed(self):
        numpy = self.peer("numpy")
        if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
            self.skipTest("numpy 1 has no copy=False")
        parts = {"values": [1.0, 2.0], "indptr": [0, 1, 2], "indices": [0, 1]}
        made = {"f": tensor([1.5, 2.0], "float32"), "b": tensor([1.5], "bfloat16")}
        file = load(dumps(dict(made, s=tensor(shape=(2, 2), components=parts)), format="ztensor"))
        swapped = file["f"].copy(byteorder=">")
        for item, dtype in ((file["f"], None), (file["f"], "float32"), (file["b"], None),
                            (file["f"][::-1], None), (swapped, None)):
            array = numpy.asarray(item, dtype, copy=False)
            self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))
        copied = [(file["b"], "float32"), (file["f"], "float64"), (file["s"], None),
                  (swapped.copy(dtype="bfloat16", shape=(4,)), None)]
        if ZSTD:
            coded = load(dumps(made, format="ztensor", encoding="zstd"))
            copied += [(coded["f"], None), (coded["f"], "float32"), (coded["b"], None)]
        for item, dtype in copied:
            self.check_copied(numpy, item, dtype)

    def check_copied(self, numpy, item, dtype):
        error_of(ValueError, numpy.asarray, item, dtype, copy=False)
        if dtype is None and item.dtype in tensorfmt.STRUCT_CODE:
            error_of(BufferError, item.__dlpack__, copy=False, max_version=(1, 0))
        for call in numpy.asarray, numpy.array:
            self.assertEqual(call(item, dtype).shape, item.shape)

    def test_what_numpy_lacks(self):
        """Bits without ml_dtypes, its dtypes with it; numbers if asked; and the way back."""
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        for known, dtype in [(known, dtype) for known in (None, ml_dtypes) for dtype in (
                "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz")]:
            item = tensor([[1.0, -2.5], [3.0, 4.0]], dtype)
            with Changed(sys, "modules", dict(sys.modules, ml_dtypes=known, torch=None)):
                array = numpy.asarray(item)
                self.assertEqual(array.dtype, getattr(known, dtype, "V%d" % item.itemsize))
                self.assertTrue(numpy.shares_memory(array, numpy.frombuffer(item.raw, "u1")))
                for new in "float32", numpy.float64, "float16":
                    for numbers in numpy.asarray(item, new), numpy.array(item, dtype=new):
                        self.assertEqual((numbers.dtype, numbers.tolist()), (new, item.tolist()))
                self.assertTrue(numpy.array(item, copy=True).flags.writeable)
                for bits in array, array.T, array[::-1]:
                    back = tensor(bits, dtype)
                    self.assertEqual((back.dtype, back.shape), (dtype, bits.shape))
                    self.assertEqual(back.tobytes(), numpy.ascontiguousarray(bits).tobytes())
                self.assertRaisesRegex(BufferError, dtype + " needs torch", item.__dlpack__)
                if known or dtype == "bfloat16":  # nothing else has two bytes
                    self.assertEqual(tensor(array).dtype, dtype)
                else:
                    with self.assertRaisesRegex(TypeError, dtype + ".*tensor.x, DTYPE. says which"):
                        dumps({"w": array}, format="burnpack")

    def test_ml_dtypes_is_imported_where_it_is_installed(self):
        numpy, ml_dtypes = self.peer("numpy"), self.peer("ml_dtypes")
        others = dict(sys.modules)
        del others["ml_dtypes"]
        item = tensor([1.0], "bfloat16")
        with Changed(sys, "modules", others):  # as if nobody had imported it
            self.assertEqual(numpy.asarray(item).dtype, ml_dtypes.bfloat16)
            with Changed(builtins, "__import__", side_effect=ImportError):
                self.assertIsNone(tensorfmt.type_of_ml_dtypes("bfloat16"))
        with Changed(ml_dtypes, "bfloat16", None):  # a version that lacks it
            self.assertEqual(numpy.asarray(item).dtype, "V2")

    def test_what_ml_dtypes_has(self):
        """Casts of numbers around each tie (Float8Test has more); all codes, in and out."""
        numpy, ml_dtypes, library = [self.peer(name) for name in (
            "numpy", "ml_dtypes", "safetensors.numpy")]
        bits = numpy.arange(1 << 16, dtype="<u4") << 16
        floats = numpy.concatenate([bits | low for low in (0, 1, 0x8000, 0xFFFF)]).view("<f4")
        floats = floats[~numpy.isnan(floats)]
        for name in ["bfloat16"] + list(tensorfmt.FLOAT8):
            dtype = numpy.dtype(getattr(ml_dtypes, name))
            codes = numpy.arange(256 ** dtype.itemsize, dtype="<u%d" % dtype.itemsize).view(dtype)
            part = codes.reshape(16, -1)[:, ::2]
            item, data = tensor(part), dumps({"w": part}, format="safetensors")
            with numpy.errstate(all="ignore"):
                self.assertEqual(tensor(floats).astype(name).tobytes(),
                                 floats.astype(dtype).tobytes(), name)
                self.assertSame((item.dtype, item.tolist()), (name, part.astype("f8").tolist()))
            self.assertEqual(data, library.save({"w": part.copy()}))
            array = numpy.asarray(load(data)["w"])
            self.assertEqual((array.dtype, array.tobytes()), (dtype, part.tobytes()))
        for wrong in (ml_dtypes.float8_e4m3, ml_dtypes.float8_e3m4, ml_dtypes.float4_e2m1fn):
            error_of(TypeError, tensor, numpy.ones(4, wrong))

    def test_scipy_agrees_on_sparse_tensors(self):
        numpy, sparse = self.peer("numpy"), self.peer("scipy.sparse")
        random = numpy.random.RandomState(5)
        for _ in range(20):
            matrix = sparse.random(*random.randint(1, 30, 2), 0.2, "csr", "float32", random)
            pairs = matrix.tocoo()
            csr = tensor(shape=matrix.shape, components={
                "values": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices})
            coo = tensor(shape=matrix.shape, components={
                "values": pairs.data, "coords": numpy.stack([pairs.row, pairs.col])})
            item = load(dumps({"m": csr}, format="ztensor"))["m"]
            for made in item, coo:
                self.assertEqual(made.tobytes(), matrix.toarray().tobytes())
            parts = [numpy.asarray(item.components[key]) for key in ("values", "indices", "indptr")]
            again = sparse.csr_matrix(tuple(parts), shape=item.shape)  # the recipe of README
            self.assertEqual((again != matrix).nnz, 0)

    def test_safetensors(self):
        """Both ways byte-identical; what is stored in another order arrives as it is."""
        from random import Random
        numpy, library = self.peer("numpy"), self.peer("safetensors.numpy")
        draw, dtypes = Random(5), [dtype for dtype in DTYPES if dtype in tensorfmt.STRUCT_CODE]
        for i in range(60):
            model, meta = {}, [None, {}, {"\u20ac\n\"": "\\\0\x7f\u2028"}][i % 3]
            for n in range(draw.randrange(1, 9)):
                name = [draw.choice("ab./\"\\\n\1\x7f\u00e9\u2028\U0001f642") for _ in range(n)]
                flat = numpy.frombuffer(make_bytes(48, i + n), draw.choice(dtypes))
                model["".join(name)] = flat.reshape(draw.choice([(-1,), (2, -1), (1, -1, 1)]))
            data = library.save(model, metadata=meta)
            with self.subTest(names=list(model), metadata=meta):
                self.assertEqual(dumps(load(data), format="safetensors"), data)
                self.assertEqual(dumps(model, format="safetensors", metadata=meta or {},
                                       empty_metadata=meta == {}), data)
                self.assertIn(("ok", "canonical"), [x[:2] for x in tensorfmt.verify(data).rows])
        square = numpy.arange(6, dtype="<f4").reshape(2, 3)
        turned = converted(dumps({"w": square}, format="primitiv"), "safetensors")[0]
        big = load(dumps({"w": square}, format="ztensor", data_endianness="big"))
        for one in (turned, big, {"w": square.T.copy().T}):
            array = library.load(dumps(one, format="safetensors"))["w"]
            self.assertEqual(array.tolist(), square.tolist())

    def test_diff_is_that_of_isclose(self):
        numpy = self.peer("numpy")
        random = numpy.random.default_rng(5)
        odd = numpy.array([0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1, 1e300, 5e-324])
        a = numpy.concatenate([numpy.repeat(odd, 8), random.standard_normal(200).round(1)])
        b = numpy.concatenate([numpy.tile(odd, 8), random.standard_normal(200).round(1)])
        files = [dumps({"w": one}, format="ztensor") for one in (a, b)]
        for rtol, atol in (0, 0), (1e-5, 1e-8), (0.5, 0), (0, 0.25), (2.0, 1e299):
            row, = tensorfmt.diff(*files, rtol=rtol, atol=atol).differences
            with numpy.errstate(all="ignore"):
                far = ~numpy.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
                gaps = abs(a - b)[far]
                ratios = gaps / abs(b[far])
            odd = ~numpy.isfinite(gaps)  # NaN, or infinity minus infinity: infinite, too
            gaps[odd] = ratios[odd] = numpy.inf
            self.assertEqual(row["count"], far.sum())
            self.assertEqual(row["max_abs"], max(gaps))
            self.assertEqual(row["max_rel"], max(ratios))

    def test_cbor2_and_msgpack_by_hypothesis(self):
        hypothesis, some = self.peer("hypothesis"), self.peer("hypothesis.strategies")
        cbor2, msgpack = self.peer("cbor2"), self.peer("msgpack")
        leaves = (some.none() | some.booleans() | some.floats() | some.binary() | some.text()
                  | some.integers(-(1 << 63), (1 << 64) - 1))
        values = some.recursive(leaves, lambda inner: some.lists(inner) | some.dictionaries(
            some.text(), inner))

        @hypothesis.settings(deadline=None, derandomize=True, database=None, max_examples=200)
        @hypothesis.given(values)
        def check(value):
            cbor, packed = tensorfmt.cbor_dumps(value), tensorfmt.msgpack_dumps(value)
            self.assertEqual(packed, msgpack.packb(value))
            for back in (tensorfmt.cbor_loads(cbor), cbor2.loads(cbor), msgpack.unpackb(packed),
                         tensorfmt.cbor_loads(cbor2.dumps(value)), tensorfmt.msgpack_loads(packed)):
                self.assertSame(back, value)
        check()


# -- [2] workers, remote ------------------------------------------------------------------------


class WorkersTest(FolderCase, PeerCase):
    """2,000 tensors, sent to workers one by one without their data."""

    def setUp(self):
        super().setUp()
        tensorfmt.save(self.path, {"t%d" % i: tensor([i] * 1024, "float32") for i in range(2000)})
        file = load(self.path)
        self.addCleanup(file.close)
        self.items = list(file.values())

    def test_multiprocessing(self):
        from multiprocessing import get_context
        with get_context("spawn").Pool(2) as pool:
            check_workers(self, 2000, pool.map(keep_in_worker, self.items, 1))

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
        super().setUp()
        self.fsspec, asyn, web, test_utils = [self.peer(name) for name in (
            "fsspec", "fsspec.asyn", "aiohttp.web", "aiohttp.test_utils")]
        self.asked, loop = [], asyn.get_loop()  # (status, bytes) of each answer

        async def note(request, answer):
            if request.method == "GET":
                self.asked.append((answer.status, answer.content_length))

        async def whole(request):
            return web.Response(body=read_file(os.path.join(self.folder, "burnpack")))
        app = web.Application()
        app.on_response_prepare.append(note)
        app.router.add_get("/whole", whole)  # a server without ranges
        app.router.add_static("/", self.folder)
        server = test_utils.TestServer(app)
        asyn.sync(loop, server.start_server)
        self.addCleanup(asyn.sync, loop, server.close)
        self.url = str(server.make_url("/"))
        for kind in FORMATS:
            tensorfmt.save(os.path.join(self.folder, kind), many_tensors(500), format=kind)

    def test_requests(self):
        for kind in FORMATS:
            with self.subTest(format=kind), self.fsspec.open(
                    self.url + kind, block_size=1 << 16, cache_type="readahead") as stream:
                del self.asked[:]
                file = load(stream)
                self.assertEqual(set([row[0] for row in self.asked]), {206})
                self.assertTrue(len(self.asked) <= 8, self.asked)
                self.assertTrue(sum([row[1] for row in self.asked]) < 800000, self.asked)
                self.assertEqual((len(file), file.path), (500, self.url + kind))
                del self.asked[:]
                self.assertEqual(file["model.layers.7.2"].tolist(), [[0.0] * 4] * 4)
                self.assertTrue(len(self.asked) <= 1)
                self.assertTrue(tensorfmt.verify(stream))

    def test_errors(self):
        with self.fsspec.open(self.url + "whole", block_size=1 << 16, cache_type="none") as stream:
            self.assertIn("range", str(error_of(ValueError, load, stream)))  # of fsspec
        with self.fsspec.open(self.url + "burnpack", block_size=0) as stream:
            self.assertIn("seek", str(error_of(ValueError, load, stream)))

    def test_readme(self):
        """The recipe of README, with the address of our server."""
        import re
        text, = re.findall("```py\n(.*?)```", text_of("README.md"), re.S)
        path = os.path.join(self.folder, "model.bpk")
        tensorfmt.save(path, {"layer.weight": tensor([[1.0, 2.0]], "float32")})
        names = {"load": load}
        exec(text.replace("https://example.org/", self.url), names)
        self.assertEqual(names["values"], [[1.0, 2.0]])


# -- [3] at home --------------------------------------------------------------------------------
#
# Beside the libraries of its users; `.ci/run home` installs what can be had of them.


class AtHomeTest(FolderCase, PeerCase):
    def test_torch_writes_into_memory_only(self):
        """Through views, and while it trains the weights where they lie; never into the file."""
        torch, numpy = self.peer("torch"), self.peer("numpy")
        tensorfmt.save(self.path, {"weight": tensor([[1.0] * 64] * 64, "float32"),
                                   "bias": tensor([0.0] * 64, "bfloat16")})
        data, model = read_file(self.path), torch.nn.Linear(64, 64)
        with load(self.path) as file:
            weight, bias = torch.from_dlpack(file["weight"]), torch.as_tensor(file["bias"])
            weight[0].add_(1)
            bias.add_(2)
            self.assertEqual((file["weight"][0, 5], file["bias"][5]), (2.0, 2.0))
            model.load_state_dict({"weight": weight, "bias": bias.float()}, assign=True)
            self.assertEqual(model.weight.data_ptr(), numpy.asarray(file["weight"]).ctypes.data)
            model(torch.ones(64)).sum().backward()
            torch.optim.SGD(model.parameters(), 0.5).step()
            self.assertEqual((file["weight"][1, 1], read_file(self.path)), (0.5, data))

    def test_arrays_out(self):
        numpy, torch, jax = self.peer("numpy"), self.peer("torch"), self.peer("jax")
        jax.config.update("jax_enable_x64", True)
        shared = [torch.from_dlpack, torch.as_tensor, torch.asarray]
        by_dlpack = [numpy.from_dlpack, jax.numpy.from_dlpack]
        calls = shared + [torch.tensor, jax.numpy.asarray, jax.numpy.array] + by_dlpack
        for kind, options in STORED:
            made = {}
            for dtype in row_of(kind).dtypes:
                made[dtype] = tensor([[0, 1, 2], [3, 4, 5]], dtype)
                made[dtype + "0"] = tensor(1, dtype)
            for whole in load(dumps(made, format=kind, **options)).values():
                parts, bits = [whole], whole
                if whole.ndim:
                    parts += [whole[::-1, ::2], whole[1:], whole[:0]]
                is_coded = whole.dtype not in tensorfmt.STRUCT_CODE
                for item, call in product(parts, calls):
                    if is_coded and call in by_dlpack:
                        if call is numpy.from_dlpack or item.dtype != "bfloat16":
                            continue  # they know none
                    with self.subTest(format=kind, name=whole.name, call=str(call), **options):
                        self.check_array_out(call, item)
                if is_coded:
                    bits = whole.copy(dtype="int%d" % (8 * whole.itemsize))
                if whole.zero_copy:
                    place = numpy.asarray(bits).ctypes.data
                    self.assertEqual([call(whole).data_ptr() for call in shared], [place] * 3)

    def check_array_out(self, call, item):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = call(item)
        self.assertEqual(str(got.dtype).split(".")[-1], item.dtype)
        self.assertEqual(tuple(got.shape), item.shape)
        self.assertSame(got.tolist(), item.tolist())

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

    def test_jax_arrays_come_in(self):
        jax = self.peer("jax")
        jax.config.update("jax_enable_x64", True)
        for dtype in DTYPES:
            given = jax.numpy.arange(6).reshape(2, 3).astype(dtype)
            for part in (given, given.T, given[1, ::2]):
                item = tensor(part)
                self.assertSame((item.dtype, item.tolist()), (dtype, part.tolist()))
            for known in given.dtype, given.dtype.type, getattr(jax.numpy, dtype):
                self.assertEqual(tensor([1], known).dtype, dtype)
        error = error_of(TypeError, dumps, {"w": jax.numpy.ones(2, "complex128")}, format="zt")
        self.assertIn(".real and .imag", str(error))


# -- [4] generations ----------------------------------------------------------------------------
#
# `.ci/run generations` makes one virtual environment for each wheel, in the folder of the variable
# TENSORFMT_GENERATIONS: they exclude each other. Their Pythons run these texts. A model is JSON,
# [metadata, {name: [dtype, shape, values]}].

MAGNETRON1 = """
import magnetron as m
from magnetron.io import StorageArchive
def make(dtype, shape, values):
    return m.Tensor.of(values, dtype=getattr(m, dtype.replace("bool", "boolean")))
def write(path, metadata, tensors):
    with StorageArchive(path, "w") as file:
        for key, value in dict(metadata, **tensors).items():
            file[key] = value
def read(path):  # it reads no tensors of a file
    with StorageArchive(path, "r") as file:
        return {}, file.metadata()
"""
MAGNETRON2 = """
import magnetron as m
from magnetron.snapshot import SnapshotWriter, deserialize as read
def make(dtype, shape, values):
    return m.Tensor(values, dtype=getattr(m.dtype, dtype.replace("bool", "boolean")))
def write(path, metadata, tensors):
    with SnapshotWriter(path, metadata) as file:
        for name, item in tensors.items():
            file.declare(name, item.shape, item.dtype)
        for name, item in tensors.items():
            file.write(name, item)
"""
ARRAYS = """
import numpy
def make(dtype, shape, values):
    return numpy.array(values, dtype).reshape(shape)
"""
ZTENSOR1 = ARRAYS + """
import ztensor as z
def write(path, metadata, arrays):
    with z.Writer(path) as file:
        for name, array in arrays.items():
            file.add_tensor(name, array)
def read(path):
    with z.Reader(path) as file:
        return {name: numpy.array(file.read_tensor(name)) for name in file.get_tensor_names()}, {}
"""
ZTENSOR2 = ARRAYS + """
import ztensor.numpy as z
def write(path, metadata, arrays):
    z.save_file(arrays, path)
def read(path):
    return z.load_file(path), {}
"""
RUN = """
import json, sys
path, model = sys.argv[1], json.load(sys.stdin)
if model:
    write(path, model[0], {name: make(*row) for name, row in model[1].items()})
tensors, metadata = read(path)
print(json.dumps([metadata, {
    name: (item.dtype.name.replace("boolean", "bool"), item.shape, item.tolist())
    for name, item in tensors.items()}]))
"""
WHEELS = {  # wheel -> its text, suffix, version in its files, option version= of what it reads
    "magnetron-0.1.2": (MAGNETRON1, "mag", 1, 1), "magnetron-0.2.2": (MAGNETRON2, "mag", 300, 300),
    "ztensor-0.1.4": (ZTENSOR1, "zt", "0.1.0", "0.1"), "ztensor-2.1.2": (ZTENSOR2, "zt", "2", "2")}
PYTHON = os.path.join(os.environ.get("TENSORFMT_GENERATIONS", HERE), "%s", "bin", "python")


def ask_peer(wheel, path, model=None):
    """Return the model that a real library reads from a file, which it may write before."""
    import json
    import subprocess
    return json.loads(subprocess.check_output(
        [PYTHON % wheel, "-c", WHEELS[wheel][0] + RUN, path],
        input=json.dumps(model).encode()).decode())


def model_for(wheel):
    """Return a model of every dtype and shape that a library can write."""
    dtypes = {"magnetron-0.1.2": ["int32", "float32", "bool"], "magnetron-0.2.2": list(
        tensorfmt.Mag300.DTYPES)}.get(wheel, list(tensorfmt.STRUCT_CODE))
    shapes = [(5, 1, 2), (1,), (2, 3), (700,), (3,)]
    if wheel == "magnetron-0.2.2":
        shapes.append(())
    tensors = {}
    for dtype, shape in [(dtype, shape) for dtype in dtypes for shape in shapes]:
        least, end = -9 if dtype[0] in "if" else 0, 2 if dtype == "bool" else 100
        flat = [least + i % (end - least) for i in range(count_of(shape))]
        tensors["b\u00e9 %s.%d" % (dtype, len(tensors))] = [
            dtype, list(shape), tensor(flat, dtype, shape).tolist()]
    return [{"a": -5, "b": 0.1} if wheel[0] == "m" else {}, tensors]


def model_of(file):
    """Return a File as a model."""
    return [dict(file.metadata), {name: [item.dtype, list(item.shape), item.tolist()]
                                  for name, item in file.items()}]


class GenerationsTest(FolderCase):
    def test_real_libraries_write_and_read(self):
        wheels = [wheel for wheel in WHEELS if os.path.exists(PYTHON % wheel)]
        if not wheels:
            self.skipTest("no wheels: `.ci/run generations` installs them")
        for wheel in wheels:
            _, suffix, version, _ = WHEELS[wheel]
            path, again = [os.path.join(self.folder, name + suffix) for name in ("m.", "again.")]
            model = model_for(wheel)
            ask_peer(wheel, path, model)
            with self.subTest(wheel=wheel), load(path, verify=True) as file:
                self.assertEqual((file.attrs["version"], model_of(file)), (version, model))
                data = dumps(file, format=suffix)
                self.assertEqual(model_of(load(data)), model)
                if version != 1 and not [1 for item in file.values() if item.encoding != "raw"]:
                    self.assertEqual(data, read_file(path))
                for other in wheels:  # the way on for old files, and back
                    first = other == "magnetron-0.1.2"  # it reads no tensors, few dtypes
                    if WHEELS[other][1] == suffix and (not first or wheel == other):
                        tensorfmt.convert(file, again, version=WHEELS[other][3])
                        self.assertEqual(ask_peer(other, again),
                                         [model[0], {} if first else model[1]])
