"""From the ClusterRole to the two lists of rules that OLM wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Rule = dict[str, Any]

CLUSTER_SCOPED = {("", "nodes")}
"""Of all that the operator may use, what is in no namespace."""


def split(rules: Sequence[Rule]) -> tuple[list[Rule], list[Rule]]:
    """The rules that OLM is to grant in the watched namespaces, and those for the whole cluster.

    OLM binds the first where its OperatorGroup says: in the namespaces that are watched and the operator's own, or in
    all. What is in no namespace can only be granted for the cluster, however few namespaces are watched.
    """
    namespaced: list[Rule] = []
    cluster: list[Rule] = []
    for rule in rules:
        scopes = {(group, resource) in CLUSTER_SCOPED for group in rule["apiGroups"] for resource in rule["resources"]}
        if len(scopes) != 1:
            raise ValueError(f"{rule['resources']}: some are in a namespace and some are not; make two rules of it")
        (cluster if scopes.pop() else namespaced).append(rule)
    return namespaced, cluster


def missing(wanted: Sequence[Rule], granted: Sequence[Rule]) -> list[Rule]:
    """Those of ``wanted`` that ``granted`` does not cover already."""
    held = {(g, r, v) for rule in granted for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    return [
        rule
        for rule in wanted
        if any((g, r, v) not in held for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"])
    ]
