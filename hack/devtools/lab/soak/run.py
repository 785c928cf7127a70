"""A run: a bounded number of jobs in flight, samples of the operator meanwhile."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from devtools.lab.soak.containers import end_pod
from devtools.lab.soak.mix import SoakJob, succeeding
from devtools.lab.soak.mix import job as job_of
from devtools.lab.soak.progress import RESUME, Done, Progress
from devtools.lab.soak.samples import Sample, alone, sample, window
from devtools.testbed.client import MERGE, Refused
from devtools.testbed.ground import MANY, PODS, Ground
from devtools.testbed.jobs import JobKind, stored
from devtools.testbed.operator import QUEUE, ProbedOperator
from devtools.testbed.usage import use_of
from devtools.testbed.watching import Watching

_WIDTH = 16
"""Threads for the harness's requests: on a busy machine one takes half a second, and a job needs about eight."""
_RIGHTS = (
    "/api/v1/namespaces/{}/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
)
"""Of an MPIJob's launcher."""
_JOB_UID = "dljob.operator/job-uid"
_SAID = 30.0
"""Seconds between two lines about the progress."""


def owned_collections(kind: str) -> tuple[str, ...]:
    """The collections of a job's objects that the harness deletes, as paths with a place for the namespace."""
    return (*MANY, *(_RIGHTS if kind == "MPIJob" else ()))


class Stalled(Exception):
    """No job was finished for too long; the message names some of those in flight."""


