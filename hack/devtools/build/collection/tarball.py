"""The tarball for ``ansible-galaxy collection install``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devtools.build.collection.environment import environ
from devtools.paths import ROOT


def build(into: Path) -> Path:
    """Build the tarball in the folder ``into``; replaces one of the same version."""
    into.mkdir(parents=True, exist_ok=True)
    said = _galaxy("build", "--force", "--output-path", str(into), str(ROOT))
    return Path(said.strip().rpartition(" ")[2])


def install(tarball: Path, into: Path) -> Path:
    """Install it offline under ``into``, even if another path has the same version; returns the collection's folder."""
    _galaxy("install", "--force", "--offline", "--no-deps", "-p", str(into), str(tarball))
    return into / "ansible_collections" / "dljob" / "operator"


def _galaxy(*arguments: str) -> str:
    """Run ansible-galaxy; its output. Raises CalledProcessError, which carries that of a failure."""
    command = ["ansible-galaxy", "collection", *arguments]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stdout + done.stderr)
    return done.stdout
