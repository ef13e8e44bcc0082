"""What handlers do once, however many attempts their tasks take."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterable, Mapping, Set

from ._encode import from_base64, text_of, value_of
from .errors import refused

# The most that a task remembers. The server sees to 1,000 names, and 1 MiB of names and values.
_MAX_NAME = 128  # bytes of a name
_MAX_VALUE = 256 << 10  # bytes of what it returned


class NameUsed(Exception):
    """Raised by HeldTask.once: it was given the name before in the same attempt."""


class Journal:
    """What names of a task returned in attempts before, and which of them this attempt has used.

    `keep` has the server remember what a name returned.
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]], keep: Callable[[str, bytes], None]) -> None:
        self._returned: Dict[str, bytes] = {e.get("name", ""): from_base64(e.get("value")) for e in entries}
        self._keep = keep
        self._lock = threading.Lock()
        self._used: Set[str] = set()  # guarded by _lock

    def once(self, name: str, f: Callable[[], Any]) -> bytes:
        self._use(name)
        if name in self._returned:
            return self._returned[name]
        try:
            value = value_of(f())
        except BaseException:
            with self._lock:
                self._used.discard(name)
            raise
        if len(value) > _MAX_VALUE:
            raise refused("RESULT_TOO_LARGE", "value", f"{name!r} returned {len(value)} bytes; at most {_MAX_VALUE} are allowed")
        self._keep(name, value)
        return value

    def _use(self, name: str) -> None:
        """Take a name for this attempt."""
        size = len(text_of("name", name, "BAD_NAME").encode())
        if not 1 <= size <= _MAX_NAME:
            raise refused("BAD_NAME", "name", f"the name has {size} bytes; it must have 1 to {_MAX_NAME}")
        with self._lock:
            if name in self._used:
                raise NameUsed(f"the name {name!r} is used twice in one attempt")
            self._used.add(name)
