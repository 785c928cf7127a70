"""Loads a framework from its role's declaration and looks up the filters that the declaration names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.plugins.loader import filter_loader
from ansible_collections.dljob.operator.plugins.module_utils.logic import framework_loader
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework

_ROLES = Path(__file__).resolve().parents[2] / "roles"


def build_framework(declared: Mapping[str, Any], read: framework_loader.Read) -> Framework:
    """Build the framework and look up the filters of its hooks; raises :class:`InvalidFramework`."""
    hooks = declared.get("hooks")
    named = hooks if isinstance(hooks, Mapping) else {}
    filters = {hook: _filter(hook, name) for hook, name in named.items() if isinstance(name, str)}
    return framework_loader.framework(declared, filters, read)


def _filter(hook: str, name: str) -> Any:
    """Look up the filter ``name`` in collections and in the role's own ``filter_plugins``."""
    found = filter_loader.get(name)
    if found is None:
        raise InvalidFramework(f"hooks.{hook}: there is no filter {name!r}; give its fully qualified name")
    return found.j2_function


def declaration_of(role: str) -> Mapping[str, Any]:
    """The declaration of a role of this collection; raises :class:`InvalidFramework` where there is no such role."""
    files = {path.parents[1].name: path for path in _ROLES.glob("*/vars/main.yml")}
    if role not in files:
        known = ", ".join(sorted(files))
        raise InvalidFramework(f"there is no role {role!r} with a framework; give its declaration, or one of {known}")
    declared = yaml.safe_load(files[role].read_text(encoding="utf-8"))[f"{role}_framework"]
    return dict(declared)
