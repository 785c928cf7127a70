"""The files that say what is needed say the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml
from devtools.images import definition, wheels

ROOT = Path(__file__).resolve().parents[2]


def pins(path: Path) -> dict[str, str]:
    return dict(pin.lower().split("==") for pin in wheels.pins(path.read_text(encoding="utf-8")))


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


def test_every_python_requirement_is_in_the_image() -> None:
    wanted = pins(ROOT / "requirements.txt")
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt")
    added = pins(definition.load("operator").folder / "requirements.txt")
    assert set(wanted) <= set(base) | set(added)
    # what the image adds is what the requirements say; of what the base brings, the ranges below decide
    assert {name: added[name] for name in added if name in wanted} == {n: wanted[n] for n in added if n in wanted}


def test_the_images_versions_are_within_what_the_package_supports() -> None:
    from packaging.requirements import Requirement

    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt")
    image = base | pins(definition.load("operator").folder / "requirements.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in map(Requirement, project["dependencies"]):
        for pinned in (image, pins(ROOT / "requirements.txt")):
            assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_the_stand_in_has_what_the_real_base_has() -> None:
    """ansible-operator v1.42.3's own lock file; the pins that runs depend on."""
    base = pins(definition.load("ansible-operator-base").folder / "requirements.txt")
    known = {
        "ansible-core": "2.18.18",
        "ansible-runner": "2.4.3",
        "kubernetes": "33.1.0",
        "requests-unixsocket": "0.4.1",
    }
    assert {name: base[name] for name in known} == known
