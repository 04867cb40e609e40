// SPDX-License-Identifier: MIT
// Open the pages of browser_pages.py in a real headless Chromium and use them:
//     node browser.mjs MODULES_FOLDER PAGES_FOLDER CHROMIUM
// MODULES_FOLDER has playwright-core, which drives the browser, and axe-core, which finds weak contrast.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [modules, pages, executablePath] = process.argv.slice(2).map((arg) => path.resolve(arg));
const require = createRequire(modules + "/");
const { chromium } = require("playwright-core");
let passed = 0, failed = 0, title = "";

function check(what, fine, note = "") {
  if (fine) passed += 1;
  else { failed += 1; console.log(`FAIL ${title}: ${what} ${note}`); }
}

const browser = await chromium.launch({ executablePath });
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

// Rows are alike: of each table and of the strip, the first ones.
async function checkContrast(page, what) {
  const some = { exclude: ["tr:nth-child(n+50)", "nav a:nth-child(n+50)"] };
  const found = await page.evaluate((some) => window.axe.run(some, { runOnly: "color-contrast" }), some);
  check(what, !found.violations.length, found.violations.flatMap((rule) => rule.nodes).map((node) => node.html).join(" "));
}

// Words of texts that stand in two lines.
const brokenWords = (page) => page.evaluate(() => {
  const found = [], range = document.createRange();
  for (const cell of document.querySelectorAll("tr:nth-child(-n+80) td:not(.hex), summary, p")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode())
      for (const word of text.data.matchAll(/\b\w{2,22}\b/g)) {
        range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
        if (range.getClientRects().length > 1) found.push(word[0]);
      }
  }
  return found;
});

// What can only be seen by scrolling sideways, though nothing there scrolls.
const offScreen = (page) => page.evaluate(() => [...document.querySelectorAll("h1, p, td, th, summary, nav a")].filter(
  (e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.textContent.slice(0, 40)));

// ---- every page, at three widths, light and dark
for (const file of files) for (const width of [1400, 900, 400]) {
  title = `${file} ${width}`;
  const page = await open(file, width);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check("no sideways scroll", wide <= width, wide);
  const cut = await page.$$eval(".hex", (cells) => cells.filter((e) => e.scrollWidth > e.clientWidth + 1).length);
  check("no bytes are cut", !cut, cut);
  const off = await offScreen(page), broken = await brokenWords(page);
  check("nothing is off screen", !off.length, off.slice(0, 3).join(" | "));
  check("no word is broken", !broken.length, broken.slice(0, 3).join(" | "));
  const lists = await page.$$eval(".scroll", (all) => all.map((e) => e.scrollHeight > e.clientHeight ||
    !e.previousElementSibling.textContent.includes("scrolls")));
  check("a list scrolls if it says so", !lists.includes(false));
  check("no script", await page.evaluate(() => window.hacked === undefined));
  if (width === 1400) {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.$$eval("details", (all) => all.forEach((one) => { one.open = true; }));
    await page.addScriptTag({ path: require.resolve("axe-core") });
    await checkContrast(page, "texts have contrast");
    await page.emulateMedia({ colorScheme: "dark" });
    check("dark is dark", light !== await background());
    await checkContrast(page, "texts have contrast in the dark");
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
