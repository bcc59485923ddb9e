"use strict";
// What can be suggested in a field: the projects and questions of the decisions listed so far.

const seen = new Map(); // by project: the keys of its questions, the latest first

/** A page of decisions; what it names is suggested from then on. */
async function auditPage(query, signal) {
  const page = await getJson("v1/audit", query, signal);
  if (page.entries.length) remember(page);
  return page;
}

function remember({ project, entries }) {
  const keys = entries.flatMap((entry) => Object.keys(entry.answers));
  seen.set(project, [...new Set([...keys, ...questionsOf(project)])]);
  suggest(byId("projects"), [...seen.keys()].sort());
}

/** The questions seen of a project; where none is named, the server takes `default`. */
function questionsOf(project) {
  return seen.get(project || "default") ?? [];
}

/** Another key may see other projects. */
function forgetSeen() {
  seen.clear();
  byId("projects").replaceChildren();
}

function suggest(list, values) {
  list.replaceChildren(...values.map((value) => el("option", { value })));
}

/** The first question in the latest of these decisions that was not skipped. */
function latestQuestion(entries) {
  const answered = entries.flatMap(({ answers }) =>
    Object.keys(answers).filter((key) => !answers[key].skipped),
  );
  return answered[0];
}
