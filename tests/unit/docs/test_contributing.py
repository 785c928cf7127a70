"""CONTRIBUTING.md prints the declaration that tests/e2e/test_new_framework.py runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "e2e" / "new_framework"


def printed(file: str) -> str:
    """The code block that follows the file's name in the document."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"`{re.escape(file)}`:\n\n((?: {{7}}.*\n|\n)+)", text)
    assert found, f"CONTRIBUTING.md has no block for {file}"
    return textwrap.dedent(found[1]).strip() + "\n"


def test_the_documented_declaration_is_the_tested_one() -> None:
    tested = (FOLDER / "roles/echo/vars/main.yml").read_text(encoding="utf-8")
    assert printed("roles/echo/vars/main.yml") == tested.removeprefix("---\n")


def test_the_tested_job_is_one_of_the_framework() -> None:
    declared: Any = yaml.safe_load(printed("roles/echo/vars/main.yml"))["echo_framework"]
    job = parse_job(yaml.safe_load((FOLDER / "hello.yaml").read_text(encoding="utf-8")), loader.framework(declared))
    assert {group.type: group.replicas for group in job.groups} == {"Leader": 1, "Follower": 2}
    assert [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*")) if path.is_file()] == [
        "hello.yaml",
        "roles/echo/vars/main.yml",
    ]
