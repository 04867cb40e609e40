# SPDX-License-Identifier: MIT
"""What users get as types: checked by mypy --strict and pyright (.ci/run types), and run there."""
import array
import io
from contextlib import suppress
from typing import Any, Dict, List, Mapping, Optional, Tuple

import tensorfmt
from tensorfmt import File, FormatError, Tensor, dumps, load, tensor
from typing_extensions import assert_type  # mypy needs this package, too

made: Dict[str, Tensor] = {"w": tensor([[1.0, 2.0]], "float32"),
                           "n": tensor(7, custom={"note": 1, "unit": "m"})}
data = assert_type(dumps(made, format="ztensor"), bytes)
with load(data) as file:
    assert_type(file, File)
    tensors: Mapping[str, Tensor] = file
    for name, item in file.items():
        assert_type(name, str)
        assert_type(item, Tensor)
    assert_type(list(file), List[str])
    assert_type(list(file.keys()), List[str])
    assert_type(file.get("w"), Optional[Tensor])
    w = assert_type(file["w"], Tensor)
    assert_type(w.dtype, Optional[str])
    assert_type(w.shape, Tuple[int, ...])
    assert_type(w.nbytes, int)
    assert_type(w.tobytes(), bytes)
    assert_type(w.astype("float64"), Tensor)
    assert_type(tensor([1], int, (1, 1)).astype(float), Tensor)
    print(float(tensor([1])), int(tensor(2.5)))
    raw: memoryview = w.raw
    shown: memoryview = w.data
    values: List[Any] = w.tolist()
    number: float = w[0, 1]
    wrong: int = w.raw  # type: ignore[assignment]  # raw is not Any
for other in bytearray(data), memoryview(data), io.BytesIO(data), array.array("B", data):
    assert_type(load(other), File)
assert_type(tensorfmt.verify(data).rows, List[Tuple[str, str, Optional[str], str, Optional[int]]])
assert_type(made["w"] == made["n"], bool)
target = io.BytesIO()
tensorfmt.save(target, made, format="ztensor")
tensorfmt.convert(load(data), target, format="ztensor")
assert_type(tensorfmt.convert(data, target, format="ztensor").lost, List[Tuple[str, int, int]])
assert_type(tensorfmt.diff(data, data).tensors, int)
with suppress(TypeError):
    load(3)  # type: ignore[arg-type]
with suppress(TypeError):
    tensorfmt.save(b"path", made)  # type: ignore[arg-type]
try:
    load(b"no tensors")
except FormatError as error:
    assert_type(error.offset, Optional[int])
assert_type(tensorfmt.detect(data), Optional[str])
