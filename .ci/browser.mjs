// SPDX-License-Identifier: MIT
// Open the pages of browser_pages.py in a real headless Chromium and use them:
//     node browser.mjs PLAYWRIGHT_FOLDER PAGES_FOLDER
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [playwright, pages] = process.argv.slice(2).map((arg) => path.resolve(arg));
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

// The row that a link led to: its offset, and whether it can be seen below the bar.
const target = (page) => page.evaluate(() => {
  const row = document.querySelector("tr:target");
  if (!row) return {};
  const box = row.getBoundingClientRect(), bar = document.querySelector("#fields th").getBoundingClientRect();
  return { at: row.id, seen: box.top >= bar.bottom - 1 && box.top < innerHeight, fault: row.classList.contains("fault") };
});

async function follow(page, what, link) {
  const wanted = (await link.getAttribute("href")).slice(1);
  await link.click();
  const found = await target(page);
  check(`${what} leads to its row`, found.at === wanted, `${found.at} ${wanted}`);
  check(`${what}: the row can be seen`, found.seen);
  return found;
}

// The least contrast of a text and what is behind it.
const contrast = (page) => page.evaluate(() => {
  const part = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (text) => part(text).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (part(c).length < 4) return c; } };
  return Math.min(...[...document.querySelectorAll("td, td a, .hex span, .hex i, .banner, .banner b, nav a, th, pre, .key b")].slice(0, 600)
    .filter((e) => e.offsetParent && e.textContent.trim()).map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort();
      return (b + 0.05) / (a + 0.05);
    }));
});

// ---- every page, at two widths, light and dark
for (const file of files) for (const width of [1400, 900]) {
  title = `${file} ${width}`;
  const page = await open(file, width);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("no sideways scroll", wide <= width, wide);
  const cut = await page.$$eval(".hex", (cells) => cells.filter((e) => e.scrollWidth > e.clientWidth + 1).length);
  check("no bytes are cut", !cut, cut);
  check("no script", await page.evaluate(() => window.hacked === undefined));
  if (width === 1400) {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    check("texts have contrast", await contrast(page) >= 4.5, await contrast(page));
    await page.emulateMedia({ colorScheme: "dark" });
    check("dark is dark", light !== await background());
    check("texts have contrast in the dark", await contrast(page) >= 4.5, await contrast(page));
  }
  check("no errors, no network", !page.errors.length, page.errors.join("; "));
  await page.close();
}

// ---- links lead to rows
title = "net.tbs.html";
let page = await open(title, 1400);
await follow(page, "the strip", page.locator('nav a[title^="0.bias"]'));
await follow(page, "a tensor", page.locator("section a").nth(3));
await follow(page, "a field", page.locator("#fields td:last-child a").first());
await page.goBack();
check("back goes back", (await target(page)).seen);
await page.locator("summary").first().click();
await follow(page, "the drawn layout", page.locator("pre a").nth(2));
await page.close();

// ---- broken files, an address with a place
for (const file of files.filter((name) => name.startsWith("broken"))) {
  title = file;
  page = await open(file, 1400);
  check("the row is the fault", (await follow(page, "the banner", page.locator(".banner a"))).fault);
  await page.close();
}
title = "net.mag.html";
page = await open(title, 1400, "#0x4");
check("an address with a place shows its row", (await target(page)).at === "0x4" && (await target(page)).seen);
await page.close();
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed || !passed ? 1 : 0;
