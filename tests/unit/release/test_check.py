"""The rules for releasing a tag."""

from __future__ import annotations

import pytest
from devtools.release.__main__ import main, versions
from devtools.release.check import problems

VERSIONS = {"VERSION": "1.2.3", "galaxy.yml (version)": "1.2.3"}
CHANGELOG = {"releases": {"1.2.3": {}}}


def test_a_release_candidate_and_a_release() -> None:
    assert problems("v1.2.3", VERSIONS, CHANGELOG, []) == []
    candidate = dict.fromkeys(VERSIONS, "1.3.0-rc.1")
    assert problems("v1.3.0-rc.1", candidate, {"releases": {"1.3.0-rc.1": {}}}, []) == []


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2", "v1.2.3.4", "v01.2.3", "v1.2.3+build", "v1.2.3-", "vx", "v", ""])
def test_no_version(tag: str) -> None:
    (problem,) = problems(tag, VERSIONS, CHANGELOG, [])
    assert "is not v<major>.<minor>.<patch>" in problem


def test_each_file_with_another_version_is_named() -> None:
    (problem,) = problems("v1.2.3", VERSIONS | {"Chart.yaml (appVersion)": "1.2.2"}, CHANGELOG, [])
    assert problem.startswith("Chart.yaml (appVersion) has 1.2.2, and the tag is v1.2.3")


@pytest.mark.parametrize("changelog", [{}, {"releases": None}, {"releases": {"1.2.2": {}}}])
def test_a_version_that_the_changelog_lacks(changelog: dict[str, object]) -> None:
    (problem,) = problems("v1.2.3", VERSIONS, changelog, [])
    assert "no section 1.2.3: run make changelog" in problem


def test_unreleased_fragments() -> None:
    (problem,) = problems("v1.2.3", VERSIONS, CHANGELOG, ["b.yaml", "a.yaml"])
    assert "a.yaml, b.yaml" in problem


def test_the_command_reads_the_files_of_this_tree(capsys: pytest.CaptureFixture[str]) -> None:
    by_file = versions()
    assert len(by_file) == 4 and len(set(by_file.values())) == 1
    assert main(["check", "v99.0.0"]) == 1
    output = capsys.readouterr().err
    assert all(f"{file} has {version}" in output for file, version in by_file.items())
    assert "no section 99.0.0" in output
    main(["check", f"v{by_file['VERSION']}"])
    output = capsys.readouterr().err
    assert ", and the tag is" not in output and "no section" not in output
