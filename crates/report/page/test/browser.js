// Looks at pages in Chromium: `node browser.js FOLDER`. The folder holds NAME.html, and in NAME/
// the records that the page was made from, in their order.
//
// Each check is a line, `ok` or `FAILED`; the exit code is 1 when one failed.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

import { Report } from "./report.js";
import * as charts from "./charts.js";
import * as copying from "./copying.js";
import * as keyboard from "./keyboard.js";
import * as looks from "./looks.js";
import * as policy from "./policy.js";
import * as record from "./record.js";
import * as sorting from "./sorting.js";
import * as timeline from "./timeline.js";
import * as zoom from "./zoom.js";

/** How many pages are looked at at the same time. */
const AT_ONCE = 2;

const [folder] = process.argv.slice(2);
const report = new Report();
const browser = await chromium.launch({
  executablePath: process.env.TAPSTONE_TEST_CHROMIUM ?? "/usr/bin/chromium",
  // Whatever a page asked for, it would not get it.
  args: ["--host-resolver-rules=MAP * ~NOTFOUND"],
});

try {
  const names = (await readdir(folder)).filter((it) => it.endsWith(".html")).sort();
  const pages = names.map((file) => ({
    name: file.replace(/\.html$/, ""),
    file: join(folder, file),
    url: pathToFileURL(join(folder, file)).href,
    records: join(folder, file.replace(/\.html$/, "")),
  }));
  await Promise.all(Array.from({ length: AT_ONCE }, () => lookAtAll(pages)));
} finally {
  await browser.close();
}
process.exitCode = report.finish();

/** Takes one after another, while others do the same. */
async function lookAtAll(pages) {
  for (let page = pages.shift(); page; page = pages.shift()) await lookAt(page);
}

async function lookAt(page) {
  for (const checks of [looks, charts, record, policy, keyboard, sorting, copying, timeline, zoom]) {
    await checks.run({ browser, page, check: (what, body) => report.check(page.name, what, body) });
  }
}
