import type { Client } from "./client.js";
import { jsonOf, refused, segment, sizeOf } from "./encode.js";
import { DdqError, HoldLostError, itemError, NotFoundError, TimeoutError } from "./errors.js";
import { now, pauseOf, sleep } from "./transport.js";
import type * as wire from "./types.gen.js";

/** One end or extension of a hold, or what its task is to remember. */
export type Settlement = { acks: wire.Ack } | { nacks: wire.Nack } | { extends: wire.Extend } | { checkpoints: wire.Checkpoint };

// A settlement as it is sent. It is encoded before it is gathered: what cannot be is nobody else's.
interface Item {
  kind: string;
  key: string;
  json: string;
  size: number;
  holdEnds: () => number;
}

interface Waiting extends Item {
  done(result: wire.SettleResult): void;
  failed(error: unknown): void;
}

const gatherMs = 2;
const mostAtOnce = 100;
const mostBytes = 4 << 20; // of several
const mostAlone = (6 << 20) - 1024; // that a request may have
const longestAttemptMs = 10_000;
const shortestAttemptMs = 500;
const lastPauseMs = 100; // with less time than that left nothing is asked again
const mostFaults = 5; // INTERNAL is a bug, or a moment of what lies between

/**
 * Settler sends settlements of a topic, those of about the same moment in one request, and repeats them while nobody knows what became of them. What is
 * not answered is repeated alone, and what is refused as a whole is halved: one settlement that is slow or bad is in nobody's way.
 */
export class Settler {
  readonly #client: Client;
  readonly #path: string;
  #waiting = new Map<string, Waiting>(); // answers name the hold: of each there is one
  #size = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Client, topic: string) {
    this.#client = client;
    this.#path = `/v1/topics/${segment("topic", topic)}:settle`;
  }

  /**
   * settle returns what the server says of it, and throws its refusal. It is repeated until then, or until `until` of now(), or the signal.
   * holdEnds: a repeat of an outcome that finds no hold before then was done by a try of which nobody knows what became.
   */
  async settle(what: Settlement, until: () => number, holdEnds: () => number, signal?: AbortSignal): Promise<wire.SettleResult> {
    const item = itemOf(what, holdEnds);
    const outcome = "acks" in what || "nacks" in what;
    for (let attempt = 0, faults = 0, doubted = false, alone = false; ; attempt++) {
      try {
        const result = await new Promise<wire.SettleResult>((done, failed) => this.#add({ ...item, done, failed }, alone));
        if (result.error) throw itemError(result.error as Parameters<typeof itemError>[0]);
        return result;
      } catch (e) {
        if (!(e instanceof DdqError)) throw e;
        // Where there is no such topic any more, the outcome may have been accepted before that or not.
        if (doubted && outcome && gone(e) && e.reason !== "NO_TOPIC" && now() < holdEnds()) return {};
        if (e.code === "INTERNAL") faults++;
        if (!passing(e) || faults > mostFaults) throw e;
        doubted ||= e.code !== "RESOURCE_EXHAUSTED"; // which changed nothing
        alone = e instanceof TimeoutError || e.code === "INTERNAL"; // perhaps for another one's sake
        const left = until() - now();
        if (left < lastPauseMs) throw e;
        // Asked again sooner than the server says, where it would be too late else.
        await sleep(Math.min(pauseOf(e, attempt), left / 2), signal);
      }
    }
  }

  #add(w: Waiting, alone: boolean): void {
    if (alone) return void this.#send([w]);
    if (this.#size + w.size > mostBytes || this.#waiting.has(w.key)) this.#flush();
    this.#waiting.set(w.key, w);
    this.#size += w.size;
    if (this.#waiting.size >= mostAtOnce) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), gatherMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#size = 0;
    if (batch.length > 0) void this.#send(batch);
  }

  // Never throws: what came of it goes to those who wait.
  async #send(batch: Waiting[]): Promise<void> {
    const kinds = [...new Set(batch.map((w) => w.kind))];
    const json = `{${kinds.map((kind) => `"${kind}":[${batch.filter((w) => w.kind === kind).map((w) => w.json).join()}]`).join()}}`;
    try {
      const { results } = await this.#client.call<wire.SettleResponse>({ method: "POST", path: this.#path, json, timeoutMs: Math.min(...batch.map(timeoutOf)), once: true });
      const said = new Map((results ?? []).map((r) => [keyOf(r), r]));
      for (const w of batch) w.done(said.get(w.key) ?? {});
    } catch (e) {
      if (batch.length > 1 && e instanceof DdqError && !passing(e)) {
        // One of them at least is bad: the halves without it are taken.
        const half = batch.length >> 1;
        void this.#send(batch.slice(0, half));
        void this.#send(batch.slice(half));
      } else for (const w of batch) w.failed(e);
    }
  }
}

/** passing says whether the same settlement may be taken after a while. */
export function passing(e: DdqError): boolean {
  if (e.reason === "JOURNAL_FULL") return false; // it stays full
  return !!e.retryAfterMs || ["UNAVAILABLE", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNAUTHENTICATED"].includes(e.code);
}

/** gone says whether there is no such hold: what is not found is not one that the outcome names. */
export function gone(e: unknown): boolean {
  return e instanceof HoldLostError || (e instanceof NotFoundError && !e.field?.startsWith("enqueue"));
}

function itemOf(what: Settlement, holdEnds: () => number): Item {
  const [[kind, part]] = Object.entries(what) as [[string, Part]];
  const json = jsonOf(part);
  const size = sizeOf(json);
  if (size > mostAlone) throw refused("BODY_TOO_LARGE", "", `the outcome has ${size} bytes; at most ${mostAlone} are allowed`);
  return { kind, key: keyOf(part), json, size, holdEnds };
}

// How long an answer is waited for: a third of what is left of the hold, so that there is time for others.
function timeoutOf(w: Waiting): number {
  const left = w.holdEnds() - now();
  return left > 0 ? Math.min(Math.max(left / 3, shortestAttemptMs), longestAttemptMs) : longestAttemptMs;
}

type Part = { task_id?: string; hold_token?: string; name?: string };

// Only checkpoints have a name.
function keyOf(p: Part): string {
  return p.task_id + " " + p.hold_token + " " + (p.name ?? "");
}
