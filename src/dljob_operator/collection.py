"""Check that Python finds the collection, whose `shared` package has what the engine and the collection both use.

It searches the path instead of importing: in the fork server Ansible must load the collection's packages itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SHARED = Path("ansible_collections", "dljob", "operator", "plugins", "module_utils", "shared")


def require(python_path: Iterable[str]) -> None:
    """Raise ImportError with the fix if no folder of `python_path` has the collection dljob.operator."""
    if not any((Path(folder) / SHARED).is_dir() for folder in python_path):
        raise ImportError(
            "dljob_operator needs the collection dljob.operator of the same version on Python's path: install the "
            "dljob-operator wheel, or add the folder that contains ansible_collections to PYTHONPATH"
        )
