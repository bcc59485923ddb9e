"use strict";
// Labels by the keyboard: decisions of the review queue, with their texts out of a file that stays
// in this page.

let chosenFiles = null; // `{table, mapped}`, for as long as the page is open

function labelling(region, params, signal) {
  const list = el("datalist", { id: "questions" });
  const asked = { list: "questions", required: true, ...PLAIN };
  const place = el("div");
  const files = el("div", { class: "label-files" });
  const trouble = el("p", { class: "label-trouble", role: "alert" });
  const chosen = async (event) => {
    trouble.replaceChildren();
    chosenFiles = await chooseFiles(event.target.files).catch((error) => {
      trouble.replaceChildren(wordsOf(error));
      return null;
    });
    files.replaceChildren(...columnFields(chosenFiles));
  };
  const suggested = (event) => suggest(list, questionsOf(event.target.value));
  const before = { type: "checkbox", name: "shown", checked: params.shown === "1" };
  const named = { name: "reviewer", required: true, maxlength: 64, value: params.reviewer ?? "" };
  const submitted = (event) => {
    event.preventDefault();
    if (!chosenFiles) return trouble.replaceChildren("Choose the file with the texts.");
    const values = Object.fromEntries(new FormData(event.target));
    startLabelling(region, values, signal);
  };
  region.replaceChildren(
    el(
      "form",
      { class: "card", submit: submitted },
      el(
        "div",
        { class: "toolbar" },
        projectField(params.project, suggested),
        field("Question", el("input", { name: "question", value: params.question ?? "", ...asked })),
        field("Your name", el("input", { ...named, ...PLAIN })),
        list,
      ),
      field(
        "The texts: CSV or JSON lines, and, where they went through svc map, its output too",
        el("input", { type: "file", multiple: true, accept: FILE_KINDS, change: chosen }),
      ),
      el("p", { class: "note" }, "Read in this page only. No text of it is sent to the server."),
      files,
      el(
        "label",
        { class: "label-check" },
        el("input", before),
        "Show the model's answer before I label (people then tend to agree with it)",
      ),
      trouble,
      el(
        "div",
        { class: "actions" },
        el("button", { type: "submit", class: "primary" }, "Start"),
      ),
    ),
    place,
  );
  files.replaceChildren(...columnFields(chosenFiles));
  load(place, signal, async () => {
    const page = await auditPage({ project: params.project, limit: RECENT }, signal);
    suggest(list, questionsOf(page.project));
    return [];
  });
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
