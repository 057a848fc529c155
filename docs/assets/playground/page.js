"use strict";
// The page of the playground: a crowd, two panels, their pictures and the controls. The policies are in policies.js.

(() => {
  const FEATURES = ITEMS.map((item) => item.features);
  const MOST_PAGES = 20000; // By then the curves are flat.
  const RECENT = 100; // pages that a curve and the bars of a panel look back on
  const YOUR_RECENT = 20; // People are slower.
  const BUDGET = 12; // milliseconds of work in one frame
  const CALM = matchMedia("(prefers-reduced-motion: reduce)");
  const whole = (number) => number.toLocaleString("en");

  // --- The crowd ----------------------------------------------------------------------------------------------------

  /** Visitors who look from the top and click the first item that attracts. All have the same tastes, drawn from the
      crowd's number. Features explain a little more than half of the differences; the rest is each item's own. */
  class Crowd {
    constructor(number) {
      this.key = mix(BigInt(number), 0n);
      const theta = normals(this.key, FEATURES[0].length), own = normals(mix(this.key, 1n), ITEMS.length);
      const { centre, deviation } = measured(FEATURES.map((x) => product(x, theta)));
      const explained = FEATURES.map((x) => (product(x, theta) - centre) / deviation);
      const tastes = explained.map((value, row) => 0.75 * value + 0.65 * own[row]);
      const most = Math.max(...tastes);
      this.attractions = tastes.map((taste) => Math.max(0.01, 0.05 + (0.3 * taste) / most));
    }

    /** The position that the visitor of this page clicks, or null. Both panels have the same visitor. */
    click(slate, page) {
      const visitor = mix(mix(this.key, 2n), BigInt(page));
      const position = slate.findIndex((row) => uniform(visitor, BigInt(row)) < this.attractions[row]);
      return position < 0 ? null : position;
    }

    /** How likely a slate is clicked: unless nothing on it attracts. */
    value(slate) {
      return 1 - slate.reduce((none, row) => none * (1 - this.attractions[row]), 1);
    }

    /** All rows, the most attractive first. */
    order() {
      return [...ITEMS.keys()].sort((a, b) => this.attractions[b] - this.attractions[a]);
    }
  }

  // --- A panel: a policy, and what happened on its pages ------------------------------------------------------------

  class Panel {
    constructor(letter, root) {
      this.letter = letter;
      this.root = root;
      this.part = (name) => root.querySelector(`[data-part="${name}"]`);
      this.tiles = [];
    }

    get policyName() {
      return this.part("policy").value;
    }

    start(key, k) {
      this.policy = POLICIES[this.policyName](FEATURES);
      [this.key, this.k] = [key, k];
      this.pages = this.clicks = 0;
      this.sums = [0]; // of what each page was worth, up to each page
      this.slates = []; // the recent ones
      this.shown = zeros(ITEMS.length); // on how many of these each item was
      this.answer = null;
      this.slate = this.next();
    }

    next() {
      return this.policy.recommend(mix(this.key, BigInt(this.pages)), this.k);
    }

    /** Learn from a page; `value` is what it was worth. */
    learn(click, value) {
      this.policy.learn(this.slate, click);
      this.answer = { slate: this.slate, click };
      this.slates.push(this.slate);
      this.slate.forEach((row) => (this.shown[row] += 1));
      if (this.slates.length > RECENT) this.slates.shift().forEach((row) => (this.shown[row] -= 1));
      this.sums.push(this.sums[this.pages] + value);
      this.pages += 1;
      this.clicks += click === null ? 0 : 1;
      this.slate = this.next();
    }

    /** Clicks on 100 pages, over the last pages up to this one. */
    rate(page, back) {
      const first = Math.max(page - back, 0);
      return (100 * (this.sums[page] - this.sums[first])) / (page - first);
    }
  }

  // --- The page -----------------------------------------------------------------------------------------------------

  const panelOf = (letter, policy) => `
    <section class="pg-panel" data-panel="${letter}" aria-label="Policy ${letter}">
      <div class="pg-head"><span class="pg-letter" aria-hidden="true">${letter}</span>
        <select data-part="policy" aria-label="Policy ${letter}">${Object.keys(POLICIES)
          .map((name) => `<option${name === policy ? " selected" : ""}>${name}</option>`)
          .join("")}</select></div>
      <ol data-part="slate" class="pg-slate" aria-label="Slate of policy ${letter}"></ol>
      <div class="pg-foot"><span data-part="counts"></span>
        <button type="button" data-part="nothing" hidden>Nothing for me</button></div>
      <canvas data-part="knows" class="pg-knows" role="img"></canvas>
    </section>`;

  const root = document.getElementById("pg");
  root.innerHTML = `
    <div class="pg-controls" role="group" aria-label="Controls">
      <button type="button" id="pg-play" class="pg-main">Play</button>
      <button type="button" id="pg-step">One page</button>
      <label>Pages a second <select id="pg-speed">
        <option>2</option><option selected>20</option><option>200</option><option value="1000">1,000</option>
      </select></label>
      <label>Items a page <select id="pg-k">
        <option>3</option><option selected>4</option><option>5</option><option>6</option></select></label>
      <label>Who visits <select id="pg-who">
        <option value="crowd">a simulated crowd</option><option value="you">you</option></select></label>
      <button type="button" id="pg-reset">New crowd</button>
    </div>
    <p class="pg-says" id="pg-says" aria-live="polite"></p>
    <figure class="pg-figure">
      <figcaption class="pg-legend"><strong id="pg-unit"></strong>
        <span class="pg-a"><i></i><span id="pg-legend-A"></span></span>
        <span class="pg-b"><i></i><span id="pg-legend-B"></span></span>
        <span class="pg-best" id="pg-legend-best"><i></i><span></span></span></figcaption>
      <canvas id="pg-curves" class="pg-curves" role="img"></canvas>
    </figure>
    <div class="pg-panels">${panelOf("A", "cascade-mixed")}${panelOf("B", "cascade-ucb1")}</div>
    <p class="pg-caption" id="pg-caption"></p>`;
  const part = (id) => document.getElementById(`pg-${id}`);
  const panels = ["A", "B"].map((letter) => new Panel(letter, root.querySelector(`[data-panel="${letter}"]`)));

  let number = 1; // of the crowd
  let crowd, order, best, playing = false;
  const you = () => part("who").value === "you";

  /** Both policies forget; the crowd stays. */
  function start() {
    pause();
    crowd = new Crowd(number);
    order = crowd.order();
    const k = Number(part("k").value);
    best = 100 * crowd.value(order.slice(0, k));
    panels.forEach((panel) => panel.start(crowd.key, k));
    for (const id of ["play", "step", "speed"]) part(id).disabled = you();
    say("reset", you() ? "Start over" : "New crowd");
    say("says", you()
      ? "Click the first thing you like on either page, or “Nothing for me”."
      : `Crowd ${number}. Each visitor looks at both pages from the top and clicks the first item that attracts.`);
    say("unit", `${you() ? "Your" : "Expected"} clicks per 100 pages (last ${back()} pages)`);
    const truth = you() ? "" : "Line: true attraction. ";
    say("caption", `${truth}Dots: the policy’s estimate, ± one standard deviation. ` +
      `Bars: share of the last ${RECENT} pages that showed the item. In colour: on the page now.`);
    part("legend-best").hidden = you();
    draw();
  }

  const back = () => (you() ? YOUR_RECENT : RECENT);

  /** The crowd's next visitor comes to both pages. */
  function step() {
    for (const panel of panels) {
      const value = crowd.value(panel.slate);
      panel.learn(crowd.click(panel.slate, panel.pages), value);
    }
  }

  function yourClick(panel, click) {
    const { slate } = panel;
    panel.learn(click, click === null ? 0 : 1);
    const clicked = click === null ? "no click" : `a click on ${ITEMS[slate[click]].name}`;
    const passed = click === null ? slate.length : click;
    say("says", `${panel.letter} learned from page ${panel.pages}: ${clicked}, ${passed} passed over.`);
    draw();
  }

  let due = 0, last = 0, drawn = 0;

  function frame(now) {
    if (!playing) return;
    due += (Math.min(now - last, 250) / 1000) * Number(part("speed").value);
    last = now;
    const stop = performance.now() + BUDGET;
    while (due >= 1 && panels[0].pages < MOST_PAGES && performance.now() < stop) {
      step();
      due -= 1;
    }
    due = Math.min(due, 1); // What a slow machine cannot do is left out.
    if (panels[0].pages >= MOST_PAGES) pause();
    // Tiles that change more often than this cannot be read.
    if (now - drawn > (CALM.matches ? 1000 : 120)) {
      drawn = now;
      draw();
    } else if (!CALM.matches) drawCurves();
    requestAnimationFrame(frame);
  }

  function play() {
    if (panels[0].pages >= MOST_PAGES) return;
    playing = true;
    [due, last] = [1, performance.now()];
    say("play", "Pause");
    requestAnimationFrame(frame);
  }

  function pause() {
    if (!playing) return;
    playing = false;
    say("play", "Play");
    draw();
  }

  function say(id, text) {
    if (part(id).textContent !== text) part(id).textContent = text;
  }

  // --- What changes on every page -----------------------------------------------------------------------------------

  function draw() {
    if (root.clientWidth === 0) return; // not on the screen
    for (const panel of panels) {
      drawSlate(panel);
      drawKnowledge(panel);
    }
    drawCurves();
    root.dataset.pages = panels[0].pages;
  }

  /** A crowd's last page with its answer, or the page that waits for you. */
  function drawSlate(panel) {
    const list = panel.part("slate"), answered = !you() && panel.answer !== null;
    const { slate, click } = answered ? panel.answer : { slate: panel.slate, click: null };
    while (panel.tiles.length < slate.length) {
      const position = panel.tiles.length, tile = document.createElement("li");
      tile.innerHTML = `<button type="button"><b>${position + 1}</b>
        <span><span class="pg-name"></span><small class="pg-group"></small></span><em></em></button>`;
      tile.firstChild.addEventListener("click", () => yourClick(panel, position));
      list.append(tile);
      panel.tiles.push(tile.firstChild);
    }
    while (panel.tiles.length > slate.length) panel.tiles.pop().parentNode.remove();
    panel.tiles.forEach((tile, position) => {
      const { name, group } = ITEMS[slate[position]];
      const state = answered ? stateOf(position, click) : "";
      tile.querySelector(".pg-name").textContent = name;
      tile.querySelector(".pg-group").textContent = group;
      tile.querySelector("em").textContent = state;
      tile.dataset.state = state;
      tile.disabled = !you();
    });
    const clicks = `${whole(panel.clicks)} ${panel.clicks === 1 ? "click" : "clicks"}`;
    panel.part("counts").textContent = `${clicks} on ${whole(panel.pages)} ${panel.pages === 1 ? "page" : "pages"}`;
    panel.part("nothing").hidden = !you();
  }

  /** What the cascade says of a position. */
  function stateOf(position, click) {
    if (click === null || position < click) return "passed over";
    return position === click ? "clicked" : "not seen";
  }

  // --- Pictures -----------------------------------------------------------------------------------------------------

  /** A canvas that is sharp on any screen, emptied; its size, and the colours of the page. */
  function pencil(canvas) {
    const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    }
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${style.fontFamily}`;
    const colour = (name) => style.getPropertyValue(`--pg-${name}`).trim();
    return { pen, width, height, colour };
  }

  function line(pen, points, colour, width = 1, dash = []) {
    pen.beginPath();
    points.forEach(([x, y]) => pen.lineTo(x, y));
    [pen.strokeStyle, pen.lineWidth, pen.lineJoin] = [colour, width, "round"];
    pen.setLineDash(dash);
    pen.stroke();
    pen.setLineDash([]);
  }

  function text(pen, words, x, y, colour, align = "left") {
    [pen.fillStyle, pen.textAlign, pen.textBaseline] = [colour, align, "middle"];
    pen.fillText(words, x, y);
  }

  /** The end of an axis that holds this value, and the step between its labels, a part of it. */
  function roundAxis(value) {
    const size = 10 ** Math.floor(Math.log10(value));
    const [end, step] = [[1, 0.2], [1.5, 0.5], [2, 0.5], [3, 1], [4, 1], [5, 1], [6, 2], [8, 2], [10, 2]]
      .find(([end]) => end * size >= value);
    return { end: end * size, step: step * size };
  }

  function drawCurves() {
    const { pen, width, height, colour } = pencil(part("curves"));
    const left = 34, right = width - 22, top = 10, bottom = height - 38;
    const pages = Math.max(...panels.map((panel) => panel.pages));
    const { end, step } = roundAxis(Math.max(pages, you() ? 20 : 100)), high = you() ? 100 : Math.ceil(best / 20) * 20;
    const x = (page) => left + (page / end) * (right - left);
    const y = (rate) => bottom - (rate / high) * (bottom - top);
    for (let rate = 0; rate <= high; rate += 20) {
      line(pen, [[left, y(rate)], [right, y(rate)]], colour("line"));
      text(pen, String(rate), left - 8, y(rate), colour("muted"), "right");
    }
    for (let page = 0; page <= end; page += step) {
      text(pen, whole(page), x(page), bottom + 14, colour("muted"), "center");
    }
    text(pen, you() ? "pages you have seen" : "pages", (left + right) / 2, height - 7, colour("muted"), "center");
    if (!you()) {
      line(pen, [[left, y(best)], [right, y(best)]], colour("ink"), 1.5, [6, 4]);
      part("legend-best").lastChild.textContent = `best slate ${best.toFixed(0)}`;
    }
    const ends = panels.map((panel) => drawCurve(pen, panel, x, y, right - left, colour(panel.letter)));
    // Letters that would touch are moved apart.
    if (ends[0] && ends[1] && Math.abs(ends[0].x - ends[1].x) < 12 && Math.abs(ends[0].y - ends[1].y) < 13) {
      const middle = (ends[0].y + ends[1].y) / 2, up = ends[0].y <= ends[1].y ? 0 : 1;
      [ends[up].y, ends[1 - up].y] = [middle - 6.5, middle + 6.5];
    }
    pen.font = `bold ${pen.font}`;
    panels.forEach((panel, i) => {
      if (ends[i]) {
        // On a ground of its own: lines may pass behind it.
        [pen.strokeStyle, pen.lineWidth, pen.textBaseline, pen.textAlign] = [colour("page"), 4, "middle", "left"];
        pen.strokeText(panel.letter, ends[i].x + 8, ends[i].y);
        text(pen, panel.letter, ends[i].x + 8, ends[i].y, colour(panel.letter));
      }
      const rate = panel.pages ? ` ${panel.rate(panel.pages, back()).toFixed(0)}` : "";
      say(`legend-${panel.letter}`, `${panel.letter} ${panel.policyName}${rate}`);
    });
    if (!playing) part("curves").setAttribute("aria-label", summary());
  }

  /** One curve; the place of its end. */
  function drawCurve(pen, panel, x, y, width, colour) {
    if (panel.pages === 0) return null;
    const points = [], stride = Math.max(1, panel.pages / width);
    for (let page = 1; page < panel.pages; page += stride) {
      points.push([x(Math.floor(page)), y(panel.rate(Math.floor(page), back()))]);
    }
    const end = [x(panel.pages), y(panel.rate(panel.pages, back()))];
    line(pen, [...points, end], colour, 2);
    pen.beginPath();
    pen.arc(...end, 3, 0, 2 * Math.PI);
    pen.fillStyle = colour;
    pen.fill();
    return { x: end[0], y: end[1] };
  }

  /** The curves in words. */
  function summary() {
    const told = panels.filter((panel) => panel.pages > 0).map((panel) => {
      const rate = panel.rate(panel.pages, back()).toFixed(0);
      return `${panel.letter}, ${panel.policyName}: ${rate} after ${whole(panel.pages)} pages`;
    });
    if (!you()) told.push(`best slate: ${best.toFixed(0)}`);
    return `${part("unit").textContent}. ${told.join("; ")}.`;
  }

  /** What a policy knows of each item, and what it shows. */
  function drawKnowledge(panel) {
    const canvas = panel.part("knows");
    const { pen, width, height, colour } = pencil(canvas);
    const left = 44, right = width - 4, top = 8, bottom = height - 62, ground = height - 20;
    const held = panel.policy.estimates(), high = you() ? 1 : 0.5;
    const byEstimate = (a, b) => held.means[b] - held.means[a] || a - b;
    const rows = !you() ? order : held ? [...ITEMS.keys()].sort(byEstimate) : [...ITEMS.keys()];
    const now = new Set(you() || !panel.answer ? panel.slate : panel.answer.slate);
    const wide = (right - left) / rows.length;
    const x = (place) => left + (place + 0.5) * wide;
    const y = (value) => bottom - (Math.min(Math.max(value, 0), high) / high) * (bottom - top);
    for (const value of [0, high / 2, high]) {
      line(pen, [[left, y(value)], [right, y(value)]], colour("line"));
      text(pen, value === 0 ? "0" : `${Math.round(100 * value)}%`, left - 6, y(value), colour("muted"), "right");
    }
    line(pen, [[left, ground], [right, ground]], colour("line"));
    text(pen, "shown", left - 6, ground - 7, colour("muted"), "right");
    const sorted = you() ? (held ? ", highest estimate first" : "") : ", most attractive first";
    text(pen, `${ITEMS.length} items${sorted}`, (left + right) / 2, height - 8, colour("muted"), "center");
    rows.forEach((row, place) => {
      const paint = now.has(row) ? colour(panel.letter) : colour("quiet");
      if (held) {
        const mean = held.means[row], deviation = held.deviations[row];
        line(pen, [[x(place), y(mean - deviation)], [x(place), y(mean + deviation)]], paint, now.has(row) ? 2 : 1);
        pen.beginPath();
        pen.arc(x(place), y(mean), Math.min(wide * 0.36, 3), 0, 2 * Math.PI);
        pen.fillStyle = paint;
        pen.fill();
      }
      const part = panel.slates.length ? panel.shown[row] / panel.slates.length : 0;
      pen.fillStyle = paint;
      pen.fillRect(x(place) - wide * 0.4, ground - 30 * part, wide * 0.8, 30 * part);
    });
    if (!you()) {
      const truth = rows.flatMap((row, place) => {
        const level = y(crowd.attractions[row]);
        return [[x(place) - wide / 2, level], [x(place) + wide / 2, level]];
      });
      line(pen, truth, colour("ink"), 1.25);
    }
    if (!held) text(pen, "It learns nothing: no estimates.", right, top + 8, colour("muted"), "right");
    canvas.setAttribute("aria-label", `What policy ${panel.letter} knows of each item, and how often it shows it`);
  }

  // --- Controls -----------------------------------------------------------------------------------------------------

  part("play").addEventListener("click", () => (playing ? pause() : play()));
  part("step").addEventListener("click", () => {
    pause();
    if (panels[0].pages < MOST_PAGES) step();
    draw();
  });
  part("reset").addEventListener("click", () => {
    if (!you()) number += 1;
    start();
  });
  for (const id of ["k", "who"]) part(id).addEventListener("change", start);
  for (const panel of panels) {
    panel.part("policy").addEventListener("change", start);
    panel.part("nothing").addEventListener("click", () => yourClick(panel, null));
  }
  new ResizeObserver(draw).observe(root);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  start();
})();
