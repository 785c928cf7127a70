"""The replicas of a job: a list of entries (v1alpha1 and older) or a map by replica type (v1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devtools.crds.openapi import Rule, Schema, array, boolean, integer, mapping, record, rule, string
from devtools.crds.template import template

ENTRIES = 16
"""Bound of a list or map of replica types, for the cost of rules; no framework has half as many types."""

NAME_LIMIT = 63
"""Longest label value and longest hostname of a pod."""

_CHIEF = "self.terminationPolicy.chief"
_NO_CHIEF = ("!has(self.terminationPolicy)", f"!has({_CHIEF})")


@dataclass(frozen=True, slots=True)
class ReplicaList:
    """A flavor that lists its replicas, each entry with its type in ``type_field``."""

    type_field: str
    types: Sequence[str]
    single: str
    """The type of which there is one replica; a distributed job cannot do without it."""
    container: str
    default_type: str = ""
    """Type of an entry that names none; without one the field is required."""
    port_fields: Sequence[str] = ()
    """Spellings of the field for the port at which the replicas meet, the group's own first."""
    default_port: int = 0
    port_text: str = ""
    """What the port is; by default the one of the single type's replica, which all others meet at."""
    standard: str = ""
    """A type whose replicas run a program of the operator's where they bring no container of the framework's."""
    flag: str = ""
    """The field of an entry that asks for that program."""

    def schema(self, rules: Sequence[Rule] = ()) -> Schema:
        """The list; ``rules`` are those that hold here in addition."""
        kind = self.type_field
        repeated = f"self.filter(r, !self.exists_one(s, s.{kind} == r.{kind}))"
        return array(
            "The job's replicas, one entry per replica type.",
            self._entry(),
            most=ENTRIES,
            rules=[
                rule(
                    f"{repeated}.size() == 0",
                    computed=f"'{kind} %s is given more than once: put all replicas of that type into one entry'"
                    f".format([{repeated}[0].{kind}])",
                ),
                *rules,
            ],
        )

    def _entry(self) -> Schema:
        kind = self.type_field
        type_ = string("What these replicas do.", choices=self.types)
        if self.default_type:
            type_ |= {
                "description": f"What these replicas do; {self.default_type} where absent.",
                "default": self.default_type,
            }
        port, *earlier_ports = self.port_fields or ("",)
        text = self.port_text or f"Port of the {self.single} that all replicas meet at"
        ports = {
            name: f"{text}; {self.default_port} where absent." if name == port else f"Another name of {port}."
            for name in self.port_fields
        }
        flag = boolean(
            f"true runs the operator's own {self.standard} in these replicas even if they have a container named "
            f"{self.container}; without such a container they run it anyway."
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
                    message=f"replicas must be 1 where {kind} is {self.single}: a job has a single one",
                    field=".replicas",
                ),
                *(
                    rule(
                        f"self.{earlier} == self.{port}",
                        unless=[f"!has(self.{earlier})", f"!has(self.{port})"],
                        message=f"{port} and {earlier} are two names of one port and differ here: keep one of them",
                        field=f".{port}",
                    )
                    for earlier in earlier_ports
                ),
            ],
        )

    def _own_container(self) -> Sequence[Rule]:
        """What :func:`template` demands, of all types but the one that can do without."""
        free = f"self.{self.type_field} == '{self.standard}'"
        at = "self.template.spec.containers"
        lacks = ["!has(self.template)", "!has(self.template.spec)", f"!has({at})"]
        return [
            rule(
                f"!({' || '.join(lacks)})",
                unless=[free],
                message=f"template.spec.containers is missing: describe the pod there; only {self.standard} can do "
                "without",
                field=".template",
            ),
            rule(
                f"{at}.exists(c, c.name == '{self.container}')",
                unless=[free, *lacks],
                computed=f"'needs a container named {self.container}, the one that runs the training, and "
                f"has %s: rename or add one'.format([{at}.map(c, c.name)])",
                field=".template",
            ),
        ]

    def needs_single(self, field: str = "", *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that the list has an entry of the single type; ``field`` names the list, "" if it is the spec."""
        found = f"self{field and '.' + field}.filter(r, r.{self.type_field} == '{self.single}').size()"
        return rule(
            f"{found} == 1",
            unless=unless,
            computed=f"'exactly one entry must have {self.type_field} {self.single}, and %d have: add the missing one "
            f"or remove the others{hint}'.format([{found}])",
            field=field and f".{field}",
        )

    def needs_any(self, field: str, *, unless: Sequence[str] = ()) -> Rule:
        """The rule that the list has a replica at all."""
        return rule(
            f"self.{field}.exists(r, r.replicas > 0)",
            unless=unless,
            message="no entry has a replica: give at least one of them replicas of 1",
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
        """The rule that restartScope Job goes with restarts after failures only."""
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
    """A flavor that maps replica types, in any case, to their specs."""

    field: str
    types: Sequence[str]
    container: str
    default_restart_policy: str

    def schema(self) -> Schema:
        """The map."""
        known = ", ".join(f"'{t.lower()}'" for t in self.types)
        unknown = f"self.filter(k, !(k.lowerAscii() in [{known}]))"
        return mapping(
            f"The job's replicas by type: {', '.join(self.types)}, in any case.",
            record(
                "The replicas of one type.",
                {
                    "replicas": _count(),
                    "restartPolicy": string(
                        "What happens to a replica that has ended, whatever the template says: Always and OnFailure "
                        "start it again, Never does not, ExitCode does where the code is retryable (128 and above). "
                        f"{self.default_restart_policy} where absent.",
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
                    message="a replica type is given twice, in different cases: put its replicas into one entry",
                ),
            ],
        )

    def needs_one(self, type_: str, *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that there is exactly one replica of ``type_``."""
        return rule(
            f"{self.counts(type_)} == [1]",
            unless=[self.absent(), *unless],
            message=f"exactly one {type_}, with replicas of 1, is needed: add it or correct its replicas{hint}",
            field=f".{self.field}",
        )

    def needs_any(self, type_: str, *, unless: Sequence[str] = (), hint: str = "") -> Rule:
        """The rule that there is at least one replica of ``type_``."""
        return rule(
            f"{self.counts(type_)}.exists(n, n > 0)",
            unless=[self.absent(), *unless],
            message=f"at least one replica of {type_} is needed: add it{hint}",
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
        """The rule that restartScope Job goes with restarts after failures only."""
        policy = f"self.{self.field}[k].restartPolicy"
        condition = f"self.{self.field}.all(k, !has({policy}) || {policy} != 'Always')"
        return _restarts_as_one(condition, [self.absent()])

    def absent(self, spec: str = "self") -> str:
        """The CEL expression that the job is not written in this flavor."""
        return f"!has({spec}.{self.field})"

    def name_rules(self) -> Sequence[Rule]:
        """Rules of the whole object: pods are named ``<job>-<type>-<index>``, so the job's name must leave room."""
        at = f"self.spec.{self.field}"
        # what a pod's name has besides the job's: two dashes, the type, and the highest index
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
                computed="'has %d characters, and at most %d leave room for the names of its pods, "
                f"<job>-<type>-<index>, in {NAME_LIMIT}: shorten it'"
                f".format([self.metadata.name.size(), {NAME_LIMIT} - {rest}])",
                field=".metadata.name",
            ),
        ]

    def counts(self, type_: str) -> str:
        """The CEL expression for the numbers of replicas under ``type_``: none or one."""
        at = f"self.{self.field}"
        return f"{at}.filter(k, k.lowerAscii() == '{type_.lower()}').map(k, {at}[k].replicas)"


@dataclass(frozen=True, slots=True)
class ReplicaSingle:
    """A flavor with one replica spec, of the framework's only type."""

    field: str
    type: str
    container: str

    def schema(self) -> Schema:
        """The replica spec."""
        count = {**_count(), "minimum": 1, "description": "Number of replicas, all of which run the same program."}
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
                computed="'has %d characters, and at most %d leave room for the names of its pods, "
                f"<job>-{self.type.lower()}-<index>, in {NAME_LIMIT}: shorten it'"
                f".format([self.metadata.name.size(), {NAME_LIMIT} - {rest}])",
                field=".metadata.name",
            ),
        ]


def label_rule(*, unless: Sequence[str] = ()) -> Rule:
    """The rule of the whole object that its name fits a label."""
    return rule(
        f"self.metadata.name.size() <= {NAME_LIMIT}",
        unless=unless,
        computed=f"'has %d characters, and at most {NAME_LIMIT} fit the label that it becomes on the pods: shorten it'"
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
