"""The account in the job's status, as ``usage``::

    {"asOf": RFC 3339, "phase": one of PHASES, "since": RFC 3339,
     "seconds": {"queued": ..., "starting": ..., "running": ..., "restarting": ..., "suspended": ...},
     "resourceSeconds": {"cpu": core seconds, "memory": GiB seconds, "nvidia.com/gpu": device seconds},
     "gpuHours": those of all accelerators, rounded to hundredths,
     "held": {"cpu": cores, ...}, what the pods hold at the time asOf,
     "interruptions": [{"cause": one of CAUSES, "count": ..., "seconds": ..., "resourceSeconds": {...}}],
     and what the next reconcile needs: "settled", "needed", "cause", "beganWith", "deleted", "counted"}

``seconds`` and ``resourceSeconds`` reach until asOf. An interruption is listed once it is over.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_count, as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import COUNTED as COUNTED_POD
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import counted, read_counted
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import is_accelerator
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import (
    CAUSES,
    COUNTED,
    MILLION,
    PHASES,
    Account,
    Amounts,
    Interruptions,
)

_MOST, _MOST_COUNTED = 1e24, 10**12
"""An amount, a number or seconds above are none that a job can have."""


def write(account: Account) -> dict[str, Any]:
    """The field of the status, without what is zero."""
    seconds = dict(account.seconds)
    if account.phase in COUNTED:
        seconds[account.phase] = seconds.get(account.phase, 0) + max(0, account.as_of - account.since)
    gpus = sum(amount for name, amount in account.total.items() if is_accelerator(name))
    found = {
        "asOf": _stamp(account.as_of),
        "phase": account.phase,
        "since": _stamp(account.since),
        "seconds": {phase.lower(): seconds[phase] for phase in COUNTED if seconds.get(phase)},
        "resourceSeconds": _numbers(account.total),
        "gpuHours": round(gpus / MILLION / 3600, 2),
        "held": _numbers(account.held),
        "interruptions": [_interruptions(cause, one) for cause, one in sorted(account.interruptions.items())],
        "settled": _stamp(account.settled),
        "needed": account.needed,
        "cause": account.cause,
        "beganWith": _numbers(account.began_with),
        "deleted": _numbers(account.gone),
        COUNTED_POD: counted(account.watch, account.number),
    }
    return {name: value for name, value in found.items() if value}


def _interruptions(cause: str, one: Interruptions) -> dict[str, Any]:
    held = _numbers(one.held)
    return {"cause": cause, "count": one.count, "seconds": one.seconds, **({"resourceSeconds": held} if held else {})}


def _numbers(amounts: Amounts) -> dict[str, int | float]:
    return {name: _number(amount) for name, amount in sorted(amounts.items()) if amount}


def _number(amount: int) -> int | float:
    whole, rest = divmod(amount, MILLION)
    return amount / MILLION if rest else whole


def read(field: object) -> Account | None:
    """The account of a status; ``None`` where there is none, or not one that this operator has written."""
    given = as_mapping(field)
    as_of, since, phase = clock.seconds(given.get("asOf")), clock.seconds(given.get("since")), given.get("phase")
    if as_of is None or since is None or phase not in PHASES:
        return None
    since = min(since, as_of)
    settled = clock.seconds(given.get("settled"))
    seconds = {phase: _count(as_mapping(given.get("seconds")).get(phase.lower())) for phase in COUNTED}
    if phase in COUNTED:
        seconds[phase] = max(0, seconds[phase] - (as_of - since))
    watch, number = read_counted(given.get(COUNTED_POD))
    return Account(
        as_of=as_of,
        phase=phase,
        since=since,
        settled=min(as_of, max(since, settled or since)),
        seconds={name: count for name, count in seconds.items() if count},
        total=_amounts(given.get("resourceSeconds")),
        held=_amounts(given.get("held")),
        gone=_amounts(given.get("deleted")),
        interruptions={
            one["cause"]: Interruptions(
                _count(one.get("count")), _count(one.get("seconds")), _amounts(one.get("resourceSeconds"))
            )
            for one in maps(given.get("interruptions"))
            if one.get("cause") in CAUSES
        },
        cause=given["cause"] if given.get("cause") in CAUSES else "",
        began_with=_amounts(given.get("beganWith")),
        needed=_count(given.get("needed")),
        watch=watch,
        number=number,
    )


def _count(value: object) -> int:
    return min(as_count(value), _MOST_COUNTED)


def _amounts(field: object) -> Amounts:
    return {str(name): round(value * MILLION) for name, value in as_mapping(field).items() if _is_amount(value)}


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _MOST


def _stamp(seconds: int) -> str:
    return clock.stamp(datetime.fromtimestamp(seconds, UTC))
