// The panels about items: the best slate, and how attractive each item is held to be.

import { tickOf } from "/ui/charts.js";
import { attribute, element, gauge, keep, named, part, place, say, setGauge, show, span } from "/ui/dom.js";
import { count, counted, percent, percents, roundSteps } from "/ui/numbers.js";

const nameOf = (item) => (String(item.name ?? "").trim() ? String(item.name) : String(item.id));
const keyOf = (item) => JSON.stringify(item.id);
const rangeOf = ({ mean, deviation }) => ({ mean, low: mean - 2 * deviation, high: mean + 2 * deviation });

/** Steps of a scale of attractions: whiskers of the first items and the usual one fit; a rare one may not. */
function scaleOf(items) {
  const highs = items.filter((item) => item.mean !== null).map((item) => Math.min(rangeOf(item).high, 1));
  if (highs.length === 0) return [0, 1];
  const usual = [...highs].sort((a, b) => a - b)[highs.length >> 1];
  return roundSteps(Math.min(Math.max(usual, ...highs.slice(0, 10), 0.01), 1), 5);
}

// --- The best slate ----------------------------------------------------------------------------------

let inSlate = new Set(); // keys of the items of the best slate, to mark those that are new in it
const BARS = "the chance that a visitor who looks at the item is attracted";

export function best(view) {
  const items = view.best?.items ?? [];
  const list = part("best-items");
  const top = scaleOf(items).pop();
  say(part("best-words"), wordsOfBest(view.best, view.items.shown));
  show(list, items.length > 0);
  if (items.length > 0) place(list, "grid-template-columns", tileColumns(list.clientWidth, items.length));
  keep(list, items, {
    make: () => element("li", "tile", span("rank"), named("name"), named("tag"), span("value"), gauge()),
    update(node, item, i) {
      const [rank, name, tag, value, bar] = node.children;
      node.classList.toggle("new", inSlate.size > 0 && !inSlate.has(keyOf(item)));
      say(rank, i + 1);
      say(name, nameOf(item));
      attribute(name, "title", nameOf(item));
      say(tag, item.group || "");
      say(value, item.mean === null ? "" : percent(Math.max(item.mean, 0)));
      show(bar, item.mean !== null);
      setGauge(bar, rangeOf(item), top);
    },
  });
  inSlate = new Set(items.map(keyOf));
}

function wordsOfBest(best, shown) {
  if (shown === 0) return "No item to show: the catalog is empty, or all items are withdrawn or not available.";
  if (!best) return "There is no one best slate: it depends on the visitor, or on the other items shown.";
  const opinion = best.items.some((item) => item.mean !== null);
  if (!opinion) return "This learner prefers no item to another: it draws slates by chance.";
  return `Its best slate so far, in the order of the page. Bars: ${BARS}.`;
}

/** Tiles in rows of equal length, as many in a row as there is room for. */
function tileColumns(width, tiles) {
  const room = Math.max(1, Math.floor((width + 12) / (width < 500 ? 136 : 164)));
  return `repeat(${Math.ceil(tiles / Math.ceil(tiles / room))}, minmax(0px, 260px))`;
}

// --- All items ---------------------------------------------------------------------------------------

let listed = null; // the view that the list shows, for a new search
let order = []; // keys of the items as they stand

export function estimates(view) {
  listed = view;
  const items = inOrder(found(view.estimates, part("search").value.trim().toLowerCase()));
  order = items.map(keyOf);
  const opinion = view.estimates.some((item) => item.mean !== null);
  part("estimates-scroll").classList.toggle("without-opinion", !opinion);
  const examined = view.estimates.some((item) => item.examined !== null);
  part("estimates-scroll").classList.toggle("without-counts", !examined);
  say(part("estimates-words"), wordsOfEstimates(view, opinion));
  show(part("estimates-none"), items.length === 0);
  say(part("estimates-none"), view.estimates.length ? "No item with this name, id or group." : "No items.");

  const steps = scaleOf(view.estimates);
  const top = steps[steps.length - 1];
  keep(part("estimates-axis"), opinion ? steps : [], {
    make: () => span(),
    update(node, step) {
      say(node, tickOf(step));
      place(node, "left", `${((step / top) * 100).toFixed(2)}%`);
    },
  });
  place(part("estimates-list"), "--step", `${(100 / (steps.length - 1)).toFixed(4)}%`);
  const update = (row, item) => updateRow(row, item, top);
  keep(part("estimates-list"), items, { key: keyOf, make: makeRow, update });
}

function found(items, wanted) {
  const text = (item) => `${nameOf(item)}\n${item.id}\n${item.group ?? ""}`.toLowerCase();
  return items.filter((item) => text(item).includes(wanted));
}

/** Items as given, or as they stand while the reader points at the list: rows should not run from the eye. */
function inOrder(items) {
  if (!part("estimates-scroll").matches(":hover") || !matchMedia("(hover: hover)").matches) return items;
  const places = new Map(order.map((key, i) => [key, i]));
  const placeOf = (item) => places.get(keyOf(item)) ?? order.length;
  return [...items].sort((a, b) => placeOf(a) - placeOf(b));
}

function wordsOfEstimates({ best, estimates: items, items: { shown, withdrawn, unavailable } }, opinion) {
  if (items.length === 0) return "";
  const all = counted(shown, "item");
  const number = items.length < shown ? `The first ${count(items.length)} of ${all}` : all;
  const hidden = withdrawn + unavailable;
  const gone = hidden ? `; ${count(hidden)} that are withdrawn or not available are left out` : "";
  if (!opinion && !best) return `What it holds for an item depends on the visitor. ${number}${gone}.`;
  if (!opinion) return `This learner holds no opinion about items. ${number}${gone}.`;
  return `Bars: ${BARS}. Thin lines: the range still likely; it shrinks as visitors look. ${number}${gone}.`;
}

function makeRow() {
  const value = span("value", span(), span("unseen"));
  const seen = span("seen", span(), span("unseen", " times looked at"));
  return element("li", "estimate", span("who", named("name"), named("tag")), gauge(), value, seen);
}

function updateRow(row, item, top) {
  const [who, bar, value, seen] = row.children;
  const { low, high } = rangeOf(item);
  const range = item.mean === null ? "" : `likely ${percents(Math.max(low, 0), Math.min(high, 1))}`;
  say(who.children[0], nameOf(item));
  attribute(who.children[0], "title", nameOf(item));
  say(who.children[1], item.group || "");
  setGauge(bar, rangeOf(item), top);
  attribute(bar, "title", range);
  say(value.children[0], item.mean === null ? "–" : percent(Math.max(item.mean, 0)));
  say(value.children[1], ` ${range}`);
  show(seen, item.examined !== null);
  say(seen.children[0], count(item.examined));
}

export function followSearch() {
  part("search").addEventListener("input", () => listed && estimates(listed));
}
