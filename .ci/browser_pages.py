# SPDX-License-Identifier: MIT
"""Write the pages that browser.mjs opens: browser_pages.py FOLDER"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tensorfmt
from tensorfmt import save, tensor

LIMIT = 2000000  # bytes of a page, whatever the file


def page(path, broken=False):
    code = tensorfmt.main(["explain", "--html", path + ".html", path])
    if code != broken:
        raise SystemExit("explain --html %s: exit code %d" % (path, code))
    nbytes = os.stat(path + ".html").st_size
    if nbytes > LIMIT:
        raise SystemExit("%s.html has %d bytes" % (path, nbytes))


def main(folder):
    os.chdir(folder)
    weight = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")
    save("model.primitiv", {"enc.w": weight, "enc.w:Adam.m1": weight, "enc.b": weight[0]})
    save("names.bpk", {"<script>window.hacked = 1</script>": weight, "a&b\"'": weight},
         metadata={"</table><script>window.hacked = 2</script>": "<b>"})
    with open("model.primitiv", "rb") as stream:
        data = stream.read()
    with open("broken.primitiv", "wb") as stream:
        stream.write(data[:-30])
    save("many.zt", [("layer.%d.weight" % i, weight) for i in range(10000)])
    save("tiny.tbs", {"w": weight})
    for path in ("model.primitiv", "names.bpk", "many.zt", "tiny.tbs"):
        page(path)
    page("broken.primitiv", broken=True)


main(sys.argv[1])
