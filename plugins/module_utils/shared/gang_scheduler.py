"""Gang schedulers, which start the pods of a group together or not at all: the names of their API.

The value of ``--gang-scheduler-name`` means what it means in training-operator 1.9: ``volcano`` is Volcano, and any
other name is that of a kube-scheduler with the coscheduling plugin of kubernetes-sigs/scheduler-plugins. One name is
special, see :data:`PLUGINS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

VOLCANO = "volcano"
PLUGINS = "scheduler-plugins"
"""The name with which training-operator's documentation and tests turn coscheduling on: the templates of the pods then
name the scheduler, and pods of any scheduler belong to the group of their job."""
POD_GROUP = "PodGroup"
VOLCANO_GROUP = "scheduling.volcano.sh"
PLUGINS_GROUP = "scheduling.x-k8s.io"

LABEL_POD_GROUP = "scheduling.x-k8s.io/pod-group"
"""Label of a pod with the name of its group, for the coscheduling plugin."""
ANNOTATION_POD_GROUP = "scheduling.k8s.io/group-name"
"""Annotation of a pod with the name of its group, for Volcano."""
ANNOTATION_TASK = "volcano.sh/task-spec"
"""Annotation of a pod with its replica type, for Volcano."""
ANNOTATION_QUEUE = "scheduling.volcano.sh/queue-name"
"""Annotation of a job, or of Volcano's group, with the queue where the spec names none, as in mpi-operator."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class GangScheduler:
    """The scheduler of all jobs of an operator."""

    name: str
    """The ``schedulerName`` of pods that have none."""

    @property
    def is_volcano(self) -> bool:
        return self.name == VOLCANO

    def takes(self, scheduler_name: str) -> bool:
        """Whether pods with that ``schedulerName`` belong to the group of their job."""
        return self.name in (scheduler_name, PLUGINS)

    @property
    def group(self) -> str:
        """The API group of its PodGroups."""
        return VOLCANO_GROUP if self.is_volcano else PLUGINS_GROUP

    @property
    def owned_kind(self) -> str:
        """The name of its PodGroups in the registry of owned kinds."""
        return f"{POD_GROUP}.{self.group}"

    def pod_group(self, name: str) -> str:
        """The PodGroup of that name, in the notation of :func:`pod_group_of`."""
        return f"{self.owned_kind}/{name}"


def gang_scheduler(text: str) -> GangScheduler | None:
    """The scheduler of that name, ``None`` for "". Raises ValueError for a text that is no name."""
    if not text:
        return None
    if text.lower() == VOLCANO:
        return GangScheduler(VOLCANO)
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no schedulerName; write volcano, or the name of a scheduler with coscheduling")
    return GangScheduler(text)


def pod_group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The PodGroup that a pod belongs to by its metadata, as ``<owned kind>/<name>``, "" for none."""
    for group, name in (
        (PLUGINS_GROUP, labels.get(LABEL_POD_GROUP)),
        (VOLCANO_GROUP, annotations.get(ANNOTATION_POD_GROUP)),
    ):
        if name:
            return f"{POD_GROUP}.{group}/{name}"
    return ""
