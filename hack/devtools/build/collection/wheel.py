"""Builds the wheel with the engine and the collection, and installs it with its requirements into an environment."""

from __future__ import annotations

import shutil
import sys
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

from devtools.build.collection.environment import SITE, cached_environment, pip
from devtools.paths import ROOT

PINS = ROOT / "requirements.txt"


def build(into: Path, root: Path = ROOT) -> Path:
    """Build the wheel in the folder ``into`` with this environment's build backend; replaces an older one."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        pip(Path(sys.executable), "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch, str(root))
        (made,) = Path(scratch).iterdir()
        return made.replace(into / made.name)


def install(wheel: Path, folder: Path, cache: Path) -> Path:
    """Create the environment ``folder`` with the wheel and its requirements; returns the ``bin`` folder.

    The requirements have requirements.txt's versions and are copied from an environment in the cache.
    """
    venv.create(folder, with_pip=False)
    shutil.rmtree(folder / SITE)
    shutil.copytree(_requirements(wheel, cache) / SITE, folder / SITE)
    # use the environment's pip, so that scripts get the environment's Python
    pip(folder / "bin" / "python", "install", "--no-deps", "--no-index", str(wheel))
    return folder / "bin"


def requires(wheel: Path) -> list[str]:
    """The requirements in the wheel's metadata, without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    return [requirement for requirement in found if "extra ==" not in requirement]


def _requirements(wheel: Path, cache: Path) -> Path:
    """An environment in the cache with the wheel's requirements and pip."""
    wanted = requires(wheel)

    def fill(folder: Path) -> None:
        pip(folder / "bin" / "python", "install", "--constraint", str(PINS), *wanted)

    return cached_environment(cache, fill, "wheel", *wanted, trees=[PINS])
