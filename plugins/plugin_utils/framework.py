"""Loads a framework from its role's declaration and looks up the filters that the declaration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible.plugins.loader import filter_loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework

_ROLES = Path(__file__).resolve().parents[2] / "roles"


def build_framework(declared: Mapping[str, Any], read: loader.Read) -> Framework:
    """Build the framework and look up the filters of its hooks; raises :class:`InvalidFramework`."""
    hooks = declared.get("hooks")
    named = hooks if isinstance(hooks, Mapping) else {}
    filters = {hook: _filter(hook, name) for hook, name in named.items() if isinstance(name, str)}
    return loader.framework(declared, filters, read)


def _filter(hook: str, name: str) -> Any:
    """Look up the filter ``name`` in collections and in the role's own ``filter_plugins``."""
    try:
        found = filter_loader.get(name)
    except KeyError:  # the collection is missing
        found = None
    if found is None:
        raise InvalidFramework(f"hooks.{hook}: there is no filter {name!r}; give its fully qualified name")
    return found.j2_function


def declaration_of(role: str) -> Mapping[str, Any]:
    """The declaration of a role of this collection; raises :class:`InvalidFramework` where there is no such role."""
    files = {path.parents[1].name: path for path in _ROLES.glob("*/vars/main.yml")}
    if role not in files:
        known = ", ".join(sorted(files))
        raise InvalidFramework(f"there is no role {role!r} with a framework; give its declaration, or one of {known}")
    return _declaration(files[role].parents[1])


def build_frameworks(folders: Sequence[str]) -> dict[str, Framework]:
    """All frameworks for DLJobs, by name: those of this collection, and those of the roles in ``folders``.

    A folder is that of a role, or one with such folders. A role may have no kind of its own; filters of its hooks may
    be in its ``filter_plugins``. Raises :class:`InvalidFramework`.
    """
    found: dict[str, Framework] = {}
    places: dict[str, Path] = {}
    for role in (*_roles_in(_ROLES), *(role for folder in folders for role in _roles_of(Path(folder)))):
        try:
            declared = any_framework.declared_for_any(_declaration(role))
            if (role / "filter_plugins").is_dir():
                filter_loader.add_directory(str(role / "filter_plugins"))
            built = any_framework.adapt(build_framework(declared, _reader(role)))
        except InvalidFramework as e:
            raise InvalidFramework(f"{role}: {e}") from e
        if built.name in found:
            raise InvalidFramework(
                f"{role}: {places[built.name]} declares the framework {built.name!r} too: rename one"
            )
        found[built.name], places[built.name] = built, role
    return found


def _roles_in(folder: Path) -> list[Path]:
    return sorted(path.parents[1] for path in folder.glob("*/vars/main.yml"))


def _roles_of(folder: Path) -> Iterator[Path]:
    if (folder / "vars" / "main.yml").is_file():
        yield folder.resolve()
        return
    roles = _roles_in(folder)
    if not roles:
        raise InvalidFramework(f"{folder} has no role with vars/main.yml: name the folder of a role, or one with roles")
    yield from roles


def _declaration(role: Path) -> Mapping[str, Any]:
    """What ``vars/main.yml`` of the folder declares. It is not templated."""
    variable = f"{role.name}_framework"
    try:
        variables = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as e:
        raise InvalidFramework(f"vars/main.yml: {e}") from e
    if not isinstance(variables, dict) or not isinstance(variables.get(variable), dict):
        raise InvalidFramework(f"vars/main.yml: the variable {variable} is missing: declare the framework in it")
    return dict(variables[variable])


def _reader(role: Path) -> loader.Read:
    def read(name: str) -> str:
        try:
            return (role / "files" / name).read_text(encoding="utf-8")
        except OSError as e:
            raise InvalidFramework(f"the file {name!r}: {e}") from e

    return read
