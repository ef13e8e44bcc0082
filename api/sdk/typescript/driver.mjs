// Does what a case of ../cases says, one line of JSON a call: the test beside starts it.
import { createInterface } from "node:readline";
import * as ddq from "@ddq-io/ddq";
import { values } from "./values.mjs";

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const calls = {};
let client, worker;

calls.client = ({ url, token, timeout_ms, namespace, trace }) => {
  client = new ddq.Client({ url, token, timeoutMs: timeout_ms, namespace, trace: trace && (() => trace) });
};

// Tasks of cases: payload_size stands for a large one, delay_ms for a number.
function taskOf({ payload_size, payload_hex, delay_ms, slack_ms, execute_in_ms, ...task }) {
  if (payload_size !== undefined) task.payload = "x".repeat(payload_size);
  if (payload_hex !== undefined) task.payload = Uint8Array.from(payload_hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
  if (delay_ms !== undefined) task.delay = delay_ms;
  if (slack_ms !== undefined) task.slack = slack_ms;
  if (execute_in_ms !== undefined) task.execute_time = new Date(Date.now() + execute_in_ms);
  return task;
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function shown(task) {
  const { payload, result, ...rest } = task;
  const seen = { ...rest, size: payload.length, error: task.last_error };
  if (payload.length < 1000) Object.assign(seen, { payload: ddq.textOf(payload), payload_hex: hex(payload) });
  if (result) seen.result = ddq.textOf(result);
  return seen;
}

async function all(items, show = (item) => item) {
  const list = [];
  for await (const item of items) list.push(show(item));
  return list;
}

const failure = (e) =>
  e instanceof ddq.DdqError
    ? { class: e.name, reason: e.reason, code: e.code, status: e.status, field: e.field, id: e.id, state: e.state, version: e.version, retry_after_ms: e.retryAfterMs, text: e.message }
    : { class: e?.constructor?.name ?? typeof e, text: String(e?.message ?? e) };

calls.enqueue = (task) => client.enqueue(taskOf(task));
calls.enqueue_batch = async ({ tasks }) => (await client.enqueueBatch(tasks.map(taskOf))).map((r) => (r instanceof ddq.DdqError ? failure(r) : r));
calls.get = async ({ topic, id }) => shown(await client.get(topic, id));
calls.list = ({ topic, filter, page_size }) => all(client.list(topic, filter, { pageSize: page_size }), shown);
calls.count = ({ topic }) => client.count(topic);
calls.wait = async ({ topic, id, wait_ms }) => {
  const { task, settled } = await client.wait(topic, id, wait_ms);
  return { ...shown(task), settled };
};
calls.edit = ({ topic, id, delay_ms, ...edit }) => client.edit(topic, id, delay_ms === undefined ? edit : { ...edit, delay: delay_ms });
calls.reschedule = ({ topic, id, delay_ms, ...to }) => client.reschedule(topic, id, delay_ms === undefined ? to : { ...to, delay: delay_ms });
calls.promote = ({ topic, id }) => client.promote(topic, id);
calls.delete = ({ topic, id }) => client.delete(topic, id);
calls.cancel = ({ topic, id, or_delete, wait_ms }) => client.cancel(topic, id, { orDelete: or_delete, waitMs: wait_ms });
calls.dead_letters = ({ topic, filter }) => all(client.deadLetters(topic, filter), shown);
calls.requeue_dead = ({ topic, ids, filter }) => client.requeueDead(topic, { ids, filter });
calls.delete_dead = ({ topic, ids, filter }) => client.deleteDead(topic, { ids, filter });
calls.create_topic = ({ topic, policy }) => client.createTopic(topic, policy);
calls.describe_topic = ({ topic }) => client.describeTopic(topic);
calls.configure_topic = ({ topic, policy, if_version }) => client.configureTopic(topic, policy, { ifVersion: if_version });
calls.list_topics = ({ page_size }) => all(client.listTopics({ pageSize: page_size }), (t) => t.name);
calls.pause_topic = ({ topic, ...what }) => client.pauseTopic(topic, what);
calls.resume_topic = ({ topic, ...what }) => client.resumeTopic(topic, what);
calls.delete_topic = ({ topic, force }) => client.deleteTopic(topic, { force });
calls.put_schedule = ({ topic, name, task, ...schedule }) => client.putSchedule(topic, name, { ...schedule, task: taskOf(task) });
calls.get_schedule = ({ topic, name }) => client.getSchedule(topic, name);
calls.list_schedules = ({ topic, skipped_since: skippedSince, page_size: pageSize, ...filter }) => all(client.listSchedules(topic, { ...filter, skippedSince, pageSize }), (s) => s.schedule.name);
calls.pause_schedule = ({ topic, name, note }) => client.pauseSchedule(topic, name, note);
calls.resume_schedule = ({ topic, name }) => client.resumeSchedule(topic, name);
calls.trigger_schedule = ({ topic, name, ...trigger }) => client.triggerSchedule(topic, name, trigger);
calls.delete_schedule = ({ topic, name }) => client.deleteSchedule(topic, name);
calls.request = (request) => client.call(request);
calls.describe_server = () => client.describeServer();
calls.keyed_id = async ({ key }) => {
  const [first, second] = [await ddq.newKeyedID(key), await ddq.newKeyedID(key)];
  return { place: first.slice(24, 32), group: first.slice(14, 18), rises: first < second };
};

calls.values = () => Object.keys(values);
calls.put = ({ topic, id, place, value: name }) => {
  const value = values[name]();
  const task = { topic, id, delay: 3_600_000 };
  if (place === "payload") return client.enqueue({ ...task, payload: value });
  if (place === "attribute") return client.enqueue({ ...task, attributes: { of: value } });
  return client.enqueue({ ...task, id: value });
};

// As many handlers go on together as a case has.
let begun = 0;
let together = [];

function allBegun(of) {
  return new Promise((resolve) => {
    together.push(resolve);
    if (++begun >= of) together.forEach((go) => go());
  });
}

// An outcome of a task has a value at a place.
async function outcome(task) {
  const { place, value: name, of } = task.attributes;
  const value = values[name]();
  await allBegun(Number(of));
  const next = { topic: task.topic, id: "next-" + task.id, delay: 3_600_000 };
  switch (place) {
    case "error":
      throw typeof value === "string" ? new Error(value) : value;
    case "permanent":
      throw new ddq.Permanent(value);
    case "next":
      return void task.enqueue({ ...next, payload: value });
    case "next id":
      return void task.enqueue({ ...next, id: value, payload: "from " + task.id });
    case "next attribute":
      return void task.enqueue({ ...next, attributes: { of: value } });
    case "next key":
      return void task.enqueue({ ...next, fairness_key: value });
    case "once":
      return task.once("part", () => value);
    case "name":
      return task.once(value, () => "kept");
    case "result":
      return value;
  }
}

// Does a part of a handler, under its name, and tells what came of it.
async function part(task, { name, size, returns, fails, deaf_ms }) {
  const about = { id: task.id, attempt: task.attempt, name };
  try {
    const value = await task.once(name, async () => {
      say({ event: "ran", ...about });
      if (deaf_ms && task.attempt === 1) await new Promise((resolve) => setTimeout(resolve, deaf_ms));
      if (fails >= task.attempt) throw new Error("not yet");
      return size === undefined ? returns : "x".repeat(size);
    });
    say({ event: "once", ...about, got: value.length < 1000 ? ddq.textOf(value) : value.length });
  } catch (e) {
    say({ event: "refused", ...about, ...failure(e) });
  }
}

// A handler does what the attributes of its task say.
async function handle(task) {
  const { do: what, value } = task.attributes;
  say({ event: "begin", id: task.id, attempt: task.attempt, payload: ddq.textOf(task.payload.subarray(0, 1000)), size: task.payload.length, trace: task.trace, step: task.step?.name });
  switch (what) {
    case "outcome":
      return outcome(task);
    case "return":
      return value;
    case "bytes":
      return Uint8Array.of(0, 255);
    case "json":
      return { seen: [1, "ü"] };
    case "large":
      return "x".repeat(Number(value));
    case "fail":
      throw new Error(value);
    case "fail once":
      if (task.attempt === 1) throw new Error(value);
      return;
    case "retry":
      if (task.attempt === 1) throw new ddq.RetryAfter(Number(value), "later");
      return;
    case "release":
      if (!released.has(task.id)) {
        released.add(task.id);
        throw new ddq.Release(Number(value));
      }
      return;
    case "permanent":
      throw new ddq.Permanent(value);
    case "once":
      for (const one of JSON.parse(value)) await part(task, one);
      if (task.attempt === 1) throw new Error("after its parts");
      return;
    case "beside":
      await Promise.all(JSON.parse(value).map((one) => part(task, one)));
      return;
    case "nap":
      try {
        await task.sleep("nap", Number(value));
      } catch (e) {
        say({ event: "sleeps", id: task.id, class: e.constructor.name });
        throw e;
      }
      say({ event: "slept", id: task.id, attempt: task.attempt });
      return;
    case "next":
      task.enqueue({ topic: value, payload: "after " + task.id });
      return;
    case "span":
      task.traceNext(JSON.parse(value));
      task.enqueue({ topic: task.topic, payload: "after " + task.id });
      task.enqueue({ topic: task.topic, payload: "elsewhere", traceparent: `00-${"e".repeat(32)}-${"e".repeat(16)}-00` });
      await client.enqueue({ topic: task.topic, payload: "beside " + task.id, ...task.trace });
      return;
    case "bad span":
      task.traceNext(JSON.parse(value));
      throw new ddq.Permanent("in vain");
    case "bad next":
      task.enqueue({ topic: value, delay: -1 });
      return;
    case "sleep":
      await new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, Number(value));
        task.signal.addEventListener("abort", () => {
          clearTimeout(timer);
          say({ event: "interrupted", id: task.id, why: task.signal.reason.why });
          reject(task.signal.reason);
        });
      });
      return "slept";
    case "deaf":
      await new Promise((resolve) => setTimeout(resolve, Number(value)));
      say({ event: "end", id: task.id });
  }
}
const released = new Set();

calls.work = ({ topic, concurrency, name, visibility_timeout_ms, handler_timeout_ms, heartbeat_ms, grace_ms }) => {
  worker = new ddq.Worker(client, {
    topic, concurrency, name, handler: handle,
    visibilityTimeoutMs: visibility_timeout_ms, handlerTimeoutMs: handler_timeout_ms, heartbeatMs: heartbeat_ms, graceMs: grace_ms,
    logger: { warn: (line) => say({ event: "log", line }) },
    onError: async (e) => {
      say({ event: "error", ...failure(e) });
      throw new Error("by who is told of errors");
    },
  });
  worker.run().then(() => say({ event: "stopped" }), (e) => say({ event: "failed", ...failure(e) }));
};
calls.stop = () => worker.stop();
process.on("SIGINT", () => worker.stop());

for await (const line of createInterface({ input: process.stdin })) {
  const { call, args } = JSON.parse(line);
  try {
    say({ ok: (await calls[call](args)) ?? null });
  } catch (e) {
    say({ error: failure(e) });
  }
}
