"use strict";
// One item after the other: its text, the question, the answer by a key; what was said can be
// taken back.

class LabelSession {
  /** `leave` goes back to the choice of files. */
  constructor(region, query, texts, unsure, signal, leave) {
    Object.assign(this, { signal, leave, unsure });
    this.queue = new LabelQueue(query, texts, signal, (name) => this.changed(name));
    this.current = null; // as the queue has it, with its label as `given` where it came back
    this.past = []; // those before, the latest last
    this.answer = null; // the part that takes the answer
    this.progress = el("p", { class: "label-progress", role: "status" });
    this.saving = el("div", { class: "label-saving", role: "status" });
    this.notices = el("p", { class: "note label-notices" });
    this.place = el("div");
    this.last = el("p", { class: "note label-last" });
    const head = el("div", { class: "label-head" }, this.progress, this.saving);
    region.replaceChildren(head, this.notices, this.last, this.place);
    document.addEventListener("keydown", (event) => this.pressed(event), { signal });
    outbox.onchange = () => this.drawSaving();
    this.drawSaving();
    this.place.replaceChildren(loading());
    this.queue.refill();
  }

  /** The queue has more, or an error, or another tab labelled the decision `name`. */
  changed(name) {
    showKey();
    if (this.current && name === nameOf(this.current.item)) this.current = null;
    if (!this.current) this.next();
    else this.drawProgress();
  }

  next() {
    this.show(this.queue.take() ?? null);
  }

  show(current) {
    this.current = current;
    this.answer = null;
    if (current) this.drawItem();
    else this.place.replaceChildren(this.instead());
    this.drawProgress();
  }

  /** What is shown where there is no item. */
  instead() {
    const { error, strangers, fetching, ended, page } = this.queue;
    if (error) return problem(error, () => this.lookAgain());
    if (strangers.length) return this.wrongFile(strangers);
    if (!ended || fetching || !page) return loading();
    const again = { type: "button", click: () => this.lookAgain() };
    const { project, question } = page;
    return el(
      "div",
      { class: "state" },
      el("h2", {}, "Nothing is left to label"),
      el("p", {}, "New decisions come into the queue as they are made."),
      el(
        "div",
        { class: "actions" },
        el("button", again, "Look again"),
        el("a", { href: address("calibration", { project, question }) }, "See the calibration"),
      ),
    );
  }

  lookAgain() {
    this.place.replaceChildren(loading());
    this.queue.again();
  }

  wrongFile(strangers) {
    const pass = () => {
      this.queue.passOver(strangers);
      this.lookAgain();
    };
    const names = strangers.slice(0, 3).map(({ id, ref }) => ref ?? id);
    return el(
      "div",
      { class: "state", role: "alert" },
      el("h2", {}, "The file has none of these decisions"),
      el(
        "p",
        {},
        `The next ${counted(strangers.length, "decision")} of the queue, such as ` +
          `${names.join(", ")}, are not in it. Is it the right file, and the right column?`,
      ),
      el(
        "div",
        { class: "actions" },
        el("button", { type: "button", class: "primary", click: this.leave }, "Choose again"),
        el("button", { type: "button", click: pass }, "Skip these and look further"),
      ),
    );
  }

  drawItem() {
    const { item, text, definition, given } = this.current;
    this.answer = answering(definition, given, (label) => this.say(label));
    const reading = el("div", {
      class: "label-text",
      tabindex: "0",
      role: "region",
      "aria-label": "Text",
    });
    reading.append(text);
    const tags = Object.entries(item.tags).map(([name, value]) => badge(`${name}: ${value}`));
    const model = item.answer && `The model says: ${inWords(item.answer)}.`;
    const again = given !== undefined && `You said: ${labelWords(definition, given)}.`;
    this.place.replaceChildren(
      el(
        "article",
        { class: "card" },
        el(
          "div",
          { class: "label-head" },
          el("p", { class: "note" }, item.ref ?? item.id, " ", tags),
          this.actions(),
        ),
        reading,
        el("h2", {}, definition.instructions),
        (model || again) && el("p", { class: "note" }, [again, model].filter(Boolean).join(" ")),
        this.answer.node,
      ),
    );
    (this.answer.input ?? reading).focus({ preventScroll: true });
  }

