"""Requests over HTTP, and which of them are repeated."""

from __future__ import annotations

import http.client
import json
import random
import select
import socket
import ssl
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import urlencode, urlsplit

from ._encode import error_text, json_of
from .errors import DdqError, NotFoundError, TimeoutError, UnavailableError, answer_error, error_of

Query = Mapping[str, Union[None, str, int, bool, Sequence[str]]]

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
_SHORTEST_ATTEMPT = 5.0  # unless that is more than half of the time for all
_MOST_IDLE = 64  # connections that are kept for later
_OLDEST_IDLE = 60.0  # seconds; servers close theirs after two minutes


class Interrupt:
    """Ends a call from another thread. Once set, it ends every call that it is given to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._connection: Optional[http.client.HTTPConnection] = None  # guarded by _lock

    def set(self) -> None:
        with self._lock:
            self._event.set()
            if self._connection is not None and self._connection.sock is not None:
                try:
                    self._connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)

    def watch(self, connection: Optional[http.client.HTTPConnection]) -> None:
        with self._lock:
            self._connection = connection
        if connection is not None and self.is_set():
            raise Interrupted()


class Interrupted(Exception):
    """The call was ended by its Interrupt."""


class Transport:
    """Sends requests, and repeats those that may be repeated. Threads may share it."""

    def __init__(self, url: str, token: Union[None, str, Callable[[], str]], timeout: float, context: Optional[ssl.SSLContext],
                 namespace: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not a URL of http or https")
        self._host, self._port, self._tls = parts.hostname, parts.port, parts.scheme == "https"
        self._prefix = parts.path.rstrip("/")
        self._url, self._token, self.timeout = url, token, timeout
        self._context, self._namespace = context, namespace
        self._lock = threading.Lock()
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []  # guarded by _lock; with the time of last use

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def call(self, method: str, path: str, *, query: Optional[Query] = None, body: Any = None, safe: bool = False, wait: float = 0,
             timeout: Optional[float] = None, interrupt: Optional[Interrupt] = None, once: bool = False, data: Optional[bytes] = None, removes: bool = False) -> Any:
        """Return the JSON of the answer, or raise a DdqError. data: the body as it is sent. once: it is not repeated here, as the caller does so and has to know it.

        removes: what a repeat does not find may be gone by the try before."""
        budget = self.timeout if timeout is None else timeout
        end = time.monotonic() + budget + wait
        if body is not None:
            data = json_of(body)
        target = self._prefix + path + _query_of(query)
        attempt = 0
        last: Optional[DdqError] = None
        doubt: Optional[DdqError] = None  # of a try that may have done it
        while True:
            try:
                return self._once(method, target, data, max(_share(budget, wait, attempt, safe, end - time.monotonic()), 0.001), interrupt)
            except DdqError as error:
                unanswered = isinstance(error, TimeoutError) and not error.status
                if unanswered and last is not None and time.monotonic() >= end:
                    raise last  # why the call had to be repeated says more than that the time for it is over
                if removes and doubt is not None and isinstance(error, NotFoundError):
                    raise doubt  # nobody knows whether it was there before
                last = error
                doubt = error if error.code != "RESOURCE_EXHAUSTED" else doubt
                pause = pause_of(error, attempt)
                if once or not (repeatable(error, safe) or unanswered and safe) or time.monotonic() + pause >= end:
                    raise
            attempt += 1
            time.sleep(pause)

    def _once(self, method: str, target: str, data: Optional[bytes], timeout: float, interrupt: Optional[Interrupt]) -> Any:
        headers = self._headers(data)
        connection = self._take(timeout)
        keep = False
        try:
            if interrupt is not None:
                interrupt.watch(connection)
            try:
                connection.request(method, target, data, headers)
            except (BrokenPipeError, ConnectionResetError):
                if connection.sock is None:
                    raise
                # What is too large is refused before all of it is read: there may be an answer.
            if interrupt is not None and interrupt.is_set():
                raise Interrupted()  # it was set before there was a socket to shut
            answer = connection.getresponse()
            text = answer.read()
            keep = not answer.will_close
            return _value_of(answer, text)
        except (OSError, http.client.HTTPException) as error:
            if interrupt is not None and interrupt.is_set():
                raise Interrupted() from error
            if isinstance(error, socket.timeout):
                raise TimeoutError({"code": "DEADLINE_EXCEEDED", "detail": f"no answer from {self._url} in {timeout:.1f} s"}) from error
            raise UnavailableError({"code": "UNAVAILABLE", "detail": f"{self._url}: {error or type(error).__name__}"}) from error
        finally:
            if interrupt is not None:
                interrupt.watch(None)
            self._give(connection, keep)

    def _headers(self, data: Optional[bytes]) -> Dict[str, str]:
        headers = {} if data is None else {"Content-Type": "application/json"}
        if self._namespace:
            headers["Ddq-Namespace"] = self._namespace
        try:
            token = self._token() if callable(self._token) else self._token
        except Exception as error:  # who makes it may be away for a moment
            raise UnavailableError({"code": "UNAVAILABLE", "detail": f"no token: {error_text(error)}"}) from error
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, used = self._idle.pop()
            if time.monotonic() - used < _OLDEST_IDLE and _open(connection):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _give(self, connection: http.client.HTTPConnection, keep: bool) -> None:
        with self._lock:
            if keep and connection.sock is not None and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def _open(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has not closed an idle connection, which makes it readable."""
    if connection.sock is None:
        return False
    try:
        return not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):  # select knows the first 1,024 files only
        return False


def _query_of(query: Optional[Query]) -> str:
    pairs: List[Tuple[str, str]] = []
    for name, value in (query or {}).items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return "?" + urlencode(pairs) if pairs else ""


def _value_of(answer: http.client.HTTPResponse, text: bytes) -> Any:
    if 200 <= answer.status < 300:
        try:
            value = json.loads(text) if text else {}
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        raise UnavailableError({"code": "UNAVAILABLE", "status": answer.status, "detail": "an answer that is none of ddq's, or was cut short"})
    if answer.headers.get_content_type() == "application/problem+json":
        try:
            problem = json.loads(text)
        except ValueError:
            problem = None  # cut short on its way
        if isinstance(problem, dict):
            raise error_of(problem)
    raise answer_error(answer.status, text.decode("utf-8", "replace"))


def _share(budget: float, wait: float, attempt: int, safe: bool, left: float) -> float:
    """Return how long an attempt may take. The first ones of a call that may be repeated leave time for others: a connection may be dead."""
    if not safe:
        return left
    return min(wait + max(min(_SHORTEST_ATTEMPT, budget / 2), budget * (attempt + 1) / 6), left)


def repeatable(error: DdqError, safe: bool) -> bool:
    """Say whether a call that failed so may be repeated, as PROTOCOL.md has it."""
    if error.retry_after:
        return True
    return safe and error.code in ("UNAVAILABLE", "UNKNOWN")


def pause_of(error: DdqError, attempt: int) -> float:
    """Return how long to wait before a call is repeated: with jitter, so that callers who were refused together do not come back together."""
    if error.retry_after:
        return error.retry_after * (1 + random.random() / 2)
    return random.random() * min(_FIRST_PAUSE * 2 ** min(attempt + 1, 16), _LONGEST_PAUSE)
