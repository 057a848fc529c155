// The few ways in which the page is changed. Texts of the server go in as text, never as markup, and what is
// the same already is left alone: nothing flickers, and what the reader has selected or scrolled stays.

export const part = (id) => document.getElementById(id);

/** A new element; children are elements or texts. */
export function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

export const span = (className, ...children) => element("span", className, ...children);

/** A name of an item: <bdi> keeps right-to-left names from turning around what stands beside them. */
export const named = (className) => element("bdi", className);

export function say(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

export function place(node, property, value) {
  if (node.style.getPropertyValue(property) !== value) node.style.setProperty(property, value);
}

export function attribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Makes the children of `parent` stand for `entries`: one with a known key is kept, moved and updated. */
export function keep(parent, entries, { key = (_, i) => i, make, update }) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  entries.forEach((entry, i) => {
    const name = String(key(entry, i));
    let node = known.get(name);
    known.delete(name);
    if (!node) {
      node = make(entry, i);
      node.dataset.key = name;
    }
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
    update(node, entry, i);
  });
  while (parent.children.length > entries.length) parent.lastElementChild.remove();
}

/** An empty bar with a whisker, to be set by `setGauge`. */
export const gauge = () => span("gauge", span("bar"), span("whisker"));

/** A bar up to `mean`, a whisker from `low` to `high`; the scale ends at `top`, beyond it is no end cap. */
export function setGauge(node, { mean, low, high }, top) {
  const [bar, whisker] = node.children;
  const inside = (value) => Math.min(Math.max(value / top, 0), 1) * 100;
  show(bar, mean !== null);
  show(whisker, mean !== null);
  if (mean === null) return;
  place(bar, "width", `${inside(mean).toFixed(2)}%`);
  place(whisker, "left", `${inside(low).toFixed(2)}%`);
  place(whisker, "width", `${(inside(high) - inside(low)).toFixed(2)}%`);
  whisker.classList.toggle("from-below", low < 0);
  whisker.classList.toggle("goes-on", high > top * 1.0001);
}
