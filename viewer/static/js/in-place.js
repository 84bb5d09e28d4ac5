// Pages that the server draws anew, put in the place of what is shown.

import { asLeft } from "./as-left.js";
import { addLocalTimes } from "./local-time.js";

// The page at an address, and the address that it came to have. Scripts in a parsed document do not run.
export async function pageAt(address, signal) {
  const answer = await fetch(address, { signal, cache: "no-store" });
  if (!answer.ok) throw new Error(answer.statusText);
  return { page: new DOMParser().parseFromString(await answer.text(), "text/html"), address: answer.url };
}

// Nothing is asked for while nobody sees the page.
export async function untilSeen(signal) {
  while (document.hidden && !signal.aborted) {
    await new Promise((resume) => document.addEventListener("visibilitychange", resume, { once: true, signal }));
  }
}

// What the reader has opened stays open, on a page of another address too.
export function keepOpen(page) {
  for (const details of document.querySelectorAll("main li[id] > details[open]")) {
    page.getElementById(details.parentElement.id)?.querySelector("details")?.setAttribute("open", "");
  }
  for (const details of document.querySelectorAll("main details[id][open]")) {
    page.getElementById(details.id)?.setAttribute("open", "");
  }
}

export function replacePart(selector, page) {
  const fresh = page.querySelector(selector);
  if (fresh === null) return;
  addLocalTimes(fresh);
  document.querySelector(selector)?.replaceWith(fresh);
}

// The same page, drawn anew under its reader.
export function redrawPart(selector, page) {
  const [shown, fresh] = [document.querySelector(selector), page.querySelector(selector)];
  if (shown === null || fresh === null) return;
  const goOn = asLeft(shown, fresh);
  replacePart(selector, page);
  goOn();
}

// A click that the browser would follow here, and not in another tab or window.
export function isPlainClick(event) {
  return event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}

// Shows pages in place. The last one that was asked for wins; what cannot be shown so, the browser shows itself.
export class InPlace {
  #asked = null;

  async show(address, element, replace) {
    this.letGo();
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    element.setAttribute("aria-busy", "true");
    try {
      const found = await pageAt(address, signal);
      if (!signal.aborted) replace(found.page, found.address);
    } catch {
      if (!signal.aborted) location.assign(address);
    }
  }

  letGo() {
    this.#asked?.abort();
  }
}
