"use strict";
// Which API keys there are; they are made and revoked on the command line alone.

async function keys(region, params, signal) {
  await load(region, signal, async () => keysOf(await getJson("v1/keys", {}, signal)));
}

function keysOf({ keys: list }) {
  const how = el(
    "p",
    { class: "note" },
    "Nobody can see the text of a key again. ",
    el("code", {}, "svc keys create --name <who>"),
    " makes one, ",
    el("code", {}, "svc keys revoke <id>"),
    " takes it back.",
  );
  if (!list.length) return [empty("No keys", "This server answers this machine alone."), how];
  const rows = list.map((key) => [
    key.name,
    el("code", {}, key.id),
    key.project ?? "all projects",
    whole(key.rpm),
    key.concurrency === null ? "the server's own" : whole(key.concurrency),
    time(key.created_at),
    key.revoked_at === null ? badge("active", "good") : `revoked ${time(key.revoked_at)}`,
  ]);
  const columns = ["Name", "Id", "Project", "#A minute", "#At once", "Created", "State"];
  return [card("Keys", table("All keys, the oldest first", columns, rows)), how];
}
