// A worker of a round of faults: it asks the harness what is planned for each attempt, and does that.
import { createInterface } from "node:readline";

const [dir, url, name, concurrency, ...topics] = process.argv.slice(1);
const ddq = await import(dir + "/dist/index.js");
const { values } = await import(dir + "/values.mjs");
const client = new ddq.Client({ url });

async function harness(path, { topic, id: task, attempt, holdToken: token }, about) {
  const answer = await fetch(`${url}/${path}`, { method: "POST", body: JSON.stringify({ topic, task, attempt, token, ...about }) });
  return answer.json();
}

const part = (task, name) =>
  task.once(name, async () => {
    await harness("ran", task, { name });
    return `${name} in attempt ${task.attempt}`;
  });

// Passes time, and returns why the handler is to stop before that, if it is.
const wait = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => (clearTimeout(timer), resolve(signal.reason));
    signal.aborted ? stop() : signal.addEventListener("abort", stop, { once: true });
  });

async function handler(task) {
  const payload = Buffer.from(task.payload).toString("base64");
  const { parts = [], ms = 0, stubborn, ends, after_ms: after, value: number, odd, result } = await harness("plan", task, { payload, keyed: !!task.idempotency_key });
  if (parts.length > 0) await part(task, parts[0]);
  const why = await wait(ms, task.signal);
  if (why && !stubborn) throw why;
  const rest = await Promise.allSettled(parts.slice(1).map((name) => part(task, name)));
  for (const one of rest) if (one.status === "rejected") throw one.reason;
  const all = Object.values(values);
  const value = all[number % all.length]();
  switch (ends) {
    case "nack":
      throw typeof value === "string" ? new Error(value) : value;
    case "retry":
      throw new ddq.RetryAfter(after);
    case "release":
      throw new ddq.Release(after);
    case "permanent":
      throw new ddq.Permanent(value);
    case "panic":
      throw value;
  }
  return odd ? value : Buffer.from(result, "base64");
}

const workers = topics.map((topic) => new ddq.Worker(client, { topic, handler, concurrency: Number(concurrency), name, graceMs: 5_000 }));
const orders = createInterface({ input: process.stdin });
let asked = false;
orders.once("line", () => {
  asked = true;
  for (const worker of workers) worker.stop();
  orders.close();
});
orders.once("close", () => asked || process.exit(1)); // nobody can ask any more
await Promise.all(workers.map((worker) => worker.run()));
process.exit(0);
