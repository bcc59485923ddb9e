"use strict";
// Faults in the wording of the questions in a box, beneath it; no model is asked for them.

const LINT_PAUSE_MS = 600;

/** What to call whenever the text of `box` has changed; the findings come after a pause. */
function linting(box, region, signal) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(() => showFindings(box.value, region, signal), LINT_PAUSE_MS);
  };
}

async function showFindings(text, region, signal) {
  if (signal.aborted || region.dataset.about === text) return;
  region.dataset.about = text;
  const found = await findings(text, signal);
  if (region.dataset.about !== text) return; // it was changed meanwhile
  region.replaceChildren(...(found.length ? [remarks(found)] : []));
}

/** Of a text that cannot be looked at there are none: deciding says what is wrong with it. */
async function findings(text, signal) {
  try {
    const { questions } = JSON.parse(text);
    return (await postJson("v1/lint", JSON.stringify({ questions }), signal)).findings;
  } catch {
    return [];
  }
}

function remarks(found) {
  const count = found.length === 1 ? "1 remark" : `${found.length} remarks`;
  return el(
    "details",
    { class: "findings note" },
    el("summary", {}, `${count} on the wording`),
    el("ul", {}, found.map(remark)),
  );
}

function remark({ question, where, what, why, instead }) {
  return el("li", {}, el("strong", {}, `${question}, ${where}: `), `${what}. ${why} ${instead}`);
}
