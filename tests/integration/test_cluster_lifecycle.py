"""Creates a separate cluster, uses it, kills its processes and stops it, and checks that the machine is unchanged.

Other clusters and processes may run on the machine meanwhile, so the test compares only resources that this cluster
could have left.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from devtools.paths import ROOT
from devtools.testbed.base import gobuild, process, shell
from devtools.testbed.base.docker import Engine, user_engine
from devtools.testbed.base.session import Session
from devtools.testbed.base.settings import Settings, settings_from
from devtools.testbed.base.state import State, StateFile
from devtools.testbed.cluster import lifecycle
from devtools.testbed.offline import engine, host, network, packages, slots

pytestmark = pytest.mark.cluster_lifecycle

IMAGE = "example/lifecycle:1"
OF_THE_FIRST = "of-the-first"
"""A namespace."""
UNUSED_SERVICE = ipaddress.IPv4Network(network.SERVICE_SUBNET)[-6]


class Tool:
    """The command line tool, with a separate state folder."""

    def __init__(self, folder: Path) -> None:
        # drop another local cluster's DOCKER_HOST, so that this cluster gets its own engine
        kept = {k: v for k, v in os.environ.items() if k not in ("DOCKER_HOST", "KUBECONFIG", "DLJOB_CLUSTER_NAME")}
        self.env = {**kept, "DLJOB_CLUSTER_DIR": str(folder), "PYTHONPATH": str(ROOT / "hack")}
        self.settings: Settings = settings_from(self.env)

    def __call__(self, *arguments: str, code: int = 0, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "devtools.testbed.cluster", *arguments],
            env={**self.env, **more},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        kubectl = self.settings.bin_dir / "kubectl"
        return shell.run([kubectl, "--kubeconfig", self.settings.kubeconfig, *arguments], stdin=stdin).stdout

    def state(self) -> State:
        return StateFile(self.settings.state_dir).load()

    def engine(self) -> Engine:
        found = lifecycle.recorded_engine(Session.open(self.settings))
        assert found is not None
        return found


# ---- the machine's state


@dataclass(frozen=True)
class Machine:
    """All resources that a cluster changes, as sets of lines that can be compared."""

    mounts: frozenset[str]
    links: frozenset[str]
    routes: frozenset[str]
    rules: frozenset[str]
    run: frozenset[str]
    net_namespaces: frozenset[str]
    sysctls: Mapping[str, str]
    docker: frozenset[str]


def foreign(link: str, ours: Settings) -> bool:
    """Whether an interface is another cluster's bridge, or is attached to one."""
    own = (ours.bridge, ours.default_bridge)
    if link.startswith(("dlb-", "dlj-")):
        return link not in own
    master = Path("/sys/class/net", link, "master")
    return master.exists() and master.resolve().name not in own


def packet_rules(tools: Mapping[str, str]) -> set[str]:
    """All nftables and iptables rules that the machine's own programs can show, without their counters."""
    found = set()
    for command in (
        ["nft", "list", "ruleset"],
        ["iptables-save"],
        ["iptables-legacy-save"],
        ["ip6tables-save"],
    ):
        text = shell.run(command, env=tools, check=False).stdout
        lines = (re.sub(r"\[\d+:\d+\]|packets \d+ bytes \d+", "", line).strip() for line in text.splitlines())
        found |= {f"{command[0]}: {line}" for line in lines if line and not line.startswith("#")}
    return found


def docker_objects(env: Mapping[str, str]) -> set[str]:
    """Containers, networks and volumes of the user's Docker, if there is one."""
    user = user_engine(env)
    if user is None:
        return set()
    listings = (
        ("ps", "-a", "--format", "container {{.Names}}"),
        ("network", "ls", "--format", "network {{.Name}}"),
        ("volume", "ls", "--format", "volume {{.Name}}"),
    )
    return {line for listing in listings for line in user.run(*listing).stdout.splitlines()}


