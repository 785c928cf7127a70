"""What a job waits for, in a word."""

from __future__ import annotations

from typing import Any

import pytest

from dljob_operator.engine.serving.waits import cause_of


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Waits in the queue team: couldn't assign flavors to pod set worker: insufficient quota for cpu", "Queue"),
        ("Kueue has deactivated its Workload a, set spec.active to true: too often", "Queue"),
        ('FailedCreatePod: pods "a-worker-0" is forbidden: exceeded quota: small, requested: pods=1', "Quota"),
        ("pod a-worker-0: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "Node"),
        ("1 of 2 pods of the gang exist, and the scheduler starts none before the others", "Node"),
        ('pod a-worker-0: ImagePullBackOff: Back-off pulling image "train"', "Image"),
        ('pod a-worker-0: FailedMount: MountVolume.SetUp failed for volume "data": secret "s" not found', "Volume"),
        ('pod a-worker-0: CreateContainerConfigError: secret "s" not found', "Configuration"),
        ("Pod/a-worker-0: an object of that name exists and does not belong to this job", "Name"),
        ("waiting until Pod/a-worker-0, which terminates, is gone", "Termination"),
        ("Worker starts once all replicas of Master are ready", "Order"),
        ('pods "a-worker-0" is forbidden: violates PodSecurity "restricted:latest"', "Admission"),
        ("something new", "Other"),
        ("", ""),
        (None, ""),
        (["Waits"], ""),
        ("x" * 100_000 + "exceeded quota", "Other"),
    ],
)
def test_the_sentence_gives_the_word(reason: Any, cause: str) -> None:
    assert cause_of({"state": "Running", "phase": "Creating", "reason": reason}) == cause


@pytest.mark.parametrize(
    "status",
    [
        {"state": "Failed"},
        {"state": "Succeeded"},
        {"state": "Running", "conditions": [{"type": "Running", "status": "True"}]},
        {"conditions": [{"type": "Failed", "status": "True"}]},
    ],
)
def test_a_job_that_runs_or_has_ended_waits_for_nothing(status: Any) -> None:
    assert cause_of({**status, "reason": "back-off after a failure: exceeded quota"}) == ""
    assert cause_of({**status, "conditions": [], "reason": "exceeded quota", "state": "Running"}) == "Quota"
