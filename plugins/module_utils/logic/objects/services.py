"""The job's Services: a headless one for all replicas, in v1 one with the success target's name, and where the job asks
for them one a replica (:mod:`..plan.policies.service_scope`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import flavor_labels, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    build_cluster_spec,
    for_replica,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_REPLICA
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    NAMES_JOB,
    SERVICE_JOB,
    ApiFlavor,
    Cluster,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

KIND = "Service"
_CAPITAL = re.compile(r"(?<=.)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Service that a job has. The manifest of a job with thousands is built only for the one to create."""

    name: str
    type: str = ""
    """That of its replica; "": the Service is for all replicas."""
    index: int = 0


def wanted(job: DLJob) -> Iterator[Wanted]:
    """All Services of ``job``, first the one for all replicas. Without one a replica their number is at most two."""
    yield Wanted(naming.service_name(job))
    if job.services == SERVICES_PER_REPLICA:
        for group, index in job.tasks():
            yield Wanted(naming.host_name(job, group.type, index), group.type, index)
    elif job.flavor.names == NAMES_JOB and job.flavor.service != SERVICE_JOB:
        target = job.success_target
        yield Wanted(naming.host_name(job, target.type, target.index), target.type, target.index)


def missing(job: DLJob, observed: Observed) -> list[Wanted]:
    """Those that do not exist."""
    return [one for one in wanted(job) if one.name not in observed.services]


def surplus(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """Deletions of those of replicas that the job no longer has, or no longer asks for."""
    if not any(found.services for found in observed.owned_objects.values()):
        return ()
    names = {one.name for one in wanted(job)}
    return tuple(d for d in of_replicas(job, observed) if d.name not in names)


def of_replicas(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """Deletions of all Services of single replicas, of a job with one a replica."""
    shared = naming.service_name(job)
    return tuple(
        owned_objects.deletion(key, found)
        for key, found in observed.owned_objects.items()
        if key[0] == KIND and found.services == SERVICES_PER_REPLICA and key[1] != shared
    )


def build_all(job: DLJob, framework: Framework) -> list[Mapping[str, Any]]:
    """The manifests of all Services of ``job``."""
    cluster = build_cluster_spec(job, framework)
    return [build(job, framework, cluster, one) for one in wanted(job)]


def build(job: DLJob, framework: Framework, cluster: Cluster, one: Wanted) -> Mapping[str, Any]:
    """The manifest of a Service of ``job``."""
    metadata = owned_objects.metadata(job, one.name)
    selector = {c.LABEL_JOB_UID: job.uid}
    ports: list[dict[str, Any]] = []
    if one.type:
        selector |= {c.LABEL_REPLICA_TYPE: one.type.lower(), c.LABEL_REPLICA_INDEX: str(one.index)}
        group = job.group(one.type)
        if group is not None and one.index < len(cluster["replicas"].get(one.type, ())):
            replica = for_replica(cluster, one.type, one.index)
            metadata["labels"] = {**flavor_labels.of_replica(job.flavor, replica), **metadata["labels"]}
            ports = _ports(job.flavor, framework, group, one.index)
    elif job.flavor.service == SERVICE_JOB:
        metadata["labels"] = {"app": job.name, **metadata["labels"]}  # as mpi-operator's
    if job.services == SERVICES_PER_REPLICA:
        metadata["annotations"] = {c.ANNOTATION_SERVICES: job.services}
    return {
        "apiVersion": "v1",
        "kind": KIND,
        "metadata": metadata,
        "spec": {
            "clusterIP": "None",
            # processes resolve each other's names while they start, so DNS must not wait for readiness
            "publishNotReadyAddresses": True,
            "selector": selector,
            **({"ports": ports} if ports else {}),
        },
    }


def _ports(flavor: ApiFlavor, framework: Framework, group: ReplicaGroup, index: int) -> list[dict[str, Any]]:
    """The ports of the framework's container, and that of the framework, as in v1.

    A Service has each number of a protocol once, and of several ports each has a name.
    """
    spec = as_mapping(group.template_of(index).template.get("spec"))
    containers = maps(spec.get("containers"))
    main = framework.container_of([str(one.get("name")) for one in containers])
    declared = [port for one in containers if one.get("name") == main for port in maps(one.get("ports"))]
    own = _port_name(flavor)
    ports = [port for port in map(_port, declared) if port]
    if all(port["name"] != own for port in ports):
        ports = [port for port in ports if (port["port"], "protocol" in port) != (group.port, False)]
        ports.append({"name": own, "port": group.port})
    return _distinct(ports)


def _port_name(flavor: ApiFlavor) -> str:
    """The name of the framework's port; where no pod declares it, that which the flavor's own operator derives from its
    field (mx-port of mxPort)."""
    if flavor.port_name:
        return flavor.port_name
    return _CAPITAL.sub("-", flavor.port_fields[0]).lower() if flavor.port_fields else "port"


def _port(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A container's port as one of a Service, empty where it has no number."""
    number, protocol = declared.get("containerPort"), declared.get("protocol")
    if isinstance(number, bool) or not isinstance(number, int):
        return {}
    port = {"name": str(declared.get("name") or f"port-{number}"), "port": number}
    return port if protocol in (None, "", "TCP") else {**port, "protocol": protocol}


def _distinct(ports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of each number and protocol, and of each name."""
    found: list[dict[str, Any]] = []
    taken: set[Any] = set()
    for port in ports:
        identity = {port["name"], (port["port"], port.get("protocol"))}
        if not identity & taken:
            found.append(port)
            taken |= identity
    return found
