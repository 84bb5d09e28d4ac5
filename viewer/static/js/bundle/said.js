// What is said of a bundle: whole sentences, which the page has by name, in its language.

import { filled } from "../words.js";

const sentences = JSON.parse(document.querySelector("open-bundle").dataset.findings);

export const said = (name, facts = {}) => filled(sentences[name], facts);
