"use strict";
// The review queue as one page has it: decisions fetched ahead, each with its text out of the file.

const AHEAD = 20; // decisions that are asked for at once
const LOW = 10; // with fewer left, more are fetched
const OTHER_TABS = "svc-labelled";

const nameOf = ({ id, question }) => JSON.stringify([id, question]);

/**
 * Decisions to label. `query` are the parameters of the server's queue, `texts` the file's.
 * `onchange` is called when there are more, when there is an error, and when another tab was faster.
 */
class LabelQueue {
  constructor(query, texts, signal, onchange) {
    Object.assign(this, { query, texts, signal, onchange });
    this.ahead = []; // `{item, text, definition}`: the wording that the server handed out with it
    this.known = new Set(); // names of what is ahead, was labelled, or was passed over
    this.strangers = []; // items of which the file has no text, where it has none at all
    this.absent = 0; // items that were passed over because the file has no text
    this.page = null; // what the server said last
    this.saved = 0; // labels since then, of all reviewers
    this.error = null;
    this.fetching = false;
    this.ended = false; // nothing was left at the last look
    this.others = new BroadcastChannel(OTHER_TABS);
    this.others.onmessage = ({ data }) => this.labelledElsewhere(data);
    signal.addEventListener("abort", () => this.others.close());
  }

  /** The next of those ahead, if there is one. */
  take() {
    const next = this.ahead.shift();
    this.refill();
    return next;
  }

  refill() {
    const enough = this.ahead.length >= LOW || this.ended || this.strangers.length;
    if (!enough && !this.fetching && !this.signal.aborted) this.fetchMore();
  }

  async fetchMore() {
    this.fetching = true;
    const allSaved = !outbox.waiting.length; // what is not saved is still in this reviewer's hands
    try {
      this.page = await getJson("v1/review", { ...this.query, limit: AHEAD }, this.signal);
      [this.error, this.saved] = [null, 0];
      const fresh = this.page.items.filter((item) => !this.known.has(nameOf(item)));
      this.sort(fresh);
      // A page may be full before it has all that this reviewer holds.
      this.ended = allSaved && !fresh.length && !this.ahead.length;
    } catch (error) {
      this.error = error;
    }
    this.fetching = false;
    if (this.signal.aborted) return;
    this.onchange();
    if (!this.ahead.length && !this.error && !outbox.waiting.length) this.refill();
  }

  /** Look again, after an error or where nothing was left. */
  again() {
    [this.error, this.ended] = [null, false];
    this.refill();
  }

  /** Put those that the file has ahead; a file that has none of many is probably the wrong one. */
  sort(items) {
    const { definition } = this.page;
    const found = items.map((item) => ({ item, text: this.textOf(item), definition }));
    const here = found.filter(({ text }) => text !== undefined);
    const absent = found.filter(({ text }) => text === undefined).map(({ item }) => item);
    const wrong = !here.length && (!this.known.size || absent.length >= LOW);
    for (const { item } of here) this.known.add(nameOf(item));
    this.ahead.push(...here);
    if (wrong) this.strangers = absent;
    else this.passOver(absent);
  }

  textOf({ id, ref }) {
    return this.texts.get(id) ?? (ref === null ? undefined : this.texts.get(ref));
  }

  /** Give back what the file does not have, for others to label. */
  passOver(items) {
    for (const item of items) {
      this.known.add(nameOf(item));
      this.skip(item);
    }
    this.absent += items.length;
    this.strangers = [];
  }

  label(item, label, saved) {
    const { id: decision_id, question } = item;
    const body = { decision_id, question, label, reviewer: this.query.reviewer };
    outbox.add(FEEDBACK, body, (answer) => {
      this.refill();
      if (!answer) return;
      this.saved = answer.labels - this.page.progress.labels;
      saved();
    });
    this.others.postMessage(nameOf(item));
  }

  skip({ id: decision_id, question }) {
    const body = { decision_id, question, reviewer: this.query.reviewer };
    outbox.add(SKIP, body, () => this.refill());
  }

  /** The same reviewer labelled it in another tab. */
  labelledElsewhere(name) {
    this.known.add(name);
    this.ahead = this.ahead.filter(({ item }) => nameOf(item) !== name);
    this.onchange(name);
  }
}
