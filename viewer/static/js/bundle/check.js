// Checks what a bundle of one run claims, within the browser. The first thing that is not so ends it.

import { BundleWrong, InvalidBundle } from "./finding.js";
import { Archive } from "./zip.js";
import { readManifest, readMembers } from "./manifest.js";
import { BadNote, canVerify, openCheckpoint, parseKeys } from "./note.js";
import { Tree } from "./tree.js";
import { checkEvents } from "./events.js";
import { checkContents } from "./contents.js";
import { said } from "./said.js";
import { utf8 } from "./bytes.js";

const MAX_MEMBER_BYTES = 256 * 1024 * 1024;

/** What was found: `verdict` is `holds`, `unsigned`, `wrong` or `refused`; `trusted` is the text of public keys, if any. */
export async function checkBundle(file, trusted = "", onProgress = () => {}) {
  const report = { verdict: "refused", finding: null, manifest: null, signedBy: [], isSignatureChecked: false, isKeyTrusted: false, events: [], contents: [] };
  try {
    await check(report, await Archive.open(file), trusted, onProgress);
    report.verdict = report.manifest.tree && report.isSignatureChecked ? "holds" : "unsigned";
  } catch (error) {
    if (!(error instanceof BundleWrong) && !(error instanceof InvalidBundle)) throw error;
    report.verdict = error instanceof BundleWrong && report.manifest !== null ? "wrong" : "refused";
    report.finding = error;
  }
  return report;
}

async function check(report, archive, trusted, onProgress) {
  const manifest = await readManifest(archive);
  report.manifest = manifest;
  const members = await readMembers(archive, manifest, MAX_MEMBER_BYTES);
  const tree = manifest.tree ? await openTree(report, members, manifest.tree, trusted) : null;
  if (tree === null && trusted) {
    throw new BundleWrong("not_signed", "manifest.json", "nothing_signed");
  }
  report.events = await checkEvents(members.get("events.txt"), manifest, tree, onProgress);
  report.contents = await checkContents(archive, members.get("contents.jsonl"), manifest, report.events);
}

async function openTree(report, members, claim, trusted) {
  const brought = await keysIn(utf8(members.get("keys.txt")) ?? "", "keys.txt");
  const keys = trusted ? await keysIn(trusted, said("trusted_keys")) : brought;
  const checkSignature = await canVerify();
  const newest = await opened("checkpoint.txt", members, keys, claim.origin, claim.size, checkSignature);
  const stops = [newest];
  if (claim.earlier_size) {
    stops.push(await opened("earlier-checkpoint.txt", members, keys, claim.origin, claim.earlier_size, checkSignature));
  }
  report.isSignatureChecked = checkSignature;
  report.isKeyTrusted = !!trusted;
  report.signedBy = newest.signedBy;
  return new Tree(members.get("subtrees.bin"), stops);
}

async function keysIn(text, place) {
  try {
    return await parseKeys(text);
  } catch (error) {
    if (error instanceof BadNote) throw new BundleWrong("not_signed", place, error.sentence, error.facts);
    throw error;
  }
}

async function opened(name, members, keys, origin, size, checkSignature) {
  try {
    const found = await openCheckpoint(members.get(name), keys, { checkSignature });
    if (found.origin !== origin || found.size !== size) {
      throw new BundleWrong("checkpoint_differs", name, "another_checkpoint");
    }
    return { ...found, name };
  } catch (error) {
    if (error instanceof BadNote) throw new BundleWrong("not_signed", name, error.sentence, error.facts);
    throw error;
  }
}
