"""The pinned versions: what pins.toml lists, read where they are pinned. Pure but for :func:`read`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")
RELEASE = re.compile(r"v?(\d+(?:\.\d+)*(?:\.post\d+)?)")
"""A version that is no alpha, beta or candidate."""
GO, PYPI = "go", "pypi"


class PinError(ValueError):
    """pins.toml does not fit the files that it names; the message says where."""


@dataclass(frozen=True)
class Pin:
    """One version, where it is pinned."""

    name: str
    version: str
    file: str
    registry: str = ""
    """:data:`GO`, :data:`PYPI`, or "" where none has it."""
    project: str = ""
    """Its name there."""
    line: str = ""
    """The beginning of the versions that may replace it; "" for all."""
    ends: date | None = None
    """The end of life of its line, where the project has published one."""


def read(root: Path) -> list[Pin]:
    """All pins of the repository at ``root``. Raises :class:`PinError`."""
    listed = tomllib.loads(Path(__file__).with_name("pins.toml").read_text(encoding="utf-8"))
    return list(pins(listed, lambda file: (root / file).read_text(encoding="utf-8")))


def pins(listed: Mapping[str, Any], text_of: Callable[[str], str]) -> Iterator[Pin]:
    """The pins that the content ``listed`` of pins.toml means. ``text_of`` has the text of a file of the repository."""
    for one in listed.get("pin", ()):
        found = re.search(one["pattern"], text_of(one["file"]))
        if not found:
            raise PinError(f"pins.toml: {one['name']}: {one['file']} has nothing like {one['pattern']}")
        registry = GO if "module" in one else PYPI if "package" in one else ""
        project = one.get("module") or one.get("package") or ""
        yield Pin(one["name"], found[1], one["file"], registry, project, one.get("line", ""), one.get("ends"))
    seen = set()
    for file in listed.get("requirements", ()):
        for text in text_of(file).splitlines():
            found = REQUIREMENT.match(text)
            if found and (found[1].lower(), found[2]) not in seen:
                name, version = found[1], found[2]
                seen.add((name.lower(), version))
                yield Pin(name, version, file, PYPI, name, ends=_end(listed, name, version))


def _end(listed: Mapping[str, Any], name: str, version: str) -> date | None:
    for line, end in listed.get("ends", {}).get(name, {}).items():
        if version == line or version.startswith(f"{line}."):
            return date.fromisoformat(str(end))
    return None


def order(version: str) -> tuple[int, ...]:
    """The sort key of a release."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def newest(versions: Iterable[str], line: str = "") -> str:
    """The newest release of a line; "" where there is none."""
    releases = [found[1] for one in versions if (found := RELEASE.fullmatch(one)) and found[1].startswith(line)]
    return max(releases, key=order, default="")


def row(pin: Pin, served: Sequence[str], today: date) -> tuple[str, ...]:
    """The line of the table: name, version, the newest that may replace it, the newest of all, the end, a remark."""
    mine, latest = newest(served, pin.line), newest(served)
    remarks = []
    if mine and order(mine) > order(pin.version):
        remarks.append("newer")
    if pin.ends:
        left = (pin.ends - today).days
        remarks.append(f"{left} days left" if left >= 0 else f"ended {-left} days ago")
    return pin.name, pin.version, mine or "-", latest or "-", str(pin.ends or "-"), ", ".join(remarks)
