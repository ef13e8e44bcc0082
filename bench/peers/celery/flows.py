"""The workload workflows of Celery. `celery -A flows worker` is a worker, and

    python3 flows.py KIND SIZE

submits. See flowBook and flowStage of package main for what they tell and are told. The environment
has FLOWS_REDIS, the URL of broker and result backend, and FLOWS_HOLD, how long a handler takes in
seconds.
"""

import os
import sys
import time

from celery import Celery, chain, chord
from celery.signals import worker_ready

app = Celery("flows", broker=os.environ["FLOWS_REDIS"], backend=os.environ["FLOWS_REDIS"])
hold = float(os.environ["FLOWS_HOLD"])


def tell(*words):
    """One write, past what a worker makes of sys.stdout."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def now():
    return time.time_ns() // 1000


@worker_ready.connect
def ready(**_):
    tell("ready")


@app.task(name="step")
def step(flow, handler):
    began = now()
    if hold > 0:
        time.sleep(hold)
    tell("ran", flow, handler, began, now())


def submit(kind, size):
    tell("ready")
    for line in sys.stdin:
        flow = line.strip()
        if kind == "chain":
            chain(*(step.si(flow, i) for i in range(size))).apply_async()
        else:
            chord([step.si(flow, i) for i in range(size)])(step.si(flow, size))


if __name__ == "__main__":
    submit(sys.argv[1], int(sys.argv[2]))
