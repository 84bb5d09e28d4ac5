// The contents of a run: those that its events name, each what its digest is of, withheld, a digest only, or erased.

import { contentOf, require } from "./finding.js";
import { ascii, fromHex, hex, sha256 } from "./bytes.js";
import { canonicalObject } from "./json.js";
import { linesOf } from "./events.js";

const CONTENT = ascii("tachograph/content/v1\0");
const MAX_CONTENT_BYTES = 64 * 1024 * 1024;
const MAX_LINE_BYTES = 2_048;
const NAMES = ["answer", "comment", "error", "input", "output", "query", "rationale"];
const STATES = ["stored", "withheld", "digest_only", "erased"];
const KEYS = ["digest", "erased_seq", "media_type", "salt", "size_bytes", "state"];
const DIGEST = /^[0-9a-f]{64}$/;

/** What the events say: which contents there are, whether each is stored, and how many each erasure took. */
function namedIn(events) {
  const stored = new Map();
  const erased = new Map();
  for (const { number, fields } of events) {
    for (const name of NAMES) {
      const digest = fields[`${name}_digest`];
      if (typeof digest === "string") stored.set(digest, fields[`${name}_stored`] === true || stored.get(digest) === true);
    }
    if (fields.type === "content.erased" && fields.stage === "ROWS") {
      erased.set(number, Number.isSafeInteger(fields.content_count) ? fields.content_count : 0);
    }
  }
  return { stored, erased };
}

export async function checkContents(archive, bytes, manifest, events) {
  const named = namedIn(events);
  const isWithheld = manifest.content === "withheld";
  const contents = [];
  const erased = new Map();
  let last = "";
  for (const line of linesOf(bytes, MAX_LINE_BYTES, "contents.jsonl")) {
    const entry = entryOf(line);
    const place = contentOf(entry.digest);
    require(entry.digest > last && named.stored.has(entry.digest), "content_differs", place,
      "content_not_named");
    const problem = problemOf(entry, named.erased, named.stored.get(entry.digest), isWithheld);
    require(problem === null, "content_differs", place, problem);
    named.stored.delete(entry.digest);
    last = entry.digest;
    if (entry.state === "erased") erased.set(entry.erased_seq, (erased.get(entry.erased_seq) ?? 0) + 1);
    if (entry.state === "stored") entry.data = await dataOf(archive, entry, place);
    contents.push(entry);
  }
  const [missing] = [...named.stored.keys()].sort();
  require(missing === undefined, "content_missing", contentOf(missing), "content_not_indexed");
  const isAsSaid = [...named.erased].every(([seq, count]) => (erased.get(seq) ?? 0) === count);
  require(isAsSaid, "content_differs", "contents.jsonl", "erased_otherwise");
  const present = [...archive.entries.keys()].filter((name) => name.startsWith("content/")).length;
  require(present === contents.filter(({ state }) => state === "stored").length, "content_differs", "contents.jsonl",
    "contents_left");
  return contents;
}

function entryOf(line) {
  const entry = canonicalObject(line);
  const isEntry = entry !== null
    && Object.keys(entry).every((key) => KEYS.includes(key))
    && Object.values(entry).every((value) => value !== null)
    && DIGEST.test(entry.digest) && STATES.includes(entry.state)
    && typeof entry.media_type === "string" && /^[ -~]{0,255}$/.test(entry.media_type)
    && Number.isSafeInteger(entry.size_bytes) && entry.size_bytes >= 0
    && (entry.salt === undefined || DIGEST.test(entry.salt))
    && (entry.erased_seq === undefined || (Number.isSafeInteger(entry.erased_seq) && entry.erased_seq >= 1));
  require(isEntry, "content_differs", "contents.jsonl", "index_otherwise");
  return entry;
}

/** What is wrong with it, as a sentence is named; null for nothing. */
function problemOf(entry, erasedCounts, isSaidToBeStored, isWithheld) {
  const hasSalt = (entry.state === "stored" || entry.state === "digest_only") && !isWithheld;
  if (entry.state === "digest_only" && isSaidToBeStored) return "said_to_be_stored";
  if ((entry.salt !== undefined) !== hasSalt) return "salt_otherwise";
  if (entry.state === (isWithheld ? "stored" : "withheld")) return "withheld_otherwise";
  if ((entry.erased_seq !== undefined) !== (entry.state === "erased")) return "erased_in_part";
  if (entry.state === "erased" && !erasedCounts.has(entry.erased_seq)) return "erased_by_no_event";
  return null;
}

async function dataOf(archive, entry, place) {
  const data = await archive.read(`content/${entry.digest}`, MAX_CONTENT_BYTES);
  const digest = await sha256(CONTENT, fromHex(entry.salt), ascii(entry.media_type), Uint8Array.of(0), data);
  require(data.length === entry.size_bytes && hex(digest) === entry.digest, "content_differs", place, "another_digest");
  return data;
}
