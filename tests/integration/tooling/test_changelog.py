"""`make lint` reports a CHANGELOG.md that does not match its source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from devtools.build.release import CHANGELOG, antsibull, outdated

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    for name in ("galaxy.yml", CHANGELOG):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "changelogs", tmp_path / "changelogs")
    return tmp_path


def test_the_present_one_is_current(collection: Path) -> None:
    assert not outdated(collection)


def test_a_line_written_by_hand_and_a_missing_file_are_noticed(collection: Path) -> None:
    file = collection / CHANGELOG
    file.write_text(file.read_text() + "* by hand\n")
    assert outdated(collection)
    file.unlink()
    assert outdated(collection)


def test_a_fragment_goes_into_the_section_of_the_version(collection: Path) -> None:
    fragment = collection / "changelogs" / "fragments" / "late.yaml"
    fragment.write_text("---\nbugfixes:\n  - a late one.\n")
    assert not outdated(collection), "a fragment is pending until the release"
    antsibull(collection, "release", "--update-existing")
    assert not fragment.exists()
    assert "a late one" in (collection / CHANGELOG).read_text() and not outdated(collection)
