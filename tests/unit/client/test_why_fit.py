"""Which node comes nearest."""

from __future__ import annotations

from typing import Any

import pytest
from dljob.view import pod_requests
from dljob.why import fit
from support.why_snapshots import node, pod

GPU = "nvidia.com/gpu"


def asks(spec: dict[str, Any] | None = None, **requests: str) -> dict[str, Any]:
    return pod(spec={"containers": [{"name": "x", "resources": {"requests": requests}}], **(spec or {})})


def affinity(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def labelled(name: str, **labels: str) -> dict[str, Any]:
    found = node(name)
    found["metadata"]["labels"] |= labels
    return found


@pytest.mark.parametrize(
    ("wanted", "nodes", "name", "misfits"),
    [
        (asks(cpu="4"), [node("a")], "a", []),
        (asks(cpu="9"), [node("a"), node("b", cpu="8500m")], "b", ["0.5 cpu short"]),
        (asks(cpu="9", memory="64Gi"), [node("a"), node("b", cpu="16")], "b", ["32 GiB of memory short"]),
        (asks({"nodeSelector": {"gpu": "yes"}}), [node("a")], "a", ["no label gpu=yes"]),
        (asks({"nodeSelector": {"gpu": "yes"}}, cpu="9"), [node("a"), labelled("b", gpu="yes")], "b", ["1 cpu short"]),
        (asks(affinity("In", "east")), [node("a")], "a", ["another node affinity"]),
        (asks(affinity("In", "east")), [node("a"), labelled("b", zone="east")], "b", []),
        (asks(affinity("NotIn", "east")), [labelled("a", zone="east"), node("b")], "b", []),
        (asks(affinity("Exists")), [node("a"), labelled("b", zone="x")], "b", []),
        (asks(affinity("DoesNotExist")), [labelled("a", zone="x"), node("b")], "b", []),
        (asks(affinity("Gt", "3")), [labelled("a", zone="3"), labelled("b", zone="4")], "b", []),
        (asks(affinity("Lt", "3")), [node("a"), labelled("b", zone="2")], "b", []),
        (asks(), [node("a", pods="0")], "a", ["no room for another pod"]),
    ],
)
def test_the_nearest(wanted: Any, nodes: list[Any], name: str, misfits: list[str]) -> None:
    found = fit.Nodes(nodes, ()).nearest(wanted)
    assert found is not None
    assert (found.node, [text for _, text in found.misfits]) == (name, misfits)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "a"}, True),
        ({"key": "gpu", "value": "b"}, False),
        ({"key": "gpu", "value": "a", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_taints(toleration: dict[str, str], fits: bool) -> None:
    tainted = node("a", spec={"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]})
    found = fit.Nodes([tainted], ()).nearest(asks({"tolerations": [toleration]} if toleration else None))
    assert found is not None
    assert bool(found.misfits) != fits


def test_pods_of_the_node_count_until_they_end() -> None:
    holds = asks({"nodeName": "a"}, cpu="6")
    over = {**holds, "status": {"phase": "Succeeded"}}
    found = fit.Nodes([node("a", pods="1")], [holds, over]).nearest(asks(cpu="4"))
    assert found is not None
    assert [text for _, text in found.misfits] == ["2 cpu short", "no room for another pod"]
    assert found.could_fit_when_empty
    assert fit.Nodes([], ()).nearest(asks()) is None


def test_init_containers_sidecars_and_overhead() -> None:
    def one(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "x", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [one("1"), {"name": "y", "resources": {"limits": {GPU: "2"}}}],
        "initContainers": [one("2", restartPolicy="Always"), one("4")],
        "overhead": {"cpu": "500m"},
    }
    found = pod_requests(spec)
    assert {key: str(amount.normalize()) for key, amount in found.items()} == {"cpu": "6.5", GPU: "2"}


def test_a_sidecar_that_starts_after_an_init_container_is_not_beside_it() -> None:
    def one(cpu: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [one("1")], "initContainers": [one("10"), one("1", restartPolicy="Always")]}
    assert pod_requests(spec) == {"cpu": 10}
