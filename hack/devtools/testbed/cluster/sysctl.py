"""Kernel settings that an engine, systemd or a kubelet changes or needs; saved before and restored afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path("/proc/sys")
KEYS = (
    "net.ipv4.ip_forward",  # the engine
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.netfilter.nf_conntrack_max",  # kube-proxy
    "kernel.panic",  # the kubelet
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.sysrq",  # systemd in the node
    "kernel.core_pattern",
    "kernel.core_uses_pid",
    "kernel.pid_max",
    "fs.inotify.max_user_instances",  # this tool
    "fs.protected_fifos",
    "fs.protected_hardlinks",
    "fs.protected_regular",
    "fs.protected_symlinks",
)
LEAST = {
    # a node uses about 25 (systemd, containerd, kubelet, pods): with the default of 128 a fifth node fails to start
    "fs.inotify.max_user_instances": 1024,
}


def raise_limits(root: Path = ROOT) -> list[str]:
    """Raise settings that are below what a node needs; returns the keys that could not be written."""
    failed = []
    for key, least in LEAST.items():
        path = path_of(key, root)
        try:
            if int(path.read_text()) < least:
                path.write_text(f"{least}\n")
        except (OSError, ValueError):
            failed.append(key)
    return failed


def path_of(key: str, root: Path) -> Path:
    return root / key.replace(".", "/")


def snapshot(root: Path = ROOT) -> dict[str, str]:
    """The current value of each key that this kernel has."""
    found = {}
    for key in KEYS:
        try:
            found[key] = path_of(key, root).read_text().strip()
        except OSError:
            continue
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The earlier values of the keys that have changed. A key that appeared since has no earlier value."""
    return {key: value for key, value in before.items() if key in now and now[key] != value}


def restore(before: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Restore changed values; returns the keys that could not be written."""
    failed = []
    for key, value in changed(before, snapshot(root)).items():
        try:
            path_of(key, root).write_text(value + "\n")
        except OSError:
            failed.append(key)
    return failed
