"""One of five replicas runs out of memory, and the others end because of it: one restart, whatever the policy."""

from __future__ import annotations

from typing import Any

import pytest
from support.live_jobs import UNTIL_ENDED, Cluster, shell_template

SURVIVORS = {"master-0", "worker-0", "worker-1", "worker-3"}


def manifest(here: Cluster, policy: str, scope: str, survive: int = 9) -> dict[str, Any]:
    """The replicas meet in a folder of the node: in their first run one is lost, in their second all begin anew.

    The others end so many seconds after the lost one begins to use memory: with 0 about when, or before, it is killed.
    """
    folder = f"/meet/{here.namespace}"
    # the kernel may kill the shell's child only
    lose = f"touch {folder}/lost; for i in 1 2 3 4; do tail /dev/zero; code=$?; sleep 1; done; exit $code"
    if not survive:
        lose = f"touch {folder}/lost; exec tail /dev/zero"
    script = f"""
        mkdir -p {folder}; touch {folder}/first-$HOSTNAME
        if [ ! -e {folder}/again-$HOSTNAME ]; then
          touch {folder}/again-$HOSTNAME
          until [ $(ls {folder} | grep -c first) = 5 ]; do sleep 0.1; done
          case $HOSTNAME in
          *worker-2) {lose};;
          *) until [ -e {folder}/lost ]; do sleep 0.1; done; sleep {survive}; exit 1;;
          esac
        fi
        touch {folder}/second-$HOSTNAME
        case $HOSTNAME in
        *master-0) until [ $(ls {folder} | grep -c second) = 5 ]; do sleep 0.1; done;;
        *) {UNTIL_ENDED};;
        esac
    """
    template = shell_template(script, None)
    template["spec"]["volumes"] = [{"name": "meet", "hostPath": {"path": "/tmp"}}]
    (container,) = template["spec"]["containers"]
    container |= {"name": "pytorch", "volumeMounts": [{"name": "meet", "mountPath": "/meet"}]}
    container["resources"] = {"limits": {"memory": "24Mi"}}
    specs = {
        type_: {"replicas": count, "restartPolicy": policy, "template": template}
        for type_, count in (("Master", 1), ("Worker", 4))
    }
    run_policy = {"backoffLimit": 1, "restartScope": scope}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "loses"},
        "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": specs},
    }


@pytest.mark.parametrize("survive", [0, 9])
@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_the_survivors_do_not_count(here: Cluster, policy: str, survive: int) -> None:
    job = here.create(manifest(here, policy, "Replica", survive))
    status = job.wait_end()
    assert status["state"] == "Succeeded"
    loss = status["lastLoss"]
    assert (loss["replica"], loss["retryable"]) == ("worker-2", True)
    assert "exited with 137 (OOMKilled)" in loss["message"]
    assert set(loss["consequences"]) == SURVIVORS
    assert status["consequentRestarts"] == dict.fromkeys(SURVIVORS, 1)


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_the_job_restarts_once(here: Cluster, policy: str) -> None:
    job = here.create(manifest(here, policy, "Job"))
    status = job.wait_end()
    assert (status["state"], status["attempt"], status["retries"]) == ("Succeeded", 1, {"job": 1})
    here.wait_event("loses", "Warning", "PyTorchJobRestarting", "worker-2 exited with 137 (OOMKilled)")


@pytest.mark.parametrize("survive", [0, 9])
def test_under_never_the_cause_is_named(here: Cluster, survive: int) -> None:
    status = here.create(manifest(here, "Never", "Replica", survive)).wait_end()
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "OOMKilled")
    assert status["failure"]["pod"] == "loses-worker-2"
