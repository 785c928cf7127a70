"""The private engine, which this tool starts where the user's Docker does not respond.

It runs under ``unshare`` in its own mount and pid namespaces, with an init as their first process. Its mounts are
therefore invisible on the host, and when any of the three processes (unshare, init, dockerd) exits, the kernel kills
every container, shim and proxy in the namespace: none of them can outlive the engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from devtools.testbed.base import process, shell
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.session import Session
from devtools.testbed.base.settings import Settings
from devtools.testbed.offline import host, network, notify, packages, slots
from devtools.testbed.offline.nodeimage import IPTABLES

CAP_SYS_ADMIN = 21
CAP_SYS_RESOURCE = 24
START_TIMEOUT = 60.0
STOP_GRACE = 30.0
_CGROUP_TIMEOUT = 10.0
PRIVATE_RUN_DIRS = ("/run/containerd", "/run/docker", "/run/runc")
"""Fixed folders of containerd, Docker and runc; the private engine's namespace mounts a tmpfs over each."""
RUNTIME = Path(__file__).with_name("runc-without-sys-resource.sh")
LEAST_ROOM = 8 * 2**30
"""Bytes that a cluster writes when its images exist already: the node's own copy of each image, logs and etcd."""


# ---- capabilities


def bounding_set(status: str) -> int:
    """The capability bounding set from the text of /proc/self/status."""
    for line in status.splitlines():
        if line.startswith("CapBnd:"):
            return int(line.split()[1], 16)
    return 0


def has_capability(number: int) -> bool:
    return bool(bounding_set(Path("/proc/self/status").read_text()) >> number & 1)


def require_rights() -> None:
    """Raise if this user cannot start an engine."""
    instead = "start Docker so that 'docker info' answers for this user"
    if os.geteuid() != 0:
        raise ClusterError("no Docker answers, and starting one needs root", f"{instead}, or run this as root")
    if not has_capability(CAP_SYS_ADMIN):
        raise ClusterError(
            "no Docker answers, and starting one needs the capability CAP_SYS_ADMIN, which this machine withholds",
            f"{instead}, or start this container with --privileged",
        )


# ---- its files


def ensure_packages(settings: Settings) -> Path:
    """The folder with the engine's unpacked packages."""
    tree = packages.unpack(settings.cache_dir, "engine", packages.ENGINE, with_dependencies=True)
    for name in IPTABLES:
        link = tree / "usr/sbin" / name  # an installation creates this link through the alternatives system
        if (tree / "usr/sbin/xtables-nft-multi").exists() and not link.is_symlink():
            link.symlink_to("xtables-nft-multi")
    return tree


def daemon_config(
    settings: Settings, data_root: Path, block: network.Network, mtu: int, runtime: str | None
) -> dict[str, Any]:
    """dockerd's configuration file. ``block`` is the address space that it may use."""
    config: dict[str, Any] = {
        "hosts": [f"unix://{settings.run_dir}/docker.sock"],
        "data-root": str(data_root),
        "exec-root": str(settings.run_dir / "exec"),
        "pidfile": str(settings.run_dir / "dockerd.pid"),
        # do not touch the host's iptables rules: docker-proxy publishes ports, and egress uses a separate table
        "iptables": False,
        "ip6tables": False,
        # not docker0: a Docker that is installed on the machine uses that name
        "bridge": settings.default_bridge,
        "mtu": mtu,
        "default-address-pools": [{"base": str(network.spare_pool(block)), "size": 24}],
        "storage-driver": "overlay2",
        "cgroup-parent": f"/{settings.cgroup}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        # the default lowers the score, which needs CAP_SYS_RESOURCE
        "oom-score-adjust": 0,
        "log-driver": "json-file",
        "log-opts": {"max-size": "10m", "max-file": "2"},
        "shutdown-timeout": 10,
    }
    if runtime:
        config["runtimes"] = {"dljob": {"path": runtime}}
        config["default-runtime"] = "dljob"
    return config


def launch_script(tree: Path, modules: Path | None, config: Path, tini: str) -> str:
    """The first process of the namespaces: it makes the private mounts, then executes init and dockerd.

    A read-only overlay adds the unpacked packages to /usr, as if they were installed. kind mounts /lib/modules into
    its nodes; where the kernel has no modules, ``modules`` (a folder with an empty lib/modules) provides an empty one.
    """
    layers = ":".join(str(p) for p in (tree / "usr", *([modules] if modules else []), "/usr"))
    mounts = [f"mount -t overlay overlay -o ro,lowerdir={layers} /usr"]
    mounts += [f"mount -t tmpfs tmpfs {path}" for path in PRIVATE_RUN_DIRS]
    return "\n".join(["set -e", *mounts, f"exec {tini} -- dockerd --config-file {config}", ""])


