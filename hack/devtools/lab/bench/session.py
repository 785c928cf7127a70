"""One start of one peer: creates the jobs, watches their pods and statuses, and measures."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any

from devtools.lab.bench import plan, workloads
from devtools.lab.bench.measures import Sample
from devtools.lab.bench.observer import Observer, Seen
from devtools.lab.bench.peers import Peer, Running
from devtools.lab.bench.workloads import SMALLEST, Sizes
from devtools.testbed import account, usage
from devtools.testbed.client import JSON, MERGE, Client, Refused
from devtools.testbed.cluster.kwok import node_name
from devtools.testbed.ground import PODS, Ground, clear, until
from devtools.testbed.jobs import kind_of

_WIDTH = 8
_ELECTION = (
    "--leader-elect", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
)  # fmt: skip
"""This operator's defaults, for every peer."""
_POLL = 0.02
_GONE = 300.0
"""Seconds for the end of a workload's objects."""


@dataclass(frozen=True)
class BenchContext:
    """What all sessions share."""

    ground: Ground
    sizes: Sizes
    say: Callable[[str], None]
    deadline: float = float("inf")
    throwaway: bool = False
    """The cluster is deleted afterwards, so objects need not be deleted one by one."""

    def timeout(self, peer: Peer) -> float:
        """Seconds that a workload may take before it is stopped."""
        return max(5.0, min(peer.limits.timeout, self.deadline - time.monotonic()))


class Meter:
    """What a peer uses from now on, as the API server and the kernel count it."""

    def __init__(self, client: Client, pid: int) -> None:
        self._client, self._pid = client, pid
        self._reads, self._writes = account.requests(client)
        self._cpu, self._began = usage.cpu_seconds(pid), time.monotonic()
        self._stopped: float | None = None

    def stop(self) -> None:
        """The time ends here; requests and CPU time count until :meth:`used`."""
        self._stopped = time.monotonic()

    def used(self) -> dict[str, Any]:
        """Measures of a sample; the memory is that of now."""
        seconds = (self._stopped or time.monotonic()) - self._began
        cpu = usage.cpu_seconds(self._pid) - self._cpu
        reads, writes = account.requests(self._client)
        return {
            "seconds": seconds, "cpu": cpu, "reads": reads - self._reads, "writes": writes - self._writes,
            "peak_bytes": usage.use_of(self._pid).pss,
        }  # fmt: skip


