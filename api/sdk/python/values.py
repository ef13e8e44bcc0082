"""Values that handlers and callers hand in, by their names: what becomes of each says ../values.json."""

import array
import os
from datetime import datetime, timezone


class Hostile:
    """Raises whatever it is asked."""

    def _no(self, *_, **__):
        raise RuntimeError("not for you")

    __str__ = __repr__ = __len__ = __iter__ = __bool__ = __float__ = __format__ = _no
    items = property(_no)


def cycle(value):
    value.append(value)
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


# The values of ../values.json that there are in Python.
VALUES = {
    "text": lambda: "Grüße 😀",
    "no text": lambda: "",
    "half a character": lambda: os.fsdecode(b"caf\xe9.txt"),
    "a character of zero": lambda: "a\0b",
    "an escape": lambda: "\x1b]0;x\x07\u202e",
    "10 MB": lambda: "x" * 10_000_000,
    "nothing": lambda: None,
    "five": lambda: 5,
    "zero": lambda: 0,
    "no number": lambda: float("nan"),
    "true": lambda: True,
    "false": lambda: False,
    "a date": lambda: datetime(2030, 1, 2, tzinfo=timezone.utc),
    "a list": lambda: [1, 2, 3],
    "an object": lambda: {"a": [1, "ü"]},
    "half a character within": lambda: {"a": os.fsdecode(b"\xe9")},
    "a set": lambda: {1},
    "a cycle": lambda: cycle([]),
    "100,000 lists": deep,
    "a generator": lambda: (n for n in range(3)),
    "a function": lambda: len,
    "hostile": Hostile,
    "bytes": lambda: b"\x00\xff",
    "bytes that change": lambda: bytearray(b"\x00\xff"),
    "a view": lambda: memoryview(b"x\x00y\xffz")[1::2],
    "a buffer": lambda: array.array("B", [0, 255]),
}
