"""hack/python.sh chooses the interpreter of the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "python.sh"


@pytest.fixture
def unfit(tmp_path: Path) -> list[str]:
    """A program that does not exist, and one that is too old or without ensurepip."""
    other = tmp_path / "python2"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    return [str(tmp_path / "missing"), str(other)]


def choice(*candidates: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SCRIPT), *candidates], capture_output=True, text=True, check=False)


def test_the_first_that_fits_is_chosen(unfit: list[str]) -> None:
    assert choice(sys.executable, "python3").stdout == f"{sys.executable}\n"
    assert choice(*unfit, sys.executable).stdout == f"{sys.executable}\n"


def test_none_that_fits_is_an_error_that_names_the_versions_and_the_fix(unfit: list[str]) -> None:
    result = choice(*unfit)
    assert (result.returncode, result.stdout) == (1, "")
    assert "Python 3.11 to 3.13" in result.stderr and "make PYTHON=" in result.stderr and unfit[1] in result.stderr
