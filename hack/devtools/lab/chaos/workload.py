"""The jobs of a run: small jobs of every kind and API flavor, and how a run changes them. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devtools.lab.chaos.shapes import SHAPES, Shape

OWN = {"dljob-test/operator": "own"}
"""Labels of each job, with which the operator that many tests share ignores it."""


@dataclass(frozen=True)
class Job:
    """One job to create."""

    manifest: Mapping[str, Any]
    outcome: str
    """The state at its end, whatever happens to its pods and its operator."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


def anew(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The job to create again: in the version of who has labelled it, which may not be that in which it is watched."""
    metadata = {"name": manifest["metadata"]["name"], "labels": dict(OWN)}
    noted = manifest["metadata"].get("managedFields") or ()
    versions = (one["apiVersion"] for one in noted if "f:labels" in one.get("fieldsV1", {}).get("f:metadata", {}))
    version = next(versions, manifest["apiVersion"])
    return {"apiVersion": version, "kind": manifest["kind"], "metadata": metadata, "spec": manifest["spec"]}


def titled(*words: str) -> tuple[Shape, ...]:
    """The shapes whose title contains one of ``words``; all of them without words."""
    return tuple(shape for shape in SHAPES if not words or any(word in shape.title for word in words))


def jobs(seed: int, round_: int, count: int, shapes: Sequence[Shape] = SHAPES) -> list[Job]:
    """The jobs of a round: each shape in turn, in the order of the seed, continued over the rounds."""
    made = []
    for number in range(round_ * count, (round_ + 1) * count):
        order = random.Random(f"order {seed} {number // len(shapes)}").sample(shapes, len(shapes))
        shape = order[number % len(shapes)]
        manifest = shape.build(random.Random(f"job {seed} {number}"), f"job-{number:04d}", OWN)
        made.append(Job(manifest, shape.outcome))
    return made


def _entries(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Each entry of replicas with the path to it in the manifest."""
    spec = manifest["spec"]
    fields = [(("spec",), spec)] if isinstance(spec, list) else [(("spec", name), spec[name]) for name in spec]
    for path, replicas in fields:
        if len(path) > 1 and not (path[-1].lower().endswith("replicaspecs") or path[-1] == "replicas"):
            continue
        if isinstance(replicas, list):
            yield from (((*path, index), entry) for index, entry in enumerate(replicas))
        elif "template" in replicas:
            yield path, replicas
        else:
            yield from (((*path, name), entry) for name, entry in replicas.items())


def _last(manifest: Mapping[str, Any]) -> tuple[str, str, int]:
    """The pointer to the last entry, the field with the number of its replicas, and that number."""
    path, entry = list(_entries(manifest))[-1]
    field = "count" if "count" in entry else "replicas"
    return "/".join(map(str, path)), field, int(entry.get(field, 1))


def edit(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch that changes the number of the workers by one, which restarts all replicas of most kinds."""
    pointer, field, current = _last(manifest)
    return [{"op": "add", "path": f"/{pointer}/{field}", "value": current + 1 if current == 1 else current - 1}]


def can_edit(manifest: Mapping[str, Any]) -> bool:
    """Whether the last entry may have one replica more or less."""
    return len(list(_entries(manifest))) > 1 or _last(manifest)[2] > 2


def suspend(manifest: Mapping[str, Any], wanted: bool) -> dict[str, Any] | None:
    """The merge patch that suspends or resumes the job, None where its flavor has no such field."""
    if isinstance(manifest["spec"], list):
        return None
    return {"spec": {"runPolicy": {"suspend": wanted}}}
