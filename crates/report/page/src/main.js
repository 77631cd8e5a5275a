// What the page gains from a script: a timeline that can be zoomed, tables that can be sorted,
// the value of each mark of a chart, buttons that copy. Without it nothing is missing: all of it is in
// the page already.

import { addValues } from "./charts.js";
import { addCopyButtons } from "./copying.js";
import { makeSortable } from "./sorting.js";
import { Timeline } from "./timeline.js";

document.querySelectorAll("table.sortable").forEach(makeSortable);
addCopyButtons(document);
addValues(document);
document.querySelectorAll(".timeline").forEach((root) => new Timeline(root));
