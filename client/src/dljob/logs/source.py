"""Which containers of a job have logs, and how they are read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dljob.api import Request
from dljob.kinds import FIRST_CONTAINER, Resource, kind_of
from dljob.logs.line import moment
from dljob.view import replica_of

WAITING, RUNNING, TERMINATED = "waiting", "running", "terminated"
LONGEST = 1024 * 1024
"""Bytes after which a line is cut into pieces."""


Key = tuple[str, str]
"""Of a container: the pod's uid, and its name."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is wanted of the logs of a job."""

    replicas: tuple[str, ...] = ()
    """Types and replicas, such as ``worker`` and ``master-0``, or names of pods; all by default."""
    containers: tuple[str, ...] = ()
    """By default the one that runs the framework."""
    all_containers: bool = False
    """Init containers too."""
    previous: bool = False
    """Of the instance of each container before the current one."""
    since_seconds: int | None = None
    after: str = ""
    """Only lines that were written after this time, RFC 3339."""
    tail: int | None = None
    """Lines of each container."""
    unsorted: bool = False
    """In the order in which they arrive: the first line does not wait for the beginning of the other logs."""


@dataclass(frozen=True, slots=True)
class Source:
    """A container with its state at some time. The API server gives the log of its newest instance."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    replica: str
    restarts: int
    state: str
    """waiting, running or terminated; one that waits to be restarted is terminated."""
    order: tuple[Any, ...]
    """Sorts the replicas of a job."""

    def has_log(self, choice: Choice) -> bool:
        """Whether the instance that ``choice`` means has begun."""
        return self.restarts > 0 if choice.previous else self.state != WAITING

    @property
    def key(self) -> Key:
        return self.pod_uid, self.container

    def request(self, choice: Choice, *, follow: bool = False, since: str = "", whole: bool = False) -> Request:
        """The request for its log: from ``since`` (RFC 3339) on, ``whole``, or as ``choice`` says."""
        query: dict[str, str | int] = {"container": self.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if choice.previous:
            query["previous"] = "true"
        if since:
            query["sinceTime"] = since
        elif not whole:
            if choice.after:
                query["sinceTime"] = f"{moment(choice.after)[0]}Z"  # of the log's lines; the rest is left out later
            elif choice.since_seconds is not None:
                query["sinceSeconds"] = max(1, choice.since_seconds)
            if choice.tail is not None:
                query["tailLines"] = choice.tail
        return Request(f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}/log", query)


def sources(job: Resource, pods: Iterable[Resource], choice: Choice) -> list[Source]:
    """The containers that ``choice`` means, by replica."""
    kind = kind_of(job)
    main = kind.container_of(job)
    found = []
    for pod in pods:
        type_, index = replica_of(pod, kind, job)
        meta = pod["metadata"]
        ends = [type_.lower(), *([] if index is None else [str(index)])]
        replica = "-".join(ends) if type_ else str(meta["name"])
        if not _is_chosen(choice.replicas, type_, replica, str(meta["name"])):
            continue
        containers = list(_containers(pod))
        wanted = _wanted(pod, [name for name, _ in containers], main, choice)
        for place, (name, status) in enumerate(containers):
            if name not in wanted:
                continue
            shown = replica if len(wanted) == 1 else f"{replica}/{name}"
            found.append(
                Source(
                    namespace=str(meta["namespace"]),
                    pod=str(meta["name"]),
                    pod_uid=str(meta["uid"]),
                    container=name,
                    replica=shown,
                    restarts=int(status.get("restartCount") or 0),
                    state=_state(status),
                    order=(type_, -1 if index is None else index, str(meta["name"]), place),
                )
            )
    return sorted(found, key=lambda one: one.order)


def _state(status: Mapping[str, Any]) -> str:
    now = status.get("state") or {}
    if RUNNING in now:
        return RUNNING
    return TERMINATED if TERMINATED in now or TERMINATED in (status.get("lastState") or {}) else WAITING


def _is_chosen(wanted: tuple[str, ...], type_: str, replica: str, pod: str) -> bool:
    return not wanted or any(one in (pod, replica, type_.lower()) for one in (name.lower() for name in wanted))


def _wanted(pod: Resource, names: Sequence[str], main: str, choice: Choice) -> set[str]:
    if choice.all_containers:
        return set(names)
    if choice.containers:
        return {name for name in names if name in choice.containers}
    own = [str(one.get("name")) for one in (pod.get("spec") or {}).get("containers") or ()]
    return {main} if main != FIRST_CONTAINER and main in own else set(own[:1])


def _containers(pod: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and status of each container, init containers first."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    for field in ("initContainers", "containers"):
        known = {one.get("name"): one for one in status.get(f"{field[:-1]}Statuses") or ()}
        for one in spec.get(field) or ():
            yield str(one.get("name")), known.get(one.get("name")) or {}


def container_names(pods: Iterable[Resource]) -> list[str]:
    """The names of all containers, each once."""
    return list(dict.fromkeys(name for pod in pods for name, _ in _containers(pod)))