  actions() {
    const undo = { type: "button", click: () => this.undo(), disabled: !this.past.length };
    const pass = { type: "button", click: () => this.skip() };
    return el(
      "div",
      { class: "actions" },
      el("button", undo, "Undo ", kbd("u")),
      el("button", pass, this.current.seen ? "Keep " : "Skip ", kbd("s")),
      this.answer.input && el("span", { class: "note" }, "after ", kbd("Esc")),
    );
  }

  say(given) {
    const labelled = { ...this.current, given, seen: true };
    this.queue.label(labelled.item, given, () => this.reveal(labelled));
    this.tell(labelled);
    this.past.push(labelled);
    this.next();
  }

  /** Pass on: give the item back, unless it was dealt with before. */
  skip() {
    if (!this.current.seen) this.queue.skip(this.current.item);
    this.past.push({ ...this.current, seen: true });
    this.next();
  }

  undo() {
    if (!this.past.length) return;
    if (this.current) this.queue.ahead.unshift(this.current);
    this.show(this.past.pop());
  }

  tell({ item, definition, given }, more = "") {
    const words = labelWords(definition, given);
    this.last.replaceChildren(visible(`${item.ref ?? item.id}: you said ${words}.${more}`));
    this.told = item;
  }

  /** Once the label is saved, what the model had answered. */
  async reveal(labelled) {
    const { item } = labelled;
    const found = await getJson(`v1/decisions/${item.id}`, {}, this.signal).catch(() => null);
    const answer = found?.answers[item.question];
    if (answer && this.told === item) this.tell(labelled, ` The model: ${inWords(answer)}.`);
    this.drawProgress();
  }

  pressed(event) {
    const undoing = event.key === "z" && (event.ctrlKey || event.metaKey);
    const modified = (event.ctrlKey || event.metaKey || event.altKey) && !undoing;
    const typing = event.target.closest("input, textarea, select, dialog");
    if (typing && event.key === "Escape") event.target.blur();
    if (modified || typing || event.repeat) return;
    // Enter on a button is that button's.
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    if (this.act(event.key, undoing)) event.preventDefault();
  }

  /** Do what a key stands for; whether it stands for anything now. */
  act(key, undoing) {
    if (undoing || key === "u") return this.undo(), true;
    if (!this.current) return false;
    if (key === "s" || (key === "Enter" && this.current.seen)) return this.skip(), true;
    return this.answer.press(key);
  }

  drawProgress() {
    const { page, saved, absent } = this.queue;
    if (page) this.progress.replaceChildren(progressWords(page.progress, saved));
    const missing = `${counted(absent, "decision")} not in the file: skipped, others may have them.`;
    const twice = `${counted(this.unsure, "name")} with several texts in the file: not used.`;
    const notices = [absent && missing, this.unsure && twice].filter(Boolean);
    this.notices.replaceChildren(visible(notices.join(" ")));
  }

  drawSaving() {
    if (this.signal.aborted) return;
    const { waiting, trouble, refused } = outbox;
    const labels = counted(waiting.length, "label");
    const state = trouble ? `${labels} not saved yet: ${trouble.message}` : `Saving ${labels}…`;
    const again = trouble && el("button", { type: "button", click: () => outbox.again() }, "Try now");
    const key = trouble && concernsKey(trouble) && keyButton();
    const count = `${counted(refused.length, "label")} refused: ${refused.at(-1)?.message}`;
    this.saving.replaceChildren(
      ...[
        badge(waiting.length ? state : "All saved", trouble ? "warn" : waiting.length ? "" : "good"),
        again,
        key,
        refused.length > 0 && badge(count, "warn"),
      ].filter(Boolean),
    );
  }
}

/** "37 labelled, about 40 more until a promise at 0.95", after `saved` labels more. */
function progressWords({ labels, min_labels: least, thresholds }, saved) {
  const now = labels + saved;
  const kept = thresholds.findLast((one) => one.labels_needed === 0);
  const wanted = thresholds.find((one) => one.labels_needed !== 0);
  return [
    `${whole(now)} labelled`,
    now < least && `calibration begins at ${least}`,
    kept && `${kept.target} is promised from a confidence of ${kept.min_confidence} on`,
    wanted && promiseWords(wanted, saved),
  ]
    .filter(Boolean)
    .join(", ");
}

function promiseWords({ target, labels_needed: needed }, saved) {
  if (needed === null) return `no promise at ${target} in sight`;
  return `about ${whole(Math.max(1, needed - saved))} more until a promise at ${target}`;
}
