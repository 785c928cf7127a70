"""The registry of owned kinds."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import (
    OF_EVERY_JOB,
    OWNED_KINDS,
    OwnedKind,
    reduce_fields,
)


@pytest.mark.parametrize("kind", OWNED_KINDS.values(), ids=lambda kind: kind.kind)
def test_paths(kind: OwnedKind) -> None:
    assert paths.plural(kind.kind) == kind.plural
    assert paths.collection(kind.api_version, kind.kind, "n") == f"{kind.prefix}/namespaces/n/{kind.plural}"
    assert kind.prefix == {"": "/api/v1"}.get(kind.group, f"/apis/{kind.api_version}")


def test_every_job_owns_pods_services_and_config_maps() -> None:
    assert OF_EVERY_JOB == ("Pod", "Service", "ConfigMap")


@pytest.mark.parametrize(
    ("obj", "kept"),
    [
        ({}, {}),
        ({"spec": None}, {"spec": None}),
        ({"spec": {"nodeName": "n", "volumes": [1]}}, {"spec": {"nodeName": "n"}}),
        (
            {"spec": {"containers": [{"name": "a", "image": "i"}, {"image": "j"}]}, "kind": "Pod"},
            {"spec": {"containers": [{"name": "a"}, {}]}},
        ),
        (
            {
                "spec": {
                    "containers": [{"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}], "env": []}]
                }
            },
            {"spec": {"containers": [{"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}]}},
        ),
        (
            {
                "status": {
                    "containerStatuses": [{"name": "a", "allocatedResourcesStatus": [{"name": "nvidia.com/gpu"}]}]
                }
            },
            {
                "status": {
                    "containerStatuses": [{"name": "a", "allocatedResourcesStatus": [{"name": "nvidia.com/gpu"}]}]
                }
            },
        ),
        (
            {"status": {"phase": "Running", "conditions": [{"type": "Ready"}], "hostIP": "x"}},
            {"status": {"phase": "Running", "conditions": [{"type": "Ready"}]}},
        ),
    ],
)
def test_what_the_cache_keeps_of_a_pod(obj: dict[str, Any], kept: dict[str, Any]) -> None:
    fields = OWNED_KINDS["Pod"].cached
    assert fields is not None
    assert reduce_fields(obj, fields) == kept
