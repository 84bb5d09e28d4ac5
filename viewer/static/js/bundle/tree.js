// The Merkle tree over the events and what lies between them (RFC 6962), and whether its roots are those that were signed.

import { BundleWrong, require } from "./finding.js";
import { equal, joined, sha256 } from "./bytes.js";

const HASH_BYTES = 32;
const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** The largest k so that a complete subtree of 2^k leaves fits at leaf `begin` before `end`. */
function levelAt(begin, end) {
  let level = 0;
  while (begin % 2 ** (level + 1) === 0 && begin + 2 ** (level + 1) <= end) level += 1;
  return level;
}

export class Tree {
  /** `hashes` are those of what lies between; `stops` are checkpoints by their sizes, whose roots are met on the way. */
  constructor(hashes, stops) {
    this.hashes = hashes;
    this.used = 0;
    this.size = 0;
    this.stack = [];
    this.stops = [...stops].sort((one, other) => one.size - other.size);
  }

  /** The next event, at this place. */
  async add(index, link, place) {
    await this.reach(index, place);
    await this.push(0, await sha256(LEAF, link));
  }

  /** No event follows. */
  async end(size) {
    await this.reach(size, "subtrees.bin");
    require(this.used === this.hashes.length, "tree_differs", "subtrees.bin", "hashes_left");
    require(!this.stops.length, "tree_differs", "checkpoint.txt", "size_not_reached");
  }

  async reach(size, place) {
    while (this.stops.length && this.stops[0].size <= size) {
      const stop = this.stops.shift();
      await this.cover(stop.size, place);
      require(equal(await this.root(), stop.root), "root_differs", stop.name, "another_root");
    }
    await this.cover(size, place);
  }

  async cover(size, place) {
    require(size >= this.size, "tree_differs", place, "place_passed", { size, reached: this.size });
    while (this.size < size) {
      const hash = this.hashes.slice(this.used, this.used + HASH_BYTES);
      if (hash.length !== HASH_BYTES) throw new BundleWrong("tree_differs", place, "hashes_short", { size });
      this.used += HASH_BYTES;
      await this.push(levelAt(this.size, size), hash);
    }
  }

  async push(level, hash) {
    this.size += 2 ** level;
    while (this.stack.length && this.stack.at(-1).level === level) {
      hash = await sha256(joined(NODE, this.stack.pop().hash, hash));
      level += 1;
    }
    this.stack.push({ level, hash });
  }

  async root() {
    if (!this.stack.length) return sha256(new Uint8Array());
    let root = this.stack.at(-1).hash;
    for (const { hash } of this.stack.slice(0, -1).reverse()) root = await sha256(joined(NODE, hash, root));
    return root;
  }
}
