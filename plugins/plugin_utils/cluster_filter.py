"""Helper for filters whose input is a cluster spec: it checks that the input has the keys that the filter reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

Filter = Callable[[Any], Any]


def cluster_filter(name: str, needed: Sequence[str], compute: Filter) -> dict[str, Filter]:
    """The filter ``name`` for a FilterModule: the hook ``compute``, whose several results become a list.

    It raises AnsibleFilterError with the name of the first key of ``needed`` that is missing.
    """

    def checked(cluster: Any) -> Any:
        missing = [key for key in needed if not isinstance(cluster, Mapping) or key not in cluster]
        if missing:
            raise AnsibleFilterError(f"{name}: the cluster lacks {missing[0]!r}")
        computed = compute(cluster)
        return computed if isinstance(computed, Mapping) else list(computed)

    return {name: checked}
