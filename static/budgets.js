"use strict";
// Budgets in dollars: what of each is spent; they are set on the command line alone.

const BUDGET_COLUMNS = ["Budget of", "Used", "#Spent", "#Reserved", "#Limit", "At the limit", "Renews"];

/** The card of the budgets of a project, and of keys; of all where no project is named. */
async function budgetParts(project, signal) {
  const { budgets: all } = await getJson("v1/budgets", {}, signal);
  const shown = all.filter(({ scope, subject }) => !project || scope === "key" || subject === project);
  if (!shown.length) return [];
  const caption = "What calls to models cost in the present day or month, in UTC";
  return [card("Budgets", table(caption, BUDGET_COLUMNS, shown.map(budgetCells)))];
}

function budgetCells(budget) {
  const { scope, subject, per, spent_usd: spent, reserved_usd: reserved } = budget;
  return [
    el("div", {}, `${scope} `, el("code", {}, subject), el("p", { class: "note" }, `a ${per}`)),
    budgetBar(budget),
    sumOfDollars(spent),
    sumOfDollars(reserved),
    sumOfDollars(budget.limit_usd),
    budget.hard ? "refuses" : "warns only",
    time(budget.renews_at),
  ];
}

function budgetBar({ scope, subject, per, warns, limit_usd: limit, left_usd: left, ...budget }) {
  const used = (budget.spent_usd + budget.reserved_usd) / limit;
  const label = `Used of the budget of ${scope} ${subject} a ${per}`;
  const state = left <= 0 ? "spent" : "near its limit";
  return el(
    "div",
    {},
    el("progress", { max: 1, value: Math.min(1, used), "aria-label": label }),
    el("p", { class: "note" }, percent(used)),
    warns && badge(state, "warn"),
  );
}
