"use strict";
// Columns over time, as many as there is room for.

const COLUMN = 8; // pixels that a column takes at least, with the gap beside it
const HOUR_S = 3600;
const DAY_S = 86_400;

/** Columns of `steps`, stacked out of `parts`: `[kind, name, value of the sums of some steps]`. */
function overTime(steps, spanS, parts, format) {
  return (width) => {
    const [left, right, top, bottom] = [64, width - 8, 12, 160];
    const each = Math.ceil((steps.length * COLUMN) / (right - left));
    const groups = grouped(steps, each);
    const heights = groups.map((group) => sum(parts.map(([, , of]) => of(group))));
    const highest = roundUp(Math.max(...heights));
    const y = (value) => bottom - (value / highest) * (bottom - top);
    const step = (right - left) / groups.length;
    const nodes = [0, 0.5, 1].map((share) => gridLine(share * highest, format, left, right, y));
    groups.forEach((group, at) => {
      const place = { x: left + at * step + 1, width: Math.max(1, step - 2) };
      nodes.push(column(group, parts, place, y, spanS, format));
    });
    return {
      height: bottom + 28,
      nodes: [...nodes, startLabels(groups, spanS, left, step, bottom)],
    };
  };
}

/** Sums of `each` steps in a row; the latest group is whole. */
function grouped(steps, each) {
  const groups = [];
  for (let end = steps.length; end > 0; end -= each) {
    groups.unshift(sumsOf(steps.slice(Math.max(0, end - each), end)));
  }
  return groups;
}

/** The sums of steps, and the mean latency of the decisions that asked a model. */
function sumsOf(steps) {
  const add = (of) => sum(steps.map(of));
  const asked = add((one) => one.decisions - one.cached);
  const waited = add((one) => (one.latency_ms ?? 0) * (one.decisions - one.cached));
  const names = ["decisions", "failed", "cached", "answers", "abstained", "cost_usd"];
  const sums = Object.fromEntries(names.map((name) => [name, add((one) => one[name])]));
  return { ...sums, start: steps[0]?.start, latency_ms: asked ? waited / asked : null };
}

/** The next number of the form 1, 2 or 5 times a power of ten; 1 for nothing. */
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value * (1 - 1e-9));
}

function gridLine(value, format, left, right, y) {
  const tick = { class: "tick", x: left - 8, y: y(value), "text-anchor": "end", dy: "0.32em" };
  return [
    svg("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
    svg("text", tick, format(value)),
  ];
}

function column(group, parts, place, y, spanS, format) {
  let below = 0;
  return parts.map(([kind, name, of]) => {
    const [from, to] = [y(below), y(below + of(group))];
    below += of(group);
    const said = `${startText(group.start, spanS)}, ${name}: ${format(of(group))}`;
    const box = { ...place, y: to, height: from - to };
    return from > to && svg("rect", { class: `segment ${kind}`, ...box }, svg("title", {}, said));
  });
}

function startLabels(groups, spanS, left, step, bottom) {
  const every = Math.ceil(120 / step);
  return groups.map(({ start }, at) => {
    const shown = (groups.length - 1 - at) % every === 0;
    const anchor = at === groups.length - 1 ? "end" : "middle";
    const x = left + (at + (anchor === "end" ? 1 : 0.5)) * step;
    const label = { class: "tick", x, y: bottom + 20, "text-anchor": anchor };
    return shown && svg("text", label, startText(start, spanS));
  });
}

/** When a span begins, as exactly as the span is long: days of the server are those of UTC. */
function startText(ms, spanS) {
  if (spanS >= DAY_S) return new Date(ms).toISOString().slice(0, 10);
  return spanS >= HOUR_S ? time(ms).slice(5, 16) : time(ms).slice(11, 16);
}
