"use strict";
// A request to try out: spends model calls like any other.

let tried = null; // what was typed, for as long as the page is open

async function tryOut(region, params, signal) {
  const box = el("textarea", {
    id: "request",
    spellcheck: "false",
    input: () => {
      tried = box.value;
      lint();
    },
  });
  box.value = tried ?? byId("example").textContent.trim();
  box.rows = box.value.split("\n").length; // where the style's height to content is not known
  const found = el("div", { "aria-live": "polite" });
  const lint = linting(box, found, signal);
  if (tried !== null) lint();
  const copied = el("div", { class: "note copied", role: "status" });
  const url = `${location.origin}${BASE}v1/decide`;
  const line = () => curlLine(url, box.value, storedKey() !== null);
  const toCopy = { type: "button", click: () => copy(line(), copied) };
  const answered = el("div", { "aria-live": "polite" });
  const send = el("button", { type: "submit", class: "primary" }, "Decide");
  const submitted = (event) => {
    event.preventDefault();
    decideWith(box.value, send, answered, signal);
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
  });
  region.replaceChildren(
    el(
      "form",
      { class: "card", submit: submitted },
      el(
        "label",
        { for: "request" },
        "Request: state, questions, and any other field of POST /v1/decide, as JSON",
      ),
      box,
      el(
        "div",
        { class: "actions" },
        send,
        el("button", toCopy, "Copy as curl"),
        el("span", { class: "note" }, "Decide, or Ctrl+Enter, calls the model."),
      ),
      copied,
      found,
    ),
    answered,
  );
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
  const ask = async () => decided(await postJson("v1/decide", text, signal));
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

function decided(decision) {
  const answers = Object.entries(decision.answers).map(([key, answer]) => answerPart(key, answer));
  const how = [
    ["Decision", el("code", {}, decision.id)],
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
