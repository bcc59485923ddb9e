"use strict";
// Was an answer right? What a person says becomes a label.

/**
 * The part beneath an answer that takes its label; `given` is the label there is, if any. Whoever
 * looks at a decision here picked it, so the label says that it was not drawn.
 */
function wasItRight({ id, key, answer, wording, given }, signal) {
  if (!canBeLabelled(answer)) return null;
  const definition = fitting(wording, answer) ?? definitionOf(answer);
  const said = el("p", { class: "note", role: "status" }, given && labelled(definition, given));
  const place = el("div");
  const say = async (label) => {
    said.replaceChildren("Saving…");
    const told = await saved({ decision_id: id, question: key, label }, definition, signal);
    said.replaceChildren(visible(told));
    place.replaceChildren();
  };
  const right = () => {
    const label = labelOf(answer);
    return isExact(label) ? say(label) : said.replaceChildren(TOO_LONG);
  };
  const wrong = () => {
    const { display } = typeOf(answer);
    if (display === "yes_no") return say(!labelOf(answer));
    const { node, press } = answering(definition, undefined, say);
    node.addEventListener("keydown", (event) => {
      if (event.target.matches("button") && event.key !== "Enter") press(event.key);
    });
    place.replaceChildren(node);
    place.querySelector("button, input").focus();
  };
  return el(
    "div",
    { class: "right-or-not", role: "group", "aria-label": `Was the answer to ${key} right?` },
    el("span", {}, "Was it right?"),
    el("button", { type: "button", click: right }, "Yes"),
    el("button", { type: "button", click: wrong }, "No"),
    said,
    place,
  );
}

/** A model gave the answer, and it was kept. */
function canBeLabelled(answer) {
  const { field, display } = typeOf(answer);
  if (["skipped", "unknown"].includes(display) || answer.rule !== undefined) return false;
  return answer[field] !== REDACTED;
}

/** The answer itself as a label. */
function labelOf(answer) {
  const { field, display } = typeOf(answer);
  if (display === "level") return topLevel(answer);
  return display === "yes_no" ? answer[field] >= 0.5 : answer[field];
}

/** What an answer shows of its question, where nothing else is known of it. */
function definitionOf(answer) {
  const { name, display } = typeOf(answer);
  const keys = Object.keys(answer.probabilities ?? {});
  if (display === "level") return { type: name, levels: keys.map((level) => `Level ${level}`) };
  const options = keys.length && Object.fromEntries(keys.map((key) => [key, ""]));
  return { type: name || "text", ...(options && { options }), nullable: true };
}

async function saved(body, definition, signal) {
  try {
    const text = JSON.stringify({ ...body, sampled: "other" });
    const { labels, min_labels: least } = await postJson("v1/feedback", text, signal);
    const further = labels < least ? `; a calibrator takes ${least}` : "";
    const label = labelWords(definition, body.label);
    return `Saved: ${label}. The question has ${counted(labels, "label")}${further}.`;
  } catch (error) {
    return `Not saved. ${error.message}`;
  }
}

function labelled(definition, { label, created_at: at }) {
  const since = at === null ? "" : `, given on ${time(at)}`;
  return `Labelled: ${labelWords(definition, label)}${since}.`;
}
