// What is copied is what is seen.

import { deepEqual, equal, ok } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { eventually, opened, unfold } from "./opened.js";

/** Resolves when nobody has the clipboard any more. All pages of a browser share one. */
let clipboardIsFree = Promise.resolve();

export async function run({ browser, page, check }) {
  const permissions = ["clipboard-read", "clipboard-write"];
  await withTheClipboard(() =>
    check("tables and commands can be copied", () =>
      opened({ browser, page }, { permissions }, async (tab) => {
        await unfold(tab);
        // The first goes through the real clipboard, the others through what stands in for it.
        const first = tab.locator("table, pre.command").first();
        await tab.locator(".tools > button.copy:only-child").first().click();
        const seen = await first.evaluate(asSeen);
        const copied = () => tab.evaluate(() => navigator.clipboard.readText());
        await eventually(async () => (await copied()) === seen);
        deepEqual((await copied()).split("\n"), seen.split("\n"));
        const all = await tab.evaluate(copyAll, asSeen.toString());
        deepEqual(all.filter(({ got, seen }) => got !== seen), []);
        equal(all.length, await tab.locator(".tools > button.copy:only-child").count());
        await commandsAreThoseOfRecords(tab, page);
      }),
    ),
  );
  await check("without a clipboard the text is selected", () =>
    opened({ browser, page }, {}, async (tab) => {
      await tab.evaluate(() =>
        Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }),
      );
      await unfold(tab);
      const buttons = tab.getByRole("button", { name: "Copy command" });
      // Words that could not be copied as they are have no button.
      if ((await buttons.count()) === 0) return equal(await tab.locator("pre.command").count(), 0);
      await buttons.last().click();
      const selected = await tab.evaluate(() => getSelection().toString());
      ok(selected.length > 0);
      equal(selected, await tab.locator("pre.command").last().textContent());
    }),
  );
}

/** In the page: what each button copies, beside what is seen. */
async function copyAll(asSeenText) {
  const asSeen = new Function(`return ${asSeenText}`)();
  let got;
  Object.defineProperty(navigator, "clipboard", {
    value: { writeText: async (text) => void (got = text) },
    configurable: true,
  });
  const sources = [...document.querySelectorAll("table, pre.command")];
  const buttons = [...document.querySelectorAll(".tools > button.copy:only-child")];
  return buttons.map((button, place) => {
    got = undefined;
    button.click();
    return { got, seen: asSeen(sources[place]) };
  });
}

/** A shell gives the recorded words back; a command of which words are hidden has no button. */
async function commandsAreThoseOfRecords(tab, page) {
  const shown = await tab.$$eval(".environment pre", (all) =>
    all.map((it) => ({
      text: it.textContent,
      copies: it.nextElementSibling?.matches(".tools") ?? false,
    })),
  );
  const files = (await readdir(page.records)).sort();
  const records = await Promise.all(
    files.map(async (file) => JSON.parse(await readFile(join(page.records, file), "utf8"))),
  );
  const commands = records.map(({ command }) => command).filter((it) => it?.length > 0);
  const whole = commands.filter((words) => words.every(isPlainText));
  const copied = shown.filter(({ copies }) => copies).map(({ text }) => parsed(text));
  for (const words of whole) {
    ok(copied.some((it) => JSON.stringify(it) === JSON.stringify(words)), words.join(" "));
  }
  equal(copied.filter((words) => words.some((it) => it.includes("…"))).length, 0);
}

/** Nothing in it is hidden, or would have to be shown as something else. */
const isPlainText = (word) => /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(word) && !word.includes("…") && !word.includes("\\");

/** The words that a POSIX shell makes of a line. */
function parsed(line) {
  const all = execFileSync("sh", ["-c", `printf '%s\\0' ${line}`]).toString();
  return all.split("\0").slice(0, -1);
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
