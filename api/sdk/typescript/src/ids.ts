const nodeCrypto = "node:crypto"; // a variable: bundlers for browsers must not follow it
const webcrypto: Crypto = globalThis.crypto ?? (await import(nodeCrypto)).webcrypto;

let lastMs = 0;
let count = 0;

/** newID returns a UUID of version 7; those of one process rise. */
export function newID(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    count = 0;
  } else if (++count > 0xfff) {
    lastMs++;
    count = 0;
  }
  const random = webcrypto.getRandomValues(new Uint8Array(8));
  random[0] = (random[0]! & 0x3f) | 0x80;
  const time = lastMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, "0")}-${hex(random.subarray(0, 2))}-${hex(random.subarray(2))}`;
}

/** newKeyedID returns an id for a task with a key, which says where the tasks of the key lie (PROTOCOL.md, Producing). */
export async function newKeyedID(key: string): Promise<string> {
  const id = newID();
  const sum = new Uint8Array(await webcrypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return `${id.slice(0, 14)}8ddc-8${id.slice(15, 18)}-${hex(sum.subarray(0, 4))}${id.slice(32)}`;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
