// A shop page that recommends with firstclick, by plain fetch. Two calls are all there is: `recommend` before
// the page shows something, `feedback` when the visitor has clicked or left.
//
// On the open web let your own server make these calls: a key in a page is a key given away.

const model = decodeURIComponent(location.hash.slice(1)) || "default";
const api = `/v1/models/${encodeURIComponent(model)}`;
const part = (id) => document.getElementById(id);
const say = (text) => { part("said").textContent = text; };
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function post(path, body, options = {}) {
  // The content type must be JSON: a stranger's page cannot send that to a server that does not allow it.
  const headers = { "Content-Type": "application/json" };
  return fetch(api + path, { method: "POST", headers, body: JSON.stringify(body), ...options });
}

// Sends a click until an answer came. The token names the slate, so sending it again can never count it
// twice: after a lost answer the server says "duplicate" instead of "accepted", and both mean that it counts.
async function sendUntilAnswered(token, click) {
  for (let wait = 250; ; wait = Math.min(wait * 2, 10000)) {
    try {
      const response = await post("/feedback", { token, click });
      // 429 and 503 mean "not now"; any other answer is final, and asking again would not change it.
      if (response.status !== 429 && response.status !== 503) return await response.json();
      wait = Math.max(wait, 1000 * Number(response.headers.get("Retry-After") ?? 0));
    } catch {
      // No answer at all: the server may or may not have counted it. Only sending it again tells.
    }
    say("The shop does not answer; your click is sent again.");
    await sleep(wait * (0.5 + Math.random())); // not all visitors at the same moment
  }
}

// What the ids mean. A real shop knows its own products; this one asks the model.
async function readNames() {
  const response = await fetch(`${api}/items?limit=1000`);
  const { items } = response.ok ? await response.json() : { items: [] };
  return new Map(items.map((item) => [item.id, item]));
}

let open = null; // the token of the slate on the page while nobody has answered it

async function showSlate() {
  const response = await post("/recommend", {}).catch(() => null);
  if (response === null) return say("The shop does not answer; reload the page in a moment.");
  const answer = await response.json();
  if (!response.ok) return say(answer.error.message);
  open = answer.token;
  part("slots").replaceChildren(...answer.items.map((id, position) => {
    const { name, group } = names.get(id) ?? {};
    const button = document.createElement("button");
    const title = document.createElement("bdi");
    title.textContent = name || id; // as text: a name may hold anything, markup too
    const tag = document.createElement("small");
    tag.textContent = group ?? "";
    button.append(title, tag);
    button.addEventListener("click", () => answerSlate(position));
    const slot = document.createElement("li");
    slot.append(button);
    return slot;
  }));
}

async function answerSlate(click) {
  const token = open;
  if (token === null) return; // only the first click counts
  open = null;
  const { status, seq, error } = await sendUntilAnswered(token, click);
  say(error ? error.message : `Kept as event ${seq} (${status}). Here is the next slate.`);
  await showSlate();
}

// Who leaves without a click says something too: nothing on the slate was good enough. `keepalive` lets the
// call outlive the page. It may get lost all the same; then nothing is learned, and nothing is wrong.
addEventListener("pagehide", () => {
  if (open !== null) post("/feedback", { token: open, click: null }, { keepalive: true });
  open = null;
});
// A page brought back by the back button shows a slate that was answered when it was left: take a new one.
addEventListener("pageshow", (event) => { if (event.persisted) showSlate(); });
addEventListener("hashchange", () => location.reload());

part("model").textContent = model;
part("back").href = `/#${encodeURIComponent(model)}`;
part("others").addEventListener("click", () => answerSlate(null));
const names = await readNames();
await showSlate();
