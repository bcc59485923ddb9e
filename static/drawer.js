"use strict";
// One decision in a drawer over the page, with an address of its own.

let neighbours = []; // ids of the decisions listed on the page, newest first
let looking = new AbortController(); // aborted when the drawer shows another decision, or none

/** Show a decision; `linkTo(id)` is the address of another one over the same view. */
async function openDecision(id, linkTo) {
  const drawer = byId("drawer");
  looking.abort();
  looking = new AbortController();
  const place = el("div", { class: "drawer-part" });
  const turning = el("nav", { class: "actions", "aria-label": "Neighbours" });
  const close = el("button", { type: "button", click: () => drawer.close() }, "Close");
  drawer.replaceChildren(
    el(
      "div",
      { class: "drawer-head" },
      el("h2", { id: "drawer-title", tabindex: "-1" }, id),
      close,
    ),
    turning,
    place,
  );
  if (!drawer.open) drawer.showModal();
  drawer.scrollTop = 0;
  byId("drawer-title").focus();
  await load(place, looking.signal, () => decisionParts(id, linkTo, turning, looking.signal));
}

async function decisionParts(id, linkTo, turning, signal) {
  const entry = await getJson(`v1/decisions/${encodeURIComponent(id)}`, {}, signal);
  const older = await olderThan(entry, signal);
  turning.replaceChildren(
    neighbour("Newer", newerThan(id), linkTo),
    neighbour("Older", older, linkTo),
  );
  const labels = new Map(entry.labels.map((given) => [given.question, given]));
  return [
    facted(decisionFacts(entry)),
    ...Object.entries(entry.answers).map(([key, answer]) => {
      const wording = entry.questions[key];
      const about = { id: entry.id, key, answer, wording, given: labels.get(key) };
      return answerPart(key, answer, wording, wasItRight(about, signal));
    }),
  ];
}

function neighbour(name, id, linkTo) {
  if (!id) return el("span", { class: "note" }, `No ${name.toLowerCase()} one here`);
  return el("a", { class: "button", href: linkTo(id) }, name);
}

/** Only the page knows what is newer than a decision: the log is read from the newest on. */
function newerThan(id) {
  return neighbours[neighbours.indexOf(id) - 1];
}

/** The next older one: of those listed, else of its project. It is listed from then on. */
async function olderThan({ id, project }, signal) {
  const at = neighbours.indexOf(id);
  if (at >= 0 && at < neighbours.length - 1) return neighbours[at + 1];
  const page = await getJson("v1/audit", { project, before: id, limit: 1 }, signal);
  const older = page.entries[0]?.id;
  neighbours = [...(at < 0 ? [id] : neighbours), ...(older ? [older] : [])];
  return older;
}

function decisionFacts(entry) {
  const {
    id,
    created_at,
    project,
    api_key,
    model,
    mode,
    config,
    privacy,
    latency_ms,
    cost_usd,
    cached,
    state_hash,
    images,
    answers,
    questions,
    wording_ids,
    labels,
    ref,
    tags,
    ...further
  } = entry;
  return [
    ["Time", time(created_at)],
    ["Project", project],
    ref !== null && ["Ref", ref],
    ...Object.entries(tags).map(([name, value]) => [`Tag ${name}`, value]),
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
  ].filter(Boolean);
}

// The name of a column in words.
function label(name) {
  return name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
}
