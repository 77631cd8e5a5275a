// The timeline: a window on the run, moved and narrowed by keys, buttons, the mouse and the wheel.

import { deepEqual, equal, ok } from "node:assert/strict";

import { opened } from "./opened.js";

const WHOLE = { from: 0, part: 1 };

export async function run({ browser, page, check }) {
  let there = false;
  await opened({ browser, page }, {}, async (tab) => {
    there = (await tab.locator(".timeline").count()) > 0;
  });
  if (!there) return;
  const on = (what, body) =>
    check(what, () =>
      opened({ browser, page }, {}, async (tab) => {
        await tab.locator(".timeline").first().scrollIntoViewIfNeeded();
        await body(new Timeline(tab));
      }),
    );
  await on("keys zoom and move the timeline", byKeys);
  await on("keys lead from call to call", callByCall);
  await on("buttons zoom and move the timeline", byButtons);
  await on("the mouse and the wheel zoom and move the timeline", byMouse);
  await on("calls say what they are under the mouse", underTheMouse);
  await on("the same part is shown after the width has changed", afterResizing);
  await on("names and moments follow, and are not stretched", namesFollow);
  await on("a finding marks its calls", findingMarks);
}

/** A timeline in a page, for hands and eyes. */
class Timeline {
  constructor(tab) {
    this.tab = tab;
    this.root = tab.locator(".timeline").first();
    this.tip = tab.locator(".tip:not([hidden])");
  }

  /** Which part of the run is shown, when it is drawn. All threads show the same. */
  async window() {
    await this.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    const boxes = await this.root.locator("svg.spans").evaluateAll((all) =>
      all.map((it) => [it.viewBox.baseVal.x / 1e6, it.viewBox.baseVal.width / 1e6]),
    );
    ok(boxes.length > 0);
    for (const box of boxes) deepEqual(box, boxes[0]);
    return { from: boxes[0][0], part: boxes[0][1] };
  }

  async shows({ from, part }) {
    const now = await this.window();
    const near = (a, b) => Math.abs(a - b) < 1e-3 * part;
    ok(near(now.from, from) && near(now.part, part), `${JSON.stringify(now)}, not ${from}, ${part}`);
  }

  async press(...keys) {
    await this.root.focus();
    for (const key of keys) await this.tab.keyboard.press(key);
  }
}

async function byKeys(timeline) {
  await timeline.shows(WHOLE);
  await timeline.press("+");
  await timeline.shows({ from: 0.25, part: 0.5 });
  await timeline.press("=");
  await timeline.shows({ from: 0.375, part: 0.25 });
  await timeline.press("ArrowRight", "ArrowRight");
  await timeline.shows({ from: 0.5, part: 0.25 });
  await timeline.press("ArrowLeft");
  await timeline.shows({ from: 0.4375, part: 0.25 });
  await timeline.press("-");
  await timeline.shows({ from: 0.3125, part: 0.5 });
  // Not beyond the ends of the run.
  await timeline.press(...Array(20).fill("ArrowRight"));
  await timeline.shows({ from: 0.5, part: 0.5 });
  await timeline.press("0");
  await timeline.shows(WHOLE);
  await timeline.press("-", "ArrowLeft");
  await timeline.shows(WHOLE);
  await timeline.press(...Array(40).fill("+"));
  await timeline.shows({ from: 0.4999, part: 1 / 5000 });
}

async function callByCall(timeline) {
  await timeline.press("ArrowDown");
  const first = await timeline.tip.innerText();
  equal(await timeline.root.locator("path.current").count(), 1);
  equal(await timeline.tab.getByRole("status").textContent(), first.split("\n").join(", "));
  await timeline.press("ArrowDown");
  const second = await timeline.tip.innerText();
  ok(second !== first, second);
  await timeline.press("ArrowUp");
  equal(await timeline.tip.innerText(), first);
  await timeline.press("Enter");
  ok((await timeline.window()).part < 1);
  const box = await timeline.root.locator("path.current").boundingBox();
  ok(box.width > 0 && box.x > 0, JSON.stringify(box));
  await timeline.press("Escape");
  equal(await timeline.tip.count(), 0);
  equal(await timeline.root.locator("path.current").count(), 0);
}

async function byButtons(timeline) {
  const click = (name) => timeline.tab.getByRole("button", { name }).first().click();
  await click("Zoom in");
  await timeline.shows({ from: 0.25, part: 0.5 });
  await click("Later");
  await timeline.shows({ from: 0.375, part: 0.5 });
  await click("Earlier");
  await timeline.shows({ from: 0.25, part: 0.5 });
  ok((await timeline.tab.getByRole("status").textContent()).startsWith("Shown: "));
  await click("Zoom out");
  await timeline.shows(WHOLE);
  await click("Zoom in");
  await click("Whole run");
  await timeline.shows(WHOLE);
}

