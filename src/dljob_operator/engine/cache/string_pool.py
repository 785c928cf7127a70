"""Let the objects of a cache share equal strings.

Each object arrives in a JSON document of its own, with its own copies of "metadata", "Running" and the namespace:
half of the memory of a cache.
"""

from __future__ import annotations

from typing import Any, cast

from dljob_operator.engine.cache.transforms import Object

LARGEST = 1024
"""Strings in a pool. Names and UIDs are in it too, so it is emptied when it is full; what is common soon returns. Each
kind has a pool of its own, and a larger one would go on growing for thousands of jobs."""
LONGEST = 100
"""Characters; longer strings are hardly ever equal."""


class StringPool:
    """Strings that were seen lately. One thread uses a pool.

    ``sys.intern`` is no substitute: in some releases of Python what it has seen stays until the process ends, and
    tenants choose the strings.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def sharing(self, obj: Object) -> Object:
        """An equal object whose strings are those of earlier ones. It recurses, so `nesting` limits what it gets."""
        return cast(Object, self._shared(obj))

    def _shared(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, dict):
            return {self._string(key): self._shared(below) for key, below in value.items()}
        if isinstance(value, list):
            return [self._shared(item) for item in value]
        return value

    def _string(self, text: str) -> str:
        if len(text) > LONGEST:
            return text
        if len(self._seen) >= LARGEST:
            self._seen.clear()
        return self._seen.setdefault(text, text)
