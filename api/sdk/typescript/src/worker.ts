import type { Client } from "./client.js";
import { type Duration, errorText, hexToBase64, lineOf, refused, segment, textOf, toBase64, valueOf } from "./encode.js";
import { DdqError } from "./errors.js";
import { Journal } from "./journal.js";
import { Settler, gone, passing as takenLater } from "./settler.js";
import { type NewTask, type Task, bodyOf, taskOf } from "./task.js";
import { type TraceContext, recorded, traceOf, traced } from "./trace.js";
import { now, pauseOf, sleep } from "./transport.js";
import type * as wire from "./types.gen.js";

/** A task that this worker holds. */
export interface HeldTask extends Task {
  /** Aborted when the hold is lost, the task is cancelled, its time is up or the worker stops; its reason says which. */
  signal: AbortSignal;
  /** 1 at the first delivery. */
  attempt: number;
  /** Changes with every delivery: a fencing token for what the handler writes. */
  holdToken: string;
  /**
   * The trace context of the attempt: that of the delivery, where the server makes spans of them, else that of the producer, or what `traceNext` was
   * given. A client passes it on with `{ ...task.trace }` in what it enqueues; `traceparent` of the task is the producer's.
   */
  readonly trace: TraceContext;
  /**
   * traceNext says in which trace context the attempt is, such as a span of the handler's own: what `enqueue` gets from now on carries it, and the
   * server keeps the id of its trace with the attempt, if it is recorded.
   */
  traceNext(context: TraceContext): void;
  /** enqueue has a task enqueued if and only if this one is acked. It carries `trace`, unless it has a context. */
  enqueue(next: NewTask): void;
  /**
   * once calls `f`, unless it has returned under the name in an attempt before, and returns what it returned then: bytes and text as
   * bytes, nothing as none, and other values as JSON. It is kept before once returns. An error of `f` is thrown, and nothing is kept;
   * a name may be used again then, and otherwise once in an attempt, else NameUsed. An attempt that no longer holds the task keeps
   * nothing, HoldLostError. A name has up to 128 bytes, a value 256 KiB, and a task 1,000 names and 1 MiB, else JOURNAL_FULL.
   */
  once(name: string, f: () => unknown): Promise<Uint8Array>;
  /**
   * sleep lets a time pass, from when it was first called under the name, as `once` has names. Until then it throws a Release: the task is
   * given back, due again when the time has passed, and the attempt is not counted.
   */
  sleep(name: string, ms: number): Promise<void>;
}

/** What a handler returns is the result of its task: bytes or text as they are, nothing, or a value that is kept as JSON. An error fails the attempt. */
export type Handler = (task: HeldTask) => unknown;

/** Thrown by a handler: no further attempt can mend it; the task goes to the dead letters. */
export class Permanent extends Error {
  override name = "Permanent";
}

/** Thrown by a handler: the next attempt is due after `delayMs`, whatever the backoff says. */
export class RetryAfter extends Error {
  override name = "RetryAfter";
  constructor(readonly delayMs: number, message = "retry asked for", options?: ErrorOptions) {
    super(message, options);
  }
}

/** Thrown by a handler: the task is given back, due again after `delayMs`, and the attempt is not counted. */
export class Release extends Error {
  override name = "Release";
  constructor(readonly delayMs = 0) {
    super("released by the handler");
  }
}

/** Why a handler's signal was aborted. */
export class Interrupted extends Error {
  override name = "Interrupted";
  constructor(readonly why: "hold lost" | "cancelled" | "timeout" | "stopped", message: string) {
    super(message);
  }
}

export interface WorkerOptions {
  topic: string;
  handler: Handler;
  /** How many tasks run at a time. Defaults to 10. */
  concurrency?: number;
  /** By which this worker is known to the server. */
  name?: string;
  /** How long a hold lasts without word from this worker. Defaults to that of the task or its topic. */
  visibilityTimeoutMs?: number;
  /** How long a handler may run, unless its task says. No limit by default. */
  handlerTimeoutMs?: number;
  /** How often a hold is extended at least, which is also how soon a handler hears of a cancel. Defaults to 5 s; a third of the hold when that is less. */
  heartbeatMs?: number;
  /** How long handlers may run on after stop. Defaults to 30 s. */
  graceMs?: number;
  /** Told of what the worker cannot return to anybody: lost connections, lost holds, failed attempts. Defaults to nothing. */
  onError?: (error: unknown, task?: Task) => void;
  /** Told of attempts that fail, and of a worker that gets no tasks, in a line each. Defaults to the console; null for none. */
  logger?: { warn(line: string): void } | null;
}

