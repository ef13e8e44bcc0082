"""Does what a case of ../cases says, one line of JSON a call: the test beside starts it."""

import json
import logging
import ssl
import sys
import threading
from datetime import datetime, timedelta, timezone

import ddq
from values import VALUES

_out = threading.Lock()
_released = set()


def say(line):
    with _out:
        print(json.dumps(line), flush=True)


class Log(logging.Handler):
    def emit(self, record):
        say({"event": "log", "line": record.getMessage()})


logging.getLogger("ddq").addHandler(Log())


def put(topic, id, place, value):
    """Enqueue a task with a value at a place."""
    value = VALUES[value]()
    if place == "payload":
        return driver.c.enqueue(topic, value, id=id, delay=3600)
    if place == "attribute":
        return driver.c.enqueue(topic, b"", id=id, delay=3600, attributes={"of": value})
    return driver.c.enqueue(topic, b"", id=value, delay=3600)


class Begun:
    """Has as many handlers go on together as a case has."""

    def __init__(self):
        self._changed, self._begun = threading.Condition(), 0

    def wait(self, of):
        with self._changed:
            self._begun += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._begun >= of)


begun = Begun()


def outcome(task):
    """Have a value at a place of the outcome of a task."""
    place, value = task.attributes["place"], VALUES[task.attributes["value"]]()
    begun.wait(int(task.attributes["of"]))
    if place == "error":
        raise ValueError(value)
    if place == "permanent":
        raise ddq.Permanent(value)
    if place == "next":
        task.enqueue(task.topic, value, id="next-" + task.id, delay=3600)
    if place == "next id":
        task.enqueue(task.topic, "from " + task.id, id=value, delay=3600)
    if place == "next attribute":
        task.enqueue(task.topic, "", id="next-" + task.id, delay=3600, attributes={"of": value})
    if place == "next key":
        task.enqueue(task.topic, "", id="next-" + task.id, delay=3600, fairness_key=value)
    if place == "once":
        return task.once("part", lambda: value)
    if place == "name":
        return task.once(value, lambda: "kept")
    return value if place == "result" else None


def task_of(task):
    """Tasks of cases: payload_size stands for a large one, delay_ms for a number."""
    task = dict(task)
    if "payload_size" in task:
        task["payload"] = "x" * task.pop("payload_size")
    if "payload_hex" in task:
        task["payload"] = bytes.fromhex(task.pop("payload_hex"))
    if "delay_ms" in task:
        task["delay"] = task.pop("delay_ms") / 1000
    if "slack_ms" in task:
        task["slack"] = timedelta(milliseconds=task.pop("slack_ms"))
    if "execute_in_ms" in task:
        task["execute_time"] = datetime.now(timezone.utc) + timedelta(milliseconds=task.pop("execute_in_ms"))
    return task


def shown(task, **more):
    rest = {name: value for name, value in task.raw.items() if name not in ("payload", "result")}
    seen = {**rest, "size": len(task.payload), "error": rest.get("last_error"), "attributes": task.attributes, **more}
    if len(task.payload) < 1000:
        seen.update(payload=task.payload.decode("utf-8", "replace"), payload_hex=task.payload.hex())
    if task.result is not None:
        seen["result"] = task.result.decode("utf-8", "replace")
    return seen


def failure(error):
    if not isinstance(error, ddq.DdqError):
        return {"class": type(error).__name__, "text": str(error)}
    after = None if error.retry_after is None else round(error.retry_after * 1000)
    return {"class": type(error).__name__, "reason": error.reason, "code": error.code, "status": error.status, "field": error.field, "id": error.id,
            "state": error.state, "version": error.version, "retry_after_ms": after, "text": str(error)}


