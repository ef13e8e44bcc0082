import type { Problem } from "./types.gen.js";

/** What went wrong, as the server or the way to it says. Its class says what a caller can do. */
export class DdqError extends Error {
  /** Of the HTTP answer; 0 when there was none. */
  readonly status: number;
  /** That of gRPC, such as NOT_FOUND. */
  readonly code: string;
  /** Stable, such as NO_TASK; may be empty. */
  readonly reason: string;
  /** What is wrong in the request. */
  readonly field?: string;
  /** Of the task that is in the way. */
  readonly id?: string;
  readonly state?: string;
  readonly version?: string;
  /** When to repeat the call; undefined when the server did not say. */
  readonly retryAfterMs?: number;
  /** Under which the log of the server has more. */
  readonly incident?: string;
  readonly requestId?: string;

  constructor(p: Partial<Problem>, options?: ErrorOptions) {
    super((p.detail ?? p.title ?? "unknown error") + (p.reason ? ` (${p.reason})` : ""), options);
    this.name = new.target.name;
    this.status = p.status ?? 0;
    this.code = p.code ?? "UNKNOWN";
    this.reason = p.reason ?? "";
    this.field = p.field;
    this.id = p.id;
    this.state = p.state;
    this.version = p.version;
    this.retryAfterMs = p.retry_after_ms === undefined ? undefined : Number(p.retry_after_ms);
    this.incident = p.incident;
    this.requestId = p.request_id;
  }
}

/** The request can never succeed; `field` names the fault. */
export class InvalidError extends DdqError {}
/** Beyond a limit of the topic, such as its farthest due time. */
export class OutOfRangeError extends DdqError {}
/** No such task, topic or schedule. */
export class NotFoundError extends DdqError {}
/** The id, key or name is taken by something else. */
export class ExistsError extends DdqError {}
/** Not possible in the state that the task or topic is in. */
export class PreconditionError extends DdqError {}
/** It was changed since it was read; `version` is the one that it has now. */
export class VersionError extends DdqError {}
/** The hold ran out or was replaced; nothing was changed. */
export class HoldLostError extends PreconditionError {}
/** Paused, over a quota or too large; perhaps later. */
export class ExhaustedError extends DdqError {}
/** The server or its store could not be reached, or refuses for now. */
export class UnavailableError extends DdqError {}
/** The answer was lost, and the request may have taken effect. */
export class UnknownOutcomeError extends DdqError {}
/** Missing or insufficient credentials. */
export class DeniedError extends DdqError {}
/** A fault of the server; its log has the details. */
export class InternalError extends DdqError {}
/** The caller's own timeout passed; what was asked for may have been done. */
export class TimeoutError extends DdqError {}

const byCode: Record<string, typeof DdqError> = {
  INVALID_ARGUMENT: InvalidError,
  OUT_OF_RANGE: OutOfRangeError,
  NOT_FOUND: NotFoundError,
  ALREADY_EXISTS: ExistsError,
  FAILED_PRECONDITION: PreconditionError,
  ABORTED: VersionError,
  RESOURCE_EXHAUSTED: ExhaustedError,
  UNAVAILABLE: UnavailableError,
  UNKNOWN: UnknownOutcomeError,
  UNAUTHENTICATED: DeniedError,
  PERMISSION_DENIED: DeniedError,
  DEADLINE_EXCEEDED: TimeoutError,
  INTERNAL: InternalError,
};

/** errorOf returns the error for a problem, or for the `error` of an item. */
export function errorOf(p: Partial<Problem>, options?: ErrorOptions): DdqError {
  if (p.reason === "HOLD_LOST") return new HoldLostError(p, options);
  return new (byCode[p.code ?? ""] ?? DdqError)(p, options);
}

// What the numbers of codes in items are called.
const codeNames = [
  "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
];

/** itemError returns the error of an item of a batch, which carries a number for its code. */
export function itemError(e: { code?: number; message?: string; reason?: string; field?: string; id?: string; state?: string; retry_after_ms?: string }): DdqError {
  const { code, message, ...rest } = e;
  return errorOf({ ...rest, code: codeNames[code ?? 2] ?? "UNKNOWN", detail: message ?? "" });
}

// What the statuses of a proxy mean.
const byStatus: Record<number, string> = {
  401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 408: "UNAVAILABLE", 429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "UNAVAILABLE",
};

/** answerError returns the error of an answer that is none of ddq's, such as a proxy's. */
export function answerError(status: number, text: string): DdqError {
  const code = byStatus[status] ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL");
  return errorOf({ status, code, detail: `status ${status}: ${text.slice(0, 200)}` });
}