async function byMouse(timeline) {
  const { mouse, keyboard } = timeline.tab;
  const box = await timeline.root.boundingBox();
  const [x, y] = [box.x + box.width / 4, box.y + box.height / 2];
  await mouse.move(x, y);
  await mouse.wheel(0, -200);
  await timeline.shows(WHOLE);
  await timeline.root.scrollIntoViewIfNeeded();
  await keyboard.down("Control");
  await mouse.move(x, (await timeline.root.boundingBox()).y + box.height / 2);
  await mouse.wheel(0, -100);
  await keyboard.up("Control");
  const { from, part } = await timeline.window();
  ok(part < 1 && from > 0 && Math.abs(from + part / 4 - 0.25) < 0.01, "what is below the mouse stays");
  await mouse.down();
  await mouse.move(x - box.width / 8, y, { steps: 4 });
  await mouse.up();
  const moved = await timeline.window();
  ok(moved.part === part && moved.from > from, JSON.stringify({ moved, from }));
}

async function underTheMouse(timeline) {
  const longest = await timeline.root.locator("path").evaluateAll((all) => {
    const names = JSON.parse(all[0].closest(".timeline").dataset.names);
    const length = (path) => Number(path.getAttribute("d").match(/h([\d.]+)/)[1]);
    const place = all.reduce((best, path, at) => (length(path) > length(all[best]) ? at : best), 0);
    return { place, name: names[all[place].dataset.n] };
  });
  await timeline.root.locator("path").nth(longest.place).hover();
  const [name, begins, takes, thread] = (await timeline.tip.innerText()).split("\n");
  equal(name, longest.name);
  ok(/^begins at [\d.]+ (ns|µs|ms|s)$/.test(begins), begins);
  ok(/^takes [\d.]+ (ns|µs|ms|s)$/.test(takes), takes);
  ok(thread.length > 0);
  await timeline.tab.mouse.move(0, 0);
  equal(await timeline.tip.count(), 0);
}

async function findingMarks(timeline) {
  const [[what, name]] = JSON.parse(await timeline.root.getAttribute("data-findings"));
  const button = timeline.tab.getByRole("button", { name: `${name}, ${what}` });
  const marked = () =>
    timeline.root.locator("path").evaluateAll((all) => {
      const names = JSON.parse(all[0].closest(".timeline").dataset.names);
      const clear = all.filter((path) => getComputedStyle(path).opacity === "1");
      return clear.map((path) => names[path.dataset.n]);
    });
  const all = await marked();
  const wanted = all.filter((call) => call.split(/\W/)[0] === name);
  ok(wanted.length > 0 && wanted.length < all.length, `${wanted.length} of ${all.length}`);
  await button.click();
  deepEqual(await marked(), wanted);
  equal(await button.getAttribute("aria-pressed"), "true");
  ok((await timeline.tab.getByRole("status").textContent()).endsWith(`: ${wanted.length}`));
  await button.click();
  deepEqual(await marked(), all);
}

async function afterResizing(timeline) {
  await timeline.press("+", "+", "ArrowRight");
  const before = await timeline.window();
  await timeline.tab.setViewportSize({ width: 500, height: 900 });
  await timeline.tab.waitForFunction(() => document.querySelector(".timeline").clientWidth < 500);
  await timeline.shows(before);
}

async function namesFollow(timeline) {
  const texts = () =>
    timeline.root.locator("svg.labels text, svg.axis text").evaluateAll((all) =>
      all.map((it) => {
        const { width, height } = it.getBoundingClientRect();
        return { text: it.textContent, each: width / it.textContent.length, height };
      }),
    );
  const moments = (all) => all.map(({ text }) => text).filter((it) => /^[\d.]+ (ns|µs|ms|s)$/.test(it));
  const before = await texts();
  await timeline.press("+", "+", "+");
  await timeline.window();
  const after = await texts();
  for (const all of [before, after]) {
    const times = moments(all);
    ok(times.length >= 2, times.join());
    equal(new Set(times).size, times.length, times.join());
    for (const { text, each, height } of all) {
      ok(each > 2 && each < 16 && height > 8 && height < 20, `${text}: ${each} by ${height}`);
    }
  }
  ok(JSON.stringify(moments(before)) !== JSON.stringify(moments(after)));
}
