"""MPIJobs with Kubernetes' own controller of Jobs: the launcher's life, its failure, and a Secret of somebody else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kubernetes import client
from support.live_jobs import UNTIL_ENDED, UNTIL_RELEASED, Cluster, shell_template


def mpijob(name: str, launcher: str, workers: int = 1, **run_policy: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "sshAuthMountPath": "/keys",
            "runPolicy": run_policy,
            "mpiReplicaSpecs": {
                "Launcher": {"restartPolicy": "Never", "template": shell_template(launcher, None, "main")},
                "Worker": {"replicas": workers, "template": shell_template(UNTIL_ENDED, None, "sshd")},
            },
        },
    }


def launchers(here: Cluster) -> list[str]:
    """The batch Jobs of the namespace."""
    batch = client.BatchV1Api(here.core.api_client)
    return [one.metadata.name for one in batch.list_namespaced_job(here.namespace).items]


def test_a_job_that_is_resumed_grows_and_is_cleaned_up(here: Cluster) -> None:
    script = f"cat /etc/mpi/hostfile; ls /keys; {UNTIL_RELEASED}"
    job = here.create(mpijob("grows", script, suspend=True, cleanPodPolicy="All"))
    job.wait(lambda s: s.get("state") == "Suspended", "its rest")
    assert (job.pods(), launchers(here)) == ([], [])
    job.patch({"spec": {"runPolicy": {"suspend": False}}})
    job.wait_running()
    pod = job.pod("launcher")
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
    address = f"grows-worker-0.grows.{here.namespace}.svc slots=1"
    seen = here.wait_log(pod["metadata"]["name"], "id_rsa.pub", "main")
    assert seen.split("\n")[:3] == [address, "authorized_keys", "id_rsa"]
    job.patch({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    job.wait(lambda s: s.get("replicas") == "3/3", "another worker")
    assert job.pod("launcher")["metadata"]["uid"] == pod["metadata"]["uid"]
    job.release("launcher")
    assert job.wait_end()["state"] == "Succeeded"
    here.wait_pods(job.uid, lambda pods: not pods, "no pod left")
    assert launchers(here) == []


def test_a_launcher_that_fails(here: Cluster) -> None:
    job = here.create(mpijob("fails", "echo no route; exit 3", backoffLimit=0, cleanPodPolicy="Running"))
    failure = job.wait_end()["failure"]
    assert (failure["container"], failure["exitCode"], failure["reason"]) == ("main", 3, "BackoffLimitExceeded")
    assert "no route" in failure["message"]
    (left,) = here.wait_pods(job.uid, lambda pods: len(pods) == 1, "the launcher with its log")
    assert left["metadata"]["name"] == failure["pod"]
    assert here.log(failure["pod"], "main") == "no route\n"


@pytest.mark.training
def test_the_failure_of_a_launcher_whose_key_ssh_ignores_quotes_ssh(here: Cluster) -> None:
    """The kubelet lets the group of ``fsGroup`` read the key, whatever the volume's mode is."""
    manifest = mpijob("group-key", "", backoffLimit=0, cleanPodPolicy="Running")
    del manifest["spec"]["sshAuthMountPath"]
    connect = 'python3 -c "import socket, sys; socket.create_connection((sys.argv[1], 2222), 2)"'
    answers = f"read -r host _ </etc/mpi/hostfile; until {connect} $host 2>/dev/null; do sleep 1; done"
    programs = {"Launcher": f"{answers}; exec mpirun --allow-run-as-root -n 1 true",
                "Worker": "ssh-keygen -q -t rsa -N '' -f /tmp/key && exec /usr/sbin/sshd -De -o HostKey=/tmp/key"}  # fmt: skip
    for type_, command in programs.items():
        spec = manifest["spec"]["mpiReplicaSpecs"][type_]["template"]["spec"]
        spec["securityContext"] = {"runAsUser": 0, "fsGroup": 1337}
        spec["containers"][0] |= {"image": "dljob/mpi-digits:1", "command": ["sh", "-c", command]}
    status = here.create(manifest).wait_end()
    assert status["state"] == "Failed"
    assert "Permissions 0640 for '/root/.ssh/id_rsa' are too open" in status["failure"]["message"]


def restarting(name: str, limit: int | None, grace: int = 0) -> dict[str, Any]:
    """With the default policy of mpi-operator, OnFailure: Kubernetes deletes the launcher's pod at the limit."""
    script = "sleep 1; echo could not reach host b; exit 17"
    job = mpijob(name, script, **({} if limit is None else {"backoffLimit": limit}))
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    launcher["restartPolicy"] = "OnFailure"
    launcher["template"]["spec"]["terminationGracePeriodSeconds"] = grace
    return job


@pytest.mark.parametrize(("limit", "grace"), [(0, 0), (0, 5), (1, 0), (2, 5)])
def test_the_words_of_a_launcher_outlive_its_pod(here: Cluster, limit: int, grace: int) -> None:
    job = here.create(restarting(f"words-{limit}-{grace}", limit, grace))
    status = job.wait_end()
    failure = status["failure"]
    assert (failure["container"], failure["exitCode"], failure["reason"]) == ("main", 17, "BackoffLimitExceeded")
    assert (failure["message"], failure["pod"].startswith(f"words-{limit}-{grace}-launcher-")) == (
        "could not reach host b",
        True,
    )
    here.wait_event(f"words-{limit}-{grace}", "Warning", "MPIJobFailed", "could not reach host b")
    assert status["retries"]["launcher-0"] >= max(limit, 1)
    here.wait_pods(job.uid, lambda pods: not any("launcher" in p["metadata"]["name"] for p in pods), "no launcher")


