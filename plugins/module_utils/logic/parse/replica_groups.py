"""Parses ``groups`` of a replica spec: groups of replicas of one type that have a pod template of their own.

The groups take the indexes of the type in their order, from 0 on. Replicas after the last group have the replica spec's
own template, so a change of ``replicas`` adds and removes only those. Names, addresses, ranks and the environment of a
replica do not depend on its group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import (
    MAX_REPLICAS,
    Bounds,
    Parsing,
    integer,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.template import container_names, named_port
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import NAME_LIMIT
from ansible_collections.dljob.operator.plugins.module_utils.values.job import PodTemplate, ReplicaGroup

MOST = 16
"""Groups of a replica type. The schema needs a limit: the API server multiplies the cost of its rules by it."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def parse(groups: Any, of: ReplicaGroup, parsing: Parsing) -> tuple[PodTemplate, ...]:
    """The groups of the replica spec ``of``; incomplete where there are errors."""
    path, errors = f"{of.path}.groups", parsing.errors
    if groups is None:
        return ()
    if not isinstance(groups, list):
        errors.append(f"{path} must be a list of groups, each with a name and its pods")
        return ()
    if of.type in parsing.flavor.template_optional:
        # the pod hook completes the template of the type only
        errors.append(f"{path}: the replicas of {of.type} have no groups, since they need no template: remove it")
        return ()
    if len(groups) > MOST:
        errors.append(f"{path} has {len(groups)} groups: use at most {MOST}")
    before = len(errors)
    found: list[PodTemplate] = []
    for number, group in enumerate(groups[:MOST]):
        where = f"{path}[{number}]"
        if not isinstance(group, Mapping):
            errors.append(f"{where} must be a map with a name and its pods")
            continue
        name = _name(group.get("name"), where, {one.group for one in found}, errors)
        count = integer(group.get("replicas"), f"{where}.replicas", Bounds(1, 0, MAX_REPLICAS), errors)
        template = group.get("template")
        if not isinstance(template, Mapping):
            errors.append(f"{where}.template is missing: describe the pods of the group there")
            continue
        _check_port(template, f"{where}.template", of, parsing)
        first = found[-1].indexes.stop if found else 0
        indexes = range(first, first + count)
        found.append(PodTemplate(name, template, f"{where}.template", indexes, container_names(template)))
    total = found[-1].indexes.stop if found else 0
    if total > of.replicas and len(errors) == before:
        errors.append(
            f"{path} have {total} replicas, and {of.path}.replicas is {of.replicas}: raise it to at least {total}, or "
            "make a group smaller"
        )
    return tuple(found)


def _name(name: Any, where: str, taken: set[str], errors: list[str]) -> str:
    if name is None:
        errors.append(f"{where}.name is missing: name the group")
        return ""
    if not isinstance(name, str) or len(name) > NAME_LIMIT or not _NAME.fullmatch(name):
        errors.append(
            f"{where}.name: {repr(name)[:80]} is the value of a label: use at most {NAME_LIMIT} lower-case letters, "
            "digits and '-', with a letter or digit at both ends"
        )
        return ""
    if name in taken:
        errors.append(f"{where}.name: there are two groups {name!r}: rename one")
    return name


def _check_port(template: Mapping[str, Any], path: str, of: ReplicaGroup, parsing: Parsing) -> None:
    """All replicas of a type have one port: some frameworks name it once, for all of them."""
    port = named_port(template, path, of.port, parsing)
    if port != of.port:
        parsing.errors.append(
            f"{path}.spec.containers: containerPort {parsing.flavor.port_name} is {port}, and that of the other "
            f"replicas of {of.type} is {of.port}: use one number in {of.path}.template and all groups"
        )
