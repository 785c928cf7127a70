"""``runPolicy.podFailurePolicy``: rules that decide what follows from the failure of a pod."""

from __future__ import annotations

from dataclasses import dataclass

ACTION_FAIL_JOB = "FailJob"
ACTION_RESTART = "Restart"
ACTION_RESTART_JOB = "RestartJob"
ACTION_IGNORE = "Ignore"
ACTION_COUNT = "Count"
ACTIONS = (ACTION_FAIL_JOB, ACTION_RESTART, ACTION_RESTART_JOB, ACTION_IGNORE, ACTION_COUNT)

REQUIREMENTS = ("onExitCodes", "onTerminationReasons", "onPodConditions")
"""Of which a rule has exactly one."""

OPERATOR_IN = "In"
OPERATOR_NOT_IN = "NotIn"
OPERATORS = (OPERATOR_IN, OPERATOR_NOT_IN)

CONDITION_STATUSES = ("True", "False", "Unknown")

MOST_RULES = 20
MOST_CONDITIONS = 20
MOST_EXIT_CODES = 255
MOST_REASONS = 20
"""The lengths of the lists; the first three are those of batch/v1."""
LARGEST_EXIT_CODE = 255


@dataclass(frozen=True, slots=True)
class OnExitCodes:
    """Matches a pod with a failed container whose exit code is among ``values``, or not, by ``operator``."""

    operator: str
    values: frozenset[int]
    container: str = ""
    """The only container, or init container, that counts; "": each of them."""


@dataclass(frozen=True, slots=True)
class OnTerminationReasons:
    """The same for the reason with which the kubelet reports the end of a failed container (OOMKilled, Error)."""

    operator: str
    values: frozenset[str]
    container: str = ""


@dataclass(frozen=True, slots=True)
class OnPodConditions:
    """Matches a pod that has one of these conditions, each a type and a status."""

    conditions: tuple[tuple[str, str], ...]


Requirement = OnExitCodes | OnTerminationReasons | OnPodConditions


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A rule: what follows from the failure of a pod that meets the requirement."""

    action: str
    requirement: Requirement
