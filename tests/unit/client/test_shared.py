"""Where the client finds the operator's modules that it uses: in the wheel, in the operator's image, in a source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from devtools.build.collection import wheel
from devtools.build.collection.environment import COLLECTIONS
from dljob import shared

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "client"
NAMES = (shared.PROXIES, shared.MANIFEST_READER, shared.MANIFEST_WRITER)
FILES = [
    "plugins/module_utils/shared/proxies.py",
    "plugins/module_utils/shared/manifest_yaml.py",
    "dljob_operator/manifest_yaml.py",
]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder of modules with PyYAML alone."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "yaml").symlink_to(Path(yaml.__file__).parent)
    return folder


def found(*folders: Path) -> list[str]:
    script = "import sys; from dljob import shared; print(*(shared.module(one).__file__ for one in sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *NAMES],  # -S: without what is installed here
        env={"PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
        cwd=folders[0],
    )
    return done.stdout.split() or done.stderr.splitlines()[-1:]


def test_the_wheel_has_copies_which_come_first(library: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel.build(tmp_path, CLIENT)) as archive:
        archive.extractall(library)
    expected = [f"{library}/dljob/vendored/{file}" for file in FILES]
    assert found(library) == expected
    assert found(library, COLLECTIONS, ROOT / "src") == expected, "the operator beside may have another version"


def test_the_image_has_those_of_the_operator(library: Path) -> None:
    """`build/images/operator/image.toml` copies the package beside the operator's."""
    shutil.copytree(CLIENT / "src" / "dljob", library / "dljob")
    shutil.copytree(ROOT / "src" / "dljob_operator", library / "dljob_operator")
    places = [f"{COLLECTIONS}/ansible_collections/dljob/operator/{file}" for file in FILES[:2]]
    assert found(library, COLLECTIONS) == [*places, f"{library}/{FILES[2]}"]


def test_a_source_tree_has_them_beside_the_client(library: Path) -> None:
    expected = [f"{ROOT}/{file}" for file in (*FILES[:2], f"src/{FILES[2]}")]
    assert found(library, CLIENT / "src") == expected
    assert found(library, CLIENT / "src", ROOT / "src") == expected, "without the collection the operator cannot start"


def test_a_package_without_them_says_what_is_missing(library: Path) -> None:
    shutil.copytree(CLIENT / "src" / "dljob", library / "dljob")
    assert found(library) == ["ModuleNotFoundError: No module named 'ansible_collections'"]


def test_a_library_that_they_need_is_named(library: Path) -> None:
    (library / "yaml").unlink()
    assert found(library, CLIENT / "src") == ["ModuleNotFoundError: No module named 'yaml'"]
