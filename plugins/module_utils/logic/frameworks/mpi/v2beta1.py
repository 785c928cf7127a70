"""What an MPIJob v2beta1 needs besides its variables: SSH keys, the list of hosts, the mounts of both, and an sshd.

Source: mpi-operator's v2beta1 MPIJob (0.8). Names, paths and contents are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import own_template
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.common import (
    CONFIG_VOLUME,
    DISCOVER_HOSTS,
    LABEL_INDEX,
    config_name,
    config_volume,
    slots_errors,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.mpi.variables import (
    CONFIG_PATH,
    HOSTFILE,
    IMPLEMENTATIONS,
    LAUNCHER,
    OPEN_MPI,
    WORKER,
    implementation_of,
    launcher_works,
    slots_of,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

CREATION_POLICIES = ("AtStartup", "WaitForWorkersReady")
ROOT_SSH_PATH = "/root/.ssh"
_SSH_VOLUME = "ssh-auth"


def validate(cluster: Cluster) -> Iterator[str]:
    """The errors of an MPIJob's own fields, one sentence each."""
    spec = cluster["spec"]
    yield from slots_errors(cluster)
    as_worker = spec.get("runLauncherAsWorker")
    if as_worker is not None and not isinstance(as_worker, bool):
        yield f"spec.runLauncherAsWorker must be true or false, not {as_worker!r}"
    for name, choices in (("mpiImplementation", IMPLEMENTATIONS), ("launcherCreationPolicy", CREATION_POLICIES)):
        value = spec.get(name)
        if value not in (None, "", *choices):
            yield f"spec.{name}: {value!r} is none of {', '.join(choices)}"
    path = spec.get("sshAuthMountPath")
    if path not in (None, "") and not _is_mount_path(path):
        yield f"spec.sshAuthMountPath: {path!r} must be an absolute path without ':', and not {CONFIG_PATH}"
    if cluster["replicas"].get(WORKER) == []:
        yield "spec.mpiReplicaSpecs.Worker.replicas is 0: give it at least 1, or remove the entry Worker"


def _is_mount_path(path: object) -> bool:
    return isinstance(path, str) and path.startswith("/") and ":" not in path and path.rstrip("/") != CONFIG_PATH


def pod_defaults(cluster: Cluster) -> Mapping[str, Any]:
    """The mounts of the launcher or of a worker, a worker's command, and its index as a label."""
    task, job = cluster["task"], cluster["job"]
    main = next(iter(own_template(cluster)["containers"]), "")
    path = cluster["spec"].get("sshAuthMountPath") or ROOT_SSH_PATH
    container: dict[str, Any] = {"name": main, "volumeMounts": [{"name": _SSH_VOLUME, "mountPath": path}]}
    volumes = [_ssh_volume(job["name"], path)]
    if task["type"] == LAUNCHER:
        container["volumeMounts"].append({"name": CONFIG_VOLUME, "mountPath": CONFIG_PATH})
        volumes.append(config_volume(job["name"], {HOSTFILE: 0o444, DISCOVER_HOSTS: 0o555}))
    else:
        container["command"] = ["/usr/sbin/sshd", "-De"]
    index = _label_index(cluster)
    return {
        "metadata": {"labels": {LABEL_INDEX: index}} if index else {},
        "spec": {"containers": [container], "volumes": volumes},
    }


def _label_index(cluster: Cluster) -> str:
    """An index that no other pod of the job has; "" for a launcher that is no host, which has none."""
    task, works = cluster["task"], launcher_works(cluster)
    if task["type"] == LAUNCHER:
        return "0" if works else ""
    return str(task["index"] + works)


def _ssh_volume(job: str, path: str) -> dict[str, Any]:
    items = [("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys")]
    return {
        "name": _SSH_VOLUME,
        "secret": {
            "secretName": _secret_name(job),
            # ssh refuses a private key of its own user that others may read; other users read root's files
            **({"defaultMode": 0o600} if path == ROOT_SSH_PATH else {}),
            "items": [{"key": key, "path": file} for key, file in items],
        },
    }


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The Secret with the job's key pair, which the operator generates, and the ConfigMap with its hosts."""
    name = cluster["job"]["name"]
    return (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": _secret_name(name),
                "labels": {"app": name},
                "annotations": {c.ANNOTATION_GENERATE: c.GENERATE_SSH_KEY_PAIR},
            },
            "type": "kubernetes.io/ssh-auth",
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": config_name(name), "labels": {"app": name}},
            "data": {HOSTFILE: _hostfile(cluster), DISCOVER_HOSTS: _discover_hosts(cluster)},
        },
    )


def _hostfile(cluster: Cluster) -> str:
    """All hosts of the job, the launcher first where it is one, each with its slots."""
    hosts = [*_launcher(cluster), *(_address(cluster, one["host"]) for one in cluster["replicas"].get(WORKER, ()))]
    slots = slots_of(cluster)
    form = "{} slots={}\n" if implementation_of(cluster) == OPEN_MPI else "{}:{}\n"
    return "".join(form.format(host, slots) for host in hosts)


def _discover_hosts(cluster: Cluster) -> str:
    """A script that prints the hosts that run now, one a line."""
    workers = cluster["replicas"].get(WORKER, ())
    running = [workers[index] for index in cluster.get("running", {}).get(WORKER, ())]
    # by name, as mpi-operator: worker-10 before worker-2
    names = sorted(one["host"] for one in running)
    hosts = [*_launcher(cluster), *(_address(cluster, name) for name in names)]
    return "".join(["#!/bin/sh\n", *(f"echo {host}\n" for host in hosts)])


def _launcher(cluster: Cluster) -> list[str]:
    works = launcher_works(cluster)
    return [_address(cluster, one["host"]) for one in cluster["replicas"][LAUNCHER]] if works else []


def _address(cluster: Cluster, host: str) -> str:
    """The name of a host in all namespaces; the job's Service has the job's name."""
    return f"{host}.{cluster['job']['name']}.{cluster['job']['namespace']}.svc"


def _secret_name(job: str) -> str:
    return f"{job}-ssh"
