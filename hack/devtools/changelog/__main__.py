"""``make changelog`` moves the fragments into the section of galaxy.yml's version; ``--check`` writes nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools.collection.environment import ROOT, environ

CHANGELOG = "CHANGELOG.md"


def antsibull(root: Path, *arguments: str) -> None:
    """Run antsibull-changelog on the collection in ``root``; raises CalledProcessError, whose output says why."""
    subprocess.run(
        ["antsibull-changelog", *arguments],
        cwd=root,
        env=environ(),
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def outdated(root: Path) -> bool:
    """Whether CHANGELOG.md is not what changelogs/changelog.yaml says; pending fragments do not count."""
    with tempfile.TemporaryDirectory() as scratch:
        generated = Path(scratch) / CHANGELOG
        antsibull(root, "generate", "--output", str(generated), "--output-format", "md")
        present = root / CHANGELOG
        return not present.is_file() or present.read_bytes() != generated.read_bytes()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.changelog", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if CHANGELOG.md would change")
    arguments = parser.parse_args(argv)
    try:
        if not arguments.check:
            # a version that is not tagged yet may be written several times: its section takes what has come since
            antsibull(ROOT, "release", "--update-existing", "--reload-plugins", "--refresh-plugins")
        elif outdated(ROOT):
            print(f"{CHANGELOG} is not what changelogs/changelog.yaml says: run antsibull-changelog generate")
            return 1
    except subprocess.CalledProcessError as error:
        print(error.stdout, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
