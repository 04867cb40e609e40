# SPDX-License-Identifier: MIT
"""Write the pages that browser.mjs opens: browser_pages.py FOLDER"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tensorfmt
from tensorfmt import tensor
from test_tensorfmt import F32, many_tensors, read_file, write_file

LIMIT = 2000000  # bytes of a page, whatever the file
EVIL = "<script>window.hacked = %d</script>"


def page(path, *options, broken=False):
    code = tensorfmt.main(["explain", "--html", path + ".html", path] + list(options))
    if code != broken or os.stat(path + ".html").st_size > LIMIT:
        raise SystemExit("explain --html %s: exit code %d, or more bytes than %d" % (
            path, code, LIMIT))


def main(folder):
    os.chdir(folder)
    values = tensor([[i * j % 7 - 3.0 for i in range(8)] for j in range(16)], "float32")
    net = {"0.weight": values, "0.bias": values[0], "1.running_mean": values[1],
           "1.num_batches_tracked": tensor(469, "int64"), "3.weight": values[:4],
           "3.bias": tensor([0.5, 0.25], "float32")}
    for path, tensors, metadata in (
            ("net.tbs", net, {}), ("net.bpk", net, {}), ("net.zt", net, {}),
            ("net.mag", {"w": values, "b": F32}, {}), ("empty.mag", {}, {}),
            ("model.primitiv", {"enc.w": values, "enc.w:Adam.m1": values, "enc.b": F32}, {}),
            ("names.bpk", {EVIL % 1: F32, "a&b\"'{{rows}} %s": F32, EVIL % 2 + "x" * 300: F32},
             {"</table>" + EVIL % 3: "<b>" + EVIL % 4}),
            ("layers.safetensors", many_tensors(240), {}), ("many.bpk", many_tensors(10000), {})):
        tensorfmt.save(path, tensors, metadata=metadata)
        page(path)
    tensorfmt.save("part.bpk", net)
    page("part.bpk", "--tensor", "3.weight")
    for path, start, stop, middle in (
            ("net.bpk", 1200, None, b""), ("net.bpk", 98, 99, b"\xf4"),
            ("net.bpk", -8, None, b""),  # where the last tensor begins
            ("model.primitiv", -30, None, b"")):
        data = read_file(path)
        target = "broken%d_%s" % (start, path)
        write_file(target, data[:start] + middle + (data[stop:] if stop else b""))
        page(target, broken=True)


main(sys.argv[1])
