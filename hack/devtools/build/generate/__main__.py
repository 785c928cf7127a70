"""Writes what follows from the frameworks' declarations; with ``--check`` reports what is stale, and exits with 1.

With ``--role`` it does so for roles outside of this tree: their tasks and argument specs, and in ``--output`` the CRDs,
watches.yaml and a ClusterRole.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework

from devtools.build.generate import files
from devtools.paths import ROOT


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument(
        "--role", type=Path, action="append", default=[], help="a role outside of this tree; repeatable"
    )
    parser.add_argument("--output", type=Path, help="folder for the CRDs, watches.yaml and the ClusterRole of --role")
    given = parser.parse_args(arguments)
    if bool(given.role) != bool(given.output):
        parser.error("--role and --output belong together")
    try:
        wanted = files.of_roles(given.role, given.output) if given.role else files.of_tree(root)
    except (InvalidFramework, ValueError) as e:
        print(e)
        return 1
    return _compare(wanted, given.output or root) if given.check else _write(wanted, given.output or root)


def _stale(wanted: files.Wanted) -> list[Path]:
    texts = [p for p, text in wanted.texts.items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    return [*texts, *(p for p, to in wanted.links.items() if not p.is_symlink() or p.readlink() != to)]


def _shown(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _compare(wanted: files.Wanted, root: Path) -> int:
    for path in _stale(wanted):
        print(f"{_shown(path, root)} is out of date; run `make generate`")
    for path in wanted.strangers:
        print(f"{_shown(path, root)}: no role declares it; run `make generate` to remove it")
    return 1 if _stale(wanted) or wanted.strangers else 0


def _write(wanted: files.Wanted, root: Path) -> int:
    for path in wanted.strangers:
        path.unlink()
        print(f"removed {_shown(path, root)}")
    for path in _stale(wanted):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if path in wanted.links:
            path.symlink_to(wanted.links[path])
        else:
            path.write_text(wanted.texts[path], encoding="utf-8")
        print(f"wrote {_shown(path, root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
