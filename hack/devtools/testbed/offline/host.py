"""What all engines on one machine share: kernel settings that they change, mount points, and address space.

The first engine saves the original values and the last one restores them, so that stopping one cluster does not affect
another, and a second cluster does not save the first one's changes as the original values.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

SHARED = Path("/run/dljob")
"""On a tmpfs: a reboot removes it, and resets the settings."""
KERNEL = Path("/proc/sys")
KEYS = (
    # changed by the engine
    "net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables",
    # by kube-proxy
    "net.netfilter.nf_conntrack_max",
    # by the kubelet
    "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
    "vm.overcommit_memory", "vm.panic_on_oom",
    # by systemd in the node
    "kernel.sysrq", "kernel.core_pattern", "kernel.core_uses_pid", "kernel.pid_max", "fs.protected_fifos",
    "fs.protected_hardlinks", "fs.protected_regular", "fs.protected_symlinks",
    # by this module
    "fs.inotify.max_user_instances",
)  # fmt: skip
LEAST = {
    # a node uses about 25 (systemd, containerd, kubelet, pods): with the default of 128 a fifth node fails to start
    "fs.inotify.max_user_instances": 1024,
}


# ---- kernel settings


def path_of(key: str, kernel: Path) -> Path:
    return kernel / key.replace(".", "/")


def snapshot(kernel: Path = KERNEL) -> dict[str, str]:
    """The current value of each key that this kernel has."""
    found = {}
    for key in KEYS:
        with contextlib.suppress(OSError):
            found[key] = path_of(key, kernel).read_text().strip()
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The earlier values of the keys that have changed. A key that appeared since has no earlier value."""
    return {key: value for key, value in before.items() if key in now and now[key] != value}


def raise_limits(kernel: Path = KERNEL) -> None:
    """Raise settings that are below what a node needs. One that cannot be raised may still be sufficient."""
    now = snapshot(kernel)
    _write({key: str(least) for key, least in LEAST.items() if key in now and int(now[key]) < least}, kernel)


def restore(before: Mapping[str, str], kernel: Path = KERNEL) -> list[str]:
    """Restore changed values; returns the keys that could not be written."""
    return _write(changed(before, snapshot(kernel)), kernel)


def _write(values: Mapping[str, str], kernel: Path) -> list[str]:
    failed = []
    for key, value in values.items():
        try:
            path_of(key, kernel).write_text(value + "\n")
        except OSError:
            failed.append(key)
    return failed


# ---- the engines


@contextlib.contextmanager
def _locked(shared: Path) -> Iterator[None]:
    """The lock file is next to the folder, because the last user removes the folder."""
    path = shared.with_name(f"{shared.name}.lock")
    while True:
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # the previous holder may have been the last user and have removed the file
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                yield
                return


def enter(
    ident: str,
    mount_points: Sequence[str],
    choose: Callable[[list[str]], str],
    shared: Path = SHARED,
    kernel: Path = KERNEL,
) -> str:
    """Register the engine ``ident`` and create the missing mount points. Idempotent.

    Returns the engine's addresses: what ``choose`` returns when given those of all other engines. Routes alone do not
    show these: an engine has addresses for seconds before it has a link.
    """
    with _locked(shared):
        users, before = shared / "users", shared / "before.json"
        users.mkdir(parents=True, exist_ok=True)
        if not before.exists():
            missing = [path for path in mount_points if not Path(path).is_dir()]
            before.write_text(json.dumps({"sysctls": snapshot(kernel), "made": missing}))
        for path in mount_points:
            Path(path).mkdir(parents=True, exist_ok=True)
        raise_limits(kernel)
        others = [user.read_text() for user in users.iterdir() if user.name != ident]
        chosen = choose([block for block in others if block])  # a process killed while it wrote one left it empty
        (users / ident).write_text(chosen)
        return chosen


def leave(ident: str, shared: Path = SHARED, kernel: Path = KERNEL) -> list[str]:
    """Unregister the engine; the last one restores the settings. Returns those that could not be restored."""
    with _locked(shared):
        (shared / "users" / ident).unlink(missing_ok=True)
        if not shared.is_dir() or any((shared / "users").iterdir()):
            return []
        before = json.loads((shared / "before.json").read_text())
        failed = restore(before["sysctls"], kernel)
        for path in before["made"]:
            with contextlib.suppress(OSError):  # another engine uses it meanwhile
                Path(path).rmdir()
        shutil.rmtree(shared)
        shared.with_name(f"{shared.name}.lock").unlink(missing_ok=True)
        return failed
