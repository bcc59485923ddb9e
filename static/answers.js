"use strict";
// An answer of any type, drawn: its value, its probabilities as bars, and what else it says.

const SHOWN_BARS = 10;
const REDACTED = "[redacted]"; // stands in the audit log for what privacy: strict does not store

/** By the field that tells a type: its name if it is known, its value in words, and its bars. */
const TYPES = new Map([
  ["skipped", { name: "skipped", says: () => "Skipped", bars: () => [] }],
  ["choice", { name: "choice", says: (answer) => answer.choice, bars: choiceBars }],
  ["score", { name: "score", says: scoreText, bars: scoreBars }],
  ["noul", { name: "noul", says: (answer) => (answer.noul >= 0.5 ? "Yes" : "No"), bars: noulBars }],
  ["selected", { name: "multi", says: selectedText, bars: multiBars }],
  ["value", { says: valueText, bars: valueBars }],
]);

function typeOf(answer) {
  const found = [...TYPES].find(([field]) => field in answer);
  return found ? found[1] : { name: "unknown", says: () => asText(answer), bars: () => [] };
}

/** An answer in a few words, for a row of a table. */
function inWords(answer) {
  const words = typeOf(answer).says(answer);
  const sure = answer.confidence ?? Math.max(answer.noul, 1 - answer.noul);
  return Number.isNaN(sure) ? words : `${words}, ${percent(sure)}`;
}

/** An answer as a part of a page. */
function answerPart(key, answer) {
  const type = typeOf(answer);
  const named = answer.type ?? type.name ?? valueType(answer.value);
  return el(
    "section",
    { class: "answer" },
    el("h3", {}, key, " ", named && badge(named), answerBadges(answer)),
    el("p", { class: "says" }, type.says(answer)),
    probabilities(type.bars(answer)),
    facts(answer),
    explained(answer.explain),
  );
}

function answerBadges(answer) {
  return [
    answer.abstain && badge("abstains", "warn"),
    answer.calibrated && badge("calibrated", "good"),
    answer.rule !== undefined && badge(`rule ${answer.rule}`),
  ];
}

function probabilities(rows) {
  const [shown, hidden] = [rows.slice(0, SHOWN_BARS), rows.slice(SHOWN_BARS)];
  const more = el("summary", {}, `${hidden.length} more`);
  return [
    shown.length > 0 && bars("Probabilities", shown),
    hidden.length > 0 && el("details", {}, more, bars("Further probabilities", hidden)),
  ];
}

function row(label, share, marked = false) {
  return { label, share, text: percent(share), marked };
}

function choiceBars({ probabilities: shares, choice }) {
  const sorted = Object.entries(shares ?? {}).sort(([, a], [, b]) => b - a);
  return sorted.map(([key, share]) => row(key, share, key === choice));
}

function scoreBars({ probabilities: shares, legend: names }) {
  const levels = Object.entries(shares ?? []); // a list, or an object by level
  const top = Math.max(...levels.map(([, share]) => share));
  return levels.map(([level, share]) =>
    row(names?.[level] ? `${level}: ${names[level]}` : `Level ${level}`, share, share === top),
  );
}

function noulBars({ noul }) {
  return [row("Yes", noul, noul >= 0.5), row("No", 1 - noul, noul < 0.5)];
}

function multiBars({ probabilities: shares, selected }) {
  return Object.entries(shares ?? {}).map(([key, share]) =>
    row(key, share, selected.includes(key)),
  );
}

function valueBars({ confidence }) {
  return confidence === undefined ? [] : [row("Confidence", confidence, true)];
}

/** The most probable level among those there are, and the expected one. */
function scoreText({ score, probabilities: byLevel }) {
  const shares = Object.values(byLevel);
  const top = shares.indexOf(Math.max(...shares));
  return `level ${top} of 0–${shares.length - 1}, mean ${decimal(score)}`;
}

function selectedText({ selected }) {
  return selected.length ? selected.join(", ") : "None selected";
}

/** What an extracted value shows of its type. */
function valueType(value) {
  if (typeof value === "number") return "number";
  return typeof value === "string" && value !== REDACTED && "text";
}

function valueText({ value }) {
  return value === null ? "No value" : asText(value);
}

function facts(answer) {
  const set = answer.set && `{${answer.set.join(", ")}}`;
  const known = [
    ["Agreement", answer.agreement, percent],
    ["Answered by", answer.answered_by, asText],
    ["Stage", answer.stage, String],
    ["Coverage", answer.coverage, percent],
    ["Prediction set", set, String],
    ["Guaranteed", answer.guaranteed, (yes) => (yes ? "yes" : notGuaranteed(answer))],
  ].filter(([, value]) => isThere(value) || value === false);
  if (!known.length) return null;
  return facted(known.map(([name, value, format]) => [name, format(value)]));
}

function notGuaranteed(answer) {
  return "selected" in answer ? "no: a multi is labelled as a whole" : "no: too few labels";
}

/** Names with their values. */
function facted(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/** By how much the probability falls without each field of the state. */
function explained(drops) {
  if (!drops || !Object.keys(drops).length) return null;
  const rows = Object.entries(drops).map(([name, drop]) => ({
    label: name,
    share: Math.abs(drop ?? 0),
    text: signed(drop === null ? null : -drop),
    marked: false,
  }));
  return [el("h4", {}, "Without this field of the state"), bars("Change of the probability", rows)];
}
