"""A replica's pod: the user's template with what makes it a member of the cluster added, and nothing taken away."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import default_program, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster_spec import (
    Cluster,
    for_replica,
    placeholders,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.environment.shared_env_configmap import (
    Shared,
    variables,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import owner_reference
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

CLUSTER_DOMAIN = "cluster.local"


def build_pod(
    job: DLJob,
    framework: Framework,
    group: ReplicaGroup,
    index: int,
    attempt: int,
    spec_hash: str,
    cluster: Cluster,
    cluster_domain: str = CLUSTER_DOMAIN,
    shared: Shared | None = None,
) -> Mapping[str, Any]:
    """The Pod manifest of one replica's ``attempt`` (0 is the first). What is ``shared`` it only refers to."""
    replica = for_replica(cluster, group.type, index)
    metadata = copy.deepcopy(dict(group.template.get("metadata") or {}))
    spec = copy.deepcopy(dict(group.template["spec"]))
    if group.default_program:
        default_program.inject_program(spec, group.default_program, framework.container, replica)

    pod_metadata: dict[str, Any] = {
        "name": naming.pod_name(job, group.type, index, attempt, spec_hash),
        "namespace": job.namespace,
        "labels": {**(metadata.get("labels") or {}), **_labels(job, group, index, attempt, replica)},
        "annotations": {**(metadata.get("annotations") or {}), c.ANNOTATION_SPEC_HASH: spec_hash},
        "ownerReferences": [owner_reference(job)],
    }
    if shared:
        pod_metadata["annotations"][c.ANNOTATION_SHARED] = shared.config_map
    if metadata.get("finalizers"):
        pod_metadata["finalizers"] = metadata["finalizers"]

    _join_network(spec, job, group, index, cluster_domain)
    _configure_containers(spec, framework, job, group, framework.environment(replica), shared)
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        # a container that fails without a message of its own is quoted: the kubelet puts its log's end into the status
        container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    spec["restartPolicy"] = _kubelets_policy(job, group)
    if job.run_policy.scheduler_name:
        spec.setdefault("schedulerName", job.run_policy.scheduler_name)
    if job.run_policy.priority_class:
        spec.setdefault("priorityClassName", job.run_policy.priority_class)
    # a namespace's Services as variables: slow with thousands of them, and they may clash with a framework's own
    spec.setdefault("enableServiceLinks", False)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}


def _kubelets_policy(job: DLJob, group: ReplicaGroup) -> str:
    """Never, wherever it is for this program to say what becomes of a container that has ended."""
    ours = group.restart_policy == c.RESTART_EXIT_CODE or job.run_policy.restart_scope == c.RESTART_SCOPE_JOB
    return c.RESTART_NEVER if ours else group.restart_policy


def _labels(job: DLJob, group: ReplicaGroup, index: int, attempt: int, replica: Cluster) -> dict[str, str]:
    values = {
        **placeholders(replica),
        "role": "master" if (group.type, index) == (job.success_target.type, job.success_target.index) else "",
    }
    declared = {name: fill(text, values) for name, text in job.flavor.labels.items()}
    return {
        # a label whose text comes out empty by a placeholder says nothing of this replica; a declared "" does
        **{name: text for name, text in declared.items() if text or job.flavor.labels[name] == ""},
        c.LABEL_MANAGED_BY: c.MANAGER,
        c.LABEL_JOB_UID: job.uid,
        c.LABEL_REPLICA_TYPE: group.type.lower(),
        c.LABEL_REPLICA_INDEX: str(index),
        c.LABEL_ATTEMPT: str(attempt),
    }


def _join_network(spec: dict[str, Any], job: DLJob, group: ReplicaGroup, index: int, cluster_domain: str) -> None:
    subdomain = naming.service_name(job)
    spec["hostname"] = naming.host_name(job, group.type, index)
    spec["subdomain"] = subdomain
    if spec.get("hostNetwork"):
        # otherwise the pod asks the node's resolver, which knows no pod by name
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    if job.flavor.names == NAMES_JOB:
        # v1's short names had a Service each; a search path makes all of them resolve through the one headless Service
        dns = spec.get("dnsConfig") or {}
        ours = f"{subdomain}.{job.namespace}.svc.{cluster_domain}"
        spec["dnsConfig"] = {**dns, "searches": [*(dns.get("searches") or ()), ours]}


def _configure_containers(
    spec: dict[str, Any],
    framework: Framework,
    job: DLJob,
    group: ReplicaGroup,
    environment: Mapping[str, str],
    shared: Shared | None,
) -> None:
    for container in spec["containers"]:
        named = container.get("name") == framework.container
        if named or job.flavor.environment_in == "all":
            own = container.get("env") or []
            taken = [e.get("name") for e in own]
            # ours first: the container's own variables may refer to them as $(NAME), and win where both are set
            container["env"] = [*variables(environment, taken, shared), *own]
        if named and job.flavor.port_name and not spec.get("hostNetwork"):
            # never with hostNetwork: it would become a port of the node, and two replicas no longer fit one node
            ports = container.get("ports") or []
            if all(p.get("name") != job.flavor.port_name for p in ports):
                container["ports"] = [*ports, {"name": job.flavor.port_name, "containerPort": group.port}]
