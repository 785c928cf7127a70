"""Which object controls another one: its owner reference with ``controller: true``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def controller_of(resource: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the controller of ``resource``; ``None`` where there is none.

    The API server accepts one at most. Pods that a user gives to the filter ``job_status`` have passed no API server:
    what is no reference is passed over.
    """
    references = (resource.get("metadata") or {}).get("ownerReferences")
    found = references if isinstance(references, list) else ()
    return next((one for one in found if isinstance(one, Mapping) and one.get("controller") is True), None)
