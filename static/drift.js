"use strict";
// How a question's answers change over the weeks.

const SERIES = 6; // top answers with a colour of their own
const TESTED = {
  mix: "the mix",
  confidence: "confidence",
  slow_mix: "the mix of the last four weeks",
  slow_confidence: "confidence in the last four weeks",
};
const WEEKS = ["8", "26", "53"];

async function drift(region, params, signal) {
  await aboutQuestion(
    "drift",
    region,
    params,
    signal,
    async (query, wording) => driftOf(worded(await getJson("v1/drift", query, signal), wording)),
    [weeksField(params.weeks)],
  );
}

/** The report with its top answers in the words of the question. */
function worded(report, wording) {
  const weeks = report.weeks.map((week) => ({
    ...week,
    mix: week.mix && mixWords(week.mix, wording),
  }));
  return { ...report, weeks };
}

function mixWords(mix, wording) {
  return Object.fromEntries(
    Object.entries(mix).map(([top, share]) => [topWords(top, wording), share]),
  );
}

function weeksField(chosen = WEEKS[0]) {
  const options = WEEKS.map((weeks) => el("option", { selected: weeks === chosen }, weeks));
  return field("Weeks", el("select", { name: "weeks" }, options));
}

function driftOf({ weeks, test }) {
  if (!weeks.length)
    return [empty("No decisions in these weeks", "Look at more weeks, or ask the question.")];
  if (weeks.length === 1) return oneWeek(weeks[0]);
  const latest = weeks.at(-1);
  const mixed = weeks.some((week) => week.mix);
  return [
    verdict(latest, test),
    figures(
      figure("Weeks", whole(weeks.length), "with decisions"),
      figure(`Decisions in ${latest.week}`, whole(latest.decisions)),
      mixed && figure("Change of the mix", decimal(latest.mix_change), "much is above 0.2"),
      figure(
        "Change of confidence",
        signed(latest.confidence_change),
        "much is above 0.1 either way",
      ),
    ),
    mixed && mixCard(weeks),
    card(
      "Mean confidence",
      chart(
        `Mean raw confidence by week, latest ${percent(latest.confidence)}`,
        confidenceLine(weeks, test?.alarm),
      ),
    ),
    weeksCard(weeks, badge(...statusOf(latest, test))),
  ];
}

/** What is known without a week to compare with: no chart of a single point. */
function oneWeek({ week, decisions: count, confidence, mix }) {
  return [
    says(["one week"], `One week so far (${week}); drift needs two.`),
    figures(
      figure("Week", week),
      figure("Decisions", whole(count)),
      figure("Mean confidence", percent(confidence), "of the raw probabilities"),
    ),
    mix && card("Mix of answers", bars("Share of each top answer", mixRows(mix))),
  ];
}

function mixRows(mix) {
  const sorted = Object.entries(mix).sort(([, a], [, b]) => b - a);
  return sorted.map(([label, share]) => ({ label, share, text: percent(share) }));
}

/** The badge of the latest week: an alarm when chance alone would not do it, in 95% of years. */
function statusOf(latest, test) {
  if (test?.alarm) return ["drift", "warn"];
  return latest.drift ? ["not sure"] : ["no drift", "good"];
}

/** One verdict: where there are too few decisions to tell a change from chance, it says so. */
function verdict(latest, test) {
  const week = test && !test.finished ? `${latest.week}, so far,` : latest.week;
  const [kind, ...colour] = statusOf(latest, test);
  const texts = {
    drift: () => `${week} differs from the weeks before by more than chance: ${alarms(test)}.`,
    "not sure": () => `${week} is far from the weeks before, but chance alone can do that here.`,
    "no drift": () => `${week} is like the weeks before.`,
  };
  return says([kind, ...colour], texts[kind]());
}

function alarms({ week, alarm, finished, ...tests }) {
  const found = Object.entries(tests).filter(([, one]) => one?.alarm);
  return found.map(([name]) => TESTED[name]).join(", ");
}

function says(kind, text) {
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

/** The weeks as a table. Only the latest is compared with those before. */
function weeksCard(weeks, status) {
  const rows = weeks
    .toReversed()
    .map((week, at) => [
      [week.week, at === 0 && " ", at === 0 && status],
      whole(week.decisions),
      percent(week.confidence),
      week.mix ? mixText(week.mix) : NOTHING,
    ]);
  return card(
    "Weeks",
    table("By week, newest first", ["Week", "#Decisions", "#Confidence", "Mix"], rows),
  );
}

/** Every share, so that the chart shows no more than the table says; the small ones folded away. */
function mixText(mix) {
  const parts = mixRows(mix).map(({ label, text }) => `${label} ${text}`);
  const [shown, further] = [parts.slice(0, SERIES), parts.slice(SERIES)];
  if (!further.length) return shown.join(", ");
  return [
    shown.join(", "),
    el("details", {}, el("summary", {}, `${further.length} more`), further.join(", ")),
  ];
}
