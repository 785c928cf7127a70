"""What an MPIJob v1 needs besides its variables: a kubectl, the rights to use it on its workers, and the scripts.

Source: training-operator 1.9's MPIJob. Names, paths and meanings are its own. The Role also permits ``get`` on
``pods/exec``, which kubectl 1.31 and later uses first, and names the workers that exist, not all that the job will
have. So the launcher starts once all its workers are ready, and its init container waits for none. In a gang it is
created once they exist, and the init container waits.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import security_context
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    own_template,
    template_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.common import (
    CONFIG_VOLUME,
    DISCOVER_HOSTS,
    LABEL_INDEX,
    config_name,
    config_volume,
    slots_errors,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.v1_variables import (
    KUBEXEC,
    launcher_has_gpu,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.variables import (
    CONFIG_PATH,
    HOSTFILE,
    LAUNCHER,
    WORKER,
    slots_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    KUBECTL_DELIVERY_IMAGE,
    OWN_PREFIX,
    SETTING_KUBECTL_DELIVERY,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

_KUBECTL_VOLUME, _KUBECTL_PATH = "mpi-job-kubectl", "/opt/kube"
_DELIVERY = "kubectl-delivery"
_DELIVERY_RESOURCES = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}
_RBAC = "rbac.authorization.k8s.io"
_IN_REACH = f"{OWN_PREFIX}workers-in-reach"


def validate(cluster: Cluster) -> Iterator[str]:
    """The errors of an MPIJob's own fields, one sentence each."""
    yield from slots_errors(cluster)
    main = cluster["spec"].get("mainContainer")
    workers = cluster["templates"].get(WORKER) or {}
    for one in (workers, *(workers.get("groups") or {}).values()):
        known = one.get("containers", ())
        if main not in (None, "") and known and main not in known:
            yield (
                f"spec.mainContainer: the workers have no container {main!r}; it must be one of {', '.join(known)}, or "
                "empty for the first"
            )


def pod_defaults(cluster: Cluster) -> Mapping[str, Any]:
    """The mounts of the launcher or of a worker; the launcher's kubectl and account, a worker's command and index."""
    task, job = cluster["task"], cluster["job"]
    main = next(iter(own_template(cluster)["containers"]), "")
    mounts = [{"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH}]
    if task["type"] != LAUNCHER:
        worker = {"name": main, "command": ["sleep", "365d"], "volumeMounts": mounts}
        # Open MPI looks for the script on every host
        volumes = [config_volume(job["name"], {KUBEXEC: 0o555})]
        labels = {LABEL_INDEX: str(task["index"])}
        return {"metadata": {"labels": labels}, "spec": {"containers": [worker], "volumes": volumes}}
    mounts.insert(0, {"name": _KUBECTL_VOLUME, "mountPath": _KUBECTL_PATH})
    volumes = [
        {"name": _KUBECTL_VOLUME, "emptyDir": {}},
        config_volume(job["name"], {KUBEXEC: 0o555, HOSTFILE: 0o444, DISCOVER_HOSTS: 0o555}),
    ]
    return {
        "spec": {
            "serviceAccountName": _account(cluster),
            "initContainers": [_delivery(cluster, mounts)],
            "containers": [{"name": main, "volumeMounts": mounts}],
            "volumes": volumes,
        }
    }


def _delivery(cluster: Cluster, mounts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The init container that brings kubectl, and ends once the workers of the hostfile are ready."""
    settings = cluster.get("settings", {})
    image = settings.get(SETTING_KUBECTL_DELIVERY) or KUBECTL_DELIVERY_IMAGE
    security = own_template(cluster).get("security", {})
    return {
        "name": _DELIVERY,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "TARGET_DIR", "value": _KUBECTL_PATH},
            {"name": "NAMESPACE", "value": cluster["job"]["namespace"]},
        ],
        "volumeMounts": list(mounts),
        "resources": {"limits": _DELIVERY_RESOURCES, "requests": _DELIVERY_RESOURCES},
        # the volume is writable for every user, and what the program needs of the API its account has
        "securityContext": security_context.for_container(security, image, settings, security_context.HARDENED),
    }


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The ConfigMap with the hosts and the script, and the launcher's account with its rights.

    An account that the launcher's template names is its user's: it only gets the rights.
    """
    name = cluster["job"]["name"]
    launcher, account = _launcher(name), _account(cluster)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**_metadata(cluster, config_name(name)), **_in_reach(cluster)},
        "data": {HOSTFILE: _hostfile(cluster), KUBEXEC: _kubexec(cluster), DISCOVER_HOSTS: _discover_hosts(cluster)},
    }
    created = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(cluster, account)}
    role = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": _metadata(cluster, launcher),
        "rules": _rules(cluster),
    }
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(cluster, launcher),
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": cluster["job"]["namespace"]}],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": launcher},
    }
    return (config, *([created] if account == launcher else []), role, binding)


def _metadata(cluster: Cluster, name: str) -> Mapping[str, Any]:
    return {"name": name, "labels": {"app": cluster["job"]["name"]}}


def _in_reach(cluster: Cluster) -> Mapping[str, Any]:
    """What distinguishes the ConfigMap of a job that is neither suspended nor finished. The Role may name workers of
    which none is a host yet, and without a difference nothing would show that it is still to be revoked."""
    return {"annotations": {_IN_REACH: "true"}} if "created" in cluster else {}


def _rules(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The launcher may read pods, and run commands in the workers that exist.

    Not in others: until the job has a pod of that name, it may be that of another job.
    """
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    workers = _hosts(cluster, "created")
    if workers:  # an empty list of names would mean all pods of the namespace
        rules.append(
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"], "resourceNames": workers}
        )
    return rules


def _hostfile(cluster: Cluster) -> str:
    hosts = [*_own_host(cluster), *(one["host"] for one in cluster["replicas"].get(WORKER, ()))]
    return "".join(f"{host} slots={slots_of(cluster)}\n" for host in hosts)


def _discover_hosts(cluster: Cluster) -> str:
    """A script that prints the hosts that run now, one a line, each with its slots."""
    hosts = [*_own_host(cluster), *_hosts(cluster, "running")]
    return "".join(["#!/bin/sh\n", *(f"echo {host}:{slots_of(cluster)}\n" for host in hosts)])


def _hosts(cluster: Cluster, state: str) -> list[str]:
    """The workers that are ``created`` or ``running``, by name as in training-operator: worker-10 before worker-2."""
    workers = cluster["replicas"].get(WORKER, ())
    return sorted(workers[index]["host"] for index in cluster.get(state, {}).get(WORKER, ()))


def _kubexec(cluster: Cluster) -> str:
    """A script that runs a command in a pod; it gets the pod's name and the command, as rsh does."""
    main = cluster["spec"].get("mainContainer")
    container = f" --container {shlex.quote(str(main))}" if main else ""
    return f'#!/bin/sh\npod="$1"\nshift\nexec {_KUBECTL_PATH}/kubectl exec "$pod"{container} -- /bin/sh -c "$*"\n'


def _own_host(cluster: Cluster) -> list[str]:
    return [_launcher(cluster["job"]["name"])] if launcher_has_gpu(cluster) else []


def _launcher(job: str) -> str:
    return f"{job}-launcher"


def _account(cluster: Cluster) -> str:
    given = template_of(cluster, LAUNCHER, 0)["service_account"]
    return str(given or _launcher(cluster["job"]["name"]))
