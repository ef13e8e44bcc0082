"""The worker: takes tasks as they become due, and runs a handler for each."""

from __future__ import annotations

import logging
import math
import queue
import random
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Union

from ._encode import Duration, error_text, line_of, millis_of, moment_of, seconds_of, segment, to_base64, value_of
from ._journal import Journal
from ._settler import Settler, gone, passing
from ._task import NewTask, Task, body_of, task_of, traced
from ._trace import TraceContext, recorded, trace_of
from ._transport import Interrupt, Interrupted, pause_of
from .client import Client
from .errors import DdqError, refused

_POLL = 30.0  # seconds
_MOST_TASKS = 1_000
_BEAT = 0.1
_TOPIC_PAUSE = 2.0  # at most, between two looks for a topic that does not exist
_WIND_DOWN = 1.0  # for interrupted handlers to return
_SETTLE = 30.0  # an outcome is repeated so long after the hold may have ended
_REMIND = 10.0  # how often a worker that gets no tasks says so again
_MOST_RESULT = 256 << 10  # bytes
_MOST_NEXT, _MOST_NEXT_BYTES = 100, 1 << 20  # tasks that an ack enqueues, and their payloads

_log = logging.getLogger("ddq")

HOLD_LOST, CANCELLED, TIMEOUT, STOPPED = "hold lost", "task cancelled", "handler timed out", "worker stopped"


class Permanent(Exception):
    """Raised by a handler: no further attempt can mend it; the task goes to the dead letters."""


class RetryAfter(Exception):
    """Raised by a handler: the next attempt is due after `delay`, whatever the backoff says."""

    def __init__(self, delay: Duration, message: str = "retry asked for") -> None:
        super().__init__(message)
        self.delay = delay


class Release(Exception):
    """Raised by a handler: the task is given back, due again after `delay`, and the attempt is not counted."""

    def __init__(self, delay: Duration = 0) -> None:
        super().__init__("released by the handler")
        self.delay = delay


class Stopped(Exception):
    """Raised by HeldTask.check; its text says why the handler is to stop."""


