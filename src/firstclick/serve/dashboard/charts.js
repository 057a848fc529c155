// Figures. A figure is a pure function of its data and its size that gives a list of shapes, each [tag,
// attributes, text]; `draw` puts them into an SVG element, changing in place what is there: nothing flickers.

import { percent, roundSteps, signed, timeSteps, wilson } from "/ui/numbers.js";

const SVG = "http://www.w3.org/2000/svg";

export function draw(svg, shapes) {
  shapes.forEach(([tag, attributes, text = ""], i) => {
    let node = svg.childNodes[i];
    if (!node || node.nodeName !== tag) {
      const made = document.createElementNS(SVG, tag);
      if (node) node.replaceWith(made);
      else svg.append(made);
      node = made;
    }
    for (const name of node.getAttributeNames()) if (!(name in attributes)) node.removeAttribute(name);
    for (const [name, value] of Object.entries(attributes)) {
      if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
    }
    if (node.textContent !== text) node.textContent = text;
  });
  while (svg.childNodes.length > shapes.length) svg.lastChild.remove();
}

/** A round share as a label: "0", "2 %", "0.5 %". */
export const tickOf = (share) => (share === 0 ? "0" : `${Number((share * 100).toFixed(3))}\u00a0%`);

const px = (value) => Math.round(value * 10) / 10;

/** Where the plot of click-through lies, and how values and times become places in it. */
export function clickthroughFrame(points, now, width, height) {
  const left = 46, right = width < 480 ? 72 : 82, top = 12, bottom = 30;
  const first = points.length ? points[0].from : now - 60;
  const end = Math.max(now, points.length ? points[points.length - 1].to : now);
  const span = Math.max(end - first, 10);
  // Points at both ends have few slates and wide bands: these may be cut, or the scale would jump about.
  const inner = points.length > 4 ? points.slice(1, -1) : points;
  const rates = points.map((point) => point.clicks / point.slates);
  const highs = inner.map((point) => wilson(point.clicks, point.slates).high);
  const steps = roundSteps(Math.min(Math.max(0.01, ...rates, ...highs), 1), height < 240 ? 4 : 5);
  const high = steps[steps.length - 1];
  return {
    left, top, right: width - right, bottom: height - bottom, span, steps,
    x: (time) => px(left + ((time - (end - span)) / span) * (width - left - right)),
    y: (share) => px(height - bottom - (Math.min(share, high) / high) * (height - bottom - top)),
  };
}

/**
 * Click-through over time: grid, band of 95 % intervals, line, and the level of `against`, whose word says what
 * it is; labels at the ends.
 */
export function clickthrough(points, against, now, width, height) {
  const frame = clickthroughFrame(points, now, width, height);
  const { left, right, bottom, x, y } = frame;
  const shapes = [];
  for (const step of frame.steps) {
    shapes.push(["line", { class: "grid", x1: left, x2: right, y1: y(step), y2: y(step) }]);
    const label = { class: "tick", x: left - 10, y: y(step) + 4, "text-anchor": "end" };
    shapes.push(["text", label, tickOf(step)]);
  }
  for (const { seconds, label } of timeSteps(frame.span, Math.max(2, (right - left) / 115))) {
    const place = px(right - (seconds / frame.span) * (right - left));
    shapes.push(["line", { class: "grid", x1: place, x2: place, y1: bottom, y2: bottom + 5 }]);
    shapes.push(["text", { class: "tick", x: place, y: bottom + 21, "text-anchor": "middle" }, label]);
  }
  const level = against && against.slates > 0 ? against.clicks / against.slates : null;
  if (level !== null) {
    shapes.push(["line", { class: "level", x1: left, x2: right, y1: y(level), y2: y(level) }]);
  }
  for (const part of unbroken(points)) {
    const first = part[0], last = part[part.length - 1];
    const at = (time, { clicks, slates }) => ({ at: x(time), ...wilson(clicks, slates) });
    // The outer points reach to the edges of their time, so that the line does not end before now.
    const inner = part.map((point) => at((point.from + point.to) / 2, point));
    const path = [at(first.from, first), ...inner, at(last.to, last)];
    const line = (places, what) => places.map((place) => `${place.at} ${y(place[what])}`).join("L");
    const back = [...path].reverse();
    shapes.push(["path", { class: "band", d: `M${line(path, "high")}L${line(back, "low")}Z` }]);
    shapes.push(["path", { class: "curve", d: `M${line(path, "rate")}` }]);
  }
  return [...shapes, ...endLabels(points, level, against?.word, frame)];
}