class Session:
    """Runs ``planned`` and yields each sample as soon as it is complete."""

    def __init__(self, context: BenchContext, planned: plan.Planned) -> None:
        self._context = context
        self._client = context.ground.client
        self._peer = planned.peer
        self._planned = planned
        self._namespace = f"bench-{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count()
        self._running: Running | None = None

    def run(self) -> Iterator[Sample]:
        with self._in_namespace() as observer:
            self._start()
            try:
                self._warm_up(self._process, observer)
                for workload in self._planned.workloads:
                    yield from self._one(workload, observer)
                    self._process.check()
                    if workload in plan.LIGHT:
                        self._clear()
            finally:
                self._process.__exit__()

    # --- the peer and its namespace

    @property
    def _process(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def _pid(self) -> int:
        return self._process.pid

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds whose jobs this session creates."""
        planned = self._planned.workloads
        others = self._peer.kinds if plan.KINDS in planned else ()
        large = (workloads.LARGE_KIND,) if {plan.LONG, *plan.LARGE} & set(planned) else ()
        # the watch of MPIJobs sees those of every version
        return tuple(kind for kind in dict.fromkeys(("MXJob", *others, *large)) if kind != workloads.AT_STARTUP)

    def _start(self, wait: bool = True, arguments: Sequence[str] = (), ready: str = "") -> None:
        ground = self._context.ground
        running = Running(self._peer, ground.kubeconfig, ground.folder, arguments, ready).__enter__()
        self._running = running
        if wait:
            try:
                running.wait_ready()
            except BaseException:
                running.__exit__()
                raise

    @contextmanager
    def _in_namespace(self) -> Iterator[Observer]:
        self._client.request("POST", "/api/v1/namespaces", {"metadata": {"name": self._namespace}})
        is_interrupted = False
        try:
            with Observer(self._client, self._namespace, self._kinds) as observer:
                yield observer
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            is_interrupted = True
            raise
        finally:
            if not self._context.throwaway:
                self._delete_namespace(is_interrupted)

    def _delete_namespace(self, is_interrupted: bool) -> None:
        """Delete the namespace, and first what is in it. After an interruption nothing is measured: that is left to
        Kubernetes, and an error must not take the interruption's place."""
        path = f"/api/v1/namespaces/{self._namespace}"
        if is_interrupted:
            self._request_deletion(path)
            return
        try:
            self._clear()
        except (KeyboardInterrupt, SystemExit):
            self._request_deletion(path)
            raise
        self._client.request("DELETE", path)
        if self._context.sizes.waits_for_end:
            until(lambda: not self._client.exists(path), 120, f"the namespace {self._namespace}")

    def _request_deletion(self, path: str) -> None:
        with contextlib.suppress(Refused, OSError, HTTPException):
            self._client.request("DELETE", path)

    def _clear(self) -> None:
        """The garbage collector would be busy with EndpointSlices while the next workload is measured."""
        clear(self._context.ground, self._namespace, _GONE)

    def _prefix(self) -> str:
        return f"b{next(self._numbers)}"

    def _warm_up(self, running: Running, observer: Observer) -> None:
        """Create one job that is not measured, since the first job after a start also opens connections."""
        (job,) = workloads.jobs(self._prefix(), 1, self._context.ground.nodes)
        self._submit([job], observer)
        name = job["metadata"]["name"]
        if not observer.wait(lambda: len(observer.seen(name).pods) == SMALLEST, 120):
            running.check()
            raise TimeoutError(
                f"{self._peer.name} did not create its first job's pods within 120 s:\n{running.log_end()}"
            )
        time.sleep(self._context.sizes.settle_seconds)

    # --- the workloads

    def _one(self, workload: str, observer: Observer) -> Iterator[Sample]:
        sizes, peer = self._context.sizes, self._peer
        match workload:
            case plan.IDLE:
                self._rest()
                yield self._idle()
            case plan.ONE | plan.ALONE:
                yield self._singles(workload, observer, plan.count(sizes.singles, peer.limits.singles))
            case plan.MANY:
                yield self._bulk(workload, observer, plan.count(sizes.many, peer.limits.jobs), SMALLEST)
            case plan.KINDS:
                for kind in peer.kinds:
                    yield self._of_kind(kind, observer)
                    self._clear()
            case plan.REPLICAS:
                for size in plan.replica_sizes(peer, sizes):
                    yield self._bulk(workloads.of_replicas(size), observer, 1, size)
                    self._clear()
            case plan.MOST:
                yield self._bulk(workload, observer, plan.count(sizes.most, peer.limits.jobs), SMALLEST)
            case plan.CHANGE:
                yield self._changes(observer)
            case plan.RESTART:
                self._process.__exit__()
                yield self._reaction(workload, observer, lambda: self._start(wait=False))
            case plan.FAILOVER:
                yield from self._failovers(observer)
            case plan.LONG:
                yield self._long_specs(observer)
            case plan.FINISHED:
                yield from self._after_finish(observer)
            case plan.GROWTH:
                yield from self._growth(observer)
            case plan.BESIDE:
                yield from self._beside(observer, plan.count(sizes.beside, peer.limits.singles))
            case plan.HUGE:
                large = [workloads.large_job(self._prefix(), sizes.large)]
                yield self._at_once(workloads.of_replicas(sizes.large), large, sizes.large, observer)
                self._clear()

    def _beside(self, observer: Observer, count: int) -> Iterator[Sample]:
        """Jobs one after the other, without a large job and while one is being created."""
        yield self._singles(plan.BEFORE, observer, count)
        size = self._context.sizes.large
        large = workloads.large_job(self._prefix(), size)
        seen = observer.seen(large["metadata"]["name"])
        self._submit([large], observer)
        observer.wait(lambda: bool(seen.pods), self._context.timeout(self._peer))
        began_beside = 0

        def is_incomplete() -> bool:
            nonlocal began_beside
            pods = len(seen.pods)
            if pods < size:
                began_beside = pods
            return pods < size

        sample = self._singles(plan.BESIDE, observer, count, is_incomplete)
        # the last small job began while the large one had so many pods
        yield replace(sample, extra={"pods_of_the_large_job": began_beside, "large": size})
        self._clear()

    def _growth(self, observer: Observer) -> Iterator[Sample]:
        """An increasing number of running jobs; after each step an idle phase, and some jobs one by one."""
        present = len(self._present())
        for size in self._context.sizes.growth:
            yield self._bulk(plan.GROWTH, observer, size - present, SMALLEST)
            idle = self._idle()
            yield replace(idle, extra={**idle.extra, **account.server_sizes(self._client)})
            yield self._singles(plan.ONE, observer, self._context.sizes.singles)
            present = size + self._context.sizes.singles

    def _idle(self) -> Sample:
        meter = self._meter()
        time.sleep(self._context.sizes.idle_seconds)
        used = meter.used()
        return self._sample(plan.IDLE, 0, 0, **used, wall=0.0, extra={"core_share": used["cpu"] / used["seconds"]})

    def _singles(
        self, workload: str, observer: Observer, count: int, goes_on: Callable[[], bool] = lambda: True
    ) -> Sample:
        """Jobs one after the other: each is created when the previous one is Running, as long as ``goes_on``."""
        made: list[dict[str, Any]] = []
        with self._measured(workload, made, SMALLEST, observer) as finish:
            for job in workloads.jobs(self._prefix(), count, self._context.ground.nodes):
                if not goes_on():
                    break
                made.append(job)
                self._submit([job], observer)
                if not self._await([job], SMALLEST, observer):
                    break
        return finish()

    def _bulk(self, workload: str, observer: Observer, count: int, pods: int) -> Sample:
        """All jobs at once: as fast as the API server accepts them, eight at a time."""
        made = list(workloads.jobs(self._prefix(), count, self._context.ground.nodes, pods))
        return self._at_once(workload, made, pods, observer)

    def _at_once(self, workload: str, made: Sequence[dict[str, Any]], pods: int, observer: Observer) -> Sample:
        with self._measured(workload, made, pods, observer) as finish:
            self._submit(made, observer)
            self._await(made, pods, observer)
        return finish()

    def _of_kind(self, kind: str, observer: Observer) -> Sample:
        """Jobs of another kind at once. The first one, which is not measured, opens what the kind needs."""
        nodes = self._context.ground.nodes
        made, pods = workloads.jobs_of(kind, self._prefix(), 1, nodes)
        self._submit(made, observer)
        self._await(made, pods, observer)
        made, pods = workloads.jobs_of(kind, self._prefix(), self._context.sizes.of_each_kind, nodes)
        return self._at_once(workloads.of_kind(kind, len(made)), made, pods, observer)

    def _changes(self, observer: Observer) -> Sample:
        """One of many jobs gets an additional worker: the time from the patch's acceptance to the new worker's pod."""
        names = sorted(self._present())[: self._context.sizes.changes]
        workers = SMALLEST - 2
        delays: list[float | None] = []
        meter = self._meter()
        for name in names:
            path = f"{workloads.collection('MXJob', self._namespace)}/{name}"
            self._client.request("PATCH", path, workloads.one_more_worker(workers), MERGE)
            patched = time.monotonic()
            new, seen = f"{name}-worker-{workers}", observer.seen(name)
            came = observer.wait(lambda new=new, seen=seen: new in seen.names, 30)  # type: ignore[misc]
            delays.append(time.monotonic() - patched if came else None)
        time.sleep(self._context.sizes.settle_seconds)
        wall = None if None in delays else sum(filter(None, delays))
        return self._sample(plan.CHANGE, len(names), len(names), **meter.used(), all_pods=tuple(delays), wall=wall)

    def _reaction(self, workload: str, observer: Observer, begin: Callable[[], object]) -> Sample:
        """A new job after ``begin``, among those that exist. Times are from then; CPU time is until its pods exist."""
        present = len(self._present())
        (job,) = workloads.jobs(self._prefix(), 1, self._context.ground.nodes)
        name = job["metadata"]["name"]
        begin()
        began, meter, before = time.monotonic(), self._meter(), usage.cpu_seconds(self._pid)
        self._submit([job], observer)
        came = observer.wait(lambda: len(observer.seen(name).pods) >= SMALLEST, self._context.timeout(self._peer))
        wall = time.monotonic() - began if came else None
        cpu = usage.cpu_seconds(self._pid) - before
        self._process.wait_ready()
        self._quiet()
        extra = {"present": present, "cpu_until_quiet": usage.cpu_seconds(self._pid) - before}
        used = {**meter.used(), "cpu": cpu, "seconds": time.monotonic() - began}
        return self._sample(workload, 1, SMALLEST, **used, all_pods=(wall,), wall=wall, extra=extra)

    def _failovers(self, observer: Observer) -> Iterator[Sample]:
        """Leaders are killed, or stop and release the Lease, and each time a new job is created at once."""
        arguments = (*_ELECTION, f"--leader-election-namespace={self._namespace}")
        self._process.__exit__()
        self._start(arguments=arguments)
        for workload in (plan.FAILOVER, plan.HANDOVER) * self._context.sizes.failovers:
            leader = self._process
            try:
                self._start(arguments=arguments, ready=self._peer.standby)
                self._until_at_rest()
                end = leader.kill if workload == plan.FAILOVER else functools.partial(self._release, leader)
                yield self._reaction(workload, observer, end)
            finally:
                leader.__exit__()

    def _release(self, leader: Running) -> None:
        """Stop the leader, and wait until the Lease is no longer its own."""
        held = self._holders()
        os.kill(leader.pid, signal.SIGTERM)
        deadline = time.monotonic() + self._context.timeout(self._peer)
        while self._holders() == held and time.monotonic() < deadline:
            time.sleep(_POLL)

    def _holders(self) -> list[str]:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        return [one["spec"].get("holderIdentity", "") for one in self._client.request("GET", leases)["items"]]

    def _until_at_rest(self) -> None:
        """Wait until the process uses less than a twentieth of a core, as after its start."""
        pause = self._context.sizes.settle_seconds
        for _ in range(10):
            before = usage.cpu_seconds(self._pid)
            time.sleep(pause)
            if usage.cpu_seconds(self._pid) - before < pause / 20:
                return

    def _long_specs(self, observer: Observer) -> Sample:
        """What jobs with long specs add to the memory of a peer that has no more work."""
        sizes, nodes = self._context.sizes, self._context.ground.nodes
        prefix = self._prefix()
        if plan.IDLE not in self._planned.workloads:
            self._rest()
        made = [
            workloads.long_job(f"{prefix}-{number:04d}", sizes.long_bytes, node_name(number % nodes))
            for number in range(sizes.long_jobs)
        ]
        before = usage.use_of(self._pid).pss
        sample = self._at_once(plan.LONG, made, 1, observer)
        self._rest()
        after = usage.use_of(self._pid).pss
        spec_bytes = sum(len(json.dumps(job["spec"], separators=(",", ":"))) for job in made)
        return replace(sample, extra={"before": before, "after": after, "spec_bytes": spec_bytes})

    def _rest(self) -> None:
        """Wait until the peer has freed what it needs no longer."""
        time.sleep(min(self._peer.rests_after, self._context.sizes.longest_rest))

    def _after_finish(self, observer: Observer) -> Iterator[Sample]:
        """Let every scheduler pod succeed; when all jobs have finished, create new ones one by one."""
        names = self._present()
        pods = PODS.format(self._namespace)
        succeeded = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "name": workloads.CONTAINER}
        terminated = {**succeeded, "image": "", "imageID": "", "ready": False, "restartCount": 0}
        status = {"status": {"phase": "Succeeded", "containerStatuses": [terminated]}}
        patches = [("PATCH", f"{pods}/{name}-scheduler-0/status", status, MERGE) for name in names]
        meter = self._meter()
        self._client.each(patches, _WIDTH)
        over = observer.wait(_all([observer.seen(name) for name in names], _is_over), self._context.timeout(self._peer))
        meter.stop()
        self._quiet()
        note = "" if over else "not all jobs had finished"
        used = meter.used()
        yield self._sample("finishing", len(names), 0, **used, wall=used["seconds"] if over else None, note=note)
        if over:
            yield self._singles(plan.FINISHED, observer, self._context.sizes.singles)

    # --- how they are measured

    def _submit(self, made: Sequence[dict[str, Any]], observer: Observer) -> None:
        def post(job: dict[str, Any]) -> None:
            kind = kind_of(job["apiVersion"], job["kind"])
            self._client.request("POST", kind.collection(self._namespace), job, JSON)
            observer.accepted(job["metadata"]["name"], time.monotonic())

        if len(made) == 1:
            post(made[0])
            return
        with ThreadPoolExecutor(_WIDTH) as pool:
            list(pool.map(post, made))

    def _await(self, made: Sequence[dict[str, Any]], pods: int, observer: Observer) -> bool:
        seen = [observer.seen(job["metadata"]["name"]) for job in made]

        def there(one: Seen) -> bool:
            return len(one.pods) >= pods and (one.running is not None or not self._peer.reports_running)

        return observer.wait(_all(seen, there), self._context.timeout(self._peer))

    @contextmanager
    def _measured(
        self, workload: str, made: Sequence[dict[str, Any]], pods: int, observer: Observer
    ) -> Iterator[Callable[[], Sample]]:
        reconciles = self._process.reconciles()
        meter = self._meter()
        result: list[Sample] = []
        with usage.PeakMemory(self._pid) as peak:
            yield lambda: replace(result[0], peak_bytes=peak.bytes)
            meter.stop()
            self._quiet()
        names = [job["metadata"]["name"] for job in made]
        result.append(
            self._sample(
                workload, len(made), len(made) * pods, **meter.used(), **_times(names, pods, observer),
                pods_made=observer.made(names), reconciles=self._process.reconciles() - reconciles,
            )
        )  # fmt: skip

    def _meter(self) -> Meter:
        return Meter(self._client, self._pid)

    def _quiet(self) -> None:
        """Wait until the peer has made no write for a while."""
        before = account.requests(self._client)[1]
        for _ in range(10):
            time.sleep(self._context.sizes.settle_seconds / 2)
            now = account.requests(self._client)[1]
            if now == before:
                return
            before = now

    def _present(self) -> list[str]:
        listed = self._client.request("GET", f"{workloads.collection('MXJob', self._namespace)}?limit=5000")["items"]
        return [job["metadata"]["name"] for job in listed]

    def _sample(self, workload: str, jobs: int, pods: int, **measures: Any) -> Sample:
        sample = Sample(workload, self._peer.name, self._planned.round, jobs, pods, **measures)
        took = "cut off" if sample.wall is None else f"{sample.wall:.2f} s"
        self._context.say(f"  {self._peer.name:<26} {workload:<16} {took}")
        return sample


