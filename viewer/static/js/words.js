// The words that several elements show; the page has them on its body, in its language.

export const COPY = document.body.dataset.copy;
export const COPIED = document.body.dataset.copied;
export const copyWhat = (what) => filled(document.body.dataset.copyWhat, { what });

// `{name}` in a text of the page is where a fact belongs, wherever the language has it.
export function filled(text, facts) {
  return text.replace(/\{(\w+)\}/g, (place, name) => facts[name] ?? place);
}
