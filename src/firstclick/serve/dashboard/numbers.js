// Numbers, and the words for them. Nothing here knows of the page.

const Z = 1.959964; // a normal variable stays within this many deviations 95 % of the time
const GAP = "\u00a0"; // keeps a number and its unit on one line
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Share of slates with a click and Wilson's 95 % interval, which stays within 0 and 1 for few slates too. */
export function wilson(clicks, slates) {
  if (!(slates > 0)) return { rate: null, low: 0, high: 1 };
  const rate = clicks / slates;
  const weight = 1 + (Z * Z) / slates;
  const middle = (rate + (Z * Z) / (2 * slates)) / weight;
  const half = (Z / weight) * Math.sqrt((rate * (1 - rate)) / slates + (Z * Z) / (4 * slates * slates));
  return { rate, low: rate === 0 ? 0 : middle - half, high: rate === 1 ? 1 : middle + half };
}

/** How many times the clicks of `other` come now, with its 95 % interval; null if either has none. */
export function timesAsMany(other, now) {
  if (!other || !now || !(other.clicks > 0) || !(now.clicks > 0)) return null;
  const ratio = now.clicks / now.slates / (other.clicks / other.slates);
  const spread = 1 / other.clicks - 1 / other.slates + 1 / now.clicks - 1 / now.slates;
  const factor = Math.exp(Z * Math.sqrt(Math.max(spread, 0)));
  return { ratio, low: ratio / factor, high: ratio * factor };
}

/**
 * Buckets put together until a value rests on enough slates to be worth a point, and points are few enough to
 * be seen. Borders are multiples of the width, so that points stay where they are while time goes on.
 */
export function gather(buckets, most = 60, enough = 100) {
  if (buckets.length === 0) return [];
  const last = buckets[buckets.length - 1];
  const span = last.start + last.width - buckets[0].start;
  let width = last.width || 1;
  while (span / width > most) width *= 2;
  for (;;) {
    const points = gatherBy(buckets, width);
    const sizes = points.map((point) => point.slates).sort((a, b) => a - b);
    if (span / width <= 12 || sizes[sizes.length >> 1] >= enough) return points;
    width *= 2;
  }
}

function gatherBy(buckets, width) {
  const points = [];
  for (const bucket of buckets) {
    const place = Math.floor(bucket.start / width + 1e-9);
    let point = points[points.length - 1];
    if (!point || point.place !== place) {
      point = { place, width, from: bucket.start, to: 0, slates: 0, clicks: 0 };
      points.push(point);
    }
    point.to = bucket.start + bucket.width;
    point.slates += bucket.slates;
    point.clicks += bucket.clicks;
  }
  // A last point that has just begun would jump about: it counts with the one before until it weighs enough.
  const [before, last] = points.slice(-2);
  if (last && last.place === before.place + 1 && last.slates < before.slates / 2) {
    points.pop();
    before.to = last.to;
    before.slates += last.slates;
    before.clicks += last.clicks;
  }
  return points.filter((point) => point.slates > 0);
}

/** Round steps from 0 to at least `high`: [0, 0.2, 0.4, 0.6]. */
export function roundSteps(high, most = 5) {
  const least = Math.max(high, 1e-4) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least * 0.999999);
  const steps = [];
  for (let i = 0; i === 0 || (i - 1) * step < high * 0.999999; i++) steps.push(i * step);
  return steps;
}

const SECOND = [1, "s"], MINUTE = [60, "min"], HOUR = [3600, "h"], DAY = [86400, "days"];
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => [n, SECOND]), ...[1, 2, 5, 10, 15, 30].map((n) => [n, MINUTE]),
  ...[1, 2, 3, 6, 12].map((n) => [n, HOUR]), ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((n) => [n, DAY]),
];

/** Round times before now, newest first: [{seconds: 0, label: "now"}, {seconds: 300, label: "5 min ago"}]. */
export function timeSteps(span, most) {
  const fits = ([n, [size]]) => span / (n * size) <= most;
  const [n, [size, unit]] = TIME_STEPS.find(fits) ?? TIME_STEPS[TIME_STEPS.length - 1];
  const steps = [];
  for (let i = 0; i * n * size <= span * 1.0001; i++) {
    const word = unit === "days" && i * n === 1 ? "day" : unit;
    steps.push({ seconds: i * n * size, label: i === 0 ? "now" : `${i * n}${GAP}${word} ago` });
  }
  return steps;
}

/** 0.512 as "51 %": two digits that count, since more would only be noise, or `more` than that. */
export function percent(share, more = 0) {
  if (share === null || !Number.isFinite(share)) return "–";
  const value = share * 100;
  const digits = Math.abs(value) >= 9.95 || value === 0 ? 0 : Math.abs(value) >= 0.995 ? 1 : 2;
  const text = Math.abs(value) < 999.5 ? value.toFixed(digits + more) : grouped.format(value);
  return `${text.replace("-", "−")}${GAP}%`;
}

/** 0.38 as "+38 %", −0.004 as "−0.40 %"; 0 has no sign. */
export function signed(share, unit = `${GAP}%`) {
  const text = percent(share).replace(`${GAP}%`, unit);
  return share > 0 ? `+${text}` : text;
}

/** Two shares as a range: "48 to 54 %". */
export function percents(low, high) {
  return `${percent(low).replace(`${GAP}%`, "")} to ${percent(high)}`;
}

/** 12345 as "12,345"; from ten million on "12.3 million". */
export function count(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value >= 1e10) return `${(value / 1e9).toFixed(1)}${GAP}billion`;
  if (value >= 1e7) return `${(value / 1e6).toFixed(1)}${GAP}million`;
  return grouped.format(value);
}

/** "1 slate", "12,345 slates". */
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** Seconds as the largest unit that fits: "12 s", "3 min", "5 h", "2 days". */
export function duration(seconds) {
  if (seconds < 9.95) return `${Number(Math.max(seconds, 0).toFixed(1))}${GAP}s`;
  if (seconds < 99.5) return `${Math.round(seconds)}${GAP}s`;
  if (seconds < 5970) return `${Math.round(seconds / 60)}${GAP}min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)}${GAP}h`;
  return `${Math.round(seconds / 86400)}${GAP}days`;
}

/** How long before `now` (of the server: the clock of the browser may differ) something was. */
export function ago(now, time) {
  return now - time < 1.5 ? "just now" : `${duration(Math.round(now - time))} ago`;
}
