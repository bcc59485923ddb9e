"use strict";
// Requests to the server this page came from, with the key that lies in this tab's session storage.

const KEY = "svc-api-key";
// One slash alone: after two of them would come the name of another machine.
const BASE = location.pathname.replace(/dashboard\/?$/, "").replace(/^\/+/, "/");
const READ_MS = 30_000;
const DECIDE_MS = 130_000; // a little over the server's own deadline

let refusedKey = null; // the stored key, while the server does not accept it

/** Why a request brought nothing: `status` is 0 when there was no answer at all. */
class Problem extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const storedKey = () => sessionStorage.getItem(KEY);
const storeKey = (key) => sessionStorage.setItem(KEY, key);
const forgetKey = () => sessionStorage.removeItem(KEY);

/** GET a route's JSON; `query` holds its parameters, of which empty ones are left out. */
async function getJson(path, query, signal) {
  return (await send(`${path}?${filled(query)}`, {}, signal, READ_MS)).json();
}

/** The text of a query, without what is empty. */
function filled(query) {
  return new URLSearchParams(Object.entries(query).filter(([, value]) => value));
}

async function getText(path, signal) {
  return (await send(path, {}, signal, READ_MS)).text();
}

async function postJson(path, text, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await send(path, { method: "POST", body: text, headers }, signal, DECIDE_MS);
  return response.json();
}

async function send(path, options, signal, limitMs) {
  const key = storedKey();
  const headers = { ...options.headers, ...(key && { Authorization: `Bearer ${key}` }) };
  const response = await fetch(BASE + path, {
    ...options,
    headers,
    credentials: "omit",
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
  }).catch((reason) => {
    if (signal.aborted) throw reason; // the view was left
    throw new Problem(0, unanswered(reason, limitMs));
  });
  refusedKey = response.status === 401 ? key : null;
  if (!response.ok) throw await refused(response);
  return response;
}

function unanswered(reason, limitMs) {
  return reason.name === "TimeoutError"
    ? `The server did not answer within ${limitMs / 1000} seconds.`
    : "The server cannot be reached. Is it running, and is this machine online?";
}

async function refused(response) {
  const body = await response.json().catch(() => null);
  const message = body?.error?.message ?? `The server answered with status ${response.status}.`;
  return new Problem(response.status, message, response.headers.get("Retry-After"));
}
