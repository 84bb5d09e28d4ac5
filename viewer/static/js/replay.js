// <replay-bar data-total="N">: walks through a run without leaving the page. The server draws every moment; what is
// shown is replaced by what it answers, and the address says where the run is. Keys: left and right go one event back and
// on, with shift to the failure before and the next one, home and end to the first event and to the run as it is now.

import { InPlace, isPlainClick, keepOpen, replacePart } from "./in-place.js";

const REST_MS = 90;
const TYPED_IN = "input, textarea, select, [contenteditable], [role=slider], [role=tree], [data-own-keys]";

class ReplayBar extends HTMLElement {
  #left = null;
  #inPlace = new InPlace();
  #timer = 0;

  connectedCallback() {
    this.#left = new AbortController();
    const { signal } = this.#left;
    const slider = this.#slider;
    slider.addEventListener("input", () => this.#slideTo(slider.value), { signal });
    this.#number.addEventListener("input", () => this.#number.validity.valid && this.#slideTo(this.#number.value), { signal });
    this.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#slideTo(this.#number.value);
    }, { signal });
    this.addEventListener("click", (event) => this.#follow(event), { signal });
    document.addEventListener("keydown", (event) => this.#press(event), { signal });
  }

  disconnectedCallback() {
    this.#left.abort();
    this.#inPlace.letGo();
    clearTimeout(this.#timer);
  }

  get #slider() {
    return this.querySelector(".slider");
  }

  get #number() {
    return this.querySelector("input[name=at]");
  }

  // The page at an event, as the form would ask for it.
  #address(seq) {
    const form = this.querySelector("form");
    const query = new URLSearchParams(new FormData(form));
    query.set("at", seq);
    return `${form.action}?${query}`;
  }

  #slideTo(seq) {
    this.#slider.value = seq;
    this.#number.value = seq;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(this.#address(seq)), REST_MS);
  }

  #follow(event) {
    const link = event.target.closest("a");
    if (link === null || !isPlainClick(event)) return;
    event.preventDefault();
    this.#show(link.href);
  }

  #press(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest(TYPED_IN) !== null) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const wanted = {
      ArrowLeft: event.shiftKey ? "[data-seek=failure-before]" : "a[data-part=previous]",
      ArrowRight: event.shiftKey ? "[data-seek=failure]" : "a[data-part=following]",
      Home: "a[data-part=first]",
      End: "a[data-part=last]",
    }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    const link = this.querySelector(wanted);
    if (link !== null) this.#show(link.href);
  }

  #show(address) {
    clearTimeout(this.#timer);
    this.#inPlace.show(address, this, (page, found) => this.#replace(page, found));
  }

  #replace(page, address) {
    const bar = page.querySelector("replay-bar");
    keepOpen(page);
    history.replaceState(history.state, "", address);
    document.title = page.title;
    replacePart("main > .trace", page);
    this.className = bar.className;
    this.removeAttribute("aria-busy");
    this.#number.value = bar.querySelector("input[name=at]").value;
    for (const part of bar.querySelectorAll("[data-part]")) this.#renew(part);
  }

  // The slider stays where it is, since it may be held.
  #renew(part) {
    const old = this.querySelector(`[data-part=${part.dataset.part}]`);
    if (part.dataset.part === "slider") {
      old.max = part.max;
      old.value = part.value;
      return;
    }
    const hadFocus = old.contains(document.activeElement);
    const seek = document.activeElement?.dataset?.seek;
    old.replaceWith(part);
    if (hadFocus) (part.querySelector(`[data-seek="${seek}"]`) ?? part).focus();
  }
}

customElements.define("replay-bar", ReplayBar);
