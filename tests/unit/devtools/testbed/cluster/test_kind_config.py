"""kind's configuration, the registry's names, and the parsing of other programs' output."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.cluster import gobuild, kindcluster, lifecycle, nodeimage, registry, versions
from devtools.testbed.cluster.errors import ClusterError
from devtools.testbed.cluster.kindcluster import NodeRuntime
from devtools.testbed.cluster.registry import ImageName, parse_image_name
from devtools.testbed.cluster.settings import Settings

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
    document = yaml.safe_load(registry.registry_config())
    assert document["http"]["addr"] == f":{kindcluster.REGISTRY_PORT}"
    assert document["storage"]["filesystem"]["rootdirectory"] == registry.STORAGE


def test_kubeadms_images_by_their_short_names() -> None:
    listing = "W1121 warning: something\nregistry.k8s.io/etcd:3.6.5-0\nregistry.k8s.io/coredns/coredns:v1.12.1\n"
    assert nodeimage.pinned_images(listing) == {
        "etcd": "registry.k8s.io/etcd:3.6.5-0",
        "coredns": "registry.k8s.io/coredns/coredns:v1.12.1",
    }


def test_sandbox_image_is_read_from_kinds_configuration() -> None:
    assert nodeimage.sandbox_image('  sandbox_image = "registry.k8s.io/pause:3.10"\n') == "registry.k8s.io/pause:3.10"
    with pytest.raises(ClusterError):
        nodeimage.sandbox_image("")


def test_storing_containerd_is_toml_and_keeps_to_its_folders() -> None:
    document = tomllib.loads(nodeimage.containerd_config(Path("/w/root"), Path("/w/state")))
    assert (document["root"], document["state"]) == ("/w/root", "/w/state")
    assert document["grpc"]["address"] == "/w/state/containerd.sock"
    disabled = {"io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"}
    assert disabled | {"io.containerd.nri.v1.nri"} <= set(document["disabled_plugins"]), "it serves no other program"
    assert document["version"] == 3, "the version with these names"


def test_mmdebstrap_gets_the_hosts_own_sources() -> None:
    command = nodeimage.mmdebstrap_command(
        "minbase", ("a", "b"), "bookworm", Path("/t.tar"), ["deb http://m.example x main"]
    )
    assert command[-3:] == ["bookworm", "/t.tar", "deb http://m.example x main"]
    assert "--include=a,b" in command and "--skip=output/dev" in command


def test_patches_of_kubeadm_name_no_version_of_its_api() -> None:
    """kind converts maps of arguments for the version that this kubeadm reads only where a patch names none."""
    assert all("apiVersion" not in yaml.safe_load(patch) for patch in config()["kubeadmConfigPatches"])


def node_folder(folder: Path) -> Path:
    """Sources of node images: two versions of Kubernetes, and what all images have."""
    node = folder / "node"
    for name in ("go/kubernetes-1.37/go.sum", "go/kubernetes-1.34/go.sum", "go/etcd/go.mod", "files/etc/x", "setup.sh"):
        (node / name).parent.mkdir(parents=True, exist_ok=True)
        (node / name).write_text("1")
    return node


@pytest.mark.parametrize(
    ("changed", "images"),
    [
        ("setup.sh", {"1.37", "1.34"}),
        ("files/etc/x", {"1.37", "1.34"}),
        ("go/etcd/go.mod", {"1.37", "1.34"}),
        ("go/containerd/main.go", {"1.37", "1.34"}),
        ("go/kubernetes-1.37/go.sum", {"1.37"}),
        ("go/kubernetes-1.34/go.sum", {"1.34"}),
        ("go/helm/go.mod", set()),
    ],
)
def test_node_image_is_named_by_what_goes_into_it(tmp_path: Path, changed: str, images: set[str]) -> None:
    node = node_folder(tmp_path)
    by_minor = {
        minor: Settings(Path("/state"), tmp_path, "dljob", kubernetes=minor, node_dir=node)
        for minor in ("1.37", "1.34")
    }
    before = {minor: nodeimage.image_name(settings) for minor, settings in by_minor.items()}
    for minor, name in before.items():
        assert name.startswith(f"kindest/node:{versions.KUBERNETES[minor].version}-dljob-")
    (node / changed).parent.mkdir(exist_ok=True)
    (node / changed).write_text("2")
    assert {minor for minor, settings in by_minor.items() if nodeimage.image_name(settings) != before[minor]} == images
    for settings in by_minor.values():
        assert nodeimage.image_key(settings) in nodeimage.archive_path(settings).name


def test_node_image_depends_on_how_its_programs_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(Path("/state"), tmp_path, "dljob", node_dir=node_folder(tmp_path))
    before = nodeimage.image_key(settings)
    monkeypatch.setattr(gobuild, "CONTAINERD", dataclasses.replace(gobuild.CONTAINERD, tags=["no_cri"]))
    assert nodeimage.image_key(settings) != before


@pytest.mark.parametrize(
    ("chosen", "image", "earlier"),
    [
        (None, "kindest/node:v1.37.2-dljob-0000000000000000", True),
        (None, versions.KUBERNETES["1.37"].node_image, False),
        ("mine:1", "kindest/node:v1.37.2-dljob-0000000000000000", False),
    ],
)
def test_a_node_of_changed_build_files_is_noticed(
    tmp_path: Path, chosen: str | None, image: str, earlier: bool
) -> None:
    settings = Settings(Path("/state"), tmp_path, "dljob", chosen, kubernetes="1.37", node_dir=node_folder(tmp_path))
    assert lifecycle.is_earlier(settings, image) is earlier
    assert not lifecycle.is_earlier(settings, nodeimage.image_name(settings))


def test_older_node_images_of_the_same_kubernetes_are_forgotten(tmp_path: Path) -> None:
    settings = Settings(Path("/state"), tmp_path, "dljob", kubernetes="1.37")
    current = nodeimage.archive_path(settings)
    current.parent.mkdir()
    others = {"node-1.34-0000.tar.zst", "node-1.3-0000.tar.zst", "node-0000.tar.zst", "other.txt"}
    for name in (current.name, "node-1.37-0000.tar.zst", *others):
        current.with_name(name).write_text("")
    nodeimage.forget_older(settings)
    assert {p.name for p in current.parent.iterdir()} == {current.name, *others}
