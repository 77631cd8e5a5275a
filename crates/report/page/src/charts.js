// The value of each mark of a chart, under the mouse and by the keyboard: a chart that has the focus
// says its first value, and the arrows lead to the others. A chart over time can be zoomed.

import { say } from "./say.js";
import { addZoom } from "./stretched.js";
import { Tip } from "./tip.js";

const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function addValues(root) {
  let tip;
  for (const svg of root.querySelectorAll(".chart > svg")) {
    const marks = [...svg.querySelectorAll(".values path")];
    if (marks.length === 0) continue;
    tip ??= new Tip();
    addValuesTo(svg, marks, tip);
  }
}

function addValuesTo(svg, marks, tip) {
  // One tooltip is enough: that of the browser comes later and does not know the keyboard.
  const says = new Map(marks.map((mark) => [mark, mark.textContent.trim()]));
  marks.forEach((mark) => mark.replaceChildren());
  let current;
  const choose = (mark, at) => {
    current?.classList.remove("current");
    current = mark;
    if (!mark) return tip.hide();
    mark.classList.add("current");
    tip.show([says.get(mark)], mark, at);
  };
  const zoom = addZoom(svg, () => {
    if (!current) return;
    if (zoom.shows(current)) tip.beside(current);
    else choose();
  });
  const first = () => marks.find((mark) => !zoom || zoom.shows(mark));
  svg.tabIndex = 0;
  svg.addEventListener("pointermove", (event) => {
    const mark = event.target.closest(".values path");
    if (mark !== current || mark) choose(mark, event);
  });
  svg.addEventListener("pointerleave", () => choose());
  svg.addEventListener("focus", () => {
    if (svg.matches(":focus-visible")) choose(first());
  });
  svg.addEventListener("blur", () => choose());
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return choose();
    if (zoom?.pressed(event)) return zoom.say();
    if (!KEYS[event.key]) return;
    event.preventDefault();
    const next = marks.indexOf(current) + KEYS[event.key];
    const to = current ? marks[Math.max(0, Math.min(marks.length - 1, next))] : first();
    zoom?.reveal(to);
    choose(to);
    say(says.get(current));
  });
}