def machine_state(tool: Tool, tools: Mapping[str, str]) -> Machine:
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()]
    links = {entry.name for entry in Path("/sys/class/net").iterdir()}
    named = Path("/run/netns")
    return Machine(
        mounts=frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
        links=frozenset(link for link in links if not foreign(link, tool.settings)),
        # interface, destination, mask
        routes=frozenset(" ".join(f[:2] + f[7:8]) for f in routes if not foreign(f[0], tool.settings)),
        rules=frozenset(packet_rules(tools)),
        run=frozenset(p.name for p in Path("/run").iterdir()),
        net_namespaces=frozenset(p.name for p in named.iterdir()) if named.is_dir() else frozenset(),
        sysctls=host.snapshot(),
        docker=frozenset(docker_objects(tool.env)),
    )


def descendants(root: process.ProcessId | None) -> set[process.ProcessId]:
    found: set[process.ProcessId] = set()
    waiting = [root] if root is not None and process.alive(root) else []
    while waiting:
        current = waiting.pop()
        found.add(current)
        waiting += process.children(current.pid)
    return found


def mentions(settings: Settings) -> set[str]:
    """Command lines of running processes that contain this cluster's paths."""
    marks = (settings.ident, str(settings.state_dir), settings.node)
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if any(mark in line for mark in marks):
                found.add(line)
    return found


def assert_nothing_left(tool: Tool, before: Machine, after: Machine, processes: set[process.ProcessId]) -> None:
    settings = tool.settings
    for field in ("mounts", "links", "routes", "rules", "run", "net_namespaces", "docker"):
        assert getattr(after, field) - getattr(before, field) == frozenset(), field
    assert host.changed(before.sysctls, after.sysctls) == {}
    assert [p for p in processes if process.alive(p)] == []
    assert mentions(settings) == set()
    assert not any(
        path.exists() for path in engine.cgroup_dirs(settings.cgroup, Path("/proc/self/mountinfo").read_text())
    )
    assert not settings.run_dir.exists()
    assert {p.name for p in settings.state_dir.iterdir()} <= {"lock", "logs"}


# ---- the tests


@pytest.fixture(scope="module")
def tools() -> dict[str, str]:
    """The environment with nft and ip, from the packages that the engine is unpacked from where the machine has none."""
    settings = settings_from()
    if user_engine(os.environ) is not None:
        return {}
    return packages.tool_env(engine.ensure_packages(settings))


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """One folder for all tests, in which clusters follow each other as in a user's checkout."""
    tool = Tool(tmp_path_factory.mktemp("cluster") / "a folder")
    try:
        yield tool
    finally:
        tool("down")


def make_image(tool: Tool, folder: Path) -> None:
    """An image of one small static program in the local Docker."""
    settings = tool.settings
    program = gobuild.build(settings.cache_dir, settings.go_dir, gobuild.PAUSE) / "pause"
    with tarfile.open(folder / "image.tar", "w") as tar:
        tar.add(program, "pause")
    tool.engine().run("import", "--change", 'ENTRYPOINT ["/pause"]', folder / "image.tar", IMAGE)


def pod(name: str, **spec: Any) -> str:
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Always"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container], **spec},
        }
    )


def run_pod(tool: Tool, name: str, **spec: Any) -> None:
    tool.kubectl("apply", "-f", "-", stdin=pod(name, **spec))
    tool.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


