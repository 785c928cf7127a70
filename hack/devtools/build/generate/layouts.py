"""The field of a spec that holds the replicas: a list of entries, a map of types, or one entry for the only type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    LAYOUT_LIST,
    LAYOUT_MAP,
    LAYOUT_SINGLE,
    SUCCEEDS_BY_TARGET,
    ApiFlavor,
    ExitCodes,
    ReplicaType,
)

from devtools.build.generate import pod_schema
from devtools.build.generate.entries import ENTRIES, GROUPS, count, fit, groups, never_always
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import (
    Rule,
    Schema,
    array,
    integer,
    listed,
    mapping,
    quoted,
    record,
    rule,
    string,
)
from devtools.build.generate.template import template

_CHIEF = "self.terminationPolicy.chief"


@dataclass(frozen=True, slots=True)
class Depth:
    """How many levels below a pod and a container a schema knows the fields; Kubernetes checks the others later."""

    template: int = pod_schema.WHOLE
    groups: int = pod_schema.WHOLE
    """The same for the templates of groups of replicas."""


WHOLE = Depth()


def chief_decides(framework: Framework) -> bool:
    """Whether a job may name the replica that decides its success."""
    return framework.succeeds_by == SUCCEEDS_BY_TARGET


@dataclass(frozen=True, slots=True)
class Layout(ABC):
    """The replicas of a flavor in ``field``; "" where the spec itself holds them."""

    framework: Framework
    flavor: Flavor
    field: str
    unless: Sequence[str]
    """CEL expressions that are true if the job has its replicas elsewhere."""
    depth: Depth = WHOLE
    """How deep the fields of pod templates are known."""

    @abstractmethod
    def schema(self) -> Schema:
        """The field's schema."""

    @abstractmethod
    def rules(self) -> list[Rule]:
        """The rules on the spec."""

    @abstractmethod
    def counts(self, type_: str) -> str:
        """A CEL expression for the list of replica counts of a type, in rules on the spec: none or one."""

    @abstractmethod
    def longest(self) -> str:
        """A CEL expression, in rules on the object, for the characters that a pod's name adds to the job's.

        They are two dashes, the type and the highest index.
        """

    def pod_name(self) -> str:
        """The pattern of a pod's name, for messages."""
        return "<job>-<type>-<index>"

    def empty(self) -> list[str]:
        """CEL expressions, in rules on the object, that are true if there is no entry, so that none is the longest."""
        return [f"self.spec{self._path}.size() == 0"]

    @property
    def _path(self) -> str:
        return f".{self.field}" if self.field else ""

    @property
    def _partial(self) -> bool:
        """Whether some type can do without a template."""
        return bool(self.flavor.template_optional)

    def _local(self) -> list[str]:
        """A CEL expression that is true for a local job; none where no job is local."""
        modes = self.flavor.local_modes
        if not modes or self.flavor.is_bare:
            return []
        found = f"== '{modes[0]}'" if len(modes) == 1 else f"in {quoted(modes)}"
        return [f"has(self.jobMode) && self.jobMode {found}"]

    def _or_local(self) -> str:
        """How else to correct a job without a replica that only local jobs can do without."""
        return f", or set jobMode to {' or '.join(self.flavor.local_modes)}" if self._local() else ""

    def _always_needed(self) -> list[ReplicaType]:
        """The types that every job has, local or not."""
        return [] if self._local() else [type_ for type_ in self.flavor.types if self.flavor.least(type_)]

    def _is_single(self, type_: ReplicaType) -> bool:
        return self.flavor.least(type_) == type_.maximum == 1

    def _needs_chief(self, found: str) -> list[Rule]:
        """The rule that the chief, where one is named, is among the replicas, as the CEL expression ``found`` says."""
        if not chief_decides(self.framework):
            return []
        return [
            rule(
                found,
                unless=[*self.unless, "!has(self.terminationPolicy)", f"!has({_CHIEF})"],
                computed=f"'chief is %s %s, and {self.field} has no such replica: name a type that is given there and "
                f"an index below its replicas'.format([{_CHIEF}.replicaName, string({_CHIEF}.replicaIndex)])",
                field=".terminationPolicy.chief",
            )
        ]


