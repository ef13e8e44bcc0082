import { InvalidError } from "./errors.js";

/** A length of time: a number of milliseconds, or text as `"90s"` or `"0.5s"`. */
export type Duration = number | string;
/** A moment: a Date, or RFC 3339. */
export type Time = Date | string;
/** Bytes, or text, which is sent as UTF-8. */
export type Payload = Uint8Array | string;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** bytesOf returns text as UTF-8, and bytes as they are. */
export function bytesOf(p: Payload): Uint8Array {
  return typeof p === "string" ? encoder.encode(p) : p;
}

/** textOf reads UTF-8. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

// Node's Buffer, where there is one: it is a hundred times faster than btoa.
const buffers = (globalThis as { Buffer?: { from(a: Uint8Array | string, b?: string): Uint8Array & { toString(as: string): string } } }).Buffer;

/** valueOf writes what a handler returned: bytes and text as they are, nothing as no bytes, and other values as JSON. */
export function valueOf(value: unknown): Payload {
  if (value === undefined || value === null) return new Uint8Array(0);
  if (typeof value === "string" || value instanceof Uint8Array) return value;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} cannot be kept`);
  return text;
}

export function toBase64(p: Payload): string {
  const bytes = bytesOf(p);
  if (buffers) return buffers.from(bytes).toString("base64");
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

export function hexToBase64(hex: string): string {
  return toBase64(Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16)));
}

export function fromBase64(text: string | undefined): Uint8Array {
  if (!text) return new Uint8Array(0);
  if (buffers) return new Uint8Array(buffers.from(text, "base64"));
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** durationOf writes a duration as the wire has it. */
export function durationOf(field: string, d: Duration | undefined): string | undefined {
  if (typeof d !== "number") return d;
  if (!Number.isFinite(d) || d < 0) throw refused("BAD_DELAY", field, `${d} ms is not a duration`);
  return (Math.ceil(d) / 1000).toFixed(3) + "s"; // up: a task is never early
}

/** timeOf writes a moment as the wire has it. */
export function timeOf(field: string, t: Time | undefined): string | undefined {
  if (!(t instanceof Date)) return t;
  if (Number.isNaN(t.getTime())) throw refused("BAD_TIME", field, "not a valid date");
  return t.toISOString();
}

/** segment writes a name or id as part of a path. */
export function segment(field: string, name: string): string {
  if (name === "") throw refused(field === "id" ? "BAD_ID" : "BAD_NAME", field, `the ${field} is empty`);
  // URLs are cleaned by what sends them, which would make another path of these.
  if (name === "." || name === "..") throw refused(field === "id" ? "BAD_ID" : "BAD_NAME", field, `no URL can have ${JSON.stringify(name)} in its path`);
  return encodeURIComponent(name);
}

/** refused is an error for what the server would refuse, too, or never sees. */
export function refused(reason: string, field: string, detail: string): InvalidError {
  return new InvalidError({ code: "INVALID_ARGUMENT", reason, field, detail });
}

/** stripped leaves out what is undefined. */
export function stripped<T extends object>(o: T): T {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as T;
}
