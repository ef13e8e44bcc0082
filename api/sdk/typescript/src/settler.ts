import type { Client } from "./client.js";
import { segment } from "./encode.js";
import { DdqError, HoldLostError, InvalidError, itemError, NotFoundError, TimeoutError } from "./errors.js";
import { pauseOf, repeatable, sleep } from "./transport.js";
import type * as wire from "./types.gen.js";

/** One end or extension of a hold, or what its task is to remember. */
export type Settlement = { ack: wire.Ack } | { nack: wire.Nack } | { extend: wire.Extend } | { checkpoint: wire.Checkpoint };

interface Waiting {
  what: Settlement;
  size: number;
  done(result: wire.SettleResult): void;
  failed(error: unknown): void;
}

const gatherMs = 2;
const mostAtOnce = 100;
const mostBytes = 4 << 20; // below what a request may have

/** Settler sends settlements of a topic, those of about the same moment in one request, and repeats them while nobody knows what became of them. */
export class Settler {
  readonly #client: Client;
  readonly #path: string;
  #waiting: Waiting[] = [];
  #size = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Client, topic: string) {
    this.#client = client;
    this.#path = `/v1/topics/${segment("topic", topic)}:settle`;
  }

  /**
   * settle returns what the server says of it, and throws its refusal. It is repeated until then, or until `until` (ms of the epoch), or the signal.
   * holdEnds is of an outcome: a repeat that finds no hold before then was done by a try of which nobody knows what became.
   */
  async settle(what: Settlement, until: () => number, signal?: AbortSignal, holdEnds?: () => number): Promise<wire.SettleResult> {
    for (let attempt = 0, doubted = false; ; attempt++) {
      try {
        const result = await new Promise<wire.SettleResult>((done, failed) => this.#add({ what, size: sizeOf(what), done, failed }));
        if (result.error) throw itemError(result.error as Parameters<typeof itemError>[0]);
        return result;
      } catch (e) {
        if (!(e instanceof DdqError)) throw e;
        if (doubted && holdEnds && gone(e) && Date.now() < holdEnds()) return {};
        const unanswered = e instanceof TimeoutError && !e.status;
        if (!(repeatable(e, true) || unanswered) || e.reason === "JOURNAL_FULL") throw e; // a journal stays full
        doubted ||= e.code !== "RESOURCE_EXHAUSTED"; // which changed nothing
        const pause = pauseOf(e, attempt);
        if (Date.now() + pause >= until()) throw e;
        await sleep(pause, signal);
      }
    }
  }

  #add(w: Waiting): void {
    if (this.#size + w.size > mostBytes) this.#flush();
    this.#waiting.push(w);
    this.#size += w.size;
    if (this.#waiting.length >= mostAtOnce) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), gatherMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    if (batch.length > 0) void this.#send(batch);
  }

  // Never throws: what came of it goes to those who wait.
  async #send(batch: Waiting[]): Promise<void> {
    const body: wire.SettleRequest = { acks: [], nacks: [], extends: [], checkpoints: [] };
    for (const { what } of batch) {
      if ("ack" in what) body.acks!.push(what.ack);
      else if ("nack" in what) body.nacks!.push(what.nack);
      else if ("extend" in what) body.extends!.push(what.extend);
      else body.checkpoints!.push(what.checkpoint);
    }
    try {
      const { results } = await this.#client.call<wire.SettleResponse>({ method: "POST", path: this.#path, body, timeoutMs: 10_000, once: true });
      const said = new Map((results ?? []).map((r) => [keyOf(r), r]));
      for (const w of batch) w.done(said.get(keyOf(partOf(w.what))) ?? {});
    } catch (e) {
      // A request that is refused as a whole has one bad item at least: each goes by itself then.
      if (e instanceof InvalidError && batch.length > 1) for (const w of batch) void this.#send([w]);
      else for (const w of batch) w.failed(e);
    }
  }
}

// Whether there is no such hold. Where there is no such topic any more, an outcome may have been accepted before that or not.
function gone(e: DdqError): boolean {
  return e instanceof HoldLostError || (e instanceof NotFoundError && e.reason !== "NO_TOPIC");
}

type Part = { task_id?: string; hold_token?: string; name?: string };

function partOf(s: Settlement): Part {
  return "ack" in s ? s.ack : "nack" in s ? s.nack : "extend" in s ? s.extend : s.checkpoint;
}

// Only checkpoints have a name.
function keyOf(p: Part): string {
  return p.task_id + " " + p.hold_token + " " + (p.name ?? "");
}

function sizeOf(s: Settlement): number {
  if ("checkpoint" in s) return 512 + (s.checkpoint.value?.length ?? 0);
  if (!("ack" in s)) return 512;
  const next = (s.ack.enqueue ?? []).reduce((sum, t) => sum + 1024 + (t.payload?.length ?? 0), 0);
  return 512 + (s.ack.result?.length ?? 0) + next;
}
