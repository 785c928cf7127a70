"""What a release needs: the changelog, and the check of a tag.

``changelog`` moves changelogs/fragments into the section of galaxy.yml's version, by antsibull-changelog; with
``--check`` it writes nothing, and fails if CHANGELOG.md would change. ``check TAG`` says what keeps a tag from release.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.build.collection.environment import environ
from devtools.build.stamp import VERSION
from devtools.definitions import load
from devtools.paths import ROOT

CHANGELOG = "CHANGELOG.md"


def antsibull(root: Path, *arguments: str) -> None:
    """Run antsibull-changelog on the collection in ``root``; raises CalledProcessError, which carries the output."""
    command = ["antsibull-changelog", *arguments]
    subprocess.run(
        command, cwd=root, env=environ(), check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def outdated(root: Path) -> bool:
    """Whether CHANGELOG.md differs from what changelogs/changelog.yaml generates; pending fragments are ignored."""
    with tempfile.TemporaryDirectory() as scratch:
        generated = Path(scratch) / CHANGELOG
        antsibull(root, "generate", "--output", str(generated), "--output-format", "md")
        present = root / CHANGELOG
        return not present.is_file() or present.read_bytes() != generated.read_bytes()


def write_changelog(*, check: bool) -> int:
    try:
        if not check:
            # an untagged version may be released repeatedly: new fragments are added to its existing section
            antsibull(ROOT, "release", "--update-existing", "--reload-plugins", "--refresh-plugins")
        elif outdated(ROOT):
            print(f"{CHANGELOG} does not match changelogs/changelog.yaml: run antsibull-changelog generate")
            return 1
    except subprocess.CalledProcessError as error:
        print(error.stdout, file=sys.stderr)
        return 1
    return 0


def versions() -> dict[str, str]:
    """The version in VERSION and in the two files whose formats cannot refer to it."""
    found = {"VERSION": (ROOT / "VERSION").read_text(encoding="utf-8").strip()}
    chart = "deploy/helm/dljob-operator/Chart.yaml"
    for file, key in (("galaxy.yml", "version"), (chart, "version"), (chart, "appVersion")):
        found[f"{file} ({key})"] = str(load((ROOT / file).read_text(encoding="utf-8"))[key])
    return found


def problems(
    tag: str, versions: Mapping[str, str], changelog: Mapping[str, Any], fragments: Collection[str]
) -> list[str]:
    """The violated rules, each with the file and the fix. ``versions`` maps a file to its version."""
    if not tag.startswith("v") or not VERSION.fullmatch(tag[1:]):
        return [f"the tag {tag!r} is not v1.2.3, or v1.2.3-rc.1 for a pre-release: delete it and create one that is"]
    version = tag[1:]
    found = [
        f"{file} has {found_version}, and the tag is {tag}: set VERSION, run make version, commit, and tag that commit"
        for file, found_version in versions.items()
        if found_version != version
    ]
    if version not in (changelog.get("releases") or {}):
        found.append(f"changelogs/changelog.yaml has no section {version}: run make changelog and commit")
    if fragments:
        found.append(f"changelogs/fragments/ still has {', '.join(sorted(fragments))}: run make changelog and commit")
    return found


def check_tag(tag: str) -> int:
    folder = ROOT / "changelogs"
    kept = folder / "changelog.yaml"
    changelog = load(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    found = problems(tag, versions(), changelog, [path.name for path in (folder / "fragments").glob("*.y*ml")])
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.build.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    changelog = commands.add_parser("changelog", help="write CHANGELOG.md from the fragments")
    changelog.add_argument("--check", action="store_true", help="fail if CHANGELOG.md would change")
    checked = commands.add_parser("check", help="check whether TAG may be released from this tree")
    checked.add_argument("tag", metavar="TAG", help="v0.1.0")
    given = parser.parse_args(argv)
    return check_tag(given.tag) if given.command == "check" else write_changelog(check=given.check)


if __name__ == "__main__":
    sys.exit(main())
