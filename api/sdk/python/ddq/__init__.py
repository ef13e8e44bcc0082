"""Client and worker of ddq, a distributed delay queue and task scheduler. They speak REST, and need nothing but Python."""

from . import _types as wire
from ._encode import Duration, Payload, Time
from ._ids import new_id, new_keyed_id
from ._journal import NameUsed
from ._task import NewTask, Task
from ._trace import TraceContext
from .client import Client
from .errors import (
    DdqError,
    DeniedError,
    ExhaustedError,
    ExistsError,
    HoldLostError,
    InternalError,
    InvalidError,
    NotFoundError,
    OutOfRangeError,
    PreconditionError,
    TimeoutError,
    UnavailableError,
    UnknownOutcomeError,
    VersionError,
)
from .worker import CANCELLED, HOLD_LOST, STOPPED, TIMEOUT, HeldTask, Permanent, Release, RetryAfter, Stopped, Worker

__version__ = "0.1.0"

__all__ = [
    "CANCELLED", "HOLD_LOST", "STOPPED", "TIMEOUT", "Client", "DdqError", "DeniedError", "Duration", "ExhaustedError", "ExistsError", "HeldTask",
    "HoldLostError", "InternalError", "InvalidError", "NameUsed", "NewTask", "NotFoundError", "OutOfRangeError", "Payload", "Permanent", "PreconditionError",
    "Release", "RetryAfter", "Stopped", "Task", "Time", "TimeoutError", "TraceContext", "UnavailableError", "UnknownOutcomeError", "VersionError",
    "Worker", "new_id", "new_keyed_id", "wire",
]
