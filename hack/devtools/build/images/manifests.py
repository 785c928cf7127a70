"""The images that manifests use, and the programs that they start in them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devtools.build.images.definition import Definition
from devtools.build.images.errors import ImagesError
from devtools.paths import ROOT

VARIABLE = "DLJOB_MANIFESTS"
OWN_FOLDER = ROOT / "tests" / "manifests"
"""This project's own manifests in the API flavors of the early operators."""
UPSTREAM_FOLDER = ROOT.parent / "shared" / "manifests"
"""Default folder of the upstream manifests, which are not part of this project; ``VARIABLE`` overrides it."""


@dataclass(frozen=True)
class Use:
    """One container of one job: the verbatim image name and its command."""

    manifest: str
    kind: str
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""


def containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every container below ``node`` that has an image: in all API flavors a pod template lists ``containers``."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("containers", "initContainers") and isinstance(value, list):
                yield from (c for c in value if isinstance(c, Mapping) and isinstance(c.get("image"), str))
            else:
                yield from containers(value)
    elif isinstance(node, list):
        for value in node:
            yield from containers(value)


def uses_in(manifest: str, documents: Iterable[Any]) -> list[Use]:
    """The distinct uses in the documents of one manifest, in their order."""
    found = []
    for document in documents:
        if not isinstance(document, Mapping):
            continue
        for container in containers(document):
            found.append(
                Use(
                    manifest=manifest,
                    kind=str(document.get("kind", "")),
                    image=container["image"],
                    command=tuple(map(str, container.get("command") or ())),
                    args=tuple(map(str, container.get("args") or ())),
                    working_dir=str(container.get("workingDir") or ""),
                )
            )
    return list(dict.fromkeys(found))


def folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """The folders to read: this project's own and, last, $DLJOB_MANIFESTS or the upstream manifests."""
    text = (os.environ if environment is None else environment).get(VARIABLE, "")
    if text and not Path(text).is_dir():
        raise ImagesError(f"{VARIABLE}: {text} is not a folder", f"correct or unset {VARIABLE}")
    named = Path(text) if text else UPSTREAM_FOLDER
    return [folder for folder in (OWN_FOLDER, named) if folder.is_dir()]


def read(places: Iterable[Path]) -> list[Use]:
    """The uses in all manifests (``*.yaml``, ``*.yml``) of the folders. Raises ImagesError for invalid YAML."""
    found: list[Use] = []
    for place in places:
        for file in sorted((*place.glob("*.yaml"), *place.glob("*.yml"))):
            try:
                found += uses_in(file.name, yaml.safe_load_all(file.read_text(encoding="utf-8")))
            except yaml.YAMLError as error:
                raise ImagesError(f"{file}: {error}", "correct the manifest, or move it elsewhere") from error
    return list(dict.fromkeys(found))


def names_for(definition: Definition, uses: Iterable[Use]) -> list[str]:
    """All names of an image: its own, and those that manifests of its kinds use."""
    asked = (use.image for use in uses if use.kind in definition.kinds)
    return list(dict.fromkeys((*definition.names, *asked)))


def program_called(use: Use) -> str:
    """The absolute path of the Python program that the container starts; "" if it starts the image's own program."""
    for word in (*use.command, *use.args):
        if word.endswith(".py"):
            return posixpath.normpath(posixpath.join(use.working_dir or "/", word))
    return ""


def not_offered(definition: Definition, uses: Iterable[Use]) -> list[str]:
    """One sentence for each use of the image, by a foreign name, with a program that the image does not have."""
    offered = {definition.program, *definition.programs}
    problems = []
    for use in uses:
        if use.kind not in definition.kinds or use.image in definition.names:
            continue
        called = program_called(use)
        if (called or use.command) and called not in offered:
            what = called or " ".join(use.command)
            problems.append(
                f"{use.manifest} starts {what} in {use.image}, which the image {definition.name} does not have"
            )
    return list(dict.fromkeys(problems))
