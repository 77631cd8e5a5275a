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

/** One heading by the keyboard; all of them by clicks inside the page, which is quicker. */
async function sortsEach(table) {
  const button = table.locator("thead button").first();
  await button.press("Enter");
  equal(await table.locator("[aria-sort]").count(), 1);
  await button.press("Enter");
  await button.press("Enter");
  equal(await table.locator("[aria-sort]").count(), 0);
  const { came, headings } = await table.evaluate(sortByEach);
  for (const { column, figures, steps } of headings) {
    const orders = figures ? ["descending", "ascending"] : ["ascending", "descending"];
    for (const [place, order] of orders.entries()) {
      const { said, marked, rows } = steps[place];
      equal(said, order);
      equal(marked, 1);
      isSorted(rows, came, { column, figures, order });
    }
    equal(steps[2].marked, 0);
    deepEqual(steps[2].rows, came);
  }
}

/** In the page: presses each heading three times, and says what the table is each time. */
function sortByEach(table) {
  // Rows with what stands below them, each with the key of each cell.
  const rows = () => {
    const all = [];
    for (const row of table.tBodies[0].rows) {
      const cells = [...row.cells].map((cell) => ({
        text: cell.textContent.trim(),
        sort: cell.dataset.sort,
      }));
      if (row.className === "sentence" && !cells[0].text) all.at(-1).below.push(cells);
      else all.push({ cells, below: [] });
    }
    return all;
  };
  const press = (heading) => {
    heading.querySelector("button").click();
    return {
      said: heading.getAttribute("aria-sort"),
      marked: table.querySelectorAll("[aria-sort]").length,
      rows: rows(),
    };
  };
  const came = rows();
  const headings = [...table.querySelectorAll("thead th")].map((heading) => ({
    column: heading.cellIndex,
    figures: heading.classList.contains("figures"),
    steps: [press(heading), press(heading), press(heading)],
  }));
  return { came, headings };
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
