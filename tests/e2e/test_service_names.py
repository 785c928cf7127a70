"""The names of replicas for pods that are not the job's: a notebook, a metrics collector, a port-forward by label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED, Cluster, Job, kubectl, shell_template, until

SERVE = "mkdir /tmp/www; hostname >/tmp/www/index.html; httpd -f -p 2222 -h /tmp/www"
NOTEBOOK = "notebook"
SHORT = ["profiled-worker-0", "profiled-worker-1", "profiled-ps-0"]
SELECTOR = "training.kubeflow.org/job-name=profiled"


def tfjob(services: str) -> dict[str, Any]:
    replicas = {
        type_: {"replicas": count, "restartPolicy": "Never", "template": shell_template(SERVE, None, "tensorflow")}
        for type_, count in (("PS", 1), ("Worker", 2))
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "profiled", "annotations": {"dljob.operator/services": services}},
        "spec": {"tfReplicaSpecs": replicas},
    }


@pytest.fixture
def notebook(here: Cluster) -> Cluster:
    """A namespace with another pod."""
    container = {"name": NOTEBOOK, "image": SHELL_IMAGE, "command": ["sh", "-c", UNTIL_ENDED]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    here.core.create_namespaced_pod(here.namespace, {"metadata": {"name": NOTEBOOK}, "spec": spec})
    kubectl(here, "wait", f"pod/{NOTEBOOK}", "--for=condition=Ready", "--timeout=120s")
    return here


def reached(here: Cluster, name: str, patience: int = 60) -> bool:
    """Whether the notebook reads from a replica of that name what the replica says of itself.

    A name that is asked for too early may stay unknown for the seconds for which the cluster's DNS remembers that.
    """
    tries = f"i=0; until {get(name)}; do i=$((i+1)); [ $i -lt {patience} ] || exit 0; sleep 1; done"
    said = kubectl(here, "exec", NOTEBOOK, "--", "sh", "-c", f"({tries}) 2>/dev/null", timeout=patience * 5 + 30)
    return said.strip() == name.split(".")[0]


def get(name: str) -> str:
    """The command that prints what the replica of that name says of itself."""
    return f"printf 'GET /index.html HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {name} 2222 | grep ^profiled-"


def services(here: Cluster) -> dict[str, Any]:
    found = json.loads(kubectl(here, "get", "services", "-l", SELECTOR, "-o", "json"))["items"]
    return {one["metadata"]["name"]: one for one in found}


def test_with_one_service_a_replica_every_name_of_v1_resolves_in_the_namespace(notebook: Cluster) -> None:
    job = notebook.create(tfjob("per-replica"))
    job.wait_running()
    subdomain = job.pod("worker")["spec"]["subdomain"]
    assert set(services(notebook)) == {*SHORT, subdomain}
    for name in SHORT:
        assert reached(notebook, name)
    assert reached(notebook, f"profiled-worker-1.{notebook.namespace}.svc"), "as TF_CONFIG has it"
    assert reached(notebook, f"profiled-ps-0.{subdomain}")
    (container,) = job.pod("worker", 1)["spec"]["containers"]
    config = json.loads(next(one["value"] for one in container["env"] if one["name"] == "TF_CONFIG"))
    assert config["cluster"]["worker"] == [f"profiled-worker-{n}.{notebook.namespace}.svc:2222" for n in (0, 1)]
    # a process of the job reads them too
    ask = ("sh", "-c", get(f"profiled-ps-0.{notebook.namespace}.svc"))
    assert kubectl(notebook, "exec", "profiled-worker-1", "--", *ask).strip() == "profiled-ps-0"
    job.delete()


def test_without_them_the_success_target_and_the_full_names_do(notebook: Cluster) -> None:
    job = notebook.create(tfjob("per-job"))
    job.wait_running()
    subdomain = job.pod("worker")["spec"]["subdomain"]
    found = services(notebook)
    assert set(found) == {"profiled-worker-0", subdomain}
    assert [(one["name"], one["port"]) for one in found["profiled-worker-0"]["spec"]["ports"]] == [("tfjob-port", 2222)]
    assert reached(notebook, "profiled-worker-0")
    assert reached(notebook, f"profiled-worker-1.{subdomain}")
    assert reached(notebook, f"profiled-ps-0.{subdomain}.{notebook.namespace}.svc")
    assert not reached(notebook, "profiled-worker-1", patience=1)
    job.delete()


def test_what_an_orphaned_job_leaves_is_deleted_by_its_label_and_the_name_is_free(notebook: Cluster) -> None:
    job = notebook.create(tfjob("per-job"))
    job.wait_running()
    kubectl(notebook, "delete", "tfjobs.kubeflow.org/profiled", "--cascade=orphan")
    kubectl(notebook, "delete", "pods,services", "-l", SELECTOR, "--timeout=60s")
    again = notebook.create(tfjob("per-job"))
    again.wait_running()
    again.delete()


def test_the_operators_setting_is_for_new_jobs(own: Cluster, cluster: Path, namespace: str, tmp_path: Path) -> None:
    def manifest(name: str) -> dict[str, Any]:
        return {**tfjob("per-replica"), "metadata": {"name": name}}

    def state(job: Job) -> tuple[set[str], set[str]]:
        pods = {one["metadata"]["uid"] for one in job.pods()}
        return pods, {one["metadata"]["name"] for one in own.services(job.uid)}

    scope = ("--namespace", namespace)
    with OperatorProcess(cluster, tmp_path / "on.log", (*scope, "--services", "per-replica")) as operator:
        operator.wait_ready()
        before = own.create(manifest("before"))
        before.wait_running()
        created = state(before)
        assert len(created[1]) == 4
    with OperatorProcess(cluster, tmp_path / "off.log", scope) as operator:
        operator.wait_ready()
        after = own.create(manifest("after"))
        after.wait_running()
        assert len(state(after)[1]) == 2
        own.core.delete_namespaced_service("before-worker-1", namespace)
        until(lambda: state(before) == created)
