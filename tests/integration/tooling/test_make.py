"""What the Makefile gives the processes that it starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_its_processes_keep_compiled_modules() -> None:
    """Else each of the suite's processes compiles every module, where the environment of a container forbids it."""
    command = ["make", "--eval", 'shown: ; @echo "$${PYTHONDONTWRITEBYTECODE-unset}"', "shown"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "unset"