class Soak:
    """Runs jobs in ``namespace``. A context manager; ``samples`` and ``progress`` grow meanwhile.

    ``interval`` is the number of seconds between two samples. ``errors`` are those of the harness's own requests, which
    are none of the operator.
    """

    def __init__(
        self, ground: Ground, operator: ProbedOperator, namespace: str, interval: float, say: Callable[[str], None]
    ) -> None:
        self._ground = ground
        self._client = ground.client
        self._operator = operator
        self._namespace = namespace
        self._say = say
        self._began = time.monotonic()
        self._stack = ExitStack()
        self._pool = ThreadPoolExecutor(_WIDTH)
        self._ended_pods: set[str] = set()
        self._stopping = threading.Event()
        self._sampler = threading.Thread(target=self._repeat, name="sampler", daemon=True)
        self._interval = interval
        self._watches: list[Watching] = []
        self.progress = Progress()
        self.samples: list[Sample] = []
        self.alone: list[Sequence[Done]] = []
        """Of the two times when jobs run one by one."""
        self.resting_seconds = 0.0
        """The length of the times without samples."""
        self._rests = False
        self.problems: list[str] = []
        """What the operator's probes reported."""
        self.errors: list[str] = []

    def __enter__(self) -> Soak:
        watches = [(PODS.format(self._namespace), self._pod)]
        watches += [(kind.collection(self._namespace), self._job) for kind in stored(self._ground.kinds)]
        self._stack.callback(self._pool.shutdown, wait=True, cancel_futures=True)
        for path, take in watches:
            self._watches.append(self._stack.enter_context(Watching(self._client, path, take)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._sampler.is_alive():
            self._sampler.join(60)
        self._stack.close()

    def run(self, jobs: int, kinds: Sequence[JobKind], in_flight: int, limit: float) -> None:
        """Run ``jobs`` jobs of these ``kinds``, at most ``in_flight`` at a time. After the first window and at the end
        some run one by one.

        Raises Stalled where nothing ends for ``limit`` seconds.
        """
        self._sampler.start()
        first = min(2 * window(jobs), jobs)
        for turn, numbers in enumerate((range(first), range(first, jobs)), start=1):
            self.run_many((job_of(kinds, number, self._ground.nodes) for number in numbers), in_flight, limit)
            self._sample()
            single = itertools.islice(succeeding(kinds, turn * jobs, self._ground.nodes), alone(jobs))
            with self.resting():
                self.alone.append(self.run_many(single, 1, limit, apart=True))

    def run_many(self, jobs: Iterable[SoakJob], in_flight: int, limit: float, apart: bool = False) -> Sequence[Done]:
        """Run the ``jobs`` to their ends, at most ``in_flight`` at a time; returns those that were run ``apart``."""
        before = len(self.progress.apart)
        for count, job in enumerate(jobs):
            self._wait_below(in_flight, limit)
            self.progress.begin(job, time.monotonic(), apart)
            self._pool.submit(self._guarded, self._create, job)
            if count % 200 == 0:
                self._check_watches()
                self._operator.check()
        while left := len(self.progress.in_flight):
            self._wait_below(left, limit)
        return self.progress.apart[before:]

    @contextmanager
    def resting(self) -> Iterator[None]:
        """No samples meanwhile: a job that runs alone would wait while the use of memory is read."""
        began = time.monotonic()
        self._rests = True
        try:
            yield
        finally:
            self._rests = False
            self.resting_seconds += time.monotonic() - began

    def _wait_below(self, count: int, limit: float) -> None:
        if not self.progress.wait_below(count, limit):
            stuck = self.progress.in_flight
            described = [
                f"{name} ({job.kind.title}, {job.life.value})"
                for name in stuck[:10]
                if (job := self.progress.job_of(name)) is not None
            ]
            raise Stalled(f"no job ended within {limit:.0f} s; in flight are {len(stuck)} jobs: {', '.join(described)}")

    def _check_watches(self) -> None:
        for watch in self._watches:
            if watch.failure is not None:
                raise watch.failure

    # --- what the harness does with jobs (on the pool's threads)

    def _guarded(self, do: Callable[..., None], *arguments: Any) -> None:
        try:
            do(*arguments)
        except Exception as error:
            self.errors.append(f"{do.__name__}: {type(error).__name__}: {error}")

    def _create(self, job: SoakJob) -> None:
        self._client.request("POST", job.kind.collection(self._namespace), job.manifest)

    def _resume(self, job: SoakJob) -> None:
        body = {"spec": {"runPolicy": {"suspend": False}}}
        self._client.request("PATCH", f"{job.kind.collection(self._namespace)}/{job.name}", body, MERGE)

    def _delete(self, job: SoakJob) -> None:
        try:
            path = f"{job.kind.collection(self._namespace)}/{job.name}"
            self._client.request("DELETE", path, {"propagationPolicy": "Background"})
        except Refused as refusal:
            if refusal.status != 404:
                raise

    def _delete_owned(self, kind: str, uid: str) -> None:
        """Help the garbage collector, which deletes only 20 objects a second: what it leaves makes the API server and
        the controllers slower, and would look like the operator's age."""
        query = f"?labelSelector={_JOB_UID.replace('/', '%2F')}%3D{uid}"
        for collection in owned_collections(kind):
            self._client.request("DELETE", collection.format(self._namespace) + query, {"gracePeriodSeconds": 0})

    def _end_pod(self, pod: Mapping[str, Any], exit_code: int) -> None:
        end_pod(self._client, pod, exit_code)

    # --- events (on the threads of the watches)

    def _job(self, event: str, found: dict[str, Any], now: float) -> None:
        name, status = found["metadata"]["name"], found.get("status") or {}
        if event == "DELETED":
            if self.progress.job_gone(name, status, now):
                self._pool.submit(self._guarded, self._delete_owned, found["kind"], found["metadata"]["uid"])
            return
        wanted = self.progress.job_changed(name, status, now)
        job = self.progress.job_of(name)
        if wanted and job is not None:
            self._pool.submit(self._guarded, self._resume if wanted == RESUME else self._delete, job)

    def _pod(self, event: str, found: dict[str, Any], now: float) -> None:
        metadata = found["metadata"]
        if event == "DELETED":
            self._ended_pods.discard(metadata["uid"])
            return
        name = next((one["name"] for one in metadata.get("ownerReferences") or () if one.get("controller")), "")
        job = self.progress.job_of(name)
        if job is None:
            return
        self.progress.pod_appeared(name, now)
        if found["status"].get("phase") != "Running" or metadata["uid"] in self._ended_pods:
            return
        exit_code = job.exit_code(metadata.get("labels") or {})
        if exit_code is not None:
            self._ended_pods.add(metadata["uid"])
            self._pool.submit(self._guarded, self._end_pod, found, exit_code)

    # --- samples

    def _repeat(self) -> None:
        said = time.monotonic()
        while not self._stopping.wait(self._interval):
            self._sample()
            if time.monotonic() - said > _SAID:
                said = time.monotonic()
                done = len(self.progress.done)
                self._say(f"{done} jobs, {done / (said - self._began):.1f} a second")

    def _sample(self) -> None:
        seconds = time.monotonic() - self._began
        if not self._rests:
            use, queue = use_of(self._operator.pid), self._operator.gauge(QUEUE)
            self.samples.append(sample(seconds, len(self.progress.done), use, queue, os.getloadavg()[0]))
        if problem := self._operator.problem():
            self.problems.append(f"after {seconds:.0f} s: {problem}")
