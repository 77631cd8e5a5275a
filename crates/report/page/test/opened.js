// A page in a tab of its own, and all that happened to it.

import { deepEqual } from "node:assert/strict";

/** What is waited for takes no longer, in milliseconds. */
const PATIENCE_MS = 15_000;

/** Opens the page, gives it to `body`, and closes it: nothing that it should not do has happened. */
export async function opened({ browser, page }, options, body) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const heard = [];
  context.on("request", (request) => {
    if (request.url() !== page.url && !request.url().startsWith(`${page.url}#`)) heard.push(`request: ${request.url().slice(0, 200)}`);
  });
  context.on("console", (message) => heard.push(`console: ${message.text()}`));
  context.on("weberror", (error) => heard.push(`error: ${error.error()}`));
  context.on("dialog", (dialog) => {
    heard.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  try {
    const tab = await context.newPage();
    await tab.goto(page.url);
    await body(tab, heard);
    deepEqual(heard, []);
  } finally {
    await context.close();
  }
}

/** All that is folded is opened, so that all is looked at. */
export async function unfold(tab) {
  await tab.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
}

/** Waits until something is so, as browsers tell of what happened a moment later. */
export async function eventually(isSo) {
  const until = Date.now() + PATIENCE_MS;
  while (!(await isSo()) && Date.now() < until) await new Promise((done) => setTimeout(done, 20));
}
