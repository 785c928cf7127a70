"""Which object controls another one: its owner reference with ``controller: true``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def controller_of(resource: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the controller of ``resource``; ``None`` where there is none.

    The API server accepts one at most.
    """
    references = (resource.get("metadata") or {}).get("ownerReferences") or ()
    return next((one for one in references if one.get("controller") is True), None)
