"use strict";
// A request as a line for a shell, which takes the key from a variable there.

/** The line that posts `text` to `url`; with `keyed`, it sends what `$SVC_API_KEY` holds. */
function curlLine(url, text, keyed) {
  const key = keyed ? ` -H "Authorization: Bearer $SVC_API_KEY"` : "";
  const type = "-H 'Content-Type: application/json'";
  return `curl -sS ${quoted(url)} ${type}${key} --data-raw ${quoted(text)}`;
}

/** One word of a shell, whatever is in it. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Copy a line, and say so in `place`; a page without access to the clipboard shows it there. */
async function copy(line, place) {
  try {
    await navigator.clipboard.writeText(line);
    place.replaceChildren("Copied");
  } catch {
    place.replaceChildren("Copy it from here:", el("pre", { tabindex: "0" }, line));
  }
}
