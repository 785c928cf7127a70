"""A small deterministic cluster around the real reconcile: engine cache and queue, kubelet, garbage collector, users.

Everything happens in steps. Each request of the operator and each change by somebody else is a *position*; a
perturbation (``perturbations.py``) is called at each of them and may stop the operator or hide changes from its cache.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import HEARD, REPORTED
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ObservedVersion
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support import batch_controller, native_gangs
from support.builders import NOW
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, Key, Resource, Response, WatchEvent

from dljob_operator.engine.cache import predicates, transforms
from dljob_operator.engine.cache.predicates import Change

EXECUTOR = BoundedExecutor(1)
"""One thread, so that requests have one order."""
PODS, BATCH_JOBS = ("default", "pods"), ("default", "jobs")
WATCHED = {kind.plural: kind.name for kind in OWNED_KINDS.values() if kind.watched}
TRANSFORMS = {kind.plural: transforms.owned(kind.cached or {}) for kind in OWNED_KINDS.values()}
TARGETS = ("chief", "launcher", "master", "scheduler")
MOST_STEPS = 250
ERROR_REQUEUE = 1.0
"""Seconds until a job whose reconcile failed is reconciled again."""

JOBS, OWNED = "jobs", "owned"
BOTH = (JOBS, OWNED)
"""The two parts of the cache that may lag behind separately: each kind has its own watch."""


class Crash(BaseException):
    """The operator ended in the middle of a reconcile."""


class NotAtRest(AssertionError):
    """The world does not become quiet, or the operator writes in a quiet world."""


@dataclass(frozen=True)
class Exit:
    """How the framework's container of a pod ends. In place, where the pod's restart policy says so."""

    code: int
    evicted: bool = False
    """The node ends the pod, and no policy restarts it in place."""


@dataclass(frozen=True)
class Replica:
    type: str
    index: int
    attempt: int
    """The label of the pod."""
    restarts: int = 0
    """In place."""


@dataclass(frozen=True)
class Action:
    """What a user or the cluster does once, when ``when`` holds for the first time after the action before it."""

    when: Callable[[World], bool]
    do: Callable[[World], None]


@dataclass(frozen=True)
class Scenario:
    """A job and what happens to it. ``exits`` gives the end of a running replica, ``None`` while it goes on."""

    name: str
    framework: Framework
    job: Resource
    exits: Callable[[Replica, World], Exit | None]
    actions: Sequence[Action] = ()
    prepare: Callable[[World], None] = lambda world: None
    inherit: Callable[[World], None] = lambda world: None
    """Creates what another operator has left of the job, as soon as that exists."""
    info: Mapping[str, Any] | None = None
    """The cluster info that the engine publishes."""
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    heard: Callable[[World], Mapping[str, Any] | None] = lambda world: None
    """When the engine has heard of the programs, ``None`` where it takes no reports."""

    @property
    def jobs(self) -> Key:
        return "default", self.job["kind"].lower() + "s"


@dataclass(frozen=True)
class Position:
    """A step of a run: a request of the operator, or a change by somebody else."""

    number: int
    what: str
    by_operator: bool


class Perturbation:
    """What goes wrong; this one: nothing. The methods are called at every position."""

    reported_as: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Events, by type and reason, that the operator may write because of it."""
    cache_may_lack_pods: ClassVar[bool] = False
    """Whether the operator may not know of pods that there are."""

    def before_request(self, world: World, position: Position) -> None: ...

    def after_request(self, world: World, position: Position) -> None: ...

    def after_change(self, world: World, position: Position) -> None: ...

    def restart(self, world: World) -> None:
        """Begin anew after a crash; the new operator lists all objects."""
        world.restart()


@dataclass
class Cache:
    """What the engine's informers know: the watch events of each part up to an index."""

    seen: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BOTH, 0))
    objects: dict[tuple[Key, str], Resource] = field(default_factory=dict)

    def copy(self) -> Cache:
        return Cache(dict(self.seen), dict(self.objects))


