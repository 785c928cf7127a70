"""The data model of watches.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import WORKER_VAR


class WatchesError(ValueError):
    """watches.yaml cannot be used. `problems` has a line for each reason: entry, key and fix."""

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{path}: {problem}" for problem in self.problems))


@dataclass(frozen=True, order=True)
class GVK:
    """A kind of object: API group ("" for the core group), version and kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True)
class Finalizer:
    """What runs before a deleted object is removed. Without a role and playbook, those of the entry run."""

    name: str
    role: Path | None = None
    playbook: Path | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Watch:
    """One entry: a kind and the role or playbook that reconciles it (exactly one of the two is set).

    `reconcile_period` is in seconds; 0 means that the engine's default applies, as with ansible-operator.
    `selector` is a label selector in the form that the API server's query takes ("" selects everything).
    """

    gvk: GVK
    role: Path | None = None
    playbook: Path | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    finalizer: Finalizer | None = None
    reconcile_period: float = 0.0
    selector: str = ""
    blacklist: tuple[GVK, ...] = ()
    max_runner_artifacts: int = 20
    manage_status: bool = True
    watch_dependent_resources: bool = True
    watch_cluster_scoped_resources: bool = False
    watch_annotations_changes: bool = False
    snake_case_parameters: bool = True
    mark_unsafe: bool = False

    @property
    def batchable(self) -> bool:
        """Whether the role takes several objects in one run (`vars: {dljob_batchable: true}`)."""
        return bool(self.vars.get("dljob_batchable", False))

    @property
    def owns(self) -> tuple[str, ...]:
        """The kinds that the role's jobs own beyond those of every job (`vars: {dljob_owns: [Deployment]}`)."""
        return tuple(self.vars.get("dljob_owns") or ())

    @property
    def long_lived(self) -> bool:
        """Whether the role may run in a long-lived worker for many batches (`vars: {dljob_resident: true}`).

        This requires a role with only our task, because other tasks would run once per worker, not once per job.
        """
        return self.batchable and bool(self.vars.get(WORKER_VAR, False))
