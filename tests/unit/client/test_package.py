"""The package for laptops: what it requires and what its wheel holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import dljob
import pytest
from devtools.build.collection import wheel
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "client"


def test_the_version_is_the_repositorys() -> None:
    assert dljob.__version__ == (ROOT / "VERSION").read_text().strip()


def test_it_requires_what_it_imports_and_nothing_else() -> None:
    imported = set()
    for path in (CLIENT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imported |= {name.partition(".")[0] for name in names}
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    required = {Requirement(text).name.lower() for text in project["dependencies"]}
    extras = project["optional-dependencies"]
    extra = {Requirement(text).name.lower() for texts in extras.values() for text in texts}
    brought = {"rich"}  # by textual, whose tables and texts are made of it
    named = {{"pyyaml": "yaml", "google-re2": "re2"}.get(name, name) for name in required | extra}
    by_copies = {"sqlalchemy", "psycopg"}  # of the operator's modules, which the build adds
    assert by_copies <= named
    assert (named | brought) - by_copies == imported - {"dljob", *sys.stdlib_module_names}


def test_only_the_view_that_needs_it_imports_an_extra() -> None:
    for path in (CLIENT / "src").rglob("*.py"):
        for folder, packages in {"tui": "textual|rich", "web": "starlette|uvicorn|jinja2"}.items():
            found = re.search(rf"^ *(import|from) ({packages})", path.read_text(), re.MULTILINE)
            assert path.parent.name == folder or not found, path
        imports = re.findall(r"^( *)(?:import|from) re2", path.read_text(), re.MULTILINE)
        assert not imports or (path.name == "pattern.py" and all(imports)), "only where a job has a pattern"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("wheel"), CLIENT)


def test_the_wheel_has_the_package_its_types_and_the_commands(built: Path) -> None:
    assert built.name == f"dljob-{dljob.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        (entry,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert {name.partition("/")[0] for name in names} == {"dljob", f"dljob-{dljob.__version__}.dist-info"}
    assert "dljob/py.typed" in names
    commands = {line.partition(" ")[0] for line in entry.splitlines() if "=" in line}
    assert commands == {"dljob", "kubectl-dljob", "kubectl_complete-dljob"}


def test_the_command_starts() -> None:
    done = subprocess.run([sys.executable, "-m", "dljob", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dljob {dljob.__version__}\n"
