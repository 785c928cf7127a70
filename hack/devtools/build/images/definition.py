"""An image's definition, read from its ``image.toml`` and its base's file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from devtools.build.images.errors import ImagesError
from devtools.paths import ROOT

IMAGES_DIR = ROOT / "build" / "images"
DEFINITION = "image.toml"
BASES = "bases"
FULL = "full"
"""The set of images that the longest tests need, beyond those of every run."""


@dataclass(frozen=True)
class Debian:
    """How to build a base from Debian: release, packages (with dependencies), and a shell script to run then."""

    release: str
    packages: tuple[str, ...]
    setup: str = ""
    """The script gets the root file system's path as ``$1``."""


@dataclass(frozen=True)
class Base:
    """A base image: pulled or, where that is impossible, built from Debian.

    Without ``image`` it is always built; with ``stand_in`` the image of that name in build/images replaces it.
    """

    name: str
    file: Path
    image: str
    debian: Debian | None
    python: str = ""
    """The Python version (``3.11``) for which wheels are selected; "" if the base has no Python."""
    stand_in: str = ""


@dataclass(frozen=True)
class Source:
    """A file or folder of the repository, and the place in the build context of it or of what is compiled from it."""

    origin: PurePosixPath
    to: PurePosixPath


@dataclass(frozen=True)
class WheelFile:
    """One file of a wheel (``member`` is a glob that matches exactly one name) or, with a trailing ``/``, one folder,
    and its place in the build context."""

    requirement: str
    member: str
    to: PurePosixPath
    machines: tuple[str, ...] = ()
    """The machines (``x86_64``) that need it; empty means all."""
    sdist: bool = False
    """Whether it is in a source archive: of a package of pure Python that was published without a wheel."""
    python: str = ""
    """The version of Python that the package asks for, where the file needs none so new; "" for the image's."""


@dataclass(frozen=True)
class Definition:
    """One image."""

    name: str
    folder: Path
    base: Base
    names: tuple[str, ...]
    """The project's own names; the first one is the image's name in Docker."""
    kinds: tuple[str, ...] = ()
    """Job kinds whose manifests' images this image replaces."""
    program: str = ""
    """The path of the program in the image that the entrypoint starts."""
    programs: tuple[str, ...] = ()
    """Further paths by which manifests call that program."""
    sources: tuple[Source, ...] = ()
    from_wheels: tuple[WheelFile, ...] = ()
    go_programs: tuple[Source, ...] = ()
    """Folders of Go modules, and the places of their programs.

    Without Go the context has only the folder of such a place: the image must do without the program.
    """
    dockerfile_path: str = "Dockerfile"
    """Relative to the image's folder."""
    on_request: bool = False
    """Whether the image is built only if it is named explicitly."""
    set: str = ""
    """``FULL``: the image is built only if it is named, or with all of that set."""

    @property
    def dockerfile(self) -> Path:
        return self.folder / self.dockerfile_path

    @property
    def requirements(self) -> Path | None:
        """The file with the pinned requirements, None if there is none."""
        file = self.folder / "requirements.txt"
        return file if file.is_file() else None


def _table(data: Mapping[str, Any], allowed: type, renamed: Mapping[str, str], place: str) -> dict[str, Any]:
    """The table's values by field of ``allowed``; lists become tuples. Raises ImagesError for an unknown key."""
    known = {field.name for field in fields(allowed)}
    values = {}
    for key, value in data.items():
        name = renamed.get(key, key)
        if name not in known or key in renamed.values():
            raise ImagesError(f"{place}: unknown key {key!r}", f"known are {', '.join(sorted(known))}")
        values[name] = tuple(value) if isinstance(value, list) else value
    return values


def _sources(tables: Iterable[Mapping[str, Any]], place: str) -> tuple[Source, ...]:
    found = (_table(table, Source, {"from": "origin"}, place) for table in tables)
    return tuple(Source(PurePosixPath(one["origin"]), PurePosixPath(one["to"])) for one in found)


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
        sources, go_programs = (_sources(data.pop(key, ()), f"{file}: {key}") for key in ("sources", "go_programs"))
        wheel_files = tuple(
            WheelFile(**{**item, "to": PurePosixPath(item["to"])})
            for item in (_table(i, WheelFile, {}, f"{file}: from_wheels") for i in data.pop("from_wheels", ()))
        )
        definition = Definition(
            name=name, folder=folder, base=base, sources=sources, from_wheels=wheel_files, go_programs=go_programs,
            **_table(data, Definition, {"dockerfile": "dockerfile_path"}, str(file)),
        )  # fmt: skip
    except (TypeError, KeyError) as error:
        raise ImagesError(f"{file}: {error}") from error
    _check(definition, file)
    return definition


def _check(definition: Definition, file: Path) -> None:
    if definition.set not in ("", FULL):
        raise ImagesError(f"{file}: there is no set {definition.set!r}", f"set is {FULL}, or left out")
    if not definition.names:
        raise ImagesError(f"{file}: names is empty", "give the image a name of its own, like dljob/<name>:1")
    if definition.programs and not definition.program:
        raise ImagesError(f"{file}: programs without program", "set program to the file that these paths link to")
    for path in (definition.program, *definition.programs):
        if path and not path.startswith("/"):
            raise ImagesError(f"{file}: {path} is not an absolute path", "programs are paths in the image")
    if (definition.requirements or definition.from_wheels) and not definition.base.python:
        raise ImagesError(f"{file}: wheels need a Python version", f"set python in {definition.base.file}")


def available(images_dir: Path = IMAGES_DIR) -> list[str]:
    """The names of all images, sorted."""
    return sorted(file.parent.name for file in images_dir.glob(f"*/{DEFINITION}"))


def load_all(
    names: list[str] | tuple[str, ...] = (), images_dir: Path = IMAGES_DIR, *, full: bool = False
) -> list[Definition]:
    """The named images; if none is named, all except those on request and, unless ``full``, of the set FULL.

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
                raise ImagesError(
                    f"both {owners[claim]} and {definition.name} claim {claim}", "remove it from one of them"
                )
            owners[claim] = definition.name
    if names:
        return [one for one in every if one.name in names]
    return [one for one in every if not one.on_request and (full or one.set != FULL)]