class HeldTask(Task):
    """A task that this worker holds."""

    def __init__(self, delivery: Dict[str, Any], keep: Optional[Callable[["HeldTask", str, bytes], None]] = None,
                 now: Callable[[], float] = time.time) -> None:
        task = task_of(delivery.get("task", {}))
        super().__init__(task.id, task.topic, task.payload, task.attributes, task.raw)
        set_ = object.__setattr__  # tasks are frozen
        set_(self, "attempt", self.raw.get("retry_count", 0) + 1)  # 1 at the first delivery
        set_(self, "hold_token", delivery.get("hold_token", ""))  # changes with every delivery: a fencing token
        set_(self, "_journal", Journal(delivery.get("journal", ()), lambda name, value: keep(self, name, value) if keep else None))
        # the trace context of the attempt: that of the delivery, where the server makes spans of them, else that of the producer, or what
        # trace_next was given; a client passes it on with **task.trace in what it enqueues; raw["traceparent"] is the producer's
        parent = delivery.get("traceparent") or self.raw.get("traceparent", "")
        set_(self, "trace", trace_of({"traceparent": parent, "tracestate": self.raw.get("tracestate", "")}))
        set_(self, "_now", now)
        set_(self, "_next", [])
        set_(self, "_ended", threading.Event())
        set_(self, "_why", "")

    attempt: int
    hold_token: str
    trace: Dict[str, str]
    _journal: Journal
    _now: Callable[[], float]  # the clock of the server, where that tells it
    _next: List[NewTask]
    _ended: threading.Event
    _why: str

    def enqueue(self, topic: str, payload: Any = b"", **fields: Any) -> None:
        """Have a task enqueued if and only if this one is acked. It carries `trace`, unless it has a context."""
        self._next.append(traced(NewTask(topic, payload, **fields), lambda: self.trace))

    def trace_next(self, context: TraceContext) -> None:
        """Say in which trace context the attempt is, such as a span of the handler's own.

        What enqueue gets from now on carries it, and the server keeps the id of its trace with the attempt, if it is recorded.
        """
        object.__setattr__(self, "trace", trace_of(context))

    def once(self, name: str, f: Callable[[], Any]) -> bytes:
        """Call `f`, unless it has returned under the name in an attempt before, and return what it returned then.

        Bytes and text are returned as bytes, None as none, and other values as JSON. What `f` returned is kept before once returns. An
        exception of `f` is raised, and nothing is kept; the name may be used again then, and otherwise once in an attempt, else NameUsed.
        An attempt that no longer holds the task keeps nothing, HoldLostError. A name has up to 128 bytes, a value 256 KiB, and a task
        1,000 names and 1 MiB, else JOURNAL_FULL. Threads of a handler may call it beside each other.
        """
        return self._journal.once(name, f)

    def sleep(self, name: str, duration: Union[timedelta, float, int]) -> None:
        """Let a time pass, from when this was first called under the name, as `once` has names.

        Until then Release is raised: the task is given back, due again when the time has passed, and the attempt is not counted.
        It goes by the clock of the server.
        """
        wait_ms = millis_of("duration", duration)
        until = self.once(name, lambda: moment_of(self._now() + wait_ms / 1000))
        try:
            left = seconds_of(until.decode()) - self._now()
        except ValueError:
            raise Permanent(f"{name!r} is not a sleep") from None
        if left > 0:
            raise Release(left)

    @property
    def interrupted(self) -> str:
        """Why the handler is to stop: HOLD_LOST, CANCELLED, TIMEOUT or STOPPED; empty while it is not."""
        return self._why

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Sleep, and return True at once when the handler is to stop."""
        return self._ended.wait(seconds)

    def check(self) -> None:
        """Raise Stopped when the handler is to stop."""
        if self._why:
            raise Stopped(self._why)

    def _interrupt(self, why: str) -> None:
        if not self._why:
            object.__setattr__(self, "_why", why)
            self._ended.set()


# What a handler returns is the result of its task: bytes or text as they are, None, or a value that is kept as JSON.
# An exception fails the attempt.
Handler = Callable[[HeldTask], Any]


@dataclass
class _Running:
    task: HeldTask
    hold_ends: float = 0
    extend_at: float = 0
    time_out_at: Optional[float] = None
    extending: bool = False
    lost: bool = False
    settled: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)  # one outcome a task

    def held(self, hold_ms: int, heartbeat: float) -> None:
        now = time.monotonic()
        self.hold_ends = now + hold_ms / 1000
        self.extend_at = now + min(hold_ms / 3000, heartbeat)

    def first(self) -> bool:
        """Whether nobody has settled the task before."""
        with self.lock:
            was, self.settled = self.settled, True
            return not was


class Worker:
    """Runs `handler` for up to `concurrency` tasks of a topic at a time, each in a thread.

    visibility_timeout: how many seconds a hold lasts without word from this worker; that of the task or its topic by default.
    handler_timeout: how many seconds a handler may run before it is to stop, unless its task says.
    heartbeat: how often a hold is extended at least, and after a third of it when that is less; which is also how soon a handler hears of a cancel.
    grace: how many seconds handlers may run on after stop.
    on_error: told of what the worker cannot return to anybody: lost connections, lost holds, failed attempts. The logger "ddq" is told, too.
    """

    def __init__(self, client: Client, topic: str, handler: Handler, *, concurrency: int = 10, name: str = "", visibility_timeout: float = 0,
                 handler_timeout: float = 0, heartbeat: float = 5, grace: float = 30,
                 on_error: Optional[Callable[[BaseException, Optional[Task]], None]] = None) -> None:
        if concurrency < 1:
            raise refused("OUT_OF_RANGE_FIELD", "concurrency", "a worker runs 1 task at a time at least")
        self._client, self._topic, self._handler, self._name = client, topic, handler, name
        self._path = f"/v1/topics/{segment('topic', topic)}:retrieve"
        self._concurrency, self._visibility_ms = concurrency, millis_of("visibility_timeout", visibility_timeout)
        self._handler_timeout, self._heartbeat, self._grace, self._on_error = handler_timeout, heartbeat, grace, on_error
        self._stopping = Interrupt()
        self._changed = threading.Condition()
        self._running: Dict[str, _Running] = {}  # guarded by _changed; by hold token: a lost task may come back while its first handler runs
        self._handed: "queue.SimpleQueue[Optional[_Running]]" = queue.SimpleQueue()
        self._threads = 0  # that run handlers; they are kept until the worker has stopped
        self._started = False
        self._living = threading.Lock()  # held while the worker takes tasks and waits for their handlers
        self._failure: Optional[BaseException] = None

    def run(self) -> None:
        """Work until stop is called or Ctrl-C is pressed, and return when all handlers have ended.

        It raises what no other attempt can mend, such as a token that is refused from the start; one that is refused later is asked for again.
        It waits for a topic that does not exist. A second Ctrl-C ends it at once.
        """
        if self._started:
            raise RuntimeError("a worker runs once")
        self._started = True
        try:
            # A thread of its own: Ctrl-C interrupts the main thread at any moment, and also while it starts another.
            working = threading.Thread(target=self._live, name="ddq worker", daemon=True)
            working.start()
            working.join()
        except KeyboardInterrupt:
            self.stop()
            with self._living:  # if it does not live by now, it finds itself stopped, and takes nothing
                pass
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Have run take no more tasks, wait for its handlers, and return. Signal handlers may call it."""
        self._stopping.set()
        # Not under the lock, which the interrupted thread may have: who waits looks again by itself.

    def _live(self) -> None:
        with self._living:
            try:
                self._settler = Settler(self._client, self._topic)
                self._over = threading.Event()
                beating = threading.Thread(target=self._beat, name="ddq heartbeat", daemon=True)
                beating.start()
                self._take()
                self._drain()
                self._over.set()
                for _ in range(self._threads):
                    self._handed.put(None)
                beating.join()
            except BaseException as error:  # there is no room for threads
                self._failure = error

    def _take(self) -> None:
        failures, heard, told = 0, False, -math.inf  # told: when the log was
        try:
            while not self._stopping.is_set():
                room = self._room()
                if room == 0:
                    continue
                try:
                    answer = self._poll(room)
                    now = _clock_of(answer)
                    for delivery in answer.get("deliveries", []):
                        self._start(delivery, now)
                    if failures and told > -math.inf:
                        _log.warning("the worker of %s gets tasks again", line_of(self._topic))
                    failures, heard, told = 0, True, -math.inf
                except DdqError as error:
                    # A topic may be made yet, or again; who says which tokens are good may be away for a moment.
                    absent = error.reason == "NO_TOPIC" or error.code == "UNAUTHENTICATED" and heard
                    if not (absent or _passing(error)):
                        raise
                    if time.monotonic() - told >= _REMIND:
                        told = time.monotonic()
                        _log.warning("the worker of %s gets no tasks: %s", line_of(self._topic), line_of(error_text(error)))
                    self._tell(error)
                    self._stopping.wait(_TOPIC_PAUSE * (1 + random.random()) / 2 if absent else pause_of(error, failures))
                    failures += 1
        except Interrupted:
            pass
        except BaseException as error:
            self._failure = error

    def _room(self) -> int:
        """Return how many more tasks may run, after a while when none may."""
        with self._changed:
            if len(self._running) >= self._concurrency:
                self._changed.wait(_BEAT)
            return self._concurrency - len(self._running)

    def _poll(self, room: int) -> Dict[str, Any]:
        body = {"max_tasks": min(room, _MOST_TASKS), "wait_ms": str(int(_POLL * 1000)), "worker": self._name, "visibility_timeout_ms": str(self._visibility_ms)}
        # Not repeated by the client: the loop does, and asks for as much as has room then.
        return self._client.call("POST", self._path, body=body, wait=_POLL, timeout=10, interrupt=self._stopping)

    def _start(self, delivery: Dict[str, Any], now: Callable[[], float]) -> None:
        run = _Running(HeldTask(delivery, self._keep, now))
        run.held(int(delivery.get("hold_ms", 0)), self._heartbeat)
        limit = int(run.task.raw.get("handler_timeout_ms", 0)) / 1000 or self._handler_timeout
        if limit:
            run.time_out_at = time.monotonic() + limit
        with self._changed:
            self._running[run.task.hold_token] = run
            short = self._threads < len(self._running)
        self._handed.put(run)
        if short:
            self._threads += 1
            threading.Thread(target=self._serve, name=f"ddq handler {self._threads}", daemon=True).start()

    def _serve(self) -> None:
        run = self._handed.get()
        while run is not None:
            self._work(run)
            run = self._handed.get()

    def _work(self, run: _Running) -> None:
        try:
            try:
                kind, outcome = "acks", _ack_of(run.task, self._handler(run.task))
            except BaseException as error:  # SystemExit, too: a handler ends its task, not its worker
                kind, outcome = "nacks", _nack_of(run.task, error)
                self._note("gives back" if isinstance(error, Release) else "failed", error, run.task)
            self._settle(run, kind, outcome)
        finally:
            with self._changed:
                self._running.pop(run.task.hold_token, None)
                self._changed.notify_all()

    def _settle(self, run: _Running, kind: str, outcome: Dict[str, Any]) -> None:
        """Tell the server, once, what became of an attempt. An outcome that is refused fails the attempt: the task must not wait for the end of its hold."""
        if not run.first() or run.lost:
            return
        try:
            try:
                self._send(run, kind, outcome)
            except Exception as error:
                if isinstance(error, DdqError) and (gone(error) or passing(error)):
                    raise
                self._note("has an outcome that is refused", error, run.task)
                self._send(run, "nacks", _nack_of(run.task, error) if kind == "acks" else _plain_nack_of(outcome, error))
        except Exception as error:
            self._note("was not settled", error, run.task)  # its hold runs out, if it has not

    def _keep(self, task: HeldTask, name: str, value: bytes) -> None:
        """Have the server remember what a name returned. It is said again for as long as the handler is not to stop."""
        with self._changed:
            run = self._running.get(task.hold_token)
        checkpoint = {**_id_of(task), "name": name, "value": to_base64("value", value)}
        self._settler.settle("checkpoints", checkpoint, lambda: math.inf, lambda: run.hold_ends if run else 0, task._ended)

    def _send(self, run: _Running, kind: str, outcome: Dict[str, Any]) -> None:
        began = time.monotonic()
        self._settler.settle(kind, outcome, lambda: max(run.hold_ends, began) + _SETTLE, lambda: run.hold_ends)

    def _beat(self) -> None:
        """Extend the holds whose time has come, and end the time of handlers."""
        while not self._over.wait(_BEAT):
            now = time.monotonic()
            with self._changed:
                runs = [run for run in self._running.values() if not run.lost]  # also where the server does not take the outcome yet
            for run in runs:
                if run.time_out_at is not None and now >= run.time_out_at and not run.settled:
                    run.task._interrupt(TIMEOUT)
                if now >= run.extend_at and not run.extending:
                    run.extending = True
                    threading.Thread(target=self._extend, args=(run,), name="ddq extend", daemon=True).start()

    def _extend(self, run: _Running) -> None:
        extend = {**_id_of(run.task), "visibility_timeout_ms": str(self._visibility_ms)}
        try:
            said = self._settler.settle("extends", extend, lambda: run.hold_ends, lambda: run.hold_ends)
        except Exception as error:
            if not run.settled:
                run.lost = True
                run.task._interrupt(HOLD_LOST)
                self._note("lost its hold", error, run.task)
            return
        run.held(int(said.get("hold_ms", 0)), self._heartbeat)
        if said.get("cancel_requested"):
            run.task._interrupt(CANCELLED)
        run.extending = False

    def _drain(self) -> None:
        """Wait for handlers; those that do not return in time are told, and then their tasks given back."""
        if self._idle(self._grace):
            return
        for run in self._left():
            run.task._interrupt(STOPPED)
        if self._idle(_WIND_DOWN):
            return
        givers = [threading.Thread(target=self._settle, args=(run, "nacks", {**_id_of(run.task), "release": True}), name="ddq release", daemon=True)
                  for run in self._left()]
        for giver in givers:
            giver.start()
        for giver in givers:
            giver.join()

    def _left(self) -> List[_Running]:
        with self._changed:
            return list(self._running.values())

    def _idle(self, seconds: float) -> bool:
        """Whether no handler runs within the time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def _note(self, what: str, error: BaseException, task: HeldTask) -> None:
        """Tell of an attempt: the log in one line, and with where it was raised when that is asked for."""
        level = logging.DEBUG if isinstance(error, Release) else logging.WARNING
        cause = error if _log.isEnabledFor(logging.DEBUG) else None
        _log.log(level, "attempt %d of task %s of %s %s: %s", task.attempt, line_of(task.id), line_of(task.topic), what, line_of(error_text(error)), exc_info=cause)
        self._tell(error, task)

    def _tell(self, error: BaseException, task: Optional[Task] = None) -> None:
        if self._on_error is None:
            return
        try:
            self._on_error(error, task)
        except Exception:
            pass  # who is told of errors must not end the worker by one


def _clock_of(answer: Dict[str, Any]) -> Callable[[], float]:
    """Return the clock of the server, where the answer tells it: the next attempt may be on another machine."""
    said, at = int(answer.get("server_time_ms", 0)), time.monotonic()
    return (lambda: said / 1000 + time.monotonic() - at) if said else time.time


def _id_of(task: HeldTask) -> Dict[str, Any]:
    return {"task_id": task.id, "hold_token": task.hold_token}


def _end_of(task: HeldTask) -> Dict[str, Any]:
    """Name an attempt that ends, and the trace in which it was, if that is recorded."""
    trace_id = recorded(task.trace)
    return {**_id_of(task), "trace_id": to_base64("trace_id", trace_id)} if trace_id else {**_id_of(task)}


def _ack_of(task: HeldTask, result: Any) -> Dict[str, Any]:
    ack = _end_of(task)
    if "trace_id" in ack and "step" in task.raw:  # what begins by the end of a step is linked to it
        ack["grow"] = {"traceparent": task.trace["traceparent"]}
    if result is not None:
        value = value_of(result)
        if len(value) > _MOST_RESULT:
            raise refused("RESULT_TOO_LARGE", "result", f"the result has {len(value)} bytes; at most {_MOST_RESULT} are allowed")
        ack["result"] = to_base64("result", value)
    if task._next:
        ack["enqueue"] = [body_of(following) for following in task._next]
        size = sum(len(following.get("payload", "")) for following in ack["enqueue"]) * 3 // 4
        if len(task._next) > _MOST_NEXT or size > _MOST_NEXT_BYTES:
            raise refused("BATCH_SIZE", "enqueue", f"{len(task._next)} tasks of {size} bytes are to be enqueued with the ack; "
                          f"at most {_MOST_NEXT} of {_MOST_NEXT_BYTES} bytes are allowed")
    return ack


def _nack_of(task: HeldTask, error: BaseException) -> Dict[str, Any]:
    nack = {**_id_of(task), "error": error_text(error)}
    try:
        nack.update(_end_of(task))
        if "trace_id" in nack and "step" in task.raw:
            nack["traceparent"] = task.trace["traceparent"]
    except Exception:
        pass  # a trace that is none
    if isinstance(error, Permanent):
        nack["permanent"] = True
    elif isinstance(error, RetryAfter):
        nack["delay_ms"] = str(_delay_of(error.delay))
    elif isinstance(error, Release):
        nack.update(release=True, delay_ms=str(_delay_of(error.delay)))
    elif task.interrupted == STOPPED:
        nack["release"] = True
    elif task.interrupted == TIMEOUT and nack["error"] != TIMEOUT:
        nack["error"] = f"{TIMEOUT}: {nack['error']}"
    return nack


def _plain_nack_of(nack: Dict[str, Any], refusal: BaseException) -> Dict[str, Any]:
    """Leave out of a nack that was refused what may be wrong with it."""
    plain = {name: nack[name] for name in ("task_id", "hold_token", "permanent", "release") if name in nack}
    return {**plain, "error": f"{error_text(refusal)}, of the failure: {ascii(nack.get('error', ''))}"}


def _delay_of(delay: Any) -> int:
    try:
        return millis_of("delay_ms", delay)
    except DdqError:
        return 0


def _passing(error: DdqError) -> bool:
    """Whether it may be over after a while."""
    return error.code in ("UNAVAILABLE", "UNKNOWN", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL", "CANCELLED")
