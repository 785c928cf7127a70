"""Gang schedulers, which start the pods of a group together or not at all: the names of their API.

The value of ``--gang-scheduler-name`` means what it means in training-operator 1.9: ``volcano`` is Volcano, and any
other name is that of a kube-scheduler with the coscheduling plugin of kubernetes-sigs/scheduler-plugins. Two names are
special, see :data:`NATIVE` and :data:`PLUGINS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import OWN_PREFIX

NATIVE = "kubernetes"
"""Stands for the PodGroups of Kubernetes itself, since 1.37, which each of its schedulers knows."""
VOLCANO = "volcano"
PLUGINS = "scheduler-plugins"
"""The name with which training-operator's documentation and tests turn coscheduling on: the templates of the pods then
name the scheduler, and pods of any scheduler belong to the group of their job."""
POD_GROUP = "PodGroup"
NATIVE_GROUP = "scheduling.k8s.io"
VOLCANO_GROUP = "scheduling.volcano.sh"
PLUGINS_GROUP = "scheduling.x-k8s.io"

LABEL_POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""Label of a pod with the name of its group, for the coscheduling plugin."""
ANNOTATION_POD_GROUP = "scheduling.k8s.io/group-name"
"""Annotation of a pod with the name of its group, for Volcano."""
ANNOTATION_TASK = "volcano.sh/task-spec"
"""Annotation of a pod with its replica type, for Volcano."""
ANNOTATION_NATIVE = f"{OWN_PREFIX}pod-group"
"""Annotation of a batch Job with the name of the group that its pods have in the field :data:`SCHEDULING_GROUP`."""
SCHEDULING_GROUP = "schedulingGroup"
"""Field of a pod's spec for Kubernetes itself: ``{podGroupName: ...}``. It cannot change."""
ANNOTATION_QUEUE = "scheduling.volcano.sh/queue-name"
"""Annotation of a job, or of Volcano's group, with the queue where the spec names none, as in mpi-operator."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class GangScheduler:
    """The scheduler of all jobs of an operator."""

    name: str
    """The ``schedulerName`` of pods that have none, except for the native gangs."""

    @property
    def is_native(self) -> bool:
        return self.name == NATIVE

    @property
    def is_volcano(self) -> bool:
        return self.name == VOLCANO

    def takes(self, scheduler_name: str) -> bool:
        """Whether pods with that ``schedulerName`` belong to the group of their job."""
        return self.is_native or self.name in (scheduler_name, PLUGINS)

    @property
    def group(self) -> str:
        """The API group of its PodGroups."""
        return {NATIVE: NATIVE_GROUP, VOLCANO: VOLCANO_GROUP}.get(self.name, PLUGINS_GROUP)

    @property
    def owned_kind(self) -> str:
        """The name of its PodGroups in the registry of owned kinds."""
        return f"{POD_GROUP}.{self.group}"

    def pod_group(self, name: str) -> str:
        """The PodGroup of that name, in the notation of :func:`pod_groups_of`."""
        return f"{self.owned_kind}/{name}"


def gang_scheduler(text: str) -> GangScheduler | None:
    """The scheduler of that name, ``None`` for "". Raises ValueError for a text that is no name."""
    if not text:
        return None
    if text.lower() in (NATIVE, VOLCANO):
        return GangScheduler(text.lower())
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no schedulerName; write volcano, kubernetes, or the name of a scheduler with coscheduling"
        )
    return GangScheduler(text)


def pod_groups_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], spec: Mapping[str, Any]
) -> tuple[str, ...]:
    """The PodGroups that name a pod, or the batch Job of one, as a member: ``<owned kind>/<name>`` of each.

    A user may have written the name of a group of another scheduler into the template, so there may be several. A
    batch Job has no ``spec`` here.
    """
    native = (spec.get(SCHEDULING_GROUP) or {}).get("podGroupName") if spec else annotations.get(ANNOTATION_NATIVE)
    return tuple(
        f"{POD_GROUP}.{group}/{name}"
        for group, name in (
            (PLUGINS_GROUP, labels.get(LABEL_POD_GROUP)),
            (VOLCANO_GROUP, annotations.get(ANNOTATION_POD_GROUP)),
            (NATIVE_GROUP, native),
        )
        if name
    )
