"""From the data that a role declares to a :class:`Framework`, with errors that tell the role's author what to mend."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster import placeholders
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values import framework as f
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_DISTRIBUTED, MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

_KEYS = frozenset(
    ("name", "kinds", "container", "replica_types", "chief", "succeeds_by", "modes", "environment", "dialects")
)
_CHOICES: Mapping[str, Sequence[str]] = {
    "form": f.FORMS,
    "names": (f.NAMES_RUNTIME_ID, f.NAMES_JOB),
    "status": (f.STATUS_V1ALPHA1, f.STATUS_V1),
    "fails_by": (f.FAILS_BY_CHIEF, f.FAILS_BY_ANY),
    "environment_in": ("named", "all"),
}
_CODES = re.compile(r"^(\d{1,3})(?:-(\d{1,3}))?$")


def framework(declared: Mapping[str, Any], environment: f.Environment | None = None) -> f.Framework:
    """Build the framework.

    ``declared`` is the role's data, see the documentation of ``dljob.operator.reconcile``. ``environment`` is the
    filter that it names, already looked up; without one the declared mapping of variables, if any, is filled in.
    """
    unknown = sorted(set(declared) - _KEYS)
    if unknown:
        raise InvalidFramework(f"unknown key {unknown[0]!r} in the framework; there are: {', '.join(sorted(_KEYS))}")
    for key in ("name", "container", "replica_types", "dialects"):
        if not declared.get(key):
            raise InvalidFramework(f"the framework lacks {key!r}")
    types = tuple(_replica_type(name, bounds or {}) for name, bounds in declared["replica_types"].items())
    names = [t.name for t in types]
    chief = tuple(declared.get("chief") or names[:1])
    strangers = [c for c in chief if c not in names]
    if strangers:
        raise InvalidFramework(f"chief {strangers[0]!r} is no replica type; there are: {', '.join(names)}")
    return f.Framework(
        name=declared["name"],
        kinds=tuple(declared.get("kinds") or ()),
        container=declared["container"],
        replica_types=types,
        chief=chief,
        succeeds_by=_choice("succeeds_by", declared.get("succeeds_by", "chief"), ("chief", "all")),
        modes={MODE_LOCAL: MODE_LOCAL, MODE_DISTRIBUTED: MODE_DISTRIBUTED, **(declared.get("modes") or {})},
        dialects=tuple(_dialect(d) for d in declared["dialects"]),
        environment=environment or _declared_environment(declared.get("environment") or {}),
    )


def _replica_type(name: str, bounds: Mapping[str, Any]) -> f.ReplicaType:
    unknown = sorted(set(bounds) - {"minimum", "maximum"})
    if unknown:
        raise InvalidFramework(f"unknown key {unknown[0]!r} of replica type {name}; there are: minimum, maximum")
    return f.ReplicaType(name, int(bounds.get("minimum", 0)), bounds.get("maximum"))


def _dialect(declared: Mapping[str, Any]) -> f.Dialect:
    known = {field.name for field in fields(f.Dialect)}
    unknown = sorted(set(declared) - known)
    if unknown:
        raise InvalidFramework(f"unknown key {unknown[0]!r} of a dialect; there are: {', '.join(sorted(known))}")
    for key in ("groups", "form", "replicas_fields"):
        if not declared.get(key):
            raise InvalidFramework(f"a dialect lacks {key!r}")
    values = dict(declared)
    for key, choices in _CHOICES.items():
        if key in values:
            _choice(key, values[key], choices)
    for key in ("groups", "replicas_fields", "port_fields"):
        if key in values:
            values[key] = tuple(values[key])
    if "exit_codes" in values:
        values["exit_codes"] = _exit_codes(values["exit_codes"])
    return f.Dialect(**values)


def _choice(key: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidFramework(f"{key}: {value!r} is none of {', '.join(choices)}")
    return value


def _exit_codes(declared: Mapping[str, Any]) -> f.ExitCodes:
    """``{"retryable": ["130", "137-138"], "oom_retryable": false}``."""
    codes: set[int] = set()
    for item in declared.get("retryable") or ():
        match = _CODES.match(str(item))
        if not match:
            raise InvalidFramework(f"exit_codes.retryable: {item!r} is neither a code nor a range like 128-255")
        first = int(match.group(1))
        codes.update(range(first, int(match.group(2) or first) + 1))
    return f.ExitCodes(frozenset(codes), bool(declared.get("oom_retryable", False)))


def _declared_environment(variables: Mapping[str, Any]) -> f.Environment:
    """An environment that needs no computing: fixed texts with placeholders."""

    def environment(cluster: Mapping[str, Any]) -> Mapping[str, str]:
        values = placeholders(cluster)
        return {name: fill(str(text), values) for name, text in variables.items()}

    return environment
