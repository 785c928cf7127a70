"""MXJob, in the API flavors of its three groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Rule, Schema, record, rule
from devtools.crds.options import OPTION_RULES, options
from devtools.crds.replicas import ReplicaList, ReplicaMap, label_rule

_JOB = (
    "An Apache MXNet training job: one scheduler with any number of parameter servers and workers, or a single "
    "process. The scheduler's exit code determines whether the job succeeds or fails."
)
_SPEC = "The training program and its replicas."
_TYPES = ("SCHEDULER", "SERVER", "WORKER")
_LOCAL = "has(self.jobMode) && self.jobMode == 'local'"
_TUNE = "has(self.jobMode) && self.jobMode == 'MXTune'"

_MAP = ReplicaMap(
    field="mxReplicaSpecs",
    types=("Scheduler", "Server", "Worker", "TunerTracker", "TunerServer", "Tuner"),
    container="mxnet",
    default_restart_policy="Never",
)
_BARE_LIST = ReplicaList(type_field="replicaType", types=_TYPES, single="SCHEDULER", container="mxnet")


def _list(port_fields: Sequence[str], default_port: int) -> ReplicaList:
    return ReplicaList(
        type_field="mxReplicaType",
        types=_TYPES,
        single="SCHEDULER",
        container="mxnet",
        default_type="SCHEDULER",
        port_fields=port_fields,
        default_port=default_port,
    )


def _list_rules(replicas: ReplicaList, unless: Sequence[str] = ()) -> Sequence[Rule]:
    """Rules on replicaSpecs together with the rest of the spec."""
    field = "replicaSpecs"
    return [
        replicas.needs_single(field, unless=[*unless, _LOCAL], hint=", or set jobMode to local"),
        replicas.needs_any(field, unless=unless),
        replicas.needs_chief(field, unless=unless),
        replicas.restarts_as_one(field, unless=unless),
    ]


def _map_rules() -> Sequence[Rule]:
    """Rules on mxReplicaSpecs together with the rest of the spec."""
    return [
        _MAP.needs_one("Scheduler", unless=[_TUNE], hint=", or set jobMode to MXTune"),
        _MAP.needs_any("Tuner", unless=[f"!({_TUNE})"], hint=", or set jobMode to MXTrain"),
        _MAP.needs_chief(),
        _MAP.restarts_as_one(),
    ]


def _fioravanzo() -> dict[str, Any]:
    replicas = _list(("mxPort", "PsRootPort"), default_port=9000)
    spec = record(
        _SPEC,
        {"replicaSpecs": replicas.schema(), **options("mxnet", ("local", "dist"), "mxImage")},
        required=["replicaSpecs"],
        rules=[*_list_rules(replicas), *OPTION_RULES],
    )
    return definition("fioravanzo.org", "MXJob", {"v1alpha1": resource(_JOB, spec, [label_rule()])}, stored="v1alpha1")


def _mpba() -> dict[str, Any]:
    spec = _BARE_LIST.schema([_BARE_LIST.needs_single()])
    return definition("mpba.fbk.eu", "MXJob", {"v1": resource(_JOB, spec, [label_rule()])}, stored="v1")


def _kubeflow() -> dict[str, Any]:
    schema = _kubeflow_schema()
    return definition("kubeflow.org", "MXJob", {"v1": schema, "v1alpha1": schema}, stored="v1", short_names=["mxj"])


def _kubeflow_schema() -> Schema:
    """One schema for both versions.

    Without a conversion webhook the API server changes only apiVersion between versions and drops fields that the
    requested version does not have: a job written in one version would be read without replicas in the other.
    """
    replicas = _list(("PsRootPort",), default_port=9091)
    modes = ("local", "dist", "MXTrain", "MXTune")
    spec = record(
        _SPEC,
        {"replicaSpecs": replicas.schema(), _MAP.field: _MAP.schema(), **options("mxnet", modes, "mxImage")},
        rules=[
            rule(
                "has(self.replicaSpecs) != has(self.mxReplicaSpecs)",
                message="exactly one of replicaSpecs (a list, as in v1alpha1) and mxReplicaSpecs (a map, as in v1) is "
                "required: add or remove one",
                field=".replicaSpecs",
            ),
            rule(
                "self.jobMode in (has(self.mxReplicaSpecs) ? ['MXTrain', 'MXTune'] : ['local', 'dist'])",
                unless=["!has(self.jobMode)"],
                message="jobMode is local or dist with replicaSpecs, and MXTrain or MXTune with mxReplicaSpecs: "
                "change it",
                field=".jobMode",
            ),
            *_list_rules(replicas, unless=["!has(self.replicaSpecs)"]),
            *_map_rules(),
            *OPTION_RULES,
        ],
    )
    in_map = f"!({_MAP.absent('self.spec')})"
    return resource(_JOB, spec, [label_rule(unless=[in_map]), *_MAP.name_rules()])


def definitions() -> list[dict[str, Any]]:
    """The CRDs of this kind, one per group."""
    return [_fioravanzo(), _mpba(), _kubeflow()]
