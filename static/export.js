"use strict";
// Decisions with their answers and labels as one file, fetched page by page.

const EXPORTED = 1000; // decisions a request
const KEPT_MS = 60_000; // how long a file is kept for the browser

function exportButton(query, signal) {
  const said = el("span", { class: "note", role: "status" });
  const click = async () => {
    if (button.ariaDisabled) return; // one at a time
    button.ariaDisabled = "true";
    await exportAll(query, said, signal).catch((error) => {
      if (!signal.aborted) said.replaceChildren(visible(`Not exported. ${error.message}`));
    });
    button.ariaDisabled = null;
  };
  const button = el("button", { type: "button", click }, "Export as CSV");
  return el("div", { class: "actions" }, button, said);
}

async function exportAll(query, said, signal) {
  const parts = [];
  let before = "";
  do {
    const page = { ...query, format: "csv", limit: EXPORTED, before };
    const response = await send(`v1/export?${filled(page)}`, {}, signal, READ_MS);
    parts.push(await response.text());
    before = response.headers.get("x-next-before");
    said.replaceChildren(`${counted(parts.length, "page")} read`);
  } while (before);
  offer(new Blob(parts, { type: "text/csv" }), `decisions-${query.project || "default"}.csv`);
  said.replaceChildren("Exported");
}

/** Have the browser save a file that this page made. */
function offer(blob, name) {
  const href = URL.createObjectURL(blob);
  el("a", { href, download: name }).click();
  // The browser reads it a little later.
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
}
