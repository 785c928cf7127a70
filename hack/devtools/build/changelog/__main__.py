"""``make changelog`` moves the fragments into the section of galaxy.yml's version; ``--check`` writes nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools.build.collection.environment import environ
from devtools.paths import ROOT

CHANGELOG = "CHANGELOG.md"


def antsibull(root: Path, *arguments: str) -> None:
    """Run antsibull-changelog on the collection in ``root``; raises CalledProcessError, which carries the output."""
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
    """Whether CHANGELOG.md differs from what changelogs/changelog.yaml generates; pending fragments are ignored."""
    with tempfile.TemporaryDirectory() as scratch:
        generated = Path(scratch) / CHANGELOG
        antsibull(root, "generate", "--output", str(generated), "--output-format", "md")
        present = root / CHANGELOG
        return not present.is_file() or present.read_bytes() != generated.read_bytes()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.changelog", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if CHANGELOG.md would change")
    arguments = parser.parse_args(argv)
    try:
        if not arguments.check:
            # an untagged version may be released repeatedly: new fragments are added to its existing section
            antsibull(ROOT, "release", "--update-existing", "--reload-plugins", "--refresh-plugins")
        elif outdated(ROOT):
            print(f"{CHANGELOG} does not match changelogs/changelog.yaml: run antsibull-changelog generate")
            return 1
    except subprocess.CalledProcessError as error:
        print(error.stdout, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
