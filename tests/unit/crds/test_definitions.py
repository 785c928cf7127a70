"""What can be told of crds/ without an API server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "crds").glob("*.yaml"))
DEFINITIONS = {path.name: yaml.safe_load(path.read_text()) for path in FILES}
VERSIONS = [
    pytest.param(version, id=f"{name} {version['name']}")
    for name, definition in DEFINITIONS.items()
    for version in definition["spec"]["versions"]
]


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within ``schema``, itself first, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from schemas(schema["additionalProperties"], f"{path}.*")


def test_files_are_what_the_source_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "devtools.crds", "--check"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": "hack"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_check_notices_a_change_and_a_stranger(tmp_path: Path) -> None:
    """Run from a copy: the files of the tree are not for tests to break."""
    shutil.copytree(ROOT / "hack/devtools/crds", tmp_path / "hack/devtools/crds")
    shutil.copyfile(ROOT / "hack/devtools/__init__.py", tmp_path / "hack/devtools/__init__.py")
    target = tmp_path / "crds"
    target.mkdir()

    def run(*options: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "devtools.crds", *options],
            cwd=tmp_path / "hack",
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert run("--check")[0] == 1, "nothing is there yet"
    assert run()[0] == 0
    assert run("--check") == (0, "")
    changed = target / FILES[0].name
    changed.write_text(changed.read_text().replace("maxItems: 64", "maxItems: 65"))
    (target / "stranger.yaml").write_text("{}")
    code, answer = run("--check")
    assert code == 1
    assert f"crds/{changed.name} is out of date" in answer
    assert "crds/stranger.yaml: nothing in hack/devtools/crds/ writes it" in answer


def test_a_file_per_group() -> None:
    def versions(name: str) -> dict[str, bool]:
        return {v["name"]: v["storage"] for v in DEFINITIONS[name]["spec"]["versions"]}

    assert versions("caffe2jobs.kubeflow.org.yaml") == {"v1alpha1": True}
    assert versions("pytorchjobs.kubeflow.org.yaml") == {"v1": True}
    assert versions("mxjobs.fioravanzo.org.yaml") == {"v1alpha1": True}
    assert versions("mxjobs.mpba.fbk.eu.yaml") == {"v1": True}
    assert versions("mxjobs.kubeflow.org.yaml") == {"v1": True, "v1alpha1": False}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_names(name: str) -> None:
    definition = DEFINITIONS[name]
    spec = definition["spec"]
    assert f"{spec['names']['plural']}.{spec['group']}" == definition["metadata"]["name"] == name.removesuffix(".yaml")
    assert spec["scope"] == "Namespaced"
    assert [v["storage"] for v in spec["versions"]].count(True) == 1


def test_no_short_name_is_given_twice() -> None:
    """Not even across groups: which of them a user got would be up to chance."""
    given = [short for d in DEFINITIONS.values() for short in d["spec"]["names"].get("shortNames", ())]
    assert len(given) == len(set(given))
    assert "mxj" in given


@pytest.mark.parametrize("version", VERSIONS)
def test_every_property_is_described(version: dict[str, Any]) -> None:
    # metadata is the one place where Kubernetes permits no description
    missing = [
        path
        for path, schema in schemas(version["schema"]["openAPIV3Schema"])
        if not schema.get("description") and path != ".metadata"
    ]
    assert missing == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_rule_speaks(version: dict[str, Any]) -> None:
    for path, schema in schemas(version["schema"]["openAPIV3Schema"]):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert rule.get("message") or rule.get("messageExpression"), f"{path}: {rule['rule']}"


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_and_status(version: dict[str, Any]) -> None:
    usual = {c["name"] for c in version["additionalPrinterColumns"] if not c.get("priority")}
    wide = {c["name"] for c in version["additionalPrinterColumns"] if c.get("priority")}
    assert usual == {"State", "Replicas", "Age"}
    assert wide == {"Phase", "Runtime ID"}
    assert version["subresources"]["status"] == {}
    known = dict(schemas(version["schema"]["openAPIV3Schema"]))
    for column in version["additionalPrinterColumns"]:
        assert column["jsonPath"] in known or column["jsonPath"] == ".metadata.creationTimestamp"


def test_what_can_be_scaled() -> None:
    """Of replicas of several types only one number can be meant: elastic workers' is, and no other kind has those."""
    scales = {name: d["spec"]["versions"][0]["subresources"].get("scale") for name, d in DEFINITIONS.items()}
    assert {name: scale for name, scale in scales.items() if scale} == {
        "pytorchjobs.kubeflow.org.yaml": {
            "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        }
    }


def test_versions_of_one_definition_admit_the_same() -> None:
    """Conversion only changes apiVersion: a field that one version lacks would be lost in reading through it."""
    for name, definition in DEFINITIONS.items():
        assert definition["spec"]["conversion"] == {"strategy": "None"}, name
        first, *others = (v["schema"] for v in definition["spec"]["versions"])
        assert all(other == first for other in others), name
