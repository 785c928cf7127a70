"""The rules for releasing a tag."""

from __future__ import annotations

import pytest
from devtools.build import stamp
from devtools.build.release import main, problems, versions

VERSIONS = {"VERSION": "1.2.3", "galaxy.yml (version)": "1.2.3"}
PYPROJECT = "[project.urls]\n" + "".join(f'{name} = "https://example.com/{name}"\n' for name in stamp.URLS)
CHANGELOG = {"releases": {"1.2.3": {}}}


def test_a_release_candidate_and_a_release() -> None:
    assert problems("v1.2.3", VERSIONS, CHANGELOG, []) == []
    candidate = dict.fromkeys(VERSIONS, "1.3.0-rc.1")
    assert problems("v1.3.0-rc.1", candidate, {"releases": {"1.3.0-rc.1": {}}}, []) == []


@pytest.mark.parametrize("tag", ["1.2.3", "vv1.2.3", "v", ""])
def test_no_tag_of_a_version(tag: str) -> None:
    (problem,) = problems(tag, VERSIONS, CHANGELOG, [])
    assert "is not v1.2.3" in problem


@pytest.mark.parametrize(
    ("version", "valid"),
    [
        ("1.2.3", True), ("0.0.0", True), ("10.20.30", True),
        ("1.2.3-a.0", True), ("1.2.3-b.1", True), ("1.2.3-rc.12", True),
        ("1.2", False), ("1.2.3.4", False), ("01.2.3", False), ("1.02.3", False), ("1.2.3-rc.01", False),
        ("1.2.3-rc1", False), ("1.2.3rc1", False), ("1.2.3-alpha.1", False), ("1.2.3-dev.1", False),
        ("1.2.3-rc", False), ("1.2.3-rc.1.2", False), ("1.2.3-", False), ("1.2.3+build", False), ("1.2.\u0663", False),
        ("x", False),
    ],
)  # fmt: skip
def test_a_tag_can_be_released_exactly_if_its_version_can_be_stamped(version: str, valid: bool) -> None:
    found = problems(f"v{version}", {"VERSION": version}, {"releases": {version: {}}}, [])
    assert (found == []) == valid
    if valid:
        assert stamp.parse(version, PYPROJECT).version == version
        return
    with pytest.raises(stamp.StampError, match="is not a version"):
        stamp.parse(version, PYPROJECT)


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
