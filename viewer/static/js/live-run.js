// <live-run data-trace="/api/diagnosis/SESSION/trace?runId=RUN" data-live="..." data-etag="...">: while the run is
// running, asks for its trace whenever the server says that something has happened, and now and then in any case, and
// shows the page anew whenever the trace is no longer the one that the page shows.

import { keepOpen, pageAt, replacePart } from "./in-place.js";

const PAUSE_MS = 2000;
const PAUSE_TOLD_MS = 15000;
const PAUSE_MAX_MS = 30000;
const REST_MS = 250;

// One stream for a page, however often what it shows is drawn anew. After a lost connection the browser itself goes on,
// from the last event that it has seen.
class Stream {
  #source = null;
  #wake = null;

  listen(address, wake) {
    this.#wake = wake;
    if (this.#source !== null) return;
    this.#source = new EventSource(address);
    this.#source.onopen = () => this.#wake();
    this.#source.onmessage = () => this.#wake();
    this.#source.addEventListener("end", () => {
      this.#source.close();
      this.#wake();
    });
  }

  get isOpen() {
    return this.#source?.readyState === EventSource.OPEN;
  }

  close() {
    this.#source?.close();
    this.#source = null;
  }
}

const stream = new Stream();

class LiveRun extends HTMLElement {
  #left = null;
  #isTold = false;
  #resume = () => {};

  connectedCallback() {
    this.#left = new AbortController();
    this.#say(this.dataset.following);
    stream.listen(this.dataset.live, () => {
      this.#isTold = true;
      this.#resume();
    });
    this.#follow(this.#left.signal);
  }

  disconnectedCallback() {
    this.#left.abort();
    if (document.querySelector("live-run") === null) stream.close();
  }

  async #follow(signal) {
    for (let pause = PAUSE_MS; !signal.aborted; ) {
      this.#isTold = false;
      try {
        const answer = await fetch(this.dataset.trace, {
          signal,
          cache: "no-store",
          headers: { "If-None-Match": this.dataset.etag },
        });
        if (answer.status === 404) return this.#say(this.dataset.gone);
        if (answer.status === 200) return await this.#showAnew(signal);
        if (answer.status !== 304) throw new Error(answer.statusText);
        this.#say(this.dataset.following);
        pause = stream.isOpen ? PAUSE_TOLD_MS : PAUSE_MS;
      } catch {
        if (signal.aborted) return undefined;
        this.#say(this.dataset.lost);
        pause = Math.min(pause * 2, PAUSE_MAX_MS);
      }
      await this.#pause(pause);
    }
    return undefined;
  }

  // Until something is told, or for as long as given; a busy run is not asked for all the time.
  async #pause(pause) {
    await new Promise((resume) => setTimeout(resume, REST_MS));
    if (this.#isTold) return;
    await new Promise((resume) => {
      this.#resume = resume;
      setTimeout(resume, pause - REST_MS);
    });
  }

  // A page still running brings the next <live-run> along; one that has ended brings none.
  async #showAnew(signal) {
    const { page } = await pageAt(location.href, signal);
    keepOpen(page);
    document.title = page.title;
    replacePart("main", page);
  }

  #say(words) {
    if (this.textContent !== words) this.textContent = words;
  }
}

customElements.define("live-run", LiveRun);