def _prepare(settings: Settings, tree: Path, data_root: Path, block: network.Network) -> Path:
    """Create the bridge and the files that the engine needs at startup; returns the launch script."""
    for folder in (settings.run_dir, data_root, settings.log_dir):
        folder.mkdir(parents=True, exist_ok=True)
    settings.run_dir.chmod(0o700)
    runtime = None
    if not has_capability(CAP_SYS_RESOURCE):
        # a copy: the checkout may be moved, and its user may be another one
        runtime = str(shutil.copy(RUNTIME, settings.run_dir))
    mtu = network.host_mtu()
    tools = packages.tool_env(tree)
    for bridge in (settings.bridge, settings.default_bridge):
        # recreate the bridge, because links left by an earlier engine could not be identified later
        network.remove_ports(bridge, tools)
    network.add_bridge(settings.default_bridge, network.default_bridge_subnet(block), mtu, tools)
    config = settings.run_dir / "daemon.json"
    config.write_text(json.dumps(daemon_config(settings, data_root, block, mtu, runtime), indent=2) + "\n")
    modules = None
    if not Path("/lib/modules").is_dir():
        modules = settings.run_dir / "usr"
        (modules / "lib/modules").mkdir(parents=True, exist_ok=True)
    script = settings.run_dir / "launch.sh"
    script.write_text(launch_script(tree, modules, config, "/usr/bin/tini-static"))
    return script


# ---- start and stop


def start(session: Session) -> Engine:
    """Start the engine of this cluster, in the slot and with the addresses that it had before, if it had any."""
    settings = session.settings
    require_rights()
    with session.report.step("engine", "Docker's packages, unpacked") as step:
        if list((settings.cache_dir / "packages").glob("engine-*")):
            step.skip()
        tree = ensure_packages(settings)
    with session.report.step("engine-start", "Docker engine, started"):
        # an earlier engine may hang, or may have been killed while it stopped
        stop(session.state.supervisor)
        session.record(name=settings.name, engine="own")  # before the registration, which only `down` removes
        chosen = host.enter(settings.ident, PRIVATE_RUN_DIRS, lambda others: choose_block(session, others))
        session.record(block=chosen)
        claim = slots.claim(settings.cache_dir, settings.state_dir, session.state.slot)
        make_room(session)
        session.record(slot=claim.number, docker_host=f"unix://{settings.run_dir}/docker.sock")
        if claim.slot.is_foreign():
            disarm(claim.slot.docker)
        block = network.Network(chosen)
        launch(session, tree, claim, block)
        if claim.slot.is_foreign():
            remove_containers_and_volumes(handle(settings))
            claim.slot.set_clean()
    if not network.add_egress(settings.nft_table, block, packages.tool_env(tree)):
        session.report.say("  note: this kernel has no nftables NAT; pods cannot reach anything outside the cluster")
    return handle(settings)


def choose_block(session: Session, others: list[str]) -> str:
    """The recorded block of this cluster, else one that neither ``others``, clusters that start, nor a route uses."""
    taken, block = [*network.routes(), *map(network.Network, others)], session.state.block
    if not block:
        return str(network.choose_block(taken))
    # after a crash the old bridge still has the block; after a reboot another network may use it
    if not network.link_exists(session.settings.bridge) and any(network.Network(block).overlaps(x) for x in taken):
        raise ClusterError(
            f"another network now uses the cluster's addresses {block}", "run cluster-down, then cluster"
        )
    return block


def make_room(session: Session) -> None:
    """Once this cluster holds its own slot: remove what earlier clusters left in others, if the disk is nearly full."""
    cache = session.settings.cache_dir
    emptied = slots.make_room(cache)
    if emptied:
        folder = cache / "engines"
        session.report.say(
            f"  removed the images of {len(emptied)} earlier clusters from {folder}: the disk was nearly full"
        )
    free = slots.free_bytes(cache)
    if free < LEAST_ROOM:
        session.report.say(
            f"  warning: {free / 2**30:.1f} GiB are free in {cache}, and a cluster with all images writes"
            f" {LEAST_ROOM // 2**30} GiB: pods and the API server fail on a full disk"
        )


