"""Every file of the bundle with the text that it should have; the definitions are links to where they are kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from devtools.crds.block_style import dumper
from devtools.olm import csv
from devtools.olm.sources import ROOT, Sources, definition_files

BUNDLE = ROOT / "deploy" / "olm"
DOCKERFILE = ROOT / "build" / "bundle.Dockerfile"
CHANNEL = "candidate"
"""Of OLM's three customary names (candidate, fast, stable) the one for what has yet to prove itself."""

_NOTE = "# Written by `make bundle`: change what it is written from instead.\n"
_PREFIX = "operators.operatorframework.io.bundle"


def labels() -> dict[str, str]:
    """What tells a catalog where in the bundle is what. The image's labels say the same."""
    return {
        f"{_PREFIX}.mediatype.v1": "registry+v1",
        f"{_PREFIX}.manifests.v1": "manifests/",
        f"{_PREFIX}.metadata.v1": "metadata/",
        f"{_PREFIX}.package.v1": csv.PACKAGE,
        f"{_PREFIX}.channels.v1": CHANNEL,
        f"{_PREFIX}.channel.default.v1": CHANNEL,
    }


def wanted(sources: Sources) -> dict[Path, str]:
    budget = sources.disruption_budget
    manifests = BUNDLE / "manifests"
    return {
        manifests / f"{csv.PACKAGE}.clusterserviceversion.yaml": _render(csv.make(sources)),
        manifests / f"{csv.PACKAGE}_policy_v1_poddisruptionbudget.yaml": _render(budget),
        BUNDLE / "metadata" / "annotations.yaml": _render({"annotations": labels()}),
        DOCKERFILE: _dockerfile(),
    }


def links() -> dict[Path, Path]:
    """Each link with what it points at."""
    folder = BUNDLE / "manifests"
    return {folder / path.name: Path(os.path.relpath(path, folder)) for path in definition_files()}


def _dockerfile() -> str:
    lines = "".join(f"LABEL {key}={value}\n" for key, value in labels().items())
    return (
        _NOTE
        + "# The bundle's image: nothing runs in it, OLM reads it. To build it:\n"
        + "#   git archive HEAD | docker build -f build/bundle.Dockerfile -t dljob-operator-bundle -\n"
        + "FROM scratch\n\n"
        + lines
        + "\n# the definitions from where they are: the bundle's own are links, which would lead nowhere in the image\n"
        + f"COPY deploy/olm/manifests/{csv.PACKAGE}* /manifests/\n"
        + "COPY crds/*.yaml /manifests/\n"
        + "COPY deploy/olm/metadata /metadata/\n"
    )


_Dumper = dumper(lambda text: "|" if "\n" in text else ">" if len(text) > 60 and " " in text else None)


def _render(document: Mapping[str, Any]) -> str:
    dumped = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
    # the mark comes first: OLM takes a file's first document, and a remark before the mark would be an empty one
    return f"---\n{_NOTE}{dumped}"
