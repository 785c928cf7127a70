"""What the layouts of replicas have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_TARGET, ReplicaType

from devtools.build.generate import pod_schema
from devtools.build.generate.model import Flavor, Framework
from devtools.build.generate.openapi import Rule, Schema, integer, rule

ENTRIES = 16
"""Maximum length of a list or map of replica types, for the cost of rules; no framework has half as many types."""

CHIEF = "self.terminationPolicy.chief"
NO_CHIEF = ("!has(self.terminationPolicy)", f"!has({CHIEF})")
_AS_ONE = "has(self.runPolicy) && has(self.runPolicy.restartScope) && self.runPolicy.restartScope == 'Job'"


@dataclass(frozen=True, slots=True)
class Depth:
    """How many levels below a pod and a container a schema knows the fields; Kubernetes checks the others later."""

    template: int = pod_schema.WHOLE
    groups: int = pod_schema.WHOLE
    """The same for the templates of groups of replicas."""


WHOLE = Depth()


class Layout(Protocol):
    """The field of a spec that holds the replicas of a flavor; "" where the spec itself does."""

    @property
    def field(self) -> str: ...

    def schema(self) -> Schema:
        """The field's schema."""

    def rules(self) -> list[Rule]:
        """The rules on the spec."""

    def counts(self, type_: str) -> str:
        """A CEL expression for the list of replica counts of a type, in rules on the spec: none or one."""

    def longest(self) -> str:
        """A CEL expression, in rules on the object, for the characters that a pod's name adds to the job's.

        They are two dashes, the type and the highest index.
        """

    def pod_name(self) -> str:
        """The pattern of a pod's name, for messages."""


def chief_decides(framework: Framework) -> bool:
    """Whether a job may name the replica that decides its success."""
    return framework.succeeds_by == SUCCEEDS_BY_TARGET


def locally(flavor: Flavor) -> str:
    """A CEL expression that is true for a local job; "" where no job is local."""
    modes = flavor.local_modes
    if not modes or flavor.is_bare:
        return ""
    found = f"== '{modes[0]}'" if len(modes) == 1 else f"in {quoted(modes)}"
    return f"has(self.jobMode) && self.jobMode {found}"


def or_local(flavor: Flavor) -> str:
    """How else to correct a job without a replica that only local jobs can do without."""
    modes = flavor.local_modes
    return f", or set jobMode to {' or '.join(modes)}" if modes and not flavor.is_bare else ""


def always_needed(flavor: Flavor) -> list[ReplicaType]:
    """The types that every job has, local or not."""
    return [] if locally(flavor) else [type_ for type_ in flavor.types if flavor.least(type_)]


def never_always(condition: str, unless: Sequence[str]) -> list[Rule]:
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


def no_such_chief(field: str) -> str:
    """A CEL expression for the error that the chief is not among the replicas."""
    return (
        f"'chief is %s %s, and {field} has no such replica: name a type that is given there and an index below its "
        f"replicas'.format([{CHIEF}.replicaName, string({CHIEF}.replicaIndex)])"
    )


def count(minimum: int = 0, maximum: int = MAX_REPLICAS) -> Schema:
    """The number of replicas of a type; 1 by default, where that is enough."""
    default = {} if minimum > 1 else {"default": 1}
    return integer("Number of replicas.", minimum=minimum, maximum=maximum, **default)


def quoted(texts: Sequence[str]) -> str:
    """A CEL list of the texts."""
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def listed(names: Sequence[str], last: str) -> str:
    """The names with commas, and the word ``last`` before the last one."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
