"""Names that the engine and the collection both use; they must agree, so they are defined once."""

from __future__ import annotations

MANAGER = "dljob-operator"
"""Field manager, event source, user agent and value of the managed-by label."""

OWN_PREFIX = "dljob.operator/"
"""Prefix of this operator's own labels and annotations."""

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_JOB_UID = f"{OWN_PREFIX}job-uid"

STATE_RUNNING = "Running"
STATE_SUCCEEDED = "Succeeded"
STATE_FAILED = "Failed"

CONFIG_MAP = "tf-job-operator-config"
"""The ConfigMap that configures accelerators."""
CONFIG_NAMESPACE_VARIABLE = "DLJOB_CONFIG_NAMESPACE"
"""The environment variable with another namespace for that ConfigMap, such as ``default``, which tf-operator uses."""

MAX_REPLICAS = 20_000
"""Default maximum number of replicas of a job. A reconcile of so many takes seconds; a cluster holds 150,000 pods."""
MAX_REPLICAS_VARIABLE = "DLJOB_MAX_REPLICAS_PER_JOB"
"""The environment variable by which an engine passes another maximum to the runs."""

FORCE_DELETE_VARIABLE = "DLJOB_FORCE_DELETE_AFTER_SECONDS"
"""The environment variable by which an engine passes the default of runPolicy.forceDeleteAfterSeconds to the runs."""
TERMINATION_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
"""What containers without a ``terminationMessagePolicy`` may get, the default first; the terms are Kubernetes'."""
TERMINATION_MESSAGE_POLICY_VARIABLE = "DLJOB_TERMINATION_MESSAGE_POLICY"
"""The environment variable by which an engine passes another of these to the runs."""

SERVICES_PER_JOB = "per-job"
SERVICES_PER_REPLICA = "per-replica"
SERVICES = (SERVICES_PER_JOB, SERVICES_PER_REPLICA)
"""Whether a job has one headless Service for all replicas, the default, or also one a replica, as in v1."""
SERVICES_VARIABLE = "DLJOB_SERVICES"
"""The environment variable by which an engine passes another of these to the runs."""
CLUSTER_DOMAIN_VARIABLE = "CUSTOM_CLUSTER_DOMAIN"
"""The environment variable, of training-operator too, with the cluster's DNS domain, which then ends the names in
TF_CONFIG."""

KUEUE_VARIABLE = "DLJOB_KUEUE"
KUEUE_WORKLOADS = "workloads"
"""The value with which the operator itself creates the Workloads by which Kueue queues jobs with a queue's label."""
GANG_SCHEDULER_VARIABLE = "DLJOB_GANG_SCHEDULER_NAME"
"""The environment variable by which an engine passes the scheduler that starts the pods of a job together."""

SETTING_CLUSTER_DOMAIN = "clusterDomain"
"""Key of a setting of the cluster spec: the value of CLUSTER_DOMAIN_VARIABLE."""
SETTING_KUBECTL_DELIVERY = "mpiKubectlDeliveryImage"
"""Key of a setting that the hooks get: the image from which the launcher of an MPIJob v1 gets its kubectl."""
KUBECTL_DELIVERY_IMAGE = "kubeflow/kubectl-delivery:latest"
KUBECTL_DELIVERY_VARIABLE = "DLJOB_MPI_KUBECTL_DELIVERY_IMAGE"
"""The environment variable by which an engine passes another such image to the runs."""

SETTING_NON_ROOT_USER = "nonRootUserId"
"""Key of a setting that the hooks get: the user of an added container where the job's template forbids root and names
none. ``None`` where the cluster assigns it, as OpenShift does."""
NON_ROOT_USER = 65534
NON_ROOT_USER_VARIABLE = "DLJOB_NON_ROOT_USER_ID"
"""The environment variable by which an engine passes another such user id to the runs, or ``none``."""

FRAMEWORKS_VARIABLE = "DLJOB_FRAMEWORKS"
"""The environment variable with folders of roles whose frameworks DLJobs may name, besides those of this collection."""

CLOUDS = ("gke", "azure")
CLOUD_VARIABLE = "DLJOB_CLOUD"
"""The clouds whose GPU drivers the operator can mount without that ConfigMap."""
