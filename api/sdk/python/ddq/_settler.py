"""Settlements: ends and extensions of holds, and what their tasks are to remember."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._encode import json_of, segment
from ._transport import pause_of
from .client import Client
from .errors import DdqError, HoldLostError, NotFoundError, TimeoutError, item_error, refused

_GATHER = 0.002  # seconds
_GATHER_BESIDE = 0.02  # while the answer of another request is waited for
_MOST_AT_ONCE = 100
_MOST_BYTES = 4 << 20  # of several
_MOST_ALONE = (6 << 20) - 1024  # that a request may have
_LONGEST_ATTEMPT, _SHORTEST_ATTEMPT = 10.0, 0.5
_LAST_PAUSE = 0.1  # with less time than that left nothing is asked again
_MOST_FAULTS = 5  # INTERNAL is a bug, or a moment of what lies between
_NEVER = threading.Event()


class _Item:
    """One end or extension of a hold, or what its task is to remember. It is encoded by whoever settles it: what cannot be is nobody else's."""

    def __init__(self, kind: str, body: Mapping[str, Any], hold_ends: Callable[[], float]) -> None:
        self.kind = kind  # acks, nacks, extends or checkpoints
        self.key = _key_of(body)
        self.data = json_of(body)
        if len(self.data) > _MOST_ALONE:
            raise refused("BODY_TOO_LARGE", "", f"the outcome has {len(self.data)} bytes; at most {_MOST_ALONE} are allowed")
        self._hold_ends = hold_ends
        self.said: "Future[Dict[str, Any]]" = Future()

    def timeout(self) -> float:
        """How long an answer is waited for: a third of what is left of the hold, so that there is time for others."""
        left = self._hold_ends() - time.monotonic()
        return min(max(left / 3, _SHORTEST_ATTEMPT), _LONGEST_ATTEMPT) if left > 0 else _LONGEST_ATTEMPT


class _Batch:
    """What goes in one request. Whoever puts the first item into it sends it."""

    def __init__(self) -> None:
        self.items: List[_Item] = []
        self.size = 0
        self.full = False

    def takes(self, item: _Item) -> bool:
        """Whether there is room. Answers name the hold: of each there is one item."""
        return len(self.items) < _MOST_AT_ONCE and self.size + len(item.data) <= _MOST_BYTES and all(i.key != item.key for i in self.items)

    def add(self, item: _Item) -> None:
        self.items.append(item)
        self.size += len(item.data)


def _key_of(part: Mapping[str, Any]) -> Any:
    return part.get("task_id"), part.get("hold_token"), part.get("name", "")  # only checkpoints have a name


def passing(error: DdqError) -> bool:
    """Whether the same settlement may be taken after a while."""
    if error.reason == "JOURNAL_FULL":  # it stays full
        return False
    return bool(error.retry_after) or error.code in ("UNAVAILABLE", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNAUTHENTICATED")


def gone(error: DdqError) -> bool:
    """Whether there is no such hold: what is not found is not one that the outcome names."""
    return isinstance(error, HoldLostError) or isinstance(error, NotFoundError) and not (error.field or "").startswith("enqueue")


class Settler:
    """Sends settlements of a topic, those of about the same moment in one request, each request in a thread of one who settles.

    Nobody waits for what another request waits for. What is not answered is repeated alone, and what is refused as a whole is halved:
    one settlement that is slow or bad is in nobody's way.
    """

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._path = f"/v1/topics/{segment('topic', topic)}:settle"
        self._changed = threading.Condition()  # told when a batch is full, and when a request is answered
        self._open: Optional[_Batch] = None  # guarded by _changed
        self._sending = 0  # batches; guarded by _changed

    def settle(self, kind: str, body: Mapping[str, Any], until: Callable[[], float], hold_ends: Callable[[], float],
               ended: threading.Event = _NEVER) -> Dict[str, Any]:
        """Return what the server says of it, or raise its refusal. It is repeated until then, or until `until` of time.monotonic, or `ended`.

        hold_ends: of time.monotonic. A repeat of an outcome that finds no hold before then was done by a try of which nobody knows what became."""
        item = _Item(kind, body, hold_ends)
        outcome = kind in ("acks", "nacks")
        attempt, faults, doubted, alone = 0, 0, False, False
        while True:
            try:
                item.said = Future()
                if alone:
                    self._send([item])
                else:
                    self._gather(item)
                result = item.said.result()
                if "error" in result:
                    raise item_error(result["error"])
                return result
            except DdqError as error:
                # Where there is no such topic any more, the outcome may have been accepted before that or not.
                if doubted and outcome and gone(error) and error.reason != "NO_TOPIC" and time.monotonic() < hold_ends():
                    return {}
                faults += error.code == "INTERNAL"
                if not passing(error) or faults > _MOST_FAULTS:
                    raise
                doubted = doubted or error.code != "RESOURCE_EXHAUSTED"  # which changed nothing
                alone = isinstance(error, TimeoutError) or error.code == "INTERNAL"  # perhaps for another one's sake
                left = until() - time.monotonic()
                # Asked again sooner than the server says, where it would be too late else.
                if left < _LAST_PAUSE or ended.wait(min(pause_of(error, attempt), left / 2)):
                    raise
            attempt += 1

    def _gather(self, item: _Item) -> None:
        """Have an item sent, with others of about the same moment."""
        with self._changed:
            batch = self._open
            if batch is not None:
                if batch.takes(item):
                    batch.add(item)
                    return
                batch.full = True
                self._changed.notify_all()
            first = self._open = _Batch()
            first.add(item)
            if not self._changed.wait_for(lambda: first.full, _GATHER):
                self._changed.wait_for(lambda: first.full or self._sending == 0, _GATHER_BESIDE)
            if self._open is first:
                self._open = None
            self._sending += 1
        try:
            self._send(first.items)
        finally:
            with self._changed:
                self._sending -= 1
                self._changed.notify_all()

    def _send(self, items: List[_Item]) -> None:
        """Tell each of the items what came of it."""
        parts: Dict[str, List[bytes]] = {}
        for item in items:
            parts.setdefault(item.kind, []).append(item.data)
        data = b"{" + b",".join(b'"%s":[%s]' % (kind.encode(), b",".join(part)) for kind, part in parts.items()) + b"}"
        try:
            answer = self._client.call("POST", self._path, data=data, timeout=min(item.timeout() for item in items), once=True)
            said = {_key_of(result): result for result in answer.get("results", [])}
        except BaseException as error:  # told to those who wait
            if len(items) > 1 and isinstance(error, DdqError) and not passing(error):
                # One of them at least is bad: the halves without it are taken.
                self._send(items[: len(items) // 2])
                self._send(items[len(items) // 2 :])
                return
            for item in items:
                item.said.set_exception(error)
            return
        for item in items:
            item.said.set_result(said.get(item.key, {}))
