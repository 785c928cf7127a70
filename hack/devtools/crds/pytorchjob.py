"""PyTorchJob, in the one flavor that there is of it: the training operator's v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Rule, Schema, array, boolean, integer, record, rule, string
from devtools.crds.options import OPTION_RULES, options
from devtools.crds.replicas import ReplicaMap

_JOB = (
    "A training job of PyTorch: a master with any number of workers, whose end is the master's; or workers alone, all "
    "of which must succeed, or, with elasticPolicy, one."
)
_SPEC = "What to train and with how many replicas."
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
        "Lets workers come and go: torchrun goes on with as many as there are, between two numbers.",
        {
            "minReplicas": integer("Fewest workers to train with; maxReplicas where absent.", minimum=1),
            "maxReplicas": integer("Most workers to train with; minReplicas where absent.", minimum=1),
            "rdzvBackend": string(
                "Where workers find each other: c10d (where absent), etcd-v2, or another that torchrun knows.",
                minLength=1,
            ),
            "rdzvHost": string("Host of the rendezvous; worker 0 where absent.", minLength=1),
            "rdzvPort": integer("Its port; the worker's pytorchjob-port where absent.", minimum=1, maximum=65535),
            "rdzvId": string("Name of the rendezvous, for a backend that several jobs share."),
            "rdzvConf": array("Further settings of the rendezvous.", detail, most=64),
            "standalone": boolean("true makes each pod train for itself, with a rendezvous of its own."),
            "nProcPerNode": integer("Earlier place of nprocPerNode.", minimum=1),
            "metrics": array(
                "Not served: write a HorizontalPodAutoscaler.", record("One of its metrics.", {}, open_=True), most=64
            ),
            "maxRestarts": integer("How often torchrun starts its processes anew before it fails.", minimum=0),
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
                message="metrics makes no autoscaler here: remove it, and write a HorizontalPodAutoscaler whose "
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
            message="at least one replica of Master or Worker is needed: add it",
            field=f".{_MAP.field}",
        ),
        rule(
            f"{workers}.exists(n, n > 0)",
            unless=[f"!has({_ELASTIC})"],
            message="elasticPolicy is about workers, of which the job has none: add Worker, or remove elasticPolicy",
            field=".elasticPolicy",
        ),
        rule(
            f"{workers}.all(n, n <= {_ELASTIC}.maxReplicas)",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.maxReplicas)"],
            message="more workers than elasticPolicy.maxReplicas: torchrun would let none in beyond it; raise it, or "
            "ask for fewer",
            field=f".{_MAP.field}",
        ),
        rule(
            "!has(self.nprocPerNode)",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.nProcPerNode)"],
            message="nprocPerNode and elasticPolicy.nProcPerNode are one setting: keep nprocPerNode, remove the other",
            field=".nprocPerNode",
        ),
        rule(
            "!has(self.runPolicy) || !has(self.runPolicy.restartScope) || self.runPolicy.restartScope != 'Job'",
            unless=[f"!has({_ELASTIC})", f"!has({_ELASTIC}.minReplicas) && !has({_ELASTIC}.maxReplicas)"],
            message="restartScope Job restarts all replicas together, and elastic workers come and go one by one: "
            "remove restartScope, or minReplicas and maxReplicas of elasticPolicy",
            field=".runPolicy",
        ),
        _MAP.restarts_as_one(),
        *OPTION_RULES,
    ]


def _schema() -> Schema:
    processes = string(
        f"Processes that torchrun starts in each pod: {_PROCESSES}; auto where absent.",
        rules=[
            rule(
                "self.matches('^([a-z][a-z0-9_]*|[1-9][0-9]{0,3})$')",
                message=f"nprocPerNode is {_PROCESSES} in quotes: change it",
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
