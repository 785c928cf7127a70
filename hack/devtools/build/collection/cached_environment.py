"""Python environments in the cache, for what the development environment's versions cannot run."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

from devtools.testbed.base.cache import content_key, locked

PYTHON = "{}.{}".format(*sys.version_info[:2])
INTERPRETER = (sys.version, sys.base_prefix)
"""An environment links to the interpreter that made it."""
SITE = Path("lib") / f"python{PYTHON}" / "site-packages"


class PipError(Exception):
    """pip failed; the message has what it printed."""


def cached_environment(cache: Path, fill: Callable[[Path], None], *parts: str, trees: Iterable[Path] = ()) -> Path:
    """The folder of an environment of this Python with pip, which ``fill`` has given its packages.

    It is created if it is missing; ``parts`` and the content of ``trees`` say what is in it.
    """
    folder = cache / "environments" / content_key(*INTERPRETER, *parts, trees=trees)
    ready = folder / "ready"
    with locked(folder):
        if not ready.is_file():
            # no `cache_entry`, since an environment cannot be moved: it is created in place, and `ready` comes last
            venv.create(folder, with_pip=True, clear=True)
            fill(folder)
            ready.touch()
    return folder


def pip(python: Path, command: str, *arguments: str) -> None:
    """Run pip of the environment that has the program ``python``. Raises PipError."""
    done = subprocess.run(
        [str(python), "-m", "pip", command, "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PipError(f"pip {command} failed: {(done.stdout + done.stderr).strip()}")
