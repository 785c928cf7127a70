"""GPUs that a scheduler sees and no program does: what pods that ask for one are given, on a real node.

The ConfigMap is the one that tf-operator documents; it mounts directories that every node has.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from support.gpus import ALPHA, GPU, advertised
from support.live_jobs import UNTIL_ENDED, Cluster, v1alpha1_job
from support.operator_log import logs
from support.upstream_manifests import preferred

ROOT = Path(__file__).resolve().parents[2]
VOLUMES = {"nvidia-libs": "/usr/lib", "nvidia-bin": "/usr/bin"}
MOUNTS = {"nvidia-libs": "/usr/local/nvidia/lib64", "nvidia-bin": "/usr/local/nvidia/bin"}
VARIABLE = ("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
KEY = "controller_config_file.yaml"

pytestmark = pytest.mark.serial  # the ConfigMap of the common namespace affects every job


@pytest.fixture
def alpha(api: client.ApiClient, operator_log: Path) -> Iterator[None]:
    with advertised(client.CoreV1Api(api), operator_log, ALPHA):
        yield


@pytest.fixture
def gpu(api: client.ApiClient, operator_log: Path) -> Iterator[None]:
    with advertised(client.CoreV1Api(api), operator_log, GPU):
        yield


Write = Callable[[str], None]


@contextmanager
def applied(here: Cluster, operator_log: Path, manifest: dict[str, Any]) -> Iterator[Write]:
    """The ConfigMap; the function writes another text into it.

    Each is waited for until the operator has seen it: a job that comes at the same time may get what was before.
    """
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    changed = f"namespace={namespace} name={name} change="
    with logs(operator_log, f"{changed}created"):
        here.core.create_namespaced_config_map(namespace, manifest)

    def write(text: str) -> None:
        with logs(operator_log, f"{changed}updated"):
            here.core.patch_namespaced_config_map(name, namespace, {"data": {KEY: text}})

    try:
        yield write
    finally:
        with logs(operator_log, f"{changed}deleted"):
            here.core.delete_namespaced_config_map(name, namespace)


@pytest.fixture
def config(here: Cluster, operator_log: Path) -> Iterator[Write]:
    """tf-operator's ConfigMap, applied unchanged."""
    with applied(here, operator_log, preferred("tf-job-operator-config.yaml")) as write:
        yield write


def config_text() -> str:
    return str(preferred("tf-job-operator-config.yaml")["data"][KEY])


def without_a_mount_path(text: str) -> str:
    broken, count = re.subn(r"\n *mountPath: /usr/local/nvidia/bin", "", text)
    assert count == 1
    return broken


def host_paths(pod: Any) -> dict[str, str]:
    return {v["name"]: v["hostPath"]["path"] for v in pod["spec"]["volumes"] if "hostPath" in v}


def mounts(container: Any) -> dict[str, str]:
    """Those of the pod's own volumes: the service account's is Kubernetes'."""
    found = container.get("volumeMounts") or ()
    return {m["name"]: m["mountPath"] for m in found if "serviceaccount" not in m["mountPath"]}


def limits(container: Any) -> dict[str, str]:
    return dict(container["resources"].get("limits") or {})


def has_it_all(pod: Any, name: str) -> None:
    (container,) = (c for c in pod["spec"]["containers"] if c["name"] == name)
    assert host_paths(pod) == VOLUMES
    assert mounts(container) == MOUNTS
    assert VARIABLE in [(e["name"], e.get("value")) for e in container["env"]]


def has_nothing(pod: Any) -> None:
    assert host_paths(pod) == {}
    assert all(mounts(c) == {} and limits(c) == {} for c in pod["spec"]["containers"])


