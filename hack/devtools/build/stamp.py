"""Writes the version (``VERSION``) and the addresses (pyproject.toml) to the files that cannot read them.

Why not bump-my-version: it goes from one version to the next, while here VERSION decides. It does not check for stale
files, knows nothing of addresses, and would bring 12 packages where this module has 100 lines.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devtools.build import generated
from devtools.paths import ROOT

URLS = ("Homepage", "Repository", "Documentation", "Issues")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(a|b|rc)\.(0|[1-9]\d*))?", re.ASCII)
"""The only versions of this project, for a full match: Galaxy, Helm and OLM take semantic versions, PyPI takes those of
PEP 440, image tags take no build metadata, and these are all of that."""
_CHART = "deploy/helm/dljob-operator/Chart.yaml"
_EACH_LINK = r"\]\((https://[^)\s]+)/(?:blob|raw)/main/"
"""PyPI and Galaxy show the README without the files beside it, so its links are absolute."""
PLACES = (
    ("src/dljob_operator/__init__.py", r'^__version__ = "(.*)"$', "version"),
    ("client/src/dljob/__init__.py", r'^__version__ = "(.*)"$', "version"),
    ("client/krew.yaml", r"^  version: v(.*)$", "version"),
    ("client/krew.yaml", r"^  homepage: (.*)$", "Homepage"),
    ("client/krew.yaml", r"^ +uri: (.*)/releases/download/", "Repository"),
    ("client/krew.yaml", r"^ +uri: .*/releases/download/v(.*)/", "version"),
    ("galaxy.yml", r"^version: (.*)$", "version"),
    ("galaxy.yml", r"^repository: (.*)$", "Repository"),
    ("galaxy.yml", r"^documentation: (.*)$", "Documentation"),
    ("galaxy.yml", r"^homepage: (.*)$", "Homepage"),
    ("galaxy.yml", r"^issues: (.*)$", "Issues"),
    (_CHART, r"^version: (.*)$", "version"),
    (_CHART, r"^appVersion: (.*)$", "version"),
    (_CHART, r"^home: (.*)$", "Homepage"),
    (_CHART, r"^sources:\n  - (.*)$", "Repository"),
    ("deploy/kustomize/base/deployment.yaml", r"^ +image: dljob/operator:(.*)$", "version"),
    ("deploy/kustomize/default/kustomization.yaml", r"^# +newTag: (.*)$", "version"),
    ("build/images/operator/image.toml", r'^names = \["dljob/operator:(.*)"\]$', "version"),
    ("README.md", _EACH_LINK, "Repository"),
    ("README.md", r"the image `dljob/operator:([^`]+)`", "version"),
    ("docs/deployment.md", r"IMG=registry\.example\.com/dljob-operator:(\S+)", "version"),
)
"""File, pattern, and what replaces the pattern's group. Each matches once, and :data:`_EACH_LINK` at least once.
The OLM bundle is not listed: `make bundle` generates it from galaxy.yml and the Deployment."""


class StampError(ValueError):
    """A source or a file to stamp is invalid; the message names it and the fix."""


@dataclass(frozen=True)
class Project:
    version: str
    urls: Mapping[str, str]


def parse(version: str, pyproject: str) -> Project:
    """The project from the texts of ``VERSION`` and pyproject.toml. Raises StampError if one is invalid."""
    version = version.strip()
    if not VERSION.fullmatch(version):
        raise StampError(f"VERSION: {version!r} is not a version; write 1.2.3, or 1.2.3-rc.1 for a pre-release")
    urls: Mapping[str, str] = tomllib.loads(pyproject)["project"].get("urls", {})
    for name in URLS:
        if not urls.get(name, "").startswith("https://"):
            raise StampError(f"pyproject.toml: project.urls.{name} is missing; set it to an https:// address")
    return Project(version, urls)


def read(root: Path = ROOT) -> Project:
    return parse(*((root / name).read_text(encoding="utf-8") for name in ("VERSION", "pyproject.toml")))


def texts(root: Path = ROOT) -> dict[str, str]:
    """The current text of each file in PLACES."""
    return {file: (root / file).read_text(encoding="utf-8") for file, _, _ in PLACES}


def stamped(current: Mapping[str, str], project: Project) -> dict[str, str]:
    """The new texts of the files with these texts. Raises StampError."""
    new = dict(current)
    for file, pattern, source in PLACES:
        value = project.version if source == "version" else project.urls[source]
        found = list(re.finditer(pattern, new[file], re.MULTILINE))
        if not found or (len(found) > 1 and pattern != _EACH_LINK):
            raise StampError(
                f"{file}: {len(found)} lines match {pattern!r}, not one: fix the file, or PLACES in "
                "hack/devtools/build/stamp.py"
            )
        for match in reversed(found):
            start, end = match.span(1)
            new[file] = new[file][:start] + value + new[file][end:]
    return new


def wanted() -> generated.Wanted:
    return generated.Wanted({ROOT / file: text for file, text in stamped(texts(), read()).items()})


if __name__ == "__main__":
    sys.exit(generated.main("stamp", __doc__, "version", wanted))
