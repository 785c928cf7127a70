"""The kind cluster itself: its configuration, its creation and its readiness."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devtools.cluster import network, shell, versions
from devtools.cluster.engine import CAP_SYS_RESOURCE, Engine, has_capability
from devtools.cluster.errors import ClusterError
from devtools.cluster.settings import Settings

NETWORK_VARIABLE = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
CREATE_WAIT = "180s"
REGISTRY_PORT = 5000
"""Inside the cluster network."""


@dataclass(frozen=True)
class Kind:
    """The kind and kubectl programs with the engine they drive."""

    settings: Settings
    engine: Engine
    kind: Path
    kubectl: Path

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """kind, driving our engine and our network. It looks ``docker`` up on PATH: ours comes first there."""
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
    """What of the machine and of the node image decides how the node runs containers."""

    restrict_oom_score: bool = False
    """Without CAP_SYS_RESOURCE containerd must not lower an OOM score."""
    cgroup_v1: bool = False
    """The systemd driver sends a D-Bus request for each of the dozen hierarchies of version 1; without it a pod's
    start and end take 0.61 instead of 0.83 s of processor time, and with crun instead of runc 0.55 s (40 pods, two
    cores). On version 2 systemd stays the driver, as Kubernetes recommends, and crun would need its D-Bus daemon."""
    has_crun: bool = False
    """Whether the node image is ours, which has crun beside runc."""


def node_runtime(engine: Engine, own_image: bool) -> NodeRuntime:
    return NodeRuntime(
        restrict_oom_score=not has_capability(CAP_SYS_RESOURCE),
        cgroup_v1=engine.run("info", "--format", "{{.CgroupVersion}}").stdout.strip() == "1",
        has_crun=own_image,
    )


def kubeadm_patches(runtime: NodeRuntime) -> list[dict[str, Any]]:
    """What differs from kind's kubeadm configuration: a node that many pods fit on, a control plane that can rest.

    Nothing here changes what the API serves or how fast controllers may write.
    """
    return [
        {
            "kind": "ClusterConfiguration",
            # the cluster is thrown away; a disk flush for each write is most of etcd's cost
            "etcd": {"local": {"extraArgs": {"unsafe-no-fsync": "true"}}},
            "controllerManager": {
                # one replica: electing a leader every two seconds only costs writes
                "extraArgs": {"leader-elect": "false", "node-cidr-mask-size": str(network.NODE_MASK)},
                # where its host-path provisioner makes the folders of volume claims
                "extraVolumes": [
                    {
                        "name": "volumes",
                        "hostPath": "/tmp/hostpath_pv",
                        "mountPath": "/tmp/hostpath_pv",
                        "pathType": "DirectoryOrCreate",
                    }
                ],
            },
            "scheduler": {"extraArgs": {"leader-elect": "false"}},
        },
        {
            "kind": "KubeletConfiguration",
            "maxPods": 250,
            # images come from the registry next door and are never cleaned up
            "imageGCHighThresholdPercent": 100,
            "registryPullQPS": 0,
            "serializeImagePulls": False,
            **({"cgroupDriver": "cgroupfs"} if runtime.cgroup_v1 else {}),
        },
    ]


def containerd_patch(runtime: NodeRuntime) -> str:
    """TOML: where containerd finds its registries, and what the machine asks for."""
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
    """kind's Cluster document: one node that is control plane and worker."""
    node: dict[str, Any] = {
        "role": "control-plane",
        "extraMounts": [
            {
                "hostPath": str(settings.certs_dir),
                "containerPath": "/etc/containerd/certs.d",
                "readOnly": True,
            },
        ],
    }
    if image:
        node["image"] = image
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": settings.name,
        "networking": {
            "ipFamily": "ipv4",
            "podSubnet": network.POD_SUBNET,
            "serviceSubnet": network.SERVICE_SUBNET,
        },
        "kubeadmConfigPatches": [yaml.safe_dump(patch, sort_keys=False) for patch in kubeadm_patches(runtime)],
        "containerdConfigPatches": [containerd_patch(runtime)],
        "nodes": [node],
    }


def hosts_toml(registry: str, name: str) -> str:
    """containerd's host file for the image names of ``name``: our registry first, then the real one.

    Two places are asked: ``<name>/<repository>``, where ``push`` puts images, so that equal repositories of different
    registries stay apart; and plain ``<repository>``, for who pushes with another client.
    """
    capabilities = '  capabilities = ["pull", "resolve"]\n'
    folder = path_component(name)
    return (
        f'[host."http://{registry}:{REGISTRY_PORT}/v2/{folder}"]\n{capabilities}  override_path = true\n'
        f'[host."http://{registry}:{REGISTRY_PORT}"]\n{capabilities}'
    )