@dataclass(frozen=True, slots=True)
class ReplicaList(Layout):
    """A list of entries, each with its type: v1alpha1 and older."""

    @property
    def _type(self) -> str:
        return self.flavor.api.type_field

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
        return record(
            "The replicas of one type.",
            {
                self._type: kind,
                "replicas": count(maximum=flavor.most_replicas),
                **self._ports(),
                **flavor.added_fields(),
                "template": template(self.framework.container, optional=self._partial, levels=self.depth.template),
            },
            required=[*([] if default else [self._type]), *([] if self._partial else ["template"])],
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

    def rules(self) -> list[Rule]:
        found = [self._needs(type_) for type_ in self.flavor.types if self.flavor.least(type_)]
        if not self.field:
            return found
        policy = "r.template.spec.restartPolicy"
        without = f"!has(r.template) || !has(r.template.spec) || !has({policy}) || {policy} != 'Always'"
        chief = (
            f"self{self._path}.exists(r, r.{self._type} == {_CHIEF}.replicaName.upperAscii() && "
            f"{_CHIEF}.replicaIndex < r.replicas)"
        )
        return [
            *found,
            *self._needs_any(),
            *self._needs_chief(chief),
            *never_always(f"self{self._path}.all(r, {without})", self.unless),
        ]

    def _needs(self, type_: ReplicaType) -> Rule:
        unless, hint = [*self.unless, *self._local()], self._or_local()
        name, least = type_.name.upper(), self.flavor.least(type_)
        if self._is_single(type_):
            found = f"self{self._path}.filter(r, r.{self._type} == '{name}').size()"
            return rule(
                f"{found} == 1",
                unless=unless,
                computed=f"'exactly one entry must have {self._type} {name}, and %d have: add the missing one "
                f"or remove the others{hint}'.format([{found}])",
                field=self._path,
            )
        return rule(
            f"self{self._path}.exists(r, r.{self._type} == '{name}' && r.replicas >= {least})",
            unless=unless,
            message=f"at least {least} replicas of {self._type} {name} are required: add them{hint}",
            field=self._path,
        )

    def _needs_any(self) -> Iterator[Rule]:
        if not self._always_needed():
            yield rule(
                f"self{self._path}.exists(r, r.replicas > 0)",
                unless=self.unless,
                message="no entry has a replica: set replicas of at least one entry to 1 or more",
                field=self._path,
            )

    def counts(self, type_: str) -> str:
        return f"self{self._path}.filter(r, r.{self._type} == '{type_.upper()}').map(r, r.replicas)"

    def longest(self) -> str:
        index = "string(r.replicas > 1 ? r.replicas - 1 : 0).size()"
        return f"self.spec{self._path}.map(r, 2 + r.{self._type}.size() + {index}).max()"


@dataclass(frozen=True, slots=True)
class ReplicaMap(Layout):
    """A map of types, in any case, to entries: v1."""

    def schema(self) -> Schema:
        names = [type_.name for type_ in self.flavor.types]
        known = quoted([name.lower() for name in names])
        unknown = f"self.filter(k, !(k.lowerAscii() in {known}))"
        return mapping(
            f"The job's replicas by type: {', '.join(names)} (case-insensitive).",
            self._entry(),
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

    def _entry(self) -> Schema:
        api, container = self.flavor.api, self.framework.container
        of_type, of_group = "the replicas of this type that are in no group", "the replicas of the group"
        in_group = {"template": template(container, of=of_group, levels=self.depth.groups)}
        return record(
            "The replicas of one type.",
            {
                "replicas": count(maximum=self.flavor.most_replicas),
                "restartPolicy": string(
                    f"Restart policy of the replicas; overrides the template's. {_policies(api)}. "
                    f"Default: {self._default_policy()}.",
                    choices=list(api.restart_policies),
                ),
                **self.flavor.added_fields(),
                "template": template(container, optional=self._partial, of=of_type, levels=self.depth.template),
                GROUPS: groups("replicas", in_group, required=["template"], most=self.flavor.most_replicas),
            },
            required=[] if self._partial else ["template"],
            rules=[fit("replicas")],
        )

    def _default_policy(self) -> str:
        """The default restart policy, by type where the types differ."""
        by_type = {type_.name: self.flavor.api.default_policy_of(type_.name) for type_ in self.flavor.types}
        if len(set(by_type.values())) == 1:
            return next(iter(by_type.values()))
        return listed([f"{policy} for {name}" for name, policy in by_type.items()], "and")

    def _containers(self) -> Iterator[Rule]:
        """The rule of a complete template, for the types that need one."""
        if not self._partial:
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
        at = f"self.{self.field}"
        policy = f"{at}[k].restartPolicy"
        chief = (
            f"{at}.exists(k, k.lowerAscii() == {_CHIEF}.replicaName.lowerAscii() && "
            f"{_CHIEF}.replicaIndex < {at}[k].replicas)"
        )
        return [
            *self._bounds(),
            *self._needs_success_target(),
            *self._needs_chief(chief),
            *never_always(f"{at}.all(k, !has({policy}) || {policy} != 'Always')", self.unless),
        ]

    def _bounds(self) -> Iterator[Rule]:
        local, hint = self._local(), self._or_local()
        for type_ in self.flavor.types:
            least, counts = self.flavor.least(type_), self.counts(type_.name)
            if self._is_single(type_):
                yield rule(
                    f"{counts} == [1]",
                    unless=[*self.unless, *local],
                    message=f"exactly one {type_.name}, with replicas of 1, is required: add it or correct its "
                    f"replicas{hint}",
                    field=self._path,
                )
                if local:
                    yield self._maximum(type_, [*self.unless, f"!({local[0]})"])
                continue
            if least:
                yield rule(
                    f"{counts}.exists(n, n >= {least})",
                    unless=[*self.unless, *local],
                    message=f"at least {least} replicas of {type_.name} are required: add them{hint}"
                    if least > 1
                    else f"at least one replica of {type_.name} is required: add it{hint}",
                    field=self._path,
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
            field=self._path,
        )

    def _needs_success_target(self) -> Iterator[Rule]:
        """The rule that some replica decides success, unless a type that every job has does."""
        if self._always_needed():
            return
        names = [type_.name for type_ in self.flavor.types]
        deciding = [name for name in names if name in self.framework.success_target]
        some = f"k.lowerAscii() in {quoted([name.lower() for name in deciding])} && "
        yield rule(
            f"self.{self.field}.exists(k, {'' if deciding == names else some}self.{self.field}[k].replicas > 0)",
            unless=self.unless,
            message=f"at least one replica of {listed(deciding, 'or')}, which decides success, is required: add it",
            field=self._path,
        )

    def counts(self, type_: str) -> str:
        at = f"self.{self.field}"
        return f"{at}.filter(k, k.lowerAscii() == '{type_.lower()}').map(k, {at}[k].replicas)"

    def longest(self) -> str:
        at = f"self.spec.{self.field}"
        index = f"string({at}[k].replicas > 1 ? {at}[k].replicas - 1 : 0).size()"
        alone = [type_.name.lower() for type_ in self.flavor.types if not type_.indexed]
        if alone:
            return f"{at}.map(k, 1 + k.size() + (k.lowerAscii() in {quoted(alone)} ? 0 : 1 + {index})).max()"
        return f"{at}.map(k, 2 + k.size() + {index}).max()"


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


@dataclass(frozen=True, slots=True)
class ReplicaSingle(Layout):
    """One entry, for the only type of the framework."""

    @property
    def _one(self) -> ReplicaType:
        return self.flavor.types[0]

    def schema(self) -> Schema:
        least = max(1, self.flavor.least(self._one))
        return record(
            "The job's replicas.",
            {
                "replicas": count(least, self._one.maximum or self.flavor.most_replicas),
                **self.flavor.replica_fields.get(self._one.name, {}),
                "template": template(self.framework.container, optional=self._partial, levels=self.depth.template),
            },
            required=[*(["replicas"] if least > 1 else []), *([] if self._partial else ["template"])],
        )

    def rules(self) -> list[Rule]:
        policy = f"self.{self.field}.template.spec.restartPolicy"
        lacks = [f"!has({policy.rsplit('.', depth)[0]})" for depth in (2, 1, 0)]
        chief = (
            f"{_CHIEF}.replicaName.lowerAscii() == '{self._one.name.lower()}' && "
            f"{_CHIEF}.replicaIndex < self.{self.field}.replicas"
        )
        always = never_always(f"{' || '.join(lacks)} || {policy} != 'Always'", self.unless)
        return [*always, *self._needs_chief(chief)]

    def counts(self, type_: str) -> str:
        return f"[self.{self.field}.replicas]"

    def longest(self) -> str:
        return f"({len(self._one.name) + 2} + string(self.spec.{self.field}.replicas - 1).size())"

    def pod_name(self) -> str:
        return f"<job>-{self._one.name.lower()}-<index>"

    def empty(self) -> list[str]:
        return []


LAYOUTS: dict[str, Callable[[Framework, Flavor, str, Sequence[str], Depth], Layout]] = {
    LAYOUT_LIST: ReplicaList,
    LAYOUT_MAP: ReplicaMap,
    LAYOUT_SINGLE: ReplicaSingle,
}
TEXTS = {LAYOUT_LIST: "a list", LAYOUT_MAP: "a map", LAYOUT_SINGLE: "one entry"}
"""What users call a layout."""
