"""Every file that repeats the version or an address matches the source."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from devtools.build import stamp
from devtools.build.images import definition
from devtools.paths import known_files

import dljob_operator

ROOT = Path(__file__).resolve().parents[4]
PYPROJECT = "[project.urls]\n" + "".join(f'{name} = "https://example.com/{name}"\n' for name in stamp.URLS)


@pytest.fixture
def texts() -> dict[str, str]:
    return stamp.texts()


@pytest.fixture
def source() -> stamp.Project:
    return stamp.read()


def test_no_file_is_stale(texts: dict[str, str], source: stamp.Project) -> None:
    assert [file for file, text in stamp.stamped(texts, source).items() if text != texts[file]] == []


def test_another_version_makes_every_file_that_repeats_it_stale(texts: dict[str, str], source: stamp.Project) -> None:
    assert source.version != "99.0.0"
    new = stamp.stamped(texts, replace(source, version="99.0.0"))
    assert {file for file in texts if new[file] != texts[file]} == set(texts)
    assert yaml.safe_load(new["galaxy.yml"])["version"] == "99.0.0"
    chart = yaml.safe_load(new["deploy/helm/dljob-operator/Chart.yaml"])
    assert (chart["version"], chart["appVersion"]) == ("99.0.0", "99.0.0")
    # stamping the original version again restores the texts: nothing else has changed
    assert stamp.stamped(new, source) == texts


def test_other_addresses_make_the_collection_the_chart_and_the_readme_stale(
    texts: dict[str, str], source: stamp.Project
) -> None:
    moved = replace(source, urls=dict.fromkeys(source.urls, "https://example.com/moved"))
    new = stamp.stamped(texts, moved)
    changed = {file for file in texts if new[file] != texts[file]}
    assert changed == {"README.md", "galaxy.yml", "client/krew.yaml", "deploy/helm/dljob-operator/Chart.yaml"}
    assert source.urls["Repository"] not in "".join(new[file] for file in changed)


@pytest.mark.parametrize("file", sorted({file for file, _, _ in stamp.PLACES}))
def test_a_line_that_has_gone_or_is_there_twice_is_named(
    file: str, texts: dict[str, str], source: stamp.Project
) -> None:
    for broken in ("", texts[file] * 2):
        with pytest.raises(stamp.StampError, match=rf"^{re.escape(file)}: [02] lines match"):
            stamp.stamped({**texts, file: broken}, source)


@pytest.mark.parametrize("version", ["1.2.3", "0.10.0", "1.0.0-rc.1", "1.0.0-a.0"])
def test_a_version_that_every_registry_takes(version: str) -> None:
    assert stamp.parse(f"{version}\n", PYPROJECT).version == version


@pytest.mark.parametrize(
    "version", ["", "1.2", "v1.2.3", "1.02.3", "1.0.0rc1", "1.0.0-dev.1", "1.0.0+build", "1.2.3.4"]
)
def test_a_version_that_some_registry_refuses(version: str) -> None:
    with pytest.raises(stamp.StampError, match=r"^VERSION: .* write 1\.2\.3"):
        stamp.parse(version, PYPROJECT)


def test_an_address_that_is_missing_is_named() -> None:
    for name in stamp.URLS:
        text = re.sub(rf"^{name} = .*\n", "", PYPROJECT, flags=re.MULTILINE)
        with pytest.raises(stamp.StampError, match=rf"project\.urls\.{name} is missing"):
            stamp.parse("1.2.3", text)


def test_what_is_read_where_it_is_used_agrees(source: stamp.Project) -> None:
    assert dljob_operator.__version__ == source.version
    assert definition.load("operator").names == (f"dljob/operator:{source.version}",)


def test_no_tracked_file_names_another_version_or_address(source: stamp.Project) -> None:
    """Covers the images, the bundle and the repository, also in files that are not in PLACES."""
    repository = source.urls["Repository"]
    wanted = {
        r"dljob/operator:([0-9][\w.-]*\w)": source.version,
        r"dljob-operator:([0-9]+\.[\w.-]*\w)": source.version,
        r"dljob-operator\.v([0-9][\w.-]*\w)": source.version,
        rf"({re.escape(repository.rpartition('/')[0])}/[\w.-]*\w)": repository,
    }
    own = "tests/unit/devtools/build/olm/test_bundle.py"  # contains other versions on purpose
    others = []
    for name in known_files():
        path = ROOT / name
        if path.is_symlink() or path.suffix in (".sum", ".mod") or name == own:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        others += [
            f"{name}: {found[0]}"
            for pattern, value in wanted.items()
            for found in re.finditer(pattern, text)
            if found[1] != value
        ]
    assert others == [], (
        "write VERSION's version and pyproject.toml's address, or add the place to PLACES in hack/devtools/build/stamp.py"
    )
