"""Configuration of accelerators: what the operator adds to pods that request one, and what it knows of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ALPHA_GPU = "alpha.kubernetes.io/nvidia-gpu"
"""The resource name of a GPU in Kubernetes before 1.10."""
GPU = "nvidia.com/gpu"
"""The resource name that NVIDIA's device plugin advertises."""

CONFIG_KEYS = ("controller_config_file.yaml", "controller-config-file.yaml")
"""The key of the ConfigMap that tf-operator uses, and the one that its charts use since 2018."""
GRPC_SERVER_FILE = "grpcServerFilePath"


@dataclass(frozen=True, slots=True)
class HostVolume:
    """A path of the node that is mounted into containers."""

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
    """The volumes and variables that the operator adds to a container that requests the resource."""

    volumes: tuple[HostVolume, ...] = ()
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """The content of the operator's ConfigMap, or a cloud's preset where there is no ConfigMap."""

    accelerators: Mapping[str, Accelerator] = field(default_factory=dict)
    """By resource name."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Paths of files in the operator's own file system, by setting, such as grpcServerFilePath."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Configuration errors by resource name. The key "" holds an error that concerns all resources."""
    preset: bool = False
    """Whether this is a cloud's preset. A preset is for nodes without a device plugin, which would mount the driver."""


@dataclass(frozen=True, slots=True)
class RequiredInfo:
    """The parts of :class:`ClusterInfo` that a plan needs before the writer can apply it. False where it needs none."""

    config: bool = False
    nodes: bool = False
    settings: frozenset[str] = frozenset()
    """The settings of :attr:`OperatorConfig.files` whose file the plan needs."""

    def __bool__(self) -> bool:
        return self.config or self.nodes or bool(self.settings)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What a reconcile knows of the cluster besides the job's own objects."""

    config: OperatorConfig = OperatorConfig()
    advertised: frozenset[str] | None = None
    """The resources DOMAIN/NAME that the nodes advertise; ``None`` where the operator may not list nodes."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """The text of each existing file of :attr:`OperatorConfig.files`, by setting."""
    watched: bool = False
    """Whether an engine watches the ConfigMap and requeues waiting jobs when it changes."""
