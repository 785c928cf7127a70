"""PyTorchJob, which has a single API flavor: training-operator's v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Rule, Schema, array, boolean, integer, record, rule, string
from devtools.crds.options import OPTION_RULES, options
from devtools.crds.replicas import ReplicaMap

_JOB = (
    "A PyTorch training job: a master, which decides the job's success, with any number of workers; or workers only, "
    "of which all must succeed, or, with elasticPolicy, one."
)
_SPEC = "The training program and its replicas."
_PROCESSES = "auto, cpu, gpu, another device that torchrun knows, or a number"
_MAP = ReplicaMap(
    field="pytorchReplicaSpecs",
    types=("Master", "Worker"),
    container="pytorch",
    default_restart_policy="OnFailure",
)
_ELASTIC = "self.elasticPolicy"


def _elastic() -> Schema:
    detail = record(
        "A setting of the rendezvous backend.",
        {"key": string("Its name.", minLength=1), "value": string("Its value.")},
        required=["key"],
    )
    return record(
        "Elastic training: torchrun runs with any number of workers from minReplicas to maxReplicas.",
        {
            "minReplicas": integer("Minimum number of workers. Default: maxReplicas.", minimum=1),
            "maxReplicas": integer("Maximum number of workers. Default: minReplicas.", minimum=1),
            "rdzvBackend": string(
                "Rendezvous backend of torchrun: c10d (the default), etcd-v2, or another one.",
                minLength=1,
            ),
            "rdzvHost": string("Host of the rendezvous. Default: worker 0.", minLength=1),
            "rdzvPort": integer(
                "Port of the rendezvous. Default: the worker's pytorchjob-port.", minimum=1, maximum=65535
            ),
            "rdzvId": string("ID of the rendezvous, for a backend that several jobs share."),
            "rdzvConf": array("Further settings of the rendezvous.", detail, most=64),
            "standalone": boolean("true trains separately in each pod, with a local rendezvous."),
            "nProcPerNode": integer("Deprecated: use nprocPerNode.", minimum=1),
            "metrics": array(
                "Not supported: create a HorizontalPodAutoscaler instead.",
                record("One of its metrics.", {}, open_=True),
                most=64,
            ),
            "maxRestarts": integer("How often torchrun restarts its worker processes before it fails.", minimum=0),
        },
        rules=[
            rule(
                "self.minReplicas <= self.maxReplicas",
                unless=["!has(self.minReplicas)", "!has(self.maxReplicas)"],
                message="minReplicas is greater than maxReplicas: lower it, or raise maxReplicas",
                field=".minReplicas",
            ),
            rule(
                "self.metrics.size() == 0",
                unless=["!has(self.metrics)"],
                message="metrics is not supported: remove it, and create a HorizontalPodAutoscaler whose "
                "scaleTargetRef is this PyTorchJob",
                field=".metrics",
            ),
        ],
    )


def _rules() -> Sequence[Rule]:
    at = f"self.{_MAP.field}"
    masters, workers = _MAP.counts("Master"), _MAP.counts("Worker")
    return [
        rule(
            f"{masters} in [[], [1]]",
            message="a job has at most one Master: set its replicas to 1, or remove the entry",
            field=f".{_MAP.field}",
        ),
        rule(
            f"{at}.exists(k, {at}[k].replicas > 0)",
            message="at least one replica of Master or Worker is required: add it",
            field=f".{_MAP.field}",
        ),
        rule(
            f"{workers}.exists(n, n > 0)",
            unless=[f"!has({_ELASTIC})"],
            message="elasticPolicy requires workers, and the job has none: add Worker, or remove elasticPolicy",
            field=".elasticPolicy",
        ),
        rule(
            f"{workers}.all(n, n <= {_ELASTIC}.maxReplicas)",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.maxReplicas)"],
            message="more workers than elasticPolicy.maxReplicas, which torchrun does not admit: raise maxReplicas, or "
            "lower Worker.replicas",
            field=f".{_MAP.field}",
        ),
        rule(
            "!has(self.nprocPerNode)",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.nProcPerNode)"],
            message="nprocPerNode and elasticPolicy.nProcPerNode are aliases: keep nprocPerNode, remove the other",
            field=".nprocPerNode",
        ),
        rule(
            "!has(self.runPolicy) || !has(self.runPolicy.restartScope) || self.runPolicy.restartScope != 'Job'",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.minReplicas) && !has({_ELASTIC}.maxReplicas)"],
            message="restartScope Job restarts all replicas together, which elastic workers do not support: "
            "remove restartScope, or minReplicas and maxReplicas of elasticPolicy",
            field=".runPolicy",
        ),
        _MAP.restarts_as_one(),
        *OPTION_RULES,
    ]


def _schema() -> Schema:
    processes = string(
        f"Processes that torchrun starts in each pod: {_PROCESSES}. Default: auto.",
        rules=[
            rule(
                "self.matches('^([a-z][a-z0-9_]*|[1-9][0-9]{0,3})$')",
                message=f"nprocPerNode must be {_PROCESSES} in quotes",
            )
        ],
        maxLength=32,
    )
    spec = record(
        _SPEC,
        {
            _MAP.field: _MAP.schema(),
            "nprocPerNode": processes,
            "elasticPolicy": _elastic(),
            **{name: field for name, field in options("pytorch", (), "").items() if name != "terminationPolicy"},
        },
        required=[_MAP.field],
        rules=_rules(),
    )
    return resource(_JOB, spec, [*_MAP.name_rules()])


def definitions() -> list[dict[str, Any]]:
    """The CRD of this kind."""
    versions = {"v1": _schema()}
    scales = (_MAP.field, "Worker")
    return [definition("kubeflow.org", "PyTorchJob", versions, stored="v1", short_names=["ptj"], scales=scales)]
