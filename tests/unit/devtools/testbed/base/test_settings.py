"""Two clusters with different folders have different names."""

from pathlib import Path

import pytest
from devtools.paths import ROOT
from devtools.testbed.base import versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import DEFAULT_NAME, Settings, cache_dir_from, image_minor, settings_from
from devtools.testbed.base.state import State, StateFile


def test_defaults() -> None:
    settings = settings_from({"HOME": "/home/someone"})
    assert settings.state_dir == ROOT / ".cluster"
    assert settings.name == DEFAULT_NAME
    assert settings.cache_dir == Path("/home/someone/.cache/dljob-operator")
    assert settings.node == "dljob-control-plane"
    assert settings.node_image is None


def test_cache_follows_the_environment() -> None:
    assert cache_dir_from({"HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/x/dljob-operator")
    assert cache_dir_from({"HOME": "/h", "XDG_CACHE_HOME": "/x", "DLJOB_CACHE": "/c"}) == Path("/c")


def test_another_folder_is_another_cluster(tmp_path: Path) -> None:
    first = settings_from({"HOME": "/h"})
    second = settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path)})
    names = (
        "name",
        "ident",
        "network",
        "registry",
        "bridge",
        "default_bridge",
        "nft_table",
        "cgroup",
        "run_dir",
    )
    for name in names:
        assert getattr(first, name) != getattr(second, name), name


def test_a_name_can_be_chosen(tmp_path: Path) -> None:
    env = {
        "HOME": "/h",
        "DLJOB_CLUSTER_DIR": str(tmp_path),
        "DLJOB_CLUSTER_NAME": "mine",
        "KIND_NODE_IMAGE": "a/b:c",
    }
    settings = settings_from(env)
    assert (settings.name, settings.node_image) == ("mine", "a/b:c")


def test_a_folder_keeps_the_name_of_its_cluster(tmp_path: Path) -> None:
    env = {"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path)}
    StateFile(tmp_path).save(State(name="mine"))
    assert settings_from(env).name == "mine"
    assert settings_from({**env, "DLJOB_CLUSTER_NAME": "mine"}).name == "mine"
    with pytest.raises(ClusterError) as caught:
        settings_from({**env, "DLJOB_CLUSTER_NAME": "other"})
    assert "is called mine" in str(caught.value)
    StateFile(tmp_path).remove()
    assert settings_from(env).name.startswith(f"{DEFAULT_NAME}-")


@pytest.mark.parametrize(
    ("image", "minor"),
    [
        ("kindest/node:v1.34.4-dljob-c1d67a82ffee29a8", "1.34"),
        ("kindest/node:v1.37.0@sha256:a1ed56cf", "1.37"),
        ("127.0.0.1:5000/node:v1.35.8", "1.35"),
        ("example/node:v1.37", ""),
        ("example/node:latest", ""),
        ("example/node:v1.37.0x", ""),
        ("", ""),
    ],
)
def test_the_kubernetes_of_a_node_image(image: str, minor: str) -> None:
    assert image_minor(image) == minor


OTHER = next(minor for minor in versions.KUBERNETES if minor != versions.DEFAULT_KUBERNETES)


@pytest.mark.parametrize(
    ("chosen", "image", "minor"),
    [
        ("", "", versions.DEFAULT_KUBERNETES),
        (OTHER, "", OTHER),
        ("", f"kindest/node:v{OTHER}.0-dljob-0", OTHER),
        (OTHER, f"kindest/node:v{OTHER}.0-dljob-0", OTHER),
        ("", "kindest/node:v1.20.0", versions.DEFAULT_KUBERNETES),
        (OTHER, "example/node:mine", OTHER),
    ],
    ids=["default", "chosen", "recorded", "both", "unknown", "no version"],
)
def test_the_version_of_kubernetes(tmp_path: Path, chosen: str, image: str, minor: str) -> None:
    StateFile(tmp_path).save(State(name="mine", node_image=image))
    assert settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path), "K8S": chosen}).kubernetes == minor


@pytest.mark.parametrize(
    ("chosen", "image", "says"),
    [
        ("1.20", "", "K8S is 1.20, which is none of 1.37, "),
        (OTHER, f"kindest/node:v{versions.DEFAULT_KUBERNETES}.0", f"has Kubernetes {versions.DEFAULT_KUBERNETES}"),
        (OTHER, "kindest/node:v1.20.0", "has Kubernetes 1.20"),
    ],
    ids=["unknown", "another", "an unknown one runs"],
)
def test_a_version_that_the_cluster_cannot_have(tmp_path: Path, chosen: str, image: str, says: str) -> None:
    StateFile(tmp_path).save(State(name="mine", node_image=image))
    with pytest.raises(ClusterError) as caught:
        settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path), "K8S": chosen})
    assert says in str(caught.value)


def test_an_empty_record_has_no_name(tmp_path: Path) -> None:
    StateFile(tmp_path).save(State())
    assert settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path)}).name.startswith(f"{DEFAULT_NAME}-")


def test_names_fit_the_kernels_limits() -> None:
    settings = Settings(Path("/very/" + "long/" * 60), Path("/c"), "n" * 40)
    assert len(settings.bridge) <= 15 and len(settings.default_bridge) <= 15
    assert len(str(settings.run_dir / "exec/containerd/containerd-debug.sock")) <= 107
