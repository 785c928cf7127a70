"""The namespaces from which the operator reads its ConfigMap.

Who can write the ConfigMap decides which host paths pods mount. So the operator reads it from its own namespace only,
unless its administrator names another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import NAMESPACE_FILE, own_namespace
from ansible_collections.dljob.operator.plugins.module_utils.shared.settings import CONFIG_NAMESPACE


def config_namespaces(environ: Mapping[str, str], file: Path = NAMESPACE_FILE) -> tuple[str, ...]:
    """The own namespace, then the one in ``DLJOB_CONFIG_NAMESPACE``; those that there are, most important first.

    Raises ValueError where the variable has no name of a namespace.
    """
    other = CONFIG_NAMESPACE.of(environ)
    return tuple(dict.fromkeys(filter(None, (own_namespace(environ, file), other))))
