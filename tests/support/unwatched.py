"""A reader that has objects, and no engine that watches them."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader


class Unwatched(Reader):
    """Its objects are current, as those that a reconcile has just read itself."""

    has_watch = False  # type: ignore[assignment]
