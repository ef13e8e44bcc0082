import { type Duration, type Payload, type Time, durationOf, errorText, jsonOf, refused, segment, stripped, timeOf, toBase64 } from "./encode.js";
import { DdqError, itemError } from "./errors.js";
import { newID } from "./ids.js";
import { type NewTask, type Task, attributesOf, bodyOf, requestOf, taskOf } from "./task.js";
import { type TraceContext, traced } from "./trace.js";
import { type CallOptions, type Request, Transport, type TransportOptions } from "./transport.js";
import type * as wire from "./types.gen.js";

export interface ClientOptions extends TransportOptions {
  /** Asked for the trace context that each task is enqueued in, unless the task has one. Defaults to none. */
  trace?: () => TraceContext | undefined;
}

/** What the server says of a task that it has stored. */
export interface Receipt extends Omit<wire.EnqueueResponse, "id" | "topic"> {
  id: string;
  topic: string;
}

/** What is to change of a task that waits; null is the default of a field. */
export interface Edit extends Omit<wire.UpdateTaskRequest, "payload" | "attributes" | "delay" | "execute_time" | "update_mask"> {
  payload?: Payload | null;
  attributes?: Record<string, string> | null;
  delay?: Duration;
  execute_time?: Time;
}

/** A schedule, whose task is as one to enqueue. */
export interface NewSchedule extends Omit<wire.Schedule, "name" | "topic" | "task" | "version" | "masked"> {
  task: Omit<NewTask, "topic" | "id">;
}

export interface ScheduleView {
  schedule: wire.Schedule;
  status: wire.ScheduleStatus;
}

export interface PageOptions extends CallOptions {
  /** How many are asked for at a time: 1 to 1,000. Defaults to 100. */
  pageSize?: number;
}

/** ScheduleFilter says which schedules to list: those that match all of it. */
export interface ScheduleFilter {
  /** Of names. */
  prefix?: string;
  state?: wire.ScheduleState;
  /** Schedules that have skipped an occurrence of this time or later. */
  skippedSince?: Time;
}

