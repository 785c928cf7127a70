"""The pod template of a replica: only what the rules look at is spelt out, all else passes untouched.

The full schema of a PodTemplateSpec has half a megabyte, goes stale with every Kubernetes release and refuses or drops
the fields of a newer one. The API server checks the pods that come of the template anyway.
"""

from __future__ import annotations

from devtools.crds.openapi import Rule, Schema, array, record, rule, string

CONTAINERS = 64
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def needs_container(container: str) -> Rule:
    """The rule of a list of containers that one of them is named ``container``."""
    return rule(
        f"self.exists(c, c.name == '{container}')",
        computed=f"'needs a container named {container}, the one that runs the training, and "
        "has %s: rename or add one'.format([self.map(c, c.name)])",
    )


def template(container: str, *, optional: bool = False) -> Schema:
    """A PodTemplateSpec in which a container named ``container`` runs the training; it must have it, unless that is
    ``optional``: then a rule further up says so where it matters."""
    return record(
        "The pod that every replica of this type runs as: a PodTemplateSpec, taken over as it stands. The operator "
        "adds names, labels, an owner and the variables by which the processes find one another.",
        {
            "metadata": record("Labels and annotations for the pods.", {}, open_=True),
            "spec": record(
                "A PodSpec. Fields that are not described here pass unchanged.",
                {
                    "containers": array(
                        f"The pod's containers. The one named {container} runs the training and its exit code counts; "
                        "any others run beside it.",
                        _container(container),
                        most=CONTAINERS,
                        rules=[] if optional else [needs_container(container)],
                    ),
                    "restartPolicy": string(
                        "What the kubelet does with a container that has ended.",
                        choices=["Always", "OnFailure", "Never"],
                    ),
                },
                required=[] if optional else ["containers"],
                open_=True,
            ),
        },
        required=[] if optional else ["spec"],
    )


def _container(name: str) -> Schema:
    return record(
        "A Container. Fields that are not described here pass unchanged.",
        {
            "name": string(
                f"Name of the container, {name} for the one that runs the training.",
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
