// SPDX-License-Identifier: MIT
// Open the pages of browser_pages.py in a real headless Chromium and use them:
//     node browser.mjs PLAYWRIGHT_FOLDER PAGES_FOLDER [SCREENSHOT_FOLDER]
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [playwright, pages, shots] = process.argv.slice(2).map((arg) => path.resolve(arg));
const { chromium } = createRequire(import.meta.url)(playwright);
let passed = 0, failed = 0, title = "";

function check(what, fine, note = "") {
  if (fine) passed += 1;
  else { failed += 1; console.log(`FAIL ${title}: ${what} ${note}`); }
}

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((file) => fs.existsSync(file));
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });
const TAGS = "html,head,meta,title,style,body,header,h1,p,input,output,main,section,b,i,span,a,table,tbody,tr,td,th,script,br";
const files = fs.readdirSync(pages).filter((name) => name.endsWith(".html")).sort();

async function open(file, width, hash = "") {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") page.errors.push(message.text()); });
  page.on("request", (request) => { if (!request.url().startsWith("file:")) page.errors.push(request.url()); });
  await page.goto("file://" + path.join(pages, file) + hash);
  return page;
}

async function until(test) { // a page answers a click soon, on a busy machine later; 10 s are enough
  for (let i = 0; i < 200 && !await test(); i++) await new Promise((done) => setTimeout(done, 50));
}

async function shoot(page, file, what) {
  if (shots) await page.screenshot({ path: path.join(shots, `${file.slice(0, -5)}-${what}.png`) });
}

// ---- every page, at three widths, dark and printed
for (const file of files) for (const width of [1400, 900, 420]) {
  title = `${file} ${width}`;
  const page = await open(file, width);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  const cut = await page.$$eval(".hex", (cells) => cells.filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).length);
  check("no sideways scroll", wide <= width, wide);
  check("no bytes are cut", !cut, cut);
  const odd = await page.evaluate((known) => all(`:not(${known})`).map((e) => e.tagName).join(), TAGS);
  check("only tags that are known", !odd, odd);
  check("no script in attributes", await page.evaluate(() => all("*").every((e) => e.getAttributeNames().every((name) => !name.startsWith("on")))));
  check("names are text", await page.evaluate(() => window.hacked === undefined && document.scripts.length === 1));
  check("rows", await page.evaluate(() => rows.length && rows.every((r) => r.cells.length === 6)));
  check("each place has one anchor", await page.evaluate(() => new Set(all("[id]").map((e) => e.id)).size === all("[id]").length));
  check("one tab stop", await page.evaluate(() => rows.filter((r) => r.tabIndex === 0).length === 1));
  if (/^(net|names|broken|layers|many)/.test(file)) await shoot(page, file, width);
  if (width === 1400) {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    check("dark is dark", light !== await background());
    await shoot(page, file, "dark");
    await page.emulateMedia({ colorScheme: "dark", media: "print" });
    check("print is light", light === await background());
    await page.emulateMedia({ media: "screen", colorScheme: "light" });
    const contrast = await page.evaluate(() => {
      const part = (text) => { const found = text.match(/[\d.]+/g).map(Number); return found; };
      const light = (text) => part(text).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (part(c).length < 4) return c; } };
      return Math.min(...all(".say, .at a, .hex span, .hex span i, .txt, .name, .box, .box b, .banner").slice(0, 400).filter((e) => e.offsetParent && e.textContent.trim()).map((e) => {
        const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort();
        return (b + 0.05) / (a + 0.05);
      }));
    });
    check("texts have contrast", contrast >= 4.5, contrast);
  }
  check("no script errors, no network", !page.errors.length, page.errors.join("; "));
  await page.close();
}

// ---- the behaviours, on a file with tables in tables
title = "net.tbs.html";
let page = await open(title, 1400);
const at = () => page.evaluate(() => document.activeElement.dataset.b || document.activeElement.tagName);
const shown = () => page.evaluate(() => rows.filter((r) => !r.hidden).length);
const say = () => page.textContent("#say");
const box = () => page.evaluate(() => { const r = document.activeElement.getBoundingClientRect(); return [r.top, r.bottom]; });
const bar = () => page.evaluate(() => document.querySelector("#fields th").getBoundingClientRect().bottom);
const all = await page.evaluate(() => rows.length);
const places = () => page.$$eval("tr[data-b], .strip a, #list a", (found) => found.slice(0, 300).map((e) => Object.values(e.getBoundingClientRect().toJSON()).join()).join(" "));

