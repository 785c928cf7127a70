"""The files that say what is needed say the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from devtools.build.images import definition, wheels
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def pins(path: Path, python: str) -> dict[str, str]:
    return dict(pin.lower().split("==") for pin in wheels.pins(path.read_text(encoding="utf-8"), python))


def test_the_execution_environment_names_both_files_and_they_exist() -> None:
    document = yaml.safe_load((ROOT / "meta" / "execution-environment.yml").read_text(encoding="utf-8"))
    assert document["dependencies"] == {"python": "requirements.txt", "galaxy": "requirements.yml"}
    assert (ROOT / "requirements.txt").is_file()


def test_the_image_has_the_collection_that_requirements_yml_names() -> None:
    (wanted,) = yaml.safe_load((ROOT / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    image = definition.load("operator")
    (file,) = [f for f in image.from_wheels if f.member == f"ansible_collections/{wanted['name'].replace('.', '/')}/"]
    (known,) = [line for line in (ROOT / "requirements.yml").read_text().splitlines() if "PyPI" in line]
    assert file.requirement == known.split()[-1]


@pytest.fixture(params=[definition.load("operator").base, definition.load("ansible-operator-base").base])
def python(request: pytest.FixtureRequest) -> str:
    """The version in the image's base, and in the stand-in for it."""
    version: str = request.param.python
    return version


def test_every_python_requirement_is_in_the_image(python: str) -> None:
    wanted = pins(ROOT / "requirements.txt", python)
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt", python)
    added = pins(definition.load("operator").folder / "requirements.txt", python)
    assert set(wanted) <= set(base) | set(added)
    # what the image adds is what the requirements say; of what the base brings, the ranges below decide
    assert {name: added[name] for name in added if name in wanted} == {n: wanted[n] for n in added if n in wanted}


def test_the_image_has_the_newest_ansible_core_for_its_python(python: str) -> None:
    """Not that of its base; `requirements.txt` pins the newest line for each Python."""
    added = pins(definition.load("operator").folder / "requirements.txt", python)
    assert added["ansible-core"] == pins(ROOT / "requirements.txt", python)["ansible-core"]


def test_the_images_versions_are_within_what_the_package_supports(python: str) -> None:
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt", python)
    image = base | pins(definition.load("operator").folder / "requirements.txt", python)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, project["dependencies"]):
        for pinned in (image, pins(ROOT / "requirements.txt", python)):
            assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_the_stand_in_has_what_the_real_base_has() -> None:
    """ansible-operator v1.42.3's own lock file; the pins that runs depend on."""
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt", "3.11")
    known = {
        "ansible-core": "2.18.18",
        "ansible-runner": "2.4.3",
        "kubernetes": "33.1.0",
        "requests-unixsocket": "0.4.1",
    }
    assert {name: base[name] for name in known} == known


def test_the_image_has_what_the_page_needs(python: str) -> None:
    """In the versions with which the tests run."""
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt", python)
    image = base | pins(definition.load("operator").folder / "requirements.txt", python)
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, (*project["dependencies"], *project["optional-dependencies"]["web"])):
        assert requirement.specifier.contains(image[requirement.name.lower()]), requirement
    tested = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    for name in ("starlette", "uvicorn"):
        assert f"\n{name}=={image[name]} " in tested
