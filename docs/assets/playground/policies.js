"use strict";
// The policies of the playground, to be read. Each shows the slates of its Python twin (tests/docs/test_playground.py).
// A policy has three methods:
//   recommend(key, k)      the K rows to show, best first; the key decides every random number
//   learn(slate, click)    the position that was clicked, or null for none
//   estimates()            the mean and the standard deviation of each row's attraction probability, or null

// --- Random numbers: a pure function of a 64-bit key (kernels/hashing.py) -----------------------------------------

const in64 = (number) => BigInt.asUintN(64, number);

/** The `number`-th output of SplitMix64 started at `key`; both are BigInt. */
function mix(key, number) {
  let z = in64(key + (number + 1n) * 0x9e3779b97f4a7c15n);
  z = in64((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = in64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

/** A number between 0 and 1, never 0 or 1. */
const uniform = (key, number) => (Number(mix(key, number) >> 12n) + 0.5) / 2 ** 52;

/** `size` independent standard normal numbers (Box-Muller, both of each pair). */
function normals(key, size) {
  const noiseKey = mix(key, 1n << 56n), noise = [];
  for (let i = 0n; noise.length < size; i += 2n) {
    const radius = Math.sqrt(-2 * Math.log(uniform(noiseKey, i)));
    const angle = 2 * Math.PI * uniform(noiseKey, i + 1n);
    noise.push(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  return noise.slice(0, size);
}

// --- Slates and clicks ----------------------------------------------------------------------------------------------

/** The K rows of largest score; among equal scores the one with the larger hash. */
function rank(scores, key, k) {
  const hashes = scores.map((_, row) => mix(key, BigInt(row)));
  // Infinity - Infinity is NaN, which is a tie too.
  const order = (a, b) => scores[b] - scores[a] || (hashes[a] > hashes[b] ? -1 : 1);
  return [...scores.keys()].sort(order).slice(0, k);
}

/** The cascade: items are examined down to the click, all of them without one. */
const examined = (slate, click) => (click === null ? slate : slate.slice(0, click + 1));

// --- Small matrices -------------------------------------------------------------------------------------------------

const zeros = (size) => new Array(size).fill(0);
const product = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);

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

// --- Policies -------------------------------------------------------------------------------------------------------

/** Random order. It counts, so that CascadeUCB1 can use the counts. */
class RandomOrder {
  constructor(features) {
    this.n = zeros(features.length); // examinations of each item
    this.s = zeros(features.length); // clicks on each item
    this.t = 0; // slates learned from
  }

  recommend(key, k) {
    return rank(this.n.map(() => 0), key, k); // all scores are equal: ties decide
  }

  learn(slate, click) {
    examined(slate, click).forEach((row, position) => {
      this.n[row] += 1;
      this.s[row] += position === click ? 1 : 0;
    });
    this.t += 1;
  }

  estimates() { return null; }
}

/** U(e) = clicks / examinations + sqrt(1.5 log(t) / examinations); items without any first. Kveton et al. 2015. */
class CascadeUCB1 extends RandomOrder {
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

/** Attraction is x'theta, theta ~ N(M^-1 B, M^-1) with M = I + sum xx' over all examinations and B = sum x over all
    clicks. The score is x'theta for one draw of theta. Zong et al. 2016. */
class CascadeLinTS {
  constructor(features) {
    this.features = features;
    this.M = features[0].map((_, i) => features[0].map((_, j) => (i === j ? 1 : 0)));
    this.B = zeros(features[0].length);
    this.R = cholesky(this.M);
  }

  recommend(key, k) {
    const theta = this.theta(normals(key, this.B.length));
    return rank(this.features.map((x) => product(x, theta)), key, k);
  }

  learn(slate, click) {
    examined(slate, click).forEach((row, position) => {
      const x = this.features[row];
      this.M = this.M.map((row, i) => row.map((value, j) => value + x[i] * x[j]));
      if (position === click) this.B = this.B.map((value, i) => value + x[i]);
    });
    this.R = cholesky(this.M);
  }

  estimates() {
    const theta = this.theta(zeros(this.B.length));
    const width = (x) => Math.hypot(...solveTransposed(this.R, x)); // sqrt(x'M^-1 x)
    return { means: this.features.map((x) => product(x, theta)), deviations: this.features.map(width) };
  }

  /** One draw of theta, made of standard normal noise; its mean for noise of zeros. */
  theta(noise) {
    return solve(this.R, solveTransposed(this.R, this.B).map((value, i) => value + noise[i]));
  }
}

/** Each name of the page, and its class. */
const POLICIES = { "cascade-lin-ts": CascadeLinTS, "cascade-ucb1": CascadeUCB1, "random": RandomOrder };
