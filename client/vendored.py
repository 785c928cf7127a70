"""Puts the operator's modules that the client uses into the package, as ``dljob.vendored``.

hatchling runs it at each build, so the repository has them once. They are found by their imports, from those of
``FIRST`` on. They need nothing but PyYAML, and those of the history SQLAlchemy.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "dljob/vendored"
FIRST = (
    "dljob_operator.convert",
    "dljob_operator.history.queries",
    "ansible_collections.dljob.operator.plugins.module_utils.shared.proxies",
)
"""What `dljob convert` is made of, with the YAML of manifests; the queries of `dljob history`; and which server is
behind a proxy."""
PACKAGES = {"dljob_operator": "src/dljob_operator", "ansible_collections.dljob.operator.plugins": "plugins"}
"""The packages of the operator, and their folders in the repository, whose last parts are the names of the copies."""
DATA = "roles/*/vars/main.yml"
"""What ``dljob_operator.declarations`` reads."""
_FROM = re.compile(rf"^( *from )({'|'.join(map(re.escape, PACKAGES))})\b", re.MULTILINE)


class VendoringHook(BuildHookInterface[Any]):
    """hatchling calls this hook for each target that it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the copies, unless this is an editable installation, or an sdist that has them already."""
        root = Path(self.root)
        if version == "editable" or (root / "src" / PLACE).is_dir():
            return
        self._copies = Path(tempfile.mkdtemp())
        write(root.parent, self._copies)
        is_sdist = self.target_name == "sdist"
        build_data["force_include"][str(self._copies)] = f"src/{PLACE}" if is_sdist else PLACE
        if is_sdist:
            build_data["force_include"][__file__] = Path(__file__).name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what has been written."""
        if copies := getattr(self, "_copies", None):
            shutil.rmtree(copies)


def write(repository: Path, into: Path) -> None:
    """Write the copies. Raises FileNotFoundError, and ValueError for an import that cannot be copied."""
    for name, path in sorted(modules(repository).items()):
        copied = _FROM.sub(lambda found: f"{found[1]}{_copy_of(found[2])}", path.read_text(encoding="utf-8"))
        if any(_package(one) for one in _imports(copied)):
            raise ValueError(f"{path}: write the import as `from ... import ...`")
        folder = repository / PACKAGES[_package(name)]
        to = into / folder.name / path.relative_to(folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        origin = path.relative_to(repository).as_posix()
        to.write_text(f"# A copy of {origin} of dljob-operator.\n{copied}", encoding="utf-8")
    for path in repository.glob(DATA):
        to = into / path.relative_to(repository)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def modules(repository: Path) -> dict[str, Path]:
    """The modules that are copied: ``FIRST``, and all of ``PACKAGES`` that they import. Raises FileNotFoundError."""
    found: dict[str, Path] = {}
    left = [*FIRST]
    while left:
        name = left.pop()
        if name in found:
            continue
        path = _path(repository, name)
        if path is None:
            raise FileNotFoundError(f"{name} is not in {repository}: build from the repository, or from an sdist")
        found[name] = path
        for one in _imports(path.read_text(encoding="utf-8")):
            if _package(one) and _path(repository, one):
                left.append(one)
    return found


def _imports(text: str) -> Iterator[str]:
    """What a module imports, also within functions: ``a.b`` and ``a.b.c`` for ``from a.b import c``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _copy_of(package: str) -> str:
    return f"{PLACE.replace('/', '.')}.{Path(PACKAGES[package]).name}"


def _package(module: str) -> str:
    return next((one for one in PACKAGES if module == one or module.startswith(f"{one}.")), "")


def _path(repository: Path, module: str) -> Path | None:
    """The file of a module; ``None`` for a package, and for what is no module."""
    package = _package(module)
    path = repository / PACKAGES[package] / f"{module.removeprefix(package).strip('.').replace('.', '/')}.py"
    return path if module != package and path.is_file() else None
