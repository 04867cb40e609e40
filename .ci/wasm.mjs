// SPDX-License-Identifier: MIT
// Runs Python code in a WebAssembly build, Pyodide or MicroPython: node wasm.mjs PACKAGE CODE [FILE ...]
//
// PACKAGE is the folder of the build.  It sees no files of this machine, so the FILEs are copied
// into its own, in memory.  MicroPython carries library modules that the firmware of boards leaves
// out; only what is compiled into the interpreter can be imported here.
import { existsSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, code, ...files] = process.argv.slice(2);
const path = ["pyodide.mjs", "micropython.mjs"].map((name) => resolve(folder, name)).find(existsSync);
const { loadPyodide, loadMicroPython } = await import(pathToFileURL(path));
const write = (bytes) => process.stdout.write(bytes);
const python = await (loadPyodide ? loadPyodide() : loadMicroPython({
  heapsize: 8 << 20, linebuffer: false, stdout: write, stderr: write }));
for (const file of files) python.FS.writeFile("/" + basename(file), readFileSync(file));
try {
  python.runPython(loadPyodide ? 'import sys; sys.path.insert(0, "/")'
    : 'import sys; sys.modules.clear(); sys.path[:] = ["/"]');
  python.runPython(code);
} catch (error) {
  console.error(error.message.trim());
  process.exitCode = 1;
}
