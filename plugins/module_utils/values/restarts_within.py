"""``runPolicy.restartsWithin``: how many restarts a job may have within some time."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_FAIL_JOB,
    ACTION_RESTART_JOB,
)

ACTIONS = (ACTION_FAIL_JOB, ACTION_RESTART_JOB)
MOST_RESTARTS = 100
"""Of ``count``: the status has the time of each."""
LONGEST = 31_536_000
"""Of ``seconds``: a year."""


@dataclass(frozen=True, slots=True)
class RestartsWithin:
    """At most ``count`` restarts, over all replicas, in any ``seconds``; one more has the ``action``."""

    count: int
    seconds: int
    action: str = ACTION_FAIL_JOB
    """FailJob; RestartJob restarts all replicas, and fails the job the next time within the ``seconds``."""
