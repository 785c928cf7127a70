"""The first engine saves the machine's settings, the last one restores them, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from devtools.testbed.offline import host


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    root = tmp_path / "sys"
    setting(root, "0")
    return root


def setting(root: Path, value: str | None = None) -> str:
    path = host.path_of("net.ipv4.ip_forward", root)
    if value is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return path.read_text().strip()


def free_block(others: list[str]) -> str:
    return next(block for block in ("first", "second") if block not in others)


def test_settings_stay_until_the_last_engine_ends(tmp_path: Path, kernel: Path) -> None:
    shared, points = tmp_path / "run" / "dljob", [str(tmp_path / "containerd")]
    shared.parent.mkdir()
    host.enter("a", points, free_block, shared, kernel)
    setting(kernel, "1")
    host.enter("b", points, free_block, shared, kernel)
    host.enter("b", points, free_block, shared, kernel)
    assert host.leave("a", shared, kernel) == []
    assert setting(kernel) == "1" and (tmp_path / "containerd").is_dir()
    assert host.leave("b", shared, kernel) == []
    assert setting(kernel) == "0" and not (tmp_path / "containerd").exists()
    assert list(shared.parent.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path, kernel: Path) -> None:
    (tmp_path / "docker").mkdir()
    host.enter("a", [str(tmp_path / "docker"), str(tmp_path / "new")], free_block, tmp_path / "shared", kernel)
    host.leave("a", tmp_path / "shared", kernel)
    assert (tmp_path / "docker").is_dir() and not (tmp_path / "new").exists()


def test_a_mount_point_in_use_by_then_stays(tmp_path: Path, kernel: Path) -> None:
    host.enter("a", [str(tmp_path / "docker")], free_block, tmp_path / "shared", kernel)
    (tmp_path / "docker" / "somebody").touch()
    assert host.leave("a", tmp_path / "shared", kernel) == []
    assert (tmp_path / "docker" / "somebody").exists()


def test_leaving_without_having_entered_changes_nothing(tmp_path: Path, kernel: Path) -> None:
    setting(kernel, "1")
    assert host.leave("a", tmp_path / "shared", kernel) == []
    assert setting(kernel) == "1"


def test_no_two_engines_have_the_same_addresses(tmp_path: Path, kernel: Path) -> None:
    """Two clusters that started within four seconds once had the same, and the DNS of one never became ready."""
    shared = tmp_path / "shared"

    def enter(ident: str) -> str:
        return host.enter(ident, [], free_block, shared, kernel)

    assert (enter("a"), enter("b")) == ("first", "second")
    assert enter("b") == "second", "an engine's own addresses are free for itself"
    host.leave("a", shared, kernel)
    assert enter("c") == "first"


def test_a_killed_process_leaves_no_addresses(tmp_path: Path, kernel: Path) -> None:
    def killed(_: list[str]) -> str:
        raise KeyboardInterrupt

    shared = tmp_path / "shared"
    with pytest.raises(KeyboardInterrupt):
        host.enter("a", [], killed, shared, kernel)
    (shared / "users" / "half-written").touch()
    assert host.enter("b", [], free_block, shared, kernel) == "first"


def test_one_engine_at_a_time_chooses(tmp_path: Path, kernel: Path) -> None:
    shared, entered = tmp_path / "shared", threading.Event()
    chosen: dict[str, str] = {}

    def enter(ident: str, choose: Callable[[list[str]], str]) -> threading.Thread:
        thread = threading.Thread(
            target=lambda: chosen.update({ident: host.enter(ident, [], choose, shared, kernel)}), daemon=True
        )
        thread.start()
        return thread

    def slow(others: list[str]) -> str:
        entered.set()
        second.append(enter("b", free_block))
        second[0].join(0.3)
        return free_block(others)

    second: list[threading.Thread] = []
    first = enter("a", slow)
    assert entered.wait(10)
    first.join(10)
    second[0].join(10)
    assert chosen == {"a": "first", "b": "second"}


# ---- kernel settings


def fake(root: Path, **values: str) -> Path:
    for key, value in values.items():
        path = host.path_of(key.replace("__", "."), root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return root


def test_changed_values_are_restored(tmp_path: Path) -> None:
    root = fake(tmp_path, net__ipv4__ip_forward="0", kernel__panic="0", vm__overcommit_memory="0")
    before = host.snapshot(root)
    assert before == {"net.ipv4.ip_forward": "0", "kernel.panic": "0", "vm.overcommit_memory": "0"}
    fake(root, net__ipv4__ip_forward="1", kernel__panic="10")
    assert host.changed(before, host.snapshot(root)) == {"net.ipv4.ip_forward": "0", "kernel.panic": "0"}
    assert host.restore(before, root) == []
    assert host.snapshot(root) == before


def test_a_key_that_is_gone_or_new_is_left_alone(tmp_path: Path) -> None:
    root = fake(tmp_path, kernel__panic="10")
    assert host.changed({"vm.overcommit_memory": "0"}, host.snapshot(root)) == {}
    assert host.changed({}, host.snapshot(root)) == {}


def test_a_limit_that_is_too_low_is_raised(tmp_path: Path) -> None:
    root = fake(tmp_path, fs__inotify__max_user_instances="128")
    before = host.snapshot(root)
    host.raise_limits(root)
    assert host.snapshot(root) == {"fs.inotify.max_user_instances": "1024"}
    assert host.restore(before, root) == []
    assert host.snapshot(root) == before


def test_a_limit_that_suffices_stays(tmp_path: Path) -> None:
    root = fake(tmp_path, fs__inotify__max_user_instances="8192")
    host.raise_limits(root)
    assert host.snapshot(root) == {"fs.inotify.max_user_instances": "8192"}


def test_a_limit_that_this_kernel_does_not_have(tmp_path: Path) -> None:
    host.raise_limits(tmp_path)
    assert host.snapshot(tmp_path) == {}
