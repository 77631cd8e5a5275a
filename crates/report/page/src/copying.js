// Buttons that copy a table for a spreadsheet, or a command for a shell.

import { say } from "./say.js";

/** How long a button says what it has done, in milliseconds. */
const SAID_MS = 2000;

export function addCopyButtons(root) {
  for (const table of root.querySelectorAll("table")) {
    const box = table.closest(".scroll") ?? table;
    box.after(copyButton("Copy table", table, () => tabSeparated(table)));
  }
  for (const command of root.querySelectorAll("pre.command")) {
    command.after(copyButton("Copy command", command, () => command.textContent));
  }
}

/** As it is shown now, so also in the order in which it was sorted. */
function tabSeparated(table) {
  const cells = (row) =>
    [...row.cells].flatMap((cell) => {
      const text = cell.textContent.trim().replace(/\s+/g, " ");
      return [text, ...Array(cell.colSpan - 1).fill("")];
    });
  return [...table.rows].map((row) => `${cells(row).join("\t")}\n`).join("");
}

function copyButton(label, source, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = label;
  const done = (what) => {
    button.textContent = what;
    say(what);
    setTimeout(() => (button.textContent = label), SAID_MS);
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      done("Copied");
    } catch {
      // Refused, or not there: a page from a server without TLS has no clipboard.
      getSelection().selectAllChildren(source);
      done("Selected: now press Ctrl+C");
    }
  });
  const line = document.createElement("p");
  line.className = "tools";
  line.append(button);
  return line;
}
