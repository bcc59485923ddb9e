"use strict";
// Which projects and questions there are, and the words of the questions.

let projectList = null; // of `GET /v1/projects`; null until it came, or where it did not
const questionLists = new Map(); // by project, of `GET /v1/questions`

/** Read which projects there are. Without the list a name is typed; the view says what is wrong. */
async function knowProjects(signal) {
  projectList = (await listed("v1/projects", {}, signal))?.projects ?? null;
  suggest(
    byId("projects"),
    (projectList ?? []).map(({ project }) => project),
  );
}

/** Read which questions a project has, in their newest wording. */
async function knowQuestions(project, signal) {
  const found = await listed("v1/questions", { project }, signal);
  if (!found) return;
  questionLists.set(found.project, found.questions);
  if (!project) questionLists.set("", found.questions);
}

/** A list that is whole; null where it cannot be read now, or has further pages. */
async function listed(path, query, signal) {
  try {
    const list = await getJson(path, query, signal);
    return list.next_after === null ? list : null;
  } catch {
    return null;
  }
}

/** The entries of a project's questions; where none is named, the server takes its default. */
function questionEntries(project) {
  return questionLists.get(project || "") ?? [];
}

function questionsOf(project) {
  return questionEntries(project).map(({ question }) => question);
}

/** The newest wording of a question; null where it is not known. */
function wordingOf(project, key) {
  return questionEntries(project).find(({ question }) => question === key)?.wording ?? null;
}

/** The same for an entry of the audit log, where it was asked just so; null for any other wording. */
function wordingAsked({ project, answers, wording_ids: asked }, key) {
  const keys = Object.keys(answers);
  // JavaScript puts names that are whole numbers first, so that nobody knows which of `asked` is whose.
  if (keys.some((name) => /^\d+$/.test(name))) return null;
  const newest = questionEntries(project).find(({ question }) => question === key);
  return newest?.wording_id === asked[keys.indexOf(key)] ? newest.wording : null;
}

/** Another key may see other projects. */
function forgetCatalogue() {
  projectList = null;
  questionLists.clear();
  byId("projects").replaceChildren();
}

function suggest(list, values) {
  const label = (value) => (visible(value) === value ? null : visible(value));
  list.replaceChildren(...values.map((value) => el("option", { value, label: label(value) })));
}

/** The question that was asked last. */
function latestQuestion(project) {
  const entries = questionEntries(project).filter(({ decisions }) => decisions > 0);
  const sorted = entries.toSorted((a, b) => (b.last_seen ?? 0) - (a.last_seen ?? 0));
  return sorted[0]?.question;
}

/** The field for a project: a choice of those there are, or a name to type. */
function projectField(value, change) {
  if (!projectList) {
    const typed = { list: "projects", placeholder: "default", change, ...PLAIN };
    return field("Project", el("input", { name: "project", value: value ?? "", ...typed }));
  }
  const names = projectList.filter(({ project }) => project !== "default");
  const choices = names.map(({ project, decisions }) => [
    project,
    `${project} (${counted(decisions, "decision")})`,
  ]);
  return choiceField("Project", "project", value, [["", "default"], ...choices], change);
}

/** The field for a question of a project; `none` is what stands for no choice. */
function questionField(project, value, none) {
  const entries = questionEntries(project);
  if (!entries.length) {
    const typed = { placeholder: none, ...PLAIN };
    return field("Question", el("input", { name: "question", value: value ?? "", ...typed }));
  }
  const choices = entries.map(({ question, type }) => [question, `${question} (${type})`]);
  return choiceField("Question", "question", value, [["", none], ...choices]);
}

/** A field with choices; one that is not among them is kept, since its name was in the address. */
function choiceField(label, name, value, choices, change) {
  const listed = choices.some(([one]) => one === (value ?? ""));
  const all = listed ? choices : [...choices, [value, value]];
  const options = all.map(([one, text]) =>
    el("option", { value: one, selected: one === (value ?? "") }, text),
  );
  return field(label, el("select", { name, change: change ?? null }, options));
}
