"""Fields of a job's spec besides its replicas, shared by all API flavors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Elastic

from devtools.build.generate.layouts import chief_decides
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import LABEL, Rule, Schema, integer, listed, part, quoted, record, rule, string

CLEAN = ["All", "Running", "None"]


def options(framework: Framework, flavors: Sequence[Flavor]) -> dict[str, Schema]:
    """The fields that follow from the declaration of a framework, for jobs of these flavors."""
    modes = {spelling: mode for flavor in flavors for spelling, mode in flavor.modes.items()}
    policies = {value: type_ for flavor in flavors for value, type_ in flavor.api.success_policies.items()}
    return {
        **({"jobMode": _job_mode(modes)} if modes else {}),
        **{field: runtime_id(field) for field in runtime_id_fields(flavors)},
        "schedulerName": string("Scheduler of the pods whose template names none."),
        **({"terminationPolicy": _termination_policy(framework.container)} if chief_decides(framework) else {}),
        **({"successPolicy": _success_policy(policies)} if policies else {}),
        "cleanPodPolicy": string("Deprecated: use runPolicy.cleanPodPolicy.", choices=CLEAN),
        "cleanupPodPolicy": string("Deprecated: use runPolicy.cleanPodPolicy.", choices=CLEAN),
        "runPolicy": run_policy(list(dict.fromkeys(name for flavor in flavors for name in flavor.api.managers))),
    }


def runtime_id_fields(flavors: Sequence[Flavor]) -> list[str]:
    return list(dict.fromkeys(field for flavor in flavors for field in flavor.api.runtime_id_fields))


def _termination_policy(container: str) -> Schema:
    return record(
        "The replica that determines whether the job succeeds or fails.",
        {
            "chief": record(
                f"The replica whose {container} container ends the job: its exit code determines whether the "
                "job succeeds or fails.",
                {
                    "replicaName": string("Replica type, case-insensitive."),
                    "replicaIndex": integer("Index within the replica type, from 0.", minimum=0, default=0),
                },
                required=["replicaName"],
            )
        },
    )


def _job_mode(modes: Mapping[str, str]) -> Schema:
    local = [spelling for spelling, mode in modes.items() if mode == MODE_LOCAL]
    cluster = [spelling for spelling in modes if spelling not in local]
    return string(
        f"{listed(cluster, 'or')}, the default, for processes that form a cluster"
        + (f"; {listed(local, 'or')} for processes that train on their own." if local else "."),
        choices=list(modes),
    )


def _success_policy(policies: Mapping[str, str]) -> Schema:
    meanings = [
        f"{value}, where {type_} 0 does, when all replicas of {type_} have" for value, type_ in policies.items()
    ]
    return string(
        f"When a job succeeds whose success one replica decides: {'; '.join(meanings)} succeeded. Default, also if "
        "empty: when that replica has succeeded.",
        choices=["", *policies],
    )


def runtime_id(field: str) -> Schema:
    """The unique part of the names of the job's objects; ``field`` is the field's name."""
    return string(
        "Part of the names of all pods and Services of the job. By default the operator derives it from the job's "
        "UID and reports it in status.runtimeId.",
        maxLength=16,
        rules=[
            rule(
                f"self.matches('{LABEL}')",
                message=f"{field} is part of host names: use lower-case letters, digits and '-', with a "
                "letter or digit at both ends",
            )
        ],
    )


MANAGED_BY_RULE = rule(
    "(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : '') == "
    "(has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : '')",
    message="runPolicy.managedBy is immutable: delete the job and create a new one",
    field=".runPolicy",
)
"""The rule of a spec that has :func:`run_policy`."""

OPTION_RULES: Sequence[Rule] = (
    rule(
        "[has(self.cleanPodPolicy), has(self.cleanupPodPolicy), "
        "has(self.runPolicy) && has(self.runPolicy.cleanPodPolicy)].filter(given, given).size() <= 1",
        message="cleanPodPolicy, cleanupPodPolicy and runPolicy.cleanPodPolicy are aliases: keep one of them, "
        "remove the others",
        field=".cleanPodPolicy",
    ),
    MANAGED_BY_RULE,
)
"""Rules of a spec that has :func:`options`."""


def aliases(fields: Sequence[str]) -> list[Rule]:
    """The rules that the spellings of one field, where a job has several, have the same value."""
    first, *others = fields
    return [
        rule(
            f"!has(self.{first}) || !has(self.{other}) || self.{first} == self.{other}",
            message=f"{first} and {other} are aliases and have different values: remove one of them",
            field=f".{first}",
        )
        for other in others
    ]


def mode_rule(flavor: Flavor, field: str) -> Rule:
    """The rule that a job with replicas in ``field`` has one of the modes of that flavor."""
    return rule(
        f"self.jobMode in {quoted(list(flavor.modes))}",
        unless=["!has(self.jobMode)", f"!has(self.{field})"],
        message=f"with {field}, jobMode is {listed(list(flavor.modes), 'or')}: change it"
        if flavor.modes
        else f"with {field}, a job has no jobMode: remove it",
        field=".jobMode",
    )


def elastic_rule(elastic: Elastic) -> Rule:
    """The rule that elastic replicas do not restart together."""
    at = f"self.{elastic.field}"
    settings = [f"has({at}.{setting})" for setting in elastic.when_any]
    field = f"{listed(elastic.when_any, 'and')} of {elastic.field}" if settings else elastic.field
    return rule(
        "!has(self.runPolicy) || !has(self.runPolicy.restartScope) || self.runPolicy.restartScope != 'Job'",
        unless=[f"!has({at})", " && ".join(f"!{setting}" for setting in settings) or f"!{at}"],
        message="restartScope Job restarts all replicas together, which elastic replicas of type "
        f"{elastic.type} do not support: remove restartScope, or {field}",
        field=".runPolicy",
    )


def run_policy(managers: Sequence[str]) -> Schema:
    """The field runPolicy, the same in all kinds that have one. ``managers`` are further values of managedBy."""
    schema: Schema = part("run_policy")
    schema["properties"]["managedBy"]["enum"][:0] = managers
    return schema
