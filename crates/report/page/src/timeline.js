// A closer look at single calls, with a mouse, fingers or the keyboard. What is shown is a window on
// the run; the pictures of all threads show the same one.

import { Lane, drawAxis } from "./calls.js";
import { moment, time } from "./figures.js";
import { say } from "./say.js";
import { Tip, element } from "./tip.js";
import { PAN_STEP, Zoom } from "./zoom.js";

/** Calls are drawn with a tenth of a millionth of the run: nearer, there is nothing more to see. */
const NEAREST = 5000;

/** So far apart, at least, moments are written below, in pixels. */
const BETWEEN_TICKS = 110;

const HINT =
  "Drag to move; Ctrl and the wheel, or two fingers, to zoom. With the keyboard: + − 0 to zoom, " +
  "← → to move, ↑ ↓ from call to call, Enter for a closer look.";

export class Timeline {
  constructor(root) {
    const names = JSON.parse(root.dataset.names);
    this.root = root;
    this.wall = Number(root.dataset.wall);
    this.lanes = [...root.querySelectorAll(".lane")].map((lane) => new Lane(lane, names));
    this.axis = root.querySelector("svg.axis");
    this.calls = this.lanes.flatMap((lane) => lane.calls);
    this.callOf = new Map(this.calls.map((call) => [call.path, call]));
    this.tip = new Tip();
    this.listen();
    this.addTools();
    this.addFindings(JSON.parse(root.dataset.findings));
    this.width = root.clientWidth;
    new ResizeObserver(() => this.resized()).observe(root);
    this.zoom.show();
  }

  listen() {
    this.zoom = new Zoom(this.root, {
      area: () => ({ left: 0, width: this.root.clientWidth }),
      length: this.wall,
      nearest: NEAREST,
      write: moment,
      whole: `the whole run, ${time(this.wall)}`,
      draw: (window) => this.draw(window),
    });
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    this.root.addEventListener("pointermove", (event) => this.pointed(event));
    this.root.addEventListener("pointerleave", () => this.look(null));
    this.root.addEventListener("blur", () => this.look(null));
  }

  draw(window) {
    const width = this.root.clientWidth;
    this.lanes.forEach((lane) => lane.show(window, width));
    drawAxis(this.axis, this.zoom.ticks(window, BETWEEN_TICKS), width);
    if (this.call) this.tip.beside(this.call.path);
  }

  /** The same part of the run, on another width. */
  resized() {
    const width = this.root.clientWidth;
    if (width === 0 || width === this.width) return;
    this.zoom.widened(width / this.width);
    this.width = width;
  }

  /** Under the timeline. */
  addTools() {
    this.zoom.addTools("Whole run");
    this.zoom.tools.after(element("p", "faint tools", HINT));
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-label", `Timeline. ${HINT}`);
  }

  /** Below the other buttons one for each finding, which marks its calls, or no longer does. */
  addFindings(findings) {
    if (findings.length === 0) return;
    const line = element("p", "tools", "Calls of a finding:");
    const buttons = findings.map(([what, name]) => {
      const button = element("button", "copy", `${name}, ${what}`);
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        const marks = button.getAttribute("aria-pressed") === "false";
        for (const each of buttons) each.setAttribute("aria-pressed", String(marks && each === button));
        this.mark(marks ? name : null);
      });
      return button;
    });
    line.append(...buttons);
    this.zoom.tools.after(line);
  }

  /** The calls of this function stand out among all others; without a name, none does. */
  mark(name) {
    const found = this.calls.filter((call) => name !== null && /^\w*/.exec(call.name)[0] === name);
    for (const { path } of this.calls) path.classList.remove("found");
    for (const { path } of found) path.classList.add("found");
    this.root.classList.toggle("marking", name !== null);
    this.zoom.show();
    say(name === null ? "No calls are marked" : `Calls of ${name} that are marked: ${found.length}`);
  }

  pressed(event) {
    const did = this.zoom.pressed(event, {
      ArrowLeft: () => this.zoom.pan(-PAN_STEP),
      ArrowRight: () => this.zoom.pan(PAN_STEP),
      ArrowUp: () => this.walk(-1),
      ArrowDown: () => this.walk(1),
      Enter: () => this.call && this.zoom.goTo(this.around(this.call, 3)),
      Escape: () => this.look(null),
    });
    if (did && (!event.key.startsWith("Arrow") || !this.call)) this.zoom.say();
  }

  /** To the next call, from the one that is looked at or the first that is shown. */
  walk(by) {
    const { from, part } = this.zoom.window();
    const shown = (call) => {
      const [start, end] = [call.start, call.start + call.length].map((at) => at / call.lane.units);
      return end > from && start < from + part;
    };
    const next = this.call
      ? this.calls[this.calls.indexOf(this.call) + by]
      : this.calls.find(shown);
    if (!next) return;
    if (!shown(next)) this.zoom.goTo({ ...this.around(next, 1), part });
    this.look(next);
    say(describe(next, this.wall).join(", "));
  }

  /** A window so many times as long as a call, with the call in its middle. */
  around(call, times) {
    const [start, length] = [call.start / call.lane.units, call.length / call.lane.units];
    const part = Math.max(times * length, 1 / NEAREST);
    return { from: start + length / 2 - part / 2, part };
  }

  pointed(event) {
    const call = this.callOf.get(event.target);
    if (event.pointerType !== "touch" || call) this.look(call ?? null, event);
  }

  look(call, at) {
    this.call?.path.classList.remove("current");
    this.call = call;
    call?.path.classList.add("current");
    if (!call) this.tip.hide();
    else this.tip.show(describe(call, this.wall), call.path, at);
  }
}

/** A call in words, no more exactly than it is drawn. */
function describe({ name, lane, start, length }, wall) {
  const unit = wall / lane.units;
  const digits = length < 10 ? 2 : 3;
  const takes = length > 1 ? `takes ${time(length * unit, digits)}` : `takes at most ${time(unit, 2)}`;
  return [name, `begins at ${moment(start * unit, unit)}`, takes, lane.name];
}
