"""How many processors a container without devices may use, by its CPU limit.

A process that counts processors finds those of the node, since the limit is a quota of time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import accelerator_limits, quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping


def whole_processors(container: Mapping[str, Any]) -> int | None:
    """The CPU limit of ``container``, rounded up; ``None`` without one, or where the container has a device.

    A device is an accelerator, or a claim of dynamic resource allocation. The container may be invalid.
    """
    resources = as_mapping(container.get("resources"))
    given = as_mapping(resources.get("limits")).get("cpu")
    if (
        given is None
        or resources.get("claims")
        or accelerator_limits.of_container(container)
        or not quantities.is_quantity(given)
    ):
        return None
    number = math.ceil(quantities.amount(given))
    return number if number > 0 else None
