"""A run that the bridge takes from the shim, and what the shim gets back."""

from __future__ import annotations

import dataclasses

from dljob_operator.ansible_operator_bridge.command import Command, Input
from dljob_operator.engine.cache.informer_set import WatchedKind
from dljob_operator.engine.cache.predicates import is_leaving, version_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.queue.resource_versions import number
from dljob_operator.engine.requests import target_name


@dataclasses.dataclass(frozen=True)
class RunExit:
    """The exit code of a run, as of ansible-playbook, and its output."""

    code: int
    output: str


@dataclasses.dataclass(frozen=True)
class ParsedRun:
    """A parsed run that this process can do."""

    asked: Command
    given: Input
    kind: WatchedKind
    target: str

    @property
    def is_for_worker(self) -> bool:
        """Whether a long-lived worker may do it. It runs no finalizer, which may be another role or have variables."""
        watch = self.kind.watch
        return watch.long_lived and self.target == target_name(watch) and not is_leaving(dict(self.given.resource))


def newer(handed: Object, cached: Object | None) -> Object:
    """Return the newer version of the object: the cache of ansible-operator may lag behind ours, or ours behind it."""
    if cached is None:
        return handed
    return cached if number(version_of(cached)) > number(version_of(handed)) else handed
