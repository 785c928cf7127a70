"""What the pods of a job held and did, and the account of it that the job's status keeps.

Times are whole seconds since 1970, as Kubernetes has them. Amounts are in millionths: of a core for ``cpu``, of a GiB
for ``memory``, of a device for an extended resource such as ``nvidia.com/gpu``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Amounts = Mapping[str, int]
"""By resource: millionths, or millionths times seconds."""

MILLION = 1_000_000

QUEUED, STARTING, RUNNING, RESTARTING, SUSPENDED, ENDED = PHASES = (
    "Queued",
    "Starting",
    "Running",
    "Restarting",
    "Suspended",
    "Ended",
)
"""The phases of an account. Queued: no pod has a node since the job was created, or resumed. Starting: from its first
pod with a node until all its replicas run. Restarting: one of them does not run any more."""
COUNTED = (QUEUED, STARTING, RUNNING, RESTARTING, SUSPENDED)
"""The phases whose seconds count."""
IDLE = (STARTING, RESTARTING)
"""The phases in which a job holds resources while not all its replicas run."""

STARTUP, DISRUPTION, FAILURE, STALL, DELETION, OTHER = CAUSES = (
    "Startup",
    "Disruption",
    "Failure",
    "Stall",
    "Deletion",
    "Other",
)
"""Why not all replicas ran. Disruption: the cluster took a pod away, as by preemption, eviction or a lost node.
Failure: a program ended with an error. Stall: pods were deleted since the job had stalled. Deletion: a pod was deleted
otherwise, by a user, or by the operator for an edit of the job. Other: the job has got more replicas, or the cause is
not known."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time from ``start`` to ``end``, ``None`` while it lasts."""

    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that has or had a node."""

    replica: tuple[str, int]
    """The type in lower case, and the index."""
    requests: Amounts
    held: Span
    """From the time it was bound to its node until its containers have ended."""
    worked: tuple[Span, ...] = ()
    """When the framework's container ran, as far as its status tells."""
    succeeded: int | None = None
    """When that container has ended for good with exit code 0."""
    cause: str = OTHER
    """Why its last span of ``worked`` ended, one of CAUSES."""
    number: int = 0
    """Of a pod that is gone: its place in the order in which the engine saw pods go. 0 where it exists."""


@dataclass(frozen=True, slots=True)
class PodUses:
    """All that is known of a job's pods."""

    pods: tuple[PodUse, ...] = ()
    """Those that exist."""
    gone: tuple[PodUse, ...] = ()
    """Those that the engine has seen go."""
    watch: str = ""
    """Names the engine's process, whose numbers ``gone`` has; "" without one."""
    since: int | None = None
    """Since when that process has seen pods go; ``None`` without one."""


@dataclass(frozen=True, slots=True)
class Interruptions:
    """What one cause has cost."""

    count: int = 0
    seconds: int = 0
    held: Amounts = field(default_factory=dict)
    """Millionths times seconds that the job held meanwhile."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a job has used until ``as_of``."""

    as_of: int
    phase: str
    since: int
    """When ``phase`` began."""
    settled: int
    """Up to here the phases are final: of pods that are gone nothing is known any more before it."""
    seconds: Mapping[str, int] = field(default_factory=dict)
    """By phase, without the current one's."""
    total: Amounts = field(default_factory=dict)
    """Millionths times seconds."""
    held: Amounts = field(default_factory=dict)
    """Millionths, at ``as_of``."""
    gone: Amounts = field(default_factory=dict)
    """The part of ``total`` that is of pods which are gone."""
    interruptions: Mapping[str, Interruptions] = field(default_factory=dict)
    """By cause, of the phases that are over."""
    cause: str = ""
    """Of the current phase, where it is one of IDLE."""
    began_with: Amounts = field(default_factory=dict)
    """``total`` when the current phase began, where it is one of IDLE."""
    needed: int = 0
    """How many replicas had to run, at ``as_of``."""
    watch: str = ""
    """As :attr:`PodUses.watch`."""
    number: int = 0
    """The last of its numbers that is counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What an account needs to know of the job itself."""

    created: int
    replicas: tuple[tuple[str, int], ...]
    """All that the job wants, as :attr:`PodUse.replica`."""
    elastic: str = ""
    """The type of which one replica is enough, in lower case."""
    completed: frozenset[tuple[str, int]] = frozenset()
    """The replicas that have succeeded and may have no pod any more."""
    rests: str = ""
    """SUSPENDED or QUEUED while the job is to have no pods."""
    rested: int | None = None
    """Since when it has none because of that."""
    started: int = 0
    """When it was started, or resumed, last."""
    ended: int | None = None
    """When it has ended."""
    stalled: bool = False
    """Whether it stalls, or did so when its replicas ran last."""
