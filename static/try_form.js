"use strict";
// A request as a form: a recipe, whose questions may be changed, the state, project and model.

const RECIPES = JSON.parse(byId("recipes").textContent);

/** Whether a form can show a request without losing any of it. */
function fitsForm(text) {
  const request = jsonObject(text);
  const questions = Object.values(request?.questions ?? {});
  const plain = (value) => value === undefined || typeof value === "string";
  return Boolean(
    request &&
    keepsNumbers(text) &&
    plain(request.project) &&
    plain(request.model) &&
    request.questions &&
    !Array.isArray(request.questions) &&
    questions.every((one) => one && typeof one.type === "string" && fitsLines(one)),
  );
}

function keepsNumbers(text) {
  let kept = true;
  JSON.parse(text, (_name, value) => {
    kept &&= isExact(value);
    return value;
  });
  return kept;
}

/** The form of the request in `text`; `changed` gets the text of the request it has become. */
function requestForm(text, changed) {
  const request = JSON.parse(text);
  const list = Object.entries(request.questions).map(([key, question]) => ({ key, question }));
  const write = () => {
    const questions = Object.fromEntries(list.map(({ key, question }) => [key, question]));
    changed(JSON.stringify({ ...request, questions }, null, 2));
  };
  const place = el("div", { class: "try-questions" });
  const draw = (open) => place.replaceChildren(...questionParts(list, write, draw, open));
  const take = (event) => {
    const recipe = RECIPES[event.target.value];
    if (!recipe) return;
    const questions = Object.entries(structuredClone(recipe.questions));
    list.splice(0, list.length, ...questions.map(([key, question]) => ({ key, question })));
    draw(0);
    write();
  };
  draw(0);
  return [
    el(
      "div",
      { class: "toolbar" },
      recipeField(take),
      projectOf(request, write),
      modelOf(request, write),
    ),
    stateField(request, write),
    place,
  ];
}

function recipeField(change) {
  const choices = Object.entries(RECIPES).map(([name, { description }]) => [
    name,
    `${name}: ${description}`,
  ]);
  return choiceField("Recipe", "recipe", "", [["", "your own questions"], ...choices], change);
}

function projectOf(request, write) {
  return projectField(request.project, (event) =>
    set(request, "project", event.target.value, write),
  );
}

function modelOf(request, write) {
  const input = (event) => set(request, "model", event.target.value, write);
  const typed = {
    placeholder: "the server's default",
    value: request.model ?? "",
    input,
    ...PLAIN,
  };
  return field("Model", el("input", { name: "model", ...typed }));
}

function set(request, name, value, write) {
  if (value) request[name] = value;
  else delete request[name];
  write();
}

/** The state: text, or JSON where it is an object or a list. */
function stateField(request, write) {
  const { state = "" } = request;
  const kind = el("span", { class: "note", role: "status" });
  const say = () =>
    kind.replaceChildren(`Sent as ${typeof request.state === "string" ? "text" : "JSON"}.`);
  const read = (text) => {
    request.state = stateOf(text);
    say();
    write();
  };
  const text = typeof state === "string" ? state : JSON.stringify(state, null, 2);
  say();
  return el("div", { class: "try-state" }, area("State: what is judged", text, 6, read), kind);
}

function stateOf(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A question each, of which one is open at a time. */
function questionParts(list, write, draw, open) {
  const parts = list.map((one, at) => questionPart(one, at, list, write, draw, at === open));
  const add = () => {
    list.push({ key: `question_${list.length + 1}`, question: { type: "noul", instructions: "" } });
    draw(list.length - 1);
    write();
  };
  return [...parts, el("button", { type: "button", click: add }, "Add a question")];
}

function questionPart(one, at, list, write, draw, open) {
  const title = el("span");
  const name = () => title.replaceChildren(el("strong", {}, one.key), ` ${one.question.type}`);
  const changed = () => {
    name();
    const twice = list.filter(({ key }) => key === one.key).length > 1;
    part.querySelector("input").setCustomValidity(twice ? "Another question has this key." : "");
    write();
  };
  const remove = () => {
    list.splice(at, 1);
    draw(0);
    write();
  };
  const redraw = () => {
    draw(at);
    write();
  };
  name();
  const part = el(
    "details",
    { name: "question", class: "try-question", open },
    el("summary", {}, title),
    questionFields(one, changed, redraw),
    list.length > 1 && el("button", { type: "button", click: remove }, "Remove this question"),
  );
  return part;
}
