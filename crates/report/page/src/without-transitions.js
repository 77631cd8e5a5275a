// Stands in for d3-transition and d3-interpolate, which are half of all that d3-zoom brings: they
// move a picture smoothly after a double click or a call with a transition. Neither is used here.

import { selection } from "d3-selection";

export const interpolateZoom = undefined;

export function interrupt() {}

selection.prototype.interrupt = function () {
  return this;
};
