"""The tarball of `ansible-galaxy collection build`: its content, and that the installed collection works."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from devtools.build.collection import tarball
from devtools.paths import known_files

SHIPPED = {
    "CHANGELOG.md",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "changelogs",
    "crds",
    "docs",
    "meta",
    "playbooks",
    "plugins",
    "requirements.txt",
    "requirements.yml",
    "roles",
    "watches.ansible-operator.yaml",
    "watches.yaml",
}
LIMIT = 800_000
"""Maximum size in bytes. The tarball has 758 kB, two fifths of which are the CRDs, and would have much more with unwanted files."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tarball.build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tarball.install(built, tmp_path_factory.mktemp("installed"))


def test_it_holds_what_playbooks_need_and_no_more(built: Path) -> None:
    with tarfile.open(built) as archive:
        names = {member.name.split("/")[0] for member in archive.getmembers()}
    assert names - SHIPPED == set(), "add them to build_ignore in galaxy.yml, or here"
    assert SHIPPED - names == set()
    assert built.stat().st_size < LIMIT


def test_no_file_that_git_does_not_know(installed: Path) -> None:
    known = {*known_files(), "MANIFEST.json", "FILES.json"}
    files = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()}
    assert "roles/dljob/tasks/main.yml" in files
    assert "docs/soak.svg" not in files, "build_ignore takes paths"
    assert files - known == set()
