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

// Controls, marks of direction, tags, private use: nothing is drawn for them, or what stands beside
// them is drawn in another order. Joiners are left where they shape what stands before them.
const UNSEEN =
  /(?![\t\n\r\u0600-\u0605\u06dd\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}]|(?<=[\0-\u024f])[\u200c\u200d]/gu;

/** The text with a code in place of each character that is not seen: two names may differ in it. */
function visible(text) {
  return text.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase();
    return `⟨U+${code.padStart(4, "0")}⟩`;
  });
}

function isThere(value) {
  return value !== null && value !== undefined && value !== false;
}

function byId(id) {
  return document.getElementById(id);
}
