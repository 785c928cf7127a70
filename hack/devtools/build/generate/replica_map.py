"""Replicas as a map of types, in any case, to entries: v1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, ExitCodes, ReplicaType

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
    quoted,
)
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import Rule, Schema, mapping, record, rule, string
from devtools.build.generate.replica_groups import FIELD, fit, groups
from devtools.build.generate.template import template


@dataclass(frozen=True, slots=True)
class ReplicaMap:
    """The map in ``field``."""

    framework: Framework
    flavor: Flavor
    field: str
    unless: Sequence[str]
    """CEL expressions that are true if the job has its replicas elsewhere."""
    depth: Depth = WHOLE
    """How deep the fields of pod templates are known."""

    @property
    def _map(self) -> str:
        return f"self.{self.field}"

    def schema(self) -> Schema:
        api = self.flavor.api
        names = [type_.name for type_ in self.flavor.types]
        known = quoted([name.lower() for name in names])
        unknown = f"self.filter(k, !(k.lowerAscii() in {known}))"
        return mapping(
            f"The job's replicas by type: {', '.join(names)} (case-insensitive).",
            record(
                "The replicas of one type.",
                {
                    "replicas": count(maximum=self.flavor.most_replicas),
                    "restartPolicy": string(
                        f"Restart policy of the replicas; overrides the template's. {_policies(api)}. "
                        f"Default: {self._default_policy()}.",
                        choices=list(api.restart_policies),
                    ),
                    **{name: schema for added in self.flavor.replica_fields.values() for name, schema in added.items()},
                    "template": template(
                        self.framework.container,
                        optional=bool(self.flavor.template_optional),
                        of="the replicas of this type that are in no group",
                        levels=self.depth.template,
                    ),
                    FIELD: groups(
                        "replicas",
                        {
                            "template": template(
                                self.framework.container, of="the replicas of the group", levels=self.depth.groups
                            )
                        },
                        required=["template"],
                        most=self.flavor.most_replicas,
                    ),
                },
                required=[] if self.flavor.template_optional else ["template"],
                rules=[fit("replicas")],
            ),
            most=ENTRIES,
            rules=[
                rule(
                    f"{unknown}.size() == 0",
                    computed=f"'unknown replica type %s: use {', '.join(names)}'.format([{unknown}])",
                ),
                rule(
                    f"{known}.all(t, self.filter(k, k.lowerAscii() == t).size() <= 1)",
                    message="a replica type occurs twice, in different cases: put its replicas into one entry",
                ),
                *self._containers(),
            ],
        )

    def _default_policy(self) -> str:
        """The default restart policy, by type where the types differ."""
        by_type = {type_.name: self.flavor.api.default_policy_of(type_.name) for type_ in self.flavor.types}
        if len(set(by_type.values())) == 1:
            return next(iter(by_type.values()))
        return listed([f"{policy} for {name}" for name, policy in by_type.items()], "and")

    def _containers(self) -> Iterator[Rule]:
        """The rule of a complete template, for the types that need one."""
        if not self.flavor.template_optional:
            return
        free = quoted([name.lower() for name in self.flavor.template_optional])
        of, container = "self[k].template", self.framework.container
        whole = f"has({of}) && has({of}.spec) && has({of}.spec.containers)"
        yield rule(
            f"self.all(k, k.lowerAscii() in {free} || "
            f"{whole} && {of}.spec.containers.exists(c, c.name == '{container}'))",
            message=f"a container named {container}, which runs the training, is missing in template.spec.containers: "
            f"add it; only {listed(self.flavor.template_optional, 'and')} can do without",
        )

    def rules(self) -> list[Rule]:
        chief = [self._needs_chief()] if chief_decides(self.framework) else []
        return [*self._bounds(), *self._needs_success_target(), *chief, *self._never_always()]

    def _bounds(self) -> Iterator[Rule]:
        local, hint = locally(self.flavor), or_local(self.flavor)
        unless = [*self.unless, *([local] if local else [])]
        for type_ in self.flavor.types:
            least, counts = self.flavor.least(type_), self.counts(type_.name)
            if least == type_.maximum == 1:
                yield rule(
                    f"{counts} == [1]",
                    unless=unless,
                    message=f"exactly one {type_.name}, with replicas of 1, is required: add it or correct its "
                    f"replicas{hint}",
                    field=f".{self.field}",
                )
                if local:
                    yield self._maximum(type_, [*self.unless, f"!({local})"])
                continue
            if least:
                yield rule(
                    f"{counts}.exists(n, n >= {least})",
                    unless=unless,
                    message=f"at least {least} replicas of {type_.name} are required: add them{hint}"
                    if least > 1
                    else f"at least one replica of {type_.name} is required: add it{hint}",
                    field=f".{self.field}",
                )
            if type_.maximum is not None:
                yield self._maximum(type_, self.unless)

    def _maximum(self, type_: ReplicaType, unless: Sequence[str]) -> Rule:
        most = type_.maximum
        return rule(
            f"{self.counts(type_.name)}.all(n, n <= {most})",
            unless=unless,
            message=f"a job has at most one {type_.name}: set its replicas to 1, or remove the entry"
            if most == 1
            else f"a job has at most {most} replicas of {type_.name}: lower its replicas",
            field=f".{self.field}",
        )

    def _needs_success_target(self) -> Iterator[Rule]:
        """The rule that some replica decides success, unless a type that every job has does."""
        if always_needed(self.flavor):
            return
        names = [type_.name for type_ in self.flavor.types]
        deciding = [name for name in names if name in self.framework.success_target]
        some = f"k.lowerAscii() in {quoted([name.lower() for name in deciding])} && "
        yield rule(
            f"{self._map}.exists(k, {'' if deciding == names else some}{self._map}[k].replicas > 0)",
            unless=self.unless,
            message=f"at least one replica of {listed(deciding, 'or')}, which decides success, is required: add it",
            field=f".{self.field}",
        )

    def _needs_chief(self) -> Rule:
        """The rule that the chief, where one is named, is among the replicas."""
        return rule(
            f"{self._map}.exists(k, k.lowerAscii() == {CHIEF}.replicaName.lowerAscii() && "
            f"{CHIEF}.replicaIndex < {self._map}[k].replicas)",
            unless=[*self.unless, *NO_CHIEF],
            computed=no_such_chief(self.field),
            field=".terminationPolicy.chief",
        )

    def _never_always(self) -> list[Rule]:
        policy = f"{self._map}[k].restartPolicy"
        return never_always(f"{self._map}.all(k, !has({policy}) || {policy} != 'Always')", self.unless)

    def counts(self, type_: str) -> str:
        return f"{self._map}.filter(k, k.lowerAscii() == '{type_.lower()}').map(k, {self._map}[k].replicas)"

    def longest(self) -> str:
        at = f"self.spec.{self.field}"
        alone = [type_.name.lower() for type_ in self.flavor.types if not type_.indexed]
        if alone:
            index = f"1 + string({at}[k].replicas > 1 ? {at}[k].replicas - 1 : 0).size()"
            return f"{at}.map(k, 1 + k.size() + (k.lowerAscii() in {quoted(alone)} ? 0 : {index})).max()"
        return f"{at}.map(k, 2 + k.size() + string({at}[k].replicas > 1 ? {at}[k].replicas - 1 : 0).size()).max()"

    def pod_name(self) -> str:
        return "<job>-<type>-<index>"


def _policies(api: ApiFlavor) -> str:
    """What the restart policies mean, as a sentence has them."""
    meanings = {
        "Always": "a terminated {}",
        "OnFailure": "a failed {}",
        "ExitCode": f"one with a retryable exit code ({_codes(api.exit_codes)})",
        "Never": "none",
    }
    first, *others = [(policy, text) for policy, text in meanings.items() if policy in api.restart_policies]
    parts = [f"{first[0]} restarts {first[1].format('replica')}"]
    return ", ".join([*parts, *(f"{policy} {text.format('one')}" for policy, text in others)])


def _codes(codes: ExitCodes) -> str:
    """The retryable exit codes, as a sentence has them."""
    numbers = sorted(codes.retryable)
    if numbers and numbers == list(range(numbers[0], 256)):
        return f"{numbers[0]} and above"
    return listed([str(number) for number in numbers], "and") if numbers else "none"
