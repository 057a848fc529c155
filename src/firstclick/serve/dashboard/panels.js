// The panels: each function shows one part of a view (the JSON of GET /v1/models/{model}/view).

import { clickthrough, clickthroughFrame, draw } from "/ui/charts.js";
import { attribute, element, gauge, keep, named, part, place, say, setGauge, show, span } from "/ui/dom.js";
import { best, estimates } from "/ui/items.js";
import { floor, followTrial, trial } from "/ui/launch.js";
import { ago, count, counted, duration, gather, percent, percents, roundSteps } from "/ui/numbers.js";
import { timesAsMany, wilson } from "/ui/numbers.js";

/** Shows a whole view. A panel that fails is reported to the console; the others go on. */
export function showView(view) {
  const learned = view.totals.slates > 0;
  for (const section of document.querySelectorAll("[data-learned]")) show(section, learned);
  const panels = learned ? [learning, history, best, estimates, exploring, positions, recent] : [];
  for (const panel of [...panels, trial, floor, feedback, process, replicas]) {
    try {
      panel(view);
    } catch (error) {
      reportError(error);
    }
  }
}

// --- The headline, and what it compares with: the list, or its own start -----------------------------

let spokenAt = -Infinity;

function learning({ start, lately, totals, against_list: list, trial: told }) {
  const now = lately ?? { label: `${counted(totals.slates, "slate")} so far`, ...totals };
  const { rate } = wilson(now.clicks, now.slates);
  say(part("headline"), percent(rate));
  say(part("headline-note"), `of the ${now.label}`);
  // Screen readers hear a new value, but not every second.
  if (performance.now() - spokenAt > 20000) {
    say(part("spoken"), `${percent(rate)} of slates got a click`);
    spokenAt = performance.now();
  }
  if (list) againstList(list, told);
  else againstStart(start, lately, now);
}

function againstStart(start, lately, now) {
  const both = Boolean(start && lately);
  compare(both ? [start, now] : [now]);
  show(part("against-words"), both);
  if (!both) {
    say(part("against-note"), "How it compares with its own start is shown after some more slates.");
    return;
  }
  const own = `its own ${start.label}`;
  const times = timesAsMany(start, now);
  const range = times && `${times.low.toFixed(1)} to ${times.high.toFixed(1)} times`;
  const clear = times !== null && (times.low > 1 || times.high < 1);
  const sure = clear ? ` (95 % sure: ${range}).` : `, which may still be chance (${range}).`;
  inTimes(times, times ? ` the clicks of ${own}${sure}` : ` to compare with ${own}.`);
  const more = clear ? `${ofThousand(start, now)} than in ${own}. ` : "";
  say(part("against-note"), `${more}Give the list that you showed before as a baseline to compare with that.`);
}

function againstList(list, told) {
  const theirs = { label: `your list, ${counted(list.list_slates, "slate")}`, slates: list.list_slates, clicks: list.list_clicks };
  const ours = { label: `the policy, ${counted(list.policy_slates, "slate")}`, slates: list.policy_slates, clicks: list.policy_clicks };
  compare([theirs, ours]);
  show(part("against-words"), true);
  const times = timesAsMany(theirs, ours);
  // How sure that is, a trial says better: visitors return, and people look more than once.
  const clear = times !== null && (times.low > 1 || times.high < 1);
  const range = times && `${times.low.toFixed(1)} to ${times.high.toFixed(1)} times`;
  const sure = !clear ? ", which may still be chance." : told ? "." : `, likely ${range}.`;
  inTimes(times, times ? ` the clicks of your list, for each slate that the policy decided${sure}` : " to compare with your list.");
  const more = clear ? `${ofThousand(theirs, ours)} than with your list. ` : "";
  say(part("against-note"), `${more}${told && times ? "How sure that is, the trial says." : ""}`);
}

/** "2.1 times" in bold, and the rest. */
function inTimes(times, rest) {
  const words = part("against-words");
  if (words.childElementCount === 0) words.append(element("strong"), span());
  say(words.children[0], times ? `${times.ratio.toFixed(1)} times` : "Too few clicks");
  say(words.children[1], rest);
}

function ofThousand(other, now) {
  const more = Math.round(1000 * (now.clicks / now.slates - other.clicks / other.slates));
  return `Of 1,000 slates, ${count(Math.abs(more))} ${more < 0 ? "fewer" : "more"} get a click`;
}

