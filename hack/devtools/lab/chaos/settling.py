"""After the faults of a round: its jobs come to rest, what must hold then is checked, and they are deleted."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from devtools.lab.chaos import checker
from devtools.lab.chaos.checker import Finding
from devtools.lab.chaos.history import is_final, state_of
from devtools.lab.chaos.resources import BATCH_JOBS, OWNED, PODS, watched
from devtools.lab.chaos.world import World
from devtools.testbed.client import Refused

RULES = (
    "one pod a rank at a time",
    "every job ends, as its pods imply",
    "no job vanishes that nothing has deleted",
    "an outcome stays",
    "each failure counts once",
    "each pod has the labels of its job",
    "no pod and no batch Job runs for an ended job whose policy deletes it",
    "no write for a job at rest",
    "no object without its job",
    "the leader's count of jobs by kind and state equals the API server's",
    "no process outlives its operator",
)
_SETTLE = 420.0
"""Seconds in which all jobs must have ended: the kubelet may take five minutes to restart the API server."""
_REST = 12.0
"""Seconds without a write, after which jobs are at rest: a succeeded job gives its other replicas 10 s to exit."""
_REST_LIMIT, _CACHE_LIMIT, _DELETION = 60.0, 30.0, 180.0
"""Seconds until jobs are at rest, until the leader's cache is right, and until what jobs owned is gone."""
_POLL = 0.3


def settled(world: World, expected: Mapping[str, str], states: Counter[str]) -> Iterator[Finding]:
    """What does not hold. ``expected`` has the outcomes of jobs by name; ``states`` gets how many ended in which."""
    deadline = time.monotonic() + _SETTLE
    manifests = world.jobs()
    while not all(is_final(state_of(job)) for job in manifests) and time.monotonic() < deadline:
        time.sleep(_POLL * 3)
        manifests = world.jobs()
    yield from checker.lost_jobs(manifests)
    yield from checker.wrong_outcomes(manifests, expected)
    yield from _at_rest(world)
    yield from _cached(world)
    manifests = world.jobs()
    yield from checker.left_batch_jobs(manifests, world.client.items(BATCH_JOBS.collection(world.namespace)))
    with world.recorder.history() as history:
        yield from checker.left_running(manifests, history)
        yield from checker.wrong_attempts(history)
        yield from checker.wrong_labels(history)
        yield from checker.vanished_jobs(manifests, history)
    states.update(state_of(job) or "no state" for job in manifests)
    yield from _deleted(world)
    for operator in world.operators.values():
        yield from (("a process outlives its operator", one) for one in operator.orphans)
        operator.orphans.clear()


def _at_rest(world: World) -> Iterator[Finding]:
    """Wait until nothing is written and no pod of a lost node is left, then look whether that lasts.

    Kubernetes deletes those pods by force after 40 to 60 s, and the operator may report it; this does it at once.
    """
    deadline = time.monotonic() + _REST_LIMIT
    while (leaving := _leaving(world)) or world.trail.writes_since(time.monotonic() - _REST, world.namespace):
        if time.monotonic() > deadline:
            break
        for name in leaving:
            with contextlib.suppress(Refused):  # it is gone by now
                path = f"{PODS.collection(world.namespace)}/{name}"
                world.client.request("DELETE", path, {"gracePeriodSeconds": 0})
        time.sleep(_POLL)
    begin = time.monotonic()
    time.sleep(_REST)
    writes = world.trail.writes_since(begin, world.namespace)
    yield from checker.writes_at_rest([f"{one.method} {one.path}: {one.status}" for one in writes])


def _leaving(world: World) -> list[str]:
    with world.recorder.history() as history:
        return history.leaving(world.nodes.names)


def _cached(world: World) -> Iterator[Finding]:
    """Whether some operator's metrics agree with the API server; only the leader's have jobs."""
    deadline = time.monotonic() + _CACHE_LIMIT
    while manifests := world.jobs():
        texts = [operator.metrics() for operator in world.operators.values()]
        with_jobs = [text for text in texts if checker.cached_jobs(text, world.namespace)] or texts[:1]
        wrong = [[*checker.wrong_cache(text, world.namespace, manifests)] for text in with_jobs]
        if not all(wrong):
            return
        if time.monotonic() > deadline:
            yield from wrong[0]
            return
        time.sleep(1)


def _deleted(world: World) -> Iterator[Finding]:
    """Delete all jobs; what is left of what they owned."""
    deadline = time.monotonic() + _DELETION
    with world.recorder.history() as history:
        history.deleted |= history.created | history.jobs.keys()
    for kind in watched():
        world.client.request("DELETE", kind.collection(world.namespace), {"propagationPolicy": "Background"})
    while found := [
        finding
        for resource in OWNED
        for finding in checker.orphans(world.client.items(resource.collection(world.namespace)), world.jobs())
    ]:
        if time.monotonic() > deadline:
            yield from found
            return
        time.sleep(1)
