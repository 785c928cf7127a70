"""Parses ``runPolicy.podFailurePolicy`` and checks it against the rest of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import choice, no_others
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    RESTART_ALWAYS,
    RESTART_SCOPE_JOB,
    RESTART_SCOPE_REPLICA,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_RESTART,
    ACTION_RESTART_JOB,
    ACTIONS,
    CONDITION_STATUSES,
    LARGEST_EXIT_CODE,
    MOST_CONDITIONS,
    MOST_EXIT_CODES,
    MOST_REASONS,
    MOST_RULES,
    OPERATOR_IN,
    OPERATORS,
    REQUIREMENTS,
    FailureRule,
    OnExitCodes,
    OnPodConditions,
    OnTerminationReasons,
    Requirement,
)

PATH = "spec.runPolicy.podFailurePolicy"


def parse(policy: Any, errors: list[str]) -> tuple[FailureRule, ...]:
    """The rules of the field's value, ``None`` where the job has none. Adds what is wrong with it to ``errors``."""
    if policy is None:
        return ()
    if not isinstance(policy, Mapping):
        errors.append(f"{PATH} must be a map with rules")
        return ()
    no_others(policy, ("rules",), PATH, errors)
    rules = _list(policy.get("rules"), f"{PATH}.rules", MOST_RULES, errors)
    found = (_rule(rule, f"{PATH}.rules[{index}]", errors) for index, rule in enumerate(rules))
    return tuple(rule for rule in found if rule is not None)


def _rule(rule: Any, path: str, errors: list[str]) -> FailureRule | None:
    if not isinstance(rule, Mapping):
        errors.append(f"{path} must be a map with action and one of {', '.join(REQUIREMENTS)}")
        return None
    no_others(rule, ("action", *REQUIREMENTS), path, errors)
    action = choice(rule.get("action"), f"{path}.action", ACTIONS, errors)
    given = [name for name in REQUIREMENTS if rule.get(name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        errors.append(f"{path} has {found}: give exactly one of {', '.join(REQUIREMENTS)}")
        return None
    (name,) = given
    requirement = _requirement(name, rule[name], f"{path}.{name}", errors)
    return FailureRule(action, requirement) if action and requirement else None


def _requirement(name: str, value: Any, path: str, errors: list[str]) -> Requirement | None:
    if name == "onPodConditions":
        conditions = _list(value, path, MOST_CONDITIONS, errors)
        if not conditions:
            errors.append(f"{path} is empty: list at least one condition, such as type DisruptionTarget")
        found = (_condition(one, f"{path}[{index}]", errors) for index, one in enumerate(conditions))
        return OnPodConditions(tuple(one for one in found if one is not None))
    if not isinstance(value, Mapping):
        errors.append(f"{path} must be a map with operator and values")
        return None
    no_others(value, ("containerName", "operator", "values"), path, errors)
    container = value.get("containerName") or ""
    if not isinstance(container, str):
        errors.append(f"{path}.containerName must be the name of a container, not {container!r}")
        return None
    operator = choice(value.get("operator"), f"{path}.operator", OPERATORS, errors)
    is_codes = name == "onExitCodes"
    values = _list(value.get("values"), f"{path}.values", MOST_EXIT_CODES if is_codes else MOST_REASONS, errors)
    if not values:
        errors.append(f"{path}.values is empty: list at least one {'exit code' if is_codes else 'reason'}")
    if is_codes:
        return OnExitCodes(operator, frozenset(_codes(values, operator, f"{path}.values", errors)), container)
    return OnTerminationReasons(operator, frozenset(_reasons(values, f"{path}.values", errors)), container)


def _codes(values: list[Any], operator: str, path: str, errors: list[str]) -> Iterator[int]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_EXIT_CODE:
            errors.append(f"{path}: {value!r} is no exit code: use numbers between 0 and {LARGEST_EXIT_CODE}")
        elif value == 0 and operator == OPERATOR_IN:
            errors.append(f"{path} has 0, with which a container succeeds: remove it")
        else:
            yield value


def _reasons(values: list[Any], path: str, errors: list[str]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield value
        else:
            errors.append(f"{path}: {value!r} is no reason of the kubelet, such as OOMKilled or Error: use one")


def _condition(value: Any, path: str, errors: list[str]) -> tuple[str, str] | None:
    condition = as_mapping(value)
    type_ = condition.get("type")
    if not isinstance(type_, str) or not type_:
        errors.append(f"{path}.type is missing: give the type of a pod's condition, such as DisruptionTarget")
        return None
    no_others(condition, ("type", "status"), path, errors)
    status = condition.get("status")
    return type_, choice("True" if status is None else status, f"{path}.status", CONDITION_STATUSES, errors)


def _list(value: Any, path: str, most: int, errors: list[str]) -> list[Any]:
    if not isinstance(value, list):
        errors.append(f"{path} must be a list, not {value!r}")
        return []
    if len(value) > most:
        errors.append(f"{path} has {len(value)} entries: use at most {most}")
    return value[:most]


def conflicts(job: DLJob) -> Iterator[str]:
    """What of ``job`` contradicts its podFailurePolicy or maxRestartsPerReplica."""
    policy = job.run_policy
    as_one = policy.restart_scope == RESTART_SCOPE_JOB
    if as_one and policy.max_restarts_per_replica is not None:
        yield (
            "spec.runPolicy.maxRestartsPerReplica counts the restarts of single replicas, which restartScope Job does "
            f"not have: use backoffLimit, or restartScope {RESTART_SCOPE_REPLICA}"
        )
    for group in job.groups if policy.failure_rules else ():
        if group.restart_policy == RESTART_ALWAYS:
            yield (
                f"{group.path}: with restartPolicy Always a replica restarts even after success, and with {PATH} the "
                "kubelet restarts none: use OnFailure or ExitCode"
            )
    names = {name for group in job.groups for one in group.templates for name in _containers(one.template)}
    for index, rule in enumerate(policy.failure_rules):
        if as_one and rule.action == ACTION_RESTART:
            yield (
                f"{PATH}.rules[{index}].action is {ACTION_RESTART}, of one replica, but with restartScope Job all "
                f"restart together: use {ACTION_RESTART_JOB}, or restartScope {RESTART_SCOPE_REPLICA}"
            )
        requirement = rule.requirement
        if isinstance(requirement, OnPodConditions) or requirement.container in ("", *names):
            continue
        field = "onExitCodes" if isinstance(requirement, OnExitCodes) else "onTerminationReasons"
        yield (
            f"{PATH}.rules[{index}].{field}.containerName: no template has a container {requirement.container!r}; "
            f"there are: {', '.join(sorted(names)) or 'none'}"
        )


def _containers(template: Mapping[str, Any]) -> Iterator[str]:
    spec = as_mapping(template.get("spec"))
    for field in ("containers", "initContainers"):
        yield from (str(as_mapping(one).get("name")) for one in as_list(spec.get(field)))
