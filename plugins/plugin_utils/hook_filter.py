"""The base of the filters that are hooks of a framework: their input is a cluster spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ansible.errors import AnsibleFilterError

Filter = Callable[[Any], Any]


class HookFilter:
    """Ansible's entry point to one filter: ``class FilterModule(HookFilter, name=..., needs=..., hook=...)``.

    The filter ``name`` computes ``hook``, whose several results become a list. It raises AnsibleFilterError with the
    name of the first key of ``needs`` that the cluster spec lacks.
    """

    _filters: ClassVar[Mapping[str, Filter]]

    def __init_subclass__(cls, *, name: str, needs: Sequence[str], hook: Filter) -> None:
        super().__init_subclass__()

        def checked(cluster: Any) -> Any:
            missing = [key for key in needs if not isinstance(cluster, Mapping) or key not in cluster]
            if missing:
                raise AnsibleFilterError(f"{name}: the cluster lacks {missing[0]!r}")
            computed = hook(cluster)
            return computed if isinstance(computed, Mapping) else list(computed)

        cls._filters = {name: checked}

    def filters(self) -> dict[str, Filter]:
        return dict(self._filters)
