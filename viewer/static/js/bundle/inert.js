// Content of runs as text that can do nothing: characters that hide or turn it become marks that name them.

const UNSAFE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

export const visible = (text) => text.replace(UNSAFE, (found) => `‹U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

/** An element that holds text, never markup. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = visible(String(text));
  return made;
}
