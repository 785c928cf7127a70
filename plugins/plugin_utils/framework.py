"""A framework as a role declares it, with the filters that the declaration names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.loader import filter_loader
from ansible_collections.dljob.operator.plugins.module_utils.logic import framework_loader
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework


def build_framework(declared: Mapping[str, Any], read: framework_loader.Read) -> Framework:
    """The framework with the filters it names looked up; raises :class:`InvalidFramework`."""
    filters = {
        key: _filter(key, declared[key]) for key in ("environment", "validation") if isinstance(declared.get(key), str)
    }
    return framework_loader.framework({k: v for k, v in declared.items() if k not in filters}, read=read, **filters)


def _filter(key: str, name: str) -> Any:
    """The filter that ``key`` names, from a collection or from the role's own ``filter_plugins``."""
    found = filter_loader.get(name)
    if found is None:
        raise InvalidFramework(f"{key}: there is no filter {name!r}; give its full name, collection included")
    return found.j2_function
