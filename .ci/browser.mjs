// SPDX-License-Identifier: MIT
// Open the pages of browser_pages.py in a real headless Chromium and use them:
//     node browser.mjs PLAYWRIGHT_FOLDER PAGES_FOLDER [SCREENSHOT_FOLDER]
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [playwright, pages, shots] = process.argv.slice(2).map((arg) => path.resolve(arg));
const { chromium } = createRequire(import.meta.url)(playwright);
let passed = 0, failed = 0;

function check(what, fine) {
  if (fine) passed += 1;
  else { failed += 1; console.log("FAIL " + what); }
}

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((file) => fs.existsSync(file));
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });
for (const file of fs.readdirSync(pages).filter((name) => name.endsWith(".html")).sort()) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
  const errors = [], requests = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  page.on("request", (request) => { if (!request.url().startsWith("file:")) requests.push(request.url()); });
  await page.goto("file://" + path.join(pages, file));
  const on = (selector) => page.$$eval(selector + ".on", (found) => found.map((e) => e.dataset.f));
  const rows = await page.$$eval("tr[data-f]", (found) => found.length);
  check(file + ": rows", rows > 5);

  await page.click('#hex span[data-f="2"]');
  check(file + ": a click on bytes marks their row", (await on("tr")).join() === "2");
  await page.hover('tr[data-f="1"]');
  check(file + ": hover over a row marks its bytes", (await on("#hex span")).includes("1"));
  await page.mouse.move(700, 10);
  check(file + ": behind the hover the click stays", (await on("tr")).join() === "2");
  await page.keyboard.press("ArrowDown");
  check(file + ": arrow down goes on", (await on("tr")).join() === "3");
  check(file + ": and takes the focus", await page.evaluate(() => document.activeElement.dataset.f === "3"));
  await page.keyboard.press("ArrowUp");
  check(file + ": arrow up goes back", (await on("tr")).join() === "2");
  await page.click('tr[data-f="4"] td');
  check(file + ": a click on a row marks its bytes", (await on("#hex span")).every((id) => id === "4"));

  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.emulateMedia({ colorScheme: "dark" });
  check(file + ": dark is dark", light !== await background());
  if (shots) await page.screenshot({ path: path.join(shots, file + ".dark.png") });
  await page.emulateMedia({ colorScheme: "light", media: "print" });
  check(file + ": in print nothing scrolls", await page.$eval("#fields", (e) => getComputedStyle(e).overflow === "visible"));
  await page.emulateMedia({ media: "screen" });
  if (shots) await page.screenshot({ path: path.join(shots, file + ".png") });
  check(file + ": names are text", await page.evaluate(() => window.hacked === undefined));
  if (file.startsWith("broken")) check(file + ": says where it broke", await page.$eval("tr.here", (e) => e.nextElementSibling === null));
  if (file.startsWith("many")) check(file + ": says what is left out", (await page.textContent("header")).includes("left out"));
  check(file + ": no script errors: " + errors.join("; "), errors.length === 0);
  check(file + ": no network: " + requests.join(" "), requests.length === 0);
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