/** A bar with a whisker for each of one or two counts; the last is the present. */
function compare(counts) {
  const highs = counts.map(({ clicks, slates }) => wilson(clicks, slates).high);
  const top = roundSteps(Math.min(Math.max(...highs), 1), 4).pop();
  keep(part("against-bars"), counts, {
    key: (_, i) => counts.length - i,
    make(_, i) {
      const kind = i + 1 < counts.length ? "compared start" : "compared";
      return element("div", kind, span("name"), span("value"), gauge());
    },
    update(node, { label, clicks, slates }) {
      const { rate, low, high } = wilson(clicks, slates);
      say(node.children[0], counts.length > 1 ? label : "likely range");
      say(node.children[1], counts.length > 1 ? percent(rate) : percents(low, high));
      setGauge(node.children[2], { mean: rate, low, high }, top);
      attribute(node.children[2], "title", rate === null ? "" : `${percents(low, high)} with 95 % confidence`);
    },
  });
}

// --- Click-through over time -------------------------------------------------------------------------

let drawn = null; // the view that the chart shows, for a change of its size
let pointedAt = null; // where the reader points at the chart, in pixels from its left

function history(view) {
  drawn = view;
  const points = gather(view.clickthrough);
  drawChart(view, points);
  say(part("clickthrough-words"), inWords(view, points));
  if (!part("clickthrough-details").open) return;
  keep(part("clickthrough-table"), [...points].reverse(), {
    key: (point) => point.from,
    make: () => element("tr", "", element("th"), ...[1, 2, 3, 4].map(() => element("td"))),
    update(node, { from, slates, clicks }) {
      const { rate, low, high } = wilson(clicks, slates);
      const cells = [ago(view.now, from), count(slates), count(clicks), percent(rate), percents(low, high)];
      cells.forEach((text, i) => say(node.children[i], text));
    },
  });
}

function drawChart(view, points) {
  const svg = part("clickthrough-chart");
  const { width, height } = svg.getBoundingClientRect();
  if (width === 0) return;
  attribute(svg, "aria-label", `Share of slates with a click over time. ${inWords(view, points)}`);
  const shapes = clickthrough(points, levelOf(view), view.now, width, height);
  const pointed = pointedAt !== null && points.length > 0;
  show(part("reading"), pointed);
  if (pointed) shapes.push(...reading(view, points, width, height));
  draw(svg, shapes);
}

const ENOUGH = 50; // slates of the list from which on its level is worth a line

function levelOf({ start, against_list: list }) {
  if (!list) return start && { word: "start", ...start };
  return list.list_slates < ENOUGH ? null : { word: "list", slates: list.list_slates, clicks: list.list_clicks };
}

/** Says the value nearest to where the reader points, and returns the shapes that mark it. */
function reading(view, points, width, height) {
  const frame = clickthroughFrame(points, view.now, width, height);
  const at = (point) => frame.x((point.from + point.to) / 2);
  const far = (point) => Math.abs(at(point) - pointedAt);
  const point = points.reduce((a, b) => (far(b) < far(a) ? b : a));
  const { rate, low, high } = wilson(point.clicks, point.slates);
  const when = ago(view.now, point.to);
  const what = `${percent(rate)} of ${counted(point.slates, "slate")}`;
  say(part("reading"), `${what}, ${when}\n(${percents(low, high)})`);
  const half = part("reading").offsetWidth / 2;
  place(part("reading"), "left", `${Math.round(Math.min(Math.max(at(point), half), width - half))}px`);
  return [
    ["line", { class: "pointer", x1: at(point), x2: at(point), y1: frame.top, y2: frame.bottom }],
    ["circle", { class: "end", cx: at(point), cy: frame.y(rate), r: 4 }],
  ];
}

function inWords({ totals, clickthrough: buckets, now, since }, points) {
  if (points.length === 0) return "No slate was answered in this time.";
  const first = points[0], last = points[points.length - 1];
  const share = (point) => percent(point.clicks / point.slates);
  // A bucket may begin before the first answer, and the newest one ends after now.
  const took = Math.min(last.to, now) - Math.max(first.from, since ?? 0);
  const trend = `From ${share(first)} to ${share(last)} in ${duration(took)}. `;
  const all = `In all ${counted(totals.slates, "slate")}, ${count(totals.clicks)} with a click,`;
  const lately = buckets.slice(-15, -1); // the newest bucket is not over yet
  const seconds = lately.reduce((sum, bucket) => sum + bucket.width, 0);
  const slates = lately.reduce((sum, bucket) => sum + bucket.slates, 0);
  const pace = seconds > 0 && slates >= seconds ? `, ${count(slates / seconds)} a second lately` : "";
  const from = since ? ` since the first one ${ago(now, since)}` : "";
  return `${points.length > 1 ? trend : ""}${all}${from}${pace}.`;
}

