"""The status schema, the same for all kinds and API flavors; it contains the fields of each flavor."""

from __future__ import annotations

from typing import Any

from devtools.build.generate.openapi import Schema, anything, array, integer, mapping, record, string, time

COLUMNS: list[dict[str, Any]] = [
    {
        "name": "State",
        "type": "string",
        "jsonPath": ".status.state",
        "description": "Running, Succeeded, Failed ...",
    },
    {
        "name": "Replicas",
        "type": "string",
        "jsonPath": ".status.replicas",
        "description": "Running or succeeded replicas, of the desired ones.",
    },
    {
        "name": "Phase",
        "type": "string",
        "jsonPath": ".status.phase",
        "priority": 1,
        "description": "Phase of the job.",
    },
    {
        "name": "Reason",
        "type": "string",
        "jsonPath": ".status.reason",
        "priority": 1,
        "description": "Explanation of the state as a sentence.",
    },
    {
        "name": "Runtime ID",
        "type": "string",
        "jsonPath": ".status.runtimeId",
        "priority": 1,
        "description": "Part of the names of the job's pods.",
    },
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "Time since the job's creation.",
    },
]


def status(*, has_versions: bool = False) -> Schema:
    """Preserves unknown fields and has neither enums nor required fields, so that status writes are never rejected.

    ``has_versions``: whether jobs of the kind's versions differ.
    """
    version = {"apiVersion": string("API version in which the job was created, which decides what its fields mean.")}
    return record(
        "Observed state of the job. Written by the operator only.",
        {
            "state": string("State of the job: Running, Succeeded, Failed, or the cause of a delay."),
            "phase": string("Phase of the job: Creating, Running, Suspended, CleanUp, Failed, Done."),
            "reason": string("Explanation of the state as a sentence; may be empty."),
            "replicas": string(
                "Running replicas (of a successful job: succeeded ones) of the desired ones, such as 2/5."
            ),
            "runtimeId": string("Part of the names of the job's pods and Services."),
            **(version if has_versions else {}),
            "conditions": array(
                "Conditions of the job, the latest last.",
                record(
                    "A condition of the job.",
                    {
                        "type": string("Created, Running, Restarting, Suspended, Succeeded or Failed."),
                        "status": string("True, False or Unknown."),
                        "reason": string("Machine-readable cause, as one word."),
                        "message": string("Human-readable cause, as a sentence."),
                        "lastUpdateTime": time("Time at which this condition was last updated."),
                        "lastTransitionTime": time("Time at which the status last changed."),
                    },
                    open_=True,
                ),
                most=64,
            ),
            "replicaStatuses": anything(
                "Counts by replica type, in the layout of the job's API flavor: a list with state and ReplicasStates, "
                "or a map with active, succeeded and failed."
            ),
            "startTime": time("Time at which the operator started the job; set again at each resumption."),
            "completionTime": time("Time at which the job succeeded or failed."),
            "lastReconcileTime": time("Time of the last reconcile that changed something."),
            "observedGeneration": integer("The metadata.generation that the operator has observed.", format="int64"),
            "attempt": integer(
                "How often all replicas were restarted together (runPolicy.restartScope Job, or a rule of "
                "runPolicy.podFailurePolicy with the action RestartJob).",
                minimum=0,
            ),
            "retries": mapping(
                "Number of restarts of each replica by a new pod, and of all together (job). While the job runs, a "
                "failure counts before its restart. For a replica that a batch Job runs, such as the launcher of an "
                "MPIJob, restarts of its container count too.",
                integer("Number of restarts."),
                most=100_000,
            ),
            "ignoredRetries": mapping(
                "Number of restarts of each replica that rules of runPolicy.podFailurePolicy with the action Ignore "
                "exclude from retries.",
                integer("Number of restarts."),
                most=100_000,
            ),
            "consequentRestarts": anything("How many restarts of each replica followed from the loss of another one."),
            "lastLoss": anything("The last end of a replica that ran again, and the replicas that failed after it."),
            "batchJobs": mapping(
                "What the batch Jobs that run replicas have shown so far: their uids, restarts, and the last failure.",
                anything("uid, restarts, before (restarts by earlier batch Jobs) and failure."),
                most=100_000,
            ),
            "completed": mapping(
                "Replicas that have terminated and are not restarted.", string("Result of the replica."), most=100_000
            ),
            "ignoredSettings": mapping(
                "By replica type, what its pod templates set in vain, because the operator sets it for each pod.",
                string("Names of variables, labels and fields."),
                most=100,
            ),
            "failure": record(
                "Cause of a job's failure. Only reason and message, unless a container caused it.",
                {
                    "pod": string("Name of the pod."),
                    "container": string("Name of the container that failed."),
                    "exitCode": integer("Exit code of the container."),
                    "reason": string("Cause as one word, such as Error, OOMKilled or Evicted."),
                    "message": string(
                        "The container's termination message or the tail of its log, at most 2048 characters; without "
                        "either, a sentence that describes the failure."
                    ),
                },
                open_=True,
            ),
        },
        open_=True,
    )
