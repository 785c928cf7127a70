"""The hooks of PyTorch: its rendezvous, and the autoscaler of an elastic job."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch import autoscaler
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.autoscaler import objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.rendezvous import (
    pytorch_environment as environment,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.rendezvous import (
    pytorch_validation,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

__all__ = ["environment", "objects", "validate"]


def validate(cluster: Cluster) -> Iterator[str]:
    """The errors of the job's own fields."""
    yield from pytorch_validation(cluster)
    yield from autoscaler.validate(cluster)
