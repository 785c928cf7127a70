"""Paths and names of a cluster; the other modules take them as an argument."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.base import versions
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.process import RECORD
from devtools.testbed.base.state import StateFile

DEFAULT_NAME = "dljob"


@dataclass(frozen=True)
class Settings:
    """Names and folders of one cluster. Two clusters with different ``state_dir`` share nothing but the build cache."""

    state_dir: Path
    """Kubeconfig, logs, state; removed by ``down`` except for the logs."""
    cache_dir: Path
    """Build results, keyed by content; safe to delete when no cluster is up."""
    name: str
    """The kind cluster's name; its node is ``<name>-control-plane``."""
    node_image: str | None = None
    """The user's node image, used instead of the official or the built one."""
    kubernetes: str = versions.DEFAULT_KUBERNETES
    """The minor version of Kubernetes, a key of ``versions.KUBERNETES``."""
    go_dir: Path = ROOT / "hack" / "go"
    """The folder with the module files of the Go programs."""
    node_dir: Path = ROOT / "hack" / "devtools" / "testbed" / "offline" / "node"
    """The folder with the other sources of the node image."""

    @property
    def ident(self) -> str:
        """Eight hex digits, unique on the machine, for the names of this cluster's bridges, tables and sockets."""
        return hashlib.sha256(f"{self.state_dir}\n{self.name}".encode()).hexdigest()[:8]

    @property
    def node(self) -> str:
        return f"{self.name}-control-plane"

    @property
    def network(self) -> str:
        return f"kind-{self.name}"

    @property
    def registry(self) -> str:
        return f"{self.name}-registry"

    @property
    def bridge(self) -> str:
        """An interface name has at most 15 characters."""
        return f"dlj-{self.ident}"

    @property
    def default_bridge(self) -> str:
        """The bridge of containers that name no network, such as the steps of ``docker build``."""
        return f"dlb-{self.ident}"

    @property
    def nft_table(self) -> str:
        return f"dljob_{self.ident}"

    @property
    def cgroup(self) -> str:
        return f"dljob-{self.ident}"

    @property
    def run_dir(self) -> Path:
        """The folder of the sockets: a socket path has at most 107 characters, and ``state_dir`` may be longer."""
        return Path("/run") / f"dljob-{self.ident}"

    @property
    def kubeconfig(self) -> Path:
        return self.state_dir / "kubeconfig"

    @property
    def bin_dir(self) -> Path:
        return self.state_dir / "bin"

    @property
    def log_dir(self) -> Path:
        return self.state_dir / "logs"

    @property
    def certs_dir(self) -> Path:
        """containerd's ``config_path``, mounted into the node."""
        return self.state_dir / "certs.d"

    @property
    def molecule_state_dir(self) -> Path:
        """molecule's record of what it created in this cluster; the Makefile passes the path to molecule."""
        return self.state_dir / "molecule-state"

    @property
    def load_lock(self) -> Path:
        """The lock of benchmarks, load runs and fault runs on this cluster: each would distort the others."""
        return self.state_dir / "load.lock"

    @property
    def other_cluster(self) -> Path:
        """The ``state_dir`` of the second cluster of a test run. It goes down with this one, if the run was killed."""
        return self.state_dir / "load-cluster"

    def operator_records(self) -> Sequence[Path]:
        """The records of the operators that molecule's scenarios started (`devtools.testbed.background`)."""
        return sorted((self.state_dir / "molecule").glob(f"*/{RECORD}"))


def cache_dir_from(env: Mapping[str, str]) -> Path:
    if env.get("DLJOB_CACHE"):
        return Path(env["DLJOB_CACHE"]).resolve()
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path(env.get("HOME", "/root")) / ".cache"
    return (base / "dljob-operator").resolve()


def settings_from(env: Mapping[str, str] | None = None) -> Settings:
    """Settings from the environment: DLJOB_CLUSTER_DIR, DLJOB_CLUSTER_NAME, DLJOB_CACHE, KIND_NODE_IMAGE, K8S.

    If ``state_dir`` records a cluster, its name and its version are the defaults, so that ``down`` works without
    DLJOB_CLUSTER_NAME and K8S. Raises ClusterError if the environment gives another name or version, if K8S is no
    version that this tool has, or if the record cannot be read.
    """
    env = os.environ if env is None else env
    default_dir = ROOT / ".cluster"
    state_dir = Path(env.get("DLJOB_CLUSTER_DIR") or default_dir).resolve()
    state = StateFile(state_dir).load()
    recorded = state.name
    name = env.get("DLJOB_CLUSTER_NAME") or recorded or DEFAULT_NAME
    if recorded and name != recorded:
        raise ClusterError(
            f"DLJOB_CLUSTER_NAME is {name}, but the cluster of {state_dir} is called {recorded}",
            "unset DLJOB_CLUSTER_NAME, or choose another folder for another cluster (DLJOB_CLUSTER_DIR=...)",
        )
    if not recorded and state_dir != default_dir and not env.get("DLJOB_CLUSTER_NAME"):
        # two clusters in a shared Docker must not have the same container names
        name = f"{DEFAULT_NAME}-{hashlib.sha256(str(state_dir).encode()).hexdigest()[:6]}"
    return Settings(
        state_dir=state_dir,
        cache_dir=cache_dir_from(env),
        name=name,
        node_image=env.get("KIND_NODE_IMAGE") or None,
        kubernetes=_kubernetes(env.get("K8S", ""), image_minor(state.node_image), state_dir),
    )


def image_minor(node_image: str) -> str:
    """1.37 from ``kindest/node:v1.37.0@sha256:...``; "" for a name that does not tell."""
    match = re.search(r":v(\d+\.\d+)\.\d+(?![^@-])", node_image)
    return match[1] if match else ""


def _kubernetes(chosen: str, recorded: str, state_dir: Path) -> str:
    """The minor version of Kubernetes: ``chosen``, else that of the recorded cluster, else the default."""
    known = ", ".join(versions.KUBERNETES)
    if chosen and chosen not in versions.KUBERNETES:
        raise ClusterError(f"K8S is {chosen}, which is none of {known}", "choose one of these, or unset K8S")
    if chosen and recorded and chosen != recorded:
        raise ClusterError(
            f"K8S is {chosen}, but the cluster of {state_dir} has Kubernetes {recorded}",
            "unset K8S, run cluster-down first, or choose another folder for another cluster (DLJOB_CLUSTER_DIR=...)",
        )
    if recorded in versions.KUBERNETES:
        return recorded
    return chosen or versions.DEFAULT_KUBERNETES
