// What is copied is what is seen.

import { deepEqual, equal, ok } from "node:assert/strict";

import { eventually, opened, unfold } from "./opened.js";

/** Resolves when nobody has the clipboard any more. All pages of a browser share one. */
let clipboardIsFree = Promise.resolve();

export async function run({ browser, page, check }) {
  const permissions = ["clipboard-read", "clipboard-write"];
  await withTheClipboard(() =>
    check("tables and commands can be copied", () =>
      opened({ browser, page }, { permissions }, async (tab) => {
        await unfold(tab);
        const count = await tab.locator("table, pre.command").count();
        const buttons = tab.locator(".tools > button.copy:only-child");
        equal(await buttons.count(), count);
        for (let place = 0; place < count; place++) {
          const source = tab.locator("table, pre.command").nth(place);
          await buttons.nth(place).click();
          const seen = await source.evaluate(asSeen);
          const copied = () => tab.evaluate(() => navigator.clipboard.readText());
          await eventually(async () => (await copied()) === seen);
          deepEqual((await copied()).split("\n"), seen.split("\n"));
        }
      }),
    ),
  );
  await check("without a clipboard the text is selected", () =>
    opened({ browser, page }, {}, async (tab) => {
      await tab.evaluate(() =>
        Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }),
      );
      await tab.getByRole("button", { name: "Copy command" }).last().click();
      const selected = await tab.evaluate(() => getSelection().toString());
      ok(selected.length > 0);
      equal(selected, await tab.locator("pre.command").last().textContent());
    }),
  );
}

/** After whoever else wants it, and before whoever wants it later. */
function withTheClipboard(body) {
  const turn = clipboardIsFree.then(body);
  clipboardIsFree = turn.catch(() => {});
  return turn;
}

/** In the page: a table as cells with tabs between them; a command as it is. */
function asSeen(element) {
  if (element.matches("pre")) return element.textContent;
  const lines = [...element.querySelectorAll("tr")].map((row) =>
    [...row.children].map((cell) => cell.innerText.trim() + "\t".repeat(cell.colSpan - 1)).join("\t"),
  );
  return `${lines.join("\n")}\n`;
}
