"""The build context: all that a Dockerfile copies, and the key that tells whether anything of it has changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from devtools.build.images import wheels
from devtools.build.images.definition import Definition, Source, WheelFile
from devtools.build.images.errors import ImagesError
from devtools.paths import ROOT
from devtools.testbed.base import gobuild
from devtools.testbed.base.cache import content_key

LABEL = "dljob.operator/content"
"""The label that holds an image's content key."""
BASE_IMAGE = "BASE_IMAGE"
"""The variable that names another base image, for an image whose base is not made from Debian's packages alone."""


def key(definition: Definition, machine: str | None = None, root: Path = ROOT) -> str:
    """Changes with the image's folder, its base, its sources, and the code that puts them together."""
    trees = [
        definition.folder,
        definition.dockerfile,
        definition.base.file,
        Path(__file__),
        Path(__file__).with_name("bases.py"),
    ]
    for origin in (source.origin for source in (*definition.sources, *definition.go_programs)):
        tree = root / origin
        if not tree.exists():
            raise ImagesError(f"{definition.folder / 'image.toml'}: {origin} does not exist in the repository")
        trees.append(tree)
    parts = [definition.name, wheels.PIP, machine or os.uname().machine]
    if definition.go_programs:
        parts.append("with Go" if gobuild.available() else "without Go")
    if definition.base.stand_in:
        trees.append(definition.folder.parent / definition.base.stand_in)
        parts.append(os.environ.get(BASE_IMAGE, ""))
    return content_key(*parts, trees=trees)


def link_target(definition: Definition, path: str) -> PurePosixPath:
    """Where in the context the link for one of the image's further program paths lies."""
    return PurePosixPath("links") / path.lstrip("/")


def needed(definition: Definition, machine: str) -> list[WheelFile]:
    """The single files out of wheels that this machine needs."""
    return [file for file in definition.from_wheels if not file.machines or machine in file.machines]


def assemble(
    definition: Definition,
    target: Path,
    cache: Path,
    machine: str | None = None,
    root: Path = ROOT,
    *,
    python: str = "",
) -> None:
    """Fill the empty folder ``target``; downloads what the cache does not have.

    The wheels are for ``python``, or for the version of the definition's base. That of a stand-in may be another.
    """
    machine = machine or os.uname().machine
    python = python or definition.base.python
    shutil.copyfile(definition.dockerfile, target / "Dockerfile")
    for source in definition.sources:
        _copy(root / source.origin, target / source.to)
    for program in definition.go_programs:
        place = target / program.to
        place.parent.mkdir(parents=True, exist_ok=True)
        if gobuild.available():
            shutil.copy(go_program(program, cache, root), place)
    if definition.requirements:
        _wheels(definition.requirements, target / "wheels", cache, python, machine)
    for file in needed(definition, machine):
        found = wheels.download(cache, [file.requirement], file.python or python, machine, sdist=file.sdist)
        wheels.extract(found, file.member, target / file.to)
    (target / "links").mkdir()
    for path in definition.programs:
        link = target / link_target(definition, path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(definition.program)


def go_program(program: Source, cache: Path, root: Path = ROOT) -> Path:
    """The compiled program in the cache. Raises ClusterError without Go, or with the compiler's errors."""
    module = root / program.origin
    name = program.to.name
    return gobuild.build(cache, module.parent, gobuild.Program(module.name, {".": name})) / name


def _copy(origin: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_dir():
        shutil.copytree(origin, place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copyfile(origin, place)


def _wheels(requirements: Path, place: Path, cache: Path, python: str, machine: str) -> None:
    pinned = wheels.pins(requirements.read_text(), python)
    place.mkdir()
    for group in (pinned, (wheels.PIP,)):
        for wheel in wheels.download(cache, group, python, machine).iterdir():
            shutil.copyfile(wheel, place / wheel.name)
    (place / "requirements.txt").write_text("".join(f"{pin}\n" for pin in pinned))
