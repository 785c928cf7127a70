"""What the reason in the status says of the last try."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.refusal import (
    distinct,
    is_of_a_creation,
    is_same,
    without_pod_name,
)

QUOTA = "exceeded quota: q, requested: pods=1, used: pods={}, limited: pods=10"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"reason": "Pod/a-worker-0: exceeded quota"}, True),
        ({"reason": "Job/a-launcher: exceeded quota"}, True),
        ({"reason": "Service/a-worker-0: exceeded quota"}, True),
        ({"reason": "ConfigMap/a-config: exceeded quota"}, False),
        ({"reason": "PodGroup/a: denied"}, False),
        ({"reason": "creating pods: 3 of 4 are created"}, False),
        ({"reason": None}, False),
        ({}, False),
        (None, False),
        ("Pod/a: a status that a tenant wrote", False),
    ],
    ids=str,
)
def test_the_reason_of_a_refused_creation_names_an_object(status: Any, expected: bool) -> None:
    assert is_of_a_creation(status) is expected


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (f"Pod/a: {QUOTA.format(9)}", f"Pod/a: {QUOTA.format(10)}", True),
        (f"Pod/a: {QUOTA.format(9)}", f"Pod/b: {QUOTA.format(9)}", False),
        (f"Pod/a: {QUOTA.format(9)}", f"Pod/a: {QUOTA.format(9)}1", False),
        ("Pod/a: denied, used: much", "Pod/a: denied, used: little", False),
    ],
)
def test_what_others_use_of_a_quota_is_no_other_refusal(before: str, now: str, expected: bool) -> None:
    assert is_same(before, now) is expected


@pytest.mark.parametrize("end", ["", ", limited: pods=10"])
def test_a_reason_of_any_length_is_compared_at_once(end: str) -> None:
    """A tenant with the right to write the status may have written it."""
    reason = "Pod/a: denied" + ", used: pods=1" * 20_000 + end
    began = time.process_time()
    assert not is_same(reason, "Pod/a: denied")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        (["Pod/a: x", "Pod/b: x", "Pod/c: y"], ["Pod/a: x"]),
        (
            ["Pod/a: x", "Service/a: x", "Pod/b: x", "Job/a: x", "Service/b: x"],
            ["Pod/a: x", "Service/a: x", "Job/a: x"],
        ),
        (["ConfigMap/a: x", "ConfigMap/b: x"], ["ConfigMap/a: x", "ConfigMap/b: x"]),
        (["PodGroup/a: x", "Pod/a: x", "PodGroup/b: x"], ["PodGroup/a: x", "Pod/a: x", "PodGroup/b: x"]),
        (["no object", "no object"], ["no object", "no object"]),
    ],
)
def test_of_a_kind_with_many_objects_one_refusal_is_enough(messages: list[str], expected: list[str]) -> None:
    assert distinct(messages) == expected


@pytest.mark.parametrize(
    ("text", "one", "many"),
    [
        ('pods "a-x7k2p" is forbidden: no', "its pod is forbidden: no", "its pods are forbidden: no"),
        (
            'Error creating: pods "a-x7k2p" is forbidden: no',
            "Error creating: its pod is forbidden: no",
            "Error creating: its pods are forbidden: no",
        ),
        ('pods "a" already exists', "its pod already exists", "its pods already exists"),
        ('pods "a" isolated', "its pod isolated", "its pods isolated"),
        ("no pod is named", "no pod is named", "no pod is named"),
        ('of pods "a" is', 'of pods "a" is', 'of pods "a" is'),
        ("", "", ""),
    ],
)
def test_a_denied_pod_has_no_name(text: str, one: str, many: str) -> None:
    assert (without_pod_name(text), without_pod_name(text, many=True)) == (one, many)
