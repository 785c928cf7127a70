"""Queueing against a real API server without Kueue: the rights to Workloads, and a cluster that does not serve them yet.

The test does what Kueue would do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from integration.engine.support import crd, remove_crd
from integration.rights.conftest import Start
from integration.rights.recorder import Right
from integration.rights.support import Operator, granted, rules_of
from support.builders import pytorchjob

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.crds import install_crds

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
API = f"/apis/{GROUP}/{VERSION}"
WORKLOADS = f"{GROUP}/{VERSION}/workloads"
CLASSES = {"kueue": f"{API}/workloadpriorityclasses", "pods": "/apis/scheduling.k8s.io/v1/priorityclasses"}
NOW = "2026-01-01T00:00:00Z"


def definition(kind: str, scope: str = "Namespaced") -> dict[str, Any]:
    made = crd(kind, GROUP, VERSION)
    # Kubernetes protects *.x-k8s.io and asks for where the API was approved
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    made["spec"]["scope"] = scope
    if kind.endswith("Class"):
        plural = f"{kind.lower()}es"
        made["metadata"]["name"] = f"{plural}.{GROUP}"
        made["spec"]["names"]["plural"] = plural
    return made


DEFINITIONS = (
    definition("Workload"),
    definition("ResourceFlavor", "Cluster"),
    definition("WorkloadPriorityClass", "Cluster"),
)


def set_status(operator: Operator, path: str, conditions: Mapping[str, str], **fields: Any) -> None:
    (found,) = operator.owned(WORKLOADS, path)
    made = [
        {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": NOW}
        for type_, reason in conditions.items()
    ]
    where = f"{API}/namespaces/{operator.watched}/workloads/{found['metadata']['name']}/status"
    operator.patch(where, {"status": {"conditions": made, **fields}})


def admit(operator: Operator, path: str) -> None:
    (found,) = operator.owned(WORKLOADS, path)
    sets = [{**{k: one[k] for k in ("name", "count")}, "flavors": {"cpu": "spot"}} for one in found["spec"]["podSets"]]
    admission = {"clusterQueue": "all", "podSetAssignments": sets}
    set_status(operator, path, {"QuotaReserved": "Q", "Admitted": "A"}, admission=admission)


def test_a_job_waits_for_the_definition_and_uses_every_right(
    start: Start, kube: KubeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLJOB_KUEUE", "workloads")
    asked = {right for right in granted(rules_of("ClusterRole")) if right.group == GROUP}
    asked |= {Right("scheduling.k8s.io", "priorityclasses", "get")}
    pods = {"metadata": {"name": "test-kueue-rights"}, "value": 3}
    try:
        with start() as operator:
            operator.process.wait_ready()
            job = pytorchjob(1, 2)
            path = operator.create(job, "queued")
            operator.until(lambda: len(operator.owned("pods", path)) == 3, "it begins before it has a queue")
            operator.patch(path, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}})
            operator.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
            operator.until(lambda: operator.status(path).get("state") == "Suspended", "suspended")
            assert not operator.owned("pods", path)
            operator.patch(path, {"spec": {"runPolicy": {"suspend": False}}})
            missing = f"Waits in the queue q: the cluster has no workloads.{GROUP}; install Kueue"
            operator.until(lambda: missing in operator.status(path).get("reason", ""), "why")
            assert f"the cluster has no workloads.{GROUP}, and jobs wait for it" in operator.log

            (tmp_path / "crds").mkdir()
            for one in DEFINITIONS:
                (tmp_path / "crds" / f"{one['metadata']['name']}.yaml").write_text(yaml.safe_dump(one))
            install_crds(kube, tmp_path / "crds")
            flavor = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ResourceFlavor", "metadata": {"name": "spot"}}
            kube.request("POST", f"{API}/resourceflavors", {**flavor, "spec": {"nodeLabels": {"pool": "spot"}}})
            kube.request(
                "POST", CLASSES["pods"], {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **pods}
            )
            urgent = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "WorkloadPriorityClass",
                "metadata": {"name": "urgent"},
            }
            kube.request("POST", CLASSES["kueue"], {**urgent, "value": 7})

            operator.until(lambda: len(operator.owned(WORKLOADS, path)) == 1, "it queues")
            admit(operator, path)
            operator.until(lambda: len(operator.owned("pods", path)) == 3, "it is admitted")
            assert all(pod["spec"]["nodeSelector"]["pool"] == "spot" for pod in operator.owned("pods", path))

            operator.patch(path, {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "urgent"}}})
            operator.until(lambda: operator.owned(WORKLOADS, path)[0]["spec"].get("priority") == 7, "its class")
            operator.patch(path, {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": None}}})
            class_of = {"schedulingPolicy": {"priorityClass": pods["metadata"]["name"]}}
            before = operator.owned(WORKLOADS, path)[0]["metadata"]["uid"]
            operator.patch(path, {"spec": {"runPolicy": class_of}})
            operator.until(
                lambda: [one["metadata"]["uid"] != before for one in operator.owned(WORKLOADS, path)] == [True],
                "it asks for something else",
            )
            assert operator.owned(WORKLOADS, path)[0]["spec"]["priority"] == 3
            assert not operator.owned("pods", path)

            admit(operator, path)
            operator.until(lambda: len(operator.owned("pods", path)) == 3, "it is admitted again")
            set_status(operator, path, {"QuotaReserved": "Q", "Admitted": "A", "Evicted": "Preempted"})
            operator.until(
                lambda: "admission" not in operator.owned(WORKLOADS, path)[0]["status"], "it gives its quota back"
            )
            assert not operator.owned("pods", path)
            operator.until(lambda: asked <= operator.recorder.rights, "every right is used")
            assert not operator.recorder.refused, operator.log
    finally:
        for one in DEFINITIONS:
            remove_crd(kube, one["metadata"]["name"], VERSION)
        with contextlib.suppress(ApiError):
            kube.request("DELETE", f"{CLASSES['pods']}/{pods['metadata']['name']}")
