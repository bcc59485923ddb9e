"use strict";
// How it stands with what a view asked for: it loads, there is none, or it failed.

const HEADLINES = new Map([
  [0, "No answer"],
  [400, "The request is not valid"],
  [401, "An API key is needed"],
  [403, "Not allowed"],
  [404, "Not found"],
  [408, "The request came too slowly"],
  [413, "The request is too large"],
  [422, "The request is not valid"],
  [429, "Too many requests"],
  [502, "The model did not answer"],
  [504, "The time is up"],
]);
const HEADLINES_WITH_KEY = new Map([
  [401, "This API key is not accepted"],
  [403, "This API key may not see this project"],
]);

/**
 * Show in `region` the nodes that `make` promises, and until then, or instead, how it stands.
 * Resolves to whether they came; if not, `retry` is what a person may do again.
 */
async function load(region, signal, make, retry = () => load(region, signal, make)) {
  region.setAttribute("aria-busy", "true");
  if (!region.hasChildNodes()) region.replaceChildren(loading());
  let [came, nodes] = [true, []];
  try {
    nodes = await make();
  } catch (error) {
    [came, nodes] = [false, signal.aborted ? [] : [problem(error, retry)]];
  }
  if (signal.aborted) return false; // another view stands there
  showKey();
  replace(region, nodes.filter(isThere));
  region.setAttribute("aria-busy", "false");
  return came;
}

/** Whoever was on something in `region` stays in it, and does not start the page anew. */
function replace(region, nodes) {
  const held = region.contains(document.activeElement);
  region.replaceChildren(...nodes);
  region.tabIndex = -1;
  if (held) region.focus({ preventScroll: true });
}

function loading() {
  return el("p", { class: "state", role: "status" }, "Loading…");
}

function empty(headline, ...more) {
  return el(
    "div",
    { class: "state" },
    el("h2", {}, headline),
    more.map((text) => el("p", {}, text)),
  );
}

/** An error a person can act upon. */
function problem(error, retry) {
  if (!(error instanceof Problem)) return unreadable(error, retry);
  const headline = headlineOf(error.status);
  const message = explanation(error);
  if (error.status === 401) askForKey(message);
  return el(
    "div",
    { class: "state error", role: "alert" },
    el("h2", {}, headline),
    el("p", {}, message),
    error.retryAfter && el("p", {}, `Try again in ${error.retryAfter} s.`),
    el("div", { class: "actions" }, concernsKey(error) && keyButton(), retry && again(retry)),
  );
}

function headlineOf(status) {
  const withKey = storedKey() && HEADLINES_WITH_KEY.get(status);
  return withKey || (HEADLINES.get(status) ?? "The server could not answer");
}

/** Whether another key may help. */
function concernsKey({ status }) {
  return status === 401 || (status === 403 && storedKey() !== null);
}

function explanation(error) {
  const keyless = error.status === 401 && !storedKey();
  return keyless ? "This server answers only with an API key." : error.message;
}

function keyButton() {
  const attributes = { type: "button", class: "primary", click: () => askForKey() };
  return el("button", attributes, storedKey() ? "Enter another key" : "Enter key");
}

function again(retry) {
  return el("button", { type: "button", click: () => retry() }, "Try again");
}

/** What came is not what the server sends, or broke off: something in between made it. */
function unreadable(error, retry) {
  console.error(error);
  return problem(new Problem(0, "What came as an answer could not be read."), retry);
}
