// What the picture of a thread shows, read back from it: its calls, and the room for their names.

const SVG = "http://www.w3.org/2000/svg";

/** The width of a character of a name, in pixels; no name is shown in less room than for four. */
const CHARACTER = 6.4;
const SHORTEST = 4;

/** A call as wide as this, in pixels, is told from its neighbour by a line between them. */
const LONG = 4;

/** A lane: a stretched picture of calls, and one of their names, which is not stretched. */
export class Lane {
  constructor(element, names) {
    this.name = element.querySelector(".lane-name").textContent;
    this.picture = element.querySelector("svg.spans");
    this.labels = element.querySelector("svg.labels");
    const { width, height } = this.picture.viewBox.baseVal;
    this.units = width;
    this.height = height;
    this.calls = [...this.picture.querySelectorAll("path")].map((path) =>
      readCall(path, this, names),
    );
    this.calls.sort((a, b) => a.start - b.start || a.y - b.y);
  }

  /** Shows the part of the run that begins at `from` and is `part` of it, on so many pixels. */
  show({ from, part }, pixels) {
    const [first, length] = [from * this.units, part * this.units];
    this.picture.setAttribute("viewBox", `${first} 0 ${length} ${this.height}`);
    const place = (units) => ((units - first) / length) * pixels;
    // Of calls that were counted together several can stand in the same place.
    const taken = new Map();
    const labels = this.calls.flatMap((call) => {
      const left = Math.max(0, place(call.start));
      const right = Math.min(pixels, place(call.start + call.length));
      call.path.classList.toggle("long", right - left >= LONG);
      const text = fitting(call.name, Math.floor((right - left - 8) / CHARACTER));
      if (!text || left < (taken.get(call.y) ?? 0)) return [];
      taken.set(call.y, left + text.length * CHARACTER);
      const name = label(text, left + 4, call.y + 12);
      name.classList.toggle("found", call.path.classList.contains("found"));
      return [name];
    });
    this.labels.replaceChildren(...labels);
  }
}

/** Times are in the units of the picture, as they are drawn: never shorter than one. */
function readCall(path, lane, names) {
  const [, start, length] = path.getAttribute("d").match(/^M([\d.]+) [\d.]+h([\d.]+)/);
  const [row] = path.parentNode.transform.baseVal;
  // Its tooltip is better than that of the browser.
  path.replaceChildren();
  return {
    lane,
    path,
    name: names[path.dataset.n] ?? "",
    start: Number(start),
    length: Number(length),
    y: row?.matrix.f ?? 0,
  };
}

/** A name, or what it begins with: the function, before what it was about. */
function fitting(name, characters) {
  if (characters < SHORTEST) return "";
  const all = [name, name.split(": ")[0]];
  return all.find((it) => it.length <= characters) ?? `${all[1].slice(0, characters - 1)}…`;
}

function label(text, x, y) {
  const element = document.createElementNS(SVG, "text");
  element.setAttribute("x", x.toFixed(1));
  element.setAttribute("y", y);
  element.textContent = text;
  return element;
}

/** Moments below the lanes, so many that they do not touch. */
export function drawAxis(axis, ticks, width) {
  const parts = ticks.flatMap(({ x: exact, text }) => {
    const x = Math.round(exact);
    const anchor = x < 30 ? "start" : x > width - 30 ? "end" : "middle";
    const line = document.createElementNS(SVG, "line");
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 0, y2: 4 })) {
      line.setAttribute(name, value);
    }
    const word = label(text, x, 15);
    word.setAttribute("text-anchor", anchor);
    return [line, word];
  });
  axis.replaceChildren(...parts);
}
