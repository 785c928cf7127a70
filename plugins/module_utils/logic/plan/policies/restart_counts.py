"""How often each replica of a job that ends was restarted.

While a job runs, the status counts a failure as soon as it is seen, before the restart: the limits and the attempts of
the pods need that. The last failure of a job that ends is followed by no restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import action_for
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import ACTION_IGNORE

Counts = Mapping[str, int]


def made(job: DLJob, pods: Iterable[PodState], counts: Counts, ignored: Counts) -> tuple[Counts, Counts]:
    """``counts`` and ``ignored`` of a job that ends with these ``pods``, without failures that no restart followed.

    The attempt of a pod is the number of the restarts before it.
    """
    if not counts and not ignored:
        return counts, ignored
    newest: dict[str, PodState] = {}
    for pod in pods:
        name = key(pod.type, pod.index)
        if name not in newest or newest[name].attempt < pod.attempt:
            newest[name] = pod
    left, left_ignored = dict(counts), dict(ignored)
    for name, pod in newest.items():
        if left.get(name, 0) + left_ignored.get(name, 0) <= pod.attempt:
            continue
        is_ignored = action_for(job, pod) == ACTION_IGNORE and left_ignored.get(name, 0) > 0
        (left_ignored if is_ignored else left).setdefault(name, 0)
        (left_ignored if is_ignored else left)[name] -= 1
    return _positive(left), _positive(left_ignored)


def _positive(counts: Counts) -> Counts:
    return {name: count for name, count in counts.items() if count > 0}
