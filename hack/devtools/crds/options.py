"""What a job says about itself as a whole, besides its replicas. The same in every flavor whose spec is an object."""

from __future__ import annotations

from collections.abc import Sequence

from devtools.crds.openapi import Rule, Schema, boolean, integer, mapping, record, rule, string
from devtools.crds.template import LABEL

CLEAN = ["All", "Running", "None"]
_MANAGERS = ["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue", "dljob.operator/dljob-operator"]


_NO_USE = (
    "Image that the original operator ran where a replica had no template. A template is always needed here, "
    "so this has no effect; it is kept so that old manifests apply."
)


def options(framework: str, modes: Sequence[str], image_field: str, image: str = _NO_USE) -> dict[str, Schema]:
    """The fields. ``modes``: the accepted values of jobMode; ``image``: what the image field is for. Without any modes,
    or image field, there is no such."""
    return {
        **({"jobMode": _job_mode(modes)} if modes else {}),
        "RuntimeId": runtime_id(),
        **({image_field: string(image)} if image_field else {}),
        "schedulerName": string("Kubernetes scheduler that places the pods, where their template names none."),
        "terminationPolicy": record(
            "Which replica decides how the job ends.",
            {
                "chief": record(
                    f"The replica whose {framework} container ends the job, and decides by its exit code between "
                    "success and failure.",
                    {
                        "replicaName": string("Its replica type, in any case."),
                        "replicaIndex": integer("Its number within the type, counted from 0.", minimum=0, default=0),
                    },
                    required=["replicaName"],
                )
            },
        ),
        "cleanPodPolicy": string("Earlier place of runPolicy.cleanPodPolicy.", choices=CLEAN),
        "cleanupPodPolicy": string("Earlier name of runPolicy.cleanPodPolicy.", choices=CLEAN),
        "runPolicy": _run_policy(),
    }


def _job_mode(modes: Sequence[str]) -> Schema:
    return string(
        "dist (or MXTrain) for processes that form a cluster, the default; local for one that trains alone; MXTune "
        "for auto-tuning."
        if "MXTune" in modes
        else "dist for processes that form a cluster, the default; local for one that trains alone.",
        choices=modes,
    )


def runtime_id(field: str = "RuntimeId") -> Schema:
    """The part of names that tells this job from its namesakes; ``field`` is what it is called."""
    return string(
        "Part of the names of all pods and Services of the job. Where it is absent the operator derives one from "
        "the job's UID and reports it in status.runtimeId.",
        maxLength=16,
        rules=[
            rule(
                f"self.matches('{LABEL}')",
                message=f"{field} becomes part of host names: use lower-case letters, digits and '-', with a "
                "letter or digit at both ends",
            )
        ],
    )


OPTION_RULES: Sequence[Rule] = (
    rule(
        "[has(self.cleanPodPolicy), has(self.cleanupPodPolicy), "
        "has(self.runPolicy) && has(self.runPolicy.cleanPodPolicy)].filter(given, given).size() <= 1",
        message="cleanPodPolicy, cleanupPodPolicy and runPolicy.cleanPodPolicy are one setting: keep one of them, "
        "remove the others",
        field=".cleanPodPolicy",
    ),
    rule(
        "(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : '') == "
        "(has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : '')",
        message="runPolicy.managedBy cannot change after the job's creation: delete the job and create it anew",
        field=".runPolicy",
    ),
)
"""Rules of a spec that has :func:`options`."""


def _run_policy() -> Schema:
    return record(
        "When the job ends besides by its own doing, and what is left of it afterwards.",
        {
            "cleanPodPolicy": string(
                "Which pods are deleted when the job has ended: All, those still Running, or None.",
                choices=CLEAN,
            ),
            "ttlSecondsAfterFinished": integer(
                "Seconds after its end at which the job itself is deleted. Kept for ever where absent.",
                minimum=0,
            ),
            "activeDeadlineSeconds": integer(
                "Seconds after its start at which a job that is still running fails.",
                minimum=1,
                format="int64",
            ),
            "backoffLimit": integer(
                "Restarts, of all replicas together, after which the job fails. No limit where absent.",
                minimum=0,
            ),
            "restartScope": string(
                "What restarts when a replica fails that may be tried again: Replica, that one alone (the default), or "
                "Job, all of them together. Job is for programs that do not take a crashed member back.",
                choices=["Replica", "Job"],
            ),
            "suspend": boolean("true stops the job: its pods are deleted, and created again once this is false."),
            "managedBy": string(
                "Who reconciles the job. This operator leaves a job of kueue.x-k8s.io/multikueue alone. Cannot change.",
                choices=_MANAGERS,
            ),
            "schedulingPolicy": _scheduling_policy(),
        },
    )


def _scheduling_policy() -> Schema:
    quantity = {
        "description": "An amount, such as 2, 500m or 4Gi.",
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    return record(
        "How the job's pods are scheduled as a group.",
        {
            "minAvailable": integer("Pods that must fit before any of them starts.", minimum=0),
            "queue": string(
                "Queue that the job waits in. Cannot change.",
                rules=[
                    rule(
                        "self == oldSelf",
                        message="queue cannot change after the job's creation: delete the job and create it anew",
                    )
                ],
            ),
            "minResources": mapping("Resources that the group must get, by name.", quantity, most=64),
            "priorityClass": string("PriorityClass of the pods."),
            "scheduleTimeoutSeconds": integer("Seconds that the group may wait for its place.", minimum=0),
        },
    )
