"use strict";
// Labels on their way to the server: in their order, in the background, until they are saved.

const SEND_MS = 15_000;
const PAUSES_S = [1, 2, 4, 8, 15]; // before a failed one is sent again
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

  /** Post `body` to `path`; `saved` gets the answer once it came. */
  add(path, body, saved = () => {}) {
    this.waiting.push({ path, body, saved });
    this.onchange();
    if (!this.sending) this.send();
  }

  async send() {
    this.sending = true;
    for (let failures = 0; this.waiting.length; ) {
      const error = await this.attempt(this.waiting[0]);
      failures = error ? failures + 1 : 0;
      this.trouble = error;
      this.onchange();
      if (error) await this.pause(error, failures);
    }
    this.sending = false;
  }

  /** Send one, which then waits no longer; the Problem if it is to be sent once more. */
  async attempt({ path, body, saved }) {
    try {
      const headers = { "Content-Type": "application/json" };
      // What is under way when the tab is closed arrives all the same.
      const options = { method: "POST", body: JSON.stringify(body), headers, keepalive: true };
      const never = new AbortController().signal;
      const response = await send(path, options, never, SEND_MS);
      saved(await response.json());
    } catch (error) {
      if (!(error instanceof Problem)) return new Problem(0, "The server's answer is unreadable.");
      if (PASSING(error.status)) return error;
      if (path !== SKIP) this.refused.push(error);
    }
    this.waiting.shift();
    return null;
  }

  pause(error, failures) {
    const seconds = error.retryAfter ?? PAUSES_S[Math.min(failures, PAUSES_S.length) - 1];
    return new Promise((done) => {
      this.again = done;
      setTimeout(done, seconds * 1000);
    });
  }
}

const FEEDBACK = "v1/feedback";
const SKIP = "v1/review/skip"; // refused where the decision went to somebody else, which is no loss
const outbox = new Outbox();
