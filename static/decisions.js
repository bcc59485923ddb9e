"use strict";
// The audit log, 25 decisions a page, filtered, and exported.

const PAGE = 25;
const SUMMED_UP = 3; // answers shown in a row
const FILTERS = ["project", "question", "answer", "labelled", "ref", "max_confidence"];

async function decisions(region, params, signal) {
  await Promise.all([knowProjects(signal), knowQuestions(params.project, signal)]);
  if (signal.aborted) return;
  const query = Object.fromEntries(FILTERS.map((name) => [name, params[name]]));
  const trail = [""]; // the `before` of each page from the newest one to that shown
  const place = el("div");
  const turn = async () => {
    await load(place, signal, async () => {
      const page = { ...query, limit: PAGE, before: trail.at(-1) };
      return decisionsPage(await getJson("v1/audit", page, signal), trail, turn, params);
    });
    window.scrollTo(0, 0);
  };
  const bar = toolbar((values) => go("decisions", values), filterFields(params), "Show");
  bar.append(exportButton(query, signal));
  region.replaceChildren(bar, place);
  await turn();
}

function filterFields(params) {
  const { project, question, answer, labelled, ref, max_confidence: most } = params;
  const typed = (label, name, value, more) =>
    field(label, el("input", { name, value: value ?? "", ...PLAIN, ...more }));
  const given = [
    ["", "any"],
    ["true", "with a label"],
    ["false", "without a label"],
  ];
  const further = el(
    "details",
    { class: "further", open: Boolean(answer || ref || most) },
    el("summary", {}, "More filters"),
    el(
      "div",
      { class: "toolbar" },
      typed("Answer to the question", "answer", answer),
      typed("Confidence up to", "max_confidence", most, { inputmode: "decimal" }),
      typed("Ref", "ref", ref),
    ),
  );
  return [
    projectField(project, (event) => go("decisions", { project: event.target.value })),
    questionField(project, question, "any"),
    choiceField("Labels", "labelled", labelled, given),
    further,
  ];
}

function decisionsPage(page, trail, turn, params) {
  const older = () => {
    trail.push(page.next_before);
    turn();
  };
  const newer = () => {
    trail.pop();
    turn();
  };
  const { project, entries } = page;
  neighbours = entries.map(({ id }) => id);
  if (!entries.length && trail.length === 1 && page.next_before === null) {
    return [nothingDecided(project, params)];
  }
  const columns = ["Time", "Decision", "Answers", "Model", "#Latency", "#Cost"];
  const rows = entries.map((entry) => decisionRow(entry, params));
  return [
    entries.length > 0
      ? el(
          "div",
          { class: "listed" },
          table(`Decisions of ${project}, newest first`, columns, rows),
        )
      : empty("None among those looked at", "Older ones may fit."),
    el(
      "nav",
      { class: "actions", "aria-label": "Pages" },
      el("button", { type: "button", disabled: trail.length === 1, click: newer }, "Newer"),
      el("span", { class: "note", role: "status" }, `Page ${trail.length}`),
      el("button", { type: "button", disabled: page.next_before === null, click: older }, "Older"),
    ),
  ];
}

function nothingDecided(project, params) {
  const filtered = FILTERS.some((name) => name !== "project" && params[name]);
  return filtered
    ? empty(`No decisions of ${project} fit`, "Take a filter away, or look at another project.")
    : empty(`No decisions of ${project}`, "Ask a question under Try, or look at another project.");
}

function decisionRow(entry, params) {
  const { id, ref } = entry;
  const link = address("decisions", { ...params, decision: id });
  return [
    el("time", { datetime: new Date(entry.created_at).toISOString() }, time(entry.created_at)),
    el("a", { class: "link", href: link }, ref ?? id),
    summary(entry),
    entry.model,
    entry.cached ? badge("cached") : milliseconds(entry.latency_ms),
    dollars(entry.cost_usd),
  ];
}

function summary(entry) {
  const all = Object.entries(entry.answers);
  const shown = all
    .slice(0, SUMMED_UP)
    .map(([key, answer]) =>
      el(
        "li",
        {},
        el("span", { class: "note" }, key, ": "),
        inWords(answer, wordingAsked(entry, key)),
      ),
    );
  const more =
    all.length > SUMMED_UP && el("li", { class: "note" }, `${all.length - SUMMED_UP} more`);
  return el("ul", { class: "summary" }, shown, more);
}
