"""What the schemas of all kinds have around their spec: the status, and the columns of kubectl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtools.build.generate.openapi import Rule, Schema, part, record, string


def columns() -> list[dict[str, Any]]:
    """The columns of ``kubectl get``."""
    found: list[dict[str, Any]] = part("status")["columns"]
    return found


def job(description: str, spec: Schema, rules: Sequence[Rule], *, has_versions: bool = False) -> Schema:
    """The schema of a job with this spec. ``has_versions``: whether jobs of the kind's versions differ."""
    status = part("status")["status"]
    if not has_versions:
        del status["properties"]["apiVersion"]
    return record(
        description,
        {
            "apiVersion": string("API group and version of this object."),
            "kind": string("Kind of this object."),
            # the API server allows no description here; the name is listed so that rules can refer to it
            "metadata": {"type": "object", "properties": {"name": string("Name of the job.")}},
            "spec": spec,
            "status": status,
        },
        required=["spec"],
        rules=rules,
    )
