// <live-part id="..." data-running="true">: a part of a page that the server draws anew now and then, more often while
// something in it is running.

import { asLeft } from "./as-left.js";
import { pageAt, untilSeen } from "./in-place.js";
import { addLocalTimes } from "./local-time.js";

const PAUSE_RUNNING_MS = 2000;
const PAUSE_MS = 15000;
const PAUSE_MAX_MS = 60000;

class LivePart extends HTMLElement {
  #left = null;

  connectedCallback() {
    this.#left = new AbortController();
    this.#follow(this.#left.signal, this.innerHTML);
  }

  disconnectedCallback() {
    this.#left.abort();
  }

  async #follow(signal, drawn) {
    let shown = null;
    for (let pause = this.#usual; !signal.aborted; ) {
      await this.#pause(pause, signal);
      if (signal.aborted) return;
      try {
        const fresh = await this.#asked(signal);
        const text = fresh.innerHTML;
        if (text !== (shown ?? drawn)) this.#show(fresh);
        shown = text;
        pause = this.#usual;
      } catch {
        pause = Math.min(pause * 2, PAUSE_MAX_MS);
      }
    }
  }

  get #usual() {
    return this.dataset.running === "true" ? PAUSE_RUNNING_MS : PAUSE_MS;
  }

  async #pause(pause, signal) {
    await new Promise((resume) => setTimeout(resume, pause));
    await untilSeen(signal);
  }

  async #asked(signal) {
    const { page } = await pageAt(location.href, signal);
    const fresh = page.getElementById(this.id);
    if (fresh === null) throw new Error("the part is gone");
    return fresh;
  }

  #show(fresh) {
    const goOn = asLeft(this, fresh);
    this.dataset.running = fresh.dataset.running;
    this.replaceChildren(...fresh.childNodes);
    addLocalTimes(this);
    goOn();
  }
}

customElements.define("live-part", LivePart);
