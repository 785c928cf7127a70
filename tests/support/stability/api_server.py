"""The API server of the model: it applies the writes of a plan to a state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ApplyResult
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

from support.stability.state import Owned, Pod, State

GRACE_PERIOD = 30
"""Seconds, of a pod whose processes have to end."""

Write = tuple[str, Any]
"""What to do, and the object: ``pod`` and ``object`` create one, ``replace`` ensures one, ``delete`` has kind and name."""


class Answer(Enum):
    """How the API server answers the creation of pods."""

    CREATED = "created"
    DENIED = "denied"
    """By a quota: for now."""
    REFUSED = "refused"
    """Permanently."""


def writes_of(plan: Plan) -> tuple[Write, ...]:
    """The writes of a plan, in the order in which the writer of ``api/`` begins them."""
    return (
        *(("object", _owned(manifest)) for manifest in (*plan.auxiliary_objects, *plan.services)),
        *(("pod", _pod(manifest)) for manifest in plan.pods),
        *(("delete", (deletion.kind, deletion.name)) for deletion in plan.deletions),
        *(("replace", _owned(manifest)) for manifest in plan.ensured_objects),
    )


def _pod(manifest: Mapping[str, Any]) -> Pod:
    metadata = manifest["metadata"]
    labels, annotations = metadata["labels"], metadata["annotations"]
    return Pod(
        metadata["name"],
        labels[c.LABEL_REPLICA_TYPE],
        int(labels[c.LABEL_REPLICA_INDEX]),
        int(labels[c.LABEL_ATTEMPT]),
        annotations[c.ANNOTATION_SPEC_HASH],
        manifest["spec"]["restartPolicy"],
    )


def _owned(manifest: Mapping[str, Any]) -> Owned:
    annotations = manifest["metadata"].get("annotations") or {}
    hash_, lifetime = annotations.get(c.ANNOTATION_SPEC_HASH, ""), annotations.get(c.ANNOTATION_LIFETIME, "")
    return Owned(manifest["kind"], manifest["metadata"]["name"], hash_, lifetime)


def apply(state: State, writes: tuple[Write, ...], answer: Answer = Answer.CREATED) -> tuple[State, ApplyResult]:
    """The state after ``writes``, and what the operator learns of them."""
    pods = {pod.name: pod for pod in state.pods}
    objects = {(one.kind, one.name): one for one in state.objects}
    result = ApplyResult()
    for what, one in writes:
        if what == "pod":
            _create_pod(pods, one, answer, result)
        elif what == "object":
            _create(objects, one, result)
        elif what == "replace":
            objects.pop((one.kind, one.name), None)
            _create(objects, one, result)
        elif one[0] == "Pod":
            _delete_pod(pods, one[1])
        else:
            objects.pop(one, None)
    changed = state._replace(
        pods=tuple(pods[name] for name in sorted(pods)), objects=tuple(objects[key] for key in sorted(objects))
    )
    return changed, result


def delete(state: State, kind: str, name: str) -> State:
    """The state after a tenant's deletion of an object."""
    return apply(state, (("delete", (kind, name)),))[0]._replace(wake=0)


def _create_pod(pods: dict[str, Pod], pod: Pod, answer: Answer, result: ApplyResult) -> None:
    name = f"Pod/{pod.name}"
    if answer is Answer.DENIED:
        if not result.denied:
            result.denied.add("Pod")
            result.postponed.append(f"{name}: exceeded quota")
    elif answer is Answer.REFUSED:
        result.refused.append(f"{name}: refused")
    elif pod.name not in pods:
        pods[pod.name] = pod
        result.created.append(name)
    elif pods[pod.name].deleting is not None:
        result.waiting.append(name)


def _create(objects: dict[tuple[str, str], Owned], one: Owned, result: ApplyResult) -> None:
    if (one.kind, one.name) not in objects:
        objects[one.kind, one.name] = one
        result.created.append(f"{one.kind}/{one.name}")


def _delete_pod(pods: dict[str, Pod], name: str) -> None:
    """A pod that has ended or has no node is gone immediately; another one ends its processes first."""
    pod = pods.get(name)
    if pod is None or pod.deleting is not None:
        return
    if pod.phase == "Running" or (pod.phase == "Pending" and not pod.blocked):
        pods[name] = pod._replace(deleting=GRACE_PERIOD)
    else:
        del pods[name]
