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

from devtools.build.generate import pod_schema
from devtools.build.generate.entries import GROUPS, count, fit, groups, never_always, pod_names
from devtools.build.generate.model import Framework, Own
from devtools.build.generate.openapi import RULES, Schema, array, part, record, rule, string
from devtools.build.generate.options import MANAGED_BY_RULE, run_policy, runtime_id
from devtools.build.generate.status import job
from devtools.build.generate.template import CONTAINERS, POD_SPEC, container, metadata, other_fields

ROLE = "any_framework"
_FIRST = ("mxnet", "tensorflow", "pytorch", "jax", "paddle", "xgboost", "mpi", "caffe2")
"""The frameworks that the text on all of them begins with."""


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
        own=Own({"framework": _name([other.name for other in others])}, (), {}),
        permissions=(),
        owns=owns,
    )


def _name(frameworks: Sequence[str]) -> Schema:
    names = sorted(frameworks, key=lambda name: (*_FIRST, name).index(name))
    return string(
        f"Name of the framework, one of those that the operator has loaded: {', '.join(names)}, or one of its "
        "administrator. Immutable.",
        minLength=1,
        maxLength=63,
        rules=[rule("self == oldSelf", message="framework is immutable: delete the job and create a new one")],
    )


def schema(framework: Framework) -> Schema:
    """The schema of DLJobs."""
    spec = part("any_framework")["spec"]
    spec["properties"] |= {
        **framework.own.fields,
        "runtimeId": runtime_id("runtimeId"),
        "runPolicy": run_policy(MANAGERS),
    }
    entry = spec["properties"]["replicas"]["additionalProperties"]
    entry["properties"] = {
        "count": count(),
        "restartPolicy": entry["properties"]["restartPolicy"],
        **_pod("the replicas of this type that are in no group"),
        GROUPS: groups("count", _pod("the replicas of the group"), rules=part("any_framework")["pod_rules"]),
    }
    entry[RULES] = [*part("any_framework")["pod_rules"], fit("count")]
    policy = "self.replicas[k].restartPolicy"
    spec[RULES] = [*never_always(f"self.replicas.all(k, !has({policy}) || {policy} != 'Always')"), MANAGED_BY_RULE]
    at = "self.spec.replicas"
    longest = f"{at}.map(k, 2 + k.size() + string({at}[k].count > 1 ? {at}[k].count - 1 : 0).size()).max()"
    return job(framework.description, spec, [*pod_names(longest, empty=[f"{at}.size() == 0"])])


def _pod(of: str) -> dict[str, Schema]:
    """The fields with the pods of a replica type or of a group."""
    fields: dict[str, Schema] = part("any_framework")["pod"]
    fields["env"]["items"]["properties"] |= other_fields("EnvVar", ["name"])
    fields["resources"]["properties"] = pod_schema.fields("ResourceRequirements")
    return {**fields, "template": _template(of)}


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
