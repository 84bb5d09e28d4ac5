// <live-run data-trace="/api/diagnosis/SESSION/trace?runId=RUN" data-live="..." data-etag="..." data-seq="...">: while the
// run is running, shows the page anew whenever the server tells of an event that it does not show yet. Where it may have
// missed one, and now and then in any case, it asks whether the trace is still the one that it shows.

import { pageAt, redrawPart, untilSeen } from "./in-place.js";

const PAUSE_MS = 2000;
const PAUSE_TOLD_MS = 15000;
const PAUSE_MAX_MS = 30000;
const REST_MS = 250; // between two drawings; the server tells no faster either

// One stream for a page, however often what it shows is drawn anew. After a lost connection the browser itself goes on,
// from the last event that it has seen.
class Stream {
  #source = null;
  #hear = null;
  seq = 0; // of the last event that was told

  // `hear` is told whether the page may have missed something.
  listen(address, hear) {
    this.#hear = hear;
    if (this.#source !== null) return;
    this.#source = new EventSource(address);
    this.#source.onopen = () => this.#hear(true);
    this.#source.onmessage = (message) => {
      this.seq = JSON.parse(message.data).seq;
      this.#hear(false);
    };
    this.#source.addEventListener("end", () => {
      this.#source.close();
      this.#hear(true);
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
  #mayHaveMissed = !stream.isOpen;
  #resume = () => {};

  connectedCallback() {
    this.#left = new AbortController();
    this.#say(this.dataset.following);
    stream.listen(this.dataset.live, (mayHaveMissed) => {
      this.#mayHaveMissed ||= mayHaveMissed;
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
        const status = await this.#status(signal);
        if (status === 404) return this.#say(this.dataset.gone);
        if (status === 200) return await this.#showAnew(signal);
        if (status !== 304) throw new Error(status);
        this.#say(this.dataset.following);
        pause = stream.isOpen ? PAUSE_TOLD_MS : PAUSE_MS;
      } catch {
        if (signal.aborted) return undefined;
        this.#mayHaveMissed = true;
        this.#say(this.dataset.lost);
        pause = Math.min(pause * 2, PAUSE_MAX_MS);
      }
      await this.#pause(pause);
    }
    return undefined;
  }

  // As of an answer to whether the trace has changed; who knows it does not ask.
  async #status(signal) {
    if (stream.seq > Number(this.dataset.seq)) return 200;
    if (!this.#mayHaveMissed) return 304;
    this.#mayHaveMissed = false;
    const headers = { "If-None-Match": this.dataset.etag };
    return (await fetch(this.dataset.trace, { signal, cache: "no-store", headers })).status;
  }

  // Until something is told, or for as long as given; a busy run is not asked for all the time.
  async #pause(pause) {
    await new Promise((resume) => setTimeout(resume, REST_MS));
    if (this.#isTold) return;
    let timer;
    await new Promise((resume) => {
      this.#resume = resume;
      timer = setTimeout(() => {
        this.#mayHaveMissed = true;
        resume();
      }, pause - REST_MS);
    });
    clearTimeout(timer);
  }

  // A page still running brings the next <live-run> along; one that has ended brings none.
  async #showAnew(signal) {
    await untilSeen(signal);
    const { page } = await pageAt(location.href, signal);
    document.title = page.title;
    redrawPart("main", page);
  }

  #say(words) {
    if (this.textContent !== words) this.textContent = words;
  }
}

customElements.define("live-run", LiveRun);
