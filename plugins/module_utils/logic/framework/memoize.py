"""Computes the part of the environment that is the same for all replicas of a job only once.

The environment of every process lists all members of the cluster. Computing that list for each of n replicas takes
n * n steps: seconds for a thousand replicas, minutes for ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_CACHE_SIZE = 8  # jobs that may be planned at the same time, by several threads


class MemoizedPerCluster:
    """Memoizes a function of a cluster's ``replicas`` by identity: ``for_replica`` keeps the ``replicas`` object.

    The texts that are its other arguments are compared.
    """

    def __init__(self, compute: Callable[..., str]) -> None:
        self._compute = compute
        # replaced as a whole, so it is thread-safe
        self._cached: tuple[tuple[Mapping[str, Any], tuple[str, ...], str], ...] = ()

    def __call__(self, replicas: Mapping[str, Any], *texts: str) -> str:
        for known, arguments, text in self._cached:
            if known is replicas and arguments == texts:
                return text
        text = self._compute(replicas, *texts)
        self._cached = ((replicas, texts, text), *self._cached[: _CACHE_SIZE - 1])
        return text
