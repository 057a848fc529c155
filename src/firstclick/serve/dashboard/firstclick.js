// firstclick for a page: shows a slate and reports what the visitor did with it. No dependencies.
//
//   try {
//     const { FirstClick } = await import("/firstclick.js"); // a copy of this file on your own site
//     const page = new FirstClick({ server: "https://firstclick.shop.example", model: "shop", key: "fc_..." });
//     await page.show(document.querySelector("#slate"), (id) => tileOf(id));
//   } catch (error) {
//     showOwnList(); // firstclick is down
//   }
//
// Each slate is reported once, by its token: as the first click, or as "no click" when the page is left. The
// token makes a report safe to send again: the server counts it once and answers "duplicate" after that.

// A position is seen when half of it, or half of the window, was in sight for 300 ms: about the time of one
// look. Less would take an item for rejected that a quick scroll has passed.
export const SEEN = { share: 0.5, milliseconds: 300 };
// A tab in the background may come back and be clicked. After half an hour the visit counts as over.
const VISIT_OVER = 30 * 60_000;
// A report that could not be sent for a day is dropped.
const KEEP = 24 * 3600_000;
// Reports of earlier pages wait for the first slate, or so long on a page that shows none. They go out one by
// one, four a second: a server that limits visitors has room left for slates and clicks.
const BACKLOG_AFTER = 2000, BACKLOG_PAUSE = 250; // milliseconds
const FIRST_WAIT = 500, LONGEST_WAIT = 30_000, GIVE_UP = 10_000; // milliseconds
// Browsers refuse `keepalive` for bodies over 64 KiB in all.
const KEEPALIVE_MOST = 60_000;
const PREFIX = "firstclick-report:";

// --- Reports that are not answered yet: in localStorage, so that the next page can send them -------------

// A key of its own for each report: two tabs never overwrite each other's. Where site data is blocked nothing
// is kept, and the rest works as it does elsewhere.
const unsent = {
  keyOf: (report) => PREFIX + report.body.token,
  put(report) {
    try {
      localStorage.setItem(this.keyOf(report), JSON.stringify(report));
      return true;
    } catch {
      return false; // blocked, or full
    }
  },
  get(key) {
    try {
      const report = JSON.parse(localStorage.getItem(key));
      return report?.body?.token ? report : null;
    } catch {
      return null;
    }
  },
  drop(key) {
    try {
      localStorage.removeItem(key);
    } catch { /* nothing was kept */ }
  },
  keys() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    } catch {
      return [];
    }
  },
};

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// --- One slate on the page -------------------------------------------------------------------------------

/** What can be in sight: an item with `display: contents` has no box, but what is in it has. */
function boxOf(element) {
  let box = element;
  while (box && getComputedStyle(box).display === "contents") box = box.firstElementChild;
  return box ?? element;
}

class Slate {
  /** `onclick(position)` and `onexamined(examined)` are called as it happens. */
  constructor(answer, elements, onclick, onexamined) {
    this.answer = answer;
    this.elements = elements;
    this.boxes = elements.map(boxOf);
    this.open = true; // not reported yet
    this.held = null; // a report that waits for whether the visitor comes back
    this.seen = new Set();
    this.timers = new Map();
    this.onexamined = onexamined;
    // More steps than one: of an item taller than two windows, half is never in sight.
    const threshold = Array.from({ length: 21 }, (_, i) => i / 20);
    this.observer = new IntersectionObserver((entries) => entries.forEach((entry) => this.look(entry)), { threshold });
    elements.forEach((element, position) => {
      this.observer.observe(this.boxes[position]);
      // `capture`: the shop's own handler may stop the event.
      element.addEventListener("click", () => onclick(position), { capture: true });
      // The middle button opens a link in a tab. Elsewhere it starts to scroll.
      element.addEventListener("auxclick", (event) => {
        const onLink = event.composedPath().some((node) => node.matches?.("a[href]"));
        if (event.button === 1 && onLink) onclick(position);
      }, { capture: true });
    });
  }

  /** How many positions from the top were seen. One that was skipped ends the count: below it nobody knows. */
  get examined() {
    let count = 0;
    while (this.seen.has(count)) count += 1;
    return count;
  }

  look({ target, isIntersecting, intersectionRatio, intersectionRect, rootBounds }) {
    const position = this.boxes.indexOf(target);
    const inSight = isIntersecting && (intersectionRatio >= SEEN.share ||
      (rootBounds !== null && intersectionRect.height >= SEEN.share * rootBounds.height));
    if (!inSight || document.hidden) {
      clearTimeout(this.timers.get(position));
      this.timers.delete(position);
    } else if (!this.timers.has(position) && !this.seen.has(position)) {
      this.time(position);
    }
  }

