"""A run that stays: its one task takes batches of jobs as they come, instead of being started anew for each.

Starting Ansible, even a warm one, costs more than reconciling a job. Where the engine says so (``dljob_resident`` in
``watches.yaml``, for roles that are nothing but this task), the task asks the engine for work, answers, and asks
again, until there is no more. What differs between two batches comes with the batch; what the role said of its
framework was evaluated once, as in any run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ansible_collections.dljob.operator.plugins.module_utils.api.cache_snapshot import Owned, Published

WORKER_VAR = "dljob_resident"
"""The extra variable of a run that stays."""


class Batch(Protocol):
    """One batch."""

    @property
    def jobs(self) -> Sequence[Mapping[str, Any]]:
        """As the API has them."""
        ...

    @property
    def owned(self) -> Mapping[str, Owned] | None:
        """What they own, as in :mod:`.snapshot`."""
        ...

    @property
    def cluster_info(self) -> Published | None:
        """What belongs to no job, as there."""
        ...


class WorkSource(Protocol):
    """Where the batches come from, and where each one's result goes."""

    def work(self) -> Iterator[Batch]:
        """Wait for the next batch; end when there will be none."""
        ...

    def report_partial(self, result: Mapping[str, Any]) -> None:
        """What some jobs of the batch have come to, shaped as a task's result, while others still go on."""
        ...

    def report_final(self, result: Mapping[str, Any]) -> None:
        """The end of the batch that ``work`` gave last: what those jobs came to of which nothing was told yet."""
        ...


_published: WorkSource | None = None


def publish(work_source: WorkSource | None) -> None:
    """Make ``work_source`` that of this process and of every process forked from it; ``None`` takes it back."""
    global _published
    _published = work_source


def current() -> WorkSource | None:
    """The work_source, or ``None`` in a run like any other."""
    return _published
