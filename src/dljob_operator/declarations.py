"""The frameworks that the roles of the installed collection declare, for commands that run no Ansible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared import names

_COLLECTION = Path(names.__file__).resolve().parents[3]


def declarations() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folder and the declaration of each role that declares a framework, by name."""
    for path in sorted((_COLLECTION / "roles").glob("*/vars/main.yml")):
        role = path.parents[1]
        yield role, yaml.safe_load(path.read_text(encoding="utf-8"))[f"{role.name}_framework"]
