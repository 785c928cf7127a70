"""MPIJobs: the golden environments, pods and objects of mpi-operator 0.8, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.services import build_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MPI, Resource, manifest_of, mpijob

OPEN_MPI = (
    "OMPI_MCA_orte_keep_fqdn_hostnames=true OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile "
    "OMPI_MCA_plm_rsh_args=-o:ConnectionAttempts=10 OMPI_MCA_orte_set_default_slots={0} "
    "PRTE_MCA_prte_keep_fqdn_hostnames=true PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile "
    "PRTE_MCA_plm_ssh_args=-o:ConnectionAttempts=10 PRTE_MCA_prte_set_default_slots={0}"
)
INTEL = (
    "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o:ConnectionAttempts=10 "
    "I_MPI_PERHOST="
)
MPICH = (
    "HYDRA_HOST_FILE=/etc/mpi/hostfile HYDRA_LAUNCH_EXTRA_ARGS=-o:ConnectionAttempts=10 "
    "HYDRA_LAUNCHER_EXTRA_ARGS=-o:ConnectionAttempts=10"
)
NO_GPU = "NVIDIA_VISIBLE_DEVICES= NVIDIA_DRIVER_CAPABILITIES="


def pod(resource: Resource, type_: str, index: int = 0) -> Any:
    return manifest_of(parse_job(resource, MPI), type_, index, framework=MPI)


def env(resource: Resource, type_: str) -> str:
    (container,) = pod(resource, type_)["spec"]["containers"]
    return " ".join(f"{one['name']}={one['value'].replace(' ', ':')}" for one in container["env"])


def objects(resource: Resource, running: tuple[int, ...] = ()) -> dict[str, Any]:
    job = parse_job(resource, MPI)
    cluster = {**build_cluster_spec(job, MPI), "running": {"Worker": list(running)}}
    return {one["kind"]: one for one in owned_objects.build(job, MPI, cluster)}


@pytest.mark.parametrize(
    ("spec", "golden"),
    [
        ({}, f"{OPEN_MPI.format(1)} {NO_GPU}"),
        ({"mpiImplementation": "OpenMPI", "slotsPerWorker": 4}, f"{OPEN_MPI.format(4)} {NO_GPU}"),
        ({"slotsPerWorker": 2**31 - 1}, f"{OPEN_MPI.format(2147483647)} {NO_GPU}"),
        ({"mpiImplementation": "Intel", "slotsPerWorker": 2}, f"{INTEL}2 {NO_GPU}"),
        ({"mpiImplementation": "MPICH", "slotsPerWorker": 2}, f"{MPICH} {NO_GPU}"),
        ({"runLauncherAsWorker": True}, OPEN_MPI.format(1)),
    ],
)
def test_the_launchers_environment(spec: Resource, golden: str) -> None:
    assert env(mpijob(**spec), "launcher") == f"K_MPI_JOB_ROLE=launcher {golden}"


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_a_worker_has_only_its_role(implementation: str) -> None:
    assert env(mpijob(mpiImplementation=implementation), "worker") == "K_MPI_JOB_ROLE=worker"


def test_only_the_first_container_has_the_environment_and_the_keys() -> None:
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"].append({"name": "proxy", "image": "p"})
    first, second = pod(job, "launcher")["spec"]["containers"]
    assert "env" in first
    assert not {"env", "volumeMounts"} & set(second)


@pytest.mark.parametrize(("path", "mode"), [(None, 0o600), ("/root/.ssh", 0o600), ("/home/mpiuser/.ssh", None)])
def test_the_keys(path: str | None, mode: int | None) -> None:
    job = mpijob(**({"sshAuthMountPath": path} if path else {}))
    for type_ in ("launcher", "worker"):
        spec = pod(job, type_)["spec"]
        volume = spec["volumes"][0]["secret"]
        assert volume["secretName"] == "pi-ssh"
        assert volume.get("defaultMode") == mode
        assert [(item["key"], item["path"]) for item in volume["items"]] == [
            ("ssh-privatekey", "id_rsa"),
            ("ssh-publickey", "id_rsa.pub"),
            ("ssh-publickey", "authorized_keys"),
        ]
        assert {"name": "ssh-auth", "mountPath": path or "/root/.ssh"} in spec["containers"][0]["volumeMounts"]


def test_only_the_launcher_has_the_list_of_hosts() -> None:
    spec = pod(mpijob(), "launcher")["spec"]
    assert {"name": "mpi-job-config", "mountPath": "/etc/mpi"} in spec["containers"][0]["volumeMounts"]
    assert spec["volumes"][1]["configMap"] == {
        "name": "pi-config",
        "items": [
            {"key": "hostfile", "path": "hostfile", "mode": 0o444},
            {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
        ],
    }
    assert [volume["name"] for volume in pod(mpijob(), "worker")["spec"]["volumes"]] == ["ssh-auth"]


@pytest.mark.parametrize(
    ("own", "command"),
    [
        ({}, ["/usr/sbin/sshd", "-De"]),
        ({"args": ["-x"]}, None),
        ({"command": ["/usr/sbin/sshd", "-De", "-f", "f"]}, ["/usr/sbin/sshd", "-De", "-f", "f"]),
    ],
)
def test_a_workers_command(own: Resource, command: list[str] | None) -> None:
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] |= own
    assert pod(job, "worker")["spec"]["containers"][0].get("command") == command


@pytest.mark.parametrize(
    ("as_worker", "type_", "index", "label"),
    [
        (False, "launcher", 0, None),
        (False, "worker", 0, "0"),
        (False, "worker", 1, "1"),
        (True, "launcher", 0, "0"),
        (True, "worker", 0, "1"),
        (True, "worker", 1, "2"),
    ],
)
def test_the_labels_of_mpi_operator(as_worker: bool, type_: str, index: int, label: str | None) -> None:
    labels = pod(mpijob(runLauncherAsWorker=as_worker), type_, index)["metadata"]["labels"]
    prefix = "training.kubeflow.org/"
    assert {name.removeprefix(prefix): text for name, text in labels.items() if name.startswith(prefix)} == {
        "operator-name": "mpi-operator",
        "job-name": "pi",
        "job-role": type_,
        **({"replica-index": label} if label else {}),
    }


def test_names() -> None:
    job = mpijob()
    (service,) = build_all(parse_job(job, MPI), MPI)
    assert service["metadata"]["name"] == "pi"
    assert service["spec"]["publishNotReadyAddresses"] is True
    for type_, name in (("launcher", "pi-launcher"), ("worker", "pi-worker-0")):
        made = pod(job, type_)
        assert (made["metadata"]["name"], made["spec"]["hostname"], made["spec"]["subdomain"]) == (name, name, "pi")
        assert made["spec"]["dnsConfig"]["searches"] == ["pi.default.svc.cluster.local"]


WORKERS = "pi-worker-0.pi.default.svc{0}pi-worker-1.pi.default.svc{0}"


@pytest.mark.parametrize(
    ("spec", "hostfile"),
    [
        ({"slotsPerWorker": 2}, WORKERS.format(" slots=2\n")),
        ({"mpiImplementation": "Intel"}, WORKERS.format(":1\n")),
        ({"mpiImplementation": "MPICH", "slotsPerWorker": 3}, WORKERS.format(":3\n")),
        (
            {"runLauncherAsWorker": True},
            "pi-launcher.pi.default.svc slots=1\n" + WORKERS.format(" slots=1\n"),
        ),
    ],
)
def test_the_hostfile(spec: Resource, hostfile: str) -> None:
    assert objects(mpijob(**spec))["ConfigMap"]["data"]["hostfile"] == hostfile


def test_the_hosts_that_run() -> None:
    """By name, as mpi-operator, and without slots."""
    job = mpijob(12, runLauncherAsWorker=True)
    assert objects(job, running=(2, 10))["ConfigMap"]["data"]["discover_hosts.sh"] == (
        "#!/bin/sh\n"
        "echo pi-launcher.pi.default.svc\n"
        "echo pi-worker-10.pi.default.svc\n"
        "echo pi-worker-2.pi.default.svc\n"
    )
    assert objects(mpijob())["ConfigMap"]["data"]["discover_hosts.sh"] == "#!/bin/sh\n"


def test_the_objects_have_the_label_of_mpi_operator() -> None:
    labels = {kind: made["metadata"]["labels"] for kind, made in objects(mpijob()).items()}
    assert {kind: of.get("app") for kind, of in labels.items()} == {"Secret": "pi", "ConfigMap": "pi"}


def test_the_secret_has_no_data_in_the_plan() -> None:
    secret = objects(mpijob())["Secret"]
    assert secret["metadata"]["name"] == "pi-ssh"
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert not {"data", "stringData"} & set(secret)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (mpijob(slotsPerWorker=0), "spec.slotsPerWorker is 0: it must be a whole number of at least 1"),
        (mpijob(slotsPerWorker=2**31), "spec.slotsPerWorker is 2147483648: it must be"),
        (mpijob(slotsPerWorker="2"), "spec.slotsPerWorker is '2': it must be"),
        (mpijob(runLauncherAsWorker="yes"), "spec.runLauncherAsWorker must be true or false"),
        (mpijob(mpiImplementation="openmpi"), "spec.mpiImplementation: 'openmpi' is none of OpenMPI, Intel, MPICH"),
        (
            mpijob(launcherCreationPolicy="Later"),
            "spec.launcherCreationPolicy: 'Later' is none of AtStartup, WaitForWorkersReady",
        ),
        (mpijob(sshAuthMountPath="ssh"), "spec.sshAuthMountPath: 'ssh' must be an absolute path"),
        (mpijob(sshAuthMountPath="/a:b"), "spec.sshAuthMountPath: '/a:b' must be"),
        (mpijob(sshAuthMountPath="/etc/mpi/"), "spec.sshAuthMountPath: '/etc/mpi/' must be"),
        (mpijob(worker=0), "spec.mpiReplicaSpecs.Worker.replicas is 0"),
        (mpijob(name="Pi"), "metadata.name: 'Pi' must start with a letter"),
        (mpijob(name="p" * 55), "metadata.name is 1 characters too long"),
        (mpijob(mpiReplicaSpecs={}), "the job has no replicas"),
    ],
)
def test_refusals(job: Resource, said: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        parse_job(job, MPI)
    assert said in "; ".join(refused.value.problems)


@pytest.mark.parametrize(
    ("type_", "change", "said"),
    [
        ("Launcher", {"replicas": 2}, "spec.mpiReplicaSpecs.Launcher.replicas is 2: a job has exactly 1 Launcher"),
        (
            "Worker",
            {"restartPolicy": "ExitCode"},
            "spec.mpiReplicaSpecs.Worker.restartPolicy: 'ExitCode' is none of Never, OnFailure",
        ),
        ("Launcher", {"restartPolicy": "Always"}, "Launcher.restartPolicy: 'Always' is none of Never, OnFailure"),
        (
            "Worker",
            {"template": {"spec": {"containers": []}}},
            "spec.mpiReplicaSpecs.Worker.template.spec.containers: a container is required",
        ),
    ],
)
def test_refusals_of_a_replica_spec(type_: str, change: Resource, said: str) -> None:
    job = mpijob()
    job["spec"]["mpiReplicaSpecs"][type_] |= change
    with pytest.raises(InvalidJob) as refused:
        parse_job(job, MPI)
    assert said in "; ".join(refused.value.problems)


def test_a_job_without_workers() -> None:
    assert parse_job(mpijob(worker=None, runLauncherAsWorker=True), MPI).total == 1


def test_the_longest_name() -> None:
    """`<name>-launcher` has 63 characters: an index that it does not have would not fit."""
    assert parse_job(mpijob(name="p" * 54), MPI).name == "p" * 54


def test_default_restart_policies() -> None:
    policies = {group.type: group.restart_policy for group in parse_job(mpijob(), MPI).groups}
    assert policies == {"Launcher": "OnFailure", "Worker": "Never"}
