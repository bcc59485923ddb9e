"use strict";
// The words of a question: what stands beside the keys and levels that an answer is made of.

/** The wording of a question if it fits an answer to it: a request may write it in other ways. */
function fitting(wording, answer) {
  if (!wording) return null;
  const { display } = typeOf(answer);
  if (display === "skipped") return wording;
  if (TYPES[wording.type]?.display !== display) return null;
  const keys = Object.keys(answer.probabilities ?? {});
  if (wording.levels) return wording.levels.length === keys.length ? wording : null;
  const known = new Set([
    ...Object.keys(wording.options ?? {}),
    ...(wording.escape ? NONE_FITS : []),
  ]);
  return wording.options && !keys.every((key) => known.has(key)) ? null : wording;
}

/** An option with what it means. */
function described(key, wording) {
  const options = wording?.options ?? {};
  const meaning = Object.hasOwn(options, key) && options[key];
  return meaning ? [key, el("span", { class: "note meaning" }, meaning)] : key;
}

/** A top answer, as reports name it, in the words of its question. */
function topWords(top, wording) {
  if (wording?.levels?.[top]) return `${top}: ${wording.levels[top]}`;
  if (TYPES[wording?.type]?.display === "yes_no") return { true: "Yes", false: "No" }[top] ?? top;
  if (TYPES[wording?.type]?.display === "options") return severalWords(top);
  return top;
}

/** A selection of several options, which reports name as a JSON list. */
function severalWords(top) {
  try {
    return JSON.parse(top).join(", ") || "None selected";
  } catch {
    return top;
  }
}

/** What a question asks, above a report on it. */
function questionWords(key, wording) {
  if (!wording) return null;
  const choices = wording.levels
    ? wording.levels.map((words, level) => [`Level ${level}`, words])
    : Object.entries(wording.options ?? {}).filter(([, words]) => words);
  return el(
    "div",
    { class: "card" },
    el("h2", {}, wording.instructions),
    el("p", { class: "note" }, `The question ${key}, of type ${wording.type}.`),
    choices.length > 0 && el("details", {}, el("summary", {}, "Its answers"), facted(choices)),
  );
}