  time(position) {
    this.timers.set(position, setTimeout(() => {
      if (this.isCovered(position)) return this.time(position); // no event tells when a cover goes away
      this.seen.add(position);
      this.observer.unobserve(this.boxes[position]);
      this.onexamined(this.examined);
    }, SEEN.milliseconds));
  }

  // Under a cookie wall, or transparent until it fades in. Only the middle of the item is tested. The stricter
  // `trackVisibility` of IntersectionObserver fails an item that a chat button touches or that is rotated by one
  // degree: such items would be learned from when clicked and never when not. That bias is the greater evil.
  isCovered(position) {
    const element = this.elements[position], box = this.boxes[position];
    const look = { opacityProperty: true, visibilityProperty: true, checkOpacity: true, checkVisibilityCSS: true };
    if (box.checkVisibility?.(look) === false) return true;
    const { left, right, top, bottom } = box.getBoundingClientRect();
    const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
    const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
    const hit = element.getRootNode().elementFromPoint?.(x, y);
    // An ancestor does not cover the item: it is found where the item has `pointer-events: none`.
    return Boolean(hit) && !element.contains(hit) && !hit.contains(element);
  }

  /** Nobody looks at a tab in the background: its clocks stop, and start anew. */
  pause() {
    this.timers.forEach((timer) => clearTimeout(timer));
    this.timers.clear();
  }

  resume() {
    this.boxes.forEach((box, position) => {
      this.observer.unobserve(box);
      if (!this.seen.has(position)) this.observer.observe(box); // the observer tells its state at once
    });
  }

  close() {
    this.open = false;
    this.pause();
    this.observer.disconnect();
  }
}

// --- The page --------------------------------------------------------------------------------------------

export class FirstClick {
  /**
   * `server`, `model`: where firstclick answers; `key`: one with the role "page", which may be public.
   * `recommend`: the shop's own address, or a function, that gives {items, token} in place of firstclick.
   * `feedback`: the shop's own address that passes reports on. `onreport`, `onexamined`: called as it happens.
   */
  constructor({ server = "", model = "default", key = null, recommend = null, feedback = null,
    onreport = () => {}, onexamined = () => {} } = {}) {
    const api = `${server.replace(/\/+$/, "")}/v1/models/${encodeURIComponent(model)}`;
    Object.assign(this, { key, api, onreport, onexamined });
    this.recommend = recommend ?? `${api}/recommend`;
    this.feedback = feedback ?? `${api}/feedback`;
    this.slates = new Map(); // by container
    addEventListener("pagehide", () => this.slates.forEach((slate) => this.reportNoClick(slate)));
    addEventListener("pageshow", (event) => event.persisted && this.comeBack());
    document.addEventListener("visibilitychange", () => {
      this.forgetRemoved();
      this.slates.forEach((slate) => (document.hidden ? this.hold(slate) : this.unhold(slate)));
    });
    setTimeout(() => this.sendBacklog(), BACKLOG_AFTER);
  }

  /** Fetches a slate and shows `render(item, position)`, an element, for each item. Throws if there is none. */
  async show(container, render, request = {}) {
    const call = {}; // the last call for this container wins
    container.firstclickCall = call;
    const wasInPage = container.isConnected;
    const answer = await this.fetchSlate(request).finally(() => {
      this.forgetRemoved();
      this.sendBacklog();
    });
    if (container.firstclickCall !== call) return null;
    // All that may fail comes first: until then the old slate stays, and its clicks count.
    const elements = answer.items.map((item, position) => elementOf(render(item, position)));
    this.forget(container);
    container.replaceChildren(...elements);
    const slate = new Slate(answer, elements,
      // With a click `examined` ends at it. What stands below was perhaps in sight, but the visitor stopped
      // here: to count it as rejected would punish every item below a good one.
      (position) => this.report(slate, { click: position, examined: position + 1 }),
      (examined) => this.tell("onexamined", examined, slate.answer));
    slate.wasInPage = wasInPage;
    slate.renew = () => this.show(container, render, request);
    this.slates.set(container, slate);
    return answer;
  }

  /** The visitor said "none of these": no click, of the whole slate. */
  dismiss(container) {
    const slate = this.slates.get(container);
    return slate ? this.report(slate, { click: null }) : Promise.resolve(null);
  }

  /** What `show` gave for this container last, or null. */
  slateIn(container) {
    return this.slates.get(container)?.answer ?? null;
  }

