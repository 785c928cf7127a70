from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.memoize import MemoizedPerCluster


def test_memoized_by_identity_not_by_equality() -> None:
    asked: list[object] = []

    def compute(replicas: object) -> str:
        asked.append(replicas)
        return str(len(asked))

    once = MemoizedPerCluster(compute)
    first, equal = {"Worker": []}, {"Worker": []}
    assert [once(first), once(first), once(equal), once(first)] == ["1", "1", "2", "1"]


def test_only_the_latest_results_are_cached() -> None:
    computed: list[int] = []

    def compute(replicas: Any) -> str:
        computed.append(replicas["n"])
        return str(replicas["n"])

    once = MemoizedPerCluster(compute)
    clusters = [{"n": n} for n in range(20)]
    assert [once(c) for c in clusters] == [str(n) for n in range(20)]
    assert [once(c) for c in clusters[12:]] == [str(n) for n in range(12, 20)]
    assert computed == list(range(20)), "the last eight are cached"
    once(clusters[11])
    assert computed[20:] == [11]


def test_other_arguments_are_part_of_what_is_memoized() -> None:
    calls: list[str] = []

    def compute(replicas: Mapping[str, Any], domain: str) -> str:
        calls.append(domain)
        return domain

    memoized, cluster = MemoizedPerCluster(compute), {"Worker": [1]}
    assert [memoized(cluster, domain) for domain in ("a", "b", "a", "b")] == ["a", "b", "a", "b"]
    assert calls == ["a", "b"]
