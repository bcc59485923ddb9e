"use strict";
// A file of the reviewer's, read in this page: its records, and their texts by what decisions are
// called. Nothing of it is sent or stored anywhere.

// What the end of a name says, as it does to `svc map`; otherwise the first line tells.
const READERS = [
  [/\.csv$/i, csvTable],
  [/\.tsv$/i, (text, name) => csvTable(text, name, ["\t"])],
  [/\.txt$/i, textTable],
  [/\.(jsonl|ndjson|json)$/i, jsonTable],
  [/^/, (text, name) => (isJsonLines(text) ? jsonTable(text, name) : csvTable(text, name))],
];
const NAME_COLUMNS = ["ref", "id", "reference", "decision_id", "ticket_id", "key"];
const TEXT_COLUMNS = ["text", "state", "message", "body", "content", "description", "input"];
const COLUMNS_FROM = 100; // records in which the columns of JSON lines are looked for

/** What is wrong with a file, in words for whoever chose it. */
class FileTrouble extends Error {}

/** A chosen file: its name, its columns, its records, and `cell`, which reads one of them. */
async function readTable(file) {
  const text = await decoded(file);
  const [, read] = READERS.find(([end]) => end.test(file.name));
  const table = read(text, file.name);
  if (!table.records.some((record) => record !== undefined)) {
    throw new FileTrouble(`${file.name} holds no records.`);
  }
  return { ...table, name: file.name };
}

/** Without the byte order mark, if there is one. */
async function decoded(file) {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new FileTrouble(`${file.name} is not UTF-8; save it as CSV in UTF-8, or as JSON lines.`);
  }
}

