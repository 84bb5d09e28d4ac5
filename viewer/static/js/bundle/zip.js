// The zip of a bundle: every header follows from a member's name, sizes and sum, and whatever is written otherwise is
// refused. So nothing can hide between members, lie within another one, or be read in two ways.

import { BundleWrong, InvalidBundle } from "./finding.js";
import { ascii, crc32, equal, joined, utf8 } from "./bytes.js";

export const MAX_FILE_BYTES = 512 * 1024 * 1024;
export const MAX_UNPACKED_BYTES = 1024 * 1024 * 1024;
const MAX_MEMBERS = 65_534;
const MAX_NAME_BYTES = 80;
const MAX_RATIO = 200;
const RATIO_FREE_BYTES = 1024 ** 2;

const STORED = 0;
const DEFLATED = 8;
const NEEDED = 20;
const MADE_BY = (3 << 8) | NEEDED;
const DATE = (1 << 5) | 1;
const ATTRIBUTES = (0o100644 << 16) >>> 0;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
const NAME = /^([a-z][a-z.-]*|content\/[0-9a-f]{64})$/;

/** Fields of a header: [how many bytes, value]. */
function packed(signature, fields) {
  const size = fields.reduce((sum, [width]) => sum + width, 4);
  const view = new DataView(new ArrayBuffer(size));
  ascii(signature).forEach((byte, at) => view.setUint8(at, byte));
  let at = 4;
  for (const [width, value] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  }
  return new Uint8Array(view.buffer);
}

const sizes = (entry) => [[4, entry.crc], [4, entry.packedBytes], [4, entry.sizeBytes], [2, entry.name.length], [2, 0]];

function localHeader(entry) {
  const fields = [[2, NEEDED], [2, 0], [2, entry.method], [2, 0], [2, DATE], ...sizes(entry)];
  return joined(packed("PK\x03\x04", fields), ascii(entry.name));
}

function centralHeader(entry) {
  const head = [[2, MADE_BY], [2, NEEDED], [2, 0], [2, entry.method], [2, 0], [2, DATE], ...sizes(entry)];
  const places = [[2, 0], [2, 0], [2, 0], [4, ATTRIBUTES], [4, entry.offset]];
  return joined(packed("PK\x01\x02", [...head, ...places]), ascii(entry.name));
}

function endRecord(count, directoryBytes, directoryOffset) {
  const fields = [[2, 0], [2, 0], [2, count], [2, count], [4, directoryBytes], [4, directoryOffset], [2, 0]];
  return packed("PK\x05\x06", fields);
}

export class Archive {
  /** The members of a file; `InvalidBundle` unless all is in order. Opening reads the directory only. */
  static async open(file) {
    const archive = new Archive();
    archive.file = file;
    archive.entries = await directoryOf(file);
    return archive;
  }

  entry(name) {
    const entry = this.entries.get(name);
    if (entry === undefined) throw new BundleWrong("member_missing", name, "no_such_member");
    return entry;
  }

  /** The whole member, which may have so many bytes. */
  async read(name, sizeMax) {
    const entry = this.entry(name);
    if (entry.sizeBytes > sizeMax) throw new InvalidBundle("member_too_large", { name, size: entry.sizeBytes, limit: sizeMax });
    const header = localHeader(entry);
    const dataOffset = entry.offset + header.length;
    const found = await bytesOf(this.file.slice(entry.offset, dataOffset));
    if (!equal(found, header)) throw new InvalidBundle("headers_differ", { name });
    const data = this.file.slice(dataOffset, dataOffset + entry.packedBytes);
    const bytes = entry.method === STORED ? await bytesOf(data) : await inflated(data, entry);
    if (bytes.length !== entry.sizeBytes) throw new InvalidBundle("member_short", { name });
    if (crc32(bytes) !== entry.crc) throw new BundleWrong("member_differs", name, "packed_otherwise");
    return bytes;
  }
}

async function bytesOf(blob) {
  return new Uint8Array(await blob.arrayBuffer());
}

