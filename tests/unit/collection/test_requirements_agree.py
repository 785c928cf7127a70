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
from ansible.module_utils.compat.version import LooseVersion
from devtools.collection import dependencies

ROOT = Path(__file__).resolve().parents[3]


def pins(name: str) -> dict[str, str]:
    """Package to version of a requirements file; fails on a line that pins nothing or gives no reason."""
    found = {}
    for line in (ROOT / name).read_text().splitlines():
        if not line or line.startswith(("#", "-r ")):
            continue
        match = re.match(r"([A-Za-z0-9_.-]+)==(\S+)(\s+# .+)?$", line)
        assert match, f"{name}: {line!r} is not 'package==version  # reason'"
        found[match[1].lower()] = match[2]
    return found


def document(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


RUN_TIME, OLDEST, DEV = pins("requirements.txt"), pins("requirements-oldest.txt"), pins("requirements-dev.txt")


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_pin_has_its_reason(name: str) -> None:
    lines = [ln for ln in (ROOT / name).read_text().splitlines() if "==" in ln and not ln.startswith("#")]
    assert [ln for ln in lines if " # " not in ln] == []


def test_an_execution_environment_is_made_of_these_files() -> None:
    made_of = document("meta/execution-environment.yml")["dependencies"]
    assert made_of == {"python": "requirements.txt", "galaxy": "requirements.yml"}
    assert all((ROOT / name).is_file() for name in made_of.values())


def test_the_collections_are_those_of_the_pinned_package() -> None:
    """`make venv` installs them from PyPI; users of Galaxy get those of requirements.yml."""
    import sysconfig

    site = Path(sysconfig.get_path("purelib"))
    assert {name: dependencies._version(site, name) for name in dependencies.wanted()} == dependencies.wanted()


def test_the_collection_needs_no_other() -> None:
    """With dependencies, `ansible-galaxy collection install` of the tarball would need access to Galaxy."""
    assert document("galaxy.yml")["dependencies"] == {}
    used = re.compile(r"\bkubernetes\.core\.\w+")
    files = [p for folder in ("roles", "plugins", "playbooks") for p in (ROOT / folder).rglob("*.yml")]
    assert [str(p) for p in files if used.search(p.read_text())] == []


def test_the_runner_takes_both_ends_of_the_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[<>=!]", d)[0].lower(): d for d in project["dependencies"]}
    assert wanted["ansible-core"] == "ansible-core>=2.18,<2.20"
    assert wanted["kubernetes"] == "kubernetes>=33.1,!=36.0.0"
    for ends in (RUN_TIME, OLDEST):
        assert LooseVersion("2.18") <= LooseVersion(ends["ansible-core"]) < LooseVersion("2.20")
        assert LooseVersion(ends["kubernetes"]) >= LooseVersion("33.1")
    assert OLDEST["ansible-core"].startswith("2.18.")
    assert document("meta/runtime.yml")["requires_ansible"] == ">=2.18.0"


def test_what_is_not_an_end_of_a_range_is_pinned_alike() -> None:
    ends = {"ansible-core", "kubernetes"}
    newest = RUN_TIME | DEV
    assert {n: v for n, v in OLDEST.items() if n not in ends} == {n: newest[n] for n in OLDEST if n not in ends}


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
    names = {re.split(r"[<>=!]", d)[0].lower() for d in project["dependencies"]}
    modules = {"ansible-core": "ansible", "prometheus-client": "prometheus_client", "pyyaml": "yaml"}
    assert {modules.get(name, name) for name in names} == imported("src") | imported("plugins")


def test_every_role_says_from_which_ansible_on_it_works() -> None:
    for path in sorted(ROOT.glob("roles/*/meta/main.yml")):
        assert yaml.safe_load(path.read_text())["galaxy_info"]["min_ansible_version"] == "2.18", path
