"""Two clusters with different folders have different names."""

from pathlib import Path

import pytest
from devtools.cluster.errors import ClusterError
from devtools.cluster.settings import DEFAULT_NAME, REPO_ROOT, Settings, cache_dir_from, settings_from
from devtools.cluster.state import State, StateFile


def test_defaults() -> None:
    settings = settings_from({"HOME": "/home/someone"})
    assert settings.state_dir == REPO_ROOT / ".cluster"
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


def test_an_empty_record_has_no_name(tmp_path: Path) -> None:
    StateFile(tmp_path).save(State())
    assert settings_from({"HOME": "/h", "DLJOB_CLUSTER_DIR": str(tmp_path)}).name.startswith(f"{DEFAULT_NAME}-")


def test_names_fit_the_kernels_limits() -> None:
    settings = Settings(Path("/very/" + "long/" * 60), Path("/c"), "n" * 40)
    assert len(settings.bridge) <= 15 and len(settings.default_bridge) <= 15
    assert len(str(settings.run_dir / "exec/containerd/containerd-debug.sock")) <= 107
