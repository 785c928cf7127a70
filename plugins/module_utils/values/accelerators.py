"""What pods that ask for an accelerator need besides, and what the operator knows of its cluster's accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ALPHA_GPU = "alpha.kubernetes.io/nvidia-gpu"
"""The name that Kubernetes itself gave a GPU until 1.10."""
GPU = "nvidia.com/gpu"
"""The name that the device plugin gives it since."""

CONFIG_MAP = "tf-job-operator-config"
CONFIG_NAMESPACE = "default"
"""Where seed 003 keeps that ConfigMap; the operator's own namespace comes first."""
CONFIG_KEYS = ("controller_config_file.yaml", "controller-config-file.yaml")
"""The seed's key of it, and that of the charts from 2018 on."""
GRPC_SERVER_FILE = "grpcServerFilePath"

CLOUDS = ("gke", "azure")


@dataclass(frozen=True, slots=True)
class HostVolume:
    """A path of the node that containers see."""

    name: str
    mount_path: str
    host_path: str


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What containers that ask for a resource are given."""

    volumes: tuple[HostVolume, ...] = ()
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """The operator's ConfigMap, or the preset of a cloud that stands in for it."""

    accelerators: Mapping[str, Accelerator] = field(default_factory=dict)
    """By resource name."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Settings that name a file of the operator's own file system, such as grpcServerFilePath: setting to path."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with it, by resource name; under "" what concerns all of them."""
    preset: bool = False
    """A cloud's; it describes nodes that have no device plugin, which would bring the driver along by itself."""


@dataclass(frozen=True, slots=True)
class RequiredInfo:
    """What a plan has to know of the cluster_info before it can be carried out. False where that is nothing."""

    config: bool = False
    nodes: bool = False
    settings: frozenset[str] = frozenset()
    """The settings of :attr:`OperatorConfig.files` whose file is needed."""

    def __bool__(self) -> bool:
        return self.config or self.nodes or bool(self.settings)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster that jobs run on, as far as accelerators go."""

    config: OperatorConfig = OperatorConfig()
    advertised: frozenset[str] | None = None
    """The resources DOMAIN/NAME that some node has; ``None`` where nobody may look at the nodes."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """By setting, the text of the file that it names; only of those that are there."""
    watched: bool = False
    """An engine watches the ConfigMap and looks at waiting jobs again as soon as it changes."""
