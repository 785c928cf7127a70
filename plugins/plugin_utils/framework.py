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
    """Build the framework and look up its filters; raises :class:`InvalidFramework`."""
    filters = {
        key: _filter(key, declared[key]) for key in ("environment", "validation") if isinstance(declared.get(key), str)
    }
    return framework_loader.framework({k: v for k, v in declared.items() if k not in filters}, read=read, **filters)


def _filter(key: str, name: str) -> Any:
    """Look up the filter ``name`` in collections and in the role's own ``filter_plugins``."""
    found = filter_loader.get(name)
    if found is None:
        raise InvalidFramework(f"{key}: there is no filter {name!r}; give its fully qualified name")
    return found.j2_function


def declaration_of(role: str) -> Mapping[str, Any]:
    """The declaration of a role of this collection; raises :class:`InvalidFramework` where there is no such role."""
    files = {path.parents[1].name: path for path in _ROLES.glob("*/vars/main.yml")}
    if role not in files:
        known = ", ".join(sorted(files))
        raise InvalidFramework(f"there is no role {role!r} with a framework; give its declaration, or one of {known}")
    declared = yaml.safe_load(files[role].read_text(encoding="utf-8"))[f"{role}_framework"]
    return dict(declared)
