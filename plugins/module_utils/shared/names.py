"""Names that the engine and the collection both use; they must agree, so they are defined once."""

from __future__ import annotations

MANAGER = "dljob-operator"
"""Field manager, event source, user agent and value of the managed-by label."""

OWN_PREFIX = "dljob.operator/"
"""Prefix of this operator's own labels and annotations."""

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_JOB_UID = f"{OWN_PREFIX}job-uid"
LABEL_REPLICA_TYPE = f"{OWN_PREFIX}replica-type"
LABEL_REPLICA_INDEX = f"{OWN_PREFIX}replica-index"

STATE_RUNNING = "Running"
STATE_SUCCEEDED = "Succeeded"
STATE_FAILED = "Failed"

CONFIG_MAP = "tf-job-operator-config"
"""The ConfigMap that configures accelerators."""

ACCELERATORS = ("gpu", "nvidia.com/mig", "google.com/tpu", "habana.ai/", "aws.amazon.com/neuron", "huawei.com/ascend")
"""What the name of an extended resource has a part of if it is an accelerator; a MIG device counts as one."""

MAX_REPLICAS = 20_000
"""Default maximum number of replicas of a job. A reconcile of so many takes seconds; a cluster holds 150,000 pods."""
TERMINATION_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
"""What containers without a ``terminationMessagePolicy`` may get, the default first; the terms are Kubernetes'."""

SERVICES_PER_JOB = "per-job"
SERVICES_PER_REPLICA = "per-replica"
SERVICES = (SERVICES_PER_JOB, SERVICES_PER_REPLICA)
"""Whether a job has one headless Service for all replicas, the default, or also one a replica, as in v1."""

SETTING_CLUSTER_DOMAIN = "clusterDomain"
"""Key of a setting of the cluster spec: the value of ``CUSTOM_CLUSTER_DOMAIN``."""
SETTING_KUBECTL_DELIVERY = "mpiKubectlDeliveryImage"
"""Key of a setting that the hooks get: the image from which the launcher of an MPIJob v1 gets its kubectl."""
KUBECTL_DELIVERY_IMAGE = "kubeflow/kubectl-delivery:latest"

SETTING_NON_ROOT_USER = "nonRootUserId"
"""Key of a setting that the hooks get: the user of an added container where the job's template forbids root and names
none. ``None`` where the cluster assigns it, as OpenShift does."""
NON_ROOT_USER = 65534


def is_accelerator(resource: str) -> bool:
    """Whether a resource of this name is an accelerator."""
    return any(part in resource for part in ACCELERATORS)
