"use strict";
// Jobs of many rows: how far each is, why it waits, what it cost, and its results as a file.

const JOBS_SHOWN = 20;
const JOBS_REFRESH_MS = 5_000;
const JOB_COLUMNS = ["Job", "Status", "Rows", "#Failed", "#Cost", "Handed in", "End", "Actions"];

async function jobs(region, params, signal) {
  await knowProjects(signal);
  if (signal.aborted) return;
  const change = (event) => go("jobs", { project: event.target.value });
  const [place, said] = [el("div"), el("p", { class: "note", role: "status" })];
  region.replaceChildren(
    toolbar((values) => go("jobs", values), [projectField(params.project, change)], "Show"),
    said,
    place,
  );
  const doing = { signal, say: (text) => said.replaceChildren(visible(text)) };
  let held = "";
  const read = async () => {
    const page = await getJson("v1/batch", { ...params, limit: JOBS_SHOWN }, signal);
    held = place.contains(document.activeElement) ? document.activeElement.id : "";
    return jobsOf(page, params, doing);
  };
  // A server that does not answer is asked again by a person only.
  const repeat = async () => {
    while (await load(place, signal, read, repeat)) {
      // The list is a new one, and whoever was on a button of it stays there.
      if (held) byId(held)?.focus({ preventScroll: true });
      await pause(JOBS_REFRESH_MS, signal);
    }
  };
  await repeat();
}

function jobsOf({ jobs: list, next_before: before }, params, doing) {
  const project = params.project || "default";
  const newest = params.before && el("a", { href: address("jobs", { ...params, before: "" }) });
  newest?.append("Newest jobs");
  const older = before && el("a", { href: address("jobs", { ...params, before }) }, "Older jobs");
  if (!list.length) {
    return [empty(`No jobs of ${project}`, "The command svc batch submit hands in a file of many rows.")];
  }
  const rows = list.map((job) => jobCells(job, doing));
  const caption = `Jobs of ${project}, the newest first`;
  const pages = el("p", { class: "actions" }, newest, older);
  return [card("Jobs", table(caption, JOB_COLUMNS, rows), pages)];
}

function jobCells(job, doing) {
  return [
    el("code", {}, job.id),
    jobStatus(job),
    jobProgress(job),
    whole(job.failed),
    dollars(job.cost_usd),
    time(job.created_at),
    jobEnd(job),
    jobActions(job, doing),
  ];
}

/** The status in a word, and why it is so. */
function jobStatus({ status, failed, reason, waiting_for: waiting }) {
  const bad = failed > 0 || ["failed", "expired"].includes(status);
  const why = reason ?? (waiting && `waits for ${waiting}`);
  const kind = bad ? "warn" : status === "done" ? "good" : "";
  return el("div", {}, badge(status, kind), why && el("p", { class: "note" }, why));
}

function jobProgress({ id, rows, answered, failed }) {
  const settled = answered + failed;
  const label = `Rows of ${id} that have an answer or an error`;
  return el(
    "div",
    {},
    el("progress", { max: rows, value: settled, "aria-label": label }),
    el("p", { class: "note" }, `${whole(answered)} of ${whole(rows)} answered`),
  );
}

function isOpenJob({ status }) {
  return status === "waiting" || status === "running";
}

function jobEnd({ ended_at: ended, ends_at: estimate, ...job }) {
  if (!isOpenJob(job)) return orNothing(time)(ended);
  return estimate === null ? "not known yet" : `about ${time(estimate)}`;
}

function jobActions(job, doing) {
  const { id } = job;
  const button = (name, does, words) => {
    const click = () => attempt(words, () => does(job, doing), doing);
    const named = { id: `${name}-${id}`, "aria-label": `${name} ${id}` };
    return el("button", { type: "button", click, ...named }, name);
  };
  const buttons = [
    job.answered + job.failed > 0 && button("Results", saveResults, "fetched"),
    isOpenJob(job) && button("Cancel", cancelJob, "cancelled"),
  ];
  return buttons.some(Boolean) ? el("div", { class: "actions" }, buttons) : NOTHING;
}

/** Do something with a job, and say it where that failed. */
async function attempt(words, action, { say, signal }) {
  try {
    await action();
  } catch (error) {
    if (!signal.aborted) say(`Not ${words}. ${error.message}`);
  }
}

async function cancelJob({ id, rows, answered, failed }, { say, signal }) {
  const left = counted(rows - answered - failed, "row");
  if (!confirm(`Cancel ${id}? ${left} will not be asked. This cannot be undone.`)) return;
  await postJson(`v1/batch/${id}/cancel`, "", signal);
  say(`${id} is cancelled`);
  showAgain();
}

/** Have the browser save the results so far, which are read page by page. */
async function saveResults({ id }, { say, signal }) {
  const parts = [];
  let [after, next] = [null, "0"];
  // Where a job runs, its last page leads on to itself.
  while (next !== null && next !== after) {
    after = next;
    const path = `v1/batch/${id}/results?after=${after}`;
    const response = await send(path, {}, signal, READ_MS);
    parts.push(await response.text());
    next = response.headers.get("x-next-after");
    say(`${counted(parts.length, "page")} of results read`);
  }
  offer(new Blob(parts, { type: "application/x-ndjson" }), `${id}.jsonl`);
  say(`Results of ${id} saved`);
}
