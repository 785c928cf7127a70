"""Expands a role's declaration: families, flavors at the top level, groups of kinds, placeholders known statically.

The loader builds the framework from the result, and hack/devtools/build/generate the CRDs and everything else that
follows from a declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import checks
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.families import FAMILIES
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor

AFFECTS = "x-dljob-affects"
"""Key of a field's schema: what depends on the field. It is not part of the CRD."""
AFFECTS_PODS = "pods"
"""The default: the hooks get the field, and a change restarts all replicas."""
AFFECTS_OBJECTS = "objects"
"""The hooks get the field, and a change restarts no replica by itself."""
AFFECTS_NOTHING = "nothing"
"""The hooks do not get the field."""

_SCHEMA_KEYS = frozenset({"default_type", "most_replicas"})
"""Keys of a flavor that only the generator reads."""
SHARED_KEYS = frozenset({"expressions", "fields", "modes", "rules"})
"""Keys of a flavor that apply to all flavors where they are at the top level."""
_DERIVED_KEYS = frozenset({"spec_fields", "object_fields"})
"""Fields of :class:`ApiFlavor` that follow from ``fields``."""
FLAVOR_KEYS = (
    frozenset(field.name for field in fields(ApiFlavor)) - _DERIVED_KEYS | _SCHEMA_KEYS | SHARED_KEYS | {"extends"}
)
TEXT_KEYS = frozenset({"title", "description"})
"""Texts for people, which only the generator reads."""
_KIND_KEYS = ("group", "kind", "versions", "short_names", "scale")
_STATIC = re.compile(r"\{(group|kind_lower)\}")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of one API group, and so a CRD. Without a group it is the name of a kind in any group, without a CRD."""

    name: str
    group: str = ""
    versions: tuple[str, ...] = ()
    """The served versions; objects are stored in the first."""
    short_names: tuple[str, ...] = ()
    scale: str = ""
    """The replica type that `kubectl scale` and an autoscaler change; "" where there is none."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor of one API group: its keys, with those of its family and the shared ones."""

    path: str
    """Where the declaration has it, for messages."""
    keys: Mapping[str, Any]


def kinds(declared: Mapping[str, Any]) -> tuple[Kind, ...]:
    """The kinds of a declaration. Raises :class:`InvalidFramework`."""
    found = tuple(
        _kind(f"kinds[{number}]", given)
        for number, given in enumerate(checks.sequence("kinds", declared.get("kinds") or ()))
    )
    names = [(kind.group, kind.name) for kind in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidFramework(f"kinds: {name[1]} occurs twice; list all its versions in one entry")
    return found


def _kind(where: str, given: Any) -> Kind:
    if isinstance(given, str):
        return Kind(given)
    declared = checks.mapping(where, given)
    checks.known(where, declared, _KIND_KEYS)
    for key in ("group", "kind", "versions"):
        if not declared.get(key):
            raise InvalidFramework(f"{where} lacks {key!r}")
    return Kind(
        name=checks.text(f"{where}.kind", declared["kind"]),
        group=checks.text(f"{where}.group", declared["group"]),
        versions=checks.texts(f"{where}.versions", declared["versions"]),
        short_names=checks.texts(f"{where}.short_names", declared.get("short_names") or ()),
        scale=checks.text(f"{where}.scale", declared.get("scale") or ""),
    )


def flavors(declared: Mapping[str, Any], of: Sequence[Kind]) -> list[Flavor]:
    """The flavors of a declaration with the kinds ``of``, one per API group. Raises :class:`InvalidFramework`.

    Besides the documented keys a flavor has ``spec_fields`` and ``object_fields``, the names of the fields for hooks.
    """
    return [
        flavor
        for path, given in _written(declared)
        for flavor in _by_group(path, _with_family(path, given), declared, of)
    ]


def _written(declared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The path and the keys of each flavor, as the declaration has them."""
    if "flavors" not in declared:
        yield "framework", {key: value for key, value in declared.items() if key in FLAVOR_KEYS - SHARED_KEYS}
        return
    misplaced = sorted(set(declared) & (FLAVOR_KEYS - SHARED_KEYS))
    if misplaced:
        raise InvalidFramework(f"the framework has flavors: move {misplaced[0]!r} into each flavor that it is about")
    if not isinstance(declared["flavors"], (list, tuple)):
        raise InvalidFramework("flavors must be a list")
    for number, given in enumerate(declared["flavors"]):
        path = f"flavors[{number}]"
        checks.known(path, checks.mapping(path, given), FLAVOR_KEYS)
        yield path, given


def _with_family(path: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The flavor with the keys of the family that it extends. Its own keys replace them, but labels are added; one that
    is null removes the family's."""
    if "extends" not in given:
        return given
    base = FAMILIES[checks.choice(f"{path}.extends", given["extends"], sorted(FAMILIES))]
    own = {key: value for key, value in given.items() if key != "extends"}
    labels = checks.mapping(f"{path}.labels", own.get("labels") or {})
    merged = {**base["labels"], **labels}
    return {**base, **own, "labels": {name: text for name, text in merged.items() if text is not None}}


def _by_group(path: str, given: Mapping[str, Any], declared: Mapping[str, Any], of: Sequence[Kind]) -> Iterator[Flavor]:
    every = list(dict.fromkeys(kind.group for kind in of if kind.group))
    groups = checks.texts(f"{path}.groups", given.get("groups") or every)
    if not groups:
        raise InvalidFramework(f"{path} lacks 'groups': name the API groups there, or give each of kinds its group")
    checks.sequence("rules", declared.get("rules") or ())
    checks.sequence(f"{path}.rules", given.get("rules") or ())
    passed = _passed_fields(path, given, declared)
    for group in groups:
        names = {kind.name.lower() for kind in of if kind.group in ("", group)}
        static = {"group": group, **({"kind_lower": names.pop()} if len(names) == 1 else {})}
        yield Flavor(path, {**given, **_filled(path, given, static), "groups": [group], **passed})


def _passed_fields(path: str, given: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the fields that the hooks get, by what depends on them."""
    by_effect: dict[str, list[str]] = {AFFECTS_PODS: [], AFFECTS_OBJECTS: [], AFFECTS_NOTHING: []}
    for where, place in (("fields", declared), (f"{path}.fields", given)):
        for name, schema in checks.mapping(where, place.get("fields") or {}).items():
            effect = checks.mapping(f"{where}.{name}", schema).get(AFFECTS, AFFECTS_PODS)
            by_effect[checks.choice(f"{where}.{name}.{AFFECTS}", effect, list(by_effect))].append(name)
    return {"spec_fields": by_effect[AFFECTS_PODS], "object_fields": by_effect[AFFECTS_OBJECTS]}


def _filled(path: str, given: Mapping[str, Any], values: Mapping[str, str]) -> Mapping[str, Any]:
    """The keys whose texts may have placeholders that are known statically."""

    def fill(text: Any) -> Any:
        return _STATIC.sub(lambda m: values.get(m[1], m[0]), text) if isinstance(text, str) else text

    def settled(key: str, text: Any) -> Any:
        """A text that is not filled in for each replica."""
        filled = fill(text)
        if isinstance(filled, str) and _STATIC.search(filled):
            raise InvalidFramework(
                f"{path}.{key}: {text!r} needs one kind in the group {values['group']}; write it out"
            )
        return filled

    labels = checks.mapping(f"{path}.labels", given.get("labels") or {})
    filled: dict[str, Any] = {"labels": {settled("labels", name): fill(text) for name, text in labels.items()}}
    if "port_name" in given:
        filled["port_name"] = settled("port_name", given["port_name"])
    return filled
