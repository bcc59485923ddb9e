"use strict";
// What a server did since its start, out of its metrics.

const REFRESH_MS = 10_000;
const QUANTILES = [0.5, 0.95, 0.99];
const PROVIDER_FAILURE = "502";
const STATUS_NAMES = new Map([
  ["400", "not valid JSON"],
  ["401", "no accepted key"],
  ["403", "not allowed"],
  ["404", "not found"],
  ["405", "wrong method"],
  ["408", "body too slow"],
  ["413", "body too large"],
  ["415", "unknown encoding"],
  ["422", "not a valid request"],
  ["429", "rate or quota spent"],
  ["500", "server error"],
  [PROVIDER_FAILURE, "provider failure"],
  ["504", "out of time"],
]);
const SAMPLE = /^(\w+)(?:\{(\w+)="([^"]*)"\})? (\S+)$/gm;

/** What the server says of itself, read again and again; `region` is for this alone. */
async function sinceStart(region, signal) {
  let earlier = null;
  const read = async () => {
    const now = { at: Date.now(), metrics: parseMetrics(await getText("metrics", signal)) };
    const perMinute = rate(earlier, now);
    earlier = now;
    return serverParts(now, perMinute);
  };
  // A server that does not answer is asked again by a person only.
  const repeat = async () => {
    while (await load(region, signal, read, repeat)) await pause(REFRESH_MS, signal);
  };
  await repeat();
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const tick = () => (document.hidden ? setTimeout(tick, ms) : resolve());
    const timer = setTimeout(tick, ms);
    signal.addEventListener("abort", () => clearTimeout(timer));
  });
}

/** Samples by name; those with a label as a map from its value. */
function parseMetrics(text) {
  const samples = new Map();
  for (const [, name, label, labelled, number] of text.matchAll(SAMPLE)) {
    if (!label) samples.set(name, Number(number));
    else samples.set(name, (samples.get(name) ?? new Map()).set(labelled, Number(number)));
  }
  return samples;
}

/** Decisions a minute between two readings; nothing when the server was started in between. */
function rate(earlier, now) {
  const count = (reading) => reading.metrics.get("svc_decisions_total");
  if (!earlier || count(now) < count(earlier)) return null;
  return ((count(now) - count(earlier)) / (now.at - earlier.at)) * 60_000;
}

function serverParts({ at, metrics }, perMinute) {
  const buckets = bucketsOf(metrics.get("svc_decide_duration_seconds_bucket") ?? new Map());
  const statuses = metrics.get("svc_http_responses_total") ?? new Map();
  return [
    el("h2", {}, "This server, since its start"),
    totals(metrics, statuses, perMinute),
    el("div", { class: "columns" }, latency(metrics, buckets), refusals(statuses)),
    el("p", { class: "note" }, `Read at ${time(at)}, again every ${REFRESH_MS / 1000} s.`),
  ];
}

function totals(metrics, statuses, perMinute) {
  const now = perMinute === null ? null : `${whole(Math.round(perMinute))} a minute now`;
  return figures(
    figure("Decisions here", whole(metrics.get("svc_decisions_total")), now),
    failures(statuses),
    quotaFigure(metrics.get("svc_daily_quota_remaining")),
  );
}

/** What did not go well, by whose doing it was: a provider's, this server's, or the caller's. */
function failures(statuses) {
  const kind = (name, is) => {
    const count = sum([...statuses].filter(([status]) => is(status)).map(([, number]) => number));
    return figure(name, whole(count), counted(count, "response"));
  };
  return [
    kind("Provider failures", (status) => status === PROVIDER_FAILURE),
    kind("Server errors", (status) => status >= "500" && status !== PROVIDER_FAILURE),
    kind("Refused requests", (status) => status >= "400" && status < "500"),
  ];
}

function quotaFigure(left) {
  return left === undefined
    ? figure("Daily quota", "none", "SVC_DAILY_LIMIT is not set")
    : figure("Quota left today", whole(left), "calls to the aggregator");
}

function sum(numbers) {
  return [...numbers].reduce((total, number) => total + number, 0);
}

/** `{from, to, count}` of each bucket in seconds, out of Prometheus' running sums. */
function bucketsOf(cumulative) {
  let [from, below] = [0, 0];
  return [...cumulative].map(([bound, upTo]) => {
    const to = bound === "+Inf" ? Infinity : Number(bound);
    const bucket = { from, to, count: upTo - below };
    [from, below] = [to, upTo];
    return bucket;
  });
}

/** The value below which the share `q` lies, even within its bucket, as Prometheus estimates it. */
function quantile(buckets, q) {
  const total = sum(buckets.map((bucket) => bucket.count));
  let rank = q * total;
  for (const { from, to, count } of buckets) {
    if (count > 0 && rank <= count)
      return to === Infinity ? from : from + (to - from) * (rank / count);
    rank -= count;
  }
  return null;
}

function latency(metrics, buckets) {
  const count = metrics.get("svc_decide_duration_seconds_count");
  const mean = metrics.get("svc_decide_duration_seconds_sum") / count;
  if (!count) return card("Latency of decisions", empty("No decisions yet", "Ask one under Try."));
  const quantiles = QUANTILES.map((q) => figure(`p${q * 100}`, seconds(quantile(buckets, q))));
  return card(
    "Latency of decisions",
    figures(quantiles, figure("Mean", seconds(mean))),
    bars("Decisions by duration", histogramRows(buckets, count)),
  );
}

/** Bars of the buckets, without the empty ones at both ends. */
function histogramRows(buckets, total) {
  const first = buckets.findIndex((bucket) => bucket.count > 0);
  const last = buckets.findLastIndex((bucket) => bucket.count > 0);
  return buckets.slice(first, last + 1).map(({ from, to, count }) => ({
    label: to === Infinity ? `over ${seconds(from)}` : `up to ${seconds(to)}`,
    share: count / total,
    text: whole(count),
  }));
}

/** Those that were not answered; the others are mostly this page's own reading. */
function refusals(statuses) {
  const sent = [...statuses].filter(([status, count]) => count > 0 && status >= "400").sort();
  const total = sum(sent.map(([, count]) => count));
  const rows = sent.map(([status, count]) => ({
    label: [status, STATUS_NAMES.get(status)].filter(isThere).join(" "),
    share: count / total,
    text: whole(count),
  }));
  if (!rows.length) return card("Requests without an answer", empty("None since the start"));
  return card("Requests without an answer", bars("Responses by status", rows));
}
