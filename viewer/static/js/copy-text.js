// <copy-text>: a button that copies the text of what stands in it, or of `data-text` where that is given.

import { COPIED, COPY, copyWhat } from "./words.js";

class CopyText extends HTMLElement {
  connectedCallback() {
    if (this.querySelector("button") || !navigator.clipboard) return;
    const text = this.dataset.text ?? this.textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = COPY;
    button.ariaLabel = copyWhat(text.slice(0, 80));
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = COPIED;
    });
    this.append(button);
  }
}

customElements.define("copy-text", CopyText);
