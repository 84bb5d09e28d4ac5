// What a bundle says of itself: nothing of it is believed before it was checked.

import { InvalidBundle, require } from "./finding.js";
import { canonicalObject, isObject } from "./json.js";
import { hex, sha256 } from "./bytes.js";

export const MANIFEST = "manifest.json";
const MAX_MANIFEST_BYTES = 65_536;
const MAX_RUN_EVENTS = 1_000_000;
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const DIGEST = /^[0-9a-f]{64}$/;
const LINE = /^[ -~]{1,256}$/;

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isLine = (value) => typeof value === "string" && LINE.test(value);
const isId = (value) => typeof value === "string" && ID.test(value);
const isDigest = (value) => typeof value === "string" && DIGEST.test(value);

const TREE = { covered_count: isCount, earlier_size: isCount, origin: isLine, size: isCount };
const MEMBER = { name: (value) => typeof value === "string", sha256: isDigest, size_bytes: isCount };
const RUN = {
  content: (value) => value === "included" || value === "withheld",
  event_count: (value) => isCount(value) && value >= 1 && value <= MAX_RUN_EVENTS,
  format: (value) => value === "tachograph-bundle",
  kind: (value) => value === "run",
  ledger_id: isId,
  made_by: isLine,
  made_us: isCount,
  members: (value) => Array.isArray(value) && value.every((member) => has(member, MEMBER)),
  run_id: isId,
  session_id: isId,
  version: (value) => value === 1,
};

/** Whether the object has just these members, each as it may be. */
export function has(value, rules) {
  return isObject(value) && Object.keys(value).sort().join() === Object.keys(rules).sort().join()
    && Object.entries(rules).every(([key, isRight]) => isRight(value[key]));
}

export async function readManifest(archive) {
  const said = canonicalObject(await archive.read(MANIFEST, MAX_MANIFEST_BYTES));
  if (said === null || said.format !== "tachograph-bundle") throw new InvalidBundle("foreign_manifest");
  if (said.version !== 1) throw new InvalidBundle("unknown_version");
  if (said.kind === "period") throw new InvalidBundle("of_a_period");
  if (!has(said, "tree" in said ? { ...RUN, tree: (value) => has(value, TREE) } : RUN)) {
    throw new InvalidBundle("manifest_otherwise");
  }
  return said;
}

function memberNames(manifest) {
  const names = ["contents.jsonl", "events.txt", "rows.jsonl"];
  if (manifest.tree) {
    names.push("checkpoint.txt", "keys.txt", "subtrees.bin");
    if (manifest.tree.covered_count) names.push("last-event.tlog-proof");
    if (manifest.tree.earlier_size) names.push("consistency.txt", "earlier-checkpoint.txt");
  }
  return names.sort();
}

/** Every member but contents, which their index names, read and hashed. */
export async function readMembers(archive, manifest, sizeMax) {
  const listed = manifest.members.map((member) => member.name);
  const present = [...archive.entries.keys()].filter((name) => !name.startsWith("content/") && name !== MANIFEST).sort();
  const expected = memberNames(manifest).join();
  require(listed.join() === expected && present.join() === expected, "member_missing", MANIFEST,
    "other_members");
  const found = new Map();
  for (const member of manifest.members) {
    require(archive.entry(member.name).sizeBytes === member.size_bytes, "member_differs", member.name,
      "another_size");
    const bytes = await archive.read(member.name, sizeMax);
    require(hex(await sha256(bytes)) === member.sha256, "member_differs", member.name,
      "another_hash");
    found.set(member.name, bytes);
  }
  return found;
}
