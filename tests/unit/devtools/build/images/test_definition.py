"""Reading of image.toml and the bases, and the errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from devtools.build.images import definition, manifests
from devtools.build.images.errors import ImagesError

ROOT = Path(__file__).resolve().parents[5]
BASE = 'image = "python:3.11-slim"\npython = "3.11"\n[debian]\nrelease = "bookworm"\npackages = ["python3"]\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases/py.toml").write_text(BASE)
    (tmp_path / "bases/plain.toml").write_text(BASE.replace('python = "3.11"\n', ""))
    return tmp_path


def write(tree: Path, text: str, name: str = "one") -> None:
    (tree / name).mkdir(exist_ok=True)
    (tree / name / "image.toml").write_text(text)


def test_all_fields_of_an_image(tree: Path) -> None:
    write(
        tree,
        """
        names = ["dljob/one:1"]
        base = "py"
        kinds = ["OneJob"]
        program = "/opt/one.py"
        programs = ["/usr/src/train.py"]
        [[sources]]
        from = "examples/one.py"
        to = "app/one.py"
        [[from_wheels]]
        requirement = "data==1"
        member = "data/*.csv"
        to = "app/data.csv"
        machines = ["x86_64"]
        sdist = true
        python = "3.12"
        """,
    )
    one = definition.load("one", tree)
    assert (one.names, one.kinds, one.programs) == (("dljob/one:1",), ("OneJob",), ("/usr/src/train.py",))
    assert (one.base.image, one.base.python, one.base.debian.packages) == ("python:3.11-slim", "3.11", ("python3",))
    assert [(str(s.origin), str(s.to)) for s in one.sources] == [("examples/one.py", "app/one.py")]
    (file,) = one.from_wheels
    assert (file.requirement, file.member, str(file.to), file.machines, file.sdist, file.python) == (
        "data==1",
        "data/*.csv",
        "app/data.csv",
        ("x86_64",),
        True,
        "3.12",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('names = ["a:1"]\nbase = "py"\nkind = ["X"]', "unknown key 'kind'"),
        ('names = ["a:1"]\nbase = "nothing"', "nothing.toml: no such file"),
        ('names = []\nbase = "py"', "names is empty"),
        ('names = ["a:1"]\nbase = "py"\nprograms = ["/x.py"]', "programs without program"),
        ('names = ["a:1"]\nbase = "py"\nprogram = "x.py"', "x.py is not an absolute path"),
        ('names = ["a:1"]\nbase = "py"\n[[sources]]\nfrom = "a"', "'to'"),
        ('names = ["a:1"]\nbase = "plain"\n[[from_wheels]]\nrequirement="a==1"\nmember="a"\nto="a"', "Python version"),
        ('names = ["a:1"]\nbase = "py"\nset = "most"', "there is no set 'most'"),
        ("names = [", "image.toml"),
    ],
)
def test_a_broken_definition_is_refused_by_name(tree: Path, text: str, said: str) -> None:
    write(tree, text)
    with pytest.raises(ImagesError, match=said.replace("[", r"\[")):
        definition.load("one", tree)


def test_an_unknown_image_is_refused_with_those_that_exist(tree: Path) -> None:
    write(tree, 'names = ["dljob/one:1"]\nbase = "py"')
    with pytest.raises(ImagesError, match="no image two") as refused:
        definition.load_all(["two"], tree)
    assert "one" in refused.value.fix


@pytest.mark.parametrize("claim", ['names = ["dljob/same:1"]', 'names = ["dljob/{}:1"]\nkinds = ["SameJob"]'])
def test_two_images_cannot_claim_the_same(tree: Path, claim: str) -> None:
    for name in ("one", "two"):
        write(tree, claim.replace("{}", name) + '\nbase = "py"', name)
    with pytest.raises(ImagesError, match="both one and two claim"):
        definition.load_all([], tree)


@pytest.mark.parametrize(
    ("names", "full", "found"),
    [((), False, ["one"]), ((), True, ["heavy", "one"]), (("heavy",), False, ["heavy"]), (("asked",), True, ["asked"])],
)
def test_heavy_images_are_of_the_full_set(tree: Path, names: tuple[str, ...], full: bool, found: list[str]) -> None:
    for name, line in {"one": "", "heavy": 'set = "full"', "asked": "on_request = true"}.items():
        write(tree, f'names = ["dljob/{name}:1"]\nbase = "py"\n{line}', name)
    assert [image.name for image in definition.load_all(names, tree, full=full)] == found


def test_this_repositorys_images_are_whole() -> None:
    images = definition.load_all(full=True)
    assert {"mxnet", "shell"} <= {image.name for image in images}
    for image in images:
        assert image.dockerfile.is_file()
        assert "ARG BASE_IMAGE" in image.dockerfile.read_text()
        for source in image.sources:
            assert (ROOT / source.origin).exists(), source.origin


def test_every_example_uses_an_image_that_is_built_here() -> None:
    known = {name for image in definition.load_all() for name in image.names}
    files = sorted((ROOT / "examples").glob("*.yaml"))
    assert files
    for file in files:
        for use in manifests.uses_in(file.name, yaml.safe_load_all(file.read_text())):
            assert use.image in known, f"{file.name}: {use.image}"
