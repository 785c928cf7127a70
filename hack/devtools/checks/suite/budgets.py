"""Reads tests/budgets.toml: how many seconds the tests of each part may take."""

from __future__ import annotations

import tomllib
from pathlib import Path

from devtools.checks.suite.parts import BY_NAME


class BudgetError(ValueError):
    """The file is not a table of parts and seconds; the message names the invalid entry."""


def read(path: Path) -> dict[str, float]:
    """Part to seconds. Raises BudgetError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BudgetError(f"{path}: {error}") from error
    for name, seconds in document.items():
        if name not in BY_NAME:
            raise BudgetError(f"{path}: {name} is not a part; the parts are {', '.join(BY_NAME)}")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
            raise BudgetError(f"{path}: {name}: {seconds!r} is not a positive number of seconds")
    return {name: float(seconds) for name, seconds in document.items()}
