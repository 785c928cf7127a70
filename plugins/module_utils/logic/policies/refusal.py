"""What the reason in the status tells the next reconcile: whether Kubernetes refused a pod, and did so again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_POD = "Pod/"
_USED = re.compile(r"(?<=, )used: .*?, (?=limited: )")
"""In the message of a quota: what all objects of the namespace use now."""


def is_of_a_pod(status: Any) -> bool:
    """Whether a pod of the job was not created: the reason begins with the pod's name, as the writer has it."""
    return isinstance(status, Mapping) and str(status.get("reason") or "").startswith(_POD)


def is_same(before: str, now: str) -> bool:
    """Whether two reasons are of the same refusal. What others in the namespace use of its quota changes all the time:
    each change would make a status write and an Event."""
    return _USED.sub("", before) == _USED.sub("", now)


def distinct(messages: Sequence[str]) -> list[str]:
    """The ``messages`` with only the first of those about pods: how many others were in progress by then is chance, and
    the same refusal has to have the same text every time."""
    first = next((text for text in messages if text.startswith(_POD)), None)
    return [text for text in messages if text is first or not text.startswith(_POD)]
