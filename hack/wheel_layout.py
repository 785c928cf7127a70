"""The wheel's layout: the engine, and the collection as ``ansible_collections/dljob/operator``.

Ansible searches Python's path for collections, so it finds this one in any environment with the wheel.
pyproject.toml names this file and lists what belongs to the collection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "ansible_collections/dljob/operator"


class CollectionHook(BuildHookInterface[Any]):
    """hatchling calls this hook for each target that it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the collection; ``version`` is "editable" for an installation that is a link to the source tree."""
        root = Path(self.root)
        if self.target_name == "sdist":  # the sdist keeps the repository's layout, because the wheel is built from it
            here = Path(__file__).resolve().relative_to(root)
            names = [*self.config["collection"], self.metadata.hatch.config["version"]["path"], str(here)]
            build_data["force_include"] |= {str(root / name): name for name in names}
        elif version != "editable":
            build_data["force_include"] |= {str(root / name): f"{PLACE}/{name}" for name in self.config["collection"]}
