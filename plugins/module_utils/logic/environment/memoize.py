"""Computes the part of the environment that is the same for all replicas of a job only once.

The environment of every process lists all members of the cluster. Computing that list for each of n replicas takes
n * n steps: seconds for a thousand replicas, minutes for ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_CACHE_SIZE = 8  # jobs that may be planned at the same time, by several threads


class MemoizedPerCluster:
    """Memoizes a function of a cluster's ``replicas`` by identity: ``for_replica`` keeps the ``replicas`` object."""

    def __init__(self, compute: Callable[[Mapping[str, Any]], str]) -> None:
        self._compute = compute
        self._cached: tuple[tuple[Mapping[str, Any], str], ...] = ()  # replaced as a whole, so it is thread-safe

    def __call__(self, replicas: Mapping[str, Any]) -> str:
        for known, text in self._cached:
            if known is replicas:
                return text
        text = self._compute(replicas)
        self._cached = ((replicas, text), *self._cached[: _CACHE_SIZE - 1])
        return text
