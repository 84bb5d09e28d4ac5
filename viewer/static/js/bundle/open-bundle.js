// <open-bundle>: takes a file that was chosen or dropped, has it checked in this browser, and shows what was found.

import { checkBundle } from "./check.js";
import { element } from "./inert.js";
import { filled } from "../words.js";

const SHOWN_BYTES = 8_192;
const EVENTS_SHOWN = 500;
const TONES = { holds: "good", unsigned: "warn", wrong: "bad", refused: "bad" };

class OpenBundle extends HTMLElement {
  connectedCallback() {
    if (!crypto.subtle || typeof DecompressionStream === "undefined") return;
    this.querySelector("form").hidden = false;
    this.querySelector(".without").hidden = true;
    const input = this.querySelector("input[type=file]");
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#open(input.files[0]);
    });
    input.addEventListener("change", () => this.#open(input.files[0]));
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#open(event.dataTransfer.files[0]);
    });
  }

  async #open(file) {
    if (!file) return;
    const found = this.querySelector(".found");
    found.dataset.state = "checking";
    found.replaceChildren(element("p", `${file.name} …`, "dim"));
    try {
      const trusted = this.querySelector("textarea").value.trim();
      const report = await checkBundle(file, trusted);
      found.replaceChildren(...this.#told(report));
      found.dataset.state = report.verdict;
    } catch (error) {
      found.replaceChildren(element("p", error.message));
      found.dataset.state = "failed";
    }
  }

  #told(report) {
    const head = element("h2");
    head.append(element("span", this.dataset[report.verdict], `pill ${TONES[report.verdict]}`), ` ${report.finding ? "" : this.dataset.all}`);
    const parts = [head];
    if (report.finding) parts.push(element("p", report.finding.message, "finding"));
    if (report.manifest) parts.push(this.#facts(report));
    if (report.finding) return parts;
    parts.push(element("p", this.dataset.notLooked, "dim"), this.#events(report.events), ...report.contents.map((entry) => this.#content(entry)));
    return parts;
  }

  #facts({ manifest, signedBy, isSignatureChecked, isKeyTrusted, finding }) {
    const list = element("dl", "", "said");
    const add = (name, text) => list.append(element("dt", name), element("dd", text, "mono"));
    add(this.dataset.run, `${manifest.session_id}/${manifest.run_id}`);
    add(this.dataset.ledger, manifest.ledger_id);
    if (finding) return list;
    add(this.dataset.events, manifest.event_count);
    if (!manifest.tree) {
      add(this.dataset.log, this.dataset.noCheckpoint);
      return list;
    }
    add(this.dataset.log, filled(this.dataset.covered, { covered: manifest.tree.covered_count, size: manifest.tree.size, origin: manifest.tree.origin }));
    for (const key of signedBy) add(this.dataset.signedBy, `${key.name}, SHA-256 ${key.fingerprint}`);
    if (!isSignatureChecked) add("", this.dataset.notChecked);
    if (!isKeyTrusted) add("", this.dataset.ownKey);
    return list;
  }

  #events(events) {
    const details = element("details");
    const list = element("ol", "", "steps");
    for (const { number, fields, body } of events.slice(0, EVENTS_SHOWN)) {
      const row = element("li");
      row.append(element("b", `${number} ${fields.type}`), element("pre", body));
      list.append(row);
    }
    const shown = Math.min(events.length, EVENTS_SHOWN);
    details.append(element("summary", `${this.dataset.events} ${shown} / ${events.length}`), list);
    return details;
  }

  #content(entry) {
    const details = element("details");
    const digest = `${entry.digest.slice(0, 12)}…`;
    const facts = { digest, type: entry.media_type, size: entry.size_bytes, state: entry.state.replace("_", " ") };
    details.append(element("summary", filled(this.dataset.content, facts)));
    if (entry.data) details.append(element("pre", new TextDecoder().decode(entry.data.slice(0, SHOWN_BYTES))));
    return details;
  }
}

customElements.define("open-bundle", OpenBundle);
