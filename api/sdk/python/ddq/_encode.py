"""How values are written on the wire."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Mapping, Optional, Union
from urllib.parse import quote

from .errors import refused

Duration = Union[timedelta, float, int, str]  # numbers are seconds; text is as "90s" or "0.5s"
Time = Union[datetime, str]  # text is RFC 3339
Payload = Union[bytes, bytearray, memoryview, str]  # text is sent as UTF-8


def to_bytes(payload: Payload) -> bytes:
    return payload.encode() if isinstance(payload, str) else bytes(payload)


def value_of(value: Any) -> bytes:
    """Write what a handler returned: bytes and text as they are, None as no bytes, and other values as JSON."""
    if value is None:
        return b""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return to_bytes(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def to_base64(payload: Payload) -> str:
    return base64.b64encode(to_bytes(payload)).decode("ascii")


def from_base64(text: Optional[str]) -> bytes:
    return base64.b64decode(text) if text else b""


def millis_of(field: str, duration: Union[timedelta, float, int]) -> int:
    """Return a duration in milliseconds, rounded up: a task is never early."""
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    if not math.isfinite(duration) or duration < 0:
        raise refused("BAD_DELAY", field, f"{duration} s is not a duration")
    return math.ceil(round(duration * 1000, 6))


def duration_of(field: str, duration: Optional[Duration]) -> Optional[str]:
    if duration is None or isinstance(duration, str):
        return duration
    ms = millis_of(field, duration)
    return f"{ms // 1000}.{ms % 1000:03d}s"


def time_of(field: str, moment: Optional[Time]) -> Optional[str]:
    if moment is None or isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise refused("BAD_TIME", field, "a datetime without a time zone is no moment")
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def moment_of(seconds: float) -> str:
    """Write a time.time as RFC 3339, rounded up to a millisecond."""
    whole, ms = divmod(math.ceil(round(seconds * 1000, 3)), 1000)
    return datetime.fromtimestamp(whole, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms:03d}Z"


def seconds_of(moment: str) -> float:
    """Read RFC 3339 of UTC as a time.time."""
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    return datetime.strptime(whole + "Z", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp() + float("0." + (fraction or "0"))


def attributes_of(attributes: Optional[Mapping[str, str]]) -> Optional[list]:
    if attributes is None:
        return None
    return [{"key": key, "value": value} for key, value in attributes.items()]


def segment(field: str, name: str) -> str:
    """Write a name or id as part of a path."""
    if name == "":
        raise refused("BAD_ID" if field == "id" else "BAD_NAME", field, f"the {field} is empty")
    return quote(name, safe="")


def stripped(values: Dict[str, Any]) -> Dict[str, Any]:
    """Leave out what is not set."""
    return {name: value for name, value in values.items() if value is not None}
