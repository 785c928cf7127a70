"""Parses a job of any API flavor, of a known framework or of one that the job names: one DLJob, or why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
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


def parse(resource: Resource, frameworks: Frameworks) -> Parsed:
    """Any API flavor becomes one DLJob."""
    if isinstance(frameworks, Framework):
        try:
            return Parsed(resource, frameworks, parse_job(resource, frameworks))
        except InvalidJob as e:
            return Parsed(resource, frameworks, None, tuple(e.problems))
    framework = next(iter(frameworks.values()))  # of a job of an unknown framework only the pods are read
    try:
        framework = any_framework.choose(resource, frameworks)
        return Parsed(resource, framework, any_framework.parse_any(resource, framework))
    except InvalidJob as e:
        return Parsed(resource, framework, None, tuple(e.problems))
