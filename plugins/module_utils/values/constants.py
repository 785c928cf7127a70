"""Names that are part of the API: labels, annotations, states, reasons."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_JOB_UID as LABEL_JOB_UID
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_MANAGED_BY as LABEL_MANAGED_BY
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    LABEL_REPLICA_INDEX as LABEL_REPLICA_INDEX,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    LABEL_REPLICA_TYPE as LABEL_REPLICA_TYPE,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER as MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import STATE_FAILED as STATE_FAILED
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import STATE_RUNNING as STATE_RUNNING
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import STATE_SUCCEEDED as STATE_SUCCEEDED

# defined there because the engine uses them too
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS

LABEL_REPLICA_GROUP = "dljob.operator/replica-group"
"""Label of the pods of a group of replicas, which has a template of its own, with its name."""
LABEL_TENSORBOARD_OF = "dljob.operator/page-of"
"""Label with the job's uid on TensorBoard's pods. They have no job-uid label, because they are no replicas."""
LABEL_JOB_NAME_V1 = "training.kubeflow.org/job-name"
"""Label of training-operator's pods, and of those that this operator creates for its kinds."""
LABEL_ATTEMPT = "dljob.operator/attempt"
ANNOTATION_SPEC_HASH = "dljob.operator/spec-hash"
ANNOTATION_SERVICES = "dljob.operator/services"
"""Annotation of a job: how many Services it asks for. The pods and Services of a job with one Service a replica have it
too, so that the job keeps the names in the environment of its pods."""
ANNOTATION_SHARED = "dljob.operator/shared-environment"
"""Annotation of a pod of a large job: the ConfigMap with the part of the environment that all its pods share."""

ANNOTATION_LIFETIME = "dljob.operator/lifetime"
"""Annotation of an object that a framework's hook returned: how long it lives."""
LIFETIME_PODS = "pods"
"""As long as the pods: until the cleanup after the training."""
LIFETIME_JOB = "job"
LIFETIME_ACTIVE = "active"
LIFETIMES = (LIFETIME_PODS, LIFETIME_JOB, LIFETIME_ACTIVE)

ANNOTATION_GANG = "dljob.operator/gang"
"""Annotation of a PodGroup of Kubernetes itself, see :attr:`.observed.OwnedObject.gang`."""
ANNOTATION_GENERATE = "dljob.operator/generate"
"""Annotation of a Secret that a framework's hook returned without data: what the operator generates when it creates it,
once. A hook is a pure function, and the plan is too, so neither can make a key."""
GENERATE_SSH_KEY_PAIR = "ssh-key-pair"
GENERATED = (GENERATE_SSH_KEY_PAIR,)

STATUS_API_VERSION = "apiVersion"
"""Field of the status of a kind whose API versions differ: the version in which the job was created."""

STATUS_IGNORED = "ignoredSettings"
"""Field of the status: by replica type, what the operator ignores of its templates."""

NAME_LIMIT = 63
"""Longest label value, pod hostname and Service name (RFC 1123/1035)."""

# phases of the v1alpha1 status (mx-operator and tf-operator), and one for jobs that are suspended
PHASE_CREATING = "Creating"
PHASE_SUSPENDED = "Suspended"
PHASE_RUNNING = "Running"
PHASE_CLEANUP = "CleanUp"
PHASE_FAILED = "Failed"
PHASE_DONE = "Done"

# condition types of the v1 API
CONDITION_CREATED = "Created"
CONDITION_RUNNING = "Running"
CONDITION_RESTARTING = "Restarting"
CONDITION_SUSPENDED = "Suspended"
CONDITION_SUCCEEDED = "Succeeded"
CONDITION_FAILED = "Failed"
CONDITION_STALLED = "Stalled"

KIND_ANY = "DLJob"
"""The kind whose jobs name their framework."""

ORDER_ANY = "AnyOrder"
ORDER_IN_ORDER = "InOrder"
STARTUP_ORDERS = (ORDER_ANY, ORDER_IN_ORDER)

SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer")

# restart policies: this operator implements ExitCode, Kubernetes implements the others
RESTART_ALWAYS = "Always"
RESTART_ON_FAILURE = "OnFailure"
RESTART_NEVER = "Never"
RESTART_EXIT_CODE = "ExitCode"
RESTART_POLICIES = (RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER, RESTART_EXIT_CODE)

RESTART_SCOPE_REPLICA = "Replica"
RESTART_SCOPE_JOB = "Job"
RESTART_SCOPES = (RESTART_SCOPE_REPLICA, RESTART_SCOPE_JOB)

CLEAN_ALL = "All"
CLEAN_RUNNING = "Running"
CLEAN_NONE = "None"
CLEAN_POLICIES = (CLEAN_ALL, CLEAN_RUNNING, CLEAN_NONE)

# reasons of a failed job, besides those that the kubelet sets on the pod (Error, OOMKilled, Evicted ...)
REASON_INVALID = "FailedValidation"
REASON_REFUSED = "RefusedByKubernetes"
REASON_DEADLINE = "DeadlineExceeded"
REASON_BACKOFF = "BackoffLimitExceeded"
REASON_REPLICA_BACKOFF = "MaxRestartsPerReplicaExceeded"
REASON_RESTARTS_WITHIN = "RestartsWithinExceeded"
REASON_STALLED = "Stalled"
REASON_FAILURE_POLICY = "PodFailurePolicy"
REASON_PENDING = "PendingTimeoutExceeded"
REASON_DISRUPTED = "DisruptionTarget"
REASON_OOM = "OOMKilled"
"""The kubelet's reason for a container that was killed because it ran out of memory."""
REASON_WORKER_LOST = "WorkerLost"
"""A launcher has exited with 0 because it lost a worker: it starts again."""

# Event reasons that are not also condition reasons
EVENT_CREATED = "SuccessfulCreatePod"
EVENT_IGNORED = "IgnoredSettings"
EVENT_UNUSUAL = "UnusualReplicas"
EVENT_ADOPTED = "Adopted"
EVENT_NOT_TERMINATED = "PodNotTerminated"
EVENT_FORCE_DELETED = "PodForceDeleted"
EVENT_NOT_DELETED = "FailedDeletePod"
EVENT_NOT_CREATED = "FailedCreatePod"
EVENT_STALL_POLICY_IGNORED = "StallPolicyIgnored"
EVENT_OBJECT_FAILED = "FailedPage"
"""Of an object that the training does not need, as TensorBoard: the published name is older than other such objects."""

MANAGED_BY_US = (None, "", "dljob.operator/dljob-operator")
"""Values of runPolicy.managedBy for which this operator reconciles the job, besides the flavor's ``managers``; it
ignores jobs with any other value."""

LABEL_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label of a job, with the queue that admits it."""
LABEL_KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
"""Kueue's label of a job with its WorkloadPriorityClass."""
LABEL_KUEUE_TIME_LIMIT = "kueue.x-k8s.io/max-exec-time-seconds"
"""Kueue's label of a job with the seconds for which it is admitted at most."""
LABEL_KUEUE_JOB_UID = "kueue.x-k8s.io/job-uid"
"""Label of the Workloads that Kueue itself creates, with the uid of the job."""
LABEL_MULTIKUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
"""Kueue's label of a job that MultiKueue copied to a worker cluster."""

MODE_LOCAL = "local"
MODE_DISTRIBUTED = "dist"

ROUTE_API_VERSION = OWNED_KINDS["Route"].api_version
