"""What a conversion has and gives: pure values, and the rules that all targets have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import Kind
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework

Manifest = Mapping[str, Any]

TO_V1 = "kubeflow.org/v1"
TO_DLJOB = "dljob"
TO_TRAINJOB = "trainjob"
TARGETS = (TO_V1, TO_DLJOB, TO_TRAINJOB)


class NotConvertible(ValueError):
    """No part of a job can be converted. The message has the field and the reason."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a conversion changes: the field of the source, and the reason."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(slots=True)
class Report:
    """What a conversion loses, and what else its user has to know."""

    losses: list[Remark] = field(default_factory=list)
    """The target lacks something of the source, so the result is not the same job."""
    notes: list[Remark] = field(default_factory=list)
    """Something has another form or name."""

    def lose(self, where: str, reason: str) -> None:
        self.losses.append(Remark(where, reason))

    def note(self, where: str, reason: str) -> None:
        self.notes.append(Remark(where, reason))


@dataclass(frozen=True, slots=True)
class Conversion:
    """The converted manifest and the report."""

    manifest: dict[str, Any]
    report: Report


@dataclass(frozen=True, slots=True)
class Declared:
    """A framework with the kinds of its jobs."""

    framework: Framework
    kinds: tuple[Kind, ...]

    def v1_kind(self) -> str:
        """The framework's kind of kubeflow.org/v1, "" where it has none, or one that means something else."""
        if self.framework.flavors[-1].version not in ("", "v1"):
            return ""
        return next((k.name for k in self.kinds if k.group == "kubeflow.org" and "v1" in k.versions), "")


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas of one type with a template of their own."""

    name: str
    count: int
    template: dict[str, Any]
    """A copy, without a restart policy."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas of one type, in the terms of kubeflow.org/v1."""

    path: str
    """Of the source, for the report."""
    count: int
    restart_policy: str
    """"" where it is the default of the framework's newest flavor."""
    template: dict[str, Any]
    """A copy, without a restart policy."""
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceJob:
    """A job of any flavor, read in the terms of kubeflow.org/v1."""

    declared: Declared
    metadata: dict[str, Any]
    replicas: dict[str, Replicas]
    """By the canonical name of the type."""
    options: dict[str, Any]
    """The other fields of the framework."""
    run_policy: dict[str, Any]
    scheduler_name: str
    mode: str
    """local, "" for the default."""
    v1_mode: str
    """What kubeflow.org/v1 calls a local job, MXTune; "" for the default and where it has no such job."""
    report: Report
