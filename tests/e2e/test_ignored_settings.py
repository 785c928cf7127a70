"""What a template sets and the operator sets too, in real pods: variables, hostname and subdomain, the full name."""

from __future__ import annotations

from typing import Any

from kubernetes import client
from support.live_jobs import UNTIL_RELEASED, Cluster, kubectl, shell_template

Resource = dict[str, Any]
SAY = 'echo "$RANK/$WORLD_SIZE $MASTER_ADDR $PET_NODE_RANK $PYTHONUNBUFFERED $MINE"'
CONTAINER = "pytorch"


def pytorchjob(name: str, **templates: tuple[int, Resource]) -> Resource:
    replicas = {
        type_: {"replicas": number, "restartPolicy": "Never", "template": template}
        for type_, (number, template) in templates.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"runPolicy": {"activeDeadlineSeconds": 180}, "pytorchReplicaSpecs": replicas},
    }


def template(script: str, *env: Resource, container: Resource | None = None, **spec: Any) -> Resource:
    made = shell_template(script, restart_policy=None, container=CONTAINER)
    made["spec"]["containers"][0].update(env=list(env), **(container or {}))
    made["spec"].update(spec)
    return made


def test_each_process_has_its_own_rank_whatever_the_template_says(here: Cluster) -> None:
    data = {"PET_NODE_RANK": "9", "PYTHONUNBUFFERED": "9"}
    settings = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data=data)
    here.core.create_namespaced_config_map(here.namespace, settings)
    own = template(
        f"{SAY}; {UNTIL_RELEASED}",
        {"name": "RANK", "value": "0"},
        {"name": "WORLD_SIZE", "value": "1"},
        {"name": "MASTER_ADDR", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "MASTER_PORT", "value": "23456"},
        {"name": "PYTHONUNBUFFERED", "value": "0"},
        {"name": "MINE", "value": "rank-$(RANK)"},
        container={"envFrom": [{"configMapRef": {"name": "settings"}}]},
    )
    job = here.create(pytorchjob("ranks", Master=(1, own), Worker=(2, own)))
    job.wait_running()
    pods = ("ranks-master-0", "ranks-worker-0", "ranks-worker-1")
    assert [here.wait_log(pod, "\n", CONTAINER).strip() for pod in pods] == [
        f"{rank}/3 ranks-master-0 {rank} 0 rank-{rank}" for rank in range(3)
    ]
    here.release("ranks-master-0", CONTAINER)
    assert job.wait_end()["state"] == "Succeeded"
    told = [(type_, message) for type_, reason, message in here.events("ranks") if reason == "IgnoredSettings"]
    assert len(told) == 1
    assert told[0][0] == "Warning"
    ignored = job.status["ignoredSettings"]
    assert set(ignored) == {"Master", "Worker"}
    assert set(ignored["Master"].partition(": ")[2].split(", ")) == {"WORLD_SIZE", "MASTER_ADDR"}
    assert set(ignored["Worker"].partition(": ")[2].split(", ")) == {"RANK", "WORLD_SIZE", "MASTER_ADDR"}
    assert told[0][1].endswith(f"Master: {ignored['Master']}; Worker: {ignored['Worker']}")
    assert "Ignored Settings:" in kubectl(here, "describe", "pytorchjob", "ranks")


SERVE = "mkdir /tmp/www; hostname >/tmp/www/index.html; httpd -p 8080 -h /tmp/www; sleep 120"
ASK = """
ask() {
  n=0
  until timeout 2 wget -q -O- "http://$1:8080/index.html" 2>/dev/null; do
    n=$((n + 1)); [ $n -lt 30 ] || exit 3; sleep 1
  done
}
ask coordinator.mesh
ask "$MASTER_ADDR"
hostname
"""


def test_a_template_keeps_the_names_that_the_job_does_not_need(here: Cluster) -> None:
    mesh: Resource = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mesh"}}
    mesh["spec"] = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"in-mesh": "yes"}}
    here.core.create_namespaced_service(here.namespace, mesh)
    master = template(SERVE, hostname="coordinator", subdomain="mesh")
    worker = template(ASK, hostname="member", subdomain="mesh")
    for one in (master, worker):
        one["metadata"] = {"labels": {"in-mesh": "yes"}}
    job = here.create(pytorchjob("own-names", Master=(1, master), Worker=(1, worker)))
    job.wait_running()
    here.wait_log("own-names-worker-0", "member", CONTAINER)
    assert here.log("own-names-worker-0", CONTAINER).split() == ["coordinator", "coordinator", "member"]
    assert "ignoredSettings" not in job.status


def test_a_pod_whose_full_name_is_too_long_starts(here: Cluster) -> None:
    own = template("hostname", setHostnameAsFQDN=True)
    name = "an-experiment-with-a-name-as-people-choose"
    long, short = (here.create(pytorchjob(one, Master=(1, own))) for one in (name, "f"))
    assert [job.wait_end()["state"] for job in (long, short)] == ["Succeeded"] * 2
    assert here.log(f"{name}-master-0", CONTAINER).strip() == f"{name}-master-0"
    assert "setHostnameAsFQDN" in long.status["ignoredSettings"]["Master"]
    full = here.log("f-master-0", CONTAINER).strip()
    if "ignoredSettings" in short.status:  # the test's namespace has a long name
        assert full == "f-master-0"
    else:
        assert full.startswith("f-master-0.pytorchjob-")
