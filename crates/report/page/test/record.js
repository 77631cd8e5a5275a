// The record that is saved from a page is the record.

import { deepEqual, equal } from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { opened } from "./opened.js";

export async function run({ browser, page, check }) {
  await check("the records can be saved without a script", async () => {
    const files = (await readdir(page.records)).sort();
    await opened({ browser, page }, { javaScriptEnabled: false }, async (tab, heard) => {
      const links = await tab.locator(".save a").all();
      const saved = [];
      for (const link of links) {
        const [download] = await Promise.all([tab.waitForEvent("download"), link.click()]);
        saved.push(JSON.parse(await readFile(await download.path(), "utf8")));
      }
      // A link to data is a request, which goes nowhere.
      deepEqual(heard.splice(0).filter((it) => !it.startsWith("request: data:")), []);
      // Of a card among published ones there is a comparison that has no file.
      const own = saved.filter((it) => it.comparison === undefined || files.length === saved.length);
      equal(own.length, files.length);
      for (const [place, file] of files.entries()) {
        deepEqual(own[place], JSON.parse(await readFile(join(page.records, file), "utf8")));
      }
    });
  });
}
