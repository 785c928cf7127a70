"""The places that repeat the version and the addresses, and their replacement. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from devtools.build.stamp.project import Project, StampError


@dataclass(frozen=True)
class Place:
    """A line of a file. ``value`` replaces the pattern's single group."""

    file: str
    pattern: str
    value: Callable[[Project], str]
    repeated: bool = False
    """The pattern matches any number of times, at least once, and each match is replaced."""


def _version(project: Project) -> str:
    return project.version


def _url(name: str) -> Callable[[Project], str]:
    return lambda project: project.urls[name]


_CHART = "deploy/helm/dljob-operator/Chart.yaml"

# The OLM bundle is not listed: `make bundle` generates it from galaxy.yml and the Deployment.
PLACES = (
    Place("src/dljob_operator/__init__.py", r'^__version__ = "(.*)"$', _version),
    Place("galaxy.yml", r"^version: (.*)$", _version),
    Place("galaxy.yml", r"^repository: (.*)$", _url("Repository")),
    Place("galaxy.yml", r"^documentation: (.*)$", _url("Documentation")),
    Place("galaxy.yml", r"^homepage: (.*)$", _url("Homepage")),
    Place("galaxy.yml", r"^issues: (.*)$", _url("Issues")),
    Place(_CHART, r"^version: (.*)$", _version),
    Place(_CHART, r"^appVersion: (.*)$", _version),
    Place(_CHART, r"^home: (.*)$", _url("Homepage")),
    Place(_CHART, r"^sources:\n  - (.*)$", _url("Repository")),
    Place("deploy/kustomize/base/deployment.yaml", r"^ +image: dljob/operator:(.*)$", _version),
    Place("deploy/kustomize/default/kustomization.yaml", r"^# +newTag: (.*)$", _version),
    Place("build/images/operator/image.toml", r'^names = \["dljob/operator:(.*)"\]$', _version),
    # PyPI and Galaxy show the README without the files beside it, so its links are absolute
    Place("README.md", r"\]\((https://[^)\s]+)/(?:blob|raw)/main/", _url("Repository"), repeated=True),
    Place("README.md", r"the image `dljob/operator:([^`]+)`", _version),
    Place("docs/deployment.md", r"IMG=registry\.example\.com/dljob-operator:(\S+)", _version),
)


def stamped(texts: Mapping[str, str], project: Project) -> dict[str, str]:
    """The files' new texts. ``texts`` has the current text of each file in PLACES."""
    new = dict(texts)
    for place in PLACES:
        new[place.file] = _replaced(new[place.file], place, project)
    return new


def _replaced(text: str, place: Place, project: Project) -> str:
    found = list(re.finditer(place.pattern, text, re.MULTILINE))
    if not found or (len(found) > 1 and not place.repeated):
        raise StampError(
            f"{place.file}: {len(found)} lines match {place.pattern!r}, not one: fix the file, or the entry in "
            "hack/devtools/build/stamp/places.py"
        )
    for match in reversed(found):
        start, end = match.span(1)
        text = text[:start] + place.value(project) + text[end:]
    return text
