// How a page looks: with and without a script, in both themes, wide and narrow, and on paper.

import { deepEqual, equal, ok } from "node:assert/strict";
import { createRequire } from "node:module";
import { stat } from "node:fs/promises";

import { opened, unfold } from "./opened.js";

const axe = createRequire(import.meta.url)("axe-core");

const LARGEST_BYTES = 2_000_000;

/** Light ink is on dark paper. */
const THEMES = { light: ([paper, ink]) => paper > 200 && ink < 100, dark: ([paper, ink]) => paper < 60 && ink > 200 };

export async function run({ browser, page, check }) {
  for (const javaScriptEnabled of [false, true]) {
    const script = javaScriptEnabled ? "with a script" : "without a script";
    const seen = {};
    await check(`nothing is asked for, nothing goes wrong, ${script}`, () =>
      opened({ browser, page }, { javaScriptEnabled }, async (tab) => {
        await unfold(tab);
        if (!javaScriptEnabled) await withoutTimers(tab);
        await tab.evaluate(thinOut);
        await tab.evaluate(axe.source);
        for (const theme of Object.keys(THEMES)) {
          for (const width of [1440, 390]) {
            await tab.emulateMedia({ colorScheme: theme });
            await tab.setViewportSize({ width, height: 900 });
            // Without a script nothing has another colour or order: one view of it is enough.
            const again = !javaScriptEnabled && (theme === "dark" || width === 390);
            seen[`${theme}, ${width} pixels, ${script}`] = await look(tab, again);
          }
        }
      }),
    );
    for (const [how, view] of Object.entries(seen)) await checkView({ page, check }, how, view);
  }
  await check("it is small, and has no id twice", async () => {
    ok((await stat(page.file)).size < LARGEST_BYTES);
    await opened({ browser, page }, {}, async (tab) => {
      const ids = await tab.$$eval("[id]", (all) => all.map((it) => it.id));
      ok(ids.length > 1);
      equal(new Set(ids).size, ids.length);
    });
  });
  await check("it can be printed", () =>
    opened({ browser, page }, { javaScriptEnabled: false }, async (tab) => {
      await unfold(tab);
      const pdf = await tab.pdf({ format: "A4" });
      const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
      ok(pdf.length > 8_000 && pages > 0, `${pdf.length} bytes, ${pages} pages`);
      // On paper nothing can be scrolled to.
      await tab.emulateMedia({ media: "print" });
      await tab.setViewportSize({ width: 720, height: 1000 });
      deepEqual(await tab.evaluate(cutOff), []);
    }),
  );
}

/** Where scripts are off there are no timers, but axe-core waits for nothing with its own. */
async function withoutTimers(tab) {
  await tab.evaluate(() => {
    window.setTimeout = (body, _, ...values) => void Promise.resolve().then(() => body(...values));
  });
}

async function look(tab, withoutAxe) {
  const seen = await tab.evaluate(measure);
  if (withoutAxe) return seen;
  const { violations, passes } = await tab.evaluate(() =>
    axe.run(document, { preload: false, resultTypes: ["violations"] }),
  );
  return { ...seen, violations, passes };
}

async function checkView({ page, check }, how, view) {
  await check(`every chart and table is there, in ${how}`, () => {
    ok(view.tables.length + view.charts.length > 0);
    deepEqual(view.tables.filter(({ height }) => height < 10), []);
    deepEqual(view.charts.filter(({ shown, words }) => shown !== 1 || words < 20), []);
    ok(THEMES[how.split(",")[0]](view.colours), `paper and ink: ${view.colours}`);
  });
  await check(`nothing is wider than the screen, in ${how}`, () => {
    ok(view.scrollWidth <= view.innerWidth, `${view.scrollWidth} of ${view.innerWidth} pixels`);
  });
  if (!view.passes) return;
  await check(`axe-core finds nothing, in ${how}`, () => {
    deepEqual(view.violations.map(({ id, nodes }) => ({ id, html: nodes[0].html.slice(0, 300) })), []);
    ok(view.passes.length > 20, `${view.passes.length} rules applied`);
  });
}

/** In the page: thousands of calls are one picture to axe-core, which walks through all of them. */
function thinOut() {
  const many = "svg.spans path:nth-child(n + 10), .values path:nth-child(n + 4)";
  document.querySelectorAll(many).forEach((path) => path.remove());
}

/** In the page: what is seen of it. */
function measure() {
  const box = (element) => element.getBoundingClientRect();
  const brightness = (colour) => {
    const [red, green, blue] = colour.match(/\d+/g).map(Number);
    return Math.round((red + green + blue) / 3);
  };
  const { backgroundColor, color } = getComputedStyle(document.body);
  return {
    tables: [...document.querySelectorAll("table")].map((table) => ({
      height: box(table).height,
      text: table.textContent.slice(0, 80),
    })),
    charts: [...document.querySelectorAll("figure.chart")].map((figure) => ({
      title: figure.textContent.slice(0, 80),
      shown: [...figure.querySelectorAll(":scope > svg")].filter((svg) => box(svg).height > 20).length,
      words: figure.querySelector("svg")?.getAttribute("aria-label")?.length ?? 0,
    })),
    colours: [backgroundColor, color].map(brightness),
    scrollWidth: document.scrollingElement.scrollWidth,
    innerWidth,
  };
}

/** In the page: what stands out of the paper. */
function cutOff() {
  return [...document.querySelectorAll("table, figure, p, pre, h2, h3, dd")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 120));
}
