"""A framework for the generator: its declaration, checked by the reconcile's own loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import checks, declaration, loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.declaration import AFFECTS, Kind
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, ReplicaType

_HOOKS = "hooks"
"""The filters, which a reconcile looks up and calls; nothing is generated from them."""
_RULE_KEYS = frozenset({"rule", "message", "messageExpression", "fieldPath", "reason", "optionalOldSelf"})

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Own:
    """What a framework or a flavor declares of the CRD's spec itself."""

    fields: Mapping[str, Schema]
    rules: Sequence[Mapping[str, Any]]
    expressions: Mapping[str, str]
    """Parts of CEL expressions by name."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor of one API group."""

    api: ApiFlavor
    types: Sequence[ReplicaType]
    own: Own
    modes: Mapping[str, str]
    """Values of spec.jobMode, each with its meaning; empty where the flavor has no such field."""
    default_type: str
    template_optional: Sequence[str]
    replica_fields: Mapping[str, Mapping[str, Schema]]
    most_replicas: int
    """The largest number of replicas of a type with which a job can start."""

    @property
    def group(self) -> str:
        return self.api.groups[0]

    @property
    def is_bare(self) -> bool:
        """Whether the spec itself is the list of replicas, so that it has no other fields."""
        return self.api.replicas_fields == ("",)

    @property
    def local_modes(self) -> list[str]:
        return [spelling for spelling, mode in self.modes.items() if mode == MODE_LOCAL]

    def added_fields(self) -> dict[str, Schema]:
        """The fields that the flavor adds to an entry of replicas."""
        return {name: schema for added in self.replica_fields.values() for name, schema in added.items()}

    def least(self, type_: ReplicaType) -> int:
        """The minimum number of replicas of a type in a job that is not local."""
        return max(type_.minimum, int(type_.name in self.api.required))


@dataclass(frozen=True, slots=True)
class Framework:
    name: str
    """The name of the role."""
    title: str
    description: str
    container: str
    success_target: Sequence[str]
    succeeds_by: str
    kinds: Sequence[Kind]
    flavors: Sequence[Flavor]
    own: Own
    permissions: Sequence[Mapping[str, Any]]
    """RBAC rules that only this framework needs; with the key ``component``, in another component than the others."""
    owns: Sequence[str]
    """The kinds of objects that its hook may return."""

    def flavors_of(self, kind: Kind, version: str = "") -> list[Flavor]:
        """The flavors of a kind's jobs; with ``version``, of those that are created in that version."""
        return [
            flavor
            for flavor in self.flavors
            if flavor.group == kind.group and (not version or flavor.api.version in ("", version))
        ]


def read(role: Path) -> Framework:
    """The framework of a role; raises :class:`InvalidFramework`, with the file."""
    path = role / "vars" / "main.yml"
    variable = f"{role.name}_framework"
    try:
        variables = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(variables, dict) or not isinstance(variables.get(variable), dict):
            raise InvalidFramework(f"the variable {variable} is missing: declare the framework in it")
        return framework(role.name, variables[variable])
    except (OSError, yaml.YAMLError, InvalidFramework) as e:
        raise InvalidFramework(f"{path}: {e}") from None


def framework(role: str, declared: Mapping[str, Any]) -> Framework:
    """The framework of a declaration; raises :class:`InvalidFramework`."""
    loaded = loader.framework({key: value for key, value in declared.items() if key != _HOOKS}, read=lambda name: name)
    kinds = declaration.kinds(declared)
    for number, kind in enumerate(kinds):
        if not kind.group:
            raise InvalidFramework(
                f"kinds[{number}]: write it as {{group, kind, versions}}, from which a CRD is generated"
            )
    if not kinds:
        raise InvalidFramework("the framework lacks 'kinds', from which the CRDs are generated")
    title = checks.text("title", declared.get("title") or declared["name"])
    expanded = declaration.flavors(declared, kinds)
    return Framework(
        name=role,
        title=title,
        description=checks.text("description", declared.get("description") or f"A {title} training job."),
        container=loaded.container,
        success_target=loaded.success_target,
        succeeds_by=loaded.succeeds_by,
        kinds=kinds,
        flavors=[
            _flavor(given, api, loaded.replica_types, declared)
            for given, api in zip(expanded, loaded.flavors, strict=True)
        ],
        own=_own("", declared),
        permissions=[checks.mapping(f"permissions[{n}]", p) for n, p in enumerate(declared.get("permissions") or ())],
        owns=loaded.owns,
    )


def _flavor(
    given: declaration.Flavor, api: ApiFlavor, every: Sequence[ReplicaType], declared: Mapping[str, Any]
) -> Flavor:
    types = [type_ for type_ in every if type_.name in (api.types or (type_.name,))]
    names = [type_.name for type_ in types]
    keys, path = given.keys, given.path
    default = keys.get("default_type") or ""
    if default:
        checks.choice(f"{path}.default_type", default, names)
    optional = checks.texts(f"{path}.template_optional", keys.get("template_optional") or ())
    added = checks.mapping(f"{path}.replica_fields", keys.get("replica_fields") or {})
    for where, listed in (("template_optional", optional), ("replica_fields", added)):
        for name in listed:
            checks.choice(f"{path}.{where}", name, names)
    # where the flavor is the declaration itself, its fields and rules are the framework's
    own = _own(f"{path}.", keys if "flavors" in declared else {})
    modes = {**(declared.get("modes") or {}), **(keys.get("modes") or {})}
    return Flavor(api, types, own, modes, default, optional, added, _most_replicas(path, keys))


def _most_replicas(path: str, keys: Mapping[str, Any]) -> int:
    most = keys.get("most_replicas", MAX_REPLICAS)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_REPLICAS:
        raise InvalidFramework(f"{path}.most_replicas is {most!r}: write a number from 1 to {MAX_REPLICAS}")
    return most


def _own(where: str, place: Mapping[str, Any]) -> Own:
    fields = checks.mapping(f"{where}fields", place.get("fields") or {})
    rules = checks.sequence(f"{where}rules", place.get("rules") or ())
    for number, rule in enumerate(rules):
        path = f"{where}rules[{number}]"
        checks.known(path, checks.mapping(path, rule), _RULE_KEYS)
        if not rule.get("rule"):
            raise InvalidFramework(f"{path} lacks 'rule'")
        if bool(rule.get("message")) == bool(rule.get("messageExpression")):
            raise InvalidFramework(f"{path} needs a message or a messageExpression, and not both")
    return Own(
        {name: {key: v for key, v in schema.items() if key != AFFECTS} for name, schema in fields.items()},
        rules,
        checks.mapping(f"{where}expressions", place.get("expressions") or {}),
    )
