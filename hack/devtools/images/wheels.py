"""Downloads wheels on the host and caches them by content, so that no image build needs a package registry."""

from __future__ import annotations

import fnmatch
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from devtools.cluster import shell
from devtools.cluster.content_key import content_key
from devtools.images.errors import ImagesError

PIP = "pip==24.3.1"
"""Installs the wheels inside a build; it runs from its own wheel, so a base image does not need pip."""
GLIBC_TAGS = ("2_31", "2_28", "2_27", "2_24", "2_17")
"""glibc versions of wheel tags, none newer than the oldest base's (Debian 11: 2.31)."""


def pins(requirements: str) -> tuple[str, ...]:
    """The requirements without comments and empty lines; ImagesError for one that is not pinned with ``==``."""
    found = []
    for line in requirements.splitlines():
        requirement = line.partition("#")[0].strip()
        if not requirement:
            continue
        if "==" not in requirement:
            raise ImagesError(
                f"{requirement}: not a pinned requirement", "write NAME==VERSION, so that the image is reproducible"
            )
        found.append(requirement)
    return tuple(found)


def download_command(requirements: Sequence[str], python: str, machine: str, target: Path) -> list[str]:
    """The pip command that downloads wheels for the image's Python and machine instead of the running ones."""
    tags = [f"manylinux_{version}_{machine}" for version in GLIBC_TAGS] + [f"manylinux2014_{machine}"]
    abi = f"cp{python.replace('.', '')}"
    return [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
        *(f"--abi={name}" for name in (abi, "abi3", "none")), *(f"--platform={tag}" for tag in (*tags, "any")),
        f"--dest={target}", *requirements,
    ]  # fmt: skip


def folder(cache: Path, requirements: Sequence[str], python: str, machine: str) -> Path:
    """The cache folder of these wheels."""
    return cache / "wheels" / content_key(python, machine, *requirements)


def download(cache: Path, requirements: Sequence[str], python: str, machine: str | None = None) -> Path:
    """The folder with the wheels of the pinned ``requirements``, downloaded unless it is cached."""
    machine = machine or os.uname().machine
    target = folder(cache, requirements, python, machine)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        shell.run(
            download_command(requirements, python, machine, partial),
            fix="check that pip can reach its package index, and that each pin has a wheel for this machine and Python",
        )
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:  # another build has created it meanwhile
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def matching(names: Sequence[str], pattern: str) -> list[str]:
    """The names in a wheel that match the pattern (``*`` does not cross a folder)."""
    depth = pattern.count("/")
    return [name for name in names if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)]


def extract(wheels: Path, pattern: str, target: Path) -> None:
    """Copy the one file that matches ``pattern``, in the only wheel in ``wheels``, to ``target``.

    A pattern that ends with ``/`` is the name of a folder, whose content is copied into the folder ``target``.
    """
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        if pattern.endswith("/"):
            _extract_folder(archive, wheel.name, pattern, target)
            return
        found = matching(archive.namelist(), pattern)
        if len(found) != 1:
            raise ImagesError(
                f"{wheel.name}: {len(found)} files match {pattern}, not one",
                "find the new name with unzip -l",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(found[0]) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _extract_folder(archive: zipfile.ZipFile, wheel: str, folder: str, target: Path) -> None:
    found = [name for name in archive.namelist() if name.startswith(folder) and not name.endswith("/")]
    if not found:
        raise ImagesError(f"{wheel}: no file in {folder}", "find the new name with unzip -l")
    for name in found:
        place = target / name.removeprefix(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, place.open("wb") as copy:
            shutil.copyfileobj(source, copy)
