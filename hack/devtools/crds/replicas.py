"""The replicas of a job: a list of entries (v1alpha1 and older) or a map by replica type (v1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools.crds.openapi import Rule, Schema, array, boolean, integer, mapping, record, rule, string
from devtools.crds.template import template

ENTRIES = 16
"""Maximum length of a list or map of replica types, for the cost of rules; no framework has half as many types."""

NAME_LIMIT = 63
"""Maximum length of a label value and of a pod's hostname."""

_CHIEF = "self.terminationPolicy.chief"
_NO_CHIEF = ("!has(self.terminationPolicy)", f"!has({_CHIEF})")


@dataclass(frozen=True, slots=True)
class ReplicaList:
    """An API flavor with a list of replica specs, each with its type in ``type_field``."""

    type_field: str
    types: Sequence[str]
    single: str
    """The type of which a distributed job must have exactly one replica."""
    container: str
    default_type: str = ""
    """Default type of an entry; without a default the field is required."""
    port_fields: Sequence[str] = ()
    """Names of the field for the rendezvous port, the group's own first."""
    default_port: int = 0
    port_text: str = ""
    """Description of the port; by default the single type's port, to which all other replicas connect."""
    standard: str = ""
    """A type whose replicas run the operator's default program if the template has no container of the framework."""
    flag: str = ""
    """The field of an entry that requests the default program."""

    def schema(self, rules: Sequence[Rule] = ()) -> Schema:
        """The list; ``rules`` are additional rules on it."""
        kind = self.type_field
        repeated = f"self.filter(r, !self.exists_one(s, s.{kind} == r.{kind}))"
        return array(
            "The job's replicas, one entry per replica type.",
            self._entry(),
            most=ENTRIES,
            rules=[
                rule(
                    f"{repeated}.size() == 0",
                    computed=f"'{kind} %s occurs more than once: put all replicas of that type into one entry'"
                    f".format([{repeated}[0].{kind}])",
                ),
                *rules,
            ],
        )

    def _entry(self) -> Schema:
        kind = self.type_field
        type_ = string("Replica type.", choices=self.types)
        if self.default_type:
            type_ |= {
                "description": f"Replica type. Default: {self.default_type}.",
                "default": self.default_type,
            }
        port, *earlier_ports = self.port_fields or ("",)
        text = self.port_text or f"Port of the {self.single}, to which all replicas connect"
        ports = {
            name: f"{text}. Default: {self.default_port}." if name == port else f"Alias of {port}."
            for name in self.port_fields
        }
        flag = boolean(
            f"true runs the operator's default {self.standard} program in these replicas even if they have a container "
            f"named {self.container}; without that container they always run it."
        )
        needed = [] if self.standard else ["template"]
        return record(
            "The replicas of one type.",
            {
                kind: type_,
                "replicas": _count(),
                **{name: integer(text, minimum=1, maximum=65535) for name, text in ports.items()},
                **({self.flag: flag} if self.flag else {}),
                "template": template(self.container, optional=bool(self.standard)),
            },
            required=needed if self.default_type else [kind, *needed],
            rules=[
                *(self._own_container() if self.standard else ()),
                rule(
                    "self.replicas == 1",
                    unless=[f"self.{kind} != '{self.single}'"],
                    message=f"replicas must be 1 where {kind} is {self.single}",
                    field=".replicas",
                ),
                *(
                    rule(
                        f"self.{earlier} == self.{port}",
                        unless=[f"!has(self.{earlier})", f"!has(self.{port})"],
                        message=f"{port} and {earlier} are aliases and have different values: remove one of them",
                        field=f".{port}",
                    )
                    for earlier in earlier_ports
                ),
            ],
        )

    def _own_container(self) -> Sequence[Rule]:
        """The rules of :func:`template`, for all types except the one with a default program."""
        free = f"self.{self.type_field} == '{self.standard}'"
        at = "self.template.spec.containers"
        lacks = ["!has(self.template)", "!has(self.template.spec)", f"!has({at})"]
        return [
            rule(
                f"!({' || '.join(lacks)})",
                unless=[free],
                message=f"template.spec.containers is missing: list the pod's containers; only {self.standard} can do "
                "without",
                field=".template",
            ),
            rule(
                f"{at}.exists(c, c.name == '{self.container}')",
                unless=[free, *lacks],
                computed=f"'requires a container named {self.container}, which runs the training, and "
                f"has %s: rename or add one'.format([{at}.map(c, c.name)])",
                field=".template",
            ),
        ]

    def needs_single(self, field: str = "", *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that the list has one entry of the single type; ``field`` is its name, "" for the spec itself."""
        found = f"self{field and '.' + field}.filter(r, r.{self.type_field} == '{self.single}').size()"
        return rule(
            f"{found} == 1",
            unless=unless,
            computed=f"'exactly one entry must have {self.type_field} {self.single}, and %d have: add the missing one "
            f"or remove the others{hint}'.format([{found}])",
            field=field and f".{field}",
        )

    def needs_any(self, field: str, *, unless: Sequence[str] = ()) -> Rule:
        """The rule that the list has at least one replica."""
        return rule(
            f"self.{field}.exists(r, r.replicas > 0)",
            unless=unless,
            message="no entry has a replica: set replicas of at least one entry to 1 or more",
            field=f".{field}",
        )

    def needs_chief(self, field: str, *, unless: Sequence[str] = ()) -> Rule:
        """The rule that the chief, where one is named, is among the replicas."""
        return rule(
            f"self.{field}.exists(r, r.{self.type_field} == {_CHIEF}.replicaName.upperAscii() && "
            f"{_CHIEF}.replicaIndex < r.replicas)",
            unless=[*unless, *_NO_CHIEF],
            computed=_no_such_chief(field),
            field=".terminationPolicy.chief",
        )

    def restarts_as_one(self, field: str, *, unless: Sequence[str] = ()) -> Rule:
        """The rule that restartScope Job excludes restartPolicy Always."""
        policy = "r.template.spec.restartPolicy"
        return _restarts_as_one(
            f"self.{field}.all(r, !has(r.template) || !has(r.template.spec) || !has({policy}) || {policy} != 'Always')",
            unless,
        )


_AS_ONE = "has(self.runPolicy) && has(self.runPolicy.restartScope) && self.runPolicy.restartScope == 'Job'"


def _restarts_as_one(condition: str, unless: Sequence[str]) -> Rule:
    return rule(
        condition,
        unless=[*unless, f"!({_AS_ONE})"],
        message="restartPolicy Always would begin a job of runPolicy.restartScope Job anew even after success: "
        "use OnFailure or ExitCode",
        field=".runPolicy",
    )


@dataclass(frozen=True, slots=True)
class ReplicaMap:
    """An API flavor with a map of replica types (case-insensitive) to replica specs."""

    field: str
    types: Sequence[str]
    container: str
    default_restart_policy: str

    def schema(self) -> Schema:
        """The map."""
        known = ", ".join(f"'{t.lower()}'" for t in self.types)
        unknown = f"self.filter(k, !(k.lowerAscii() in [{known}]))"
        return mapping(
            f"The job's replicas by type: {', '.join(self.types)} (case-insensitive).",
            record(
                "The replicas of one type.",
                {
                    "replicas": _count(),
                    "restartPolicy": string(
                        "Restart policy of the replicas; overrides the template's. Always restarts a terminated "
                        "replica, OnFailure a failed one, ExitCode one with a retryable exit code (128 and above), "
                        f"Never none. Default: {self.default_restart_policy}.",
                        choices=["Always", "OnFailure", "Never", "ExitCode"],
                    ),
                    "template": template(self.container),
                },
                required=["template"],
            ),
            most=ENTRIES,
            rules=[
                rule(
                    f"{unknown}.size() == 0",
                    computed=f"'unknown replica type %s: use {', '.join(self.types)}'.format([{unknown}])",
                ),
                rule(
                    f"[{known}].all(t, self.filter(k, k.lowerAscii() == t).size() <= 1)",
                    message="a replica type occurs twice, in different cases: put its replicas into one entry",
                ),
            ],
        )

    def needs_one(self, type_: str, *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that there is exactly one replica of ``type_``."""
        return rule(
            f"{self.counts(type_)} == [1]",
            unless=[self.absent(), *unless],
            message=f"exactly one {type_}, with replicas of 1, is required: add it or correct its replicas{hint}",
            field=f".{self.field}",
        )

    def needs_any(self, type_: str, *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that there is at least one replica of ``type_``."""
        return rule(
            f"{self.counts(type_)}.exists(n, n > 0)",
            unless=[self.absent(), *unless],
            message=f"at least one replica of {type_} is required: add it{hint}",
            field=f".{self.field}",
        )

    def needs_chief(self) -> Rule:
        """The rule that the chief, where one is named, is among the replicas."""
        at = f"self.{self.field}"
        return rule(
            f"{at}.exists(k, k.lowerAscii() == {_CHIEF}.replicaName.lowerAscii() && "
            f"{_CHIEF}.replicaIndex < {at}[k].replicas)",
            unless=[self.absent(), *_NO_CHIEF],
            computed=_no_such_chief(self.field),
            field=".terminationPolicy.chief",
        )

    def restarts_as_one(self) -> Rule:
        """The rule that restartScope Job excludes restartPolicy Always."""
        policy = f"self.{self.field}[k].restartPolicy"
        condition = f"self.{self.field}.all(k, !has({policy}) || {policy} != 'Always')"
        return _restarts_as_one(condition, [self.absent()])

    def absent(self, spec: str = "self") -> str:
        """A CEL expression that is true if the job does not use this flavor."""
        return f"!has({spec}.{self.field})"

    def name_rules(self) -> Sequence[Rule]:
        """Rules on the whole object: pod names, ``<job>-<type>-<index>``, limit the length of the job's name."""
        at = f"self.spec.{self.field}"
        # a pod's name adds two dashes, the type, and the highest index
        rest = f"{at}.map(k, 2 + k.size() + string({at}[k].replicas > 1 ? {at}[k].replicas - 1 : 0).size()).max()"
        return [
            rule(
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                unless=[self.absent("self.spec")],
                message="pods are named after the job: use lower-case letters, digits and '-', begin with a letter and "
                "do not end with '-'",
                field=".metadata.name",
            ),
            rule(
                f"self.metadata.name.size() + {rest} <= {NAME_LIMIT}",
                unless=[self.absent("self.spec"), f"{at}.size() == 0"],
                computed="'has %d characters, and may have at most %d so that the names of its pods, "
                f"<job>-<type>-<index>, have at most {NAME_LIMIT}: shorten it'"
                f".format([self.metadata.name.size(), {NAME_LIMIT} - {rest}])",
                field=".metadata.name",
            ),
        ]

    def counts(self, type_: str) -> str:
        """A CEL expression for the list of replica counts of ``type_``: none or one."""
        at = f"self.{self.field}"
        return f"{at}.filter(k, k.lowerAscii() == '{type_.lower()}').map(k, {at}[k].replicas)"


@dataclass(frozen=True, slots=True)
class ReplicaSingle:
    """An API flavor with a single replica spec, for the framework's only replica type."""

    field: str
    type: str
    container: str

    def schema(self) -> Schema:
        """The replica spec."""
        count = {**_count(), "minimum": 1, "description": "Number of replicas."}
        return record(
            "The job's replicas.", {"replicas": count, "template": template(self.container)}, required=["template"]
        )

    def name_rules(self) -> Sequence[Rule]:
        """As :meth:`ReplicaMap.name_rules`."""
        count = f"self.spec.{self.field}.replicas"
        rest = f"({len(self.type) + 2} + string({count} - 1).size())"
        return [
            rule(
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                message="pods are named after the job: use lower-case letters, digits and '-', begin with a letter and "
                "do not end with '-'",
                field=".metadata.name",
            ),
            rule(
                f"self.metadata.name.size() + {rest} <= {NAME_LIMIT}",
                computed="'has %d characters, and may have at most %d so that the names of its pods, "
                f"<job>-{self.type.lower()}-<index>, have at most {NAME_LIMIT}: shorten it'"
                f".format([self.metadata.name.size(), {NAME_LIMIT} - {rest}])",
                field=".metadata.name",
            ),
        ]


def label_rule(*, unless: Sequence[str] = ()) -> Rule:
    """The rule that the job's name fits a label value."""
    return rule(
        f"self.metadata.name.size() <= {NAME_LIMIT}",
        unless=unless,
        computed=f"'has %d characters, and a label value of its pods has at most {NAME_LIMIT}: shorten it'"
        ".format([self.metadata.name.size()])",
        field=".metadata.name",
    )


def _no_such_chief(field: str) -> str:
    return (
        f"'chief is %s %s, and {field} has no such replica: name a type that is given there and an index below its "
        f"replicas'.format([{_CHIEF}.replicaName, string({_CHIEF}.replicaIndex)])"
    )


def _count() -> Schema:
    return integer("Number of replicas.", minimum=0, default=1)
