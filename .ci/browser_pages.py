# SPDX-License-Identifier: MIT
"""Write the pages that browser.mjs opens: browser_pages.py FOLDER"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tensorfmt
from tensorfmt import save, tensor

LIMIT = 2000000  # bytes of a page, whatever the file


def page(path, *options, broken=False):
    code = tensorfmt.main(["explain", "--html", path + ".html", path] + list(options))
    if code != broken:
        raise SystemExit("explain --html %s: exit code %d" % (path, code))
    nbytes = os.stat(path + ".html").st_size
    if nbytes > LIMIT:
        raise SystemExit("%s.html has %d bytes" % (path, nbytes))


def damage(path, target, change):
    with open(path, "rb") as stream:
        data = stream.read()
    with open(target, "wb") as stream:
        stream.write(change(data))
    page(target, broken=True)


def main(folder):
    os.chdir(folder)
    weight = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")
    values = tensor([[i * j % 7 - 3.0 for i in range(8)] for j in range(16)], "float32")
    net = {"0.weight": values, "0.bias": values[0], "1.running_mean": values[1],
           "1.num_batches_tracked": tensor(469, "int64"), "3.weight": values[:4],
           "3.bias": tensor([0.5, 0.25], "float32")}
    save("net.tbs", net)
    save("net.bpk", net)
    save("net.mag", {"w": weight, "b": weight[0]})
    save("net.zt", net)
    save("model.primitiv", {"enc.w": weight, "enc.w:Adam.m1": weight, "enc.b": weight[0]})
    evil = "<script>window.hacked = %d</script>"
    save("names.bpk", {evil % 1: weight, "a&b\"'{{rows}} %s": weight, evil % 6 + "x" * 300: weight},
         metadata={"</table>" + evil % 2: "<b>" + evil % 3})
    save("names.zt", {"</script>" + evil % 4: tensor([1.0], "float32")})
    save("layers.safetensors", {
        "model.layers.%d.%s.weight" % (i, part): weight for i in range(60)
        for part in ("self_attn.q_proj", "mlp.up_proj", "post_attention_layernorm", "norm")})
    for many in "many.zt", "many.primitiv", "many.bpk":
        save(many, [("layer.%d.weight" % i, weight) for i in range(10000)])
    save("tiny.tbs", {"w": weight})
    save("empty.mag", {})
    for path in sorted(os.listdir(".")):
        page(path)
    save("part.bpk", net)
    page("part.bpk", "--tensor", "3.weight")
    damage("net.bpk", "broken_cut.bpk", lambda data: data[:len(data) * 6 // 10])
    damage("net.bpk", "broken_edge.bpk", lambda data: data[:-8])  # where the last tensor begins
    damage("net.bpk", "broken_flip.bpk", lambda data: data[:98] + b"\xf4" + data[99:])
    damage("model.primitiv", "broken_end.primitiv", lambda data: data[:-30])
    damage("names.bpk", "broken_names.bpk", lambda data: data[:-3])


main(sys.argv[1])
