"""The kind cluster: its configuration, its creation and its readiness."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devtools.definitions import documents
from devtools.testbed.base import shell, versions
from devtools.testbed.base.docker import Engine
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings, image_minor
from devtools.testbed.offline import network
from devtools.testbed.offline.engine import CAP_SYS_RESOURCE, has_capability

NETWORK_VARIABLE = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
CREATE_WAIT = "180s"
REGISTRY_PORT = 5000
"""Inside the cluster network."""
KUBEADM = Path(__file__).with_name("kubeadm.yaml")


@dataclass(frozen=True)
class Kind:
    """The kind and kubectl programs, and the engine that they use."""

    settings: Settings
    engine: Engine
    kind: Path
    kubectl: Path

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run kind with our engine and our network. kind finds ``docker`` on PATH, where our folder comes first."""
        env = {
            **self.engine.env,
            NETWORK_VARIABLE: self.settings.network,
            "KIND_EXPERIMENTAL_PROVIDER": "docker",
            "PATH": f"{self.settings.bin_dir}:{shell.merged_env(None).get('PATH', '')}",
        }
        return shell.run([self.kind, *arguments], env=env, **options)

    def ctl(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return shell.run([self.kubectl, "--kubeconfig", self.settings.kubeconfig, *arguments], **options)


# ---- configuration


@dataclass(frozen=True)
class NodeRuntime:
    """Properties of the machine and of the node image that determine how the node runs containers."""

    restrict_oom_score: bool = False
    """Set where CAP_SYS_RESOURCE is missing: containerd must then not lower an OOM score."""
    cgroup_v1: bool = False
    """The systemd driver sends a D-Bus request for each of the dozen hierarchies of version 1; without it a pod's
    start and end take 0.61 instead of 0.83 s of processor time, and with crun instead of runc 0.55 s (40 pods, two
    cores). On version 2 systemd stays the driver, as Kubernetes recommends, and crun would need its D-Bus daemon."""
    has_crun: bool = False
    """Whether the node image is ours, which has crun beside runc."""


NATIVE_GANGS = (1, 37)
"""The first version with the PodGroups that the operator knows; Kubernetes ends at a feature gate that it has not."""
_GATE = {"feature-gates": "GenericWorkload=true"}
NATIVE_GANG_ARGUMENTS = {
    "apiServer": {**_GATE, "runtime-config": "scheduling.k8s.io/v1beta1=true"},
    "controllerManager": _GATE,
    "scheduler": _GATE,
}


def has_native_gangs(settings: Settings, image: str | None) -> bool:
    """Whether the cluster gets the PodGroups of Kubernetes itself; not where a node image has an unknown version."""
    minor = image_minor(image or "") if settings.node_image else settings.kubernetes
    return bool(minor) and tuple(map(int, minor.split("."))) >= NATIVE_GANGS


def node_runtime(engine: Engine, own_image: bool) -> NodeRuntime:
    return NodeRuntime(
        restrict_oom_score=not has_capability(CAP_SYS_RESOURCE),
        cgroup_v1=engine.run("info", "--format", "{{.CgroupVersion}}").stdout.strip() == "1",
        has_crun=own_image,
    )


def kubeadm_patches(runtime: NodeRuntime, native_gangs: bool = False) -> list[dict[str, Any]]:
    """Changes to kind's kubeadm configuration; ``native_gangs``: the PodGroups of Kubernetes itself are served."""
    control_plane, kubelet = documents(KUBEADM)
    if native_gangs:
        for part, arguments in NATIVE_GANG_ARGUMENTS.items():
            control_plane.setdefault(part, {}).setdefault("extraArgs", {}).update(arguments)
    if runtime.cgroup_v1:
        kubelet |= {"cgroupDriver": "cgroupfs", "failCgroupV1": False}  # since 1.35 the kubelet refuses it by default
    return [control_plane, kubelet]


def containerd_patch(runtime: NodeRuntime) -> str:
    """TOML for containerd: the registries' configuration, and options that depend on the machine."""
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    text = f'{cri}.registry]\n  config_path = "/etc/containerd/certs.d"\n'
    if runtime.restrict_oom_score:
        text += f"{cri}]\n  restrict_oom_score_adj = true\n"
    if runtime.cgroup_v1:
        text += f"{cri}.containerd.runtimes.runc.options]\n  SystemdCgroup = false\n"
        if runtime.has_crun:
            text += '  BinaryName = "/usr/bin/crun"\n'
    return text


def kind_config(settings: Settings, image: str | None, runtime: NodeRuntime) -> dict[str, Any]:
    """kind's Cluster document: one node that is both control plane and worker."""
    certificates = {
        "hostPath": str(settings.certs_dir), "containerPath": "/etc/containerd/certs.d", "readOnly": True,
    }  # fmt: skip
    node: dict[str, Any] = {"role": "control-plane", "extraMounts": [certificates]}
    if image:
        node["image"] = image
    patches = kubeadm_patches(runtime, has_native_gangs(settings, image))
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": settings.name,
        "networking": {
            "ipFamily": "ipv4",
            "podSubnet": network.POD_SUBNET,
            "serviceSubnet": network.SERVICE_SUBNET,
        },
        "kubeadmConfigPatches": [yaml.safe_dump(patch, sort_keys=False) for patch in patches],
        "containerdConfigPatches": [containerd_patch(runtime)],
        "nodes": [node],
    }


