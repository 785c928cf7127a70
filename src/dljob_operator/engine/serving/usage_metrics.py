"""The metrics of what jobs use, from the accounts in their statuses. See `metrics` for their names."""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import account_in
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.statuses import as_mapping

_MOST_NAMES = 50
"""Values of a label. A user who may write a status could invent others."""
_MOST = 1e24
"""A number above is none that a job can have."""
Key = tuple[str, str]
"""The kind and the UID of a job."""


class UsageMetrics(Collector):
    """Counts what the accounts of jobs grow by. It is safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"dljob_job_{name}", text, ("namespace", "kind", *labels), registry=registry)

        self._resources = counter("resource_seconds", "Core, GiB and device seconds of the pods of jobs", "resource")
        self._phases = counter("phase_seconds", "Seconds that jobs spent in each phase", "phase")
        self._interruptions = counter("interruptions", "Times at which not all replicas of a job ran", "cause")
        self._lost = counter("interruption_seconds", "Seconds of these", "cause")
        self._lost_resources = counter(
            "interruption_resource_seconds", "What jobs held in these seconds, times seconds", "cause", "resource"
        )
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._held: dict[Key, tuple[str, Mapping[str, float]]] = {}
        registry.register(self)

    def job_changed(self, namespace: str, key: Key, change: Change) -> None:
        """Count what has been added to the account of a job. One that was there before this process counts from now."""
        after = account_in(change.new)
        held = self._named(after.get("held"))
        with self._lock:
            if held:
                self._held[key] = namespace, held
            else:
                self._held.pop(key, None)
        if not after or change.old is None:
            return
        before = account_in(change.old)
        for counter, name in ((self._resources, "resourceSeconds"), (self._phases, "seconds")):
            _grow(counter, (namespace, key[0]), *(self._named(one.get(name)) for one in (before, after)))
        for counter, name in ((self._interruptions, "count"), (self._lost, "seconds")):
            _grow(counter, (namespace, key[0]), *(self._named(_by_cause(one, name)) for one in (before, after)))
        held_before = _by_cause(before, "resourceSeconds")
        for cause, amounts in _by_cause(after, "resourceSeconds").items():
            (label,) = self._named({cause: 1})
            were, are = (self._named(one) for one in (held_before.get(cause), amounts))
            _grow(self._lost_resources, (namespace, key[0], label), were, are)

    def _named(self, value: Any) -> dict[str, float]:
        """The numbers by name, those of further names than a label may have as one."""
        found: dict[str, float] = {}
        for name, one in as_mapping(value).items():
            with self._lock:
                if len(self._names) < _MOST_NAMES:
                    self._names.add(name)
                label = name if name in self._names else "other"
            found[label] = found.get(label, 0.0) + _number(one)
        return found

    def describe(self) -> Iterator[Metric]:
        """Return nothing, because otherwise registering would call `collect`."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        sums: Tally[tuple[str, str, str]] = Tally()
        with self._lock:
            there = list(self._held.items())
        for (kind, _), (namespace, held) in there:
            for resource, amount in held.items():
                sums[namespace, kind, resource] += amount  # type: ignore[assignment]  # floats
        found = GaugeMetricFamily(
            "dljob_job_held_resources", "What the pods of jobs hold", labels=("namespace", "kind", "resource")
        )
        for labels, amount in sorted(sums.items()):
            found.add_metric(labels, amount)
        yield found


def _grow(counter: Counter, labels: tuple[str, ...], before: Mapping[str, float], after: Mapping[str, float]) -> None:
    for name, amount in after.items():
        if (more := amount - before.get(name, 0.0)) > 0:
            counter.labels(*labels, name).inc(more)


def _by_cause(account: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = account.get("interruptions")
    entries = map(as_mapping, found) if isinstance(found, list) else ()
    return {str(one.get("cause")): one.get(name) for one in entries}


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MOST else 0.0
