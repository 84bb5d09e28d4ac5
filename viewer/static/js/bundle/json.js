// JSON that may be written in one way only: keys sorted, each once, no spaces, ASCII, whole numbers. What is written in
// another way might be read in two, so it is taken for none.

import { utf8 } from "./bytes.js";

/** The object that the bytes are the one text of; null for anything else. */
export function canonicalObject(bytes) {
  const text = utf8(bytes);
  if (text === null || !/^[ -~]*$/.test(text)) return null;
  try {
    const value = JSON.parse(text);
    return isObject(value) && written(value) === text ? value : null;
  } catch {
    return null;
  }
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function written(value) {
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (isObject(value)) {
    // Of ASCII the order of code units is that of bytes.
    const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${written(value[key])}`);
    return `{${members.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new RangeError("a number that is not whole");
  return JSON.stringify(value);
}
