"""The kinds of jobs: where the API server has them, and where a job says which replicas it has.

The table is generated from the operator's roles. training-operator v1 and mpi-operator have the same groups and kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dljob.kinds_table import CONTAINERS, KINDS

Resource = Mapping[str, Any]
FIRST_CONTAINER = "{first}"
"""A kind's ``container`` where the first container of a template runs the framework."""


class UnknownKind(ValueError):
    """A kind, or a name of one, that the table does not have; the message lists those that it has."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """One layout of a kind's jobs."""

    layout: str
    """map: type to replica spec; list: replica specs that name their type; single: one replica spec."""
    fields: tuple[str, ...]
    """Spellings of the spec's field; "" means that the spec itself is the list."""
    types: tuple[str, ...]
    """Replica types in the order of ranks."""
    version: str = ""
    """The API version whose jobs have it, where another flavor has the same field; "" for all."""
    type_field: str = ""
    """In a list: the field with the type."""
    default_type: str = ""
    """In a list: the type of an entry that names none."""
    status: str = "v1"
    """v1: counts by type; v1alpha1: a list with ``ReplicasStates``."""
    status_type_field: str = ""
    batch_jobs: tuple[str, ...] = ()
    """Types whose replica a batch/v1 Job runs, as the launcher of an MPIJob."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods, with placeholders such as ``{job}``, ``{type_lower}`` and ``{index}``."""

    def canonical(self, name: str) -> str:
        """The type as the table spells it: kinds of v1 take any case."""
        return next((one for one in self.types if one.lower() == name.lower()), name)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of one API group."""

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]
    """The served versions, the stored one first. A cluster of mpi-operator has only v2beta1."""
    short_names: tuple[str, ...]
    framework: str
    """Name of the role; "" for DLJob, whose ``spec.framework`` says it."""
    container: str
    success_target: tuple[str, ...]
    """Types whose first replica decides the outcome; the first of them that a job has."""
    flavors: tuple[Flavor, ...]

    @property
    def resource(self) -> str:
        """``<plural>.<group>``, the name of the CRD."""
        return f"{self.plural}.{self.group}"

    @property
    def names(self) -> tuple[str, ...]:
        """What users may write for it, lower case, besides :attr:`resource`."""
        return (self.plural, self.kind.lower(), *self.short_names)

    def flavor(self, job: Resource) -> Flavor:
        """The flavor of a job; without a known field of replicas the newest one."""
        spec = job.get("spec")
        version = self._version(job)
        candidates = [one for one in self.flavors if one.version in ("", version)] or self.flavors
        found = (one for one in candidates if any(_holds(spec, name) for name in one.fields))
        return next(found, candidates[-1])

    def _version(self, job: Resource) -> str:
        """The version in which the job was created, among those with a flavor of their own."""
        known = {one.version for one in self.flavors if one.version}
        if not known:
            return ""
        status, meta = job.get("status"), job.get("metadata")
        recorded = status.get("apiVersion") if isinstance(status, Mapping) else None
        writers = meta.get("managedFields") if isinstance(meta, Mapping) else None
        entries = [one for one in writers if isinstance(one, Mapping)] if isinstance(writers, list) else []
        created = [entry.get("apiVersion") for entry in entries if not entry.get("subresource")]
        found = (str(text or "").rpartition("/")[2] for text in (recorded, *created[:1], job.get("apiVersion")))
        return next((version for version in found if version in known), "")

    def container_of(self, job: Resource) -> str:
        """The container that runs the framework, or ``FIRST_CONTAINER``."""
        if self.container:
            return self.container
        spec = job.get("spec")
        return CONTAINERS.get(str(spec.get("framework")) if isinstance(spec, Mapping) else "", FIRST_CONTAINER)


def _holds(spec: Any, name: str) -> bool:
    return isinstance(spec, list) if name == "" else isinstance(spec, Mapping) and name in spec


def _read(row: Mapping[str, Any]) -> Kind:
    return Kind(**{**row, "flavors": tuple(Flavor(**flavor) for flavor in row["flavors"])})


ALL: tuple[Kind, ...] = tuple(_read(row) for row in KINDS)
_BY_NAME = {(kind.group, kind.kind): kind for kind in ALL}


def kind_of(resource: Resource) -> Kind:
    """The kind of a job. Raises UnknownKind."""
    group = str(resource.get("apiVersion", "")).partition("/")[0]
    try:
        return _BY_NAME[group, str(resource.get("kind"))]
    except KeyError:
        known = ", ".join(kind.resource for kind in ALL)
        raise UnknownKind(
            f"{resource.get('apiVersion')} {resource.get('kind')} is no kind of training job that dljob knows: {known}"
        ) from None


def named(text: str, kinds: Sequence[Kind] = ALL) -> tuple[Kind, ...]:
    """The kinds that a user means by ``mxjobs``, ``tfj``, ``mxjobs.kubeflow.org`` or ``pytorchjobs.v1.kubeflow.org``.

    Several groups may have the same kind. Raises UnknownKind.
    """
    name, _, group = text.lower().partition(".")
    if name in ("dljobs", "dljob", "all", "jobs", "job") and not group:
        return tuple(kinds)
    found = tuple(kind for kind in kinds if name in kind.names and _in_group(kind, group))
    if not found:
        known = ", ".join(sorted({kind.plural for kind in kinds}))
        raise UnknownKind(f"{text} is no kind of training job that dljob knows: {known}")
    return found


def _in_group(kind: Kind, group: str) -> bool:
    return group in ("", kind.group, *(f"{version}.{kind.group}" for version in kind.versions))


def groups(kinds: Iterable[Kind]) -> list[str]:
    """The API groups, each once, in the order of the kinds."""
    return list(dict.fromkeys(kind.group for kind in kinds))
