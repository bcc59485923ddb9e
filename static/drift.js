"use strict";
// How a question's answers change over the weeks.

const SERIES = 6; // top answers with a colour of their own
const WEEKS = ["8", "26", "53"];

async function drift(region, params, signal) {
  await aboutQuestion(
    "drift",
    region,
    params,
    signal,
    async (query) => driftOf(await getJson("v1/drift", query, signal)),
    [weeksField(params.weeks)],
  );
}

function weeksField(chosen = WEEKS[0]) {
  const options = WEEKS.map((weeks) => el("option", { selected: weeks === chosen }, weeks));
  return field("Weeks", el("select", { name: "weeks" }, options));
}

function driftOf({ weeks }) {
  if (!weeks.length)
    return [empty("No decisions in these weeks", "Look at more weeks, or ask the question.")];
  const latest = weeks.at(-1);
  const mixed = weeks.some((week) => week.mix);
  return [
    verdict(latest),
    figures(
      figure("Weeks", whole(weeks.length), "with decisions"),
      figure(`Decisions in ${latest.week}`, whole(latest.decisions)),
      mixed && figure("Change of the mix", decimal(latest.mix_change), "drift above 0.2"),
      figure(
        "Change of confidence",
        signed(latest.confidence_change),
        "drift above 0.1 either way",
      ),
    ),
    mixed && mixCard(weeks),
    card(
      "Mean confidence",
      chart(
        `Mean raw confidence by week, latest ${percent(latest.confidence)}`,
        confidenceLine(weeks),
      ),
    ),
    weeksCard(weeks),
  ];
}

function verdict({ week, drift: drifts, confidence_change: change }) {
  const unknown = change === null || change === undefined;
  const text = unknown
    ? `${week} is the first week: there is nothing to compare with.`
    : `${week} ${drifts ? "drifts away from" : "is like"} the weeks before.`;
  const kind = unknown ? ["first week", ""] : drifts ? ["drift", "warn"] : ["no drift", "good"];
  return el("p", { class: "verdict", role: "status" }, badge(...kind), " ", text);
}

function mixCard(weeks) {
  const tops = topAnswers(weeks);
  const names = tops.map(([kind, name]) => [kind, name]);
  const label = `Share of each top answer by week: ${names.map(([, name]) => name).join(", ")}`;
  return card("Mix of answers", legend(names), chart(label, stacked(weeks, tops)));
}

/** The most frequent top answers as `[kind, name, share of a week]`; all others are one. */
function topAnswers(weeks) {
  const sums = new Map();
  for (const { mix } of weeks) {
    for (const [top, share] of Object.entries(mix)) sums.set(top, (sums.get(top) ?? 0) + share);
  }
  const sorted = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
  const [named, others] = [sorted.slice(0, SERIES), sorted.slice(SERIES)];
  const share = (top) => (week) => (Object.hasOwn(week.mix, top) ? week.mix[top] : 0);
  const series = named.map((top, at) => [`series-${at}`, top, share(top)]);
  const rest = (week) => others.reduce((sum, top) => sum + share(top)(week), 0);
  return others.length ? [...series, ["series-other", `${others.length} others`, rest]] : series;
}

function weeksCard(weeks) {
  const rows = weeks
    .toReversed()
    .map((week) => [
      week.week,
      whole(week.decisions),
      percent(week.confidence),
      week.mix ? mixText(week.mix) : NOTHING,
      week.drift ? badge("drift", "warn") : NOTHING,
    ]);
  return card(
    "Weeks",
    table("By week, newest first", ["Week", "#Decisions", "#Confidence", "Mix", "Drift"], rows),
  );
}

function mixText(mix) {
  const sorted = Object.entries(mix).sort(([, a], [, b]) => b - a);
  const shown = sorted
    .slice(0, SERIES)
    .map(([top, share]) => `${top} ${percent(share)}`)
    .join(", ");
  return sorted.length > SERIES ? `${shown}, …` : shown;
}
