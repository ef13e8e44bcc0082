"""What went wrong, by what a caller can do about it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class DdqError(Exception):
    """What the server, or the way to it, says. Its class says what a caller can do."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        detail = str(problem.get("detail") or problem.get("title") or "unknown error")
        self.reason: str = problem.get("reason") or ""  # stable, such as NO_TASK; may be empty
        super().__init__(detail + (f" ({self.reason})" if self.reason else ""))
        self.status: int = problem.get("status") or 0  # of the HTTP answer; 0 when there was none
        self.code: str = problem.get("code") or "UNKNOWN"  # that of gRPC, such as NOT_FOUND
        self.field: Optional[str] = problem.get("field")  # what is wrong in the request
        self.id: Optional[str] = problem.get("id")  # of the task that is in the way
        self.state: Optional[str] = problem.get("state")
        self.version: Optional[str] = problem.get("version")
        after = problem.get("retry_after_ms")
        self.retry_after: Optional[float] = None if after is None else int(after) / 1000  # seconds
        self.incident: Optional[str] = problem.get("incident")  # under which the server's log has more
        self.request_id: Optional[str] = problem.get("request_id")


class InvalidError(DdqError):
    """The request can never succeed; `field` names the fault."""


class OutOfRangeError(DdqError):
    """Beyond a limit of the topic, such as its farthest due time."""


class NotFoundError(DdqError):
    """No such task, topic or schedule."""


class ExistsError(DdqError):
    """The id, key or name is taken by something else."""


class PreconditionError(DdqError):
    """Not possible in the state that the task or topic is in."""


class VersionError(DdqError):
    """It was changed since it was read; `version` is the one that it has now."""


class HoldLostError(PreconditionError):
    """The hold ran out or was replaced; nothing was changed."""


class ExhaustedError(DdqError):
    """Paused, over a quota or too large; perhaps later."""


class UnavailableError(DdqError):
    """The server or its store could not be reached, or refuses for now."""


class UnknownOutcomeError(DdqError):
    """The answer was lost, and the request may have taken effect."""


class DeniedError(DdqError):
    """Missing or insufficient credentials."""


class InternalError(DdqError):
    """A fault of the server; its log has the details."""


class TimeoutError(DdqError):  # noqa: A001: users write ddq.TimeoutError
    """The caller's own timeout passed; what was asked for may have been done."""


_BY_CODE: Dict[str, Type[DdqError]] = {
    "INVALID_ARGUMENT": InvalidError,
    "OUT_OF_RANGE": OutOfRangeError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": ExistsError,
    "FAILED_PRECONDITION": PreconditionError,
    "ABORTED": VersionError,
    "RESOURCE_EXHAUSTED": ExhaustedError,
    "UNAVAILABLE": UnavailableError,
    "UNKNOWN": UnknownOutcomeError,
    "UNAUTHENTICATED": DeniedError,
    "PERMISSION_DENIED": DeniedError,
    "DEADLINE_EXCEEDED": TimeoutError,
    "INTERNAL": InternalError,
}

# What the statuses of a proxy mean.
_BY_STATUS = {
    401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 408: "UNAVAILABLE", 429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE",
    504: "UNAVAILABLE",
}

# What the numbers of codes in items are called.
_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)


def error_of(problem: Mapping[str, Any]) -> DdqError:
    """Return the error for a problem."""
    if problem.get("reason") == "HOLD_LOST":
        return HoldLostError(problem)
    return _BY_CODE.get(problem.get("code") or "", DdqError)(problem)


def item_error(error: Mapping[str, Any]) -> DdqError:
    """Return the error of an item of a batch, which carries a number for its code."""
    code = error.get("code", 2)
    name = _CODES[code] if 0 <= code < len(_CODES) else "UNKNOWN"
    return error_of({**error, "code": name, "detail": error.get("message", "")})


def answer_error(status: int, text: str) -> DdqError:
    """Return the error of an answer that is none of ddq's, such as a proxy's."""
    code = _BY_STATUS.get(status) or ("INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return error_of({"status": status, "code": code, "detail": f"status {status}: {text[:200]}"})


def refused(reason: str, field: str, detail: str) -> InvalidError:
    """Return an error for what the server would refuse, too, or never sees."""
    return InvalidError({"code": "INVALID_ARGUMENT", "reason": reason, "field": field, "detail": detail})
