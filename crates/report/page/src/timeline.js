// Zoom, pan and a closer look at single calls, with a mouse, fingers or the keyboard. What is shown
// is a window on the run; the pictures of all threads show the same one.

import { select } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform } from "d3-zoom";

import { Lane, drawAxis } from "./calls.js";
import { moment, round, time } from "./figures.js";
import { say } from "./say.js";
import { Tip, element } from "./tip.js";

/** Calls are drawn with a tenth of a millionth of the run: nearer, there is nothing more to see. */
const NEAREST = 5000;

/** How far a key or a button goes. */
const ZOOM_STEP = 2;
const PAN_STEP = 0.25;

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
    this.draw();
  }

  listen() {
    this.zoom = zoom()
      .filter(wanted)
      .wheelDelta(wheelDelta)
      .scaleExtent([1, NEAREST])
      .constrain((to) => this.inside(to))
      .on("zoom", () => this.drawSoon());
    this.view = select(this.root).call(this.zoom).on("dblclick.zoom", null);
    this.root.addEventListener("wheel", (event) => this.panByWheel(event), { passive: false });
    this.root.addEventListener("keydown", (event) => this.pressed(event));
    this.root.addEventListener("pointermove", (event) => this.pointed(event));
    this.root.addEventListener("pointerleave", () => this.look(null));
    this.root.addEventListener("blur", () => this.look(null));
  }

  /** The run never leaves the picture, and moves only along it. */
  inside({ k, x }) {
    const width = this.root.clientWidth;
    return zoomIdentity.translate(Math.min(0, Math.max(width * (1 - k), x)), 0).scale(k);
  }

  /** Which part of the run is shown. */
  window() {
    const { k, x } = zoomTransform(this.root);
    return { from: -x / (k * this.root.clientWidth), part: 1 / k };
  }

  goTo({ from, part }) {
    const k = Math.min(NEAREST, 1 / part);
    const to = zoomIdentity.translate(-from * k * this.root.clientWidth, 0).scale(k);
    this.zoom.transform(this.view, this.inside(to));
  }

  /** Once for each picture of the screen, however often the mouse moves. */
  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = undefined;
    const window = this.window();
    this.lanes.forEach((lane) => lane.show(window, this.root.clientWidth));
    drawAxis(this.axis, this.ticks(window));
    this.shown.textContent = `Shown: ${this.range(window)}`;
    if (this.call) this.tip.beside(this.call.path);
  }

  /** The same part of the run, on another width. */
  resized() {
    const width = this.root.clientWidth;
    if (width === 0 || width === this.width) return;
    const { k, x } = zoomTransform(this.root);
    const to = zoomIdentity.translate((x * width) / this.width, 0).scale(k);
    this.width = width;
    this.zoom.transform(this.view, this.inside(to));
  }

  ticks({ from, part }) {
    const width = this.root.clientWidth;
    const [first, length] = [from * this.wall, part * this.wall];
    const step = round(Math.max(1, (length * BETWEEN_TICKS) / width));
    const ticks = [];
    for (let at = Math.ceil(first / step - 1e-9) * step; at <= first + length * 1.0001; at += step) {
      const x = ((at - first) / length) * width;
      const anchor = x < 30 ? "start" : x > width - 30 ? "end" : "middle";
      ticks.push({ x: Math.round(x), text: moment(at, step, first + length), anchor });
    }
    return ticks;
  }

  range({ from, part }) {
    if (part === 1) return `the whole run, ${time(this.wall)}`;
    const [start, end] = [from * this.wall, (from + part) * this.wall];
    return [start, end].map((at) => moment(at, (end - start) / 1000, end)).join(" to ");
  }

  /** Under the timeline, in the order in which they are needed. */
  addTools() {
    const { zoom, view } = this;
    const buttons = [
      ["Zoom in", () => zoom.scaleBy(view, ZOOM_STEP)],
      ["Zoom out", () => zoom.scaleBy(view, 1 / ZOOM_STEP)],
      ["Earlier", () => this.pan(-PAN_STEP)],
      ["Later", () => this.pan(PAN_STEP)],
      ["Whole run", () => this.goTo({ from: 0, part: 1 })],
    ].map(([label, act]) => {
      const button = element("button", "copy", label);
      button.type = "button";
      button.addEventListener("click", () => {
        act();
        say(`Shown: ${this.range(this.window())}`);
      });
      return button;
    });
    this.shown = element("span", "faint");
    const tools = element("p", "tools");
    tools.append(...buttons, this.shown);
    this.root.after(tools, element("p", "faint tools", HINT));
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
    this.shown.parentNode.after(line);
  }

  /** The calls of this function stand out among all others; without a name, none does. */
  mark(name) {
    const found = this.calls.filter((call) => name !== null && /^\w*/.exec(call.name)[0] === name);
    for (const { path } of this.calls) path.classList.remove("found");
    for (const { path } of found) path.classList.add("found");
    this.root.classList.toggle("marking", name !== null);
    this.draw();
    say(name === null ? "No calls are marked" : `Calls of ${name} that are marked: ${found.length}`);
  }

  pan(parts) {
    const { k } = zoomTransform(this.root);
    this.zoom.translateBy(this.view, (-parts * this.root.clientWidth) / k, 0);
  }

  panByWheel(event) {
    const pixels = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    const across = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!across || event.ctrlKey || event.metaKey || this.window().part === 1) return;
    event.preventDefault();
    this.pan(pixels / this.root.clientWidth);
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "+": () => this.zoom.scaleBy(this.view, ZOOM_STEP),
      "=": () => this.zoom.scaleBy(this.view, ZOOM_STEP),
      "-": () => this.zoom.scaleBy(this.view, 1 / ZOOM_STEP),
      0: () => this.goTo({ from: 0, part: 1 }),
      ArrowLeft: () => this.pan(-PAN_STEP),
      ArrowRight: () => this.pan(PAN_STEP),
      ArrowUp: () => this.walk(-1),
      ArrowDown: () => this.walk(1),
      Enter: () => this.call && this.goTo(this.around(this.call, 3)),
      Escape: () => this.look(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    const window = this.window();
    if (!event.key.startsWith("Arrow") || !this.call) say(`Shown: ${this.range(window)}`);
  }

  /** To the next call, from the one that is looked at or the first that is shown. */
  walk(by) {
    const { from, part } = this.window();
    const shown = (call) => {
      const [start, end] = [call.start, call.start + call.length].map((at) => at / call.lane.units);
      return end > from && start < from + part;
    };
    const next = this.call
      ? this.calls[this.calls.indexOf(this.call) + by]
      : this.calls.find(shown);
    if (!next) return;
    if (!shown(next)) this.goTo({ ...this.around(next, 1), part });
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

/** With one finger the page is scrolled, and so it is with the wheel alone. */
function wanted(event) {
  if (event.type === "wheel") return event.ctrlKey || event.metaKey;
  if (event.type.startsWith("touch")) return event.touches.length > 1;
  return !event.ctrlKey && !event.button;
}

/** Two fingers on a touchpad come as many small steps with Ctrl, a wheel as few large ones. */
function wheelDelta(event) {
  const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1);
  return Math.max(-0.5, Math.min(0.5, -pixels * 0.02));
}

/** A call in words, no more exactly than it is drawn. */
function describe({ name, lane, start, length }, wall) {
  const unit = wall / lane.units;
  const digits = length < 10 ? 2 : 3;
  const takes = length > 1 ? `takes ${time(length * unit, digits)}` : `takes at most ${time(unit, 2)}`;
  return [name, `begins at ${moment(start * unit, unit)}`, takes, lane.name];
}