const pollMs = 30_000;
const mostTasks = 1_000;
const topicPauseMs = 2_000; // at most, between two looks for a topic that does not exist
const windDownMs = 1_000; // for interrupted handlers to return
const settleMs = 30_000; // an outcome is repeated so long after the hold may have ended
const remindMs = 10_000; // how often a worker that gets no tasks says so again
const mostResult = 256 << 10; // bytes
const mostNext = 100; // tasks that an ack enqueues
const mostNextBytes = 1 << 20; // of their payloads

type Outcome = { acks: wire.Ack } | { nacks: wire.Nack };

interface Running {
  task: HeldTask;
  controller: AbortController;
  next: NewTask[];
  holdEnds: number;
  extendAt: number;
  lost: boolean;
  settled: boolean;
}

/** Worker takes the tasks of a topic as they become due, and runs a handler for each. */
export class Worker {
  readonly #client: Client;
  readonly #options: WorkerOptions;
  readonly #concurrency: number;
  readonly #settler: Settler;
  readonly #running = new Map<string, Running>();
  readonly #stopping = new AbortController();
  #started = false;
  #freed: () => void = () => {};

  constructor(client: Client, options: WorkerOptions) {
    this.#client = client;
    this.#options = options;
    this.#concurrency = options.concurrency ?? 10;
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1) throw refused("OUT_OF_RANGE_FIELD", "concurrency", "a worker runs 1 task at a time at least");
    this.#settler = new Settler(client, options.topic);
  }

  /** run works until stop is called or the signal is aborted, and returns when all handlers have ended. It throws what no other attempt can mend, such as a token that is refused from the start; one that is refused later is asked for again. It waits for a topic that does not exist. */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#started) throw new Error("a worker runs once");
    this.#started = true;
    const stop = () => this.stop();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const heart = setInterval(() => this.#beat(), 100);
    try {
      await this.#take();
    } finally {
      await this.#drain();
      clearInterval(heart);
      signal?.removeEventListener("abort", stop);
    }
  }

  /** stop has run take no more tasks, wait for its handlers, and return. */
  stop(): void {
    this.#stopping.abort();
    this.#freed();
  }

  async #take(): Promise<void> {
    const stopping = this.#stopping.signal;
    let heard = false;
    let told = -Infinity; // when the log was
    for (let failures = 0; !stopping.aborted; ) {
      if (this.#running.size >= this.#concurrency) {
        await this.#room();
        continue;
      }
      try {
        const answer = await this.#poll();
        const clock = clockOf(answer);
        for (const d of answer.deliveries ?? []) this.#start(d, clock);
        if (failures > 0) this.#warn(`the worker of ${this.#options.topic} gets tasks again`);
        failures = 0;
        heard = true;
        told = -Infinity;
      } catch (e) {
        if (stopping.aborted) return;
        // A topic may be made yet, or again; who says which tokens are good may be away for a moment.
        const absent = e instanceof DdqError && (e.reason === "NO_TOPIC" || (e.code === "UNAUTHENTICATED" && heard));
        if (!(e instanceof DdqError) || !(absent || passing(e))) throw e;
        if (now() - told >= remindMs) {
          told = now();
          this.#warn(`the worker of ${this.#options.topic} gets no tasks: ${errorText(e)}`);
        }
        this.#tell(e);
        const pause = pauseOf(e, failures++);
        await sleep(absent ? (topicPauseMs * (1 + Math.random())) / 2 : pause, stopping).catch(() => {});
      }
    }
  }

  // Returns when a handler has ended, or the worker stops.
  #room(): Promise<void> {
    return new Promise((resolve) => (this.#freed = resolve));
  }

  async #poll(): Promise<wire.RetrieveResponse> {
    const body: wire.RetrieveRequest = {
      max_tasks: Math.min(this.#concurrency - this.#running.size, mostTasks),
      wait_ms: String(pollMs),
      worker: this.#options.name ?? "",
      visibility_timeout_ms: String(this.#options.visibilityTimeoutMs ?? 0),
    };
    const path = `/v1/topics/${segment("topic", this.#options.topic)}:retrieve`;
    // Not repeated by the client: the loop does, and asks for as much as has room then.
    return this.#client.call<wire.RetrieveResponse>({ method: "POST", path, body, timeoutMs: 10_000, waitMs: pollMs, signal: this.#stopping.signal });
  }

  #start(d: wire.Delivery, clock: () => number): void {
    const controller = new AbortController();
    const next: NewTask[] = [];
    const read = taskOf(d.task ?? {});
    const journal = new Journal(d.journal ?? [], (name, value) => this.#keep(run, name, value));
    const task: HeldTask = Object.assign(read, {
      signal: controller.signal,
      attempt: (read.retry_count ?? 0) + 1,
      holdToken: d.hold_token ?? "",
      trace: traceOf({ traceparent: d.traceparent || read.traceparent, tracestate: read.tracestate }),
      traceNext: (context: TraceContext) => void Object.assign(task, { trace: traceOf(context) }),
      enqueue: (t: NewTask) => void next.push(traced(t, () => task.trace)),
      once: (name: string, f: () => unknown) => journal.once(name, f),
      sleep: (name: string, ms: number) => sleepIn(journal, name, ms, clock),
    });
    const run: Running = { task, controller, next, holdEnds: 0, extendAt: 0, lost: false, settled: false };
    this.#held(run, Number(d.hold_ms ?? 0));
    // The token: a task that was lost may come back while its first handler still runs.
    this.#running.set(task.holdToken, run);
    void this.#work(run).finally(() => {
      this.#running.delete(task.holdToken);
      this.#freed();
    });
  }

  async #work(run: Running): Promise<void> {
    const { task, controller } = run;
    const limit = Number(task.handler_timeout_ms ?? 0) || this.#options.handlerTimeoutMs || 0;
    const timer = limit > 0 ? setTimeout(() => controller.abort(new Interrupted("timeout", `handler timed out after ${limit} ms`)), Math.min(limit, 0x7fffffff)) : undefined;
    let outcome: Outcome;
    try {
      outcome = { acks: ackOf(run, await this.#options.handler(task)) };
    } catch (e) {
      outcome = { nacks: nackOf(run, e) };
      if (outcome.nacks.release) this.#tell(e, task);
      else this.#note("failed", e, task);
    } finally {
      clearTimeout(timer);
    }
    await this.#settle(run, outcome);
  }

  // Tells the server, once, what became of an attempt. An outcome that is refused fails the attempt: the task must not wait for the end of its hold.
  async #settle(run: Running, outcome: Outcome): Promise<void> {
    if (run.settled) return;
    run.settled = true;
    if (run.lost) return;
    try {
      await this.#send(run, outcome).catch(async (e: unknown) => {
        if (e instanceof DdqError && (gone(e) || takenLater(e))) throw e;
        this.#note("has an outcome that is refused", e, run.task);
        await this.#send(run, { nacks: "acks" in outcome ? nackOf(run, e) : plainNackOf(outcome.nacks, e) });
      });
    } catch (e) {
      this.#note("was not settled", e, run.task); // its hold runs out, if it has not
    }
  }

  // Has the server remember what a name returned. It is said again for as long as the handler is not to stop.
  async #keep(run: Running, name: string, value: Uint8Array): Promise<void> {
    const checkpoint = { ...idOf(run), name, value: toBase64(value) };
    await this.#settler.settle({ checkpoints: checkpoint }, () => Infinity, () => run.holdEnds, run.controller.signal);
  }

  #send(run: Running, what: Outcome): Promise<wire.SettleResult> {
    const began = now();
    return this.#settler.settle(what, () => Math.max(run.holdEnds, began) + settleMs, () => run.holdEnds);
  }

  // Extends the holds whose time has come, also where the server does not take the outcome yet.
  #beat(): void {
    for (const run of this.#running.values()) {
      if (run.lost || now() < run.extendAt) continue;
      run.extendAt = Infinity; // until the answer
      void this.#extend(run);
    }
  }

  async #extend(run: Running): Promise<void> {
    const { task } = run;
    try {
      const extend: wire.Extend = { task_id: task.id, hold_token: task.holdToken, visibility_timeout_ms: String(this.#options.visibilityTimeoutMs ?? 0) };
      const said = await this.#settler.settle({ extends: extend }, () => run.holdEnds, () => run.holdEnds);
      this.#held(run, Number(said.hold_ms ?? 0));
      if (said.cancel_requested) this.#interrupt(run, new Interrupted("cancelled", "task cancelled"));
    } catch (e) {
      if (run.settled) return;
      run.lost = true;
      this.#interrupt(run, new Interrupted("hold lost", "hold lost"));
      this.#note("lost its hold", e, task);
    }
  }

  #held(run: Running, holdMs: number): void {
    run.holdEnds = now() + holdMs;
    run.extendAt = now() + Math.min(holdMs / 3, this.#options.heartbeatMs ?? 5_000);
  }

  #interrupt(run: Running, why: Interrupted): void {
    if (!run.controller.signal.aborted) run.controller.abort(why);
  }

  // Waits for handlers; those that do not return in time are told, and then their tasks given back.
  async #drain(): Promise<void> {
    this.#stopping.abort();
    if (await this.#idle(this.#options.graceMs ?? 30_000)) return;
    for (const run of this.#running.values()) this.#interrupt(run, new Interrupted("stopped", "worker stopped"));
    if (await this.#idle(windDownMs)) return;
    const left = [...this.#running.values()].filter((run) => !run.settled);
    await Promise.all(left.map((run) => this.#settle(run, { nacks: { ...idOf(run), release: true } })));
  }

  // Whether no handler runs within the time.
  async #idle(ms: number): Promise<boolean> {
    const end = now() + ms;
    while (this.#running.size > 0 && now() < end) await sleep(Math.min(20, end - now()));
    return this.#running.size === 0;
  }

  #note(what: string, e: unknown, task: HeldTask): void {
    this.#warn(`attempt ${task.attempt} of task ${task.id} of ${task.topic} ${what}: ${errorText(e)}`);
    this.#tell(e, task);
  }

  #warn(line: string): void {
    const { logger } = this.#options;
    if (logger !== null) harmless(() => (logger ?? console).warn("ddq: " + lineOf(line)));
  }

  #tell(e: unknown, task?: Task): void {
    harmless(() => this.#options.onError?.(e, task));
  }
}

// Who is told of errors must not end the worker by one, also not later.
function harmless(tell: () => unknown): void {
  void (async () => tell())().catch(() => {});
}

// The clock of the server, where the answer tells it: the next attempt may be on another machine.
function clockOf(r: wire.RetrieveResponse): () => number {
  const said = Number(r.server_time_ms ?? 0);
  const at = performance.now();
  return said > 0 ? () => said + performance.now() - at : Date.now;
}

async function sleepIn(journal: Journal, name: string, ms: number, now: () => number): Promise<void> {
  if (!Number.isFinite(ms) || ms < 0) throw refused("BAD_DELAY", "ms", `${ms} ms is not a duration`);
  const until = textOf(await journal.once(name, () => new Date(now() + Math.ceil(ms)).toISOString()));
  const left = Date.parse(until) - now();
  if (Number.isNaN(left)) throw new Permanent(`${JSON.stringify(name)} is not a sleep`);
  if (left > 0) throw new Release(left);
}

function idOf(run: Running): { task_id: string; hold_token: string } {
  return { task_id: run.task.id, hold_token: run.task.holdToken };
}

// Names an attempt that ends, and the trace in which it was, if that is recorded.
function endOf(run: Running): { task_id: string; hold_token: string; trace_id?: string } {
  const id = recorded(run.task.trace);
  return id === undefined ? idOf(run) : { ...idOf(run), trace_id: hexToBase64(id) };
}

function ackOf(run: Running, result: unknown): wire.Ack {
  const ack: wire.Ack = endOf(run);
  // What begins by the end of a step is linked to it.
  if (ack.trace_id && run.task.step) ack.grow = { traceparent: run.task.trace.traceparent! };
  if (result !== undefined && result !== null) {
    const value = valueOf(result);
    if (value.length > mostResult) throw refused("RESULT_TOO_LARGE", "result", `the result has ${value.length} bytes; at most ${mostResult} are allowed`);
    ack.result = toBase64(value);
  }
  if (run.next.length > 0) {
    ack.enqueue = run.next.map((t) => ({ topic: t.topic, ...bodyOf(t) }));
    const size = ack.enqueue.reduce((sum, t) => sum + Math.floor(((t.payload?.length ?? 0) * 3) / 4), 0);
    if (run.next.length > mostNext || size > mostNextBytes) {
      throw refused("BATCH_SIZE", "enqueue", `${run.next.length} tasks of ${size} bytes are to be enqueued with the ack; at most ${mostNext} of ${mostNextBytes} bytes are allowed`);
    }
  }
  return ack;
}

function nackOf(run: Running, e: unknown): wire.Nack {
  const nack: wire.Nack = { ...idOf(run), error: errorText(e) };
  try {
    const why = run.controller.signal.reason as unknown;
    Object.assign(nack, endOf(run));
    if (nack.trace_id && run.task.step) nack.traceparent = run.task.trace.traceparent!;
    if (e instanceof Permanent) nack.permanent = true;
    else if (e instanceof RetryAfter) nack.delay_ms = delayOf(e.delayMs);
    else if (e instanceof Release) Object.assign(nack, { release: true, delay_ms: delayOf(e.delayMs) });
    else if (why instanceof Interrupted && why.why === "stopped") nack.release = true;
    else if (why instanceof Interrupted && why.why === "timeout" && e !== why) nack.error = `${why.message}: ${nack.error}`;
  } catch {
    // what was thrown does not say what it is
  }
  return nack;
}

// Leaves out of a nack that was refused what may be wrong with it.
function plainNackOf(nack: wire.Nack, refusal: unknown): wire.Nack {
  const { task_id, hold_token, permanent, release, error } = nack;
  return { task_id, hold_token, permanent, release, error: `${errorText(refusal)}, of the failure: ${JSON.stringify(error ?? "")}` };
}

function delayOf(ms: Duration): string {
  return String(Math.max(0, Math.ceil(Number(ms) || 0)));
}

// Whether it may be over after a while.
function passing(e: DdqError): boolean {
  return ["UNAVAILABLE", "UNKNOWN", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL", "CANCELLED"].includes(e.code);
}
