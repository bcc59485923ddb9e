"use strict";
// Elements without markup: whatever comes from data is put in as text.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. A function among the attributes listens to the event of that name. */
function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (isThere(value)) node.setAttribute(name, value);
  }
  const shown = children.flat(Infinity).filter(isThere);
  node.append(...shown.map((child) => (typeof child === "string" ? visible(child) : child)));
  return node;
}

// Joiners and selectors of variants, which shape the letter or the emoji before them, but no Latin,
// Greek or Cyrillic one.
const SHAPING = "\\u180b-\\u180f\\u200c\\u200d\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
// Controls, marks of direction, tags, fillers, private use: nothing is drawn for them, or what
// stands beside them is drawn in another order.
const HIDDEN = `(?![\\t\\n\\r\\u0600-\\u0605\\u06dd${SHAPING}])[\\p{Cc}\\p{Cf}\\p{Cn}\\p{Co}\\p{DI}]`;
const UNSEEN = new RegExp(`${HIDDEN}|(?<=[\\p{sc=Latn}\\p{sc=Grek}\\p{sc=Cyrl}])[${SHAPING}]+`, "gu");

/** The text with a code in place of each character that is not seen: two names may differ in it. */
function visible(text) {
  return text.replace(UNSEEN, (characters) => [...characters].map(codeOf).join(""));
}

function codeOf(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase();
  return `⟨U+${code.padStart(4, "0")}⟩`;
}

function isThere(value) {
  return value !== null && value !== undefined && value !== false;
}

function byId(id) {
  return document.getElementById(id);
}
