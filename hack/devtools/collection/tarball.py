"""The tarball: what ``ansible-galaxy collection install`` takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devtools.collection.environment import ROOT, environ


def build(into: Path) -> Path:
    """Build it into the folder ``into``; an older one of the same version is replaced."""
    into.mkdir(parents=True, exist_ok=True)
    command = ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(into), str(ROOT)]
    done = subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stdout + done.stderr)
    return Path(done.stdout.strip().rpartition(" ")[2])


def install(tarball: Path, into: Path) -> Path:
    """Install it under ``into``, offline, even if the same version is found elsewhere; the collection's folder."""
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
