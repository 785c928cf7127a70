"""What the roles declare, for tables that would otherwise repeat the kinds: a new role is in each of them at once."""

from __future__ import annotations

from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER, Framework

from dljob_operator.preflight import frameworks
from support.builders import ROOT, Resource, job_of_v1

DECLARED: dict[str, dict[str, Any]] = {
    path.parts[-3]: yaml.safe_load(path.read_text(encoding="utf-8"))[f"{path.parts[-3]}_framework"]
    for path in sorted(ROOT.glob("roles/*/vars/main.yml"))
}
"""Each declaration by its role."""
FRAMEWORKS: dict[str, Framework] = {served.framework.name: served.framework for served in frameworks.load().values()}
"""Each framework with its hooks, by its role."""
PLAIN: dict[str, Framework] = {
    declared["kinds"][0]["kind"]: FRAMEWORKS[role]
    for role, declared in DECLARED.items()
    if declared.get("extends") == "kubeflow_v1"
}
"""The kinds that have the API flavor of training-operator v1 and no other, such as JAXJob and XGBoostJob."""


def plain_job(kind: str, others: int = 2) -> Resource:
    """A job of one of the :data:`PLAIN` kinds, with one replica of a type that may have one, and ``others`` of others."""
    framework = PLAIN[kind]
    container = "main" if framework.container == FIRST_CONTAINER else framework.container
    counts = {type_.name: type_.maximum or others for type_ in framework.replica_types}
    return job_of_v1(kind, framework.flavors[0].replicas_fields[0], container, counts, {})


def plain_jobs(others: int = 2) -> dict[str, tuple[Framework, Resource]]:
    """A job of each plain kind, with its framework."""
    return {kind: (framework, plain_job(kind, others)) for kind, framework in PLAIN.items()}


def declared_environment(role: str) -> set[str]:
    """The names of the variables of a framework that computes none."""
    declared = DECLARED[role].get("hooks", {}).get("environment")
    return {*declared} if isinstance(declared, dict) else set()
