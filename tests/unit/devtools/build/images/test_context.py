"""The build context, and the key that shows whether an image has changed."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from devtools.build.images import context, definition, wheels
from devtools.build.images.errors import ImagesError
from devtools.testbed.base import gobuild
from devtools.testbed.base.errors import ClusterError

BASE = 'image = "python:3.11-slim"\npython = "3.11"\n[debian]\nrelease = "bookworm"\npackages = ["python3"]\n'
IMAGE = """
names = ["dljob/one:1"]
base = "py"
program = "/opt/one.py"
programs = ["/usr/src/app/train.py"]
[[sources]]
from = "programs"
to = "app"
[[from_wheels]]
requirement = "data==1"
member = "data/a.csv"
to = "app/a.csv"
[[from_wheels]]
requirement = "new==1"
member = "data/a.csv"
to = "app/new.csv"
python = "3.12"
[[from_wheels]]
requirement = "data==1"
member = "data/none.csv"
to = "none.csv"
machines = ["other"]
"""


class Repository:
    """A small repository with one image, and a cache that has its wheels."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.images = root / "build/images"
        self.cache = root / "cache"
        for file, text in {
            "build/images/bases/py.toml": BASE,
            "build/images/one/image.toml": IMAGE,
            "build/images/one/Dockerfile": "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n",
            "build/images/one/requirements.txt": "tool==2  # the tool\n",
            "programs/one.py": "print(1)\n",
            "programs/__pycache__/one.pyc": "x",
        }.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        for requirement in ("data==1", "tool==2", wheels.PIP):
            self.have(requirement)
        self.have("new==1", "3.12")

    def have(self, requirement: str, python: str = "3.11") -> None:
        folder = wheels.folder(self.cache, [requirement], python, "m")
        folder.mkdir(parents=True)
        name = requirement.replace("==", "-")
        with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
            archive.writestr("data/a.csv", "1,2,3")

    def key(self, machine: str = "m") -> str:
        return context.key(definition.load("one", self.images), machine, self.root)

    def assemble(self) -> Path:
        target = self.root / "context"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        context.assemble(definition.load("one", self.images), target, self.cache, "m", self.root)
        return target


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_context_holds_all_that_is_copied_and_no_more(repository: Repository) -> None:
    target = repository.assemble()
    files = {str(p.relative_to(target)) for p in target.rglob("*") if not p.is_dir()}
    assert files == {
        "Dockerfile",
        "app/one.py",
        "app/a.csv",
        "app/new.csv",
        "wheels/tool-2-py3-none-any.whl",
        f"wheels/{wheels.PIP.replace('==', '-')}-py3-none-any.whl",
        "wheels/requirements.txt",
        "links/usr/src/app/train.py",
    }
    assert (target / "wheels/requirements.txt").read_text() == "tool==2\n"
    assert (target / "app/a.csv").read_text() == "1,2,3"
    assert str((target / "links/usr/src/app/train.py").readlink()) == "/opt/one.py"


@pytest.mark.parametrize(
    "file",
    [
        "build/images/bases/py.toml",
        "build/images/one/image.toml",
        "build/images/one/Dockerfile",
        "build/images/one/requirements.txt",
        "programs/one.py",
    ],
)
def test_the_key_changes_with_each_input(repository: Repository, file: str) -> None:
    before = repository.key()
    path = repository.root / file
    path.write_text(path.read_text() + "# changed\n")
    assert repository.key() != before


def test_the_key_changes_with_the_machine_but_not_with_compiled_files(repository: Repository) -> None:
    before = repository.key()
    (repository.root / "programs/__pycache__/one.pyc").write_text("y")
    assert repository.key() == before
    assert repository.key("other") != before


def test_the_wheels_are_for_the_python_of_the_base_that_was_chosen(repository: Repository) -> None:
    """That of a stand-in may be another than that of the base for which it stands."""
    file = repository.images / "one/requirements.txt"
    file.write_text('tool==2; python_version < "3.12"  # older\ntool==3; python_version >= "3.12"  # newer\n')
    one = definition.load("one", repository.images)
    for requirement in ("data==1", "tool==3", wheels.PIP):
        repository.have(requirement, "3.12")
    for python, version in (("", 2), ("3.12", 3)):
        target = repository.root / f"context-{python}"
        target.mkdir()
        context.assemble(one, target, repository.cache, "m", repository.root, python=python)
        assert (target / "wheels/requirements.txt").read_text() == f"tool=={version}\n"
        assert (target / f"wheels/tool-{version}-py3-none-any.whl").is_file()


def test_a_source_that_is_gone_is_named(repository: Repository) -> None:
    shutil.rmtree(repository.root / "programs")
    with pytest.raises(ImagesError, match="programs does not exist"):
        repository.key()


GO = """
[[go_programs]]
from = "hello"
to = "bin/greet"
"""


@pytest.fixture
def with_go(repository: Repository) -> Repository:
    (repository.root / "hello").mkdir()
    (repository.root / "hello/go.mod").write_text("module example.com/hello\n\ngo 1.21\n")
    (repository.root / "hello/main.go").write_text('package main\n\nfunc main() { print("hello") }\n')
    file = repository.images / "one/image.toml"
    file.write_text(file.read_text() + GO)
    return repository


def test_a_go_program_is_compiled_under_its_name(with_go: Repository) -> None:
    before = with_go.key()
    done = subprocess.run([with_go.assemble() / "bin/greet"], capture_output=True, text=True, check=True)
    assert done.stderr == "hello"
    source = with_go.root / "hello/main.go"
    source.write_text(source.read_text().replace("hello", "hi"))
    assert with_go.key() != before


def test_without_go_the_image_has_an_empty_folder_and_another_key(
    with_go: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_go() -> str:
        raise ClusterError("go: not found")

    before = with_go.key()
    monkeypatch.setattr(gobuild, "go_tool", no_go)
    assert list((with_go.assemble() / "bin").iterdir()) == []
    assert with_go.key() != before
