// Everything can be reached and used without a mouse.

import { deepEqual, ok } from "node:assert/strict";

import { opened, unfold } from "./opened.js";

export async function run({ browser, page, check }) {
  await check("the first key leads to the results", () =>
    opened({ browser, page }, {}, async (tab) => {
      await tab.keyboard.press("Tab");
      const skip = tab.locator("a.skip:focus");
      ok((await skip.boundingBox()).x >= 0, "the link is seen when it has the focus");
      await tab.keyboard.press("Enter");
      // The browser tells of its new place a moment later.
      await tab.waitForURL((url) => url.hash === "#main");
    }),
  );
  await check("the focus goes through all that can be used, in the order of the page", () =>
    opened({ browser, page }, {}, async (tab) => {
      await unfold(tab);
      const expected = await tab.evaluate(() => {
        const all = "a[href], button, summary, .scroll, pre.command, pre.template, .timeline, .chart svg[tabindex]";
        return [...document.querySelectorAll(all)]
          .filter((it) => it.checkVisibility())
          .map((it, place) => (it.dataset.place = place));
      });
      await tab.evaluate(() => {
        window.reached = [];
        addEventListener("focusin", ({ target }) => window.reached.push(Number(target.dataset.place)));
      });
      for (let count = 0; count < expected.length; count++) await tab.keyboard.press("Tab");
      deepEqual(await tab.evaluate(() => window.reached), expected);
    }),
  );
}
