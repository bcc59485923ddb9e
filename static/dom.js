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
  node.append(...children.flat(Infinity).filter(isThere));
  return node;
}

function isThere(value) {
  return value !== null && value !== undefined && value !== false;
}

function byId(id) {
  return document.getElementById(id);
}
