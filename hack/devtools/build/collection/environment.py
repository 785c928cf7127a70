"""The repository's path, and the environment for Ansible's commands in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from devtools.paths import ROOT

BIN = Path(sys.executable).parent
COLLECTIONS = ROOT / ".venv" / "collections"
"""The folder in which `make venv` links this repository as dljob.operator."""


def environ(bin_dir: Path = BIN, **more: str) -> dict[str, str]:
    """The environment of a child process: ``bin_dir`` first on PATH, no colours, no variables of a calling Ansible."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "MOLECULE_", "PYTHONPATH"))}
    return {**kept, "PATH": f"{bin_dir}:{kept['PATH']}", "ANSIBLE_NOCOLOR": "1", **more}
