"""Trace contexts: of who enqueues a task, and of its attempts."""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional

# A W3C trace context, as the headers of that name have it: what propagators of OpenTelemetry write into an empty dict, and read from
# one. Empty when there is none; what else it has is not looked at.
TraceContext = Mapping[str, str]

# The version, the id of the trace, that of the span, and flags, of which the lowest says that the trace is recorded.
_FORM = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f][13579bdf](-|$)")


def trace_of(context: Optional[TraceContext]) -> Dict[str, str]:
    """Return a context without what does not belong to it."""
    if not context or not context.get("traceparent"):
        return {}
    return {name: context[name] for name in ("traceparent", "tracestate") if context.get(name)}


def recorded(context: TraceContext) -> Optional[bytes]:
    """Return the id of the trace; None when there is none, or nobody records it."""
    found = _FORM.match(context.get("traceparent", ""))
    return bytes.fromhex(found[1]) if found else None