export function followChart() {
  const svg = part("clickthrough-chart");
  const again = () => drawn && drawChart(drawn, gather(drawn.clickthrough));
  const point = (event) => {
    pointedAt = event.type === "pointerleave" ? null : event.clientX - svg.getBoundingClientRect().left;
    again();
  };
  for (const type of ["pointermove", "pointerdown", "pointerleave"]) svg.addEventListener(type, point);
  new ResizeObserver(again).observe(svg);
  followTrial(() => drawn && trial(drawn));
  part("clickthrough-details").addEventListener("toggle", () => drawn && history(drawn));
}

// --- Visitors ----------------------------------------------------------------------------------------

function exploring({ exploring: known }) {
  show(part("exploring-share"), known !== null);
  show(part("exploring-bar"), known !== null);
  say(part("exploring-words"), wordsOfExploring(known));
  if (known === null) return;
  say(part("exploring-share"), percent(known.share));
  place(part("exploring-bar").firstElementChild, "width", `${(known.share * 100).toFixed(1)}%`);
}

function wordsOfExploring(known) {
  if (known === null) return "How many slates differ from the best guess is not known.";
  const reason = "to find out about items it is less sure of. Much at first, less with time.";
  return `of the last ${counted(known.of, "slate")} differed from the best guess, ${reason}`;
}

function positions(view) {
  const all = view.positions.reduce((sum, clicks) => sum + clicks, 0);
  const most = Math.max(1, ...view.positions);
  keep(part("positions-list"), view.positions, {
    make(_, i) {
      const track = span("track", span("bar"));
      return element("li", "", span("rank", String(i + 1)), track, span("value"), span("share"));
    },
    update(node, clicks) {
      const [, track, value, share] = node.children;
      place(track.firstElementChild, "width", `${((clicks / most) * 100).toFixed(2)}%`);
      say(value, count(clicks));
      say(share, all ? percent(clicks / all) : "");
    },
  });
}

const CELL = 76; // pixels that a name needs to be more than a stump

// Why an item was shown, as a word beside the slate; another arm of a trial has its own name.
const REASONS = {
  policy: "policy", explored: "explored", pinned: "pinned", floor: "list, floor", holdout: "list, holdout",
  baseline: "list",
};
const OF_LIST = ["floor", "holdout", "baseline"];

function recent(view) {
  const listed = view.recent.some(({ reasons }) => reasons.some((why) => OF_LIST.includes(why)));
  const outlined = listed ? " What has a border only is from your list." : "";
  say(part("recent-words"), view.recent.length === 0 ? "No slate was answered lately." :
    `What each of them saw, from the first position on, and who decided it; what is filled was clicked.${outlined}`);
  keep(part("recent-list"), view.recent, {
    make: () => element("li", "", span("when"), span("why"), element("ol"), span("outcome", named("name"), span())),
    update(node, { time, items, reasons, click, clicks }) {
      const [when, why, slate, outcome] = node.children;
      say(when, ago(view.now, time));
      say(why, [...new Set(reasons)].map((reason) => REASONS[reason] ?? reason).join(" + "));
      keep(slate, items, {
        make: () => element("li", "", named("name")),
        update(cell, name, i) {
          say(cell.firstElementChild, String(name).trim() ? name : "–");
          attribute(cell, "title", reasons[i] ? `${name} (${REASONS[reasons[i]] ?? reasons[i]})` : String(name));
          cell.classList.toggle("clicked", clicks.includes(i));
          cell.classList.toggle("of-list", OF_LIST.includes(reasons[i]));
          cell.classList.toggle("pinned", reasons[i] === "pinned");
        },
      });
      say(outcome.children[0], items[click] ?? "");
      say(outcome.children[1], click === null ? "no click" : `clicked ${clicks.map((i) => i + 1).join(", ")}`);
    },
  });
  // Too narrow for names: the places are drawn without them, and the one clicked is named beside.
  const list = part("recent-list");
  const room = list.clientWidth - 280; // without the columns beside
  list.classList.toggle("cramped", view.recent.some(({ items }) => room < items.length * CELL));
}

