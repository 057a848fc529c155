// The life of the page: which model, which key, asking once a second, and going on when the server was away.

import { attribute, element, keep, part, say, show } from "/ui/dom.js";
import { followSearch } from "/ui/items.js";
import { counted, duration } from "/ui/numbers.js";
import { followChart, showView } from "/ui/panels.js";

const EVERY = 1000, HIDDEN = 15000, AWAY_MOST = 10000, GIVE_UP = 8000; // milliseconds

// --- Asking the server -------------------------------------------------------------------------------

/** What the browser remembers; nothing where site data is blocked. */
function memory(kind) {
  try {
    return window[kind];
  } catch {
    return { getItem: () => null, setItem() {}, removeItem() {} };
  }
}

let key = memory("sessionStorage").getItem("firstclick-key");

class NoAnswer extends Error {
  constructor(message, code = 0, wait = 0) {
    super(message);
    Object.assign(this, { code, wait });
  }
}

async function ask(path) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, cache: "no-store", signal: AbortSignal.timeout(GIVE_UP) };
  const response = await fetch(path, options).catch(() => { throw new NoAnswer("It does not answer."); });
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const wait = Number(response.headers.get("Retry-After")) * 1000 || 0;
  const reason = answer?.error?.message ?? `status ${response.status}`;
  throw new NoAnswer(`It says: ${reason}`, response.status, wait);
}

const pathOf = (model) => `/v1/models/${encodeURIComponent(model).replaceAll("'", "%27")}`;

// --- Which model -------------------------------------------------------------------------------------

function wantedModel() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1); // a stray % typed by hand
  }
}

function showPicker(names, chosen) {
  const picker = part("picker");
  show(picker, names.length > 1 || (names.length === 1 && chosen !== names[0]));
  show(part("only-model"), picker.hidden);
  say(part("only-model"), chosen ?? "");
  const known = names.includes(chosen) || chosen === null ? names : [chosen, ...names];
  keep(picker, known, {
    key: (name) => name,
    make: (name) => Object.assign(element("option", "", name), { value: name }),
    update() {},
  });
  if (chosen !== null && picker.value !== chosen) picker.value = chosen;
  document.title = chosen === null ? "firstclick" : `${chosen} · firstclick`;
  for (const link of [part("example-link"), part("footer-example")]) {
    attribute(link, "href", `/ui/example.html#${encodeURIComponent(chosen ?? "")}`);
  }
}

// --- What is on the page; the last panels stay while the server is away ------------------------------

const SCENES = ["ask-key", "no-model", "first-calls", "panels"];

function scene(...shown) {
  for (const id of SCENES) show(part(id), shown.includes(id));
}

function showModel(view) {
  const learned = view.totals.slates > 0;
  const choice = `${Math.min(view.k, view.items.shown)} of ${counted(view.items.shown, "item")}`;
  say(part("about"), `shows each visitor ${choice} and learns from clicks`);
  if (!learned) showFirstCalls(view.model);
  scene("panels", ...(learned ? [] : ["first-calls"]));
  showView(view);
}

function showFirstCalls(model) {
  // The key itself is never put on the page: it would end in a shell's history or in a screenshot.
  const headers = ["-H 'Content-Type: application/json'"];
  if (key) headers.push('-H "Authorization: Bearer $FIRSTCLICK_KEY"');
  const call = (what, body) =>
    [`curl -s '${location.origin}${pathOf(model)}/${what}'`, ...headers, `-d '${body}'`].join(" \\\n    ");
  say(part("call-recommend"), call("recommend", "{}"));
  say(part("call-feedback"), call("feedback", '{"token": "TOKEN", "click": 0}'));
}

function showNoModel(title, text) {
  scene("no-model");
  say(part("no-model-title"), title);
  say(part("no-model-text"), text);
}

function showStatus(state, text) {
  attribute(part("status"), "data-state", state);
  say(part("status-text"), text);
  show(part("away"), state === "away");
}

// --- Asking again and again --------------------------------------------------------------------------

