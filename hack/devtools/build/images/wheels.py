"""Downloads wheels and source archives on the host and caches them by content, so that builds need no registry."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from packaging.markers import Marker

from devtools.build.images.errors import ImagesError
from devtools.testbed.base import shell
from devtools.testbed.base.cache import cache_entry, content_key

PIP = "pip==24.3.1"
"""Installs the wheels inside a build; it runs from its own wheel, so a base image does not need pip."""
GLIBC_TAGS = ("2_31", "2_28", "2_27", "2_24", "2_17")
"""glibc versions of wheel tags, none newer than the oldest base's (Debian 11: 2.31)."""


def pins(requirements: str, python: str) -> tuple[str, ...]:
    """The requirements for this version of Python (``3.11``), without comments, markers and empty lines.

    pip would read the markers for the Python that it runs on. ImagesError for one that is not pinned with ``==``.
    """
    found = []
    for line in requirements.splitlines():
        requirement, _, marker = (part.strip() for part in line.partition("#")[0].partition(";"))
        if not requirement:
            continue
        if "==" not in requirement:
            raise ImagesError(
                f"{requirement}: not a pinned requirement", "write NAME==VERSION, so that the image is reproducible"
            )
        if not marker or Marker(marker).evaluate({"python_version": python}):
            found.append(requirement)
    return tuple(found)


def download_command(
    requirements: Sequence[str], python: str, machine: str, target: Path, *, sdist: bool = False
) -> list[str]:
    """The pip command that downloads wheels for the image's Python and machine instead of the running ones.

    With ``sdist`` it downloads source archives.
    """
    tags = [f"manylinux_{version}_{machine}" for version in GLIBC_TAGS] + [f"manylinux2014_{machine}"]
    abi = f"cp{python.replace('.', '')}"
    return [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-binary=:all:" if sdist else "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
        *(f"--abi={name}" for name in (abi, "abi3", "none")), *(f"--platform={tag}" for tag in (*tags, "any")),
        f"--dest={target}", *requirements,
    ]  # fmt: skip


def folder(cache: Path, requirements: Sequence[str], python: str, machine: str, *, sdist: bool = False) -> Path:
    """The cache folder of these wheels, or of their source archives."""
    return cache / ("sdists" if sdist else "wheels") / content_key(python, machine, *requirements)


def download(
    cache: Path, requirements: Sequence[str], python: str, machine: str | None = None, *, sdist: bool = False
) -> Path:
    """The folder with the wheels of the pinned ``requirements``, downloaded unless it is cached.

    With ``sdist`` it has their source archives: for a package of pure Python that was published without a wheel.
    """
    machine = machine or os.uname().machine
    target = folder(cache, requirements, python, machine, sdist=sdist)

    def make(partial: Path) -> None:
        shell.run(
            download_command(requirements, python, machine, partial, sdist=sdist),
            fix="check that pip can reach its package index, and that each pin has a wheel for this machine and Python",
        )

    return cache_entry(target, make)


def matching(names: Sequence[str], pattern: str) -> list[str]:
    """The names in a wheel that match the pattern (``*`` does not cross a folder)."""
    depth = pattern.count("/")
    return [name for name in names if name.count("/") == depth and fnmatch.fnmatchcase(name, pattern)]


def extract(downloads: Path, pattern: str, target: Path) -> None:
    """Copy the one file that matches ``pattern``, in the only archive in ``downloads``, to ``target``.

    A pattern that ends with ``/`` is the name of a folder, whose content is copied into the folder ``target``.
    """
    (archive,) = (path for path in downloads.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    with _opened(archive) as (names, read):
        if pattern.endswith("/"):
            found = {name: target / name.removeprefix(pattern) for name in names if name.startswith(pattern)}
            if not found:
                raise ImagesError(f"{archive.name}: no file in {pattern}", f"find the new name in {archive}")
        else:
            one = matching(names, pattern)
            if len(one) != 1:
                raise ImagesError(
                    f"{archive.name}: {len(one)} files match {pattern}, not one", f"find the new name in {archive}"
                )
            found = {one[0]: target}
        for name, place in found.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            with read(name) as source, place.open("wb") as copy:
                shutil.copyfileobj(source, copy)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[list[str], Callable[[str], IO[bytes]]]]:
    """The names of the archive's files, and a function that opens one of them."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            yield [name for name in wheel.namelist() if not name.endswith("/")], wheel.open
        return
    with tarfile.open(path) as sdist:
        # everything in a source archive is in one folder, NAME-VERSION
        members = {member.name.partition("/")[2]: member for member in sdist.getmembers() if member.isfile()}

        def read(name: str) -> IO[bytes]:
            opened = sdist.extractfile(members[name])
            assert opened is not None, f"{name} is a regular file"
            return opened

        yield list(members), read