/** Points with no time missing between them: where nobody came there is no line. */
function unbroken(points) {
  const parts = [];
  points.forEach((point, i) => {
    if (i === 0 || point.from - points[i - 1].to > point.width * 0.5) parts.push([]);
    parts[parts.length - 1].push(point);
  });
  return parts;
}

function endLabels(points, level, word, { right, bottom, x, y }) {
  const shapes = [];
  const last = points[points.length - 1];
  let now = null;
  if (last) {
    const rate = last.clicks / last.slates;
    now = y(rate);
    shapes.push(["circle", { class: "end", cx: Math.min(x(last.to), right), cy: now, r: 4 }]);
    shapes.push(["text", { class: "label now", x: right + 10, y: now + 5 }, percent(rate)]);
  }
  if (level !== null) {
    // Pushed away where the two labels would touch.
    let place = y(level);
    const below = place >= now && now + 17 < bottom;
    if (now !== null && Math.abs(place - now) < 17) place = now + (below ? 17 : -17);
    shapes.push(["text", { class: "label start", x: right + 10, y: place + 4 }, `${word} ${percent(level)}`]);
  }
  return shapes;
}

const ROW = 46, AXIS = 40;

export const intervalsHeight = (rows) => rows.length * ROW + AXIS;

/**
 * Intervals of ratios, one below the other, around "the same": each has a text and a line with a dot. What is
 * within the margin counts as no difference. An interval that goes on beyond the picture has an open end.
 */
export function intervals(rows, { against, margin, text }, width, height) {
  const values = rows.map(({ ratio }) => ratio.value - 1);
  const lows = rows.map(({ ratio }) => ratio.low - 1);
  const far = Math.max(3 * margin, ...values.map((value) => 2.5 * Math.abs(value)));
  const highs = rows.map(({ ratio }) => Math.min((ratio.high ?? Infinity) - 1, far));
  const low = Math.min(-2 * margin, ...lows), high = Math.max(2 * margin, ...highs);
  const [step] = roundSteps(high - low, Math.max(3, Math.floor(width / 110))).slice(1);
  const first = Math.max(Math.floor(low / step) * step, -1), end = Math.ceil(high / step - 1e-9) * step;
  const left = 26, right = width - 26;
  const x = (value) => px(left + ((Math.min(Math.max(value, first), end) - first) / (end - first)) * (right - left));
  const bottom = height - AXIS;
  const shapes = [];
  // Behind the lines only: the texts between them stay readable.
  const strip = (i) => ({ from: i * ROW + 20, to: i * ROW + 44 });
  rows.forEach((_, i) => {
    const { from, to } = strip(i);
    const wide = px(x(margin) - x(-margin));
    shapes.push(["rect", { class: "margin", x: x(-margin), y: from, width: wide, height: to - from }]);
  });
  for (let at = Math.ceil(first / step - 1e-9); at * step <= end * 1.000001; at++) {
    const place = x(at * step), kind = at === 0 ? "same" : "grid";
    rows.forEach((_, i) => {
      const { from, to } = strip(i);
      shapes.push(["line", { class: kind, x1: place, x2: place, y1: from, y2: to }]);
    });
    const label = { class: at === 0 ? "tick same" : "tick", x: place, y: bottom + 17, "text-anchor": "middle" };
    shapes.push(["text", label, at === 0 ? "same" : signed(at * step)]);
  }
  shapes.push(["text", { class: "tick", x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" },
    `clicks per page, more or fewer than ${against}`]);
  rows.forEach((row, i) => {
    const { low: from, high: to, value } = row.ratio;
    const y = i * ROW + 32;
    const open = to === null || to - 1 > end;
    const clear = from > 1 ? "up" : to !== null && to < 1 ? "down" : "open";
    shapes.push(["text", { class: "what", x: 0, y: i * ROW + 14 }, row.label]);
    shapes.push(["text", { class: "how-much", x: width, y: i * ROW + 14, "text-anchor": "end" }, text(row)]);
    const a = x(from - 1), b = open ? right + 14 : x(to - 1);
    const head = open ? `M${b - 6} ${y - 5}L${b} ${y}L${b - 6} ${y + 5}` : `M${b} ${y - 5}L${b} ${y + 5}`;
    shapes.push(["path", { class: `interval ${clear}`, d: `M${a} ${y - 5}L${a} ${y + 5}M${a} ${y}L${b} ${y}${head}` }]);
    if (value - 1 <= end) shapes.push(["circle", { class: `dot ${clear}`, cx: x(value - 1), cy: y, r: 5 }]);
  });
  return shapes;
}
