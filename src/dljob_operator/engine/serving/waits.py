"""What jobs wait for, in a word, so that a metric can count them: from the sentence in their statuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dljob_operator.engine.statuses import end_of, true_conditions

_CAUSES = (
    ("Queue", r"^Waits in the queue|^Its Workload|^Kueue "),
    ("Quota", r"exceeded quota"),
    ("Image", r"ImagePull|ErrImage|InvalidImageName|ImageInspectError"),
    ("Node", r"Unschedulable|nodes? are available|nodes? didn't|SchedulingGated|pods of the gang"),
    ("Volume", r"Failed(?:Mount|AttachVolume|Binding)|[Pp]ersistent[Vv]olume|volume"),
    ("Configuration", r"CreateContainer(?:Config)?Error|FailedCreatePodSandBox|RunContainerError"),
    ("Name", r"an object of that name exists|waits until it is gone"),
    ("Termination", r"which terminates|should have terminated|node is probably lost|has set its finalizers"),
    ("Order", r"starts once all replicas of"),
    ("Admission", r"denied|forbidden|PodSecurity|admission webhook"),
)
"""The first that matches counts; Other is the rest."""
_PATTERNS = tuple((cause, re.compile(pattern)) for cause, pattern in _CAUSES)
_LONGEST = 2048


def cause_of(status: Mapping[str, Any]) -> str:
    """Why a job whose replicas do not all run yet waits; "" for one that waits for nothing, runs or has ended.

    ``status`` is the job's. One that its user suspends waits for nothing.
    """
    reason = status.get("reason")
    if not isinstance(reason, str) or not reason or end_of(status) or "Running" in true_conditions(status):
        return ""
    text = reason[:_LONGEST]
    return next((cause for cause, pattern in _PATTERNS if pattern.search(text)), "Other")
