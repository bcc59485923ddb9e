"use strict";
// What a reviewer can say to a question: its options on keys, toggles, or a field to type into.

const KEYS = 9; // options that have a digit
const NONE_FITS = ["none_of_these", "None of the other options fits"];

/** The labels of a question, `{label, name, words, letter}` each; none where a value is typed. */
function sayable({ type, options, escape, levels }) {
  if (TYPES[type]?.display === "yes_no") {
    return [
      { label: true, name: "Yes", letter: "y" },
      { label: false, name: "No", letter: "n" },
    ];
  }
  if (levels) return levels.map((name, label) => ({ label, name, words: `level ${label}` }));
  const pairs = [...Object.entries(options ?? {}), ...(escape ? [NONE_FITS] : [])];
  return pairs.map(([name, words]) => ({ label: name, name, words }));
}

/** A label as a reviewer reads it. */
function labelWords(definition, label) {
  if (Array.isArray(label)) return label.length ? label.join(", ") : "none of them";
  if (label === null) return "no value";
  const found = sayable(definition).find((one) => one.label === label);
  return found ? found.name : asText(label);
}

/**
 * The part of the page that takes an answer: its `node`, and `press`, which says whether it knows a
 * key. `given` is the label so far, undefined for none; `say` gets the new one.
 */
function answering(definition, given, say) {
  const all = sayable(definition);
  if (!all.length) return typing(definition, given, say);
  const several = TYPES[definition.type]?.display === "options";
  return several ? toggling(all, given ?? [], say) : choosing(all, given, say);
}

function choosing(all, given, say) {
  return optionList(
    all,
    (one) => say(one.label),
    (one) => one.label === given,
  );
}

function toggling(all, given, say) {
  const chosen = new Set(given);
  const toggle = ({ label }) => {
    if (!chosen.delete(label)) chosen.add(label);
    list.mark();
  };
  const list = optionList(all, toggle, (one) => chosen.has(one.label));
  const done = () => say(all.map((one) => one.label).filter((label) => chosen.has(label)));
  const button = el("button", { type: "button", class: "primary", click: done }, "Done ", kbd("↵"));
  return {
    node: el("div", { class: "label-options" }, list.node, el("div", {}, button)),
    press: (key) => list.press(key) || (key === "Enter" && (done(), true)),
  };
}

/** Buttons with a digit each; where there are more than digits, a field narrows them. */
function optionList(all, pick, marked) {
  const list = el("ul", { class: "label-list" });
  const input = el("input", { type: "search", ...PLAIN, input: () => draw() });
  let shown = [];
  const mark = () => {
    for (const { one, button } of shown) button.ariaPressed = String(marked(one));
  };
  const draw = () => {
    const words = input.value.trim().toLowerCase();
    const fits = (one) => `${one.name} ${one.words ?? ""}`.toLowerCase().includes(words);
    shown = all.filter(fits).map((one, at) => ({ one, button: optionButton(one, at, pick) }));
    list.replaceChildren(...shown.map(({ button }) => el("li", {}, button)));
    mark();
  };
  const press = (key) => {
    if (key === "/" && all.length > KEYS) return input.focus(), true;
    const digit = /^[1-9]$/.test(key) && shown[key - 1]?.one;
    const one = digit || all.find(({ letter }) => letter === key.toLowerCase());
    if (one) pick(one);
    return Boolean(one);
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && press("1")) event.preventDefault();
  });
  draw();
  const narrowing = all.length > KEYS && field("Narrow the options: /", input);
  return { node: el("div", { class: "label-options" }, narrowing, list), press, mark };
}

function optionButton(one, at, pick) {
  const keys = [at < KEYS && String(at + 1), one.letter].filter(Boolean);
  const words = el("span", {}, el("strong", {}, one.name), one.words && ` ${one.words}`);
  return el("button", { type: "button", click: () => pick(one) }, keys.map(kbd), words);
}

/** A field for a value that stands in the text. */
function typing({ type, nullable, max_length: length, min, max }, given, say) {
  const number = type === "number" || type === "integer";
  const value = given === undefined || given === null ? "" : String(given);
  const trouble = el("p", { class: "note label-trouble", role: "alert" });
  const input = el("input", { value, maxlength: length, inputmode: number && "decimal", ...PLAIN });
  const bounds = [isThere(min) && `from ${min}`, isThere(max) && `up to ${max}`];
  const empty = nullable && "leave it empty for no value";
  const hints = [...bounds, empty].filter(Boolean).join(", ");
  const submitted = (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text && nullable) return say(null);
    const typed = number ? Number(text) : input.value;
    const wrong = !text || (number && !Number.isFinite(typed)) || typed < min || typed > max;
    if (!wrong && !isExact(typed)) return trouble.replaceChildren(TOO_LONG);
    if (!wrong && (type !== "integer" || Number.isInteger(typed))) return say(typed);
    trouble.replaceChildren(number ? `This is not ${numberName(type)}.` : "There is no text.");
  };
  const button = el("button", { type: "submit", class: "primary" }, "Done ", kbd("↵"));
  const name = number ? "The number" : "The words as they stand in the text";
  const row = el("div", { class: "toolbar" }, field(name, input), button);
  return {
    node: el("form", { class: "label-options", submit: submitted }, row, hints && el("p", { class: "note" }, hints), trouble),
    press: () => false,
    input,
  };
}

function numberName(type) {
  return type === "integer" ? "a whole number within the bounds" : "a number within the bounds";
}

function kbd(key) {
  return el("kbd", {}, key);
}