const before = await places();
const part = await page.$('.strip a[data-s^="data 0.bias"]');
const middle = await part.boundingBox();
await page.mouse.move(middle.x + 5, middle.y + 5);
await page.mouse.move(middle.x + 9, middle.y + 9);
check("hover on the strip says what", (await say()).includes("0.bias, data"), await say());
check("hover moves nothing", before === await places());
await page.mouse.click(middle.x + 9, middle.y + 9);
const bias = await part.getAttribute("data-b");
await until(async () => await at() === bias && (await box())[0] > await bar() && (await box())[1] < 750);
check("a click on the strip goes to the row", await at() === bias, await at());
check("which is clear of the bar and of the edge", (await box())[0] > await bar() && (await box())[1] < 750, await box());
check("and says what it is", (await say()).includes("data 0.bias = float32 [8]"), await say());
const next = await page.evaluate((b) => rows.find((r) => +r.dataset.b > b).dataset.b, +bias);
await page.keyboard.press("ArrowDown");
check("arrow down goes on", await at() === next, await at());
await page.keyboard.press("ArrowUp");
check("arrow up goes back", await at() === bias, await at());
await page.keyboard.press("End");
check("End goes to the last row", await at() === await page.evaluate(() => rows[rows.length - 1].dataset.b));
await page.keyboard.press("PageUp");
check("PageUp goes 20 rows back", await at() === await page.evaluate(() => rows[rows.length - 21].dataset.b));
await page.keyboard.press("Home");
check("Home goes to the first", await at() === "0", await at());
check("which is not under the bar", (await box())[0] >= await bar() - 1, `${await box()} ${await bar()}`);

const table = await page.evaluate(() => rows.find((r) => r.cells[3].textContent.trim() === "[3].table").dataset.b);
const link = await page.$(`#fields td.say a[href="#0x${Number(table).toString(16)}"]`);
const from = await link.evaluate((e) => e.closest("tr").dataset.b);
await link.click();
await until(async () => await at() === table);
check("an arrow leads to its target", await at() === table, await at());
const path_of = await page.evaluate((b) => (rows.find((r) => r.dataset.b === b && r.cells[3].textContent.trim() === "data_type") || rows.filter((r) => r.dataset.b > b).find((r) => r.cells[3].textContent.trim() === "data_type")).over.map((r) => r.cells[3].textContent.trim()).join(), table);
check("fields are below their table", path_of.endsWith(".table"), path_of);
await page.keyboard.press("ArrowLeft");
const folded = await shown();
check("arrow left folds", folded < all && await page.evaluate(() => document.activeElement.ariaExpanded === "false"), folded);
await page.keyboard.press("ArrowRight");
check("arrow right unfolds", await shown() === all);
await page.click(`tr[data-b="${table}"] [role=button]`);
check("the button folds", await shown() === folded);
await page.click(`tr[data-b="${table}"] [role=button]`);
const back = await page.$(`tr[data-b="${table}"] td.say a:last-child`);
await back.click();
await until(async () => await at() === from);
check("and an arrow leads there and back", await at() === from, `${await at()} ${from}`);
await page.goBack();
await until(async () => await at() === table);
check("back goes back", await at() === table, await at());

await page.keyboard.press("/");
await page.keyboard.type("3.WEIGHT");
const hits = await shown();
check("a search shows some rows", hits > 0 && hits < 60, hits);
check("and what is around them", await page.evaluate(() => rows.filter((r) => !r.hidden).every((r) => r.over.every((one) => !one.hidden))));
check("and how many", /^\d+ of \d+ fields, 1 of 6 tensors$/.test(await page.textContent("output")), await page.textContent("output"));
check("and filters the tensors", await page.$$eval("#list tr+tr", (found) => found.filter((e) => !e.hidden).length) === 1);
await page.keyboard.press("ArrowDown");
check("arrows walk through what was found", await page.evaluate(() => !document.activeElement.hidden && document.activeElement.tagName === "TR"));
await page.fill("input", "05 00 00 00");
check("a search finds bytes", await shown() > 0 && await shown() < all);
await page.fill("input", "zzz");
check("nothing is found", await shown() === 0 && (await page.textContent("output")).startsWith("0 of"));
await page.fill("input", "");
check("an empty search shows all", await shown() === all);
check("one tab stop behind all that", await page.evaluate(() => rows.filter((r) => r.tabIndex === 0).length === 1));
await page.click("#list tr:nth-child(2) a");
await until(async () => (await say()).includes("data "));
check("a tensor leads to its data", (await say()).includes("data "), await say());
await shoot(page, title, "selected");
check("no script errors", !page.errors.length, page.errors.join("; "));
await page.close();

