"""What the API server has reported of jobs and their pods, and what must hold at each moment. Pure.

This module and :mod:`.checker` know of the operator only what its documents promise, and share no code with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.chaos.shapes import FAILED, SUCCEEDED

JOB_UID = "dljob.operator/job-uid"
REPLICA_TYPE = "dljob.operator/replica-type"
REPLICA_INDEX = "dljob.operator/replica-index"
ATTEMPT = "dljob.operator/attempt"
JOB_GROUPS = ("dljob.operator", "fioravanzo.org", "kubeflow.org", "mpba.fbk.eu", "tensorflow.org")
"""The API groups of the kinds of jobs."""
_ENDED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Violation:
    """A promise that does not hold."""

    rule: str
    detail: str
    at: float
    """Seconds after the begin of the run."""
    round: int = 0


@dataclass
class Pod:
    """One pod, also after its deletion."""

    uid: str
    name: str
    job: str
    """The UID of its job."""
    rank: str
    """Its replica, as in a job's status: ``worker-0``."""
    attempt: int
    phase: str = ""
    failed: bool = False
    """Whether its program failed: the phase is Failed, and the cluster did not take the pod away."""
    in_batch_job: bool = False
    """Whether a batch Job controls it, which retries the pod itself."""
    node: str = ""
    deleting: bool = False
    """Whether its deletion was requested: on a lost node it exists until Kubernetes' pod garbage collector finds it."""
    exists: bool = True

    @property
    def is_live(self) -> bool:
        """Whether its program may run."""
        return self.exists and self.phase not in _ENDED_PHASES


@dataclass
class JobRecord:
    """One job, also after its deletion."""

    uid: str
    name: str
    kind: str
    manifest: Mapping[str, Any]
    ended: str = ""
    """The first final state, "" before."""
    exists: bool = True

    @property
    def status(self) -> Mapping[str, Any]:
        status = self.manifest.get("status")
        return status if isinstance(status, dict) else {}


def state_of(manifest: Mapping[str, Any]) -> str:
    """The state that a job's status reports, "" for none."""
    return str((manifest.get("status") or {}).get("state") or "")


def has_condition(manifest: Mapping[str, Any], *types: str) -> bool:
    """Whether the status has a condition of one of these types that is true."""
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return any(one.get("type") in types and one.get("status") == "True" for one in conditions)


