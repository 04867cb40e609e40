// SPDX-License-Identifier: MIT
// Runs a script under MicroPython as a board would:
//     node micropython.mjs PACKAGE SCRIPT [FILE ...] [-- ARG ...]
//
// PACKAGE is the folder of an installed WebAssembly build.  It sees no files of this machine, so
// SCRIPT and the FILEs are copied into its own, in memory and into one folder.  The build carries
// library modules that the firmware of boards leaves out; only what is compiled into the
// interpreter can be imported here.
// Exit code: the script's own, 1 after an exception.
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...rest] = process.argv.slice(2);
const end = rest.includes("--") ? rest.indexOf("--") : rest.length;
const files = rest.slice(0, end), args = rest.slice(end + 1);
const build = await import(pathToFileURL(resolve(folder, "micropython.mjs")));
const python = await build.loadMicroPython({
  heapsize: 8 << 20,
  linebuffer: false,
  stdout: (bytes) => process.stdout.write(bytes),
  stderr: (bytes) => process.stderr.write(bytes),
});

python.FS.mkdir("/board");
for (const file of files) python.FS.writeFile(`/board/${basename(file)}`, readFileSync(file));

python.runPython(`
def _run(script):
    import sys
    for name in list(sys.modules):
        del sys.modules[name]
    sys.path[:] = [""]
    sys.argv[:] = [script] + ${JSON.stringify(args)}
    import os
    os.chdir("/board")
    with open(script) as stream:
        code = compile(stream.read(), script, "exec")
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as stop:
        status = stop.args[0] if stop.args else 0
        if status is None or isinstance(status, int):
            return int(status or 0)
        print(status)
        return 1
    except BaseException as error:
        sys.print_exception(error)
        return 1
    return 0
_status = _run(${JSON.stringify(basename(files[0]))})
`);
process.exitCode = python.globals.get("_status");
