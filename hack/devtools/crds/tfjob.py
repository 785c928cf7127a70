"""TfJob and TFJob for TensorFlow, in the API flavors of their two groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Rule, Schema, array, boolean, record, rule, string
from devtools.crds.options import OPTION_RULES, options
from devtools.crds.replicas import ReplicaList, ReplicaMap, label_rule

_JOB = (
    "A TensorFlow training job: one master with any number of workers and parameter servers. The master's exit code "
    "determines whether the job succeeds or fails."
)
_SPEC = "The training program and its replicas."
_IMAGE = (
    "Image of the default gRPC server program, which parameter servers without a container named tensorflow run. "
    "Default: tensorflow/tensorflow:1.3.0."
)
_NOTHING = {"nullable": True}
"""The original operator stores null for an omitted list."""
_FIELDS = ("replicaSpecs", "replica_specs")
_LIST = ReplicaList(
    type_field="tfReplicaType",
    types=("MASTER", "WORKER", "PS"),
    single="MASTER",
    container="tensorflow",
    default_type="MASTER",
    port_fields=("tfPort",),
    default_port=2222,
    port_text="Port on which each of these replicas listens",
    standard="PS",
    flag="IsDefaultPS",
)
_MAP = ReplicaMap(
    field="tfReplicaSpecs",
    types=("PS", "Worker", "Chief", "Master", "Evaluator"),
    container="tensorflow",
    default_restart_policy="Never",
)


def _lists() -> dict[str, Schema]:
    return {field: _LIST.schema() for field in _FIELDS}


def _options() -> dict[str, Schema]:
    return {**options("tensorflow", (), "tfImage", _IMAGE), "tensorboard": _tensorboard()}


def _tensorboard() -> Schema:
    volume = record("A Volume or VolumeMount.", {}, open_=True)
    return record(
        "TensorBoard for the job, at port 80 of the Service tensorboard-<runtime id>. It keeps running after the "
        "training and is deleted with the job. On OpenShift a Route exposes it.",
        {
            "logDir": string("Directory or URL of the event files that TensorBoard shows.", minLength=1),
            "volumes": array("Volumes of TensorBoard's pod.", volume, most=64) | _NOTHING,
            "volumeMounts": array("Volume mounts of TensorBoard's container.", volume, most=64) | _NOTHING,
            "serviceType": string(
                "Type of the Service. Default, also if empty: ClusterIP.",
                choices=["", "ClusterIP", "NodePort", "LoadBalancer"],
            ),
        },
        required=["logDir"],
    )


def _list_rules() -> Sequence[Rule]:
    """Rules on the lists of replicas together with the rest of the spec."""
    return [
        found
        for field in _FIELDS
        for found in (
            _LIST.needs_single(field, unless=[f"!has(self.{field})"]),
            _LIST.needs_chief(field, unless=[f"!has(self.{field})"]),
            _LIST.restarts_as_one(field, unless=[f"!has(self.{field})"]),
        )
    ]


def _one_of(*fields: str) -> Rule:
    given = ", ".join(f"has(self.{field})" for field in fields)
    return rule(
        f"[{given}].filter(given, given).size() == 1",
        message=f"exactly one of {', '.join(fields)} is required: add or remove one",
        field=f".{fields[0]}",
    )


def _only_in_map(field: str) -> Rule:
    return rule(
        f"has(self.{_MAP.field})",
        unless=[f"!has(self.{field})"],
        message=f"{field} is supported only with {_MAP.field}: remove it, or move the replicas to {_MAP.field}",
        field=f".{field}",
    )


def _map_rules() -> Sequence[Rule]:
    at = f"self.{_MAP.field}"
    return [
        rule(
            f"{at}.filter(k, k.lowerAscii() in ['chief', 'master'] && {at}[k].replicas > 0)"
            f".map(k, {at}[k].replicas) in [[], [1]]",
            unless=[_MAP.absent()],
            message="a job has at most one Chief or Master: keep one of them, with replicas of 1",
            field=f".{_MAP.field}",
        ),
        rule(
            f"{at}.exists(k, k.lowerAscii() in ['chief', 'master', 'worker'] && {at}[k].replicas > 0)",
            unless=[_MAP.absent()],
            message="at least one replica of Chief, Master or Worker, which decides success, is required: add it",
            field=f".{_MAP.field}",
        ),
        _MAP.needs_chief(),
        _MAP.restarts_as_one(),
    ]


def _tensorflow() -> dict[str, Any]:
    spec = record(
        _SPEC,
        {**_lists(), **_options()},
        rules=[_one_of(*_FIELDS), *_list_rules(), *OPTION_RULES],
    )
    return definition("tensorflow.org", "TfJob", {"v1alpha1": resource(_JOB, spec, [label_rule()])}, stored="v1alpha1")


def _kubeflow() -> dict[str, Any]:
    schema = _kubeflow_schema()
    return definition("kubeflow.org", "TFJob", {"v1": schema, "v1alpha1": schema}, stored="v1", short_names=["tfj"])


def _kubeflow_schema() -> Schema:
    """One schema for both versions, as for MXJob."""
    spec = record(
        _SPEC,
        {
            **_lists(),
            _MAP.field: _MAP.schema(),
            **_options(),
            "successPolicy": string(
                "When a job without Chief and Master succeeds: AllWorkers, when all workers have succeeded. Default, "
                "also if empty: when worker 0 has succeeded.",
                choices=["", "AllWorkers"],
            ),
            "enableDynamicWorker": boolean(
                "true allows workers to be added, removed and to fail independently: TF_CONFIG of a worker then lists "
                "only itself and the parameter servers, TF_CONFIG of a parameter server only the parameter servers."
            ),
        },
        rules=[
            _only_in_map("successPolicy"),
            _only_in_map("enableDynamicWorker"),
            _one_of(*_FIELDS, _MAP.field),
            *_list_rules(),
            *_map_rules(),
            *OPTION_RULES,
        ],
    )
    in_map = f"!({_MAP.absent('self.spec')})"
    return resource(_JOB, spec, [label_rule(unless=[in_map]), *_MAP.name_rules()])


def definitions() -> list[dict[str, Any]]:
    """The CRDs of these kinds, one per group."""
    return [_tensorflow(), _kubeflow()]
