"""Extracts the collections of requirements.yml from the PyPI package ``ansible``, so that Galaxy is not needed.

Installing the whole package would add a hundred collections, 600 MB, where two are needed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from devtools.paths import ROOT
from devtools.testbed.base.cache import content_key

PACKAGE = "ansible==14.5.0"
"""The newest release; requirements.yml pins the collection versions that it contains, and each says what it needs."""


class DependencyError(Exception):
    """A collection is not available; the message names it and the fix."""


def wanted() -> dict[str, str]:
    """Name to version of every collection in requirements.yml."""
    document = yaml.safe_load((ROOT / "requirements.yml").read_text(encoding="utf-8"))
    return {entry["name"]: str(entry["version"]) for entry in document["collections"]}


def install(cache: Path, site: Path | None = None) -> Iterator[str]:
    """Install the collections into this environment, and yield a line for each one that was missing."""
    site = site or Path(sysconfig.get_path("purelib"))
    missing = {name: version for name, version in wanted().items() if _version(site, name) != version}
    if not missing:
        return
    unpacked = _unpacked(cache)
    for name, version in missing.items():
        found = _version(unpacked, name)
        if found != version:
            raise DependencyError(
                f"requirements.yml wants {name} {version}, and {PACKAGE} has {found or 'none'}: "
                "change either version (PACKAGE is in hack/devtools/build/collection/dependencies.py)"
            )
        target = _folder(site, name)
        shutil.rmtree(target, ignore_errors=True)
        # one of the files has the version: an interrupted copy, or a full disk, must not leave it without others
        partial = target.with_name(f"{target.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(_folder(unpacked, name), partial)
        partial.rename(target)
        yield f"{name} {version}"


def _unpacked(cache: Path) -> Path:
    """The folder with those collections, created if it is missing."""
    folder = cache / "collections" / content_key(PACKAGE, *sorted(wanted()))
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        # the package needs the Python of its ansible-core, the collections in it do not
        pip += ["--no-deps", "--ignore-requires-python", "--only-binary=:all:"]
        subprocess.run([*pip, "--dest", scratch, PACKAGE], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        made = Path(scratch) / "made"
        prefixes = tuple(f"ansible_collections/{name.replace('.', '/')}/" for name in wanted())
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(made, [name for name in archive.namelist() if name.startswith(prefixes)])
        if not folder.is_dir():  # another checkout may have created it meanwhile
            made.rename(folder)
    return folder


def _folder(root: Path, name: str) -> Path:
    return root / "ansible_collections" / Path(*name.split("."))


def _version(root: Path, name: str) -> str | None:
    manifest = _folder(root, name) / "MANIFEST.json"
    if not manifest.is_file():
        return None
    return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
