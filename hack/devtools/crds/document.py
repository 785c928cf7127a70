"""From schemas to CustomResourceDefinitions, and to YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from devtools.crds.block_style import dumper
from devtools.crds.openapi import Rule, Schema, record, string
from devtools.crds.status import COLUMNS, status

_HEADER = "---\n# Written by `make crds`: change hack/devtools/crds/ instead, then run that.\n"
"""The mark comes first: readers that take a file's first document (OLM's) would take the remark for an empty one."""
_WIDTH = 80


def resource(description: str, spec: Schema, rules: Sequence[Rule] = ()) -> Schema:
    """The schema of a whole object."""
    return record(
        description,
        {
            "apiVersion": string("Group and version that this object is written in."),
            "kind": string("Kind of this object."),
            # the one schema that may have no description; the name is spelt out so that rules can point at it
            "metadata": {"type": "object", "properties": {"name": string("Name of the job.")}},
            "spec": spec,
            "status": status(),
        },
        required=["spec"],
        rules=rules,
    )


def definition(
    group: str,
    kind: str,
    versions: dict[str, Schema],
    stored: str,
    short_names: Sequence[str] = (),
    scales: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """A CRD that serves ``versions`` (name to schema) and keeps objects in the one named ``stored``.

    ``scales`` names the map of replica specs and the type in it that `kubectl scale` and an autoscaler change.
    """
    singular = kind.lower()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{singular}s.{group}",
            "labels": {"app.kubernetes.io/part-of": "dljob-operator"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": f"{singular}s",
                "singular": singular,
                **({"shortNames": [*short_names]} if short_names else {}),
                # `kubectl get dljobs` finds the jobs of every kind and group; a plural or short name finds one group's
                "categories": ["dljobs"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == stored,
                    "subresources": {"status": {}, **(_scale(*scales) if scales else {})},
                    "additionalPrinterColumns": COLUMNS,
                    "schema": {"openAPIV3Schema": schema},
                }
                for version, schema in versions.items()
            ],
        },
    }


def _scale(field: str, type_: str) -> dict[str, Any]:
    counted = f".status.replicaStatuses.{type_}"
    return {
        "scale": {
            "specReplicasPath": f".spec.{field}.{type_}.replicas",
            "statusReplicasPath": f"{counted}.active",
            "labelSelectorPath": f"{counted}.selector",
        }
    }


_Dumper = dumper(lambda text: ">" if len(text) > 60 else None)


def render(document: dict[str, Any]) -> str:
    """The file's text, the same for the same document."""
    return _HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
