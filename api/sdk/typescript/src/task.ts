import { type Duration, type Payload, type Time, durationOf, fromBase64, refused, stripped, timeOf, toBase64, wellFormed } from "./encode.js";
import { newID, newKeyedID } from "./ids.js";
import type * as wire from "./types.gen.js";

type Timing = "delay" | "slack" | "expire_after" | "execute_time" | "latest_time" | "expire_time";

/** A task to enqueue. Fields that are not set have the defaults of the topic; docs/policies.md says what they do. */
export interface NewTask extends Omit<wire.EnqueueRequest, Timing | "topic" | "payload" | "payload_fingerprint" | "attributes" | "visibility_timeout_ms" | "handler_timeout_ms"> {
  topic: string;
  payload?: Payload;
  /** Stands for the payload when two requests are compared, 16 to 32 bytes: for payloads that are encrypted, and others each time. */
  payload_fingerprint?: Payload;
  attributes?: Record<string, string>;
  /** How long from now it is due; at once when this and `execute_time` are not set. */
  delay?: Duration;
  execute_time?: Time;
  slack?: Duration;
  latest_time?: Time;
  expire_after?: Duration;
  expire_time?: Time;
  visibility_timeout_ms?: number | string;
  handler_timeout_ms?: number | string;
}

/** A task as the server knows it. Numbers of 64 bits are text. */
export interface Task extends Omit<wire.Task, "id" | "topic" | "payload" | "result" | "attributes" | "recipient_data"> {
  id: string;
  topic: string;
  payload: Uint8Array;
  attributes: Record<string, string>;
  /** What the worker that acked it returned, while that is kept. */
  result?: Uint8Array;
  recipient_data?: Uint8Array;
}

/** bodyOf writes a task as the wire has it, without its topic and id. */
export function bodyOf(t: Omit<NewTask, "topic">): wire.EnqueueRequest {
  return stripped({
    ...t,
    id: t.id === undefined || t.id === null ? undefined : wellFormed("id", t.id, "BAD_ID"),
    payload: bytesIn("payload", t.payload),
    payload_fingerprint: bytesIn("payload_fingerprint", t.payload_fingerprint),
    attributes: attributesOf(t.attributes),
    delay: durationOf("delay", t.delay),
    slack: durationOf("slack", t.slack),
    expire_after: durationOf("expire_after", t.expire_after),
    execute_time: timeOf("execute_time", t.execute_time),
    latest_time: timeOf("latest_time", t.latest_time),
    expire_time: timeOf("expire_time", t.expire_time),
    visibility_timeout_ms: t.visibility_timeout_ms?.toString(),
    handler_timeout_ms: t.handler_timeout_ms?.toString(),
  });
}

function bytesIn(field: string, p: Payload | null | undefined): string | undefined {
  return p === undefined || p === null ? undefined : toBase64(p, field);
}

/** attributesOf writes attributes as the wire has them. */
export function attributesOf(attributes: Record<string, string> | null | undefined): wire.Attribute[] | undefined {
  if (attributes === undefined || attributes === null) return undefined;
  if (typeof attributes !== "object" || Symbol.iterator in attributes) throw refused("BAD_ATTRIBUTES", "attributes", "attributes are an object of texts");
  const text = (t: unknown) => wellFormed("attributes", t, "BAD_ATTRIBUTES");
  return Object.entries(attributes).map(([key, value]) => ({ key: text(key), value: text(value) }));
}

/** requestOf writes a task with an id, so that the request may be repeated. */
export async function requestOf(t: NewTask): Promise<wire.EnqueueRequest> {
  const key = t.ordering_key || t.idempotency?.key;
  return { ...bodyOf(t), id: t.id || (key ? await newKeyedID(key) : newID()) };
}

/** taskOf reads a task. */
export function taskOf(t: wire.Task): Task {
  const { payload, result, recipient_data, attributes, ...rest } = t;
  const read: Task = {
    ...rest,
    id: t.id ?? "",
    topic: t.topic ?? "",
    payload: fromBase64(payload),
    attributes: Object.fromEntries((attributes ?? []).map((a) => [a.key ?? "", a.value ?? ""])),
  };
  if (result !== undefined) read.result = fromBase64(result);
  if (recipient_data !== undefined) read.recipient_data = fromBase64(recipient_data);
  return read;
}
