"""The unit tests in another environment: with the versions of ansible-operator's image, or with ansible-core 2.20."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools.build.collection import dependencies
from devtools.build.collection.environment import COLLECTIONS, SITE, cached_environment, environ, pip
from devtools.paths import ROOT

REQUIREMENTS = ROOT / "requirements-oldest.txt"
PREVIOUS = ROOT / "requirements-previous.txt"
TESTS = ("tests/unit/api", "tests/unit/shared", "tests/unit/operator", "tests/unit/collection")
"""Tests of the code that runs in the operator's image and uses a library. The tools under hack/ and benchmarks/ run
only with the development environment's versions, and import-linter ensures that module_utils/logic imports none."""
WORKERS = 2


def environment(cache: Path, requirements: Path = REQUIREMENTS) -> Path:
    """The ``bin`` folder of an environment with ``requirements``, created if it is missing and cached by content."""

    def fill(folder: Path) -> None:
        pip(folder / "bin" / "python", "install", "-r", str(requirements))
        for _ in dependencies.install(cache, folder / SITE):
            pass

    trees = [requirements, ROOT / "requirements.yml"]
    return cached_environment(cache, fill, dependencies.PACKAGE, trees=trees) / "bin"


def child_environ(bin_dir: Path, **more: str) -> dict[str, str]:
    """This repository's collection and engine, with that environment's packages."""
    paths = ":".join(map(str, (COLLECTIONS, ROOT / "src", ROOT / "hack", ROOT / "tests")))
    return environ(bin_dir, PYTHONPATH=paths, ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS), **more)


def unit_tests(bin_dir: Path, arguments: Sequence[str] = ()) -> int:
    """Run the unit tests there; the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(bin_dir / "python"), "-m", "pytest", *TESTS, "-q", "-p", "no:cacheprovider"]
        command += ["-n", str(WORKERS), *arguments]
        # hypothesis tests pure code: the full search with the newest versions is enough
        env = child_environ(bin_dir, HYPOTHESIS_STORAGE_DIRECTORY=scratch, DLJOB_HYPOTHESIS="few")
        return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
