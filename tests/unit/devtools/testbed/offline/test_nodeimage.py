"""The node image: its name by what goes into it, and what is read of its parts."""

import dataclasses
import tomllib
from pathlib import Path

import pytest
from devtools.testbed.base import gobuild, versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import nodeimage


def test_kubeadms_images_by_their_short_names() -> None:
    listing = "W1121 warning: something\nregistry.example/etcd:3.6.5-0\nregistry.example/coredns/coredns:v1.12.1\n"
    assert nodeimage.pinned_images(listing) == {
        "etcd": "registry.example/etcd:3.6.5-0",
        "coredns": "registry.example/coredns/coredns:v1.12.1",
    }


def test_sandbox_image_is_read_from_kinds_configuration() -> None:
    assert nodeimage.sandbox_image('  sandbox_image = "registry.example/pause:3.10"\n') == "registry.example/pause:3.10"
    with pytest.raises(ClusterError):
        nodeimage.sandbox_image("")


def test_storing_containerd_is_toml_and_keeps_to_its_folders() -> None:
    document = tomllib.loads(nodeimage.containerd_config(Path("/w/root"), Path("/w/state")))
    assert (document["root"], document["state"]) == ("/w/root", "/w/state")
    assert document["grpc"]["address"] == "/w/state/containerd.sock"
    disabled = {"io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"}
    assert disabled | {"io.containerd.nri.v1.nri"} <= set(document["disabled_plugins"]), "it serves no other program"
    assert document["version"] == 3, "the version with these names"


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
        minor: Settings(Path("/state"), tmp_path, "dljob", kubernetes=minor, node_dir=node, go_dir=node / "go")
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
    node = node_folder(tmp_path)
    settings = Settings(Path("/state"), tmp_path, "dljob", node_dir=node, go_dir=node / "go")
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
    assert nodeimage.is_earlier(settings, image) is earlier
    assert not nodeimage.is_earlier(settings, nodeimage.image_name(settings))


def test_older_node_images_of_the_same_kubernetes_are_forgotten(tmp_path: Path) -> None:
    settings = Settings(Path("/state"), tmp_path, "dljob", kubernetes="1.37")
    current = nodeimage.archive_path(settings)
    current.parent.mkdir()
    others = {"node-1.34-0000.tar.zst", "node-1.3-0000.tar.zst", "node-0000.tar.zst", "other.txt"}
    for name in (current.name, "node-1.37-0000.tar.zst", *others):
        current.with_name(name).write_text("")
    nodeimage.forget_older(settings)
    assert {p.name for p in current.parent.iterdir()} == {current.name, *others}
