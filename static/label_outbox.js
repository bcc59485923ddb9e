"use strict";
// Labels on their way to the server: in their order, in the background, until they are saved.

const SEND_MS = 15_000;
const PAUSES_S = [1, 2, 4, 8, 15]; // before a failed one is sent again
const LONGEST_PAUSE_S = 60; // that a server is believed
const LAST_CHARS = 20_000; // of a label that arrives although its tab is closed
// What may pass by itself, or with another key; whatever else is refused is refused for good.
const PASSING = (status) => status === 0 || [401, 408, 429].includes(status) || status >= 500;

/** What waits to be saved; `onchange` is called whenever `waiting`, `trouble` or `refused` change. */
class Outbox {
  constructor() {
    this.waiting = [];
    this.trouble = null; // the Problem of the last attempt, while it is not overcome
    this.refused = []; // the Problems of labels that the server does not take
    this.onchange = () => {};
    this.again = () => {};
    this.sending = false;
    addEventListener("beforeunload", (event) => {
      if (this.waiting.length) event.preventDefault();
    });
    addEventListener("online", () => this.again());
  }

  /** Post `body` to `path`; `done` gets the answer, or null when the server does not take it. */
  add(path, body, done) {
    this.waiting.push({ path, body, done });
    this.onchange();
    if (!this.sending) this.send();
  }

  async send() {
    this.sending = true;
    for (let failures = 0; this.waiting.length; ) {
      const { answer, error } = await posted(this.waiting[0]);
      this.trouble = error && PASSING(error.status) ? error : null;
      if (this.trouble) {
        failures += 1;
        this.onchange();
        await this.pause(error, failures);
      } else {
        failures = 0;
        this.settle(this.waiting.shift(), answer, error);
      }
    }
    this.sending = false;
  }

  settle({ path, done }, answer, error) {
    if (error && path !== SKIP) this.refused.push(error);
    done(answer);
    this.onchange();
  }

  pause(error, failures) {
    const told = Number.parseInt(error.retryAfter, 10); // a date is no number
    const usual = PAUSES_S[Math.min(failures, PAUSES_S.length) - 1];
    const seconds = Number.isNaN(told) ? usual : Math.min(told, LONGEST_PAUSE_S);
    return new Promise((done) => {
      this.again = done;
      setTimeout(done, seconds * 1000);
    });
  }
}

/** Post one of them: `{answer, error}`, one of which is null. */
async function posted({ path, body }) {
  const headers = { "Content-Type": "application/json" };
  const text = JSON.stringify(body);
  // What is under way when the tab is closed arrives all the same. Browsers refuse that for more
  // than 64 KiB, of which a character may take three bytes.
  const keepalive = text.length <= LAST_CHARS;
  const options = { method: "POST", body: text, headers, keepalive };
  try {
    const response = await send(path, options, new AbortController().signal, SEND_MS);
    return { answer: await response.json(), error: null };
  } catch (error) {
    const unreadable = new Problem(0, "What came as an answer could not be read.");
    return { answer: null, error: error instanceof Problem ? error : unreadable };
  }
}

const FEEDBACK = "v1/feedback";
const SKIP = "v1/review/skip"; // refused where the decision went to somebody else, which is no loss
const outbox = new Outbox();
