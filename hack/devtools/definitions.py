"""Reads YAML with libyaml where PyYAML has it, and the definitions in crds/, which are 2.6 MB of it, once a process."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from devtools.paths import ROOT

CRDS = ROOT / "crds"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Definition = dict[str, Any]


def load(text: str) -> Any:
    """The only document of ``text``."""
    return yaml.load(text, Loader=_LOADER)


def load_all(text: str) -> list[Any]:
    """The documents of ``text``."""
    return list(yaml.load_all(text, Loader=_LOADER))


def definitions(folder: Path = CRDS) -> dict[str, Definition]:
    """The definitions in ``folder`` by file name without its ending, in the order of names. Nobody may change them."""
    return {path.stem: _definition(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))}


@functools.cache
def _definition(text: str) -> Definition:
    found: Definition = load(text)
    return found


def documents(file: Path) -> list[Any]:
    """Every document of a file that is not empty."""
    return [one for one in load_all(file.read_text(encoding="utf-8")) if one]
