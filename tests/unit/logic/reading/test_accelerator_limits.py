"""Which accelerators containers request, and under which name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.filter.gpu_limits import FilterModule
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import accelerator_limits
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ALPHA_GPU, GPU
from support.upstream_manifests import from_each_source, load

gpu_limits: Callable[..., Any] = FilterModule().filters()["gpu_limits"]


def spec(*resources: Any, init: Any = None) -> dict[str, Any]:
    made: dict[str, Any] = {"containers": [{"name": f"c{n}", "resources": r} for n, r in enumerate(resources)]}
    if init is not None:
        made["initContainers"] = [{"name": "first", "resources": init}]
    return made


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (spec(None), {}),
        (spec({"limits": {"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "4Mi"}}), {}),
        (spec({"limits": {GPU: 2}}), {"c0": {GPU: 2}}),
        (spec({"requests": {GPU: "2"}}), {"c0": {GPU: "2"}}),
        (spec({"requests": {ALPHA_GPU: 1}, "limits": {ALPHA_GPU: 2}}), {"c0": {ALPHA_GPU: 2}}),
        (spec({"limits": {GPU: 0}}, {"limits": {GPU: "0"}}), {}),
        (spec({"limits": {"cpu": 1}}, {"limits": {GPU: 1, "rdma/hca": 1}}), {"c1": {GPU: 1, "rdma/hca": 1}}),
        (spec({}, init={"limits": {GPU: 1}}), {"first": {GPU: 1}}),
        # malformed containers, which the API server rejects, must not raise
        (spec("lots", {"limits": ["gpu"]}), {}),
    ],
)
def test_what_containers_ask_for(pod: Any, found: Any) -> None:
    assert accelerator_limits.gpu_limits(pod) == found
    assert accelerator_limits.of_pod(pod) == {name for asked in found.values() for name in asked}


@pytest.mark.parametrize(
    ("advertised", "name"),
    [
        (None, ALPHA_GPU),  # the operator may not list nodes
        (set(), ALPHA_GPU),
        ({"rdma/hca"}, ALPHA_GPU),
        ({ALPHA_GPU}, ALPHA_GPU),
        ({ALPHA_GPU, GPU}, ALPHA_GPU),
        ({GPU}, GPU),
    ],
)
def test_the_alpha_name_is_replaced_only_where_no_node_has_it(advertised: set[str] | None, name: str) -> None:
    assert accelerator_limits.gpu_limits(spec({"limits": {ALPHA_GPU: 1}}), advertised) == {"c0": {name: 1}}
    assert accelerator_limits.alias("rdma/hca", advertised) == "rdma/hca"
    assert accelerator_limits.alias(GPU, advertised) == GPU


@pytest.mark.parametrize("order", [(ALPHA_GPU, GPU), (GPU, ALPHA_GPU)])
def test_with_both_names_the_clusters_name_takes_precedence(order: tuple[str, str]) -> None:
    counts = {ALPHA_GPU: 1, GPU: 2}
    asked = spec({"limits": {name: counts[name] for name in order}})
    assert accelerator_limits.gpu_limits(asked, {GPU}) == {"c0": {GPU: 2}}
    assert accelerator_limits.gpu_limits(asked) == {"c0": counts}


def test_what_nodes_advertise() -> None:
    nodes: list[dict[str, Any]] = [
        {"status": {"capacity": {"cpu": "4", GPU: "0"}}},
        {"status": {"capacity": {"rdma/hca": "1"}, "allocatable": {"rdma/hca": "0"}}},
        {},
    ]
    assert accelerator_limits.advertised(nodes) == {"rdma/hca"}


@pytest.mark.parametrize("path", from_each_source("tf-smoke-gpu.yaml"))
def test_the_filter_takes_a_pod_a_template_or_a_spec(path: Path) -> None:
    (entry,) = load(path)["spec"]["replica_specs"]
    for given in (entry["template"], entry["template"]["spec"], {"kind": "Pod", **entry["template"]}):
        assert gpu_limits(given) == {"tensorflow": {ALPHA_GPU: 1}}
        assert gpu_limits(given, [GPU]) == {"tensorflow": {GPU: 1}}


@pytest.mark.parametrize(("given", "message"), [([], "no containers"), ({"spec": {}}, "no containers")])
def test_the_filter_rejects_other_input(given: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        gpu_limits(given)
    with pytest.raises(AnsibleFilterError, match="must be a list"):
        gpu_limits(spec(), GPU)
