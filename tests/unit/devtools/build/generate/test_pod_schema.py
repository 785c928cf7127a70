"""The schemas know every field of a pod template, and their size stays within what tools accept."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

import kubernetes
import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import unknown_fields
from devtools.build.generate import pod_schema
from devtools.build.generate.openapi import OPEN
from devtools.definitions import definitions
from devtools.paths import ROOT

CRDS = definitions()
ANNOTATION_LIMIT = 262_144
"""Bytes of all annotations: `kubectl apply` without --server-side keeps the whole definition in one."""
MARGIN = 6_000
"""For the others."""


def templates(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schemas of the pod templates of a kind, not those inside of templates."""
    for name, inner in schema.get("properties", {}).items():
        if name == "template":
            yield f"{path}.{name}", inner
        else:
            yield from templates(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from templates(schema[key], f"{path}.{key}")


OF_GROUPS = {
    f"{kind} v1alpha1.{field}.additionalProperties.groups.items.template"
    for kind, field in (("mxjobs.kubeflow.org", "mxReplicaSpecs"), ("tfjobs.kubeflow.org", "tfReplicaSpecs"))
}
"""The groups of a layout that another version of the kind is for."""
BY_PLACE = {
    f"{name} {version['name']}{path}": template
    for name, crd in CRDS.items()
    for version in crd["spec"]["versions"]
    for path, template in templates(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
}
TEMPLATES = [pytest.param(template, id=place) for place, template in BY_PLACE.items() if place not in OF_GROUPS]


def test_every_kind_has_some() -> None:
    assert {str(one.id).split()[0] for one in TEMPLATES} == set(CRDS)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_has_the_fields_of_kubernetes_and_no_others(template: Mapping[str, Any]) -> None:
    metadata, spec = template["properties"]["metadata"], template["properties"]["spec"]
    types = pod_schema.types()
    container = spec["properties"]["containers"]["items"]
    for schema, type_ in ((metadata, "ObjectMeta"), (spec, "PodSpec"), (container, "Container")):
        assert OPEN not in schema
        assert set(schema["properties"]) == set(types[type_])
    if OPEN not in container["properties"]["lifecycle"]:
        assert set(spec["properties"]["initContainers"]["items"]["properties"]) == set(types["Container"])


@pytest.mark.parametrize("place", sorted(OF_GROUPS))
def test_a_group_of_a_layout_of_another_version_keeps_whatever_is_given(place: str) -> None:
    spec = BY_PLACE[place]["properties"]["spec"]
    container = spec["properties"]["containers"]["items"]
    assert spec[OPEN] and container[OPEN]
    assert set(container["properties"]) == {"name", "image"}, "those that rules use"


def test_each_version_knows_the_layout_of_its_own_to_the_bottom() -> None:
    def source(version: str, field: str, at: str) -> Any:
        (one,) = [one for one in CRDS["tfjobs.kubeflow.org"]["spec"]["versions"] if one["name"] == version]
        entry = one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][field][at]
        container = entry["properties"]["template"]["properties"]["spec"]["properties"]["containers"]["items"]
        return container["properties"]["lifecycle"]

    for version, field, at in (("v1", "tfReplicaSpecs", "additionalProperties"), ("v1alpha1", "replicaSpecs", "items")):
        assert OPEN not in json.dumps(source(version, field, at)["properties"]["preStop"]["properties"]["exec"])
    for version, field, at in (("v1alpha1", "tfReplicaSpecs", "additionalProperties"), ("v1", "replicaSpecs", "items")):
        assert source(version, field, at) == {OPEN: True, "nullable": True}


@pytest.mark.parametrize("name", CRDS)
def test_a_definition_fits_into_an_annotation(name: str) -> None:
    size = len(json.dumps(CRDS[name], separators=(",", ":")))
    assert size + MARGIN < ANNOTATION_LIMIT, f"{name} has {size} bytes"


def test_a_helm_release_fits_into_a_secret() -> None:
    """Helm keeps the chart's files and what it has made of them, compressed and base64-encoded, in at most 1 MiB."""
    paths = sorted((ROOT / "crds").glob("*.yaml"))
    chart = [base64.b64encode(path.read_bytes()).decode() for path in paths]
    manifest = "---\n".join(json.dumps(crd, separators=(",", ":")) for crd in CRDS.values())
    release = gzip.compress(json.dumps({"chart": chart, "manifest": manifest}).encode())
    assert len(base64.b64encode(release)) < 900_000, "the rest of the chart needs less than 100 kB; a kind needs 50 kB"


def test_the_definitions_name_the_version_of_the_installed_client() -> None:
    assert pod_schema.version() == f"1.{kubernetes.__version__.partition('.')[0]}"
    assert f"of Kubernetes {pod_schema.version()}." in json.dumps(CRDS["jaxjobs.kubeflow.org"])


def test_each_type_of_a_field_is_known() -> None:
    scalars = {"string", "integer", "boolean", pod_schema.ANY}
    named = {declared.strip("[]{}") for fields in pod_schema.types().values() for declared in fields.values()}
    assert named <= scalars | pod_schema.types().keys()


def test_the_reconcile_knows_the_same_metadata() -> None:
    assert set(pod_schema.types()["ObjectMeta"]) == unknown_fields.OF_METADATA


def test_quantities_may_be_numbers() -> None:
    resources = pod_schema.fields("Container")["resources"]["properties"]
    assert [resources[name] for name in ("limits", "requests")] == [{OPEN: True, "nullable": True}] * 2


def test_upper_fields_keep_a_null() -> None:
    """Templates of charts have `nodeSelector:` without a value. Without its null the template has another hash."""
    spec = pod_schema.fields("PodSpec")
    assert spec["nodeSelector"]["nullable"] and spec["tolerations"]["nullable"]
    assert pod_schema.fields("ObjectMeta")["creationTimestamp"]["nullable"]
    assert pod_schema.fields("Container")["env"]["items"]["properties"]["value"]["nullable"]


def test_only_so_many_levels() -> None:
    fields = pod_schema.fields("Container", 1)
    assert fields["env"] == {"type": "array", "items": {OPEN: True}, "nullable": True}
    assert fields["lifecycle"] == {OPEN: True, "nullable": True}
