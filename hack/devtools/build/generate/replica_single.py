"""A single replica spec, for the only type of the framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ReplicaType

from devtools.build.generate.layout import (
    CHIEF,
    NO_CHIEF,
    WHOLE,
    Depth,
    chief_decides,
    count,
    never_always,
    no_such_chief,
)
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import Rule, Schema, record, rule
from devtools.build.generate.template import template


@dataclass(frozen=True, slots=True)
class ReplicaSingle:
    """The replica spec in ``field``."""

    framework: Framework
    flavor: Flavor
    field: str
    unless: Sequence[str]
    """CEL expressions that are true if the job has its replicas elsewhere."""
    depth: Depth = WHOLE
    """How deep the fields of pod templates are known."""

    @property
    def _one(self) -> ReplicaType:
        return self.flavor.types[0]

    def schema(self) -> Schema:
        least = max(1, self.flavor.least(self._one))
        optional = bool(self.flavor.template_optional)
        return record(
            "The job's replicas.",
            {
                "replicas": count(least, self._one.maximum or self.flavor.most_replicas),
                **self.flavor.replica_fields.get(self._one.name, {}),
                "template": template(self.framework.container, optional=optional, levels=self.depth.template),
            },
            required=[*(["replicas"] if least > 1 else []), *([] if optional else ["template"])],
        )

    def rules(self) -> list[Rule]:
        policy = f"self.{self.field}.template.spec.restartPolicy"
        lacks = [f"!has({policy.rsplit('.', depth)[0]})" for depth in (2, 1, 0)]
        found = never_always(f"{' || '.join(lacks)} || {policy} != 'Always'", self.unless)
        if chief_decides(self.framework):
            found.append(
                rule(
                    f"{CHIEF}.replicaName.lowerAscii() == '{self._one.name.lower()}' && "
                    f"{CHIEF}.replicaIndex < self.{self.field}.replicas",
                    unless=[*self.unless, *NO_CHIEF],
                    computed=no_such_chief(self.field),
                    field=".terminationPolicy.chief",
                )
            )
        return found

    def counts(self, type_: str) -> str:
        return f"[self.{self.field}.replicas]"

    def longest(self) -> str:
        return f"({len(self._one.name) + 2} + string(self.spec.{self.field}.replicas - 1).size())"

    def pod_name(self) -> str:
        return f"<job>-{self._one.name.lower()}-<index>"
