"""Settlements: ends and extensions of holds, and what their tasks are to remember."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._encode import segment
from ._transport import pause_of, repeatable
from .client import Client
from .errors import DdqError, HoldLostError, InvalidError, NotFoundError, TimeoutError, item_error

_GATHER = 0.002  # seconds
_MOST_AT_ONCE = 100
_MOST_BYTES = 4 << 20  # below what a request may have
_NEVER = threading.Event()


@dataclass
class _Waiting:
    kind: str  # acks, nacks, extends or checkpoints
    body: Mapping[str, Any]
    said: "Future[Dict[str, Any]]"

    def key(self) -> Any:
        return _key_of(self.body)

    def size(self) -> int:
        following = sum(1024 + len(task.get("payload", "")) for task in self.body.get("enqueue", ()))
        return 512 + len(self.body.get("result", "")) + len(self.body.get("value", "")) + following


def _key_of(part: Mapping[str, Any]) -> Any:
    return part.get("task_id"), part.get("hold_token"), part.get("name", "")  # only checkpoints have a name


def _gone(error: DdqError) -> bool:
    """Say that there is no such hold. Where there is no such topic any more, an outcome may have been accepted before that or not."""
    return isinstance(error, HoldLostError) or isinstance(error, NotFoundError) and error.reason != "NO_TOPIC"


class Settler:
    """Sends settlements of a topic, those of about the same moment in one request. It owns one thread, which close ends."""

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._path = f"/v1/topics/{segment('topic', topic)}:settle"
        self._queue: "queue.SimpleQueue[Optional[_Waiting]]" = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ddq settle", daemon=True)
        self._thread.start()

    def settle(self, kind: str, body: Mapping[str, Any], until: Callable[[], float], ended: threading.Event = _NEVER,
               hold_ends: Optional[Callable[[], float]] = None) -> Dict[str, Any]:
        """Return what the server says of it, or raise its refusal. It is repeated until then, or until `until` of time.monotonic, or `ended`.

        hold_ends: of an outcome. A repeat that finds no hold before then was done by a try of which nobody knows what became."""
        attempt, doubted = 0, False
        while True:
            waiting = _Waiting(kind, body, Future())
            self._queue.put(waiting)
            try:
                result = waiting.said.result()
                if "error" in result:
                    raise item_error(result["error"])
                return result
            except DdqError as error:
                if doubted and hold_ends is not None and _gone(error) and time.monotonic() < hold_ends():
                    return {}
                pause = pause_of(error, attempt)
                unanswered = isinstance(error, TimeoutError) and not error.status
                if not (repeatable(error, True) or unanswered) or error.reason == "JOURNAL_FULL":  # a journal stays full
                    raise
                doubted = doubted or error.code != "RESOURCE_EXHAUSTED"  # which changed nothing
                if time.monotonic() + pause >= until() or ended.wait(pause):
                    raise
            attempt += 1

    def close(self) -> None:
        """Send what is left, and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        waiting = self._queue.get()
        while waiting is not None:
            waiting = self._gather(waiting)

    def _gather(self, first: _Waiting) -> Optional[_Waiting]:
        """Send first and what comes with it, and return what comes after, or None at the end."""
        batch, size, until = [first], first.size(), time.monotonic() + _GATHER
        while len(batch) < _MOST_AT_ONCE:
            try:
                following = self._queue.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                break
            if following is None or size + following.size() > _MOST_BYTES:
                self._send(batch)
                return following
            batch.append(following)
            size += following.size()
        self._send(batch)
        return self._queue.get()

    def _send(self, batch: List[_Waiting]) -> None:
        body: Dict[str, List[Any]] = {}
        for waiting in batch:
            body.setdefault(waiting.kind, []).append(waiting.body)
        try:
            answer = self._client.call("POST", self._path, body=body, timeout=10, once=True)
        except Exception as error:  # told to those who wait
            self._failed(batch, error)
            return
        said = {_key_of(r): r for r in answer.get("results", [])}
        for waiting in batch:
            waiting.said.set_result(said.get(waiting.key(), {}))

    def _failed(self, batch: List[_Waiting], error: Exception) -> None:
        # A request that is refused as a whole has one bad item at least: each goes by itself then.
        if isinstance(error, InvalidError) and len(batch) > 1:
            for waiting in batch:
                self._send([waiting])
            return
        for waiting in batch:
            waiting.said.set_exception(error)
