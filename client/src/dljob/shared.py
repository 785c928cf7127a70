"""The operator's modules that the client uses too: copies in the built package, else those of the operator itself.

An editable installation has them beside it in the source tree. The operator's image has both programs, and no copies.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

_COLLECTION = "ansible_collections.dljob.operator."
PROXIES = f"{_COLLECTION}plugins.module_utils.shared.proxies"
MANIFEST_READER = f"{_COLLECTION}plugins.module_utils.shared.manifest_yaml"
MANIFEST_WRITER = "dljob_operator.manifest_yaml"
_TREE = (Path(__file__).parent / "../../..").resolve()


@cache
def module(name: str) -> ModuleType:
    """One of the modules above. Raises ModuleNotFoundError."""
    if (copied := copy_of(name)) is not None:
        return copied
    short = name.removeprefix(_COLLECTION)
    for folder in (_TREE, _TREE / "src"):
        path = folder / f"{short.replace('.', '/')}.py"
        if path.is_file():
            return _loaded(f"dljob.shared.{short}", path)
    return importlib.import_module(name)


def copy_of(name: str) -> ModuleType | None:
    """The copy of a module in the built package, by `client/vendored.py`; ``None`` where it has none.

    Raises ModuleNotFoundError for what the copy imports.
    """
    copied = f"dljob.vendored.{name.removeprefix(_COLLECTION)}"
    try:
        return importlib.import_module(copied)
    except ModuleNotFoundError as e:
        if not f"{copied}.".startswith(f"{e.name}."):
            raise
    return None


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{path} cannot be loaded", name=name)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made  # where dataclasses look their annotations up
    spec.loader.exec_module(made)
    return made
