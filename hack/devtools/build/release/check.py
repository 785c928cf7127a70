"""The rules: pure functions over the tag, the version and the changelog's data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from devtools.build.stamp.project import VERSION


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
