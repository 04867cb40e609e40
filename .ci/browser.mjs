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

  await page.keyboard.press("End");
  check(file + ": End goes to the last field", (await on("tr")).join() === await page.$eval("tr[data-f]:last-child", (e) => e.dataset.f));
  await page.keyboard.press("Home");
  check(file + ": Home to the first", (await on("tr")).join() === "0");
  await page.keyboard.press("PageDown");
  const down = Number((await on("tr")).join());
  check(file + ": PageDown goes on", down > 10 || (down > 1 && down === rows - 1));
  await page.keyboard.press("PageUp");
  check(file + ": PageUp comes back", (await on("tr")).join() === "0");

  const places = () => page.$$eval("tr[data-f], #hex span, #list a", (found) => found.slice(0, 300).map((e) => {
    const box = e.getBoundingClientRect();
    return [box.x, box.y, box.width, box.height].join();
  }).join(" "));
  const before = await places();
  for (const target of ['tr[data-f="2"]', '#hex span[data-f="3"]', "h1"]) {
    await page.hover(target);
    check(file + ": nothing moves when the mouse is over " + target, before === await places());
  }
  check(file + ": coloured bars end with their bytes", (await page.$$eval("#hex span", (found) => found.filter((e) => e.textContent !== e.textContent.trim()).length)) === 0);
  check(file + ": each place has one anchor", await page.evaluate(() => new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length));
  check(file + ": the format is named", /(zTensor|primitiv|Burnpack|TensorBuffers)/.test(await page.textContent("header p")));

  const links = await page.$$("td:nth-child(3) a, #list a");
  if (links.length) {
    const link = links[links.length - 1], name = await page.$eval("#list a", (e) => e.textContent);
    await link.click();
    const offset = (await link.getAttribute("href")).slice(3).padStart(8, "0");
    check(file + ": a link leads to the data", (await page.textContent("tr.on")).startsWith(offset));
    check(file + ": which is in sight", await page.$eval("tr.on", (e) => {
      const box = e.getBoundingClientRect(), pane = document.querySelector("#fields").getBoundingClientRect();
      return box.top >= pane.top && box.bottom <= pane.bottom + 1;
    }));
    await page.fill("input", name.toUpperCase());
    const shown = await page.$$eval("tr[data-f]", (found) => found.filter((e) => !e.hidden).map((e) => e.textContent));
    check(file + ": search shows what has the text", shown.length > 0 && shown.every((text) => text.toLowerCase().includes(name.toLowerCase())));
    await page.keyboard.press("ArrowDown");
    check(file + ": arrows walk through what was found", shown.includes(await page.textContent("tr.on")));
    await page.fill("input", "");
    check(file + ": an empty search shows all", (await page.$$eval("tr[data-f]", (found) => found.filter((e) => e.hidden).length)) === 0);
  }
  const again = await browser.newPage();
  await again.goto("file://" + path.join(pages, file) + "#" + await page.$eval('tr[data-f="4"]', (e) => e.id));
  check(file + ": an address with an anchor marks its field", (await again.$eval("tr.on", (e) => e.dataset.f)) === "4");
  await again.close();

  await page.setViewportSize({ width: 420, height: 900 });
  const panes = await page.$$eval("section", (found) => found.map((e) => e.getBoundingClientRect()).map((box) => [box.top, box.bottom, box.right]));
  check(file + ": in a narrow window panes are below each other", panes.every((box, i) => box[2] <= 421 && (!i || box[0] >= panes[i - 1][1] - 1)));
  check(file + ": and the page is not wider", await page.evaluate(() => document.documentElement.scrollWidth <= 420));
  if (shots) await page.screenshot({ path: path.join(shots, file + ".narrow.png") });
  await page.setViewportSize({ width: 1400, height: 800 });

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
