"""Builds a :class:`Framework` from a role's declaration, with errors that name what the role's author has to fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import declaration
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import choice as _choice
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import known as _known
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import mapping as _mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import sequence as _sequence
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import text as _text
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.checks import texts as _texts
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    PLACEHOLDERS,
    placeholders,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import DECLARABLE
from ansible_collections.dljob.operator.plugins.module_utils.values import framework as f
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import GRPC_SERVER_FILE
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    MODE_DISTRIBUTED,
    MODE_LOCAL,
    RESTART_POLICIES,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

_KEYS = frozenset(
    {
        *("name", "kinds", "container", "replica_types", "success_target", "succeeds_by", "modes"),
        *("hooks", "tuning_variables", "owns", "files", "operator_files", "permissions", "flavors"),
        *declaration.TEXT_KEYS,
        *declaration.SHARED_KEYS,
    }
)
_CHOICES: Mapping[str, Sequence[str]] = {
    "replicas_layout": f.LAYOUTS,
    "names": (f.NAMES_RUNTIME_ID, f.NAMES_JOB),
    "service": (f.SERVICE_RUNTIME_ID, f.SERVICE_JOB),
    "status": (f.STATUS_V1ALPHA1, f.STATUS_V1),
    "host_port": (f.HOST_PORT_DEFAULT, f.HOST_PORT_JOB),
    "fails_by": (f.FAILS_BY_TARGET, f.FAILS_BY_ANY),
    "environment_in": ("named", "all"),
}
_TEXTS = (
    *("groups", "replicas_fields", "port_fields", "types", "required", "runtime_id_fields", "spec_fields"),
    *("object_fields", "template_optional", "restart_policies", "running_keeps", "managers", "batch_jobs"),
    *("starts_in_order", "waits_in_pod", "succeeds_together"),
)
"""The keys of a flavor that are lists of texts."""
_OF_TYPES = (
    *("types", "required", "template_optional", "replica_fields", "batch_jobs", "starts_in_order", "waits_in_pod"),
    *("succeeds_together", "default_restart_policies"),
)
"""The keys of a flavor that name replica types."""
HOOKS = ("validate", "environment", "pod", "objects")
Read = Callable[[str], str]
"""Reads a file of the role: file name to text."""
_CODES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def _no_files(name: str) -> str:
    raise InvalidFramework(f"the declaration names the file {name!r}, and no reader was given")


def framework(
    declared: Mapping[str, Any],
    filters: Mapping[str, Callable[..., Any]] | None = None,
    read: Read = _no_files,
) -> f.Framework:
    """Build the framework; raises :class:`InvalidFramework`.

    ``declared`` is the role's declaration, see the documentation of ``dljob.operator.reconcile``. ``filters`` has, by
    hook, the filters that its ``hooks`` name, which the caller has looked up. Without an environment filter, the
    declared mapping of variables is used. ``read`` returns the text of a file of the role.
    """
    _known("the framework", declared, _KEYS | declaration.FLAVOR_KEYS)
    for key in ("name", "container", "replica_types", "flavors"):
        if not declared.get(key, key == "flavors"):
            raise InvalidFramework(f"the framework lacks {key!r}")
    bounds = _mapping("replica_types", declared["replica_types"])
    types = tuple(_replica_type(name, _mapping(f"replica_types.{name}", b or {})) for name, b in bounds.items())
    _check_start_order(types)
    names = [t.name for t in types]
    targets = _texts("success_target", declared.get("success_target") or names[:1])
    for name in targets:
        _choice("success_target", name, names)
    kinds = declaration.kinds(declared)
    flavors = declaration.flavors(declared, kinds)
    owns = _owns(declared.get("owns") or ())
    _sequence("permissions", declared.get("permissions") or ())
    return f.Framework(
        name=declared["name"],
        kinds=tuple(dict.fromkeys(kind.name for kind in kinds)),
        container=declared["container"],
        replica_types=types,
        success_target=targets,
        succeeds_by=_choice(
            "succeeds_by", declared.get("succeeds_by", f.SUCCEEDS_BY_TARGET), (f.SUCCEEDS_BY_TARGET, f.SUCCEEDS_BY_ALL)
        ),
        modes=_modes([("modes", declared), *((f"{flavor.path}.modes", flavor.keys) for flavor in flavors)]),
        flavors=_flavors(flavors, types, owns),
        hooks=_hooks(_mapping("hooks", declared.get("hooks") or {}), filters or {}),
        owns=owns,
        tuning_variables=_tuning_variables(declared),
        files={name: read(name) for name in _texts("files", declared.get("files") or ())},
        operator_files=_operator_files(_mapping("operator_files", declared.get("operator_files") or {})),
    )


def _hooks(declared: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> f.Hooks:
    _known("hooks", declared, HOOKS)
    for name in HOOKS:
        if declared.get(name) and name not in filters and name != "environment":
            raise InvalidFramework(f"hooks.{name} must be the full name of a filter, not {declared[name]!r}")
    found: dict[str, Any] = {name: filters[name] for name in HOOKS if name in filters}
    if "environment" not in found:
        found["environment"] = _declared_environment(_mapping("hooks.environment", declared.get("environment") or {}))
    return f.Hooks(**found)


def _tuning_variables(declared: Mapping[str, Any]) -> frozenset[str]:
    """The declared names; of a declared environment each must be one of its variables."""
    names = _texts("tuning_variables", declared.get("tuning_variables") or ())
    variables = (declared.get("hooks") or {}).get("environment")
    if isinstance(variables, Mapping):
        for name in names:
            _choice("tuning_variables", name, list(variables))
    return frozenset(names)


def _owns(declared: Any) -> tuple[str, ...]:
    kinds = _texts("owns", declared)
    for kind in kinds:
        _choice("owns", kind, list(DECLARABLE))
    return kinds


def _operator_files(declared: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: _choice(f"operator_files.{key}", setting, (GRPC_SERVER_FILE,)) for key, setting in declared.items()}


def _replica_type(name: str, bounds: Mapping[str, Any]) -> f.ReplicaType:
    where = f"replica_types.{name}"
    _known(where, bounds, [field.name for field in fields(f.ReplicaType) if field.name != "name"])
    least, most = bounds.get("minimum", 0), bounds.get("maximum")
    expected = bounds.get("expected_maximum")
    for key, value in (("minimum", least), ("maximum", most), ("expected_maximum", expected)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InvalidFramework(f"{where}.{key}: {value!r} is not a number of replicas")
    if most is not None and least > most:
        raise InvalidFramework(f"{where}: the minimum {least} is above the maximum {most}")
    for key in ("long_running", "coordinates", "hides_losses", "indexed", "resizable"):
        if not isinstance(bounds.get(key, False), bool):
            raise InvalidFramework(f"{where}.{key}: {bounds[key]!r} is neither true nor false")
    after = _mapping(f"{where}.starts_after", bounds.get("starts_after") or {})
    for type_, state in after.items():
        _choice(f"{where}.starts_after.{type_}", state, (f.AFTER_READY, f.AFTER_COMPLETED))
    asked = _mapping(f"{where}.starts_after_if", bounds.get("starts_after_if") or {})
    for field_name, value in asked.items():
        _text(f"{where}.starts_after_if.{field_name}", value)
    if asked and not after:
        raise InvalidFramework(f"{where}.starts_after_if is of no effect without starts_after: add it there")
    if not bounds.get("indexed", True) and most != 1:
        raise InvalidFramework(f"{where}: without an index there is one replica: give the type a maximum of 1")
    return f.ReplicaType(
        name=name,
        minimum=least,
        maximum=most,
        expected_maximum=expected,
        long_running=bounds.get("long_running", False),
        coordinates=bounds.get("coordinates", False),
        hides_losses=bounds.get("hides_losses", False),
        starts_after=after,
        starts_after_if=asked,
        indexed=bounds.get("indexed", True),
        resizable=bounds.get("resizable", False),
    )


def _check_start_order(types: Sequence[f.ReplicaType]) -> None:
    """Check that the types can be started one after the other."""
    before = {type_.name: set(type_.starts_after) for type_ in types}
    for name, others in before.items():
        for other in others:
            _choice(f"replica_types.{name}.starts_after", other, tuple(before))
    while free := [name for name, others in before.items() if not others]:
        before = {name: others - set(free) for name, others in before.items() if name not in free}
    if before:
        raise InvalidFramework(f"starts_after: {', '.join(sorted(before))} wait for one another; remove one of them")


def _modes(places: Iterable[tuple[str, Mapping[str, Any]]]) -> Mapping[str, str]:
    """The modes of the framework and of its flavors."""
    modes = {MODE_LOCAL: MODE_LOCAL, MODE_DISTRIBUTED: MODE_DISTRIBUTED}
    for where, place in places:
        for spelling, mode in _mapping(where, place.get("modes") or {}).items():
            modes[spelling] = _choice(f"{where}.{spelling}", mode, (MODE_LOCAL, MODE_DISTRIBUTED))
    return modes


def _flavors(
    declared: Sequence[declaration.Flavor], types: Sequence[f.ReplicaType], owns: Sequence[str]
) -> tuple[f.ApiFlavor, ...]:
    names = [type_.name for type_ in types]
    found = tuple(_flavor(flavor.keys, flavor.path, names) for flavor in declared)
    unindexed = [type_.name for type_ in types if not type_.indexed]
    for flavor, given in zip(found, declared, strict=True):
        for name in flavor.batch_jobs:
            if name not in unindexed:
                raise InvalidFramework(
                    f"{given.path}.batch_jobs: a batch Job runs one replica, {name}: set its indexed to false"
                )
        if flavor.batch_jobs and "Job" not in owns:
            raise InvalidFramework(f"{given.path}.batch_jobs: add Job to owns")
        for kind in flavor.running_keeps:
            _choice(f"{given.path}.running_keeps", kind, tuple(dict.fromkeys(("Service", "ConfigMap", *owns))))
    return found


def _flavor(declared: Mapping[str, Any], where: str, types: Sequence[str]) -> f.ApiFlavor:
    for key in ("replicas_layout", "replicas_fields"):
        if not declared.get(key):
            raise InvalidFramework(f"{where} lacks {key!r}")
    values = {field.name: declared[field.name] for field in fields(f.ApiFlavor) if field.name in declared}
    for key, choices in _CHOICES.items():
        if key in values:
            _choice(f"{where}.{key}", values[key], choices)
    for key in _TEXTS:
        if key in values:
            values[key] = _texts(f"{where}.{key}", values[key])
    for policy in values.get("restart_policies") or ():
        _choice(f"{where}.restart_policies", policy, RESTART_POLICIES)
    if not values.get("runtime_id_fields", True):
        raise InvalidFramework(f"{where}.runtime_id_fields is empty: messages need a name for it")
    values["replica_fields"] = {
        name: tuple(_mapping(f"{where}.replica_fields.{name}", given))
        for name, given in _mapping(f"{where}.replica_fields", values.get("replica_fields") or {}).items()
    }
    values["default_restart_policies"] = _mapping(
        f"{where}.default_restart_policies", values.get("default_restart_policies") or {}
    )
    for name, policy in values["default_restart_policies"].items():
        _choice(f"{where}.default_restart_policies.{name}", policy, RESTART_POLICIES)
    values["version"] = _text(f"{where}.version", values.get("version") or "")
    for key in _OF_TYPES:
        for name in values.get(key) or ():
            _choice(f"{where}.{key}", name, types)
    held = values.get("types") or types
    if values["replicas_layout"] == f.LAYOUT_SINGLE and len(held) != 1:
        raise InvalidFramework(f"{where}.replicas_layout: single is for one replica type, not for {', '.join(held)}")
    if "exit_codes" in values:
        values["exit_codes"] = _exit_codes(_mapping(f"{where}.exit_codes", values["exit_codes"]), where)
    values["success_policies"] = _mapping(f"{where}.success_policies", values.get("success_policies") or {})
    for name, type_ in values["success_policies"].items():
        _choice(f"{where}.success_policies.{name}", type_, types)
    if "elastic" in values:
        values["elastic"] = _elastic(values["elastic"], f"{where}.elastic", types)
    values["labels"] = _mapping(f"{where}.labels", values.get("labels") or {})
    for name, text in values["labels"].items():
        _check_placeholders(f"{where}.labels.{name}", text, PLACEHOLDERS | {"role"})
    return f.ApiFlavor(**values)


def _elastic(declared: Any, where: str, types: Sequence[str]) -> f.Elastic:
    given = _mapping(where, declared)
    _known(where, given, [field.name for field in fields(f.Elastic)])
    for key in ("field", "type"):
        if not given.get(key):
            raise InvalidFramework(f"{where} lacks {key!r}")
    return f.Elastic(
        field=_text(f"{where}.field", given["field"]),
        type=_choice(f"{where}.type", given["type"], types),
        when_any=_texts(f"{where}.when_any", given.get("when_any") or ()),
        succeeds_by=_choice(f"{where}.succeeds_by", given.get("succeeds_by", ""), ("", f.SUCCEEDS_BY_ANY)),
    )


def _exit_codes(declared: Mapping[str, Any], where: str) -> f.ExitCodes:
    """``{"retryable": [130, "137-138"], "oom_retryable": false}``."""
    _known(f"{where}.exit_codes", declared, [field.name for field in fields(f.ExitCodes)])
    codes: set[int] = set()
    for item in declared.get("retryable") or ():
        match = _CODES.fullmatch(str(item))
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= 255:
            raise InvalidFramework(f"{where}.exit_codes.retryable: {item!r} is neither a code nor a range like 128-255")
        codes.update(range(first, last + 1))
    return f.ExitCodes(frozenset(codes), bool(declared.get("oom_retryable", False)))


def _declared_environment(variables: Mapping[str, Any]) -> f.Environment:
    """An environment of fixed texts with placeholders."""
    for name, text in variables.items():
        _check_placeholders(f"hooks.environment.{name}", text, PLACEHOLDERS)

    def environment(cluster: Mapping[str, Any]) -> Mapping[str, str]:
        values = placeholders(cluster)
        return {name: fill(str(text), values) for name, text in variables.items()}

    return environment


def _check_placeholders(where: str, text: object, known: Iterable[str]) -> None:
    """Check the placeholders when the framework is loaded, not when the first job is reconciled."""
    try:
        fill(str(text), dict.fromkeys(known, ""))
    except InvalidFramework as e:
        raise InvalidFramework(f"{where}: {e}") from None
