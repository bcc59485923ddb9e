"use strict";
// An answer of any type, drawn: its value, its probabilities as bars, and what else it says.

const SHOWN_BARS = 10;
const REDACTED = "[redacted]"; // stands in the audit log for what privacy: strict does not store

// By name of a question type: in which field its answer stands, and how that is drawn.
const TYPES = JSON.parse(byId("types").textContent);

/**
 * By kind of display: what the answer says, `brief` in a row of a table, and its bars. All get the
 * answer, its value, and the wording of its question, if it is known.
 */
const DISPLAYS = {
  skipped: { says: () => "Skipped", bars: () => [] },
  option: { says: valueText, bars: optionBars },
  options: { says: optionsText, bars: optionsBars },
  level: { says: levelText, brief: levelWords, bars: levelBars },
  yes_no: { says: (answer, p) => (p >= 0.5 ? "Yes" : "No"), bars: yesNoBars },
  value: { says: valueText, bars: valueBars },
  unknown: { says: asText, bars: () => [] },
};

/** What is known of an answer's type: its name, its field, its display. */
function typeOf(answer) {
  if ("skipped" in answer) return { name: "skipped", field: "skipped", display: "skipped" };
  const fitting = Object.entries(TYPES).filter(([, { field }]) => field in answer);
  if (!fitting.length) return { name: "unknown", display: "unknown" };
  const [name, type] = fitting[0];
  return { ...type, name: fitting.length === 1 ? name : valueType(answer[type.field]) };
}

/** An answer in a few words, for a row of a table; `wording` is its question, if known. */
function inWords(answer, wording) {
  const { field, display } = typeOf(answer);
  const value = answer[field];
  const words = (DISPLAYS[display].brief ?? DISPLAYS[display].says)(
    answer,
    value,
    fitting(wording, answer),
  );
  const certainty = display === "yes_no" ? Math.max(value, 1 - value) : null;
  const sure = answer.confidence ?? certainty;
  return sure === null ? words : `${words}, ${percent(sure)}`;
}

/** An answer as a part of a page: the words of its question, the answer, and `more` beneath. */
function answerPart(key, answer, wording, more) {
  const { name, field, display } = typeOf(answer);
  const { says, bars: rows } = DISPLAYS[display];
  const named = answer.type ?? name;
  const words = fitting(wording, answer);
  return el(
    "section",
    { class: "answer" },
    el("h3", {}, key, " ", named && badge(named), answerBadges(answer)),
    words && el("p", { class: "asked" }, words.instructions),
    el("p", { class: "says" }, says(answer, answer[field], words)),
    probabilities(rows(answer, answer[field], words)),
    facts(answer),
    explained(answer.explain),
    more,
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

function optionBars({ probabilities: shares }, chosen, wording) {
  const sorted = Object.entries(shares ?? {}).sort(([, a], [, b]) => b - a);
  return sorted.map(([key, share]) => row(described(key, wording), share, key === chosen));
}

function levelBars(answer, mean, wording) {
  const levels = Object.entries(answer.probabilities ?? []); // a list, or an object by level
  const top = Math.max(...levels.map(([, share]) => share));
  return levels.map(([level, share]) => {
    const name = levelName(answer, wording, level);
    return row(name ? `${level}: ${name}` : `Level ${level}`, share, share === top);
  });
}

/** The words of a level, where they are known; JSON in their place as it is written. */
function levelName({ legend: given }, wording, level) {
  const words = (given ?? wording?.levels)?.[level];
  return typeof words === "object" && words !== null ? JSON.stringify(words) : words;
}

function yesNoBars(answer, p) {
  return [row("Yes", p, p >= 0.5), row("No", 1 - p, p < 0.5)];
}

function optionsBars({ probabilities: shares }, selected, wording) {
  return Object.entries(shares ?? {}).map(([key, share]) =>
    row(described(key, wording), share, selected.includes(key)),
  );
}

/** What any answer may have: probabilities by name, or else a confidence. */
function valueBars(answer, value, wording) {
  if (answer.probabilities) return optionBars(answer, value, wording);
  return answer.confidence === undefined ? [] : [row("Confidence", answer.confidence, true)];
}

/** The most probable level among those there are, in words where they are known. */
function levelText(answer, mean, wording) {
  const [level, last] = [topLevel(answer), Object.values(answer.probabilities).length - 1];
  const words = levelName(answer, wording, level);
  const place = `level ${level} of 0–${last}, mean ${decimal(mean)}`;
  return words ? [words, el("span", { class: "note meaning" }, place)] : place;
}

function levelWords(answer, mean, wording) {
  const words = levelName(answer, wording, topLevel(answer));
  return words ?? levelText(answer, mean);
}

function topLevel({ probabilities: byLevel }) {
  const shares = Object.values(byLevel);
  return shares.indexOf(Math.max(...shares));
}

function optionsText(answer, selected) {
  return selected.length ? selected.join(", ") : "None selected";
}

/** What a value shows of its type, where several types have one. */
function valueType(value) {
  if (typeof value === "number") return "number";
  return typeof value === "string" && value !== REDACTED && "text";
}

function valueText(answer, value) {
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
  const { name, calibrates } = typeOf(answer);
  return calibrates ? "no: too few labels" : `no: a ${name} is labelled as a whole`;
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
