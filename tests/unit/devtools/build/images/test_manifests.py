"""The names that an image gets from manifests, and the check that it has their programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images import definition, manifests
from devtools.build.images.errors import ImagesError
from devtools.build.images.manifests import Use
from support.upstream_manifests import MXJOBS, TFJOBS, from_each_source, load


def pod(image: str, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": image, **more}]}}


MAP_FORM = {"kind": "MXJob", "spec": {"mxReplicaSpecs": {"Worker": {"template": pod("a/map:1")}}}}
LIST_FORM = {"kind": "MXJob", "spec": {"replicaSpecs": [{"template": pod("a/list:1")}, {"template": pod("a/list:1")}]}}
BARE_LIST = {"kind": "MXJob", "spec": [{"replicaType": "WORKER", "template": pod("a/bare:1")}]}


@pytest.fixture
def mxnet() -> definition.Definition:
    return definition.load("mxnet")


def test_images_are_found_in_every_flavor() -> None:
    uses = manifests.uses_in("m", [MAP_FORM, LIST_FORM, BARE_LIST, None, "text", {"kind": "ConfigMap", "data": {}}])
    assert [use.image for use in uses] == ["a/map:1", "a/list:1", "a/bare:1"]


def test_an_image_takes_the_names_of_its_kinds_only(mxnet: definition.Definition) -> None:
    other = {**LIST_FORM, "kind": "TfJob", "spec": [{"template": pod("a/tf:1")}]}
    names = manifests.names_for(mxnet, manifests.uses_in("m", [LIST_FORM, BARE_LIST, other]))
    assert names == [*mxnet.names, "a/list:1", "a/bare:1"]


@pytest.mark.parametrize(
    ("use", "called"),
    [
        (Use("m", "MXJob", "i"), ""),
        (Use("m", "MXJob", "i", args=("--num-epochs=1",)), ""),
        (Use("m", "MXJob", "i", ("python",), ("train.py", "--x"), "/src/app"), "/src/app/train.py"),
        (Use("m", "MXJob", "i", ("python", "/opt/train.py"), (), "/src/app/"), "/opt/train.py"),
        (Use("m", "MXJob", "i", ("python", "-u", "../train.py"), (), "/src/app"), "/src/train.py"),
    ],
)
def test_the_program_called(use: Use, called: str) -> None:
    assert manifests.program_called(use) == called


def test_a_program_that_the_image_lacks_is_reported(mxnet: definition.Definition) -> None:
    good = Use("m", "MXJob", "i", ("python",), ("train_mnist.py",), "/incubator-mxnet/example/image-classification")
    assert manifests.not_offered(mxnet, [good, Use("m", "MXJob", "i")]) == []
    (problem,) = manifests.not_offered(mxnet, [replace(good, working_dir="/elsewhere")])
    assert "m starts /elsewhere/train_mnist.py in i" in problem
    (problem,) = manifests.not_offered(mxnet, [Use("m", "MXJob", "i", ("/bin/run-it",))])
    assert "/bin/run-it" in problem
    assert manifests.not_offered(mxnet, [replace(good, kind="TfJob", working_dir="/elsewhere")]) == []


def test_a_folder_of_the_environment_comes_after_our_own(tmp_path: Path) -> None:
    assert manifests.folders({manifests.VARIABLE: str(tmp_path)}) == [manifests.OWN_FOLDER, tmp_path]
    with pytest.raises(ImagesError, match="not a folder"):
        manifests.folders({manifests.VARIABLE: str(tmp_path / "none")})


def test_without_upstream_manifests_there_are_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "UPSTREAM_FOLDER", tmp_path)
    assert manifests.folders({}) == [manifests.OWN_FOLDER, tmp_path]
    monkeypatch.setattr(manifests, "UPSTREAM_FOLDER", tmp_path / "none")
    assert manifests.folders({}) == [manifests.OWN_FOLDER]


def test_folders_are_read_and_a_broken_file_named(tmp_path: Path) -> None:
    assert manifests.read([]) == []
    (tmp_path / "one.yaml").write_text(yaml.safe_dump_all([LIST_FORM, MAP_FORM]))
    other = tmp_path / "other"
    other.mkdir()
    (other / "two.yml").write_text(yaml.safe_dump(BARE_LIST))
    assert [(u.manifest, u.image) for u in manifests.read([tmp_path, other])] == [
        ("one.yaml", "a/list:1"),
        ("one.yaml", "a/map:1"),
        ("two.yml", "a/bare:1"),
    ]
    (tmp_path / "three.yaml").write_text("a: [")
    with pytest.raises(ImagesError, match=r"three\.yaml"):
        manifests.read([tmp_path])


@pytest.mark.parametrize(
    ("image", "path"),
    [
        *(pytest.param("mxnet", *p.values, id=p.id) for p in from_each_source(*MXJOBS)),
        *(pytest.param("tensorflow", *p.values, id=p.id) for p in from_each_source(*TFJOBS)),
        *(pytest.param("caffe2", *p.values, id=p.id) for p in from_each_source("caffe2-redis.yaml")),
    ],
)
def test_the_image_of_an_upstream_manifest_has_its_program(image: str, path: Path) -> None:
    stand_in = definition.load(image)
    uses = manifests.uses_in(path.name, [load(path)])
    assert len(manifests.names_for(stand_in, uses)) == len(stand_in.names) + 1
    assert manifests.not_offered(stand_in, uses) == []
