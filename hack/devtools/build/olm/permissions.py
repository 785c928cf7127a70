"""Splits the ClusterRole into the two lists of rules that OLM needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rule = dict[str, Any]

CLUSTER_SCOPED = {("", "nodes")}
"""The cluster-scoped resources among those that the operator uses."""


def split(rules: Sequence[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The rules for the watched namespaces, and those for the whole cluster.

    OLM binds the first in the namespaces of its OperatorGroup: the watched ones and the operator's own, or all.
    Cluster-scoped resources need a ClusterRoleBinding, even if only some namespaces are watched.
    """
    namespaced: list[Rule] = []
    cluster: list[Rule] = []
    for rule in rules:
        scopes = {(group, resource) in CLUSTER_SCOPED for group in rule["apiGroups"] for resource in rule["resources"]}
        if len(scopes) != 1:
            raise ValueError(f"{rule['resources']}: some are namespaced and some are cluster-scoped; split the rule")
        (cluster if scopes.pop() else namespaced).append(rule)
    return namespaced, cluster


def missing(wanted: Sequence[Rule], granted: Sequence[Rule]) -> list[Rule]:
    """The rules of ``wanted`` that ``granted`` does not cover."""
    covered = {
        (g, r, v) for rule in granted for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
    }
    return [
        rule
        for rule in wanted
        if any((g, r, v) not in covered for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"])
    ]
