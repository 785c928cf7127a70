"""Checks of crds/ that need no API server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from devtools.definitions import definitions

DEFINITIONS = {f"{name}.yaml": definition for name, definition in definitions().items()}
VERSIONS = [
    pytest.param(version, id=f"{name} {version['name']}")
    for name, definition in DEFINITIONS.items()
    for version in definition["spec"]["versions"]
]

OF_A_POD = re.compile(r"\.template\.|\.(imagePullSecrets|resources|env|envFrom|volumes|volumeMounts|tolerations)\b.")


def documented(schema: dict[str, Any]) -> dict[str, Any]:
    """The properties, without the spellings of others that a rule refuses: they differ from these in case only."""
    properties: dict[str, Any] = schema.get("properties", {})
    described = {name.casefold(): name for name, inner in properties.items() if inner.get("description")}
    refused = " ".join(one["rule"] for one in schema.get("x-kubernetes-validations", ()))
    return {
        name: inner
        for name, inner in properties.items()
        if described.get(name.casefold(), name) == name or f"!has(self.{name})" not in refused
    }


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within ``schema``, itself first, with its path."""
    yield path, schema
    for name, inner in documented(schema).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from schemas(schema["additionalProperties"], f"{path}.*")


def test_a_file_per_group() -> None:
    def versions(name: str) -> dict[str, bool]:
        return {v["name"]: v["storage"] for v in DEFINITIONS[name]["spec"]["versions"]}

    assert versions("caffe2jobs.kubeflow.org.yaml") == {"v1alpha1": True}
    assert versions("pytorchjobs.kubeflow.org.yaml") == {"v1": True}
    assert versions("jaxjobs.kubeflow.org.yaml") == {"v1": True}
    assert versions("paddlejobs.kubeflow.org.yaml") == {"v1": True}
    # stored as v1, so that training-operator's definition can replace it again
    assert versions("mpijobs.kubeflow.org.yaml") == {"v1": True, "v2beta1": False}
    assert versions("xgboostjobs.kubeflow.org.yaml") == {"v1": True}
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
    """Also across groups: kubectl would choose one of them arbitrarily."""
    given = [short for d in DEFINITIONS.values() for short in d["spec"]["names"].get("shortNames", ())]
    assert len(given) == len(set(given))
    assert "mxj" in given


@pytest.mark.parametrize("version", VERSIONS)
def test_every_property_is_described(version: dict[str, Any]) -> None:
    # Kubernetes allows no description for metadata, and documents the fields of pods and their containers itself
    missing = [
        path
        for path, schema in schemas(version["schema"]["openAPIV3Schema"])
        if not schema.get("description") and path != ".metadata" and not OF_A_POD.search(path)
    ]
    assert missing == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_rule_has_a_message(version: dict[str, Any]) -> None:
    for path, schema in schemas(version["schema"]["openAPIV3Schema"]):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert rule.get("message") or rule.get("messageExpression"), f"{path}: {rule['rule']}"


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_and_status(version: dict[str, Any]) -> None:
    usual = {c["name"] for c in version["additionalPrinterColumns"] if not c.get("priority")}
    wide = {c["name"] for c in version["additionalPrinterColumns"] if c.get("priority")}
    assert usual == {"State", "Replicas", "Progress", "Age"}
    assert wide == {"Phase", "Reason", "Runtime ID", "GPU Hours"}
    assert version["subresources"]["status"] == {}
    known = dict(schemas(version["schema"]["openAPIV3Schema"]))
    for column in version["additionalPrinterColumns"]:
        assert column["jsonPath"] in known or column["jsonPath"] == ".metadata.creationTimestamp"


def test_what_can_be_scaled() -> None:
    """A kind with several replica types can scale only one: those of training-operator v1 scale their workers."""
    scales = {name: d["spec"]["versions"][0]["subresources"].get("scale") for name, d in DEFINITIONS.items()}
    assert {name: scale for name, scale in scales.items() if scale} == {
        f"{framework}jobs.kubeflow.org.yaml": {
            "specReplicasPath": f".spec.{framework}ReplicaSpecs.Worker.replicas",
            "statusReplicasPath": ".status.replicaStatuses.Worker.active",
            "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
        }
        for framework in ("jax", "paddle", "pytorch")
    }


def below(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The schemas directly below one, with their paths."""
    yield from ((f"{path}.{name}", one) for name, one in documented(schema).items())
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield f"{path}[]", schema[key]


def dropped(schema: Any, other: Any, path: str = "") -> Iterator[str]:
    """The fields of a schema that are lost where an object is read by the other one."""
    theirs = dict(below(other, path))
    for where, one in below(schema, path):
        if where in theirs:
            yield from dropped(one, theirs[where], where)
        elif not other.get("x-kubernetes-preserve-unknown-fields"):
            yield where


def common(schema: Any) -> Any:
    """The schema without pod templates, without the spellings that only the list layouts refuse, and without the
    default of v1's runPolicy."""
    if isinstance(schema, list):
        return [common(one) for one in schema if "not known in this spelling" not in str(one)]
    if not isinstance(schema, dict):
        return schema
    made = {name: common(one) for name, one in schema.items() if name not in ("properties", "default")}
    properties = {name: common(one) for name, one in documented(schema).items() if name != "template"}
    rules = made.pop("x-kubernetes-validations", None)
    return {**made, **({"properties": properties} if properties else {}), **({"rules": rules} if rules else {})}


def test_versions_of_one_definition_have_the_same_fields() -> None:
    """Conversion only changes apiVersion: reading in a version drops fields that the version lacks.

    A version knows the pod fields of its own layout, and keeps those of the others as they are.
    """
    for name, definition in DEFINITIONS.items():
        assert definition["spec"]["conversion"] == {"strategy": "None"}, name
        first, *others = (v["schema"]["openAPIV3Schema"] for v in definition["spec"]["versions"])
        for other in others:
            assert [*dropped(first, other), *dropped(other, first)] == [], name
            assert name.startswith("mpijobs.") or common(other) == common(first), name


def test_each_version_of_mpijob_has_its_restart_policies() -> None:
    found = []
    for version in DEFINITIONS["mpijobs.kubeflow.org.yaml"]["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        found.append(spec["mpiReplicaSpecs"]["additionalProperties"]["properties"]["restartPolicy"]["enum"])
    assert ["ExitCode" in policies for policies in found] == [True, False]
