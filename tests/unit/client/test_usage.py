"""What jobs hold and use."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from dljob import cli
from dljob.usage import Usage, measured_by_pod, usage_of

from .conftest import PODS, Cluster
from .test_cli import run


def pod(phase: str = "Running", node: str = "n", **resources: str) -> dict[str, Any]:
    wanted = {name.replace("gpu", "nvidia.com/gpu"): value for name, value in resources.items()}
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": wanted}}]}
    return {"metadata": {"namespace": "team", "name": "p"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod(gpu="2", cpu="500m", memory="1Gi"), Usage(2, 0, 0.5, 2**30)),
        (pod("Pending", "", gpu="2", cpu="1"), Usage(waiting_gpus=2)),
        (pod("Pending", gpu="2"), Usage(2)),
        (pod("Succeeded", gpu="2"), Usage()),
        (pod("Failed", gpu="2"), Usage()),
        ({}, Usage()),
    ],
)
def test_what_a_pod_holds(given: dict[str, Any], expected: Usage) -> None:
    assert usage_of(given, {}) == expected


def test_what_a_pod_uses() -> None:
    metrics = {
        "metadata": {"namespace": "team", "name": "p"},
        "containers": [{"usage": {"cpu": "250m", "memory": "1Mi"}}, {"usage": {"cpu": "1", "memory": "1Mi"}}, {}],
    }
    measured = measured_by_pod([metrics, {}])
    assert measured["team", "p"] == (Decimal("1.25"), 2 * 2**20)
    assert usage_of(pod(), measured).used_cpu == 1.25
    assert usage_of(pod("Succeeded"), measured).used_cpu is None


def test_unmeasured_pods_do_not_hide_measured_ones() -> None:
    assert Usage(1, used_cpu=1.0) + Usage(2) == Usage(3, used_cpu=1.0)
    assert (Usage() + Usage()).used_memory is None


@pytest.fixture
def busy(cluster: Cluster) -> Cluster:
    """Two jobs, of which one has a pod that waits; a pod of none; and eight GPUs."""
    gpu = {"requests": {"cpu": "2", "nvidia.com/gpu": "2"}}
    for name, labels, pods in (("small", {}, 1), ("large", {"dljob.operator/user": "ada"}, 3)):
        job = cluster.job(name, metadata={"labels": labels})
        for index in range(pods):
            made = cluster.pod(job, f"{name}-worker-{index}")
            made["spec"] = {"nodeName": f"node-{index}" if index < 2 else "", "containers": [{"resources": gpu}]}
    other = {"metadata": {"name": "web", "namespace": "other", "uid": "w"}, "status": {"phase": "Running"}}
    cluster.fake.add(("other", "pods"), {**other, "spec": {"nodeName": "node-0", "containers": [{"resources": gpu}]}})
    node = {"metadata": {"name": "node-0"}, "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "16"}}}
    cluster.fake.add(("", "nodes"), node)
    return cluster


def test_top(busy: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "top", "-A")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[1] == ["team", "pytorchjobs.kubeflow.org/large", "Created", "4", "(+2", "wait)", "-/4", "-/0", "2"]
    assert lines[2] == ["team", "pytorchjobs.kubeflow.org/small", "Created", "2", "-/2", "-/0", "1"]
    assert out.splitlines()[-1] == "GPUs: 8, of which jobs hold 6, other pods 2; 0 are free."
    assert err == "warning: The cluster measures no pods (it has no metrics-server): what jobs use is not shown.\n"
    out = run(capsys, "top")[1]
    assert "NAMESPACE" not in out and "GPUs:" not in out


def test_sums(busy: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in run(capsys, "top", "--by", "user,namespace")[1].splitlines()]
    assert [row[:4] for row in rows] == [
        ["USER", "NAMESPACE", "JOBS", "GPUS"],
        ["ada", "team", "1", "4"],
        ["-", "team", "1", "2"],
    ]
    by_node = json.loads(run(capsys, "top", "--by=node", "-o", "json")[1])["groups"]
    assert [(row["node"], row["jobs"], row["gpus"], row["waitingGpus"]) for row in by_node] == [
        ("node-0", 2, 4, 0),
        ("node-1", 1, 2, 0),
        ("", 1, 0, 2),
    ]
    data = json.loads(run(capsys, "top", "-A", "-o", "json")[1])
    assert data["gpus"] == {"total": 8, "jobs": 6, "others": 2, "free": 0}
    assert {one["name"]: one["gpus"] for one in data["jobs"]} == {"small": 2, "large": 4}


@pytest.mark.parametrize(
    ("denied", "said"),
    [
        ("GET pods", "You may not list pods in all namespaces."),
        ("GET nodes", "You may not list nodes in all namespaces."),
    ],
)
def test_without_a_right(busy: Cluster, capsys: pytest.CaptureFixture[str], denied: str, said: str) -> None:
    busy.denied = {denied}
    code, out, err = run(capsys, "top", "-A")
    assert code == 0 and said in err
    assert "GPUs: " not in out and "large" in out


@pytest.mark.parametrize("text", ["", "users", "user,,node"])
def test_a_key_that_does_not_exist(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["top", "--by", text])
    assert ended.value.code == 2
    assert "is no key: write some of namespace, user" in capsys.readouterr().err


def test_the_groups_of_the_command_line_are_those_of_the_sums() -> None:
    from dljob import usage

    assert tuple(usage.GROUPS) == cli.GROUPS
    assert PODS == ("team", "pods")
