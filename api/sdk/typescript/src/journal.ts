import { fromBase64, refused, sizeOf, valueOf, wellFormed } from "./encode.js";
import type * as wire from "./types.gen.js";

// The most that a task remembers. The server sees to 1,000 names, and 1 MiB of names and values.
const maxName = 128; // bytes of a name
const maxValue = 256 << 10; // bytes of what it returned

/** Thrown by `once` for a name that it was given before in the same attempt. */
export class NameUsed extends Error {
  override name = "NameUsed";
  constructor(used: string) {
    super(`the name ${JSON.stringify(used)} is used twice in one attempt`);
  }
}

/** Journal is what names of a task returned in attempts before, and which of them this attempt has used. */
export class Journal {
  readonly #returned: Map<string, Uint8Array>;
  readonly #used = new Set<string>();
  readonly #keep: (name: string, value: Uint8Array) => Promise<void>;

  /** keep has the server remember what a name returned. */
  constructor(entries: wire.JournalEntry[], keep: (name: string, value: Uint8Array) => Promise<void>) {
    this.#returned = new Map(entries.map((e) => [e.name ?? "", fromBase64(e.value)]));
    this.#keep = keep;
  }

  async once(name: string, f: () => unknown): Promise<Uint8Array> {
    this.#use(name);
    const before = this.#returned.get(name);
    if (before) return before;
    let value: Uint8Array;
    try {
      value = valueOf(await f());
    } catch (e) {
      this.#used.delete(name);
      throw e;
    }
    if (value.length > maxValue) throw refused("RESULT_TOO_LARGE", "value", `${JSON.stringify(name)} returned ${value.length} bytes; at most ${maxValue} are allowed`);
    await this.#keep(name, value);
    return value;
  }

  // Takes a name for this attempt.
  #use(name: string): void {
    const size = sizeOf(wellFormed("name", name, "BAD_NAME"));
    if (size < 1 || size > maxName) throw refused("BAD_NAME", "name", `the name has ${size} bytes; it must have 1 to ${maxName}`);
    if (this.#used.has(name)) throw new NameUsed(name);
    this.#used.add(name);
  }
}
