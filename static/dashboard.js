"use strict";
// The page as a whole: which view is shown, the key, and the question that two views are about.

const VIEWS = new Map([
  ["overview", { title: "Overview", show: overview }],
  ["decisions", { title: "Decisions", show: decisions }],
  ["label", { title: "Label", show: labelling }],
  ["calibration", { title: "Calibration", show: calibration }],
  ["drift", { title: "Drift", show: drift }],
  ["try", { title: "Try a question", show: tryOut }],
]);
const KEPT = ["project", "question"]; // parameters that go along from view to view
const RECENT = 25; // decisions whose questions are suggested

let leaving = new AbortController(); // aborted when the view is left

/** The address of a view within the page: `#/drift?question=team`. */
function address(view, params) {
  const filled = Object.entries(params).filter(([, value]) => value);
  return `#/${view}${filled.length ? "?" : ""}${new URLSearchParams(filled)}`;
}

/** Show a view; the same one once more is loaded again. */
function go(view, params) {
  const target = address(view, params);
  if (location.hash === target) show();
  else location.hash = target;
}

function show() {
  const [, name, query] = /^#\/(\w*)\??(.*)$/.exec(location.hash) ?? [null, "overview", ""];
  const view = VIEWS.has(name) ? name : "overview";
  const params = Object.fromEntries(new URLSearchParams(query));
  leaving.abort();
  leaving = new AbortController();
  byId("drawer").close();
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

/** A view about one question: its fields, and what `report` makes of the query they give. */
async function aboutQuestion(view, region, params, signal, report, fields = []) {
  const list = el("datalist", { id: "questions" });
  const typed = { list: "questions", placeholder: "the latest one", ...PLAIN };
  const input = el("input", { name: "question", value: params.question ?? "", ...typed });
  const changed = (event) => {
    input.value = ""; // another project has other questions
    suggest(list, questionsOf(event.target.value));
  };
  const place = el("div");
  const all = [projectField(params.project, changed), field("Question", input), fields, list];
  region.replaceChildren(
    toolbar((values) => go(view, values), all, "Show"),
    place,
  );
  await load(place, signal, async () => {
    const page = await auditPage({ project: params.project, limit: RECENT }, signal);
    suggest(list, questionsOf(page.project));
    const question = params.question || latestQuestion(page.entries);
    if (!question) return [empty("No questions yet", "A question appears here once it was asked.")];
    input.value = question;
    return report({ ...params, question });
  });
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
  forgetSeen();
  closeKey();
  show();
}

function dropKey() {
  forgetKey();
  forgetSeen();
  closeKey();
  show();
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
window.addEventListener("hashchange", () => {
  show();
  byId("main").focus();
});
show();