/** Client calls a server over REST. It keeps no state: there is nothing to close. */
export class Client {
  readonly #transport: Transport;
  readonly #trace: () => TraceContext | undefined;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
    this.#trace = options.trace ?? (() => undefined);
  }

  /** call makes any request of docs/rest.md, for what has no method here. */
  call<T = unknown>(request: Request): Promise<T> {
    return this.#transport.call<T>(request);
  }

  /** enqueue stores a task. It is repeated until it is known to be stored, once. */
  async enqueue(task: NewTask, options?: CallOptions): Promise<Receipt> {
    const { topic, ...body } = await requestOf(traced(task, this.#trace));
    return this.call<Receipt>({ method: "POST", path: `/v1/topics/${segment("topic", task.topic)}/tasks`, body, safe: true, ...options });
  }

  /** enqueueBatch stores up to 1,000 tasks in one call. They fail alone: each place of the answer has a receipt or an error. */
  async enqueueBatch(tasks: NewTask[], options?: CallOptions): Promise<(Receipt | DdqError)[]> {
    const answers: (Receipt | DdqError)[] = [];
    const requests: { request: wire.EnqueueRequest; at: number }[] = [];
    for (const [at, task] of tasks.entries()) {
      try {
        const request = await requestOf(traced(task, this.#trace));
        jsonOf(request);
        requests.push({ request, at });
      } catch (e) {
        answers[at] = e instanceof DdqError ? e : refused("MALFORMED", `tasks[${at}]`, errorText(e));
      }
    }
    const send = async (part: typeof requests): Promise<void> => {
      try {
        const body = { tasks: part.map(({ request }) => request) };
        const { results } = await this.call<wire.EnqueueBatchResponse>({ method: "POST", path: "/v1/tasks:batch", body, safe: true, ...options });
        part.forEach(({ at }, i) => {
          const { error, ...receipt } = results?.[i] ?? {};
          answers[at] = error ? itemError(error as Parameters<typeof itemError>[0]) : { ...receipt, id: receipt.id ?? "", topic: tasks[at]!.topic };
        });
      } catch (e) {
        if (!(e instanceof DdqError) || !["MALFORMED", "BODY_TOO_LARGE"].includes(e.reason)) throw e;
        // One of them at least is bad: the halves without it are stored.
        const half = part.length >> 1;
        if (half === 0) for (const { at } of part) answers[at] = e;
        else await send(part.slice(0, half)).then(() => send(part.slice(half)));
      }
    };
    if (requests.length > 0 || tasks.length === 0) await send(requests);
    return answers;
  }

  async get(topic: string, id: string, options?: CallOptions): Promise<Task> {
    const { task } = await this.call<wire.GetTaskResponse>({ method: "GET", path: taskPath(topic, id), safe: true, ...options });
    return taskOf(task ?? {});
  }

  /** list goes through the tasks that match: those that are live, unless the filter has states. */
  async *list(topic: string, filter: wire.TaskFilter = {}, options?: PageOptions): AsyncGenerator<Task, void, undefined> {
    const path = `/v1/topics/${segment("topic", topic)}/tasks:search`;
    yield* this.#pages<wire.ListTasksResponse, Task>({ method: "POST", path, body: filter }, options, (page) => (page.tasks ?? []).map(taskOf));
  }

  async count(topic: string, options?: CallOptions): Promise<wire.CountTasksResponse> {
    return this.call({ method: "GET", path: `/v1/topics/${segment("topic", topic)}:count`, safe: true, ...options });
  }

  /** wait returns when the task has ended, or after waitMs (at most 60,000). */
  async wait(topic: string, id: string, waitMs: number, options?: CallOptions): Promise<{ task: Task; settled: boolean }> {
    const r: Request = { method: "GET", path: taskPath(topic, id) + ":wait", query: { wait_ms: waitMs }, waitMs, safe: true, ...options };
    const { task, settled } = await this.call<wire.WaitTaskResponse>(r);
    return { task: taskOf(task ?? {}), settled: settled ?? false };
  }

  /** edit changes a task that waits; `if_version` says of which version that is true. */
  async edit(topic: string, id: string, edit: Edit, options?: CallOptions): Promise<wire.UpdateTaskResponse> {
    const { payload, attributes, delay, execute_time, ...rest } = edit;
    const body = stripped({
      ...rest,
      payload: payload == null ? payload : toBase64(payload, "payload"),
      attributes: attributes && attributesOf(attributes),
      delay: durationOf("delay", delay),
      execute_time: timeOf("execute_time", execute_time),
    });
    return this.call({ method: "PATCH", path: taskPath(topic, id), body, ...options });
  }

  async reschedule(topic: string, id: string, to: { delay?: Duration; execute_time?: Time; if_version?: string }, options?: CallOptions): Promise<wire.RescheduleTaskResponse> {
    const body = stripped({ ...to, delay: durationOf("delay", to.delay), execute_time: timeOf("execute_time", to.execute_time) });
    return this.call({ method: "POST", path: taskPath(topic, id) + ":reschedule", body, ...options });
  }

  /** promote makes a task due now. */
  async promote(topic: string, id: string, options?: CallOptions): Promise<wire.PromoteTaskResponse> {
    return this.call({ method: "POST", path: taskPath(topic, id) + ":promote", body: {}, ...options });
  }

  /** delete removes a task that no worker holds. */
  async delete(topic: string, id: string, options?: CallOptions): Promise<void> {
    await this.call({ method: "DELETE", path: taskPath(topic, id), ...options });
  }

  /** cancel tells the worker of a task that runs to stop; with orDelete it removes one that does not. */
  async cancel(topic: string, id: string, options: CallOptions & { orDelete?: boolean; waitMs?: number } = {}): Promise<wire.CancelTaskResponse> {
    const { orDelete, waitMs, ...rest } = options;
    const body = stripped({ or_delete: orDelete, wait_ms: waitMs?.toString() });
    return this.call({ method: "POST", path: taskPath(topic, id) + ":cancel", body, waitMs, safe: true, removes: orDelete, ...rest });
  }

  /** deadLetters goes through the dead letters of a topic. */
  async *deadLetters(topic: string, filter: wire.DeadLetterFilter = {}, options?: PageOptions): AsyncGenerator<Task, void, undefined> {
    const query = Object.fromEntries(Object.entries(filter).map(([name, value]) => [`filter.${name}`, value]));
    const path = `/v1/topics/${segment("topic", topic)}/dead`;
    yield* this.#pages<wire.ListDeadLettersResponse, Task>({ method: "GET", path, query }, options, (page) => (page.tasks ?? []).map(taskOf));
  }

  /** requeueDead makes dead letters live again, by their ids or by a filter. */
  async requeueDead(topic: string, which: wire.RequeueDeadLettersRequest, options?: CallOptions): Promise<wire.RequeueDeadLettersResponse> {
    return this.call({ method: "POST", path: `/v1/topics/${segment("topic", topic)}/dead:requeue`, body: which, ...options });
  }

  async deleteDead(topic: string, which: wire.DeleteDeadLettersRequest, options?: CallOptions): Promise<wire.DeleteDeadLettersResponse> {
    return this.call({ method: "POST", path: `/v1/topics/${segment("topic", topic)}/dead:delete`, body: which, ...options });
  }

  async createTopic(name: string, policy: wire.TopicPolicy = {}, options?: CallOptions): Promise<wire.Topic> {
    const { topic } = await this.call<wire.CreateTopicResponse>({ method: "POST", path: "/v1/topics", body: { name, policy }, ...options });
    return topic ?? {};
  }

  async describeTopic(name: string, options?: CallOptions): Promise<wire.DescribeTopicResponse> {
    return this.call({ method: "GET", path: topicPath(name), safe: true, ...options });
  }

  /** configureTopic changes what the policy names. */
  async configureTopic(name: string, policy: wire.TopicPolicy, options?: CallOptions & { ifVersion?: string }): Promise<wire.Topic> {
    const { ifVersion, ...rest } = options ?? {};
    const body = stripped({ policy, if_version: ifVersion });
    const { topic } = await this.call<wire.ConfigureTopicResponse>({ method: "PATCH", path: topicPath(name), body, ...rest });
    return topic ?? {};
  }

  async *listTopics(options?: PageOptions): AsyncGenerator<wire.Topic, void, undefined> {
    yield* this.#pages<wire.ListTopicsResponse, wire.Topic>({ method: "GET", path: "/v1/topics" }, options, (page) => page.topics ?? []);
  }

  /** pauseTopic pauses delivery, enqueueing or both. */
  async pauseTopic(name: string, what: wire.PauseTopicRequest, options?: CallOptions): Promise<void> {
    await this.call({ method: "POST", path: topicPath(name) + ":pause", body: what, safe: true, ...options });
  }

  async resumeTopic(name: string, what: wire.ResumeTopicRequest, options?: CallOptions): Promise<void> {
    await this.call({ method: "POST", path: topicPath(name) + ":resume", body: what, safe: true, ...options });
  }

  /** deleteTopic removes a topic, with the tasks that it has when force is set. */
  async deleteTopic(name: string, options?: CallOptions & { force?: boolean }): Promise<void> {
    const { force, ...rest } = options ?? {};
    await this.call({ method: "DELETE", path: topicPath(name), query: { force }, ...rest });
  }

  /** putSchedule creates or changes a schedule; the same again changes nothing. */
  async putSchedule(topic: string, name: string, schedule: NewSchedule, options?: CallOptions): Promise<wire.PutScheduleResponse> {
    const body = { ...schedule, task: bodyOf(schedule.task) };
    return this.call({ method: "PUT", path: schedulePath(topic, name), body, safe: true, ...options });
  }

  async getSchedule(topic: string, name: string, options?: CallOptions): Promise<ScheduleView> {
    return this.call({ method: "GET", path: schedulePath(topic, name), safe: true, ...options });
  }

  /** listSchedules goes through the schedules of a topic that match, in no particular order. */
  async *listSchedules(topic: string, options?: PageOptions & ScheduleFilter): AsyncGenerator<wire.GetScheduleResponse, void, undefined> {
    const { prefix, state, skippedSince, ...rest } = options ?? {};
    const query = { prefix, state, skipped_since: timeOf("skipped_since", skippedSince) };
    const path = `/v1/topics/${segment("topic", topic)}/schedules`;
    yield* this.#pages<wire.ListSchedulesResponse, wire.GetScheduleResponse>({ method: "GET", path, query }, rest, (page) => page.schedules ?? []);
  }

  async pauseSchedule(topic: string, name: string, note = "", options?: CallOptions): Promise<ScheduleView> {
    return this.call({ method: "POST", path: schedulePath(topic, name) + ":pause", body: { note }, safe: true, ...options });
  }

  async resumeSchedule(topic: string, name: string, note = "", options?: CallOptions): Promise<ScheduleView> {
    return this.call({ method: "POST", path: schedulePath(topic, name) + ":resume", body: { note }, safe: true, ...options });
  }

  /** triggerSchedule makes a run now, one however often the call is repeated. */
  async triggerSchedule(topic: string, name: string, trigger: wire.TriggerScheduleRequest = {}, options?: CallOptions): Promise<wire.TriggerScheduleResponse> {
    const body = { request_id: newID(), ...trigger };
    return this.call({ method: "POST", path: schedulePath(topic, name) + ":trigger", body, safe: true, ...options });
  }

  async deleteSchedule(topic: string, name: string, options?: CallOptions): Promise<void> {
    await this.call({ method: "DELETE", path: schedulePath(topic, name), ...options });
  }

  async describeServer(options?: CallOptions): Promise<wire.DescribeServerResponse> {
    return this.call({ method: "GET", path: "/v1/server", safe: true, ...options });
  }

  async *#pages<P extends { next_page_token?: string }, T>(r: Request, options: PageOptions = {}, items: (page: P) => T[]): AsyncGenerator<T, void, undefined> {
    const { pageSize, ...rest } = options;
    if (pageSize !== undefined && pageSize < 1) throw refused("OUT_OF_RANGE_FIELD", "page_size", "a page has 1 task at least");
    let token: string | undefined;
    do {
      const page = await this.call<P>({ ...r, query: { ...r.query, page_size: pageSize, page_token: token }, safe: true, ...rest });
      yield* items(page);
      token = page.next_page_token || undefined;
    } while (token);
  }
}

function topicPath(name: string): string {
  return `/v1/topics/${segment("name", name)}`;
}

function taskPath(topic: string, id: string): string {
  return `/v1/topics/${segment("topic", topic)}/tasks/${segment("id", id)}`;
}

function schedulePath(topic: string, name: string): string {
  return `/v1/topics/${segment("topic", topic)}/schedules/${segment("name", name)}`;
}
