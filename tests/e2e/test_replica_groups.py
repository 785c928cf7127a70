"""Groups of replicas: pods of one type by several templates, in one rank space, and edits that leave the others alone."""

from __future__ import annotations

from typing import Any

import pytest
from support.live_jobs import UNTIL_ENDED, Cluster, Job, Resource, kubectl, shell_template

GROUP = "dljob.operator/replica-group"
# the pods on other nodes have other resources, which the process sees here
TELL = 'echo "rank=$RANK of $WORLD_SIZE master=$MASTER_ADDR:$MASTER_PORT host=$(hostname) gpu=$GPU"'


def template(script: str, gpu: str) -> Resource:
    made = shell_template(script, None, "pytorch")
    made["spec"]["containers"][0]["env"] = [{"name": "GPU", "value": gpu}]
    made["metadata"] = {"annotations": {"example.com/gpu": gpu}}
    return made


def torchjob(name: str, script: str, *, master: bool = True, **spec: Any) -> Resource:
    """Four workers: two of the group a100, one of the group h100, and one of none."""
    worker = {
        "replicas": 4,
        "restartPolicy": "OnFailure",
        "template": template(script, "none"),
        "groups": [
            {"name": "a100", "replicas": 2, "template": template(script, "A100")},
            {"name": "h100", "template": template(script, "H100")},
        ],
    }
    entries = {"Worker": worker}
    if master:
        entries["Master"] = {"restartPolicy": "OnFailure", "template": template(script, "none")}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": entries, **spec},
    }


def groups_of(job: Job) -> dict[str, str]:
    return {
        pod["metadata"]["name"].removeprefix(f"{job.name}-"): pod["metadata"]["labels"].get(GROUP, "")
        for pod in job.pods()
    }


def uids(job: Job) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in job.pods()}


def test_two_groups_in_one_rank_space(here: Cluster) -> None:
    # under load a node reports the last ends after the period in which the operator waits for them
    job = here.create(torchjob("ranks", TELL, runPolicy={"cleanPodPolicy": "None"}))
    pods = here.wait_pods(
        job.uid,
        lambda pods: len(pods) == 5 and all(pod["status"].get("phase") == "Succeeded" for pod in pods),
        "all five processes have ended with 0",
    )
    assert job.wait_end()["state"] == "Succeeded"
    told = {here.log(pod["metadata"]["name"], "pytorch").strip() for pod in pods}
    assert told == {
        "rank=0 of 5 master=ranks-master-0:23456 host=ranks-master-0 gpu=none",
        "rank=1 of 5 master=ranks-master-0:23456 host=ranks-worker-0 gpu=A100",
        "rank=2 of 5 master=ranks-master-0:23456 host=ranks-worker-1 gpu=A100",
        "rank=3 of 5 master=ranks-master-0:23456 host=ranks-worker-2 gpu=H100",
        "rank=4 of 5 master=ranks-master-0:23456 host=ranks-worker-3 gpu=none",
    }
    listed = kubectl(here, "get", "pods", "-l", f"{GROUP}=a100", "-o", "name").split()
    assert sorted(listed) == ["pod/ranks-worker-0", "pod/ranks-worker-1"]
    annotations = {pod["metadata"]["name"]: pod["metadata"]["annotations"].get("example.com/gpu") for pod in pods}
    assert annotations["ranks-worker-2"] == "H100"


def test_elastic_workers_come_after_the_groups(here: Cluster) -> None:
    """`kubectl scale` adds and removes workers by the entry's own template, and stops at the groups."""
    policy = {"minReplicas": 1, "maxReplicas": 6}
    job = here.create(torchjob("elastic", UNTIL_ENDED, master=False, elasticPolicy=policy))
    job.wait_running()
    before = uids(job)
    kubectl(here, "scale", "pytorchjob", job.name, "--replicas=5")
    job.wait(lambda s: s.get("replicas") == "5/5", "a fifth worker")
    assert before.items() <= uids(job).items()
    assert groups_of(job)["worker-4"] == ""
    kubectl(here, "scale", "pytorchjob", job.name, "--replicas=3")
    here.wait_pods(job.uid, lambda pods: len(pods) == 3, "three workers")
    assert uids(job).items() <= before.items()
    assert groups_of(job) == {"worker-0": "a100", "worker-1": "a100", "worker-2": "h100"}
    with pytest.raises(AssertionError, match="the groups have 3 replicas, and replicas is 2: raise replicas"):
        kubectl(here, "scale", "pytorchjob", job.name, "--replicas=2")
    assert job.get()["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3


def test_an_edit_of_a_group_replaces_its_pods(here: Cluster) -> None:
    job = here.create(torchjob("edited", UNTIL_ENDED))
    job.wait_running()
    before = uids(job)
    worker = job.get()["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["groups"][1]["template"]["spec"]["containers"][0]["env"][0]["value"] = "H200"
    job.patch({"spec": {"pytorchReplicaSpecs": {"Worker": worker}}})

    def replaced(pods: list[Resource]) -> bool:
        changed = {
            pod["metadata"]["name"] for pod in pods if before.get(pod["metadata"]["name"]) != pod["metadata"]["uid"]
        }
        return changed == {"edited-worker-2"} and all(pod["status"].get("phase") == "Running" for pod in pods)

    pods = here.wait_pods(job.uid, lambda pods: len(pods) == 5 and replaced(pods), "a new pod of the group h100")
    values = {
        pod["metadata"]["name"]: {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
        for pod in pods
    }
    assert values["edited-worker-2"]["GPU"] == "H200"
    assert (values["edited-worker-2"]["RANK"], values["edited-worker-3"]["RANK"]) == ("3", "4")


def test_a_failure_names_the_group(here: Cluster) -> None:
    manifest = torchjob("fails", UNTIL_ENDED)
    worker = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["restartPolicy"] = "Never"
    worker["groups"][0]["template"] = template('[ "$RANK" = 2 ] && exit 3; ' + UNTIL_ENDED, "A100")
    job = here.create(manifest)
    failure = job.wait_end()["failure"]
    assert failure["pod"] == "fails-worker-1"
    assert failure["message"] == "container pytorch of pod fails-worker-1 (group a100) exited with 3 (Error)"


def test_a_dljob_has_groups_in_the_short_form(here: Cluster) -> None:
    def short(name: str = "", **fields: Any) -> Resource:
        command = ["sh", "-c", 'echo "rank=$PROCESS_ID of $NUM_PROCESSES gpu=$GPU"']
        (container,) = shell_template("", None)["spec"]["containers"]
        made = {"image": container["image"], "command": command, "resources": container["resources"], **fields}
        return {"name": name, "env": [{"name": "GPU", "value": name}], **made} if name else made

    worker = short(count=3, groups=[short("a100"), short("h100")])
    job = here.create(
        {
            "apiVersion": "dljob.operator/v1",
            "kind": "DLJob",
            "metadata": {"name": "short"},
            "spec": {
                "framework": "jax",
                "replicas": {"Worker": worker},
                "runPolicy": {"cleanPodPolicy": "None"},
            },
        }
    )
    assert job.wait_end()["state"] == "Succeeded"
    told = [here.log(f"short-worker-{index}", "jax").strip() for index in range(3)]
    assert told == ["rank=0 of 3 gpu=a100", "rank=1 of 3 gpu=h100", "rank=2 of 3 gpu="]
    assert groups_of(job) == {"worker-0": "a100", "worker-1": "h100", "worker-2": ""}
