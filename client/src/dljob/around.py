"""Reads the pods of a job and the Events of its namespace once, for all that show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dljob import decoding
from dljob.api import Api, pages
from dljob.errors import ApiError, sentence
from dljob.events import event_time
from dljob.kinds import Resource
from dljob.view import JOB_NAME_LABEL, JOB_UID_LABEL, belongs

_NO_LOGIN = 401


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a job."""

    job: Resource
    pods: tuple[Resource, ...] = ()
    """Of the job, its launcher included."""
    namespace_events: tuple[Resource, ...] = ()
    """The Events of the namespace."""
    refused: Mapping[str, ApiError] = field(default_factory=dict)
    """``pods`` or ``events``, where they cannot be read, or not all."""

    @property
    def events(self) -> Sequence[Resource]:
        """The Events of the job and its pods, the latest last."""
        meta = self.job["metadata"]
        uids = {meta.get("uid"), *(uid_of(pod) for pod in self.pods)}
        begin = f"{meta['name']}-"
        found = []
        for event in self.namespace_events:
            of = event.get("involvedObject") or {}
            if of.get("uid") in uids or (of.get("kind") in ("Pod", "Job") and str(of.get("name")).startswith(begin)):
                found.append(event)
        return sorted(found, key=event_time)

    @property
    def warnings(self) -> Sequence[str]:
        """A sentence for each of ``refused``."""
        namespace = self.job["metadata"].get("namespace")
        return [sentence("list", what, namespace, error) for what, error in self.refused.items()]


def read(api: Api, job: Resource, *, events: bool = True) -> Around:
    """The pods and, for ``events``, the Events. Raises ApiError where the login is refused, and ConnectionFailed."""
    core = f"/api/v1/namespaces/{job['metadata']['namespace']}"
    refused: dict[str, ApiError] = {}
    pods: dict[str, Resource] = {}
    said: list[Resource] = []
    with _noted("pods", refused):
        for selector in pod_selectors(job):
            for page in pages(api, f"{core}/pods", {"labelSelector": selector}):
                pods |= {uid_of(one): one for one in decoding.items(page) if belongs(one, job)}
    with _noted("events", refused):
        for page in pages(api, f"{core}/events") if events else ():
            said += decoding.items(page)
    return Around(job, tuple(pods.values()), tuple(said), refused)


def pod_selectors(job: Resource) -> tuple[str, str]:
    """The pods of a job are among those of these labels: this operator's, and training-operator's or mpi-operator's."""
    meta = job["metadata"]
    return f"{JOB_UID_LABEL}={meta.get('uid')}", f"{JOB_NAME_LABEL}={meta['name']}"


@contextmanager
def _noted(what: str, refused: dict[str, ApiError]) -> Iterator[None]:
    try:
        yield
    except ApiError as e:
        if e.status == _NO_LOGIN:
            raise
        refused[what] = e


def uid_of(resource: Resource) -> str:
    """The uid of an object; "None" without one."""
    return str((resource.get("metadata") or {}).get("uid"))
