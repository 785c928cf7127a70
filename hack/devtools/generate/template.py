"""The pod template of a replica: the schema lists only the fields that rules use, and preserves unknown fields.

The full schema of a PodTemplateSpec has half a megabyte, is outdated with every Kubernetes release and rejects or drops
newer fields. The API server validates the pods that are created from the template anyway.
"""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER

from devtools.generate.openapi import Rule, Schema, array, record, rule, string

CONTAINERS = 64
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def needs_container(container: str) -> Rule:
    """The rule that a list of containers has one named ``container``."""
    if container == FIRST_CONTAINER:
        return rule("self.size() > 0", message="is empty: add the container that runs the training")
    return rule(
        f"self.exists(c, c.name == '{container}')",
        computed=f"'requires a container named {container}, which runs the training, and "
        "has %s: rename or add one'.format([self.map(c, c.name)])",
    )


def template(container: str, *, optional: bool = False, of: str = "the replicas of this type") -> Schema:
    """A PodTemplateSpec in which the container named ``container`` runs the training. The container is required unless
    ``optional``; then the replica list has a rule for it. ``of`` is a part of the description."""
    return record(
        f"PodTemplateSpec of {of}. The operator adds names, labels, an owner reference and the "
        "environment variables by which the processes find each other.",
        {
            "metadata": record("Labels and annotations for the pods.", {}, open_=True),
            "spec": record(
                "A PodSpec. Fields that are not listed here are preserved.",
                {
                    "containers": array(
                        f"The pod's containers. The {_which(container)} runs the training and its exit code is the "
                        "replica's; the others are sidecars.",
                        _container(container),
                        most=CONTAINERS,
                        rules=[] if optional else [needs_container(container)],
                    ),
                    "restartPolicy": string(
                        "Restart policy of the pod's containers.",
                        choices=["Always", "OnFailure", "Never"],
                    ),
                },
                required=[] if optional else ["containers"],
                open_=True,
            ),
        },
        required=[] if optional else ["spec"],
    )


def _which(container: str) -> str:
    return "first" if container == FIRST_CONTAINER else f"one named {container}"


def _container(name: str) -> Schema:
    return container(
        "Name of the container."
        if name == FIRST_CONTAINER
        else f"Name of the container, {name} for the one that runs the training."
    )


def container(about_its_name: str) -> Schema:
    """A container of a pod template."""
    return record(
        "A Container. Fields that are not listed here are preserved.",
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
        },
        required=["name", "image"],
        open_=True,
    )
