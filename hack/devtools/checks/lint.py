"""Runs all linters, and prints one line for each; exits with 1 if one of them fails.

``--quick`` skips the slow ones and those that a pre-commit hook runs on the changed files only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from devtools.paths import ROOT
from devtools.testbed.cluster.settings import cache_dir_from

BIN = Path(sys.executable).parent
FORGE = ROOT / ".github"
ISSUE_CHOOSER = FORGE / "ISSUE_TEMPLATE" / "config.yml"
CODE = ["plugins", "src", "hack", "benchmarks", "tests", "examples"]
PACKAGES = (
    "ansible_collections.dljob.operator.plugins",
    "dljob_operator",
    "devtools",
    "wheel_layout",
)
"""Checked in one call of mypy, which then reads shared modules once."""


def against(schema: str, *files: Path) -> list[str]:
    """The command that checks GitHub's files against a schema bundled with check-jsonschema."""
    return ["check-jsonschema", "--builtin-schema", schema, *(str(path.relative_to(ROOT)) for path in files)]


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
    "pre-commit": ["pre-commit", "validate-config"],
    "workflows": against("vendor.github-workflows", *sorted(FORGE.glob("workflows/*.yml"))),
    "workflow timeouts": against("custom.github-workflows-require-timeout", *sorted(FORGE.glob("workflows/*.yml"))),
    "workflow audit": ["zizmor", "--offline", "--quiet", "--min-severity", "medium", ".github"],
    "setup action": against("vendor.github-actions", FORGE / "actions" / "setup" / "action.yml"),
    "issue forms": against(
        "vendor.github-issue-forms", *sorted(set(FORGE.glob("ISSUE_TEMPLATE/*.yml")) - {ISSUE_CHOOSER})
    ),
    "issue chooser": against("vendor.github-issue-config", ISSUE_CHOOSER),
    "renovate": against("vendor.renovate", FORGE / "renovate.json"),
    "prose": ["python", "-m", "devtools.checks.prose"],
    "generated changelog": ["python", "-m", "devtools.build.changelog", "--check"],
    "stamped version": ["python", "-m", "devtools.build.stamp", "--check"],
    "generated from the roles": ["python", "-m", "devtools.build.generate", "--check"],
    "generated bundle": ["python", "-m", "devtools.build.olm", "--check"],
    "generated docs": ["python", "-m", "devtools.build.reference", "--check"],
}
SLOW = ("mypy", "ansible-lint", "antsibull-docs")
ON_CHANGED_FILES = ("ruff check", "ruff format", "yamllint")
"""Linters that have their own hooks in .pre-commit-config.yaml."""


def chosen(*, quick: bool) -> dict[str, list[str]]:
    left_out = (*SLOW, *ON_CHANGED_FILES) if quick else ()
    return {name: command for name, command in LINTERS.items() if name not in left_out}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.checks.lint", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the linters that pre-commit runs on the whole tree")
    quick = parser.parse_args().quick
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "MYPYPATH": ".venv/collections:src:hack",
        # outside the tree, so that a new clone need not check again what has not changed
        "MYPY_CACHE_DIR": str(cache_dir_from(os.environ) / "mypy"),
        "PYTHONPATH": "hack:src",
    }
    failed = []
    for name, command in chosen(quick=quick).items():
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
