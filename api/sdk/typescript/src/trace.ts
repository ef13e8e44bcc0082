/**
 * A W3C trace context, as the headers of that name have it: what propagators of OpenTelemetry write into an empty object, and read from one. Empty
 * when there is none; what else it has is not looked at.
 */
export interface TraceContext {
  traceparent?: string;
  tracestate?: string;
}

/** traceOf is a context without what does not belong to it. */
export function traceOf(c: TraceContext = {}): TraceContext {
  if (!c.traceparent) return {};
  return c.tracestate ? { traceparent: c.traceparent, tracestate: c.tracestate } : { traceparent: c.traceparent };
}

/** traced is a task with the context of whoever enqueues it, unless it has one. */
export function traced<T extends TraceContext>(task: T, context: () => TraceContext | undefined): T {
  return task.traceparent ? task : { ...task, ...traceOf(context()) };
}

// The version, the id of the trace, that of the span, and flags, of which the lowest says that the trace is recorded.
const form = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f][13579bdf](-|$)/;

/** recorded is the id of the trace in hex, undefined when there is none, or nobody records it. */
export function recorded(c: TraceContext): string | undefined {
  return form.exec(c.traceparent ?? "")?.[1];
}
