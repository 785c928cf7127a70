"""The fields of a pod template, by type: reads ``pod_fields.yaml``, and writes it when it runs as a program.

The models of the Python client for Kubernetes, generated from the OpenAPI document of a Kubernetes release, are the
source: ``python -m devtools.build.generate.pod_fields`` after its pin in requirements-dev.txt has changed.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

PATH = Path(__file__).with_suffix(".yaml")
ANY = "any"
"""The type of a value that a schema does not restrict."""
ROOT = "PodTemplateSpec"
_SCALARS = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "datetime": "string",
    "object": ANY,
}
_UNRESTRICTED = {
    # quantities, which may be strings, integers and fractions
    ("PodSpec", "overhead"),
    ("ResourceRequirements", "limits"),
    ("ResourceRequirements", "requests"),
    ("VolumeResourceRequirements", "limits"),
    ("VolumeResourceRequirements", "requests"),
    ("EmptyDirVolumeSource", "sizeLimit"),
    ("ResourceFieldSelector", "divisor"),
    # a template has no use for these
    ("ObjectMeta", "managedFields"),
    ("ObjectMeta", "ownerReferences"),
    # Kubernetes creates no pod with it, so its fields are not worth their size
    ("PodSpec", "ephemeralContainers"),
}
_HEAD = """\
---
# Written by `python -m devtools.build.generate.pod_fields` from the Python client's models of Kubernetes {version}.
# The fields of a pod template by type; [T] is a list, {{T}} a map of names, any a value that no schema restricts.
"""

Types = Mapping[str, Mapping[str, str]]


@functools.cache
def types() -> Types:
    """The types of the file, from :data:`ROOT` on: each field and its type."""
    found: Types = yaml.safe_load(PATH.read_text(encoding="utf-8"))["types"]
    return found


@functools.cache
def version() -> str:
    """The Kubernetes minor version of the file."""
    return str(yaml.safe_load(PATH.read_text(encoding="utf-8"))["kubernetes"])


def of_client() -> dict[str, Any]:
    """The content of the file for the installed client."""
    client = importlib.import_module("kubernetes")
    found: dict[str, dict[str, str]] = {}
    waiting = [f"V1{ROOT}"]
    while waiting:
        model = getattr(client.client.models, waiting.pop())
        name = _short(model.__name__)
        if name in found:
            continue
        found[name] = {}
        for attribute, declared in model.openapi_types.items():
            field = model.attribute_map[attribute]
            text, inner = _read(declared)
            if (name, field) in _UNRESTRICTED:
                found[name][field] = ANY
                continue
            found[name][field] = text
            waiting += [inner] if inner else []
    # client 37 is for Kubernetes 1.37
    minor = str(client.__version__).partition(".")[0]
    return {
        "kubernetes": f"1.{minor}",
        "types": {name: dict(sorted(fields.items())) for name, fields in sorted(found.items())},
    }


def _short(model: str) -> str:
    return re.sub(r"^V\d+", "", model)


def _read(declared: str) -> tuple[str, str]:
    """A type in the notation of the file, and the model that it refers to, if any."""
    if match := re.fullmatch(r"list\[(.*)\]", declared, re.IGNORECASE):
        text, model = _read(match[1])
        return (f"[{text}]", model)
    if match := re.fullmatch(r"dict[(\[]str, (.*)[)\]]", declared, re.IGNORECASE):
        text, model = _read(match[1])
        return (f"{{{text}}}", model)
    scalar = _SCALARS.get(declared)
    return (scalar, "") if scalar else (_short(declared), declared)


def text() -> str:
    """The text of the file for the installed client."""
    content = of_client()
    return _HEAD.format(version=content["kubernetes"]) + yaml.safe_dump(content, sort_keys=False, width=110)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    sys.exit(0)
