"""What the replicas of one type have in every layout: a number, groups, and rules on restarts and on names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.replica_groups import MOST
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_REPLICA_GROUP, NAME_LIMIT

from devtools.build.generate.openapi import LABEL, Rule, Schema, array, integer, record, rule, string

ENTRIES = 16
"""Maximum length of a list or map of replica types, for the cost of rules; no framework has half as many types."""
GROUPS = "groups"
"""The field with replicas of one type that have a pod template of their own."""
_AS_ONE = "has(self.runPolicy) && has(self.runPolicy.restartScope) && self.runPolicy.restartScope == 'Job'"


def count(minimum: int = 0, maximum: int = MAX_REPLICAS) -> Schema:
    """The number of replicas of a type; 1 by default, where that is enough."""
    default = {} if minimum > 1 else {"default": 1}
    return integer("Number of replicas.", minimum=minimum, maximum=maximum, **default)


def groups(
    counted: str,
    pod: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    most: int = MAX_REPLICAS,
) -> Schema:
    """The field :data:`GROUPS`. ``counted`` is the name of the field with a number of replicas, ``pod`` are the fields
    of a group with its template; ``most`` is the largest number of replicas of the type."""
    name = string(
        f"Name of the group, unique among those of the type. It is the label {LABEL_REPLICA_GROUP} of its pods.",
        maxLength=NAME_LIMIT,
        rules=[
            rule(
                f"self.matches('{LABEL}')",
                message="name of a group: use lower-case letters, digits and '-', with a letter or digit at both ends",
            )
        ],
    )
    return array(
        "Groups of replicas of this type that have a pod template of their own, such as those on another kind of node. "
        "They take the indexes in this order, from 0 on; the replicas after them have the template beside this list. "
        "Names, ranks and environment do not depend on the group.",
        record(
            "A group of replicas.",
            {"name": name, counted: count(maximum=most), **pod},
            required=["name", *required],
            rules=rules,
        ),
        most=MOST,
        rules=[
            rule(
                "self.all(g, self.exists_one(other, other.name == g.name))",
                message="two groups have the same name: rename one",
            )
        ],
    )


def fit(counted: str) -> Rule:
    """The rule on a replica spec that it has the replicas of its groups."""
    total = f"self.{GROUPS}.map(g, g.{counted}).sum()"
    return rule(
        f"!has(self.{GROUPS}) || {total} <= self.{counted}",
        computed=f"'the groups have %d replicas, and {counted} is %d: raise {counted}, or lower that of a group'"
        f".format([{total}, self.{counted}])",
        field=f".{GROUPS}",
    )


def never_always(condition: str, unless: Sequence[str] = ()) -> list[Rule]:
    """The rules of what excludes restartPolicy Always, of which ``condition`` is the absence."""
    return [
        rule(
            condition,
            unless=[*unless, f"!({_AS_ONE})"],
            message="restartPolicy Always would begin a job of runPolicy.restartScope Job anew even after success: "
            "use OnFailure or ExitCode",
            field=".runPolicy",
        ),
        rule(
            condition,
            unless=[*unless, "!has(self.runPolicy)", "!has(self.runPolicy.podFailurePolicy)"],
            message="with runPolicy.podFailurePolicy the kubelet restarts no container, which restartPolicy Always "
            "needs: use OnFailure or ExitCode",
            field=".runPolicy",
        ),
    ]


def pod_names(
    longest: str, pattern: str = "<job>-<type>-<index>", *, unless: Sequence[str] = (), empty: Sequence[str] = ()
) -> Iterator[Rule]:
    """The rules on a job after which its pods are named by ``pattern``.

    ``longest`` is a CEL expression for the characters that a pod's name adds, except where one of ``empty`` is true.
    """
    yield rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        unless=unless,
        message="pods are named after the job: use lower-case letters, digits and '-', begin with a letter and "
        "do not end with '-'",
        field=".metadata.name",
    )
    yield rule(
        f"self.metadata.name.size() + {longest} <= {NAME_LIMIT}",
        unless=[*unless, *empty],
        computed="'has %d characters, and may have at most %d so that the names of its pods, "
        f"{pattern}, have at most {NAME_LIMIT}: shorten it'"
        f".format([self.metadata.name.size(), {NAME_LIMIT} - {longest}])",
        field=".metadata.name",
    )
