"use strict";
// A request to try out, as a form or as JSON: spends model calls like any other.

// The request as text, for as long as the page is open. Nothing of it is sent but to be decided,
// and its questions to be looked at.
let tried = null;

async function tryOut(region, { as, project }, signal) {
  await knowProjects(signal);
  if (signal.aborted) return;
  const text = tried ?? exampleFor(project);
  const asForm = as !== "json" && fitsForm(text);
  const found = el("div", { "aria-live": "polite" });
  const lint = linting(
    {
      get value() {
        return tried;
      },
    },
    found,
    signal,
  );
  const changed = (now) => {
    tried = now;
    lint();
  };
  const looked = tried !== null;
  tried = text;
  if (looked) lint();
  const copied = el("div", { class: "note copied", role: "status" });
  const url = `${location.origin}${BASE}v1/decide`;
  const line = () => curlLine(url, tried, storedKey() !== null);
  const answered = el("div", { "aria-live": "polite" });
  const send = el("button", { type: "submit", class: "primary" }, "Decide");
  const submitted = (event) => {
    event.preventDefault();
    decideWith(tried, send, answered, signal);
  };
  const onward = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  };
  const form = el(
    "form",
    { class: "card", submit: submitted, keydown: onward },
    ways(asForm, as, text, project),
    asForm ? requestForm(text, changed) : jsonBox(text, changed),
    el(
      "div",
      { class: "actions" },
      send,
      el("button", { type: "button", click: () => copy(line(), copied) }, "Copy as curl"),
      el("span", { class: "note" }, "Decide, or Ctrl+Enter, calls the model."),
    ),
    copied,
    found,
  );
  region.replaceChildren(form, answered);
}

function exampleFor(project) {
  const example = byId("example").textContent.trim();
  return project ? JSON.stringify({ ...JSON.parse(example), project }, null, 2) : example;
}

/** Links to the other way to write a request. */
function ways(asForm, as, text, project) {
  const way = (name, query, current) =>
    el(
      "a",
      { href: address("try", { project, ...query }), "aria-current": current && "true" },
      name,
    );
  const lost = as !== "json" && !asForm;
  return [
    el(
      "nav",
      { class: "ways", "aria-label": "Ways to write a request" },
      way("Form", {}, asForm),
      way("JSON", { as: "json" }, !asForm),
    ),
    lost && el("p", { class: "note" }, "This request has what the form has no fields for."),
  ];
}

function jsonBox(text, changed) {
  const box = el("textarea", {
    id: "request",
    spellcheck: "false",
    input: () => changed(box.value),
  });
  box.value = text;
  box.rows = text.split("\n").length; // where the style's height to content is not known
  const label = "Request: state, questions, and any other field of POST /v1/decide, as JSON";
  return [el("label", { for: "request" }, label), box];
}

async function decideWith(text, send, answered, signal) {
  if (send.ariaDisabled) return; // one at a time
  const wrong = syntaxError(text);
  if (wrong) {
    answered.replaceChildren(problem(wrong));
    return;
  }
  send.ariaDisabled = "true"; // keeps the focus, which `disabled` would lose
  answered.replaceChildren();
  const { questions } = JSON.parse(text) ?? {};
  const ask = async () => decided(await postJson("v1/decide", text, signal), questions, signal);
  await load(answered, signal, ask, () => send.click()); // with what the box holds by then
  send.ariaDisabled = null;
}

/** Found here, so that it says where; the text is sent as it was typed. */
function syntaxError(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return new Problem(422, `This is not JSON: ${error.message}`);
  }
}

function decided(decision, questions, signal) {
  const answers = Object.entries(decision.answers).map(([key, answer]) => {
    const wording = wordingInRequest(questions, key);
    const about = { id: decision.id, key, answer, wording };
    return answerPart(key, answer, wording, wasItRight(about, signal));
  });
  const link = address("try", { ...placeOf(location.hash).params, decision: decision.id });
  const how = [
    ["Decision", el("a", { class: "link", href: link }, decision.id)],
    ["Project", decision.project],
    ["Model", decision.model],
    ["Mode", decision.mode],
    ["Latency", decision.cached ? "from the cache" : milliseconds(decision.latency_ms)],
    ["Cost", dollars(decision.cost_usd)],
  ];
  const raw = el("pre", { tabindex: "0" }, JSON.stringify(decision, null, 2));
  return [
    card(
      "Answers",
      facted(how),
      answers,
      el("details", {}, el("summary", {}, "Response as JSON"), raw),
    ),
  ];
}

/** A question as it was asked: a choice may be answered that none fits, unless it says otherwise. */
function wordingInRequest(questions, key) {
  const asked = questions && Object.hasOwn(questions, key) ? questions[key] : null;
  return asked && { ...asked, escape: asked.escape ?? true };
}
