"""`dljob convert` of the built package, beside `dljob-operator convert`, which has its modules."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from devtools.build.collection import wheel
from devtools.build.images.manifests import folders
from dljob import cli

from dljob_operator import convert

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "client"
FILES = [
    str(path)
    for folder in (*folders(), ROOT / "examples")  # of upstream too, where they exist
    for path in sorted(folder.rglob("*.yaml"))
]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that an environment has with the package: itself and PyYAML."""
    folder = tmp_path_factory.mktemp("empty")
    with zipfile.ZipFile(wheel.build(tmp_path_factory.mktemp("wheel"), CLIENT)) as archive:
        archive.extractall(folder)
    (folder / "yaml").symlink_to(Path(yaml.__file__).parent)
    return folder


def dljob(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "dljob", *words]  # -S: without what is installed here
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    return subprocess.run(command, env=env, input=text, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("to", cli.TARGETS)
def test_it_says_what_the_operators_says(empty: Path, to: str) -> None:
    out, errors = io.StringIO(), io.StringIO()
    code = convert.convert_files(FILES, to, out, errors)
    done = dljob(empty, "convert", "--to", to, *FILES)
    assert (done.returncode, done.stdout, done.stderr) == (code, out.getvalue(), errors.getvalue())
    assert done.stdout and done.stderr


def test_what_is_copied_imports_nothing_of_the_operator(empty: Path) -> None:
    copies = [*(empty / "dljob" / "vendored").rglob("*.py")]
    assert copies
    for path in copies:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            known = (
                *sys.stdlib_module_names,
                "yaml",
                "dljob",
                *(["sqlalchemy"] if path.parent.name == "history" else []),
            )
            assert {name.partition(".")[0] for name in names} <= {*known}, path


def test_the_targets_are_the_operators() -> None:
    assert cli.TARGETS == convert.TARGETS


def test_files_are_named_as_kubectls_are(empty: Path) -> None:
    example = ROOT / "examples" / "pytorch-digits.yaml"
    done = dljob(empty, "convert", "--to", "dljob", "-f", "-", text=example.read_text())
    assert (done.returncode, yaml.safe_load(done.stdout)["kind"]) == (0, "DLJob")
    assert dljob(empty, "convert", "--to", "dljob", str(example)).stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--to", "dljob"), cli.USAGE, "name a file"),
        (("--to", "v2", "-"), cli.USAGE, "'kubeflow.org/v1', 'dljob', 'trainjob'"),
        (("-",), cli.USAGE, "--to"),
        (("--to", "dljob", "none.yaml"), cli.ERROR, "error: none.yaml: "),
        (("--to", "dljob", "-"), cli.ERROR, "error: -: document 1 is no object"),
    ],
)
def test_what_cannot_be_converted(empty: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = dljob(empty, "convert", *words, text="- 1")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_source_tree_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", "--to", "dljob", FILES[0]]) == cli.ERROR
    assert "pip install ./client" in capsys.readouterr().err


def test_a_wheel_of_the_sdist_has_it_too(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)], check=True, cwd=CLIENT
    )
    (sdist,) = tmp_path.iterdir()
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True)
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    with zipfile.ZipFile(wheel.build(tmp_path / "wheel", unpacked)) as archive:
        assert "dljob/vendored/dljob_operator/convert.py" in archive.namelist()
