"use strict";
// The page as a whole: which view is shown, the key, and the question that two views are about.

const VIEWS = new Map([
  ["overview", { title: "Overview", show: overview }],
  ["decisions", { title: "Decisions", show: decisions }],
  ["jobs", { title: "Jobs", show: jobs }],
  ["label", { title: "Label", show: labelling }],
  ["calibration", { title: "Calibration", show: calibration }],
  ["drift", { title: "Drift", show: drift }],
  ["try", { title: "Try a question", show: tryOut }],
  ["keys", { title: "API keys", show: keys }],
]);
const KEPT = ["project", "question"]; // parameters that go along from view to view

let shown = null; // the address of the view that is shown, without the decision over it
let leaving = new AbortController(); // aborted when the view is left

/** The address of a view within the page: `#/drift?question=team`. */
function address(view, params) {
  const query = filled(params);
  return `#/${view}${query.size ? "?" : ""}${query}`;
}

/** Show a view; the same one once more is loaded again. */
function go(view, params) {
  const target = address(view, params);
  if (location.hash === target) showAgain();
  else location.hash = target;
}

/** The view that an address names, and its parameters. */
function placeOf(hash) {
  const [, name, query] = /^#\/(\w*)\??(.*)$/.exec(hash) ?? [null, "overview", ""];
  const view = VIEWS.has(name) ? name : "overview";
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Show what the address names: a view, and over it a decision. */
function show() {
  const { view, params: all } = placeOf(location.hash);
  const { decision, ...params } = all;
  const target = address(view, params);
  if (target !== shown) showView(view, params);
  shown = target;
  if (decision) openDecision(decision, (id) => address(view, { ...params, decision: id }));
  else byId("drawer").close();
}

function showAgain() {
  shown = null;
  show();
}

function showView(view, params) {
  leaving.abort();
  leaving = new AbortController();
  neighbours = [];
  const { title, show: open } = VIEWS.get(view);
  const region = el("div", { class: "view" });
  byId("main").replaceChildren(el("h1", {}, title), region);
  document.title = `${title} · svc`;
  markLinks(view, params);
  showKey();
  open(region, params, leaving.signal);
}

function markLinks(view, params) {
  const kept = Object.fromEntries(KEPT.map((name) => [name, params[name]]));
  for (const link of document.querySelectorAll("nav[aria-label=Views] a")) {
    const name = /\w+/.exec(link.hash)[0];
    link.href = address(name, kept);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** A view about one question: its fields, its words, and what `report` makes of the query. */
async function aboutQuestion(view, region, params, signal, report, fields = []) {
  await Promise.all([knowProjects(signal), knowQuestions(params.project, signal)]);
  if (signal.aborted) return;
  const { project } = params;
  const question = params.question || latestQuestion(project);
  const changed = (event) => go(view, { ...params, project: event.target.value, question: "" });
  const place = el("div");
  const all = [projectField(project, changed), questionField(project, question, "the latest one")];
  region.replaceChildren(
    toolbar((values) => go(view, values), [...all, fields], "Show"),
    place,
  );
  await load(
    place,
    signal,
    async () => {
      if (!question) return noQuestion(project, signal);
      const wording = wordingOf(project, question);
      const parts = await report({ ...params, question }, wording);
      return [questionWords(question, wording), ...parts];
    },
    showAgain,
  );
}

/** There is none, unless the list could not be read: then the log says why. */
async function noQuestion(project, signal) {
  await getJson("v1/audit", { project, limit: 1 }, signal);
  return [empty("No questions yet", "A question appears here once it was asked.")];
}

function showKey() {
  const state = storedKey() === refusedKey ? "not accepted" : "set";
  byId("key-button").textContent = storedKey() ? `API key: ${state}` : "API key";
}

/** Open the dialog for the key; `reason` says why it is asked for. */
function askForKey(reason = "") {
  byId("key-reason").textContent = reason;
  byId("key-forget").hidden = !storedKey();
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

function useKey(event) {
  event.preventDefault();
  storeKey(byId("key").value);
  refusedKey = null;
  forgetCatalogue();
  closeKey();
  showAgain();
}

function dropKey() {
  forgetKey();
  forgetCatalogue();
  closeKey();
  showAgain();
}

function closeKey() {
  byId("key-dialog").close();
}

byId("key-button").addEventListener("click", () => askForKey());
byId("key-form").addEventListener("submit", useKey);
byId("key-forget").addEventListener("click", dropKey);
byId("key-cancel").addEventListener("click", closeKey);
byId("key-dialog").addEventListener("close", () => (byId("key").value = ""));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address within the page names the view
  byId("main").focus();
});
byId("drawer").addEventListener("close", () => {
  looking.abort();
  history.replaceState(null, "", shown);
});
window.addEventListener("hashchange", () => {
  const before = shown;
  show();
  if (shown !== before) byId("main").focus();
});
show();
