"""The last known states of failed pods that batch Jobs control, which outlive the pods for a while.

Under `restartPolicy: OnFailure` the Job controller deletes the pod of a batch Job when it has failed too often, often
before the next run of the job. Then only the watch has had its exit code and the end of its log.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import FAILED_BEFORE, is_of_batch_job

from dljob_operator.engine.cache.predicates import Change, is_leaving, namespace_of, owner_uid
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.json_texts import JsonTexts, text_of

_MOST = 500
"""Batch Jobs of which a state is kept; the oldest is dropped first. Each takes some KiB."""
_LONGEST = 32 * 1024
"""Characters of a state. A tenant may give a pod hundreds of containers."""


class FailedPods:
    """One state for each batch Job: that of its pod which failed last. It is safe to use from several threads."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._texts)

    def pod_changed(self, change: Change) -> None:
        """Note the state of a pod, which is deleted if `change.new` is None."""
        pod = change.obj
        if not _has_failed(pod) or not is_of_batch_job(pod):
            return
        text = text_of({**pod, FAILED_BEFORE: True})
        if len(text) > _LONGEST:
            return
        key = owner_uid(pod) or "", namespace_of(pod)
        with self._lock:
            self._texts[key] = text
            self._texts.move_to_end(key)
            if len(self._texts) > self._most:
                self._texts.popitem(last=False)

    def batch_job_gone(self, uid: str, namespace: str) -> None:
        with self._lock:
            self._texts.pop((uid, namespace), None)

    def of(self, uids: Iterable[str], namespace: str) -> JsonTexts:
        """Return the states of the batch Jobs `uids` of a namespace."""
        with self._lock:
            return JsonTexts(text for uid in uids if (text := self._texts.get((uid, namespace))) is not None)


def _has_failed(pod: Object) -> bool:
    """Whether a container of `pod` has ended with another code than 0, even if it was restarted since.

    While a pod is deleted its containers end because of that, and the kubelet drops their ends before.
    """
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ends = ("lastState",) if is_leaving(pod) else ("state", "lastState")
    return any(_code(one, name) for one in statuses for name in ends)


def _code(status: Mapping[str, Any], name: str) -> Any:
    return ((status.get(name) or {}).get("terminated") or {}).get("exitCode")
