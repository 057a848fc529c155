// The HTTP interface as a page, drawn from /openapi.json. It shows what this server's document says, and knows
// no route by itself: a new one appears here without a change.

import { element, part, say, show, span } from "/ui/dom.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
// Deeper than this, a body is named by its type alone.
const DEEPEST = 3;
const EXAMPLES = { model: "default", id: "tea", list: "autumn", key: "KEY_ID" };

function memory() {
  try {
    return window.sessionStorage;
  } catch {
    return { getItem: () => null, setItem() {} }; // site data is blocked
  }
}

// The dashboard keeps it under the same name: whoever is let in there is let in here.
let key = memory().getItem("firstclick-key");
let components = {};

// --- Types in words ----------------------------------------------------------------------------------

const nameOf = (schema) => schema.$ref?.split("/").pop() ?? null;
const shortName = (name) => name.split(".").pop(); // two types of one name have their module in it
const resolved = (schema) => (schema.$ref ? components[nameOf(schema)] ?? {} : schema);

function range({ minimum, maximum }) {
  const whole = Number.MAX_SAFE_INTEGER; // beyond it there is no limit worth reading
  const low = minimum !== undefined && minimum > -whole, high = maximum !== undefined && maximum < whole;
  if (low && high) return ` ${minimum} to ${maximum}`;
  if (low) return ` from ${minimum}`;
  return high ? ` up to ${maximum}` : "";
}

/** A schema in a few words: `integer from 0 or null`, `list of Estimate`. */
function typeOf(schema) {
  if (schema.$ref) return shortName(nameOf(schema));
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map(typeOf))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") {
    if (schema.prefixItems) return `list: ${schema.prefixItems.map(typeOf).join(", ")}`;
    return schema.items ? `list of ${within(schema.items)}` : "list";
  }
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    return `object of ${within(schema.additionalProperties)}`;
  }
  return `${schema.type ?? "anything"}${range(schema)}`;
}

/** In brackets where it is several: `list of (integer or string) or null`. */
const within = (schema) => (schema.anyOf || schema.oneOf ? `(${typeOf(schema)})` : typeOf(schema));

/** What a field means; where it may be of several types, what each of them means. */
function meaning(schema) {
  const parts = [schema.description, ...(schema.anyOf ?? []).map((one) => one.description)].filter(Boolean);
  return [...new Set(parts)].join("; ");
}

/** The objects with fields that a schema holds, itself included, each once. */
function objectsIn(schema, seen = new Set()) {
  const name = nameOf(schema);
  if (name !== null) {
    if (seen.has(name)) return [];
    seen.add(name);
  }
  const whole = resolved(schema);
  if (whole.properties) return [{ name, schema: whole }];
  const inner = [...(whole.anyOf ?? whole.oneOf ?? []), whole.items, whole.additionalProperties];
  return inner.filter((one) => one && typeof one === "object").flatMap((one) => objectsIn(one, seen));
}

/** A text in which `names` stand between backticks. */
const marked = (text) => text.split("`").map((piece, i) => (i % 2 ? element("code", "", piece) : piece));

// --- Tables ------------------------------------------------------------------------------------------

function row({ name, type, note, required, fallback }) {
  const field = element("div", "field");
  field.append(span("field-name", element("code", "", name), required ? span("tag", " required") : ""));
  field.append(span("field-type", element("code", "", type)));
  const default_ = fallback === undefined || fallback === null ? "" : `${note && ". "}Default: ${JSON.stringify(fallback)}`;
  field.append(span("explain", ...marked(note), default_));
  return field;
}

function fieldsOf(schema, depth = 0) {
  const rows = Object.entries(schema.properties).map(([name, field]) => {
    const line = row({
      name, type: typeOf(field), note: meaning(field), fallback: field.default,
      required: (schema.required ?? []).includes(name),
    });
    const inner = depth < DEEPEST ? objectsIn(field) : [];
    for (const one of inner) line.append(nested(one, depth + 1));
    return line;
  });
  return rows.length ? rows : [element("p", "explain", "An object without fields.")];
}

function nested({ name, schema }, depth) {
  const details = element("details", "inner");
  details.append(element("summary", "", `Fields of ${name ? shortName(name) : "the object"}`));
  // Drawn when they are looked at: a type may hold itself.
  details.addEventListener("toggle", () => details.append(...fieldsOf(schema, depth)), { once: true });
  return details;
}

function bodyOf(title, schema) {
  const section = element("section", "", element("h3", "", title));
  const objects = objectsIn(schema);
  const isPlain = objects.length === 1 && resolved(schema).properties;
  if (!isPlain) section.append(element("p", "explain", element("code", "", typeOf(schema))));
  for (const { name, schema: one } of objects) {
    if (!isPlain && name) section.append(element("p", "explain", `Fields of ${shortName(name)}:`));
    if (one.description) section.append(element("p", "explain", ...marked(one.description)));
    section.append(...fieldsOf(one));
  }
  return section;
}

// --- One route ---------------------------------------------------------------------------------------

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell

function curlOf(method, path, operation) {
  const [[media, content] = []] = Object.entries(operation.requestBody?.content ?? {});
  const address = location.origin + path.replace(/{(\w+)}/g, (_, name) => EXAMPLES[name] ?? name.toUpperCase());
  const parts = [`curl -s ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${quoted(address)}`];
  // The key itself is never put on the page: it would end in a shell's history or in a screenshot.
  if (key && operation.security) parts.push('-H "Authorization: Bearer $FIRSTCLICK_KEY"');
  if (media) parts.push(`-H ${quoted(`Content-Type: ${media}`)}`);
  if (media === "application/json") parts.push(`-d ${quoted(JSON.stringify(content.example ?? {}))}`);
  else if (media) parts.push("--data-binary @FILE");
  return parts.join(" \\\n    ");
}

