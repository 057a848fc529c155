"use strict";
// The policies of the playground, written to be read. tests/docs/test_playground.py checks that each shows the
// slates of its Python twin, step by step.
//
// A policy has three methods:
//   recommend(key, k)      the K rows to show, best first; the key decides every random number
//   learn(slate, click)    which position was clicked, or null for none
//   estimates()            what it holds for each row's attraction: means, and standard deviations
//
// What is small here: no head start from a log, no features that come with a request, no search tree. Sums are made
// anew where the Python kernels update them, and a refit is computed at once, not spread over clicks.
// Every feature must vary, and no two items may have the same features: so it is in the café.

// --- Random numbers: a pure function of a 64-bit key (kernels/hashing.py) -----------------------------------------

const in64 = (number) => BigInt.asUintN(64, number);

/** The `number`-th output of SplitMix64 started at `key`; both are BigInt. */
function mix(key, number) {
  let z = in64(key + (number + 1n) * 0x9e3779b97f4a7c15n);
  z = in64((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = in64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

/** A hash as a number between 0 and 1, never one of them. */
const share = (hash) => (Number(hash >> 12n) + 0.5) / 2 ** 52;

const uniform = (key, number) => share(mix(key, number));

// Uses of one key that must not share numbers start far apart.
const [NOISE, FIRST, SECOND] = [1n << 56n, 3n << 56n, 4n << 56n];

/** `size` independent standard normal numbers (Box-Muller, both of each pair). */
function normals(key, size) {
  const noiseKey = mix(key, NOISE), noise = [];
  for (let i = 0n; noise.length < size; i += 2n) {
    const radius = Math.sqrt(-2 * Math.log(uniform(noiseKey, i)));
    const angle = 2 * Math.PI * uniform(noiseKey, i + 1n);
    noise.push(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  return noise.slice(0, size);
}

/** One standard normal number (Box-Muller, one of the pair). */
function normal(key, number) {
  const radius = Math.sqrt(-2 * Math.log(uniform(key, 2n * number)));
  return radius * Math.cos(2 * Math.PI * uniform(key, 2n * number + 1n));
}

/** The logarithm of a Gamma(shape, 1) number, for a shape of at least 1 (Marsaglia and Tsang 2000). */
function logGamma(key, shape) {
  const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
  for (let counter = 0n; ; counter++) {
    const x = normal(key, counter), v = (1 + c * x) ** 3;
    const u = uniform(key, SECOND + counter);
    if (v > 0 && Math.log(u) < 0.5 * x * x + d - d * v + d * Math.log(v)) return Math.log(d * v);
  }
}

/** A Beta(a, b) number: x / (x + y) of two Gamma numbers. */
function beta(key, number, a, b) {
  const own = mix(key, number);
  return 1 / (1 + Math.exp(logGamma(mix(own, SECOND), b) - logGamma(mix(own, FIRST), a)));
}

/** The standard normal number of a hash: the inverse of the distribution function (Wichura 1988, AS 241). */
function luck(hash) {
  const middle = share(hash) - 0.5;
  if (Math.abs(middle) <= 0.425) return middle * ratio(0.180625 - middle * middle, MIDDLE);
  const r = Math.sqrt(-Math.log(Math.min(share(hash), 1 - share(hash))));
  return Math.sign(middle) * (r <= 5 ? ratio(r - 1.6, TAIL) : ratio(r - 5, FAR_TAIL));
}

/** The ratio of two polynomials in r, of coefficients [above, below], highest power first. */
function ratio(r, coefficients) {
  let above = 0, below = 0;
  for (const [a, b] of coefficients) {
    above = above * r + a;
    below = below * r + b;
  }
  return above / below;
}

const MIDDLE = [
  [2.5090809287301226727e3, 5.2264952788528545610e3], [3.3430575583588128105e4, 2.8729085735721942674e4],
  [6.7265770927008700853e4, 3.9307895800092710610e4], [4.5921953931549871457e4, 2.1213794301586595867e4],
  [1.3731693765509461125e4, 5.3941960214247511077e3], [1.9715909503065514427e3, 6.8718700749205790830e2],
  [1.3314166789178437745e2, 4.2313330701600911252e1], [3.3871328727963666080e0, 1],
];
const TAIL = [
  [7.74545014278341407640e-4, 1.05075007164441684324e-9], [2.27238449892691845833e-2, 5.47593808499534494600e-4],
  [2.41780725177450611770e-1, 1.51986665636164571966e-2], [1.27045825245236838258e0, 1.48103976427480074590e-1],
  [3.64784832476320460504e0, 6.89767334985100004550e-1], [5.76949722146069140550e0, 1.67638483018380384940e0],
  [4.63033784615654529590e0, 2.05319162663775882187e0], [1.42343711074968357734e0, 1],
];
const FAR_TAIL = [
  [2.01033439929228813265e-7, 2.04426310338993978564e-15], [2.71155556874348757815e-5, 1.42151175831644588870e-7],
  [1.24266094738807843860e-3, 1.84631831751005468180e-5], [2.65321895265761230930e-2, 7.86869131145613259100e-4],
  [2.96560571828504891230e-1, 1.48753612908506148525e-2], [1.78482653991729133580e0, 1.36929880922735805310e-1],
  [5.46378491116411436990e0, 5.99832206555887937690e-1], [6.65790464350110377720e0, 1],
];

// --- Slates and clicks ----------------------------------------------------------------------------------------------

/** The K rows of largest score; among equal scores the one with the larger hash. */
function rank(scores, key, k) {
  const hashes = scores.map((_, row) => mix(key, BigInt(row)));
  // Infinity - Infinity is NaN, which is a tie too.
  const order = (a, b) => scores[b] - scores[a] || (hashes[a] > hashes[b] ? -1 : 1);
  return [...scores.keys()].sort(order).slice(0, k);
}

/** The cascade: items are seen down to the click; all of them if there was none. */
const examined = (slate, click) => (click === null ? slate : slate.slice(0, click + 1));

// --- Small matrices -------------------------------------------------------------------------------------------------

const zeros = (size) => new Array(size).fill(0);
const diagonal = (entries) => entries.map((entry, i) => entries.map((_, j) => (i === j ? entry : 0)));

function product(x, y) {
  let total = 0;
  for (let i = 0; i < x.length; i++) total += x[i] * y[i];
  return total;
}

/** Add weight xx' to M. */
function addSquare(M, x, weight) {
  for (let i = 0; i < x.length; i++) for (let j = 0; j < x.length; j++) M[i][j] += weight * x[i] * x[j];
}

/** Cholesky: the upper triangular R with R'R = M. */
function cholesky(M) {
  const R = M.map((row) => [...row]);
  for (let i = 0; i < R.length; i++) {
    for (let j = 0; j < i; j++) for (let m = i; m < R.length; m++) R[i][m] -= R[j][i] * R[j][m];
    const pivot = Math.sqrt(R[i][i]);
    for (let m = i; m < R.length; m++) R[i][m] /= pivot;
  }
  return R;
}

/** z with R'z = y. */
function solveTransposed(R, y) {
  const z = [...y];
  for (let i = 0; i < z.length; i++) {
    for (let h = 0; h < i; h++) z[i] -= R[h][i] * z[h];
    z[i] /= R[i][i];
  }
  return z;
}

/** z with Rz = y. */
function solve(R, y) {
  const z = [...y];
  for (let i = z.length - 1; i >= 0; i--) {
    for (let j = i + 1; j < z.length; j++) z[i] -= R[i][j] * z[j];
    z[i] /= R[i][i];
  }
  return z;
}

/** x'M^-1 x = |R'^-1 x|^2. */
function squaredWidth(R, x) {
  const z = solveTransposed(R, x);
  return product(z, z);
}

/** One draw from N(M^-1 B, M^-1), made of standard normal noise; without noise its mean. */
const gaussian = (R, B, noise) => solve(R, solveTransposed(R, B).map((value, i) => value + (noise ? noise[i] : 0)));

// --- Policies that count each item's own clicks ---------------------------------------------------------------------

class Random {
  constructor(features) {
    this.n = zeros(features.length); // looks, by item
    this.s = zeros(features.length); // clicks, by item
    this.t = 0; // slates learned from
  }

  recommend(key, k) {
    return rank(zeros(this.n.length), key, k); // all scores are equal: ties decide
  }

  learn(slate, click) {
    examined(slate, click).forEach((row, position) => {
      this.n[row] += 1;
      this.s[row] += position === click ? 1 : 0;
    });
    this.t += 1;
  }

  estimates() {
    return null; // it holds nothing for any item
  }
}

/** U(e) = clicks / looks + sqrt(1.5 log(t) / looks); what was never looked at comes first. Kveton et al. 2015. */
class CascadeUCB1 extends Random {
  recommend(key, k) {
    const budget = 1.5 * Math.log(Math.max(this.t, 1));
    const bound = (n, s) => (n === 0 ? Infinity : s / n + Math.sqrt(budget / n));
    return rank(this.n.map((n, row) => bound(n, this.s[row])), key, k);
  }

  /** Mean and standard deviation of Beta(1 + clicks, 1 + misses). */
  estimates() {
    const means = this.n.map((n, row) => (1 + this.s[row]) / (2 + n));
    return { means, deviations: means.map((mean, row) => Math.sqrt((mean * (1 - mean)) / (3 + this.n[row]))) };
  }
}

/** A draw from each item's Beta(1 + clicks, 1 + misses): Thompson sampling without features. */
class CascadeTS extends CascadeUCB1 {
  recommend(key, k) {
    const draw = (n, row) => beta(key, BigInt(row), 1 + this.s[row], 1 + n - this.s[row]);
    return rank(this.n.map(draw), key, k);
  }
}

// --- Policies that learn from features alone: attraction is x'theta. Zong et al. 2016 -------------------------------

/** M = I + sum xx' over all looks, B = sum x over all clicks, theta ~ N(M^-1 B, M^-1). */
class LinearPolicy {
  constructor(features) {
    this.features = features;
    this.M = diagonal(features[0].map(() => 1));
    this.B = zeros(features[0].length);
    this.R = cholesky(this.M);
  }

  learn(slate, click) {
    examined(slate, click).forEach((row, position) => {
      const x = this.features[row];
      addSquare(this.M, x, 1);
      if (position === click) this.B = this.B.map((value, i) => value + x[i]);
    });
    this.R = cholesky(this.M);
  }

  estimates() {
    const theta = gaussian(this.R, this.B);
    return {
      means: this.features.map((x) => product(x, theta)),
      deviations: this.features.map((x) => Math.sqrt(squaredWidth(this.R, x))),
    };
  }
}

/** Score: x'theta, for one draw of theta from its posterior. */
class CascadeLinTS extends LinearPolicy {
  recommend(key, k) {
    const theta = gaussian(this.R, this.B, normals(key, this.B.length));
    return rank(this.features.map((x) => product(x, theta)), key, k);
  }
}

/** Score: x'mean + sqrt(x'M^-1 x), an upper confidence bound. */
class CascadeLinUCB extends LinearPolicy {
  recommend(key, k) {
    const { means, deviations } = this.estimates();
    return rank(means.map((mean, row) => mean + deviations[row]), key, k);
  }
}

// --- The default: features, and each item's own part ----------------------------------------------------------------

/**
 * The attraction of item i is z_i'theta + b_i: z_i is 1 and its features, b_i ~ N(0, beta^2) its own part. For n looks
 * and s clicks, and a click's variance V,
 *
 *   M = Lambda + sum n/(V + n beta^2) z z',   B = sum s/(V + n beta^2) z,   theta ~ N(M^-1 B, M^-1)
 *   score = f + k (s/n - f) + sqrt(beta^2 (1 - k)) u,   f = z'theta,   k = n beta^2/(V + n beta^2)
 *
 * Lambda, beta and V are refitted after 16, 24, 36, ... looks. A refit takes effect after a quarter as many more.
 */
class CascadeMixed extends Random {
  constructor(features) {
    super(features);
    this.columns = features[0].map((_, j) => measured(features.map((x) => x[j])));
    const standardised = (value, j) => (value - this.columns[j].centre) / this.columns[j].deviation;
    this.z = features.map((x) => [1, ...x.map(standardised)]);
    this.looks = this.clicks = 0;
    this.nextRefit = 16;
    this.refit = null; // what the refit under way began with
    const p = 0.3, d = this.columns.length; // before the first refit
    this.at = { p, beta: 0.25 * p, prior: [1, ...new Array(d).fill(d / p ** 2)], level: [0.5, ...zeros(d)] };
  }

  recommend(key, k) {
    const [R, B] = this.posterior(), d = this.columns.length;
    const noise = normals(key, d + 2), theta = gaussian(R, B, noise), shared = noise[d + 1];
    // Without features half of the variance of u is each item's own.
    const u = (row) => (d ? shared : (shared + luck(mix(key, BigInt(row)))) / Math.sqrt(2));
    const scores = this.z.map((z, row) => {
      const { kept, rate, spread } = this.ownPart(row);
      return kept * product(z, theta) + rate + spread * u(row);
    });
    return rank(scores, key, k);
  }

  learn(slate, click) {
    super.learn(slate, click);
    this.looks += examined(slate, click).length;
    this.clicks += click === null ? 0 : 1;
    if (this.refit === null && this.looks >= this.nextRefit) {
      while (this.nextRefit <= this.looks) this.nextRefit *= 1.5;
      const p = (this.clicks + 0.5) / (this.looks + 2);
      this.refit = { p, looks: this.looks, n: [...this.n], s: [...this.s] };
    } else if (this.refit !== null && this.looks >= 1.25 * this.refit.looks) {
      this.at = this.fitted(this.refit);
      this.refit = null;
    }
  }

  estimates() {
    const [R, B] = this.posterior(), theta = gaussian(R, B);
    const means = [], deviations = [];
    this.z.forEach((z, row) => {
      const { kept, rate, spread } = this.ownPart(row);
      means.push(Math.min(Math.max(kept * product(z, theta) + rate, 0), 1));
      deviations.push(Math.sqrt(kept ** 2 * squaredWidth(R, z) + spread ** 2));
    });
    return { means, deviations };
  }

  /** The score of a row is kept f + rate + spread u, with kept = 1 - k. */
  ownPart(row) {
    const V = variance(this.at, this.z[row]), beta2 = this.at.beta ** 2, weight = 1 / (V + this.n[row] * beta2);
    return { kept: V * weight, rate: beta2 * this.s[row] * weight, spread: Math.sqrt(beta2 * V * weight) };
  }

  /** R with R'R = M, and B. */
  posterior() {
    const { M, B } = sums(this.z, this.n, this.s, this.z.map((z) => variance(this.at, z)), this.at.beta);
    return [cholesky(plusDiagonal(M, this.at.prior)), B];
  }

  /** The point of a grid with the largest marginal likelihood times weak priors. First with one variance for all
      items, then with one for each, which follows from the first theta. */
  fitted({ p, n, s }) {
    const d = this.columns.length;
    let V = this.z.map(() => p * (1 - p)), found;
    for (const round of [1, 2]) {
      let best = -Infinity, chosen;
      for (let j = 0; j < 9; j++) {
        const beta = d && j === 0 ? 0 : 2 ** (0.75 * j - 5); // beta and tau are in units of p
        const { M, B, likelihood } = sums(this.z, n, s, V, beta * p);
        for (let shape = 0; shape < (d ? 4 : 1); shape++) {
          for (let i = 0; i < (d ? 12 : 1); i++) {
            const tau = 2 ** (0.75 * i - 4), prior = this.prior(p, tau, shape);
            const R = cholesky(plusDiagonal(M, prior)), y = solveTransposed(R, B);
            let likely = likelihood + 0.5 * product(y, y) - 0.5 * (Math.log(tau) / 1.5) ** 2;
            if (beta > 0) likely -= 0.5 * (Math.log(beta / 0.25) / 1.5) ** 2;
            prior.forEach((lambda, m) => (likely += 0.5 * Math.log(lambda) - Math.log(R[m][m])));
            if (likely > best) [best, chosen] = [likely, { p, beta: beta * p, prior, level: solve(R, y) }];
          }
        }
      }
      found = round === 1 ? chosen : { ...chosen, level: found.level };
      V = this.z.map((z) => variance(found, z));
    }
    return found;
  }

  /** The diagonal of Lambda. tau^2 is what features explain in all. Each feature's share of it grows with its variance
      in natural units (shape 0), is the same (1), or grows with its standard deviation (2) or variance (3). */
  prior(p, tau, shape) {
    const shares = this.columns.map(({ deviation, inUnits }) => [inUnits ** 2, 1, deviation, deviation ** 2][shape]);
    const total = shares.reduce((sum, value) => sum + value, 0);
    return [1 / (4 * p * p), ...shares.map((value) => 1 / (Math.max(value / total, 1e-12) * (tau * p) ** 2))];
  }
}

/** A feature's mean, its standard deviation, and that in the feature's natural unit: for a feature of two values the
    step between them. */
function measured(column) {
  const centre = column.reduce((sum, value) => sum + value, 0) / column.length;
  const deviation = Math.sqrt(column.reduce((sum, value) => sum + (value - centre) ** 2, 0) / column.length);
  const values = [...new Set(column)];
  return { centre, deviation, inUnits: values.length === 2 ? deviation / Math.abs(values[0] - values[1]) : 1 };
}

/** V: the variance of a click on an item, by its features alone. */
function variance({ p, level }, z) {
  const rate = Math.min(Math.max(product(level, z), 0.25 * p), 1 - 0.25 * p);
  return rate * (1 - rate);
}

/** M without Lambda, B, and the part of the log likelihood of all rates s/n that does not depend on Lambda. */
function sums(rows, n, s, V, beta) {
  const M = diagonal(rows[0].map(() => 0)), B = zeros(rows[0].length);
  let likelihood = 0;
  rows.forEach((z, row) => {
    if (n[row] === 0) return;
    const noise = V[row] / n[row] + beta ** 2, rate = s[row] / n[row];
    addSquare(M, z, 1 / noise);
    z.forEach((value, i) => (B[i] += (rate / noise) * value));
    likelihood -= 0.5 * (Math.log(noise) + rate ** 2 / noise);
  });
  return { M, B, likelihood };
}

const plusDiagonal = (M, entries) => M.map((row, i) => row.map((value, j) => (i === j ? value + entries[i] : value)));

// --- What the page offers -------------------------------------------------------------------------------------------

const withoutFeatures = (features) => features.map(() => []);

/** Each name, and how to make the policy of items with these features, one row for each. */
const POLICIES = {
  "cascade-mixed": (features) => new CascadeMixed(features),
  "cascade-mixed without features": (features) => new CascadeMixed(withoutFeatures(features)),
  "cascade-lin-ts": (features) => new CascadeLinTS(features),
  "cascade-lin-ucb": (features) => new CascadeLinUCB(features),
  "cascade-ts": (features) => new CascadeTS(features),
  "cascade-ucb1": (features) => new CascadeUCB1(features),
  "random": (features) => new Random(features),
};
