"""Validation of runPolicy.startupPolicy by the CRDs, whose schema of it is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import pytorchjob

Job = dict[str, Any]


def with_policy(**policy: Any) -> Job:
    job = pytorchjob(1, 2, runPolicy={"startupPolicy": policy})
    job["metadata"] = {"name": job["metadata"]["name"]}
    return job


@pytest.mark.parametrize(
    "job",
    [
        with_policy(startupPolicyOrder="InOrder"),
        with_policy(dependsOn={"Worker": [{"replicaType": "Master"}]}),
        with_policy(
            startupPolicyOrder="AnyOrder", dependsOn={"worker": [{"replicaType": "Master", "condition": "Running"}]}
        ),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (with_policy(startupPolicyOrder="Ordered"), 'supported values: \\"AnyOrder\\", \\"InOrder\\"'),
        (with_policy(startupPolicyOrder="InOrder", dependsOn={}), "are two orders: remove one of them"),
        (with_policy(dependsOn={"Worker": [{"condition": "Ready"}]}), "replicaType: Required value"),
        (with_policy(dependsOn={"Worker": [{"replicaType": "Master", "condition": "Done"}]}), "Unsupported value"),
        (with_policy(dependsOn={"Worker": [{"replicaType": "worker"}]}), "a replica type waits for itself"),
        (with_policy(order="InOrder"), "unknown field"),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)
