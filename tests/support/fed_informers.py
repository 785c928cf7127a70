"""Informers without threads, which a test feeds."""

from __future__ import annotations

from typing import Any

from dljob_operator.engine.cache.informer import Informer
from dljob_operator.engine.cache.informer_set import InformerSet, WatchedKind


def informer_of(informers: InformerSet, what: str, namespace: str = "") -> Informer:
    """The informer of `what`, such as "pods" or the name of a job's kind."""
    (found,) = (one for one in informers.informers if (one.source.what, one.source.namespace) == (what, namespace))
    return found


def kind_of(informers: InformerSet, target: str) -> WatchedKind:
    found = informers.kind(target)
    assert found is not None
    return found


def fill(informers: InformerSet, *, left_out: str = "") -> None:
    """Let the first lists be complete."""
    for informer in informers.informers:
        if informer.source.what != left_out:
            informer.synced.set()
            informer.has_synced.set()


def without_threads(informers: InformerSet) -> None:
    """Let `start` start no informer."""
    for informer in informers.informers:
        replaced: Any = informer
        replaced.start = lambda: None
        replaced.join = lambda timeout=None: True
