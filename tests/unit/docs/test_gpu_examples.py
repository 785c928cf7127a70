"""The examples for GPUs: their first lines, their rows in the index, their programs, and what their containers request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import declaration
from support.gpu_examples import FILES, GPU, TRAINING, documents, job_of

from dljob_operator.preflight import frameworks

README = Path(__file__).resolve().parents[3] / "examples" / "gpu" / "README.md"
KINDS = ("PyTorchJob", "TFJob", "MXJob", "Caffe2Job", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "DLJob")
every_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)


def containers(job: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each container with the replica type that it belongs to."""
    spec = job["spec"]
    (field,) = (name for name in spec if name == "replicas" or name.lower().endswith("replicaspecs"))
    replicas = spec[field] if "template" not in spec[field] else {"Worker": spec[field]}
    for type_, replica in replicas.items():
        for container in replica["template"]["spec"]["containers"]:
            yield type_, container


def test_there_is_one_of_each_kind() -> None:
    assert sorted(job_of(file)["kind"] for file in FILES) == sorted(KINDS)


@every_file
def test_its_first_lines_describe_it(file: Path) -> None:
    comment = re.match(r"---\n(?:#.*\n)+", file.read_text(encoding="utf-8"))
    assert comment, "it begins with a comment"
    assert f"#   kubectl create -f examples/gpu/{file.name}\n# The cluster needs " in comment[0]
    assert job_of(file)["metadata"]["name"] == file.stem


@every_file
def test_the_operator_accepts_it(file: Path) -> None:
    job = job_of(file)
    job["metadata"] |= {"namespace": "default", "uid": "1"}
    if job["kind"] == "DLJob":
        declared = any_framework.declared_for_any(declaration(job["spec"]["framework"]))
        parsed = any_framework.parse_any(job, any_framework.adapt(loader.framework(declared)))
    else:
        parsed = parse_job(job, frameworks.load()[job["kind"]].framework)
    assert {group.type for group in parsed.groups if group.replicas} >= TRAINING[job["kind"]]


@every_file
def test_the_containers_that_train_request_gpus_and_no_others(file: Path) -> None:
    job = job_of(file)
    requesting = {type_ for type_, container in containers(job) if container["resources"]["limits"].get(GPU, 0) >= 1}
    assert requesting == TRAINING[job["kind"]]


@every_file
def test_its_program_compiles_and_is_the_one_that_runs(file: Path) -> None:
    maps = [document for document in documents(file) if document["kind"] == "ConfigMap"]
    for document in maps:
        assert document["metadata"]["name"] == file.stem
        compile(document["data"]["train.py"], file.name, "exec")
    for _, container in containers(job_of(file)):
        runs = any("/opt/train/train.py" in word for key in ("command", "args") for word in container.get(key, ()))
        assert runs == bool(maps)


@every_file
def test_its_row_in_the_index_has_its_images(file: Path) -> None:
    (row,) = re.findall(
        rf"^\| \[{re.escape(file.name)}\]\({re.escape(file.name)}\) \|(.+)\|$", README.read_text(), re.M
    )
    cells = [cell.strip() for cell in row.split(" | ")]
    assert len(cells) == 4
    (image,) = {container["image"] for _, container in containers(job_of(file))}
    assert ":" in image
    if cells[2] == "the same":
        assert file.stem == "dljob-gpu"
        assert image in README.read_text()
    else:
        assert cells[2] == f"`{image}`"


def test_the_index_of_all_examples_names_the_folder() -> None:
    assert "(gpu/README.md)" in (README.parents[1] / "README.md").read_text()


def test_no_two_objects_have_the_same_name() -> None:
    names = [(one["kind"], one["metadata"]["name"]) for file in FILES for one in yaml.safe_load_all(file.read_text())]
    assert len(names) == len(set(names))
