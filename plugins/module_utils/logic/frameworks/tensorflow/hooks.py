"""The hooks of TensorFlow: TF_CONFIG, the default parameter server, and TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow import (
    parameter_server,
    tensorboard,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow.parameter_server import (
    pod_defaults,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow.tensorboard import validate
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow.tf_config import (
    tensorflow_environment as environment,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

__all__ = ["environment", "objects", "pod_defaults", "validate"]


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The objects that the job owns besides its pods and their Services."""
    return [*parameter_server.config_map(cluster), *tensorboard.objects(cluster)]
