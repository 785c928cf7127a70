"""The cases of a run: what each sends, as a function of the seed and the case's number. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.fuzz import mutations, schema, values
from devtools.testbed.cluster.kwok import node_name
from devtools.testbed.jobs import IMAGE, JobKind

Resource = dict[str, Any]

VALID, MUTATED, FROM_SCHEMA = "valid", "mutated", "from the schema"
STATUS, EDIT, POD = "status", "edit", "pod"
UID = "$UID"
"""In a step's body: the uid of the case's job."""
_ORIGINS = ((VALID, 0.15), (MUTATED, 0.7), (FROM_SCHEMA, 0.15))
_NODES = 4


@dataclass(frozen=True)
class Step:
    """What a tenant does with an accepted job: writes its status, edits it, or creates a pod that claims to be its."""

    kind: str
    body: Resource


@dataclass(frozen=True)
class Case:
    """One job. ``manifest`` may be anything that JSON can express."""

    seed: int
    number: int
    kind: JobKind
    origin: str
    mutations: tuple[str, ...]
    manifest: Resource
    steps: tuple[Step, ...] = field(default=())

    def body(self) -> bytes:
        return json.dumps(self.manifest).encode()

    def to_json(self) -> Resource:
        """For the folder of violations."""
        return {
            **vars(self),
            "kind": self.kind.title,
            "mutations": list(self.mutations),
            "steps": [vars(step) for step in self.steps],
        }


def case(kinds: Sequence[JobKind], seed: int, number: int) -> Case:
    """The case of that number. It depends on the seed, the number and the kinds only."""
    rng = random.Random(f"{seed}/{number}")
    kind = kinds[number % len(kinds)]
    (origin,) = rng.choices([name for name, _ in _ORIGINS], [weight for _, weight in _ORIGINS])
    name = f"f{number}"
    node = rng.randrange(_NODES)
    manifest = kind.small_job(name, node)
    if origin == FROM_SCHEMA or (origin == MUTATED and rng.random() < 0.3):
        _fill(manifest, kind, rng)
    names: tuple[str, ...] = ()
    if origin == MUTATED:
        names = mutations.mutate(rng, manifest, rng.choice((1, 1, 1, 2, 3, 5)))
    _confine(manifest, node)
    return Case(seed, number, kind, origin, names, manifest, tuple(_steps(rng, kind, manifest)))


def _fill(manifest: Resource, kind: JobKind, rng: random.Random) -> None:
    """Add random optional fields of the schema, and sometimes replace the replicas by random ones."""
    spec_schema = kind.schema["properties"]["spec"]
    generated = schema.generate(spec_schema, rng)
    if not isinstance(manifest["spec"], dict) or not isinstance(generated, dict) or rng.random() < 0.3:
        manifest["spec"] = generated
    else:
        manifest["spec"] = {**generated, **manifest["spec"]}
    for one in mutations.containers(manifest):  # so that more of them pass the rules
        if rng.random() < 0.8:
            one["name"] = kind.container
        one["image"] = IMAGE


def _confine(manifest: Resource, node: int) -> None:
    """Place all pods on simulated nodes: on the real one the kubelet would pull their images."""
    for template in mutations.templates(manifest):
        spec = template["spec"]
        if not spec.get("nodeName"):
            spec["nodeName"] = node_name(node)
            spec.setdefault("tolerations", [{"operator": "Exists"}])


def _steps(rng: random.Random, kind: JobKind, manifest: Resource) -> list[Step]:
    steps = []
    if rng.random() < 0.25:
        steps.append(Step(STATUS, {"status": nonsense_status(rng, kind)}))
        # a write of the status alone triggers no reconcile
        steps.append(Step(EDIT, {"metadata": {"annotations": {"example.com/touched": "1"}}}))
    if rng.random() < 0.2:
        edited = values.copied(manifest)
        mutations.mutate(rng, edited, 1)
        _confine(edited, 0)
        steps.append(Step(EDIT, {key: edited[key] for key in ("spec",) if key in edited}))
    if rng.random() < 0.15:
        steps += [Step(POD, forged_pod(rng, manifest)) for _ in range(rng.choice((1, 1, 3)))]
    return steps


def nonsense_status(rng: random.Random, kind: JobKind) -> Any:
    """A status as only a tenant writes it: right types with wrong content, or wrong types too."""
    status_schema = kind.schema["properties"].get("status") or {}
    status = schema.generate(status_schema, rng, schema.Sizes(optional=0.6))
    if not isinstance(status, dict):
        return status
    choices: tuple[Resource, ...] = (
        {},
        {"state": "Succeeded", "phase": "Done"},
        {"retries": {"job": 2**31 - 1, "Worker-0": -1, "{{ x }}": 1}},
        {"completed": {"Worker": [0, -1, 99999]}},
        {"completed": ["Worker-0"] * 1000, "specHash": "{{ 1 }}"},
        {"runtimeId": values.text(rng)},
        {"conditions": [{"type": "Succeeded", "status": "True"}] * 3},
        {"conditions": [None, {}, {"type": "{{ x }}", "status": "True", "lastTransitionTime": "never"}]},
        {"startTime": "9999-12-31T23:59:59Z", "completionTime": "1970-01-01T00:00:00Z"},
        {"startTime": "yesterday"},
        {"attempt": -(2**31), "observedGeneration": 2**62},
        {"replicaStatuses": {"Worker": {"active": -1, "failed": 2**40}}},
        {"unknown": values.nested(rng.choice((10, 90, 97, 98, 99, 120)), rng)},
        {"reason": "x" * 300_000},
    )
    status.update(rng.choice(choices))
    if rng.random() < 0.4:
        holder = {"spec": status}
        mutations.mutate_values(rng, holder)
        return holder.get("spec")
    return status


def forged_pod(rng: random.Random, manifest: Resource) -> Resource:
    """A pod with an owner reference to the job, or the operator's labels, or both."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    reference = {
        "apiVersion": manifest.get("apiVersion", "v1"),
        "kind": manifest.get("kind", "x"),
        "name": str(name or "x"),
        "uid": UID,
        "controller": rng.random() < 0.7,
    }
    labels = {
        "dljob.operator/job-uid": UID,
        "dljob.operator/replica-type": rng.choice(("Worker", "worker", "SCHEDULER", "none", "a" * 63, "")),
        "dljob.operator/replica-index": rng.choice(("0", "-1", "1", "x", "99999999999999999999", "")),
        "dljob.operator/attempt": rng.choice(("0", "-1", "x", "9" * 30, "")),
        "training.kubeflow.org/job-name": str(name or "x")[:63],
    }
    kept = {key: value for key, value in labels.items() if rng.random() < 0.8}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": rng.choice((f"{name}-worker-0", f"{name}-master-0", f"{name}-forged")) + rng.choice(("", "-x")),
            "labels": kept,
            "annotations": {"dljob.operator/spec-hash": rng.choice(("x", "", "{{ 1 }}"))},
            **({"ownerReferences": [reference]} if rng.random() < 0.8 else {}),
        },
        "spec": {
            "nodeName": node_name(0),
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": rng.choice(("mxnet", "tensorflow", "x")), "image": IMAGE}],
        },
    }


def with_uid(body: Any, uid: str) -> Any:
    """``body`` with the job's uid in place of ``UID``; only strings that are nothing else."""
    whole: list[Any] = [body]
    places: list[tuple[Any, Any]] = [(whole, 0)]
    while places:  # not recursive: a body may be nested deeper than Python's stack
        holder, key = places.pop()
        value = holder[key]
        if isinstance(value, dict):
            holder[key] = copied = dict(value)
            places += ((copied, inner) for inner in copied)
        elif isinstance(value, list):
            holder[key] = items = list(value)
            places += ((items, inner) for inner in range(len(items)))
        elif value == UID:
            holder[key] = uid
    return whole[0]
