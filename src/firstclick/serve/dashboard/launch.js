// The panels of a launch: the trial and what it says, and the list as a floor under the policy.

import { draw, intervals, intervalsHeight } from "/ui/charts.js";
import { attribute, element, keep, part, place, say, show, span } from "/ui/dom.js";
import { ago, count, counted, percent, percents, signed } from "/ui/numbers.js";

// --- The trial ---------------------------------------------------------------------------------------

const MARKS = { better: "▲", worse: "▼", "no difference": "=", "not yet": "…" };

/** "baseline" is what programs call it; to its owner it is the list. */
const titleOf = ({ answer: { comparisons } }) =>
  comparisons.length === 1 && comparisons[0].against === "baseline"
    ? "Is it better than your list?"
    : "Which arm is better?";

/** As the rest of the page writes it: "27 %". */
const spaced = (sentence) => sentence.replace(/(\d)%/g, "$1\u00a0%");

export function trial({ trial: told, against_list: list, now }) {
  show(part("trial"), told !== null);
  if (told === null) return;
  const { answer } = told;
  say(part("trial-title"), titleOf(told));
  say(part("trial-state"), `Trial ${told.running ? "running" : "stopped"}, started ${ago(now, told.started)}`);
  show(part("trial-stopped"), !told.running);
  say(part("trial-stopped"), told.running ? "" : wordsOfStop(told));
  keep(part("trial-answers"), answer.comparisons, {
    key: ({ arm }) => arm,
    make: () => element("div", "answer", element("p", "verdict", span("mark"), element("strong"), span()), picture()),
    update: (node, comparison) => answered(node, comparison, answer),
  });
  arms(answer.arms);
  checks(answer.checks);
  say(part("trial-notes"), notes(told, list));
  keep(part("trial-assumptions"), answer.assumptions, {
    make: () => element("li"),
    update: (node, sentence) => say(node, spaced(sentence)),
  });
  if (part("trial-details").open) table(answer.comparisons);
}

function wordsOfStop({ stopped_because: why, shown_since: who }) {
  const reason = why === "worse" ? "Stopped by itself, because the policy was worse." : "Stopped by hand.";
  const since = who === "baseline" ? "Your list decides all slates since." : "The policy decides slates since.";
  return `${reason} ${since}`;
}

function picture() {
  const figure = element("figure", "");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "intervals");
  svg.setAttribute("role", "img");
  figure.append(svg);
  return figure;
}

function answered(node, { arm, against, verdict, by_units: byUnits, units, singles, last }, { margin }) {
  const [words, figure] = node.children;
  attribute(node, "data-kind", verdict.kind);
  // "Better: it gets ..." in two parts: the first word is what people look for.
  const [, first, rest] = /^([^:]*): ?(.*)$/s.exec(spaced(verdict.sentence)) ?? [null, verdict.kind, verdict.sentence];
  say(words.children[0], MARKS[verdict.kind] ?? "");
  attribute(words.children[0], "aria-hidden", "true");
  say(words.children[1], first);
  say(words.children[2], /^[a-z]+[ ,]/.test(rest) ? rest[0].toUpperCase() + rest.slice(1) : rest);
  const all = byUnits ? units : singles;
  const width = Math.floor(figure.parentElement.getBoundingClientRect().width);
  const pages = `${width < 420 ? "" : "all "}${counted(all.pages, "page")}`;
  const rows = [
    { label: pages, ...all },
    { label: `last full ${count(last.size)}`, ...last },
  ].filter(({ ratio }) => ratio !== null);
  show(figure, rows.length > 0);
  if (rows.length === 0 || width === 0) return;
  const svg = figure.firstElementChild;
  const height = intervalsHeight(rows);
  attribute(svg, "height", String(height));
  attribute(svg, "width", String(width));
  attribute(svg, "aria-label", rows.map((row) => `${row.label}: ${relative(row.ratio)}`).join("; "));
  draw(svg, intervals(rows, { against, margin, text: ({ ratio }) => relative(ratio) }, width, height));
}

/** A ratio of clicks as what it is more or less: "+38 % (25 to 57 %)". */
function relative({ value, low, high }) {
  if (value === null) return "–";
  if (high === null) return `${signed(value - 1)} (${signed(low - 1)} or more)`;
  return `${signed(value - 1)} (${signed(low - 1)} to ${signed(high - 1)})`;
}

function arms(counts) {
  const singles = counts.some((arm) => arm.pages_without_unit > 0);
  const late = counts.some((arm) => arm.corrected > 0);
  const head = ["Arm", "Share", "Pages", "Clicks", "Rate"];
  if (singles) head.push("Pages without unit");
  if (late) head.push("Late clicks");
  keep(part("trial-head"), head, {
    key: (name) => name,
    make: (name) => Object.assign(element("th", "", name), { scope: "col" }),
    update() {},
  });
  keep(part("trial-arms"), counts, {
    key: ({ name }, i) => `${head.length} ${i} ${name}`,
    make: () => {
      const row = element("tr", "", Object.assign(element("th", "name"), { scope: "row" }));
      for (let i = 1; i < head.length; i++) row.append(element("td"));
      return row;
    },
    update(row, { name, share, pages, clicks, rate, pages_without_unit: single, corrected }) {
      const cells = [name, percent(share), count(pages), count(clicks), percent(rate, 1)];
      if (singles) cells.push(count(single));
      if (late) cells.push(count(corrected));
      cells.forEach((text, i) => say(row.children[i], text));
    },
  });
}

function checks(told) {
  keep(part("trial-checks"), told, {
    key: ({ name }) => name,
    make: () => element("li", "", span("mark"), span()),
    update(node, { fine, sentence }) {
      node.classList.toggle("notable", fine === false);
      say(node.children[0], fine === false ? "!" : fine ? "✓" : "–");
      attribute(node.children[0], "title", fine === false ? "alarm" : fine ? "fine" : "cannot tell yet");
      say(node.children[1], spaced(sentence));
    },
  });
}

