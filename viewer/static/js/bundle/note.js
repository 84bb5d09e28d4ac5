// Signed notes and the checkpoints in them (C2SP signed-note, tlog-checkpoint), with Ed25519 where the browser has it.

import { ascii, decoded, equal, hex, joined, sha256, utf8, wholeNumber } from "./bytes.js";

const MAX_NOTE_BYTES = 262_144;
const MAX_SIGNATURES = 64;
const KEYS_MAX = 64;
const ED25519 = 1;

/** What is wrong with a note or a key: the sentence is named. */
export class BadNote extends Error {
  constructor(sentence, facts) {
    super(sentence);
    Object.assign(this, { sentence, facts });
  }
}

/** Public keys, one a line: NAME+ID+BASE64. */
export async function parseKeys(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  if (!text || lines.length > KEYS_MAX) throw new BadNote("number_of_keys", { most: KEYS_MAX });
  return Promise.all(lines.map(keyOf));
}

async function keyOf(line) {
  const [name, id, ...rest] = line.split("+");
  const data = decoded(rest.join("+"));
  if (!isName(name) || data === null || data.length !== 33 || data[0] !== ED25519) throw new BadNote("key_of_no_kind");
  const keyId = (await sha256(ascii(name), ascii("\n"), data)).slice(0, 4);
  if (hex(keyId) !== id) throw new BadNote("key_of_another_id");
  return { text: line, name, keyId, public: data.slice(1), fingerprint: hex(await sha256(data.slice(1))) };
}

const isName = (name) => !!name && !/[\s+\x00-\x1f]/.test(name) && ascii(name).length <= 256;

function split(bytes) {
  const note = bytes.length <= MAX_NOTE_BYTES ? utf8(bytes) : null;
  if (note === null || /[\x00-\x09\x0b-\x1f]/.test(note)) throw new BadNote("no_note");
  const divider = note.lastIndexOf("\n\n");
  if (divider < 0 || !note.endsWith("\n") || divider + 2 >= note.length) throw new BadNote("note_without_signatures");
  const lines = note.slice(divider + 2, -1).split("\n");
  if (lines.length > MAX_SIGNATURES) throw new BadNote("note_too_signed");
  return { text: note.slice(0, divider + 1), signatures: lines.map(signatureOf) };
}

function signatureOf(line) {
  const found = /^— (\S+) (\S+)$/.exec(line);
  const data = found && isName(found[1]) ? decoded(found[2]) : null;
  if (data === null || data.length <= 4) throw new BadNote("note_with_a_line");
  return { name: found[1], keyId: data.slice(0, 4), signature: data.slice(4) };
}

/** Whether this browser can check Ed25519 at all. */
export async function canVerify() {
  try {
    await crypto.subtle.importKey("raw", new Uint8Array(32), { name: "Ed25519" }, false, ["verify"]);
    return true;
  } catch (error) {
    return error.name !== "NotSupportedError" && error.name !== "TypeError";
  }
}

async function verifies(key, text, signature) {
  const imported = await crypto.subtle.importKey("raw", key.public, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, ascii(text));
}

/** The checkpoint of a note, and which of the keys signed it; none where this browser cannot check signatures. */
export async function openCheckpoint(bytes, keys, { checkSignature }) {
  const { text, signatures } = split(bytes);
  const signedBy = [];
  for (const one of signatures) {
    const key = keys.find((known) => known.name === one.name && equal(known.keyId, one.keyId));
    if (key === undefined) continue;
    if (signedBy.includes(key)) throw new BadNote("note_signed_twice", { name: one.name });
    if (checkSignature && !(await verifies(key, text, one.signature))) throw new BadNote("note_signed_wrongly", { name: one.name });
    signedBy.push(key);
  }
  if (!signedBy.length) throw new BadNote("note_signed_by_none");
  return { ...checkpointOf(text), signedBy };
}

function checkpointOf(text) {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length < 3 || lines.some((line) => !line)) throw new BadNote("note_too_short");
  const [origin, sizeText, rootText, ...extensions] = lines;
  const size = wholeNumber(sizeText);
  const root = decoded(rootText);
  if (size === null || root === null || root.length !== 32 || origin.length > 256 || extensions.length > 16) {
    throw new BadNote("note_without_root");
  }
  return { origin, size, root };
}
