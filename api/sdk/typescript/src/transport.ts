import { jsonOf } from "./encode.js";
import { DdqError, NotFoundError, TimeoutError, UnavailableError, answerError, errorOf } from "./errors.js";
import type { Problem } from "./types.gen.js";

export interface TransportOptions {
  /** Where the HTTP port of a server is. Defaults to `http://127.0.0.1:8080`. */
  url?: string;
  /** The token that says who calls, or a function that is asked for it before each request. */
  token?: string | (() => string | Promise<string>);
  /** Where the topics and audiences are that calls are about. Defaults to that of the token. */
  namespace?: string;
  /** How long a call may take together with its repeats, beside what it is to wait. Defaults to 30 s. */
  timeoutMs?: number;
  /** Sends requests. Defaults to the fetch of the runtime. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
  /** Instead of that of the client. */
  timeoutMs?: number;
}

export interface Request extends CallOptions {
  method: string;
  /** Begins with /v1/; segments are percent-encoded. */
  path: string;
  query?: Record<string, string | number | boolean | string[] | undefined>;
  body?: unknown;
  /** The body as it is sent. */
  json?: string;
  headers?: Record<string, string>;
  /** It may be repeated when nobody knows what became of it. */
  safe?: boolean;
  /** It is not repeated here, as the caller does so and has to know it. */
  once?: boolean;
  /** What a repeat does not find may be gone by the try before. */
  removes?: boolean;
  /** How much longer than others the call may take, because the server is to wait. */
  waitMs?: number;
}

const firstPauseMs = 50;
const longestPauseMs = 2_000;
const shortestAttemptMs = 5_000; // unless that is more than half of the time for all

/** Transport sends requests, and repeats those that may be repeated. */
export class Transport {
  readonly #url: string;
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    const url = new URL(options.url ?? "http://127.0.0.1:8080");
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError(`${url.href} is not a URL of http or https`);
    this.#url = url.href.replace(/\/+$/, "");
    this.#options = options;
  }

  /** call returns the JSON of the answer, or throws a DdqError. */
  async call<T>(r: Request): Promise<T> {
    const budget = r.timeoutMs ?? this.#options.timeoutMs ?? 30_000;
    const end = now() + budget + (r.waitMs ?? 0);
    const safe = r.safe ?? false;
    const json = r.json ?? (r.body === undefined ? undefined : jsonOf(r.body));
    let last: DdqError | undefined;
    let doubt: DdqError | undefined; // of a try that may have done it
    for (let attempt = 0; ; attempt++) {
      const left = end - now();
      // The first attempts of a call that may be repeated leave time for others: a connection may be dead.
      const failed = await this.#once<T>(r, json, safe ? Math.min((r.waitMs ?? 0) + Math.max(Math.min(shortestAttemptMs, budget / 2), (budget * (attempt + 1)) / 6), left) : left);
      if (!(failed instanceof DdqError)) return failed.value;
      const unanswered = failed instanceof TimeoutError && !failed.status;
      // Why the call had to be repeated says more than that the time for it is over.
      if (unanswered && last && now() >= end) throw last;
      if (r.removes && doubt && failed instanceof NotFoundError) throw doubt; // nobody knows whether it was there before
      last = failed;
      if (failed.code !== "RESOURCE_EXHAUSTED") doubt = failed;
      if (r.once || (!repeatable(failed, safe) && !(unanswered && safe))) throw failed;
      const pause = pauseOf(failed, attempt);
      if (now() + pause >= end) throw failed;
      await sleep(pause, r.signal);
    }
  }

  // The value of an answer, or what may be repeated. The caller's abort is thrown.
  async #once<T>(r: Request, json: string | undefined, timeoutMs: number): Promise<{ value: T } | DdqError> {
    const limit = bounded(r.signal, timeoutMs);
    try {
      const answer = await this.#send(r, json, limit.signal);
      const text = await answer.text();
      if (!answer.ok) return problemOf(answer, text);
      const value: unknown = text === "" ? {} : JSON.parse(text);
      if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("an answer that is none of ddq's");
      return { value: value as T };
    } catch (cause) {
      if (r.signal?.aborted) throw r.signal.reason;
      if (limit.signal.aborted) return new TimeoutError({ code: "DEADLINE_EXCEEDED", detail: `no answer from ${this.#url} in ${timeoutMs} ms` }, { cause });
      const below = (cause as { cause?: unknown } | undefined)?.cause;
      return new UnavailableError({ code: "UNAVAILABLE", detail: `${this.#url}: ${below instanceof Error ? below.message : String(cause)}` }, { cause });
    } finally {
      limit.release();
    }
  }

  async #send(r: Request, json: string | undefined, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...r.headers };
    if (json !== undefined) headers["Content-Type"] ??= "application/json";
    const { token, namespace } = this.#options;
    if (namespace) headers["Ddq-Namespace"] = namespace;
    const secret = typeof token === "function" ? await token() : token;
    if (secret) headers["Authorization"] = `Bearer ${secret}`;
    const send = this.#options.fetch ?? globalThis.fetch;
    return send(this.#url + r.path + queryOf(r.query), {
      method: r.method,
      headers,
      body: json,
      signal,
      redirect: "manual",
    });
  }
}

function queryOf(query: Request["query"]): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) q.append(name, String(one));
  }
  const text = q.toString();
  return text && "?" + text;
}

function problemOf(answer: Response, text: string): DdqError {
  if (answer.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    try {
      return errorOf(JSON.parse(text) as Problem);
    } catch {
      // cut short on its way
    }
  }
  return answerError(answer.status, text);
}

/** now is a time in ms that no setting of the clock changes. */
export function now(): number {
  return performance.now();
}

/** repeatable says whether a call that failed so may be repeated, as PROTOCOL.md has it. */
export function repeatable(e: DdqError, safe: boolean): boolean {
  if (e.retryAfterMs !== undefined && e.retryAfterMs > 0) return true;
  return safe && (e.code === "UNAVAILABLE" || e.code === "UNKNOWN");
}

/** pauseOf is how long to wait before a call is repeated, in ms: with jitter, so that callers who were refused together do not come back together. */
export function pauseOf(e: DdqError, attempt: number): number {
  if (e.retryAfterMs) return e.retryAfterMs * (1 + Math.random() / 2);
  return Math.random() * Math.min(firstPauseMs * 2 ** (attempt + 1), longestPauseMs);
}

/** sleep ends early, with the signal's reason, when the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

// A signal that is aborted with another one, or after a time.
function bounded(signal: AbortSignal | undefined, ms: number): { signal: AbortSignal; release(): void } {
  const own = new AbortController();
  const abort = () => own.abort(signal?.reason);
  const timer = setTimeout(() => own.abort(), Math.max(ms, 1));
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  return {
    signal: own.signal,
    release() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    },
  };
}
