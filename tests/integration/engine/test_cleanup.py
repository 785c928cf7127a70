"""`dljob-operator run --install-crds --cleanup-on-exit` deletes what it created, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from integration.engine.support import GROUP, PODS, SERVICES, Process, crd, remove_crd, until
from integration.engine.test_cli import _fails

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.lifecycle.cleanup import remove_created
from dljob_operator.engine.lifecycle.crds import CRDS, CREATED_BY, install_crds

OLD, NEW = f"oldjobs.{GROUP}", f"newjobs.{GROUP}"
MANAGED = {"app.kubernetes.io/managed-by": "dljob-operator"}


@pytest.fixture
def project(tmp_path: Path, roles: Path, kube: KubeApi) -> Iterator[Path]:
    """A directory with two definitions, neither of which the cluster has, and roles that do nothing."""
    for name in (OLD, NEW):
        remove_crd(kube, name)
    (tmp_path / "roles").symlink_to(roles / "roles")
    (tmp_path / "crds").mkdir()
    entries = []
    for kind in ("OldJob", "NewJob"):
        (tmp_path / "crds" / f"{kind}.yaml").write_text(yaml.safe_dump(crd(kind)))
        entry = {"group": GROUP, "version": "v1", "kind": kind, "role": "echo", "manageStatus": False}
        entries.append({**entry, "vars": {"record_file": str(tmp_path / "record")}})
    (tmp_path / "watches.yaml").write_text(yaml.safe_dump(entries))
    yield tmp_path
    for name in (OLD, NEW):
        remove_crd(kube, name)


def definition(kube: KubeApi, name: str) -> dict[str, Any] | None:
    try:
        return kube.get(CRDS.item("", name))
    except ApiError as error:
        assert error.status == 404
        return None


def job(kube: KubeApi, kind: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "j", **metadata}}
    return kube.request("POST", ApiResource(f"/apis/{GROUP}/v1", f"{kind.lower()}s").collection(namespace), body)


def belongings(kube: KubeApi, owner: dict[str, Any], namespace: str) -> None:
    """A pod and a Service of a job, as the operator makes them."""
    name = owner["kind"].lower()
    metadata = {
        "name": name,
        "labels": MANAGED,
        "ownerReferences": [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": "j",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    pod = {
        "nodeSelector": {"engine-test": "nowhere"},
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
    }
    for where, kind, spec in ((PODS, "Pod", pod), (SERVICES, "Service", {"clusterIP": "None"})):
        body = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}

        def accepted(where: ApiResource = where, body: dict[str, Any] = body) -> bool:
            try:
                kube.request("POST", where.collection(namespace), body)
            except ApiError as error:
                if error.status == 403 and "serviceaccount" in str(error):
                    return False  # a namespace that was just made may not have its service account yet
                raise
            return True

        until(accepted, f"the {kind} is accepted")


def names(kube: KubeApi, where: ApiResource, namespace: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in kube.get(where.collection(namespace))["items"]]


def started(project: Path, kubeconfig: Path, processes: list[Process], *arguments: str) -> Process:
    process = Process(project, "--install-crds", *arguments, KUBECONFIG=str(kubeconfig))
    processes.append(process)
    process.wait_ready()
    return process


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_what_it_created_goes_and_what_was_there_stays(
    kube: KubeApi, kubeconfig: Path, project: Path, namespace: str, processes: list[Process], signum: int
) -> None:
    kube.request("POST", CRDS.collection(), crd("OldJob"))
    until(lambda: served(kube, OLD), "the old kind is served")
    belongings(kube, job(kube, "OldJob", namespace), namespace)
    before = definition(kube, OLD)
    assert before is not None

    process = started(project, kubeconfig, processes, "--cleanup-on-exit")
    made = definition(kube, NEW)
    assert made is not None
    assert made["metadata"]["annotations"][CREATED_BY]
    belongings(kube, job(kube, "NewJob", namespace), namespace)
    process.process.send_signal(signum)
    assert process.process.wait(150) == 0, process.err

    assert definition(kube, NEW) is None
    kept = definition(kube, OLD)
    assert kept is not None
    assert kept["metadata"]["uid"] == before["metadata"]["uid"]
    assert CREATED_BY not in (kept["metadata"].get("annotations") or {})
    assert names(kube, ApiResource(f"/apis/{GROUP}/v1", "oldjobs"), namespace) == ["j"]
    assert names(kube, PODS, namespace) == ["oldjob"], "when it has ended all is gone, not only on its way"
    assert names(kube, SERVICES, namespace) == ["oldjob"]


def served(kube: KubeApi, name: str) -> bool:
    held = definition(kube, name) or {}
    return any(
        c["type"] == "Established" and c["status"] == "True" for c in held.get("status", {}).get("conditions") or ()
    )


def is_listed(kube: KubeApi, namespace: str) -> bool:
    try:
        return names(kube, ApiResource(f"/apis/{GROUP}/v1", "newjobs"), namespace) == []
    except ApiError as error:
        assert error.status in (404, 429)
        return False


def test_without_the_flag_everything_stays(
    kube: KubeApi, kubeconfig: Path, project: Path, processes: list[Process]
) -> None:
    assert started(project, kubeconfig, processes).end() == 0
    assert definition(kube, NEW)
    assert CREATED_BY not in (definition(kube, NEW) or {})["metadata"].get("annotations", {})


def test_killed_it_leaves_all_and_a_later_run_does_not_take_it_over(
    kube: KubeApi, kubeconfig: Path, project: Path, processes: list[Process]
) -> None:
    first = started(project, kubeconfig, processes, "--cleanup-on-exit")
    first.process.kill()
    first.process.wait()
    left = definition(kube, NEW)
    assert left is not None
    mark = left["metadata"]["annotations"][CREATED_BY]
    second = started(project, kubeconfig, processes, "--cleanup-on-exit")
    assert f"it stays when this process ends crd={NEW} created_by={mark}" in second.err
    assert second.end() == 0
    assert definition(kube, NEW)
    assert definition(kube, OLD)


def test_a_second_signal_ends_it_at_once(
    kube: KubeApi, kubeconfig: Path, project: Path, namespace: str, processes: list[Process]
) -> None:
    process = started(project, kubeconfig, processes, "--cleanup-on-exit")
    held = job(kube, "NewJob", namespace, finalizers=["example.com/never"])
    try:
        process.process.send_signal(signal.SIGTERM)
        until(lambda: (definition(kube, NEW) or {})["metadata"].get("deletionTimestamp"), "it cleans up")
        assert process.process.poll() is None, "it waits for the job"
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(10) == 128 + signal.SIGTERM
    finally:
        path = ApiResource(f"/apis/{GROUP}/v1", "newjobs").item(namespace, held["metadata"]["name"])
        kube.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")


def test_objects_that_outlive_the_timeout_are_reported(
    kube: KubeApi, tmp_path: Path, project: Path, namespace: str
) -> None:
    installed = install_crds(kube, project / "crds", mark=f"test_{os.getpid()}")
    assert [one.created for one in installed] == [True, True]
    until(lambda: is_listed(kube, namespace), "the kind can be listed")
    job(kube, "NewJob", namespace, finalizers=["example.com/never"])
    try:
        assert remove_created(kube, installed, timeout=3) == [NEW]
    finally:
        path = ApiResource(f"/apis/{GROUP}/v1", "newjobs").item(namespace, "j")
        kube.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")


def test_a_definition_that_somebody_made_anew_is_theirs(kube: KubeApi, project: Path, namespace: str) -> None:
    installed = install_crds(kube, project / "crds", mark="test")
    remove_crd(kube, NEW)
    kube.request("POST", CRDS.collection(), crd("NewJob"))
    until(lambda: served(kube, NEW), "their kind is served")
    until(lambda: is_listed(kube, namespace), "their kind can be listed")
    job(kube, "NewJob", namespace)
    assert remove_created(kube, installed) == []
    assert names(kube, ApiResource(f"/apis/{GROUP}/v1", "newjobs"), namespace) == ["j"]
    assert definition(kube, OLD) is None


def test_what_it_created_goes_even_where_it_never_came_to_run(kube: KubeApi, kubeconfig: Path, project: Path) -> None:
    (project / "crds" / "zz.yaml").write_text(yaml.safe_dump({**crd("BadJob"), "spec": {"group": "x"}}))
    said = _fails("--install-crds", "--cleanup-on-exit", cwd=project, KUBECONFIG=str(kubeconfig))
    assert "the API server returned an error" in said
    assert definition(kube, NEW) is None, said


def test_it_is_refused_where_it_cannot_mean_anything(kubeconfig: Path, project: Path) -> None:
    said = _fails("--cleanup-on-exit", cwd=project, KUBECONFIG=str(kubeconfig))
    assert "--install-crds" in said
    entries = yaml.safe_load((project / "watches.yaml").read_text())
    entries[0]["finalizer"] = {"name": "example.com/f", "vars": {"a": "b"}}
    (project / "watches.yaml").write_text(yaml.safe_dump(entries))
    said = _fails("--install-crds", "--cleanup-on-exit", cwd=project, KUBECONFIG=str(kubeconfig))
    assert f"the finalizers of {GROUP}/v1 OldJob" in said
