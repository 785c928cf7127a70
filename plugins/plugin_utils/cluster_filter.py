"""A filter over a job's cluster, which first sees to it that the cluster has what the filter reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

Filter = Callable[[Any], Any]


def cluster_filter(name: str, needed: Sequence[str], compute: Filter) -> dict[str, Filter]:
    """``compute`` as the filter ``name``, as a FilterModule gives it. AnsibleFilterError names the key that lacks."""

    def checked(cluster: Any) -> Any:
        missing = [key for key in needed if not isinstance(cluster, Mapping) or key not in cluster]
        if missing:
            raise AnsibleFilterError(f"{name}: the cluster lacks {missing[0]!r}")
        return compute(cluster)

    return {name: checked}
