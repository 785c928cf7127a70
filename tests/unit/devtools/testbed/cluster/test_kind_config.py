"""kind's configuration, the registry's names, and the parsing of other programs' output."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import kindcluster, registry
from devtools.testbed.cluster.kindcluster import NodeRuntime
from devtools.testbed.cluster.registry import ImageName, parse_image_name
from devtools.testbed.offline import network

SETTINGS = Settings(Path("/state"), Path("/cache"), "dljob")


def config(image: str | None = "kindest/node:x", runtime: NodeRuntime = NodeRuntime()) -> Any:  # noqa: B008
    return kindcluster.kind_config(SETTINGS, image, runtime)


def test_one_node_with_the_chosen_image_and_the_registry_folder() -> None:
    (node,) = config()["nodes"]
    assert node["image"] == "kindest/node:x"
    assert node["extraMounts"] == [
        {"hostPath": "/state/certs.d", "containerPath": "/etc/containerd/certs.d", "readOnly": True}
    ]
    assert "image" not in config(image=None)["nodes"][0]


def test_kubeadm_patches_name_their_document_and_hold_strings() -> None:
    patches = {p["kind"]: p for p in map(yaml.safe_load, config()["kubeadmConfigPatches"])}
    kubelet = patches["KubeletConfiguration"]
    assert kubelet["maxPods"] == 250 and kubelet["imageGCHighThresholdPercent"] == 100
    assert kubelet["featureGates"]["KubeletCrashLoopBackOffMax"], "the kubelet ignores crashLoopBackOff without it"
    cluster = patches["ClusterConfiguration"]
    for component in (cluster["etcd"]["local"], cluster["controllerManager"], cluster["scheduler"]):
        assert all(isinstance(value, str) for value in component["extraArgs"].values())
    served = {"feature-gates": "GenericWorkload=true", "runtime-config": "scheduling.k8s.io/v1beta1=true"}
    assert cluster["controllerManager"]["extraArgs"]["node-cidr-mask-size"] == str(network.NODE_MASK)
    assert cluster["apiServer"] == {"extraArgs": served}, "the rest of the API server has its default configuration"


@pytest.mark.parametrize(
    ("kubernetes", "image", "has_gangs"),
    [
        ("1.37", None, True),
        ("1.36", None, False),
        ("1.34", "kindest/node:v1.37.0", True),
        ("1.37", "kindest/node:v1.36.4@sha256:12", False),
        ("1.37", "mine:latest", False),
    ],
)
def test_the_groups_of_kubernetes_itself_where_it_has_them(kubernetes: str, image: str | None, has_gangs: bool) -> None:
    """An older control plane ends at a feature gate that it does not know."""
    settings = dataclasses.replace(SETTINGS, kubernetes=kubernetes, node_image=image)
    document = kindcluster.kind_config(settings, image or "dljob/node:1", NodeRuntime())
    patches = {p["kind"]: p for p in map(yaml.safe_load, document["kubeadmConfigPatches"])}
    parts = [patches["ClusterConfiguration"].get(name, {}) for name in ("apiServer", "controllerManager", "scheduler")]
    gates = [part.get("extraArgs", {}).get("feature-gates") for part in parts]
    assert gates == ["GenericWorkload=true" if has_gangs else None] * 3


@pytest.mark.parametrize("restrict", [False, True])
def test_containerd_patch_is_toml(restrict: bool) -> None:
    runtime = NodeRuntime(restrict_oom_score=restrict)
    cri = tomllib.loads(kindcluster.containerd_patch(runtime))["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["registry"]["config_path"] == "/etc/containerd/certs.d"
    assert cri.get("restrict_oom_score_adj", False) is restrict
    assert "containerd" not in cri, "kind's own runtime options"


@pytest.mark.parametrize("has_crun", [False, True])
def test_cgroup_v1_goes_without_systemd_on_both_sides(has_crun: bool) -> None:
    document = config(runtime=NodeRuntime(cgroup_v1=True, has_crun=has_crun))
    (patch,) = document["containerdConfigPatches"]
    cri = tomllib.loads(patch)["plugins"]["io.containerd.grpc.v1.cri"]
    expected = {"SystemdCgroup": False, **({"BinaryName": "/usr/bin/crun"} if has_crun else {})}
    assert cri["containerd"]["runtimes"]["runc"]["options"] == expected
    patches = {p["kind"]: p for p in map(yaml.safe_load, document["kubeadmConfigPatches"])}
    assert patches["KubeletConfiguration"]["cgroupDriver"] == "cgroupfs"
    assert patches["KubeletConfiguration"]["failCgroupV1"] is False, "since 1.35 the kubelet ends otherwise"


def test_cgroup_v2_keeps_kinds_driver() -> None:
    patches = {p["kind"]: p for p in map(yaml.safe_load, config()["kubeadmConfigPatches"])}
    assert not {"cgroupDriver", "failCgroupV1"} & set(patches["KubeletConfiguration"])


def test_hosts_file_asks_the_names_own_folder_first() -> None:
    hosts = tomllib.loads(kindcluster.hosts_toml("dljob-registry", "quay.io"))["host"]
    first, second = hosts
    assert first == "http://dljob-registry:5000/v2/quay.io" and hosts[first]["override_path"]
    assert second == "http://dljob-registry:5000" and "override_path" not in hosts[second]
    assert all("pull" in host["capabilities"] for host in hosts.values())


def test_a_registrys_port_is_no_colon_in_a_repository() -> None:
    (first, _) = tomllib.loads(kindcluster.hosts_toml("r", "reg.example:5000"))["host"]
    assert first == "http://r:5000/v2/reg.example-5000"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("busybox", ImageName("docker.io", "library/busybox", "latest")),
        ("busybox:1.36", ImageName("docker.io", "library/busybox", "1.36")),
        ("mxjob/mxnet:gpu", ImageName("docker.io", "mxjob/mxnet", "gpu")),
        ("docker.io/busybox", ImageName("docker.io", "library/busybox", "latest")),
        ("index.docker.io/a/b:1", ImageName("docker.io", "a/b", "1")),
        ("gcr.io/a/b/c:v1", ImageName("gcr.io", "a/b/c", "v1")),
        ("localhost/a", ImageName("localhost", "a", "latest")),
        ("reg.example:5000/a/b", ImageName("reg.example:5000", "a/b", "latest")),
        ("reg.example:5000/a/b:x", ImageName("reg.example:5000", "a/b", "x")),
    ],
)
def test_image_names_are_read_as_docker_reads_them(text: str, name: ImageName) -> None:
    assert parse_image_name(text) == name
    assert parse_image_name(str(name)) == name


@pytest.mark.parametrize("text", ["", "a/B:1", "a:", "a b", "a/b@sha256:" + "0" * 64, "a:ta/g", "/a", "a//b"])
def test_what_is_no_image_name_is_refused(text: str) -> None:
    with pytest.raises(ClusterError):
        parse_image_name(text)


def test_registry_configuration_is_yaml_for_the_port_that_the_node_asks() -> None:
    document = yaml.safe_load(registry.CONFIGURATION.read_text())
    assert document["http"]["addr"] == f":{kindcluster.REGISTRY_PORT}"
    assert document["storage"]["filesystem"]["rootdirectory"] == registry.STORAGE


def test_patches_of_kubeadm_name_no_version_of_its_api() -> None:
    """kind converts maps of arguments for the version that this kubeadm reads only where a patch names none."""
    assert all("apiVersion" not in yaml.safe_load(patch) for patch in config()["kubeadmConfigPatches"])
