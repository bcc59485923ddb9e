"use strict";
// How true a question's probabilities are: a reliability diagram, and from where on to automate.

const HELD_OUT =
  "“After” is measured on held-out folds: each label is judged by a fit that has not seen it, " +
  "so it is not the very calibrator in effect.";
const AUTOMATED_FROM = 0.9; // the confidence that the report's shares of automated answers are at

async function calibration(region, params, signal) {
  await aboutQuestion("calibration", region, params, signal, async (query, wording) => {
    const report = await getJson("v1/calibration", query, signal);
    // Rates are told of questions with options alone.
    const rates = report.options.length > 0 && (await getJson("v1/rates", query, signal));
    return calibrationOf(report, rates, wording);
  });
}

function calibrationOf(report, rates, wording) {
  const labels = `a calibrator takes ${report.min_labels}`;
  const head = figures(
    figure("Labels", whole(report.labels), labels),
    figure("Calibrator", report.calibrator?.kind ?? "none", parameters(report.calibrator)),
    figure("Type", report.type),
  );
  if (!report.labels) {
    return [head, empty("No labels yet", "POST /v1/feedback takes true answers; each is a label.")];
  }
  return [
    head,
    report.changed_at && says(["changed", "warn"], changed(report)),
    el("div", { class: "columns" }, diagram(report), scoresCard(report)),
    thresholds(report.thresholds),
    report.models.length > 1 && models(report.models),
    report.options.length > 0 && options(report.options, wording),
    rates && ratesCard(rates, wording),
    report.sampling.meaning && sampled(report.sampling),
  ];
}

function sampled({ meaning, test }) {
  return test?.differs ? says(["picked", "warn"], meaning) : el("p", { class: "note" }, meaning);
}

function changed({ changed_at: at, labels_since_change: since }) {
  const said = `The answers changed on ${time(at)}; labels of answers from before count little.`;
  return since === null ? said : `${said} The figures below are of the ${whole(since)} since then.`;
}

function parameters(calibrator) {
  if (!calibrator) return "raw probabilities are shown to callers";
  const named = ["t", "a", "b"].filter((name) => name in calibrator);
  const values = named.map((name) => `${name} = ${decimal(calibrator[name])}`);
  return [...values, ...(calibrator.bias ? ["a bias for each option"] : [])].join(", ");
}

function diagram({ type, before, after }) {
  const series = [
    { kind: "before", name: "Before", bins: before.bins },
    { kind: "after", name: "After", bins: after.bins },
  ];
  const label =
    `Reliability diagram: accuracy over confidence. Calibration error before ` +
    `${decimal(before.ece)}, after ${decimal(after.ece)}.`;
  return card(
    "Reliability",
    legend([
      ["before", "Before: raw"],
      ["after", "After: calibrated, held out"],
    ]),
    chart(label, reliability(series)),
    asTable("The diagram as a table", binsTable(series)),
    el(
      "p",
      { class: "note" },
      "On the dashed line 80% sure is right 80% of the time. Larger points have more labels.",
    ),
    el("p", { class: "note" }, TYPES[type]?.calibrates ? HELD_OUT : notCalibrated(type)),
  );
}

/** The points of the diagram, by their range of confidence. */
function binsTable(series) {
  const rows = series.flatMap(({ name, bins }) =>
    bins
      .filter((bin) => bin.count > 0)
      .map((bin) => [name, percent(bin.confidence), percent(bin.accuracy), whole(bin.count)]),
  );
  const columns = ["Probabilities", "#Confidence", "#Accuracy", "#Labels"];
  return table("Mean confidence and accuracy of each point", columns, rows);
}

function notCalibrated(type) {
  return `A ${type} has no calibrator: after is the same as before.`;
}

const FALLEN =
  "A calibrator is taken up where it makes probabilities truer, not to have more answers right. " +
  "Where it has a bias for each option, or moves the line between yes and no, answers that were " +
  "nearly even turn, and some of them had been right. “After” is also measured with fits on half " +
  "of the labels, which are less exact than the calibrator in effect.";

/** Why accuracy fell, although probabilities became truer; nothing where it did not. */
function fallen(before, after) {
  if (after === null || after >= before) return null;
  return el("p", { class: "note" }, `Why accuracy fell by ${percent(before - after)}: `, FALLEN);
}

function scoresCard({ before, after }) {
  const at = `at ${AUTOMATED_FROM * 100}%`;
  const rows = [
    ["Accuracy", "accuracy", percent],
    ["Calibration error (ECE)", "ece", decimal],
    ["Brier score", "brier", decimal],
    [`Automated ${at}`, "automated", percent],
    [`Accuracy when automated ${at}`, "accuracy_when_automated", percent],
  ].map(([name, key, format]) => [name, format(before[key]), format(after[key])]);
  return card(
    "Scores",
    table("Before and after calibration", ["Score", "#Before", "#After"], rows),
    fallen(before.accuracy, after.accuracy),
  );
}

function thresholds(list) {
  const rows = list.map((one) => [
    `at least ${percent(one.target)}`,
    one.min_confidence === null ? NOTHING : String(one.min_confidence),
    percent(one.automated),
    stillNeeded(one),
    one.reason ?? "promised with 95% certainty, however often you look",
  ]);
  const columns = ["Accuracy", "#min_confidence", "#Automated", "#Labels still needed", "Why"];
  return card(
    "What may be automated",
    table("The lowest min_confidence for an accuracy", columns, rows),
  );
}

/** How many more labels a promise takes; nobody knows where answers are not right often enough. */
function stillNeeded({ min_confidence: promised, labels_needed: needed }) {
  if (promised !== null) return "none";
  return needed === null ? NOTHING : `about ${whole(needed)}`;
}

function models(list) {
  const rows = list.map(({ model, mode, labels, calibrator, own }) => [
    model,
    mode,
    whole(labels),
    calibrator ? parameters(calibrator) : "raw probabilities",
    calibrator && !own ? "of all labels" : NOTHING,
  ]);
  const columns = ["Model", "Mode", "#Labels", "Calibrator", "Shared"];
  return card("By answering model", table("Calibrators by answering model", columns, rows));
}

function options(list, wording) {
  const rows = list.map(({ option, labels, precision, recall, f1 }) => [
    topWords(option, wording),
    whole(labels),
    range(precision),
    range(recall),
    f1 === null ? NOTHING : decimal(f1),
  ]);
  const columns = ["Option", "#Labels", "#Precision", "#Recall", "#F1"];
  return card("By option", table("How each option does, with 95% intervals", columns, rows));
}

function range(interval) {
  if (interval === null) return NOTHING;
  return `${percent(interval.estimate)} (${percent(interval.low)} to ${percent(interval.high)})`;
}