def controller_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The owner reference to the controller of an object, empty where it has none."""
    references = manifest["metadata"].get("ownerReferences") or ()
    return next((one for one in references if one.get("controller")), {})


def job_uid_of(manifest: Mapping[str, Any]) -> str:
    """The UID of the job that an object belongs to by its controller, or by its label; "" for none."""
    owner = controller_of(manifest)
    if _group_of(owner) in JOB_GROUPS:
        return str(owner["uid"])
    return str((manifest["metadata"].get("labels") or {}).get(JOB_UID) or "")


def is_final(state: str) -> bool:
    return state in (SUCCEEDED, FAILED)


@dataclass
class History:
    """All pods and jobs of a run by UID. Not thread-safe."""

    pods: dict[str, Pod] = field(default_factory=dict)
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    edited: set[str] = field(default_factory=set)
    """The UIDs of jobs whose spec the run has changed: their counts begin again."""
    created: set[str] = field(default_factory=set)
    """The UIDs of the jobs that the run has created: a watch may miss one that is deleted soon."""
    deleted: set[str] = field(default_factory=set)
    """The UIDs of the jobs that the run has deleted itself."""
    disturbed: set[str] = field(default_factory=set)
    """The UIDs of the jobs of which the run or the cluster has taken a pod away."""
    lost_nodes: set[str] = field(default_factory=set)
    """The names of the nodes that the run has deleted."""
    failed_batch_jobs: set[tuple[str, str, int]] = field(default_factory=set)
    """The job's UID, the replica and the attempt of each batch Job that has failed."""
    batch_jobs: dict[str, str] = field(default_factory=dict)
    """The UID of the job of each batch Job, by its own UID."""
    labelled: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """The name of each pod, the UID of its controller, and that of the job in its labels, by its own UID."""
    violations: list[Violation] = field(default_factory=list)
    round: int = 0

    def pod_event(self, kind: str, manifest: Mapping[str, Any], now: float) -> None:
        """A watch event of a pod: ``kind`` is ADDED, MODIFIED or DELETED."""
        metadata, owner = manifest["metadata"], controller_of(manifest)
        self.labelled[metadata["uid"]] = (metadata["name"], str(owner.get("uid") or ""), _labelled_job(manifest))
        pod = _pod(manifest)
        if pod is None:
            return
        if has_condition(manifest, "DisruptionTarget"):
            self.disturbed.add(pod.job)
        before = self.pods.get(pod.uid)
        pod.exists = kind != "DELETED"
        if before is not None:
            pod.exists = pod.exists and before.exists
            # a pod that was deleted first has been killed
            pod.failed = before.failed or (pod.failed and not before.deleting)
        self.pods[pod.uid] = pod
        if before is None and pod.exists:
            self._check_rank(pod, now)

    def batch_job_event(self, manifest: Mapping[str, Any]) -> None:
        """A batch Job as an event or a list shows it."""
        labels, job = manifest["metadata"].get("labels") or {}, job_uid_of(manifest)
        if job:
            self.batch_jobs[manifest["metadata"]["uid"]] = job
        if job and REPLICA_TYPE in labels and has_condition(manifest, "Failed"):
            self.failed_batch_jobs.add((job, _rank(labels), _attempt(labels)))

    def job_event(self, kind: str, manifest: Mapping[str, Any], now: float) -> None:
        uid = manifest["metadata"]["uid"]
        new = JobRecord(uid, manifest["metadata"]["name"], manifest["kind"], manifest)
        record = self.jobs.setdefault(uid, new)
        record.manifest = manifest
        record.exists = record.exists and kind != "DELETED"
        state = state_of(manifest)
        if record.ended and state != record.ended:
            detail = f"{record.kind} {record.name}: {record.ended}, then {state or 'none'}"
            self._violate("an outcome changed", detail, now)
        if record.ended or is_final(state):
            record.ended = state

    def lack_pods(self, present: Set[str]) -> None:
        """A list has no other pods than those with these UIDs."""
        for pod in self.pods.values():
            pod.exists = pod.exists and pod.uid in present

    def lack_jobs(self, group: str, kind: str, present: Set[str]) -> None:
        """A list of the jobs of a kind has no others than those with these UIDs."""
        for job in self.jobs.values():
            if job.kind == kind and _group_of(job.manifest) == group:
                job.exists = job.exists and job.uid in present

    def pods_of(self, uid: str) -> Iterator[Pod]:
        return (pod for pod in self.pods.values() if pod.job == uid)

    def is_disturbed(self, uid: str) -> bool:
        """Whether a pod of this job may have ended otherwise than by its program and the operator."""
        return uid in self.disturbed or any(pod.node in self.lost_nodes for pod in self.pods_of(uid))

    def leaving(self, nodes: Collection[str]) -> list[str]:
        """The names of the pods that exist and will not for long: terminating ones, and those on none of ``nodes``."""
        present = [pod for pod in self.pods.values() if pod.exists]
        return [pod.name for pod in present if pod.deleting or (pod.node != "" and pod.node not in nodes)]

    def _check_rank(self, new: Pod, now: float) -> None:
        for other in self.pods_of(new.job):
            if other.rank == new.rank and other.uid != new.uid and other.is_live:
                detail = f"{new.rank} of job {new.job}: {new.name} ({new.uid}) beside {other.name} ({other.uid})"
                self._violate("two pods of one rank", detail, now)

    def _violate(self, rule: str, detail: str, now: float) -> None:
        self.violations.append(Violation(rule, detail, now, self.round))


def _group_of(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("apiVersion")).partition("/")[0]


def _rank(labels: Mapping[str, str]) -> str:
    return f"{labels[REPLICA_TYPE].lower()}-{labels.get(REPLICA_INDEX, '0')}"


def _attempt(labels: Mapping[str, str]) -> int:
    return int(labels.get(ATTEMPT) or 0)


def _labelled_job(manifest: Mapping[str, Any]) -> str:
    """The job whose replica a pod is by its labels, "" where they do not say it."""
    labels = manifest["metadata"].get("labels") or {}
    return str(labels[JOB_UID]) if all(name in labels for name in (JOB_UID, REPLICA_TYPE, ATTEMPT)) else ""


def _pod(manifest: Mapping[str, Any]) -> Pod | None:
    metadata, job = manifest["metadata"], job_uid_of(manifest)
    labels = metadata.get("labels") or {}
    if not job or REPLICA_TYPE not in labels:
        return None
    status = manifest.get("status") or {}
    phase = str(status.get("phase") or "")
    return Pod(
        metadata["uid"], metadata["name"], job, _rank(labels), _attempt(labels), phase,
        failed=phase == "Failed" and not has_condition(manifest, "DisruptionTarget"),
        in_batch_job=controller_of(manifest).get("kind") == "Job",
        node=str(manifest.get("spec", {}).get("nodeName") or ""),
        deleting=bool(metadata.get("deletionTimestamp")),
    )  # fmt: skip
