"""A first-in-first-out queue that several namespaces share fairly: each take goes to the next namespace in turn.

So the ten thousand jobs of one tenant delay the only job of another by the jobs that run at that moment.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Container
from itertools import islice
from typing import NamedTuple


class Flow(NamedTuple):
    """Where a job belongs: the target that reconciles it, and its namespace."""

    target: str
    namespace: str


class _Keys:
    """The queued keys of one namespace in their order, and those of each target."""

    def __init__(self) -> None:
        self.all: OrderedDict[str, Flow] = OrderedDict()
        self.of_target: dict[str, OrderedDict[str, None]] = {}

    def add(self, key: str, flow: Flow) -> None:
        self.all[key] = flow
        self.of_target.setdefault(flow.target, OrderedDict())[key] = None

    def discard(self, key: str) -> None:
        flow = self.all.pop(key)
        keys = self.of_target[flow.target]
        del keys[key]
        if not keys:
            del self.of_target[flow.target]


class FairQueue:
    """Keys of jobs, each at most once. Not thread-safe: its owner locks."""

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, _Keys] = OrderedDict()
        self._flows: dict[str, Flow] = {}
        self._targets: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._flows)

    def add(self, key: str, flow: Flow) -> None:
        """Append `key` to its namespace's keys, unless it is queued."""
        if key in self._flows:
            return
        self._flows[key] = flow
        self._namespaces.setdefault(flow.namespace, _Keys()).add(key, flow)
        self._targets[flow.target] += 1

    def remove(self, namespace: str) -> dict[str, Flow]:
        """Remove and return all keys of a namespace, in their order."""
        found = dict(self._namespaces[namespace].all) if namespace in self._namespaces else {}
        for key in found:
            self.discard(key)
        return found

    def discard(self, key: str) -> bool:
        """Remove `key`; return whether it was queued."""
        flow = self._flows.pop(key, None)
        if flow is None:
            return False
        keys = self._namespaces[flow.namespace]
        keys.discard(key)
        if not keys.all:
            del self._namespaces[flow.namespace]
        self._targets[flow.target] -= 1
        return True

    def pop(self, avoided: Container[str] = ()) -> tuple[str, Flow]:
        """Remove and return the first key of the next namespace that is not `avoided`. Raises KeyError if none is."""
        namespace = self._next_namespace(avoided)
        if namespace is None:
            raise KeyError("the queue is empty")
        return self._pop_from(namespace)

    @property
    def namespaces(self) -> Collection[str]:
        """Those with keys, the next one first."""
        return self._namespaces.keys()

    def has_namespace_beside(self, others: Container[str]) -> bool:
        """Whether a namespace that is none of the `others` has keys."""
        return self._next_namespace(others) is not None

    def _next_namespace(self, avoided: Container[str]) -> str | None:
        return next((name for name in self._namespaces if name not in avoided), None)

    def count(self, target: str) -> int:
        """How many keys of `target` are queued."""
        return self._targets[target]

    def pop_more(self, target: str, most: int, permitted: Callable[[str], bool]) -> list[str]:
        """Remove and return up to `most` permitted keys of `target`, in the order of `pop`.

        It is the turn of a namespace only if its first key of `target` is taken: one that is not permitted, behind
        which others are taken, keeps its turn.
        """
        found: list[str] = []
        while len(found) < most:
            firsts = (
                next(filter(permitted, keys.of_target.get(target, ())), None) for keys in self._namespaces.values()
            )
            turn = [*islice((key for key in firsts if key is not None), most - len(found))]
            if not turn:
                break
            for key in turn:
                namespace = self._flows[key].namespace
                is_first = key == next(iter(self._namespaces[namespace].of_target[target]))
                self.discard(key)
                if is_first:
                    self._to_the_end(namespace)
                found.append(key)
        return found

    def _pop_from(self, namespace: str) -> tuple[str, Flow]:
        key, flow = next(iter(self._namespaces[namespace].all.items()))
        self.discard(key)
        self._to_the_end(namespace)
        return key, flow

    def _to_the_end(self, namespace: str) -> None:
        if namespace in self._namespaces:
            self._namespaces.move_to_end(namespace)
