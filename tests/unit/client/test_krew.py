"""The archive and the manifest for krew: what its schema asks for, and that the launcher starts from a link to it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import dljob
import pytest
import yaml
from devtools.build import krew
from devtools.build.collection import wheel

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("krew")
    return krew.build(wheel.build(folder, ROOT / "client"), folder)


@pytest.fixture
def installed(built: tuple[Path, Path], tmp_path: Path) -> Path:
    """As krew does it: the archive in a store, and a link to the launcher."""
    for name in ("store", "bin"):
        (tmp_path / name).mkdir()
    subprocess.run(["tar", "-xzf", built[0], "-C", tmp_path / "store"], check=True)
    (tmp_path / "bin" / "kubectl-dljob").symlink_to(tmp_path / "store" / "kubectl-dljob")
    return tmp_path / "bin" / "kubectl-dljob"


def test_the_manifest_is_what_krew_asks_for(built: tuple[Path, Path]) -> None:
    archive, path = built
    manifest: dict[str, Any] = yaml.safe_load(path.read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", manifest["metadata"]["name"])
    spec = manifest["spec"]
    assert spec["version"] == f"v{dljob.__version__}"
    assert spec["homepage"].startswith("https://")
    assert 0 < len(spec["shortDescription"]) <= 50 and not spec["shortDescription"].endswith(".")
    assert spec.keys() <= {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    (platform,) = spec["platforms"]
    assert platform.keys() == {"selector", "uri", "sha256", "bin"}
    (expression,) = platform["selector"]["matchExpressions"]
    assert expression == {"key": "os", "operator": "In", "values": ["darwin", "linux"]}
    assert platform["uri"].endswith(f"/v{dljob.__version__}/{archive.name}")
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        assert tar.getmember(platform["bin"]).mode == 0o755
        assert {name.partition("/")[0] for name in tar.getnames()} == {"LICENSE", "dljob", platform["bin"]}


def test_the_same_wheel_gives_the_same_archive(built: tuple[Path, Path], tmp_path: Path) -> None:
    (made,) = built[0].parent.glob("*.whl")
    assert krew.build(made, tmp_path)[0].read_bytes() == built[0].read_bytes()


def start(program: Path, python: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "DLJOB_PYTHON": python}
    return subprocess.run([program, *words], env=env, capture_output=True, text=True, check=False)


def test_the_launcher_starts_its_own_package(installed: Path) -> None:
    done = start(installed, sys.executable, "--version")
    assert (done.returncode, done.stdout) == (0, f"dljob {dljob.__version__}\n")
    example = ROOT / "examples" / "pytorch-digits.yaml"
    done = start(installed, sys.executable, "convert", "--to", "dljob", str(example))
    assert yaml.safe_load(done.stdout)["kind"] == "DLJob", "only what was built can convert"


def test_the_launcher_says_what_is_missing(installed: Path, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    done = start(installed, str(bare), "list")
    assert (done.returncode, done.stdout) == (1, "")
    none = start(installed, str(tmp_path / "none"), "list")
    assert none.stderr.startswith(f"error: DLJOB_PYTHON: {tmp_path}/none: ")
    assert "-m pip install 'pycurl>=7.45.3' 'pyyaml>=6'" in done.stderr
