"""Builds the pod of a replica: the user's template with the additions that make it a member of the job's cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import flavor_labels, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import for_replica
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import labels, owner_reference
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import (
    container_env,
    host_names,
    native_gang,
    pod_group,
    progress_reporting,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.shared_env_configmap import Shared
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import pod_defaults
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_REPLICA
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    ANNOTATION_AUTHORITY,
    ANNOTATION_REPORTS,
    Endpoint,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import NAMES_JOB, Cluster, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate

CLUSTER_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class PodContext:
    """What all pods of a job have in common."""

    framework: Framework
    cluster: Cluster
    hashes: SpecHashes
    cluster_domain: str = CLUSTER_DOMAIN
    shared: Shared | None = None
    """The part of the environment that is in a ConfigMap."""
    gang: GangScheduler | None = None
    """The scheduler that starts the pods together."""
    traits: native_gang.Traits | None = None
    """What the pods of the job's group have in common, for the groups of Kubernetes itself."""
    progress: Endpoint | None = None
    """Where programs report their progress."""
    replaceable_names: frozenset[str] = frozenset()
    """The replica types of :func:`.host_names.replaceable`."""


def build_pod(job: DLJob, pod: PodToCreate, context: PodContext) -> Mapping[str, Any]:
    """The Pod manifest of one replica's attempt (0 is the first)."""
    group, index, framework = pod.group, pod.index, context.framework
    own = group.template_of(index)
    replica = for_replica(context.cluster, group.type, index)
    defaults = pod_defaults.defaults_of(framework.hooks.pod, replica) if framework.hooks.pod else {}
    template = pod_defaults.merge(own.template, defaults)
    spec = copy.deepcopy(dict(template["spec"]))
    given = copy.deepcopy(dict(template.get("metadata") or {}))
    metadata = _metadata(job, pod, given, _labels(job, pod, own.group, replica, defaults), context)
    is_replaceable = group.type in context.replaceable_names
    domain = context.cluster_domain
    spec.update(host_names.network_names(job, group, index, is_replaceable=is_replaceable, domain=domain))
    _resolve_others(spec, job, domain)
    _configure_containers(spec, job, group, replica, context)
    if context.progress and (role := progress_reporting.role_of(context.progress, job, framework, group, index)):
        progress_reporting.join(context.progress, role, _main(framework, spec), metadata, spec)
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        # FallbackToLogsOnError: the kubelet copies the end of a failed container's log into the pod's status, where it
        # has no message; who may read pods or jobs reads these lines without the right to read logs
        container.setdefault("terminationMessagePolicy", framework.termination_message_policy)
    spec["restartPolicy"] = restart_policy(job, group)
    scheduler_name, priority_class = job.run_policy.scheduler_name, job.run_policy.scheduling.priority_class
    if context.traits and native_gang.is_member(own):
        scheduler_name, priority_class = context.traits.scheduler_name, context.traits.priority_class
    if scheduler_name:
        spec.setdefault("schedulerName", scheduler_name)
    if context.gang:
        pod_group.join(context.gang, job, own, metadata, spec)
    if priority_class:
        spec.setdefault("priorityClassName", priority_class)
    # variables for all Services of the namespace: slow with thousands of them, and they may clash with a framework's
    spec.setdefault("enableServiceLinks", False)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(
    job: DLJob, pod: PodToCreate, given: Mapping[str, Any], ours: Mapping[str, str], context: PodContext
) -> dict[str, Any]:
    """The metadata of the pod: what the template has ``given``, with ``ours``, the labels that replace its own."""
    metadata: dict[str, Any] = {
        "name": naming.pod_name(job, pod.group.type, pod.index),
        "namespace": job.namespace,
        "labels": {**(given.get("labels") or {}), **ours},
        "annotations": {
            **(given.get("annotations") or {}),
            c.ANNOTATION_SPEC_HASH: context.hashes.of(pod.group.type, pod.index),
        },
        "ownerReferences": [owner_reference(job)],
    }
    if not ours[c.LABEL_REPLICA_GROUP]:
        del metadata["labels"][c.LABEL_REPLICA_GROUP]  # one that the template has would be another group's
    for annotation in (c.ANNOTATION_SHARED, c.ANNOTATION_SERVICES, ANNOTATION_REPORTS, ANNOTATION_AUTHORITY):
        metadata["annotations"].pop(annotation, None)  # one that the template has says nothing of this pod
    if job.services == SERVICES_PER_REPLICA:
        metadata["annotations"][c.ANNOTATION_SERVICES] = job.services
    if context.shared:
        metadata["annotations"][c.ANNOTATION_SHARED] = context.shared.config_map
    if given.get("finalizers"):
        metadata["finalizers"] = given["finalizers"]
    return metadata


def restart_policy(job: DLJob, group: ReplicaGroup) -> str:
    """The pod's restartPolicy: Never where the operator, not the kubelet, decides about restarts."""
    policy = job.run_policy
    as_one = policy.restart_scope == c.RESTART_SCOPE_JOB
    ours = group.restart_policy == c.RESTART_EXIT_CODE or as_one or bool(policy.failure_rules)
    return c.RESTART_NEVER if ours else group.restart_policy


def _labels(job: DLJob, pod: PodToCreate, group: str, replica: Cluster, defaults: Mapping[str, Any]) -> dict[str, str]:
    """The labels that replace those of the template; also those of the pod hook, by which clients find replicas."""
    target = job.success_target
    role = "master" if (pod.group.type, pod.index) == (target.type, target.index) else ""
    return {
        **as_mapping(as_mapping(defaults.get("metadata")).get("labels")),
        **flavor_labels.of_replica(job.flavor, replica, role),
        **labels(job.uid),
        c.LABEL_REPLICA_TYPE: pod.group.type.lower(),
        c.LABEL_REPLICA_INDEX: str(pod.index),
        c.LABEL_ATTEMPT: str(pod.attempt),
        c.LABEL_REPLICA_GROUP: group,
    }


def _resolve_others(spec: dict[str, Any], job: DLJob, cluster_domain: str) -> None:
    if spec.get("hostNetwork"):
        # otherwise the pod uses the node's resolver, which does not resolve names of pods
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    if job.flavor.names == NAMES_JOB:
        # v1 has a Service for each short name; with a search path, all names resolve through one headless Service
        dns = spec.get("dnsConfig") or {}
        ours = f"{naming.service_name(job)}.{job.namespace}.svc.{cluster_domain}"
        spec["dnsConfig"] = {**dns, "searches": [*(dns.get("searches") or ()), ours]}


def _main(framework: Framework, spec: Mapping[str, Any]) -> str:
    """The name of the container that runs the framework."""
    return framework.container_of([str(container.get("name")) for container in spec["containers"]])


def _configure_containers(
    spec: dict[str, Any], job: DLJob, group: ReplicaGroup, replica: Cluster, context: PodContext
) -> None:
    environment = context.framework.hooks.environment(replica)
    main = _main(context.framework, spec)
    for container in spec["containers"]:
        named = container.get("name") == main
        if named or job.flavor.environment_in == "all":
            tuning = context.framework.tuning_variables
            container["env"] = container_env.merge(container.get("env") or (), environment, tuning, context.shared)
        if named and job.flavor.port_name and not spec.get("hostNetwork"):
            # not with hostNetwork: it would become a hostPort, so that two replicas would no longer fit on one node
            ports = container.get("ports") or []
            if all(p.get("name") != job.flavor.port_name for p in ports):
                container["ports"] = [*ports, {"name": job.flavor.port_name, "containerPort": group.port}]
