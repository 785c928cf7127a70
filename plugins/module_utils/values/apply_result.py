"""The result of applying a plan to the API server, and the status that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

ObservedVersion = tuple[str, str | None]
"""(uid, resourceVersion) of an object that was written; ``None`` of one that is gone."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A plan whose pods have what the cluster's accelerators need."""

    plan: Plan
    problems: tuple[str, ...] = ()
    """Why nothing is created: what is wrong in the operator's ConfigMap about an accelerator that a pod requests."""
    requeue_after: float | None = None
    """Seconds until another try, where no watch event follows a mended ConfigMap."""
    warnings: tuple[str, ...] = ()
    """What the operator may not read, for its own log."""
    notes: tuple[EventNote, ...] = ()
    """What the cluster answered about the plan's deletions by force; each becomes the status' reason and an Event."""


def kind_of(text: str) -> str:
    """The kind in ``kind/name``, or in a message that begins so; of another text, something that is no kind."""
    return text.partition("/")[0]


@dataclass
class ApplyResult:
    """Which writes of a plan succeeded, and why others did not."""

    created: list[str] = field(default_factory=list)
    """Objects that were created or replaced, each as ``kind/name``."""
    adopted: list[str] = field(default_factory=list)
    """Objects of the job that another operator had created, and that have this operator's labels now."""
    deleted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Objects that Kubernetes refuses permanently, each with its message."""
    postponed: list[str] = field(default_factory=list)
    """Writes that may succeed later and that the user should know of: quota, an admission rule, no answer."""
    denied: set[str] = field(default_factory=set)
    """Kinds of which a quota or an admission rule denied an object, or of which a name is taken, so that the creation
    of that kind ended there."""
    optional_failures: list[str] = field(default_factory=list)
    """Objects that Kubernetes refuses permanently and that the training does not need."""
    taken: list[str] = field(default_factory=list)
    """Objects whose name an object of somebody else has, each with whose it is."""
    waiting: list[str] = field(default_factory=list)
    """Names that an older, terminating object of the job still has."""
    predecessors: list[str] = field(default_factory=list)
    """Names that an object of a deleted job with this job's name still has."""
    is_partial: bool = False
    """Whether the time of this reconcile ended before all writes had started."""

    versions: list[ObservedVersion] = field(default_factory=list)
    """Versions that the cache will have once it has observed these writes."""

    @property
    def changed(self) -> bool:
        return bool(self.created or self.adopted or self.deleted)

    def created_of(self, *kinds: str) -> Iterator[str]:
        """The objects of these kinds that were created or replaced."""
        return (name for name in self.created if kind_of(name) in kinds)

    @property
    def incomplete(self) -> bool:
        """Whether an object that the plan creates does not exist."""
        return bool(
            self.refused or self.postponed or self.taken or self.waiting or self.predecessors or self.is_partial
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the reconcile reports: the status to commit, its Events, and when the next reconcile is due."""

    status: Mapping[str, Any] | None
    """``None`` where the present status is right, or where the next reconcile writes it."""
    events: tuple[EventNote, ...] = ()
    requeue_after: float | None = None
    message: str = ""
    """For the operator's log."""
    continues: bool = False
    """Whether the next reconcile continues the writes of this one; ``requeue_after`` is 0 then."""
