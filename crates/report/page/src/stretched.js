// Charts over time can be zoomed. What is stretched then is a picture in the picture; the figures
// below it are written anew.

import { moment } from "./figures.js";
import { Zoom } from "./zoom.js";

/** So many points are shown at least: nearer, there is nothing more to see. */
const FEWEST = 4;

/** So far apart, at least, figures are written below, in pixels; or nearer, where there were but one. */
const BETWEEN_TICKS = [75, 52];

/** So wide is a character, in pixels. */
const CHARACTER = 7.8;

/** `changed` is called when another part is shown. `undefined` of a chart that has no such picture. */
export function addZoom(svg, changed) {
  const picture = svg.querySelector(".stretched");
  if (!picture) return undefined;
  const zoom = new ChartZoom(svg, picture, changed);
  zoom.addTools("Whole chart");
  svg.setAttribute("aria-keyshortcuts", "Plus - 0");
  return zoom;
}

class ChartZoom extends Zoom {
  constructor(svg, picture, changed) {
    const [left, width, height] = ["x", "width", "height"].map((it) => picture[it].baseVal.value);
    const { from, to, points, counted } = picture.dataset;
    super(svg, {
      area: () => ({ left, width }),
      start: Number(from),
      length: to - from,
      nearest: points / FEWEST,
      write: counted === undefined ? moment : (at) => Math.round(at).toLocaleString("en"),
      whole: "all of it",
      draw: (window) => {
        picture.setAttribute("viewBox", `${window.from * width} 0 ${window.part * width} ${height}`);
        this.drawAxis(window);
        changed();
      },
    });
    this.across = svg.querySelector(".across");
    this.came = [...this.across.children];
  }

  /** Lines and figures as they came, elsewhere. */
  drawAxis(window) {
    const [line, word] = ["polyline", "text"].map((it) => this.came.find((one) => one.matches(it)));
    const { left } = this.area();
    const edge = this.root.viewBox.baseVal.width;
    const [, bottom, , top] = line.getAttribute("points").match(/[\d.]+/g);
    const [some, more] = BETWEEN_TICKS.map((apart) => this.ticks(window, apart));
    const ticks = (some.length > 1 ? some : more).flatMap(({ x, text }) => {
      const [at, figure] = [line, word].map((it) => it.cloneNode());
      at.setAttribute("points", `${left + x},${bottom} ${left + x},${top}`);
      figure.setAttribute("x", Math.min(left + x, edge - (text.length * CHARACTER) / 2));
      figure.textContent = text;
      return [at, figure];
    });
    this.across.replaceChildren(...(window.part === 1 ? this.came : ticks));
  }

  /** Where a mark is, as a part of the axis. */
  placeOf(mark) {
    const { x, width } = mark.getBBox();
    return (x + width / 2) / this.area().width;
  }

  shows(mark) {
    const { from, part } = this.window();
    const place = this.placeOf(mark);
    return place >= from && place <= from + part;
  }

  reveal(mark) {
    const { part } = this.window();
    if (!this.shows(mark)) this.goTo({ from: this.placeOf(mark) - part / 2, part });
  }
}
