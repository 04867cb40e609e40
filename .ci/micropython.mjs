// SPDX-License-Identifier: MIT
// Runs board.py under MicroPython as a board would: node micropython.mjs PACKAGE FILE ... -- COPY ...
//
// PACKAGE is the folder of an installed WebAssembly build.  It sees no files of this machine, so
// the FILEs are copied into its own, in memory.  The build carries library modules that the
// firmware of boards leaves out; only what is compiled into the interpreter can be imported here.
// Exit code: 1 after an exception.
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...rest] = process.argv.slice(2);
const files = rest.slice(0, rest.indexOf("--")), copies = rest.slice(files.length + 1);
const build = await import(pathToFileURL(resolve(folder, "micropython.mjs")));
const python = await build.loadMicroPython({
  heapsize: 8 << 20,
  linebuffer: false,
  stdout: (bytes) => process.stdout.write(bytes),
  stderr: (bytes) => process.stderr.write(bytes),
});
for (const file of files) python.FS.writeFile("/" + basename(file), readFileSync(file));
try {
  python.runPython(`
import sys
for name in list(sys.modules):
    del sys.modules[name]
sys.path[:] = ["/"]
import board
board.main(${JSON.stringify(copies)})
`);
} catch (error) {
  console.error(error.message.trim());
  process.exitCode = 1;
}
