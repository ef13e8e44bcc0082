"""A worker of a round of faults: it asks the harness what is planned for each attempt, and does that."""

import base64
import json
import os
import sys
import threading
import urllib.request

import ddq
from values import VALUES

url, name, concurrency, *topics = sys.argv[1:]
client = ddq.Client(url)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def harness(path, task, **about):
    about.update(topic=task.topic, task=task.id, attempt=task.attempt, token=task.hold_token)
    with direct.open(f"{url}/{path}", json.dumps(about).encode()) as answer:
        return json.load(answer)


def part(task, name):
    def run():
        harness("ran", task, name=name)
        return f"{name} in attempt {task.attempt}"

    task.once(name, run)


def beside(task, names):
    failures = []

    def one(name):
        try:
            part(task, name)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failures:
        raise error


def handle(task):
    todo = harness("plan", task, payload=base64.b64encode(task.payload).decode(), keyed="idempotency_key" in task.raw)
    parts = todo.get("parts") or []
    for first in parts[:1]:
        part(task, first)
    if task.wait(todo.get("ms", 0) / 1000) and not todo.get("stubborn"):
        task.check()
    beside(task, parts[1:])
    value = list(VALUES.values())[todo["value"] % len(VALUES)]()
    ends = todo.get("ends")
    if ends == "nack":
        raise ValueError(value)
    if ends == "retry":
        raise ddq.RetryAfter(todo["after_ms"] / 1000)
    if ends == "release":
        raise ddq.Release(todo["after_ms"] / 1000)
    if ends == "permanent":
        raise ddq.Permanent(value)
    if ends == "panic":
        raise SystemExit(value)
    return value if todo.get("odd") else base64.b64decode(todo["result"])


def obey():
    """Stop when that is asked for, and end at once where nobody can ask any more."""
    if not sys.stdin.readline():
        os._exit(1)
    for worker in workers:
        worker.stop()


workers = [ddq.Worker(client, topic, handle, concurrency=int(concurrency), name=name, grace=5) for topic in topics]
threading.Thread(target=obey, daemon=True).start()


def run(worker):
    try:
        worker.run()
    except Exception as error:
        print(f"the worker failed: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)


running = [threading.Thread(target=run, args=(worker,)) for worker in workers]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
