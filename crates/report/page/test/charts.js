// Charts can be read at both widths: no label over another one or cut off, none too small; each mark has
// a value, under the mouse, by the keyboard and in a table; and every record says when it was made.

import { deepEqual, equal, ok } from "node:assert/strict";

import { opened, unfold } from "./opened.js";

/** Text is no smaller, in pixels. */
export const SMALLEST = 12;

export async function run({ browser, page, check }) {
  await check("labels of charts can be read at both widths", () =>
    opened({ browser, page }, {}, async (tab) => {
      await unfold(tab);
      for (const width of [1280, 400]) {
        await tab.setViewportSize({ width, height: 900 });
        deepEqual(await tab.evaluate(unreadable, SMALLEST), [], `${width} pixels`);
      }
    }),
  );
  await check("every mark has a value, and every record a date", () =>
    opened({ browser, page }, {}, async (tab, heard) => {
      await unfold(tab);
      const charts = await tab.evaluate(valuesOf);
      deepEqual(charts.filter(({ marks, rows }) => marks === 0 || rows === 0), []);
      const dates = await tab.evaluate(() =>
        [...document.querySelectorAll("article[id^=r]")].filter(
          (it) => !/\d{4}-\d\d-\d\d \d\d:\d\d UTC/.test(it.querySelector("header").textContent),
        ).map((it) => it.id),
      );
      deepEqual(dates, []);
      const first = await tab.locator(".overview").innerText();
      ok(/\d{4}-\d\d-\d\d \d\d:\d\d UTC/.test(first), first);
      if (charts.length > 0) await pointAtAndTabTo(tab);
      deepEqual(heard, []);
    }),
  );
  await check("a value is there without a script", () =>
    opened({ browser, page }, { javaScriptEnabled: false }, async (tab) => {
      const without = await tab.evaluate(() =>
        [...document.querySelectorAll(".values path")].filter((it) => !it.textContent.trim()).length,
      );
      equal(without, 0);
    }),
  );
}

/** The first chart says a value under the mouse, and other ones by the keyboard. */
async function pointAtAndTabTo(tab) {
  const chart = tab.locator(".chart svg:visible:has(.values)").first();
  const tip = tab.locator(".tip:not([hidden])");
  await chart.scrollIntoViewIfNeeded();
  await chart.locator(".values path").last().hover({ force: true });
  ok((await tip.innerText()).trim().length > 0, "a value under the mouse");
  await tab.mouse.move(0, 0);
  await chart.focus();
  await tab.keyboard.press("ArrowRight");
  const first = await tip.innerText();
  ok(first.length > 0, "a value by the keyboard");
  equal((await tab.getByRole("status").textContent()).trim(), first.trim());
  await tab.keyboard.press("Escape");
  equal(await tip.count(), 0);
}

/** In the page: text that is too small, over other text, or beyond its drawing. */
export function unreadable(smallest) {
  const found = [];
  const meet = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  for (const svg of document.querySelectorAll(".chart svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.height === 0) continue;
    const texts = [...svg.querySelectorAll("text")].map((text) => {
      const { x, y, width, height } = text.getBBox();
      const { a, e, f } = text.getScreenCTM();
      const left = a * x + e;
      const top = a * y + f;
      return { says: text.textContent.trim(), size: a * parseFloat(getComputedStyle(text).fontSize),
        left, top, right: left + a * width, bottom: top + a * height };
    });
    texts.forEach((one, place) => {
      if (one.size < smallest - 0.05) found.push(`${one.says}: ${one.size} pixels`);
      const out = one.left < frame.left - 1 || one.right > frame.right + 1 ||
        one.top < frame.top - 3 || one.bottom > frame.bottom + 3;
      if (out) found.push(`${one.says}: beyond its drawing`);
      if (/^[\d.,]+ ?…$/.test(one.says)) found.push(`${one.says}: a figure without its unit`);
      for (const other of texts.slice(place + 1)) {
        if (meet(one, other)) found.push(`${one.says} / ${other.says}`);
      }
    });
  }
  return found;
}

/** In the page: of each chart the marks that say something, and the rows of its table. */
function valuesOf() {
  return [...document.querySelectorAll("figure.chart")].map((figure) => ({
    title: figure.querySelector("figcaption").textContent.slice(0, 60),
    marks: figure.querySelector("svg")?.querySelectorAll(".values path").length ?? 0,
    rows: figure.querySelectorAll(".numbers tbody tr").length,
  }));
}
