"""Whether this operator can take over a running job of training-operator v1 without a restart: a pure function.

It makes the reconciles of the takeover in memory, with the plan and the labels that the real ones use: what they would
label is adopted, what they would find under another owner, delete or fail is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import Kind
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import (
    Owner,
    belongs_to_predecessor,
    is_owned_by,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job, owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.owned_objects import Key
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import retries
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import outcome
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS, owned_kind
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

Resource = Mapping[str, Any]

GROUP, VERSION = "kubeflow.org", "v1"
KINDS = ("TFJob", "PyTorchJob", "MXJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
"""The kinds of training-operator v1, of all its releases."""
_FIELD = re.compile(r"(?:spec|metadata)\b[^\s:,]*|apiVersion|kind")
_LET_IT_END = "let the job end under its present operator"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a job cannot be adopted. ``text`` is a sentence with the field or the object in it."""

    where: str
    """A field of the job, or an object as ``<kind>/<name>``."""
    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class Served:
    """A kind that this operator serves."""

    kind: Kind
    framework: Framework


@dataclass(frozen=True, slots=True)
class Found:
    """What the cluster has besides the job."""

    objects: Sequence[Resource] = ()
    """Objects of the job's namespace, each with its ``kind``."""
    unpatchable: Collection[str] = ()
    """The kinds of objects that the operator may not patch there."""
    definition: Sequence[Problem] = ()
    """The problems of the CustomResourceDefinition of the job's kind."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one job."""

    kind: str
    namespace: str
    name: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    adopts: tuple[str, ...] = ()
    """The objects ``<kind>/<name>`` that the operator will label."""

    @property
    def can_be_adopted(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Takeover:
    """The reconciles of a takeover: the last plan, and the objects that were labelled."""

    planned: Plan
    adopted: tuple[Key, ...]


def is_running(resource: Resource) -> bool:
    """Whether the job has neither finished nor been deleted."""
    return outcome(as_mapping(resource.get("status"))) is None and not as_mapping(resource.get("metadata")).get(
        "deletionTimestamp"
    )


def judge_definition(definition: Resource, versions: Collection[str]) -> tuple[Problem, ...]:
    """What keeps this operator's definition, which has ``versions`` of the kind, from replacing this one."""
    name = definition["metadata"]["name"]
    stored = as_mapping(definition.get("status")).get("storedVersions") or ()
    unknown = [version for version in stored if version not in versions]
    if not unknown:
        return ()
    lacking = ", ".join(unknown)
    there = {version["name"] for version in as_mapping(definition.get("spec")).get("versions") or ()}
    if there & set(versions):
        keep = f"store them again in a version that both have, and remove {lacking} from status.storedVersions"
    else:
        keep = "keep it and its operator, and apply this operator's other definitions without that of this kind"
    return (
        Problem(
            f"CustomResourceDefinition/{name}",
            f"CustomResourceDefinition/{name}: status.storedVersions has {lacking}, which the definition of this "
            "operator lacks, so that the API server refuses to replace the one by the other",
            f"without objects of the kind delete {name}; otherwise {keep}",
        ),
    )


def other_objects(
    resource: Resource, served: Served, now: datetime, gang: GangScheduler | None = None
) -> tuple[Resource, ...]:
    """The objects besides pods and Services that the operator would create for the job, to be looked up by name."""
    try:
        job = parse_job(resource, served.framework)
    except InvalidJob:
        return ()
    wanted = _wanted(plan(job, served.framework, Observed(), now, PlanSettings(gang=gang)))
    return tuple(manifest for manifest in wanted if manifest["kind"] not in ("Pod", "Service"))


def judge(
    resource: Resource, served: Served | None, found: Found, now: datetime, gang: GangScheduler | None = None
) -> Verdict:
    """Judge a running job of a kind of training-operator; ``served`` is ``None`` for a kind that is not served here.

    ``gang`` is the gang scheduler that the operator will have.
    """
    metadata = resource["metadata"]
    problems = [*_problems_of_kind(resource, served), *found.definition]
    notes: list[str] = []
    adopts: tuple[str, ...] = ()
    if served is not None and not problems:
        try:
            job = parse_job(resource, served.framework)
        except InvalidJob as e:
            problems += [_invalid(text) for text in e.problems]
        else:
            if job.flavor.names != NAMES_JOB:
                problems.append(_of_earlier_operator(job))
            elif reason := _needs_nothing(job):
                notes.append(reason)
            else:
                takeover = _take_over(job, served.framework, found.objects, now, PlanSettings(gang=gang))
                problems += _problems_of_objects(resource, job, takeover, found)
                problems += _problems_of_plan(job, takeover)
                notes += _notes(job, takeover, found)
                adopts = tuple(_shown(key) for key in takeover.adopted)
    return Verdict(
        str(resource["kind"]), metadata["namespace"], metadata["name"], tuple(problems), tuple(notes), tuple(adopts)
    )


def _problems_of_kind(resource: Resource, served: Served | None) -> Iterable[Problem]:
    kind, api_version = resource["kind"], resource["apiVersion"]
    version = str(api_version).partition("/")[2]
    if served is None:
        yield Problem("kind", f"kind: this operator serves no {kind} of {api_version}", _LET_IT_END)
    elif version not in served.kind.versions:
        known = ", ".join(f"{served.kind.group}/{known}" for known in served.kind.versions)
        yield Problem(
            "apiVersion",
            f"apiVersion: this operator serves {kind} as {known}, not as {api_version}",
            f"{_LET_IT_END}, and convert its manifest for the next time",
        )
    elif version != VERSION:
        yield Problem(
            "apiVersion",
            f"apiVersion: jobs of {api_version} are not training-operator's, and this operator adopts no others",
            _LET_IT_END,
        )


def _invalid(text: str) -> Problem:
    field = _FIELD.match(text)
    return Problem(field[0] if field else "spec", text, f"edit the field so that the job is valid, or {_LET_IT_END}")


def _of_earlier_operator(job: DLJob) -> Problem:
    field = f"spec.{job.flavor.replicas_fields[0]}"
    return Problem(
        field,
        f"{field}: only operators before training-operator v1 run jobs of this layout, and their pods have other names",
        _LET_IT_END,
    )


def _needs_nothing(job: DLJob) -> str:
    manager = job.run_policy.managed_by
    if manager not in (*c.MANAGED_BY_US, *job.flavor.managers):
        return f"spec.runPolicy.managedBy: {manager} runs the job, and this operator ignores it too"
    return "suspended: it has no pods to adopt" if job.run_policy.suspend else ""


def _take_over(
    job: DLJob, framework: Framework, objects: Sequence[Resource], now: datetime, settings: PlanSettings
) -> Takeover:
    """Reconcile until nothing is left to label. Each round labels at least one object, so the rounds end."""
    owner = Owner(job.namespace, job.uid)
    present = {owned_objects.key_of(x): x for x in objects if is_owned_by(x, owner)}
    known = {key: x for key, x in present.items() if not adoption.missing_labels(x["metadata"], job.uid)}
    adopted: dict[Key, Resource] = {}
    while True:
        observed = _observe(owner, framework, [*known.values(), *adopted.values()])
        planned = plan(job, framework, observed, now, settings)
        fresh = {
            key: _labelled(present[key], manifest)
            for manifest in _wanted(planned)
            if (key := owned_objects.key_of(manifest)) in present and key not in known and key not in adopted
            # only engines' caches need the labels
            if owned_kind(manifest).watched and not present[key]["metadata"].get("deletionTimestamp")
        }
        if not fresh:
            return Takeover(planned, tuple(sorted(adopted)))
        adopted.update(fresh)


def _observe(owner: Owner, framework: Framework, objects: Iterable[Resource]) -> Observed:
    by_kind: dict[str, list[Resource]] = {}
    for resource in objects:
        by_kind.setdefault(owned_kind(resource).name, []).append(resource)
    pods, services = by_kind.pop("Pod", []), by_kind.pop("Service", [])
    return build_observed_state(owner, framework.container, pods, services, by_kind)


def _wanted(planned: Plan) -> tuple[Resource, ...]:
    return (*planned.auxiliary_objects, *planned.services, *planned.pods, *planned.ensured_objects)


def _labelled(present: Resource, manifest: Resource) -> Resource:
    """The object ``present`` after the writer has given it the labels of ``manifest``."""
    metadata = present["metadata"]
    given = {
        field: {**(metadata.get(field) or {}), **values}
        for field, values in adoption.marks(manifest["metadata"]).items()
    }
    return {**present, "metadata": {**metadata, **given}}


def _problems_of_objects(resource: Resource, job: DLJob, takeover: Takeover, found: Found) -> Iterable[Problem]:
    owner = Owner(job.namespace, job.uid)
    by_key = {owned_objects.key_of(x): x for x in found.objects}
    for key in map(owned_objects.key_of, _wanted(takeover.planned)):
        present, name = by_key.get(key), _shown(key)
        if present is None or is_owned_by(present, owner):
            continue
        if belongs_to_predecessor(present, resource):
            yield Problem(
                name,
                f"{name}: it belongs to a deleted job of this name, whose objects are still being deleted",
                "wait until it is gone",
            )
        else:
            yield Problem(
                name,
                f"{name}: the job needs an object of that name, and this one has another controller or none, so the "
                "job would fail",
                f"delete or rename it, or {_LET_IT_END}",
            )
    own_names = {naming.pod_name(job, group.type, index) for group, index in job.tasks()}
    for (kind, pod_name), present in by_key.items():
        metadata = present["metadata"]
        if kind != "Pod" or pod_name in own_names or not is_owned_by(present, owner):
            continue
        if not metadata.get("deletionTimestamp"):
            yield Problem(
                f"Pod/{pod_name}",
                f"Pod/{pod_name}: it belongs to the job, but is none of its replicas by name, so it would go on beside "
                "the job's pods",
                f"delete it, or {_LET_IT_END}",
            )
    for kind in sorted({kind for kind, _ in takeover.adopted} & set(found.unpatchable)):
        names = [name for kind_, name in takeover.adopted if kind_ == kind]
        plural = ".".join(filter(None, (OWNED_KINDS[kind].plural, OWNED_KINDS[kind].group)))
        yield Problem(
            f"{kind}/{names[0]}",
            f"{kind}/{names[0]}: the operator may not patch {plural}, and has to label {len(names)} of the job's",
            "give it the cluster role dljob-adoption of docs/migration.md",
        )


def _problems_of_plan(job: DLJob, takeover: Takeover) -> Iterable[Problem]:
    status = as_mapping(takeover.planned.status)
    if outcome(status) == c.STATE_FAILED:
        failure = as_mapping(status.get("failure"))
        field = _FIELD.search(str(failure.get("message") or ""))
        yield Problem(
            field[0] if field else "status",
            f"the operator would end the job as failed: {status.get('reason')}",
            f"change what the reason names, or {_LET_IT_END}",
        )
        return
    replaced = [key_ for key_ in _restarted(job, status) if key_ in takeover.adopted]
    replaced += [(x.kind, x.name) for x in takeover.planned.deletions if x.kind in ("Pod", batch_job.KIND)]
    for name in map(_shown, dict.fromkeys(replaced)):
        yield Problem(
            name,
            f"{name}: it has failed, or is not what the job asks for, so the operator would replace it",
            "wait until its present operator has replaced it, and look again",
        )


def _restarted(job: DLJob, status: Mapping[str, Any]) -> Iterable[Key]:
    """The pods whose failures the plan counts. It deletes them after a delay."""
    before, after = as_mapping(job.status.get("retries")), as_mapping(status.get("retries"))
    for group, index in job.tasks():
        replica = retries.key(group.type, index)
        if after.get(replica, 0) != before.get(replica, 0):
            yield "Pod", naming.pod_name(job, group.type, index)


def _notes(job: DLJob, takeover: Takeover, found: Found) -> Iterable[str]:
    planned = takeover.planned
    if outcome(as_mapping(planned.status)) == c.STATE_SUCCEEDED:
        yield "it has just succeeded, so the operator only writes that"
    present = {owned_objects.key_of(x): x for x in found.objects}
    names = [pod["metadata"]["name"] for pod in planned.pods]
    missing = [name for name in names if ("Pod", name) not in present]
    if missing:
        yield f"{len(missing)} of {job.total} pods do not exist and will be created: {_first(missing)}"
    ending = [name for name in names if _is_deleted(present.get(("Pod", name)))]
    if ending:
        yield f"{len(ending)} of {job.total} pods are being deleted and will be created again: {_first(ending)}"


def _is_deleted(resource: Resource | None) -> bool:
    return resource is not None and bool(resource["metadata"].get("deletionTimestamp"))


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[: adoption.SHOWN]) + (", ..." if len(names) > adoption.SHOWN else "")


def _shown(key: Key) -> str:
    return "/".join(key)
