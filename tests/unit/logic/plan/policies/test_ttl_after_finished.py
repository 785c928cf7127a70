"""ttlSecondsAfterFinished."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.ttl_after_finished import time_to_live
from support.builders import at, mxjob, stamp


@pytest.mark.parametrize(
    ("ttl", "ended", "left"),
    [(60, stamp(0), 50), (0, stamp(10), 0), (5, stamp(0), -5), (60, None, None), (None, stamp(0), None)],
)
def test_time_to_live(ttl: int | None, ended: str | None, left: float | None) -> None:
    assert time_to_live(mxjob().run_policy(ttlSecondsAfterFinished=ttl).job(), ended, at(10)) == left
