"""What the tools of this folder generate: they say which files are to be, and this compares or writes them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devtools.paths import ROOT


@dataclass(slots=True)
class Wanted:
    """What is to be, by absolute path."""

    texts: dict[Path, str] = field(default_factory=dict)
    links: dict[Path, Path] = field(default_factory=dict)
    """Each symbolic link and its target."""
    strangers: list[Path] = field(default_factory=list)
    """Files that stand where only generated files do, and are not wanted."""

    def stale(self) -> list[Path]:
        """The files and links that differ from what is on the disk."""
        texts = [p for p, text in self.texts.items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
        return [*texts, *(p for p, to in self.links.items() if not p.is_symlink() or p.readlink() != to)]


def parser(module: str, about: str | None) -> argparse.ArgumentParser:
    """The command line of ``devtools.build.<module>``, with the option ``--check``."""
    made = argparse.ArgumentParser(prog=f"python -m devtools.build.{module}", description=about)
    made.add_argument("--check", action="store_true", help="write nothing, only compare; 1 if a file is out of date")
    return made


def settle(wanted: Wanted, target: str, *, check: bool, root: Path = ROOT) -> int:
    """Write what differs and remove the strangers, or with ``check`` only name them. The exit status.

    ``target`` is that of make which writes the files; paths are shown as seen from ``root``.
    """
    stale = wanted.stale()
    if check:
        _say(root, stale, "{} is out of date; run `make " + target + "`")
        _say(root, wanted.strangers, "{}: nothing declares it; run `make " + target + "` to remove it")
        return 1 if stale or wanted.strangers else 0
    for path in wanted.strangers:
        path.unlink()
    _say(root, wanted.strangers, "removed {}")
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if path in wanted.links:
            path.symlink_to(wanted.links[path])
        else:
            path.write_text(wanted.texts[path], encoding="utf-8")
    _say(root, stale, "wrote {}")
    return 0


def _say(root: Path, paths: Sequence[Path], words: str) -> None:
    for path in paths:
        print(words.format(path.relative_to(root) if path.is_relative_to(root) else path))


def main(module: str, about: str | None, target: str, wanted: Callable[[], Wanted]) -> int:
    """The whole program of a tool that has no options but ``--check``; a ValueError is its message."""
    check: bool = parser(module, about).parse_args().check
    try:
        return settle(wanted(), target, check=check)
    except ValueError as error:
        print(error)
        return 1
