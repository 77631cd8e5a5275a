// Charts over time: a part is seen from nearer, by keys, buttons, the mouse and the wheel. All figures
// can be read then, and values are where they were.

import { deepEqual, equal, ok } from "node:assert/strict";

import { unreadable, SMALLEST } from "./charts.js";
import { opened, unfold } from "./opened.js";

export async function run({ browser, page, check }) {
  let count = 0;
  await opened({ browser, page }, {}, async (tab) => {
    count = await tab.locator(".chart .stretched").count();
  });
  if (count === 0) return;
  const on = (what, body, options = {}) =>
    check(what, () =>
      opened({ browser, page }, options, async (tab) => {
        await unfold(tab);
        for (let place = 0; place < count; place++) await body(new Chart(tab, place));
      }),
    );
  await on("keys zoom charts, and lead from value to value", byKeys);
  await on("buttons zoom charts, and show all again", byButtons);
  await on("the mouse and the wheel zoom and move charts", byMouse);
  await on("labels of zoomed charts can be read at both widths", labels);
  await on("without a script a chart over time is whole", whole, { javaScriptEnabled: false });
}

/** A chart in a page, for hands and eyes. */
class Chart {
  constructor(tab, place) {
    this.tab = tab;
    this.figure = tab.locator(".chart:has(.stretched)").nth(place);
    this.svg = this.figure.locator("> svg");
    this.picture = this.svg.locator(".stretched");
    this.tip = tab.locator(".tip:not([hidden])");
  }

  /** Which part is shown, when it is drawn. */
  async window() {
    await this.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    return this.picture.evaluate((it) => {
      const { x, width } = it.viewBox.baseVal;
      const all = it.width.baseVal.value;
      return { from: x / all, part: width / all };
    });
  }

  async shows({ from, part }) {
    const now = await this.window();
    const near = (a, b) => Math.abs(a - b) < 1e-3 * part;
    ok(near(now.from, from) && near(now.part, part), `${JSON.stringify(now)}, not ${from}, ${part}`);
  }

  async press(...keys) {
    await this.svg.focus();
    for (const key of keys) await this.tab.keyboard.press(key);
  }

  click(name) {
    return this.figure.getByRole("button", { name }).click();
  }

  /** Where series are, on the screen. A browser takes strokes for part of it. */
  frame() {
    return this.picture.evaluate((it) => {
      const { a, d, e, f } = it.ownerSVGElement.getScreenCTM();
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => it[name].baseVal.value);
      return { x: e + a * x, y: f + d * y, width: a * width, height: d * height };
    });
  }

  /** What stands below: the figures of the axis. */
  axis() {
    return this.svg.locator(".across text").allTextContents();
  }

  said() {
    return this.tab.getByRole("status").textContent();
  }
}

const WHOLE = { from: 0, part: 1 };

async function byKeys(chart) {
  await chart.shows(WHOLE);
  const before = await chart.axis();
  await chart.press("+", "+");
  await chart.shows({ from: 0.375, part: 0.25 });
  ok((await chart.said()).startsWith("Shown: "), await chart.said());
  ok(JSON.stringify(await chart.axis()) !== JSON.stringify(before));
  // A value that is shown comes first, and beyond the edge the part moves along.
  await chart.press("ArrowRight");
  const first = await chart.tip.innerText();
  equal(await chart.said(), first);
  const { from } = await chart.window();
  await chart.press(...Array(60).fill("ArrowRight"));
  ok((await chart.window()).from > from);
  const inside = await chart.picture.evaluate((it) => {
    const mark = it.querySelector("path.current").getBoundingClientRect();
    const frame = it.getBoundingClientRect();
    return mark.left >= frame.left - mark.width && mark.right <= frame.right + mark.width;
  });
  ok(inside, "the value that is said can be seen");
  ok((await chart.tip.innerText()) !== first);
  await chart.press(...Array(20).fill("+"));
  const { part } = await chart.window();
  const points = Number(await chart.picture.getAttribute("data-points"));
  ok(Math.abs(part - 4 / points) < 1e-3, `${part} of ${points}`);
  await chart.press("0", "-");
  await chart.shows(WHOLE);
  deepEqual(await chart.axis(), before);
  await chart.press("Escape");
  equal(await chart.tip.count(), 0);
}

async function byButtons(chart) {
  await chart.click("Zoom in");
  await chart.shows({ from: 0.25, part: 0.5 });
  await chart.click("Later");
  await chart.shows({ from: 0.375, part: 0.5 });
  await chart.click("Earlier");
  await chart.shows({ from: 0.25, part: 0.5 });
  await chart.click("Zoom in");
  await chart.click("Zoom out");
  await chart.shows({ from: 0.25, part: 0.5 });
  ok(/^Shown: \S+.* to \S+/.test(await chart.said()), await chart.said());
  await chart.click("Whole chart");
  await chart.shows(WHOLE);
}

async function byMouse(chart) {
  const { mouse, keyboard } = chart.tab;
  await chart.svg.scrollIntoViewIfNeeded();
  const frame = await chart.frame();
  const [x, y] = [frame.x + frame.width / 4, frame.y + frame.height / 2];
  await mouse.move(x, y);
  const under = await chart.tip.innerText();
  // The wheel alone scrolls the page.
  await mouse.wheel(0, 1);
  await mouse.wheel(0, -1);
  await chart.shows(WHOLE);
  await keyboard.down("Control");
  for (let turn = 0; turn < 6; turn++) await mouse.wheel(0, -50);
  await keyboard.up("Control");
  const { from, part } = await chart.window();
  ok(part < 0.5 && Math.abs(from + part / 4 - 0.25) < 0.01, JSON.stringify({ from, part }));
  await mouse.move(x + 1, y);
  await mouse.move(x, y);
  equal(await chart.tip.innerText(), under, "the value below the mouse stays there");
  await mouse.down();
  await mouse.move(x - frame.width / 8, y, { steps: 4 });
  await mouse.up();
  const moved = await chart.window();
  ok(Math.abs(moved.from - from - part / 8) < 0.01 * part, JSON.stringify({ moved, from, part }));
  await chart.click("Whole chart");
  await mouse.move(0, 0);
}

async function labels(chart) {
  for (const width of [1280, 400]) {
    await chart.tab.setViewportSize({ width, height: 900 });
    for (let steps = 0; steps < 6; steps++) {
      await chart.press("+", "ArrowRight");
      await chart.window();
      deepEqual(await chart.tab.evaluate(unreadable, SMALLEST), [], `${width} pixels, ${steps}`);
      const figures = await chart.axis();
      ok(figures.length >= 2, `${width} pixels, ${steps}: ${figures}`);
      equal(new Set(figures).size, figures.length, figures.join());
    }
    await chart.press("0");
  }
}

async function whole(chart) {
  deepEqual(await chart.picture.evaluate((it) => [it.viewBox.baseVal.x, it.viewBox.baseVal.width]), [
    0,
    await chart.picture.evaluate((it) => it.width.baseVal.value),
  ]);
  equal(await chart.figure.getByRole("button").count(), 0);
}
