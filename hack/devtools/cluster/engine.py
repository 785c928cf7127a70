"""The Docker engine: the user's if one answers, else one started here in namespaces of its own.

The own engine runs under ``unshare`` in private mount and pid namespaces with an init as their first process. Its
mounts are therefore never seen on the host, and when any of the three processes (unshare, init, dockerd) ends, the
kernel ends every container, shim and proxy with it: nothing can be left behind, however it died.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.cluster import network, notify, packages, process, shell, versions
from devtools.cluster.errors import ClusterError
from devtools.cluster.settings import Settings
from devtools.cluster.slots import Claim

CAP_SYS_ADMIN = 21
CAP_SYS_RESOURCE = 24
START_TIMEOUT = 60.0
STOP_GRACE = 30.0
_CGROUP_PATIENCE = 10.0
PRIVATE_RUN_DIRS = ("/run/containerd", "/run/docker", "/run/runc")
"""Fixed folders of containerd, Docker and runc; in the own engine's namespace each is a tmpfs of its own."""


@dataclass(frozen=True)
class Engine:
    """A Docker that answers, and the environment in which its client finds it."""

    kind: str
    """"user" or "own"."""
    docker: Path
    """The client."""
    env: Mapping[str, str]

    def run(self, *arguments: str | Path, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("env", self.env)
        return shell.run([self.docker, *arguments], check=check, **options)


# ---- the user's engine


def user_engine(env: Mapping[str, str]) -> Engine | None:
    """The Docker that the user's client reaches, None if there is no client or no answer."""
    docker = shell.find("docker")
    if docker is None:
        return None
    kept = {name: env[name] for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG") if env.get(name)}
    # the one that is asked is the one that will be used: a cluster's record may name another than this shell does
    done = shell.run([docker, "info", "--format", "{{.ServerVersion}}"], env=kept, check=False, timeout=20)
    if done.returncode != 0 or not done.stdout.strip():
        return None
    return Engine("user", docker, kept)


# ---- rights


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


# ---- the own engine


def ensure_packages(settings: Settings) -> Path:
    """The engine's programs, unpacked."""
    tree = packages.unpack(settings.cache_dir, "engine", versions.ENGINE_PACKAGES, with_dependencies=True)
    for name in (
        "iptables",
        "ip6tables",
        "iptables-save",
        "iptables-restore",
        "ip6tables-save",
        "ip6tables-restore",
    ):
        link = tree / "usr/sbin" / name  # what the alternatives system would have made on installation
        if (tree / "usr/sbin/xtables-nft-multi").exists() and not link.is_symlink():
            link.symlink_to("xtables-nft-multi")
    return tree


def daemon_config(
    settings: Settings, data_root: Path, block: network.Network, mtu: int, runtime: str | None
) -> dict[str, Any]:
    """dockerd's configuration file. ``block`` is all the address space it may use."""
    config: dict[str, Any] = {
        "hosts": [f"unix://{settings.run_dir}/docker.sock"],
        "data-root": str(data_root),
        "exec-root": str(settings.run_dir / "exec"),
        "pidfile": str(settings.run_dir / "dockerd.pid"),
        # no rule of ours among the host's: ports are published by docker-proxy, egress has a table of its own
        "iptables": False,
        "ip6tables": False,
        # not docker0: that name belongs to a Docker installed on the machine
        "bridge": settings.default_bridge,
        "mtu": mtu,
        "default-address-pools": [{"base": str(network.spare_pool(block)), "size": 24}],
        "storage-driver": "overlay2",
        "cgroup-parent": f"/{settings.cgroup}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        # lowering it, as is the default, needs CAP_SYS_RESOURCE
        "oom-score-adjust": 0,
        "log-driver": "json-file",
        "log-opts": {"max-size": "10m", "max-file": "2"},
        "shutdown-timeout": 10,
    }
    if runtime:
        config["runtimes"] = {"dljob": {"path": runtime}}
        config["default-runtime"] = "dljob"
    return config


def runtime_wrapper(runc: Path | str) -> str:
    """A runtime that asks for every capability but CAP_SYS_RESOURCE, for machines whose bounding set lacks it.

    Docker puts it into each privileged container (``--bundle``) and each privileged exec (``--process``), and runc
    then fails with "unable to apply caps".
    """
    return f"""#!/bin/sh
previous=
for argument in "$@"; do
  case "$previous" in
    --bundle|-b) spec="$argument/config.json" ;;
    --process|-p) spec="$argument" ;;
    *) spec= ;;
  esac
  if [ -n "$spec" ] && [ -f "$spec" ]; then
    sed -i -e 's/"CAP_SYS_RESOURCE",//g' -e 's/,"CAP_SYS_RESOURCE"//g' "$spec"
  fi
  previous=$argument
done
exec {runc} "$@"
"""


def launch_script(tree: Path, modules: Path | None, config: Path, tini: str) -> str:
    """What runs as the first process of the namespaces: the private mounts, then init and dockerd.

    /usr is overlaid, read-only, with the unpacked packages, as if they were installed. kind mounts /lib/modules into
    its nodes; where the kernel has none, ``modules`` (a folder with an empty lib/modules) adds an empty one.
    """
    layers = ":".join(str(p) for p in (tree / "usr", *([modules] if modules else []), "/usr"))
    mounts = [f"mount -t overlay overlay -o ro,lowerdir={layers} /usr"]
    mounts += [f"mount -t tmpfs tmpfs {path}" for path in PRIVATE_RUN_DIRS]
    return "\n".join(["set -e", *mounts, f"exec {tini} -- dockerd --config-file {config}", ""])


def _prepare(settings: Settings, tree: Path, data_root: Path, block: network.Network) -> Path:
    """Make what the engine finds at its start: its bridge and its files; returns the launch script."""
    for folder in (settings.run_dir, data_root, settings.log_dir):
        folder.mkdir(parents=True, exist_ok=True)
    settings.run_dir.chmod(0o700)
    runtime = None
    if not has_capability(CAP_SYS_RESOURCE):
        wrapper = settings.run_dir / "runc-without-sys-resource"
        wrapper.write_text(runtime_wrapper("/usr/sbin/runc"))
        wrapper.chmod(0o755)
        runtime = str(wrapper)
    mtu = network.host_mtu()
    tools = packages.tool_env(tree)
    for bridge in (settings.bridge, settings.default_bridge):
        # a new engine makes the bridge anew, and nobody could tell later whose its old links were
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


def start(
    settings: Settings, claim: Claim, block: network.Network, record: Callable[[process.ProcessId], None]
) -> None:
    """Start dockerd in the claimed slot and wait until it says that it is ready.

    ``record`` is told the supervisor's identity at once: should this process die, the engine is not forgotten.
    """
    tree = ensure_packages(settings)
    script = _prepare(settings, tree, claim.slot.docker, block)
    log = settings.log_dir / "dockerd.log"
    unshare = shutil.which("unshare")
    if unshare is None:
        raise ClusterError("unshare: not found", "apt-get install util-linux")
    # a killed predecessor's pid files name processes of its own pid namespace; in the new one they mean somebody else
    shutil.rmtree(settings.run_dir / "exec", ignore_errors=True)
    for stale in ("docker.sock", "dockerd.pid"):
        (settings.run_dir / stale).unlink(missing_ok=True)
    with notify.ready_socket(settings.run_dir / "ready.sock") as ready, log.open("ab") as output:
        child = subprocess.Popen(
            [unshare, "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "/bin/sh", str(script)],
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "NOTIFY_SOCKET": str(settings.run_dir / "ready.sock"),
                **{k: v for k, v in os.environ.items() if k.lower() in ("http_proxy", "https_proxy", "no_proxy")},
            },
            cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            pass_fds=(claim.lock.fileno(),),
        )  # fmt: skip
        identity = process.identify(child.pid)
        assert identity is not None
        record(identity)
        notify.wait_ready(ready, child, log, "dockerd", START_TIMEOUT)


def disarm(data_root: Path) -> None:
    """Before an engine starts: an earlier one's containers will not start again, its networks are forgotten."""
    for path in (data_root / "containers").glob("*/hostconfig.json"):
        config = json.loads(path.read_text())
        config["RestartPolicy"] = {"Name": "no", "MaximumRetryCount": 0}
        path.write_text(json.dumps(config))
    shutil.rmtree(data_root / "network", ignore_errors=True)


def remove_leftovers(engine: Engine) -> None:
    """Remove all containers and volumes; images stay."""
    left = engine.run("ps", "--all", "--quiet").stdout.split()
    if left:
        engine.run("rm", "--force", "--volumes", *left)
    engine.run("volume", "prune", "--force")


def own_env(settings: Settings) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{settings.run_dir}/docker.sock"}


def own_engine(settings: Settings, client: Path | None = None) -> Engine:
    """The handle of the own engine, whether or not it runs; ``client``, if that exists, in place of the packages'."""
    if client is not None and client.exists():
        return Engine("own", client, own_env(settings))
    tree = ensure_packages(settings)
    docker = tree / "usr/bin/docker"
    found = docker if docker.exists() else shell.find("docker")
    if found is None:
        raise ClusterError("docker: not found among the engine's packages", f"rm -r {tree} and try again")
    return Engine("own", found, own_env(settings))


def answers(engine: Engine) -> bool:
    done = engine.run("version", "--format", "{{.Server.Version}}", check=False, timeout=20)
    return done.returncode == 0


def stop(settings: Settings, supervisor: process.ProcessId | None) -> None:
    """End the own engine and everything in it, and wait for the end."""
    if supervisor is None or not process.alive(supervisor):
        return
    for init in process.children(supervisor.pid):
        process.send(init, signal.SIGTERM)
    if not process.wait_end(supervisor, STOP_GRACE):
        process.end(supervisor, 0)


# ---- what an engine leaves on the host


def cgroup_dirs(name: str, mountinfo: str) -> list[Path]:
    """Where a cgroup of this name would be: one folder in each mounted hierarchy."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split(" ", 1)[0] in ("cgroup", "cgroup2"):
            found.append(Path(fields.split()[4]) / name)
    return found


def remove_cgroups(name: str, patience: float = _CGROUP_PATIENCE) -> None:
    """Remove our empty cgroups. A cgroup folder holds only what the kernel shows; rmdir refuses one in use.

    A process that was killed is in its cgroup until the kernel is through with it: ``patience`` seconds at most.
    """
    tops = [top for top in cgroup_dirs(name, Path("/proc/self/mountinfo").read_text()) if top.is_dir()]
    deadline = time.monotonic() + patience
    while True:
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        tops = [top for top in tops if top.is_dir()]
        if not tops or time.monotonic() > deadline:
            return
        time.sleep(0.1)


def remove_traces(settings: Settings) -> None:
    """Remove what an engine that has ended left: table, bridges, cgroups, sockets."""
    env = packages.tool_env(ensure_packages(settings))
    network.remove_egress(settings.nft_table, env)
    for bridge in (settings.bridge, settings.default_bridge):
        network.remove_bridge(bridge, env)
    remove_cgroups(settings.cgroup)
    shutil.rmtree(settings.run_dir, ignore_errors=True)
