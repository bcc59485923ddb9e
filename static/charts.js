"use strict";
// Charts as SVG, drawn to the width that is there, so that their text keeps its size.

/** A chart that `draw(width)` makes anew whenever its place gets another width. */
function chart(label, draw) {
  const place = el("div", { class: "chart" });
  let drawn = 0;
  const watch = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    const { height, nodes } = draw(width);
    const box = { width, height, viewBox: `0 0 ${width} ${height}` };
    place.replaceChildren(svg("svg", { ...box, role: "img", "aria-label": label }, nodes));
  });
  watch.observe(place);
  return place;
}

/** The names of a chart's series; `series` are `[class, name]`. */
function legend(series) {
  return el(
    "ul",
    { class: "legend" },
    series.map(([kind, name]) => {
      const swatch = svg("rect", { class: kind, x: 1, y: 1, width: 10, height: 10, rx: 2 });
      return el(
        "li",
        {},
        svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, swatch),
        name,
      );
    }),
  );
}

/** Lines across at each of `shares`, with their labels at the left. */
function grid(shares, x, right, y) {
  return shares.map((share) => [
    svg("line", { class: "grid", x1: x, x2: right, y1: y(share), y2: y(share) }),
    svg(
      "text",
      { class: "tick", x: x - 8, y: y(share), "text-anchor": "end", dy: "0.32em" },
      `${share * 100}%`,
    ),
  ]);
}

const JOINED = 5; // bins that a line needs; through fewer it would show chance as a course

/** Accuracy over confidence; `series` are `{kind, name, bins}`. On the diagonal they are equal. */
function reliability(series) {
  return (width) => {
    const size = Math.min(width, 440);
    const start = (width - size) / 2;
    const [left, right, top, bottom] = [start + 68, start + size - 20, 12, size - 44];
    const x = (share) => left + share * (right - left);
    const y = (share) => bottom - share * (bottom - top);
    const shares = [0, 0.25, 0.5, 0.75, 1];
    const nodes = [
      grid(shares, left, right, y),
      shares.map((share) =>
        svg(
          "text",
          { class: "tick", x: x(share), y: bottom + 18, "text-anchor": "middle" },
          `${share * 100}%`,
        ),
      ),
      svg(
        "text",
        { class: "tick", x: (left + right) / 2, y: size - 6, "text-anchor": "middle" },
        "Confidence",
      ),
      svg("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      axisTitle("Accuracy", start + 14, (top + bottom) / 2),
      series.map((one) => curve(one, x, y)),
    ];
    return { height: size, nodes };
  };
}

/** The title of a vertical axis, read from below. */
function axisTitle(text, x, y) {
  const turned = { transform: `rotate(-90 ${x} ${y})`, "text-anchor": "middle" };
  return svg("text", { class: "tick", x, y, ...turned }, text);
}

/** One series of bins: a dot for each, the bigger the more labels it has, and a line. */
function curve({ kind, name, bins }, x, y) {
  const filled = bins.filter((bin) => bin.count > 0);
  const total = filled.reduce((sum, bin) => sum + bin.count, 0);
  const points = filled.map((bin) => `${x(bin.confidence)},${y(bin.accuracy)}`).join(" ");
  const dots = filled.map((bin) => {
    const r = 3 + 9 * Math.sqrt(bin.count / total);
    const said = `confidence ${percent(bin.confidence)}, accuracy ${percent(bin.accuracy)}`;
    const title = svg("title", {}, `${name}: ${said}, ${counted(bin.count, "label")}`);
    return svg("circle", { cx: x(bin.confidence), cy: y(bin.accuracy), r }, title);
  });
  const line = filled.length >= JOINED && svg("polyline", { points });
  return svg("g", { class: `curve ${kind}` }, line, dots);
}

/** Where each week's column lies. */
function columns(count, left, right) {
  const step = (right - left) / count;
  const width = Math.min(72, step * 0.7);
  return { width, center: (at) => left + (at + 0.5) * step, every: Math.ceil(48 / step) };
}

/** The weeks' mixes as stacked columns; `tops` are `[kind, name, share of a week]`. */
function stacked(weeks, tops) {
  return (width) => {
    const [left, right, top, bottom] = [48, width - 8, 12, 200];
    const place = columns(weeks.length, left, right);
    const y = (share) => bottom - share * (bottom - top);
    const nodes = [grid([0, 0.5, 1], left, right, y), weekLabels(weeks, place, bottom)];
    weeks.forEach((week, at) => nodes.push(stack(week, tops, place.center(at), place.width, y)));
    return { height: bottom + 28, nodes };
  };
}

function stack(week, tops, center, width, y) {
  let below = 0;
  return tops.map(([kind, name, shareOf]) => {
    const share = shareOf(week);
    const [from, to] = [y(below), y(below + share)];
    below += share;
    const title = svg("title", {}, `${week.week}, ${name}: ${percent(share)}`);
    const box = { x: center - width / 2, y: to, width, height: Math.max(0, from - to) };
    return share > 0 && svg("rect", { class: `segment ${kind}`, ...box }, title);
  });
}

/** The weeks' mean confidence as a line; the latest dot is marked when there is an `alarm`. */
function confidenceLine(weeks, alarm) {
  return (width) => {
    const [left, right, top, bottom] = [48, width - 8, 12, 132];
    const place = columns(weeks.length, left, right);
    const y = (share) => bottom - share * (bottom - top);
    const points = weeks.map((week, at) => `${place.center(at)},${y(week.confidence)}`).join(" ");
    const dots = weeks.map((week, at) => {
      const title = svg("title", {}, `${week.week}: ${percent(week.confidence)}`);
      const marked = alarm && at === weeks.length - 1;
      const dot = { cx: place.center(at), cy: y(week.confidence), r: marked ? 6 : 4 };
      return svg("circle", { class: marked && "drifting", ...dot }, title);
    });
    const line = svg("g", { class: "curve line" }, svg("polyline", { points }), dots);
    return {
      height: bottom + 28,
      nodes: [grid([0, 0.5, 1], left, right, y), weekLabels(weeks, place, bottom), line],
    };
  };
}

/** Labels of as many weeks as there is room for, the latest among them. */
function weekLabels(weeks, place, bottom) {
  return weeks.map(({ week }, at) => {
    const shown = (weeks.length - 1 - at) % place.every === 0;
    const label = { class: "tick", x: place.center(at), y: bottom + 20, "text-anchor": "middle" };
    return shown && svg("text", label, week.slice(-3), svg("title", {}, week));
  });
}
