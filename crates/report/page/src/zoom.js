// A part of what is drawn along an axis, seen from nearer: with a mouse, two fingers, keys or
// buttons. It knows nothing of what is drawn: a timeline and charts each draw their own.

import { select } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform } from "d3-zoom";

import { round } from "./figures.js";
import { say } from "./say.js";
import { element } from "./tip.js";

/** How far a key or a button goes. */
const ZOOM_STEP = 2;
export const PAN_STEP = 0.25;

const WHOLE = { from: 0, part: 1 };

export class Zoom {
  /**
   * `root` hears; `area()` is the place along the axis, in the units of `root`; the axis goes from
   * `start` on for a `length`; nearer than `nearest` times there is nothing more to see. `write` says
   * a value of the axis as finely as a step, `whole` all of it. `draw` shows a window.
   */
  constructor(root, options) {
    Object.assign(this, { root, start: 0, ...options });
    this.zoom = zoom()
      .filter(wanted)
      .wheelDelta(wheelDelta)
      .scaleExtent([1, this.nearest])
      .constrain((to) => this.inside(to))
      .on("zoom", () => this.drawSoon());
    this.view = select(root).call(this.zoom).on("dblclick.zoom", null);
    root.addEventListener("wheel", (event) => this.panByWheel(event), { passive: false });
  }

  /** What is drawn never leaves its place, and moves only along it. */
  inside({ k, x }) {
    const { left, width } = this.area();
    const least = (width + left) * (1 - k);
    return zoomIdentity.translate(Math.min(left * (1 - k), Math.max(least, x)), 0).scale(k);
  }

  /** Which part is shown. */
  window() {
    const { left, width } = this.area();
    const { k, x } = zoomTransform(this.root);
    return { from: (left * (1 - k) - x) / (k * width), part: 1 / k };
  }

  goTo({ from, part }) {
    const { left, width } = this.area();
    const k = Math.min(this.nearest, 1 / part);
    const to = zoomIdentity.translate(left * (1 - k) - from * k * width, 0).scale(k);
    this.zoom.transform(this.view, this.inside(to));
  }

  by(times) {
    const { from, part } = this.window();
    const now = Math.min(1, Math.max(1 / this.nearest, part / times));
    this.goTo({ from: from + (part - now) / 2, part: now });
  }

  pan(parts) {
    const { from, part } = this.window();
    this.goTo({ from: from + parts * part, part });
  }

  /** Once for each picture of the screen, however often the mouse moves. */
  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => this.show());
  }

  show() {
    this.waiting = undefined;
    const window = this.window();
    this.draw(window);
    this.shown.textContent = `Shown: ${this.range(window)}`;
  }

  /** Round values that are shown, no nearer to each other than so many pixels. */
  ticks({ from, part }, apart) {
    const { width } = this.area();
    const [first, length] = [this.start + from * this.length, part * this.length];
    const step = round(Math.max(1, (length * apart) / width));
    const ticks = [];
    for (let at = Math.ceil(first / step - 1e-9) * step; at <= first + length * 1.0001; at += step) {
      ticks.push({ x: ((at - first) / length) * width, text: this.write(at, step, first + length) });
    }
    return ticks;
  }

  range({ from, part }) {
    if (part === 1) return this.whole;
    const [first, last] = [from, from + part].map((it) => this.start + it * this.length);
    return [first, last].map((at) => this.write(at, (last - first) / 1000, last)).join(" to ");
  }

  say() {
    say(`Shown: ${this.range(this.window())}`);
  }

  /** Below what is drawn, in the order in which they are needed. */
  addTools(reset) {
    const buttons = [
      ["Zoom in", () => this.by(ZOOM_STEP)],
      ["Zoom out", () => this.by(1 / ZOOM_STEP)],
      ["Earlier", () => this.pan(-PAN_STEP)],
      ["Later", () => this.pan(PAN_STEP)],
      [reset, () => this.goTo(WHOLE)],
    ].map(([label, act]) => {
      const button = element("button", "copy", label);
      button.type = "button";
      button.addEventListener("click", () => {
        act();
        this.say();
      });
      return button;
    });
    this.shown = element("span", "faint");
    this.tools = element("p", "tools");
    this.tools.append(...buttons, this.shown);
    this.root.after(this.tools);
  }

  /** Whether a key does something, of these or of what is the same everywhere; and does it. */
  pressed(event, more = {}) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const act = {
      "+": () => this.by(ZOOM_STEP),
      "=": () => this.by(ZOOM_STEP),
      "-": () => this.by(1 / ZOOM_STEP),
      0: () => this.goTo(WHOLE),
      ...more,
    }[event.key];
    if (!act) return false;
    event.preventDefault();
    act();
    return true;
  }

  /** Shows the same part, so many times as wide, of an axis that begins where `root` does. */
  widened(times) {
    const { k, x } = zoomTransform(this.root);
    const to = zoomIdentity.translate(x * times, 0).scale(k);
    this.zoom.transform(this.view, this.inside(to));
  }

  panByWheel(event) {
    const pixels = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    const across = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!across || event.ctrlKey || event.metaKey || this.window().part === 1) return;
    event.preventDefault();
    this.pan(pixels / this.area().width);
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
