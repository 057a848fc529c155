"use strict";
// The page of the playground: simulated visitors, two panels and their pictures. The policies are in policies.js.

(() => {
  const FEATURES = ITEMS.map((item) => item.features);
  const K = 4, WINDOW = 100; // impressions over which a curve takes its mean
  const MOST = 20000; // impressions; by then the curves are flat
  const root = document.getElementById("pg");
  const part = (id) => document.getElementById(`pg-${id}`);

  /** Visitors examine a slate from the top and click the first item that attracts. Features explain most of it. */
  class Crowd {
    constructor(number) {
      this.key = mix(BigInt(number), 0n);
      const theta = normals(this.key, FEATURES[0].length), rest = normals(mix(this.key, 1n), ITEMS.length);
      const tastes = FEATURES.map((x, row) => product(x, theta) + 0.4 * rest[row]);
      const low = Math.min(...tastes), range = Math.max(...tastes) - low;
      this.attractions = tastes.map((taste) => 0.01 + 0.34 * ((taste - low) / range) ** 3);
      this.order = [...ITEMS.keys()].sort((a, b) => this.attractions[b] - this.attractions[a]);
      this.best = this.ctr(this.order.slice(0, K));
    }

    /** The position that a visitor clicks, or null. Both panels have the same visitor. */
    click(slate, visitor) {
      const key = mix(mix(this.key, 2n), BigInt(visitor));
      const position = slate.findIndex((row) => uniform(key, BigInt(row)) < this.attractions[row]);
      return position < 0 ? null : position;
    }

    /** The expected click-through rate of a slate: 1 unless no item attracts. */
    ctr(slate) {
      return 1 - slate.reduce((none, row) => none * (1 - this.attractions[row]), 1);
    }
  }

  class Panel {
    constructor(letter, policy) {
      this.letter = letter;
      this.select = part(`policy-${letter}`);
      this.select.value = policy;
      this.select.addEventListener("change", start);
    }

    start() {
      this.policy = new POLICIES[this.select.value](FEATURES);
      this.sums = [0]; // of the expected CTR, up to each impression
      this.clicks = this.impressions = 0;
      this.slate = this.click = null;
    }

    step() {
      this.slate = this.policy.recommend(mix(crowd.key, BigInt(this.impressions)), K);
      this.click = crowd.click(this.slate, this.impressions);
      this.policy.learn(this.slate, this.click);
      this.sums.push(this.sums[this.impressions] + crowd.ctr(this.slate));
      this.impressions += 1;
      this.clicks += this.click === null ? 0 : 1;
    }

    /** Mean expected CTR in percent, over the window that ends with an impression. */
    rate(end) {
      const first = Math.max(end - WINDOW, 0);
      return (100 * (this.sums[end] - this.sums[first])) / (end - first);
    }

    draw() {
      part(`slate-${this.letter}`).innerHTML = (this.slate || []).map((row, position) => {
        const state = position === this.click ? "clicked"
          : this.click === null || position < this.click ? "examined" : "not examined";
        return `<li data-state="${state}"><b>${ITEMS[row].name}</b> <small>${state}</small></li>`;
      }).join("");
      const counts = `${this.clicks.toLocaleString("en")} clicks, ${this.impressions.toLocaleString("en")} impressions`;
      part(`counts-${this.letter}`).textContent = counts;
      this.drawEstimates();
    }

    /** The estimate of each item, beside the truth. */
    drawEstimates() {
      const { pen, width, height, colour } = canvas(`estimates-${this.letter}`);
      const left = 38, step = (width - left) / ITEMS.length, bottom = height - 20;
      const x = (place) => left + (place + 0.5) * step;
      const y = (value) => bottom - (Math.min(Math.max(value, 0), 0.5) / 0.5) * (bottom - 8);
      for (const value of [0, 0.25, 0.5]) rule(pen, left, width, y(value), `${100 * value}%`, colour);
      const estimates = this.policy.estimates();
      crowd.order.forEach((row, place) => {
        pen.strokeStyle = pen.fillStyle = colour(this.slate?.includes(row) ? this.letter : "quiet");
        if (estimates) {
          const mean = estimates.means[row], deviation = estimates.deviations[row];
          line(pen, [[x(place), y(mean - deviation)], [x(place), y(mean + deviation)]]);
          pen.fillRect(x(place) - 2, y(mean) - 2, 4, 4);
        }
      });
      pen.strokeStyle = pen.fillStyle = colour("ink");
      line(pen, crowd.order.map((row, place) => [x(place), y(crowd.attractions[row])]), 1.5);
      const words = `${ITEMS.length} items, most attractive first${estimates ? "" : "; no estimates"}`;
      pen.fillText(words, width - 4, height - 6);
    }
  }

  /** An empty canvas that is sharp on any screen, and the colours of the page. */
  function canvas(id) {
    const element = part(id), { clientWidth: width, clientHeight: height } = element;
    const pen = element.getContext("2d"), scale = devicePixelRatio || 1, style = getComputedStyle(element);
    [element.width, element.height] = [width * scale, height * scale];
    pen.scale(scale, scale);
    pen.font = `12px ${style.fontFamily}`;
    return { pen, width, height, colour: (name) => style.getPropertyValue(`--pg-${name}`).trim() };
  }

  function line(pen, points, width = 1) {
    pen.beginPath();
    points.forEach((point) => pen.lineTo(...point));
    pen.lineWidth = width;
    pen.stroke();
  }

  /** A line of the grid and its label. */
  function rule(pen, left, right, y, label, colour) {
    [pen.strokeStyle, pen.fillStyle, pen.textAlign] = [colour("line"), colour("muted"), "right"];
    line(pen, [[left, y], [right, y]]);
    pen.fillText(label, left - 6, y + 4);
  }

  function drawCurves() {
    const { pen, width, height, colour } = canvas("curves");
    const left = 38, right = width - 4, bottom = height - 20, end = Math.max(panels[0].impressions, WINDOW);
    const high = Math.ceil(5 * crowd.best) * 20;
    const y = (rate) => bottom - (rate / high) * (bottom - 8);
    for (let rate = 0; rate <= high; rate += 20) rule(pen, left, right, y(rate), `${rate}%`, colour);
    pen.fillText(`${end.toLocaleString("en")} impressions`, right, height - 6);
    pen.strokeStyle = colour("ink");
    pen.setLineDash([6, 4]); // the best slate
    line(pen, [[left, y(100 * crowd.best)], [right, y(100 * crowd.best)]], 1.5);
    pen.setLineDash([]);
    const words = panels.map((panel) => {
      const { impressions, letter } = panel, points = [];
      pen.strokeStyle = colour(letter);
      for (let at = 1; at <= impressions; at += Math.ceil(impressions / width)) {
        points.push([left + (at / end) * (right - left), y(panel.rate(at))]);
      }
      line(pen, points, 2);
      return part(`legend-${letter}`).textContent =
        `${letter}: ${panel.select.value}${impressions ? ` ${panel.rate(impressions).toFixed(0)}%` : ""}`;
    });
    part("best").textContent = `best slate ${(100 * crowd.best).toFixed(0)}%`;
    part("curves").setAttribute("aria-label", `Click-through rate. ${words.join(", ")}, ${part("best").textContent}`);
  }

  function draw() {
    if (root.clientWidth === 0) return; // not on the screen
    panels.forEach((panel) => panel.draw());
    drawCurves();
    root.dataset.impressions = panels[0].impressions;
  }

  let number = 1, crowd, timer = null;

  /** Both policies forget; the crowd stays. */
  function start() {
    pause();
    crowd = new Crowd(number);
    panels.forEach((panel) => panel.start());
    draw();
  }

  function step(visitors) {
    for (let i = 0; i < visitors && panels[0].impressions < MOST; i++) panels.forEach((panel) => panel.step());
    if (panels[0].impressions >= MOST) pause();
    draw();
  }

  function pause() {
    timer = clearInterval(timer) ?? null;
    part("play").textContent = "Play";
  }

  /** Five steps per second: slates that change more often cannot be read. */
  function play() {
    timer = setInterval(() => step(Number(part("speed").value) / 5), 200);
    part("play").textContent = "Pause";
  }

  const panels = [new Panel("A", "cascade-lin-ts"), new Panel("B", "cascade-ucb1")];
  part("play").addEventListener("click", () => (timer === null ? play() : pause()));
  part("step").addEventListener("click", () => { pause(); step(1); });
  part("reset").addEventListener("click", () => { number += 1; start(); });
  new ResizeObserver(draw).observe(root);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  start();
})();
