// The keyboard: `?` shows what there is. A key is never taken from somebody who writes, or who holds Ctrl, Alt or Meta.

const WRITES = "input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const SECOND_MS = 1200;
const ROWS = "[data-row], .runs > li, .work > li, .events tbody tr";
const ROW_LINK = "a[href], summary";

const help = document.querySelector("dialog#keys");
let isGoing = false;

class KeyboardHelp extends HTMLElement {
  connectedCallback() {
    if (this.firstChild) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "key-help";
    button.textContent = "?";
    button.ariaLabel = help.querySelector("h2").textContent;
    button.addEventListener("click", () => help.showModal());
    this.append(button);
  }
}

customElements.define("keyboard-help", KeyboardHelp);

// `g`, and soon after it the key of a section.
function go(key) {
  if (isGoing) {
    isGoing = false;
    document.querySelector(`.sections a[data-key="${CSS.escape(key)}"]`)?.click();
    return true;
  }
  if (key !== "g") return false;
  isGoing = true;
  setTimeout(() => {
    isGoing = false;
  }, SECOND_MS);
  return true;
}

function step(by) {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + by, 0), rows.length - 1)];
  next?.querySelector(ROW_LINK)?.focus();
}

const ACTIONS = {
  "?": () => help.showModal(),
  "/": () => document.querySelector('[data-key="/"]')?.focus(),
  j: () => step(1),
  k: () => step(-1),
  n: () => document.querySelector('main a[rel="next"]')?.click(),
  p: () => document.querySelector('main a[rel="prev"]')?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
  if (help.open || event.target.closest?.(WRITES)) return;
  if (go(event.key)) {
    event.preventDefault();
    return;
  }
  const act = ACTIONS[event.key];
  if (act === undefined) return;
  event.preventDefault();
  act();
});
