"""Which jobs users have changed lately: while there is another one, a large job holds back its writes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import CONTENTION

from dljob_operator.engine.controller_settings import LARGEST_BATCH


class RecentChanges:
    """The jobs that were changed last: one more than a batch can have. Not thread-safe: its owner locks."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changes: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._changes)

    def note(self, key: str) -> None:
        """A user has changed the job `key`."""
        self._changes[key] = self._clock()
        self._changes.move_to_end(key)
        if len(self._changes) > LARGEST_BATCH + 1:
            self._changes.popitem(last=False)

    def any_but(self, keys: Collection[str]) -> bool:
        """Whether a user has changed another job than `keys` within the last CONTENTION seconds."""
        since = self._clock() - CONTENTION
        return any(at > since for key, at in self._changes.items() if key not in keys)
