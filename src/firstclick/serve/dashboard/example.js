// A shop page that recommends with firstclick. All of the work is in firstclick.js: one call shows a slate,
// and what the visitor does with it is reported. This page runs on the server itself; a page elsewhere gives
// `server`, and a `key` with the role "page".

import { FirstClick } from "/ui/firstclick.js";

const part = (id) => document.getElementById(id);
const say = (text) => { part("said").textContent = text; };

/** The model that the address names, or the first one of this server. */
async function chooseModel() {
  const named = location.hash.slice(1);
  try {
    if (named) return decodeURIComponent(named);
  } catch {
    return named; // a stray % typed by hand
  }
  const response = await fetch("/v1/models").catch(() => null);
  const { models } = response?.ok ? await response.json() : { models: [] };
  return models[0]?.name ?? "default";
}

const model = await chooseModel();

const page = new FirstClick({
  model,
  onexamined: (examined, { items }) => { part("seen").textContent = `Seen: ${examined} of ${items.length}.`; },
  onreport({ token, click, examined, status, seq, error }) {
    const isLeaving = click === null && examined !== undefined; // after that firstclick.js shows the next itself
    if (isLeaving || token !== page.slateIn(part("slots"))?.token) return null; // or it is of an earlier page
    if (status === "waiting") return say("The shop does not answer; your click is sent again.");
    say(error ? error.message : `Kept as event ${seq} (${status}). Here is the next slate.`);
    // A real shop opens what was clicked. This one shows the next slate.
    return showSlate();
  },
});

let hasKeys = false;

// What the ids mean. A real shop knows its own products; this one asks the model.
async function readNames() {
  const response = await fetch(`/v1/models/${encodeURIComponent(model)}/items?limit=1000`).catch(() => null);
  const { items } = response?.ok ? await response.json() : { items: [] };
  hasKeys = response?.status === 401;
  return new Map(items.map((item) => [item.id, item]));
}

function slotOf(id) {
  const { name, group } = names.get(id) ?? {};
  const slot = document.createElement("li");
  const button = document.createElement("button");
  const title = document.createElement("bdi");
  const tag = document.createElement("small");
  title.textContent = name || id; // as text: a name may hold anything, markup too
  tag.textContent = group ?? "";
  button.append(title, tag);
  slot.append(button);
  return slot;
}

async function showSlate() {
  part("seen").textContent = "";
  try {
    await page.show(part("slots"), slotOf);
  } catch (error) {
    // A real shop shows its own list here.
    say(error instanceof TypeError ? "The shop does not answer; reload the page in a moment." : error.message);
  }
}

addEventListener("hashchange", () => location.reload());
part("model").textContent = model;
part("back").href = `/#${encodeURIComponent(model)}`;
part("others").addEventListener("click", () => page.dismiss(part("slots")));
const names = await readNames();
if (hasKeys) {
  say("This example is for servers without keys: it sends none. A page of your own sends a key with the role “page”.");
  part("others").hidden = true;
} else {
  await showSlate();
}
