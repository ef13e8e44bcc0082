import { InvalidError } from "./errors.js";

/** A length of time: a number of milliseconds, or text as `"90s"` or `"0.5s"`. */
export type Duration = number | string;
/** A moment: a Date, or RFC 3339. */
export type Time = Date | string;
/** Bytes, or text, which is sent as UTF-8. */
export type Payload = ArrayBufferView | ArrayBufferLike | string;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const mostError = 1024; // bytes of an error that the server keeps

/** bytesOf returns text as UTF-8, and bytes as they are. */
export function bytesOf(field: string, p: Payload): Uint8Array {
  if (typeof p === "string") return encoder.encode(wellFormed(field, p));
  if (ArrayBuffer.isView(p)) return new Uint8Array(p.buffer, p.byteOffset, p.byteLength);
  if (isBuffer(p)) return new Uint8Array(p);
  throw refused("MALFORMED", field, `${field}: bytes or text are wanted, not ${kindOf(p)}`);
}

// Also one of another realm, as tests and sandboxes have them.
function isBuffer(p: unknown): p is ArrayBufferLike {
  return /^(Shared)?ArrayBuffer$/.test(kindOf(p));
}

/** wellFormed is text that can be sent: half a pair of surrogates has no UTF-8. */
export function wellFormed(field: string, text: unknown, reason = "MALFORMED"): string {
  if (typeof text !== "string") throw refused(reason, field, `${field}: text is wanted, not ${kindOf(text)}`);
  const at = text.search(/\p{Surrogate}/u);
  if (at >= 0) throw refused(reason, field, `${field}: \\u${text.charCodeAt(at).toString(16)} at ${at} is not UTF-8`);
  return text;
}

function kindOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value === null ? null : typeof value);
  try {
    return Object.prototype.toString.call(value).slice(8, -1);
  } catch {
    return "object"; // it does not say which
  }
}

/** textOf reads UTF-8. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

// Node's Buffer, where there is one: it is a hundred times faster than btoa.
const buffers = (globalThis as { Buffer?: { from(a: Uint8Array | string, b?: string): Uint8Array & { toString(as: string): string } } }).Buffer;

/** valueOf writes what a handler returned: bytes and text as they are, nothing as no bytes, and other values as JSON. */
export function valueOf(value: unknown): Uint8Array {
  if (value === undefined || value === null) return new Uint8Array(0);
  if (typeof value === "string" || ArrayBuffer.isView(value) || isBuffer(value)) return bytesOf("value", value);
  const text = JSON.stringify(value, kept) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} cannot be kept`);
  return encoder.encode(text);
}

// What JSON would make null or {} of, though it is more.
function kept(_: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} cannot be kept as JSON`);
  if (typeof value === "object" && value !== null && !Array.isArray(value) && (Symbol.iterator in value || ArrayBuffer.isView(value) || isBuffer(value))) {
    throw new TypeError(`a ${kindOf(value)} cannot be kept as JSON`);
  }
  return value;
}

// What JSON would leave out of a request, too.
function sent(name: string, value: unknown): unknown {
  if (typeof value === "function" || typeof value === "symbol") throw new TypeError(`${name} is a ${typeof value}`);
  return kept(name, value);
}

/** jsonOf writes a request, or a part of one. */
export function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body, sent);
  } catch (cause) {
    throw refused("MALFORMED", "", `the request cannot be written as JSON: ${errorText(cause)}`);
  }
}

/** sizeOf is how many bytes text has as UTF-8. */
export function sizeOf(text: string): number {
  return encoder.encode(text).length;
}

/** errorText is what something that was thrown says, as far as the server keeps it: whatever it is, it can be sent. */
export function errorText(e: unknown): string {
  let text: unknown;
  try {
    text = e instanceof Error ? e.message || e.name : typeof e === "object" ? JSON.stringify(e) : e;
    text = String(text);
  } catch {
    text = "what was thrown cannot be told";
  }
  const bytes = encoder.encode((text as string).slice(0, mostError)).subarray(0, mostError);
  return new TextDecoder().decode(bytes, { stream: true }) || "an error without text"; // stream: the half of a character at the end is left out
}

/** lineOf writes text that others wrote as one line without control characters. */
export function lineOf(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

export function toBase64(p: Payload, field = "value"): string {
  const bytes = bytesOf(field, p);
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
  if (d === undefined || d === null || typeof d === "string") return d;
  if (!Number.isFinite(d) || d < 0) throw refused("BAD_DELAY", field, `${typeof d === "number" ? d + " ms" : kindOf(d)} is not a duration`);
  return (Math.ceil(d) / 1000).toFixed(3) + "s"; // up: a task is never early
}

/** timeOf writes a moment as the wire has it. */
export function timeOf(field: string, t: Time | undefined): string | undefined {
  if (t === undefined || t === null || typeof t === "string") return t;
  const ms = Object.prototype.toString.call(t) === "[object Date]" ? t.getTime() : NaN;
  if (Number.isNaN(ms)) throw refused("BAD_TIME", field, "not a valid date");
  return new Date(ms).toISOString();
}

/** segment writes a name or id as part of a path. */
export function segment(field: string, name: string): string {
  const reason = field === "id" ? "BAD_ID" : "BAD_NAME";
  if (name === "") throw refused(reason, field, `the ${field} is empty`);
  // URLs are cleaned by what sends them, which would make another path of these.
  if (name === "." || name === "..") throw refused(reason, field, `no URL can have ${JSON.stringify(name)} in its path`);
  return encodeURIComponent(wellFormed(field, name, reason));
}

/** refused is an error for what the server would refuse, too, or never sees. */
export function refused(reason: string, field: string, detail: string): InvalidError {
  return new InvalidError({ code: "INVALID_ARGUMENT", reason, field, detail });
}

/** stripped leaves out what is undefined. */
export function stripped<T extends object>(o: T): T {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as T;
}
