"""Reads and checks the two sources."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("VERSION", "pyproject.toml")
URLS = ("Homepage", "Repository", "Documentation", "Issues")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(a|b|rc)\.(0|[1-9]\d*))?", re.ASCII)
"""The only versions of this project, for a full match: Galaxy, Helm and OLM take semantic versions, PyPI takes those of
PEP 440, image tags take no build metadata, and these are all of that."""


class StampError(Exception):
    """A source or a file to stamp is invalid; the message names it and the fix."""


@dataclass(frozen=True)
class Project:
    version: str
    urls: Mapping[str, str]


def parse(version: str, pyproject: str) -> Project:
    """The project from the texts of ``VERSION`` and pyproject.toml. Raises StampError if one is invalid."""
    version = version.strip()
    if not VERSION.fullmatch(version):
        raise StampError(f"VERSION: {version!r} is not a version; write 1.2.3, or 1.2.3-rc.1 for a pre-release")
    urls: Mapping[str, str] = tomllib.loads(pyproject)["project"].get("urls", {})
    for name in URLS:
        if not urls.get(name, "").startswith("https://"):
            raise StampError(f"pyproject.toml: project.urls.{name} is missing; set it to an https:// address")
    return Project(version, urls)


def read(root: Path) -> Project:
    return parse(*((root / name).read_text(encoding="utf-8") for name in SOURCES))
