"""The kinds of jobs, from the definitions in crds/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools.definitions import CRDS, definitions


@dataclass(frozen=True)
class JobKind:
    """One version of one kind. ``schema`` is its structural OpenAPI schema."""

    group: str
    version: str
    kind: str
    plural: str
    stored: bool
    """Whether etcd holds the objects in this version; a list in it shows those of every version."""
    schema: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def title(self) -> str:
        """Such as ``kubeflow.org/v1 MXJob``, as the operator's metrics name it."""
        return f"{self.api_version} {self.kind}"

    def collection(self, namespace: str) -> str:
        """The path of the objects in a namespace."""
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"


def read_kinds(folder: Path = CRDS) -> tuple[JobKind, ...]:
    """All served versions of the definitions in ``folder``, in the order of file names."""
    found = []
    for definition in definitions(folder).values():
        spec = definition["spec"]
        found += [
            JobKind(
                spec["group"], version["name"], spec["names"]["kind"], spec["names"]["plural"], version["storage"],
                version["schema"]["openAPIV3Schema"],
            )
            for version in spec["versions"]
            if version["served"]
        ]  # fmt: skip
    return tuple(found)


def stored(kinds: tuple[JobKind, ...]) -> tuple[JobKind, ...]:
    """One of the versions of each kind: those whose lists together have every object once."""
    return tuple(kind for kind in kinds if kind.stored)
