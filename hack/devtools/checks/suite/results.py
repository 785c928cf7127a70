"""Reads the result of each test from pytest's JUnit files. Pure, except for reading the files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from devtools.checks.suite.parts import part_of

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Case:
    """One test; ``seconds`` is the duration of its set-up, call and teardown."""

    part: str
    name: str
    seconds: float
    outcome: str
    attempts: int = 1

    @property
    def unsteady(self) -> bool:
        """Whether it passed, but not at once."""
        return self.outcome == PASSED and self.attempts > 1


def cases(text: str) -> list[Case]:
    """Every test of one JUnit file (``junit_family=xunit1``, which names each test's file).

    A test has an element for each attempt, of which only the last one has an outcome.
    """
    attempts: dict[tuple[str, ...], list[ElementTree.Element]] = {}
    for element in ElementTree.fromstring(text).iter("testcase"):
        attempts.setdefault(tuple(element.get(key, "") for key in ("file", "classname", "name")), []).append(element)
    return [
        Case(
            part=part_of(file),
            name=f"{file}::{name}",
            seconds=sum(float(element.get("time", "0")) for element in elements),
            outcome=_outcome({child.tag for element in elements for child in element}),
            attempts=len(elements),
        )
        for (file, _, name), elements in attempts.items()
    ]


def read(paths: Iterable[Path]) -> list[Case]:
    """The tests of all files that are whole: an aborted pytest writes none, and one on a full disk an empty one."""
    found: list[Case] = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError, ElementTree.ParseError):
            found += cases(path.read_text(encoding="utf-8"))
    return found


def _outcome(tags: set[str]) -> str:
    if tags & {"failure", "error"}:
        return FAILED
    return SKIPPED if "skipped" in tags else PASSED
