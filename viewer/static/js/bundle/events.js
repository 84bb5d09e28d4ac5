// The events of a run: each written in the one way, numbered without a gap, linked to the one before, and of this run.

import { InvalidBundle, eventAt, require } from "./finding.js";
import { ascii, equal, fromHex, joined, number64, sha256, wholeNumber } from "./bytes.js";
import { canonicalObject } from "./json.js";

const MAX_LINE_BYTES = 20_480;
const TOGETHER = 500;
const NEWLINE = 10;
const NUMBER = "(?:0|[1-9][0-9]{0,15})";
const LINE = new RegExp(`^(-|${NUMBER}) (${NUMBER}) (${NUMBER}) ([0-9a-f]{64}) (\\{[ -~]*\\})$`);
const BODY = ascii("tachograph/body/v1\0");
const LINK = ascii("tachograph/link/v1\0");
const GENESIS = ascii("tachograph/genesis/v1\0");
const latin = new TextDecoder("latin1");

/** The lines of a member, without their ends. */
export function linesOf(bytes, sizeMax, name) {
  const lines = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, at);
    if (end < 0) throw new InvalidBundle("line_without_end", { name });
    if (end - at >= sizeMax) throw new InvalidBundle("line_too_long", { name, limit: sizeMax });
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}

export async function checkEvents(bytes, manifest, tree, onProgress) {
  const streamId = `r:${manifest.run_id}`;
  const lines = linesOf(bytes, MAX_LINE_BYTES, "events.txt");
  let link = await sha256(GENESIS, ascii(manifest.ledger_id), Uint8Array.of(0), ascii(streamId));
  const events = [];
  for (let from = 0; from < lines.length; from += TOGETHER) {
    const page = await Promise.all(lines.slice(from, from + TOGETHER).map((line, at) => eventOf(line, from + at + 1)));
    for (const event of page) {
      link = await checkEvent(event, link, manifest, streamId);
      if (tree !== null) await addToTree(tree, event, manifest.tree);
      events.push(event);
    }
    onProgress(events.length, lines.length);
  }
  require(events.length === manifest.event_count, "count_differs", "events.txt",
    "another_count", { count: events.length });
  if (tree !== null) {
    require(events.length >= manifest.tree.covered_count, "count_differs", "events.txt",
      "fewer_than_in_log");
    await tree.end(manifest.tree.size);
  }
  return events;
}

async function eventOf(line, number) {
  const found = LINE.exec(latin.decode(line));
  require(found, "event_malformed", eventAt(number), "no_event_line");
  const [, place, seq, recordedUs, link, body] = found;
  const bodyBytes = ascii(body);
  return {
    number,
    index: place === "-" ? null : wholeNumber(place),
    seq: wholeNumber(seq),
    recordedUs: BigInt(recordedUs),
    link: fromHex(link),
    hash: await sha256(BODY, bodyBytes),
    fields: canonicalObject(bodyBytes),
    body,
  };
}

async function checkEvent(event, before, manifest, streamId) {
  const place = eventAt(event.number);
  require(event.seq === event.number, "sequence_gap", place, "another_number", { seq: event.seq });
  const link = await sha256(joined(LINK, before, number64(event.seq), number64(event.recordedUs), event.hash));
  require(equal(link, event.link), "link_broken", place, "link_not_following");
  require(event.fields !== null, "event_unreadable", place, "body_otherwise");
  const { stream_id: stream, session_id: session, run_id: run } = event.fields;
  require(stream === streamId && session === manifest.session_id && run === manifest.run_id, "stream_identity", place,
    "of_another_run");
  return link;
}

async function addToTree(tree, event, claim) {
  const place = eventAt(event.number);
  if (event.number > claim.covered_count) {
    require(event.index === null || event.index >= claim.size, "tree_differs", place, "before_checkpoint");
    return;
  }
  require(event.index !== null && event.index < claim.size, "tree_differs", place,
    "not_before_checkpoint");
  await tree.add(event.index, event.link, place);
}
