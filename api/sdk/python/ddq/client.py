"""The client: producers and administrators."""

from __future__ import annotations

import ssl
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union, cast

from . import _types as wire
from ._encode import Duration, Payload, Time, attributes_of, duration_of, error_text, json_of, millis_of, segment, stripped, time_of, to_base64
from ._ids import new_id
from ._task import NewTask, Task, body_of, request_of, task_of, traced
from ._trace import TraceContext
from ._transport import Query, Transport
from .errors import DdqError, InvalidError, item_error, refused


class Client:
    """Calls a server over REST. Threads may share one.

    `token` says who calls, or is a function that is asked for it before each request. `timeout` is how many seconds a call may take
    together with its repeats, beside what it is to wait. `context` has the certificates to trust, and that of the caller. `namespace`
    is where the topics and audiences are that calls are about; without it that of the token is. `trace` is asked for the trace context
    that each task is enqueued in, unless the task has one.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", *, token: Union[None, str, Callable[[], str]] = None, timeout: float = 30,
                 context: Optional[ssl.SSLContext] = None, namespace: str = "",
                 trace: Optional[Callable[[], Optional[TraceContext]]] = None) -> None:
        self._trace = trace or (lambda: None)
        self._transport = Transport(url, token, timeout, context, namespace)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, *, query: Optional[Query] = None, body: Any = None, safe: bool = False, wait: float = 0,
             timeout: Optional[float] = None, **options: Any) -> Any:
        """Make any request of docs/rest.md, for what has no method here. `safe` has it repeated when nobody knows what became of it."""
        return self._transport.call(method, path, query=query, body=body, safe=safe, wait=wait, timeout=timeout, **options)

    # Tasks

    def enqueue(self, topic: str, payload: Payload = b"", **fields: Any) -> wire.EnqueueResponse:
        """Store a task; the fields are those of NewTask. The call is repeated until the task is known to be stored, once."""
        body = request_of(traced(NewTask(topic, payload, **fields), self._trace))
        del body["topic"]
        return self.call("POST", f"{_topic_path(topic, 'topic')}/tasks", body=body, safe=True)

    def enqueue_batch(self, tasks: Iterable[NewTask]) -> List[Union[wire.EnqueueResult, DdqError]]:
        """Store up to 1,000 tasks in one call. They fail alone: each place of the answer has a receipt or an error."""
        answers: List[Any] = []
        requests: List[Tuple[int, bytes]] = []  # with the place of the answer
        for at, task in enumerate(tasks):
            try:
                requests.append((at, json_of(request_of(traced(task, self._trace)))))
                answers.append(None)
            except Exception as error:
                answers.append(error if isinstance(error, DdqError) else refused("MALFORMED", f"tasks[{at}]", error_text(error)))
        if requests or not answers:
            self._enqueue_some(requests, answers)
        return answers

    def _enqueue_some(self, requests: List[Tuple[int, bytes]], answers: List[Any]) -> None:
        try:
            answer = self.call("POST", "/v1/tasks:batch", data=b'{"tasks":[%s]}' % b",".join(data for _, data in requests), safe=True)
        except InvalidError as error:
            if error.reason not in ("MALFORMED", "BODY_TOO_LARGE") or not requests:
                raise
            if len(requests) == 1:
                answers[requests[0][0]] = error
                return
            # One of them at least is bad: the halves without it are stored.
            self._enqueue_some(requests[: len(requests) // 2], answers)
            self._enqueue_some(requests[len(requests) // 2 :], answers)
            return
        for (at, _), result in zip(requests, answer.get("results", [])):
            answers[at] = item_error(result["error"]) if "error" in result else result

    def get(self, topic: str, id: str) -> Task:
        return task_of(self.call("GET", _task_path(topic, id), safe=True).get("task", {}))

    def list(self, topic: str, filter: Optional[wire.TaskFilter] = None, *, page_size: Optional[int] = None) -> Iterator[Task]:
        """Go through the tasks that match: those that are live, unless the filter has states."""
        pages = self._pages("POST", f"{_topic_path(topic, 'topic')}/tasks:search", page_size, body=filter or {})
        return (task_of(raw) for page in pages for raw in page.get("tasks", []))

    def count(self, topic: str) -> wire.CountTasksResponse:
        return self.call("GET", f"{_topic_path(topic, 'topic')}:count", safe=True)

    def wait(self, topic: str, id: str, seconds: float) -> Tuple[Task, bool]:
        """Return the task when it has ended, or after so many seconds (at most 60), and whether it has ended."""
        answer = self.call("GET", f"{_task_path(topic, id)}:wait", query={"wait_ms": millis_of("wait_ms", seconds)}, wait=seconds, safe=True)
        return task_of(answer.get("task", {})), answer.get("settled", False)

    def edit(self, topic: str, id: str, **edit: Any) -> wire.UpdateTaskResponse:
        """Change a task that waits; None is the default of a field, and if_version says of which version that is true."""
        if edit.get("payload") is not None:
            edit["payload"] = to_base64("payload", edit["payload"])
        for name, write in (("delay", duration_of), ("expire_after", duration_of), ("execute_time", time_of), ("expire_time", time_of)):
            if name in edit:
                edit[name] = write(name, edit[name])
        if "attributes" in edit:
            edit["attributes"] = attributes_of(edit["attributes"])
        return self.call("PATCH", _task_path(topic, id), body=edit)

    def reschedule(self, topic: str, id: str, *, delay: Optional[Duration] = None, execute_time: Optional[Time] = None,
                   if_version: Optional[str] = None) -> wire.RescheduleTaskResponse:
        body = stripped({"delay": duration_of("delay", delay), "execute_time": time_of("execute_time", execute_time), "if_version": if_version})
        return self.call("POST", f"{_task_path(topic, id)}:reschedule", body=body)

    def promote(self, topic: str, id: str) -> wire.PromoteTaskResponse:
        """Make a task due now."""
        return self.call("POST", f"{_task_path(topic, id)}:promote", body={})

    def delete(self, topic: str, id: str) -> None:
        """Remove a task that no worker holds."""
        self.call("DELETE", _task_path(topic, id))

    def cancel(self, topic: str, id: str, *, or_delete: bool = False, wait: float = 0) -> wire.CancelTaskResponse:
        """Tell the worker of a task that runs to stop; with or_delete, remove one that does not."""
        body = {"or_delete": or_delete, "wait_ms": str(millis_of("wait_ms", wait))}
        return self.call("POST", f"{_task_path(topic, id)}:cancel", body=body, wait=wait, safe=True, removes=or_delete)

    # Dead letters

    def dead_letters(self, topic: str, filter: Optional[wire.DeadLetterFilter] = None, *, page_size: Optional[int] = None) -> Iterator[Task]:
        """Go through the dead letters of a topic."""
        query = {f"filter.{name}": value for name, value in (filter or {}).items()}
        pages = self._pages("GET", f"{_topic_path(topic, 'topic')}/dead", page_size, query=cast(Query, query))
        return (task_of(raw) for page in pages for raw in page.get("tasks", []))

    def requeue_dead(self, topic: str, ids: Iterable[str] = (), *, filter: Optional[wire.DeadLetterFilter] = None, dry_run: bool = False) -> wire.RequeueDeadLettersResponse:
        """Make dead letters live again, by their ids or by a filter. A dry run counts what the filter matches, and changes nothing."""
        return self.call("POST", f"{_topic_path(topic, 'topic')}/dead:requeue", body=_which(ids, filter, dry_run))

    def delete_dead(self, topic: str, ids: Iterable[str] = (), *, filter: Optional[wire.DeadLetterFilter] = None, dry_run: bool = False) -> wire.DeleteDeadLettersResponse:
        return self.call("POST", f"{_topic_path(topic, 'topic')}/dead:delete", body=_which(ids, filter, dry_run))

    # Topics

    def create_topic(self, name: str, policy: Optional[wire.TopicPolicy] = None) -> wire.Topic:
        return self.call("POST", "/v1/topics", body={"name": name, "policy": policy or {}}).get("topic", {})

    def describe_topic(self, name: str) -> wire.DescribeTopicResponse:
        return self.call("GET", _topic_path(name), safe=True)

    def configure_topic(self, name: str, policy: wire.TopicPolicy, *, if_version: Optional[str] = None) -> wire.Topic:
        """Change what the policy names."""
        return self.call("PATCH", _topic_path(name), body=stripped({"policy": policy, "if_version": if_version})).get("topic", {})

    def list_topics(self, *, page_size: Optional[int] = None) -> Iterator[wire.Topic]:
        return (topic for page in self._pages("GET", "/v1/topics", page_size) for topic in page.get("topics", []))

    def pause_topic(self, name: str, *, delivery: bool = False, enqueue: bool = False) -> None:
        """Pause delivery, enqueueing or both."""
        self.call("POST", f"{_topic_path(name)}:pause", body={"delivery": delivery, "enqueue": enqueue}, safe=True)

    def resume_topic(self, name: str, **resume: Any) -> None:
        self.call("POST", f"{_topic_path(name)}:resume", body=resume, safe=True)

    def delete_topic(self, name: str, *, force: bool = False) -> None:
        """Remove a topic, with the tasks that it has when force is set."""
        self.call("DELETE", _topic_path(name), query={"force": force or None})

    # Schedules

    def put_schedule(self, topic: str, name: str, task: NewTask, timetable: wire.Timetable, **fields: Any) -> wire.PutScheduleResponse:
        """Create or change a schedule, whose fields are those of wire.Schedule; the same again changes nothing. The task has no id."""
        body = body_of(task)
        del body["topic"]
        return self.call("PUT", _schedule_path(topic, name), body={**fields, "task": body, "timetable": timetable}, safe=True)

    def get_schedule(self, topic: str, name: str) -> wire.GetScheduleResponse:
        return self.call("GET", _schedule_path(topic, name), safe=True)

    def list_schedules(
        self,
        topic: str,
        *,
        prefix: Optional[str] = None,
        state: Optional[wire.ScheduleState] = None,
        skipped_since: Optional[Time] = None,
        page_size: Optional[int] = None,
    ) -> Iterator[wire.GetScheduleResponse]:
        """Go through the schedules that match, in no particular order: skipped_since finds those that have skipped an occurrence of that time or later."""
        query = {"prefix": prefix, "state": state, "skipped_since": time_of("skipped_since", skipped_since)}
        pages = self._pages("GET", f"{_topic_path(topic, 'topic')}/schedules", page_size, query=query)
        return (schedule for page in pages for schedule in page.get("schedules", []))

    def pause_schedule(self, topic: str, name: str, note: str = "") -> wire.PauseScheduleResponse:
        return self.call("POST", f"{_schedule_path(topic, name)}:pause", body={"note": note}, safe=True)

    def resume_schedule(self, topic: str, name: str, note: str = "") -> wire.ResumeScheduleResponse:
        return self.call("POST", f"{_schedule_path(topic, name)}:resume", body={"note": note}, safe=True)

    def trigger_schedule(self, topic: str, name: str, **trigger: Any) -> wire.TriggerScheduleResponse:
        """Make a run now, one however often the call is repeated."""
        return self.call("POST", f"{_schedule_path(topic, name)}:trigger", body={"request_id": new_id(), **trigger}, safe=True)

    def delete_schedule(self, topic: str, name: str) -> None:
        self.call("DELETE", _schedule_path(topic, name))

    def describe_server(self) -> wire.DescribeServerResponse:
        return self.call("GET", "/v1/server", safe=True)

    def _pages(self, method: str, path: str, page_size: Optional[int], *, query: Optional[Query] = None, body: Any = None) -> Iterator[Dict[str, Any]]:
        if page_size is not None and page_size < 1:
            raise refused("OUT_OF_RANGE_FIELD", "page_size", "a page has 1 task at least")
        token: Optional[str] = None
        while True:
            page = self.call(method, path, query={**(query or {}), "page_size": page_size, "page_token": token}, body=body, safe=True)
            yield page
            token = page.get("next_page_token")
            if not token:
                return


def _which(ids: Iterable[str], filter: Optional[Mapping[str, Any]], dry_run: bool) -> Dict[str, Any]:
    return stripped({"ids": list(ids) or None, "filter": filter, "dry_run": dry_run or None})


def _topic_path(name: str, field: str = "name") -> str:
    return f"/v1/topics/{segment(field, name)}"


def _task_path(topic: str, id: str) -> str:
    return f"{_topic_path(topic, 'topic')}/tasks/{segment('id', id)}"


def _schedule_path(topic: str, name: str) -> str:
    return f"{_topic_path(topic, 'topic')}/schedules/{segment('name', name)}"
