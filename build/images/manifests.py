"""Which images manifests ask for, and how they call them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cluster.settings import REPO_ROOT

from images.definition import Definition
from images.errors import ImagesError

VARIABLE = "DLJOB_MANIFESTS"
DEFAULT_FOLDER = REPO_ROOT.parent / "shared" / "manifests"


@dataclass(frozen=True)
class Use:
    """One container of one job: the image by its verbatim name, and what it is told to run."""

    manifest: str
    kind: str
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""


def containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every container below ``node`` that has an image: whatever the dialect, a pod template lists ``containers``."""
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
    """What the documents of one manifest use, without repetitions, in their order."""
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


def folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """$DLJOB_MANIFESTS, else the usual folder beside the repository; None if that does not exist."""
    text = (os.environ if environment is None else environment).get(VARIABLE, "")
    if not text:
        return DEFAULT_FOLDER if DEFAULT_FOLDER.is_dir() else None
    if not Path(text).is_dir():
        raise ImagesError(f"{VARIABLE}: {text} is not a folder", f"correct or unset {VARIABLE}")
    return Path(text)


def read(place: Path | None) -> list[Use]:
    """What all manifests (``*.yaml``, ``*.yml``) in the folder use. One that is no YAML is an ImagesError."""
    found: list[Use] = []
    for file in sorted((*place.glob("*.yaml"), *place.glob("*.yml"))) if place else ():
        try:
            found += uses_in(file.name, yaml.safe_load_all(file.read_text()))
        except yaml.YAMLError as error:
            raise ImagesError(f"{file}: {error}", "mend the manifest, or leave it out") from error
    return list(dict.fromkeys(found))


def names_for(definition: Definition, uses: Iterable[Use]) -> list[str]:
    """All names of an image: its own, and those that manifests of its kinds ask for."""
    asked = (use.image for use in uses if use.kind in definition.kinds)
    return list(dict.fromkeys((*definition.names, *asked)))


def program_called(use: Use) -> str:
    """The absolute path of the Python program that the container starts; "" if it starts the image's own program."""
    for word in (*use.command, *use.args):
        if word.endswith(".py"):
            return posixpath.normpath(posixpath.join(use.working_dir or "/", word))
    return ""


def not_offered(definition: Definition, uses: Iterable[Use]) -> list[str]:
    """One sentence for each use of the image under a foreign name that calls a program it does not have."""
    offered = {definition.program, *definition.programs}
    problems = []
    for use in uses:
        if use.kind not in definition.kinds or use.image in definition.names:
            continue
        called = program_called(use)
        if (called or use.command) and called not in offered:
            what = called or " ".join(use.command)
            problems.append(
                f"{use.manifest} starts {what} in {use.image}, which the image {definition.name} does not offer"
            )
    return list(dict.fromkeys(problems))
