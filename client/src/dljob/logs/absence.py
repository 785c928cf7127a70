"""Why there is no log to read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dljob.kinds import Resource
from dljob.logs.source import Choice, Source, container_names
from dljob.view import FINAL, JobView


@dataclass(frozen=True, slots=True)
class Absence:
    """None of the containers that ``choice`` means has a log."""

    job: JobView
    pods: Sequence[Resource]
    found: Sequence[Source]
    """Those containers."""
    choice: Choice

    @property
    def sentence(self) -> str:
        """The reason, and what helps."""
        job, choice = self.job, self.choice
        if not self.pods and job.state in FINAL:
            return (
                f"The pods of {job.key} are gone, and their logs with them: "
                "spec.runPolicy.cleanPodPolicy: None keeps those of later jobs."
            )
        if not self.pods:
            return f"{job.key} has no pods: it is {job.state}. `dljob why {job.name}` says more."
        if not self.found and choice.containers:
            return f"No pod of {job.key} has such a container: they have {', '.join(container_names(self.pods))}."
        if not self.found:
            return f"{job.key} has no replica {' or '.join(choice.replicas)} with a pod."
        if choice.previous:
            return f"No container of {job.key} has restarted: there is no previous log."
        return f"No container of {job.key} has started: it is {job.state}. `dljob why {job.name}` says why."

    @property
    def is_passing(self) -> bool:
        """Whether there may be a log later on: not of an ended job, nor of what the job does not have."""
        if self.job.state in FINAL:
            return False
        types = {one.type.lower() for one in self.job.replicas}
        wanted = {name.lower().rpartition("-")[0] or name.lower() for name in self.choice.replicas}
        return not self.pods or bool(self.found) or (bool(wanted & types) and not self.choice.containers)
