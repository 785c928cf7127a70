"""What all pods of a PodGroup of Kubernetes itself (``scheduling.k8s.io/v1beta1``) have in common.

They have its priority and one scheduler. Kubernetes refuses no pod that differs: it never starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import SCHEDULING_GROUP
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate

DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod that names none."""

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Traits:
    """What all pods of a group have in common."""

    scheduler_name: str
    priority_class: str
    """The priorityClassName, "" for none."""

    def __str__(self) -> str:
        return f"{self.scheduler_name}/{self.priority_class}"

    @staticmethod
    def read(text: str) -> Traits | None:
        """The inverse of ``str``; ``None`` for the "" of a group that this operator has not made."""
        scheduler_name, _, priority_class = text.partition("/")
        return Traits(scheduler_name, priority_class) if scheduler_name else None


def is_member(template: PodTemplate) -> bool:
    """Whether the pods of a template are left to the job's group: the user has not given them another one."""
    return not template.template["spec"].get(SCHEDULING_GROUP)


def traits_of(job: DLJob, template: PodTemplate) -> Traits:
    """Those of the pods of a template, without a group that has others."""
    policy = job.run_policy
    return with_defaults(
        template, Traits(policy.scheduler_name or DEFAULT_SCHEDULER, policy.scheduling.priority_class or "")
    )


def with_defaults(template: PodTemplate, traits: Traits) -> Traits:
    """Those of the pods of a template, in a group with these ``traits``."""
    spec = template.template["spec"]
    return Traits(
        str(spec.get("schedulerName", traits.scheduler_name) or DEFAULT_SCHEDULER),
        str(spec.get("priorityClassName", traits.priority_class) or ""),
    )


def group_spec(count: int, traits: Traits) -> Spec:
    """The spec of a group of which ``count`` pods start together; a higher priority ends all of them or none."""
    return {
        "schedulingPolicy": {"gang": {"minCount": count}},
        "disruptionMode": {"all": {}},
        **({"priorityClassName": traits.priority_class} if traits.priority_class else {}),
    }
