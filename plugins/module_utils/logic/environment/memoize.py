"""What is the same for every task of a job, computed once for all of them.

A cluster's members stand in every process's environment. ApplyResult anew for each of n replicas they cost n * n
steps: seconds for a thousand, minutes for ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_KEPT = 8  # jobs that may be planned at the same time, by several threads


class MemoizedPerCluster:
    """Wraps a function of a cluster's ``replicas``: :func:`..cluster_spec.for_replica` passes on the same object."""

    def __init__(self, compute: Callable[[Mapping[str, Any]], str]) -> None:
        self._compute = compute
        self._known: tuple[tuple[Mapping[str, Any], str], ...] = ()  # replaced as a whole: safe between threads

    def __call__(self, replicas: Mapping[str, Any]) -> str:
        for known, text in self._known:
            if known is replicas:
                return text
        text = self._compute(replicas)
        self._known = ((replicas, text), *self._known[: _KEPT - 1])
        return text
