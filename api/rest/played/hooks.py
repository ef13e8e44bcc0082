"""What schemathesis plays against a server: see tools/rest.sh.

Values that are made up meet nothing that exists, so most of them end as 404. Half of the
names are those of things that this file has made, and makes anew when they are gone.
"""

import itertools
import json
import random
import urllib.error
import urllib.request

import schemathesis

TASK = {"payload": "aGk=", "attributes": [{"key": "tenant", "value": "acme"}]}
DAILY = {"entries": [{"cron": "0 3 * * *"}], "zone": "Europe/Berlin"}
STEPS = [{"name": "charge"}, {"name": "approve", "wait": {"signal": "approve"}}, {"name": "ship", "after": [{"step": "charge"}, {"step": "approve"}]}]

# What is made, in this order: method, path and body. That it is there already is no error.
THINGS = [
    ("POST", "/v1/namespaces", {"name": "acme"}),
    ("POST", "/v1/topics", {"name": "mail", "policy": {"done_retention_ms": "3600000"}}),
    ("POST", "/v1/topics", {"name": "orders"}),
    ("POST", "/v1/topics/mail/tasks", {"id": "now", **TASK}),
    ("POST", "/v1/topics/mail/tasks", {"id": "later", "delay": "3600s", **TASK}),
    ("POST", "/v1/topics/mail/tasks", {"id": "over", "expire_after": "0.001s", **TASK}),
    ("PUT", "/v1/calendars/holidays", {"yearly": ["12-25"]}),
    ("PUT", "/v1/topics/mail/schedules/nightly", {"timetable": DAILY, "task": TASK}),
    ("POST", "/v1/audiences", {"name": "users", "fallback_zone": "UTC"}),
    ("POST", "/v1/audiences/users/recipients:put", {"recipients": [{"id": "ann", "zone": "Europe/Berlin"}]}),
    ("PUT", "/v1/topics/mail/schedules/all", {"timetable": DAILY, "task": TASK, "audience": {"name": "users"}}),
    ("POST", "/v1/topics/orders/workflows", {"id": "order", "steps": STEPS}),
    ("POST", "/v1/topics/orders/workflows", {"id": "other", "steps": STEPS}),
]

# Names of these things by parameter, for the paths that begin so.
NAMES = [
    ("/v1/namespaces/", {"name": ["acme", "default"]}),
    ("/v1/audiences/", {"audience": ["users"], "name": ["users"], "id": ["ann"]}),
    ("/v1/calendars/", {"name": ["holidays"]}),
    ("/v1/topics/{topic}/schedules", {"topic": ["mail"], "name": ["nightly", "all"]}),
    ("/v1/topics/{topic}/workflows", {"topic": ["orders"], "id": ["order", "other"], "step": ["charge", "approve", "ship"]}),
    ("/v1/topics/{name}", {"name": ["mail", "orders"]}),
    ("/v1/topics/{topic}", {"topic": ["mail", "orders"], "id": ["now", "later", "over"]}),
    ("/v1/", {"topic": ["mail", "orders"], "audience": ["users"]}),
]

ONE_IN = 200  # calls, after which things are made anew
calls = itertools.count()
server = ""  # its address, known by the first call


def make(method, path, body):
    request = urllib.request.Request(server + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method)
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as refused:
        if refused.code >= 500 and refused.code != 503:
            raise


def known(path, values):
    """values, half of which name things that are there."""
    if not values:
        return values
    names = next(n for start, n in NAMES if path.startswith(start))
    chance = random.Random(repr(sorted(values.items(), key=str)))
    return {k: chance.choice(names[k]) if k in names and chance.random() < 0.5 else v for k, v in values.items()}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return known(context.operation.path, path_parameters)


@schemathesis.hook
def map_query(context, query):
    return known(context.operation.path, query)


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict):
        return known(context.operation.path, body)
    return body


@schemathesis.hook
def before_call(context, case, **kwargs):
    global server
    server = server or case.operation.base_url.rstrip("/")
    if next(calls) % ONE_IN == 0:
        for thing in THINGS:
            make(*thing)


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode()
