"""What an image is made of, as its ``image.toml`` and its base's file say it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from devtools.cluster.settings import REPO_ROOT
from devtools.images.errors import ImagesError

IMAGES_DIR = REPO_ROOT / "build" / "images"
DEFINITION = "image.toml"
BASES = "bases"


@dataclass(frozen=True)
class Debian:
    """How a base is made from Debian: release, packages (with what they depend on), and a shell script after them."""

    release: str
    packages: tuple[str, ...]
    setup: str = ""
    """Gets the root file system's path as ``$1``."""


@dataclass(frozen=True)
class Base:
    """What an image starts from: an image to pull or, where that is impossible, the same made from Debian.

    Without an ``image`` it is always made; with ``stand_in`` an image of ours takes its place, which is built for that.
    """

    name: str
    file: Path
    image: str
    debian: Debian | None
    python: str = ""
    """The Python version (``3.11``) that wheels are chosen for; "" if the base has none."""
    stand_in: str = ""


@dataclass(frozen=True)
class Source:
    """A file or folder of the repository, and its place in the build context."""

    origin: PurePosixPath
    to: PurePosixPath


@dataclass(frozen=True)
class WheelFile:
    """One file out of a wheel (``member`` is a glob that one name must match) or, with a ``/`` at its end, one folder,
    and its place in the build context."""

    requirement: str
    member: str
    to: PurePosixPath
    machines: tuple[str, ...] = ()
    """The machines (``x86_64``) that need it; empty means all."""


@dataclass(frozen=True)
class Definition:
    """One image."""

    name: str
    folder: Path
    base: Base
    names: tuple[str, ...]
    """The names that are this project's own; the first one is what Docker knows the image by."""
    kinds: tuple[str, ...] = ()
    """Job kinds whose manifests' images this image stands in for."""
    program: str = ""
    """The program's path in the image; what its entrypoint starts."""
    programs: tuple[str, ...] = ()
    """Further paths under which manifests call that program."""
    sources: tuple[Source, ...] = ()
    from_wheels: tuple[WheelFile, ...] = ()
    dockerfile_path: str = "Dockerfile"
    """From the image's folder."""
    on_request: bool = False
    """Built only if it is named."""

    @property
    def dockerfile(self) -> Path:
        return self.folder / self.dockerfile_path

    @property
    def requirements(self) -> Path | None:
        """The pins of what is installed, None if nothing is."""
        file = self.folder / "requirements.txt"
        return file if file.is_file() else None


def _table(data: Mapping[str, Any], allowed: type, renamed: Mapping[str, str], place: str) -> dict[str, Any]:
    """The table's values by field of ``allowed``; lists become tuples. An unknown key is refused by name."""
    known = {field.name for field in fields(allowed)}
    values = {}
    for key, value in data.items():
        name = renamed.get(key, key)
        if name not in known or key in renamed.values():
            raise ImagesError(f"{place}: unknown key {key!r}", f"known are {', '.join(sorted(known))}")
        values[name] = tuple(value) if isinstance(value, list) else value
    return values


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ImagesError(f"{file}: no such file") from None
    except tomllib.TOMLDecodeError as error:
        raise ImagesError(f"{file}: {error}") from error


def load_base(name: str, images_dir: Path = IMAGES_DIR) -> Base:
    """The base ``bases/<name>.toml``; ImagesError names what is wrong with it."""
    file = images_dir / BASES / f"{name}.toml"
    data = _read(file)
    try:
        given = data.pop("debian", None if data.get("stand_in") else {})
        debian = None if given is None else Debian(**_table(given, Debian, {}, f"{file}: debian"))
        return Base(name=name, file=file, debian=debian, **_table(data, Base, {}, str(file)))
    except TypeError as error:
        raise ImagesError(f"{file}: {error}") from error


def load(name: str, images_dir: Path = IMAGES_DIR) -> Definition:
    """The image ``<name>/image.toml``; ImagesError names what is wrong with it."""
    folder = images_dir / name
    file = folder / DEFINITION
    data = _read(file)
    try:
        base = load_base(data.pop("base", ""), images_dir)
        sources = tuple(
            Source(PurePosixPath(item["origin"]), PurePosixPath(item["to"]))
            for item in (_table(i, Source, {"from": "origin"}, f"{file}: sources") for i in data.pop("sources", ()))
        )
        wheel_files = tuple(
            WheelFile(**{**item, "to": PurePosixPath(item["to"])})
            for item in (_table(i, WheelFile, {}, f"{file}: from_wheels") for i in data.pop("from_wheels", ()))
        )
        definition = Definition(
            name=name, folder=folder, base=base, sources=sources, from_wheels=wheel_files,
            **_table(data, Definition, {"dockerfile": "dockerfile_path"}, str(file)),
        )  # fmt: skip
    except (TypeError, KeyError) as error:
        raise ImagesError(f"{file}: {error}") from error
    _check(definition, file)
    return definition


def _check(definition: Definition, file: Path) -> None:
    if not definition.names:
        raise ImagesError(f"{file}: names is empty", "give the image a name of its own, like dljob/<name>:1")
    if definition.programs and not definition.program:
        raise ImagesError(f"{file}: programs without program", "name the file that those paths lead to")
    for path in (definition.program, *definition.programs):
        if path and not path.startswith("/"):
            raise ImagesError(f"{file}: {path} is not an absolute path", "programs are paths in the image")
    if (definition.requirements or definition.from_wheels) and not definition.base.python:
        raise ImagesError(f"{file}: wheels need a Python version", f"set python in {definition.base.file}")


def available(images_dir: Path = IMAGES_DIR) -> list[str]:
    """The names of all images, sorted."""
    return sorted(file.parent.name for file in images_dir.glob(f"*/{DEFINITION}"))


def load_all(names: list[str] | tuple[str, ...] = (), images_dir: Path = IMAGES_DIR) -> list[Definition]:
    """The named images, all but those on request if none is named.

    ImagesError if one does not exist or two share a name or kind.
    """
    known = available(images_dir)
    if unknown := sorted(set(names) - set(known)):
        raise ImagesError(f"no image {', '.join(unknown)}", f"there are {', '.join(known)}")
    every = [load(name, images_dir) for name in known]
    owners: dict[str, str] = {}
    for definition in every:
        for claim in (*definition.names, *definition.kinds):
            if claim in owners:
                raise ImagesError(f"both {owners[claim]} and {definition.name} claim {claim}", "take it out of one")
            owners[claim] = definition.name
    return [one for one in every if (one.name in names if names else not one.on_request)]
