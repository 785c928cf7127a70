"""Lets the program of a pod report its progress, by the protocol of Kubeflow Trainer v2 (pkg/statusserver, 2.3).

No object is needed for it: the token is projected, and the certificate is an annotation of the pod, shown as a file.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    ALL_RANKS,
    ANNOTATION_AUTHORITY,
    ANNOTATION_REPORTS,
    AUDIENCE,
    NO_RANK,
    OF_JOB,
    OF_RANK,
    RANK_0,
    Endpoint,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework, ReplicaType
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

VOLUME = "dljob-progress"
FOLDER = "/var/run/secrets/dljob.operator/progress"
_URL, _TOKEN, _AUTHORITY = (f"KUBEFLOW_TRAINER_SERVER_{name}" for name in ("URL", "TOKEN", "CA_CERT"))
_TOKEN_SECONDS = 3600
"""How long a token is valid; the kubelet renews it before. The programs read it again every five minutes."""


def role_of(endpoint: Endpoint | None, job: DLJob, framework: Framework, group: ReplicaGroup, index: int) -> str:
    """Whose progress the program of a replica is to report, the job's or that of its rank; "" for none.

    Rank 0 is replica 0 of the type that decides the outcome, or of the next one whose processes compute; of elastic
    replicas any may be rank 0, and of MPI that of the first worker, unless the launcher trains too.
    """
    ranks = NO_RANK if endpoint is None else job.run_policy.progress or endpoint.ranks
    if endpoint is not None and ranks == NO_RANK and job.run_policy.stall_policy:
        ranks = RANK_0
    present = [type_ for one in job.groups if one.replicas and (type_ := framework.type_named(one.type))]
    type_ = next((one for one in present if one.name == group.type), None)
    launches = any(one.hides_losses for one in present)
    if ranks == NO_RANK or type_ is None or not _computes(type_, launches=launches):
        return ""
    by_name = {one.name: one for one in present}
    order = [by_name[name] for name in framework.success_target if name in by_name] or present
    zero = next((one.name for one in order if _computes(one, launches=launches)), "")
    is_first = index == 0 and (type_.name == zero or (launches and type_.long_running))
    if is_first or type_.name == job.elastic_type:
        return OF_JOB
    return OF_RANK if ranks == ALL_RANKS else ""


def _computes(type_: ReplicaType, *, launches: bool) -> bool:
    """``launches``: whether the processes of one type start those of the others, as mpirun does."""
    return not type_.coordinates and (launches or not type_.long_running)


def join(endpoint: Endpoint, role: str, container: str, metadata: dict[str, Any], spec: dict[str, Any]) -> None:
    """Give the ``container`` of a pod what its program needs, unless it, or the pod, has something of that name."""
    volumes = list(spec.get("volumes") or ())
    main = next((one for one in spec["containers"] if one.get("name") == container), None)
    if main is None or any(one.get("name") == VOLUME for one in volumes):
        return
    own = list(main.get("env") or ())
    values = {_URL: endpoint.url, _TOKEN: f"{FOLDER}/token", _AUTHORITY: f"{FOLDER}/ca.crt"}
    if any(one.get("name") in values for one in own):
        return
    main["env"] = [*own, *({"name": name, "value": value} for name, value in values.items())]
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    main["volumeMounts"] = [*(main.get("volumeMounts") or ()), mount]
    metadata["annotations"] |= {ANNOTATION_REPORTS: role, ANNOTATION_AUTHORITY: endpoint.authority}
    field = {"fieldPath": f"metadata.annotations['{ANNOTATION_AUTHORITY}']"}
    sources = [
        {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"downwardAPI": {"items": [{"path": "ca.crt", "fieldRef": field}]}},
    ]
    spec["volumes"] = [*volumes, {"name": VOLUME, "projected": {"sources": sources}}]
