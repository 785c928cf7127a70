"""The schema of runPolicy.podFailurePolicy, shared by all API flavors."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTIONS,
    CONDITION_STATUSES,
    LARGEST_EXIT_CODE,
    MOST_CONDITIONS,
    MOST_EXIT_CODES,
    MOST_REASONS,
    MOST_RULES,
    OPERATORS,
    REQUIREMENTS,
)

from devtools.build.generate.openapi import Rule, Schema, array, integer, record, rule, string


def pod_failure_policy() -> Schema:
    """The rules, in the terms of batch/v1."""
    given = ", ".join(f"has(self.{name})" for name in REQUIREMENTS)
    a_rule = record(
        "What follows from the failure of a pod that meets the requirement.",
        {
            "action": string(
                "FailJob fails the job; Restart restarts this replica, whatever its restartPolicy; RestartJob restarts "
                "all replicas; Ignore restarts without counting for backoffLimit and maxRestartsPerReplica; Count does "
                "what the restartPolicy says and counts, even if the cluster ended the pod.",
                choices=ACTIONS,
            ),
            "onExitCodes": _of_container(
                "Requirement on the exit codes of failed containers.",
                "Exit codes.",
                integer("An exit code.", minimum=0, maximum=LARGEST_EXIT_CODE),
                MOST_EXIT_CODES,
                [
                    rule(
                        "self.operator != 'In' || !(0 in self.values)",
                        message="a container with exit code 0 has succeeded, which is no failure: remove 0 from values",
                        field=".values",
                    )
                ],
            ),
            "onTerminationReasons": _of_container(
                "Requirement on the reasons of failed containers, as the kubelet reports them. Not in batch/v1.",
                "Reasons, such as OOMKilled or Error.",
                string("A reason.", minLength=1, maxLength=256),
                MOST_REASONS,
                [],
            ),
            "onPodConditions": {
                **array(
                    "Requirement on the conditions of the pod: it has at least one of these.",
                    record(
                        "A condition of a pod.",
                        {
                            "type": string(
                                "Type of the condition, such as DisruptionTarget.", minLength=1, maxLength=316
                            ),
                            "status": string("Status of the condition.", choices=CONDITION_STATUSES, default="True"),
                        },
                        required=["type"],
                    ),
                    most=MOST_CONDITIONS,
                ),
                "minItems": 1,
            },
        },
        required=["action"],
        rules=[
            rule(
                f"[{given}].filter(given, given).size() == 1",
                message="a rule of podFailurePolicy has exactly one of onExitCodes, onTerminationReasons and "
                "onPodConditions: add or remove one",
            )
        ],
    )
    return record(
        "Rules that decide what follows from the failure of a pod. The first that matches decides; without one the "
        "restartPolicy does. With rules the operator instead of the kubelet restarts failed containers, in a new pod.",
        {"rules": array("The rules, in the order in which they are examined.", a_rule, most=MOST_RULES)},
        required=["rules"],
    )


def _of_container(description: str, plural: str, item: Schema, most: int, rules: list[Rule]) -> Schema:
    values = {**array(plural, item, most=most), "minItems": 1, "x-kubernetes-list-type": "set"}
    return record(
        description,
        {
            "containerName": string(
                "Name of the only container, or init container, that counts. Default: each of them.", maxLength=63
            ),
            "operator": string(
                "Whether the value of the container is among the values: In or NotIn.", choices=OPERATORS
            ),
            "values": values,
        },
        required=["operator", "values"],
        rules=rules,
    )


RUN_POLICY_RULES: tuple[Rule, ...] = (
    rule(
        "!self.podFailurePolicy.rules.exists(r, r.action == 'Restart')",
        unless=["!has(self.restartScope)", "self.restartScope != 'Job'", "!has(self.podFailurePolicy)"],
        message="the action Restart restarts one replica, and with restartScope Job all replicas restart together: use "
        "the action RestartJob, or restartScope Replica",
        field=".podFailurePolicy",
    ),
    rule(
        "!has(self.maxRestartsPerReplica)",
        unless=["!has(self.restartScope)", "self.restartScope != 'Job'"],
        message="maxRestartsPerReplica counts restarts of single replicas, which restartScope Job does not have: use "
        "backoffLimit, or restartScope Replica",
        field=".maxRestartsPerReplica",
    ),
)
"""Rules of a runPolicy with these fields."""
