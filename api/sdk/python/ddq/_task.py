"""Tasks, as callers have them and as the wire has them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Callable, Dict, Mapping, Optional, Union, cast

from . import _types as wire
from ._encode import Duration, Payload, Time, attributes_of, duration_of, from_base64, stripped, text_of, time_of, to_base64
from ._ids import new_id, new_keyed_id
from ._trace import TraceContext, trace_of


@dataclass
class NewTask:
    """A task to enqueue. What is None has the default of the topic; docs/policies.md says what the fields do."""

    topic: str
    payload: Payload = b""
    id: Optional[str] = None  # made by the client when it is not given
    delay: Optional[Duration] = None  # from now; at once when this and execute_time are not given
    execute_time: Optional[Time] = None
    slack: Optional[Duration] = None
    latest_time: Optional[Time] = None
    expire_after: Optional[Duration] = None
    expire_time: Optional[Time] = None
    attributes: Optional[Mapping[str, str]] = None
    priority: Optional[int] = None
    max_retries: Optional[int] = None
    visibility_timeout_ms: Union[None, int, str] = None
    handler_timeout_ms: Union[None, int, str] = None
    backoff: Optional[wire.Backoff] = None
    fairness_key: Optional[str] = None
    fairness_weight: Optional[int] = None
    rate_key: Optional[str] = None
    concurrency_key: Optional[str] = None
    ordering_key: Optional[str] = None
    idempotency: Optional[wire.Idempotency] = None
    # stands for the payload when two requests are compared, 16 to 32 bytes: for payloads that are encrypted, and others each time
    payload_fingerprint: Optional[Payload] = None
    # the W3C trace context of who enqueues it
    traceparent: Optional[str] = None
    tracestate: Optional[str] = None


@dataclass(frozen=True)
class Task:
    """A task as the server knows it. `raw` has what the server said, where numbers of 64 bits are text and bytes are base64."""

    id: str
    topic: str
    payload: bytes
    attributes: Dict[str, str]
    raw: wire.Task

    @property
    def state(self) -> str:
        return self.raw.get("state", "TASK_STATE_UNSPECIFIED")

    @property
    def result(self) -> Optional[bytes]:
        """What the worker that acked it returned, while that is kept."""
        return from_base64(self.raw["result"]) if "result" in self.raw else None


def body_of(task: NewTask) -> Dict[str, Any]:
    """Write a task as the wire has it, without making an id."""
    if task.id is not None:
        text_of("id", task.id, "BAD_ID")
    body = {field.name: getattr(task, field.name) for field in fields(task)}
    for name in ("payload", "payload_fingerprint"):
        body[name] = None if body[name] is None else to_base64(name, body[name]) or None
    body["attributes"] = attributes_of(task.attributes)
    for name in ("delay", "slack", "expire_after"):
        body[name] = duration_of(name, body[name])
    for name in ("execute_time", "latest_time", "expire_time"):
        body[name] = time_of(name, body[name])
    return stripped(body)


def request_of(task: NewTask) -> Dict[str, Any]:
    """Write a task with an id, so that the request may be repeated."""
    if task.id is None or task.id == "":
        key = task.ordering_key or (task.idempotency or {}).get("key")
        task = replace(task, id=new_keyed_id(key) if key else new_id())
    return body_of(task)


def traced(task: NewTask, context: Callable[[], Optional[TraceContext]]) -> NewTask:
    """Give a task the context of whoever enqueues it, unless it has one."""
    return task if task.traceparent else replace(task, **cast(Any, trace_of(context())))


def task_of(raw: Mapping[str, Any]) -> Task:
    """Read a task."""
    attributes = {a.get("key", ""): a.get("value", "") for a in raw.get("attributes", [])}
    return Task(raw.get("id", ""), raw.get("topic", ""), from_base64(raw.get("payload")), attributes, cast(wire.Task, raw))
