"""Builds the wheel with the engine and the collection, and installs it with its requirements into an environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

from devtools.cluster.content_key import content_key
from devtools.collection.environment import ROOT

PINS = ROOT / "requirements.txt"
_PYTHON = "{}.{}".format(*sys.version_info[:2])
_SITE = Path("lib") / f"python{_PYTHON}" / "site-packages"


def build(into: Path, root: Path = ROOT) -> Path:
    """Build the wheel in the folder ``into`` with this environment's build backend; replaces an older one."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        _pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch, str(root))
        (made,) = Path(scratch).iterdir()
        return made.replace(into / made.name)


def install(wheel: Path, folder: Path, cache: Path) -> Path:
    """Create the environment ``folder`` with the wheel and its requirements; returns the ``bin`` folder.

    The requirements have requirements.txt's versions and are copied from an environment in the cache.
    """
    venv.create(folder, with_pip=False)
    shutil.rmtree(folder / _SITE)
    shutil.copytree(_requirements(wheel, cache) / _SITE, folder / _SITE)
    # use the environment's pip, so that scripts get the environment's Python
    _pip(str(folder / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    return folder / "bin"


def requires(wheel: Path) -> list[str]:
    """The requirements in the wheel's metadata, without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    return [requirement for requirement in found if "extra ==" not in requirement]


def _requirements(wheel: Path, cache: Path) -> Path:
    """An environment with the wheel's requirements and pip, created if it is missing and cached by content."""
    wanted = requires(wheel)
    folder = cache / "environments" / content_key(_PYTHON, "wheel", *wanted, trees=[PINS])
    ready = folder / "ready"
    if not ready.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # an environment cannot be moved: create it in place, and write `ready` last
        venv.create(folder, with_pip=True, clear=True)
        _pip(str(folder / "bin" / "python"), "install", "--constraint", str(PINS), *wanted)
        ready.touch()
    return folder


def _pip(python: str, command: str, *arguments: str) -> None:
    done = subprocess.run(
        [python, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stdout + done.stderr)