def part(task, name, size=None, returns=None, fails=0, deaf_ms=0):
    """Do a part of a handler, under its name, and tell what came of it."""
    about = {"id": task.id, "attempt": task.attempt, "name": name}

    def run():
        say({"event": "ran", **about})
        if task.attempt == 1:
            threading.Event().wait(deaf_ms / 1000)
        if fails >= task.attempt:
            raise ValueError("not yet")
        return returns if size is None else "x" * size

    try:
        value = task.once(name, run)
        say({"event": "once", **about, "got": value.decode() if len(value) < 1000 else len(value)})
    except Exception as error:
        say({"event": "refused", **about, **failure(error)})


def handle(task):
    """Do what the attributes of the task say."""
    what, value = task.attributes.get("do"), task.attributes.get("value", "")
    say({"event": "begin", "id": task.id, "attempt": task.attempt, "payload": task.payload[:1000].decode(), "size": len(task.payload), "trace": task.trace,
         "step": task.raw.get("step", {}).get("name")})
    if what == "outcome":
        return outcome(task)
    if what == "return":
        return value
    if what == "bytes":
        return b"\x00\xff"
    if what == "json":
        return {"seen": [1, "ü"]}
    if what == "large":
        return "x" * int(value)
    if what == "fail" or what == "fail once" and task.attempt == 1:
        raise ValueError(value)
    if what == "retry" and task.attempt == 1:
        raise ddq.RetryAfter(int(value) / 1000, "later")
    if what == "release" and task.id not in _released:
        _released.add(task.id)
        raise ddq.Release(int(value) / 1000)
    if what == "permanent":
        raise ddq.Permanent(value)
    if what == "once":
        for one in json.loads(value):
            part(task, **one)
        if task.attempt == 1:
            raise ValueError("after its parts")
    if what == "beside":
        parts = [threading.Thread(target=part, args=(task,), kwargs=one) for one in json.loads(value)]
        for thread in parts:
            thread.start()
        for thread in parts:
            thread.join()
    if what == "nap":
        try:
            task.sleep("nap", int(value) / 1000)
        except Exception as error:
            say({"event": "sleeps", "id": task.id, "class": type(error).__name__})
            raise
        say({"event": "slept", "id": task.id, "attempt": task.attempt})
    if what == "next":
        task.enqueue(value, "after " + task.id)
    if what == "span":
        task.trace_next(json.loads(value))
        task.enqueue(task.topic, "after " + task.id)
        task.enqueue(task.topic, "elsewhere", traceparent="00-" + "e" * 32 + "-" + "e" * 16 + "-00")
        driver.c.enqueue(task.topic, "beside " + task.id, **task.trace)
    if what == "bad span":
        task.trace_next(json.loads(value))
        raise ddq.Permanent("in vain")
    if what == "bad next":
        task.enqueue(value, delay=-1)
    if what == "sleep":
        if task.wait(int(value) / 1000):
            say({"event": "interrupted", "id": task.id, "why": {"task cancelled": "cancelled", "handler timed out": "timeout", "worker stopped": "stopped"}.get(task.interrupted, task.interrupted)})
        task.check()
        return "slept"
    if what == "deaf":
        threading.Event().wait(int(value) / 1000)
        say({"event": "end", "id": task.id})
    return None


def told(error, task):
    say({"event": "error", **failure(error)})
    raise RuntimeError("by who is told of errors")


