"""The status, the same for all kinds and flavors: users of either flavor find their own fields in it."""

from __future__ import annotations

from typing import Any

from devtools.crds.openapi import Schema, anything, array, integer, mapping, record, string, time

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
        "description": "Replicas that run, or have succeeded, of those wanted.",
    },
    {
        "name": "Phase",
        "type": "string",
        "jsonPath": ".status.phase",
        "priority": 1,
        "description": "Stage of the job's life.",
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


def status() -> Schema:
    """Open, and without choices or required fields: a status that cannot be written is worth less than an odd one."""
    return record(
        "What the operator reports. Written by the operator only.",
        {
            "state": string("Outcome so far: Running, Succeeded, Failed, or what else stands in the way."),
            "phase": string("Stage of the job's life: Creating, Running, CleanUp, Failed, Done."),
            "reason": string("Why the job is in this state, in a sentence; empty where there is nothing to explain."),
            "replicas": string("Replicas that run (of a successful job: that succeeded) of those wanted, such as 2/5."),
            "runtimeId": string("Part of the names of the job's pods and Services."),
            "conditions": array(
                "What happened to the job, the latest last.",
                record(
                    "One thing that is, or was, true of the job.",
                    {
                        "type": string("Created, Running, Restarting, Suspended, Succeeded or Failed."),
                        "status": string("True, False or Unknown."),
                        "reason": string("The cause in one word, for programs."),
                        "message": string("The cause in a sentence, for people."),
                        "lastUpdateTime": time("When this condition was last written."),
                        "lastTransitionTime": time("When its status last changed."),
                    },
                    open_=True,
                ),
                most=64,
            ),
            "replicaStatuses": anything(
                "Counts by replica type, in the form of the flavor that the job is written in: a list with state and "
                "ReplicasStates, or a map with active, succeeded and failed."
            ),
            "startTime": time("When the operator took the job up; anew at each resumption."),
            "completionTime": time("When the job succeeded or failed."),
            "lastReconcileTime": time("When the operator last had something to do for the job."),
            "observedGeneration": integer("The metadata.generation that this status is about.", format="int64"),
            "attempt": integer(
                "How often all replicas were begun anew together (runPolicy.restartScope Job).", minimum=0
            ),
            "retries": mapping(
                "How often each replica has been started again.",
                integer("Restarts so far."),
                most=100_000,
            ),
            "completed": mapping(
                "Replicas that have ended for good, and how.", string("How this replica ended."), most=100_000
            ),
            "failure": record(
                "Of a failed job, what failed it. Of one that no container failed, reason and message only.",
                {
                    "pod": string("Name of the pod."),
                    "container": string("Name of its container that failed, the training's or another."),
                    "exitCode": integer("Exit code of its process."),
                    "reason": string("Cause in one word, such as Error, OOMKilled or Evicted."),
                    "message": string(
                        "The last that the container said: its termination message or the end of its log, at most "
                        "2048 characters; without one, the failure in a sentence."
                    ),
                },
                open_=True,
            ),
        },
        open_=True,
    )
