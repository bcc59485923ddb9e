"use strict";
// One question as fields: its key, type, words, options or levels, and all else as JSON.

/** What of a question the form has fields for; the rest of it is JSON. */
const OPTIONS_FIELD = { option: "options", options: "options", level: "levels" };

/**
 * The fields of `one`, which is `{key, question}` and changes with them; `changed` is called then.
 * The text that cannot be read is kept by its field, which says so.
 */
function questionFields(one, changed, redraw) {
  const { question } = one;
  const choices = OPTIONS_FIELD[TYPES[question.type]?.display];
  return [
    el("div", { class: "toolbar" }, keyField(one, changed), typeField(question, redraw)),
    area("Question", question.instructions ?? "", 2, (text) => {
      question.instructions = text;
      changed();
    }),
    choices && choicesField(question, choices, changed),
    furtherField(question, choices, changed),
  ];
}

function keyField(one, changed) {
  const input = (event) => {
    one.key = event.target.value;
    changed();
  };
  return field("Key", el("input", { value: one.key, required: true, input, ...PLAIN }));
}

function typeField(question, redraw) {
  const change = (event) => {
    question.type = event.target.value;
    redraw();
  };
  const known = Object.keys(TYPES).map((name) => [name, name]);
  return choiceField("Type", "type", question.type, known, change);
}

/** Options as lines of `key: what it means`, or levels as lines, the lowest first. */
function choicesField(question, name, changed) {
  const levels = name === "levels";
  const text = levels ? (question.levels ?? []).join("\n") : optionLines(question.options ?? {});
  const read = levels ? levelsOf : optionsOf;
  const label = levels
    ? "Levels, one a line, the lowest first"
    : "Options, one a line: key, a colon, and what it means";
  const written = area(label, text, 4, (lines) => {
    question[name] = read(lines);
    changed();
  });
  written.classList.add("choices");
  return written;
}

function optionLines(options) {
  return Object.entries(options)
    .map(([key, words]) => (words ? `${key}: ${words}` : key))
    .join("\n");
}

function levelsOf(lines) {
  return lines
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

function optionsOf(lines) {
  const pairs = levelsOf(lines).map((line) => {
    const [, key, words] = /^([^:]*)(?::\s*(.*))?$/.exec(line);
    return [key.trim(), words ?? ""];
  });
  return Object.fromEntries(pairs);
}

/** Whether the lines hold all that a question's options or levels do. */
function fitsLines({ options = {}, levels = [] }) {
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const plain = same(levelsOf(levels.join("\n")), levels);
  return plain && same(optionsOf(optionLines(options)), options);
}

/** All that has no field of its own, such as `when`, `rules`, `coverage` and `min_confidence`. */
function furtherField(question, choices, changed) {
  const own = new Set(["type", "instructions", choices]);
  const further = Object.fromEntries(Object.entries(question).filter(([name]) => !own.has(name)));
  const any = Object.keys(further).length > 0;
  const read = (text, box) => {
    const found = jsonObject(text.trim() || "{}");
    box.setCustomValidity(found ? "" : "This is not a JSON object.");
    if (!found) return;
    for (const name of Object.keys(question)) if (!own.has(name)) delete question[name];
    for (const [name, value] of Object.entries(found)) if (!own.has(name)) question[name] = value;
    changed();
  };
  const label = "Further fields as JSON, such as min_confidence, coverage, when and rules";
  return el(
    "details",
    { open: any, class: "further-fields" },
    el("summary", {}, "Further fields"),
    area(label, any ? JSON.stringify(further, null, 2) : "", 3, read),
  );
}

/** The object that a text is as JSON; null where it is none. */
function jsonObject(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** A labelled field of several lines. `read` gets its text, and the field itself. */
function area(label, text, rows, read) {
  const input = (event) => read(event.target.value, event.target);
  const box = el("textarea", { class: "lines", rows, spellcheck: "false", input });
  box.value = text;
  return field(label, box);
}