def test_up_use_kill_up_down_leaves_the_machine_as_it_was(tool: Tool, tools: dict[str, str], tmp_path: Path) -> None:
    before = machine_state(tool, tools)
    tool("up")
    assert "NO" not in tool("status")
    # the status needs no built program, so any cache folder works
    assert "NO" not in tool("status", DLJOB_CACHE=str(tmp_path / "cache"))
    assert not (tmp_path / "cache").exists()
    tool.kubectl("create", "namespace", OF_THE_FIRST)

    # an image pulled under its own name, kwok's nodes, an advertised GPU
    make_image(tool, tmp_path)
    tool("push", IMAGE)
    run_pod(tool, "real", nodeSelector={"kubernetes.io/hostname": tool.settings.node})
    tool.kubectl("logs", "real")
    tool("kwok", "3")
    run_pod(
        tool,
        "simulated",
        nodeSelector={"type": "kwok"},
        tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    )
    assert "kwok-" in tool.kubectl("get", "pod", "simulated", "-o", "jsonpath={.spec.nodeName}")
    tool("gpu", "4")
    gpus = tool.kubectl("get", "node", tool.settings.node, "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu}")
    assert gpus == "4"

    # a connection to an unused Service address is rejected instead of leaving the cluster
    state = tool.state()
    if state.engine == "own":
        probe = ["bash", "-c", f"exec 3<>/dev/tcp/{UNUSED_SERVICE}/6379"]
        stderr = tool.engine().run("exec", tool.settings.node, "timeout", "20", *probe, check=False).stderr
        assert "Connection refused" in stderr

    # `up` on a running cluster changes nothing
    tool("up")
    assert tool.state() == state
    created = tool.kubectl("get", "pod", "real", "-o", "jsonpath={.metadata.uid}")

    # kill the programs: `up` restores the same cluster
    processes = descendants(state.supervisor) | descendants(state.kwok)
    assert state.kwok is not None
    process.send(state.kwok, signal.SIGKILL)
    if state.engine == "own":
        dockerd = [p for p in processes if Path(f"/proc/{p.pid}/comm").read_text() == "dockerd\n"]
        process.send(dockerd[0], signal.SIGKILL)
        assert state.supervisor is not None and process.wait_end(state.supervisor, 30)
        assert [p for p in processes if process.alive(p)] == [], "when the engine exits, all its processes exit"
    else:
        tool.engine().run("kill", tool.settings.node)
    assert "NO" in tool("status", code=1)
    tool("up")
    assert "NO" not in tool("status")
    tool.kubectl("wait", "--for=condition=Ready", "pod/real", "--timeout=120s")
    assert tool.kubectl("get", "pod", "real", "-o", "jsonpath={.metadata.uid}") == created

    # kill and stop it: nothing is left, and a second `down` succeeds
    state = tool.state()
    processes |= descendants(state.supervisor) | descendants(state.kwok)
    if state.engine == "own":
        assert state.supervisor is not None
        process.send(state.supervisor, signal.SIGKILL)
        assert process.wait_end(state.supervisor, 30)
    tool("down")
    tool("down")
    assert_nothing_left(tool, before, machine_state(tool, tools), processes)
    if state.engine == "own":
        # the killed engine's node, registry and networks are in the slot, as after a `down` whose removal Docker refused:
        # the next cluster removes them without the owner file too
        assert state.slot is not None
        slot = slots.slot(tool.settings.cache_dir, state.slot)
        if slot.owner() == tool.settings.state_dir:  # no other clone has taken it meanwhile
            slot.release()


def test_an_interrupted_creation_is_restarted(tool: Tool, tools: dict[str, str]) -> None:
    before = machine_state(tool, tools)
    started = subprocess.Popen(
        [sys.executable, "-u", "-m", "devtools.testbed.cluster", "up"],
        env=tool.env,
        cwd="/",
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # wait for the new node container, before Kubernetes is set up; not the one that the killed engine left
    until = 'until grep -q begun "$1" && docker inspect "$0" >/dev/null; do sleep 0.2; done 2>/dev/null'
    host = "" if user_engine(tool.env) else f"unix://{tool.settings.run_dir}/docker.sock"
    shell.run(
        ["sh", "-c", until, tool.settings.node, tool.settings.state_dir / "state.json"],
        env={"PATH": f"{tool.settings.bin_dir}:{os.environ['PATH']}", "DOCKER_HOST": host}, timeout=900,
    )  # fmt: skip
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    assert tool.state().creation == "begun"
    tool("up")
    assert "NO" not in tool("status")
    assert OF_THE_FIRST not in tool.kubectl("get", "namespaces", "-o", "name")

    # stop it while it runs, including kwok's nodes
    tool("kwok", "1")
    state = tool.state()
    processes = descendants(state.supervisor) | descendants(state.kwok)
    ports = [
        state.registry_port,
        int(tool.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}").rpartition(":")[2]),
    ]
    tool("down")
    assert_nothing_left(tool, before, machine_state(tool, tools), processes)
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, port
    assert "down" in tool("status", code=1)
