"""The frameworks of the installed collection with their hooks, which validate jobs and name the objects they own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import declaration, loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.preflight import GROUP, Served

from dljob_operator.declarations import declarations

_FILTERS = "ansible_collections.dljob.operator.plugins.filter"


def load() -> dict[str, Served]:
    """Load the kinds of training-operator's API group, by name."""
    found: dict[str, Served] = {}
    for role, declared in declarations():
        kinds = [kind for kind in declaration.kinds(declared) if kind.group == GROUP]
        if kinds:
            framework = loader.framework(declared, _hooks(declared.get("hooks") or {}), _reader(role))
            found |= {kind.name: Served(kind, framework) for kind in kinds}
    return found


def _hooks(declared: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Look up the filters in their modules. Ansible's loader would look in collections that Python has not imported."""
    filters: dict[str, Callable[..., Any]] = {}
    for hook, name in declared.items():
        if isinstance(name, str):
            short = name.rpartition(".")[2]
            module = importlib.import_module(f"{_FILTERS}.{short}")
            filters[hook] = module.FilterModule().filters()[short]
    return filters


def _reader(role: Path) -> loader.Read:
    return lambda name: (role / "files" / name).read_text(encoding="utf-8")
