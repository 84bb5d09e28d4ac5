// <json-tree>: a row of a JSON tree can be chosen, by a click or with the arrow keys, and its path or its value copied;
// all of it can be opened and closed at once. Without this the tree is the same, but for that.

import { COPIED } from "./words.js";

const NAME = /^[A-Za-z_$][\w$]*$/;

const exactly = (element) => (element.dataset.exact === undefined ? element.textContent : JSON.parse(element.dataset.exact));
const rowOf = (element) => element.closest("li") ?? element.closest("json-tree");
const own = (row, selector) =>
  row.querySelector(`:scope > ${selector}`) ?? row.querySelector(`:scope > details > summary > ${selector}`);

class JsonTree extends HTMLElement {
  #path = document.createElement("output");
  #chosen = null;

  connectedCallback() {
    if (this.querySelector(".tools")) return;
    const tools = document.createElement("p");
    tools.className = "tools";
    tools.append(this.#button(this.dataset.openAll, () => this.#openAll(true)), this.#button(this.dataset.closeAll, () => this.#openAll(false)));
    if (navigator.clipboard) {
      tools.append(this.#button(this.dataset.copyPath, () => this.#copy(this.#pathOf(this.#chosen ?? this))));
      tools.append(this.#button(this.dataset.copyValue, () => this.#copy(this.#textOf(this.#chosen ?? this))));
    }
    tools.append(this.#path);
    this.prepend(tools);
    this.addEventListener("click", (event) => {
      if (event.target.closest(".tools") === null) this.#choose(rowOf(event.target));
    });
    this.addEventListener("focusin", (event) => {
      if (event.target.matches("summary")) this.#choose(rowOf(event.target));
    });
    this.addEventListener("keydown", (event) => this.#step(event));
  }

  #button(words, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = words;
    button.addEventListener("click", act);
    return button;
  }

  #openAll(isOpen) {
    for (const details of this.querySelectorAll("details")) details.open = isOpen;
  }

  #choose(row) {
    (this.#chosen === this ? this : this.#chosen)?.classList.remove("chosen");
    this.#chosen = row;
    if (row !== this) row.classList.add("chosen");
    this.#path.textContent = this.#pathOf(row);
  }

  // Up and down among the rows that can be seen, wherever in the tree the focus is.
  #step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = [...this.querySelectorAll("li")].filter((row) => row.offsetParent !== null);
    const next = rows[rows.indexOf(this.#chosen) + by];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.#choose(next);
    next.querySelector(":scope > details > summary")?.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  // As JSONPath has it: $.matches[0]["a name"].
  #pathOf(row) {
    const steps = [];
    for (let at = row; at !== this && at !== null; at = rowOf(at.parentElement)) {
      const key = own(at, ".key");
      if (key === null) continue;
      const name = exactly(key);
      const isInList = at.parentElement.closest("details")?.dataset.kind === "array";
      steps.unshift(isInList ? `[${name}]` : NAME.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
    }
    return `$${steps.join("")}`;
  }

  // A string as it is, anything else as JSON; an object's members stay as they stand, even where a name is there twice.
  #textOf(row) {
    const value = own(row, ".value");
    return value === null ? this.#jsonOf(row) : exactly(value);
  }

  #jsonOf(row) {
    const value = own(row, ".value");
    if (value !== null) return value.classList.contains("string") ? JSON.stringify(exactly(value)) : value.textContent;
    const details = row.querySelector(":scope > details");
    const isList = details.dataset.kind === "array";
    const members = [...details.querySelectorAll(":scope > ul > li")].map((member) => {
      const json = this.#jsonOf(member);
      return isList ? json : `${JSON.stringify(exactly(own(member, ".key")))}: ${json}`;
    });
    return isList ? `[${members.join(", ")}]` : `{${members.join(", ")}}`;
  }

  async #copy(text) {
    await navigator.clipboard.writeText(text);
    this.#path.textContent = COPIED;
  }
}

customElements.define("json-tree", JsonTree);
