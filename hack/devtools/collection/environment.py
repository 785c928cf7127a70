"""Where the repository is, and how Ansible's commands are started in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
COLLECTIONS = ROOT / ".venv" / "collections"
"""Where `make venv` links this repository in as dljob.operator."""


def environ(bin_dir: Path = BIN, **more: str) -> dict[str, str]:
    """The environment of a child: the commands of ``bin_dir`` first, no colours, nothing of a calling Ansible."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "MOLECULE_", "PYTHONPATH"))}
    return {**kept, "PATH": f"{bin_dir}:{kept['PATH']}", "ANSIBLE_NOCOLOR": "1", **more}
