"""Fields of a job's spec besides its replicas, shared by all API flavors."""

from __future__ import annotations

from collections.abc import Sequence

from devtools.crds.openapi import Rule, Schema, boolean, integer, mapping, record, rule, string
from devtools.crds.template import LABEL

CLEAN = ["All", "Running", "None"]
_MANAGERS = ["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue", "dljob.operator/dljob-operator"]


_NO_USE = (
    "Image that the original operator used for a replica without a template. Has no effect, since a template is "
    "always required here. Accepted so that old manifests apply."
)


def options(framework: str, modes: Sequence[str], image_field: str, image: str = _NO_USE) -> dict[str, Schema]:
    """The fields. ``modes``: the accepted values of jobMode; ``image``: the description of ``image_field``.

    Empty ``modes`` or an empty ``image_field`` omit the field.
    """
    return {
        **({"jobMode": _job_mode(modes)} if modes else {}),
        "RuntimeId": runtime_id(),
        **({image_field: string(image)} if image_field else {}),
        "schedulerName": string("Scheduler of the pods whose template names none."),
        "terminationPolicy": record(
            "The replica that determines whether the job succeeds or fails.",
            {
                "chief": record(
                    f"The replica whose {framework} container ends the job: its exit code determines whether the "
                    "job succeeds or fails.",
                    {
                        "replicaName": string("Replica type, case-insensitive."),
                        "replicaIndex": integer("Index within the replica type, from 0.", minimum=0, default=0),
                    },
                    required=["replicaName"],
                )
            },
        ),
        "cleanPodPolicy": string("Deprecated: use runPolicy.cleanPodPolicy.", choices=CLEAN),
        "cleanupPodPolicy": string("Deprecated: use runPolicy.cleanPodPolicy.", choices=CLEAN),
        "runPolicy": _run_policy(),
    }


def _job_mode(modes: Sequence[str]) -> Schema:
    return string(
        "dist (or MXTrain), the default, for a cluster of processes; local for a single process; MXTune "
        "for auto-tuning."
        if "MXTune" in modes
        else "dist, the default, for a cluster of processes; local for a single process.",
        choices=modes,
    )


def runtime_id(field: str = "RuntimeId") -> Schema:
    """The unique part of the names of the job's objects; ``field`` is the field's name."""
    return string(
        "Part of the names of all pods and Services of the job. By default the operator derives it from the job's "
        "UID and reports it in status.runtimeId.",
        maxLength=16,
        rules=[
            rule(
                f"self.matches('{LABEL}')",
                message=f"{field} is part of host names: use lower-case letters, digits and '-', with a "
                "letter or digit at both ends",
            )
        ],
    )


OPTION_RULES: Sequence[Rule] = (
    rule(
        "[has(self.cleanPodPolicy), has(self.cleanupPodPolicy), "
        "has(self.runPolicy) && has(self.runPolicy.cleanPodPolicy)].filter(given, given).size() <= 1",
        message="cleanPodPolicy, cleanupPodPolicy and runPolicy.cleanPodPolicy are aliases: keep one of them, "
        "remove the others",
        field=".cleanPodPolicy",
    ),
    rule(
        "(has(self.runPolicy) && has(self.runPolicy.managedBy) ? self.runPolicy.managedBy : '') == "
        "(has(oldSelf.runPolicy) && has(oldSelf.runPolicy.managedBy) ? oldSelf.runPolicy.managedBy : '')",
        message="runPolicy.managedBy is immutable: delete the job and create a new one",
        field=".runPolicy",
    ),
)
"""Rules of a spec that has :func:`options`."""


def _run_policy() -> Schema:
    return record(
        "Deadline, retries and suspension of the job, and cleanup after its end.",
        {
            "cleanPodPolicy": string(
                "Pods to delete when the job has finished: All, those still Running, or None.",
                choices=CLEAN,
            ),
            "ttlSecondsAfterFinished": integer(
                "Seconds after the job has finished until the job itself is deleted. Default: never.",
                minimum=0,
            ),
            "activeDeadlineSeconds": integer(
                "Seconds after its start until a job that is still running fails.",
                minimum=1,
                format="int64",
            ),
            "backoffLimit": integer(
                "Number of restarts, summed over all replicas, after which the job fails. Default: no limit.",
                minimum=0,
            ),
            "restartScope": string(
                "What restarts when a replica fails with a retryable error: Replica, only this one (the default), or "
                "Job, all replicas together, for programs that a restarted process cannot rejoin.",
                choices=["Replica", "Job"],
            ),
            "suspend": boolean(
                "true suspends the job: its pods are deleted, and created again when it is set to false."
            ),
            "managedBy": string(
                "Controller of the job. This operator ignores jobs of kueue.x-k8s.io/multikueue. Immutable.",
                choices=_MANAGERS,
            ),
            "schedulingPolicy": _scheduling_policy(),
        },
    )


def _scheduling_policy() -> Schema:
    quantity = {
        "description": "A resource quantity, such as 2, 500m or 4Gi.",
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    return record(
        "Gang scheduling of the job's pods.",
        {
            "minAvailable": integer("Number of pods that must be schedulable before any of them starts.", minimum=0),
            "queue": string(
                "Queue of the job. Immutable.",
                rules=[
                    rule(
                        "self == oldSelf",
                        message="queue is immutable: delete the job and create a new one",
                    )
                ],
            ),
            "minResources": mapping("Resources that the group requires, by name.", quantity, most=64),
            "priorityClass": string("PriorityClass of the pods."),
            "scheduleTimeoutSeconds": integer("Seconds that the group may wait to be scheduled.", minimum=0),
        },
    )
