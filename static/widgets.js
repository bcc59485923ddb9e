"use strict";
// What the views are made of: tables, bars, figures, forms.

const PLAIN = { autocomplete: "off", spellcheck: "false" }; // of fields for names

/** A table whose rows stand as cards on a narrow page. `columns` are names, numbers' with a `#`. */
function table(caption, columns, rows) {
  const names = columns.map((name) => name.replace("#", ""));
  const numeric = columns.map((name) => name.startsWith("#") && "number");
  const head = names.map((name, at) => el("th", { scope: "col", class: numeric[at] }, name));
  const cells = (row) =>
    row.map((cell, at) => el("td", { class: numeric[at], "data-label": names[at] }, cell));
  return el(
    "table",
    {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, head)),
    el(
      "tbody",
      {},
      rows.map((row) => el("tr", {}, cells(row))),
    ),
  );
}

/** What a chart shows, in figures that need no pointer. */
function asTable(summary, table) {
  return el("details", {}, el("summary", {}, summary), table);
}

/** Horizontal bars: `rows` are `{label, share, text, marked}` with shares from 0 to 1. */
function bars(label, rows) {
  return el("ul", { class: "bars", "aria-label": label }, rows.map(bar));
}

function bar({ label, share, text, marked }) {
  const width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return el(
    "li",
    { class: marked && "marked" },
    el(
      "span",
      { class: "bar-label" },
      label,
      marked && el("span", { class: "unseen" }, " (chosen)"),
    ),
    svg(
      "svg",
      { class: "bar", "aria-hidden": "true" },
      svg("rect", { class: "track", width: "100%", height: "100%", rx: 4 }),
      svg("rect", { class: "value", width, height: "100%", rx: 4 }),
    ),
    el("span", { class: "bar-text" }, text),
  );
}

/** One figure with its name, and a line that explains it. */
function figure(name, value, note) {
  return el(
    "div",
    { class: "figure" },
    el("dt", {}, name),
    el("dd", {}, el("strong", {}, value), note && el("span", { class: "note" }, note)),
  );
}

function figures(...list) {
  return el("dl", { class: "figures" }, list);
}

function card(title, ...content) {
  return el("section", { class: "card" }, el("h2", {}, title), content);
}

function badge(text, kind = "") {
  return el("span", { class: `badge ${kind}` }, text);
}

function field(label, input) {
  return el("label", { class: "field" }, el("span", {}, label), input);
}

/** A row of fields above a view; `go` gets their values by name when it is submitted. */
function toolbar(go, fields, button) {
  const submitted = (event) => {
    event.preventDefault();
    go(Object.fromEntries(new FormData(event.target)));
  };
  const submit = el("button", { type: "submit", class: "primary" }, button);
  return el("form", { class: "toolbar", submit: submitted }, fields, submit);
}
