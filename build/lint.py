"""Every linter, one line each; all of them run even where one complains, and the exit status tells."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CODE = ["plugins", "runner", "build", "benchmarks", "tests", "examples"]
PACKAGES = (
    "ansible_collections.dljob.operator.plugins",
    "dljob_operator",
    *("background", "cluster", "collection", "crds", "demo", "images", "olm", "reference", "suite"),
    "bench",
)
"""In one call of mypy: what they share is read once."""

LINTERS: dict[str, list[str]] = {
    "ruff check": ["ruff", "check", "--quiet", *CODE],
    "ruff format": ["ruff", "format", "--check", "--quiet", *CODE],
    "mypy": ["mypy", *(f"-p={package}" for package in PACKAGES)],
    "import-linter": ["lint-imports", "--no-cache"],
    "yamllint": ["yamllint", "--strict", "."],
    "ansible-lint": [
        "ansible-lint",
        "--offline",
        "--profile",
        "production",
        "--strict",
        "-q",
        "roles",
        "playbooks",
        "molecule",
    ],
    "antsibull-changelog": ["antsibull-changelog", "lint"],
    "antsibull-docs": ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "."],
    "generated CRDs": ["python", "-m", "crds", "--check"],
    "generated bundle": ["python", "-m", "olm", "--check"],
    "generated docs": ["python", "-m", "reference", "--check"],
}


def main() -> int:
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "MYPYPATH": ".venv/collections:runner:build:benchmarks",
        "PYTHONPATH": "build:runner",
    }
    failed = []
    for name, command in LINTERS.items():
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        mark = "ok" if done.returncode == 0 else "FAILED"
        print(f"  {name:<24} {mark:<7} {time.monotonic() - started:5.1f} s", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout + done.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