def _all(seen: Sequence[Seen], wanted: Callable[[Seen], bool]) -> Callable[[], bool]:
    """Whether all are as ``wanted``. Called for many events: it skips those that already were, and stops at the first
    that is not."""
    waiting = list(seen)

    def asked() -> bool:
        while waiting and wanted(waiting[-1]):
            waiting.pop()
        return not waiting

    return asked


def _is_over(one: Seen) -> bool:
    return one.finished is not None


def _times(names: Sequence[str], pods: int, observer: Observer) -> dict[str, Any]:
    """The times of each job and of all jobs together; None for an event that never came."""
    seen = [observer.seen(name) for name in names]
    starts = [_start(one) for one in seen]
    accepted = [start for start in starts if start is not None]
    ends = [max(one.pods) if len(one.pods) >= pods else None for one in seen]
    runs = [one.running for one in seen]
    return {
        "first_pod": tuple(_after(start, min(one.pods, default=None)) for start, one in zip(starts, seen, strict=True)),
        "all_pods": tuple(_after(start, end) for start, end in zip(starts, ends, strict=True)),
        "running": tuple(_after(start, end) for start, end in zip(starts, runs, strict=True)),
        "wall": _last(accepted, ends),
        "wall_running": _last(accepted, runs),
    }


_LEAST = 0.001
"""Seconds: the responses and the two watches are read by threads of their own, so closer times have no order."""


def _start(one: Seen) -> float | None:
    """When the job existed: on a busy machine its first watch event may be read before the response to its POST."""
    return min((time for time in (one.accepted, one.appeared) if time is not None), default=None)


def _after(start: float | None, end: float | None) -> float | None:
    """The seconds in between."""
    return None if start is None or end is None else max(_LEAST, end - start)


def _last(starts: Sequence[float], ends: Sequence[float | None]) -> float | None:
    whole = [end for end in ends if end is not None]
    return max(_LEAST, max(whole) - min(starts)) if starts and len(whole) == len(ends) else None
