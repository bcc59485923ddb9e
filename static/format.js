"use strict";
// Numbers and times as people read them. What is not there is a dash.

const NOTHING = "–";
const WHOLE = new Intl.NumberFormat("en");
const PERCENT = new Intl.NumberFormat("en", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});

function orNothing(format) {
  return (value) =>
    value === null || value === undefined || Number.isNaN(value) ? NOTHING : format(value);
}

const whole = orNothing((number) => WHOLE.format(number));
const percent = orNothing((share) => PERCENT.format(share));
const decimal = orNothing((number) => number.toFixed(3));
const signed = orNothing((number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(3));
const milliseconds = orNothing((ms) =>
  ms < 1000 ? `${trimmed(ms)} ms` : `${trimmed(ms / 1000)} s`,
);
const seconds = orNothing((s) => milliseconds(s * 1000));
const dollars = orNothing((cost) => (cost === 0 ? "$0" : `$${cost.toPrecision(3)}`));

/** "1 answer", "2 answers". */
function counted(number, word) {
  return `${whole(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** At most three significant digits, without zeros at the end. */
function trimmed(number) {
  return String(Number(number.toPrecision(3)));
}

const TOO_LONG =
  "A browser does not keep all digits of this number. Label it with svc feedback or svc label.";

/** Whether the page holds all digits of a number; other values it always holds. */
function isExact(value) {
  return typeof value !== "number" || Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

/** Local time of unix milliseconds, in the order that sorts. */
function time(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}`;
}

/** A value of data as text: strings as they are, all else as JSON. */
function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