class Driver:
    c = None

    def client(self, url, token=None, timeout_ms=30_000, ca=None, namespace="", trace=None):
        if self.c is not None:
            self.c.close()
        self.c = ddq.Client(url, token=token, timeout=timeout_ms / 1000, context=ssl.create_default_context(cafile=ca) if ca else None, namespace=namespace,
                            trace=(lambda: trace) if trace else None)

    def enqueue(self, **task):
        return self.c.enqueue(**task_of(task))

    def enqueue_batch(self, tasks):
        answers = self.c.enqueue_batch(ddq.NewTask(**task_of(task)) for task in tasks)
        return [failure(a) if isinstance(a, ddq.DdqError) else a for a in answers]

    def get(self, topic, id):
        return shown(self.c.get(topic, id))

    def list(self, topic, filter=None, page_size=None):
        return [shown(task) for task in self.c.list(topic, filter, page_size=page_size)]

    def count(self, topic):
        return self.c.count(topic)

    def wait(self, topic, id, wait_ms):
        task, settled = self.c.wait(topic, id, wait_ms / 1000)
        return shown(task, settled=settled)

    def edit(self, topic, id, **edit):
        return self.c.edit(topic, id, **task_of(edit))

    def reschedule(self, topic, id, **to):
        return self.c.reschedule(topic, id, **task_of(to))

    def promote(self, topic, id):
        return self.c.promote(topic, id)

    def delete(self, topic, id):
        self.c.delete(topic, id)

    def cancel(self, topic, id, or_delete=False, wait_ms=0):
        return self.c.cancel(topic, id, or_delete=or_delete, wait=wait_ms / 1000)

    def dead_letters(self, topic, filter=None):
        return [shown(task) for task in self.c.dead_letters(topic, filter)]

    def requeue_dead(self, topic, ids=(), filter=None):
        return self.c.requeue_dead(topic, ids, filter=filter)

    def delete_dead(self, topic, ids=(), filter=None):
        return self.c.delete_dead(topic, ids, filter=filter)

    def create_topic(self, topic, policy=None):
        return self.c.create_topic(topic, policy)

    def describe_topic(self, topic):
        return self.c.describe_topic(topic)

    def configure_topic(self, topic, policy, if_version=None):
        return self.c.configure_topic(topic, policy, if_version=if_version)

    def list_topics(self, page_size=None):
        return [topic["name"] for topic in self.c.list_topics(page_size=page_size)]

    def pause_topic(self, topic, **what):
        self.c.pause_topic(topic, **what)

    def resume_topic(self, topic, **what):
        self.c.resume_topic(topic, **what)

    def delete_topic(self, topic, force=False):
        self.c.delete_topic(topic, force=force)

    def put_schedule(self, topic, name, task, timetable, **schedule):
        return self.c.put_schedule(topic, name, ddq.NewTask(topic, **task_of(task)), timetable, **schedule)

    def get_schedule(self, topic, name):
        return self.c.get_schedule(topic, name)

    def list_schedules(self, topic, **filter):
        return [s["schedule"]["name"] for s in self.c.list_schedules(topic, **filter)]

    def pause_schedule(self, topic, name, note=""):
        return self.c.pause_schedule(topic, name, note)

    def resume_schedule(self, topic, name):
        return self.c.resume_schedule(topic, name)

    def trigger_schedule(self, topic, name, **trigger):
        return self.c.trigger_schedule(topic, name, **trigger)

    def delete_schedule(self, topic, name):
        self.c.delete_schedule(topic, name)

    def describe_server(self):
        return self.c.describe_server()

    def values(self, place):
        return list(VALUES)

    def put(self, **value):
        return put(**value)

    def keyed_id(self, key):
        first, second = ddq.new_keyed_id(key), ddq.new_keyed_id(key)
        return {"place": first[24:32], "group": first[14:18], "rises": first < second}

    def request(self, method, path, body=None):
        return self.c.call(method, path, body=body)

    def work(self, topic, name="", concurrency=10, **options):
        seconds = {option[: -len("_ms")]: value / 1000 for option, value in options.items()}
        self.worker = ddq.Worker(self.c, topic, handle, name=name, concurrency=concurrency, on_error=told, **seconds)
        working.set()

    def stop(self, topic):
        self.worker.stop()


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say({"ok": getattr(driver, request["call"])(**request["args"])})
        except Exception as error:
            say({"error": failure(error)})
    over.set()
    working.set()


driver, working, over = Driver(), threading.Event(), threading.Event()
threading.Thread(target=serve, daemon=True).start()
working.wait()
if not over.is_set():
    try:
        driver.worker.run()  # in the main thread, which Ctrl-C interrupts
        say({"event": "stopped"})
    except Exception as error:
        say({"event": "failed", **failure(error)})
    over.wait()