@pytest.mark.training
def test_upstream_manifest_trains_under_the_alpha_name(here: Cluster, config: Write, alpha: None) -> None:
    job = here.create(preferred("tf-smoke-gpu.yaml"))
    status = job.wait_end()
    assert (status["phase"], status["state"], status["reason"]) == ("Done", "Succeeded", "")
    pod = job.pod("master")
    has_it_all(pod, "tensorflow")
    assert limits(pod["spec"]["containers"][0]) == {ALPHA: "1"}
    found = re.findall(r"final: test_accuracy=([0-9.]+)", here.log(pod["metadata"]["name"], "tensorflow"))
    assert found
    assert float(found[-1]) >= 0.9


@pytest.mark.training
def test_and_on_nodes_that_advertise_only_todays_name(here: Cluster, config: Write, gpu: None) -> None:
    job = here.create(preferred("tf-smoke-gpu.yaml"))
    job.wait_running()
    pod = job.pod("master")
    has_it_all(pod, "tensorflow")
    assert limits(pod["spec"]["containers"][0]) == {GPU: "1"}


def test_the_example_lists_the_mounted_driver(here: Cluster, operator_log: Path, gpu: None) -> None:
    config_map, manifest = yaml.safe_load_all((ROOT / "examples" / "tensorflow-accelerators.yaml").read_text())
    with applied(here, operator_log, config_map):
        job = here.create(manifest)
        assert job.wait_end()["state"] == "Succeeded"
        assert here.log(job.pod("master")["metadata"]["name"], "tensorflow") == "/usr/local/nvidia/bin/kubelet\n"


LOOK = f"ls -d /usr/local/nvidia/bin/kubelet; echo path=$LD_LIBRARY_PATH; {UNTIL_ENDED}"


def gpu_job(name: str, resource: str = ALPHA, **scripts: Any) -> dict[str, Any]:
    """An MXJob whose workers want a GPU each, with a second container that wants none."""
    job = v1alpha1_job(name, **{"scheduler": UNTIL_ENDED, "server": (0, ""), **scripts})
    spec = next(e for e in job["spec"]["replicaSpecs"] if e["mxReplicaType"] == "WORKER")["template"]["spec"]
    (container,) = spec["containers"]
    beside = copy.deepcopy(container) | {"name": "beside", "command": ["sh", "-c", UNTIL_ENDED]}
    container["resources"] = {"limits": {resource: 1}}
    spec["containers"].append(beside)
    return job


def test_exactly_what_asks_for_a_gpu_sees_the_nodes_directory(here: Cluster, config: Write, gpu: None) -> None:
    job = here.create(gpu_job("sees", worker=LOOK))
    other = here.create(v1alpha1_job("asks-for-none"))
    job.wait_running()
    other.wait_running()
    worker = job.pod("worker")
    has_it_all(worker, "mxnet")
    log = here.wait_log(worker["metadata"]["name"], "path=")
    assert log.splitlines() == ["/usr/local/nvidia/bin/kubelet", f"path={VARIABLE[1]}"]
    beside = next(c for c in worker["spec"]["containers"] if c["name"] == "beside")
    assert (mounts(beside), limits(beside), beside.get("env")) == ({}, {}, None)
    for pod in (job.pod("scheduler"), *other.pods()):
        has_nothing(pod)