async function inflated(blob, entry) {
  const pieces = [];
  let size = 0;
  try {
    const reader = blob.stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      size += value.length;
      if (size > entry.sizeBytes) {
        await reader.cancel();
        break;
      }
      pieces.push(value);
    }
  } catch (error) {
    throw new BundleWrong("member_differs", entry.name, "not_unpacked", { why: error.message });
  }
  if (size > entry.sizeBytes) throw new InvalidBundle("member_long", { name: entry.name });
  return joined(...pieces);
}

async function directoryOf(file) {
  if (file.size < END_BYTES) throw new InvalidBundle("too_small", { size: file.size });
  if (file.size > MAX_FILE_BYTES) throw new InvalidBundle("too_large");
  const end = await bytesOf(file.slice(file.size - END_BYTES));
  const view = new DataView(end.buffer);
  const [count, directoryBytes, offset] = [view.getUint16(10, true), view.getUint32(12, true), view.getUint32(16, true)];
  const isOurs = equal(end, endRecord(count, directoryBytes, offset)) && offset + directoryBytes + END_BYTES === file.size;
  if (!isOurs || count > MAX_MEMBERS || directoryBytes > count * (CENTRAL_BYTES + MAX_NAME_BYTES)) {
    throw new InvalidBundle("no_zip");
  }
  const entries = entriesIn(await bytesOf(file.slice(offset, offset + directoryBytes)), count);
  const last = [...entries.values()].at(-1);
  if ((last ? last.end : 0) !== offset) throw new InvalidBundle("before_directory");
  refuseBombs(entries.values());
  return entries;
}

function entriesIn(directory, count) {
  const entries = new Map();
  let at = 0;
  let offset = 0;
  for (let number = 0; number < count; number += 1) {
    const entry = entryAt(directory, at);
    if (entries.has(entry.name)) throw new InvalidBundle("two_of_a_name", { name: entry.name });
    if (entry.offset !== offset) throw new InvalidBundle("before_member", { name: entry.name });
    entries.set(entry.name, entry);
    at += CENTRAL_BYTES + entry.name.length;
    offset = entry.end;
  }
  if (at !== directory.length) throw new InvalidBundle("directory_long");
  return entries;
}

function entryAt(directory, at) {
  if (directory.length < at + CENTRAL_BYTES) throw new InvalidBundle("directory_short");
  const view = new DataView(directory.buffer, directory.byteOffset + at);
  const nameBytes = view.getUint16(28, true);
  const name = utf8(directory.slice(at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameBytes)) ?? "";
  const entry = {
    name,
    method: view.getUint16(10, true),
    crc: view.getUint32(16, true),
    packedBytes: view.getUint32(20, true),
    sizeBytes: view.getUint32(24, true),
    offset: view.getUint32(42, true),
  };
  entry.end = entry.offset + LOCAL_BYTES + name.length + entry.packedBytes;
  if (!NAME.test(name) || ![STORED, DEFLATED].includes(entry.method)) {
    throw new InvalidBundle("strange_member");
  }
  if (!equal(directory.slice(at, at + CENTRAL_BYTES + nameBytes), centralHeader(entry))) {
    throw new InvalidBundle("entry_otherwise", { name });
  }
  return entry;
}

function refuseBombs(entries) {
  let unpackedBytes = 0;
  for (const entry of entries) {
    unpackedBytes += entry.sizeBytes;
    if (entry.sizeBytes > RATIO_FREE_BYTES + MAX_RATIO * entry.packedBytes) {
      throw new InvalidBundle("packed_too_small", { name: entry.name, ratio: MAX_RATIO });
    }
    if (entry.method === STORED && entry.sizeBytes !== entry.packedBytes) {
      throw new InvalidBundle("two_sizes", { name: entry.name });
    }
  }
  if (unpackedBytes > MAX_UNPACKED_BYTES) throw new InvalidBundle("unpacks_too_large");
}