let failures = 0;
let wake = () => {};
let again = false;

function askNow() {
  again = true;
  wake();
}

function pause(milliseconds) {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      again = false;
      wake = () => {};
      done();
    };
    const timer = setTimeout(end, again ? 0 : milliseconds);
    wake = end;
  });
}

/** Asks once, shows what came, and returns how long to wait until the next time. */
async function askAndShow() {
  const wanted = wantedModel();
  const { models } = await ask("/v1/models");
  const names = models.map((model) => model.name);
  const chosen = wanted || names[0] || null;
  // Plain links and the example page send no key.
  show(part("key-kept"), Boolean(key));
  for (const node of document.querySelectorAll("[data-without-key]")) show(node, !key);
  showPicker(names, chosen);
  if (chosen === null) {
    const way = "Start the server with a catalog, firstclick serve --catalog items.csv, or POST /v1/models.";
    showNoModel("No model yet", way);
  } else if (!names.includes(chosen)) {
    showNoModel("No such model", `This server has no model named “${chosen}”. Choose another one above.`);
  } else {
    const view = await ask(`${pathOf(chosen)}/view`);
    if (wantedModel() !== wanted) return 0; // another model was chosen in the meantime
    showModel(view);
  }
  failures = 0;
  showStatus("live", "live");
  return document.hidden ? HIDDEN : EVERY;
}

function refuseKey(refused, reason = "This key was not accepted.") {
  say(part("key-refused"), reason);
  show(part("key-refused"), refused);
}

function showFailure(error) {
  if (error.code === 401 || error.code === 403) {
    refuseKey(key !== null, error.code === 403 ? error.message : undefined);
    if (part("ask-key").hidden) {
      scene("ask-key");
      part("key").focus();
    }
    showStatus("waiting", "key needed");
    return HIDDEN;
  }
  failures += 1;
  const wait = Math.max(error.wait, Math.min(EVERY * 2 ** (failures - 1), AWAY_MOST));
  const stale = part("panels").hidden ? "" : " What you see is from before.";
  say(part("away-text"), `${error.message}${stale} Next try in ${duration(wait / 1000)}.`);
  showStatus("away", "server away");
  return wait;
}

async function live() {
  for (;;) {
    let wait;
    try {
      wait = await askAndShow();
    } catch (error) {
      const expected = error instanceof NoAnswer;
      if (!expected) reportError(error);
      wait = showFailure(expected ? error : new NoAnswer(`Its answer cannot be shown (${error.message}).`));
    }
    await pause(wait);
  }
}

// --- What the reader can do --------------------------------------------------------------------------

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const theme = memory("localStorage").getItem("firstclick-theme") ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    say(part("theme-text"), `Change to ${theme === "dark" ? "light" : "dark"}`);
  };
  part("theme").addEventListener("click", () => {
    const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    memory("localStorage").setItem("firstclick-theme", other);
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}

function followKey() {
  part("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = part("key").value.trim();
    const sound = /^[!-~]+$/.test(given); // anything else cannot be part of a header
    refuseKey(!sound);
    if (!sound) return;
    key = given;
    memory("sessionStorage").setItem("firstclick-key", key);
    part("key").value = "";
    askNow();
  });
  part("forget-key").addEventListener("click", () => {
    key = null;
    memory("sessionStorage").removeItem("firstclick-key");
    askNow();
  });
}

async function copy(button) {
  const text = part(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.textContent);
    say(button, "Copied");
  } catch {
    // Without https the clipboard is closed to pages: what is selected can be copied by hand.
    getSelection().selectAllChildren(text);
    say(button, "Selected");
  }
  setTimeout(() => say(button, "Copy"), 2000);
}

followTheme();
followKey();
followChart();
followSearch();
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(button));
}
part("picker").addEventListener("change", () => {
  location.hash = encodeURIComponent(part("picker").value);
});
part("try-now").addEventListener("click", askNow);
addEventListener("hashchange", askNow);
addEventListener("online", askNow);
document.addEventListener("visibilitychange", () => document.hidden || askNow());
live();
