"""The jobs of a run: kind, way of life and expected end of each, by its number. Pure."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devtools.testbed.jobs import JobKind, Resource

RETRYABLE, PERMANENT = 137, 1
"""Exit codes: of the ones that every API flavor retries, and of those that none does."""
ATTEMPT = "dljob.operator/attempt"
TYPE = "dljob.operator/replica-type"
INDEX = "dljob.operator/replica-index"


class Life(enum.Enum):
    """What happens to a job."""

    SUCCESS = "success"
    RETRY = "retry"
    """Its success target fails with a retryable exit code, and succeeds in the second attempt."""
    FAILURE = "failure"
    SUSPEND = "suspend"
    """It is created suspended, and resumed."""
    DELETE = "delete"
    """It is deleted while it runs."""


CYCLE = (
    Life.SUCCESS, Life.RETRY, Life.SUCCESS, Life.SUSPEND, Life.SUCCESS, Life.DELETE, Life.SUCCESS, Life.FAILURE,
    Life.SUCCESS, Life.RETRY, Life.SUCCESS,
)  # fmt: skip
"""Its length is odd, so that each kind gets each life with and without an expiry."""


@dataclass(frozen=True)
class SoakJob:
    """One job. ``expires`` is whether the operator deletes it by its ``ttlSecondsAfterFinished``, which is 0."""

    name: str
    kind: JobKind
    life: Life
    expires: bool
    manifest: Resource

    @property
    def expected(self) -> str:
        """The state in which it ends, "" for one that is deleted before."""
        return {Life.DELETE: "", Life.FAILURE: "Failed"}.get(self.life, "Succeeded")

    def exit_code(self, labels: Mapping[str, str]) -> int | None:
        """With what the containers of its pod with these labels exit, None for a pod that runs until it is deleted."""
        if self.life is Life.DELETE:
            return None
        if not self._decides(labels):
            return 0
        if self.life is Life.FAILURE:
            return PERMANENT
        first = labels.get(ATTEMPT, "0") == "0"
        return RETRYABLE if self.life is Life.RETRY and first else 0

    def _decides(self, labels: Mapping[str, str]) -> bool:
        """Whether the pod is the success target."""
        type_ = labels.get(TYPE, "").lower()
        return type_ == self.kind.success.lower() and labels.get(INDEX) == "0"


def fitting(kinds: Sequence[JobKind]) -> tuple[JobKind, ...]:
    """Those of which the operator alone sets the pace.

    The launcher of an MPIJob, which a batch Job runs, gets its pod from Kubernetes' own controller, and after a failure
    only seconds later.
    """
    return tuple(kind for kind in kinds if not kind.has_batch_job)


def succeeding(kinds: Sequence[JobKind], number: int, nodes: int) -> Iterator[SoakJob]:
    """Jobs that succeed at once, without end: from any ``number`` the same kinds one after the other."""
    period = 2 * len(kinds) * len(CYCLE)
    numbers = itertools.count(-(-number // period) * period)
    return (one for one in (job(kinds, number, nodes) for number in numbers) if one.life is Life.SUCCESS)


def job(kinds: Sequence[JobKind], number: int, nodes: int) -> SoakJob:
    """The job of that number."""
    turn, position = divmod(number, len(kinds))
    kind = kinds[position]
    # the kinds of one turn get different lives, and a kind gets the next one in its next turn
    step = turn + position
    life = CYCLE[step % len(CYCLE)]
    if life is Life.RETRY and not kind.retry_policy:
        life = Life.SUCCESS
    if life is Life.SUSPEND and not kind.field:
        life = Life.SUCCESS  # a spec that is a list has no runPolicy
    expires = bool(kind.field) and step % 2 == 0
    policy: dict[str, Any] = {"cleanPodPolicy": "All"}
    if expires:
        policy["ttlSecondsAfterFinished"] = 0
    if life is Life.SUSPEND:
        policy["suspend"] = True
    name = f"s{number}"
    manifest = kind.small_job(name, number % nodes, policy)
    return SoakJob(name, kind, life, expires, manifest)
