// Times as the rest of the page writes them.

const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

const unitOf = (ns) => UNITS.find(([size]) => Math.abs(ns) >= size) ?? UNITS.at(-1);

/** A length, with so many digits that say something. */
export function time(ns, digits = 3) {
  const [size, unit] = unitOf(Number(ns.toPrecision(digits)));
  const value = ns / size;
  const whole = Math.max(1, Math.ceil(Math.log10(value + 1e-9)));
  return `${value.toFixed(size === 1 ? 0 : Math.max(0, digits - whole))} ${unit}`;
}

/** A moment, as finely as `step` tells moments apart, in the unit that `like` is written in. */
export function moment(ns, step, like = ns) {
  const [size, unit] = unitOf(like);
  const decimals = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return `${(ns / size).toFixed(size === 1 ? 0 : decimals)} ${unit}`;
}

/** The smallest of 1, 2, 5, 10, 20, 50 … that is no less. */
export function round(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((it) => it * power >= least * (1 - 1e-9));
}