function notes({ waiting, answer, unreported }, list) {
  const said = [];
  if (waiting > 0) said.push(`${counted(waiting, "page")} wait: a page counts when its time has passed.`);
  const late = answer.arms.reduce((sum, arm) => sum + arm.corrected, 0);
  if (late > 0) said.push(`${counted(late, "click")} came after their page was counted, and are not in the rates.`);
  if (unreported !== null && unreported >= 0.005) said.push(`Nobody said what became of ${percent(unreported)} of the slates.`);
  if (answer.periods > 1) said.push(`Shares were changed: ${count(answer.periods)} periods, each with its own rates.`);
  if (list && list.max_loss < 1) {
    said.push("The policy's arm is all that its visitors saw, your list too where the floor showed it.");
  }
  return said.join(" ");
}

function table(comparisons) {
  const rows = comparisons.flatMap(({ arm, by_units: byUnits, units, singles, last }) => {
    const [all, others] = byUnits ? [units, singles] : [singles, units];
    const other = `${counted(others.pages, "page")} ${byUnits ? "without" : "with"} unit`;
    return [
      [`${arm}, ${counted(all.pages, "page")}`, all],
      ...(others.pages > 0 ? [[`${arm}, ${other}`, others]] : []),
      [`${arm}, last full ${count(last.size)}`, last],
    ];
  });
  keep(part("trial-table"), rows, {
    make: () => element("tr", "", element("th"), ...[1, 2, 3, 4].map(() => element("td"))),
    update(node, [label, { rate, rate_against: against, difference, ratio }]) {
      const cells = [label, percent(rate, 1), percent(against, 1), inPoints(difference), times(ratio)];
      cells.forEach((text, i) => say(node.children[i], text));
    },
  });
}

function inPoints(difference) {
  if (difference === null || difference.value === null) return "–";
  const points = (value) => (value === null ? "?" : signed(value, "").trim());
  return `${points(difference.value)} (${points(difference.low)} to ${points(difference.high)})`;
}

function times(ratio) {
  if (ratio === null || ratio.value === null) return "–";
  const high = ratio.high === null ? "or more" : `to ${ratio.high.toFixed(2)}`;
  return `${ratio.value.toFixed(2)} (${ratio.low.toFixed(2)} ${high})`;
}

// --- The list as a floor -----------------------------------------------------------------------------

const DECIDERS = {
  policy: ["the policy", "the slates that it chose, or explored"],
  floor: ["your list, by the floor", "until the policy has shown that it may decide more"],
  holdout: ["your list, held out", "for the trial to compare with"],
  baseline: ["your list", "since the trial was stopped"],
};
const OTHER_ARM = [null, "another arm of the trial"];

export function floor({ against_list: list, deciders, trial: told, model }) {
  show(part("floor"), list !== null);
  if (list === null) return;
  const all = deciders.reduce((sum, { slates }) => sum + slates, 0);
  const kindOf = (by) => (by in DECIDERS ? by : "arm");
  const byPolicy = deciders.find(({ by }) => by === "policy")?.slates ?? 0;
  say(part("floor-title"), list.max_loss < 1 ? "Your list as a floor" : "Beside your list");
  say(part("floor-share"), all ? percent(byPolicy / all) : "–");
  say(part("floor-share-words"), `of the ${all ? `last ${counted(all, "slate")}` : "slates"}, the policy decided`);
  keep(part("floor-bar"), deciders, {
    key: ({ by }) => by,
    make: ({ by }) => span(`by-${kindOf(by)}`),
    update: (node, { slates }) => place(node, "width", `${((slates / all) * 100).toFixed(1)}%`),
  });
  keep(part("floor-parts"), deciders, {
    key: ({ by }) => by,
    make: ({ by }) => element("li", "", span(`key by-${kindOf(by)}`), span("name"), span("value")),
    update(node, { by, slates }) {
      const [name, why] = DECIDERS[by] ?? OTHER_ARM;
      say(node.children[1], name ?? by);
      attribute(node, "title", why);
      say(node.children[2], percent(slates / all));
    },
  });
  const limited = list.max_loss < 1;
  const slates = list.policy_slates + list.list_slates;
  show(part("floor-promise"), limited);
  say(part("floor-promised"), `At least ${percent(1 - list.max_loss)}`);
  say(part("floor-promise-words"), " of the clicks that your list alone would have got: that is the promise.");
  say(part("floor-so-far"), soFar(list, slates, limited));
  const rate = slates ? ` Its click rate lies between ${percents(list.rate_low, list.rate_high)}.` : "";
  const sure = `It holds with ${percent(list.confidence)} confidence, at all times at once. `;
  say(part("floor-assumed"), `${limited ? sure : ""}${list.assumed}${list.list_slates ? rate : ""}`);
  const more = list.listed > list.items.length ? ` and ${count(list.listed - list.items.length)} more` : "";
  say(part("floor-list"), `Your list: ${list.items.join(", ")}${more}.`);
  show(part("floor-hint"), told === null);
  say(part("floor-command"), `firstclick trial start ${model} --server ${location.origin}`);
}

function soFar({ at_least: least }, slates, limited) {
  if (!limited) return "No floor is set: the list is here to compare with.";
  if (slates === 0) return "No slate was answered yet.";
  return `So far, over ${counted(slates, "slate")}, it is at least ${percent(least)}.`;
}

/** Draws the pictures again after a change of their size. */
export function followTrial(again) {
  new ResizeObserver(again).observe(part("trial-answers"));
  part("trial-details").addEventListener("toggle", again);
}
