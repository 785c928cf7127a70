"""A job of any API flavor, of a known framework or of one that the job names, as one DLJob, or why it is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

Resource = Mapping[str, Any]
Frameworks = Framework | Mapping[str, Framework]
"""The framework of the jobs, or for DLJobs those among which each job chooses, by name (:mod:`.any_framework`)."""


@dataclass(frozen=True)
class Parsed:
    """A job with its framework; ``job`` is ``None`` where ``problems`` keep it from being one."""

    resource: Resource
    framework: Framework
    job: DLJob | None
    problems: tuple[str, ...] = ()

    @property
    def owner(self) -> Owner:
        """What marks an object as this job's."""
        metadata = self.resource["metadata"]
        return Owner(metadata["namespace"], str(metadata.get("uid") or ""))

    @classmethod
    def of(cls, resource: Resource, frameworks: Frameworks) -> Parsed:
        """Parse ``resource``; never raises :class:`InvalidJob`."""
        if isinstance(frameworks, Framework):
            return cls._by(parse_job, resource, frameworks)
        try:
            framework = any_framework.choose(resource, frameworks)
        except InvalidJob as e:
            unknown = next(iter(frameworks.values()))  # of such a job only the pods are read
            return cls(resource, unknown, None, tuple(e.problems))
        return cls._by(any_framework.parse_any, resource, framework)

    @classmethod
    def _by(cls, parse: Callable[[Resource, Framework], DLJob], resource: Resource, framework: Framework) -> Parsed:
        try:
            return cls(resource, framework, parse(resource, framework))
        except InvalidJob as e:
            return cls(resource, framework, None, tuple(e.problems))
