// The panels: each function shows one part of a view (the JSON of GET /v1/models/{model}/view).

import { clickthrough, clickthroughFrame, draw } from "/ui/charts.js";
import { attribute, element, gauge, keep, named, part, place, say, setGauge, show, span } from "/ui/dom.js";
import { best, estimates } from "/ui/items.js";
import { ago, count, counted, duration, gather, percent, percents, roundSteps } from "/ui/numbers.js";
import { timesAsMany, wilson } from "/ui/numbers.js";

/** Shows a whole view. A panel that fails is reported to the console; the others go on. */
export function showView(view) {
  const learned = view.totals.slates > 0;
  for (const section of document.querySelectorAll("[data-learned]")) show(section, learned);
  const panels = learned ? [learning, history, best, estimates, exploring, positions, recent] : [];
  for (const panel of [...panels, feedback, process, replicas]) {
    try {
      panel(view);
    } catch (error) {
      reportError(error);
    }
  }
}

// --- The headline, and learning against the start ----------------------------------------------------

let spokenAt = -Infinity;

function learning({ start, lately, totals }) {
  const both = Boolean(start && lately);
  const now = lately ?? { label: `${counted(totals.slates, "slate")} so far`, ...totals };
  const { rate } = wilson(now.clicks, now.slates);
  say(part("headline"), percent(rate));
  say(part("headline-note"), `of the ${now.label}`);
  // Screen readers hear a new value, but not every second.
  if (performance.now() - spokenAt > 20000) {
    say(part("spoken"), `${percent(rate)} of slates got a click`);
    spokenAt = performance.now();
  }
  compare(both ? [start, now] : [now]);
  show(part("against-start-words"), both);
  if (both) againstStart(start, now);
  else say(part("against-start-note"), "How it compares with the start is shown after some more slates.");
}

/** A bar with a whisker for each of one or two counts; the last is the present. */
function compare(counts) {
  const highs = counts.map(({ clicks, slates }) => wilson(clicks, slates).high);
  const top = roundSteps(Math.max(...highs), 4).pop();
  keep(part("against-start-bars"), counts, {
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
      attribute(node.children[2], "title", `${percents(low, high)} with 95 % confidence`);
    },
  });
}

function againstStart(start, now) {
  const times = timesAsMany(start, now);
  const words = part("against-start-words");
  if (words.childElementCount === 0) words.append(element("strong"), span());
  const [first, rest] = words.children;
  say(first, times ? `${times.ratio.toFixed(1)} times` : "Too few clicks");
  const range = times && `${times.low.toFixed(1)} to ${times.high.toFixed(1)} times`;
  const clear = times !== null && (times.low > 1 || times.high < 1);
  if (clear) say(rest, ` the clicks of the start (95 % sure: ${range}).`);
  else if (times) say(rest, ` the clicks of the start, which may still be chance (${range}).`);
  else say(rest, " to compare with the start.");
  const more = Math.round(1000 * (now.clicks / now.slates - start.clicks / start.slates));
  const difference = `${count(Math.abs(more))} ${more < 0 ? "fewer" : "more"}`;
  const note = `Of 1,000 slates, ${difference} get a click than at the start.`;
  say(part("against-start-note"), clear ? note : "");
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
  const shapes = clickthrough(points, view.start, view.now, width, height);
  const pointed = pointedAt !== null && points.length > 0;
  show(part("reading"), pointed);
  if (pointed) shapes.push(...reading(view, points, width, height));
  draw(svg, shapes);
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

function recent(view) {
  say(part("recent-words"), view.recent.length === 0 ? "No slate was answered lately." :
    "What each of them saw, from the first position on; what is filled was clicked.");
  keep(part("recent-list"), view.recent, {
    make: () => element("li", "", span("when"), element("ol"), span("outcome", named("name"), span())),
    update(node, { time, items, click, clicks }) {
      const [when, slate, outcome] = node.children;
      say(when, ago(view.now, time));
      keep(slate, items, {
        make: () => element("li", "", named("name")),
        update(cell, name, i) {
          say(cell.firstElementChild, String(name).trim() ? name : "–");
          attribute(cell, "title", String(name));
          cell.classList.toggle("clicked", clicks.includes(i));
        },
      });
      say(outcome.children[0], items[click] ?? "");
      say(outcome.children[1], click === null ? "no click" : `clicked ${clicks.map((i) => i + 1).join(", ")}`);
    },
  });
  // Too narrow for names: the places are drawn without them, and the one clicked is named beside.
  const list = part("recent-list");
  const room = list.clientWidth - 180; // without the columns beside
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
  say(part("outcomes-none"), none.length ? `None ${none.join(", ").replace(/, ([^,]*)$/, " or $1")}.` : "");
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
