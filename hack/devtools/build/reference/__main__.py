"""Writes ``docs/reference``; with ``--check`` reports the files that are out of date, and then exits with 1."""

from __future__ import annotations

import argparse
import sys

from devtools.build.reference import definitions, operator_settings, pages, plugins, roles
from devtools.paths import ROOT


def files() -> dict[str, str]:
    """The generated text of every file below docs/reference."""
    made = {**definitions.pages(), **operator_settings.pages(), **plugins.pages(), **roles.pages()}
    return {**made, "README.md": pages.index(made)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    check: bool = parser.parse_args().check
    folder = ROOT / "docs" / "reference"
    wanted = {folder / name: text for name, text in files().items()}
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    strangers = [path for path in sorted(folder.rglob("*.md")) if path not in wanted]
    for path in strangers:
        if check:
            print(f"{path.relative_to(ROOT)}: describes an object that does not exist; run `make docs`")
        else:
            path.unlink()
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of date; run `make docs`")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and (stale or strangers) else 0


if __name__ == "__main__":
    sys.exit(main())
