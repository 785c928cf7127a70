"""The lists of dependencies agree: requirements*.txt, requirements.yml, galaxy.yml and meta/."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.collection import dependencies
from devtools.build.images import wheels
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[3]


PYTHONS = ("3.11", "3.12", "3.13")


def pins(name: str, python: str = PYTHONS[0]) -> dict[str, str]:
    """Package to version of a requirements file; fails on a line that pins nothing."""
    text = "".join(line for line in (ROOT / name).read_text().splitlines(keepends=True) if not line.startswith("-r "))
    return dict(pin.lower().split("==") for pin in wheels.pins(text, python))


def document(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


RUN_TIME, DEV = pins("requirements.txt"), pins("requirements-dev.txt")
OTHERS = {name: pins(f"requirements-{name}.txt") for name in ("oldest", "previous")}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_pin_has_its_reason(name: str) -> None:
    lines = [ln for ln in (ROOT / name).read_text().splitlines() if "==" in ln and not ln.startswith("#")]
    assert [ln for ln in lines if " # " not in ln] == []


@pytest.mark.parametrize("name", ["requirements.txt", *(f"requirements-{name}.txt" for name in OTHERS)])
def test_the_pins_may_be_constraints(name: str) -> None:
    """pip refuses a constraint with an extra."""
    assert [one for one in pins(name) if "[" in one] == []


def test_an_execution_environment_is_made_of_these_files() -> None:
    made_of = document("meta/execution-environment.yml")["dependencies"]
    assert made_of == {"python": "requirements.txt", "galaxy": "requirements.yml"}
    assert all((ROOT / name).is_file() for name in made_of.values())


def test_the_collections_are_those_of_the_pinned_package() -> None:
    """`make venv` installs them from PyPI; users of Galaxy get those of requirements.yml."""
    import sysconfig

    site = Path(sysconfig.get_path("purelib"))
    assert {name: dependencies._version(site, name) for name in dependencies.wanted()} == dependencies.wanted()  # noqa: SLF001 - a step of the tool


def test_the_collection_needs_no_other() -> None:
    """With dependencies, `ansible-galaxy collection install` of the tarball would need access to Galaxy."""
    assert document("galaxy.yml")["dependencies"] == {}
    used = re.compile(r"\bkubernetes\.core\.\w+")
    files = [p for folder in ("roles", "plugins", "playbooks") for p in (ROOT / folder).rglob("*.yml")]
    assert [str(p) for p in files if used.search(p.read_text())] == []


def test_the_package_takes_what_is_pinned_for_each_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {requirement.name: requirement for requirement in map(Requirement, project["dependencies"])}
    assert wanted["ansible-core"].specifier == SpecifierSet(">=2.19,<2.22")
    assert wanted["kubernetes"].specifier == SpecifierSet(">=33.1,!=36.0.0")
    pinned = [pins("requirements.txt", python) for python in PYTHONS]
    for versions in (*pinned, OTHERS["previous"]):
        assert [n for n in ("ansible-core", "kubernetes") if versions[n] not in wanted[n].specifier] == []
    lines = [versions["ansible-core"].rpartition(".")[0] for versions in pinned]
    assert lines == ["2.19", "2.21", "2.21"], "the newest line for each Python"
    assert OTHERS["previous"]["ansible-core"].startswith("2.20."), "the line between them"


def test_the_collection_takes_the_ansible_of_the_base_image_too() -> None:
    """The package does not: it is installed with pip, in an environment that has a newer one."""
    supported = SpecifierSet(document("meta/runtime.yml")["requires_ansible"])
    assert supported == SpecifierSet(">=2.18.0,<2.22.0")
    assert OTHERS["oldest"]["ansible-core"].startswith("2.18.")
    assert OTHERS["oldest"]["ansible-core"] in supported
    assert OTHERS["oldest"]["kubernetes"] == "33.1.0"


def test_ansible_test_has_exceptions_for_each_line_that_is_supported() -> None:
    supported = SpecifierSet(document("meta/runtime.yml")["requires_ansible"])
    files = {path.stem.removeprefix("ignore-"): path.read_text() for path in ROOT.glob("tests/sanity/ignore-*.txt")}
    assert sorted(files) == [line for line in (f"2.{minor}" for minor in range(15, 40)) if f"{line}.0" in supported]
    assert len(set(files.values())) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_an_end_of_a_range_is_pinned_alike(name: str) -> None:
    ends = {"ansible-core", "kubernetes"} if name == "oldest" else {"ansible-core"}
    newest, others = RUN_TIME | DEV, OTHERS[name]
    assert {n: v for n, v in others.items() if n not in ends} == {n: newest[n] for n in others if n not in ends}


def imported(folder: str) -> set[str]:
    """The packages from PyPI that the Python files below ``folder`` import, lazily or not."""
    own = {"ansible_collections", "dljob_operator", *sys.stdlib_module_names}
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - own


def test_the_package_requires_what_it_imports_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["fast"], *extras["history"]]
    names = {Requirement(d).name.lower() for d in wanted} - {"psycopg"}  # SQLAlchemy imports it, by a URL
    modules = {"ansible-core": "ansible", "prometheus-client": "prometheus_client", "pyyaml": "yaml"}
    assert {modules.get(name, name) for name in names} == imported("src") | imported("plugins")


def test_every_role_says_from_which_ansible_on_it_works() -> None:
    for path in sorted(ROOT.glob("roles/*/meta/main.yml")):
        assert yaml.safe_load(path.read_text())["galaxy_info"]["min_ansible_version"] == "2.18", path
