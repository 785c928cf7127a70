"""What the reason in the status tells the next reconcile: whether Kubernetes refused to create an object, and did so
again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import kind_of

_KINDS = ("Pod", "Job", "Service")
"""Kinds of which a reason names one object only. The writer's messages begin with ``kind/name``."""
_USED = re.compile(r"(?<=, )used: (?:(?!, used: ).)*?, (?=limited: )")
"""In the message of a quota: what all objects of the namespace use now. The search for the end of one stops at the
next, because a status may have any text."""
_DENIED_POD = re.compile(r'^(?P<before>Error creating: )?pods "[^"]*"(?P<verb> is\b)?')


def is_of_a_creation(status: Any) -> bool:
    """Whether a pod, a batch Job or a Service was not created: the reason begins with the name of such an object."""
    return isinstance(status, Mapping) and kind_of(str(status.get("reason") or "")) in _KINDS


def is_same(before: str, now: str) -> bool:
    """Whether two reasons are of the same refusal. What others in the namespace use of its quota changes all the time:
    each change would make a status write and an Event."""
    return _USED.sub("", before) == _USED.sub("", now)


def distinct(messages: Sequence[str]) -> list[str]:
    """The ``messages`` with only the first of those about pods, about batch Jobs and about Services: how many others
    were in progress by then is chance, and the same refusal has to have the same text every time."""
    seen: set[str] = set()
    texts = []
    for text in messages:
        kind = kind_of(text)
        if kind not in seen:
            texts.append(text)
        if kind in _KINDS:
            seen.add(kind)
    return texts


def without_pod_name(text: str, *, many: bool = False) -> str:
    """What a controller says of a pod that it could not create, as of "its pod", or with ``many`` "its pods".

    The denied pod never had the name, and each try has another one.
    """

    def named(found: re.Match[str]) -> str:
        verb = (" are" if many else " is") if found["verb"] else ""
        return f"{found['before'] or ''}{'its pods' if many else 'its pod'}{verb}"

    return _DENIED_POD.sub(named, text)
