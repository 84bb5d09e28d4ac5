// <copy-path data-path="SESSION/RUN">: a button that copies the path a command line takes.

import { COPIED, COPY, copyWhat } from "./words.js";

class CopyPath extends HTMLElement {
  connectedCallback() {
    if (this.querySelector("button") || !navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = COPY;
    button.ariaLabel = copyWhat(this.dataset.path);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(this.dataset.path);
      button.textContent = COPIED;
    });
    this.append(button);
  }
}

customElements.define("copy-path", CopyPath);
