"""The first engine saves the machine's settings, the last one restores them."""

from pathlib import Path

import pytest
from devtools.cluster import machine, sysctl


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    root = tmp_path / "sys"
    setting(root, "0")
    return root


def setting(root: Path, value: str | None = None) -> str:
    path = sysctl.path_of("net.ipv4.ip_forward", root)
    if value is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return path.read_text().strip()


def test_settings_stay_until_the_last_engine_ends(tmp_path: Path, kernel: Path) -> None:
    shared, points = tmp_path / "run" / "dljob", [str(tmp_path / "containerd")]
    shared.parent.mkdir()
    machine.enter("a", points, shared, kernel)
    setting(kernel, "1")
    machine.enter("b", points, shared, kernel)
    machine.enter("b", points, shared, kernel)
    assert machine.leave("a", shared, kernel) == []
    assert setting(kernel) == "1" and (tmp_path / "containerd").is_dir()
    assert machine.leave("b", shared, kernel) == []
    assert setting(kernel) == "0" and not (tmp_path / "containerd").exists()
    assert list(shared.parent.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "docker").mkdir()
    machine.enter("a", [str(tmp_path / "docker"), str(tmp_path / "new")], tmp_path / "shared", kernel)
    machine.leave("a", tmp_path / "shared", kernel)
    assert (tmp_path / "docker").is_dir() and not (tmp_path / "new").exists()


def test_a_mount_point_in_use_by_then_stays(tmp_path: Path, kernel: Path) -> None:
    machine.enter("a", [str(tmp_path / "docker")], tmp_path / "shared", kernel)
    (tmp_path / "docker" / "somebody").touch()
    assert machine.leave("a", tmp_path / "shared", kernel) == []
    assert (tmp_path / "docker" / "somebody").exists()


def test_leaving_without_having_entered_changes_nothing(tmp_path: Path, kernel: Path) -> None:
    setting(kernel, "1")
    assert machine.leave("a", tmp_path / "shared", kernel) == []
    assert setting(kernel) == "1"
