"""Names that the engine and the collection both use; they must agree, so they are defined once."""

from __future__ import annotations

MANAGER = "dljob-operator"
"""Field manager, event source, user agent and value of the managed-by label."""

OWN_PREFIX = "dljob.operator/"
"""Prefix of this operator's own labels and annotations."""

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"

STATE_RUNNING = "Running"
STATE_SUCCEEDED = "Succeeded"
STATE_FAILED = "Failed"

CONFIG_MAP = "tf-job-operator-config"
"""The ConfigMap that configures accelerators."""
CONFIG_NAMESPACE = "default"
"""The namespace in which tf-operator keeps that ConfigMap. The operator's own namespace takes precedence."""

CLOUDS = ("gke", "azure")
"""The clouds whose GPU drivers the operator can mount without that ConfigMap."""
