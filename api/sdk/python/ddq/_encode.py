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
_ENDLESS = 1e12  # seconds
_MOST_ERROR = 1024  # bytes of an error that the server keeps
Payload = Union[bytes, bytearray, memoryview, str]  # or what else has a buffer; text is sent as UTF-8


def to_bytes(field: str, payload: Payload) -> bytes:
    if isinstance(payload, str):
        return text_of(field, payload).encode()
    try:
        return memoryview(payload).tobytes()
    except (TypeError, ValueError):  # a number would be so many bytes of zero
        raise refused("MALFORMED", field, f"{field}: bytes or text are wanted, not {type(payload).__name__}") from None


def text_of(field: str, text: Any, reason: str = "MALFORMED") -> str:
    """Return text that can be sent: what comes from names of files may have no UTF-8."""
    if not isinstance(text, str):
        raise refused(reason, field, f"{field}: text is wanted, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise refused(reason, field, f"{field}: {ascii(text[error.start])} at {error.start} is not UTF-8") from None
    return text


def value_of(value: Any) -> bytes:
    """Write what a handler returned: bytes and text as they are, None as no bytes, and other values as JSON."""
    if value is None:
        return b""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return to_bytes("value", value)
    # What has no UTF-8 is within a string of JSON, where its escape is what JSON has for it.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def json_of(body: Any) -> bytes:
    """Write a request, or a part of one."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError, too
        raise refused("MALFORMED", "", f"the request cannot be written as JSON: {error}") from error


def error_text(error: BaseException) -> str:
    """Say what an exception says, as far as the server keeps it: whatever it is, it can be sent."""
    try:
        text = str(error)
    except Exception as beside:
        text = f"{type(error).__name__}, which cannot be told: {type(beside).__name__}"
    text = text[:_MOST_ERROR] or type(error).__name__
    return text.encode("utf-8", "backslashreplace")[:_MOST_ERROR].decode("utf-8", "ignore")


def line_of(text: str) -> str:
    """Write text that others wrote as one line without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def to_base64(field: str, payload: Payload) -> str:
    return base64.b64encode(to_bytes(field, payload)).decode("ascii")


def from_base64(text: Optional[str]) -> bytes:
    return base64.b64decode(text) if text else b""


def millis_of(field: str, duration: Union[timedelta, float, int]) -> int:
    """Return a duration in milliseconds, rounded up: a task is never early."""
    try:
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else math.nan if isinstance(duration, (bool, str)) else float(duration)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < _ENDLESS:
        raise refused("BAD_DELAY", field, f"{duration!r:.100} s is not a duration")
    return math.ceil(round(seconds * 1000, 6))


def duration_of(field: str, duration: Optional[Duration]) -> Optional[str]:
    if duration is None or isinstance(duration, str):
        return duration
    ms = millis_of(field, duration)
    return f"{ms // 1000}.{ms % 1000:03d}s"


def time_of(field: str, moment: Optional[Time]) -> Optional[str]:
    if moment is None or isinstance(moment, str):
        return moment
    if not isinstance(moment, datetime):
        raise refused("BAD_TIME", field, f"a {type(moment).__name__} is not a time")
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
    if not isinstance(attributes, Mapping):
        raise refused("BAD_ATTRIBUTES", "attributes", f"attributes: names and values are wanted, not {type(attributes).__name__}")
    return [{"key": text_of("attributes", key, "BAD_ATTRIBUTES"), "value": text_of("attributes", value, "BAD_ATTRIBUTES")} for key, value in attributes.items()]


def segment(field: str, name: str) -> str:
    """Write a name or id as part of a path."""
    reason = "BAD_ID" if field == "id" else "BAD_NAME"
    if name == "":
        raise refused(reason, field, f"the {field} is empty")
    return quote(text_of(field, name, reason), safe="")


def stripped(values: Dict[str, Any]) -> Dict[str, Any]:
    """Leave out what is not set."""
    return {name: value for name, value in values.items() if value is not None}
