"""The pod template of a replica: the fields that rules use, and all others of a PodTemplateSpec without descriptions.

So ``kubectl apply`` refuses an unknown key, as it does with the definitions of training-operator. The fields are those
of one Kubernetes release (pod_schema.py); the API server drops those of a later one, and says so to its clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER

from devtools.build.generate import pod_schema
from devtools.build.generate.openapi import LABEL, Rule, Schema, array, record, rule, string

CONTAINERS = 64


def needs_container(container: str) -> Rule:
    """The rule that a list of containers has one named ``container``."""
    if container == FIRST_CONTAINER:
        return rule("self.size() > 0", message="is empty: add the container that runs the training")
    return rule(
        f"self.exists(c, c.name == '{container}')",
        computed=f"'requires a container named {container}, which runs the training, and "
        "has %s: rename or add one'.format([self.map(c, c.name)])",
    )


POD_SPEC = f"A PodSpec of Kubernetes {pod_schema.version()}."
CONTAINER = f"A Container of Kubernetes {pod_schema.version()}."
SHALLOW = 1
"""Levels of a pod, and of a container, whose fields are known in a layout that another version of the kind is for."""
UNKNOWN = 0
"""Those of a group of replicas in such a layout: whatever the schema does not name is kept."""


def template(
    container: str,
    *,
    optional: bool = False,
    of: str = "the replicas of this type",
    levels: int = pod_schema.WHOLE,
) -> Schema:
    """A PodTemplateSpec in which the container named ``container`` runs the training. The container is required unless
    ``optional``; then the replica list has a rule for it. ``of`` is a part of the description, ``levels`` how deep
    the fields of a pod and a container are known."""
    return record(
        f"PodTemplateSpec of {of}. The operator adds names, labels, an owner reference and the "
        "environment variables by which the processes find each other.",
        {
            "metadata": metadata(),
            "spec": record(
                POD_SPEC,
                {
                    "containers": array(
                        f"The containers. The {_which(container)} trains, and its exit code is the replica's.",
                        _container(container, levels),
                        most=CONTAINERS,
                        rules=[] if optional else [needs_container(container)],
                    ),
                    "restartPolicy": string(
                        "Restart policy of the pod's containers.",
                        choices=["Always", "OnFailure", "Never"],
                    ),
                    **other_fields("PodSpec", ("containers", "restartPolicy"), levels),
                },
                required=[] if optional else ["containers"],
                open_=levels == UNKNOWN,
            ),
        },
        required=[] if optional else ["spec"],
    )


def metadata() -> Schema:
    """The metadata of a pod template."""
    return record(
        "Labels and annotations of the pods. Other fields have no effect.", pod_schema.fields("ObjectMeta", SHALLOW)
    )


def other_fields(type_: str, known: Sequence[str], levels: int = pod_schema.WHOLE) -> dict[str, Schema]:
    """The fields of a type besides the ``known`` ones; none for :data:`UNKNOWN`."""
    if levels == UNKNOWN:
        return {}
    return {name: field for name, field in pod_schema.fields(type_, levels).items() if name not in known}


def _which(container: str) -> str:
    return "first" if container == FIRST_CONTAINER else f"one named {container}"


def _container(name: str, levels: int) -> Schema:
    return container(
        "Name of the container." if name == FIRST_CONTAINER else f"Its name, {name} for the one that trains.",
        levels,
    )


def container(about_its_name: str, levels: int = pod_schema.WHOLE) -> Schema:
    """A container of a pod template."""
    return record(
        CONTAINER,
        {
            "name": string(
                about_its_name,
                maxLength=63,
                rules=[
                    rule(
                        f"self.matches('{LABEL}')",
                        message="name of a container: use lower-case letters, digits and '-', with a letter or digit "
                        "at both ends",
                    )
                ],
            ),
            "image": string("Image that the container runs."),
            **other_fields("Container", ("name", "image"), levels),
        },
        required=["name", "image"],
        open_=levels == UNKNOWN,
    )
