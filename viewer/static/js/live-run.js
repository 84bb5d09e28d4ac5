// <live-run data-trace="/api/diagnosis/SESSION/trace?runId=RUN" data-etag="...">: while the run is running, asks for
// its trace, and shows the page anew whenever the trace is no longer the one that the page shows.

import { addLocalTimes } from "/static/js/local-time.js";

const PAUSE_MS = 2000;
const PAUSE_MAX_MS = 30000;
const FOLLOWING = "Live: this page follows the run.";

class LiveRun extends HTMLElement {
  #left = null;

  connectedCallback() {
    this.#left = new AbortController();
    this.#say(FOLLOWING);
    this.#follow(this.#left.signal);
  }

  disconnectedCallback() {
    this.#left.abort();
  }

  async #follow(signal) {
    for (let pause = PAUSE_MS; !signal.aborted; ) {
      try {
        const answer = await fetch(this.dataset.trace, {
          signal,
          cache: "no-store",
          headers: { "If-None-Match": this.dataset.etag },
        });
        if (answer.status === 404) return this.#say("This run is no longer in the ledger.");
        if (answer.status === 200) return await this.#showAnew(signal);
        if (answer.status !== 304) throw new Error(answer.statusText);
        this.#say(FOLLOWING);
        pause = PAUSE_MS;
      } catch {
        if (signal.aborted) return undefined;
        this.#say("The connection is lost; trying again.");
        pause = Math.min(pause * 2, PAUSE_MAX_MS);
      }
      await new Promise((resume) => setTimeout(resume, pause));
    }
    return undefined;
  }

  // The server draws the page, and what was open stays so. A page still running brings the next <live-run> along;
  // one that has ended brings none. Scripts in a parsed document do not run.
  async #showAnew(signal) {
    const answer = await fetch(location.href, { signal, cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const details of document.querySelectorAll("main li[id] > details[open]")) {
      fresh.getElementById(details.parentElement.id)?.querySelector("details")?.setAttribute("open", "");
    }
    const main = fresh.querySelector("main");
    addLocalTimes(main);
    document.title = fresh.title;
    document.querySelector("main").replaceWith(main);
  }

  #say(words) {
    if (this.textContent !== words) this.textContent = words;
  }
}

customElements.define("live-run", LiveRun);
