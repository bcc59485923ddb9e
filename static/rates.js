"use strict";
// How common each answer truly is: by the labels and all decisions, beside the naive share.

const RATED = 12; // answers that are drawn, the most frequent ones

function ratesCard({ rates: plain, decisions, labels, since, cut }, wording) {
  if (!decisions)
    return card("True rates", empty("No decisions in the last weeks", "Ask it anew."));
  const rates = plain.map((one) => ({ ...one, option: topWords(one.option, wording) }));
  const sorted = rates.toSorted((a, b) => (b.estimate ?? b.naive) - (a.estimate ?? a.naive));
  const drawn = sorted.slice(0, RATED);
  const from = `${counted(decisions, "decision")} since ${time(since)}${cut ? ", the latest" : ""}`;
  return card(
    "True rates",
    legend([
      ["true-rate", "Share by labels and all decisions, with its 95% interval"],
      ["naive", "Naive: share of what models answered"],
    ]),
    el("ul", { class: "bars", "aria-label": "Share of each answer" }, drawn.map(rateRow)),
    el("p", { class: "note" }, `Of ${from}, with ${counted(labels, "label")} among them.`),
    table("Share of each answer, with 95% intervals", RATE_COLUMNS, sorted.map(rateCells)),
  );
}

const RATE_COLUMNS = ["Answer", "#Share", "#Naive", "#By labels alone"];

function rateCells({ option, estimate, low, high, naive, labels_alone: alone }) {
  const share = estimate === null ? NOTHING : range({ estimate, low, high });
  return [option, share, percent(naive), range(alone)];
}

function rateRow({ option, estimate, low, high, naive }) {
  const [middle, first, last, plain] = [estimate, low, high, naive].map((one) => `${one * 100}%`);
  const said = `${option}: ${percent(estimate)} (${percent(low)} to ${percent(high)})`;
  return el(
    "li",
    {},
    el("span", { class: "bar-label" }, option),
    svg(
      "svg",
      { class: "rate", "aria-hidden": "true" },
      svg("title", {}, `${said}, naive ${percent(naive)}`),
      svg("line", { class: "axis", x1: 0, x2: "100%", y1: "50%", y2: "50%" }),
      svg("circle", { class: "naive", cx: plain, cy: "50%", r: 5 }),
      estimate !== null && [
        svg("line", { class: "interval", x1: first, x2: last, y1: "50%", y2: "50%" }),
        svg("circle", { class: "true-rate", cx: middle, cy: "50%", r: 4 }),
      ],
    ),
    el("span", { class: "bar-text" }, percent(estimate ?? naive)),
  );
}