def test_a_changed_configuration_is_picked_up_by_the_next_pod(here: Cluster, config: Write, gpu: None) -> None:
    job = here.create(gpu_job("changes", worker=(2, UNTIL_ENDED)))
    job.wait_running()
    before = {p["metadata"]["uid"] for p in job.pods()}
    config(config_text().replace("hostPath: /usr/lib", "hostPath: /usr/share"))
    here.core.delete_namespaced_pod(job.pod("worker", 1)["metadata"]["name"], here.namespace)
    here.wait_pods(
        job.uid,
        lambda pods: (
            len([p for p in pods if not p["metadata"].get("deletionTimestamp")]) == 3
            and len({p["metadata"]["uid"] for p in pods} - before) == 1
        ),
        "a new worker in the place of the deleted one",
    )
    assert host_paths(job.pod("worker", 0)) == VOLUMES
    assert host_paths(job.pod("worker", 1)) == {**VOLUMES, "nvidia-libs": "/usr/share"}
    assert len({p["metadata"]["uid"] for p in job.pods()} & before) == 2, "a pod was restarted for it"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda: without_a_mount_path(config_text()), f"accelerators[{ALPHA}].volumes[1].mountPath is missing"),
        (lambda: "accelerators: [\n", "is not valid YAML"),
    ],
    ids=["key", "yaml"],
)
def test_a_broken_configuration_is_waited_for(
    here: Cluster, config: Write, gpu: None, broken: Callable[[], str], says: str
) -> None:
    config(broken())
    job = here.create(gpu_job("waits"))
    status = job.wait(lambda s: bool(s.get("reason")), "a reason")
    assert says in status["reason"]
    assert status["reason"].startswith(f"ConfigMap default/tf-job-operator-config, data.{KEY}")
    assert (status["phase"], status["state"], job.pods()) == ("Creating", "Running", [])
    # other jobs are not delayed
    other = here.create(v1alpha1_job("goes-on"))
    other.wait_running()
    assert here.wait_event("waits", "Warning", "FailedCreatePod", says) == status["reason"]

    config(config_text())
    status = job.wait_running()
    assert status["reason"] == ""
    has_it_all(job.pod("worker"), "mxnet")
    assert len([e for e in here.events("waits") if e[0] == "Warning"]) == 1


def play(here: Cluster, tmp_path: Path, manifest: dict[str, Any], **environment: str) -> str:
    """What `ansible-playbook --check --diff` would do with a job; nothing of it is kept."""
    manifest["metadata"]["namespace"] = here.namespace
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    bin_ = Path(sys.executable).parent
    command = [str(bin_ / "ansible-playbook"), "playbooks/reconcile.yml", "-e", f"@{file}", "--check", "--diff"]
    more = {"KUBECONFIG": str(here.kubeconfig), "PATH": f"{bin_}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **more, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def alone(cluster: Path, namespace: str, crds: None) -> Cluster:
    """A namespace for what needs no operator."""
    return Cluster(cluster, namespace)


@pytest.mark.parametrize(
    ("cloud", "path"), [("gke", "/home/kubernetes/bin/nvidia/lib"), ("azure", "/usr/lib/nvidia-384")]
)
def test_a_clouds_preset_stands_in_for_the_configuration(
    alone: Cluster, alpha: None, tmp_path: Path, cloud: str, path: str
) -> None:
    shown = play(alone, tmp_path, gpu_job("preset"), DLJOB_CLOUD=cloud)
    assert f"path: {path}\n" in shown
    assert f"{ALPHA}: 1" in shown


def test_without_an_engine_everything_is_found_too(alone: Cluster, gpu: None, tmp_path: Path) -> None:
    manifest = preferred("tf-job-operator-config.yaml")
    server = tmp_path / "server.py"
    server.write_text("print('the operator has a server of its own')\n")
    manifest["metadata"]["namespace"] = alone.namespace
    text = config_text().replace("/opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py", str(server))
    manifest["data"][KEY] = text
    alone.core.create_namespaced_config_map(alone.namespace, manifest)
    job = preferred("tf-smoke-gpu.yaml")
    job["spec"]["replica_specs"].append({"replicas": 1, "tfReplicaType": "PS"})
    # the operator's own namespace comes before the default one
    shown = play(alone, tmp_path, job, POD_NAMESPACE=alone.namespace, DLJOB_CLOUD="gke")
    for wanted in ("path: /usr/lib\n", f"{GPU}: 1", "the operator has a server of its own"):
        assert wanted in shown
    assert shown.count(ALPHA) == 1, "once in the job itself, and in none of its pods"
    assert "kubernetes/bin" not in shown


def test_a_cloud_that_there_is_not(alone: Cluster, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="DLJOB_CLOUD: 'aws' is neither gke nor azure"):
        play(alone, tmp_path, gpu_job("nowhere"), DLJOB_CLOUD="aws")
