"""The last states of pods that are gone, until the status of their job counts what they have used.

A pod that is gone has used what it held, and only the watch has seen until when.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import (
    COUNTED,
    account_in,
    header,
    marked,
    read_counted,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import timestamp
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_REPLICA_INDEX, LABEL_REPLICA_TYPE
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import reduce_fields

from dljob_operator.engine.cache.predicates import namespace_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.json_texts import JsonTexts, text_of

_MOST = 16 * 1024 * 1024
"""Characters of the states of all jobs: of more than 10,000 pods with one container."""
_LONGEST = 32 * 1024
"""Characters of a state. A tenant may give a pod hundreds of containers."""

_STATE = {
    "running": {"startedAt": True},
    "terminated": dict.fromkeys(("exitCode", "startedAt", "finishedAt"), True),
}
_STATUSES = {"name": True, "state": _STATE, "lastState": _STATE}
_FIELDS = {
    "metadata": {
        **dict.fromkeys(("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"), True),
        "labels": dict.fromkeys((LABEL_REPLICA_TYPE, LABEL_REPLICA_INDEX), True),
    },
    "spec": True,
    "status": {
        **dict.fromkeys(("phase", "startTime"), True),
        "conditions": dict.fromkeys(("type", "status", "lastTransitionTime"), True),
        **dict.fromkeys(("containerStatuses", "initContainerStatuses"), _STATUSES),
    },
}
"""What an account needs of a pod that is gone: no texts of its containers."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class _Pods:
    """Those of one job."""

    watch: str
    """Names what has seen all of them go since ``since``. Where a state was dropped, it is another one from then on."""
    since: str
    texts: dict[int, str] = field(default_factory=dict)
    """By number, in the order in which they went."""


class DeletedPods:
    """The pods that are gone, by their job. It is safe to use from several threads.

    ``now`` is the clock, ``most`` the number of characters that it keeps. A job whose oldest pod it drops to keep no
    more gets another name of the watch, so that its account knows that one is missing.
    """

    def __init__(self, now: Callable[[], datetime] = _utc_now, most: int = _MOST) -> None:
        self._now = now
        self._most = most
        self._lock = threading.Lock()
        self._watch, self._since = uuid.uuid4().hex[:8], self._stamp()
        self._number = 0
        self._jobs: dict[tuple[str, str], _Pods] = {}
        self._order: OrderedDict[int, tuple[str, str]] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._order)

    def pod_deleted(self, pod: Object, jobs: Iterable[str]) -> None:
        """Note the last state of a pod, for the jobs (UIDs) that it may belong to."""
        if not (pod.get("spec") or {}).get("nodeName"):
            return
        kept = reduce_fields(pod, _FIELDS)
        for uid in jobs:
            with self._lock:
                self._number += 1
                text = text_of(marked(kept, self._number, self._stamp()))
                key = uid, namespace_of(pod)
                known = self._jobs.setdefault(key, _Pods(self._watch, self._since))
                if len(text) > _LONGEST:
                    self._is_missing(known)
                    continue
                known.texts[self._number] = text
                self._order[self._number] = key
                self._characters += len(text)
                while self._characters > self._most:
                    number, oldest = next(iter(self._order.items()))
                    self._drop(self._jobs[oldest], number)
                    self._is_missing(self._jobs[oldest])

    def job_changed(self, uid: str, job: Object) -> None:
        """Drop what the status of a job counts."""
        known = self._jobs.get((uid, namespace_of(job)))
        if known is None:
            return
        watch, number = read_counted(account_in(job).get(COUNTED))
        with self._lock:
            for one in [one for one in known.texts if watch == known.watch and one <= number]:
                self._drop(known, one)

    def job_deleted(self, uid: str, namespace: str) -> None:
        with self._lock:
            known = self._jobs.pop((uid, namespace), None)
            if known is not None:
                for number in list(known.texts):
                    self._drop(known, number)

    def of(self, uid: str, namespace: str) -> JsonTexts:
        """Return those of a job, as the collection's `shared/deleted_pods.py` describes them."""
        with self._lock:
            known = self._jobs.get((uid, namespace)) or _Pods(self._watch, self._since)
            return JsonTexts([text_of(header(known.watch, known.since)), *known.texts.values()])

    def _drop(self, known: _Pods, number: int) -> None:
        self._characters -= len(known.texts.pop(number))
        del self._order[number]

    def _is_missing(self, known: _Pods) -> None:
        known.watch, known.since = f"{self._watch}.{self._number}", self._stamp()

    def _stamp(self) -> str:
        return timestamp(self._now())
