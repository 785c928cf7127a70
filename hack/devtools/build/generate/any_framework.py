"""The kind DLJob, whose jobs name their framework: its schema, and what stands for its framework in the other files."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import Kind
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.any_framework import (
    GROUP,
    KIND,
    MANAGERS,
    VERSION,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import NAME_LIMIT

from devtools.build.generate import pod_schema
from devtools.build.generate.layout import ENTRIES, count, never_always
from devtools.build.generate.model import Framework, Own
from devtools.build.generate.openapi import Rule, Schema, array, mapping, record, rule, string
from devtools.build.generate.options import MANAGED_BY_RULE, run_policy, runtime_id
from devtools.build.generate.replica_groups import FIELD, fit, groups
from devtools.build.generate.status import status
from devtools.build.generate.template import CONTAINERS, POD_SPEC, container, metadata, other_fields

ROLE = "any_framework"
_AT = "self.spec.replicas"
_SHORT = ("image", "command", "args", "env", "resources")
_STRINGS = {"type": "string", "description": "One of them."}


def framework(others: Sequence[Framework]) -> Framework:
    """What watches.yaml, the CRD and the RBAC rules need of the kind; its jobs own what those of ``others`` do."""
    owns = list(dict.fromkeys(kind for other in others for kind in other.owns))
    return Framework(
        name=ROLE,
        title="any framework",
        description="A training job of any declared framework.",
        container="",
        success_target=(),
        succeeds_by="",
        kinds=[Kind(KIND, GROUP, (VERSION,), ("dlj",))],
        flavors=(),
        own=Own({}, (), {}),
        permissions=(),
        owns=owns,
    )


def schema(description: str) -> Schema:
    """The schema of DLJobs."""
    return record(
        description,
        {
            "apiVersion": string("API group and version of this object."),
            "kind": string("Kind of this object."),
            # the API server allows no description here; the name is listed so that rules can refer to it
            "metadata": {"type": "object", "properties": {"name": string("Name of the job.")}},
            "spec": _spec(),
            "status": status(),
        },
        required=["spec"],
        rules=_name_rules(),
    )


def _spec() -> Schema:
    policy = "self.replicas[k].restartPolicy"
    return record(
        "The training program and its replicas.",
        {
            "framework": string(
                "Name of the framework, one of those that the operator has loaded: mxnet, tensorflow, pytorch, jax, "
                "paddle, xgboost, mpi, caffe2, or one of its administrator. Immutable.",
                minLength=1,
                maxLength=63,
                rules=[rule("self == oldSelf", message="framework is immutable: delete the job and create a new one")],
            ),
            "replicas": _replicas(),
            "options": record(
                "Fields of the framework, those that the spec of its own kind has, such as elasticPolicy of PyTorch. "
                "The operator validates them.",
                {},
                open_=True,
            ),
            "runtimeId": runtime_id("runtimeId"),
            "schedulerName": string("Scheduler of the pods whose template names none."),
            "runPolicy": run_policy(MANAGERS),
        },
        required=["framework", "replicas"],
        rules=[
            *never_always(f"self.replicas.all(k, !has({policy}) || {policy} != 'Always')", ()),
            MANAGED_BY_RULE,
        ],
    )


def _replicas() -> Schema:
    return mapping(
        "The job's replicas by type. The framework declares the types, such as Master and Worker for PyTorch. They are "
        "case-insensitive.",
        _entry(),
        most=ENTRIES,
        rules=[
            rule(
                "self.exists(k, self[k].count > 0)",
                message="the job has no replica: give at least one type a count above 0",
            ),
            rule(
                "self.all(k, self.exists_one(o, o.lowerAscii() == k.lowerAscii()))",
                message="a replica type occurs twice, in different cases: put its replicas into one entry",
            ),
        ],
    )


def _entry() -> Schema:
    return record(
        "The replicas of one type: a short form with an image, or a template.",
        {
            "count": count(),
            "restartPolicy": string(
                "Restart policy of the replicas; overrides the template's. Default: that of the framework's own kind.",
                choices=["Always", "OnFailure", "Never", "ExitCode"],
            ),
            **_pod("the replicas of this type that are in no group"),
            FIELD: groups("count", _pod("the replicas of the group"), rules=_pod_rules()),
        },
        rules=[*_pod_rules(), fit("count")],
    )


def _pod(of: str) -> dict[str, Schema]:
    """The fields with the pods of a replica type or of a group, which :func:`_pod_rules` are for."""
    return {
        "image": string("Image of the container that runs the training. Required without template.", minLength=1),
        "command": array("Its command. Default: the image's.", _STRINGS, most=256),
        "args": array("Its arguments.", _STRINGS, most=1024),
        "env": array(
            "Its environment variables, EnvVar as in a container.",
            record(
                "A variable.",
                {"name": string("Its name.", minLength=1), **other_fields("EnvVar", ["name"])},
                required=["name"],
            ),
            most=512,
        ),
        "resources": record("Its requests and limits, as in a container.", pod_schema.fields("ResourceRequirements")),
        "template": _template(of),
    }


def _pod_rules() -> list[Rule]:
    given = " || ".join(f"has(self.{name})" for name in _SHORT)
    return [
        rule(
            "has(self.template) || has(self.image)",
            message="neither image nor template is given: add one of them",
        ),
        rule(
            f"!has(self.template) || !({given})",
            message=f"template is given beside {', '.join(_SHORT)}: move these into the template's container",
            field=".template",
        ),
    ]


def _template(of: str) -> Schema:
    each = container("Name of the container; that of the framework runs the training: pytorch, tensorflow.")
    spec = record(
        POD_SPEC,
        {
            "containers": array("The pod's containers.", each, most=CONTAINERS),
            **other_fields("PodSpec", ["containers"]),
        },
        required=["containers"],
    )
    return record(
        f"PodTemplateSpec of {of}.",
        {"metadata": metadata(), "spec": spec},
        required=["spec"],
    )


def _name_rules() -> list[Rule]:
    longest = f"{_AT}.map(k, 2 + k.size() + string({_AT}[k].count > 1 ? {_AT}[k].count - 1 : 0).size()).max()"
    return [
        rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message="pods are named after the job: use lower-case letters, digits and '-', begin with a letter and "
            "do not end with '-'",
            field=".metadata.name",
        ),
        rule(
            f"self.metadata.name.size() + {longest} <= {NAME_LIMIT}",
            unless=[f"{_AT}.size() == 0"],
            computed="'has %d characters, and may have at most %d so that the names of its pods, "
            f"<job>-<type>-<index>, have at most {NAME_LIMIT}: shorten it'"
            f".format([self.metadata.name.size(), {NAME_LIMIT} - {longest}])",
            field=".metadata.name",
        ),
    ]
