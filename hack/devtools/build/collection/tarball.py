"""The tarball for ``ansible-galaxy collection install``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devtools.build.collection.environment import environ
from devtools.paths import ROOT


def build(into: Path) -> Path:
    """Build the tarball in the folder ``into``; replaces one of the same version."""
    into.mkdir(parents=True, exist_ok=True)
    command = ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(into), str(ROOT)]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stdout + done.stderr)
    return Path(done.stdout.strip().rpartition(" ")[2])


def install(tarball: Path, into: Path) -> Path:
    """Install it offline under ``into``, even if another path has the same version; returns the collection's folder."""
    command = [
        "ansible-galaxy",
        "collection",
        "install",
        "--force",
        "--offline",
        "--no-deps",
        "-p",
        str(into),
        str(tarball),
    ]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stdout + done.stderr)
    return into / "ansible_collections" / "dljob" / "operator"
