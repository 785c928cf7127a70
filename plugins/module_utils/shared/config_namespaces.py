"""The namespaces from which the operator reads its ConfigMap.

Who can write the ConfigMap decides which host paths pods mount. So the operator reads it from its own namespace only,
unless its administrator names another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_NAMESPACE_VARIABLE
from ansible_collections.dljob.operator.plugins.module_utils.shared.own_namespace import NAMESPACE_FILE, own_namespace

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def config_namespaces(environ: Mapping[str, str], file: Path = NAMESPACE_FILE) -> tuple[str, ...]:
    """The own namespace, then the one in ``DLJOB_CONFIG_NAMESPACE``; those that there are, most important first.

    Raises ValueError where the variable has no name of a namespace.
    """
    other = environ.get(CONFIG_NAMESPACE_VARIABLE, "").strip()
    if other and not _NAME.fullmatch(other):
        raise ValueError(f"{CONFIG_NAMESPACE_VARIABLE}: {other!r} is not the name of a namespace")
    return tuple(dict.fromkeys(filter(None, (own_namespace(environ, file), other))))
