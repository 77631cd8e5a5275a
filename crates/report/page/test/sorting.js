// Tables sort by the column whose heading is pressed.

import { deepEqual, equal, ok } from "node:assert/strict";

import { opened, unfold } from "./opened.js";

const SORTABLE = "table.sortable:has(thead button)";

export async function run({ browser, page, check }) {
  await check("tables sort by each column, both ways and back", () =>
    opened({ browser, page }, {}, async (tab) => {
      await unfold(tab);
      const count = await tab.locator(SORTABLE).count();
      ok(count > 0, "there is a table with more than a row");
      for (let place = 0; place < count; place++) await sortsEach(tab.locator(SORTABLE).nth(place));
    }),
  );
}

async function sortsEach(table) {
  const came = await rows(table);
  const headings = table.locator("thead th");
  for (const heading of await headings.all()) {
    const { column, figures } = await heading.evaluate((it) => ({
      column: it.cellIndex,
      figures: it.classList.contains("figures"),
    }));
    const orders = figures ? ["descending", "ascending"] : ["ascending", "descending"];
    for (const order of orders) {
      await heading.locator("button").press("Enter");
      equal(await heading.getAttribute("aria-sort"), order);
      equal(await table.locator("[aria-sort]").count(), 1);
      isSorted(await rows(table), came, { column, figures, order });
    }
    await heading.locator("button").press("Enter");
    equal(await table.locator("[aria-sort]").count(), 0);
    deepEqual(await rows(table), came);
  }
}

/** Rows with what stands below them, each with the key of each cell. */
async function rows(table) {
  return table.evaluate((it) => {
    const all = [];
    for (const row of it.tBodies[0].rows) {
      const cells = [...row.cells].map((cell) => ({
        text: cell.textContent.trim(),
        sort: cell.dataset.sort,
      }));
      if (row.className === "sentence" && !cells[0].text) all.at(-1).below.push(cells);
      else all.push({ cells, below: [] });
    }
    return all;
  });
}

function isSorted(now, came, { column, figures, order }) {
  const name = (row) => JSON.stringify(row);
  deepEqual(now.map(name).sort(), came.map(name).sort(), "the same rows, each with what is below");
  const keys = now.map(({ cells: { [column]: cell } }) => (figures ? cell?.sort : cell?.text || undefined));
  const known = keys.filter((it) => it !== undefined);
  deepEqual(keys.slice(0, known.length), known, "what is not known is last");
  const compare = figures ? (a, b) => a - b : new Intl.Collator("en", { numeric: true }).compare;
  const sign = order === "ascending" ? 1 : -1;
  for (let place = 1; place < known.length; place++) {
    const [before, after] = [known[place - 1], known[place]];
    ok(sign * compare(before, after) <= 0, `${before} before ${after}`);
  }
}
