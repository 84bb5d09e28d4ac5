// <copy-path data-path="SESSION/RUN">: a button that copies the path a command line takes.

class CopyPath extends HTMLElement {
  connectedCallback() {
    if (this.querySelector("button") || !navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.ariaLabel = `Copy ${this.dataset.path}`;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(this.dataset.path);
      button.textContent = "copied";
    });
    this.append(button);
  }
}

customElements.define("copy-path", CopyPath);
