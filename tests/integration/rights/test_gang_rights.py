"""Gang scheduling against a real API server: the rights to PodGroups, and a cluster that does not serve them yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from integration.engine.support import crd, remove_crd
from integration.rights.conftest import Start
from integration.rights.recorder import Right
from integration.rights.support import granted, rules_of
from support.builders import pytorchjob

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.crds import install_crds


def definition(group: str, version: str) -> dict[str, Any]:
    """PodGroups with any fields."""
    made = crd("PodGroup", group, version)
    # Kubernetes protects *.x-k8s.io and asks for where the API was approved
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return made


NATIVE = "scheduling.k8s.io/v1beta1"
PLURAL = "podgroups"


def serves_native_groups(kube: KubeApi) -> bool:
    try:
        return any(one["name"] == "podgroups" for one in kube.get(f"/apis/{NATIVE}")["resources"])
    except ApiError as error:
        assert error.status == 404, error
        return False


def test_a_job_waits_for_the_groups_of_kubernetes_itself_and_uses_every_right(
    start: Start, kube: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy hides the API at first. Up to 1.36 it is missing, and the job waits for ever."""
    monkeypatch.setenv("DLJOB_GANG_SCHEDULER_NAME", "kubernetes")
    groups = f"{NATIVE}/podgroups"
    group = NATIVE.partition("/")[0]
    rights = {right for right in granted(rules_of("ClusterRole")) if (right.group, right.resource) == (group, PLURAL)}
    with start() as operator:
        operator.recorder.unserved = {NATIVE}
        operator.process.wait_ready()
        path = operator.create(pytorchjob(1, 2), "together")
        operator.until(lambda: "--feature-gates=GenericWorkload=true" in operator.status(path).get("reason", ""), "why")
        assert f"--runtime-config={NATIVE}=true" in operator.status(path)["reason"]
        assert f"the cluster has no podgroups.{group}, and jobs wait for it" in operator.log
        assert not operator.owned("pods", path)
        if not serves_native_groups(kube):
            return

        operator.recorder.lost = {Right(group, "podgroups", "create")}
        operator.recorder.unserved = set()
        operator.until(lambda: len(operator.owned("pods", path)) == 3, "it goes on")
        (made,) = operator.owned(groups, path)
        assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        assert made["spec"]["disruptionMode"] == {"all": {}}
        assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        for pod in operator.owned("pods", path):
            assert pod["spec"]["schedulingGroup"] == {"podGroupName": "together"}

        # before that the operator would create the group again, and there is no such class
        operator.until(lambda: f"watch synced resource=podgroups.{group}" in operator.log, "it sees the group")
        operator.patch(path, {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2, "priorityClass": "a"}}}})
        operator.until(
            lambda: operator.owned(groups, path)[0]["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2,
            "what may change is changed",
        )
        assert operator.owned(groups, path)[0]["metadata"]["uid"] == made["metadata"]["uid"]
        operator.until(
            lambda: Right(group, "podgroups", "watch") in operator.recorder.rights, "the group is watched by now"
        )
        operator.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
        operator.until(lambda: not operator.owned(groups, path), "a suspended job has none")
        operator.until(
            lambda: rights <= {right for right in operator.recorder.rights if right.group == group},
            "every right is used",
        )
        assert not operator.recorder.refused, operator.log
        assert operator.recorder.warnings == set(), "the API server warns of a request about groups, or their pods"


@pytest.mark.parametrize(
    ("scheduler", "group", "version"),
    [("volcano", "scheduling.volcano.sh", "v1beta1"), ("gang", "scheduling.x-k8s.io", "v1alpha1")],
)
def test_a_job_waits_for_the_definition_and_uses_every_right(
    start: Start,
    kube: KubeApi,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheduler: str,
    group: str,
    version: str,
) -> None:
    monkeypatch.setenv("DLJOB_GANG_SCHEDULER_NAME", scheduler)
    name = f"podgroups.{group}"
    groups = f"{group}/{version}/podgroups"
    rights = {right for right in granted(rules_of("ClusterRole")) if (right.group, right.resource) == (group, PLURAL)}
    try:
        with start() as operator:
            operator.process.wait_ready()
            job = pytorchjob(1, 2)
            path = operator.create(job, "together")
            operator.until(
                lambda: f"the cluster has no {name}; install" in operator.status(path).get("reason", ""), "why"
            )
            assert f"the cluster has no {name}, and jobs wait for it" in operator.log
            assert not operator.owned("pods", path)

            # the answer to the first creation is lost: whose is the object that has the name?
            operator.recorder.lost = {Right(group, "podgroups", "create")}
            (tmp_path / "crds").mkdir()
            (tmp_path / "crds" / "podgroups.yaml").write_text(yaml.safe_dump(definition(group, version)))
            install_crds(kube, tmp_path / "crds")
            operator.until(lambda: len(operator.owned("pods", path)) == 3, "it goes on")
            (made,) = operator.owned(groups, path)
            assert (made["metadata"]["name"], made["spec"]["minMember"]) == ("together", 3)
            assert all(pod["spec"]["schedulerName"] == scheduler for pod in operator.owned("pods", path))

            operator.patch(path, {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}})
            operator.until(lambda: operator.owned(groups, path)[0]["spec"]["minMember"] == 2, "it is changed")
            assert operator.owned(groups, path)[0]["metadata"]["uid"] == made["metadata"]["uid"]
            where = f"/apis/{group}/{version}/namespaces/{operator.watched}/podgroups/together"
            operator.until(lambda: "watch synced" in operator.log and name in operator.log, "it is watched")
            operator.until(
                lambda: Right(group, "podgroups", "watch") in operator.recorder.rights, "the group is watched by now"
            )
            kube.request("DELETE", where)
            operator.until(
                lambda: (
                    [one["metadata"]["uid"] != made["metadata"]["uid"] for one in operator.owned(groups, path)]
                    == [True]
                ),
                "a deleted group is made again",
            )
            operator.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
            operator.until(lambda: not operator.owned(groups, path), "a suspended job has none")
            operator.until(
                lambda: rights <= {right for right in operator.recorder.rights if right.group == group},
                "every right is used",
            )
            assert not operator.recorder.refused, operator.log
    finally:
        remove_crd(kube, name, version)