  async fetchSlate(request) {
    if (typeof this.recommend === "function") return this.recommend(request);
    const response = await this.post(this.recommend, request);
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error?.message ?? `no slate: status ${response.status}`);
    return answer;
  }

  post(url, body, options = {}) {
    const headers = { "Content-Type": "application/json" };
    // The key is for firstclick alone, never for another address.
    if (this.key && url.startsWith(`${this.api}/`)) headers.Authorization = `Bearer ${this.key}`;
    const signal = AbortSignal.timeout(GIVE_UP);
    return fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal, ...options });
  }

  // --- What is reported, and when ---

  report(slate, said) {
    if (!slate.open) return Promise.resolve(null); // only the first click counts
    slate.close();
    return this.send(this.reportOf(slate, said));
  }

  reportOf(slate, said) {
    return { url: this.feedback, body: { token: slate.answer.token, ...said }, since: Date.now(), after: 0 };
  }

  /** On leaving: a slate that nobody looked at says nothing about its items. */
  reportNoClick(slate) {
    const examined = slate.examined;
    if (slate.open && examined > 0) {
      slate.left = true;
      this.report(slate, { click: null, examined });
    } else {
      slate.pause();
    }
  }

  forget(container) {
    const slate = this.slates.get(container);
    if (!slate) return;
    this.reportNoClick(slate);
    slate.close();
    this.slates.delete(container);
  }

  /** Forgets slates whose container was removed from the page. One that was never in it may still be added. */
  forgetRemoved() {
    this.slates.forEach((slate, container) => {
      slate.wasInPage ||= container.isConnected || slate.seen.size > 0;
      if (slate.wasInPage && !container.isConnected) this.forget(container);
    });
  }

  // A hidden tab is not left yet: the visitor may come back and click, and the server keeps the first report
  // of a token (409 for another). But a phone may end a hidden page without a further event. So the report is
  // written down now, for the next page to send when the visit is over.
  hold(slate) {
    if (!slate.open) return;
    slate.pause();
    const examined = slate.examined;
    if (examined === 0) return;
    const report = { ...this.reportOf(slate, { click: null, examined }), after: Date.now() + VISIT_OVER };
    slate.held = unsent.put(report) ? report : null;
  }

  unhold(slate) {
    if (!slate.open) return;
    const key = slate.held && unsent.keyOf(slate.held);
    const kept = key && unsent.get(key);
    slate.held = null;
    if (key && (kept === null || kept.sending)) { // another tab has sent it meanwhile, or is at it
      slate.left = true;
      slate.close();
      this.comeBack();
    } else {
      if (key) unsent.drop(key);
      slate.resume();
    }
  }

  /** A page brought back by the back button shows slates that were reported when it was left: take new ones. */
  comeBack() {
    this.slates.forEach((slate) => {
      if (slate.left) slate.renew().catch(() => {}); // the old one stays in sight if there is no new one
      else if (slate.open) slate.resume();
    });
  }

  // --- Sending ---

  /** Sends until an answer came, on this page or the next; returns the answer. */
  async send(report) {
    unsent.put({ ...report, sending: true }); // over a report that was held for this token
    const { token, click, examined } = report.body;
    // `keepalive`: a click mostly leads away from this page, and the report must outlive it.
    const keepalive = JSON.stringify(report.body).length < KEEPALIVE_MOST;
    for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      // No answer: the server may or may not have counted it. Only sending it again tells.
      const response = await this.post(report.url, report.body, { keepalive }).catch(() => null);
      // One try at least: the clock may have been wrong then. The server refuses tokens that are too old.
      const isOld = Date.now() > report.since + KEEP;
      if (response && response.status !== 429 && response.status < 500) {
        const answer = await response.json().catch(() => ({}));
        // Any other answer is final: asking again would not change it. Only a key may be mended meanwhile.
        const isRefused = response.status === 401 || response.status === 403;
        if (isRefused) console.warn("firstclick: the key is refused");
        if (!isRefused || isOld) unsent.drop(unsent.keyOf(report));
        this.tell("onreport", { token, click, examined, ...answer, code: response.status });
        return answer;
      }
      this.tell("onreport", { token, click, examined, status: "waiting", code: 0 });
      if (isOld) break;
      const asked = 1000 * Number(response?.headers.get("Retry-After")) || 0;
      await pause(Math.max(asked, wait * (0.5 + Math.random()))); // not all visitors at the same moment
    }
    unsent.drop(unsent.keyOf(report));
    return null;
  }

  /** What earlier pages could not send. Another tab may be sending the same: the token makes that harmless. */
  async sendBacklog() {
    if (this.backlogSent) return;
    this.backlogSent = true;
    for (const key of unsent.keys()) {
      const report = unsent.get(key); // read now: a tab may have taken its own back
      if (report?.url !== this.feedback || Date.now() < report.after) continue;
      await this.send(report);
      await pause(BACKLOG_PAUSE);
    }
  }

  /** Calls a callback of the shop. Its errors are reported as uncaught ones, and stop nothing here. */
  tell(callback, ...news) {
    try {
      this[callback](...news);
    } catch (error) {
      reportError(error);
    }
  }
}

function elementOf(rendered) {
  if (rendered?.nodeType === Node.ELEMENT_NODE) return rendered;
  throw new TypeError(`render must return an element, got ${Object.prototype.toString.call(rendered)}`);
}
