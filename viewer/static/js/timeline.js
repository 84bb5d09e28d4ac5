// <time-zoom data-knots="US:PERCENT ..." data-edge="98">: looks closer at a stretch of the run without leaving the page.
// The server draws every stretch; what is shown is replaced by what it answers, and the address says which stretch it is.
// Keys while the focus is inside: + and - closer and wider, [ and ] or the arrows earlier and later, 0 the whole run.
// Mouse: a drag selects a stretch, the wheel with ctrl looks closer and wider where it points.

import { InPlace, isPlainClick, keepOpen, replacePart } from "./in-place.js";
import { Pointing } from "./timeline-pointing.js";

const STEP_OF = { "+": "in", "=": "in", "-": "out", "0": "all", "[": "earlier", "]": "later", ArrowLeft: "earlier", ArrowRight: "later" };

class TimeZoom extends HTMLElement {
  #left = null;
  #inPlace = new InPlace();
  #pointing = null;

  connectedCallback() {
    this.#left = new AbortController();
    const { signal } = this.#left;
    this.addEventListener("click", (event) => this.#follow(event), { signal });
    this.addEventListener("keydown", (event) => this.#press(event), { signal });
    this.#pointing = new Pointing(this, signal, (t0, t1) => this.#show(stretch(t0, t1), "plot"), () => this.#step("out", "plot"));
    const plot = this.querySelector(".tl-plot");
    if (plot === null) return;
    plot.tabIndex = 0;
    plot.ariaLabel = plot.dataset.keys;
  }

  disconnectedCallback() {
    this.#left.abort();
  }

  #follow(event) {
    const link = event.target.closest("a[data-zoom]");
    if (link === null || event.defaultPrevented || !isPlainClick(event)) return;
    event.preventDefault();
    this.#show(link.getAttribute("href"), link.dataset.zoom);
  }

  // The arrows are the replay's where there is nothing to move, and with shift.
  #press(event) {
    if (event.key === "Escape") this.#pointing.letGo();
    const isForReplay = event.shiftKey && event.key.startsWith("Arrow");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isForReplay) return;
    const step = STEP_OF[event.key];
    if (step !== undefined && this.#step(step, step)) event.preventDefault();
  }

  #step(name, focused) {
    const link = this.querySelector(`a[data-zoom="${name}"]`);
    if (link !== null) this.#show(link.getAttribute("href"), focused);
    return link !== null;
  }

  #show(address, focused) {
    this.#inPlace.show(address, this, (page, found) => replacePage(page, found, focused));
  }
}

// The address of another stretch of the run.
function stretch(t0, t1) {
  const address = new URL(location.href);
  address.searchParams.set("t0", t0);
  address.searchParams.set("t1", t1);
  return address.href;
}

// Every link of the page carries the stretch, so more than the drawing is new.
function replacePage(page, address, focused) {
  keepOpen(page);
  replacePart("main > .trace", page);
  replacePart("replay-bar", page);
  history.replaceState(history.state, "", address);
  const zoom = document.querySelector("time-zoom");
  (zoom.querySelector(`a[data-zoom="${focused}"]`) ?? zoom.querySelector(".tl-plot") ?? zoom).focus({ preventScroll: true });
}

customElements.define("time-zoom", TimeZoom);
