// Bytes: joined, hashed, compared, and written as hexadecimal, base64 and numbers; each in one way only.

const encoder = new TextEncoder();

export const ascii = (text) => encoder.encode(text);

export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", parts.length === 1 ? parts[0] : joined(...parts)));
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

export function equal(a, b) {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/** A number as 64 bits, the highest first. */
export function number64(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}

/** The bytes that the text is the base64 of; null for anything that `encoded` would write otherwise. */
export function decoded(text) {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4) return null;
  try {
    const binary = atob(text);
    return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

/** A decimal number without leading zeros, at most the largest safe one; null for anything else. */
export function wholeNumber(text) {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : null;
  return value !== null && value <= Number.MAX_SAFE_INTEGER ? value : null;
}

/** UTF-8 as text; null for bytes that are none. */
export function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
