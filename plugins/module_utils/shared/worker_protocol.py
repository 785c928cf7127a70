"""How a long-lived worker gets batches of jobs from the engine.

Starting Ansible, even from a warm process, costs more than reconciling a job. Where ``watches.yaml`` sets
``dljob_resident``, for roles that consist of this task only, the task asks the engine for a batch, reports the results,
and asks again until there are no more. The data that differs between batches comes with the batch.

The workers of all roles that use the task are the same: at its start the engine runs each role once with no jobs, and
the task reports the :class:`Declaration` that Ansible evaluated. Each batch then brings the declaration of its role. So
the number of processes does not grow with the number of kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.cache_snapshot import Owned, Published
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangesSince

WORKER_VAR = "dljob_resident"
"""The variable with which ``watches.yaml`` allows a role long-lived workers, and which marks a worker's Ansible run."""

BATCH_VAR = "dljob_batch"
"""The variable that holds the jobs of a run that is not a worker's, a list."""


@dataclass(frozen=True)
class Declaration:
    """What a role gives the task: its evaluated arguments, and the texts of the files that these name."""

    arguments: Mapping[str, Any]
    files: Mapping[str, str]


@dataclass(frozen=True)
class Batch:
    """One batch of jobs of one target, as the API server returns them; what they own and the cluster info as in
    :mod:`.cache_snapshot`. Without a declaration it is for the role that the worker runs. A batch that ``is_contended``
    was taken while users waited for other jobs. ``changes`` say at any time what users have changed since;
    they are ``None`` where the engine does not say. ``since_taken`` say it of the batch's own jobs, all of them, while
    ``changes`` know only those of them that may write for longer."""

    target: str
    jobs: Sequence[Mapping[str, Any]]
    owned: Mapping[str, Owned] | None
    cluster_info: Published | None
    declaration: Declaration | None = None
    is_contended: bool = False
    changes: ChangesSince | None = None
    since_taken: ChangesSince | None = None


class WorkSource(Protocol):
    """Delivers batches and receives their results."""

    def work(self) -> Iterator[Batch]:
        """Wait for each next batch; the iterator ends when there are no more."""
        ...

    def report_partial(self, result: Mapping[str, Any]) -> None:
        """Report the task result of the jobs of the batch that are finished while others are in progress."""
        ...

    def report_final(self, result: Mapping[str, Any]) -> None:
        """Report the task result of all jobs of the batch that were not reported yet; this ends the batch."""
        ...


_published: WorkSource | None = None


def publish(work_source: WorkSource | None) -> None:
    """Set the work source of this process and of every process forked from it; ``None`` removes it."""
    global _published
    _published = work_source


def current() -> WorkSource | None:
    """The work source, or ``None`` in an ordinary Ansible run."""
    return _published
