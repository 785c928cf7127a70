"""ansible-test sanity on the whole collection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": "hack"}
    command = [sys.executable, "-m", "devtools.build.collection", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_sanity() -> None:
    done = run("sanity")
    assert done.returncode == 0, done.stdout + done.stderr
