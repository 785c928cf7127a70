"""MPIJobs of v1: the golden environments, pods and objects of training-operator 1.9, and refusals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MPI, Resource, manifest_of, mpijob_v1
from support.fake_cluster import FakeCluster

LAUNCHER = (
    "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile "
    "OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_agent=/etc/mpi/kubexec.sh "
    "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile PRTE_MCA_plm_ssh_no_tree_spawn=1"
)
NO_GPU = "NVIDIA_VISIBLE_DEVICES= NVIDIA_DRIVER_CAPABILITIES="
INTEL = "I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh"
EXEC = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]}


def pod(resource: Resource, type_: str, index: int = 0) -> Any:
    return manifest_of(parse_job(resource, MPI), type_, index, framework=MPI)


def env(resource: Resource, type_: str) -> str:
    (container,) = pod(resource, type_)["spec"]["containers"]
    return " ".join(f"{one['name']}={one['value']}" for one in container.get("env", ()))


def objects(
    resource: Resource, running: tuple[int, ...] = (), created: tuple[int, ...] | None = None
) -> dict[str, Any]:
    job = parse_job(resource, MPI)
    present = {"created": running if created is None else created, "running": running}
    cluster = {**build_cluster_spec(job, MPI), **{state: {"Worker": list(of)} for state, of in present.items()}}
    return {one["kind"]: one for one in owned_objects.build(job, MPI, cluster)}


def template(resource: Resource, type_: str) -> Any:
    return resource["spec"]["mpiReplicaSpecs"][type_]["template"]["spec"]


def with_gpu(resource: Resource, name: str = "nvidia.com/gpu") -> Resource:
    template(resource, "Launcher")["containers"][0]["resources"] = {"limits": {name: 1}}
    return resource


def test_the_environment() -> None:
    assert env(mpijob_v1(), "launcher") == f"{LAUNCHER} {NO_GPU} {INTEL}"
    assert env(mpijob_v1(), "worker") == ""


@pytest.mark.parametrize(
    ("name", "hidden"), [("nvidia.com/gpu", False), ("example.com/gpu.shared", False), ("cpu", True)]
)
def test_a_launcher_with_a_gpu_sees_it_and_is_a_host(name: str, hidden: bool) -> None:
    job = with_gpu(mpijob_v1(), name)
    assert (NO_GPU in env(job, "launcher")) == hidden
    data = objects(job, running=(0,))["ConfigMap"]["data"]
    assert (data["hostfile"].splitlines()[0] == "pi-launcher slots=1") == (not hidden)
    assert ("echo pi-launcher:1\n" in data["discover_hosts.sh"]) == (not hidden)


def test_a_variable_of_the_template_does_not_change_how_the_hosts_are_reached() -> None:
    job = mpijob_v1()
    template(job, "Launcher")["containers"][0]["env"] = [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]
    assert env(job, "launcher").count("I_MPI_HYDRA_BOOTSTRAP=") == 1
    assert "I_MPI_HYDRA_BOOTSTRAP=rsh" in env(job, "launcher")


def test_the_launchers_pod() -> None:
    made = pod(mpijob_v1(), "launcher")
    assert (made["kind"], made["metadata"]["name"]) == ("Pod", "pi-launcher"), "a pod, not a batch Job"
    spec = made["spec"]
    assert (spec["serviceAccountName"], spec["restartPolicy"]) == ("pi-launcher", "Never")
    (delivery,) = spec["initContainers"]
    assert (delivery["name"], delivery["image"]) == ("kubectl-delivery", "kubeflow/kubectl-delivery:latest")
    assert delivery["imagePullPolicy"] == "IfNotPresent"
    assert {one["name"]: one["value"] for one in delivery["env"]} == {"TARGET_DIR": "/opt/kube", "NAMESPACE": "default"}
    resources = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
    assert delivery["resources"] == {"limits": resources, "requests": resources}
    mounts = [("mpi-job-kubectl", "/opt/kube"), ("mpi-job-config", "/etc/mpi")]
    for container in (delivery, spec["containers"][0]):
        assert [(one["name"], one["mountPath"]) for one in container["volumeMounts"]] == mounts
    kubectl, config = spec["volumes"]
    assert kubectl == {"name": "mpi-job-kubectl", "emptyDir": {}}
    assert config["configMap"]["name"] == "pi-config"
    modes = {item["path"]: item["mode"] for item in config["configMap"]["items"]}
    assert modes == {"kubexec.sh": 0o555, "hostfile": 0o444, "discover_hosts.sh": 0o555}


def test_a_workers_pod() -> None:
    spec = pod(mpijob_v1(), "worker", 1)["spec"]
    assert "serviceAccountName" not in spec, "a worker has no rights"
    (container,) = spec["containers"]
    assert container["command"] == ["sleep", "365d"]
    (volume,) = spec["volumes"]
    assert volume["configMap"]["items"] == [{"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555}]
    job = mpijob_v1()
    template(job, "Worker")["containers"][0]["command"] = ["serve"]
    assert pod(job, "worker")["spec"]["containers"][0]["command"] == ["serve"]


def test_the_labels() -> None:
    prefix = "training.kubeflow.org/"
    own = (
        {
            k.removeprefix(prefix): v
            for k, v in pod(mpijob_v1(), *which)["metadata"]["labels"].items()
            if k.startswith(prefix)
        }
        for which in (("launcher",), ("worker", 1))
    )
    launcher, worker = own
    common = {"operator-name": "mpijob-controller", "job-name": "pi"}
    assert launcher == {**common, "replica-type": "launcher", "job-role": "master"}
    assert worker == {**common, "replica-type": "worker", "replica-index": "1"}


def test_the_hosts() -> None:
    data = objects(mpijob_v1(worker=12, slotsPerWorker=2), running=(2, 10))["ConfigMap"]["data"]
    assert data["hostfile"].splitlines() == [f"pi-worker-{index} slots=2" for index in range(12)]
    assert data["discover_hosts.sh"] == "#!/bin/sh\necho pi-worker-10:2\necho pi-worker-2:2\n"


@pytest.mark.parametrize(("spec", "container"), [({}, []), ({"mainContainer": "worker"}, ["--container", "worker"])])
def test_the_script_runs_the_command_in_the_pod(spec: Resource, container: list[str], tmp_path: Path) -> None:
    """Open MPI passes the command of its daemon as several arguments, of which some are quoted for a shell."""
    script = objects(mpijob_v1(**spec))["ConfigMap"]["data"]["kubexec.sh"]
    (tmp_path / "kubectl").write_text('#!/bin/sh\nfor one in "$@"; do echo "<$one>"; done\n')
    (tmp_path / "kubectl").chmod(0o755)
    assert "/opt/kube/kubectl" in script
    (tmp_path / "kubexec.sh").write_text(script.replace("/opt/kube", str(tmp_path)))
    command = ["sh", str(tmp_path / "kubexec.sh"), "pi-worker-0", "PATH=/opt:$PATH ;", "orted", "-mca", "a", '"b c"']
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    words = ["exec", "pi-worker-0", *container, "--", "/bin/sh", "-c", 'PATH=/opt:$PATH ; orted -mca a "b c"']
    assert done.stdout.splitlines() == [f"<{word}>" for word in words]


def test_the_launchers_rights() -> None:
    """In no other pod: a worker that is not there yet may be the pod of another job."""
    made = objects(mpijob_v1(worker=12), running=(1,), created=(1, 10))
    assert set(made) == {"ConfigMap", "ServiceAccount", "Role", "RoleBinding"}, "no Secret"
    assert {made[kind]["metadata"]["name"] for kind in ("ServiceAccount", "Role", "RoleBinding")} == {"pi-launcher"}
    assert {one["metadata"]["labels"].get("app") for one in made.values()} == {"pi"}
    pods, run = made["Role"]["rules"]
    assert pods == {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    assert run == {**EXEC, "resourceNames": ["pi-worker-1", "pi-worker-10"]}
    binding = made["RoleBinding"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pi-launcher"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "pi-launcher", "namespace": "default"}]


@pytest.mark.parametrize("workers", [None, 0, 2])
def test_without_workers_that_run_the_launcher_may_run_commands_nowhere(workers: int | None) -> None:
    """A rule with an empty list of names would permit it in every pod of the namespace."""
    (rule,) = objects(mpijob_v1(worker=workers))["Role"]["rules"]
    assert rule["resources"] == ["pods"]


def test_the_launcher_starts_once_the_workers_are_ready() -> None:
    """Then its Role names all of them. training-operator creates it at once, and its init container waits."""
    fake_cluster = FakeCluster(mpijob_v1(), MPI)
    fake_cluster.settle()
    assert sorted(fake_cluster.pods) == ["pi-worker-0", "pi-worker-1"]
    assert fake_cluster.status["reason"] == "Launcher starts once all replicas of Worker are ready"
    fake_cluster.start()
    assert sorted(fake_cluster.pods) == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    without = FakeCluster(mpijob_v1(worker=None), MPI)
    without.settle()
    assert sorted(without.pods) == ["pi-launcher"]


def test_the_container_of_a_job_without_workers_is_quoted() -> None:
    """There is no template that has it."""
    script = objects(mpijob_v1(worker=None, mainContainer="a; reboot"))["ConfigMap"]["data"]["kubexec.sh"]
    assert "--container 'a; reboot' -- /bin/sh" in script


@pytest.mark.parametrize("given", ["", None])
def test_an_empty_account_is_none(given: str | None) -> None:
    job = mpijob_v1()
    template(job, "Launcher")["serviceAccountName"] = given
    assert pod(job, "launcher")["spec"]["serviceAccountName"] == "pi-launcher"
    assert objects(job)["RoleBinding"]["subjects"][0]["name"] == "pi-launcher"


def test_an_account_of_the_template_gets_the_rights() -> None:
    job = mpijob_v1()
    template(job, "Launcher")["serviceAccountName"] = "trainer"
    assert pod(job, "launcher")["spec"]["serviceAccountName"] == "trainer"
    made = objects(job)
    assert "ServiceAccount" not in made, "it is its user's, and may exist"
    assert made["RoleBinding"]["subjects"][0]["name"] == "trainer"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"slotsPerWorker": 0}, "spec.slotsPerWorker is 0: it must be a whole number of at least 1"),
        (
            {"mainContainer": "launcher"},
            "spec.mainContainer: the workers have no container 'launcher'; it must be one of worker, or empty for the "
            "first",
        ),
        (
            {"mainContainer": "worker; reboot"},
            "spec.mainContainer: the workers have no container 'worker; reboot'; it must be one of worker, or empty for "
            "the first",
        ),
        ({"mainContainer": ["worker"]}, "spec.mainContainer: the workers have no container ['worker']"),
    ],
)
def test_refused(spec: Resource, problem: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        parse_job(mpijob_v1(**spec), MPI)
    (said,) = refused.value.problems
    assert said.startswith(problem)


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never", "ExitCode"])
def test_every_restart_policy_is_one_of_v1(policy: str) -> None:
    job = mpijob_v1()
    for entry in job["spec"]["mpiReplicaSpecs"].values():
        entry["restartPolicy"] = policy
    assert {group.restart_policy for group in parse_job(job, MPI).groups} == {policy}


def test_groups_of_workers_and_of_the_launcher() -> None:
    """Each replica by its own template: the account and the GPUs of the launcher, the container of a worker."""
    job = mpijob_v1(worker=2)
    entries = job["spec"]["mpiReplicaSpecs"]
    own = {"containers": [{"name": "gpu", "image": "mpi:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    empty = {"containers": [{"name": "cpu", "image": "mpi:1"}], "serviceAccountName": "y"}
    entries["Launcher"]["groups"] = [
        {"name": "empty", "replicas": 0, "template": {"spec": empty}},
        {"name": "a", "replicas": 1, "template": {"spec": {**own, "serviceAccountName": "x"}}},
    ]
    entries["Worker"]["groups"] = [{"name": "b", "replicas": 1, "template": {"spec": own}}]
    made = objects(job)
    assert "ServiceAccount" not in made
    assert made["RoleBinding"]["subjects"][0]["name"] == "x"
    assert made["ConfigMap"]["data"]["hostfile"].startswith("pi-launcher ")
    assert NO_GPU not in env(job, "launcher")
    mounts = [pod(job, "worker", index)["spec"]["containers"] for index in (0, 1)]
    assert [(one["name"], bool(one["volumeMounts"])) for (one,) in mounts] == [("gpu", True), ("worker", True)]
    job["spec"]["mainContainer"] = "worker"
    with pytest.raises(InvalidJob, match="the workers have no container 'worker'; it must be one of gpu"):
        parse_job(job, MPI)
