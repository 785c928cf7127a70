"""Each cause, in the words that Kubernetes 1.37, containerd, crun, Kueue and Volcano use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dljob import why
from dljob.why import (
    Severity,
    Snapshot,
    Unread,
    admission,
    containers,
    ends,
    explain,
    images,
    job,
    nodes,
    operator,
    queueing,
    scheduling,
    volumes,
)
from dljob.why.finding import Rule
from support.why_snapshots import (
    UID,
    ago,
    changed,
    condition,
    container,
    ended,
    event,
    failed,
    job_event,
    node,
    pod,
    pod_event,
    running,
    snapshot,
    unplaced,
    waiting,
)
from support.why_snapshots import job as job_

MODULES = (admission, containers, ends, images, job, nodes, operator, queueing, scheduling, volumes)
WORKER = pod("worker")
NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "registry.example/dljob/train:1": failed to resolve '
    'reference "registry.example/dljob/train:1": registry.example/dljob/train:1: not found'
)
HEAD = 'failed to pull and unpack image "registry.example/train:1": failed to resolve reference: '


def pulling(reason: str, message: str) -> Snapshot:
    return snapshot(pod("master", "Pending", container(waiting(reason, message))), WORKER)


def refused(message: str, reason: str = "Pod/train-master-0: ") -> Snapshot:
    """The operator could not create a pod."""
    return changed(snapshot(of=job_(reason=reason + message)), pods=())


def schedule(rejections: str, total: int = 3, **more: Any) -> Snapshot:
    tail = f" preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
    return snapshot(unplaced(f"0/{total} nodes are available: {rejections}.{tail}", **more), WORKER)


def end(code: int, message: str = "", reason: str = "Error") -> Snapshot:
    return snapshot(pod("master", "Failed", container(ended(code, reason, message))), WORKER)


def on_node(reason: str, message: str) -> Snapshot:
    stuck = pod("master", "Pending", container(waiting("ContainerCreating")))
    return snapshot(stuck, WORKER, events=(pod_event(reason, message),))


def claim(phase: str, *events: tuple[str, str], deleted: bool = False) -> Snapshot:
    volume = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    metadata = {"name": "data", "creationTimestamp": ago(300), **({"deletionTimestamp": ago(10)} if deleted else {})}
    said = tuple(event("PersistentVolumeClaim", "data", reason, message) for reason, message in events)
    waits = unplaced(
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", spec=volume
    )
    return snapshot(waits, WORKER, claims=({"metadata": metadata, "status": {"phase": phase}},), events=said)


def queue(*conditions: dict[str, Any], local: bool = True, **fields: Any) -> Snapshot:
    """A job of the queue ``research`` that has not been admitted."""
    of = job_(reason="Waits in the queue research", phase="Suspended", conditions=[condition("Suspended")])
    of["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    owner = [{"uid": UID}]
    workload = {
        "metadata": {"name": "train-1", "ownerReferences": owner, "creationTimestamp": ago(200)},
        "spec": {"queueName": "research", "active": fields.pop("active", True)},
        "status": {"conditions": list(conditions), "admissionChecks": fields.pop("checks", [])},
    }
    other = {
        "metadata": {"name": "other", "creationTimestamp": ago(400)},
        "spec": {"queueName": "research"},
        "status": {},
    }
    of_queue = {"metadata": {"name": "research"}, "spec": {"clusterQueue": "all", **fields.pop("queue_spec", {})}}
    of_queue["status"] = {"conditions": fields.pop("queue_conditions", [condition("Active")])}
    workloads = fields.pop("workloads", (workload, other))
    found = snapshot(of=of, workloads=workloads, local_queues=(of_queue,) if local else (), **fields)
    return changed(found, pods=())


def gang(phase: str, *conditions: dict[str, Any], least: int = 2) -> Snapshot:
    group = {
        "kind": "PodGroup",
        "metadata": {"name": "train", "creationTimestamp": ago(300)},
        "spec": {"minMember": least},
        "status": {"phase": phase, "conditions": list(conditions)},
    }
    return snapshot(unplaced("pod group is not ready, 1 Pending, 2 minAvailable"), WORKER, pod_groups=(group,))


def new(**fields: Any) -> Snapshot:
    """A job that no operator has looked at."""
    of = {**job_(age=120, spec=fields.pop("spec", None)), "status": {}}
    return changed(snapshot(of=of, **fields), pods=())


def deployment(name: str, ready: int, *command: str, namespace: str = "dljob-system") -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "x", "command": list(command)}]}}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "template": template},
        "status": {"readyReplicas": ready},
    }


def deleted(*finalizers: str) -> Snapshot:
    of = job_()
    of["metadata"] |= {"deletionTimestamp": ago(100), "finalizers": list(finalizers)}
    return snapshot(of=of)


def terminating(phase: str, *finalizers: str) -> Snapshot:
    metadata = {"deletionTimestamp": ago(100), "finalizers": list(finalizers)}
    return snapshot(pod("master", phase, metadata=metadata), WORKER)


def unhealthy(message: str, reason: str = "Unhealthy") -> Snapshot:
    not_ready = pod("master", conditions=(condition("PodScheduled"), condition("Ready", "False")))
    return snapshot(not_ready, WORKER, events=(pod_event(reason, message),))


def with_size(**sizes: str) -> Snapshot:
    pods = [
        pod(type_, spec={"containers": [{"name": "pytorch", "env": [{"name": "WORLD_SIZE", "value": size}]}]})
        for type_, size in sizes.items()
    ]
    return snapshot(*pods)


def suspended() -> Snapshot:
    of = job_(spec={"runPolicy": {"suspend": True}}, conditions=[condition("Suspended")])
    of["metadata"]["managedFields"] = [
        {"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:runPolicy": {"f:suspend": {}}}}}
    ]
    return changed(snapshot(of=of), pods=())


def behind() -> Snapshot:
    of = job_()
    of["metadata"] |= {"generation": 2, "managedFields": [{"time": ago(100)}]}
    return snapshot(of=of)


QUOTA = (
    'pods "train-master-0" is forbidden: exceeded quota: small, requested: pods=1,requests.cpu=2, used: pods=3,'
    "requests.cpu=4, limited: pods=3,requests.cpu=4"
)
WAITS = "couldn't assign flavors to pod set master: insufficient unused quota for cpu in flavor default, 1 more needed"

TABLE: list[tuple[str, Snapshot, str]] = [
    # images
    ("image-not-found", pulling("ErrImagePull", NOT_FOUND), "not found"),
    ("image-not-found", pulling("ImagePullBackOff", f'Back-off pulling image "x": ErrImagePull: {NOT_FOUND}'), ""),
    ("image-name-invalid", pulling("InvalidImageName", "couldn't parse image name"), "parse"),
    ("image-never-pulled", pulling("ErrImageNeverPull", "is not present with pull policy of Never"), "Never"),
    ("image-rate-limit", pulling("ErrImagePull", HEAD + "unexpected status from HEAD request: 429 Too Many Requests"), "429"),
    ("registry-certificate", pulling("ErrImagePull", HEAD + "tls: failed to verify certificate: x509: certificate signed by unknown authority"), "x509"),
    ("image-unauthorized", pulling("ErrImagePull", "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"), "denied"),
    ("image-platform", pulling("ErrImagePull", "no match for platform in manifest: not found"), "platform"),
    ("image-disk-full", pulling("ErrImagePull", "write /var/lib/containerd/x: no space left on device"), "space"),
    ("image-signature", pulling("SignatureValidationFailed", "image policy"), "policy"),
    ("registry-unreachable", pulling("ErrImagePull", HEAD + "dial tcp: lookup registry.example on 10.0.0.1:53: no such host"), "no such host"),
    ("image-pull", pulling("ErrImagePull", "rpc error: code = Unknown desc = strange"), "strange"),
    (
        "pull-secret-missing",
        changed(pulling("ErrImagePull", NOT_FOUND), events=(pod_event("FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (login); attempting to pull the image may not succeed."),)),
        "(login)",
    ),
    (
        "image-pulling",
        snapshot(pod("master", "Pending", container(waiting("ContainerCreating"))), WORKER, events=(pod_event("Pulling", 'Pulling image "registry.example/train:1"', 200, "Normal"),)),
        "Pulling image",
    ),
    # scheduling
    ("gang-incomplete", snapshot(unplaced("minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"), WORKER), "minCount"),
    ("claim-missing", snapshot(unplaced('0/3 nodes are available: persistentvolumeclaim "data" not found. not found'), WORKER), '"data"'),
    ("claim-deleted", snapshot(unplaced('0/3 nodes are available: persistentvolumeclaim "data" is being deleted. not found'), WORKER), '"data"'),
    ("claim-lost", snapshot(unplaced('0/3 nodes are available: persistentvolumeclaim "data" bound to non-existent persistentvolume "pv". not found'), WORKER), '"pv"'),
    ("claim-unbound", snapshot(unplaced("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"), WORKER), "unbound"),
    ("volume-node-conflict", schedule("1 node(s) didn't match PersistentVolume's node affinity, 2 node(s) had untolerated taint(s)"), ""),
    ("volume-node-conflict", schedule("3 node(s) had volume node affinity conflict"), ""),
    ("volume-none", schedule("3 node(s) didn't find available persistent volumes to bind"), ""),
    ("volume-limit", schedule("3 node(s) exceed max volume count"), ""),
    ("volume-in-use", schedule("3 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"), ""),
    ("device-claim", schedule("1 cannot allocate all claims, 2 node(s) had untolerated taint(s)"), "claims"),
    ("host-ports", schedule("1 node(s) didn't have free ports for the requested pod ports, 2 Insufficient cpu"), ""),
    ("pod-affinity", schedule("3 node(s) didn't match pod affinity rules"), ""),
    ("pod-anti-affinity", schedule("3 node(s) didn't match pod anti-affinity rules"), ""),
    ("pod-anti-affinity", schedule("3 node(s) didn't satisfy existing pods anti-affinity rules"), ""),
    ("topology-spread", schedule("3 node(s) didn't match pod topology spread constraints (missing required label)"), ""),
    ("insufficient-cpu", schedule("2 Insufficient memory, 3 Insufficient cpu"), "3 Insufficient cpu"),
    ("insufficient-memory", schedule("3 Insufficient memory"), ""),
    ("insufficient-ephemeral-storage", schedule("3 Insufficient ephemeral-storage"), ""),
    ("insufficient-resource", schedule("3 Insufficient nvidia.com/gpu"), ""),
    ("too-many-pods", schedule("3 Too many pods"), ""),
    ("node-missing", snapshot(unplaced("no nodes available to schedule pods"), WORKER), ""),
    ("node-unschedulable", schedule("3 node(s) were unschedulable"), ""),
    ("node-selector", schedule("3 node(s) didn't match Pod's node affinity/selector"), ""),
    ("taint", schedule("3 node(s) had untolerated taint {gpu: true}"), "{gpu: true}"),
    ("unschedulable", schedule("3 a rule of a plugin"), ""),
    ("scheduling-gate", snapshot(unplaced("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated", spec={"schedulingGates": [{"name": "example.com/wait"}]}), WORKER), "gates"),
    ("scheduler-missing", snapshot({**(_silent := unplaced("")), "status": {**_silent["status"], "conditions": []}}, WORKER), "default-scheduler"),
    ("preempting", snapshot(unplaced("0/3 nodes are available: 3 Insufficient cpu", nominatedNodeName="node-b"), WORKER), ""),
    # volumes
    ("secret-missing", on_node("FailedMount", 'MountVolume.SetUp failed for volume "data" : secret "login" not found'), "login"),
    ("configmap-missing", on_node("FailedMount", 'MountVolume.SetUp failed for volume "data" : configmap "settings" not found'), "settings"),
    ("key-missing", on_node("FailedMount", 'MountVolume.SetUp failed for volume "data" : references non-existent secret key: token'), "token"),
    ("volume-driver", on_node("FailedMount", "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name csi.example.com not found in the list of registered CSI drivers"), ""),
    ("volume-attached", on_node("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other'), ""),
    ("volume-attach", on_node("FailedAttachVolume", 'AttachVolume.Attach failed for volume "pvc-1" : rpc error'), ""),
    ("host-path", on_node("FailedMount", "hostPath type check failed: /data is not a directory"), ""),
    ("runtime-handler", on_node("FailedCreatePodSandBox", 'Failed to create pod sandbox: no runtime for "gvisor" is configured'), ""),
    ("pod-network", on_node("FailedCreatePodSandBox", "Failed to create pod sandbox: plugin type=bridge failed (add): no IP addresses available"), ""),
    ("volume-mount", on_node("FailedMount", "mount failed: exit status 32: mount.nfs: access denied by server"), "nfs"),
    ("claim-class-missing", claim("Pending", ("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')), "fast"),
    ("claim-no-volume", claim("Pending", ("FailedBinding", "no persistent volumes available for this claim and no storage class is set")), ""),
    ("claim-provisioning", claim("Pending", ("ProvisioningFailed", "failed to provision volume: quota of the storage")), ""),
    ("claim-provisioner", claim("Pending", ("ExternalProvisioning", "Waiting for a volume to be created either by the external provisioner 'x' or manually")), ""),
    ("claim-pending", claim("Pending"), "phase Pending"),
    ("claim-lost", claim("Lost", ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")), "Data on the volume is lost!"),
    ("claim-deleted", claim("Bound", deleted=True), ""),
    # admission
    ("quota", refused(QUOTA), "exceeded quota"),
    ("quota-unspecified", refused('pods "x" is forbidden: failed quota: small: must specify limits.memory for: pytorch'), ""),
    ("limit-range", refused('pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2'), ""),
    ("pod-security", refused('pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'), ""),
    ("account-missing", refused('pods "x" is forbidden: error looking up service account team/robot: serviceaccount "robot" not found'), ""),
    ("webhook-silent", refused('Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: context deadline exceeded'), ""),
    ("webhook-denied", refused('admission webhook "check.example.com" denied the request: no owner label'), ""),
    ("policy-denied", refused("pods \"x\" is forbidden: ValidatingAdmissionPolicy 'owner' with binding 'owner' denied request: no owner"), ""),
    ("priority-class-missing", refused('pods "x" is forbidden: no PriorityClass with name high was found'), ""),
    ("runtime-class-missing", refused('pods "x" is forbidden: pod rejected: RuntimeClass "gvisor" not found'), ""),
    ("namespace-terminating", refused('pods "x" is forbidden: unable to create new content in namespace team because it is being terminated'), ""),
    ("operator-permission", refused('pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""'), ""),
    ("name-taken", refused("an object of that name exists and does not belong to this job, and has no owner"), ""),
    ("name-terminates", refused("Pod/train-master-0, which terminates, is gone", "waiting until "), ""),
    ("pod-invalid", changed(snapshot(of=failed("RefusedByKubernetes", 'Pod/x: Pod "x" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "nowhere"')), pods=()), "nowhere"),
    ("admission-denied", refused('pods "x" is forbidden: a rule of a plugin'), ""),
    ("quota", changed(snapshot(of=job_(conditions=[condition("Created")]), events=(job_event("FailedCreatePod", f"Error creating: {QUOTA}"),)), pods=()), "exceeded quota"),
    ("quota", changed(snapshot(events=(event("Job", "train-launcher", "FailedCreate", f"Error creating: {QUOTA}"),)), pods=()), "exceeded quota"),
    # nodes
    ("evicted", snapshot(pod("master", "Failed", reason="Evicted", message='Usage of EmptyDir volume "data" exceeds the limit "1Mi". '), WORKER), "1Mi"),
    ("evicted", snapshot(pod("master", "Failed", reason="Evicted", message="The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi."), WORKER), "low on resource"),
    ("node-shutdown", snapshot(pod("master", "Failed", reason="Terminated", message="Pod was terminated in response to imminent node shutdown."), WORKER), ""),
    ("preempted", snapshot(pod("master", "Failed", conditions=(condition("DisruptionTarget", "True", "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),)), WORKER), ""),
    ("node-refused", snapshot(pod("master", "Failed", reason="UnexpectedAdmissionError", message="Allocate failed due to no healthy devices present"), WORKER), "devices"),
    ("node-lost", snapshot(pod("master", "Running", conditions=(condition("DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),)), WORKER), ""),
    ("evicted-by-api", snapshot(pod("master", "Failed", conditions=(condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"),)), WORKER), ""),
    ("pod-deadline", snapshot(pod("master", "Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"), WORKER), ""),
    ("disrupted", snapshot(pod("master", "Failed", reason="SomethingElse", message="new"), WORKER), ""),
    ("node-not-ready", snapshot(pod("master", conditions=(condition("Ready", "False"),)), WORKER, nodes=(node("node-a", condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")),)), "stopped posting"),
    ("node-gone", snapshot(pod("master", conditions=(condition("Ready", "False"),)), WORKER, nodes=(node("node-b"),)), "node-a"),
    ("node-pressure", snapshot(pod("master", "Pending"), WORKER, nodes=(node("node-a", condition("Ready"), condition("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure")),)), "disk pressure"),
    ("stuck-terminating", terminating("Running"), ""),
    ("pod-finalizer", terminating("Failed", "example.com/keep"), "example.com/keep"),
    # containers
    ("run-as-non-root", snapshot(pod("master", "Pending", container(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: x, container: pytorch)"))), WORKER), ""),
    ("key-missing", snapshot(pod("master", "Pending", container(waiting("CreateContainerConfigError", "couldn't find key token in Secret team/login"))), WORKER), "token"),
    ("secret-missing", snapshot(pod("master", "Pending", container(waiting("CreateContainerConfigError", 'secret "login" not found'))), WORKER), ""),
    ("configmap-missing", snapshot(pod("master", "Pending", container(waiting("CreateContainerConfigError", 'configmap "settings" not found'))), WORKER), ""),
    ("container-create", snapshot(pod("master", "Pending", container(waiting("CreateContainerError", "strange"))), WORKER), ""),
    ("program-missing", snapshot(pod("master", "Pending", container(waiting("RunContainerError", 'exec: "train": executable file not found in $PATH: unknown'))), WORKER), ""),
    ("init-crash", snapshot(pod("master", "Pending", init=container(waiting("CrashLoopBackOff"), "first", 2, ended(3, "Error", "the data is gone"))), WORKER), "the data is gone"),
    ("init-waits", snapshot(pod("master", "Pending", init=container(running(90), "first")), WORKER), "first"),
    ("crash-loop", snapshot(pod("master", "Running", container(waiting("CrashLoopBackOff"), restarts=4, last=ended(5, "Error", "lost")), conditions=(condition("Ready", "False"),)), WORKER), "exit code 5"),
    ("crash-loop", snapshot(pod("master", "Running", container(ended(5), restarts=1), conditions=(condition("Ready", "False"),)), WORKER), "exit code 5"),
    ("restarts", snapshot(pod("master", "Running", container(running(30), restarts=3, last=ended(5))), WORKER), "exit code 5"),
    ("probe-startup", unhealthy("Startup probe failed: "), ""),
    ("probe-liveness", unhealthy("Liveness probe failed: HTTP probe failed with statuscode: 500"), "500"),
    ("probe-readiness", unhealthy("Readiness probe failed: command timed out"), ""),
    # ends
    ("out-of-memory", end(137, "", "OOMKilled"), "OOMKilled"),
    ("exec-format", end(1, '{"msg":"exec container process `/data/program`: Exec format error","level":"error"}'), ""),
    ("exec-format", end(255, "exec /train.sh: exec format error"), ""),
    ("not-executable", end(128, "OCI runtime create failed: open executable: Permission denied", "StartError"), ""),
    ("working-directory", end(128, 'OCI runtime create failed: chdir to cwd ("/work") set in config.json failed', "StartError"), ""),
    ("program-missing", end(128, "OCI runtime create failed: executable file `train` not found in $PATH: No such file or directory", "StartError"), ""),
    ("program-missing", end(128, 'OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "train": executable file not found in $PATH', "StartError"), ""),
    ("program-missing", end(128, 'runc create failed: unable to start container process: exec: "/train": stat /train: no such file or directory', "StartError"), ""),
    ("not-executable", end(128, 'runc create failed: unable to start container process: exec: "/etc/passwd": permission denied', "StartError"), ""),
    ("exit-126", end(126, "sh: /train.sh: Permission denied"), ""),
    ("exit-127", end(127, "sh: train: not found"), ""),
    ("gpu-out-of-memory", end(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"), ""),
    ("gpu-missing", end(1, "RuntimeError: Found no NVIDIA driver on your system"), ""),
    ("port-in-use", end(1, "OSError: [Errno 98] Address already in use"), ""),
    ("name-not-resolved", end(1, "socket.gaierror: [Errno -3] Temporary failure in name resolution"), ""),
    ("collective-failed", end(1, "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp"), ""),
    ("shared-memory", end(1, "DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory"), ""),
    ("disk-full", end(1, "OSError: [Errno 28] No space left on device"), ""),
    ("module-missing", end(1, "ModuleNotFoundError: No module named 'torchvision'"), ""),
    ("permission-denied", end(1, "PermissionError: [Errno 13] Permission denied: '/data'"), ""),
    ("exit-134", end(134), ""),
    ("exit-137", end(137), ""),
    ("exit-139", end(139), ""),
    ("exit-143", end(143), ""),
    ("exit-code", end(3, "ValueError"), "ValueError"),
    ("exit-139", changed(snapshot(of=failed("Error", "container pytorch exited with 139", {"pod": "train-master-0", "container": "pytorch", "exitCode": 139, "reason": "Error"})), pods=()), "139"),
    # the job
    ("backoff-limit", snapshot(of=failed("BackoffLimitExceeded", "the job's replicas ended 1 times with an error")), ""),
    ("backoff-limit", snapshot(of=job_(conditions=[condition("Failed", "True", "PyTorchJobFailed", "PyTorchJob train has failed because it has reached the specified backoff limit")])), ""),
    ("replica-backoff-limit", snapshot(of=failed("MaxRestartsPerReplicaExceeded")), ""),
    ("restarts-within", snapshot(of=failed("RestartsWithinExceeded", "the job's replicas ended 4 times with an error since yesterday")), ""),
    ("stalled", snapshot(of=failed("Stalled", "no program has reported progress for more than 60 s, as")), "60 s"),
    ("stalled", snapshot(of=job_(conditions=[condition("Stalled", "True", "PyTorchJobStalled", "no program has reported progress within 30 s")])), "within 30 s"),
    ("deadline", snapshot(of=failed("DeadlineExceeded", "the job was active for longer than spec.runPolicy.activeDeadlineSeconds, 5 s")), ""),
    ("pending-timeout", snapshot(of=failed("PendingTimeoutExceeded", "pod x is pending for longer than 5 s")), ""),
    ("failure-policy", snapshot(of=failed("PodFailurePolicy", "rule 0")), ""),
    ("container-name", snapshot(of=failed("FailedValidation", "requires a container named pytorch, which runs the training")), ""),
    ("container-name", new(spec={"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [{"name": "trainer"}]}}}}}), "trainer"),
    ("replicas-of-groups", snapshot(of=failed("FailedValidation", "the groups have 3 replicas, and replicas is 2")), ""),
    ("too-many-replicas", snapshot(of=failed("FailedValidation", "the job has 30000 replicas, and the operator allows 20000")), ""),
    ("job-invalid", snapshot(of=failed("FailedValidation", "dljob.operator/services is some")), ""),
    ("job-failed", snapshot(of=failed("Unknown", "strange")), "strange"),
    ("suspended", suspended(), "kubectl-edit"),
    ("job-finalizer", deleted("example.com/keep"), "example.com/keep"),
    ("job-deleting", deleted("foregroundDeletion"), ""),
    ("start-order", changed(snapshot(of=job_(reason="worker starts once all replicas of master are ready")), pods=(pod(),)), ""),
    ("replicas-missing", snapshot(pod()), "pods: 1"),
    ("replicas-disagree", with_size(master="2", worker="3"), "3 in train-worker-0"),
    ("hang-member-ended", snapshot(pod("worker", "Succeeded", container(ended(0, "Completed", age=2000))), pod("worker", metadata={"name": "train-worker-1"})), "Succeeded"),
    ("hang-no-progress", snapshot(of=job_(trainerStatus={"lastUpdatedTime": ago(3600)})), "lastUpdatedTime"),
    # the operator
    ("managed-elsewhere", new(spec={"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}), ""),
    ("operator-not-running", new(deployments=(deployment("dljob-operator", 0),)), ""),
    ("operator-not-running", new(leases=({"metadata": {"name": "dljob-operator", "namespace": "x"}, "spec": {"renewTime": "2026-01-02T11:50:00.000000Z"}},)), "11:50"),
    ("operator-other-namespace", new(deployments=(deployment("dljob-operator", 1, "dljob-operator", "run", "--namespace", "research"),)), "research"),
    ("operator-silent", new(), "no status"),
    ("operator-behind", behind(), "generation: 2"),
    ("dns-not-ready", snapshot(pod(conditions=(condition("Ready", "False"),)), WORKER, deployments=(deployment("coredns", 0, namespace="kube-system"),)), ""),
    ("service-missing", snapshot(pod(spec={"subdomain": "train"}), WORKER), "subdomain: train"),
    # queues
    ("kueue-waits", queue(condition("QuotaReserved", "False", "Pending", WAITS)), "insufficient unused quota"),
    ("kueue-too-large", queue(condition("QuotaReserved", "False", "Pending", "insufficient quota for cpu in flavor default, request > maximum capacity (10 > 3)")), ""),
    ("kueue-queue-missing", queue(local=False), "research"),
    ("kueue-queue-inactive", queue(queue_conditions=[condition("Active", "False", "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue")]), ""),
    ("kueue-queue-stopped", queue(queue_spec={"stopPolicy": "Hold"}), "Hold"),
    ("kueue-deactivated", queue(active=False), ""),
    ("kueue-admission-check", queue(condition("QuotaReserved"), checks=[{"name": "budget", "state": "Pending"}]), "budget is Pending"),
    ("kueue-evicted", queue(condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload with higher priority")), "higher priority"),
    ("kueue-no-workload", queue(workloads=()), ""),
    ("gang-incomplete", gang("Inqueue", condition("Unschedulable", "True", "NotEnoughResources", "1/2 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 minAvailable")), "1/2 tasks"),
    ("gang-too-few-pods", gang("Pending", least=5), "minMember: 5"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("id_", "given", "words"), TABLE, ids=[f"{number}-{row[0]}" for number, row in enumerate(TABLE)]
)
def test_each_cause(id_: str, given: Snapshot, words: str) -> None:
    found = [cause for cause in explain(given) if cause.id == id_]
    assert found, [cause.id for cause in explain(given)]
    assert any(words in one.words for one in found[0].evidence), found
    for text in (found[0].sentence, found[0].fix):
        assert text and "{who}" not in text and not set(text) & {"\ue000", "\ue001"}


def rules() -> Iterator[Rule]:
    for module in MODULES:
        for value in vars(module).values():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, Rule):
                    yield one


def test_each_cause_has_a_row() -> None:
    ids = {one.id for one in rules()}
    assert ids == {row[0] for row in TABLE}
    assert len(ids) >= 45


def test_replicas_with_the_same_cause_are_one() -> None:
    many = [pod("master", "Pending", container(waiting("ErrImagePull", NOT_FOUND))) for _ in range(3)]
    for index, one in enumerate(many):
        one["metadata"] |= {"name": f"train-worker-{index}", "uid": str(index)}
    (cause,) = explain(snapshot(*many))
    assert "pod train-worker-0 and 2 more" in cause.sentence
    assert len(cause.evidence) == 1


def test_the_worst_comes_first_and_then_the_oldest() -> None:
    of = job_(spec={"runPolicy": {"suspend": True}})
    given = snapshot(
        pod("master", "Failed", container(ended(3))), unplaced("0/3 nodes are available: 3 Too many pods"), of=of
    )
    found = explain(given)
    assert [one.severity for one in found] == sorted((one.severity for one in found), key=list(Severity).index)
    assert found[0].id == "exit-code"


def test_the_sentence_counts_nodes_and_names_the_nearest() -> None:
    wanted = {"containers": [{"name": "pytorch", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}
    waits = unplaced(
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).", spec=wanted
    )
    tainted = node("node-b", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    (cause,) = explain(snapshot(waits, WORKER, nodes=(tainted, node("node-a", **{"nvidia.com/gpu": "6"}))))
    assert cause.id == "insufficient-resource"
    assert "None of 2 nodes fits pod train-master-0: 1 Insufficient nvidia.com/gpu, 1 node(s) had" in cause.sentence
    assert cause.sentence.endswith("nearest is node-a: 2 nvidia.com/gpu short")
    assert cause.severity is Severity.ERROR


def test_room_that_others_hold_is_no_error() -> None:
    wanted = {"containers": [{"name": "pytorch", "resources": {"requests": {"cpu": "4"}}}]}
    other = pod("other", spec={"containers": [{"name": "x", "resources": {"requests": {"cpu": "6"}}}]})
    waits = unplaced("0/1 nodes are available: 1 Insufficient cpu.", spec=wanted)
    (cause,) = explain(snapshot(waits, WORKER, neighbours=(other,)))
    assert cause.sentence.endswith("nearest is node-a: 2 cpu short, which other pods hold")
    assert cause.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("pending", "position"),
    [
        ((), "at position 2 of 2"),
        (({"metadata": {"name": "train-1"}, "positionInLocalQueue": 4},), "at position 5 of 1"),
    ],
)
def test_the_position_is_kueues_or_else_counted(pending: tuple[Any, ...], position: str) -> None:
    (cause,) = explain(queue(condition("QuotaReserved", "False", "Pending", WAITS), pending_workloads=pending))
    assert f"in the queue research {position}:" in cause.sentence


def test_what_could_not_be_read_is_not_missing() -> None:
    for what, given in (
        ("services", snapshot(pod(spec={"subdomain": "train"}), WORKER)),
        ("local_queues", queue(local=False, workloads=())),
    ):
        causes = explain(changed(given, unread=(Unread(what, f"list {what}"), Unread("workloads", "list workloads"))))
        assert not causes, what


def test_kueue_suspends_its_own_jobs() -> None:
    given = queue(condition("QuotaReserved", "False", "Pending", WAITS))
    held = changed(given, job={**given.job, "spec": {**given.job["spec"], "runPolicy": {"suspend": True}}})
    assert [one.id for one in explain(held)] == ["kueue-waits"]


def test_braces_and_fields_in_quoted_words_stay() -> None:
    (cause,) = explain(schedule("3 node(s) had untolerated taint {who}"))
    assert "untolerated taint {who}" in cause.sentence


@pytest.mark.parametrize("value", [None, "", [], {}, 0, "text", [None], {"conditions": None}])
@pytest.mark.parametrize("field", ["status", "spec", "metadata"])
def test_strange_objects_are_no_error(field: str, value: Any) -> None:
    explain(snapshot({**pod(), field: value}, WORKER))
    explain(snapshot(of={**job_(), field: value}))


def test_the_package_exports_what_others_need() -> None:
    assert all(hasattr(why, name) for name in why.__all__)
