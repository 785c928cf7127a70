"""Kernel settings that the engine and the kubelet change are restored, and no others."""

from pathlib import Path

from devtools.testbed.cluster import sysctl


def fake(root: Path, **values: str) -> Path:
    for key, value in values.items():
        path = sysctl.path_of(key.replace("__", "."), root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return root


def test_changed_values_are_restored(tmp_path: Path) -> None:
    root = fake(tmp_path, net__ipv4__ip_forward="0", kernel__panic="0", vm__overcommit_memory="0")
    before = sysctl.snapshot(root)
    assert before == {"net.ipv4.ip_forward": "0", "kernel.panic": "0", "vm.overcommit_memory": "0"}
    fake(root, net__ipv4__ip_forward="1", kernel__panic="10")
    assert sysctl.changed(before, sysctl.snapshot(root)) == {"net.ipv4.ip_forward": "0", "kernel.panic": "0"}
    assert sysctl.restore(before, root) == []
    assert sysctl.snapshot(root) == before


def test_a_key_that_is_gone_or_new_is_left_alone(tmp_path: Path) -> None:
    root = fake(tmp_path, kernel__panic="10")
    assert sysctl.changed({"vm.overcommit_memory": "0"}, sysctl.snapshot(root)) == {}
    assert sysctl.changed({}, sysctl.snapshot(root)) == {}


def test_a_limit_that_is_too_low_is_raised(tmp_path: Path) -> None:
    root = fake(tmp_path, fs__inotify__max_user_instances="128")
    before = sysctl.snapshot(root)
    assert sysctl.raise_limits(root) == []
    assert sysctl.snapshot(root) == {"fs.inotify.max_user_instances": "1024"}
    assert sysctl.restore(before, root) == []
    assert sysctl.snapshot(root) == before


def test_a_limit_that_suffices_stays(tmp_path: Path) -> None:
    root = fake(tmp_path, fs__inotify__max_user_instances="8192")
    assert sysctl.raise_limits(root) == []
    assert sysctl.snapshot(root) == {"fs.inotify.max_user_instances": "8192"}


def test_a_limit_that_this_kernel_does_not_have(tmp_path: Path) -> None:
    assert sysctl.raise_limits(tmp_path) == ["fs.inotify.max_user_instances"]