function isJsonLines(text) {
  const [, line = ""] = text.match(/^\s*(.+)/) ?? [];
  if (line.startsWith("{")) return true;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

function lineEnd(text, from) {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

/** One JSON value a line; an empty line is no record, and still has its number. */
function jsonTable(text, name) {
  const records = [];
  for (let from = 0; from < text.length; from = lineEnd(text, from) + 1) {
    const line = text.slice(from, lineEnd(text, from)).trim();
    records.push(line ? parsedLine(line, name, records.length + 1) : undefined);
  }
  const objects = records.slice(0, COLUMNS_FROM).filter(isObject);
  const columns = [...new Set(objects.flatMap(Object.keys))];
  const has = (record, column) => isObject(record) && Object.hasOwn(record, column);
  const cell = (record, column) => (has(record, column) ? record[column] : undefined);
  return { columns, records, cell };
}

function parsedLine(line, name, number) {
  try {
    return JSON.parse(line);
  } catch {
    throw new FileTrouble(`${name}, line ${number}: this is not JSON.`);
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text in each line, which may end as in any system. */
function textTable(text) {
  const lines = text.replace(/(\r\n|\r|\n)$/, "").split(/\r\n|\r|\n/);
  return { columns: [], records: lines.map((line) => (line.trim() ? line : undefined)) };
}

/** CSV after RFC 4180; the first record names the columns. */
function csvTable(text, name, delimiters = [",", ";", "\t"]) {
  const [columns = [], ...records] = csvRecords(text, delimiterOf(text, delimiters), name);
  return { columns, records, cell: (record, column) => record[columns.indexOf(column)] };
}

/** The delimiter that stands most often in the first line, outside of quotes. */
function delimiterOf(text, delimiters) {
  const [line] = text.match(/^[^\r\n]*/);
  const head = line.split('"').filter((_, at) => at % 2 === 0).join("");
  const times = (delimiter) => head.split(delimiter).length;
  return delimiters.reduce((most, one) => (times(one) > times(most) ? one : most));
}

function csvRecords(text, delimiter, name) {
  const records = [];
  const ending = new RegExp(`[${delimiter}\r\n]`, "g");
  let [at, record] = [0, []];
  while (at < text.length) {
    if (!record.length && /[\r\n]/.test(text[at])) {
      at += 1; // an empty line; an empty cell in quotes is a record
      continue;
    }
    const where = `${name}, record ${records.length + 1}`;
    const cell = text[at] === '"' ? quotedCell(text, at, where) : plainCell(text, at, ending);
    at = cell.end;
    record.push(cell.value);
    if (text[at] === delimiter) {
      at += 1;
      if (at < text.length) continue;
      record.push("");
    } else if (at < text.length && !/[\r\n]/.test(text[at])) {
      throw new FileTrouble(`${where}: text follows a closing quote.`);
    }
    at += 1;
    records.push(record);
    record = [];
  }
  return records;
}

function plainCell(text, from, ending) {
  ending.lastIndex = from;
  const end = ending.exec(text)?.index ?? text.length;
  return { value: text.slice(from, end), end };
}

/** A cell in quotes, in which two of them stand for one. */
function quotedCell(text, from, where) {
  let end = text.indexOf('"', from + 1);
  while (end >= 0 && text[end + 1] === '"') end = text.indexOf('"', end + 2);
  if (end < 0) throw new FileTrouble(`${where}: a quote is opened and never closed.`);
  return { value: text.slice(from + 1, end).replaceAll('""', '"'), end: end + 1 };
}

/** Whether a table is what `svc map` wrote: the number of a line, and its decision or an error. */
function isMapped({ records }) {
  const first = records.find((record) => record !== undefined);
  return isObject(first) && Number.isInteger(first.line) && ("id" in first || "error" in first);
}

/** What `svc map` wrote of records, each with its number. */
function numbered(mapped) {
  return mapped ? mapped.records.filter((one) => Number.isInteger(one?.line)) : [];
}

/** Throws `FileTrouble` where no decision can be told from the table and what `svc map` wrote. */
function checkFit(table, mapped) {
  if (!mapped && !table.columns.length) {
    const what = "has no columns, and so no refs; choose what svc map wrote of it, too.";
    throw new FileTrouble(`${table.name} ${what}`);
  }
  const last = numbered(mapped).reduce((most, { line }) => Math.max(most, line), 0);
  if (last > table.records.length) {
    const found = `${table.name} has ${table.records.length}: it was made from another file.`;
    throw new FileTrouble(`${mapped.name} has an answer for record ${last}, and ${found}`);
  }
}

/** The column that is probably meant, if there is one. */
function likely(columns, names) {
  const lower = columns.map((column) => column.trim().toLowerCase());
  const name = names.find((one) => lower.includes(one));
  return name === undefined ? undefined : columns[lower.indexOf(name)];
}

/**
 * The texts of a table by the ids and refs of decisions: from what `svc map` wrote, by the number
 * of the line, and from the column `naming`. A name with several texts has none.
 */
function textsOf(table, mapped, naming, reading) {
  const texts = new Map();
  const unsure = new Set();
  const add = (name, record) => {
    const text = asRead(table, record, reading);
    if (texts.has(name) && texts.get(name) !== text) unsure.add(name);
    texts.set(name, text);
  };
  for (const { line, id } of numbered(mapped)) {
    const record = table.records[line - 1];
    if (typeof id === "string" && record !== undefined) add(id, record);
  }
  for (const record of naming ? table.records : []) {
    const value = record === undefined ? "" : (table.cell(record, naming) ?? "");
    // Another decision may have the number that is left of a long one.
    const isName = ["string", "number"].includes(typeof value) && isExact(value);
    const name = isName ? String(value).trim() : "";
    if (name) add(name, record);
  }
  for (const name of unsure) texts.delete(name);
  return { texts, unsure: unsure.size };
}

/** What a reviewer reads of a record: one column, or all of it. */
function asRead(table, record, reading) {
  if (reading) return readable(table.cell(record, reading) ?? "");
  if (!Array.isArray(record) || !table.columns.length) return readable(record);
  return table.columns.map((column, at) => `${column}: ${record[at] ?? ""}`).join("\n");
}

function readable(value) {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value, null, 2);
  } catch {
    return "(nested too deeply to be shown)"; // a RangeError, since to write it calls itself
  }
}
