"use strict";
// The audit log, 25 decisions a page, and one decision in a drawer.

const PAGE = 25;
const SUMMED_UP = 3; // answers shown in a row

async function decisions(region, { project }, signal) {
  const trail = [""]; // the `before` of each page from the newest one to that shown
  const place = el("div");
  const turn = async () => {
    await load(place, signal, async () => {
      const query = { project, limit: PAGE, before: trail.at(-1) };
      return decisionsPage(await auditPage(query, signal), trail, turn);
    });
    window.scrollTo(0, 0);
  };
  const filter = toolbar(
    ({ project }) => go("decisions", { project }),
    [projectField(project)],
    "Show",
  );
  region.replaceChildren(filter, place);
  await turn();
}

function decisionsPage(page, trail, turn) {
  const older = () => {
    trail.push(page.next_before);
    turn();
  };
  const newer = () => {
    trail.pop();
    turn();
  };
  if (!page.entries.length) return [nothingDecided(page.project)];
  const columns = ["Time", "Decision", "Answers", "Model", "#Latency", "#Cost"];
  return [
    el(
      "div",
      { class: "listed" },
      table(`Decisions of ${page.project}, newest first`, columns, page.entries.map(decisionRow)),
    ),
    el(
      "nav",
      { class: "actions", "aria-label": "Pages" },
      el("button", { type: "button", disabled: trail.length === 1, click: newer }, "Newer"),
      el("span", { class: "note", role: "status" }, `Page ${trail.length}`),
      el("button", { type: "button", disabled: page.next_before === null, click: older }, "Older"),
    ),
  ];
}

function nothingDecided(project) {
  return empty(
    `No decisions of ${project}`,
    "Ask a question under Try, or look at another project.",
  );
}

function decisionRow(entry) {
  const open = () => openDecision(entry);
  return [
    el("time", { datetime: new Date(entry.created_at).toISOString() }, time(entry.created_at)),
    el("button", { type: "button", class: "link", click: open }, entry.id),
    summary(entry.answers),
    entry.model,
    entry.cached ? badge("cached") : milliseconds(entry.latency_ms),
    dollars(entry.cost_usd),
  ];
}

function summary(answers) {
  const all = Object.entries(answers);
  const shown = all
    .slice(0, SUMMED_UP)
    .map(([key, answer]) =>
      el("li", {}, el("span", { class: "note" }, key, ": "), inWords(answer)),
    );
  const more =
    all.length > SUMMED_UP && el("li", { class: "note" }, `${all.length - SUMMED_UP} more`);
  return el("ul", { class: "summary" }, shown, more);
}

function openDecision(entry) {
  const drawer = byId("drawer");
  const close = el("button", { type: "button", click: () => drawer.close() }, "Close");
  drawer.replaceChildren(
    el("header", {}, el("h2", { id: "drawer-title", tabindex: "-1" }, entry.id), close),
    facted(decisionFacts(entry)),
    ...Object.entries(entry.answers).map(([key, answer]) => answerPart(key, answer)),
  );
  drawer.showModal();
  drawer.scrollTop = 0;
  byId("drawer-title").focus();
}

function decisionFacts(entry) {
  const { id, created_at, project, api_key, model, mode, config, privacy, latency_ms, cost_usd,
    cached, state_hash, images, answers, ...further } = entry;
  return [
    ["Time", time(created_at)],
    ["Project", project],
    ["API key", api_key ?? "none"],
    ["Model", model],
    ["Mode", mode],
    ["Config", config],
    ["Privacy", privacy],
    ["Latency", cached ? "from the cache" : milliseconds(latency_ms)],
    ["Cost", dollars(cost_usd)],
    ["State hash", el("code", {}, state_hash)],
    ...(images ?? []).map((hash) => ["Image hash", el("code", {}, hash)]),
    ...Object.entries(further).map(([name, value]) => [label(name), String(value ?? "none")]),
  ];
}

// The name of a column in words.
function label(name) {
  return name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
}
