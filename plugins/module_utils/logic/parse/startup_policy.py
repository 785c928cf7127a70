"""Parses ``runPolicy.startupPolicy`` into the types that each replica type waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    ORDER_ANY,
    ORDER_IN_ORDER,
    STARTUP_ORDERS,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    AFTER_COMPLETED,
    AFTER_READY,
    AFTER_RUNNING,
    Framework,
)

PATH = "spec.runPolicy.startupPolicy"
CONDITIONS = {"Ready": AFTER_READY, "Running": AFTER_RUNNING, "Complete": AFTER_COMPLETED}
Order = dict[str, dict[str, str]]


def parse(policy: Any, declared: Mapping[str, Mapping[str, str]], framework: Framework, errors: list[str]) -> Order:
    """By type, the state that each other type must have reached.

    ``declared`` has the types of the job, each with what it waits for in any case. Adds what is wrong to ``errors``.
    """
    types = list(declared)
    if policy is None:
        return {}
    if not isinstance(policy, Mapping):
        errors.append(f"{PATH} must be a map with startupPolicyOrder or dependsOn")
        return {}
    errors.extend(
        f"{PATH}.{name} is unknown: use startupPolicyOrder or dependsOn"
        for name in sorted(str(key) for key in policy if key not in ("startupPolicyOrder", "dependsOn"))
    )
    order, depends = policy.get("startupPolicyOrder"), policy.get("dependsOn")
    if order is not None and order not in STARTUP_ORDERS:
        errors.append(f"{PATH}.startupPolicyOrder: {order!r} is none of {', '.join(STARTUP_ORDERS)}")
        return {}
    if depends is None:
        in_order = _in_order(types, framework) if order == ORDER_IN_ORDER else {}
        errors.extend(_deadlocks(in_order, declared, "startupPolicyOrder"))
        return in_order
    if order == ORDER_IN_ORDER:
        errors.append(f"{PATH} has {ORDER_IN_ORDER} and dependsOn: keep one of them, or use {ORDER_ANY}")
        return {}
    if not isinstance(depends, Mapping):
        errors.append(f"{PATH}.dependsOn must be a map of a replica type to a list of those that it waits for")
        return {}
    found: Order = {}
    for spelling, entries in depends.items():
        path = f"{PATH}.dependsOn.{spelling}"
        waiting = _type(spelling, path, types, framework, errors)
        if not isinstance(entries, list):
            errors.append(f"{path} must be a list of replicaType and condition")
            continue
        for number, entry in enumerate(entries):
            on, state = _dependency(entry, f"{path}[{number}]", types, framework, errors)
            if waiting and on in found.get(waiting, ()):
                errors.append(f"{path}[{number}].replicaType: {on} is listed twice: keep one condition")
            elif waiting and on and state:
                found.setdefault(waiting, {})[on] = state
    errors.extend(_deadlocks(found, declared, "dependsOn"))
    return found


def _in_order(types: Sequence[str], framework: Framework) -> Order:
    """Each type after all that are declared before it."""
    present = [type_.name for type_ in framework.replica_types if type_.name in types]
    return {name: dict.fromkeys(present[:number], AFTER_READY) for number, name in enumerate(present) if number}


def _dependency(
    entry: Any, path: str, types: Sequence[str], framework: Framework, errors: list[str]
) -> tuple[str, str]:
    if not isinstance(entry, Mapping):
        errors.append(f"{path} must be a map with replicaType and condition")
        return "", ""
    on = _type(entry.get("replicaType"), f"{path}.replicaType", types, framework, errors)
    condition = entry.get("condition", "Ready")
    if not isinstance(condition, str) or condition not in CONDITIONS:
        errors.append(f"{path}.condition: {condition!r} is none of {', '.join(CONDITIONS)}")
        return on, ""
    type_ = framework.type_named(on) if on else None
    if type_ and type_.long_running and condition == "Complete":
        errors.append(f"{path}.condition: {on} runs until the job ends and never completes: use Ready or Running")
    return on, CONDITIONS[condition]


def _type(spelling: Any, path: str, types: Sequence[str], framework: Framework, errors: list[str]) -> str:
    """The canonical name of a type that the job has, "" for any other."""
    found = framework.type_named(spelling) if isinstance(spelling, str) else None
    if found is None or found.name not in types:
        errors.append(f"{path}: the job has no replicas of type {spelling!r}; it has {', '.join(types) or 'none'}")
        return ""
    return found.name


def _deadlocks(order: Order, declared: Mapping[str, Mapping[str, str]], field: str) -> list[str]:
    """Types that wait for one another, by this order and the declared one."""
    before = {
        name: {other for other in (*others, *order.get(name, ())) if other in declared}
        for name, others in declared.items()
    }
    while free := [name for name, others in before.items() if not others]:
        before = {name: others.difference(free) for name, others in before.items() if name not in free}
    if not before:
        return []
    waiting = ", ".join(sorted(before))
    by_framework = [name for name in sorted(before) if declared[name]]
    hint = f"; {', '.join(by_framework)} waits in any case" if by_framework else ""
    return [f"{PATH}.{field}: {waiting} wait for one another: remove one of the dependencies{hint}"]
