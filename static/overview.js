"use strict";
// What was decided, what it cost and what went wrong, over time, out of the database.

const LASTS = [
  ["hour", "hour"],
  ["day", "day"],
  ["week", "week"],
  ["month", "30 days"],
  ["year", "year"],
];

async function overview(region, params, signal) {
  await knowProjects(signal);
  if (signal.aborted) return;
  const project = params.project || (projectList?.length === 1 ? projectList[0].project : "");
  const [place, spending, server] = [el("div"), el("div"), el("div")];
  const change = (event) => go("overview", { ...params, [event.target.name]: event.target.value });
  const last = params.last || "day";
  const fields = [
    wholeProjectField(project, change),
    choiceField("Over the last", "last", last, LASTS, change),
  ];
  region.replaceChildren(
    toolbar((values) => go("overview", values), fields, "Show"),
    place,
    spending,
    server,
  );
  await Promise.all([
    load(place, signal, () => activityParts(project, last, signal), showAgain),
    load(spending, signal, () => budgetParts(project, signal), showAgain),
    sinceStart(server, signal),
  ]);
}

/** The field for a project, or for all of them. */
function wholeProjectField(project, change) {
  if (!projectList) return projectField(project, change);
  const names = projectList.map((one) => [one.project, one.project]);
  return choiceField("Project", "project", project, [["", "all projects"], ...names], change);
}

async function activityParts(project, last, signal) {
  const read = (by) => getJson("v1/activity", { project, last, by }, signal);
  const kinds = project ? ["model", "question"] : ["project"];
  const [first, ...others] = await Promise.all(kinds.map(read));
  const all = sumsOf(first.steps);
  const heading = `${LASTS.find(([name]) => name === last)?.[1] ?? last}`;
  if (!all.decisions && !all.failed) {
    return [empty(`No decisions in the last ${heading}`, "Look further back, or ask under Try.")];
  }
  return [
    activityFigures(all),
    ...timeCharts(first, all),
    ...[first, ...others].map((report) => namesCard(report, last)),
    stepsTable(first),
  ];
}

function activityFigures(all) {
  const asked = all.decisions + all.failed;
  return figures(
    figure("Decisions", whole(all.decisions), `${whole(all.cached)} from the cache`),
    figure("Failed", whole(all.failed), `${percent(all.failed / asked)} of what was asked`),
    figure("Abstained", percent(all.abstained / all.answers), counted(all.abstained, "answer")),
    figure("Cost", sumOfDollars(all.cost_usd), each(all.cost_usd, all.decisions)),
    figure("Mean latency", milliseconds(all.latency_ms), "without those from the cache"),
  );
}

/** A sum of money: in whole dollars, in cents, or as small as it is. */
const sumOfDollars = orNothing((cost) => {
  if (cost === 0 || cost < 0.1) return cost === 0 ? "$0" : `$${trimmed(cost)}`;
  const digits = cost < 100 ? 2 : 0;
  const style = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `$${cost.toLocaleString("en", style)}`;
});

/** A share without more digits than it has. */
function shareText(share) {
  return `${trimmed(share * 100)}%`;
}

function each(cost, decisions) {
  return decisions ? `${sumOfDollars((cost / decisions) * 1000)} a thousand decisions` : null;
}

function timeCharts({ steps, span_s: span }, all) {
  const answered = ["series-0", "answered", (sums) => sums.decisions];
  const failed = ["series-bad", "failed", (sums) => sums.failed];
  const cost = ["series-0", "cost", (sums) => sums.cost_usd];
  const share = [
    "series-0",
    "abstained",
    (sums) => (sums.answers ? sums.abstained / sums.answers : 0),
  ];
  return [
    card(
      "Decisions",
      legend([
        ["series-0", "Answered"],
        ["series-bad", "Failed"],
      ]),
      chart("Decisions over time", overTime(steps, span, [answered, failed], whole)),
    ),
    el(
      "div",
      { class: "columns" },
      card(
        "Dollars",
        all.cost_usd > 0
          ? chart("Cost over time", overTime(steps, span, [cost], sumOfDollars))
          : empty("Nothing was charged"),
      ),
      card(
        "Abstained",
        all.abstained > 0
          ? chart("Share of abstentions over time", overTime(steps, span, [share], shareText))
          : empty("No answer abstained"),
      ),
    ),
  ];
}

const KINDS = { model: "Model", question: "Question", project: "Project" };

/** What there was of each project, of the models that answered together, or of each question. */
function namesCard({ by, names, project }, last) {
  const question = by === "question";
  const rows = names.map((one) => [
    nameCell(by, one.name, project, last),
    whole(one.decisions),
    question ? null : whole(one.failed),
    percent(one.abstained / one.answers),
    question ? null : sumOfDollars(one.cost_usd),
    question ? null : sumOfDollars(one.decisions ? (one.cost_usd / one.decisions) * 1000 : null),
    question ? null : milliseconds(one.latency_ms),
  ]);
  const all = [KINDS[by], "#Decisions", "#Failed", "#Abstained", "#Cost", "#Per 1,000", "#Latency"];
  const columns = all.filter((_, at) => !question || [0, 1, 3].includes(at));
  const title = `By ${by}`;
  const shown = rows.map((row) => row.filter((cell) => cell !== null));
  return card(title, table(`${KINDS[by]}s with the most decisions first`, columns, shown));
}

function nameCell(by, name, project, last) {
  if (by === "project")
    return el("a", { class: "link", href: address("overview", { project: name, last }) }, name);
  if (by === "model") return name.replaceAll(",", ", ");
  return el(
    "a",
    { class: "link", href: address("calibration", { project, question: name }) },
    name,
  );
}

/** The charts as a table, of the spans in which anything happened. */
function stepsTable({ steps, span_s: span }) {
  const rows = steps
    .filter((one) => one.decisions || one.failed)
    .toReversed()
    .map((one) => [
      startText(one.start, span),
      whole(one.decisions),
      whole(one.failed),
      percent(one.abstained / one.answers),
      sumOfDollars(one.cost_usd),
      milliseconds(one.latency_ms),
    ]);
  const columns = ["From", "#Decisions", "#Failed", "#Abstained", "#Cost", "#Latency"];
  return el(
    "div",
    { class: "card" },
    asTable(
      "The charts as a table",
      table("Newest first, without spans in which nothing happened", columns, rows),
    ),
  );
}