def hosts_toml(registry: str, name: str) -> str:
    """containerd's host file for the image names of ``name``: our registry first, then the real one.

    In our registry containerd tries ``<name>/<repository>``, to which ``push`` pushes so that equal repositories of
    different registries do not collide, then ``<repository>``, for images that were pushed with another client.
    """
    capabilities = '  capabilities = ["pull", "resolve"]\n'
    folder = path_component(name)
    return (
        f'[host."http://{registry}:{REGISTRY_PORT}/v2/{folder}"]\n{capabilities}  override_path = true\n'
        f'[host."http://{registry}:{REGISTRY_PORT}"]\n{capabilities}'
    )


def path_component(name: str) -> str:
    """A registry's name as the first component of a repository, which may not contain the colon of a port."""
    return name.replace(":", "-")


def write_hosts(settings: Settings, name: str) -> None:
    """Write the host file for ``name`` unless it is there; containerd reads it at each pull, without a restart."""
    file = settings.certs_dir / name / "hosts.toml"
    text = hosts_toml(settings.registry, name)
    if file.is_file() and file.read_text() == text:
        return  # a pull may be reading it
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


# ---- the cluster network


def ensure_network(settings: Settings, engine: Engine, subnet: network.Network | None) -> None:
    """Create a separate network instead of kind's shared one, so that ``down`` can remove it.

    Without ``subnet`` Docker chooses one.
    """
    if engine.run("network", "inspect", settings.network, check=False).returncode == 0:
        return
    arguments = ["network", "create", "--driver", "bridge"]
    if subnet:
        arguments += ["--subnet", str(subnet), "--gateway", str(next(subnet.hosts()))]
        arguments += ["--opt", f"com.docker.network.bridge.name={settings.bridge}"]
        arguments += ["--opt", f"com.docker.network.driver.mtu={network.host_mtu()}"]
    else:
        arguments += ["--opt", "com.docker.network.bridge.enable_ip_masquerade=true"]
    engine.run(*arguments, settings.network)


# ---- the node


def node_state(settings: Settings, engine: Engine) -> str:
    """The node container's state as Docker reports it ("running", "exited" ...), "" if there is no container."""
    done = engine.run("container", "inspect", "--format", "{{.State.Status}}", settings.node, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def create(kind: Kind, image: str | None, *, own_image: bool = False) -> None:
    """Create the cluster from ``image``, None for kind's default; ``own_image``: this tool built the image."""
    config = kind_config(kind.settings, image, node_runtime(kind.engine, own_image))
    path = kind.settings.state_dir / "kind.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    for name in versions.MIRRORED_REGISTRIES:
        write_hosts(kind.settings, name)
    done = kind.run(
        "create", "cluster", "--config", str(path), "--kubeconfig", str(kind.settings.kubeconfig),
        "--wait", CREATE_WAIT, "--retain", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        logs = kind.settings.log_dir / "kind"
        kind.run("export", "logs", str(logs), "--name", kind.settings.name, check=False)
        raise ClusterError(f"kind create cluster failed:\n{shell.tail(done.stderr, 40)}", f"see {logs}")


def start_node(kind: Kind) -> bool:
    """Start the node's container, which may already be running; returns False if that fails."""
    if kind.engine.run("start", kind.settings.node, check=False).returncode != 0:
        return False
    path = str(kind.settings.kubeconfig)
    return (
        kind.run("export", "kubeconfig", "--name", kind.settings.name, "--kubeconfig", path, check=False).returncode
        == 0
    )


def recovers(kind: Kind) -> bool:
    """Whether the API server of a restarted node is ready within a minute, and the node within two more."""
    script = 'until "$1" --kubeconfig "$2" get --raw /readyz --request-timeout=2s >/dev/null 2>&1; do sleep 0.3; done'
    waiting = ["sh", "-c", script, "wait", str(kind.kubectl), str(kind.settings.kubeconfig)]
    if shell.run(waiting, check=False, timeout=60).returncode != 0:
        return False
    # the node's Ready condition may predate the restart: wait for its kubelet to make a lease before reading it
    lease, renewed = ("-n", "kube-node-lease"), f"lease/{kind.settings.node}"
    kind.ctl(*lease, "delete", renewed, "--ignore-not-found", check=False)
    made = kind.ctl(*lease, "wait", "--for=create", renewed, "--timeout=60s", check=False)
    return made.returncode == 0 and wait_ready(kind, 120)


def delete(kind: Kind) -> None:
    kind.run("delete", "cluster", "--name", kind.settings.name, "--kubeconfig", str(kind.settings.kubeconfig))


def serves(kind: Kind) -> bool:
    """Whether the API server's /readyz succeeds."""
    return kind.ctl("get", "--raw", "/readyz", "--request-timeout=5s", check=False).returncode == 0


def wait_ready(kind: Kind, seconds: int) -> bool:
    """Wait until the node and the cluster DNS are ready; returns False if that takes longer than ``seconds``."""
    waits = (
        ("wait", "--for=condition=Ready", f"node/{kind.settings.node}"),
        ("-n", "kube-system", "wait", "--for=condition=Available", "deployment/coredns"),
        ("-n", "kube-system", "wait", "--for=condition=Ready", "pod", "--selector=tier=control-plane"),
        ("-n", "default", "wait", "--for=create", "serviceaccount/default"),
    )
    return all(kind.ctl(*wait, f"--timeout={seconds}s", check=False).returncode == 0 for wait in waits)


def nodes(kind: Kind) -> list[Mapping[str, Any]]:
    """All nodes; an empty list if the API server does not respond."""
    done = kind.ctl("get", "nodes", "-o", "json", "--request-timeout=10s", check=False)
    return json.loads(done.stdout)["items"] if done.returncode == 0 else []
