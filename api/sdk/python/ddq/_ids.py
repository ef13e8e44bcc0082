"""Ids that clients make, so that a request may be repeated."""

from __future__ import annotations

import hashlib
import os
import threading
import time

_lock = threading.Lock()
_last_ms = 0  # guarded by _lock
_count = 0  # guarded by _lock


def new_id() -> str:
    """Return a UUID of version 7; those of one process rise."""
    global _last_ms, _count
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _last_ms:
            _last_ms, _count = now, 0
        elif _count < 0xFFF:
            _count += 1
        else:
            _last_ms, _count = _last_ms + 1, 0
        ms, count = _last_ms, _count
    random = bytearray(os.urandom(8))
    random[0] = random[0] & 0x3F | 0x80
    clock, tail = f"{ms:012x}", random.hex()
    return f"{clock[:8]}-{clock[8:]}-7{count:03x}-{tail[:4]}-{tail[4:]}"


def new_keyed_id(key: str) -> str:
    """Return an id for a task with a key, which says where the tasks of the key lie (PROTOCOL.md, Producing)."""
    fresh = new_id()
    place = hashlib.sha256(key.encode()).hexdigest()[:8]
    return f"{fresh[:14]}8ddc-8{fresh[15:18]}-{place}{fresh[32:]}"
