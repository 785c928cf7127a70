"""Merges the operator's variables into the ``env`` of a container, and says which of the container's it ignores.

A variable of the operator says which process this is and where the others are, unless the framework lists it in
``tuning_variables``. The container's own variable of such a name is removed, whatever its form: a template is the same
for all its replicas, so it cannot say who each of them is. Of a variable that only tunes, and of one that is empty
here, the container's own stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.shared_env_configmap import Shared, variables

Entry = Mapping[str, Any]
"""An element of a container's ``env``."""


def merge(
    own: Sequence[Entry], environment: Mapping[str, Any], tuning: Collection[str], shared: Shared | None = None
) -> list[Entry]:
    """The ``env`` of a container whose template has ``own``.

    The operator's variables are the first, so that the container's may refer to them as ``$(NAME)``.
    """
    if not own:
        return list(variables(environment, (), shared))
    taken = {name for name in _by_name(own) if not _identifies(name, environment.get(name), tuning)}
    ours = list(variables(environment, taken, shared))
    names = {entry["name"] for entry in ours}
    return [*ours, *(entry for entry in own if entry.get("name") not in names)]


def replaced(own: Sequence[Entry], merged: Sequence[Entry]) -> Iterator[str]:
    """The names of the variables in ``own`` that have other content in the result ``merged`` of :func:`merge`."""
    made = _by_name(merged)
    return (name for name, entry in _by_name(own).items() if _content(made[name]) != _content(entry))


def _by_name(own: Sequence[Entry]) -> dict[str, Entry]:
    """Of duplicates the last one, as for the kubelet."""
    return {str(entry.get("name")): entry for entry in own}


def _identifies(name: str, value: object, tuning: Collection[str]) -> bool:
    """Whether a variable of the operator says who the process is. An empty one says nothing: it is there so that a
    command may refer to it."""
    return name not in tuning and value != ""


def _content(entry: Entry) -> object:
    return entry.get("valueFrom") or entry.get("value") or ""