def test_a_launcher_that_crashes_says_why_meanwhile(here: Cluster) -> None:
    job = here.create(restarting("crashes", None))
    job.wait(lambda s: "could not reach host b" in str(s.get("reason")), "the words of its launcher")
    status = job.wait(lambda s: (s.get("retries") or {}).get("launcher-0", 0) >= 2, "two restarts")
    assert status["state"] != "Failed"
    here.wait_event("crashes", "Warning", "MPIJobRestarting", "exited with 17 (Error): could not reach host b")


def test_a_launcher_whose_pod_a_quota_denies(here: Cluster) -> None:
    quota = client.V1ResourceQuota(metadata={"name": "one"}, spec={"hard": {"pods": "1"}})
    here.core.create_namespaced_resource_quota(here.namespace, quota)
    manifest = mpijob("denied", UNTIL_RELEASED, pendingTimeoutSeconds=10)
    manifest["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"  # the quota is for the worker
    job = here.create(manifest)
    status = job.wait(lambda s: "FailedCreate" in str(s.get("reason")), "the cause")
    assert status["reason"].startswith(
        "batch Job denied-launcher: FailedCreate: Error creating: its pod is forbidden: "
    )
    assert "exceeded quota: one" in status["reason"]
    here.wait_event("denied", "Warning", "FailedCreatePod", "exceeded quota: one")
    time.sleep(15)  # longer than pendingTimeoutSeconds
    assert job.status["state"] == "Created"
    assert not any("Created 2 of 2" in message for _, _, message in here.events("denied"))
    here.core.delete_namespaced_resource_quota("one", here.namespace)
    assert job.wait_running()["reason"] == ""
    job.release("launcher")
    assert job.wait_end()["state"] == "Succeeded"


def test_running_keeps_the_hosts_of_a_job(here: Cluster) -> None:
    job = here.create(mpijob("keeps", UNTIL_RELEASED, cleanPodPolicy="Running"))
    job.wait_running()
    job.release("launcher")
    job.wait(lambda s: s.get("phase") == "Done", "its cleanup")
    here.wait_pods(job.uid, lambda pods: len(pods) == 1, "the launcher alone")
    assert "keeps-worker-0" in here.core.read_namespaced_config_map("keeps-config", here.namespace).data["hostfile"]
    assert here.core.read_namespaced_service("keeps", here.namespace)
    assert here.core.read_namespaced_secret("keeps-ssh", here.namespace)


def test_a_secret_of_somebody_else_is_left_alone(here: Cluster) -> None:
    theirs = client.V1Secret(metadata={"name": "waits-ssh"}, string_data={"ssh-privatekey": "theirs"})
    before = here.core.create_namespaced_secret(here.namespace, theirs)
    job = here.create(mpijob("waits", UNTIL_ENDED))
    status = job.wait(lambda s: "Secret/" in (s.get("reason") or ""), "the reason in the status")
    assert "Secret/waits-ssh: an object of that name exists and does not belong to this job" in status["reason"]
    after = here.core.read_namespaced_secret("waits-ssh", here.namespace)
    assert after.metadata.resource_version == before.metadata.resource_version
    assert launchers(here) == []


def test_a_queue_admits_a_job_evicts_it_and_admits_it_elsewhere(here: Cluster) -> None:
    """The updates that Kueue makes with topology-aware scheduling: pods wait at its gate until it opens it."""

    def update(suspend: bool, **template: Any) -> None:
        changed = {type_: {"template": {"spec": template}} for type_ in ("Launcher", "Worker")}
        job.patch({"spec": {"runPolicy": {"suspend": suspend}, "mpiReplicaSpecs": changed}})

    job = here.create(mpijob("queued", UNTIL_RELEASED, suspend=True, cleanPodPolicy="All"))
    job.wait(lambda s: s.get("state") == "Suspended", "its rest")
    update(False, nodeSelector={"kubernetes.io/os": "linux"}, schedulingGates=[{"name": "example.com/gate"}])
    gated = here.wait_pods(job.uid, lambda pods: len(pods) == 2, "both pods")
    assert [pod["spec"]["schedulingGates"] for pod in gated] == [[{"name": "example.com/gate"}]] * 2
    for pod in gated:
        opened = [{"op": "remove", "path": "/spec/schedulingGates"}]
        here.core.patch_namespaced_pod(pod["metadata"]["name"], here.namespace, opened)
    job.wait_running()
    update(True, nodeSelector=None, schedulingGates=None)
    here.wait_pods(job.uid, lambda pods: not pods, "no pods after the eviction")
    status = job.wait(lambda s: s.get("state") == "Suspended", "its rest")
    assert not any(replica.get("active") for replica in status["replicaStatuses"].values()), "Kueue keeps its quota"
    update(False, nodeSelector={"beta.kubernetes.io/os": "linux"})
    job.wait_running()
    assert [pod["spec"]["nodeSelector"] for pod in job.pods()] == [{"beta.kubernetes.io/os": "linux"}] * 2
    job.release("launcher")
    assert job.wait_end()["state"] == "Succeeded"