// ---- more tensors than are shown: the search finds each
for (const file of ["many.zt", "many.bpk"]) {
  const many = await open(file + ".html", 1400);
  const names = () => many.$$eval("#list tr+tr", (found) => found.filter((e) => e.offsetHeight).map((e) => e.cells[0].innerText.replaceAll("\u200b", "")));
  check(`${file}: the first tensors are shown`, (await names()).length === 1000, (await names()).length);
  check(`${file}: others are said`, (await many.textContent("#about")).includes("9,000 more, which the search finds"));
  await many.fill("input", "layer.9876.");
  check(`${file}: a search finds each`, (await names()).join() === "layer.9876.weight", (await names()).join());
  check(`${file}: and says how many`, (await many.textContent("output")).endsWith(", 1 of 10000 tensors"), await many.textContent("output"));
  await many.fill("input", "");
  check(`${file}: an empty search shows the first again`, (await names()).length === 1000);
  await many.close();
}

// ---- layouts with the places and the values of their file
for (const [file, label, text, value] of [["net.bpk", "DS", "rounded up to 256", ""], ["net.bpk", "0", "metadata_size", /\d+$/],
  ["net.mag", "end", "64", ""], ["net.zt", "S", "CBOR array", ""], ["net.tbs", "M", "FlatBuffer", ""], ["layers.safetensors", "8 + n", "data", ""]]) {
  title = file + ".html";
  page = await open(title, 1400);
  const row = page.locator(".draw tr", { has: page.locator("td:nth-child(2)", { hasText: new RegExp(`^${label.replace("+", "\\+")}$`) }) });
  check(`the layout has ${label}`, (await row.textContent()).includes(text));
  if (value) check("a live value", value.test(await row.locator("b").first().textContent()));
  await row.locator("a").click();
  const place = await row.locator("a").textContent();
  await until(async () => Number(await at()) === Number(place));
  check(`${label} leads to its place`, Number(await at()) === Number(place), `${await at()} ${place}`);
  await page.close();
}
title = "net.bpk.html";
page = await open(title, 1400);
check("meanings name the place of a label", (await page.textContent("#fields")).includes("bytes from DS = 0x"));
check("histograms", await page.$$eval("#list i.bars", (found) => found.filter((e) => getComputedStyle(e).clipPath.length > 20 && e.offsetWidth === 96).length) >= 3);
await page.close();

// ---- many rows, broken files, an address with a place
title = "layers.safetensors.html";
page = await open(title, 1400);
const rows = await page.evaluate(() => rows.length);
check("many rows begin folded", await shown() < rows / 2, await shown());
await page.fill("input", "layers.7.mlp");
check("a search keeps what is around", await page.evaluate(() => !rows[1].hidden) && await shown() < 20, await shown());
await shoot(page, title, "search");
const quickest = (call) => page.evaluate(`Math.min(...[1, 2, 3, 4, 5].map(() => { // of five: others are at work, too
  const start = performance.now(); ${call}; return performance.now() - start; }))`);
const searched = await quickest('search.value = search.value === "q" ? "Q" : "q"; show()');
check("a search is quick", searched < 500, searched);
const hovered = await quickest("for (let i = 0; i < 50; i++) mark(rows[i * 20])") / 50;
check("a hover is quick", hovered < 25, hovered);
await page.close();
for (const file of files.filter((name) => name.startsWith("many"))) {
  title = file;
  page = await open(file, 1400);
  check("says what is left out", (await page.textContent("body > p")).includes("left out"));
  check("the strip has few parts", await page.$$eval(".strip:first-child a", (found) => found.length < 900 && found.length > 5));
  await page.close();
}
for (const file of files.filter((name) => name.startsWith("broken"))) {
  title = file;
  page = await open(file, 1400);
  check("a banner says what is broken", /This file is broken: .+\..* bytes were read, .* were not/s.test(await page.textContent(".banner")));
  await page.click(".banner a");
  const chosen = () => page.evaluate(() => document.activeElement.classList.contains("fault"));
  await until(chosen);
  check("and leads to the fault", await chosen(), await at());
  check("what was not read is there", await page.$$eval("tr.unreached, tr.fault", (found) => found.length) > 0);
  await page.close();
}
title = "net.mag.html";
page = await open(title, 1400);
const fourth = await page.evaluate(() => rows[4].dataset.b);
await page.close();
page = await open(title, 1400, `#0x${Number(fourth).toString(16)}`);
await until(async () => await at() === fourth);
check("an address with a place chooses its row", await at() === fourth, await at());
await page.close();
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
