"""`make outdated`: a table of the pins, what could replace them, and when their lines end.

Exits with 1 where a registry did not answer, with 2 where outdated.toml names a pin that is nowhere.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from devtools.paths import ROOT

REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")
RELEASE = re.compile(r"v?(\d+(?:\.\d+)*(?:\.post\d+)?)")
"""A version that is no alpha, beta or candidate."""
GO, PYPI = "go", "pypi"
CLIENTS: dict[str, Sequence[str]] = {
    GO: ("go", "list", "-m", "-versions", "-json"),
    PYPI: (sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions"),
}
"""The registries' own clients, which ask for the versions of a project."""
SECONDS = 120
HEAD = ("what", "pinned", "newest that fits", "newest", "end of life", "")


class PinError(ValueError):
    """outdated.toml does not fit the files that it names; the message says where."""


class RegistryError(Exception):
    """A registry did not answer; the message has its client's words."""


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
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return list(pins(listed, lambda file: (root / file).read_text(encoding="utf-8")))


def pins(listed: Mapping[str, Any], text_of: Callable[[str], str]) -> Iterator[Pin]:
    """The pins that the content ``listed`` of outdated.toml means. ``text_of`` has the text of a file."""
    for one in listed.get("pin", ()):
        found = re.search(one["pattern"], text_of(one["file"]))
        if not found:
            raise PinError(f"outdated.toml: {one['name']}: {one['file']} has nothing like {one['pattern']}")
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


def served(pin: Pin) -> list[str]:
    """All versions of the project of ``pin`` that its registry serves. Raises :class:`RegistryError`."""
    if not pin.registry:
        return []
    command = [*CLIENTS[pin.registry], pin.project]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd="/", check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RegistryError(f"{pin.name}: {error}") from error
    if done.returncode:
        raise RegistryError(f"{pin.name}: {done.stderr.strip().splitlines()[-1:] or command}")
    if pin.registry == GO:
        return list(json.loads(done.stdout).get("Versions") or ())
    available = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    return available[1].split(", ") if available else []


def _served(pin: Pin) -> tuple[list[str], str]:
    try:
        return served(pin), ""
    except RegistryError as error:
        return [], str(error)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.outdated", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also what is current and has no end of life")
    parser.add_argument("--offline", action="store_true", help="ask no registry: only the ends of life")
    options = parser.parse_args(argv)
    try:
        found = read(ROOT)
    except PinError as error:
        print(f"outdated: {error}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(4) as pool:
        answers = [([], "") for _ in found] if options.offline else list(pool.map(_served, found))
    problems = [problem for _, problem in answers if problem]
    today = datetime.now(UTC).date()
    rows = [row(pin, versions, today) for pin, (versions, _) in zip(found, answers, strict=True)]
    shown = [one for one in rows if options.all or one[-1]]
    widths = [max(map(len, column)) for column in zip(HEAD, *shown, strict=True)]
    for line in (HEAD, *shown):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(f"{len(rows)} pins, {len(rows) - len(shown)} of them current and not shown" if not options.all else "")
    for problem in problems:
        print(f"outdated: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
