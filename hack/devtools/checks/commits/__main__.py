"""The command line: ``python -m devtools.checks.commits {message FILE,range [BASE [HEAD]]}``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from devtools.checks.commits import source, subject


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.checks.commits", description="Check the subjects of commits."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    message = commands.add_parser("message", help="check a commit message file, as git's commit-msg hook")
    message.add_argument("file", type=Path)
    ranged = commands.add_parser("range", help="check the commits that are in HEAD and not in BASE")
    ranged.add_argument("base", nargs="?", default="origin/main", help="(default: origin/main)")
    ranged.add_argument("head", nargs="?", default="HEAD", help="(default: HEAD)")
    arguments = parser.parse_args(argv)
    if arguments.command == "message":
        commits = [("", source.from_message(arguments.file.read_text(encoding="utf-8")))]
    else:
        try:
            commits = source.from_range(Path.cwd(), arguments.base, arguments.head)
        except source.RangeError as error:
            print(f"error: {error}; fetch the branch, or name another: make commits BASE=<revision>", file=sys.stderr)
            return 2
    bad = 0
    for commit, line in commits:
        found = subject.problems(line)
        bad += bool(found)
        if found:
            print(f"{commit} {line!r}".strip())
        for problem in found:
            print(f"  - {problem}")
    if bad:
        print(f"{bad} of {len(commits)} commit subjects to change; CONTRIBUTING.md has the rules", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