class World:
    """One scenario at one time."""

    def __init__(self, scenario: Scenario, perturbation: Perturbation | None = None) -> None:
        self.scenario = scenario
        self.perturbation = perturbation or Perturbation()
        self.now = NOW
        self.server = FakeApiServer()
        self.bind()
        self.positions: list[Position] = []
        self.cache = Cache()
        self.dirty = False
        self.due: datetime | None = None
        self.done_actions = 0
        self.own_writes: set[ObservedVersion] = set()
        """What the operator has reported to its queue: as in the engine, the events of these trigger nothing."""
        self.lag: dict[str, bool] = {}
        """Parts of the cache that get one event after each reconcile until they have caught up."""
        self.hidden_for = 0
        """Further changes by others after which the cache gets the last states."""
        self.crashed_at: int | None = None
        scenario.prepare(self)
        self.create_job()
        scenario.inherit(self)

    def bind(self) -> None:
        self.server.now = lambda: self.now
        self.client = _Client(self)

    # --- running

    def run(self) -> World:
        """Go on until nothing happens any more. Raises :class:`NotAtRest`."""
        for _ in range(MOST_STEPS):
            if not self.step():
                self._check_rest()
                return self
            self._check_ranks()
            if not self.perturbation.cache_may_lack_pods:
                self._check_quota()
        raise NotAtRest(f"no rest after {MOST_STEPS} steps: {[p.what for p in self.positions[-12:]]}")

    def step(self) -> bool:
        """The next thing that happens; whether there was one."""
        if self.hidden_for:
            self.hidden_for -= 1
            if self._others_act():
                return True
            self.hidden_for = 0
        if not self.lag:
            self._catch_up()
        if self.dirty or (self.due is not None and self.due <= self.now):
            self._reconcile()
            return True
        if self.lag:
            self._advance_lag()
            return True
        if self._others_act():
            return True
        if self.due is not None:
            self.now = self.due
            return True
        return False

    def _others_act(self) -> bool:
        before = len(self.server.watch_events)
        acted = (
            self._kubelet_starts_and_stops()
            or batch_controller.work(self.server)
            or self._user_acts()
            or self.server.collect_garbage()
            or self.server.release_groups()
            or self._containers_exit()
        )
        if not acted:
            return False
        events = self.server.watch_events[before:]
        what = ", ".join(f"{e.type} {e.key[1]}/{e.object['metadata']['name']}" for e in events)
        position = Position(len(self.positions), what, by_operator=False)
        self.positions.append(position)
        self.perturbation.after_change(self, position)
        return True

    # --- the engine

    def part_of(self, event: WatchEvent) -> str:
        return JOBS if event.key == self.scenario.jobs else OWNED

    def _catch_up(self) -> None:
        """Take all outstanding events."""
        start = min(self.cache.seen.values())
        for index, event in enumerate(self.server.watch_events[start:], start):
            part = self.part_of(event)
            if index >= self.cache.seen[part] and self._take(event):
                self.dirty = True
        self.cache.seen = dict.fromkeys(BOTH, len(self.server.watch_events))

    def _advance_lag(self) -> None:
        """One event of each part that lags, all of the others."""
        events = self.server.watch_events
        for part in BOTH:
            while self.cache.seen[part] < len(events):
                event = events[self.cache.seen[part]]
                self.cache.seen[part] += 1
                if self.part_of(event) != part:
                    continue
                if self._take(event):
                    self.dirty = True
                if part in self.lag:
                    break
            if self.cache.seen[part] >= len(events):
                self.lag.pop(part, None)

    def _take(self, event: WatchEvent) -> bool:
        """Whether the event triggers a reconcile."""
        where = (event.key, event.object["metadata"]["name"])
        is_job = event.key == self.scenario.jobs
        if not is_job and event.key[1] not in WATCHED:
            return False
        transform = transforms.custom if is_job else TRANSFORMS[event.key[1]]
        new = None if event.type == "DELETED" else transform(event.object)
        old = self.cache.objects.pop(where, None)
        if new is not None:
            self.cache.objects[where] = new
        if old is None and new is None:
            return False
        change = Change(old, new)
        if (predicates.uid_of(event.object), None if new is None else event.object["metadata"]["resourceVersion"]) in (
            self.own_writes
        ):
            return False
        return predicates.custom_predicate(change) if is_job else predicates.owned_predicate(change)

    def restart(self, seen: Mapping[str, int] | None = None) -> None:
        """Begin with an empty queue and a cache of what was there after ``seen`` events, by default of now."""
        events = self.server.watch_events
        self.cache = Cache(dict(seen or dict.fromkeys(BOTH, len(events))))
        for part in BOTH:
            for event in events[: self.cache.seen[part]]:
                if self.part_of(event) == part:
                    self._take(event)
        self.lag = {part: True for part in BOTH if self.cache.seen[part] < len(events)}
        self.dirty, self.due = True, None
        self.own_writes = set()
        self.client = _Client(self)

    def fail_next_request(self, response: Response, takes_effect: bool) -> None:
        self.server.faults = [Fault(response, takes_effect=takes_effect)]

    def _reconcile(self) -> None:
        self.dirty, self.due = False, None
        name = self.scenario.job["metadata"]["name"]
        job = self.cache.objects.get((self.scenario.jobs, name))
        if job is not None and not job["metadata"].get("deletionTimestamp"):
            try:
                outcome = reconcile(self._context(job["metadata"]["uid"]), job, self.scenario.framework)
            except ApiError:
                self.due = self.now + timedelta(seconds=ERROR_REQUEUE)
            except Crash:
                self.perturbation.restart(self)
                return
            else:
                self.own_writes.update(outcome.wrote)
                if outcome.requeue_after is not None:
                    self.due = self.now + timedelta(seconds=outcome.requeue_after)
        if self.lag:
            self._advance_lag()

    def _context(self, uid: str) -> Context:
        owned: dict[str, list[Resource]] = {self._kind_of(plural): [] for plural in WATCHED}
        for (key, _), resource in self.cache.objects.items():
            if key[1] in WATCHED and predicates.owner_uid(resource) in (uid, *self._batch_jobs(uid)):
                owned[self._kind_of(key[1])].append(resource)
        if heard := self.scenario.heard(self):
            owned[REPORTED] = [{HEARD: heard}]
        reader = Reader(self.client, {uid: owned}, self.scenario.info)
        return Context(self.client, reader, self.scenario.settings, clock=lambda: self.now)

    def _kind_of(self, plural: str) -> str:
        """The registry's name of a kind; of PodGroups, which several API groups have, that of the operator's scheduler."""
        gang = self.scenario.settings.gang
        return gang.owned_kind if gang and plural == native_gangs.PLURAL else WATCHED[plural]

    def _batch_jobs(self, uid: str) -> list[str]:
        """The UIDs of the batch Jobs that the cache has of the job: as the engine, it finds their pods through them."""
        found = [resource for (key, _), resource in self.cache.objects.items() if key == BATCH_JOBS]
        return [predicates.uid_of(one) for one in found if predicates.owner_uid(one) == uid]

    # --- the cluster

    def _kubelet_starts_and_stops(self) -> bool:
        for pod in list(self.pods.values()):
            name = pod["metadata"]["name"]
            if pod["metadata"].get("deletionTimestamp"):
                self.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
                return True
            is_new = pod["status"]["phase"] == "Pending" and "nodeName" not in pod["spec"]
            if is_new and native_gangs.may_start(self.server.objects, pod):
                self._set_pod(pod, spec={**pod["spec"], "nodeName": "node"})
                return True
        for pod in list(self.pods.values()):
            if pod["status"]["phase"] == "Pending" and "nodeName" in pod["spec"]:
                self._set_container(pod, "Running", {"running": {"startedAt": self.time}})
                return True
        return False

    def _containers_exit(self) -> bool:
        """The success target last, so that what the status says of the others does not depend on the order."""
        for pod in sorted(self.pods.values(), key=lambda pod: (_rank(pod)[1] in TARGETS, _rank(pod))):
            labels = pod["metadata"]["labels"]
            if pod["status"]["phase"] != "Running" or "dljob.operator/attempt" not in labels:
                continue
            replica = Replica(
                labels["dljob.operator/replica-type"],
                int(labels["dljob.operator/replica-index"]),
                int(labels["dljob.operator/attempt"]),
                pod["status"]["containerStatuses"][0]["restartCount"],
            )
            end = self.scenario.exits(replica, self)
            if end is not None:
                self._end(pod, end)
                return True
        return False

    def _end(self, pod: Resource, end: Exit) -> None:
        if end.evicted:
            self._evict(pod)
            return
        reason = "Error" if end.code else "Completed"
        ended = {"terminated": {"exitCode": end.code, "reason": reason, "finishedAt": self.time}}
        policy = pod["spec"].get("restartPolicy")
        if policy == "Always" or (policy == "OnFailure" and end.code):
            self._set_container(pod, "Running", {"running": {"startedAt": self.time}}, ended)
        else:
            self._set_container(pod, "Failed" if end.code else "Succeeded", ended)

    def _set_container(self, pod: Resource, phase: str, state: Resource, last: Resource | None = None) -> None:
        before = (pod["status"].get("containerStatuses") or [{"restartCount": 0}])[0]
        status = {
            "name": self.scenario.framework.container_of([one["name"] for one in pod["spec"]["containers"]]),
            "state": state,
            "restartCount": before["restartCount"] + bool(last),
        }
        if last or "lastState" in before:
            status["lastState"] = last or before["lastState"]
        ready = {"type": "Ready", "status": str("running" in state)}
        self._set_pod(pod, status={"phase": phase, "containerStatuses": [status], "conditions": [ready]})

    def _set_pod(self, pod: Resource, **fields: Any) -> None:
        self.server.store("MODIFIED", PODS, {**pod, **fields})

    def _user_acts(self) -> bool:
        if self.done_actions == len(self.scenario.actions):
            return False
        action = self.scenario.actions[self.done_actions]
        if not action.when(self):
            return False
        self.done_actions += 1
        action.do(self)
        return True

    # --- what users do

    def create_job(self) -> None:
        self.server.request("POST", self._jobs_path, copy.deepcopy(self.scenario.job))

    def delete_job(self, policy: str = "Background") -> None:
        path = f"{self._jobs_path}/{self.scenario.job['metadata']['name']}"
        self.server.request("DELETE", path, {"propagationPolicy": policy})

    def edit_job(self, change: Callable[[Any], object]) -> None:
        job = copy.deepcopy(self.job)
        assert job is not None
        change(job["spec"])
        self.server.request("PUT", f"{self._jobs_path}/{job['metadata']['name']}", job)

    def write_status(self, status: Resource) -> None:
        """Write the status as another operator does."""
        job = self.job
        assert job is not None
        self.server.request("PUT", f"{self._jobs_path}/{job['metadata']['name']}/status", {**job, "status": status})

    def delete_pod(self, type_: str, index: int) -> None:
        name = self.pod(type_, index)["metadata"]["name"]
        self.server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")

    def evict(self, type_: str, index: int) -> None:
        self._evict(self.pod(type_, index))

    def _evict(self, pod: Resource) -> None:
        disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status = {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "conditions": [disrupted]}
        self._set_pod(pod, status={**pod["status"], **status})

    # --- inspection

    @property
    def time(self) -> str:
        return clock.stamp(self.now)

    @property
    def _jobs_path(self) -> str:
        return f"/apis/{self.scenario.job['apiVersion']}/namespaces/default/{self.scenario.jobs[1]}"

    @property
    def job(self) -> Resource | None:
        return self.server.objects.get(self.scenario.jobs, {}).get(self.scenario.job["metadata"]["name"])

    @property
    def status(self) -> Mapping[str, Any]:
        return (self.job or {}).get("status") or {}

    @property
    def pods(self) -> dict[str, Resource]:
        return self.server.objects.get(PODS, {})

    def pod(self, type_: str, index: int) -> Resource:
        """The replica's newest pod."""
        wanted = (type_, str(index))
        return [pod for pod in self.pods.values() if _rank(pod)[1:] == wanted][-1]

    @property
    def all_actions_done(self) -> bool:
        return self.done_actions == len(self.scenario.actions)

    @property
    def operator_events(self) -> list[tuple[str, str]]:
        """Type and reason of each Event."""
        return [(x["type"], x["reason"]) for x in self.server.objects.get(("default", "events"), {}).values()]

    # --- invariants

    def _check_ranks(self) -> None:
        live = Counter(_rank(pod) for pod in self.pods.values() if pod["status"]["phase"] in ("Pending", "Running"))
        double = [rank for rank, count in live.items() if count > 1]
        assert not double, f"two live pods of {double} after {self.positions[-1].what}: {sorted(self.pods)}"

    def _check_quota(self) -> None:
        """Kueue gives the quota of a job away whose status says that it is suspended, as its present spec says."""
        job = self.job
        if job is None or not job["spec"].get("runPolicy", {}).get("suspend"):
            return
        conditions = {one["type"]: one["status"] for one in self.status.get("conditions", ())}
        is_recorded = self.status.get("observedGeneration") == job["metadata"]["generation"]
        # the Job controller deletes those of a batch Job that is deleted
        own = {name: pod for name, pod in self.pods.items() if predicates.owner_uid(pod) == job["metadata"]["uid"]}
        live = [name for name, pod in own.items() if not pod["metadata"].get("deletionTimestamp")]
        if conditions.get("Suspended") == "True" and is_recorded:
            assert not live, f"suspended, and these have no deletionTimestamp: {live}"

    def _check_rest(self) -> None:
        job = self.job
        owners = {job["metadata"]["uid"]} if job else set()
        owners |= {one["metadata"]["uid"] for one in self.server.objects.get(BATCH_JOBS, {}).values()}
        orphans = [name for name, pod in self.pods.items() if predicates.owner_uid(pod) not in owners]
        assert not orphans, f"pods without their job: {orphans}"
        written = len(self.server.watch_events)
        self.restart()
        self._reconcile()
        if len(self.server.watch_events) != written:
            raise NotAtRest(f"writes at rest: {[str(call) for call in self.server.calls[-4:]]}")

    def copy(self) -> World:
        """The same state, to go on in another way. The perturbation is shared."""
        twin = copy.copy(self)
        twin.server, twin.cache = self.server.copy(), self.cache.copy()
        twin.positions, twin.lag = list(self.positions), dict(self.lag)
        twin.own_writes = set(self.own_writes)
        twin.bind()
        return twin


class _Client(FakeRestClient):
    """The operator's connection. After a crash nothing passes it any more."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server, EXECUTOR)
        self._world = world
        self._is_dead = False

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        world = self._world
        if self._is_dead:
            raise Crash
        what = f"{method} {path.rpartition('/namespaces/default/')[2]}"
        if method == "POST":
            what += f"/{body['metadata'].get('name') or body['reason']}"
        position = Position(len(world.positions), what, by_operator=True)
        world.positions.append(position)
        try:
            world.perturbation.before_request(world, position)
            try:
                return super().request(method, path, body, query, content_type or "application/json")
            finally:
                world.perturbation.after_request(world, position)
        except Crash:
            self._is_dead = True
            world.crashed_at = position.number
            raise


def _rank(pod: Resource) -> tuple[str, str, str]:
    labels = pod["metadata"]["labels"]
    type_, index = (
        labels.get(f"dljob.operator/{name}") or labels[f"training.kubeflow.org/{name}"]
        for name in ("replica-type", "replica-index")
    )
    return predicates.owner_uid(pod) or "", type_, index
