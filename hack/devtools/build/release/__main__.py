"""The command line: ``python -m devtools.build.release check TAG``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import yaml

from devtools.build.release import check
from devtools.paths import ROOT

CHANGELOG = ROOT / "changelogs" / "changelog.yaml"


def versions() -> dict[str, str]:
    """The version in VERSION and in the two files whose formats cannot refer to it."""
    found = {"VERSION": (ROOT / "VERSION").read_text(encoding="utf-8").strip()}
    chart = "deploy/helm/dljob-operator/Chart.yaml"
    for file, key in (("galaxy.yml", "version"), (chart, "version"), (chart, "appVersion")):
        document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
        found[f"{file} ({key})"] = str(document[key])
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.build.release", description="Check a tag before it is released."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    checked = commands.add_parser("check", help="check whether TAG may be released from this tree")
    checked.add_argument("tag", metavar="TAG", help="v0.1.0")
    tag = parser.parse_args(argv).tag
    changelog = yaml.safe_load(CHANGELOG.read_text(encoding="utf-8")) if CHANGELOG.is_file() else {}
    fragments = [path.name for path in (ROOT / "changelogs" / "fragments").glob("*.y*ml")]
    found = check.problems(tag, versions(), changelog, fragments)
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
