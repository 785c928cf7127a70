"""Replicas as a list of entries, each with its type: v1alpha1 and older."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ReplicaType

from devtools.build.generate.layout import (
    CHIEF,
    ENTRIES,
    NO_CHIEF,
    WHOLE,
    Depth,
    always_needed,
    chief_decides,
    count,
    listed,
    locally,
    never_always,
    no_such_chief,
    or_local,
)
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import Rule, Schema, array, integer, record, rule, string
from devtools.build.generate.template import template


@dataclass(frozen=True, slots=True)
class ReplicaList:
    """The list in ``field``, or the spec itself where that is ""."""

    framework: Framework
    flavor: Flavor
    field: str
    unless: Sequence[str]
    """CEL expressions that are true if the job has its replicas elsewhere."""
    depth: Depth = WHOLE
    """How deep the fields of pod templates are known."""

    @property
    def _type(self) -> str:
        return self.flavor.api.type_field

    @property
    def _list(self) -> str:
        return f"self.{self.field}" if self.field else "self"

    @property
    def _at(self) -> str:
        return f".{self.field}" if self.field else ""

    def schema(self) -> Schema:
        repeated = f"self.filter(r, !self.exists_one(s, s.{self._type} == r.{self._type}))"
        return array(
            "The job's replicas, one entry per replica type.",
            self._entry(),
            most=ENTRIES,
            rules=[
                rule(
                    f"{repeated}.size() == 0",
                    computed=f"'{self._type} %s occurs more than once: put all replicas of that type into one entry'"
                    f".format([{repeated}[0].{self._type}])",
                ),
                # rules on a spec that is the list itself are rules on the list
                *(() if self.field else self.rules()),
            ],
        )

    def _entry(self) -> Schema:
        flavor, default = self.flavor, self.flavor.default_type.upper()
        kind = string("Replica type.", choices=[type_.name.upper() for type_ in flavor.types])
        if default:
            kind |= {"description": f"Replica type. Default: {default}.", "default": default}
        partial = bool(flavor.template_optional)
        return record(
            "The replicas of one type.",
            {
                self._type: kind,
                "replicas": count(maximum=flavor.most_replicas),
                **self._ports(),
                **{name: schema for added in flavor.replica_fields.values() for name, schema in added.items()},
                "template": template(self.framework.container, optional=partial, levels=self.depth.template),
            },
            required=[*([] if default else [self._type]), *([] if partial else ["template"])],
            rules=[*self._containers(), *self._maxima(), *self._aliases()],
        )

    def _ports(self) -> dict[str, Schema]:
        first, *aliases = self.flavor.api.port_fields or ("",)
        default = self.flavor.api.default_port
        text = {first: f"Port on which each of these replicas listens. Default: {default}."}
        text |= dict.fromkeys(aliases, f"Alias of {first}.")
        return {name: integer(text[name], minimum=1, maximum=65535) for name in self.flavor.api.port_fields}

    def _containers(self) -> Iterator[Rule]:
        """The rules of a complete template, for the types that need one."""
        free = self.flavor.template_optional
        if not free:
            return
        unless = [f"self.{self._type} == '{name.upper()}'" for name in free]
        at, container = "self.template.spec.containers", self.framework.container
        lacks = ["!has(self.template)", "!has(self.template.spec)", f"!has({at})"]
        yield rule(
            f"!({' || '.join(lacks)})",
            unless=unless,
            message="template.spec.containers is missing: list the pod's containers; only "
            f"{listed([name.upper() for name in free], 'and')} can do without",
            field=".template",
        )
        yield rule(
            f"{at}.exists(c, c.name == '{container}')",
            unless=[*unless, *lacks],
            computed=f"'requires a container named {container}, which runs the training, and "
            f"has %s: rename or add one'.format([{at}.map(c, c.name)])",
            field=".template",
        )

    def _maxima(self) -> Iterator[Rule]:
        for type_ in self.flavor.types:
            if type_.maximum is None:
                continue
            name, exact = type_.name.upper(), self._is_single(type_)
            yield rule(
                f"self.replicas {'==' if exact else '<='} {type_.maximum}",
                unless=[f"self.{self._type} != '{name}'"],
                message=f"replicas must be {'' if exact else 'at most '}{type_.maximum} where {self._type} is {name}",
                field=".replicas",
            )

    def _aliases(self) -> Iterator[Rule]:
        port, *aliases = self.flavor.api.port_fields or ("",)
        for alias in aliases:
            yield rule(
                f"self.{alias} == self.{port}",
                unless=[f"!has(self.{alias})", f"!has(self.{port})"],
                message=f"{port} and {alias} are aliases and have different values: remove one of them",
                field=f".{port}",
            )

    def _is_single(self, type_: ReplicaType) -> bool:
        return self.flavor.least(type_) == type_.maximum == 1

    def rules(self) -> list[Rule]:
        found = [self._needs(type_) for type_ in self.flavor.types if self.flavor.least(type_)]
        if self.field:
            found += [*self._needs_any(), *self._needs_chief(), *self._never_always()]
        return found

    def _needs(self, type_: ReplicaType) -> Rule:
        local = locally(self.flavor)
        unless, hint = [*self.unless, *([local] if local else [])], or_local(self.flavor)
        name, least = type_.name.upper(), self.flavor.least(type_)
        if self._is_single(type_):
            found = f"{self._list}.filter(r, r.{self._type} == '{name}').size()"
            return rule(
                f"{found} == 1",
                unless=unless,
                computed=f"'exactly one entry must have {self._type} {name}, and %d have: add the missing one "
                f"or remove the others{hint}'.format([{found}])",
                field=self._at,
            )
        return rule(
            f"{self._list}.exists(r, r.{self._type} == '{name}' && r.replicas >= {least})",
            unless=unless,
            message=f"at least {least} replicas of {self._type} {name} are required: add them{hint}",
            field=self._at,
        )

    def _needs_any(self) -> Iterator[Rule]:
        if not always_needed(self.flavor):
            yield rule(
                f"{self._list}.exists(r, r.replicas > 0)",
                unless=self.unless,
                message="no entry has a replica: set replicas of at least one entry to 1 or more",
                field=self._at,
            )

    def _needs_chief(self) -> Iterator[Rule]:
        """The rule that the chief, where one is named, is among the replicas."""
        if chief_decides(self.framework):
            yield rule(
                f"{self._list}.exists(r, r.{self._type} == {CHIEF}.replicaName.upperAscii() && "
                f"{CHIEF}.replicaIndex < r.replicas)",
                unless=[*self.unless, *NO_CHIEF],
                computed=no_such_chief(self.field),
                field=".terminationPolicy.chief",
            )

    def _never_always(self) -> list[Rule]:
        policy = "r.template.spec.restartPolicy"
        without = f"!has(r.template) || !has(r.template.spec) || !has({policy}) || {policy} != 'Always'"
        return never_always(f"{self._list}.all(r, {without})", self.unless)

    def counts(self, type_: str) -> str:
        return f"{self._list}.filter(r, r.{self._type} == '{type_.upper()}').map(r, r.replicas)"

    def longest(self) -> str:
        index = "string(r.replicas > 1 ? r.replicas - 1 : 0).size()"
        return f"self.spec{self._at}.map(r, 2 + r.{self._type}.size() + {index}).max()"

    def pod_name(self) -> str:
        return "<job>-<type>-<index>"
