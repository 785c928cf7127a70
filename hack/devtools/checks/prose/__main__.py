"""`python -m devtools.checks.prose [FILE ...]`: the rules of prose on these files or those that `rules.toml` names."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from devtools.checks.prose.rules import Rules, problems
from devtools.paths import ROOT

TABLE = Path(__file__).with_name("rules.toml")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.checks.prose", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    given = parser.parse_args(argv).files
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    rules = Rules(table["words_of_a_sentence"], table["instead"], table["diary"])
    failed = 0
    for file in given or [ROOT / name for name in table["files"]]:
        for number, message in problems(file.read_text(encoding="utf-8"), rules):
            print(f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{number}: {message}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
