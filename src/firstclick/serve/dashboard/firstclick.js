// firstclick for a page: shows a slate and reports what the visitor did with it. No dependencies.
//
//   import { FirstClick } from "https://firstclick.shop.example/ui/firstclick.js";
//   const page = new FirstClick({ server: "https://firstclick.shop.example", model: "shop", key: "fc_..." });
//   await page.show(document.querySelector("#slate"), (id) => tileOf(id));
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
const FIRST_WAIT = 500, LONGEST_WAIT = 30_000, GIVE_UP = 10_000; // milliseconds
// Browsers refuse `keepalive` for bodies over 64 KiB in all.
const KEEPALIVE_MOST = 60_000;
const PREFIX = "firstclick-report:";

// --- Reports that are not answered yet: in localStorage, so that the next page can send them -------------

// A key of its own for each report: two tabs never overwrite each other's. Where site data is blocked nothing
// is kept, and the rest works as it does elsewhere.
const unsent = {
  key: (report) => PREFIX + report.body.token,
  put(report) {
    try {
      localStorage.setItem(this.key(report), JSON.stringify(report));
      return true;
    } catch {
      return false; // blocked, or full
    }
  },
  /** Whether another page has this one in its hands: it was sent, or is being sent. */
  isTaken(report) {
    try {
      const kept = localStorage.getItem(this.key(report));
      return kept === null || JSON.parse(kept).sending === true;
    } catch {
      return false;
    }
  },
  drop(report) {
    try {
      localStorage.removeItem(this.key(report));
    } catch { /* nothing was kept */ }
  },
  all() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).flatMap((key) => {
        try {
          return [JSON.parse(localStorage.getItem(key))];
        } catch {
          localStorage.removeItem(key);
          return [];
        }
      }).filter((report) => report?.body?.token);
    } catch {
      return [];
    }
  },
};

// --- One slate on the page -------------------------------------------------------------------------------

class Slate {
  /** `onclick(position)` and `onexamined(examined)` are called as it happens. */
  constructor(answer, elements, onclick, onexamined) {
    this.answer = answer;
    this.elements = elements;
    this.open = true; // not reported yet
    this.held = null; // a report that waits for whether the visitor comes back
    this.seen = new Set();
    this.timers = new Map();
    this.onexamined = onexamined;
    // More steps than one: of an item taller than two windows, half is never in sight.
    const threshold = Array.from({ length: 21 }, (_, i) => i / 20);
    this.observer = new IntersectionObserver((entries) => entries.forEach((entry) => this.look(entry)), { threshold });
    elements.forEach((element, position) => {
      this.observer.observe(element);
      // `capture`: the shop's own handler may stop the event. `auxclick`: the middle button opens a tab.
      element.addEventListener("click", () => onclick(position), { capture: true });
      element.addEventListener("auxclick", (event) => event.button === 1 && onclick(position), { capture: true });
    });
  }

  /** How many positions from the top were seen. One that was skipped ends the count: below it nobody knows. */
  get examined() {
    let count = 0;
    while (this.seen.has(count)) count += 1;
    return count;
  }

  look({ target, isIntersecting, intersectionRatio, intersectionRect, rootBounds }) {
    const position = this.elements.indexOf(target);
    const inSight = isIntersecting && (intersectionRatio >= SEEN.share ||
      (rootBounds !== null && intersectionRect.height >= SEEN.share * rootBounds.height));
    if (!inSight || document.hidden) {
      clearTimeout(this.timers.get(position));
      this.timers.delete(position);
    } else if (!this.timers.has(position) && !this.seen.has(position)) {
      this.timers.set(position, setTimeout(() => {
        this.seen.add(position);
        this.observer.unobserve(target);
        this.onexamined(this.examined);
      }, SEEN.milliseconds));
    }
  }

  /** Nobody looks at a tab in the background: its clocks stop, and start anew. */
  pause() {
    this.timers.forEach((timer) => clearTimeout(timer));
    this.timers.clear();
  }

  resume() {
    this.elements.forEach((element, position) => {
      this.observer.unobserve(element);
      if (!this.seen.has(position)) this.observer.observe(element); // the observer tells its state at once
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
    document.addEventListener("visibilitychange", () => this.slates.forEach((slate) => {
      if (document.hidden) this.hold(slate);
      else this.unhold(slate);
    }));
    this.sendUnsent();
  }

  /** Fetches a slate and shows `render(item, position)`, an element, for each item. Throws if there is none. */
  async show(container, render, request = {}) {
    const call = {}; // the last call for this container wins
    container.firstclickCall = call;
    const answer = await (typeof this.recommend === "function" ? this.recommend(request) : this.fetchSlate(request));
    if (container.firstclickCall !== call) return null;
    const before = this.slates.get(container);
    if (before) {
      this.reportNoClick(before);
      before.close();
    }
    const elements = answer.items.map(render);
    container.replaceChildren(...elements);
    const slate = new Slate(answer, elements,
      // With a click `examined` ends at it. What stands below was perhaps in sight, but the visitor stopped
      // here: to count it as rejected would punish every item below a good one.
      (position) => this.report(slate, { click: position, examined: position + 1 }),
      (examined) => this.onexamined(examined, slate.answer));
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
    const taken = slate.held !== null && unsent.isTaken(slate.held);
    if (slate.held && !taken) unsent.drop(slate.held);
    slate.held = null;
    if (taken) { // another tab has reported it meanwhile
      slate.left = true;
      slate.close();
      this.comeBack();
    } else {
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
    const told = { token: report.body.token, click: report.body.click, examined: report.body.examined };
    const text = JSON.stringify(report.body);
    for (let wait = FIRST_WAIT; Date.now() < report.since + KEEP; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      let pause = 0;
      try {
        // `keepalive`: a click mostly leads away from this page, and the report must outlive it.
        const response = await this.post(report.url, report.body, { keepalive: text.length < KEEPALIVE_MOST });
        if (response.status !== 429 && response.status < 500) {
          const answer = await response.json().catch(() => ({}));
          // Any other answer is final: asking again would not change it. Only a key may be mended meanwhile.
          if (response.status === 401 || response.status === 403) console.warn("firstclick: the key is refused");
          else unsent.drop(report);
          this.onreport({ ...told, ...answer, code: response.status });
          return answer;
        }
        pause = 1000 * Number(response.headers.get("Retry-After") ?? 0) || 0;
      } catch {
        // No answer: the server may or may not have counted it. Only sending it again tells.
      }
      this.onreport({ ...told, status: "waiting", code: 0 });
      // Not all visitors at the same moment.
      await new Promise((done) => setTimeout(done, Math.max(pause, wait * (0.5 + Math.random()))));
    }
    unsent.drop(report);
    return null;
  }

  /** What earlier pages could not send. Another tab may be sending the same: the token makes that harmless. */
  sendUnsent() {
    for (const report of unsent.all()) {
      if (Date.now() > report.since + KEEP) unsent.drop(report);
      else if (report.url === this.feedback && Date.now() >= report.after) this.send(report);
    }
  }
}
