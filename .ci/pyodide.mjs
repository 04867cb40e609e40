// SPDX-License-Identifier: MIT
// Run test classes under Pyodide (CPython in WebAssembly): node pyodide.mjs PACKAGE [FILE ...]
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(resolve(folder, "pyodide.mjs")));
const python = await loadPyodide();
for (const file of files) python.FS.writeFile("/home/pyodide/" + basename(file), readFileSync(file));
try {
  python.runPython(`
import platform, sys
sys.path.insert(0, "/home/pyodide")
print("@", platform.python_implementation(), platform.python_version(), sys.platform)
import unittest
names = ["CodecTest", "GoldenTest", "RoundTripTest", "TensorTest", "BadFileTest"]
done = unittest.main("test_tensorfmt", argv=["test_tensorfmt"] + names, exit=False).result
print("@", done.testsRun, "tests")
assert done.testsRun and done.wasSuccessful()
`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
