"use strict";
// Labels by the keyboard: decisions of the review queue, with their texts out of a file that stays
// in this page.

let chosenFiles = null; // `{table, mapped}`, for as long as the page is open

function labelling(region, params, signal) {
  const questions = el("datalist", { id: "label-questions" });
  const changed = async (event) => {
    const found = await questionKeys(event.target.value, signal).catch(() => []);
    suggest(questions, found);
  };
  const files = el("div", { class: "label-files" }, columnFields(chosenFiles));
  const trouble = el("p", { class: "label-trouble", role: "alert" });
  const submitted = (event) => {
    event.preventDefault();
    if (!chosenFiles) return trouble.replaceChildren("Choose the file with the texts.");
    startLabelling(region, Object.fromEntries(new FormData(event.target)), signal);
  };
  const place = el("div");
  region.replaceChildren(
    el(
      "form",
      { class: "card", submit: submitted },
      aboutWhat(params, questions, changed),
      fileField(files, trouble),
      files,
      answerSwitch(params),
      trouble,
      el("div", {}, el("button", { type: "submit", class: "primary" }, "Start")),
    ),
    place,
  );
  load(place, signal, async () => {
    const { projects } = await getJson("v1/projects", {}, signal);
    suggest(byId("projects"), projects.map(({ project }) => project));
    if (projects.length) suggest(questions, await questionKeys(params.project, signal));
    return [];
  });
}

async function questionKeys(project, signal) {
  const { questions } = await getJson("v1/questions", { project }, signal);
  return questions.map(({ question }) => question);
}

function aboutWhat({ project, question, reviewer }, questions, changed) {
  const asked = { name: "question", value: question ?? "", list: questions.id, required: true };
  const named = { name: "reviewer", value: reviewer ?? "", maxlength: 64, required: true };
  return el(
    "div",
    { class: "toolbar" },
    projectField(project, changed),
    field("Question", el("input", { ...asked, ...PLAIN })),
    field("Your name", el("input", { ...named, ...PLAIN })),
    questions,
  );
}

/** The field for files; what they hold is shown in `files`, or why they are no use in `trouble`. */
function fileField(files, trouble) {
  const change = async (event) => {
    trouble.replaceChildren();
    chosenFiles = await chooseFiles(event.target.files).catch((error) => {
      trouble.replaceChildren(visible(wordsOf(error)));
      return null;
    });
    files.replaceChildren(...columnFields(chosenFiles));
  };
  const title = "The texts: CSV, JSON lines or lines of text; if they went through svc map, its output as well";
  const input = el("input", { type: "file", multiple: true, accept: FILE_KINDS, change });
  const promise = "Read in this page only. No text of it is sent to the server.";
  return el("div", {}, field(title, input), el("p", { class: "note" }, promise));
}

function answerSwitch({ shown }) {
  const input = el("input", { type: "checkbox", name: "shown", checked: shown === "1" });
  const words = "Show the model's answer before I label (people then tend to agree with it)";
  return el("label", { class: "label-check" }, input, words);
}

const FILE_KINDS = ".csv,.tsv,.txt,.jsonl,.ndjson,.json";

/** The table of the texts among these files, and what `svc map` wrote, if it is there. */
async function chooseFiles(list) {
  const tables = await Promise.all([...list].map(readTable));
  const [mapped, ...more] = tables.filter(isMapped);
  const [table, ...others] = tables.filter((one) => !isMapped(one));
  if (!table) throw new FileTrouble("Choose the file with the texts, the input of svc map.");
  if (more.length || others.length) {
    throw new FileTrouble("Choose one file with texts, and at most one that svc map wrote.");
  }
  checkFit(table, mapped);
  return { table, mapped };
}

function wordsOf(error) {
  if (error instanceof FileTrouble) return error.message;
  console.error(error);
  return "The file could not be read.";
}

/** Which columns hold refs and texts; what is obvious is chosen already. */
function columnFields(files) {
  if (!files) return [];
  const { table, mapped } = files;
  const count = counted(table.records.filter((one) => one !== undefined).length, "record");
  const joined = mapped ? `, joined by line with ${mapped.name}` : "";
  const naming = mapped ? [["", "the line's number"]] : [];
  return [
    el("p", { class: "note", role: "status" }, `${table.name}: ${count}${joined}.`),
    table.columns.length > 0 &&
      el(
        "div",
        { class: "toolbar" },
        columnField("Decisions go by", "naming", naming, table, NAME_COLUMNS, Boolean(mapped)),
        columnField("The text is in", "reading", [["", "the whole record"]], table, TEXT_COLUMNS),
      ),
  ].filter(Boolean);
}

function columnField(title, name, extra, { columns }, likelyNames, first = false) {
  const guess = first ? "" : likely(columns, likelyNames);
  const unsure = guess === undefined && [["", "choose a column", true]];
  const pairs = [...(unsure || []), ...extra, ...columns.map((column) => [column, column])];
  const options = pairs.map(([value, text, none]) =>
    el("option", { value, disabled: Boolean(none), selected: none || value === guess }, text),
  );
  return field(title, el("select", { name, required: !extra.length }, options));
}

/** Begin with the queue; the address keeps what was typed, for a page that is loaded again. */
function startLabelling(region, { project, question, reviewer, shown, naming, reading }, signal) {
  const params = { project, question, reviewer, shown: shown && "1" };
  history.replaceState(null, "", address("label", params));
  markLinks("label", params);
  const { table, mapped } = chosenFiles;
  const { texts, unsure } = textsOf(table, mapped, naming, reading);
  const answers = shown ? "shown" : "hidden";
  const query = { project, question, reviewer: reviewer.trim(), answers };
  new LabelSession(region, query, texts, unsure, signal, () => labelling(region, params, signal));
}
