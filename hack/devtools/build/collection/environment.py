"""The environments of Ansible's commands: this one, and others in the cache, for what its versions cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.base.cache import content_key, locked

BIN = Path(sys.executable).parent
COLLECTIONS = ROOT / ".venv" / "collections"
"""The folder in which `make venv` links this repository as dljob.operator."""
PYTHON = "{}.{}".format(*sys.version_info[:2])
INTERPRETER = (sys.version, sys.base_prefix)
"""An environment links to the interpreter that made it."""
SITE = Path("lib") / f"python{PYTHON}" / "site-packages"


def environ(bin_dir: Path = BIN, **more: str) -> dict[str, str]:
    """The environment of a child process: ``bin_dir`` first on PATH, no colours, no variables of a calling Ansible."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "MOLECULE_", "PYTHONPATH"))}
    return {**kept, "PATH": f"{bin_dir}:{kept['PATH']}", "ANSIBLE_NOCOLOR": "1", **more}


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
