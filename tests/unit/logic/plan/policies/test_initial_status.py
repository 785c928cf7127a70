"""Which initial status the reconcile that creates the pods may leave to the next one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.initial_status import can_defer
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import mxjob, observed, pods_of

JOB = mxjob().v1().workers(1).job()
POD = observed(JOB, pods_of(JOB)[:1], services=False)


@pytest.mark.parametrize(
    ("before", "found", "status", "expected"),
    [
        pytest.param({}, Observed(), {"phase": "Creating"}, True, id="of a new job"),
        pytest.param({}, Observed(), {"phase": "Creating", "reason": ""}, True, id="with an empty reason"),
        pytest.param({}, Observed(), None, True, id="none"),
        pytest.param({}, Observed(), {"phase": "Creating", "reason": "quota"}, False, id="with a reason"),
        pytest.param({"phase": "Creating"}, Observed(), {"phase": "Creating"}, False, id="there is one"),
        pytest.param({}, POD, {"phase": "Creating"}, False, id="there is a pod"),
        pytest.param({}, observed(JOB), {"phase": "Creating"}, False, id="there is a Service"),
    ],
)
def test_which(before: dict[str, Any], found: Observed, status: dict[str, Any] | None, expected: bool) -> None:
    job = mxjob().v1().workers(1).status(**before).job()
    assert can_defer(job, found, status) is expected