def path_component(name: str) -> str:
    """A registry's name as the first part of a repository: that may not contain the colon of a port."""
    return name.replace(":", "-")


def write_hosts(settings: Settings, name: str) -> None:
    """containerd reads these files at each pull: a new one needs no restart."""
    folder = settings.certs_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text(hosts_toml(settings.registry, name))


def parse_default_image(source: str) -> str:
    """The node image that this kind version was released with, from its Go source."""
    for line in source.splitlines():
        if line.startswith("const Image = "):
            return line.split('"')[1]
    raise ClusterError("kind's source names no default node image", f"this tool expects kind {versions.KIND}")


# ---- the cluster network


def ensure_network(settings: Settings, engine: Engine, subnet: network.Network | None) -> None:
    """A network of our own, not kind's shared one: ``down`` may then remove it. Without ``subnet`` Docker chooses."""
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
    """Docker's word for the node container's state ("running", "exited" ...), "" if there is none."""
    done = engine.run("container", "inspect", "--format", "{{.State.Status}}", settings.node, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def create(kind: Kind, image: str | None, *, own_image: bool = False) -> None:
    """Create the cluster from ``image``, None for kind's default; ``own_image`` says that we have built it."""
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
    """Start the node's container, which may run already; False if the engine cannot."""
    if kind.engine.run("start", kind.settings.node, check=False).returncode != 0:
        return False
    path = str(kind.settings.kubeconfig)
    return (
        kind.run("export", "kubeconfig", "--name", kind.settings.name, "--kubeconfig", path, check=False).returncode
        == 0
    )


def recovers(kind: Kind) -> bool:
    """Whether a node that was started again serves within a minute, and is Ready within two more."""
    script = 'until "$1" --kubeconfig "$2" get --raw /readyz --request-timeout=2s >/dev/null 2>&1; do sleep 0.3; done'
    waiting = ["sh", "-c", script, "wait", str(kind.kubectl), str(kind.settings.kubeconfig)]
    if shell.run(waiting, check=False, timeout=60).returncode != 0:
        return False
    renewed = _lease_time(kind)
    # what the API holds of the node is from before it died: the next sign of life is awaited before it is believed
    lease = (
        "-n",
        "kube-node-lease",
        "get",
        "lease",
        kind.settings.node,
        "--watch",
        "-o",
        "jsonpath={.spec.renewTime}{'\\n'}",
    )
    for line in shell.lines([kind.kubectl, "--kubeconfig", kind.settings.kubeconfig, *lease], timeout=60):
        if line != renewed:
            return wait_ready(kind, 120)
    return False


def _lease_time(kind: Kind) -> str:
    done = kind.ctl(
        "-n",
        "kube-node-lease",
        "get",
        "lease",
        kind.settings.node,
        "-o",
        "jsonpath={.spec.renewTime}",
        check=False,
    )
    return done.stdout.strip()


def delete(kind: Kind) -> None:
    kind.run("delete", "cluster", "--name", kind.settings.name, "--kubeconfig", str(kind.settings.kubeconfig))


def serves(kind: Kind) -> bool:
    """Whether the API server says it is ready."""
    return kind.ctl("get", "--raw", "/readyz", "--request-timeout=5s", check=False).returncode == 0


def wait_ready(kind: Kind, seconds: int) -> bool:
    """Wait until the node is Ready and cluster DNS answers; False if that takes longer than ``seconds``."""
    waits = (
        ("wait", "--for=condition=Ready", f"node/{kind.settings.node}"),
        ("-n", "kube-system", "wait", "--for=condition=Available", "deployment/coredns"),
        ("-n", "kube-system", "wait", "--for=condition=Ready", "pod", "--selector=tier=control-plane"),
        ("-n", "default", "wait", "--for=create", "serviceaccount/default"),
    )
    return all(kind.ctl(*wait, f"--timeout={seconds}s", check=False).returncode == 0 for wait in waits)


def nodes(kind: Kind) -> list[Mapping[str, Any]]:
    """All nodes as the API has them; an empty list if it does not answer."""
    done = kind.ctl("get", "nodes", "-o", "json", "--request-timeout=10s", check=False)
    return json.loads(done.stdout)["items"] if done.returncode == 0 else []