function copyButton(pre) {
  const button = element("button", "", "Copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      say(button, "Copied");
    } catch {
      getSelection().selectAllChildren(pre); // without https the clipboard is closed to pages
      say(button, "Selected");
    }
    setTimeout(() => say(button, "Copy"), 2000);
  });
  return button;
}

function details(method, path, operation) {
  const [text, ...more] = (operation.description ?? operation.summary).split("\n\n");
  const parts = [element("p", "", ...marked(text)), ...more.map((one) => element("p", "explain", ...marked(one)))];
  const pre = element("pre", "", curlOf(method, path, operation));
  pre.tabIndex = 0;
  parts.push(element("div", "call", pre, copyButton(pre)));
  if (operation.parameters?.length) {
    const rows = operation.parameters.map((one) => row({
      name: one.name, type: typeOf(one.schema), note: `${one.description ?? ""} (${one.in})`,
      required: one.required, fallback: one.schema.default,
    }));
    parts.push(element("section", "", element("h3", "", "Parameters"), ...rows));
  }
  const body = Object.entries(operation.requestBody?.content ?? {});
  for (const [media, { schema }] of body) parts.push(bodyOf(`Body, ${media}`, schema));
  const answers = Object.entries(operation.responses);
  const good = answers.filter(([code]) => code < 400);
  for (const [media, { schema }] of Object.entries(good[0]?.[1].content ?? {})) {
    const title = `Answer ${good.map(([code]) => code).join(" or ")}, ${media}`;
    parts.push(schema ? bodyOf(title, schema) : element("h3", "", title));
  }
  const refusals = answers.filter(([code]) => code >= 400).map(([code, { description }]) =>
    element("li", "", element("code", "", code), ` ${description}`));
  parts.push(element("section", "", element("h3", "", "Refusals"), element("ul", "refusals", ...refusals)));
  return parts;
}

function route({ method, path, operation }) {
  const whole = element("details", "route");
  whole.id = `${method}${path}`;
  whole.dataset.words = `${method} ${path} ${operation.summary} ${operation.description ?? ""}`.toLowerCase();
  whole.append(element("summary", "", element("span", `method ${method}`, method.toUpperCase()),
    element("code", "path", path), span("explain", operation.summary)));
  whole.addEventListener("toggle", () => whole.append(...details(method, path, operation)), { once: true });
  return whole;
}

// --- All of them -------------------------------------------------------------------------------------

function draw(api) {
  components = api.components?.schemas ?? {};
  const routes = Object.entries(api.paths).flatMap(([path, operations]) =>
    METHODS.filter((method) => operations[method]).map((method) => ({ method, path, operation: operations[method] })));
  const groups = (api.tags ?? []).map(({ name }) => ({ title: name, routes: [] }));
  for (const one of routes) groups.find(({ title }) => one.operation.tags?.includes(title))?.routes.push(one);
  part("groups").replaceChildren(...groups.filter((group) => group.routes.length).map((group) =>
    element("section", "card", element("h2", "", group.title), ...group.routes.map(route))));
  say(part("version"), `${api.info.title} ${api.info.version}, ${routes.length} routes`);
  say(part("about-api"), api.info.description ?? "");
  show(part("document"), true);
  search();
  openNamed();
}

function search() {
  const words = part("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const group of part("groups").children) {
    let here = 0;
    for (const node of group.querySelectorAll(".route")) {
      const fits = words.every((word) => node.dataset.words.includes(word));
      show(node, fits);
      here += fits;
    }
    show(group, here > 0);
    found += here;
  }
  show(part("none"), found === 0);
}

/** The address may name a route: /ui/api#post/v1/models */
function openNamed() {
  let name = location.hash.slice(1);
  try {
    name = decodeURIComponent(name);
  } catch { /* a stray % typed by hand */ }
  const node = name ? part(name) : null;
  if (node?.matches(".route")) {
    node.open = true;
    node.scrollIntoView();
  }
}

/** A plain link sends no key: with one, the link holds the document as it came. */
async function offer(response) {
  if (key) {
    const href = URL.createObjectURL(await response.blob());
    Object.assign(part("openapi"), { href, download: "openapi.json" });
  }
  show(part("openapi"), true);
}

async function load() {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch("/openapi.json", { headers, cache: "no-store" }).catch(() => null);
  const copy = response?.clone();
  const answer = await response?.json().catch(() => null);
  show(part("failed"), false);
  const refused = response?.status === 401 || response?.status === 403; // 403: a key that may not read
  show(part("ask-key"), refused);
  if (refused) {
    show(part("key-refused"), key !== null);
    part("key").focus();
  } else if (!response?.ok || !answer) {
    say(part("failed"), answer?.error?.message ?? "The server does not answer; reload the page in a moment.");
    show(part("failed"), true);
  } else {
    draw(answer);
    offer(copy);
  }
}

part("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = part("key").value.trim();
  const sound = /^[!-~]+$/.test(given); // anything else cannot be part of a header
  show(part("key-refused"), !sound);
  if (!sound) return;
  key = given;
  memory().setItem("firstclick-key", key);
  part("key").value = "";
  load();
});
part("search").addEventListener("input", search);
addEventListener("hashchange", openNamed);
try {
  const theme = localStorage.getItem("firstclick-theme"); // as chosen on the dashboard
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* site data is blocked */ }
load();
