"""The field ``groups`` of a replica spec: replicas of one type that have a pod template of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.replica_groups import MOST
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_REPLICA_GROUP, NAME_LIMIT

from devtools.build.generate.layout import count
from devtools.build.generate.openapi import Rule, Schema, array, record, rule, string
from devtools.build.generate.template import LABEL

FIELD = "groups"


def groups(
    counted: str,
    pod: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    most: int = MAX_REPLICAS,
) -> Schema:
    """The field. ``counted`` is the name of the field with a number of replicas, ``pod`` are the fields of a group with
    its template; ``most`` is the largest number of replicas of the type."""
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
    total = f"self.{FIELD}.map(g, g.{counted}).sum()"
    return rule(
        f"!has(self.{FIELD}) || {total} <= self.{counted}",
        computed=f"'the groups have %d replicas, and {counted} is %d: raise {counted}, or lower that of a group'"
        f".format([{total}, self.{counted}])",
        field=f".{FIELD}",
    )