def launch(session: Session, tree: Path, claim: slots.Claim, block: network.Network) -> None:
    """Start dockerd in the claimed slot and wait until it reports readiness.

    The supervisor's identity is recorded at once, so that ``down`` can stop the engine if this process dies.
    """
    settings = session.settings
    script = _prepare(settings, tree, claim.slot.docker, block)
    unshare = shell.find("unshare")
    if unshare is None:
        raise ClusterError("unshare: not found", "apt-get install util-linux")
    # pid files of a killed engine refer to its own pid namespace; the pids mean other processes in the new one
    shutil.rmtree(settings.run_dir / "exec", ignore_errors=True)
    for stale in ("docker.sock", "dockerd.pid"):
        (settings.run_dir / stale).unlink(missing_ok=True)
    proxies = {k: v for k, v in os.environ.items() if k.lower() in ("http_proxy", "https_proxy", "no_proxy")}
    notify.start(
        [unshare, "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "/bin/sh", script],
        settings.log_dir / "dockerd.log", settings.run_dir / "ready.sock", START_TIMEOUT,
        {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **proxies},
        pass_fds=(claim.lock.fileno(),), record=lambda supervisor: session.record(supervisor=supervisor),
    )  # fmt: skip


def disarm(data_root: Path) -> None:
    """Before an engine starts: disable restart of an earlier engine's containers and drop its networks."""
    for path in (data_root / "containers").glob("*/hostconfig.json"):
        config = json.loads(path.read_text())
        config["RestartPolicy"] = {"Name": "no", "MaximumRetryCount": 0}
        path.write_text(json.dumps(config))
    shutil.rmtree(data_root / "network", ignore_errors=True)


def remove_containers_and_volumes(engine: Engine) -> None:
    """Remove all containers and volumes; images stay."""
    left = engine.run("ps", "--all", "--quiet").stdout.split()
    if left:
        engine.run("rm", "--force", "--volumes", *left)
    engine.run("volume", "prune", "--force")


def handle(settings: Settings, client: Path | None = None) -> Engine:
    """The private engine, running or not; ``client``, if it exists, replaces the packages' docker."""
    env = {"DOCKER_HOST": f"unix://{settings.run_dir}/docker.sock"}
    if client is not None and client.exists():
        return Engine("own", client, env)
    tree = ensure_packages(settings)
    docker = tree / "usr/bin/docker"
    found = docker if docker.exists() else shell.find("docker")
    if found is None:
        raise ClusterError("docker: not found among the engine's packages", f"rm -r {tree} and try again")
    return Engine("own", found, env)


def stop(supervisor: process.ProcessId | None) -> None:
    """Stop the private engine and every process in it, and wait until they have exited."""
    if supervisor is None or not process.alive(supervisor):
        return
    for init in process.children(supervisor.pid):
        process.send(init, signal.SIGTERM)
    if not process.wait_end(supervisor, STOP_GRACE):
        process.end(supervisor, 0)


# ---- cleanup of host resources after it has stopped


def cgroup_dirs(name: str, mountinfo: str) -> list[Path]:
    """The folders that a cgroup of this name has: one in each mounted hierarchy."""
    mounts = (line.partition(" - ") for line in mountinfo.splitlines())
    return [
        Path(fields.split()[4]) / name for fields, _, rest in mounts if rest.split(" ", 1)[0] in ("cgroup", "cgroup2")
    ]


def remove_cgroups(name: str, timeout: float = _CGROUP_TIMEOUT) -> None:
    """Remove our empty cgroups; rmdir fails on one that is in use.

    A killed process stays in its cgroup until the kernel has released it, for which this waits at most ``timeout`` s.
    """
    deadline = time.monotonic() + timeout
    while tops := [top for top in cgroup_dirs(name, Path("/proc/self/mountinfo").read_text()) if top.is_dir()]:
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


def remove_traces(session: Session) -> None:
    """Remove what a stopped engine left on the host: nftables table, bridges, cgroups, sockets, kernel settings."""
    settings = session.settings
    env = packages.tool_env(ensure_packages(settings))
    network.remove_egress(settings.nft_table, env)
    for bridge in (settings.bridge, settings.default_bridge):
        network.remove_bridge(bridge, env)
    remove_cgroups(settings.cgroup)
    shutil.rmtree(settings.run_dir, ignore_errors=True)
    failed = host.leave(settings.ident)
    if failed:
        session.report.say(f"  note: could not restore {', '.join(failed)}")
