"""The schema of runPolicy.startupPolicy, shared by all API flavors."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.startup_policy import CONDITIONS
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import STARTUP_ORDERS

from devtools.build.generate.openapi import Schema, array, mapping, record, rule, string

_TYPES = 16


def startup_policy() -> Schema:
    """In which order the pods of the replica types are created."""
    dependency = record(
        "A replica type that is waited for.",
        {
            "replicaType": string("The type, case-insensitive.", minLength=1, maxLength=63),
            "condition": string(
                "State that all its replicas must have reached: Ready, Running, or Complete. Replicas that have "
                "completed are both.",
                choices=list(CONDITIONS),
                default="Ready",
            ),
        },
        required=["replicaType"],
    )
    return record(
        "Order in which the pods of the replica types are created. Existing pods stay, whatever happens to others.",
        {
            "startupPolicyOrder": string(
                "InOrder creates the pods of a type once all replicas of the types before it are ready, in the order "
                "in which the framework declares them. AnyOrder, the default, creates all at once.",
                choices=STARTUP_ORDERS,
            ),
            "dependsOn": mapping(
                "By replica type, case-insensitive, the types that it waits for.",
                array("The types that it waits for.", dependency, most=_TYPES),
                most=_TYPES,
            ),
        },
        rules=[
            rule(
                "!has(self.dependsOn)",
                unless=["!has(self.startupPolicyOrder)", "self.startupPolicyOrder != 'InOrder'"],
                message="startupPolicyOrder InOrder and dependsOn are two orders: remove one of them",
                field=".dependsOn",
            ),
            rule(
                "self.dependsOn.all(t, self.dependsOn[t].all(d, d.replicaType.lowerAscii() != t.lowerAscii()))",
                unless=["!has(self.dependsOn)"],
                message="a replica type waits for itself: name another type in replicaType",
                field=".dependsOn",
            ),
        ],
    )
