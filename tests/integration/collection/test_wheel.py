"""The wheel's content, and that building it leaves no files behind."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from devtools.build.collection import tarball, wheel
from devtools.paths import known_files

ROOT = Path(__file__).resolve().parents[3]
COLLECTION = "ansible_collections/dljob/operator/"
TARBALL_ALONE = ("CHANGELOG.md", "FILES.json", "MANIFEST.json", "changelogs/", "docs/")
"""Files that ansible-galaxy writes, and documents to which the wheel's metadata links."""
WHEEL_ALONE = {"galaxy.yml"}
"""The collection's version file; the tarball has the version in MANIFEST.json."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it with the command of `make wheel`, which prints the paths of what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "devtools.build.collection", "wheel", "--into", str(folder)]
    env = {**os.environ, "PYTHONPATH": "hack"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("dljob_operator-*.whl")
    (client,) = folder.glob("dljob-*.whl")
    of_krew = folder / "dljob-krew.tar.gz", folder / "krew.yaml"
    assert done.stdout.splitlines() == [str(one) for one in (made, client, *of_krew)]
    return made


@pytest.fixture(scope="module")
def archive(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built)


def test_its_collection_is_the_tarballs(archive: zipfile.ZipFile, tmp_path: Path) -> None:
    with tarfile.open(tarball.build(tmp_path)) as tar:
        files = [member for member in tar.getmembers() if member.isfile()]
        kept = [member for member in files if not member.name.startswith(TARBALL_ALONE)]
        shipped = {member.name: tar.extractfile(member).read() for member in kept}
    packed = {
        name.removeprefix(COLLECTION): archive.read(name) for name in archive.namelist() if name.startswith(COLLECTION)
    }
    assert set(packed) - set(shipped) == WHEEL_ALONE
    assert set(shipped) - set(packed) == set(), "add them to the collection in pyproject.toml, or to TARBALL_ALONE"
    assert [name for name in shipped if packed[name] != shipped[name]] == []


def test_beside_the_collection_it_holds_the_engine(archive: zipfile.ZipFile) -> None:
    names = {name for name in archive.namelist() if not name.startswith(COLLECTION) and ".dist-info/" not in name}
    assert names == {name.removeprefix("src/") for name in known_files() if name.startswith("src/dljob_operator/")}


def test_the_program_in_it_may_be_executed(archive: zipfile.ZipFile) -> None:
    mode = archive.getinfo("dljob_operator/ansible_operator_bridge/shim/ansible-runner").external_attr >> 16
    assert mode & stat.S_IXUSR


def test_building_leaves_nothing_behind_and_makes_the_same_twice(built: Path, tmp_path: Path) -> None:
    """Runs in a copy of git's files, so that other tests' files are not counted."""
    tree = tmp_path / "tree"
    for name in known_files():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    before = {path for path in tree.rglob("*") if "__pycache__" not in path.parts}
    again = wheel.build(tmp_path / "dist", tree)
    assert {path for path in tree.rglob("*") if "__pycache__" not in path.parts} == before
    assert again.name == built.name
    assert again.read_bytes() == built.read_bytes()