// --- Feedback and the server -------------------------------------------------------------------------

const OUTCOMES = {
  duplicate: ["sent again", "already counted, so not counted twice"],
  conflict: ["contradicting", "a second answer with another click; the first one stays"],
  corrected: ["corrected", "clicks on slates that counted as no click, because nobody had reported them in time"],
  late: ["late clicks", "on slates that count as no click, which this policy cannot take back"],
  unknown: ["unknown", "with a token that is not from this server"],
  expired: ["too late", "came after the slate's time was over"],
  malformed: ["not readable", "not in the form that the interface asks for"],
  "too-large": ["too large", "longer than allowed"],
  overloaded: ["turned away", "too many at once; the sender was told to try again"],
  unavailable: ["not stored", "the storage was away; the sender was told to try again"],
};

function feedback(view) {
  const names = Object.keys(OUTCOMES);
  const happened = names.filter((name) => view.feedback[name] > 0);
  say(part("accepted"), count(view.feedback.accepted));
  keep(part("outcomes"), happened, {
    key: (name) => name,
    make(name) {
      const [title, meaning] = OUTCOMES[name];
      const notable = name === "duplicate" || name === "corrected" ? "" : "notable";
      return element("li", notable, span("value"), element("strong", "", title), span("explain", meaning));
    },
    update: (node, name) => say(node.firstElementChild, count(view.feedback[name])),
  });
  const none = names.filter((name) => !happened.includes(name)).map((name) => OUTCOMES[name][0]);
  reporting(view.outcomes);
  say(part("outcomes-none"), none.length ? `None ${none.join(", ").replace(/, ([^,]*)$/, " or $1")}.` : "");
}

/** Slates of which nobody said what became of them. */
function reporting({ timed_out: timedOut, unreported, warnings }) {
  const said = [];
  if (unreported !== null && unreported >= 0.005) said.push(`${percent(unreported)} of the slates recommended lately were never reported.`);
  if (timedOut > 0) said.push(`${counted(timedOut, "slate")} in all counted as no click, because nobody reported them in time.`);
  show(part("reporting"), said.length > 0);
  say(part("reporting"), said.join(" "));
  keep(part("warnings"), warnings, {
    make: () => element("li", "warning"),
    update: (node, sentence) => say(node, sentence[0].toUpperCase() + sentence.slice(1)),
  });
}

const DURABLE = {
  full: "each answer is on disk before it is confirmed",
  relaxed: "answers of the last moments may be lost when the power fails",
};

function process(view) {
  const { started, version, store, durability, recommended, snapshot_seq: snapshot } = view.process;
  const hidden = [["withdrawn", "withdrawn"], ["unavailable", "not available"]]
    .filter(([word]) => view.items[word])
    .map(([word, told]) => `, ${count(view.items[word])} ${told}`)
    .join("");
  const saved = snapshot ? `, the first ${count(snapshot)} saved in a snapshot too` : "";
  const facts = [
    ["Learner", `${view.policy}, slates of ${view.k}`],
    ["Items", `${count(view.items.shown)}${hidden}`],
    ["Slates recommended", `${count(recommended)} since it started ${ago(view.now, started)}`],
    ["Events in the log", `${count(view.seq)}${saved}`],
    ["Storage", `${store}, ${DURABLE[durability] ?? durability}`],
    ["Version", version],
  ];
  keep(part("facts"), facts, {
    key: ([name]) => name,
    make: ([name]) => element("div", "", element("dt", "", name), element("dd")),
    update: (node, [, value]) => say(node.children[1], value),
  });
}

const LATE = 1, SILENT = 10; // seconds

function replicas(view) {
  keep(part("replicas"), view.replicas, {
    key: (replica) => replica.name,
    make: () => element("li", "", named("name"), span("value")),
    update(node, { name, lag, seen, self }) {
      const [who, how] = node.children;
      const silent = !self && seen > SILENT, late = lag >= LATE;
      say(who, self && view.replicas.length > 1 ? `${name} (this one)` : name);
      say(how, silent ? `silent for ${duration(seen)}` : late ? `${duration(lag)} behind` : "up to date");
      node.classList.toggle("notable", silent || late);
    },
  });
}
